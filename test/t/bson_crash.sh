#!/bin/bash
# After a crash of the server what was committed is there, what was not is gone, and the indexes agree with the table.
. "$DP_TOP/test/env/tap.sh"
plan 6

createdb dp_crash
export PGDATABASE=dp_crash
psql -XqAt -v ON_ERROR_STOP=1 <<'SQL' >/dev/null
CREATE EXTENSION docpatterns;
SELECT collection_create('things');
CREATE INDEX things_n ON things ((doc -> 'n'));
CREATE INDEX things_name ON things USING hash ((doc -> 'name'));
CHECKPOINT;
INSERT INTO things (doc) SELECT bson_build('_id', i, 'n', i % 100, 'name', 'name' || i, 'pad', repeat('x', i % 3000)) FROM generate_series(1, 5000) i;
UPDATE things SET doc = bson_set(doc, 'n', 1000) WHERE _id <= 10;
DELETE FROM things WHERE _id > 4990;
SQL
# a transaction that is open when the server goes
psql -XqAt -c 'BEGIN' -c "INSERT INTO things (doc) VALUES ('{_id: \"lost\", n: 5}')" -c 'SELECT pg_sleep(60)' >/dev/null 2>&1 &
open=$!
for _ in {1..100}; do
  [ "$(psql -XqAt -c "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'")" = 1 ] && break
  sleep 0.1
done
digest="SELECT count(*), md5(string_agg(md5(doc::bytea), ',' ORDER BY _id)) FROM things"
before=$(psql -XqAt -c "$digest")

"$DP_CLUSTER" crash
wait "$open" 2>/dev/null

is "$(psql -XqAt -c "$digest")" "$before" 'what was committed is there, byte for byte'
is "$(psql -XqAt -c "SELECT count(*) FROM things WHERE doc ->> '_id' = 'lost'")" 0 'what was not is gone'

# The answer of the table, and the answer of the index.
both() {
  psql -XqAt -c 'SET enable_indexscan = off' -c 'SET enable_bitmapscan = off' -c 'SET enable_indexonlyscan = off' -c "$1"
  psql -XqAt -c 'SET enable_seqscan = off' -c "$1"
}
# 7, 107, ... but not the row 7, which has another number now
is "$(both "SELECT count(*) FROM things WHERE doc -> 'n' = 7")" $'49\n49' 'the btree index agrees with the table'
is "$(both "SELECT count(*) FROM things WHERE doc -> 'n' = 1000")" $'10\n10' 'also for updated rows'
is "$(both "SELECT _id FROM things WHERE doc -> 'name' = 'name4321'::text")" $'4321\n4321' 'the hash index agrees with the table'
is "$(both 'SELECT count(*) FROM things WHERE _id = 4991')" $'0\n0' 'deleted keys are not found'
dropdb --force dp_crash
