-- Documents of other tables attached to nodes of a tree. The triggers are in
-- src/patterns/tree/attach.c.

CREATE FUNCTION docpatterns.tree_attach_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_tree_attach_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.tree_attach_trigger() IS
  'trigger function of tables with documents attached to a tree, and of the tree, for tree_attach';

CREATE FUNCTION tree_attach(
  rel regclass, tree regclass, parent text, ancestors text DEFAULT NULL,
  ancestors_order text DEFAULT 'root_first',
  path text DEFAULT NULL, separator text DEFAULT '.', path_lead boolean DEFAULT true,
  depth text DEFAULT NULL,
  search_index boolean DEFAULT true, tree_name text DEFAULT NULL, name text DEFAULT NULL,
    doc_column text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  options @extschema@.bson;
  link_id text := replace(gen_random_uuid()::text, '-', '');
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  PERFORM docpatterns._pattern_refuse_partition(rel);
  PERFORM docpatterns._pattern_require_same_owner(rel, tree);
  IF rel = tree THEN
    RAISE EXCEPTION 'cannot attach documents of a tree to the same tree'
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Attach documents of another table.';
  END IF;
  tree_name := (SELECT f.name FROM docpatterns._pattern_find(tree, tree_name, 'tree') f);
  PERFORM docpatterns._shard_require_beside(rel, tree);
  options := docpatterns._pattern_declare(rel, 'tree_attach', @extschema@.bson_build(
    'name', coalesce(name, parent), 'parent', parent, 'ancestors', ancestors,
    'ancestors_order', ancestors_order, 'path', path, 'separator', separator,
    'path_lead', path_lead, 'depth', depth, 'search_index', search_index, 'tree_name', tree_name,
    'doc_column', t.doc, 'link_id', link_id));
  name := @extschema@.bson_get_text(options, 'name');

  EXECUTE format('CREATE TRIGGER %I AFTER TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION '
      'docpatterns.tree_attach_trigger(%L, %L, %L)',
                 docpatterns._pattern_trigger_name(tree, 'zz_docpatterns_46_tree_attach', name,
                   'side'), tree, 'side', link_id, name);
  PERFORM docpatterns._tree_attach_create_triggers(rel, options);
  PERFORM docpatterns._tree_create_indexes(rel, 'tree_attach', name);
  PERFORM docpatterns._pattern_notice_rows(rel, name);
  RETURN name;
END
$$;
COMMENT ON FUNCTION tree_attach(regclass, regclass, text, text, text, text, text, boolean, text,
  boolean, text, text, text) IS
  'Declares that documents of a table belong to nodes of a tree: the field parent names the node, '
  'and the given forms follow it. Returns the name of the declaration. The tree''s on_delete also '
  'applies to these documents. Builds indexes; locks both tables against writers. Errors: 22023 '
  'options that do not fit, 42704 the table has no tree, 42710 the name exists, 42501 unless the '
  'caller owns both tables';

CREATE FUNCTION docpatterns._tree_attach_verify(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM docpatterns._tree_check_forms($1, $2);
END
$$;
COMMENT ON FUNCTION docpatterns._tree_attach_verify(regclass, bson) IS
  'error 22023 for fields of documents on a tree that do not fit each other';

CREATE FUNCTION docpatterns._tree_attach_create_triggers(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name text := @extschema@.bson_get_text(options, 'name');
  doc text;
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.tree_attach_trigger(%L)',
                 docpatterns._pattern_own_trigger(rel, 45, 'tree_attach', name, NULL, 23), rel,
                 options::text);
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER INSERT ON %s FOR EACH ROW EXECUTE FUNCTION '
      'docpatterns.tree_attach_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 45, 'tree_attach', name, 'row', 5), rel,
                 'of', name);
  SELECT t.doc INTO doc FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) t;
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER UPDATE ON %s FOR EACH ROW WHEN '
      '(docpatterns.reference_differs(OLD.%I, NEW.%3$I, %L::text[])) '
                 'EXECUTE FUNCTION docpatterns.tree_attach_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 45, 'tree_attach', name, 'update', 17), rel,
                 doc, ARRAY[@extschema@.bson_get_text(options, 'parent')]::text, 'of', name);
  PERFORM docpatterns._pattern_statement_trigger(rel, 45, 'tree_attach', name, 'statement', 20,
      'AFTER INSERT OR UPDATE');
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._tree_attach_create_triggers(regclass, bson) IS
  'triggers of a table whose documents are attached to nodes of a tree';

-- Verbs -------------------------------------------------------------------------------------------

-- Documents and the nodes that they are attached to, as SQL text: "a" (key, key_row, parent, doc)
-- and the node's "walk".
CREATE FUNCTION docpatterns._tree_attach_sql(rel regclass, name text, result text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  o @extschema@.bson;
  key_list text;
  tree regclass;
BEGIN
  SELECT d.options INTO o FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = 'tree_attach' AND d.name = _tree_attach_sql.name;
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(o, 'doc_column'))) p;
  tree := docpatterns._pattern_side(@extschema@.bson_get_text(o, 'link_id'), rel);
  IF tree IS NULL THEN
    RAISE EXCEPTION 'the tree of the attached documents in table "%" does not exist',
        docpatterns._relname(rel)
      USING ERRCODE = 'undefined_object';
  END IF;
  SELECT string_agg(format('b.%I', k), ', ' ORDER BY n) INTO key_list FROM unnest(t.keys)
    WITH ORDINALITY u (k, n);
  RETURN docpatterns._tree_walk_sql(tree, @extschema@.bson_get_text(o, 'tree_name')) || format($q$,
    a AS (SELECT %1$s AS key, ROW(%2$s) AS key_row, n.parent, b.%3$I AS doc
      FROM %4$s AS b CROSS JOIN LATERAL docpatterns._tree_node(%5$L::regclass, 'tree_attach', %6$L,
          b.%3$I) n WHERE b.%3$I IS NOT NULL),
    f AS (SELECT a.key, a.key_row, 'parent'::text AS what, 'a node'::text AS expected,
      a.parent::text AS found FROM a
        WHERE a.parent IS NOT NULL AND NOT EXISTS (SELECT FROM walk w
            WHERE w.id OPERATOR(@extschema@.=) a.parent)
      UNION ALL SELECT a.key, a.key_row, f.what, f.expected, f.found
      FROM a LEFT JOIN walk w ON w.id OPERATOR(@extschema@.=) a.parent
        CROSS JOIN LATERAL docpatterns._tree_faults(%5$L::regclass, 'tree_attach', %6$L, a.doc,
            docpatterns.bson_concat(w.chain, w.id), NULL) f
      WHERE a.parent IS NULL OR w.id IS NOT NULL)
    $q$, format(CASE WHEN cardinality(t.keys) = 1 THEN '@extschema@.to_bson(%s)'
          ELSE '@extschema@.bson_array(%s)' END, key_list), key_list, t.doc, t.base, rel::oid, name)
      || result;
END
$$;
COMMENT ON FUNCTION docpatterns._tree_attach_sql(regclass, text, text) IS
  'SQL text about documents attached to nodes of a tree, and what is wrong with them (f)';

CREATE FUNCTION docpatterns._tree_attach_check(rel regclass, name text)
  RETURNS TABLE (key bson_value, what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY EXECUTE docpatterns._tree_attach_sql(rel, name,
      'SELECT f.key, f.what, f.expected, f.found FROM f');
  RETURN QUERY SELECT NULL::@extschema@.bson_value, 'index'::text, i.definition, 'missing'::text
    FROM docpatterns._tree_indexes(rel, 'tree_attach', name) i
      WHERE docpatterns._tree_index_find(rel, i.is_unique, i.definition, i.shown) IS NULL;
END
$$;
COMMENT ON FUNCTION docpatterns._tree_attach_check(regclass, text) IS
  'violated invariants of documents attached to nodes of a tree';

CREATE FUNCTION docpatterns._tree_attach_move_held(rel regclass, name text, key bson_value)
  RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._tree_take_edges($1, 'tree_attach', $2, $3)
$$;
COMMENT ON FUNCTION docpatterns._tree_attach_move_held(regclass, text, bson_value) IS
  'writes the parent that the ancestors of a document imply';

CREATE FUNCTION docpatterns._tree_attach_pending(rel regclass, name text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._tree_attach_sql($1, $2,
      'SELECT s.key_row AS key FROM (SELECT DISTINCT ON (f.key) f.key_row FROM f) s')
$$;
COMMENT ON FUNCTION docpatterns._tree_attach_pending(regclass, text) IS
  'SQL text: keys of documents that may be inconsistent with the nodes that they are attached to';

CREATE FUNCTION docpatterns._tree_attach_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM docpatterns._tree_create_indexes(rel, 'tree_attach', name);
  RETURN docpatterns._pattern_repair_rows(rel, name, docpatterns._tree_attach_pending(rel, name));
END
$$;
COMMENT ON FUNCTION docpatterns._tree_attach_repair(regclass, text) IS
  'pattern_repair of documents attached to nodes of a tree';

CREATE FUNCTION docpatterns._tree_attach_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  old @extschema@.bson;
BEGIN
  SELECT d.options INTO old FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = 'tree_attach' AND d.name = _tree_attach_alter.name;
  PERFORM docpatterns._tree_attach_create_triggers(rel, options);
  PERFORM docpatterns._tree_create_indexes(rel, 'tree_attach', name);
  IF @extschema@.bson_unset(options, 'search_index')::text
     <> @extschema@.bson_unset(old, 'search_index')::text THEN
    RAISE NOTICE 'new options apply to existing documents after CALL pattern_build(%, %)',
      quote_literal(rel), quote_literal(name);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._tree_attach_alter(regclass, text, bson) IS
  'pattern_alter of documents attached to nodes of a tree';

CREATE FUNCTION docpatterns._tree_attach_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o @extschema@.bson;
  i record;
  tree regclass;
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  SELECT d.options INTO o FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = 'tree_attach' AND d.name = _tree_attach_disable.name;
  FOR i IN SELECT docpatterns._tree_index_find(rel, x.is_unique, x.definition, x.shown) AS index
    FROM docpatterns._tree_indexes(rel, 'tree_attach', name) x
           WHERE x.kind = ANY (ARRAY(SELECT e::text
                 FROM @extschema@.bson_elements(o OPERATOR(@extschema@.->) 'made'::text) e)) LOOP
    IF i.index IS NOT NULL THEN
      EXECUTE format('DROP INDEX %s', i.index);
    END IF;
  END LOOP;
  tree := docpatterns._pattern_side(@extschema@.bson_get_text(o, 'link_id'), rel);
  PERFORM docpatterns._pattern_drop_side_triggers(tree, @extschema@.bson_get_text(o, 'link_id'),
      name);
  PERFORM docpatterns._pattern_drop_triggers(rel, 'tree_attach', name);
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._tree_attach_disable(regclass, text, bson) IS
  'pattern_disable of documents attached to nodes of a tree: leaves them unchanged';
