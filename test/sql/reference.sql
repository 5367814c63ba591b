-- The extended reference pattern: an order shows its customer's name and address without a join, and the name follows the customer.
SET client_min_messages = warning;
SET timezone = 'UTC';
\set SHOW_CONTEXT never
\pset null NULL

SELECT collection_create('customers'), collection_create('orders');
INSERT INTO customers (doc) VALUES
  ('{_id: 123, name: "Peter Hansen", address: {street: "Gade 1", city: "Aarhus"}, bio: "long"}'),
  ('{_id: 124, name: "Maria Nielsen", address: {street: "Allé 7", city: "Odense"}}');

-- What would one change of a customer cost? Nothing yet.
SELECT * FROM reference_cost('orders', 'customer', 'customers');
SELECT reference_enable('orders', field => 'customer', source => 'customers', live => '{name}', frozen => '{address}');

-- Copies are filled in, whether a document says {_id: ..} or just the id.
INSERT INTO orders (doc) VALUES ('{_id: 1, date: ISODate("2019-02-18"), customer: {_id: 123}}'), ('{_id: 2, customer: 124, total: 5}');
SELECT doc FROM orders ORDER BY _id;

-- A live copy follows its source in the same transaction; a frozen one keeps what the order was written with.
UPDATE customers SET doc = bson_update(doc, '{$set: {name: "Peter Jensen", "address.street": "Vej 2"}}') WHERE _id = 123;
SELECT doc -> 'customer' AS customer FROM orders WHERE _id = 1;

-- Copies that are written by hand are corrected. Another id is another customer, with all that belongs to him.
UPDATE orders SET doc = bson_set(doc, 'customer.name', 'Somebody') WHERE _id = 1 RETURNING doc -> 'customer.name' AS name;
UPDATE orders SET doc = bson_set(doc, 'customer._id', 124) WHERE _id = 1 RETURNING doc -> 'customer' AS customer;

-- What is not there cannot be named, and what is named cannot go.
INSERT INTO orders (doc) VALUES ('{customer: {_id: 999}}');
DELETE FROM customers WHERE _id = 124;
-- References follow a key that changes.
UPDATE customers SET doc = bson_set(doc, '_id', 'maria'::text) WHERE _id = 124;
SELECT doc -> 'customer._id' AS id FROM orders ORDER BY _id;
SELECT * FROM pattern_check('orders');
SELECT rel, pattern, name, options FROM pattern_list('orders');

-- References inside of arrays: the authors of comments. Some may be unknown yet.
SELECT collection_create('users'), collection_create('posts');
INSERT INTO users (doc) VALUES ('{_id: 7, name: "Maria Nielsen"}');
SELECT reference_enable('posts', name => 'commenters', field => 'comments.author', source => 'users', id_field => 'id', live => '{name}',
                        missing => 'allow', on_delete => 'cascade');
INSERT INTO posts (doc) VALUES ('{_id: 123, comments: [{text: "Great post!", author: {id: 7}}, {text: "+1", author: 999}]}');
SELECT doc FROM posts;
SELECT reference, key, id FROM reference_dangling('posts');
-- One who appears is filled in; with one who goes, his comment goes, because on_delete says so.
INSERT INTO users (doc) VALUES ('{_id: 999, name: "A guest"}');
UPDATE users SET doc = bson_set(doc, 'name', 'Maria Hansen') WHERE _id = 7;
SELECT doc FROM posts;
DELETE FROM users WHERE _id = 999;
SELECT doc FROM posts;

-- Copies that may be stale for a while: changes are queued, and applied when it suits.
SELECT collection_create('articles'), collection_create('carts');
INSERT INTO articles (doc) VALUES ('{_id: 1, name: "Lamp", watchers: 5}');
SELECT reference_enable('carts', field => 'items', source => 'articles', live => '{name,watchers}', refresh => 'deferred', max_staleness => '1 hour');
INSERT INTO carts (doc) VALUES ('{_id: 1, items: [{_id: 1, quantity: 2}]}');
UPDATE articles SET doc = bson_set(doc, 'watchers', 6);
SELECT doc FROM carts;
SELECT reference, sources, copies FROM reference_staleness('carts');
SELECT reference_refresh('carts');
SELECT doc FROM carts;

-- The options of a declaration can be changed, and it can be ended: the documents stay as they are.
SELECT pattern_alter('orders', 'customer', '{on_delete: "unset"}');
DELETE FROM customers WHERE _id = 'maria'::text;
SELECT doc FROM orders ORDER BY _id;
SELECT pattern_disable('orders'), pattern_disable('posts'), pattern_disable('carts');
DROP TABLE customers, orders, users, posts, articles, carts;
