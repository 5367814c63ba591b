-- Reading relations of measurements: whatever is asked of one, a plain table with the same rows gives the same answer.
-- The random queries repeat; to try others: PGOPTIONS='-c bucket_scan.seed=0.5 -c bucket_scan.rounds=2000'.
BEGIN;
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(61);
SELECT diag('seed ' || coalesce(current_setting('bucket_scan.seed', true), '0.1') || ', rounds ' || coalesce(current_setting('bucket_scan.rounds', true), '300'));
SELECT setseed(coalesce(current_setting('bucket_scan.seed', true), '0.1')::float8);

-- Two kinds of relations and their twins ------------------------------------------------------------------------------------

CREATE TABLE m_plain (sensor int, place text COLLATE "C", ts timestamptz NOT NULL, f float8, i int, n numeric, t text, b bool, d bson, r float4, big int8, day date, s smallint);
SELECT bucket_create('m', columns_of => 'm_plain', group_by => '{sensor,place}', time_field => 'ts', span => '1 hour', max_count => 20);
CREATE TABLE l_plain (ts timestamp NOT NULL, v int, w float8);
SELECT bucket_create('l', columns_of => 'l_plain', time_field => 'ts', span => '1 month', max_count => 50);

CREATE FUNCTION fill(rows int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  CREATE TEMP TABLE fresh ON COMMIT DROP AS
    SELECT (random() * 5)::int AS sensor, (ARRAY['attic', 'cellar', NULL])[1 + (random() * 2.9)::int] AS place,
           timestamptz '2024-03-30 20:00' + round(random() * 1200) * interval '1 min' AS ts,
           CASE WHEN random() < 0.1 THEN NULL WHEN random() < 0.02 THEN 'NaN' WHEN random() < 0.01 THEN '-Infinity' ELSE round((random() * 10)::numeric, 1)::float8 END AS f,
           CASE WHEN random() < 0.1 THEN NULL ELSE (random() * 20)::int - 5 END AS i,
           CASE WHEN random() < 0.1 THEN NULL ELSE round((random() * 100)::numeric, (random() * 3)::int) END AS n,
           CASE WHEN random() < 0.1 THEN NULL ELSE 'text ' || (random() * 4)::int END AS t,
           CASE WHEN random() < 0.1 THEN NULL ELSE random() < 0.5 END AS b,
           CASE WHEN random() < 0.1 THEN NULL ELSE bson_build('a', (random() * 5)::int, 'b', bson_array('x', random() < 0.5)) END AS d,
           random()::float4 AS r, CASE WHEN random() < 0.3 THEN 9000000000000000000 ELSE (random() * 1e10)::int8 END AS big,
           date '2024-01-01' + (random() * 30)::int AS day, (random() * 100)::int2 AS s
    FROM generate_series(1, rows);
  INSERT INTO m_plain SELECT * FROM fresh;
  INSERT INTO m SELECT * FROM fresh;
  DROP TABLE fresh;
  CREATE TEMP TABLE fresh ON COMMIT DROP AS
    SELECT timestamp '2023-01-01' + (random() * 400)::int * interval '1 day' AS ts, (random() * 50)::int AS v, random() AS w FROM generate_series(1, rows / 4);
  INSERT INTO l_plain SELECT * FROM fresh;
  INSERT INTO l SELECT * FROM fresh;
  DROP TABLE fresh;
END
$$;
SELECT fill(2000), bucket_pack('m'), bucket_pack('l');
SELECT fill(1000), bucket_pack('m');
SELECT fill(500), bucket_pack('l');
SELECT fill(300);
SELECT cmp_ok((SELECT count(*) FROM m_packed), '>', 300::bigint, 'there are many buckets');
SELECT cmp_ok((SELECT count(*) FROM m_recent), '>', 100::bigint, 'and measurements that wait');
SELECT cmp_ok((SELECT max(n) FROM (SELECT count(*) AS n FROM m_packed GROUP BY sensor, place, start) x), '>', 1::bigint, 'spans have several buckets');

-- A query names m or l; the same query of the twin must give the same rows.
CREATE FUNCTION answer(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  EXECUTE format('SELECT count(*) || '' rows '' || coalesce(md5(string_agg(x::text, E''\n'' ORDER BY x::text COLLATE "C")), '''') FROM (%s) x', query) INTO result;
  RETURN result;
END
$$;
CREATE FUNCTION twin(query text) RETURNS text LANGUAGE sql AS $$ SELECT regexp_replace(query, '\m(m|l)\M(?!\.)(?= AS )', '\1_plain', 'g') $$;
CREATE FUNCTION same(query text, what text) RETURNS text LANGUAGE sql AS $$ SELECT is(answer(query), answer(twin(query)), what) $$;

SELECT same('SELECT x.* FROM m AS x', 'everything');
SELECT same('SELECT x.* FROM l AS x', 'everything, without a group');
SELECT same('SELECT x FROM m AS x WHERE x.d @@ ''{a: 3}''', 'whole rows by a document');
SELECT same('SELECT x.place FROM m AS x WHERE x.place IS NULL AND x.sensor = 2', 'a group that is null');
SELECT same('SELECT x.ts FROM m AS x WHERE x.sensor = NULL', 'a null key');
SELECT same('SELECT x.i FROM m AS x WHERE x.ts > ''infinity''', 'after the end of time');
SELECT same('SELECT x.i FROM m AS x WHERE x.ts < ''infinity'' AND x.ts > ''-infinity'' AND x.sensor = 1', 'between the ends of time');
SELECT same('SELECT x.i FROM m AS x WHERE x.ts >= date ''2024-03-31'' AND x.ts < timestamp ''2024-03-31 05:30''', 'times given as dates');
SELECT same('SELECT x.* FROM m AS x WHERE x.sensor IN (1, 3, NULL) AND x.ts < ''2024-03-31''', 'several groups');
SELECT same('SELECT x.f FROM m AS x WHERE x.f = ''NaN'' OR x.f < ''-1''', 'numbers that are none');
SELECT same('SELECT x.f FROM m AS x WHERE x.f > 9.5', 'NaN is greater than all');
SELECT same('SELECT x.n FROM m AS x WHERE x.n < 0.5 AND x.big > 8000000000000000000', 'numeric and bigint');
SELECT same('SELECT x.* FROM m AS x WHERE x.i > 100', 'values that no bucket has');

-- orders
CREATE FUNCTION answer_in_order(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  r record;
  result text := '';
  n int := 0;
BEGIN
  FOR r IN EXECUTE query LOOP
    result := md5(result || r::text);
    n := n + 1;
  END LOOP;
  RETURN n || ' rows ' || result;
END
$$;
CREATE FUNCTION same_order(query text, what text) RETURNS text LANGUAGE sql AS $$ SELECT is(answer_in_order(query), answer_in_order(twin(query)), what) $$;
SELECT same_order($$SELECT ts FROM m AS x WHERE sensor = 2 AND place = 'attic' ORDER BY ts DESC$$, 'from the end');
SELECT same_order($$SELECT (sensor, place, ts)::text FROM m AS x ORDER BY sensor, place, ts$$, 'by group and time');
SELECT same_order($$SELECT (sensor, place, ts)::text FROM m AS x ORDER BY sensor DESC, place DESC, ts DESC LIMIT 100$$, 'and backwards');
SELECT same_order($$SELECT ts FROM l AS x ORDER BY ts LIMIT 100$$, 'the first ones');
SET LOCAL enable_sort = off;
SELECT same_order($$SELECT ts FROM l AS x ORDER BY ts DESC$$, 'all, without sorting');
SELECT same_order($$SELECT (sensor, place, ts)::text FROM m AS x ORDER BY sensor, place, ts$$, 'groups, without sorting');
SELECT same_order($$SELECT (sensor, place, ts)::text FROM m AS x WHERE i > 3 ORDER BY sensor DESC, place DESC, ts DESC$$, 'and backwards');
SELECT same_order($$SELECT ts FROM m AS x ORDER BY ts$$, 'all groups by time, without sorting');
SELECT same_order($$SELECT ts FROM m AS x WHERE i > 3 AND sensor IN (1, 4, 5) AND ts >= '2024-03-31' ORDER BY ts DESC NULLS LAST LIMIT 200$$, 'the newest ones of some');
SELECT same($$SELECT k, y.* FROM generate_series(1, 5) k, LATERAL (SELECT x.* FROM m AS x WHERE x.sensor <> k ORDER BY x.ts DESC, x::text LIMIT 20) y$$, 'again and again');
RESET enable_sort;

-- joins
SELECT same('SELECT k, x.* FROM generate_series(-1, 7) k JOIN m AS x ON x.sensor = k AND x.ts < ''2024-03-31''', 'a join');
SELECT same('SELECT k, y.ts FROM generate_series(0, 6) k LEFT JOIN LATERAL (SELECT x.ts FROM m AS x WHERE x.sensor = k AND x.place = ''attic'' ORDER BY x.ts DESC LIMIT 1) y ON true', 'the last of every group');
SELECT same('SELECT k, j, y.ts, y.c FROM generate_series(0, 6) k, generate_series(0, 20) j LEFT JOIN LATERAL (SELECT max(z.ts) AS ts, count(*) AS c FROM (SELECT x.ts FROM m AS x WHERE x.sensor = k AND x.place = ''attic'' AND x.ts < timestamptz ''2024-03-30 20:00'' + (j * 7919 % 1300) * interval ''1 min'' ORDER BY x.ts DESC LIMIT 1 + j % 4 * 9) z) y ON true', 'the last before some times, a few or many');
SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
SELECT same('SELECT k, x.* FROM generate_series(-1, 7) k JOIN m AS x ON x.sensor = k AND x.ts < ''2024-03-31''', 'a nested loop');
SELECT same('SELECT x.sensor, x.ts, y.i FROM m AS x JOIN m AS y ON y.sensor = x.sensor AND y.place = x.place AND y.ts >= x.ts AND y.ts < x.ts + interval ''10 min'' WHERE x.sensor = 1', 'with itself, nearby in time');
RESET enable_hashjoin; RESET enable_mergejoin;

-- summed from headers: a bucket may begin before and end after the times that are asked for, and have nothing between them
SET LOCAL enable_hashagg = off; SET LOCAL enable_sort = off;
SELECT same('SELECT bucket_start(''1 month'', x.ts), count(*) FROM l AS x WHERE x.ts > ''2023-02-10 01:00'' AND x.ts < ''2023-02-10 02:00'' GROUP BY 1', 'a group of nothing is none');
RESET enable_hashagg; RESET enable_sort;

-- Random queries ----------------------------------------------------------------------------------------------------------

CREATE FUNCTION pick(VARIADIC choices text[]) RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT choices[1 + floor(random() * cardinality(choices))::int] $$;
CREATE FUNCTION some_time() RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT quote_literal(timestamp '2024-03-30 19:00' + (random() * 1400)::int * interval '1 min') $$;
CREATE FUNCTION condition(exact boolean) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN exact OR random() < 0.6 THEN
    pick('x.sensor = ' || (random() * 6)::int, 'x.sensor < ' || (random() * 6)::int, 'x.place = ''attic''', 'x.place > ''b''', 'x.place IS NULL',
         'x.ts >= ' || some_time(), 'x.ts < ' || some_time(), 'x.ts > ' || some_time(), 'x.ts <= ' || some_time(), some_time() || ' <= x.ts')
  ELSE
    pick('x.f > 5', 'x.f <= 0.4', 'x.i = 3', 'x.i BETWEEN -5 AND -4', 'x.n >= 99', 'x.t = ''text 1''', 'x.t IS NULL', 'x.b', 'NOT x.b', 'x.day = ''2024-01-03''',
         'x.d @@ ''{a: {$gt: 3}}''', 'x.sensor = ANY (''{1,5}'')', 'x.big > 9e18::int8 - 1', 'x.r < 0.01', 'x.r >= 0.4', 'x.s > 50', 'x.big < 1000000', 'x.s = 7', 'x.i IS NOT NULL', 'x.sensor % 2 = 0', 'x.s = 7::smallint')
  END
$$;
CREATE FUNCTION random_query() RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  aggregates boolean := random() < 0.5;
  conditions text := '';
  grouping text;
BEGIN
  FOR i IN 1 .. floor(random() * 4)::int LOOP
    conditions := conditions || CASE WHEN i = 1 THEN ' WHERE ' ELSE ' AND ' END || condition(aggregates AND random() < 0.6);
  END LOOP;
  IF NOT aggregates THEN
    RETURN format('SELECT %s FROM m AS x%s', pick('x.*', 'x.ts, x.f', 'x.sensor, x.t', 'x.d', 'x.n, x.i, x.b', 'x', '1', 'x.big, x.r, x.s, x.day'), conditions);
  END IF;
  grouping := pick(NULL, 'x.sensor', 'x.place', 'x.sensor, x.place', 'bucket_start(''1 hour'', x.ts)', 'bucket_start(''3 hours'', x.ts), x.sensor', 'bucket_start(''1 day'', x.ts, ''2024-01-01 12:00'')',
             'bucket_start(''1 day'', x.ts, NULL, ''Europe/Berlin'')', 'bucket_start(''20 min'', x.ts), x.sensor');
  RETURN format('SELECT %s, %s FROM m AS x%s%s%s', coalesce(grouping, '1 AS one'),
    pick('count(*), sum(x.i), avg(x.i)', 'min(x.f), max(x.f), round(avg(x.f)::numeric, 6)', 'sum(x.n), avg(x.n), min(x.n)::float8, max(x.n)::float8', 'count(x.t), min(x.t), max(x.t)',
         'min(x.ts), max(x.ts), count(x.ts), count(x.place)', 'sum(x.big), avg(x.big), max(x.big)', 'round(avg(x.r)::numeric, 4), max(x.r)', 'min(x.day), max(x.day), count(x.b), count(x.d)',
         'sum(x.s) + count(*), avg(x.s), min(x.s)', 'sum(x.i) FILTER (WHERE x.b), count(DISTINCT x.t)', 'stddev(x.i)::numeric(20,6)',
         'round(stddev(x.f)::numeric, 6), round(var_pop(x.f)::numeric, 6), count(x.f)', 'round(stddev_pop(x.r)::numeric, 4), round(variance(x.r)::numeric, 4), round(avg(x.r)::numeric, 4), max(x.r)',
         'round(stddev_samp(x.f) FILTER (WHERE x.f < 4)::numeric, 6), round(var_samp(x.f)::numeric, 6)', 'sum(x.i) FILTER (WHERE x.i > 3), count(*) FILTER (WHERE x.f > 5 AND x.i < 10), min(x.n) FILTER (WHERE x.n >= 50)',
         'max(x.ts) FILTER (WHERE x.t = ''text 1''), min(x.ts) FILTER (WHERE x.f >= 9), count(*)', 'avg(x.big) FILTER (WHERE x.i <= 3), count(x.place) FILTER (WHERE x.r < 0.3), sum(x.i)',
         'round(sum(x.f) FILTER (WHERE x.f <> ''NaN'' AND x.f > 1)::numeric, 6), count(*) FILTER (WHERE x.f = ''NaN''), count(*) FILTER (WHERE x.f >= ''NaN'')'),
    conditions, ' GROUP BY ' || grouping, CASE WHEN grouping IS NOT NULL AND random() < 0.3 THEN ' HAVING count(*) > 10' END);
END
$$;
CREATE FUNCTION random_queries(n int) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  query text;
BEGIN
  FOR i IN 1 .. n LOOP
    query := random_query();
    IF answer(query) IS DISTINCT FROM answer(twin(query)) THEN
      RETURN NEXT query;
    END IF;
  END LOOP;
END
$$;
-- The other columns only order rows of one time, which an incremental sort does.
CREATE FUNCTION random_orders(n int) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  query text;
  conditions text;
BEGIN
  FOR i IN 1 .. n LOOP
    conditions := '';
    FOR j IN 1 .. floor(random() * 4)::int LOOP
      conditions := conditions || CASE WHEN j = 1 THEN ' WHERE ' ELSE ' AND ' END || condition(random() < 0.7);
    END LOOP;
    query := format('SELECT %s FROM m AS x%s ORDER BY x.ts %s, x::text %s', pick('x.*', 'x', 'x.ts, x.f', 'x.t, x.d'), conditions, pick('', 'DESC', 'DESC NULLS LAST', 'NULLS FIRST'),
                    pick('', 'LIMIT ' || floor(random() * 300)::int));
    IF answer_in_order(query) IS DISTINCT FROM answer_in_order(twin(query)) THEN
      RETURN NEXT query;
    END IF;
  END LOOP;
END
$$;
SELECT is_empty('SELECT random_orders(100)', 'random orders by time');
SET LOCAL enable_sort = off;
SELECT is_empty('SELECT random_orders(100)', 'random orders by time, without sorting');
RESET enable_sort;
SELECT is_empty(format('SELECT random_queries(%s)', coalesce(current_setting('bucket_scan.rounds', true), '300')), 'random queries, nothing analysed');
ANALYZE m; ANALYZE m_packed; ANALYZE m_recent; ANALYZE m_plain;
SELECT cmp_ok((SELECT reltuples FROM pg_class WHERE oid = 'm'::regclass), '=', (SELECT count(*) FROM m_plain)::real, 'ANALYZE counts measurements');
SELECT is_empty('SELECT random_queries(150)', 'random queries, all analysed');
SET LOCAL min_parallel_table_scan_size = 0; SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0;
SELECT is_empty('SELECT random_queries(50)', 'random queries, with workers where the table is new to them');
RESET min_parallel_table_scan_size; RESET parallel_setup_cost; RESET parallel_tuple_cost;

-- generic plans, with keys that change
SET LOCAL plan_cache_mode = force_generic_plan;
PREPARE of_m (int, timestamptz, timestamptz) AS SELECT count(*), sum(i), min(ts) FROM m WHERE sensor = $1 AND ts >= $2 AND ts < $3;
PREPARE of_plain (int, timestamptz, timestamptz) AS SELECT count(*), sum(i), min(ts) FROM m_plain WHERE sensor = $1 AND ts >= $2 AND ts < $3;
SELECT results_eq(format('EXECUTE of_m (%s)', k), format('EXECUTE of_plain (%s)', k), 'prepared: ' || k)
  FROM unnest(ARRAY['1, ''2024-03-31'', ''2024-03-31 10:10''', '2, ''-infinity'', ''infinity''', 'NULL, ''2024-03-31'', ''2024-04-01''', '3, ''2024-03-31 00:17'', ''2024-03-31 00:17''']) k;
CREATE FUNCTION explained(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; lines text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP lines := concat_ws(' ', lines, trim(line)); END LOOP;
  RETURN lines;
END
$$;
SELECT matches(explained('EXECUTE of_m (1, ''2024-03-31'', ''2024-03-31 10:10'')'), '^Foreign Scan Relation: ', 'whose aggregates come from headers even if the times are not known to the planner');
SELECT matches(explained('SELECT ' || a), '^Foreign Scan Relation: ', 'from columns: ' || a)
  FROM unnest(ARRAY['sensor, stddev(f) FROM m GROUP BY sensor', 'sum(f) FILTER (WHERE i > 3 AND r < 0.5 AND big < 100) FROM m', 'avg(f) FROM m WHERE f > 1 AND s < 90']) a;
PREPARE filtered (int, int) AS SELECT count(*) FILTER (WHERE i > $1), sum(i) FILTER (WHERE i <= $1), max(f) FROM m WHERE i < $2;
PREPARE filtered_plain (int, int) AS SELECT count(*) FILTER (WHERE i > $1), sum(i) FILTER (WHERE i <= $1), max(f) FROM m_plain WHERE i < $2;
SELECT results_eq(format('EXECUTE filtered (%s)', k), format('EXECUTE filtered_plain (%s)', k), 'prepared filters: ' || k) FROM unnest(ARRAY['3, 10', 'NULL, 12']) k;
SELECT matches(explained('SELECT * FROM m ORDER BY ts DESC LIMIT 10'), '^Limit ->  Foreign Scan on m Buckets: all groups, in order of time, from the end$', 'the newest of all groups are not sorted');
SELECT is_empty($$
  SELECT c FROM unnest(ARRAY['', 'WHERE x.sensor > 2', 'WHERE x.place IS NULL', 'WHERE x.ts < ''2024-03-31 03:17''', 'WHERE x.ts >= ''2024-03-31 15:55'' AND x.sensor < 4', 'WHERE x.sensor IN (1, 3)', 'WHERE x.i > 3', 'WHERE x.ts < ''2000-01-01''']) c
  WHERE answer_in_order(format('SELECT DISTINCT ON (x.sensor, x.place) x.sensor, x.place, x.ts FROM m AS x %s ORDER BY x.sensor, x.place, x.ts DESC', c))
    IS DISTINCT FROM answer_in_order(format('SELECT DISTINCT ON (x.sensor, x.place) x.sensor, x.place, x.ts FROM m_plain AS x %s ORDER BY x.sensor, x.place, x.ts DESC', c)) $$, 'the last of every group, DISTINCT ON');
SELECT is_empty('SELECT x FROM (SELECT DISTINCT ON (sensor, place) * FROM m ORDER BY sensor, place, ts DESC) x WHERE x::text NOT IN (SELECT y::text FROM m_plain y)', 'whose columns are of one row');
SELECT matches(explained('SELECT DISTINCT ON (sensor, place) * FROM m ORDER BY sensor, place, ts DESC NULLS LAST'), '^Unique ->  Foreign Scan on m Buckets: by index, the last measurement of each group$', 'which reads only their last buckets');
CREATE TABLE parted (LIKE m_plain) PARTITION BY RANGE (ts);
CREATE TABLE parted_new PARTITION OF parted FOR VALUES FROM ('2024-03-31') TO ('2030-01-01');
SELECT bucket_create('parted_old', columns_of => 'm_plain', group_by => '{sensor,place}', time_field => 'ts', span => '1 hour', max_count => 20);
INSERT INTO parted_old SELECT * FROM m_plain WHERE ts < '2024-03-31';
INSERT INTO parted_new SELECT * FROM m_plain WHERE ts >= '2024-03-31';
ALTER TABLE parted ATTACH PARTITION parted_old FOR VALUES FROM ('2000-01-01') TO ('2024-03-31');
CREATE INDEX ON parted_new (ts);
ANALYZE parted;
SET LOCAL enable_sort = off;
SELECT is(answer_in_order('SELECT x FROM parted AS x ORDER BY ts, x::text'), answer_in_order('SELECT x FROM m_plain AS x ORDER BY ts, x::text'), 'partitions in the order of time');
SELECT matches(explained('SELECT * FROM parted ORDER BY ts'), 'parted_old parted_1 Buckets: all groups, in order of time', 'which a partition of buckets gives its rows in');
RESET enable_sort;

-- cursors
DECLARE c SCROLL CURSOR FOR SELECT ts FROM m WHERE sensor = 1 AND place = 'attic' ORDER BY ts;
FETCH 10 FROM c \g /dev/null
SELECT is((SELECT count(*) FROM m WHERE sensor = 1 AND place = 'attic'), (SELECT count(*) FROM m_plain WHERE sensor = 1 AND place = 'attic'), 'another query beside an open cursor');
CLOSE c;

-- the order of time over all groups: the first rows in both directions
CREATE FUNCTION first_rows(rounds int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  q text;
  want text;
  got text;
  packed text := $q$SELECT count(*) || ' ' || coalesce(md5(string_agg(x::text, E'\n' ORDER BY x::text COLLATE "C")), '') FROM (%s) x$q$;
  in_order text := $q$SELECT string_agg(ts::text, ',') FROM (%s) x$q$;
BEGIN
  FOR i IN 1 .. rounds LOOP
    q := CASE WHEN random() < 0.7 THEN format('SELECT %s FROM m AS m WHERE %s ORDER BY ts %s FETCH FIRST %s ROWS WITH TIES', (ARRAY['*', 'sensor, ts', 'i, f, ts', 'ts, t, d', 'ts'])[1 + (random() * 4)::int],
        (ARRAY['true', 'sensor > 2', $c$place = 'attic'$c$, 'place IS NULL AND i > 3', $c$ts >= '2024-03-31 03:17'$c$, $c$ts < '2024-03-31 03:17' AND sensor IN (1, 4)$c$, 'i > 10', 'f IS NULL', 'sensor = 77', $c$ts = '2024-03-31'$c$,
               $c$ts > '2025-01-01'$c$, $c$ts BETWEEN '2024-03-31 02:00' AND '2024-03-31 02:59'$c$, 'm.n > 50 OR b'])[1 + (random() * 12)::int], (ARRAY['', 'DESC'])[1 + (random() * 1)::int], (random() * random() * 4000)::int)
      ELSE format('SELECT %s FROM l AS l WHERE %s ORDER BY ts %s FETCH FIRST %s ROWS WITH TIES', (ARRAY['*', 'ts', 'w, ts'])[1 + (random() * 2)::int],
        (ARRAY['true', 'v > 40', $c$ts >= '2023-05-17'$c$, $c$ts < '2023-05-17' AND w < 0.5$c$])[1 + (random() * 3)::int], (ARRAY['', 'DESC'])[1 + (random() * 1)::int], (random() * random() * 1000)::int) END;
    EXECUTE format(packed, q) INTO got;
    EXECUTE format(packed, twin(q)) INTO want;
    IF got IS DISTINCT FROM want THEN RETURN q; END IF;
    EXECUTE format(in_order, q) INTO got;
    EXECUTE format(in_order, twin(q)) INTO want;
    IF got IS DISTINCT FROM want THEN RETURN 'order: ' || q; END IF;
  END LOOP;
  RETURN NULL;
END
$$;
SELECT is(first_rows(coalesce(current_setting('bucket_scan.rounds', true), '100')::int), NULL, 'the first rows, random');
SET LOCAL enable_sort = off;
SELECT is(first_rows(40), NULL, 'the same where sorting costs');
SET LOCAL work_mem = '64kB';
SELECT same('SELECT m.* FROM (SELECT m.* FROM m AS m ORDER BY ts OFFSET 0) m', 'all, with little memory');
SELECT same('SELECT g, x FROM generate_series(1, 4) g, LATERAL (SELECT ts, i, sensor FROM m AS m WHERE i > g * 3 ORDER BY ts DESC FETCH FIRST 5 ROWS WITH TIES) x', 'once for each outer row');
RESET work_mem;
RESET enable_sort;
CREATE TEMP TABLE m_before ON COMMIT DROP AS SELECT ts FROM m_plain;
DECLARE c SCROLL CURSOR FOR SELECT ts FROM m ORDER BY ts DESC;
FETCH 5 FROM c \g /dev/null
DELETE FROM m WHERE sensor = 2;
DELETE FROM m_plain WHERE sensor = 2;
MOVE 2000000 FROM c \g /dev/null
FETCH BACKWARD 1 FROM c \gset oldest_
SELECT is(:'oldest_ts'::timestamptz, (SELECT min(ts) FROM m_before), 'a cursor reads what its snapshot shows');
CLOSE c;
SELECT same('SELECT m.* FROM m AS m ORDER BY ts DESC FETCH FIRST 50 ROWS WITH TIES', 'a later query does not');

SELECT finish();
ROLLBACK;
