-- The outlier pattern. Its triggers, stores and calls are in src/patterns/outlier/.

CREATE FUNCTION docpatterns.outlier_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_outlier_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.outlier_trigger() IS
  'trigger of tables with the outlier pattern; made by outlier_enable';

CREATE FUNCTION docpatterns.outlier_link_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_outlier_link_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.outlier_link_trigger() IS
  'trigger of collections that hold the extras of an outlier pattern; made by outlier_enable';

CREATE FUNCTION docpatterns.outlier_irregular(doc bson, field text, threshold int, flag text)
  RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_outlier_irregular' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.outlier_irregular(bson, text, int, text) IS
  'whether a new document is anything but typical for an outlier pattern: its array has more than '
  'threshold elements, or the flag is there; false for NULL; the condition of triggers';

CREATE FUNCTION docpatterns.bson_element_hashes(elements bson_value) RETURNS bigint[]
  AS 'MODULE_PATHNAME', 'dp_bson_element_hashes' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    COST 1000;
COMMENT ON FUNCTION docpatterns.bson_element_hashes(bson_value) IS
  'hashes of the elements of an array, equal for equal values, for a GIN index; NULL if the value '
  'is no array; cost: one pass over it';

CREATE FUNCTION docpatterns.bson_array_holds(elements bson_value, value bson_value) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bson_array_holds' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION docpatterns.bson_array_holds(bson_value, bson_value) IS
  'whether an element of the array equals the value; false if it is no array; cost: one pass over '
  'it';

CREATE FUNCTION docpatterns._outlier_elements(elements bson_value, tail bson_value)
  RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_outlier_elements' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION docpatterns._outlier_elements(bson_value, bson_value) IS
  'the elements of a chunk: those of its array and then those of its tail, which may be null';

-- Declaring ---------------------------------------------------------------------------------------

-- The wrapper resolves the name of the extras by the caller's search_path; the work is done under a
-- fixed one.
CREATE FUNCTION outlier_enable(
  rel regclass, field text, threshold int, flag text DEFAULT 'has_extras',
  count_field text DEFAULT NULL, chunk int DEFAULT 1000,
  keep int DEFAULT NULL, stay text DEFAULT 'first', is_set boolean DEFAULT false,
  mode text DEFAULT 'immediate',
  extras text DEFAULT NULL, on_field text DEFAULT NULL, index_elements boolean DEFAULT false,
  name text DEFAULT NULL,
  doc_column text DEFAULT NULL, create_extras boolean DEFAULT false) RETURNS text
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  RETURN docpatterns._outlier_enable(rel, field, threshold, flag, count_field, chunk, keep, stay,
      is_set, mode,
        extras, pg_catalog.to_regclass(extras), on_field,
        index_elements, name, doc_column, create_extras);
END
$$;
COMMENT ON FUNCTION outlier_enable(regclass, text, int, text, text, int, int, text, boolean, text,
  text, text, boolean, text, text, boolean) IS
  'Declares the outlier pattern: documents whose array field has more than threshold elements keep '
  'some of them, the others move to a side table. Returns the name of the declaration. Locks the '
  'table against writers. Errors: 22023 options that do not fit, 42P01 a collection of extras that '
  'does not exist, 42710 the name exists, 42501 unless the caller owns the table';

CREATE FUNCTION docpatterns._outlier_enable(
  rel regclass, field text, threshold int, flag text, count_field text, chunk int, keep int,
  stay text, is_set boolean, mode text,
  extras text, extras_rel regclass, on_field text, index_elements boolean, name text,
    doc_column text, create_extras boolean) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  link_id text := replace(gen_random_uuid()::text, '-', '');
  options @extschema@.bson;
  parts text[];
  extras_name text;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  PERFORM docpatterns._pattern_refuse_partition(rel);
  options := docpatterns._pattern_declare(rel, 'outlier', @extschema@.bson_build(
    'name', coalesce(name, field), 'field', field, 'threshold', threshold, 'keep', keep,
    'chunk', chunk, 'flag', flag, 'stay', stay, 'is_set', is_set, 'mode', mode,
    'index_elements', index_elements, 'link_id', link_id, 'count_field', count_field,
    'doc_column', t.doc, 'on_field', on_field));
  name := @extschema@.bson_get_text(options, 'name');

  IF on_field IS NOT NULL THEN
    IF extras IS NULL THEN
      RAISE EXCEPTION 'on_field requires the name of a collection in extras'
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
    extras_rel := coalesce(extras_rel, docpatterns._pattern_create_collection(extras, t.schema_name,
          t.owner, create_extras, 'create_extras'));
    PERFORM docpatterns._pattern_require_same_owner(rel, extras_rel);
    PERFORM docpatterns._shard_require_together(rel, t.doc, NULL, extras_rel,
      (SELECT p.doc FROM docpatterns._pattern_table(extras_rel, NULL) p), on_field);
    IF (SELECT c.relkind <> 'r' OR c.relispartition FROM pg_class c WHERE c.oid = extras_rel) THEN
      RAISE EXCEPTION '"%" is not an ordinary table', docpatterns._relname(extras_rel)
        USING ERRCODE = 'wrong_object_type',
          DETAIL = 'A collection of extras must be neither partitioned nor a partition.';
    END IF;
    PERFORM docpatterns._outlier_link(rel, extras_rel, name, link_id, on_field);
  ELSE
    IF extras IS NOT NULL THEN
      parts := parse_ident(extras);
      extras_name := format('%I.%I', CASE WHEN cardinality(parts) > 1 THEN parts[1]
          ELSE t.schema_name END, parts[cardinality(parts)]);
    ELSE
      extras_name := format('%I.%I', t.schema_name,
          docpatterns._pattern_relation_name(t.schema_name, t.table_name, name, 'extras'));
    END IF;
    PERFORM docpatterns._outlier_create_extras(rel, doc_column, extras_name, name, link_id);
  END IF;

  PERFORM docpatterns._outlier_create_triggers(rel, options);
  IF index_elements THEN
    PERFORM docpatterns._outlier_create_index(rel, t.doc, field);
  END IF;
  PERFORM docpatterns._outlier_index_flags(rel, name);
  PERFORM docpatterns._pattern_create_whole(rel, doc_column);
  PERFORM docpatterns._pattern_notice_rows(rel, name);
  RETURN name;
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_enable(regclass, text, int, text, text, int, int, text,
  boolean, text, text, regclass, text, boolean, text, text, boolean) IS
  'outlier_enable with the extras resolved';

CREATE FUNCTION docpatterns._outlier_verify(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF @extschema@.bson_get_text(options, 'keep')::int
     > @extschema@.bson_get_text(options, 'threshold')::int THEN
    RAISE EXCEPTION 'keep must be at most the threshold'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF docpatterns._pattern_paths_overlap(@extschema@.bson_get_text(options, 'on_field'), '_id') THEN
    RAISE EXCEPTION 'on_field must not be _id' USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_verify(regclass, bson) IS
  'error 22023 for options of the outlier pattern that do not fit each other';

-- The triggers on the table, created again when options change. The main one has the declaration.
CREATE FUNCTION docpatterns._outlier_create_triggers(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name text := @extschema@.bson_get_text(options, 'name');
  irregular text;
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.outlier_trigger(%L)',
                 docpatterns._pattern_own_trigger(rel, 50, 'outlier', name, NULL, 25), rel,
                 options::text);
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION '
      'docpatterns.outlier_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 50, 'outlier', name, 'before', 19), rel,
                 'of', name);
  -- a typical new document does not meet the condition, and queues no trigger
  irregular := format('docpatterns.outlier_irregular(NEW.%I, %L, %s, %L)',
                      (SELECT t.doc FROM docpatterns._pattern_table(rel,
                          docpatterns._pattern_doc_column(rel,
                            @extschema@.bson_get_text(options, 'doc_column'))) t),
                      @extschema@.bson_get_text(options, 'field'),
                      @extschema@.bson_get_text(options, 'threshold')::int,
                      @extschema@.bson_get_text(options, 'flag'));
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER INSERT ON %s FOR EACH ROW WHEN (%s) EXECUTE '
      'FUNCTION docpatterns.outlier_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 50, 'outlier', name, 'insert', 5), rel,
                 irregular, 'of', name);
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT ON %s FOR EACH ROW %s EXECUTE '
      'FUNCTION docpatterns.outlier_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 50, 'outlier', name, 'before_insert', 7),
                 rel,
                 CASE WHEN @extschema@.bson_exists(options, 'count_field')
                   OR @extschema@.bson_get_text(options, 'is_set') = 'true' THEN ''
                      ELSE format('WHEN (%s)', irregular) END, 'of', name);
  PERFORM docpatterns._pattern_statement_trigger(rel, 50, 'outlier', name, 'statement', 48,
      'AFTER UPDATE OR TRUNCATE');
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_create_triggers(regclass, bson) IS
  'triggers of the outlier pattern on its table';

-- The table of chunks, its indexes and its guard.
CREATE FUNCTION docpatterns._outlier_create_extras(rel regclass, doc_column text, extras_name text,
  name text, link_id text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_create_side(rel, doc_column, 'outlier', name, link_id, extras_name,
            'chunk bigint NOT NULL, n int NOT NULL, sealed boolean NOT NULL, '
            'elements @extschema@.bson_value NOT NULL CHECK (@extschema@.bson_typeof(elements) '
              'OPERATOR(pg_catalog.=) ''array''), tail @extschema@.bson_value', 'chunk', NULL,
            format('elements of "%s" that outliers of %s do not hold themselves', name, t.base),
            -- a push writes the tail only, beside what it replaces
            'ALTER COLUMN tail SET STORAGE PLAIN, SET (toast_tuple_target = 128, fillfactor = 70)');
  -- the chunk that grows is compressed at every push, and lz4 does that several times as fast
  BEGIN
    EXECUTE format('ALTER TABLE %s ALTER COLUMN elements SET COMPRESSION lz4', extras_name);
  EXCEPTION WHEN feature_not_supported THEN
    NULL;
  END;
  EXECUTE format('CREATE INDEX ON %s USING gin (docpatterns.bson_element_hashes(elements)) WHERE '
      'sealed', extras_name);
  EXECUTE format('CREATE INDEX ON %s (%s) WHERE NOT sealed', extras_name,
      array_to_string(docpatterns._pattern_side_keys(cardinality(t.keys)), ', '));
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_create_extras(regclass, text, text, text, text) IS
  'table for the extras of an outlier pattern';

-- A collection as the store: its index and its triggers.
CREATE FUNCTION docpatterns._outlier_link(rel regclass, extras_rel regclass, name text,
    link_id text,
  on_field text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  events record;
  side record;
BEGIN
  IF extras_rel = rel THEN
    RAISE EXCEPTION 'extras cannot be stored in the table itself'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT p.* INTO side FROM docpatterns._pattern_table(extras_rel, NULL) p;
  EXECUTE format('CREATE INDEX ON %s ((%I OPERATOR(@extschema@.->) %L::text), (%2$I '
      'OPERATOR(@extschema@.->) ''_id''::text))', side.base, side.doc, on_field);
  EXECUTE format('CREATE TRIGGER %I AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.outlier_link_trigger(%L, %L, %L)',
                 docpatterns._pattern_trigger_name(extras_rel, 'zz_docpatterns_70_outlier', name,
                   'link'), side.base, 'side', link_id, name);
  FOR events IN SELECT * FROM docpatterns._pattern_split_events(
        'AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE', 60) LOOP
    EXECUTE format('CREATE TRIGGER %I %s ON %s FOR EACH STATEMENT EXECUTE FUNCTION '
        'docpatterns.outlier_link_trigger(%L, %L, %L)',
                   docpatterns._pattern_trigger_name(extras_rel, 'zz_docpatterns_70_outlier', name,
                     concat_ws('_', 'statement', events.label)), events.event, side.base,
                   'side', link_id, name);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_link(regclass, regclass, text, text, text) IS
  'index and triggers of a collection that holds the extras of an outlier pattern';

CREATE FUNCTION docpatterns._outlier_create_index(rel regclass, doc text, field text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('CREATE INDEX ON %s USING gin (docpatterns.bson_element_hashes(%I '
      'OPERATOR(@extschema@.->) %L::text))', rel, doc, field);
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_create_index(regclass, text, text) IS
  'index on the elements that documents hold themselves';

CREATE FUNCTION docpatterns._outlier_index_flags(rel regclass, name text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  deferred boolean;
  made regclass := (SELECT i.index FROM docpatterns._pattern_indexes($1) i
      WHERE i.pattern = 'outlier' AND i.name = $2);
BEGIN
  SELECT q.* INTO p FROM docpatterns._outlier_parts($1, $2) q;
  deferred := @extschema@.bson_get_text(p.options, 'mode') = 'deferred';
  IF deferred AND made IS NULL THEN
    EXECUTE (SELECT format('CREATE INDEX ON %s (%s) WHERE %s', t.base, t.key_list,
        docpatterns._outlier_flagged(quote_ident(t.doc), p.options, $2))
      FROM docpatterns._pattern_table(rel, docpatterns._pattern_doc_column(rel,
        @extschema@.bson_get_text(p.options, 'doc_column'))) t);
  ELSIF made IS NOT NULL AND NOT deferred THEN
    EXECUTE format('DROP INDEX %s', made);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_index_flags(regclass, text) IS
  'makes the index of flagged documents, by which deferred splits are found, or drops it';

CREATE FUNCTION docpatterns._outlier_flagged(doc text, options bson, name text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('(%s OPERATOR(@extschema@.->) %L::text) OPERATOR(@extschema@.=) '
      '''true''::@extschema@.bson_value AND %s', $1, @extschema@.bson_get_text($2, 'flag'),
      docpatterns._pattern_mark('outlier', $3, 'flags'))
$$;
COMMENT ON FUNCTION docpatterns._outlier_flagged(text, bson, text) IS
  'SQL text: the condition of the index of flagged documents';

-- Verbs -------------------------------------------------------------------------------------------

-- The result of _pattern_parts(), with "s" a row of either kind of store.
CREATE FUNCTION docpatterns._outlier_parts(rel regclass, name text,
                               OUT base text, OUT schema_name text, OUT table_name text,
                               OUT options bson, OUT doc text,
                               OUT key_row text, OUT key_list text, OUT key_value text,
                               OUT side regclass, OUT side_doc text, OUT side_link text,
                               OUT side_key_row text, OUT side_key_list text,
                               OUT side_key_value text, OUT stored text, OUT matches text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  SELECT q.* INTO t FROM docpatterns._pattern_parts(rel, 'outlier', name) q;
  base := t.base; schema_name := t.schema_name; table_name := t.table_name; options := t.options;
  doc := t.doc; side := t.side;
  key_list := t.key_list; key_row := t.key_row; key_value := t.key_value; matches := t.matches;
  side_key_list := t.side_key_list;
  IF NOT (@extschema@.bson_typeof(options, 'threshold') = 'int'
        AND @extschema@.bson_typeof(options, 'chunk') = 'int') IS TRUE THEN
    RAISE EXCEPTION 'invalid declaration of outlier pattern "%" on table "%"',
      name, docpatterns._relname(rel) USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF side IS NULL THEN
    stored := format('SELECT %s, 0::bigint AS stored FROM %s AS b WHERE false',
                     (SELECT string_agg(format('b.%I AS %I', k, s), ', ' ORDER BY n)
                       FROM unnest(t.keys, t.side_keys) WITH ORDINALITY AS u (k, s, n)), base);
  ELSIF @extschema@.bson_exists(options, 'on_field') THEN
    SELECT format('s.%I', p.doc) INTO side_doc 
      FROM docpatterns._pattern_table(side,
          (SELECT a.doc_column FROM docpatterns._pattern_anchors(side) a
            WHERE a.label = @extschema@.bson_get_text(options, 'link_id'))) p;
    side_link := format('(%s OPERATOR(@extschema@.->) %L::text)', side_doc,
        @extschema@.bson_get_text(options, 'on_field'));
    side_key_list := 's.key'; side_key_value := 's.key';
    matches := format('s.key OPERATOR(@extschema@.=) %s', key_value);
    stored := format('SELECT %1$s AS key, count(*) AS stored FROM %2$s AS s WHERE %1$s IS NOT NULL '
        'GROUP BY 1', side_link, side);
  ELSE
    side_key_row := t.side_key_row; side_key_value := t.side_key_value;
    stored := format('SELECT %1$s, sum(s.n)::bigint AS stored FROM %2$s AS s GROUP BY %1$s',
        side_key_list, side);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_parts(regclass, text) IS
  'names and options of an outlier declaration, and pieces of SQL text about them';

CREATE FUNCTION docpatterns._outlier_check(rel regclass, name text) RETURNS TABLE (key bson_value,
  what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  field text;
BEGIN
  SELECT q.* INTO p FROM docpatterns._outlier_parts(rel, name) q;
  field := @extschema@.bson_get_text(p.options, 'field');
  IF p.side IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'extras table'::text, 'present'::text,
      'missing'::text;
  END IF;

  -- documents against their extras; most have none and are left out by parallel workers
  RETURN QUERY EXECUTE format($q$
    SELECT %1$s, v.what, v.expected, v.found
    FROM (SELECT b.*, s.stored AS "stored extras" FROM %2$s AS b LEFT JOIN (%3$s) AS s ON %4$s
        WHERE s.stored IS NOT NULL OR %12$L::boolean OR @extschema@.bson_exists(%5$s, %7$L)
          OR CASE WHEN @extschema@.bson_typeof(%5$s, %6$L) = 'array' THEN
            @extschema@.bson_array_length(%5$s, %6$L) > %10$s END) AS b
      CROSS JOIN LATERAL (
        SELECT coalesce(CASE WHEN @extschema@.bson_typeof(%5$s, %6$L) = 'array' THEN
            @extschema@.bson_array_length(%5$s, %6$L) END, 0) AS len,
               coalesce(CASE WHEN @extschema@.bson_typeof(%5$s, %7$L) = 'bool' THEN
                 @extschema@.bson_get_text(%5$s, %7$L) = 'true' END, false) AS flagged,
               @extschema@.bson_exists(%5$s, %7$L) AS flag_there,
               coalesce(b."stored extras", 0) AS extras,
               %8$s AS total
        OFFSET 0) AS d
      CROSS JOIN LATERAL (
        SELECT 'elements that stay', %9$L, d.len::text WHERE d.extras > 0 AND d.len <> %9$s
        UNION ALL SELECT 'elements of a document with extras', 'more than %10$s',
          (d.len + d.extras)::text WHERE d.extras > 0 AND d.len + d.extras <= %10$s
        UNION ALL SELECT 'field of a document that keeps nothing', 'absent', 'present'
          WHERE d.extras > 0 AND %9$s = 0 AND @extschema@.bson_exists(%5$s, %6$L)
        UNION ALL SELECT 'elements of a document without extras', 'at most %10$s', d.len::text
          WHERE d.extras = 0 AND d.len > %10$s AND NOT (%11$L::boolean AND d.flagged)
        UNION ALL SELECT 'flag', 'true', CASE WHEN d.flag_there THEN 'another value' ELSE 'absent'
          END WHERE d.extras > 0 AND NOT d.flagged
        UNION ALL SELECT 'flag', 'absent', CASE WHEN d.flagged THEN 'true' ELSE 'another value' END
          WHERE d.extras = 0 AND d.flag_there
            AND NOT (%11$L::boolean AND d.flagged AND d.len > %10$s)
        UNION ALL SELECT 'count', (d.len + d.extras)::text, coalesce(d.total, 'absent')
          WHERE %12$L::boolean AND d.total IS DISTINCT FROM (d.len + d.extras)::text
      ) AS v (what, expected, found)
    WHERE %5$s IS NOT NULL
    $q$, p.key_value, p.base, p.stored, p.matches, p.doc, field,
      @extschema@.bson_get_text(p.options, 'flag'),
    CASE WHEN @extschema@.bson_exists(p.options, 'count_field')
         THEN format('CASE WHEN @extschema@.bson_typeof(%1$s, %2$L) IN (''int'', ''long'') THEN '
             '@extschema@.bson_get_text(%1$s, %2$L) ELSE @extschema@.bson_typeof(%1$s, %2$L) END',
                     p.doc, @extschema@.bson_get_text(p.options, 'count_field'))
         ELSE 'NULL::text' END,
    coalesce(@extschema@.bson_get_text(p.options, 'keep'),
             @extschema@.bson_get_text(p.options, 'threshold'))::int,
    @extschema@.bson_get_text(p.options, 'threshold')::int,
    @extschema@.bson_get_text(p.options, 'mode') = 'deferred',
    @extschema@.bson_exists(p.options, 'count_field'));
  IF p.side IS NULL THEN
    RETURN;
  END IF;

  -- extras without their document
  RETURN QUERY EXECUTE format($q$
    SELECT %s, 'document of extras'::text, 'present'::text, 'missing'::text FROM (%s) AS s
    WHERE NOT EXISTS (SELECT 1 FROM %s AS b WHERE %s AND %s IS NOT NULL)
    $q$, p.side_key_value, p.stored, p.base, p.matches, p.doc);

  -- chunks
  IF p.side_doc IS NULL THEN
    RETURN QUERY EXECUTE format($q$
      SELECT %1$s, v.what, v.expected, v.found
      FROM (SELECT s.*, CASE WHEN @extschema@.bson_size(s.together) +
          @extschema@.bson_size(lead(s.together) OVER w) <= 1048576 THEN s.n + lead(s.n) OVER w
          END AS both_n
            FROM (SELECT s.*, docpatterns._outlier_elements(s.elements, s.tail) AS together
                FROM %2$s AS s) AS s WINDOW w AS (PARTITION BY %3$s ORDER BY s.chunk)) AS s
        CROSS JOIN LATERAL (
          SELECT 'elements of a chunk', '1 to %4$s', s.n::text WHERE s.n < 1 OR s.n > %4$s
          UNION ALL SELECT 'elements that a chunk counts',
            @extschema@.bson_array_length(s.together)::text, s.n::text
            WHERE @extschema@.bson_array_length(s.together) <> s.n
          UNION ALL SELECT 'number of a chunk', 'less than %5$s', s.chunk::text
            WHERE s.chunk >= %5$s
          UNION ALL SELECT 'elements of neighbouring chunks', 'more than %4$s', s.both_n::text
            WHERE s.both_n <= %4$s
        ) AS v (what, expected, found)
      $q$, p.side_key_value, p.side, p.side_key_list,
        @extschema@.bson_get_text(p.options, 'chunk')::int, 1::bigint << 61);
  END IF;

  IF @extschema@.bson_get_text(p.options, 'is_set') = 'true' THEN
    RETURN QUERY EXECUTE format($q$
      SELECT %1$s, 'elements of a set'::text, 'distinct'::text,
        format('%%s times one value', count(*))
      FROM (SELECT %2$s, e FROM %3$s AS b
          CROSS JOIN LATERAL @extschema@.bson_elements(%4$s OPERATOR(@extschema@.->) %5$L::text) e
              WHERE @extschema@.bson_typeof(%4$s, %5$L) = 'array'
            UNION ALL %6$s) AS s (%7$s, element)
      GROUP BY %8$s, s.element HAVING count(*) > 1
      $q$, p.side_key_value, CASE WHEN p.side_doc IS NULL THEN p.key_list ELSE p.key_value
        END, p.base, p.doc, field,
      CASE WHEN p.side_doc IS NOT NULL THEN
        format('SELECT %s, @extschema@.to_bson(@extschema@.bson_unset(%s, %L)) FROM %s AS s WHERE '
          '%1$s IS NOT NULL',
            p.side_link, p.side_doc,
            @extschema@.bson_get_text(p.options, 'on_field'),
            p.side)
           ELSE format('SELECT %s, e FROM %s AS s CROSS JOIN LATERAL '
               '@extschema@.bson_elements(docpatterns._outlier_elements(s.elements, s.tail)) e',
               p.side_key_list, p.side) END,
      replace(p.side_key_list, 's.', ''), p.side_key_list);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_check(regclass, text) IS
  'violated invariants of an outlier pattern';

-- Keys of rows that may have to be corrected.
CREATE FUNCTION docpatterns._outlier_pending(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  length text;
BEGIN
  SELECT q.* INTO p FROM docpatterns._outlier_parts(rel, name) q;
  length := format('(CASE WHEN @extschema@.bson_typeof(%1$s, %2$L) OPERATOR(pg_catalog.=) '
      '''array'' THEN @extschema@.bson_array_length(%1$s, %2$L) ELSE 0 END)',
                   p.doc, @extschema@.bson_get_text(p.options, 'field'));
  RETURN format('SELECT %s AS key FROM %s AS b WHERE %s IS NOT NULL AND '
      '(@extschema@.bson_exists(%3$s, %L) OR %s OPERATOR(pg_catalog.>) %s%s) ORDER BY %s',
    p.key_row, p.base, p.doc, @extschema@.bson_get_text(p.options, 'flag'), length,
    @extschema@.bson_get_text(p.options, 'threshold')::int,
    CASE WHEN @extschema@.bson_get_text(p.options, 'is_set') = 'true' THEN
      format(' OR %s OPERATOR(pg_catalog.>) 1', length) ELSE '' END ||
    CASE WHEN @extschema@.bson_exists(p.options, 'count_field')
         THEN format(' OR @extschema@.bson_get_text(%s, %L) IS DISTINCT FROM %s::pg_catalog.text '
             'OR @extschema@.bson_typeof(%1$s, %2$L) OPERATOR(pg_catalog.<>) ''int''',
                     p.doc, @extschema@.bson_get_text(p.options, 'count_field'), length) ELSE ''
                     END ||
    CASE WHEN p.side_doc IS NOT NULL THEN
      format(' OR EXISTS (SELECT 1 FROM %s AS s WHERE %s OPERATOR(@extschema@.=) %s)', p.side,
        p.side_link, p.key_value) ELSE '' END,
    p.key_list);
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_pending(regclass, text) IS
  'SQL text: keys of rows that may be inconsistent with an outlier pattern';

CREATE FUNCTION docpatterns._outlier_rejoin(rel regclass, name text, key record) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_outlier_rejoin' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._outlier_rejoin(regclass, text, record) IS
  'puts the extras of a key back into its document; returns the size of that; does nothing when it '
  'would be too large';

CREATE FUNCTION docpatterns._outlier_rechunk(rel regclass, name text, key record) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_outlier_rechunk' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._outlier_rechunk(regclass, text, record) IS
  'arranges the extras of a key in chunks again, or deletes them if there is no document; returns '
  'whether anything was written';

-- Rows whose documents say that they have extras, and hold no more elements than stay with these,
-- but have none.
CREATE FUNCTION docpatterns._outlier_lost(rel regclass, name text) RETURNS text[]
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  result text[];
BEGIN
  SELECT q.* INTO p FROM docpatterns._outlier_parts(rel, name) q;
  EXECUTE format('SELECT array_agg((%1$s)::text) FROM %2$s AS b LEFT JOIN (%3$s) AS s ON %4$s '
      'WHERE s.stored IS NULL AND @extschema@.bson_typeof(%5$s, %6$L) = ''bool'' '
                 'AND @extschema@.bson_get_text(%5$s, %6$L) = ''true'' AND coalesce(CASE WHEN '
                   '@extschema@.bson_typeof(%5$s, %7$L) = ''array'' THEN '
                   '@extschema@.bson_array_length(%5$s, %7$L) END, 0) <= %8$s',
                 p.key_row, p.base, p.stored, p.matches, p.doc,
                 @extschema@.bson_get_text(p.options, 'flag'),
                 @extschema@.bson_get_text(p.options, 'field'),
                 coalesce(@extschema@.bson_get_text(p.options, 'keep'),
                          @extschema@.bson_get_text(p.options, 'threshold')))
    INTO result;
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_lost(regclass, text) IS
  'keys, as rows in text, of documents whose extras are missing, as far as these tell; NULL for '
  'none';

CREATE FUNCTION docpatterns._outlier_accept_loss(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._outlier_parts(rel, name) q;
  IF p.side IS NULL THEN
    IF @extschema@.bson_exists(p.options, 'on_field') THEN
      RETURN 0;  -- the repair says that they are another table's
    END IF;
    PERFORM docpatterns._outlier_create_extras(rel,
        docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(p.options, 'doc_column')),
              format('%I.%I', p.schema_name,
                docpatterns._pattern_relation_name(p.schema_name, p.table_name, name, 'extras')),
              name, @extschema@.bson_get_text(p.options, 'link_id'));
  END IF;
  RETURN docpatterns._pattern_repair_rows(rel, name,
      format('SELECT %1$s AS key FROM %2$s AS b WHERE (%1$s)::text = ANY (%3$L::text[])', p.key_row,
        p.base, docpatterns._outlier_lost(rel, name)));
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_accept_loss(regclass, text) IS
  'takes what is there of documents whose extras are missing for all of them';

CREATE FUNCTION docpatterns._outlier_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  r record;
  lost text[];
  done bigint := 0;
BEGIN
  SELECT q.* INTO p FROM docpatterns._outlier_parts(rel, name) q;
  PERFORM docpatterns._pattern_create_whole(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(p.options, 'doc_column')));
  IF p.side IS NULL THEN
    IF @extschema@.bson_exists(p.options, 'on_field') THEN
      RAISE EXCEPTION 'the collection with the extras of the outlier pattern "%" on table "%" is '
        'missing', name, docpatterns._relname(rel)
        USING ERRCODE = 'undefined_table',
          HINT = 'Restore it, or end the pattern with pattern_disable().';
    END IF;
    PERFORM docpatterns._outlier_create_extras(rel,
        docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(p.options, 'doc_column')),
              format('%I.%I', p.schema_name,
                docpatterns._pattern_relation_name(p.schema_name, p.table_name, name, 'extras')),
              name, @extschema@.bson_get_text(p.options, 'link_id'));
    SELECT q.* INTO p FROM docpatterns._outlier_parts(rel, name) q;
  ELSIF p.side_doc IS NULL THEN
    -- chunks that are not as they should be, chunks without a document; the chunks of a set may
    -- hold one value twice
    FOR r IN EXECUTE format($q$
        SELECT %1$s AS key FROM (SELECT DISTINCT %2$s
            FROM (SELECT s.*, CASE WHEN @extschema@.bson_size(s.together) +
              @extschema@.bson_size(lead(s.together) OVER w) <= 1048576 THEN s.n + lead(s.n) OVER w
              END AS both_n
            FROM (SELECT s.*, docpatterns._outlier_elements(s.elements, s.tail) AS together
                FROM %3$s AS s) AS s WINDOW w AS (PARTITION BY %2$s ORDER BY s.chunk)) AS s
          WHERE s.n < 1 OR s.n > %4$s OR s.both_n <= %4$s OR s.chunk >= %5$s
            OR @extschema@.bson_array_length(s.together) <> s.n OR %6$L::boolean
            OR NOT EXISTS (SELECT 1 FROM %7$s AS b WHERE %8$s AND %9$s IS NOT NULL)) AS s
        $q$, p.side_key_row, p.side_key_list, p.side,
          @extschema@.bson_get_text(p.options, 'chunk')::int, 1::bigint << 61,
        @extschema@.bson_get_text(p.options, 'is_set'), p.base, p.matches, p.doc) LOOP
      IF docpatterns._outlier_rechunk(rel, name, r.key) THEN
        done := done + 1;
      END IF;
    END LOOP;
  END IF;
  lost := docpatterns._outlier_lost(rel, name);
  IF lost IS NOT NULL THEN
    RAISE WARNING 'pattern "%" of table "%": extras of % documents are missing', name,
        docpatterns._relname(rel),
      cardinality(lost)
      USING DETAIL = format('Their keys: %s%s.', array_to_string(lost[1:20], ', '), CASE
          WHEN cardinality(lost) > 20 THEN ', ...' ELSE '' END),
            HINT = 'The documents are left as they are. Restore the extras, or call '
            'pattern_repair() with accept_loss => true.';
  END IF;
  -- documents that have extras, whatever they say themselves, and those that are not in line
  -- without
  RETURN done + docpatterns._pattern_repair_rows(rel, name,
      format('SELECT k.key FROM (SELECT %1$s AS key FROM %2$s AS b JOIN (%3$s) AS s ON %4$s UNION '
        'ALL SELECT key FROM (%5$s) p) AS k WHERE k.key::text <> ALL (%6$L::text[])',
                          p.key_row, p.base, p.stored, p.matches,
                          docpatterns._outlier_pending(rel, name), coalesce(lost, '{}')));
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_repair(regclass, text) IS
  'pattern_repair of the outlier pattern';

CREATE FUNCTION docpatterns._outlier_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  r record;
  indexed text := @extschema@.bson_get_text(options, 'index_elements');
BEGIN
  SELECT q.* INTO p FROM docpatterns._outlier_parts(rel, name) q;
  PERFORM docpatterns._outlier_create_triggers(rel, options);
  IF indexed <> @extschema@.bson_get_text(p.options, 'index_elements') THEN
    IF indexed = 'true' THEN
      PERFORM docpatterns._outlier_create_index(rel,
                (SELECT t.doc FROM docpatterns._pattern_table(rel, docpatterns._pattern_doc_column(
                   rel, @extschema@.bson_get_text(options, 'doc_column'))) t),
                @extschema@.bson_get_text(options, 'field'));
    ELSE
      PERFORM docpatterns._outlier_drop_index(rel, @extschema@.bson_get_text(options, 'field'));
    END IF;
  END IF;

  PERFORM docpatterns._outlier_index_flags(rel, name);
  -- documents with extras are arranged at once, because their triggers use the new options
  IF docpatterns._pattern_is_distributed(rel) THEN
    PERFORM @extschema@.pattern_repair(rel, name);
    RETURN;
  END IF;
  FOR r IN EXECUTE format('SELECT %s AS key FROM %s AS b JOIN (%s) AS s ON %s', p.key_row, p.base,
        p.stored, p.matches) LOOP
    IF p.side_doc IS NULL THEN
      PERFORM docpatterns._outlier_rechunk(rel, name, r.key);
    ELSE
      PERFORM docpatterns._pattern_repair_row(rel, name, r.key);
    END IF;
  END LOOP;
  RAISE NOTICE
    'new options apply to existing documents without extras after CALL pattern_build(%, %)',
    quote_literal(p.base), quote_literal(name);
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_alter(regclass, text, bson) IS
  'pattern_alter of the outlier pattern';

CREATE FUNCTION docpatterns._outlier_drop_index(rel regclass, field text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  i record;
BEGIN
  FOR i IN SELECT x.indexrelid::regclass AS index FROM pg_index x
           WHERE x.indrelid = rel AND x.indexprs IS NOT NULL
             AND EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
                 AND d.objid = x.indexrelid
                           AND d.refclassid = 'pg_proc'::regclass
                             AND d.refobjid = 'docpatterns.bson_element_hashes'::regproc)
             AND position(format('''%s''', replace(field, '''', '''''')) IN pg_get_expr(x.indexprs,
                   x.indrelid)) > 0 LOOP
    EXECUTE format('DROP INDEX %s', i.index);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_drop_index(regclass, text) IS
  'drops the index on the elements that documents hold themselves';

-- Puts the extras back into the documents.
CREATE FUNCTION docpatterns._outlier_put_back(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  r record;
  done bigint := 0;
  size bigint;
  too_large text[];
  limit_size bigint := (SELECT s.setting::bigint FROM pg_settings s
      WHERE s.name = 'docpatterns.max_document_size');
  flag text;
BEGIN
  IF docpatterns._pattern_is_distributed(rel) THEN
    RETURN docpatterns._pattern_sum_shards(rel,
        format('docpatterns._outlier_put_back(s.rel, %L)', name));
  END IF;
  SELECT q.* INTO p FROM docpatterns._outlier_parts(rel, name) q;
  -- a flag on a document without extras is a stale one, unless documents had the field before
  flag := @extschema@.bson_get_text(p.options, 'flag');
  FOR r IN EXECUTE format('SELECT %1$s AS key, %2$s AS value FROM %3$s AS b LEFT JOIN (%4$s) AS '
      's ON %5$s WHERE s.stored IS NOT NULL OR %6$s ORDER BY %7$s',
                          p.key_row, p.key_value, p.base, p.stored, p.matches,
                          CASE WHEN flag = ANY (docpatterns._pattern_own_paths(p.options)) THEN
                            'false'
                               ELSE format('@extschema@.bson_exists(%s, %L)', p.doc, flag)
                                 END, p.key_list) LOOP
    size := docpatterns._outlier_rejoin(rel, name, r.key);
    IF size > limit_size THEN
      too_large := too_large || r.value::text;
    ELSE
      done := done + 1;
    END IF;
  END LOOP;
  IF too_large IS NOT NULL THEN
    RAISE EXCEPTION 'cannot disable pattern "%" of table "%": % documents would be too large',
      name, docpatterns._relname(rel), cardinality(too_large)
      USING ERRCODE = 'program_limit_exceeded',
            DETAIL = 'Their keys: ' || array_to_string(too_large[1:20], ', ') || CASE
            WHEN cardinality(too_large) > 20 THEN ', ...' ELSE '' END || '.',
            HINT = 'Raise docpatterns.max_document_size, or keep the data in place with '
            'keep_data => true.';
  END IF;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_put_back(regclass, text) IS
  'moves all extras back into the documents, and returns how many documents were written; error '
  '54000 for documents that would be too large';

CREATE FUNCTION docpatterns._outlier_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  r record;
  done bigint := 0;
  keep_data boolean := @extschema@.bson_get_text(how, 'keep_data') = 'true';
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  SELECT q.* INTO p FROM docpatterns._outlier_parts(rel, name) q;
  IF NOT keep_data AND p.side IS NOT NULL THEN
    done := docpatterns._outlier_put_back(rel, name);
  END IF;

  PERFORM docpatterns._pattern_drop_triggers(rel, 'outlier', name);
  IF p.side_doc IS NOT NULL THEN
    -- a collection stays: it is the user's
    PERFORM docpatterns._pattern_drop_side_triggers(p.side,
        @extschema@.bson_get_text(p.options, 'link_id'), name);
  ELSE
    PERFORM docpatterns._pattern_drop_side(p.side, rel, keep_data);
  END IF;
  PERFORM docpatterns._outlier_drop_index(rel, @extschema@.bson_get_text(p.options, 'field'))
    WHERE @extschema@.bson_get_text(p.options, 'index_elements') = 'true';
  FOR r IN SELECT i.index FROM docpatterns._pattern_indexes(rel) i
      WHERE i.pattern = 'outlier' AND i.name = _outlier_disable.name LOOP
    EXECUTE format('DROP INDEX %s', r.index);
  END LOOP;
  PERFORM docpatterns._pattern_drop_whole(rel);
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_disable(regclass, text, bson) IS
  'pattern_disable of the outlier pattern';

-- Calls -------------------------------------------------------------------------------------------

CREATE FUNCTION outlier_push(rel regclass, key anycompatible, VARIADIC "values" "any")
  RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_outlier_push' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION outlier_push(regclass, anycompatible, VARIADIC "any") IS
  'Appends values to the whole array of a document and returns how many were added. Locks the row; '
  'needs SELECT and UPDATE. The cost does not depend on the length of an outlier. Errors: P0002 no '
  'such document, 42809 a key of another type, 42804 the field is not an array';

CREATE FUNCTION outlier_push_into(rel regclass, name text, key anycompatible,
  VARIADIC "values" "any")
  RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_outlier_push_into' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION outlier_push_into(regclass, text, anycompatible, VARIADIC "any") IS
  'outlier_push for a table with several outlier patterns';

CREATE FUNCTION outlier_pull(rel regclass, key anycompatible, value "any", name text DEFAULT NULL)
  RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_outlier_pull' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION outlier_pull(regclass, anycompatible, "any", text) IS
  'Removes all elements that equal the value from the whole array and returns their number. Locks '
  'the row; needs SELECT and UPDATE. Chunks are found by index. Errors as outlier_push';

CREATE FUNCTION outlier_contains(rel regclass, key anycompatible, value "any",
  name text DEFAULT NULL)
  RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_outlier_contains' LANGUAGE C STABLE;
COMMENT ON FUNCTION outlier_contains(regclass, anycompatible, "any", text) IS
  'Whether the whole array holds the value. Needs SELECT. Costs the document and an index search '
  'of the extras. Errors as outlier_push';

CREATE FUNCTION outlier_find(rel regclass, value anycompatible, name text DEFAULT NULL)
  RETURNS SETOF bson
  AS 'MODULE_PATHNAME', 'dp_outlier_find' LANGUAGE C STABLE ROWS 10 COST 1000;
COMMENT ON FUNCTION outlier_find(regclass, anycompatible, text) IS
  'The documents, as stored, whose whole arrays hold the value. Needs SELECT. Extras are found by '
  'index, kept elements by index with index_elements, otherwise by one scan of the table. Errors: '
  '42704 no outlier pattern, 22023 several and none is named';

CREATE FUNCTION docpatterns._outlier_rows(rel regclass, name text, "values" bson_value)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_outlier_rows' LANGUAGE C STABLE STRICT ROWS 10 COST 1000;
COMMENT ON FUNCTION docpatterns._outlier_rows(regclass, text, bson_value) IS
  'internal: the keys, as rows of key columns, of documents that the user sees and that have one '
  'of the values (an array) among their extras; found by index';

CREATE FUNCTION outlier_count(rel regclass, key anycompatible, name text DEFAULT NULL)
  RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_outlier_count' LANGUAGE C STABLE;
COMMENT ON FUNCTION outlier_count(regclass, anycompatible, text) IS
  'The number of elements of the whole array. Needs SELECT. Costs one row for each chunk. Errors '
  'as outlier_push';

CREATE FUNCTION outlier_page(rel regclass, key anycompatible, skip bigint, take bigint,
  name text DEFAULT NULL, OUT "position" bigint, OUT value bson_value) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_outlier_page_sql' LANGUAGE C STABLE;
COMMENT ON FUNCTION outlier_page(regclass, anycompatible, bigint, bigint, text) IS
  'Elements of the whole array from position skip (from 0), at most take. Needs SELECT. Reads only '
  'the chunks of the page. Errors as outlier_push, and 22023 negative numbers';

CREATE FUNCTION outlier_spill(rel regclass, name text DEFAULT NULL) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_outlier_spill' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION outlier_spill(regclass, text) IS
  'With mode => ''deferred'', splits flagged documents that are still whole, and returns their '
  'number. Scans the table and locks the rows that it writes. Error: 42501 unless the caller owns '
  'the table';

CREATE FUNCTION docpatterns._outlier_split(rel regclass, name text, key record) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_outlier_split' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._outlier_split(regclass, text, record) IS
  'splits a document whose split was deferred; error 42501 unless the caller owns the table';

CREATE FUNCTION docpatterns._outlier_deferred(rel regclass, name text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('SELECT %1$s AS key FROM %2$s AS b WHERE %3$s AND @extschema@.bson_typeof(%4$s, '
      '%5$L) = ''array'' AND @extschema@.bson_array_length(%4$s OPERATOR(@extschema@.->) '
      '%5$L::text) > %6$s AND NOT EXISTS (SELECT FROM (%7$s) AS s WHERE %8$s)', p.key_row, p.base,
      docpatterns._outlier_flagged(p.doc, p.options, $2), p.doc,
      @extschema@.bson_get_text(p.options, 'field'),
      @extschema@.bson_get_text(p.options, 'threshold'), p.stored, p.matches)
  FROM docpatterns._outlier_parts($1, $2) p
  WHERE @extschema@.bson_get_text(p.options, 'mode') = 'deferred' AND p.side IS NOT NULL
$$;
COMMENT ON FUNCTION docpatterns._outlier_deferred(regclass, text) IS
  'SQL text: the keys of documents whose split was deferred; NULL for mode "immediate"';

CREATE FUNCTION docpatterns._outlier_due(rel regclass, name text, OUT what text,
  OUT since timestamptz, OUT amount bigint) RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  keys text := docpatterns._outlier_deferred(rel, name);
BEGIN
  IF keys IS NOT NULL THEN
    RETURN QUERY EXECUTE format('SELECT ''documents to split''::text, NULL::timestamptz, '
        'nullif(count(*), 0) FROM (%s LIMIT 10000) q', keys);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_due(regclass, text) IS
  'pattern_due of the outlier pattern';

CREATE FUNCTION docpatterns._outlier_maintain(rel regclass, name text, most int) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  keys text := docpatterns._outlier_deferred(rel, name);
  r record;
  done bigint := 0;
BEGIN
  IF keys IS NOT NULL THEN
    FOR r IN EXECUTE format('%s LIMIT %s FOR NO KEY UPDATE OF b SKIP LOCKED', keys, most) LOOP
      done := done + docpatterns._outlier_split(rel, name, r.key)::int;
    END LOOP;
  END IF;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._outlier_maintain(regclass, text, int) IS
  'pattern_maintain of the outlier pattern';

CREATE FUNCTION outlier_advise(rel regclass, field text, doc_column text DEFAULT NULL,
  OUT documents bigint, OUT arrays bigint, OUT threshold int, OUT outliers bigint,
  OUT length_p50 int, OUT length_p90 int, OUT length_p99 int, OUT length_p999 int,
  OUT length_max int,
  OUT bytes_p50 bigint, OUT bytes_p90 bigint, OUT bytes_p99 bigint, OUT bytes_p999 bigint,
  OUT bytes_max bigint)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  proposal double precision;
  per_element double precision;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  EXECUTE format($q$
    SELECT count(*), count(len),
      percentile_disc(0.5) WITHIN GROUP (ORDER BY len),
      percentile_disc(0.9) WITHIN GROUP (ORDER BY len),
      percentile_disc(0.99) WITHIN GROUP (ORDER BY len),
      percentile_disc(0.999) WITHIN GROUP (ORDER BY len), max(len),
      percentile_disc(0.5) WITHIN GROUP (ORDER BY bytes),
      percentile_disc(0.9) WITHIN GROUP (ORDER BY bytes),
      percentile_disc(0.99) WITHIN GROUP (ORDER BY bytes),
      percentile_disc(0.999) WITHIN GROUP (ORDER BY bytes), max(bytes),
      sum(bytes)::double precision / nullif(sum(len), 0)
    FROM (SELECT CASE WHEN @extschema@.bson_typeof(a) = 'array' THEN
        @extschema@.bson_array_length(a) END AS len,
                 CASE WHEN @extschema@.bson_typeof(a) = 'array' THEN
                   @extschema@.bson_size(a)::bigint END AS bytes
          FROM (SELECT %1$I OPERATOR(@extschema@.->) %2$L::text AS a FROM %3$s) v) s
    $q$, t.doc, field, t.base)
    INTO documents, arrays, length_p50, length_p90, length_p99, length_p999, length_max, bytes_p50,
      bytes_p90, bytes_p99, bytes_p999, bytes_max, per_element;
  IF arrays = 0 THEN
    RETURN;
  END IF;

  -- the longest array that is still typical: the 99th percentile, rounded up to 1, 2 or 5 times a
  -- power of ten, but no array that stays in its document should have more than a megabyte
  proposal := greatest(length_p99, 10);
  proposal := (SELECT min(m * 10 ^ e) FROM unnest(ARRAY[1, 2, 5]) m, generate_series(1, 9) e
      WHERE m * 10 ^ e >= proposal);
  threshold := least(proposal, greatest(1, 1048576 / greatest(per_element, 1)), 1000000)::int;
  EXECUTE format('SELECT count(*) FROM %3$s WHERE @extschema@.bson_typeof(%1$I, %2$L) = ''array'' '
      'AND @extschema@.bson_array_length(%1$I, %2$L) > %4$s', t.doc, field, t.base, threshold)
    INTO outliers;
END
$$;
COMMENT ON FUNCTION outlier_advise(regclass, text, text) IS
  'Proposes a threshold from the lengths and sizes of the existing arrays, with percentiles and '
  'the number of documents that would be outliers. Needs SELECT; reads the table twice';
