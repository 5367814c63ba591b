-- Differences of documents: what is promised of bson_diff, bson_diff_pack, bson_diff_apply and bson_diff_carry.
\set QUIET 1
BEGIN;
SELECT plan(29);

SELECT function_returns('bson_diff', ARRAY['bson', 'bson'], 'setof record');
SELECT function_returns('bson_diff_pack', ARRAY['bson', 'bson'], 'bytea');
SELECT function_returns('bson_diff_apply', ARRAY['bytea', 'bson'], 'bson');
SELECT function_returns('bson_diff_carry', ARRAY['bson', 'bson', 'bson'], 'bson');
SELECT is(count(*), 4::bigint, 'all are immutable, strict and parallel safe') FROM pg_proc
WHERE proname ~ '^bson_diff' AND provolatile = 'i' AND proisstrict AND proparallel = 's';

-- Paths
CREATE TEMP TABLE cases (n int PRIMARY KEY, a bson, b bson, paths text[]);
INSERT INTO cases VALUES
  (1, '{}', '{}', NULL),
  (2, '{}', '{a: 1}', '{a}'),
  (3, '{a: 1}', '{}', '{a}'),
  (4, '{a: {b: {c: [1, {d: 1}]}}}', '{a: {b: {c: [1, {d: 2}]}}}', '{a.b.c.1.d}'),
  (5, '{a: [1, 2]}', '{a: {"0": 1, "1": 2}}', '{a}'),
  (6, '{a: [1, 2, 3]}', '{a: [3, 2, 1]}', NULL),
  (7, '{"x.y": 1, "": 2, "q\"": 3}', '{"x.y": 2, "": 3, "q\"": 4}', ARRAY['"x.y"', '""', '"q"""']),
  (8, '{a: {x: 1, y: 2}}', '{a: {y: 2, x: 1}}', '{a}'),
  (9, '{a: 1.0}', '{a: 1}', '{a}'),
  (10, '{a: [[1, 2], [3]]}', '{a: [[1, 2, 3], [3]]}', '{a.0.2}'),
  (11, '{a: [1, 2, 3, 4, 5]}', '{a: [2, 3, 4, 5]}', '{a.0}'),
  (12, '{a: null}', '{}', '{a}');
SELECT is((SELECT array_agg(path) FROM bson_diff(a, b)), coalesce(paths, (SELECT array_agg(path) FROM bson_diff(a, b))), 'paths of case ' || n)
FROM cases WHERE n <> 6 ORDER BY n;
SELECT is((SELECT array_agg(old::text || '->' || new::text) FROM bson_diff('{a: 1, b: "x"}', '{a: 2, b: "y"}')), '{1->2,x->y}', 'old and new values');
SELECT is_empty($$SELECT * FROM bson_diff('{a: 1}', '{a: 1}')$$, 'nothing differs');

-- A random model: two versions of a document with nested members, arrays, texts and reordering
CREATE FUNCTION pg_temp.any_value(depth int) RETURNS bson_value LANGUAGE plpgsql AS $$
DECLARE
  d bson := '{}';
  a bson_value[] := '{}';
BEGIN
  CASE (random() * 11)::int
    WHEN 0, 1 THEN RETURN to_bson((random() * 5)::int);
    WHEN 2 THEN RETURN to_bson(repeat(chr(97 + (random() * 3)::int), (random() * 30)::int) || 'some text in the middle' || (random() * 9)::int);
    WHEN 3 THEN RETURN to_bson(random() < 0.5);
    WHEN 4 THEN RETURN to_bson('2026-01-01 00:00:00Z'::timestamptz + (random() * 9)::int * interval '1 day');
    WHEN 5 THEN RETURN to_bson(decode(repeat('ab', (random() * 20)::int) || lpad((random() * 9)::int::text, 2, '0'), 'hex'));
    WHEN 6 THEN RETURN to_bson((random() * 9)::numeric(3, 1));
    WHEN 7, 8 THEN
      IF depth > 3 THEN RETURN to_bson('deep'::text); END IF;
      FOR i IN 1 .. (random() * 6)::int LOOP
        d := bson_set(d, 'f' || (random() * 6)::int, pg_temp.any_value(depth + 1));
      END LOOP;
      RETURN to_bson(d);
    ELSE
      IF depth > 3 THEN RETURN to_bson('deep'::text); END IF;
      FOR i IN 1 .. (random() * 12)::int LOOP
        a := a || pg_temp.any_value(depth + 1);
      END LOOP;
      RETURN bson_array(VARIADIC a);
  END CASE;
END
$$;
-- another version of a value: parts of it are kept, changed, taken away, moved and added
CREATE FUNCTION pg_temp.edited(v bson_value, depth int) RETURNS bson_value LANGUAGE plpgsql AS $$
DECLARE
  d bson := '{}';
  a bson_value[] := '{}';
  r record;
BEGIN
  IF random() < 0.5 THEN RETURN v; END IF;
  IF bson_typeof(v) = 'object' THEN
    FOR r IN SELECT * FROM bson_each(v::bson) ORDER BY CASE WHEN random() < 0.1 THEN random() END NULLS FIRST LOOP
      IF random() < 0.85 THEN d := bson_set(d, r.key, pg_temp.edited(r.value, depth + 1)); END IF;
    END LOOP;
    IF random() < 0.4 THEN d := bson_set(d, 'f' || (random() * 8)::int, pg_temp.any_value(depth + 1)); END IF;
    RETURN to_bson(d);
  ELSIF bson_typeof(v) = 'array' THEN
    FOR r IN SELECT e FROM bson_elements(v) e ORDER BY CASE WHEN random() < 0.1 THEN random() END NULLS FIRST LOOP
      IF random() < 0.85 THEN a := a || pg_temp.edited(r.e, depth + 1); END IF;
      IF random() < 0.15 THEN a := a || pg_temp.any_value(depth + 1); END IF;
    END LOOP;
    RETURN bson_array(VARIADIC a);
  ELSIF bson_typeof(v) = 'string' AND random() < 0.7 THEN
    RETURN to_bson(overlay(v #>> '{}' PLACING 'new' FROM 3));
  END IF;
  RETURN pg_temp.any_value(depth);
END
$$;
SELECT diag('seed 0.20181211');
SELECT setseed(0.20181211) \g /dev/null
CREATE TEMP TABLE versions (n int, a bson, b bson, c bson);
DO $$
DECLARE
  a bson;
  b bson;
BEGIN
  FOR n IN 1 .. 1500 LOOP
    a := '{}';
    FOR i IN 1 .. (random() * 8)::int LOOP
      a := bson_set(a, 'f' || (random() * 12)::int, pg_temp.any_value(1));
    END LOOP;
    b := pg_temp.edited(to_bson(a), 0)::bson;
    INSERT INTO versions VALUES (n, a, b, pg_temp.edited(to_bson(a), 0)::bson);
  END LOOP;
END
$$;
SELECT cmp_ok(count(*), '>', 500::bigint, 'many of them differ') FROM versions WHERE a::bytea <> b::bytea;
SELECT is_empty($$SELECT n, a, b FROM versions WHERE a::bytea <> b::bytea AND bson_diff_apply(bson_diff_pack(b, a), b)::bytea <> a::bytea$$, 'what comes out is the other document, byte for byte');
SELECT is_empty($$SELECT n FROM versions WHERE (bson_diff_pack(a, b) IS NULL) <> (a::bytea = b::bytea)$$, 'no difference between the same bytes only');
SELECT is_empty($$SELECT n FROM versions WHERE EXISTS (SELECT FROM bson_diff(a, b)) <> (a::bytea <> b::bytea)$$, 'paths are listed for all that differ');
SELECT is_empty($$SELECT n FROM versions WHERE bson_diff_carry(a, b, a) <> b AND NOT EXISTS (SELECT FROM bson_diff(a, b) WHERE bson_typeof(old) = 'object' AND bson_typeof(new) = 'object')
  AND (bson_diff_carry(a, b, a) @> b AND b @> bson_diff_carry(a, b, a)) IS NOT TRUE$$, 'a change carried to the first document gives the second, but for the order of members');
SELECT is_empty($$SELECT n FROM versions WHERE bson_diff_carry(a, a, c)::bytea <> c::bytea$$, 'no change leaves the third document as it is');

-- Arrays of many elements: hashed, moved, all the same
SELECT ok(bool_and(bson_diff_apply(bson_diff_pack(a, b), a)::bytea = b::bytea), 'arrays of a thousand elements, turned round, shuffled, doubled')
FROM (SELECT (SELECT bson_build('x', bson_agg(i ORDER BY i)) FROM generate_series(1, 1000) i) AS a) s,
  LATERAL (VALUES ((SELECT bson_build('x', bson_agg(i ORDER BY -i)) FROM generate_series(1, 1000) i)),
                  ((SELECT bson_build('x', bson_agg(i ORDER BY hashint4(i))) FROM generate_series(1, 1000) i)),
                  ((SELECT bson_build('x', bson_agg(i % 500 ORDER BY i)) FROM generate_series(1, 2000) i)),
                  ((SELECT bson_build('x', bson_agg(7)) FROM generate_series(1, 1000) i)),
                  ('{x: [], y: 1}')) t (b);

-- Bad bytes
SELECT throws_ok($$SELECT bson_diff_apply('', '{a: 1}')$$, '22P03', NULL, 'no bytes');
SELECT throws_ok($$SELECT bson_diff_apply('\x02000000000c0c00', '{a: 1}')$$, '22P03', NULL, 'an unknown version');
SELECT is(bson_diff_apply(bson_diff_pack('{a: 1}', '{a: 2}'), '{a: 3}'), '{a: 2}', 'what is replaced is not looked at');
SELECT throws_ok($$SELECT bson_diff_apply(bson_diff_pack('{a: 1, b: 1}', '{a: 2, b: 1}'), '{a: 1, b: 2}')$$, '22P03', NULL, 'what is copied has to be the same');
SELECT * FROM finish();
ROLLBACK;
