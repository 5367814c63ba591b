-- Documents of other tables that hang on nodes of a tree. The triggers are in src/patterns/tree_attach.c.

CREATE FUNCTION tree_attach_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_tree_attach_trigger' LANGUAGE C;
COMMENT ON FUNCTION tree_attach_trigger() IS 'trigger of tables whose documents hang on nodes of a tree, and of the tree; made by tree_attach';

CREATE FUNCTION tree_attach(
  rel regclass, tree regclass, parent text, ancestors text DEFAULT NULL, ancestors_order text DEFAULT 'root_first',
  path text DEFAULT NULL, separator text DEFAULT '.', path_lead boolean DEFAULT true, depth text DEFAULT NULL,
  search_index boolean DEFAULT true, tree_name text DEFAULT NULL, name text DEFAULT NULL, doc_column text DEFAULT NULL) RETURNS text
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  n bigint;
  options @extschema@.bson;
  pair text := replace(gen_random_uuid()::text, '-', '');
BEGIN
  SELECT p.* INTO t FROM @extschema@._pattern_table(rel, doc_column) p;
  PERFORM @extschema@._pattern_require_owner(rel);
  IF tree IS NULL OR parent IS NULL OR search_index IS NULL THEN
    RAISE EXCEPTION 'tree, parent and search_index must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  PERFORM @extschema@._pattern_require_owner(tree);
  IF rel = tree THEN
    RAISE EXCEPTION 'the documents of a tree are its nodes' USING ERRCODE = 'invalid_parameter_value', HINT = 'Documents of other tables can hang on it.';
  END IF;
  SELECT count(*), min(d.name) INTO n, tree_name FROM @extschema@._pattern_declarations(tree) d
    WHERE d.pattern = 'tree' AND (tree_attach.tree_name IS NULL OR d.name = tree_attach.tree_name);
  IF n = 0 THEN
    RAISE EXCEPTION 'table % has no such tree pattern', tree USING ERRCODE = 'undefined_object';
  ELSIF n > 1 THEN
    RAISE EXCEPTION 'table % has more than one tree pattern', tree USING ERRCODE = 'invalid_parameter_value', HINT = 'Say which one with the argument "tree_name".';
  END IF;
  IF (SELECT c.relowner <> t.owner FROM pg_class c WHERE c.oid = tree) THEN
    RAISE EXCEPTION 'tables % and % have different owners', t.base, tree USING ERRCODE = 'insufficient_privilege';
  END IF;
  PERFORM @extschema@._tree_check_forms(parent, ancestors, ancestors_order, path, separator, false, path_lead, NULL, depth, NULL);
  name := coalesce(name, parent);
  PERFORM @extschema@._tree_check_others(rel, t.base, t.doc, name, ARRAY[parent, ancestors, path, depth]);

  options := @extschema@.bson_build('name', name, 'parent', parent);
  IF ancestors IS NOT NULL THEN options := @extschema@.bson_set(@extschema@.bson_set(options, 'ancestors', ancestors), 'ancestors_order', ancestors_order); END IF;
  IF path IS NOT NULL THEN
    options := @extschema@.bson_set(@extschema@.bson_set(@extschema@.bson_set(options, 'path', path), 'separator', separator), 'path_lead', path_lead);
  END IF;
  IF depth IS NOT NULL THEN options := @extschema@.bson_set(options, 'depth', depth); END IF;
  options := @extschema@.bson_set(@extschema@.bson_set(@extschema@.bson_set(@extschema@.bson_set(options, 'search_index', search_index),
               'tree_name', tree_name), 'doc_column', t.doc), 'pair', pair);

  EXECUTE format('CREATE TRIGGER %I AFTER TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION @extschema@.tree_attach_trigger(%L, %L, %L)',
                 @extschema@._pattern_trigger_name(tree, 'zz_docpatterns_46_tree_attach', name, 'side'), tree, 'side', pair, name);
  PERFORM @extschema@._tree_attach_create_triggers(rel, options);
  PERFORM @extschema@._tree_create_indexes(rel, 'tree_attach', name);
  IF EXISTS (SELECT FROM @extschema@._pattern_nonempty(rel) e WHERE e) THEN
    RAISE NOTICE 'table % has rows already', t.base
      USING HINT = format('CALL pattern_build(%L, %L) brings them in line; new writes are kept in line from now on.', t.base, name);
  END IF;
  RETURN name;
END
$$;
COMMENT ON FUNCTION tree_attach(regclass, regclass, text, text, text, text, text, boolean, text, boolean, text, text, text) IS
  'declares that the documents of a table hang on nodes of a tree: the field parent names the node, and the forms that are named (ancestors, path, depth, the node included) follow it. '
  'Returns the name of the declaration. What happens to documents of a node that is deleted is said by the tree''s on_delete. Makes indexes; locks both tables against writers; '
  'errors 22023 for options that do not fit, 42704 if the table has no tree, 42710 for a second declaration of the name, 42501 unless the caller owns both tables';

CREATE FUNCTION _tree_attach_create_triggers(rel regclass, options bson) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name text := @extschema@.bson_get_text(options, 'name');
  statement_name text;
  doc text;
  part record;
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION @extschema@.tree_attach_trigger(%L)',
                 @extschema@._tree_trigger_name(rel, 'tree_attach', name, NULL, 23), rel, options::text);
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER INSERT ON %s FOR EACH ROW EXECUTE FUNCTION @extschema@.tree_attach_trigger(%L, %L)',
                 @extschema@._tree_trigger_name(rel, 'tree_attach', name, 'row', 5), rel, 'of', name);
  SELECT t.doc INTO doc FROM @extschema@._pattern_table(rel, @extschema@._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) t;
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER UPDATE ON %s FOR EACH ROW WHEN (@extschema@.tree_differs(OLD.%I, NEW.%3$I, VARIADIC %L::text[])) '
                 'EXECUTE FUNCTION @extschema@.tree_attach_trigger(%L, %L)',
                 @extschema@._tree_trigger_name(rel, 'tree_attach', name, 'update', 17), rel, doc, ARRAY[@extschema@.bson_get_text(options, 'parent')]::text, 'of', name);
  -- statement triggers are not inherited by partitions
  statement_name := @extschema@._tree_trigger_name(rel, 'tree_attach', name, 'statement', 20);
  FOR part IN SELECT p.relid FROM pg_partition_tree(rel) p UNION SELECT rel LOOP
    EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER INSERT OR UPDATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION @extschema@.tree_attach_trigger(%L, %L)',
                   statement_name, part.relid::regclass, 'of', name);
  END LOOP;
END
$$;
COMMENT ON FUNCTION _tree_attach_create_triggers(regclass, bson) IS 'triggers of a table whose documents hang on nodes of a tree';
