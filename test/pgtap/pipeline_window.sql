-- Stages of pipelines that make buckets and windows. Results are those that MongoDB gives.
BEGIN;
SELECT plan(118);
SET LOCAL client_min_messages = warning;

SELECT collection_create('w');
INSERT INTO w (doc) SELECT bson_build('_id', i, 'x', i, 'g', i % 2, 'at', timestamptz '2024-01-31 00:00Z' + i * interval '1 day')
  FROM generate_series(1, 7) i;
CREATE FUNCTION pg_temp.run(pipeline text) RETURNS text LANGUAGE sql AS
  $$SELECT string_agg(d::text, e'\n' ORDER BY n) FROM collection_aggregate('w', ('{p: ' || pipeline || '}')::bson -> 'p') WITH ORDINALITY AS a (d, n)$$;
-- A field of all documents in the order of their _id
CREATE FUNCTION pg_temp.field(pipeline text, field text) RETURNS text LANGUAGE sql AS
  $$SELECT string_agg(format('%s', d -> field), ' ' ORDER BY d -> '_id') FROM collection_aggregate('w', ('{p: ' || pipeline || '}')::bson -> 'p') AS a (d)$$;

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
CREATE FUNCTION pg_temp.wrong(pipeline text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE d text; BEGIN RETURN pg_temp.run(pipeline); EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS d = PG_EXCEPTION_DETAIL; RETURN d; END $$;
SELECT is(substring(pg_temp.wrong('[{' || stage || '}]') FROM '"(.*)"'), '0.' || path, 'the error names ' || path) FROM (VALUES
  ('$bucket: {groupBy: "$x", boundaries: 3}', '$bucket.boundaries'), ('$bucket: {groupBy: "$x", boundaries: [3]}', '$bucket.boundaries'),
  ('$bucket: {groupBy: "$x", boundaries: [3, 4, 2]}', '$bucket.boundaries.2'), ('$bucket: {groupBy: "$x", boundaries: [3, 5], default: 4}', '$bucket.default'),
  ('$bucket: {groupBy: {$foo: 1}, boundaries: [3, 5]}', '$bucket.groupBy.$foo'), ('$bucket: {groupBy: "$x", boundaries: [3, "$x"]}', '$bucket.boundaries.1'),
  ('$bucketAuto: {groupBy: "$x", buckets: 2.5}', '$bucketAuto.buckets'), ('$bucketAuto: {groupBy: "$x", buckets: 2, granularity: "E7"}', '$bucketAuto.granularity')) AS v (stage, path);

SELECT is(pg_temp.run('[{$sort: {x: -1}}, {$bucket: {groupBy: "$x", boundaries: [0.0, 10], output: {xs: {$push: "$x"}}}}]'), '{"_id": 0.0, "xs": [7, 6, 5, 4, 3, 2, 1]}', 'documents come in their order');

-- $bucketAuto
SELECT is(pg_temp.run('[{$bucketAuto: {groupBy: "$x", buckets: 2}}]'),
  e'{"_id": {"min": 1, "max": 5}, "count": 4}\n{"_id": {"min": 5, "max": 7}, "count": 3}', 'the last bucket gets what is left');
SELECT is(pg_temp.run('[{$sort: {x: -1}}, {$bucketAuto: {groupBy: {$mod: ["$x", 3]}, buckets: 3, output: {xs: {$push: "$x"}}}}]'),
  e'{"_id": {"min": 0, "max": 1}, "xs": [6, 3]}\n{"_id": {"min": 1, "max": 2}, "xs": [7, 4, 1]}\n{"_id": {"min": 2, "max": 2}, "xs": [5, 2]}', 'equal values stay together');
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

-- $setWindowFields: frames of documents
SELECT is(pg_temp.field('[{$setWindowFields: {partitionBy: "$g", sortBy: {x: 1}, output: {r: {$sum: "$x", window: {documents: ["unbounded", "current"]}}}}}]', 'r'), '1 2 4 6 9 12 16', 'running sums of partitions');
SELECT is(pg_temp.field('[{$setWindowFields: {sortBy: {x: -1}, output: {r: {$push: "$x", window: {documents: [-1, 1]}}}}}]', 'r'), '[2, 1] [3, 2, 1] [4, 3, 2] [5, 4, 3] [6, 5, 4] [7, 6, 5] [7, 6]', 'neighbours, descending');
SELECT is(pg_temp.field('[{$setWindowFields: {sortBy: {x: 1}, output: {r: {$max: "$x", window: {documents: [1, 2]}}}}}]', 'r'), '3 4 5 6 7 7 null', 'what follows; nothing is null');
SELECT is(pg_temp.field('[{$setWindowFields: {sortBy: {x: 1}, output: {r: {$sum: "$x", window: {documents: ["unbounded", -6]}}}}}]', 'r'), '0 0 0 0 0 0 1', 'the sum of nothing is 0');
SELECT is(pg_temp.field('[{$setWindowFields: {partitionBy: "$g", output: {r: {$avg: "$x"}}}}]', 'r'), '4.0 4.0 4.0 4.0 4.0 4.0 4.0', 'without a window, the whole partition');
SELECT is(pg_temp.run('[{$match: {x: {$lt: 3}}}, {$unset: "at"}, {$setWindowFields: {sortBy: {x: 1}, output: {"a.b": {$sum: "$x"}, g: {$count: {}}, value2: {$first: "$x"}}}}]'),
  e'{"_id": 1, "x": 1, "g": 2, "a": {"b": 3}, "value2": 1}\n{"_id": 2, "x": 2, "g": 2, "a": {"b": 3}, "value2": 1}', 'outputs may be nested and replace fields');
SELECT is(pg_temp.run('[{$match: {x: 1}}, {$setWindowFields: {output: {}}}, {$unset: "at"}]'), '{"_id": 1, "x": 1, "g": 1}', 'no output');
-- frames of values
SELECT is(pg_temp.field('[{$setWindowFields: {sortBy: {x: 1}, output: {r: {$sum: "$x", window: {range: [-1.5, 1]}}}}}]', 'r'), '3 6 9 12 15 18 13', 'a range of numbers');
SELECT is(pg_temp.field('[{$setWindowFields: {sortBy: {g: 1}, output: {r: {$sum: "$x", window: {range: ["unbounded", "current"]}}}}}]', 'r'), '28 12 28 12 28 12 28', 'equal values are current');
SELECT is(pg_temp.field('[{$set: {d: {$toDecimal: "$x"}}}, {$setWindowFields: {sortBy: {d: 1}, output: {r: {$count: {}, window: {range: [NumberDecimal("-0.5"), NumberLong(2)]}}}}}]', 'r'), '3 3 3 3 3 2 1', 'numbers of different types');
SELECT is(pg_temp.field('[{$setWindowFields: {sortBy: {at: 1}, output: {r: {$count: {}, window: {range: [-1, 0], unit: "day"}}}}}]', 'r'), '1 2 2 2 2 2 2', 'a range of days');
SELECT is(pg_temp.field('[{$set: {at: {$dateAdd: {startDate: ISODate("2023-11-30"), unit: "month", amount: "$x"}}}}, {$setWindowFields: {sortBy: {at: 1}, output: {r: {$count: {}, window: {range: [-1, 0], unit: "month"}}}}}]', 'r'), '1 2 2 2 2 2 2', 'a range of a month, however long it is');
SELECT is((SELECT array_agg(count ORDER BY v) FROM (SELECT v, count(*) OVER (ORDER BY v RANGE BETWEEN '{"unit": "hour", "amount": 36}' PRECEDING AND CURRENT ROW) FROM (SELECT doc -> 'at' AS v FROM w) AS w) AS w), '{1,2,2,2,2,2,2}', 'RANGE in SQL');
SELECT throws_ok($$SELECT count(*) OVER (ORDER BY doc -> 'at' RANGE '1' PRECEDING) FROM w$$, '42804', NULL, 'RANGE with a distance that does not fit');
SELECT throws_ok($$SELECT count(*) OVER (ORDER BY doc -> 'x' RANGE '-1' PRECEDING) FROM w$$, '22013', NULL, 'RANGE with a negative distance');
-- ranks and neighbours
SELECT is(pg_temp.run('[{$set: {x: {$floor: {$divide: ["$x", 3]}}}}, {$setWindowFields: {sortBy: {x: 1}, output: {rank: {$rank: {}}, dense: {$denseRank: {}}, n: {$documentNumber: {}}}}}, {$project: {rank: 1, dense: 1, n: 1}}, {$match: {_id: {$in: [2, 5, 7]}}}, {$unset: "n"}]'),
  e'{"_id": 2, "rank": 1, "dense": 1}\n{"_id": 5, "rank": 3, "dense": 2}\n{"_id": 7, "rank": 6, "dense": 3}', 'ranks');
SELECT is(pg_temp.field('[{$setWindowFields: {sortBy: {x: 1}, output: {r: {$documentNumber: {}}}}}, {$set: {r: {$type: "$r"}}}, {$limit: 1}]', 'r'), '"int"', 'a rank is an int');
SELECT is(pg_temp.field('[{$setWindowFields: {partitionBy: "$g", sortBy: {x: 1}, output: {r: {$shift: {output: "$x", by: 1, default: {$add: [40, 2]}}}}}}]', 'r'), '3 4 5 6 7 42 42', '$shift');
SELECT is(pg_temp.field('[{$setWindowFields: {sortBy: {x: 1}, output: {r: {$shift: {output: "$x", by: -2}}}}}]', 'r'), 'null null 1 2 3 4 5', '$shift back');
-- rates
SELECT is(pg_temp.field('[{$set: {y: {$pow: ["$x", 2]}}}, {$setWindowFields: {sortBy: {at: 1}, output: {r: {$derivative: {input: "$y", unit: "hour"}, window: {documents: [-1, 0]}}}}}]', 'r'), 'null 0.125 0.20833333333333334 0.2916666666666667 0.375 0.4583333333333333 0.5416666666666666', '$derivative');
SELECT is(pg_temp.field('[{$setWindowFields: {sortBy: {x: 1}, output: {r: {$integral: {input: "$x"}, window: {documents: [-2, 0]}}}}}]', 'r'), '0.0 1.5 4.0 6.0 8.0 10.0 12.0', '$integral of a moving frame');
SELECT is(pg_temp.field('[{$setWindowFields: {sortBy: {at: 1}, output: {r: {$integral: {input: {$toDecimal: "$x"}, unit: "day"}, window: {documents: ["unbounded", "current"]}}}}}, {$match: {x: 7}}]', 'r'), '{"$numberDecimal": "24.0"}', '$integral of decimals');
SELECT is(pg_temp.field('[{$set: {y: {$cond: [{$eq: ["$x", 3]}, "none", "$x"]}}}, {$setWindowFields: {sortBy: {x: 1}, output: {r: {$expMovingAvg: {input: "$y", alpha: 0.5}}}}}]', 'r'), '1.0 1.5 1.5 2.75 3.875 4.9375 5.96875', '$expMovingAvg leaves out what is not a number');
SELECT is(pg_temp.field('[{$setWindowFields: {sortBy: {x: 1}, output: {r: {$covariancePop: ["$x", {$multiply: ["$x", 2]}], window: {documents: [-1, 0]}}, s: {$covarianceSamp: ["$x", "$x"], window: {documents: [-1, 0]}}}}}, {$set: {r: ["$r", "$s"]}}]', 'r'),
  '[0.0, null] [0.5, 0.5] [0.5, 0.5] [0.5, 0.5] [0.5, 0.5] [0.5, 0.5] [0.5, 0.5]', 'covariances of moving frames');
-- filling
SELECT is(pg_temp.field('[{$set: {y: {$cond: [{$in: ["$x", [2, 5, 6]]}, {$multiply: ["$x", "$x"]}, null]}}}, {$setWindowFields: {sortBy: {x: 1}, output: {y: {$linearFill: "$y"}}}}]', 'y'), 'null 4 11.0 18.0 25 36 null', '$linearFill');
SELECT is(pg_temp.field('[{$set: {y: {$cond: [{$in: ["$x", [2, 5]]}, "$x", null]}}}, {$fill: {partitionByFields: ["g"], sortBy: {at: 1}, output: {y: {method: "locf"}, z: {value: "$x"}}}}]', 'y'), 'null 2 null 2 5 2 5', '$fill repeats the last value of a partition');
SELECT is(pg_temp.field('[{$set: {y: {$cond: [{$in: ["$x", [2, 4, 6]]}, "$x", null]}}}, {$fill: {sortBy: {at: 1}, output: {y: {method: "linear"}}}}, {$fill: {output: {y: {value: -1}}}}]', 'y'), '-1 2 3.0 4 5.0 6 -1', '$fill interpolates');
-- refused
SELECT throws_ok(format($$SELECT pg_temp.run('[{$setWindowFields: {%s}}]')$$, spec), '22023', message, spec) FROM (VALUES
  ('output: {r: {$sum: 1, window: {documents: [-1, 0]}}}', 'a window with bounds needs sortBy'),
  ('sortBy: {x: 1}, output: {r: {$sum: 1, window: {documents: [1, -1]}}}', 'the lower bound of a window must not be greater than the upper one'),
  ('sortBy: {x: 1}, output: {r: {$sum: 1, window: {documents: [-1.5, 1]}}}', 'a bound of documents must be a whole number'),
  ('sortBy: {x: 1}, output: {r: {$sum: 1, window: {documents: [-1]}}}', 'a window must have an array of two bounds'),
  ('sortBy: {x: 1}, output: {r: {$sum: 1, window: {documents: [-1, 0], unit: "day"}}}', 'a window must not have a unit without a range'),
  ('sortBy: {x: 1}, output: {r: {$sum: 1, window: {range: [-1, "now"]}}}', 'a bound of a window must be a number, "unbounded" or "current"'),
  ('sortBy: {x: 1}, output: {r: {$sum: 1, window: {range: [NaN, 0]}}}', 'a bound of a window must be a number, "unbounded" or "current"'),
  ('sortBy: {x: 1, g: 1}, output: {r: {$sum: 1, window: {range: [-1, 0]}}}', 'a range needs sortBy with one ascending field'),
  ('sortBy: {x: -1}, output: {r: {$sum: 1, window: {range: [-1, 0]}}}', 'a range needs sortBy with one ascending field'),
  ('sortBy: {at: 1}, output: {r: {$sum: 1, window: {range: [-1, 0]}}}', 'sortBy of this window must be a number, not date'),
  ('sortBy: {x: 1}, output: {r: {$sum: 1, window: {range: [-1, 0], unit: "day"}}}', 'sortBy of this window must be a date, not int'),
  ('sortBy: {none: 1}, output: {r: {$sum: 1, window: {range: [-1, 0]}}}', 'sortBy of this window must be a number, not missing'),
  ('sortBy: {at: 1}, output: {r: {$sum: 1, window: {range: [-1, 0], unit: "days"}}}', 'there is no unit "days"'),
  ('output: {r: {$rank: {}}}', '$rank needs sortBy with one field'),
  ('sortBy: {x: 1}, output: {r: {$rank: {}, window: {documents: [0, 0]}}}', '$rank must not have a window'),
  ('sortBy: {x: 1}, output: {r: {$rank: 1}}', '$rank must have an empty document'),
  ('output: {r: {$shift: {output: "$x", by: 1}}}', '$shift needs sortBy'),
  ('sortBy: {x: 1}, output: {r: {$shift: {output: "$x", by: 1.5}}}', NULL),
  ('sortBy: {x: 1}, output: {r: {$derivative: {input: "$x"}}}', '$derivative needs a window'),
  ('sortBy: {x: 1}, output: {r: {$integral: {input: "$x", unit: "month"}}}', 'unit must be week, day, hour, minute, second or millisecond'),
  ('sortBy: {x: 1}, output: {r: {$integral: {input: "$none"}}}', '$integral needs numbers, not missing'),
  ('sortBy: {x: 1}, output: {r: {$expMovingAvg: {input: "$x", alpha: 1}}}', 'alpha must be a number between 0 and 1'),
  ('partitionBy: ["$x"], output: {r: {$sum: 1}}', 'partitionBy must not be an array'),
  ('output: {r: {$sum: 1, $max: 1}}', 'an output has one function and a window'),
  ('output: {"$r": {$sum: 1}}', 'a part of a path must not begin with a dollar sign'),
  ('sort: {x: 1}, output: {}', '$setWindowFields has no option "sort"')) AS v (spec, message);
SELECT throws_ok($$SELECT pg_temp.run('[{$setWindowFields: {output: {r: {$total: 1}}}}]')$$, '0A000', NULL, 'an unknown accumulator');
SELECT throws_ok($$SELECT pg_temp.run('[{$set: {k: 1}}, {$setWindowFields: {sortBy: {k: 1}, output: {r: {$linearFill: {$cond: [{$eq: ["$x", 4]}, null, "$x"]}}}}}]')$$, '22023', '$linearFill needs different values of sortBy', 'no value between equal ones');
SELECT throws_ok($$SELECT pg_temp.run('[{$fill: {output: {y: {method: "linear"}}}}]')$$, '22023', '$linearFill needs sortBy with one field');
SELECT throws_ok($$SELECT pg_temp.run('[{$fill: {output: {y: {method: "next"}}}}]')$$, '22023', '$fill has the methods linear and locf, not "next"');
-- Outputs with one frame are one WindowAgg, and there is one sort.
CREATE FUNCTION pg_temp.nodes(pipeline text, node text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE line text; n bigint := 0;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || collection_aggregate_sql('w', ('{p: ' || pipeline || '}')::bson -> 'p') LOOP
    n := n + (line ~ ('(^|-> +)' || node))::int;
  END LOOP;
  RETURN n;
END $$;
SELECT is(pg_temp.nodes('[{$setWindowFields: {partitionBy: "$g", sortBy: {x: 1}, output: {a: {$sum: "$x", window: {documents: [-1, 0]}}, b: {$max: "$x", window: {documents: [-1, 0]}}, c: {$push: "$x", window: {documents: [-1, "current"]}}}}}]', 'WindowAgg'), 1::bigint, 'one frame is one node');
SELECT is(pg_temp.nodes('[{$setWindowFields: {partitionBy: "$g", sortBy: {x: 1}, output: {a: {$sum: "$x", window: {documents: [-1, 0]}}, b: {$max: "$x"}, c: {$rank: {}}}}}]', n), c, n) FROM (VALUES ('WindowAgg', 3::bigint), ('Sort', 1)) AS v (n, c);

-- $redact
SELECT is(pg_temp.run('[{$match: {x: {$lt: 3}}}, {$project: {s: [{l: 1, t: {l: "$x"}}, 5, {l: "$x"}]}}, {$redact: {$cond: [{$eq: ["$l", 2]}, "$$PRUNE", "$$DESCEND"]}}]'),
  e'{"_id": 1, "s": [{"l": 1, "t": {"l": 1}}, 5, {"l": 1}]}\n{"_id": 2, "s": [{"l": 1}, 5]}', '$redact leaves out parts');
SELECT is(pg_temp.run('[{$redact: {$cond: ["$l", "$$KEEP", "$$PRUNE"]}}]'), NULL, '$redact leaves out documents');
SELECT throws_ok($$SELECT pg_temp.run('[{$redact: "$x"}]')$$, '22023', '$redact must evaluate to $$DESCEND, $$PRUNE or $$KEEP');

-- $densify
SELECT is(pg_temp.run('[{$match: {x: {$in: [1, 4]}}}, {$project: {x: 1}}, {$densify: {field: "x", range: {bounds: "full", step: 1.5}}}]'), e'{"_id": 1, "x": 1}\n{"x": 2.5}\n{"_id": 4, "x": 4}', 'full bounds');
SELECT is(pg_temp.run('[{$match: {x: {$in: [1, 2, 7]}}}, {$project: {x: 1, "k.g": "$g"}}, {$densify: {field: "x", partitionByFields: ["k.g"], range: {bounds: "full", step: 3}}}, {$sort: {"k.g": 1, x: 1}}]'),
  e'{"k": {"g": 0}, "x": 1}\n{"_id": 2, "x": 2, "k": {"g": 0}}\n{"k": {"g": 0}, "x": 4}\n{"k": {"g": 0}, "x": 7}\n{"_id": 1, "x": 1, "k": {"g": 1}}\n{"k": {"g": 1}, "x": 4}\n{"_id": 7, "x": 7, "k": {"g": 1}}', 'each partition has the full range');
SELECT is(pg_temp.field('[{$match: {x: {$in: [1, 2, 6, 7]}}}, {$densify: {field: "x", partitionByFields: ["g"], range: {bounds: "partition", step: 2}}}, {$project: {_id: "$x"}}]', '_id'), '1 2 3 4 5 6 7', 'each partition has its own range');
SELECT is(pg_temp.run('[{$match: {x: {$in: [1, 4, 7]}}}, {$set: {x: {$cond: [{$eq: ["$x", 4]}, null, "$x"]}}}, {$project: {x: 1}}, {$densify: {field: "x", range: {bounds: [-1, 7.5], step: NumberLong(4)}}}]'),
  e'{"_id": 4, "x": null}\n{"x": {"$numberLong": "-1"}}\n{"_id": 1, "x": 1}\n{"x": {"$numberLong": "3"}}\n{"_id": 7, "x": 7}', 'given bounds, the upper one is not included; null stays');
SELECT is(pg_temp.run('[{$match: {x: 0}}, {$densify: {field: "a.at", range: {bounds: [ISODate("2024-01-31"), ISODate("2024-04-30")], step: 1, unit: "month"}}}, {$project: {m: {$dateToString: {date: "$a.at", format: "%m-%d"}}}}]'), e'{"m": "01-31"}\n{"m": "02-29"}\n{"m": "03-31"}', 'months, without any document');
SELECT throws_ok($$SELECT pg_temp.run('[{$densify: {field: "x", range: {bounds: [0, 1e9], step: 1}}}]')$$, '54000', '$densify must not make more than 500000 documents');
SELECT throws_ok($$SELECT pg_temp.run('[{$densify: {field: "x", partitionByFields: ["_id"], range: {bounds: [0, 1e5], step: 1}}}, {$count: "n"}]')$$, '54000', '$densify must not make more than 500000 documents');
SELECT throws_ok($$SELECT pg_temp.run('[{$densify: {field: "x", range: {bounds: [0.5, 3], step: 1e-300}}}]')$$, '54000', '$densify must not make more than 500000 documents', 'a step that changes nothing');
SELECT throws_ok($$SELECT pg_temp.run('[{$set: {x: {$cond: [{$eq: ["$x", 2]}, Infinity, "$x"]}}}, {$densify: {field: "x", range: {bounds: "full", step: 1}}}]')$$, '54000', '$densify must not make more than 500000 documents', 'infinity');
SELECT is(pg_temp.run('[{$densify: {field: "x", range: {bounds: [0, 1e18], step: 5e17}}}, {$count: "n"}]'), '{"n": 9}', 'long steps');
SELECT throws_ok(format($$SELECT pg_temp.run('[{$densify: {%s}}]')$$, spec), '22023', message, spec) FROM (VALUES
  ('field: "x"', '$densify needs the option "range"'),
  ('field: "x", field: "y", range: {step: 1, bounds: "full"}', '$densify has its option "field" twice'),
  ('field: "x", range: {step: 0, bounds: "full"}', 'step must be a number greater than 0'),
  ('field: "x", range: {step: 1.5, unit: "day", bounds: "full"}', 'step must be a whole number if there is a unit'),
  ('field: "x", range: {step: 1, bounds: "partition"}', 'bounds "partition" need partitionByFields'),
  ('field: "x", range: {step: 1, bounds: [1, ISODate("2024-01-01")]}', 'bounds must be two numbers'),
  ('field: "x", range: {step: 1, bounds: [2, 1]}', 'the lower bound must not be greater than the upper one'),
  ('field: "at", range: {step: 1, bounds: "full"}', 'field of $densify must be a number, not date'),
  ('field: "x", range: {step: 1, unit: "day", bounds: "full"}', 'field of $densify must be a date, not int'),
  ('field: "x", partitionByFields: ["x.y"], range: {step: 1, bounds: "full"}', 'field "x" must not be among partitionByFields')) AS v (spec, message);
-- Infinity and NaN in a frame that moves make a deviation null, in others NaN.
SELECT is(pg_temp.field('[{$set: {x: {$cond: [{$eq: ["$x", 2]}, ' || odd || ', "$x"]}}}, {$setWindowFields: {sortBy: {_id: 1}, output: {s: {$stdDevPop: "$x", window: {documents: ' || frame || '}}}}}, {$set: {s: {$toString: "$s"}}}]', 's'),
  want, odd || ' in ' || frame) FROM (VALUES
  ('Infinity', '[-1, 0]', '"0" null null "0.5" "0.5" "0.5" "0.5"'), ('NaN', '[-1, 0]', '"0" null null "0.5" "0.5" "0.5" "0.5"'),
  ('-Infinity', '["unbounded", "current"]', '"0" "NaN" "NaN" "NaN" "NaN" "NaN" "NaN"')) AS v (odd, frame, want);
-- Rights are those of the caller.
CREATE ROLE pipeline_window_user;
SET LOCAL ROLE pipeline_window_user;
SELECT throws_ok($$SELECT collection_aggregate('w', '[{$setWindowFields: {output: {n: {$count: {}}}}}]')$$, '42501', NULL, 'without rights');
RESET ROLE;
GRANT SELECT ON w TO pipeline_window_user;
SET LOCAL ROLE pipeline_window_user;
SELECT is((SELECT count(*) FROM collection_aggregate('w', '[{$setWindowFields: {sortBy: {x: 1}, output: {n: {$sum: 1, window: {range: [-1, 0]}}, l: {$locf: "$x"}}}},
  {$densify: {field: "x", range: {step: 0.5, bounds: "full"}}}, {$redact: "$$KEEP"}, {$bucketAuto: {groupBy: "$x", buckets: 3}}]')), 3::bigint, 'all functions may be called');
RESET ROLE;
-- Names are data.
SELECT is(pg_temp.run(format('[{$match: {x: 1}}, {$project: {x: 1}}, {$setWindowFields: {partitionBy: {$literal: %1$s}, sortBy: {%1$s: 1}, output: {%1$s: {$sum: "$x"}}}}]', '"a''b\"c;--"')), '{"_id": 1, "x": 1, "a''b\"c;--": 1}', 'quotes in names');

SELECT * FROM finish();
ROLLBACK;
