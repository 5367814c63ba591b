#!/bin/bash
# History is dumped, restored and replicated with its table, and goes on where it is.
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning'
plan 18
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }
fresh() { psql -Xq -d postgres -c "DROP DATABASE IF EXISTS $1 WITH (FORCE)" -c "CREATE DATABASE $1"; }
cleanup() {
  psql -Xq -d dp_history_sub -c 'ALTER SUBSCRIPTION dp_history_sub DISABLE' -c 'ALTER SUBSCRIPTION dp_history_sub SET (slot_name = NONE)' -c 'DROP SUBSCRIPTION dp_history_sub' >/dev/null 2>&1
  psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_history_sub WITH (FORCE)'
  psql -Xq -d postgres -c "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'dp_history_sub' AND NOT active" >/dev/null 2>&1
  for db in dp_history dp_history_copy; do psql -Xq -d postgres -c "DROP DATABASE IF EXISTS $db WITH (FORCE)"; done
}
cleanup
fresh dp_history
psql -XqAt -v ON_ERROR_STOP=1 -d dp_history >/dev/null <<'SQL'
CREATE EXTENSION docpatterns;
SELECT collection_create('policies');
SELECT versioning_enable('policies', keep => 1000);
CREATE TABLE stays (a int, at timestamptz, doc bson, PRIMARY KEY (a, at)) PARTITION BY LIST (a);
CREATE TABLE stays_1 PARTITION OF stays FOR VALUES IN (1);
CREATE TABLE stays_2 PARTITION OF stays DEFAULT;
SELECT versioning_enable('stays', storage => 'full', revision_field => 'r');
INSERT INTO policies (doc) SELECT bson_build('_id', i, 'cover', i * 1000, 'text', repeat('x', i * 40)) FROM generate_series(1, 20) i;
INSERT INTO stays SELECT i % 3, '2026-01-01Z'::timestamptz + i * interval '1 us', bson_build('n', i) FROM generate_series(1, 9) i;
DO $$ BEGIN FOR i IN 1 .. 40 LOOP UPDATE policies SET doc = bson_set(doc, 'cover', i) WHERE _id = i % 7; UPDATE stays SET doc = bson_set(doc, 'n', i) WHERE a = 1; COMMIT; END LOOP; END $$;
DELETE FROM policies WHERE _id = 5;
SQL
rows="SELECT 'p', key::text, revision, since, until, operation, who, doc::text FROM policies_history UNION ALL SELECT 's', key1 || ' ' || key2, revision, since, until, operation, who, doc::text FROM stays_history ORDER BY 1, 2, 3"
wanted=$(ask dp_history "$rows")
is "$(ask dp_history 'SELECT v FROM pattern_check() v')" '' 'true where it was made'

alive() {  # alive DATABASE NAME
  is "$(ask "$1" "$rows" | diff - <(printf '%s\n' "$wanted") | head -3)" '' "$2: the same history"
  is "$(ask "$1" 'SELECT v FROM pattern_check() v')" '' "$2: it is true"
  is "$(ask "$1" "UPDATE policies SET doc = bson_set(doc, 'cover', 'new') WHERE _id = 1; DELETE FROM stays WHERE a = 2; INSERT INTO policies (doc) VALUES ('{_id: 5}')"
       ask "$1" "SELECT count(*) FROM policies_history WHERE key IN (1, 5) AND until IS NULL AND since > now() - interval '1 hour'; SELECT v FROM pattern_check() v")" 2 "$2: it goes on"
}
fresh dp_history_copy
pg_dump dp_history 2>"$DP_WORK/errors" | psql -Xq dp_history_copy 2>>"$DP_WORK/errors" >/dev/null
is "$(cat "$DP_WORK/errors")" '' 'pg_dump | psql says nothing'
alive dp_history_copy 'pg_dump | psql'

fresh dp_history_copy
pg_dump -Fc dp_history >"$DP_WORK/custom" 2>"$DP_WORK/errors"
pg_restore -j2 -d dp_history_copy "$DP_WORK/custom" 2>>"$DP_WORK/errors"
is "$(cat "$DP_WORK/errors")" '' 'pg_restore -j2 says nothing'
alive dp_history_copy 'pg_restore -j2'

fresh dp_history_copy
pg_dump --schema-only dp_history 2>"$DP_WORK/errors" | psql -Xq dp_history_copy 2>>"$DP_WORK/errors" >/dev/null
{ echo 'SET docpatterns.maintain = off;'; pg_dump --data-only dp_history; } 2>/dev/null | psql -Xq dp_history_copy 2>>"$DP_WORK/errors" >/dev/null
is "$(cat "$DP_WORK/errors")" '' 'the structure, then the data without maintenance, say nothing'
alive dp_history_copy 'structure, then data'

fresh dp_history_copy
ask dp_history_copy 'CREATE EXTENSION docpatterns'
pg_dump -t policies dp_history 2>/dev/null | psql -Xq dp_history_copy >/dev/null 2>&1
is "$(ask dp_history_copy "UPDATE policies SET doc = bson_set(doc, 'x', 1)" | grep -c 'the history of table public.policies is missing')" 1 'one table alone says what is missing'
ask dp_history_copy "SELECT pattern_repair('policies')" >/dev/null
is "$(ask dp_history_copy "SELECT v FROM pattern_check() v; UPDATE policies SET doc = bson_set(doc, 'x', 1) WHERE _id = 1; SELECT count(*) FROM policies_history WHERE key = 1")" 2 'and begins anew when it is repaired'

# replication
fresh dp_history_sub
pg_dump --schema-only dp_history 2>/dev/null | psql -Xq dp_history_sub >/dev/null
ask dp_history 'CREATE PUBLICATION p FOR ALL TABLES'
ask dp_history "SELECT pg_create_logical_replication_slot('dp_history_sub', 'pgoutput')" >/dev/null
ask dp_history_sub "CREATE SUBSCRIPTION dp_history_sub CONNECTION 'dbname=dp_history host=$PGHOST port=$PGPORT user=$PGUSER' PUBLICATION p WITH (create_slot = false, slot_name = 'dp_history_sub')" >/dev/null
ask dp_history "UPDATE policies SET doc = bson_set(doc, 'cover', 'replicated'); DELETE FROM policies WHERE _id = 20"
wanted=$(ask dp_history "$rows")
for _ in {1..100}; do [ "$(ask dp_history_sub "$rows")" = "$wanted" ] && break; sleep 0.2; done
is "$(ask dp_history_sub "$rows" | diff - <(printf '%s\n' "$wanted") | head -3)" '' 'a subscriber has the same history'
is "$(ask dp_history_sub 'SELECT v FROM pattern_check() v')" '' 'it is true'
ask dp_history_sub 'DROP SUBSCRIPTION dp_history_sub' >/dev/null
ask dp_history_sub "SELECT pattern_repair('policies'), pattern_repair('stays')" >/dev/null
is "$(ask dp_history_sub "UPDATE policies SET doc = bson_set(doc, 'cover', 'own') WHERE _id = 1"; ask dp_history_sub "SELECT doc ->> 'cover' FROM versioning_as_of('policies', now()) WHERE key = 1; SELECT v FROM pattern_check() v")" own \
  'and goes on when it has become the master'
cleanup
