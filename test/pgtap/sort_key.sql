-- Sort keys: the order of all values in both directions, arrays, compound keys, errors.
\set QUIET 1
SET client_min_messages = warning;
SET timezone = 'UTC';
BEGIN;
SELECT plan(57);

-- ---------------------------------------------------------------- the call

SELECT has_function('bson_sort_key', ARRAY['bson', 'bson']);
SELECT function_returns('bson_sort_key', ARRAY['bson', 'bson'], 'bytea');
SELECT volatility_is('bson_sort_key', ARRAY['bson', 'bson'], 'immutable');
SELECT is_strict('bson_sort_key', ARRAY['bson', 'bson']);
SELECT is(bson_sort_key(NULL, '{a: 1}'), NULL, 'no document');
SELECT is(bson_sort_key('{}', NULL), NULL, 'no specification');

-- ---------------------------------------------------------------- every value, against the order of bson_value

CREATE TEMP TABLE v (v bson_value);
INSERT INTO v VALUES ('MinKey'), ('undefined'), ('null'), ('NaN'), ('-Infinity'), ('Infinity'), ('0'), ('-0.0'), ('1'), ('-1'), ('1.0'), ('0.1'), ('-0.1'),
  ('NumberDecimal("0.1")'), ('NumberDecimal("-0.1")'), ('NumberDecimal("0.10")'), ('NumberDecimal("1E-6176")'), ('NumberDecimal("-1E-6176")'),
  ('NumberDecimal("9.999999999999999999999999999999999E+6144")'), ('NumberDecimal("-9.999999999999999999999999999999999E+6144")'), ('NumberDecimal("NaN")'),
  ('NumberDecimal("Infinity")'), ('NumberDecimal("1E+308")'), ('NumberDecimal("1.000000000000000000000000000000001")'), ('NumberDecimal("0.9999999999999999999999999999999999")'),
  ('1e308'), ('-1e308'), ('5e-324'), ('-5e-324'), ('9007199254740991'), ('9007199254740992'), ('9007199254740993'), ('9007199254740992.0'), ('NumberDecimal("9007199254740993")'),
  ('NumberDecimal("9007199254740993.5")'), ('NumberDecimal("-9007199254740993.5")'), ('-9007199254740993'), ('NumberLong("9223372036854775807")'), ('NumberLong("-9223372036854775808")'),
  ('NumberLong("9223372036854775806")'), ('9223372036854775808.0'), ('NumberDecimal("9223372036854775807.5")'), ('NumberDecimal("9223372036854775808")'), ('2147483647'), ('-2147483648'),
  ('""'), ('"a"'), ('"a\u0000"'), ('"a\u0000b"'), ('"a\u0001"'), ('"ab"'), ('"b"'), ('"é"'), ('"\uffff"'), ('Symbol("a")'), ('"10"'), ('"9"'),
  ('{}'), ('{a: 1}'), ('{a: 1, b: 1}'), ('{a: 2}'), ('{b: 1}'), ('{a: "x"}'), ('{ab: 1}'), ('{a: {}}'), ('{a: {b: 1}}'), ('{a: 1.0}'), ('{"": 1}'), ('{a: [1]}'), ('{a: null}'),
  ('[]'), ('[1]'), ('[1, 2]'), ('[2]'), ('[[]]'), ('[[1]]'), ('["a"]'), ('[null]'), ('[{a: 1}]'),
  ('BinData(0, "")'), ('BinData(0, "AA==")'), ('BinData(1, "AA==")'), ('BinData(0, "AAA=")'), ('BinData(0, "/w==")'), ('UUID("00112233-4455-6677-8899-aabbccddeeff")'),
  ('ObjectId("000000000000000000000000")'), ('ObjectId("5ab9c3da31c2ab715d421285")'), ('false'), ('true'),
  ('ISODate("1970-01-01")'), ('ISODate("1969-01-01")'), ('ISODate("2020-01-01")'), ('{"$date": {"$numberLong": "-9223372036854775808"}}'),
  ('Timestamp(0, 0)'), ('Timestamp(1, 2)'), ('Timestamp(4294967295, 1)'), ('/a/'), ('/a/i'), ('/b/'), ('/ab/'),
  ('DBPointer("c", ObjectId("5ab9c3da31c2ab715d421285"))'), ('DBPointer("cc", ObjectId("5ab9c3da31c2ab715d421285"))'), ('Code("a")'), ('Code("b")'), ('Code("a", {x: 1})'), ('Code("a", {x: 2})'), ('MaxKey');
-- arrays inside arrays, so that the array itself is the value that is compared
CREATE TEMP TABLE k AS SELECT row_number() OVER () AS i, v,
  bson_sort_key(bson_build('a', bson_array(v)), '{a: 1}') AS up, bson_sort_key(bson_build('a', bson_array(v)), '{a: -1}') AS down FROM v;
SELECT cmp_ok((SELECT count(*) FROM k), '>', 100::bigint, 'more than a hundred values');
SELECT is((SELECT count(*) FROM k AS x, k AS y WHERE (x.v < y.v) <> (x.up < y.up) OR (x.v = y.v) <> (x.up = y.up)), 0::bigint, 'keys are in the order of the values');
SELECT is((SELECT count(*) FROM k AS x, k AS y WHERE (x.v < y.v) <> (x.down > y.down) OR (x.v = y.v) <> (x.down = y.down)), 0::bigint, 'and in the opposite one when descending');
-- no key begins another, so that the next part of a compound key cannot disturb
SELECT is((SELECT count(*) FROM k AS x, k AS y WHERE x.up <> y.up AND starts_with(encode(y.up, 'hex'), encode(x.up, 'hex'))), 0::bigint, 'no key begins another');
SELECT is((SELECT count(*) FROM k AS x, k AS y WHERE x.down <> y.down AND starts_with(encode(y.down, 'hex'), encode(x.down, 'hex'))), 0::bigint, 'nor when descending');

-- compound keys: every pair against the two comparisons
SELECT is((SELECT count(*) FROM
  (SELECT x.v AS a, y.v AS b, bson_sort_key(bson_build('a', bson_array(x.v), 'b', y.v), '{a: 1, b: -1}') AS key FROM k AS x, k AS y
    WHERE x.i % 3 = 0 AND y.i % 9 = 0 AND bson_typeof(y.v) <> 'array') AS one,
  (SELECT x.v AS a, y.v AS b, bson_sort_key(bson_build('a', bson_array(x.v), 'b', y.v), '{a: 1, b: -1}') AS key FROM k AS x, k AS y
    WHERE x.i % 4 = 0 AND y.i % 7 = 0 AND bson_typeof(y.v) <> 'array') AS two
  WHERE (one.key < two.key) <> (one.a < two.a OR (one.a = two.a AND one.b > two.b))), 0::bigint, '{a: 1, b: -1} is a, then b the other way round');

-- random numbers of all types
SELECT setseed(0.17);
CREATE TEMP TABLE n AS SELECT v, bson_sort_key(bson_build('a', v), '{a: 1}') AS key FROM (
  SELECT to_bson(trunc((random() - 0.5) * 10 ^ (random() * 18))::bigint) AS v FROM generate_series(1, 100) UNION ALL
  SELECT to_bson((random() - 0.5) * 10 ^ (random() * 40 - 20)) FROM generate_series(1, 100) UNION ALL
  SELECT to_bson(round(((random() - 0.5) * 10 ^ (random() * 18))::numeric, (random() * 10)::int)) FROM generate_series(1, 100) UNION ALL
  SELECT to_bson((9007199254740990 + i)::bigint) FROM generate_series(1, 10) AS i UNION ALL
  SELECT to_bson((9007199254740990 + i)::float8) FROM generate_series(1, 10) AS i UNION ALL
  SELECT to_bson(9007199254740990 + i / 4.0) FROM generate_series(1, 40) AS i) AS t;
SELECT is((SELECT count(*) FROM n AS x, n AS y WHERE (x.v < y.v) <> (x.key < y.key) OR (x.v = y.v) <> (x.key = y.key)), 0::bigint, 'numbers, seed 0.17');

-- ---------------------------------------------------------------- documents

-- the order of documents, given as one text
CREATE FUNCTION pg_temp.sorted(spec bson, VARIADIC docs text[]) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(d, ' ' ORDER BY bson_sort_key(docpatterns.bson_in(d::cstring), spec), i) FROM unnest(docs) WITH ORDINALITY AS t (d, i)
$$;
SELECT is(pg_temp.sorted(s, VARIADIC d), r, n) FROM (VALUES
  ('{a: 1}'::bson, ARRAY['{a: 2}', '{a: 1}', '{a: 3}'], '{a: 1} {a: 2} {a: 3}', 'ascending'),
  ('{a: -1}', ARRAY['{a: 2}', '{a: 1}', '{a: 3}'], '{a: 3} {a: 2} {a: 1}', 'descending'),
  ('{a: 1.0}', ARRAY['{a: 2}', '{a: 1}'], '{a: 1} {a: 2}', 'a double as direction'),
  ('{a: -1.9}', ARRAY['{a: 1}', '{a: 2}'], '{a: 2} {a: 1}', 'its fraction does not count'),
  ('{a: NumberLong(-1)}', ARRAY['{a: 1}', '{a: 2}'], '{a: 2} {a: 1}', 'a long as direction'),
  ('{a: 1, b: -1}', ARRAY['{a: 1, b: 1}', '{a: 1, b: 2}', '{a: 0, b: 0}'], '{a: 0, b: 0} {a: 1, b: 2} {a: 1, b: 1}', 'two fields'),
  ('{a: 1}', ARRAY['{a: 1}', '{a: null}', '{b: 1}', '{a: []}', '{a: MinKey}'], '{a: MinKey} {a: []} {a: null} {b: 1} {a: 1}', 'missing is null, an empty array comes before it'),
  ('{a: -1}', ARRAY['{a: []}', '{a: null}', '{b: 1}', '{a: 1}'], '{a: 1} {a: null} {b: 1} {a: []}', 'the same descending'),
  ('{a: 1}', ARRAY['{a: [5, 2]}', '{a: 3}', '{a: [1, 9]}'], '{a: [1, 9]} {a: [5, 2]} {a: 3}', 'the least element'),
  ('{a: -1}', ARRAY['{a: [5, 2]}', '{a: 3}', '{a: [1, 9]}'], '{a: [1, 9]} {a: [5, 2]} {a: 3}', 'the greatest element'),
  ('{a: 1}', ARRAY['{a: [[5]]}', '{a: {b: 1}}', '{a: "x"}'], '{a: "x"} {a: {b: 1}} {a: [[5]]}', 'an array in an array is a value'),
  ('{"a.b": 1}', ARRAY['{a: {b: 2}}', '{a: {b: 1}}', '{a: 5}'], '{a: 5} {a: {b: 1}} {a: {b: 2}}', 'a path; what has no fields is missing'),
  ('{"a.b": 1}', ARRAY['{a: [{b: 5}, {b: 2}]}', '{a: {b: 3}}', '{a: [{b: 9}, {c: 1}]}', '{a: [{b: 1}, 7]}'], '{a: [{b: 9}, {c: 1}]} {a: [{b: 1}, 7]} {a: [{b: 5}, {b: 2}]} {a: {b: 3}}', 'through an array, where an element without the field is null'),
  ('{"a.b": -1}', ARRAY['{a: [{b: 5}, {b: 2}]}', '{a: {b: 3}}', '{a: [{b: 9}, {c: 1}]}'], '{a: [{b: 9}, {c: 1}]} {a: [{b: 5}, {b: 2}]} {a: {b: 3}}', 'the same descending'),
  ('{"a.b": 1}', ARRAY['{a: [{b: [3, 4]}]}', '{a: [{b: 2}]}', '{a: [{b: []}]}', '{a: []}'], '{a: [{b: []}]} {a: []} {a: [{b: 2}]} {a: [{b: [3, 4]}]}', 'arrays in arrays'),
  ('{"a.0": 1}', ARRAY['{a: [3, 1]}', '{a: [2, 9]}', '{a: {"0": 1}}', '{a: []}'], '{a: []} {a: {"0": 1}} {a: [2, 9]} {a: [3, 1]}', 'a position, or a name'),
  ('{"a.1.b": 1}', ARRAY['{a: [{b: 0}, {b: 3}]}', '{a: [{b: 1}, {b: 2}]}'], '{a: [{b: 1}, {b: 2}]} {a: [{b: 0}, {b: 3}]}', 'a position on the way'),
  ('{"a.x": 1, "a.y": 1}', ARRAY['{a: [{x: 1, y: 9}, {x: 2, y: 1}]}', '{a: {x: 1, y: 5}}'], '{a: {x: 1, y: 5}} {a: [{x: 1, y: 9}, {x: 2, y: 1}]}', 'fields of one array belong together'),
  ('{"a.x": 1, "a.y": -1}', ARRAY['{a: [{x: 1, y: 2}, {x: 1, y: 5}]}', '{a: {x: 1, y: 4}}'], '{a: [{x: 1, y: 2}, {x: 1, y: 5}]} {a: {x: 1, y: 4}}', 'in both directions'),
  ('{a: 1, "a.x": 1}', ARRAY['{a: [{x: 1}, {x: 0}]}', '{a: {x: 1}}'], '{a: [{x: 1}, {x: 0}]} {a: {x: 1}}', 'the array and a field of it'),
  ('{b: 1, a: 1}', ARRAY['{a: [3, 1], b: 1}', '{a: 2, b: 1}', '{a: 0, b: 2}'], '{a: [3, 1], b: 1} {a: 2, b: 1} {a: 0, b: 2}', 'one of the fields is an array'),
  ('{"a.b": 1}', ARRAY['{"a.b": 1, a: {b: 5}}', '{a: {b: 3}}'], '{a: {b: 3}} {"a.b": 1, a: {b: 5}}', 'dots separate'),
  ('{a: 1}', ARRAY['{a: NumberDecimal("1.5")}', '{a: 1.25}', '{a: 2}', '{a: NumberLong(1)}'], '{a: NumberLong(1)} {a: 1.25} {a: NumberDecimal("1.5")} {a: 2}', 'numbers of all types')
) AS t (s, d, r, n);
SELECT is(bson_sort_key('{a: 1}', '{a: 1}'), bson_sort_key('{a: 1.0}', '{a: 1}'), 'equal values have equal keys');
SELECT is(bson_sort_key('{}', '{a: 1}'), bson_sort_key('{a: null}', '{a: 1}'), 'missing and null, too');
SELECT is(bson_sort_key('{a: 1}', '{a: 1}'), '\x04bff000000000000080'::bytea, 'the bytes are those that are documented');
SELECT is(bson_sort_key('{a: "x"}', '{a: -1}'), '\xfa87fffe'::bytea, 'those of a descending string');

-- in an index, and with a specification in a column
CREATE TEMP TABLE items (doc bson);
INSERT INTO items SELECT bson_build('_id', i, 'g', i % 5, 'x', (i * 37) % 101) FROM generate_series(1, 1000) AS i;
CREATE INDEX ON items (bson_sort_key(doc, '{g: 1, x: -1}'));
SET LOCAL enable_seqscan = off;
SET LOCAL enable_sort = off;
CREATE FUNCTION pg_temp.plan_of(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || q; END $$;
SELECT alike((SELECT string_agg(l, ' ') FROM pg_temp.plan_of($$SELECT doc FROM items ORDER BY bson_sort_key(doc, '{g: 1, x: -1}') LIMIT 5$$) AS l), '%Index Scan%', 'an index serves ORDER BY');
SELECT is((SELECT array_agg((doc -> '_id')::int) FROM (SELECT doc FROM items ORDER BY bson_sort_key(doc, '{g: 1, x: -1}') LIMIT 3) AS t),
  (SELECT array_agg(id) FROM (SELECT (doc -> '_id')::int AS id FROM items ORDER BY (doc -> 'g')::int, (doc -> 'x')::int DESC LIMIT 3) AS t), 'and gives the order of the two fields');
RESET enable_seqscan;
RESET enable_sort;
SELECT is((SELECT string_agg(encode(bson_sort_key('{a: true, b: false}', docpatterns.bson_in(s::cstring)), 'hex'), ' ' ORDER BY s) FROM unnest(ARRAY['{a: 1}', '{b: 1}', '{b: -1}']) AS s), '0a01 f5ff 0a00', 'a specification that changes');

-- ---------------------------------------------------------------- errors

SELECT throws_ok(format('SELECT bson_sort_key(%L, %L)', d, s), c, NULL, s) FROM (VALUES
  ('{}', '{}', '22023'), ('{}', '{a: 0}', '22023'), ('{}', '{a: 2}', '22023'), ('{}', '{a: "x"}', '22023'), ('{}', '{a: {$meta: "textScore"}}', '0A000'), ('{}', '{a: {b: 1}}', '22023'),
  ('{}', '{"a..b": 1}', '22023'), ('{}', '{"": 1}', '22023'), ('{}', '{"a.$b": 1}', '22023'), ('{}', '{a: true}', '22023'),
  ('{a: [1], b: [2]}', '{a: 1, b: 1}', '22023'), ('{a: [{b: [1], c: [2]}]}', '{"a.b": 1, "a.c": 1}', '22023')) AS t (d, s, c);
SELECT throws_ok(format('SELECT bson_sort_key(%L, (SELECT bson_object_agg(%L || i, 1) FROM generate_series(1, 33) AS i))', '{}', 'f'), '22023', NULL, '33 fields');
SELECT is(bson_sort_key('{a: [], b: [2]}', '{b: 1}') IS NOT NULL, true, 'an array that is not sorted by does not matter');

SELECT * FROM finish();
ROLLBACK;
