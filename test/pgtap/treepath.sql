-- The contract of the type treepath, and seeded random paths against a model of arrays.
BEGIN;
SELECT plan(66);
SET client_min_messages = warning;
SET LOCAL jit = off;  -- plans with a node that is disabled look expensive

-- signatures
SELECT volatility_is('docpatterns', 'treepath_is_below', ARRAY['treepath', 'treepath'], 'immutable');
SELECT volatility_is('docpatterns', 'treepath_is_above', ARRAY['treepath', 'treepath'], 'immutable');
SELECT function_returns('treepath_ancestors', ARRAY['treepath'], 'treepath[]');
SELECT function_returns('treepath_id', ARRAY['treepath'], 'bson_value');
SELECT is_strict('treepath_depth', ARRAY['treepath']);
SELECT ok(amvalidate(c.oid), format('operator class for %s', m.amname))
FROM pg_opclass c JOIN pg_am m ON m.oid = c.opcmethod WHERE c.opcname = 'treepath_ops' ORDER BY m.amname;

-- values that cannot be ids, and text that is no path
SELECT throws_ok($$SELECT '"a"'::treepath$$, '22P02');
SELECT throws_ok($$SELECT '["a"'::treepath$$, '22P02');
SELECT throws_ok($$SELECT '[{a: 1}]'::treepath$$, '22023', 'a value of type "object" cannot be the id of a node');
SELECT throws_ok($$SELECT '[[1]]'::treepath$$, '22023');
SELECT throws_ok($$SELECT '[undefined]'::treepath$$, '22023');
SELECT throws_ok($$SELECT '[/a/]'::treepath$$, '22023');
SELECT throws_ok($$SELECT '5'::bson_value::treepath$$, '22023');
SELECT ok('null'::bson_value::treepath IS NULL AND 'undefined'::bson_value::treepath IS NULL, 'the path of null is NULL');
SELECT throws_ok($$SELECT ARRAY['a', NULL]::treepath$$, '22004');
SELECT throws_ok($$SELECT ARRAY[['a', 'b'], ['c', 'd']]::treepath$$, '2202E');
SELECT throws_ok($$SELECT treepath_from_text('a..b')$$, '22023');
SELECT throws_ok($$SELECT treepath_from_text('a.b.')$$, '22023');
SELECT throws_ok($$SELECT treepath_from_text('a', '')$$, '22023');
SELECT throws_ok($$SELECT treepath_to_text('["a.b"]')$$, '22023');
SELECT throws_ok($$SELECT '["a"]'::treepath::int8[]$$, '22023');
SELECT throws_ok($$SELECT '[null]'::treepath::text[]$$, '22004');
SELECT throws_ok($$SELECT treepath_subpath('[1]', 0, -1)$$, '22023');
SELECT throws_ok($$SELECT '[MaxKey, 1]'::treepath$$, '22023', 'MaxKey can only be the last id of a path');
SELECT throws_ok($$SELECT treepath_last('[1]') || 2$$, '22023');

-- edges
SELECT is(treepath_depth('[]'), -1, 'the empty path');
SELECT is(treepath_depth('["a"]'), 0, 'a root');
SELECT ok(treepath_parent('["a"]') IS NULL AND treepath_parent('[]') IS NULL AND treepath_root('[]') IS NULL AND treepath_id('[]') IS NULL, 'what is not there is null');
SELECT ok(treepath_lca('[1]', '[2]') IS NULL AND treepath_distance('[1]', '[2]') IS NULL, 'two trees have nothing in common');
SELECT is(treepath_lca('[1, 2]', '[1, 2, 3]'), '[1, 2]'::treepath, 'one of them may be the lowest common ancestor');
SELECT ok('[1]'::treepath <@ '[]' AND '[1]'::treepath <@ '[1]' AND NOT '[1]'::treepath <@ '[1, 2]', 'a path is below itself and the empty one');
SELECT ok(NOT '["ab"]'::treepath <@ '["a"]' AND NOT '[300]'::treepath <@ '[1]', 'an id that begins the same is another id');
SELECT is(treepath_last(treepath_last('[1]')), treepath_last('[1]'), 'nothing is below a leaf');
SELECT is(treepath_to_text(treepath_from_text('a/b', '/'), '.'), 'a.b', 'separators');
SELECT is(treepath_from_text(''), '[]'::treepath, 'no ids');
SELECT is(treepath_subpath('[1, 2, 3]', 5), '[]'::treepath, 'positions beyond the end');
SELECT is(treepath_subpath('[1, 2, 3]', -5, 4), '[1, 2]'::treepath, 'positions before the beginning');
SELECT is(treepath_subpath('[1, 2, 3]', 1, 2147483647), '[2, 3]'::treepath, 'more than there is');
SELECT is('[1, 2]'::treepath::bson_value, '[1, 2]'::bson_value, 'as a BSON array');
SELECT is(to_bson('[1, "a"]'::treepath), '[1, "a"]'::bson_value, 'also without a cast');
SELECT is('[1]'::treepath || 2::smallint || 3 || 4::bigint || 'x'::text || 'y'::varchar || objectid '507f191e810c19729de860ea' || '2.5'::bson_value || uuid '00000000-0000-0000-0000-000000000001',
  '[1, 2, 3, 4, "x", "y", ObjectId("507f191e810c19729de860ea"), 2.5, UUID("00000000-0000-0000-0000-000000000001")]'::treepath, 'ids of many types behind a path');
SELECT throws_ok($$SELECT '[1]'::treepath || '{}'::bson$$, '22023');
SELECT is('n' || 5 || 5::bigint || objectid '507f191e810c19729de860ea' || '2.5'::bson_value, 'n55507f191e810c19729de860ea2.5', 'strings are still strings');
SELECT is((ARRAY['a', 'b']::treepath)::text[], ARRAY['a', 'b'], 'as text[]');
SELECT is((SELECT array_agg(x)::treepath::objectid[] FROM unnest(ARRAY[objectid '507f191e810c19729de860ea']) x), ARRAY[objectid '507f191e810c19729de860ea'], 'as objectid[]');
SELECT is(repeat('a', 2000)::text, treepath_id(treepath(ARRAY['r', repeat('a', 2000)]))::text, 'an id of two thousand bytes');
SELECT is(treepath_depth((SELECT array_agg(i) FROM generate_series(1, 5000) i)::treepath), 4999, 'five thousand levels');

-- integers of all sizes and their neighbours: in order, and back
CREATE TEMP TABLE ints AS
SELECT DISTINCT s * ((2::numeric ^ e)::int8 + d) AS i FROM generate_series(0, 62) e, generate_series(-1, 1) d, unnest('{-1,1}'::int8[]) s
UNION SELECT i + d FROM unnest('{95,96,16479,16480,2113631,2113632,-256,-257,9223372036854775806,-9223372036854775807}'::int8[]) i, generate_series(-1, 1) d;
SELECT is((SELECT count(*) FROM ints WHERE (ARRAY[i]::treepath)::int8[] <> ARRAY[i]), 0::bigint, 'integers come back');
SELECT is((SELECT array_agg(i ORDER BY ARRAY[i]::treepath) FROM ints), (SELECT array_agg(i ORDER BY i) FROM ints), 'integers are in order');

-- random paths of mixed ids; the model is the array of their ids
SELECT setseed(0.4711);
CREATE TEMP TABLE ids (n int PRIMARY KEY, id bson_value);
INSERT INTO ids SELECT i, CASE i % 8
    WHEN 0 THEN to_bson((random() * 300)::int) WHEN 1 THEN to_bson((random() * 1e7)::int8 - 5000000)
    WHEN 2 THEN to_bson(chr(97 + (random() * 3)::int) || repeat('x', (random() * 3)::int))
    WHEN 3 THEN to_bson(random()) WHEN 4 THEN to_bson(random()::numeric * -7) WHEN 5 THEN to_bson(md5(i::text)::uuid)
    WHEN 6 THEN to_bson(timestamptz '2000-01-01' + i * interval '1 day') ELSE ('ObjectId("' || left(md5(i::text), 24) || '")')::bson_value END
  FROM generate_series(1, 60) i;
INSERT INTO ids VALUES (61, '""'), (62, '"a\u0000"'), (63, '"a\u0000\u0001b"'), (64, '"\u0001"'), (65, 'true'), (66, 'false'), (67, 'null'), (68, 'BinData(0, "AQID")'), (69, 'Timestamp(1, 2)'), (70, 'MinKey'), (71, 'NaN'), (72, 'Infinity'), (73, '-Infinity');
CREATE TEMP TABLE paths AS
SELECT k, (SELECT array_agg(id ORDER BY o) FROM (SELECT 1 + (random() * 72 + k * 0)::int AS n, o FROM generate_series(1, 1 + (k % 4)) o) x JOIN ids USING (n)) AS ids
FROM generate_series(1, 600) k;
INSERT INTO paths SELECT 1000 + k, ids[1:2] FROM paths WHERE k % 3 = 0 UNION ALL SELECT 2000 + k, ids[1:1] FROM paths WHERE k % 5 = 0;
ALTER TABLE paths ADD path treepath;
UPDATE paths SET path = ids::treepath;
SELECT is((SELECT count(*) FROM paths WHERE path IS NULL), 0::bigint, 'every array became a path');
SELECT is((SELECT count(*) FROM paths WHERE path::bson_value[] <> ids), 0::bigint, 'ids come back, equal to what they were');
SELECT is((SELECT count(*) FROM paths WHERE path::text::treepath <> path), 0::bigint, 'through text');
SELECT is((SELECT count(*) FROM paths WHERE treepath_depth(path) <> cardinality(ids) - 1), 0::bigint, 'depths');
SELECT is((SELECT count(*) FROM paths a, paths b WHERE (a.path = b.path) <> (a.ids = b.ids)), 0::bigint, 'equal paths have equal ids');
SELECT is((SELECT count(*) FROM paths a, paths b WHERE (a.path <@ b.path) <> (a.ids[1:cardinality(b.ids)] = b.ids)), 0::bigint, 'below is a prefix');
SELECT is((SELECT count(*) FROM paths a, paths b WHERE a.path <@ b.path AND NOT (a.path >= b.path AND a.path <= treepath_last(b.path))
           OR NOT a.path <@ b.path AND a.path >= b.path AND a.path <= treepath_last(b.path)), 0::bigint, 'below is a range');

-- every form of index answers as the table does
CREATE INDEX ON paths (path);
CREATE INDEX ON paths USING gin (path);
ANALYZE paths;
CREATE FUNCTION pg_temp.answers(condition text) RETURNS bigint LANGUAGE plpgsql AS $f$
DECLARE p record; seq bigint; idx bigint; wrong bigint := 0;
BEGIN
  FOR p IN SELECT path, ids FROM paths ORDER BY k LIMIT 150 LOOP
    SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_seqscan = on;
    EXECUTE 'SELECT count(*) FROM paths WHERE ' || condition INTO seq USING p.path, p.ids;
    SET LOCAL enable_indexscan = on; SET LOCAL enable_bitmapscan = on; SET LOCAL enable_indexonlyscan = on; SET LOCAL enable_seqscan = off;
    EXECUTE 'SELECT count(*) FROM paths WHERE ' || condition INTO idx USING p.path, p.ids;
    IF seq <> idx OR seq = 0 THEN wrong := wrong + 1; END IF;
  END LOOP;
  RETURN wrong;
END $f$;
SELECT is(pg_temp.answers('path <@ $1'), 0::bigint, 'below, from the index');
SELECT is(pg_temp.answers('path @> $1'), 0::bigint, 'above, from the index');
SELECT is(pg_temp.answers('path ? $2[1]'), 0::bigint, 'on the path, from the index');
SELECT is(pg_temp.answers('path ?| $2 AND path ?& $2'), 0::bigint, 'any and all, from the index');

-- estimates come from the paths that statistics have sampled
CREATE TABLE many AS SELECT ARRAY['r', 'n' || i % 4, 'm' || i % 50, 'l' || i]::treepath AS path FROM generate_series(1, 20000) i;
ANALYZE many;
CREATE FUNCTION pg_temp.estimate(condition text) RETURNS float8 LANGUAGE plpgsql AS $f$
DECLARE p json; BEGIN EXECUTE 'EXPLAIN (FORMAT json) SELECT FROM many WHERE ' || condition INTO p; RETURN p -> 0 -> 'Plan' ->> 'Plan Rows'; END $f$;
SELECT ok(pg_temp.estimate($$path ? 'n1'$$) BETWEEN 3000 AND 7000, 'a quarter leads through the node');
SELECT ok(pg_temp.estimate($$path ?| '{n1,n2}'::text[]$$) BETWEEN 7000 AND 13000, 'a half through one of two');
SELECT ok(pg_temp.estimate($$path ?& '{r,n3}'::text[]$$) BETWEEN 3000 AND 7000, 'a quarter through both');
SELECT ok(pg_temp.estimate($$path ? 'nowhere'$$) < 50 AND pg_temp.estimate($$path ? 5$$) < 50 AND pg_temp.estimate($$path ? '"nowhere"'::bson_value$$) < 50, 'next to none through a node that is not sampled');
SELECT * FROM finish();
ROLLBACK;
