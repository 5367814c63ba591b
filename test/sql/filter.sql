-- Filters: MongoDB's queries over bson.
\pset null NULL
CREATE TABLE books (doc bson);
INSERT INTO books VALUES
  ('{_id: 1, title: "The Hobbit", author: {name: "Tolkien", born: 1892}, price: 12.5, stock: 3, tags: ["fantasy", "classic"], reviews: [{by: "ada", stars: 5}, {by: "bob", stars: 2}]}'),
  ('{_id: 2, title: "Emma", author: {name: "Austen", born: 1775}, price: NumberDecimal("9.99"), stock: 0, tags: ["classic"], reviews: [{by: "ada", stars: 3}], sold_out: true}'),
  ('{_id: 3, title: "Dune", author: {name: "Herbert", born: 1920}, price: 20, stock: NumberLong(7), tags: ["scifi", "desert"], reviews: [], rating: null}'),
  ('{_id: 4, title: "Notes", price: "free", flags: 20}');

-- A field equals a value, or one of an array's elements does. Several fields must all hold.
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{title: "Dune"}';
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{tags: "classic", stock: 0}';
SELECT doc ->> 'title' AS title FROM books WHERE bson_match(doc, '{"author.name": "Austen"}');
-- A document equals another one with the same fields in the same order.
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{author: {name: "Austen", born: 1775}}';
SELECT count(*) FROM books WHERE doc @@ '{author: {born: 1775, name: "Austen"}}';

-- Numbers compare by value, and with nothing but numbers.
SELECT doc ->> 'title' AS title, doc -> 'price' AS price FROM books WHERE doc @@ '{price: {$gte: 5, $lt: 20}}';
SELECT doc ->> 'title' AS title, doc -> 'price' AS price FROM books WHERE doc @@ '{price: {$gt: MinKey}}' ORDER BY doc -> 'price';
-- $ne, $nin and $not also hold where there is no field.
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{"author.name": {$ne: "Tolkien"}}';
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{stock: {$in: [0, 7, /x/]}}';
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{tags: {$nin: ["classic", "scifi"]}}';
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{stock: {$not: {$gt: 0}}}';

-- null is null or nothing; $exists tells them apart, $type asks for the type.
SELECT count(*) FILTER (WHERE doc @@ '{rating: null}') AS "null", count(*) FILTER (WHERE doc @@ '{rating: {$exists: true}}') AS "exists", count(*) FILTER (WHERE doc @@ '{rating: {$type: "null"}}') AS "type",
  count(*) FILTER (WHERE doc @@ '{price: {$type: ["decimal", "string"]}}') AS "types" FROM books;

-- Two conditions on an array may be met by two elements, with $elemMatch only by one.
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{"reviews.by": "bob", "reviews.stars": 5}';
SELECT count(*) FROM books WHERE doc @@ '{reviews: {$elemMatch: {by: "bob", stars: 5}}}';
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{reviews: {$elemMatch: {by: "ada", stars: {$gt: 3}}}}';
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{tags: {$elemMatch: {$gte: "d", $lt: "f"}}}';
-- $all, $size, and positions in a path.
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{tags: {$all: ["classic", "fantasy"]}}';
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{reviews: {$size: 0}}';
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{"reviews.0.stars": 3, "tags.0": "classic"}';

-- $or, $and, $nor.
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{$or: [{stock: 0}, {price: 20}]}';
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{$and: [{tags: "classic"}, {$nor: [{sold_out: true}]}]}';

-- Patterns, remainders, bits.
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{title: /^the\b/i}';
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{title: {$regex: "[ae]$", $not: {$regex: "^D"}}}';
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{stock: {$mod: [4, 3]}}';
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{flags: {$bitsAllSet: [2, 4], $bitsAnySet: 6, $bitsAllClear: 3, $bitsAnyClear: [2, 3]}}';

-- Expressions compare fields with each other; schemas describe documents.
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{$expr: {$gt: ["$price", {$multiply: ["$stock", 4]}]}, price: {$type: "number"}}';
SELECT doc ->> 'title' AS title FROM books WHERE doc @@ '{$jsonSchema: {required: ["author"], properties: {stock: {bsonType: "int"}}}}';

-- A comment says nothing.
SELECT count(*) FROM books WHERE doc @@ '{$comment: "all of them", $alwaysTrue: 1}';

-- A filter may be a parameter or a column.
PREPARE by_tag(bson) AS SELECT doc ->> 'title' AS title FROM books WHERE doc @@ $1;
EXECUTE by_tag('{tags: "scifi"}');
EXECUTE by_tag('{tags: "fantasy"}');
SELECT f, (SELECT count(*) FROM books WHERE doc @@ f) FROM unnest(ARRAY['{stock: 0}', '{stock: {$gt: 0}}', '{}']::bson[]) f;
-- Fit for indexes and constraints.
CREATE INDEX ON books ((doc -> 'title')) WHERE doc @@ '{stock: {$gt: 0}}';
ALTER TABLE books ADD CHECK (doc @@ '{$nor: [{stock: {$lt: 0}}]}');
INSERT INTO books VALUES ('{_id: 5, stock: -1}');

-- What is wrong, and where.
SELECT '{}'::bson @@ '{price: {$around: 5}}';
SELECT '{}'::bson @@ '{$or: [{a: 1}, {b: {$elemMatch: {c: {$in: 5}}}}]}';
SELECT '{}'::bson @@ '{title: /(/}';
SELECT '{}'::bson @@ '{title: {$regex: "a(?>b"}}';
SELECT '{}'::bson @@ '{$expr: {$lt: ["$until", "$$NOW"]}}';
DEALLOCATE by_tag;
DROP TABLE books;
