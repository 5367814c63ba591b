-- Single tables: users and their orders in one table, under keys that are computed from templates.
\set VERBOSITY terse
SET timezone = 'UTC';
SET client_min_messages = warning;

SELECT single_table_create('app', indexes => 1, ttl_field => 'expires');
SELECT single_table_entity('app', 'user', pk => 'USER#{user_id}', sk => 'PROFILE');
SELECT single_table_entity('app', 'order', pk => 'USER#{user_id}', sk => 'ORDER#{order_id:04}', gsi1_pk => 'STATUS#{status}', gsi1_sk => '{date}');
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'app'::regclass AND attnum > 0 ORDER BY attnum;
SELECT rel, pattern, name, options FROM pattern_list('app');

-- Items are put by their entity, and have their keys in front.
SELECT single_table_put('app', 'user', '{user_id: 123, name: "Peter"}');
SELECT single_table_put('app', 'order', '{user_id: 123, order_id: 7, total: 99.99, date: "2024-01-15", status: "paid"}');
SELECT single_table_put('app', 'order', '{user_id: 123, order_id: 10, total: 149.50, date: "2024-01-10"}');
-- Plain SQL does the same: by the entity that the document names, by the view of the entity, or by the keys alone.
INSERT INTO app (doc) VALUES ('{entity: "order", user_id: 123, order_id: 11, status: "open", date: "2024-02-01"}');
INSERT INTO app_order (doc) VALUES ('{user_id: 124, order_id: 12, status: "paid", date: "2024-01-01"}');
INSERT INTO app (doc) VALUES ('{PK: "USER#125", SK: "ORDER#0013", total: 1}');
INSERT INTO app (doc) VALUES ('{PK: "CONFIG", SK: "v1", GSI1PK: "STATUS#paid", GSI1SK: "0"}');
SELECT pk, sk, entity, gsi1_pk, gsi1_sk FROM app ORDER BY pk, sk;
SELECT doc FROM app WHERE pk IN ('USER#125', 'CONFIG') ORDER BY pk;

-- One query brings the user with the orders.
SELECT single_table_query('app', pk => 'USER#123');
SELECT single_table_query('app', pk => 'USER#123', sk_begins_with => 'ORDER#', descending => true, take => 1, fields => '{order_id: 1, total: 1}');
SELECT q ->> 'SK' FROM single_table_query('app', pk => 'USER#123', sk_between => '{ORDER#0007,ORDER#0010}') q;
SELECT q ->> 'SK' FROM single_table_query('app', pk => 'USER#123', sk_op => '>', sk => 'ORDER#0007', filter => '{total: {$exists: true}}') q;
SELECT q ->> 'PK', q ->> 'SK' FROM single_table_query('app', pk => 'STATUS#paid', index => 1) q;
-- Page after page: the last document of a page is the cursor.
SELECT q AS last FROM single_table_query('app', pk => 'STATUS#paid', index => 1, take => 2) q OFFSET 1 \gset
SELECT q ->> 'PK', q ->> 'SK' FROM single_table_query('app', pk => 'STATUS#paid', index => 1, after => :'last') q;
EXPLAIN (COSTS OFF) SELECT doc FROM app WHERE pk = 'USER#123' AND sk >= 'ORDER#' AND sk < 'ORDER$' ORDER BY sk;

-- Separators inside of values are escaped, so no key is the beginning of another by accident.
SELECT single_table_put('app', 'user', '{user_id: "1#2%", name: "Mallory"}');
SELECT single_table_key('app', 'user', '{user_id: "1#2%"}');
SELECT single_table_get('app', 'USER#1%232%25', 'PROFILE', '{name: 1}');
INSERT INTO app (doc) VALUES ('{PK: "USER#9%23", SK: "PROFILE"}') RETURNING doc ->> 'user_id';
-- Numbers are alike whatever their type is; those with zeros in front have a number of digits.
SELECT single_table_key('app', 'order', '{user_id: 1.50, order_id: 7.0}'), single_table_key('app', 'order', '{user_id: {"$numberDecimal": "1.500"}, order_id: {"$numberLong": "7"}}');
SELECT single_table_put('app', 'order', '{user_id: 1, order_id: 12345}');
SELECT single_table_put('app', 'user', '{user_id: ""}');
SELECT single_table_put('app', 'user', '{name: "nobody"}');
SELECT single_table_put('app', 'user', '{user_id: {a: 1}}');
INSERT INTO app (doc) VALUES ('{name: "nobody"}');

-- Conditions are filters of the item that is there.
SELECT single_table_put('app', 'user', '{user_id: 123, name: "Paul"}', condition => '{PK: {$exists: false}}');
SELECT single_table_update('app', 'USER#123', 'ORDER#0007', '{$set: {status: "sent"}, $inc: {version: 1}}', condition => '{status: "paid"}');
SELECT single_table_update('app', 'USER#123', 'ORDER#0007', '{$set: {status: "lost"}}', condition => '{status: "paid"}');
SELECT single_table_update('app', 'USER#123', 'ORDER#9999', '{$set: {status: "lost"}}');
SELECT single_table_update('app', 'USER#123', 'CART', '{$set: {items: 1}}', upsert => true);
SELECT single_table_delete('app', 'USER#123', 'CART', condition => '{items: {$gt: 1}}');
SELECT single_table_delete('app', 'USER#123', 'CART', condition => '{items: 1}');

-- What there was, what there is now, or only what the update names; "none" where nobody looks at it.
SELECT single_table_update('app', 'USER#123', 'ORDER#0007', '{$inc: {version: 1}, $set: {"ship.city": "Aarhus"}}', return_values => 'updated_new');
SELECT single_table_update('app', 'USER#123', 'ORDER#0007', '{$inc: {version: 1}, $unset: {"ship.city": ""}}', return_values => 'updated_old');
SELECT single_table_put('app', 'user', '{user_id: 123, name: "Paula"}', return_values => 'all_old');
SELECT single_table_put('app', 'user', '{user_id: 123, name: "Peter"}', return_values => 'none');
SELECT single_table_put('app', 'user', '{user_id: 123, name: "Peter"}', return_values => 'updated_old');
-- How many there are, without reading them.
SELECT single_table_query('app', pk => 'USER#123', sk_begins_with => 'ORDER#', count_only => true);

-- Several operations, all or none.
SELECT single_table_transact('app', '[
  {"put": {"entity": "order", "doc": {"user_id": 123, "order_id": 20}, "condition": {"PK": {"$exists": false}}}},
  {"update": {"PK": "USER#123", "SK": "PROFILE", "update": {"$inc": {"orders": 1}}}},
  {"check": {"PK": "USER#123", "SK": "ORDER#0007", "condition": {"status": "sent"}}},
  {"delete": {"PK": "USER#123", "SK": "ORDER#0011"}}]');
SELECT single_table_transact('app', '[
  {"put": {"entity": "order", "doc": {"user_id": 123, "order_id": 21}}},
  {"check": {"PK": "USER#123", "SK": "PROFILE", "condition": {"orders": 7}}}]');
-- Many puts and deletes, without conditions.
SELECT single_table_batch_write('app', '[
  {"put": {"entity": "user", "doc": {"user_id": 300}}}, {"put": {"doc": {"PK": "USER#301", "SK": "PROFILE"}}},
  {"delete": {"PK": "USER#302", "SK": "PROFILE"}}]');
SELECT single_table_batch_write('app', '[{"delete": {"PK": "USER#300", "SK": "PROFILE"}}, {"delete": {"PK": "USER#301", "SK": "PROFILE"}}]');
SELECT single_table_batch_get('app', '[{"PK": "USER#123", "SK": "PROFILE"}, {"PK": "USER#123", "SK": "ORDER#0021"}, {"PK": "USER#123", "SK": "ORDER#0020"}]', '{entity: 1, orders: 1}');

-- What has expired is gone at once, though its row is still there.
SELECT single_table_put('app', 'user', bson_build('user_id', 'old', 'expires', extract(epoch FROM now())::bigint - 1)) IS NOT NULL AS put,
       single_table_put('app', 'user', bson_build('user_id', 'new', 'expires', now() + interval '1 hour')) IS NOT NULL AS put;
SELECT single_table_get('app', 'USER#old', 'PROFILE'), single_table_get('app', 'USER#new', 'PROFILE') IS NOT NULL AS present;
SELECT pk FROM app_user WHERE pk IN ('USER#old', 'USER#new');
SELECT single_table_purge('app'), count(*) FROM app WHERE pk = 'USER#old';
SELECT count(*) FROM app WHERE pk = 'USER#old';

-- The keys follow the fields; a template that changes moves all items of the entity.
UPDATE app SET doc = bson_set(doc, 'user_id', 126) WHERE pk = 'USER#125';
UPDATE app_order SET doc = bson_set(doc, 'entity', 'user') WHERE pk = 'USER#126';
SELECT pk, sk FROM app WHERE pk = 'USER#126';
SELECT single_table_entity('app', 'order', pk => 'USER#{user_id}', sk => 'O-{order_id:06}-{date}', gsi1_pk => 'STATUS#{status}', gsi1_sk => '{date}');
UPDATE app SET doc = bson_set(doc, 'date', '2024-09-09') WHERE entity = 'order' AND NOT doc ? 'date';
SELECT single_table_entity('app', 'order', pk => 'USER#{user_id}', sk => 'O-{order_id:06}-{date}', gsi1_pk => 'STATUS#{status}', gsi1_sk => '{date}');
SELECT pk, sk, gsi1_pk FROM app WHERE entity = 'order' ORDER BY pk, sk;
SELECT * FROM pattern_check('app');

SET docpatterns.maintain = off;
UPDATE app SET sk = 'wrong' WHERE pk = 'USER#124';
RESET docpatterns.maintain;
SELECT key, what, expected, found FROM pattern_check('app');
SELECT pattern_repair('app');
SELECT * FROM pattern_check('app');
SELECT pattern_alter('app', 'PK', '{indexes: 2, ttl_field: null}');
SELECT * FROM pattern_check('app');

-- The end: an ordinary table with all that was in it.
SELECT pattern_disable('app');
SELECT count(*) FROM app;
SELECT to_regclass('app_user');
DROP TABLE app;
