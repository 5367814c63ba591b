-- The roll-up pattern: totals of a table by spans of time or along a tree. Its triggers are in
-- src/patterns/rollup/ and src/kit/derive/, functions shared by patterns of two tables in
-- derive.sql.

CREATE FUNCTION docpatterns.rollup_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_rollup_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.rollup_trigger() IS
  'trigger of the tables of a roll-up; made by rollup_enable';

CREATE FUNCTION docpatterns._rollup_recompute(rel regclass, name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_rollup_recompute' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._rollup_recompute(regclass, text) IS
  'recomputes all documents of a roll-up; returns how many were written; error 42501 unless the '
  'caller owns the table';

CREATE FUNCTION docpatterns._rollup_check_documents(rel regclass, name text, OUT key bson_value,
  OUT what text, OUT expected text, OUT found text) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_rollup_check_documents' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._rollup_check_documents(regclass, text) IS
  'documents of a roll-up that are not the totals of the source';

CREATE FUNCTION docpatterns._rollup_verify(rel regclass, name text) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_rollup_verify' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._rollup_verify(regclass, text) IS
  'compiles a declaration: errors for what is wrong with its fields, filter, levels, time zone and '
  'paths';

-- Declaring ---------------------------------------------------------------------------------------

CREATE FUNCTION rollup_enable(
  rel regclass, name text, fields bson, time_field text DEFAULT NULL, levels text[] DEFAULT NULL,
  group_by text[] DEFAULT '{}', tree regclass DEFAULT NULL,
  filter bson DEFAULT NULL, order_by bson DEFAULT NULL, time_zone text DEFAULT 'UTC',
  target text DEFAULT NULL,
  doc_column text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  link_id text := replace(gen_random_uuid()::text, '-', '');
  tree_link_id text := replace(gen_random_uuid()::text, '-', '');
  options @extschema@.bson;
  parts text[];
  totals regclass;
BEGIN
  PERFORM docpatterns._pattern_require_owner(rel);
  IF (tree IS NULL) = (time_field IS NULL) THEN
    RAISE EXCEPTION 'a roll-up requires either time_field and levels, or a tree'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF tree IS NOT NULL AND (levels IS NOT NULL OR cardinality(group_by) <> 1) THEN
    RAISE EXCEPTION 'a roll-up along a tree cannot have levels, and group_by must be the field '
      'with the node'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF time_field IS NOT NULL AND coalesce(cardinality(levels), 0) = 0 THEN
    RAISE EXCEPTION 'levels must not be empty' USING ERRCODE = 'invalid_parameter_value',
      HINT = 'Specify units such as {hour,day,month,year}, or intervals.';
  END IF;
  options := docpatterns._pattern_declare(rel, 'rollup', @extschema@.bson_build(
    'name', name, 'fields', fields, 'group_by', group_by, 'link_id', link_id, 'time_field',
        time_field,
    'levels', levels, 'time_zone', time_zone,
    'second_link_id', CASE WHEN tree IS NOT NULL THEN tree_link_id END, 'filter', filter,
    'order_by', order_by, 'doc_column', docpatterns._derive_source(rel, rel, doc_column)));
  IF EXISTS (SELECT FROM unnest(group_by || CASE
        WHEN tree IS NULL THEN '{_id,level,start,_computed}' ELSE '{_id,_computed}' END::text[]
                                || ARRAY(SELECT format('"%s"', replace(k, '"', '""'))
                                  FROM @extschema@.bson_keys(fields) k))
                                  WITH ORDINALITY AS a (path, n),
                         unnest(group_by || CASE WHEN tree IS NULL THEN
                           '{_id,level,start,_computed}' ELSE '{_id,_computed}' END::text[]
                                || ARRAY(SELECT format('"%s"', replace(k, '"', '""'))
                                  FROM @extschema@.bson_keys(fields) k))
                                  WITH ORDINALITY AS b (path, n)
             WHERE a.n < b.n AND docpatterns._pattern_paths_overlap(a.path, b.path)) THEN
    RAISE EXCEPTION 'fields, group_by, _id, level and start must be different fields, none inside '
      'another' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF tree IS NOT NULL THEN
    PERFORM docpatterns._pattern_find(tree, NULL, 'tree');
  END IF;

  parts := parse_ident(coalesce(target, quote_ident(name)));
  PERFORM docpatterns._pattern_require_no_table(format('%I.%I', CASE
        WHEN cardinality(parts) > 1 THEN parts[1]
            ELSE (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE c.oid = rel) END, parts[cardinality(parts)]));
  totals := @extschema@.collection_create(format('%I.%I', CASE
        WHEN cardinality(parts) > 1 THEN parts[1]
              ELSE (SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                  WHERE c.oid = rel) END, parts[cardinality(parts)]));
  EXECUTE format('COMMENT ON TABLE %s IS %L', totals,
      format('totals of %s; kept by the roll-up "%s"', rel, name));
  PERFORM docpatterns._pattern_keep_table(totals, rel, 'rollup', name, link_id);
  -- the main trigger fires with statements that change no row one by one, and carries the
  -- declaration
  EXECUTE format('CREATE TRIGGER %I %s ON %s FOR EACH STATEMENT EXECUTE FUNCTION '
      'docpatterns.rollup_trigger(%L)',
                 docpatterns._pattern_trigger_name(rel, 'zz_docpatterns_80_rollup', name, NULL),
                 'BEFORE INSERT', rel, options::text);
  PERFORM docpatterns._derive_main_triggers(rel, 'rollup', name);
  IF tree IS NOT NULL THEN
    PERFORM docpatterns._derive_source(rel, tree, NULL);
    PERFORM docpatterns._derive_source_triggers(tree, 'rollup', name, tree_link_id);
  END IF;
  PERFORM docpatterns._pattern_anchor(rel, name);
  PERFORM docpatterns._rollup_verify(rel, name);
  PERFORM docpatterns._rollup_create_indexes(rel, options);
  IF docpatterns._pattern_nonempty(rel) THEN
    RAISE NOTICE 'table "%" already has rows', docpatterns._relname(rel)
      USING HINT = format('Run SELECT pattern_repair(%L, %L) to compute their totals.',
          rel::text, name);
  END IF;
  RETURN name;
END
$$;
COMMENT ON FUNCTION rollup_enable(regclass, text, bson, text, text[], text[], regclass, bson, bson,
  text, text, text) IS
  'Declares a roll-up: a collection with one document of totals for each level, group and span of '
  'time in which rel has rows, or for each node of a tree. Returns the name of the declaration. '
  'Locks the tables against writers and builds indexes. Errors: 22023, 22004 or 0A000 options and '
  'fields that do not fit, 42710 or 42P07 a name is taken, 42501 unless the caller owns the tables';

-- The index on the fields of groups and the time.
CREATE FUNCTION docpatterns._rollup_create_indexes(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  doc text := docpatterns._pattern_doc_column(rel,
      @extschema@.bson_get_text(options, 'doc_column'));
BEGIN
  IF @extschema@.bson_exists(options, 'doc_column') THEN
    PERFORM docpatterns._derive_create_index(rel, 'rollup',
        @extschema@.bson_get_text(options, 'name'),
      ARRAY(SELECT format('(%I OPERATOR(@extschema@.->) %L::text)', doc, g::text)
        FROM @extschema@.bson_elements(options OPERATOR(@extschema@.->) 'group_by'::text) g)
      || CASE WHEN @extschema@.bson_exists(options, 'time_field')
              THEN ARRAY[format('(%I OPERATOR(@extschema@.->) %L::text)', doc,
                    @extschema@.bson_get_text(options, 'time_field'))] ELSE '{}' END);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._rollup_create_indexes(regclass, bson) IS
  'index of a roll-up on its source, unless there is one';

-- Verbs -------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._rollup_check(rel regclass, name text) RETURNS TABLE (key bson_value,
  what text, expected text, found text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT c.key, c.what, c.expected, c.found FROM docpatterns._rollup_check_documents($1, $2) c
$$;
COMMENT ON FUNCTION docpatterns._rollup_check(regclass, text) IS 'violated invariants of a roll-up';

CREATE FUNCTION docpatterns._rollup_repair(rel regclass, name text) RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._rollup_recompute($1, $2)
$$;
COMMENT ON FUNCTION docpatterns._rollup_repair(regclass, text) IS 'pattern_repair of a roll-up';

-- One row of the source for each group of the finest level: repairing it also corrects the levels
-- above.
CREATE FUNCTION docpatterns._rollup_pending(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  options @extschema@.bson;
  t record;
  paths text[];
BEGIN
  SELECT d.options INTO options FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = 'rollup' AND d.name = _rollup_pending.name;
  IF NOT @extschema@.bson_exists(options, 'doc_column') THEN
    RAISE EXCEPTION 'source "%" of a roll-up has no primary key to process in batches',
        docpatterns._relname(rel)
      USING ERRCODE = 'feature_not_supported',
        HINT = format('Run SELECT pattern_repair(%L, %L) to compute all documents.',
            rel::text, name);
  END IF;
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) p;
  SELECT array_agg(format('(s.%I OPERATOR(@extschema@.->) %L::text)', t.doc, g::text)) INTO paths
    FROM @extschema@.bson_elements(options OPERATOR(@extschema@.->) 'group_by'::text) g;
  IF @extschema@.bson_exists(options, 'time_field') THEN
    paths := paths || format('docpatterns._rollup_start(%L::regclass, %L, s.%I)', rel::text, name,
        t.doc);
  END IF;
  RETURN format('SELECT DISTINCT ON (%s) ROW(%s) AS key FROM %s AS s ORDER BY %1$s',
    array_to_string(paths, ', '), (SELECT string_agg(format('s.%I', k), ', ')
      FROM unnest(t.keys) k), t.base);
END
$$;
COMMENT ON FUNCTION docpatterns._rollup_pending(regclass, text) IS
  'SQL text: keys of rows of the source, one for each group';

CREATE FUNCTION docpatterns._rollup_start(rel regclass, name text, doc bson) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'dp_rollup_start' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._rollup_start(regclass, text, bson) IS
  'where the span of the finest level begins that a row of the source belongs to, or NULL';

CREATE FUNCTION docpatterns._rollup_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  totals regclass;
BEGIN
  -- a relation of measurements is a foreign table, which is locked when its triggers are dropped
  IF (SELECT c.relkind <> 'f' FROM pg_class c WHERE c.oid = rel) THEN
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  END IF;
  IF @extschema@.bson_get_text(how, 'keep_data') = 'true' THEN
    -- the totals stay behind as an ordinary collection
    SELECT docpatterns._pattern_side(@extschema@.bson_get_text(d.options, 'link_id'),
        _rollup_disable.rel) INTO totals
      FROM docpatterns._pattern_declarations(rel) d WHERE d.pattern = 'rollup'
        AND d.name = _rollup_disable.name;
    IF totals IS NOT NULL THEN
      PERFORM docpatterns._pattern_release_table(totals, rel);
    END IF;
  END IF;
  PERFORM docpatterns._derive_drop(rel, 'rollup', name);
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._rollup_disable(regclass, text, bson) IS
  'pattern_disable of a roll-up: drops the totals, or leaves them as an ordinary collection';
