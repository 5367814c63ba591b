#!/bin/bash
# Many writers of a source and its targets at once: the totals stay those of the rows. First each transaction is one
# statement, which writes rows of the source that nobody else writes, and nobody waits in a circle for documents; then there
# are longer ones, with savepoints and rollbacks, that write everybody's rows. SECONDS_OF_WORK and
# SEED change the run.
. "$DP_TOP/test/env/tap.sh"
set -u
seed=${SEED:-20267} seconds=${SECONDS_OF_WORK:-5} clients=8
plan 6
echo "# seed $seed, $seconds seconds, $clients clients"

export PGDATABASE=dp_computed_stress PGOPTIONS='-c client_min_messages=warning'
ask() { psql -XqAt -c "$1" 2>&1; }
psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_computed_stress WITH (FORCE)' -c 'CREATE DATABASE dp_computed_stress'
psql -XqAt -v ON_ERROR_STOP=1 >/dev/null <<'SQL' || echo 'not ok 0 - the tables were made'
CREATE EXTENSION docpatterns;
SELECT collection_create('t'), collection_create('s'), collection_create('made');
SELECT computed_enable('t', 's', 'a', '{n: {$count: {}}, sum: {$sum: "$x"}, best: {$max: "$i"}, mean: {$avg: "$x"}}', name => 'a'),
       computed_enable('t', 's', 'b', '{bn: {$count: {}}, low: {$min: "$i"}, all: {$sum: "$i"}}', name => 'b', filter => '{i: {$gt: 20}}'),
       computed_enable('made', 's', 'a', '{n: {$count: {}}, middle: {$median: {input: "$i", method: "approximate"}}}', create_missing => true);
SELECT computed_enable('made', 's', 'a', '{later: {$sum: "$i"}}', create_missing => true, mode => 'deferred');
INSERT INTO t (doc) SELECT bson_build('_id', i) FROM generate_series(1, 12) i;
INSERT INTO made (doc) SELECT bson_build('_id', i) FROM generate_series(1, 15) i;
CREATE SEQUENCE ids CACHE 1000;
SQL

work() {  # work NUMBER ALONE
  awk -v seed=$((seed + $1)) -v me="$1" -v alone="$2" 'function r(n) { return int(rand() * n) + 1 }
    function one(   w) {
      w = r(20)
      mine = alone ? " AND (doc -> $$w$$)::int = " me : ""
      if (w <= 6) return "INSERT INTO s (doc) VALUES (bson_build($$_id$$, nextval($$ids$$), $$a$$, " r(15) ", $$b$$, " r(15) ", $$i$$, " r(100) ", $$x$$, " rand() "::float8, $$w$$, " me "));"
      if (w <= 9) return "INSERT INTO s (doc) SELECT bson_build($$_id$$, nextval($$ids$$), $$a$$, (j * 7 + " r(15) ") % 15 + 1, $$b$$, j % 15 + 1, $$i$$, j, $$x$$, j / 7.0::float8, $$w$$, " me ") FROM generate_series(1, " r(40) ") j;"
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
      srand(seed)
      split("READ COMMITTED,READ COMMITTED,REPEATABLE READ", level, ",")
      for (k = 1; k < 20000; k++) {
        printf "BEGIN ISOLATION LEVEL %s; %s ", level[r(3)], one()
        if (!alone) {
          if (r(3) == 1) printf "SAVEPOINT a; %s ROLLBACK TO a; ", one()
          for (n = r(3) - 1; n > 0; n--) printf "%s ", one()
        }
        print r(8) == 1 ? "ROLLBACK;" : "COMMIT;"
      }
    }' | timeout $((seconds / 2 + 1)) psql -XqAt -v VERBOSITY=verbose >/dev/null 2>"$DP_WORK/errors.$2.$1"
}
for alone in 1 0; do
  jobs=
  for i in $(seq $clients); do work "$i" $alone & jobs="$jobs $!"; done
  wait $jobs
  for _ in {1..100}; do
    [ "$(ask "SELECT count(*) FROM pg_stat_activity WHERE datname = 'dp_computed_stress' AND pid <> pg_backend_pid()")" = 0 ] && break
    sleep 0.1
  done
done
cat "$DP_WORK"/errors.* | grep -o 'ERROR:  .*' | cut -c 1-120 | sort | uniq -c | sort -rn | sed 's/^/# /' | head -20
ask "SELECT format('# %s rows, %s and %s documents', (SELECT count(*) FROM s), (SELECT count(*) FROM t), (SELECT count(*) FROM made))"
is "$(cat "$DP_WORK"/errors.* | grep -c 'connection to server was lost')" 0 'the server stands'
is "$(cat "$DP_WORK"/errors.1.* | grep -c 'ERROR:  40P01')" 0 'single statements do not wait in a circle'
is "$(ask 'SELECT * FROM pattern_check()')" '' 'the patterns are true'
is "$(ask "SELECT t._id FROM t LEFT JOIN (SELECT doc -> 'a' AS a, count(*) AS n, max((doc -> 'i')::int) AS best FROM s GROUP BY 1) q ON q.a = t._id WHERE ((doc -> 'n')::bigint, (doc -> 'best')::int) IS DISTINCT FROM (coalesce(q.n, 0), q.best)")" '' 'and the same as in plain SQL'
is "$(ask "SELECT computed_refresh('made') >= 0; SELECT * FROM pattern_check(); SELECT count(*) FROM made m JOIN (SELECT doc -> 'a' AS a, sum((doc -> 'i')::int) AS s FROM s GROUP BY 1) q ON q.a = m._id WHERE (doc -> 'later')::bigint <> q.s")" $'t\n0' 'so is what was put off'
is "$(cat "$DP_WORK"/errors.* | grep 'ERROR:' | grep -v 'ERROR:  40001\|ERROR:  40P01\|ERROR:  25P02\|ERROR:  3B001' | sort | uniq -c | head -5)" '' 'errors are serialization failures and deadlocks'
psql -Xq -d postgres -c 'DROP DATABASE dp_computed_stress WITH (FORCE)'
