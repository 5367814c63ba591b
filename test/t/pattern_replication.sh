#!/bin/bash
# Logical replication of a pattern's tables: what the publisher's triggers have done arrives, and is not done again.
. "$DP_TOP/test/env/tap.sh"
set -u
plan 14
export PGOPTIONS='-c client_min_messages=warning'
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }

cleanup() {
  for db in dp_sub_plain dp_sub_pattern; do
    psql -Xq -d $db -c "ALTER SUBSCRIPTION $db DISABLE" -c "ALTER SUBSCRIPTION $db SET (slot_name = NONE)" -c "DROP SUBSCRIPTION $db" >/dev/null 2>&1
    psql -Xq -d postgres -c "DROP DATABASE IF EXISTS $db WITH (FORCE)"
  done
  psql -Xq -d postgres -c "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name LIKE 'dp_sub_%' AND NOT active" >/dev/null 2>&1
  psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_pub WITH (FORCE)'
}
cleanup
for db in dp_pub dp_sub_plain dp_sub_pattern; do psql -Xq -d postgres -c "CREATE DATABASE $db"; done

declare="SELECT collection_create('books'), collection_create('users'), collection_create('orders');
  SELECT outlier_enable('books', 'x', 3, chunk => 2, count_field => 'n');
  SELECT outlier_enable('users', 'o', 1, extras => 'orders', on_field => 'u', count_field => 'n')"
ask dp_pub "CREATE EXTENSION docpatterns; $declare;
  INSERT INTO books (doc) SELECT bson_build('_id', i, 'x', (SELECT bson_agg(j) FROM generate_series(1, i) j)) FROM generate_series(1, 8) i;
  INSERT INTO users (doc) VALUES ('{_id: 1, o: [{_id: 1}, {_id: 2}, {_id: 3}]}');
  CREATE PUBLICATION p FOR TABLE books, books_x_extras, users, orders" >/dev/null
ask dp_pub "SELECT pg_create_logical_replication_slot('dp_sub_plain', 'pgoutput'), pg_create_logical_replication_slot('dp_sub_pattern', 'pgoutput')" >/dev/null

# one subscriber has plain tables with the same columns, the other has the patterns declared too
ask dp_sub_plain "CREATE EXTENSION docpatterns; SELECT collection_create('books'), collection_create('users'), collection_create('orders');
  CREATE TABLE books_x_extras (key bson_value, chunk bigint, n int, sealed boolean, elements bson_value, tail bson_value, PRIMARY KEY (key, chunk))" >/dev/null
ask dp_sub_pattern "CREATE EXTENSION docpatterns; $declare" >/dev/null
for db in dp_sub_plain dp_sub_pattern; do
  ask $db "CREATE SUBSCRIPTION $db CONNECTION 'dbname=dp_pub host=$PGHOST port=$PGPORT user=$PGUSER' PUBLICATION p WITH (create_slot = false, slot_name = '$db')" >/dev/null
done

rows="SELECT md5(string_agg(r, E'\n' ORDER BY r)) FROM (SELECT 'b' || b::text FROM books b UNION ALL SELECT 'x' || x::text FROM books_x_extras x
  UNION ALL SELECT 'u' || u::text FROM users u UNION ALL SELECT 'o' || o::text FROM orders o) t (r)"
arrives() {  # arrives DATABASE NAME
  local want
  want=$(ask dp_pub "$rows")
  for _ in {1..1500}; do
    [ "$(ask "$1" "$rows")" = "$want" ] && break
    sleep 0.2
  done
  is "$(ask "$1" "$rows")" "$want" "$2"
}
for db in dp_sub_plain dp_sub_pattern; do arrives $db "$db: the first copy is the same, row by row"; done
is "$(ask dp_sub_pattern 'SELECT * FROM pattern_check()')" '' 'dp_sub_pattern: the patterns are true'

ask dp_pub "SELECT outlier_push('books', 8, 'new', 'newer', 'newest'); UPDATE books SET doc = bson_array_append(doc, 'x', 9) WHERE _id IN (2, 3, 4); SELECT outlier_pull('books', 7, 5);
  UPDATE books SET doc = bson_set(doc, '_id', 60) WHERE _id = 6; DELETE FROM books WHERE _id = 5; UPDATE books_whole SET doc = bson_set(doc, 'x', '[1, 2, 3, 4, 5, 6, 7, 8, 9]'::bson_value) WHERE _id = 1;
  INSERT INTO orders (doc) VALUES ('{_id: 9, u: 1}'); SELECT outlier_push('users', 1, '{\"_id\": 10}'::bson); DELETE FROM orders WHERE _id = 2" >/dev/null
for db in dp_sub_plain dp_sub_pattern; do arrives $db "$db: so is everything that follows"; done
is "$(ask dp_pub 'SELECT * FROM pattern_check()')" '' 'dp_pub: the patterns are true'
is "$(ask dp_sub_pattern 'SELECT * FROM pattern_check()')" '' 'dp_sub_pattern: and there'
whole="SELECT md5(string_agg(doc::text, E'\n' ORDER BY _id)) FROM books_whole"
is "$(ask dp_sub_pattern "$whole")" "$(ask dp_pub "$whole")" 'dp_sub_pattern: whole documents are the same'
is "$(ask dp_sub_pattern "SELECT outlier_contains('books', 8, 'newest'::text), outlier_count('users', 1)")" "$(ask dp_pub "SELECT outlier_contains('books', 8, 'newest'::text), outlier_count('users', 1)")" \
  'dp_sub_pattern: what arrives is indexed and found'

ask dp_pub "BEGIN; TRUNCATE books; INSERT INTO books (doc) VALUES ('{_id: 100, x: [1, 2, 3, 4, 5, 6]}'); COMMIT" >/dev/null
for db in dp_sub_plain dp_sub_pattern; do arrives $db "$db: TRUNCATE too"; done
is "$(ask dp_sub_pattern 'SELECT * FROM pattern_check()')" '' 'dp_sub_pattern: the patterns are true'

# after the switch-over
for db in dp_sub_plain dp_sub_pattern; do ask $db "DROP SUBSCRIPTION $db" >/dev/null; done
is "$(ask dp_sub_pattern "SELECT outlier_push('books', 100, 7); INSERT INTO books (doc) VALUES ('{_id: 101, x: [1, 2, 3, 4, 5]}'); INSERT INTO orders (doc) VALUES ('{_id: 11, u: 1}');
  SELECT doc FROM books_whole ORDER BY _id; SELECT * FROM pattern_check()")" $'1\n{"_id": 100, "x": [1, 2, 3, 4, 5, 6, 7], "n": 7}\n{"_id": 101, "x": [1, 2, 3, 4, 5], "n": 5}' \
  'a subscriber that has become the master goes on'
is "$(ask dp_sub_plain "DROP TABLE orders, users, books_x_extras; SELECT outlier_enable('books', 'x', 3, count_field => 'n'); SELECT pattern_repair('books', 'x', accept_loss => true); SELECT doc FROM books_whole; SELECT * FROM pattern_check()" | tail -1)" \
  '{"_id": 100, "x": [1, 2, 3], "n": 3}' 'a subscriber without the extras can be repaired to what it has'
cleanup
