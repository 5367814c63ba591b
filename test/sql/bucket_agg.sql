-- Buckets on any table: many measurements in one value, and what can be asked of it.
SET timezone = 'UTC';
SET extra_float_digits = 1;
\pset null '(null)'

CREATE TABLE log (sensor int, ts timestamptz, temperature float8, moisture int);
INSERT INTO log
  SELECT s, timestamptz '2024-05-01 10:00' + m * interval '1 min', round((20 + s + sin(m / 10.0))::numeric, 1)::float8, 500 + m % 7
  FROM generate_series(1, 2) s, generate_series(0, 179) m;

-- a bucket per sensor and hour: 60 measurements in a few dozen bytes
CREATE TABLE hours AS
  SELECT sensor, bucket_start('1 hour', ts) AS hour, bucket_agg(ts, temperature, moisture) AS b
  FROM log GROUP BY sensor, hour;
SELECT sensor, hour, bucket_count(b), bucket_first(b), bucket_last(b), bucket_span(b), pg_column_size(b) < 120 AS small
  FROM hours ORDER BY sensor, hour;

-- what the header knows; fields without names are called value1, value2, ..
SELECT sensor, hour, bucket_sum(b, 'value2') AS sum, round(bucket_avg(b, 'value1')::numeric, 4) AS avg,
       bucket_min(b, 'value1') AS min, bucket_max(b, 'value1') AS max, round(bucket_stddev(b, 'value1')::numeric, 4) AS stddev
  FROM hours ORDER BY sensor, hour;
SELECT bucket_first(b, 'value1'), bucket_last(b, 'value1'), bucket_count(b, 'value2') FROM hours WHERE sensor = 1 ORDER BY hour LIMIT 1;

-- buckets are merged, and sliced
SELECT sensor, bucket_count(bucket_merge(b)), bucket_span(bucket_merge(b)), bucket_sum(bucket_merge(b), 'value2') FROM hours GROUP BY sensor ORDER BY sensor;
SELECT bucket_count(s), bucket_first(s), bucket_last(s), bucket_avg(s, 'value2')
  FROM (SELECT bucket_slice(bucket_merge(b), '2024-05-01 10:30', '2024-05-01 11:30') FROM hours WHERE sensor = 1) x (s);

-- a single row gives the names of its columns, and the measurements come back as they were
SELECT bucket_avg(bucket_agg(ts, log), 'moisture') FROM log WHERE sensor = 2;
SELECT * FROM bucket_unpack((SELECT bucket_agg(ts, log) FROM log), NULL::log) LIMIT 3;
SELECT * FROM bucket_to_recordset((SELECT b FROM hours ORDER BY sensor, hour LIMIT 1)) AS r (ts timestamptz, temperature numeric, moisture bigint) LIMIT 3;
(SELECT * FROM log EXCEPT ALL SELECT * FROM bucket_unpack((SELECT bucket_agg(ts, log) FROM log), NULL::log))
UNION ALL (SELECT * FROM bucket_unpack((SELECT bucket_agg(ts, log) FROM log), NULL::log) EXCEPT ALL SELECT * FROM log);

-- measurements that are documents: each field is a column, and they need not be alike
CREATE TABLE events (ts timestamptz, doc bson);
INSERT INTO events VALUES
  ('2024-05-01 10:00', '{t: 20.5, state: "ok", at: {room: 1}}'), ('2024-05-01 10:02', '{t: 21, state: null}'),
  ('2024-05-01 10:01', '{t: 20.5, alarm: true}');
SELECT ts, doc FROM bucket_unpack((SELECT bucket_agg(ts, doc) FROM events));
SELECT bucket_count(b), bucket_count(b, 't'), bucket_count(b, 'state'), bucket_sum(b, 't'), bucket_max(b, 'at.room'), bucket_sum(b, 'nothing')
  FROM (SELECT bucket_agg(ts, doc) FROM events) x (b);

-- spans: months by the calendar, days by the clock of a place, anything from any origin
SELECT bucket_start('1 month', '2024-02-29 12:00'), bucket_start('1 week', '2024-02-29 12:00'), bucket_start('15 min', '2024-02-29 12:44');
SELECT day, count(*) AS hours FROM (
  SELECT bucket_start('1 day', t, NULL, 'Europe/Paris') FROM generate_series(timestamptz '2024-03-29 23:00', '2024-04-01 21:30', '1 hour') t) x (day)
  GROUP BY day ORDER BY day;
SELECT bucket_start('1 year', date '2024-06-30', date '2000-04-01'), bucket_start('8 hours', timestamp '2024-06-30 07:00', '2000-01-01 06:00');

-- gaps: the spans alone, joined to what was measured, and filled
CREATE TABLE gaps AS SELECT ts, moisture FROM log WHERE sensor = 1 AND (ts < '2024-05-01 10:02' OR ts BETWEEN '2024-05-01 10:05' AND '2024-05-01 10:06');
SELECT s, avg(moisture)::float8 AS avg, bucket_locf(avg(moisture)::float8) OVER (ORDER BY s) AS carried,
       bucket_interpolate(s, avg(moisture)::float8) OVER (ORDER BY s) AS line
  FROM bucket_starts('1 min', '2024-05-01 09:59', '2024-05-01 10:08') s LEFT JOIN gaps ON bucket_start('1 min', ts) = s
  GROUP BY s ORDER BY s;
SELECT n.start, n.value AS plain, p.value AS previous, l.value AS linear
  FROM (SELECT bucket_agg(ts, moisture) FROM gaps) x (b),
       bucket_series(b, '1 min') n, bucket_series(b, '1 min', fill => 'previous') p, bucket_series(b, '1 min', fill => 'linear') l
  WHERE n.start = p.start AND n.start = l.start ORDER BY 1;

-- as documents, in four layouts, and back
CREATE TABLE day AS SELECT bucket_agg(ts, value) AS b
  FROM (VALUES (timestamptz '2015-05-29 00:00', 123), ('2015-05-29 00:01', 345), ('2015-05-29 13:37', 50000)) x (ts, value);
SELECT bucket_to_bson(b) FROM day;
SELECT bucket_to_bson(b, 'columns') FROM day;
SELECT bucket_to_bson(b, 'keyed') FROM day;
SELECT bucket_to_bson(bucket_slice(b, '2015-05-29 00:00', '2015-05-29 00:30'), 'keyed', units => '{minute}') FROM day;
SELECT bson_size(doc) > 5000 AS all_slots, doc -> 'values.13.37' AS at_13_37, doc -> 'values.13.38' AS at_13_38
  FROM (SELECT bucket_to_bson(b, 'dense', '{hour,minute}') FROM day) x (doc);
SELECT layout, bucket_to_bson(bucket_from_bson(bucket_to_bson(b, layout)), layout) = bucket_to_bson(b, layout) AS same
  FROM day, unnest('{rows,columns,dense,keyed}'::text[]) layout;

-- documents that others wrote
SELECT ts, doc FROM bucket_unpack(bucket_from_bson('{clientid: 1234, timestamp: ISODate("2015-05-29T23:06:00Z"), metric: "op_counter", values: {0: 0, 59: 2000000}}',
  'keyed', '{second}', start_field => 'timestamp'));
SELECT bucket_sum(bucket_from_bson('{_id: 1, views: [{at: ISODate("2024-03-01"), n: 3}, {at: ISODate("2024-03-02"), n: 4}]}', field => 'views', time_field => 'at'), 'n');

-- and by a template
SELECT bson_pretty(bucket_document(b, '{_id: {$concat: ["$sensor", "_", {$dateToString: {format: "%Y-%m-%dT%H", date: "$start"}}]},
  hour: "$start", measurements: [{temp: "$temp", time: "$timestamp"}], count: "$count", avg_temp: {$avg: "temp"}}', '{sensor: "sensor-1"}', '{temp}'))
  FROM (SELECT bucket_agg(ts, temperature) FROM log WHERE sensor = 1 AND ts < '2024-05-01 10:02') x (b);

-- pages: measurements without times
SELECT bucket_to_bson(bucket_page_agg(sender, body ORDER BY n)), bucket_first(bucket_page_agg(body)) FROM (VALUES (1, 'ada', 'hi'), (2, 'bob', 'hello')) x (n, sender, body);

DROP TABLE log, hours, events, gaps, day;
