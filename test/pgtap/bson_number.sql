-- Numbers: exact comparison across int32, int64, double and decimal128, and equal hashes for equal numbers. The reference is
-- numeric: every number is made together with its exact value as a numeric.
BEGIN;
SELECT plan(44);
SET client_min_messages = warning;

-- Boundaries
SELECT ok('{"$numberLong": "9007199254740993"}'::bson_value > '9007199254740992.0'::bson_value, '2^53+1 as int64 is greater than 2^53 as double');
SELECT ok('{"$numberLong": "9007199254740992"}'::bson_value = '9007199254740992.0'::bson_value, '2^53 as int64 equals 2^53 as double');
SELECT ok('{"$numberLong": "9223372036854775807"}'::bson_value < '9223372036854775808.0'::bson_value, 'the greatest int64 is less than 2^63');
SELECT ok('{"$numberLong": "-9223372036854775808"}'::bson_value = '-9223372036854775808.0'::bson_value, 'the least int64 equals -2^63');
SELECT ok('{"$numberLong": "-9223372036854775808"}'::bson_value > '-9223372036854777856.0'::bson_value, 'the least int64 is greater than the double before it');
SELECT ok('{"$numberDecimal": "9223372036854775808"}'::bson_value > '{"$numberLong": "9223372036854775807"}'::bson_value, 'a decimal can be one more than the greatest int64');
SELECT ok('{"$numberDecimal": "9223372036854775807"}'::bson_value = '{"$numberLong": "9223372036854775807"}'::bson_value, 'a decimal can equal the greatest int64');
SELECT ok('{"$numberDecimal": "0.1"}'::bson_value < '0.1'::bson_value, 'decimal 0.1 is less than double 0.1');
SELECT ok('{"$numberDecimal": "0.3"}'::bson_value > '0.3'::bson_value, 'decimal 0.3 is greater than double 0.3');
SELECT ok('{"$numberDecimal": "0.5"}'::bson_value = '0.5'::bson_value, 'decimal 0.5 equals double 0.5');
SELECT ok('{"$numberDecimal": "1E+308"}'::bson_value < '1e308'::bson_value, 'decimal 1E+308 is less than double 1e308, which is a bit more');
SELECT ok('{"$numberDecimal": "1E+309"}'::bson_value > '1.7976931348623157e308'::bson_value, 'decimals go beyond the greatest double');
SELECT ok('{"$numberDecimal": "9.999999999999999999999999999999999E+6144"}'::bson_value < '{"$numberDouble": "Infinity"}'::bson_value, 'the greatest decimal is less than Infinity');
SELECT ok('{"$numberDecimal": "1E-6176"}'::bson_value > '0'::bson_value, 'the least decimal is greater than 0');
SELECT ok('{"$numberDecimal": "1E-6176"}'::bson_value < '4.9e-324'::bson_value, 'and less than the least double');
SELECT ok('{"$numberDecimal": "1.0"}'::bson_value = '{"$numberDecimal": "1.00000"}'::bson_value, 'trailing zeros do not count');
SELECT ok('{"$numberDecimal": "1E+3"}'::bson_value = '1000'::bson_value, 'an exponent is only a way to write');

-- Zeros, NaN, infinities
SELECT is(count(DISTINCT v)::int, 1, 'all zeros are equal')
FROM unnest(ARRAY['0', '0.0', '-0.0', '{"$numberLong": "0"}', '{"$numberDecimal": "0"}', '{"$numberDecimal": "-0"}',
                  '{"$numberDecimal": "0E+5"}', '{"$numberDecimal": "-0.000"}', '{"$numberDecimal": "0E-6176"}']::bson_value[]) v;
SELECT is(count(DISTINCT bson_value_hash(v))::int, 1, 'and have one hash')
FROM unnest(ARRAY['0', '0.0', '-0.0', '{"$numberLong": "0"}', '{"$numberDecimal": "-0"}', '{"$numberDecimal": "0E+5"}']::bson_value[]) v;
SELECT ok('{"$numberDouble": "NaN"}'::bson_value = '{"$numberDecimal": "NaN"}'::bson_value, 'NaN equals NaN across types');
SELECT is(bson_value_hash('{"$numberDouble": "NaN"}'), bson_value_hash('{"$numberDecimal": "NaN"}'), 'and has the same hash');
SELECT ok('{"$numberDouble": "NaN"}'::bson_value < '{"$numberDouble": "-Infinity"}'::bson_value, 'NaN is less than -Infinity');
SELECT ok('{"$numberDouble": "-Infinity"}'::bson_value = '{"$numberDecimal": "-Infinity"}'::bson_value, '-Infinity is one value');
SELECT ok('{"$numberDouble": "NaN"}'::bson_value > 'null'::bson_value, 'NaN is a number and comes after null');

-- A coefficient that is not canonical stands for 0 (10^34 as coefficient, and the long form of it).
SELECT is(array_agg((('\x18000000136100' || coefficient || '00')::bytea)::bson -> 'a' = '0'), ARRAY[true, true, false], 'coefficients beyond 34 digits count as 0')
FROM (VALUES ('00000000648e8d37c087adbe09ed4130'), ('01000000000000000000000000000060'), ('ffffffff638e8d37c087adbe09ed4130')) x(coefficient);

-- Random numbers against numeric. The exact value of m * 2^-k is m * 5^k with k decimals.
SELECT setseed(0.25);
\echo # seed 0.25
CREATE FUNCTION pg_temp.pow(b numeric, e int) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE r numeric := 1;
BEGIN
  FOR i IN 1 .. e LOOP r := r * b; END LOOP;
  RETURN r;
END $$;
CREATE FUNCTION pg_temp.double_exact(m bigint, e int) RETURNS numeric LANGUAGE sql AS $$
  SELECT CASE WHEN e >= 0 THEN m * pg_temp.pow(2, e) ELSE ((m * pg_temp.pow(5, -e))::text || 'e' || e)::numeric END
$$;
CREATE FUNCTION pg_temp.parse(t text) RETURNS bson_value LANGUAGE sql AS $$ SELECT bson_value_in(t::cstring) $$;
CREATE TEMP TABLE number (v bson_value, n numeric, kind text);
-- doubles of every size, and small ones with short fractions
INSERT INTO number
SELECT pg_temp.parse(format('{"$numberDouble": "%s"}', m::float8 * power(2::float8, e))), pg_temp.double_exact(m, e), 'double'
FROM (SELECT ((random() - 0.5) * 2 ^ (1 + random() * 52)::int)::bigint AS m, (random() * 240 - 120)::int AS e FROM generate_series(1, 150)) x;
INSERT INTO number
SELECT pg_temp.parse(format('{"$numberDouble": "%s"}', m::float8 * power(2::float8, e))), pg_temp.double_exact(m, e), 'double'
FROM (SELECT (random() * 64 - 32)::bigint AS m, (random() * -6)::int AS e FROM generate_series(1, 100)) x;
-- the same values, rounded to 34 digits and nudged, as decimals
INSERT INTO number
SELECT pg_temp.parse('{"$numberDecimal": "' || d || '"}'), d::numeric, 'decimal'
FROM (SELECT btrim(to_char(n * (1 + nudge), '9.' || repeat('9', 33) || 'EEEE')) AS d
      FROM number, (VALUES (0), (1e-33), (-1e-33), (1e-17), (-1e-16)) nudges(nudge)
      WHERE n <> 0) x;
-- short decimals, equal to short doubles and next to them
INSERT INTO number
SELECT pg_temp.parse(format('{"$numberDecimal": "%s"}', round(n + nudge, 12))), round(n + nudge, 12), 'decimal'
FROM (SELECT n FROM number WHERE kind = 'double' AND abs(n) < 1000 AND scale(n) < 8 LIMIT 100) x, (VALUES (0), (1e-12), (-1e-12)) nudges(nudge);
-- integers around powers of two, as int64, as decimals, and where they fit as int32
INSERT INTO number
SELECT pg_temp.parse(format('{"$numberLong": "%s"}', i)), i, 'int64'
FROM (SELECT (sign * pg_temp.pow(2, p) + d) AS i FROM generate_series(0, 62, 3) p, generate_series(-1, 1) d, (VALUES (1), (-1)) s(sign)) x;
INSERT INTO number SELECT pg_temp.parse(format('{"$numberDecimal": "%s.0"}', n)), n, 'decimal' FROM number WHERE kind = 'int64';
INSERT INTO number SELECT pg_temp.parse(n::text), n, 'int32' FROM number WHERE kind = 'int64' AND abs(n) < 2147483648;
INSERT INTO number SELECT pg_temp.parse(format('{"$numberDouble": "%s"}', n::float8)), n, 'double' FROM number WHERE kind = 'int64' AND abs(n) < 9007199254740992;

SELECT is((SELECT array_agg(DISTINCT bson_typeof(v) ORDER BY bson_typeof(v)) FROM number), ARRAY['decimal', 'double', 'int', 'long'], 'all four types take part');
SELECT cmp_ok((SELECT count(*) FROM number), '>', 1000::bigint, 'there are many numbers');
SELECT is(count(*)::int, 0, 'every pair compares as its exact values do')
FROM number a, number b WHERE sign(bson_value_cmp(a.v, b.v)) <> CASE WHEN a.n < b.n THEN -1 WHEN a.n > b.n THEN 1 ELSE 0 END;
SELECT cmp_ok((SELECT count(*) FROM number a, number b WHERE a.n = b.n AND a.kind < b.kind), '>', 100::bigint, 'many are equal across types');
SELECT is(count(*)::int, 0, 'equal numbers have equal hashes, for any seed')
FROM (SELECT n FROM number GROUP BY n HAVING count(DISTINCT bson_value_hash(v)) > 1 OR count(DISTINCT bson_value_hash_extended(v, 7)) > 1) x;
SELECT is((SELECT count(DISTINCT bson_value_hash_extended(v, 0)) FROM number), (SELECT count(DISTINCT n) FROM number), 'and different numbers different ones');
SELECT is(count(*)::int, 0, 'the short hash is the lower half of the long one for seed 0')
FROM number WHERE bson_value_hash(v) <> (bson_value_hash_extended(v, 0) << 32 >> 32)::int;
SELECT is(count(*)::int, 0, 'beside numeric each compares by its exact value')
FROM (SELECT * FROM number ORDER BY bson_value_hash(v) LIMIT 300) a, (SELECT DISTINCT n FROM number ORDER BY n LIMIT 300) b
WHERE (a.v < b.n) <> (a.n < b.n) OR (a.v = b.n) <> (a.n = b.n) OR (b.n < a.v) <> (b.n < a.n);
SELECT is(count(*)::int, 0, 'beside float8 too')
FROM (SELECT * FROM number ORDER BY bson_value_hash(v) LIMIT 300) a, (SELECT n, v::float8 AS d FROM number WHERE kind = 'double') b
WHERE (a.v < b.d) <> (a.n < b.n) OR (a.v = b.d) <> (a.n = b.n) OR (b.d < a.v) <> (b.n < a.n);
SELECT is(count(*)::int, 0, 'beside int8 too')
FROM (SELECT * FROM number ORDER BY bson_value_hash(v) LIMIT 300) a, (SELECT n, n::int8 AS i FROM number WHERE kind = 'int64') b
WHERE (a.v < b.i) <> (a.n < b.n) OR (a.v = b.i) <> (a.n = b.n) OR (b.i < a.v) <> (b.n < a.n);
SELECT is(count(*)::int, 0, 'hashes of numeric agree with those of equal numbers')
FROM number WHERE bson_value_hash_extended(v, 3) <> docpatterns.numeric_bson_hash_extended(n, 3);
SELECT is(count(*)::int, 0, 'sorting (with abbreviated keys) gives the order of the exact values')
FROM (SELECT n, lag(n) OVER (ORDER BY v) AS previous FROM number) x WHERE n < previous;

-- decimal128 <-> numeric
SELECT is(count(*)::int, 0, 'a decimal as numeric is its exact value') FROM number WHERE kind = 'decimal' AND v::numeric <> n;
SELECT is(('{"$numberDecimal": "12.500"}'::bson_value)::numeric::text, '12.500', 'the scale stays');
SELECT is((12.500::numeric::bson_value)::text, '12.500', 'and comes back');
SELECT is((1234567890123456789012345678901234000::numeric::bson_value)::numeric, 1234567890123456789012345678901234000, '34 digits and zeros fit');
SELECT throws_ok('SELECT 12345678901234567890123456789012345::numeric::bson_value', '22003', NULL, '35 digits do not');
SELECT throws_ok('SELECT 1e7000::numeric::bson_value', '22003', NULL, 'neither do too large exponents');

-- A numeric may hold what no decimal128 can; comparison is exact all the same.
SELECT ok('{"$numberDecimal": "0.1"}'::bson_value < 0.1000000000000000000000000000000000000000000000001
          AND '{"$numberDecimal": "0.1"}'::bson_value > 0.0999999999999999999999999999999999999999999999999
          AND '0.1'::bson_value = 0.1000000000000000055511151231257827021181583404541015625,
          'a numeric is not cut to 34 digits');
SELECT * FROM finish();
ROLLBACK;
