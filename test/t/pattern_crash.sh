#!/bin/bash
# Backends and servers that are killed in the midst of pushes and spills leave whole documents behind: every transaction's
# elements are all there or not at all.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/crash.sh"
set -u
rounds=6
plan $((rounds * 2 + 2))
export PGDATABASE=dp_pattern_crash PGOPTIONS='-c client_min_messages=warning'
ask() { psql -XqAt -c "$1" 2>&1; }

psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_pattern_crash WITH (FORCE)' -c 'CREATE DATABASE dp_pattern_crash'
psql -XqAt -v ON_ERROR_STOP=1 >/dev/null <<'SQL' || echo 'not ok 0 - the tables were made'
CREATE EXTENSION docpatterns;
CREATE TABLE log (k int, v bigint);
CREATE SEQUENCE s;
SELECT collection_create('books');
SELECT outlier_enable('books', 'x', 20, keep => 10, chunk => 7, count_field => 'n');
INSERT INTO books (doc) SELECT bson_build('_id', i, 'x', bson_array()) FROM generate_series(1, 5) i;

-- One transaction: it pushes, appends to several documents so that some spill, cuts one, and writes down what is left.
CREATE FUNCTION work() RETURNS void LANGUAGE plpgsql AS $$
DECLARE k int := 1 + random() * 4; n bigint := nextval('s');
BEGIN
  PERFORM FROM books ORDER BY _id FOR UPDATE;
  PERFORM outlier_push('books', k, n, n);
  UPDATE books SET doc = bson_array_append(doc, 'x', n) WHERE _id <= k;
  IF n % 5 = 0 THEN PERFORM outlier_pull('books', k, n - 3); END IF;
  IF n % 20 = 0 THEN UPDATE books_whole SET doc = bson_set(doc, 'x', bson_array(n)) WHERE _id = k; END IF;
  DELETE FROM log;
  INSERT INTO log SELECT _id::int, e::bigint FROM books_whole CROSS JOIN bson_elements(doc -> 'x') e;
END $$;
SQL

for round in $(seq $rounds); do
  crash_during "$round" 'SELECT work();' 1
  is "$(ask 'SELECT * FROM pattern_check()')" '' "round $round: the pattern is true after recovery"
  is "$(ask "SELECT count(*) FROM (SELECT _id::int, e::bigint FROM books_whole CROSS JOIN bson_elements(doc -> 'x') e EXCEPT ALL SELECT * FROM log) a
    UNION ALL SELECT count(*) FROM (SELECT * FROM log EXCEPT ALL SELECT _id::int, e::bigint FROM books_whole CROSS JOIN bson_elements(doc -> 'x') e) b")" $'0\n0' \
    "round $round: the arrays are those of the last transaction that was committed"
done
is "$(ask "SELECT count(*) > 100 AND max(n) > 20 FROM (SELECT count(*) AS n FROM log GROUP BY k) x RIGHT JOIN log ON true")" t 'much was written'
is "$(ask "SELECT count(*) FROM log WHERE NOT outlier_contains('books', k, v)")" 0 'every element is found by the index'
psql -Xq -d postgres -c 'DROP DATABASE dp_pattern_crash WITH (FORCE)'
