#!/bin/bash
# Declarations that face each other: two kinds of statements, each of which holds the row that the other one's maintenance wants. No
# statement fails, and afterwards everything is as plain SQL computes it. With STRESS_SECONDS of 45 and more it also prints how the
# two together compare with each of them alone.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 36
seed=${SEED:-20269} seconds=${STRESS_SECONDS:-5} clients=6
each=$((seconds / 9 > 0 ? seconds / 9 : 1))
echo "# seed $seed, $each seconds for each pair, $clients clients"
export PGOPTIONS='-c client_min_messages=warning'

# Statements for pgbench: :a to :i are random numbers.
numbers='\set a random(1, 5)
\set b random(1, 5)
\set c random(1, 10)
\set d random(1, 10)
\set e random(1, 25)
\set f random(1, 3)
\set g random(4, 9)
\set h random(1, 9)
\set i random(1, 1000)'

# Runs statements together; prints what pgbench says.
bench() {  # bench SECONDS STATEMENT..
  local files='' i=0 time=$1
  shift
  for statement in "$@"; do
    i=$((i + 1))
    printf '%s\n%s\n' "$numbers" "$statement" >"$DP_WORK/deadlock.$i.sql"
    files="$files -f $DP_WORK/deadlock.$i.sql"
  done
  # shellcheck disable=SC2086
  pgbench -n -c "$clients" -j 2 -T "$time" --random-seed="$seed" --failures-detailed $files 2>&1 </dev/null
}

tps() { sed -n 's/^tps = \([0-9.]*\).*/\1/p' <<<"$1" | head -1; }

# One pair: its tables come on standard input; wrong is a query for what is not as it should be.
pair() {  # pair NAME STATEMENT STATEMENT WRONG
  local out one two
  PGDATABASE=postgres psql -Xq -c 'DROP DATABASE IF EXISTS dp_deadlock WITH (FORCE)' -c 'CREATE DATABASE dp_deadlock'
  export PGDATABASE=dp_deadlock
  psql -Xq -c 'CREATE EXTENSION docpatterns'
  stress_setup
  out=$(bench "$each" "$2" "$3")
  is "$(sed -n 's/^number of \(serialization\|deadlock\) failures: \([1-9]\)/\1 \2/p' <<<"$out"; grep -i 'error\|aborted' <<<"$out" | head -3)" '' "$1: no statement fails"
  is "$(sed -n 's/^number of transactions actually processed: [1-9].*/some/p' <<<"$out")" some "$1: statements were run"
  is "$(ask "$4")" 0 "$1: all is as plain SQL computes it"
  is "$(ask 'SELECT * FROM pattern_check()'; ask 'SELECT * FROM docpatterns.notes')" '' "$1: so says pattern_check(), and nothing is left to do"
  if [ "$each" -ge 5 ]; then
    one=$(tps "$(bench "$each" "$2")") two=$(tps "$(bench "$each" "$3")")
    awk -v name="$1" -v one="$one" -v two="$two" -v both="$(tps "$out")" \
      'BEGIN { printf "# %s: %d and %d transactions a second alone, %d together: %.2f of what their mean would be\n", name, one, two, both, both * (1 / one + 1 / two) / 2 }'
  fi
}

pair 'computed and reference' 'UPDATE ord SET doc = bson_set(doc, $$n$$, :i) WHERE _id = :e;' 'UPDATE cust SET doc = bson_set(doc, $$nm$$, :i) WHERE _id = :a;' \
  "SELECT count(*) FROM ord o FULL JOIN cust c ON c._id = o.doc -> 'cust._id' WHERE o.doc -> 'cust.nm' IS DISTINCT FROM c.doc -> 'nm' OR
     (c.doc ->> 'total')::int IS DISTINCT FROM (SELECT sum((x.doc ->> 'n')::int) FROM ord x WHERE x.doc -> 'cust._id' = c._id)" <<'SQL'
SELECT collection_create('cust'), collection_create('ord');
SELECT computed_enable('cust', 'ord', 'cust._id', '{total: {$sum: "$n"}}'), reference_enable('ord', 'cust', 'cust', live => '{nm}');
INSERT INTO cust (doc) SELECT bson_build('_id', i, 'nm', i) FROM generate_series(1, 5) i;
INSERT INTO ord (doc) SELECT bson_build('_id', i, 'cust', i % 5 + 1, 'n', 1) FROM generate_series(1, 25) i;
SQL

pair 'subset and reference' 'UPDATE rev SET doc = bson_set(doc, $$n$$, :i) WHERE _id = :e;' 'UPDATE prod SET doc = bson_set(doc, $$nm$$, :i) WHERE _id = :a;' \
  "SELECT count(*) FROM rev r FULL JOIN prod p ON p._id = r.doc -> 'prod._id' WHERE r.doc -> 'prod.nm' IS DISTINCT FROM p.doc -> 'nm' OR
     (SELECT array_agg(v::int) FROM bson_values(p.doc, 'top.n') v) IS DISTINCT FROM
     ARRAY(SELECT (x.doc ->> 'n')::int FROM rev x WHERE x.doc -> 'prod._id' = p._id ORDER BY 1 DESC LIMIT 3)" <<'SQL'
SELECT collection_create('prod'), collection_create('rev');
SELECT subset_enable('prod', 'top', 'rev', 'prod._id', '{n: -1}', 3, fields => '{n: 1}'), reference_enable('rev', 'prod', 'prod', live => '{nm}');
INSERT INTO prod (doc) SELECT bson_build('_id', i, 'nm', i) FROM generate_series(1, 5) i;
INSERT INTO rev (doc) SELECT bson_build('_id', i, 'prod', i % 5 + 1, 'n', i) FROM generate_series(1, 25) i;
SQL

pair 'reference' 'UPDATE ord SET doc = bson_set(doc, $$cust$$, bson_build($$_id$$, (:a)::int)) WHERE _id = :e;' 'UPDATE cust SET doc = bson_set(doc, $$nm$$, :i) WHERE _id = :a;' \
  "SELECT count(*) FROM ord o LEFT JOIN cust c ON c._id = o.doc -> 'cust._id' WHERE o.doc -> 'cust.nm' IS DISTINCT FROM c.doc -> 'nm'" <<'SQL'
SELECT collection_create('cust'), collection_create('ord');
SELECT reference_enable('ord', 'cust', 'cust', live => '{nm}');
INSERT INTO cust (doc) SELECT bson_build('_id', i, 'nm', i) FROM generate_series(1, 5) i;
INSERT INTO ord (doc) SELECT bson_build('_id', i, 'cust', i % 5 + 1) FROM generate_series(1, 25) i;
SQL

pair 'two computed' 'UPDATE x SET doc = bson_set(doc, $$n$$, :i) WHERE _id = :a;' 'UPDATE y SET doc = bson_set(doc, $$n$$, :i) WHERE _id = :a;' \
  "SELECT count(*) FROM x, y WHERE (y.doc -> 'x' = x._id AND y.doc -> 'n' <> x.doc -> 'total') OR (x.doc -> 'y' = y._id AND x.doc -> 'n' <> y.doc -> 'total')" <<'SQL'
SELECT collection_create('x'), collection_create('y');
SELECT computed_enable('x', 'y', 'x', '{total: {$sum: "$n"}}'), computed_enable('y', 'x', 'y', '{total: {$sum: "$n"}}');
INSERT INTO x (doc) SELECT bson_build('_id', i, 'y', i, 'n', 1) FROM generate_series(1, 5) i;
INSERT INTO y (doc) SELECT bson_build('_id', i, 'x', i, 'n', 1) FROM generate_series(1, 5) i;
SQL

pair 'computed on itself' 'UPDATE t SET doc = bson_set(doc, $$n$$, :i) WHERE _id = :c;' 'UPDATE t SET doc = bson_set(doc, $$up$$, (:c)::int) WHERE _id = :d;' \
  "SELECT count(*) FROM t WHERE (doc ->> 'total')::int IS DISTINCT FROM (SELECT coalesce(sum((x.doc ->> 'n')::int), 0) FROM t x WHERE x.doc -> 'up' = t._id)" <<'SQL'
SELECT collection_create('t');
SELECT computed_enable('t', 't', 'up', '{total: {$sum: "$n"}}');
INSERT INTO t (doc) SELECT bson_build('_id', i, 'up', i % 10 + 1, 'n', 1) FROM generate_series(1, 10) i;
SQL

pair 'reference to itself' 'UPDATE t SET doc = bson_set(doc, $$nm$$, :i) WHERE _id = :c;' 'UPDATE t SET doc = bson_set(doc, $$boss$$, bson_build($$_id$$, (:c)::int)) WHERE _id = :d;' \
  "SELECT count(*) FROM t LEFT JOIN t b ON b._id = t.doc -> 'boss._id' WHERE t.doc -> 'boss.nm' IS DISTINCT FROM b.doc -> 'nm'" <<'SQL'
SELECT collection_create('t');
SELECT reference_enable('t', 'boss', 't', live => '{nm}');
INSERT INTO t (doc) SELECT bson_build('_id', i, 'nm', i) FROM generate_series(1, 10) i;
UPDATE t SET doc = bson_set(doc, 'boss', bson_build('_id', (doc ->> '_id')::int % 10 + 1));
SQL

pair 'a chain' 'UPDATE a SET doc = bson_set(doc, $$n$$, :i) WHERE _id = :e;' 'UPDATE c SET doc = bson_set(doc, $$nm$$, :i) WHERE _id = :f;' \
  "SELECT count(*) FROM a JOIN c ON c._id = a.doc -> 'c._id' WHERE a.doc -> 'c.nm' <> c.doc -> 'nm' OR
     (c.doc ->> 'total')::int <> (SELECT sum((x.doc ->> 'n')::int) FROM a x JOIN b ON b._id = x.doc -> 'b' WHERE b.doc -> 'c' = c._id)" <<'SQL'
SELECT collection_create('a'), collection_create('b'), collection_create('c');
SELECT computed_enable('b', 'a', 'b', '{total: {$sum: "$n"}}'), computed_enable('c', 'b', 'c', '{total: {$sum: "$total"}}');
SELECT reference_enable('a', 'c', 'c', live => '{nm}');
INSERT INTO c (doc) SELECT bson_build('_id', i, 'nm', i) FROM generate_series(1, 3) i;
INSERT INTO b (doc) SELECT bson_build('_id', i, 'c', i % 3 + 1) FROM generate_series(1, 6) i;
INSERT INTO a (doc) SELECT bson_build('_id', i, 'b', i % 6 + 1, 'c', i % 3 + 1, 'n', 1) FROM generate_series(1, 25) i;
SQL

pair 'a relationship' 'UPDATE p SET doc = bson_set(doc, $$ds$$, bson_array((:a)::int, (:b)::int)) WHERE _id = :c;' 'UPDATE d SET doc = bson_set(doc, $$ps$$, bson_array((:c)::int, (:d)::int)) WHERE _id = :a;' \
  "SELECT count(*) FROM (SELECT DISTINCT p._id AS p, v AS d FROM p CROSS JOIN bson_values(doc, 'ds') v) x FULL JOIN
     (SELECT DISTINCT v AS p, d._id AS d FROM d CROSS JOIN bson_values(doc, 'ps') v) y ON x.p = y.p AND x.d = y.d WHERE x.p IS NULL OR y.p IS NULL" <<'SQL'
SELECT collection_create('p'), collection_create('d');
SELECT relationship_enable('p', 'ds', 'd', 'ps');
INSERT INTO p (doc) SELECT bson_build('_id', i) FROM generate_series(1, 10) i;
INSERT INTO d (doc) SELECT bson_build('_id', i) FROM generate_series(1, 5) i;
SQL

pair 'a tree with documents' 'UPDATE prod SET doc = bson_set(doc, $$cat$$, (:h)::int) WHERE _id = :e;' 'UPDATE cat SET doc = bson_set(doc, $$up$$, (:f)::int) WHERE _id = :g;' \
  "SELECT count(*) FROM prod p LEFT JOIN cat c ON c._id = p.doc -> 'cat' WHERE
     ARRAY(SELECT v::int FROM bson_values(p.doc, 'cats') v) IS DISTINCT FROM CASE WHEN c.doc ? 'up' THEN ARRAY[(c.doc ->> 'up')::int] END || (c.doc ->> '_id')::int" <<'SQL'
SELECT collection_create('cat'), collection_create('prod');
SELECT tree_enable('cat', node_id => '_id', parent => 'up', ancestors => 'ups'), tree_attach('prod', 'cat', 'cat', ancestors => 'cats');
INSERT INTO cat (doc) SELECT bson_build('_id', i) FROM generate_series(1, 3) i;
INSERT INTO cat (doc) SELECT bson_build('_id', i, 'up', i % 3 + 1) FROM generate_series(4, 9) i;
INSERT INTO prod (doc) SELECT bson_build('_id', i, 'cat', i % 9 + 1) FROM generate_series(1, 25) i;
SQL
PGDATABASE=postgres psql -Xq -c 'DROP DATABASE dp_deadlock WITH (FORCE)'
