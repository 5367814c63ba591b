-- The contract of graph_lookup and graph_shortest_path, and seeded random graphs against recursive queries.
\set QUIET 1
BEGIN;
SELECT plan(60);
SET client_min_messages = warning;

SELECT is((SELECT concat(proargnames, provolatile, proparallel, prosecdef, pronargdefaults) FROM pg_proc WHERE proname = 'graph_lookup'),
  '{rel,start,connect_from,connect_to,max_depth,restrict,depth_field,collation,node,depth,path,key,doc}srf4', 'graph_lookup: names, stable, as the caller');
SELECT is((SELECT DISTINCT concat(proargnames, provolatile, proparallel, prosecdef, pronargdefaults) FROM pg_proc WHERE proname = 'graph_shortest_path'),
  '{rel,start,target,connect_from,connect_to,max_depth,restrict,step,node,key,doc}srf2', 'graph_shortest_path');

-- errors
CREATE TABLE "T""x" ("k y" int, "b)" text, "d;oc" bson, PRIMARY KEY ("k y", "b)"));
INSERT INTO "T""x" VALUES (1, 'a', '{"n''ame": 1, to: [2, 3, null]}'), (2, 'b', '{"n''ame": 2, to: 4}'), (3, 'c', '{"n''ame": 3, to: [1, 4]}'), (4, 'd', '{"n''ame": 4}'), (5, 'e', '{to: 1}'), (6, 'f', NULL), (7, 'g', '{"n''ame": null, to: 1}');
SELECT results_eq($$SELECT node::int, depth, path::text, key::text FROM graph_lookup('"T""x"', 1, 'to', 'n''ame') ORDER BY node$$,
  $$VALUES (1, 0, '{1}', '[1, "a"]'), (2, 1, '{1,2}', '[2, "b"]'), (3, 1, '{1,3}', '[3, "c"]'), (4, 2, '{1,2,4}', '[4, "d"]')$$, 'hostile names, a key of two columns, null connects nothing');
SELECT throws_ok($$SELECT graph_lookup('"T""x"', 1, 'to', 'a', -1)$$, '22023', 'max_depth must not be negative');
SELECT throws_ok($$SELECT graph_lookup('"T""x"', 1, 'to', NULL)$$, '22004');
SELECT throws_ok($$SELECT graph_lookup(NULL, 1, 'to', 'a')$$, '22004');
SELECT throws_ok($$SELECT graph_lookup('"T""x"', 1, 'to', 'a..b')$$, '22023');
SELECT throws_ok($$SELECT graph_lookup('"T""x"', 1, 'to', 'a', restrict => '{a: {$near: 1}}')$$, '0A000');
SELECT throws_ok($$SELECT graph_lookup(1, 1, 'to', 'a')$$, '42P01');
SELECT throws_ok($$SELECT graph_lookup('pg_class', 1, 'to', 'a')$$, '42703');
CREATE TABLE two (a bson, b bson);
SELECT throws_ok($$SELECT graph_lookup('two', 1, 'to', 'a')$$, '42702');
SELECT throws_ok($$SELECT graph_shortest_path('"T""x"', 1, 2, 'to', 'a', -1)$$, '22023');
SELECT is_empty($$SELECT graph_lookup('"T""x"', NULL::int, 'to', 'n''ame')$$, 'no start');
SELECT is_empty($$SELECT graph_lookup('"T""x"', 'null'::bson_value, 'to', 'n''ame')$$, 'null is none');
SELECT is_empty($$SELECT graph_lookup('"T""x"', '[]'::bson_value, 'to', 'n''ame')$$, 'nor is an empty array');
SELECT is((SELECT count(*) FROM graph_lookup('"T""x"', ARRAY[4, 2, NULL, 2], 'to', 'n''ame', 0)), 2::bigint, 'several starts');
SELECT is((SELECT count(*) FROM graph_lookup('"T""x"', 1.0::float8, 'to', 'n''ame', 0)), 1::bigint, 'equal numbers are one node');
SELECT is((SELECT count(*) FROM graph_lookup('"T""x"', '1', 'to', 'n''ame', 0)), 0::bigint, 'a literal is a string');
SELECT results_eq($$SELECT node::int, depth FROM graph_lookup('"T""x"', ARRAY[2], 'to', 'n''ame', 2147483647)$$, 'VALUES (2, 0), (4, 1)', 'any depth');
SELECT is((SELECT doc -> 'x.depth' FROM graph_lookup('"T""x"', 2, 'to', 'n''ame', depth_field => 'x.depth') WHERE depth = 1), '{"$numberLong": "1"}'::bson_value, 'depth_field may be a path; an int64, as in MongoDB');
SELECT results_eq($$SELECT node::int FROM graph_lookup('"T""x"', 1, 'to', 'n''ame', restrict => '{"n''ame": {$ne: 2}}') ORDER BY node$$, 'VALUES (1), (3), (4)', 'restrict holds on the way');
SELECT results_eq($$SELECT step, node::int, key::text FROM graph_shortest_path('"T""x"', 1, 4, 'to', 'n''ame', restrict => '{"n''ame": {$ne: 2}}')$$, $$VALUES (0, 1, '[1, "a"]'), (1, 3, '[3, "c"]'), (2, 4, '[4, "d"]')$$, 'and on the shortest way');
SELECT is_empty($$SELECT graph_shortest_path('"T""x"', 1, 4, 'to', 'n''ame', 1)$$, 'too far');
SELECT is((SELECT max(step) FROM graph_shortest_path('"T""x"', 1, 4, 'to', 'n''ame', 2)), 2, 'not too far');
SELECT is_empty($$SELECT graph_shortest_path('"T""x"', 4, 1, 'to', 'n''ame')$$, 'no way');
SELECT results_eq($$SELECT step, node::int, doc ->> 'to' FROM graph_shortest_path('"T""x"', 2, 2, 'to', 'n''ame')$$, $$VALUES (0, 2, '4')$$, 'from a node to itself');
SELECT results_eq($$SELECT step, node::int FROM graph_shortest_path('"T""x"', 2, 2, 'to', 'n''ame', 0)$$, $$VALUES (0, 2)$$, 'in no steps');
SELECT is_empty($$SELECT graph_shortest_path('"T""x"', 2, NULL::int, 'to', 'n''ame')$$, 'to nowhere');
SELECT results_eq($$SELECT step, node::int, doc FROM graph_shortest_path('"T""x"', 9, 9, 'to', 'n''ame')$$, $$VALUES (0, 9, NULL::bson)$$, 'a node without documents');

-- ids of 2 kB, of many types
CREATE TABLE chain (id int PRIMARY KEY, doc bson);
INSERT INTO chain SELECT i, bson_build('a', CASE i % 4 WHEN 0 THEN to_bson(CASE WHEN i < 200 THEN repeat('x', 2000) ELSE 'x' END || i) WHEN 1 THEN to_bson(i) WHEN 2 THEN bson_build('sub', i)::bson_value ELSE to_bson(md5(i::text)::uuid) END) FROM generate_series(0, 5000) i;
UPDATE chain c SET doc = bson_set(c.doc, 'b', n.doc -> 'a') FROM chain n WHERE n.id = c.id + 1;
SELECT results_eq($$SELECT count(*), max(depth), count(*) FILTER (WHERE key::int = depth) FROM graph_lookup('chain', repeat('x', 2000) || '0', 'b', 'a')$$, 'VALUES (5001::bigint, 5000, 5001::bigint)', 'a chain of 5,000');
SELECT is((SELECT count(*) FROM graph_shortest_path('chain', repeat('x', 2000) || '0', 4999 + 2 - 0, 'b', 'a')), 0::bigint, 'a node that is not there');
SELECT is((SELECT max(step) FROM graph_shortest_path('chain', repeat('x', 2000) || '0', 4997, 'b', 'a')), 4997, 'its ends');
SET LOCAL work_mem = '64kB';
SELECT throws_ok($$SELECT graph_lookup('chain', repeat('x', 2000) || '0', 'b', 'a')$$, '53400');
SELECT throws_like($$SELECT graph_lookup('chain', repeat('x', 2000) || '0', 'b', 'a')$$, 'graph has more nodes than work_mem allows');
SELECT is((SELECT count(*) FROM graph_lookup('chain', repeat('x', 2000) || '0', 'b', 'a', 20)), 21::bigint, 'a part fits');
RESET work_mem;

-- random graphs: values, arrays of them and nothing, on both sides; each way to the rows gives what recursive queries do
SELECT setseed(0.271);
CREATE TABLE g (id int PRIMARY KEY, doc bson);
INSERT INTO g SELECT i, CASE WHEN i % 10 = 0 THEN bson_build('f', bson_build('a', ARRAY[(random() * 300)::int, (random() * 300)::int]), 'b', (random() * 300)::int, 'n', i)
                             WHEN i % 10 = 1 THEN bson_build('f', bson_build('a', (random() * 300)::int), 'b', ARRAY[(random() * 300)::int, (random() * 300)::int], 'n', i)
                             WHEN i % 10 = 2 THEN bson_build('f', ARRAY[bson_build('a', (random() * 300)::int)], 'b', (random() * 300)::int, 'n', i)
                             WHEN i % 10 = 3 THEN bson_build('b', 1) ELSE bson_build('f', bson_build('a', (random() * 300)::int), 'b', (random() * 300)::int, 'n', i) END
  FROM generate_series(1, 500) i;
CREATE TABLE edges AS SELECT id, a::int, b::int FROM g, bson_values(doc, 'f.a') a, bson_values(doc, 'b') b;
CREATE INDEX ON edges (a);
ANALYZE edges;
CREATE FUNCTION model(start int, deepest int) RETURNS TABLE (id int, depth int) LANGUAGE sql AS $$
  WITH RECURSIVE r (b, depth) AS (SELECT start, 0 UNION SELECT e.b, r.depth + 1 FROM r JOIN edges e ON e.a = r.b WHERE r.depth < deepest)
  SELECT e.id, min(r.depth) FROM r JOIN edges e ON e.a = r.b GROUP BY e.id $$;
CREATE FUNCTION differing() RETURNS bigint LANGUAGE sql AS $$
  SELECT count(*) FROM generate_series(0, 300, 43) s, generate_series(0, 4) d,
    LATERAL (SELECT count(*) FROM (SELECT * FROM model(s, d)) m FULL JOIN (SELECT key::int AS id, depth FROM graph_lookup('g', s, 'b', 'f.a', d) l) l USING (id, depth) WHERE l.id IS NULL OR m.id IS NULL) x
  WHERE x.count > 0 $$;
CREATE FUNCTION wrong_paths() RETURNS bigint LANGUAGE sql AS $$
  SELECT count(*) FROM graph_lookup('g', ARRAY[5, 6], 'b', 'f.a') l
  WHERE cardinality(path) <> depth + 1 OR path[1]::int NOT IN (5, 6) OR path[depth + 1] <> node
     OR EXISTS (SELECT FROM generate_series(1, depth) i WHERE NOT EXISTS (SELECT FROM edges WHERE a = path[i]::int AND b = path[i + 1]::int)) $$;
CREATE FUNCTION wrong_steps() RETURNS bigint LANGUAGE sql AS $$
  SELECT count(*) FROM generate_series(0, 300, 61) s, generate_series(1, 300, 67) t,
    LATERAL (SELECT min(depth) AS n FROM (WITH RECURSIVE r (b, depth) AS (SELECT s, 0 UNION SELECT e.b, r.depth + 1 FROM r JOIN edges e ON e.a = r.b WHERE r.depth < 30) SELECT * FROM r WHERE b = t) x) m,
    LATERAL (SELECT max(step) AS n, bool_or(step < last AND NOT EXISTS (SELECT FROM edges WHERE id = key::int AND a = node::int AND b = next::int)) AS broken
             FROM (SELECT *, max(step) OVER () AS last, lead(node) OVER (ORDER BY step) AS next FROM graph_shortest_path('g', s, t, 'b', 'f.a')) y) l
  WHERE m.n IS DISTINCT FROM l.n OR l.broken $$;
SELECT is(differing(), 0::bigint, 'without an index');
SELECT is(wrong_paths(), 0::bigint, 'paths');
SELECT is(wrong_steps(), 0::bigint, 'shortest ways');
CREATE INDEX g_gin ON g USING gin (doc bson_ops (paths = 'f.a'));
ANALYZE g;
SET LOCAL enable_seqscan = off;
SELECT is(differing(), 0::bigint, 'with GIN');
SELECT is(wrong_paths(), 0::bigint, 'paths');
SELECT is(wrong_steps(), 0::bigint, 'shortest ways');
CREATE INDEX g_btree ON g ((doc -> 'f.a'));
ANALYZE g;
SELECT is(differing(), 0::bigint, 'with a btree');
SELECT is(wrong_paths(), 0::bigint, 'paths');
SELECT is(wrong_steps(), 0::bigint, 'shortest ways');
RESET enable_seqscan;

-- little memory: rows wait in a file, or are read level by level
DROP INDEX g_gin, g_btree;
UPDATE g SET doc = bson_set(doc, 'filler', repeat(md5(id::text), 20));
SET LOCAL work_mem = '200kB';
SELECT is(differing(), 0::bigint, 'from a file');
SELECT is(wrong_steps(), 0::bigint, 'shortest ways');
SET LOCAL work_mem = '64kB';
SET LOCAL hash_mem_multiplier = 1;
SELECT is((SELECT count(*) FROM (SELECT * FROM model(5, 2)) m FULL JOIN (SELECT key::int AS id, depth FROM graph_lookup('g', 5, 'b', 'f.a', 2) l) l USING (id, depth) WHERE l.id IS NULL OR m.id IS NULL), 0::bigint, 'level by level');
SELECT is((SELECT count(*) FROM graph_lookup('g', 5, 'b', 'f.a', 2)), (SELECT count(*) FROM model(5, 2)), 'each row once');
RESET work_mem;
RESET hash_mem_multiplier;

-- partitions, views, collections and their views
CREATE TABLE p (id int, doc bson, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (250);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (250) TO (1000);
INSERT INTO p SELECT * FROM g;
SELECT is((SELECT count(*) FROM graph_lookup('p', 5, 'b', 'f.a')), (SELECT count(*) FROM model(5, 50)), 'partitions');
CREATE INDEX ON p ((doc -> 'f.a'));
SELECT is((SELECT count(*) FROM graph_lookup('p', 5, 'b', 'f.a')), (SELECT count(*) FROM model(5, 50)), 'with an index');
CREATE VIEW v AS SELECT doc FROM p;
SELECT is((SELECT count(*) FROM graph_lookup('v', 5, 'b', 'f.a')), (SELECT count(*) FROM model(5, 50)), 'a view');
SELECT ok((SELECT bool_and(key IS NULL) FROM graph_lookup('v', 5, 'b', 'f.a')), 'has no keys');
SELECT collection_create('c') \g /dev/null
INSERT INTO c (doc) SELECT bson_build('_id', i, 'next', ARRAY[i + 1, i * 2]) FROM generate_series(1, 1000) i;
ANALYZE c;
SELECT is((SELECT count(*) FROM graph_lookup('c', 1, 'next', '_id')), 1000::bigint, 'a collection, by its key');
SELECT is((SELECT max(step) FROM graph_shortest_path('c', 1, 1000, 'next', '_id')), 14, 'the binary digits of 1000');
CREATE VIEW cv AS SELECT _id, doc FROM c;
SELECT results_eq($$SELECT key::int, depth FROM graph_lookup('cv', 1, 'next', '_id', 1) ORDER BY 1$$, 'VALUES (1, 0), (2, 1)', 'a view of a collection');

-- the rights of the caller, policies, snapshots
CREATE ROLE graph_reader;
GRANT SELECT ON cv TO graph_reader;
CREATE POLICY even ON c USING ((_id::int) % 2 = 0);
ALTER TABLE c ENABLE ROW LEVEL SECURITY;
SET LOCAL ROLE graph_reader;
SELECT throws_ok($$SELECT graph_lookup('c', 1, 'next', '_id')$$, '42501');
SELECT is((SELECT count(*) FROM graph_lookup('cv', 1, 'next', '_id', 1)), 2::bigint, 'what the view shows');
RESET ROLE;
GRANT SELECT ON c TO graph_reader;
SET LOCAL ROLE graph_reader;
SELECT results_eq($$SELECT key::int FROM graph_lookup('c', 2, 'next', '_id', 3) ORDER BY 1$$, 'VALUES (2), (4), (8), (16)', 'rows that a policy hides lead nowhere');
RESET ROLE;
SELECT is((SELECT count(*) FROM c CROSS JOIN LATERAL graph_lookup('c', c._id, 'next', '_id', 0) l WHERE c._id <= 10), 10::bigint, 'called for each row');
SELECT is((SELECT count(*) FROM pg_prepared_statements), 0::bigint, 'nothing is left behind');
SELECT * FROM finish();
ROLLBACK;
