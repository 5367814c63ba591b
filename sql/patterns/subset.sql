-- The subset pattern: documents show the first few rows of their group. Its triggers are in
-- src/patterns/subset/ and src/kit/derive/, functions shared by patterns of two tables in
-- derive.sql.

CREATE FUNCTION docpatterns.subset_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_subset_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.subset_trigger() IS
  'trigger of the tables of a subset pattern; made by subset_enable';

CREATE FUNCTION docpatterns._subset_member(doc bson, fields bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_subset_member' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION docpatterns._subset_member(bson, bson) IS
  'what a subset shows of a document of its source: a projection whose fields come in the order in '
  'which they are named, _id only when it is; {} is the whole document';

CREATE FUNCTION docpatterns._subset_indexed(rel regclass, name text) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_subset_indexed' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._subset_indexed(regclass, text) IS
  'whether the source of a subset pattern has the index that it needs';

-- Declaring ---------------------------------------------------------------------------------------

-- The wrapper resolves the name of the source by the caller's search_path; the work is done under a
-- fixed one.
CREATE FUNCTION subset_enable(
  rel regclass, field text, source text, on_field text, order_by bson, keep int,
  fields bson DEFAULT NULL, filter bson DEFAULT NULL,
  count_field text DEFAULT NULL, count_mode text DEFAULT 'immediate', name text DEFAULT NULL,
  doc_column text DEFAULT NULL,
  source_doc_column text DEFAULT NULL, create_source boolean DEFAULT false) RETURNS text
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  RETURN docpatterns._subset_enable(rel, field, source, pg_catalog.to_regclass(source), on_field,
      order_by, keep, fields, filter,
        count_field, count_mode, name, doc_column, source_doc_column,
        create_source, false);
END
$$;
COMMENT ON FUNCTION subset_enable(regclass, text, text, text, bson, int, bson, bson, text, text,
  text, text, text, boolean) IS
  'Declares the subset pattern: the field of each document of rel is an array of the first keep '
  'documents of source whose on_field is its key. Returns the name of the declaration. Locks both '
  'tables against writers and creates an index on the source. Errors: 22023 options that do not '
  'fit, 42P01 a source that does not exist, 42710 the name exists, 42501 unless the caller owns '
  'both tables';

CREATE FUNCTION docpatterns._subset_enable(
  rel regclass, field text, source text, source_rel regclass, on_field text, order_by bson,
  keep int, fields bson, filter bson,
  count_field text, count_mode text, name text, doc_column text, source_doc_column text,
    create_source boolean, quiet boolean) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  link_id text := replace(gen_random_uuid()::text, '-', '');
  options @extschema@.bson;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  IF source IS NULL THEN
    RAISE EXCEPTION 'source must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  options := docpatterns._pattern_declare(rel, 'subset', @extschema@.bson_build(
    'name', coalesce(name, field), 'field', field, 'on_field', on_field, 'order_by', order_by,
    'keep', keep, 'fields', fields, 'filter', filter, 'count_field', count_field,
    'count_mode', count_mode, 'doc_column', t.doc));
  name := @extschema@.bson_get_text(options, 'name');

  source_rel := coalesce(source_rel, docpatterns._pattern_create_collection(source, t.schema_name,
        t.owner, create_source, 'create_source'));
  source_doc_column := docpatterns._derive_source(rel, source_rel, source_doc_column);
  IF source_doc_column IS NULL THEN
    RAISE EXCEPTION '"%" is a relation of buckets', docpatterns._relname(source_rel)
      USING ERRCODE = 'wrong_object_type', HINT = 'A subset shows documents of a table.';
  END IF;
  PERFORM docpatterns._shard_require_together(rel, t.doc, NULL, source_rel, source_doc_column,
    on_field);
  options := @extschema@.bson_set(@extschema@.bson_set(options, 'source_doc_column',
        source_doc_column), 'link_id', link_id);
  options := @extschema@.bson_set(options, 'removed_link_id',
      docpatterns._subset_create_removed(rel,
      name));
  IF count_field IS NOT NULL AND count_mode = 'deferred' THEN
    options := @extschema@.bson_set(options, 'second_link_id',
        docpatterns._derive_create_queue(rel, 'subset', name));
  END IF;
  PERFORM docpatterns._subset_create_triggers(rel, options);
  PERFORM docpatterns._derive_source_triggers(source_rel, 'subset', name, link_id);
  PERFORM docpatterns._pattern_anchor(rel, name);
  PERFORM docpatterns._subset_create_index(rel, name);
  IF NOT quiet THEN
    PERFORM docpatterns._pattern_notice_rows(rel, name);
  END IF;
  RETURN name;
END
$$;
COMMENT ON FUNCTION docpatterns._subset_enable(regclass, text, text, regclass, text, bson, int,
  bson, bson, text, text, text, text, text, boolean, boolean) IS
  'subset_enable with the source resolved';

CREATE FUNCTION docpatterns._subset_create_removed(rel regclass, name text) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN docpatterns._derive_create_queue($1, 'subset', $2, 'removed', 'no longer shows');
END
$$;
COMMENT ON FUNCTION docpatterns._subset_create_removed(regclass, text) IS
  'makes the table <rel>_<name>_removed, which tells old copies of an array from new elements, and '
  'returns its link ID, the option "removed_link_id"';

-- Raises errors in options.
CREATE FUNCTION docpatterns._subset_verify(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM docpatterns._subset_member('{}'::@extschema@.bson,
           (options OPERATOR(@extschema@.->) 'fields'::text)::@extschema@.bson)
  WHERE @extschema@.bson_exists(options, 'fields');
END
$$;
COMMENT ON FUNCTION docpatterns._subset_verify(regclass, bson) IS
  'error 22023 for fields that are no projection';

CREATE FUNCTION docpatterns._subset_is_document(value bson_value) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(@extschema@.bson_typeof($1) = 'object', false)
$$;
COMMENT ON FUNCTION docpatterns._subset_is_document(bson_value) IS
  'whether a value is a document; false for NULL';

-- The triggers on the target, created again when options change. The main one has the declaration.
CREATE FUNCTION docpatterns._subset_create_triggers(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name text := @extschema@.bson_get_text(options, 'name');
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.subset_trigger(%L)',
                 docpatterns._pattern_own_trigger(rel, 80, 'subset', name, NULL, 23), rel,
                 options::text);
  PERFORM docpatterns._pattern_statement_trigger(rel, 80, 'subset', name, 'late', 20,
      'AFTER INSERT OR UPDATE');
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._subset_create_triggers(regclass, bson) IS
  'triggers of the subset pattern on the table with the field';

-- Creates the index for a group's first rows unless there is one. Its comment shows that the
-- pattern created it.
CREATE FUNCTION docpatterns._subset_create_index(rel regclass, name text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  columns text[];
  index_name text;
  n int := 0;
BEGIN
  SELECT q.* INTO p FROM docpatterns._subset_parts(rel, name) q;
  columns := ARRAY[format('(%I OPERATOR(@extschema@.->) %L::text)', p.source_column,
        @extschema@.bson_get_text(p.options, 'on_field')),
                   format('(@extschema@.bson_sort_key(%I, %L::@extschema@.bson))', p.source_column,
                     (p.options OPERATOR(@extschema@.->) 'order_by'::text)::@extschema@.bson)]
             || (SELECT array_agg(format('%I', k))
                 FROM docpatterns._pattern_table(p.source, p.source_column) t
                 CROSS JOIN unnest(t.keys) k);
  IF p.filter IS NULL THEN
    PERFORM docpatterns._derive_create_index(p.source, 'subset', name, columns);
    RETURN;
  END IF;
  index_name := docpatterns._pattern_object_name(p.source_name, _subset_create_index.name, 'idx');
  WHILE EXISTS (SELECT FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
        WHERE s.nspname = p.source_schema AND c.relname = index_name) LOOP
    n := n + 1;
    index_name := docpatterns._pattern_object_name(p.source_name, _subset_create_index.name,
        'idx' || n);
  END LOOP;
  EXECUTE format('CREATE INDEX %I ON %s (%s) WHERE %I OPERATOR(@extschema@.@@) '
      '%L::@extschema@.bson AND %s', index_name, p.source, array_to_string(columns, ', '),
      p.source_column, p.filter,
                 docpatterns._pattern_mark('subset', name, 'filter'));
END
$$;
COMMENT ON FUNCTION docpatterns._subset_create_index(regclass, text) IS
  'makes the index that a subset pattern needs on its source, unless there is one';

-- Verbs -------------------------------------------------------------------------------------------

-- Names and options of a declaration, as the verbs below use them in generated SQL: there "b" is a
-- row of the table, "s" one of the source.
CREATE FUNCTION docpatterns._subset_parts(rel regclass, name text,
                              OUT base text, OUT options bson, OUT doc text, OUT key_row text,
                              OUT key_list text, OUT key_value text,
                              OUT field text, OUT count_field text, OUT keep int, OUT link_id text,
                              OUT deferred boolean, OUT queue regclass, OUT removed regclass,
                              OUT source regclass, OUT source_schema text, OUT source_name text,
                              OUT source_column text, OUT source_doc text, OUT source_keys text,
                              OUT link text, OUT sort_key text, OUT filter bson,
                              OUT filter_sql text, OUT member text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  t record;
  s record;
BEGIN
  SELECT q.* INTO t FROM docpatterns._pattern_parts(rel, 'subset', name) q;
  base := t.base; options := t.options; doc := t.doc; source := t.side;
  key_list := t.key_list; key_row := t.key_row; key_value := t.key_value;
  field := @extschema@.bson_get_text(options, 'field');
  count_field := @extschema@.bson_get_text(options, 'count_field');
  keep := (options OPERATOR(@extschema@.->) 'keep'::text)::int;
  link_id := @extschema@.bson_get_text(options, 'link_id');
  deferred := coalesce(@extschema@.bson_get_text(options, 'count_mode') = 'deferred', false);
  queue := docpatterns._pattern_side(@extschema@.bson_get_text(options, 'second_link_id'), rel);
  removed := docpatterns._pattern_side(@extschema@.bson_get_text(options, 'removed_link_id'), rel);
  IF source IS NULL THEN
    RAISE EXCEPTION 'the source of the subset pattern "%" on table "%" is missing', name,
        docpatterns._relname(rel)
      USING ERRCODE = 'undefined_table', HINT = 'Restore it, or disable the pattern.';
  END IF;
  SELECT p.* INTO s FROM docpatterns._pattern_table(source,
      docpatterns._pattern_doc_column(source,
        @extschema@.bson_get_text(options, 'source_doc_column'))) p;
  source_schema := s.schema_name; source_name := s.table_name; source_column := s.doc;
  source_doc := format('s.%I', s.doc);
  SELECT string_agg(format('s.%I', k), ', ' ORDER BY n) INTO source_keys FROM unnest(s.keys)
    WITH ORDINALITY AS u (k, n);
  link := format('%s OPERATOR(@extschema@.->) %L::text', source_doc,
      @extschema@.bson_get_text(options, 'on_field'));
  sort_key := format('@extschema@.bson_sort_key(%s, %L::@extschema@.bson)', source_doc,
      (options OPERATOR(@extschema@.->) 'order_by'::text)::@extschema@.bson);
  filter := (options OPERATOR(@extschema@.->) 'filter'::text)::@extschema@.bson;
  filter_sql := CASE WHEN filter IS NULL THEN 'true' ELSE
    format('%s OPERATOR(@extschema@.@@) %L::@extschema@.bson', source_doc, filter) END;
  member := format('docpatterns._subset_member(%s, %L::@extschema@.bson)', source_doc,
      coalesce((options OPERATOR(@extschema@.->) 'fields'::text)::@extschema@.bson,
        '{}'::@extschema@.bson));
END
$$;
COMMENT ON FUNCTION docpatterns._subset_parts(regclass, text) IS
  'names and options of a subset declaration, and pieces of SQL text about them';

CREATE FUNCTION docpatterns._subset_check(rel regclass, name text) RETURNS TABLE (key bson_value,
  what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  IF EXISTS (SELECT FROM docpatterns._pattern_declarations(_subset_check.rel) d
      WHERE d.pattern = 'subset' AND d.name = _subset_check.name
             AND docpatterns._pattern_side(@extschema@.bson_get_text(d.options, 'link_id'),
                   _subset_check.rel) IS NULL) THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'source'::text,
      'a table with the triggers of the pattern'::text, 'none'::text;
    RETURN;
  END IF;
  SELECT q.* INTO p FROM docpatterns._subset_parts(rel, name) q;
  IF p.deferred AND p.queue IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'queue'::text, 'present'::text,
      'missing'::text;
  END IF;
  IF p.removed IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'list of members that were removed'::text,
      'present'::text, 'missing'::text;
  END IF;
  IF NOT docpatterns._subset_indexed(rel, name) THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'index on the source'::text, 'present'::text,
      'missing'::text;
  END IF;
  RETURN QUERY EXECUTE format($q$
    WITH g AS (
      SELECT r.link, count(*) AS n, coalesce(@extschema@.bson_agg(r.member
            ORDER BY r.place) FILTER (WHERE r.place <= %1$s),
          '[]'::@extschema@.bson_value) AS members
      FROM (SELECT %2$s AS link, CASE WHEN row_number() OVER w <= %1$s THEN %3$s
          END AS member, row_number() OVER w AS place
            FROM %4$s AS s WHERE (%5$s) AND (%2$s) IS NOT NULL WINDOW w AS (PARTITION BY (%2$s)
                  ORDER BY %6$s, %7$s)) AS r
      GROUP BY r.link)
    SELECT %8$s, v.what, v.expected, v.found
    FROM %9$s AS b LEFT JOIN g ON g.link OPERATOR(@extschema@.=) %8$s
      CROSS JOIN LATERAL (SELECT %10$s OPERATOR(@extschema@.->) %11$L::text AS members,
          %10$s OPERATOR(@extschema@.->) %12$L::text AS n OFFSET 0) AS d
      CROSS JOIN LATERAL (
        SELECT format('array "%%s"', %11$L), format('%%s members', least(coalesce(g.n, 0), %1$s)),
               CASE WHEN d.members IS NULL THEN 'absent'
                 WHEN @extschema@.bson_typeof(d.members) <> 'array' THEN
                 @extschema@.bson_typeof(d.members)
                    WHEN @extschema@.bson_array_length(d.members) = least(coalesce(g.n, 0),
                        %1$s) THEN 'others'
                    ELSE format('%%s members', @extschema@.bson_array_length(d.members)) END
          WHERE @extschema@.bson_build('a',
              d.members)::bytea IS DISTINCT FROM @extschema@.bson_build('a',
              coalesce(g.members, '[]'::@extschema@.bson_value))::bytea
        UNION ALL
        SELECT format('count "%%s"', %12$L), coalesce(g.n, 0)::text,
          coalesce(CASE WHEN @extschema@.bson_typeof(d.n) IN ('int', 'long') THEN d.n::text
            ELSE @extschema@.bson_typeof(d.n) END, 'absent')
          WHERE %12$L IS NOT NULL AND (d.n IS NULL
              OR @extschema@.bson_typeof(d.n) NOT IN ('int', 'long')
              OR d.n::text <> coalesce(g.n, 0)::text) AND NOT %13$s
      ) AS v (what, expected, found)
    WHERE %10$s IS NOT NULL
    $q$, p.keep, p.link, p.member, p.source, p.filter_sql, p.sort_key, p.source_keys, p.key_value,
      p.base, p.doc, p.field, p.count_field,
    CASE WHEN p.queue IS NULL THEN 'false' ELSE
      format('EXISTS (SELECT 1 FROM %s AS q WHERE q.key OPERATOR(@extschema@.=) %s)', p.queue,
        p.key_value) END);
END
$$;
COMMENT ON FUNCTION docpatterns._subset_check(regclass, text) IS
  'violated invariants of a subset pattern';

CREATE FUNCTION docpatterns._subset_pending(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._subset_parts(rel, name) q;
  RETURN format('SELECT %s AS key FROM %s AS b WHERE %s IS NOT NULL ORDER BY %s', p.key_row, p.base,
      p.doc, p.key_list);
END
$$;
COMMENT ON FUNCTION docpatterns._subset_pending(regclass, text) IS
  'SQL text: keys of all documents, each of which may show others than it should';

-- Elements are unchanged rows, unless members show fields by other names.
CREATE FUNCTION docpatterns._subset_adopts(options bson) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT NOT EXISTS (SELECT FROM @extschema@.bson_each(($1 OPERATOR(@extschema@.->)
          'fields'::text)::@extschema@.bson) e
                     WHERE @extschema@.bson_exists($1, 'fields')
                       AND @extschema@.bson_typeof(e.value) IN ('string', 'object', 'array'))
$$;
COMMENT ON FUNCTION docpatterns._subset_adopts(bson) IS
  'whether pattern_build() makes rows of elements that a document embeds';

-- A document that embeds elements and has no row in the source: they become rows, if all of them
-- can.
CREATE FUNCTION docpatterns._subset_move_held(rel regclass, name text, key bson_value) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  elements @extschema@.bson_value;
  on_field text;
  found boolean;
BEGIN
  SELECT q.* INTO p FROM docpatterns._subset_parts(rel, name) q;
  on_field := @extschema@.bson_get_text(p.options, 'on_field');
  EXECUTE format('SELECT EXISTS (SELECT 1 FROM %s AS s WHERE %s OPERATOR(@extschema@.=) $1)',
      p.source, p.link) INTO found USING key;
  IF found OR NOT docpatterns._subset_adopts(p.options) THEN
    RETURN;
  END IF;
  EXECUTE format('SELECT %s OPERATOR(@extschema@.->) %L::text FROM %s AS b WHERE %s '
      'OPERATOR(@extschema@.=) $1', p.doc, p.field, p.base, p.key_value) INTO elements USING key;
  IF @extschema@.bson_typeof(elements) IS DISTINCT FROM 'array'
     OR EXISTS (SELECT FROM @extschema@.bson_elements(elements) e
         WHERE @extschema@.bson_typeof(e) <> 'object'
                  OR @extschema@.bson_exists(e::@extschema@.bson, on_field)
                      AND (e::@extschema@.bson OPERATOR(@extschema@.->) on_field)
                      OPERATOR(@extschema@.<>) key) THEN
    RETURN;
  END IF;
  -- new ids are put in order first: they may not be made in it
  EXECUTE format($q$INSERT INTO %1$s (%2$I)
      SELECT @extschema@.bson_set(CASE
          WHEN @extschema@.bson_exists(e::@extschema@.bson, '_id') THEN e::@extschema@.bson
            ELSE @extschema@.bson_build('_id',
                i.id) OPERATOR(@extschema@.||) e::@extschema@.bson
              END, %3$L, $2)
      FROM @extschema@.bson_elements($1) WITH ORDINALITY AS u (e, n)
        JOIN (SELECT i.id, row_number() OVER (ORDER BY i.id) AS n
            FROM (SELECT @extschema@.objectid() AS id
              FROM generate_series(1, @extschema@.bson_array_length($1))) AS i) AS i USING (n)
      ORDER BY n ON CONFLICT DO NOTHING$q$, p.source, p.source_column, on_field)
        USING elements, key;
EXCEPTION WHEN integrity_constraint_violation THEN
  -- the source accepts no such rows: the caller reports the elements
  NULL;
END
$$;
COMMENT ON FUNCTION docpatterns._subset_move_held(regclass, text, bson_value) IS
  'makes rows of the source of the elements that a document holds, if the source has none for it';

CREATE FUNCTION docpatterns._subset_identity(rel regclass, name text, member bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_subset_identity' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._subset_identity(regclass, text, bson) IS
  'what a member is known by: {_id: ..} where members show the source''s _id, else what they show '
  'of the order, else {hash: ..} of its bytes';

-- The inverse of building members: new rows for the elements of an array.
CREATE FUNCTION docpatterns._subset_new_rows(rel regclass, name text, key bson_value, doc bson,
  inserted boolean) RETURNS bson[]
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  p record;
  f record;
  given @extschema@.bson_value;
  member @extschema@.bson;
  row @extschema@.bson;
  identity @extschema@.bson;
  order_by @extschema@.bson;
  shows_id boolean;
  shown text;
  place bytea;
  is_known boolean;
  on_field text;
  wrong text;
  rows @extschema@.bson[];
  n bigint;
BEGIN
  SELECT q.* INTO p FROM docpatterns._subset_parts(rel, name) q;
  on_field := @extschema@.bson_get_text(p.options, 'on_field');
  given := doc OPERATOR(@extschema@.->) p.field;
  IF given IS NOT NULL AND @extschema@.bson_typeof(given) NOT IN ('array', 'null') THEN
    RAISE EXCEPTION 'field "%" of table "%" shows rows of table "%"', p.field,
        docpatterns._relname(rel), docpatterns._relname(p.source)
      USING ERRCODE = 'object_not_in_prerequisite_state',
        DETAIL = format('A value of type %s cannot become such rows.',
          @extschema@.bson_typeof(given)), HINT = format('Write to table "%s".',
              docpatterns._relname(p.source));
  END IF;
  order_by := (p.options OPERATOR(@extschema@.->) 'order_by'::text)::@extschema@.bson;
  shows_id := EXISTS (SELECT FROM docpatterns._pattern_table(p.source, p.source_column) t
      WHERE t.keys = '{_id}' AND t.key_types = ARRAY['@extschema@.bson_value'::regtype::text]);
  shown := format('SELECT %s AS member FROM %s AS s WHERE %s OPERATOR(@extschema@.=) $1 AND %s '
      'ORDER BY %s, %s LIMIT %s',
                  p.member, p.source, p.link, p.filter_sql, p.sort_key, p.source_keys, p.keep);
  -- unchanged members need no read of the rows
  FOR member IN EXECUTE format($q$
    SELECT v.member FROM @extschema@.bson_elements($2) WITH ORDINALITY AS e (element, n)
      CROSS JOIN LATERAL (SELECT CASE
          WHEN @extschema@.bson_typeof(e.element) = 'object' THEN e.element::@extschema@.bson
          END AS member) AS v
    WHERE (v.member::bytea IN (SELECT m.member::bytea FROM (%s) AS m)) IS NOT TRUE
      ORDER BY e.n$q$, shown)
    USING key, CASE WHEN @extschema@.bson_typeof(given) = 'array' THEN given END LOOP
    IF member IS NULL THEN
      wrong := 'An element must be a document.';
      EXIT;
    END IF;
    -- an index leads to the row: by _id, or by its place where the member shows all of the order
    identity := docpatterns._subset_identity(rel, name, member);
    SELECT @extschema@.bson_sort_key(@extschema@.bson_object_agg(k, v), order_by) INTO place
    FROM @extschema@.bson_keys(order_by) WITH ORDINALITY AS o (k, n)
      FULL JOIN @extschema@.bson_elements(identity OPERATOR(@extschema@.->) 'order'::text)
      WITH ORDINALITY AS i (v, n) USING (n)
    HAVING bool_and(k !~ '[.]' AND v IS NOT NULL AND @extschema@.bson_typeof(v) <> 'null');
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %s AS s WHERE %s)', p.source, CASE
        WHEN shows_id AND @extschema@.bson_exists(identity, '_id') THEN
          's._id OPERATOR(@extschema@.=) ($1 OPERATOR(@extschema@.->) ''_id''::text)' || CASE
            WHEN inserted THEN format(' AND %s OPERATOR(@extschema@.=) $2', p.link) ELSE '' END
        ELSE format('%s OPERATOR(@extschema@.=) $2 AND %s AND ', p.link, p.filter_sql) ||
          CASE WHEN @extschema@.bson_exists(identity, 'hash') THEN
            format('%s::bytea = $6::bytea', p.member)
               ELSE CASE WHEN place IS NOT NULL THEN format('%s = $5 AND ', p.sort_key)
                         WHEN @extschema@.bson_exists(identity, '_id') THEN
                           format('%s OPERATOR(@extschema@.->) ''_id''::text '
                             'OPERATOR(@extschema@.=) ($1 OPERATOR(@extschema@.->) ''_id''::text) '
                             'AND ', p.source_doc)
                         ELSE '' END || format('docpatterns._subset_identity($3, $4, %s)::bytea = '
                             '$1::bytea', p.member) END END)
      INTO is_known USING identity, key, rel, name, place, member;
    IF NOT is_known AND NOT inserted AND p.removed IS NOT NULL THEN
      EXECUTE format('SELECT EXISTS (SELECT 1 FROM %s AS g WHERE g.key OPERATOR(@extschema@.=) $2 '
          'AND g.delta::bytea = $1::bytea)', p.removed) INTO is_known USING identity, key;
    END IF;
    CONTINUE WHEN is_known;

    -- a member without an identity may be an edited one, unless all others are unchanged
    IF NOT inserted AND @extschema@.bson_exists(identity, 'hash') THEN
      EXECUTE format('SELECT EXISTS (SELECT FROM (%s) AS m WHERE NOT EXISTS (SELECT FROM '
          '@extschema@.bson_elements($2) e WHERE e::@extschema@.bson::bytea = m.member::bytea))',
          shown)
        INTO is_known USING key, given;
      IF is_known THEN
        wrong := 'Members show nothing by which an element that was edited can be told from a new '
          'one.';
        EXIT;
      END IF;
    END IF;
    row := member;
    FOR f IN SELECT e.key AS shown, e.value
        FROM @extschema@.bson_each((p.options OPERATOR(@extschema@.->)
            'fields'::text)::@extschema@.bson) e
        WHERE @extschema@.bson_exists(p.options, 'fields') LOOP
      IF @extschema@.bson_typeof(f.value) IN ('string', 'object', 'array')
          AND @extschema@.bson_exists(member, f.shown) THEN
        IF @extschema@.bson_typeof(f.value) <> 'string' OR f.value::text !~ '^[$][^$]' THEN
          wrong := format('"%s" of an element is computed, and does not tell what the row has.',
              f.shown);
          EXIT;
        END IF;
        row := @extschema@.bson_set(@extschema@.bson_unset(row, f.shown), substr(f.value::text, 2),
            member OPERATOR(@extschema@.->) f.shown);
      END IF;
    END LOOP;
    IF @extschema@.bson_exists(row, on_field)
        AND (row OPERATOR(@extschema@.->) on_field) OPERATOR(@extschema@.<>) key THEN
      wrong := format('An element has another "%s" than the document''s key.', on_field);
    END IF;
    row := @extschema@.bson_set(row, on_field, key);
    wrong := coalesce(wrong,
      (SELECT format('An element has no "%s", by which rows are ordered.', k)
        FROM @extschema@.bson_keys(order_by) k
       WHERE NOT @extschema@.bson_exists(row, k) AND NOT (k = '_id' AND shows_id) LIMIT 1),
      (SELECT 'An element does not match the filter of those that are shown.'
        WHERE p.filter IS NOT NULL AND NOT row OPERATOR(@extschema@.@@) p.filter),
      (SELECT format('A row needs a value in column "%s".', a.attname) FROM pg_attribute a
       WHERE a.attrelid = p.source AND a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull
         AND NOT a.atthasdef AND a.attidentity = ''
         AND a.attname <> p.source_column AND NOT (shows_id AND a.attname = '_id') LIMIT 1));
    EXIT WHEN wrong IS NOT NULL;
    rows := rows || row;
  END LOOP;
  IF wrong IS NOT NULL THEN
    RAISE EXCEPTION 'new elements of "%" in table "%" cannot become rows of table "%"', p.field,
        docpatterns._relname(rel),
      docpatterns._relname(p.source)
      USING ERRCODE = 'object_not_in_prerequisite_state', DETAIL = wrong,
        HINT = format('Insert into table "%s", with the document''s key in "%s".',
            docpatterns._relname(p.source),
          on_field);
  END IF;
  IF rows IS NULL AND inserted AND p.count_field IS NOT NULL
      AND (doc OPERATOR(@extschema@.->) p.count_field) OPERATOR(@extschema@.>)
      0::@extschema@.bson_value THEN
    EXECUTE format('SELECT count(*) FROM (SELECT 1 FROM %s AS s WHERE %s OPERATOR(@extschema@.=) '
        '$1 AND %s LIMIT 1) AS r', p.source, p.link, p.filter_sql) INTO n USING key;
    IF n = 0 THEN
      RAISE EXCEPTION 'field "%" of table "%" counts rows of table "%", which has none for the '
        'document',
        p.count_field, docpatterns._relname(rel), docpatterns._relname(p.source)
        USING ERRCODE = 'object_not_in_prerequisite_state',
          HINT = format('Insert into table "%s", before or in the same statement.',
              docpatterns._relname(p.source));
    END IF;
  END IF;
  RETURN rows;
END
$$;
COMMENT ON FUNCTION docpatterns._subset_new_rows(regclass, text, bson_value, bson, boolean) IS
  'the rows of the source to insert for elements of a document''s array that never had one; error '
  '55000 if an element cannot become a row';

CREATE FUNCTION docpatterns._subset_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  done bigint;
BEGIN
  SELECT q.* INTO p FROM docpatterns._subset_parts(rel, name) q;
  IF p.deferred AND p.queue IS NULL THEN
    p.options := @extschema@.bson_set(p.options, 'second_link_id',
        docpatterns._derive_create_queue(rel, 'subset', name));
    PERFORM docpatterns._subset_create_triggers(rel, p.options);
  END IF;
  IF p.removed IS NULL THEN
    PERFORM docpatterns._subset_create_triggers(rel,
        @extschema@.bson_set(p.options, 'removed_link_id', docpatterns._subset_create_removed(rel,
            name)));
  ELSE
    -- nothing is saved as long after it was read
    PERFORM docpatterns._pattern_forget_removed(rel, name);
  END IF;
  PERFORM docpatterns._subset_create_index(rel, name)
    WHERE NOT docpatterns._subset_indexed(rel, name);
  done := docpatterns._pattern_repair_rows(rel, name, docpatterns._subset_pending(rel, name));
  RETURN done + @extschema@.subset_refresh(rel, name);
END
$$;
COMMENT ON FUNCTION docpatterns._subset_repair(regclass, text) IS
  'pattern_repair of the subset pattern';

CREATE FUNCTION docpatterns._subset_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  o @extschema@.bson := options;
  is_deferred boolean;
BEGIN
  SELECT q.* INTO p FROM docpatterns._subset_parts(rel, name) q;
  EXECUTE format('LOCK TABLE %s, %s IN SHARE ROW EXCLUSIVE MODE', p.base, p.source);
  is_deferred := coalesce(@extschema@.bson_get_text(o, 'count_mode') = 'deferred', false);
  IF p.deferred AND NOT is_deferred THEN
    PERFORM @extschema@.subset_refresh(rel, name);
    o := @extschema@.bson_unset(o, 'second_link_id');
  ELSIF is_deferred AND NOT p.deferred THEN
    o := @extschema@.bson_set(o, 'second_link_id',
        docpatterns._derive_create_queue(rel, 'subset', name));
  END IF;
  PERFORM docpatterns._subset_create_triggers(rel, o);
  IF p.deferred AND NOT is_deferred AND p.queue IS NOT NULL THEN
    EXECUTE format('DROP TABLE %s', p.queue);
  END IF;
  IF (o OPERATOR(@extschema@.->) 'order_by'::text)::text
    <> (p.options OPERATOR(@extschema@.->) 'order_by'::text)::text
     OR (o OPERATOR(@extschema@.->) 'filter'::text)::text IS DISTINCT FROM (p.options
         OPERATOR(@extschema@.->) 'filter'::text)::text THEN
    PERFORM docpatterns._derive_drop_indexes(p.source, 'subset', name);
    PERFORM docpatterns._subset_create_index(rel, name);
  END IF;
  PERFORM docpatterns._pattern_repair_rows(rel, name, docpatterns._subset_pending(rel, name));
END
$$;
COMMENT ON FUNCTION docpatterns._subset_alter(regclass, text, bson) IS
  'pattern_alter of the subset pattern';

CREATE FUNCTION docpatterns._subset_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  done bigint := 0;
  keep_data boolean := @extschema@.bson_get_text(how, 'keep_data') = 'true';
  o @extschema@.bson;
  t record;
  removed text[];
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  SELECT d.options INTO o FROM docpatterns._pattern_declarations(rel) d WHERE d.pattern = 'subset'
    AND d.name = _subset_disable.name;
  removed := ARRAY(SELECT p.path FROM docpatterns._pattern_paths('subset', o) p
      WHERE p.path <> ALL (docpatterns._pattern_own_paths(o)));
  SELECT q.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(o, 'doc_column'))) q;
  PERFORM docpatterns._derive_drop(rel, 'subset', name);
  IF NOT keep_data THEN
    EXECUTE format('UPDATE %1$s SET %2$I = @extschema@.bson_unset(%2$I, VARIADIC $1) WHERE '
        '@extschema@.bson_exists_any(%2$I, $1)', t.base, t.doc) USING removed;
    GET DIAGNOSTICS done = ROW_COUNT;
  END IF;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._subset_disable(regclass, text, bson) IS
  'pattern_disable of the subset pattern: the copies in the documents go, unless told to keep '
  'them; the source stays as it is';

CREATE FUNCTION subset_refresh(rel regclass, name text DEFAULT NULL) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_subset_refresh' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION subset_refresh(regclass, text) IS
  'With count_mode => ''deferred'', counts the queued groups and returns the number of documents '
  'written. Locks the rows that it writes. Errors: 42704, 42501 unless the caller owns the table';

CREATE FUNCTION docpatterns._subset_due(rel regclass, name text, OUT what text,
  OUT since timestamptz, OUT amount bigint) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT * FROM docpatterns._derive_due($1, 'subset', $2, 'groups to count')
$$;
COMMENT ON FUNCTION docpatterns._subset_due(regclass, text) IS 'pattern_due of the subset pattern';

CREATE FUNCTION docpatterns._subset_maintain(rel regclass, name text, most int) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_subset_refresh' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._subset_maintain(regclass, text, int) IS
  'pattern_maintain of the subset pattern';
