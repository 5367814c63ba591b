-- The extended reference pattern: documents that contain copies of fields of the documents to which
-- they refer. src/patterns/reference/ fills and updates the copies.

CREATE FUNCTION docpatterns.reference_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_reference_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.reference_trigger() IS
  'trigger of tables with the extended reference pattern; made by reference_enable';

CREATE FUNCTION docpatterns.reference_source_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_reference_source_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.reference_source_trigger() IS
  'trigger of tables that documents refer to; made by reference_enable';

CREATE FUNCTION docpatterns.reference_array_hashes(doc bson, field text, id_field text)
  RETURNS bigint[]
  AS 'MODULE_PATHNAME', 'dp_reference_array_hashes' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    COST 100;
COMMENT ON FUNCTION docpatterns.reference_array_hashes(bson, text, text) IS
  'Hashes of the IDs in references inside of arrays, for a GIN index; NULL if the path meets no '
  'array. Error: 22023 a bad path';

CREATE FUNCTION docpatterns.reference_differs(a bson, b bson, paths text[]) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_reference_differs' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.reference_differs(bson, bson, text[]) IS
  'Whether one of the fields differs between two documents, by bytes; false without paths. The '
  'condition of triggers. Error: 22023 a bad path';

CREATE FUNCTION docpatterns._reference_sites(doc bson, field text, id_field text, OUT id bson_value,
  OUT copy bson_value, OUT bare boolean)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_reference_sites' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 1;
COMMENT ON FUNCTION docpatterns._reference_sites(bson, text, text) IS
  'the references of a document: what they name, and the sub-document (or the bare ID) that stands '
  'there';

CREATE FUNCTION docpatterns._reference_wrong(copy bson_value, source bson, live text[]) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_reference_wrong' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._reference_wrong(bson_value, bson, text[]) IS
  'the first of the live fields that the copy does not have as the source has it; NULL if all is '
  'right';

CREATE FUNCTION docpatterns._reference_forget_missing(rel regclass, name text) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_reference_forget_missing' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._reference_forget_missing(regclass, text) IS
  'applies the delete rule to references to what is not there; error 42501 unless the caller owns '
  'the table';

-- Declaring ---------------------------------------------------------------------------------------

CREATE FUNCTION reference_enable(
  rel regclass, field text, source regclass, id_field text DEFAULT '_id', live text[] DEFAULT '{}',
  frozen text[] DEFAULT '{}',
  on_delete text DEFAULT 'restrict', missing text DEFAULT 'error', refresh text DEFAULT 'immediate',
  max_staleness interval DEFAULT NULL,
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
  SELECT p.* INTO s FROM docpatterns._pattern_table(source, source_doc_column) p;
  PERFORM docpatterns._pattern_require_same_owner(rel, source);
  PERFORM docpatterns._pattern_refuse_partition(rel, source);
  PERFORM docpatterns._shard_require_together(rel, t.doc, concat_ws('.', field, id_field), source,
    s.doc, NULL, true);
  options := docpatterns._pattern_declare(rel, 'reference', @extschema@.bson_build(
    'name', coalesce(name, field), 'field', field, 'id_field', id_field, 'live', live,
    'frozen', frozen, 'on_delete', on_delete, 'missing', missing, 'refresh', refresh, 'link_id',
        link_id,
    'max_staleness', max_staleness::text, 'doc_column', t.doc, 'source_doc_column', s.doc));
  IF max_staleness IS NOT NULL AND refresh <> 'deferred' THEN
    RAISE EXCEPTION 'max_staleness needs refresh "deferred"'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  name := @extschema@.bson_get_text(options, 'name');

  PERFORM docpatterns._reference_create_indexes(rel, options);
  IF refresh = 'deferred' THEN
    options := @extschema@.bson_set(options, 'second_link_id',
        docpatterns._derive_create_queue(rel, 'reference', name));
  END IF;
  PERFORM docpatterns._reference_create_triggers(rel, source, options);
  PERFORM docpatterns._pattern_notice_rows(rel, name);
  RETURN name;
END
$$;
COMMENT ON FUNCTION reference_enable(regclass, text, regclass, text, text[], text[], text, text,
  text, interval, text, text, text) IS
  'Declares that documents of rel name documents of source in field and carry copies of their '
  'fields. Returns the name of the declaration. Locks both tables against writers and builds two '
  'indexes. Errors: 22023 options that do not fit or another pattern keeps the field, 42710 the '
  'name exists, 42501 unless the caller owns both tables';

-- Fields of a declaration: paths that lead somewhere, none inside another.
CREATE FUNCTION docpatterns._reference_verify(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  paths text[] := docpatterns._reference_list(options, 'live')
                  || docpatterns._reference_list(options, 'frozen')
                  || @extschema@.bson_get_text(options, 'id_field');
BEGIN
  -- a path that cannot lead to references is an error here
  PERFORM docpatterns._reference_sites('{}'::@extschema@.bson,
            @extschema@.bson_get_text(options, 'field'),
            @extschema@.bson_get_text(options, 'id_field'));
  IF EXISTS (SELECT FROM unnest(paths) WITH ORDINALITY AS a (path, n),
                         unnest(paths) WITH ORDINALITY AS b (path, n)
             WHERE a.n < b.n AND docpatterns._pattern_paths_overlap(a.path, b.path)) THEN
    RAISE EXCEPTION 'live, frozen and id_field must be different fields, none inside another'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._reference_verify(regclass, bson) IS
  'error 22023 unless the fields of a reference pattern fit each other';

-- The elements of an option that is an array of texts.
CREATE FUNCTION docpatterns._reference_list(options bson, option text) RETURNS text[]
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(array_agg(@extschema@.bson_get_text(@extschema@.bson_build('v', u.v), 'v')
        ORDER BY u.n), '{}')
  FROM @extschema@.bson_elements($1 OPERATOR(@extschema@.->) $2) WITH ORDINALITY AS u (v, n)
$$;
COMMENT ON FUNCTION docpatterns._reference_list(bson, text) IS
  'an option that is an array of texts';

-- Copies may be in arrays.
CREATE FUNCTION docpatterns._reference_paths(options bson, OUT path text, OUT kept boolean,
  OUT guarded boolean, OUT derived boolean) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH o AS (SELECT @extschema@.bson_get_text($1, 'field') AS field)
  SELECT o.field, true, false, false FROM o
  UNION ALL SELECT CASE WHEN o.field ~ '^[^."]+[.]' THEN split_part(o.field, '.', 1)
    ELSE o.field END, false, true, false FROM o
  UNION ALL SELECT o.field || '.' || l, false, false, true
    FROM o CROSS JOIN unnest(docpatterns._reference_list($1, 'live')) l
$$;
COMMENT ON FUNCTION docpatterns._reference_paths(bson) IS
  'paths of the field that has copies, and of what is copied into it';

-- Keeps values that the source has, too.
CREATE FUNCTION docpatterns._reference_added(rel regclass, name text, options bson, altered bson,
  OUT added text[], OUT holds text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT a.added, format('EXISTS (SELECT 1 FROM %s AS r LEFT JOIN (%s) AS s '
      'ON s.id OPERATOR(@extschema@.=) r.id '
      'CROSS JOIN unnest(%L::text[]) AS f WHERE CASE WHEN NOT r.bare THEN '
      'docpatterns._pattern_holds(r.copy::@extschema@.bson, f, false) END AND (s.id IS NULL '
      'OR docpatterns._reference_wrong(r.copy, s.doc, ARRAY[f]) IS NOT NULL))',
    q.sites, q.sources, a.added)
  FROM docpatterns._reference_parts($1, $2) q
    CROSS JOIN (SELECT ARRAY(SELECT unnest(docpatterns._reference_list($4, 'live'))
      EXCEPT SELECT unnest(docpatterns._reference_list($3, 'live')
        || docpatterns._reference_list($3, 'frozen'))) AS added) a
$$;
COMMENT ON FUNCTION docpatterns._reference_added(regclass, text, bson, bson) IS
  'live fields that options with changes add, and SQL text: whether a document b has other values '
  'there than its source';

-- The two indexes, as expressions: references outside of arrays by their id, those inside by the
-- hashes of theirs.
CREATE FUNCTION docpatterns._reference_index_parts(rel regclass, options bson, OUT base text,
  OUT by_id text, OUT by_hash text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) p;
  base := t.base;
  by_id := format('(%I OPERATOR(@extschema@.->) %L::text)', t.doc,
                  @extschema@.bson_get_text(options, 'field') || '.'
                  || @extschema@.bson_get_text(options, 'id_field'));
  by_hash := format('docpatterns.reference_array_hashes(%I, %L::text, %L::text)', t.doc,
                    @extschema@.bson_get_text(options, 'field'),
                    @extschema@.bson_get_text(options, 'id_field'));
END
$$;
COMMENT ON FUNCTION docpatterns._reference_index_parts(regclass, bson) IS
  'expressions of the indexes that a reference pattern needs';

-- Indexes of a table with this expression in the first place.
CREATE FUNCTION docpatterns._reference_find_index(rel regclass, expression text, method text)
  RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT i.indexrelid::regclass
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
  WHERE i.indrelid = $1 AND i.indisvalid AND a.amname = $3 AND i.indkey[0] = 0
    AND pg_get_indexdef(i.indexrelid, 1, true) = $2
    AND ($3 = 'gin' OR docpatterns._pattern_index_full(i.indexrelid))
$$;
COMMENT ON FUNCTION docpatterns._reference_find_index(regclass, text, text) IS
  'indexes of a table on an expression';

CREATE FUNCTION docpatterns._reference_create_indexes(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
  SET standard_conforming_strings = on AS $$
DECLARE
  p record;
  name text := @extschema@.bson_get_text(options, 'name');
BEGIN
  SELECT q.* INTO p FROM docpatterns._reference_index_parts(rel, options) q;
  PERFORM docpatterns._derive_create_index(rel, 'reference', name, ARRAY[p.by_id]);
  IF NOT EXISTS (SELECT FROM docpatterns._reference_find_index(rel, p.by_hash, 'gin')) THEN
    EXECUTE format('CREATE INDEX ON %s USING gin (%s) WHERE %2$s IS NOT NULL AND %s', p.base,
        p.by_hash, docpatterns._pattern_mark('reference', name, 'hash'));
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._reference_create_indexes(regclass, bson) IS
  'makes the indexes that a reference pattern needs, unless they are there';

-- The triggers of both tables, created again when options change. The main one has the declaration.
CREATE FUNCTION docpatterns._reference_create_triggers(rel regclass, source regclass, options bson)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  events record;
  decl_name text := @extschema@.bson_get_text(options, 'name');
  link_id text := @extschema@.bson_get_text(options, 'link_id');
  s record;
  part record;
  trigger_name text;
  moved text;
BEGIN
  IF rel = source AND EXISTS (SELECT
      FROM unnest(docpatterns._reference_list(options, 'live')
        || docpatterns._reference_list(options, 'frozen')) AS q (path)
                              WHERE docpatterns._pattern_paths_overlap(q.path,
                                @extschema@.bson_get_text(options, 'field'))) THEN
    RAISE EXCEPTION 'documents cannot copy their own copies'
      USING ERRCODE = 'invalid_parameter_value',
      DETAIL = format('The field "%s" is copied into itself.',
        @extschema@.bson_get_text(options, 'field'));
  END IF;
  SELECT p.* INTO s FROM docpatterns._pattern_table(source,
      @extschema@.bson_get_text(options, 'source_doc_column')) p;
  PERFORM docpatterns._reference_drop_triggers(rel, source, options);
  trigger_name := coalesce((SELECT g.tgname FROM pg_trigger g
        JOIN docpatterns._pattern_declarations(rel) d ON d.trigger_oid = g.oid
                            WHERE d.pattern = 'reference' AND d.name = decl_name),
                           docpatterns._pattern_trigger_name(rel, 'zz_docpatterns_30_reference',
                             decl_name, NULL));
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.reference_trigger(%L)',
                 trigger_name, rel, options::text);
  -- triggers for statements are not inherited by partitions
  trigger_name := docpatterns._pattern_trigger_name(rel, 'zz_docpatterns_30_reference', decl_name,
      'statement');
  FOR part IN SELECT p.relid FROM pg_partition_tree(rel) p UNION SELECT rel LOOP
    EXECUTE format('CREATE TRIGGER %I AFTER INSERT OR UPDATE ON %s FOR EACH STATEMENT EXECUTE '
        'FUNCTION docpatterns.reference_trigger(%L, %L)',
                   trigger_name, part.relid::regclass, 'of', decl_name);
  END LOOP;

  -- a source that changes nothing that is copied passes the condition and costs no call
  SELECT string_agg(format('OLD.%1$I %2$s NEW.%1$I', k, o), ' AND ') INTO moved
    FROM unnest(s.keys, s.key_ops) AS u (k, o);
  EXECUTE format('CREATE TRIGGER %I AFTER UPDATE ON %s FOR EACH ROW WHEN (NOT (%s) OR '
      'docpatterns.reference_differs(OLD.%I, NEW.%4$I, %L::text[])) '
                 'EXECUTE FUNCTION docpatterns.reference_source_trigger(%L, %L, %L)',
                 docpatterns._pattern_trigger_name(source, 'zz_docpatterns_70_reference', decl_name,
                   'update'), source, moved, s.doc,
                 docpatterns._reference_list(options, 'live'), 'side', link_id, decl_name);
  IF (SELECT c.relkind = 'p' FROM pg_class c WHERE c.oid = source) THEN
    EXECUTE format('CREATE TRIGGER %I BEFORE UPDATE ON %s FOR EACH ROW WHEN (NOT (%s)) EXECUTE '
        'FUNCTION docpatterns.reference_source_trigger(%L, %L, %L)',
                   docpatterns._pattern_trigger_name(source, 'zz_docpatterns_70_reference',
                     decl_name, 'before'), source, moved, 'side', link_id, decl_name);
  END IF;
  EXECUTE format('CREATE TRIGGER %I AFTER DELETE %s ON %s FOR EACH ROW EXECUTE FUNCTION '
      'docpatterns.reference_source_trigger(%L, %L, %L)',
                 docpatterns._pattern_trigger_name(source, 'zz_docpatterns_70_reference', decl_name,
                   'row'),
                 -- only where something may wait for it
                 CASE WHEN @extschema@.bson_get_text(options, 'missing') = 'allow'
                   OR @extschema@.bson_get_text(options, 'on_delete') = 'keep' THEN 'OR INSERT' END,
                 source, 'side', link_id, decl_name);
  FOR events IN SELECT * FROM docpatterns._pattern_split_events(
        'AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE', 60) LOOP
    trigger_name := docpatterns._pattern_trigger_name(source, 'zz_docpatterns_70_reference',
        decl_name, concat_ws('_', 'statement', events.label));
    FOR part IN SELECT p.relid FROM pg_partition_tree(source) p UNION SELECT source LOOP
      EXECUTE format('CREATE TRIGGER %I %s ON %s FOR EACH STATEMENT EXECUTE FUNCTION '
          'docpatterns.reference_source_trigger(%L, %L, %L)',
                     trigger_name, events.event, part.relid::regclass, CASE WHEN part.relid = source
                     THEN 'side' ELSE 'part' END, link_id, decl_name);
    END LOOP;
  END LOOP;
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._reference_create_triggers(regclass, regclass, bson) IS
  'triggers of the reference pattern on its two tables';

CREATE FUNCTION docpatterns._reference_drop_triggers(rel regclass, source regclass, options bson)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r record;
  name text := @extschema@.bson_get_text(options, 'name');
  link_id text := @extschema@.bson_get_text(options, 'link_id');
BEGIN
  FOR r IN SELECT t.tgname, t.tgrelid::regclass AS tab FROM pg_trigger t
           WHERE t.tgfoid = 'docpatterns.reference_source_trigger'::regproc AND t.tgparentid = 0
             AND t.tgrelid IN (SELECT p.relid FROM pg_partition_tree(source) p UNION SELECT source)
             AND t.tgargs IN (docpatterns._pattern_arguments('side', link_id, name),
                 docpatterns._pattern_arguments('part', link_id, name)) LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', r.tgname, r.tab);
  END LOOP;
  FOR r IN SELECT t.tgname, t.tgrelid::regclass AS tab FROM pg_trigger t
           WHERE t.tgfoid = 'docpatterns.reference_trigger'::regproc AND t.tgparentid = 0
             AND t.tgrelid IN (SELECT p.relid FROM pg_partition_tree(rel) p UNION SELECT rel)
             AND t.tgargs = docpatterns._pattern_arguments('of', name) LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', r.tgname, r.tab);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._reference_drop_triggers(regclass, regclass, bson) IS
  'drops the triggers of a reference pattern, except the main one';

-- Verbs -------------------------------------------------------------------------------------------

-- Names and options of a declaration, as the verbs below use them in generated SQL: there "b" is a
-- row of the table, "s" one of the source's.
CREATE FUNCTION docpatterns._reference_parts(rel regclass, name text,
                                 OUT base text, OUT options bson, OUT doc text, OUT key_row text,
                                 OUT key_list text, OUT key_value text,
                                 OUT source regclass, OUT source_doc text, OUT sources text,
                                 OUT queue regclass,
                                 OUT sites text, OUT live text[], OUT frozen text[], OUT by_id text,
                                 OUT by_hash text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  s record;
BEGIN
  SELECT q.* INTO t FROM docpatterns._pattern_parts(rel, 'reference', name) q;
  base := t.base; options := t.options; doc := t.doc; source := t.side;
  key_list := t.key_list; key_row := t.key_row; key_value := t.key_value;
  IF source IS NULL THEN
    -- the table was restored alone
    sources := 'SELECT NULL::@extschema@.bson_value AS id, NULL::@extschema@.bson AS doc WHERE '
      'false';
  ELSE
    SELECT p.* INTO s FROM docpatterns._pattern_table(source,
        docpatterns._pattern_doc_column(source,
          @extschema@.bson_get_text(options, 'source_doc_column'))) p;
    source_doc := s.doc;
    sources := format('SELECT %s AS id, %I AS doc FROM %s', s.key_value, s.doc, s.base);
  END IF;
  IF @extschema@.bson_exists(options, 'second_link_id') THEN
    queue := docpatterns._pattern_side(@extschema@.bson_get_text(options, 'second_link_id'), rel);
  END IF;
  sites := format('docpatterns._reference_sites(%s, %L, %L)', doc,
      @extschema@.bson_get_text(options, 'field'), @extschema@.bson_get_text(options, 'id_field'));
  live := docpatterns._reference_list(options, 'live');
  frozen := docpatterns._reference_list(options, 'frozen');
  SELECT q.by_id, q.by_hash INTO by_id, by_hash
    FROM docpatterns._reference_index_parts(rel, options) q;
END
$$;
COMMENT ON FUNCTION docpatterns._reference_parts(regclass, text) IS
  'names and options of a reference declaration, and pieces of SQL text about them';

CREATE FUNCTION docpatterns._reference_check(rel regclass, name text) RETURNS TABLE (key bson_value,
  what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  lag interval;
BEGIN
  SELECT q.* INTO p FROM docpatterns._reference_parts(rel, name) q;
  IF p.source IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'source'::text,
      'a table with the triggers of the pattern'::text, 'none'::text;
  END IF;
  IF NOT EXISTS (SELECT FROM docpatterns._reference_find_index(rel, p.by_id, 'btree'))
      OR NOT EXISTS (SELECT FROM docpatterns._reference_find_index(rel, p.by_hash, 'gin')) THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'indexes on references'::text,
      'present'::text, 'missing'::text;
  END IF;
  IF p.source IS NOT NULL THEN
    RETURN QUERY EXECUTE format($q$
      SELECT r.key, v.what, v.expected, v.found
      FROM (SELECT %1$s AS key, r.id, r.bare, s.id IS NULL AND %6$L::boolean AS missing,
            CASE WHEN NOT r.bare THEN docpatterns._reference_wrong(r.copy, s.doc, %7$L::text[])
              END AS wrong
          FROM %2$s AS b CROSS JOIN LATERAL %3$s AS r
            LEFT JOIN (%4$s) AS s ON s.id OPERATOR(@extschema@.=) r.id
          WHERE %9$s IS NOT NULL) AS r
        CROSS JOIN LATERAL (
          SELECT 'reference', 'a document of %5$s', 'none: ' || left(r.id::text, 100)
            WHERE r.missing
          UNION ALL SELECT 'reference', 'a sub-document', 'a bare id: ' || left(r.id::text, 100)
            WHERE r.bare
          UNION ALL SELECT format('copy of "%%s"', r.wrong), 'the field of ' ||
              left(r.id::text, 100), 'another'
            WHERE r.wrong IS NOT NULL %8$s
        ) AS v (what, expected, found)
      WHERE r.missing OR r.bare OR r.wrong IS NOT NULL
      $q$, p.key_value, p.base, p.sites, p.sources, replace(p.source::text, '''', ''''''),
      @extschema@.bson_get_text(p.options, 'missing') = 'error'
      AND @extschema@.bson_get_text(p.options, 'on_delete') <> 'keep', p.live,
      CASE WHEN p.queue IS NOT NULL THEN
        format('AND NOT EXISTS (SELECT 1 FROM %s AS q WHERE q.key OPERATOR(@extschema@.=) r.id)',
          p.queue) ELSE '' END, p.doc);
  END IF;
  IF @extschema@.bson_exists(p.options, 'second_link_id') AND p.queue IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'queue'::text, 'present'::text,
      'missing'::text;
  ELSIF @extschema@.bson_exists(p.options, 'max_staleness') THEN
    EXECUTE format('SELECT clock_timestamp() - min(q.queued_at) FROM %s AS q', p.queue) INTO lag;
    IF lag > @extschema@.bson_get_text(p.options, 'max_staleness')::interval THEN
      RETURN QUERY SELECT NULL::@extschema@.bson_value, 'staleness'::text,
        'at most ' || @extschema@.bson_get_text(p.options, 'max_staleness'), lag::text;
    END IF;
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._reference_check(regclass, text) IS
  'violated invariants of a reference pattern';

-- Keys of rows that may have to be corrected.
CREATE FUNCTION docpatterns._reference_pending(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._reference_parts(rel, name) q;
  RETURN format($q$SELECT %1$s AS key
    FROM %2$s AS b CROSS JOIN LATERAL %4$s AS r
      LEFT JOIN (%5$s) AS s ON s.id OPERATOR(@extschema@.=) r.id
    WHERE %3$s IS NOT NULL AND (r.bare
        OR docpatterns._reference_wrong(r.copy, s.doc, %6$L::text[]) IS NOT NULL
        OR (%7$L::boolean AND EXISTS (SELECT FROM unnest(%8$L::text[]) f
              WHERE @extschema@.bson_exists(s.doc, f) AND NOT @extschema@.bson_exists(r.copy, f))))
    GROUP BY %9$s ORDER BY %9$s$q$,
    p.key_row, p.base, p.doc, p.sites, p.sources, p.live, p.live = '{}', p.frozen, p.key_list);
END
$$;
COMMENT ON FUNCTION docpatterns._reference_pending(regclass, text) IS
  'SQL text: keys of rows that may be inconsistent with a reference pattern';

CREATE FUNCTION docpatterns._reference_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._reference_parts(rel, name) q;
  IF p.source IS NULL THEN
    RAISE EXCEPTION 'the source of the reference pattern "%" on table "%" is missing', name,
        docpatterns._relname(rel)
      USING ERRCODE = 'undefined_table', HINT = 'Restore it, or disable the pattern.';
  END IF;
  PERFORM docpatterns._reference_create_indexes(rel, p.options);
  IF @extschema@.bson_exists(p.options, 'second_link_id') AND p.queue IS NULL THEN
    -- the queue is lost, but all rows are checked below
    PERFORM docpatterns._reference_create_triggers(rel, p.source,
              @extschema@.bson_set(p.options, 'second_link_id',
                docpatterns._derive_create_queue(rel, 'reference', name)));
  END IF;
  IF @extschema@.bson_get_text(p.options, 'missing') = 'error'
      AND @extschema@.bson_get_text(p.options, 'on_delete') IN ('cascade', 'unset') THEN
    PERFORM docpatterns._reference_forget_missing(rel, name);
  END IF;
  RETURN docpatterns._pattern_repair_rows(rel, name, docpatterns._reference_pending(rel, name));
END
$$;
COMMENT ON FUNCTION docpatterns._reference_repair(regclass, text) IS
  'pattern_repair of the reference pattern';

CREATE FUNCTION docpatterns._reference_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  o @extschema@.bson := options;
BEGIN
  SELECT q.* INTO p FROM docpatterns._reference_parts(rel, name) q;
  IF p.source IS NULL THEN
    RAISE EXCEPTION 'the source of the reference pattern "%" on table "%" is missing', name,
        docpatterns._relname(rel)
      USING ERRCODE = 'undefined_table';
  END IF;
  IF @extschema@.bson_get_text(o, 'refresh') = 'immediate' THEN
    o := @extschema@.bson_unset(o, 'max_staleness');
  END IF;
  EXECUTE format('LOCK TABLE %s, %s IN SHARE ROW EXCLUSIVE MODE', rel, p.source);
  IF @extschema@.bson_get_text(o, 'refresh') = 'deferred'
      AND NOT @extschema@.bson_exists(o, 'second_link_id') THEN
    o := @extschema@.bson_set(o, 'second_link_id',
        docpatterns._derive_create_queue(rel, 'reference', name));
  ELSIF @extschema@.bson_get_text(o, 'refresh') = 'immediate'
      AND @extschema@.bson_exists(o, 'second_link_id') THEN
    PERFORM @extschema@.reference_refresh(rel, name);
    PERFORM docpatterns._derive_require_seen(p.queue) WHERE p.queue IS NOT NULL;
    o := @extschema@.bson_unset(o, 'second_link_id');
  END IF;
  PERFORM docpatterns._reference_create_triggers(rel, p.source, o);
  IF p.queue IS NOT NULL AND NOT @extschema@.bson_exists(o, 'second_link_id') THEN
    EXECUTE format('DROP TABLE %s', p.queue);
  END IF;
  RAISE NOTICE 'new options apply to existing documents after CALL pattern_build(%, %)',
    quote_literal(p.base), quote_literal(name);
END
$$;
COMMENT ON FUNCTION docpatterns._reference_alter(regclass, text, bson) IS
  'pattern_alter of the reference pattern';

CREATE FUNCTION docpatterns._reference_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  done bigint := 0;
BEGIN
  SELECT q.* INTO p FROM docpatterns._reference_parts(rel, name) q;
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', concat_ws(', ', rel, p.source));
  -- updates outdated copies, which would not be noticed afterwards
  IF p.queue IS NOT NULL AND @extschema@.bson_get_text(how, 'keep_data') <> 'true' THEN
    done := @extschema@.reference_refresh(rel, name);
    PERFORM docpatterns._derive_require_seen(p.queue);
  END IF;
  PERFORM docpatterns._derive_drop(rel, 'reference', name);
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._reference_disable(regclass, text, bson) IS
  'pattern_disable of the reference pattern';
