-- Pipelines with a collation: every stage and expression that compares strings, views, errors.
BEGIN;
SELECT plan(131);
SET client_min_messages = warning;

SELECT collection_create('w');
SELECT collection_insert('w', '[{_id: 1, n: "Äpfel", t: ["b", "C", "B"]}, {_id: 2, n: "apfel", t: "c"}, {_id: 3, n: "zebra"}, {_id: 4, n: "APFEL", t: "C"}, {_id: 5, n: "a10"}, {_id: 6, n: "a9"}, {_id: 7, n: 5}]') \g /dev/null
SELECT collection_create('f');
SELECT collection_insert('f', '[{_id: "A", k: ["APFEL", "apfel"]}, {_id: "B", k: "Z"}, {_id: "c", k: "ZEBRA"}]') \g /dev/null

-- A pipeline with a part filled in
CREATE FUNCTION p(template text, part text) RETURNS bson_value LANGUAGE sql AS $$ SELECT format('{p: %s}', format(template, part))::bson -> 'p' $$;
-- The result of a pipeline
CREATE FUNCTION run(pipeline bson_value, "collation" bson, rel regclass DEFAULT 'w') RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(bson_to_json(d), ' ' ORDER BY n) FROM collection_aggregate(rel, pipeline, collation => $2) WITH ORDINALITY AS r (d, n) $$;
-- The values of a field in it
CREATE FUNCTION vals(pipeline bson_value, "collation" bson, field text DEFAULT '_id') RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(coalesce(d ->> field, '-'), ' ' ORDER BY n) FROM collection_aggregate('w', pipeline, collation => $2) WITH ORDINALITY AS r (d, n) $$;
-- The value of an expression of the document {a: "Äpfel", b: "apfel", c: "APFEL", t: ["b", "C", "B"]}
CREATE FUNCTION value(expression text, "collation" bson) RETURNS text LANGUAGE sql AS $$
  SELECT run(p('[{$documents: [{a: "Äpfel", b: "apfel", c: "APFEL", t: ["b", "C", "B"]}]}, {$replaceWith: {v: %s}}]', expression), $2, NULL) $$;
CREATE FUNCTION c(strength int) RETURNS bson LANGUAGE sql AS $$ SELECT bson_build('locale', 'de'::text, 'strength', strength) $$;

-- ---------------------------------------------------------------- $match
SELECT is(vals(p, c(s)), ids, format('%s %s', p, s)) FROM (VALUES
  ('[{$match: {n: "apfel"}}]'::bson_value, 1, '1 2 4'), ('[{$match: {n: "apfel"}}]', 2, '2 4'), ('[{$match: {n: "apfel"}}]', 3, '2'),
  ('[{$match: {n: {$in: ["ZEBRA", 5]}}}]', 2, '3 7'), ('[{$match: {$or: [{n: "APFEL"}, {_id: 3}], _id: {$gt: 1}}}]', 1, '2 3 4'), ('[{$match: {t: "c"}}]', 1, '1 2 4'),
  ('[{$match: {$expr: {$eq: ["$n", "APFEL"]}}}]', 1, '1 2 4'), ('[{$match: {n: /^A/}}]', 1, '4'), ('[{$match: {_id: {$lt: 3}}}]', 1, '1 2'),
  ('[{$limit: 4}, {$match: {n: "apfel"}}]', 1, '1 2 4'), ('[{$set: {m: "$n"}}, {$match: {m: "apfel"}}]', 1, '1 2 4'), ('[{$match: {$jsonSchema: {properties: {n: {enum: ["APFEL"]}}}}}]', 2, '4')) AS x (p, s, ids);

-- ---------------------------------------------------------------- $sort
SELECT is(vals('[{$match: {n: {$type: "string"}}}, {$sort: {n: 1, _id: 1}}]', c), ids, c::text) FROM (VALUES
  ('{locale: "de"}'::bson, '5 6 2 4 1 3'), ('{locale: "sv"}', '5 6 2 4 3 1'), ('{locale: "de", caseFirst: "upper"}', '5 6 4 2 1 3'), ('{locale: "de", numericOrdering: true}', '6 5 2 4 1 3'),
  ('{locale: "de", strength: 1}', '5 6 1 2 4 3'), ('{locale: "de", strength: 1, caseLevel: true}', '5 6 2 1 4 3'), ('{locale: "simple"}', '4 5 6 2 3 1')) AS x (c, ids);
SELECT is(vals('[{$match: {n: {$type: "string"}}}, {$limit: 10}, {$sort: {n: -1}}, {$limit: 3}]', '{locale: "sv"}'), '1 3 4', 'of a subquery, descending');
SELECT is(run('[{$documents: [{v: "I"}, {v: "ı"}, {v: "i"}, {v: "İ"}]}, {$group: {_id: "$v", n: {$sum: 1}}}, {$sort: {_id: 1}}]', '{locale: "tr", strength: 2}', NULL), '{"_id": "I", "n": 2} {"_id": "i", "n": 2}', 'Turkish has two letters i');

-- ---------------------------------------------------------------- groups
SELECT is(run('[{$sort: {_id: 1}}, {$group: {_id: "$n", k: {$sum: 1}, ids: {$push: "$_id"}}}, {$match: {k: {$gt: 1}}}]', c(1)), '{"_id": "Äpfel", "k": 3, "ids": [1, 2, 4]}', 'one group, named after the first');
SELECT is(run('[{$sort: {_id: -1}}, {$group: {_id: "$n", k: {$sum: 1}}}, {$match: {k: {$gt: 1}}}]', c(1)), '{"_id": "APFEL", "k": 3}', 'in the order of the documents');
SELECT is(vals('[{$group: {_id: {n: "$n"}, k: {$sum: 1}}}, {$match: {k: 2}}]', c(2), 'k'), '2', 'a document as the key');
SELECT is(vals('[{$sort: {_id: 1}}, {$group: {_id: "$n"}}, {$match: {_id: "äpfel"}}]', c(1)), 'Äpfel', 'a condition on the key');
SELECT is(run('[{$group: {_id: "$missing", k: {$sum: 1}}}]', c(1)), '{"_id": null, "k": 7}', 'a missing value is null');
SELECT is(run('[{$group: {_id: null, k: {$sum: 1}}}]', c(1)), '{"_id": null, "k": 7}', 'a constant');
SELECT is(run('[{$match: {n: "apfel"}}, {$sort: {_id: 1}}, {$group: {_id: "$n", t: {$maxN: {input: "$_id", n: {$cond: [{$eq: ["$n", "x"]}, 1, 2]}}}}}]', c(1)), '{"_id": "Äpfel", "t": [4, 2]}', 'an n that is computed');
SELECT is(run('[{$sort: {_id: 1}}, {$sortByCount: "$n"}, {$limit: 1}]', c(1)), '{"_id": "Äpfel", "count": 3}', '$sortByCount');
SELECT is(run('[{$match: {n: {$type: "string"}}}, {$group: {_id: null, lo: {$min: "$n"}, hi: {$max: "$n"}, top: {$topN: {sortBy: {n: -1}, output: "$_id", n: 2}}, lows: {$minN: {input: "$n", n: 1}}}}]', '{locale: "sv"}'),
  '{"_id": null, "lo": "a10", "hi": "Äpfel", "top": [1, 3], "lows": ["a10"]}', 'accumulators');
SELECT is(run('[{$match: {n: {$type: "string"}}}, {$group: {_id: null, s: {$addToSet: "$n"}}}, {$project: {_id: 0, n: {$size: "$s"}}}]', c(s)), n, format('$addToSet %s', s)) FROM (VALUES (1, '{"n": 4}'), (2, '{"n": 5}'), (3, '{"n": 6}')) AS x (s, n);
SELECT is(run('[{$match: {n: {$type: "string"}}}, {$bucket: {groupBy: "$n", boundaries: ["A", "b", "Zz"]}}]', c(2)), '{"_id": "A", "count": 5} {"_id": "b", "count": 1}', '$bucket');
SELECT is(run('[{$bucket: {groupBy: "$n", boundaries: ["z", "Ä"], default: "none"}}]', '{locale: "sv"}'), '{"_id": "none", "count": 6} {"_id": "z", "count": 1}', 'its boundaries');
SELECT throws_ok($$SELECT run('[{$bucket: {groupBy: "$n", boundaries: ["z", "Ä"]}}]', c(1))$$, '22023', 'boundaries must be in ascending order', 'and their order');
SELECT throws_ok($$SELECT run('[{$bucket: {groupBy: "$n", boundaries: ["a", "A"]}}]', c(2))$$, '22023', 'boundaries must be in ascending order', 'equal ones');
SELECT is(run(p('[{$match: {n: {$type: "string"}}}, {$sort: {_id: 1}}, {$bucketAuto: {groupBy: "$n", buckets: 3, output: {k: {%s}}}}]', k), c(1)), r, '$bucketAuto ' || k) FROM (VALUES
  ('$sum: 1', '{"_id": {"min": "a10", "max": "Äpfel"}, "k": 2} {"_id": {"min": "Äpfel", "max": "zebra"}, "k": 3} {"_id": {"min": "zebra", "max": "zebra"}, "k": 1}'),
  ('$push: "$_id"', '{"_id": {"min": "a10", "max": "Äpfel"}, "k": [5, 6]} {"_id": {"min": "Äpfel", "max": "zebra"}, "k": [1, 2, 4]} {"_id": {"min": "zebra", "max": "zebra"}, "k": [3]}')) AS x (k, r);
SELECT is(run('[{$match: {n: {$type: "string"}}}, {$bucketAuto: {groupBy: "$n", buckets: 2, output: {k: {$max: "$n"}}}}]', '{locale: "sv"}'), '{"_id": {"min": "a10", "max": "APFEL"}, "k": "apfel"} {"_id": {"min": "APFEL", "max": "Äpfel"}, "k": "Äpfel"}', 'in the order of the collation');
SELECT is(run('[{$match: {n: {$type: "string"}}}, {$bucketAuto: {groupBy: "$_id", buckets: 2, granularity: "POWERSOF2"}}]', c(1)), run('[{$match: {n: {$type: "string"}}}, {$bucketAuto: {groupBy: "$_id", buckets: 2, granularity: "POWERSOF2"}}]', NULL), 'a granularity');

-- ---------------------------------------------------------------- joins
SELECT is(vals(p('[{$match: {_id: {$lte: 4}}}, {$lookup: {from: "f", %s, as: "x"}}, {$set: {x: {$reduce: {input: "$x._id", initialValue: "", in: {$concat: ["$$value", "$$this"]}}}}}]', how), c(s), 'x'), r, format('$lookup %s %s', how, s)) FROM (VALUES
  ('localField: "n", foreignField: "k"', 1, 'A A c A'), ('localField: "n", foreignField: "k"', 2, ' A c A'), ('localField: "n", foreignField: "k"', 3, ' A  A'), ('localField: "t", foreignField: "_id"', 2, 'Bc c  c'),
  ('localField: "t", foreignField: "_id", pipeline: [{$match: {k: "z"}}]', 2, 'B   '), ('let: {v: "$n"}, pipeline: [{$match: {$expr: {$eq: ["$k", "$$v"]}}}]', 2, '  c '), ('pipeline: [{$match: {k: "z"}}]', 2, 'B B B B')) AS x (how, s, r);
SELECT is(run('[{$match: {t: "C"}}, {$lookup: {from: "f", localField: "t", foreignField: "_id", as: "x"}}, {$unwind: "$x"}, {$sort: {_id: 1, "x._id": 1}}, {$project: {i: "$x._id"}}]', c(1)), '{"_id": 1, "i": "B"} {"_id": 1, "i": "c"} {"_id": 2, "i": "c"} {"_id": 4, "i": "c"}', 'with $unwind');
SELECT is(run('[{$match: {_id: 3}}, {$project: {_id: 1}}, {$unionWith: {coll: "f", pipeline: [{$match: {k: "z"}}]}}, {$match: {_id: {$in: ["b", 3]}}}]', c(1)), '{"_id": 3} {"_id": "B", "k": "Z"}', '$unionWith');
SELECT is(run('[{$facet: {a: [{$match: {n: "ZEBRA"}}, {$project: {_id: 1}}], b: [{$sortByCount: "$n"}, {$limit: 1}, {$project: {_id: 0}}]}}]', c(1)), '{"a": [{"_id": 3}], "b": [{"count": 3}]}', '$facet');

SELECT collection_create('g');
SELECT collection_insert('g', '[{_id: "a", up: "Ä"}, {_id: "Á", up: ["B", "x"], t: "Red"}, {_id: "b", up: "A", t: "red"}, {_id: "c", up: "a"}]') \g /dev/null
SELECT is((SELECT string_agg(concat_ws(' ', x ->> '_id', x ->> 'd'), ', ' ORDER BY x ->> '_id' COLLATE "C") FROM collection_aggregate('g', p('[{$match: {_id: "c"}}, {$graphLookup: {from: "g", startWith: "$up", connectFromField: "up", connectToField: "_id", as: "x"%s}}]', o), collation => c(s)) AS d, bson_elements(d -> 'x') AS e (x)), r, format('$graphLookup%s %s', o, s)) FROM (VALUES
  ('', 1, 'a, b, Á'), ('', 2, 'a'), (', depthField: "d"', 1, 'a 0, b 1, Á 0'), (', depthField: "d", maxDepth: 0', 1, 'a 0, Á 0'), (', restrictSearchWithMatch: {t: "RED"}', 1, 'b, Á'), (', restrictSearchWithMatch: {t: {$in: ["RED", 1]}}', 2, NULL)) AS x (o, s, r);
SELECT is((SELECT string_agg(g.node::text, ' ' ORDER BY g.depth, g.node) FROM graph_lookup('g', '"B"'::bson_value, 'up', '_id', collation => c(2)) AS g), 'B a', 'graph_lookup() returns one of equal values');
SET LOCAL work_mem = 64;
SELECT is((SELECT count(*) FROM graph_lookup('g', '"B"'::bson_value, 'up', '_id', collation => c(1)) AS g), 3::bigint, 'with little memory');
RESET work_mem;

-- ---------------------------------------------------------------- windows
SELECT is(vals(p('[{$setWindowFields: {%s}}, {$sort: {_id: 1}}]', w), c(s), 'x'), r, format('%s %s', w, s)) FROM (VALUES
  ('partitionBy: "$n", output: {x: {$count: {}}}', 1, '3 3 1 3 1 1 1'), ('partitionBy: "$n", output: {x: {$count: {}}}', 2, '1 2 1 2 1 1 1'), ('partitionBy: {n: "$n"}, output: {x: {$count: {}}}', 2, '1 2 1 2 1 1 1'),
  ('sortBy: {n: 1}, output: {x: {$rank: {}}}', 1, '4 4 7 4 2 3 1'), ('sortBy: {n: 1}, output: {x: {$denseRank: {}}}', 1, '4 4 5 4 2 3 1'), ('sortBy: {_id: 1}, output: {x: {$max: "$n", window: {documents: [2, 2]}}}', 2, 'zebra APFEL a10 a9 5 - -')) AS x (w, s, r);
SELECT is(vals('[{$fill: {partitionBy: "$n", sortBy: {_id: 1}, output: {m: {method: "locf"}, t: {method: "locf"}}}}, {$sort: {_id: 1}}, {$set: {t: {$isArray: "$t"}}}]', c(1), 't'), 'true false false false false false false', '$fill');
SELECT is(vals('[{$fill: {partitionByFields: ["n"], sortBy: {_id: -1}, output: {x: {method: "locf"}}}}, {$count: "k"}]', c(1), 'k'), '7', 'by fields');
SELECT is(run('[{$documents: [{g: "a", v: 1}, {g: "A", v: 3}]}, {$densify: {field: "v", partitionByFields: ["g"], range: {step: 1, bounds: "partition"}}}, {$count: "n"}]', c, NULL), n, '$densify ' || c::text) FROM (VALUES (c(1), '{"n": 3}'), (c(3), '{"n": 2}')) AS x (c, n);

-- ---------------------------------------------------------------- expressions
SELECT is(value(e, c(s)), format('{"v": %s}', r), format('%s %s', e, s)) FROM (VALUES
  ('{$eq: ["$a", "$c"]}', 1, 'true'), ('{$eq: ["$a", "$c"]}', 2, 'false'), ('{$ne: ["$b", "$c"]}', 2, 'false'), ('{$cmp: ["$a", "$c"]}', 1, '0'), ('{$lt: ["$b", "$c"]}', 3, 'true'), ('{$gte: ["$b", "$c"]}', 2, 'true'),
  ('{$in: ["c", "$t"]}', 1, 'true'), ('{$in: ["c", "$t"]}', 3, 'false'), ('{$in: ["$b", ["x", "APFEL"]]}', 2, 'true'), ('{$indexOfArray: ["$t", "B"]}', 2, '0'), ('{$indexOfArray: ["$t", "B"]}', 3, '2'),
  ('{$size: {$setUnion: ["$t", ["c"]]}}', 2, '2'), ('{$size: {$setIntersection: ["$t", ["c", "d"]]}}', 2, '1'), ('{$size: {$setDifference: ["$t", ["c"]]}}', 2, '1'), ('{$setEquals: ["$t", ["c", "b"]]}', 2, 'true'), ('{$setIsSubset: [["c"], "$t"]}', 2, 'true'),
  ('{$sortArray: {input: ["b", "Ä", "A", "a"], sortBy: 1}}', 3, '["a", "A", "Ä", "b"]'), ('{$sortArray: {input: [{k: "b"}, {k: "A"}], sortBy: {k: -1}}}', 2, '[{"k": "b"}, {"k": "A"}]'), ('{$max: ["b", "A", "Ä"]}', 3, '"b"'), ('{$min: ["b", "A", "Ä"]}', 3, '"A"'), ('{$maxN: {input: ["b", "C"], n: 1}}', 1, '["C"]'),
  ('{$switch: {branches: [{case: {$eq: ["$b", "$c"]}, then: 1}], default: 2}}', 2, '1'), ('{$filter: {input: "$t", cond: {$eq: ["$$this", "c"]}}}', 2, '["C"]'), ('{$eq: [{x: ["B"]}, {x: ["b"]}]}', 2, 'true'), ('{$eq: [{b: 1}, {B: 1}]}', 1, 'false'),
  ('{$strcasecmp: ["$a", "$b"]}', 1, '1'), ('{$regexMatch: {input: "$c", regex: "apf"}}', 1, 'false'), ('{$indexOfCP: ["$c", "p"]}', 1, '-1'), ('{$replaceAll: {input: "$c", find: "p", replacement: "x"}}', 1, '"APFEL"'), ('{$ifNull: [{$getField: "A"}, 0]}', 1, '0')) AS x (e, s, r);
SELECT is(run('[{$documents: [{a: "x", k: "KEEP"}]}, {$redact: {$cond: [{$eq: ["$k", "keep"]}, "$$KEEP", "$$PRUNE"]}}]', c(2), NULL), '{"a": "x", "k": "KEEP"}', '$redact');
SELECT is((SELECT string_agg(d ->> '_id', ' ') FROM collection_aggregate('w', '[{$match: {$expr: {$eq: ["$n", "$$wanted"]}}}, {$sort: {_id: 1}}]', '{wanted: "APFEL"}', c(1)) AS d), '1 2 4', 'variables');

-- ---------------------------------------------------------------- SQL, plans, views, writes
SELECT ok(collection_aggregate_sql('w', '[{$match: {n: "x", _id: {$gt: 2}}}]', collation => c(1)) LIKE '%doc @@ ''{"_id": {"$gt": 2}}''%', 'other conditions use indexes');
SELECT is(collection_aggregate_sql('w', p, collation => '{locale: "simple"}'), collection_aggregate_sql('w', p), 'simple is none') FROM (VALUES ('[{$match: {n: "x"}}, {$sort: {n: 1}}, {$group: {_id: "$n"}}]'::bson_value)) AS x (p);
SELECT ok(EXISTS (SELECT FROM collection_explain('w', '{n: "x"}', collation => c(1)) AS l WHERE l LIKE '%_match(%"strength": 1%'), 'the plan of a filter');
SELECT collection_view_create('v', 'w', '[{$match: {n: "APFEL"}}]', c(2)) \g /dev/null
SELECT is((SELECT string_agg(d ->> '_id', ' ') FROM collection_find('v', sort => '{_id: 1}') AS d), '2 4', 'a view keeps its collation');
SELECT is(collection_count('v', '{n: "apfel"}'), 1::bigint, 'a call on it has its own');
SELECT is((SELECT string_agg(d ->> '_id', ' ') FROM collection_aggregate('v', '[{$match: {n: "äpfel"}}, {$sort: {_id: 1}}]', collation => c(1)) AS d), '2 4', 'and so has a pipeline');
SELECT is(collection_view_create(NULL, 'w', '[]'), NULL, 'no name, no view');
SELECT lives_ok($q$SELECT collection_aggregate('w', '[{$match: {n: "apfel"}}, {$project: {m: "$n"}}, {$merge: {into: "f", whenMatched: [{$set: {same: {$eq: ["$$new.m", "APFEL"]}}}]}}]', collation => c(1))$q$, '$merge');
SELECT lives_ok($q$SELECT collection_aggregate('w', '[{$match: {n: "apfel"}}, {$project: {m: "$n"}}, {$merge: {into: "f", whenMatched: [{$set: {same: {$eq: ["$$new.m", "APFEL"]}}}]}}]', collation => c(1))$q$, 'again');
SELECT is(run('[{$match: {same: true}}, {$project: {same: 1}}]', NULL, 'f'), '{"_id": 1, "same": true} {"_id": 2, "same": true} {"_id": 4, "same": true}', 'its stages compare so');
SELECT lives_ok($q$SELECT collection_aggregate('w', '[{$match: {n: "apfel"}}, {$out: "o"}]', collation => c(2))$q$, '$out');

-- ---------------------------------------------------------------- rows as documents
CREATE TABLE r (id int PRIMARY KEY, n text, t text COLLATE "C");
INSERT INTO r VALUES (1, 'Äpfel', 'x'), (2, 'apfel', 'y'), (3, 'zebra', 'y'), (4, 'APFEL', 'Y');
SELECT is(run(p, c(1), 'r'), d, 'rows: ' || p::text) FROM (VALUES
  ('[{$match: {n: "apfel", id: {$gt: 1}}}, {$project: {_id: 0, id: 1}}]'::bson_value, '{"id": 2} {"id": 4}'), ('[{$match: {t: {$in: ["Y"]}}}, {$sort: {n: -1, id: 1}}, {$project: {_id: 0, id: 1}}]', '{"id": 3} {"id": 2} {"id": 4}'),
  ('[{$sort: {id: 1}}, {$group: {_id: "$t", k: {$sum: "$id"}, m: {$max: "$n"}}}, {$sort: {_id: 1}}]', '{"_id": "x", "k": 1, "m": "Äpfel"} {"_id": "y", "k": 9, "m": "zebra"}'),
  ('[{$match: {id: 4}}, {$lookup: {from: "f", localField: "n", foreignField: "k", as: "x"}}, {$project: {_id: 0, x: "$x._id"}}]', '{"x": ["A"]}')) AS x (p, d);

-- ---------------------------------------------------------------- parallel workers and small memory
SELECT collection_create('many');
SELECT collection_insert('many', (SELECT bson_agg(bson_build('_id', i, 'n', CASE i % 4 WHEN 0 THEN 'ä' WHEN 1 THEN 'a' WHEN 2 THEN 'A' ELSE 'b' END::text)) FROM generate_series(1, 2000) AS i)) \g /dev/null
ANALYZE many;
SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0;
SELECT is(run('[{$group: {_id: "$n", k: {$sum: "$_id"}, s: {$addToSet: "$n"}, m: {$max: "$n"}}}, {$project: {_id: 0, k: 1, n: {$size: "$s"}}}, {$sort: {k: 1}}]', c(1), 'many'), '{"k": 500500, "n": 1} {"k": 1500500, "n": 1}', 'parallel groups');
SELECT ok(EXISTS (SELECT FROM collection_explain('many', '[{$group: {_id: "$n", s: {$addToSet: "$n"}}}]', collation => c(1)) AS l WHERE l LIKE '%Gather%'), 'have workers');

-- ---------------------------------------------------------------- errors
SELECT throws_ok($$SELECT run('[{$merge: {into: "f", on: "k"}}]', c(1))$$, '0A000', '"on" of $merge does not support a collation');
SELECT throws_ok(format($$SELECT collection_aggregate('w', '[]', collation => %L)$$, c), '22023', 'invalid collation', c) FROM unnest(ARRAY['{}', '{locale: 1}', '{locale: "zzzz"}', '{locale: "de''); DROP TABLE w; --"}', '{locale: "de", strength: 6}', '{locale: "de", foo: 1}', '{locale: "simple", strength: 1}']) AS c;
SELECT throws_ok($$SELECT collection_aggregate('w', '[]', '{"$collation": {locale: "de"}}')$$, '22023', '"$collation" cannot be the name of a variable');
SELECT throws_ok($q$SELECT run('[{$project: {x: "$$foo"}}]', c(1))$q$, '22023', 'variable "$$foo" is not defined', 'a collation brings no variables');
SELECT throws_ok($$SELECT run('[{$match: {$expr: {$divide: [1, {$subtract: ["$_id", "$_id"]}]}}}]', c(1))$$, NULL, NULL, 'an error ends the collation');
SELECT is((SELECT count(*) FROM collection_aggregate('w', '[{$match: {n: "Apfel"}}]')), 0::bigint, 'and bytes compare again');
SELECT is(run('[{$match: {n: "APFEL"}}, {$project: {_id: 1}}]', NULL), '{"_id": 4}', 'NULL is none');

SELECT * FROM finish();
ROLLBACK;
