-- Validators: levels, actions, constraint or trigger, split documents, partitions, rights, errors.
\set QUIET 1
SET client_min_messages = error;
BEGIN;
SELECT plan(44);

SELECT function_returns('collection_validator', ARRAY['regclass', 'bson', 'text', 'text'], 'text');
CREATE TABLE made AS SELECT collection_create('v');
INSERT INTO v (doc) VALUES ('{_id: 1, n: "old"}'), ('{_id: 2, n: 2}');
CREATE FUNCTION try(command text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN EXECUTE command; RETURN 'ok'; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$;
CREATE FUNCTION tries(rel text) RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws(' ', try(format($q$SELECT collection_insert(%L, '{_id: 3, n: 3}')$q$, rel)), try(format($q$SELECT collection_insert(%L, '{_id: 4, n: "x"}')$q$, rel)), try(format($q$SELECT collection_update(%L, '{_id: 1}', '{$inc: {m: 1}}')$q$, rel)),
    try(format($q$SELECT collection_update(%L, '{_id: 2}', '{$set: {n: "x"}}')$q$, rel)), try(format($q$SELECT collection_update(%L, '{_id: 1}', '{$set: {n: 1}}')$q$, rel)), try(format($q$SELECT collection_delete(%L, '{_id: 1}')$q$, rel))) $$;
CREATE FUNCTION outcome(rel regclass, validator bson, level text, action text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
  PERFORM collection_validator(rel, validator, level, action);
  result := tries(rel::text);
  RAISE EXCEPTION USING ERRCODE = 'P0999', MESSAGE = result;
EXCEPTION WHEN SQLSTATE 'P0999' THEN RETURN SQLERRM;
END $$;
SELECT is(outcome('v', v, level, action), result, concat_ws(' ', v, level, action)) FROM (VALUES ('{n: {$type: "int"}}'::bson), ('{$jsonSchema: {properties: {n: {bsonType: "int"}}}}')) x (v),
  (VALUES ('strict', 'error', 'ok 23514 23514 23514 ok ok'), ('moderate', 'error', 'ok 23514 ok 23514 ok ok'), ('strict', 'warn', 'ok ok ok ok ok ok'), ('moderate', 'warn', 'ok ok ok ok ok ok'), ('off', 'error', 'ok ok ok ok ok ok')) y (level, action, result);
SELECT is(outcome('v', '{}', 'strict', 'error'), 'ok ok ok ok ok ok', 'none');
SELECT is(outcome('v', NULL, 'strict', 'error'), 'ok ok ok ok ok ok', 'NULL');

-- ---------------------------------------------------------------- what is made

CREATE FUNCTION made() RETURNS text LANGUAGE sql AS $$ SELECT concat_ws(' ', (SELECT string_agg(conname || ' ' || convalidated, ' ') FROM pg_constraint WHERE conrelid = 'v'::regclass AND conname ~ 'valid'), (SELECT string_agg(tgname, ' ') FROM pg_trigger WHERE tgrelid = 'v'::regclass AND tgname ~ 'valid')) $$;
SELECT matches(collection_validator('v', '{n: {$type: ["int", "string"]}}'), 'CHECK .* NOT VALID$', 'the command');
SELECT is(made(), 'docpatterns_validator false', 'a constraint');
SELECT lives_ok('ALTER TABLE v VALIDATE CONSTRAINT docpatterns_validator', 'which may be validated');
SELECT matches(collection_validator('v', '{n: 1}', 'moderate'), '^CREATE TRIGGER', 'another command');
SELECT is(made(), 'zz_docpatterns_49_validator', 'a trigger instead');
SELECT throws_ok($$UPDATE v SET doc = bson_set(doc, 'n', 1) WHERE _id = 2; UPDATE v SET doc = bson_set(doc, 'n', 2) WHERE _id = 2$$, '23514', 'document does not match the validator of table "v"', 'an update in SQL');
SELECT lives_ok($$ALTER TABLE v RENAME doc TO "d o"; ALTER TABLE v RENAME TO w; UPDATE w SET _id = _id WHERE false$$, 'names change');
SELECT throws_ok($$INSERT INTO w ("d o") VALUES ('{n: 2}')$$, '23514', NULL, 'it follows');
SELECT throws_ok($$SELECT bson_column_convert('w', 'jsonb')$$, '2BP01', NULL, 'the column stays bson');
SELECT is(collection_validator('w', '{}'), NULL, 'gone');
SELECT is_empty($$SELECT FROM pg_trigger WHERE tgname ~ 'validator'$$, 'all of it');

-- ---------------------------------------------------------------- split documents, partitions

CREATE TABLE made2 AS SELECT collection_create('s');
SELECT outlier_enable('s', 'a', 2) \g /dev/null
SELECT matches(collection_validator('s', '{$nor: [{a: {$size: 0}}, {a: {$size: 4}}], a: {$exists: true}}'), '^CREATE TRIGGER', 'the table has a pattern');
SELECT lives_ok($$INSERT INTO s (doc) VALUES ('{_id: 1, a: [1, 2, 3]}'), ('{_id: 2, a: [1, 2, 3, 4, 5]}')$$, 'whole documents');
SELECT throws_ok($$INSERT INTO s (doc) VALUES ('{_id: 3, a: [1, 2, 3, 4]}')$$, '23514', NULL, 'a wrong one');
SELECT throws_ok($$SELECT collection_update('s', '{_id: 1}', '{$push: {a: 4}}')$$, '23514', NULL, 'one that becomes wrong');
SELECT throws_ok($$SELECT collection_update('s', '{_id: 2}', '{$pop: {a: 1}}')$$, '23514', NULL, 'by the calls, too');
SELECT throws_ok($$UPDATE s_whole SET doc = bson_set(doc, 'a', '[]'::bson_value) WHERE _id = 1$$, '23514', NULL, 'and the view');
SELECT is((SELECT (matched, modified)::text FROM collection_update('s', '{}', '{$set: {b: 1}}', multi => true)), '(2,2)', 'what is not concerned');
CREATE TABLE p (id int, doc bson) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (9);
SELECT ok(collection_validator('p', '{n: 1}', level) IS NOT NULL, level) FROM unnest('{strict,moderate}'::text[]) level;
SELECT throws_ok($$INSERT INTO p1 VALUES (1, '{n: 2}')$$, '23514', NULL, 'a partition');

-- ---------------------------------------------------------------- errors, rights

CREATE VIEW seen AS SELECT * FROM p;
SELECT throws_ok($$SELECT collection_validator('seen', '{}')$$, '42809');
SELECT throws_ok($$SELECT collection_validator('p', '{a: {$foo: 1}}', 'off')$$, '0A000', NULL, 'a bad filter');
SELECT throws_ok($$SELECT collection_validator('p', '{}', 'hard')$$, '22023');
SELECT throws_ok($$SELECT collection_validator('p', '{}', action => NULL)$$, '22023', NULL, 'a NULL');
SELECT throws_ok($$SELECT collection_validator(NULL, '{}')$$, '22004');
CREATE ROLE validator_other;
GRANT ALL ON p TO validator_other;
SET LOCAL ROLE validator_other;
SELECT throws_ok($$SELECT collection_validator('p', '{}')$$, '42501', NULL, 'not the owner');
RESET ROLE;

CREATE TABLE "O dd" (id int, "d o""c" bson);
SELECT matches(collection_validator('"O dd"', '{n: 1}', 'strict', a), c, 'an odd column, ' || a) FROM (VALUES ('error', 'CHECK \("d o""c" '), ('warn', 'UPDATE OF "d o""c" ')) AS x (a, c);
SELECT lives_ok($$SELECT collection_validator('"O dd"', '{n: 1}')$$, 'another validator of it');
SELECT throws_ok($$INSERT INTO "O dd" VALUES (1, '{n: 2}')$$, '23514', NULL, 'which holds');

SELECT * FROM finish();
ROLLBACK;
