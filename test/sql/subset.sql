-- The subset pattern: a product shows its newest reviews; the reviews themselves are documents of their own.
SET client_min_messages = warning;
SELECT collection_create('products'), collection_create('reviews');
SELECT subset_enable('products', field => 'reviews', source => 'reviews', on_field => 'product_id',
                     order_by => '{published: -1}', keep => 2, fields => '{author: 1, published: 1}', count_field => 'review_count');

-- A product has its array from the beginning.
INSERT INTO products (doc) VALUES ('{_id: 1, name: "Super Widget"}'), ('{_id: 2, name: "Gadget"}');
INSERT INTO reviews (doc) VALUES ('{_id: 1, product_id: 1, author: "Hans", published: 2001, text: "long"}'), ('{_id: 2, product_id: 1, author: "Trina", published: 2007, text: "longer"}'),
  ('{_id: 3, product_id: 1, author: "Kristina", published: 2019, text: "longest"}');
SELECT doc FROM products ORDER BY _id;

-- A review that is deleted is replaced by the next one; one that is moved changes both products.
DELETE FROM reviews WHERE _id = 3;
UPDATE reviews SET doc = bson_set(doc, 'product_id', 2) WHERE _id = 2;
SELECT doc FROM products ORDER BY _id;

-- An old copy of the array is put right, and what cannot become a review is refused.
UPDATE products SET doc = '{_id: 1, name: "Widget", reviews: []}' WHERE _id = 1;
\set VERBOSITY terse
UPDATE products SET doc = bson_set(doc, 'reviews', 'none'::text) WHERE _id = 1;
\set VERBOSITY default
SELECT doc FROM products WHERE _id = 1;
SELECT * FROM pattern_check();
SELECT pattern, name, options FROM pattern_list('products');

-- What changes an order or a projection is put right at once.
SELECT pattern_alter('products', 'reviews', '{keep: 1, fields: {text: 1}}');
SELECT doc FROM products ORDER BY _id;

-- Without the pattern the copies go, and the reviews stay.
SELECT pattern_disable('products');
SELECT doc FROM products ORDER BY _id;
SELECT count(*) FROM reviews;
DROP TABLE products, reviews;

-- Books that embed all their reviews are split into two tables ..
SELECT collection_create('books');
INSERT INTO books (doc) VALUES ('{_id: 1, reviews: [{n: 3}, {n: 1}, {n: 2}]}'), ('{_id: 2, reviews: []}'), ('{_id: 3}');
SELECT subset_split('books', field => 'reviews', source => 'book_reviews', on_field => 'book', keep => 2);
SELECT doc FROM books ORDER BY _id;
SELECT bson_unset(doc, '_id') AS doc FROM book_reviews ORDER BY _id;
SELECT * FROM pattern_check();

-- .. and joined again.
SELECT subset_join('books');
SELECT doc FROM books ORDER BY _id;
SELECT count(*) FROM book_reviews;
DROP TABLE books, book_reviews;

-- The other form: fields that are rarely read lie in a table beside.
SELECT collection_create('movies');
SELECT subset_fields_enable('movies', cold => '{full_cast}');
INSERT INTO movies (doc) VALUES ('{_id: 1, title: "Star Wars", full_cast: ["Mark Hamill", "Harrison Ford"]}');
SELECT doc FROM movies;
UPDATE movies SET doc = bson_set(doc, 'title', 'A New Hope');
UPDATE movies_whole SET doc = bson_update(doc, '{$push: {full_cast: "Carrie Fisher"}}');
SELECT doc FROM movies_whole;
SELECT pattern_disable('movies');
SELECT doc FROM movies;
DROP TABLE movies;
