#!/bin/bash
# A dump brings every document back byte for byte: all types, odd keys, data that looks like a type wrapper, indexes, a
# collection; as SQL text, in the custom format, and when a role without superuser rights restores into a database that has
# the extension.
. "$DP_TOP/test/env/tap.sh"
plan 10

createdb dp_dump
psql -XqAt -v ON_ERROR_STOP=1 -d dp_dump <<'SQL' >/dev/null
CREATE EXTENSION docpatterns;
SELECT collection_create('things');
INSERT INTO things (doc) VALUES
  ('{_id: 1, "": 1, a: 1, a: 2, "$dollar": {"$numberInt": "5"}, "x.y": [1, [2]], d: -0.0, n: NaN, i: Infinity}'),
  ('{_id: ObjectId("507f191e810c19729de860ea"), l: NumberLong(1), big: NumberLong("9223372036854775807"), dec: NumberDecimal("1.00")}'),
  ('{_id: {k: 1}, old: {"$date": {"$numberLong": "-62135596800001"}}, ts: Timestamp(4294967295, 2), re: /a\/b/imx, u: undefined}'),
  ('{_id: "x", bin: BinData(128, "AAEC"), min: MinKey, max: MaxKey, nul: "a\u0000b", code: {"$code": "f()", "$scope": {"v": 1}}, sym: {"$symbol": "s"}}');
-- a stored sub-document that looks like Extended JSON
INSERT INTO things (doc) SELECT bson_build('_id', 'wrapper'::text, 'v', bson_build('$oid', 'not an id'::text, 'more', 1));
INSERT INTO things (doc) SELECT bson_build('_id', i, 'words', repeat('word ' || i, i % 50)) FROM generate_series(10, 2000) i;
CREATE INDEX things_words ON things ((doc -> 'words'));
CREATE TABLE loose (id objectid PRIMARY KEY, v bson_value, CHECK (v IS NULL OR v <> '"forbidden"'));
INSERT INTO loose VALUES ('507f191e810c19729de860ea', '1.50'), ('507f191e810c19729de860eb', '{"a": [1, null]}');
SQL

# What is in a database: the bytes of every document and value.
contents() {
  psql -XqAt -d "$1" -c "SELECT count(*), md5(string_agg(md5(doc::bytea) || md5(_id::text), ',' ORDER BY _id)) FROM things" \
    -c "SELECT id, md5(bson_build('v', v)::bytea) FROM loose ORDER BY id" 2>&1
}
# The data of a table as a dump has it, without what differs from dump to dump.
data_of() {
  pg_dump "$1" -t loose --data-only | grep -vE '^(--|\\|SET|SELECT)'
}
before=$(contents dp_dump)
is "$(psql -XqAt -d dp_dump -c 'SELECT count(*) FROM things')" 1996 'the documents are there'

pg_dump dp_dump >"$DP_WORK/plain.sql"
createdb dp_plain
ok 'the text dump restores without an error' psql -Xq -v ON_ERROR_STOP=1 -d dp_plain -f "$DP_WORK/plain.sql" -o /dev/null
is "$(contents dp_plain)" "$before" 'every byte is back from the text dump'

pg_dump -Fc -f "$DP_WORK/custom.dump" dp_dump
createdb dp_custom
ok 'the custom dump restores without an error' pg_restore -e -d dp_custom "$DP_WORK/custom.dump"
is "$(contents dp_custom)" "$before" 'every byte is back from the custom dump'

is "$(psql -XqAt -d dp_plain -c 'SET enable_seqscan = off' -c "SELECT _id FROM things WHERE doc -> 'words' = repeat('word 60', 10)")" 60 \
  'the restored index finds a document'
is "$(psql -XqAt -d dp_plain -c "INSERT INTO things (doc) VALUES ('{a: 1}') RETURNING bson_typeof(_id)")" objectId \
  'the restored collection gives an _id'
is "$(data_of dp_plain)" "$(data_of dp_dump)" 'a dump of the restored table is the same'

psql -Xq -d postgres -c 'CREATE ROLE dp_restorer LOGIN'
createdb -O dp_restorer dp_owned
psql -Xq -d dp_owned -c 'CREATE EXTENSION docpatterns' -c 'GRANT CREATE ON SCHEMA public TO dp_restorer'
pg_dump -O -x -t things -t loose dp_dump >"$DP_WORK/tables.sql"
ok 'an ordinary role restores the tables' psql -Xq -v ON_ERROR_STOP=1 -U dp_restorer -d dp_owned -f "$DP_WORK/tables.sql" -o /dev/null
is "$(contents dp_owned)" "$before" 'and has every byte'

for name in dp_plain dp_custom dp_owned dp_dump; do dropdb --force "$name"; done
psql -Xq -d postgres -c 'DROP ROLE dp_restorer'
