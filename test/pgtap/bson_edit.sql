-- Editing: signatures, errors, what the bytes look like, and a comparison with jsonb.
\set QUIET 1
SET client_min_messages = warning;
SET timezone = 'UTC';
BEGIN;
SELECT plan(64);

-- ---------------------------------------------------------------- signatures

SELECT function_returns(s, f, a, r, f || '(' || array_to_string(a, ', ') || ')') FROM (VALUES
  ('public', 'bson_set', ARRAY['bson', 'text', 'anycompatible'], 'bson'), ('public', 'bson_set', ARRAY['bson', 'text', 'anycompatible', 'boolean'], 'bson'),
  ('public', 'bson_unset', ARRAY['bson', 'text[]'], 'bson'), ('public', 'bson_array_append', ARRAY['bson', 'text', '"any"'], 'bson'),
  ('docpatterns', 'bson_concat', ARRAY['bson', 'bson'], 'bson'), ('docpatterns', 'bson_concat', ARRAY['bson_value', 'bson_value'], 'bson_value'),
  ('docpatterns', 'bson_remove', ARRAY['bson', 'text'], 'bson'), ('docpatterns', 'bson_remove', ARRAY['bson', 'text[]'], 'bson'),
  ('docpatterns', 'bson_remove', ARRAY['bson_value', 'text'], 'bson_value'), ('docpatterns', 'bson_remove', ARRAY['bson_value', 'integer'], 'bson_value')) AS t (s, f, a, r);
SELECT is((SELECT count(*) FROM pg_proc WHERE proname IN ('bson_unset', 'bson_concat', 'bson_remove')
  AND (provolatile <> 'i' OR NOT proisstrict OR proparallel <> 's')), 0::bigint, 'those that take BSON alone are immutable and strict');
SELECT is((SELECT count(*) FROM pg_proc WHERE proname IN ('bson_set', 'bson_array_append')
  AND (provolatile <> 's' OR proisstrict OR proparallel <> 's')), 0::bigint, 'those that take any type are stable and see NULL');

-- ---------------------------------------------------------------- errors

SELECT throws_ok($$SELECT bson_set('{a: 1}', 'a.b', 1)$$, '22023', NULL, 'a path through a number');
SELECT throws_ok($$SELECT bson_set('{a: "x"}', 'a.0', 1)$$, '22023', NULL, 'a path through a string');
SELECT throws_ok($$SELECT bson_set('{a: null}', 'a.b', 1)$$, '22023', NULL, 'a path through null');
SELECT throws_ok($$SELECT bson_set('{a: {b: 1}}', 'a.b.c.d', 1)$$, '22023', NULL, 'further in');
SELECT throws_ok($$SELECT bson_set('{a: [1]}', 'a.x', 1)$$, '22023', NULL, 'a name in an array');
SELECT throws_ok($$SELECT bson_set('{a: [1]}', 'a.-2', 1)$$, '2202E', NULL, 'before the first element');
SELECT throws_ok($$SELECT bson_set('{a: [1]}', 'a.1500002', 1)$$, '54000', NULL, 'too far beyond the last element');
SELECT throws_ok($$SELECT bson_set('{}', '', 1)$$, '22023', NULL, 'an empty path');
SELECT throws_ok($$SELECT bson_set('{}', string_agg('a', '.'), 1) FROM generate_series(1, 101)$$, '54000', NULL, 'too deep');
SELECT throws_ok($$SELECT bson_set('{}', 'a', bson_set('{}', string_agg('a', '.'), 1)) FROM generate_series(1, 100)$$, '54000', NULL, 'a value too deep for its place');
SELECT throws_ok($$SELECT bson_array_append('{a: []}', 'a', bson_set('{}', string_agg('a', '.'), 1)) FROM generate_series(1, 99)$$, '54000', NULL, 'an element too deep');
SELECT throws_ok($$SELECT (bson_set('{}', string_agg('a', '.'), 1) -> 'a') || '[]' || '1' || (bson_set('{}', string_agg('a', '.'), 1) -> 'a') FROM generate_series(1, 101)$$, '54000', NULL, 'too deep in the making');
SELECT throws_ok($$SELECT to_bson(bson_set('{}', string_agg('a', '.'), 1)) || '[]' FROM generate_series(1, 100)$$, '54000', NULL, 'a document of 100 levels in an array');
SELECT throws_ok($$SELECT bson_set('{}', 'a', repeat('x', 17000000))$$, '54000', NULL, 'too large');
SELECT throws_ok($$SELECT bson_array_append('{a: ""}', 'a', 1)$$, '42804', NULL, 'appending to a string');
SELECT throws_ok($$SELECT '1'::bson_value - 0$$, '42804', NULL, 'a position in a number');
SELECT throws_ok($$SELECT '1'::bson_value - 'a'$$, '22023', NULL, 'a name in a number');
SELECT throws_ok($$SELECT bson_set('{}', 'a', 1e6143::numeric * 1.00000000000000000000000000000000000001)$$, '22003', NULL, 'a number of too many digits');

-- ---------------------------------------------------------------- results

SELECT is(bson_set('{a: 1}', 'a', 1)::bytea, '{a: 1}'::bson::bytea, 'the same value makes the same bytes');
SELECT is(bson_set('{a: 1, b: [1, {c: "x"}]}', 'b.1.c', 'longer')::bytea, '{a: 1, b: [1, {c: "longer"}]}'::bson::bytea, 'all lengths around a change are right');
SELECT is(bson_set('{a: {b: {}}}', 'a.b.c.d', 1)::bytea, '{a: {b: {c: {d: 1}}}}'::bson::bytea, 'what is made has the right lengths');
SELECT is(bson_array_append('{a: {b: [1]}, z: 1}', 'a.b', 2, 3)::bytea, '{a: {b: [1, 2, 3]}, z: 1}'::bson::bytea, 'what is appended too');
SELECT is(('{a: {b: 1, c: 2}, z: 1}'::bson - 'a.b')::bytea, '{a: {c: 2}, z: 1}'::bson::bytea, 'what is removed too');
SELECT is((bson_value '[1, 2, 3]' - 0)::text, '[2, 3]', 'an element is removed');
SELECT is(bson_build('a', bson_value '[1, 2, 3]' - 0)::bytea, '{a: [2, 3]}'::bson::bytea, 'and the names of the others count from 0 again');
SELECT is(bson_build('a', bson_value '[1]' || '[2]')::bytea, '{a: [1, 2]}'::bson::bytea, 'arrays that are put together count on');
SELECT is(bson_set('{a: [1]}', 'a.12', 1)::bytea, '{a: [1, null, null, null, null, null, null, null, null, null, null, null, 1]}'::bson::bytea, 'padding is numbered');
SELECT is(bson_set('{"": 1}', '""', 2)::text, '{"": 2}', 'an empty name');
SELECT is(bson_set('{a: 1, a: 2}', 'a', 3)::text, '{"a": 3, "a": 2}', 'the first of two is set');
SELECT is(('{a: {b: 1, c: 2, b: 3}}'::bson - 'a.b')::text, '{"a": {"c": 2}}', 'both are removed');
SELECT is(bson_set('{}', 'a', NULL::int)::text, '{"a": null}', 'NULL of any type is null');
SELECT is(bson_set('{}', 'a', 'x'::varchar)::text, '{"a": "x"}', 'varchar');
SELECT is(bson_set('{}', 'a', ROW(1, 'x'))::text, '{"a": {"f1": 1, "f2": "x"}}', 'a row');
SELECT is((SELECT string_agg(bson_set('{}', 'a', v)::text, ' ') FROM (SELECT unnest(ARRAY[1, NULL, 3]) v) s), '{"a": 1} {"a": null} {"a": 3}', 'row after row');
SELECT is(bson_array_append('{}', 'a', VARIADIC NULL::int[]), NULL, 'no array of values');
SELECT is(bson_array_append('{}', 'a', VARIADIC '{}'::int[])::text, '{"a": []}', 'an empty one makes an empty array');
-- a value of the same length as the old one, in a document that is stored compressed or out of line
CREATE TABLE stored (how text, doc bson);
ALTER TABLE stored ALTER doc SET STORAGE EXTERNAL;
INSERT INTO stored SELECT 'external', bson_build('n', 1, 's', 'abc', 'pad', repeat('x', 5000));
ALTER TABLE stored ALTER doc SET STORAGE EXTENDED;
INSERT INTO stored SELECT 'compressed', bson_build('n', 1, 's', 'abc', 'pad', repeat('x', 5000));
SELECT is((SELECT string_agg(concat_ws(' ', bson_set(doc, 'n', 2) ->> 'n', bson_set(doc, 's', 'xyz') ->> 's', bson_set(doc, 's', 'longer') ->> 's', doc ->> 'n', doc ->> 's',
  bson_size(bson_set(doc, 'n', 2)) = bson_size(doc)), ',') FROM stored), '2 xyz longer 1 abc t,2 xyz longer 1 abc t', 'stored documents are not changed themselves');
SELECT is((SELECT count(*) FROM (SELECT d, bson_set(d, 'n', 2) e FROM (SELECT doc AS d FROM stored OFFSET 0) s) x WHERE d ->> 'n' <> '1' OR e ->> 'n' <> '2'), 0::bigint, 'nor their copies in a query');
-- a thousand fields
SELECT is((SELECT (a || b)::jsonb = a::jsonb || b::jsonb FROM (SELECT bson_object_agg('f' || i, i) a FROM generate_series(1, 1000) i) x,
  (SELECT bson_object_agg('f' || i, -i) b FROM generate_series(500, 1500) i) y), true, 'merging wide documents');

-- ---------------------------------------------------------------- beside jsonb

CREATE FUNCTION any_scalar() RETURNS jsonb LANGUAGE sql VOLATILE AS $$
  SELECT CASE (random() * 4)::int WHEN 0 THEN to_jsonb((random() * 5)::int) WHEN 1 THEN to_jsonb(chr(97 + (random() * 3)::int)) WHEN 2 THEN 'null'
    WHEN 3 THEN to_jsonb(random() < 0.5) ELSE to_jsonb((random() * 5)::int + 0.5) END $$;
CREATE FUNCTION any_document(depth int) RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
DECLARE d jsonb := '{}';
BEGIN
  FOR i IN 1..(random() * 4)::int LOOP
    d := d || jsonb_build_object(chr(97 + (random() * 4)::int), CASE WHEN depth > 0 AND random() < 0.4 THEN any_document(depth - 1)
      WHEN random() < 0.3 THEN jsonb_build_array(any_scalar(), any_scalar(), any_document(depth - 2)) ELSE any_scalar() END);
  END LOOP;
  RETURN d;
END $$;
SELECT setseed(0.25) \g /dev/null
CREATE TABLE pair AS SELECT any_document(3) a, any_document(2) b, any_scalar() v, chr(97 + (random() * 4)::int) k1, chr(97 + (random() * 4)::int) k2, (random() * 3)::int AS pos
  FROM generate_series(1, 2000);
SELECT is((SELECT count(*) FROM pair WHERE (a::bson)::jsonb <> a), 0::bigint, 'seed 0.25: jsonb and back');
SELECT is((SELECT count(*) FROM pair WHERE (a::bson || b::bson)::jsonb <> a || b), 0::bigint, 'seed 0.25: ||');
SELECT is((SELECT count(*) FROM pair WHERE bson_set(a::bson, k1, v::bson_value)::jsonb <> jsonb_set(a, ARRAY[k1], v)), 0::bigint, 'seed 0.25: bson_set of a field');
SELECT is((SELECT count(*) FROM pair WHERE jsonb_typeof(a -> k1) = 'object'
  AND bson_set(a::bson, k1 || '.' || k2, v::bson_value)::jsonb <> jsonb_set(a, ARRAY[k1, k2], v)), 0::bigint, 'seed 0.25: bson_set further in');
SELECT is((SELECT count(*) FROM pair WHERE jsonb_typeof(a -> k1) = 'array'
  AND bson_set(a::bson, k1 || '.' || pos, v::bson_value, false)::jsonb <> jsonb_set(a, ARRAY[k1, pos::text], v, false)), 0::bigint, 'seed 0.25: bson_set of an element');
SELECT is((SELECT count(*) FROM pair WHERE (a::bson - k1)::jsonb <> a - k1 OR bson_unset(a::bson, k1, k2)::jsonb <> a - ARRAY[k1, k2]), 0::bigint, 'seed 0.25: - and bson_unset');
SELECT is((SELECT count(*) FROM pair WHERE jsonb_typeof(a -> k1) IS DISTINCT FROM 'array' AND (a::bson - (k1 || '.' || k2))::jsonb <> a #- ARRAY[k1, k2]), 0::bigint, 'seed 0.25: - further in');
SELECT is((SELECT count(*) FROM pair WHERE jsonb_typeof(a -> k1) = 'array'
  AND (bson_array_append(a::bson, k1, v::bson_value)::jsonb <> jsonb_insert(a, ARRAY[k1, '-1'], v, true)
    OR ((a::bson -> k1) - pos)::jsonb <> (a -> k1) - pos)), 0::bigint, 'seed 0.25: appending and removing elements');
SELECT is((SELECT count(*) FROM pair WHERE (a::bson ->> k1) IS DISTINCT FROM (a ->> k1) AND jsonb_typeof(a -> k1) NOT IN ('object', 'array')
  OR (a::bson -> k1)::jsonb IS DISTINCT FROM a -> k1 OR (a::bson ? k1) <> (a ? k1)
  OR (a::bson #> ARRAY[k1, k2])::jsonb IS DISTINCT FROM a #> ARRAY[k1, k2]), 0::bigint, 'seed 0.25: reading');

-- A document that was fetched or decompressed is changed in place: the bytes must be those that a plain one gives.
CREATE TABLE kept (how text, doc bson, k1 text, k2 text, path text, v jsonb);
ALTER TABLE kept ALTER doc SET STORAGE EXTERNAL;
INSERT INTO kept SELECT 'external', x.doc, k1, k2, CASE jsonb_typeof(a -> k1) WHEN 'object' THEN k1 || '.' || k2 WHEN 'array' THEN k1 || '.' || pos ELSE k1 END, v
  FROM pair, LATERAL (VALUES (a::bson || bson_build('pad', repeat('x', 3000))), (bson_build('pad', repeat('x', 8150)) || a::bson)) x (doc) LIMIT 1000;
ALTER TABLE kept ALTER doc SET STORAGE EXTENDED;
INSERT INTO kept SELECT 'compressed', doc || '{}', k1, k2, path, v FROM kept;
SELECT is((SELECT string_agg(DISTINCT concat_ws(' ', how, pg_column_size(doc) < bson_size(doc) - 1000), ', ') FROM kept), 'compressed t, external f', 'two ways to store');
SELECT is((SELECT count(*) FROM kept WHERE bson_set(doc, path, v::bson_value)::bytea IS DISTINCT FROM bson_set(doc || '{}', path, v::bson_value)::bytea), 0::bigint,
  'seed 0.25: bson_set of a stored document');
SELECT is((SELECT count(*) FROM kept WHERE bson_set(doc, path, '{"a": [1, {"b": 2}]}'::bson)::bytea IS DISTINCT FROM bson_set(doc || '{}', path, '{"a": [1, {"b": 2}]}'::bson)::bytea), 0::bigint,
  'seed 0.25: bson_set of a document in it');
SELECT is((SELECT count(*) FROM kept WHERE bson_typeof(doc, k1) = 'array' AND
  bson_array_append(doc, k1, v::bson_value, repeat('y', 500))::bytea IS DISTINCT FROM bson_array_append(doc || '{}', k1, v::bson_value, repeat('y', 500))::bytea
  OR bson_array_append(doc, 'new', v::bson_value)::bytea IS DISTINCT FROM bson_array_append(doc || '{}', 'new', v::bson_value)::bytea), 0::bigint,
  'seed 0.25: appending to an array of it');

SELECT * FROM finish();
ROLLBACK;
