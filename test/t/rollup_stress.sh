#!/bin/bash
# Many writers of sources that are rolled up by time and along a tree, while nodes of the tree move, come and go. First each
# transaction is one statement and the tree stands still or moves by one session, rows are
# locked in the order of their keys, and nothing deadlocks; then all of it, with savepoints.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 10
stress_begin dp_rollup_stress 20271
stress_setup <<'SQL'
CREATE TABLE bad (what text);
CREATE SEQUENCE ids CACHE 100;
SELECT collection_create('s'), collection_create('tree');
SELECT tree_enable('tree', parent => 'up', ancestors => 'above', on_delete => 'reparent');
INSERT INTO tree (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 2 THEN i / 2 END) FROM generate_series(1, 15) i;
SELECT rollup_enable('s', name => 'spans', time_field => 'at', levels => '{"6 hours",day,week,month}', group_by => '{shop}', time_zone => 'Europe/Copenhagen',
         fields => '{n: {$count: {}}, sum: {$sum: "$x"}, dec: {$sum: "$d"}, best: {$max: "$i"}, last: {$last: "$i"}, mid: {$median: {input: "$i", method: "approximate"}}}'),
       rollup_enable('s', name => 'few', time_field => 'at', levels => '{month}', fields => '{low: {$min: "$i"}, n: {$count: {}}}', filter => '{i: {$gt: 50}}'),
       rollup_enable('s', name => 'nodes', tree => 'tree', group_by => '{node}', fields => '{n: {$count: {}}, sum: {$sum: "$i"}, best: {$max: "$i"}, low: {$min: "$i"}}');
SQL

work() {
  stress_awk "$1" "$2" '
    function row() { return "bson_build($$_id$$, nextval($$ids$$), $$at$$, timestamptz $$2024-03-28 12:00Z$$ + " r(99) " * interval $$1 hour$$, $$i$$, " r(100) ", $$x$$, " rand() * 1e6 "::float8, $$d$$, " r(999) " / 100.0, $$node$$, " r(18) (r(4) > 1 ? ", $$shop$$, " r(2) : "") ")" }
    function some() { return "_id IN (SELECT _id FROM s WHERE _id > (SELECT last_value FROM ids) * " rand() " ORDER BY _id LIMIT " r(4) " FOR UPDATE)" }
    function one(   w) {
      w = r(20)
      if (w <= 5) return "INSERT INTO s (doc) VALUES (" row() ");"
      if (w <= 7) return "INSERT INTO s (doc) VALUES (" row() "), (" row() "), (" row() ");"
      if (w == 8) return "INSERT INTO s (doc) SELECT bson_set(bson_set(" row() ", $$node$$, j), $$at$$, timestamptz $$2024-03-30$$ + j * interval $$5 hours$$) FROM generate_series(1, 18) j;"
      if (w <= 11) return "DELETE FROM s WHERE " some() ";"
      if (w == 12) return "DELETE FROM s WHERE _id IN (SELECT _id FROM s WHERE (doc -> $$i$$)::int > " 70 + r(30) " AND (doc -> $$node$$)::int % 3 = " r(3) - 1 " ORDER BY _id FOR UPDATE);"
      if (w <= 14) return "UPDATE s SET doc = bson_set(doc, $$i$$, " r(100) ") WHERE " some() ";"
      if (w == 15) return "UPDATE s SET doc = bson_set(doc, $$at$$, timestamptz $$2024-03-28 12:00Z$$ + " r(99) " * interval $$1 hour$$) WHERE " some() ";"
      if (w == 16) return "UPDATE s SET doc = bson_set(doc, $$node$$, " r(18) ") WHERE " some() ";"
      if (w == 17) return "INSERT INTO bad SELECT concat_ws($$ $$, $$" tag "$$, current_setting($$transaction_isolation$$), x) FROM pattern_check($$s$$) x WHERE NOT EXISTS (SELECT FROM docpatterns.notes);"
      if (tag == "alone" && client > 1) return "SELECT 1;"
      if (w == 18) return "UPDATE tree SET doc = bson_set(doc, $$up$$, " r(15) ") WHERE _id = " r(18) ";"
      if (w == 19) return "INSERT INTO tree (doc) SELECT bson_build($$_id$$, " 15 + r(3) ", $$up$$, t._id) FROM tree t WHERE t._id = " r(15) " ON CONFLICT DO NOTHING;"
      return "DELETE FROM tree WHERE _id = " 15 + r(3) ";"
    }
    BEGIN {
      for (i = 0;; i++) {
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
stress_run mixed $(((seconds + 1) / 2))
ask "SELECT format('# %s rows of %s, %s and %s documents', count(*), (SELECT last_value FROM ids), (SELECT count(*) FROM spans), (SELECT count(*) FROM nodes)) FROM s"

is "$(stress_count 40P01 alone)" 0 'no transaction of one statement waited for one that waited for it'
is "$(stress_others 'ERROR:  23514.*\|ERROR:  23503.*')" '' 'errors are serialization failures, and deadlocks of longer transactions'
is "$(ask 'SELECT * FROM bad LIMIT 3')" '' 'the totals were true at any moment'
is "$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' 'and are true afterwards'
ok 'much was written' [ "$(ask "SELECT count(*) > 50 FROM s")" = t ]

# the same in plain SQL; doubles are added as numerics
spans() {  # spans TABLE LEVEL START GROUP COMPARED WHERE
  ask "SELECT count(*) FROM (SELECT (doc -> 'start')::timestamptz AS t, doc ->> 'shop' AS shop, doc FROM $1 WHERE doc ->> 'level' = '$2') b
    FULL JOIN (SELECT $3 AS t, $4 AS shop, count(*) AS n, sum((doc ->> 'x')::numeric) AS x, sum((doc ->> 'd')::numeric) AS d, max((doc -> 'i')::int) AS best, min((doc -> 'i')::int) AS low, (array_agg((doc -> 'i')::int ORDER BY _id DESC))[1] AS last,
               percentile_disc(0.5) WITHIN GROUP (ORDER BY (doc -> 'i')::int) AS mid FROM s WHERE $6 GROUP BY 1, 2) q ON b.t = q.t AND b.shop IS NOT DISTINCT FROM q.shop
    WHERE b.doc IS NULL OR q.t IS NULL OR $5"
}
start="date_trunc('%s', (doc -> 'at')::timestamptz, 'Europe/Copenhagen')"
compared="((b.doc -> 'n')::bigint, (b.doc -> 'best')::int, (b.doc -> 'last')::int, (b.doc -> 'mid')::float8, (b.doc ->> 'dec')::numeric) IS DISTINCT FROM (q.n, q.best, q.last, q.mid::float8, q.d) OR (b.doc -> 'sum')::float8 <> q.x::float8"
# shellcheck disable=SC2059
for level in day week month; do
  is "$(spans spans $level "$(printf "$start" $level)" "doc ->> 'shop'" "$compared" true)" 0 "totals by the $level"
done
is "$(spans few month "date_trunc('month', (doc -> 'at')::timestamptz, 'UTC')" NULL "((b.doc -> 'n')::bigint, (b.doc -> 'low')::int) IS DISTINCT FROM (q.n, q.low)" "(doc -> 'i')::int > 50")" 0 'those that pass a filter'
is "$(ask "WITH RECURSIVE up AS (SELECT _id AS node, _id AS above FROM tree UNION SELECT DISTINCT doc -> 'node', doc -> 'node' FROM s
    UNION SELECT u.node, c.doc -> 'up' FROM up u JOIN tree c ON c._id = u.above WHERE (c.doc ->> 'up') IS NOT NULL)
  SELECT count(*) FROM nodes b FULL JOIN (SELECT u.above AS _id, count(*) AS n, sum((o.doc -> 'i')::int) AS s, max((o.doc -> 'i')::int) AS best, min((o.doc -> 'i')::int) AS low FROM up u JOIN s o ON o.doc -> 'node' = u.node GROUP BY 1) q USING (_id)
  WHERE ((b.doc -> 'n')::bigint, (b.doc -> 'sum')::bigint, (b.doc -> 'best')::int, (b.doc -> 'low')::int) IS DISTINCT FROM (q.n, q.s, q.best, q.low)")" 0 'totals along the tree'
stress_end
