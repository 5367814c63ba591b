-- The tree pattern: nodes of a tree keep their ancestors, path, children and depth. The triggers are in src/patterns/tree*.c.

CREATE FUNCTION tree_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_tree_trigger' LANGUAGE C;
COMMENT ON FUNCTION tree_trigger() IS 'trigger of tables with the tree pattern; made by tree_enable';

CREATE FUNCTION tree_treepath(doc bson, ancestors text, nearest_first boolean, node_id text) RETURNS treepath
  AS 'MODULE_PATHNAME', 'dp_tree_treepath_sql' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION tree_treepath(bson, text, boolean, text) IS
  'the ids in the array at the path ancestors, root first, and the id at the path node_id: what an index of the tree pattern holds; NULL if the document has none, or if they take more than 2,600 bytes';

CREATE FUNCTION tree_differs(before bson, after bson, VARIADIC paths text[]) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_tree_differs' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 5;
COMMENT ON FUNCTION tree_differs(bson, bson, text[]) IS 'whether a field differs in its bytes; the condition of triggers; true if one document is NULL and the other is not';

CREATE FUNCTION _tree_expressions(rel regclass, pattern text, name text, alias text) RETURNS text[]
  AS 'MODULE_PATHNAME', 'dp_tree_expressions' LANGUAGE C STABLE;
COMMENT ON FUNCTION _tree_expressions(regclass, text, text, text) IS
  'SQL text of a node''s id, its parent, its treepath and the order of siblings, as the indexes of a tree declaration have them';

-- Declaring ---------------------------------------------------------------------------------------------------------------

CREATE FUNCTION tree_enable(
  rel regclass, node_id text DEFAULT '_id', parent text DEFAULT NULL, ancestors text DEFAULT NULL, ancestors_order text DEFAULT 'root_first',
  path text DEFAULT NULL, separator text DEFAULT '.', path_self boolean DEFAULT false, path_lead boolean DEFAULT true,
  children text DEFAULT NULL, depth text DEFAULT NULL, truth text DEFAULT 'parent', on_delete text DEFAULT 'restrict',
  order_by text DEFAULT NULL, search_index boolean DEFAULT true, name text DEFAULT NULL, doc_column text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  options @extschema@.bson;
  kept text[];
BEGIN
  SELECT p.* INTO t FROM @extschema@._pattern_table(rel, doc_column) p;
  PERFORM @extschema@._pattern_require_owner(rel);
  IF node_id IS NULL OR truth IS NULL OR on_delete IS NULL OR search_index IS NULL THEN
    RAISE EXCEPTION 'node_id, truth, on_delete and search_index must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF truth NOT IN ('parent', 'ancestors', 'path', 'children') THEN
    RAISE EXCEPTION 'truth must be "parent", "ancestors", "path" or "children"' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF on_delete NOT IN ('restrict', 'cascade', 'reparent') THEN
    RAISE EXCEPTION 'on_delete must be "restrict", "cascade" or "reparent"' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF (CASE truth WHEN 'parent' THEN parent WHEN 'ancestors' THEN ancestors WHEN 'path' THEN path ELSE children END) IS NULL THEN
    RAISE EXCEPTION 'the argument "%" must name the field that is written by hand', truth
      USING ERRCODE = 'invalid_parameter_value', HINT = 'The argument "truth" says which form is written by hand; the others that are named are derived from it.';
  END IF;
  IF truth IN ('children', 'path') AND parent IS NULL THEN
    RAISE EXCEPTION 'truth "%" needs the argument "parent"', truth USING ERRCODE = 'invalid_parameter_value',
      DETAIL = 'The children of a node are found by the parent that their documents name.';
  END IF;
  PERFORM @extschema@._tree_check_forms(parent, ancestors, ancestors_order, path, separator, path_self, path_lead, children, depth, node_id);
  IF order_by IS NOT NULL AND EXISTS (SELECT FROM unnest(ARRAY[parent, ancestors, path, children, depth]) f (p) WHERE @extschema@._pattern_paths_overlap(order_by, p)) THEN
    RAISE EXCEPTION 'order_by must not be a field that the pattern keeps' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  name := coalesce(name, CASE truth WHEN 'parent' THEN parent WHEN 'ancestors' THEN ancestors WHEN 'path' THEN path ELSE children END);
  PERFORM @extschema@._tree_check_others(rel, t.base, t.doc, name, ARRAY[parent, ancestors, path, children, depth]);
  IF (SELECT c.relkind = 'p' FROM pg_class c WHERE c.oid = rel) THEN
    RAISE EXCEPTION 'table % is partitioned', t.base USING ERRCODE = 'feature_not_supported',
      DETAIL = 'The ids of nodes must be unique in the whole table, and an index on a field of documents cannot be unique over partitions.';
  END IF;

  options := @extschema@.bson_build('name', name, 'node_id', node_id);
  IF parent IS NOT NULL THEN options := @extschema@.bson_set(options, 'parent', parent); END IF;
  IF ancestors IS NOT NULL THEN options := @extschema@.bson_set(@extschema@.bson_set(options, 'ancestors', ancestors), 'ancestors_order', ancestors_order); END IF;
  IF path IS NOT NULL THEN
    options := @extschema@.bson_set(@extschema@.bson_set(@extschema@.bson_set(@extschema@.bson_set(options, 'path', path),
                 'separator', separator), 'path_self', path_self), 'path_lead', path_lead);
  END IF;
  IF children IS NOT NULL THEN options := @extschema@.bson_set(options, 'children', children); END IF;
  IF depth IS NOT NULL THEN options := @extschema@.bson_set(options, 'depth', depth); END IF;
  options := @extschema@.bson_set(@extschema@.bson_set(options, 'truth', truth), 'on_delete', on_delete);
  IF order_by IS NOT NULL THEN options := @extschema@.bson_set(options, 'order_by', order_by); END IF;
  options := @extschema@.bson_set(options, 'search_index', search_index);
  -- the primary key of a collection is its documents' _id
  options := @extschema@.bson_set(options, 'id_is_key', @extschema@._pattern_paths_overlap(node_id, '_id') AND t.keys = '{_id}' AND t.key_types = ARRAY['@extschema@.bson_value'::regtype::text]
    AND EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = rel AND g.tgfoid = '@extschema@.collection_set_id()'::regprocedure));
  options := @extschema@.bson_set(options, 'doc_column', t.doc);

  PERFORM @extschema@._tree_create_triggers(rel, options);
  PERFORM @extschema@._tree_create_indexes(rel, 'tree', name);
  IF EXISTS (SELECT FROM @extschema@._pattern_nonempty(rel) n WHERE n) THEN
    RAISE NOTICE 'table % has rows already', t.base
      USING HINT = format('CALL pattern_build(%L, %L) brings them in line; new writes are kept in line from now on.', t.base, name);
  END IF;
  RETURN name;
END
$$;
COMMENT ON FUNCTION tree_enable(regclass, text, text, text, text, text, text, boolean, boolean, text, text, text, text, text, boolean, text, text) IS
  'declares the tree pattern: the documents are nodes, named by the field node_id, and the forms that are named (parent, ancestors, path, children, depth) are kept true from the one that truth names. '
  'Returns the name of the declaration. Makes indexes; locks the table against writers; errors 22023 for options that do not fit, 42710 for a second declaration of the name, 42501 unless the caller owns the table';

-- The forms of a declaration, of nodes or of documents that hang on them.
CREATE FUNCTION _tree_check_forms(parent text, ancestors text, ancestors_order text, path text, separator text, path_self boolean, path_lead boolean,
                                  children text, depth text, node_id text) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF ancestors_order IS NULL OR ancestors_order NOT IN ('root_first', 'nearest_first') THEN
    RAISE EXCEPTION 'ancestors_order must be "root_first" or "nearest_first"' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF path IS NOT NULL AND (separator IS NULL OR separator = '' OR path_self IS NULL OR path_lead IS NULL) THEN
    RAISE EXCEPTION 'separator, path_self and path_lead must not be null or empty' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- a bad path is an error here, and the text goes into SQL as a literal later
  IF EXISTS (SELECT FROM unnest(ARRAY[parent, ancestors, path, children, depth, node_id, '_id']) WITH ORDINALITY a (p, n),
                         unnest(ARRAY[parent, ancestors, path, children, depth, node_id, '_id']) WITH ORDINALITY b (p, n)
             WHERE a.n < b.n AND a.n < 6 AND @extschema@._pattern_paths_overlap(a.p, b.p)) THEN
    RAISE EXCEPTION 'the fields of a tree must be different fields, none inside another and none but node_id the _id' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM @extschema@._pattern_paths_overlap(node_id, '_id');
END
$$;
COMMENT ON FUNCTION _tree_check_forms(text, text, text, text, text, boolean, boolean, text, text, text) IS 'error 22023 for forms of a tree that do not go together';

-- Two declarations on one table must not keep the same field.
CREATE FUNCTION _tree_check_others(rel regclass, base text, doc text, name text, fields text[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM @extschema@._pattern_declarations(rel) d WHERE d.pattern IN ('tree', 'tree_attach') AND d.name = _tree_check_others.name) THEN
    RAISE EXCEPTION 'table % has a tree pattern named "%" already', base, name USING ERRCODE = 'duplicate_object';
  END IF;
  IF EXISTS (SELECT FROM @extschema@._pattern_declarations(rel) d
               CROSS JOIN unnest('{parent,ancestors,path,children,depth}'::text[]) theirs (option) CROSS JOIN unnest(fields) ours (path)
             WHERE d.pattern IN ('tree', 'tree_attach') AND @extschema@.bson_get_text(d.options, 'doc_column') = doc
               AND @extschema@._pattern_paths_overlap(@extschema@.bson_get_text(d.options, theirs.option), ours.path)) THEN
    RAISE EXCEPTION 'table % has a tree pattern that keeps one of these fields already', base USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;
COMMENT ON FUNCTION _tree_check_others(regclass, text, text, text, text[]) IS 'error 42710 or 22023 when another tree declaration of the table is in the way';

-- The name of a trigger of a declaration, told apart by its function and what it fires on: the one it has, or a new one.
CREATE FUNCTION _tree_trigger_name(rel regclass, pattern text, name text, label text, type int) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(
    (SELECT t.tgname::text FROM pg_trigger t
     WHERE t.tgrelid = $1 AND t.tgtype = $5 AND t.tgfoid = format('@extschema@.%I', $2 || '_trigger')::regproc
       AND (t.tgargs = convert_to('of', 'UTF8') || '\x00'::bytea || convert_to($3, 'UTF8') || '\x00'::bytea
            OR t.oid = (SELECT d.trigger_oid FROM @extschema@._pattern_declarations($1) d WHERE d.pattern = $2 AND d.name = $3))),
    @extschema@._pattern_trigger_name($1, 'zz_docpatterns_45_' || $2, $3, $4))
$$;
COMMENT ON FUNCTION _tree_trigger_name(regclass, text, text, text, int) IS 'name of a trigger of a tree declaration; type as in pg_trigger';

-- The triggers on the table, made anew when options change. The main one carries the declaration.
CREATE FUNCTION _tree_create_triggers(rel regclass, options bson) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name text := @extschema@.bson_get_text(options, 'name');
  doc text;
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION @extschema@.tree_trigger(%L)',
                 @extschema@._tree_trigger_name(rel, 'tree', name, NULL, 23), rel, options::text);
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER INSERT OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION @extschema@.tree_trigger(%L, %L)',
                 @extschema@._tree_trigger_name(rel, 'tree', name, 'row', 13), rel, 'of', name);
  -- a document that stays where it is passes the condition and costs no entry in the queue of triggers
  SELECT t.doc INTO doc FROM @extschema@._pattern_table(rel, @extschema@._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) t;
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER UPDATE ON %s FOR EACH ROW WHEN (@extschema@.tree_differs(OLD.%I, NEW.%3$I, VARIADIC %L::text[])) '
                 'EXECUTE FUNCTION @extschema@.tree_trigger(%L, %L)',
                 @extschema@._tree_trigger_name(rel, 'tree', name, 'update', 17), rel, doc,
                 array_remove(ARRAY[@extschema@.bson_get_text(options, 'node_id'), @extschema@.bson_get_text(options, @extschema@.bson_get_text(options, 'truth')),
                                    CASE WHEN @extschema@.bson_exists(options, 'children') THEN @extschema@.bson_get_text(options, 'order_by') END], NULL)::text, 'of', name);
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH STATEMENT EXECUTE FUNCTION @extschema@.tree_trigger(%L, %L)',
                 @extschema@._tree_trigger_name(rel, 'tree', name, 'statement', 28), rel, 'of', name);
END
$$;
COMMENT ON FUNCTION _tree_create_triggers(regclass, bson) IS 'triggers of the tree pattern on its table';

-- The indexes of a declaration as SQL text behind ON <table>, and how the catalog shows their columns.
CREATE FUNCTION _tree_indexes(rel regclass, pattern text, name text, OUT kind text, OUT is_unique boolean, OUT definition text, OUT shown text)
RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT i.kind, i.is_unique, i.definition, replace(i.shown, '::pg_catalog.text', '::text')
  FROM @extschema@._pattern_declarations($1) d,
    LATERAL (SELECT @extschema@._tree_expressions($1, $2, $3, NULL) AS e, @extschema@.bson_get_text(d.options, 'ancestors') AS ancestors, @extschema@.bson_get_text(d.options, 'path') AS path,
                    (SELECT t.doc FROM @extschema@._pattern_table($1, @extschema@._pattern_doc_column($1, @extschema@.bson_get_text(d.options, 'doc_column'))) t) AS doc) x,
    LATERAL (SELECT 'id' AS kind, true AS is_unique, format('((%s))', e[1]) AS definition, e[1] AS shown
               WHERE e[1] IS NOT NULL AND @extschema@.bson_get_text(d.options, 'id_is_key') IS DISTINCT FROM 'true'
             UNION ALL SELECT 'parent', false, format('((%s))', e[2]), e[2]
             UNION ALL SELECT 'ancestors', false, format('((%s))', e[3]), e[3] WHERE e[3] IS NOT NULL
             UNION ALL SELECT 'search', false, format('USING gin (%I @extschema@.bson_ops (paths=%L))', x.doc, concat_ws(', ', x.ancestors, x.path)), NULL
               WHERE (x.ancestors IS NOT NULL OR x.path IS NOT NULL) AND @extschema@.bson_get_text(d.options, 'search_index') = 'true') i
  WHERE d.pattern = $2 AND d.name = $3
$$;
COMMENT ON FUNCTION _tree_indexes(regclass, text, text) IS 'the indexes that a tree declaration needs';

-- An index of the table that is what a declaration needs, or NULL.
CREATE FUNCTION _tree_index_find(rel regclass, is_unique boolean, definition text, shown text) RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT i.indexrelid::regclass
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
  WHERE i.indrelid = $1 AND i.indnatts = 1 AND i.indpred IS NULL AND i.indisvalid AND (i.indisunique AND i.indimmediate OR NOT $2)
    AND CASE WHEN $4 IS NULL THEN strpos(pg_get_indexdef(i.indexrelid), $3) > 0
             ELSE a.amname = 'btree' AND pg_get_indexdef(i.indexrelid, 1, false) IN ($4, '(' || $4 || ')') AND i.indoption[0] & 1 = 0 END
  ORDER BY i.indexrelid LIMIT 1
$$;
COMMENT ON FUNCTION _tree_index_find(regclass, boolean, text, text) IS 'an index of the table with that definition, or NULL';

CREATE FUNCTION _tree_create_indexes(rel regclass, pattern text, name text) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  i record;
BEGIN
  FOR i IN SELECT x.* FROM @extschema@._tree_indexes(rel, pattern, name) x LOOP
    IF @extschema@._tree_index_find(rel, i.is_unique, i.definition, i.shown) IS NULL THEN
      EXECUTE format('CREATE %sINDEX ON %s %s', CASE WHEN i.is_unique THEN 'UNIQUE ' ELSE '' END, rel, i.definition);
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION _tree_create_indexes(regclass, text, text) IS 'makes the indexes of a tree declaration that are not there yet';
