-- Moving frames of $setWindowFields, from which rows are taken again, against the totals of just the rows that belong to them.
BEGIN;
SELECT plan(4);
SET LOCAL client_min_messages = warning;
\set seed 0.3141
SELECT diag('seed ' || :seed);
SELECT setseed(:seed) \g /dev/null

SELECT collection_create('r');
INSERT INTO r (doc)
  SELECT bson_build('_id', i, 't', i + i / 3, 'p', (random() * 3)::int, 'n', (random() * 20)::int, 'v', CASE (random() * 9)::int WHEN 0 THEN 'null'::bson_value
    WHEN 1 THEN to_bson(random() * 100) WHEN 2 THEN '"s"' WHEN 3 THEN to_bson(round((random() * 100)::numeric, 2)) ELSE to_bson((random() * 20)::int) END) FROM generate_series(1, 200) i;
\set fields '{a: {$sum: "$v"}, b: {$avg: "$v"}, c: {$max: "$v"}, d: {$push: "$v"}, e: {$stdDevPop: "$n"}, f: {$addToSet: "$v"}, g: {$firstN: {input: "$v", n: 2}}, h: {$median: {input: "$v", method: "approximate"}}, i: {$minN: {input: "$v", n: 2}}, j: {$last: "$v"}, k: {$count: {}}}'
CREATE TEMP TABLE frames AS SELECT n, mode, lo, lo + (random() * 5)::int AS hi
  FROM (SELECT n, CASE WHEN n < 5 THEN 'documents' ELSE 'range' END AS mode, (random() * 9)::int - 6 AS lo FROM generate_series(1, 8) AS n) AS f;
CREATE TEMP TABLE expected AS
  WITH n AS (SELECT doc, doc -> 'p' AS p, (doc -> 't')::int AS t, row_number() OVER (PARTITION BY doc -> 'p' ORDER BY doc -> 't') AS n FROM r)
  SELECT f.n, n.doc -> '_id' AS id, m.*
  FROM frames f CROSS JOIN n CROSS JOIN LATERAL (
    SELECT coalesce(docpatterns._accumulate(o.doc, :'fields', NULL ORDER BY o.n), docpatterns._accumulate_none(:'fields', NULL)) AS total,
           coalesce(docpatterns._integral(o.doc -> 't', o.doc -> 'n', 1 ORDER BY o.n), 'null') AS integral, regr_sxy((o.doc -> 'n')::float8, o.t) / nullif(count(*), 0) AS covariance
    FROM n o WHERE o.p = n.p AND CASE f.mode WHEN 'range' THEN o.t BETWEEN n.t + f.lo AND n.t + f.hi ELSE o.n BETWEEN n.n + f.lo AND n.n + f.hi END) AS m;
CREATE TEMP TABLE found AS
  SELECT f.n, d -> '_id' AS id, (SELECT bson_object_agg(key, d -> key) FROM bson_each(:'fields')) AS total, d -> 'integral' AS integral, (d -> 'covariance')::float8 AS covariance
  FROM frames f CROSS JOIN LATERAL (SELECT bson_build('window', bson_build(f.mode, bson_array(f.lo, f.hi))) AS w) AS w
  CROSS JOIN LATERAL (SELECT bson_object_agg(key, value::bson || w) || bson_build('integral', bson '{$integral: {input: "$n"}}' || w, 'covariance', bson '{$covariancePop: ["$t", "$n"]}' || w) AS output FROM bson_each(:'fields')) AS o
  CROSS JOIN LATERAL collection_aggregate('r', bson_array(bson_build('$setWindowFields', bson_build('partitionBy', '$p', 'sortBy', bson '{t: 1}', 'output', output)))) AS d;
SELECT is((SELECT count(*) FROM found), 1600::bigint, 'each frame has a result for each document');
SELECT is_empty($$SELECT n, id, f.total, e.total FROM found f JOIN expected e USING (n, id) WHERE f.total::bytea IS DISTINCT FROM e.total::bytea$$, 'accumulators');
SELECT is_empty($$SELECT n, id, f.integral, e.integral FROM found f JOIN expected e USING (n, id) WHERE f.integral::text IS DISTINCT FROM e.integral::text$$, 'integrals');
SELECT is_empty($$SELECT n, id, f.covariance, e.covariance FROM found f JOIN expected e USING (n, id) WHERE abs(f.covariance - e.covariance) > 1e-9 OR (f.covariance IS NULL) <> (e.covariance IS NULL)$$, 'covariances');
SELECT * FROM finish();
ROLLBACK;
