-- Ordering, equality and comparison with SQL values

\pset null '(null)'
SET timezone = 'UTC';

-- Values of all types have one order, MongoDB's: first by class of type, then by value.
SELECT v AS "from the least to the greatest"
FROM unnest(ARRAY['"b"', 'true', '{"a": 1}', 'null', '5', '{"$maxKey": 1}', '[1, 2]', '"a"', '{"$oid": "5f0000000000000000000001"}', '2.5',
                  '{"$date": "2020-01-01T00:00:00Z"}', '{"$minKey": 1}', '{"$undefined": true}', '{"$numberDouble": "NaN"}', '{"$binary": {"base64": "AQID", "subType": "00"}}',
                  '{"$timestamp": {"t": 1, "i": 2}}', '{"$regularExpression": {"pattern": "a", "options": ""}}', '{"$code": "f()"}']::bson_value[]) v
ORDER BY v;

-- Numbers compare by value, whatever type they have, and exactly.
SELECT '1'::bson_value = '1.0' AS same,
       '{"$numberLong": "9007199254740993"}'::bson_value > '9007199254740992.0' AS "2^53+1 > 2^53",
       '{"$numberDecimal": "0.1"}'::bson_value < '0.1' AS "decimal 0.1 < double 0.1",
       '0'::bson_value = '-0.0' AS zeros;

-- Documents compare field by field: type, then name, then value. The order of fields counts.
SELECT doc FROM unnest(ARRAY['{"b": 1}', '{"a": 2, "b": 1}', '{"a": 2}', '{"a": "x"}', '{}', '{"a": 1}']::bson[]) doc ORDER BY doc;
SELECT '{"a": 1, "b": 2}'::bson = '{"a": 1.0, "b": {"$numberDecimal": "2.00"}}' AS "equal numbers", '{"a": 1, "b": 2}'::bson = '{"b": 2, "a": 1}' AS "other order";

-- So whole documents and fields can be grouped, made distinct, joined and constrained.
CREATE TABLE orders (doc bson);
INSERT INTO orders SELECT bson_build('_id', i, 'status', CASE i % 3 WHEN 0 THEN 'shipped' ELSE 'open' END, 'price', i / 2.0::float8,
                                     'when', timestamptz '2024-01-01' + i * interval '1 hour', 'customer', i % 50)
FROM generate_series(1, 2000) i;
INSERT INTO orders VALUES ('{"_id": 2001, "price": "on request", "status": null}'), ('{"_id": 2002}');
SELECT doc -> 'status' AS status, count(*) FROM orders GROUP BY doc -> 'status' ORDER BY doc -> 'status';

-- Beside a bson_value an SQL value means what it says. An index on the field serves the condition.
CREATE INDEX orders_price ON orders ((doc -> 'price'));
CREATE INDEX orders_when ON orders ((doc -> 'when'));
CREATE INDEX orders_status ON orders ((doc -> 'status'));
CREATE INDEX orders_customer ON orders USING hash ((doc -> 'customer'));
VACUUM ANALYZE orders;
SET enable_seqscan = off; SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM orders WHERE doc -> 'price' > 990;
SELECT count(*) FROM orders WHERE doc -> 'price' > 990;
-- The string and the absent price are there, too: strings come after numbers, and what is absent is SQL's NULL.
SELECT count(*) FROM orders WHERE doc -> 'price' > 990 AND doc -> 'price' < 1e9;
EXPLAIN (COSTS OFF) SELECT count(*) FROM orders WHERE 10.5 <= doc -> 'price' AND doc -> 'price' < 12::float8;
SELECT doc -> 'price' AS price FROM orders WHERE 10.5 <= doc -> 'price' AND doc -> 'price' < 12::float8;
SELECT doc -> 'price' AS price FROM orders WHERE doc -> 'price' IN (1, 2, 3) ORDER BY doc -> 'price';

-- A parameter does as well as a constant.
SET plan_cache_mode = force_generic_plan;
PREPARE between_prices(numeric, float8) AS SELECT doc -> 'price' AS price FROM orders WHERE $1 <= doc -> 'price' AND doc -> 'price' < $2;
EXPLAIN (COSTS OFF) EXECUTE between_prices(10.5, 12);
EXECUTE between_prices(10.5, 12);
EXECUTE between_prices(999.99999999999999999999999999999999999999999, 'infinity');
DEALLOCATE between_prices;
RESET plan_cache_mode;
EXPLAIN (COSTS OFF) SELECT 1 FROM orders WHERE doc -> 'price' = ANY ('{1.5, 3.0, NaN}'::numeric[]);
SELECT doc -> 'price' AS price FROM orders WHERE doc -> 'price' = ANY ('{3.0, 1.5, NaN, 3.00}'::numeric[]) ORDER BY doc -> 'price';
EXPLAIN (COSTS OFF) SELECT doc -> 'when' AS "when" FROM orders WHERE doc -> 'when' < '2024-01-01 03:00:00.000001'::timestamptz;
SELECT doc -> 'when' AS "when" FROM orders WHERE doc -> 'when' < '2024-01-01 03:00:00.000001'::timestamptz;
SELECT count(*) FROM orders WHERE doc -> 'when' >= date '2024-03-24';

-- Text is data; a literal without a type is Extended JSON, as with jsonb.
EXPLAIN (COSTS OFF) SELECT count(*) FROM orders WHERE doc -> 'status' = 'shipped'::text;
SELECT count(*) FROM orders WHERE doc -> 'status' = 'shipped'::text;
SELECT count(*) FROM orders WHERE doc -> 'status' = '"shipped"';
SELECT count(*) FROM orders WHERE doc -> 'status' = 'shipped';
SELECT count(*) FROM orders WHERE doc -> 'status' = ANY (ARRAY['shipped', 'lost']);

-- The planner knows that a field that equals a constant has one value: the index gives the order of the next one.
CREATE TABLE archive AS SELECT doc FROM orders;
CREATE INDEX archive_status_price ON archive ((doc -> 'status'), (doc -> 'price'));
EXPLAIN (COSTS OFF) SELECT doc FROM archive WHERE doc -> 'status' = 'shipped'::text ORDER BY doc -> 'price' LIMIT 1;
SELECT doc -> 'price' AS price FROM archive WHERE doc -> 'status' = 'shipped'::text ORDER BY doc -> 'price' LIMIT 1;
DROP INDEX archive_status_price;
-- And that one condition implies another: a partial index can be used.
CREATE INDEX archive_dear ON archive ((doc -> '_id')) WHERE doc -> 'price' > 900;
EXPLAIN (COSTS OFF) SELECT count(*) FROM archive WHERE doc -> '_id' > 1990 AND doc -> 'price' >= 990.5;
SELECT count(*) FROM archive WHERE doc -> '_id' > 1990 AND doc -> 'price' >= 990.5;
DROP TABLE archive;

-- A hash index serves equality with SQL values too.
EXPLAIN (COSTS OFF) SELECT count(*) FROM orders WHERE doc -> 'customer' = 7::int8;
SELECT count(*) FROM orders WHERE doc -> 'customer' = 7::int8;

-- An index gives the order, and the least and greatest value.
EXPLAIN (COSTS OFF) SELECT doc -> 'price' FROM orders ORDER BY doc -> 'price' DESC LIMIT 2;
SELECT doc -> 'price' AS price FROM orders WHERE doc -> 'price' IS NOT NULL ORDER BY doc -> 'price' DESC LIMIT 2;
SELECT min(doc -> 'price'), max(doc -> 'price'), sum(doc -> 'price'), avg(doc -> 'price') FROM orders;
RESET enable_seqscan; RESET enable_bitmapscan;

-- Fields join with columns of SQL types, by hashing.
CREATE TABLE customers (id int8 PRIMARY KEY, name text);
INSERT INTO customers SELECT i, 'customer ' || i FROM generate_series(1, 40) i;
ANALYZE customers;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM orders JOIN customers ON doc -> 'customer' = id;
SELECT count(*) FROM orders JOIN customers ON doc -> 'customer' = id;
SELECT count(*) FROM orders LEFT JOIN customers ON id = doc -> 'customer' WHERE id IS NULL;
SELECT count(*) FROM orders WHERE doc -> 'customer' IN (SELECT id FROM customers WHERE id < 11);
SELECT count(*) FROM orders WHERE doc -> 'customer' NOT IN (SELECT id FROM customers);
SELECT count(*) FROM customers WHERE name IN (SELECT doc -> 'name' FROM orders);
SELECT count(*) FROM customers WHERE id IN (SELECT doc -> 'customer' FROM orders);
RESET enable_nestloop;

-- Equal documents collide where they have to be unique.
CREATE TABLE shapes (doc bson UNIQUE);
INSERT INTO shapes VALUES ('{"sides": 4}'), ('{"sides": 5}');
INSERT INTO shapes VALUES ('{"sides": 4.0}');
INSERT INTO shapes VALUES ('{"sides": 4.0}') ON CONFLICT DO NOTHING;

-- The rest of the database is as strict as before.
SELECT 1 = 'a'::text;

DROP TABLE orders, customers, shapes;
