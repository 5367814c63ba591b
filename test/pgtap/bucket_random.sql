-- Random writes to relations of measurements, with the same writes to plain tables: afterwards both hold the same, and pattern_check
-- has nothing to report. The seed is printed and fixed.
SET client_min_messages = warning;
SET timezone = 'UTC';
BEGIN;
SELECT plan(9);
SELECT diag('seed 0.42');

CREATE SCHEMA bucket_random;
SET search_path = bucket_random, public;

-- One measurement in every fifth is late; values repeat, are null, are large; some statements bring one row, some hundreds, some thousands.
CREATE PROCEDURE play(rel text, twin text, steps int, paged boolean) LANGUAGE plpgsql AS $$
DECLARE
  i int;
  what float8;
  n int;
  bound int;
  g int;
BEGIN
  FOR i IN 1 .. steps LOOP
    what := random();
    g := floor(random() * 4)::int;
    bound := i * 40;
    DROP TABLE IF EXISTS batch;
    IF what < 0.45 THEN
      n := CASE WHEN random() < 0.6 THEN 1 WHEN random() < 0.8 THEN floor(random() * 200)::int ELSE 1000 + floor(random() * 1500)::int END;
      CREATE TEMP TABLE batch AS
        SELECT floor(random() * 4)::int AS g, timestamptz '2024-03-30' + (bound + floor(random() * n) - CASE WHEN random() < 0.2 THEN floor(random() * bound) ELSE 0 END) * interval '47 s' AS ts,
               CASE WHEN random() < 0.1 THEN NULL ELSE round((20 + random())::numeric, 1)::float8 END AS v,
               CASE WHEN random() < 0.05 THEN NULL ELSE 'w' || floor(random() * 5) END AS w, (random() * 1e6)::bigint AS id
        FROM generate_series(1, n);
      IF n = 1 THEN
        EXECUTE format('INSERT INTO %s SELECT * FROM batch', twin);
        EXECUTE format('INSERT INTO %s VALUES (%s)', rel, (SELECT concat_ws(', ', quote_nullable(b.g), quote_nullable(b.ts), quote_nullable(b.v), quote_nullable(b.w), quote_nullable(b.id)) FROM batch b));
      ELSE
        EXECUTE format('INSERT INTO %s SELECT * FROM batch', rel);
        EXECUTE format('INSERT INTO %s SELECT * FROM batch', twin);
      END IF;
    ELSIF what < 0.6 THEN
      EXECUTE format('UPDATE %s SET v = coalesce(v, 0) + 1, w = w || ''!'' WHERE g = %s AND id %% 37 = %s', rel, g, i % 37);
      EXECUTE format('UPDATE %s SET v = coalesce(v, 0) + 1, w = w || ''!'' WHERE g = %s AND id %% 37 = %s', twin, g, i % 37);
    ELSIF what < 0.65 THEN
      -- to another group, and to another time
      EXECUTE format('UPDATE %s SET g = (g + 1) %% 4, ts = ts + interval ''20 min'' WHERE id %% 53 = %s', rel, i % 53);
      EXECUTE format('UPDATE %s SET g = (g + 1) %% 4, ts = ts + interval ''20 min'' WHERE id %% 53 = %s', twin, i % 53);
    ELSIF what < 0.8 THEN
      EXECUTE format('DELETE FROM %s WHERE id %% 41 = %s', rel, i % 41);
      EXECUTE format('DELETE FROM %s WHERE id %% 41 = %s', twin, i % 41);
    ELSIF what < 0.85 THEN
      -- what is rolled back leaves nothing
      BEGIN
        EXECUTE format('DELETE FROM %s WHERE g = %s', rel, g);
        EXECUTE format('INSERT INTO %s SELECT 1, ''2024-03-30'', 1, ''x'', s FROM generate_series(1, 1200) s', rel);
        PERFORM bucket_pack(rel::regclass);
        RAISE EXCEPTION 'undone';
      EXCEPTION WHEN raise_exception THEN NULL;
      END;
    ELSIF what < 0.95 THEN
      PERFORM bucket_pack(rel::regclass, CASE WHEN random() < 0.5 AND NOT paged THEN timestamptz '2024-03-30' + bound * interval '47 s' END);
    ELSIF NOT paged THEN
      PERFORM bucket_resize(rel::regclass, span => (ARRAY['1 hour', '3 hours', '1 day', '1 month', '10 minutes'])[1 + floor(random() * 5)::int]::interval, max_count => 40 + floor(random() * 400)::int);
    END IF;
  END LOOP;
END $$;

CREATE FUNCTION differences(rel text, twin text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  n bigint;
BEGIN
  EXECUTE format('SELECT (SELECT count(*) FROM (SELECT * FROM %1$s EXCEPT ALL SELECT * FROM %2$s) x) + (SELECT count(*) FROM (SELECT * FROM %2$s EXCEPT ALL SELECT * FROM %1$s) x)', rel, twin) INTO n;
  RETURN n;
END $$;

SELECT setseed(0.42);
SELECT bucket_create('readings', columns => 'g int, ts timestamptz, v float8, w text, id bigint', group_by => '{g}', time_field => 'ts', span => '1 hour', time_zone => 'Europe/Berlin', max_count => 50) \g /dev/null
CREATE TABLE readings_twin AS SELECT * FROM readings WITH NO DATA;
CALL play('readings', 'readings_twin', 160, false);
SELECT cmp_ok((SELECT count(*) FROM readings_twin), '>', 5000::bigint, 'there is something to compare');
SELECT is(differences('readings', 'readings_twin'), 0::bigint, 'readings: the measurements of the plain twin');
SELECT is_empty('SELECT * FROM pattern_check(''readings'')', 'readings: pattern_check has nothing to report');
SELECT bucket_pack('readings') \g /dev/null
SELECT is(differences('readings', 'readings_twin'), 0::bigint, 'readings: all packed, still the same');
SELECT is_empty('SELECT * FROM readings_recent', 'readings: nothing waits');
SELECT is_empty('SELECT * FROM pattern_check(''readings'')', 'readings: pattern_check still has nothing to report');

-- Pages have no order by time, but the same rows.
SELECT bucket_create('pages', columns => 'g int, ts timestamptz, v float8, w text, id bigint', group_by => '{g}', span => NULL, max_count => 10) \g /dev/null
CREATE TABLE pages_twin AS SELECT * FROM pages WITH NO DATA;
CALL play('pages', 'pages_twin', 60, true);
SELECT cmp_ok((SELECT count(*) FROM pages_twin), '>', 1000::bigint, 'pages: there is something to compare');
SELECT is(differences('pages', 'pages_twin'), 0::bigint, 'pages: the rows of the plain twin');
SELECT is_empty('SELECT * FROM pattern_check(''pages'')', 'pages: pattern_check has nothing to report');

SELECT * FROM finish();
ROLLBACK;
