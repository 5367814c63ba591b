-- Patterns and what else happens to their tables: partitions, owners, DROP.
BEGIN;
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(43);

CREATE FUNCTION triggers_of(rel regclass) RETURNS bigint LANGUAGE sql AS
  'SELECT count(*) FROM pg_trigger WHERE tgrelid = rel AND tgname LIKE ''zz_docpatterns_5%''';
CREATE FUNCTION violations(rel regclass) RETURNS text LANGUAGE sql AS
  'SELECT string_agg(v::text, E''\n'') FROM pattern_check(rel) v';

-- Partitions --------------------------------------------------------------------------------------------------------------

CREATE TABLE m (id int PRIMARY KEY, doc bson) PARTITION BY RANGE (id);
CREATE TABLE m1 PARTITION OF m FOR VALUES FROM (0) TO (100);
CREATE TABLE m2 PARTITION OF m FOR VALUES FROM (100) TO (200);
SELECT outlier_enable('m', 'x', 2, chunk => 2, count_field => 'n');
INSERT INTO m SELECT i, '{x: [1, 2, 3, 4, 5]}' FROM generate_series(1, 5) i;

UPDATE m SET id = id + 100 WHERE id < 4;
SELECT is(string_agg(id || ' ' || doc, '; ' ORDER BY id), '4 {"x": [1, 2, 3, 4, 5], "n": 5}; 5 {"x": [1, 2, 3, 4, 5], "n": 5}; '
  '101 {"x": [1, 2, 3, 4, 5], "n": 5}; 102 {"x": [1, 2, 3, 4, 5], "n": 5}; 103 {"x": [1, 2, 3, 4, 5], "n": 5}',
  'a row that moves to another partition takes its extras along') FROM m_whole;
SELECT is(violations('m'), NULL, 'and they are in order there');

UPDATE m SET id = id - 100, doc = bson_array_append(doc, 'x', 9) WHERE id = 101;
SELECT is((SELECT outlier_count('m', 1)), 6::bigint, 'also when its array changes at the same time');
UPDATE m_whole SET id = id - 100, doc = bson_array_append(doc, 'x', 9) WHERE id = 102;
SELECT is((SELECT doc FROM m_whole WHERE id = 2), '{"x": [1, 2, 3, 4, 5, 9], "n": 6}', 'the whole document can move too');
UPDATE m_whole SET id = id - 100 WHERE id = 103;
SELECT is((SELECT doc FROM m_whole WHERE id = 3), '{"x": [1, 2, 3, 4, 5], "n": 5}', 'with its array as it was');
SELECT is(violations('m'), NULL, 'all in order');
SAVEPOINT a;
UPDATE m SET id = 199 WHERE id = 5;
ROLLBACK TO a;
SELECT is((SELECT outlier_count('m', 5)), 5::bigint, 'a move that is rolled back has not happened');
DELETE FROM m WHERE id = 5;
SELECT is((SELECT count(*) FROM m_x_extras WHERE key = 5), 0::bigint, 'a deleted row takes its extras along');

CREATE TABLE m3 PARTITION OF m FOR VALUES FROM (200) TO (300);
SELECT is(triggers_of('m3'), triggers_of('m1'), 'a partition that is created later has the same triggers');
CREATE TABLE m4 (id int PRIMARY KEY, doc bson);
ALTER TABLE m ATTACH PARTITION m4 FOR VALUES FROM (300) TO (400);
SELECT is(triggers_of('m4'), triggers_of('m1'), 'and one that is attached');
INSERT INTO m SELECT i, '{x: [1, 2, 3, 4, 5]}' FROM generate_series(201, 203) i;
UPDATE m3 SET id = 210 WHERE id = 201;
SELECT is((SELECT outlier_count('m', 210)), 5::bigint, 'a statement that names the partition is finished by them');
TRUNCATE m3;
SELECT is((SELECT count(*) FROM m_x_extras WHERE key >= 200), 0::bigint, 'TRUNCATE of a partition empties its store, and no other');
SELECT is(violations('m'), NULL, 'all in order');
ALTER TABLE m DETACH PARTITION m4;
SELECT is(triggers_of('m4'), 0::bigint, 'a detached partition has none of them left');
SELECT lives_ok($$INSERT INTO m4 VALUES (1, '{x: [1, 2, 3, 4]}'); UPDATE m4 SET doc = '{}'$$, 'and takes writes');

-- Dropping ----------------------------------------------------------------------------------------------------------------

SELECT throws_ok('DROP TABLE m', '2BP01', NULL, 'DROP TABLE is refused while there are extras');
SELECT throws_ok('DROP TABLE m_x_extras', '2BP01', NULL, 'and so is that of the extras');
DROP TABLE m_x_extras CASCADE;
SELECT is(triggers_of('m') + triggers_of('m1') + triggers_of('m3'), 0::bigint, 'with CASCADE the pattern is gone from the table');
SELECT lives_ok($$INSERT INTO m VALUES (50, '{x: [1, 2, 3, 4]}'); UPDATE m SET doc = '{}' WHERE id = 50$$, 'which takes writes');
DROP TABLE m CASCADE;
SELECT is((SELECT count(*) FROM pg_class WHERE relname ~ '^m(_|[123]|$)' AND relnamespace = 'public'::regnamespace), 0::bigint,
  'DROP TABLE .. CASCADE leaves nothing behind');

SELECT collection_create('people'), collection_create('purchases');
SELECT outlier_enable('people', 'o', 1, extras => 'purchases', on_field => 'u');
INSERT INTO people (doc) VALUES ('{_id: 1, o: [{_id: 1}, {_id: 2}]}');
SELECT throws_ok('DROP TABLE purchases', '2BP01', NULL, 'a collection that holds extras is not dropped by accident');
SAVEPOINT b;
DROP TABLE purchases CASCADE;
SELECT is(triggers_of('people'), 0::bigint, 'with CASCADE the pattern is gone');
SELECT lives_ok($$INSERT INTO people (doc) VALUES ('{_id: 2, o: [{_id: 1}, {_id: 2}]}')$$, 'and the table takes writes');
ROLLBACK TO b;
DROP TABLE people CASCADE;
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgrelid = 'purchases'::regclass AND tgname LIKE 'zz_docpatterns_7%'), 0::bigint,
  'without the table its collection is a collection again');
SELECT lives_ok($$INSERT INTO purchases (doc) VALUES ('{_id: 9, u: 9}')$$, 'that takes writes');

-- Names and schemas -------------------------------------------------------------------------------------------------------

CREATE SCHEMA "o'S.chema";
CREATE TABLE "o'S.chema"."T ""t" ("K k" text, "k2" int, "D ""d" bson, PRIMARY KEY ("K k", k2));
SELECT outlier_enable('"o''S.chema"."T ""t"', 'a."b c"', 1, name => 'it''s "n"', count_field => 'n');
INSERT INTO "o'S.chema"."T ""t" VALUES ('x''y', 1, '{a: {"b c": [1, 2, 3]}}');
ALTER SCHEMA "o'S.chema" RENAME TO "S 2";
ALTER TABLE "S 2"."T ""t" RENAME TO "U u";
ALTER TABLE "S 2"."U u" RENAME COLUMN "D ""d" TO "E";
SELECT is(outlier_push('"S 2"."U u"', ROW('x''y', 1), 4), 1::bigint, 'a push after everything has got another name');
SELECT is((SELECT "D ""d" FROM "S 2"."T ""t_whole"), '{"a": {"b c": [1, 2, 3, 4]}, "n": 4}', 'has arrived');
SELECT is(violations('"S 2"."U u"'), NULL, 'in order');

-- Owners ------------------------------------------------------------------------------------------------------------------

CREATE ROLE dp_one;
CREATE ROLE dp_two;
GRANT CREATE ON SCHEMA public TO dp_one, dp_two;
SELECT collection_create('books');
SELECT outlier_enable('books', 'x', 2);
INSERT INTO books (doc) VALUES ('{_id: 1, x: [1, 2, 3, 4]}');
ALTER TABLE books OWNER TO dp_one;
SELECT is((SELECT string_agg(relowner::regrole::text, ' ') FROM pg_class WHERE relname IN ('books', 'books_x_extras')), 'dp_one dp_one',
  'the extras follow their table to a new owner');
SELECT is(outlier_push('books', 1, 5), 1::bigint, 'and take pushes there');
SELECT is((SELECT doc FROM books_whole), '{"_id": 1, "x": [1, 2, 3, 4, 5]}', 'which arrive');

CREATE INDEX books_n ON books ((doc ->> 'n'));
CREATE VIEW v AS SELECT 1 AS one;
SELECT lives_ok('ALTER TABLE books_n OWNER TO dp_two; ALTER TABLE v OWNER TO dp_two', 'indexes and views go their own way');

SELECT collection_create('readers'), collection_create('loans');
SELECT outlier_enable('readers', 'o', 1, keep => 0, extras => 'loans', on_field => 'u');
INSERT INTO readers (doc) VALUES ('{_id: 1, o: [{_id: 1}, {_id: 2}]}');
ALTER TABLE readers OWNER TO dp_one;
SELECT throws_ok($$INSERT INTO loans (doc) VALUES ('{_id: 3, u: 1}')$$, '55000', NULL, 'a collection of another owner cannot be written');
ALTER TABLE loans OWNER TO dp_one;
INSERT INTO loans (doc) VALUES ('{_id: 3, u: 1}');
SELECT is(outlier_count('readers', 1), 3::bigint, 'and does when both have one owner again');
SELECT is(violations('readers'), NULL, 'in order');

-- a partition that was written to before, whose own owner stays the same
CREATE TABLE parts (id int PRIMARY KEY, doc bson) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
SELECT outlier_enable('parts', 'x', 2);
ALTER TABLE parts OWNER TO dp_one;
INSERT INTO parts VALUES (1, '{x: [1, 2, 3]}');
ALTER TABLE parts OWNER TO dp_two;
SELECT lives_ok($$INSERT INTO parts VALUES (2, '{x: [1, 2, 3]}')$$, 'writes to a partition are done in the name of the new owner of its table');
SELECT is(violations('parts'), NULL, 'all in order');

-- A session's limit for documents does not hide a declaration that is longer
CREATE TABLE ruled (id int PRIMARY KEY, doc bson);
SELECT polymorphic_enable('ruled', 'kind', common => bson_build('required', ARRAY['title'], 'description', repeat('long ', 1000)));
SET LOCAL docpatterns.max_document_size = '1kB';
SELECT is((SELECT name FROM pattern_list('ruled')), 'kind', 'it is listed');
SELECT throws_ok($$INSERT INTO ruled VALUES (1, '{kind: "a"}')$$, '23514', NULL, 'and heard');
RESET docpatterns.max_document_size;

-- A name is that of one declaration, whatever the patterns are
SELECT throws_ok($$SELECT versioning_enable('ruled', name => 'kind')$$, '42710', 'table "ruled" already has a pattern named "kind"', 'a name of another pattern is taken');
SELECT throws_ok($$SELECT computed_enable('ruled', 'ruled', 'r', '{n: {$sum: 1}}', name => 'kind')$$, '42710', NULL, 'also for a field of that name');

-- Temporary tables
CREATE TEMPORARY TABLE passing (_id int PRIMARY KEY, doc bson);
CREATE TEMPORARY TABLE passed (_id int PRIMARY KEY, doc bson);
SELECT computed_enable('passing', 'passed', 'of', '{n: {$sum: 1}}');
INSERT INTO passing VALUES (1, '{}');
INSERT INTO passed SELECT i, '{of: 1}' FROM generate_series(1, 3) i;
SELECT is((SELECT doc ->> 'n' FROM passing), '3', 'temporary tables derive from each other, with indexes of their own');

-- Patterns for which there is nothing to build
SELECT change_feed_enable('ruled', 'feed');
SELECT lives_ok($$CALL pattern_build('ruled', 'feed', NULL)$$, 'a change feed has nothing to build');

SELECT * FROM finish();
ROLLBACK;
