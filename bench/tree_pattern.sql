-- What the tree pattern costs beside ltree kept by hand: rows in random order, depth up to about 12, random fan-out.
\echo
\echo 'tree pattern                             base ms    ours ms   ratio    bar'

CREATE EXTENSION IF NOT EXISTS ltree SCHEMA public;
SELECT setseed(0.5) \g /dev/null
CREATE TABLE forest AS
  SELECT i AS id, CASE WHEN i > 1 THEN 1 + floor((i - 1) * random() * random())::int END AS parent FROM generate_series(1, 10000 * :scale) i;
CREATE TABLE forest_documents AS
  SELECT id, parent, bson_build('_id', id, 'parent', parent, 'name', 'Category ' || id) AS doc FROM forest ORDER BY random();
CREATE TABLE forest_links (id int, parent int, doc bson);
CREATE TABLE forest_paths (id int, parent int, doc bson, path ltree);
SELECT collection_create('forest_parent'), collection_create('forest_nodes'), collection_create('forest_search') \g /dev/null
SELECT tree_enable('forest_parent', parent => 'parent'),
       tree_enable('forest_nodes', parent => 'parent', ancestors => 'ancestors', search_index => false),
       tree_enable('forest_search', parent => 'parent', ancestors => 'ancestors') \g /dev/null

-- ltree: the links are loaded, one recursive query makes the paths, the indexes come last
CREATE PROCEDURE load_ltree() LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO forest_links SELECT id, parent, doc FROM forest_documents;
  INSERT INTO forest_paths
    WITH RECURSIVE walk AS (
      SELECT id, parent, doc, id::text::ltree AS path FROM forest_links WHERE parent IS NULL
      UNION ALL SELECT l.id, l.parent, l.doc, w.path || l.id::text FROM walk w JOIN forest_links l ON l.parent = w.id)
    SELECT * FROM walk;
  ALTER TABLE forest_paths ADD PRIMARY KEY (id);
  CREATE INDEX forest_paths_parent ON forest_paths (parent);
  CREATE INDEX forest_paths_path ON forest_paths (path);
END $$;
-- the same into a table that is in use and has its indexes
CREATE TABLE forest_indexed (id int PRIMARY KEY, parent int, doc bson, path ltree);
CREATE INDEX ON forest_indexed (parent);
CREATE INDEX ON forest_indexed (path);
CREATE PROCEDURE load_indexed() LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO forest_links SELECT id, parent, doc FROM forest_documents;
  INSERT INTO forest_indexed
    WITH RECURSIVE walk AS (
      SELECT id, parent, doc, id::text::ltree AS path FROM forest_links WHERE parent IS NULL
      UNION ALL SELECT l.id, l.parent, l.doc, w.path || l.id::text FROM walk w JOIN forest_links l ON l.parent = w.id)
    SELECT * FROM walk;
END $$;
CREATE PROCEDURE unload() LANGUAGE plpgsql AS $$
BEGIN
  TRUNCATE forest_links, forest_paths, forest_indexed, forest_parent, forest_nodes, forest_search;
  ALTER TABLE forest_paths DROP CONSTRAINT IF EXISTS forest_paths_pkey;
  DROP INDEX IF EXISTS forest_paths_parent, forest_paths_path;
END $$;

CREATE FUNCTION load_line(name text, bar float8, target text, by_hand text DEFAULT 'load_ltree') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  base float8[];
  ours float8[];
BEGIN
  IF name NOT LIKE replace(current_setting('bench.only'), '*', '%') THEN RETURN; END IF;
  FOR i IN 1 .. least(3, current_setting('bench.rounds')::int) LOOP
    base := base || cost(format('CALL %I()', by_hand), 1, 'CALL unload()');
    ours := ours || cost(format('INSERT INTO %I (doc) SELECT doc FROM forest_documents', target), 1, 'CALL unload()');
  END LOOP;
  RETURN NEXT (SELECT line(name, percentile_disc(0.5) WITHIN GROUP (ORDER BY b), percentile_disc(0.5) WITHIN GROUP (ORDER BY o), bar,
                           format('%s-%s', round(min(o / b)::numeric, 3), round(max(o / b)::numeric, 3))) FROM unnest(base, ours) t (b, o));
END $$;
SELECT load_line('load nodes, parent only', 1.5, 'forest_parent');
SELECT load_line('load nodes, parent and ancestors', 1.5, 'forest_nodes');
SELECT load_line('the same beside an indexed ltree', 1.3, 'forest_nodes', 'load_indexed');
SELECT load_line('the same with the index for filters', 'infinity', 'forest_search');

CALL load_ltree();
INSERT INTO forest_parent (doc) SELECT doc FROM forest_documents;
INSERT INTO forest_nodes (doc) SELECT doc FROM forest_documents;
INSERT INTO forest_search (doc) SELECT doc FROM forest_documents;
VACUUM ANALYZE forest_paths, forest_nodes, forest_search;

-- a node with about a thousand below it goes from one place to another and back
CREATE TABLE forest_move AS
  SELECT n.id, n.parent AS home, (SELECT t.id FROM forest_paths t WHERE NOT t.path <@ n.path AND t.id <> n.parent AND nlevel(t.path) = nlevel(n.path) ORDER BY t.id LIMIT 1) AS away
  FROM forest_paths n, LATERAL (SELECT count(*) AS below FROM forest_paths d WHERE d.path >= n.path AND d.path < n.path || 'z'::ltree) c
  WHERE n.id BETWEEN 2 AND 3000 ORDER BY abs(c.below - 1000) LIMIT 1;
CREATE FUNCTION move_ltree() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  m record;
  old ltree;
  target record;
BEGIN
  SELECT * INTO m FROM forest_move;
  SELECT path INTO old FROM forest_paths WHERE id = m.id;
  SELECT p.id, p.path INTO target FROM forest_paths n, forest_paths p WHERE n.id = m.id AND p.id = CASE WHEN n.parent = m.home THEN m.away ELSE m.home END;
  UPDATE forest_paths SET parent = target.id WHERE id = m.id;
  UPDATE forest_paths SET path = target.path || subpath(path, nlevel(old) - 1) WHERE path >= old AND path < old || 'z'::ltree;
END $$;
SELECT compare('move a subtree of about 1,000', 1.5, 'SELECT move_ltree()',
  $$UPDATE forest_nodes n SET doc = bson_set(doc, 'parent', CASE WHEN (doc -> 'parent')::int = m.home THEN m.away ELSE m.home END) FROM forest_move m WHERE n._id = m.id$$);
SELECT compare('the same with the index for filters', 'infinity', 'SELECT move_ltree()',
  $$UPDATE forest_search n SET doc = bson_set(doc, 'parent', CASE WHEN (doc -> 'parent')::int = m.home THEN m.away ELSE m.home END) FROM forest_move m WHERE n._id = m.id$$);
SELECT compare('insert a leaf', 'infinity', $$INSERT INTO forest_paths SELECT 1 + (SELECT max(id) FROM forest_paths), 77, NULL, path || (1 + (SELECT max(id) FROM forest_paths))::text FROM forest_paths WHERE id = 77$$,
  $$INSERT INTO forest_nodes (doc) SELECT bson_build('parent', 77, 'name', 'New')$$);
SELECT line('nodes whose forms are not true', 1, 1 + count(*), 1) FROM (SELECT * FROM pattern_check('forest_nodes') UNION ALL SELECT * FROM pattern_check('forest_search')) v;
