-- The contract of the casts between bson and jsonb.
BEGIN;
SELECT plan(71);

SELECT function_returns('docpatterns', 'bson_to_jsonb', ARRAY['bson'], 'jsonb');
SELECT function_returns('docpatterns', 'jsonb_to_bson', ARRAY['jsonb'], 'bson');
SELECT volatility_is('docpatterns', 'bson_to_jsonb', ARRAY['bson'], 'immutable');
SELECT volatility_is('docpatterns', 'jsonb_to_bson', ARRAY['jsonb'], 'immutable');
SELECT is_strict('docpatterns', 'bson_to_jsonb', ARRAY['bson']);
SELECT is_strict('docpatterns', 'jsonb_to_bson', ARRAY['jsonb']);

-- jsonb -> bson: which number becomes what.
CREATE TABLE numbers (j text, type text, v text);
INSERT INTO numbers VALUES
  ('0', 'int', '0'), ('-2147483648', 'int', '-2147483648'), ('2147483647', 'int', '2147483647'), ('1e3', 'int', '1000'),
  ('2147483648', 'long', '2147483648'), ('-2147483649', 'long', '-2147483649'), ('9223372036854775807', 'long', '9223372036854775807'), ('-9223372036854775808', 'long', '-9223372036854775808'),
  ('9223372036854776000', 'double', '9.223372036854776e+18'), ('9223372036854775808', 'decimal', '9223372036854775808'), ('100000000000000000000', 'double', '1e+20'),
  ('9223372036854775809', 'decimal', '9223372036854775809'), ('12345678901234567890', 'decimal', '12345678901234567890'),
  ('1.0', 'double', '1'), ('0.0', 'double', '0'), ('-1.50', 'double', '-1.5'), ('0.1', 'double', '0.1'), ('0.30000000000000004', 'double', '0.30000000000000004'),
  ('1.7976931348623157e308', 'double', '1.7976931348623157e+308'),
  ('5e-324', 'double', '5e-324'), ('0.1234567890123456789', 'decimal', '0.1234567890123456789'), ('1234567890123456789012345678901234', 'decimal', '1234567890123456789012345678901234'),
  ('9007199254740993.5', 'decimal', '9007199254740993.5');
SELECT is((SELECT string_agg(j || ': ' || bson_typeof(d -> 'n') || ' ' || (d -> 'n')::text, E'\n') FROM (SELECT *, ('{"n": ' || j || '}')::jsonb::bson AS d FROM numbers) AS t
           WHERE bson_typeof(d -> 'n') <> type OR (d -> 'n')::text <> v), NULL, 'numbers become the type that holds them');
SELECT is((SELECT string_agg(j, ' ') FROM numbers WHERE type <> 'decimal' AND (('{"n": ' || j || '}')::jsonb::bson::jsonb -> 'n')::numeric <> j::numeric), NULL, 'and the same number again');
SELECT is((SELECT string_agg(j, ' ') FROM numbers WHERE (('{"n": ' || j || '}')::jsonb::bson -> 'n')::numeric <> j::numeric), NULL, 'as numeric too');
SELECT throws_ok($$SELECT '{"n": 1.2345678901234567890123456789012345}'::jsonb::bson$$, '22003', NULL, '35 digits');
SELECT throws_ok($$SELECT '{"n": 1e7000}'::jsonb::bson$$, '22003', NULL, 'a number beyond decimal128');

-- bson -> jsonb: numbers.
SELECT is('{n: NumberLong(5)}'::bson::jsonb, '{"n": 5}', 'an int64 is a number');
SELECT is('{n: 1.0}'::bson::jsonb::text, '{"n": 1.0}', 'a double shows that it is one');
SELECT is('{n: 1e15}'::bson::jsonb::bson::text, '{"n": 1e+15}', 'a large one too');
SELECT is('{n: NumberDecimal("1.10")}'::bson::jsonb::text, '{"n": {"$numberDecimal": "1.10"}}', 'a decimal128 is Extended JSON');
SELECT is('{n: NaN}'::bson::jsonb::text, '{"n": {"$numberDouble": "NaN"}}', 'so is NaN');
SELECT is('{n: -0.0}'::bson::jsonb::text, '{"n": {"$numberDouble": "-0.0"}}', 'and -0.0');
SELECT is('{n: -0.0}'::bson::jsonb::bson::bytea, '{n: -0.0}'::bson::bytea, 'which comes back');

-- Round trips, byte for byte where jsonb does not reorder the names. Each document has one field.
CREATE TABLE trips (d bson);
INSERT INTO trips VALUES ('{v: null}'), ('{v: true}'), ('{v: "x"}'), ('{v: ""}'), ('{v: []}'), ('{v: {}}'), ('{v: [[], {}, null]}'), ('{v: 5}'), ('{v: NumberLong("5000000000")}'), ('{v: 0.1}'), ('{v: 5e-324}'),
  ('{v: 1.7976931348623157e308}'), ('{v: 1.2345678901234567e18}'), ('{v: 123456789.123456789}'), ('{v: Infinity}'), ('{v: NumberDecimal("0E+3")}'), ('{v: NumberDecimal("-0")}'), ('{v: NumberDecimal("NaN")}'), ('{v: NumberDecimal("1E-6176")}'),
  ('{v: ObjectId("507f191e810c19729de860ea")}'), ('{v: ISODate("2024-01-01T00:00:00.001Z")}'), ('{v: ISODate("1960-01-01")}'), ('{v: {"$date": {"$numberLong": "9223372036854775807"}}}'), ('{v: {"$date": {"$numberLong": "253402300799999"}}}'),
  ('{v: {"$date": {"$numberLong": "253402300800000"}}}'), ('{v: BinData(0, "AQI=")}'), ('{v: BinData(128, "")}'), ('{v: UUID("00112233-4455-6677-8899-aabbccddeeff")}'), ('{v: /a"b\\/i}'), ('{v: Timestamp(4294967295, 1)}'),
  ('{v: MinKey}'), ('{v: MaxKey}'), ('{v: undefined}'), ('{v: {"$code": "f()"}}'), ('{v: {"$code": "f()", "$scope": {a: 1}}}'), ('{v: {"$symbol": "s"}}'), ('{v: {"$dbPointer": {"$ref": "a", "$id": {"$oid": "507f191e810c19729de860ea"}}}}'),
  ('{v: {"$document": {"$oid": "x"}}}'), ('{v: {"$document": {"$document": {}}}}'), ('{v: {"$document": {"$document": {"$document": {"$oid": "x"}}}}}'), ('{v: {"$set": {a: 1}}}'), ('{"$set": {a: 1}}'), ('{"": 1}'), ('{"a.b": 1}'), ('{v: "\u00e9\ud83d\ude00\"\\\n"}'),
  ('{"$document": {"$oid": "507f191e810c19729de860ea"}}'), ('{v: {"$document": {"$type": "x", "$binary": "y"}}}'), ('{v: {"$type": "x"}}'), ('{v: {"$document": {"$minKey": 1}}}');
SELECT is((SELECT string_agg(d::text || ' -> ' || d::jsonb::text || ' -> ' || d::jsonb::bson::text, E'\n') FROM trips WHERE d::jsonb::bson::bytea <> d::bytea), NULL, 'every value comes back byte for byte');
SELECT is((SELECT count(*) FROM trips), 49::bigint, 'of that many');
SELECT is((SELECT string_agg(d::text, E'\n') FROM trips WHERE (to_bson(d)::jsonb)::bson_value IS DISTINCT FROM to_bson(d)), NULL, 'also as bson_value');
SELECT is((SELECT string_agg(d::text, E'\n') FROM trips WHERE (bson_array(d, d)::jsonb)::bson_value IS DISTINCT FROM bson_array(d, d)), NULL, 'also in arrays');
SELECT is((SELECT string_agg(d::text, E'\n') FROM trips, bson_each(d) AS e WHERE e.value::jsonb::bson_value IS DISTINCT FROM e.value), NULL, 'also alone');

-- Names: jsonb's order decides what a document is taken for.
SELECT is(bson_build('longer', 1, '$oid', 'x')::jsonb::text, '{"$document": {"$oid": "x", "longer": 1}}', 'escaped, because $oid comes first');
SELECT is(bson_build('longer', 1, '$oid', 'x')::jsonb::bson, bson_build('$oid', 'x', 'longer', 1), 'and unescaped');
SELECT is(bson_build('$oid', 'x', 'a', 1)::jsonb::text, '{"a": 1, "$oid": "x"}', 'not escaped, because a comes first');
SELECT is(bson_build('$oid', 'x', 'a', 1)::jsonb::bson, bson_build('a', 1, '$oid', 'x'), 'and taken as it is');
SELECT is('{"$ref": "c", "$id": 1}'::jsonb::bson, '{"$id": 1, "$ref": "c"}', 'a reference is a document');
SELECT is('{b: 1, a: 2, b: 3}'::bson::jsonb, '{"a": 2, "b": 3}', 'the last of equal names');
SELECT is('{a: {b: 1, b: 2}, a: {c: 1}}'::bson::jsonb, '{"a": {"c": 1}}', 'as jsonb does');
SELECT is('{"v": {"$date": "2024-01-01T00:00:00Z"}}'::jsonb::bson -> 'v', timestamptz '2024-01-01 00:00Z'::bson_value, 'Extended JSON is read');
SELECT is('{"v": {"$numberInt": "5"}}'::jsonb::bson, '{v: 5}', 'canonical too');
SELECT throws_ok($$SELECT '{"v": {"$date": true}}'::jsonb::bson$$, '22P02', NULL, 'what it does not mean is an error');
SELECT throws_ok($$SELECT '{"v": {"$document": 5}}'::jsonb::bson$$, '22P02', NULL, 'so is a wrong escape');
SELECT throws_ok($$SELECT '[1]'::jsonb::bson$$, '22023', NULL, 'an array is no document');
SELECT throws_ok($$SELECT '"x"'::jsonb::bson$$, '22023', NULL, 'nor is a string');
SELECT throws_ok($$SELECT 'null'::jsonb::bson$$, '22023', NULL, 'nor is null');
SELECT throws_ok($$SELECT '{"$oid": "507f191e810c19729de860ea"}'::jsonb::bson$$, '22023', NULL, 'nor an ObjectId');
SELECT throws_ok($$SELECT '{a: "x\u0000y"}'::bson::jsonb$$, '22P05', NULL, 'a null character in a string');
SELECT throws_ok($$SELECT '{a: {"$symbol": "x\u0000y"}}'::bson::jsonb$$, '22P05', NULL, 'and in a symbol');
SELECT lives_ok($$SELECT (repeat('{"a":', 99) || '{}' || repeat('}', 99))::jsonb::bson$$, '100 levels');
SELECT throws_ok($$SELECT (repeat('{"a":', 100) || '{}' || repeat('}', 100))::jsonb::bson$$, '54000', NULL, '101 levels');
SELECT throws_ok($$SELECT jsonb_build_object('a', repeat('x', 17000000))::bson$$, '54000', NULL, '17 MB');
SELECT is('{"b": 1, "a": {"$oid": "507f191e810c19729de860ea"}}'::json::bson::text, '{"b": 1, "a": {"$oid": "507f191e810c19729de860ea"}}', 'json keeps its order');

-- bson -> json: text in the document's order; and what PostgreSQL's functions make of documents.
SELECT function_returns('docpatterns', 'bson_to_json', ARRAY['bson'], 'json');
SELECT is((SELECT string_agg(d::text, E'\n') FROM trips WHERE d::json::bson::bytea <> d::bytea), NULL, 'every value comes back from json byte for byte');
SELECT is((SELECT string_agg(d::text, E'\n') FROM trips, bson_each(d) e WHERE bson_value_send(e.value::json::bson_value) <> bson_value_send(e.value)), NULL, 'also alone');
SELECT is('{b: NumberLong(5), a: NumberLong("5000000000"), b: 1.0, c: NumberDecimal("1.10"), d: "\u0000"}'::bson::json::text, '{"b": 5, "a": 5000000000, "b": 1.0, "c": {"$numberDecimal": "1.10"}, "d": "\u0000"}', 'order, equal names and null characters stay; an int64 is a number');
SELECT is('{b: NumberLong(5)}'::bson::text, '{"b": {"$numberLong": "5"}}', 'which text keeps apart');
CREATE TABLE nested (id objectid, key bson_value, doc bson, docs bson[]);
INSERT INTO nested VALUES ('507f191e810c19729de860ea', '7', '{b: 1, a: {at: ISODate("2024-01-01")}}', ARRAY['{}', NULL]::bson[]), (NULL, 'null', NULL, NULL);
SELECT is((SELECT string_agg(row_to_json(n)::text, E'\n' ORDER BY id) FROM nested n), '{"id":"507f191e810c19729de860ea","key":7,"doc":{"b": 1, "a": {"at": {"$date": "2024-01-01T00:00:00Z"}}},"docs":[{},null]}
{"id":null,"key":null,"doc":null,"docs":null}', 'row_to_json nests');
SELECT is((SELECT json_agg(doc ORDER BY id)::jsonb FROM nested n), '[{"a": {"at": {"$date": "2024-01-01T00:00:00Z"}}, "b": 1}, null]', 'json_agg too');
SELECT is((SELECT to_jsonb(n) FROM nested n WHERE doc IS NOT NULL), '{"id": "507f191e810c19729de860ea", "key": 7, "doc": {"a": {"at": {"$date": "2024-01-01T00:00:00Z"}}, "b": 1}, "docs": [{}, null]}', 'to_jsonb');
SELECT is((SELECT jsonb_build_object('d', doc, 'b', doc -> 'b', 'none', doc -> 'c') FROM nested WHERE doc IS NOT NULL), '{"b": 1, "d": {"a": {"at": {"$date": "2024-01-01T00:00:00Z"}}, "b": 1}, "none": null}', 'jsonb_build_object');
SELECT is((SELECT json_build_object('b', doc -> 'b', 'a', doc -> 'a.at')::text FROM nested WHERE doc IS NOT NULL), '{"b" : 1, "a" : {"$date": "2024-01-01T00:00:00Z"}}', 'json_build_object');
SELECT is((SELECT jsonb_object_agg(id, doc) FROM nested WHERE id IS NOT NULL), '{"507f191e810c19729de860ea": {"a": {"at": {"$date": "2024-01-01T00:00:00Z"}}, "b": 1}}', 'jsonb_object_agg, an objectid as the key');
SELECT is(to_json('{a: "x\u0000y"}'::bson)::text, '{"a": "x\u0000y"}', 'to_json');
SELECT throws_ok($$SELECT to_jsonb('{a: "x\u0000y"}'::bson)$$, '22P05', NULL, 'jsonb has no null character');
SELECT is(bson_build('j', '{"b": 1, "a": 1}'::json)::json::text, '{"j": {"b": 1, "a": 1}}', 'json inside a document');

-- jsonb where documents are expected. The operators of jsonb stay its own.
SELECT collection_create('shelf');
SELECT is((SELECT count(*) FROM collection_insert('shelf', '{"_id": 1, "price": 5}'::jsonb, '{"_id": 2, "price": 9}'::jsonb)), 2::bigint, 'collection_insert');
SELECT is((SELECT collection_find('shelf', '{"price": {"$gt": 5}}'::jsonb, '{"price": 1}'::jsonb)), '{_id: 2, price: 9}', 'collection_find');
PREPARE filtered(jsonb) AS SELECT doc FROM shelf WHERE doc @@ $1;
SELECT results_eq('EXECUTE filtered(''{"price": 5}'')', $$VALUES ('{_id: 1, price: 5}'::bson)$$, 'doc @@');
SELECT is((SELECT modified FROM collection_update('shelf', '{"_id": 1}'::jsonb, '{"$set": {"price": 6}}'::jsonb)), 1::bigint, 'collection_update');
SELECT is(bson_set('{"a": 1}'::jsonb, 'b', 2), '{a: 1, b: 2}', 'bson_set');
SELECT throws_ok($$SELECT collection_find('shelf', '[1]'::jsonb)$$, '22023', NULL, 'an array is no filter');
SELECT is('{"a": {"b": 1}}'::jsonb || '{"c": 2}' -> 'a' @> '{"b": 1}' AND '{"a": 1}'::jsonb @@ '$.a == 1' AND '{"a": 1}'::jsonb < '{"a": 2}', true, 'among themselves jsonb values are jsonb');

-- A document of many fields: the same as through text.
SELECT is((SELECT count(*) FROM (SELECT bson_object_agg('f' || i, CASE i % 5 WHEN 0 THEN to_bson(i) WHEN 1 THEN to_bson(i * 1.5::float8) WHEN 2 THEN to_bson('s' || i) WHEN 3 THEN to_bson(ARRAY[i, i + 1]) ELSE to_bson(timestamptz 'epoch' + i * interval '1 h') END) AS d
           FROM generate_series(1, 1000) i) AS s WHERE d::jsonb = d::text::jsonb), 1::bigint, 'as the text says');

-- Random jsonb, and random documents of every type: there and back.
SELECT diag('seed 0.2024'), setseed(0.2024);
CREATE FUNCTION random_json(depth int) RETURNS jsonb LANGUAGE plpgsql AS $f$
DECLARE n int := floor(random() * 4);
BEGIN
  CASE floor(random() * CASE WHEN depth > 0 THEN 8 ELSE 6 END)::int
    WHEN 0 THEN RETURN 'null';
    WHEN 1 THEN RETURN to_jsonb(random() < 0.5);
    WHEN 2 THEN RETURN to_jsonb(floor(random() * 2e10 - 1e10)::bigint);
    WHEN 3 THEN RETURN to_jsonb(round((random() * 10 ^ floor(random() * 30))::numeric, floor(random() * 6)::int));
    WHEN 4 THEN RETURN to_jsonb(random() * 10 ^ (floor(random() * 600) - 300));
    WHEN 5 THEN RETURN to_jsonb(CASE n WHEN 0 THEN '' WHEN 1 THEN E'"\\\n\u00e9' ELSE substr(md5(random()::text), 1, n * 4) END);
    WHEN 6 THEN RETURN (SELECT coalesce(jsonb_agg(random_json(depth - 1)), '[]') FROM generate_series(1, n));
    ELSE RETURN (SELECT coalesce(jsonb_object_agg((ARRAY['a', 'bb', '$set', '', 'a.b', 'x', 'long name'])[1 + floor(random() * 7)], random_json(depth - 1)), '{}') FROM generate_series(1, n));
  END CASE;
END $f$;
CREATE TABLE random_docs AS SELECT jsonb_build_object('d', random_json(4)) AS j FROM generate_series(1, 500);
SELECT is((SELECT string_agg(j::text, E'\n') FROM random_docs WHERE j::bson::jsonb <> j AND j::bson::text !~ 'numberDecimal'), NULL, 'random jsonb comes back');
SELECT cmp_ok((SELECT count(*) FROM random_docs WHERE j::bson::text ~ 'numberDecimal'), '<', 100::bigint, 'but for few numbers that no double has');
SELECT is((SELECT string_agg(j::text, E'\n') FROM random_docs WHERE j::bson::jsonb::bson::bytea <> j::bson::bytea), NULL, 'and is the same document again');
CREATE FUNCTION random_value(depth int) RETURNS bson_value LANGUAGE plpgsql AS $f$
DECLARE kinds bson[];
BEGIN
  IF depth > 0 AND random() < 0.4 THEN
    IF random() < 0.5 THEN
      RETURN (SELECT coalesce(bson_agg(random_value(depth - 1)), '[]') FROM generate_series(1, floor(random() * 4)::int));
    END IF;
    -- names in jsonb's order, so that documents come back as they were
    RETURN (SELECT to_bson(coalesce(bson_object_agg(k, random_value(depth - 1) ORDER BY length(k), k COLLATE "C"), '{}'))
            FROM (SELECT DISTINCT (ARRAY['a', '$oid', '$date', '$document', 'z', 'abcdef', '$code', '$numberLong'])[1 + floor(random() * 8)] AS k FROM generate_series(1, floor(random() * 4)::int)) s);
  END IF;
  RETURN (SELECT d -> 'v' FROM trips ORDER BY random() LIMIT 1);
END $f$;
UPDATE trips SET d = '{v: 1}' WHERE NOT d ? 'v';
CREATE TABLE random_values AS SELECT random_value(4) AS v FROM generate_series(1, 500);
SELECT is((SELECT string_agg(v::text, E'\n') FROM random_values WHERE bson_value_send(v::jsonb::bson_value) <> bson_value_send(v)), NULL, 'random values come back byte for byte');
SELECT ok((SELECT count(DISTINCT bson_typeof(v)) > 12 AND count(*) FILTER (WHERE v::jsonb::text ~ '[$]document') > 20 FROM random_values), 'values of many types, many of them escaped');

SELECT * FROM finish();
ROLLBACK;
