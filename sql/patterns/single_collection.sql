-- The single collection pattern: documents of several types in one table, which refer to the
-- documents to which they belong. src/patterns/single_collection/ finds and updates them.

CREATE FUNCTION docpatterns.single_collection_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_single_collection_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.single_collection_trigger() IS
  'trigger of tables with the single collection pattern; made by single_collection_enable';

CREATE FUNCTION single_collection_id(doc bson, type_field text, id_fields text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_single_collection_id' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION single_collection_id(bson, text, text) IS
  'The ID of a document: the field that id_fields (a document of paths) names for its type, or _id '
  'if it is empty; NULL without one. For indexes. Errors: 22023, 22P02';

CREATE FUNCTION single_collection_key(doc bson, key_field text, separator text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_single_collection_key' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    COST 10;
COMMENT ON FUNCTION single_collection_key(bson, text, text) IS
  'The overloaded key of a document with a NUL for each separator, so that everything below it is '
  'one range of an index; NULL without a valid one. For indexes. Error: 22023';

CREATE FUNCTION docpatterns._single_collection_read(doc bson, rel regclass, name text,
  OUT identity bson_value, OUT parents bson_value[], OUT problem text, OUT lacks_self boolean)
  AS 'MODULE_PATHNAME', 'dp_single_collection_read' LANGUAGE C STABLE STRICT COST 100;
COMMENT ON FUNCTION docpatterns._single_collection_read(bson, regclass, text) IS
  'what a document says: how it is known, what it names but itself, what is wrong with it, whether '
  'it has to name itself and does not';

CREATE FUNCTION docpatterns._single_collection_show(rel regclass, name text, identity bson_value)
  RETURNS text
  AS 'MODULE_PATHNAME', 'dp_single_collection_show' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._single_collection_show(regclass, text, bson_value) IS
  'an identity as users know it: an ID, or a key with its separators';

CREATE FUNCTION docpatterns._single_collection_forget_missing(rel regclass, name text)
  RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_single_collection_forget_missing' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._single_collection_forget_missing(regclass, text) IS
  'applies the delete rule to relations to what is not there; error 42501 unless the caller owns '
  'the table';

-- Declaring ---------------------------------------------------------------------------------------

CREATE FUNCTION single_collection_enable(
  rel regclass, type_field text DEFAULT NULL, related_field text DEFAULT NULL,
  id_fields bson DEFAULT NULL, self_related text[] DEFAULT '{}',
  types text[] DEFAULT NULL, key_field text DEFAULT NULL, separator text DEFAULT '/',
  is_unique boolean DEFAULT NULL,
  missing text DEFAULT 'error', on_delete text DEFAULT 'restrict', views boolean DEFAULT true,
  name text DEFAULT NULL, doc_column text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  o @extschema@.bson;
  known text;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  IF key_field IS NULL THEN
    type_field := coalesce(type_field, 'docType');
    related_field := coalesce(related_field, 'relatedTo');
  END IF;
  PERFORM docpatterns._pattern_refuse_partition(rel);
  o := docpatterns._pattern_declare(rel, 'single_collection', @extschema@.bson_build(
    'name', coalesce(name, related_field, key_field), 'type_field', type_field,
    'related_field', related_field, 'key_field', key_field, 'separator', separator,
    'id_fields', id_fields, 'self_related', nullif(self_related, '{}'), 'types', types,
    'is_unique', coalesce(is_unique, (SELECT c.relkind <> 'p' FROM pg_class c WHERE c.oid = rel)),
    'missing', missing, 'on_delete', on_delete, 'doc_column', t.doc));
  name := @extschema@.bson_get_text(o, 'name');
  PERFORM docpatterns._single_collection_create_indexes(rel, o);
  PERFORM docpatterns._single_collection_create_triggers(rel, o);
  IF views AND type_field IS NOT NULL THEN
    FOR known IN EXECUTE format('SELECT v FROM (SELECT unnest($1) UNION SELECT DISTINCT %I '
        'OPERATOR(@extschema@.->>) %L::text FROM %s WHERE @extschema@.bson_typeof(%1$I, %2$L) = '
        '''string'') AS q (v) '
                                'WHERE v IS NOT NULL AND v <> '''' ORDER BY v', t.doc, type_field,
                                  t.base)
        USING coalesce(types, self_related
            || coalesce((SELECT array_agg(k) FROM @extschema@.bson_keys(id_fields) k), '{}')) LOOP
      PERFORM docpatterns._single_collection_view(rel, name, @extschema@.bson_build('type', known));
    END LOOP;
  END IF;
  PERFORM docpatterns._pattern_notice_rows(rel, name);
  RETURN name;
END
$$;
COMMENT ON FUNCTION single_collection_enable(regclass, text, text, bson, text[], text[], text, text,
  boolean, text, text, boolean, text, text) IS
  'Declares the single collection pattern: documents of several types in one table name what they '
  'belong to in related_field (an array of IDs) or by the first parts of their key (key_field, '
  'separator). Returns the name of the declaration. Locks the table against writers and builds two '
  'indexes. Errors: 22023 options that do not fit or another pattern keeps the field, 0A000 a '
  'partitioned table with unique keys, 42710 the name exists, 23505 duplicate keys, 42501 unless '
  'the caller owns the table';

CREATE FUNCTION docpatterns._single_collection_verify(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o record;
  related text := @extschema@.bson_get_text(options, 'related_field');
  keyed text := @extschema@.bson_get_text(options, 'key_field');
  rule text := @extschema@.bson_get_text(options, 'on_delete');
  ids @extschema@.bson;
BEGIN
  FOR o IN SELECT * FROM (VALUES ('type_field', @extschema@.bson_get_text(options, 'type_field')),
        ('related_field', related), ('key_field', keyed)) AS v (option, path)
      WHERE v.path IS NOT NULL LOOP
    -- filters ask for it by its name
    IF o.path = '' OR o.path ~ '["[:space:]$]' OR o.path ~ '(^|[.])[-0-9]*([.]|$)' THEN
      RAISE EXCEPTION '% is not a path of names that a filter can use', o.option
        USING ERRCODE = 'invalid_parameter_value',
        DETAIL = 'Quotes, blanks, dollar signs and positions cannot be part of it.';
    END IF;
  END LOOP;
  IF docpatterns._pattern_paths_overlap(coalesce(related, keyed),
        @extschema@.bson_get_text(options, 'type_field')) THEN
    RAISE EXCEPTION 'the type and the % must be different fields', CASE WHEN keyed IS NULL THEN
      'relations' ELSE 'key' END USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF keyed IS NOT NULL AND rule = 'unset' THEN
    RAISE EXCEPTION 'on_delete must be "restrict", "cascade" or "keep" with key_field'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM docpatterns._pattern_refuse_kept(rel, @extschema@.bson_get_text(options, 'doc_column'),
            @extschema@.bson_get_text(options, 'name'),
            ARRAY[@extschema@.bson_get_text(options, 'type_field')]);
  IF keyed IS NOT NULL THEN
    IF @extschema@.bson_exists(options, 'id_fields')
        OR @extschema@.bson_exists(options, 'self_related') THEN
      RAISE EXCEPTION 'id_fields and self_related cannot be combined with key_field'
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
  ELSE
    IF @extschema@.bson_exists(options, 'id_fields') THEN
      IF EXISTS (SELECT FROM unnest(docpatterns._reference_list(options, 'self_related')) u
            WHERE NOT @extschema@.bson_exists((options OPERATOR(@extschema@.->) 'id_fields'::text),
              format('"%s"', replace(u, '"', '""')))) THEN
        RAISE EXCEPTION 'self_related types must have an ID: specify its field in '
          'id_fields' USING ERRCODE = 'invalid_parameter_value';
      END IF;
      IF @extschema@.bson_get_text(options, 'type_field') IS NULL THEN
        RAISE EXCEPTION 'id_fields must be a document of types and their fields, {"book": "bookId"}'
          USING ERRCODE = 'invalid_parameter_value';
      END IF;
      ids := (options OPERATOR(@extschema@.->) 'id_fields'::text)::@extschema@.bson;
      IF EXISTS (SELECT FROM @extschema@.bson_each(ids) e
          WHERE @extschema@.bson_typeof(e.value) <> 'string'
                   OR docpatterns._pattern_paths_overlap(@extschema@.bson_get_text(ids,
                           ARRAY[e.key]), related)) THEN
        RAISE EXCEPTION 'id_fields must be a document of types and their fields, {"book": "bookId"}'
          USING ERRCODE = 'invalid_parameter_value';
      END IF;
      PERFORM @extschema@.single_collection_id('{}'::@extschema@.bson, '', ids::text);
    END IF;
  END IF;
  IF @extschema@.bson_exists(options, 'types')
      AND @extschema@.bson_get_text(options, 'type_field') IS NULL THEN
    RAISE EXCEPTION 'types requires type_field' USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._single_collection_verify(regclass, bson) IS
  'error 22023 unless the options of a single collection fit each other';

-- Expressions and paths of the indexes.
CREATE FUNCTION docpatterns._single_collection_index_parts(rel regclass, options bson,
  OUT base text, OUT doc text, OUT identity text, OUT shown text, OUT paths text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  parts text[];
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) p;
  base := t.base;
  doc := t.doc;
  IF @extschema@.bson_exists(options, 'key_field') THEN
    parts := ARRAY['single_collection_key', @extschema@.bson_get_text(options, 'key_field'),
        @extschema@.bson_get_text(options, 'separator')];
  ELSE
    parts := ARRAY['single_collection_id',
        coalesce(@extschema@.bson_get_text(options, 'type_field'), ''),
        coalesce((options OPERATOR(@extschema@.->) 'id_fields'::text)::text, '{}')];
  END IF;
  identity := format('@extschema@.%s(%I, %L::text, %L::text)', parts[1], t.doc, parts[2], parts[3]);
  -- as PostgreSQL shows it, which never writes E'..'
  shown := format('@extschema@.%s(%I, ''%s''::text, ''%s''::text)', parts[1], t.doc,
      replace(parts[2], '''', ''''''), replace(parts[3], '''', ''''''));
  paths := concat_ws(', ', @extschema@.bson_get_text(options, 'related_field'),
      @extschema@.bson_get_text(options, 'key_field'),
      @extschema@.bson_get_text(options, 'type_field'));
END
$$;
COMMENT ON FUNCTION docpatterns._single_collection_index_parts(regclass, bson) IS
  'expressions of the indexes of a single collection';

-- An index for filters: of these paths, or of all.
CREATE FUNCTION docpatterns._single_collection_filter_index(rel regclass, doc text, paths text)
  RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT i.indexrelid::regclass
  FROM pg_index i JOIN pg_opclass o ON o.oid = i.indclass[0]
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] AND a.attname = $2
    JOIN pg_attribute x ON x.attrelid = i.indexrelid AND x.attnum = 1
  WHERE i.indrelid = $1 AND i.indisvalid AND docpatterns._pattern_index_full(i.indexrelid)
    AND i.indnkeyatts = 1 AND o.opcname = 'bson_ops'
    AND o.opcmethod = (SELECT m.oid FROM pg_am m WHERE m.amname = 'gin')
      AND (x.attoptions IS NULL OR 'paths=' || $3 = ANY (x.attoptions))
  ORDER BY x.attoptions IS NULL LIMIT 1
$$;
COMMENT ON FUNCTION docpatterns._single_collection_filter_index(regclass, text, text) IS
  'the GIN index of a table that serves filters on these paths, or NULL';

CREATE FUNCTION docpatterns._single_collection_create_indexes(rel regclass, options bson)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
  SET standard_conforming_strings = on AS $$
DECLARE
  p record;
  decl_name text := @extschema@.bson_get_text(options, 'name');
  is_unique boolean := @extschema@.bson_get_text(options, 'is_unique')::boolean;
BEGIN
  SELECT q.* INTO p FROM docpatterns._single_collection_index_parts(rel, options) q;
  IF is_unique AND (SELECT c.relkind = 'p' FROM pg_class c WHERE c.oid = rel) THEN
    RAISE EXCEPTION 'cannot create a unique index of keys on partitioned table "%"',
        docpatterns._relname(rel)
      USING ERRCODE = 'feature_not_supported', HINT = 'Specify is_unique => false.';
  END IF;
  PERFORM docpatterns._derive_create_index(rel, 'single_collection', decl_name, ARRAY[p.identity],
      is_unique);
  IF docpatterns._single_collection_filter_index(rel, p.doc, p.paths) IS NULL THEN
    EXECUTE format('CREATE INDEX ON %s USING gin (%I @extschema@.bson_ops (paths = %L)) WHERE %s',
        p.base, p.doc, p.paths, docpatterns._pattern_mark('single_collection', decl_name));
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._single_collection_create_indexes(regclass, bson) IS
  'makes the indexes of a single collection, unless they are there';

CREATE FUNCTION docpatterns._single_collection_create_triggers(rel regclass, options bson)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  decl_name text := @extschema@.bson_get_text(options, 'name');
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE OR DELETE ON %s FOR EACH '
      'ROW EXECUTE FUNCTION docpatterns.single_collection_trigger(%L)',
                 docpatterns._pattern_own_trigger(rel, 24, 'single_collection', decl_name, NULL,
                   31), rel, options::text);
  PERFORM docpatterns._pattern_statement_trigger(rel, 24, 'single_collection', decl_name,
      'statement', 60, 'AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE');
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._single_collection_create_triggers(regclass, bson) IS
  'triggers of a single collection, made or replaced';

-- Views -------------------------------------------------------------------------------------------

CREATE FUNCTION single_collection_view(rel regclass, type text, view_name text DEFAULT NULL,
  name text DEFAULT NULL) RETURNS regclass
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF type IS NULL THEN
    RAISE EXCEPTION 'the type must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  RETURN docpatterns._pattern_call('view', rel, 'single_collection', f.name,
           @extschema@.bson_build('type', type, 'view_name', view_name))::regclass
    FROM docpatterns._pattern_find(rel, name, 'single_collection') f;
END
$$;
COMMENT ON FUNCTION single_collection_view(regclass, text, text, text) IS
  'Creates a view of one type, by default <table>_<type>; it takes writes and refuses documents of '
  'other types. Returns it. Errors: 42P07 the name is taken, 22023 documents have no type, 42501 '
  'unless the caller owns the table';

CREATE FUNCTION docpatterns._single_collection_view(rel regclass, name text, options bson)
  RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  declared @extschema@.bson;
  type_field text;
  type text := @extschema@.bson_get_text(options, 'type');
  view_name text := @extschema@.bson_get_text(options, 'view_name');
  qualified text;
BEGIN
  SELECT d.options INTO declared FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = 'single_collection' AND d.name = _single_collection_view.name;
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(declared, 'doc_column'))) p;
  type_field := @extschema@.bson_get_text(declared, 'type_field');
  IF type_field IS NULL THEN
    RAISE EXCEPTION 'documents of table "%" have no type', docpatterns._relname(rel)
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  qualified := format('%I.%I', t.schema_name,
      coalesce(view_name, docpatterns._pattern_relation_name(t.schema_name, t.table_name, type,
          NULL)));
  IF to_regclass(qualified) IS NOT NULL THEN
    RAISE EXCEPTION 'relation "%" already exists',
        docpatterns._relname(qualified::regclass) USING ERRCODE = 'duplicate_table',
      HINT = 'Give the view another name with single_collection_view(rel, type, view_name); '
      'single_collection_enable(..., views => false) makes none.';
  END IF;
  EXECUTE format('CREATE VIEW %s WITH (security_invoker = true) AS SELECT %s FROM %s AS t WHERE '
      't.%I OPERATOR(@extschema@.@@) %L::@extschema@.bson AND %s WITH LOCAL CHECK OPTION',
    qualified, (SELECT string_agg(format('t.%I', a.attname), ', ' ORDER BY a.attnum)
      FROM pg_attribute a WHERE a.attrelid = rel AND a.attnum > 0 AND NOT a.attisdropped),
    t.base, t.doc, @extschema@.bson_build(type_field, type)::text,
    docpatterns._pattern_mark('single_collection', name, type));
  PERFORM docpatterns._pattern_copy_grants(rel, qualified::regclass);
  EXECUTE format('ALTER VIEW %s OWNER TO %s', qualified, t.owner::regrole);
  RETURN qualified;
END
$$;
COMMENT ON FUNCTION docpatterns._single_collection_view(regclass, text, bson) IS
  'single_collection_view of a declaration';

CREATE FUNCTION docpatterns._single_collection_view_labels(options bson) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT array_agg(e::text) FROM @extschema@.bson_elements($1 OPERATOR(@extschema@.->)
    'types'::text) e
$$;
COMMENT ON FUNCTION docpatterns._single_collection_view_labels(bson) IS
  'what its views are named after';

CREATE FUNCTION docpatterns._single_collection_follow_owner(rel regclass, former oid) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._pattern_renew_view($1, v.view,
      format('SELECT docpatterns._single_collection_view(%L, %L, %L)', $1, d.name,
        @extschema@.bson_build('type', v.part)::text),
           format('SELECT v.view FROM docpatterns._pattern_views(%L, ''single_collection'', %L) v '
             'WHERE v.part = %L ORDER BY v.view DESC LIMIT 1', $1, d.name, v.part))
  FROM docpatterns._pattern_declarations($1) d
    CROSS JOIN LATERAL docpatterns._pattern_views($1, 'single_collection', d.name, $2) v
  WHERE d.pattern = 'single_collection' AND v.part IS NOT NULL
$$;
COMMENT ON FUNCTION docpatterns._single_collection_follow_owner(regclass, oid) IS
  'makes the views of types again after a change of the table''s owner';

-- Verbs -------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._single_collection_parts(rel regclass, name text, OUT base text,
  OUT options bson, OUT doc text, OUT identity text,
    OUT shown text, OUT key_row text, OUT key_list text,
    OUT key_value text, OUT read text, OUT paths text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  SELECT q.* INTO t FROM docpatterns._pattern_parts(rel, 'single_collection', name) q;
  options := t.options;
  SELECT q.base, q.doc, q.identity, q.shown, q.paths INTO base, doc, identity, shown, paths
    FROM docpatterns._single_collection_index_parts(rel, options) q;
  key_list := t.key_list; key_row := t.key_row; key_value := t.key_value;
  read := format('docpatterns._single_collection_read(b.%I, %L::regclass, %L)', doc, base, name);
END
$$;
COMMENT ON FUNCTION docpatterns._single_collection_parts(regclass, text) IS
  'names and options of a single collection, and pieces of SQL text about it: "b" is a row of the '
  'table';

CREATE FUNCTION docpatterns._single_collection_check(rel regclass, name text)
  RETURNS TABLE (key bson_value, what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._single_collection_parts(rel, name) q;
  IF NOT EXISTS (SELECT FROM docpatterns._reference_find_index(rel, p.shown, 'btree') i
      JOIN pg_index x ON x.indexrelid = i
                 WHERE x.indisunique OR @extschema@.bson_get_text(p.options, 'is_unique') <> 'true')
     OR docpatterns._single_collection_filter_index(rel, p.doc, p.paths) IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'indexes'::text, 'present'::text,
      'missing'::text;
  END IF;
  RETURN QUERY EXECUTE format($q$
    SELECT %1$s, v.what, v.expected, v.found
    FROM %2$s AS b CROSS JOIN LATERAL %3$s AS r
      CROSS JOIN LATERAL (
        SELECT 'document', 'as declared', r.problem WHERE r.problem IS NOT NULL
        UNION ALL SELECT 'relation', 'to itself', 'none' WHERE r.lacks_self AND r.problem IS NULL
        UNION ALL SELECT %4$L, 'a document',
          'none: ' || docpatterns._single_collection_show(%5$L::regclass, %6$L, u.id)
          FROM unnest(r.parents) AS u (id)
          WHERE %7$L::boolean AND r.problem IS NULL
            AND NOT EXISTS (SELECT 1 FROM %2$s AS o WHERE %8$s OPERATOR(@extschema@.=) u.id)
      ) AS v (what, expected, found)
    WHERE b.%9$I IS NOT NULL
    $q$, p.key_value, p.base, p.read, CASE WHEN @extschema@.bson_exists(p.options, 'key_field') THEN
      'parent' ELSE 'relation' END, p.base, name,
    @extschema@.bson_get_text(p.options, 'missing') = 'error'
    AND @extschema@.bson_get_text(p.options, 'on_delete') <> 'keep', p.identity, p.doc);
END
$$;
COMMENT ON FUNCTION docpatterns._single_collection_check(regclass, text) IS
  'violated invariants of a single collection';

CREATE FUNCTION docpatterns._single_collection_pending(rel regclass, name text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('SELECT %s AS key FROM %s AS b CROSS JOIN LATERAL %s AS r WHERE b.%I IS NOT NULL '
      'AND r.lacks_self ORDER BY %s', p.key_row, p.base, p.read, p.doc, p.key_list)
  FROM docpatterns._single_collection_parts($1, $2) AS p
$$;
COMMENT ON FUNCTION docpatterns._single_collection_pending(regclass, text) IS
  'SQL text: keys of rows that may be inconsistent with a single collection';

CREATE FUNCTION docpatterns._single_collection_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  done bigint;
BEGIN
  SELECT q.* INTO p FROM docpatterns._single_collection_parts(rel, name) q;
  PERFORM docpatterns._single_collection_create_indexes(rel, p.options);
  done := docpatterns._pattern_repair_rows(rel, name,
      docpatterns._single_collection_pending(rel, name));
  IF @extschema@.bson_get_text(p.options, 'missing') = 'error'
      AND @extschema@.bson_get_text(p.options, 'on_delete') IN ('cascade', 'unset') THEN
    done := done + docpatterns._single_collection_forget_missing(rel, name);
  END IF;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._single_collection_repair(regclass, text) IS
  'pattern_repair of a single collection';

CREATE FUNCTION docpatterns._single_collection_alter(rel regclass, name text, options bson)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._single_collection_parts(rel, name) q;
  PERFORM docpatterns._single_collection_create_triggers(rel, options);
  RAISE NOTICE 'new options apply to existing documents after CALL pattern_build(%, %)',
    quote_literal(p.base), quote_literal(name);
END
$$;
COMMENT ON FUNCTION docpatterns._single_collection_alter(regclass, text, bson) IS
  'pattern_alter of a single collection';

CREATE FUNCTION docpatterns._single_collection_disable(rel regclass, name text, how bson)
  RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v regclass;
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  FOR v IN SELECT q.view FROM docpatterns._pattern_views(rel, 'single_collection', name) q LOOP
    EXECUTE format('DROP VIEW %s', v);
  END LOOP;
  PERFORM docpatterns._derive_drop(rel, 'single_collection', name);
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._single_collection_disable(regclass, text, bson) IS
  'pattern_disable of a single collection: documents stay as they are';
