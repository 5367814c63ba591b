-- Keys of the GIN operator class bson_ops: the bytes that docs/formats.md describes, and the order that ranges rest on.
-- The random numbers repeat; to try others: PGOPTIONS='-c index.seed=0.5 -c index.rounds=50'.
BEGIN;
SELECT plan(126);
SET client_min_messages = warning;
SET timezone = 'UTC';
SET bytea_output = hex;

SELECT has_function('bson_index_keys', ARRAY['bson', 'text', 'text']);
SELECT volatility_is('bson_index_keys', ARRAY['bson', 'text', 'text'], 'immutable');
SELECT isnt_strict('bson_index_keys', ARRAY['bson', 'text', 'text']);
SELECT is_empty($$SELECT * FROM bson_index_keys(NULL)$$, 'null has no keys');
SELECT is_empty($$SELECT * FROM bson_index_keys('{}')$$, 'nor has the empty document');

-- Bytes of values
SELECT is((SELECT string_agg(class || ' ' || encode(value, 'hex'), ',') FROM bson_index_keys(bson_build('v', v))), c || ' ' || h, textin(docpatterns.bson_value_out(v)))
FROM (VALUES
  ('{"$minKey": 1}'::bson_value, 'minKey', ''),
  ('{"$undefined": true}', 'null', ''),
  ('null', 'null', ''),
  -- numbers: NaN; double beyond 2^22; three bytes; between -1 and 1; a fraction behind the whole number below
  ('{"$numberDouble": "NaN"}', 'number', ''),
  ('{"$numberDecimal": "NaN"}', 'number', ''),
  ('{"$numberDouble": "-Infinity"}', 'number', '0010'),
  ('-4194305', 'number', '3eafffffc0'),
  ('-4194304', 'number', '40'),
  ('-4194303.5', 'number', '40000080'),
  ('-1', 'number', '7fffff'),
  ('-0.5', 'number', '7fffff4020'),
  ('{"$numberDouble": "-0.0"}', 'number', '80'),
  ('0', 'number', '80'),
  ('{"$numberDouble": "5e-324"}', 'number', '8000008000000000000001'),
  ('0.1', 'number', '800000bfb999999999999a'),
  ('{"$numberDecimal": "0.1"}', 'number', '800000bfb999999999999a'),
  ('1', 'number', '800001'),
  ('{"$numberLong": "1"}', 'number', '800001'),
  ('{"$numberDouble": "1.0"}', 'number', '800001'),
  ('{"$numberDecimal": "1.00"}', 'number', '800001'),
  ('1.5', 'number', '80000180'),
  ('-1.25', 'number', '7ffffec0'),
  ('100.1', 'number', '800064199999999998'),
  ('4194303', 'number', 'bfffff'),
  ('4194303.75', 'number', 'bfffffc0'),
  ('4194304', 'number', 'c150'),
  ('{"$numberLong": "9007199254740993"}', 'number', 'c340'),
  ('{"$numberLong": "9223372036854775807"}', 'number', 'c3e0'),
  ('{"$numberDecimal": "1E+6000"}', 'number', 'fff0'),
  ('{"$numberDouble": "Infinity"}', 'number', 'fff0'),
  -- strings: up to 19 bytes whole, else 15 and a hash
  ('""', 'string', ''),
  ('"abc"', 'string', '616263'),
  ('{"$symbol": "abc"}', 'string', '616263'),
  ('"a\u0000b"', 'string', '610062'),
  ('"abcdefghijklmnopqrs"', 'string', '6162636465666768696a6b6c6d6e6f70717273'),
  ('{}', 'object', ''),
  ('[]', 'array', ''),
  -- binary: length, subtype, five bytes, hash
  ('{"$binary": {"base64": "", "subType": "80"}}', 'binData', '0080'),
  ('{"$binary": {"base64": "AQIDBAU=", "subType": "00"}}', 'binData', '05000102030405'),
  ('{"$oid": "0102030405060708090a0b0c"}', 'objectId', '01020304060708090a0b0c'),
  ('false', 'bool', ''),
  ('true', 'bool', '01'),
  -- dates: six bytes within 127 * 2^40 milliseconds, else nine
  ('{"$date": {"$numberLong": "-9223372036854775808"}}', 'date', ''),
  ('{"$date": {"$numberLong": "-139637976727553"}}', 'date', '007fff80ffffffffff'),
  ('{"$date": {"$numberLong": "-139637976727552"}}', 'date', '01'),
  ('{"$date": {"$numberLong": "-1"}}', 'date', '7fffffffffff'),
  ('{"$date": {"$numberLong": "0"}}', 'date', '80'),
  ('{"$date": {"$numberLong": "1705276800000"}}', 'date', '818d0a6afc'),
  ('{"$date": {"$numberLong": "139637976727551"}}', 'date', 'feffffffffff'),
  ('{"$date": {"$numberLong": "139637976727552"}}', 'date', 'ff80007f'),
  ('{"$date": {"$numberLong": "9223372036854775807"}}', 'date', 'ffffffffffffffffff'),
  ('{"$timestamp": {"t": 1, "i": 0}}', 'timestamp', '00000001'),
  ('{"$timestamp": {"t": 1, "i": 258}}', 'timestamp', '0000000100000102'),
  ('{"$regularExpression": {"pattern": "ab", "options": "i"}}', 'regex', '61620069'),
  ('{"$code": "ab"}', 'javascript', '006162'),
  ('{"$maxKey": 1}', 'maxKey', '')) x (v, c, h);

-- The hash of a value, written again from its description
CREATE FUNCTION pg_temp.mul64(a numeric, b numeric) RETURNS numeric LANGUAGE sql AS $$ SELECT mod(a * b, 18446744073709551616) $$;
CREATE FUNCTION pg_temp.xor64(a numeric, b numeric) RETURNS numeric LANGUAGE sql AS $$
  SELECT (ah # bh) * 4294967296::numeric + (al # bl)
  FROM (SELECT div(a, 4294967296)::int8, mod(a, 4294967296)::int8, div(b, 4294967296)::int8, mod(b, 4294967296)::int8) x (ah, al, bh, bl) $$;
CREATE FUNCTION pg_temp.hash64(bytes bytea, seed numeric) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
  h numeric := seed;
  block numeric;
BEGIN
  FOR b IN 0 .. length(bytes) / 8 LOOP
    block := 0;
    FOR i IN 0 .. least(7, length(bytes) - b * 8 - 1) LOOP
      block := block + get_byte(bytes, b * 8 + i) * 256::numeric ^ i;
    END LOOP;
    h := pg_temp.mul64(pg_temp.xor64(h, trunc(block)), 11507291218515648293);
    h := pg_temp.xor64(h, div(h, 4294967296));
  END LOOP;
  RETURN h;
END $$;
CREATE FUNCTION pg_temp.hash32(bytes bytea) RETURNS text LANGUAGE sql AS $$
  SELECT lpad(to_hex(div(pg_temp.mul64(pg_temp.hash64(bytes, pg_temp.xor64(11400714819323198485, length(bytes))), 11507291218515648293), 4294967296)::int8), 8, '0') $$;
CREATE FUNCTION pg_temp.state(VARIADIC names text[]) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
  h numeric := 11400714819323198485;
BEGIN
  FOR i IN 1 .. cardinality(names) LOOP h := pg_temp.hash64(convert_to(names[i], 'UTF8'), h); END LOOP;
  RETURN h;
END $$;
CREATE FUNCTION pg_temp.head(state numeric, class int, escape int8 DEFAULT 0) RETURNS text LANGUAGE sql AS $$
  SELECT lpad(to_hex(div(pg_temp.mul64(state, 15485907386658061715), 4294967296)::int8 / 16 * 16 | class | escape), 8, '0') $$;

SELECT is((SELECT encode(value, 'hex') FROM bson_index_keys('{v: "abcdefghijklmnopqrst"}')),
          encode('abcdefghijklmno', 'hex') || pg_temp.hash32('abcdefghijklmnopqrst'), 'a string of twenty bytes');
SELECT is((SELECT encode(value, 'hex') FROM bson_index_keys(bson_build('v', repeat('é', 1000)))),
          encode(substring(convert_to(repeat('é', 8), 'UTF8') FROM 1 FOR 15), 'hex') || pg_temp.hash32(convert_to(repeat('é', 1000), 'UTF8')), 'a long string');
SELECT is((SELECT encode(value, 'hex') FROM bson_index_keys('{v: {"$binary": {"base64": "AQIDBAUG", "subType": "05"}}}')),
          '06050102030405' || pg_temp.hash32('\x010203040506'), 'a binary of six bytes');
SELECT is((SELECT encode(value, 'hex') FROM bson_index_keys(bson_build('v', repeat('x', 300)::bytea))),
          'ff00' || encode('xxxxx', 'hex') || pg_temp.hash32(repeat('x', 300)::bytea), 'a long binary');
SELECT is((SELECT encode(value, 'hex') FROM bson_index_keys('{v: {"$regularExpression": {"pattern": "abcdefghijklmnopq", "options": "im"}}}')),
          encode('abcdefghijklmno', 'hex') || pg_temp.hash32('abcdefghijklmnopq\000im'), 'a long pattern');
SELECT is((SELECT encode(value, 'hex') FROM bson_index_keys('{v: {"$code": "abcdefghijklmnopqrs"}}')),
          '00' || encode('abcdefghijklmn', 'hex') || pg_temp.hash32('abcdefghijklmnopqrs'), 'code of nineteen bytes');
SELECT is((SELECT encode(value, 'hex') FROM bson_index_keys('{v: {"$code": "a", "$scope": {"x": 1}}}')),
          (SELECT encode(value, 'hex') FROM bson_index_keys('{v: {"$code": "a", "$scope": {"x": 1.0}}}')), 'equal code with scope has the same key');
SELECT is((SELECT length(value) FROM bson_index_keys('{v: {"$dbPointer": {"$ref": "b", "$id": {"$oid": "000000000000000000000001"}}}}')), 4, 'a pointer has four bytes');

-- Heads
SELECT is((SELECT encode(key, 'hex') FROM bson_index_keys('{v: 1}')), pg_temp.head(pg_temp.state('v'), 3) || '800001', 'the head of a path');
SELECT is((SELECT encode(key, 'hex') FROM bson_index_keys('{"a name of several blocks": null}')), pg_temp.head(pg_temp.state('a name of several blocks'), 2), 'of a long name');
SELECT is((SELECT encode(key, 'hex') FROM bson_index_keys('{"eight888": null}')), pg_temp.head(pg_temp.state('eight888'), 2), 'of a name of eight bytes');
SELECT is((SELECT encode(key, 'hex') FROM bson_index_keys('{"": null}')), pg_temp.head(pg_temp.state(''), 2), 'of an empty name');
SELECT is((SELECT encode(key, 'hex') FROM bson_index_keys('{a: {b: true}}') WHERE class = 'bool'), pg_temp.head(pg_temp.state('a', 'b'), 9) || '01', 'of a path of two parts');
SELECT isnt((SELECT key FROM bson_index_keys('{a: {b: true}}') WHERE class = 'bool'), (SELECT key FROM bson_index_keys('{"a.b": true}')), 'a dot in a name does not separate');
SELECT isnt((SELECT key FROM bson_index_keys('{a: {bc: true}}') WHERE class = 'bool'), (SELECT key FROM bson_index_keys('{ab: {c: true}}') WHERE class = 'bool'), 'parts are separated');
SELECT is((SELECT key FROM bson_index_keys('{a: {"0": {"-17": {b: true}}}}') WHERE class = 'bool'), (SELECT key FROM bson_index_keys('{a: {b: true}}') WHERE class = 'bool'), 'names that are whole numbers are left out');
SELECT is((SELECT key FROM bson_index_keys('{a: [{b: true}]}') WHERE class = 'bool'), (SELECT key FROM bson_index_keys('{a: {b: true}}') WHERE class = 'bool'), 'and positions of arrays');
SELECT is((SELECT encode(key, 'hex') FROM bson_index_keys('{"0": null}')), pg_temp.head(pg_temp.state(VARIADIC '{}'), 2), 'a number at the top is no part at all');

-- What a document has
PREPARE keys(bson, text, text) AS SELECT path, class, encode(value, 'hex') FROM bson_index_keys($1, $2, $3) ORDER BY path COLLATE "C", class COLLATE "C", value;
SELECT results_eq($$EXECUTE keys('{a: {b: 1, c: {}, d: {e: 2}}}', NULL, NULL)$$,
  $$VALUES ('a', 'object', '01'), ('a.b', 'number', '800001'), ('a.c', 'object', ''), ('a.d', 'object', '01'), ('a.d.e', 'number', '800002')$$, 'documents have a key each, and what is in them');
SELECT results_eq($$EXECUTE keys('{a: [1, 1, [2, []], {}, {b: [5]}]}', NULL, NULL)$$,
  $$VALUES ('a', 'array', ''), ('a', 'array', '02'), ('a', 'number', '800001'), ('a', 'number', '800002'), ('a', 'object', ''), ('a.b', 'array', '01'), ('a.b', 'number', '800005')$$,
  'arrays have one by their size, and their elements; documents in them none unless they are empty');
SELECT results_eq($$EXECUTE keys('{"a.b": {"c,d": 1}, "q\"": {" x": 2}, "0": {"1": 3}}', NULL, NULL)$$,
  $$VALUES ('', 'number', '800003'), ('', 'object', '01'), ('"a.b"', 'object', '01'), ('"a.b"."c,d"', 'number', '800001'), ('"q"""', 'object', '01'), ('"q"""." x"', 'number', '800002')$$, 'paths are written as they are read');

-- Named paths
SELECT results_eq($$EXECUTE keys('{a: {b: 1, c: {d: 2}}, e: 3, f: 4}', 'a.c, f', NULL)$$,
  $$VALUES ('a.c', 'object', '01'), ('a.c.d', 'number', '800002'), ('f', 'number', '800004')$$, 'named paths and what is below them');
SELECT results_eq($$EXECUTE keys('{a: [{b: 1}, {c: 1}]}', 'a.b', NULL)$$,
  $$VALUES ('a', 'array', '02'), ('a.b', 'missing', ''), ('a.b', 'number', '800001')$$, 'arrays on the way, and a branch without the path');
SELECT results_eq($$EXECUTE keys('{a: 5}', 'a.b, c', NULL)$$, $$VALUES ('a.b', 'missing', ''), ('c', 'missing', '')$$, 'a document without the paths');
SELECT results_eq($$EXECUTE keys('{a: []}', 'a.b', NULL)$$, $$VALUES ('a', 'array', ''), ('a.b', 'missing', '')$$, 'an empty array on the way');
SELECT results_eq($$EXECUTE keys('{a: [[{b: 1}]]}', 'a.b', NULL)$$, $$VALUES ('a', 'array', '01'), ('a.b', 'missing', ''), ('a.b', 'number', '800001')$$, 'and one without documents');
SELECT results_eq($$EXECUTE keys('{a: [[5], {b: 1}]}', 'a.b', NULL)$$, $$VALUES ('a', 'array', '01'), ('a', 'array', '02'), ('a.b', 'number', '800001')$$, 'but not one with others beside them');
SELECT results_eq($$EXECUTE keys('{a: {"0": {b: 1}}}', 'a.b', NULL)$$, $$VALUES ('a.b', 'missing', ''), ('a.b', 'number', '800001')$$, 'a number as a name on the way is passed, and is missing too');
SELECT is((SELECT string_agg(path || ' ' || encode(key, 'hex'), ', ' ORDER BY path) FROM bson_index_keys('{a: 1, b: {c: 1}}', 'a, b')),
  'a 03800001, b 1501, b.c ' || pg_temp.head(pg_temp.state('b', 'c'), 3, x'f0000000'::int8) || '800001', 'heads of named paths are a byte, those below them begin with 15');
SELECT is((SELECT string_agg(left(encode(key, 'hex'), 1), '' ORDER BY key) FROM bson_index_keys('{}', (SELECT string_agg('p' || i, ',') FROM generate_series(0, 16) i))),
  '0123456789abcdeff', 'fifteen of them');
SELECT is((SELECT count(*)::int FROM bson_index_keys('{a: 1}', 'a, a')), 1, 'a path that is named twice is one');

-- Pairs
SELECT results_eq($$EXECUTE keys('{r: [{l: "USA", d: 1}, {l: "UK"}, {d: 2}, 5, [{l: 3, d: {}}]], x: 1}', NULL, 'r(l,d)')$$,
  $$VALUES ('r(l,d) = "UK"', 'missing', ''), ('r(l,d) = "USA"', 'number', '800001'), ('r(l,d) = 3', 'object', '')$$, 'a key for each element with a first part');
SELECT results_eq($$EXECUTE keys('{r: {l: "USA", d: 1}}', NULL, 'r(l,d)')$$, $$VALUES ('r(l,d) = "USA"', 'number', '800001')$$, 'or for the document itself');
SELECT results_eq($$EXECUTE keys('{a: [{r: {x: {l: [1, 2]}, d: [[7], 8]}}]}', NULL, 'a.r (x.l , d)')$$,
  $$SELECT 'a.r(x.l,d) = ' || f, c, h FROM (VALUES ('1'), ('2'), ('[1, 2]')) f (f), (VALUES ('array', '01'), ('array', '02'), ('number', '800007'), ('number', '800008')) s (c, h) ORDER BY f COLLATE "C", c, h$$,
  'arrays in an element: each value of the first part with each of the second, and the arrays');
SELECT results_eq($$EXECUTE keys('{r: [{l: 1, d: [{e: 1}, {f: 1}]}]}', NULL, 'r(l,d.e)')$$,
  $$VALUES ('r(l,d.e) = 1', 'array', '02'), ('r(l,d.e) = 1', 'missing', ''), ('r(l,d.e) = 1', 'number', '800001')$$, 'an array on the way to a part');
SELECT results_eq($$EXECUTE keys('{r: [{l: 1, d: 2}], q: 5}', 'q', 'r(l,d), r(d,l)')$$,
  $$VALUES ('q', 'number', '800005'), ('r(d,l) = 2', 'number', '800001'), ('r(l,d) = 1', 'number', '800002')$$, 'paths and several pairs together');
SELECT results_eq(format($$SELECT path, class FROM bson_index_keys(%L, NULL, 'r(l,d)')$$, bson_build('r', bson_array(bson_build('l', ARRAY(SELECT generate_series(1, 30)), 'd', ARRAY(SELECT generate_series(1, 30)))))),
  $$VALUES ('r(l,d)', 'missing')$$, 'too many combinations become one key');
SELECT is((SELECT key FROM bson_index_keys('{r: [{l: 1, d: 2}]}', NULL, 'r(l,d)')), (SELECT key FROM bson_index_keys('{r: [{l: 1.0, d: NumberDecimal("2.0")}]}', NULL, 'r(l,d)')), 'equal numbers are one key, in both parts');

-- Options
SELECT throws_ok(format($$SELECT * FROM bson_index_keys('{}', %L, %L)$$, paths, pairs), '22023', NULL, 'refused: ' || coalesce(paths, pairs))
FROM (VALUES ('', NULL), ('a,', NULL), ('a..b', NULL), ('"a', NULL), ('a.0', NULL), (NULL, ''), (NULL, 'r'), (NULL, 'r(a)'), (NULL, 'r(a,b,c)'),
             (NULL, 'r(a,b'), (NULL, '(a,b)'), (NULL, 'r(a,b) s(c,d)'), (NULL, 'r(a,b),'), (NULL, 'r.0(a,b)'), (NULL, 'r(a,b.1)')) x (paths, pairs);
SELECT is((SELECT path FROM bson_index_keys('{"r(": [{"a)": 1, "b,": 2}]}', NULL, '"r("("a)", "b,")')), 'r((a),"b,") = 1', 'names with parentheses stand in quotes');

-- Order: of random values of a class, those that are not greater have keys that are not greater, as far as the order goes:
-- strings and patterns up to fifteen bytes, object ids by their seconds, binaries up to seven bytes (one, if they are long).
SELECT diag('seed ' || coalesce(current_setting('index.seed', true), '0.1') || ', rounds ' || coalesce(current_setting('index.rounds', true), '1'));
SELECT setseed(coalesce(current_setting('index.seed', true), '0.1')::float8);
CREATE FUNCTION pg_temp.random_text(alphabet text, longest int) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(string_agg(substr(alphabet, 1 + floor(random() * length(alphabet))::int, 1), ''), '') FROM generate_series(1, floor(random() * longest)::int) $$;
CREATE TEMP TABLE random_values AS
  SELECT class, bson_value_in(textout(v)) AS v FROM generate_series(1, 150 * coalesce(current_setting('index.rounds', true), '1')::int) i, LATERAL (VALUES
    ('number', CASE i % 8
      WHEN 0 THEN format('{"$numberInt": "%s"}', floor((random() - 0.5) * 2 ^ (1 + floor(random() * 31)))::int8)
      WHEN 1 THEN format('{"$numberLong": "%s"}', floor((random() - 0.5) * 2 ^ (1 + floor(random() * 63)))::numeric)
      WHEN 2 THEN format('{"$numberDouble": "%s"}', (random() - 0.5) * 10.0 ^ floor((random() - 0.5) * 40))
      WHEN 3 THEN format('{"$numberDouble": "%s"}', (random() - 0.5) * 10.0 ^ floor((random() - 0.5) * 600))
      WHEN 4 THEN format('{"$numberDecimal": "%sE%s"}', floor((random() - 0.5) * 1e15)::numeric, floor((random() - 0.5) * 100)::int)
      WHEN 5 THEN format('{"$numberDecimal": "%s"}', round(((random() - 0.5) * 100)::numeric, 2))
      WHEN 6 THEN format('{"$numberDouble": "%s"}', floor((random() - 0.5) * 20) / 4 + (i % 3 - 1) * 4194304)
      ELSE format('{"$numberInt": "%s"}', floor((random() - 0.5) * 20) + (i % 3 - 1) * 4194304) END),
    ('string', to_json(pg_temp.random_text('ab', 24))::text),
    ('objectId', format('{"$oid": "%s%s"}', lpad(to_hex(floor(random() * 4)::int), 8, '0'), substr(md5(random()::text), 1, 16))),
    ('binData', format('{"$binary": {"base64": "%s", "subType": "%s"}}', translate(encode(convert_to(pg_temp.random_text('ab', CASE i % 3 WHEN 0 THEN 600 ELSE 9 END), 'UTF8'), 'base64'), E'\n', ''), (ARRAY['00', '80'])[1 + i % 2])),
    ('date', format('{"$date": {"$numberLong": "%s"}}', floor((random() - 0.5) * 2 ^ (1 + floor(random() * 63)))::numeric)),
    ('timestamp', format('{"$timestamp": {"t": %s, "i": %s}}', floor(random() * 3)::int, floor(random() * 2 ^ floor(random() * 32))::int8)),
    ('regex', format('{"$regularExpression": {"pattern": "%s", "options": ""}}', pg_temp.random_text('ab', 24))),
    ('javascript', format('{"$code": "%s"}', pg_temp.random_text('ab', 24)))) x (class, v);
CREATE TEMP TABLE random_keys AS
  SELECT r.class, v, value, CASE r.class
    WHEN 'string' THEN substring(value FROM 1 FOR 15) WHEN 'regex' THEN substring(value FROM 1 FOR 15) WHEN 'javascript' THEN substring(value FROM 1 FOR 15)
    WHEN 'objectId' THEN substring(value FROM 1 FOR 4)
    WHEN 'binData' THEN CASE WHEN get_byte(value, 0) = 255 THEN '\xff' ELSE substring(value FROM 1 FOR 7) END
    ELSE value END AS ordered
  FROM random_values r, bson_index_keys(bson_build('v', v)) k;
SELECT is((SELECT count(*)::int FROM random_keys a JOIN random_keys b USING (class) WHERE class = c AND (a.v <= b.v AND a.ordered > b.ordered OR a.v = b.v AND a.value <> b.value)), 0, c || ' keys are in order')
FROM (VALUES ('number'), ('string'), ('objectId'), ('binData'), ('date'), ('timestamp'), ('regex'), ('javascript')) x (c);
SELECT cmp_ok((SELECT count(*)::int FROM random_keys a JOIN random_keys b USING (class) WHERE a.v < b.v AND a.ordered < b.ordered), '>', 10000, 'most of them are told apart');

-- The order of keys as GIN asks for it, also of bytes that are none
SELECT is((SELECT count(*)::int FROM (SELECT decode(substr(md5(i::text), 1, 2 * (i % 7)) || repeat('00', i % 3) || substr(md5((i / 7)::text), 1, 2 * (i % 5)), 'hex') FROM generate_series(0, 250) i) a (x),
  (SELECT decode(substr(md5(i::text), 1, 2 * (i % 7)) || repeat('ab', (i % 3) * 12), 'hex') FROM generate_series(0, 250) i) b (y) WHERE sign(docpatterns.bson_gin_compare(x, y)) <> sign(byteacmp(x, y))), 0, 'keys compare as bytes do');
SELECT is(sign(docpatterns.bson_gin_compare(decode(repeat('ab', 200), 'hex'), decode(repeat('ab', 199) || 'ff', 'hex'))), -1::float8, 'however long they are');

SELECT * FROM finish();
ROLLBACK;
