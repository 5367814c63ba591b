-- Containment: signatures, the rule case by case, and a comparison with jsonb.
\set QUIET 1
SET client_min_messages = warning;
BEGIN;
SELECT plan(40);

SELECT function_returns(f, ARRAY[t, t], 'boolean', f || '(' || t || ', ' || t || ')') FROM unnest('{bson_contains,bson_contained}'::text[]) f, unnest('{bson,bson_value}'::text[]) t;
SELECT is((SELECT string_agg(concat_ws(' ', o.oprname, c.oprname, o.oprleft::regtype, o.oprrest, o.oprjoin), ', ' ORDER BY o.oprname::text COLLATE "C", o.oprleft)
  FROM pg_operator o JOIN pg_operator c ON c.oid = o.oprcom WHERE o.oprname IN ('@>', '<@') AND o.oprleft IN ('bson'::regtype, 'bson_value'::regtype)),
  '<@ @> bson docpatterns.bson_containsel matchingjoinsel, <@ @> bson_value matchingsel matchingjoinsel, @> <@ bson docpatterns.bson_containsel matchingjoinsel, @> <@ bson_value matchingsel matchingjoinsel',
  'commutators and selectivity');
SELECT is((SELECT count(*) FROM pg_proc WHERE proname IN ('bson_contains', 'bson_contained') AND (provolatile <> 'i' OR NOT proisstrict OR proparallel <> 's')),
  0::bigint, 'immutable, strict and parallel safe');

CREATE FUNCTION holds(a text, b text) RETURNS boolean LANGUAGE sql AS $$ SELECT a::bson @> b::bson AND b::bson <@ a::bson $$;
SELECT is(holds(a, b), answer, format('%s %s %s', a, CASE WHEN answer THEN '@>' ELSE 'does not contain' END, b)) FROM (VALUES
  ('{}', '{}', true), ('{a: 1}', '{}', true), ('{}', '{a: 1}', false), ('{a: 1, b: 2}', '{b: 2}', true), ('{a: 1, b: 2}', '{b: 3}', false),
  ('{b: 2, a: 1}', '{a: 1, b: 2}', true), ('{a: {b: {c: 1, d: 2}}}', '{a: {b: {d: 2}}}', true), ('{a: {b: 1}}', '{b: 1}', false),
  ('{a: null}', '{a: null}', true), ('{}', '{a: null}', false), ('{a: null}', '{a: undefined}', false), ('{a: []}', '{a: []}', true), ('{a: {}}', '{a: []}', false),
  ('{a: [1, 2, 3]}', '{a: [3, 1]}', true), ('{a: [1, 2]}', '{a: [1, 1, 1]}', true), ('{a: [1, 2]}', '{a: [4]}', false), ('{a: [1]}', '{a: 1}', false),
  ('{a: [[1, 2], [3]]}', '{a: [[2]]}', true), ('{a: [[1], [2]]}', '{a: [[1, 2]]}', false), ('{a: [{x: 1, y: 2}, {x: 3}]}', '{a: [{y: 2}]}', true),
  ('{a: [{x: 1}, {y: 2}]}', '{a: [{x: 1, y: 2}]}', false), ('{a: 1, a: 2}', '{a: 1, a: 2}', true), ('{a: 1, a: 2}', '{a: 2}', false), ('{a: NumberLong(1)}', '{a: NumberDecimal("1.0")}', true),
  ('{a: 0.1}', '{a: NumberDecimal("0.1")}', false), ('{a: true}', '{a: 1}', false)) AS t (a, b, answer);
SELECT is((SELECT array_agg((('{"v": ' || a || '}')::bson -> 'v') @> (('{"v": ' || b || '}')::bson -> 'v') ORDER BY n) FROM (VALUES (1, '[1, 2]', '2'), (2, '2', '[2]'), (3, '2', '2.0'), (4, '[[2]]', '2'), (5, '[{"a": 1}]', '{"a": 1}'), (6, '"x"', '"y"')) t (n, a, b)),
  ARRAY[true, false, true, false, false, false], 'values: an array contains its scalars');
SELECT ok(holds(d, d), 'a document of all types contains itself') FROM (SELECT '{a: 1.5, b: "s", c: {d: []}, e: [1], f: BinData(0, "AQI="), g: undefined, h: ObjectId("507f1f77bcf86cd799439011"), i: true,
  j: ISODate("2024-01-01"), k: null, l: /a/i, m: Timestamp(1, 2), n: NumberLong(5), o: NumberDecimal("1"), p: MinKey, q: MaxKey, r: NaN}') x (d);
SELECT throws_ok($$SELECT 1 @> 1$$, '42883', NULL, 'no operator for other types has come with it');

-- jsonb has the same rule
CREATE FUNCTION any_value(depth int) RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF depth > 0 AND random() < 0.35 THEN
    RETURN (SELECT coalesce(jsonb_agg(any_value(depth - 1)), '[]') FROM generate_series(1, (random() * 3)::int));
  ELSIF depth > 0 AND random() < 0.6 THEN
    RETURN (SELECT coalesce(jsonb_object_agg(chr(97 + (random() * 2)::int), any_value(depth - 1)), '{}') FROM generate_series(1, (random() * 3)::int));
  END IF;
  RETURN to_jsonb((random() * 2)::int);
END $$;
SELECT setseed(0.75) \g /dev/null
CREATE TABLE pair AS SELECT jsonb_build_object('a', any_value(3), 'b', any_value(1)) a, jsonb_build_object('a', any_value(2)) b FROM generate_series(1, 4000);
SELECT cmp_ok((SELECT count(*) FROM pair WHERE a @> b), '>', 200::bigint, 'seed 0.75: some contain each other');
SELECT is((SELECT count(*) FROM pair WHERE (a::bson @> b::bson) <> (a @> b) OR (a::bson <@ b::bson) <> (a <@ b)), 0::bigint, 'seed 0.75: as jsonb says');

-- the same with long arrays, whose elements are sorted
CREATE FUNCTION any_element(i int) RETURNS jsonb LANGUAGE sql VOLATILE AS $$
  SELECT CASE (random() * 7)::int WHEN 0 THEN to_jsonb((random() * 50)::int) WHEN 1 THEN jsonb_build_array((random() * 9)::int, (random() * 9)::int) WHEN 2 THEN jsonb_build_object('b', (random() * 9)::int, 'c', any_value(2))
    WHEN 3 THEN jsonb_build_object('a', any_value(1), 'c', 'some text') ELSE jsonb_build_object('a', (random() * 40)::int, 'b', (random() * 3)::int, 'c', jsonb_build_object('d', (random() * 2)::int, 'e', 'e')) END $$;
CREATE FUNCTION part_of(v jsonb) RETURNS jsonb LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN jsonb_typeof(v) <> 'object' THEN v ELSE (SELECT coalesce(jsonb_object_agg(k, w), '{}') FROM (SELECT k, CASE WHEN jsonb_typeof(w) = 'object' AND random() < 0.5 THEN w - 'e' ELSE w END AS w FROM jsonb_each(v) e (k, w) WHERE random() < 0.8) x) END $$;
CREATE TABLE long_pair AS SELECT a, (SELECT jsonb_agg(CASE WHEN random() < other THEN any_element(1) ELSE part_of(e) END) FROM jsonb_array_elements(a) e WHERE random() < 0.8) AS b
  FROM (SELECT (SELECT jsonb_agg(any_element(i + j)) FROM generate_series(1, 60 + (random() * 100)::int) j) AS a, CASE WHEN random() < 0.5 THEN 0 ELSE random() * 0.03 END AS other FROM generate_series(1, 400) i) x;
SELECT cmp_ok((SELECT count(*) FROM long_pair WHERE a @> b), '>', 150::bigint, 'seed 0.75: many long arrays contain each other');
SELECT cmp_ok((SELECT count(*) FROM long_pair WHERE NOT a @> b), '>', 50::bigint, 'and some do not');
SELECT is((SELECT count(*) FROM long_pair WHERE (bson_build('v', a) @> bson_build('v', b)) <> (a @> b) OR (a::bson_value @> b::bson_value) <> (a @> b)), 0::bigint, 'seed 0.75: long arrays, as jsonb says');

SELECT * FROM finish();
ROLLBACK;
