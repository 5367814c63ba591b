#!/bin/bash
# A shop in which every pattern is declared at once, nineteen of them on the table of products: what one keeps is what others look
# at, copy, count, split, record. Old and new applications write to the tables and through all of their views. First each
# transaction is one statement, then there are more, with savepoints. Everything is true at any moment, no increment is lost whichever
# view it was written through, and plain SQL agrees.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 25
stress_begin dp_shop_stress 20291
stress_setup <<'SQL'
CREATE TABLE bad (what text);
CREATE TABLE done (what text, id int, n bigint);
CREATE SEQUENCE ids CACHE 100;
SELECT collection_create(c) FROM unnest('{categories,makers,products,reviews,customers,orders,billing,prices,screenings}'::text[]) c;
-- products: every pattern that makes sense on one table
SELECT tree_enable('categories', parent => 'up', ancestors => 'above', on_delete => 'reparent'),
       schema_versioning_enable('products', current => 2, write => 'accept'),
       schema_versioning_step('products', 1, 2, up_update => '[{$set: {title: "$name"}}, {$unset: "name"}]', down_update => '[{$set: {name: "$title"}}, {$unset: "title"}]'),
       attribute_enable('products', into_field => 'specs', pattern => 'spec_{k}', is_unique => true),
       payload_enable('products', 'sheet', '{weight: "xpath:/p/@w::int"}'),
       reference_enable('products', 'maker', 'makers', live => '{name}', on_delete => 'unset', missing => 'allow'),
       relation_enable('customers', 'wishes', 'products', 'wished_by'),
       tree_attach('products', tree => 'categories', parent => 'category', ancestors => 'trail'),
       polymorphic_enable('products', by => 'kind', unknown => 'error'),
       polymorphic_variant('products', 'book', schema => '{"required": ["pages"], "properties": {"pages": {"bsonType": "int"}}}'),
       polymorphic_variant('products', 'tool', schema => '{"properties": {"volts": {"bsonType": "int", "minimum": 1}}}'),
       outlier_enable('products', 'buyers', 5, keep => 3, chunk => 4, count_field => 'buyers_n'),
       subset_fields_enable('products', cold => '{manual,notes.long}', name => 'cold'),
       subset_enable('products', field => 'reviews', source => 'reviews', on_field => 'product._id', order_by => '{at: -1}', keep => 3, fields => '{at: 1, stars: 1}', count_field => 'reviews_n'),
       computed_enable('products', 'orders', 'product._id', '{sold: {$sum: "$amount"}, best: {$max: "$amount"}, orders: {$count: {}}}', name => 'sales'),
       approximation_enable('products', 'views', slots => 4),
       approximation_enable('products', 'stock', threshold => '10'),
       versioning_enable('products'),
       change_feed_enable('products', notify => false);
SELECT reference_enable('reviews', 'product', 'products', live => '{kind}', on_delete => 'cascade', missing => 'allow'),
       change_feed_enable('reviews', notify => false);
SELECT reference_enable('orders', 'customer', 'customers', live => '{name}', frozen => '{address}', on_delete => 'unset', missing => 'allow'),
       reference_enable('orders', 'product', 'products', live => '{kind}', frozen => '{price}', on_delete => 'keep', missing => 'allow', refresh => 'deferred'),
       query_table_create('orders_by_customer', source => 'orders', partition => '{customer._id}', clustering => '{at: -1}', fields => '{amount: 1}', types => '{"amount": "int"}'),
       query_table_create('orders_top', source => 'orders', partition => '{product._id}', clustering => '{amount: -1}', fields => '{at: 1}', limit_per_partition => 3),
       rollup_enable('orders', name => 'orders_by_day', time_field => 'at', levels => '{day,month}', fields => '{sum: {$sum: "$amount"}, n: {$count: {}}}'),
       versioning_enable('orders', storage => 'full'), change_feed_enable('orders', notify => false);
SELECT computed_enable('customers', 'orders', 'customer._id', '{spent: {$sum: "$amount"}}', mode => 'deferred'),
       versioning_enable('customers'), attribute_enable('customers', into_field => 'contacts', prefix => 'contact_');
SELECT polymorphic_merge('customers_360', merge_on => 'email', sources => '{customers,billing}', fields => '{customers: {name: 1}}');
SELECT kv_create('sessions'), kv_leaderboard('sessions', 'points', 'customers', score_path => 'points');
SELECT versioning_enable('prices'), preallocated_enable('screenings', 'seats', preallocated_grid(rows => '{6,6}'), available_field => 'free'), versioning_enable('screenings'), change_feed_enable('screenings', notify => false);
SELECT bucket_create('telemetry', columns => 'shop int, ts timestamptz, visitors int', group_by => '{shop}', time_field => 'ts', max_count => 50);
SELECT single_table_create('app', indexes => 1, ttl_field => 'ttl');
SELECT single_table_entity('app', 'cart', pk => 'USER#{user}', sk => 'CART#{cart}', gsi1_pk => 'STATUS#{status}', gsi1_sk => '{cart}'), versioning_enable('app'), change_feed_enable('app', notify => false);
SELECT collection_create('catalog');
SELECT single_collection_enable('catalog', type_field => 'docType', related_field => 'relatedTo', self_related => '{page}'), versioning_enable('catalog'), change_feed_enable('catalog', notify => false);
INSERT INTO categories (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 1 THEN i / 2 END) FROM generate_series(1, 8) i;
INSERT INTO makers (doc) SELECT bson_build('_id', i, 'name', 'm' || i) FROM generate_series(1, 4) i;
INSERT INTO customers (doc) SELECT bson_build('_id', i, 'name', 'c' || i, 'address', 'a' || i, 'email', 'e' || i % 12, 'points', 0) FROM generate_series(0, 11) i;
INSERT INTO billing (doc) SELECT bson_build('_id', i, 'email', 'e' || i, 'balance', 0) FROM generate_series(0, 14) i;
INSERT INTO products (doc) SELECT bson_build('_id', i, 'schema_version', 2, 'title', 't' || i, 'kind', 'book', 'pages', i, 'maker', i % 4 + 1, 'category', i % 8 + 1, 'views', 0, 'stock', 100, 'price', 10 * i) FROM generate_series(1, 10) i;
INSERT INTO screenings (doc) SELECT bson_build('_id', i) FROM generate_series(1, 3) i;
INSERT INTO prices (doc) SELECT bson_build('_id', i, 'price', 10 * i) FROM generate_series(1, 10) i;
SQL

work() {
  stress_awk "$1" "$2" '
    function p() { return r(14) }
    function s() { return r(8) }                    # one of the products that stay
    function q(name) { return "$$" name "$$" }
    function set(rel, field, value, id) { return "UPDATE " rel " SET doc = bson_set(doc, " q(field) ", " value ") WHERE _id = " id ";" }
    function up(rel, op, field, value, id) { return "UPDATE " rel " SET doc = bson_update(doc, bson_build($$$" op "$$, bson_build(" q(field) ", " value "))) WHERE _id = " id ";" }
    function add(rel, field, id) {                  # one more, and a note of it
      return "WITH u AS (UPDATE " rel " SET doc = bson_set(doc, " q(field) ", coalesce((doc -> " q(field) ")::int, 0) + 1) WHERE _id = " id " RETURNING _id) INSERT INTO done SELECT " q(field) ", _id::int FROM u;"
    }
    function product(id, title) {
      return "bson_build($$_id$$, " id ", " title ", $$new$$, $$kind$$, " (r(2) == 1 ? "$$tool$$, $$volts$$, 12" : "$$book$$, $$pages$$, 1") ", $$maker$$, " r(5) ", $$category$$, " r(8) ", $$spec_a$$, 1, $$sheet$$, $$<p w=\"" r(9) "\"/>$$, $$buyers$$, (SELECT bson_agg(b) FROM generate_series(1, " r(9) ") b), $$manual$$, $$long$$, $$wished_by$$, bson_array(" customer() "), $$stock$$, 50, $$price$$, " r(90) ")"
    }
    function review() { return "bson_build($$_id$$, nextval($$ids$$), $$product$$, " p() ", $$at$$, " r(1000) ", $$stars$$, " r(5) ")" }
    function order() { return "bson_build($$_id$$, nextval($$ids$$), $$product$$, " p() ", $$customer$$, " customer() ", $$amount$$, " r(50) ", $$at$$, timestamptz $$2024-01-30$$ + " r(100) " * interval $$1 hour$$)" }
    function customer() { return r(12) }
    function some(rel) { return "_id IN (SELECT _id FROM " rel " WHERE _id > (SELECT last_value FROM ids) * " rand() " ORDER BY _id LIMIT " r(3) " FOR UPDATE)" }
    function of_products(   w) {
      w = r(tag == "alone" ? 18 : 25)
      if (w == 1) return add("products", "in_table", s())
      if (w == 2) return add("products_v1", "in_old", s())
      if (w == 3) return add("products_current", "in_current", s())
      if (w == 4) return add("products_wide", "spec_n", s())
      if (w == 5) return add("products_whole", "in_whole", s())
      if (w == 6) return add("products_book", "in_book", s())
      if (w == 7) { k = s(); return "WITH v AS (INSERT INTO done SELECT $$views$$, " k " FROM products WHERE _id = " k " FOR KEY SHARE RETURNING 1) SELECT approximation_add($$products$$, " k ", 1, name => $$views$$) FROM v;" }
      if (w == 8) { k = s(); return "WITH v AS (INSERT INTO done VALUES ($$buyers$$, " k ") RETURNING 1) SELECT outlier_push($$products$$, " k ", nextval($$ids$$)) FROM v;" }
      if (w == 9) return set("products", "stock", r(100), p())
      if (w == 10) return set("products_whole", "manual", "repeat($$long$$, " r(9) ")", p())
      if (w == 11) return set("products", "sheet", "$$<p w=\"" r(99) "\">$$ || repeat($$.$$, " r(200) ") || $$</p>$$", p())
      if (w == 12) return set("products", "maker", r(5), p())
      if (w == 13) return set("products", "category", r(8), p())
      if (w == 14) return set("products_v1", "name", "$$n" r(99) "$$", p())
      if (w == 15) return set("products_tool", "volts", r(3) - 1, p())
      if (w == 16) return "SELECT schema_versioning_read($$products$$, " p() ");"
      if (w <= 18) return "SELECT doc FROM products_whole WHERE _id = " p() "; SELECT doc FROM products_wide WHERE _id = " p() ";"
      if (w == 19) return set("products_whole", "buyers", "(SELECT bson_agg(b) FROM generate_series(1, " r(12) ") b)", 8 + r(6))
      if (w == 20) return up("products", "unset", (r(2) == 1 ? "notes" : "manual"), "1", 8 + r(6))
      if (w == 21) return "SELECT count(*), count(outlier_pull($$products$$, _id, " r(9) ")) FROM products WHERE _id = " 8 + r(6) ";"
      if (w == 22) return "INSERT INTO products (doc) VALUES (" product(8 + r(6), "$$schema_version$$, 2, $$title$$") ") ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;"
      if (w == 23) return "INSERT INTO products (doc) VALUES (" product(8 + r(6), "$$name$$") ") ON CONFLICT (_id) DO UPDATE SET doc = bson_set(products.doc, $$price$$, EXCLUDED.doc -> $$price$$);"
      if (w == 24) return "INSERT INTO products_" (r(2) == 1 ? "v1" : "whole") " (doc) VALUES (" product(8 + r(6), "$$name$$") ");"
      return "DELETE FROM products" substr("      _whole_v1   _wide ", 6 * r(4) - 5, 6) " WHERE _id = " 8 + r(6) ";"
    }
    function of_sources(   w) {
      w = r(12)
      if (w <= 2) return "INSERT INTO reviews (doc) VALUES (" review() ");"
      if (w == 3) return "INSERT INTO reviews (doc) VALUES (" review() "), (" review() "), (" review() ");"
      if (w == 4) return "DELETE FROM reviews WHERE " some("reviews") ";"
      if (w == 5) return "UPDATE reviews SET doc = bson_set(doc, $$product$$, " p() ") WHERE " some("reviews") ";"
      if (w == 6) return "UPDATE reviews SET doc = bson_set(doc, $$at$$, " r(1000) ") WHERE " some("reviews") ";"
      if (w <= 8) return "INSERT INTO orders (doc) VALUES (" order() ");"
      if (w == 9) return "INSERT INTO orders (doc) VALUES (" order() "), (" order() "), (" order() ");"
      if (w == 10) return "DELETE FROM orders WHERE " some("orders") ";"
      if (w == 11) return "UPDATE orders SET doc = bson_set(doc, $$" (r(2) == 1 ? "product" : "customer") "$$, " r(12) ") WHERE " some("orders") ";"
      return "UPDATE orders SET doc = bson_set(bson_set(doc, $$amount$$, " r(50) "), $$at$$, timestamptz $$2024-01-30$$ + " r(100) " * interval $$1 hour$$) WHERE " some("orders") ";"
    }
    function of_others(   w) {
      w = r(20)
      if (w == 1) return set("customers", "points", r(1000), customer())
      if (w == 2) return set("customers_wide", "contact_" substr("abc", r(3), 1), r(100), customer())
      if (w == 3) return up("customers", (r(2) == 1 ? "addToSet" : "pull"), "wishes", s(), customer())
      if (w == 4) return set("billing", "balance", r(1000), r(15))
      if (w == 5) return set("billing", "email", "$$e" r(15) "$$", r(15))
      if (w == 6) return "INSERT INTO billing (doc) VALUES (bson_build($$_id$$, " 15 + r(3) ", $$email$$, $$e" r(18) "$$)) ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;"
      if (w == 7) return "DELETE FROM billing WHERE _id = " 15 + r(3) ";"
      if (w == 8) return up("prices", "inc", "price", 1, r(10))
      if (w <= 10) return "SELECT preallocated_" (r(3) == 1 ? "release(" : r(2) == 1 ? "confirm(" : "claim(hold_for => $$" r(20) " ms$$, ") "rel => $$screenings$$, key => " r(3) ", slots => ARRAY[$$A" r(6) "$$, $$B" r(6) "$$], holder => $$h" r(3) "$$);"
      if (w == 11) return set("screenings", "title", r(1000), r(3))
      if (w == 12) return "INSERT INTO telemetry SELECT " r(3) ", timestamptz $$2024-01-30$$ + " r(10000) " * interval $$1 minute$$, 1 FROM generate_series(1, " r(9) ");"
      if (w == 13) return "SELECT bucket_pack($$telemetry$$);"
      if (w == 14) return "SELECT single_table_put($$app$$, $$cart$$, bson_build($$user$$, " r(3) ", $$cart$$, " r(5) ", $$status$$, $$s" r(3) "$$));"
      if (w == 15) return "SELECT single_table_delete($$app$$, $$USER#" r(3) "$$, $$CART#" r(5) "$$);"
      if (w == 16) return "SELECT kv_hset($$sessions$$, $$user:" r(5) "$$, $$page$$, " r(10) "), kv_zincrby($$sessions$$, $$seen$$, 1, $$page" r(9) "$$);"
      if (w == 17) return "SELECT kv_expire($$sessions$$, $$user:" r(5) "$$, " r(2) - 1 ");"
      if (w == 18) return "INSERT INTO catalog (doc) VALUES (bson_build($$_id$$, " r(12) ", $$docType$$, " (r(3) == 1 ? "$$page$$" : "$$note$$, $$relatedTo$$, bson_array(" r(6) ")") ")) ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;"
      if (w == 19) return "DELETE FROM catalog WHERE _id = " r(12) ";"
      return "SELECT kv_zrange($$sessions$$, $$seen$$, 0, 3);"
    }
    function of_many(   w) {                        # what goes from a source to those that copy it, and whole tables
      w = r(16)
      if (w <= 2) return set("makers", "name", "$$m" r(99) "$$", r(5))
      if (w == 3) return "INSERT INTO makers (doc) VALUES (bson_build($$_id$$, 5, $$name$$, $$five$$)) ON CONFLICT DO NOTHING;"
      if (w == 4) return "DELETE FROM makers WHERE _id = 5;"
      if (w <= 6) return set("customers", (r(2) == 1 ? "name" : "address"), "$$c" r(99) "$$", customer())
      if (w == 7) return set("customers", "email", "$$e" r(15) "$$", customer())
      if (w == 8) return client == 1 ? set("categories", "up", r(8), r(8)) : set("categories", "name", r(8), r(8))
      if (w == 9) return set("products", "kind", (r(2) == 1 ? "$$tool$$" : "$$book$$"), p())
      if (w == 10) return set("products", "_id", 8 + r(6), 8 + r(6))
      if (w == 11) return "CALL schema_versioning_migrate($$products$$, batch => NULL" (r(3) == 1 ? ", target => 1" : "") ");"
      if (w == 12) return "SELECT versioning_revert($$products$$, " 8 + r(6) ", " r(6) ");"
      if (w == 13) return up("products", (r(2) == 1 ? "addToSet" : "pull"), "wished_by", customer(), p())
      if (w == 14) return "SELECT reference_refresh($$orders$$), computed_refresh($$customers$$);"
      if (w == 15) return "SELECT approximation_sync($$products$$, $$views$$);"
      return r(20) == 1 ? "DELETE FROM " (r(2) == 1 ? "reviews;" : "orders;") : "SELECT kv_purge($$sessions$$);"
    }
    function one(   w) {
      w = r(tag == "alone" ? 10 : 12)
      return w <= 5 ? of_products() : w <= 7 ? of_sources() : w <= 10 ? of_others() : of_many()
    }
    # in a transaction of its own: one that has written sees, from REPEATABLE READ on, what it derived from rows newer than its snapshot
    function check() {
      return "INSERT INTO bad SELECT concat_ws($$ $$, $$" tag "$$, current_setting($$transaction_isolation$$), x) FROM pattern_check($$" (r(2) == 1 ? "products" : r(2) == 1 ? "orders" : "customers") "$$) x;"
    }
    BEGIN {
      for (i = 0;; i++) {
        if (r(50) == 1) { print level() check() " COMMIT;"; continue }
        printf "%s%s", level(), one()
        if (tag != "alone") {
          if (r(6) == 1) printf " SAVEPOINT a; %s ROLLBACK TO a;", one()
          if (r(3) == 1) printf " %s", one()
        }
        print r(12) == 1 ? " ROLLBACK;" : " COMMIT;"
      }
    }'
}
stress_run alone $((seconds / 2))
stress_run mixed $((seconds - seconds / 2))
ask "SELECT format('# %s increments; %s revisions and %s changes of products', (SELECT count(*) FROM done), (SELECT count(*) FROM products_revisions), (SELECT count(*) FROM products_feed))"
is "$(stress_count 40P01 alone)" 0 'no transaction of one statement waited for one that waited for it'
is "$(ask 'SELECT * FROM bad LIMIT 3')" '' 'the patterns were true at any moment'
ask "SELECT reference_refresh('orders'), computed_refresh('customers')" >/dev/null
is "$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' 'and are true afterwards'
is "$(stress_others 'ERROR:  23505: \(duplicate key value violates unique constraint "products_pkey"\|table public.\(billing\|customers\) has more than one document\)\|ERROR:  23503: a document of table public.\(catalog\|products\)\|ERROR:  23514: document is not valid for variant\|ERROR:  23514: \(a node\|node [0-9]*\) of table public.categories\|ERROR:  22023: \(document [0-9]* of table public.products has no revision\|there is no document in revision\)\|ERROR:  P0002: table public.products has no document')" '' \
  'errors are serialization failures, deadlocks, and refusals that are meant'
ok 'much was written' [ "$(ask 'SELECT count(*) > 20 FROM done')" = t ]

# what was written, and through which view
lost() {  # lost FIELD EXPRESSION RELATION
  ask "SELECT d._id, $2, n FROM (SELECT generate_series(1, 8) AS id) i LEFT JOIN (SELECT id, count(*) AS n FROM done WHERE what = '$1' GROUP BY 1) w USING (id) LEFT JOIN $3 d ON d._id = i.id WHERE ($2)::bigint IS DISTINCT FROM coalesce(n, 0)"
}
for field in in_table in_old in_current in_whole in_book; do
  is "$(lost $field "coalesce((doc -> '$field')::int, 0)" products)" '' "no increment is lost: $field"
done
is "$(lost spec_n "coalesce((doc -> 'spec_n')::int, 0)" products_wide)" '' 'nor one of a packed attribute'
is "$(lost views "(doc -> 'views')::int" products_whole)" '' 'nor one that slots counted'
is "$(lost buyers "coalesce(bson_array_length(doc, 'buyers'), 0)" products_whole)" '' 'nor a buyer'

# the same in plain SQL
is "$(ask "SELECT p._id FROM products p LEFT JOIN (SELECT doc -> 'product._id' AS p, count(*) AS n, sum((doc -> 'amount')::int) AS s, max((doc -> 'amount')::int) AS best FROM orders GROUP BY 1) q ON q.p = p._id
  WHERE ((doc -> 'orders')::bigint, (doc -> 'sold')::bigint, (doc -> 'best')::int) IS DISTINCT FROM (coalesce(q.n, 0), coalesce(q.s, 0), q.best)")" '' 'what was sold'
is "$(ask "SELECT p._id FROM products p WHERE doc -> 'reviews' IS DISTINCT FROM coalesce((SELECT bson_agg(bson_build('at', q.doc -> 'at', 'stars', q.doc -> 'stars') ORDER BY q.n)
  FROM (SELECT doc, row_number() OVER (ORDER BY doc -> 'at' DESC, _id) AS n FROM reviews WHERE doc -> 'product._id' = p._id) q WHERE q.n <= 3), '[]')
  OR (doc ->> 'reviews_n')::int <> (SELECT count(*) FROM reviews WHERE doc -> 'product._id' = p._id)")" '' 'the last reviews'
is "$(ask "SELECT count(*) FROM orders o JOIN customers c ON c._id = o.doc -> 'customer._id' WHERE (o.doc -> 'customer.name') IS DISTINCT FROM (c.doc -> 'name')")" 0 'names in orders'
is "$(ask "SELECT count(*) FROM orders o JOIN products p ON p._id = o.doc -> 'product._id' WHERE (o.doc -> 'product.kind') IS DISTINCT FROM (p.doc -> 'kind')")" 0 'kinds, which wait in a queue'
is "$(ask "SELECT count(*) FROM products p JOIN makers m ON m._id = p.doc -> 'maker._id' WHERE (p.doc -> 'maker.name') IS DISTINCT FROM (m.doc -> 'name')")" 0 'makers of products'
is "$(ask "SELECT count(*) FROM products_whole WHERE (doc ->> 'sheet') IS NOT NULL AND (doc -> 'weight')::int IS DISTINCT FROM ((xpath('/p/@w', (doc ->> 'sheet')::xml))[1]::text)::int")" 0 'what stands in payloads'
is "$(ask "WITH a AS (SELECT c._id AS c, v AS p FROM customers c CROSS JOIN LATERAL bson_values(c.doc, 'wishes') v), b AS (SELECT v AS c, p._id AS p FROM products p CROSS JOIN LATERAL bson_values(p.doc, 'wished_by') v)
  SELECT count(*) FROM a FULL JOIN b USING (c, p) WHERE a.c IS NULL OR b.c IS NULL")" 0 'wishes, from both sides'
is "$(ask "SELECT count(*) FROM (SELECT customer_id, amount, at FROM (SELECT \"customer._id\" AS customer_id, amount, at FROM orders_by_customer) t EXCEPT ALL SELECT doc -> 'customer._id', (doc -> 'amount')::int, doc -> 'at' FROM orders WHERE doc ? 'customer._id') q")" 0 'orders by customer'
is "$(ask "SELECT count(*) FROM (SELECT doc -> 'start' AS t, doc FROM orders_by_day WHERE doc ->> 'level' = 'day') b
  FULL JOIN (SELECT date_trunc('day', (doc -> 'at')::timestamptz, 'UTC')::bson_value AS t, count(*) AS n, sum((doc -> 'amount')::int) AS s FROM orders GROUP BY 1) q USING (t)
  WHERE ((b.doc -> 'n')::bigint, (b.doc -> 'sum')::bigint) IS DISTINCT FROM (q.n, q.s)")" 0 'orders by day'
is "$(ask "SELECT count(*) FROM (SELECT member, score::text FROM kv_zrange('sessions', 'points', 0, -1)) b FULL JOIN (SELECT _id AS member, doc ->> 'points' AS score FROM customers) c USING (member) WHERE b.score IS DISTINCT FROM c.score")" 0 'the board of customers'
is "$(ask "SELECT key FROM (SELECT DISTINCT ON (key) key, operation, document FROM change_feed_read('products', NULL, 1000000) ORDER BY key, position DESC) f FULL JOIN products p ON p._id = f.key
  WHERE p.doc::bytea IS DISTINCT FROM CASE WHEN f.operation <> 'delete' THEN f.document::bytea END")" '' 'the feed leads to the table'
is "$(ask "SELECT a.key FROM versioning_as_of('products', 'infinity') a FULL JOIN products p ON p._id = a.key WHERE a.doc::bytea IS DISTINCT FROM p.doc::bytea")" '' 'so does the history'
stress_end
