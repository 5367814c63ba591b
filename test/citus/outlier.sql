-- The outlier pattern on a table that Citus distributes by key.
SET client_min_messages = warning;
SELECT plan(10);

CREATE FUNCTION numbers(n bigint) RETURNS bson_value LANGUAGE sql AS $$ SELECT coalesce((SELECT bson_agg(i ORDER BY i) FROM generate_series(1, n) i), '[]') $$;
CREATE TABLE books (_id bson_value PRIMARY KEY, doc bson);
SELECT create_distributed_table('books', '_id') \gset
SELECT outlier_enable('books', 'buyers', threshold => 5) \gset

SELECT results_eq($$SELECT count(DISTINCT colocationid), count(*) FROM pg_dist_partition WHERE partmethod = 'h'$$, 'VALUES (1::bigint, 2::bigint)', 'the side table is distributed with the table');

INSERT INTO books SELECT i, bson_build('_id', i, 'buyers', numbers(i)) FROM generate_series(1, 40) AS i;
SELECT is((SELECT max(bson_array_length(doc, 'buyers')) FROM books), 5, 'shards keep the threshold');
SELECT is((SELECT count(*) FROM books_buyers_extras), 35::bigint, 'shards write the elements beyond it to their own side table');
SELECT is((SELECT count(*) FROM books b JOIN books_buyers_extras e ON e.key = b._id), 35::bigint, 'rows and their extras are on the same server');
DELETE FROM books WHERE _id <= 10;
SELECT is((SELECT count(*) FROM books_buyers_extras), 30::bigint, 'extras are deleted with their documents');

SELECT is(outlier_count('books', 20), 20::bigint, 'a call reaches the shard of its key');
SELECT rebalance_table_shards('books', shard_transfer_mode => 'block_writes') \gset
SELECT citus_move_shard_placement(shardid, nodename, nodeport, (SELECT n.nodename FROM pg_dist_node n WHERE n.nodeport <> s.nodeport AND n.shouldhaveshards), (SELECT n.nodeport FROM pg_dist_node n WHERE n.nodeport <> s.nodeport AND n.shouldhaveshards), shard_transfer_mode => 'block_writes')
  FROM (SELECT shardid, nodename, nodeport FROM citus_shards WHERE table_name = 'books'::regclass ORDER BY shardid LIMIT 1) AS s \gset
SELECT is((SELECT count(*) FROM books b JOIN books_buyers_extras e ON e.key = b._id), 30::bigint, 'a moved shard takes them along');

SELECT results_eq('SELECT outlier_count(''books'', k) FROM generate_series(11, 40) AS k', 'SELECT generate_series(11, 40)::bigint', 'calls find the moved shard');
SELECT outlier_push('books', 20, 'x'::text) \gset
DROP TABLE books CASCADE;
CREATE TABLE books (_id bson_value PRIMARY KEY, doc bson);
SELECT create_distributed_table('books', '_id', shard_count => 3) \gset
SELECT outlier_enable('books', 'buyers', threshold => 5) \gset
INSERT INTO books SELECT i, bson_build('_id', i, 'buyers', numbers(i + 1)) FROM generate_series(1, 40) AS i;
SELECT results_eq('SELECT outlier_count(''books'', k) FROM generate_series(1, 40) AS k', 'SELECT generate_series(2, 41)::bigint', 'and those of another table with the name');

CREATE TABLE books_20240101 (_id bson_value PRIMARY KEY, doc bson);
SELECT outlier_enable('books_20240101', 'buyers', threshold => 5) \gset
INSERT INTO books_20240101 SELECT 1, bson_build('_id', 1, 'buyers', numbers(9));
SELECT results_eq('SELECT count(*) FROM books_20240101_buyers_extras', 'VALUES (1::bigint)', 'a table that is called like a shard is none');
