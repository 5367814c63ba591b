-- Pipelines beside those of DocumentDB: the same documents, in one server that has both extensions.
DROP TABLE IF EXISTS orders, customers, photos;
SELECT collection_create('orders'), collection_create('customers'), collection_create('photos') \g /dev/null
SELECT set_config('bench.orders', (10000 * current_setting('bench.scale')::int)::text, false) \g /dev/null
INSERT INTO customers (doc)
  SELECT bson_build('_id', i, 'name', 'customer ' || i, 'city', 'city ' || i % 100, 'invited_by', nullif(i / 3, i))
    FROM generate_series(0, current_setting('bench.orders')::int / 10 - 1) AS i;
INSERT INTO orders (doc)
  SELECT bson_build('_id', i, 'customer', i::bigint * 7919 % (current_setting('bench.orders')::int / 10), 'at', i, 'status', 'status ' || i % 20,
      'amount', i % 1000, 'note', repeat('x', 100), 'items', bson_array(bson_build('sku', i % 100, 'n', i % 7), bson_build('sku', i % 90, 'n', i % 3)))
    FROM generate_series(1, current_setting('bench.orders')::int) AS i;
-- what does not compress, and is stored out of line
INSERT INTO photos (doc)
  SELECT bson_build('_id', i, 'tag', i % 1000, 'pixels', (SELECT string_agg(sha256((i || ' ' || n)::bytea), '') FROM generate_series(1, 200) AS n))
    FROM generate_series(1, current_setting('bench.orders')::int / 50) AS i;
SELECT collection_create_index('orders', '{at: 1}'), collection_create_index('photos', '{tag: 1}') \g /dev/null

-- The same in DocumentDB, whose rows have the key as a document with one field without a name
CREATE OR REPLACE PROCEDURE copy_documents(name text) LANGUAGE plpgsql AS $$
DECLARE
  id bigint;
BEGIN
  PERFORM documentdb_api.drop_collection('bench', name);
  PERFORM documentdb_api.create_collection('bench', name);
  SELECT collection_id INTO id FROM documentdb_api_catalog.collections WHERE database_name = 'bench' AND collection_name = name;
  EXECUTE format('INSERT INTO documentdb_data.documents_%s (shard_key_value, object_id, document)
    SELECT %s, bson_build('''', doc -> ''_id'')::bytea::documentdb_core.bson, doc::bytea::documentdb_core.bson FROM %I', id, id, name);
END $$;
CREATE OR REPLACE FUNCTION create_index(name text, field text) RETURNS void LANGUAGE sql AS $$
  SELECT documentdb_api_internal.create_indexes_non_concurrently('bench', bson_build('createIndexes', name, 'indexes',
    bson_array(bson_build('key', bson_build(field, 1), 'name', field)))::bytea::documentdb_core.bson, true) $$;
CALL copy_documents('orders');
CALL copy_documents('customers');
CALL copy_documents('photos');
SELECT create_index('orders', 'at'), create_index('photos', 'tag') \g /dev/null
VACUUM ANALYZE;

-- A pipeline there and here
CREATE OR REPLACE FUNCTION compare_pipeline(name text, rel regclass, stages bson_value) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT compare(name, 1, format('SELECT count(document) FROM (SELECT document FROM documentdb_api_catalog.bson_aggregation_pipeline(''bench'', %L::documentdb_core.bson)) AS r',
      bson_to_json(bson_build('aggregate', rel::text, 'pipeline', stages, 'cursor', '{}'::bson), 'canonical')),
    format('SELECT count(doc) FROM (SELECT doc FROM (%s) AS x OFFSET 0) AS r', collection_aggregate_sql(rel, stages))) $$;
\echo
\echo 'pipeline                           DocumentDB ms      ms   ratio    bar'
SELECT compare_pipeline('$match, $group', 'orders', '[{$match: {amount: {$gte: 100}}}, {$group: {_id: "$status", total: {$sum: "$amount"}, n: {$sum: 1}}}]');
SELECT compare_pipeline('$group, many', 'orders', '[{$group: {_id: "$customer", total: {$sum: "$amount"}}}]');
SELECT compare_pipeline('$sort, $limit, index', 'orders', '[{$sort: {at: -1}}, {$limit: 1000}]');
SELECT compare_pipeline('$lookup by key', 'orders', '[{$limit: 10000}, {$lookup: {from: "customers", localField: "customer", foreignField: "_id", as: "c"}}]');
SELECT compare_pipeline('$lookup, $unwind', 'orders', '[{$limit: 10000}, {$lookup: {from: "customers", localField: "customer", foreignField: "_id", as: "c"}}, {$unwind: "$c"}]');
SELECT compare_pipeline('$unwind, $group', 'orders', '[{$unwind: "$items"}, {$group: {_id: "$items.sku", n: {$sum: "$items.n"}}}]');
SELECT compare_pipeline('$facet of three', 'orders', '[{$match: {at: {$lte: 10000}}}, {$facet: {a: [{$group: {_id: "$status", n: {$sum: 1}}}], b: [{$match: {amount: 5}}, {$count: "n"}], c: [{$sort: {amount: -1}}, {$limit: 5}]}}]');
SELECT compare_pipeline('$graphLookup', 'customers', '[{$match: {_id: {$gte: 0, $lt: 100}}}, {$graphLookup: {from: "customers", startWith: "$invited_by", connectFromField: "invited_by", connectToField: "_id", as: "chain"}}]');
SELECT compare_pipeline('$setWindowFields', 'orders', '[{$setWindowFields: {partitionBy: "$status", sortBy: {at: 1}, output: {r: {$sum: "$amount", window: {documents: [-10, 0]}}}}}]');
SELECT compare_pipeline('$mergeObjects of 1,000', 'orders', '[{$limit: 1000}, {$group: {_id: "$status", all: {$mergeObjects: "$$ROOT"}}}]');
SELECT compare_pipeline('$mergeObjects of 5,000', 'orders', '[{$limit: 5000}, {$group: {_id: "$status", all: {$mergeObjects: "$$ROOT"}}}]');
SELECT compare_pipeline('$mergeObjects of 20,000', 'orders', '[{$limit: 20000}, {$group: {_id: "$status", all: {$mergeObjects: "$$ROOT"}}}]');
SELECT compare_pipeline('$match of incompressible documents', 'photos', '[{$match: {tag: 77}}]');
DROP TABLE orders, customers, photos;
