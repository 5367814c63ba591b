-- Projections: every form with arrays and missing fields, errors, the order of fields, the datum that comes back.
\set QUIET 1
SET client_min_messages = warning;
BEGIN;
SELECT plan(139);

-- ---------------------------------------------------------------- inclusion

SELECT is(format('%s', bson_project(docpatterns.bson_in(d::cstring), docpatterns.bson_in(p::cstring), docpatterns.bson_in(f::cstring))), r, p) FROM (VALUES
  ('{_id: 1, a: 1, b: 2, c: 3}', '{a: 1, c: 1}', NULL, '{"_id": 1, "a": 1, "c": 3}'),
  ('{_id: 1, a: 1, b: 2, c: 3}', '{c: true, a: 2.5, _id: 0}', NULL, '{"a": 1, "c": 3}'),
  ('{_id: 1, a: 1, b: 2}', '{_id: 1}', NULL, '{"_id": 1}'),
  ('{b: 1, a: 2, _id: 3}', '{a: 1}', NULL, '{"a": 2, "_id": 3}'),
  ('{b: 1}', '{a: 1}', NULL, '{}'),
  ('{_id: 1, a: null}', '{a: 1}', NULL, '{"_id": 1, "a": null}'),
  ('{_id: 1, a: {b: 1, c: 2, d: {e: 1, f: 2}}, z: 1}', '{"a.b": 1, "a.d.e": 1}', NULL, '{"_id": 1, "a": {"b": 1, "d": {"e": 1}}}'),
  ('{_id: 1, a: {b: 1, c: 2, d: {e: 1, f: 2}}, z: 1}', '{a: {b: 1, d: {e: 1}}}', NULL, '{"_id": 1, "a": {"b": 1, "d": {"e": 1}}}'),
  ('{_id: 1, a: {b: 1, c: 1, d: 1}}', '{"a.b": 1, a: {c: 1}}', NULL, '{"_id": 1, "a": {"b": 1, "c": 1}}'),
  ('{_id: 1, a: {b: {c: 1, d: 2}}}', '{a: {"b.c": 1}}', NULL, '{"_id": 1, "a": {"b": {"c": 1}}}'),
  ('{_id: 1, a: [{b: 1, c: 2}, 5, [{b: 3, d: 1}, 6], {c: 1}]}', '{"a.b": 1}', NULL, '{"_id": 1, "a": [{"b": 1}, [{"b": 3}], {}]}'),
  ('{_id: 1, a: 5}', '{"a.b": 1}', NULL, '{"_id": 1}'),
  ('{_id: 1, a: {}}', '{"a.b": 1}', NULL, '{"_id": 1, "a": {}}'),
  ('{_id: {x: 1, y: 2}, a: 1}', '{"_id.x": 1}', NULL, '{"_id": {"x": 1}}'),
  ('{_id: 1, a: 1, b: 2}', '{_id: false, a: true}', NULL, '{"a": 1}')) AS t (d, p, f, r);

-- ---------------------------------------------------------------- exclusion

SELECT is(format('%s', bson_project(docpatterns.bson_in(d::cstring), docpatterns.bson_in(p::cstring), docpatterns.bson_in(f::cstring))), r, p) FROM (VALUES
  ('{_id: 1, a: 1, b: 2, c: 3}', '{a: 0, b: 0}', NULL, '{"_id": 1, "c": 3}'),
  ('{_id: 1, a: 1, b: 2, c: 3}', '{_id: 0}', NULL, '{"a": 1, "b": 2, "c": 3}'),
  ('{_id: 1, a: 1, b: 2, c: 3}', '{_id: 1, b: 0}', NULL, '{"_id": 1, "a": 1, "c": 3}'),
  ('{_id: 1, a: {b: 1, c: 2, d: {e: 1, f: 2}}, z: 1}', '{"a.b": 0, "a.d.e": false}', NULL, '{"_id": 1, "a": {"c": 2, "d": {"f": 2}}, "z": 1}'),
  ('{_id: 1, a: {b: 1, c: 2}}', '{a: {b: 0}}', NULL, '{"_id": 1, "a": {"c": 2}}'),
  ('{_id: 1, a: [{b: 1, c: 2}, 5, [{b: 3, d: 1}, 6], {c: 1}]}', '{"a.b": 0}', NULL, '{"_id": 1, "a": [{"c": 2}, 5, [{"d": 1}, 6], {"c": 1}]}'),
  ('{_id: 1, a: 5}', '{"a.b": 0}', NULL, '{"_id": 1, "a": 5}'),
  ('{_id: {x: 1, y: 2}, a: 1}', '{"_id.x": 0}', NULL, '{"_id": {"y": 2}, "a": 1}'),
  ('{_id: 1}', '{b: 0}', NULL, '{"_id": 1}'),
  ('{_id: 1, a: 1}', '{}', NULL, '{"_id": 1, "a": 1}')) AS t (d, p, f, r);

-- ---------------------------------------------------------------- $slice

SELECT is(format('%s', bson_project(docpatterns.bson_in(d::cstring), docpatterns.bson_in(p::cstring), docpatterns.bson_in(f::cstring))), r, p) FROM (VALUES
  ('{_id: 1, b: 1, a: [1, 2, 3, 4]}', '{a: {$slice: 2}}', NULL, '{"_id": 1, "b": 1, "a": [1, 2]}'),
  ('{_id: 1, b: 1, a: [1, 2, 3, 4], c: 1}', '{a: {$slice: -2}}', NULL, '{"_id": 1, "b": 1, "a": [3, 4], "c": 1}'),
  ('{_id: 1, b: 1, a: [1, 2, 3, 4], c: 1}', '{a: {$slice: [1, 2]}}', NULL, '{"_id": 1, "b": 1, "a": [2, 3], "c": 1}'),
  ('{_id: 1, b: 1, a: [1, 2, 3, 4], c: 1}', '{a: {$slice: [-3, 2]}, b: 1}', NULL, '{"_id": 1, "b": 1, "a": [2, 3]}'),
  ('{_id: 1, b: 1, a: [1, 2, 3, 4], c: 1}', '{a: {$slice: 0}, b: 0}', NULL, '{"_id": 1, "a": [], "c": 1}'),
  ('{_id: 1, b: 1, a: [1, 2], c: 1}', '{a: {$slice: [5, 1]}}', NULL, '{"_id": 1, "b": 1, "a": [], "c": 1}'),
  ('{_id: 1, b: 1, a: {x: [1, 2, 3]}}', '{"a.x": {$slice: 1}}', NULL, '{"_id": 1, "b": 1, "a": {"x": [1]}}'),
  ('{_id: 1, a: [{x: [1, 2]}, {x: 3}, 4]}', '{"a.x": {$slice: -1}}', NULL, '{"_id": 1, "a": [{"x": [2]}, {"x": 3}, 4]}'),
  ('{_id: 1, a: [1, 2]}', '{a: {$slice: 1.9}}', NULL, '{"_id": 1, "a": [1]}'),
  ('{_id: 1, a: [1, 2, 3, 4]}', '{a: {$slice: [-1.5, 2.5]}}', NULL, '{"_id": 1, "a": [4]}'),
  ('{_id: 1, a: [1, 2]}', '{a: {$slice: -Infinity}}', NULL, '{"_id": 1, "a": [1, 2]}'),
  ('{_id: 1, a: [1, 2]}', '{a: {$slice: NaN}}', NULL, '{"_id": 1, "a": []}'),
  ('{_id: 1, a: [1, 2]}', '{a: {$slice: [0, null]}}', NULL, '{"_id": 1, "a": null}'),
  ('{_id: 1, a: 5}', '{a: {$slice: 1}}', NULL, '{"_id": 1, "a": 5}'),
  ('{_id: 1, b: 1}', '{a: {$slice: 1}}', NULL, '{"_id": 1, "b": 1}'),
  ('{_id: 1, a: [1, 2, 3]}', '{a: {$slice: ["$a", 1]}}', NULL, '{"_id": 1, "a": [1]}')) AS t (d, p, f, r);

SELECT throws_ok(format('SELECT bson_project(%L, %L, %L)', d, p, f), s, m, p) FROM (VALUES
  ('{_id: 1, a: [1, 2]}', '{a: {$slice: [1, 0]}}', NULL, '22023', 'invalid projection: $slice needs a number of elements that is greater than 0'),
  ('{_id: 1, a: [1, 2]}', '{a: {$slice: [1, 0.5]}}', NULL, '22023', 'invalid projection: $slice needs a number of elements that is greater than 0'),
  ('{_id: 1, a: [1, 2]}', '{a: {$slice: [1, "x"]}}', NULL, '22023', 'invalid projection: $slice needs numbers'),
  ('{_id: 1, a: [1, 2]}', '{a: {$slice: "x"}}', NULL, '22023', '$slice needs 2 to 3 arguments, not 1')) AS t (d, p, f, s, m);

-- ---------------------------------------------------------------- $elemMatch

SELECT is(format('%s', bson_project(docpatterns.bson_in(d::cstring), docpatterns.bson_in(p::cstring), docpatterns.bson_in(f::cstring))), r, p) FROM (VALUES
  ('{_id: 1, g: [{n: 1, s: 5}, {n: 2, s: 9}, {n: 3, s: 9}], x: 1}', '{g: {$elemMatch: {s: {$gt: 6}}}}', NULL, '{"_id": 1, "g": [{"n": 2, "s": 9}]}'),
  ('{_id: 1, g: [{n: 1, s: 5}], x: 1}', '{x: 1, g: {$elemMatch: {s: {$gt: 6}}}}', NULL, '{"_id": 1, "x": 1}'),
  ('{_id: 1, g: [3, 7, 8], x: 1}', '{g: {$elemMatch: {$gt: 6}}, x: 1}', NULL, '{"_id": 1, "x": 1, "g": [7]}'),
  ('{_id: 1, g: [null, 1], x: 1}', '{g: {$elemMatch: {$eq: null}}}', NULL, '{"_id": 1, "g": [null]}'),
  ('{_id: 1, g: 7}', '{g: {$elemMatch: {$gt: 6}}}', NULL, '{"_id": 1}'),
  ('{_id: 1, g: [3, 7, 8], x: 1, y: 1}', '{g: {$elemMatch: {$gt: 6}}, y: 0}', NULL, '{"_id": 1, "g": [7], "x": 1}'),
  ('{_id: 1, g: [3], x: 1, y: 1}', '{_id: 0, g: {$elemMatch: {$gt: 6}}, y: 0}', NULL, '{"x": 1}'),
  ('{_id: 1, g: [3, 7], x: 1}', '{_id: 0, g: {$elemMatch: {$gt: 6}}}', NULL, '{"g": [7]}'),
  ('{_id: 1}', '{g: {$elemMatch: {$gt: 6}}}', NULL, '{"_id": 1}')) AS t (d, p, f, r);

SELECT throws_ok(format('SELECT bson_project(%L, %L, %L)', d, p, f), s, m, p) FROM (VALUES
  ('{_id: 1, g: [3]}', '{"g.h": {$elemMatch: {$gt: 6}}}', NULL, '22023', 'invalid projection: $elemMatch can only be used for a field of the document itself'),
  ('{_id: 1, g: [3]}', '{g: {$elemMatch: 5}}', NULL, '22023', 'invalid projection: $elemMatch needs a document, not int'),
  ('{_id: 1, g: [3]}', '{g: {$elemMatch: {$nope: 5}}}', NULL, '0A000', 'unknown filter operator "$nope"')) AS t (d, p, f, s, m);

-- ---------------------------------------------------------------- the positional operator

SELECT is(format('%s', bson_project(docpatterns.bson_in(d::cstring), docpatterns.bson_in(p::cstring), docpatterns.bson_in(f::cstring))), r, p) FROM (VALUES
  ('{_id: 1, g: [3, 7, 8], x: 1}', '{"g.$": 1}', '{g: {$gt: 6}}', '{"_id": 1, "g": [7]}'),
  ('{_id: 1, g: [{a: 1, b: 5}, {a: 2, b: 6}], x: 1}', '{"g.$": 1}', '{"g.a": 2}', '{"_id": 1, "g": [{"a": 2, "b": 6}]}'),
  ('{_id: 1, g: [{a: 1}, {a: 2}], x: 1}', '{"g.$": true, x: 1, _id: 0}', '{g: {$elemMatch: {a: 2}}}', '{"g": [{"a": 2}], "x": 1}'),
  ('{_id: 1, s: {g: [{a: 1}, {a: 2}], h: 1}, x: 1}', '{"s.g.$": 1}', '{"s.g.a": 2}', '{"_id": 1, "s": {"g": [{"a": 2}]}}'),
  ('{_id: 1, g: [1, 2, 3], h: [4, 5, 6]}', '{"g.$": 1}', '{h: {$gt: 4}}', '{"_id": 1, "g": [2]}'),
  ('{_id: 1, g: [1, 2, 3], h: [4, 5, 6]}', '{"g.$": 1}', '{g: 3, h: 5}', '{"_id": 1, "g": [3]}'),
  ('{_id: 1, g: [1, 2, 3]}', '{"g.$": 1}', '{$or: [{g: 5}, {g: 3}]}', '{"_id": 1, "g": [3]}'),
  ('{_id: 1, s: {g: [1, 2], h: [4, 5]}}', '{"s.g.$": 1}', '{"s.h": 5}', '{"_id": 1, "s": {"g": [2]}}'),
  ('{_id: 1, g: [1, 2, 3]}', '{"g.$": 1}', '{$and: [{g: {$gt: 1}}, {g: {$lt: 5}}]}', '{"_id": 1, "g": [2]}'),
  ('{_id: 1, g: [1, 2, 3]}', '{"g.$": 1}', '{g: {$gt: 1, $elemMatch: {$eq: 1}, $in: [3]}}', '{"_id": 1, "g": [3]}'),
  ('{_id: 1, g: 7}', '{"g.$": 1}', '{g: {$gt: 6}}', '{"_id": 1, "g": 7}')) AS t (d, p, f, r);

SELECT throws_ok(format('SELECT bson_project(%L, %L, %L)', d, p, f), s, m, p) FROM (VALUES
  ('{_id: 1, g: [3, 7, 8]}', '{"g.$": 1}', NULL, '22023', 'the positional operator needs a filter'),
  ('{_id: 1, g: [3, 7, 8], x: 1}', '{"g.$": 1}', '{$or: [{g: 7}, {x: 1}]}', '22023', 'the filter matches no element for the positional operator'),
  ('{_id: 1, g: [3, 7, 8]}', '{"g.$": 1}', '{"g.1": 7}', '22023', 'the filter matches no element for the positional operator'),
  ('{_id: 1, g: [3, 7, 8], x: 1}', '{"g.$": 1}', '{x: 1}', '22023', 'the filter matches no element for the positional operator'),
  ('{_id: 1, g: [3]}', '{"g.$": 1, "x.$": 1}', '{g: 3}', '22023', 'invalid projection: there can be only one positional operator'),
  ('{_id: 1, g: [3]}', '{"g.$.a": 1}', '{g: 3}', '22023', 'invalid projection: the positional operator can only stand at the end of a path'),
  ('{_id: 1, g: [3]}', '{"g.$": 0}', '{g: 3}', '22023', 'invalid projection: the positional operator can only include'),
  ('{_id: 1, g: [3]}', '{"g.$": "x"}', '{g: 3}', '22023', 'invalid projection: the positional operator needs 1 or true'),
  ('{_id: 1, g: [3]}', '{"g.$": 1, x: 0}', '{g: 3}', '22023', 'invalid projection: fields cannot be excluded where others are included or computed'),
  ('{_id: 1, g: [3]}', '{"g.$": 1}', '{g: 3, $expr: {$eq: [1, 1]}}', '22023', 'the positional operator needs a filter without $expr'),
  ('{_id: 1, g: [{a: 3}]}', '{g: {$elemMatch: {$jsonSchema: {}}}}', NULL, '22023', '"$jsonSchema" can only be used in the filter of a query'),
  ('{_id: 1, g: [3]}', '{"g.$": 1}', '{g: {$nope: 3}}', '0A000', 'unknown filter operator "$nope"')) AS t (d, p, f, s, m);

-- ---------------------------------------------------------------- computed fields

SELECT is(format('%s', bson_project(docpatterns.bson_in(d::cstring), docpatterns.bson_in(p::cstring), docpatterns.bson_in(f::cstring))), r, p) FROM (VALUES
  ('{_id: 1, a: 2, b: 3}', '{sum: {$add: ["$a", "$b"]}, b: 1}', NULL, '{"_id": 1, "b": 3, "sum": 5}'),
  ('{_id: 1, a: 2, b: 3}', '{b: {$multiply: ["$b", 10]}, a: 1}', NULL, '{"_id": 1, "a": 2, "b": 30}'),
  ('{_id: 1, a: 2, b: 3}', '{n: "$a", lit: "x", one: {$literal: 1}, arr: ["$a", "$z"], nothing: "$z", isnull: null, _id: 0}', NULL, '{"n": 2, "lit": "x", "one": 1, "arr": [2, null], "isnull": null}'),
  ('{_id: 1, a: {x: 1, y: 2}, b: 3}', '{"a.s": {$add: ["$a.x", "$b"]}, "a.y": 1}', NULL, '{"_id": 1, "a": {"y": 2, "s": 4}}'),
  ('{_id: 1, a: {x: 1}, b: 3}', '{a: {s: "$b", t: {u: "$a.x"}}}', NULL, '{"_id": 1, "a": {"s": 3, "t": {"u": 1}}}'),
  ('{_id: 1, a: [{x: 1}, {y: 2}], b: 3}', '{"a.s": "$b"}', NULL, '{"_id": 1, "a": [{"s": 3}, {"s": 3}]}'),
  ('{_id: 1, a: 5, b: 3}', '{"a.s": "$b"}', NULL, '{"_id": 1, "a": {"s": 3}}'),
  ('{_id: 1, b: 3}', '{"a.s": "$b", "a.t": "$zz"}', NULL, '{"_id": 1, "a": {"s": 3}}'),
  ('{_id: 1, b: 3}', '{all: "$$ROOT"}', NULL, '{"_id": 1, "all": {"_id": 1, "b": 3}}'),
  ('{_id: 1, b: 3}', '{b: {$cond: [{$gt: ["$b", 2]}, "$$REMOVE", "$b"]}}', NULL, '{"_id": 1}'),
  ('{_id: 1, b: 3}', '{_id: 0, day: {$type: "$$NOW"}}', NULL, '{"day": "date"}')) AS t (d, p, f, r);

-- ---------------------------------------------------------------- errors

SELECT throws_ok(format('SELECT bson_project(%L, %L, %L)', d, p, f), s, m, p) FROM (VALUES
  ('{_id: 1, a: 1}', '{a: 1, b: 0}', NULL, '22023', 'invalid projection: fields cannot be excluded where others are included or computed'),
  ('{_id: 1, a: 1}', '{b: 0, a: 1}', NULL, '22023', 'invalid projection: fields cannot be included or computed where others are excluded'),
  ('{_id: 1, a: 1}', '{b: 0, a: "$x"}', NULL, '22023', 'invalid projection: fields cannot be included or computed where others are excluded'),
  ('{_id: 1, a: 1}', '{b: 1, "a.c": 0}', NULL, '22023', 'invalid projection: fields cannot be excluded where others are included or computed'),
  ('{_id: 1, a: 1}', '{a: {b: 1, c: 0}}', NULL, '22023', 'invalid projection: fields cannot be excluded where others are included or computed'),
  ('{_id: 1}', '{a: {$meta: "textScore"}}', NULL, '0A000', '$meta is not supported'),
  ('{_id: 1}', '{a: {$nope: 1}}', NULL, '0A000', 'expression operator "$nope" is not supported'),
  ('{_id: 1}', '{a: {$add: ["$x", {$subtract: [1]}]}}', NULL, '22023', '$subtract needs 2 arguments, not 1'),
  ('{_id: 1}', '{a: 1, "a.b": 1}', NULL, '22023', 'invalid projection: the path collides with another one'),
  ('{_id: 1}', '{"a.b": 1, a: 1}', NULL, '22023', 'invalid projection: the path collides with another one'),
  ('{_id: 1}', '{"a.b": 1, "a.b": 1}', NULL, '22023', 'invalid projection: the path collides with another one'),
  ('{_id: 1}', '{"a.b": 1, a: {b: 1}}', NULL, '22023', 'invalid projection: the path collides with another one'),
  ('{_id: 1}', '{a: {$slice: 1}, "a.b": 1}', NULL, '22023', 'invalid projection: the path collides with another one'),
  ('{_id: 1}', '{"a..b": 1}', NULL, '22023', 'invalid projection: a part of the path is empty'),
  ('{_id: 1}', '{"": 1}', NULL, '22023', 'invalid projection: a part of the path is empty'),
  ('{_id: 1}', '{"$a": 1}', NULL, '22023', 'invalid projection: the name of a field cannot begin with a dollar'),
  ('{_id: 1}', '{"a.$b": 1}', NULL, '22023', 'invalid projection: the name of a field cannot begin with a dollar'),
  ('{_id: 1}', '{a: {}}', NULL, '22023', 'invalid projection: a document that is empty says nothing'),
  ('{_id: 1, b: "x"}', '{a: {$add: ["$b", 1]}}', NULL, '22023', '$add needs numbers or a date, not string')) AS t (d, p, f, s, m);

-- ---------------------------------------------------------------- the call

SELECT has_function('bson_project', ARRAY['bson', 'bson', 'bson']);
SELECT function_returns('bson_project', ARRAY['bson', 'bson', 'bson'], 'bson');
SELECT volatility_is('bson_project', ARRAY['bson', 'bson', 'bson'], 'stable');
SELECT is(bson_project(NULL, '{a: 1}'), NULL, 'no document');
SELECT is(bson_project('{a: 1}', NULL), NULL, 'no projection');
SELECT is(bson_project('{a: 1, b: 2}', '{b: 1}', filter => NULL), '{b: 2}'::bson, 'no filter');
SELECT is(string_agg(bson_project('{_id: 1, a: 1, b: 2}', docpatterns.bson_in(p::cstring))::text, ' ' ORDER BY i), '{"_id": 1, "a": 1} {"_id": 1, "b": 2} {"_id": 1, "a": 1}', 'a projection in a column')
  FROM (VALUES (1, '{a: 1}'), (2, '{b: 1}'), (3, '{a: 1}')) AS t (i, p);
SELECT is(string_agg(bson_project('{g: [1, 2, 3]}', '{"g.$": 1}', bson_build('g', i))::text, ' ' ORDER BY i), '{"g": [1]} {"g": [2]} {"g": [3]}', 'a filter that changes')
  FROM generate_series(1, 3) AS i;
PREPARE project(bson) AS SELECT bson_project('{_id: 1, a: 1, b: 2}', $1);
SELECT results_eq($$EXECUTE project('{a: 0}')$$, $$VALUES ('{_id: 1, b: 2}'::bson)$$, 'a parameter');
SELECT results_eq($$EXECUTE project('{b: 0}')$$, $$VALUES ('{_id: 1, a: 1}'::bson)$$, 'the same with another one');

-- what does not change comes back as it is stored, compressed
CREATE TEMP TABLE stored (doc bson);
INSERT INTO stored SELECT bson_build('_id', 1, 'a', repeat('x', 100000), 'b', '{c: 1}'::bson);
SELECT is((SELECT pg_column_size(bson_project(doc, p)) FROM stored), (SELECT pg_column_size(doc) FROM stored), p::text || ' leaves the datum')
  FROM (VALUES ('{}'::bson), ('{z: 0}'), ('{"a.z": 0}'), ('{a: 1, b: 1}'), ('{a: {$slice: 1}}'), ('{b: {c: 1}, a: 1}')) AS t (p);
SELECT ok((SELECT pg_column_size(bson_project(doc, '{b: 0}')) > pg_column_size(doc) FROM stored), 'what changes is made anew');
SELECT is((SELECT bson_project(doc, '{b: 1}') FROM stored), '{_id: 1, b: {c: 1}}'::bson, 'from a compressed document');

-- wide documents, and many fields
SELECT is((SELECT bson_project(bson_object_agg('f' || i, i), '{f1: 1, f500: 1, f1000: 1}')::text FROM generate_series(1, 1000) AS i), '{"f1": 1, "f500": 500, "f1000": 1000}', 'three of a thousand');
SELECT is((SELECT bson_project(bson_object_agg('f' || i, i), bson_object_agg('f' || (1001 - i), 1)) = bson_object_agg('f' || i, i) FROM generate_series(1, 1000) AS i), true, 'all of a thousand, in another order');
SELECT is((SELECT count(*) FROM bson_each((SELECT bson_project(bson_object_agg('f' || i, i), bson_object_agg('f' || (2 * i), 0)) FROM generate_series(1, 1000) AS i))), 500::bigint, 'without half of a thousand');
SELECT is((SELECT bson_project('{a: {b: 1}}', bson_object_agg('n' || i || '.x', '"$a.b"'::bson_value)) = bson_object_agg('n' || i, '{x: 1}'::bson) FROM generate_series(1, 40) AS i), true, 'forty computed documents');
SELECT throws_ok($$SELECT bson_project('{}', bson_build('v', bson_set('{}', string_agg('a', '.'), 1))) FROM generate_series(1, 101)$$, '54000', NULL, 'too deep');

SELECT throws_ok(format('SELECT bson_project(%L, %L)', '{}', '{"a' || repeat('.a', 200) || '": 1}'), '22023', 'invalid projection: the path has more than 200 parts', 'a path too deep');

-- ---------------------------------------------------------------- the immutable form

SELECT is(bson_project_immutable('{a: 1, b: [{c: 1}, {c: 2}]}', p::bson), bson_project('{a: 1, b: [{c: 1}, {c: 2}]}', p::bson), p) FROM unnest(ARRAY['{a: 1}', '{x: {$add: ["$a", 1]}, b: {$elemMatch: {c: 2}}}']) p;
SELECT throws_ok(format('SELECT bson_project_immutable(%L, %L, %L)', '{b: [{c: 1}]}', p, f), '0A000', NULL, concat_ws(' ', p, f)) FROM (VALUES
  ('{x: "$$NOW"}', NULL),
  ('{x: {$rand: {}}}', NULL),
  ('{"b.$": 1}', '{b: 1, $expr: {$lt: ["$t", "$$NOW"]}}')) v (p, f);

SELECT * FROM finish();
ROLLBACK;
