-- The contract of the outlier pattern: what is refused and how, what every option does, what every kind of write does.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(314);

-- Equal to what plain SQL says the whole array is, and nothing violated.
CREATE FUNCTION pg_temp.whole(rel text, key text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text;
BEGIN
  EXECUTE format('SELECT doc ->> ''a'' FROM %s WHERE id = %L', rel || '_whole', key) INTO r; RETURN r;
END $$;
CREATE FUNCTION pg_temp.true_everywhere(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;
CREATE FUNCTION pg_temp.ints(n int) RETURNS bson_value LANGUAGE sql AS $$ SELECT coalesce((SELECT bson_agg(i ORDER BY i) FROM generate_series(1, n) i), '[]') $$;
CREATE TABLE t (id int PRIMARY KEY, doc bson);

-- Signatures
SELECT function_returns('outlier_enable', 'text');
SELECT volatility_is('outlier_enable', 'volatile');
SELECT function_returns(f, r, f || ' returns ' || r) FROM (VALUES ('outlier_push', 'bigint'), ('outlier_push_into', 'bigint'), ('outlier_pull', 'bigint'), ('outlier_contains', 'boolean'),
  ('outlier_find', 'setof bson'), ('outlier_count', 'bigint'), ('outlier_page', 'setof record'), ('outlier_spill', 'bigint'), ('outlier_advise', 'record')) AS v (f, r);
SELECT volatility_is(f, v, f || ' is ' || v) FROM (VALUES ('outlier_push', 'volatile'), ('outlier_push_into', 'volatile'), ('outlier_pull', 'volatile'), ('outlier_contains', 'stable'),
  ('outlier_find', 'stable'), ('outlier_count', 'stable'), ('outlier_page', 'stable'), ('outlier_spill', 'volatile'), ('outlier_advise', 'stable')) AS w (f, v);
SELECT volatility_is('docpatterns', f, 'immutable', f || ' is immutable') FROM unnest('{bson_element_hashes,bson_array_holds,outlier_irregular}'::text[]) f;

-- Refused options
SELECT throws_ok(format('SELECT outlier_enable(''t'', %s)', args), state, NULL, what) FROM (VALUES
  ($$'a', 0$$, '22023', 'threshold 0'), ($$'a', NULL$$, '22004', 'no threshold'), ($$NULL, 5$$, '22004', 'no field'),
  ($$'a', 5, keep => 6$$, '22023', 'keep above the threshold'), ($$'a', 5, keep => -1$$, '22023', 'negative keep'),
  ($$'a', 5, chunk => 0$$, '22023', 'chunk 0'), ($$'a', 5, chunk => 1000001$$, '22023', 'too large a chunk'), ($$'a', 5, chunk => NULL$$, '22004', 'no chunk'),
  ($$'a', 5, stay => 'middle'$$, '22023', 'an unknown stay'), ($$'a', 5, mode => 'lazy'$$, '22023', 'an unknown mode'), ($$'a', 5, flag => NULL$$, '22004', 'no flag'),
  ($$'a', 5, flag => 'a'$$, '22023', 'the flag is the field'), ($$'a', 5, flag => 'a.b'$$, '22023', 'the flag is in the field'), ($$'a', 5, flag => '"a"'$$, '22023', 'the flag is the field, written otherwise'),
  ($$'a.b', 5, count_field => 'a'$$, '22023', 'the field is in the count'), ($$'_id', 5$$, '22023', 'the field is _id'), ($$'a', 5, count_field => '_id.n'$$, '22023', 'the count is in _id'),
  ($$'a..b', 5$$, '22023', 'a bad path'), ($$'a', 5, on_field => 'x'$$, '22023', 'on_field without extras'), ($$'a', 5, extras => 't', on_field => 'x'$$, '22023', 'extras in the table itself'),
  ($$'a', 5, doc_column => 'nope'$$, '42703', 'a column that does not exist')) AS v (args, state, what);
CREATE TABLE no_key (id int, doc bson);
CREATE TABLE lazy_key (id int PRIMARY KEY DEFERRABLE, doc bson);
CREATE TABLE no_doc (id int PRIMARY KEY, doc jsonb);
CREATE TABLE two_docs (id int PRIMARY KEY, one bson, two bson);
CREATE VIEW a_view AS SELECT * FROM t;
SELECT throws_ok(format('SELECT outlier_enable(%L, ''a'', 5)', rel), state, NULL, what) FROM (VALUES ('no_key', '55000', 'no primary key'), ('lazy_key', '55000', 'a deferrable primary key'),
  ('no_doc', '42703', 'no bson column'), ('two_docs', '42702', 'two bson columns'), ('a_view', '42809', 'a view')) AS v (rel, state, what);
SELECT throws_ok($$SELECT outlier_enable(NULL, 'a', 5)$$, '22004', NULL, 'no table');
SELECT is(outlier_enable('two_docs', 'a', 1, doc_column => 'two'), 'a', 'the document column is named');
INSERT INTO two_docs VALUES (1, '{a: [1, 2]}', '{a: [1, 2]}');
SELECT is((SELECT one ->> 'a' || ' ' || (two ->> 'a') FROM two_docs), '[1, 2] [1]', 'and no other is touched');
ALTER TABLE two_docs DROP COLUMN one CASCADE;
ALTER TABLE two_docs RENAME COLUMN two TO doc;
INSERT INTO two_docs VALUES (2, '{a: [1, 2, 3]}');
SELECT is(pattern_repair('two_docs'), 0::bigint, 'repair makes the view again that a dropped column took along');
SELECT is(pg_temp.whole('two_docs', '2'), '[1, 2, 3]', 'a renamed document column is found');
ALTER TABLE two_docs ADD COLUMN third bson;
SELECT lives_ok($$INSERT INTO two_docs VALUES (3, '{a: [1, 2]}', '{a: [1, 2]}')$$, 'also beside another');
SELECT is((SELECT doc ->> 'a' || ' ' || (third ->> 'a') FROM two_docs WHERE id = 3), '[1] [1, 2]', 'which is not touched');
DROP TABLE two_docs CASCADE;

SELECT is(outlier_enable('t', 'a', 3, chunk => 2, count_field => 'n'), 'a', 'enabled');
SELECT throws_ok($$SELECT outlier_enable('t', 'b', 3, name => 'a', flag => 'f')$$, '42710', NULL, 'a second declaration of the name');
SELECT throws_ok($$SELECT outlier_enable('t', 'b', 3)$$, '22023', NULL, 'a second declaration with the same flag');
SELECT throws_ok($$SELECT outlier_enable('t', 'a', 3, name => 'b', flag => 'f')$$, '22023', NULL, 'a second declaration of the field');
INSERT INTO t SELECT i, bson_build('a', pg_temp.ints(i)) FROM generate_series(10, 1, -1) i;
SELECT is((SELECT count(*) FROM t WHERE bson_array_length(doc, 'a') = 3), 8::bigint, 'three stay');
SELECT is((SELECT count(*) FROM t WHERE doc -> 'has_extras' = true AND (doc ->> 'n')::int = id), 7::bigint, 'flag and count');
SELECT is((SELECT count(*) FROM t WHERE NOT doc ? 'has_extras' AND (doc ->> 'n')::int = id), 3::bigint, 'no flag on the others');
SELECT is((SELECT max(n) FROM t_a_extras), 2, 'chunks of two');
SELECT throws_ok('INSERT INTO t_a_extras VALUES (1, 1, 1, true, ''[1]'')', '55000', NULL, 'the extras take no INSERT');
SELECT throws_ok('UPDATE t_a_extras SET n = 5', '55000', NULL, 'no UPDATE');
SELECT throws_ok('DELETE FROM t_a_extras WHERE false', '55000', NULL, 'no DELETE');
SELECT throws_ok('TRUNCATE t_a_extras', '55000', NULL, 'no TRUNCATE');

-- Keys
SELECT throws_ok($$SELECT outlier_push('t', 99, 1)$$, 'P0002', NULL, 'push: no such key');
SELECT throws_ok($$SELECT outlier_pull('t', 99, 1)$$, 'P0002', NULL, 'pull: no such key');
SELECT throws_ok($$SELECT outlier_count('t', 99)$$, 'P0002', NULL, 'count: no such key');
SELECT throws_ok($$SELECT outlier_page('t', 99, 0, 1)$$, 'P0002', NULL, 'page: no such key');
SELECT throws_ok($$SELECT outlier_contains('t', 99, 1)$$, 'P0002', NULL, 'contains: no such key');
SELECT throws_ok($$SELECT outlier_push('t', NULL::int, 1)$$, '22004', NULL, 'a null key');
SELECT throws_ok($$SELECT outlier_push('t', now(), 1)$$, '42809', NULL, 'a key of another type');
SELECT throws_ok($$SELECT outlier_push('t', 5.5, 1)$$, '42809', NULL, 'a fraction is no integer key');
SELECT throws_ok($$SELECT outlier_push('t', ROW(1, 2), 1)$$, '42809', NULL, 'a row for one column');
SELECT throws_ok($$SELECT outlier_push('t', 'x', 1)$$, '22P02', NULL, 'an untyped literal is read by the column''s type');
SELECT throws_ok($$SELECT outlier_push('t', 5000000000, 1)$$, '22003', NULL, 'an integer that does not fit');
SELECT is(outlier_count('t', '5') + outlier_count('t', 5::bigint) + outlier_count('t', 5::smallint), 15::bigint, 'any integer is a key');
SELECT throws_ok($$SELECT outlier_push('no_doc', 1, 1)$$, '42704', NULL, 'a table without the pattern');
SELECT throws_ok($$SELECT outlier_count('t', 1, 'zzz')$$, '42704', NULL, 'another name');
SELECT throws_ok($$SELECT outlier_page('t', 5, -1, 1)$$, '22023', NULL, 'a negative page');
SELECT throws_ok($$SELECT outlier_page('t', 5, NULL, 1)$$, '22004', NULL, 'a null page');
CREATE FUNCTION pg_temp.key_works(type text, one text, other text, cast_one boolean DEFAULT true) RETURNS text LANGUAGE plpgsql AS $$
DECLARE got text; violated bigint;
BEGIN
  EXECUTE format('CREATE TABLE k (id %s PRIMARY KEY, doc bson)', type);
  PERFORM outlier_enable('k', 'a', 1, chunk => 2);
  EXECUTE format('INSERT INTO k VALUES (%L, ''{a: [1, 2, 3]}''), (%L, ''{a: [7, 8]}'')', one, other);
  EXECUTE format('SELECT outlier_push(''k'', %L::%s, 4)', one, type);
  EXECUTE format('SELECT outlier_push(''k'', %L, 5)', one);
  EXECUTE format('DELETE FROM k WHERE id = %L', other);
  EXECUTE format('UPDATE k SET id = %L', other);
  EXECUTE format('SELECT doc ->> ''a'' FROM k_whole WHERE id = %L', other) INTO got;
  SELECT count(*) INTO violated FROM pattern_check('k');
  DROP TABLE k CASCADE;
  RETURN is(got || ' ' || violated, '[1, 2, 3, 4, 5] 0', 'a key of type ' || type);
END $$;
SELECT pg_temp.key_works(ty, a, b) FROM (VALUES ('int', '1', '2'), ('bigint', '1', '5000000000'), ('smallint', '1', '2'), ('numeric', '1.5', '1.50000000000000000000000000000000000000000000001'),
  ('text', 'a', 'A'), ('varchar(5)', 'a', 'b'), ('char(5)', 'a', 'b'), ('text COLLATE "C"', 'a"b', 'a''b\'), ('uuid', '00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002'),
  ('timestamptz', '2020-01-01 00:00:00.000001', '2020-01-01 00:00:00.000002'), ('date', '2020-01-01', '2020-01-02'), ('float8', '1.5', '2.5'), ('bytea', '\x01', '\x02'),
  ('objectid', '000000000000000000000001', '000000000000000000000002'), ('interval', '1 day', '2 days'), ('boolean', 't', 'f'), ('inet', '10.0.0.1', '10.0.0.2')) AS v (ty, a, b)
  WHERE ty <> 'text COLLATE "C"';
CREATE TABLE k (id bson_value PRIMARY KEY, doc bson);
SELECT outlier_enable('k', 'a', 1) \g /dev/null
INSERT INTO k VALUES ('"x"', '{a: [1, 2]}'), ('5', '{a: [1, 2]}'), ('{x: 1}', '{a: [1, 2]}');
SELECT is(outlier_push('k', 'x', 3) + outlier_push('k', 5, 3) + outlier_push('k', '{x: 1}'::bson, 3), 3::bigint, 'bson_value keys: an untyped literal is a string');
SELECT is((SELECT count(*) FROM k_whole WHERE bson_array_length(doc, 'a') = 3), 3::bigint, 'and all were found');
UPDATE k SET id = '5.0' WHERE id = '5';
SELECT is((SELECT doc ->> 'a' FROM k_whole WHERE id = '5'), '[1, 2, 3]', 'a key that changes its bytes but not its value');
DROP TABLE k CASCADE;
CREATE TABLE k (u uuid, n int, t text COLLATE "C", doc bson, PRIMARY KEY (n, t, u));
SELECT outlier_enable('k', 'a', 1) \g /dev/null
INSERT INTO k VALUES ('00000000-0000-0000-0000-000000000001', 1, 'x', '{a: [1, 2]}');
SELECT is(outlier_push('k', ROW(1, 'x', '00000000-0000-0000-0000-000000000001'::uuid), 3), 1::bigint, 'a key of three columns');
SELECT throws_ok($$SELECT outlier_push('k', ROW(1, 'x'), 3)$$, '42809', NULL, 'all of them are needed');
SELECT throws_ok($$SELECT outlier_push('k', ROW(1, NULL, NULL), 3)$$, '22004', NULL, 'and none is null');
SELECT throws_ok($$SELECT outlier_push('k', 1, 3)$$, '42809', NULL, 'one value is no row');
UPDATE k SET n = n + 1, t = 'y';
SELECT is((SELECT doc ->> 'a' FROM k_whole WHERE n = 2), '[1, 2, 3]', 'and it may change');
DROP TABLE k CASCADE;
CREATE DOMAIN small AS int CHECK (VALUE < 100);
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE k (n small, m mood, doc bson, PRIMARY KEY (n, m));
SELECT outlier_enable('k', 'a', 1) \g /dev/null
INSERT INTO k VALUES (1, 'sad', '{a: [1, 2]}');
SELECT is(outlier_push('k', ROW(1, 'sad'), 3) + outlier_push('k', ROW(1, 'sad'::mood), 4), 2::bigint, 'a key of a domain and an enum, its literals untyped');
UPDATE k SET m = 'happy';
SELECT is((SELECT doc ->> 'a' FROM k_whole), '[1, 2, 3, 4]', 'and it may change');
DROP TABLE k CASCADE; DROP DOMAIN small; DROP TYPE mood;
SELECT pg_temp.true_everywhere('keys');
CREATE UNLOGGED TABLE u (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('u', 'a', 1) \g /dev/null
SELECT is((SELECT string_agg(DISTINCT relpersistence::text, '') FROM pg_class WHERE relname IN ('u', 'u_a_extras')), 'u', 'an unlogged table has unlogged extras');
DROP TABLE u CASCADE;
CREATE TABLE u (id int PRIMARY KEY, doc bson);
CREATE TABLE u1 () INHERITS (u);
SELECT throws_ok($$SELECT outlier_enable('u', 'a', 1)$$, '0A000', NULL, 'a table that others inherit from');
DROP TABLE u CASCADE;
CREATE TABLE u (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('u', 'a', 1) \g /dev/null
INSERT INTO u VALUES (1, '{a: [1, 2, 3]}');
DROP VIEW u_whole;
ALTER TABLE u ALTER id TYPE bigint;
SELECT throws_ok($$INSERT INTO u VALUES (2, '{a: [1, 2, 3]}')$$, '55000', NULL, 'a key of another type than that of the extras');
ALTER TABLE u_a_extras ALTER key TYPE bigint;
SELECT lives_ok($$INSERT INTO u VALUES (2, '{a: [1, 2, 3]}')$$, 'which follows by hand');
SELECT is(pattern_repair('u'), 0::bigint, 'and the view by repair');
SELECT is((SELECT count(*) FROM u_whole WHERE bson_array_length(doc, 'a') = 3), 2::bigint, 'with all in it');
DROP TABLE u CASCADE;

-- Hostile names
CREATE SCHEMA "W eird ""s";
CREATE TABLE "W eird ""s"."T 't\" ("Id ""x'" int PRIMARY KEY, "D o'c""" bson, stored int, key int DEFAULT 7);
CREATE FUNCTION pg_temp.hostile(field text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE name text; got text;
BEGIN
  TRUNCATE "W eird ""s"."T 't\";
  name := outlier_enable('"W eird ""s"."T ''t\"', field, 2, flag => 'the flag', count_field => '"' || replace(replace(field, '"', ''), '.', '_') || 'n"', index_elements => true);
  EXECUTE 'INSERT INTO "W eird ""s"."T ''t\" VALUES (1, bson_set(''{}'', $1, bson_array(1, 2, 3, 4)))' USING field;
  PERFORM outlier_push('"W eird ""s"."T ''t\"', 1, 'five');
  EXECUTE 'UPDATE "W eird ""s"."T ''t\" SET "Id ""x''" = 2';
  SELECT bson_get_text("D o'c""", field) INTO got FROM "W eird ""s"."T 't\_whole";
  got := got || outlier_count('"W eird ""s"."T ''t\"', 2) || (SELECT count(*) FROM outlier_find('"W eird ""s"."T ''t\"', 'five')) || (SELECT count(*) FROM pattern_check());
  PERFORM pattern_alter('"W eird ""s"."T ''t\"', name, '{threshold: 3}');
  PERFORM pattern_repair('"W eird ""s"."T ''t\"', name);
  got := got || ' ' || pattern_disable('"W eird ""s"."T ''t\"', name);
  got := got || ' ' || (SELECT bson_array_length("D o'c""", field) FROM "W eird ""s"."T 't\");
  RETURN is(got, '[1, 2, 3, 4, "five"]510 1 5', 'a field named ' || left(field, 30));
END $f$;
SELECT pg_temp.hostile(f) FROM unnest(ARRAY['x', 'a b', 'O''Hara', '{x', '}', '"a.b"', '"say ""hi"""', 'stats.buyers', '$1', '%s%I', 'ü€😀', 'a\b', repeat('n', 100), repeat('€', 40)]) f;
DROP SCHEMA "W eird ""s" CASCADE;
-- Names that differ only where they are cut off, or that look like a trigger of the other
CREATE TABLE k (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('k', f, 1, flag => 'f' || n, extras => 'k_extras_' || n) FROM unnest(ARRAY['x', 'x_before', 'x_insert', 'x_statement', repeat('l', 70) || '1', repeat('l', 70) || '2']) WITH ORDINALITY AS u (f, n) \g /dev/null
INSERT INTO k SELECT 1, bson_object_agg(f, '[1, 2, 3]'::bson_value) FROM unnest(ARRAY['x', 'x_before', 'x_insert', 'x_statement', repeat('l', 70) || '1', repeat('l', 70) || '2']) f;
SELECT is((SELECT count(*) FROM k, bson_each(doc) e WHERE e.value = '[1]'), 6::bigint, 'six patterns on one table, all at work');
UPDATE k SET id = 2;
SELECT is((SELECT count(*) FROM k_whole, bson_each(doc) e WHERE e.value = '[1, 2, 3]'), 6::bigint, 'and through a change of key');
SELECT throws_ok($$SELECT outlier_count('k', 2)$$, '22023', NULL, 'a call must say which one');
SELECT is(outlier_push_into('k', 'x_before', 2, 4), 1::bigint, 'a push says so with push_into');
SELECT is(outlier_count('k', 2, 'x_before') - outlier_count('k', 2, 'x'), 1::bigint, 'and only that one has grown');
SELECT pattern_alter('k', 'x_before', '{threshold: 2}'), pattern_alter('k', 'x', '{threshold: 3}') \g /dev/null
SELECT is((SELECT string_agg(doc ->> f, ' ' ORDER BY f) FROM k, unnest('{x,x_before,x_insert}'::text[]) f), '[1, 2, 3] [1, 2] [1]', 'altered one by one');
SELECT pg_temp.true_everywhere('hostile names');
DROP TABLE k CASCADE;
SELECT hasnt_table('k_extras_1', 'nothing is left');

-- What each option does
CREATE FUNCTION pg_temp.option(options text, doc bson, then_do text, what text, expected text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE got text;
BEGIN
  CREATE TABLE o (id int PRIMARY KEY, doc bson);
  EXECUTE format('SELECT outlier_enable(''o'', ''a'', %s)', options);
  INSERT INTO o VALUES (1, doc);
  EXECUTE coalesce(then_do, 'SELECT');
  SELECT string_agg(o.doc::text, '') INTO got FROM o;
  got := got || coalesce((SELECT ' ' || count(*) FROM pattern_check('o') HAVING count(*) > 0), '');
  DROP TABLE o CASCADE;
  RETURN is(got, expected, what);
END $$;
SELECT pg_temp.option(o, d::bson, x, w, e) FROM (VALUES
  ('2', '{a: [1, 2]}', NULL, 'threshold: as many', '{"a": [1, 2]}'),
  ('2', '{a: [1, 2, 3]}', NULL, 'threshold: one more', '{"a": [1, 2], "has_extras": true}'),
  ('3, keep => 1', '{a: [1, 2, 3, 4]}', NULL, 'keep: one', '{"a": [1], "has_extras": true}'),
  ('3, keep => 0', '{x: 1, a: [1, 2, 3, 4], y: 2}', NULL, 'keep: none', '{"x": 1, "y": 2, "has_extras": true}'),
  ('3, keep => 0', '{a: [1, 2, 3]}', NULL, 'keep: none, but no outlier', '{"a": [1, 2, 3]}'),
  ('2, stay => ''last''', '{a: [1, 2, 3, 4]}', NULL, 'stay: the last', '{"a": [3, 4], "has_extras": true}'),
  ('2, flag => ''x.y''', '{a: [1, 2, 3]}', NULL, 'flag: another path', '{"a": [1, 2], "x": {"y": true}}'),
  ('2, flag => ''f''', '{a: [1], f: "true"}', NULL, 'flag: a stale string', '{"a": [1]}'),
  ('2, flag => ''f''', '{a: [1], f: {x: 1}}', NULL, 'flag: a stale document', '{"a": [1]}'),
  ('2, flag => ''f''', '{a: [1, 2, 3], f: false}', NULL, 'flag: a false one', '{"a": [1, 2], "f": true}'),
  ('2, count_field => ''c.n''', '{a: [1, 2, 3]}', NULL, 'count_field', '{"a": [1, 2], "has_extras": true, "c": {"n": 3}}'),
  ('2, count_field => ''n''', '{n: "many", a: [1]}', NULL, 'count_field: a stale string', '{"n": 1, "a": [1]}'),
  ('2, count_field => ''n''', '{}', NULL, 'count_field: no array', '{"n": 0}'),
  ('2, is_set => true', '{a: [1, 1, 2, 1.0, 2]}', NULL, 'is_set: equal values once', '{"a": [1, 2]}'),
  ('2, is_set => true', '{a: [1, 1, 2, 3]}', 'UPDATE o SET doc = bson_array_append(doc, ''a'', 3, 4, 4)', 'is_set: nor again', '{"a": [1, 2], "has_extras": true}'),
  ('2, mode => ''deferred''', '{a: [1, 2, 3]}', NULL, 'deferred: flagged', '{"a": [1, 2, 3], "has_extras": true}'),
  ('2, mode => ''deferred''', '{a: [1, 2, 3]}', 'SELECT outlier_spill(''o'')', 'deferred: then split', '{"a": [1, 2], "has_extras": true}'),
  ('2, mode => ''deferred''', '{a: [1, 2, 3]}', 'UPDATE o SET doc = bson_set(doc, ''a'', bson_array(1))', 'deferred: short again', '{"a": [1]}'),
  ('2', '{a: []}', NULL, 'an empty array', '{"a": []}'), ('2', '{a: "text"}', NULL, 'a field of another type', '{"a": "text"}'),
  ('2', '{a: [1, 2, 3]}', 'UPDATE o SET doc = ''{a: "text"}''', 'a string over an outlier''s array: it is refilled', '{"a": [3]}'),
  ('2, keep => 0', '{a: [1, 2, 3]}', 'UPDATE o SET doc = bson_set(doc, ''a'', ''text''::text)', 'the same with nothing kept', '{"has_extras": true}'),
  ('2', '{a: [1, 2, 3, 4, 5]}', 'UPDATE o SET doc = doc - ''a''', 'a field taken away: refilled', '{"has_extras": true, "a": [3, 4]}'),
  ('2', '{a: [1, 2, 3]}', 'UPDATE o SET doc = ''{}''', 'an empty document: refilled', '{"a": [3]}')
) AS v (o, d, x, w, e);
CREATE TABLE o (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('o', 'a', 2, index_elements => true, name => 'named', extras => 'o_others', chunk => 1) \g /dev/null
INSERT INTO o SELECT i, bson_build('a', bson_array(i, i + 1, i + 2)) FROM generate_series(1, 500) i;
ANALYZE o;
SELECT has_table('o_others', 'extras has a name of its own');
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 'o'::regclass), 2::bigint, 'index_elements makes an index');
SELECT is((SELECT array_agg((doc -> 'a' -> 0)::int ORDER BY (doc -> 'a' -> 0)::int) FROM outlier_find('o', 100) AS f (doc)), '{98,99,100}', 'find: inside and among the extras');
SELECT is((SELECT count(*) FROM outlier_find('o', 100, 'named')), 3::bigint, 'find by name');
SELECT pattern_alter('o', 'named', '{index_elements: false}') \g /dev/null
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 'o'::regclass), 1::bigint, 'and may go');
SELECT throws_ok(format('SELECT pattern_alter(''o'', ''named'', %L)', c), '22023', NULL, 'cannot alter: ' || c) FROM unnest(ARRAY['{field: "b"}', '{stay: "last"}', '{threshold: 0}', '{threshold: "5"}', '{keep: 9}', '{chunk: 0}', '{mode: "x"}', '{is_set: 1}', '{nonsense: 1}']) c;
SELECT pattern_alter('o', 'named', '{threshold: 1}'), pattern_alter('o', 'named', '{chunk: 3}'), pattern_alter('o', 'named', '{threshold: 3, keep: 0}'), pattern_alter('o', 'named', '{keep: 2}'), pattern_alter('o', 'named', '{mode: "deferred"}'), pattern_alter('o', 'named', '{mode: "immediate", is_set: true}') \g /dev/null
SELECT is_empty($$SELECT * FROM pattern_check('o')$$, 'true after each change');
SELECT is((SELECT options ->> 'keep' || (options ->> 'threshold') FROM pattern_list('o')), '23', 'and listed');
DROP TABLE o CASCADE;

-- All kinds of writes
TRUNCATE t;
SELECT is((SELECT count(*) FROM t_a_extras), 0::bigint, 'TRUNCATE empties the extras');
INSERT INTO t SELECT i, bson_build('a', pg_temp.ints(6)) FROM generate_series(6, 1, -1) i;
UPDATE t SET id = id + 1;
SELECT is((SELECT count(*) FROM t_whole WHERE doc -> 'a' = pg_temp.ints(6)), 6::bigint, 'keys that follow each other');
UPDATE t SET id = id + 10, doc = bson_array_append(doc, 'a', id);
SELECT is((SELECT count(*) FROM t_whole WHERE doc -> 'a' = (pg_temp.ints(6) || to_bson(id - 10))), 6::bigint, 'and arrays that grow with them, at the end');
SELECT is(pg_temp.whole('t', '12'), '[1, 2, 3, 4, 5, 6, 2]', 'as one would write it');
SELECT pg_temp.true_everywhere('keys that move');
COPY t FROM stdin;
100	{a: [1, 2, 3, 4, 5]}
101	{a: [1]}
\.
SELECT is(pg_temp.whole('t', '100'), '[1, 2, 3, 4, 5]', 'COPY');
INSERT INTO t SELECT id + 100, doc FROM t_whole WHERE id IN (100, 101);
SELECT is(pg_temp.whole('t', '200'), '[1, 2, 3, 4, 5]', 'INSERT .. SELECT from the view');
INSERT INTO t VALUES (200, '{a: [9, 9, 9, 9, 9]}'), (300, '{a: [9, 9, 9, 9]}') ON CONFLICT DO NOTHING;
SELECT is(pg_temp.whole('t', '200') || pg_temp.whole('t', '300'), '[1, 2, 3, 4, 5][9, 9, 9, 9]', 'ON CONFLICT DO NOTHING leaves no orphans');
INSERT INTO t VALUES (200, '{a: [7, 8, 9, 10]}'), (101, '{a: [7, 8, 9, 10]}') ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is(pg_temp.whole('t', '200'), '[7, 8, 9, 10, 4, 5]', 'ON CONFLICT DO UPDATE over an outlier: what it holds is replaced, nothing else is lost');
SELECT is(pg_temp.whole('t', '101'), '[7, 8, 9, 10]', 'over another document: all of it arrives');
MERGE INTO t USING (VALUES (200, 1), (400, 2)) AS s (id, v) ON t.id = s.id WHEN MATCHED THEN UPDATE SET doc = bson_array_append(doc, 'a', v)
  WHEN NOT MATCHED THEN INSERT VALUES (s.id, bson_build('a', pg_temp.ints(5)));
SELECT is(pg_temp.whole('t', '200') || pg_temp.whole('t', '400'), '[7, 8, 9, 10, 4, 5, 1][1, 2, 3, 4, 5]', 'MERGE');
UPDATE t SET doc = bson_set(doc, 'x', s.v) FROM (VALUES (400, 5)) AS s (id, v) WHERE t.id = s.id;
DELETE FROM t USING (VALUES (300)) AS s (id) WHERE t.id = s.id;
SELECT is((SELECT count(*) FROM t_a_extras WHERE key = 300), 0::bigint, 'DELETE forgets the extras');
UPDATE t SET doc = NULL WHERE id = 100;
SELECT is((SELECT count(*) FROM t_a_extras WHERE key = 100), 0::bigint, 'no document, no extras');
SELECT is((SELECT doc FROM t WHERE id = 100), NULL, 'and it stays null');
SELECT is(outlier_count('t', 100) || ' ' || outlier_push('t', 100, 1, 2, 3, 4), '0 4', 'a null document can be pushed to');
BEGIN;
SAVEPOINT s; UPDATE t SET id = id + 1000, doc = bson_array_append(doc, 'a', 77); DELETE FROM t WHERE id < 1100; ROLLBACK TO s;
COMMIT;
SELECT is(pg_temp.whole('t', '400'), '[1, 2, 3, 4, 5]', 'a savepoint takes all back');
SELECT pg_temp.true_everywhere('writes');
SELECT throws_ok($$UPDATE t SET doc = bson_set(doc, 'a', 'x'::text) WHERE id = 999; SELECT outlier_push('s', 1, 1)$$, '42P01', NULL, 'no such table');
INSERT INTO t VALUES (500, '{a: "text"}');
SELECT throws_ok($$SELECT outlier_push('t', 500, 1)$$, '42804', NULL, 'push to something that is no array');
SELECT is(outlier_push('t', 500, VARIADIC '{}'::int[]), 0::bigint, 'push of nothing');
SELECT is(outlier_push('t', 400, VARIADIC '{6,7}'::int[]), 2::bigint, 'push of an array''s elements');
SELECT is(outlier_push('t', 400, NULL), 1::bigint, 'push of null');
SELECT is(outlier_contains('t', 400, NULL::int) AND outlier_contains('t', 400, 7::bigint) AND NOT outlier_contains('t', 400, '7'), true, 'values are compared as BSON');
SELECT is(outlier_pull('t', 400, NULL::text) + outlier_pull('t', 400, 2.0), 2::bigint, 'and pulled so');
SELECT is(pg_temp.whole('t', '400'), '[1, 3, 4, 5, 6, 7]', 'the others stay');
-- Pulling values that lie in chunks which then fit together
INSERT INTO t VALUES (600, '{a: [0, 0, 0, 9, 9, 1, 9, 9, 2, 3, 9, 9, 9, 9, 4]}');
SELECT is(outlier_pull('t', 600, 9), 8::bigint, 'pull from many chunks');
SELECT is(pg_temp.whole('t', '600'), '[0, 0, 0, 1, 2, 3, 4]', 'took them all');
-- All types of elements
INSERT INTO t VALUES (700, '{a: [1, 1.5, "s", {d: 1}, [1, [2]], true, null, {"$oid": "000000000000000000000001"}, {"$date": "2020-01-01T00:00:00Z"}, /x/i, {"$numberLong": "5"},
  {"$numberDecimal": "1.50"}, {"$binary": {"base64": "AAE=", "subType": "00"}}, {"$timestamp": {"t": 1, "i": 2}}, {"$minKey": 1}, {"$maxKey": 1}, {"$undefined": true}, {"$code": "f"}, {"$symbol": "s"}]}');
SELECT is(bson_array_length(doc, 'a'), 19, 'elements of all types') FROM t_whole WHERE id = 700;
SELECT is((SELECT count(*) FROM bson_elements((SELECT doc -> 'a' FROM t_whole WHERE id = 700)) e WHERE outlier_contains('t', 700, e)), 19::bigint, 'all are found');
INSERT INTO t VALUES (800, bson_build('a', pg_temp.ints(20000)));
SELECT is(outlier_count('t', 800) || ' ' || (SELECT string_agg(value::text, ',') FROM outlier_page('t', 800, 19998, 5)), '20000 19999,20000', 'a long array, paged');
SELECT is((SELECT string_agg("position"::text, ',') FROM outlier_page('t', 800, 1, 3)), '1,2,3', 'across the end of the document');
SELECT pg_temp.true_everywhere('elements');
DELETE FROM t WHERE id = 800;

-- Triggers of the user's own
CREATE FUNCTION before_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.doc := bson_array_append(NEW.doc, 'a', 'trigger'); RETURN NEW; END $$;
CREATE TRIGGER a_before BEFORE UPDATE ON t FOR EACH ROW WHEN (NEW.doc ? 'push') EXECUTE FUNCTION before_change();
UPDATE t SET doc = bson_set(doc, 'push', 1) WHERE id = 400;
SELECT is(pg_temp.whole('t', '400'), '[1, 3, 4, 5, 6, 7, "trigger"]', 'a BEFORE trigger that appends');
DROP TRIGGER a_before ON t;
CREATE FUNCTION after_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE t SET doc = bson_set(doc, 'seen', TG_OP) WHERE id = NEW.id AND NOT doc ? 'seen'; RETURN NULL; END $$;
CREATE TRIGGER a_after AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION after_change();
INSERT INTO t VALUES (900, '{a: [1, 2, 3, 4, 5]}');
UPDATE t SET doc = bson_array_append(doc, 'a', 8) - 'seen' WHERE id = 900;
UPDATE t SET id = id + 1, doc = bson_array_append(doc, 'a', 9) - 'seen' WHERE id IN (101, 900);
SELECT is(pg_temp.whole('t', '901') || (SELECT doc ->> 'seen' FROM t WHERE id = 901), '[1, 2, 3, 4, 5, 8, 9]UPDATE', 'an AFTER trigger that updates the same row');
SELECT pg_temp.true_everywhere('user triggers');
DROP TRIGGER a_after ON t;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER a_refuse BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION refuse();
SELECT throws_ok($$INSERT INTO t VALUES (950, '{a: [1, 2, 3, 4]}')$$, '27000', NULL, 'a trigger that keeps the pattern from writing');
INSERT INTO t VALUES (951, '{a: [1]}');
SELECT is(outlier_push('t', 951, 2) + outlier_pull('t', 951, 1), 0::bigint, 'or a user');
DROP TRIGGER a_refuse ON t;

-- Triggers made by hand do no harm
CREATE TABLE f (id int PRIMARY KEY, doc bson);
CREATE TRIGGER f1 AFTER INSERT ON f FOR EACH ROW EXECUTE FUNCTION docpatterns.outlier_trigger('{"name": "x", "field": "a", "flag": "b", "link_id": "z"}');
SELECT throws_ok($$INSERT INTO f VALUES (1, '{}')$$, '22023', NULL, 'an incomplete declaration');
DROP TRIGGER f1 ON f;
CREATE TRIGGER zz_docpatterns_f AFTER DELETE ON f FOR EACH ROW EXECUTE FUNCTION docpatterns.outlier_trigger('{bad');
SELECT lives_ok($$SELECT * FROM pattern_list()$$, 'a declaration that is none is no matter');
CREATE VIEW fv AS SELECT 1 AS one;
CREATE TRIGGER fv INSTEAD OF INSERT ON fv FOR EACH ROW EXECUTE FUNCTION docpatterns.pattern_whole_trigger();
SELECT throws_ok('INSERT INTO fv VALUES (1)', '55000', NULL, 'a view of another kind');
DROP TABLE f; DROP VIEW fv;

-- Partitions
CREATE TABLE p (id int, doc bson, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
SELECT outlier_enable('p', 'a', 2, count_field => 'n', chunk => 2) \g /dev/null
CREATE TABLE p2 (junk int, doc bson, id int PRIMARY KEY);
ALTER TABLE p2 DROP COLUMN junk;
ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (100) TO (200);
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (200) TO (300) PARTITION BY HASH (id);
CREATE TABLE p30 PARTITION OF p3 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE p31 PARTITION OF p3 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO p SELECT i, bson_build('a', pg_temp.ints(5)) FROM generate_series(1, 9) i;
UPDATE p SET id = id * 30 + 7;
SELECT is((SELECT count(*) FROM p_whole WHERE doc -> 'a' = pg_temp.ints(5)), 9::bigint, 'rows that move to other partitions keep their extras');
UPDATE p SET id = id - 1, doc = bson_array_append(doc, 'a', 6);
SELECT is((SELECT count(*) FROM p_whole WHERE doc -> 'a' = pg_temp.ints(6)), 9::bigint, 'also when their arrays grow');
UPDATE p2 SET id = id + 1 WHERE id = 126;
SELECT is(outlier_push('p2', 127, 7) || pg_temp.whole('p', '127'), '1[1, 2, 3, 4, 5, 6, 7]', 'a partition can be written to and named');
SELECT pg_temp.true_everywhere('partitions');
UPDATE p_whole SET id = 201, doc = '{a: [1]}' WHERE id = 36;
UPDATE p_whole SET id = 1, doc = '{a: [3, 2, 1]}' WHERE id = 66;
SELECT is((SELECT doc::text FROM p WHERE id = 201) || (SELECT doc::text FROM p WHERE id = 1), '{"a": [1], "n": 1}{"a": [3, 2], "has_extras": true, "n": 3}', 'whole documents that move');
TRUNCATE p2;
SELECT is((SELECT count(*) FROM p_a_extras WHERE key BETWEEN 100 AND 199), 0::bigint, 'TRUNCATE of a partition');
DELETE FROM p3;
SELECT pg_temp.true_everywhere('partitions emptied');
SELECT pattern_alter('p', 'a', '{threshold: 1}') \g /dev/null
SELECT is((SELECT string_agg(doc ->> 'a', '' ORDER BY id) FROM p), '[3][1]', 'altered');
SELECT is(pattern_disable('p'), 2::bigint, 'and disabled');
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'zz%' AND tgrelid = ANY ('{p,p1,p2,p3,p30}'::regclass[])), 0::bigint, 'no trigger is left');
DROP TABLE p;

-- A collection
SELECT collection_create('users'), collection_create('orders') \g /dev/null
SELECT outlier_enable('users', 'o', 2, keep => 1, extras => 'orders', on_field => 'u', count_field => 'n') \g /dev/null
SELECT throws_ok($$INSERT INTO users (doc) VALUES ('{_id: 1, o: [{x: 1}, 2, {x: 3}]}')$$, '23514', NULL, 'an element that is no document');
SELECT throws_ok($$INSERT INTO users (doc) VALUES ('{_id: 1, o: [{x: 1}, {u: 2}, {x: 3}]}')$$, '23514', NULL, 'an element with a link of its own');
INSERT INTO users (doc) VALUES ('{_id: 1, o: [{_id: 1}, {_id: 2}, {_id: 3}, {_id: 4}]}'), ('{_id: 2, o: []}');
SELECT throws_ok($$INSERT INTO orders (doc) VALUES ('{u: 77}')$$, '23503', NULL, 'a link that names nobody');
SELECT throws_ok($$UPDATE orders SET doc = bson_set(doc, 'u', 'x') WHERE _id = 2$$, '23503', NULL, 'nor may one be written');
SELECT lives_ok($$INSERT INTO orders (doc) VALUES ('{other: 1}')$$, 'documents without a link are no matter');
UPDATE orders SET doc = bson_set(doc, 'x', 5) WHERE _id = 3;
SELECT is(doc ->> 'o', '[{"_id": 1}, {"_id": 2}, {"_id": 3, "x": 5}, {"_id": 4}]', 'an element changed where it lies') FROM users_whole WHERE _id = 1;
UPDATE orders SET doc = bson_set(doc, 'u', 2) WHERE _id = 3;
SELECT is((SELECT string_agg(doc::text, ' ' ORDER BY _id) FROM users), '{"_id": 1, "o": [{"_id": 1}], "has_extras": true, "n": 3} {"_id": 2, "o": [{"_id": 3, "x": 5}], "n": 1}', 'and moved to another');
INSERT INTO orders (doc) SELECT bson_build('_id', i, 'u', 2, 'v', i % 2) FROM generate_series(10, 15) i;
SELECT is(outlier_count('users', 2) || ' ' || outlier_pull('users', 2, '{v: 1}'::bson), '7 3', 'counted, and pulled by value without _id');
SELECT is((SELECT count(*) FROM orders), 6::bigint, 'the rows of the others were not written');
SELECT is((SELECT count(*) FROM outlier_find('users', '{_id: 14, v: 0}'::bson)), 1::bigint, 'found');
SELECT pg_temp.true_everywhere('collection');
CREATE TRIGGER a_refuse BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION refuse();
SELECT throws_ok($$INSERT INTO users (doc) VALUES ('{_id: 5, o: [{x: 1}, {x: 2}, {x: 3}]}')$$, '27000', NULL, 'nothing is lost in a trigger of the collection');
DROP TRIGGER a_refuse ON orders; DROP FUNCTION refuse();
DELETE FROM users WHERE _id = 2;
SELECT is((SELECT count(*) FROM orders WHERE doc ? 'u'), 2::bigint, 'the extras go with their document');
TRUNCATE orders;
SELECT is((SELECT doc::text FROM users), '{"_id": 1, "o": [{"_id": 1}], "n": 1}', 'TRUNCATE of the collection');
-- A document is an outlier exactly while the whole array has more than threshold elements, whichever side is written to.
SELECT collection_create('powers') \g /dev/null
SELECT outlier_enable('powers', 'p', 3, keep => 0, extras => 'lines', on_field => 'u', create_extras => true) \g /dev/null
CREATE FUNCTION pg_temp.lies(id int) RETURNS text LANGUAGE sql AS
  $$SELECT concat_ws(' ', (SELECT doc ->> 'p' FROM powers WHERE _id = id), (SELECT doc ->> 'has_extras' FROM powers WHERE _id = id), (SELECT count(*) FROM lines WHERE doc @@ bson_build('u', id)))$$;
INSERT INTO powers (doc) VALUES ('{_id: 1, p: [{_id: 1}, {_id: 2}]}'), ('{_id: 2, p: [{_id: 21}, {_id: 22}, {_id: 23}]}'), ('{_id: 3}');
INSERT INTO lines (doc) VALUES ('{_id: 3, u: 1}'), ('{_id: 24, u: 2}'), ('{_id: 31, u: 3}');
SELECT is(pg_temp.lies(1), '[{"_id": 1}, {"_id": 2}, {"_id": 3}] 0', 'a row of the collection goes where the others are');
SELECT is(pg_temp.lies(2), 'true 4', 'one that is too many makes an outlier');
SELECT is(pg_temp.lies(3), '[{"_id": 31}] 0', 'the first element');
SELECT throws_ok(format($$INSERT INTO lines (doc) VALUES ('{_id: 31, u: 3, n: 2}') %s$$, conflict),
    '23505', NULL, 'no second row with the _id of an element' || conflict)
  FROM unnest(ARRAY['', ' ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc']) conflict;
UPDATE powers SET doc = bson_set(doc, 'p', '[{_id: 31}, {_id: 31}]'::bson_value) WHERE _id = 3;
SELECT lives_ok($$INSERT INTO lines (doc) VALUES ('{_id: 32, u: 3}'); DELETE FROM lines WHERE _id = 32$$,
  'twins that stood there before are not in the way');
UPDATE powers SET doc = bson_set(doc, 'p', '[{_id: 31}]'::bson_value) WHERE _id = 3;
SELECT pg_temp.true_everywhere('keep 0');
DELETE FROM lines WHERE _id = 24;
SELECT is(pg_temp.lies(2), '[{"_id": 21}, {"_id": 22}, {"_id": 23}] 0', 'taken away, it is as it was');
SELECT outlier_push('powers', 2, '{_id: 25}'::bson) \g /dev/null
SELECT is(pg_temp.lies(2), 'true 4', 'the same by a push');
SELECT outlier_pull('powers', 2, '{_id: 22}'::bson) \g /dev/null
SELECT is(pg_temp.lies(2), '[{"_id": 21}, {"_id": 23}, {"_id": 25}] 0', 'and by a pull');
UPDATE powers_whole SET doc = '{_id: 3, p: [{_id: 1001}, {_id: 1002}, {_id: 1003}, {_id: 1004}]}' WHERE _id = 3;
SELECT is(pg_temp.lies(3), 'true 4', 'by the whole document');
UPDATE lines SET doc = bson_set(doc, 'u', 1) WHERE _id = 1004;
SELECT is(pg_temp.lies(1) || ', ' || pg_temp.lies(3), 'true 4, [{"_id": 1001}, {"_id": 1002}, {"_id": 1003}] 0', 'moved from one to another');
SELECT pg_temp.true_everywhere('keep 0');
CREATE TABLE halves (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('halves', 'h', 4, keep => 2, stay => 'last') \g /dev/null
INSERT INTO halves VALUES (1, '{h: [1, 2, 3, 4, 5]}');
SELECT is((SELECT doc::text FROM halves), '{"h": [4, 5], "has_extras": true}', 'chunks: more than the threshold');
SELECT outlier_pull('halves', 1, 2) \g /dev/null
SELECT is((SELECT doc::text FROM halves), '{"h": [1, 3, 4, 5]}', 'no more than it');
UPDATE halves SET doc = '{h: [1, 3, 4, 5, 6]}';
UPDATE halves SET doc = '{h: [5]}';
SELECT is((SELECT doc::text FROM halves), '{"h": [1, 3, 4, 5]}', 'in an UPDATE of what stays');
SELECT pg_temp.true_everywhere('chunks');
DROP TABLE powers, lines, halves CASCADE;
SELECT pattern_disable('users') \g /dev/null
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'zz_docpatterns_[57]%' OR tgname LIKE '%outlier_o%'), 0::bigint, 'disabled: no trigger on either');
DROP TABLE users; DROP TABLE orders;
SELECT collection_create('orders') \g /dev/null
CREATE TABLE users (n int PRIMARY KEY, doc bson);
SELECT outlier_enable('users', 'o', 1, extras => 'orders', on_field => 'u') \g /dev/null
SELECT throws_ok(format('INSERT INTO orders (doc) VALUES (%L)', d), '23503', NULL, 'a link of another kind: ' || d) FROM unnest(ARRAY['{u: 5.5}', '{u: 5000000000}', '{u: "5"}', '{u: NaN}', '{u: null}', '{u: [5]}', '{u: {x: 5}}']) d;
DROP TABLE users CASCADE;
CREATE TABLE users (id uuid PRIMARY KEY, doc bson);
SELECT outlier_enable('users', 'o', 1, extras => 'orders', on_field => 'u') \g /dev/null
SELECT throws_ok(format('INSERT INTO orders (doc) VALUES (%L)', d), '23503', NULL, 'a link that is no uuid: ' || d) FROM unnest(ARRAY['{u: 5}', '{u: "abc"}', '{u: [5]}']) d;
INSERT INTO users VALUES ('00000000-0000-0000-0000-000000000001', '{o: [{x: 1}, {x: 2}, {x: 3}]}');
UPDATE users SET id = '00000000-0000-0000-0000-000000000002';
SELECT is((SELECT count(*) FROM orders WHERE doc -> 'u' = '00000000-0000-0000-0000-000000000002'::uuid), 2::bigint, 'a uuid links');
DROP TABLE users CASCADE;
CREATE TABLE users (a int, b text, doc bson, PRIMARY KEY (a, b));
TRUNCATE orders;
SELECT outlier_enable('users', 'o', 1, extras => 'orders', on_field => 'u', count_field => 'n') \g /dev/null
INSERT INTO users VALUES (1, 'x', '{o: [{x: 1}, {x: 2}, {x: 3}]}');
INSERT INTO orders (doc) VALUES ('{u: [1, "x"]}');
UPDATE users SET b = 'y';
SELECT is((SELECT string_agg(DISTINCT doc ->> 'u', '') FROM orders) || (SELECT doc ->> 'n' FROM users), '[1, "y"]4', 'several columns link as an array');
SELECT throws_ok($$INSERT INTO orders (doc) VALUES ('{u: [1]}')$$, '23503', NULL, 'of all of them');
SELECT pg_temp.true_everywhere('links');
DROP TABLE users CASCADE; DROP TABLE orders;
CREATE TABLE parts (id int PRIMARY KEY, doc bson) PARTITION BY HASH (id);
SELECT throws_ok($$SELECT outlier_enable('t', 'zzz', 2, flag => 'zf', extras => 'parts', on_field => 'u')$$, '42809', NULL, 'a partitioned collection');
DROP TABLE parts;

-- The view
CREATE TABLE v (id serial PRIMARY KEY, made int DEFAULT 42, double int GENERATED ALWAYS AS (made * 2) STORED, doc bson);
SELECT outlier_enable('v', 'a', 2, count_field => 'n') \g /dev/null
PREPARE view_insert AS INSERT INTO v_whole (doc) VALUES ('{a: [1, 2, 3]}') RETURNING id, made, double, doc::text;
SELECT results_eq('view_insert', $$VALUES (1, 42, 84, '{"a": [1, 2, 3], "n": 3}')$$, 'INSERT: defaults, and RETURNING shows them');
COPY v_whole (made, doc) FROM stdin;
1	{a: [4, 5, 6, 7]}
\.
SELECT is((SELECT doc ->> 'a' FROM v_whole WHERE made = 1), '[4, 5, 6, 7]', 'COPY');
UPDATE v_whole SET made = 5, doc = bson_set(doc, 'a', bson_array(9, 8, 7, 6)) WHERE id = 2;
SELECT is((SELECT format('%s %s %s', made, double, doc ->> 'a') FROM v_whole WHERE id = 2), '5 10 [9, 8, 7, 6]', 'UPDATE of a column and the array');
UPDATE v_whole SET id = 7, doc = bson_array_append(doc, 'a', 5) WHERE id = 2;
UPDATE v_whole SET id = 8 WHERE id = 7;
SELECT is((SELECT doc ->> 'a' FROM v_whole WHERE id = 8), '[9, 8, 7, 6, 5]', 'UPDATE of the key');
UPDATE v_whole SET doc = NULL WHERE id = 8;
SELECT is((SELECT count(*) FROM v_a_extras WHERE key = 8), 0::bigint, 'UPDATE to null');
ALTER TABLE v ADD COLUMN later text;
ALTER TABLE v RENAME COLUMN made TO produced;
ALTER TABLE v RENAME TO renamed; ALTER TABLE v_a_extras RENAME TO extras_renamed;
CREATE SCHEMA moved; ALTER TABLE renamed SET SCHEMA moved; ALTER TABLE extras_renamed SET SCHEMA moved;
UPDATE v_whole SET doc = bson_array_append(doc, 'a', 4) WHERE id = 1;
SELECT is((SELECT doc ->> 'a' FROM v_whole WHERE id = 1), '[1, 2, 3, 4]', 'all may be renamed and moved');
SELECT pg_temp.true_everywhere('renamed');
-- Whole documents beyond the size of one
INSERT INTO moved.renamed VALUES (50, 1, DEFAULT, bson_build('a', (SELECT bson_agg(repeat('x', 100000)) FROM generate_series(1, 100))));
SELECT outlier_push('moved.renamed', 50, VARIADIC array(SELECT repeat('y', 100000) FROM generate_series(1, 80))) \g /dev/null
SELECT ok(bson_size(doc) > 17 * 1024 * 1024 AND bson_array_length(doc, 'a') = 180, '17 MiB and more') FROM v_whole WHERE id = 50;
UPDATE v_whole SET made = 2 WHERE id = 50;
SELECT is((SELECT produced FROM moved.renamed WHERE id = 50), 2, 'its other columns can be written');
SELECT throws_like($$SELECT pattern_disable('moved.renamed')$$, 'cannot disable pattern%: 1 documents%', 'disable lists what is too large');
SELECT is(outlier_count('moved.renamed', 50), 180::bigint, 'and has changed nothing');
DELETE FROM moved.renamed WHERE id = 50;
SELECT is(pattern_disable('moved.renamed', keep_data => true), 0::bigint, 'disable that leaves the data');
SELECT is((SELECT count(*) FROM moved.extras_renamed), 1::bigint, 'leaves it');
DROP TABLE moved.renamed;
SELECT lives_ok('DELETE FROM moved.extras_renamed', 'in an ordinary table');
DROP SCHEMA moved CASCADE;

-- Two arrays that are replaced at once
CREATE TABLE two (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('two', 'a', 2), outlier_enable('two', 'b', 2, keep => 1, stay => 'last', is_set => true, flag => 'fb') \g /dev/null
INSERT INTO two VALUES (1, '{a: [1, 2, 3, 4], b: [1, 2, 3, 4]}');
UPDATE two_whole SET doc = '{a: [4, 3, 2, 1], b: [5, 4, 3, 2]}';
SELECT is((SELECT doc::text FROM two_whole), '{"a": [4, 3, 2, 1], "b": [5, 4, 3, 2]}', 'two arrays are replaced at once');
UPDATE two_whole SET id = 2, doc = '{a: [7, 8, 9], b: [9, 8, 7, 6, 5]}';
SELECT is((SELECT doc::text FROM two_whole), '{"a": [7, 8, 9], "b": [9, 8, 7, 6, 5]}', 'also with the key');
SELECT pg_temp.true_everywhere('two arrays');
DROP TABLE two CASCADE;

-- A full table
CREATE TABLE b (id int PRIMARY KEY, doc bson);
INSERT INTO b SELECT i, bson_build('a', pg_temp.ints(i)) FROM generate_series(1, 10) i;
INSERT INTO b VALUES (11, NULL), (12, '{has_extras: "true", n: 5}');
SELECT outlier_enable('b', 'a', 3, count_field => 'n') \g /dev/null
SELECT isnt_empty($$SELECT * FROM pattern_check('b')$$, 'not in line yet');
SELECT throws_ok($$CALL pattern_build('b', batch => 0)$$, '22023', NULL, 'an empty batch');
SELECT throws_ok($$CALL pattern_build('b', batch => 3)$$, '55000', NULL, 'a count that the array does not give');
CALL pattern_build('b', batch => 3, discard => true);
SELECT is_empty($$SELECT * FROM pattern_check('b')$$, 'built');
SELECT is((SELECT doc::text FROM b WHERE id = 12), '{"n": 0}', 'stale fields corrected');
SELECT is((SELECT doc FROM b WHERE id = 11), NULL, 'a null document stays null');
DROP TABLE b CASCADE;
CREATE TABLE b (id int PRIMARY KEY, doc bson);
INSERT INTO b SELECT i, bson_build('a', pg_temp.ints(i)) FROM generate_series(1, 10) i;
SELECT outlier_enable('b', 'a', 3, is_set => true, stay => 'last') \g /dev/null
CALL pattern_build('b', 'a', NULL);
SELECT is_empty($$SELECT * FROM pattern_check('b')$$, 'built in one transaction');
SELECT is((SELECT count(*) FROM b_whole WHERE doc -> 'a' = pg_temp.ints(id)), 10::bigint, 'nothing lost');
SELECT throws_ok('DROP TABLE b', '2BP01', NULL, 'DROP TABLE needs CASCADE');
DROP TABLE b CASCADE;
SELECT is((SELECT count(*) FROM pg_class WHERE relname LIKE 'b\_%whole' OR relname LIKE 'b\_a\_%'), 0::bigint, 'and leaves nothing');

-- Tails: single pushes, a model of them, and every call that reads them
CREATE FUNCTION pg_temp.push_and_compare(steps int, chunk int, is_set boolean, seed float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  model text[] := '{"0", "1", "2", "3", "4"}';
  fresh text[];
  v text;
  p int;
BEGIN
  PERFORM setseed(seed);
  CREATE TABLE tl (id int PRIMARY KEY, doc bson);
  PERFORM outlier_enable('tl', 'a', 3, chunk => push_and_compare.chunk, count_field => 'n', is_set => push_and_compare.is_set);
  INSERT INTO tl VALUES (1, bson_build('a', model)), (2, bson_build('a', model));
  FOR i IN 1 .. steps LOOP
    v := CASE WHEN random() < 0.03 THEN repeat('x', (random() * 1500)::int) ELSE (random() * 200)::int::text END;
    CASE
      WHEN random() < 0.9 THEN
        fresh := CASE WHEN is_set THEN ARRAY[v] ELSE (SELECT array_agg(v || CASE WHEN j = 1 THEN '' ELSE 'y' END ORDER BY j) FROM generate_series(1, 1 + (random() * random() * 45)::int) j) END;
        PERFORM outlier_push('tl', 1, VARIADIC fresh);
        IF NOT is_set OR NOT v = ANY (model) THEN model := model || fresh; END IF;
      WHEN random() < 0.5 THEN
        PERFORM outlier_pull('tl', 1, v);
        model := array_remove(model, v);
      WHEN random() < 0.5 THEN
        UPDATE tl_whole SET doc = bson_set(doc, 'a', model[2:]) WHERE id = 1;
        model := model[2:];
      ELSE
        UPDATE tl SET doc = bson_set(doc, 'title', v) WHERE id = 1;
    END CASE;
    p := (random() * cardinality(model))::int;
    IF outlier_contains('tl', 1, v) IS DISTINCT FROM (v = ANY (model)) OR (SELECT count(*) FROM outlier_find('tl', v)) <> (v = ANY (model))::int + (v = ANY ('{0,1,2,3,4}'))::int
       OR outlier_count('tl', 1) <> cardinality(model) OR (SELECT array_agg(value::text ORDER BY position) FROM outlier_page('tl', 1, p, 7)) IS DISTINCT FROM (SELECT array_agg(m ORDER BY o) FROM unnest(model[p + 1 : p + 7]) WITH ORDINALITY u (m, o)) THEN
      RETURN format('step %s: %s', i, v);
    END IF;
    IF i % 25 = 0 AND ((SELECT (doc -> 'a')::text FROM tl_whole WHERE id = 1) <> to_bson(model)::text OR EXISTS (SELECT FROM pattern_check('tl'))) THEN
      RETURN format('step %s: %s', i, (SELECT string_agg(c::text, ' ') FROM pattern_check('tl') c));
    END IF;
  END LOOP;
  RETURN NULL;
END $$;
SELECT is(pg_temp.push_and_compare(400, 2, false, 0.1), NULL, 'pushes one at a time, chunks of 2, seed 0.1');
DROP TABLE tl CASCADE;
SELECT is(pg_temp.push_and_compare(400, 40, false, 0.2), NULL, 'chunks of 40, seed 0.2');
DROP TABLE tl CASCADE;
SELECT is(pg_temp.push_and_compare(400, 50, true, 0.3), NULL, 'a set, chunks of 50, seed 0.3');
DROP TABLE tl CASCADE;
SELECT is(pg_temp.push_and_compare(400, 1000, false, 0.4), NULL, 'chunks of 1000, seed 0.4');
SELECT is((SELECT count(tail) FROM tl_a_extras WHERE sealed), 0::bigint, 'a sealed chunk has no tail');
SELECT outlier_push('tl', 1, 'once more') FROM generate_series(1, 5) \g /dev/null
SELECT is((SELECT bson_array_length(tail) > 0 FROM tl_a_extras WHERE key = 1 AND NOT sealed), true, 'a growing one has');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT outlier_push('tl', 1, 'later') \g /dev/null
COMMIT;
SELECT is((SELECT value::text FROM outlier_page('tl', 1, outlier_count('tl', 1) - 1, 1)), 'later', 'at REPEATABLE READ');
SELECT pattern_disable('tl', 'a') \g /dev/null
SELECT is((SELECT doc -> 'a' -> -1 FROM tl WHERE id = 1)::text, 'later', 'put back');
DROP TABLE tl CASCADE;

-- Advice
CREATE TABLE adv (id int PRIMARY KEY, doc bson);
SELECT is((SELECT (documents, threshold)::text FROM outlier_advise('adv', 'a')), '(0,)', 'nothing to go by');
INSERT INTO adv SELECT i, bson_build('a', pg_temp.ints(CASE WHEN i > 990 THEN 3000 ELSE i % 40 END)) FROM generate_series(1, 1000) i;
SELECT is((SELECT (threshold, outliers, length_p50, length_p99, length_max)::text FROM outlier_advise('adv', 'a')), '(50,10,20,39,3000)', 'advice from a long tail');
DROP TABLE adv; DROP TABLE t CASCADE; DROP TABLE no_key, lazy_key, no_doc;
DROP FUNCTION before_change(), after_change();
SELECT is_empty('SELECT * FROM pattern_list()', 'nothing is declared any more');
SELECT * FROM finish();
