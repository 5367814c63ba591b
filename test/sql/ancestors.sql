-- Lists of ancestors, in arrays of any type and in documents. Works without any pattern declared.
SELECT tree_is_below('{Swag,Office}'::text[], 'Office') AS office, tree_is_below('{Swag,Office}'::text[], 'Toys') AS toys,
       tree_is_below('{1,2}'::bigint[], 2) AS numbers, tree_is_below(ARRAY[objectid '507f191e810c19729de860ea'], '507f191e810c19729de860ea') AS ids,
       tree_is_below('["Swag", 5]'::bson_value, 5.0) AS "BSON array";

-- an index serves them, because the planner sees the operator
CREATE TABLE nodes (id int PRIMARY KEY, above text[], doc bson);
INSERT INTO nodes SELECT i, ARRAY['root', 'n' || i % 10, 'n' || i % 100], bson_build('name', 'n' || i, 'ancestors', ARRAY['root', 'n' || i % 10, 'n' || i % 100]) FROM generate_series(1, 1000) i;
CREATE INDEX ON nodes USING gin (above);
CREATE INDEX ON nodes USING gin (doc bson_ops (paths = 'ancestors'));
ANALYZE nodes;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT id FROM nodes WHERE tree_is_below(above, 'n55');
EXPLAIN (COSTS OFF) SELECT id FROM nodes WHERE tree_is_below(doc, 'ancestors', 'n55');
RESET enable_seqscan;
SELECT count(*) FROM nodes WHERE tree_is_below(above, 'n55');
SELECT count(*) FROM nodes WHERE tree_is_below(doc, 'ancestors', 'n55');

-- depth, what two nodes have in common, and how far they are from each other; lists may begin with the root or end with it
SELECT tree_depth('{Electronics,Computers}'::text[]), tree_common(ARRAY['r', 'a', 'b'], ARRAY['r', 'a', 'c', 'd']), tree_lca(ARRAY['r', 'a', 'b'], ARRAY['r', 'a', 'c', 'd']),
       tree_distance(ARRAY['r', 'a', 'b'], ARRAY['r', 'a', 'c', 'd']);
SELECT tree_common(ARRAY['b', 'a', 'r'], ARRAY['d', 'c', 'a', 'r']), tree_lca(ARRAY['b', 'a', 'r'], ARRAY['d', 'c', 'a', 'r']),
       tree_distance(ARRAY['b', 'a', 'r'], ARRAY['d', 'c', 'a', 'r']);
SELECT tree_depth('["Electronics", "Computers"]'::bson_value), tree_common('["r", "a"]'::bson_value, '["r", "b"]'), tree_lca('["r", "a"]'::bson_value, '["r", "b"]'),
       tree_distance('["r", "a"]'::bson_value, '["r", "b"]');
SELECT tree_lca('"Office"'::bson_value, '[]');
DROP TABLE nodes;
