-- Patterns of two tables over co-located tables, references to a reference table, and schema versioning, on tables that Citus
-- distributes by key, compared with the same on ordinary tables.
SET client_min_messages = warning;
SELECT plan(32);

-- The same statements for tables of the schema "near", which are ordinary, and of "far", which are distributed.
CREATE SCHEMA near;
CREATE SCHEMA far;
CREATE FUNCTION pg_temp.both(command text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE replace(command, '@.', 'near.');
  EXECUTE replace(command, '@.', 'far.');
END $$;
CREATE FUNCTION pg_temp.documents(t text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text;
BEGIN
  EXECUTE format('SELECT string_agg(doc::text, E''\n'' ORDER BY doc::text) FROM %s', t) INTO r;
  RETURN r;
END $$;
CREATE FUNCTION pg_temp.same(t text, what text) RETURNS text LANGUAGE sql AS $$
  SELECT is(pg_temp.documents('far.' || t), pg_temp.documents('near.' || t), what || ': ' || t)
$$;
CREATE FUNCTION pg_temp.all_true(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what) $$;

SELECT pg_temp.both(format('CREATE TABLE @.%s (_id bson_value PRIMARY KEY, doc bson)', t)) FROM unnest('{shops,people,countries,orders}'::text[]) t \g /dev/null
SELECT pg_temp.both(format('CREATE TABLE @.%s (shop bson_value, _id bson_value, doc bson, PRIMARY KEY (shop, _id))', t)) FROM unnest('{sales,visits}'::text[]) t \g /dev/null
SELECT collection_distribute('far.shops') \g /dev/null
SELECT collection_distribute('far.' || t, 'shop', 'far.shops') FROM unnest('{sales,visits}'::text[]) t \g /dev/null
SELECT collection_distribute('far.' || t) FROM unnest('{people,orders}'::text[]) t \g /dev/null
SELECT create_reference_table('far.countries') \g /dev/null

SELECT computed_enable(s || '.shops', source => (s || '.sales')::regclass, on_field => 'shop', fields => '{total: {$sum: "$n"}, sales: {$count: {}}, most: {$max: "$n"}}') FROM unnest('{near,far}'::text[]) s \g /dev/null
SELECT computed_enable(s || '.shops', source => (s || '.visits')::regclass, on_field => 'shop', fields => '{visits: {$count: {}}}', mode => 'deferred') FROM unnest('{near,far}'::text[]) s \g /dev/null
SELECT subset_enable(s || '.shops', field => 'latest', source => s || '.sales', on_field => 'shop', order_by => '{at: -1, _id: -1}', keep => 3, fields => '{_id: 1, n: 1}', count_field => 'all', count_mode => 'deferred') FROM unnest('{near,far}'::text[]) s \g /dev/null
SELECT reference_enable(s || '.visits', field => 'place', source => (s || '.shops')::regclass, id_field => '_id', live => '{name}', missing => 'allow') FROM unnest('{near,far}'::text[]) s \g /dev/null
SELECT reference_enable(s || '.orders', field => 'country', source => (s || '.countries')::regclass, live => '{name}') FROM unnest('{near,far}'::text[]) s \g /dev/null
SELECT schema_versioning_enable(s || '.people'), schema_versioning_step(s || '.people', 1, 2, up_update => '[{"$set": {"full": {"$concat": ["$a", " ", "$b"]}}}, {"$unset": ["a", "b"]}]', down_update => '[{"$set": {"a": "$full"}}, {"$unset": ["full"]}]') FROM unnest('{near,far}'::text[]) s \g /dev/null
SELECT is((SELECT count(*) FROM pattern_list() WHERE rel::text LIKE 'far.%'), 6::bigint, 'six declarations, each once');

-- rows that belong together
SELECT pg_temp.both($$INSERT INTO @.shops SELECT i, bson_build('_id', i, 'name', 'shop ' || i) FROM generate_series(1, 12) i$$) \g /dev/null
SELECT pg_temp.both($$INSERT INTO @.countries SELECT i, bson_build('_id', i, 'name', 'c' || i) FROM generate_series(1, 4) i$$) \g /dev/null
SELECT pg_temp.both($$INSERT INTO @.sales SELECT i % 12 + 1, i, bson_build('_id', i, 'shop', i % 12 + 1, 'n', i * 7 % 31, 'at', i % 17) FROM generate_series(1, 200) i$$) \g /dev/null
SELECT pg_temp.both($$INSERT INTO @.visits SELECT i % 12 + 1, i, bson_build('_id', i, 'shop', i % 12 + 1, 'place', bson_build('_id', i % 12 + 1)) FROM generate_series(1, 100) i$$) \g /dev/null
SELECT pg_temp.both($$INSERT INTO @.orders SELECT i, bson_build('_id', i, 'country', bson_build('_id', i % 4 + 1)) FROM generate_series(1, 100) i$$) \g /dev/null
SELECT pg_temp.both($$INSERT INTO @.people SELECT i, bson_build('_id', i, 'a', 'x', 'b', i::text) FROM generate_series(1, 50) i$$) \g /dev/null
SELECT pg_temp.same(t, 'written') FROM unnest('{shops,visits,orders,people}'::text[]) t;
SELECT pg_temp.all_true('what waits is no violation');

-- sources change
SELECT pg_temp.both($$UPDATE @.sales SET doc = bson_update_immutable(doc, '{$inc: {n: 5}}') WHERE doc @@ '{n: {$gt: 20}}'$$) \g /dev/null
SELECT pg_temp.both($$DELETE FROM @.sales WHERE shop = '3'::bson_value OR doc @@ '{at: 16}'$$) \g /dev/null
SELECT pg_temp.both($$UPDATE @.shops SET doc = bson_update_immutable(doc, '{$set: {name: "new"}}') WHERE doc @@ '{_id: {$in: [1, 5, 9]}}'$$) \g /dev/null
SELECT pg_temp.both($$UPDATE @.countries SET doc = bson_update_immutable(doc, '{$set: {name: "new"}}') WHERE doc @@ '{_id: {$ne: 2}}'$$) \g /dev/null
SELECT pg_temp.same(t, 'changed') FROM unnest('{shops,visits,orders}'::text[]) t;
SELECT throws_ok($$DELETE FROM far.countries WHERE _id = '3'::bson_value$$, '23503', NULL, 'a country that orders name');
SELECT throws_ok($$INSERT INTO far.orders VALUES (1000, '{_id: 1000, country: {_id: 77}}')$$, '23503', NULL, 'an order that names none');
SELECT throws_ok($$INSERT INTO far.sales VALUES (1, 1000, '{_id: 1000, shop: 2, n: 1}')$$, '23514', NULL, 'a sale in the shard of another shop');
SELECT throws_ok($$INSERT INTO far.visits VALUES (1, 1000, '{_id: 1000, shop: 1, place: {_id: 2}}')$$, '23514', NULL, 'a visit of another shop');

-- what was put off, a statistic of all shards, and calls
SELECT is((SELECT sum(waiting) > 0 FROM pattern_stats('far.shops')), true, 'something waits');
SELECT is(computed_refresh('far.shops', 'visits'), computed_refresh('near.shops', 'visits'), 'the same groups are computed');
SELECT is(subset_refresh('far.shops', 'latest'), subset_refresh('near.shops', 'latest'), 'the same groups are counted');
SELECT pg_temp.same('shops', 'refreshed');
SELECT is((SELECT sum(waiting) FROM pattern_stats('far.shops')), 0::numeric, 'nothing waits');

-- versions
SELECT pattern_alter(s || '.people', 'schema_version', '{current: 2, write: "accept"}') FROM unnest('{near,far}'::text[]) s \g /dev/null
SELECT pg_temp.both($$INSERT INTO @.people SELECT i, bson_build('_id', i, 'a', 'y', 'b', i::text) FROM generate_series(51, 60) i$$) \g /dev/null
SELECT is(schema_versioning_read('far.people', 55), schema_versioning_read('near.people', 55), 'a document is read in the current version');
SELECT results_eq('SELECT version, documents FROM schema_versioning_histogram(''far.people'')', 'SELECT version, documents FROM schema_versioning_histogram(''near.people'')', 'how many documents each version has');
CALL schema_versioning_migrate('far.people');
CALL schema_versioning_migrate('near.people');
SELECT pg_temp.same('people', 'migrated');

-- damage
SELECT shardid AS shard, nodeport AS port FROM citus_shards WHERE table_name = 'far.shops'::regclass ORDER BY shardid LIMIT 1 \gset
SELECT is((SELECT success FROM run_command_on_shards('far.shops', $$DO 'BEGIN SET LOCAL docpatterns.maintain = off; UPDATE %s SET doc = bson_set(doc, ''total'', -1); END'$$) WHERE shardid = :shard), true, 'a shard is damaged');
SELECT ok(bool_and(found ~ 'shard \d+ on .*:\d+\)$') AND count(*) > 0, 'pattern_check says where') FROM pattern_check('far.shops', 'total');
SELECT ok(pattern_repair('far.shops', 'total') > 0, 'it is repaired');
SELECT pg_temp.same('shops', 'repaired');
SELECT pg_temp.all_true('all is true');

-- a move, and the same afterwards
SELECT citus_move_shard_placement(:shard, s.nodename, s.nodeport, n.nodename, n.nodeport, 'block_writes') FROM citus_shards s, pg_dist_node n WHERE s.shardid = :shard AND n.nodeport <> s.nodeport AND n.shouldhaveshards \g /dev/null
SELECT pg_temp.both($$UPDATE @.sales SET doc = bson_update_immutable(doc, '{$inc: {n: 1}}')$$) \g /dev/null
SELECT pg_temp.both($$UPDATE @.shops SET doc = bson_update_immutable(doc, '{$set: {name: "moved"}}')$$) \g /dev/null
SELECT pg_temp.both($$UPDATE @.countries SET doc = bson_update_immutable(doc, '{$set: {name: "moved"}}')$$) \g /dev/null
SELECT pg_temp.same(t, 'after a move') FROM unnest('{shops,visits,orders}'::text[]) t;
SELECT is(pattern_disable_all('far.' || t), pattern_disable_all('near.' || t), 'the patterns end: ' || t) FROM unnest('{visits,shops}'::text[]) t;
SELECT pg_temp.same('shops', 'ended');
SELECT * FROM finish();
