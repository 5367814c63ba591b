-- Buckets beside tables of measurements: size, loading, single inserts, queries and deletes.
--   source        4,000,000 measurements: 1,000 sensors, one a minute, in the order of their times. The temperature is a slow
--                 random walk rounded to 0.1 that stays the same 7 times of 10, the moisture a whole number that does so as well
--   noisy         a quarter of the sensors: +-0.3 and +-1 added to each value
--   jittered      the same quarter: microseconds of delay added to each time (the others are at full minutes)
--   plain         what stands beside: a table with a btree on (sensor_id, ts), filled in the order of time
--   clustered     the same in the order of its index, for queries about one sensor
--   readings      buckets of an hour
-- psql variable scale: a percentage of the minutes. CPU time as everywhere, except for single inserts.
\set minutes 4000*:scale/100
DROP TABLE IF EXISTS source, plain, clustered, sensors, jsonb_buckets, ingest_plain, batches_plain, batches_costs;
DROP FOREIGN TABLE IF EXISTS readings, weighed, ingest_readings, batches_readings;
SET timezone = 'UTC';
SET max_parallel_maintenance_workers = 0;
SELECT setseed(0.5) \g /dev/null

-- Whether any operation of the shell pattern is asked for.
CREATE OR REPLACE FUNCTION asked(VARIADIC names text[]) RETURNS boolean LANGUAGE sql AS $$
  SELECT bool_or(n LIKE replace(current_setting('bench.only'), '*', '%')) FROM unnest(names) n $$;
-- As compare, for commands that run for many seconds: not warmed, at most three rounds, the cleanup before each.
CREATE OR REPLACE FUNCTION compare_long(name text, bar float8, base text, ours text, cleanup text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  base_costs float8[];
  our_costs float8[];
BEGIN
  IF NOT asked(name) THEN RETURN; END IF;
  FOR i IN 1 .. least(3, current_setting('bench.rounds')::int) LOOP
    EXECUTE cleanup;
    base_costs := base_costs || cost(base, 1);
    our_costs := our_costs || cost(ours, 1);
  END LOOP;
  RETURN QUERY SELECT line(name, percentile_disc(0.5) WITHIN GROUP (ORDER BY b), percentile_disc(0.5) WITHIN GROUP (ORDER BY o), bar,
                           format('%s-%s', round(min(o / b)::numeric, 3), round(max(o / b)::numeric, 3))) FROM unnest(base_costs, our_costs) t(b, o);
END $$;
-- Packs a query's measurements into buckets of a span; a line with the bytes of a measurement, indexes and all, beside those of a table.
CREATE OR REPLACE FUNCTION weigh(name text, bar float8, span interval, query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  plain_bytes float8;
  bytes float8;
BEGIN
  IF NOT asked(name) THEN RETURN; END IF;
  PERFORM bucket_create('weighed', columns_of => 'source', group_by => '{sensor_id}', time_field => 'ts', span => span);
  EXECUTE 'INSERT INTO weighed ' || query;
  PERFORM bucket_pack('weighed');
  SELECT (pg_total_relation_size('weighed_packed') + pg_total_relation_size('weighed_recent'))::float8 / count(*) INTO bytes FROM weighed;
  SELECT pg_total_relation_size('plain')::float8 / count(*) INTO plain_bytes FROM plain;
  DROP FOREIGN TABLE weighed;
  RETURN NEXT format('%s %s %s %s %s  %s', rpad(name, 40), lpad(round(plain_bytes::numeric, 1)::text, 9), lpad(round(bytes::numeric, 2)::text, 9),
    lpad(round((bytes / plain_bytes)::numeric, 4)::text, 7), lpad(coalesce(bar::text, '-'), 6), CASE WHEN bytes > bar THEN 'ABOVE' ELSE '' END)
    || result(name || ': bytes a measurement', bytes, bar);
END $$;

CREATE TABLE source (sensor_id int, ts timestamptz, temperature float8, moisture int);
INSERT INTO source
  SELECT s, timestamptz '2024-01-01' + m * interval '1 min', round((20 + sum(t) OVER w)::numeric, 1)::float8, 500 + sum(h) OVER w
  FROM (SELECT s, m, CASE WHEN a < 0.15 THEN -0.1 WHEN a < 0.3 THEN 0.1 ELSE 0 END AS t, CASE WHEN b < 0.15 THEN -1 WHEN b < 0.3 THEN 1 ELSE 0 END AS h
        FROM generate_series(1, 1000) s, LATERAL (SELECT m, random() AS a, random() AS b FROM generate_series(0 * s, :minutes - 1) m) r) x
  WINDOW w AS (PARTITION BY s ORDER BY m) ORDER BY m, s;
CREATE TABLE sensors AS SELECT s AS id FROM generate_series(1, 1000) s;
CREATE TABLE plain (LIKE source);
CREATE INDEX ON plain (sensor_id, ts);
SELECT bucket_create('readings', columns_of => 'source', group_by => '{sensor_id}', time_field => 'ts', span => '1 hour') \g /dev/null

SELECT format('measurements  %s of %s sensors', count(*), count(DISTINCT sensor_id)) FROM source;
\echo
\echo 'operation                                 plain ms    our ms   ratio    bar         spread of the ratio'
SELECT current_setting('data_directory') || '/bench.copy' AS file \gset
COPY source TO :'file';
SELECT compare_long('bulk load, COPY', 0.4, format('COPY plain FROM %L', :'file'), format('COPY readings FROM %L', :'file'), 'TRUNCATE plain; TRUNCATE readings');
COPY (SELECT) TO PROGRAM 'rm -f bench.copy; cat';
SELECT compare_long('bulk load, INSERT .. SELECT', 0.4, 'INSERT INTO plain SELECT * FROM source', 'INSERT INTO readings SELECT * FROM source', 'TRUNCATE plain; TRUNCATE readings');
-- what was not asked for has not been loaded
INSERT INTO plain SELECT * FROM source WHERE NOT EXISTS (SELECT FROM plain);
INSERT INTO readings SELECT * FROM source WHERE NOT EXISTS (SELECT FROM readings);
SELECT bucket_pack('readings') \g /dev/null
CREATE TABLE clustered AS TABLE plain ORDER BY sensor_id, ts;
CREATE INDEX ON clustered (sensor_id, ts);
VACUUM ANALYZE plain, clustered, sensors, readings_packed, readings_recent;
ANALYZE readings;

-- Queries about one sensor: many of them, with other constants each time, planned once as an application's prepared statements are.
CREATE OR REPLACE FUNCTION probe(rel text, prepared boolean, body text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format($f$CREATE OR REPLACE FUNCTION %I(times int, minutes int) RETURNS float8 LANGUAGE plpgsql AS $p$
    DECLARE s int; t timestamptz; r record; total float8 := 0;
    BEGIN
      FOR i IN 1 .. times LOOP
        s := 1 + i * 7919 %% 1000;
        t := timestamptz '2024-01-01' + (i * 104729 %% minutes) * interval '1 min';
        %s
        total := total + coalesce(r.v, 0);
      END LOOP;
      RETURN total;
    END $p$ $f$, 'probe_' || rel,
    CASE WHEN prepared THEN replace(body, 'SELECT v', 'SELECT v INTO r') || ';' ELSE format('EXECUTE %L INTO r USING s, t;', regexp_replace(regexp_replace(body, '\ms\M', '$1', 'g'), '\mt\M', '$2', 'g')) END);
END $$;
-- The body selects v, for sensor s and time t, from the relation %s.
CREATE OR REPLACE FUNCTION lookups(name text, bar float8, body text, prepared boolean DEFAULT true, base_rel text DEFAULT 'clustered') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  minutes int := (SELECT greatest(60, count(*) / 1000 - 1440) FROM source);
  base_sum float8;
  our_sum float8;
BEGIN
  IF NOT asked(name) THEN RETURN; END IF;
  PERFORM probe('base', prepared, format(body, base_rel)), probe('ours', prepared, format(body, 'readings'));
  EXECUTE 'SELECT probe_base(100, $1)' INTO base_sum USING minutes;
  EXECUTE 'SELECT probe_ours(100, $1)' INTO our_sum USING minutes;
  IF abs(base_sum - our_sum) > 1e-6 * abs(base_sum) THEN RAISE EXCEPTION '%: the table gives %, the buckets %', name, base_sum, our_sum; END IF;
  RETURN QUERY SELECT compare(name, bar, format('SELECT probe_base(1000, %s)', minutes), format('SELECT probe_ours(1000, %s)', minutes));
END $$;

\echo
\echo 'operation                                 plain ms    our ms   ratio    bar         spread of the ratio'
SELECT compare('avg per sensor over everything', 0.03, 'SELECT count(a) FROM (SELECT avg(temperature) AS a FROM plain GROUP BY sensor_id OFFSET 0) x',
               'SELECT count(a) FROM (SELECT avg(temperature) AS a FROM readings GROUP BY sensor_id OFFSET 0) x');
SELECT compare('last value of every sensor', 0.4, 'SELECT sum(temperature) FROM sensors, LATERAL (SELECT temperature FROM plain WHERE sensor_id = id ORDER BY ts DESC LIMIT 1) x',
               'SELECT sum(temperature) FROM sensors, LATERAL (SELECT temperature FROM readings WHERE sensor_id = id ORDER BY ts DESC LIMIT 1) x');
SELECT compare('full scan, all columns', 1.0, 'SELECT count(sensor_id), count(ts), count(temperature), count(moisture) FROM (SELECT * FROM plain OFFSET 0) x',
               'SELECT count(sensor_id), count(ts), count(temperature), count(moisture) FROM (SELECT * FROM readings OFFSET 0) x');
SELECT compare('stddev over everything', 0.15, 'SELECT stddev(temperature) FROM plain', 'SELECT stddev(temperature) FROM readings');
SELECT compare('sum with a filter', 0.3, 'SELECT sum(temperature) FILTER (WHERE moisture > 500) FROM plain', 'SELECT sum(temperature) FILTER (WHERE moisture > 500) FROM readings');
SELECT compare('avg of values above a bound', 0.15, 'SELECT avg(temperature) FROM plain WHERE temperature > 20', 'SELECT avg(temperature) FROM readings WHERE temperature > 20');
SELECT compare('last of every sensor, DISTINCT ON', 0.1, 'SELECT count(x) FROM (SELECT DISTINCT ON (sensor_id) * FROM plain ORDER BY sensor_id, ts DESC) x', 'SELECT count(x) FROM (SELECT DISTINCT ON (sensor_id) * FROM readings ORDER BY sensor_id, ts DESC) x');
SELECT compare('newest 100 of all sensors', 0.05, 'SELECT count(x) FROM (SELECT * FROM plain ORDER BY ts DESC LIMIT 100) x', 'SELECT count(x) FROM (SELECT * FROM readings ORDER BY ts DESC LIMIT 100) x');
SELECT compare('all in the order of time', 1.5, 'SELECT count(x) FROM (SELECT * FROM plain ORDER BY ts OFFSET 0) x', 'SELECT count(x) FROM (SELECT * FROM readings ORDER BY ts OFFSET 0) x');
\echo
\echo '1,000 queries                         clustered ms    our ms   ratio    bar         spread of the ratio'
SELECT lookups('one sensor, one day, avg', 0.2, $$SELECT v FROM (SELECT avg(temperature) AS v FROM %s WHERE sensor_id = s AND ts >= t AND ts < t + interval '1 day') x$$);
SELECT lookups('one sensor, one hour, raw rows', 1.0, $$SELECT v FROM (SELECT sum(temperature + moisture) + count(ts) AS v FROM (SELECT * FROM %s WHERE sensor_id = s AND ts >= t AND ts < t + interval '1 hour' OFFSET 0) y) x$$);
SELECT lookups('one day, planned each time', NULL, $$SELECT v FROM (SELECT avg(temperature) AS v FROM %s WHERE sensor_id = s AND ts >= t AND ts < t + interval '1 day') x$$, false);
SELECT lookups('one hour, planned each time', NULL, $$SELECT v FROM (SELECT sum(temperature + moisture) + count(ts) AS v FROM (SELECT * FROM %s WHERE sensor_id = s AND ts >= t AND ts < t + interval '1 hour' OFFSET 0) y) x$$, false);

-- One measurement of each of 1,000 buckets, in a transaction that is rolled back; beside the same measurement taken out of documents of an hour.
CREATE TABLE jsonb_buckets AS SELECT sensor_id, min(ts) AS start, jsonb_build_object('sensor_id', sensor_id, 'start_date', min(ts), 'measurements',
    jsonb_agg(jsonb_build_object('timestamp', ts, 'temperature', temperature, 'moisture', moisture) ORDER BY ts), 'transaction_count', count(*), 'sum_temperature', sum(temperature), 'sum_moisture', sum(moisture)) AS doc
  FROM source WHERE ts < timestamptz '2024-01-01 01:00' GROUP BY sensor_id;
ALTER TABLE jsonb_buckets ADD PRIMARY KEY (sensor_id, start);
VACUUM ANALYZE jsonb_buckets;
CREATE OR REPLACE FUNCTION rolled_back(command text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE n int;
BEGIN
  EXECUTE command;
  GET DIAGNOSTICS n = ROW_COUNT;
  RAISE SQLSTATE 'ROLLB';
EXCEPTION WHEN SQLSTATE 'ROLLB' THEN RETURN n;
END $$;
\echo
\echo 'operation                                 jsonb ms    our ms   ratio    bar         spread of the ratio'
SELECT compare('delete one of each of 1,000 buckets', 1.0,
               $$SELECT rolled_back('UPDATE jsonb_buckets SET doc = jsonb_set(jsonb_set(jsonb_set(doc #- ''{measurements,30}'', ''{transaction_count}'', to_jsonb((doc ->> ''transaction_count'')::int - 1)),
                    ''{sum_temperature}'', to_jsonb((doc ->> ''sum_temperature'')::float8 - (doc #>> ''{measurements,30,temperature}'')::float8)),
                    ''{sum_moisture}'', to_jsonb((doc ->> ''sum_moisture'')::int - (doc #>> ''{measurements,30,moisture}'')::int)) WHERE start = ''2024-01-01 00:00''')$$,
               $$SELECT rolled_back('DELETE FROM readings WHERE ts = ''2024-01-01 00:30''')$$);
VACUUM readings_packed;

\echo
\echo 'bytes a measurement, with indexes            plain      ours   ratio    bar'
SELECT weigh('size, 1 hour', 2.5, '1 hour', 'SELECT * FROM source');
SELECT weigh('size, 1,000 points', 0.8, '1000 min', 'SELECT * FROM source');
CREATE OR REPLACE VIEW noisy AS SELECT sensor_id, ts, round((temperature + (3 - abs(hashint8extended(sensor_id * 10000000::int8 + extract(epoch FROM ts)::int8, 1) % 7)) / 10.0)::numeric, 1)::float8 AS temperature,
    moisture + 1 - abs(hashint8extended(sensor_id * 10000000::int8 + extract(epoch FROM ts)::int8, 2) % 3)::int AS moisture FROM source WHERE sensor_id % 4 = 0;
SELECT weigh('size, noisy, 1 hour', 4, '1 hour', 'SELECT * FROM noisy');
SELECT weigh('size, noisy, 1,000 points', 1.3, '1000 min', 'SELECT * FROM noisy');
CREATE OR REPLACE VIEW jittered AS SELECT sensor_id, ts + abs(hashint8extended(sensor_id * 10000000::int8 + extract(epoch FROM ts)::int8, 3) % 200000) * interval '1 us' AS ts, temperature, moisture FROM source WHERE sensor_id % 4 = 0;
SELECT weigh('size, jittered, 1 hour', NULL, '1 hour', 'SELECT * FROM jittered');
SELECT weigh('size, jittered, 1,000 points', NULL, '1000 min', 'SELECT * FROM jittered');

-- Batches of 100 measurements in the order of time, each a transaction, turn by turn: 1,000 sensors, so that ten of them are
-- a minute; packing is part of the cost. CPU time.
CREATE TABLE batches_plain (LIKE source);
CREATE INDEX ON batches_plain (sensor_id, ts);
SELECT bucket_create('batches_readings', columns_of => 'source', group_by => '{sensor_id}', time_field => 'ts', span => '1 hour') \g /dev/null
CREATE TABLE batches_costs (rel text, turn int, cost float8);
CREATE OR REPLACE PROCEDURE insert_batches(n int) LANGUAGE plpgsql AS $$
DECLARE
  rel text;
  started float8;
BEGIN
  FOR turn IN 0 .. n / 20 - 1 LOOP
    FOREACH rel IN ARRAY CASE WHEN turn % 2 = 0 THEN '{plain,readings}'::text[] ELSE '{readings,plain}' END LOOP
      started := bench.cpu();
      FOR b IN turn * 20 .. turn * 20 + 19 LOOP
        IF rel = 'plain' THEN
          INSERT INTO bench.batches_plain
            SELECT 1 + i % 1000, timestamptz '2024-01-01 00:00+00' + i / 1000 * interval '1 min', 20 + (i / 7919 % 40) / 10.0::float8, i % 50 FROM generate_series(b * 100, b * 100 + 99) i;
        ELSE
          INSERT INTO bench.batches_readings
            SELECT 1 + i % 1000, timestamptz '2024-01-01 00:00+00' + i / 1000 * interval '1 min', 20 + (i / 7919 % 40) / 10.0::float8, i % 50 FROM generate_series(b * 100, b * 100 + 99) i;
        END IF;
        COMMIT;
      END LOOP;
      INSERT INTO bench.batches_costs VALUES (rel, turn, bench.cpu() - started);
    END LOOP;
  END LOOP;
END $$;
\echo
\echo 'operation                                 plain ms    our ms   ratio    bar         spread of the ratio'
SELECT asked('batches of 100 rows') AS batches \gset
\if :batches
CALL insert_batches(60 * :scale);
SELECT line('batches of 100 rows', sum(cost) FILTER (WHERE rel = 'plain'), sum(cost) FILTER (WHERE rel = 'readings'), 1.0) FROM batches_costs;
\endif

-- Single inserts: each a transaction, by two clients, each of which sends the measurements of its sensors minute by minute, so
-- that buckets fall due as they do in life. Wall-clock time.
CREATE TABLE ingest_plain (LIKE source);
CREATE INDEX ON ingest_plain (sensor_id, ts);
SELECT bucket_create('ingest_readings', columns_of => 'source', group_by => '{sensor_id}', time_field => 'ts', span => '1 hour') \g /dev/null
SELECT asked('single inserts, 2 clients') AS ingest \gset
\if :ingest
\setenv INGEST_ROUNDS :rounds
\setenv INGEST_SCALE :scale
\! bench/ingest.sh
\endif
DROP VIEW noisy, jittered;
