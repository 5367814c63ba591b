-- The contract of the builders and their aggregates.
SET timezone = 'UTC';
BEGIN;
SELECT plan(74);

SELECT function_returns('bson_build', ARRAY['"any"'], 'bson');
SELECT function_returns('bson_array', ARRAY['"any"'], 'bson_value');
SELECT function_returns('to_bson', ARRAY['anycompatible'], 'bson_value');
SELECT function_returns('row_to_bson', ARRAY['record'], 'bson');
SELECT function_returns('bson_agg', ARRAY['anycompatible'], 'bson_value');
SELECT function_returns('bson_object_agg', ARRAY['text', 'anycompatible'], 'bson');
SELECT function_returns('bson_merge_agg', ARRAY['bson'], 'bson');
SELECT volatility_is('bson_build', ARRAY['"any"'], 'stable');
SELECT volatility_is('to_bson', ARRAY['anycompatible'], 'stable');
SELECT is_aggregate('bson_agg', ARRAY['anycompatible']);
SELECT is((SELECT count(*) FROM pg_proc WHERE proname IN ('bson_build', 'bson_array', 'to_bson', 'row_to_bson', 'bson_agg', 'bson_object_agg', 'bson_merge_agg') AND proparallel <> 's'),
          0::bigint, 'all are parallel safe');

-- Every type in every place: a value, an element, a field of a row, a row of an aggregate.
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN email AS text CHECK (value LIKE '%@%');
CREATE DOMAIN ints AS int[];
CREATE TYPE pair AS (a int, b text);
CREATE TABLE typed (b boolean, i2 smallint, i4 int, i8 bigint, f4 real, f8 float8, n numeric, t text, v varchar(9), c char(4), nm name, e mood, d email, tz timestamptz, ts timestamp, da date,
  u uuid, by bytea, o objectid, doc bson, bv bson_value, jb jsonb, js json, ia int[], ma int[], di ints, p pair, pa pair[], iv interval, r int4range, x inet, oi oid, rc regclass, tm time);
INSERT INTO typed VALUES (true, 1, 2, 3, 0.5, 0.25, 1.50, 'text', 'varchar', 'ch', 'name', 'ok', 'a@b', '2024-01-01 00:00Z', '2024-01-01', '2024-01-01',
  '00112233-4455-6677-8899-aabbccddeeff', '\x00ff', '507f191e810c19729de860ea', '{a: 1}', '[1]', '{"b": 1}', '{"z": 1, "a": 2}', '{1,NULL}', '{{1,2},{3,4}}', '{7}', '(1,x)', '{"(2,y)",NULL}',
  '1 day', '[1,2)', '::1', 42, 'pg_class', '12:34');
INSERT INTO typed DEFAULT VALUES;
CREATE TABLE expected (doc bson);
INSERT INTO expected VALUES ('{b: true, i2: 1, i4: 2, i8: NumberLong(3), f4: 0.5, f8: 0.25, n: NumberDecimal("1.50"), t: "text", v: "varchar", c: "ch", nm: "name", e: "ok", d: "a@b", tz: ISODate("2024-01-01"),
  ts: ISODate("2024-01-01"), da: ISODate("2024-01-01"), u: UUID("00112233-4455-6677-8899-aabbccddeeff"), by: BinData(0, "AP8="), o: ObjectId("507f191e810c19729de860ea"), doc: {a: 1}, bv: [1], jb: {b: 1}, js: {z: 1, a: 2},
  ia: [1, null], ma: [[1, 2], [3, 4]], di: [7], p: {a: 1, b: "x"}, pa: [{a: 2, b: "y"}, null], iv: "1 day", r: "[1,2)", x: "::1", oi: "42", rc: "pg_class", tm: "12:34:00"}');
SELECT is((SELECT row_to_bson(typed)::text FROM typed WHERE b), (SELECT doc::text FROM expected), 'a row of every type');
SELECT is((SELECT bson_build('b', b, 'i2', i2, 'i4', i4, 'i8', i8, 'f4', f4, 'f8', f8, 'n', n, 't', t, 'v', v, 'c', c, 'nm', nm, 'e', e, 'd', d, 'tz', tz, 'ts', ts, 'da', da, 'u', u, 'by', by, 'o', o, 'doc', doc, 'bv', bv,
  'jb', jb, 'js', js, 'ia', ia, 'ma', ma, 'di', di, 'p', p, 'pa', pa, 'iv', iv, 'r', r, 'x', x, 'oi', oi, 'rc', rc, 'tm', tm)::text FROM typed WHERE b), (SELECT doc::text FROM expected), 'as arguments');
SELECT is((SELECT bson_agg(typed)::text FROM typed WHERE b), (SELECT bson_array(doc)::text FROM expected), 'as a row in an aggregate');
SELECT is((SELECT (to_bson(array_agg(typed)) -> 0)::text FROM typed WHERE b), (SELECT doc::text FROM expected), 'in an array of rows');
SELECT is((SELECT row_to_bson(typed)::bytea FROM typed WHERE b), (SELECT doc::bytea FROM expected), 'byte for byte');
SELECT is((SELECT count(*) FROM typed, bson_each(row_to_bson(typed)) AS f WHERE b IS NULL AND bson_typeof(f.value) = 'null'), 34::bigint, 'NULL is null for every type');
SELECT is(bson_array(NULL::int, NULL::text, NULL::pair, NULL)::text, '[null, null, null, null]', 'also as arguments');

-- A cached converter follows the rows that it meets.
SELECT is((SELECT bson_agg(r)::text FROM (SELECT CASE i WHEN 1 THEN ROW(1, 'a'::text) ELSE ROW(2, 'b') END AS r FROM generate_series(1, 2) i) s), '[{"f1": 1, "f2": "a"}, {"f1": 2, "f2": "b"}]', 'anonymous rows');
ALTER TABLE typed DROP COLUMN b, ADD COLUMN late int DEFAULT 9;
SELECT ok((SELECT row_to_bson(typed) -> 'late' = 9 AND NOT row_to_bson(typed) ? 'b' FROM typed WHERE i2 = 1), 'dropped and added columns');

-- Arguments of bson_build.
SELECT throws_ok('SELECT bson_build(1)', '22023', NULL, 'odd number');
SELECT throws_ok('SELECT bson_build(1, 2, 3)', '22023', NULL, 'odd number of three');
SELECT throws_ok('SELECT bson_build(VARIADIC ARRAY[1, 2, 3])', '22023', NULL, 'odd number in an array');
SELECT throws_ok('SELECT bson_build(NULL, 1)', '22004', NULL, 'null name');
SELECT throws_ok('SELECT bson_build(VARIADIC ARRAY[NULL, ''1''])', '22004', NULL, 'null name in an array');
SELECT throws_ok('SELECT bson_build(ARRAY[1], 1)', '22023', NULL, 'an array is no name');
SELECT throws_ok('SELECT bson_build(''{}''::bson, 1)', '22023', NULL, 'a document is no name');
SELECT throws_ok('SELECT bson_build(''{}''::jsonb, 1)', '22023', NULL, 'a jsonb is no name');
SELECT throws_ok('SELECT bson_build(ROW(1), 1)', '22023', NULL, 'a row is no name');
SELECT throws_ok('SELECT bson_build(''null''::bson_value, 1)', '22023', NULL, 'a null value is no name');
SELECT throws_ok('SELECT bson_build(VARIADIC 5)', '42804', NULL, 'VARIADIC of what is no array');
SELECT is(bson_build('a', 1, 'a', 2)::text, '{"a": 1, "a": 2}', 'repeated names stay');
SELECT is(bson_build(true, 1, 2.50, 2, date '2024-01-01', 3)::text, '{"true": 1, "2.50": 2, "2024-01-01": 3}', 'names of other types') FROM set_config('datestyle', 'ISO', true);
SELECT is(bson_build('ab'::char(4), 1)::text, '{"ab": 1}', 'a char name without padding');
SELECT is(bson_build('a.b', 1, '$c', 2, '', 3)::text, '{"a.b": 1, "$c": 2, "": 3}', 'any text is a name');
SELECT is(bson_build('u', 'untyped'), bson_build('u', 'untyped'::text), 'an untyped literal is text');
SELECT is(bson_build(VARIADIC ARRAY['a', 'b']::text[]), '{a: "b"}'::bson, 'VARIADIC array');
SELECT is(bson_build(VARIADIC '{}'::text[]), '{}'::bson, 'empty VARIADIC array');
SELECT is(bson_build(VARIADIC NULL::text[]), NULL, 'null VARIADIC array');
SELECT is(bson_array(VARIADIC ARRAY[bson_build('a', 1), NULL])::text, '[{"a": 1}, null]', 'array of documents');
SELECT is((SELECT bson_build(k, i)::text FROM (VALUES ('x', 1)) AS t (k, i)), '{"x": 1}', 'columns');
SELECT is((SELECT string_agg(bson_build('i', i, 't', 't' || i)::text, '') FROM generate_series(1, 3) i), '{"i": 1, "t": "t1"}{"i": 2, "t": "t2"}{"i": 3, "t": "t3"}', 'many rows');

-- Aggregates.
SELECT is((SELECT bson_agg(i) FROM generate_series(1, 0) i), NULL, 'bson_agg of no rows');
SELECT is((SELECT bson_object_agg('a', i) FROM generate_series(1, 0) i), NULL, 'bson_object_agg of no rows');
SELECT is((SELECT bson_merge_agg('{}') FROM generate_series(1, 0) i), NULL, 'bson_merge_agg of no rows');
SELECT is((SELECT bson_merge_agg(NULL) FROM generate_series(1, 3) i), NULL, 'bson_merge_agg of nulls');
SELECT is((SELECT bson_agg('x') FROM generate_series(1, 2) i)::text, '["x", "x"]', 'an untyped literal');
SELECT is((SELECT bson_agg(i ORDER BY i DESC)::text FROM generate_series(1, 12) i), '[12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]', 'positions have two digits');
SELECT is((SELECT encode(bson_value_send(bson_agg(true)), 'hex') FROM generate_series(1, 2)), '040d00000008300001083100' || '0100', 'bytes of an array');
SELECT is((SELECT array_agg(x::text) FROM (SELECT bson_agg(i) AS x FROM generate_series(1, 4) i GROUP BY i % 2 ORDER BY i % 2) s), ARRAY['[2, 4]', '[1, 3]'], 'groups');
SELECT is((SELECT array_agg(x::text) FROM (SELECT bson_agg(i) OVER (ORDER BY i) AS x FROM generate_series(1, 3) i) s), ARRAY['[1]', '[1, 2]', '[1, 2, 3]'], 'a window goes on with the state');
SELECT is((SELECT array_agg(x::text) FROM (SELECT bson_object_agg('k' || i % 2, i) OVER (ORDER BY i) AS x FROM generate_series(1, 3) i) s), ARRAY['{"k1": 1}', '{"k1": 1, "k0": 2}', '{"k1": 3, "k0": 2}'], 'also of names');
SELECT is((SELECT bson_agg(d)::text FROM (VALUES ('{"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": {"j": 1}}}}}}}}}}'::jsonb), ('{"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": {"j": 2}}}}}}}}}}')) AS t (d)),
          '[{"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": {"j": 1}}}}}}}}}}, {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": {"j": 2}}}}}}}}}}]', 'deep values, row after row');
SELECT is((SELECT bson_merge_agg(d ORDER BY i)::text FROM (VALUES (1, '{a: 1, b: {c: 1}}'::bson), (2, '{b: {d: 2}, e: 3}'), (3, '{a: "a string that is longer than the number was"}'), (4, '{e: 4}')) AS t (i, d)),
          '{"a": "a string that is longer than the number was", "b": {"d": 2}, "e": 4}', 'fields keep their places, sub-documents are replaced');
SELECT is((SELECT bson_merge_agg('{a: 1, a: 2}')::text), '{"a": 2}', 'repeated names of one document');
SELECT throws_ok('SELECT bson_object_agg(NULL, 1)', '22004', NULL, 'null name of bson_object_agg');
SELECT is((SELECT (bson_object_agg(i::text, i))::text FROM generate_series(1, 1000) i), (SELECT '{' || string_agg(format('"%s": %s', i, i), ', ' ORDER BY i) || '}' FROM generate_series(1, 1000) i), 'a thousand names in order');

-- Limits.
SET LOCAL docpatterns.max_document_size = 1024;
SELECT throws_ok('SELECT bson_agg(i) FROM generate_series(1, 1000) i', '54000', NULL, 'bson_agg');
SELECT throws_ok('SELECT bson_object_agg(i::text, i) FROM generate_series(1, 1000) i', '54000', NULL, 'bson_object_agg');
SELECT throws_ok('SELECT bson_merge_agg(bson_build(i::text, i)) FROM generate_series(1, 1000) i', '54000', NULL, 'bson_merge_agg');
SELECT throws_ok('SELECT bson_build(''a'', repeat(''x'', 1100))', '54000', NULL, 'bson_build');
SELECT throws_ok('SELECT bson_array(repeat(''x'', 1100))', '54000', NULL, 'bson_array');
SELECT throws_ok('SELECT to_bson(array_agg(i)) FROM generate_series(1, 1000) i', '54000', NULL, 'to_bson');
SELECT throws_ok('SELECT row_to_bson(ROW(repeat(''x'', 1100)))', '54000', NULL, 'row_to_bson');
SELECT is((SELECT bson_size(bson_build('a', repeat('x', 1024 - 13)))::int), 1024, 'exactly the limit');
SELECT is(bson_value_from_bytea(bson_value_send(bson_array(repeat('x', 1024 - 13)))), bson_array(repeat('x', 1024 - 13)), 'as a value too, in binary form');
RESET docpatterns.max_document_size;
CREATE FUNCTION nested(n int) RETURNS bson LANGUAGE sql AS $$ SELECT (repeat('{a:', n - 1) || '{}' || repeat('}', n - 1))::bson $$;
SELECT lives_ok('SELECT bson_build(''a'', nested(99))', '100 levels');
SELECT throws_ok('SELECT bson_build(''a'', nested(100))', '54000', NULL, '101 levels');
SELECT throws_ok('SELECT bson_build(''a'', ARRAY[nested(99)])', '54000', NULL, '101 levels through an array');
SELECT throws_ok('SELECT bson_object_agg(''a'', nested(100))', '54000', NULL, '101 levels in an aggregate');
SELECT lives_ok('SELECT bson_object_agg(''a'', nested(99))', '100 levels in an aggregate');
SELECT lives_ok('SELECT bson_merge_agg(nested(100))', 'merging adds no level');

SELECT throws_ok('SELECT bson_build(VARIADIC 5)', '42804', 'VARIADIC argument must be an array', 'VARIADIC of what is no array');
SELECT throws_ok('SELECT (''5''::bson_value)::objectid', '22023', 'cannot cast BSON int to type objectid', 'a number is no id');

SELECT * FROM finish();
ROLLBACK;
