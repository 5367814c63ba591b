#!/bin/bash
# Logical replication of the two tables beneath a relation of measurements: a relation on the other side reads what arrives.
. "$DP_TOP/test/env/tap.sh"
set -u
plan 8
export PGOPTIONS='-c client_min_messages=warning -c timezone=UTC'
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }

cleanup() {
  psql -Xq -d dp_bucket_sub -c "ALTER SUBSCRIPTION dp_bucket_sub DISABLE" -c "ALTER SUBSCRIPTION dp_bucket_sub SET (slot_name = NONE)" -c "DROP SUBSCRIPTION dp_bucket_sub" >/dev/null 2>&1
  psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_bucket_sub WITH (FORCE)'
  psql -Xq -d postgres -c "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'dp_bucket_sub' AND NOT active" >/dev/null 2>&1
  psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_bucket_pub WITH (FORCE)'
}
cleanup
for db in dp_bucket_pub dp_bucket_sub; do psql -Xq -d postgres -c "CREATE DATABASE $db"; done
declare="SELECT bucket_create('readings', columns => 'g int, ts timestamptz, v float8', group_by => '{g}', time_field => 'ts', span => '1 hour', max_count => 50)"
ask dp_bucket_pub "CREATE EXTENSION docpatterns; $declare;
  INSERT INTO readings SELECT i % 3, timestamptz '2024-01-01' + i * interval '1 min', i FROM generate_series(0, 1499) i;
  CREATE PUBLICATION p FOR TABLE readings_packed, readings_recent" >/dev/null

is "$(ask dp_bucket_pub 'UPDATE readings SET v = 0 WHERE g = 1 AND ts < $$2024-01-01 12:00$$' | head -1)" 'ERROR:  cannot update table "readings_packed" because it does not have a replica identity and publishes updates' \
  'nothing is published that a subscriber could not apply'
is "$(ask dp_bucket_pub 'INSERT INTO readings VALUES (1, $$2024-01-09$$, 1); SELECT bucket_pack($$readings$$)' | head -1)" 'ERROR:  cannot update table "readings_recent" because it does not have a replica identity and publishes updates' \
  'packing neither'
ask dp_bucket_pub "ALTER TABLE readings_packed REPLICA IDENTITY FULL; ALTER TABLE readings_recent REPLICA IDENTITY FULL" >/dev/null
ask dp_bucket_pub "SELECT pg_create_logical_replication_slot('dp_bucket_sub', 'pgoutput')" >/dev/null
ask dp_bucket_sub "CREATE EXTENSION docpatterns; $declare;
  CREATE SUBSCRIPTION dp_bucket_sub CONNECTION 'dbname=dp_bucket_pub host=$PGHOST port=$PGPORT user=$PGUSER' PUBLICATION p WITH (create_slot = false, slot_name = 'dp_bucket_sub')" >/dev/null

rows="SELECT count(*), sum(v), (SELECT count(*) FROM readings_packed), (SELECT count(*) FROM readings_recent), (SELECT md5(string_agg(r::text, ' ' ORDER BY g, ts, v)) FROM readings r) FROM readings"
arrives() {  # arrives NAME
  local want
  want=$(ask dp_bucket_pub "$rows")
  for _ in {1..1500}; do
    [ "$(ask dp_bucket_sub "$rows")" = "$want" ] && break
    sleep 0.2
  done
  is "$(ask dp_bucket_sub "$rows")" "$want" "$1"
}
arrives 'the first copy is the same'
ask dp_bucket_pub "INSERT INTO readings SELECT 4, timestamptz '2024-01-01' + i * interval '1 min', i FROM generate_series(0, 1199) i; INSERT INTO readings VALUES (5, '2024-01-01', 5), (5, '2024-01-03', 6);
  UPDATE readings SET v = -v WHERE g = 1 AND v > 1000; DELETE FROM readings WHERE g = 2 AND v < 700; SELECT bucket_pack('readings'); INSERT INTO readings VALUES (5, '2024-01-01 00:00:01', 7)" >/dev/null
arrives 'so is everything that follows'
is "$(ask dp_bucket_sub 'SELECT * FROM pattern_check()')" '' 'the relation there is true'
ask dp_bucket_pub 'TRUNCATE readings; INSERT INTO readings VALUES (1, $$2024-01-01$$, 1)' >/dev/null
arrives 'TRUNCATE too'
ask dp_bucket_sub 'DROP SUBSCRIPTION dp_bucket_sub' >/dev/null
is "$(ask dp_bucket_sub "INSERT INTO readings VALUES (1, '2024-01-01 00:01', 2); SELECT bucket_pack('readings'); SELECT count(*), sum(v) FROM readings")" $'2\n2|3' 'a subscriber that has become the master goes on'
is "$(ask dp_bucket_sub 'SELECT * FROM pattern_check()')" '' 'and is true'
cleanup
