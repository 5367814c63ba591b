-- Projections: which fields of a document are returned, and how.
SET timezone = 'UTC';
\pset null NULL

CREATE TEMP TABLE books (doc bson);
INSERT INTO books VALUES
  ('{_id: 1, title: "Emma", author: {first: "Jane", last: "Austen"}, year: 1815, reviews: [{by: "ann", stars: 5}, {by: "bob", stars: 2}, {by: "cleo", stars: 4}], price: NumberDecimal("7.99")}'),
  ('{_id: 2, title: "Ulysses", author: {first: "James", last: "Joyce"}, year: 1922, reviews: [], price: NumberDecimal("12.50")}');

-- Fields with 1 are returned, and _id unless it is excluded. Fields keep the order that they have in the document.
SELECT bson_project(doc, '{year: 1, title: 1}') FROM books ORDER BY doc -> '_id';
SELECT bson_project(doc, '{_id: 0, title: 1, "author.last": 1}') FROM books ORDER BY doc -> '_id';
-- Fields with 0 are left out.
SELECT bson_project(doc, '{reviews: 0, price: 0, author: {first: 0}}') FROM books ORDER BY doc -> '_id';
-- Through an array a path means the fields of each of its elements.
SELECT bson_project(doc, '{"reviews.by": 1}') FROM books ORDER BY doc -> '_id';

-- Parts of an array.
SELECT bson_project(doc, '{_id: 1, title: 1, reviews: {$slice: 1}}'), bson_project(doc, '{_id: 1, reviews: {$slice: [1, 5]}}') FROM books ORDER BY doc -> '_id';
SELECT bson_project(doc, '{reviews: {$elemMatch: {stars: {$lt: 5}}}}') FROM books ORDER BY doc -> '_id';
-- The positional operator returns the element that the filter matched.
SELECT bson_project(doc, '{"reviews.$": 1}', '{"reviews.stars": 4}') FROM books WHERE doc @@ '{"reviews.stars": 4}';

-- Anything but 1 and 0 is computed.
SELECT bson_project(doc, '{title: 1, who: {$concat: ["$author.first", " ", "$author.last"]}, stars: {$avg: "$reviews.stars"}, old: {$lt: ["$year", 1900]}, "author.name": "$author.last"}') FROM books ORDER BY doc -> '_id';

-- Sorting by several fields, each in its own direction.
SELECT doc ->> 'title' AS title FROM books ORDER BY bson_sort_key(doc, '{"author.last": -1, year: 1}');
-- Of an array the least element counts, or the greatest when descending; what is missing is null, and an empty array comes before it.
SELECT d FROM (VALUES ('{_id: 1, a: [5, 2]}'::bson), ('{_id: 2, a: 3}'), ('{_id: 3}'), ('{_id: 4, a: []}'), ('{_id: 5, a: [1, 9]}')) AS t (d) ORDER BY bson_sort_key(d, '{a: 1}');
SELECT d FROM (VALUES ('{_id: 1, a: [5, 2]}'::bson), ('{_id: 2, a: 3}'), ('{_id: 3}'), ('{_id: 4, a: []}'), ('{_id: 5, a: [1, 9]}')) AS t (d) ORDER BY bson_sort_key(d, '{a: -1}');

-- Errors.
SELECT bson_project('{}', '{a: 1, b: 0}');
SELECT bson_project('{}', '{a: 1, "a.b": 1}');
SELECT bson_project('{a: [1]}', '{"a.$": 1}');
SELECT bson_project('{}', '{a: {$nope: 1}}');
SELECT bson_sort_key('{}', '{a: 2}');
SELECT bson_sort_key('{a: [1], b: [2]}', '{a: 1, b: 1}');
