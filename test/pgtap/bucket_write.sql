-- The contract of writing to relations of measurements, and of the calls that keep them.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(92);

SELECT function_returns(f, r, f || ' returns ' || r) FROM (VALUES ('bucket_pack', 'bigint'), ('bucket_resize', 'bigint'), ('bucket_drop_before', 'bigint'), ('bucket_add_column', 'void'),
  ('bucket_stats', 'record'), ('bucket_advise', 'setof record'), ('bucket_salvage', 'setof record')) AS v (f, r);
SELECT volatility_is(f, v, f || ' is ' || v) FROM (VALUES ('bucket_pack', 'volatile'), ('bucket_resize', 'volatile'), ('bucket_drop_before', 'volatile'), ('bucket_stats', 'stable'),
  ('bucket_advise', 'stable'), ('bucket_salvage', 'volatile')) AS w (f, v);
SELECT is_procedure('bucket_from_table', ARRAY['regclass', 'regclass', 'integer', 'boolean']);
SELECT is_procedure('bucket_to_table', ARRAY['regclass', 'text', 'integer']);

SELECT bucket_create('readings', columns => 'g int, ts timestamptz, v float8, note text', group_by => '{g}', time_field => 'ts', span => '1 hour', max_count => 100) \g /dev/null

-- INSERT, one by one and many.
SELECT results_eq($$INSERT INTO readings VALUES (1, '2024-01-01 00:00', 1.5, 'a') RETURNING g, ts, v, note$$, $$VALUES (1, timestamptz '2024-01-01', 1.5::float8, 'a')$$, 'INSERT RETURNING');
SELECT results_eq('SELECT count(*) FROM readings_recent', ARRAY[1::bigint], 'one measurement waits');
INSERT INTO readings SELECT 2, timestamptz '2024-01-01' + i * interval '1 min', i, NULL FROM generate_series(0, 1499) i;
SELECT results_eq('SELECT count(*), min(bucket_count(data)), max(bucket_count(data)) FROM readings_packed', 'VALUES (25::bigint, 60, 60)', 'many in one statement are packed directly, a bucket for each hour');
INSERT INTO readings (v, ts, g) SELECT i, '2024-01-05 00:00', 3 FROM generate_series(1, 1050) i;
SELECT results_eq('SELECT bucket_count(data) FROM readings_packed WHERE g = 3 ORDER BY seq', 'SELECT CASE WHEN i < 11 THEN 100 ELSE 50 END FROM generate_series(1, 11) i', 'no bucket above max_count');
SELECT results_eq('SELECT v::int FROM readings WHERE g = 3 LIMIT 3', ARRAY[1, 2, 3], 'measurements of one time stay in the order in which they came');
SELECT is_empty('SELECT * FROM pattern_check()', 'nothing to report');

-- Packing inside of an INSERT: the spans before are over.
INSERT INTO readings SELECT 4, timestamptz '2024-01-01' + i * interval '1 min', i, 'x' FROM generate_series(0, 9) i;
INSERT INTO readings VALUES (4, '2024-01-01 01:00', 10, 'next');
SELECT results_eq('SELECT (SELECT count(*) FROM readings_recent WHERE g = 4), (SELECT bucket_count(data) FROM readings_packed WHERE g = 4)', 'VALUES (1::bigint, 10)', 'a new span packs the one before');
INSERT INTO readings VALUES (4, '2024-01-01 00:02:30', 99, 'late');
SELECT is(bucket_pack('readings', '2024-01-01 01:00'), 2::bigint, 'bucket_pack of the spans before a time');
SELECT is(bucket_pack('readings'), 1::bigint, 'and of all');
SELECT results_eq('SELECT bucket_count(data) FROM readings_packed WHERE g = 4 ORDER BY start', ARRAY[11, 1], 'the late one went into the bucket of its span');
SELECT results_eq('SELECT v::int FROM readings WHERE g = 4 ORDER BY ts', ARRAY[0, 1, 2, 99, 3, 4, 5, 6, 7, 8, 9, 10], 'at its place');

-- Spans of several groups that end with one statement. Groups are the same only to the last digit.
SELECT bucket_create('sensors', columns => 'g numeric, ts timestamptz, v int, note text', group_by => '{g}', time_field => 'ts', span => '1 hour') \g /dev/null
INSERT INTO sensors SELECT g::numeric, timestamptz '2024-01-01' + i / 2 * interval '1 min', i, 'row ' || i FROM unnest('{1.0,1.00,2,3}'::text[]) g, generate_series(0, 9) i;
SELECT results_eq('SELECT (SELECT count(*) FROM sensors_recent), (SELECT count(*) FROM sensors_packed)', 'VALUES (40::bigint, 0::bigint)', 'a few of several groups wait');
INSERT INTO sensors SELECT g::numeric, t, 10, 'next' FROM unnest('{1.0,1.00,2}'::text[]) g, unnest('{2024-01-01 01:30,2024-01-01 02:00}'::timestamptz[]) t;
SELECT results_eq('SELECT g::text, start, bucket_count(data) FROM sensors_packed ORDER BY g::text, start',
  $$SELECT g, s, n FROM unnest('{1.0,1.00,2}'::text[]) g, (VALUES (timestamptz '2024-01-01 00:00', 10), ('2024-01-01 01:00', 1)) v (s, n) ORDER BY g, s$$, 'later spans pack those before, also of their own statement');
SELECT results_eq('SELECT count(*) FROM sensors_recent', ARRAY[13::bigint], 'a group without later span waits, and the later spans');
SELECT results_eq($$SELECT v, note FROM sensors WHERE g = 2 AND ts < '2024-01-01 01:00'$$, 'SELECT i, ''row '' || i FROM generate_series(0, 9) i', 'measurements of one time stay in the order in which they came');
INSERT INTO sensors VALUES (2, '2024-01-01 00:00:30', 99, 'late');
BEGIN;
DO $$
BEGIN
  INSERT INTO sensors SELECT g, '2024-01-01 03:00', 11 FROM generate_series(2, 3) g;
  RAISE EXCEPTION 'undone';
EXCEPTION WHEN raise_exception THEN NULL;
END $$;
COMMIT;
INSERT INTO sensors SELECT g, timestamptz '2024-01-01 04:00', 11 FROM generate_series(2, 3) g;
SELECT results_eq('SELECT g::text, start, bucket_count(data) FROM sensors_packed WHERE g > 1 ORDER BY g, start',
  $$VALUES ('2', timestamptz '2024-01-01 00:00', 11), ('2', '2024-01-01 01:00', 1), ('2', '2024-01-01 02:00', 1), ('3', '2024-01-01 00:00', 10)$$, 'after one that was rolled back, also with a late one');
SELECT is_empty('SELECT * FROM pattern_check()', 'nothing to report after them');

-- UPDATE and DELETE, waiting and packed.
SELECT results_eq($$UPDATE readings SET v = v * 2, note = 'twice' WHERE g = 4 AND v BETWEEN 3 AND 4 RETURNING v::int, note$$, $$VALUES (6, 'twice'), (8, 'twice')$$, 'UPDATE RETURNING');
SELECT results_eq($$DELETE FROM readings WHERE g = 4 AND note = 'late' RETURNING v::int, note$$, $$VALUES (99, 'late')$$, 'DELETE RETURNING');
SELECT results_eq('SELECT count(*), sum(v)::int FROM readings WHERE g = 4', 'VALUES (11::bigint, 62)', 'both are done');
UPDATE readings SET g = 5 WHERE g = 4 AND v = 10;
SELECT results_eq('SELECT g, ts, v::int FROM readings WHERE g IN (4, 5) AND v >= 9 ORDER BY g', $$VALUES (4, timestamptz '2024-01-01 00:09', 9), (5, '2024-01-01 01:00', 10)$$, 'an UPDATE moves a measurement to another group');
UPDATE readings SET ts = ts + interval '1 day' WHERE g = 4;
SELECT results_eq('SELECT count(*), min(ts) FROM readings WHERE g = 4', $$VALUES (10::bigint, timestamptz '2024-01-02')$$, 'and to another time');
SELECT is_empty('SELECT 1 FROM readings_packed WHERE g = 4', 'an empty bucket is gone');
DELETE FROM readings a USING readings b WHERE a.g = 2 AND b.g = 2 AND a.ts = b.ts AND a.ctid < b.ctid;
SELECT is((SELECT count(*) FROM readings WHERE g = 2), 1500::bigint, 'a measurement has one ctid throughout a statement');
UPDATE readings r SET v = r.v + x.n FROM (VALUES (1000), (2000)) x (n) WHERE r.g = 1;
SELECT ok((SELECT v IN (1001.5, 2001.5) FROM readings WHERE g = 1), 'a measurement that a join finds twice is updated once');
SELECT is_empty('SELECT * FROM pattern_check()', 'nothing to report after changes');

-- What goes wrong.
SELECT throws_ok($$INSERT INTO readings VALUES (1, 'infinity', 1)$$, '22008', NULL, 'no bucket for infinity');
SELECT throws_ok($$INSERT INTO readings SELECT 1, '-infinity', 1 FROM generate_series(1, 10)$$, '22008', NULL, 'nor for minus infinity, in many');
SELECT throws_ok($$INSERT INTO readings VALUES (1, NULL, 1)$$, '23502', NULL, 'no bucket for no time');
SELECT throws_ok($$UPDATE readings SET ts = NULL WHERE g = 1$$, '23502', NULL, 'also by UPDATE');
SELECT throws_ok($$INSERT INTO readings VALUES (1, '2024-01-01', 1) ON CONFLICT DO NOTHING$$, '0A000', NULL, 'ON CONFLICT is refused');
SELECT throws_ok('SELECT * FROM readings FOR UPDATE', '0A000', NULL, 'FOR UPDATE is refused');
SELECT throws_ok($$INSERT INTO readings_recent VALUES (1, '2024-01-01', 1)$$, '55000', NULL, 'the tables beneath are not written to directly');
SELECT throws_ok('DELETE FROM readings_packed', '55000', NULL, 'neither of them');
SELECT throws_ok($$SELECT bucket_pack('pg_class')$$, '42809', NULL, 'bucket_pack of another relation');
SELECT throws_ok('SELECT bucket_pack(NULL)', '22004', NULL, 'bucket_pack of nothing');
SELECT throws_ok($$SELECT bucket_resize('readings')$$, '22004', NULL, 'bucket_resize to nothing');
SELECT throws_ok($$SELECT bucket_resize('readings', max_count => 0)$$, '22023', NULL, 'bucket_resize to a limit of 0');
SELECT throws_ok($$SELECT bucket_resize('readings', span => '-1 day')$$, '22023', NULL, 'bucket_resize to a span that is none');
SELECT throws_ok($$SELECT bucket_drop_before('readings', 'infinity')$$, '22008', NULL, 'bucket_drop_before infinity');
SELECT throws_ok($$SELECT pattern_alter('readings', 'ts', '{group_by: ["v"]}')$$, '22023', NULL, 'the group cannot be changed');

-- NaN, infinity and what does not compress come back as they are; constraints of the relation hold.
INSERT INTO readings SELECT 6, timestamptz '2024-01-01' + i * interval '1 s', (ARRAY['NaN', 'Infinity', '-Infinity', '-0', '1e-310', NULL, '0.1', '1e22'])[1 + i % 8]::float8, CASE WHEN i % 3 = 0 THEN repeat('long ', 50) || i END
  FROM generate_series(0, 1999) i;
SELECT is_empty($$SELECT * FROM readings WHERE g = 6 AND v::text IS DISTINCT FROM (ARRAY['NaN', 'Infinity', '-Infinity', '-0', '1e-310', NULL, '0.1', '1e+22'])[1 + extract(epoch FROM ts)::bigint % 8]$$, 'every float comes back');
ALTER FOREIGN TABLE readings ADD CHECK (g > 0);
SELECT throws_ok($$INSERT INTO readings VALUES (0, '2024-01-01', 1)$$, '23514', NULL, 'a CHECK of the relation holds');

-- COPY, savepoints, triggers.
COPY readings FROM STDIN;
7	2024-01-01 00:00:00+00	1	one
7	2024-01-01 00:01:00+00	2	two
\.
SELECT is((SELECT sum(v) FROM readings WHERE g = 7), 3::float8, 'COPY');
BEGIN;
SAVEPOINT a;
DELETE FROM readings;
ROLLBACK TO a;
COMMIT;
SELECT cmp_ok((SELECT count(*) FROM readings), '>', 4000::bigint, 'a savepoint brings everything back');
CREATE TABLE log (what text, g int, n bigint);
CREATE FUNCTION log_it() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log VALUES (TG_OP, coalesce(NEW.g, OLD.g), (SELECT count(*) FROM readings WHERE readings.g = coalesce(NEW.g, OLD.g)));
  RETURN NULL;
END $$;
CREATE TRIGGER log_it AFTER INSERT OR UPDATE OR DELETE ON readings FOR EACH ROW EXECUTE FUNCTION log_it();
INSERT INTO readings SELECT 8, timestamptz '2024-01-01' + i * interval '1 min', i FROM generate_series(1, 1200) i;
DELETE FROM readings WHERE g = 8 AND v <= 10;
SELECT results_eq('SELECT what, count(*), min(n), max(n) FROM log GROUP BY what ORDER BY what', $$VALUES ('DELETE', 10::bigint, 1190::bigint, 1190::bigint), ('INSERT', 1200, 1200, 1200)$$, 'AFTER ROW triggers see what the statement did');
DROP TRIGGER log_it ON readings;

-- Other spans, retention, columns.
SELECT cmp_ok(bucket_resize('readings', span => '1 day', max_count => 2000), '>', 20::bigint, 'bucket_resize returns the number of buckets');
SELECT results_eq('SELECT bucket_count(data) FROM readings_packed WHERE g = 2 ORDER BY start', ARRAY[1440, 60], 'a bucket for each day');
SELECT is_empty('SELECT * FROM pattern_check()', 'nothing to report after bucket_resize');
SELECT is((SELECT options -> 'span' FROM pattern_list('readings')), '"1 day"'::bson_value, 'the span is declared');
SELECT bucket_drop_before('readings', '2024-01-02 12:00', archive => 'old_readings') \g /dev/null
SELECT results_eq('SELECT min(ts) FROM readings', $$VALUES (timestamptz '2024-01-02')$$, 'bucket_drop_before drops whole spans');
SELECT is((SELECT count(*) FROM old_readings WHERE g = 2), 1440::bigint, 'the archive has them');
SELECT bucket_add_column('readings', 'extra', 'int');
UPDATE readings SET extra = 7 WHERE g = 2 AND ts = '2024-01-02 00:05';
SELECT results_eq('SELECT count(*), count(extra), sum(extra) FROM readings WHERE g = 2', 'VALUES (60::bigint, 1::bigint, 7::bigint)', 'a column that was added');
SELECT throws_ok('ALTER FOREIGN TABLE readings ADD COLUMN other int', '0A000', NULL, 'is not added by hand');

-- Conversion, there and back.
CALL bucket_from_table('readings', 'old_readings', 1000);
SELECT is_empty('SELECT * FROM old_readings', 'bucket_from_table moves the rows');
SELECT is((SELECT count(*) FROM readings WHERE g = 2), 1500::bigint, 'all of them');
CALL bucket_to_table('readings', 'plain_again', 500);
SELECT results_eq('SELECT (SELECT count(*) FROM readings), (SELECT count(*) FROM plain_again WHERE g = 2), (SELECT count(*) FROM readings_packed)', 'VALUES (0::bigint, 1500::bigint, 0::bigint)', 'bucket_to_table moves them back');
CALL bucket_from_table('readings', 'plain_again', NULL, keep_source => true);
SELECT is((SELECT count(*) FROM readings), (SELECT count(*) FROM plain_again), 'keep_source copies');

-- Slots.
SELECT bucket_create('slots_' || s, columns => 'g text, ts timestamptz, v int, note text', group_by => '{g}', time_field => 'ts', span => '1 day', granularity => '1 minute', same_slot => s)
  FROM unnest(ARRAY['refuse', 'replace', 'add', 'keep']) s \g /dev/null
INSERT INTO slots_refuse VALUES ('a', '2024-01-01 00:00:10', 1); INSERT INTO slots_replace VALUES ('a', '2024-01-01 00:00:10', 1); INSERT INTO slots_add VALUES ('a', '2024-01-01 00:00:10', 1); INSERT INTO slots_keep VALUES ('a', '2024-01-01 00:00:10', 1);
SELECT throws_ok($$INSERT INTO slots_refuse VALUES ('a', '2024-01-01 00:00:50', 2)$$, '23505', NULL, 'refuse: a second measurement of a minute');
SELECT throws_ok($$INSERT INTO slots_refuse SELECT 'b', '2024-01-01', i FROM generate_series(1, 2) i$$, '23505', NULL, 'also in one statement');
SELECT bucket_pack(('slots_' || s)::regclass) FROM unnest(ARRAY['refuse', 'replace', 'add', 'keep']) s \g /dev/null
INSERT INTO slots_replace VALUES ('a', '2024-01-01 00:00:50', 2, 'x'); INSERT INTO slots_add VALUES ('a', '2024-01-01 00:00:50', 2, 'x'); INSERT INTO slots_keep VALUES ('a', '2024-01-01 00:00:50', 2, 'x');
SELECT results_eq('SELECT * FROM slots_replace UNION ALL SELECT * FROM slots_add UNION ALL SELECT * FROM slots_keep',
  $$VALUES ('a', timestamptz '2024-01-01 00:00:50', 2, 'x'), ('a', '2024-01-01 00:00:10', 3, 'x'), ('a', '2024-01-01 00:00:10', 1, NULL)$$, 'replace, add and keep what is packed');
INSERT INTO slots_refuse VALUES ('a', '2024-01-01 00:01:10', 1);
SELECT throws_ok($$UPDATE slots_refuse SET ts = '2024-01-01 00:00:30' WHERE ts = '2024-01-01 00:01:10'$$, '23505', NULL, 'an UPDATE into a slot that is taken');
SELECT throws_ok($$UPDATE slots_add SET v = 2147483647; INSERT INTO slots_add VALUES ('a', '2024-01-01', 1)$$, '22003', NULL, 'a sum that overflows');
SELECT is_empty('SELECT * FROM pattern_check()', 'one measurement per slot');

-- A bucket whose bytes are damaged: the others stay readable.
TRUNCATE readings;
SELECT is_empty('SELECT * FROM readings', 'TRUNCATE');
INSERT INTO readings SELECT i % 3 + 1, timestamptz '2024-01-01' + i * interval '1 s', i FROM generate_series(0, 2999) i;
SELECT is_empty('SELECT * FROM bucket_salvage(''readings'')', 'nothing to salvage');
CREATE FUNCTION as_bytes(bucket, int) RETURNS bytea LANGUAGE internal STRICT AS 'bytea_substr_no_len';
CREATE FUNCTION as_bucket(bytea, int) RETURNS bucket LANGUAGE internal STRICT AS 'bytea_substr_no_len';
SET docpatterns.maintain = off;
UPDATE readings_packed SET data = as_bucket(substring(as_bytes(data, 1) FOR 30), 1) WHERE g = 2;
RESET docpatterns.maintain;
SELECT throws_ok('SELECT max(length(note)) FROM readings WHERE g = 2', 'XX001', NULL, 'a damaged bucket is an error');
SELECT is((SELECT count(*) FROM readings WHERE g = 1) + (SELECT count(*) FROM readings WHERE g = 3), 2000::bigint, 'the others stay readable');
SELECT results_eq('SELECT key::text, what FROM pattern_check(''readings'')', $$VALUES ('2', 'bucket')$$, 'pattern_check finds it');
SELECT throws_ok('SELECT pattern_repair(''readings'')', 'XX001', NULL, 'pattern_repair does not make measurements up');
SELECT results_eq('SELECT key::text, start FROM bucket_salvage(''readings'')', $$VALUES ('2', '2024-01-01 00:00:00+00')$$, 'bucket_salvage puts it aside');
SELECT results_eq('SELECT (SELECT count(*) FROM readings), (SELECT count(*) FROM readings_damaged)', 'VALUES (2000::bigint, 1::bigint)', 'and everything can be read again');

SELECT bucket_create('unsound', columns_of => 'readings', group_by => '{g}', time_field => 'ts') \g /dev/null
INSERT INTO unsound SELECT * FROM readings;
SET docpatterns.maintain = off;
UPDATE unsound_packed SET data = as_bucket(substring(as_bytes(data, 1) FOR 30), 1) WHERE g = 1;
RESET docpatterns.maintain;
SELECT is((SELECT count(*) FROM unsound WHERE g = 3), 1000::bigint, 'a damaged bucket keeps nobody from planning');

-- Index entries that are dead to everybody are marked as such by those who meet them: while packing, changing and reading in order.
CREATE PROCEDURE churn() LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. 60 LOOP
    DELETE FROM unsound WHERE g = 9;
    COMMIT;
    INSERT INTO unsound SELECT 9, timestamptz '2024-01-01' + j * interval '10 min', j FROM generate_series(1, 40) j;
    COMMIT;
    PERFORM bucket_pack('unsound');
    UPDATE unsound SET ts = ts + interval '1 day' WHERE g = 9 AND v > 20;
    COMMIT;
    PERFORM ts FROM unsound WHERE g = 9 ORDER BY ts DESC;
    PERFORM bucket_pack('unsound');
    COMMIT;
  END LOOP;
END $$;
CALL churn();
SELECT results_eq('SELECT v::int, ts > ''2024-01-02'' FROM unsound WHERE g = 9 ORDER BY ts', 'SELECT j, j > 20 FROM generate_series(1, 40) j', 'rows come and go in one place');
DROP FOREIGN TABLE unsound;

-- The end.
SELECT is(pattern_disable('readings'), 2000::bigint, 'pattern_disable returns the number of measurements');
SELECT is((SELECT relkind FROM pg_class WHERE oid = 'readings'::regclass), 'r'::"char", 'a plain table took the place');
SELECT hasnt_table('readings_packed', 'and the tables beneath are gone');
DROP TABLE readings, log, old_readings, plain_again;
DROP FOREIGN TABLE slots_refuse, slots_replace, slots_add, slots_keep CASCADE;
DROP TABLE readings_damaged;
DROP FUNCTION log_it, as_bytes, as_bucket;
DROP PROCEDURE churn;
SELECT * FROM finish();
