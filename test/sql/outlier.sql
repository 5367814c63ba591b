-- The outlier pattern: a few documents have arrays that are far too long, and must not spoil it for the others.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
\pset null NULL

-- Most books have a few buyers, a bestseller has thousands. Beyond three, the buyers lie aside here, in chunks of two.
SELECT collection_create('books');
SELECT outlier_enable('books', field => 'customers_purchased', threshold => 3, flag => 'has_extras', count_field => 'customers_count', chunk => 2);
INSERT INTO books (doc) VALUES
  ('{_id: 1, title: "A quiet book", customers_purchased: ["user00", "user01"]}'),
  ('{_id: 2, title: "Harry Potter, the Next Chapter", customers_purchased: ["user00", "user01", "user02", "user03", "user04", "user05", "user06"]}');
SELECT doc FROM books ORDER BY _id;
SELECT key, chunk, n, elements FROM books_customers_purchased_extras ORDER BY key, chunk;

-- The view shows whole documents.
SELECT doc FROM books_whole ORDER BY _id;

-- Another buyer for each, at a cost that does not depend on how many there are.
SELECT outlier_push('books', 1, 'user07'), outlier_push('books', 2, 'user07', 'user08');
SELECT outlier_count('books', 1), outlier_count('books', 2);
SELECT * FROM outlier_page('books', 2, 2, 3);
SELECT outlier_contains('books', 2, 'user05') AS user05, outlier_contains('books', 2, 'user99') AS user99;
SELECT b.doc ->> 'title' AS bought_by_user07 FROM outlier_find('books', 'user07') AS b (doc) ORDER BY 1;
SELECT outlier_pull('books', 2, 'user01'), outlier_pull('books', 2, 'user06');
SELECT doc FROM books WHERE _id = 2;
SELECT doc ->> 'customers_purchased' FROM books_whole WHERE _id = 2;

-- Whatever writes to the table, the pattern keeps true. A program that reads a document, changes the title and saves it all throws nothing away.
UPDATE books SET doc = '{_id: 2, title: "Harry Potter", customers_purchased: ["user00", "user02", "user03"]}' WHERE _id = 2 RETURNING doc;
SELECT doc FROM books_whole WHERE _id = 2;
-- What is added behind the elements that are there goes to the end of the whole array.
UPDATE books SET doc = bson_array_append(doc, 'customers_purchased', 'user09') WHERE _id = 2;
-- What is taken away is replaced from the extras.
UPDATE books SET doc = bson_set(doc, 'customers_purchased', bson_array('user03')) WHERE _id = 2;
SELECT doc FROM books WHERE _id = 2;
SELECT doc ->> 'customers_purchased' FROM books_whole WHERE _id = 2;
-- A flag or a count of one's own is corrected.
UPDATE books SET doc = bson_set(bson_set(doc, 'has_extras', 'true'), 'customers_count', 1000) RETURNING doc;

-- Through the view the whole array is written, here a short one.
UPDATE books_whole SET doc = bson_set(doc, 'customers_purchased', bson_array('user00')) WHERE _id = 2;
SELECT doc FROM books WHERE _id = 2;
SELECT count(*) AS extras FROM books_customers_purchased_extras;
INSERT INTO books_whole (doc) VALUES ('{title: "New", _id: 3, customers_purchased: [1, 2, 3, 4]}') RETURNING *;
DELETE FROM books_whole WHERE _id = 3 RETURNING _id;
SELECT count(*) AS extras FROM books_customers_purchased_extras;

-- The extras themselves belong to the pattern.
INSERT INTO books_customers_purchased_extras VALUES ('1', 0, 1, false, '[1]');

-- What is declared, and that it is true.
SELECT rel, pattern, name, options ->> 'threshold' AS threshold, options ->> 'flag' AS flag FROM pattern_list('books');
SELECT * FROM pattern_check('books');
SELECT pattern_alter('books', 'customers_purchased', '{treshold: 2}');
SELECT pattern_alter('books', 'customers_purchased', '{threshold: 0}');
SELECT pattern_alter('books', 'customers_purchased', '{threshold: 2}');
CALL pattern_build('books');
SELECT doc FROM books ORDER BY _id;
SELECT * FROM pattern_check('books');
-- Without the pattern the documents are plain again.
SELECT pattern_disable('books');
SELECT doc FROM books ORDER BY _id;
SELECT to_regclass('books_whole'), to_regclass('books_customers_purchased_extras');
DROP TABLE books;

-- A controversial review: marked at once, split later by a query of its own.
SELECT collection_create('reviews');
INSERT INTO reviews (doc) VALUES ('{_id: 1, text: "old", comments: ["a", "b", "c", "d"], outlier: "yes"}'), ('{_id: 2, text: "calm", comments: ["a"], outlier: "yes"}');
SELECT outlier_enable('reviews', field => 'comments', threshold => 3, flag => 'outlier', mode => 'deferred', is_set => true);
CALL pattern_build('reviews', 'comments', 1);
INSERT INTO reviews (doc) VALUES ('{_id: 3, text: "controversial", comments: ["a", "b", "b", "c", "d", "e"]}');
SELECT doc FROM reviews ORDER BY _id;
SELECT outlier_spill('reviews');
SELECT doc FROM reviews ORDER BY _id;
SELECT doc FROM reviews_whole ORDER BY _id;
SELECT outlier_push('reviews', 3, 'c', 'e', 'f', 'f') AS pushed_to_a_set;
SELECT * FROM pattern_check();
DROP TABLE reviews CASCADE;

-- The orders of a power user lie one by one in an ordinary collection, and none in the document.
SELECT collection_create('users'), collection_create('orders');
SELECT outlier_enable('users', field => 'orders', threshold => 3, keep => 0, flag => 'isOutlier', count_field => 'orderCount', extras => 'orders', on_field => 'userId');
INSERT INTO users (doc) VALUES ('{_id: 123, name: "Regular User", orders: [{_id: "a1", total: 5}]}'),
  ('{_id: 456, name: "Power User", orders: [{_id: "b1", total: 10}, {_id: "b2", total: 20}, {_id: "b3", total: 30}, {_id: "b4", total: 40}]}');
SELECT doc FROM users ORDER BY _id;
SELECT doc FROM orders ORDER BY _id;
-- Orders may be written where they lie: the count and the flag follow.
INSERT INTO orders (doc) VALUES ('{_id: "b5", total: 50, userId: 456}');
DELETE FROM orders WHERE doc ->> 'total' = '10';
SELECT doc FROM users WHERE _id = 456;
INSERT INTO orders (doc) VALUES ('{_id: "c1", userId: 789}');
UPDATE users SET doc = bson_set(doc, '_id', 457) WHERE _id = 456;
SELECT doc FROM orders ORDER BY _id;
SELECT outlier_pull('users', 457, '{_id: "b2", total: 20}'::bson);
SELECT outlier_count('users', 457);
SELECT doc FROM users_whole ORDER BY _id;
-- With three orders the user is no outlier any more, and they are in the document.
SELECT doc FROM users ORDER BY _id;
SELECT doc FROM orders;
SELECT * FROM pattern_check();
DROP TABLE users CASCADE;
DROP TABLE orders;

-- The newest comments stay with the article, the oldest moves out.
SELECT collection_create('article'), collection_create('comments');
SELECT outlier_enable('article', field => 'last_3_comments', threshold => 3, stay => 'last', extras => 'comments', on_field => 'article_id');
INSERT INTO article (doc) VALUES ('{_id: 334456, last_3_comments: [{_id: 1, name: "Frank"}, {_id: 2, name: "Jay"}, {_id: 3, name: "Ann"}]}');
SELECT count(*) AS moved FROM comments;
UPDATE article SET doc = bson_array_append(doc, 'last_3_comments', '{_id: 4, name: "Wendy"}'::bson);
SELECT doc FROM article;
SELECT doc FROM comments;
SELECT doc FROM article_whole;
SELECT * FROM pattern_check();
DROP TABLE article CASCADE;
DROP TABLE comments;

-- Which threshold fits? Ninety-nine arrays of up to ten elements and one of a thousand.
CREATE TABLE loans (id int PRIMARY KEY, doc bson);
INSERT INTO loans SELECT i, bson_build('readers', (SELECT bson_agg(r) FROM generate_series(1, CASE i WHEN 100 THEN 1000 ELSE i % 10 + 1 END) r)) FROM generate_series(1, 100) i;
SELECT documents, arrays, threshold, outliers, length_p50, length_p99, length_max, bytes_max FROM outlier_advise('loans', 'readers');
DROP TABLE loans;
