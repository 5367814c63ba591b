-- The bounds of the tree pattern: loads in any order, deep trees, long ids, ids that hold separators, triggers of users, renamed
-- and dropped tables, what is refused.
SET client_min_messages = warning;
SELECT plan(44);
SELECT collection_create('n') \g /dev/null

-- thousands of rows in one statement, children first: each row is written twice, and all indexes know the second version
SELECT tree_enable('n', parent => 'up', ancestors => 'anc', depth => 'depth') \g /dev/null
CREATE UNIQUE INDEX n_code ON n ((doc -> 'code'));
CREATE INDEX n_even ON n ((doc ->> 'name')) WHERE (doc ->> 'code')::int % 2 = 0;
CREATE INDEX n_hash ON n USING hash ((doc ->> 'name'));
INSERT INTO n (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 1 THEN i / 2 END, 'code', i, 'name', 'n' || i) FROM generate_series(3000, 1, -1) i;
SELECT is_empty('SELECT * FROM pattern_check()', 'children before their parents');
SET enable_seqscan = off; SET enable_bitmapscan = off;
SELECT is(count(*), 3000::bigint, 'by the primary key') FROM n WHERE _id > 0;
SELECT is(count(*), 2::bigint, 'by the parent') FROM n WHERE doc -> 'up' = 700::int;
SELECT is(count(*), 3000::bigint, 'by an index of the user''s own') FROM n WHERE doc -> 'code' > 0;
SELECT is(count(*), 1::bigint, 'by a partial one') FROM n WHERE doc ->> 'name' = 'n2998' AND (doc ->> 'code')::int % 2 = 0;
SELECT is(count(*), 1::bigint, 'by one that is no btree') FROM n WHERE doc ->> 'name' = 'n2999';
SELECT is(count(*), 2999::bigint, 'by the paths') FROM tree_descendants('n', 1);
RESET enable_seqscan; RESET enable_bitmapscan;
SELECT throws_ok($$INSERT INTO n (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 5001 THEN i - 1 ELSE 1 END, 'code', i % 5100) FROM generate_series(5200, 5001, -1) i$$, '23505', NULL, 'ids of the user''s own stay unique');
SELECT is(count(*), 0::bigint, 'and nothing of it is there') FROM n WHERE _id > 5000;
SELECT throws_ok($$INSERT INTO n (doc) SELECT bson_build('_id', i, 'up', i + 1, 'code', i) FROM generate_series(5001, 5200) i$$, '23503', NULL, 'a parent that is missing above many rows');
SELECT throws_ok($$INSERT INTO n (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i = 5200 THEN 5001 ELSE i + 1 END, 'code', i) FROM generate_series(5001, 5200) i$$, '23514', NULL, 'a cycle of many rows');

-- triggers of users see rows as they are
CREATE FUNCTION n_before() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.doc ->> 'name' = 'nobody' THEN RETURN NULL; END IF;
  NEW.doc := bson_set(bson_set(bson_set(NEW.doc, 'anc', '[]'::bson_value), 'depth', -1), 'seen', coalesce((NEW.doc ->> 'seen')::int, 0) + 1);
  RETURN NEW;
END $$;
CREATE TRIGGER a_first BEFORE INSERT OR UPDATE ON n FOR EACH ROW EXECUTE FUNCTION n_before();
INSERT INTO n (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 6001 THEN i - 1 ELSE 9 END, 'code', i) FROM generate_series(6100, 6001, -1) i;
SELECT is_empty($$SELECT c.* FROM pattern_check('n') c$$, 'what triggers write over the forms does not stay');
UPDATE n SET doc = bson_set(doc, 'up', 10) WHERE _id = 6001;
SELECT is_empty($$SELECT c.* FROM pattern_check('n') c$$, 'nor when a subtree moves');
INSERT INTO n (doc) VALUES ('{_id: 7001, up: 7002, code: 7001}'), ('{_id: 7002, up: 10, code: 7002}'), ('{_id: 7003, up: 10, name: "nobody", code: 7003}');
SELECT is(array_agg(_id::int ORDER BY _id), '{7001,7002}', 'a row that a trigger suppresses is none') FROM n WHERE _id > 7000;
SELECT throws_ok($$INSERT INTO n (doc) VALUES ('{_id: 7004, up: 7005, code: 7004}'), ('{_id: 7005, up: 10, name: "nobody", code: 7005}')$$, '23503', NULL, 'and nobody hangs below it');
CREATE FUNCTION n_keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF OLD.doc ->> ''name'' = ''n40'' THEN RETURN NULL; END IF; RETURN NEW; END';
CREATE TRIGGER b_keep BEFORE UPDATE ON n FOR EACH ROW EXECUTE FUNCTION n_keep();
SELECT throws_ok('UPDATE n SET doc = bson_set(doc, ''up'', 3) WHERE _id = 10', '27000', NULL, 'a trigger that keeps a row of a subtree from moving');
SELECT is(doc ->> 'up', '5', 'nothing has moved') FROM n WHERE _id = 10;
DROP TABLE n; DROP FUNCTION n_before, n_keep;

-- deep, with the parent only
SELECT collection_create('deep') \g /dev/null
SELECT tree_enable('deep', parent => 'up', depth => 'depth') \g /dev/null
INSERT INTO deep (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 1 THEN i - 1 END) FROM generate_series(1, 5001) i ORDER BY i % 7, i;
SELECT is((doc ->> 'depth')::int, 5000, '5,000 levels in one statement, in any order') FROM deep WHERE _id = 5001;
SELECT is(count(*), 5000::bigint, 'ancestors of the deepest') FROM tree_ancestors('deep', 5001);
SELECT is(tree_subtree_count('deep', 1), 5001::bigint, 'the root and all below it');
INSERT INTO deep (doc) VALUES ('{_id: 0}');
UPDATE deep SET doc = bson_set(doc, 'up', 0) WHERE _id = 1;
SELECT is((doc ->> 'depth')::int, 5001, 'a tree that deep moves') FROM deep WHERE _id = 5001;
SELECT throws_ok('UPDATE deep SET doc = bson_set(doc, ''up'', 5001) WHERE _id = 1', '23514', NULL, 'a cycle of 5,000 nodes');
SELECT is_empty($$WITH d AS (SELECT _id::int AS id, (doc ->> 'depth')::int AS depth FROM deep) SELECT FROM d WHERE depth <> id$$, 'all is true');
DROP TABLE deep;
SELECT collection_create('deep') \g /dev/null
SELECT tree_enable('deep', parent => 'up', ancestors => 'anc') \g /dev/null
SELECT throws_like($$INSERT INTO deep (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 1 THEN i - 1 END) FROM generate_series(1, 5001) i$$, '%too long for an index%', 'with ancestors, too deep is an error that says so');
SELECT is(count(*), 0::bigint, 'and nothing stays') FROM deep;

-- ids
INSERT INTO deep (doc) VALUES (bson_build('_id', 1, 'up', repeat('x', 2000))), (bson_build('_id', repeat('x', 2000)));
SELECT is(length(doc ->> 'anc.0'), 2000, 'an id of 2 kB above another') FROM deep WHERE _id = 1;
SELECT throws_ok($$INSERT INTO deep (doc) VALUES (bson_build('_id', repeat('y', 2000), 'up', repeat('x', 2000)))$$, '54000', NULL, 'two of them are too much for the index');
SELECT pattern_alter('deep', 'up', '{path: "path", separator: "/"}') \g /dev/null
CALL pattern_build('deep');
SELECT throws_ok($$INSERT INTO deep (doc) VALUES ('{_id: "a/b"}')$$, '23514', NULL, 'an id that holds the separator of the path');
SELECT throws_ok($$INSERT INTO deep (doc) VALUES ('{_id: ""}')$$, '23514', NULL, 'an empty one');
SELECT lives_ok($$INSERT INTO deep (doc) VALUES ('{_id: "a.b"}'), ('{_id: "c''\"d", up: "a.b"}')$$, 'other signs may be in it');
SELECT is(doc ->> 'path', '/a.b', 'and in the path') FROM deep WHERE _id = 'c''"d'::text;

-- renamed, in another schema, of another owner
CREATE SCHEMA elsewhere;
CREATE ROLE tree_owner;
GRANT USAGE, CREATE ON SCHEMA elsewhere TO tree_owner;
SELECT collection_create('hang') \g /dev/null
SELECT tree_attach('hang', tree => 'deep', parent => 'on', ancestors => 'anc') \g /dev/null
INSERT INTO hang (doc) VALUES ('{_id: 1, on: "a.b"}');
ALTER TABLE deep RENAME TO shallow;
ALTER TABLE shallow SET SCHEMA elsewhere;
ALTER TABLE elsewhere.shallow OWNER TO tree_owner;
SELECT throws_ok($$UPDATE elsewhere.shallow SET doc = bson_set(doc, 'up', 1) WHERE _id = 'a.b'::text$$, '55000', NULL, 'documents of another owner would not follow');
SELECT throws_ok($$INSERT INTO hang (doc) VALUES ('{_id: 2, on: "a.b"}')$$, '55000', NULL, 'nor hang on a tree of another owner');
ALTER TABLE hang OWNER TO tree_owner;
UPDATE elsewhere.shallow SET doc = bson_set(doc, 'up', 1) WHERE _id = 'a.b'::text;
SELECT is(bson_array_length(doc, 'anc'), 3, 'documents follow a tree that was renamed') FROM hang;
ALTER TABLE hang RENAME TO hung;
ALTER TABLE hung SET SCHEMA elsewhere;
UPDATE elsewhere.shallow SET doc = bson_unset(doc, 'up') WHERE _id = 'a.b'::text;
SELECT is(bson_array_length(doc, 'anc'), 1, 'and are found where they were renamed') FROM elsewhere.hung;
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');

-- dropped
SELECT throws_ok('DROP TABLE elsewhere.shallow', '2BP01', NULL, 'a tree that documents hang on is not dropped');
SELECT throws_ok('DROP TABLE elsewhere.hung', '2BP01', NULL, 'nor they alone');
DROP TABLE elsewhere.hung CASCADE;
SELECT lives_ok($$INSERT INTO elsewhere.shallow (doc) VALUES ('{_id: "left", up: 1}')$$, 'the tree lives on without them');
SELECT lives_ok('DROP TABLE elsewhere.shallow', 'and goes');
DROP SCHEMA elsewhere; DROP OWNED BY tree_owner; DROP ROLE tree_owner;

-- refused
CREATE TABLE parts (id int PRIMARY KEY, doc bson) PARTITION BY RANGE (id);
SELECT throws_ok($$SELECT tree_enable('parts', parent => 'up')$$, '0A000', NULL, 'nodes are not partitioned');
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (9);
SELECT throws_ok($$SELECT tree_enable('parts_1', parent => 'up')$$, '42809', NULL, 'nor are they in a partition');
CREATE VIEW seen AS SELECT * FROM parts;
SELECT throws_ok($$SELECT tree_enable('seen', parent => 'up')$$, '42809', NULL, 'nor a view');
DROP TABLE parts CASCADE;
SELECT is_empty('SELECT * FROM pattern_list()', 'nothing is left');
SELECT finish();
