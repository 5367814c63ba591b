-- The contract of the tree pattern: options, errors, hostile names, other truths, ON CONFLICT, MERGE, COPY, rights, and a seeded
-- random run against a recursive query.
SET client_min_messages = warning;
SELECT plan(82);
SELECT is(provolatile::text, 'v', proname || ' is volatile') FROM pg_proc WHERE proname IN ('tree_enable', 'tree_attach') ORDER BY proname;
SELECT collection_create('c'), collection_create('p') \g /dev/null

-- options
SELECT throws_ok($$SELECT tree_enable('c')$$, '22023', NULL, 'the truth must be named');
SELECT throws_ok($$SELECT tree_enable('c', parent => 'p', truth => 'other')$$, '22023', NULL, 'truth is one of four');
SELECT throws_ok($$SELECT tree_enable('c', parent => 'p', on_delete => 'x')$$, '22023', NULL, 'on_delete is one of three');
SELECT throws_ok($$SELECT tree_enable('c', parent => 'p', ancestors => 'a', ancestors_order => 'x')$$, '22023', NULL, 'ancestors_order is one of two');
SELECT throws_ok($$SELECT tree_enable('c', parent => 'a', ancestors => 'a.b')$$, '22023', NULL, 'fields are different fields');
SELECT throws_ok($$SELECT tree_enable('c', parent => '_id')$$, '22023', NULL, 'and not the _id');
SELECT throws_ok($$SELECT tree_enable('c', path => 'path', truth => 'path')$$, '22023', NULL, 'path as the truth needs a parent field');
SELECT throws_ok($$SELECT tree_enable('c', parent => 'p', path => 'x', separator => '')$$, '22023', NULL, 'a separator is not empty');
SELECT throws_ok($$SELECT tree_attach('p', tree => 'c', parent => 'on')$$, '42704', NULL, 'documents hang on a tree only');
SELECT is(tree_enable('c', parent => 'up', ancestors => 'a', depth => 'd', path => 'x', path_self => true), 'up', 'the name is that of the truth');
SELECT throws_ok($$SELECT tree_enable('c', parent => 'up')$$, '42710', NULL, 'a second one of the name is refused');
SELECT throws_ok($$SELECT tree_enable('c', parent => 'other', depth => 'd')$$, '22023', NULL, 'and one that keeps the same field');
SELECT throws_ok($$SELECT pattern_alter('c', 'up', '{node_id: "x"}')$$, '22023', NULL, 'the id cannot be changed');

-- ids
SELECT throws_ok($$INSERT INTO c (doc) VALUES ('{_id: {a: 1}}')$$, '23514', NULL, 'an id is a scalar');
SELECT throws_ok($$INSERT INTO c (doc) VALUES ('{_id: 1, up: 1}')$$, '23514', NULL, 'no node is its own parent');
SELECT throws_ok($$INSERT INTO c (doc) VALUES ('{_id: 1, up: [1]}')$$, '23514', NULL, 'a parent is an id');
SELECT throws_ok($$INSERT INTO c (doc) VALUES ('{_id: 1, up: 2}')$$, '23503', NULL, 'a parent exists');
INSERT INTO c (doc) VALUES ('{_id: 1}'), ('{_id: 2, up: 1.0}'), ('{_id: "t", up: 2}');
SELECT is(doc, '{"_id": "t", "up": 2, "a": [1, 2], "x": ".1.2.t", "d": 2}'::bson, 'numbers of any type name the same node') FROM c WHERE _id = 't'::text;
SELECT throws_ok(format($$INSERT INTO c (doc) VALUES (bson_build('_id', %L, 'up', 't'))$$, repeat('0123456789', 270)), '54000', NULL, 'what no index could hold is refused');
SELECT lives_ok(format($$INSERT INTO c (doc) VALUES (bson_build('_id', %L, 'up', 't'))$$, repeat('0123456789', 200)), 'an id of 2 kB is none of these');
DELETE FROM c WHERE length(doc ->> '_id') > 1000;

-- statements
INSERT INTO c (doc) VALUES ('{_id: "t", up: 1}') ON CONFLICT (_id) DO UPDATE SET doc = bson_set(c.doc, 'up', 1);
SELECT is(doc ->> 'x', '.1.t', 'ON CONFLICT DO UPDATE moves') FROM c WHERE _id = 't'::text;
INSERT INTO c (doc) VALUES ('{_id: "t", up: 2}') ON CONFLICT DO NOTHING;
SELECT is(doc ->> 'x', '.1.t', 'DO NOTHING does nothing') FROM c WHERE _id = 't'::text;
MERGE INTO c USING (VALUES ('t', 'new'), ('new', '2')) v (id, up) ON c._id = v.id
  WHEN MATCHED THEN UPDATE SET doc = bson_set(c.doc, 'up', v.up)
  WHEN NOT MATCHED THEN INSERT (doc) VALUES (bson_build('_id', v.id, 'up', v.up::int));
SELECT is(doc ->> 'x', '.1.2.new.t', 'MERGE moves below a node that it inserts') FROM c WHERE _id = 't'::text;
COPY c (doc) FROM stdin;
{"_id": "c2", "up": "c1"}
{"_id": "c1", "up": "t"}
\.
SELECT is(doc ->> 'x', '.1.2.new.t.c1.c2', 'COPY in any order') FROM c WHERE _id = 'c2'::text;
SELECT throws_ok($$WITH d AS (DELETE FROM c WHERE _id = 'c1'::text RETURNING doc) INSERT INTO c (doc) SELECT bson_build('_id', 'c3', 'up', 't') FROM d$$,
                 '23503', NULL, 'a part of a statement that deletes a node with children');
SELECT throws_ok($$UPDATE c SET doc = bson_set(doc, 'up', CASE WHEN _id = 't'::text THEN 'c2' ELSE 't' END) WHERE _id IN (to_bson('t'::text), to_bson('c2'::text))$$, '23514', NULL, 'no cycle by several rows');
UPDATE c SET doc = bson_set(doc, '_id', 'x' || (doc ->> '_id')) WHERE bson_typeof(_id) = 'string';
SELECT is(doc ->> 'x', '.1.2.xnew.xt.xc1.xc2', 'all ids change in one statement') FROM c WHERE _id = 'xc2'::text;
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
DELETE FROM c WHERE _id <> 1;
SELECT is(count(*), 1::bigint, 'a whole subtree goes in one statement') FROM c;
BEGIN; SAVEPOINT a; INSERT INTO c (doc) VALUES ('{_id: 3, up: 1}'); ROLLBACK TO a; INSERT INTO c (doc) VALUES ('{_id: 4, up: 1}'); COMMIT;
SELECT is_empty('SELECT * FROM pattern_check()', 'after a savepoint, too');

-- what is wrong is found and mended
SET docpatterns.maintain = off;
UPDATE c SET doc = bson_unset(bson_set(doc, 'd', 7), 'a') WHERE _id = 4;
RESET docpatterns.maintain;
SELECT results_eq($$SELECT what, expected, found FROM pattern_check('c') ORDER BY 1$$, $$VALUES ('a', '[1]', 'absent'), ('d', '1', '7')$$, 'pattern_check tells what is wrong');
SELECT is(pattern_repair('c'), 1::bigint, 'and pattern_repair mends it');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true again');

-- documents of other tables
SELECT tree_attach('p', tree => 'c', parent => 'on', ancestors => 'a', depth => 'd', path => 'x') \g /dev/null
INSERT INTO p (doc) VALUES ('{_id: 1, on: 4}'), ('{_id: 2}');
SELECT is(doc, '{"_id": 1, "on": 4, "a": [1, 4], "x": ".1.4", "d": 2}'::bson, 'a document has the nodes above it') FROM p WHERE _id = 1;
SELECT throws_ok('TRUNCATE c', '23503', NULL, 'a tree that documents hang on is not emptied');
SELECT throws_ok($$SELECT pattern_disable('c')$$, '2BP01', NULL, 'nor ended');
UPDATE p SET doc = bson_unset(doc, 'on') WHERE _id = 1;
SELECT is(doc, '{"_id": 1}'::bson, 'a document that hangs on nothing') FROM p WHERE _id = 1;

-- hostile names, a key of the user's own, several columns of documents
CREATE SCHEMA "W eird";
CREATE TABLE "W eird"."T t" ("k ey" int PRIMARY KEY, "d""oc" bson, other bson);
SELECT is(tree_enable('"W eird"."T t"', node_id => 'na me', parent => '"a.b"', ancestors => 'x.y', doc_column => 'd"oc', name => 'it''s'), 'it''s', 'hostile names');
INSERT INTO "W eird"."T t" VALUES (1, '{"na me": "b", "a.b": "a"}', '{}'), (2, '{"na me": "a"}', NULL), (3, NULL, NULL);
SELECT is("d""oc" -> 'x.y', bson_array('a'::text), 'nodes found by a field') FROM "W eird"."T t" WHERE "k ey" = 1;
SELECT throws_ok($$INSERT INTO "W eird"."T t" VALUES (4, '{"na me": "a"}')$$, '23505', NULL, 'ids are unique');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');

-- writers have rights on their table only
CREATE ROLE tree_writer;
GRANT INSERT, UPDATE ON c TO tree_writer;
SET ROLE tree_writer;
SELECT lives_ok($$INSERT INTO c (doc) VALUES ('{_id: 9, up: 1}')$$, 'a writer needs no other rights');
RESET ROLE;
DROP OWNED BY tree_writer; DROP ROLE tree_writer;

-- lists of children after statements that change several nodes at once: who gets children is in them itself
SELECT collection_create('k') \g /dev/null
SELECT tree_enable('k', parent => 'up', ancestors => 'anc', children => 'kids', on_delete => 'reparent') \g /dev/null
CREATE FUNCTION kids() RETURNS text LANGUAGE sql AS $$SELECT string_agg(_id::text || coalesce('<' || (doc ->> 'up'), '') || ':' || (doc ->> 'kids'), ' ' ORDER BY _id) FROM k$$;
INSERT INTO k (doc) SELECT bson_build('_id', i, 'up', nullif(i - 1, 0)) FROM generate_series(1, 6) i;
DELETE FROM k WHERE _id IN (1, 3, 5);
SELECT is(kids(), '2:[4] 4<2:[6] 6<4:[]', 'nodes that inherit children while they are inherited themselves');
SELECT is_empty('SELECT * FROM pattern_check()', 'and all is true');
TRUNCATE k;
INSERT INTO k (doc) VALUES ('{_id: 1}'), ('{_id: 2, up: 1}'), ('{_id: 3, up: 2}');
UPDATE k SET doc = CASE WHEN _id = 2 THEN bson_set(doc, '_id', 22) ELSE bson_set(doc, 'up', 1) END WHERE _id IN (2, 3);
SELECT is(kids(), '1:[3, 22] 3<1:[] 22<1:[]', 'a node gets another id while its child goes elsewhere');
SELECT is_empty('SELECT * FROM pattern_check()', 'and all is true');
TRUNCATE k;
INSERT INTO k (doc) VALUES ('{_id: 1}'), ('{_id: 2, up: 1}'), ('{_id: 3, up: 2}'), ('{_id: 5}'), ('{_id: 6, up: 5}');
MERGE INTO k USING (VALUES (2), (5)) v (id) ON k._id = v.id WHEN MATCHED AND v.id = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET doc = bson_set(doc, '_id', 2);
SELECT is(kids(), '1:[] 2:[3, 6] 3<2:[] 6<2:[]', 'a node gets the id of one that is deleted, and its children');
SELECT is_empty('SELECT * FROM pattern_check()', 'and all is true');
TRUNCATE k;
INSERT INTO k (doc) VALUES ('{_id: 1}'), ('{_id: 2, up: 1}'), ('{_id: 3, up: 2}');
MERGE INTO k USING (VALUES (2), (99)) v (id) ON k._id = v.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (doc) VALUES (bson_build('_id', 2));
SELECT is(kids(), '1:[] 2:[3] 3<2:[]', 'a new node gets the id of one that is deleted, and its children');
SELECT is_empty('SELECT * FROM pattern_check()', 'and all is true');
DROP FUNCTION kids; DROP TABLE k;

-- a random run
SELECT setseed(0.25) \g /dev/null
SELECT pattern_disable('p'), pattern_alter('c', 'up', '{on_delete: "reparent", children: "kids"}') \g /dev/null
CALL pattern_build('c');
DO $$
BEGIN
  FOR i IN 1 .. 400 LOOP
    BEGIN
      CASE floor(random() * 5)
        WHEN 0 THEN DELETE FROM c WHERE _id IN ((random() * 60)::int, (random() * 60)::int, (random() * 60)::int);
        WHEN 1 THEN UPDATE c SET doc = bson_set(doc, 'up', (random() * 60)::int) WHERE _id = (random() * 60)::int;
        WHEN 2 THEN UPDATE c SET doc = bson_set(doc, '_id', (random() * 60)::int) WHERE _id = (random() * 60)::int;
        ELSE INSERT INTO c (doc) SELECT bson_build('_id', (random() * 60)::int, 'up', (SELECT _id FROM c ORDER BY random() LIMIT 1));
      END CASE;
    EXCEPTION WHEN integrity_constraint_violation THEN NULL;
    END;
  END LOOP;
END $$;
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true after 400 random writes');
SELECT is_empty($$WITH RECURSIVE w AS (SELECT _id::int AS id, '{}'::int[] AS a FROM c WHERE (doc ->> 'up') IS NULL
    UNION ALL SELECT c._id::int, w.a || w.id FROM w JOIN c ON (c.doc ->> 'up')::float8 = w.id)
  SELECT c._id FROM c FULL JOIN w ON w.id = c._id::int WHERE to_bson(w.a) IS DISTINCT FROM (c.doc -> 'a')$$, 'and equals a recursive query');
-- Truth in the children: those of a node that is deleted are listed where it was ---------------------------------------------

SELECT collection_create('heirs');
SELECT tree_enable('heirs', parent => 'p', children => 'c', ancestors => 'a', truth => 'children', on_delete => 'reparent') AS heirs_name \gset
INSERT INTO heirs (doc) SELECT bson_build('_id', i, 'c', c) FROM (VALUES (1, '{9,2,8}'::int[]), (2, '{3,4}'), (3, '{}'), (4, '{5,6}'), (5, '{}'), (6, '{7}'), (7, '{}'), (8, '{}'), (9, '{}')) v (i, c);
DELETE FROM heirs WHERE _id IN (2, 4);
SELECT is((SELECT string_agg(bson_project(doc, '{p: 1, c: 1}')::text, ' ' ORDER BY _id) FROM heirs WHERE doc -> 'c' <> bson_array()),
  '{"_id": 1, "c": [9, 3, 5, 6, 8]} {"_id": 6, "c": [7], "p": 1}', 'children of deleted nodes are listed in their place, also where these lay below each other');
SELECT is((SELECT count(*) FROM pattern_check('heirs')), 0::bigint, 'and all is true');
DELETE FROM heirs WHERE _id = 1;
SELECT is((SELECT count(*) FROM heirs WHERE (doc ->> 'p') IS NULL), 5::bigint, 'children of a deleted root are roots');
SELECT is((SELECT count(*) FROM pattern_check('heirs')), 0::bigint, 'which is true');
SET docpatterns.maintain = off;
INSERT INTO heirs (doc) VALUES ('{_id: 19, c: [20]}'), ('{_id: 20, c: [20, 21], p: 19}'), ('{_id: 21, c: [20, 22], p: 20}'), ('{_id: 22, c: [], p: 21}'), ('{_id: 23, c: [21]}');
RESET docpatterns.maintain;
DELETE FROM heirs WHERE _id IN (20, 21);
SELECT is((SELECT string_agg(bson_project(doc, '{c: 1}')::text, ' ' ORDER BY _id) FROM heirs WHERE _id > 10),
  '{"_id": 19, "c": [22]} {"_id": 22, "c": []} {"_id": 23, "c": [21]}', 'lists that name each other, which nothing has built, do no harm');
DROP TABLE heirs CASCADE;

-- Truth in the children, rows brought in line one by one ---------------------------------------------------------------------

CREATE TABLE listing (id int PRIMARY KEY, doc bson);
CREATE INDEX ON listing ((doc -> '_id'));
SELECT tree_enable('listing', parent => 'p', children => 'c', truth => 'children') AS listing_name \gset
SELECT throws_ok($$INSERT INTO listing VALUES (1, '{_id: "a", c: ["none"]}')$$, '23503', NULL, 'a child that there is not');
SELECT throws_ok($$INSERT INTO listing VALUES (1, '{_id: "a", c: ["b", "b"]}'), (2, '{_id: "b"}')$$, '23514', NULL, 'a child listed twice');
INSERT INTO listing VALUES (1, '{_id: "a", c: ["b"]}'), (2, '{_id: "b"}');
SELECT throws_ok($$UPDATE listing SET doc = bson_set(doc, 'c', '["b", "b"]'::bson_value) WHERE id = 1$$, '23514', NULL, 'a child that is listed and listed once more');
SELECT throws_ok($$INSERT INTO listing VALUES (3, '{_id: "d", c: ["b"]}')$$, '23514', NULL, 'a child of another');
SET docpatterns.maintain = off;
INSERT INTO listing VALUES (10, '{_id: "r", c: ["s", "t"]}'), (11, '{_id: "s", c: ["u"]}'), (12, '{_id: "t"}'), (13, '{_id: "u"}');
RESET docpatterns.maintain;
SELECT ok(docpatterns._pattern_repair_row('listing', :'listing_name', ROW(k)), 'written: ' || k) FROM unnest('{10,11,12,13}'::int[]) k;
SELECT is_empty($$SELECT * FROM pattern_check('listing')$$, 'all is true');
SELECT is(doc -> 'p', p::bson_value, 'the parent of ' || id) FROM listing JOIN (VALUES (11, 'r'), (12, 'r'), (13, 's')) AS v (k, p) ON id = k ORDER BY id;
CREATE TABLE leaves (id int PRIMARY KEY, doc bson);
SELECT tree_attach('leaves', 'listing', 'n', path => 'w') AS leaves_name \gset
SET docpatterns.maintain = off;
INSERT INTO leaves VALUES (1, '{n: "u"}'), (2, '{n: "nowhere"}'), (3, '{}'), (4, '{w: ".x."}');
RESET docpatterns.maintain;
SELECT is((SELECT array_agg(docpatterns._pattern_repair_row('leaves', :'leaves_name', ROW(k)) ORDER BY k) FROM unnest('{1,3,4}'::int[]) k), '{t,f,t}', 'what hangs on nodes');
SELECT results_eq('SELECT doc::text FROM leaves WHERE id <> 2 ORDER BY id', $$VALUES ('{"n": "u", "w": ".r.s.u"}'), ('{}'), ('{}')$$, 'has their path, or none');
SELECT throws_ok(format('SELECT docpatterns._pattern_repair_row(%L, %L, ROW(2))', 'leaves', :'leaves_name'), '23503', NULL, 'a node that there is not');

-- ids that cannot stand in a path
CREATE TABLE ways (id int PRIMARY KEY, doc bson);
CREATE INDEX ON ways ((doc -> '_id'));
SELECT tree_enable('ways', parent => 'p', path => 'w', truth => 'path') \g /dev/null
SELECT throws_ok(format('INSERT INTO ways VALUES (1, %L)', d), '23514', NULL, d) FROM unnest(ARRAY['{_id: 5, w: ".5."}', '{_id: "a.b", w: ".a.b."}', '{_id: ""}']) d;
CREATE TABLE ways_made (id int PRIMARY KEY, doc bson);
CREATE INDEX ON ways_made ((doc -> '_id'));
SELECT tree_enable('ways_made', parent => 'p', path => 'w') \g /dev/null
SELECT throws_ok(format('INSERT INTO ways_made VALUES (1, %L)', d), '23514', NULL, 'made: ' || d) FROM unnest(ARRAY['{_id: 2.5}', '{_id: "a.b"}', '{_id: ""}']) d;

-- without the unique index an ID can be twice, also below itself: a check and a repair come to an end
CREATE TABLE loops (id int PRIMARY KEY, doc bson);
SELECT tree_enable('loops', parent => 'p', ancestors => 'a') AS loops_name \gset
SELECT format('DROP INDEX %s', indexrelid::regclass) FROM pg_index WHERE indrelid = 'loops'::regclass AND indisunique AND NOT indisprimary \gexec
SET docpatterns.maintain = off;
INSERT INTO loops VALUES (1, '{_id: "r", a: []}'), (2, '{_id: "x", p: "r", a: ["r"]}'), (3, '{_id: "y", p: "x", a: ["r", "x"]}'), (4, '{_id: "x", p: "y", a: ["r", "x", "y"]}');
RESET docpatterns.maintain;
SET statement_timeout = '60s';
SELECT set_eq($$SELECT key::text, what, expected FROM pattern_check('loops') WHERE what = 'node id'$$, $$VALUES ('2', 'node id', 'unique'), ('4', 'node id', 'unique')$$, 'IDs that are not unique, and are in a cycle below a root');
SELECT throws_ok($$SELECT pattern_repair('loops')$$, '23505', NULL, 'whose index cannot be made');
RESET statement_timeout;

SELECT finish();
DROP SCHEMA "W eird" CASCADE; DROP TABLE c, p;
