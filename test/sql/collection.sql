-- Collections: ordinary tables of documents with an _id.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\pset null NULL

SELECT collection_create('books');
SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE attrelid = 'books'::regclass AND attnum > 0 ORDER BY attnum;
SELECT contype, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'books'::regclass AND contype IN ('p', 'c') ORDER BY 1;
SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = 'books'::regclass;

-- The column _id follows the document.
INSERT INTO books (doc) VALUES ('{_id: 1, title: "A quiet book"}'), ('{title: "Late _id", _id: "two"}');
SELECT * FROM books ORDER BY _id;
SELECT doc ->> 'title' AS title FROM books WHERE _id = 1;

-- A document without an _id gets a new ObjectId in front, as an ORM expects it back.
INSERT INTO books (doc) VALUES ('{title: "Anonymous"}') RETURNING bson_typeof(_id), _id = doc -> '_id' AS same, ARRAY(SELECT bson_keys(doc)) AS keys;
-- One that was written into the column goes in front of the document.
INSERT INTO books (_id, doc) VALUES (4, '{title: "Numbered"}') RETURNING *;
-- The two may be written both, and must then agree.
INSERT INTO books (_id, doc) VALUES (5, '{_id: 5.0, title: "Both"}') RETURNING *;
INSERT INTO books (_id, doc) VALUES (6, '{_id: 7}');
INSERT INTO books (doc) VALUES ('{_id: 1}');
INSERT INTO books (doc) VALUES (NULL);
-- MongoDB refuses these, and so do we; null is an _id like others.
INSERT INTO books (doc) VALUES ('{_id: [1]}');
INSERT INTO books (doc) VALUES ('{_id: /a/}');
INSERT INTO books (doc) VALUES ('{_id: undefined}');
INSERT INTO books (_id, doc) VALUES ('[1]', '{}');
INSERT INTO books (doc) VALUES ('{_id: null}') RETURNING *;
DELETE FROM books WHERE _id = 'null' RETURNING *;

-- UPDATE: a replacement without an _id keeps it, another _id moves the row.
UPDATE books SET doc = '{title: "Replaced"}' WHERE _id = 1 RETURNING *;
UPDATE books SET doc = bson_set(doc, '_id', 10) WHERE _id = 1 RETURNING *;
UPDATE books SET _id = 11, doc = '{title: "Moved by the column"}' WHERE _id = 10 RETURNING *;
UPDATE books SET _id = 12 WHERE _id = 11;
UPDATE books SET doc = '{_id: 5}' WHERE _id = 11;
UPDATE books SET doc = doc WHERE _id = 11 RETURNING *;

-- ON CONFLICT in both forms.
INSERT INTO books (doc) VALUES ('{_id: 11, title: "Again"}') ON CONFLICT DO NOTHING RETURNING *;
INSERT INTO books (doc) VALUES ('{_id: 11, title: "Again"}') ON CONFLICT (_id) DO UPDATE SET doc = books.doc || EXCLUDED.doc RETURNING *;
INSERT INTO books (doc) VALUES ('{_id: 11, n: 2}') ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc RETURNING *;
MERGE INTO books USING (VALUES (11, 'merged'), (99, 'inserted')) AS s (id, title) ON books._id = s.id
  WHEN MATCHED THEN UPDATE SET doc = bson_build('title', s.title)
  WHEN NOT MATCHED THEN INSERT (doc) VALUES (bson_build('_id', s.id, 'title', s.title));
SELECT * FROM books WHERE _id IN (11, 99) ORDER BY _id;

-- What mongoexport writes comes in with COPY, line by line.
SELECT collection_create('people');
COPY people (doc) FROM STDIN;
{"_id":{"$oid":"507f191e810c19729de860ea"},"name":"Ada","born":{"$date":"1815-12-10T00:00:00Z"},"n":{"$numberLong":"5"}}
{"_id":"grace","name":"Grace","tags":["navy","cobol"]}
{"_id":7,"name":"Edsger \\"EWD\\" D."}
\.
SELECT _id, doc ->> 'name' AS name FROM people ORDER BY doc ->> 'name';
COPY people TO STDOUT;
CREATE TEMP TABLE copied (_id bson_value, doc bson);
INSERT INTO copied SELECT * FROM people;
TRUNCATE people;
INSERT INTO people SELECT * FROM copied;
SELECT count(*) FROM people JOIN copied USING (_id) WHERE people.doc = copied.doc;

-- The columns may be renamed, and others added.
ALTER TABLE people RENAME COLUMN doc TO body;
ALTER TABLE people RENAME COLUMN _id TO id;
ALTER TABLE people ADD COLUMN more bson, ADD COLUMN seen int;
INSERT INTO people (body, more, seen) VALUES ('{_id: 8}', '{_id: 9}', 1) RETURNING *;
UPDATE people SET seen = 2 WHERE id = 8 RETURNING *;

-- A name is written as in SQL. It is created where an unqualified name is created.
CREATE SCHEMA "W eird";
SELECT collection_create('"W eird"."T t''x; DROP TABLE books"');
INSERT INTO "W eird"."T t'x; DROP TABLE books" (doc) VALUES ('{a: 1}');
SELECT count(*) FROM "W eird"."T t'x; DROP TABLE books";
SET search_path = "W eird", public;
SELECT collection_create('Here');
SELECT relnamespace::regnamespace FROM pg_class WHERE relname = 'here';
RESET search_path;
SELECT collection_create('books');
SELECT collection_create('books', if_not_exists => true);
CREATE TABLE no_collection (a int);
SELECT collection_create('no_collection', if_not_exists => true);
SELECT collection_create('a.b.c');
SELECT collection_create('no such schema.x');
\set VERBOSITY sqlstate
SELECT collection_create('no_such_schema.x');
\set VERBOSITY default

-- The trigger tells what it needs.
CREATE TRIGGER t BEFORE INSERT ON no_collection FOR EACH ROW EXECUTE FUNCTION docpatterns.collection_set_id();
INSERT INTO no_collection VALUES (1);

-- Before the extension is dropped the documents become jsonb or bytea, and they can come back.
SELECT bson_column_convert('people', 'jsonb');
SELECT * FROM people ORDER BY body ->> 'name';
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'people'::regclass;
ALTER TABLE people DROP COLUMN more;
ALTER TABLE people RENAME COLUMN id TO _id;
SELECT bson_column_convert('people', 'bson');
INSERT INTO people (body) VALUES ('{_id: 20}') RETURNING *;
SELECT contype, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'people'::regclass AND contype IN ('p', 'c') ORDER BY 1;
SELECT bson_column_convert('people', 'bytea');
SELECT * FROM people WHERE body ='\x0e000000105f6964001400000000';
SELECT bson_column_convert('people', 'bson');
SELECT * FROM people WHERE _id = 20;
-- Documents of a table that is no collection.
CREATE TABLE orders (id int PRIMARY KEY, doc bson DEFAULT '{}', old bson, by objectid);
INSERT INTO orders VALUES (1, '{a: 1}', NULL, '507f191e810c19729de860ea');
SELECT bson_column_convert('orders', 'jsonb', 'old');
SELECT bson_column_convert('orders', 'bytea');
SELECT * FROM orders;
SELECT bson_column_convert('orders', 'bson');
SELECT bson_column_convert('orders', 'bson', 'doc');
SELECT * FROM orders;
SELECT bson_column_convert('no_collection', 'jsonb');
SELECT bson_column_convert('orders', 'text');
SELECT bson_column_convert('orders', 'jsonb', 'nope');
SELECT bson_column_convert('books_pkey', 'jsonb');
-- A pattern has to go first.
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER zz_docpatterns_50_outlier_x AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION nothing();
SELECT bson_column_convert('orders', 'jsonb');

-- Others may create collections of their own and convert no one else's.
CREATE ROLE collection_reader;
GRANT SELECT, INSERT ON books TO collection_reader;
SET ROLE collection_reader;
INSERT INTO books (doc) VALUES ('{_id: 77}') RETURNING *;
SELECT bson_column_convert('books', 'jsonb');
\set VERBOSITY sqlstate
SELECT collection_create('"W eird".mine');
\set VERBOSITY default
RESET ROLE;

DROP SCHEMA "W eird" CASCADE;
DROP TABLE books, people, orders, no_collection, copied;
DROP FUNCTION nothing();
DROP ROLE collection_reader;
