#!/bin/bash
# Many writers of a source and its targets at once: the totals stay those of the rows. First each transaction is one
# statement, which writes rows of the source that nobody else writes, and nothing deadlocks over documents; then there
# are longer ones, with savepoints and rollbacks, that write everybody's rows.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 6
stress_begin dp_computed_stress 20267
stress_setup <<'SQL'
SELECT collection_create('t'), collection_create('s'), collection_create('made');
SELECT computed_enable('t', 's', 'a', '{n: {$count: {}}, sum: {$sum: "$x"}, best: {$max: "$i"}, mean: {$avg: "$x"}}', name => 'a'),
       computed_enable('t', 's', 'b', '{bn: {$count: {}}, low: {$min: "$i"}, all: {$sum: "$i"}}', name => 'b', filter => '{i: {$gt: 20}}'),
       computed_enable('made', 's', 'a', '{n: {$count: {}}, middle: {$median: {input: "$i", method: "approximate"}}}', create_missing => true);
SELECT computed_enable('made', 's', 'a', '{later: {$sum: "$i"}}', create_missing => true, mode => 'deferred');
INSERT INTO t (doc) SELECT bson_build('_id', i) FROM generate_series(1, 12) i;
INSERT INTO made (doc) SELECT bson_build('_id', i) FROM generate_series(1, 15) i;
CREATE SEQUENCE ids CACHE 1000;
SQL

work() {  # work NUMBER TAG
  stress_awk "$1" "$2" '
    function one(   w) {
      w = r(20)
      mine = tag == "alone" ? " AND (doc -> $$w$$)::int = " client : ""
      if (w <= 6) return "INSERT INTO s (doc) VALUES (bson_build($$_id$$, nextval($$ids$$), $$a$$, " r(15) ", $$b$$, " r(15) ", $$i$$, " r(100) ", $$x$$, " rand() "::float8, $$w$$, " client "));"
      if (w <= 9) return "INSERT INTO s (doc) SELECT bson_build($$_id$$, nextval($$ids$$), $$a$$, (j * 7 + " r(15) ") % 15 + 1, $$b$$, j % 15 + 1, $$i$$, j, $$x$$, j / 7.0::float8, $$w$$, " client ") FROM generate_series(1, " r(40) ") j;"
      if (w <= 11) return "DELETE FROM s WHERE (doc -> $$i$$)::int % 17 = " r(17) - 1 " AND (doc -> $$a$$)::int IN (" r(15) ", " r(15) ")" mine ";"
      if (w <= 13) return "UPDATE s SET doc = bson_set(doc, $$a$$, " r(15) ") WHERE (doc -> $$b$$)::int = " r(15) " AND (doc -> $$i$$)::int % 5 = 0" mine ";"
      if (w <= 15) return "UPDATE s SET doc = bson_update(doc, $${\"$inc\": {i: " r(9) - 5 "}}$$) WHERE (doc -> $$a$$)::int = " r(15) mine ";"
      if (w == 16) return "INSERT INTO t (doc) VALUES (bson_build($$_id$$, " r(15) ")) ON CONFLICT DO NOTHING;"
      if (w == 17) return "DELETE FROM t WHERE _id = " r(15) ";"
      if (w == 18) return "UPDATE t SET doc = bson_update(doc, $${\"$inc\": {n: 5, own: 1}}$$) WHERE _id = " r(15) ";"
      if (w == 19) return "SELECT computed_refresh($$made$$);"
      return "DELETE FROM s WHERE (doc -> $$i$$)::int > 60" mine ";"
    }
    BEGIN {
      for (k = 1; k < 20000; k++) {
        printf "%s%s ", level(), one()
        if (tag != "alone") {
          if (r(3) == 1) printf "SAVEPOINT a; %s ROLLBACK TO a; ", one()
          for (n = r(3) - 1; n > 0; n--) printf "%s ", one()
        }
        print r(8) == 1 ? "ROLLBACK;" : "COMMIT;"
      }
    }'
}
stress_run alone $(((seconds + 1) / 2))
stress_run mixed $(((seconds + 1) / 2))
ask "SELECT format('# %s rows, %s and %s documents', (SELECT count(*) FROM s), (SELECT count(*) FROM t), (SELECT count(*) FROM made))"
is "$(cat "$DP_WORK"/errors.* | grep -c 'connection to server was lost')" 0 'the server stands'
is "$(stress_count 40P01 alone)" 0 'single statements do not deadlock'
is "$(ask 'SELECT * FROM pattern_check()')" '' 'the patterns are true'
is "$(ask "SELECT t._id FROM t LEFT JOIN (SELECT doc -> 'a' AS a, count(*) AS n, max((doc -> 'i')::int) AS best FROM s GROUP BY 1) q ON q.a = t._id WHERE ((doc -> 'n')::bigint, (doc -> 'best')::int) IS DISTINCT FROM (coalesce(q.n, 0), q.best)")" '' 'and the same as in plain SQL'
is "$(ask "SELECT computed_refresh('made') >= 0; SELECT * FROM pattern_check(); SELECT count(*) FROM made m JOIN (SELECT doc -> 'a' AS a, sum((doc -> 'i')::int) AS s FROM s GROUP BY 1) q ON q.a = m._id WHERE (doc -> 'later')::bigint <> q.s")" $'t\n0' 'so is what was put off'
is "$(stress_others)" '' 'errors are serialization failures and deadlocks'
stress_end
