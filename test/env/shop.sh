# For the scripts test/t/shop_*.sh, which source it: a shop in which every pattern is declared, nineteen of them on the table of
# products, and what has to hold in it. Who calls sets PGUSER to the owner of it all.
#
#   shop_fill DATABASE [KIND]   makes the tables, declares and fills (the database has the extension). KIND is what the tables are
#                               that need not be collections: collection (also those), plain (the key is an int, and there are
#                               columns beside the document), hash or range (partitioned by the key)
#   shop_writes                 prints SQL that writes through every pattern, each statement a transaction of its own, in READ
#                               COMMITTED, REPEATABLE READ and SERIALIZABLE by turns; it can be run any number of times
#   shop_wrong                  prints SQL that prints what is not true: pattern_check(), and the same again in plain SQL
#   shop_alive DATABASE [SQL]   does the writes, then the SQL, and the writes once more in the same session, and prints errors and
#                               what is wrong: nothing
#
# In what shop_writes and shop_wrong print, tables are psql's variables of their name, and their columns :id and :doc, so that
# they can be called something else: SHOP_NAMES has \set commands for it, SHOP_WERE those for the writes before the SQL.

# Tables that can be of any kind
shop_tables='makers products reviews customers orders billing prices screenings catalog follows pages'

shop_fill() {
  { echo "\\set kind ${2:-collection}"; echo "\\set tables '{${shop_tables// /,}}'"; cat <<'SQL'; } | psql -XqAt -v ON_ERROR_STOP=1 -d "$1" >/dev/null || echo 'not ok 0 - the shop was made'
CREATE FUNCTION pg_temp.make(name text, kind text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF kind = 'collection' THEN
    PERFORM collection_create(name);
  ELSIF kind = 'plain' THEN
    EXECUTE format('CREATE TABLE %I (gone text, _id int PRIMARY KEY, beside int DEFAULT 1, doc bson NOT NULL, note text)', name);
  ELSE
    EXECUTE format('CREATE TABLE %1$I (_id bson_value PRIMARY KEY, doc bson NOT NULL) PARTITION BY %2$s (_id)', name, kind);
    IF kind = 'hash' THEN
      EXECUTE format('CREATE TABLE %1$I PARTITION OF %2$I FOR VALUES WITH (modulus 2, remainder 0); CREATE TABLE %3$I PARTITION OF %2$I FOR VALUES WITH (modulus 2, remainder 1)', name || '_p1', name, name || '_p2');
    ELSE
      EXECUTE format('CREATE TABLE %1$I PARTITION OF %2$I FOR VALUES FROM (MINVALUE) TO (5); CREATE TABLE %3$I PARTITION OF %2$I FOR VALUES FROM (5) TO (MAXVALUE)', name || '_p1', name, name || '_p2');
    END IF;
  END IF;
END $$;
SELECT pg_temp.make(name, :'kind') FROM unnest(:'tables'::text[]) AS name;
SELECT collection_create(name) FROM unnest('{categories,coupons}'::text[]) AS name;

-- products: every pattern that makes sense on one table
SELECT tree_enable('categories', parent => 'up', ancestors => 'above', on_delete => 'reparent'),
       schema_versioning_enable('products', current => 2, write => 'accept'),
       schema_versioning_step('products', 1, 2, up_update => '[{$set: {title: "$name"}}, {$unset: "name"}]', down_update => '[{$set: {name: "$title"}}, {$unset: "title"}]'),
       attribute_enable('products', into_field => 'specs', pattern => 'spec_{k}', is_unique => true),
       payload_enable('products', 'sheet', '{weight: "xpath:/p/@w::int"}'),
       reference_enable('products', 'maker', 'makers', live => '{name}', on_delete => 'unset', missing => 'allow'),
       relationship_enable('customers', 'wishes', 'products', 'wished_by'),
       tree_attach('products', tree => 'categories', parent => 'category', ancestors => 'trail'),
       polymorphic_enable('products', by => 'kind', unknown => 'error'),
       polymorphic_variant('products', 'book', schema => '{"required": ["pages"], "properties": {"pages": {"bsonType": "int"}}}'),
       polymorphic_variant('products', 'tool', schema => '{"properties": {"volts": {"bsonType": "int", "minimum": 1}}}'),
       polymorphic_variant('products', 'kit', schema => '{"required": ["manual", "buyers"], "properties": {"buyers": {"bsonType": "array", "minItems": 4}}}'),
       outlier_enable('products', 'buyers', 5, keep => 3, chunk => 4, count_field => 'buyers_n'),
       subset_fields_enable('products', cold => '{manual,notes.long}', name => 'cold'),
       subset_enable('products', field => 'reviews', source => 'reviews', on_field => 'product._id', order_by => '{at: -1}', keep => 3, fields => '{at: 1, stars: 1}', count_field => 'reviews_n'),
       computed_enable('products', 'orders', 'product._id', '{sold: {$sum: "$amount"}, best: {$max: "$amount"}, orders: {$count: {}}}', name => 'sales'),
       rollup_enable('products', name => 'products_by_category', tree => 'categories', group_by => '{category}', fields => '{n: {$count: {}}, worth: {$sum: "$price"}}'),
       approximation_enable('products', 'views', slots => 4),
       approximation_enable('products', 'stock', threshold => '10'),
       versioning_enable('products'),
       change_feed_enable('products', notify => false);
SELECT reference_enable('reviews', 'product', 'products', live => '{kind}', on_delete => 'cascade', missing => 'allow'),
       fanout_enable('reviews', walls => 'walls', author => 'by', followers => 'follows', follower => 'reader', followee => 'writer', keep => 4, celebrity_threshold => 4, order_by => '{at: -1}'),
       change_feed_enable('reviews', notify => false);
SELECT reference_enable('orders', 'customer', 'customers', live => '{name}', frozen => '{address}', on_delete => 'unset', missing => 'allow'),
       reference_enable('orders', 'product', 'products', live => '{kind}', frozen => '{price}', on_delete => 'keep', missing => 'allow', refresh => 'deferred'),
       query_table_create('orders_by_customer', source => 'orders', partition => '{customer._id}', clustering => '{at: -1}', fields => '{amount: 1}', types => '{"amount": "int"}'),
       query_table_create('orders_top', source => 'orders', partition => '{product._id}', clustering => '{amount: -1}', fields => '{at: 1}', limit_per_partition => 3),
       rollup_enable('orders', name => 'orders_by_day', time_field => 'at', levels => '{day,month}', fields => '{sum: {$sum: "$amount"}, n: {$count: {}}}'),
       versioning_enable('orders', storage => 'full'), change_feed_enable('orders', notify => false);
SELECT computed_enable('customers', 'orders', 'customer._id', '{spent: {$sum: "$amount"}}', mode => 'deferred'),
       computed_enable('customers', 'reviews', 'by', '{written: {$count: {}}}', mode => 'on_read'),
       outlier_enable('customers', 'coupons', 2, extras => 'coupons', on_field => 'customer', flag => 'more_coupons'),
       versioning_enable('customers'), attribute_enable('customers', into_field => 'contacts', prefix => 'contact_');
SELECT polymorphic_merge('customers_360', merge_on => 'email', sources => '{customers,billing}', fields => '{customers: {name: 1}}');
SELECT kv_create('sessions'), kv_leaderboard('sessions', 'points', 'customers', score_path => 'points');
SELECT versioning_enable('prices'), preallocated_enable('screenings', 'seats', preallocated_grid(rows => '{6,6}'), store => 'slots', available_field => 'free'), versioning_enable('screenings'), change_feed_enable('screenings', notify => false);
SELECT bucket_create('telemetry', columns => 'shop int, ts timestamptz, visitors int', group_by => '{shop}', time_field => 'ts', max_count => 50);
SELECT single_table_create('app', indexes => 1, ttl_field => 'ttl');
SELECT single_table_entity('app', 'cart', pk => 'USER#{user}', sk => 'CART#{cart}', gsi1_pk => 'STATUS#{status}', gsi1_sk => '{cart}'), versioning_enable('app'), change_feed_enable('app', notify => false);
SELECT single_collection_enable('catalog', type_field => 'docType', related_field => 'relatedTo', self_related => '{page}'), versioning_enable('catalog'), change_feed_enable('catalog', notify => false), ttl_enable('catalog', 'until', '1 day');
SELECT approximation_enable('pages', 'hits', step => 5);

INSERT INTO categories (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 1 THEN i / 2 END) FROM generate_series(1, 8) i;
INSERT INTO makers (_id, doc) SELECT i, bson_build('_id', i, 'name', 'm' || i) FROM generate_series(1, 4) i;
INSERT INTO customers (_id, doc) SELECT i, bson_build('_id', i, 'name', 'c' || i, 'address', 'a' || i, 'email', 'e' || i % 12, 'points', 0) FROM generate_series(0, 11) i;
INSERT INTO billing (_id, doc) SELECT i, bson_build('_id', i, 'email', 'e' || i, 'balance', 0) FROM generate_series(0, 14) i;
INSERT INTO products (_id, doc) SELECT i, bson_build('_id', i, 'schema_version', 2, 'title', 't' || i, 'kind', 'book', 'pages', i, 'maker', i % 4 + 1, 'category', i % 8 + 1, 'views', 0, 'stock', 100, 'price', 10 * i) FROM generate_series(1, 10) i;
INSERT INTO screenings (_id, doc) SELECT i, bson_build('_id', i) FROM generate_series(1, 3) i;
INSERT INTO prices (_id, doc) SELECT i, bson_build('_id', i, 'price', 10 * i) FROM generate_series(1, 10) i;
INSERT INTO follows (_id, doc) SELECT i, bson_build('_id', i, 'reader', i % 5, 'writer', i % 7) FROM generate_series(1, 20) i;
INSERT INTO pages (_id, doc) SELECT i, bson_build('_id', i, 'hits', 0) FROM generate_series(1, 3) i;
CREATE SEQUENCE rounds START 2;
SQL
}

# Names of tables and columns, which SHOP_NAMES may change.
shop_names() {
  local name
  for name in $shop_tables categories coupons; do echo "\\set $name $name"; done
  printf '%s\n' '\set id _id' '\set doc doc' "${SHOP_NAMES:-}"
}

# Each statement is a transaction. Nothing is printed but errors.
shop_writes() {
  shop_names
  cat <<'SQL'
SELECT 1000 * nextval('rounds') AS n \gset
\o /dev/null
SET default_transaction_isolation = 'read committed';
TRUNCATE :reviews;
INSERT INTO :customers (:id, :doc) VALUES (:n, bson_build('_id', :n, 'name', 'new', 'address', 'far', 'email', 'e' || :n, 'points', 5, 'contact_a', 1, 'coupons', bson_array(bson_build('_id', :n + 1), bson_build('_id', :n + 2), bson_build('_id', :n + 3))));
INSERT INTO :makers (:id, :doc) VALUES (5, bson_build('_id', 5, 'name', 'five')) ON CONFLICT DO NOTHING;
INSERT INTO :products (:id, :doc) SELECT :n + i, bson_build('_id', :n + i, 'name', 'p' || i, 'kind', CASE WHEN i % 2 = 0 THEN 'tool' ELSE 'book' END, 'pages', i, 'volts', 12, 'maker', i, 'category', i, 'spec_a', i, 'spec_b', 'b', 'sheet', format('<p w="%s"/>', i),
  'buyers', (SELECT bson_agg(b) FROM generate_series(1, 3 * i) b), 'manual', 'long', 'notes', bson_build('long', 'l', 'short', 's'), 'wished_by', bson_array(i), 'stock', 50, 'price', i, 'views', i) FROM generate_series(1, 6) i;
INSERT INTO :products (:id, :doc) SELECT p.:id, p.:doc FROM :products p WHERE p.:id = :n + 1 ON CONFLICT DO NOTHING;
INSERT INTO :products (:id, :doc) VALUES (:n + 2, bson_build('_id', :n + 2, 'name', 'again', 'kind', 'book', 'pages', 1, 'spec_c', 1, 'buyers', bson_array(1, 2, 3, 4, 5, 6, 7, 8), 'manual', 'other', 'sheet', '<p w="9"/>', 'maker', 5, 'category', 7, 'price', 7)) ON CONFLICT (:id) DO UPDATE SET :doc = EXCLUDED.:doc;
SET default_transaction_isolation = 'repeatable read';
MERGE INTO :products p USING (SELECT :n + i AS id, bson_build('_id', :n + i, 'schema_version', 2, 'title', 'merged', 'kind', 'book', 'pages', i, 'category', i - 4, 'price', i) AS doc FROM generate_series(6, 8) i) s ON p.:id = s.id
  WHEN MATCHED THEN UPDATE SET :doc = bson_set(p.:doc, 'price', s.doc -> 'price') WHEN NOT MATCHED THEN INSERT (:id, :doc) VALUES (s.id, s.doc);
UPDATE products_v1 SET doc = bson_set(doc, 'name', 'old ' || :n) WHERE _id IN (1, :n + 1, :n + 2);
UPDATE products_current SET doc = bson_set(doc, 'title', 'new ' || :n) WHERE _id IN (2, :n + 3);
UPDATE products_wide SET doc = bson_set(doc, 'spec_n', :n) WHERE _id IN (3, :n + 3);
SET default_transaction_isolation = 'serializable';
UPDATE products_whole SET doc = bson_set(bson_set(bson_array_append(doc, 'buyers', :n), 'manual', 'whole ' || :n), 'sheet', format('<p w="%s"/>', :n)) WHERE _id IN (4, :n + 4);
UPDATE products_book SET doc = bson_set(doc, 'pages', :n) WHERE _id IN (5, :n + 1);
INSERT INTO products_whole (_id, doc) VALUES (:n + 9, bson_build('_id', :n + 9, 'name', 'in the view', 'kind', 'kit', 'spec_w', 1, 'buyers', bson_array(1, 2, 3, 4, 5, 6), 'manual', 'm'));
UPDATE :products SET :doc = bson_set(:doc, 'price', 5) WHERE :id = :n + 9;
INSERT INTO products_v1 (_id, doc) VALUES (:n + 10, bson_build('_id', :n + 10, 'name', 'in the old view', 'kind', 'tool', 'maker', 2, 'manual', 'm', 'price', 3));
SELECT approximation_add(:'products', 5, 3, name => 'views'), approximation_add(:'products', :n + 1, 2, name => 'views'), outlier_push(:'products', 6, :n), outlier_push(:'products', :n + 2, :n), outlier_pull(:'products', :n + 4, 2), schema_versioning_read(:'products', 7);
UPDATE :products SET :doc = bson_set(:doc, 'stock', (:doc -> 'stock')::int + 3) WHERE :id <= 10;
SET default_transaction_isolation = 'read committed';
UPDATE :products SET :doc = bson_update(:doc, bson_build('$set', bson_build('maker', 1, 'category', 3, 'price', :n, 'sheet', '<p w="1"/>'))) WHERE :id = 8;
UPDATE :products SET :doc = bson_update(:doc, bson_build('$addToSet', bson_build('wished_by', 7))) WHERE :id IN (2, 3);
UPDATE :customers SET :doc = bson_update(:doc, bson_build(CASE WHEN :n / 1000 % 2 = 0 THEN '$pull' ELSE '$addToSet' END, bson_build('wishes', 9))) WHERE :id IN (2, 3, :n);
UPDATE :products SET :id = :n + 20, :doc = bson_set(:doc, '_id', :n + 20) WHERE :id = :n + 3;
UPDATE :products SET :id = - :n, :doc = bson_set(:doc, '_id', - :n) WHERE :id = :n + 4;
CALL schema_versioning_migrate(:'products', batch => NULL);
SET default_transaction_isolation = 'repeatable read';
SELECT versioning_revert(:'products', 2, 1);
INSERT INTO :reviews (:id, :doc) SELECT :n + i, bson_build('_id', :n + i, 'product', (ARRAY[1, 2, :n + 1, :n + 2])[i % 4 + 1], 'at', i * 7 % 50, 'stars', i % 5, 'by', i % 7) FROM generate_series(1, 20) i;
UPDATE :reviews SET :doc = bson_set(:doc, 'product', 3) WHERE :id IN (:n + 1, :n + 2);
UPDATE :reviews SET :doc = bson_set(bson_set(:doc, 'at', 99), 'by', 1) WHERE :id IN (:n + 3, :n + 4);
DELETE FROM :reviews WHERE :id IN (:n + 5, :n + 6, :n + 7);
INSERT INTO :follows (:id, :doc) SELECT :n + i, bson_build('_id', :n + i, 'reader', i, 'writer', 6) FROM generate_series(1, 3) i;
DELETE FROM :follows WHERE :id IN (:n + 1, :n - 998);
INSERT INTO :orders (:id, :doc) SELECT :n + i, bson_build('_id', :n + i, 'product', (ARRAY[1, 2, :n + 1, :n + 2])[i % 4 + 1], 'customer', i % 12, 'amount', i, 'at', timestamptz '2024-01-30 00:00Z' + i * interval '7 hours') FROM generate_series(1, 20) i;
UPDATE :orders SET :doc = bson_set(bson_set(:doc, 'amount', 100), 'customer', 5) WHERE :id IN (:n + 1, :n + 2);
UPDATE :orders SET :doc = bson_set(bson_set(:doc, 'product', 4), 'at', timestamptz '2024-03-01 00:00Z') WHERE :id = :n + 3;
SET default_transaction_isolation = 'serializable';
DELETE FROM :orders WHERE :id BETWEEN :n + 4 AND :n + 9 OR :id BETWEEN :n - 1000 AND :n - 990;
UPDATE :makers SET :doc = bson_set(:doc, 'name', 'maker ' || :n) WHERE :id IN (1, 2, 5);
UPDATE :customers SET :doc = bson_set(bson_set(bson_set(:doc, 'name', 'n' || :n), 'address', 'a' || :n), 'points', :n) WHERE :id IN (1, 5, 6);
UPDATE customers_wide SET doc = bson_set(doc, 'contact_b', :n) WHERE _id = 2;
UPDATE customers_whole SET doc = bson_array_append(doc, 'coupons', bson_build('_id', :n + 4 + _id::int % 1000)) WHERE _id IN (3, :n);
SELECT outlier_push_into(:'customers', 'coupons', 4, bson_build('_id', :n + 5));
INSERT INTO :coupons (doc) VALUES (bson_build('_id', :n + 6, 'customer', 4));
UPDATE :customers SET :doc = bson_set(:doc, 'email', 'g' || (:n / 1000)) WHERE :id = 7;
UPDATE :billing SET :doc = bson_set(bson_set(:doc, 'balance', :n), 'email', 'f' || (:n / 1000 % 3)) WHERE :id = 3;
INSERT INTO :billing (:id, :doc) VALUES (:n, bson_build('_id', :n, 'email', 'e' || :n, 'balance', 1));
DELETE FROM :billing WHERE :id = :n - 1000;
DELETE FROM :makers WHERE :id = 5;
DELETE FROM :products WHERE :id = :n + 6;
DELETE FROM products_whole WHERE _id = :n + 8;
DELETE FROM products_v1 WHERE _id = :n - 998;
DELETE FROM :customers WHERE :id = :n - 1000;
SET default_transaction_isolation = 'read committed';
UPDATE :categories SET doc = bson_set(doc, 'up', :n / 1000 % 3 + 1) WHERE _id = 8;
INSERT INTO :categories (doc) VALUES (bson_build('_id', :n, 'up', 8));
DELETE FROM :categories WHERE _id = :n - 1000;
UPDATE :prices SET :doc = bson_update(:doc, '{$inc: {price: 1}}') WHERE :id <= 3;
SELECT preallocated_claim(:'screenings', 1, '{A1}', holder => 'h'), preallocated_claim(:'screenings', 1, '{B2}', holder => 'h', hold_for => '1 day'), preallocated_confirm(:'screenings', 1, '{B2}', holder => 'h');
SELECT preallocated_release(:'screenings', 1, '{A1}', holder => 'h');
UPDATE screenings_whole SET doc = bson_set(doc, 'title', 'film ' || :n) WHERE _id = 1;
INSERT INTO telemetry SELECT i % 3, timestamptz '2024-01-30 00:00Z' + (:n + i) * interval '1 minute', i FROM generate_series(1, 80) i;
SELECT bucket_pack('telemetry');
DELETE FROM telemetry WHERE visitors = 80;
SELECT single_table_put('app', 'cart', bson_build('user', i, 'cart', i, 'status', 's' || :n)) FROM generate_series(1, 3) i;
SELECT single_table_delete('app', 'USER#3', 'CART#3');
SELECT kv_hset('sessions', 'user:' || :n, 'page', 1), kv_zincrby('sessions', 'seen', 1, 'page1');
INSERT INTO :catalog (:id, :doc) VALUES (1, '{_id: 1, docType: "page"}'), (2, '{_id: 2, docType: "page"}') ON CONFLICT (:id) DO UPDATE SET :doc = bson_set(:catalog.:doc, 'n', :n);
INSERT INTO :catalog (:id, :doc) SELECT :n + i, bson_build('_id', :n + i, 'docType', 'note', 'relatedTo', bson_array(i)) FROM generate_series(1, 2) i;
DELETE FROM :catalog WHERE :id = :n - 999;
SELECT approximation_add(:'pages', 1, 10, name => 'hits');
SELECT reference_refresh(:'orders'), computed_refresh(:'customers');
SET default_transaction_isolation = 'read committed';
\o
SQL
}

# Patterns that README knows and the shop does not.
shop_missing() {
  psql -XqAt -d "$1" -c "SELECT DISTINCT CASE pattern WHEN 'subset_fields' THEN 'subset' WHEN 'polymorphic_merge' THEN 'polymorphic' ELSE pattern END FROM pattern_list()" >"$DP_WORK/declared"
  sed -n 's,^| \[.*(docs/patterns/\(.*\)\.md).*,\1,p' "$DP_TOP/README.md" | grep -vxFf "$DP_WORK/declared"
}

# What patterns keep, from the data that it is made of.
shop_wrong() {
  shop_names
  cat <<'SQL'
SELECT 'pattern_check', v::text FROM pattern_check() v LIMIT 10;
SELECT 'sold', p.:id FROM :products p LEFT JOIN (SELECT :doc -> 'product._id' AS p, count(*) AS n, sum((:doc -> 'amount')::int) AS s, max((:doc -> 'amount')::int) AS best FROM :orders GROUP BY 1) q ON q.p = p.:id
  WHERE ((:doc -> 'orders')::bigint, (:doc -> 'sold')::bigint, (:doc -> 'best')::int) IS DISTINCT FROM (coalesce(q.n, 0), coalesce(q.s, 0), q.best);
SELECT 'the last reviews', p.:id FROM :products p WHERE :doc -> 'reviews' IS DISTINCT FROM coalesce((SELECT bson_agg(bson_build('at', q.d -> 'at', 'stars', q.d -> 'stars') ORDER BY q.n)
  FROM (SELECT :doc AS d, row_number() OVER (ORDER BY :doc -> 'at' DESC, :id) AS n FROM :reviews WHERE :doc -> 'product._id' = p.:id) q WHERE q.n <= 3), '[]')
  OR (:doc ->> 'reviews_n')::int <> (SELECT count(*) FROM :reviews r WHERE r.:doc -> 'product._id' = p.:id);
SELECT 'names in orders', o.:id FROM :orders o JOIN :customers c ON c.:id = o.:doc -> 'customer._id' WHERE (o.:doc -> 'customer.name') IS DISTINCT FROM (c.:doc -> 'name');
SELECT 'kinds in orders', o.:id FROM :orders o JOIN :products p ON p.:id = o.:doc -> 'product._id' WHERE (o.:doc -> 'product.kind') IS DISTINCT FROM (p.:doc -> 'kind');
SELECT 'makers of products', p.:id FROM :products p JOIN :makers m ON m.:id = p.:doc -> 'maker._id' WHERE (p.:doc -> 'maker.name') IS DISTINCT FROM (m.:doc -> 'name');
SELECT 'payloads', _id FROM products_whole WHERE (doc ->> 'sheet') IS NOT NULL AND (doc -> 'weight')::int IS DISTINCT FROM ((xpath('/p/@w', (doc ->> 'sheet')::xml))[1]::text)::int;
SELECT 'trails', p.:id FROM :products p JOIN :categories c ON c._id = p.:doc -> 'category' WHERE p.:doc -> 'trail' IS DISTINCT FROM bson_array_append(c.doc, 'above', c._id) -> 'above';
WITH RECURSIVE below AS (SELECT _id AS top, _id AS c FROM :categories UNION SELECT top, _id FROM below JOIN :categories k ON k.doc -> 'up' = c)
  SELECT 'products by category', coalesce(top, r._id) FROM (SELECT top, count(*) AS n, coalesce(sum((p.:doc -> 'price')::int), 0) AS w FROM below JOIN :products p ON p.:doc -> 'category' = c GROUP BY 1) q FULL JOIN products_by_category r ON r._id = top
  WHERE (r.doc -> 'n', r.doc -> 'worth') IS DISTINCT FROM (n::bson_value, w::bson_value) AND (top IS NOT NULL OR EXISTS (SELECT FROM :categories WHERE _id = r._id));
WITH a AS (SELECT c.:id::bson_value AS c, v AS p FROM :customers c CROSS JOIN LATERAL bson_values(c.:doc, 'wishes') v), b AS (SELECT v AS c, p.:id::bson_value AS p FROM :products p CROSS JOIN LATERAL bson_values(p.:doc, 'wished_by') v)
  SELECT 'wishes', c, p FROM a FULL JOIN b USING (c, p) WHERE a.c IS NULL OR b.c IS NULL;
SELECT 'orders by customer', q FROM ((SELECT "customer._id", at, amount, source_key::bson_value FROM orders_by_customer EXCEPT ALL SELECT :doc -> 'customer._id', :doc -> 'at', (:doc -> 'amount')::int, :id::bson_value FROM :orders)
  UNION ALL (SELECT :doc -> 'customer._id', :doc -> 'at', (:doc -> 'amount')::int, :id::bson_value FROM :orders WHERE bson_exists(:doc, 'customer._id') EXCEPT ALL SELECT "customer._id", at, amount, source_key::bson_value FROM orders_by_customer)) q;
SELECT 'top orders', q FROM (SELECT p, count(*) AS n, max(a) AS a FROM (SELECT "product._id" AS p, amount AS a FROM orders_top) t GROUP BY 1 EXCEPT SELECT :doc -> 'product._id', least(count(*), 3), max(:doc -> 'amount') FROM :orders GROUP BY 1) q;
SELECT 'orders by day', t FROM (SELECT doc -> 'start' AS t, doc FROM orders_by_day WHERE doc ->> 'level' = 'day') b
  FULL JOIN (SELECT date_trunc('day', (:doc -> 'at')::timestamptz, 'UTC')::bson_value AS t, count(*) AS n, sum((:doc -> 'amount')::int) AS s FROM :orders GROUP BY 1) q USING (t)
  WHERE ((b.doc -> 'n')::bigint, (b.doc -> 'sum')::bigint) IS DISTINCT FROM (q.n, q.s);
SELECT 'spent', c.:id FROM :customers c WHERE coalesce((:doc -> 'spent')::bigint, 0) <> (SELECT coalesce(sum((o.:doc -> 'amount')::int), 0) FROM :orders o WHERE o.:doc -> 'customer._id' = c.:id);
SELECT 'written', v._id FROM customers_written_view v WHERE (doc -> 'written')::bigint <> (SELECT count(*) FROM :reviews r WHERE r.:doc -> 'by' = v._id);
SELECT 'walls', reader FROM (SELECT DISTINCT :doc -> 'reader' AS reader FROM :follows) f CROSS JOIN LATERAL (SELECT array_agg(key ORDER BY n) AS shown FROM fanout_timeline(:'reviews', reader) WITH ORDINALITY t (key, doc, n)) t
  WHERE shown IS DISTINCT FROM (SELECT array_agg(k ORDER BY n) FROM (SELECT r.:id::bson_value AS k, row_number() OVER (ORDER BY r.:doc -> 'at' DESC, r.:id DESC) AS n FROM :reviews r
    WHERE EXISTS (SELECT FROM :follows f2 WHERE f2.:doc -> 'reader' = reader AND f2.:doc -> 'writer' = r.:doc -> 'by') LIMIT 4) q);
SELECT 'the board', member FROM (SELECT member, score::text FROM kv_zrange('sessions', 'points', 0, -1)) b FULL JOIN (SELECT :id::bson_value AS member, :doc ->> 'points' AS score FROM :customers WHERE bson_exists(:doc, 'points')) c USING (member) WHERE b.score IS DISTINCT FROM c.score;
SELECT 'the single view', e FROM (SELECT :doc ->> 'email' AS e FROM :customers UNION SELECT :doc ->> 'email' FROM :billing) s FULL JOIN (SELECT doc ->> 'email' AS e, doc FROM customers_360) m USING (e)
  WHERE (SELECT :doc -> 'name' FROM :customers WHERE :doc ->> 'email' = e) IS DISTINCT FROM (m.doc -> 'customers.name') OR (SELECT :doc -> 'balance' FROM :billing WHERE :doc ->> 'email' = e) IS DISTINCT FROM (m.doc -> 'billing.balance');
SELECT 'seats', _id FROM screenings_whole WHERE (doc ->> 'free')::int <> (SELECT count(*) FROM preallocated_slots(:'screenings', _id) s WHERE s.holder IS NULL);
SELECT 'the feed', key FROM (SELECT DISTINCT ON (key) key, operation, document FROM change_feed_read(:'products', NULL, 1000000) ORDER BY key, position DESC) f FULL JOIN :products p ON p.:id::bson_value = f.key::bson_value
  WHERE p.:doc::bytea IS DISTINCT FROM CASE WHEN f.operation <> 'delete' THEN f.document::bytea END;
SELECT 'the history', a.key FROM versioning_as_of(:'products', 'infinity') a FULL JOIN :products p ON p.:id = a.key WHERE a.doc::bytea IS DISTINCT FROM p.:doc::bytea;
SQL
}

shop_alive() {
  {
    echo "SET timezone = 'UTC';"
    [ -z "${2:-}" ] || { SHOP_NAMES=${SHOP_WERE:-} shop_writes; printf '\n%s\n' "$2"; }
    shop_writes
    shop_wrong
  } | psql -XqAt -d "$1" 2>&1
}
