-- Filters: signatures, every operator case by case, errors, and a comparison with an independent model.
\set QUIET 1
SET client_min_messages = warning;
BEGIN;
SELECT plan(446);

SELECT function_returns('bson_match', ARRAY['bson', 'bson'], 'boolean', 'bson_match');
SELECT is((SELECT concat_ws(' ', provolatile, proisstrict, proparallel) FROM pg_proc WHERE proname = 'bson_match'), 'i t s', 'immutable, strict, parallel safe');
SELECT is((SELECT concat_ws(' ', oprrest, oprjoin) FROM pg_operator WHERE oprname = '@@' AND oprleft = 'bson'::regtype), 'docpatterns.bson_matchsel matchingjoinsel', 'selectivity');

-- doc @@ filter and bson_match, and the filter negated
CREATE FUNCTION matches(d bson, f bson) RETURNS boolean LANGUAGE sql AS $$
  SELECT CASE WHEN (d @@ f) = bson_match(d, f) AND (d @@ f) <> (d @@ bson_build('$nor', bson_array(f))) THEN d @@ f END $$;

SELECT is(matches(d::bson, f::bson), want, d || CASE WHEN want THEN ' matches ' ELSE ' does not match ' END || f) FROM (VALUES
-- equality, null and missing
('{}', '{}', true), ('{a: 1}', '{}', true), ('{a: 1}', '{a: 1}', true), ('{a: 1.0}', '{a: 1}', true), ('{a: NumberDecimal("1.00")}', '{a: NumberLong(1)}', true), ('{a: 2}', '{a: 1}', false), ('{a: "1"}', '{a: 1}', false), ('{a: true}', '{a: 1}', false),
('{a: "x"}', '{a: "x"}', true), ('{a: "x"}', '{a: "xx"}', false), ('{a: Symbol("x")}', '{a: "x"}', true), ('{a: ISODate("2020-01-01")}', '{a: {$eq: ISODate("2020-01-01")}}', true), ('{a: 1, b: 2}', '{a: 1, b: 2}', true), ('{a: 1, b: 3}', '{a: 1, b: 2}', false),
('{}', '{a: null}', true), ('{a: null}', '{a: null}', true), ('{a: undefined}', '{a: null}', true), ('{a: 1}', '{a: null}', false), ('{a: [null]}', '{a: null}', true), ('{a: []}', '{a: null}', false),
('{}', '{_id: null}', true), ('{_id: null}', '{_id: null}', true), ('{}', '{_id: {$in: [null]}}', true), ('{a: {}}', '{"a._id": null}', true), ('{a: [{}]}', '{a: {$elemMatch: {_id: null}}}', true),
('{a: []}', '{"a.b": null}', false), ('{a: [1]}', '{"a.b": null}', false), ('{a: [{b: 1}, {}]}', '{"a.b": null}', true), ('{a: [{b: 1}, {b: 2}]}', '{"a.b": null}', false), ('{a: 4}', '{"a.b": null}', true), ('{a: {b: null}}', '{"a.b": null}', true),
-- documents and arrays as values
('{a: {b: 1, c: 2}}', '{a: {b: 1, c: 2}}', true), ('{a: {b: 1, c: 2}}', '{a: {c: 2, b: 1}}', false), ('{a: {b: 1, c: 2}}', '{a: {b: 1}}', false), ('{a: {b: 1.0}}', '{a: {b: 1}}', true), ('{a: {}}', '{a: {}}', true),
('{a: [1, 2]}', '{a: 2}', true), ('{a: [1, 2]}', '{a: [1, 2]}', true), ('{a: [1, 2]}', '{a: [2, 1]}', false), ('{a: [[1, 2]]}', '{a: [1, 2]}', true), ('{a: [[1]]}', '{a: 1}', false), ('{a: [{b: 1}]}', '{a: {b: 1}}', true), ('{a: []}', '{a: []}', true), ('{a: [[]]}', '{a: []}', true),
-- paths
('{a: {b: {c: 5}}}', '{"a.b.c": 5}', true), ('{a: {b: 5}}', '{"a.b.c": 5}', false), ('{"a.b": 5}', '{"a.b": 5}', false), ('{a: [{b: 5}]}', '{"a.0.b": 5}', true), ('{a: {"0": {b: 5}}}', '{"a.0.b": 5}', true), ('{a: [{"0": 5}]}', '{"a.0": 5}', true), ('{a: [{b: 4}, {b: 5}]}', '{"a.0.b": 5}', false),
('{a: [{b: 4}, {b: 5}]}', '{"a.b": 5}', true), ('{a: [{b: [1, 2]}]}', '{"a.b": 2}', true), ('{a: [[{b: 1}]]}', '{"a.b": 1}', false), ('{a: [[{b: 1}]]}', '{"a.0.b": 1}', true), ('{a: [[1, 2]]}', '{"a.0.1": 2}', true), ('{a: [[1, 2]]}', '{"a.0": 1}', false), ('{a: [[1, 2]]}', '{"a.0": [1, 2]}', true),
('{a: [5]}', '{"a.00": 5}', false), ('{a: [5]}', '{"a.-1": 5}', false), ('{a: [5]}', '{"a.1": 5}', false), ('{"": 1}', '{"": 1}', true), ('{a: {"": 1}}', '{"a.": 1}', true), ('{"x\"y": 1}', '{"x\"y": 1}', true), ('{a: 1, a: 2}', '{a: 2}', false), ('{a: [{b: 1}]}', '{"a.0": {b: 1}}', true),
-- comparisons
('{a: 5}', '{a: {$gt: 4}}', true), ('{a: 5}', '{a: {$gt: 5}}', false), ('{a: 5}', '{a: {$gte: 5.0}}', true), ('{a: 5}', '{a: {$lt: 5}}', false), ('{a: 5}', '{a: {$lte: 5}}', true), ('{a: 5}', '{a: {$lt: NumberDecimal("5.01")}}', true), ('{a: NumberLong("9007199254740993")}', '{a: {$gt: 9007199254740992.0}}', true),
('{a: "x"}', '{a: {$gt: 1}}', false), ('{a: "b"}', '{a: {$gt: "a"}}', true), ('{a: 0.1}', '{a: {$gt: NumberDecimal("0.1")}}', true), ('{}', '{a: {$lt: 5}}', false), ('{a: null}', '{a: {$lt: 5}}', false), ('{a: [1, 10]}', '{a: {$gt: 5}}', true), ('{a: [2, 3]}', '{a: {$gt: [2, 1]}}', true), ('{a: true}', '{a: {$gt: false}}', true),
('{}', '{a: {$gte: null}}', true), ('{}', '{a: {$lte: null}}', true), ('{a: null}', '{a: {$gt: null}}', false), ('{}', '{a: {$lt: null}}', false), ('{a: 1}', '{a: {$gte: null}}', false), ('{a: undefined}', '{a: {$gte: null}}', true),
('{a: 1}', '{a: {$lt: MaxKey}}', true), ('{a: "x"}', '{a: {$gt: MinKey}}', true), ('{}', '{a: {$gte: MinKey}}', true), ('{a: MinKey}', '{a: {$gt: MinKey}}', false), ('{a: MinKey}', '{a: {$gte: MinKey}}', true), ('{a: MinKey}', '{a: {$lt: 5}}', false), ('{a: 5}', '{a: {$gt: MaxKey}}', false), ('{a: MaxKey}', '{a: MaxKey}', true),
('{a: NaN}', '{a: NaN}', true), ('{a: NaN}', '{a: {$lt: 5}}', false), ('{a: NaN}', '{a: {$lte: NaN}}', true), ('{a: 5}', '{a: {$gt: NaN}}', false), ('{a: NumberDecimal("NaN")}', '{a: {$gte: NaN}}', true), ('{a: -Infinity}', '{a: {$lt: -1e308}}', true), ('{a: NaN}', '{a: {$lt: NumberDecimal("1")}}', false),
('{a: [1, 10]}', '{a: {$gt: 5, $lt: 3}}', true), ('{a: 4}', '{a: {$gt: 5, $lt: 3}}', false), ('{a: 4}', '{a: {$gt: 3, $lt: 5}}', true),
('{}', '{a: {$ne: 1}}', true), ('{a: [1, 2]}', '{a: {$ne: 1}}', false), ('{a: null}', '{a: {$ne: null}}', false), ('{}', '{a: {$ne: null}}', false), ('{a: 2}', '{a: {$ne: 1}}', true), ('{a: [{b: 1}, {b: 2}]}', '{"a.b": {$ne: 1}}', false),
-- in, nin
('{a: 2}', '{a: {$in: [1, 2.0, "x"]}}', true), ('{a: 3}', '{a: {$in: [1, 2]}}', false), ('{a: [3, 2]}', '{a: {$in: [1, 2]}}', true), ('{a: [1]}', '{a: {$in: [[1]]}}', true), ('{a: 1}', '{a: {$in: []}}', false), ('{}', '{a: {$in: [null]}}', true), ('{a: undefined}', '{a: {$in: [1, null]}}', true),
('{a: "abc"}', '{a: {$in: [1, /^a/]}}', true), ('{a: "abc"}', '{a: {$in: [/^b/]}}', false), ('{a: /^b/}', '{a: {$in: [/^b/]}}', true), ('{a: {b: 1}}', '{a: {$in: [{b: 1}]}}', true), ('{a: 13}', '{a: {$in: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]}}', true), ('{a: NaN}', '{a: {$in: [NaN]}}', true),
('{}', '{a: {$nin: [null]}}', false), ('{}', '{a: {$nin: [1]}}', true), ('{a: [1, 2]}', '{a: {$nin: [2]}}', false), ('{a: 5}', '{a: {$nin: []}}', true), ('{a: "abc"}', '{a: {$nin: [/b/]}}', false),
-- trees
('{a: 5}', '{$or: [{a: 4}, {a: 5}]}', true), ('{a: 6}', '{$or: [{a: 4}, {a: 5}]}', false), ('{a: 5}', '{$nor: [{a: 4}, {a: 5}]}', false), ('{a: 6}', '{$nor: [{a: 4}, {a: 5}]}', true), ('{a: 5, b: 1}', '{$and: [{a: 5}, {b: {$lt: 2}}]}', true), ('{a: 5, b: 1}', '{a: 5, $or: [{b: 2}, {$and: [{b: 1}]}]}', true),
('{}', '{a: {$not: {$gt: 1}}}', true), ('{a: [0, 2]}', '{a: {$not: {$gt: 1}}}', false), ('{a: "x"}', '{a: {$not: {$gt: 1, $lt: 5}}}', true), ('{a: "abc"}', '{a: {$not: /b/}}', false), ('{a: 5}', '{a: {$not: {$regex: "b"}}}', true), ('{a: 5}', '{a: {$not: {$not: {$eq: 5}}}}', true),
('{a: 1}', '{$comment: "why", a: {$comment: "c", $eq: 1}}', true), ('{}', '{$alwaysTrue: 1}', true), ('{}', '{$alwaysFalse: 1}', false), ('{a: {$ref: "x", $id: 1}}', '{a: {$ref: "x", $id: 1}}', true),
-- exists, type
('{a: null}', '{a: {$exists: true}}', true), ('{}', '{a: {$exists: true}}', false), ('{}', '{a: {$exists: false}}', true), ('{a: []}', '{a: {$exists: 1}}', true), ('{a: []}', '{"a.0": {$exists: false}}', true), ('{a: [{b: 1}, {}]}', '{"a.b": {$exists: false}}', false), ('{a: [1]}', '{"a.b": {$exists: false}}', true), ('{a: 1}', '{a: {$exists: 0.0}}', false), ('{a: 1}', '{a: {$exists: null}}', false),
('{a: 1}', '{a: {$type: "int"}}', true), ('{a: 1}', '{a: {$type: 16}}', true), ('{a: 1}', '{a: {$type: "number"}}', true), ('{a: 1}', '{a: {$type: ["string", 1]}}', false), ('{a: "x"}', '{a: {$type: ["string", 1]}}', true), ('{a: [1]}', '{a: {$type: "array"}}', true), ('{a: [1]}', '{a: {$type: "int"}}', true), ('{a: 1}', '{a: {$type: "array"}}', false), ('{a: []}', '{a: {$type: "int"}}', false),
('{}', '{a: {$type: "null"}}', false), ('{a: null}', '{a: {$type: 10}}', true), ('{a: MinKey}', '{a: {$type: -1}}', true), ('{a: MaxKey}', '{a: {$type: "maxKey"}}', true), ('{a: [{}]}', '{a: {$type: "object"}}', true), ('{a: NumberDecimal("1")}', '{a: {$type: "decimal"}}', true), ('{a: 1}', '{a: {$type: 16.0}}', true),
-- arrays whose names are no positions, as other writers may leave them
('{a: {"$array": {x: 5, "": 6, "longer than eight": 7}}}', '{a: 7}', true), ('{a: {"$array": {x: {b: 1}, "": {b: 2}}}}', '{"a.b": 2}', true), ('{a: {"$array": {"7": {b: 1}, "5": {b: 2}}}}', '{"a.1.b": 2}', true),
('{a: [{"$array": {x: 5}}]}', '{a: {$elemMatch: {x: 5}}}', false), ('{a: [{"$array": {x: 5}}]}', '{a: {$elemMatch: {"0": 5}}}', true),
-- mod
('{a: 7}', '{a: {$mod: [4, 3]}}', true), ('{a: 7.9}', '{a: {$mod: [4, 3]}}', true), ('{a: -7}', '{a: {$mod: [4, -3]}}', true), ('{a: -7}', '{a: {$mod: [4, 3]}}', false), ('{a: NumberDecimal("7.9")}', '{a: {$mod: [4.9, 3.9]}}', true), ('{a: NumberLong("-9223372036854775808")}', '{a: {$mod: [-1, 0]}}', true), ('{a: NumberLong("-9223372036854775808")}', '{a: {$mod: [-1, 1]}}', false),
('{a: "7"}', '{a: {$mod: [4, 3]}}', false), ('{}', '{a: {$mod: [4, 0]}}', false), ('{a: null}', '{a: {$mod: [4, 0]}}', false), ('{a: NaN}', '{a: {$mod: [4, 0]}}', false), ('{a: 1e300}', '{a: {$mod: [4, 0]}}', false), ('{a: [1, 7]}', '{a: {$mod: [4, 3]}}', true), ('{a: NumberDecimal("1E+30")}', '{a: {$mod: [4, 0]}}', false),
-- regex
('{a: "abc"}', '{a: /b/}', true), ('{a: "abc"}', '{a: /^b/}', false), ('{a: ["x", "abc"]}', '{a: /b/}', true), ('{a: 5}', '{a: /5/}', false), ('{}', '{a: /x/}', false), ('{a: null}', '{a: /x/}', false), ('{a: /b/}', '{a: /b/}', true), ('{a: /b/i}', '{a: /b/}', false), ('{a: "abc"}', '{a: {$eq: /b/}}', false), ('{a: /b/}', '{a: {$eq: /b/}}', true),
('{a: "aBc"}', '{a: {$regex: "^ab", $options: "i"}}', true), ('{a: "aBc"}', '{a: {$options: "i", $regex: /^ab/}}', true), ('{a: "abc"}', '{a: {$regex: "b", $ne: "abc"}}', false), ('{a: Symbol("abc")}', '{a: /b/}', true), ('{a: ""}', '{a: /^$/}', true), ('{a: "x\u0000y"}', '{a: /x.y$/}', true), ('{a: "a.b"}', '{a: /a\.b/}', true),
-- all, size, elemMatch
('{a: [1, 2, 3]}', '{a: {$all: [3, 1]}}', true), ('{a: [1, 2]}', '{a: {$all: [1, 4]}}', false), ('{a: 1}', '{a: {$all: [1]}}', true), ('{a: [1]}', '{a: {$all: []}}', false), ('{}', '{a: {$all: [null]}}', true), ('{a: [[1, 2]]}', '{a: {$all: [[1, 2]]}}', true), ('{a: ["xa", "yb"]}', '{a: {$all: [/^x/, /^y/]}}', true), ('{a: [{b: 1}, {b: 2}]}', '{"a.b": {$all: [1, 2]}}', true),
('{a: [{x: 1}, {y: 2}]}', '{a: {$all: [{$elemMatch: {x: 1}}, {$elemMatch: {y: 2}}]}}', true), ('{a: [{x: 1}]}', '{a: {$all: [{$elemMatch: {x: 1}}, {$elemMatch: {y: 2}}]}}', false),
('{a: [1, 2]}', '{a: {$size: 2}}', true), ('{a: [1, 2]}', '{a: {$size: 2.0}}', true), ('{a: []}', '{a: {$size: 0}}', true), ('{}', '{a: {$size: 0}}', false), ('{a: 1}', '{a: {$size: 1}}', false), ('{a: [[1, 2]]}', '{a: {$size: 2}}', false), ('{a: [[1, 2]]}', '{"a.0": {$size: 2}}', true), ('{a: [{b: [1]}, {b: []}]}', '{"a.b": {$size: 0}}', true),
('{a: [1, 10]}', '{a: {$elemMatch: {$gt: 5, $lt: 3}}}', false), ('{a: [1, 4]}', '{a: {$elemMatch: {$gt: 3, $lt: 5}}}', true), ('{a: []}', '{a: {$elemMatch: {$eq: null}}}', false), ('{a: [null]}', '{a: {$elemMatch: {$eq: null}}}', true), ('{a: 4}', '{a: {$elemMatch: {$gt: 3}}}', false), ('{a: [[4]]}', '{a: {$elemMatch: {$gt: 3}}}', false), ('{a: [[4]]}', '{a: {$elemMatch: {$elemMatch: {$gt: 3}}}}', true),
('{a: [1, 2]}', '{a: {$elemMatch: {$not: {$gt: 1}}}}', true), ('{a: ["x"]}', '{a: {$elemMatch: {$in: [/x/]}}}', true), ('{a: [[1, 2]]}', '{a: {$elemMatch: {$size: 2}}}', true), ('{a: [3]}', '{a: {$elemMatch: {$not: {$gt: 1}}}}', false),
('{a: [{x: 1, y: 2}, {x: 3}]}', '{a: {$elemMatch: {x: 3, y: null}}}', true), ('{a: [{x: 1, y: 2}, {x: 3, y: 4}]}', '{a: {$elemMatch: {x: 1, y: 4}}}', false), ('{a: [1]}', '{a: {$elemMatch: {}}}', false), ('{a: [{}]}', '{a: {$elemMatch: {}}}', true), ('{a: [{x: 5}]}', '{a: {$elemMatch: {$or: [{x: 4}, {x: 5}]}}}', true), ('{a: [[7]]}', '{a: {$elemMatch: {"0": 7}}}', true),
('{a: [{b: [{c: 1, d: 2}]}]}', '{"a.b": {$elemMatch: {c: 1, d: 2}}}', true), ('{a: {x: 1}}', '{a: {$elemMatch: {x: 1}}}', false),
-- bits
('{a: 20}', '{a: {$bitsAllSet: [2, 4]}}', true), ('{a: 20}', '{a: {$bitsAllSet: 21}}', false), ('{a: 20}', '{a: {$bitsAnySet: 5}}', true), ('{a: 20}', '{a: {$bitsAnySet: [0, 1]}}', false), ('{a: 20}', '{a: {$bitsAllClear: 11}}', true), ('{a: 20}', '{a: {$bitsAllClear: [0, 2]}}', false), ('{a: 20}', '{a: {$bitsAnyClear: 20}}', false), ('{a: 20}', '{a: {$bitsAnyClear: [2, 3]}}', true),
('{a: -1}', '{a: {$bitsAllSet: [0, 63, 200]}}', true), ('{a: 1}', '{a: {$bitsAllClear: [63, 200]}}', true), ('{a: 20.0}', '{a: {$bitsAllSet: 20.0}}', true), ('{a: 20.5}', '{a: {$bitsAnySet: 20}}', false), ('{a: NumberDecimal("20")}', '{a: {$bitsAllSet: NumberLong(20)}}', true), ('{a: "x"}', '{a: {$bitsAnyClear: 1}}', false), ('{}', '{a: {$bitsAnyClear: 1}}', false), ('{a: [1, 4]}', '{a: {$bitsAllSet: 4}}', true),
('{a: BinData(0, "FA==")}', '{a: {$bitsAllSet: 20}}', true), ('{a: BinData(0, "AQI=")}', '{a: {$bitsAllSet: [0, 9]}}', true), ('{a: BinData(0, "AQI=")}', '{a: {$bitsAnySet: [16]}}', false), ('{a: BinData(0, "AQI=")}', '{a: {$bitsAllClear: [16, 1000]}}', true), ('{a: 20}', '{a: {$bitsAllSet: BinData(0, "FA==")}}', true), ('{a: 20}', '{a: {$bitsAllSet: []}}', true), ('{a: 20}', '{a: {$bitsAnySet: []}}', false), ('{a: 1e300}', '{a: {$bitsAnyClear: 1}}', false),
-- expressions and schemas
('{a: 5, b: 3}', '{$expr: {$gt: ["$a", "$b"]}}', true), ('{a: 1, b: 3}', '{$expr: {$gt: ["$a", "$b"]}}', false), ('{a: 1}', '{$expr: "$b"}', false), ('{a: 1}', '{$or: [{$expr: "$a"}, {b: 1}]}', true), ('{a: 1}', '{a: 1, $jsonSchema: {required: ["a"]}}', true), ('{b: 1}', '{$jsonSchema: {required: ["a"]}}', false)
) AS t (d, f, want);

-- regular expressions (more in regex.sql)
SELECT is(bson_build('a', s) @@ bson_build('a', bson_build('$regex', re, '$options', o)), want, format('%s %s %s %s', to_json(s), CASE WHEN want THEN '~' ELSE '!~' END, to_json(re), o)) FROM (VALUES
('\bword\b', 'a word here', '', true), ('\Bord', 'word', '', true), ('\Bword', 'word', '', false), ('^b', E'a\nb', '', false), ('^b', E'a\nb', 'm', true), ('a$', E'a\nb', 'm', true), ('a.b', E'a\nb', '', false), ('a.b', E'a\nb', 's', true), ('a[^x]b', E'a\nb', '', true),
('b$', E'ab\n', '', true), ('b$', E'ab\n\n', '', false), ('b\z', E'ab\n', '', false), ('b\Z', E'ab\n', '', true), ('a b', 'ab', 'x', true), (E'a#c\nb', 'ab', 'x', true), ('a\ b', 'a b', 'x', true), ('ab', 'AB', 'i', true), ('É', 'é', 'i', true), ('a.b', E'A\nB', 'isu', true),
('(?i)ABC', 'abc', '', true), ('(?i-s)A.C', 'abc', '', true), ('\x41\x{42}', 'AB', '', true), ('\Qa.b\E+', 'a.b', '', true), ('\Qa.b\E', 'axb', '', false), ('(?<n>a)b\1', 'aba', '', true), ('(?P<n>a)\1', 'aa', '', true), ('[\w-]+@', 'a-b@', '', true), ('[\d.-]+$', '1.2-', '', true),
('x{', 'x{', '', true), ('x{,2}', 'x{,2}', '', true), ('x{2}', 'xx', '', true), ('\w', 'é', '', false), ('(*UCP)\w', 'é', '', true), ('\d{3}-\d{4}', '555-1234', '', true), ('(?=.*a)(?=.*b)', 'xbya', '', true), ('foo(?!bar)', 'foobar', '', false), ('(?<=a)b', 'ab', '', true), ('(?<!a)b', 'ab', '', false),
('a|b', 'b', '', true), ('[[:alpha:]]+', 'abc', '', true), ('a+?b', 'aab', '', true), ('\h', E'\t', '', true), ('\R', E'x\r\n', '', true), ('[]a]', 'x]', '', true), ('[^]a]', 'a]', '', false), ('', '', '', true), ('^', 'x', '', true), ('$', 'x', '', true), ('.', '', '', false), ('\N', 'x', '', true),
('[\x41-\x43]+', 'B', '', true), ('a\/b', 'a/b', '', true), ('é.', 'éà', '', true), ('a.b', 'a💙b', '', true), ('^abc', 'abcd', '', true), ('^abc', 'xabc', '', false), ('needle', 'in the hay a needle', '', true), ('nneedle', 'nnneedle', '', true), ('\.com', 'x.com', '', true), ('[.]com', 'xcom', '', false)
) AS t (re, s, o, want);

-- bad filters: the SQLSTATE and where
CREATE FUNCTION complaint(f text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; detail text;
BEGIN
  PERFORM '{}'::bson @@ f::bson;
  RETURN 'none';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, detail = PG_EXCEPTION_DETAIL;
  RETURN state || ' ' || detail;
END $$;
SELECT is(complaint(f), want, f) FROM (VALUES
('{$foo: 1}', '0A000 At path "$foo".'), ('{a: {$foo: 1}}', '0A000 At path "a.$foo".'), ('{a: {$gt: 1, b: 2}}', '0A000 At path "a.b".'), ('{$and: [{a: 1}, {b: {$not: {$near: 1}}}]}', '0A000 At path "$and.1.b.$not.$near".'), ('{$where: "1"}', '0A000 At path "$where".'), ('{$gt: 5}', '0A000 At path "$gt".'), ('{a: {$all: [{$elemMatch: {b: {$foo: 1}}}]}}', '0A000 At path "a.$all.0.$elemMatch.b.$foo".'),
('{$and: []}', '22023 At path "$and".'), ('{$or: {}}', '22023 At path "$or".'), ('{$nor: [1]}', '22023 At path "$nor.0".'), ('{$alwaysTrue: 2}', '22023 At path "$alwaysTrue".'), ('{a: {$in: 5}}', '22023 At path "a.$in".'), ('{a: {$nin: {}}}', '22023 At path "a.$nin".'), ('{a: {$in: [1, {$gt: 1}]}}', '22023 At path "a.$in.1".'), ('{a: {$in: [undefined]}}', '22023 At path "a.$in.0".'), ('{a: undefined}', '22023 At path "a".'),
('{a: {$gt: /x/}}', '22023 At path "a.$gt".'), ('{a: {$ne: /x/}}', '22023 At path "a.$ne".'), ('{a: {$not: 5}}', '22023 At path "a.$not".'), ('{a: {$not: {}}}', '22023 At path "a.$not".'), ('{a: {$type: "foo"}}', '22023 At path "a.$type".'), ('{a: {$type: 0}}', '22023 At path "a.$type".'), ('{a: {$type: 255}}', '22023 At path "a.$type".'), ('{a: {$type: []}}', '22023 At path "a.$type".'), ('{a: {$type: ["int", true]}}', '22023 At path "a.$type.1".'), ('{a: {$type: 1.5}}', '22023 At path "a.$type".'),
('{a: {$mod: 4}}', '22023 At path "a.$mod".'), ('{a: {$mod: [4]}}', '22023 At path "a.$mod".'), ('{a: {$mod: [4, 1, 2]}}', '22023 At path "a.$mod".'), ('{a: {$mod: [0, 1]}}', '22023 At path "a.$mod".'), ('{a: {$mod: [0.5, 1]}}', '22023 At path "a.$mod".'), ('{a: {$mod: ["4", 1]}}', '22023 At path "a.$mod".'), ('{a: {$mod: [4, "1"]}}', '22023 At path "a.$mod".'), ('{a: {$mod: [NaN, 1]}}', '22023 At path "a.$mod".'),
('{a: {$regex: 5}}', '22023 At path "a.$regex".'), ('{a: {$regex: "("}}', '2201B At path "a.$regex".'), ('{a: /(/}', '2201B At path "a".'), ('{a: {$in: [/(/]}}', '2201B At path "a.$in.0".'), ('{a: {$regex: "a", $options: "q"}}', '22023 At path "a.$regex".'), ('{a: {$regex: "a", $options: 1}}', '22023 At path "a.$regex".'), ('{a: {$regex: /a/i, $options: "m"}}', '22023 At path "a.$regex".'), ('{a: {$options: "i"}}', '22023 At path "a.$options".'),
('{a: {$regex: "a+++"}}', '2201B At path "a.$regex".'), ('{a: {$regex: "\\p{Q}"}}', '2201B At path "a.$regex".'), ('{a: {$regex: "(?>a"}}', '2201B At path "a.$regex".'), ('{a: {$regex: "***=x"}}', '2201B At path "a.$regex".'), ('{a: {$regex: "[a"}}', '2201B At path "a.$regex".'), ('{a: {$regex: "a\\"}}', '2201B At path "a.$regex".'), ('{a: {$regex: "x(?q)y"}}', '2201B At path "a.$regex".'),
('{a: {$all: 1}}', '22023 At path "a.$all".'), ('{a: {$all: [{$gt: 1}]}}', '22023 At path "a.$all.0".'), ('{a: {$all: [1, {$elemMatch: {}}]}}', '22023 At path "a.$all.1".'), ('{a: {$all: [{$elemMatch: {}, x: 1}]}}', '22023 At path "a.$all.0".'), ('{a: {$elemMatch: 5}}', '22023 At path "a.$elemMatch".'), ('{a: {$elemMatch: {$gt: 1, b: 2}}}', '0A000 At path "a.$elemMatch.b".'),
('{a: {$size: -1}}', '22023 At path "a.$size".'), ('{a: {$size: 1.5}}', '22023 At path "a.$size".'), ('{a: {$size: "1"}}', '22023 At path "a.$size".'), ('{a: {$bitsAllSet: -1}}', '22023 At path "a.$bitsAllSet".'), ('{a: {$bitsAnySet: 1.5}}', '22023 At path "a.$bitsAnySet".'), ('{a: {$bitsAllClear: "x"}}', '22023 At path "a.$bitsAllClear".'), ('{a: {$bitsAnyClear: [1, -1]}}', '22023 At path "a.$bitsAnyClear.1".'), ('{a: {$bitsAllSet: [2147483648]}}', '22023 At path "a.$bitsAllSet.0".'), ('{a: {$bitsAllSet: [0.5]}}', '22023 At path "a.$bitsAllSet.0".'),
('{$jsonSchema: 1}', '22023 At path "$jsonSchema".'), ('{$jsonSchema: {required: []}}', '22023 At path "$jsonSchema.required".'), ('{a: {$elemMatch: {$expr: true}}}', '22023 At path "a.$elemMatch.$expr".')
) AS t (f, want);
SELECT throws_ok($q$SELECT '{}'::bson @@ '{$expr: {$gt: ["$$NOW", 1]}}'$q$, '0A000', NULL, 'immutable: no clock');
SELECT is('{a: 1}'::bson @@ NULL, NULL, 'strict');

-- a search without end can be cancelled
CREATE FUNCTION cancelled(d bson, f bson) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM d @@ f;
  RETURN false;
EXCEPTION WHEN query_canceled THEN
  RETURN true;
END $$;
SET LOCAL statement_timeout = '100ms';
SELECT ok(cancelled(bson_build('a', repeat('a', 501)), bson_build('a', bson_build('$regex', '^(a*)(a*)(a*)(a*)(a*)\1\2\3\4\5$'))), 'a pathological pattern is cancelled');
SET LOCAL statement_timeout = 0;

-- compiled once, or wherever it changes
CREATE TABLE filters (i int, f bson);
INSERT INTO filters SELECT i, bson_build('a', bson_build('$gt', i)) FROM generate_series(1, 100) i;
SELECT is((SELECT count(*) FROM filters WHERE '{a: 50}'::bson @@ f), 49::bigint, 'a filter from a column');
CREATE FUNCTION by_filter(f bson) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT count(*) FROM filters t WHERE t.f @@ by_filter.f); END $$;
SELECT is(array_agg(by_filter(bson_build('a.$gt', bson_build('$lte', i))) ORDER BY i), '{0,10,20}', 'a filter from a parameter') FROM generate_series(0, 20, 10) i;
SELECT is(array_agg(by_filter(bson_build('a', bson_build('$exists', i = 1))) ORDER BY i), '{0,100}', 'and another') FROM generate_series(0, 1) i;

-- stored in every way: the answer does not depend on it
CREATE FUNCTION large_document(i int) RETURNS bson LANGUAGE sql AS $$
  SELECT bson_build('_id', i, 'name', 'n' || i % 7, 'nested', bson_build('x', i % 5, 'list', ARRAY[i, i + 1]), 'fill', (SELECT array_agg(md5(i || ' ' || j)) FROM generate_series(1, 400) j), 'last', i % 3) $$;
CREATE TABLE large_pglz (id int, doc bson COMPRESSION pglz);
CREATE TABLE large_external (id int, doc bson);
ALTER TABLE large_external ALTER doc SET STORAGE EXTERNAL;
INSERT INTO large_pglz SELECT i, large_document(i) FROM generate_series(1, 40) i;
INSERT INTO large_external SELECT i, large_document(i) FROM generate_series(1, 40) i;
SELECT is(array_agg(p.doc @@ f::bson ORDER BY p.id), array_agg(large_document(p.id) @@ f::bson ORDER BY p.id), 'pglz: ' || f) FROM large_pglz p, unnest(ARRAY['{name: "n3"}', '{"nested.x": 2}', '{"nested.list": 7}', '{name: {$ne: "n3"}}', '{last: 1}', '{name: "n3", last: 2}', '{$or: [{name: "n1"}, {last: 0}]}', '{absent: null}', '{"fill.399": {$exists: true}}', '{$nor: [{last: 1}]}', '{nested: {$type: "object"}, _id: {$lt: 9}}']) f GROUP BY f;
SELECT is(array_agg(p.doc @@ f::bson ORDER BY p.id), array_agg(large_document(p.id) @@ f::bson ORDER BY p.id), 'external: ' || f) FROM large_external p, unnest(ARRAY['{name: "n3"}', '{"nested.x": 2}', '{"nested.list": 7}', '{name: {$ne: "n3"}}', '{last: 1}', '{name: "n3", last: 2}', '{$or: [{name: "n1"}, {last: 0}]}', '{absent: null}', '{"fill.399": {$exists: true}}', '{$nor: [{last: 1}]}', '{nested: {$type: "object"}, _id: {$lt: 9}}']) f GROUP BY f;

-- An independent model: the language once more, over jsonb and in words of SQL, beside random documents and filters.
-- What a path reaches in a value: {"v": value, "tried": whether an array's elements are tried too}; a missing one has no "v".
CREATE FUNCTION reach(v jsonb, parts text[]) RETURNS SETOF jsonb LANGUAGE plpgsql AS $$
DECLARE
  e jsonb;
  i int := 0;
BEGIN
  IF parts = '{}' THEN
    RETURN NEXT jsonb_build_object('v', v, 'tried', true);
  ELSIF jsonb_typeof(v) = 'object' THEN
    IF v ? parts[1] THEN RETURN QUERY SELECT * FROM reach(v -> parts[1], parts[2:]);
    ELSE RETURN NEXT '{}'::jsonb; END IF;
  ELSIF jsonb_typeof(v) = 'array' THEN
    FOR e IN SELECT * FROM jsonb_array_elements(v) LOOP
      IF jsonb_typeof(e) = 'object' THEN RETURN QUERY SELECT * FROM reach(e, parts); END IF;
      IF parts[1] = i::text THEN
        IF cardinality(parts) = 1 THEN RETURN NEXT jsonb_build_object('v', e, 'tried', false);
        ELSIF jsonb_typeof(e) IN ('object', 'array') THEN RETURN QUERY SELECT * FROM reach(e, parts[2:]); END IF;
      END IF;
      i := i + 1;
    END LOOP;
  ELSE
    RETURN NEXT '{}'::jsonb;
  END IF;
END $$;
-- Every value that a condition is tried on; NULL is a missing one.
CREATE FUNCTION tried(v jsonb, path text) RETURNS SETOF jsonb LANGUAGE sql AS $$
  SELECT x FROM reach(v, string_to_array(path, '.')) r, LATERAL (
    SELECT e FROM jsonb_array_elements(CASE WHEN (r ->> 'tried')::bool AND jsonb_typeof(r -> 'v') = 'array' THEN r -> 'v' ELSE '[]' END) e
    UNION ALL SELECT r -> 'v') AS t (x) $$;
CREATE FUNCTION ordered(a jsonb, b jsonb) RETURNS int LANGUAGE sql AS $$
  SELECT CASE WHEN jsonb_typeof(a) <> jsonb_typeof(b) THEN NULL WHEN jsonb_typeof(a) = 'null' THEN 0
              WHEN jsonb_typeof(a) = 'number' THEN sign((a #>> '{}')::numeric - (b #>> '{}')::numeric)::int
              WHEN jsonb_typeof(a) = 'boolean' THEN (a #>> '{}')::bool::int - (b #>> '{}')::bool::int
              WHEN jsonb_typeof(a) = 'string' THEN CASE WHEN (a #>> '{}') COLLATE "C" < (b #>> '{}') THEN -1 WHEN a = b THEN 0 ELSE 1 END END $$;
CREATE FUNCTION meets(c jsonb, op text, arg jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE o int := CASE WHEN c IS NULL AND arg = 'null' THEN 0 ELSE ordered(c, arg) END;
BEGIN
  RETURN coalesce(CASE op
    WHEN '$eq' THEN CASE WHEN c IS NULL THEN arg = 'null' ELSE c = arg END
    WHEN '$gt' THEN o > 0 WHEN '$gte' THEN o >= 0 WHEN '$lt' THEN o < 0 WHEN '$lte' THEN o <= 0
    WHEN '$in' THEN EXISTS (SELECT FROM jsonb_array_elements(arg) x WHERE CASE WHEN c IS NULL THEN x = 'null' ELSE c = x END)
    WHEN '$exists' THEN c IS NOT NULL
    WHEN '$type' THEN arg #>> '{}' = CASE jsonb_typeof(c) WHEN 'boolean' THEN 'bool' ELSE jsonb_typeof(c) END
    WHEN '$mod' THEN CASE WHEN jsonb_typeof(c) = 'number' THEN trunc((c #>> '{}')::numeric) % (arg ->> 0)::int = (arg ->> 1)::int END
    WHEN '$regex' THEN CASE WHEN jsonb_typeof(c) = 'string' THEN (c #>> '{}') ~ (arg #>> '{}') END
  END, false);
END $$;
CREATE FUNCTION model(d jsonb, f jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  k text; a jsonb; op text; arg jsonb; r boolean;
BEGIN
  FOR k, a IN SELECT * FROM jsonb_each(f) LOOP
    IF k = '$and' THEN r := (SELECT bool_and(model(d, x)) FROM jsonb_array_elements(a) x);
    ELSIF k = '$or' THEN r := (SELECT bool_or(model(d, x)) FROM jsonb_array_elements(a) x);
    ELSIF k = '$nor' THEN r := NOT (SELECT bool_or(model(d, x)) FROM jsonb_array_elements(a) x);
    ELSE
      FOR op, arg IN SELECT * FROM jsonb_each(CASE WHEN EXISTS (SELECT FROM jsonb_object_keys(CASE jsonb_typeof(a) WHEN 'object' THEN a ELSE '{}' END) x WHERE x LIKE '$%') THEN a ELSE jsonb_build_object('$eq', a) END) LOOP
        r := CASE op
          WHEN '$ne' THEN NOT model(d, jsonb_build_object(k, jsonb_build_object('$eq', arg)))
          WHEN '$nin' THEN NOT model(d, jsonb_build_object(k, jsonb_build_object('$in', arg)))
          WHEN '$not' THEN NOT model(d, jsonb_build_object(k, arg))
          WHEN '$exists' THEN EXISTS (SELECT FROM tried(d, k) c WHERE c IS NOT NULL) = arg::bool
          WHEN '$all' THEN arg <> '[]' AND NOT EXISTS (SELECT FROM jsonb_array_elements(arg) x WHERE NOT EXISTS (SELECT FROM tried(d, k) c WHERE meets(c, '$eq', x)))
          WHEN '$size' THEN EXISTS (SELECT FROM reach(d, string_to_array(k, '.')) t WHERE jsonb_typeof(t -> 'v') = 'array' AND jsonb_array_length(t -> 'v') = arg::int)
          WHEN '$elemMatch' THEN EXISTS (SELECT FROM reach(d, string_to_array(k, '.')) t, jsonb_array_elements(CASE jsonb_typeof(t -> 'v') WHEN 'array' THEN t -> 'v' ELSE '[]' END) e
            WHERE CASE WHEN EXISTS (SELECT FROM jsonb_object_keys(arg) x WHERE x LIKE '$%' AND x NOT IN ('$and', '$or', '$nor')) THEN NOT EXISTS (SELECT FROM jsonb_each(arg) y WHERE NOT meets(e, y.key, y.value))
                       WHEN jsonb_typeof(e) = 'array' THEN model((SELECT coalesce(jsonb_object_agg(i - 1, x), '{}') FROM jsonb_array_elements(e) WITH ORDINALITY y (x, i)), arg)
                       WHEN jsonb_typeof(e) = 'object' THEN model(e, arg) ELSE false END)
          ELSE EXISTS (SELECT FROM tried(d, k) c WHERE meets(c, op, arg)) END;
        EXIT WHEN NOT r;
      END LOOP;
    END IF;
    IF NOT r THEN RETURN false; END IF;
  END LOOP;
  RETURN true;
END $$;
-- Random documents over few names and values, so that filters often meet something.
CREATE FUNCTION below(n int) RETURNS int LANGUAGE sql VOLATILE AS $$ SELECT floor(random() * n)::int $$;
CREATE FUNCTION any_scalar() RETURNS jsonb LANGUAGE sql VOLATILE AS $$ SELECT ('["null", "0", "1", "2", "2.5", "-3", "7", "\"a\"", "\"b\"", "\"ab\"", "true", "false"]'::jsonb ->> below(12))::jsonb $$;
CREATE FUNCTION any_value(depth int) RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
DECLARE dice float := random();
BEGIN
  IF depth > 0 AND dice < 0.35 THEN RETURN (SELECT coalesce(jsonb_agg(any_value(depth - 1)), '[]') FROM generate_series(1, below(4)));
  ELSIF depth > 0 AND dice < 0.65 THEN RETURN (SELECT coalesce(jsonb_object_agg((ARRAY['a', 'b', '0'])[1 + below(3)], any_value(depth - 1)), '{}') FROM generate_series(1, below(4)));
  END IF;
  RETURN any_scalar();
END $$;
CREATE FUNCTION any_condition(depth int) RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
DECLARE op text := (ARRAY['$eq', '$ne', '$gt', '$gte', '$lt', '$lte', '$in', '$nin', '$not', '$exists', '$type', '$mod', '$regex', '$all', '$size', '$elemMatch', '$elemMatch', '$eq'])[1 + below(18)];
BEGIN
  RETURN jsonb_build_object(op, CASE
    WHEN op IN ('$eq', '$ne') THEN any_value(1) WHEN op IN ('$in', '$nin', '$all') THEN (SELECT jsonb_agg(any_value(1)) FROM generate_series(1, 1 + below(3)))
    WHEN op = '$not' THEN CASE WHEN depth > 0 THEN any_condition(depth - 1) ELSE '{"$gt": 1}' END WHEN op = '$exists' THEN to_jsonb(random() < 0.5)
    WHEN op = '$type' THEN to_jsonb((ARRAY['number', 'string', 'bool', 'null', 'object', 'array'])[1 + below(6)]) WHEN op = '$mod' THEN jsonb_build_array(1 + below(3), below(3) - 1)
    WHEN op = '$regex' THEN to_jsonb((ARRAY['a', '^b', 'b$', 'a.?b'])[1 + below(4)]) WHEN op = '$size' THEN to_jsonb(below(4))
    WHEN op = '$elemMatch' THEN CASE WHEN depth > 0 AND random() < 0.6 THEN any_filter(depth - 1) ELSE jsonb_build_object('$gt', below(4), '$lt', below(8)) END
    ELSE any_scalar() END);
END $$;
CREATE FUNCTION any_filter(depth int) RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF depth > 0 AND random() < 0.25 THEN
    RETURN jsonb_build_object((ARRAY['$and', '$or', '$nor'])[1 + below(3)], (SELECT jsonb_agg(any_filter(depth - 1)) FROM generate_series(1, 1 + below(2))));
  END IF;
  RETURN (SELECT jsonb_object_agg((ARRAY['a', 'b', 'a.b', 'a.0', 'b.a', 'a.0.b', 'a.b.0', 'b.1', 'a.a', 'a.0.0'])[1 + below(10)], CASE WHEN random() < 0.25 THEN any_value(1) ELSE any_condition(depth) END) FROM generate_series(1, 1 + below(2)));
END $$;
CREATE FUNCTION any_document() RETURNS jsonb LANGUAGE sql VOLATILE AS $$ SELECT jsonb_build_object('a', any_value(3)) || CASE WHEN random() < 0.6 THEN jsonb_build_object('b', any_value(2)) ELSE '{}' END $$;
SELECT setseed(0.31) \g /dev/null
CREATE TABLE trials AS SELECT i, any_document() AS d, any_filter(3) AS f FROM generate_series(1, 4000) i;
ALTER TABLE trials ADD expected boolean, ADD got boolean;
UPDATE trials SET expected = model(d, f), got = d::text::bson @@ f::text::bson;
SELECT is((SELECT string_agg(format('%s @@ %s: %s', d, f, got), E'\n' ORDER BY i) FROM (SELECT * FROM trials WHERE got IS DISTINCT FROM expected ORDER BY i LIMIT 5) x), NULL, 'as the model says, seed 0.31');
SELECT cmp_ok((SELECT count(*) FROM trials WHERE expected), '>', 400::bigint, 'many match');
SELECT cmp_ok((SELECT count(*) FROM trials WHERE NOT expected), '>', 400::bigint, 'and many do not');
-- a filter that is a parameter: compiled once for an execution, and again when an expression without a relation sees another value
CREATE TABLE numbered AS SELECT bson_build('n', i) AS doc FROM generate_series(1, 20) i;
SET plan_cache_mode = force_generic_plan;
PREPARE numbers(bson) AS SELECT array_agg((doc -> 'n')::int ORDER BY doc -> 'n') FROM numbered WHERE doc @@ $1;
CREATE FUNCTION numbers(f bson) RETURNS int[] LANGUAGE plpgsql AS $$ DECLARE r int[]; BEGIN EXECUTE format('EXECUTE numbers(%L)', f) INTO r; RETURN r; END $$;
SELECT is(ARRAY[numbers('{n: {$in: [1, 2]}}')::text, numbers('{n: {$in: [3, 4]}}')::text, numbers(NULL)::text, numbers('{n: 5}')::text], '{"{1,2}","{3,4}",NULL,"{5}"}', 'one prepared statement, several filters');
CREATE FUNCTION changing() RETURNS TABLE (line text) LANGUAGE plpgsql AS $$
DECLARE f bson; d bson := '{n: 3}'; hits int[] := '{}'; n int;
BEGIN
  FOR i IN 1 .. 5 LOOP
    f := bson_build('n', bson_build('$in', ARRAY[i]));
    IF d @@ f THEN hits := hits || i; END IF;
    SELECT count(*) INTO n FROM numbered WHERE doc @@ f AND bson_match(doc, f);
    hits := hits || (n * 100);
  END LOOP;
  line := hits::text;
  RETURN NEXT;
  -- a variable that changes while its query still returns rows
  f := '{n: {$lt: 4}}';
  FOR d IN SELECT doc FROM numbered WHERE doc @@ f ORDER BY doc -> 'n' LOOP
    f := '{n: {$gt: 4}}';
    line := d;
    RETURN NEXT;
  END LOOP;
END $$;
SELECT is((SELECT string_agg(line, ' ') FROM changing()), '{100,100,3,100,100,100} {"n": 1} {"n": 2} {"n": 3}', 'variables of PL/pgSQL that change');
CREATE FUNCTION changing_path() RETURNS text LANGUAGE plpgsql AS $$
DECLARE d bson := '{aa: 1, bb: 2}'; p text; r text := '';
BEGIN
  FOREACH p IN ARRAY '{aa,bb,aa}'::text[] LOOP r := r || (d -> (p COLLATE "C")); END LOOP;
  RETURN r;
END $$;
SELECT is(changing_path(), '121', 'and with a collation');
SELECT is((SELECT string_agg(a.n || ':' || b.n, ' ' ORDER BY a.n, b.n) FROM (SELECT n, bson_build('n', bson_build('$in', ARRAY[n, n + 1])) AS f FROM generate_series(1, 3) n) a,
  LATERAL (SELECT (doc -> 'n')::int AS n FROM numbered WHERE doc @@ a.f) b), '1:1 1:2 2:2 2:3 3:3 3:4', 'filters of rows');
CREATE FUNCTION inner_filter(f bson) RETURNS bigint LANGUAGE sql STABLE AS 'SELECT count(*) FROM numbered WHERE doc @@ f';
SELECT is((SELECT string_agg(inner_filter(bson_build('n', bson_build('$lte', n)))::text, ' ' ORDER BY n) FROM generate_series(1, 3) n), '1 2 3', 'arguments of an SQL function');
CREATE FUNCTION planned() RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) EXECUTE numbers(''{n: 1}'')'; END $$;
SELECT is((SELECT count(*) FROM planned() line WHERE line LIKE '%Filter: (doc @@ ($1)::bson)%'), 1::bigint, 'EXPLAIN shows the operator and the parameter');
RESET plan_cache_mode;
-- patterns that are not read
SELECT throws_ok(format('SELECT bson_build(%L, %L) @@ bson_build(%L, bson_build(%L, %L::bson_value))', 'a', 'b', 'a', '$regex', r), '2201B', m, left(r, 20)) FROM (VALUES
  ('"' || repeat('a', 40000) || '"', 'regular expression of 40000 bytes is longer than 16384 bytes'),
  ('"a\u0000b"', 'regular expression contains a null character'),
  ('"(?#abc"', NULL),
  ('"\\x{12"', NULL),
  ('"\\x{110000}"', NULL),
  ('"[\\q]"', NULL)
) AS refused (r, m);

SELECT * FROM finish();
ROLLBACK;
