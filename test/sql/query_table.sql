-- Query tables: one table for each query, kept from its source.
\set VERBOSITY terse
SET timezone = 'UTC';
SET client_min_messages = warning;

-- Orders are written to one table, and read by user, newest first, and by status.
SELECT collection_create('orders');
SELECT query_table_create('orders_by_user', source => 'orders', partition => '{user_id}', clustering => '{"order_date": -1}',
                          fields => '{"order_id": 1, "total": 1, "gross": {"$multiply": ["$total", 1.25]}}', types => '{"order_date": "timestamptz", "total": "numeric(10,2)"}');
SELECT query_table_create('orders_by_status', source => 'orders', partition => '{status}', clustering => '{"total": -1, "order_id": 1}', fields => '{"id": "$_id"}');
SELECT attname, format_type(atttypid, atttypmod), attnotnull FROM pg_attribute WHERE attrelid = 'orders_by_user'::regclass AND attnum > 0 ORDER BY attnum;
SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'orders_by_status'::regclass ORDER BY indisprimary DESC;
SELECT rel, pattern, name, options FROM pattern_list('orders') ORDER BY name;
INSERT INTO orders (doc) VALUES
  ('{_id: 1, user_id: "ann", order_id: "A1", order_date: ISODate("2024-01-01T00:00:00Z"), total: 10, status: "paid"}'),
  ('{_id: 2, user_id: "ann", order_id: "A2", order_date: ISODate("2024-01-03T00:00:00Z"), total: 30, status: "open"}'),
  ('{_id: 3, user_id: "ann", order_id: "A3", order_date: ISODate("2024-01-02T00:00:00Z"), total: 20, status: "paid"}'),
  ('{_id: 4, user_id: "bob", order_id: "B1", order_date: ISODate("2024-01-02T00:00:00Z"), total: 5, status: "paid"}');
SELECT user_id, order_date, total, order_id, gross FROM orders_by_user WHERE user_id = 'ann'::text ORDER BY order_date DESC;
SELECT query_table_read('orders_by_user', 'ann');
SELECT query_table_read('orders_by_status', 'paid');
SELECT query_table_read('orders_by_status', 'paid', 5);

-- A change of a key moves the row; one of another field writes it where it stands.
UPDATE orders SET doc = bson_set(doc, 'user_id', 'bob') WHERE _id = 3;
UPDATE orders SET doc = bson_set(doc, 'total', 12.5::numeric) WHERE _id = 1;
SELECT user_id, order_id, total FROM orders_by_user ORDER BY user_id, order_date DESC;
SELECT query_table_read('orders_by_status', 'paid');
-- What a table does not show does not touch it.
SELECT ctid AS was FROM orders_by_user WHERE order_id = 'A2'::text \gset
UPDATE orders SET doc = bson_set(doc, 'note', 'call first') WHERE _id = 2;
SELECT ctid = :'was' AS untouched FROM orders_by_user WHERE order_id = 'A2'::text;

-- An order without a user, or without a date, has no place in the table.
INSERT INTO orders (doc) VALUES ('{_id: 5, order_date: ISODate("2024-01-02T00:00:00Z"), total: 1}'), ('{_id: 6, user_id: "ann", order_date: null}');
SELECT count(*) FROM orders_by_user;
-- A value that is not of the column's type is refused, with the whole statement.
INSERT INTO orders (doc) VALUES ('{_id: 7, user_id: "ann", order_date: "tomorrow", total: 1}');
SELECT count(*) FROM orders;

-- Nobody writes to it but the pattern.
INSERT INTO orders_by_user (user_id) VALUES ('"eve"');
DELETE FROM orders_by_user;
TRUNCATE orders_by_user;

-- All kinds of statements.
INSERT INTO orders (doc) VALUES ('{_id: 4, user_id: "bob", order_id: "B2", order_date: ISODate("2024-02-02T00:00:00Z"), total: 6, status: "paid"}') ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
INSERT INTO orders (doc) VALUES ('{_id: 4, user_id: "eve"}') ON CONFLICT DO NOTHING;
MERGE INTO orders USING (VALUES (1), (8)) AS v (i) ON orders._id = v.i WHEN MATCHED THEN DELETE
  WHEN NOT MATCHED THEN INSERT (doc) VALUES (bson_build('_id', v.i, 'user_id', 'ann', 'order_id', 'A8', 'order_date', timestamptz '2024-08-08', 'total', 8));
WITH gone AS (DELETE FROM orders WHERE _id = 2 RETURNING doc) INSERT INTO orders (doc) SELECT bson_set(doc, '_id', 22) FROM gone;
SELECT user_id, order_id, total, source_key FROM orders_by_user ORDER BY user_id, order_date DESC;
BEGIN;
SAVEPOINT a;
DELETE FROM orders;
SELECT count(*) FROM orders_by_user;
ROLLBACK TO a;
COMMIT;
SELECT count(*) FROM orders_by_user;
SELECT * FROM pattern_check('orders');

-- A unique key: an e-mail belongs to one user. Two users may exchange theirs.
SELECT collection_create('users');
SELECT query_table_create('users_by_email', source => 'users', partition => '{email}', fields => '{"name": 1}', is_unique => true);
INSERT INTO users (doc) VALUES ('{_id: 1, name: "Ann", email: "a@x.org"}'), ('{_id: 2, name: "Bob", email: "b@x.org"}'), ('{_id: 3, name: "Cy"}'), ('{_id: 4, name: "Di"}');
INSERT INTO users (doc) VALUES ('{_id: 5, name: "Eve", email: "a@x.org"}');
UPDATE users SET doc = bson_set(doc, 'email', CASE _id WHEN 1 THEN 'b@x.org' ELSE 'a@x.org' END) WHERE _id <= 2;
SELECT email, name FROM users_by_email ORDER BY email;

-- The newest two of each user only: those that go are refilled from the source.
SELECT query_table_create('newest', source => 'orders', partition => '{user_id}', clustering => '{"order_date": -1}', fields => '{"order_id": 1}', limit_per_partition => 2);
CALL pattern_build('orders', 'newest');
INSERT INTO orders (doc) SELECT bson_build('_id', 100 + i, 'user_id', 'ann', 'order_id', 'N' || i, 'order_date', timestamptz '2024-03-01' + i * interval '1 day') FROM generate_series(1, 3) i;
SELECT query_table_read('newest', 'ann') ->> 'order_id';
DELETE FROM orders WHERE _id = 8;
SELECT query_table_read('newest', 'ann') ->> 'order_id';
SELECT pattern_alter('orders', 'newest', '{limit_per_partition: 3}');
SELECT query_table_read('newest', 'ann') ->> 'order_id';
SELECT * FROM pattern_check('orders');

-- IDs that are strings in documents can be UUIDs in the table, and rows can expire: they are no longer read, and purged later.
SELECT collection_create('visits');
SELECT query_table_create('visits_by_user', source => 'visits', partition => '{user}', clustering => '{"at": -1}', types => '{"user": "uuid", "at": "timestamptz"}', ttl_field => 'expires');
INSERT INTO visits (doc) VALUES ('{_id: 1, user: "6f1c2a54-0e0b-4f27-9a55-3c7d3f5f0001", at: ISODate("2024-01-01"), expires: ISODate("2024-01-02")}'),
  ('{_id: 2, user: UUID("6f1c2a54-0e0b-4f27-9a55-3c7d3f5f0001"), at: ISODate("2024-02-01"), expires: ISODate("2100-01-01")}'), ('{_id: 3, user: "6F1C2A54-0E0B-4F27-9A55-3C7D3F5F0001", at: ISODate("2024-03-01")}');
INSERT INTO visits (doc) VALUES ('{_id: 4, user: "ann", at: ISODate("2024-01-01")}');
SELECT query_table_read('visits_by_user', '6f1c2a54-0e0b-4f27-9a55-3c7d3f5f0001') - '{user}'::text[];
SELECT * FROM visits_by_user ORDER BY at;
SELECT query_table_purge('visits_by_user');
SELECT source_key FROM visits_by_user ORDER BY at;
SELECT * FROM pattern_check('visits');
DROP TABLE visits CASCADE;

-- Added to a table that is full: new writes are kept at once, pattern_build brings the others.
RESET client_min_messages;
SELECT query_table_create('by_order', source => 'orders', partition => '{order_id}', fields => '{"user_id": 1}');
SET client_min_messages = warning;
UPDATE orders SET doc = bson_set(doc, 'user_id', 'cy') WHERE _id = 101;
SELECT * FROM by_order ORDER BY order_id;
CALL pattern_build('orders', 'by_order', 2);
SELECT order_id, user_id FROM by_order ORDER BY order_id;
SELECT * FROM pattern_check('orders');

-- What was written while maintenance was off is found and repaired.
SET docpatterns.maintain = off;
DELETE FROM orders WHERE _id = 101;
UPDATE orders SET doc = bson_set(doc, 'user_id', 'dan') WHERE _id = 102;
UPDATE by_order SET user_id = '"who"' WHERE order_id = 'N3'::text;
RESET docpatterns.maintain;
SELECT key, what, expected, found FROM pattern_check('orders', 'by_order') ORDER BY key;
SELECT pattern_repair('orders', 'by_order') AS by_order, pattern_repair('orders', 'newest') AS newest, pattern_repair('orders', 'orders_by_user') AS by_user;
SELECT * FROM pattern_check('orders');

-- Columns and tables may have other names later.
ALTER TABLE by_order RENAME COLUMN user_id TO who;
ALTER TABLE by_order RENAME TO "Orders, by number";
INSERT INTO orders (doc) VALUES ('{_id: 200, order_id: "Z", user_id: "zoe"}');
SELECT order_id, who FROM "Orders, by number" WHERE order_id = 'Z'::text;
SELECT query_table_read('"Orders, by number"', 'Z');

-- Its end: the table goes, or stays as an ordinary one.
SELECT pattern_disable('orders', 'newest'), pattern_disable('orders', 'by_order', keep_data => true);
SELECT to_regclass('newest'), count(*) FROM "Orders, by number";
DELETE FROM "Orders, by number";
TRUNCATE orders;
SELECT count(*) FROM orders_by_user;
DROP TABLE orders_by_user;
DROP TABLE orders, "Orders, by number", users CASCADE;
SELECT to_regclass('orders_by_user'), to_regclass('users_by_email');
