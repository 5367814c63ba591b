#!/bin/bash
# The shop under row-level security: who writes sees a part of the tables, and nothing of what patterns keep beside them. He writes
# through every pattern; what is kept is true of all rows, and rows that policies hide are neither shown nor written to.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/shop.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning -c jit=off' PGDATABASE=dp_shop_rights
plan 13
as() { psql -XqAt -U "$1" -v VERBOSITY=verbose -c "$2" 2>&1 | grep -v '^LOCATION\|^CONTEXT\|^SQL\|^PL'; }  # as ROLE SQL
root() { as postgres "$1"; }
each() { tr ';' '\n' | sed '/^ *$/d;s/$/;/' | psql -XqAt -U "$1" -v VERBOSITY=verbose 2>&1 | grep -v '^LOCATION\|^CONTEXT\|^DETAIL\|^HINT\|^SQL\|^PL' | cut -c 1-13; }  # each ROLE; statements from stdin, each by itself
everything() { psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_shop_rights WITH (FORCE)' -c 'DROP ROLE IF EXISTS dp_shop_owner, dp_shop_clerk' 2>&1; }

everything
psql -Xq -d postgres -c 'CREATE ROLE dp_shop_owner LOGIN' -c 'CREATE ROLE dp_shop_clerk LOGIN' -c 'CREATE DATABASE dp_shop_rights OWNER dp_shop_owner'
root 'CREATE EXTENSION docpatterns'
PGUSER=dp_shop_owner shop_fill dp_shop_rights
secret=classified
policed="$shop_tables categories coupons app"
# a row of each table is nobody's business but the owner's
for table in $shop_tables categories; do
  as dp_shop_owner "UPDATE $table SET doc = bson_set(doc, 'mark', '$secret'::text) WHERE _id = $(case $table in makers) echo 3 ;; products) echo 9 ;; customers) echo 9 ;; billing) echo 9 ;; prices) echo 9 ;; screenings) echo 2 ;; follows) echo 9 ;; pages) echo 2 ;; categories) echo 7 ;; *) echo 0 ;; esac)"
done
written=$(PGUSER=dp_shop_owner shop_alive dp_shop_rights)
as dp_shop_owner "INSERT INTO reviews (doc) VALUES ('{_id: 1, product: 1, at: 2000, stars: 1, by: 1, mark: \"$secret\"}'), ('{_id: 2, product: 9, at: 1, stars: 1, by: 2}'); INSERT INTO orders (doc) VALUES ('{_id: 1, product: 1, customer: 1, amount: 777, at: ISODate(\"2024-01-30T00:00:00Z\"), mark: \"$secret\"}');
  INSERT INTO catalog (doc) VALUES ('{_id: 7, docType: \"page\", mark: \"$secret\"}'); INSERT INTO coupons (doc) VALUES ('{_id: 1, customer: 9, mark: \"$secret\"}'); SELECT single_table_put('app', 'cart', '{user: 9, cart: 9, status: \"s\", mark: \"$secret\"}');
  UPDATE products SET doc = bson_update(doc, '{\$set: {buyers: [1, 2, 3, 4, 5, 6, 7], manual: \"$secret\", spec_q: \"$secret\"}}') WHERE _id = 9; UPDATE products SET doc = bson_set(doc, 'sheet', '<p w=\"1\">$secret</p>') WHERE _id = 9; SELECT preallocated_claim('screenings', 2, '{A1}', '$secret'), approximation_add('products', 9, 4, name => 'views')" >"$DP_WORK/setup"
is "$(grep -A2 ERROR "$DP_WORK/setup")$written" '' 'the owner writes to his shop'

root "DO \$\$ DECLARE r record; BEGIN FOR r IN SELECT c.oid::regclass AS rel FROM pg_class c WHERE relkind IN ('r', 'v', 'f') AND relnamespace = 'public'::regnamespace AND relowner = 'dp_shop_owner'::regrole
    AND NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid AND g.tgname LIKE '%guard%') AND relname NOT LIKE 'telemetry\_%' LOOP
  EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO dp_shop_clerk', r.rel); END LOOP; END \$\$;
  REVOKE ALL ON customers_360 FROM dp_shop_clerk; GRANT SELECT ON walls TO dp_shop_clerk; GRANT USAGE ON SCHEMA sessions TO dp_shop_clerk; GRANT SELECT, INSERT, UPDATE, DELETE ON sessions.hashes, sessions.scores TO dp_shop_clerk; GRANT SELECT ON sessions.keys TO dp_shop_clerk; GRANT USAGE ON SEQUENCE rounds TO dp_shop_clerk"
for table in $policed; do
  root "ALTER TABLE $table ENABLE ROW LEVEL SECURITY; CREATE POLICY hidden ON $table USING (bson_get_text(doc, 'mark') IS NULL) WITH CHECK (bson_get_text(doc, 'mark') IS NULL)"
done
hidden() { for table in $policed; do echo "SELECT '$table', _id, doc - 'reviews' - 'reviews_n' - 'sold' - 'best' - 'orders' - 'maker' - 'wished_by' - 'customer' - 'product' - '_computed' - 'revision' FROM $table WHERE bson_exists(doc, 'mark') ORDER BY 2;"; done | sed 's/SELECT .app., _id/SELECT 1, pk/' | psql -XqAt 2>&1; }
before=$(hidden)
is "$(grep -c "$secret" <<<"$before")" 13 'rows are hidden from him'

# what only owners may call is the owner's
writes() { shop_writes | sed 's/^TRUNCATE/DELETE FROM/;/^CALL\|_refresh\|bucket_pack\|^DELETE FROM telemetry\|^INSERT INTO telemetry/{s/^/SET ROLE dp_shop_owner; /;s/$/ SET ROLE dp_shop_clerk;/}'; }
is "$({ echo 'SET ROLE dp_shop_clerk;'; writes; writes; } | psql -XqAt 2>&1)" '' 'a clerk writes through every pattern'
is "$(shop_wrong | psql -XqAt 2>&1)" '' 'what is kept is true, of all rows'
is "$(hidden | diff - <(echo "$before") | grep -v '^[0-9]')" '' 'hidden rows are as they were'
is "$(psql -XqAt -U dp_shop_clerk 2>&1 <<SQL
SELECT format('SELECT %L WHERE EXISTS (SELECT FROM %s v WHERE v::text ~ ''$secret'')', c.oid::regclass, c.oid::regclass) FROM pg_class c
WHERE relkind IN ('r', 'p', 'v') AND relnamespace = 'public'::regnamespace AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1 \gexec
SQL
)" '' 'no table and no view shows one'
is "$(each dp_shop_clerk <<<"SELECT doc FROM products_whole WHERE _id = 9; SELECT pattern_whole('{_id: 9, has_extras: true}', 'products', 9); SELECT versioning_at('products', 9, 1); SELECT count(*) FROM versioning_revisions('products', 9); SELECT count(*) FROM products_history WHERE key = 9;
  SELECT count(*) FROM products_as_of('infinity') WHERE key = 9; SELECT count(*) FROM products_deleted WHERE key = 9; SELECT schema_versioning_read('products', 9); SELECT outlier_contains('products', 9, 7); SELECT preallocated_slots('screenings', 2); SELECT count(*) FROM fanout_timeline('reviews', 1) WHERE key = 1;
  SELECT change_feed_read('products', NULL, 10); SELECT single_table_get('app', 'USER#9', 'CART#9'); SELECT count(*) FROM single_collection_get('catalog', 7, 'page'); SELECT bson_lookup('products', '_id', 9); SELECT collection_find('products', '{_id: 9}'); SELECT approximation_read('products', 9, 'views')" | tr '\n' ' ')" \
  '{"_id": 9, "h ERROR:  22023 0 0 0 0  ERROR:  P0002 ERROR:  P0002 0 ERROR:  42501  0 [] ERROR:  P0002 ' 'nor does any call'

# nor are they written to, nor is anything hidden by who may not
is "$(each dp_shop_clerk <<<"SELECT outlier_push('products', 9, 1); SELECT outlier_pull('products', 9, 1); SELECT approximation_add('products', 9, 1, name => 'views'); SELECT preallocated_claim('screenings', 2, '{B1}', 'x'); SELECT versioning_revert('products', 9, 1); SELECT outlier_push_into('customers', 'coupons', 9, '{_id: 99}');
  WITH u AS (UPDATE products_whole SET doc = bson_set(doc, 'x', 1) WHERE _id = 9 RETURNING 1) SELECT count(*) FROM u; WITH u AS (UPDATE products_v1 SET doc = bson_set(doc, 'x', 1) WHERE _id = 9 RETURNING 1) SELECT count(*) FROM u; WITH u AS (UPDATE products_wide SET doc = bson_set(doc, 'x', 1) WHERE _id = 9 RETURNING 1) SELECT count(*) FROM u;
  WITH u AS (DELETE FROM products_book WHERE _id = 9 RETURNING 1) SELECT count(*) FROM u; WITH u AS (DELETE FROM screenings_whole WHERE _id = 2 RETURNING 1) SELECT count(*) FROM u; SELECT single_table_delete('app', 'USER#9', 'CART#9')" | tr '\n' ' ')" \
  'ERROR:  P0002 ERROR:  P0002 ERROR:  P0002 ERROR:  P0002 ERROR:  22023 ERROR:  P0002 0 0 0 0 0  ' 'none can be written to'
is "$(for view in products products_v1 products_current products_wide products_whole; do as dp_shop_clerk "INSERT INTO $view (doc) VALUES ('{_id: 88, schema_version: 2, title: \"t\", kind: \"tool\", mark: 1, buyers: [1, 2, 3, 4, 5, 6], manual: \"m\"}')"; as dp_shop_clerk "UPDATE $view SET doc = bson_set(doc, 'mark', 1) WHERE _id = 1"; done | sort | uniq -c | sed 's/^ *//')" \
  '10 ERROR:  42501: new row violates row-level security policy for table "products"' 'and none hidden'
is "$(hidden | diff - <(echo "$before") | grep -v '^[0-9]')$(shop_wrong | psql -XqAt 2>&1)" '' 'all is as it was, and true'

# Policies that hold for the owner, too
for table in $policed; do root "ALTER TABLE $table FORCE ROW LEVEL SECURITY"; done
is "$({ echo 'SET ROLE dp_shop_clerk;'; writes; } | psql -XqAt 2>&1)" '' 'policies hold for the owner, and a clerk writes'
is "$(shop_writes | sed 's/^TRUNCATE/DELETE FROM/' | psql -XqAt -U dp_shop_owner 2>&1)" '' 'so does the owner'
is "$(shop_wrong | psql -XqAt 2>&1; hidden | diff - <(echo "$before") | grep -v '^[0-9]')" '' 'what is kept is still true, of all rows'
everything
