-- The contract of the casts: which there are, how they are declared, what they raise.
SET timezone = 'UTC';
BEGIN;
SELECT plan(99);

-- Which casts there are. Only that from jsonb to bson is implicit.
SELECT is((SELECT string_agg(format('%s to %s', c.castsource::regtype, c.casttarget::regtype), ', ') FROM pg_cast c WHERE c.castcontext = 'i'
           AND (c.castsource IN ('bson'::regtype, 'bson_value'::regtype, 'objectid'::regtype) OR c.casttarget IN ('bson'::regtype, 'bson_value'::regtype, 'objectid'::regtype))),
          'jsonb to bson', 'one cast is implicit');
SELECT is((SELECT array_agg(format_type(castsource, NULL) ORDER BY format_type(castsource, NULL) COLLATE "C") FROM pg_cast WHERE casttarget = 'bson_value'::regtype AND castcontext = 'a'),
  ARRAY['bigint', 'boolean', 'bson', 'bytea', 'character', 'character varying', 'date', 'double precision', 'integer', 'json', 'jsonb', 'name', 'numeric', 'objectid',
        'real', 'smallint', 'text', 'timestamp with time zone', 'timestamp without time zone', 'treepath', 'uuid'], 'SQL types are assigned to bson_value');
SELECT is((SELECT array_agg(format_type(casttarget, NULL) ORDER BY format_type(casttarget, NULL) COLLATE "C") FROM pg_cast WHERE castsource = 'bson_value'::regtype AND castcontext = 'e'),
  ARRAY['bigint', 'boolean', 'bson', 'bytea', 'character', 'character varying', 'date', 'double precision', 'integer', 'json', 'jsonb', 'name', 'numeric', 'objectid',
        'real', 'smallint', 'text', 'timestamp with time zone', 'timestamp without time zone', 'treepath', 'uuid'], 'bson_value is cast explicitly');
SELECT is((SELECT count(*) FROM pg_cast WHERE castsource = 'bson_value'::regtype AND castcontext <> 'e'), 0::bigint, 'and never assigned to an SQL type');
SELECT is((SELECT count(*) FROM pg_cast WHERE castcontext = 'a'
           AND (castsource, casttarget) IN (('bson'::regtype, 'jsonb'::regtype), ('jsonb'::regtype, 'bson'::regtype), ('json'::regtype, 'bson'::regtype), ('bson'::regtype, 'json'::regtype))),
          3::bigint, 'the other casts between bson, jsonb and json are for assignments');
SELECT is((SELECT count(*) FROM pg_proc p JOIN pg_cast c ON c.castfunc = p.oid WHERE 'bson_value'::regtype IN (c.castsource, c.casttarget)
           AND NOT (p.provolatile = 'i' AND p.proisstrict AND p.proparallel = 's')), 0::bigint, 'the functions are immutable, strict and parallel safe');
SELECT throws_ok('SELECT 1 = ''a''::text', '42883', NULL, '1 = text is an error');
SELECT throws_ok('SELECT true = 1', '42883', NULL, 'boolean = integer is an error');
SELECT throws_ok('SELECT ''2024-01-01''::date = 5', '42883', NULL, 'date = integer is an error');
CREATE TABLE t (i int, s text, v bson_value, d bson);
SELECT throws_ok('INSERT INTO t (i) VALUES (''1''::bson_value)', '42804', NULL, 'a bson_value is not assigned to an integer');
SELECT throws_ok('INSERT INTO t (s) VALUES (''"1"''::bson_value)', '42804', NULL, 'nor to a text');
SELECT throws_ok('INSERT INTO t (d) VALUES (''{}''::text)', '42804', NULL, 'nor a text to a bson');
SELECT lives_ok('INSERT INTO t (v, d) VALUES (5, ''{"a": 1}''::jsonb)', 'an integer is assigned to a bson_value, a jsonb to a bson');

-- SQL -> BSON, by type and bytes.
CREATE FUNCTION bytes(v anyelement) RETURNS text LANGUAGE sql AS 'SELECT encode(bson_value_send(v::bson_value), ''hex'')';
SELECT is(bytes(true), '0801', 'true');
SELECT is(bytes(false), '0800', 'false');
SELECT is(bytes(-1::smallint), '10ffffffff', 'smallint');
SELECT is(bytes(2147483647), '10ffffff7f', 'integer');
SELECT is(bytes(-9223372036854775808), '120000000000000080', 'bigint');
SELECT is(bytes(0.1::real), '01000000a09999b93f', 'real keeps its exact value');
SELECT is(bytes(0.1::float8), '019a9999999999b93f', 'double precision');
SELECT is(bytes('-0'::float8), '010000000000000080', 'the sign of zero');
SELECT is(bytes('-Infinity'::float8), '01000000000000f0ff', '-Infinity');
SELECT is(bytes(1.10), '136e000000000000000000000000003c30', 'numeric keeps its scale');
SELECT is(bytes('NaN'::numeric), '130000000000000000000000000000007c', 'NaN as a decimal128');
SELECT is(bytes(''::text), '020100000000', 'the empty text');
SELECT is(bytes('é'::text), '0203000000c3a900', 'text is UTF-8');
SELECT is(bytes('ab '::char(5)), '0203000000616200', 'char(n) without its padding');
SELECT is(bytes('x'::name), '02020000007800', 'name');
SELECT is(bytes(timestamptz '1970-01-01 00:00:00.0019+00'), '090100000000000000', 'microseconds are cut off');
SELECT is(bytes(timestamptz '1969-12-31 23:59:59.9999+00'), '09ffffffffffffffff', 'towards the past');
SELECT is(bytes(timestamp '1970-01-02 00:00:00'), '09005c260500000000', 'timestamp is UTC');
SELECT is(bytes(date '1970-01-02'), '09005c260500000000', 'date is midnight UTC');
SELECT is(bytes('00112233-4455-6677-8899-aabbccddeeff'::uuid), '05100000000400112233445566778899aabbccddeeff', 'uuid');
SELECT is(bytes('\x0102'::bytea), '0502000000000102', 'bytea');
SELECT is(bytes('507f191e810c19729de860ea'::objectid), '07507f191e810c19729de860ea', 'objectid');
SELECT is(bytes('{}'::bson), '030500000000', 'bson');
SELECT is(bytes('[]'::jsonb), '040500000000', 'jsonb');
SELECT is(bytes('null'::jsonb), '0a', 'jsonb null');
SELECT is(to_bson(NULL::int), NULL, 'NULL stays NULL');
SELECT throws_ok('SELECT 12345678901234567890123456789012345::bson_value', '22003', NULL, '35 digits');
SELECT lives_ok('SELECT 1234567890123456789012345678901234::bson_value', '34 digits');
SELECT throws_ok('SELECT 1e7000::numeric::bson_value', '22003', NULL, 'an exponent too large');
SELECT throws_ok('SELECT ''infinity''::timestamptz::bson_value', '22008', NULL, 'infinity');
SELECT throws_ok('SELECT ''-infinity''::timestamp::bson_value', '22008', NULL, '-infinity');
SELECT throws_ok('SELECT ''infinity''::date::bson_value', '22008', NULL, 'infinite date');
SELECT is(('4713-01-01 BC'::timestamptz::bson_value)::timestamptz, '4713-01-01 BC'::timestamptz, 'the first year');
SELECT is(('294276-12-31'::timestamptz::bson_value)::timestamptz, '294276-12-31'::timestamptz, 'the last year');
SELECT is((date '5874897-12-31'::bson_value)::text, '+5874897-12-31T00:00:00Z', 'a date beyond timestamps');
SELECT throws_ok('SELECT (date ''5874897-12-31''::bson_value)::date', '22008', NULL, 'which does not come back');

-- BSON -> SQL, strictly: one value of each type against all targets.
CREATE TABLE kinds (kind text PRIMARY KEY, v bson_value);
INSERT INTO kinds VALUES ('double', '1.0'), ('string', '"1"'), ('object', '{}'), ('array', '[]'), ('binData', '{"$binary": {"base64": "", "subType": "00"}}'), ('objectId', '507f191e810c19729de860ea'::objectid),
  ('bool', 'true'), ('date', '{"$date": "2024-01-01T00:00:00Z"}'), ('regex', '{"$regularExpression": {"pattern": "a", "options": ""}}'), ('int', '1'), ('timestamp', '{"$timestamp": {"t": 1, "i": 1}}'),
  ('long', 1::bigint), ('decimal', 1.0), ('minKey', '{"$minKey": 1}'), ('maxKey', '{"$maxKey": 1}'), ('javascript', '{"$code": "x"}'), ('symbol', '{"$symbol": "s"}'),
  ('javascriptWithScope', '{"$code": "x", "$scope": {}}'), ('dbPointer', '{"$dbPointer": {"$ref": "a", "$id": {"$oid": "507f191e810c19729de860ea"}}}');
SELECT is((SELECT count(*) FROM kinds WHERE kind = bson_typeof(v)), 19::bigint, 'a value of each type but the null ones');
CREATE FUNCTION accepted(target text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE r record; result text[] := '{}';
BEGIN
  FOR r IN SELECT * FROM kinds ORDER BY kind COLLATE "C" LOOP
    BEGIN
      EXECUTE format('SELECT ($1)::%s', target) USING r.v;
      result := result || r.kind;
    EXCEPTION WHEN invalid_parameter_value THEN NULL;
    END;
  END LOOP;
  RETURN array_to_string(result, ' ');
END $f$;
SELECT is(accepted('bool'), 'bool', 'to boolean');
SELECT is(accepted('int2'), 'decimal double int long', 'to smallint');
SELECT is(accepted('int4'), 'decimal double int long', 'to integer');
SELECT is(accepted('int8'), 'decimal double int long', 'to bigint');
SELECT is(accepted('float4'), 'decimal double int long', 'to real');
SELECT is(accepted('float8'), 'decimal double int long', 'to double precision');
SELECT is(accepted('numeric'), 'decimal double int long', 'to numeric');
SELECT is(accepted('timestamptz'), 'date', 'to timestamptz');
SELECT is(accepted('timestamp'), 'date', 'to timestamp');
SELECT is(accepted('date'), 'date', 'to date');
SELECT is(accepted('uuid'), '', 'to uuid: not from other binary data');
SELECT is(accepted('objectid'), 'objectId', 'to objectid');
SELECT is(accepted('bytea'), 'binData', 'to bytea');
SELECT is(accepted('bson'), 'object', 'to bson');
SELECT is((SELECT count(*) FROM kinds WHERE v::text IS NOT NULL), 19::bigint, 'to text: all');
SELECT is((SELECT count(*) FROM kinds WHERE v::jsonb IS NOT NULL), 19::bigint, 'to jsonb: all');
SELECT is((SELECT count(*) FROM kinds WHERE v::text IS DISTINCT FROM (bson_build('v', v) ->> 'v')), 0::bigint, 'text is what ->> gives');
SELECT is((SELECT count(*) FROM kinds WHERE v::varchar IS DISTINCT FROM v::text OR v::name::text IS DISTINCT FROM left(v::text, 63)), 0::bigint, 'varchar and name as well');
SELECT throws_ok('SELECT ''"5"''::bson_value::int', '22023', 'cannot cast BSON string to type integer', 'the error names both types');
SELECT is('null'::bson_value::int, NULL, 'null is NULL');
SELECT is('{"$undefined": true}'::bson_value::text, NULL, 'so is undefined');

-- Limits of numbers.
SELECT is('32767'::bson_value::int2, 32767::int2, 'int2 max');
SELECT throws_ok('SELECT ''32768''::bson_value::int2', '22003', NULL, 'beyond int2');
SELECT is('-2147483648'::bson_value::int4, -2147483648, 'int4 min');
SELECT throws_ok('SELECT ''-2147483649''::bson_value::int4', '22003', NULL, 'beyond int4');
SELECT is('-9223372036854775808.0'::bson_value::int8, -9223372036854775808, 'a double that is the least bigint');
SELECT throws_ok('SELECT ''9223372036854775808.0''::bson_value::int8', '22003', NULL, 'a double that is one more than the largest');
SELECT throws_ok('SELECT ''-9223372036854777856.0''::bson_value::int8', '22003', NULL, 'a double that is less than the least');
SELECT throws_ok('SELECT ''0.5''::bson_value::int', '22003', NULL, 'a fraction');
SELECT throws_ok('SELECT (1.5)::bson_value::int', '22003', NULL, 'a fraction of a decimal128');
SELECT throws_ok('SELECT ''NaN''::float8::bson_value::int', '22003', NULL, 'NaN is no integer');
SELECT throws_ok('SELECT ''NaN''::numeric::bson_value::int8', '22003', NULL, 'nor is that of a decimal128');
SELECT throws_ok('SELECT ''1e39''::bson_value::float4', '22003', NULL, 'beyond real');
SELECT throws_ok('SELECT (1e309::numeric)::bson_value::float8', '22003', NULL, 'beyond double precision');
SELECT throws_ok('SELECT (1e-400::numeric)::bson_value::float8', '22003', NULL, 'too small for double precision');
SELECT is((1e-310::numeric)::bson_value::float8, 1e-310::float8, 'subnormal doubles are fine');
SELECT is('9007199254740993'::bson_value::numeric, 9007199254740993::numeric, 'an int64 to numeric is exact');
SELECT is((0.1::float8)::bson_value::numeric::text, '0.1', 'a double to numeric has its own digits');
SELECT is(('Infinity'::float8)::bson_value::numeric::text, 'Infinity', 'infinity to numeric');
SELECT is((1.100)::bson_value::numeric::text, '1.100', 'numeric there and back');
SELECT is('{"$binary": {"base64": "AQI=", "subType": "02"}}'::bson_value::bytea, '\x0102'::bytea, 'old binary data without its inner length');
SELECT is('2024-05-06 07:08:09.123+00'::timestamptz::bson_value::timestamptz, '2024-05-06 07:08:09.123+00'::timestamptz, 'milliseconds survive');
SELECT is('2024-05-06 23:59'::timestamp::bson_value::date, date '2024-05-06', 'the day in UTC');
SET LOCAL timezone = 'Asia/Tokyo';
SELECT is('2024-05-06 23:59'::timestamp::bson_value::date, date '2024-05-06', 'whatever the time zone');
SELECT is('2024-05-06 23:59'::timestamp::bson_value::timestamp, timestamp '2024-05-06 23:59', 'the same for timestamp');
SELECT throws_ok('SELECT ''"a\u0000b"''::bson_value::text', '22P05', NULL, 'a null character is no text');
SELECT throws_ok($$SELECT repeat('x', 17000000)::bson_value$$, '54000', NULL, 'a string beyond the limit');

-- Every value through every cast back is the same.
SELECT is((SELECT count(*) FROM (VALUES (to_bson(5)), (to_bson(5::bigint)), (to_bson(1.5::float8)), (to_bson(1.50)), (to_bson('x'::text)), (to_bson(true)),
  (to_bson(now())), (to_bson('00112233-4455-6677-8899-aabbccddeeff'::uuid)), (to_bson('\x01'::bytea)), (to_bson('{"a": [1, "x", null]}'::jsonb)),
  (to_bson(ARRAY[1, 2])), (to_bson('507f191e810c19729de860ea'::objectid))) AS t (v) WHERE v::jsonb::bson_value IS DISTINCT FROM v), 0::bigint, 'values survive jsonb');
SELECT is((SELECT count(*) FROM kinds WHERE v::jsonb::bson_value IS DISTINCT FROM v), 0::bigint, 'of every type');

SELECT * FROM finish();
ROLLBACK;
