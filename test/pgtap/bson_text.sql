-- The text and binary forms of bson and bson_value: signatures, every type in every form, every spelling, errors.
\set QUIET 1
SET client_min_messages = warning;
SET timezone = 'UTC';
BEGIN;
SELECT plan(345);

-- ---------------------------------------------------------------- signatures

SELECT has_function('bson_to_json', ARRAY['bson', 'text']);
SELECT has_function('bson_to_json', ARRAY['bson_value', 'text']);
SELECT has_function('bson_pretty', ARRAY['bson']);
SELECT has_function('bson_pretty', ARRAY['bson_value']);
SELECT has_function('bson_documents', ARRAY['bytea']);
SELECT has_function('bson_value_from_bytea', ARRAY['bytea']);
SELECT function_returns('bson_to_json', ARRAY['bson', 'text'], 'text');
SELECT function_returns('bson_pretty', ARRAY['bson'], 'text');
SELECT function_returns('bson_documents', ARRAY['bytea'], 'setof bson');
SELECT volatility_is('docpatterns', 'bson_in', ARRAY['cstring'], 'immutable');
SELECT volatility_is('bson_to_json', ARRAY['bson', 'text'], 'immutable');
SELECT volatility_is('bson_documents', ARRAY['bytea'], 'immutable');
SELECT is_strict('bson_to_json', ARRAY['bson', 'text']);
SELECT results_eq(
  $$SELECT castsource::regtype::text, casttarget::regtype::text, castcontext::text FROM pg_cast
    WHERE 'bytea'::regtype IN (castsource, casttarget) AND 'bson'::regtype IN (castsource, casttarget)
    ORDER BY 1, 2$$,
  $$VALUES ('bson', 'bytea', 'e'), ('bytea', 'bson', 'a')$$,
  'bytes are assigned to documents, documents cast to bytes');
CREATE TEMP TABLE assigned (doc bson);
INSERT INTO assigned VALUES ('{a: 1}'::bson::bytea);
SELECT is(doc, '{a: 1}', 'assigned') FROM assigned;
SELECT throws_ok($$INSERT INTO assigned VALUES ('\x0500000001'::bytea)$$, '22P03', NULL, 'after a check');

-- ---------------------------------------------------------------- every type in every form

-- A text that is cast to bson_value becomes a string; this reads it.
CREATE FUNCTION pg_temp.parsed(text) RETURNS bson_value LANGUAGE sql AS $$ SELECT bson_value_in(textout($1)) $$;

-- Type byte and value in hexadecimal, relaxed, canonical, shell.
CREATE TEMP TABLE form (what text, bytes text, relaxed text, canonical text, shell text);
INSERT INTO form VALUES
  ('double', '01000000000000f83f', '1.5', '{"$numberDouble": "1.5"}', '1.5'),
  ('double without fraction', '010000000000001440', '5.0', '{"$numberDouble": "5.0"}', '5.0'),
  ('double, negative zero', '010000000000000080', '-0.0', '{"$numberDouble": "-0.0"}', '-0.0'),
  ('double, large', '019c7500883ce4377e', '1e+300', '{"$numberDouble": "1E+300"}', '1e+300'),
  ('double, smallest', '010100000000000000', '5e-324', '{"$numberDouble": "5E-324"}', '5e-324'),
  ('double, infinite', '01000000000000f07f', '{"$numberDouble": "Infinity"}', '{"$numberDouble": "Infinity"}', 'Infinity'),
  ('double, minus infinite', '01000000000000f0ff', '{"$numberDouble": "-Infinity"}', '{"$numberDouble": "-Infinity"}', '-Infinity'),
  ('double, not a number', '01000000000000f87f', '{"$numberDouble": "NaN"}', '{"$numberDouble": "NaN"}', 'NaN'),
  ('double, another not a number', '01010000000000f8ff', '{"$numberDouble": "NaN(0xfff8000000000001)"}', '{"$numberDouble": "NaN"}', 'NumberDouble("NaN(0xfff8000000000001)")'),
  ('string', '02020000006100', '"a"', '"a"', '"a"'),
  ('string, empty', '020100000000', '""', '""', '""'),
  ('string with escapes', '0209000000610a225c0900011f00', '"a\n\"\\\t\u0000\u0001\u001f"', '"a\n\"\\\t\u0000\u0001\u001f"', '"a\n\"\\\t\u0000\u0001\u001f"'),
  ('string, four-byte character', '0205000000f09f988000', '"😀"', '"😀"', '"😀"'),
  ('document', '030c0000001061000500000000', '{"a": 5}', '{"a": {"$numberInt": "5"}}', '{a: 5}'),
  ('document, empty', '030500000000', '{}', '{}', '{}'),
  ('array', '04100000001030000100000008310001 00', '[1, true]', '[{"$numberInt": "1"}, true]', '[1, true]'),
  ('array, empty', '040500000000', '[]', '[]', '[]'),
  ('binary', '050300000000010203', '{"$binary": {"base64": "AQID", "subType": "00"}}', '{"$binary": {"base64": "AQID", "subType": "00"}}', 'BinData(0, "AQID")'),
  ('binary, empty', '050000000080', '{"$binary": {"base64": "", "subType": "80"}}', '{"$binary": {"base64": "", "subType": "80"}}', 'BinData(128, "")'),
  ('binary, old', '05060000000202000000ff00', '{"$binary": {"base64": "/wA=", "subType": "02"}}', '{"$binary": {"base64": "/wA=", "subType": "02"}}', 'BinData(2, "/wA=")'),
  ('uuid', '051000000004507f191e810c19729de860ea507f191e', '{"$binary": {"base64": "UH8ZHoEMGXKd6GDqUH8ZHg==", "subType": "04"}}', '{"$binary": {"base64": "UH8ZHoEMGXKd6GDqUH8ZHg==", "subType": "04"}}', 'UUID("507f191e-810c-1972-9de8-60ea507f191e")'),
  ('undefined', '06', '{"$undefined": true}', '{"$undefined": true}', 'undefined'),
  ('objectid', '07507f191e810c19729de860ea', '{"$oid": "507f191e810c19729de860ea"}', '{"$oid": "507f191e810c19729de860ea"}', 'ObjectId("507f191e810c19729de860ea")'),
  ('true', '0801', 'true', 'true', 'true'),
  ('false', '0800', 'false', 'false', 'false'),
  ('date', '09005e239d67010000', '{"$date": "2018-12-11T12:00:00Z"}', '{"$date": {"$numberLong": "1544529600000"}}', 'ISODate("2018-12-11T12:00:00Z")'),
  ('date with milliseconds', '09015e239d67010000', '{"$date": "2018-12-11T12:00:00.001Z"}', '{"$date": {"$numberLong": "1544529600001"}}', 'ISODate("2018-12-11T12:00:00.001Z")'),
  ('date before 1970', '09ffffffffffffffff', '{"$date": {"$numberLong": "-1"}}', '{"$date": {"$numberLong": "-1"}}', 'ISODate("1969-12-31T23:59:59.999Z")'),
  ('the last date of 9999', '09ffdb1fd277e60000', '{"$date": "9999-12-31T23:59:59.999Z"}', '{"$date": {"$numberLong": "253402300799999"}}', 'ISODate("9999-12-31T23:59:59.999Z")'),
  ('the first date of 10000', '0900dc1fd277e60000', '{"$date": {"$numberLong": "253402300800000"}}', '{"$date": {"$numberLong": "253402300800000"}}', 'ISODate("+010000-01-01T00:00:00Z")'),
  ('the last date before year 0', '09ff9ffb9075c7ffff', '{"$date": {"$numberLong": "-62167219200001"}}', '{"$date": {"$numberLong": "-62167219200001"}}', 'ISODate("-000001-12-31T23:59:59.999Z")'),
  ('the first date of all', '090000000000000080', '{"$date": {"$numberLong": "-9223372036854775808"}}', '{"$date": {"$numberLong": "-9223372036854775808"}}', 'ISODate("-292275055-05-16T16:47:04.192Z")'),
  ('the last date of all', '09ffffffffffffff7f', '{"$date": {"$numberLong": "9223372036854775807"}}', '{"$date": {"$numberLong": "9223372036854775807"}}', 'ISODate("+292278994-08-17T07:12:55.807Z")'),
  ('null', '0a', 'null', 'null', 'null'),
  ('regex', '0b5e61006900', '{"$regularExpression": {"pattern": "^a", "options": "i"}}', '{"$regularExpression": {"pattern": "^a", "options": "i"}}', '/^a/i'),
  ('regex, options out of order', '0b61006d6900', '{"$regularExpression": {"pattern": "a", "options": "mi"}}', '{"$regularExpression": {"pattern": "a", "options": "mi"}}', '{"$regularExpression": {"pattern": "a", "options": "mi"}}'),
  ('regex with a slash', '0b2f0000', '{"$regularExpression": {"pattern": "/", "options": ""}}', '{"$regularExpression": {"pattern": "/", "options": ""}}', 'RegExp("/", "")'),
  ('pointer', '0c020000006100507f191e810c19729de860ea', '{"$dbPointer": {"$ref": "a", "$id": {"$oid": "507f191e810c19729de860ea"}}}', '{"$dbPointer": {"$ref": "a", "$id": {"$oid": "507f191e810c19729de860ea"}}}', 'DBPointer("a", ObjectId("507f191e810c19729de860ea"))'),
  ('code', '0d020000007800', '{"$code": "x"}', '{"$code": "x"}', 'Code("x")'),
  ('symbol', '0e020000007800', '{"$symbol": "x"}', '{"$symbol": "x"}', 'Symbol("x")'),
  ('code with scope', '0f160000000200000078000c0000001061000500000000', '{"$code": "x", "$scope": {"a": 5}}', '{"$code": "x", "$scope": {"a": {"$numberInt": "5"}}}', 'Code("x", {a: 5})'),
  ('int32', '1005000000', '5', '{"$numberInt": "5"}', '5'),
  ('int32, least', '1000000080', '-2147483648', '{"$numberInt": "-2147483648"}', '-2147483648'),
  ('timestamp', '1102000000ffffffff', '{"$timestamp": {"t": 4294967295, "i": 2}}', '{"$timestamp": {"t": 4294967295, "i": 2}}', 'Timestamp({t: 4294967295, i: 2})'),
  ('int64 that is small', '120500000000000000', '{"$numberLong": "5"}', '{"$numberLong": "5"}', 'NumberLong("5")'),
  ('int64', '120000008000000000', '2147483648', '{"$numberLong": "2147483648"}', 'NumberLong("2147483648")'),
  ('int64, least', '120000000000000080', '-9223372036854775808', '{"$numberLong": "-9223372036854775808"}', 'NumberLong("-9223372036854775808")'),
  ('decimal', '13102700000000000000000000000 03c30', '{"$numberDecimal": "100.00"}', '{"$numberDecimal": "100.00"}', 'NumberDecimal("100.00")'),
  ('decimal, infinite', '130000000000000000000000000000 00f8', '{"$numberDecimal": "-Infinity"}', '{"$numberDecimal": "-Infinity"}', 'NumberDecimal("-Infinity")'),
  ('decimal, not a number with a payload', '13010000000000000000000000000 0007c', '{"$numberDecimal": "0x7c000000000000000000000000000001"}', '{"$numberDecimal": "0x7c000000000000000000000000000001"}', 'NumberDecimal("0x7c000000000000000000000000000001")'),
  ('maxkey', '7f', '{"$maxKey": 1}', '{"$maxKey": 1}', 'MaxKey()'),
  ('minkey', 'ff', '{"$minKey": 1}', '{"$minKey": 1}', 'MinKey()'),
  ('a document that looks like something else', '031100000002246f69640002000000350000', '{"$document": {"$oid": "5"}}', '{"$document": {"$oid": "5"}}', '{"$document": {$oid: "5"}}'),
  ('an array with names of its own', '040c0000001061000500000000', '{"$array": {"a": 5}}', '{"$array": {"a": {"$numberInt": "5"}}}', '{"$array": {a: 5}}');
UPDATE form SET bytes = replace(bytes, ' ', '');

SELECT is(bson_to_json(bson_value_from_bytea(decode(bytes, 'hex')), 'relaxed'), relaxed, what || ': relaxed') FROM form;
SELECT is(bson_to_json(bson_value_from_bytea(decode(bytes, 'hex')), 'canonical'), canonical, what || ': canonical') FROM form;
SELECT is(bson_to_json(bson_value_from_bytea(decode(bytes, 'hex')), 'shell'), shell, what || ': shell') FROM form;
SELECT is((SELECT count(DISTINCT left(bytes, 2)) FROM form), 21::bigint, 'that were all types');
SELECT is_empty(
  $$SELECT what FROM form WHERE bson_value_send(pg_temp.parsed(relaxed)) <> decode(bytes, 'hex')
      OR (bson_value_send(pg_temp.parsed(canonical)) <> decode(bytes, 'hex') AND what <> 'double, another not a number') OR bson_value_send(pg_temp.parsed(shell)) <> decode(bytes, 'hex')
      OR bson_value_send(pg_temp.parsed(bson_pretty(bson_value_from_bytea(decode(bytes, 'hex'))))) <> decode(bytes, 'hex')
      OR textin(docpatterns.bson_value_out(bson_value_from_bytea(decode(bytes, 'hex')))) <> relaxed$$,
  'each form is read back byte for byte, but for the canonical one, which has one NaN');
SELECT is(bson_to_json('{a: 1e-7, b: -1.5e7, c: 12345.0, d: 1e22}'::bson, 'canonical'),
  '{"a": {"$numberDouble": "1E-7"}, "b": {"$numberDouble": "-15000000.0"}, "c": {"$numberDouble": "12345.0"}, "d": {"$numberDouble": "1E+22"}}', 'doubles of the canonical form');
SELECT is(bson_to_json('{a: 1.0}'::bson), '{"a": 1.0}', 'relaxed is the default');
SELECT throws_ok($$SELECT bson_to_json('{}'::bson, 'Relaxed')$$, '22023', 'unknown text form "Relaxed"', 'there is no other form');
SELECT is(bson_pretty('{a: 1, b: {}, c: [], d: [1, {e: 2}], f: NumberLong(1)}'::bson),
  E'{\n  "a": 1,\n  "b": {},\n  "c": [],\n  "d": [\n    1,\n    {\n      "e": 2\n    }\n  ],\n  "f": {"$numberLong": "1"}\n}', 'bson_pretty');

-- ---------------------------------------------------------------- every spelling

-- Both spell the same bytes.
CREATE TEMP TABLE spelling (a text, b text);
INSERT INTO spelling VALUES
  ('ObjectId("507f191e810c19729de860ea")', '{"$oid": "507F191E810C19729DE860EA"}'),
  ('ObjectID(''507f191e810c19729de860ea'')', '{"$oid": "507f191e810c19729de860ea"}'),
  ('new ObjectId ( "507f191e810c19729de860ea" )', '{"$oid": "507f191e810c19729de860ea"}'),
  ('ISODate("2018-12-11T12:00:00.00Z")', '{"$date": "2018-12-11T12:00:00.000Z"}'),
  ('ISODATE("2018-12-11")', '{"$date": {"$numberLong": "1544486400000"}}'),
  ('new Date("2018-12-11T12:00")', '{"$date": 1544529600000}'),
  ('new Date(1544529600000)', '{"$date": "2018-12-11T12:00:00Z"}'),
  ('Date("2018-12-11 12:00:00")', '{"$date": "2018-12-11T12:00:00Z"}'),
  ('new ISODate("2018-12-11T13:30:00+0130")', '{"$date": "2018-12-11T12:00:00Z"}'),
  ('ISODate("2018-12-11T04:00:00-08:00")', '{"$date": "2018-12-11T12:00:00Z"}'),
  ('ISODate("20181211T120000Z")', '{"$date": "2018-12-11T12:00:00Z"}'),
  ('ISODate("2018-12-11T12:00:00.123456789Z")', '{"$date": "2018-12-11T12:00:00.123Z"}'),
  ('ISODate("2018-12-11T24:00:00Z")', '{"$date": "2018-12-12T00:00:00Z"}'),
  ('ISODate("+010000-01-01T00:00:00Z")', '{"$date": {"$numberLong": "253402300800000"}}'),
  ('ISODate("-000001-12-31T23:59:59.999Z")', '{"$date": {"$numberLong": "-62167219200001"}}'),
  ('ISODate("0000-01-01")', '{"$date": {"$numberLong": "-62167219200000"}}'),
  ('ISODate("2018-12")', '{"$date": "2018-12-01T00:00:00Z"}'),
  ('ISODate("2018")', '{"$date": "2018-01-01T00:00:00Z"}'),
  ('NumberInt("5")', '{"$numberInt": "5"}'), ('NumberInt(5)', '5'), ('Int32(-5)', '-5'), ('new Int32(5)', '5'),
  ('NumberLong("5")', '{"$numberLong": "5"}'), ('NumberLong(-5)', '{"$numberLong": "-5"}'), ('Long("9223372036854775807")', '9223372036854775807'),
  ('Long.fromString("5")', '{"$numberLong": "5"}'), ('NumberLong(5.0)', '{"$numberLong": "5"}'),
  ('NumberDouble(5)', '5.0'), ('Double("1.5")', '{"$numberDouble": "1.5"}'), ('Double("NaN")', 'NaN'),
  ('NumberDecimal("100.00")', '{"$numberDecimal": "100.00"}'), ('Decimal(100.00)', 'Decimal128("100.00")'),
  ('Decimal128( 1E+3 )', 'NumberDecimal("1E+3")'), ('NumberDecimal(-Infinity)', '{"$numberDecimal": "-Infinity"}'),
  ('UUID("507f191e-810c-1972-9de8-60ea507f191e")', '{"$uuid": "507F191E810C19729DE860EA507F191E"}'),
  ('BinData(4, "UH8ZHoEMGXKd6GDqUH8ZHg==")', 'UUID("507f191e810c19729de860ea507f191e")'),
  ('BinData(0, "_-8")', 'BinData(0, "/+8=")'),
  ('HexData(5, "00fF")', '{"$binary": {"base64": "AP8=", "subType": "5"}}'),
  ('MD5("507f191e810c19729de860ea507f191e")', '{"$binary": "UH8ZHoEMGXKd6GDqUH8ZHg==", "$type": "05"}'),
  ('{"$type": "05", "$binary": "AQID"}', '{"$binary": {"subType": "05", "base64": "AQID"}}'),
  ('Binary.createFromBase64("AQID", 5)', 'Binary(Buffer.from("010203", "hex"), 5)'),
  ('Binary.createFromHexString("010203")', 'new Binary(Buffer.from("AQID", "base64"))'),
  ('Timestamp(1, 2)', 'Timestamp({t: 1, i: 2})'), ('Timestamp( {i: 2, t: 1} )', '{"$timestamp": {"i": 2, "t": 1}}'),
  ('/a\/[/]/mi', '{"$regularExpression": {"pattern": "a\\/[/]", "options": "im"}}'),
  ('RegExp("^a", "xi")', '{"$regularExpression": {"options": "ix", "pattern": "^a"}}'), ('new RegExp("a")', '/a/'), ('BSONRegExp("a", "i")', '/a/i'),
  ('MinKey', 'MinKey()'), ('new MaxKey()', 'MaxKey'), ('MinKey ( )', '{"$minKey": 1}'),
  ('undefined', '{"$undefined": true}'), ('Infinity', '{"$numberDouble": "Infinity"}'), ('-Infinity', '{"$numberDouble": "-Infinity"}'), ('NaN', '{"$numberDouble": "NaN"}'),
  ('Code("x")', '{"$code": "x"}'), ('Code("x", {a: 1})', '{"$scope": {"a": 1}, "$code": "x"}'), ('Symbol("x")', 'new BSONSymbol("x")'),
  ('DBPointer("a", ObjectId("507f191e810c19729de860ea"))', '{"$dbPointer": {"$ref": "a", "$id": {"$oid": "507f191e810c19729de860ea"}}}'),
  ('DBRef("a", 1)', '{"$ref": "a", "$id": 1}'), ('DBRef("a", ObjectId("507f191e810c19729de860ea"), "b")', '{"$ref": "a", "$id": {"$oid": "507f191e810c19729de860ea"}, "$db": "b"}'),
  ('{a: 1, ''b'': 2, 3: 4, $c: 5, _d: 6, é: 7}', '{"a": 1, "b": 2, "3": 4, "$c": 5, "_d": 6, "é": 7}'),
  (E'\n{ // one\n /* two\n */ a /**/ : /**/ [ 1 , 2 , ] , /**/ } // three', '{"a":[1,2]}'),
  (E'\uFEFF{a:\u00A01}', '{"a": 1}'),
  ('"\u00e9\ud83d\ude00\x41\/\''"', '''é😀A/\'''''), ('"\0"', '"\u0000"'),
  ('.5', '0.5'), ('5.', '5.0'), ('1E3', '1000.0'), ('+5', '5'), ('-0', '-0.0'), ('1e-7', '0.0000001'),
  ('0.1', '1e-1'), ('123456789012345678901234567890', '1.2345678901234568e29'), ('9223372036854775808', '9223372036854775808.0');
SELECT ok(bson_value_send(pg_temp.parsed(a)) = bson_value_send(pg_temp.parsed(b)), a || ' is ' || b) FROM spelling;

SELECT is((SELECT array_agg(left(encode(bson_value_send(pg_temp.parsed(v)), 'hex'), 2) ORDER BY v) FROM unnest(ARRAY['2147483647', '2147483648', '-2147483649', '9223372036854775808']) v),
  ARRAY['12', '10', '12', '01'], 'an integer is int32 if it fits, else int64, else double');
SELECT is('{a: {$regex: "^a", $options: "i"}, b: {$set: 1}, c: {$gt: 5}, d: {$type: 2}}'::bson::text,
  '{"a": {"$regex": "^a", "$options": "i"}, "b": {"$set": 1}, "c": {"$gt": 5}, "d": {"$type": 2}}', 'operators stay documents');
SELECT is('{"x": 1, "$oid": "5"}'::bson::text, '{"x": 1, "$oid": "5"}', 'only the first name makes a document something else');
SELECT is('{a: 1, a: 2, "": 3, b: {"": 4}}'::bson::text, '{"a": 1, "a": 2, "": 3, "b": {"": 4}}', 'names: twice, empty, in order');

-- ---------------------------------------------------------------- documents that look like something else

SELECT is_empty($$
  WITH name AS (SELECT unnest(ARRAY['$oid', '$symbol', '$numberInt', '$numberLong', '$numberDouble', '$numberDecimal', '$binary', '$uuid',
                  '$code', '$scope', '$timestamp', '$regularExpression', '$dbPointer', '$date', '$minKey', '$maxKey', '$undefined',
                  '$document', '$array', '$type', '$regex', '$options', '$ref', '$id']) AS n),
  doc AS (SELECT format('{a: {"$document": {"%s": %s}}, b: [{"$document": {"%s": {"$document": {"%s": 1}}, "%s": 2}}]}', n, v, n, m, m)::bson AS d
          FROM name, (SELECT n AS m FROM name) x, (VALUES ('"5"'), ('1'), ('{}'), ('true'), ('"507f191e810c19729de860ea"'), ('NumberLong(5)')) y(v))
  SELECT d FROM doc WHERE d::text::bson::bytea <> d::bytea OR bson_to_json(d, 'canonical')::bson::bytea <> d::bytea
    OR bson_to_json(d, 'shell')::bson::bytea <> d::bytea OR bson_pretty(d)::bson::bytea <> d::bytea$$, 'wrappers as data survive each form');
SELECT is('{"$document": {"$oid": "507f191e810c19729de860ea"}}'::bson::text, '{"$document": {"$oid": "507f191e810c19729de860ea"}}', 'at the top, too');

-- ---------------------------------------------------------------- errors

CREATE TEMP TABLE wrong (t text, code text, detail text);
INSERT INTO wrong VALUES
  ('{stars: 5 review_text: "Wow"}', '22P02', 'Line 1, column 11: a comma or a closing brace is expected, "review_text" was found.'),
  (E'{\n  é: 1,\n  "é": }', '22P02', 'Line 3, column 8: a value is expected, "}" was found.'),
  ('', '22P02', 'Line 1, column 1: a value is expected, the text ends.'),
  ('{a: 1', '22P02', 'Line 1, column 6: a comma or a closing brace is expected, the text ends.'),
  ('{a: 1} {}', '22P02', 'Line 1, column 8: the end of the text is expected, "{" was found.'),
  ('[1, 2]', '22P02', 'Line 1, column 1: a document is expected, a value of the type "array" was found.'),
  ('{_id: ObjectId()}', '22P02', 'Line 1, column 7: ObjectId takes 24 hexadecimal digits in quotes.'),
  ('{t: new Date()}', '22P02', 'Line 1, column 5: Date takes a date as in "2018-12-11T12:00:00Z" or milliseconds.'),
  ('{a: shipped}', '22P02', 'Line 1, column 5: "shipped" is not a value.'),
  ('{a: new}', '22P02', 'Line 1, column 5: "new" is not followed by a call such as ObjectId("..").'),
  ('{a: {"$oid": 5}}', '22P02', 'Line 1, column 5: "$oid" is not used as in {"$oid": "24 hexadecimal digits"}.'),
  ('{a: {"$oid": "507f191e810c19729de860ea", b: 1}}', '22P02', 'Line 1, column 5: "$oid" is not used as in {"$oid": "24 hexadecimal digits"}.'),
  ('{a: {"$code": "x", b: 1}}', '22P02', 'Line 1, column 5: "$code" is not used as in {"$code": "string"} or {"$code": "string", "$scope": {..}}.'),
  ('{a: {"$binary": {"base64": "", "subType": 0}}}', '22P02', 'Line 1, column 5: "$binary" is not used as in {"$binary": {"base64": "..", "subType": "hexadecimal digits"}}.'),
  ('{a: {"$binary": "", "$type": 0}}', '22P02', 'Line 1, column 5: "$binary" is not used as in {"$binary": {"base64": "..", "subType": "hexadecimal digits"}}.'),
  ('{a: {"$regularExpression": {"pattern": "", "x": ""}}}', '22P02', 'Line 1, column 5: "$regularExpression" is not used as in {"$regularExpression": {"pattern": "..", "options": ".."}}.'),
  ('{a: {"$timestamp": {"t": -1, "i": 0}}}', '22P02', 'Line 1, column 5: "$timestamp" is not used as in {"$timestamp": {"t": seconds, "i": number}}.'),
  ('{a: {"$numberInt": "2147483648"}}', '22P02', 'Line 1, column 5: "$numberInt" is not used as in {"$numberInt": "digits"}.'),
  ('{a: {"$date": "yesterday"}}', '22P02', 'Line 1, column 5: "$date" is not used as in {"$date": "ISO 8601"} or {"$date": milliseconds}.'),
  ('{a: ISODate("2018-02-29")}', '22P02', 'Line 1, column 5: ISODate takes a date as in "2018-12-11T12:00:00Z" or milliseconds.'),
  ('{a: "\ud83d"}', '22P02', 'Line 1, column 6: the first half of a surrogate pair is not followed by the second.'),
  ('{a: "\ude00"}', '22P02', 'Line 1, column 6: the second half of a surrogate pair stands alone.'),
  ('{a: "\q"}', '22P02', 'Line 1, column 6: an escape does not exist.'),
  (E'{a: "x\n"}', '22P02', 'Line 1, column 7: a string holds a control character.'),
  ('{a: "x}', '22P02', 'Line 1, column 5: a string does not end.'),
  ('{"a\u0000": 1}', '22P02', 'Line 1, column 2: the name of a field cannot contain a null character.'),
  ('{a: /x/g}', '22P02', 'Line 1, column 8: a regular expression has an option that does not exist.'),
  ('{a: /x}', '22P02', 'Line 1, column 5: a regular expression does not end.'),
  ('{a: 1 /* x }', '22P02', 'Line 1, column 7: a comment does not end.'),
  ('{a: 007}', '22P02', 'Line 1, column 5: a number is not written as one.'),
  ('{a: 1e}', '22P02', 'Line 1, column 5: a number is not written as one.'),
  ('{a: 1e999}', '22003', 'Line 1, column 5: a number does not fit into a double.'),
  ('{a: NumberDecimal("12345678901234567890123456789012345")}', '22P02', 'Line 1, column 5: NumberDecimal takes a number of at most 34 digits.'),
  ('{a: ' || repeat('[', 100) || repeat(']', 100) || '}', '54000', 'Line 1, column 1: the limit is 100 levels.'),
  (repeat('{a:', 1000), '54000', 'Line 1, column 931: the limit is 100 levels.');
CREATE FUNCTION pg_temp.error_of(t text, OUT code text, OUT detail text) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM t::bson;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, detail = PG_EXCEPTION_DETAIL;
END $$;
SELECT is(e.code || ' ' || e.detail, w.code || ' ' || w.detail, left(w.t, 60)) FROM wrong w, pg_temp.error_of(w.t) e;
-- No field of a wrapper is dropped in silence, neither outside nor inside.
CREATE TEMP TABLE wrapper (w text);
INSERT INTO wrapper VALUES ('{"$oid": "507f191e810c19729de860ea"}'), ('{"$symbol": "x"}'), ('{"$numberInt": "5"}'), ('{"$numberLong": "5"}'),
  ('{"$numberDouble": "5"}'), ('{"$numberDecimal": "5"}'), ('{"$binary": {"base64": "", "subType": "0"}}'), ('{"$binary": "", "$type": "0"}'),
  ('{"$uuid": "507f191e810c19729de860ea507f191e"}'), ('{"$code": "x"}'), ('{"$code": "x", "$scope": {}}'), ('{"$timestamp": {"t": 1, "i": 2}}'),
  ('{"$regularExpression": {"pattern": "", "options": ""}}'), ('{"$dbPointer": {"$ref": "x", "$id": {"$oid": "507f191e810c19729de860ea"}}}'),
  ('{"$date": 5}'), ('{"$date": "2018"}'), ('{"$minKey": 1}'), ('{"$maxKey": 1}'), ('{"$undefined": true}'), ('{"$document": {}}'), ('{"$array": {}}');
SELECT is((SELECT count(('{a: ' || w || '}')::bson) FROM wrapper), 21::bigint, 'wrappers as they should be');
SELECT is_empty($$SELECT w FROM wrapper WHERE (pg_temp.error_of('{a: ' || left(w, -1) || ', "x": 1}}')).code IS DISTINCT FROM '22P02'$$, 'another field behind');
SELECT is_empty($$SELECT w FROM wrapper WHERE w ~ '}}$' AND w !~ 'document|array|scope|Pointer'
  AND (pg_temp.error_of('{a: ' || left(w, -2) || ', "x": 1}}}')).code IS DISTINCT FROM '22P02'$$, 'another field inside');
SELECT is_empty($$SELECT w, part FROM wrapper, unnest(ARRAY['base64', 'subType', '\$type', '\$scope', '"t"', '"i"', 'pattern', 'options', '\$ref', '\$id']) AS part
  WHERE w ~ part AND (pg_temp.error_of('{a: ' || regexp_replace(w, part, CASE WHEN part ~ '"' THEN '"x"' ELSE 'x' END) || '}')).code IS DISTINCT FROM '22P02'$$, 'another field in place of one');
SELECT is_empty($$SELECT w FROM wrapper WHERE (pg_temp.error_of('{a: ' || regexp_replace(w, ': .*$', ': [1]}') || '}')).code IS DISTINCT FROM '22P02'$$, 'an array in place of what belongs there');

SELECT throws_ok($$SELECT 'shipped'::bson_value$$, '22P02', 'invalid input for type bson_value: "shipped"', 'a bare word is no value');
SELECT throws_ok($$SELECT '{d: 1}'::bson -> 'd' < '2024-05-01'$$, '22P02', 'invalid input for type bson_value: "2024-05-01"', 'a bare date must be cast');

SELECT lives_ok(format('SELECT %L::bson', '{a: ' || repeat('[', 99) || repeat(']', 99) || '}'), '100 levels');
SELECT ok(d::text::bson::bytea = d::bytea AND bson_to_json(d, 'shell')::bson::bytea = d::bytea, 'what is escaped or wrapped on the last level survives')
FROM (SELECT (repeat('{"$document": {"$oid": ', 99) || '{a: NumberLong(1), b: ISODate("1960-01-01")}' || repeat('}}', 99))::bson AS d) x;
SELECT throws_ok($$SELECT ('{a: "' || repeat('x', 17 * 1024 * 1024) || '"}')::bson$$, '54000', 'document too large', '17 MiB of text');
SELECT is(length(('{a: BinData(0, "' || repeat('AAAA', 4 * 1024 * 1024) || '")}')::bson::bytea), 12 * 1024 * 1024 + 13, 'base64 that is longer than the limit, of a document that is not');

-- Soft errors came with PostgreSQL 16.
CREATE FUNCTION pg_temp.soft(t text, type text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
  IF current_setting('server_version_num')::int < 160000 THEN
    EXECUTE format('SELECT %L::%s::text', t, type);
    RETURN 'accepted';
  END IF;
  EXECUTE 'SELECT CASE WHEN pg_input_is_valid($1, $2) THEN ''accepted'' ELSE (SELECT sql_error_code FROM pg_input_error_info($1, $2)) END'
    INTO result USING t, type;
  RETURN result;
EXCEPTION WHEN OTHERS THEN
  RETURN CASE WHEN current_setting('server_version_num')::int < 160000 THEN SQLSTATE ELSE 'raised ' || SQLSTATE END;
END $$;
SELECT results_eq('SELECT pg_temp.soft(t, ''bson'') FROM wrong', 'SELECT code FROM wrong', 'errors are soft where there are soft errors');
SELECT is(pg_temp.soft('{a: "' || repeat('x', 17 * 1024 * 1024) || '"}', 'bson'), '54000', 'also the one about size');
SELECT is(pg_temp.soft('shipped', 'bson_value'), '22P02', 'and those of a value');
SELECT is(pg_temp.soft('{a: 1}', 'bson'), 'accepted', 'and what is right is right');

-- ---------------------------------------------------------------- bytes

SELECT throws_ok(format('SELECT %L::bytea::bson', b), '22P03', 'invalid BSON document', what)
FROM (VALUES ('\x', 'no bytes'), ('\x05000000', 'four bytes'), ('\x0500000001', 'no end'), ('\x0600000000', 'too long'), ('\x050000000000', 'too short'),
             ('\x0c0000001461000500000000', 'no such type'), ('\x0900000008610002 00', 'a boolean that is 2'),
             ('\x0d000000026100020000006100', 'a string that does not end'), ('\x0e000000026100020000 00ff0000', 'no UTF-8')) x(b0, what),
     LATERAL (SELECT replace(b0, ' ', '')) y(b);
SELECT throws_ok($$SELECT bson_value_from_bytea('\x')$$, '22P03', 'invalid BSON value', 'a value has a type');
SELECT throws_ok($$SELECT bson_value_from_bytea('\x10050000')$$, '22P03', 'invalid BSON value', 'a value that is too short');
SELECT throws_ok($$SELECT bson_value_from_bytea('\x100500000000')$$, '22P03', 'invalid BSON value', 'a value that is too long');
SELECT is(docpatterns.bson_send('{a: 5}'::bson), '\x0c0000001061000500000000', 'bson_send gives the document');
SELECT is(bson_value_send('5'), '\x1005000000', 'bson_value_send gives type and value');
SELECT is('{a: 5}'::bson::bytea, '\x0c0000001061000500000000', 'and so do casts');
SELECT throws_ok($$SELECT decode('00000001', 'hex')::bson$$, '22P03', NULL, 'bytes that are no document');
SELECT throws_ok($$SELECT (int4send(0) || repeat('x', 17 * 1024 * 1024)::bytea)::bson$$, '54000', 'document too large', '17 MiB of bytes');

SELECT results_eq($$SELECT d::text FROM bson_documents('{a: 1}'::bson::bytea || '{}'::bson::bytea || '{b: 2}'::bson::bytea) d$$,
  $$VALUES ('{"a": 1}'), ('{}'), ('{"b": 2}')$$, 'bson_documents splits');
SELECT is_empty($$SELECT * FROM bson_documents('')$$, 'nothing holds no documents');
DO $$
DECLARE detail text;
BEGIN
  PERFORM bson_documents('{a: 1}'::bson::bytea || '\x0500000001');
EXCEPTION WHEN invalid_binary_representation THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
  PERFORM set_config('test.detail', detail, true);
END $$;
SELECT is(current_setting('test.detail', true), 'At offset 16: a document does not end with a null byte.', 'the offset is one in the file');

-- ---------------------------------------------------------------- a random run

-- Documents put together from pieces and then damaged byte by byte: what is accepted survives each form.
SELECT diag('seed 0.20181211');
SELECT setseed(0.20181211);
CREATE TEMP TABLE random_run (accepted bigint, refused bigint, lost bigint);
DO $$
DECLARE
  base bytea[] := (SELECT array_agg(('\x' || lpad(to_hex(0), 8, '0'))::bytea || b) FROM
    (SELECT substr(format('{a: 1, "b": %s, "$oid": [%s, {"$document": {"$date": %s}}]}', a.relaxed, b.canonical, a.shell)::bson::bytea, 5) AS b
     FROM form a, form b WHERE length(a.bytes) > 4) x);
  d bytea; doc bson; accepted bigint := 0; refused bigint := 0; lost bigint := 0; at int;
BEGIN
  FOR i IN 1 .. 4000 LOOP
    d := base[1 + floor(random() * cardinality(base))::int];
    FOR k IN 1 .. floor(random() * 3)::int LOOP
      at := 4 + floor(random() * (length(d) - 4))::int;
      d := set_byte(d, at, floor(random() * 256)::int);
    END LOOP;
    FOR k IN 0 .. 3 LOOP
      d := set_byte(d, k, (length(d) >> (8 * k)) & 255);
    END LOOP;
    BEGIN
      doc := d::bson;
      accepted := accepted + 1;
      IF doc::bytea <> d OR doc::text::bson::bytea <> d OR bson_to_json(doc, 'canonical')::bson <> doc
         OR bson_to_json(doc, 'shell')::bson::bytea <> d OR bson_pretty(doc)::bson::bytea <> d THEN
        lost := lost + 1;
      END IF;
    EXCEPTION WHEN invalid_binary_representation THEN
      refused := refused + 1;
    END;
  END LOOP;
  INSERT INTO random_run VALUES (accepted, refused, lost);
END $$;
SELECT is((SELECT lost FROM random_run), 0::bigint, 'whatever is accepted survives each form of text');
SELECT ok((SELECT accepted > 1000 AND refused > 200 FROM random_run), 'and there was enough of both');

-- what else the parser refuses
SELECT throws_ok(format('SELECT %L::bson', t), '22P02', 'invalid input syntax for type bson', t) FROM unnest(ARRAY[
  E'{a: \x01}', '{a: "\01"}', '{a: "\xZ0"}', '{a: "\u12Z"}', '{a: "abc\', '{a: /x/ii}', '{a: MinKey(1)}', '{a: ISODate}']) t;

SELECT * FROM finish();
ROLLBACK;
