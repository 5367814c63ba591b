-- The polymorphic pattern: documents of several kinds in one table, each with the schema of its
-- kind. The triggers and the validation are in src/patterns/polymorphic/.

CREATE FUNCTION docpatterns.polymorphic_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_polymorphic_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.polymorphic_trigger() IS
  'trigger of tables with the polymorphic pattern; made by polymorphic_enable';

CREATE FUNCTION docpatterns.polymorphic_variant_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_polymorphic_variant_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.polymorphic_variant_trigger() IS
  'trigger that carries the declaration of a variant; made by polymorphic_variant';

-- What views are made of --------------------------------------------------------------------------

CREATE FUNCTION docpatterns._polymorphic_columns(schemas bson[], OUT name text, OUT path text,
  OUT type text, OUT types text, OUT many boolean)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_polymorphic_columns' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._polymorphic_columns(bson[]) IS
  'the columns of a view: fields that the schemas speak of, the SQL type, the BSON types that fit '
  'it (NULL: all), and whether arrays are on the way';

CREATE FUNCTION docpatterns._polymorphic_field(doc bson, path text, types text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_polymorphic_field' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._polymorphic_field(bson, text, text) IS
  'the field that the path leads to, if it is of one of the types (separated by commas), else '
  'NULL; never changes: indexes are made of it';

CREATE FUNCTION docpatterns._polymorphic_reach(doc bson, path text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_polymorphic_reach' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._polymorphic_reach(bson, text) IS
  'the field that the path leads to; where arrays are on the way, an array of what their elements '
  'have there; NULL if there is nothing';

CREATE FUNCTION docpatterns._polymorphic_elements(doc bson, by text, OUT item_path text,
    OUT doc bson)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_polymorphic_elements' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 5;
COMMENT ON FUNCTION docpatterns._polymorphic_elements(bson, text) IS
  'the sub-documents (or the document itself) that have the field by, or could have it, and where '
  'they are';

CREATE FUNCTION docpatterns._polymorphic_valid(rel regclass, name text, doc bson) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_polymorphic_valid' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._polymorphic_valid(regclass, text, bson) IS
  'whether a table may hold a document, as a polymorphic declaration sees it';

CREATE FUNCTION polymorphic_errors(rel regclass, doc bson, name text DEFAULT NULL,
                                   OUT variant text, OUT part text, OUT path text, OUT rule text,
                                     OUT expected text, OUT found text) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_polymorphic_errors' LANGUAGE C STABLE ROWS 2;
COMMENT ON FUNCTION polymorphic_errors(regclass, bson, text) IS
  'What is wrong with a document that is not stored yet: a row for each violated rule, with its '
  'variant and its origin (by, common, variant or closed). Reads only the declaration';

-- The last part of a path, as it is, and the rest as it is written (NULL: there is none).
CREATE FUNCTION docpatterns._polymorphic_split_path(by text, OUT parent text, OUT field text,
  OUT field_path text)
LANGUAGE docpatterns IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  probe @extschema@.bson := @extschema@.bson_set('{}'::@extschema@.bson, by, 1);
  k text;
BEGIN
  LOOP
    SELECT q INTO k FROM @extschema@.bson_keys(probe) q;
    IF @extschema@.bson_typeof(probe, format('"%s"', replace(k, '"', '""'))) <> 'object' THEN
      field := k;
      -- as paths are written, so that the same index serves it
      field_path := (docpatterns._polymorphic_path_list(format('"%s"', replace(k, '"', '""'))))[1];
      RETURN;
    END IF;
    parent := concat_ws('.', parent, format('"%s"', replace(k, '"', '""')));
    probe := (probe OPERATOR(@extschema@.->) format('"%s"',
          replace(k, '"', '""')))::@extschema@.bson;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_split_path(text) IS
  'the last name of a path, as it is and as a path, and the path to it or NULL; error 22023 for a '
  'bad path';

-- Declaring ---------------------------------------------------------------------------------------

CREATE FUNCTION polymorphic_enable(rel regclass, "by" text, unknown text DEFAULT 'error',
  common bson DEFAULT NULL,
                                   view text DEFAULT NULL, name text DEFAULT NULL,
                                     doc_column text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  options @extschema@.bson;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  PERFORM docpatterns._pattern_refuse_partition(rel);
  options := docpatterns._pattern_declare(rel, 'polymorphic', @extschema@.bson_build(
    'name', coalesce(name, by), 'by', by, 'unknown', unknown, 'doc_column', t.doc,
    'common', common));
  name := @extschema@.bson_get_text(options, 'name');
  PERFORM docpatterns._polymorphic_create_trigger(rel, options);
  PERFORM docpatterns._polymorphic_create_view(rel, name, NULL, view);
  IF docpatterns._pattern_nonempty(rel) THEN
    RAISE NOTICE 'table "%" already has rows', docpatterns._relname(rel)
      USING HINT = format('Declare the variants, then run CALL pattern_build(%L, %L).',
          t.base, name);
  END IF;
  RETURN name;
END
$$;
COMMENT ON FUNCTION polymorphic_enable(regclass, text, text, bson, text, text, text) IS
  'Declares that the field by (a path, also into arrays of sub-documents) tells the kind of each '
  'document or sub-document. Returns the name of the declaration (default: by). Locks the table '
  'against writers. Errors: 22023 or 0A000 options that do not fit, 42710 or 42P07 a name is '
  'taken, 42501 unless the caller owns the table';

-- Raises errors in options.
CREATE FUNCTION docpatterns._polymorphic_verify(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM FROM docpatterns._polymorphic_split_path(@extschema@.bson_get_text($2, 'by'));
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_verify(regclass, bson) IS
  'error 22023 for a path that cannot lead to a discriminator';

CREATE FUNCTION docpatterns._polymorphic_create_trigger(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.polymorphic_trigger(%L)',
                 docpatterns._pattern_own_trigger(rel, 48, 'polymorphic',
                   @extschema@.bson_get_text(options, 'name'), NULL, 23), rel, options::text);
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_create_trigger(regclass, bson) IS
  'creates the trigger of a polymorphic declaration, or replaces it when options change';

-- A trigger that rows do not pay for: it fires with TRUNCATE only, and does nothing then.
CREATE FUNCTION docpatterns._polymorphic_create_variant_trigger(rel regclass, options bson)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE '
      'FUNCTION docpatterns.polymorphic_variant_trigger(%L)',
                 docpatterns._pattern_own_trigger(rel, 48, 'polymorphic_variant',
                   @extschema@.bson_get_text(options, 'name'), NULL, 34), rel, options::text);
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_create_variant_trigger(regclass, bson) IS
  'creates the trigger with the declaration of a variant, or replaces it when options change';

CREATE FUNCTION polymorphic_variant(rel regclass, variant text, schema bson DEFAULT NULL,
  closed boolean DEFAULT false, value bson_value DEFAULT NULL,
    indexes text[] DEFAULT '{}', unique_keys text[] DEFAULT '{}',
    view text DEFAULT NULL,
    of text DEFAULT NULL, name text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  m record;
  options @extschema@.bson;
BEGIN
  PERFORM docpatterns._pattern_require_owner(rel);
  SELECT q.* INTO m FROM docpatterns._polymorphic_main(rel, of) q;
  name := coalesce(name, variant);
  value := coalesce(value, @extschema@.to_bson(variant));
  options := docpatterns._pattern_declare(rel, 'polymorphic_variant', @extschema@.bson_build(
    'name', name, 'of', m.name, 'variant', variant, 'value', value, 'closed', closed,
    'indexes', indexes, 'unique_keys', unique_keys, 'doc_column', m.doc, 'schema', schema));
  IF EXISTS (SELECT FROM docpatterns._polymorphic_declared(rel, m.name) d
        WHERE d.variant = polymorphic_variant.variant
        OR d.value OPERATOR(@extschema@.=) polymorphic_variant.value) THEN
    RAISE EXCEPTION 'table "%" already has such a variant of "%"', docpatterns._relname(rel), m.name
      USING ERRCODE = 'duplicate_object';
  END IF;
  PERFORM docpatterns._polymorphic_create_variant_trigger(rel, options);
  PERFORM docpatterns._polymorphic_create_view(rel, m.name, name, view);
  PERFORM docpatterns._polymorphic_create_indexes(rel, m.name, name);
  IF schema IS NOT NULL THEN
    PERFORM docpatterns._polymorphic_tell(rel, name);
  END IF;
  RETURN name;
END
$$;
COMMENT ON FUNCTION polymorphic_variant(regclass, text, bson, boolean, bson_value, text[], text[],
  text, text, text) IS
  'Declares a variant of a polymorphic table: documents whose field has the value must satisfy the '
  'schema. Creates its view and partial indexes. Returns the name of the declaration (default: the '
  'variant). Locks the table against writers. Errors: 22023 or 0A000 options that do not fit, '
  '42710 or 42P07 a name is taken, 23505 documents with one unique key, 42501 unless the caller '
  'owns the table';

-- The polymorphic declaration of a name, or the only one, and the properties of its table.
CREATE FUNCTION docpatterns._polymorphic_main(rel regclass, wanted text, OUT name text,
  OUT options bson, OUT base text, OUT schema_name text, OUT table_name text, OUT owner oid,
  OUT doc text,
                                  OUT keys text[], OUT key_list text, OUT key_value text,
                                  OUT key_row text, OUT by_path text, OUT parent text,
                                  OUT field text, OUT field_path text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  SELECT q.name, q.options INTO name, options
    FROM docpatterns._pattern_find(rel, wanted, 'polymorphic') q;
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) p;
  base := t.base; schema_name := t.schema_name; table_name := t.table_name; owner := t.owner;
  doc := t.doc; keys := t.keys;
  SELECT string_agg(format('t.%I', k), ', ' ORDER BY o) INTO key_list FROM unnest(t.keys)
    WITH ORDINALITY AS u (k, o);
  key_value := format(CASE WHEN cardinality(t.keys) = 1 THEN '@extschema@.to_bson(%s)'
      ELSE '@extschema@.bson_array(%s)' END, key_list);
  key_row := format('ROW(%s)', key_list);
  by_path := @extschema@.bson_get_text(options, 'by');
  SELECT s.parent, s.field, s.field_path INTO parent, field, field_path
    FROM docpatterns._polymorphic_split_path(by_path) s;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_main(regclass, text) IS
  'a polymorphic declaration, and pieces of SQL text about its table, of which t is a row; errors '
  '42704, 22023 and those of _pattern_table()';

CREATE FUNCTION docpatterns._polymorphic_declared(rel regclass, of text, OUT name text,
  OUT variant text, OUT value bson_value, OUT closed boolean, OUT options bson) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT d.name, @extschema@.bson_get_text(d.options, 'variant'),
    d.options OPERATOR(@extschema@.->) 'value'::text,
         coalesce(@extschema@.bson_get_text(d.options, 'closed') = 'true', false), d.options
  FROM docpatterns._pattern_declarations($1) d
  WHERE d.pattern = 'polymorphic_variant' AND @extschema@.bson_get_text(d.options, 'of') = $2
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_declared(regclass, text) IS
  'the variants that are declared of a polymorphic declaration';

-- Views -------------------------------------------------------------------------------------------

-- The expression of a column over a document.
CREATE FUNCTION docpatterns._polymorphic_expression(doc text, path text, type text, types text,
  many boolean) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN $5 THEN format('docpatterns._polymorphic_reach(%s, %L::text)', $1, $2)
              WHEN $4 IS NULL THEN format('(%s OPERATOR(@extschema@.->) %L::text)', $1, $2)
              ELSE format('docpatterns._polymorphic_field(%s, %L::text, %L::text)::%s', $1, $2, $4,
                          CASE WHEN $3 IN ('bson', 'objectid') THEN '@extschema@.' || $3
                              ELSE 'pg_catalog.' || $3 END) END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_expression(text, text, text, text, boolean) IS
  'SQL text: a column of a view over the documents doc';

-- The condition in a WHERE clause for documents of a variant.
CREATE FUNCTION docpatterns._polymorphic_predicate(doc text, path text, value bson_value)
  RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('(%s OPERATOR(@extschema@.->) %L::text) OPERATOR(@extschema@.=) '
      '%L::@extschema@.bson_value', $1, $2, $3)
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_predicate(text, text, bson_value) IS
  'SQL text: whether a document is of a variant';

CREATE FUNCTION docpatterns._polymorphic_variant_view_labels(options bson) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT ARRAY[@extschema@.bson_get_text($1, 'name')]
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_variant_view_labels(bson) IS
  'what its view is named after';

-- Creates or replaces the view of a variant (NULL: of all).
CREATE FUNCTION docpatterns._polymorphic_create_view(rel regclass, of text, variant text,
  wanted text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  m record;
  v record;
  c record;
  pattern text := CASE WHEN variant IS NULL THEN 'polymorphic' ELSE 'polymorphic_variant' END;
  existing regclass;
  qualified text;
  doc text;
  columns text := '';
  used text[] := '{}';
  query text;
  column_name text;
  n int;
BEGIN
  IF docpatterns._pattern_table_of(rel) <> rel THEN
    RETURN;
  END IF;
  SELECT q.* INTO m FROM docpatterns._polymorphic_main(rel, of) q;
  SELECT q.* INTO v FROM docpatterns._polymorphic_declared(rel, of) q
    WHERE q.name = _polymorphic_create_view.variant;
  existing := docpatterns._pattern_made_view(rel, pattern, coalesce(variant, of));
  IF existing IS NOT NULL THEN
    qualified := existing::text;
    SELECT format('%I.%I', s.nspname, q.relname) INTO qualified FROM pg_class q
      JOIN pg_namespace s ON s.oid = q.relnamespace WHERE q.oid = existing;
  ELSE
    IF wanted IS NULL THEN
      wanted := CASE WHEN variant IS NOT NULL THEN
        docpatterns._pattern_relation_name(m.schema_name, m.table_name, v.variant, NULL)
                     ELSE docpatterns._pattern_relation_name(m.schema_name, m.table_name, NULL,
                         'common') END;
      IF to_regclass(format('%I.%I', m.schema_name, wanted)) IS NOT NULL
          AND EXISTS (SELECT FROM docpatterns._pattern_declarations(rel) d
            WHERE d.pattern = 'polymorphic' AND d.name <> of) THEN
        wanted := docpatterns._pattern_relation_name(m.schema_name, m.table_name,
            concat_ws('_', of, v.variant), CASE WHEN variant IS NULL THEN 'common' END);
      END IF;
    END IF;
    qualified := format('%I.%I', m.schema_name, wanted);
  END IF;

  -- the table's columns, the field with the kind, the schemas' fields, the document
  doc := CASE WHEN m.parent IS NULL THEN format('t.%I', m.doc) ELSE 'e.doc' END;
  FOR c IN SELECT a.attname::text AS name FROM pg_attribute a WHERE a.attrelid = rel
      AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> m.doc ORDER BY a.attnum LOOP
    columns := columns || format('t.%I, ', c.name);
    used := used || c.name;
  END LOOP;
  used := used || CASE WHEN m.parent IS NULL THEN m.doc ELSE 'doc' END;
  IF m.parent IS NOT NULL THEN
    columns := columns || format('e.item_path AS %I, ',
        CASE WHEN 'item_path' = ANY (used) THEN '_item_path'
        ELSE 'item_path' END);
    used := used || CASE WHEN 'item_path' = ANY (used) THEN '_item_path'::text ELSE 'item_path' END;
  END IF;
  FOR c IN
    SELECT left(m.field, 63) AS name, m.field_path AS path, NULL::text AS type, NULL::text AS types,
      false AS many, 0 AS n WHERE m.field <> ''
    UNION ALL
    SELECT q.name, q.path, q.type, q.types, q.many, q.n::int
    FROM docpatterns._polymorphic_columns(ARRAY[(m.options OPERATOR(@extschema@.->)
            'common'::text)::@extschema@.bson,
          (v.options OPERATOR(@extschema@.->) 'schema'::text)::@extschema@.bson])
           WITH ORDINALITY AS q (name, path, type, types, many, n)
    ORDER BY n
  LOOP
    -- a collection's _id is there already; of two fields with one name the second is numbered
    IF c.n > 0 AND (c.name = m.field OR c.name = '_id' AND '_id' = ANY (used)
          AND m.parent IS NULL) THEN
      CONTINUE;
    END IF;
    column_name := c.name;
    n := 1;
    WHILE column_name = ANY (used) LOOP
      n := n + 1;
      column_name := left(c.name, 59) || '_' || n;
    END LOOP;
    used := used || column_name;
    columns := columns || format('%s AS %I, ', CASE
        WHEN c.n = 0 THEN format('(%s OPERATOR(@extschema@.->>) %L::text)', doc, c.path)
          ELSE docpatterns._polymorphic_expression(doc,
              c.path, c.type, c.types, c.many)
            END, column_name);
  END LOOP;
  query := format('SELECT %s%s AS %I FROM %s AS t%s%s', columns, doc, CASE
      WHEN m.parent IS NULL THEN m.doc ELSE 'doc' END, m.base,
                  CASE WHEN m.parent IS NULL THEN '' ELSE
                    format(' CROSS JOIN LATERAL docpatterns._polymorphic_elements(t.%I, %L::text) '
                      'AS e (item_path, doc)', m.doc, m.by_path) END,
                  CASE WHEN variant IS NULL THEN ' WHERE ' ELSE
                    format(' WHERE %s AND ', docpatterns._polymorphic_predicate(doc, m.field_path,
                        v.value)) END)
           || docpatterns._pattern_mark(pattern, coalesce(variant, of));
  -- documents written to the view of a variant get its kind
  query := format('VIEW %s WITH (security_invoker = true%s) AS %s', qualified, CASE
      WHEN variant IS NULL OR m.parent IS NOT NULL THEN '' ELSE ', check_option = local'
      END, query);
  IF existing IS NOT NULL THEN
    BEGIN
      EXECUTE 'CREATE OR REPLACE ' || query;
      RETURN;
    EXCEPTION WHEN invalid_table_definition THEN
      EXECUTE format('DROP VIEW %s', qualified);
    END;
  END IF;
  EXECUTE 'CREATE ' || query;
  PERFORM docpatterns._pattern_copy_grants(rel, qualified::regclass);
  EXECUTE format('ALTER VIEW %s OWNER TO %s', qualified, m.owner::regrole);
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_create_view(regclass, text, text, text) IS
  'creates the view of a variant (NULL: of all), or replaces it; error 2BP01 if other objects '
  'depend on columns that it loses';

-- Indexes -----------------------------------------------------------------------------------------

-- The partial indexes of a variant that it does not have yet.
CREATE FUNCTION docpatterns._polymorphic_create_indexes(rel regclass, of text, variant text)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  m record;
  v record;
  i record;
  expressions text;
  made text;
  n int;
BEGIN
  SELECT q.* INTO m FROM docpatterns._polymorphic_main(rel, of) q;
  SELECT q.* INTO v FROM docpatterns._polymorphic_declared(rel, of) q
    WHERE q.name = _polymorphic_create_indexes.variant;
  FOR i IN SELECT w.* FROM docpatterns._polymorphic_indexes(rel, of, variant) w
      WHERE w.index IS NULL LOOP
    IF m.parent IS NOT NULL THEN
      RAISE EXCEPTION 'cannot create indexes for a variant of sub-documents of table "%"',
          docpatterns._relname(rel)
        USING ERRCODE = 'feature_not_supported',
          HINT = 'An index with the operator class bson_ops serves sub-documents, also pairs of '
          'their fields.';
    END IF;
    n := 0;
    made := docpatterns._pattern_object_name(m.table_name, concat_ws('_', v.variant, i.paths[1]),
        CASE WHEN i.is_unique THEN 'key' ELSE 'idx' END);
    WHILE to_regclass(format('%I.%I', m.schema_name, made)) IS NOT NULL LOOP
      n := n + 1;
      made := docpatterns._pattern_object_name(m.table_name, concat_ws('_', v.variant, i.paths[1]),
          CASE WHEN i.is_unique THEN 'key' ELSE 'idx' END || n);
    END LOOP;
    EXECUTE format('CREATE %sINDEX %I ON %s (%s) WHERE %s', CASE WHEN i.is_unique THEN 'UNIQUE '
        ELSE '' END, made, rel, i.expressions,
                   format('%s AND %s', docpatterns._polymorphic_predicate(quote_ident(m.doc),
                       m.field_path, v.value), docpatterns._pattern_mark('polymorphic_variant',
                       variant, i.line)));
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_create_indexes(regclass, text, text) IS
  'makes the partial indexes of a variant that are not there; locks the table against writers';

-- The required and existing indexes of a variant. An index's comment has its declaration and paths.
CREATE FUNCTION docpatterns._polymorphic_indexes(rel regclass, of text, variant text,
  OUT is_unique boolean, OUT paths text[], OUT expressions text, OUT line text, OUT index regclass)
  RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  m record;
  v record;
  w record;
BEGIN
  SELECT q.* INTO m FROM docpatterns._polymorphic_main(rel, of) q;
  SELECT q.* INTO v FROM docpatterns._polymorphic_declared(rel, of) q
    WHERE q.name = _polymorphic_indexes.variant;
  FOR w IN SELECT o.n = 'unique_keys' AS is_unique, e::pg_catalog.text AS list
           FROM unnest(ARRAY['indexes', 'unique_keys']) AS o (n)
             CROSS JOIN LATERAL @extschema@.bson_elements(v.options OPERATOR(@extschema@.->) o.n)
             e LOOP
    is_unique := w.is_unique;
    paths := docpatterns._polymorphic_path_list(w.list);
    line := concat(CASE WHEN w.is_unique THEN 'unique ' END, array_to_string(paths, ', '));
    SELECT string_agg(format('(%s)', coalesce(
             (SELECT docpatterns._polymorphic_expression(quote_ident(m.doc), q.path, q.type,
                 q.types, q.many)
              FROM docpatterns._polymorphic_columns(ARRAY[(m.options OPERATOR(@extschema@.->)
                      'common'::text)::@extschema@.bson,
                    (v.options OPERATOR(@extschema@.->) 'schema'::text)::@extschema@.bson]) q
              WHERE q.path = u.p AND NOT (is_unique AND q.many)),
             format('%I OPERATOR(@extschema@.->) %L::text', m.doc, u.p))), ', ' ORDER BY u.n)
      INTO expressions FROM unnest(paths) WITH ORDINALITY AS u (p, n);
    SELECT o.index INTO index FROM docpatterns._pattern_indexes(rel) o
      JOIN pg_index x ON x.indexrelid = o.index
      WHERE o.pattern = 'polymorphic_variant' AND o.name = variant AND o.part = line
        AND x.indisunique = w.is_unique AND x.indisvalid ORDER BY x.indexrelid LIMIT 1;
    RETURN NEXT;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_indexes(regclass, text, text) IS
  'the partial indexes that a variant is declared with, and those that are there';

-- Paths of a list that is separated by commas, each as paths are written.
CREATE FUNCTION docpatterns._polymorphic_path_list(list text) RETURNS text[]
  AS 'MODULE_PATHNAME', 'dp_polymorphic_path_list' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._polymorphic_path_list(text) IS
  'the paths of a list; error 22023 for a bad path';

CREATE FUNCTION docpatterns._polymorphic_drop_indexes(rel regclass, variant text,
  keep text[] DEFAULT '{}') RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  i record;
BEGIN
  FOR i IN SELECT o.index FROM docpatterns._pattern_indexes(rel) o
      WHERE o.pattern = 'polymorphic_variant' AND o.name = variant AND NOT o.part = ANY (keep) LOOP
    EXECUTE format('DROP INDEX %s', i.index);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_drop_indexes(regclass, text, text[]) IS
  'drops the partial indexes that were made for a variant, but those for the paths in keep';
