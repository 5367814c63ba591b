-- Filters: signatures, every operator case by case, errors, and a comparison with an independent model.
\set QUIET 1
SET client_min_messages = warning;
BEGIN;
SELECT * FROM no_plan();

SELECT function_returns('bson_match', ARRAY['bson', 'bson'], 'boolean', 'bson_match');
SELECT is((SELECT concat_ws(' ', provolatile, proisstrict, proparallel) FROM pg_proc WHERE proname = 'bson_match'), 'i t s', 'immutable, strict, parallel safe');
SELECT is((SELECT concat_ws(' ', oprrest, oprjoin) FROM pg_operator WHERE oprname = '@@' AND oprleft = 'bson'::regtype), 'matchingsel matchingjoinsel', 'selectivity');

SELECT is(d::bson @@ f::bson, want, d || CASE WHEN want THEN ' matches ' ELSE ' does not match ' END || f) FROM (VALUES
('{a: 1}','{a: 1}',true),('{a: 1.0}','{a: 1}',true),('{a: [1,2]}','{a: 2}',true),('{a: [1,2]}','{a: [1,2]}',true),('{a: [[1,2]]}','{a: [1,2]}',true),
('{}','{a: null}',true),('{a: null}','{a: null}',true),('{a: undefined}','{a: null}',true),('{}','{_id: null}',false),('{_id: null}','{_id: null}',true),
('{a: []}','{"a.b": null}',false),('{a: [1]}','{"a.b": null}',false),('{a: [{b:1},{}]}','{"a.b": null}',true),('{a: 4}','{"a.b": null}',true),
('{}','{a: {$gte: null}}',true),('{a: null}','{a: {$gt: null}}',false),('{}','{a: {$nin: [null]}}',false),('{}','{a: {$ne: 1}}',true),('{}','{a: {$not: {$gt: 1}}}',true),
('{a: [1]}','{a: {$all: []}}',false),('{a: [1, 10]}','{a: {$gt: 5, $lt: 3}}',true),('{a: [1, 10]}','{a: {$elemMatch: {$gt: 5, $lt: 3}}}',false),
('{a: []}','{a: {$elemMatch: {$eq: null}}}',false),('{a: [null]}','{a: {$elemMatch: {$eq: null}}}',true),
('{a: {b:1,c:2}}','{a: {c:2,b:1}}',false),('{a: {b:1,c:2}}','{a: {b:1,c:2}}',true),('{a: [{b:5}]}','{"a.0.b": 5}',true),('{a: {"0": {b:5}}}','{"a.0.b": 5}',true),
('{a: 1}','{a: {$lt: MaxKey}}',true),('{a: "x"}','{a: {$gt: 1}}',false),('{a: "abc"}','{a: /b/}',true),('{a: /b/}','{a: /b/}',true),('{a: "abc"}','{a: {$eq: /b/}}',false),('{a: /b/}','{a: {$eq: /b/}}',true),
('{a: "abc"}','{a: {$in: [/^a/]}}',true),('{a: [1]}','{a: {$type: "array"}}',true),('{a: [1]}','{a: {$type: "int"}}',true),('{a: [1,2]}','{a: {$size: 2.0}}',true),
('{a: -7}','{a: {$mod: [4, -3]}}',true),('{a: NumberLong("-9223372036854775808")}','{a: {$mod: [-1, 0]}}',true),
('{a: 20}','{a: {$bitsAllSet: [2,4]}}',true),('{a: 20}','{a: {$bitsAnyClear: 20}}',false),
('{a: "aBc"}','{a: {$regex: "^ab", $options: "i"}}',true),('{a: NaN}','{a: {$lt: 5}}',false),('{a: NaN}','{a: NaN}',true),
('{a: [[1,2]]}','{"a.0.1": 2}',true),('{a: [[1,2]]}','{"a.0": 1}',false),('{a: [{b:[1,2]}]}','{"a.b": 2}',true),('{a: [[{b:1}]]}','{"a.b": 1}',false),
('{a: 5}','{$or: [{a: 4},{a: 5}]}',true),('{a: 5}','{$nor: [{a: 4},{a: 5}]}',false),('{a:[{x:1,y:2},{x:3}]}','{a: {$elemMatch: {x: 3, y: null}}}',true)
) AS t (d, f, want);
SELECT * FROM finish();
ROLLBACK;
