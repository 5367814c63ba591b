-- The computed pattern: fields that are totals of the rows of another table. Its triggers are in
-- src/patterns/computed/ and src/kit/derive/, functions shared by patterns of two tables in
-- derive.sql.

CREATE FUNCTION docpatterns.computed_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_computed_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.computed_trigger() IS
  'trigger of the tables of a computed pattern; made by computed_enable';

CREATE FUNCTION docpatterns._computed_fields(options bson, doc_column text, OUT field text,
  OUT search text, OUT expression text, OUT need_key boolean)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_computed_fields' LANGUAGE C STABLE;
COMMENT ON FUNCTION docpatterns._computed_fields(bson, text) IS
  'the fields of a computed declaration, and the expressions of the indexes that they need on the '
  'source; errors 22023 and 0A000 for what is wrong with them';

CREATE FUNCTION docpatterns._computed_strip(doc bson, options bson, fields boolean) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_computed_strip' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION docpatterns._computed_strip(bson, bson, boolean) IS
  'the document without the state of a computed declaration, and without its fields if that is '
  'wanted';

CREATE FUNCTION docpatterns._computed_recompute(rel regclass, name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_computed_recompute' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._computed_recompute(regclass, text) IS
  'recomputes all documents of a declaration; returns how many were written; error 42501 unless '
  'the caller owns the table';

CREATE FUNCTION docpatterns._computed_faults(rel regclass, name text, link bson_value, doc bson,
  OUT what text, OUT expected text, OUT found text)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_computed_faults' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 1000
  ROWS 1;
COMMENT ON FUNCTION docpatterns._computed_faults(regclass, text, bson_value, bson) IS
  'computed fields of a document that are not those of its group; error 42501 unless the caller '
  'owns the table';

-- Declaring ---------------------------------------------------------------------------------------

CREATE FUNCTION computed_enable(
  rel regclass, source regclass, on_field text, fields bson, target_field text DEFAULT NULL,
  filter bson DEFAULT NULL,
  order_by bson DEFAULT NULL, create_missing boolean DEFAULT false, mode text DEFAULT 'immediate',
  name text DEFAULT NULL, doc_column text DEFAULT NULL, source_doc_column text DEFAULT NULL) RETURNS
  text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  s record;
  link_id text := replace(gen_random_uuid()::text, '-', '');
  options @extschema@.bson;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  SELECT q.doc INTO s FROM docpatterns._derive_source(rel, source, source_doc_column) q;
  PERFORM docpatterns._shard_require_together(rel, t.doc, target_field, source, s.doc, on_field);
  name := coalesce(name, (SELECT k FROM @extschema@.bson_keys(fields) k LIMIT 1));
  options := docpatterns._pattern_declare(rel, 'computed', @extschema@.bson_build(
    'name', name, 'on_field', on_field, 'fields', fields, 'mode', mode,
    'create_missing', create_missing, 'target_field', target_field, 'filter', filter,
    'order_by', order_by, 'doc_column', t.doc, 'source_doc_column', s.doc,
    'view', CASE WHEN mode = 'on_read' THEN
              docpatterns._pattern_relation_name(t.schema_name, t.table_name, name, 'view') END,
    'link_id', CASE WHEN mode <> 'on_read' THEN link_id END));
  IF mode = 'deferred' THEN
    options := @extschema@.bson_set(options, 'second_link_id',
        docpatterns._derive_create_queue(rel, 'computed', name));
  END IF;
  PERFORM docpatterns._computed_create_triggers(rel, options);
  IF mode = 'on_read' THEN
    PERFORM docpatterns._computed_create_view(rel, source, options);
  ELSE
    PERFORM docpatterns._derive_source_triggers(source, 'computed', name, link_id);
    PERFORM docpatterns._pattern_anchor(rel, name);
    PERFORM docpatterns._computed_create_indexes(rel, source, options);
    IF docpatterns._pattern_notice_held(rel, name) THEN
      NULL;
    ELSIF EXISTS (SELECT FROM docpatterns._pattern_nonempty(rel) n WHERE n)
        OR EXISTS (SELECT FROM docpatterns._pattern_nonempty(source) n WHERE n) THEN
      RAISE NOTICE 'table "%" or "%" already has rows', docpatterns._relname(rel),
          docpatterns._relname(source)
        USING HINT = format('Run CALL pattern_build(%L, %L) to compute their documents.',
            t.base, name);
    END IF;
  END IF;
  RETURN name;
END
$$;
COMMENT ON FUNCTION computed_enable(regclass, regclass, text, bson, text, bson, bson, boolean, text,
  text, text, text) IS
  'Declares that fields of the documents of rel are accumulators over the documents of source '
  'whose on_field equals their target_field (default: the primary key). Returns the name of the '
  'declaration. Locks both tables against writers and builds missing indexes. Errors: 22004, 22023 '
  'or 0A000 options and fields that do not fit, 42710 the name exists, 42501 unless the caller '
  'owns both tables';

-- Raises errors in options.
CREATE FUNCTION docpatterns._computed_verify(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  target_field text := @extschema@.bson_get_text(options, 'target_field');
BEGIN
  IF @extschema@.bson_get_text(options, 'create_missing') = 'true'
     AND @extschema@.bson_get_text(options, 'mode') = 'on_read' THEN
    RAISE EXCEPTION 'option "create_missing" cannot be combined with mode "on_read"'
      USING ERRCODE = 'invalid_parameter_value',
      HINT = 'Omit one of them.';
  END IF;
  -- accumulators that cannot be compiled are errors here
  IF EXISTS (SELECT FROM docpatterns._computed_fields(options, NULL) AS o
             WHERE docpatterns._pattern_paths_overlap(
                     format('"%s"', replace(o.field, '"', '""')), target_field)) THEN
    RAISE EXCEPTION 'target_field must not be a computed field'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._computed_verify(regclass, bson) IS
  'errors 22023 and 0A000 for options of a computed pattern that do not fit each other';

-- The triggers on the target, created again when options change. The main one has the declaration.
CREATE FUNCTION docpatterns._computed_create_triggers(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  declared text := @extschema@.bson_get_text(options, 'name');
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW %s '
      'EXECUTE FUNCTION docpatterns.computed_trigger(%L)',
                 docpatterns._pattern_own_trigger(rel, 80, 'computed', declared, NULL, 23), rel,
                 CASE WHEN @extschema@.bson_get_text(options, 'mode') = 'on_read' THEN
                   'WHEN (false)' ELSE '' END, options::text);
  IF @extschema@.bson_get_text(options, 'mode') <> 'on_read' THEN
    PERFORM docpatterns._pattern_statement_trigger(rel, 80, 'computed', declared, 'late', 20,
        'AFTER INSERT OR UPDATE');
  END IF;
  -- a document whose group has rows in the source is made again
  IF @extschema@.bson_get_text(options, 'create_missing') = 'true' THEN
    EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER DELETE ON %s FOR EACH ROW EXECUTE FUNCTION '
        'docpatterns.computed_trigger(%L, %L)',
                   docpatterns._pattern_own_trigger(rel, 80, 'computed', declared, 'row', 9), rel,
                   'of', declared);
    PERFORM docpatterns._pattern_statement_trigger(rel, 80, 'computed', declared, 'deleted', 40,
        'AFTER DELETE OR TRUNCATE');
  END IF;
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._computed_create_triggers(regclass, bson) IS
  'triggers of the computed pattern on the table with the fields';

-- The indexes by which groups and target rows are found.
CREATE FUNCTION docpatterns._computed_create_indexes(rel regclass, source regclass, options bson)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  doc text := @extschema@.bson_get_text(options, 'doc_column');
  source_doc text := @extschema@.bson_get_text(options, 'source_doc_column');
  name text := @extschema@.bson_get_text(options, 'name');
  target_field text := @extschema@.bson_get_text(options, 'target_field');
  link text;
  f record;
  made boolean := false;
BEGIN
  IF target_field IS NOT NULL AND NOT docpatterns._computed_by_key(rel, target_field) THEN
    PERFORM docpatterns._derive_create_index(rel, 'computed', name,
        ARRAY[format('(%I OPERATOR(@extschema@.->) %L::text)', doc, target_field)]);
  END IF;
  IF source_doc IS NULL THEN
    RETURN;   -- a relation of measurements finds its groups by itself
  END IF;
  link := format('(%I OPERATOR(@extschema@.->) %L::text)', source_doc,
      @extschema@.bson_get_text(options, 'on_field'));
  FOR f IN SELECT DISTINCT q.search, q.expression
      FROM docpatterns._computed_fields(options, source_doc) q WHERE q.search IS NOT NULL
      ORDER BY 1, 2 LOOP
    PERFORM docpatterns._derive_create_index(source, 'computed', name,
      CASE WHEN f.search = 'key' THEN
        ARRAY[link] || (SELECT p.keys FROM docpatterns._pattern_table(source, source_doc) p)
           ELSE ARRAY[link, format('(%s) NULLS FIRST', f.expression)] END);
    made := true;
  END LOOP;
  IF NOT made THEN
    PERFORM docpatterns._derive_create_index(source, 'computed', name, ARRAY[link]);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._computed_create_indexes(regclass, regclass, bson) IS
  'indexes of a computed pattern on both tables, unless equivalent ones are there';

CREATE FUNCTION docpatterns._computed_by_key(rel regclass, target_field text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT $2 IS NULL OR ($2 = '_id' AND EXISTS (
    SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
    WHERE i.indrelid = $1 AND i.indisprimary AND i.indnkeyatts = 1 AND a.attname = '_id'
      AND a.atttypid = '@extschema@.bson_value'::regtype))
$$;
COMMENT ON FUNCTION docpatterns._computed_by_key(regclass, text) IS
  'whether the documents of a group are found by their primary key';

-- The value by which a target row t is linked, a bson_value.
CREATE FUNCTION docpatterns._computed_target_key(rel regclass, options bson) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN NOT docpatterns._computed_by_key($1,
      @extschema@.bson_get_text($2, 'target_field'))
    THEN format('(t.%I OPERATOR(@extschema@.->) %L::text)', p.doc,
        @extschema@.bson_get_text($2, 'target_field'))
    ELSE format(CASE WHEN cardinality(p.keys) = 1 THEN '@extschema@.to_bson(%s)'
        ELSE '@extschema@.bson_array(%s)' END,
                (SELECT string_agg(format('t.%I', k), ', ' ORDER BY n) FROM unnest(p.keys)
                    WITH ORDINALITY AS u (k, n))) END
  FROM docpatterns._pattern_table($1,
      docpatterns._pattern_doc_column($1, @extschema@.bson_get_text($2, 'doc_column'))) p
$$;
COMMENT ON FUNCTION docpatterns._computed_target_key(regclass, bson) IS
  'SQL text: the key of the group of a target row t';

-- A declaration with mode on_read has a view instead of triggers.
CREATE FUNCTION docpatterns._computed_create_view(rel regclass, source regclass, options bson)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  view_name text;
  fields text := quote_literal((options OPERATOR(@extschema@.->) 'fields'::text)::text);
  order_by text := CASE WHEN @extschema@.bson_exists(options, 'order_by') THEN
    quote_literal((options OPERATOR(@extschema@.->) 'order_by'::text)::text) END;
  source_doc text := @extschema@.bson_get_text(options, 'source_doc_column');
  on_field text := @extschema@.bson_get_text(options, 'on_field');
  doc text := CASE WHEN source_doc IS NULL THEN '@extschema@.row_to_bson(s.*)' ELSE
    format('s.%I', source_doc) END;
  matches text := CASE WHEN source_doc IS NULL THEN format('@extschema@.to_bson(s.%I)', on_field)
    ELSE format('(%s OPERATOR(@extschema@.->) %L::text)', doc, on_field) END;
  nothing text;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      @extschema@.bson_get_text(options, 'doc_column')) p;
  view_name := format('%I.%I', t.schema_name, @extschema@.bson_get_text(options, 'view'));
  -- a group without rows has fields too
  nothing := quote_literal(docpatterns._computed_strip(@extschema@.bson_accumulate_set('{}',
          (options OPERATOR(@extschema@.->) 'fields'::text)::@extschema@.bson, '{}'),
    @extschema@.bson_build('name', '', 'fields', options OPERATOR(@extschema@.->) 'fields'::text),
    false)::text);
  EXECUTE format('CREATE VIEW %s WITH (security_invoker = true) AS SELECT %s FROM %s AS t CROSS '
      'JOIN LATERAL '
                 '(SELECT @extschema@.bson_accumulate(%s, %s::@extschema@.bson%s) FROM %s AS s '
                   'WHERE %s OPERATOR(@extschema@.=) %s%s) AS f (fields) WHERE %s',
    view_name,
    (SELECT string_agg(CASE WHEN a.attname = t.doc
                         THEN format('t.%1$I OPERATOR(@extschema@.||) coalesce(f.fields, '
                             '%2$s::@extschema@.bson) AS %1$I', a.attname, nothing)
                         ELSE format('t.%I', a.attname) END, ', ' ORDER BY a.attnum)
     FROM pg_attribute a WHERE a.attrelid = rel AND a.attnum > 0 AND NOT a.attisdropped),
    t.base, doc, fields, CASE WHEN order_by IS NULL THEN '' ELSE
    format(', %s::@extschema@.bson', order_by)
    END, source, matches, docpatterns._computed_target_key(rel, options),
    CASE WHEN @extschema@.bson_exists(options, 'filter')
         THEN format(' AND %s OPERATOR(@extschema@.@@) %L::@extschema@.bson', doc,
             (options OPERATOR(@extschema@.->) 'filter'::text)::text) ELSE '' END,
    docpatterns._pattern_mark('computed', @extschema@.bson_get_text(options, 'name')));
  EXECUTE format('COMMENT ON VIEW %s IS %L', view_name,
      format('documents of %s with the computed fields "%s"', t.base,
        @extschema@.bson_get_text(options, 'name')));
  PERFORM docpatterns._pattern_copy_grants(rel, view_name::regclass);
  EXECUTE format('ALTER VIEW %s OWNER TO %s', view_name, t.owner::regrole);
  IF source_doc IS NOT NULL THEN
    PERFORM docpatterns._derive_create_index(source, 'computed',
        @extschema@.bson_get_text(options, 'name'),
        ARRAY[format('(%I OPERATOR(@extschema@.->) %L::text)', source_doc, on_field)]);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._computed_create_view(regclass, regclass, bson) IS
  'the view <table>_<name>_view of a computed declaration of mode on_read';
