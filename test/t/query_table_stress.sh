#!/bin/bash
# Many writers of a source with query tables: one that shows everything, one with unique keys, one with the first three rows of
# each partition, one whose rows expire and are purged, and two that are built online while they write. First each transaction is one statement that locks rows
# in the order of their keys, and nothing deadlocks; then longer ones, with savepoints and a trigger that writes again.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 9
stress_begin dp_query_table_stress 20301
stress_setup <<'SQL'
CREATE TABLE bad (what text);
CREATE SEQUENCE ids CACHE 100;
SELECT collection_create('s');
SELECT query_table_create('all_u', 's', '{u}', clustering => '{d: -1}', fields => '{t: 1, twice: {$multiply: ["$t", 2]}}', types => '{d: "int", t: "numeric"}'),
       query_table_create('by_e', 's', '{e}', fields => '{u: 1}', is_unique => true),
       query_table_create('top_u', 's', '{u}', clustering => '{d: 1, t: -1}', types => '{d: "int"}', limit_per_partition => 3),
       query_table_create('mortal', 's', '{u}', fields => '{t: 1}', ttl_field => 'x');
INSERT INTO s (doc) SELECT bson_build('_id', -i, 'u', i % 7, 'd', i % 50, 't', i, 'e', 'first' || i) FROM generate_series(1, 300) i;
SELECT query_table_create('late', 's', '{t}', clustering => '{d: 1}', fields => '{e: 1}'), query_table_create('late_top', 's', '{t}', clustering => '{d: -1}', limit_per_partition => 2);
SQL

work() {
  stress_awk "$1" "$2" '
    function row() { return "bson_build($$_id$$, nextval($$ids$$), $$u$$, " r(7) - 1 (r(9) > 1 ? ", $$d$$, " r(50) : "") ", $$t$$, " r(30) ", $$x$$, extract(epoch FROM clock_timestamp()) + " r(12) - 6 ", $$e$$, $$e$$ || " r(40) ")" }
    function some() { return "_id IN (SELECT _id FROM s WHERE _id > (SELECT last_value FROM ids) * " rand() " - " r(300) " ORDER BY _id LIMIT " r(4) " FOR UPDATE)" }
    function one(   w) {
      w = r(22)
      if (w <= 5) return "INSERT INTO s (doc) VALUES (" row() ");"
      if (w <= 7) return "INSERT INTO s (doc) VALUES (bson_unset(" row() ", $$e$$)), (bson_unset(" row() ", $$e$$)), (bson_unset(" row() ", $$e$$));"
      if (w == 8) return "INSERT INTO s (doc) SELECT bson_unset(bson_set(" row() ", $$u$$, j), $$e$$) FROM generate_series(6, 0, -1) j;"
      if (w <= 12) return "DELETE FROM s WHERE " some() ";"
      if (w <= 14) return "UPDATE s SET doc = bson_set(doc, $$t$$, " r(30) ") WHERE " some() ";"
      if (w == 15) return "UPDATE s SET doc = bson_set(doc, $$d$$, " r(50) ") WHERE " some() ";"
      if (w == 16) return "UPDATE s SET doc = bson_set(doc, $$u$$, " r(7) - 1 ") WHERE " some() ";"
      if (w == 17) return "INSERT INTO s (doc) SELECT bson_set(doc, $$t$$, " r(30) ") FROM s WHERE " some() " ORDER BY _id ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;"
      if (w == 18 && tag != "alone") return "UPDATE s SET doc = bson_set(doc, $$e$$, $$e$$ || " r(40) ") WHERE " some() ";"
      if (w == 19 && tag != "alone") return "UPDATE s SET doc = bson_set(doc, $$again$$, true) WHERE " some() ";"
      if (w == 21) return "SELECT query_table_purge($$mortal$$, " r(9) ");"
      if (w == 22) return "UPDATE s SET doc = bson_set(doc, $$x$$, extract(epoch FROM clock_timestamp()) + " r(12) - 6 ") WHERE " some() ";"
      return "INSERT INTO bad SELECT concat_ws($$ $$, $$" tag "$$, current_setting($$transaction_isolation$$), x) FROM pattern_check($$s$$, $$" (r(2) > 1 ? "all_u" : r(2) > 1 ? "by_e" : r(2) > 1 ? "mortal" : "top_u") "$$) x;"
    }
    BEGIN {
      for (i = 0;; i++) {
        if (client == 1 && tag == "alone") {
          print "CALL pattern_build($$s$$, $$" (i % 2 ? "late" : "late_top") "$$, " r(5) ");"
          if (i > 6) { while (1) print "SELECT pg_sleep(0.1);" }
          continue
        }
        printf "%s%s", level(), one()
        if (tag != "alone") {
          if (r(6) == 1) printf " SAVEPOINT a; %s ROLLBACK TO a;", one()
          if (r(3) == 1) printf " %s", one()
        }
        print r(12) == 1 ? " ROLLBACK;" : " COMMIT;"
      }
    }'
}
stress_run alone $(((seconds + 1) / 2))
is "$(ask "CALL pattern_build('s', 'late', NULL); CALL pattern_build('s', 'late_top', NULL); SELECT * FROM pattern_check('s') LIMIT 5")" '' 'what was built while others wrote is true'
# a trigger that writes the row again, inside of the statement
ask "CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN UPDATE s SET doc = bson_set(bson_unset(doc, 'again'), 'u', ((doc -> 'u')::int + 1) % 7) WHERE _id = NEW._id; RETURN NULL; END \$\$;
  CREATE TRIGGER again AFTER UPDATE ON s FOR EACH ROW WHEN (NEW.doc ? 'again') EXECUTE FUNCTION again()" >/dev/null
stress_run mixed $(((seconds + 1) / 2))
ask "SELECT format('# %s rows of %s, %s in the first table, %s in the table of the first three', count(*), (SELECT last_value FROM ids), (SELECT count(*) FROM all_u), (SELECT count(*) FROM top_u)) FROM s"

is "$(stress_count 40P01 alone)" 0 'no transaction of one statement waited for one that waited for it'
is "$(stress_others 'ERROR:  23505.*by_e_pkey.*')" '' 'errors are serialization failures, keys that are taken, and deadlocks of longer transactions'
is "$(ask 'SELECT * FROM bad LIMIT 3')" '' 'the tables were true at any moment'
is "$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' 'and are true afterwards'
ok 'much was written' [ "$(ask "SELECT count(*) > 50 FROM s")" = t ]

# the same in plain SQL
is "$(ask "SELECT count(*) FROM all_u FULL JOIN (SELECT _id, doc FROM s WHERE doc ? 'd') q ON source_key = _id
  WHERE (u, d, t, twice) IS DISTINCT FROM (doc -> 'u', (doc -> 'd')::int, (doc -> 't')::numeric, to_bson((doc -> 't')::int * 2))")" 0 'all rows of all users'
is "$(ask "SELECT count(*) FROM by_e FULL JOIN (SELECT _id, doc FROM s WHERE doc ? 'e') q ON source_key = _id WHERE (e, u) IS DISTINCT FROM (doc -> 'e', doc -> 'u')")" 0 'one row for each e'
is "$(ask "SELECT count(*) FROM top_u FULL JOIN (SELECT * FROM (SELECT _id, doc, row_number() OVER (PARTITION BY doc -> 'u' ORDER BY (doc -> 'd')::int, doc -> 't' DESC, _id DESC) AS n FROM s WHERE doc ? 'd') r WHERE n <= 3) q ON source_key = _id
  WHERE (u, d, t) IS DISTINCT FROM (doc -> 'u', (doc -> 'd')::int, doc -> 't')")" 0 'the first three of each user'
stress_end
