-- The languages with variables from outside, and $redact.
BEGIN;
SELECT plan(37);
SET client_min_messages = warning;

CREATE FUNCTION e(expression text, let bson DEFAULT '{x: 5, y: {z: [1, 2]}, m: undefined}', doc bson DEFAULT '{_id: 1, a: 3}') RETURNS text LANGUAGE sql AS $$
  SELECT docpatterns._eval(doc, ('{"v": ' || expression || '}')::bson -> 'v', let)::text $$;
SELECT is(e('"$$x"'), '5', 'a variable from outside');
SELECT is(e('"$$y.z"'), '[1, 2]', 'a path in it');
SELECT is(e('{$add: ["$a", "$$x"]}'), '8', 'beside fields');
SELECT is(e('"$$m"'), NULL, 'undefined is a missing value');
SELECT is(e('{$ifNull: ["$$m", "none"]}'), 'none', 'for operators, too');
SELECT is(e('{q: "$$m", r: "$$x"}'), '{"r": 5}', 'and in an object');
SELECT is(e('{$let: {vars: {x: 1}, in: {$add: ["$$x", 1]}}}'), '2', 'a variable inside hides it');
SELECT is(e('{$map: {input: [1, 2], as: "v", in: {$add: ["$$v", "$$x"]}}}'), '[6, 7]', 'and works with it');
SELECT throws_ok($q$SELECT e('"$$w"')$q$, '22023', 'variable "$$w" is not defined', 'one that is not there');
SELECT throws_ok($q$SELECT docpatterns._eval('{}', '"$$x"', NULL)$q$, '22023', 'variable "$$x" is not defined', 'without variables');
SELECT throws_ok($q$SELECT bson_eval('{}', '"$$x"')$q$, '22023', 'variable "$$x" is not defined', 'bson_eval has none');
SELECT throws_ok($q$SELECT e('"$$USER_ROLES"')$q$, '0A000', NULL, '$$USER_ROLES');
SELECT throws_ok($q$SELECT e('"$$CLUSTER_TIME"', '{CLUSTER_TIME: 1}')$q$, '0A000', NULL, '$$CLUSTER_TIME is never a variable of a user');
SELECT throws_ok($q$SELECT e('"$$PRUNE"')$q$, '0A000', NULL, '$$PRUNE belongs to $redact');
SELECT is(docpatterns._eval('{}', '"$$NOW"', NULL)::timestamptz, date_trunc('milliseconds', now()), '$$NOW');
SELECT is(docpatterns._eval(NULL, '1', NULL), NULL, 'no document');
SELECT is((SELECT string_agg(docpatterns._eval('{a: 1}', '{$add: ["$a", "$$i"]}', bson_build('i', i))::text, ',' ORDER BY i) FROM generate_series(1, 3) i), '2,3,4', 'another value for each row');

SELECT ok(docpatterns._match('{a: 5}', '{a: 5, $expr: {$eq: ["$a", "$$x"]}}', '{x: 5}'), 'a filter');
SELECT ok(NOT docpatterns._match('{a: 5}', '{$or: [{$expr: {$eq: ["$a", "$$x"]}}]}', '{x: 6}'), 'that is not met');
SELECT ok(docpatterns._match('{a: {$date: "2000-01-01"}}', '{$expr: {$lt: ["$a", "$$NOW"]}}', NULL), 'may read the clock');
SELECT is(docpatterns._project('{_id: 1, a: 2, b: [1, 2, 3]}', '{a: 1, c: "$$x", d: {$slice: ["$b", 2]}}', '{x: 7}')::text, '{"_id": 1, "a": 2, "c": 7, "d": [1, 2]}', 'a projection');
SELECT throws_ok($q$SELECT docpatterns._project('{b: [1]}', '{b: {$slice: 1}}', NULL)$q$, '22023', NULL, 'without the $slice of queries');
SELECT throws_ok($q$SELECT docpatterns._project('{b: [1]}', '{b: {$elemMatch: {c: 1}}}', NULL)$q$, '0A000', NULL, 'or $elemMatch');
SELECT throws_ok($q$SELECT docpatterns._project('{b: [1]}', '{"b.$": 1}', NULL)$q$, '22023', NULL, 'or the positional operator');
SELECT is(docpatterns._update('{_id: 1, a: 2}', '[{$set: {_id: "$$x", "b.c": "$a"}}, {$unset: "a"}]', '{x: 7}')::text, '{"_id": 7, "b": {"c": 2}}', 'stages, which may change the _id');
SELECT is(docpatterns._update('{_id: 1, a: {b: 1}}', '[{$replaceWith: "$a"}]', NULL)::text, '{"b": 1}', 'or remove it');
SELECT throws_ok($q$SELECT docpatterns._update('{}', '{$set: {a: 1}}', NULL)$q$, '22023', NULL, 'stages are an array');

SELECT is(docpatterns._let('{a: 1, b: 2}', '{x: "$a", y: {$add: ["$b", "$$o"]}, n: "$none"}', '{o: 3, x: 9}')::text, '{"o": 3, "x": 1, "y": 5, "n": {"$undefined": true}}', 'variables of the next level');
SELECT throws_ok($q$SELECT docpatterns._let('{}', '{X: 1}', NULL)$q$, '22023', '"X" cannot be the name of a variable', 'have names of variables');
SELECT throws_ok($q$SELECT docpatterns._let('{}', '{x: 1, x: 2}', NULL)$q$, '22023', NULL, 'each once');

CREATE FUNCTION r(doc text, expression text) RETURNS text LANGUAGE sql AS $$ SELECT docpatterns._redact(doc::bson, ('{"v": ' || expression || '}')::bson -> 'v', '{max: 2}')::text $$;
SELECT is(r('{l: 1, a: {l: 3, x: 1}, b: [{l: 2, c: [{l: 5}, 7]}, {l: 9}, 4]}', '{$cond: [{$lte: ["$l", "$$max"]}, "$$DESCEND", "$$PRUNE"]}'),
  '{"l": 1, "b": [{"l": 2, "c": [7]}, 4]}', 'pruned documents are left out of documents and arrays');
SELECT is(r('{l: 1, a: {l: 3}}', '"$$KEEP"'), '{"l": 1, "a": {"l": 3}}', 'a document is kept as a whole');
SELECT is(r('{l: 1}', '"$$PRUNE"'), NULL, 'or goes');
SELECT is(r('{l: 1, a: {b: {}}}', '{$cond: [{$eq: ["$$ROOT.l", 1]}, {$cond: [{$eq: [{$type: "$$CURRENT.b"}, "object"]}, "$$KEEP", "$$DESCEND"]}, "$$PRUNE"]}'),
  '{"l": 1, "a": {"b": {}}}', '$$ROOT stays the document, $$CURRENT moves');
SELECT is(r('{l: 1, a: {n: 1}}', '{$cond: [{$eq: ["$n", 1]}, "prune", "descend"]}'), '{"l": 1}', 'decisions are strings, as in MongoDB');
SELECT throws_ok($q$SELECT r('{l: 1}', '"$l"')$q$, '22023', '$redact must evaluate to $$DESCEND, $$PRUNE or $$KEEP', 'what is no decision');
SELECT throws_ok($q$SELECT r('{l: 1}', '"$$nope"')$q$, '22023', NULL, 'variables that are not there');
SELECT * FROM finish();
ROLLBACK;
