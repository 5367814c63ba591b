-- The change feed: what happened to the documents of a table, for readers that follow.
SET client_min_messages = warning;
\set SHOW_CONTEXT never

SELECT collection_create('orders');
SELECT change_feed_enable('orders');
INSERT INTO orders (doc) VALUES ('{_id: 1, status: "new", items: [{sku: "a", n: 1}]}'), ('{_id: 2, status: "new"}');
UPDATE orders SET doc = bson_update(doc, '{$set: {status: "paid", "items.0.n": 2}}') WHERE _id = 1;
DELETE FROM orders WHERE _id = 2;

-- A reader begins at the start, and remembers the position of the last row that it has worked off.
SELECT position, operation, key, document, paths FROM change_feed_read('orders', after => NULL, take => 2);
SELECT position, operation, key, document, paths FROM change_feed_read('orders', after => 2);
SELECT count(*) FROM change_feed_read('orders', after => 4);

-- What is undone has not happened; what is not committed is not read yet.
BEGIN;
INSERT INTO orders (doc) VALUES ('{_id: 3, status: "new"}');
SELECT count(*) FROM change_feed_read('orders', after => 4);
ROLLBACK;
UPDATE orders SET doc = bson_set(doc, 'status', 'paid'::text) WHERE _id = 1;
SELECT count(*) FROM change_feed_read('orders', after => 4);

-- A document under another key is another one.
UPDATE orders SET doc = bson_set(doc, '_id', 7) WHERE _id = 1;
SELECT operation, key FROM change_feed_read('orders', after => 4);

-- Who wants only what comes from now on begins here.
SELECT change_feed_position('orders') \gset
TRUNCATE orders;
SELECT operation, key FROM change_feed_read('orders', after => :change_feed_position);

-- The owner purges what all readers have; who is further behind is told.
SELECT change_feed_purge('orders', until => 4);
SELECT count(*) FROM change_feed_read('orders', after => 4);
SELECT * FROM change_feed_read('orders', after => 2);

DELETE FROM orders_feed;
SELECT name, options FROM pattern_list('orders');
SELECT * FROM pattern_check();
SELECT pattern_disable('orders');
DROP TABLE orders;
