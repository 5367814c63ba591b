-- What beginners get wrong first, and what they are told: message, detail, hint, SQLSTATE.
SET client_min_messages = warning;
\set SHOW_CONTEXT errors
\set state '\\echo :LAST_ERROR_SQLSTATE'
SELECT collection_create(c) FROM unnest('{books,customers,orders}'::text[]) c \g /dev/null
SELECT outlier_enable('books', 'buyers', threshold => 3), versioning_enable('books') \g /dev/null
SELECT computed_enable('customers', source => 'orders', on_field => 'customer', fields => '{spent: {$sum: "$price"}}') \g /dev/null
SELECT kv_create('game') \g /dev/null
INSERT INTO books (doc) VALUES ('{_id: 1, title: "Atlas", price: 12, buyers: [1, 2, 3, 4]}');
CREATE TABLE old (id int PRIMARY KEY, data jsonb);
CREATE TABLE loose (id int, doc bson);
CREATE TABLE plain (id int PRIMARY KEY, doc bson);
CREATE VIEW cheap AS SELECT * FROM books;

-- 1. An option is misspelt, has another type, is out of range, cannot be changed.
SELECT pattern_alter('books', 'buyers', '{treshold: 5}');
:state
SELECT pattern_alter('books', 'buyers', '{threshold: "five"}');
:state
SELECT pattern_alter('books', 'buyers', '{threshold: 0}');
:state
SELECT pattern_alter('books', 'buyers', '{field: "readers"}');
:state
-- 2. A value is not one of the words.
SELECT reference_enable('orders', 'customer', source => 'customers', live => '{name}', on_delete => 'cascde');
:state
-- 3. The name of an argument is misspelt: PostgreSQL looks for another function.
SELECT outlier_enable('books', 'readers', treshold => 3);
:state
-- 4. There is no pattern of that name, the pattern is declared twice.
SELECT pattern_disable('books', 'reviews');
:state
SELECT outlier_enable('books', 'buyers', threshold => 3);
:state
-- 5. The table is the source of a pattern, or has another one, or none.
SELECT pattern_check('orders', 'spent');
:state
SELECT tree_descendants('books', 1);
:state
SELECT outlier_push('orders', 1, 'ann');
:state
SELECT schema_versioning_step('orders', 1, 2, up_update => '{$set: {a: 1}}');
:state
-- 6. A table that does not exist.
SELECT subset_enable('customers', 'recent', source => 'order', on_field => 'customer', order_by => '{at: -1}', keep => 3);
:state
SELECT outlier_enable('bokks', 'buyers', threshold => 3);
:state
-- 7. A table without documents, without a key, a view, a column of another name.
SELECT outlier_enable('old', 'buyers', threshold => 3);
:state
SELECT collection_find('old');
:state
SELECT collection_insert('plain', '{_id: 2}');
:state
SELECT outlier_enable('loose', 'buyers', threshold => 3);
:state
SELECT outlier_enable('cheap', 'buyers', threshold => 3);
:state
SELECT versioning_enable('orders', doc_column => 'dok');
:state
-- 8. A key of the wrong type, or of no row.
SELECT outlier_enable('plain', 'buyers', threshold => 3) \g /dev/null
SELECT outlier_push('plain', 'one', 'ann');
:state
SELECT outlier_push('plain', 1.5, 'ann');
:state
SELECT collection_create('users', key_type => 'int') \g /dev/null
INSERT INTO users (doc) VALUES ('{_id: "ann"}');
:state
SELECT collection_create('things', key_type => 'json');
:state
SELECT outlier_push('books', 2, 'ann');
:state
SELECT versioning_at('books', 1, 99);
:state
-- 9. A write to a table that a pattern maintains.
DELETE FROM books_buyers_extras;
:state
-- 10. A document: a brace, quotes, braces are missing; a call of mongosh.
INSERT INTO books (doc) VALUES ('{title: "Atlas", price: 12');
:state
INSERT INTO books (doc) VALUES ('{title: Atlas}');
:state
INSERT INTO books (doc) VALUES ('Atlas');
:state
INSERT INTO books (doc) VALUES ('[{title: "Atlas"}]');
:state
INSERT INTO books (doc) VALUES ('{_id: ObjectId(), at: new Date()}');
:state
-- 11. The column of documents is not named.
INSERT INTO books VALUES ('{title: "Atlas"}');
:state
INSERT INTO books VALUES (2, '{_id: 3}');
:state
-- 12. A filter: a misspelt operator, one where there is none, no array, not a filter.
SELECT collection_find('books', '{price: {$gth: 5}}');
:state
SELECT collection_find('books', '{$orr: [{price: 5}]}');
:state
SELECT collection_find('books', '{price: {$in: 5}}');
:state
SELECT collection_find('books', 'price > 5');
:state
SELECT collection_find('books', '{price: {$where: "5"}}');
:state
-- 13. A text beside a field.
SELECT doc FROM books WHERE doc -> 'title' = 'Atlas';
:state
SELECT doc FROM books WHERE doc -> 'at' > '2024-05-01';
:state
SELECT (doc -> 'title')::int FROM books;
:state
-- 14. An update: a misspelt operator, a field beside operators, another type, the key.
SELECT collection_update('books', '{}', '{$sett: {price: 13}}');
:state
SELECT collection_update('books', '{}', '{$set: {price: 13}, year: 1999}');
:state
SELECT collection_update('books', '{}', '{$inc: {price: "1"}}');
:state
SELECT collection_update('books', '{}', '{$inc: {title: 1}}');
:state
SELECT collection_update('books', '{_id: 1}', '{$set: {_id: 2}}');
:state
-- 15. An accumulator, an expression, a sort, a projection.
SELECT computed_enable('customers', source => 'orders', on_field => 'customer', fields => '{n: {$smu: 1}}');
:state
SELECT collection_find('books', projection => '{total: {$ad: ["$price", 1]}}');
:state
SELECT collection_find('books', sort => '{price: "down"}');
:state
SELECT collection_find('books', projection => '{title: 1, price: 0}');
:state
-- 16. A schema.
SELECT bson_validate('{}', '{bsonTyp: "object"}');
:state
-- 17. A space that is there, one that is not, a value of another kind, a score behind its member.
SELECT kv_create('game');
:state
SELECT kv_hget('gme', 'key', 'field');
:state
SELECT kv_leaderboard('gme', 'best', 'customers', 'spent');
:state
SELECT kv_zadd('game', 'best', 'ann', 7);
:state
SELECT kv_zadd('game', 'best', 7, 'ann') \g /dev/null
SELECT kv_hset('game', 'best', 'field', 1);
:state
SELECT kv_hset('game', 'key', 'field');
:state
SELECT kv_hset('game', 'key', 'visits', 'many') \g /dev/null
SELECT kv_hincrby('game', 'key', 'visits', 1);
:state
-- 18. A collection that is there, a name with too many parts, a missing schema.
SELECT collection_create('books');
:state
SELECT collection_create('my.shop.books');
:state
SELECT collection_create('shop.books');
:state
-- 19. A relation of measurements.
SELECT bucket_create('readings', columns => 'at timestamptz, sensor int, value float8', group_by => '{sensr}', time_field => 'at');
:state
SELECT bucket_create('readings', columns => 'at timestamptz, value flaot8', time_field => 'at');
:state
SELECT bucket_create('readings', time_field => 'at');
:state
-- 20. Slots.
SELECT preallocated_enable('orders', 'seats', preallocated_pool(3)) \g /dev/null
INSERT INTO orders (doc) VALUES ('{_id: 1}');
SELECT preallocated_claim('orders', 1, '{9}', 'ann');
:state
SELECT preallocated_claim('orders', 1, '1', 'ann');
:state
-- 21. A procedure is not a function.
SELECT pattern_build('books', 'buyers');
:state
CALL pattern_build('books', 'buyers', batch => 0);
:state
-- 22. The key of an index.
SELECT collection_create_index('books', '{price: "up"}');
:state
SELECT collection_drop_index('books', '{title: 1}');
:state
-- 23. An object ID.
SELECT '12345'::objectid;
:state
-- 24. A name that is found in no schema.
SET search_path = pg_catalog;
SELECT public.pattern_disable('books', 'buyers');
:state
RESET search_path;
-- 25. Dropping.
DROP TABLE customers;
:state
DROP EXTENSION docpatterns;
:state
