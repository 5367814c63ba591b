#!/bin/bash
# The shop in tables that are partitioned by their key, by hash and by range: all patterns write to the right partition and know their
# own writes there; partitions come and go with what is in them.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/shop.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning -c jit=off' PGDATABASE=dp_shop_parts
plan 29
ask() { psql -XqAt -v VERBOSITY=verbose -c "$1" 2>&1 | grep -v '^LOCATION\|^CONTEXT\|^SQL\|^PL'; }

for kind in hash range; do
  psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_shop_parts WITH (FORCE)' -c 'CREATE DATABASE dp_shop_parts'
  ask 'CREATE EXTENSION docpatterns'
  shop_fill dp_shop_parts $kind
  is "$(shop_missing dp_shop_parts)" '' "$kind: every pattern is there"
  is "$(shop_alive dp_shop_parts)" '' "$kind: they take writes and are true"
  is "$(shop_alive dp_shop_parts)" '' "$kind: and again"
  is "$(ask "SELECT min(n) > 0 FROM (SELECT count(*) AS n FROM products_p1 UNION ALL SELECT count(*) FROM products_p2 UNION ALL SELECT count(*) FROM customers_p1 UNION ALL SELECT count(*) FROM customers_p2 UNION ALL SELECT count(*) FROM orders_p2) q")" t "$kind: in more than one partition"
done

# A partition of each table goes with its rows, which are then in nobody's totals, and comes back.
gone() { for table in reviews orders customers billing prices; do echo "ALTER TABLE $table DETACH PARTITION ${table}_p1;"; done; }
back() { for table in billing customers orders reviews prices; do echo "ALTER TABLE $table ATTACH PARTITION ${table}_p1 FOR VALUES FROM (MINVALUE) TO (5);"; done; }
is "$(ask "$(gone)")" '' 'partitions are detached'
ask "DO \$\$ DECLARE d record; BEGIN FOR d IN SELECT * FROM pattern_list() LOOP PERFORM pattern_repair(d.rel, d.name); END LOOP; END \$\$; SELECT reference_refresh('orders'), computed_refresh('customers')" >"$DP_WORK/repaired"
is "$(grep ERROR "$DP_WORK/repaired"; shop_names >"$DP_WORK/names"; shop_wrong | psql -XqAt 2>&1)" '' 'what they leave behind is mended'

is "$(ask "$(back)"; ask "SELECT pattern_repair('customers', 'wishes') > 0")" t 'and attached again; what names their rows on the other side is mended'
is "$(shop_alive dp_shop_parts)" '' 'they take writes and are true'
is "$(ask "INSERT INTO products_p2 (_id, doc) VALUES (900, '{_id: 900, schema_version: 2, title: \"t\", kind: \"book\", pages: 1, maker: 1, category: 2, buyers: [1, 2, 3, 4, 5, 6, 7], manual: \"m\"}'); UPDATE products_p1 SET doc = bson_set(doc, 'price', 77);
  DELETE FROM orders_p2 WHERE _id::int % 2 = 0; TRUNCATE billing_p1; CREATE TABLE customers_p0 PARTITION OF customers DEFAULT; SELECT reference_refresh('orders'), computed_refresh('customers')" | grep ERROR)$(shop_alive dp_shop_parts)" '' 'partitions are written to, emptied and added'
# PostgreSQL tells nobody of the rows of a partition that is dropped
ask 'DROP TABLE products_p1, orders_p1 CASCADE' >/dev/null
ask "DO \$\$ DECLARE d record; BEGIN FOR d IN SELECT * FROM pattern_list() ORDER BY pattern <> 'reference' LOOP PERFORM pattern_repair(d.rel, d.name); END LOOP; END \$\$; SELECT reference_refresh('orders'), computed_refresh('customers')" >"$DP_WORK/repaired"
is "$(grep ERROR "$DP_WORK/repaired"; shop_wrong | psql -XqAt 2>&1)" '' 'what a partition that is dropped leaves behind is mended'

# What cannot be
refused() {  # refused STATE STATEMENT...
  local state=$1 statement
  shift
  for statement; do
    is "$(ask "$statement" | head -1 | cut -c 1-13; ask "$statement" | grep -c '^DETAIL\|^HINT' | sed 's/[12]/told/')" "ERROR:  $state"$'\n'told "refused: $statement"
  done
}
ask 'CREATE TABLE parted (_id bson_value PRIMARY KEY, doc bson NOT NULL) PARTITION BY HASH (_id); CREATE TABLE part PARTITION OF parted FOR VALUES WITH (modulus 1, remainder 0)'
refused 0A000 "SELECT tree_enable('parted', parent => 'up')" "SELECT single_collection_enable('parted', is_unique => true)"
refused 42809 "SELECT polymorphic_merge('parted', merge_on => 'email', sources => '{customers}')" "SELECT outlier_enable('customers', 'x', 2, extras => 'parted', on_field => 'c')" \
  "SELECT fanout_enable('reviews', walls => 'parted', author => 'by', followers => 'follows', follower => 'reader', followee => 'writer', name => 'again')" \
  "SELECT outlier_enable('part', 'b', 2)" "SELECT subset_fields_enable('part', cold => '{a}')" "SELECT approximation_enable('part', 'v', slots => 2)" "SELECT preallocated_enable('part', 'v', preallocated_pool(2), store => 'slots')" \
  "SELECT tree_attach('part', tree => 'categories', parent => 'category', ancestors => 'trail')" "SELECT computed_enable('part', 'reviews', 'by', '{n: {\$count: {}}}')" "SELECT reference_enable('part', 'b', 'customers', live => '{name}')" \
  "SELECT relationship_enable('part', 'b', 'parted', 'c')"
# what has work to do at the end of statements does not become a partition
ask "CREATE TABLE parted_2 (_id bson_value, doc bson NOT NULL) PARTITION BY LIST (_id); SELECT collection_create('alone'); SELECT outlier_enable('alone', 'b', 2)" >/dev/null
refused 0A000 "ALTER TABLE parted_2 ATTACH PARTITION alone DEFAULT"
is "$(ask 'SELECT v FROM pattern_check() v')" '' 'all is true'
psql -Xq -d postgres -c 'DROP DATABASE dp_shop_parts WITH (FORCE)'
