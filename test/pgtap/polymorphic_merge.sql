-- The contract of the single view: what is refused and how, every kind of write to its sources and to itself, several documents
-- of a key, tables that were full before, verbs, rights, hostile names, and a seeded random run against plain SQL.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(83);
CREATE FUNCTION pg_temp.all_true(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;
-- The merged documents without their ids.
CREATE FUNCTION pg_temp.shown(rel regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text;
BEGIN
  EXECUTE format('SELECT string_agg(bson_unset(doc, ''_id'')::text, E''\n'' ORDER BY doc -> ''c'') FROM %s', rel) INTO r;
  RETURN r;
END $$;

-- Signature
SELECT function_returns('polymorphic_merge', 'text[]', 'the names of the declarations');
SELECT volatility_is('polymorphic_merge', 'volatile', 'it is volatile');

-- Refused
SELECT collection_create('s1'), collection_create('s2'), collection_create('other');
CREATE TABLE no_key (doc bson);
CREATE VIEW a_view AS SELECT * FROM s1;
CREATE TABLE parts (id int PRIMARY KEY, doc bson) PARTITION BY RANGE (id);
SELECT throws_ok(format('SELECT polymorphic_merge(%s)', args), state, NULL, what) FROM (VALUES
  ($$NULL, 'c', '{s1}'$$, '22004', 'no target'), ($$'m', NULL, '{s1}'$$, '22004', 'no field'), ($$'m', 'c', NULL$$, '22004', 'no sources'), ($$'m', 'c', '{NULL}'$$, '22004', 'a source that is null'), ($$'m', 'c', '{}'$$, '22023', 'an empty list'),
  ($$'m', 'c..d', '{s1}'$$, '22023', 'a bad path'), ($$'m', 'c', '{s1,s2}', into_fields => '{a}'$$, '22023', 'a field too few'), ($$'m', 'c', '{s1,s2}', into_fields => '{a,a}'$$, '42710', 'two sources under one name'),
  ($$'m', 'c', '{s1}', into_fields => '{c}'$$, '22023', 'the field of the key'), ($$'m', 'c', '{s1}', into_fields => '{_id}'$$, '22023', 'the _id'), ($$'m', 'c', '{s1}', arrays => '{s9}'$$, '22023', 'an array of nothing'),
  ($$'m', 'c', '{s1}', fields => '{s1: 1}'$$, '22023', 'a projection that is none'), ($$'m', 'c', '{no_such}'$$, '42P01', 'no such source'), ($$'m', 'c', '{no_key}'$$, '55000', 'a source without a key'), ($$'m', 'c', '{a_view}'$$, '42809', 'a view'),
  ($$'s1', 'c', '{s1}'$$, '22023', 'into itself'), ($$'parts', 'c', '{s1}'$$, '42809', 'into a partitioned table')) AS v (args, state, what);
SELECT hastable FROM (SELECT hasnt_table('m', 'what is refused makes no table') AS hastable) q;
SELECT is(polymorphic_merge('m', merge_on => 'c', sources => '{s1,s2}', arrays => '{s2}', fields => '{s2: {x: 1, _id: 0}}'), '{s1,s2}', 'two sources');
SELECT throws_ok($$SELECT polymorphic_merge('m', merge_on => 'c', sources => '{s1}')$$, '42710', NULL, 'a source twice');
SELECT throws_ok($$SELECT polymorphic_merge('m', merge_on => 'd', sources => '{other}')$$, '22023', NULL, 'another field');

-- Every kind of write to sources
INSERT INTO s1 (doc) VALUES ('{_id: 1, c: 7, n: "Ada"}'), ('{_id: 2, c: 8}'), ('{_id: 3}'), ('{_id: 4, c: null}');
INSERT INTO s2 (doc) VALUES ('{_id: 1, c: 7, x: 1, y: 1}'), ('{_id: 2, c: 7, x: 2}'), ('{_id: 3, c: 9, x: 3}');
SELECT is(pg_temp.shown('m'), E'{"c": 7, "s1": {"_id": 1, "c": 7, "n": "Ada"}, "s2": [{"x": 1}, {"x": 2}]}\n{"c": 8, "s1": {"_id": 2, "c": 8}}\n{"c": 9, "s2": [{"x": 3}]}', 'one document for each key');
SELECT throws_ok($$INSERT INTO s1 (doc) VALUES ('{c: 7}')$$, '23505', NULL, 'a second document where there is to be one');
SELECT throws_ok($$INSERT INTO s1 (doc) VALUES ('{c: 7.0}')$$, '23505', NULL, 'keys are compared by value');
INSERT INTO s2 (doc) VALUES ('{_id: 2, c: 10, x: 5}') ON CONFLICT (_id) DO UPDATE SET doc = excluded.doc;
SELECT is(pg_temp.shown('m'), E'{"c": 7, "s1": {"_id": 1, "c": 7, "n": "Ada"}, "s2": [{"x": 1}]}\n{"c": 8, "s1": {"_id": 2, "c": 8}}\n{"c": 9, "s2": [{"x": 3}]}\n{"c": 10, "s2": [{"x": 5}]}', 'another key, by ON CONFLICT');
MERGE INTO s2 USING (VALUES (1, 8), (3, 8), (9, 9)) AS v (i, c) ON s2._id = v.i::bson_value WHEN MATCHED THEN UPDATE SET doc = bson_set(s2.doc, 'c', v.c) WHEN NOT MATCHED THEN INSERT (doc) VALUES (bson_build('_id', v.i, 'c', v.c, 'x', 'new'));
SELECT is(pg_temp.shown('m'), E'{"c": 7, "s1": {"_id": 1, "c": 7, "n": "Ada"}}\n{"c": 8, "s1": {"_id": 2, "c": 8}, "s2": [{"x": 1}, {"x": 3}]}\n{"c": 9, "s2": [{"x": "new"}]}\n{"c": 10, "s2": [{"x": 5}]}', 'MERGE');
BEGIN; SAVEPOINT s; DELETE FROM s2; ROLLBACK TO s; DELETE FROM s2 WHERE doc -> 'c' = 10; COMMIT;
SELECT is((SELECT count(*) FROM m), 3::bigint, 'a document that no source has any more goes');
UPDATE s1 SET doc = bson_set(doc, 'c', 15 - (doc -> 'c')::int) WHERE _id <= 2;
SELECT is(pg_temp.shown('m'), E'{"c": 7, "s1": {"_id": 2, "c": 7}}\n{"c": 8, "s1": {"_id": 1, "c": 8, "n": "Ada"}, "s2": [{"x": 1}, {"x": 3}]}\n{"c": 9, "s2": [{"x": "new"}]}', 'keys are exchanged in one statement');
WITH gone AS (DELETE FROM s1 WHERE _id = 2 RETURNING doc) INSERT INTO s1 (doc) SELECT bson_set(doc, 'again', true) FROM gone;
SELECT is((SELECT doc -> 's1.again' FROM m WHERE doc -> 'c' = 7), 'true'::bson_value, 'two parts of one query');
UPDATE s2 SET doc = bson_set(doc, 'y', 99);
SELECT pg_temp.all_true('writes');
CREATE TABLE versions AS SELECT _id, xmin::text AS x FROM m;
UPDATE s2 SET doc = bson_set(doc, 'y', 100);
SELECT is_empty('SELECT * FROM m JOIN versions v USING (_id) WHERE m.xmin::text <> v.x', 'what is not shown makes no row version');
TRUNCATE s2;
SELECT is(pg_temp.shown('m'), E'{"c": 7, "s1": {"_id": 2, "c": 7, "again": true}}\n{"c": 8, "s1": {"_id": 1, "c": 8, "n": "Ada"}}', 'TRUNCATE');

-- Writes to the merged table: fields of sources are kept, others are the user's
SELECT throws_ok($$DELETE FROM m WHERE doc -> 'c' = 7$$, '55000', NULL, 'a document that a source knows of cannot be deleted');
SELECT outlier_enable('m', 'tags', threshold => 10);
SELECT throws_ok($$DELETE FROM m_whole WHERE doc -> 'c' = 7$$, '55000', 'merged documents of table "m" cannot be deleted', 'nor through the view of whole documents');
SELECT pattern_disable('m', 'tags');
SELECT throws_ok('TRUNCATE m', '55000', NULL, 'nor all of them');
SELECT throws_ok($$UPDATE m SET doc = bson_set(doc, 'c', 77) WHERE doc -> 'c' = 7$$, '55000', NULL, 'nor get another key');
SELECT throws_ok($$INSERT INTO m (doc) VALUES ('{c: 7}')$$, '23505', NULL, 'keys are unique');
UPDATE m SET doc = bson_set(bson_set(doc, 's1.n', 'wrong'), 'note', 'mine') WHERE doc -> 'c' = 8;
SELECT is(pg_temp.shown('m'), E'{"c": 7, "s1": {"_id": 2, "c": 7, "again": true}}\n{"c": 8, "s1": {"_id": 1, "c": 8, "n": "Ada"}, "note": "mine"}', 'a copy that is written by hand is put right, the rest stands');
SELECT throws_ok($$INSERT INTO m (doc) VALUES ('{c: 20, s1: {n: "forged"}, note: "first"}')$$, '55000', NULL, 'nor a field of a source that has nothing');
INSERT INTO m (doc) VALUES ('{c: 20, s2: null, note: "first"}');
SELECT is(pg_temp.shown('m'), E'{"c": 7, "s1": {"_id": 2, "c": 7, "again": true}}\n{"c": 8, "s1": {"_id": 1, "c": 8, "n": "Ada"}, "note": "mine"}\n{"c": 20, "note": "first"}', 'a document of the user''s own');
INSERT INTO s2 (doc) VALUES ('{_id: 1, c: 20, x: 1}'); DELETE FROM s1 WHERE doc -> 'c' = 8;
SELECT is(pg_temp.shown('m'), E'{"c": 7, "s1": {"_id": 2, "c": 7, "again": true}}\n{"c": 8, "note": "mine"}\n{"c": 20, "note": "first", "s2": [{"x": 1}]}', 'is merged into, and stays when its sources go');
SELECT lives_ok($$DELETE FROM m WHERE doc -> 'c' = 8$$, 'and can be deleted then');
SELECT pg_temp.all_true('writes to the merged table');

-- One more source, on full tables
INSERT INTO other (doc) SELECT bson_build('_id', g, 'c', g, 'z', 'v' || g) FROM generate_series(7, 12) g;
SELECT is(polymorphic_merge('m', 'c', '{other}', into_fields => '{third}'), '{third}', 'one more');
SELECT is((SELECT count(*) FROM pattern_check('m')), 6::bigint, 'what was there is not merged yet');
INSERT INTO s1 (doc) VALUES ('{_id: 50, c: 12}');
SELECT is((SELECT doc ->> 'third.z' FROM m WHERE doc -> 'c' = 12), 'v12', 'a new document has the fields of all sources');
CALL pattern_build('m', 'third', NULL);
SELECT is((SELECT count(*) FROM m WHERE doc ? 'third'), 6::bigint, 'pattern_build merges the others');
SELECT pg_temp.all_true('a third source');
ALTER TABLE m DISABLE TRIGGER USER; UPDATE m SET doc = bson_set(doc, 'third.z', 1) WHERE doc -> 'c' = 12; DELETE FROM m WHERE doc -> 'c' = 11; INSERT INTO m VALUES ('1', '{_id: 1, c: 30, third: {}}'); ALTER TABLE m ENABLE TRIGGER USER;
SELECT bag_eq($$SELECT what, expected, found FROM pattern_check('m', 'third')$$, $$VALUES ('document of the key', 'present', 'missing'), ('field "third"', '{"_id": 12, "c": 12, "z": "v12"}', '{"_id": 12, "c": 12, "z": 1}'), ('field "third"', 'absent', '{}')$$, 'damage is told');
SELECT is(pattern_repair('m', 'third'), 3::bigint, 'and repaired');
SELECT pg_temp.all_true('repair');
SELECT pattern_alter('m', 'third', '{is_array: true, fields: {z: 1, _id: 0}}');
SELECT is((SELECT doc ->> 'third' FROM m WHERE doc -> 'c' = 12), '[{"z": "v12"}]', 'pattern_alter writes all anew');
SELECT throws_ok($$SELECT pattern_alter('m', 'third', '{merge_on: "x"}')$$, '22023', NULL, 'merge_on stays');
SELECT throws_ok($$SELECT pattern_alter('m', 'third', '{is_array: 1}')$$, '22023', NULL, 'is_array is true or false');
INSERT INTO other (doc) VALUES ('{_id: 60, c: 12, z: "second"}');
SELECT throws_ok($$SELECT pattern_alter('m', 'third', '{is_array: false}')$$, '23505', NULL, 'two documents do not become one');
SELECT is(pattern_disable('m', 'third'), 6::bigint, 'pattern_disable takes the field out');
SELECT is(pg_temp.shown('m'), E'{"c": 7, "s1": {"_id": 2, "c": 7, "again": true}}\n{"c": 12, "s1": {"_id": 50, "c": 12}}\n{"c": 20, "note": "first", "s2": [{"x": 1}]}', 'and documents that have nothing else');
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgrelid = 'other'::regclass), 1::bigint, 'its source is free');
SELECT is(pattern_disable('m', 's2', keep_data => true), 0::bigint, 'unless they are to stay');
SELECT is((SELECT doc ->> 's2' FROM m WHERE doc -> 'c' = 20), '[{"x": 1}]', 'they do');
SELECT throws_ok('DROP TABLE s1', '2BP01', NULL, 'a source is needed');
DROP TABLE s1 CASCADE;
SELECT is_empty($$SELECT * FROM pattern_list('m')$$, 'DROP TABLE .. CASCADE ends the declaration');
DROP TABLE m, s2, other, parts, versions CASCADE;

-- The key as _id, tables of one's own, partitions, hostile names
CREATE SCHEMA "A ""b";
CREATE TABLE "A ""b"."S '1" ("k 1" int, k2 text, "d ""c" bson, PRIMARY KEY ("k 1", k2)) PARTITION BY RANGE ("k 1");
CREATE TABLE "A ""b".p1 PARTITION OF "A ""b"."S '1" FOR VALUES FROM (0) TO (10);
SELECT is(polymorphic_merge('"A ""b"."T ''2"', merge_on => '"a.b"."c ''d"', sources => ARRAY['"A ""b"."S ''1"'], arrays => ARRAY['S ''1'], target_field => '_id'), ARRAY['S ''1'], 'hostile names');
CREATE TABLE "A ""b".p2 PARTITION OF "A ""b"."S '1" FOR VALUES FROM (10) TO (20);
INSERT INTO "A ""b"."S '1" VALUES (1, 'x', '{"a.b": {"c ''d": "k"}, v: 1}'), (11, 'w', '{"a.b": {"c ''d": "k"}, v: 2}'), (1, 'a', '{"a.b": {"c ''d": [1]}, v: 3}');
UPDATE "A ""b".p2 SET "d ""c" = bson_set("d ""c", 'v', 4);
UPDATE "A ""b"."S '1" SET k2 = 'zz' WHERE k2 = 'x';
SELECT is((SELECT count(*) FROM "A ""b"."T '2"), 1::bigint, 'an array is no _id');
SELECT pg_temp.all_true('hostile names');
UPDATE "A ""b"."S '1" SET "k 1" = 19 - "k 1";
SELECT is((SELECT string_agg(e ->> 'v', ' ') FROM "A ""b"."T '2", bson_elements(doc -> '"S ''1"') e), '4 1', 'an array is in the order of keys, also when only these change');
ALTER TABLE "A ""b"."S '1" DETACH PARTITION "A ""b".p2;
SELECT is((SELECT string_agg(e ->> 'v', ' ') FROM "A ""b"."T '2", bson_elements(doc -> '"S ''1"') e), '4', 'a partition that leaves takes its documents along');
SELECT pg_temp.all_true('partitions');
DROP SCHEMA "A ""b" CASCADE;

-- Who may do what
CREATE ROLE merge_writer; CREATE ROLE merge_owner;
SELECT collection_create('w1'), collection_create('w2'); SELECT polymorphic_merge('wm', 'c', '{w1,w2}');
GRANT INSERT, SELECT, DELETE ON w1 TO merge_writer;
SET ROLE merge_writer;
SELECT throws_ok($$SELECT polymorphic_merge('wm', 'c', '{w1}', into_fields => '{x}')$$, '42501', NULL, 'others declare nothing');
SELECT lives_ok($$INSERT INTO w1 (doc) VALUES ('{_id: 1, c: 1}')$$, 'a writer needs no rights on the merged table');
SELECT lives_ok($$DELETE FROM w1$$, 'also where its documents go');
SELECT throws_ok('SELECT * FROM wm', '42501', NULL, 'and gets none');
SELECT lives_ok($$INSERT INTO w1 (doc) VALUES ('{_id: 1, c: 1}')$$, 'once more');
RESET ROLE;
SELECT is((SELECT count(*) FROM wm), 1::bigint, 'it is merged');
DROP TABLE w1, w2, wm CASCADE; DROP OWNED BY merge_writer, merge_owner; DROP ROLE merge_writer, merge_owner;

-- A seeded random run against plain SQL
SELECT collection_create('r1'), collection_create('r2'), collection_create('r3'), setseed(0.20269);
SELECT polymorphic_merge('rm', 'c', '{r1,r2,r3}', arrays => '{r2,r3}', fields => '{r3: {v: 1}}');
DO $$ DECLARE t text; w int; errors int := 0; BEGIN
  FOR i IN 1 .. 600 LOOP
    t := (ARRAY['r1', 'r2', 'r3'])[1 + floor(random() * 3)];
    w := floor(random() * 10);
    BEGIN
      IF w < 5 THEN EXECUTE format('INSERT INTO %I (doc) SELECT bson_build(''_id'', $1 * 10 + g, ''c'', CASE WHEN $2 < 0.1 THEN NULL ELSE floor(random() * 12)::int END, ''v'', $1) FROM generate_series(1, $3) g', t) USING i, random(), 1 + floor(random() * 3)::int;
      ELSIF w < 7 THEN EXECUTE format('UPDATE %I SET doc = bson_set(doc, ''c'', floor(random() * 12)::int) WHERE (doc -> ''v'')::int %% 7 = $1', t) USING i % 7;
      ELSIF w < 8 THEN EXECUTE format('UPDATE %I SET doc = bson_set(doc, ''v'', (doc -> ''v'')::int + 1) WHERE random() < 0.3', t);
      ELSIF w < 9 THEN EXECUTE format('DELETE FROM %I WHERE random() < 0.4', t);
      ELSE UPDATE rm SET doc = bson_set(CASE WHEN doc ? 'r2' THEN bson_set(doc, 'r2', i) ELSE doc END, 'own', i) WHERE random() < 0.2; DELETE FROM rm WHERE NOT doc ?| ARRAY['r1', 'r2', 'r3']; END IF;
    EXCEPTION WHEN unique_violation THEN errors := errors + 1; END;
  END LOOP;
END $$;
SELECT is_empty($$
  SELECT k.c, (SELECT doc FROM r1 WHERE doc -> 'c' = k.c)::text, (SELECT bson_agg(doc ORDER BY _id) FROM r2 WHERE doc -> 'c' = k.c)::text, (SELECT bson_agg(bson_project(doc, '{v: 1, _id: 0}') ORDER BY _id) FROM r3 WHERE doc -> 'c' = k.c)::text
  FROM (SELECT doc -> 'c' AS c FROM r1 UNION SELECT doc -> 'c' FROM r2 UNION SELECT doc -> 'c' FROM r3) AS k WHERE bson_typeof(k.c) <> 'null'
  EXCEPT SELECT doc -> 'c', (doc -> 'r1')::text, (doc -> 'r2')::text, (doc -> 'r3')::text FROM rm$$, 'seed 0.20269: every key as plain SQL has it');
SELECT is_empty($$SELECT doc FROM rm WHERE NOT doc ?| ARRAY['r1', 'r2', 'r3', 'own']$$, 'and nothing else');
SELECT cmp_ok((SELECT count(*) FROM rm WHERE doc ?& ARRAY['r1', 'r2', 'r3']), '>', 2::bigint, 'some have all');
SELECT pg_temp.all_true('the random run');
-- the first source leaves: the others need the unique index that its declaration made
SELECT pattern_disable('rm', 'r1');
SELECT pg_temp.all_true('without the first source');
SELECT lives_ok($$INSERT INTO r2 (doc) VALUES ('{_id: -1, c: 3}')$$, 'the second one is still merged');
SELECT pattern_disable_all('rm');
SELECT is_empty($$SELECT FROM pg_index WHERE indrelid = 'rm'::regclass AND NOT indisprimary$$, 'the index goes with the last source');
SELECT * FROM finish();
DROP TABLE r1, r2, r3, rm, no_key CASCADE;
