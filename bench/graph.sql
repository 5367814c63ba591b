-- graph_lookup beside WITH RECURSIVE: 100,000 edges between 20,000 nodes (psql variable scale: a percentage), six hops from
-- a node. The other side is asked in two ways that end in circles, CYCLE and UNION, over the same documents and over a
-- plain table of two integers.
\echo
\echo 'graph                                    other ms    ours ms   ratio    bar         spread of the ratio'
DROP TABLE IF EXISTS edges, plain_edges;
SELECT setseed(0.7) \g /dev/null
CREATE TABLE edges AS SELECT i AS id, bson_build('a', floor(random() * 200 * :scale)::int, 'b', floor(random() * 200 * :scale)::int) AS doc FROM generate_series(1, 1000 * :scale) i;
ALTER TABLE edges ADD PRIMARY KEY (id);
CREATE TABLE plain_edges AS SELECT id, (doc -> 'a')::int AS a, (doc -> 'b')::int AS b FROM edges;
CREATE INDEX ON edges ((doc -> 'a'));
CREATE INDEX ON plain_edges (a, b);
CHECKPOINT;
VACUUM ANALYZE edges;
VACUUM ANALYZE plain_edges;

-- both sides read the edges that leave nodes at most five away, which lead to those that are six away
SELECT compare('6 hops, documents, CYCLE', 0.5,
  $$WITH RECURSIVE r (n, depth) AS (SELECT docpatterns.bson_value_from(1), 0 UNION ALL SELECT e.doc -> 'b', r.depth + 1 FROM r JOIN edges e ON e.doc -> 'a' = r.n WHERE r.depth < 6)
      CYCLE n SET is_cycle USING path SELECT count(DISTINCT n) FROM r$$,
  $$SELECT count(*) FROM graph_lookup('edges', 1, 'b', 'a', 5)$$);
SELECT compare('6 hops, two integers, CYCLE', 0.5,
  $$WITH RECURSIVE r (n, depth) AS (SELECT 1, 0 UNION ALL SELECT e.b, r.depth + 1 FROM r JOIN plain_edges e ON e.a = r.n WHERE r.depth < 6)
      CYCLE n SET is_cycle USING path SELECT count(DISTINCT n) FROM r$$,
  $$SELECT count(*) FROM graph_lookup('edges', 1, 'b', 'a', 5)$$);
SELECT compare('6 hops, two integers, UNION, no paths', 'infinity',
  $$WITH RECURSIVE r (n, depth) AS (SELECT 1, 0 UNION SELECT e.b, r.depth + 1 FROM r JOIN plain_edges e ON e.a = r.n WHERE r.depth < 6) SELECT count(DISTINCT n) FROM r$$,
  $$SELECT count(*) FROM graph_lookup('edges', 1, 'b', 'a', 5)$$);
SELECT compare('all that can be reached, UNION', 'infinity',
  $$WITH RECURSIVE r (n) AS (SELECT 1 UNION SELECT e.b FROM r JOIN plain_edges e ON e.a = r.n) SELECT count(*) FROM r JOIN plain_edges e ON e.a = r.n$$,
  $$SELECT count(*) FROM graph_lookup('edges', 1, 'b', 'a')$$);
SELECT compare('shortest path between two nodes, CYCLE', 'infinity',
  $$WITH RECURSIVE r (n, depth) AS (SELECT 1, 0 UNION ALL SELECT e.b, r.depth + 1 FROM r JOIN plain_edges e ON e.a = r.n WHERE r.depth < 6)
      CYCLE n SET is_cycle USING path SELECT path FROM r WHERE n = 2 ORDER BY depth LIMIT 1$$,
  $$SELECT count(*) FROM graph_shortest_path('edges', 1, 2, 'b', 'a', 6)$$);
DROP INDEX edges_expr_idx;
SELECT compare('6 hops without an index, CYCLE', 0.5,
  $$WITH RECURSIVE r (n, depth) AS (SELECT docpatterns.bson_value_from(1), 0 UNION ALL SELECT e.doc -> 'b', r.depth + 1 FROM r JOIN edges e ON e.doc -> 'a' = r.n WHERE r.depth < 6)
      CYCLE n SET is_cycle USING path SELECT count(DISTINCT n) FROM r$$,
  $$SELECT count(*) FROM graph_lookup('edges', 1, 'b', 'a', 5)$$);
CREATE INDEX ON edges USING gin (doc bson_ops (paths = 'a'));
SELECT compare('6 hops with GIN, CYCLE', 'infinity',
  $$WITH RECURSIVE r (n, depth) AS (SELECT 1, 0 UNION ALL SELECT e.b, r.depth + 1 FROM r JOIN plain_edges e ON e.a = r.n WHERE r.depth < 6)
      CYCLE n SET is_cycle USING path SELECT count(DISTINCT n) FROM r$$,
  $$SELECT count(*) FROM graph_lookup('edges', 1, 'b', 'a', 5)$$);
