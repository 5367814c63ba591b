-- What goes wrong with patterns on distributed tables: it is refused, or pattern_check() reports it and pattern_repair() mends it.
SET client_min_messages = error;
SET citus.shard_count = 4;
SELECT plan(49);

-- ---------------------------------------------------------------- keys of collections

SET citus.enable_unsafe_triggers = on;
SELECT collection_create('people'), collection_create('places') \gset
SELECT create_distributed_table('people', '_id'), create_reference_table('places') \gset
INSERT INTO people (_id, doc) VALUES (1, '{_id: 1}'), (2, '{a: 1}');
SELECT results_eq('SELECT doc::text FROM people ORDER BY _id', $$VALUES ('{"_id": 1}'), ('{"_id": 2, "a": 1}')$$, 'documents get their key');
SELECT throws_ok(sql, code, NULL, sql) FROM (VALUES
  ('22004', $$INSERT INTO people (doc) VALUES ('{_id: 5}')$$), ('23514', $$INSERT INTO people (_id, doc) VALUES (5, '{_id: 6}')$$),
  ('0A000', $$UPDATE people SET doc = '{_id: 6}' WHERE _id = 1::bson_value$$), ('0A000', $$UPDATE people SET doc = bson_build('_id', 6)$$),
  ('0A000', $$UPDATE people SET _id = 6::bson_value WHERE _id = 1::bson_value$$), ('0A000', $$INSERT INTO places (doc) VALUES ('{a: 1}')$$)) q (code, sql);
UPDATE people SET doc = '{_id: 1.0, b: 1}' WHERE _id = 1::bson_value;
UPDATE people SET doc = '{b: 1}' WHERE _id = 2::bson_value;
SELECT results_eq('SELECT _id = doc -> ''_id'' FROM people', 'VALUES (true), (true)', 'the same key is no other one');
INSERT INTO places (doc) VALUES ('{_id: 1}');
UPDATE places SET doc = '{_id: 2}';
SELECT is((SELECT string_agg(DISTINCT result, ' ') FROM run_command_on_placements('places', 'SELECT string_agg(_id::text || doc::text, '' '') FROM %s')), '2{"_id": 2}', 'all copies have the same documents');

-- ---------------------------------------------------------------- what cannot be kept

CREATE TABLE t (_id bson_value PRIMARY KEY, doc bson);
CREATE TABLE s (_id bson_value PRIMARY KEY, doc bson);
CREATE TABLE far (_id bson_value PRIMARY KEY, doc bson);
CREATE TABLE r (_id bson_value PRIMARY KEY, doc bson);
CREATE TABLE plain (_id bson_value PRIMARY KEY, doc bson);
CREATE TABLE by_at (at int, _id int, doc bson, PRIMARY KEY (at, _id));
SELECT create_distributed_table('t', '_id'), create_distributed_table('s', '_id'), create_distributed_table('far', '_id', colocate_with => 'none'), create_reference_table('r'), create_distributed_table('by_at', 'at') \gset
SELECT throws_ok(sql, '0A000', NULL, sql) FROM unnest(ARRAY[
  $$SELECT change_feed_enable('t')$$, $$SELECT single_collection_enable('t')$$, $$SELECT tree_enable('t', parent => 'p')$$, $$SELECT fanout_enable('t', 'w', 'a', 's', 'f', 'g')$$, $$SELECT rollup_enable('t', 'n', '{n: {$sum: 1}}', time_field => 'at', levels => '{day}')$$,
  $$SELECT relationship_enable('t', 'a', 's', 'b')$$, $$SELECT outlier_enable('r', 'a', threshold => 3)$$, $$SELECT attribute_enable('r', 'a', prefix => 'x_')$$,
  $$SELECT computed_enable('t', 'far', 'k', '{n: {$sum: "$x"}}')$$, $$SELECT computed_enable('t', 'plain', 'k', '{n: {$sum: "$x"}}')$$, $$SELECT computed_enable('plain', 't', 'k', '{n: {$sum: "$x"}}')$$,
  $$SELECT subset_enable('t', 'a', 'far', 'k', '{x: 1}', 3)$$, $$SELECT reference_enable('t', 'k', 'far')$$, $$SELECT reference_enable('t', 'k', 'plain')$$,
  $$SELECT reference_enable('plain', 'k', 't')$$]) sql;
SELECT is((SELECT count(*) FROM pattern_list()), 0::bigint, 'nothing is half declared');
SELECT is((SELECT string_agg(DISTINCT result, ' ') FROM run_command_on_all_nodes($$SELECT count(*) FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid WHERE g.tgname ~ '^zz_docpatterns' AND c.relname ~ '^(t|s|far|r|plain|by_at)(_[0-9]+)?$'$$)), '0', 'on no server');

-- ---------------------------------------------------------------- a key of two columns, one of which distributes the table

SELECT outlier_enable('by_at', 'a', threshold => 2) AS by_at \gset
INSERT INTO by_at SELECT i % 5, i, '{a: [1, 2, 3, 4]}' FROM generate_series(1, 20) i;
SELECT results_eq('SELECT max(bson_array_length(doc, ''a'')) FROM by_at UNION ALL SELECT count(*)::int FROM by_at_a_extras ORDER BY 1', 'VALUES (2), (20)', 'outlier: each document has its extras');
SELECT is_empty('SELECT * FROM pattern_check(''by_at'')', 'and is consistent');

-- ---------------------------------------------------------------- triggers of a shard

SELECT outlier_enable('t', 'a', threshold => 2) AS a, attribute_enable('t', 'specs', prefix => 'spec_') AS b \gset
INSERT INTO t SELECT i, bson_build('_id', i, 'a', '[1, 2, 3, 4]'::bson_value, 'spec_x', i) FROM generate_series(1, 20) i;
CREATE FUNCTION pg_temp.break(how text) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(DISTINCT result, ' ') FROM run_command_on_shards('t', format('DO $x$ DECLARE g record; BEGIN FOR g IN SELECT tgname, tgrelid::regclass AS rel FROM pg_trigger WHERE tgrelid = ''%%s''::regclass AND tgname ~ ''outlier|anchor_a_'' LOOP EXECUTE replace(replace(%L, ''@g'', quote_ident(g.tgname)), ''@r'', g.rel::text); END LOOP; END $x$', how)) $$;
SELECT pg_temp.break('ALTER TABLE @r DISABLE TRIGGER @g') \gset
SELECT is((SELECT count(DISTINCT substring(found FROM 'shard \d+')) FROM pattern_check('t', 'a') WHERE what = 'trigger' AND found LIKE 'disabled%'), 4::bigint, 'disabled triggers of shards are reported');
INSERT INTO t SELECT i, bson_build('_id', i, 'a', '[1, 2, 3, 4]'::bson_value, 'spec_x', i) FROM generate_series(21, 30) i;
SELECT pattern_repair('t', 'a'), pattern_repair('t', 'specs') \gset
SELECT is_empty('SELECT * FROM pattern_check(''t'')', 'and enabled by pattern_repair');
SELECT results_eq('SELECT count(*) FROM t WHERE doc @@ ''{spec_x: {$exists: false}}'' UNION ALL SELECT count(*) FROM t_a_extras', 'VALUES (30::bigint), (30::bigint)', 'which also mends the documents');
SELECT replace(pg_temp.break('DROP TRIGGER @g ON @r'), 'x', 'x') AS dropped \gset
SELECT isnt_empty('SELECT * FROM pattern_check(''t'')', 'dropped triggers of shards are reported');
SELECT pattern_repair('t', 'a'), pattern_repair('t', 'specs') \gset
SELECT is_empty('SELECT * FROM pattern_check(''t'')', 'and created by pattern_repair');
INSERT INTO t SELECT i, bson_build('_id', i, 'a', '[1, 2, 3, 4]'::bson_value, 'spec_x', i) FROM generate_series(31, 40) i;
SELECT results_eq('SELECT count(*) FROM t WHERE doc @@ ''{spec_x: {$exists: false}}'' UNION ALL SELECT count(*) FROM t_a_extras', 'VALUES (40::bigint), (40::bigint)', 'writes are kept again');

-- ---------------------------------------------------------------- a side table that leaves its table

UPDATE t SET doc = bson_update_immutable(doc, '{$push: {a: 5}}');
SELECT throws_ok(sql, '0A000', NULL, sql) FROM unnest('{SELECT undistribute_table(''t''),SELECT undistribute_table(''t_a_extras''),"SELECT alter_distributed_table(''t'', shard_count := 3, cascade_to_colocated := true)","SELECT alter_distributed_table(''t_a_extras'', shard_count := 3, cascade_to_colocated := false)"}'::text[]) sql;
SELECT update_distributed_table_colocation('t_a_extras', colocate_with => 'none') \gset
SELECT results_eq('SELECT DISTINCT what FROM pattern_check(''t'', ''a'') WHERE what IN (''shards'', ''extras table'') ORDER BY 1', $$VALUES ('extras table'), ('shards')$$, 'a side table with shards of its own is reported');
SELECT throws_ok($$UPDATE t SET doc = bson_update_immutable(doc, '{$push: {a: 6}}')$$, '55000', NULL, 'and not written any more, also by sessions that knew it');
SELECT throws_ok($$SELECT pattern_disable('t', 'a')$$, '55000', NULL, 'nor given back');
SELECT update_distributed_table_colocation('t_a_extras', colocate_with => 't') \gset
SELECT is_empty('SELECT * FROM pattern_check(''t'')', 'with the shards of its table all is well');
SELECT is((SELECT count(*) FROM (SELECT pattern_whole(b.doc, b.tableoid::regclass, b._id) AS doc FROM t AS b) w WHERE bson_array_length(doc, 'a') = 5), 40::bigint, 'nothing is lost');
UPDATE t SET doc = bson_update_immutable(doc, '{$push: {a: 6}}');
SELECT is_empty('SELECT * FROM pattern_check(''t'')', 'and it is written again');

-- ---------------------------------------------------------------- versions of documents that one transaction changed, and a split separates

CREATE TABLE v (_id bson_value PRIMARY KEY, doc bson);
SELECT create_distributed_table('v', '_id', colocate_with => 'none'), versioning_enable('v', optimistic => false) \gset
INSERT INTO v SELECT i, bson_build('_id', i, 'x', 1) FROM generate_series(1, 40) i;
SELECT clock_timestamp() AS first \gset
BEGIN;
UPDATE v SET doc = bson_update_immutable(doc, '{$set: {x: 2}}');
UPDATE v SET doc = bson_update_immutable(doc, '{$set: {x: 3}}') WHERE _id > 20;
DELETE FROM v WHERE _id IN (5::bson_value, 6::bson_value, 25::bson_value, 26::bson_value);
INSERT INTO v SELECT i, bson_build('_id', i, 'x', 4) FROM generate_series(41, 50) i;
COMMIT;
SELECT clock_timestamp() AS second \gset
\o /dev/null
SELECT format('SELECT citus_split_shard_by_split_points(%s, ARRAY[%L], ARRAY[%s, %s]::int[], %L)', shardid, (shardminvalue::bigint + shardmaxvalue::bigint) / 2, n.a, n.b, 'block_writes')
  FROM pg_dist_shard, (SELECT min(nodeid) AS a, max(nodeid) AS b FROM pg_dist_node WHERE shouldhaveshards) n WHERE logicalrelid = 'v'::regclass \gexec
\o
SELECT is((SELECT count(*) FROM pg_dist_shard WHERE logicalrelid = 'v'::regclass), 8::bigint, 'each shard was split');
SELECT is_empty('SELECT * FROM pattern_check(''v'')', 'a split separates versions with their documents');
SELECT results_eq(format('SELECT doc ->> ''x'', count(*) FROM versioning_as_of(''v'', %L) GROUP BY 1', :'first'), $$VALUES ('1', 40::bigint)$$, 'versions from before the transaction');
SELECT results_eq(format('SELECT doc ->> ''x'', count(*) FROM versioning_as_of(''v'', %L) GROUP BY 1 ORDER BY 1', :'second'), $$VALUES ('2', 18::bigint), ('3', 18), ('4', 10)$$, 'and from after it');
UPDATE v SET doc = bson_update_immutable(doc, '{$set: {x: 5}}') WHERE _id <= 40;
SELECT results_eq('SELECT doc ->> ''x'', count(*) FROM versioning_as_of(''v'', clock_timestamp()) GROUP BY 1 ORDER BY 1', $$VALUES ('4', 10::bigint), ('5', 36)$$, 'writes after the split have versions');
SELECT * FROM finish();
