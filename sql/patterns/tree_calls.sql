-- Calls for trees: ancestors, descendants and siblings of a node; moving, copying and deleting
-- subtrees; subtrees as nested documents and as text (src/patterns/tree/). They read and write as
-- the caller; key is a node's id, the value of node_id.

CREATE FUNCTION tree_ancestors(rel regclass, key anycompatible, name text DEFAULT NULL,
    OUT node bson_value, OUT depth int, OUT path treepath, OUT key bson_value, OUT doc bson) RETURNS
    SETOF record
  AS 'MODULE_PATHNAME', 'dp_tree_ancestors_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000
    ROWS 10;
COMMENT ON FUNCTION tree_ancestors(regclass, anycompatible, text) IS
  'The nodes above a node, root first: ID, number of IDs above it, path from the root, primary key '
  'of the row, document. One look-up if ancestors are kept, otherwise one for each level. Needs '
  'SELECT';
CREATE FUNCTION tree_descendants(rel regclass, key anycompatible, max_depth int DEFAULT NULL,
  name text DEFAULT NULL,
    OUT node bson_value, OUT depth int, OUT path treepath, OUT key bson_value, OUT doc bson) RETURNS
    SETOF record
  AS 'MODULE_PATHNAME', 'dp_tree_descendants_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000
    ROWS 1000;
COMMENT ON FUNCTION tree_descendants(regclass, anycompatible, int, text) IS
  'The nodes below a node, depth first, siblings in their order (IDs: integers first), at most '
  'max_depth levels; key NULL: all nodes. Columns as tree_ancestors. Needs SELECT';
CREATE FUNCTION tree_children(rel regclass, key anycompatible, name text DEFAULT NULL,
    OUT node bson_value, OUT depth int, OUT path treepath, OUT key bson_value, OUT doc bson) RETURNS
    SETOF record
  AS 'MODULE_PATHNAME', 'dp_tree_children_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS
    10;
COMMENT ON FUNCTION tree_children(regclass, anycompatible, text) IS
  'The children of a node in their order; key NULL: the roots. Columns as tree_ancestors. Needs '
  'SELECT';
CREATE FUNCTION tree_siblings(rel regclass, key anycompatible, name text DEFAULT NULL,
    OUT node bson_value, OUT depth int, OUT path treepath, OUT key bson_value, OUT doc bson) RETURNS
    SETOF record
  AS 'MODULE_PATHNAME', 'dp_tree_siblings_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS
    10;
COMMENT ON FUNCTION tree_siblings(regclass, anycompatible, text) IS
  'The other children of the node''s parent, or the other roots, in their order. Columns as '
  'tree_ancestors. Needs SELECT';
CREATE FUNCTION tree_root(rel regclass, key anycompatible, name text DEFAULT NULL,
    OUT node bson_value, OUT depth int, OUT path treepath, OUT key bson_value, OUT doc bson) RETURNS
    SETOF record
  AS 'MODULE_PATHNAME', 'dp_tree_root_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS 1;
COMMENT ON FUNCTION tree_root(regclass, anycompatible, text) IS
  'The root of the node''s tree. Columns as tree_ancestors. Needs SELECT';
CREATE FUNCTION tree_lca(rel regclass, a anycompatible, b "any", name text DEFAULT NULL,
    OUT node bson_value, OUT depth int, OUT path treepath, OUT key bson_value, OUT doc bson) RETURNS
    SETOF record
  AS 'MODULE_PATHNAME', 'dp_tree_lca_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS 1;
COMMENT ON FUNCTION tree_lca(regclass, anycompatible, "any", text) IS
  'The lowest node that both nodes are or are below; no row if they are in two trees. Columns as '
  'tree_ancestors. Needs SELECT';
CREATE FUNCTION tree_subtree_count(rel regclass, key anycompatible, name text DEFAULT NULL)
  RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_tree_subtree_count_call' LANGUAGE C STABLE PARALLEL RESTRICTED
    COST 1000;
COMMENT ON FUNCTION tree_subtree_count(regclass, anycompatible, text) IS
  'The number of nodes in a subtree, the node included; key NULL: all nodes. One range of an index '
  'if ancestors are kept. Needs SELECT';

-- Changing trees

CREATE FUNCTION tree_move(rel regclass, key anycompatible, parent "any", name text DEFAULT NULL)
  RETURNS void
  AS 'MODULE_PATHNAME', 'dp_tree_move_call' LANGUAGE C VOLATILE COST 1000;
COMMENT ON FUNCTION tree_move(regclass, anycompatible, "any", text) IS
  'Moves a node and its subtree below another parent (NULL: makes it a root) by an UPDATE of the '
  'truth. Needs SELECT and UPDATE; locks as that UPDATE. Errors: P0002 also for the parent, 23514 '
  'a place below itself, 40001 the row of the node, or of a parent if children are the truth, '
  'keeps changing, or a trigger or policy prevents its write';

CREATE FUNCTION tree_copy(rel regclass, key anycompatible, parent "any", suffix text DEFAULT NULL,
  name text DEFAULT NULL,
    OUT source bson_value, OUT node bson_value) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_tree_copy_call' LANGUAGE C VOLATILE COST 1000 ROWS 100;
COMMENT ON FUNCTION tree_copy(regclass, anycompatible, "any", text, text) IS
  'Copies a subtree below a parent (NULL: as a root) by one INSERT, with new ObjectIds as IDs, or '
  'the old strings with a suffix. Returns the new ID of each, depth first. If node_id is another '
  'field, _id is omitted, so a collection generates it. Needs SELECT and INSERT. Errors: P0002 '
  'also for the parent, 22023 a suffix on an ID that is not a string, 40001 a parent that cannot '
  'be written, where children are the truth';

CREATE FUNCTION tree_delete(rel regclass, key anycompatible, name text DEFAULT NULL) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_tree_delete_call' LANGUAGE C VOLATILE COST 1000;
COMMENT ON FUNCTION tree_delete(regclass, anycompatible, text) IS
  'Deletes a subtree by one DELETE, whatever on_delete says, and returns the number of nodes. '
  'Needs SELECT and DELETE; waits for movers of the tree, locks as DELETE';

-- Other shapes

CREATE FUNCTION tree_nest(rel regclass, key anycompatible, max_depth int DEFAULT NULL,
  field text DEFAULT NULL, name text DEFAULT NULL) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_tree_nest_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;
COMMENT ON FUNCTION tree_nest(regclass, anycompatible, int, text, text) IS
  'A subtree as one document: children in their order in the array field (default: the field of '
  'children, or "children"), without the fields that the nesting replaces. Needs SELECT. Error: '
  '54000 more than 49 levels or too large a document';

CREATE FUNCTION tree_unnest(rel regclass, nested bson, parent anycompatible DEFAULT NULL::text,
  field text DEFAULT NULL, name text DEFAULT NULL) RETURNS SETOF bson
  AS 'MODULE_PATHNAME', 'dp_tree_unnest_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 100 ROWS
    100;
COMMENT ON FUNCTION tree_unnest(regclass, bson, anycompatible, text, text) IS
  'The documents of a nested one, depth first, each with the truth, to be inserted; parent is that '
  'of the outermost. Reads no table. Errors: 23502 a document without an ID, 22023 field is not an '
  'array of documents, 0A000 a parent where children are the truth';

CREATE FUNCTION tree_render(rel regclass, key anycompatible DEFAULT NULL::text,
  max_depth int DEFAULT NULL,
  label text DEFAULT NULL, name text DEFAULT NULL) RETURNS SETOF text
  AS 'MODULE_PATHNAME', 'dp_tree_render_call' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS
    100;
COMMENT ON FUNCTION tree_render(regclass, anycompatible, int, text, text) IS
  'A subtree as text, a line for each node with its ID or the value at the path label; without key '
  'all trees. Needs SELECT';

CREATE FUNCTION tree_stats(rel regclass, name text DEFAULT NULL,
    OUT depth int, OUT nodes bigint, OUT leaves bigint, OUT children_min bigint,
      OUT children_avg numeric, OUT children_median float8, OUT children_max bigint) RETURNS SETOF
    record
LANGUAGE docpatterns STABLE PARALLEL RESTRICTED COST 1000 ROWS 10
  SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  decl text := (SELECT f.name FROM docpatterns._pattern_find(rel, name, 'tree') f);
  expressions text[];
BEGIN
  expressions := docpatterns._tree_expressions(rel, 'tree', decl, 't');
  RETURN QUERY EXECUTE pg_catalog.format(
    'WITH RECURSIVE n AS MATERIALIZED (SELECT %1$s AS id, CASE WHEN %2$s OPERATOR(@extschema@.<>) '
    '''null''::@extschema@.bson_value THEN %2$s END AS parent FROM %3$s AS t WHERE %1$s IS NOT '
    'NULL), '
    'kids AS MATERIALIZED (SELECT n.parent AS id, pg_catalog.count(*) AS k, '
      'pg_catalog.array_agg(n.id) AS ids FROM n WHERE n.parent IS NOT NULL GROUP BY n.parent), '
    'd AS (SELECT n.id, 0 AS depth FROM n WHERE n.parent IS NULL UNION ALL SELECT e, d.depth '
      'OPERATOR(pg_catalog.+) 1 FROM d JOIN kids ON kids.id OPERATOR(@extschema@.=) d.id '
      'CROSS JOIN LATERAL pg_catalog.unnest(kids.ids) e) '
    'SELECT d.depth, pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE kids.k IS NULL), '
      'pg_catalog.min(kids.k), pg_catalog.round(pg_catalog.avg(kids.k), 2), '
    'pg_catalog.percentile_cont(0.5) WITHIN GROUP (ORDER BY kids.k), pg_catalog.max(kids.k) '
    'FROM d LEFT JOIN kids ON kids.id OPERATOR(@extschema@.=) d.id GROUP BY d.depth ORDER BY '
      'd.depth', expressions[1], expressions[2],
    (SELECT format('%I.%I', s.nspname, c.relname) FROM pg_class c
      JOIN pg_namespace s ON s.oid = c.relnamespace WHERE c.oid = rel));
END
$$;
COMMENT ON FUNCTION tree_stats(regclass, text) IS
  'For each depth: the nodes, those without children, and minimum, mean, median and maximum of the '
  'others'' children. Needs SELECT; reads the whole table. Error: 22004';
