-- Collections with keys of a SQL type: the contract, and every pattern declared on such collections.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT * FROM no_plan();

-- The types.
CREATE TABLE made AS SELECT t AS type, collection_create('c_' || t, key_type => t) AS rel
  FROM unnest('{bson_value,text,int4,int8,numeric,uuid,objectid}'::text[]) t;
SELECT col_type_is(rel::text, '_id', format_type(type::regtype, NULL), type) FROM made;
SELECT col_is_pk(rel::text, '_id', type) FROM made;
SELECT throws_ok(format('SELECT collection_create(%L, key_type => %L)', 'c', t), '22023', NULL, t) FROM unnest('{bool,jsonb,no_such,int8[],"numeric(5,2)"}'::text[]) t;
CREATE SCHEMA types;
CREATE DOMAIN types.text AS text;
SET search_path = types, pg_catalog, public;
SELECT throws_ok($$SELECT collection_create('public.c', key_type => 'text')$$, '22023', NULL, 'another type with this name');
RESET search_path;
DROP SCHEMA types CASCADE;
SELECT is(collection_create('c_int8', true, 'bigint')::text, 'c_int8', 'it exists already');
SELECT throws_ok($$SELECT collection_create('c_int8', true, 'int4')$$, '42809', 'relation "c_int8" exists but is not a collection with keys of type integer', 'not with other keys');

-- Documents whose _id fits, and others.
SELECT lives_ok(format('INSERT INTO c_%s (doc) VALUES (%L)', t, d), t || ' ' || d) FROM (VALUES
  ('text', '{_id: "a"}'), ('text', '{_id: ""}'), ('text', '{_id: "5"}'), ('int4', '{_id: 5}'), ('int4', '{_id: -7.0}'), ('int8', '{_id: NumberLong(5000000000)}'),
  ('int8', '{_id: NumberDecimal("8.00")}'), ('numeric', '{_id: 1.5}'), ('numeric', '{_id: NumberDecimal("1.10")}'), ('uuid', '{_id: UUID("758c8927-b1ca-4656-a2ce-cdae6ed9398d")}'),
  ('objectid', '{_id: ObjectId("507f191e810c19729de860ea")}')) AS v (t, d);
SELECT results_eq('SELECT _id::text FROM c_text UNION ALL SELECT _id::text FROM c_int4 UNION ALL SELECT _id::text FROM c_int8 UNION ALL SELECT _id::text FROM c_numeric UNION ALL
  SELECT _id::text FROM c_uuid UNION ALL SELECT _id::text FROM c_objectid ORDER BY 1',
  $$SELECT unnest('{"",-7,1.10,1.5,5,5,5000000000,507f191e810c19729de860ea,758c8927-b1ca-4656-a2ce-cdae6ed9398d,8,a}'::text[]) ORDER BY 1$$, 'are keys of the type');
SELECT throws_ok(format('INSERT INTO c_%s (doc) VALUES (%L)', t, d), '23514', format('the field "_id" of type %s does not fit the key of type %s: %s', b, format_type(t::regtype, NULL), e), t || ' ' || d) FROM (VALUES
  ('text', '{_id: 5}', 'int', '5'), ('text', '{_id: ObjectId("507f191e810c19729de860ea")}', 'objectId', '{"$oid": "507f191e810c19729de860ea"}'), ('text', '{_id: null}', 'null', 'null'),
  ('int4', '{_id: 5000000000}', 'long', '5000000000'), ('int4', '{_id: "5"}', 'string', '"5"'), ('int8', '{_id: 5.5}', 'double', '5.5'), ('int8', '{_id: true}', 'bool', 'true'),
  ('int8', '{_id: NaN}', 'double', '{"$numberDouble": "NaN"}'), ('numeric', '{_id: "1"}', 'string', '"1"'), ('numeric', '{_id: {a: 1}}', 'object', '{"a": 1}'),
  ('uuid', '{_id: "758c8927-b1ca-4656-a2ce-cdae6ed9398d"}', 'string', '"758c8927-b1ca-4656-a2ce-cdae6ed9398d"'), ('objectid', '{_id: "507f191e810c19729de860ea"}', 'string', '"507f191e810c19729de860ea"')) AS v (t, d, b, e);
SELECT throws_ok($$INSERT INTO c_int8 (doc) SELECT bson_build('_id', repeat('x', 1000))$$, '23514', 'the field "_id" of type string does not fit the key of type bigint: "' || repeat('x', 99), 'a long value is cut');
SELECT throws_ok(format('INSERT INTO c_%s (doc) VALUES (%L)', t, '{a: 1}'), '23502', 'the document has no field "_id"', t || ' keys are not generated') FROM unnest('{text,int4,int8,numeric}'::text[]) t;
TRUNCATE c_uuid, c_objectid, c_int8, c_text, c_numeric;
INSERT INTO c_uuid (doc) SELECT '{a: 1}' FROM generate_series(1, 50);
INSERT INTO c_objectid (doc) SELECT '{a: 1}' FROM generate_series(1, 50);
SELECT is((SELECT count(*) FROM c_uuid WHERE doc -> '_id' = _id AND bson_typeof(doc -> '_id') = 'binData'), 50::bigint, 'UUIDs are');
SELECT is((SELECT count(*) FROM c_objectid WHERE doc -> '_id' = _id), 50::bigint, 'and ObjectIds');

-- The column. Programs that send JSON without an _id write it.
INSERT INTO c_text (_id, doc) VALUES ('k1', '{a: 1}');
INSERT INTO c_int8 (_id, doc) VALUES (1, '{a: 1}'), (2, '{_id: 2.0}');
INSERT INTO c_numeric (_id, doc) VALUES (1.10, '{}'), (2.50, '{_id: 2.5}');
SELECT results_eq('SELECT doc::text FROM c_text', ARRAY['{"_id": "k1", "a": 1}'], 'is put into the document');
SELECT results_eq('SELECT _id::text, doc::text FROM c_numeric ORDER BY _id', $$VALUES ('1.10', '{"_id": {"$numberDecimal": "1.10"}}'), ('2.5', '{"_id": 2.5}')$$, 'an equal one becomes the document''s');
SELECT throws_ok($$INSERT INTO c_int8 (_id, doc) VALUES (3, '{_id: 4}')$$, '23514', NULL, 'another one is refused');
SELECT throws_ok($$UPDATE c_int8 SET _id = 3 WHERE _id = 1$$, '23514', NULL, 'also alone');
UPDATE c_int8 SET doc = '{b: 1}' WHERE _id = 1;
UPDATE c_int8 SET doc = bson_set(doc, '_id', 20) WHERE _id = 2;
SELECT results_eq('SELECT _id, doc::text FROM c_int8 ORDER BY _id', $$VALUES (1::bigint, '{"_id": {"$numberLong": "1"}, "b": 1}'), (20, '{"_id": 20}')$$, 'a replacement keeps it, another _id moves the row');
SELECT throws_ok($$UPDATE c_int8 SET doc = '{_id: "x"}' WHERE _id = 1$$, '23514', NULL, 'an update is checked, too');
INSERT INTO c_int8 (doc) VALUES ('{_id: 20, n: 1}') ON CONFLICT (_id) DO UPDATE SET doc = c_int8.doc || EXCLUDED.doc;
INSERT INTO c_int8 (doc) VALUES ('{_id: 20, n: 2}') ON CONFLICT DO NOTHING;
MERGE INTO c_int8 USING (VALUES (1), (3)) AS s (id) ON _id = id WHEN MATCHED THEN UPDATE SET doc = '{m: 1}' WHEN NOT MATCHED THEN INSERT (doc) VALUES (bson_build('_id', id));
SELECT results_eq('SELECT doc::text FROM c_int8 ORDER BY _id', ARRAY['{"_id": {"$numberLong": "1"}, "m": 1}', '{"_id": 3}', '{"_id": 20, "n": 1}'], 'ON CONFLICT and MERGE');

-- Statements without types, joins and foreign keys.
PREPARE by_text AS SELECT doc FROM c_text WHERE _id = $1;
SELECT results_eq($$EXECUTE by_text('k1')$$, $$VALUES ('{_id: "k1", a: 1}'::bson)$$, 'a parameter has the type of the column');
CREATE TABLE orders (id int PRIMARY KEY, customer bigint REFERENCES c_int8);
INSERT INTO orders VALUES (1, 20);
SELECT throws_ok('INSERT INTO orders VALUES (2, 21)', '23503', NULL, 'a foreign key');
SELECT throws_ok('DELETE FROM c_int8 WHERE _id = 20', '23503', NULL, 'holds');
SELECT is((SELECT doc ->> 'n' FROM orders JOIN c_int8 ON _id = customer), '1', 'a join');

-- The calls.
CREATE FUNCTION plan_of(rel regclass, filter bson, sort bson DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  q record := docpatterns._collection_query(rel, filter, sort);
  plan json;
BEGIN
  EXECUTE concat('EXPLAIN (FORMAT json, COSTS off) SELECT FROM ', q.source, ' WHERE ', q.conditions, ' ORDER BY ' || q.ordering) INTO plan USING filter, q.operands, sort;
  RETURN plan;
END
$$;
SELECT results_eq(format('SELECT v::text FROM collection_insert(%L, %L, %L) v', rel, '{_id: ' || a || '}', '{_id: ' || b || '}'), ARRAY[a, b], 'insert ' || type) FROM made,
  LATERAL (SELECT CASE WHEN type = 'text' THEN '"x1"' ELSE '101' END, CASE WHEN type = 'text' THEN '"x2"' ELSE '102' END) v (a, b) WHERE type IN ('int4', 'int8', 'numeric');
SELECT throws_ok($$SELECT collection_insert('c_int8', '{_id: "x"}')$$, '23514', NULL, 'insert of what does not fit');
INSERT INTO c_int8 (doc) SELECT bson_build('_id', i, 'n', i) FROM generate_series(1000, 4000) i;
INSERT INTO c_text (doc) SELECT bson_build('_id', 't' || i, 'n', i) FROM generate_series(1000, 4000) i;
ANALYZE c_int8, c_text;
SET enable_seqscan = off;
SELECT matches(plan_of('c_int8', f::bson), '"Index Cond": "\(+_id ', f) FROM unnest(ARRAY['{_id: 1005}', '{_id: {$in: [1005, 1006.0, "x", 5.5]}}', '{_id: {$gt: 1005, $lte: 1010}}']) f;
SELECT matches(plan_of('c_text', f::bson), '"Index Cond": "\(+_id ', f) FROM unnest(ARRAY['{_id: "t1005"}', '{_id: {$in: ["t1005", 5]}}']) f;
SELECT matches(plan_of('c_int8', '{}', '{_id: 1}'), 'Index Only Scan|Index Scan', 'the order');
RESET enable_seqscan;
SELECT is(collection_count('c_int8', f::bson), n, f) FROM (VALUES ('{_id: 1005}', 1::bigint), ('{_id: 1005.5}', 0), ('{_id: "1005"}', 0), ('{_id: {$in: [1005, 1006.0, "x", 5.5]}}', 2), ('{_id: {$gt: 1004.5, $lt: 1007.5}}', 3),
  ('{_id: {$gt: "a"}}', 0), ('{_id: {$ne: 1005}}', (SELECT count(*) - 1 FROM c_int8)), ('{_id: {$gte: null}}', 0), ('{_id: null}', 0), ('{_id: {$gt: {$minKey: 1}}}', (SELECT count(*) FROM c_int8))) v (f, n);
SELECT is(collection_count('c_text', f::bson), n, f) FROM (VALUES ('{_id: "t1005"}', 1::bigint), ('{_id: 5}', 0), ('{_id: {$gte: "t1005", $lt: "t1007"}}', 2), ('{_id: {$regex: "^t100"}}', 10)) v (f, n);
SELECT results_eq($$SELECT d ->> '_id' FROM collection_find('c_text', '{_id: {$gte: "t3999"}}', sort => '{_id: -1}') d$$, ARRAY['t4000', 't3999'], 'sorted as documents');
SELECT is((SELECT concat_ws(' ', matched, modified, upserted) FROM collection_update('c_int8', '{_id: 5000}', '{$set: {a: 1}}', upsert => true)), '0 0 5000', 'upsert');
SELECT is((SELECT concat_ws(' ', matched, modified, upserted) FROM collection_update('c_int8', '{_id: 5000}', '{$set: {a: 2}}', upsert => true)), '1 1', 'update');
SELECT ok((SELECT upserted IS NOT NULL FROM collection_update('c_uuid', '{a: 2}', '{$set: {b: 2}}', upsert => true)), 'upsert with a new key');
SELECT throws_ok($$SELECT collection_update('c_int8', '{n: -1}', '{$set: {b: 2}}', upsert => true)$$, '23502', NULL, 'without a key');
SELECT is(collection_delete('c_int8', '{_id: 5000}'), 1::bigint, 'delete');
SELECT is(collection_create_index('c_int8', '{_id: 1}'), 'CREATE UNIQUE INDEX c_int8_pkey ON public.c_int8 USING btree (_id)', 'the key has its index');
SELECT matches(collection_create_index('c_int8', '{n: 1, _id: -1}'), '_id DESC', 'and is a part of others');
SELECT is(bson_lookup('c_int8', '_id', 1005), '[{"_id": 1005, "n": 1005}]', 'bson_lookup');
SELECT is(bson_lookup('c_int8', '_id', 'x'), '[]', 'of another type');
CREATE VIEW shown AS SELECT _id, doc FROM c_int8;
SELECT is((SELECT collection_insert('shown', '{_id: 6000}')), 6000::bson_value, 'through a view');
DROP VIEW shown;

-- Partitions.
CREATE TABLE parts (_id bigint NOT NULL PRIMARY KEY, doc bson NOT NULL) PARTITION BY HASH (_id);
CREATE TABLE parts0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parts1 (note int, doc bson NOT NULL, _id bigint NOT NULL);
ALTER TABLE parts1 DROP COLUMN note;
ALTER TABLE parts ATTACH PARTITION parts1 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT docpatterns._collection_attach('parts', '_id', 'doc') \gset
SELECT is((SELECT count(*) FROM collection_insert('parts', VARIADIC (SELECT array_agg(bson_build('_id', i, 'n', i)) FROM generate_series(1, 20) i))), 20::bigint, 'a collection with partitions');
SELECT is(collection_count('parts', '{_id: {$in: [5, 6]}}'), 2::bigint, 'finds');
SELECT is((SELECT count(*) FROM parts WHERE doc -> '_id' = _id), 20::bigint, 'the columns of each partition');

-- Conversion.
SELECT is(bson_column_convert('c_text', 'jsonb'), 1, 'the document becomes jsonb');
SELECT col_type_is('c_text', '_id', 'text', 'the key stays');
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgrelid = 'c_text'::regclass), 0::bigint, 'without the trigger');
SELECT is(bson_column_convert('c_text', 'bson'), 1, 'and back');
SELECT triggers_are('c_text', ARRAY['zz_docpatterns_00_collection']);
CREATE TABLE plain (_id bigint PRIMARY KEY, doc jsonb);
INSERT INTO plain VALUES (1, '{"a": 1}');
SELECT is(bson_column_convert('plain', 'bson'), 1, 'documents without the key');
SELECT triggers_are('plain', ARRAY[]::name[], 'are no collection');

-- Advice names keys of every type, and nothing on a field that a pattern keeps.
CREATE TABLE posts (id serial PRIMARY KEY, doc bson);
TRUNCATE c_int8 CASCADE;
INSERT INTO c_int8 (doc) SELECT bson_build('_id', i, 'name', 'n' || i) FROM generate_series(1, 100) i;
INSERT INTO posts (doc) SELECT bson_build('c_int8_id', 1 + i % 90, 'list', (SELECT array_agg(x) FROM generate_series(1, CASE WHEN i % 100 = 0 THEN 3000 ELSE 3 END) x)) FROM generate_series(1, 300) i;
SELECT results_eq($$SELECT pattern || ' ' || path FROM pattern_advise('posts') ORDER BY 1$$, ARRAY['outlier list', 'reference c_int8_id'], 'advice');
SELECT outlier_enable('posts', 'list', 100, name => 'long') \gset
SELECT results_eq($$SELECT pattern || ' ' || path FROM pattern_advise('posts') ORDER BY 1$$, ARRAY['reference c_int8_id'], 'not on what is declared');
DROP TABLE posts CASCADE;

-- Every pattern. In a command #1 is the key number 1 in JSON, @1 the same as a literal.
CREATE TABLE steps (n serial, command text, want text);
INSERT INTO steps (command, want) VALUES
  ($$SELECT collection_create('books', key_type => 'TYPE'), collection_create('authors', key_type => 'TYPE'), collection_create('nodes', key_type => 'TYPE'), collection_create('events', key_type => 'TYPE'), collection_create('rooms', key_type => 'TYPE')$$, NULL),
  -- outlier
  ($$SELECT outlier_enable('books', 'buyers', 3)$$, NULL),
  ($$INSERT INTO books (doc) VALUES ('{_id: #1, buyers: [1, 2, 3, 4, 5]}'), ('{_id: #2, author: #1, buyers: [1]}')$$, NULL),
  ($$SELECT outlier_push('books', '@1', 6)$$, '1'),
  ($$SELECT outlier_count('books', '@1')$$, '6'),
  ($$SELECT doc -> 'buyers' FROM books_whole WHERE _id = '@1'$$, '[1, 2, 3, 4, 5, 6]'),
  ($$SELECT d -> 'buyers' FROM collection_find('books', '{_id: #1}') d$$, '[1, 2, 3, 4, 5, 6]'),
  -- reference
  ($$INSERT INTO authors (doc) VALUES ('{_id: #1, name: "Ann"}'), ('{_id: #2, name: "Bob"}')$$, NULL),
  ($$SELECT reference_enable('books', 'writer', 'authors', live => '{name}')$$, NULL),
  ($$UPDATE books SET doc = bson_set(doc, 'writer', '{_id: #1}'::bson) WHERE _id = '@2'$$, NULL),
  ($$UPDATE authors SET doc = bson_set(doc, 'name', 'Anna') WHERE _id = '@1'$$, NULL),
  ($$SELECT doc ->> 'writer.name' FROM books WHERE _id = '@2'$$, 'Anna'),
  ($$SELECT throws FROM throws($q$UPDATE books SET doc = bson_set(doc, 'writer', '{_id: {"x": 1}}'::bson)$q$)$$, '23503'),
  ($$SELECT string_agg(format('%s %s', name, sources), ' ' ORDER BY name) FROM pattern_list('books')$$, 'buyers {} writer {authors}'),
  ($$SELECT throws FROM throws($q$SELECT bson_column_convert('authors', 'jsonb')$q$)$$, '55000'),
  -- computed and subset, on the key and on a field of the target
  ($$SELECT computed_enable('authors', 'events', 'author', '{visits: {$count: {}}}')$$, NULL),
  ($$SELECT computed_enable('authors', 'events', 'author', '{points: {$sum: "$n"}}', target_field => '_id')$$, NULL),
  ($$SELECT subset_enable('authors', 'top', 'events', 'author', '{n: -1}', 2, fields => '{n: 1}')$$, NULL),
  ($$SELECT rollup_enable('events', 'per_day', '{n: {$sum: "$n"}}', time_field => 'at', levels => '{day}', group_by => '{author}')$$, NULL),
  ($$SELECT query_table_create('by_author', source => 'events', partition => '{author}', clustering => '{n: -1}')$$, NULL),
  ($$SELECT change_feed_enable('events')$$, NULL),
  ($$SELECT versioning_enable('events')$$, NULL),
  ($$INSERT INTO events (doc) VALUES ('{_id: #1, author: #1, n: 1, at: ISODate("2024-01-01")}'), ('{_id: #2, author: #1, n: 2, at: ISODate("2024-01-01")}'), ('{_id: #3, author: #1, n: 3, at: ISODate("2024-01-02")}'), ('{_id: #4, author: null, n: 3}')$$, NULL),
  ($$SELECT concat_ws(' ', doc -> 'visits', doc -> 'points', doc -> 'top') FROM authors WHERE _id = '@1'$$, '3 6 [{"n": 3}, {"n": 2}]'),
  ($$DELETE FROM events WHERE _id = '@3'$$, NULL),
  ($$SELECT concat_ws(' ', doc -> 'visits', doc -> 'points', doc -> 'top') FROM authors WHERE _id = '@1'$$, '2 3 [{"n": 2}, {"n": 1}]'),
  -- rollup, query table, change feed, history
  ($$SELECT string_agg(source_key::text, ' ' ORDER BY n) FROM by_author WHERE author = '#1'::bson_value$$, '@1 @2'),
  ($$UPDATE events SET doc = bson_set(doc, 'n', 10) WHERE _id = '@1'$$, NULL),
  ($$SELECT versioning_at('events', '@1', 1) ->> 'n'$$, '1'),
  ($$SELECT concat_ws(' ', doc -> 'points', doc -> 'top') FROM authors WHERE _id = '@1'$$, '12 [{"n": 10}, {"n": 2}]'),
  ($$SELECT string_agg(key::text, ' ') FROM change_feed_read('events', take => 3)$$, '@1 @2 @3'),
  -- tree and what hangs on it
  ($$SELECT tree_enable('nodes', parent => 'up', ancestors => 'above', depth => 'depth')$$, NULL),
  ($$INSERT INTO nodes (doc) VALUES ('{_id: #1, up: null}'), ('{_id: #2, up: #1}'), ('{_id: #3, up: #2}')$$, NULL),
  ($$SELECT doc -> 'above' FROM nodes WHERE _id = '@3'$$, '[#1, #2]'),
  ($$UPDATE nodes SET doc = bson_set(doc, '_id', '#20'::bson_value) WHERE _id = '@2'$$, NULL),
  ($$SELECT doc -> 'above' FROM nodes WHERE _id = '@3'$$, '[#1, #20]'),
  ($$SELECT string_agg(doc ->> '_id', ' ' ORDER BY doc ->> '_id') FROM tree_descendants('nodes', '#1'::bson_value)$$, '@20 @3'),
  ($$SELECT tree_attach('events', 'nodes', 'node', 'node_above')$$, NULL),
  ($$UPDATE events SET doc = bson_set(doc, 'node', '#3'::bson_value) WHERE _id = '@2'$$, NULL),
  ($$SELECT doc -> 'node_above' FROM events WHERE _id = '@2'$$, '[#1, #20, #3]'),
  -- relationship
  ($$SELECT relationship_enable('rooms', 'people', 'authors', 'rooms')$$, NULL),
  ($$INSERT INTO rooms (doc) VALUES ('{_id: #1, people: [#1, #2]}')$$, NULL),
  ($$SELECT doc -> 'rooms' = '[#1]' FROM authors WHERE _id = '@2'$$, 'true'),
  ($$DELETE FROM authors WHERE _id = '@2'$$, NULL),
  ($$SELECT doc -> 'people' FROM rooms WHERE _id = '@1'$$, '[#1]'),
  -- patterns of one row
  ($$SELECT approximation_enable('rooms', 'visits', slots => 2), attribute_enable('rooms', 'sizes', pattern => 'size_{k}', value_field => 'v'), payload_enable('rooms', 'raw', '{first: "regex:(.)"}'), preallocated_enable('rooms', 'seats', preallocated_pool(3), store => 'slots'), subset_fields_enable('rooms', '{manual}')$$, NULL),
  ($$INSERT INTO rooms (doc) VALUES ('{_id: #2, size_a: 1, raw: "xyz", manual: "long"}')$$, NULL),
  ($$SELECT pattern_repair('rooms', 'seats')$$, '1'),
  ($$SELECT approximation_add('rooms', '@2', 1)$$, NULL),
  ($$SELECT preallocated_claim('rooms', '@2', '{1}', 'me')$$, 'true'),
  ($$SELECT d ->> 'manual' FROM collection_find('rooms', '{_id: #2}') d$$, 'long'),
  ($$SELECT polymorphic_enable('rooms', by => 'kind', unknown => 'accept'), schema_versioning_enable('authors')$$, NULL),
  ($$SELECT schema_versioning_read('authors', '@1') ->> 'name'$$, 'Anna'),
  -- patterns with tables of their own
  ($$SELECT collection_create('posts', key_type => 'TYPE'), collection_create('follows', key_type => 'TYPE'), collection_create('items', key_type => 'TYPE'), collection_create('shop', key_type => 'TYPE'), collection_create('web', key_type => 'TYPE')$$, NULL),
  ($$SELECT fanout_enable('posts', 'walls', 'by', 'follows', 'reader', 'writer', keep => 3)$$, NULL),
  ($$INSERT INTO follows (doc) VALUES ('{_id: #1, reader: "r", writer: "w"}')$$, NULL),
  ($$INSERT INTO posts (doc) VALUES ('{_id: #1, by: "w", text: "a"}'), ('{_id: #2, by: "w", text: "b"}')$$, NULL),
  ($$DELETE FROM posts WHERE _id = '@2'$$, NULL),
  ($$SELECT string_agg(doc ->> 'text', ' ') FROM fanout_timeline('posts', 'r')$$, 'a'),
  ($$SELECT single_collection_enable('items', type_field => 't', related_field => 'rel', id_fields => '{"a": "_id"}')$$, NULL),
  ($$INSERT INTO items (doc) VALUES ('{_id: #1, t: "a"}'), ('{_id: #2, t: "b", rel: [#1]}')$$, NULL),
  ($$SELECT string_agg(d ->> '_id', ' ' ORDER BY d ->> '_id') FROM single_collection_get('items', '#1'::bson_value) d$$, '@2'),
  ($$SELECT collection_create('people', key_type => 'TYPE'), polymorphic_merge('people', merge_on => 'who', sources => '{shop,web}', into_fields => '{shop,web}', target_field => '_id')$$, NULL),
  ($$INSERT INTO web (doc) VALUES ('{_id: #7, who: #1, v: 1}')$$, NULL),
  ($$INSERT INTO shop (doc) VALUES ('{_id: #8, who: #1, s: 1}')$$, NULL),
  ($$SELECT concat_ws(' ', doc -> 'shop.s', doc -> 'web.v') FROM people WHERE _id = '@1'$$, '1 1'),
  ($$SELECT kv_create('game_TYPE'), kv_leaderboard('game_TYPE', 'best', 'shop', score_path => 's')$$, NULL),
  ($$SELECT count(*) FROM kv_zrange('game_TYPE', 'best', 0, -1)$$, '1'),
  ($$SELECT count(*) FROM graph_lookup('nodes', '#3'::bson_value, 'up', '_id')$$, '3'),
  ($$SELECT string_agg(format('%s.%s %s: %s', rel, name, key, what), ', ') FROM pattern_check()$$, '');
CREATE FUNCTION throws(command text) RETURNS TABLE (throws text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE command;
EXCEPTION WHEN OTHERS THEN
  throws := SQLSTATE;
  RETURN NEXT;
END
$$;
CREATE FUNCTION step(command text, want text, type text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  json text := CASE type WHEN 'text' THEN '"k\1"' ELSE '\1' END;
  literal text := CASE type WHEN 'text' THEN 'k\1' ELSE '\1' END;
  got text;
BEGIN
  command := replace(regexp_replace(regexp_replace(command, '#([0-9]+)', json, 'g'), '@([0-9]+)', literal, 'g'), 'TYPE', type);
  IF want IS NULL THEN
    RETURN lives_ok(command, command);
  END IF;
  EXECUTE command INTO got;
  RETURN is(coalesce(got, ''), regexp_replace(regexp_replace(want, '#([0-9]+)', json, 'g'), '@([0-9]+)', literal, 'g'), command);
EXCEPTION WHEN OTHERS THEN
  RETURN fail(command || ': ' || SQLERRM);
END
$$;
CREATE SCHEMA keys_int8;
CREATE SCHEMA keys_text;
SET search_path = keys_int8, public;
SELECT format('SELECT step(%L, %L, %L)', command, want, 'int8') FROM steps ORDER BY n \gexec
SET search_path = keys_text, public;
SELECT format('SELECT step(%L, %L, %L)', command, want, 'text') FROM steps ORDER BY n \gexec
SELECT * FROM finish();
RESET search_path;
DROP SCHEMA keys_int8, keys_text CASCADE;
DROP TABLE orders, parts, plain, steps, c_bson_value, c_text, c_int4, c_int8, c_numeric, c_uuid, c_objectid, made;
DROP FUNCTION step, throws, plan_of;
