-- For people who think in collections: the calls that they know, on tables with documents.
\set SHOW_CONTEXT never
\pset null NULL

SELECT collection_create('books');

-- Insert returns the _id of each document. A document without one gets an ObjectId.
SELECT collection_insert('books',
  '{_id: 1, title: "Dune", year: 1965, tags: ["space", "desert"], stock: 3, price: 9.5}',
  '{_id: 2, title: "Emma", year: 1815, tags: ["society"], stock: 0, price: 5}',
  '{_id: 3, title: "Solaris", year: 1961, tags: ["space", "ocean"], stock: 1, price: 7.25}');
SELECT bson_typeof(id) FROM collection_insert('books', '{title: "Untitled"}') AS id;

-- Many documents at once are an array.
SELECT count(*) FROM collection_insert('books',
  VARIADIC ARRAY(SELECT bson_build('_id', i, 'title', 'Volume ' || i, 'year', 1900 + i) FROM generate_series(10, 14) AS i));

-- Find takes a filter, a projection, a sort specification, and how many to skip and to take.
SELECT collection_find('books', '{tags: "space"}');
SELECT collection_find('books', '{year: {$gte: 1900}}', '{title: 1, _id: 0}', '{year: -1}', skip => 1, take => 3);
SELECT collection_find('books', sort => '{_id: -1}', take => 1, projection => '{_id: 0, title: {$toUpper: "$title"}}');

-- What is found is a set of documents and can be used like any other.
SELECT doc ->> 'title' AS title, doc -> 'stock' AS stock
FROM collection_find('books', '{stock: {$exists: true}}') AS doc ORDER BY title;

-- Counting, and the values of a field; of arrays the elements count.
SELECT collection_count('books'), collection_count('books', '{stock: {$gt: 0}}');
SELECT collection_distinct('books', 'tags');
SELECT collection_distinct('books', 'tags', '{year: {$gt: 1900}}');

-- Update takes one document that matches, or with multi all of them. It tells how many matched and how many of these changed.
SELECT * FROM collection_update('books', '{title: "Dune"}', '{$inc: {stock: -1}, $push: {tags: "classic"}}');
SELECT * FROM collection_update('books', '{}', '{$max: {price: 6}}', multi => true);
SELECT * FROM collection_update('books', '{_id: 1, tags: "desert"}', '{$set: {"tags.$": "sand"}}');
SELECT * FROM collection_update('books', '{_id: 2}', '[{$set: {sold_out: {$eq: ["$stock", 0]}}}]');
SELECT collection_find('books', '{_id: {$lt: 3}}', '{year: 0}', '{_id: 1}');

-- A whole document takes the place of another one, which keeps its _id.
SELECT * FROM collection_update('books', '{_id: 3}', '{title: "Solaris", borrowed: true}');
SELECT collection_find('books', '{_id: 3}');

-- An upsert inserts a document if none matches. It begins with what the filter says is equal.
SELECT * FROM collection_update('books', '{_id: 20, lang: "en"}', '{$inc: {copies: 1}, $setOnInsert: {state: "new"}}', upsert => true);
SELECT * FROM collection_update('books', '{_id: 20, lang: "en"}', '{$inc: {copies: 1}, $setOnInsert: {state: "new"}}', upsert => true);
SELECT collection_find('books', '{_id: 20}');

-- If another document has the key there is nothing that an upsert could do.
\set VERBOSITY terse
SELECT * FROM collection_update('books', '{_id: 20, lang: "de"}', '{$inc: {copies: 1}}', upsert => true);

-- Delete takes one document or all that match.
SELECT collection_delete('books', '{title: /^Volume/}');
SELECT collection_delete('books', '{title: /^Volume/}', multi => true);

-- The filter's conditions on _id use the primary key, others a btree index on the field. The index takes an array for one value,
-- so arrays are looked at as well, unless a check says that the field is never one; then the index gives the order, too.
-- docpatterns._collection_query() shows the conditions that a call puts into SQL.
CREATE INDEX ON books ((doc -> 'year') NULLS FIRST);
SELECT conditions, operands, ordering FROM docpatterns._collection_query('books', '{year: {$gt: 1900}}', '{year: 1}');
ALTER TABLE books ADD CHECK (bson_typeof(doc, 'year') = 'int');
SELECT conditions, operands, ordering FROM docpatterns._collection_query('books', '{_id: 1, year: {$gt: 1900}}', '{year: 1}');
SELECT collection_find('books', '{year: {$gt: 1900}}', '{title: 1, year: 1}', '{year: 1}');

-- Any table or view with one column of documents will do.
CREATE TABLE notes (id int GENERATED ALWAYS AS IDENTITY, doc bson, at date DEFAULT '2024-01-01');
SELECT collection_insert('notes', '{text: "first"}', '{text: "second"}');
SELECT * FROM collection_update('notes', '{text: "second"}', '{$set: {done: true}}');
SELECT * FROM notes;

-- Errors.
SELECT collection_find('books', '{year: {$above: 1}}');
SELECT collection_find('books', take => -1);
SELECT collection_delete('books', NULL);
SELECT collection_insert('books', '{_id: 1}');
SELECT collection_find('pg_class');

DROP TABLE books, notes;
