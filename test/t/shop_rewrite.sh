#!/bin/bash
# The shop's tables, and those that patterns keep beside them, are written anew by VACUUM FULL, CLUSTER and ALTER TABLE, move to
# another tablespace, get their indexes anew while others write; and what is written past all triggers is found and mended.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/shop.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning -c jit=off' PGDATABASE=dp_shop_rewrite
plan 18
ask() { psql -XqAt -v VERBOSITY=verbose -c "$1" 2>&1 | grep -v '^LOCATION\|^CONTEXT\|^SQL\|^PL'; }
tables="SELECT c.oid::regclass AS t, c.reltablespace, (SELECT i.indexrelid::regclass FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary) AS pk FROM pg_class c
  WHERE c.relkind = 'r' AND c.relnamespace IN ('public'::regnamespace, 'sessions'::regnamespace) AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_class'::regclass AND e.objid = c.oid AND e.deptype = 'e')"
each() { ask "SELECT format('$1', t, split_part(pk::text, '.', -1)) || ';' FROM ($tables) q WHERE ${2:-true} ORDER BY 1"; }  # each COMMAND [CONDITION]: a command for each table

everything() { psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_shop_rewrite WITH (FORCE)' -c 'DROP TABLESPACE IF EXISTS dp_shop_space' 2>&1; }
everything
psql -Xq -d postgres -c 'SET allow_in_place_tablespaces = on' -c "CREATE TABLESPACE dp_shop_space LOCATION ''" -c 'CREATE DATABASE dp_shop_rewrite'
ask 'CREATE EXTENSION docpatterns'
shop_fill dp_shop_rewrite plain

is "$(shop_alive dp_shop_rewrite "$(each 'VACUUM (FULL, ANALYZE) %s')")" '' 'VACUUM FULL of all tables'
is "$(shop_alive dp_shop_rewrite "$(each 'CLUSTER %s USING %I' 'pk IS NOT NULL')")" '' 'CLUSTER'
is "$(shop_alive dp_shop_rewrite "$(for t in makers reviews billing follows pages; do echo "ALTER TABLE $t ALTER COLUMN note TYPE jsonb USING to_jsonb(note), ADD COLUMN at timestamptz DEFAULT clock_timestamp();"; done)")" '' 'ALTER TABLE that writes all rows anew'
is "$(shop_alive dp_shop_rewrite "$(each 'ALTER TABLE %s SET UNLOGGED')")" '' 'SET UNLOGGED'
is "$(shop_alive dp_shop_rewrite "$(each 'ALTER TABLE %s SET LOGGED')")" '' 'SET LOGGED'
ask 'CREATE ACCESS METHOD dp_shop_heap TYPE TABLE HANDLER heap_tableam_handler'
is "$(shop_alive dp_shop_rewrite "$(each 'ALTER TABLE %s SET ACCESS METHOD dp_shop_heap')")" '' 'SET ACCESS METHOD'
is "$(ask "SELECT DISTINCT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE c.oid IN (SELECT t FROM ($tables) q)")" dp_shop_heap 'which all have now'
each 'ALTER TABLE %s SET ACCESS METHOD heap' | psql -Xq
is "$(shop_alive dp_shop_rewrite "$(each 'ALTER TABLE %s SET TABLESPACE dp_shop_space')")" '' 'SET TABLESPACE'
is "$(shop_alive dp_shop_rewrite "ALTER INDEX ALL IN TABLESPACE pg_default SET TABLESPACE dp_shop_space; REINDEX DATABASE dp_shop_rewrite;")" '' 'indexes, too, and all made anew'
# what is made later by a pattern lies where its table's database says
is "$(ask "SET default_tablespace = dp_shop_space; SELECT outlier_enable('makers', 'letters', 2); UPDATE makers SET doc = bson_set(doc, 'letters', bson_array(1, 2, 3)) WHERE _id = 1; SELECT doc -> 'letters' FROM makers_whole WHERE _id = 1; SELECT pattern_disable('makers', 'letters')")" $'letters\n[1, 2, 3]\n1' 'a pattern is declared in a tablespace'
is "$(ask "ALTER DATABASE dp_shop_rewrite SET default_tablespace = pg_default"; shop_alive dp_shop_rewrite "ALTER TABLE products SET TABLESPACE pg_default; ALTER TABLE orders SET (fillfactor = 50, autovacuum_enabled = off); ALTER TABLE products ALTER COLUMN doc SET STORAGE EXTERNAL; ALTER TABLE customers REPLICA IDENTITY FULL; ALTER TABLE reviews CLUSTER ON reviews_pkey;")" '' 'tables get other settings'

# Indexes are made anew while somebody writes
shop_writes >"$DP_WORK/writes.sql"
{ cat "$DP_WORK/writes.sql" "$DP_WORK/writes.sql"; echo "SELECT 'written';"; } | psql -XqAt >"$DP_WORK/written" 2>&1 &
writer=$!
each 'REINDEX TABLE CONCURRENTLY %s' "t::text ~ '^(products|orders|reviews|customers)'" >"$DP_WORK/indexes.sql"
echo "CREATE INDEX CONCURRENTLY products_price ON products ((doc -> 'price')); CREATE INDEX CONCURRENTLY orders_all ON orders USING gin (doc bson_ops); CREATE UNIQUE INDEX CONCURRENTLY reviews_key ON reviews (_id) INCLUDE (note); DROP INDEX CONCURRENTLY orders_all;" | tr ';' '\n' >>"$DP_WORK/indexes.sql"
sed 's/$/;/' "$DP_WORK/indexes.sql" | psql -XqAt >"$DP_WORK/indexes" 2>&1
wait $writer
is "$(cat "$DP_WORK/written"; grep -v 'deadlock detected' "$DP_WORK/indexes"; shop_wrong | psql -XqAt 2>&1)" written 'REINDEX and CREATE INDEX CONCURRENTLY while somebody writes'
is "$(ask "CREATE EXTENSION IF NOT EXISTS amcheck; SELECT count(bt_index_check(i.indexrelid, true)) > 50 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'btree' AND i.indrelid IN (SELECT t FROM ($tables) q) AND i.indisvalid")" t 'indexes have what tables have'

# Past all triggers, as logical replication writes: it is found, and mended.
ask "SET session_replication_role = replica;
  INSERT INTO reviews (_id, doc) VALUES (777, '{_id: 777, product: {_id: 1}, at: 5000, stars: 5, by: 1}'); DELETE FROM reviews WHERE _id % 7 = 0;
  UPDATE orders SET doc = bson_set(doc, 'amount', 1000) WHERE _id % 3 = 0; DELETE FROM orders WHERE _id % 5 = 0;
  UPDATE makers SET doc = bson_set(doc, 'name', 'replicated'); UPDATE customers SET doc = bson_set(bson_set(bson_unset(doc, 'wishes'), 'points', 4), 'name', 'replicated') WHERE _id IN (1, 5);
  UPDATE products SET doc = bson_set(bson_set(bson_set(doc, 'spec_z', 1), 'sold', 7), 'price', 1) WHERE _id < 5; UPDATE categories SET doc = bson_set(doc, 'up', 5) WHERE _id = 8; UPDATE products SET doc = bson_set(bson_set(bson_set(doc, 'weight', -1), 'buyers_n', 77), 'trail', bson_array(9)) WHERE _id = 4; DELETE FROM categories WHERE _id > 100;
  DELETE FROM screenings WHERE _id = 1; DELETE FROM follows WHERE _id % 2 = 0; UPDATE billing SET doc = bson_set(doc, 'balance', 55)" >"$DP_WORK/replica"
found=$(ask "SELECT string_agg(DISTINCT pattern, ' ' ORDER BY pattern) FROM pattern_check()")
is "$(cat "$DP_WORK/replica")$found" 'attribute change_feed computed fanout kv_leaderboard outlier payload polymorphic_merge preallocated query_table reference relationship rollup subset tree tree_attach versioning' 'what was written past all triggers is found'
all="SELECT string_agg(x::text, E'\n' ORDER BY x::text) FROM pattern_check() x"
is "$(ask "SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query'); SET parallel_setup_cost = 0; SET min_parallel_table_scan_size = 0; $all" | sed 1d)" \
  "$(ask "SET max_parallel_workers_per_gather = 0; $all")" 'by parallel workers, too'
ask "DO \$\$ DECLARE d record; BEGIN FOR i IN 1 .. 2 LOOP FOR d IN SELECT * FROM pattern_list() LOOP PERFORM pattern_repair(d.rel, d.name); END LOOP; END LOOP; END \$\$; SELECT reference_refresh('orders'), computed_refresh('customers')" >"$DP_WORK/repaired"
is "$(grep ERROR "$DP_WORK/repaired"; shop_wrong | psql -XqAt 2>&1)" '' 'and mended'
is "$(ask "INSERT INTO screenings (_id, doc) VALUES (1, '{_id: 1}')"; shop_alive dp_shop_rewrite)" '' 'and all goes on'
is "$(ask "SET session_replication_role = local; UPDATE makers SET doc = bson_set(doc, 'name', 'local'); SELECT DISTINCT doc ->> 'maker.name' FROM products WHERE doc ? 'maker'")" local 'local is as origin'
everything
