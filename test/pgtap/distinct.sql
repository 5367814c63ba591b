-- Sketches of distinct values.
BEGIN;
SELECT plan(32);
SET client_min_messages = warning;

SELECT is((SELECT string_agg(format('%s %s%s%s', p.oid::regprocedure, provolatile, proparallel, proisstrict), E'\n' ORDER BY p.oid::regprocedure::text COLLATE "C") FROM pg_proc p WHERE proname IN ('bson_distinct_add', 'bson_distinct_merge', 'bson_distinct_count', 'bson_distinct_agg', 'bson_distinct_merge_agg')),
  E'bson_distinct_add(bson_value,anycompatible) ssf\nbson_distinct_agg(anycompatible) isf\nbson_distinct_agg(bson_value) isf\nbson_distinct_agg(text) isf\nbson_distinct_count(bson_value) ist\nbson_distinct_merge(bson_value,bson_value) isf\nbson_distinct_merge_agg(bson_value) isf', 'the functions');

-- few values
CREATE FUNCTION pg_temp.sketch(since int, until int) RETURNS bson_value LANGUAGE sql AS $$ SELECT bson_distinct_agg(i) FROM generate_series(since, until) i $$;
SELECT is(bson_distinct_count(pg_temp.sketch(1, 0)), 0::bigint, 'nothing');
SELECT is(bson_typeof(pg_temp.sketch(1, 0)), 'binData', 'is a sketch too');
SELECT is((SELECT array_agg(n) FROM generate_series(1, 300) n WHERE bson_distinct_count(pg_temp.sketch(1, n)) <> n), NULL, 'up to 300 values are counted one by one');
SELECT ok(length(pg_temp.sketch(1, 10)::bytea) < 60 AND length(pg_temp.sketch(1, 300)::bytea) < 1290, 'small sets are small');
SELECT is(length(pg_temp.sketch(1, 100000)::bytea), 1282, 'large ones have 1,282 bytes');
SELECT is((SELECT bson_distinct_count(bson_distinct_agg(NULL::int)) FROM generate_series(1, 5)), 0::bigint, 'SQL NULL does not count');
SELECT is((SELECT bson_distinct_count(bson_distinct_agg(v)) FROM unnest(ARRAY['1', '1.0', '{"$numberLong": "1"}', '{"$numberDecimal": "1.00"}', '"1"', 'null', 'null', NULL, '[1]', '[1.0]', '{"a": 1}']::bson_value[]) v), 5::bigint, 'equal values count once, whatever their types');

-- adding
SELECT is(bson_distinct_count(bson_distinct_add(NULL, 'ada')), 1::bigint, 'NULL is an empty sketch, an untyped literal is text');
SELECT is(bson_distinct_add('null', 'ada'::text), bson_distinct_add(NULL, 'ada'), 'and so is null');
SELECT is(bson_distinct_add(bson_distinct_add(NULL, 1), 1.0::float8), bson_distinct_add(NULL, 1::bigint), 'what is there is not added');
SELECT is(bson_distinct_count(bson_distinct_add(NULL, NULL::text)), 0::bigint, 'NULL adds nothing');
SELECT is((SELECT bson_distinct_count(bson_distinct_add(bson_distinct_add(pg_temp.sketch(1, 299), 300), 299))), 300::bigint, 'the three hundredth value');
SELECT is(bson_distinct_add(bson_distinct_add(pg_temp.sketch(1, 300), 301), 302), pg_temp.sketch(1, 302), 'beyond 300 one by one is as all at once');
SELECT is((WITH RECURSIVE r(i, s) AS (SELECT 1000, pg_temp.sketch(1, 1000) UNION ALL SELECT i + 1, bson_distinct_add(s, i + 1) FROM r WHERE i < 1500) SELECT s FROM r WHERE i = 1500), pg_temp.sketch(1, 1500), 'and so it goes on');
CREATE TABLE pages (doc bson);
INSERT INTO pages VALUES ('{_id: "home"}');
UPDATE pages SET doc = bson_set(doc, 'visitors', bson_distinct_add(doc -> 'visitors', 'ada'));
UPDATE pages SET doc = bson_set(doc, 'visitors', bson_distinct_add(doc -> 'visitors', 'bob'));
UPDATE pages SET doc = bson_set(doc, 'visitors', bson_distinct_add(doc -> 'visitors', 'ada'));
SELECT is((SELECT bson_distinct_count(doc -> 'visitors') FROM pages), 2::bigint, 'as a field of a document');
SELECT is((SELECT (doc::text)::bson::bytea FROM pages), (SELECT doc::bytea FROM pages), 'that can be written as text');

-- merging
SELECT is(bson_distinct_merge(pg_temp.sketch(1, 100), pg_temp.sketch(51, 200)), pg_temp.sketch(1, 200), 'few and few');
SELECT is(bson_distinct_merge(pg_temp.sketch(1, 200), pg_temp.sketch(151, 400)), pg_temp.sketch(1, 400), 'that become many');
SELECT is(bson_distinct_merge(pg_temp.sketch(1, 200), pg_temp.sketch(100, 9000)), pg_temp.sketch(1, 9000), 'few and many');
SELECT is(bson_distinct_merge(pg_temp.sketch(100, 9000), pg_temp.sketch(1, 200)), pg_temp.sketch(1, 9000), 'many and few');
SELECT is(bson_distinct_merge(pg_temp.sketch(1, 6000), pg_temp.sketch(3000, 9000)), pg_temp.sketch(1, 9000), 'many and many');
SELECT is(bson_distinct_merge(NULL, pg_temp.sketch(1, 5)), pg_temp.sketch(1, 5), 'NULL is empty');
SELECT is((SELECT bson_distinct_merge_agg(pg_temp.sketch(i * 100, i * 100 + 150)) FROM generate_series(0, 9) i), pg_temp.sketch(0, 1050), 'all sketches of a column');

-- the same by parallel workers (into a table: nothing inside of is() is taken in parallel, since that function is not safe for it)
CREATE TABLE many AS SELECT i FROM generate_series(1, 20000) i;
SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0; SET LOCAL max_parallel_workers_per_gather = 2;
CREATE TABLE by_workers AS SELECT bson_distinct_agg(i) AS s, bson_distinct_agg(i) FILTER (WHERE i < 100) AS few, bson_distinct_agg(i) FILTER (WHERE i < 0) AS none FROM many;
SELECT is((SELECT ARRAY[s, few, none] FROM by_workers), ARRAY[pg_temp.sketch(1, 20000), pg_temp.sketch(1, 99), pg_temp.sketch(1, 0)], 'partial sketches are combined');

-- 200 sets of 5,000 values: the standard error is 1.9 % there, known within a tenth of it
SELECT ok(rms BETWEEN 0.016 AND 0.022 AND abs(bias) < 0.006, format('root mean square error %s, mean %s', rms, bias)) FROM
  (SELECT round(sqrt(avg(power(n / 5000.0 - 1, 2))), 4) AS rms, round(avg(n / 5000.0 - 1), 4) AS bias FROM
    (SELECT bson_distinct_count(bson_distinct_agg(s * 5000 + i)) AS n FROM generate_series(1, 200) s, generate_series(1, 5000) i GROUP BY s) q) r;

-- the hash and the layout are frozen
SELECT is(bson_distinct_add(bson_distinct_add(NULL, 1), 'ada')::text, '{"$binary": {"base64": "AQCi78hkv9mi9gc=", "subType": "80"}}', 'a sketch of two values');
SELECT is((SELECT md5(pg_temp.sketch(1, 20000)::bytea)), '1da8aa3953453442e63dcbeca62ef672', 'and of many');

-- what is no sketch
SELECT throws_ok($$SELECT bson_distinct_count('5')$$, '22023', 'argument must be a sketch of distinct values', 'a number');
SELECT throws_ok($$SELECT bson_distinct_count('{"$binary": {"base64": "AQAA", "subType": "00"}}')$$, '22023', NULL, 'another Binary');
SELECT throws_ok($$SELECT bson_distinct_count('{"$binary": {"base64": "AgAA", "subType": "80"}}')$$, 'XX001', NULL, 'another version');
CREATE FUNCTION pg_temp.damage() RETURNS text LANGUAGE plpgsql AS $$
DECLARE good bytea[] := ARRAY[pg_temp.sketch(1, 20)::bytea, pg_temp.sketch(1, 2000)::bytea]; b bytea; v bson_value; answers int := 0; corrupt int := 0;
BEGIN
  PERFORM setseed(0.3);
  FOR i IN 1..2000 LOOP
    b := good[1 + i % 2];
    FOR j IN 0..(random() * 2)::int LOOP b := set_byte(b, (random() * (length(b) - 1))::int, (random() * 255)::int); END LOOP;
    IF random() < 0.3 THEN b := substr(b, 1, (random() * length(b))::int); END IF;
    v := ('{"v": {"$binary": {"base64": "' || replace(encode(b, 'base64'), E'\n', '') || '", "subType": "80"}}}')::bson -> 'v';
    BEGIN
      PERFORM bson_distinct_count(bson_distinct_merge(v, bson_distinct_add(v, i)));
      answers := answers + 1;
    EXCEPTION WHEN data_corrupted THEN corrupt := corrupt + 1;
    END;
  END LOOP;
  RETURN format('%s answers, %s errors', answers > 300, corrupt > 300);
END $$;
SELECT is(pg_temp.damage(), 't answers, t errors', 'seed 0.3: damaged sketches are refused or read');
SELECT * FROM finish();
ROLLBACK;
