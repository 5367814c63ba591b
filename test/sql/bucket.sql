-- A relation of measurements: written and read with plain SQL, kept in buckets.
SET timezone = 'UTC';
SET datestyle = 'ISO';
SET client_min_messages = warning;
\set VERBOSITY terse

SELECT bucket_create('readings', columns => 'sensor_id int, ts timestamptz, temperature float8, moisture int',
                     group_by => '{sensor_id}', time_field => 'ts', span => '1 hour');

-- Beneath it there are two tables and, beside it, a view.
SELECT relname, relkind FROM pg_class WHERE relname LIKE 'readings%' AND relkind <> 'i' ORDER BY 1;
SELECT options FROM pattern_list('readings');

-- Measurements go in.  Those of hours that are over are packed, the last ones wait.
INSERT INTO readings
  SELECT s, timestamptz '2024-03-01' + m * interval '1 min', 20 + s + (m % 10) / 10.0, CASE WHEN m % 7 > 0 THEN 500 + m / 60 END
  FROM generate_series(1, 3) s, generate_series(0, 299) m;
SELECT bucket_pack('readings');
INSERT INTO readings VALUES (1, '2024-03-01 05:00', 19.5, 499) RETURNING *;
SELECT count(*) AS buckets, sum(bucket_count(data)) AS measurements FROM readings_packed;
SELECT * FROM readings_recent;

-- And come out.
SELECT * FROM readings WHERE sensor_id = 2 AND ts >= '2024-03-01 03:58' AND ts < '2024-03-01 04:02' ORDER BY ts;
SELECT * FROM readings WHERE sensor_id = 1 ORDER BY ts DESC LIMIT 3;
SELECT sensor_id, count(*), round(avg(temperature)::numeric, 3) AS avg, min(moisture), max(moisture), sum(moisture) FROM readings GROUP BY sensor_id ORDER BY 1;
SELECT bucket_start('2 hours', ts) AS start, count(*), sum(moisture) FROM readings WHERE sensor_id = 1 GROUP BY 1 ORDER BY 1;

-- What EXPLAIN says of it, without what differs from one server to the next
CREATE FUNCTION explain(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
    IF line ~ '(Bucket|Header|Waiting|Relation)' THEN
      RETURN NEXT btrim(regexp_replace(line, '\$\d+', '$n'));
    ELSIF line ~ '(Scan|Limit|Aggregate|Sort|Join|Loop|Filter:)' THEN
      RETURN NEXT btrim(regexp_replace(line, ' *\(actual.*', ''));
    END IF;
  END LOOP;
END
$$;
-- A group and a stretch of time are found by the index ..
SELECT explain($$SELECT * FROM readings WHERE sensor_id = 2 AND ts >= '2024-03-01 03:58' AND ts < '2024-03-01 04:02'$$);
-- .. and the latest ones from the end.
SELECT explain($$SELECT * FROM readings WHERE sensor_id = 2 ORDER BY ts DESC LIMIT 3$$);
-- Other columns skip buckets by what their headers say.
SELECT explain($$SELECT * FROM readings WHERE moisture > 503 AND temperature < 23$$);
-- Aggregates are answered from headers; a bucket that the time cuts through is read.
SELECT explain($$SELECT sensor_id, avg(temperature) FROM readings GROUP BY sensor_id$$);
SELECT explain($$SELECT max(temperature) FROM readings WHERE sensor_id = 3 AND ts >= '2024-03-01 00:30'$$);
-- What has no place in a header is computed from rows.
SELECT explain($$SELECT sum(temperature + 1) FROM readings WHERE sensor_id = 3$$);
-- A join looks up each of its sensors.
SET enable_hashjoin = off; SET enable_mergejoin = off;
SELECT explain($$SELECT s, r.ts FROM generate_series(1, 3) s CROSS JOIN LATERAL (SELECT ts FROM readings WHERE sensor_id = s ORDER BY ts DESC LIMIT 1) r$$);
RESET enable_hashjoin; RESET enable_mergejoin;

-- The buckets as documents, what waits included
SELECT sensor_id, start, doc -> 'transaction_count' AS count, doc -> 'measurements.0' AS first FROM readings_buckets WHERE sensor_id = 1 ORDER BY start;
SELECT bucket_create('temps', columns => 'sensor text, "time" timestamptz, temp float8', group_by => '{sensor}', time_field => 'time', span => '1 hour',
  document => '{"_id": {"$concat": ["$sensor", "_", {"$dateToString": {"format": "%Y-%m-%dT%H", "date": "$start"}}]}, "hour": "$start",
                "measurements": [{"temp": "$temp", "time": "$time"}], "count": "$count", "avg_temp": {"$avg": "temp"}}');
INSERT INTO temps SELECT 'sensor-1', timestamptz '2024-01-15 10:00' + i * interval '20 min', 23.5 + i FROM generate_series(0, 3) i;
SELECT doc FROM temps_buckets ORDER BY start;

-- Pages have no time: so many to a row, in the order in which they came.
SELECT bucket_create('chat', columns => 'channel text, body text', group_by => '{channel}', span => NULL, max_count => 3);
INSERT INTO chat SELECT 'general', 'message ' || i FROM generate_series(1, 7) i;
SELECT * FROM chat_buckets ORDER BY page;

-- Columns are what they are in the buckets; names may change.
ALTER FOREIGN TABLE readings ADD COLUMN pressure int;
ALTER FOREIGN TABLE readings DROP COLUMN moisture;
ALTER FOREIGN TABLE readings RENAME COLUMN temperature TO degrees;
SELECT max(degrees) FROM readings WHERE sensor_id = 2;

-- What is refused
SELECT bucket_create('no', columns => 'a int, ts timestamptz', group_by => '{b}', time_field => 'ts');
SELECT bucket_create('no', columns => 'a int, ts date', group_by => '{a}', time_field => 'ts');
SELECT bucket_create('no', columns => 'a int, ts timestamptz', group_by => '{a}', time_field => 'ts', span => '1 month 2 days');
SELECT bucket_create('no', columns => 'a int, ts timestamptz', group_by => '{a}', time_field => 'ts', time_zone => 'Nowhere/Land');
SELECT bucket_create('no', columns => 'a int, ts timestamptz', group_by => '{a}', time_field => 'ts', span => NULL);
SELECT bucket_create('no', columns => 'a int, ts timestamptz', group_by => '{a}', time_field => 'ts', same_slot => 'add');
SELECT bucket_create('no', columns => 'a int, ts timestamptz); DROP TABLE readings_packed; CREATE TABLE x (a int', group_by => '{a}', time_field => 'ts');
SELECT bucket_create('no', columns => 'a int PRIMARY KEY, ts timestamptz', group_by => '{a}', time_field => 'ts');
SELECT bucket_create('no', columns => 'a int, ts timestamptz', time_field => 'ts', document => '{"x": {"$avg": "nothing"}}');
CREATE FOREIGN TABLE mine (a int) SERVER docpatterns_bucket;
SELECT * FROM mine;
DROP TABLE readings_packed;
INSERT INTO readings_packed SELECT * FROM readings_packed;

-- AFTER ROW triggers beneath, as those of foreign keys, see what is packed again.
CREATE FUNCTION beneath() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RETURN NULL; END$$;
CREATE TRIGGER beneath AFTER DELETE ON chat_packed FOR EACH ROW EXECUTE FUNCTION beneath();
SELECT bucket_resize('chat', max_count => 2);
SELECT * FROM chat_buckets ORDER BY page;

-- What lies beneath goes with the relation.
DROP FOREIGN TABLE mine, readings, temps, chat;
SELECT relname FROM pg_class WHERE relname ~ '^(readings|temps|chat|no)(_|$)';
DROP FUNCTION explain, beneath;
