-- Between SQL values and BSON values.
SET timezone = 'America/New_York';
\pset null NULL

-- No cast is implicit: mixing types is the error that it always was.
SELECT 1 = 'a'::text;
SELECT 'a'::text = 1::numeric;

-- SQL values become BSON values where something is assigned, or where it is written.
CREATE TABLE t (id int, v bson_value);
INSERT INTO t VALUES (1, true), (2, 2::smallint), (3, 3), (4, 4::bigint), (5, 5::real), (6, 0.1::float8), (7, 7.00), (8, 'a'::text),
  (9, 'b'::varchar), (10, 'c'::char(3)), (11, 'd'::name), (12, timestamptz '2024-07-01 00:00Z'), (13, timestamp '2024-07-01'), (14, date '2024-07-01'),
  (15, '11111111-2222-3333-4444-555555555555'::uuid), (16, '507f191e810c19729de860ea'::objectid), (17, '\xdeadbeef'::bytea), (18, '{"a": [1]}'::jsonb), (19, '{a: 1}'::bson),
  (20, NULL);
-- An untyped literal is Extended JSON.
INSERT INTO t VALUES (21, '{"$numberDecimal": "1.50"}'), (22, '"text"'), (23, 'null');
SELECT id, bson_typeof(v), v FROM t ORDER BY id;
SELECT 'shipped'::text::bson_value, 'shipped'::varchar::bson_value;
SELECT 'shipped'::bson_value;
SELECT '507f191e810c19729de860ea'::bson_value;
SELECT '758c8927-b1ca-4656-a2ce-cdae6ed9398d'::bson_value;
SELECT ''::bson_value;

-- And back, where a cast is written.
SELECT 'true'::bson_value::bool, '5'::bson_value::int2, '5'::bson_value::int4, '5'::bson_value::int8, '5'::bson_value::float4, '5'::bson_value::float8, '5'::bson_value::numeric;
SELECT '{"$date": "2024-07-01T12:00:00.123Z"}'::bson_value::timestamptz, '{"$date": "2024-07-01T23:00:00.123Z"}'::bson_value::timestamp, '{"$date": "2024-07-01T23:00:00.123Z"}'::bson_value::date;
SELECT '{"$uuid": "11111111-2222-3333-4444-555555555555"}'::bson_value::uuid, '{"$oid": "507f191e810c19729de860ea"}'::bson_value::objectid, '{"$binary": {"base64": "3q2+7w==", "subType": "80"}}'::bson_value::bytea;
SELECT '{a: 1}'::bson_value::bson, '[1, {a: "x"}]'::bson_value::jsonb, '"x"'::bson_value::jsonb;

-- null is NULL, but in the types that have a null of their own.
SELECT 'null'::bson_value::int, 'null'::bson_value::text, 'null'::bson_value::timestamptz, 'null'::bson_value::bson, 'null'::bson_value, 'null'::bson_value::jsonb;

-- As text a value is what ->> gives.
SELECT v::text, v::varchar(4), ('{}'::bson || bson_build('v', v)) ->> 'v' FROM t WHERE id IN (1, 3, 6, 7, 8, 12, 16, 19, 22) ORDER BY id;
SELECT '"a\u0000b"'::bson_value::text;

-- A number fits or it does not. Nothing is rounded, wrapped or cut.
SELECT '32768'::bson_value::int2;
SELECT '2147483648'::bson_value::int4;
SELECT '-9223372036854775808'::bson_value::int8;
SELECT '9223372036854775808'::bson_value::int8;
SELECT '{"$numberDecimal": "9223372036854775808"}'::bson_value::int8;
SELECT '{"$numberDecimal": "9223372036854775807"}'::bson_value::int8;
SELECT '{"$numberDouble": "NaN"}'::bson_value::int4;
SELECT '{"$numberDecimal": "Infinity"}'::bson_value::int4;
SELECT '1e300'::bson_value::float4;
SELECT '{"$numberDecimal": "1E+400"}'::bson_value::float8;
-- A fraction is not dropped; numeric rounds it when asked.
SELECT '3.0'::bson_value::int, '{"$numberDecimal": "3.00"}'::bson_value::int;
SELECT '2.5'::bson_value::int;
SELECT '{"$numberDecimal": "2.5"}'::bson_value::int;
SELECT '2.5'::bson_value::numeric::int, round('2.44'::bson_value::numeric, 1), '2.449'::bson_value::numeric(3, 1);
-- A double becomes the numeric of its own digits, all of them.
SELECT '0.1'::bson_value::numeric, '0.30000000000000004'::bson_value::numeric, '1e22'::bson_value::numeric, '{"$numberDouble": "NaN"}'::bson_value::numeric;
SELECT '{"$numberDecimal": "1.10"}'::bson_value::numeric, '{"$numberDecimal": "1E-6176"}'::bson_value::numeric = 1e-6176::numeric, '{"$numberDecimal": "-Infinity"}'::bson_value::float8;

-- What is of another kind stays so.
SELECT '"5"'::bson_value::int;
SELECT 'true'::bson_value::int;
SELECT '1'::bson_value::bool;
SELECT '"2024-01-01"'::bson_value::timestamptz;
SELECT '5'::bson_value::date;
SELECT '"11111111-2222-3333-4444-555555555555"'::bson_value::uuid;
SELECT '{"$binary": {"base64": "3q2+7w==", "subType": "03"}}'::bson_value::uuid;
SELECT '"507f191e810c19729de860ea"'::bson_value::objectid;
SELECT '"x"'::bson_value::bytea;
SELECT '[1]'::bson_value::bson;
SELECT '{"$date": {"$numberLong": "9223372036854775807"}}'::bson_value::timestamptz;

DROP TABLE t;
