-- Buckets: what aggregates and functions promise. Random rows come from a fixed seed; to try another: PGOPTIONS='-c bucket.seed=0.5'.
\set QUIET 1
BEGIN;
SET LOCAL client_min_messages = warning;
SET LOCAL timezone = 'UTC';
SET LOCAL extra_float_digits = 1;
SELECT plan(167);
SELECT diag('seed ' || coalesce(current_setting('bucket.seed', true), '0.7'));
SELECT setseed(coalesce(current_setting('bucket.seed', true), '0.7')::float8);

-- ---------------------------------------------------------------- signatures

SELECT is(p.provolatile::text || p.proparallel::text || p.proisstrict::text, properties, p.oid::regprocedure::text)
FROM (VALUES
  ('bucket_start(interval,timestamptz,timestamptz,text)', 'isfalse'), ('bucket_start(interval,timestamp,timestamp)', 'isfalse'),
  ('bucket_start(interval,date,date)', 'isfalse'), ('bucket_starts(interval,timestamptz,timestamptz,timestamptz,text)', 'isfalse'),
  ('bucket_count(bucket)', 'istrue'), ('bucket_count(bucket,text)', 'isfalse'), ('bucket_first(bucket)', 'istrue'),
  ('bucket_first(bucket,text)', 'isfalse'), ('bucket_last(bucket)', 'istrue'), ('bucket_last(bucket,text)', 'isfalse'),
  ('bucket_span(bucket)', 'istrue'), ('bucket_sum(bucket,text)', 'isfalse'), ('bucket_avg(bucket,text)', 'isfalse'),
  ('bucket_min(bucket,text)', 'isfalse'), ('bucket_max(bucket,text)', 'isfalse'), ('bucket_stddev(bucket,text,boolean)', 'isfalse'),
  ('bucket_slice(bucket,timestamptz,timestamptz)', 'isfalse'), ('bucket_unpack(bucket)', 'istrue'), ('bucket_unpack(bucket,anyelement)', 'ssfalse'),
  ('bucket_to_recordset(bucket)', 'sstrue'), ('bucket_series(bucket,interval,text,timestamptz,timestamptz,text,text,timestamptz,text)', 'isfalse'),
  ('bucket_to_bson(bucket,text,text[])', 'isfalse'), ('bucket_from_bson(bson,text,text[],text,text,text)', 'isfalse'),
  ('bucket_document(bucket,bson,bson,text[],timestamptz,timestamptz,text)', 'ssfalse'),
  ('bucket_agg(timestamptz,bson)', 'isfalse'), ('bucket_agg(timestamptz,"any")', 'isfalse'), ('bucket_page_agg(bson)', 'isfalse'),
  ('bucket_page_agg("any")', 'isfalse'), ('bucket_merge(bucket)', 'isfalse')) AS f (name, properties)
  JOIN pg_proc p ON p.oid = f.name::regprocedure;

-- ---------------------------------------------------------------- spans

SELECT is(bucket_start(width::interval, ts::timestamptz, origin::timestamptz, zone), start::timestamptz, concat_ws(' ', width, ts, origin, zone))
FROM (VALUES
  ('1 hour', '2024-02-29 12:59:59.999999', NULL, 'UTC', '2024-02-29 12:00'), ('15 min', '2024-02-29 12:45', NULL, NULL, '2024-02-29 12:45'),
  ('7 days', '2000-01-02 23:59', NULL, 'UTC', '1999-12-27'), ('1 month', '2024-02-29', NULL, 'UTC', '2024-02-01'),
  ('3 months', '1999-12-31 23:00', NULL, 'UTC', '1999-10-01'), ('10 years', '1999-06-01', NULL, 'UTC', '1990-01-01'),
  ('1 month', '2024-02-29 10:00', '2023-01-31 09:00', 'UTC', '2024-02-29 09:00'), ('1 month', '2024-02-29 08:00', '2023-01-31 09:00', 'UTC', '2024-01-31 09:00'),
  ('1 day', '2024-05-01 03:00', '2020-01-01 06:00', 'UTC', '2024-04-30 06:00'), ('36 hours', '2024-05-01 03:00', '2024-05-01', 'UTC', '2024-05-01'),
  ('1 day', '2024-05-01 03:00', NULL, '+05:45', '2024-04-30 18:15'), ('1 month', '2024-05-01 03:00', NULL, 'America/New_York', '2024-04-01 04:00'),
  ('1 hour', '2024-10-27 00:30', NULL, 'Europe/Paris', '2024-10-27 00:00'), ('1 hour', '2024-10-27 01:30', NULL, 'Europe/Paris', '2024-10-27 01:00'),
  ('6 hours', '2024-10-27 02:30', NULL, 'Europe/Paris', '2024-10-26 22:00'), ('1 day', '2018-11-04 03:30', NULL, 'America/Sao_Paulo', '2018-11-04 03:00'),
  ('1 day', 'infinity', NULL, 'UTC', 'infinity'), ('1 day', NULL, NULL, 'UTC', NULL), (NULL, '2024-01-01', NULL, 'UTC', NULL)) AS t (width, ts, origin, zone, start);
SELECT is(bucket_start('1 month', timestamp '2024-02-29 12:00'), timestamp '2024-02-01', 'timestamp');
SELECT is(bucket_start('1 week', date '2024-02-29'), date '2024-02-26', 'date');
SELECT throws_ok(format('SELECT bucket_start(%s)', a), s, m, a) FROM (VALUES
  ('''0'', now()', '22023', 'bucket width must be greater than zero'),
  ('''-1 day'', now()', '22023', 'bucket width must be greater than zero'),
  ('''1 month 1 day'', now()', '22023', 'bucket width must not mix months with days or hours'),
  ('''1 day'', now(), ''infinity''', '22023', 'bucket origin must not be infinite'),
  ('''1 day'', now(), NULL, ''Nowhere/Land''', '22023', 'time zone "Nowhere/Land" not recognized'),
  ('''1 day'', now(), NULL, ''''', '22023', 'time zone "" not recognized'),
  ('''1 hour'', date ''2024-01-01''', '22023', 'bucket width for dates must be whole days or months'),
  ('''1 month'', timestamptz ''4714-11-24 BC''', '22008', 'timestamp out of range')) AS t (a, s, m);
SELECT is(count(*) FILTER (WHERE s <= t AND s >= previous AND again = s), count(*), 'spans begin before, go forward, and begin where they begin')
FROM (SELECT t, s, coalesce(lag(s) OVER (PARTITION BY w, z ORDER BY t), s) AS previous, bucket_start(w, s, NULL, z) AS again
      FROM unnest('{10 min,45 min,1 hour,7 hours,1 day,36 hours,1 week,1 month,1 year}'::interval[]) w,
           unnest('{Europe/Paris,Australia/Lord_Howe,America/Sao_Paulo,Asia/Kolkata,-03:30}'::text[]) z,
           generate_series(timestamptz '2018-02-01', '2018-12-01', '97 min') t, bucket_start(w, t, NULL, z) s) x;
SELECT is(array_agg(s), (SELECT array_agg(DISTINCT bucket_start('1 day', t, NULL, 'Europe/Paris') ORDER BY bucket_start('1 day', t, NULL, 'Europe/Paris'))
          FROM generate_series(timestamptz '2024-03-25', '2024-04-05', '10 min') t), 'bucket_starts gives the same spans')
FROM bucket_starts('1 day', '2024-03-25', '2024-04-05 00:00:01', NULL, 'Europe/Paris') s;
SELECT is_empty('SELECT bucket_starts(''1 day'', ''2024-01-02'', ''2024-01-02'')', 'no time, no spans');
SELECT throws_ok('SELECT count(*) FROM bucket_starts(''1 us'', ''2000-01-01'', ''2024-01-01'')', '54000', 'series has more than 1000000 spans');
SELECT throws_ok('SELECT count(*) FROM bucket_starts(''1 day'', ''-infinity'', ''2024-01-01'')', '22008', 'bounds of a series must not be infinite');

-- ---------------------------------------------------------------- random rows beside plain SQL

CREATE TABLE plain AS
SELECT (random() * 3)::int AS g, timestamptz '2024-01-01' + (random() * 2000)::int * interval '1 s' AS ts,
       (random() * 1000)::int2 AS i2, CASE WHEN random() < 0.9 THEN (random() * 1000000)::int END AS i4, (random() * 1e15)::bigint - 500000000000000 AS i8,
       (random() * 100)::float4 AS f4, CASE WHEN random() < 0.8 THEN round((random() * 100)::numeric, 1)::float8 ELSE random() END AS f8,
       CASE WHEN random() < 0.95 THEN round((random() * 1000)::numeric, (random() * 4)::int) END AS n, random() < 0.5 AS b,
       repeat(chr(97 + (random() * 3)::int), (random() * 3)::int) AS t, date '2024-01-01' + (random() * 100)::int AS d,
       timestamptz '2024-01-01' + random() * interval '100 days' AS tz, md5(random()::text)::uuid AS u,
       ARRAY[(random() * 9)::int, NULL] AS a, to_bson((random() * 9)::int) AS v
FROM generate_series(1, 3000);
INSERT INTO plain SELECT 9, '2024-01-01', 1, NULL, 2, 'NaN', '-Infinity', 'NaN', NULL, '', '0044-03-15 BC', '1000-01-01 00:00:00.000001', NULL, '{}', '{"$minKey": 1}';
ANALYZE plain;
CREATE TABLE packed AS SELECT g, bucket_agg(ts, plain) AS b FROM plain GROUP BY g;

SELECT is_empty('(SELECT * FROM plain EXCEPT ALL SELECT r.* FROM packed, bucket_unpack(b, NULL::plain) r)
  UNION ALL (SELECT r.* FROM packed, bucket_unpack(b, NULL::plain) r EXCEPT ALL SELECT * FROM plain)', 'rows of all types come back as they were');
SELECT is(count(*) FILTER (WHERE ts >= previous), count(*), 'in the order of their times')
FROM (SELECT r.ts, coalesce(lag(r.ts) OVER (PARTITION BY p.g ORDER BY r.o), r.ts) AS previous
      FROM packed p, ROWS FROM (bucket_unpack(b, NULL::plain)) WITH ORDINALITY AS r (g, ts, i2, i4, i8, f4, f8, n, b, t, d, tz, u, a, v, o)) x;
SELECT is(bucket_count(b), n::int, 'count of group ' || g) FROM packed JOIN (SELECT g, count(*) n FROM plain GROUP BY g) x USING (g) ORDER BY g;
SELECT results_eq(format('SELECT bucket_sum(b, %1$L)::numeric, bucket_min(b, %1$L)::numeric, bucket_max(b, %1$L)::numeric, bucket_count(b, %1$L) FROM packed WHERE g < 9 ORDER BY g', f),
                  format('SELECT sum(%1$I)::numeric, min(%1$I)::numeric, max(%1$I)::numeric, count(%1$I)::int FROM plain WHERE g < 9 GROUP BY g ORDER BY g', f),
                  'sum, min, max and count of ' || f) FROM unnest('{i2,i4,i8,n}'::text[]) f;
SELECT is((SELECT count(*) FROM packed JOIN (SELECT g, sum(f8) s, avg(f8) a, min(f8) l, max(f8) m, stddev(f8) d, stddev_pop(f8) p FROM plain WHERE g < 9 GROUP BY g) x USING (g)
  WHERE abs(bucket_sum(b, 'f8')::float8 - s) < 1e-6 AND abs(bucket_avg(b, 'f8')::float8 - a) < 1e-9 AND bucket_min(b, 'f8')::float8 = l AND bucket_max(b, 'f8')::float8 = m
    AND abs(bucket_stddev(b, 'f8')::float8 - d) < 1e-9 AND abs(bucket_stddev(b, 'f8', true)::float8 - p) < 1e-9), 4::bigint, 'floats agree to rounding');
SELECT is((SELECT count(*) FROM packed JOIN (SELECT g, avg(i4) a, avg(n) n, stddev(i4) d, sum(f4::float8) f FROM plain WHERE g < 9 GROUP BY g) x USING (g)
  WHERE abs(bucket_avg(b, 'i4')::numeric - a) < 1e-6 AND abs(bucket_avg(b, 'n')::numeric - n) < 1e-9 AND abs(bucket_stddev(b, 'i4')::numeric - d) < 1e-6
    AND abs(bucket_sum(b, 'f4')::float8 - f) < 0.1), 4::bigint, 'averages of integers, decimals; sums of float4');
SELECT results_eq('SELECT bucket_min(b, ''d'')::date, bucket_max(b, ''d'')::date, bucket_min(b, ''t'')::text COLLATE "C", bucket_max(b, ''t'')::text COLLATE "C" FROM packed WHERE g < 9 ORDER BY g',
  'SELECT min(d), max(d), min(t COLLATE "C"), max(t COLLATE "C") FROM plain WHERE g < 9 GROUP BY g ORDER BY g', 'least and greatest dates and texts');
SELECT results_eq('SELECT bucket_sum(b, ''v'')::bigint FROM packed WHERE g < 9 ORDER BY g', 'SELECT sum(v)::bigint FROM plain WHERE g < 9 GROUP BY g ORDER BY g', 'sum of BSON values');
SELECT results_eq('SELECT bucket_sum(b, ''b'')::bigint FROM packed WHERE g < 9 ORDER BY g', 'SELECT count(*) FILTER (WHERE b) FROM plain WHERE g < 9 GROUP BY g ORDER BY g', 'a sum of booleans counts those that are true');
SELECT is(bucket_first(b, 'i4')::int, (SELECT i4 FROM bucket_unpack(b, NULL::plain) WITH ORDINALITY WHERE i4 IS NOT NULL ORDER BY ordinality LIMIT 1), 'first of group ' || g) FROM packed WHERE g < 9 ORDER BY g;
SELECT is(bucket_last(b, 'i4')::int, (SELECT i4 FROM bucket_unpack(b, NULL::plain) WITH ORDINALITY WHERE i4 IS NOT NULL ORDER BY ordinality DESC LIMIT 1), 'last of group ' || g) FROM packed WHERE g < 9 ORDER BY g;
SELECT is(ARRAY[bucket_sum(b, 'f8')::text, bucket_sum(b, 'i4')::text, bucket_count(b, 'i4')::text, bucket_stddev(b, 'i2')::text], '{-Infinity,NULL,0,NULL}', 'infinities and groups of one')
FROM packed WHERE g = 9;
SELECT is(bucket_avg(b, 'n'), '{"$numberDecimal": "NaN"}', 'NaN stays') FROM packed WHERE g = 9;
SELECT is(ARRAY[bucket_min(b, 'value')::numeric, bucket_max(b, 'value')::numeric], (SELECT ARRAY[min(v), max(v)] FROM unnest('{1,NaN,-Infinity,1e30}'::numeric[]) v), 'numerics that are no scaled integers, NaN being the greatest')
FROM (SELECT bucket_agg(now(), v) FROM unnest('{1,NaN,-Infinity,1e30}'::numeric[]) v) x (b);

-- slices and merges are the rows between and the rows of all
SELECT results_eq('SELECT sum(bucket_count(bucket_slice(b, ''2024-01-01 00:10'', ''2024-01-01 00:20''))), sum(bucket_sum(bucket_slice(b, ''2024-01-01 00:10'', ''2024-01-01 00:20''), ''i8''))::numeric FROM packed',
  'SELECT count(*), sum(i8)::numeric FROM plain WHERE ts >= ''2024-01-01 00:10'' AND ts < ''2024-01-01 00:20''', 'a slice');
SELECT is(bucket_slice(b, NULL, NULL)::text, b::text, 'a slice without bounds') FROM packed WHERE g = 9;
SELECT ok(bucket_slice(b, '2025-01-01', NULL) IS NULL, 'a slice of nothing') FROM packed WHERE g = 9;
SELECT ok(bucket_slice(b, '2024-01-01 00:20', '2024-01-01 00:10') IS NULL, 'a slice that ends before it begins') FROM packed WHERE g = 1;
SELECT is(bucket_count(bucket_merge(b)), 3001, 'merged count') FROM packed;
SELECT is(bucket_sum(bucket_merge(b), 'i8')::numeric, (SELECT sum(i8) FROM plain), 'merged sum') FROM packed;
SELECT ok(bucket_merge(b) IS NULL, 'nothing merged is NULL') FROM packed WHERE g > 100;
SELECT ok(bucket_agg(ts, i4) IS NULL, 'no rows, no bucket') FROM plain WHERE g > 100;

-- ---------------------------------------------------------------- parallel plans

SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0; SET LOCAL max_parallel_workers_per_gather = 2;
SET LOCAL parallel_leader_participation = off;
CREATE FUNCTION pg_temp.is_partial(q text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || q LOOP
    IF line ~ 'Partial' THEN RETURN true; END IF;
  END LOOP;
  RETURN false;
END $$;
SELECT ok(pg_temp.is_partial(q), 'partial: ' || q) FROM unnest(ARRAY['SELECT bucket_agg(ts, i4, n) FROM plain', 'SELECT bucket_agg(ts, plain) FROM plain',
  'SELECT bucket_agg(ts, row_to_bson(plain)) FROM plain', 'SELECT g, bucket_page_agg(t) FROM plain GROUP BY g', 'SELECT bucket_merge(b) FROM packed']) q;
-- nothing inside of is() is taken in parallel, since that function is not safe for it, so the answers come from tables
CREATE TABLE by_workers AS SELECT bucket_agg(ts, plain) AS rows, bucket_agg(ts, row_to_bson(plain)) AS docs, bucket_agg(ts, i4) AS one, bucket_agg(ts, i4) FILTER (WHERE g > 100) AS none FROM plain;
CREATE TABLE pages_by_workers AS SELECT g, bucket_page_agg(t) AS b FROM plain GROUP BY g;
CREATE TABLE merged_by_workers AS SELECT bucket_merge(b) FILTER (WHERE g < 9) AS b, bucket_merge(b) FILTER (WHERE g > 100) AS none FROM packed;
SELECT is_empty('(SELECT * FROM plain EXCEPT ALL SELECT * FROM bucket_unpack((SELECT rows FROM by_workers), NULL::plain))', 'rows packed in parallel');
SELECT is(bucket_count(docs), 3001, 'documents packed in parallel') FROM by_workers;
SELECT is(bucket_sum(docs, 'i8')::bigint, (SELECT sum(i8)::bigint FROM plain), 'and their sum') FROM by_workers;
SELECT ok(bucket_count(one) = 3001 AND none IS NULL, 'columns packed in parallel') FROM by_workers;
SELECT results_eq('SELECT g, bucket_count(b) FROM pages_by_workers ORDER BY g', 'SELECT g, count(*)::int FROM plain GROUP BY g ORDER BY g', 'pages in parallel');
SELECT is(bucket_sum(b, 'n')::text, bucket_sum((SELECT bucket_agg(ts, plain) FROM plain WHERE g < 9), 'n')::text, 'buckets merged in parallel') FROM merged_by_workers;
SELECT ok(none IS NULL, 'nothing merged in parallel') FROM merged_by_workers;
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size; RESET parallel_leader_participation;

-- windows see the state grow
SELECT results_eq('SELECT bucket_sum(bucket_agg(ts, i8) OVER (ORDER BY ts, i8 ROWS 5 PRECEDING))::bigint FROM plain WHERE g = 1 ORDER BY ts, i8',
  'SELECT sum(i8) OVER (ORDER BY ts, i8 ROWS 5 PRECEDING)::bigint FROM plain WHERE g = 1 ORDER BY ts, i8', 'a moving window');
SELECT results_eq('SELECT bucket_count(bucket_agg(ts, i8) OVER (ORDER BY ts, i8 ROWS UNBOUNDED PRECEDING)) FROM plain WHERE g = 3 ORDER BY ts, i8',
  'SELECT row_number() OVER (ORDER BY ts, i8)::int FROM plain WHERE g = 3 ORDER BY ts, i8', 'a growing window');

-- ---------------------------------------------------------------- what aggregates refuse

SELECT throws_ok(q, s, m, q) FROM (VALUES
  ('SELECT bucket_agg(NULL::timestamptz, 1)', '22004', 'a measurement has no time'),
  ('SELECT bucket_agg(''infinity'', 1)', '22008', NULL), ('SELECT bucket_agg(''-infinity'', ''{a: 1}''::bson)', '22008', NULL),
  ('SELECT bucket_agg(now(), VARIADIC a) FROM (VALUES (''{1,2}''::int[]), (''{1}'')) x (a)', '2202E', 'the measurements of a bucket must have the same number of values'),
  ('SELECT bucket_agg(now(), VARIADIC NULL::int[])', '22004', 'first measurement must not be null if nothing else determines its columns'),
  ('SELECT bucket_merge(b) FROM (SELECT bucket_agg(now(), 1) UNION ALL SELECT bucket_agg(now(), ''x''::text)) x (b)', '42804', NULL),
  ('SELECT bucket_merge(b) FROM (SELECT bucket_agg(now(), 1) UNION ALL SELECT bucket_page_agg(1)) x (b)', '42804', NULL),
  ('SELECT bucket_sum(bucket_agg(now(), 1, 2))', '22023', 'bucket has 2 fields'),
  ('SELECT bucket_sum(bucket_agg(now(), 1), ''nothing'')', '42703', 'bucket has no field "nothing"'),
  ('SELECT bucket_slice(bucket_page_agg(1), now(), now())', '22023', 'bucket has no times'),
  ('SELECT bucket_series(bucket_page_agg(1), ''1 day'')', '22023', 'bucket has no times'),
  ('SELECT bucket_series(bucket_agg(now(), 1), ''1 day'', fill => ''magic'')', '22023', 'invalid fill: "magic"'),
  ('SELECT bucket_series(bucket_agg(now(), 1), ''1 day'', take => ''magic'')', '22023', 'invalid take: "magic"'),
  ('SELECT bucket_series(bucket_agg(now(), ''x''::text), ''1 day'', take => ''last'', fill => ''linear'')', '22023', 'cannot interpolate between values that are not numbers'),
  ('SELECT bucket_unpack(bucket_agg(now(), 1), 5)', '42804', 'the second argument must be of a row type'),
  ('SELECT * FROM bucket_to_recordset((SELECT bucket_agg(now(), 1))) AS r (ts timestamptz, v point)', '42846', NULL),
  ('SELECT bucket_to_bson(bucket_agg(now(), 1), ''tree'')', '22023', 'unknown layout "tree"'),
  ('SELECT bucket_to_bson(bucket_agg(now(), 1), ''rows'', ''{hour}'')', '22023', 'layout "rows" has no units'),
  ('SELECT bucket_to_bson(bucket_agg(now(), 1), ''keyed'', ''{week}'')', '22023', '"week" is not a unit of slots'),
  ('SELECT bucket_to_bson(bucket_agg(now(), 1), ''keyed'', ''{minute,hour}'')', '22023', 'units must go from a larger one to the next smaller one'),
  ('SELECT bucket_to_bson(bucket_agg(now(), 1), ''keyed'', ''{}'')', '22023', 'units must not be empty'),
  ('SELECT bucket_to_bson(bucket_page_agg(1), ''keyed'', ''{hour}'')', '22023', 'cannot use units with a bucket without times'),
  ('SELECT bucket_to_bson(bucket_agg(t, 1), ''keyed'', ''{minute}'') FROM unnest(''{2024-01-01 10:00,2024-01-01 11:00}''::timestamptz[]) t', '22023', 'bucket spans more than one hour'),
  ('SELECT bucket_to_bson(bucket_agg(t, 1), ''keyed'', ''{minute}'') FROM unnest(''{2024-01-01 10:00:01,2024-01-01 10:00:02}''::timestamptz[]) t', '21000', 'two measurements are in the same slot'),
  ('SELECT bucket_from_bson(''{values: {"61": 1}, start_date: ISODate("2024-01-01")}'', ''keyed'', ''{minute}'')', '22023', '"61" is not a slot'),
  ('SELECT bucket_from_bson(''{values: {"a": 1}}'', ''keyed'')', '22023', '"a" is not a slot'),
  ('SELECT bucket_from_bson(''{values: {"1": 1, "01": 2}}'', ''keyed'')', '22023', 'document has a duplicate slot'),
  ('SELECT bucket_from_bson(''{values: {"1": 1}, start_date: ISODate("2024-01-01")}'')', '22023', 'could not determine the units of the document''s slots'),
  ('SELECT bucket_from_bson(''{values: {"1": 1}}'', ''keyed'', ''{minute}'')', '22023', 'document has no field "start_date" with the start of its slots'),
  ('SELECT bucket_from_bson(''{values: {"1": 1}}'', ''keyed'', ''{hour,minute}'', start_field => ''x'')', '22023', 'document has no field "x" with the start of its slots'),
  ('SELECT bucket_from_bson(''{values: {"1": 1}, start_date: ISODate("2024-01-01")}'', ''keyed'', ''{hour,minute}'')', '22023', 'values of the document do not have 2 levels'),
  ('SELECT bucket_from_bson(''{measurements: [5]}'')', '22023', 'a measurement is not a document'),
  ('SELECT bucket_from_bson(''{measurements: [{timestamp: 5}]}'')', '22023', '"timestamp" is not a date'),
  ('SELECT bucket_from_bson(''{measurements: [{timestamp: ISODate("2024-01-01")}, {a: 1}]}'')', '22023', 'some measurements have a time and others do not'),
  ('SELECT bucket_from_bson(''{a: [1, 2], timestamp: [ISODate("2024-01-01")]}'')', '22023', 'arrays of the document have different lengths'),
  ('SELECT bucket_from_bson(''{}'')', '22023', 'document has no array of values'),
  ('SELECT bucket_from_bson(''{timestamp: [{"$date": {"$numberLong": "9223372036854775807"}}]}'')', '22008', 'timestamp out of range'),
  ('SELECT bucket_document(bucket_agg(now(), 1), ''{a: "$nothing"}'', names => ''{v}'')', '42703', 'document of a bucket refers to "nothing", which is not a column'),
  ('SELECT bucket_document(bucket_agg(now(), 1), ''{a: {$sum: "nothing"}}'', names => ''{v}'')', '42703', 'document of a bucket refers to "nothing", which is not a column'),
  ('SELECT bucket_document(bucket_agg(now(), 1), ''{a: {$nothing: 1}}'')', '0A000', NULL),
  ('SELECT bucket_document(bucket_agg(now(), 1), end_date => ''never'')', '22023', 'invalid end_date: "never"')) AS t (q, s, m);

-- ---------------------------------------------------------------- documents and templates

SELECT ok(bucket_from_bson('{measurements: []}') IS NULL, 'no measurements, no bucket');
SELECT is(bucket_to_bson(bucket_from_bson(d), l)::text, bucket_to_bson(bucket_from_bson(bucket_to_bson(bucket_from_bson(d), l)), l)::text, 'there and back: ' || l)
FROM (VALUES ('{measurements: [{timestamp: ISODate("2024-01-31T10:00:01Z"), a: 1, b: "x"}, {timestamp: ISODate("2024-01-31T23:00:00Z"), b: null, c: {d: [1]}}, {timestamp: ISODate("2024-02-01"), a: 5}]}'::bson)) x (d),
  unnest('{rows,columns}'::text[]) l;
SELECT is(bucket_document(b, t, '{s: 7}', '{v}', '2024-01-01 10:00', '2024-01-01 11:00', e), want, coalesce(t::text, 'default') || ' ' || e)
FROM (SELECT bucket_agg(t, v) FROM (VALUES (timestamptz '2024-01-01 10:01', 4), ('2024-01-01 10:02', NULL), ('2024-01-01 10:03', 6)) x (t, v)) y (b),
  (VALUES
  (NULL::bson, 'inclusive', '{s: 7, start_date: ISODate("2024-01-01T10:00Z"), end_date: ISODate("2024-01-01T10:59:59.999Z"), measurements: [{timestamp: ISODate("2024-01-01T10:01Z"), v: 4},
    {timestamp: ISODate("2024-01-01T10:02Z"), v: null}, {timestamp: ISODate("2024-01-01T10:03Z"), v: 6}], transaction_count: 3, sum_v: 10}'::bson),
  ('{a: "$start", b: "$end", c: "$count", d: "$s"}', 'exclusive', '{a: ISODate("2024-01-01T10:00Z"), b: ISODate("2024-01-01T11:00Z"), c: 3, d: 7}'),
  ('{a: {$sum: "v"}, b: {$avg: "$v"}, c: {$min: "v"}, d: {$max: "v"}, e: {$first: "v"}, f: {$last: "v"}, g: {$stdDevPop: "v"}, h: {$push: "v"}, i: {$count: {}}, j: {$max: "timestamp"}}', 'inclusive',
   '{a: 10, b: 5.0, c: 4, d: 6, e: 4, f: 6, g: 1.0, h: [4, null, 6], i: 3, j: ISODate("2024-01-01T10:03Z")}'),
  ('{a: [{x: {$multiply: ["$v", 2]}, y: "$s"}], b: "$v", c: [1, "$s"], d: {$round: [{$avg: "v"}, 0]}, e: {$literal: "$v"}, f: [{v: "$v"}]}', 'inclusive',
   '{a: [{x: 8, y: 7}, {x: null, y: 7}, {x: 12, y: 7}], b: [4, null, 6], c: [1, 7], d: 5.0, e: "$v", f: [{v: 4}, {v: null}, {v: 6}]}')) z (t, e, want);
SELECT is(bucket_document(bucket_agg(t, d), '{n: [{"at": "$timestamp", "v": "$a.b", m: "$nothing"}], s: {$sum: "a.b"}, z: {$sum: "nothing"}}'),
  '{n: [{at: ISODate("2024-01-01"), v: 1}, {at: ISODate("2024-01-02")}], s: 1, z: 0}', 'a template over documents')
FROM (VALUES (timestamptz '2024-01-01', '{a: {b: 1}}'::bson), ('2024-01-02', '{a: 5}')) x (t, d);
SELECT is(bucket_document(bucket_agg(t, d), '{n: [{a: "$doc.a", d: "$doc"}], m: [{d: "$doc", a: "$a"}], s: {$sum: "doc.a"}, s2: {$sum: "a"}, w: "$doc.a"}', names => '{doc}'),
  '{n: [{a: 1, d: {a: 1}}, {a: 5, d: {a: 5}}], m: [{d: {a: 1}, a: 1}, {d: {a: 5}, a: 5}], s: 6, s2: 6, w: [1, 5]}', 'the documents have a name, and their fields')
FROM (VALUES (timestamptz '2024-01-01', '{a: 1}'::bson), ('2024-01-02', '{a: 5}')) x (t, d);
SELECT is(bucket_document(bucket_page_agg(v), '{page: [{v: "$value"}], start: "$start", n: "$count"}'), '{page: [{v: 1}, {v: 2}], n: 2}', 'a page has no start') FROM unnest('{1,2}'::int[]) v;
SELECT is(bucket_count(bucket_agg(t, w), NULL), 1, 'values of a bson_value that are null are none') FROM (VALUES (timestamptz '2024-01-01', 'null'::bson_value), ('2024-01-02', '3')) x (t, w);
SELECT results_eq($$SELECT value::float8 FROM bucket_series((SELECT bucket_agg(t, v) FROM (VALUES (timestamptz '2024-01-01', 1), ('2024-01-04', 7)) x (t, v)), '1 day', since => '2023-12-31', until => '2024-01-06', fill => 'linear')$$,
  'VALUES (NULL::float8), (1), (3), (5), (7), (NULL)', 'a line');
SELECT results_eq($$SELECT value::int FROM bucket_series((SELECT bucket_agg(t, v) FROM (VALUES (timestamptz '2024-01-01', 1), ('2024-01-04', 7)) x (t, v)), '1 day', since => '2024-01-03', until => '2024-01-06', fill => 'previous', take => 'last')$$,
  'VALUES (1), (7), (7)', 'what was before the first span is carried into it');
SELECT results_eq($$SELECT value::int FROM bucket_series((SELECT bucket_agg(t, v) FROM (VALUES (timestamptz '2024-01-01', 1), ('2024-01-03', 7)) x (t, v)), '1 day', take => 'count')$$,
  'VALUES (1), (0), (1)', 'a count of nothing is 0');

SELECT * FROM finish();
ROLLBACK;
