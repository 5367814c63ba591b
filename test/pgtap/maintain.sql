-- pattern_due() and pattern_maintain(): deferred work of all patterns.
\set ECHO none
SET client_min_messages = error;
SELECT plan(41);

CREATE ROLE dp_maintain;
CREATE ROLE dp_maintain_other;
GRANT CREATE ON SCHEMA public TO dp_maintain;
GRANT CREATE ON DATABASE :DBNAME TO dp_maintain;
SET ROLE dp_maintain;
SELECT is((SELECT count(*) FROM pattern_due()), 0::bigint, 'nothing is due without patterns');

-- queues
SELECT collection_create(c) FROM unnest(ARRAY['"the customers"', 'orders', 'books', 'pages', 'posts']) c \g /dev/null
SELECT computed_enable('"the customers"', source => 'orders', on_field => 'customer._id', fields => '{spent: {$sum: "$price"}}', mode => 'deferred', name => 'its "sum"'),
  reference_enable('orders', 'customer', '"the customers"', live => '{name}', refresh => 'deferred', name => 'buyer'),
  subset_enable('books', 'newest', source => 'posts', on_field => 'book', keep => 2, order_by => '{_id: -1}', count_field => 'posts', count_mode => 'deferred'),
  outlier_enable('books', 'readers', 2, mode => 'deferred'),
  approximation_enable('pages', 'views', slots => 2) \g /dev/null
INSERT INTO "the customers" (doc) SELECT bson_build('_id', i, 'name', 'old') FROM generate_series(1, 50) i;
INSERT INTO orders (doc) SELECT bson_build('_id', i, 'customer', bson_build('_id', i % 50 + 1), 'price', i) FROM generate_series(1, 500) i;
INSERT INTO books (doc) SELECT bson_build('_id', i, 'readers', '[1, 2, 3]'::bson_value) FROM generate_series(1, 5) i;
INSERT INTO posts (doc) SELECT bson_build('_id', i, 'book', i % 5 + 1) FROM generate_series(1, 20) i;
INSERT INTO pages (doc) VALUES ('{_id: 1, views: 0}');
SELECT approximation_add('pages', 1, 1) \g /dev/null
UPDATE "the customers" SET doc = bson_set(doc, 'name', 'new');
SELECT set_eq('SELECT rel::text, pattern, name, what FROM pattern_due()',
  $$VALUES ('"the customers"', 'computed', 'its "sum"', 'changes of groups'), ('books', 'outlier', 'readers', 'documents to split'),
    ('books', 'subset', 'newest', 'groups to count'), ('orders', 'reference', 'buyer', 'changes of sources'), ('pages', 'approximation', 'views', 'shards')$$,
  'what is due');
SELECT is((SELECT amount FROM pattern_due('orders')), 50::bigint, 'how much');
SELECT ok((SELECT since BETWEEN now() - interval '1 min' AND clock_timestamp() FROM pattern_due('orders')), 'since when');
SELECT is((SELECT count(*) FROM orders WHERE doc ->> 'customer.name' = 'new'), 0::bigint, 'copies wait');

CALL pattern_maintain('orders', 'buyer', max_rows => 20, batch => 10);
SELECT is((SELECT count(*) FROM orders WHERE doc ->> 'customer.name' = 'new'), 200::bigint, 'max_rows: twenty of fifty sources');
CALL pattern_maintain('orders', max_time => '0');
SELECT is((SELECT amount FROM pattern_due('orders')), 30::bigint, 'max_time: no time, no work');
CALL pattern_maintain('orders');
SELECT is((SELECT count(*) FROM orders WHERE doc ->> 'customer.name' = 'new'), 500::bigint, 'one table');
SELECT ok(EXISTS (SELECT FROM pattern_due('books')), 'work of others stays');
CALL pattern_maintain();
SELECT is((SELECT count(*) FROM pattern_due()), 0::bigint, 'all that is due, also what this made due');
SELECT is((SELECT sum((doc ->> 'spent')::int) FROM "the customers"), 125250::bigint, 'sums of groups');
SELECT is((SELECT array_agg(DISTINCT doc ->> 'posts') FROM books), '{4}', 'counts');
SELECT is((SELECT count(*) FROM books WHERE doc @@ '{has_extras: true, readers: {$size: 2}}'), 5::bigint, 'long arrays are split');
SELECT is((SELECT doc ->> 'views' FROM pages), '1', 'shards are added');
SELECT is((SELECT count(*) FROM pattern_check()), 0::bigint, 'everything is consistent');
SELECT ok((SELECT pg_get_expr(indpred, indrelid) LIKE '%has_extras%' FROM pg_index WHERE indrelid = 'books'::regclass AND indpred IS NOT NULL), 'an index finds documents to split');
SELECT pattern_alter('books', 'readers', '{mode: "immediate"}') \g /dev/null
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 'books'::regclass AND indpred IS NOT NULL), 0::bigint, 'it goes with the mode');

-- in a transaction block all is one transaction
UPDATE orders SET doc = bson_set(doc, 'price', 1);
BEGIN;
CALL pattern_maintain();
SELECT is((SELECT sum((doc ->> 'spent')::int) FROM "the customers"), 500::bigint, 'in a transaction block');
ROLLBACK;
SELECT is((SELECT sum((doc ->> 'spent')::int) FROM "the customers"), 125250::bigint, 'rolled back with it');
SELECT is((SELECT amount FROM pattern_due('"the customers"')), 50::bigint, 'and due again');
CALL pattern_maintain();

-- measurements
SELECT bucket_create('readings', 'sensor int, at timestamptz, v int', '{sensor}', 'at', span => '1 hour', pack_after => '30 min', retain => '10 days') \g /dev/null
INSERT INTO readings SELECT s, date_trunc('hour', now()) - s * interval '1 hour' - interval '10 min', 1 FROM generate_series(1, 400) s;
INSERT INTO readings VALUES (1000, now(), 1);
SELECT is((SELECT count(*) FROM readings_packed), 0::bigint, 'each group has one measurement, which waits');
SELECT set_eq('SELECT what FROM pattern_due()', $$VALUES ('buckets past retention'), ('measurements to pack')$$, 'spans that have ended');
CALL pattern_maintain('readings', batch => 10);
SELECT ok((SELECT count(*) <= 2 FROM readings_recent), 'they are packed');
SELECT ok((SELECT count(*) BETWEEN 240 AND 243 AND min(at) > now() - interval '10 days 2 hours' FROM readings), 'and deleted after ten days');
SELECT is((SELECT count(*) FROM pattern_due()), 0::bigint, 'none is due any more');
SELECT pattern_alter('readings', 'at', '{retain: "1 day"}') \g /dev/null
CALL pattern_maintain('readings');
SELECT ok((SELECT count(*) BETWEEN 24 AND 27 FROM readings), 'pattern_alter changes the retention');
SELECT throws_ok($$SELECT bucket_create('no_time', 'v int', span => NULL, retain => '1 day')$$, '22023', NULL, 'pages have no retention');

-- feeds
SELECT change_feed_enable('pages', notify => false, keep_for => '1 hour') \g /dev/null
INSERT INTO pages (doc) SELECT bson_build('_id', i) FROM generate_series(10, 29) i;
SET docpatterns.maintain = off;
UPDATE pages_feed SET at = now() - interval '2 hours' WHERE key <= to_bson(25);
RESET docpatterns.maintain;
SELECT results_eq($$SELECT what, now() - since < interval '61 min', amount FROM pattern_due()$$, $$VALUES ('changes past retention', true, 16::bigint)$$, 'changes of a feed');
CALL pattern_maintain('pages', batch => 5);
SELECT is((SELECT array_agg(operation ORDER BY number) FROM pages_feed), '{purged,insert,insert,insert,insert}', 'they are purged');
SELECT is((SELECT count(*) FROM pattern_due()), 0::bigint, 'and not due again');
SELECT is((SELECT count(*) FROM pattern_check('pages')), 0::bigint, 'the feed is consistent');

-- keys and items
SELECT kv_create('dp_game') \g /dev/null
SELECT kv_hset('dp_game', k, 'x', 1), kv_expire('dp_game', k, CASE WHEN k < 'c' THEN 0.01 ELSE 100 END) FROM unnest('{a,b,c}'::text[]) k \g /dev/null
SELECT single_table_create('dp_sessions', ttl_field => 'expires') \g /dev/null
INSERT INTO dp_sessions (doc) SELECT bson_build('PK', i::text, 'SK', 's', 'expires', now() + (i - 2) * interval '1 hour') FROM generate_series(1, 5) i;
SELECT collection_create('dp_carts') \g /dev/null
SELECT query_table_create('dp_carts_by_user', 'dp_carts', '{u}', ttl_field => 'until') \g /dev/null
ALTER TABLE dp_carts_by_user RENAME COLUMN expires_at TO "until when";
INSERT INTO dp_carts (doc) SELECT bson_build('_id', i, 'u', 'x', 'until', now() + (i - 3) * interval '1 hour') FROM generate_series(1, 5) i;
SELECT pg_sleep(0.02) \g /dev/null
SELECT results_eq('SELECT rel::text, what, since < clock_timestamp(), amount FROM pattern_due() ORDER BY 1', $$VALUES ('dp_carts', 'expired rows', true, 3::bigint), ('dp_game.keys', 'expired keys', true, 2), ('dp_sessions', 'expired items', true, 2)$$, 'expired keys, items and rows');
CALL pattern_maintain();
SELECT is(ARRAY[(SELECT count(*) FROM dp_game.keys), (SELECT count(*) FROM dp_sessions), (SELECT count(*) FROM dp_carts_by_user)], ARRAY[1, 3, 2]::bigint[], 'they are removed');

-- an error of one declaration
CREATE FUNCTION dp_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not %', current_user USING ERRCODE = 'XX001'; END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON "the customers" FOR EACH ROW EXECUTE FUNCTION dp_refuse();
INSERT INTO orders (doc) VALUES ('{_id: 1000, customer: {_id: 1}, price: 1000}');
INSERT INTO dp_sessions (doc) SELECT bson_build('PK', 'x', 'SK', 's', 'expires', now());
RESET ROLE;
CALL pattern_maintain();
SELECT is((SELECT count(*) FROM dp_sessions), 3::bigint, 'others go on');
SET ROLE dp_maintain;
SELECT is((SELECT string_agg(error, ',') FROM pattern_stats()), 'not dp_maintain', 'pattern_stats() shows the error, which the owner of the table caused');
DROP TRIGGER refuse ON "the customers";
CALL pattern_maintain();
SELECT is((SELECT amount FROM pattern_due('"the customers"')), 1::bigint, 'the next try is later');
CALL pattern_maintain('"the customers"');
SELECT is((SELECT count(error) FROM pattern_stats()), 0::bigint, 'a call for the table tries at once');

-- rights
SELECT throws_ok($$CALL pattern_maintain('orders', 'nothing')$$, '42704', NULL, 'no such declaration');
SELECT throws_ok($$CALL pattern_maintain(batch => 0)$$, '22023', NULL, 'an empty batch');
SET ROLE dp_maintain_other;
SELECT throws_ok($$CALL pattern_maintain('orders')$$, '42501', NULL, 'a table of another owner');
SELECT throws_ok($$SELECT pattern_due('orders')$$, '42501', NULL, 'its work');
RESET ROLE;
SELECT * FROM finish();
