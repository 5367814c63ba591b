-- The contract of the schema versioning pattern: what is refused and how, chains of steps, generated functions and the indexes that
-- use them, writes through views of all versions, migration, and that it stays true with every kind of write.
SET client_min_messages = warning;
SET timezone = 'UTC';
\pset fieldsep '\n'
SELECT plan(277);
CREATE FUNCTION pg_temp.true_everywhere(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;
CREATE SCHEMA sv;
SET search_path = sv, public;

-- Signatures
SELECT function_returns(f, r, f || ' returns ' || r) FROM (VALUES ('schema_versioning_enable', 'text'), ('schema_versioning_step', 'void'), ('schema_versioning_histogram', 'setof record'),
  ('schema_versioning_read', 'bson'), ('schema_versioning_test', 'setof record')) AS v (f, r);
SELECT volatility_is(f, v, f || ' is ' || v) FROM (VALUES ('schema_versioning_enable', 'volatile'), ('schema_versioning_step', 'volatile'), ('schema_versioning_histogram', 'stable'), ('schema_versioning_read', 'volatile'),
  ('schema_versioning_test', 'stable')) AS w (f, v);
SELECT has_view('public', 'schema_versioning_progress', 'there is a view of migrations');

-- What cannot be declared
CREATE TABLE t (id int PRIMARY KEY, doc bson);
CREATE TABLE no_key (id int, doc bson);
CREATE VIEW a_view AS SELECT * FROM t;
SELECT throws_ok(format('SELECT schema_versioning_enable(%s)', args), state, NULL, what) FROM (VALUES
  ('NULL', '22004', 'no table'), ('''no_key''', '55000', 'no primary key'), ('''a_view''', '42809', 'a view'), ('''t'', NULL', '22004', 'no field'), ('''t'', ''_id''', '22023', 'the key'), ('''t'', ''_id.v''', '22023', 'inside the key'),
  ('''t'', ''a..b''', '22023', 'a bad path'), ('''t'', current => 0', '22023', 'version 0'), ('''t'', current => NULL', '22004', 'no version'), ('''t'', write => ''never''', '22023', 'a way to write that there is not'),
  ('''t'', type => ''date''', '22023', 'a type that cannot be'), ('''t'', doc_column => ''nope''', '42703', 'a column that does not exist')) AS v (args, state, what);
SELECT throws_ok($$SELECT schema_versioning_step('t', 1, 2, up_update => '{$set: {a: 1}}')$$, '42704', NULL, 'a step of a table without the pattern');
SELECT throws_ok($$CALL schema_versioning_migrate('t')$$, '42704', NULL, 'a migration of a table without the pattern');
SELECT throws_ok($$SELECT schema_versioning_read('t', 1)$$, '42704', NULL, 'and reading from it');
CREATE VIEW t_current AS SELECT 1 AS one;
SELECT throws_ok($$SELECT schema_versioning_enable('t', current => 2)$$, '42P07', NULL, 'the name of the view is taken');
DROP VIEW t_current;
CREATE FUNCTION t_as_v2(bson) RETURNS bson LANGUAGE sql IMMUTABLE AS 'SELECT $1';
SELECT throws_ok($$SELECT schema_versioning_enable('t', current => 2)$$, '42723', NULL, 'the name of the function is taken');
SELECT is(schema_versioning_enable('t', current => 2, stem => 'u'), 'schema_version', 'another stem; the name is the field');
SELECT has_view('sv', 'u_current', 'the view has it'), has_function('sv', 'u_as_v2', ARRAY['public.bson'], 'the function has it');
SELECT throws_ok($$SELECT schema_versioning_enable('t', current => 2)$$, '42710', NULL, 'a second time');
SELECT throws_ok($$SELECT schema_versioning_enable('t', 'v', current => 2)$$, '42710', NULL, 'a second field of the same documents');
DROP FUNCTION t_as_v2(bson);

-- What cannot be a step
CREATE FUNCTION volatile_up(bson) RETURNS bson LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION stable_up(bson) RETURNS bson LANGUAGE sql STABLE AS 'SELECT $1';
CREATE FUNCTION wrong_up(bson) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1::text';
CREATE FUNCTION many_up(bson) RETURNS SETOF bson LANGUAGE sql IMMUTABLE AS 'SELECT $1';
CREATE FUNCTION other_up(text) RETURNS bson LANGUAGE sql IMMUTABLE AS 'SELECT $1::bson';
SELECT throws_ok(format('SELECT schema_versioning_step(''t'', %s)', args), state, NULL, what) FROM (VALUES
  ('1, 1, up_update => ''{$set: {a: 1}}''', '22023', 'to itself'), ('2, 1, up_update => ''{$set: {a: 1}}''', '22023', 'backwards'), ('0, 1, up_update => ''{$set: {a: 1}}''', '22023', 'from version 0'),
  ('1, 2', '22023', 'no way up'), ('1, 2, up => ''sv.volatile_up(bson)'', up_update => ''{$set: {a: 1}}''', '22023', 'two ways up'),
  ('1, 2, up => ''sv.volatile_up(bson)''', '42P17', 'a volatile function'), ('1, 2, up => ''sv.stable_up(bson)''', '42P17', 'a stable function'), ('1, 2, up => ''sv.wrong_up(bson)''', '42P17', 'a function that returns something else'),
  ('1, 2, up => ''sv.many_up(bson)''', '42P17', 'a function that returns many'), ('1, 2, up => ''sv.other_up(text)''', '42P17', 'a function of something else'),
  ('1, 2, up_update => ''5''', '22023', 'an update that is none'), ('1, 2, up_update => ''{$nope: {a: 1}}''', '0A000', 'an operator that there is not'), ('1, 2, up_update => ''{$currentDate: {a: true}}''', '42P17', 'the time'),
  ('1, 2, up_update => ''[{$set: {a: "$$NOW"}}]''', '42P17', 'the time in a stage'), ('1, 2, up_update => ''[{$set: {a: {$rand: {}}}}]''', '42P17', 'chance'),
  ('1, 2, up_update => ''{$set: {a: 1}}'', schema => ''{nope: 1}''', '0A000', 'a schema that is none')) AS v (args, state, what);
SELECT lives_ok($$SELECT schema_versioning_step('t', 1, 2, up_update => '{$rename: {a: "b"}}', down_update => '{$rename: {b: "a"}}')$$, 'a step');
SELECT throws_ok(format('SELECT schema_versioning_step(''t'', %s, up_update => ''{$set: {a: 1}}'')', args), '22023', NULL, what) FROM (VALUES ('1, 3', 'a second way from a version'), ('1, 5', 'beyond it')) AS v (args, what);

-- Which version a document has
INSERT INTO t SELECT n, format('{v: %s}', n)::bson FROM generate_series(1, 1) n;
SELECT is(docpatterns._schema_versioning_version(d::bson, 'v'), expected, d || ' has version ' || coalesce(expected::text, 'none')) FROM (VALUES
  ('{}', 1), ('{v: null}', 1), ('{v: 1}', 1), ('{v: "1"}', 1), ('{v: 2}', 2), ('{v: "2"}', 2), ('{v: 2.0}', 2), ('{v: NumberLong(2)}', 2), ('{v: NumberDecimal("2.00")}', 2), ('{v: "20250101"}', 20250101), ('{v: 2147483647}', 2147483647),
  ('{v: 0}', NULL), ('{v: -1}', NULL), ('{v: 2.5}', NULL), ('{v: "2.0"}', NULL), ('{v: "02"}', NULL), ('{v: "v2"}', NULL), ('{v: ""}', NULL), ('{v: " 2"}', NULL), ('{v: 2147483648}', NULL), ('{v: "99999999999"}', NULL), ('{v: true}', NULL),
  ('{v: [2]}', NULL), ('{v: {a: 2}}', NULL), ('{v: NaN}', NULL)) AS w (d, expected);
TRUNCATE t;

-- The field is written in the type that documents have, behind _id; version 1 has none unless the documents say it
INSERT INTO t VALUES (1, '{_id: 7, a: 1}'), (2, '{a: 2, schema_version: "2"}');
SELECT results_eq('SELECT doc::text FROM t ORDER BY id', ARRAY['{"_id": 7, "schema_version": 2, "b": 1}', '{"a": 2, "schema_version": "2"}'], 'an int where there was nothing');
SELECT results_eq('SELECT doc::text FROM u_v1 WHERE id = 1', ARRAY['{"_id": 7, "a": 1}'], 'version 1 without the field');
SELECT pattern_disable('t');
SELECT hasnt_view('sv', 'u_current', 'the views are gone'), hasnt_function('sv', 'u_as_v2', ARRAY['public.bson'], 'so are the functions');
SELECT is((SELECT count(*) FROM t), 2::bigint, 'the documents are not');
DELETE FROM t WHERE id = 1;
INSERT INTO t VALUES (3, '{a: 3, schema_version: "1"}');
SELECT lives_ok($$SELECT schema_versioning_enable('t', current => 2), schema_versioning_step('t', 1, 2, up_update => '{$rename: {a: "b"}}', down_update => '{$rename: {b: "a"}}')$$, 'declared where there are documents');
SELECT results_eq('SELECT doc::text FROM t_current ORDER BY id', ARRAY['{"a": 2, "schema_version": "2"}', '{"schema_version": "2", "b": 3}'], 'strings as the others');
SELECT results_eq('SELECT doc::text FROM t_v1 ORDER BY id', ARRAY['{"a": 2, "schema_version": "1"}', '{"a": 3, "schema_version": "1"}'], 'version 1 says so, as the others');
SELECT lives_ok($$SELECT pattern_alter('t', NULL, '{type: "double", first: false}')$$, 'told otherwise');
SELECT results_eq('SELECT doc::text FROM t_current ORDER BY id', ARRAY['{"a": 2, "schema_version": "2"}', '{"schema_version": 2.0, "b": 3}'], 'doubles');
SELECT results_eq('SELECT doc::text FROM t_v1 ORDER BY id', ARRAY['{"a": 2}', '{"a": 3, "schema_version": "1"}'], 'and no field');
SELECT pg_temp.true_everywhere('types');
DROP TABLE t CASCADE;
-- where there was none, a migration finds out
CREATE TABLE t (id int PRIMARY KEY, doc bson);
SELECT schema_versioning_enable('t', current => 2, write => 'accept'), schema_versioning_step('t', 1, 2, up_update => '{$rename: {a: "b"}}', down_update => '{$rename: {b: "a"}}');
INSERT INTO t VALUES (1, '{a: 1}'), (2, '{schema_version: "2", b: 2}'), (3, '{schema_version: "1", a: 3}');
CALL schema_versioning_migrate('t');
SELECT results_eq('SELECT doc::text FROM t ORDER BY id', ARRAY['{"schema_version": "2", "b": 1}', '{"schema_version": "2", "b": 2}', '{"schema_version": "2", "b": 3}'], 'the type that documents had when a migration began');
SELECT is((SELECT options ->> 'type' FROM pattern_list('t')), 'string', 'is kept from then on');
SELECT pg_temp.true_everywhere('a type that was found');
DROP TABLE t CASCADE;
SELECT hasnt_function('sv', 't_as_v2', ARRAY['public.bson'], 'functions go with the table');
SELECT hasnt_view('sv', 't_current', 'and so do views');

-- A nested field
CREATE TABLE t (id int PRIMARY KEY, doc bson);
SELECT schema_versioning_enable('t', 'meta.version', current => 2, name => 'shape'), schema_versioning_step('t', 1, 2, up_update => '{$set: {x: 1}}', down_update => '{$unset: {x: 1}}');
INSERT INTO t VALUES (1, '{a: 1}'), (2, '{a: 2, meta: {by: "me"}}'), (3, '{meta: {version: 2}}');
SELECT results_eq('SELECT doc::text FROM t ORDER BY id', ARRAY['{"a": 1, "x": 1, "meta": {"version": 2}}', '{"a": 2, "meta": {"by": "me", "version": 2}, "x": 1}', '{"meta": {"version": 2}}'], 'inside a document');
SELECT is((SELECT name FROM pattern_list('t')), 'shape', 'a name of its own');
DROP TABLE t CASCADE;

-- What is written: upgrade and accept
CREATE TABLE t (id int PRIMARY KEY, doc bson, note text);
SELECT schema_versioning_enable('t', current => 2), schema_versioning_step('t', 1, 2, up_update => '{$rename: {a: "b"}}', down_update => '{$rename: {b: "a"}}', schema => '{required: ["b"], properties: {b: {bsonType: "int"}}}');
SELECT throws_ok(format('INSERT INTO t (id, doc) VALUES (1, %L)', d), '23514', NULL, what) FROM (VALUES
  ('{schema_version: 3, b: 1}', 'a version from the future'), ('{schema_version: "x", b: 1}', 'what is no version'), ('{schema_version: [2], b: 1}', 'an array'),
  ('{c: 1}', 'what does not satisfy the schema once it is upgraded'), ('{schema_version: 2, b: "x"}', 'and what does not satisfy it as it is')) AS v (d, what);
SELECT throws_like($$INSERT INTO t (id, doc) VALUES (1, '{a: "x"}')$$, '%schema of version 2', 'the error names the version');
INSERT INTO t (id, doc) VALUES (1, '{a: 1}'), (2, NULL);
COPY t (id, doc) FROM STDIN;
3	{"a": 3}
4	{"schema_version": 2, "b": 4}
\.
INSERT INTO t (id, doc) VALUES (1, '{a: 11}'), (5, '{a: 5}') ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
INSERT INTO t (id, doc) VALUES (1, '{a: 12}') ON CONFLICT DO NOTHING;
MERGE INTO t USING (VALUES (3, '{a: 33}'::bson), (6, '{a: 6}')) AS s (id, doc) ON s.id = t.id WHEN MATCHED THEN UPDATE SET doc = s.doc WHEN NOT MATCHED THEN INSERT (id, doc) VALUES (s.id, s.doc);
SELECT results_eq('SELECT id, (doc -> ''b'')::int, doc ->> ''schema_version'' FROM t ORDER BY id', $$VALUES (1, 11, '2'), (2, NULL, NULL), (3, 33, '2'), (4, 4, '2'), (5, 5, '2'), (6, 6, '2')$$, 'everything that is written is brought to the current version');
BEGIN;
SAVEPOINT s;
UPDATE t SET doc = '{a: 100}' WHERE id = 1;
ROLLBACK TO s;
COMMIT;
SELECT is((SELECT (doc -> 'b')::int FROM t WHERE id = 1), 11, 'a savepoint leaves nothing');
SELECT pattern_alter('t', NULL, '{write: "accept"}');
UPDATE t SET doc = '{a: 100}' WHERE id = 1;
UPDATE t SET doc = '{a: "x"}' WHERE id = 3;
SELECT results_eq('SELECT doc::text FROM t WHERE id IN (1, 3) ORDER BY id', ARRAY['{"a": 100}', '{"a": "x"}'], 'accepted as they are');
SELECT results_eq('SELECT key::int, what, expected, found FROM pattern_check(''t'')', $$VALUES (3, 'document in version 2, path "b", rule bsonType', 'int', 'string')$$, 'what an old document will be once it is upgraded is checked');
SELECT throws_ok($$CALL schema_versioning_migrate('t', batch => NULL)$$, '23514', NULL, 'and stops a migration');
SELECT throws_ok($$SELECT schema_versioning_read('t', 3)$$, '23514', NULL, 'and an upgrade on access');
UPDATE t SET doc = '{a: 3}' WHERE id = 3;
SELECT pattern_alter('t', NULL, '{write: "upgrade"}');
SELECT xmin AS before FROM t WHERE id = 3 \gset
UPDATE t SET note = 'n' WHERE id = 3;
SELECT is((SELECT doc::text FROM t WHERE id = 3), '{"a": 3}', 'a document that a statement does not touch stays as it is');
UPDATE t SET doc = bson_set(doc, 'c', 1) WHERE id = 3;
SELECT is((SELECT doc::text FROM t WHERE id = 3), '{"schema_version": 2, "c": 1, "b": 3}', 'one that it touches is upgraded');
SELECT throws_ok(format('SELECT pattern_alter(''t'', NULL, %L)', o), '22023', NULL, what) FROM (VALUES ('{nope: 1}', 'an option that there is not'), ('{field: "v"}', 'another field'), ('{current: 3}', 'a version that no step leads to'), ('{current: "2"}', 'a version as a text'),
  ('{write: "never"}', 'a way to write that there is not'), ('{schemas: {"7": {}}}', 'a schema of a version that there is not'), ('{type: "date"}', 'a type that cannot be')) AS v (o, what);
SELECT throws_ok($$SELECT pattern_alter('t', NULL, '{current: 1}')$$, '23514', NULL, 'back to version 1 while there are newer documents');
SELECT lives_ok($$SELECT pattern_alter('t', NULL, '{schemas: {"2": null}}')$$, 'without a schema');
UPDATE t SET doc = '{schema_version: 2, b: "text"}' WHERE id = 4;
SELECT pg_temp.true_everywhere('writes');
TRUNCATE t;
SELECT lives_ok($$SELECT pattern_alter('t', NULL, '{current: 1}')$$, 'back to version 1 when there are none');
SELECT throws_like($$INSERT INTO t (id, doc) VALUES (1, '{schema_version: 2}')$$, '%newer than the current version', 'version 2 is from the future then');
DROP TABLE t CASCADE;

-- Chains: functions and updates, several steps, gaps between the numbers, no way down
CREATE TABLE t (id int PRIMARY KEY, doc bson);
CREATE FUNCTION up_two(d bson) RETURNS bson LANGUAGE sql IMMUTABLE AS 'SELECT bson_set(d - ''b'', ''c'', (d -> ''b'')::int * 10)';
CREATE FUNCTION down_two(d bson) RETURNS bson LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN bson_set(d - 'c', 'b', (d -> 'c')::int / 10); END $$;
SELECT schema_versioning_enable('t', current => 20, write => 'accept');
SELECT schema_versioning_step('t', 2, 7, up => 'up_two(bson)', down => 'down_two(bson)'), schema_versioning_step('t', 7, 20, up_update => '[{$set: {c: {$add: ["$c", 1]}}}]', down_update => '[{$set: {c: {$subtract: ["$c", 1]}}}]'),
       schema_versioning_step('t', 1, 2, up_update => '{$rename: {a: "b"}}', down_update => '{$rename: {b: "a"}}');
INSERT INTO t VALUES (1, '{a: 1}'), (2, '{schema_version: 2, b: 2}'), (7, '{schema_version: 7, c: 70}'), (20, '{schema_version: 20, c: 201}');
SELECT results_eq(format('SELECT doc::text FROM t_v%s ORDER BY id', v), expected, 'all in version ' || v) FROM (VALUES
  (1, ARRAY['{"a": 1}', '{"a": 2}', '{"a": 7}', '{"a": 20}']), (2, ARRAY['{"schema_version": 2, "b": 1}', '{"schema_version": 2, "b": 2}', '{"schema_version": 2, "b": 7}', '{"schema_version": 2, "b": 20}']),
  (7, ARRAY['{"schema_version": 7, "c": 10}', '{"schema_version": 7, "c": 20}', '{"schema_version": 7, "c": 70}', '{"schema_version": 7, "c": 200}']),
  (20, ARRAY['{"schema_version": 20, "c": 11}', '{"schema_version": 20, "c": 21}', '{"schema_version": 20, "c": 71}', '{"schema_version": 20, "c": 201}'])) AS w (v, expected);
SELECT throws_ok($$INSERT INTO t VALUES (3, '{schema_version: 3}')$$, '23514', NULL, 'a number between two versions is none');
SELECT results_eq('SELECT version, state, documents FROM schema_versioning_histogram(''t'')', $$VALUES (1, 'older', 1::bigint), (2, 'older', 1), (7, 'older', 1), (20, 'current', 1)$$, 'the histogram');
SELECT results_eq('SELECT since, until, documents, same, problem FROM schema_versioning_test(''t'')', $$VALUES (1, 2, 1::bigint, 1::bigint, NULL), (2, 7, 2, 2, NULL), (7, 20, 3, 3, NULL)$$, 'up and down is the same');
SELECT schema_versioning_step('t', 20, 21, up_update => '{$unset: {c: 1}}');
SELECT throws_ok($$SELECT t_as_v20('{schema_version: 21}')$$, '0A000', NULL, 'no way down');
SELECT is((SELECT problem FROM schema_versioning_test('t') WHERE since = 20), 'there is no way down', 'which the test says');
SELECT schema_versioning_step('t', 20, 21, up_update => '{$unset: {c: 1}}', down_update => '{$set: {c: 5}}');
SELECT results_eq('SELECT documents, same, key::int, problem FROM schema_versioning_test(''t'') WHERE since = 20', $$VALUES (4::bigint, 0::bigint, 1, 'path "c" was 11 and came back as 5')$$, 'one that loses something');
SELECT is(t_as_v20('{schema_version: 21}')::text, '{"schema_version": 20, "c": 5}', 'a way down that came later');
SELECT throws_ok($$INSERT INTO t VALUES (21, '{schema_version: 21}')$$, '23514', NULL, 'a step beyond the current version is not written yet');
SELECT is((SELECT doc::text FROM t_v21 WHERE id = 20), '{"schema_version": 21}', 'but can be looked at');
SELECT throws_ok($$SELECT schema_versioning_test('t', 0)$$, '22023', NULL, 'a sample of nothing');
SELECT pg_temp.true_everywhere('chains');

-- Steps that fail
CREATE FUNCTION null_up(d bson) RETURNS bson LANGUAGE sql IMMUTABLE AS 'SELECT NULL::bson';
CREATE FUNCTION id_up(d bson) RETURNS bson LANGUAGE sql IMMUTABLE AS 'SELECT bson_set(d, ''_id'', 99)';
CREATE TABLE f (id int PRIMARY KEY, doc bson);
SELECT schema_versioning_enable('f', current => 2, write => 'accept'), schema_versioning_step('f', 1, 2, up => 'null_up(bson)');
INSERT INTO f VALUES (1, '{_id: 5}');
SELECT throws_ok('SELECT * FROM f_current', '22004', NULL, 'a step that returns null');
SELECT schema_versioning_step('f', 1, 2, up => 'id_up(bson)');
SELECT throws_ok($$CALL schema_versioning_migrate('f', batch => NULL)$$, '23514', NULL, 'a step that changes _id');
DROP TABLE f CASCADE;

-- A function that returns an expression is evaluated as that, unless it has settings of its own
CREATE FUNCTION return_up(d bson) RETURNS bson IMMUTABLE RETURN bson_set(d - 'a', 'b', d -> 'a');
CREATE FUNCTION set_up(d bson) RETURNS bson IMMUTABLE SET timezone = 'Asia/Tokyo' RETURN bson_set(d, 'zone', current_setting('timezone'));
CREATE FUNCTION null_down(d bson) RETURNS bson IMMUTABLE RETURN CASE WHEN d ? 'b' THEN d - 'b' END;
CREATE TABLE f (id int PRIMARY KEY, doc bson);
SELECT schema_versioning_enable('f', current => 3), schema_versioning_step('f', 1, 2, up => 'return_up(bson)', down => 'null_down(bson)'), schema_versioning_step('f', 2, 3, up => 'set_up(bson)', down_update => '{$unset: {zone: 1}}');
INSERT INTO f VALUES (1, '{a: 1}');
SELECT is((SELECT doc::text FROM f), '{"schema_version": 3, "b": 1, "zone": "Asia/Tokyo"}', 'in the trigger');
SELECT is(f_as_v3('{a: 2}')::text, '{"schema_version": 3, "b": 2, "zone": "Asia/Tokyo"}', 'and in the function');
SELECT throws_ok($$SELECT f_as_v1('{schema_version: 2}')$$, '22004', NULL, 'null is an error there, too');
SELECT pattern_alter('f', NULL, '{write: "accept"}');
UPDATE f SET doc = '{a: 3}';
CALL schema_versioning_migrate('f');
SELECT is((SELECT doc::text FROM f), '{"schema_version": 3, "b": 3, "zone": "Asia/Tokyo"}', 'and in a migration');
CREATE OR REPLACE FUNCTION return_up(d bson) RETURNS bson IMMUTABLE RETURN bson_set(d - 'a', 'b', 'new');
SELECT is(f_as_v3('{a: 2}') ->> 'b', 'new', 'what a user replaces is what is called');
-- pattern_build brings what is there in line, if older documents that are written are upgraded
UPDATE f SET doc = '{a: 4}';
CALL pattern_build('f', 'schema_version');
SELECT is((SELECT doc::text FROM f), '{"a": 4}', 'there is nothing to build where they are accepted');
SELECT pattern_alter('f', NULL, '{write: "upgrade"}');
CALL pattern_build('f', 'schema_version', 1);
SELECT is((SELECT doc ->> 'schema_version' FROM f), '3', 'and pattern_build upgrades them where they are not');
SELECT pg_temp.true_everywhere('expressions');
DROP TABLE f CASCADE;

-- The functions of steps are called with a search_path of their own, so indexes can be made with any
SET search_path = pg_catalog;
CREATE INDEX t_c ON sv.t ((sv.t_as_v20(doc) OPERATOR(public.->) 'c'));
SELECT current_setting('search_path') AS afterwards \gset
SET search_path = sv, public;
SELECT is(:'afterwards'::text, 'pg_catalog', 'which is as it was');
SELECT has_index('sv', 't', 't_c', 'an index was made with another search_path');

-- One index over all versions goes on being used when steps come, and functions are never replaced by ones that answer otherwise
SET enable_seqscan = off;
CREATE FUNCTION pg_temp.plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE l text; r text := ''; BEGIN FOR l IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP r := r || l; END LOOP; RETURN r; END $$;
SELECT matches(pg_temp.plan_of($$SELECT id FROM t WHERE t_as_v20(doc) -> 'c' = 21$$), 'Index.*t_c', 'an index on the function of a version serves it'),
       matches(pg_temp.plan_of($$SELECT id FROM t_current WHERE doc -> 'c' = 21$$), 'Index.*t_c', 'and serves the view');
SELECT results_eq('SELECT id FROM t_current WHERE doc -> ''c'' = 21', ARRAY[2], 'with a document of an older version');
SELECT 't_as_v20(bson)'::regprocedure::oid AS v20, 't_as_v2(bson)'::regprocedure::oid AS v2 \gset
SELECT schema_versioning_step('t', 21, 22, up_update => '{$set: {d: 1}}', down_update => '{$unset: {d: 1}}');
SELECT pattern_alter('t', NULL, '{current: 22}');
INSERT INTO t VALUES (22, '{schema_version: 22, d: 1}');
SELECT results_eq('SELECT id FROM t WHERE t_as_v20(doc) -> ''c'' = 5 ORDER BY id', ARRAY[22], 'a document of a version that came later is in the index');
SELECT is('t_as_v20(bson)'::regprocedure::oid, :v20::oid, 'whose function is the same one');
SELECT schema_versioning_step('t', 7, 20, up_update => '[{$set: {c: {$add: ["$c", 2]}}}]', down_update => '[{$set: {c: {$subtract: ["$c", 2]}}}]');
SELECT is('t_as_v20(bson)'::regprocedure::oid, :v20::oid, 'a step that is another one leaves the function that the index uses');
SELECT is((SELECT t_as_v20(doc) ->> 'c' FROM t WHERE id = 1), '11', 'with its answer');
SELECT is((SELECT t_as_v20_2(doc) ->> 'c' FROM t WHERE id = 1), '12', 'and a new one answers anew');
SELECT is((SELECT doc ->> 'c' FROM t_v20 WHERE id = 1), '12', 'as the view does');
SELECT results_eq('SELECT id FROM t WHERE t_as_v20(doc) -> ''c'' = 11', ARRAY[1], 'the index is right for what it was made of');
SELECT throws_ok($$SELECT schema_versioning_step('t', 22, 23, up_update => '{$set: {e: 1}}')$$, '55000', NULL, 'no further step while an index uses what was');
DROP INDEX t_c;
CREATE INDEX t_c ON t ((t_as_v20_2(doc) -> 'c'));
SELECT pattern_repair('t');
SELECT is((SELECT t_as_v20(doc) ->> 'c' FROM t WHERE id = 1), '12', 'the new function has the plain name when the old one is gone');
SELECT hasnt_function('sv', 't_as_v20_2', ARRAY['public.bson'], 'under which the index knows it, too');
SELECT results_eq('SELECT id FROM t WHERE t_as_v20(doc) -> ''c'' = 12', ARRAY[1], 'and is used');
RESET enable_seqscan;
SELECT throws_ok('DROP FUNCTION t_as_v7(bson)', '2BP01', NULL, 'a generated function cannot be dropped');
SELECT throws_ok('DROP FUNCTION up_two(bson)', '2BP01', NULL, 'nor one of a step');
SELECT pg_temp.true_everywhere('indexes');

-- Renames
ALTER FUNCTION up_two(bson) RENAME TO "up ""two""";
ALTER SCHEMA sv RENAME TO "s v";
SET search_path = "s v", public;
ALTER TABLE t RENAME TO "T t";
ALTER TABLE "T t" RENAME COLUMN doc TO "the doc";
INSERT INTO "T t" VALUES (30, '{a: 3}');
SELECT is((SELECT doc ->> 'c' FROM t_v7 WHERE id = 30), '30', 'everything follows names');
SELECT lives_ok($$UPDATE t_v1 SET doc = bson_set(doc, 'a', 4) WHERE id = 30$$, 'and is written');
SELECT is((SELECT "the doc"::text FROM "T t" WHERE id = 30), '{"a": 4}', 'to the renamed column');
ALTER TABLE "T t" ADD COLUMN more int DEFAULT 1;
SELECT lives_ok($$SELECT pattern_repair('"T t"')$$, 'views are made anew');
SELECT is((SELECT doc ->> 'c' || more FROM t_v7 WHERE id = 30), '401', 'keep the names of their columns, and have new ones');
SELECT lives_ok($$CALL schema_versioning_migrate('"T t"', batch => NULL)$$, 'and migrated');
SELECT pg_temp.true_everywhere('renames');
ALTER SCHEMA "s v" RENAME TO sv;
SET search_path = sv, public;
DROP TABLE "T t" CASCADE;

-- Writes through views: what the view's version cannot express is kept
CREATE TABLE p (id int PRIMARY KEY, doc bson, note text DEFAULT 'n');
CREATE FUNCTION contact_up(d bson) RETURNS bson LANGUAGE sql IMMUTABLE AS $f$ SELECT bson_set(d - 'home' - 'work', 'contact', (SELECT coalesce(bson_agg(bson_build(k, d -> k) ORDER BY n), '[]') FROM unnest('{home,work}'::text[]) WITH ORDINALITY AS f(k, n) WHERE d ? k)) $f$;
CREATE FUNCTION contact_down(d bson) RETURNS bson LANGUAGE sql IMMUTABLE AS $f$ SELECT (d - 'contact' - 'since') || coalesce((SELECT bson_merge_agg((u.doc -> 'contact')::bson - 'twitter') FROM bson_unwind(d, 'contact') AS u(doc)), '{}') $f$;
SELECT schema_versioning_enable('p', current => 2, write => 'accept'), schema_versioning_step('p', 1, 2, up => 'contact_up(bson)', down => 'contact_down(bson)');
INSERT INTO p (id, doc) VALUES (1, '{schema_version: 2, name: "A", since: 1999, contact: [{twitter: "@a"}, {home: "1"}, {work: "2"}]}'), (2, '{name: "B", home: "3"}');
SELECT is((SELECT doc::text FROM p_v1 WHERE id = 1), '{"name": "A", "home": "1", "work": "2"}', 'what the old version sees');
UPDATE p_v1 SET doc = bson_set(doc, 'work', '22') WHERE id = 1;
SELECT is((SELECT doc::text FROM p WHERE id = 1), '{"schema_version": 2, "name": "A", "since": 1999, "contact": [{"twitter": "@a"}, {"home": "1"}, {"work": "22"}]}', 'a change is made where it belongs');
UPDATE p_v1 SET doc = bson_set(doc - 'home', 'name', 'AA') WHERE id = 1;
SELECT is((SELECT doc::text FROM p WHERE id = 1), '{"schema_version": 2, "name": "AA", "since": 1999, "contact": [{"twitter": "@a"}, {"work": "22"}]}', 'so is what is taken away');
UPDATE p_v1 SET doc = '{name: "new", home: "9", work: "8", pet: "cat"}' WHERE id = 1 RETURNING doc;
SELECT ok(doc @@ '{schema_version: 2, since: 1999, name: "new", pet: "cat", contact: {$all: [{twitter: "@a"}, {home: "9"}, {work: "8"}]}}', 'a whole document replaces what it can say') FROM p WHERE id = 1;
SELECT xmin AS before FROM p WHERE id = 1 \gset
UPDATE p_v1 SET note = 'other' WHERE id = 1;
SELECT ok(doc @@ '{since: 1999}' AND note = 'other', 'other columns leave the document as it is') FROM p WHERE id = 1;
UPDATE p_v2 SET doc = bson_set(doc, 'since', 2000) WHERE id = 2;
SELECT is((SELECT doc::text FROM p WHERE id = 2), '{"schema_version": 2, "name": "B", "contact": [{"home": "3"}], "since": 2000}', 'a write through a newer view brings the document to its version');
INSERT INTO p_v1 VALUES (3, '{name: "C"}', 'x'), (4, '{name: "D", schema_version: 1}', DEFAULT);
INSERT INTO p_current (id, doc) VALUES (5, '{name: "E", contact: []}');
INSERT INTO p_v1 (id, doc) VALUES (6, '{schema_version: 2, name: "F", contact: []}');
SELECT results_eq('SELECT id, doc ->> ''schema_version'' FROM p WHERE id > 2 ORDER BY id', $$VALUES (3, NULL), (4, '1'), (5, '2'), (6, '2')$$, 'a document that does not say its version has the view''s');
SELECT throws_ok($$INSERT INTO p_v1 (id, doc) VALUES (7, '{schema_version: 3}')$$, '23514', NULL, 'a version from the future through a view');
SELECT throws_ok($$UPDATE p_v1 SET doc = '{schema_version: 3}' WHERE id = 3$$, '23514', NULL, 'and by an update');
UPDATE p_v1 SET doc = '{schema_version: 2, name: "G", contact: []}' WHERE id = 3;
SELECT is((SELECT doc::text FROM p WHERE id = 3), '{"schema_version": 2, "name": "G", "contact": []}', 'one that says that it is newer than the view is taken for that');
DELETE FROM p_v1 WHERE id = 6;
SELECT is((SELECT count(*) FROM p), 5::bigint, 'deleted through a view');
UPDATE p_current SET doc = NULL WHERE id = 5;
UPDATE p_v1 SET doc = '{name: "again"}' WHERE id = 5;
SELECT is((SELECT doc::text FROM p WHERE id = 5), '{"name": "again"}', 'a null document and back');
SELECT pattern_alter('p', NULL, '{write: "upgrade"}');
UPDATE p_v1 SET doc = bson_set(doc, 'work', '5') WHERE id = 5;
SELECT is((SELECT doc::text FROM p WHERE id = 5), '{"schema_version": 2, "name": "again", "contact": [{"work": "5"}]}', 'write => upgrade holds for views, too');
INSERT INTO p_v1 (id, doc) VALUES (8, '{name: "H", home: "0"}') RETURNING doc;
SELECT is((SELECT doc::text FROM p WHERE id = 8), '{"schema_version": 2, "name": "H", "contact": [{"home": "0"}]}', 'and for new ones');
DELETE FROM p;

-- Many small documents at random: writes through the old view and the new one, beside a model that knows both
DO $$
DECLARE
  k int;
  before bson;
  f text;
BEGIN
  PERFORM setseed(0.25);
  INSERT INTO p (id, doc) SELECT n, '{name: "x", since: 1, contact: [{twitter: "@x"}, {home: "0"}]}'::bson || '{schema_version: 2}' FROM generate_series(1, 20) n;
  FOR i IN 1..300 LOOP
    k := 1 + floor(random() * 20);
    f := (ARRAY['home', 'work', 'name'])[1 + floor(random() * 3)];
    IF random() < 0.5 THEN
      UPDATE p_v1 SET doc = CASE WHEN random() < 0.7 OR f = 'name' THEN bson_set(doc, f, i) ELSE doc - f END WHERE id = k;
    ELSE
      UPDATE p_current SET doc = bson_update(doc, bson_build('$set', bson_build('since', i))) WHERE id = k;
    END IF;
    IF (SELECT NOT doc @@ '{contact: {$elemMatch: {twitter: "@x"}}, since: {$exists: true}, schema_version: 2}' FROM p WHERE id = k) THEN
      RAISE EXCEPTION 'lost at %', i;
    END IF;
  END LOOP;
END $$;
SELECT is((SELECT count(*) FROM p WHERE doc @@ '{contact: {$elemMatch: {twitter: "@x"}}}'), 20::bigint, 'three hundred writes of two applications lose nothing');
SELECT pg_temp.true_everywhere('views');
DROP TABLE p CASCADE;

-- Migration
CREATE TABLE m (id int PRIMARY KEY, doc bson);
CREATE FUNCTION m_up(d bson) RETURNS bson LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN IF (d -> 'a')::int = 500 THEN RAISE EXCEPTION 'five hundred' USING ERRCODE = '22012', DETAIL = 'a detail'; END IF; RETURN bson_set(d - 'a', 'b', d -> 'a'); END $$;
SELECT schema_versioning_enable('m', current => 2, write => 'accept'), schema_versioning_step('m', 1, 2, up => 'm_up(bson)', down_update => '{$rename: {b: "a"}}');
INSERT INTO m SELECT n, bson_build('a', n, 'even', n % 2 = 0) FROM generate_series(1, 1000) n;
SELECT throws_ok(format('CALL schema_versioning_migrate(''m'', %s)', args), '22023', NULL, what) FROM (VALUES ('batch => 0', 'batches of nothing'), ('target => 3', 'to a version that there is not'), ('pause => ''-1 s''', 'a pause before it begins'), ('pause => NULL', 'no pause')) AS v (args, what);
SELECT throws_ok($$CALL schema_versioning_migrate('m')$$, '2D000', NULL, 'with commits where there can be none');
CALL schema_versioning_migrate('m', batch => 100, filter => '{even: true, a: {$ne: 500}}', pause => '1 ms');
SELECT results_eq('SELECT version, documents FROM schema_versioning_histogram(''m'')', $$VALUES (1, 501::bigint), (2, 499)$$, 'those that match a filter');
SELECT results_eq('SELECT target, state, documents, part FROM schema_versioning_progress WHERE rel = ''m''::regclass', $$VALUES (2, 'done', 499::bigint, 1::float8)$$, 'which is shown');
\set ON_ERROR_STOP off
CALL schema_versioning_migrate('m', batch => 100);
\set ON_ERROR_STOP on
SELECT is((SELECT bool_and(doc ? 'b' = (id <> 500)) FROM m WHERE id <= 500), true, 'a step that fails stops it at the document');
SELECT results_eq('SELECT state, key::int, message FROM schema_versioning_progress WHERE rel = ''m''::regclass', $$VALUES ('stopped', 500, 'five hundred')$$, 'which is named');
SELECT is((SELECT count(*) FROM m WHERE doc ? 'a' AND NOT doc ? 'b' AND id > 500), 250::bigint, 'those behind it are as they were');
SELECT throws_ok($$CALL schema_versioning_migrate('m', batch => NULL)$$, '22012', NULL, 'the error is the step''s');
SELECT throws_like($$CALL schema_versioning_migrate('m', batch => NULL)$$, 'cannot migrate document 500 in table "m" to version 2: five hundred', 'with the document''s key');
UPDATE m SET doc = bson_set(doc, 'a', -500) WHERE id = 500;
CALL schema_versioning_migrate('m', batch => 7);
SELECT is((SELECT count(*) FROM m WHERE doc @@ '{schema_version: 2, b: {$exists: true}}'), 1000::bigint, 'and it goes on');
CALL schema_versioning_migrate('m', target => 1);
SELECT is((SELECT count(*) FROM m WHERE doc ? 'a' AND NOT doc ? 'schema_version'), 1000::bigint, 'down again');
BEGIN;
CALL schema_versioning_migrate('m', batch => NULL);
SELECT is((SELECT count(*) FROM m_v2 WHERE doc ? 'b'), 1000::bigint, 'in the caller''s transaction');
ROLLBACK;
SELECT is((SELECT count(*) FROM m WHERE doc ? 'a'), 1000::bigint, 'and rolled back');
BEGIN ISOLATION LEVEL REPEATABLE READ;
CALL schema_versioning_migrate('m', batch => NULL);
COMMIT;
SELECT is((SELECT count(*) FROM m WHERE doc ? 'b'), 1000::bigint, 'with one snapshot for all');
-- users' own triggers and constraints are heard
CREATE FUNCTION m_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.doc := bson_set(NEW.doc, 'noted', true); RETURN NEW; END $$;
CREATE TRIGGER a_note BEFORE UPDATE ON m FOR EACH ROW EXECUTE FUNCTION m_note();
ALTER TABLE m ADD CHECK (NOT (id = 10 AND doc ? 'noted'));
SELECT throws_ok($$CALL schema_versioning_migrate('m', target => 1, batch => NULL)$$, '23514', 'cannot migrate document 10 in table "m" to version 1: new row for relation "m" violates check constraint "m_check"', 'a constraint that fails names the document');
ALTER TABLE m DROP CONSTRAINT m_check;
CALL schema_versioning_migrate('m', target => 1);
SELECT is((SELECT count(*) FROM m WHERE doc @@ '{noted: true, a: {$exists: true}}'), 1000::bigint, 'users'' own triggers are called');
DROP TRIGGER a_note ON m;

-- Upgrade when accessed
SELECT is(schema_versioning_read('m', 3) ->> 'b', '3', 'read in the current version');
SELECT is((SELECT doc ->> 'b' FROM m WHERE id = 3), '3', 'and stored');
SELECT is(schema_versioning_read('m', 5000), NULL, 'no such document');
SELECT throws_ok($$SELECT schema_versioning_read('m', now())$$, '42809', NULL, 'a key of another type');
SELECT throws_ok($$SELECT schema_versioning_read('m', NULL::int)$$, '22004', NULL, 'no key');
BEGIN READ ONLY;
SELECT is(schema_versioning_read('m', 4) ->> 'b', '4', 'in a read-only transaction');
COMMIT;
SELECT is((SELECT doc ? 'b' FROM m WHERE id = 4), false, 'nothing is stored');
SELECT pg_temp.true_everywhere('migration');
DROP TABLE m CASCADE;

-- Documents from before the declaration that say what they should not
CREATE TABLE o (id int PRIMARY KEY, doc bson);
INSERT INTO o VALUES (1, '{a: 1}'), (2, '{schema_version: 9}'), (3, '{schema_version: "x"}');
SELECT schema_versioning_enable('o', current => 2), schema_versioning_step('o', 1, 2, up_update => '{$set: {b: 1}}', down_update => '{$unset: {b: 1}}');
SELECT results_eq('SELECT key::int, what, expected, found FROM pattern_check(''o'')', $$VALUES (2, 'version', 'one of 1, 2', '9'), (3, 'version', 'one of 1, 2', 'string')$$, 'are found');
CALL schema_versioning_migrate('o');
SELECT is((SELECT count(*) FROM o WHERE doc ->> 'schema_version' = '2'), 1::bigint, 'and left alone by a migration');
SELECT throws_ok('SELECT * FROM o_current', '23514', NULL, 'nor can they be read in another version');
SELECT results_eq('SELECT version, state, documents FROM schema_versioning_histogram(''o'')', $$VALUES (2, 'current', 1::bigint), (9, 'unknown', 1), (NULL, 'unknown', 1)$$, 'the histogram shows them');
DELETE FROM o WHERE id > 1;
DROP VIEW o_v1;
SELECT results_eq('SELECT what, found FROM pattern_check(''o'')', $$VALUES ('view of version 1', 'missing')$$, 'a view that is missing');
SELECT pattern_repair('o');
SELECT pg_temp.true_everywhere('repair');
DROP TABLE o CASCADE;

-- Partitions
CREATE TABLE q (id int, doc bson, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE q1 PARTITION OF q FOR VALUES FROM (0) TO (100);
SELECT schema_versioning_enable('q', current => 2, write => 'accept'), schema_versioning_step('q', 1, 2, up_update => '{$rename: {a: "b"}}', down_update => '{$rename: {b: "a"}}');
CREATE TABLE q2 PARTITION OF q FOR VALUES FROM (100) TO (200);
CREATE TABLE q3 (doc bson, gone int, id int PRIMARY KEY);
ALTER TABLE q3 DROP COLUMN gone;
INSERT INTO q3 VALUES ('{a: 201}', 201);
ALTER TABLE q ATTACH PARTITION q3 FOR VALUES FROM (200) TO (300);
INSERT INTO q VALUES (1, '{a: 1}'), (101, '{a: 101}'), (202, '{a: 202}');
SELECT throws_ok($$INSERT INTO q3 (id, doc) VALUES (203, '{schema_version: 3}')$$, '23514', NULL, 'partitions are kept, too');
UPDATE q_v2 SET doc = bson_set(doc, 'b', 5) WHERE id = 202;
CALL schema_versioning_migrate('q', batch => 1);
SELECT results_eq('SELECT id, (doc -> ''b'')::int FROM q ORDER BY id', 'VALUES (1, 1), (101, 101), (201, 201), (202, 5)', 'and migrated');
ALTER TABLE q DETACH PARTITION q3;
SELECT lives_ok($$INSERT INTO q3 (id, doc) VALUES (203, '{schema_version: 3}')$$, 'a table that was a partition is free');
TRUNCATE q;
SELECT pg_temp.true_everywhere('partitions');
DROP TABLE q, q3 CASCADE;

-- Rights: who may write the table may write through views, and runs no one else's code with more rights than his own
CREATE ROLE sv_owner;
CREATE ROLE sv_writer;
CREATE ROLE sv_reader;
GRANT USAGE ON SCHEMA sv TO sv_owner, sv_writer, sv_reader;
GRANT CREATE ON SCHEMA sv TO sv_owner;
CREATE TABLE r (id int PRIMARY KEY, doc bson);
GRANT SELECT, INSERT, UPDATE, DELETE ON r TO sv_writer;
GRANT SELECT ON r TO sv_reader;
ALTER TABLE r OWNER TO sv_owner;
CREATE FUNCTION who_up(d bson) RETURNS bson LANGUAGE sql IMMUTABLE AS $$ SELECT bson_set(d, 'by', current_user::text) $$;
REVOKE EXECUTE ON FUNCTION who_up(bson) FROM PUBLIC;
SELECT schema_versioning_enable('r', current => 2, write => 'accept');
SELECT throws_ok($$SELECT schema_versioning_step('r', 1, 2, up => 'who_up(bson)')$$, '42501', NULL, 'a function that the owner may not call');
GRANT EXECUTE ON FUNCTION who_up(bson) TO PUBLIC;
SELECT lives_ok($$SELECT schema_versioning_step('r', 1, 2, up => 'who_up(bson)', down_update => '{$unset: {by: 1}}')$$, 'one that he may');
SELECT is((SELECT array_agg(DISTINCT o::text) FROM (SELECT relowner::regrole FROM pg_class WHERE relnamespace = 'sv'::regnamespace AND relname LIKE 'r\_%' AND relkind = 'v' UNION SELECT proowner::regrole FROM pg_proc WHERE pronamespace = 'sv'::regnamespace AND proname LIKE 'r\_as\_%') AS w (o)),
          '{sv_owner}', 'everything is the owner''s');
SET ROLE sv_writer;
INSERT INTO r_v1 VALUES (1, '{a: 1}'), (2, '{a: 2}');
UPDATE r_v1 SET doc = bson_set(doc, 'a', 3) WHERE id = 1;
SELECT is((SELECT doc::text FROM r_current WHERE id = 1), '{"schema_version": 2, "a": 3, "by": "sv_writer"}', 'a writer writes and reads through views, as himself');
SELECT is(schema_versioning_read('r', 2) ->> 'by', 'sv_writer', 'and upgrades what he accesses');
SELECT throws_ok(command, '42501', NULL, what) FROM (VALUES ($$SELECT schema_versioning_step('r', 2, 3, up_update => '{$set: {a: 1}}')$$, 'a step of somebody else''s table'), ($$CALL schema_versioning_migrate('r')$$, 'its migration'),
  ($$SELECT schema_versioning_test('r')$$, 'its test'), ($$SELECT pattern_check('r')$$, 'its check'), ($$SELECT pattern_alter('r', NULL, '{current: 1}')$$, 'its options'), ($$SELECT schema_versioning_enable('r', 'v')$$, 'another declaration'),
  ($$SELECT docpatterns._schema_versioning_note('r', 'x', 1, 'done', 0, 0, 0, NULL, NULL)$$, 'its progress'), ($$SELECT docpatterns._schema_versioning_batch('r', 'r', 'schema_version', 2, NULL, 1, 100000, 10, false)$$, 'a batch'),
  ($$SELECT docpatterns._schema_versioning_renew('r', 'r_as_v1(bson)')$$, 'its indexes'), ($$SELECT * FROM docpatterns.schema_versioning_runs$$, 'the table of migrations')) AS v (command, what);
SELECT is((SELECT count(*) FROM schema_versioning_progress), 0::bigint, 'migrations of others are not shown');
RESET ROLE;
SET ROLE sv_reader;
SELECT is((SELECT count(*) FROM r_v1), 2::bigint, 'a reader reads');
SELECT throws_ok($$UPDATE r_v1 SET doc = '{}'$$, '42501', NULL, 'and does not write');
SELECT throws_ok($$SELECT schema_versioning_read('r', 1)$$, '42501', NULL, 'nor upgrades');
RESET ROLE;
CALL schema_versioning_migrate('r');
SELECT results_eq('SELECT id, doc ->> ''by'' FROM r ORDER BY id', $$VALUES (1, 'sv_owner'), (2, 'sv_writer')$$, 'a migration runs steps as the owner');
ALTER TABLE r OWNER TO CURRENT_USER;
SELECT is((SELECT array_agg(DISTINCT o::text) FROM (SELECT relowner::regrole FROM pg_class WHERE relnamespace = 'sv'::regnamespace AND relname LIKE 'r\_%' AND relkind = 'v' UNION SELECT proowner::regrole FROM pg_proc WHERE pronamespace = 'sv'::regnamespace AND proname LIKE 'r\_as\_%') AS w (o)),
          ARRAY[quote_ident(current_user)], 'functions and views follow the table to its new owner');
SELECT pg_temp.true_everywhere('rights');
-- a trigger that claims somebody else's function does not take it along
CREATE TABLE thief (id int PRIMARY KEY, doc bson);
ALTER TABLE thief OWNER TO sv_writer;
CREATE TRIGGER zz_docpatterns_10_schema_versioning_x_functions AFTER TRUNCATE ON thief FOR EACH STATEMENT WHEN (docpatterns._schema_versioning_uses('{1}', ARRAY['r_as_v1(bson)'::regprocedure])) EXECUTE FUNCTION docpatterns.schema_versioning_trigger('of', 'x');
DROP TABLE thief;
SELECT has_function('sv', 'r_as_v1', ARRAY['public.bson'], 'a function that is not its owner''s does not go with a table');
DROP TABLE r CASCADE;

-- Other tables in the same database are not disturbed by a trigger with nonsense
CREATE TABLE x (id int PRIMARY KEY, doc bson);
CREATE TRIGGER zz_docpatterns_10_schema_versioning_x BEFORE INSERT ON x FOR EACH ROW EXECUTE FUNCTION docpatterns.schema_versioning_trigger('{"name": "x", "field": "v", "current": 1, "write": "upgrade", "steps": [{"since": 1, "until": 2, "up_function": "f"}]}');
SELECT throws_ok($$INSERT INTO x VALUES (1, '{}')$$, '22023', NULL, 'a declaration by hand that makes no sense');
SELECT throws_ok($$SELECT docpatterns._schema_versioning_as('{}', '{version: 2, field: "v", steps: [{since: 1, until: 2, up_function: true}]}', ARRAY['pg_catalog.pg_sleep(float8)'::regprocedure])$$, '42P17', NULL, 'a call that names any function');
SELECT throws_ok(format('SELECT docpatterns._schema_versioning_as(''{}'', %L, ''{}'')', chain), '22023', NULL, 'a chain that is none: ' || chain) FROM (VALUES ('{}'), ('{version: 1}'), ('{version: 0, field: "v"}'), ('{version: 1, field: ""}'), ('{version: 1, field: "v", steps: 5}'),
  ('{version: 1, field: "v", steps: [5]}'), ('{version: 1, field: "v", steps: [{since: 2, until: 1}]}'), ('{version: 1, field: "v", steps: [{since: 1, until: 2}]}'), ('{version: 1, field: "v", type: "x"}')) AS v (chain);
DROP TABLE x;

-- A step in SQL that raises is called again after it, in the same transaction
CREATE TABLE x (id int PRIMARY KEY, doc bson);
CREATE FUNCTION x_up(d bson) RETURNS bson IMMUTABLE LANGUAGE sql SET search_path FROM CURRENT AS $$ SELECT bson_set(d, 'y', 100 / (d ->> 'x')::int) FROM (VALUES (1)) v $$;
SELECT schema_versioning_enable('x') \g /dev/null
SELECT schema_versioning_step('x', 1, 2, up => 'x_up(bson)') \g /dev/null
SELECT pattern_alter('x', 'schema_version', '{current: 2}') \g /dev/null
BEGIN;
INSERT INTO x VALUES (1, '{x: 5}');
SELECT throws_ok($$INSERT INTO x VALUES (2, '{x: 0}')$$, '22012', NULL, 'a step in SQL that raises, attempt ' || n) FROM generate_series(1, 3) n;
INSERT INTO x VALUES (2, '{x: 4}');
COMMIT;
SELECT results_eq('SELECT (doc -> ''y'')::int FROM x ORDER BY id', '{20,25}'::int[], 'and documents before and after it are brought up');
DROP TABLE x CASCADE;
DROP FUNCTION x_up(bson);

-- A step is replaced, whatever kind of update it was and becomes
CREATE TABLE x (id int PRIMARY KEY, doc bson);
SELECT schema_versioning_enable('x', current => 2) \g /dev/null
SELECT lives_ok(format('SELECT schema_versioning_step(''x'', 1, 2, up_update => %L, down_update => %L)', up, down), format('step %s', n))
  FROM (VALUES (1, '[{"$set": {"a": 1}}]', '[{"$unset": "a"}]'), (2, '[{"$set": {"a": 2}}]', '[{"$unset": "a"}]'), (3, '{"$set": {"a": 3}}', NULL),
               (4, '[{"$set": {"a": 4}}]', '{"$unset": {"a": 1}}'), (5, '[{"$set": {"a": 5}}]', '{"$unset": {"a": 1}}')) AS v (n, up, down);
SELECT is(x_as_v2('{}'), '{schema_version: 2, a: 5}', 'the last one counts');
SELECT is(x_as_v1('{schema_version: 2, a: 5, b: 6}'), '{b: 6}', 'down, too');
DROP TABLE x CASCADE;

-- How far a migration is counts the partitions before
CREATE TABLE x (id int PRIMARY KEY, doc bson) PARTITION BY RANGE (id);
CREATE TABLE x1 PARTITION OF x FOR VALUES FROM (1) TO (1000);
CREATE TABLE x2 PARTITION OF x FOR VALUES FROM (1000) TO (2000);
INSERT INTO x SELECT i, bson_build('n', i, 'pad', repeat('x', 400)) FROM generate_series(1, 1999) i;
SELECT schema_versioning_enable('x', write => 'accept') \g /dev/null
SELECT schema_versioning_step('x', 1, 2, up_update => '[{"$set": {"m": {"$divide": [1, {"$subtract": ["$n", 1000]}]}}}]') \g /dev/null
SELECT pattern_alter('x', 'schema_version', '{current: 2}') \g /dev/null
\set VERBOSITY sqlstate
\set ON_ERROR_STOP off
CALL schema_versioning_migrate('x', batch => 100);
\set ON_ERROR_STOP on
SELECT results_eq('SELECT state, key::int, part BETWEEN 0.4 AND 0.6 FROM schema_versioning_progress WHERE rel = ''x''::regclass', $$VALUES ('stopped', 1000, true)$$, 'a migration that stops in the second of two partitions is half done');
DROP TABLE x CASCADE;
-- A version that cannot be written
CREATE TABLE x (id int PRIMARY KEY, doc bson);
SELECT schema_versioning_enable('x', field => 'm.v', write => 'accept') \g /dev/null
SELECT schema_versioning_step('x', 1, 2, up_update => '{"$set": {"a": 1}}') \g /dev/null
SELECT throws_ok(format('INSERT INTO x VALUES (1, %L)', doc), '23514', NULL, 'no place for the version in ' || doc) FROM (VALUES ('{m: 5}'), ('{m: [{v: 2}]}'), ('{m: null}')) AS v (doc);
INSERT INTO x VALUES (1, '{m: {}}'), (2, '{}');
SELECT results_eq('SELECT (x_as_v2(doc) -> ''m.v'')::int FROM x', '{2,2}'::int[], 'there is in others');
SELECT throws_ok($$SELECT x_as_v2('{m: 5}')$$, '23514', NULL, 'nor in one that is only looked at');
DROP TABLE x CASCADE;
DROP SCHEMA sv CASCADE;
DROP ROLE sv_owner, sv_writer, sv_reader;
SELECT * FROM finish();
