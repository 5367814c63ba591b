#!/bin/bash
# Many writers of the sources of a single view, and of the view itself: there is one document for each key, with what its sources
# have. And many writers of a table with variants, while variants come, go and change: what is stored is valid. First each
# transaction is one statement, and nothing deadlocks; then there are longer ones, with savepoints and rollbacks.
# STRESS_SECONDS and SEED change the run.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 6
stress_begin dp_polymorphic_stress 20270
stress_setup <<'SQL'
CREATE SEQUENCE ids START 1000 CACHE 50;
SELECT collection_create('one'), collection_create('many'), collection_create('part');
SELECT polymorphic_merge('merged', merge_on => 'c', sources => '{one,many,part}', arrays => '{many,part}', fields => '{part: {v: 1}}');
SELECT collection_create('kinds');
SELECT polymorphic_enable('kinds', by => 'k', unknown => 'error', common => '{required: ["v"]}');
SELECT polymorphic_variant('kinds', 'a', schema => '{properties: {v: {bsonType: "int"}}}', indexes => '{v}'), polymorphic_variant('kinds', 'b', schema => '{properties: {v: {bsonType: "string"}, w: {}}}', closed => true);
SQL

work() {  # work NUMBER TAG
  stress_awk "$1" "$2" '
    function source() { return (w = r(3)) == 1 ? "one" : w == 2 ? "many" : "part" }
    function key() { return r(15) == 1 ? "NULL::int" : r(10) }
    function mine() { return tag == "alone" ? " AND (doc -> $$w$$)::int = " client : "" }
    function one(   w, t) {
      w = r(22); t = source()
      if (w <= 7) return "INSERT INTO " t " (doc) VALUES (bson_build($$_id$$, nextval($$ids$$), $$c$$, " key() ", $$v$$, " r(100) ", $$w$$, " client "));"
      if (w <= 9) return "INSERT INTO " t " (doc) SELECT bson_build($$_id$$, nextval($$ids$$), $$c$$, (j * 3 + " r(10) ") % 10 + 1, $$v$$, j, $$w$$, " client ") FROM generate_series(1, " r(4) ") j;"
      if (w <= 12) return "DELETE FROM " t " WHERE (doc -> $$c$$)::int IN (" r(10) ", " r(10) ")" mine() ";"
      if (w == 13) return "UPDATE " t " SET doc = bson_set(doc, $$c$$, " r(10) ") WHERE (doc -> $$v$$)::int % 9 = " r(9) - 1 mine() ";"
      if (w <= 15) return "UPDATE " t " SET doc = bson_set(doc, $$v$$, " r(100) ") WHERE (doc -> $$c$$)::int = " r(10) mine() ";"
      if (w == 16) return "UPDATE merged SET doc = bson_set(bson_set(doc, $$many$$, 5), $$own$$, " r(100) ") WHERE doc -> $$c$$ = " r(10) ";"
      if (w == 17) return "INSERT INTO merged (doc) VALUES (bson_build($$c$$, " r(10) ", $$own$$, 1)) ON CONFLICT DO NOTHING;"
      if (w == 18) return "UPDATE merged SET doc = bson_unset(doc, $$own$$) WHERE doc -> $$c$$ = " r(10) ";"
      if (w <= 20) return "INSERT INTO kinds (doc) VALUES (bson_build($$_id$$, nextval($$ids$$), $$k$$, $$" (r(2) == 1 ? "a" : r(2) == 1 ? "b" : "c") "$$, $$v$$, " (r(2) == 1 ? r(9) : "$$x$$") "));"
      if (w == 21 && client == 1) return r(2) == 1 ? "SELECT pattern_alter($$kinds$$, $$a$$, $${schema: {properties: {v: {bsonType: [\"int\", \"string\"]}}}}$$);" : "SELECT polymorphic_variant($$kinds$$, $$c$$);"
      if (w == 22 && client == 1) return r(2) == 1 ? "DELETE FROM kinds WHERE doc -> $$k$$ = $$\"c\"$$ OR doc @@ $${k: \"a\", v: {$type: \"string\"}}$$; SELECT pattern_disable($$kinds$$, $$c$$);" : "DELETE FROM kinds WHERE doc @@ $${k: \"a\", v: {$type: \"string\"}}$$;"
      return "SELECT count(*) FROM kinds_a;"
    }
    BEGIN {
      for (;;) {
        printf "%s %s ", level(), one()
        if (tag != "alone") {
          if (r(3) == 1) printf "SAVEPOINT a; %s ROLLBACK TO a; ", one()
          for (n = r(3) - 1; n > 0; n--) printf "%s ", one()
        }
        print r(8) == 1 ? "ROLLBACK;" : "COMMIT;"
      }
    }'
}
# each key has a document: one that a source makes and somebody inserts at the same moment can be a deadlock, as the page says
ask "INSERT INTO merged (doc) SELECT bson_build('c', i, 'own', 1) FROM generate_series(1, 10) i"
stress_run alone $((seconds / 2 + 1))
stress_run together $((seconds / 2 + 1))
ask "SELECT format('# %s documents of %s, %s and %s; %s kinds', (SELECT count(*) FROM merged), (SELECT count(*) FROM one), (SELECT count(*) FROM many), (SELECT count(*) FROM part), (SELECT count(*) FROM kinds))"
is "$(stress_count 40P01 alone)" 0 'single statements do not deadlock'
is "$(ask "SELECT * FROM pattern_check('merged')")" '' 'the single view is true'
is "$(ask "SELECT k.c, (SELECT doc FROM one WHERE doc -> 'c' = k.c)::text, (SELECT bson_agg(doc ORDER BY _id) FROM many WHERE doc -> 'c' = k.c)::text, (SELECT bson_agg(bson_project(doc, '{v: 1, _id: 0}') ORDER BY _id) FROM part WHERE doc -> 'c' = k.c)::text
  FROM (SELECT doc -> 'c' AS c FROM one UNION SELECT doc -> 'c' FROM many UNION SELECT doc -> 'c' FROM part) AS k WHERE bson_typeof(k.c) <> 'null'
  EXCEPT SELECT doc -> 'c', (doc -> 'one')::text, (doc -> 'many')::text, (doc -> 'part')::text FROM merged")" '' 'and the same as in plain SQL'
is "$(ask "SELECT doc FROM merged WHERE NOT doc ?| ARRAY['one', 'many', 'part', 'own'] AND doc -> 'c' IN (SELECT doc -> 'c' FROM merged GROUP BY 1 HAVING count(*) > 1)")" '' 'no key has two documents'
is "$(ask "SELECT * FROM pattern_check('kinds') WHERE NOT (name = 'a' AND found = 'string')")" '' 'documents are of variants, and valid'
is "$(cat "$DP_WORK"/errors.* | grep 'ERROR:' | grep -v 'ERROR:  40001\|ERROR:  40P01\|ERROR:  25P02\|ERROR:  3B001\|ERROR:  23505\|ERROR:  23514\|ERROR:  42710\|ERROR:  42704\|ERROR:  55000: field "many" of table "merged" shows rows' | sort | uniq -c | head -5)" '' 'errors are those that are meant'
stress_end
