-- Reading by path: signatures, errors, and documents in every way of storage.
\set QUIET 1
SET client_min_messages = warning;
BEGIN;
SELECT plan(81);

-- ---------------------------------------------------------------- signatures

SELECT function_returns(f, a, r, f || '(' || array_to_string(a, ', ') || ')') FROM (VALUES
  ('bson_get', ARRAY['bson', 'text'], 'bson_value'), ('bson_get', ARRAY['bson_value', 'text'], 'bson_value'),
  ('bson_get', ARRAY['bson', 'integer'], 'bson_value'), ('bson_get', ARRAY['bson_value', 'integer'], 'bson_value'),
  ('bson_get', ARRAY['bson', 'text[]'], 'bson_value'), ('bson_get', ARRAY['bson_value', 'text[]'], 'bson_value'),
  ('bson_get_text', ARRAY['bson', 'text'], 'text'), ('bson_get_text', ARRAY['bson_value', 'text'], 'text'),
  ('bson_get_text', ARRAY['bson', 'integer'], 'text'), ('bson_get_text', ARRAY['bson_value', 'integer'], 'text'),
  ('bson_get_text', ARRAY['bson', 'text[]'], 'text'), ('bson_get_text', ARRAY['bson_value', 'text[]'], 'text'),
  ('bson_exists', ARRAY['bson', 'text'], 'boolean'), ('bson_exists', ARRAY['bson_value', 'text'], 'boolean'),
  ('bson_exists_any', ARRAY['bson', 'text[]'], 'boolean'), ('bson_exists_all', ARRAY['bson', 'text[]'], 'boolean'),
  ('bson_typeof', ARRAY['bson_value'], 'text'), ('bson_typeof', ARRAY['bson', 'text'], 'text'),
  ('bson_size', ARRAY['bson'], 'integer'), ('bson_size', ARRAY['bson_value'], 'integer'),
  ('bson_array_length', ARRAY['bson_value'], 'integer'), ('bson_array_length', ARRAY['bson', 'text'], 'integer'),
  ('bson_values', ARRAY['bson', 'text'], 'setof bson_value')) AS t (f, a, r);
SELECT is((SELECT count(*) FROM pg_proc WHERE proname IN ('bson_get', 'bson_get_text', 'bson_exists', 'bson_exists_any', 'bson_exists_all',
    'bson_typeof', 'bson_size', 'bson_array_length', 'bson_values')
  AND (provolatile <> 'i' OR NOT proisstrict OR proparallel <> 's')), 0::bigint, 'all of them are immutable, strict and parallel safe');
SELECT is((SELECT array_agg(DISTINCT oprname::text ORDER BY oprname::text) FROM pg_operator
  WHERE oprleft IN ('bson'::regtype, 'bson_value'::regtype) AND oprname IN ('->', '->>', '#>', '#>>', '?', '?|', '?&')),
  ARRAY['#>', '#>>', '->', '->>', '?', '?&', '?|'], 'the operators are there');

-- ---------------------------------------------------------------- errors

SELECT throws_ok($$SELECT '{}'::bson -> ''$$, '22023', NULL, 'an empty path');
SELECT throws_ok($$SELECT '{}'::bson -> '.'$$, '22023', NULL, 'a path of empty parts');
SELECT throws_ok($$SELECT '{}'::bson -> 'a.'$$, '22023', NULL, 'a path that ends in a dot');
SELECT throws_ok($$SELECT '{}'::bson ? 'a..b'$$, '22023', NULL, 'an empty part');
SELECT throws_ok($$SELECT '{}'::bson ->> '"a'$$, '22023', NULL, 'a quote that is not closed');
SELECT throws_ok($$SELECT '{}'::bson -> '"a"b'$$, '22023', NULL, 'something behind a quote');
SELECT throws_ok($$SELECT '{}'::bson ?| '{a,.}'$$, '22023', NULL, 'one bad path among several');
SELECT throws_ok($$SELECT '{}'::bson #> '{a,NULL}'$$, '22004', NULL, 'a part that is null');
SELECT throws_ok($$SELECT '{}'::bson #> '{{a},{b}}'$$, '2202E', NULL, 'a path of two dimensions');
SELECT throws_ok($$SELECT '{s: "a\u0000b"}'::bson ->> 's'$$, '22P05', NULL, 'a null character in a text');
SELECT throws_ok($$SELECT '{s: "a\u0000b"}'::bson -> 's' #>> '{}'$$, '22P05', NULL, 'the same through #>>');
SELECT throws_ok($$SELECT bson_array_length('5'::bson_value)$$, '42804', NULL, 'the length of a number');
SELECT throws_ok($$SELECT ('{}'::bson)[1:2]$$, '42804', NULL, 'a slice');
SELECT throws_ok($$SELECT ('{}'::bson)[true]$$, '42804', NULL, 'a subscript of type boolean');

-- ---------------------------------------------------------------- names and positions

SELECT is('{"": {"": 1}}'::bson ->> '"".""', '1', 'empty names');
SELECT is('{"": {"": 1}}'::bson #>> '{"",""}', '1', 'empty names in an array');
SELECT is('{a: {b: 1}}'::bson #> '{}' #>> '{}', '{"a": {"b": 1}}', 'an empty text[] leads to the document');
SELECT is('{"01": 1, "-1": 2, "1": 3, a: [10, 20]}'::bson ->> '01', '1', 'a number with a leading zero is a name');
SELECT is('{"01": 1, "-1": 2, "1": 3, a: [10, 20]}'::bson ->> '-1', '2', 'a negative number is a name in a document');
SELECT is('{a: [10, 20]}'::bson ->> 'a.01', NULL, 'and no position with a leading zero');
SELECT is('{a: [10, 20]}'::bson ->> 'a.-0', NULL, 'nor as minus zero');
SELECT is('{a: [10, 20]}'::bson ->> 'a.-3', NULL, 'before the beginning');
SELECT is('{a: [10, 20]}'::bson ->> 'a."1"', '20', 'a quoted number is a position too');
SELECT is('{a: [10, 20]}'::bson ->> 'a.99999999999999999999', NULL, 'a number that is no position at all');
SELECT is('[1, 2, 3]'::bson_value ->> (-2147483648), NULL, 'the least integer');
SELECT is('[1, 2, 3]'::bson_value ->> 2147483647, NULL, 'the greatest integer');
-- names around the sixteen bytes that are compared at once, all with the same beginning, in all orders
SELECT is((SELECT count(*) FROM generate_series(1, 70) n, generate_series(1, 70) m
  WHERE bson_build(repeat('x', n), n, repeat('x', m) || 'y', m, 'end', 0) ->> repeat('x', n) IS DISTINCT FROM n::text
     OR bson_build(repeat('x', n), n, repeat('x', m) || 'y', m, 'end', 0) ->> (repeat('x', m) || 'y') IS DISTINCT FROM m::text
     OR bson_build(repeat('x', n), n, repeat('x', m) || 'y', m, 'end', 0) ? (repeat('x', n) || 'z')
     OR bson_build(repeat('x', n), n) ->> repeat('x', m) IS DISTINCT FROM CASE WHEN n = m THEN n::text END), 0::bigint,
  'names of all lengths up to 70');
-- every type before the field, and the field at the very end
SELECT is((SELECT count(*) FROM (VALUES ('1.5'), ('"s"'), ('{"a": {"b": []}}'), ('[[]]'), ('{"$binary": {"base64": "AQI=", "subType": "00"}}'),
    ('{"$binary": {"base64": "AQI=", "subType": "02"}}'), ('{"$undefined": true}'), ('{"$oid": "507f1f77bcf86cd799439011"}'), ('true'),
    ('{"$date": 5}'), ('null'), ('{"$regularExpression": {"pattern": "a", "options": "i"}}'),
    ('{"$dbPointer": {"$ref": "r", "$id": {"$oid": "507f1f77bcf86cd799439011"}}}'), ('{"$code": "x"}'), ('{"$symbol": "y"}'),
    ('{"$code": "x", "$scope": {"z": 1}}'), ('7'), ('{"$timestamp": {"t": 1, "i": 2}}'), ('{"$numberLong": "9"}'),
    ('{"$numberDecimal": "1"}'), ('{"$minKey": 1}'), ('{"$maxKey": 1}')) AS v (v),
    LATERAL (SELECT ('{"first": ' || v || ', "x": {"y": ' || v || '}, "a": [1, ' || v || ', 3]}')::bson AS doc) d
  WHERE doc ->> 'x' IS NULL OR (doc -> 'x.y')::text <> (doc -> 'first')::text OR doc ->> 'a.2' <> '3' OR (doc -> 'a.1')::text <> (doc -> 'first')::text
     OR doc ? 'y' OR (doc -> 'a' -> -2)::text <> (doc -> 'first')::text), 0::bigint, 'values of all 21 types and the old binary are skipped and found');

-- doubles: hundredths, their neighbours, and whatever else, against PostgreSQL's own text
SELECT setseed(0.125) \g /dev/null
SELECT is((SELECT count(*) FROM (SELECT unnest(ARRAY[i / 100.0::float8, -i / 10.0::float8, i::float8, i / 1000.0::float8, random() * 10 ^ (random() * 40 - 20),
    round((random() * 1e15)::numeric) / 100.0::float8, 0.1 + 0.2, 99999999999999.99, 1e12, -1e12, 999999999999.99, '-0', 'NaN', '-Infinity', 5e-324]::float8[]) v
    FROM generate_series(0, 2000) i) s WHERE bson_build('v', v) ->> 'v' IS DISTINCT FROM v::text), 0::bigint, 'seed 0.125: doubles are shown as float8 shows them');

-- paths that come from a column, and a plan that is run again with another path
CREATE TABLE path (p text);
INSERT INTO path VALUES ('a'), ('b'), ('c.d'), ('a'), ('none');
SELECT results_eq($$SELECT '{a: 1, b: 2, c: {d: 3}}'::bson ->> p FROM path$$, ARRAY['1', '2', '3', '1', NULL], 'the path changes from row to row');
SELECT results_eq($$SELECT '{a: 1, b: 2, c: {d: 3}}'::bson #>> string_to_array(p, '.') FROM path$$, ARRAY['1', '2', '3', '1', NULL], 'as an array too');
SELECT results_eq($$SELECT '{a: 1, b: 2, c: {d: 3}}'::bson ?| ARRAY[p, 'x'] FROM path$$, ARRAY[true, true, true, true, false], 'and in a set of paths');
CREATE FUNCTION read(p text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN '{a: 1, b: 2}'::bson ->> p; END $$;
SELECT is((SELECT string_agg(read(p), ',') FROM unnest('{a,b,a}'::text[]) p), '1,2,1', 'a function whose argument changes');

-- ---------------------------------------------------------------- storage

-- The field x moves over the places where slices end: a chunk of a value out of line (1,996 bytes), what surely comes out of
-- a compressed chunk (about 1,770 and 1,960 bytes), and what is decompressed of a value in line (1,024 bytes).
CREATE FUNCTION noise(bytes int, seed int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT left(string_agg(encode(sha512(convert_to(seed || ' ' || i, 'UTF8')), 'base64'), ''), bytes) FROM generate_series(1, bytes / 88 + 1) i $$;
CREATE FUNCTION sample(n int, tail text) RETURNS bson LANGUAGE sql IMMUTABLE AS $$
  SELECT bson_build('_id', n, 'flag', true, 'run', repeat('r', 300), 'pad', noise(n, 1), 'x', bson_build('y', 'needle ' || n, 'z', ARRAY[n, n + 1, n + 2], 'd', n::numeric),
    'array', ARRAY['one', 'two', repeat('three', 20)], 'tail', tail, 'last', n) $$;
CREATE TABLE stored (how text, n int, doc bson, value bson_value);
CREATE TABLE stored_external (LIKE stored);
ALTER TABLE stored_external ALTER doc SET STORAGE EXTERNAL, ALTER value SET STORAGE EXTERNAL;
CREATE TABLE stored_pglz (LIKE stored);
ALTER TABLE stored_pglz ALTER doc SET COMPRESSION pglz, ALTER value SET COMPRESSION pglz;
CREATE TABLE stored_lz4 (LIKE stored);
ALTER TABLE stored_lz4 ALTER doc SET COMPRESSION lz4, ALTER value SET COMPRESSION lz4;
INSERT INTO stored_external SELECT 'external', n, d, (bson_build('v', d) -> 'v') FROM generate_series(1300, 1700) n, sample(n, repeat('long ', 200)) d;
INSERT INTO stored_external SELECT 'one chunk and less', n, d, (bson_build('v', d) -> 'v') FROM generate_series(1, 1400, 100) n, sample(n, 't') d;
INSERT INTO stored_pglz SELECT 'pglz', n, d, (bson_build('v', d) -> 'v') FROM generate_series(1200, 1700) n, sample(n, noise(1000, 2) || repeat('long ', 2000)) d;
INSERT INTO stored_lz4 SELECT 'lz4', n, d, (bson_build('v', d) -> 'v') FROM generate_series(1200, 1700) n, sample(n, noise(1000, 2) || repeat('long ', 2000)) d;
INSERT INTO stored_pglz SELECT 'pglz in line', n, d, NULL FROM generate_series(480, 780) n, sample(n, repeat('long ', 2000)) d;
INSERT INTO stored_lz4 SELECT 'lz4 in line', n, d, NULL FROM generate_series(480, 780) n, sample(n, repeat('long ', 2000)) d;
-- runs so long that their lengths fill the first chunk
INSERT INTO stored_lz4 SELECT 'lz4 runs', n, bson_build('a', repeat('a', n * 1000)) || sample(10, noise(n, 3)) || bson_build('noise', noise(n * 1000, 4), 'z', n), NULL FROM generate_series(500, 900, 100) n;
INSERT INTO stored_pglz SELECT 'pglz runs', n, bson_build('a', repeat('a', n * 1000)) || sample(10, noise(n, 3)) || bson_build('noise', noise(n * 1000, 4), 'z', n), NULL FROM generate_series(500, 900, 100) n;
CREATE VIEW everything AS SELECT * FROM stored_external UNION ALL SELECT * FROM stored_pglz UNION ALL SELECT * FROM stored_lz4;
CREATE TABLE paths AS SELECT p FROM unnest('{_id,flag,pad,x,x.y,x.z,x.z.1,x.z.-1,x.z.3,x.d,x.none,array,array.2,array.-3,tail,last,none,noise,z,a}'::text[]) p;

SELECT is((SELECT count(*) FROM stored_external WHERE pg_column_compression(doc) IS NOT NULL), 0::bigint, 'external means not compressed');
SELECT is((SELECT count(*) FROM stored_pglz WHERE pg_column_compression(doc) IS DISTINCT FROM 'pglz'), 0::bigint, 'pglz is pglz');
SELECT is((SELECT count(*) FROM stored_lz4 WHERE pg_column_compression(doc) IS DISTINCT FROM 'lz4'), 0::bigint, 'lz4 is lz4');
SELECT is((SELECT count(*) FROM everything WHERE how LIKE '% in line' AND pg_column_size(doc) > 2000), 0::bigint, 'in line is in line');
SELECT is((SELECT count(*) FROM everything WHERE how IN ('external', 'pglz', 'lz4') AND pg_column_size(doc) < 2000), 0::bigint, 'the others are out of line');

-- What the stored document says and what a copy in memory says. The copy is made once a row.
SELECT is((SELECT count(*) FROM (SELECT doc, p, doc::bytea::bson AS copy FROM everything, paths OFFSET 0) s
  WHERE (doc -> p)::text IS DISTINCT FROM (copy -> p)::text), 0::bigint, '-> finds the same');
SELECT is((SELECT count(*) FROM (SELECT doc, p, doc::bytea::bson AS copy FROM everything, paths OFFSET 0) s
  WHERE doc ->> p IS DISTINCT FROM copy ->> p), 0::bigint, '->> finds the same');
SELECT is((SELECT count(*) FROM (SELECT doc, p, doc::bytea::bson AS copy FROM everything, paths OFFSET 0) s
  WHERE (doc ? p) IS DISTINCT FROM (copy ? p) OR bson_typeof(doc, p) IS DISTINCT FROM bson_typeof(copy, p)
     OR doc #>> string_to_array(p, '.') IS DISTINCT FROM copy ->> p), 0::bigint, '?, bson_typeof and #>> find the same');
SELECT is((SELECT count(*) FROM (SELECT value, p, (value::bson)::bytea::bson AS copy FROM everything, paths WHERE value IS NOT NULL OFFSET 0) s
  WHERE value ->> p IS DISTINCT FROM copy ->> p OR (value ? p) IS DISTINCT FROM (copy ? p)), 0::bigint, 'and so do stored values');
SELECT is((SELECT count(*) FROM everything WHERE bson_size(doc) <> octet_length(doc::bytea) OR bson_typeof(value) <> 'object'
  OR bson_size(value) <> bson_size(doc)), 0::bigint, 'sizes and types too');
SELECT is((SELECT count(*) FROM everything WHERE doc['x']['z'][1] ->> '{}' IS NOT NULL OR (doc['x']['z'][1])::text IS DISTINCT FROM (doc -> 'x.z.1')::text),
  0::bigint, 'subscripts find what paths find');
SELECT is((SELECT count(*) FROM everything, LATERAL (SELECT bson_build(p, doc -> p) AS part, bson_build(p, 'other') AS other FROM paths WHERE p !~ '[.]' AND doc ? p OFFSET 0) x
  WHERE NOT doc @> part OR NOT part <@ doc OR doc @> other OR other <@ doc), 0::bigint, 'they contain their fields and no others');
SELECT is((SELECT count(*) FROM everything WHERE NOT doc @> '{}' OR doc @> '{none: null}' OR doc @> bson_build('x', bson_build('y', 'needle ' || n, 'none', 1))
  OR how <> 'pglz runs' AND how <> 'lz4 runs' AND NOT doc @> bson_build('last', n, 'x', bson_build('y', 'needle ' || n))), 0::bigint, 'and several at once');
-- arrays of their own
CREATE TABLE lists (v bson_value);
ALTER TABLE lists ALTER v SET STORAGE EXTERNAL;
INSERT INTO lists SELECT to_bson(ARRAY(SELECT i FROM generate_series(1, 3000) i));
SELECT is((SELECT count(*) FROM lists, generate_series(-3001, 3000) i WHERE v ->> i IS DISTINCT FROM
  CASE WHEN i BETWEEN 0 AND 2999 THEN i + 1 WHEN i BETWEEN -3000 AND -1 THEN 3001 + i END::text), 0::bigint, 'every element of a stored array');

-- ---------------------------------------------------------------- bytes that are no document

-- byteasend returns its argument as it is, so this makes a bson of anything.
CREATE FUNCTION unchecked(bytea) RETURNS bson LANGUAGE internal IMMUTABLE STRICT AS 'byteasend';
SELECT throws_ok($$SELECT unchecked('\x0500000001') -> 'a'$$, 'XX001', NULL, 'no end');
SELECT throws_ok($$SELECT unchecked('\x0700000000') -> 'a'$$, 'XX001', NULL, 'a wrong length');
SELECT throws_ok($$SELECT unchecked('\x') -> 'a'$$, 'XX001', NULL, 'nothing at all');
SELECT throws_ok($$SELECT unchecked('\x0b000000026100ffffff7f00') -> 'a'$$, 'XX001', NULL, 'a string longer than its document');
SELECT throws_ok($$SELECT unchecked('\x0b000000026100ffffffff00') -> 'b'$$, 'XX001', NULL, 'a string of negative length, skipped');
SELECT throws_ok($$SELECT unchecked('\x0b0000007e61000000000000') -> 'b'$$, 'XX001', NULL, 'a type that does not exist');

-- A thousand documents with some bytes changed: an answer or an error, and nothing else.
CREATE FUNCTION mutate(seed float8, OUT answers int, OUT corrupt int, OUT others int) LANGUAGE plpgsql AS $$
DECLARE
  good bytea := '{_id: 1, name: "Ada", address: {city: "London", zip: ["N1", "N2", {a: 1}]}, n: [1, 2.5, NumberLong(3)], b: BinData(0, "AQID"), r: /a/i, last: true}'::bson::bytea;
  bad bytea; p text; ignored text;
BEGIN
  answers := 0; corrupt := 0; others := 0;
  PERFORM setseed(seed);
  FOR i IN 1..1000 LOOP
    bad := good;
    FOR j IN 0..(random() * 2)::int LOOP
      bad := set_byte(bad, (random() * (length(bad) - 1))::int, (random() * 255)::int);
    END LOOP;
    IF random() < 0.2 THEN bad := substr(bad, 1, (random() * length(bad))::int); END IF;
    FOREACH p IN ARRAY '{_id,name,address.city,address.zip.2.a,n.-1,b,r,last,none}'::text[] LOOP
      BEGIN
        ignored := bson_typeof(unchecked(bad) -> p);
        ignored := (unchecked(bad) ? p)::text;
        answers := answers + 1;
      EXCEPTION WHEN data_corrupted THEN corrupt := corrupt + 1; WHEN OTHERS THEN others := others + 1;
      END;
    END LOOP;
  END LOOP;
END $$;
SELECT ok(answers > 1000 AND corrupt > 1000 AND others = 0, format('seed 0.5: %s answers, %s errors, %s others', answers, corrupt, others)) FROM mutate(0.5);

-- An empty regular expression has two bytes, fewer than a length: what ends with one can be searched.
SELECT is(bson '{r: {"$regularExpression": {"pattern": "", "options": ""}}}' -> 'a', NULL, 'beyond an empty regular expression');
SELECT is(bson_set(bson '{a: {"a name with more than sixteen bytes": {"$regularExpression": {"pattern": "", "options": ""}}}}', 'a.b', 1)::text,
  '{"a": {"a name with more than sixteen bytes": {"$regularExpression": {"pattern": "", "options": ""}}, "b": 1}}', 'and set behind it');

SELECT * FROM finish();
ROLLBACK;
