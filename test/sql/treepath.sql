-- The type treepath: ids from a root to a node. One btree index answers what lies below a node, above it, and in which order.
CREATE TABLE nodes (path treepath PRIMARY KEY);
INSERT INTO nodes
SELECT string_to_array(p, '/')::treepath
FROM unnest('{Swag/Office/Books,Swag,Swag/Gifts,Toys,Swag/Office,Swag/Office 2,Swag/Office/Electronic}'::text[]) p;

-- depth-first order: a node, then all below it
SELECT repeat('  ', treepath_depth(path)) || (treepath_id(path) #>> '{}') AS tree FROM nodes ORDER BY path;

-- below and above a node, itself included
SELECT path FROM nodes WHERE path <@ '["Swag", "Office"]' ORDER BY path;
SELECT path FROM nodes WHERE path @> '["Swag", "Office", "Books"]' ORDER BY path;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT path FROM nodes WHERE path <@ '["Swag", "Office"]' ORDER BY path;
EXPLAIN (COSTS OFF) SELECT path FROM nodes WHERE path @> '["Swag", "Office", "Books"]';
-- also for each row of a join
EXPLAIN (COSTS OFF) SELECT a.path, count(*) FROM nodes a JOIN nodes b ON b.path <@ a.path GROUP BY a.path;
RESET enable_bitmapscan;

-- children: below the node and one level deeper
CREATE INDEX nodes_depth ON nodes (treepath_depth(path), path);
EXPLAIN (COSTS OFF) SELECT path FROM nodes WHERE treepath_depth(path) = 2 AND path <@ '["Swag", "Office"]';
SELECT path FROM nodes WHERE treepath_depth(path) = 2 AND path <@ '["Swag", "Office"]';

-- a node anywhere on the path, by a GIN index
CREATE INDEX nodes_gin ON nodes USING gin (path);
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF) SELECT path FROM nodes WHERE path ? 'Office';
SELECT path FROM nodes WHERE path ? 'Office' ORDER BY path;
SELECT path FROM nodes WHERE path ?| '{Gifts,Toys}'::text[] ORDER BY path;
SELECT path FROM nodes WHERE path ?& '{Swag,Books}'::text[];
RESET enable_indexscan;
RESET enable_indexonlyscan;
RESET enable_seqscan;

-- taking paths apart and putting them together
SELECT treepath_parent('[1, 2, 3]'), treepath_root('[1, 2, 3]'), treepath_subpath('[1, 2, 3, 4]', 1, 2), treepath_subpath('[1, 2, 3, 4]', -1);
SELECT treepath_lca('[1, 2, 3]', '[1, 2, 4, 5]'), treepath_distance('[1, 2, 3]', '[1, 2, 4, 5]'), treepath_ancestors('["a", "b", "c"]');
SELECT '["a"]'::treepath || 'b'::text || 5 || '["c"]'::treepath AS together;
SELECT treepath_from_text('.Swag.Office'), treepath_to_text('["Swag", 7]', '/'), ARRAY[1, 2]::treepath::int8[], '{Swag,Office}'::text[]::treepath::bson_value;

-- ids may be of any type that a document's _id may have
SELECT '[1, "a", ObjectId("507f191e810c19729de860ea"), ISODate("2019-01-31"), true, 1.5, NumberDecimal("0.10")]'::treepath;
SELECT '[5]'::treepath = '[5.0]'::treepath AS "equal numbers are one id";
SELECT '[{a: 1}]'::treepath;
SELECT 'Swag.Office'::treepath;
DROP TABLE nodes;
