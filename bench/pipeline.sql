-- Pipelines beside the SQL that a person would write for them: over the same documents, and over jsonb. Each is run for its
-- effect only; the documents of the result are computed and counted.
DROP TABLE IF EXISTS orders, customers, orders_jsonb, customers_jsonb;
SELECT collection_create('orders'), collection_create('customers') \g /dev/null
SET bench.orders = 0;
SELECT set_config('bench.orders', (10000 * current_setting('bench.scale')::int)::text, false) \g /dev/null
CREATE TABLE orders_jsonb (_id int PRIMARY KEY, doc jsonb NOT NULL);
CREATE TABLE customers_jsonb (_id int PRIMARY KEY, doc jsonb NOT NULL);
INSERT INTO customers_jsonb SELECT i, jsonb_build_object('_id', i, 'name', 'customer ' || i, 'city', 'city ' || i % 100, 'invited_by', nullif(i / 3, i))
  FROM generate_series(0, current_setting('bench.orders')::int / 10 - 1) AS i;
INSERT INTO orders_jsonb SELECT i, jsonb_build_object('_id', i, 'customer', i::bigint * 7919 % (current_setting('bench.orders')::int / 10), 'at', i,
    'status', 'status ' || i % 20, 'amount', i % 1000, 'note', repeat('x', 100), 'items', jsonb_build_array(
      jsonb_build_object('sku', i % 100, 'n', i % 7), jsonb_build_object('sku', i % 90, 'n', i % 3)))
  FROM generate_series(1, current_setting('bench.orders')::int) AS i;
INSERT INTO customers (doc) SELECT doc::bson FROM customers_jsonb;
INSERT INTO orders (doc) SELECT doc::bson FROM orders_jsonb;
SELECT collection_create_index('orders', '{at: 1}'), collection_create_index('orders', '{customer: 1}') \g /dev/null
CREATE INDEX ON orders_jsonb ((doc -> 'at'));
CREATE INDEX ON orders_jsonb ((doc -> 'customer'));
VACUUM ANALYZE orders, customers, orders_jsonb, customers_jsonb;

-- The documents of a pipeline, as a query that collection_aggregate_sql() shows
CREATE OR REPLACE FUNCTION pipeline(rel regclass, stages bson_value) RETURNS text LANGUAGE sql AS $$
  SELECT format('SELECT count(doc) FROM (SELECT doc FROM (%s) AS x OFFSET 0) AS r', collection_aggregate_sql(rel, stages)) $$;
-- A pipeline beside the same over bson and over jsonb, by hand
CREATE OR REPLACE FUNCTION compare_pipeline(name text, rel regclass, stages bson_value, by_hand text, over_jsonb text) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT compare(name || ', to SQL on bson', 1.1, format('SELECT count(d) FROM (%s OFFSET 0) AS r (d)', by_hand), pipeline(rel, stages))
  UNION ALL
  SELECT compare(name || ', to jsonb', 1, format('SELECT count(d) FROM (%s OFFSET 0) AS r (d)', over_jsonb), pipeline(rel, stages)) $$;
\echo
\echo 'pipeline                                  SQL ms   bson ms   ratio    bar'
SELECT compare_pipeline('$match, $group', 'orders', '[{$match: {amount: {$gte: 100}}}, {$group: {_id: "$status", total: {$sum: "$amount"}, n: {$sum: 1}}}]',
  $$SELECT bson_build('_id', doc -> 'status', 'total', sum(doc -> 'amount'), 'n', count(*)) FROM orders WHERE doc @@ '{amount: {$gte: 100}}' GROUP BY doc -> 'status'$$,
  $$SELECT jsonb_build_object('_id', doc -> 'status', 'total', sum((doc -> 'amount')::int), 'n', count(*)) FROM orders_jsonb WHERE (doc -> 'amount')::int >= 100 GROUP BY doc -> 'status'$$);
SELECT compare_pipeline('$group, many', 'orders', '[{$group: {_id: "$customer", total: {$sum: "$amount"}}}]',
  $$SELECT bson_build('_id', doc -> 'customer', 'total', sum(doc -> 'amount')) FROM orders GROUP BY doc -> 'customer'$$,
  $$SELECT jsonb_build_object('_id', doc -> 'customer', 'total', sum((doc -> 'amount')::int)) FROM orders_jsonb GROUP BY doc -> 'customer'$$);
SELECT compare_pipeline('$sort, $limit, index', 'orders', '[{$sort: {at: -1}}, {$limit: 1000}]',
  $$SELECT doc FROM orders ORDER BY doc -> 'at' DESC NULLS LAST LIMIT 1000$$,
  $$SELECT doc FROM orders_jsonb ORDER BY doc -> 'at' DESC LIMIT 1000$$);
SELECT compare_pipeline('$lookup by key', 'orders', '[{$limit: 100000}, {$lookup: {from: "customers", localField: "customer", foreignField: "_id", as: "c"}}]',
  $$SELECT bson_set(o.doc, 'c', coalesce(bson_array(c.doc), '[]')) FROM (SELECT doc FROM orders LIMIT 100000) o LEFT JOIN customers c ON c._id = o.doc -> 'customer'$$,
  $$SELECT jsonb_set(o.doc, '{c}', jsonb_build_array(c.doc)) FROM (SELECT doc FROM orders_jsonb LIMIT 100000) o LEFT JOIN customers_jsonb c ON c._id = (o.doc -> 'customer')::int$$);
SELECT compare_pipeline('$lookup, $unwind', 'orders', '[{$limit: 100000}, {$lookup: {from: "customers", localField: "customer", foreignField: "_id", as: "c"}}, {$unwind: "$c"}]',
  $$SELECT bson_set(o.doc, 'c', c.doc) FROM (SELECT doc FROM orders LIMIT 100000) o JOIN customers c ON c._id = o.doc -> 'customer'$$,
  $$SELECT jsonb_set(o.doc, '{c}', c.doc) FROM (SELECT doc FROM orders_jsonb LIMIT 100000) o JOIN customers_jsonb c ON c._id = (o.doc -> 'customer')::int$$);
SELECT compare_pipeline('$unwind, $group', 'orders', '[{$unwind: "$items"}, {$group: {_id: "$items.sku", n: {$sum: "$items.n"}}}]',
  $$SELECT bson_build('_id', u -> 'sku', 'n', sum(u -> 'n')) FROM orders, bson_values(doc, 'items') AS u GROUP BY u -> 'sku'$$,
  $$SELECT jsonb_build_object('_id', u -> 'sku', 'n', sum((u -> 'n')::int)) FROM orders_jsonb, jsonb_array_elements(doc -> 'items') AS u GROUP BY u -> 'sku'$$);
SELECT compare_pipeline('$facet of three', 'orders', '[{$facet: {a: [{$group: {_id: "$status", n: {$sum: 1}}}], b: [{$match: {amount: 5}}, {$count: "n"}], c: [{$sort: {amount: -1}}, {$limit: 5}]}}]',
  $$SELECT * FROM (WITH i AS MATERIALIZED (SELECT doc FROM orders) SELECT bson_build('a', (SELECT bson_agg(d) FROM (SELECT bson_build('_id', doc -> 'status', 'n', count(*)) AS d FROM i GROUP BY doc -> 'status') x),
      'b', (SELECT count(*) FROM i WHERE doc @@ '{amount: 5}'), 'c', (SELECT bson_agg(doc) FROM (SELECT doc FROM i ORDER BY bson_sort_key(doc, '{amount: -1}') LIMIT 5) x))) y$$,
  $$SELECT * FROM (WITH i AS MATERIALIZED (SELECT doc FROM orders_jsonb) SELECT jsonb_build_object('a', (SELECT jsonb_agg(d) FROM (SELECT jsonb_build_object('_id', doc -> 'status', 'n', count(*)) AS d FROM i GROUP BY doc -> 'status') x),
      'b', (SELECT count(*) FROM i WHERE doc @> '{"amount": 5}'), 'c', (SELECT jsonb_agg(doc) FROM (SELECT doc FROM i ORDER BY doc -> 'amount' DESC LIMIT 5) x))) y$$);
SELECT compare_pipeline('$graphLookup', 'customers', '[{$match: {_id: {$gte: 0, $lt: 1000}}}, {$graphLookup: {from: "customers", startWith: "$invited_by", connectFromField: "invited_by", connectToField: "_id", as: "chain"}}]',
  $$SELECT bson_set(c.doc, 'chain', (WITH RECURSIVE g AS (SELECT x.doc FROM customers x WHERE x._id = c.doc -> 'invited_by' UNION SELECT x.doc FROM g JOIN customers x ON x._id = g.doc -> 'invited_by') SELECT coalesce(bson_agg(doc), '[]') FROM g)) FROM customers c WHERE _id >= 0 AND _id < 1000$$,
  $$SELECT jsonb_set(c.doc, '{chain}', (WITH RECURSIVE g AS (SELECT x.doc FROM customers_jsonb x WHERE x._id = (c.doc ->> 'invited_by')::int UNION SELECT x.doc FROM g JOIN customers_jsonb x ON x._id = (g.doc ->> 'invited_by')::int) SELECT coalesce(jsonb_agg(doc), '[]') FROM g)) FROM customers_jsonb c WHERE _id >= 0 AND _id < 1000$$);
SELECT compare_pipeline('$setWindowFields', 'orders', '[{$setWindowFields: {partitionBy: "$status", sortBy: {at: 1}, output: {r: {$sum: "$amount", window: {documents: [-10, 0]}}}}}]',
  $$SELECT bson_set(doc, 'r', sum(doc -> 'amount') OVER (PARTITION BY doc -> 'status' ORDER BY doc -> 'at' ROWS 10 PRECEDING)) FROM orders$$,
  $$SELECT jsonb_set(doc, '{r}', to_jsonb(sum((doc -> 'amount')::int) OVER (PARTITION BY doc -> 'status' ORDER BY doc -> 'at' ROWS 10 PRECEDING))) FROM orders_jsonb$$);
SELECT compare_pipeline('$group, $mergeObjects', 'customers', '[{$limit: 20000}, {$group: {_id: "$city", all: {$mergeObjects: "$$ROOT"}}}]',
  $$SELECT bson_build('_id', doc -> 'city', 'all', bson_merge_agg(doc)) FROM (SELECT doc FROM customers LIMIT 20000) x GROUP BY doc -> 'city'$$,
  $$SELECT jsonb_build_object('_id', doc -> 'city', 'all', jsonb_object_agg(k, v)) FROM (SELECT doc FROM customers_jsonb LIMIT 20000) x, jsonb_each(doc) AS e (k, v) GROUP BY doc -> 'city'$$);
SELECT bucket_create('readings', group_by => '{sensor}', time_field => 'ts', span => '1 hour', columns => 'sensor int, ts timestamptz, temperature float8, moisture int') \g /dev/null
INSERT INTO readings SELECT i % 100, timestamptz '2024-01-01 00:00+00' + i / 100 * interval '1 min', i % 97 / 4.0, i % 50 FROM generate_series(0, current_setting('bench.orders')::int - 1) AS i;
SELECT bucket_pack('readings') \g /dev/null
ANALYZE readings;
SELECT compare('$group over buckets, to SQL', 1.2, $$SELECT count(d) FROM (SELECT bson_build('_id', bson_build('s', sensor, 'h', bucket_start('1 hour', ts)), 'n', count(*)::int, 't', avg(temperature), 'm', sum(moisture)::int) AS d FROM readings GROUP BY sensor, bucket_start('1 hour', ts) OFFSET 0) AS r$$,
  pipeline('readings', '[{$group: {_id: {s: "$sensor", h: {$dateTrunc: {date: "$ts", unit: "hour"}}}, n: {$sum: 1}, t: {$avg: "$temperature"}, m: {$sum: "$moisture"}}}]'));
DROP FOREIGN TABLE readings;
SELECT compare('ten stages, compiled', 'infinity', 'SELECT 1', $$SELECT docpatterns._pipeline_statements('orders', '[{$match: {status: "x", at: {$gt: 5}}}, {$set: {a: {$add: ["$amount", 1]}}}, {$unwind: "$items"}, {$match: {"items.n": 3}}, {$group: {_id: "$status", n: {$sum: "$a"}}}, {$sort: {n: -1}}, {$limit: 10}, {$project: {n: 1}}, {$set: {x: 1}}, {$match: {n: {$gt: 3}}}]', NULL, NULL)$$);
DROP TABLE orders, customers, orders_jsonb, customers_jsonb;
