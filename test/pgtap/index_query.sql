-- What an index serves of a filter: every operator, answers beside those of a sequential scan, plans.
\set QUIET 1
SET client_min_messages = warning;
BEGIN;
SELECT plan(66);
SET LOCAL jit = off;

-- Documents of all shapes. The seed makes every run the same.
\set seed 0.49
SELECT setseed(:seed) \g /dev/null
CREATE FUNCTION one_of(VARIADIC choices text[]) RETURNS text LANGUAGE sql VOLATILE AS
  $$ SELECT choices[1 + floor(random() * cardinality(choices))::int] $$;
CREATE FUNCTION some_scalar() RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT one_of('1', '2', '3', '5', '7', '-4', '0', '2.5', '3.0', 'NumberLong("3")', 'NumberDecimal("2.50")', 'NumberDecimal("5.1")', 'NaN', 'Infinity', '9007199254740993',
    '"a"', '"ab"', '"abc"', '"abcdefghijklmnopqrstuvwxyz"', '"abcdefghijklmnopqrstuvwxyy"', '"b"', '""', 'Symbol("ab")', 'null', 'undefined', 'true', 'false',
    'ISODate("2020-01-01")', 'ISODate("2021-06-01T10:00:00Z")', 'ISODate("1900-01-01")', 'ObjectId("507f191e810c19729de860ea")', 'ObjectId("507f191e810c19729de860eb")',
    '/^ab/', 'BinData(0, "AAEC")', 'Timestamp(1, 2)', 'MinKey', 'MaxKey', '{}', '[]') $$;
CREATE FUNCTION some_name() RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT one_of('a', 'b', 'c', 'a', 'b', '"0"', '"1"') $$;
CREATE FUNCTION some_value(depth int) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE kind float8 := random(); result text; n int := floor(random() * 4);
BEGIN
  IF depth = 0 OR kind < 0.5 THEN RETURN some_scalar(); END IF;
  IF kind < 0.75 THEN
    SELECT '{' || coalesce(string_agg(some_name() || ': ' || some_value(depth - 1), ', '), '') || '}' INTO result FROM generate_series(1, n);
  ELSE
    SELECT '[' || coalesce(string_agg(some_value(depth - 1), ', '), '') || ']' INTO result FROM generate_series(1, n);
  END IF;
  RETURN result;
END $$;
CREATE FUNCTION some_path() RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT one_of('a', 'b', 'a.b', 'a.c', 'b.a', 'a.0', 'a.0.b', 'a.b.c', 'c', '0', 'a.1') $$;
CREATE FUNCTION some_operators() RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE v text := replace(some_value(1), 'undefined', 'null'); w text := replace(some_scalar(), 'undefined', '2'); x text := replace(some_scalar(), 'undefined', '3');
BEGIN
  IF w LIKE '/%' THEN w := '1'; END IF;
  IF x LIKE '/%' THEN x := '2'; END IF;
  RETURN one_of('$eq: ' || v, '$eq: ' || v, '$gt: ' || w, '$gte: ' || w, '$lt: ' || w, '$lte: ' || w, '$gte: ' || w || ', $lt: ' || x, '$gt: 1, $lt: 4', '$gte: 2, $lte: 5, $ne: 3',
    '$gt: "a", $lt: "abd"', '$in: [' || w || ', ' || x || ']', '$in: [1, null, "ab"]', '$in: [/^ab/, 2]', '$in: []', '$nin: [1, 2]', '$ne: ' || x, '$ne: null', '$exists: true', '$exists: false', '$type: "string"', '$type: ["array", "int"]',
    '$type: "object"', '$type: "number"', '$mod: [2, 1]', '$regex: "^ab"', '$regex: "^abcdefghijklmnopqrstuvwxy"', '$regex: "b"', '$regex: "^AB", $options: "i"', '$regex: "^a|b"', '$regex: "^ab?c"', '$all: [' || w || ', ' || x || ']', '$all: []', '$size: 0',
    '$size: 2', '$bitsAllSet: 1', '$not: {$gt: 2}', '$not: {$exists: false}', '$elemMatch: {$gt: 1, $lt: 4}', '$elemMatch: {a: ' || w || ', b: {$gt: 1, $lt: 4}}', '$elemMatch: {a: ' || w || ', b: ' || x || '}', '$elemMatch: {a: {$in: [1, 2, ' || x || ']}, b: {$gte: ' || w || '}}',
    '$elemMatch: {a: 1, b: null}', '$elemMatch: {b: {$exists: false}}', '$elemMatch: {$in: [1, "a"]}', '$elemMatch: {"0": {$gt: 1, $lt: 4}}', '$elemMatch: {$elemMatch: {$gt: 1, $lt: 4}}', '$elemMatch: {a: 2, $or: [{b: 1}, {b: {$lt: 3}}]}', '$all: [{$elemMatch: {a: 1, b: 2}}, {$elemMatch: {b: 1}}]', '$elemMatch: {}');
END $$;
CREATE FUNCTION some_filter(depth int) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE kind float8 := random();
BEGIN
  IF depth > 0 AND kind < 0.2 THEN RETURN '{$or: [' || some_filter(depth - 1) || ', ' || some_filter(depth - 1) || ']}'; END IF;
  IF depth > 0 AND kind < 0.4 THEN RETURN '{$and: [' || some_filter(depth - 1) || ', ' || some_filter(depth - 1) || ']}'; END IF;
  IF depth > 0 AND kind < 0.45 THEN RETURN '{$nor: [{$nor: [' || some_filter(depth - 1) || ', ' || some_filter(depth - 1) || ']}]}'; END IF;
  IF depth > 0 AND kind < 0.5 THEN RETURN '{$nor: [' || some_filter(depth - 1) || ']}'; END IF;
  IF kind < 0.6 THEN RETURN '{"' || some_path() || '": {' || some_operators() || '}, "' || some_path() || '": {' || some_operators() || '}}'; END IF;
  RETURN '{"' || some_path() || '": {' || some_operators() || '}}';
END $$;

CREATE TABLE d (id int, doc bson);
INSERT INTO d SELECT i, ('{a: ' || some_value(3) || ', b: ' || some_value(2) || CASE WHEN random() < 0.3 THEN ', "0": ' || some_value(2) ELSE '' END || '}')::bson FROM generate_series(1, 300) i;
INSERT INTO d SELECT 300 + i, ('{' || some_name() || ': ' || some_value(3) || '}')::bson FROM generate_series(1, 100) i;
INSERT INTO d SELECT 400 + i, ('{a: [{a: ' || some_value(1) || ', b: ' || some_value(1) || '}, {a: ' || some_scalar() || ', b: ' || some_scalar() || '}, {b: ' || some_scalar() || '}]}')::bson FROM generate_series(1, 200) i;
INSERT INTO d VALUES (0, '{}');
ANALYZE d;

CREATE TABLE f (id int, filter bson);
INSERT INTO f SELECT i, some_filter(2)::bson FROM generate_series(1, 700) i;
CREATE TABLE b (id int, other bson);
INSERT INTO b SELECT i, ('{' || one_of('a', 'b', 'a', 'c') || ': ' || some_value(2) || '}')::bson FROM generate_series(1, 200) i;
CREATE TABLE p (id int, path text, paths text[]);
INSERT INTO p SELECT i, some_path(), ARRAY[some_path(), some_path()] FROM generate_series(1, 60) i;

-- What a sequential scan answers
CREATE TABLE want AS
  SELECT 1 AS op, f.id, d.id AS doc FROM f JOIN d ON d.doc @@ f.filter
  UNION ALL SELECT 2, b.id, d.id FROM b JOIN d ON d.doc @> b.other
  UNION ALL SELECT 3, p.id, d.id FROM p JOIN d ON d.doc ? p.path
  UNION ALL SELECT 4, p.id, d.id FROM p JOIN d ON d.doc ?| p.paths
  UNION ALL SELECT 5, p.id, d.id FROM p JOIN d ON d.doc ?& p.paths;
SELECT ok(count(*) > 20000 AND count(DISTINCT id) FILTER (WHERE op = 1) > 300, 'there is something to be found (seed ' || :'seed' || ')') FROM want;

-- The same by an index, with the filter from another table, and as a constant
CREATE FUNCTION differences(max int) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE r record; n bigint; m bigint;
BEGIN
  SET LOCAL enable_seqscan = on;
  SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL enable_material = off;
  CREATE TABLE got (op int, id int, doc int);
  FOR r IN SELECT * FROM f LOOP
    EXECUTE format('SET LOCAL enable_seqscan = off');
    EXECUTE format('INSERT INTO got SELECT 1, %s, id FROM d WHERE doc @@ %L', r.id, r.filter);
    IF r.id % 3 = 0 THEN
      EXECUTE 'INSERT INTO got SELECT 6, $2, id FROM d WHERE bson_match(doc, $1)' USING r.filter, r.id;
    END IF;
  END LOOP;
  INSERT INTO got
    SELECT 7, f.id, x.id FROM f CROSS JOIN LATERAL (SELECT d.id FROM d WHERE d.doc @@ f.filter OFFSET 0) x
    UNION ALL SELECT 2, b.id, x.id FROM b CROSS JOIN LATERAL (SELECT d.id FROM d WHERE d.doc @> b.other OFFSET 0) x
    UNION ALL SELECT 3, p.id, x.id FROM p CROSS JOIN LATERAL (SELECT d.id FROM d WHERE d.doc ? p.path OFFSET 0) x
    UNION ALL SELECT 4, p.id, x.id FROM p CROSS JOIN LATERAL (SELECT d.id FROM d WHERE d.doc ?| p.paths OFFSET 0) x
    UNION ALL SELECT 5, p.id, x.id FROM p CROSS JOIN LATERAL (SELECT d.id FROM d WHERE d.doc ?& p.paths OFFSET 0) x;
  SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on; SET LOCAL enable_material = on;
  RETURN QUERY
    WITH expected AS (SELECT * FROM want UNION ALL SELECT 6, id, doc FROM want WHERE op = 1 AND id % 3 = 0 UNION ALL SELECT 7, id, doc FROM want WHERE op = 1),
    differ AS ((TABLE expected EXCEPT ALL TABLE got) UNION ALL (TABLE got EXCEPT ALL TABLE expected))
    SELECT format('%s: %s on %s', differ.op, coalesce(f.filter::text, b.other::text, p.path || ' ' || p.paths::text), d.doc)
    FROM differ LEFT JOIN f ON differ.op IN (1, 6, 7) AND f.id = differ.id LEFT JOIN b ON differ.op = 2 AND b.id = differ.id
      LEFT JOIN p ON differ.op IN (3, 4, 5) AND p.id = differ.id JOIN d ON d.id = differ.doc ORDER BY length(d.doc::text) + length(f.filter::text) LIMIT max;
  DROP TABLE got;
END $$;

CREATE INDEX d_all ON d USING gin (doc);
SELECT is_empty('SELECT differences(10)', 'all paths');
DROP INDEX d_all;
CREATE INDEX d_named ON d USING gin (doc bson_ops (paths = 'a.b, b'));
SELECT is_empty('SELECT differences(10)', 'named paths');
DROP INDEX d_named;
CREATE INDEX d_pair ON d USING gin (doc bson_ops (pairs = 'a(a,b), a(b,c)'));
SELECT is_empty('SELECT differences(10)', 'pairs');
DROP INDEX d_pair;
CREATE INDEX d_both ON d USING gin (doc bson_ops (paths = 'a, b.a', pairs = 'a(a,b)'));
SELECT is_empty('SELECT differences(10)', 'named paths and pairs');

DROP INDEX d_both;

-- What the planner asks an index for: the conditions of all index scans of a query
CREATE FUNCTION looked_up(query text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE line text; result text[] := '{}';
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    IF line ~ 'Index Cond: ' THEN result := result || regexp_replace(line, '.*Index Cond: \((.*)\)$', '\1'); END IF;
  END LOOP;
  RETURN result;
END $$;
CREATE FUNCTION nodes(query text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE line text; result text[] := '{}';
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    IF line ~ '(->|Scan|Join|Loop|Bitmap)' AND line !~ ':' THEN result := result || regexp_replace(line, '^[ >-]*', ''); END IF;
  END LOOP;
  RETURN result;
END $$;
CREATE TABLE t (id int, made int, kind text, doc bson);
INSERT INTO t SELECT i, i % 100, 'k' || i % 3, bson_build('a', i, 'b', i % 10, 's', 'name ' || i, 'items', bson_array(bson_build('sku', 'k' || i % 50, 'qty', i % 7), bson_build('sku', 'm' || i % 40, 'qty', i % 9))) FROM generate_series(1, 5000) i;
CREATE INDEX t_made ON t (made);
CREATE INDEX t_all ON t USING gin (doc);
ANALYZE t;
SET LOCAL enable_seqscan = off;

SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{a: 5}'$$), ARRAY[$$doc @@~ '{"a": 5}'::bson$$], 'a constant');
SELECT is(looked_up($$SELECT * FROM t WHERE bson_match(doc, '{a: 5}')$$), ARRAY[$$doc @@~ '{"a": 5}'::bson$$], 'the function');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{$expr: {$eq: ["$a", 5]}}'$$), '{}', 'an expression: no index');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{a: {$ne: 5}, b: null}'$$), '{}', 'neither an inequality nor null by all paths');
SELECT is(looked_up($$SELECT * FROM t WHERE NOT doc @@ '{a: 5}'$$), '{}', 'nor a negation');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{}'$$), '{}', 'nor the empty filter');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{a: {$lt: 9, $gte: 5}}'$$), ARRAY[$$doc @@~ '{"a": {"$gte": 5, "$lt": 9}}'::bson$$], 'a range');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{$and: [{a: {$gte: 5}}, {$and: [{a: {$lt: 9}}]}]}'$$), ARRAY[$$doc @@~ '{"a": {"$gte": 5, "$lt": 9}}'::bson$$], 'its ends in several places');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{a: 5, s: {$exists: true}, b: {$mod: [2, 0]}}'$$), ARRAY[$$doc @@~ '{"a": 5}'::bson$$], 'what says little is left out beside more');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{c: {$mod: [2, 0]}}'$$), ARRAY[$$doc @@~ '{"c": {"$type": "number"}}'::bson$$], 'and looked up when it is alone');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{$or: [{a: 5, x: {$ne: 1}}, {s: /^name 77$/}]}'$$), ARRAY[$$doc @@~ '{"$or": [{"a": 5}, {"s": {"$regex": "^name 77$"}}]}'::bson$$], 'a tree');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{$or: [{a: 5}, {x: {$ne: 1}}]}'$$), '{}', 'a branch that is not served spoils $or');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{s: /^name 7+7/}'$$), ARRAY[$$doc @@~ '{"s": {"$regex": "^name 7+7"}}'::bson$$], 'a pattern with a literal in front');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{a: {$in: []}}'$$), ARRAY[$$doc @@~ '{"$alwaysFalse": 1}'::bson$$], 'what nothing can meet');
SELECT is_empty($$SELECT * FROM t WHERE doc @@ '{a: {$in: []}}'$$, 'and it finds nothing');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{a: 5}' AND made = 5$$), ARRAY[$$doc @@~ '{"a": 5}'::bson$$], 'one index does');
SELECT ok('BitmapAnd' = ANY (nodes($$SELECT * FROM t WHERE doc @@ '{b: 5}' AND made = 5$$)) OR cardinality(looked_up($$SELECT * FROM t WHERE doc @@ '{b: 5}' AND made = 5$$)) = 1, 'beside a btree');
SELECT is((SELECT count(*) FROM t WHERE doc @@ '{b: 5}' AND made = 5), 50::bigint, 'with the right answer');
SELECT ok('BitmapOr' = ANY (nodes($$SELECT * FROM t WHERE doc @@ '{a: 5}' OR doc @@ '{s: "name 7"}' OR made = 101$$)), 'OR of filters and of a btree');
SELECT is((SELECT count(*) FROM t WHERE doc @@ '{a: 5}' OR doc @@ '{s: "name 7"}' OR made = 101), 2::bigint, 'with the right answer');

SELECT matches((looked_up($$SELECT * FROM generate_series(1, 3) i JOIN t ON doc @@ bson_build('a', i)$$))[1], '^doc @@~ bson_build\(.*i\.i\)$', 'a join whose filter is made from the other table') FROM (SELECT set_config('enable_hashjoin', 'off', true)) x;
SELECT is((SELECT count(*) FROM generate_series(1, 3) i JOIN t ON doc @@ bson_build('a', i)), 3::bigint, 'with the right answer');
SELECT is((SELECT count(*) FROM generate_series(1, 3) i JOIN t ON bson_match(doc, bson_build('a', bson_build('$lte', i)))), 6::bigint, 'by the function, and a range');
SELECT is(looked_up($$SELECT * FROM t x JOIN t y ON y.doc @@ bson_build('a', y.id) AND x.id = y.id$$), '{}', 'not with a filter from the same table');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ bson_build('a', (random() * 0)::int)$$), '{}', 'nor with a volatile one');
SELECT is(looked_up($$SELECT * FROM t WHERE bson_match(doc, bson_build('a', (random() * 0)::int))$$), '{}', 'in either form');

SET LOCAL plan_cache_mode = force_generic_plan;
PREPARE by_filter (bson) AS SELECT id FROM t WHERE doc @@ $1;
SELECT is(looked_up('EXECUTE by_filter (NULL)'), ARRAY['doc @@~ $1'], 'a parameter');
SELECT results_eq($$EXECUTE by_filter ('{a: 7}')$$, ARRAY[7], 'with one value');
SELECT results_eq($$EXECUTE by_filter ('{a: {$gt: 10, $lt: 12}, b: {$gte: 0}}')$$, ARRAY[11], 'with others');
SELECT results_eq($$EXECUTE by_filter ('{$expr: {$eq: ["$a", 9]}}')$$, ARRAY[9], 'with one that the index cannot serve');
SELECT is_empty($$EXECUTE by_filter (NULL)$$, 'with null');
SELECT throws_ok($$EXECUTE by_filter ('{a: {$no: 1}}')$$, '0A000', NULL, 'with a wrong one');
PREPARE by_paths (text[]) AS SELECT count(*) FROM t WHERE doc ?| $1;
SELECT results_eq($$EXECUTE by_paths (ARRAY['items.0.sku', NULL])$$, ARRAY[5000::bigint], 'paths that exist');
SELECT results_eq($$EXECUTE by_paths ('{}')$$, ARRAY[0::bigint], 'none of no paths');
SELECT throws_ok($$SELECT * FROM t WHERE doc @@ '{a: {$no: 1}}'$$, '0A000', NULL, 'a wrong filter says so');
SET LOCAL plan_cache_mode = auto;

-- Partial indexes, named paths, pairs
DROP INDEX t_all;
CREATE INDEX t_partial ON t USING gin (doc bson_ops (paths = 'a')) WHERE kind = 'k1';
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{a: 4, b: 4}' AND kind = 'k1'$$), ARRAY[$$doc @@~ '{"a": 4}'::bson$$], 'a partial index, of one path');
SELECT results_eq($$SELECT id FROM t WHERE doc @@ '{a: 4, b: 4}' AND kind = 'k1'$$, ARRAY[4], 'with the right answer');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{a: 4}'$$), '{}', 'not without its predicate');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{b: 4}' AND kind = 'k1'$$), '{}', 'nor for another path');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{a: null}' AND kind = 'k1'$$), ARRAY[$$doc @@~ '{"a": null}'::bson$$], 'null by a named path');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{a: {$exists: false}}' AND kind = 'k1'$$), ARRAY[$$doc @@~ '{"a": {"$exists": false}}'::bson$$], 'what is missing, too');
DROP INDEX t_partial;
CREATE INDEX t_of_filter ON t USING gin (doc) WHERE doc @@ '{b: 4}';
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{a: 4}' AND doc @@ '{b: 4}'$$), ARRAY[$$doc @@~ '{"a": 4}'::bson$$], 'a filter as the predicate');
DROP INDEX t_of_filter;
CREATE INDEX t_pairs ON t USING gin (doc bson_ops (pairs = 'items(sku,qty)'));
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{items: {$elemMatch: {qty: {$gte: 3, $lt: 5}, note: "x", sku: "k3"}}}'$$), ARRAY[$$doc @@~ '{"items": {"$elemMatch": {"sku": "k3", "qty": {"$gte": 3, "$lt": 5}}}}'::bson$$], 'a pair');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{"items.sku": {$in: ["k3", "m4"]}, "items.qty": 3}'$$), ARRAY[$$doc @@~ '{"items.sku": {"$in": ["k3", "m4"]}}'::bson$$], 'its first part alone');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @@ '{items: {$elemMatch: {qty: 3}}}'$$), '{}', 'not its second');
SELECT results_eq($$SELECT count(*) FROM t WHERE doc @@ '{items: {$elemMatch: {qty: {$gte: 3, $lt: 5}, sku: {$in: ["k3", "m4"]}}}}'$$,
  $$SELECT count(*) FROM t, bson_elements(doc -> 'items') e WHERE e ->> 'sku' IN ('k3', 'm4') AND (e -> 'qty')::int IN (3, 4)$$, 'with the right answer');
SELECT is(looked_up($$SELECT * FROM t WHERE doc @> '{items: [{sku: "k3", qty: 3}]}'$$), ARRAY[$$doc @> '{"items": [{"sku": "k3", "qty": 3}]}'::bson$$], 'containment by a pair');

-- bson_index_conditions
SELECT is((SELECT concat_ws(' ', provolatile, proisstrict, proparallel) FROM pg_proc WHERE proname = 'bson_index_conditions'), 's t s', 'stable, strict, parallel safe');
SELECT results_eq($$SELECT condition::text, lookup, looked_up::text FROM bson_index_conditions('t_pairs', '{items: {$elemMatch: {sku: "k3", qty: 3, x: 1}}, $and: [{a: 5}]}')$$,
  $$VALUES ('{"items": {"$elemMatch": {"sku": "k3", "qty": 3, "x": 1}}}', 'pair', '{"items": {"$elemMatch": {"sku": "k3", "qty": 3}}}'), ('{"a": 5}', NULL, NULL)$$, 'conditions one by one');
SELECT throws_ok($$SELECT * FROM bson_index_conditions('t_made', '{a: 1}')$$, '42809', '"t_made" is not a GIN index of the operator class bson_ops');
SELECT throws_ok($$SELECT * FROM bson_index_conditions(4294967295::oid, '{a: 1}')$$, '42P01', NULL, 'no relation at all');
CREATE TABLE parted (id int, doc bson) PARTITION BY RANGE (id);
CREATE INDEX parted_paths ON parted USING gin (doc bson_ops (paths = 'a'));
SELECT results_eq($$SELECT condition::text, lookup FROM bson_index_conditions('parted_paths', '{a: 5, b: 6}')$$,
  $$VALUES ('{"a": 5}', 'key'), ('{"b": 6}', NULL)$$, 'the index of a partitioned table');
DROP TABLE parted;
SELECT throws_ok($$SELECT * FROM bson_index_conditions('t_pairs', '{a: {$no: 1}}')$$, '0A000', NULL, 'a wrong filter');

-- Every comparison with every kind of value, of what has every kind of value or none: null is also what is missing, and MinKey and
-- MaxKey have all others on one side.
CREATE TABLE kinds AS SELECT n AS id, bson_build('a', v, 'r', bson_array(bson_build('k', 1, 'v', v), '{k: 2}'::bson)) AS doc FROM bson_elements('[null, undefined, MinKey, MaxKey, NaN, -0.0, 5,
  NumberDecimal("5.0"), Infinity, "s", Symbol("s"), {}, {x: 1}, [], [null], [4, 9], [[4, 9]], true, ISODate("1969-01-01"), Timestamp(1, 1), /s/]') WITH ORDINALITY AS x (v, n);
INSERT INTO kinds VALUES (100, '{r: [{k: 1}]}'), (101, '{r: [[{k: 1}]]}'), (102, '{a: 3, r: {k: 1}}'), (103, '{r: [{k: 1, v: 7}, 5]}'), (104, '{}');
CREATE TABLE kinds_asked AS SELECT bson_build('a', bson_build(o, v), 'r', bson_build('$elemMatch', bson_build('k', 1, 'v', bson_build(o, v)))) AS f FROM unnest('{$eq,$lt,$lte,$gt,$gte}'::text[]) AS o,
  bson_elements('[null, MinKey, MaxKey, NaN, 0, 5, Infinity, "s", {}, {x: 1}, [], [4, 9], true, ISODate("1970-01-01"), Timestamp(1, 1)]') AS v;
CREATE FUNCTION kinds_wrong(options text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  part bson;
  wanted bigint[];
  got bigint[];
  result text := '';
BEGIN
  EXECUTE 'CREATE INDEX kinds_index ON kinds USING gin (doc bson_ops ' || options || ')';
  FOR part IN SELECT bson_build(key, value) FROM kinds_asked, bson_each(f) LOOP
    SELECT array_agg(id ORDER BY id) INTO wanted FROM kinds WHERE bson_match(doc || '{}', part);
    EXECUTE format('SELECT array_agg(id ORDER BY id) FROM kinds WHERE doc @@ %L', part) INTO got;
    IF got IS DISTINCT FROM wanted THEN result := concat(result, ' ', part); END IF;
  END LOOP;
  DROP INDEX kinds_index;
  RETURN result;
END $$;
SET enable_seqscan = off;
SELECT is(kinds_wrong(options), '', 'all comparisons' || options) FROM unnest(ARRAY['', $$ (paths = 'a, r.v')$$, $$ (pairs = 'r(k,v)')$$]) AS options;
RESET enable_seqscan;

-- an end that is a date and left out is not read: of a day, nothing of the next; ends of all dates
CREATE TABLE days AS SELECT bson_build('at', timestamptz '2024-01-01 00:00:00+00' + i / 5 * interval '1 day') AS doc FROM generate_series(0, 499) i;
INSERT INTO days SELECT format('{at: {$date: {$numberLong: "%s"}}}', ms)::bson FROM unnest(ARRAY[-9223372036854775808, -9223372036854775807, 9223372036854775806, 9223372036854775807, 0, -1, 1]::numeric[]) ms;
CREATE INDEX days_index ON days USING gin (doc bson_ops);
CREATE FUNCTION read_of_index(f bson) RETURNS text LANGUAGE plpgsql AS $$
DECLARE plan jsonb; entries int; found int; wanted int;
BEGIN
  EXECUTE format('EXPLAIN (ANALYZE, FORMAT json) SELECT count(*) FROM days WHERE doc @@ %L', f) INTO plan;
  entries := plan #> '{0,Plan,Plans,0,Plans,0,Actual Rows}';
  EXECUTE format('SELECT count(*) FROM days WHERE doc @@ %L', f) INTO found;
  SELECT count(*) INTO wanted FROM days WHERE bson_match(doc || '{}', f);
  RETURN format('%s read, %s found, %s wanted', entries, found, wanted);
END $$;
SET enable_seqscan = off;
SELECT is(read_of_index(f), format('%1$s read, %1$s found, %1$s wanted', n), format('%s dates within %s', n, f)) FROM (VALUES
  ('{at: {$gte: ISODate("2024-02-01"), $lt: ISODate("2024-02-02")}}'::bson, 5), ('{at: {$gt: ISODate("2024-02-01"), $lte: ISODate("2024-02-02")}}', 5),
  ('{at: {$gt: {$date: {$numberLong: "9223372036854775806"}}}}', 1), ('{at: {$gt: {$date: {$numberLong: "-1"}}, $lt: {$date: {$numberLong: "1"}}}}', 1),
  ('{at: {$lt: {$date: {$numberLong: "-9223372036854775806"}}}}', 2)) x (f, n);
RESET enable_seqscan;

SELECT * FROM finish();
ROLLBACK;
