#!/bin/bash
# Logical replication of every pattern at once, the first copy and what follows, to a subscriber on which all triggers of the extension
# are enabled for it (ENABLE ALWAYS): they leave alone what arrives, so that it is what the publisher has, and keep what is written there.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/load.sh"
set -u
seed=${SEED:-20344} seconds=${STRESS_SECONDS:-2}
echo "# seed $seed, $seconds seconds"
plan 13
export PGOPTIONS='-c client_min_messages=warning -c timezone=UTC'
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }
each_of() { psql -XqAt -d "$1" -c "$2" | psql -XqAt -d "$1" 2>&1; }  # runs what a query gives

forget() {
  local name
  for name in shapes derived; do
    psql -Xq -d dp_copy_$name -c "ALTER SUBSCRIPTION dp_logical_$name DISABLE" -c "ALTER SUBSCRIPTION dp_logical_$name SET (slot_name = NONE)" -c "DROP SUBSCRIPTION dp_logical_$name" >/dev/null 2>&1
  done
  for _ in {1..1500}; do
    [ "$(ask postgres "SELECT count(pg_drop_replication_slot(slot_name)) FROM pg_replication_slots WHERE database LIKE 'dp_logical_%' AND NOT active; SELECT count(*) FROM pg_replication_slots WHERE database LIKE 'dp_logical_%'" | tail -1)" = 0 ] && break
    sleep 0.2
  done
  load_drop dp_copy
  load_drop dp_logical
}
trap forget EXIT
forget
load_fill dp_logical
is "$(load_each dp_logical)" '' 'each kind of write succeeds'

published="c.relkind IN ('r', 'p') AND c.oid >= 16384 AND c.relpersistence = 'p' AND c.relnamespace::regnamespace::text !~ '^(pg_|docpatterns)'"
for name in shapes derived; do
  psql -Xq -d postgres -c "CREATE DATABASE dp_copy_$name" -c "ALTER DATABASE dp_copy_$name SET jit = off"
  pg_dump --schema-only dp_logical_$name | psql -Xq -d dp_copy_$name >/dev/null
  # a table without a key has its whole rows sent
  each_of dp_logical_$name "SELECT format('ALTER TABLE %s REPLICA IDENTITY FULL;', c.oid::regclass) FROM pg_class c WHERE $published AND c.relkind = 'r' AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisprimary)"
  each_of dp_copy_$name "SELECT format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I;', c.oid::regclass, tgname) FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid WHERE tgname LIKE 'zz\_docpatterns\_%' AND c.relkind IN ('r', 'p') AND tgparentid = 0"
  ask dp_logical_$name "CREATE PUBLICATION p FOR ALL TABLES" >/dev/null
  ask dp_logical_$name "SELECT pg_create_logical_replication_slot('dp_logical_$name', 'pgoutput')" >/dev/null
  ask dp_copy_$name "CREATE SUBSCRIPTION dp_logical_$name CONNECTION 'dbname=dp_logical_$name host=$PGHOST port=$PGPORT user=$PGUSER' PUBLICATION p WITH (create_slot = false, slot_name = 'dp_logical_$name', binary = $([ $name = derived ] && echo true || echo false))" >/dev/null
done
is "$(ask dp_copy_shapes "SELECT count(*) > 50 FROM pg_trigger WHERE tgenabled = 'A' AND tgname LIKE 'zz\_docpatterns\_%'")$(ask dp_copy_derived "SELECT count(*) > 50 FROM pg_trigger WHERE tgenabled = 'A' AND tgname LIKE 'zz\_docpatterns\_%'")" tt 'triggers are enabled for what arrives'

arrives() {  # arrives NAME: tables are the same, and true but for numbers of sequences, which are not replicated
  local name want
  for name in shapes derived; do
    want=$(${name}_rows dp_logical_$name)
    for _ in {1..600}; do
      [ "$(psql -XqAt -d dp_copy_$name -c "SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'")" = 0 ] && [ "$(${name}_rows dp_copy_$name)" = "$want" ] && break
      sleep 0.3
    done
    is "$(diff <(${name}_rows dp_copy_$name) - <<<"$want" | head -5)" '' "$1: $name is the same, row by row"
    is "$(ask dp_copy_$name "SELECT v FROM pattern_check() v WHERE what <> 'next number'" | head -5)" '' "$1: $name is true"
  done
}
arrives 'the first copy'
load_start dp_logical
sleep "$seconds"
load_stop dp_logical
arrives 'what follows'

# it becomes the one that is written to
for name in shapes derived; do
  ask dp_copy_$name "DROP SUBSCRIPTION dp_logical_$name" >/dev/null
  each_of dp_copy_$name "SELECT format('SELECT setval(%L, coalesce(max(%I), 0) + 1, false) FROM %s;', s.oid::regclass, a.attname, a.attrelid::regclass) FROM pg_class s JOIN pg_depend d ON d.objid = s.oid AND d.deptype IN ('a', 'i') AND d.classid = 'pg_class'::regclass
    JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid WHERE s.relkind = 'S'" >/dev/null
  each_of dp_copy_$name "SELECT format('SELECT setval(%L, 1000000);', oid::regclass) FROM pg_class WHERE relkind = 'S' AND relname IN ('s', 'things_s', 'nodes_s')" >/dev/null
done
ask dp_copy_shapes "SELECT pattern_repair(rel, name) FROM (SELECT DISTINCT rel, name FROM pattern_check() WHERE what = 'next number') q" >/dev/null
is "$(ask dp_copy_shapes "SELECT v FROM pattern_check() v" | head -5)" '' 'numbers of sequences are set'
is "$(load_each dp_copy)" '' 'writes go on there'
is "$(load_wrong dp_copy)" '' 'and are kept'
