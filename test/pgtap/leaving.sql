-- pattern_disable_all(): every pattern of a table, and of all tables, ends in an order that works and gives its data back. DROP EXTENSION says
-- how to leave, and works afterwards.
\set ECHO none
SET client_min_messages = error;
SELECT plan(20);

SELECT collection_create(c) FROM unnest('{makers,orders,products,plain,reviews,nodes,leaves,players,shows}'::text[]) c \g /dev/null
INSERT INTO makers (doc) VALUES ('{_id: 1, name: "Ink"}') \g /dev/null
INSERT INTO plain (doc) VALUES ('{_id: 7, schema_version: 2, name: "Atlas", kind: "book", pages: 300, maker: {_id: 1, name: "Ink"}, body: "long", note: "cold",
  buyers: ["ann", "bob", "cy", "dee", "eve"], spec_paper: "thin", spec_colour: "blue"}');
-- everything that one table can have
SELECT schema_versioning_enable('products', current => 2, write => 'accept'), attribute_enable('products', 'specs', prefix => 'spec_'),
  reference_enable('products', 'maker', 'makers', live => '{name}'), payload_enable('products', 'body', '{first: "regex:(.)"}'),
  polymorphic_enable('products', by => 'kind'), polymorphic_variant('products', 'book', schema => '{required: ["pages", "buyers"]}'),
  outlier_enable('products', 'buyers', threshold => 3, count_field => 'buyers_n'), subset_fields_enable('products', '{note}'),
  computed_enable('products', source => 'orders', on_field => 'product', fields => '{sold: {$sum: "$amount"}}'),
  subset_enable('products', 'recent', source => 'reviews', on_field => 'product', order_by => '{at: -1}', keep => 2),
  versioning_enable('products'), change_feed_enable('products', notify => false) \g /dev/null
INSERT INTO products (doc) SELECT doc FROM plain;
INSERT INTO orders (doc) VALUES ('{product: 7, amount: 5}') \g /dev/null
INSERT INTO reviews (doc) VALUES ('{product: 7, at: 1}') \g /dev/null
SELECT is((SELECT count(*) FROM pattern_list('products')), 12::bigint, 'a table has twelve patterns');
SELECT isnt((SELECT doc FROM products), (SELECT doc FROM plain), 'its document is not what was written');
SELECT is((SELECT count(*) FROM pattern_check()), 0::bigint, 'and all is true');
SELECT cmp_ok(pattern_disable_all('products'), '>', 0::bigint, 'all of them end');
SELECT is((SELECT count(*) FROM pattern_list('products')), 0::bigint, 'none is left');
SELECT is((SELECT (doc - 'buyers_n')::jsonb FROM products), (SELECT doc::jsonb FROM plain), 'the document is what was written, and the count of its array');
SELECT is((SELECT array_agg(relname::text ORDER BY relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname ~ '^products' AND relkind IN ('r', 'v')),
  '{products}', 'nothing is left beside the table');
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgname ~ '^zz_docpatterns' AND tgname <> 'zz_docpatterns_00_collection'), 0::bigint, 'no trigger either, on sources neither');

-- what patterns of other tables need
SELECT kv_create('dp_leaving'), kv_leaderboard('dp_leaving', 'best', 'players', 'score'),
  tree_enable('nodes', parent => 'up', ancestors => 'above'), tree_attach('leaves', 'nodes', 'in', ancestors => 'above'),
  preallocated_enable('shows', 'seats', preallocated_pool(3)), computed_enable('shows', 'leaves', 'show', '{n: {$count: {}}}', mode => 'deferred'),
  bucket_create('readings', columns => 'at timestamptz, v float8', time_field => 'at') \g /dev/null
INSERT INTO readings SELECT timestamptz '2024-01-01' + i * interval '1 minute', i FROM generate_series(1, 100) i;
INSERT INTO players (doc) VALUES ('{_id: 1, score: 4}') \g /dev/null
SELECT throws_ok($$SELECT pattern_disable_all('nodes')$$, '2BP01', NULL, 'a tree with documents of another table');
SELECT throws_ok($$SELECT pattern_disable_all('dp_leaving.keys')$$, '2BP01', NULL, 'a space with a leaderboard of a table');
SELECT is((SELECT count(*) FROM pattern_list()), 7::bigint, 'an error leaves all');
CREATE ROLE dp_leaving;
SET ROLE dp_leaving;
SELECT throws_ok($$SELECT pattern_disable_all('nodes')$$, '42501', NULL, 'another role cannot end patterns of a table');
SELECT is(pattern_disable_all(), 0::bigint, 'and ends none of all');
SELECT throws_ok('DROP EXTENSION docpatterns', '42501', NULL, 'nor is it told what tables there are');
RESET ROLE;
DROP ROLE dp_leaving;
SELECT throws_ok('DROP EXTENSION docpatterns', '2BP01', 'cannot drop extension docpatterns because tables contain documents', 'DROP EXTENSION says how to leave');
SELECT lives_ok('SELECT pattern_disable_all()', 'of all tables, each in its turn');
SELECT results_eq('SELECT count(*) FROM readings', '{100}'::bigint[], 'measurements stay in an ordinary table');
SELECT is((SELECT count(*) FROM pattern_list()), 0::bigint, 'none is left');
SELECT bson_column_convert(c.oid, 'jsonb') FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace <> 'docpatterns'::regnamespace
  AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.atttypid IN ('bson'::regtype, 'bson_value'::regtype)) \g /dev/null
SELECT lives_ok('DROP EXTENSION docpatterns', 'then it works');
SELECT is((SELECT doc ->> 'name' FROM products), 'Atlas', 'and the data is there');
SELECT * FROM finish();
