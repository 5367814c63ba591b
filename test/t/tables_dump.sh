#!/bin/bash
# Dump, restore and logical replication of query tables and single tables: all arrives as it was and goes on being kept.
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning'
plan 23

fresh() {  # fresh DATABASE [SQL]
  psql -Xqc "DROP DATABASE IF EXISTS $1 WITH (FORCE)" -c "CREATE DATABASE $1" postgres
  [ $# = 1 ] || psql -Xqc "$2" "$1"
}
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }  # ask DATABASE SQL
cleanup() {
  psql -Xq -d dp_tables_copy -c "ALTER SUBSCRIPTION dp_tables_sub DISABLE" -c "ALTER SUBSCRIPTION dp_tables_sub SET (slot_name = NONE)" -c "DROP SUBSCRIPTION dp_tables_sub" >/dev/null 2>&1
  psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_tables_copy WITH (FORCE)'
  psql -Xq -d postgres -c "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'dp_tables_sub' AND NOT active" >/dev/null 2>&1
  psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_tables WITH (FORCE)'
}

cleanup
fresh dp_tables
psql -XqAt -v ON_ERROR_STOP=1 dp_tables >/dev/null <<'SQL' || echo 'not ok 0 - the tables were made'
CREATE EXTENSION docpatterns;
SELECT collection_create('orders');
SELECT query_table_create('a_by_user', 'orders', '{u}', '{d: -1, n: 1}', '{t: 1, twice: {$multiply: ["$t", 2]}}', '{d: "date", t: "numeric(10,2)"}');
SELECT query_table_create('z_newest', 'orders', '{u}', '{d: -1}', limit_per_partition => 2), query_table_create('by_n', 'orders', '{n}', is_unique => true);
CREATE SCHEMA "o'S.chema";
SELECT query_table_create('"o''S.chema"."T ""t%s"', 'orders', '{"x y"}', name => 'it''s %s');
CREATE TABLE parts (at int, doc bson, PRIMARY KEY (at)) PARTITION BY RANGE (at);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20);
SELECT query_table_create('parts_by_u', 'parts', '{u}');
INSERT INTO orders (doc) SELECT bson_build('_id', i, 'u', i % 5, 'd', date '2024-01-01' + i % 9, 'n', i, 't', i * 1.5, 'x y', 'x') FROM generate_series(1, 50) i;
INSERT INTO parts SELECT i, bson_build('u', i % 3) FROM generate_series(1, 19) i;
SELECT single_table_create('app', 2, 'ttl');
SELECT single_table_entity('app', 'user', 'USER#{id}', 'PROFILE', gsi1_pk => 'MAIL#{mail}'), single_table_entity('app', 'order', 'USER#{id}', 'ORDER#{n:04}', gsi2_pk => 'STATUS#{status}', view_name => 'an''s "orders" %s');
INSERT INTO app (doc) SELECT bson_build('entity', 'order', 'id', i % 3, 'n', i, 'status', 'paid', 'ttl', 4000000000) FROM generate_series(1, 9) i;
INSERT INTO app_user (doc) VALUES ('{id: 1, mail: "a#b"}');
SQL

list="SELECT rel, pattern, name, options FROM pattern_list() ORDER BY rel::text, 2, 3"
rows="SELECT 'a', t::text FROM a_by_user t UNION ALL SELECT 'b', t::text FROM by_n t UNION ALL SELECT 'z', t::text FROM z_newest t UNION ALL SELECT 's', t::text FROM \"o'S.chema\".\"T \"\"t%s\" t UNION ALL SELECT 'p', t::text FROM parts_by_u t
  UNION ALL SELECT 'app', t::text FROM app t UNION ALL SELECT 'v', t::text FROM app_user t UNION ALL SELECT 'w', t::text FROM \"an's \"\"orders\"\" %s\" t ORDER BY 1, 2"
made="SELECT tgrelid::regclass::text, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname LIKE 'zz_docpatterns_%'
  UNION ALL SELECT indrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid >= 16384 AND indrelid::regclass::text !~ '^pg_toast'
  UNION ALL SELECT oid::regclass::text, pg_get_viewdef(oid) FROM pg_class WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace ORDER BY 1, 2"
wanted_list=$(ask dp_tables "$list") wanted_rows=$(ask dp_tables "$rows") wanted_made=$(ask dp_tables "$made")

# what is kept afterwards, in a transaction that is rolled back
alive() {  # alive DATABASE
  ask "$1" "BEGIN;
    UPDATE orders SET doc = bson_set(bson_set(doc, 'u', 77), 'd', date '2025-01-01' + _id::int) WHERE _id <= 3;
    DELETE FROM orders WHERE _id = 3;
    INSERT INTO parts VALUES (0, '{u: 9}');
    UPDATE app SET doc = bson_set(doc, 'n', 100) WHERE sk = 'ORDER#0009';
    INSERT INTO \"an's \"\"orders\"\" %s\" (doc) VALUES ('{id: 8, n: 8}');
    SELECT 'wrong', v FROM pattern_check() v;
    SELECT d, t FROM a_by_user WHERE u = 77 ORDER BY d;
    SELECT count(*) FROM z_newest WHERE u = 77;
    SELECT source_key FROM parts_by_u WHERE u = 9;
    SELECT pk, sk, gsi2_pk FROM app WHERE doc -> 'n' = 100 OR pk = 'USER#8' ORDER BY pk;
    SELECT single_table_entity('app', 'user', 'U#{id}', 'P');
    SELECT pk, doc -> 'GSI1PK' FROM app_user;
    ROLLBACK"
}
moved='2025-01-02|1.50
2025-01-03|3.00
2
0
USER#0|ORDER#0100|STATUS#paid
USER#8|ORDER#0008|
app_user
U#1|'

same() {  # same DATABASE NAME
  is "$(ask "$1" "$list")" "$wanted_list" "$2: the declarations are the same"
  is "$(ask "$1" "$rows")" "$wanted_rows" "$2: so is every row"
  is "$(ask "$1" "$made")" "$wanted_made" "$2: and every trigger, index and view"
  is "$(ask "$1" 'SELECT v FROM pattern_check() v')" '' "$2: the tables are true"
  is "$(alive "$1")" "$moved" "$2: and are kept"
}

is "$(ask dp_tables 'SELECT v FROM pattern_check() v')" '' 'the tables are true'
is "$(alive dp_tables)" "$moved" 'and are kept'

fresh dp_tables_copy
{ pg_dump dp_tables | psql -Xq dp_tables_copy; } 2>"$DP_WORK/errors" >/dev/null
is "$(cat "$DP_WORK/errors")" '' 'pg_dump | psql says nothing'
same dp_tables_copy 'pg_dump | psql'

pg_dump -Fc -f "$DP_WORK/custom" dp_tables_copy
fresh dp_tables_copy
pg_restore -j2 -d dp_tables_copy "$DP_WORK/custom" >"$DP_WORK/errors" 2>&1
is "$(cat "$DP_WORK/errors")" '' 'pg_restore -j2 says nothing'
same dp_tables_copy 'pg_restore -j2'

pg_dump --schema-only dp_tables >"$DP_WORK/schema.sql"
pg_dump --data-only dp_tables >"$DP_WORK/data.sql" 2>/dev/null
fresh dp_tables_copy
psql -Xq dp_tables_copy <"$DP_WORK/schema.sql" 2>"$DP_WORK/errors" >/dev/null
PGOPTIONS="$PGOPTIONS -c docpatterns.maintain=off" psql -Xq dp_tables_copy <"$DP_WORK/data.sql" 2>>"$DP_WORK/errors" >/dev/null
is "$(cat "$DP_WORK/errors")" '' 'the structure, then the data without maintenance'
same dp_tables_copy 'structure, then data without maintenance'

# a source alone goes on without the tables that it fed
fresh dp_tables_copy 'CREATE EXTENSION docpatterns'
pg_dump -t orders dp_tables 2>/dev/null | psql -Xq dp_tables_copy >/dev/null 2>"$DP_WORK/errors"
is "$(cat "$DP_WORK/errors"; ask dp_tables_copy "UPDATE orders SET doc = bson_set(doc, 'u', 1); SELECT name, what, found FROM pattern_check() ORDER BY 1 LIMIT 1; SELECT pattern_disable('orders', 'by_n')")" \
  'a_by_user|query table|missing
0' 'a source alone is written to, misses its tables, and can be freed'

# logical replication: what the publisher's triggers have done arrives, and is not done again
fresh dp_tables_copy
psql -Xq dp_tables_copy <"$DP_WORK/schema.sql" >/dev/null
ask dp_tables 'CREATE PUBLICATION p FOR ALL TABLES' >/dev/null
ask dp_tables "SELECT pg_create_logical_replication_slot('dp_tables_sub', 'pgoutput')" >/dev/null
ask dp_tables_copy "CREATE SUBSCRIPTION dp_tables_sub CONNECTION 'dbname=dp_tables host=$PGHOST port=$PGPORT user=$PGUSER' PUBLICATION p WITH (create_slot = false, slot_name = 'dp_tables_sub')" >/dev/null
alive dp_tables >/dev/null
ask dp_tables "UPDATE orders SET doc = bson_set(doc, 'u', 3) WHERE _id < 9; DELETE FROM orders WHERE _id = 20; UPDATE app SET doc = bson_set(doc, 'n', 200) WHERE sk = 'ORDER#0003'" >/dev/null
for _ in {1..100}; do
  [ "$(ask dp_tables_copy "$rows")" = "$(ask dp_tables "$rows")" ] && break
  sleep 0.2
done
is "$(ask dp_tables_copy "$rows")" "$(ask dp_tables "$rows")" 'replication: the same, row by row'
is "$(ask dp_tables_copy 'SELECT v FROM pattern_check() v')" '' 'replication: and true'
cleanup
