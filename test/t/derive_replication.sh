#!/bin/bash
# Logical replication of tables with derived data: what the publisher's triggers have done arrives, is not done again, and a
# subscriber that becomes the master goes on.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/derived.sh"
set -u
plan 8
export PGOPTIONS='-c client_min_messages=warning'
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }

cleanup() {
  psql -Xq -d dp_derived_sub -c "ALTER SUBSCRIPTION dp_derived_sub DISABLE" -c "ALTER SUBSCRIPTION dp_derived_sub SET (slot_name = NONE)" -c "DROP SUBSCRIPTION dp_derived_sub" >/dev/null 2>&1
  psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_derived_sub WITH (FORCE)'
  psql -Xq -d postgres -c "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = 'dp_derived_sub' AND NOT active" >/dev/null 2>&1
  psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_derived_pub WITH (FORCE)'
}
cleanup
for db in dp_derived_pub dp_derived_sub; do psql -Xq -d postgres -c "CREATE DATABASE $db"; done
ask dp_derived_pub 'CREATE EXTENSION docpatterns'
derived_fill dp_derived_pub
pg_dump --schema-only dp_derived_pub | psql -Xq dp_derived_sub >/dev/null
ask dp_derived_pub 'CREATE PUBLICATION p FOR ALL TABLES'
ask dp_derived_pub "SELECT pg_create_logical_replication_slot('dp_derived_sub', 'pgoutput')" >/dev/null
ask dp_derived_sub "CREATE SUBSCRIPTION dp_derived_sub CONNECTION 'dbname=dp_derived_pub host=$PGHOST port=$PGPORT user=$PGUSER' PUBLICATION p WITH (create_slot = false, slot_name = 'dp_derived_sub')" >/dev/null

arrives() {  # arrives NAME; rows are the same, and true
  local want
  want=$(derived_rows dp_derived_pub)
  for _ in {1..1500}; do
    [ "$(derived_rows dp_derived_sub)" = "$want" ] && break
    sleep 0.2
  done
  is "$(derived_rows dp_derived_sub)" "$want" "$1: the same, row by row"
  is "$(ask dp_derived_sub 'SELECT v FROM pattern_check() v')" '' "$1: and true"
}
arrives 'the first copy'
is "$(derived_writes | sed 's/^ROLLBACK;/COMMIT;/' | psql -XqAt -v ON_ERROR_STOP=1 -d dp_derived_pub 2>&1 | grep -v '^ok$')" '' 'the publisher is written to'
arrives 'what follows'
ask dp_derived_pub 'TRUNCATE screenings, source_parts, sales, reviews, notes, orders, votes, films' >/dev/null
arrives 'what is truncated'

# after the switch-over
ask dp_derived_sub 'DROP SUBSCRIPTION dp_derived_sub' >/dev/null
psql -XqAt -d dp_derived_sub -c 'DO $$ DECLARE s record; t record; m bigint; BEGIN
  FOR s IN SELECT d.objid::regclass AS seq, d.refobjid::regclass AS tab FROM pg_depend d JOIN pg_class c ON c.oid = d.objid AND c.relkind = $q$S$q$ WHERE d.refclassid = $q$pg_class$q$::regclass AND d.deptype = $q$i$q$ LOOP
    EXECUTE format($q$SELECT max(id) FROM %s$q$, s.tab) INTO m;
    PERFORM setval(s.seq, coalesce(m, 0) + 1, false);
  END LOOP; END $$'
is "$(ask dp_derived_sub "INSERT INTO votes (doc) VALUES ('{_id: 1}'); INSERT INTO screenings (doc) VALUES ('{_id: 1, movie: \"m1\", x: 2, i: 3, ts: ISODate(\"2023-01-02T00:00:00Z\")}');
  INSERT INTO reviews (doc) VALUES ('{_id: 1, product: 1, text: \"x\"}'); UPDATE suppliers SET doc = bson_set(doc, 'name', 'new'); INSERT INTO films (doc) VALUES ('{_id: 1, specs: 1}'); INSERT INTO sales (doc) VALUES ('{_id: 1, category: \"l\", amount: 1}')" | grep -v 'has no document\|^LOCATION'; ask dp_derived_sub "
  SELECT computed_refresh('made') > 0, reference_refresh('items') > 0, subset_refresh('products', 'reviews') > 0; SELECT doc -> 'n', doc -> 'sum' FROM movies WHERE _id = 1; SELECT count(*) FROM by_category; SELECT v FROM pattern_check() v")" $'t|t|t\n1|2\n4' 'a subscriber that has become the master goes on'
cleanup
