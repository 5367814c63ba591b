-- The binary forms of the types as a server takes them: what send gives is received again, byte by byte, and damaged bytes are
-- refused. The receive functions cannot be called, so COPY calls them, with what printf writes.
BEGIN;
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(37);

-- what COPY reads: a row of one value
CREATE FUNCTION pg_temp.receive(typ regtype, bytes bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  message bytea := '\x5047434f50590aff0d0a00' || int4send(0) || int4send(0) || int2send(1::int2) || int4send(length(bytes)) || bytes || int2send((-1)::int2);
  printed text := (SELECT string_agg('\' || (b >> 6) || (b >> 3 & 7) || (b & 7), '' ORDER BY i) FROM generate_series(0, length(message) - 1) i, get_byte(message, i) b);
  result text;
BEGIN
  EXECUTE format('CREATE TEMPORARY TABLE received (v %s) ON COMMIT DROP', typ);
  EXECUTE format('COPY received FROM PROGRAM %L (FORMAT binary)', 'printf ''' || printed || '''');
  EXECUTE format('SELECT %s(v)::text FROM received', (SELECT typsend FROM pg_type WHERE oid = typ)) INTO STRICT result;
  DROP TABLE received;
  RETURN result;
END
$$;

SELECT is(pg_temp.receive(t::regtype, b), b::text, 'received as sent: ' || t || ' ' || n) FROM (VALUES
  ('bson', 'empty', docpatterns.bson_send('{}')),
  ('bson', 'fields', docpatterns.bson_send('{a: 1, b: [NumberLong(2), {c: "d\u0000e"}], f: /g/i, h: ISODate("1969-07-20")}')),
  ('bson_value', 'number', bson_value_send('5')),
  ('bson_value', 'array', bson_value_send('[1, {a: "b"}]')),
  ('objectid', 'id', docpatterns.objectid_send('507f1f77bcf86cd799439011')),
  ('treepath', 'empty', docpatterns.treepath_send('[]')),
  ('treepath', 'ids', docpatterns.treepath_send('["a", 5, 2.5, {"$oid": "507f1f77bcf86cd799439011"}, "x\u0000y"]')),
  ('bucket', 'times', (SELECT bucket_send(bucket_agg(ts, i)) FROM (SELECT i, '2026-01-01'::timestamptz + i * interval '1 minute' AS ts FROM generate_series(1, 50) i) r)),
  ('bucket', 'documents', (SELECT bucket_send(bucket_agg(ts, d)) FROM (SELECT bson_build('t', i * 0.5, 's', 'x' || i) AS d, '2026-01-01'::timestamptz + i * interval '1 minute' AS ts FROM generate_series(1, 50) i) r))
) AS values_of (t, n, b);

-- one byte less, one byte more, nothing at all, and what does not fit its own lengths
SELECT throws_ok(format('SELECT pg_temp.receive(%L, %L)', t, b), s, NULL, 'refused: ' || t || ' ' || n) FROM (VALUES
  ('bson', 'nothing', ''::bytea, '22P03'),
  ('bson', 'a byte less', substr(docpatterns.bson_send('{a: 1}'), 1, 11), '22P03'),
  ('bson', 'a byte more', docpatterns.bson_send('{a: 1}') || '\x00', '22P03'),
  ('bson', 'a type that there is not', '\x0c0000001a61000500000000', '22P03'),
  ('bson_value', 'nothing', '', '22P03'),
  ('bson_value', 'a byte less', substr(bson_value_send('5'), 1, 4), '22P03'),
  ('bson_value', 'a byte more', bson_value_send('5') || '\x00', '22P03'),
  ('bson_value', 'a type that there is not', '\x1a05000000', '22P03'),
  ('objectid', 'a byte less', '\x507f1f77bcf86cd7994390', '08P01'),
  ('objectid', 'a byte more', '\x507f1f77bcf86cd79943901100', '22P03'),
  ('treepath', 'nothing', '', '08P01'),
  ('treepath', 'another version', '\x7f', '22P03'),
  ('treepath', 'an id without an end', substr(docpatterns.treepath_send('["a"]'), 1, 2), '22P03'),
  ('treepath', 'an id of no kind', substr(docpatterns.treepath_send('[]'), 1, 1) || '\xfe00', '22P03'),
  ('bucket', 'nothing', '', '22P03'),
  ('bucket', 'no bucket', '\x010203', '22P03')
) AS damaged (t, n, b, s);
SELECT is((SELECT count(DISTINCT pg_temp.receive('treepath', docpatterns.treepath_send(to_bson(ARRAY[v])::treepath)))::int FROM unnest('{a,b,c}'::text[]) v), 3, 'what is received stays what it was');

-- a bucket with any of its bytes turned is refused, or read as another
CREATE FUNCTION pg_temp.turned() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  b bytea := (SELECT bucket_send(bucket_agg(ts, i)) FROM (SELECT i, '2026-01-01'::timestamptz + i * interval '1 minute' AS ts FROM generate_series(1, 20) i) r);
  refused int := 0;
BEGIN
  FOR i IN 0 .. least(length(b) - 1, 20) LOOP
    BEGIN
      PERFORM pg_temp.receive('bucket', set_byte(b, i, get_byte(b, i) # 255));
    EXCEPTION WHEN invalid_binary_representation THEN
      refused := refused + 1;
    END;
    DROP TABLE IF EXISTS received;
  END LOOP;
  RETURN refused > 5;
END $$;
SELECT is(pg_temp.turned(), 'true', 'turned bytes');
SELECT throws_ok($$SELECT pg_temp.receive('bucket', bucket_send(b) || '\x00') FROM (SELECT bucket_agg(now(), 1) AS b) r$$, '22P03', 'invalid bytes of a bucket', 'a byte more');
SELECT throws_ok($$SELECT pg_temp.receive('treepath', docpatterns.treepath_send('["a"]') || '\x00')$$, '22P03', NULL, 'a byte more');

-- Wherever a string stands, a name too, it has to be UTF-8: what is in the table has a text that can be loaded again.
CREATE FUNCTION pg_temp.let_in(typ regtype, bytes bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  places int := 0;
  wrong text;
BEGIN
  FOR i IN 1 .. length(bytes) - 2 LOOP
    CONTINUE WHEN substr(bytes, i, 3) <> 'qqq';
    places := places + 1;
    FOREACH wrong IN ARRAY ARRAY['71ff71', '7171c3', 'eda080'] LOOP
      BEGIN
        PERFORM pg_temp.receive(typ, overlay(bytes PLACING decode(wrong, 'hex') FROM i));
        RETURN format('%s at byte %s', wrong, i);
      EXCEPTION WHEN invalid_binary_representation THEN
        DROP TABLE IF EXISTS received;
      END;
    END LOOP;
  END LOOP;
  RETURN CASE WHEN places = 0 THEN 'no string' END;
END $$;
SELECT is(pg_temp.let_in(t::regtype, b), NULL, format('no string that is not UTF-8: %s %s', t, n)) FROM (
  SELECT timestamptz '2026-01-01' + i * interval '1 minute' AS ts, format('qqq%s', i) AS v, bson_build('qqq', i, 's', bson_build('qqq', 'qqq')) AS d, i FROM generate_series(1, 20) i) AS r
  CROSS JOIN LATERAL (VALUES
  ('bson', 'every type', docpatterns.bson_send('{qqq: "qqq", b: {qqq: ["qqq"]}, c: /qqq/, d: {$symbol: "qqq"}, e: {$code: "qqq", $scope: {qqq: "qqq"}}, f: {$code: "qqq"}, g: {$dbPointer: {$ref: "qqq", $id: {$oid: "507f1f77bcf86cd799439011"}}}}')),
  ('bson_value', 'string', bson_value_send('"qqq"')), ('bson_value', 'document', bson_value_send('{qqq: "qqq", r: /qqq/}')), ('treepath', 'ids', docpatterns.treepath_send('["qqq", {$symbol: "qqq"}]'))) AS v (t, n, b) WHERE r.i = 1
UNION ALL SELECT is(pg_temp.let_in('bucket', b), NULL, format('no string that is not UTF-8: bucket of %s', n)) FROM (
  SELECT bucket_send(bucket_agg(ts, v)) AS texts, bucket_send(bucket_agg(ts, d)) AS documents, bucket_send(bucket_agg(ts, CASE WHEN i % 2 = 0 THEN to_bson(v) ELSE to_bson(d) END)) AS vals,
         bucket_send(bucket_agg(ts, bson_set(d, 'r', CASE WHEN i % 2 = 0 THEN '/qqq/'::bson_value ELSE '[{"qqq": 1}]' END))) AS mixed
  FROM (SELECT timestamptz '2026-01-01' + i * interval '1 minute' AS ts, format('qqq%s', i) AS v, bson_build('qqq', i, 's', bson_build('qqq', 'qqq')) AS d, i FROM generate_series(1, 20) i) AS r) AS q
  CROSS JOIN LATERAL (VALUES ('texts', texts), ('documents', documents), ('values', vals), ('documents of several types', mixed)) AS v (n, b);

SELECT * FROM finish();
ROLLBACK;
