-- The contract of the functions of ancestor lists.
BEGIN;
SELECT plan(46);
SET client_min_messages = warning;

-- signatures
SELECT is((SELECT string_agg(DISTINCT provolatile::text || proparallel::text, ' ') FROM pg_proc WHERE proname IN ('tree_is_below', 'tree_common', 'tree_distance')), 'is', 'immutable and parallel safe');
SELECT is((SELECT count(*) FROM pg_proc WHERE proname = 'tree_is_below'), 4::bigint, 'all forms of lists');
SELECT is(pg_typeof(tree_lca('{1}'::int4[], '{1,2}'::int8[])), 'bigint'::regtype, 'arrays of two types');
SELECT is(pg_typeof(tree_common('{a}'::text[], '{a}'::varchar[])), 'text[]'::regtype, 'of strings');

-- below
SELECT ok(tree_is_below('{a,b}'::text[], 'b') AND NOT tree_is_below('{a,b}'::text[], 'c'), 'text[]');
SELECT ok(tree_is_below('{1,2}'::bigint[], 2) AND NOT tree_is_below('{1,2}'::bigint[], 3::bigint), 'bigint[]');
SELECT ok(tree_is_below('{1,2}'::int[], 2) AND NOT tree_is_below('{1,2}'::int[], 3), 'int[]');
SELECT ok(tree_is_below('{507f191e810c19729de860ea}'::objectid[], objectid '507f191e810c19729de860ea'), 'objectid[]');
SELECT ok(tree_is_below(ARRAY['"a"', '5']::bson_value[], 'a') AND tree_is_below(ARRAY['"a"', '5']::bson_value[], 5) AND tree_is_below(ARRAY['"a"', '5']::bson_value[], '5.0'::bson_value)
          AND NOT tree_is_below(ARRAY['"a"', '5']::bson_value[], '5'), 'bson_value[]: a literal is a string, equal numbers are one');
SELECT ok(tree_is_below('["a", 5]'::bson_value, 'a') AND tree_is_below('["a", 5]'::bson_value, 5::bigint) AND NOT tree_is_below('["a", 5]'::bson_value, 'b'), 'a BSON array');
SELECT ok(tree_is_below('"a"'::bson_value, 'a'), 'a value alone, as in filters');
SELECT ok(NOT tree_is_below('{a,b}'::text[], NULL) AND NOT tree_is_below('{a,NULL}'::text[], NULL), 'nothing is below NULL');
SELECT ok(tree_is_below('{a: [1, null]}'::bson, 'a', 'null'::bson_value) IS NULL AND tree_is_below('{}'::bson, 'a', NULL::text) IS NULL, 'nor in a document');
SELECT ok(tree_is_below('[null]'::bson_value, 'null'::bson_value) IS NULL, 'nor in a BSON array');
SELECT ok(tree_is_below('{a: {b: ["x", 7]}}'::bson, 'a.b', 'x') AND tree_is_below('{a: {b: ["x", 7]}}'::bson, 'a.b', 7) AND NOT tree_is_below('{a: {b: ["x", 7]}}'::bson, 'a.b', 'y'), 'a path in a document');
SELECT ok(NOT tree_is_below('{a: ["xyz"]}'::bson, 'a', '/x/'::bson_value), 'a regular expression is not searched by');
SELECT ok(tree_is_below('{a: [{k: 1}]}'::bson, 'a', '{"k": 1}'::bson_value), 'an id may be a document');
SELECT ok(tree_is_below('{"a b": ["x"]}'::bson, '"a b"', 'x'), 'a quoted path');
SELECT throws_ok($$SELECT tree_is_below('{}'::bson, '"a.b"', 'x')$$, '22023');
SELECT throws_ok($$SELECT tree_is_below('{}'::bson, '$a', 'x')$$, '22023');
SELECT throws_ok($$SELECT tree_is_below('{}'::bson, 'a..b', 'x')$$, '22023');

-- in common
SELECT is(tree_common('{r,a,b}'::text[], '{r,a,c}'), '{r,a}', 'from the root');
SELECT is(tree_common('{b,a,r}'::text[], '{c,a,r}'), '{a,r}', 'to the root');
SELECT is(tree_common('{a}'::text[], '{b}'), '{}', 'two trees');
SELECT is(tree_common('{}'::text[], '{b}'), '{}', 'a root');
SELECT is(tree_common('{r,a}'::text[], '{r,a}'), '{r,a}', 'siblings');
SELECT is(tree_lca('{r,a,b}'::text[], '{r,a}'), 'a', 'one above the other');
SELECT is(tree_lca('{b,a,r}'::text[], '{a,r}'), 'a', 'the same, nearest first');
SELECT is(tree_lca('{r}'::text[], '{r,x}'), 'r', 'one id');
SELECT ok(tree_lca('{a}'::text[], '{b}') IS NULL AND tree_distance('{a}'::text[], '{b}') IS NULL, 'nothing in common');
SELECT is(tree_distance('{r,a,b}'::text[], '{r,a,b}'), 0, 'the same node');
SELECT is(tree_distance('{r,a,b}'::text[], '{r,c}'), 3, 'distance');
SELECT is(tree_distance('{b,a,r}'::text[], '{c,r}'), 3, 'the same, nearest first');
SELECT is(tree_lca(ARRAY['5', '"x"']::bson_value[], ARRAY['5.0', '"y"']::bson_value[]), '5'::bson_value, 'bson_value[]');
SELECT is(tree_common('["r", "a", 1]'::bson_value, '["r", "a", 2]'), '["r", "a"]'::bson_value, 'BSON arrays');
SELECT is(tree_lca('[1, "a", "r"]'::bson_value, '[2, "a", "r"]'), '"a"'::bson_value, 'nearest first');
SELECT is(tree_distance('["r", "a", 1]'::bson_value, '["r"]'), 2, 'their distance');
SELECT ok(tree_lca('null'::bson_value, '[1]') IS NULL AND tree_depth('null'::bson_value) IS NULL, 'null');
SELECT is(tree_depth('{}'::text[]), 0, 'the depth of a root');
SELECT is(tree_depth('["r", "a"]'::bson_value), 2, 'of a BSON array');
SELECT throws_ok($$SELECT tree_depth('5'::bson_value)$$, '22023');
SELECT throws_ok($$SELECT tree_lca('"x"'::bson_value, '[]')$$, '22023');
SELECT throws_ok($$SELECT tree_common(ARRAY[['a', 'b']], ARRAY['a'])$$, '2202E');
SELECT throws_ok($$SELECT tree_lca(ARRAY['(1,1)'::point], ARRAY['(1,1)'::point])$$, '42883');

-- random lists against a model: rootwards and back they say the same
SELECT setseed(0.17);
CREATE TEMP TABLE lists AS SELECT k, 'r'::text || ARRAY(SELECT ((random() + k * 0) * 2)::int::text FROM generate_series(1, 1 + k % 5)) AS l FROM generate_series(1, 200) k;
SELECT is((SELECT count(*) FROM lists a, lists b, LATERAL (SELECT max(i) AS n FROM generate_series(1, 8) i WHERE a.l[1:i] = b.l[1:i] AND i <= cardinality(a.l) AND i <= cardinality(b.l)) m
           WHERE tree_common(a.l, b.l) <> a.l[1:m.n] OR tree_lca(a.l, b.l) <> a.l[m.n] OR tree_distance(a.l, b.l) <> cardinality(a.l) + cardinality(b.l) - 2 * m.n
              OR tree_lca(to_bson(a.l), to_bson(b.l)) <> to_bson(a.l[m.n]) OR tree_distance(to_bson(a.l), to_bson(b.l)) <> tree_distance(a.l, b.l)), 0::bigint, 'as the longest common beginning');

-- with intarray, whose operators hide those of arrays
CREATE TABLE ints (a int[]);
INSERT INTO ints SELECT ARRAY[i % 10, i] FROM generate_series(1, 1000) i;
CREATE INDEX ON ints USING gin (a);
CREATE FUNCTION pg_temp.plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE l text; r text := ''; BEGIN FOR l IN EXECUTE 'EXPLAIN ' || query LOOP r := r || l; END LOOP; RETURN r; END $$;
DO $$ BEGIN IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'intarray') THEN CREATE EXTENSION IF NOT EXISTS intarray; END IF; END $$;
SET LOCAL enable_seqscan = off;
SELECT matches(pg_temp.plan_of('SELECT FROM ints WHERE tree_is_below(a, 5)'), 'Bitmap Index Scan', 'the index serves int[], where intarray is installed, too');
SELECT * FROM finish();
ROLLBACK;
