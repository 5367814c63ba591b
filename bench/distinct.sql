-- Sketches of distinct values beside count(distinct), and how far off they are. The data are those of setseed(0.5).
SELECT setseed(0.5) \g /dev/null
SET max_parallel_workers_per_gather = 0;
SET work_mem = '64MB';
CREATE TEMP TABLE visits AS SELECT (random() * 1e6)::int AS visitor, md5((random() * 1e6)::int::text) AS cookie FROM generate_series(1, 10000 * :scale) i;
ANALYZE visits;
\echo
\echo 'distinct values                          count(d) ms  sketch ms   ratio    bar         spread of the ratio'
SELECT compare('distinct integers', 'infinity', 'SELECT count(DISTINCT visitor) FROM visits', 'SELECT bson_distinct_count(bson_distinct_agg(visitor)) FROM visits');
SELECT compare('distinct texts', 0.3, 'SELECT count(DISTINCT cookie) FROM visits', 'SELECT bson_distinct_count(bson_distinct_agg(cookie)) FROM visits');
SELECT compare('the scan alone', 'infinity', 'SELECT count(DISTINCT visitor) FROM visits', 'SELECT count(visitor) FROM visits');
-- What adding costs: both without what the scan costs
SELECT line('adding integers, without the scan', base - scan, ours - scan, 0.3) FROM (SELECT cost('SELECT count(DISTINCT visitor) FROM visits', 5) AS base,
  cost('SELECT bson_distinct_count(bson_distinct_agg(visitor)) FROM visits', 5) AS ours, cost('SELECT count(visitor) FROM visits', 5) AS scan) c;
\echo
\echo 'error of sketches of one million values, 1,282 bytes each (bar: 0.027)'
SELECT format('sets %s, root mean square error %s, mean %s', count(*), round(sqrt(avg(power(n / (10000.0 * :scale) - 1, 2))), 4), round(avg(n / (10000.0 * :scale) - 1), 4))
  || result('error of a sketch, root mean square', sqrt(avg(power(n / (10000.0 * :scale) - 1, 2)))::float8, 0.027)
FROM (SELECT bson_distinct_count(bson_distinct_agg(s * 100000000::bigint + i)) AS n FROM generate_series(1, 40) s, generate_series(1, 10000 * :scale) i GROUP BY s) q;
RESET max_parallel_workers_per_gather;
RESET work_mem;
DROP TABLE visits;
