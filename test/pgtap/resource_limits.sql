-- The limits that docs/security.md lists: how large things may be, and what is said beyond. (Times are held by nothing.)
\set ECHO none
SET client_min_messages = error;
SET statement_timeout = '60s';
SELECT plan(16);
CREATE FUNCTION nested(depth int) RETURNS text LANGUAGE sql RETURN repeat('{"a":', depth) || '1' || repeat('}', depth);
SELECT lives_ok($$SELECT nested(100)::bson$$, 'a document 100 levels deep');
SELECT throws_ok($$SELECT nested(101)::bson$$, '54000', NULL, '101 levels');
SELECT throws_ok($$SELECT bson_match('{}', nested(181)::bson)$$, '54000', NULL, 'a filter of 181 levels');
SELECT throws_ok($$SELECT bson_match(bson_build('s', repeat('a', 5000) || '!'), '{s: {$regex: "^(a+)+$"}}')$$, '54000', NULL, 'a regular expression that tries again and again');
SELECT throws_ok($$SELECT bson_match('{s: "a"}', '{s: {$regex: "((a{1,100}){1,100}){1,100}"}}')$$, '2201B', NULL, 'one that is too large');
SELECT throws_ok($$SELECT bson_update('{a: []}', '{$set: {"a.2000000000": 1}}'::text)$$, '54000', NULL, '$set of an element far behind');
SELECT throws_ok($$SELECT bson_eval('{}', '{$range: [0, 2000000000]}')$$, '54000', NULL, '$range of 2,000,000,000');
SELECT throws_ok($$SELECT bson_eval('{}', '{$range: [0, 10000001]}')$$, '54000', NULL, '$range of more than 10,000,000');
SELECT throws_ok($r$SELECT bson_eval('{}', '{$reduce: {input: {$range: [0, 60]}, initialValue: "1234567890", in: {$concat: ["$$value", "$$value"]}}}')$r$, '54000', NULL, '$reduce that doubles a string 60 times');
SELECT throws_ok($$SELECT bson_build('s', repeat('x', 17 * 1024 * 1024))$$, '54000', NULL, 'a document of 17 MB');
SELECT throws_ok($$SELECT bson_agg(repeat('x', 1024 * 1024)) FROM generate_series(1, 20)$$, '54000', NULL, 'one that an aggregate makes');
SELECT lives_ok($$SELECT set_config('docpatterns.max_document_size', '20MB', true), bson_build('s', repeat('x', 17 * 1024 * 1024))$$, 'the limit is a setting');
SELECT throws_ok($$SET docpatterns.max_document_size = '2GB'$$, '22023', NULL, 'up to 1 GB');
RESET docpatterns.max_document_size;
SELECT throws_ok($$SELECT '\xffffff7f00'::bytea::bson$$, '22P03', NULL, 'bytes whose length lies');
SELECT throws_ok($$SELECT ('{"a":' || repeat('[', 50000))::bson$$, '54000', NULL, 'an array that never ends');
SELECT is(length(bson_build('a', bson_agg(i))::text) > 7000000, true, 'a million numbers are text') FROM generate_series(1, 1000000) i;
SELECT finish();
