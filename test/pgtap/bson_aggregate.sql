-- sum, avg, min and max over bson_value.
BEGIN;
SELECT plan(50);
SET client_min_messages = warning;
CREATE FUNCTION pg_temp.sum_of(VARIADIC bson_value[]) RETURNS text LANGUAGE sql AS $$ SELECT bson_typeof(sum(v)) || ' ' || docpatterns.bson_value_out(sum(v))::text FROM unnest($1) v $$;
CREATE FUNCTION pg_temp.avg_of(VARIADIC bson_value[]) RETURNS text LANGUAGE sql AS $$ SELECT bson_typeof(avg(v)) || ' ' || docpatterns.bson_value_out(avg(v))::text FROM unnest($1) v $$;

-- The widest type decides; integers widen when they must.
SELECT is(pg_temp.sum_of('1', '2', '3'), 'int 6', 'int32 stays int32');
SELECT is(pg_temp.sum_of('2147483647', '1'), 'long 2147483648', 'and becomes int64 where it has to');
SELECT is(pg_temp.sum_of('2147483647', '1', '-1'), 'int 2147483647', 'only the total counts');
SELECT is(pg_temp.sum_of('1', '{"$numberLong": "2"}'), 'long {"$numberLong": "3"}', 'an int64 makes it int64');
SELECT is(pg_temp.sum_of('9223372036854775807', '9223372036854775807'), 'double 1.8446744073709552e+19', 'beyond int64 it is a double');
SELECT is(pg_temp.sum_of('9223372036854775807', '9223372036854775807', '-9223372036854775807', '-5'), 'long 9223372036854775802', 'not if it comes back');
SELECT is(pg_temp.sum_of('-9223372036854775808', '-1'), 'double -9.223372036854776e+18', 'the same below 0');
SELECT is(pg_temp.sum_of('1', '0.5'), 'double 1.5', 'a double makes it double');
SELECT is(pg_temp.sum_of('1', '0.5', '{"$numberDecimal": "0.25"}'), 'decimal {"$numberDecimal": "1.75"}', 'a decimal makes it decimal');
SELECT is(pg_temp.sum_of('{"$numberDecimal": "10.00"}', '{"$numberDecimal": "20.00"}'), 'decimal {"$numberDecimal": "30.00"}', 'decimals keep their scale');
SELECT is(pg_temp.sum_of('{"$numberDecimal": "0.1"}', '0.1'), 'decimal {"$numberDecimal": "0.2000000000000000055511151231257827"}', 'a double counts with its exact value, rounded to 34 digits at the end');
SELECT is(pg_temp.sum_of('{"$numberDecimal": "9.999999999999999999999999999999999E+6144"}', '{"$numberDecimal": "1E+6144"}'), 'decimal {"$numberDecimal": "Infinity"}', 'beyond the greatest decimal is Infinity');
SELECT is(pg_temp.sum_of('{"$numberDecimal": "9999999999999999999999999999999999"}', '{"$numberDecimal": "0.5"}'), 'decimal {"$numberDecimal": "1.000000000000000000000000000000000E+34"}', 'rounding may carry to a new digit');
SELECT is(pg_temp.sum_of('{"$numberDecimal": "1000000000000000000000000000000000"}', '{"$numberDecimal": "0.5"}'), 'decimal {"$numberDecimal": "1000000000000000000000000000000000"}', 'half goes to even');
SELECT is(pg_temp.sum_of('9223372036854775807', '9223372036854775807', '9223372036854775807', '{"$numberDecimal": "0.5"}'), 'decimal {"$numberDecimal": "27670116110564327421.5"}', 'integers beyond int64 are exact beside a decimal');
SELECT is(pg_temp.sum_of('-9223372036854775807', '-9223372036854775807', '{"$numberDecimal": "0"}'), 'decimal {"$numberDecimal": "-18446744073709551614"}', 'also below 0');

-- What is not a number is passed over; without numbers there is no sum.
SELECT is(pg_temp.sum_of('1', '"5"', 'true', 'null', NULL, '[1, 2]', '{"a": 1}', '{"$date": 5}'), 'int 1', 'only numbers count');
SELECT is(pg_temp.avg_of('1', '"5"', '2', 'null', NULL), 'double 1.5', 'also for the average');
SELECT is(pg_temp.sum_of('"a"', 'null', NULL), NULL, 'no number, no sum');
SELECT is(pg_temp.avg_of('"a"', 'null', NULL), NULL, 'and no average');
SELECT is((SELECT sum(v) FROM (SELECT '1'::bson_value AS v WHERE false) x), NULL, 'no rows, no sum');

-- Doubles
SELECT is(pg_temp.sum_of('1e100', '1.0', '-1e100'), 'double 1.0', 'what rounding loses comes back');
SELECT is((SELECT sum(v) FROM (SELECT '0.1'::bson_value AS v FROM generate_series(1, 10)) x), '1.0'::bson_value, 'ten times 0.1 is 1');
SELECT is(pg_temp.sum_of('9007199254740993', '0.0', '-9007199254740992'), 'double 1.0', 'integers are not rounded before the end');
SELECT is(pg_temp.sum_of('{"$numberDouble": "Infinity"}', '1.5', '1'), 'double {"$numberDouble": "Infinity"}', 'Infinity stays');
SELECT is(pg_temp.sum_of('{"$numberDouble": "Infinity"}', '{"$numberDouble": "-Infinity"}'), 'double {"$numberDouble": "NaN"}', 'two infinities are NaN');
SELECT is(pg_temp.sum_of('{"$numberDouble": "NaN"}', '1.5', '1'), 'double {"$numberDouble": "NaN"}', 'NaN stays');
SELECT is(pg_temp.sum_of('{"$numberDecimal": "1"}', '{"$numberDouble": "NaN"}'), 'decimal {"$numberDecimal": "NaN"}', 'also as a decimal');
SELECT is(pg_temp.sum_of('{"$numberDecimal": "Infinity"}', '{"$numberDouble": "-Infinity"}'), 'decimal {"$numberDecimal": "NaN"}', 'infinities of both types');

-- Averages
SELECT is(pg_temp.avg_of('1', '2'), 'double 1.5', 'the average of integers is a double');
SELECT is(pg_temp.avg_of('2', '2'), 'double 2.0', 'always');
SELECT is(pg_temp.avg_of('9223372036854775807', '9223372036854775807'), 'double 9.223372036854776e+18', 'the total may exceed int64');
SELECT is(pg_temp.avg_of('{"$numberDecimal": "10.00"}', '{"$numberDecimal": "20.00"}'), 'decimal {"$numberDecimal": "15.00"}', 'decimals keep their scale');
SELECT is(pg_temp.avg_of('{"$numberDecimal": "1"}', '0', '0'), 'decimal {"$numberDecimal": "0.3333333333333333333333333333333333"}', 'and give 34 digits');
SELECT is(pg_temp.avg_of('{"$numberDecimal": "-2"}', '0', '0'), 'decimal {"$numberDecimal": "-0.6666666666666666666666666666666667"}', 'rounded');
SELECT is(pg_temp.avg_of('{"$numberDecimal": "2E-6176"}', '0', '0', '0'), 'decimal {"$numberDecimal": "0E-6176"}', 'down to the least decimal: half of it is even 0');
SELECT is(pg_temp.avg_of('{"$numberDecimal": "0"}', '0'), 'decimal {"$numberDecimal": "0"}', 'of nothing but zeros');
SELECT is(pg_temp.avg_of('{"$numberDecimal": "Infinity"}', '0'), 'decimal {"$numberDecimal": "Infinity"}', 'of an infinity');

-- min and max
SELECT is((SELECT bson_array(min(v), max(v)) FROM unnest(ARRAY['5', '"a"', NULL, 'true', '2.5', '{"$numberLong": "7"}']::bson_value[]) v), '[2.5, true]'::bson_value, 'min and max go across types and ignore SQL NULL');
SELECT is((SELECT min(v) FROM unnest(ARRAY['5', 'null']::bson_value[]) v), 'null'::bson_value, 'the null of BSON is a value');
SELECT is((SELECT max(v) FROM unnest(ARRAY[NULL, NULL]::bson_value[]) v), NULL, 'nothing gives NULL');
CREATE TEMP TABLE t AS SELECT bson_build('n', (i * 7919) % 10007) AS doc FROM generate_series(1, 3000) i;
CREATE INDEX ON t ((doc -> 'n'));
ANALYZE t;
CREATE FUNCTION pg_temp.plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; result text := '';
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP result := result || line; END LOOP;
  RETURN result;
END $$;
SELECT alike(pg_temp.plan_of('SELECT max(doc -> ''n'') FROM t'), '%Limit%Index Scan Backward%', 'an index answers max');
SELECT is((SELECT ARRAY[min(doc -> 'n')::int, max(doc -> 'n')::int] FROM t), (SELECT ARRAY[min((doc -> 'n')::int), max((doc -> 'n')::int)] FROM t), 'with the right answers');

-- Parallel: integers, doubles and decimals agree with numeric. What is asked for inside of is() is never taken in parallel, since
-- that function is not safe for it, so the answers come from a table.
CREATE TABLE parallel_sum AS
SELECT bson_build('i', (i * 7919) % 10007 - 5000, 'd', ((i * 7919) % 10007) / 8.0::float8, 'm', ((i * 7919) % 10007 / 100.0)::numeric(10, 2),
                  'x', CASE i % 3 WHEN 0 THEN to_bson(i) WHEN 1 THEN to_bson(i / 4.0::float8) ELSE to_bson('no number'::text) END) AS doc
FROM generate_series(1, 20000) i;
ANALYZE parallel_sum;
SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0; SET LOCAL max_parallel_workers_per_gather = 2;
SELECT alike(pg_temp.plan_of('SELECT sum(doc -> ''i'') FROM parallel_sum'), '%Finalize Aggregate%Partial Aggregate%', 'sums are taken in parallel');
CREATE TABLE parallel_answer AS SELECT sum(doc -> 'i') AS i, sum(doc -> 'd') AS d, sum(doc -> 'm') AS m, min(doc -> 'i') AS least, max(doc -> 'm') AS most, sum(doc -> 'x') AS x, avg(doc -> 'm') AS mean FROM parallel_sum;
CREATE TABLE parallel_groups AS SELECT doc -> 'i' AS i, sum(doc -> 'm') AS m FROM parallel_sum GROUP BY 1;
SELECT is((SELECT ARRAY[i::numeric, d::numeric, m::numeric, least::numeric, most::numeric] FROM parallel_answer),
          (SELECT ARRAY[sum((doc -> 'i')::numeric), sum((doc -> 'd')::numeric), sum((doc -> 'm')::numeric), min((doc -> 'i')::numeric), max((doc -> 'm')::numeric)] FROM parallel_sum),
          'and are right');
SELECT is_empty('(SELECT i, m FROM parallel_groups) EXCEPT ALL (SELECT doc -> ''i'', to_bson(sum((doc -> ''m'')::numeric)) FROM parallel_sum GROUP BY 1)', 'in groups too');
SELECT is((SELECT ARRAY[sum(doc -> 'i')::numeric, sum(doc -> 'd')::numeric, sum(doc -> 'm')::numeric, min(doc -> 'i')::numeric, max(doc -> 'm')::numeric] FROM parallel_sum),
          (SELECT ARRAY[sum((doc -> 'i')::numeric), sum((doc -> 'd')::numeric), sum((doc -> 'm')::numeric), min((doc -> 'i')::numeric), max((doc -> 'm')::numeric)] FROM parallel_sum),
          'as without workers');
SELECT is((SELECT x::numeric FROM parallel_answer), (SELECT sum(CASE i % 3 WHEN 0 THEN i WHEN 1 THEN i / 4.0 END) FROM generate_series(1, 20000) i), 'also when types are mixed');
SELECT is((SELECT mean::numeric(20, 10) FROM parallel_answer), (SELECT avg((doc -> 'm')::numeric)::numeric(20, 10) FROM parallel_sum), 'averages too');
SELECT is(count(*)::int, 4, 'the four aggregates are parallel safe and can be combined')
FROM pg_proc p JOIN pg_aggregate a ON a.aggfnoid = p.oid
WHERE proname IN ('sum', 'avg', 'min', 'max') AND proargtypes[0] = 'bson_value'::regtype AND proparallel = 's' AND aggcombinefn <> 0;
SELECT * FROM finish();
ROLLBACK;
