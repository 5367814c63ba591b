-- Between bson and jsonb.
\pset format unaligned
\pset null NULL

-- What jsonb has is the same on both sides; names come in jsonb's order, and of equal names the last stays.
SELECT '{b: 1, aa: [true, null, "x", {}], a: 2.5, b: 3}'::bson::jsonb;
SELECT '{"b": 1, "a": [1.5, "x", {"c": null}], "e": {}}'::jsonb::bson;

-- What it has not is Extended JSON, and comes back from it.
SELECT '{_id: ObjectId("507f191e810c19729de860ea"), when: ISODate("2024-07-01T12:00:00Z"), price: NumberDecimal("100.00"), raw: BinData(0, "AQI="),
         re: /^a/i, ts: Timestamp(1, 2), long_ago: ISODate("1066-10-14T00:00:00Z"), nothing: undefined, min: MinKey}'::bson::jsonb;
SELECT '{_id: ObjectId("507f191e810c19729de860ea"), when: ISODate("2024-07-01T12:00:00Z"), price: NumberDecimal("100.00"), raw: BinData(0, "AQI="),
         re: /^a/i, ts: Timestamp(1, 2), long_ago: ISODate("1066-10-14T00:00:00Z"), nothing: undefined, min: MinKey}'::bson::jsonb::bson;

-- A document that only looks like Extended JSON is escaped. What counts is the name that jsonb puts first.
SELECT bson_build('a', bson_build('$oid', 'no id'), 'b', bson_build('longer', 1, '$date', 'x'), 'c', bson_build('$set', bson_build('a', 1)))::jsonb;
SELECT bson_build('a', bson_build('$oid', 'no id'), 'b', bson_build('longer', 1, '$date', 'x'), 'c', bson_build('$set', bson_build('a', 1)))::jsonb::bson;

-- Integers are int32 or int64. A fraction makes a double; where that would lose digits it is a decimal128.
SELECT name, bson_typeof(value), value FROM (SELECT key, value FROM bson_each('{"a": 2147483647, "b": 2147483648, "c": 9223372036854775807, "d": 9223372036854775808,
  "e": 12345678901234567890123, "f": 1.0, "g": 0.1, "h": 1.10, "i": 0.30000000000000004, "j": 0.1234567890123456789, "k": 1e400, "l": 1e22}'::jsonb::bson)) AS e (name, value);
SELECT '{"a": 1.2345678901234567890123456789012345678}'::jsonb::bson;

-- Doubles keep their kind, their digits and their sign; jsonb has no NaN.
SELECT '{a: 1.0, b: 0.1, c: -0.0, d: 1e15, e: NaN, f: -Infinity, g: 1e22, h: 5e-324}'::bson::jsonb - 'h';
SELECT '{a: 1.0, b: 0.1, c: -0.0, d: 1e15, e: NaN, f: -Infinity, g: 1e22, h: 5e-324}'::bson::jsonb::bson;

-- So only the width of an integer is lost, which no comparison sees.
SELECT bson_typeof(('{n: NumberLong(5)}'::bson::jsonb::bson) -> 'n'), '{n: NumberLong(5)}'::bson::jsonb::bson = '{n: NumberLong(5)}'::bson AS equal;

-- json is read as text is, in its own order. PostgreSQL's functions nest documents and values.
SELECT '{"b": 1, "a": {"$oid": "507f191e810c19729de860ea"}}'::json::bson, '{b: 1, a: 1.5}'::bson::json;
SELECT row_to_json(t), jsonb_build_object('a', doc -> 'a', 'id', id) FROM (SELECT objectid '507f191e810c19729de860ea' AS id, '{b: NumberLong(5), a: ["x", {}]}'::bson AS doc) t;

SELECT '[1, 2]'::jsonb::bson;
SELECT '{"$date": "2024-01-01T00:00:00Z"}'::jsonb::bson;
SELECT '{"a": {"$date": true}}'::jsonb::bson;
SELECT '{a: "x\u0000y"}'::bson::jsonb;
SELECT '{a: /x/}'::bson::jsonb, to_bson('{"$numberLong": "5"}'::jsonb);
