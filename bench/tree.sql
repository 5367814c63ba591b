-- Trees: treepath beside ltree, arrays of ancestors (GIN) and a parent column, each as good as it can be asked.
--   1,000,000 nodes (psql variable scale: a percentage), depth up to 12, random fan-out, rows in random order, integer ids
--                 as they were given when the nodes were made, parents before children
--   adjacent      id, parent, payload; btrees on id and parent
--   labelled      path ltree; btree
--   listed        the ancestors and the node as int[]; GIN
--   pathed        path treepath; btree
--   documents     the same as adjacent in documents; a btree on (doc -> 'parent'), as the tree pattern makes it
-- Rows carry 100 bytes beside. Questions are asked of 20 nodes of the size that is asked for, prepared once; "best" is the
-- fastest of the others, found by a first run. Needs the extension ltree.
\echo
\echo 'tree                                     other ms    ours ms   ratio    bar         spread of the ratio'
CREATE EXTENSION IF NOT EXISTS ltree;
DROP TABLE IF EXISTS shape, adjacent, labelled, listed, pathed, documents, pairs, asked;
SELECT setseed(0.6) \g /dev/null

-- level by level, parents drawn from the level above
CREATE TABLE shape (n int, depth int, parent int);
DO $$
DECLARE
  sizes float8[] := '{0.00001,0.0001,0.0005,0.002,0.008,0.025,0.06,0.12,0.2,0.25,0.2,0.1,0.03439}';
  total int := 10000 * current_setting('bench.scale')::int;
  above int[] := '{0,0}';
  first int := 1;
  size int;
BEGIN
  FOR d IN 0 .. 12 LOOP
    size := greatest(1, (total * sizes[d + 1])::int);
    INSERT INTO shape SELECT n, d, CASE WHEN d > 0 THEN above[1] + floor(random() * random() * above[2])::int END FROM generate_series(first, first + size - 1) n;
    above := ARRAY[first, size];
    first := first + size;
  END LOOP;
END $$;
CREATE TABLE adjacent AS SELECT n AS id, parent, repeat(md5(n::text), 3) AS payload FROM shape ORDER BY random();
ALTER TABLE adjacent ADD PRIMARY KEY (id);
CREATE TABLE listed AS WITH RECURSIVE t AS (
    SELECT id, ARRAY[id] AS path FROM adjacent WHERE parent IS NULL UNION ALL SELECT a.id, t.path || a.id FROM t JOIN adjacent a ON a.parent = t.id)
  SELECT a.id, t.path, a.payload FROM adjacent a JOIN t USING (id) ORDER BY random();
CREATE TABLE labelled AS SELECT id, array_to_string(path, '.')::ltree AS path, payload FROM listed;
CREATE TABLE pathed AS SELECT id, path::treepath AS path, payload FROM listed;
ALTER TABLE listed ADD PRIMARY KEY (id);
ALTER TABLE labelled ADD PRIMARY KEY (id);
ALTER TABLE pathed ADD PRIMARY KEY (id);
CREATE INDEX ON adjacent (parent);
CREATE INDEX labelled_path ON labelled (path);
CREATE INDEX listed_path ON listed USING gin (path);
CREATE INDEX pathed_path ON pathed (path);
CREATE TABLE documents AS SELECT bson_build('_id', id, 'parent', parent, 'payload', payload) AS doc FROM adjacent;
CREATE INDEX ON documents ((doc -> 'parent'));
-- commits are flushed late: until then VACUUM does not mark pages as visible to all
CHECKPOINT;
VACUUM ANALYZE adjacent;
VACUUM ANALYZE labelled;
VACUUM ANALYZE listed;
VACUUM ANALYZE pathed;
VACUUM ANALYZE documents;
SELECT format('nodes  %s, depth up to %s', count(*), max(depth)) FROM shape;

-- A function that asks a question, in which x is an element of the array that it gets, once for each; plans are kept.
CREATE OR REPLACE FUNCTION question(name text, argtype text, query text) RETURNS void LANGUAGE plpgsql AS $q$
BEGIN
  EXECUTE format('CREATE OR REPLACE FUNCTION %I(xs %s[]) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS '
                 '$f$ DECLARE x %s; r record; BEGIN FOREACH x IN ARRAY xs LOOP %s INTO r %s; END LOOP; END $f$',
                 name, argtype, argtype, split_part(query, ' FROM ', 1), substr(query, strpos(query, ' FROM ')));
END $q$;
-- As compare, with the fastest of several others.
CREATE OR REPLACE FUNCTION compare_best(name text, bar float8, bases text[], ours text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  best text;
BEGIN
  IF name NOT LIKE replace(current_setting('bench.only'), '*', '%') THEN RETURN; END IF;
  PERFORM cost(b, 1) FROM unnest(bases) b;
  SELECT b INTO best FROM unnest(bases) b ORDER BY cost(b, 5) LIMIT 1;
  RETURN QUERY SELECT split_part(c, E'\n', 1) || '  ' || substring(best FROM '(\w+)\(') || E'\n' || split_part(c, E'\n', 2) FROM compare(name, bar, best, ours) c;
END $$;
-- The nodes that are asked about, as an array of each form: twenty with subtrees of about 1,000 nodes, and so on.
CREATE TABLE asked (name text, ids int[], vals bson_value[], ltrees ltree[], paths treepath[]);
CREATE OR REPLACE FUNCTION about(which text, nodes int[]) RETURNS void LANGUAGE sql AS $$
  INSERT INTO asked SELECT which, array_agg(n.id), array_agg(docpatterns.bson_value_from(n.id)), array_agg(l.path), array_agg(p.path)
  FROM unnest(nodes) n (id) JOIN labelled l USING (id) JOIN pathed p USING (id) $$;
WITH sizes AS (SELECT a AS id, count(*) AS size FROM listed, unnest(path) a GROUP BY a)
SELECT about('thousand', ARRAY(SELECT id FROM sizes ORDER BY abs(size - 1000), id LIMIT 20)),
       about('large', ARRAY(SELECT id FROM sizes ORDER BY abs(size - 970 * :scale), id LIMIT 1)),
       about('leaves', ARRAY(SELECT id FROM listed WHERE cardinality(path) = 11 ORDER BY id LIMIT 500)),
       about('parents', ARRAY(SELECT parent FROM adjacent GROUP BY parent HAVING count(*) BETWEEN 3 AND 12 ORDER BY parent LIMIT 500)) \g /dev/null

SELECT question('rows_adjacent', 'int', $$SELECT sum(length(payload)) FROM (WITH RECURSIVE t AS (SELECT id, payload FROM adjacent WHERE id = x UNION ALL SELECT a.id, a.payload FROM t JOIN adjacent a ON a.parent = t.id) SELECT payload FROM t) s$$),
       question('rows_ltree', 'ltree', $$SELECT sum(length(payload)) FROM labelled WHERE path >= x AND path < x || 'z'::ltree$$),
       question('rows_gin', 'int', $$SELECT sum(length(payload)) FROM listed WHERE path @> ARRAY[x]$$),
       question('rows_treepath', 'treepath', $$SELECT sum(length(payload)) FROM pathed WHERE path <@ x$$),
       question('keys_ltree_index', 'ltree', $$SELECT count(subpath(path, -1)) FROM labelled WHERE path >= x AND path < x || 'z'::ltree$$),
       question('keys_ltree', 'ltree', $$SELECT count(id) FROM labelled WHERE path >= x AND path < x || 'z'::ltree$$),
       question('keys_treepath', 'treepath', $$SELECT count(treepath_id(path)) FROM pathed WHERE path <@ x$$),
       question('count_ltree', 'ltree', $$SELECT count(*) FROM labelled WHERE path >= x AND path < x || 'z'::ltree$$),
       question('count_gin', 'int', $$SELECT count(*) FROM listed WHERE path @> ARRAY[x]$$),
       question('count_treepath', 'treepath', $$SELECT count(*) FROM pathed WHERE path <@ x$$),
       question('above_adjacent', 'int', $$SELECT count(payload) FROM (WITH RECURSIVE t AS (SELECT id, parent, payload FROM adjacent WHERE id = x UNION ALL SELECT a.id, a.parent, a.payload FROM t JOIN adjacent a ON a.id = t.parent) SELECT payload FROM t) s$$),
       question('above_array', 'int', $$SELECT count(a.payload) FROM listed l JOIN listed a ON a.id = ANY (l.path) WHERE l.id = x$$),
       question('above_ltree', 'int', $$SELECT count(a.payload) FROM labelled l JOIN labelled a ON a.path = ANY (ARRAY(SELECT subpath(l.path, 0, i) FROM generate_series(1, nlevel(l.path)) i)) WHERE l.id = x$$),
       question('above_treepath', 'int', $$SELECT count(a.payload) FROM pathed l JOIN pathed a ON a.path @> l.path WHERE l.id = x$$),
       question('children_adjacent', 'int', $$SELECT count(payload) FROM adjacent WHERE parent = x$$),
       question('children_documents', 'bson_value', $$SELECT count(doc) FROM documents WHERE doc -> 'parent' = x$$),
       question('order_ltree', 'ltree', $$SELECT sum(length(payload)) FROM (SELECT payload FROM labelled WHERE path >= x AND path < x || 'z'::ltree ORDER BY path OFFSET 0) s$$),
       question('order_ltree_sub', 'ltree', $$SELECT sum(length(payload)) FROM (SELECT payload FROM labelled WHERE path <@ x ORDER BY path OFFSET 0) s$$),
       question('order_treepath', 'treepath', $$SELECT sum(length(payload)) FROM (SELECT payload FROM pathed WHERE path <@ x ORDER BY path OFFSET 0) s$$)
  \g /dev/null

-- bytes of all paths and the index that answers descendants
SELECT format('%s %s %s %s %s  %s  MB, %s and %s MB of them indexes', rpad('path column and index, MB', 40), lpad(round(base / 1e6, 1)::text, 9), lpad(round(ours / 1e6, 1)::text, 9),
              lpad(round((ours / base)::numeric, 3)::text, 7), lpad('0.4', 6), CASE WHEN ours / base > 0.4 THEN 'ABOVE' ELSE '     ' END, round(base_index / 1e6, 1), round(our_index / 1e6, 1))
FROM (SELECT sum(pg_column_size(path)) + pg_relation_size('labelled_path')::numeric AS base, pg_relation_size('labelled_path')::numeric AS base_index FROM labelled) b,
     (SELECT sum(pg_column_size(path)) + pg_relation_size('pathed_path')::numeric AS ours, pg_relation_size('pathed_path')::numeric AS our_index FROM pathed) o
WHERE 'path column and index' LIKE replace(current_setting('bench.only'), '*', '%');

SELECT compare_best('1,000 descendants, whole rows, x 20', 0.9, ARRAY['SELECT rows_ltree(ltrees) FROM asked WHERE name = ''thousand''', 'SELECT rows_gin(ids) FROM asked WHERE name = ''thousand''', 'SELECT rows_adjacent(ids) FROM asked WHERE name = ''thousand'''],
                    'SELECT rows_treepath(paths) FROM asked WHERE name = ''thousand''');
SELECT compare('1,000 descendants, keys only', 0.3, 'SELECT keys_ltree(ltrees) FROM asked WHERE name = ''thousand''', 'SELECT keys_treepath(paths) FROM asked WHERE name = ''thousand''');
SELECT compare('the same, both from the index', 'infinity', 'SELECT keys_ltree_index(ltrees) FROM asked WHERE name = ''thousand''', 'SELECT keys_treepath(paths) FROM asked WHERE name = ''thousand''');
SELECT compare_best('1,000 descendants, depth first', 0.7, ARRAY['SELECT order_ltree(ltrees) FROM asked WHERE name = ''thousand''', 'SELECT order_ltree_sub(ltrees) FROM asked WHERE name = ''thousand'''], 'SELECT order_treepath(paths) FROM asked WHERE name = ''thousand''');
SELECT compare_best('count of 97,000 descendants', 0.7, ARRAY['SELECT count_ltree(ltrees) FROM asked WHERE name = ''large''', 'SELECT count_gin(ids) FROM asked WHERE name = ''large'''], 'SELECT count_treepath(paths) FROM asked WHERE name = ''large''');
SELECT compare_best('97,000 descendants, depth first', 0.7, ARRAY['SELECT order_ltree(ltrees) FROM asked WHERE name = ''large''', 'SELECT order_ltree_sub(ltrees) FROM asked WHERE name = ''large'''], 'SELECT order_treepath(paths) FROM asked WHERE name = ''large''');
SELECT compare_best('ancestors of a leaf as rows, x 500', 1.0, ARRAY['SELECT above_array(ids) FROM asked WHERE name = ''leaves''', 'SELECT above_ltree(ids) FROM asked WHERE name = ''leaves''', 'SELECT above_adjacent(ids) FROM asked WHERE name = ''leaves'''],
                    'SELECT above_treepath(ids) FROM asked WHERE name = ''leaves''');
SELECT compare('direct children, x 500', 1.1, 'SELECT children_adjacent(ids) FROM asked WHERE name = ''parents''', 'SELECT children_documents(vals) FROM asked WHERE name = ''parents''');

-- pairs of a node and one that is above it or elsewhere
CREATE TABLE pairs AS
  SELECT a.path::text[]::text AS t, array_to_string(a.path, '.')::ltree AS la, array_to_string(b.path, '.')::ltree AS lb, a.path::treepath AS a, b.path::treepath AS b
  FROM (SELECT row_number() OVER () AS n, path FROM listed LIMIT 100000) a JOIN (SELECT row_number() OVER () AS n, path[1 : 1 + (path[1] + cardinality(path)) % 8] AS path FROM (SELECT path FROM listed ORDER BY id LIMIT 50000) x) b ON b.n = (a.n + 1) / 2;
ALTER TABLE pairs DROP t;
INSERT INTO pairs SELECT a.la, subpath(a.la, 0, 1 + nlevel(a.la) / 2), a.a, treepath_subpath(a.a, 0, 1 + nlevel(a.la) / 2) FROM pairs a;
VACUUM ANALYZE pairs;
SELECT compare('is x below y, 200,000 pairs', 0.7, 'SELECT count(*) FROM pairs WHERE la <@ lb', 'SELECT count(*) FROM pairs WHERE a <@ b');
SELECT compare('the same less reading the rows', 'infinity', 'SELECT count(la <@ lb) FROM pairs', 'SELECT count(a <@ b) FROM pairs');

SELECT compare('build the index', 'infinity', 'CREATE INDEX bench_labelled ON labelled (path)', 'CREATE INDEX bench_pathed ON pathed (path)', 'DROP INDEX IF EXISTS bench_labelled, bench_pathed');
