-- The contract of collections and of bson_column_convert.
SET client_min_messages = warning;
BEGIN;
SELECT plan(99);

SELECT function_returns('collection_create', ARRAY['text', 'boolean', 'text'], 'regclass');
SELECT function_returns('bson_column_convert', ARRAY['regclass', 'text', 'name'], 'integer');
SELECT function_returns('docpatterns', 'collection_set_id', ARRAY[]::text[], 'trigger');

-- What is created.
CREATE TABLE made AS SELECT collection_create('c') AS rel;
SELECT is((SELECT rel FROM made), 'c'::regclass, 'the result is the table');
SELECT columns_are('c', ARRAY['_id', 'doc']);
SELECT col_type_is('c', '_id', 'bson_value');
SELECT col_type_is('c', 'doc', 'bson');
SELECT col_not_null('c', '_id', '_id is not null');
SELECT col_not_null('c', 'doc', 'doc is not null');
SELECT col_is_pk('c', '_id', '_id is the primary key');
SELECT triggers_are('c', ARRAY['zz_docpatterns_00_collection']);
SELECT is((SELECT tgtype::int & 31 FROM pg_trigger WHERE tgrelid = 'c'::regclass), 1 | 2 | 4 | 16, 'before insert or update, for each row');
SELECT is((SELECT tgenabled FROM pg_trigger WHERE tgrelid = 'c'::regclass), 'O', 'it does not fire while replicating');
SELECT is((SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'c'::regclass AND contype = 'c'), 'CHECK ((_id = (doc -> ''_id''::text)))', 'the check');
SET LOCAL search_path = pg_catalog;
CREATE TEMP TABLE qualified AS SELECT pg_get_constraintdef(oid) AS def FROM pg_constraint WHERE conrelid = 'public.c'::regclass AND contype = 'c';
RESET search_path;
SELECT is((SELECT def FROM qualified), 'CHECK ((_id OPERATOR(public.=) (doc OPERATOR(public.->) ''_id''::text)))', 'is qualified for dumps');
SELECT is((SELECT relkind::text || relpersistence::text FROM pg_class WHERE oid = 'c'::regclass), 'rp', 'an ordinary table');

-- INSERT.
PREPARE stored AS SELECT _id::text, doc::text FROM c ORDER BY _id;
INSERT INTO c (doc) VALUES ('{_id: 1, a: 1}');
SELECT results_eq('stored', $$VALUES ('1', '{"_id": 1, "a": 1}')$$, 'the document decides');
DELETE FROM c;
INSERT INTO c (doc) VALUES ('{a: 1, _id: "x"}');
SELECT results_eq('stored', $$VALUES ('x', '{"a": 1, "_id": "x"}')$$, 'and is not reordered');
DELETE FROM c;
INSERT INTO c (doc) VALUES ('{a: 1}');
SELECT ok((SELECT bson_typeof(_id) = 'objectId' AND doc = bson_build('_id', _id, 'a', 1) FROM c), 'a new ObjectId in front');
SELECT ok((SELECT objectid_timestamp(_id::objectid) BETWEEN now() - interval '1 h' AND now() + interval '1 h' FROM c), 'of this time');
DELETE FROM c;
INSERT INTO c (doc) SELECT '{}' FROM generate_series(1, 1000);
SELECT is((SELECT count(DISTINCT _id) FROM c), 1000::bigint, 'each another');
DELETE FROM c;
INSERT INTO c VALUES (5, '{a: 1}'), (NULL, '{_id: 6}'), (7, '{_id: 7.0}'), (8::bigint, '{_id: 8}');
SELECT results_eq('stored', $$VALUES ('5', '{"_id": 5, "a": 1}'), ('6', '{"_id": 6}'), ('7', '{"_id": 7.0}'), ('8', '{"_id": 8}')$$, 'the column as a way to write it');
SELECT is((SELECT string_agg(bson_typeof(_id), ' ' ORDER BY _id) FROM c), 'int int double int', 'an equal one becomes the document''s');
SELECT throws_ok($$INSERT INTO c VALUES (9, '{_id: 10}')$$, '23514', NULL, 'another one is refused');
SELECT throws_ok($$INSERT INTO c (doc) VALUES ('{_id: 5}')$$, '23505', NULL, 'twice the same');
SELECT throws_ok($$INSERT INTO c (doc) VALUES ('{_id: NumberDecimal("5.00")}')$$, '23505', NULL, 'or an equal one');
SELECT throws_ok($$INSERT INTO c (_id) VALUES (9)$$, '23502', NULL, 'no document');
SELECT throws_ok($$INSERT INTO c (doc) VALUES ('{_id: [1]}')$$, '23514', NULL, 'an array');
SELECT throws_ok($$INSERT INTO c (doc) VALUES ('{_id: /a/}')$$, '23514', NULL, 'a regular expression');
SELECT throws_ok($$INSERT INTO c (doc) VALUES ('{_id: undefined}')$$, '23514', NULL, 'undefined');
SELECT throws_ok($$INSERT INTO c (_id, doc) VALUES ('[]', '{}')$$, '23514', NULL, 'an array in the column');
SELECT lives_ok($$INSERT INTO c (doc) VALUES ('{_id: null}'), ('{_id: {a: 1, b: [2]}}'), ('{_id: ISODate("2024-01-01")}'), ('{_id: true}'), ('{_id: MinKey}'), ('{_id: ""}')$$, 'anything else');
SELECT throws_ok($$INSERT INTO c (doc) VALUES (bson_build('_id', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 1000) i)))$$, '54000', NULL, 'but for what no index takes');
DELETE FROM c;

-- UPDATE.
INSERT INTO c (doc) VALUES ('{_id: 1, a: 1}'), ('{_id: 2, a: 2}');
UPDATE c SET doc = '{b: 1}' WHERE _id = 1;
SELECT results_eq('stored', $$VALUES ('1', '{"_id": 1, "b": 1}'), ('2', '{"_id": 2, "a": 2}')$$, 'a replacement keeps the _id');
UPDATE c SET doc = bson_set(doc, '_id', 3) WHERE _id = 1;
SELECT results_eq('stored', $$VALUES ('2', '{"_id": 2, "a": 2}'), ('3', '{"_id": 3, "b": 1}')$$, 'another _id moves the key');
UPDATE c SET _id = 4, doc = doc - '_id' WHERE _id = 3;
SELECT results_eq('stored', $$VALUES ('2', '{"_id": 2, "a": 2}'), ('4', '{"_id": 4, "b": 1}')$$, 'so does the column, with a document that has none');
UPDATE c SET _id = 5, doc = '{_id: 5}' WHERE _id = 4;
SELECT results_eq('stored', $$VALUES ('2', '{"_id": 2, "a": 2}'), ('5', '{"_id": 5}')$$, 'or both');
UPDATE c SET _id = NULL, doc = '{c: 1}' WHERE _id = 5;
SELECT results_eq('stored', $$VALUES ('2', '{"_id": 2, "a": 2}'), ('5', '{"_id": 5, "c": 1}')$$, 'a column set to NULL means nothing');
SELECT throws_ok($$UPDATE c SET _id = 6 WHERE _id = 5$$, '23514', NULL, 'the column alone is refused');
SELECT throws_ok($$UPDATE c SET _id = 6, doc = '{_id: 7}' WHERE _id = 5$$, '23514', NULL, 'also beside another _id');
SELECT throws_ok($$UPDATE c SET doc = '{_id: 2}' WHERE _id = 5$$, '23505', NULL, 'a key that is taken');
SELECT throws_ok($$UPDATE c SET doc = '{_id: [1]}' WHERE _id = 5$$, '23514', NULL, 'an array');
SELECT throws_ok($$UPDATE c SET doc = NULL WHERE _id = 5$$, '23502', NULL, 'NULL');
UPDATE c SET doc = doc, _id = _id;
SELECT results_eq('stored', $$VALUES ('2', '{"_id": 2, "a": 2}'), ('5', '{"_id": 5, "c": 1}')$$, 'nothing changed');
UPDATE c SET doc = bson_set(doc, '_id', NumberLong) FROM (SELECT 2::bigint AS NumberLong) n WHERE _id = 2;
SELECT is((SELECT bson_typeof(_id) FROM c WHERE _id = 2), 'long', 'an equal _id of another type is taken over');
DELETE FROM c;

-- Documents that are stored out of line.
INSERT INTO c (doc) SELECT bson_build('_id', i, 'x', (SELECT string_agg(md5(j::text || i), '') FROM generate_series(1, 1000) j)) FROM generate_series(1, 3) i;
ALTER TABLE c ADD COLUMN note int;
UPDATE c SET note = 1;
SELECT is((SELECT count(*) FROM c WHERE note = 1 AND _id = doc -> '_id' AND length(doc ->> 'x') = 32000), 3::bigint, 'other columns may change');
UPDATE c SET doc = doc - '_id';
SELECT is((SELECT count(*) FROM c WHERE _id = doc -> '_id' AND bson_size(doc) > 32000), 3::bigint, 'a stored document without its _id gets it back');
ALTER TABLE c DROP COLUMN note;
DELETE FROM c;

-- Other ways to write.
INSERT INTO c (doc) VALUES ('{_id: 1, n: 1}');
INSERT INTO c (doc) VALUES ('{_id: 1, n: 2}') ON CONFLICT DO NOTHING;
SELECT results_eq('stored', $$VALUES ('1', '{"_id": 1, "n": 1}')$$, 'ON CONFLICT DO NOTHING');
INSERT INTO c (doc) VALUES ('{_id: 1, n: 2}'), ('{_id: 2}') ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT results_eq('stored', $$VALUES ('1', '{"_id": 1, "n": 2}'), ('2', '{"_id": 2}')$$, 'ON CONFLICT DO UPDATE');
INSERT INTO c (doc) VALUES ('{_id: 1, n: 2}') ON CONFLICT (_id) DO UPDATE SET doc = '{replaced: true}';
SELECT results_eq('stored', $$VALUES ('1', '{"_id": 1, "replaced": true}'), ('2', '{"_id": 2}')$$, 'with a document without _id');
MERGE INTO c USING (VALUES (2), (3)) AS s (id) ON c._id = s.id WHEN MATCHED THEN UPDATE SET doc = '{m: 1}' WHEN NOT MATCHED THEN INSERT (doc) VALUES (bson_build('_id', s.id));
SELECT results_eq('stored', $$VALUES ('1', '{"_id": 1, "replaced": true}'), ('2', '{"_id": 2, "m": 1}'), ('3', '{"_id": 3}')$$, 'MERGE');
SET LOCAL session_replication_role = replica;
INSERT INTO c VALUES (4, '{_id: 4}');
SELECT throws_ok($$INSERT INTO c VALUES (5, '{_id: 6}')$$, '23514', NULL, 'without triggers the check holds');
SELECT throws_ok($$INSERT INTO c (doc) VALUES ('{}')$$, '23502', NULL, 'and the key');
SET LOCAL session_replication_role = origin;
SELECT is((SELECT count(*) FROM c), 4::bigint, 'what is replicated comes in');
CREATE TABLE child (CHECK (true)) INHERITS (c);
DROP TABLE child;
CREATE VIEW v AS SELECT * FROM c;
INSERT INTO v (doc) VALUES ('{_id: 50}');
SELECT is((SELECT count(*) FROM c WHERE _id = 50), 1::bigint, 'through a view');

-- Columns are found by their types.
ALTER TABLE c RENAME COLUMN _id TO key;
ALTER TABLE c RENAME COLUMN doc TO body;
ALTER TABLE c ADD COLUMN other_id bson_value, ADD COLUMN other bson;
INSERT INTO c (body, other_id, other) VALUES ('{_id: 60}', 1, '{_id: 61}');
SELECT is((SELECT other_id::text || other::text FROM c WHERE key = 60), '1{"_id": 61}', 'renamed, with others beside them');
ALTER TABLE c RENAME COLUMN key TO _id;
ALTER TABLE c RENAME COLUMN body TO doc;
CREATE TABLE plain (a int);
CREATE TRIGGER t BEFORE INSERT OR UPDATE ON plain FOR EACH ROW EXECUTE FUNCTION docpatterns.collection_set_id();
SELECT throws_ok('INSERT INTO plain VALUES (1)', '39P01', NULL, 'the trigger on another table');
DROP TRIGGER t ON plain;

-- Names.
CREATE SCHEMA "S p";
SELECT is(collection_create('"S p"."Q""u''o.te"')::text, '"S p"."Q""u''o.te"', 'a hostile name');
SELECT lives_ok($$INSERT INTO "S p"."Q""u'o.te" (doc) VALUES ('{_id: 1}')$$, 'that works');
SET LOCAL search_path = "S p", public;
SELECT is(collection_create('plain')::text, 'plain', 'the first schema of the path');
SELECT is((SELECT relnamespace::regnamespace::text FROM pg_class WHERE oid = 'plain'::regclass), '"S p"', 'although there is a table of that name in another');
SELECT is(collection_create('PUBLIC.UPPER')::text, 'upper', 'names fold as in SQL');
RESET search_path;
CREATE FUNCTION nowhere() RETURNS regclass LANGUAGE sql SET search_path = no_such AS $$ SELECT public.collection_create('x') $$;
SELECT throws_ok('SELECT nowhere()', '3F000', NULL, 'no schema to create in');
SELECT is(collection_create('pg_temp.temporary')::text, 'temporary', 'a temporary collection');
SELECT throws_ok('SELECT collection_create(''c'')', '42P07', NULL, 'exists');
SELECT is(collection_create('c', true), 'c'::regclass, 'if not exists');
SELECT throws_ok('SELECT collection_create(''plain'', true)', '42809', NULL, 'exists as something else');
SELECT throws_ok('SELECT collection_create(''v'', true)', '42809', NULL, 'as a view');
SELECT throws_ok('SELECT collection_create(''a.b.c'')', '42602', NULL, 'three parts');
SELECT throws_ok('SELECT collection_create('''')', '22023', NULL, 'nothing');
SELECT throws_ok('SELECT collection_create(''a b'')', '22023', NULL, 'what is no name');
SELECT is(collection_create(NULL), NULL, 'NULL');

-- bson_column_convert
DROP VIEW v;
ALTER TABLE c DROP COLUMN other_id, DROP COLUMN other;
DELETE FROM c WHERE _id > 3;
INSERT INTO c (doc) VALUES ('{_id: ObjectId("507f191e810c19729de860ea"), d: ISODate("2024-01-01"), n: NumberDecimal("1.10")}'), ('{_id: null}');
CREATE TABLE before AS SELECT _id, doc FROM c;
CREATE VIEW depending AS SELECT x.* FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND e.extname = 'docpatterns'
  JOIN pg_depend x ON x.refclassid = d.classid AND x.refobjid = d.objid
  WHERE x.classid = 'pg_class'::regclass AND x.objid = 'c'::regclass;
SELECT is((SELECT count(*) FROM depending), 2::bigint, 'the columns depend on the extension');
SELECT is(bson_column_convert('c', 'jsonb'), 2, 'to jsonb');
SELECT results_eq('SELECT _id, doc FROM c ORDER BY _id::text', 'SELECT _id::jsonb, doc::jsonb FROM before ORDER BY (_id::jsonb)::text', 'the documents as they cast');
SELECT ok(NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'c'::regclass) AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = 'c'::regclass AND contype = 'c'), 'without trigger and check');
SELECT col_is_pk('c', '_id', 'with the key');
SELECT is((SELECT count(*) FROM depending), 0::bigint, 'nothing depends on the extension any more');
SELECT is(bson_column_convert('c', 'bson'), 2, 'and back');
SELECT results_eq('SELECT _id, doc FROM c ORDER BY _id', 'SELECT _id, doc::jsonb::bson FROM before ORDER BY _id', 'the same documents');
SELECT triggers_are('c', ARRAY['zz_docpatterns_00_collection']);
SELECT is(bson_column_convert('c', 'bytea') + bson_column_convert('c', 'bson'), 4, 'to bytea and back');
SELECT results_eq('SELECT _id, doc::bytea FROM c ORDER BY _id', 'SELECT _id, doc::jsonb::bson::bytea FROM before ORDER BY _id', 'byte for byte');
SELECT throws_ok($$SELECT bson_column_convert('c', 'text')$$, '22023', NULL, 'another target');
SELECT throws_ok($$SELECT bson_column_convert('plain', 'jsonb')$$, '22023', NULL, 'nothing to convert');
SELECT throws_ok($$SELECT bson_column_convert('plain', 'bson')$$, '22023', NULL, 'nothing to convert back');
SELECT throws_ok($$SELECT bson_column_convert('c', 'jsonb', 'nope')$$, '42703', NULL, 'a column that is not there');
SELECT throws_ok($$SELECT bson_column_convert('c_pkey', 'jsonb')$$, '42809', NULL, 'not a table');
SELECT throws_ok($$SELECT bson_column_convert(NULL, 'jsonb')$$, '22004', NULL, 'NULL');
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER zz_docpatterns_50_x AFTER INSERT ON c FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT throws_ok($$SELECT bson_column_convert('c', 'jsonb')$$, '55000', NULL, 'a table with a pattern');
DROP TRIGGER zz_docpatterns_50_x ON c;
CREATE INDEX on_expression ON c ((doc -> 'x'));
SELECT throws_like($$SELECT bson_column_convert('c', 'jsonb')$$, '%because expressions use them', 'an index on an expression');
DROP INDEX on_expression;
CREATE INDEX on_predicate ON c (_id) WHERE doc ? 'x';
SELECT throws_ok($$SELECT bson_column_convert('c', 'jsonb')$$, '2BP01', NULL, 'a partial index');
DROP INDEX on_predicate;
ALTER TABLE c ADD CONSTRAINT needs_n CHECK (doc -> 'n' IS NULL OR doc -> 'n' > 0);
SELECT throws_ok($$SELECT bson_column_convert('c', 'jsonb')$$, '2BP01', NULL, 'a check');
ALTER TABLE c DROP CONSTRAINT needs_n;
CREATE INDEX plain_index ON c (doc);
SELECT is(bson_column_convert('c', 'jsonb') + bson_column_convert('c', 'bson'), 4, 'plain indexes come along');
DROP INDEX plain_index;
INSERT INTO c (doc) VALUES ('{_id: 100, s: "a\u0000b"}');
SELECT throws_ok($$SELECT bson_column_convert('c', 'jsonb')$$, '22P05', NULL, 'what jsonb cannot hold');
SELECT triggers_are('c', ARRAY['zz_docpatterns_00_collection']);
CREATE ROLE collection_stranger;
GRANT ALL ON c TO collection_stranger;
SET LOCAL ROLE collection_stranger;
INSERT INTO c (doc) VALUES ('{_id: 101}');
SELECT is((SELECT count(*) FROM c WHERE _id = 101), 1::bigint, 'others may write');
SELECT throws_ok($$SELECT bson_column_convert('c', 'jsonb')$$, '42501', NULL, 'but not convert');
SELECT throws_ok($$SELECT collection_create('"S p".x')$$, '42501', NULL, 'nor create where they may not');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
