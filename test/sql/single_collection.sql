-- The single collection pattern: books, users and reviews of one catalogue live in one table, and one indexed query brings a book
-- with all that belongs to it.
SET client_min_messages = warning;
SET timezone = 'UTC';
SET search_path = public;

-- Each document says what it is, and to what it is related; a book points to itself.
SELECT collection_create('books_catalog');
SELECT single_collection_enable('books_catalog', type_field => 'docType', related_field => 'relatedTo',
                                id_fields => '{"book": "bookId", "user": "_id"}', self_related => '{book}', types => '{book,user,review}');
INSERT INTO books_catalog (doc) VALUES ('{_id: "a", bookId: 202356, docType: "book", title: "Atlas"}'), ('{_id: "b", bookId: 202357, docType: "book", title: "Boats"}');
INSERT INTO books_catalog (doc) VALUES
  ('{_id: "ada", docType: "user", name: "Ada", relatedTo: [202356, 202357]}'),
  ('{_id: "r1", docType: "review", rating: 5, relatedTo: [202356, "ada"]}'),
  ('{_id: "r2", docType: "review", rating: 2, relatedTo: [202357, "ada"]}');
SELECT doc FROM single_collection_get('books_catalog', 202356) AS doc ORDER BY doc ->> '_id';
SELECT doc ->> 'rating' AS rating FROM single_collection_get('books_catalog', 202356, 'review') AS doc;
SELECT doc ->> '_id' AS id FROM books_catalog WHERE doc @@ '{relatedTo: "ada"}' ORDER BY 1;

-- What the call runs is one scan of one index.
SELECT single_collection_query('books_catalog');
INSERT INTO books_catalog (doc) SELECT bson_build('_id', 'x' || i, 'docType', 'book', 'bookId', i, 'title', 'Book ' || i) FROM generate_series(1, 2000) i;
INSERT INTO books_catalog (doc) SELECT bson_build('_id', 'y' || i, 'docType', 'review', 'rating', i % 5, 'relatedTo', bson_array(1 + i % 2000)) FROM generate_series(1, 6000) i;
VACUUM ANALYZE books_catalog;
CREATE FUNCTION plan_of(statement text, VARIADIC arguments text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. cardinality(arguments) LOOP
    statement := replace(statement, '$' || i, arguments[i]);
  END LOOP;
  RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || statement;
END $$;
SELECT plan_of(single_collection_query('books_catalog'), $$'{"relatedTo": 17}'$$);
SELECT plan_of(single_collection_query('books_catalog', true), $$'{"relatedTo": 17, "docType": "review"}'$$);
SELECT count(*) FROM single_collection_get('books_catalog', 17);

-- There is a view for each type, and it takes writes.
SELECT count(*) FROM books_catalog_user;
INSERT INTO books_catalog_review (doc) VALUES ('{_id: "r3", docType: "review", rating: 4, relatedTo: [202356]}');
INSERT INTO books_catalog_review (doc) VALUES ('{_id: "u9", docType: "user", relatedTo: [202356]}');
\set VERBOSITY terse

-- Nothing dangles, whatever is written.
INSERT INTO books_catalog (doc) VALUES ('{docType: "review", relatedTo: [999999]}');
UPDATE books_catalog SET doc = bson_update(doc, '{$push: {relatedTo: 77777}}') WHERE _id = 'r1'::text;
DELETE FROM books_catalog WHERE _id = 'a'::text;
-- Together they may go, in one statement.
BEGIN;
DELETE FROM books_catalog WHERE doc @@ '{relatedTo: {$in: [202356, "ada"]}}' OR _id = 'ada'::text;
SELECT count(*) FROM single_collection_get('books_catalog', 202356);
ROLLBACK;

-- When a book gets another id, all that names it follows, the book itself included.
UPDATE books_catalog SET doc = bson_set(doc, 'bookId', 202399) WHERE _id = 'a'::text;
SELECT doc ->> '_id' AS id, doc -> 'relatedTo' AS related FROM single_collection_get('books_catalog', 202399) AS doc ORDER BY 1;
SELECT count(*) FROM single_collection_get('books_catalog', 202356);

-- Types and relations have to be well formed.
INSERT INTO books_catalog (doc) VALUES ('{title: "no type"}');
INSERT INTO books_catalog (doc) VALUES ('{docType: "magazine"}');
INSERT INTO books_catalog (doc) VALUES ('{docType: "book", title: "no id"}');
INSERT INTO books_catalog (doc) VALUES ('{docType: "user", relatedTo: [null]}');

-- What a delete does is declared: with "cascade", documents go that belong to nothing else.
SELECT pattern_alter('books_catalog', 'relatedTo', '{on_delete: "cascade"}');
DELETE FROM books_catalog WHERE _id = 'b'::text;
SELECT doc ->> '_id' AS id, doc -> 'relatedTo' AS related FROM books_catalog WHERE doc @@ '{_id: {$in: ["a", "b", "ada", "r1", "r2", "r3"]}}' ORDER BY 1;
-- With "unset" the relation goes.
SELECT pattern_alter('books_catalog', 'relatedTo', '{on_delete: "unset"}');
DELETE FROM books_catalog WHERE _id = 'ada'::text;
SELECT doc ->> '_id' AS id, doc -> 'relatedTo' AS related FROM books_catalog WHERE doc @@ '{_id: {$in: ["a", "r1", "r2", "r3"]}}' ORDER BY 1;
SELECT * FROM pattern_check('books_catalog');

-- Tables that were full before: pattern_build brings them in line.
SELECT pattern_disable('books_catalog');
UPDATE books_catalog SET doc = bson_unset(doc, 'relatedTo') WHERE doc @@ '{docType: "book"}' AND _id <> 'a'::text;
INSERT INTO books_catalog (doc) VALUES ('{_id: "lost", docType: "review", relatedTo: [4711]}');
SELECT single_collection_enable('books_catalog', id_fields => '{"book": "bookId"}', self_related => '{book}', on_delete => 'cascade', views => false);
SELECT key, what, expected, found FROM pattern_check('books_catalog') ORDER BY key LIMIT 3;
CALL pattern_build('books_catalog');
SELECT key, what, expected, found FROM pattern_check('books_catalog') ORDER BY key LIMIT 3;
SELECT pattern_repair('books_catalog');
SELECT count(*) FROM pattern_check('books_catalog');
DROP TABLE books_catalog CASCADE;

-- The other variant has one key for all: "202356/345" is a review of the book "202356".
SELECT collection_create('books_catalog');
SELECT single_collection_enable('books_catalog', key_field => 'sc_id', separator => '/', on_delete => 'cascade');
INSERT INTO books_catalog (doc) VALUES ('{_id: 1, sc_id: "202356", title: "Atlas"}'), ('{_id: 2, sc_id: "2023567", title: "decoy"}'), ('{_id: 3, sc_id: "202356-7", title: "decoy"}'),
  ('{_id: 4, sc_id: "202356/345", rating: 5}'), ('{_id: 5, sc_id: "202356/345/1", comment: "Yes!"}'), ('{_id: 6, sc_id: "202356/12", rating: 1}'), ('{_id: 7, sc_id: "2023567/345", rating: 3}');
-- The call is exact where a regular expression is not, and gives them in order.
SELECT doc ->> 'sc_id' AS key FROM single_collection_get('books_catalog', '202356') AS doc;
SELECT doc ->> 'sc_id' AS key FROM single_collection_get('books_catalog', '202356/345') AS doc;
SELECT count(*) FROM books_catalog WHERE doc @@ '{sc_id: {$regex: "^202356"}}';
INSERT INTO books_catalog (doc) SELECT bson_build('_id', 100 + i, 'sc_id', 'b' || i) FROM generate_series(1, 2000) i;
VACUUM ANALYZE books_catalog;
SET enable_bitmapscan = off;
SELECT plan_of(single_collection_query('books_catalog'), $$'"202356"'::bson_value$$, $$E'"202356\\u0001"'::bson_value$$);
RESET enable_bitmapscan;

-- Children need their parent, and keys have no empty parts.
INSERT INTO books_catalog (doc) VALUES ('{sc_id: "999/1"}');
INSERT INTO books_catalog (doc) VALUES ('{sc_id: "202356//1"}');
INSERT INTO books_catalog (doc) VALUES ('{sc_id: "202356/"}');
INSERT INTO books_catalog (doc) VALUES ('{sc_id: 5}');
INSERT INTO books_catalog (doc) VALUES ('{title: "no key"}');
INSERT INTO books_catalog (doc) VALUES ('{sc_id: "202356"}');
SELECT * FROM single_collection_get('books_catalog', 202356);

-- A key that changes takes along what is below it; a delete does, too.
UPDATE books_catalog SET doc = bson_set(doc, 'sc_id', '777'::text) WHERE _id = 1;
SELECT doc ->> 'sc_id' AS key FROM single_collection_get('books_catalog', '777') AS doc;
DELETE FROM books_catalog WHERE doc @@ '{sc_id: "777/345"}';
SELECT doc ->> 'sc_id' AS key FROM single_collection_get('books_catalog', '777') AS doc;
SELECT * FROM pattern_check('books_catalog');
SELECT pattern_disable('books_catalog');
DROP TABLE books_catalog;
DROP FUNCTION plan_of(text, text[]);
