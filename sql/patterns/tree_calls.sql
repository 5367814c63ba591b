-- Calls for trees: what is above, below and beside a node, moving, copying and deleting subtrees, subtrees as nested documents
-- and as pictures (src/patterns/tree/). They read and write as the caller; key is a node's id, the value of node_id.

CREATE FUNCTION tree_ancestors(rel regclass, key "any", name text DEFAULT NULL,
    OUT node bson_value, OUT depth int, OUT path treepath, OUT key bson_value, OUT doc bson) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_tree_ancestors_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS 10;
COMMENT ON FUNCTION tree_ancestors(regclass, "any", text) IS
  'the nodes above a node, root first; one look-up if ancestors are kept, otherwise one for each level; columns: its id, the number of ids above it, its path from the root, the row''s key, the document; error P0002 if there is no such node; needs SELECT';
CREATE FUNCTION tree_descendants(rel regclass, key "any", max_depth int DEFAULT NULL, name text DEFAULT NULL,
    OUT node bson_value, OUT depth int, OUT path treepath, OUT key bson_value, OUT doc bson) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_tree_descendants_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS 1000;
COMMENT ON FUNCTION tree_descendants(regclass, "any", int, text) IS
  'the nodes below a node, depth first, siblings in their order; max_depth: so many levels; key NULL: all nodes; one range of an index if ancestors are kept and siblings are in the order of their ids (integers first), otherwise a look-up for each level; columns: its id, the number of ids above it, its path from the root, the row''s key, the document; error P0002 if there is no such node; needs SELECT';
CREATE FUNCTION tree_children(rel regclass, key "any", name text DEFAULT NULL,
    OUT node bson_value, OUT depth int, OUT path treepath, OUT key bson_value, OUT doc bson) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_tree_children_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS 10;
COMMENT ON FUNCTION tree_children(regclass, "any", text) IS
  'the nodes right below a node, in their order; key NULL: the roots; columns: its id, the number of ids above it, its path from the root, the row''s key, the document; error P0002 if there is no such node; needs SELECT';
CREATE FUNCTION tree_siblings(rel regclass, key "any", name text DEFAULT NULL,
    OUT node bson_value, OUT depth int, OUT path treepath, OUT key bson_value, OUT doc bson) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_tree_siblings_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS 10;
COMMENT ON FUNCTION tree_siblings(regclass, "any", text) IS
  'the other nodes right below the parent of a node, or the other roots, in their order; columns: its id, the number of ids above it, its path from the root, the row''s key, the document; error P0002 if there is no such node; needs SELECT';
CREATE FUNCTION tree_root(rel regclass, key "any", name text DEFAULT NULL,
    OUT node bson_value, OUT depth int, OUT path treepath, OUT key bson_value, OUT doc bson) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_tree_root_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS 1;
COMMENT ON FUNCTION tree_root(regclass, "any", text) IS
  'the root of the tree that a node is in; columns: its id, the number of ids above it, its path from the root, the row''s key, the document; error P0002 if there is no such node; needs SELECT';
CREATE FUNCTION tree_lca(rel regclass, a "any", b "any", name text DEFAULT NULL,
    OUT node bson_value, OUT depth int, OUT path treepath, OUT key bson_value, OUT doc bson) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_tree_lca_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS 1;
COMMENT ON FUNCTION tree_lca(regclass, "any", "any", text) IS
  'the lowest node that both nodes are or lie below; no row if they are in two trees; columns: its id, the number of ids above it, its path from the root, the row''s key, the document; error P0002 if there is no such node; needs SELECT';
CREATE FUNCTION tree_subtree_count(rel regclass, key "any", name text DEFAULT NULL) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_tree_subtree_count_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;
COMMENT ON FUNCTION tree_subtree_count(regclass, "any", text) IS
  'the number of nodes in the subtree of a node, itself included; key NULL: all nodes; one range of an index if ancestors are kept; error P0002 if there is no such node; needs SELECT';

-- Changing trees

CREATE FUNCTION tree_move(rel regclass, key "any", parent "any", name text DEFAULT NULL) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_tree_move_call' LANGUAGE C VOLATILE COST 1000;
COMMENT ON FUNCTION tree_move(regclass, "any", "any", text) IS
  'hangs a node, and with it all that is below, under another parent (NULL: makes it a root): writes the form that is the truth, as an UPDATE by hand would, and the triggers do the rest; error P0002 if there is no such node or parent, 23514 for a place below itself, 40001 if a row of them cannot be written; needs SELECT and UPDATE; locks as an UPDATE of the node';

CREATE FUNCTION tree_copy(rel regclass, key "any", parent "any", suffix text DEFAULT NULL, name text DEFAULT NULL,
    OUT source bson_value, OUT node bson_value) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_tree_copy_call' LANGUAGE C VOLATILE COST 1000 ROWS 100;
COMMENT ON FUNCTION tree_copy(regclass, "any", "any", text, text) IS
  'copies a node and all that is below under a parent (NULL: as a root), in one INSERT; the copies have new ObjectIds for ids, or the old strings with a suffix; returns what each id became, depth first; where node_id is another field, _id is left out, so that a collection gives new ones; error P0002 if there is no such node or parent, 22023 for a suffix on an id that is no string; needs SELECT and INSERT';

CREATE FUNCTION tree_delete(rel regclass, key "any", name text DEFAULT NULL) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_tree_delete_call' LANGUAGE C VOLATILE COST 1000;
COMMENT ON FUNCTION tree_delete(regclass, "any", text) IS
  'deletes a node and all that is below, in one DELETE, whatever on_delete says; returns how many were deleted; error P0002 if there is no such node; needs SELECT and DELETE; waits for who is moving nodes of the tree; locks as DELETE';

-- Other shapes

CREATE FUNCTION tree_nest(rel regclass, key "any", max_depth int DEFAULT NULL, field text DEFAULT NULL, name text DEFAULT NULL) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_tree_nest_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;
COMMENT ON FUNCTION tree_nest(regclass, "any", int, text, text) IS
  'a subtree as one document: the children of each node, in their order, in an array in field (default: the name of the array of children, or "children"), without the fields that the nesting stands for; error P0002 if there is no such node, 54000 for more than 49 levels or a document that is too large; needs SELECT';

CREATE FUNCTION tree_unnest(rel regclass, nested bson, parent "any" DEFAULT NULL::text, field text DEFAULT NULL, name text DEFAULT NULL) RETURNS SETOF bson
  AS 'MODULE_PATHNAME', 'dp_tree_unnest_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 100 ROWS 100;
COMMENT ON FUNCTION tree_unnest(regclass, bson, "any", text, text) IS
  'the documents of a nested one, depth first, each with the form that is the truth: INSERT INTO categories (doc) SELECT tree_unnest(''categories'', nested); parent: what the outermost hangs on; error 23502 for a document without the id, 22023 for what is no array of documents in field, 0A000 for a parent where children are the truth; reads no table';

CREATE FUNCTION tree_render(rel regclass, key "any" DEFAULT NULL::text, max_depth int DEFAULT NULL, label text DEFAULT NULL, name text DEFAULT NULL) RETURNS SETOF text
  AS 'MODULE_PATHNAME', 'dp_tree_render_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS 100;
COMMENT ON FUNCTION tree_render(regclass, "any", int, text, text) IS
  'a picture of a subtree, or of all trees: a line for each node, with its id or what the path label leads to; error P0002 if there is no such node; needs SELECT';

CREATE FUNCTION tree_stats(rel regclass, name text DEFAULT NULL,
    OUT depth int, OUT nodes bigint, OUT leaves bigint, OUT children_min bigint, OUT children_avg numeric, OUT children_median float8, OUT children_max bigint) RETURNS SETOF record
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED COST 1000 ROWS 10 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  decl text := (SELECT d.name FROM docpatterns._pattern_declarations(rel) AS d
                WHERE d.pattern OPERATOR(pg_catalog.=) 'tree' AND (tree_stats.name IS NULL OR d.name OPERATOR(pg_catalog.=) tree_stats.name) LIMIT 1);
  expressions text[];
BEGIN
  IF rel IS NULL THEN
    RAISE EXCEPTION 'the table must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF decl IS NULL THEN
    RAISE EXCEPTION 'table % has no pattern "tree"%', rel, CASE WHEN tree_stats.name IS NOT NULL THEN format(' named "%s"', tree_stats.name) ELSE '' END USING ERRCODE = 'undefined_object';
  END IF;
  expressions := docpatterns._tree_expressions(rel, 'tree', decl, 't');
  RETURN QUERY EXECUTE pg_catalog.format(
    'WITH RECURSIVE n AS MATERIALIZED (SELECT %1$s AS id, CASE WHEN %2$s OPERATOR(@extschema@.<>) ''null''::@extschema@.bson_value THEN %2$s END AS parent FROM %3$s AS t WHERE %1$s IS NOT NULL), '
    'kids AS (SELECT n.parent AS id, pg_catalog.count(*) AS k FROM n WHERE n.parent IS NOT NULL GROUP BY n.parent), '
    'd AS (SELECT n.id, 0 AS depth FROM n WHERE n.parent IS NULL UNION ALL SELECT n.id, d.depth OPERATOR(pg_catalog.+) 1 FROM d JOIN n ON n.parent OPERATOR(@extschema@.=) d.id) '
    'SELECT d.depth, pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE kids.k IS NULL), pg_catalog.min(kids.k), pg_catalog.round(pg_catalog.avg(kids.k), 2), '
    'pg_catalog.percentile_cont(0.5) WITHIN GROUP (ORDER BY kids.k), pg_catalog.max(kids.k) '
    'FROM d LEFT JOIN kids ON kids.id OPERATOR(@extschema@.=) d.id GROUP BY d.depth ORDER BY d.depth', expressions[1], expressions[2],
    (SELECT format('%I.%I', s.nspname, c.relname) FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace WHERE c.oid = rel));
END
$$;
COMMENT ON FUNCTION tree_stats(regclass, text) IS
  'the shape of the trees of a table: for each depth the nodes, those without children, and the least, the mean, the median and the most children of the others; reads the whole table; errors 22004 for NULL, 42704 if it is no tree; needs SELECT';
