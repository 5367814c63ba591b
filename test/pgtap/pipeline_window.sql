-- Stages of pipelines that make buckets and windows. Results are those that MongoDB gives.
BEGIN;
SELECT plan(20);
SET LOCAL client_min_messages = warning;

SELECT collection_create('w');
INSERT INTO w (doc) SELECT bson_build('_id', i, 'x', i, 'g', i % 2, 'at', timestamptz '2024-01-31 00:00Z' + i * interval '1 day')
  FROM generate_series(1, 7) i;
CREATE FUNCTION pg_temp.run(pipeline text) RETURNS text LANGUAGE sql AS
  $$SELECT string_agg(d::text, e'\n' ORDER BY n) FROM collection_aggregate('w', ('{p: ' || pipeline || '}')::bson -> 'p') WITH ORDINALITY AS a (d, n)$$;
-- The fields of all documents in the order of their _id: [[1, ..], [2, ..]] without blanks
CREATE FUNCTION pg_temp.field(pipeline text, field text) RETURNS text LANGUAGE sql AS
  $$SELECT string_agg(coalesce((d -> field)::text, '-'), ' ' ORDER BY d -> '_id') FROM collection_aggregate('w', ('{p: ' || pipeline || '}')::bson -> 'p') AS a (d)$$;

-- $bucket
SELECT is(pg_temp.run('[{$bucket: {groupBy: "$x", boundaries: [0, 3, 6]  , default: "other", output: {n: {$sum: 1}, xs: {$push: "$x"}}}}]'),
  e'{"_id": 0, "n": 2, "xs": [1, 2]}\n{"_id": 3, "n": 3, "xs": [3, 4, 5]}\n{"_id": "other", "n": 2, "xs": [6, 7]}', 'buckets are half-open');
SELECT is(pg_temp.run('[{$bucket: {groupBy: "$x", boundaries: [0.0, 10], output: {xs: {$sum: "$x"}}}}]'),
  '{"_id": 0.0, "xs": 28}', 'the ID is the boundary');
SELECT is(pg_temp.run('[{$bucket: {groupBy: "$none", boundaries: [0, 10], default: -1}}]'), '{"_id": -1, "count": 7}', 'what is missing is in the default');
SELECT throws_ok($$SELECT pg_temp.run('[{$bucket: {groupBy: "$x", boundaries: [0, 3]}}]')$$, '22023', '$bucket has no bucket for a value outside of its boundaries');
SELECT throws_ok($$SELECT pg_temp.run('[{$bucket: {groupBy: "$x", boundaries: [3, 3]}}]')$$, '22023', 'boundaries must be in ascending order');
SELECT throws_ok($$SELECT pg_temp.run('[{$bucket: {groupBy: "$x", boundaries: [3, "a"]}}]')$$, '22023', 'boundaries must have the same type, not int and string');
SELECT throws_ok($$SELECT pg_temp.run('[{$bucket: {groupBy: "$x", boundaries: [3, 5], default: 4}}]')$$, '22023', 'the default of $bucket must not be between its boundaries');
SELECT throws_ok($$SELECT pg_temp.run('[{$bucket: {groupBy: "x", boundaries: [3, 5]}}]')$$, '22023', 'groupBy of $bucket must be an expression');

-- $bucketAuto
SELECT is(pg_temp.run('[{$bucketAuto: {groupBy: "$x", buckets: 2}}]'),
  e'{"_id": {"min": 1, "max": 5}, "count": 4}\n{"_id": {"min": 5, "max": 7}, "count": 3}', 'the last bucket gets what is left');
SELECT is(pg_temp.run('[{$bucketAuto: {groupBy: {$mod: ["$x", 3]}, buckets: 3, output: {xs: {$push: "$x"}}}}]'),
  e'{"_id": {"min": 0, "max": 1}, "xs": [3, 6]}\n{"_id": {"min": 1, "max": 2}, "xs": [1, 4, 7]}\n{"_id": {"min": 2, "max": 2}, "xs": [2, 5]}', 'equal values stay together');
SELECT is(pg_temp.run('[{$bucketAuto: {groupBy: {$pow: [10, {$subtract: ["$x", 1]}]}, buckets: 3, granularity: "R5"}}]'),
  e'{"_id": {"min": 0.63, "max": 16.0}, "count": 2}\n{"_id": {"min": 16.0, "max": 1600.0}, "count": 2}\n{"_id": {"min": 1600.0, "max": 1600000.0}, "count": 3}', 'R5');
SELECT is(pg_temp.run('[{$bucketAuto: {groupBy: "$x", buckets: 2, granularity: "POWERSOF2"}}]'),
  e'{"_id": {"min": 0.5, "max": 8}, "count": 7}', 'powers of two: a bucket takes what is below its boundary');
SELECT is(pg_temp.run('[{$bucketAuto: {groupBy: {$subtract: ["$x", 1]}, buckets: 7, granularity: "1-2-5"}}, {$limit: 2}]'),
  e'{"_id": {"min": 0, "max": 0.5}, "count": 1}\n{"_id": {"min": 0.5, "max": 2.0}, "count": 1}', 'zero has a bucket of its own');
SELECT is(pg_temp.run(format('[{$match: {x: 1}}, {$bucketAuto: {groupBy: "$x", buckets: 1, granularity: "%s"}}]', g)), r, g)
  FROM (VALUES ('E192', '{"_id": {"min": 0.988, "max": 1.01}, "count": 1}'), ('R80', '{"_id": {"min": 0.975, "max": 1.03}, "count": 1}')) AS v (g, r);
SELECT throws_ok($$SELECT pg_temp.run('[{$bucketAuto: {groupBy: {$subtract: [3, "$x"]}, buckets: 2, granularity: "E6"}}]')$$, '22023', '$bucketAuto with a granularity needs numbers of at least 0');
SELECT throws_ok($$SELECT pg_temp.run('[{$bucketAuto: {groupBy: {$toString: "$x"}, buckets: 2, granularity: "E6"}}]')$$, '22023', '$bucketAuto with a granularity needs numbers, not string');
SELECT throws_ok($$SELECT pg_temp.run('[{$bucketAuto: {groupBy: "$x", buckets: 2, granularity: "E7"}}]')$$, '22023', '$bucketAuto has no granularity "E7"');
SELECT throws_ok($$SELECT pg_temp.run('[{$bucketAuto: {groupBy: "$x", buckets: 2.5}}]')$$, '22023', 'expected a whole number of at least 1');
SELECT throws_ok($$SELECT pg_temp.run('[{$bucketAuto: {groupBy: "$x", buckets: 2, size: 1}}]')$$, '22023', '$bucketAuto has no option "size"');

SELECT * FROM finish();
ROLLBACK;
