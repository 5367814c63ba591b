-- Splitting documents that embed whole arrays into a table of documents and a table of elements
-- with a subset pattern between them, and joining them again.

CREATE FUNCTION subset_split(
  rel regclass, field text, source text, on_field text, keep int, order_by bson DEFAULT NULL,
  if_exists text DEFAULT 'error',
  fields bson DEFAULT NULL, position_field text DEFAULT NULL, count_field text DEFAULT NULL,
  count_mode text DEFAULT 'immediate',
  name text DEFAULT NULL, doc_column text DEFAULT NULL) RETURNS bigint
LANGUAGE docpatterns VOLATILE AS $$
DECLARE
  options @extschema@.bson;
BEGIN
  IF rel IS NULL OR field IS NULL OR source IS NULL OR on_field IS NULL OR keep IS NULL THEN
    RAISE EXCEPTION 'rel, field, source, on_field and keep must not be null'
      USING ERRCODE = 'null_value_not_allowed';
  END IF;
  options := @extschema@.bson_build('field', field, 'source', source, 'source_rel',
      pg_catalog.to_regclass(source)::pg_catalog.oid::pg_catalog.int8, 'on_field', on_field, 'keep',
      keep,
               'order_by', order_by, 'if_exists', if_exists, 'fields', fields, 'position_field',
               position_field, 'count_field', count_field,
               'count_mode', count_mode, 'doc_column', doc_column);
  RETURN docpatterns._pattern_call('split', rel, 'subset', coalesce(name, field),
      options)::pg_catalog.int8;
END
$$;
COMMENT ON FUNCTION subset_split(regclass, text, text, text, int, bson, text, bson, text, text,
  text, text, text) IS
  'Moves embedded arrays to a second table and declares the subset pattern: each element becomes a '
  'document of source with the key in on_field, and the first keep stay as copies. order_by NULL '
  'keeps the order of the array. if_exists says what to do if source has rows: error, replace or '
  'append. Returns the number of elements. Locks the table against writers. Errors: 22023 elements '
  'that are not documents, 42P07 source has rows, 42501 unless the caller owns the table';

CREATE FUNCTION docpatterns._subset_split(rel regclass, name text, options bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  s record;
  r record;
  field text := @extschema@.bson_get_text(options, 'field');
  on_field text := @extschema@.bson_get_text(options, 'on_field');
  position_field text := @extschema@.bson_get_text(options, 'position_field');
  if_exists text := @extschema@.bson_get_text(options, 'if_exists');
  source_name text := @extschema@.bson_get_text(options, 'source');
  source regclass := @extschema@.bson_get_text(options, 'source_rel')::bigint::oid::regclass;
  fields @extschema@.bson := CASE WHEN @extschema@.bson_typeof(options, 'fields') = 'object' THEN
    (options OPERATOR(@extschema@.->) 'fields'::text)::@extschema@.bson END;
  order_by @extschema@.bson := CASE
    WHEN @extschema@.bson_typeof(options, 'order_by') = 'object' THEN
    (options OPERATOR(@extschema@.->) 'order_by'::text)::@extschema@.bson END;
  parts text[];
  element @extschema@.bson;
  has_id boolean;
  by_id boolean;
  wrong text;
  documents bigint := 0;
  total bigint;
  n bigint;
  done bigint := 0;
BEGIN
  IF if_exists IS NULL OR if_exists NOT IN ('error', 'replace', 'append') THEN
    RAISE EXCEPTION 'if_exists must be "error", "replace" or "append"'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF order_by IS NOT NULL AND position_field IS NOT NULL THEN
    RAISE EXCEPTION 'position_field cannot be combined with order_by'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF docpatterns._pattern_paths_overlap(on_field, '_id')
      OR docpatterns._pattern_paths_overlap(position_field, '_id')
      OR docpatterns._pattern_paths_overlap(position_field, on_field) THEN
    RAISE EXCEPTION 'on_field and position_field must be different fields and not _id'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      @extschema@.bson_get_text(options, 'doc_column')) p;
  PERFORM docpatterns._pattern_require_unused(rel, name);
  EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', t.base);

  -- refuses invalid elements before anything is written
  EXECUTE format($q$SELECT k::text
      FROM (SELECT %1$s AS k, %2$I OPERATOR(@extschema@.->) %3$L::text AS a FROM %4$s) AS b
    WHERE CASE @extschema@.bson_typeof(a) WHEN 'array' THEN
      EXISTS (SELECT FROM @extschema@.bson_elements(a) e
        WHERE @extschema@.bson_typeof(e) <> 'object') WHEN 'null' THEN false ELSE a IS NOT NULL END
      LIMIT 1$q$,
    t.key_value, t.doc, field, t.base) INTO wrong;
  IF wrong IS NOT NULL THEN
    RAISE EXCEPTION 'field "%" must be an array of documents', field
      USING ERRCODE = 'invalid_parameter_value',
      DETAIL = format('The document with the key %s cannot be split.', wrong);
  END IF;
  EXECUTE format($q$SELECT k::text
      FROM (SELECT %1$s AS k, %2$I OPERATOR(@extschema@.->) %3$L::text AS a FROM %4$s) AS b
      CROSS JOIN LATERAL @extschema@.bson_elements(a) e
    WHERE @extschema@.bson_typeof(a) = 'array'
      AND @extschema@.bson_exists(e::@extschema@.bson, %5$L)
      AND (e::@extschema@.bson OPERATOR(@extschema@.->) %5$L::text) OPERATOR(@extschema@.<>) k
      LIMIT 1$q$,
    t.key_value, t.doc, field, t.base, on_field) INTO wrong;
  IF wrong IS NOT NULL THEN
    RAISE EXCEPTION 'elements have a field "%" that differs from their document''s key',
      on_field USING ERRCODE = 'invalid_parameter_value',
      DETAIL = format('The document with the key %s has one.', wrong);
  END IF;
  EXECUTE format('SELECT coalesce(bool_or(@extschema@.bson_exists(e::@extschema@.bson, ''_id'')), '
      'false) FROM %s AS b CROSS JOIN LATERAL @extschema@.bson_elements(b.%I '
      'OPERATOR(@extschema@.->) %L::text) e WHERE @extschema@.bson_typeof(b.%2$I, %3$L) = '
      '''array''',
    t.base, t.doc, field) INTO has_id;
  by_id := order_by IS NULL AND position_field IS NULL;
  IF by_id AND has_id THEN
    EXECUTE format($q$SELECT k::text
        FROM (SELECT %1$s AS k, @extschema@.bson_typeof(e::@extschema@.bson, '_id') IS NULL
          OR (e::@extschema@.bson OPERATOR(@extschema@.->) '_id'::text) OPERATOR(@extschema@.<=)
            lag(e::@extschema@.bson OPERATOR(@extschema@.->) '_id'::text) OVER (PARTITION BY %2$s
              ORDER BY u.n) AS bad
        FROM %3$s AS b CROSS JOIN LATERAL @extschema@.bson_elements(b.%4$I OPERATOR(@extschema@.->)
              %5$L::text) WITH ORDINALITY AS u (e, n)
            WHERE @extschema@.bson_typeof(b.%4$I, %5$L) = 'array') AS b WHERE bad LIMIT 1$q$,
      t.key_value, t.key_list, t.base, t.doc, field) INTO wrong;
    IF wrong IS NOT NULL THEN
      RAISE EXCEPTION 'the _id of elements of field "%" does not show their order', field
        USING ERRCODE = 'invalid_parameter_value',
          DETAIL = format('The document with the key %s has such elements.', wrong),
          HINT = 'Specify a position_field for the order of the array, or an order_by.';
    END IF;
  END IF;

  IF source IS NULL THEN
    parts := parse_ident(source_name);
    source := @extschema@.collection_create(format('%I.%I', CASE
          WHEN cardinality(parts) > 1 THEN parts[1] ELSE t.schema_name
          END, parts[cardinality(parts)]));
  END IF;
  SELECT p.* INTO s FROM docpatterns._pattern_table(source, NULL) p;
  PERFORM docpatterns._pattern_require_owner(source);
  IF if_exists = 'error' AND (SELECT x FROM docpatterns._pattern_nonempty(source) x) THEN
    RAISE EXCEPTION 'table "%" already has rows',
        docpatterns._relname(s.base::regclass) USING ERRCODE = 'duplicate_table',
      HINT = 'Specify if_exists => 'replace' or 'append'.';
  ELSIF if_exists = 'replace' THEN
    EXECUTE format('DELETE FROM %s', s.base);
  END IF;

  -- elements as members show them, and as a join returns them
  element := @extschema@.bson_build(on_field, 0);
  IF NOT has_id THEN
    element := @extschema@.bson_set(element, '_id', 0);
  END IF;
  IF position_field IS NOT NULL THEN
    element := element OPERATOR(@extschema@.||) @extschema@.bson_build(position_field, 0);
  END IF;

  EXECUTE format('SELECT count(*) FROM %s', t.base) INTO total;
  FOR r IN EXECUTE format('SELECT %s AS key, %I OPERATOR(@extschema@.->) %L::text AS elements FROM '
        '%s ORDER BY %s', t.key_value, t.doc, field, t.base, t.key_list) LOOP
    documents := documents + 1;
    IF @extschema@.bson_typeof(r.elements) = 'array' THEN
      -- new ids are put in order first: they may not be made in it
      EXECUTE format($q$INSERT INTO %1$s (%2$I)
          SELECT @extschema@.bson_set(%3$s, %4$L, $2)
          FROM @extschema@.bson_elements($1) WITH ORDINALITY AS u (e, n)
            JOIN (SELECT i.id, row_number() OVER (ORDER BY i.id) AS n
                FROM (SELECT @extschema@.objectid() AS id
                  FROM generate_series(1, @extschema@.bson_array_length($1))) AS i) AS i USING (n)
            CROSS JOIN LATERAL (SELECT CASE
                WHEN @extschema@.bson_exists(e::@extschema@.bson, '_id') THEN e::@extschema@.bson
                ELSE @extschema@.bson_build('_id', i.id) OPERATOR(@extschema@.||)
                e::@extschema@.bson END AS doc) AS d
          ORDER BY n$q$,
        s.base, s.doc, CASE WHEN position_field IS NULL THEN 'd.doc' ELSE
        format('@extschema@.bson_set(d.doc, %L, n)', position_field) END, on_field)
        USING r.elements, r.key;
      GET DIAGNOSTICS n = ROW_COUNT;
      done := done + n;
    END IF;
    IF documents % 1000 = 0 THEN
      RAISE NOTICE 'table "%": % of % documents split', docpatterns._relname(rel), documents, total;
    END IF;
  END LOOP;

  PERFORM docpatterns._subset_enable(rel, field, source::text, source, on_field,
            coalesce(order_by, @extschema@.bson_build(coalesce(position_field, '_id'), 1)),
            @extschema@.bson_get_text(options, 'keep')::int, coalesce(fields, element),
            NULL, @extschema@.bson_get_text(options, 'count_field'),
            @extschema@.bson_get_text(options, 'count_mode'), name, t.doc, NULL, false, true);
  PERFORM docpatterns._subset_create_triggers(_subset_split.rel,
      @extschema@.bson_set(d.options, 'element', element))
    FROM docpatterns._pattern_declarations(_subset_split.rel) d WHERE d.pattern = 'subset'
      AND d.name = _subset_split.name;
  PERFORM docpatterns._pattern_repair_rows(rel, name, docpatterns._subset_pending(rel, name));
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._subset_split(regclass, text, bson) IS
  'subset_split with its arguments as a document';

CREATE FUNCTION subset_join(rel regclass, name text DEFAULT NULL) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (
    SELECT docpatterns._pattern_call('join', $1, 'subset', f.name, NULL)::bigint
    FROM docpatterns._pattern_find($1, $2, 'subset') f);
END
$$;
COMMENT ON FUNCTION subset_join(regclass, text) IS
  'Undoes subset_split: ends the declaration, moves all documents of the source that belong to a '
  'document back into its array, in order, and returns their number. Locks both tables, one pass '
  'over both. Errors: 42704, 54000 with the keys of documents that would be too large, 42501 '
  'unless the caller owns the table';

CREATE FUNCTION docpatterns._subset_join(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  element @extschema@.bson;
  whole text;
  too_large text[];
  done bigint;
BEGIN
  SELECT q.* INTO p FROM docpatterns._subset_parts(rel, name) q;
  EXECUTE format('LOCK TABLE %s, %s IN ACCESS EXCLUSIVE MODE', p.base, p.source);
  element := coalesce((p.options OPERATOR(@extschema@.->) 'element'::text)::@extschema@.bson,
                      @extschema@.bson_build(@extschema@.bson_get_text(p.options, 'on_field'), 0));
  whole := format('docpatterns._subset_member(%s, %L::@extschema@.bson)', p.source_doc, element);
  EXECUTE format($q$SELECT array_agg(k.key::text)
      FROM (SELECT %1$s AS key FROM %2$s AS b
        JOIN (SELECT %3$s AS link, sum(@extschema@.bson_size(%4$s)::bigint + 8) AS size
          FROM %5$s AS s WHERE %6$s GROUP BY 1) AS g
                      ON g.link OPERATOR(@extschema@.=) %1$s
                    WHERE g.size + @extschema@.bson_size(@extschema@.bson_unset(%7$s, %8$L)) >
                        (SELECT s.setting::bigint FROM pg_settings s
                          WHERE s.name = 'docpatterns.max_document_size')) AS k$q$,
                 p.key_value, p.base, p.link, whole, p.source, p.filter_sql, p.doc, p.field)
                 INTO too_large;
  IF too_large IS NOT NULL THEN
    RAISE EXCEPTION 'cannot join subset pattern "%" of table "%": % documents would be too '
      'large', name, docpatterns._relname(rel), cardinality(too_large)
      USING ERRCODE = 'program_limit_exceeded',
            DETAIL = 'Their keys: ' || array_to_string(too_large[1:20], ', ') || CASE
            WHEN cardinality(too_large) > 20 THEN ', ...' ELSE '' END || '.',
            HINT = 'Raise docpatterns.max_document_size, or keep the elements in place.';
  END IF;
  PERFORM docpatterns._subset_disable(rel, name, '{keep_data: true}');
  EXECUTE format($q$UPDATE %1$s AS b SET %2$s = @extschema@.bson_set(%3$s, %4$L, g.elements)
                    FROM (SELECT %5$s AS link, @extschema@.bson_agg(%6$s
                          ORDER BY %7$s, %8$s) AS elements FROM %9$s AS s WHERE %10$s
                        GROUP BY 1) AS g
                    WHERE g.link OPERATOR(@extschema@.=) %11$s$q$,
                 p.base, substring(p.doc FROM 3), CASE WHEN p.count_field IS NULL THEN p.doc ELSE
                 format('@extschema@.bson_unset(%s, %L)', p.doc, p.count_field) END,
                 p.field, p.link, whole, p.sort_key, p.source_keys, p.source, p.filter_sql,
                 p.key_value);
  EXECUTE format('DELETE FROM %s AS s USING %s AS b WHERE (%s) AND (%s) OPERATOR(@extschema@.=) %s',
      p.source, p.base, p.filter_sql, p.link, p.key_value);
  GET DIAGNOSTICS done = ROW_COUNT;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._subset_join(regclass, text) IS 'subset_join of a declaration';
