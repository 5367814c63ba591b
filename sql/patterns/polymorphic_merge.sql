-- The single view: one document merged from several tables, each in a field of its own. Its
-- triggers are in src/patterns/polymorphic/merge.c and src/kit/derive/, functions shared by
-- patterns of two tables in derive.sql. Each source is a declaration of the merged table.

CREATE FUNCTION docpatterns.polymorphic_merge_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_polymorphic_merge_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.polymorphic_merge_trigger() IS
  'trigger of the tables of a single view; made by polymorphic_merge';

CREATE FUNCTION docpatterns._polymorphic_merge_recompute(rel regclass, name text, emptied boolean)
  RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_polymorphic_merge_recompute' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._polymorphic_merge_recompute(regclass, text, boolean) IS
  'recomputes all documents of a single view from one source (emptied: as if it had no rows); '
  'returns how many were written; error 42501 unless the caller owns the table';

CREATE FUNCTION docpatterns._polymorphic_merge_expected(rel regclass, name text, key bson_value)
  RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_polymorphic_merge_expected' LANGUAGE C STABLE STRICT PARALLEL SAFE
  COST 1000;
COMMENT ON FUNCTION docpatterns._polymorphic_merge_expected(regclass, text, bson_value) IS
  'what a source has for a key, NULL if nothing; error 42501 unless the caller owns the table';

CREATE FUNCTION polymorphic_merge(target text, merge_on text, sources text[],
  into_fields text[] DEFAULT NULL, arrays text[] DEFAULT '{}', fields bson DEFAULT NULL,
                                  target_field text DEFAULT NULL, doc_column text DEFAULT NULL)
                                  RETURNS text[]
LANGUAGE docpatterns VOLATILE AS $$
DECLARE
  relations pg_catalog.regclass[] := '{}';
  s pg_catalog.text;
  rel pg_catalog.regclass;
  parts pg_catalog.text[];
BEGIN
  -- names are looked up as the caller's search_path has them
  IF sources IS NULL OR pg_catalog.array_position(sources, NULL) IS NOT NULL OR target IS NULL THEN
    RAISE EXCEPTION 'target and sources must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  FOREACH s IN ARRAY sources LOOP
    relations := pg_catalog.array_append(relations, s::pg_catalog.regclass);
  END LOOP;
  rel := pg_catalog.to_regclass(target);
  parts := pg_catalog.parse_ident(target);
  IF rel IS NULL AND pg_catalog.cardinality(parts) OPERATOR(pg_catalog.=) 1 THEN
    -- beside the first source
    SELECT pg_catalog.array_prepend(n.nspname::pg_catalog.text, parts) INTO parts
      FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=)
        c.relnamespace WHERE c.oid OPERATOR(pg_catalog.=) relations[1];
  END IF;
  RETURN docpatterns._polymorphic_merge(rel, parts, merge_on, relations, into_fields, arrays,
      fields, target_field, doc_column);
END
$$;
COMMENT ON FUNCTION polymorphic_merge(text, text, text[], text[], text[], bson, text, text) IS
  'Declares a single view: target has one document for each value of merge_on in the sources, with '
  'the source''s document under its field. Returns the names of the declarations, one for each '
  'source. Locks the tables against writers and builds indexes. Errors: 22023 or 22004 options '
  'that do not fit, 42710 a name is taken, 42P01, 42809 or 55000 tables that cannot serve, 23505 '
  'documents of the target with one key, 42501 unless the caller owns the tables';

CREATE FUNCTION docpatterns._polymorphic_merge(rel regclass, parts text[], merge_on text,
  relations regclass[], into_fields text[], arrays text[], fields bson, target_field text,
  doc_column text) RETURNS text[]
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  target regclass := rel;
  names text[] := '{}';
  t record;
  source regclass;
  into_field text;
  path text;
  i int;
  other record;
  options @extschema@.bson;
  source_doc text;
  link_id text;
  filled boolean := false;
BEGIN
  IF merge_on IS NULL OR arrays IS NULL THEN
    RAISE EXCEPTION 'merge_on and arrays must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF cardinality(relations) = 0 OR (into_fields IS NOT NULL
        AND cardinality(into_fields) <> cardinality(relations)) THEN
    RAISE EXCEPTION 'at least one source, and a field for each, must be specified'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  target_field := coalesce(target_field, merge_on);
  FOREACH source IN ARRAY relations LOOP
    PERFORM docpatterns._pattern_require_owner(source);
    IF (SELECT c.relkind NOT IN ('r', 'p') FROM pg_class c WHERE c.oid = source) THEN
      RAISE EXCEPTION '"%" is not a table',
          docpatterns._relname(source) USING ERRCODE = 'wrong_object_type';
    END IF;
    IF source = target THEN
      RAISE EXCEPTION 'a table cannot be merged into itself'
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
  END LOOP;
  IF target IS NULL THEN
    target := @extschema@.collection_create((SELECT string_agg(quote_ident(p), '.' ORDER BY n)
          FROM unnest(parts) WITH ORDINALITY AS u (p, n)));
    EXECUTE format('COMMENT ON TABLE %s IS %L', target,
        format('one document for each %s of %s', merge_on, array_to_string(relations, ', ')));
    EXECUTE format('ALTER TABLE %s OWNER TO %s', target, (SELECT c.relowner::regrole FROM pg_class c
          WHERE c.oid = relations[1]));
  END IF;
  PERFORM docpatterns._pattern_require_owner(target);
  IF (SELECT c.relkind <> 'r' OR c.relispartition FROM pg_class c WHERE c.oid = target) THEN
    RAISE EXCEPTION '"%" is not an ordinary table',
        docpatterns._relname(target) USING ERRCODE = 'wrong_object_type',
      DETAIL = 'Documents of a partitioned table cannot be unique by a field.';
  END IF;
  SELECT p.* INTO t FROM docpatterns._pattern_table(target, doc_column) p;

  FOR i IN 1 .. cardinality(relations) LOOP
    source := relations[i];
    into_field := coalesce(into_fields[i], (SELECT c.relname::text FROM pg_class c
          WHERE c.oid = source));
    path := format('"%s"', replace(into_field, '"', '""'));
    IF into_field IN ('', '_id') OR docpatterns._pattern_paths_overlap(path, target_field) THEN
      RAISE EXCEPTION 'field "%" of the merged documents cannot be the field of a source',
        into_field
        USING ERRCODE = 'invalid_parameter_value',
        HINT = 'Specify other names in the argument "into_fields".';
    END IF;
    IF EXISTS (SELECT FROM docpatterns._pattern_declarations(target) d
          WHERE d.name = into_field) THEN
      RAISE EXCEPTION 'table "%" already has a pattern named "%"', docpatterns._relname(rel),
          into_field
        USING ERRCODE = 'duplicate_object',
        HINT = 'Specify other names in the argument "into_fields".';
    END IF;
    FOR other IN SELECT q.* FROM docpatterns._pattern_declarations(target) q LOOP
      IF other.pattern = 'polymorphic_merge'
          AND @extschema@.bson_get_text(other.options, 'target_field') <> target_field THEN
        RAISE EXCEPTION 'the documents of table "%" are merged on field "%"',
            docpatterns._relname(rel),
          @extschema@.bson_get_text(other.options, 'target_field')
          USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Specify it in the argument "target_field".';
      END IF;
    END LOOP;
    names := names || into_field;
    link_id := replace(gen_random_uuid()::text, '-', '');
    source_doc := docpatterns._derive_source(target, source, NULL);
    options := docpatterns._pattern_declare(target, 'polymorphic_merge', @extschema@.bson_build(
      'name', into_field, 'field', path, 'merge_on', merge_on, 'target_field', target_field,
      'is_array', into_field = ANY (arrays), 'doc_column', t.doc, 'link_id', link_id,
      'fields', fields OPERATOR(@extschema@.->) path, 'source_doc_column', source_doc));
    PERFORM docpatterns._polymorphic_merge_create_triggers(target, options);
    PERFORM docpatterns._derive_source_triggers(source, 'polymorphic_merge', into_field, link_id);
    PERFORM docpatterns._pattern_anchor(target, into_field);
    PERFORM docpatterns._derive_create_index(target, 'polymorphic_merge', into_field,
        ARRAY[format('(%I OPERATOR(@extschema@.->) %L::text)', t.doc, target_field)], true);
    PERFORM docpatterns._derive_create_index(source, 'polymorphic_merge', into_field,
      ARRAY[format('(%I OPERATOR(@extschema@.->) %L::text)', source_doc, merge_on)]
      || (SELECT p.keys FROM (SELECT array_agg(quote_ident(k) ORDER BY n) AS keys
          FROM docpatterns._pattern_table(source, source_doc) q, unnest(q.keys)
          WITH ORDINALITY AS u (k, n)) p));
    PERFORM docpatterns._polymorphic_merge_verify(target, into_field);
    PERFORM docpatterns._pattern_notice_held(target, into_field);
    filled := filled OR (SELECT n FROM docpatterns._pattern_nonempty(source) n);
  END LOOP;
  IF EXISTS (SELECT FROM unnest(arrays) a WHERE NOT a = ANY (names))
      OR EXISTS (SELECT FROM @extschema@.bson_keys(fields) k WHERE NOT k = ANY (names)) THEN
    RAISE EXCEPTION 'arrays and fields must name fields of sources'
      USING ERRCODE = 'invalid_parameter_value',
      DETAIL = format('These are %s.', array_to_string(names, ', '));
  END IF;
  IF filled OR (SELECT n FROM docpatterns._pattern_nonempty(target) n) THEN
    RAISE NOTICE 'table "%" or its sources already have rows', docpatterns._relname(target)
      USING HINT = format('Run CALL pattern_build(%L, ...) for each source (%s) to merge existing '
          'rows.', t.base, array_to_string(names, ', '));
  END IF;
  RETURN names;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_merge(regclass, text[], text, regclass[], text[],
  text[], bson, text, text) IS
  'polymorphic_merge with names that are looked up';

CREATE FUNCTION docpatterns._polymorphic_merge_verify(rel regclass, name text) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_polymorphic_merge_verify' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._polymorphic_merge_verify(regclass, text) IS
  'compiles a declaration: errors for what is wrong with its fields';

-- The triggers on the merged table, created again when options change. The main one has the
-- declaration.
CREATE FUNCTION docpatterns._polymorphic_merge_create_triggers(rel regclass, options bson)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name text := @extschema@.bson_get_text(options, 'name');
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.polymorphic_merge_trigger(%L)',
                 docpatterns._pattern_own_trigger(rel, 80, 'polymorphic_merge', name, NULL, 23),
                 rel, options::text);
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER INSERT OR UPDATE ON %s FOR EACH STATEMENT '
      'EXECUTE FUNCTION docpatterns.polymorphic_merge_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 80, 'polymorphic_merge', name, 'late', 20),
                 rel, 'of', name);
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE DELETE ON %s FOR EACH ROW EXECUTE FUNCTION '
      'docpatterns.polymorphic_merge_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 90, 'polymorphic_merge', name, 'delete', 11),
                 rel, 'of', name);
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE '
      'FUNCTION docpatterns.polymorphic_merge_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 90, 'polymorphic_merge', name, 'truncate',
                   34), rel, 'of', name);
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_merge_create_triggers(regclass, bson) IS
  'triggers of a single view on the merged table';

-- Verbs -------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._polymorphic_merge_parts(rel regclass, name text, OUT options bson,
  OUT base text, OUT doc text, OUT key_value text, OUT key_row text, OUT key_list text,
    OUT source regclass, OUT source_doc text,
    OUT merge_on text, OUT target_field text, OUT field text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  SELECT d.options INTO options FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = 'polymorphic_merge' AND d.name = _polymorphic_merge_parts.name;
  IF options IS NULL THEN
    RAISE EXCEPTION 'table "%" has no merged source "%"', docpatterns._relname(rel), name
      USING ERRCODE = 'undefined_object';
  END IF;
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) p;
  base := t.base; doc := t.doc;
  SELECT string_agg(format('t.%I', k), ', ' ORDER BY o) INTO key_list FROM unnest(t.keys)
    WITH ORDINALITY AS u (k, o);
  key_value := format(CASE WHEN cardinality(t.keys) = 1 THEN '@extschema@.to_bson(%s)'
      ELSE '@extschema@.bson_array(%s)' END, key_list);
  key_row := format('ROW(%s)', key_list);
  source := docpatterns._pattern_side(@extschema@.bson_get_text(options, 'link_id'), rel);
  IF source IS NOT NULL THEN
    SELECT p.doc INTO source_doc FROM docpatterns._pattern_table(source,
        docpatterns._pattern_doc_column(source,
          @extschema@.bson_get_text(options, 'source_doc_column'))) p;
  END IF;
  merge_on := @extschema@.bson_get_text(options, 'merge_on');
  target_field := @extschema@.bson_get_text(options, 'target_field');
  field := @extschema@.bson_get_text(options, 'field');
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_merge_parts(regclass, text) IS
  'options of a source of a single view, and pieces of SQL text about its table, of which t is a '
  'row; error 42704';

-- Bytes are compared: 1 and 1.0 are equal, but not the same.
CREATE FUNCTION docpatterns._polymorphic_differ(a bson_value, b bson_value) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT ($1 IS NULL) <> ($2 IS NULL)
    OR ($1 IS NOT NULL AND @extschema@.bson_build('v', $1)::bytea <> @extschema@.bson_build('v',
        $2)::bytea)
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_differ(bson_value, bson_value) IS
  'whether two values have other bytes, or only one of them is there';

CREATE FUNCTION docpatterns._polymorphic_merge_check(rel regclass, name text)
  RETURNS TABLE (key bson_value, what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._polymorphic_merge_parts(rel, name) q;
  IF p.source IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'source'::text,
      'a table with the triggers of the pattern'::text, 'none'::text;
    RETURN;
  END IF;
  RETURN QUERY EXECUTE format(
    'SELECT q.key, %L::text, coalesce(left(q.expected::text, 100), ''absent''), '
    'coalesce(left(q.found::text, 100), ''absent'') '
    'FROM (SELECT %s AS key, t.%I OPERATOR(@extschema@.->) %L::text AS found, '
    '        docpatterns._polymorphic_merge_expected(%L::regclass, %L, t.%3$I '
      'OPERATOR(@extschema@.->) %7$L::text) AS expected FROM %8$s AS t OFFSET 0) AS q '
    'WHERE docpatterns._polymorphic_differ(q.found, q.expected)',
    'field ' || p.field, p.key_value, p.doc, p.field, p.base, name, p.target_field, p.base);
  RETURN QUERY EXECUTE format(
    'SELECT q.link, ''document of the key''::text, ''present''::text, ''missing''::text FROM '
    '(SELECT DISTINCT s.%I OPERATOR(@extschema@.->) %L::text AS link FROM %s AS s) AS q '
    'WHERE @extschema@.bson_typeof(q.link) NOT IN (''null'', ''undefined'') AND NOT (%L AND '
      '@extschema@.bson_typeof(q.link) IN (''array'', ''regex'')) '
    '  AND NOT EXISTS (SELECT 1 FROM %s AS t WHERE t.%I OPERATOR(@extschema@.->) %L::text '
      'OPERATOR(@extschema@.=) q.link)',
    p.source_doc, p.merge_on, p.source, p.target_field = '_id', p.base, p.doc, p.target_field);
  IF @extschema@.bson_get_text(p.options, 'is_array') = 'false' THEN
    RETURN QUERY EXECUTE format(
      'SELECT s.%I OPERATOR(@extschema@.->) %L::text, ''documents of the source''::text, '
      '''one''::text, count(*)::text FROM %s AS s '
      'WHERE @extschema@.bson_typeof(s.%1$I, %2$L) NOT IN (''null'', ''undefined'') GROUP BY 1 '
        'HAVING count(*) > 1', p.source_doc, p.merge_on, p.source);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_merge_check(regclass, text) IS
  'violated invariants of a source of a single view: merged documents that are not what the '
  'sources have';

CREATE FUNCTION docpatterns._polymorphic_merge_pending(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._polymorphic_merge_parts(rel, name) q;
  RETURN format('SELECT %s AS key FROM %s AS t WHERE docpatterns._polymorphic_differ(t.%I '
      'OPERATOR(@extschema@.->) %L::text, '
                'docpatterns._polymorphic_merge_expected(%L::regclass, %L, t.%3$I '
                  'OPERATOR(@extschema@.->) %7$L::text)) ORDER BY %8$s',
                p.key_row, p.base, p.doc, p.field, p.base, name, p.target_field, p.key_list);
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_merge_pending(regclass, text) IS
  'SQL text: keys of merged documents that are not what the source has';

CREATE FUNCTION docpatterns._polymorphic_merge_build_end(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM docpatterns._polymorphic_merge_check(rel, name) c) THEN
    RETURN docpatterns._polymorphic_merge_recompute(rel, name, false);
  END IF;
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_merge_build_end(regclass, text) IS
  'the end of pattern_build for a source of a single view: makes the documents of keys that have '
  'none';

CREATE FUNCTION docpatterns._polymorphic_merge_repair(rel regclass, name text) RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._polymorphic_merge_recompute($1, $2, false)
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_merge_repair(regclass, text) IS
  'pattern_repair of a source of a single view';

CREATE FUNCTION docpatterns._polymorphic_merge_alter(rel regclass, name text, options bson)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM docpatterns._polymorphic_merge_create_triggers(rel, options);
  PERFORM docpatterns._polymorphic_merge_verify(rel, name);
  PERFORM docpatterns._polymorphic_merge_recompute(rel, name, false);
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_merge_alter(regclass, text, bson) IS
  'pattern_alter of a source of a single view: writes all merged documents again';

CREATE FUNCTION docpatterns._polymorphic_merge_disable(rel regclass, name text, how bson)
  RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  done bigint := 0;
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  SELECT q.* INTO p FROM docpatterns._polymorphic_merge_parts(rel, name) q;
  IF @extschema@.bson_get_text(how, 'keep_data') IS DISTINCT FROM 'true' AND p.source IS NOT NULL
     AND NOT EXISTS (SELECT FROM docpatterns._pattern_declarations(rel) d
         WHERE d.pattern = 'polymorphic_merge' AND d.name = _polymorphic_merge_disable.name
                     AND docpatterns._pattern_own_paths(d.options) <> '{}') THEN
    done := docpatterns._polymorphic_merge_recompute(rel, name, true);
  END IF;
  PERFORM docpatterns._derive_drop(rel, 'polymorphic_merge', name);
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_merge_disable(regclass, text, bson) IS
  'pattern_disable of a source of a single view: takes its field out of the merged documents, and '
  'those away that have nothing else (keep_data: leaves all); the table stays';
