-- Indexes by key documents: signatures, what is made, what is refused, names, rights, relations of all kinds.
\set QUIET 1
\pset fieldsep '\n'
SET client_min_messages = warning;
BEGIN;
SELECT plan(100);

-- ---------------------------------------------------------------- signatures

SELECT function_returns('collection_create_index', ARRAY['regclass', 'bson', 'boolean', 'bson', 'name'], 'text');
SELECT function_returns('collection_drop_index', ARRAY['regclass', 'bson', 'name'], 'name');
SELECT function_returns('collection_list_indexes', ARRAY['regclass'], 'setof record');
SELECT is((SELECT string_agg(provolatile::text || proparallel::text || prosecdef::text, ' ' ORDER BY proname) FROM pg_proc WHERE proname IN ('collection_create_index', 'collection_drop_index', 'collection_list_indexes')),
  'vufalse vufalse sufalse', 'those that write are volatile; all run as the caller');
SELECT is((SELECT proargnames FROM pg_proc WHERE proname = 'collection_create_index'), '{rel,key_document,is_unique,partial_filter,name}', 'the names of the arguments');

-- ---------------------------------------------------------------- what is made

CREATE TABLE made AS SELECT collection_create('c') AS rel;
INSERT INTO c (doc) SELECT bson_build('_id', i, 'a', i % 50, 'b', bson_build('c', i, 'd', bson_array(1, i)), 'list', bson_array(bson_build('x', i), bson_build('x', -i))) FROM generate_series(1, 500) i;
-- The columns of what a key document makes.
CREATE FUNCTION made(key bson, is_unique boolean DEFAULT false, partial bson DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE command text := collection_create_index('c', key, is_unique, partial); index_name name;
BEGIN
  SELECT name INTO STRICT index_name FROM collection_list_indexes('c') WHERE definition = command;
  EXECUTE format('DROP INDEX %I', index_name);
  RETURN replace(replace(command, ' ON public.c USING', ''), 'INDEX ' || quote_ident(index_name) || ' ', '');
END $$;
SELECT is(made(k, u, p), 'CREATE ' || d, k::text) FROM (VALUES
  ('{a: 1}'::bson, false, NULL::bson, $$btree (((doc -> 'a'::text)) NULLS FIRST)$$),
  ('{a: -1}', false, NULL, $$btree (((doc -> 'a'::text)) DESC NULLS LAST)$$),
  ('{a: 1.0, "b.c": {$numberLong: "-5"}}', false, NULL, $$btree (((doc -> 'a'::text)) NULLS FIRST, ((doc -> 'b.c'::text)) DESC NULLS LAST)$$),
  ('{a: {$numberDecimal: "1"}}', true, NULL, $$UNIQUE$$),
  ('{_id: 1, a: 1}', false, NULL, $$btree (_id, ((doc -> 'a'::text)) NULLS FIRST)$$),
  ('{a: 1, _id: -1}', false, NULL, $$btree (((doc -> 'a'::text)) NULLS FIRST, _id DESC)$$),
  ('{a: "hashed"}', false, NULL, $$hash (((doc -> 'a'::text)))$$),
  ('{_id: "hashed"}', false, NULL, $$hash (_id)$$),
  ('{a: 1}', false, '{a: {$gt: 5}, s: "it''s \\"}', $$btree (((doc -> 'a'::text)) NULLS FIRST) WHERE (doc @@ '{"a": {"$gt": 5}, "s": "it''s \\"}'::bson)$$),
  ('{"we ird.x,y": 1}', false, NULL, $$btree (((doc -> 'we ird."x,y"'::text)) NULLS FIRST)$$),
  ('{"q\"uote": 1}', false, NULL, $$btree (((doc -> '"q""uote"'::text)) NULLS FIRST)$$),
  ('{"list.0.x": "hashed"}', false, NULL, $$hash (((doc -> 'list.0.x'::text)))$$),
  ('{"$**": 1}', false, NULL, $$gin (doc)$$), ('{"$**": -1, "a.$**": 1}', false, '{a: 1}', $$gin (doc) WHERE (doc @@ '{"a": 1}'::bson)$$), ('{"b.$**": 1, "we,ird.$**": 1}', false, NULL, $$gin (doc bson_ops (paths='b, "we,ird"'))$$),
  ('{"b.d": 1, a: -1}', false, NULL, $$gin (doc bson_ops (paths='b.d, a'))$$), ('{"list.x": 1}', false, NULL, $$gin (doc bson_ops (paths='list.x'))$$), ('{"list.0.x": 1}', false, NULL, $$gin (doc bson_ops (paths='list.x'))$$), ('{"list.x": 1}', false, '{a: 1000}', $$btree (((doc -> 'list.x'::text)) NULLS FIRST) WHERE (doc @@ '{"a": 1000}'::bson)$$),
  ('{"list.x": 1, "list.y": 1}', false, NULL, $$gin (doc bson_ops (pairs='list(x,y)'))$$), ('{"list.y,z": 1, "list.x": -1}', false, NULL, $$gin (doc bson_ops (pairs='list("y,z",x)'))$$), ('{"list.x": 1, "list.y": 1, a: 1}', false, NULL, $$gin (doc bson_ops (paths='list.x, list.y, a'))$$),
  ('{"list.x": 1, "b.d": 1}', false, NULL, $$gin (doc bson_ops (paths='list.x, b.d'))$$), ('{"b.c": 1, "b.d": 1}', false, NULL, $$gin (doc bson_ops (paths='b.c, b.d'))$$)) AS x (k, u, p, d) WHERE NOT u;
INSERT INTO c (doc) VALUES ('{_id: 1001, u: 1}'), ('{_id: 1002, u: 2}'), ('{_id: 1003, u: null, v: 1}');
SELECT throws_ok($$SELECT collection_create_index('c', '{u: 1}', true)$$, '23505', NULL, 'unique: two documents without the field are the same');
SELECT is(made('{u: 1}', true, '{u: {$exists: true}}'), $$CREATE UNIQUE btree (((doc -> 'u'::text)) NULLS FIRST) NULLS NOT DISTINCT WHERE (doc @@ '{"u": {"$exists": true}}'::bson)$$, 'unique where it exists');
DELETE FROM c WHERE _id > 1000;

-- ---------------------------------------------------------------- names, twice

SELECT collection_create_index('c', '{a: 1}');
SELECT has_index('c', 'c_a_idx', 'a name of the table and the fields');
SELECT collection_create_index('c', '{a: 1}');
SELECT is((SELECT count(*) FROM collection_list_indexes('c')), 2::bigint, 'twice is once');
SELECT collection_create_index('c', '{a: -1}');
SELECT has_index('c', 'c_a_idx1', 'another index of the field has another name');
SELECT collection_create_index('c', '{a: 1}', partial_filter => '{a: 5}');
SELECT has_index('c', 'c_a_idx2', 'so has a partial one');
SELECT collection_create_index('c', '{a: 1}', partial_filter => '{a: 5.0}');
SELECT is((SELECT count(*) FROM collection_list_indexes('c')), 4::bigint, 'the same filter is the same index');
SELECT collection_create_index('c', '{a: 1}', name => 'My "index"');
SELECT has_index('c', 'My "index"', 'a name of one''s own');
SELECT throws_ok($$SELECT collection_create_index('c', '{"b.c": 1}', name => 'My "index"')$$, '42P07', NULL, 'a name that is taken');
SELECT collection_create_index('c', bson_build(repeat('long', 30), 1));
SELECT is((SELECT max(length(name::text)) FROM collection_list_indexes('c')), 63, 'a long name is shortened');
SELECT matches(collection_create_index('c', '{"b.c": 1}'), 'INDEX c_b_c_idx ON', 'dots are no part of names');

-- ---------------------------------------------------------------- list

SELECT results_eq($$SELECT name::text COLLATE "default", key::text, method::text COLLATE "default", is_unique, is_primary, partial_filter::text, is_valid, size > 0 FROM collection_list_indexes('c') WHERE name NOT LIKE '%long%'$$,
  $$VALUES ('c_pkey', '{"_id": 1}', 'btree', true, true, NULL, true, true), ('My "index"', '{"a": 1}', 'btree', false, false, NULL, true, true), ('c_a_idx', '{"a": 1}', 'btree', false, false, NULL, true, true),
     ('c_a_idx1', '{"a": -1}', 'btree', false, false, NULL, true, true), ('c_a_idx2', '{"a": 1}', 'btree', false, false, '{"a": 5}', true, true), ('c_b_c_idx', '{"b.c": 1}', 'btree', false, false, NULL, true, true)$$, 'listed');
CREATE INDEX other1 ON c (bson_size(doc));
CREATE INDEX other2 ON c ((doc -> 'a'), bson_size(doc));
CREATE INDEX other3 ON c ((doc -> '"a.b"'));
CREATE INDEX other4 ON c ((doc -> 'a')) WHERE bson_size(doc) > 5;
CREATE INDEX other5 ON c (doc);
CREATE INDEX other6 ON c (bson_get(doc, 'x'));
CREATE INDEX other7 ON c (_id, (doc -> 'x')) INCLUDE (doc);
CREATE INDEX other8 ON c USING brin (bson_size(doc));
CREATE INDEX other9 ON c USING gin (doc bson_ops (paths = 'a, "x.y"'));
CREATE INDEX othera ON c USING gin (doc bson_ops (pairs = 'list(x,y), b(c,d)'));
CREATE INDEX otherb ON c USING gin (doc bson_ops (pairs = ' "li(s)t" ( x , "y""z" ) '));
CREATE INDEX otherc ON c USING gin (doc bson_ops (paths = 'a', pairs = 'list(x,y)'));
CREATE INDEX otherd ON c USING gin ((doc || '{}'::bson));
CREATE INDEX othere ON c USING gin (doc) WITH (fastupdate = off);
SELECT results_eq($$SELECT name::text COLLATE "default", key::text, partial_filter::text FROM collection_list_indexes('c') WHERE name LIKE 'other%'$$,
  $$VALUES ('other1', NULL, NULL), ('other2', NULL, NULL), ('other3', NULL, NULL), ('other4', '{"a": 1}', NULL), ('other5', NULL, NULL), ('other6', '{"x": 1}', NULL), ('other7', '{"_id": 1, "x": 1}', NULL), ('other8', NULL, NULL), ('other9', NULL, NULL),
     ('othera', NULL, NULL), ('otherb', '{"li(s)t.x": 1, "li(s)t.y\"z": 1}', NULL), ('otherc', '{"a.$**": 1, "list.x": 1, "list.y": 1}', NULL), ('otherd', NULL, NULL), ('othere', '{"$**": 1}', NULL)$$,
  'an index that no key document describes has none');
SELECT is((SELECT definition FROM collection_list_indexes('c') WHERE name = 'c_a_idx'), $$CREATE INDEX c_a_idx ON public.c USING btree (((doc -> 'a'::text)) NULLS FIRST)$$, 'with the command');
SELECT throws_ok($$SELECT * FROM collection_list_indexes(NULL)$$, '22004', NULL, 'of nothing');
SELECT throws_ok($$SELECT * FROM collection_list_indexes('pg_class')$$, '42703', NULL, 'of a table without documents');

-- ---------------------------------------------------------------- drop

SELECT is(collection_drop_index('c', '{a: -1}'), 'c_a_idx1', 'dropped by key');
SELECT hasnt_index('c', 'c_a_idx1', 'it is gone');
SELECT throws_ok($$SELECT collection_drop_index('c', '{a: -1}')$$, '42704', NULL, 'there is none');
SELECT throws_ok($$SELECT collection_drop_index('c', '{a: 1}')$$, '42P09', NULL, 'there are several');
SELECT is(collection_drop_index('c', '{a: 1}', 'c_a_idx2'), 'c_a_idx2', 'by both');
SELECT is(collection_drop_index('c', name => 'My "index"'), 'My "index"', 'by name');
SELECT throws_ok($$SELECT collection_drop_index('c', name => 'made')$$, '42704', NULL, 'not what is something else');
SELECT throws_ok($$SELECT collection_drop_index('c', '{_id: 1}')$$, '2BP01', NULL, 'not the primary key');
SELECT throws_ok($$SELECT collection_drop_index('c')$$, '22004', NULL, 'neither key nor name');
SELECT throws_ok($$SELECT collection_drop_index(NULL, '{a: 1}')$$, '22004', NULL, 'no relation');

DROP INDEX othere, otherc;
SELECT collection_create_index('c', k) FROM unnest(ARRAY['{"b.d": 1}', '{"list.x": 1, "list.y": 1}', '{"$**": 1}']::bson[]) k;
SELECT is(collection_drop_index('c', '{"b.d": 1}'), 'c_b_d_idx', 'a field with arrays as it was given');
SELECT is(collection_drop_index('c', '{"list.x": 1, "list.y": 1}'), 'c_list_x_list_y_idx', 'a pair');
SELECT is(collection_drop_index('c', '{"$**": 1}'), 'c_all_idx', 'all fields');

-- ---------------------------------------------------------------- what is refused

SELECT throws_ok(format('SELECT collection_create_index(%L, %L)', 'c', k), e, NULL, k || ' is refused with ' || e) FROM (VALUES
  ('{}', '22023'), ('{a: 0}', '22023'), ('{a: NaN}', '22023'), ('{a: true}', '22023'), ('{a: null}', '22023'), ('{a: {b: 1}}', '22023'), ('{a: "up"}', '22023'), ('{"": 1}', '22023'), ('{"a..b": 1}', '22023'), ('{".a": 1}', '22023'), ('{"a.": 1}', '22023'),
  ('{"$a": 1}', '22023'), ('{"a.$b": 1}', '22023'), ('{"$**": "hashed"}', '22023'), ('{"a.$**.b": 1}', '22023'), ('{"a$**": 1, b: 0}', '22023'), ('{a: "text"}', '0A000'), ('{a: "2d"}', '0A000'), ('{a: "2dsphere"}', '0A000'), ('{a: "hashed", b: 1}', '0A000'), ('{"$**": 1, b: 1}', '0A000')) x (k, e);
SELECT throws_ok($$SELECT collection_create_index('c', '{"$**": 1}', true)$$, '0A000', NULL, 'no unique index of all fields');
SELECT throws_ok($$SELECT collection_create_index('c', '{a: "hashed"}', true)$$, '0A000', NULL, 'no unique hashed index');
SELECT throws_ok($$SELECT collection_create_index('c', '{z: 1}', partial_filter => '{a: {$foo: 1}}')$$, '0A000', NULL, 'a bad filter');
SELECT throws_ok($q$SELECT collection_create_index('c', '{z: 1}', partial_filter => '{$expr: {$gt: ["$a", "$$NOW"]}}')$q$, '0A000', NULL, 'a filter that looks at the clock');
SELECT throws_ok(format('SELECT collection_create_index(%L, %L)', 'c', (SELECT bson_object_agg('n' || i, 1) FROM generate_series(1, 100000) i)),
  '54011', NULL, 'more fields than an index may have columns are refused at once');
SELECT lives_ok(format('SELECT collection_create_index(%L, %L)', 'c', (SELECT bson_object_agg('n' || i, 1) FROM generate_series(1, 32) i)), 'as many as it may have');
SELECT throws_ok($$SELECT collection_create_index('c', NULL)$$, '22004', NULL, 'no key document');
SELECT throws_ok($$SELECT collection_create_index(NULL, '{a: 1}')$$, '22004', NULL, 'no relation');
SELECT throws_ok($$SELECT collection_create_index('c', '{a: 1}', NULL)$$, '22004', NULL, 'unique or not');
CREATE VIEW v AS SELECT doc FROM c;
SELECT throws_ok($$SELECT collection_create_index('v', '{a: 1}')$$, '42809', NULL, 'a view');

-- ---------------------------------------------------------------- other relations

CREATE SCHEMA "W eird";
CREATE TABLE "W eird"."T'a""b" (id int, "the doc" bson);
INSERT INTO "W eird"."T'a""b" SELECT i, bson_build('n', i) FROM generate_series(1, 20) i;
SELECT is(collection_create_index('"W eird"."T''a""b"', '{n: -1, _id: 1}'), $$CREATE INDEX "T'a""b_n_id_idx" ON "W eird"."T'a""b" USING btree ((("the doc" -> 'n'::text)) DESC NULLS LAST, (("the doc" -> '_id'::text)) NULLS FIRST)$$, 'odd names; _id is a field where it is no column');
SELECT is((SELECT key::text FROM collection_list_indexes('"W eird"."T''a""b"')), '{"n": -1, "_id": 1}', 'listed');
SELECT is(collection_drop_index('"W eird"."T''a""b"', '{n: -1, _id: 1}'), $$T'a"b_n_id_idx$$, 'dropped');
CREATE TABLE parted (k int, doc bson) PARTITION BY LIST (k);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES IN (1);
INSERT INTO parted VALUES (1, '{a: 1}');
SELECT is(collection_create_index('parted', '{a: 1}'), $$CREATE INDEX parted_a_idx ON public.parted USING btree (((doc -> 'a'::text)) NULLS FIRST)$$, 'a partitioned table');
SELECT is((SELECT count(*) FROM collection_list_indexes('parted1')), 1::bigint, 'and its partitions');
CREATE MATERIALIZED VIEW mv AS SELECT doc FROM c;
SELECT ok(collection_create_index('mv', '{a: 1}') LIKE 'CREATE INDEX mv_a_idx%', 'a materialized view');

CREATE ROLE dp_index_stranger;
GRANT SELECT ON c TO dp_index_stranger;
SET ROLE dp_index_stranger;
SELECT throws_ok($$SELECT collection_create_index('c', '{q: 1}')$$, '42501', NULL, 'only the owner makes indexes');
SELECT throws_ok($$SELECT collection_drop_index('c', name => 'c_a_idx')$$, '42501', NULL, 'or drops them');
RESET ROLE;

-- A search_path with an operator and a function of somebody else in front changes nothing.
CREATE SCHEMA evil;
CREATE FUNCTION evil.no(text, text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''reached''; END';
CREATE FUNCTION evil.no(bson, bson) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''reached''; END';
CREATE FUNCTION evil.no(name, name) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''reached''; END';
CREATE FUNCTION evil.no(int, int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''reached''; END';
CREATE FUNCTION evil.no(boolean, boolean) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''reached''; END';
CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.no);
CREATE OPERATOR evil.= (LEFTARG = bson, RIGHTARG = bson, FUNCTION = evil.no);
CREATE OPERATOR evil.= (LEFTARG = name, RIGHTARG = name, FUNCTION = evil.no);
CREATE OPERATOR evil.= (LEFTARG = int, RIGHTARG = int, FUNCTION = evil.no);
CREATE OPERATOR evil.> (LEFTARG = int, RIGHTARG = int, FUNCTION = evil.no);
CREATE OPERATOR evil.= (LEFTARG = boolean, RIGHTARG = boolean, FUNCTION = evil.no);
CREATE TABLE behind (n int, result text);
SET search_path = evil, pg_catalog, public;
INSERT INTO public.behind VALUES (1, public.collection_create_index('public.c', '{path: 1, x: -1}', partial_filter => '{path: 5}'));
INSERT INTO public.behind VALUES (2, public.collection_create_index('public.c', '{path: 1, x: -1}', partial_filter => '{path: 5}'));
INSERT INTO public.behind VALUES (3, public.collection_create_index('public.c', '{path: "hashed"}'));
INSERT INTO public.behind VALUES (4, public.collection_drop_index('public.c', '{path: 1, x: -1}'));
RESET search_path;
SELECT matches(result, expected, 'behind a strange search_path: ' || expected) FROM behind JOIN (VALUES (1, 'INDEX c_path_x_idx ON'), (2, 'INDEX c_path_x_idx ON'), (3, 'USING hash'), (4, '^c_path_x_idx$')) x (n, expected) USING (n);

SELECT * FROM finish();
ROLLBACK;
