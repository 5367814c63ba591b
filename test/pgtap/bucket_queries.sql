-- Queries of relations of measurements in which order, types or dead rows are unlike those of most: a plain twin answers each of them, too.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(42);

CREATE SCHEMA bucket_queries;
SET search_path = bucket_queries, public;

-- Dead buckets --------------------------------------------------------------------------------------------------------------

-- Committed, so that a scan in the order of the index finds entries that nobody sees any more and remembers them, between rows that need memory.
SELECT bucket_create('dead', columns => 'g int, ts timestamptz, v int', group_by => '{g}', time_field => 'ts', span => '1 hour') \g /dev/null
INSERT INTO dead SELECT g, timestamptz '2024-01-01' + i * interval '1 hour', i FROM generate_series(1, 3) g, generate_series(0, 3000) i;
DELETE FROM dead WHERE v % 7 <> 0;

BEGIN;
SET LOCAL enable_sort = off;
SELECT is((SELECT count(*) FROM (SELECT g, ts, repeat(v || '#', 100 + v) FROM dead WHERE g >= 1 ORDER BY g, ts OFFSET 0) x), 1287::bigint,
          'ordered, over buckets that were deleted');
SELECT is((SELECT sum(length(z)) FROM (SELECT g, ts, repeat(v || '#', 100 + v) AS z FROM dead WHERE g >= 1 ORDER BY g DESC, ts DESC OFFSET 0) x),
          (SELECT sum(length(repeat(v || '#', 100 + v))) FROM dead), 'and backwards');

-- Orders and types ----------------------------------------------------------------------------------------------------------

SELECT bucket_create('r', columns => 'a int, b text, ts timestamptz, v int', group_by => '{a,b}', time_field => 'ts', span => '1 hour', max_count => 40) \g /dev/null
CREATE TABLE p (LIKE r);
INSERT INTO p SELECT i % 5 - 2, (ARRAY['x', 'y', 'y ', NULL])[1 + i % 4], timestamptz '2024-03-30' + i % 313 * interval '5 min', i FROM generate_series(1, 2200) i;
INSERT INTO r SELECT * FROM p WHERE v > 300;
DO $$ DECLARE one p; BEGIN FOR one IN SELECT * FROM p WHERE v <= 300 LOOP INSERT INTO r VALUES (one.*); END LOOP; END $$;

CREATE FUNCTION answers(query text, relation text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  result text[];
BEGIN
  EXECUTE format('SELECT array_agg(z::text) FROM (%s) z', replace(query, '%R', relation)) INTO result;
  RETURN result;
END $$;
CREATE FUNCTION same(query text) RETURNS text LANGUAGE sql AS $$ SELECT is(answers(query, 'r'), answers(query, 'p'), query) $$;

SET LOCAL random_page_cost = 0.1;
SELECT same('SELECT a, b, ts, min(v) FROM %R WHERE b IN (''x'', ''y'') GROUP BY a, b, ts ORDER BY a, b, ts');
SELECT same('SELECT a, b, ts FROM %R WHERE b IN (''x'', ''y'') AND a > -1 ORDER BY a, b, ts');
SELECT same('SELECT a, b, ts FROM %R WHERE b = ANY (''{y,x}'') ORDER BY a DESC, b DESC, ts DESC');
SELECT same('SELECT a, b, ts FROM %R WHERE b IN (''x'', ''y'') AND a IN (2, 0) ORDER BY a, b, ts');
SELECT same('SELECT a, b, ts FROM %R WHERE b IN (''x'', ''y'') AND a = 1 ORDER BY a, b, ts');

-- a column as another type of the same bytes, which has another order
SELECT same('SELECT count(*) FROM %R WHERE a::oid > 3');
SELECT same('SELECT count(*) FROM %R WHERE a::oid < 5 AND b = ''x''');
SELECT same('SELECT count(*) FROM %R WHERE a::oid = 2');
SELECT same('SELECT count(*) FROM %R WHERE a = 1 AND b::bpchar = ''y ''::bpchar');
SELECT same('SELECT count(*) FROM %R WHERE a = 1 AND b::varchar = ''y''');

-- times of other types, beyond the calendar of the column's
SELECT same('SELECT count(*) FROM %R WHERE ts < date ''5874897-01-01''');
SELECT same('SELECT count(*) FROM %R WHERE ts >= date ''5874897-01-01''');
SELECT same('SELECT count(*) FROM %R WHERE ts < date ''infinity'' AND ts > date ''-infinity''');
SET LOCAL timezone = 'America/New_York';
SELECT same('SELECT count(*) FROM %R WHERE ts > timestamp ''294276-12-31 23:59:59''');
SELECT same('SELECT count(*) FROM %R WHERE ts = timestamp ''2024-03-29 20:00''');

-- Several parts of one statement --------------------------------------------------------------------------------------------

-- They change measurements of one bucket; each sees the bucket as it was when the statement began.
SELECT bucket_create('w', columns => 'g int, ts timestamptz, v int, t text', group_by => '{g}', time_field => 'ts', span => '1 hour', max_count => 5000) \g /dev/null
CREATE TABLE w_plain (LIKE w);
INSERT INTO w SELECT 1, timestamptz '2024-01-01' + i * interval '1 s', i, 'a' FROM generate_series(0, 2999) i;
INSERT INTO w_plain SELECT * FROM w;
CREATE FUNCTION both_do(command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE replace(command, '%R', 'w');
  EXECUTE replace(command, '%R', 'w_plain');
  RETURN set_eq('SELECT * FROM w', 'SELECT * FROM w_plain', command);
END $$;
SELECT both_do('WITH a AS (UPDATE %R SET t = ''b'' WHERE v BETWEEN 10 AND 14) DELETE FROM %R WHERE v BETWEEN 15 AND 19');
SELECT both_do('WITH a AS (UPDATE %R SET t = ''c'' WHERE v = 20), b AS (UPDATE %R SET t = ''d'' WHERE v IN (21, 2999)), c AS (UPDATE %R SET ts = ts + interval ''1 day'' WHERE v = 22), '
               'd AS (DELETE FROM %R WHERE v = 24 RETURNING *) INSERT INTO %R SELECT g, ts, -v, t FROM d');
SELECT throws_ok('WITH a AS (UPDATE w SET t = ''b'' WHERE v = 30) DELETE FROM w WHERE v = 30', '27000', 'cannot change a measurement twice in one statement');
SELECT is_empty('SELECT * FROM pattern_check(''w'')', 'the bucket is sound');

-- A partition -----------------------------------------------------------------------------------------------------------------

CREATE TABLE parts (g int, ts timestamptz NOT NULL, v int) PARTITION BY LIST (g);
SELECT bucket_create('part_1', columns => 'g int, ts timestamptz, v int', group_by => '{g}', time_field => 'ts') \g /dev/null
ALTER TABLE parts ATTACH PARTITION part_1 FOR VALUES IN (1, 2);
INSERT INTO parts SELECT 1 + i % 2, timestamptz '2024-01-01' + i * interval '1 min', i FROM generate_series(1, 1500) i;
UPDATE parts SET g = 2 WHERE v <= 100;
SELECT is((SELECT count(*) FROM parts WHERE g = 2), 800::bigint, 'a partition takes measurements, packed and changed');
SELECT throws_ok('UPDATE parts SET g = 3 WHERE v = 7', '23514', NULL, 'none may leave it by an update');
SELECT throws_ok('INSERT INTO part_1 VALUES (3, ''2024-01-01'', 7)', '23514', NULL, 'or come from elsewhere');

-- Slots and spans -----------------------------------------------------------------------------------------------------------

CREATE FUNCTION with_slots(granularity interval, span interval) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM bucket_create('slots', columns => 'ts timestamptz, v int', time_field => 'ts', span => span, granularity => granularity);
  DROP FOREIGN TABLE slots;
  RETURN 'made';
EXCEPTION WHEN OTHERS THEN
  RETURN sqlstate;
END $$;
SELECT is(with_slots(g, s), state, format('slots of %s in spans of %s', g, s))
  FROM (VALUES (interval '7 min', interval '1 hour', '22023'), ('1 min', '1 hour', 'made'), ('100 ms', '1 s', 'made'), ('7 days', '1 month', '22023'),
               ('12 hours', '1 month', 'made'), ('1 month', '1 year', 'made'), ('5 months', '1 year', '22023'), ('1 hour', '1 day', 'made')) v (g, s, state);
SELECT bucket_create('slots', columns => 'ts timestamptz, v int', time_field => 'ts', span => '1 hour', granularity => '20 min') \g /dev/null
SELECT throws_ok('SELECT bucket_resize(''slots'', span => ''50 min'')', '22023', 'span 00:50:00 must be a multiple of granularity 00:20:00');

-- More groups than the tables in memory begin with, written by one statement and added up from headers --------------------------

CREATE SCHEMA bucket_many;
SET search_path = bucket_many, public;
SELECT bucket_create('many', columns => 'g int, name text COLLATE "C", ts timestamptz, v int2, x float4', group_by => '{g}', time_field => 'ts', span => '1 day') \g /dev/null
CREATE TABLE many_plain AS
  SELECT i % 1000 AS g, 'n' || i % 7 AS name, '2026-01-01'::timestamptz + (i / 1000) * interval '7 hours' AS ts, (i % 300)::int2 AS v, (i % 50)::float4 AS x FROM generate_series(1, 5000) i;
INSERT INTO many SELECT * FROM many_plain;
SELECT ok(bucket_pack('many') > 0, 'packed');
SELECT is_empty('(SELECT * FROM many_plain) EXCEPT ALL (SELECT * FROM many)', 'all measurements are there');
SELECT is((SELECT count(*)::int FROM many), 5000, 'and no others');
SELECT is_empty('(SELECT g, sum(v), min(v), max(v), count(*), min(x), max(x), sum(x) FROM many_plain GROUP BY g) EXCEPT ALL (SELECT g, sum(v), min(v), max(v), count(*), min(x), max(x), sum(x) FROM many GROUP BY g)',
                'a thousand groups');
SELECT is_empty($$(SELECT bucket_start('1 day', ts), g, sum(v) FROM many_plain GROUP BY 1, 2) EXCEPT ALL (SELECT bucket_start('1 day', ts), g, sum(v) FROM many GROUP BY 1, 2)$$, 'by day, too');
SELECT is_empty('(SELECT name, min(v) FROM many_plain GROUP BY 1) EXCEPT ALL (SELECT name, min(v) FROM many GROUP BY 1)', 'by a text with a collation of its own');
SELECT is((SELECT attcollation::regcollation::text FROM pg_attribute WHERE attrelid = 'many'::regclass AND attname = 'name'), '"C"', 'which the column has');
CREATE FUNCTION pg_temp.plan_of(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; result text := '';
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS off, VERBOSE) ' || q LOOP result := result || line || E'\n'; END LOOP;
  RETURN result;
END $$;
SELECT alike(pg_temp.plan_of($$SELECT g, sum(v) FROM many GROUP BY g$$), '%Groups: g%', 'EXPLAIN VERBOSE says what is grouped by');
SELECT alike(pg_temp.plan_of($$SELECT bucket_start('1 day', ts), g, sum(v) FROM many GROUP BY 1, 2$$), '%Groups: spans of ts, g%', 'and spans');
DROP SCHEMA bucket_many CASCADE;

SELECT finish();
ROLLBACK;
DROP SCHEMA bucket_queries CASCADE;
