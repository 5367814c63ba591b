-- pattern_stats(): what declarations still have to do, and their side tables.
\set ECHO none
SET client_min_messages = error;
SELECT plan(14);

CREATE ROLE dp_stats;
GRANT CREATE ON SCHEMA public TO dp_stats;
SELECT is((SELECT count(*) FROM pattern_stats()), 0::bigint, 'nothing without patterns');
SET ROLE dp_stats;
SELECT collection_create(c) FROM unnest(ARRAY['customers', 'orders', 'pages', '"W eird"']) c \g /dev/null
SELECT computed_enable('customers', source => 'orders', on_field => 'customer', fields => '{spent: {$sum: "$price"}}', mode => 'deferred'),
  outlier_enable('"W eird"', 'tags', 2, name => 'a "b"'), approximation_enable('pages', 'views', slots => 2),
  bucket_create('readings', columns => 'at timestamptz, v float8', time_field => 'at'), tree_enable('orders', parent => 'up', ancestors => 'above') \g /dev/null
INSERT INTO customers (doc) SELECT bson_build('_id', i) FROM generate_series(1, 3) i;
INSERT INTO orders (doc) SELECT bson_build('customer', i % 3 + 1, 'price', i) FROM generate_series(1, 5) i;
INSERT INTO pages (doc) VALUES ('{_id: 1, views: 0}');
SELECT approximation_add('pages', 1, 1) \g /dev/null
INSERT INTO readings SELECT timestamptz '2024-01-01' + i * interval '1 second', i FROM generate_series(1, 7) i;
INSERT INTO "W eird" (doc) VALUES ('{_id: 1, tags: [1, 2, 3, 4]}');
CREATE VIEW seen AS SELECT rel::text, pattern, name, waiting, notes, failed, unbuilt FROM pattern_stats();
SELECT results_eq('SELECT rel, pattern, name, waiting FROM seen ORDER BY 1, 2',
  $$VALUES ('"W eird"', 'outlier', 'a "b"', NULL::bigint), ('customers', 'computed', 'spent', 6), ('orders', 'tree', 'up', NULL), ('pages', 'approximation', 'views', 1), ('readings', 'bucket', 'at', 7)$$,
  'each declaration of the tables of the caller, with the entries of its queue');
SELECT is((SELECT sum(notes + failed) FROM seen), 0::numeric, 'no notes');
SELECT computed_refresh('customers'), approximation_sync('pages'), bucket_pack('readings') \g /dev/null
SELECT is((SELECT sum(waiting) FROM seen), 0::numeric, 'what was done does not wait');
SELECT cmp_ok((SELECT side_bytes FROM pattern_stats('"W eird"')), '>', 0::bigint, 'bytes of side tables');
SELECT is((SELECT side_bytes FROM pattern_stats('orders')), NULL, 'a declaration without');
SELECT throws_ok('SELECT value FROM docpatterns.notes', '42501', NULL, 'what was noted is not shown');
RESET ROLE;

-- as if transactions that wait for each other had left them
INSERT INTO docpatterns.notes SELECT 'customers', 'computed', 'spent', '1', 'customers', f FROM unnest('{f,t,t}'::boolean[]) f;
SET ROLE dp_stats;
SELECT results_eq($$SELECT notes, failed FROM seen WHERE rel = 'customers'$$, 'VALUES (1::bigint, 2::bigint)', 'notes, and those that only a repair processes');
RESET ROLE;
DELETE FROM docpatterns.notes;

-- a table that is already full
SET ROLE dp_stats;
SELECT outlier_enable('orders', 'tags', 2) \g /dev/null
UPDATE customers SET doc = bson_set(doc, 'best', 3);
SELECT computed_enable('customers', source => 'orders', on_field => 'customer', fields => '{best: {$max: "$price"}}', name => 'best') \g /dev/null
SELECT is((SELECT unbuilt FROM seen WHERE name = 'best'), '{"\"best\""}', 'fields that wait for pattern_build');
CALL pattern_build('customers', 'best', NULL, true);
SELECT is((SELECT unbuilt FROM seen WHERE name = 'best'), NULL, 'and no longer');
DROP VIEW seen;
RESET ROLE;

CREATE ROLE dp_stats_other;
SET ROLE dp_stats_other;
SELECT is((SELECT count(*) FROM pattern_stats()), 0::bigint, 'tables of others are left out');
SELECT throws_ok($$SELECT * FROM pattern_stats('customers')$$, '42501', NULL, 'one of them is refused');
RESET ROLE;
SELECT throws_ok($$SELECT * FROM pattern_stats('nothing')$$, '42P01', NULL, 'no such table');
SELECT cmp_ok((SELECT count(*) FROM pattern_stats()), '>', 5::bigint, 'a superuser sees all');
SELECT * FROM finish();
