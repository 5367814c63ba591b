#!/bin/bash
# Logical replication carries documents to a subscriber, as text and in binary, first copy and changes, byte for byte.
. "$DP_TOP/test/env/tap.sh"
plan 5

createdb dp_publisher
psql -XqAt -v ON_ERROR_STOP=1 -d dp_publisher <<'SQL' >/dev/null
CREATE EXTENSION docpatterns;
SELECT collection_create('things');
INSERT INTO things (doc) SELECT bson_build('_id', i, 'd', i / 3.0, 'words', repeat('word', i)) FROM generate_series(1, 500) i;
INSERT INTO things (doc) VALUES ('{_id: ObjectId("507f191e810c19729de860ea"), t: Timestamp(1, 2), a: 1, a: 2, dec: NumberDecimal("1.00")}');
CREATE PUBLICATION things FOR TABLE things;
SELECT pg_create_logical_replication_slot('dp_text', 'pgoutput');
SELECT pg_create_logical_replication_slot('dp_binary', 'pgoutput');
SQL

contents() {
  psql -XqAt -d "$1" -c "SELECT count(*), md5(string_agg(md5(doc::bytea), ',' ORDER BY _id)) FROM things"
}
# Waits until a subscriber has what the publisher has; prints what it has in the end.
arrives() {
  local want
  want=$(contents dp_publisher)
  for _ in {1..1500}; do
    [ "$(contents "$1")" = "$want" ] && break
    sleep 0.2
  done
  contents "$1"
}

for form in text binary; do
  createdb "dp_$form"
  binary=$([ $form = binary ] && echo true || echo false)
  psql -XqAt -v ON_ERROR_STOP=1 -d "dp_$form" -c 'CREATE EXTENSION docpatterns' -c "SELECT collection_create('things')" -c \
    "CREATE SUBSCRIPTION dp_$form CONNECTION 'dbname=dp_publisher host=$PGHOST port=$PGPORT user=$PGUSER' PUBLICATION things
       WITH (create_slot = false, slot_name = 'dp_$form', binary = $binary)" >/dev/null
  is "$(arrives "dp_$form")" "$(contents dp_publisher)" "the first copy, subscriber in $form"
done

psql -XqAt -v ON_ERROR_STOP=1 -d dp_publisher <<'SQL'
UPDATE things SET doc = bson_set(doc, 'd', numeric '0.10') WHERE _id <= 20;
DELETE FROM things WHERE _id > 490 AND _id <= 500;
INSERT INTO things (doc) VALUES ('{_id: "new", big: NumberLong("9223372036854775807"), n: -0.0}');
SQL
for form in text binary; do
  is "$(arrives "dp_$form")" "$(contents dp_publisher)" "changes arrive, subscriber in $form"
done
is "$(psql -XqAt -d dp_binary -c "SELECT doc ->> 'big' FROM things WHERE doc ->> '_id' = 'new'")" 9223372036854775807 'a new document is there'

for form in text binary; do
  psql -Xq -d "dp_$form" -c "DROP SUBSCRIPTION dp_$form" 2>/dev/null
  dropdb --force "dp_$form"
done
dropdb --force dp_publisher
