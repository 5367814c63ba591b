-- Relations of measurements beside hypertables of TimescaleDB: 1,000 sensors, one a minute, in the order of their times, as in
-- bucket.sql. A chunk is a day, as a bucket is; chunks are compressed by sensor.
-- psql variable scale: a percentage of 4,000 minutes.
CREATE EXTENSION IF NOT EXISTS timescaledb;
\set minutes 4000*:scale/100
SET timezone = 'UTC';
SELECT setseed(0.5) \g /dev/null
CREATE TABLE source (sensor_id int NOT NULL, ts timestamptz NOT NULL, temperature float8, moisture int);
INSERT INTO source
  SELECT s, timestamptz '2024-01-01' + m * interval '1 min', round((20 + sum(t) OVER w)::numeric, 1)::float8, 500 + sum(h) OVER w
  FROM (SELECT s, m, CASE WHEN a < 0.15 THEN -0.1 WHEN a < 0.3 THEN 0.1 ELSE 0 END AS t, CASE WHEN b < 0.15 THEN -1 WHEN b < 0.3 THEN 1 ELSE 0 END AS h
        FROM generate_series(1, 1000) s, LATERAL (SELECT m, random() AS a, random() AS b FROM generate_series(0 * s, :minutes - 1) m) r) x
  WINDOW w AS (PARTITION BY s ORDER BY m) ORDER BY m, s;
SELECT (timestamptz '2024-01-01' + (:minutes / 2) * interval '1 min')::text AS middle, count(*)::text AS n FROM source \gset

CREATE OR REPLACE PROCEDURE make_hyper() LANGUAGE plpgsql AS $$
BEGIN
  DROP TABLE IF EXISTS hyper;
  CREATE TABLE hyper (LIKE source);
  PERFORM create_hypertable('hyper', by_range('ts', interval '1 day'), create_default_indexes => false);
  CREATE INDEX ON hyper (sensor_id, ts);
  ALTER TABLE hyper SET (timescaledb.compress, timescaledb.compress_segmentby = 'sensor_id', timescaledb.compress_orderby = 'ts');
END $$;
CREATE OR REPLACE PROCEDURE make_tables() LANGUAGE plpgsql AS $$
BEGIN
  CALL make_hyper();
  DROP FOREIGN TABLE IF EXISTS readings;
  PERFORM bucket_create('readings', columns_of => 'source', group_by => '{sensor_id}', time_field => 'ts', span => '1 day', max_count => 1440);
END $$;
CREATE OR REPLACE FUNCTION load_hyper() RETURNS void LANGUAGE plpgsql AS $$
BEGIN INSERT INTO hyper SELECT * FROM source; PERFORM compress_chunk(c) FROM show_chunks('hyper') c; END $$;
CREATE OR REPLACE FUNCTION load_readings() RETURNS void LANGUAGE plpgsql AS $$
BEGIN INSERT INTO readings SELECT * FROM source; PERFORM bucket_pack('readings'); END $$;
-- One load of each, timed by CPU: loads are long
DO $$ DECLARE theirs float8; ours float8;
BEGIN
  CALL make_tables();
  theirs := cost('SELECT load_hyper()', 1);
  ours := cost('SELECT load_readings()', 1);
  PERFORM set_config('bench.load', line('load and compress', theirs, ours, 'infinity'), false);
END $$;
VACUUM ANALYZE hyper;
ANALYZE readings;
\echo
\echo 'measurements                           TimescaleDB ms        ms   ratio    bar'
SELECT current_setting('bench.load');
SELECT format('%s %s %s', rpad('bytes a measurement', 40), lpad(round(hypertable_size('hyper')::numeric / :n, 2)::text, 9),
  lpad(round((pg_total_relation_size('readings_packed') + pg_total_relation_size('readings_recent'))::numeric / :n, 2)::text, 9));
CREATE OR REPLACE FUNCTION beside(name text, query text) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT compare(name, 1, format(query, 'hyper'), format(query, 'readings')) $$;
SELECT beside('avg per sensor', 'SELECT sum(a) FROM (SELECT sensor_id, avg(temperature) AS a FROM %s GROUP BY sensor_id) q');
SELECT beside('avg per sensor and hour', 'SELECT sum(a) FROM (SELECT sensor_id, date_trunc(''hour'', ts), avg(temperature) AS a FROM %s GROUP BY 1, 2) q');
SELECT beside('stddev of everything', 'SELECT stddev(temperature) FROM %s');
SELECT beside('sum FILTER', 'SELECT sum(moisture) FILTER (WHERE temperature > 20) FROM %s');
SELECT beside('avg where temperature > 21', 'SELECT avg(temperature) FROM %s WHERE temperature > 21');
SELECT beside('last of each sensor, DISTINCT ON', 'SELECT sum(temperature) FROM (SELECT DISTINCT ON (sensor_id) * FROM %s ORDER BY sensor_id, ts DESC) q');
SELECT beside('newest 100', 'SELECT count(q) FROM (SELECT * FROM %s ORDER BY ts DESC LIMIT 100) q');
SELECT beside('an hour of a sensor, rows', format('SELECT count(q) FROM (SELECT * FROM %%s WHERE sensor_id = 500 AND ts >= %L AND ts < %1$L::timestamptz + interval ''1 hour'' OFFSET 0) q', :'middle'));
SELECT beside('a day of a sensor, avg', format('SELECT avg(temperature) FROM %%s WHERE sensor_id = 500 AND ts >= %L::timestamptz - interval ''1 day'' AND ts < %1$L', :'middle'));
SELECT beside('all rows', 'SELECT count(q) FROM (SELECT * FROM %s OFFSET 0) q');
SELECT beside('UPDATE of an hour of a sensor', format('UPDATE %%s SET moisture = moisture + 1 WHERE sensor_id = 500 AND ts >= %L AND ts < %1$L::timestamptz + interval ''1 hour''', :'middle'));
DROP TABLE hyper, source;
DROP FOREIGN TABLE readings;
