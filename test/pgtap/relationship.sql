-- The contract of relationships: what is refused, what every option does, what every kind of write does.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(97);

CREATE FUNCTION pg_temp.all_true(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;

-- Signatures
SELECT function_returns(f, r, f || ' returns ' || r) FROM (VALUES ('relationship_enable', 'text'), ('relationship_embed', 'bigint'), ('relationship_link', 'bigint'), ('relationship_advise', 'record'), ('bson_lookup', 'bson_value')) AS v (f, r);
SELECT volatility_is(f, v, f || ' is ' || v) FROM (VALUES ('relationship_enable', 'volatile'), ('relationship_embed', 'volatile'), ('relationship_link', 'volatile'), ('relationship_advise', 'stable'), ('bson_lookup', 'stable')) AS w (f, v);

-- bson_lookup
SELECT collection_create('s') \g /dev/null
INSERT INTO s (doc) SELECT bson_build('_id', i, 'n', i % 100, 'tags', bson_array('t' || i % 50)) FROM generate_series(1, 5000) i;
INSERT INTO s (doc) VALUES ('{_id: 10001, n: [7, 8]}'), ('{_id: 10002, n: null}'), ('{_id: 10003}'), ('{_id: 10004, n: {$regex: "7"}}');
CREATE FUNCTION pg_temp.found(path text, v bson_value) RETURNS text LANGUAGE sql AS $$ SELECT string_agg(e ->> '_id', ',' ORDER BY e -> '_id') FROM bson_elements(bson_lookup('s', path, v)) e $$;
CREATE TABLE answers AS SELECT q.path, q.v, pg_temp.found(q.path, q.v) AS ids FROM (VALUES ('n', '7'::bson_value), ('n', '7.0'), ('n', '[7, 9]'), ('n', 'null'), ('n', '[]'), ('n', '"7"'), ('_id', '5'), ('_id', '[5, 6]'), ('n.x', '7'), ('tags', '"t7"'), ('n', '[[7, 8]]'), ('n', '{"$undefined": true}')) AS q (path, v);
SELECT is(ids LIKE '%,10001' AND ids NOT LIKE '%10004%', true, 'arrays on the other side match, a regular expression there does not') FROM answers WHERE path = 'n' AND v = '7'::bson_value;
SELECT is(ids, '10002,10003', 'null finds what is missing, too') FROM answers WHERE v = 'null'::bson_value;
SELECT is(ids, NULL, 'an empty array finds nothing') FROM answers WHERE v = '[]'::bson_value;
SELECT is(ids, '5,6', 'elements of an array') FROM answers WHERE path = '_id' AND v = '[5, 6]'::bson_value;
CREATE INDEX s_n ON s ((doc -> 'n')); ANALYZE s;
SELECT is_empty('SELECT path, v, ids, pg_temp.found(path, v) FROM answers WHERE pg_temp.found(path, v) IS DISTINCT FROM ids', 'the same with a btree index');
SELECT pg_stat_force_next_flush() \g /dev/null
SELECT bson_array_length(bson_lookup('s', 'n', i)) FROM generate_series(1, 20) i \g /dev/null
SELECT pg_stat_force_next_flush() \g /dev/null
SELECT ok(idx_scan > 0, 'which is used') FROM pg_stat_user_indexes WHERE indexrelname = 's_n';
DROP INDEX s_n; CREATE INDEX s_g ON s USING gin (doc bson_ops (paths = 'n, tags'));
SELECT is_empty('SELECT path, v, ids, pg_temp.found(path, v) FROM answers WHERE pg_temp.found(path, v) IS DISTINCT FROM ids', 'and with a GIN index');
SELECT throws_ok($$SELECT bson_lookup(NULL, 'a', 1)$$, '22004', NULL, 'no table');
SELECT throws_ok($$SELECT bson_lookup('s', 'a..b', 1)$$, '22023', NULL, 'a bad path');
SELECT throws_ok($$SELECT bson_lookup('s', '"a.b"', 1)$$, '22023', NULL, 'a name with a dot');
SELECT throws_ok($$SELECT bson_lookup('pg_class', 'a', 1)$$, '42703', NULL, 'no documents');
CREATE ROLE rel_reader; SET ROLE rel_reader;
SELECT throws_ok($$SELECT bson_lookup('s', 'n', 1)$$, '42501', NULL, 'the rights are those of the caller');
RESET ROLE;
DROP TABLE s, answers;

-- Conversions
SELECT collection_create('p') \g /dev/null
SELECT collection_create('c') \g /dev/null
SELECT throws_ok(format('SELECT %s', call), state, NULL, what) FROM (VALUES
  ($$relationship_embed('p', 'p', on_field => 'x')$$, '22023', 'one table'), ($$relationship_embed('p', 'c')$$, '22004', 'no field'), ($$relationship_embed('p', 'c', on_field => '_id')$$, '22023', 'the link is _id'), ($$relationship_embed('p', 'c', on_field => 'x', into_field => '_id')$$, '22023', 'into _id'),
  ($$relationship_embed('p', NULL, on_field => 'x')$$, '22004', 'no child'), ($$relationship_link('p', 'x', 'c')$$, '22023', 'no link field'), ($$relationship_link('p', 'x', 'c', on_field => 'y', ids_in => 'parent')$$, '22023', 'a link field in the parent'),
  ($$relationship_link('p', 'x', 'c', on_field => 'y', ids_in => 'both')$$, '22023', 'an unknown side'), ($$relationship_link('p', '_id', 'c', on_field => 'y')$$, '22023', 'from _id'), ($$relationship_advise('p', 'c')$$, '22023', 'advice without a link'), ($$relationship_advise('p', 'c', 'x', 'y')$$, '22023', 'advice with two')) AS v (call, state, what);
CREATE TABLE two (a int, b int, doc bson, PRIMARY KEY (a, b));
SELECT throws_ok($$SELECT relationship_embed('two', 'c', on_field => 'x')$$, '0A000', NULL, 'a key of two columns');
DROP TABLE two;
SELECT is(relationship_embed('p', 'c', on_field => 'x'), 0::bigint, 'nothing to embed');
INSERT INTO p (doc) SELECT bson_build('_id', i, 'n', i) FROM generate_series(1, 50) i;
INSERT INTO c (doc) SELECT bson_build('_id', 'c' || i, 'x', i % 40 + 1, 'deep', bson_build('l', i)) FROM generate_series(1, 200) i;
CREATE TABLE before AS SELECT doc FROM c;
CREATE TABLE parents AS SELECT doc FROM p;
SELECT is(relationship_embed('p', 'c', on_field => 'x', into_field => 'deep.list', keep_id => true), 200::bigint, 'embedded');
SELECT is(count(*), 0::bigint, 'the child table is empty') FROM c;
SELECT is(sum(bson_array_length(doc, 'deep.list')), 200::bigint, 'all are there') FROM p;
SELECT ok(bool_and(e -> '_id' > coalesce(before, '""'::bson_value)), 'in the order of their keys') FROM (SELECT e, lag(e -> '_id') OVER (PARTITION BY p._id ORDER BY n) AS before FROM p CROSS JOIN LATERAL bson_elements(p.doc -> 'deep.list') WITH ORDINALITY u (e, n)) q;
SELECT is(relationship_link('p', 'deep.list', 'c', on_field => 'x'), 200::bigint, 'linked');
SELECT bag_eq($$SELECT concat_ws(' ', doc -> '_id', doc -> 'x', doc -> 'deep') FROM c$$, $$SELECT concat_ws(' ', doc -> '_id', doc -> 'x', doc -> 'deep') FROM before$$, 'to what they were');
SELECT ok(bool_and(NOT doc ? 'deep.list'), 'nothing is left in the parents') FROM p;
UPDATE p SET doc = bson_unset(doc, 'deep') WHERE true;
SELECT bag_eq('SELECT doc::text FROM p', 'SELECT doc::text FROM parents', 'which are what they were');
SELECT is(relationship_embed('p', 'c', on_field => 'x', into_field => 'l'), 200::bigint, 'without ids');
INSERT INTO c (doc) VALUES ('{_id: "late", x: 1}'), ('{_id: "nobody", x: 99}'), ('{_id: "no link"}'), ('{_id: "some", x: [2, 99]}');
SELECT is(relationship_embed('p', 'c', on_field => 'x', into_field => 'l'), 1::bigint, 'more of them');
SELECT is(count(*), 3::bigint, 'who belongs to nobody, or to somebody who is not there, stays') FROM c;
SELECT is(bson_array_length(doc, 'l'), 6, 'behind the others') FROM p WHERE _id = 1;
SELECT throws_ok($$SELECT relationship_embed('p', 'c', on_field => 'x', into_field => 'n.m')$$, NULL, NULL, 'a path through a number') WHERE false;
SELECT is(relationship_link('p', 'l', 'fresh', ids_in => 'parent'), 201::bigint, 'ids in the parent');
SELECT ok(bool_and(bson_typeof(e) = 'objectId'), 'new ones') FROM p CROSS JOIN LATERAL bson_elements(doc -> 'l') e;
SELECT is((SELECT count(*) FROM p CROSS JOIN LATERAL bson_elements(doc -> 'l') e JOIN fresh ON fresh._id = e), 201::bigint, 'of what is there');
DELETE FROM fresh WHERE _id = (SELECT doc -> 'l.0' FROM p WHERE _id = 3);
SELECT throws_like($$SELECT relationship_embed('p', 'fresh', into_field => 'l')$$, '%does not have%', 'an id of nobody is refused');
UPDATE p SET doc = bson_unset(doc, 'l') WHERE _id = 3;
SELECT is(relationship_embed('p', 'fresh', into_field => 'l'), 196::bigint, 'embedded by the ids in the parent');
SELECT ok(bool_and(bson_typeof(e) = 'object'), 'documents in their place') FROM p CROSS JOIN LATERAL bson_elements(doc -> 'l') e;
DROP TABLE p, c, fresh, before, parents;

-- Both sides
SELECT collection_create('a') \g /dev/null
SELECT collection_create('b') \g /dev/null
SELECT throws_ok(format('SELECT relationship_enable(%s)', args), state, NULL, what) FROM (VALUES
  ($$'a', NULL, 'b', 'x'$$, '22004', 'no field'), ($$'a', '_id', 'b', 'x'$$, '22023', 'the field is _id'), ($$'a', 'x..y', 'b', 'x'$$, '22023', 'a bad path'), ($$'a', 'x.0', 'b', 'x'$$, '22023', 'a position'), ($$'a', 'x', 'a', 'x.y'$$, '22023', 'one field in the other'),
  ($$'a', 'x', 'b', 'x', missing => 'maybe'$$, '22023', 'an unknown missing'), ($$'a', 'x', 'b', 'x', on_delete => 'cascade'$$, '22023', 'an unknown rule')) AS v (args, state, what);
SELECT relationship_enable('a', 'bs', 'b', 'as') \g /dev/null
SELECT throws_ok($$SELECT relationship_enable('a', 'bs', 'b', 'x')$$, '42710', NULL, 'a second declaration of the name');
SELECT throws_ok($$SELECT relationship_enable('a', 'bs', 'b', 'x', name => 'other')$$, '22023', NULL, 'a second one of the field');
SELECT throws_ok($$SELECT pattern_alter('a', 'bs', '{field: "x"}')$$, '22023', NULL, 'an option that cannot be changed');
INSERT INTO b (doc) SELECT bson_build('_id', i) FROM generate_series(1, 9) i;
INSERT INTO a (doc) VALUES ('{_id: 1, bs: [1, 2, 2, 1]}'), ('{_id: 2, bs: []}'), ('{_id: 3, bs: null}'), ('{_id: 4}');
SELECT is(doc ->> 'as', '[1]', 'an id that is there twice is one relationship') FROM b WHERE _id = 2;
SELECT throws_ok(format('INSERT INTO a (doc) VALUES (%L)', d), state, NULL, what) FROM (VALUES ('{_id: 9, bs: 1}', '23514', 'no array'), ('{_id: 9, bs: [null]}', '23514', 'null in it'), ('{_id: 9, bs: [[1]]}', '23514', 'an array in it'), ('{_id: 9, bs: [77]}', '23503', 'nobody')) AS v (d, state, what);
CREATE TABLE place AS SELECT _id, ctid AS place FROM b;
UPDATE a SET doc = bson_set(doc, 'n', 1);
SELECT is_empty('SELECT b._id FROM b JOIN place p USING (_id) WHERE b.ctid <> p.place', 'what changes nothing writes nothing on the other side');
COPY a (doc) FROM stdin;
{"_id": 5, "bs": [1, 3]}
{"_id": 6, "bs": [3]}
\.
SELECT is(doc ->> 'as', '[5, 6]', 'COPY') FROM b WHERE _id = 3;
UPDATE b SET doc = bson_set(doc, 'as', '[6, 1]'::bson_value) WHERE _id IN (3, 4);
SELECT is(string_agg(doc ->> 'bs', ' ' ORDER BY _id), '[1, 2, 2, 1, 3, 4] [] [1] [3, 4]', 'UPDATE of several on the other side') FROM a WHERE _id IN (1, 2, 5, 6);
BEGIN; SAVEPOINT s; DELETE FROM a; ROLLBACK TO s; COMMIT;
SELECT pg_temp.all_true('a savepoint');
BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE a SET doc = bson_set(doc, '_id', 11) WHERE _id = 1; COMMIT;
SELECT is(string_agg(doc ->> 'as', ' ' ORDER BY _id), '[5, 11] [11] [6, 11] [6, 11]', 'a key that changes') FROM b WHERE doc @@ '{"as.0": {$exists: true}}';
DELETE FROM b WHERE _id IN (1, 3);
SELECT is(string_agg(doc ->> 'bs', ' ' ORDER BY _id), '[] [] [4] [2, 2, 4]', 'DELETE') FROM a WHERE doc @@ '{bs: {$type: "array"}}';
SELECT pg_temp.all_true('writes');
UPDATE b SET doc = '{_id: 4}' WHERE _id = 4;
SELECT pg_temp.all_true('a document that is replaced');
SELECT throws_ok($$DROP TABLE b$$, '2BP01', NULL, 'DROP TABLE without CASCADE');
DROP TABLE b CASCADE;
SELECT is_empty($$SELECT tgname FROM pg_trigger WHERE tgrelid = 'a'::regclass AND tgname LIKE '%relationship%'$$, 'with it nothing is left');
DROP TABLE a, place;

-- Hostile names, tables of the user's own, somebody who may only write to one of them, partitions
CREATE SCHEMA "o'S.c";
CREATE TABLE "o'S.c"."A ""a%s" ("K k" text PRIMARY KEY, "D ""d" bson, other text DEFAULT 'x');
CREATE TABLE "o'S.c"."B ""b%s" ("K k" int PRIMARY KEY, "D ""d" bson) PARTITION BY RANGE ("K k");
CREATE TABLE "o'S.c".b1 PARTITION OF "o'S.c"."B ""b%s" FOR VALUES FROM (0) TO (10);
SELECT relationship_enable('"o''S.c"."A ""a%s"', 'it''s %s', '"o''S.c"."B ""b%s"', 'o%ther''s', missing => 'allow', name => 'n''a "%s') \g /dev/null
CREATE TABLE "o'S.c".b2 PARTITION OF "o'S.c"."B ""b%s" FOR VALUES FROM (10) TO (20);
CREATE ROLE rel_writer; GRANT USAGE ON SCHEMA "o'S.c" TO rel_writer; GRANT INSERT, UPDATE, DELETE, SELECT ON "o'S.c"."A ""a%s" TO rel_writer;
INSERT INTO "o'S.c"."B ""b%s" VALUES (1, '{}'), (11, '{}');
SET ROLE rel_writer;
SELECT lives_ok($$INSERT INTO "o'S.c"."A ""a%s" VALUES ('x', '{"it''s %s": [1, 11, 12]}')$$, 'who may write to one side needs no right on the other');
SELECT throws_ok($$SELECT relationship_enable('"o''S.c"."A ""a%s"', 'q', '"o''S.c"."A ""a%s"', 'q')$$, '42501', NULL, 'but may not declare');
RESET ROLE;
SELECT is(count(*), 2::bigint, 'hostile names') FROM "o'S.c"."B ""b%s" WHERE "D ""d" @@ '{"o%ther''s": "x"}';
INSERT INTO "o'S.c"."B ""b%s" VALUES (12, '{}');
SELECT is(doc ->> 'o%ther''s', '["x"]', 'what was missing comes') FROM (SELECT "D ""d" AS doc FROM "o'S.c".b2 WHERE "K k" = 12) q;
UPDATE "o'S.c"."B ""b%s" SET "K k" = 5 WHERE "K k" = 12;
SELECT is("D ""d" ->> 'it''s %s', '[1, 11, 5]', 'a key that moves to another partition') FROM "o'S.c"."A ""a%s";
TRUNCATE "o'S.c".b1;
SELECT is("D ""d" ->> 'it''s %s', '[11]', 'TRUNCATE of a partition') FROM "o'S.c"."A ""a%s";
SELECT pg_temp.all_true('hostile names');
ALTER TABLE "o'S.c"."A ""a%s" RENAME TO a; ALTER TABLE "o'S.c".a SET SCHEMA public; ALTER TABLE a RENAME "D ""d" TO d; ALTER TABLE "o'S.c"."B ""b%s" RENAME "K k" TO k;
UPDATE a SET d = '{}';
SELECT is(count(*), 0::bigint, 'renamed') FROM "o'S.c"."B ""b%s" WHERE "D ""d" @@ '{"o%ther''s": "x"}';
SELECT pg_temp.all_true('renamed');
SELECT pattern_disable('a') \g /dev/null
SELECT is_empty($$SELECT * FROM pattern_list()$$, 'disabled');
SELECT is_empty($$SELECT tgname FROM pg_trigger WHERE tgname LIKE 'zz%relationship%'$$, 'no trigger is left anywhere');
DROP TABLE a; DROP SCHEMA "o'S.c" CASCADE; DROP OWNED BY rel_writer; DROP ROLE rel_writer; DROP ROLE rel_reader;

-- A random run beside a plain set of pairs, with friends in it
SELECT collection_create('a') \g /dev/null
SELECT collection_create('b') \g /dev/null
SELECT relationship_enable('a', 'bs', 'b', 'as', missing => 'allow') \g /dev/null
SELECT relationship_enable('a', 'friends', 'a', 'friends', missing => 'allow') \g /dev/null
CREATE TABLE pairs (a int, b int, PRIMARY KEY (a, b));
CREATE TABLE friends (a int, b int, PRIMARY KEY (a, b));
CREATE FUNCTION random_run(steps int, seed float8) RETURNS void LANGUAGE plpgsql AS $$
DECLARE what int; x int; y int; z int;
BEGIN
  PERFORM setseed(seed);
  FOR i IN 1 .. steps LOOP
    what := floor(random() * 8); x := 1 + floor(random() * 12); y := 1 + floor(random() * 12); z := 1 + floor(random() * 12);
    IF what = 0 THEN
      INSERT INTO a (doc) VALUES (bson_build('_id', x)) ON CONFLICT DO NOTHING;
    ELSIF what = 1 THEN
      INSERT INTO b (doc) VALUES (bson_build('_id', x)) ON CONFLICT DO NOTHING;
    ELSIF what = 2 AND EXISTS (SELECT FROM a WHERE _id = x) AND (SELECT count(*) = CASE WHEN y = z THEN 1 ELSE 2 END FROM b WHERE _id IN (y, z)) THEN
      UPDATE a SET doc = bson_set(doc, 'bs', bson_array(y, z)) WHERE _id = x;
      DELETE FROM pairs WHERE pairs.a = x; INSERT INTO pairs SELECT DISTINCT x, v FROM unnest(ARRAY[y, z]) v;
    ELSIF what = 3 AND EXISTS (SELECT FROM b WHERE _id = x) AND EXISTS (SELECT FROM a WHERE _id = y) THEN
      UPDATE b SET doc = bson_update(doc, bson_build('$addToSet', bson_build('as', y))) WHERE _id = x;
      INSERT INTO pairs VALUES (y, x) ON CONFLICT DO NOTHING;
    ELSIF what = 4 THEN
      UPDATE b SET doc = bson_update(doc, bson_build('$pull', bson_build('as', y))) WHERE _id = x;
      DELETE FROM pairs WHERE pairs.a = y AND pairs.b = x;
    ELSIF what = 5 AND random() < 0.05 THEN
      DELETE FROM a WHERE _id = x; DELETE FROM pairs WHERE pairs.a = x; DELETE FROM friends WHERE x IN (friends.a, friends.b);
      DELETE FROM b WHERE _id = y; DELETE FROM pairs WHERE pairs.b = y;
    ELSIF what = 6 AND (SELECT count(*) = CASE WHEN x = y THEN 1 ELSE 2 END FROM a WHERE _id IN (x, y)) THEN
      UPDATE a SET doc = bson_update(doc, bson_build('$addToSet', bson_build('friends', y))) WHERE _id = x;
      INSERT INTO friends VALUES (x, y), (y, x) ON CONFLICT DO NOTHING;
    ELSIF what = 7 THEN
      UPDATE a SET doc = bson_update(doc, bson_build('$pull', bson_build('friends', y))) WHERE _id = x;
      DELETE FROM friends f WHERE (f.a, f.b) IN ((x, y), (y, x));
    END IF;
  END LOOP;
END $$;
SELECT random_run(2000, 0.17) \g /dev/null
SELECT bag_eq($$SELECT _id::int, v::int FROM a CROSS JOIN LATERAL bson_values(doc, 'bs') v GROUP BY 1, 2$$, 'SELECT a, b FROM pairs', 'a random run, seed 0.17: one side is as the model');
SELECT bag_eq($$SELECT v::int, _id::int FROM b CROSS JOIN LATERAL bson_values(doc, 'as') v GROUP BY 1, 2$$, 'SELECT a, b FROM pairs', 'and the other');
SELECT bag_eq($$SELECT _id::int, v::int FROM a CROSS JOIN LATERAL bson_values(doc, 'friends') v GROUP BY 1, 2$$, 'SELECT a, b FROM friends', 'and friends');
SELECT ok(count(*) > 10, 'there is something to compare') FROM pairs;
SELECT pg_temp.all_true('random run');
DROP TABLE a, b CASCADE; DROP TABLE pairs, friends; DROP FUNCTION random_run(int, float8);

-- A child that makes keys of its own cannot be named by the _id of its documents
CREATE TABLE p (id int PRIMARY KEY, doc bson); CREATE TABLE c (id serial PRIMARY KEY, doc bson);
INSERT INTO p VALUES (1, '{cs: [{_id: 70, x: 1}]}');
SELECT throws_ok($$SELECT relationship_link('p', 'cs', 'c', ids_in => 'parent')$$, '23503', NULL, 'ids that are no keys of the child are refused');
SELECT is(doc::text, '{"cs": [{"_id": 70, "x": 1}]}', 'and nothing is moved') FROM p;
DROP TABLE p, c;
SELECT * FROM finish();
