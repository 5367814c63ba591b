-- The tree pattern: nodes of a tree keep their ancestors, path, children and depth. The triggers
-- are in src/patterns/tree/.

CREATE FUNCTION docpatterns.tree_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_tree_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.tree_trigger() IS
  'trigger of tables with the tree pattern; made by tree_enable';

CREATE FUNCTION docpatterns.tree_treepath(doc bson, ancestors text, nearest_first boolean,
  node_id text) RETURNS treepath
  AS 'MODULE_PATHNAME', 'dp_tree_treepath_sql' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION docpatterns.tree_treepath(bson, text, boolean, text) IS
  'the IDs in the array at the path ancestors, root first, and the ID at the path node_id: what an '
  'index of the tree pattern holds; NULL if the document has none, or if they take more than 2,600 '
  'bytes';

CREATE FUNCTION docpatterns._tree_expressions(rel regclass, pattern text, name text, alias text)
  RETURNS text[]
  AS 'MODULE_PATHNAME', 'dp_tree_expressions' LANGUAGE C STABLE;
COMMENT ON FUNCTION docpatterns._tree_expressions(regclass, text, text, text) IS
  'SQL text of a node''s ID, its parent, its treepath and the order of siblings, as the indexes of '
  'a tree declaration have them';

-- Declaring ---------------------------------------------------------------------------------------

CREATE FUNCTION tree_enable(
  rel regclass, node_id text DEFAULT '_id', parent text DEFAULT NULL, ancestors text DEFAULT NULL,
  ancestors_order text DEFAULT 'root_first',
  path text DEFAULT NULL, separator text DEFAULT '.', path_self boolean DEFAULT false,
  path_lead boolean DEFAULT true,
  children text DEFAULT NULL, depth text DEFAULT NULL, truth text DEFAULT 'parent',
  on_delete text DEFAULT 'restrict',
  order_by text DEFAULT NULL, search_index boolean DEFAULT true, name text DEFAULT NULL,
    doc_column text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  options @extschema@.bson;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  PERFORM docpatterns._pattern_refuse_partition(rel);
  IF (SELECT c.relkind = 'p' FROM pg_class c WHERE c.oid = rel) THEN
    RAISE EXCEPTION 'table "%" is partitioned',
        docpatterns._relname(rel) USING ERRCODE = 'feature_not_supported',
      DETAIL = 'IDs of nodes must be unique in the whole table, and an index on a field of '
      'documents cannot be unique over partitions.';
  END IF;
  options := docpatterns._pattern_declare(rel, 'tree', @extschema@.bson_build(
    'name', coalesce(name, CASE truth WHEN 'parent' THEN parent WHEN 'ancestors' THEN ancestors
      WHEN 'path' THEN path ELSE children END),
    'node_id', node_id, 'parent', parent, 'ancestors', ancestors,
    'ancestors_order', ancestors_order, 'path', path, 'separator', separator,
    'path_self', path_self, 'path_lead', path_lead, 'children', children, 'depth', depth,
    'truth', truth, 'on_delete', on_delete, 'order_by', order_by, 'search_index', search_index,
    -- the primary key of a collection is its documents' _id
    'id_is_key', coalesce(docpatterns._pattern_paths_overlap(node_id, '_id')
                          AND t.keys = '{_id}' AND t.key_types
                            = ARRAY['@extschema@.bson_value'::regtype::text]
                          AND EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = rel
                              AND g.tgfoid = 'docpatterns.collection_set_id()'::regprocedure),
                            false),
    'doc_column', t.doc));
  name := @extschema@.bson_get_text(options, 'name');
  options := docpatterns._tree_removed_list(rel, options);
  PERFORM docpatterns._tree_create_triggers(rel, options);
  PERFORM docpatterns._tree_create_indexes(rel, 'tree', name);
  PERFORM docpatterns._pattern_notice_rows(rel, name);
  RETURN name;
END
$$;
COMMENT ON FUNCTION tree_enable(regclass, text, text, text, text, text, text, boolean, boolean,
  text, text, text, text, text, boolean, text, text) IS
  'Declares the tree pattern: documents are nodes named by the field node_id, and the given forms '
  '(parent, ancestors, path, children, depth) are kept from the one that truth names. Returns the '
  'name of the declaration. Builds indexes; locks the table against writers. Errors: 22023 options '
  'that do not fit, 42710 the name exists, 42501 unless the caller owns the table';

-- The list of former children distinguishes old copies of arrays from new ones.
CREATE FUNCTION docpatterns._tree_removed_list(rel regclass, options bson) RETURNS bson
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  removed regclass := docpatterns._pattern_side(@extschema@.bson_get_text(options,
      'removed_link_id'),
      rel);
BEGIN
  IF @extschema@.bson_exists(options, 'children')
      AND @extschema@.bson_get_text(options, 'truth') <> 'children' THEN
    IF removed IS NULL THEN
      options := @extschema@.bson_set(options, 'removed_link_id',
          docpatterns._derive_create_queue(rel, 'tree', @extschema@.bson_get_text(options, 'name'),
            'removed', 'no longer lists'));
    END IF;
  ELSIF @extschema@.bson_exists(options, 'removed_link_id') THEN
    options := @extschema@.bson_unset(options, 'removed_link_id');
  END IF;
  RETURN options;
END
$$;
COMMENT ON FUNCTION docpatterns._tree_removed_list(regclass, bson) IS
  'options of a tree with the list of children that were removed, which is made, where children '
  'are '
  'derived';

-- The forms of a declaration, of nodes or of documents attached to them.
CREATE FUNCTION docpatterns._tree_check_forms(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  fields text[] := ARRAY(SELECT @extschema@.bson_get_text(options, o)
                         FROM unnest('{parent,ancestors,path,children,depth}'::text[]) o
                         WHERE @extschema@.bson_exists(options, o));
BEGIN
  IF EXISTS (SELECT FROM unnest(fields) WITH ORDINALITY a (p, n)
               JOIN unnest(fields || ARRAY[@extschema@.bson_get_text(options, 'node_id'), '_id'])
                 WITH ORDINALITY b (p, n) ON a.n < b.n
             WHERE docpatterns._pattern_paths_overlap(a.p, b.p)) THEN
    RAISE EXCEPTION 'the fields of a tree must be different fields, none inside another and none '
      'but node_id the _id' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF EXISTS (SELECT FROM docpatterns._pattern_declarations(rel) d
               CROSS JOIN unnest('{parent,ancestors,path,children,depth}'::text[]) theirs (option)
               CROSS JOIN unnest(fields) ours (path)
             WHERE d.pattern IN ('tree', 'tree_attach')
               AND d.name <> @extschema@.bson_get_text(_tree_check_forms.options, 'name')
               AND @extschema@.bson_get_text(d.options, 'doc_column')
                     = @extschema@.bson_get_text(_tree_check_forms.options, 'doc_column')
               AND docpatterns._pattern_paths_overlap(
                     @extschema@.bson_get_text(d.options, theirs.option), ours.path)) THEN
    RAISE EXCEPTION 'table "%" already has a tree pattern with one of these fields',
        docpatterns._relname(rel)
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._tree_check_forms(regclass, bson) IS
  'error 22023 for forms of a tree that do not go together, or with those of another';

CREATE FUNCTION docpatterns._tree_verify(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  truth text := @extschema@.bson_get_text(options, 'truth');
BEGIN
  IF NOT @extschema@.bson_exists(options, truth) THEN
    RAISE EXCEPTION 'option "%" must name the field that users write', truth
      USING ERRCODE = 'invalid_parameter_value',
        HINT = 'The option "truth" says which form is written by hand; the others that are named '
        'are derived from it.';
  END IF;
  IF truth IN ('children', 'path') AND NOT @extschema@.bson_exists(options, 'parent') THEN
    RAISE EXCEPTION 'truth "%" requires option "parent"', truth
      USING ERRCODE = 'invalid_parameter_value',
      DETAIL = 'Children of a node are found by the parent in their documents.';
  END IF;
  PERFORM docpatterns._tree_check_forms(rel, options);
  IF EXISTS (SELECT FROM unnest('{parent,ancestors,path,children,depth}'::text[]) o
             WHERE docpatterns._pattern_paths_overlap(
                     @extschema@.bson_get_text(options, 'order_by'),
                     @extschema@.bson_get_text(options, o))) THEN
    RAISE EXCEPTION 'order_by must not be a field that the pattern keeps'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._tree_verify(regclass, bson) IS
  'error 22023 for options of a tree that do not fit each other';

CREATE FUNCTION docpatterns._tree_paths(options bson, OUT path text, OUT kept boolean,
  OUT guarded boolean, OUT derived boolean) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT @extschema@.bson_get_text($1, o), o <> t.truth, o <> t.truth, o <> t.truth
    FROM unnest('{parent,ancestors,path,children,depth}'::text[]) AS o
      CROSS JOIN coalesce(@extschema@.bson_get_text($1, 'truth'), 'parent') AS t (truth)
  WHERE @extschema@.bson_exists($1, o)
$$;
COMMENT ON FUNCTION docpatterns._tree_paths(bson) IS
  'paths of the fields of a tree: all but the one that users write are derived from it';

-- The triggers on the table, created again when options change. The main one has the declaration.
CREATE FUNCTION docpatterns._tree_create_triggers(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name text := @extschema@.bson_get_text(options, 'name');
  doc text;
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.tree_trigger(%L)',
                 docpatterns._pattern_own_trigger(rel, 45, 'tree', name, NULL, 23), rel,
                 options::text);
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER INSERT OR DELETE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.tree_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 45, 'tree', name, 'row', 13), rel, 'of',
                 name);
  -- a document that stays where it is passes the condition and costs no entry in the queue of
  -- triggers
  SELECT t.doc INTO doc FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) t;
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER UPDATE ON %s FOR EACH ROW WHEN '
      '(docpatterns.reference_differs(OLD.%I, NEW.%3$I, %L::text[])) '
                 'EXECUTE FUNCTION docpatterns.tree_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 45, 'tree', name, 'update', 17), rel, doc,
                 array_remove(ARRAY[@extschema@.bson_get_text(options, 'node_id'),
                     @extschema@.bson_get_text(options,
                       @extschema@.bson_get_text(options, 'truth')),
                         CASE WHEN @extschema@.bson_exists(options, 'children') THEN
                               @extschema@.bson_get_text(options, 'order_by') END],
                             NULL)::text, 'of', name);
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH '
      'STATEMENT EXECUTE FUNCTION docpatterns.tree_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 45, 'tree', name, 'statement', 28), rel,
                 'of', name);
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._tree_create_triggers(regclass, bson) IS
  'triggers of the tree pattern on its table';

-- The indexes of a declaration as SQL text behind ON <table>, and how the catalog shows their
-- columns.
CREATE FUNCTION docpatterns._tree_indexes(rel regclass, pattern text, name text, OUT kind text,
  OUT is_unique boolean, OUT definition text, OUT shown text)
RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT i.kind, i.is_unique, i.definition, replace(i.shown, '::pg_catalog.text', '::text')
  FROM docpatterns._pattern_declarations($1) d,
    LATERAL (SELECT docpatterns._tree_expressions($1, $2, $3, NULL) AS e,
      @extschema@.bson_get_text(d.options, 'ancestors') AS ancestors,
      @extschema@.bson_get_text(d.options, 'path') AS path,
                    (SELECT t.doc FROM docpatterns._pattern_table($1,
                          docpatterns._pattern_doc_column($1,
                          @extschema@.bson_get_text(d.options, 'doc_column'))) t) AS doc) x,
    LATERAL (SELECT 'id' AS kind, true AS is_unique, format('((%s))', e[1]) AS definition,
      e[1] AS shown
               WHERE e[1] IS NOT NULL AND @extschema@.bson_get_text(d.options,
                   'id_is_key') IS DISTINCT FROM 'true'
             UNION ALL SELECT 'parent', false, format('((%s))', e[2]), e[2]
             UNION ALL SELECT 'ancestors', false, format('((%s))', e[3]), e[3]
               WHERE e[3] IS NOT NULL
             UNION ALL SELECT 'search', false,
               format('USING gin (%I @extschema@.bson_ops (paths=%L))', x.doc,
                 concat_ws(', ', x.ancestors, x.path)), NULL
               WHERE (x.ancestors IS NOT NULL OR x.path IS NOT NULL)
                   AND @extschema@.bson_get_text(d.options, 'search_index') = 'true') i
  WHERE d.pattern = $2 AND d.name = $3
$$;
COMMENT ON FUNCTION docpatterns._tree_indexes(regclass, text, text) IS
  'the indexes that a tree declaration needs';

-- An index of the table as a declaration needs it, or NULL.
CREATE FUNCTION docpatterns._tree_index_find(rel regclass, is_unique boolean, definition text,
  shown text) RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT i.indexrelid::regclass
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
  WHERE i.indrelid = $1 AND i.indnatts = 1 AND docpatterns._pattern_index_full(i.indexrelid)
    AND i.indisvalid AND (i.indisunique AND i.indimmediate OR NOT $2)
    AND CASE WHEN $4 IS NULL THEN strpos(replace(pg_get_indexdef(i.indexrelid), '''', ''),
        replace($3, '''', '')) > 0
             ELSE a.amname = 'btree' AND pg_get_indexdef(i.indexrelid, 1, false) IN ($4,
                 '(' || $4 || ')') AND i.indoption[0] & 1 = 0 END
  ORDER BY i.indexrelid LIMIT 1
$$;
COMMENT ON FUNCTION docpatterns._tree_index_find(regclass, boolean, text, text) IS
  'an index of the table with that definition, or NULL';

CREATE FUNCTION docpatterns._tree_create_indexes(rel regclass, pattern text, name text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
  SET standard_conforming_strings = on AS $$
DECLARE
  i record;
  made text[] := '{}';
  o @extschema@.bson;
BEGIN
  FOR i IN SELECT x.* FROM docpatterns._tree_indexes(rel, pattern, name) x LOOP
    IF docpatterns._tree_index_find(rel, i.is_unique, i.definition, i.shown) IS NULL THEN
      EXECUTE format('CREATE %sINDEX ON %s %s', CASE WHEN i.is_unique THEN 'UNIQUE ' ELSE ''
          END, rel, i.definition);
      made := made || i.kind;
    END IF;
  END LOOP;
  -- the declaration remembers which ones it has made
  IF made <> '{}' THEN
    SELECT d.options INTO o FROM docpatterns._pattern_declarations(rel) d
      WHERE d.pattern = _tree_create_indexes.pattern AND d.name = _tree_create_indexes.name;
    made := ARRAY(SELECT e::text FROM @extschema@.bson_elements(o OPERATOR(@extschema@.->)
          'made'::text) e UNION SELECT unnest(made) ORDER BY 1);
    o := @extschema@.bson_set(o, 'made', made);
    IF pattern = 'tree' THEN
      PERFORM docpatterns._tree_create_triggers(rel, o);
    ELSE
      PERFORM docpatterns._tree_attach_create_triggers(rel, o);
    END IF;
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._tree_create_indexes(regclass, text, text) IS
  'makes the indexes of a tree declaration that are not there yet';

-- Verbs -------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._tree_node(rel regclass, pattern text, name text, doc bson,
  OUT id bson_value, OUT parent bson_value)
  AS 'MODULE_PATHNAME', 'dp_tree_node' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION docpatterns._tree_node(regclass, text, text, bson) IS
  'the ID of a node and of its parent, by the fields that users write';

CREATE FUNCTION docpatterns._tree_faults(rel regclass, pattern text, name text, doc bson,
  chain bson_value, children bson_value, OUT what text, OUT expected text, OUT found text)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_tree_faults' LANGUAGE C STABLE PARALLEL SAFE COST 20 ROWS 1;
COMMENT ON FUNCTION docpatterns._tree_faults(regclass, text, text, bson, bson_value, bson_value) IS
  'forms of a document that are not as they follow from the IDs above it (an array, root first; '
  'NULL: it is attached to no node) and of its children';

-- Common table expressions over a tree: "rows" (key, key_row, id, parent, doc), "walk" (id, chain:
-- the ids above it) and "kids" (parent, children).
CREATE FUNCTION docpatterns._tree_walk_sql(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  o @extschema@.bson;
  key_list text;
  order_by text;
  rows text := 'rows';
BEGIN
  SELECT d.options INTO o FROM docpatterns._pattern_declarations(rel) d WHERE d.pattern = 'tree'
    AND d.name = _tree_walk_sql.name;
  -- without the unique index a walk that knows one parent of each node still comes to an end
  IF EXISTS (SELECT FROM docpatterns._tree_indexes(rel, 'tree', name) i WHERE i.is_unique
      AND docpatterns._tree_index_find(rel, true, i.definition, i.shown) IS NULL) THEN
    rows := '(SELECT DISTINCT ON (id) * FROM rows ORDER BY id, parent NULLS FIRST)';
  END IF;
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(o, 'doc_column'))) p;
  SELECT string_agg(format('b.%I', k), ', ' ORDER BY n) INTO key_list FROM unnest(t.keys)
    WITH ORDINALITY u (k, n);
  order_by := CASE WHEN @extschema@.bson_exists(o, 'order_by')
    THEN format('coalesce(r.doc OPERATOR(@extschema@.->) %L::text, '
        '''null''::@extschema@.bson_value), ', @extschema@.bson_get_text(o, 'order_by')) ELSE ''
      END;
  RETURN format($q$
    WITH RECURSIVE found AS MATERIALIZED (
      SELECT %1$s AS key, ROW(%2$s) AS key_row, n.id, n.parent, b.%3$I AS doc
      FROM %4$s AS b CROSS JOIN LATERAL docpatterns._tree_node(%5$L::regclass, 'tree', %6$L, b.%3$I)
        n WHERE b.%3$I IS NOT NULL),
    listed AS (
      SELECT f.id AS parent, e AS child FROM found f
        CROSS JOIN LATERAL @extschema@.bson_elements(f.doc OPERATOR(@extschema@.->) %7$L::text) e
      WHERE %8$L::boolean AND @extschema@.bson_typeof(f.doc, %7$L) OPERATOR(pg_catalog.=) 'array'),
    rows AS MATERIALIZED (
      SELECT f.key, f.key_row, f.id, f.doc, CASE WHEN %8$L::boolean THEN l.parent ELSE f.parent
        END AS parent
      FROM found f LEFT JOIN (SELECT DISTINCT ON (child) *
          FROM listed) l ON l.child OPERATOR(@extschema@.=) f.id),
    -- children by parent, so that the planner does not expect pairs of all rows at each level
    below AS MATERIALIZED (
      SELECT r.parent, pg_catalog.array_agg(r.id) AS ids FROM %10$s r
        WHERE r.parent IS NOT NULL AND r.id IS NOT NULL GROUP BY r.parent),
    walk (id, chain) AS (
      SELECT r.id, @extschema@.bson_array() FROM rows r WHERE r.parent IS NULL AND r.id IS NOT NULL
      UNION ALL SELECT c.id, p.chain FROM (
          SELECT docpatterns.bson_concat(w.chain, w.id) AS chain, b.ids FROM walk w
            JOIN below b ON b.parent OPERATOR(@extschema@.=) w.id OFFSET 0) p
        CROSS JOIN LATERAL pg_catalog.unnest(p.ids) c (id)),
    kids AS (
      SELECT r.parent, @extschema@.bson_agg(r.id ORDER BY %9$s r.id) AS children FROM rows r
        WHERE r.parent IS NOT NULL AND r.id IS NOT NULL AND NOT %8$L::boolean GROUP BY r.parent)
    $q$, format(CASE WHEN cardinality(t.keys) = 1 THEN '@extschema@.to_bson(%s)'
        ELSE '@extschema@.bson_array(%s)' END, key_list), key_list, t.doc, t.base,
    rel::oid, name, coalesce(@extschema@.bson_get_text(o, 'children'), '_id'),
    @extschema@.bson_get_text(o, 'truth') = 'children', order_by, rows);
END
$$;
COMMENT ON FUNCTION docpatterns._tree_walk_sql(regclass, text) IS
  'SQL text: common table expressions that compute a tree from the fields that users write';

-- The expected values of a node of "rows", and the present ones.
CREATE FUNCTION docpatterns._tree_faults_sql(rel regclass, name text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format($q$FROM rows r LEFT JOIN walk w ON w.id OPERATOR(@extschema@.=) r.id
      LEFT JOIN kids k ON k.parent OPERATOR(@extschema@.=) r.id
      CROSS JOIN LATERAL docpatterns._tree_faults(%L::regclass, 'tree', %L, r.doc, w.chain, %s) f
    WHERE w.id IS NOT NULL$q$, $1::oid, $2,
    CASE WHEN (SELECT @extschema@.bson_exists(d.options, 'children')
        AND @extschema@.bson_get_text(d.options, 'truth') <> 'children'
               FROM docpatterns._pattern_declarations($1) d WHERE d.pattern = 'tree'
                 AND d.name = $2)
         THEN 'coalesce(k.children, @extschema@.bson_array())' ELSE 'NULL' END)
$$;
COMMENT ON FUNCTION docpatterns._tree_faults_sql(regclass, text) IS
  'SQL text: the faults of the nodes of a tree';

CREATE FUNCTION docpatterns._tree_check(rel regclass, name text) RETURNS TABLE (key bson_value,
  what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY EXECUTE docpatterns._tree_walk_sql(rel, name) || $q$
    SELECT r.key, 'node id'::text, 'present'::text, 'absent'::text FROM rows r WHERE r.id IS NULL
    UNION ALL SELECT r.key, 'node id', 'unique', r.id::text
      FROM (SELECT r.*, count(*) OVER (PARTITION BY r.id) AS n FROM rows r WHERE r.id IS NOT NULL) r
      WHERE r.n > 1
    UNION ALL SELECT r.key, 'parent', 'a node', r.parent::text FROM rows r
      WHERE r.parent IS NOT NULL AND NOT EXISTS (SELECT FROM rows p
          WHERE p.id OPERATOR(@extschema@.=) r.parent)
    UNION ALL SELECT r.key, 'way to the root', 'without a cycle',
      'a cycle, or a parent that is missing' FROM rows r
      WHERE r.id IS NOT NULL AND NOT EXISTS (SELECT FROM walk w
          WHERE w.id OPERATOR(@extschema@.=) r.id)
    UNION ALL SELECT f.key, 'child', 'a node', l.child::text FROM listed l
      JOIN rows f ON f.id OPERATOR(@extschema@.=) l.parent
      WHERE NOT EXISTS (SELECT FROM rows p WHERE p.id OPERATOR(@extschema@.=) l.child)
    UNION ALL SELECT f.key, 'child', 'listed once', l.child::text
      FROM (SELECT l.*, count(*) OVER (PARTITION BY l.child) AS n FROM listed l) l
      JOIN rows f ON f.id OPERATOR(@extschema@.=) l.parent WHERE l.n > 1
    UNION ALL SELECT r.key, f.what, f.expected,
      f.found $q$ || docpatterns._tree_faults_sql(rel, name);
  RETURN QUERY SELECT NULL::@extschema@.bson_value, 'list of children that were removed'::text,
    'present'::text, 'missing'::text
    FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = 'tree' AND d.name = _tree_check.name
      AND @extschema@.bson_exists(d.options, 'children')
      AND @extschema@.bson_get_text(d.options, 'truth') <> 'children'
      AND docpatterns._pattern_side(@extschema@.bson_get_text(d.options, 'removed_link_id'),
          _tree_check.rel) IS NULL;
  RETURN QUERY SELECT NULL::@extschema@.bson_value, 'index'::text, i.definition, 'missing'::text
    FROM docpatterns._tree_indexes(rel, 'tree', name) i
      WHERE docpatterns._tree_index_find(rel, i.is_unique, i.definition, i.shown) IS NULL;
END
$$;
COMMENT ON FUNCTION docpatterns._tree_check(regclass, text) IS 'violated invariants of a tree';

-- A node without a parent that lists its ancestors, and children without one that it lists: the
-- edges that are implied are written down.
CREATE FUNCTION docpatterns._tree_move_held(rel regclass, name text, key bson_value) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._tree_take_edges($1, 'tree', $2, $3)
$$;
COMMENT ON FUNCTION docpatterns._tree_move_held(regclass, text, bson_value) IS
  'writes the parents that the other forms of a node imply';

CREATE FUNCTION docpatterns._tree_take_edges(rel regclass, pattern text, name text, key bson_value)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  doc @extschema@.bson;
  parent text;
  ancestors text;
  children text;
  node text;
  orphan text;
  nearest int;
  above @extschema@.bson_value;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, pattern, name) q;
  parent := @extschema@.bson_get_text(p.options, 'parent');
  ancestors := @extschema@.bson_get_text(p.options, 'ancestors');
  children := @extschema@.bson_get_text(p.options, 'children');
  node := coalesce(@extschema@.bson_get_text(p.options, 'node_id'), '_id');
  IF parent IS NULL OR coalesce(@extschema@.bson_get_text(p.options, 'truth'), 'parent')
      <> 'parent' THEN
    RETURN;
  END IF;
  EXECUTE format('SELECT %s FROM %s AS b WHERE %s OPERATOR(@extschema@.=) $1', p.doc, p.base,
      p.key_value) INTO doc USING key;
  orphan := format('NOT @extschema@.bson_exists(%s, %L)', p.doc, parent);
  IF @extschema@.bson_typeof(doc, ancestors) = 'array'
      AND @extschema@.bson_array_length(doc, ancestors) > 0 THEN
    nearest := CASE @extschema@.bson_get_text(p.options, 'ancestors_order')
      WHEN 'nearest_first' THEN 0 ELSE -1 END;
    IF pattern = 'tree' THEN
      -- ancestors first: their lists are part of this node's
      FOR above IN SELECT e FROM @extschema@.bson_elements(doc OPERATOR(@extschema@.->) ancestors)
          WITH ORDINALITY AS u (e, n) ORDER BY n * (2 * nearest + 1) DESC LOOP
        EXECUTE format('UPDATE %1$s AS b SET %2$I = @extschema@.bson_set(%3$s, %4$L, '
            '@extschema@.bson_get(%3$s OPERATOR(@extschema@.->) %5$L::text, %6$s)) '
                       'WHERE (%3$s OPERATOR(@extschema@.->) %7$L::text) OPERATOR(@extschema@.=) '
                         '$1 AND %8$s '
                       'AND @extschema@.bson_typeof(%3$s, %5$L) OPERATOR(pg_catalog.=) ''array'' '
                         'AND @extschema@.bson_array_length(%3$s, %5$L) OPERATOR(pg_catalog.>) 0',
                       p.base, p.doc_name, p.doc, parent, ancestors, nearest, node, orphan)
                       USING above;
      END LOOP;
    END IF;
    EXECUTE format('UPDATE %s AS b SET %I = @extschema@.bson_set(%s, %L, $2) WHERE %s '
        'OPERATOR(@extschema@.=) $1 AND %s', p.base, p.doc_name, p.doc, parent, p.key_value, orphan)
      USING key, @extschema@.bson_get(doc OPERATOR(@extschema@.->) ancestors, nearest);
  END IF;
  IF @extschema@.bson_typeof(doc, children) = 'array' THEN
    EXECUTE format('UPDATE %1$s AS b SET %2$I = @extschema@.bson_set(%3$s, %4$L, $1) WHERE (%3$s '
        'OPERATOR(@extschema@.->) %5$L::text) OPERATOR(@extschema@.=) ANY ($2) AND %6$s',
                   p.base, p.doc_name, p.doc, parent, node, orphan)
      USING doc OPERATOR(@extschema@.->) node,
        ARRAY(SELECT e FROM @extschema@.bson_elements(doc OPERATOR(@extschema@.->) children) e);
  END IF;
EXCEPTION WHEN integrity_constraint_violation THEN
  -- not a tree: the caller reports the conflict
  NULL;
END
$$;
COMMENT ON FUNCTION docpatterns._tree_take_edges(regclass, text, text, bson_value) IS
  'writes the parents that the other forms of a document imply, where none is named';

-- Keys of rows that may have to be corrected. With children as truth, a row corrects its children's
-- parents before itself.
CREATE FUNCTION docpatterns._tree_pending(rel regclass, name text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._tree_walk_sql($1, $2) || CASE
    WHEN (SELECT @extschema@.bson_get_text(d.options, 'truth') = 'children'
        FROM docpatterns._pattern_declarations($1) d WHERE d.pattern = 'tree' AND d.name = $2)
    THEN 'SELECT r.key_row AS key FROM rows r CROSS JOIN generate_series(1, 2) AS pass ORDER BY '
      'pass'
    ELSE 'SELECT r.key_row AS key FROM rows r WHERE NOT EXISTS (SELECT FROM walk w WHERE w.id '
      'OPERATOR(@extschema@.=) r.id) '
         'UNION ALL SELECT s.key_row FROM (SELECT DISTINCT ON (r.id) r.key_row '
           || docpatterns._tree_faults_sql($1, $2) || ') s' END
$$;
COMMENT ON FUNCTION docpatterns._tree_pending(regclass, text) IS
  'SQL text: keys of rows that may be inconsistent with a tree declaration';

CREATE FUNCTION docpatterns._tree_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM docpatterns._tree_create_triggers(_tree_repair.rel,
      docpatterns._tree_removed_list(_tree_repair.rel, d.options))
    FROM docpatterns._pattern_declarations(_tree_repair.rel) d
    WHERE d.pattern = 'tree' AND d.name = _tree_repair.name
      AND docpatterns._pattern_side(@extschema@.bson_get_text(d.options, 'removed_link_id'),
        _tree_repair.rel) IS NULL;
  PERFORM docpatterns._pattern_forget_removed(rel, name);
  PERFORM docpatterns._tree_create_indexes(rel, 'tree', name);
  RETURN docpatterns._pattern_repair_rows(rel, name, docpatterns._tree_pending(rel, name));
END
$$;
COMMENT ON FUNCTION docpatterns._tree_repair(regclass, text) IS
  'pattern_repair of the tree pattern';

CREATE FUNCTION docpatterns._tree_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o @extschema@.bson := docpatterns._tree_removed_list(rel, options);
  old @extschema@.bson;
BEGIN
  SELECT d.options INTO old FROM docpatterns._pattern_declarations(rel) d WHERE d.pattern = 'tree'
    AND d.name = _tree_alter.name;
  PERFORM docpatterns._tree_create_triggers(rel, o);
  IF @extschema@.bson_exists(old, 'removed_link_id')
      AND NOT @extschema@.bson_exists(o, 'removed_link_id') THEN
    PERFORM docpatterns._pattern_drop_side(docpatterns._pattern_side(@extschema@.bson_get_text(old,
            'removed_link_id'), rel), rel, false);
  END IF;
  PERFORM docpatterns._tree_create_indexes(rel, 'tree', name);
  IF @extschema@.bson_unset(options, 'on_delete', 'search_index')::text
     <> @extschema@.bson_unset(old, 'on_delete', 'search_index')::text THEN
    RAISE NOTICE 'new options apply to existing documents after CALL pattern_build(%, %)',
      quote_literal(rel), quote_literal(name);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._tree_alter(regclass, text, bson) IS
  'pattern_alter of the tree pattern';

CREATE FUNCTION docpatterns._tree_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  i record;
  removed regclass;
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  SELECT docpatterns._pattern_side(@extschema@.bson_get_text(d.options, 'removed_link_id'),
      _tree_disable.rel) INTO removed FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = 'tree' AND d.name = _tree_disable.name;
  IF EXISTS (SELECT FROM docpatterns._pattern_declarations(NULL) d
             WHERE d.pattern = 'tree_attach'
               AND @extschema@.bson_get_text(d.options, 'tree_name') = _tree_disable.name
               AND docpatterns._pattern_side(@extschema@.bson_get_text(d.options, 'link_id'), d.rel)
                   = _tree_disable.rel) THEN
    RAISE EXCEPTION 'documents of other tables are attached to tree "%" of table "%"', name,
        docpatterns._relname(rel)
      USING ERRCODE = 'dependent_objects_still_exist',
        HINT = 'Disable their patterns first; pattern_list() shows them as tree_attach.';
  END IF;
  -- indexes that the declaration has made go with it
  FOR i IN SELECT docpatterns._tree_index_find(rel, x.is_unique, x.definition, x.shown) AS index
    FROM docpatterns._tree_indexes(rel, 'tree', name) x
           WHERE x.kind = ANY (ARRAY(SELECT e::text FROM docpatterns._pattern_declarations(rel) d
                 CROSS JOIN LATERAL @extschema@.bson_elements(d.options OPERATOR(@extschema@.->)
                   'made'::text) e
                     WHERE d.pattern = 'tree' AND d.name = _tree_disable.name)) LOOP
    IF i.index IS NOT NULL THEN
      EXECUTE format('DROP INDEX %s', i.index);
    END IF;
  END LOOP;
  PERFORM docpatterns._pattern_drop_triggers(rel, 'tree', name);
  PERFORM docpatterns._pattern_drop_side(removed, rel, false);
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._tree_disable(regclass, text, bson) IS
  'pattern_disable of the tree pattern: the documents stay as they are';
