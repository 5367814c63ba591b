-- The type bucket: every value of every type comes back as it was, and damaged bytes are refused.
BEGIN;
SELECT plan(112);
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT setseed(0.20181211);
-- for damaged buckets, which bucket_recv does not let in
CREATE CAST (bytea AS bucket) WITHOUT FUNCTION;

-- The type itself
SELECT is((SELECT (typstorage, typalign, typlen, typcategory)::text FROM pg_type WHERE typname = 'bucket'), '(e,i,-1,U)', 'stored out of line uncompressed');
SELECT function_returns('bucket_fault', ARRAY['bytea'], 'text', 'bucket_fault says what is wrong');
SELECT is((SELECT string_agg(proname, ' ' ORDER BY proname) FROM pg_proc WHERE proname ~ '^bucket_(in|out|send|recv|fault)$' AND provolatile = 'i' AND proisstrict AND proparallel = 's'),
  'bucket_fault bucket_in bucket_out bucket_recv bucket_send', 'all immutable, strict, parallel safe');

/* Packs the values, one a minute (in reverse order of rows), and reads them back as rows, through text and through bytes. 'same',
   or what is not. */
CREATE FUNCTION pg_temp.trip(vals anyarray) RETURNS text LANGUAGE plpgsql AS $$
DECLARE b bucket; c bucket; back text; n int := cardinality(vals); typ text := regexp_replace(pg_typeof(vals)::text, '\[\]$', ''); fault text; wrong bigint;
BEGIN
  SELECT bucket_agg(timestamptz '2018-12-11 12:00+00' + i * interval '1 minute', v ORDER BY i DESC) INTO b FROM unnest(vals) WITH ORDINALITY u (v, i);
  IF bucket_count(b) <> n THEN RETURN 'other count'; END IF;
  EXECUTE format('SELECT array_send(array_agg(v ORDER BY o)) FROM ROWS FROM (bucket_to_recordset($1) AS (ts timestamptz, v %s)) WITH ORDINALITY r (ts, v, o)', typ) INTO back USING b;
  IF back IS DISTINCT FROM array_send(vals)::text THEN RETURN 'other values'; END IF;
  EXECUTE 'SELECT count(*) FROM ROWS FROM (bucket_to_recordset($1) AS (ts timestamptz)) WITH ORDINALITY r (ts, o) WHERE ts <> timestamptz ''2018-12-11 12:00+00'' + o * interval ''1 minute''' INTO wrong USING b;
  IF wrong > 0 THEN RETURN 'other times'; END IF;
  fault := bucket_fault(bucket_send(b));
  IF fault IS NOT NULL THEN RETURN fault; END IF;
  c := b::text::bucket;
  IF bucket_send(c) <> bucket_send(b) THEN RETURN 'other text: ' || left(b::text, 200); END IF;
  RETURN 'same';
END $$;

-- Whole numbers, the extremes among them
SELECT is(pg_temp.trip(ARRAY[true, false, NULL, true]), 'same', 'bool');
SELECT is(pg_temp.trip(ARRAY[-32768, 32767, NULL, 0, -1]::int2[]), 'same', 'int2');
SELECT is(pg_temp.trip(ARRAY[-2147483648, 2147483647, NULL, 0]), 'same', 'int4');
SELECT is(pg_temp.trip(ARRAY[-9223372036854775808, 9223372036854775807, NULL, 0, 9223372036854775807, -9223372036854775808]), 'same', 'int8');
SELECT is(pg_temp.trip(ARRAY[5]), 'same', 'one value');
SELECT is(pg_temp.trip(ARRAY[NULL, NULL]::int[]), 'same', 'nothing but NULL');
SELECT is(pg_temp.trip(ARRAY[NULL]::text[]), 'same', 'a single NULL');
SELECT is(pg_temp.trip(array_agg(i)), 'same', 'a line') FROM generate_series(-500, 500) i;
SELECT is(pg_temp.trip(array_agg(7)), 'same', 'the same') FROM generate_series(1, 1000) i;
SELECT is(pg_temp.trip(array_agg(CASE WHEN i % 100 = 0 THEN 1000000 + i ELSE i END)), 'same', 'a line with outliers') FROM generate_series(1, 1000) i;
SELECT is(pg_temp.trip(array_agg((i / 137) * 1000003)), 'same', 'steps') FROM generate_series(1, 1000) i;
SELECT is(pg_temp.trip(array_agg(CASE WHEN i < 500 THEN i * 3 ELSE 3000 - i * 2 END)), 'same', 'two slopes') FROM generate_series(1, 1000) i;
SELECT is(pg_temp.trip(array_agg(625 * (random() * 50)::int)), 'same', 'multiples') FROM generate_series(1, 500) i;
SELECT is(pg_temp.trip(array_agg((random() * 1e18)::int8 - 500000000000000000)), 'same', 'noise of 60 bits') FROM generate_series(1, 500) i;
SELECT is(pg_temp.trip(array_agg((power(2, random() * 62))::int8 * (CASE WHEN random() < 0.5 THEN -1 ELSE 1 END))), 'same', 'all sizes of numbers') FROM generate_series(1, 500) i;
SELECT is(pg_temp.trip(array_agg(CASE WHEN random() < 0.3 THEN NULL ELSE (random() * 10)::int END)), 'same', 'a third is NULL') FROM generate_series(1, 700) i;

-- Floating point: bit for bit
SELECT is(pg_temp.trip(ARRAY['NaN', 'Infinity', '-Infinity', '-0', '0', 5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 0.1, NULL, 1e22, 9007199254740993]::float8[]), 'same', 'float8');
SELECT is(pg_temp.trip(ARRAY['NaN', 'Infinity', '-Infinity', '-0', '0', 1e-45, 3.4028235e38, 0.1, NULL, 16777217]::float4[]), 'same', 'float4');
SELECT is(pg_temp.trip(array_agg((200 + (random() * 100)::int) / 10.0::float8)), 'same', 'one decimal') FROM generate_series(1, 500) i;
SELECT is(pg_temp.trip(array_agg(((200 + (random() * 100)::int) / 10.0)::float4)), 'same', 'one decimal in a float4') FROM generate_series(1, 500) i;
SELECT is(pg_temp.trip(array_agg(21 + (random() * 64)::int / 16.0::float8)), 'same', 'sixteenths') FROM generate_series(1, 500) i;
SELECT is(pg_temp.trip(array_agg(random())), 'same', 'all digits') FROM generate_series(1, 500) i;
SELECT is(pg_temp.trip(array_agg(random()::float4)), 'same', 'all digits of a float4') FROM generate_series(1, 500) i;
SELECT is(pg_temp.trip(array_agg((i % 7) / 3.0::float8)), 'same', 'few values of many digits') FROM generate_series(1, 500) i;
SELECT is(pg_temp.trip(array_agg(CASE i % 50 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN random() ELSE i / 100.0::float8 END)), 'same', 'exceptions among decimals') FROM generate_series(1, 500) i;
SELECT is(pg_temp.trip(array_agg((random() * 1e6)::int / 1e6)), 'same', 'six decimals') FROM generate_series(1, 500) i;
SELECT is(pg_temp.trip(array_agg(i * 1e300)), 'same', 'very large') FROM generate_series(1, 100) i;
SELECT is(pg_temp.trip(array_agg('-0'::float8)), 'same', 'nothing but -0') FROM generate_series(1, 20) i;

-- Numerics keep their digits
SELECT is(pg_temp.trip(ARRAY[1.50, 1.5, 2, 2.000, -0.01, 0, 0.00, NULL]), 'same', 'different numbers of digits');
SELECT is(pg_temp.trip(array_agg((i * 0.05)::numeric(10,2))), 'same', 'numeric(10,2)') FROM generate_series(-300, 300) i;
SELECT is(pg_temp.trip(ARRAY['NaN', 'Infinity', '-Infinity', 1.5, NULL]::numeric[]), 'same', 'no numbers');
SELECT is(pg_temp.trip(ARRAY[123456789012345678901234567890.123456789, -1e-30, 1e100, 0.1]), 'same', 'more than fits');
SELECT is(pg_temp.trip(ARRAY[9223372036854775807, -9223372036854775808, 922337203685477580.7, 0.000000000000000001]::numeric[]), 'same', 'at the limits');
SELECT is(pg_temp.trip(ARRAY[10000, 100000000, 1e15, 12345678.9000]::numeric[]), 'same', 'zeros at the end');

-- Dates and times
SELECT is(pg_temp.trip(ARRAY['infinity', '-infinity', '4713-01-01 BC', '5874897-12-31', '2018-12-11', NULL]::date[]), 'same', 'date');
SELECT is(pg_temp.trip(ARRAY['infinity', '-infinity', '4713-01-01 00:00 BC', '294276-12-31 23:59:59.999999', '2018-12-11 01:02:03.000004', NULL]::timestamp[]), 'same', 'timestamp');
SELECT is(pg_temp.trip(ARRAY['infinity', '-infinity', '4713-01-01 00:00+00 BC', '294276-12-31 23:59:59.999999+00', '2018-12-11 01:02:03.000004+00', NULL]::timestamptz[]), 'same', 'timestamptz');
SELECT is(pg_temp.trip(ARRAY['00:00', '24:00', '23:59:59.999999', NULL]::time[]), 'same', 'time');

-- Text and bytes
SELECT is(pg_temp.trip(ARRAY['', 'a', 'ä€😀', NULL, 'a"b\c' || chr(10) || chr(1), 'null', '{"$numberInt": "5"}']), 'same', 'text');
SELECT is(pg_temp.trip(array_agg((ARRAY['open', 'closed', 'unknown'])[1 + (random() * 2)::int])), 'same', 'few words') FROM generate_series(1, 500) i;
SELECT is(pg_temp.trip(array_agg(md5(i::text))), 'same', 'many words') FROM generate_series(1, 500) i;
SELECT is(pg_temp.trip(array_agg(repeat('long ', i * 100))), 'same', 'long texts') FROM generate_series(0, 20) i;
SELECT is(pg_temp.trip(ARRAY['', '\x00', '\x0001ff', NULL, '\x00']::bytea[]), 'same', 'bytea');
SELECT is(pg_temp.trip(array_agg(md5((i / 3)::text)::uuid)), 'same', 'uuid') FROM generate_series(1, 50) i;
SELECT is(pg_temp.trip(array_agg(left(md5((i / 3)::text), 24)::objectid)), 'same', 'objectid') FROM generate_series(1, 50) i;
SELECT is(pg_temp.trip(ARRAY['a', 'b', NULL]::varchar(5)[]), 'same', 'varchar');

-- BSON
SELECT is(pg_temp.trip(ARRAY['1', '2.5', '"a"', 'null', NULL, '{"a": [1, 2]}', '[]', '{"$numberLong": "1"}', '{"$numberDecimal": "1.50"}', 'true', '{"$date": 5}', '{"$oid": "507f1f77bcf86cd799439011"}',
  '{"$binary": {"base64": "AAEC", "subType": "80"}}', '{"$minKey": 1}', '{"$maxKey": 1}', '{"$undefined": true}', '{"$timestamp": {"t": 1, "i": 2}}', '{"$regularExpression": {"pattern": "a", "options": "i"}}',
  '{"$code": "x"}', '{"$symbol": "s"}', '{"$numberDouble": "NaN"}', '{"$numberDouble": "-0.0"}', '""', '"a\u0000b"']::bson_value[]), 'same', 'bson_value of all types');
SELECT is(pg_temp.trip(array_agg(i::bson_value)), 'same', 'bson_value: int32') FROM generate_series(1, 100) i;
SELECT is(pg_temp.trip(array_agg((i / 10.0)::float8::bson_value)), 'same', 'bson_value: double') FROM generate_series(1, 100) i;
SELECT is(pg_temp.trip(array_agg((i % 4)::text::bson_value)), 'same', 'bson_value: repeated') FROM generate_series(1, 100) i;

-- Documents come back byte for byte, in whatever order their fields are
CREATE TEMP TABLE docs (i serial, d bson);
INSERT INTO docs (d) SELECT bson_build('temperature', 20 + (i % 10) / 10.0, 'moisture', i % 7) FROM generate_series(1, 50) i;
INSERT INTO docs (d) VALUES ('{"moisture": 1, "temperature": 2.5}'), ('{}'), ('{"a": null}'), ('{"a": 1, "a": 2}'), ('{"": 5}'), ('{"temperature": "text", "b": {"c": [1]}}'), ('{"moisture": null}'), (NULL);
SELECT is((SELECT array_agg(docpatterns.bson_send(doc) ORDER BY o) FROM ROWS FROM (bucket_unpack((SELECT bucket_agg(timestamptz 'epoch' + i * interval '1 s', d ORDER BY i) FROM docs WHERE d IS NOT NULL))) WITH ORDINALITY u (ts, doc, o)),
  (SELECT array_agg(docpatterns.bson_send(d) ORDER BY i) FROM docs WHERE d IS NOT NULL), 'documents');
SELECT is(b::text::bucket::text, b::text, 'and through text') FROM (SELECT bucket_agg(timestamptz 'epoch' + i * interval '1 s', d ORDER BY i) AS b FROM docs) x;
SELECT is(bucket_fault(bucket_send(bucket_agg(timestamptz 'epoch' + i * interval '1 s', d ORDER BY i))), NULL, 'valid') FROM docs;
SELECT is((SELECT string_agg(doc::text, ' ') FROM bucket_unpack('{"bucket": 1, "count": 3, "named": true, "columns": [{"name": "a", "type": "int4", "values": [1, null, null], "missing": [2]}]}')), '{"a": 1} {"a": null} {}',
  'NULL and missing are told apart');

-- Types without a kind of their own are kept as text, whatever the settings are
SELECT is((SELECT array_agg(v) FROM bucket_to_recordset('{"bucket": 1, "count": 2, "columns": [{"type": "other", "values": ["1 mon -3 days", null]}]}') r (v interval)), ARRAY['1 mon -3 days', NULL]::interval[], 'interval');
SET intervalstyle = sql_standard; SET datestyle = 'German';
SELECT is((SELECT v FROM bucket_to_recordset('{"bucket": 1, "count": 1, "columns": [{"type": "other", "values": ["-1 years -2 mons +3 days"]}]}') r (v interval))::text, make_interval(months => -14, days => 3)::text, 'in another style');
SELECT is(bucket_agg('2018-11-12 12:00', date '2018-12-11', timestamp '2018-12-11 01:02')::text, '{"bucket": 1, "times": ["2018-11-12 12:00:00+00"], "columns": [{"type": "date", "values": ["2018-12-11"]}, {"type": "timestamp", "values": ["2018-12-11 01:02:00"]}]}',
  'text does not depend on settings');
RESET intervalstyle; RESET datestyle;

-- The order of equal times is kept, jitter and gaps are
CREATE FUNCTION pg_temp.times(ts timestamptz[]) RETURNS text LANGUAGE sql AS $$
  SELECT CASE WHEN array_agg(r.ts ORDER BY o) = (SELECT array_agg(t ORDER BY t) FROM unnest($1) t) AND
    array_agg(r.v ORDER BY o) = (SELECT array_agg(i::int ORDER BY t, i) FROM unnest($1) WITH ORDINALITY u (t, i)) THEN 'same' ELSE 'other' END
  FROM ROWS FROM (bucket_to_recordset((SELECT bucket_agg(t, i::int) FROM (SELECT * FROM unnest($1) WITH ORDINALITY u (t, i) ORDER BY i) x)) AS (ts timestamptz, v int)) WITH ORDINALITY r (ts, v, o) $$;
SELECT is(pg_temp.times(array_agg(timestamptz '2018-12-11' + (i / 10) * interval '1 s' ORDER BY i)), 'same', 'ten at each time') FROM generate_series(1, 500) i;
SELECT is(pg_temp.times(array_agg(timestamptz '2018-12-11' + i * interval '1 min' + random() * interval '1 s' ORDER BY i)), 'same', 'jitter') FROM generate_series(1, 500) i;
SELECT is(pg_temp.times(array_agg(timestamptz '2018-12-11' + (random() * 20)::int * interval '1 h' ORDER BY i)), 'same', 'in any order, with gaps') FROM generate_series(1, 500) i;
SELECT is(pg_temp.times(ARRAY['4713-01-01 00:00+00 BC', '294276-12-31 23:59:59.999999+00', 'epoch', '2000-01-01 00:00+00']::timestamptz[]), 'same', 'the ends of the calendar');
SELECT is(pg_temp.times(array_agg(CASE WHEN i = 1 THEN '1969-12-31 23:59:59.999999+00' ELSE timestamptz '1999-12-31 23:00+00' + i * interval '1 month' END)), 'same', 'months') FROM generate_series(1, 100) i;

-- From one measurement to a hundred thousand
CREATE TEMP TABLE big AS SELECT n, (SELECT bucket_agg(timestamptz '2020-01-01' + i * interval '1 minute', (i * 7919 % 1000) / 10.0::float8, i % 13, CASE WHEN i % 5 = 0 THEN NULL ELSE 's' || i % 3 END ORDER BY i) FROM generate_series(1, n) i) AS b
  FROM unnest(ARRAY[1, 2, 3, 8, 9, 63, 64, 65, 1000, 100000]) n;
SELECT is((SELECT array_agg(n ORDER BY n) FROM big WHERE bucket_count(b) = n AND bucket_fault(bucket_send(b)) IS NULL), '{1,2,3,8,9,63,64,65,1000,100000}', 'valid at every size');
SELECT is((SELECT array_agg(n ORDER BY n) FROM big WHERE (SELECT (count(*), sum(v1), sum(v2), count(v3))::text FROM bucket_to_recordset(b) r (ts timestamptz, v1 float8, v2 int, v3 text)) =
  (SELECT (count(*), sum(v1), sum(v2), count(v3))::text FROM (SELECT (i * 7919 % 1000) / 10.0::float8, i % 13, CASE WHEN i % 5 = 0 THEN NULL ELSE 's' END FROM generate_series(1, n) i) r (v1, v2, v3))), '{1,2,3,8,9,63,64,65,1000,100000}', 'with all values, also out of line');
SELECT is(bucket_send(b::text::bucket), bucket_send(b), 'a hundred thousand through text') FROM big WHERE n = 100000;
SELECT ok(pg_column_size(b) > 8000 AND bucket_count(b) = 100000 AND (bucket_sum(b, 'value2')::int8) = (SELECT sum(i % 13) FROM generate_series(1, 100000) i), 'the header of one that is stored out of line') FROM big WHERE n = 100000;
SELECT ok(octet_length(bucket_send(bucket_agg(timestamptz '2020-01-01' + i * interval '1 minute', (215 + (i / 3) % 5) / 10.0::float8, 550 + (i / 4) % 3))) < 70, 'an hour of two values in less than 70 bytes') FROM generate_series(1, 60) i;

-- Equal are those of the same bytes
SELECT ok(a = b AND NOT a <> b AND a <> c AND NOT a = c, '= and <>') FROM (SELECT bucket_agg('epoch', 1), bucket_agg('epoch', 1), bucket_agg('epoch', 2)) x (a, b, c);
SELECT is((SELECT count(*) FROM (SELECT b FROM big GROUP BY b) g), 10::bigint, 'GROUP BY, also out of line');
SELECT is((SELECT count(*) FROM (SELECT b FROM big UNION SELECT b FROM big) x), 10::bigint, 'and hashing');

-- Text that is no bucket
SELECT throws_ok($$SELECT ''::bucket$$, '22P02', NULL, 'nothing');
SELECT throws_ok($$SELECT '{}'::bucket$$, '22P02', NULL, 'no version');
SELECT throws_ok($$SELECT '{"bucket": 1, "times": [], "columns": []}'::bucket$$, '22P02', NULL, 'no rows');
SELECT throws_ok($$SELECT '{"bucket": 1, "count": 2, "columns": [{"type": "int4", "values": [1]}]}'::bucket$$, '22P02', NULL, 'too few values');
SELECT throws_ok($$SELECT '{"bucket": 1, "count": 1, "columns": [{"type": "int2", "values": [40000]}]}'::bucket$$, '22P02', NULL, 'out of range');
SELECT throws_ok($$SELECT '{"bucket": 1, "count": 1, "columns": [{"type": "money", "values": [1]}]}'::bucket$$, '22P02', NULL, 'unknown type');
SELECT throws_ok($$SELECT '{"bucket": 1, "times": ["infinity"], "columns": []}'::bucket$$, '22008', NULL, 'an infinite time');
SELECT throws_ok($$SELECT '{"bucket": 1, "count": 2000000000, "columns": []}'::bucket$$, '54000', NULL, 'too many rows');
SELECT throws_ok($$SELECT bucket_agg('2020-01-01', i) FROM generate_series(1, 1000001) AS i$$, '54000', NULL, 'one more than can be read back');
SELECT is((SELECT bucket_count(bucket_agg('2020-01-01', i)) FROM generate_series(1, 1000000) AS i), 1000000, 'as many as that can');

-- Damaged bytes: everything that reads a bucket reads on, or raises XX001; the server stays
CREATE FUNCTION pg_temp.damage(bytes bytea) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE n int := octet_length(bytes); at int;
BEGIN
  FOR k IN 1..1 + (random() * 2)::int LOOP
    at := least(floor(random() * CASE WHEN random() < 0.4 THEN least(n, 30) ELSE n END)::int, n - 1);
    bytes := CASE (random() * 3)::int WHEN 0 THEN set_byte(bytes, at, (random() * 255)::int) WHEN 1 THEN set_bit(bytes, at * 8 + (random() * 7)::int, 1)
      WHEN 2 THEN set_byte(bytes, at, 255) ELSE substr(bytes, 1, greatest(at, 1)) || substr(bytes, at + 2) END;
    n := octet_length(bytes);
  END LOOP;
  RETURN bytes;
END $$;
CREATE FUNCTION pg_temp.read_damaged(bytes bytea, OUT refused int, OUT other text) LANGUAGE plpgsql AS $$
DECLARE q text; r text;
BEGIN
  refused := 0;
  IF bucket_fault(bytes) IS NOT NULL THEN refused := 1; END IF;
  FOREACH q IN ARRAY ARRAY['docpatterns.bucket_out($1::bucket)', 'bucket_count($1::bucket)', 'bucket_sum($1::bucket, ''value1'')', 'bucket_max($1::bucket, ''value2'')', 'bucket_slice($1::bucket, ''2018-12-11 12:10+00'', ''2018-12-11 13:00+00'')',
    '(SELECT count(*) FROM bucket_unpack($1::bucket))', '(SELECT bucket_merge(x) FROM (VALUES ($1::bucket), ($1::bucket)) v (x))', 'bucket_to_bson($1::bucket, ''rows'')'] LOOP
    BEGIN
      EXECUTE 'SELECT (' || q || ')::text' INTO r USING bytes;
    EXCEPTION WHEN data_corrupted THEN refused := refused + 1;
      WHEN undefined_column OR datatype_mismatch OR duplicate_column OR invalid_parameter_value OR program_limit_exceeded THEN NULL;
      WHEN others THEN other := coalesce(other || ', ', '') || q || ' ' || SQLSTATE || ' ' || SQLERRM;
    END;
  END LOOP;
END $$;
CREATE TEMP TABLE good AS
  SELECT bucket_send(bucket_agg(timestamptz '2018-12-11 12:00+00' + i * interval '1 min', (215 + (random() * 4)::int) / 10.0::float8, i * 3, 's' || i % 3, (i * 0.05)::numeric, i % 2 = 0, random(), date '2018-12-11' + i)) AS bytes FROM generate_series(1, 60) i
  UNION ALL SELECT bucket_send(bucket_agg(timestamptz '2018-12-11 12:00+00' + i * interval '1 min' + random() * interval '1 s', CASE WHEN i % 20 = 0 THEN 'NaN' ELSE i / 10.0::float8 END, CASE WHEN i % 4 > 0 THEN (random() * 1000)::int END, md5(i::text))) FROM generate_series(1, 100) i
  UNION ALL SELECT bucket_send(bucket_agg(timestamptz '2018-12-11 12:00+00' + i * interval '1 min', d ORDER BY i)) FROM docs
  UNION ALL SELECT bucket_send(bucket_agg(timestamptz '2018-12-11 12:00+00' + i * interval '1 min', (ARRAY['1', '2.5', '"a"', '{"a": 1}', '[1]']::bson_value[])[1 + i % 5], 'NaN'::numeric, i::float4, md5(i::text)::uuid)) FROM generate_series(1, 30) i;
CREATE TEMP TABLE damaged AS SELECT d.* FROM good, generate_series(1, 150) i, LATERAL (SELECT pg_temp.damage(CASE WHEN i > 0 THEN bytes END) AS bytes) x, LATERAL pg_temp.read_damaged(x.bytes) d;
SELECT is((SELECT string_agg(DISTINCT other, '; ') FROM damaged), NULL, 'no other error than XX001 (seed 0.20181211)');
SELECT cmp_ok((SELECT count(*) FROM damaged WHERE refused > 0), '>', 480::bigint, 'nearly all of the damage is found out');
SELECT throws_ok($$SELECT docpatterns.bucket_out('\x00'::bytea::bucket)$$, 'XX001', 'corrupt bucket', 'an unknown version');
SELECT throws_ok($$SELECT bucket_count(''::bytea::bucket)$$, 'XX001', 'corrupt bucket', 'no bytes');
SELECT ok(bucket_fault('\x1002') IS NOT NULL, 'bucket_fault does not raise');

-- each of the rules of the text form
SELECT throws_ok(format('SELECT %L::bucket', '{"bucket": 1, ' || t || '}'), '22P02', NULL, t) FROM unnest(ARRAY[
  '"count": 1, "columns": [5]',
  '"count": 1, "columns": 5',
  '"count": 1, "columns": [{"name": 5, "type": "int4", "values": [1]}]',
  '"count": 1, "columns": [{"type": "int4", "values": [1], "more": 1}]',
  '"count": 1, "columns": [{"values": [1]}]',
  '"count": 1, "columns": [{"type": "int4"}]',
  '"count": 1, "columns": [{"type": "nothing", "values": [1]}]',
  '"count": 1, "columns": [{"type": 4, "values": [1]}]',
  '"count": 1, "columns": [{"name": "a", "type": "int4", "values": [1]}, {"type": "int4", "values": [1]}]',
  '"count": 1, "columns": [{"type": "int4", "values": [1]}, {"name": "a", "type": "int4", "values": [1]}]',
  '"count": 1, "columns": [{"type": "int4", "values": [1], "missing": [7]}]',
  '"count": 1, "columns": [{"type": "int4", "values": [1], "missing": [1]}]',
  '"count": 1, "columns": [{"type": "int4", "values": [1]}], "more": 5',
  '"count": 1',
  '"columns": [{"type": "int4", "values": [1]}]',
  '"count": 2, "times": ["2026-01-01 00:00:00+00"], "columns": [{"type": "int4", "values": [1, 2]}]',
  '"count": 1, "columns": [{"type": "int4", "values": ["x"]}]',
  '"count": 1, "columns": [{"type": "float8", "values": ["x"]}]',
  '"count": 1, "columns": [{"type": "bool", "values": [1]}]',
  '"count": 1, "columns": [{"type": "objectid", "values": [1]}]',
  '"count": 1, "columns": [{"type": "bson", "values": [1]}]',
  '"count": 1, "columns": [{"type": "text", "values": [1]}]',
  '"count": 1, "columns": [{"type": "text", "values": ["a\u0000b"]}]',
  '"count": 1, "columns": [{"type": "numeric", "values": [1]}]']) t;

SELECT * FROM finish();
ROLLBACK;
