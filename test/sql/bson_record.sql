-- Documents become rows.
SET timezone = 'UTC';
\pset null NULL

-- The fields of a document, in order.
SELECT * FROM bson_each('{_id: 5, tags: ["a", "b"], at: ISODate("2024-01-01"), "": null}');
SELECT bson_keys('{b: 1, a: 2, b: 3}');

-- The elements of an array, with their positions if wanted.
SELECT * FROM bson_elements('[1, "two", {three: 3}, [4]]') WITH ORDINALITY AS e (value, n);
SELECT e::int * 2 AS twice FROM bson_elements('{a: [1, 2]}'::bson -> 'a') AS e;
SELECT count(*) FROM bson_elements('{a: null}'::bson -> 'a');
SELECT count(*) FROM bson_elements('{}'::bson -> 'a');
SELECT * FROM bson_elements('{a: 1}');
SELECT bson_elements('[1, 2, 3]') LIMIT 2;

-- One document for each element of an array.
SELECT * FROM bson_unwind('{_id: 1, item: "ABC", sizes: ["S", "M", "L"]}', 'sizes') AS u (doc);
SELECT * FROM bson_unwind('{_id: 1, a: {b: [10, [20], {c: 30}], z: 0}}', 'a.b', index_field => 'a.i') AS u (doc);
-- One value is an array of one; a field that is missing, null or empty gives nothing, unless it is asked for.
CREATE TABLE items (doc bson);
INSERT INTO items VALUES ('{_id: 1, s: ["S", "M"]}'), ('{_id: 2, s: []}'), ('{_id: 3, s: "M"}'), ('{_id: 4}'), ('{_id: 5, s: null}');
SELECT u.doc FROM items, bson_unwind(items.doc, 's') AS u (doc);
SELECT u.doc FROM items, bson_unwind(items.doc, 's', preserve_empty => true, index_field => 'n') AS u (doc);
SELECT bson_unwind('{a: [1]}', 'a..b');

-- A document fills a row: strictly, and saying which field is wrong.
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN posint AS int CHECK (value > 0);
CREATE TYPE address AS (street text, zip varchar(5));
CREATE TABLE person (id posint, name text, mood mood, born date, height numeric(4, 2), seen timestamptz, home address, others address[],
                     matrix int[], tags varchar(3)[], extra jsonb, raw bson, any_value bson_value, wait interval);
SELECT * FROM bson_populate_record(NULL::person, '{id: 7, name: "Ada", mood: "ok", born: ISODate("1815-12-10"), height: 1.655, seen: ISODate("2024-01-01T10:00:00Z"),
  home: {street: "Main", zip: "12345"}, others: [{zip: "1"}, {street: "Side"}], matrix: [[1, 2], [3, 4]], tags: ["abc", null], extra: {a: [1]}, raw: {a: 1}, any_value: null,
  wait: "1 day", unknown: 5}') \gx
SELECT id, name, height FROM bson_populate_record(ROW(1, 'Old', NULL, NULL, 1.5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::person, '{name: "New", height: null}');
SELECT bson_populate_record(NULL::person, '{id: -1}');
SELECT bson_populate_record(NULL::person, '{id: 1.5}');
SELECT bson_populate_record(NULL::person, '{mood: "great"}');
SELECT bson_populate_record(NULL::person, '{born: "1815-12-10"}');
SELECT bson_populate_record(NULL::person, '{height: 1000}');
SELECT bson_populate_record(NULL::person, '{home: {zip: "123456"}}');
SELECT bson_populate_record(NULL::person, '{others: [{}, {zip: "123456"}]}');
SELECT bson_populate_record(NULL::person, '{tags: ["abcd"]}');
SELECT bson_populate_record(NULL::person, '{matrix: [[1, 2], [3]]}');
SELECT bson_populate_record(NULL::person, '{matrix: [[1, 2], 3]}');
SELECT bson_populate_record(NULL::person, '{raw: [1]}');
SELECT bson_populate_record(5, '{}');

-- Rows go out and come in again.
SELECT bson_populate_record(NULL::address, row_to_bson(ROW('Main', '12345')::address));

-- Without a type the query names the columns.
SELECT * FROM bson_to_record('{a: 1, b: {c: [1, 2]}, d: "x"}') AS r (a int, b bson, d text, e int);
SELECT r.* FROM items, bson_to_record(items.doc) AS r (_id int) ORDER BY 1;
SELECT * FROM bson_to_recordset('[{sku: "a", qty: 1}, {sku: "b"}]') AS r (sku text, qty int);
SELECT * FROM bson_populate_recordset(NULL::address, '[{zip: "1"}, {street: "Side"}]');
SELECT * FROM bson_to_recordset('[1]') AS r (a int);
SELECT * FROM bson_to_recordset('{a: 1}') AS r (a int);
SELECT bson_to_record('{a: 1}');

DROP TABLE person, items;
DROP TYPE mood, posint, address;
