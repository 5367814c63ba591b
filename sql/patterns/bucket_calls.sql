-- Maintenance of a bucket relation: packing, other spans, retention, columns, conversion, checks.
-- The calls are in src/patterns/bucket/maintain.c.

CREATE FUNCTION bucket_pack(rel regclass, until timestamptz DEFAULT NULL) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_bucket_pack_call' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION bucket_pack(regclass, timestamptz) IS
  'Packs waiting measurements, or those of the spans before that of until, and returns their '
  'number. Locks the rows that it packs and skips those that another transaction is changing. '
  'Errors: 42501 without INSERT, 22023 a time for pages, 22008 an infinite time';

CREATE FUNCTION docpatterns._bucket_repack(rel regclass) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_bucket_repack' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._bucket_repack(regclass) IS
  'packs all buckets again by the present spans and limits; returns their number; locks the '
  'relation against writers';

CREATE FUNCTION docpatterns._bucket_drop_before(rel regclass, before timestamptz) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_bucket_drop_before' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._bucket_drop_before(regclass, timestamptz) IS
  'deletes the spans that end before a time; returns the number of buckets and waiting '
  'measurements';

CREATE FUNCTION docpatterns._bucket_span_of(rel regclass, ts timestamptz) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'dp_bucket_span_of' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._bucket_span_of(regclass, timestamptz) IS
  'where the span of a time begins; NULL for pages';

CREATE FUNCTION docpatterns._bucket_lock(rel regclass) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_bucket_lock' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._bucket_lock(regclass) IS
  'locks a relation against writers until the transaction ends; error 42501 unless the caller owns '
  'it';

CREATE FUNCTION docpatterns._bucket_beneath(rel regclass, command text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_bucket_beneath' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._bucket_beneath(regclass, text) IS
  'runs a command that writes to the tables beneath a relation, for its owner only (42501); '
  'returns the number of rows';

CREATE FUNCTION docpatterns._bucket_fault(rel regclass, start anyelement, data bucket,
  OUT what text, OUT expected text, OUT found text) RETURNS record
  AS 'MODULE_PATHNAME', 'dp_bucket_fault_call' LANGUAGE C STABLE;
COMMENT ON FUNCTION docpatterns._bucket_fault(regclass, anyelement, bucket) IS
  'what is wrong with a bucket of a relation: its bytes, its size, its times; NULLs if nothing is';

-- Names and options of a relation, as the functions below use them in generated SQL: there "p" is a
-- row of the table of buckets, "r" one of the relation.
CREATE FUNCTION docpatterns._bucket_parts(rel regclass, OUT base text, OUT schema_name text,
  OUT table_name text, OUT owner oid, OUT name text, OUT options bson,
                              OUT packed regclass, OUT recent regclass, OUT time_column text,
                              OUT time_type text, OUT group_columns text[],
                              OUT packed_group text, OUT packed_key text, OUT packed_seq text,
                              OUT packed_start text, OUT packed_data text, OUT row_key text,
                              OUT columns text[], OUT column_types text[])
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  packed_columns text[];
  positions int[];
  n int;
BEGIN
  IF rel IS NULL THEN
    RAISE EXCEPTION 'the relation must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  SELECT d.name, d.options INTO name, options FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = 'bucket';
  IF name IS NULL THEN
    RAISE EXCEPTION '"%" is not a relation of buckets',
        docpatterns._relname(rel) USING ERRCODE = 'wrong_object_type',
      HINT = 'Create one with bucket_create().';
  END IF;
  SELECT format('%I.%I', s.nspname, c.relname), s.nspname, c.relname, c.relowner
    INTO base, schema_name, table_name, owner
    FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace WHERE c.oid = rel;
  packed := docpatterns._pattern_side(@extschema@.bson_get_text(options, 'link_id'), rel);
  recent := docpatterns._pattern_side(@extschema@.bson_get_text(options, 'second_link_id'), rel);
  SELECT array_agg(a.attname::text ORDER BY a.attnum),
    array_agg(format_type(a.atttypid, a.atttypmod) ||
           CASE WHEN a.attcollation <> 0 AND a.attcollation <> t.typcollation THEN
             ' COLLATE ' || a.attcollation::regcollation ELSE '' END ORDER BY a.attnum)
    INTO columns, column_types
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = rel AND a.attnum > 0
      AND NOT a.attisdropped;
  SELECT array_agg(v.value::int ORDER BY v.n) INTO positions
    FROM jsonb_array_elements_text((options OPERATOR(@extschema@.->) 'group_at')::jsonb)
      WITH ORDINALITY AS v (value, n);
  SELECT coalesce(array_agg(columns[u.at] ORDER BY u.n), '{}') INTO group_columns
    FROM unnest(positions) WITH ORDINALITY AS u (at, n);
  IF @extschema@.bson_exists(options, 'time_at') THEN
    n := @extschema@.bson_get_text(options, 'time_at')::int;
    time_column := columns[n];
    time_type := column_types[n];
  END IF;
  row_key := CASE cardinality(group_columns) WHEN 0 THEN 'NULL::@extschema@.bson_value' WHEN 1 THEN
    format('@extschema@.to_bson(r.%I)', group_columns[1])
               ELSE format('@extschema@.bson_array(%s)',
                   (SELECT string_agg(format('r.%I', u.c), ', ' ORDER BY u.n)
                     FROM unnest(group_columns) WITH ORDINALITY AS u (c, n))) END;
  IF packed IS NOT NULL THEN
    SELECT array_agg(a.attname::text ORDER BY a.attnum) INTO packed_columns
      FROM pg_attribute a WHERE a.attrelid = packed AND a.attnum > 0 AND NOT a.attisdropped;
    n := cardinality(group_columns);
    SELECT coalesce(string_agg(format('p.%I', packed_columns[i]), ', ' ORDER BY i), '')
      INTO packed_group FROM generate_series(1, n) i;
    packed_key := CASE n WHEN 0 THEN 'NULL::@extschema@.bson_value' WHEN 1 THEN
      format('@extschema@.to_bson(%s)', packed_group) ELSE
      format('@extschema@.bson_array(%s)', packed_group) END;
    packed_seq := format('p.%I', packed_columns[n + 1]);
    packed_start := CASE WHEN time_column IS NULL THEN 'NULL::timestamptz' ELSE
      format('p.%I', packed_columns[n + 2]) END;
    packed_data := format('p.%I', packed_columns[cardinality(packed_columns)]);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._bucket_parts(regclass) IS
  'names and options of a bucket relation, and pieces of SQL text about it; errors 22004, 42809';

CREATE FUNCTION docpatterns._bucket_follow_owner(rel regclass, former oid) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._pattern_renew_view($1, docpatterns._bucket_view($1, owner => $2),
           format('SELECT docpatterns._bucket_create_view(%L, %L, %L, %L, %L)', $1, p.packed,
             p.recent, p.group_columns, p.time_column),
           format('SELECT docpatterns._bucket_view(%L)', $1))
  FROM docpatterns._bucket_parts($1) p
$$;
COMMENT ON FUNCTION docpatterns._bucket_follow_owner(regclass, oid) IS
  'makes the view of a relation''s buckets again after a change of its owner';

-- Verbs of the toolkit ----------------------------------------------------------------------------

CREATE FUNCTION docpatterns._bucket_check(rel regclass, name text) RETURNS TABLE (key bson_value,
  what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._bucket_parts(rel) q;
  IF p.packed IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'table of buckets'::text, 'present'::text,
      'missing'::text;
    RETURN;
  END IF;
  IF p.recent IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'table of waiting measurements'::text,
      'present'::text, 'missing'::text;
    RETURN;
  END IF;
  RETURN QUERY SELECT NULL::@extschema@.bson_value, format('index of %s', m.side), 'present'::text,
    'missing'::text FROM docpatterns._bucket_missing_indexes(rel) m;
  RETURN QUERY EXECUTE format('SELECT %s, f.what, f.expected, f.found FROM %s AS p CROSS JOIN '
      'LATERAL docpatterns._bucket_fault(%L, %s, %s) AS f WHERE f.what IS NOT NULL',
    p.packed_key, p.packed, rel, p.packed_start, p.packed_data);
  IF FOUND THEN
    RETURN;
  END IF;
  IF p.time_column IS NOT NULL THEN
    -- columns of the table of waiting measurements are those of the relation, whatever either of
    -- them calls them
    RETURN QUERY EXECUTE format('SELECT %s, %L::text, %L::text, r.%I::text FROM %s AS r (%s) WHERE '
        'NOT isfinite(r.%4$I)', p.row_key, 'time of a waiting measurement', 'finite', p.time_column,
      p.recent, (SELECT string_agg(quote_ident(u.c), ', ' ORDER BY u.n) FROM unnest(p.columns)
        WITH ORDINALITY AS u (c, n)));
    IF @extschema@.bson_exists(p.options, 'granularity') THEN
      RETURN QUERY EXECUTE format('SELECT %1$s, %2$L::text, %3$L::text, count(*)::text FROM %4$s '
          'AS r GROUP BY %1$s, @extschema@.bucket_start(%5$L, r.%6$I%7$s) HAVING count(*) > 1',
        p.row_key, 'measurements of a slot', '1', p.base,
        @extschema@.bson_get_text(p.options, 'granularity'), p.time_column,
        CASE WHEN p.time_type LIKE '% with time zone' THEN
          format(', %L, %L', @extschema@.bson_get_text(p.options, 'origin'),
            @extschema@.bson_get_text(p.options, 'time_zone'))
             ELSE format(', %L::timestamp', @extschema@.bson_get_text(p.options, 'origin')) END);
    END IF;
  ELSE
    RETURN QUERY EXECUTE format('SELECT %s, %L::text, %L::text, count(*)::text FROM %s AS p GROUP '
        'BY %s HAVING count(*) > 1', p.packed_key, 'pages of a number', '1',
      p.packed, concat_ws(', ', nullif(p.packed_group, ''), p.packed_seq));
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._bucket_check(regclass, text) IS
  'pattern_check for the bucket pattern';

-- The indexes without which a relation cannot be read and written well.
CREATE FUNCTION docpatterns._bucket_missing_indexes(rel regclass) RETURNS TABLE (side regclass,
  columns text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  s record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._bucket_parts(rel) q;
  FOR s IN
    SELECT p.packed AS side, (SELECT array_agg(a.attnum ORDER BY a.attnum)
        FROM (SELECT b.attnum, row_number() OVER (ORDER BY b.attnum) AS n FROM pg_attribute b
             WHERE b.attrelid = p.packed AND b.attnum > 0 AND NOT b.attisdropped) a
             WHERE a.n <= cardinality(p.group_columns) OR a.n = cardinality(p.group_columns) + CASE
                 WHEN p.time_column IS NULL THEN 1 ELSE 2 END) AS keys
    UNION ALL
    SELECT p.recent, (SELECT array_agg(a.attnum
          ORDER BY array_position(p.group_columns || p.time_column, p.columns[a.n]) NULLS LAST)
             FROM (SELECT b.attnum, row_number() OVER (ORDER BY b.attnum) AS n FROM pg_attribute b
                   WHERE b.attrelid = p.recent AND b.attnum > 0 AND NOT b.attisdropped) a
             WHERE p.columns[a.n] = ANY (p.group_columns || p.time_column)
               OR (p.time_column IS NULL AND a.n > cardinality(p.columns)))
  LOOP
    IF NOT EXISTS (SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        JOIN pg_am m ON m.oid = c.relam
                   WHERE i.indrelid = s.side AND m.amname = 'btree' AND i.indisvalid
                     AND i.indpred IS NULL AND i.indexprs IS NULL
                     AND (i.indkey::int2[])[0:cardinality(s.keys) - 1] = s.keys::int2[]) THEN
      side := s.side;
      SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY array_position(s.keys, a.attnum))
        INTO columns FROM pg_attribute a WHERE a.attrelid = s.side AND a.attnum = ANY (s.keys);
      RETURN NEXT;
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._bucket_missing_indexes(regclass) IS
  'tables beneath a bucket relation that have lost their index, and its columns';

CREATE FUNCTION docpatterns._bucket_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  m record;
  n bigint;
  damaged bigint;
BEGIN
  FOR m IN SELECT i.* FROM docpatterns._bucket_missing_indexes(rel) i LOOP
    EXECUTE format('CREATE INDEX ON %s (%s)', m.side, m.columns);
  END LOOP;
  SELECT count(*), count(*) FILTER (WHERE c.what = 'bucket') INTO n, damaged
    FROM docpatterns._bucket_check(rel, name) c;
  IF damaged > 0 THEN
    RAISE EXCEPTION '% buckets of "%" are damaged', damaged, docpatterns._relname(rel)
      USING ERRCODE = 'data_corrupted',
        HINT = format('SELECT * FROM bucket_salvage(%L) puts them aside; the others stay.', rel);
  END IF;
  IF n > 0 THEN
    PERFORM docpatterns._bucket_repack(rel);
  END IF;
  RETURN n;
END
$$;
COMMENT ON FUNCTION docpatterns._bucket_repair(regclass, text) IS
  'pattern_repair for the bucket pattern: creates missing indexes, and packs buckets again that '
  'are too large or in a wrong span; error XX001 for damaged ones';

CREATE FUNCTION docpatterns._bucket_pending(rel regclass, name text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT 'SELECT ROW(NULL::int) WHERE false'::text
$$;
COMMENT ON FUNCTION docpatterns._bucket_pending(regclass, text) IS
  'pattern_build for the bucket pattern: nothing is ever left to be built';

-- Ending it: a plain table with the measurements takes the relation's place and name.
CREATE FUNCTION docpatterns._bucket_disable(rel regclass, name text, options bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  n bigint := 0;
  keep boolean := coalesce(@extschema@.bson_get_text(options, 'keep_data') = 'true', false);
  plain text;
BEGIN
  SELECT q.* INTO p FROM docpatterns._bucket_parts(rel) q;
  PERFORM docpatterns._bucket_lock(rel);
  IF keep THEN
    -- the tables beneath become ordinary tables
    PERFORM docpatterns._pattern_drop_side(s, rel, true) FROM unnest(ARRAY[p.packed, p.recent]) s;
    EXECUTE format('DROP FOREIGN TABLE %s', p.base);
    RETURN 0;
  END IF;
  plain := format('%I.%I', p.schema_name,
      docpatterns._pattern_relation_name(p.schema_name, p.table_name, NULL, 'plain'));
  EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING '
      'COMMENTS)', plain, p.base);
  EXECUTE format('INSERT INTO %s SELECT * FROM %s%s', plain, p.base,
                 CASE WHEN p.time_column IS NULL THEN '' ELSE
                   ' ORDER BY ' || (SELECT string_agg(quote_ident(u.c), ', ' ORDER BY u.n)
                   FROM unnest(p.group_columns || p.time_column) WITH ORDINALITY AS u (c, n)) END);
  GET DIAGNOSTICS n = ROW_COUNT;
  PERFORM docpatterns._pattern_copy_grants(rel, plain::regclass);
  EXECUTE format('ALTER TABLE %s OWNER TO %s', plain, p.owner::regrole);
  EXECUTE format('DROP FOREIGN TABLE %s CASCADE', p.base);
  IF to_regclass(p.packed::text) IS NOT NULL
      AND EXISTS (SELECT FROM pg_class c WHERE c.oid = p.packed) THEN
    EXECUTE format('DROP TABLE %s', p.packed);
  END IF;
  IF EXISTS (SELECT FROM pg_class c WHERE c.oid = p.recent) THEN
    EXECUTE format('DROP TABLE %s', p.recent);
  END IF;
  EXECUTE format('ALTER TABLE %s RENAME TO %I', plain, p.table_name);
  IF p.time_column IS NOT NULL THEN
    EXECUTE format('CREATE INDEX ON %s (%s)', p.base,
        (SELECT string_agg(quote_ident(u.c), ', ' ORDER BY u.n)
          FROM unnest(p.group_columns || p.time_column) WITH ORDINALITY AS u (c, n)));
  END IF;
  RETURN n;
END
$$;
COMMENT ON FUNCTION docpatterns._bucket_disable(regclass, text, bson) IS
  'pattern_disable for the bucket pattern';

-- Options are in the main trigger: it is created again.
CREATE FUNCTION docpatterns._bucket_redeclare(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t text;
BEGIN
  SELECT g.tgname INTO t FROM docpatterns._pattern_declarations(rel) d
    JOIN pg_trigger g ON g.oid = d.trigger_oid WHERE d.pattern = 'bucket';
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE UPDATE ON %s FOR EACH STATEMENT EXECUTE '
      'FUNCTION docpatterns.bucket_trigger(%L)', t, rel, options::text);
END
$$;
COMMENT ON FUNCTION docpatterns._bucket_redeclare(regclass, bson) IS
  'writes the options of a bucket relation';

CREATE FUNCTION docpatterns._bucket_alter(rel regclass, name text, options bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp
  SET intervalstyle = postgres AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._bucket_parts(rel) q;
  PERFORM docpatterns._bucket_lock(rel);
  IF @extschema@.bson_exists(options, 'span') THEN
    options := @extschema@.bson_set(options, 'span',
        (@extschema@.bson_get_text(options, 'span')::interval)::text);
  END IF;
  PERFORM docpatterns._bucket_redeclare(rel, options);
  PERFORM docpatterns._bucket_index_starts(rel);
  IF @extschema@.bson_unset(options, 'same_slot', 'pack_after', 'retain')::text
     = @extschema@.bson_unset(p.options, 'same_slot', 'pack_after', 'retain')::text THEN
    RETURN 0;
  END IF;
  RETURN docpatterns._bucket_repack(rel);
END
$$;
COMMENT ON FUNCTION docpatterns._bucket_alter(regclass, text, bson) IS
  'pattern_alter for the bucket pattern; returns the number of buckets that were packed again';

-- Spans and retention -----------------------------------------------------------------------------

CREATE FUNCTION bucket_resize(rel regclass, span interval DEFAULT NULL, max_count int DEFAULT NULL,
  max_bytes int DEFAULT NULL) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp
  SET intervalstyle = postgres AS $$
DECLARE
  p record;
  options @extschema@.bson := '{}';
BEGIN
  SELECT q.* INTO p FROM docpatterns._bucket_parts(rel) q;
  IF span IS NULL AND max_count IS NULL AND max_bytes IS NULL THEN
    RAISE EXCEPTION 'at least one of span, max_count and max_bytes must be specified'
      USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF span IS NOT NULL THEN
    options := @extschema@.bson_set(options, 'span', span::text);
  END IF;
  IF max_count IS NOT NULL THEN
    options := @extschema@.bson_set(options, 'max_count', max_count);
  END IF;
  IF max_bytes IS NOT NULL THEN
    options := @extschema@.bson_set(options, 'max_bytes', max_bytes);
  END IF;
  RETURN docpatterns._pattern_call('alter', rel, 'bucket', p.name, options)::bigint;
END
$$;
COMMENT ON FUNCTION bucket_resize(regclass, interval, int, int) IS
  'Changes span and limits and repacks; returns the number of buckets. Writers wait until the '
  'transaction ends, readers do not; one pass over everything. Errors: 22004 nothing is given, '
  '22023 a value that does not fit';

CREATE FUNCTION bucket_drop_before(rel regclass, before timestamptz, archive text DEFAULT NULL)
  RETURNS bigint
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  RETURN docpatterns._bucket_drop_before(rel, before, pg_catalog.parse_ident(archive),
      pg_catalog.current_schema());
END
$$;
COMMENT ON FUNCTION bucket_drop_before(regclass, timestamptz, text) IS
  'Deletes the spans that end before a time, whole buckets at once, and returns the number of '
  'buckets and waiting measurements. archive: a table, created if missing, that receives the '
  'measurements; writers wait then. If the relation has triggers for deleted rows, each '
  'measurement is deleted individually. Errors: 22023 for pages, 22008 for infinity';

CREATE FUNCTION docpatterns._bucket_drop_before(rel regclass, before timestamptz, archive text[],
  schema_name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  target text;
  bound timestamptz;
  n bigint;
BEGIN
  SELECT q.* INTO p FROM docpatterns._bucket_parts(rel) q;
  PERFORM docpatterns._pattern_require_owner(rel);
  IF before IS NULL THEN
    RAISE EXCEPTION 'the time must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF p.time_column IS NULL THEN
    RAISE EXCEPTION '"%" has pages, not spans of time',
        docpatterns._relname(rel) USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF archive IS NOT NULL THEN
    -- the spans stay as they are from here on
    PERFORM docpatterns._bucket_lock(rel);
  END IF;
  bound := docpatterns._bucket_span_of(rel, before);
  IF archive IS NOT NULL THEN
    target := format('%I.%I', CASE WHEN cardinality(archive) > 1 THEN archive[1] ELSE p.schema_name
        END, archive[cardinality(archive)]);
    IF to_regclass(target) IS NULL THEN
      EXECUTE format('CREATE TABLE %s (LIKE %s)', target, p.base);
    END IF;
    EXECUTE format('INSERT INTO %s (%s) SELECT %2$s FROM %s WHERE %I < $1', target,
                   (SELECT string_agg(quote_ident(u.c), ', ' ORDER BY u.n) FROM unnest(p.columns)
                     WITH ORDINALITY AS u (c, n)), p.base, p.time_column)
      USING bound;
  END IF;
  IF EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = rel AND t.tgtype::int & 8 <> 0
        AND NOT t.tgisinternal) THEN
    EXECUTE format('DELETE FROM %s WHERE %I < $1', p.base, p.time_column) USING bound;
    GET DIAGNOSTICS n = ROW_COUNT;
    RETURN n;
  END IF;
  RETURN docpatterns._bucket_drop_before(rel, before);
END
$$;
COMMENT ON FUNCTION docpatterns._bucket_drop_before(regclass, timestamptz, text[], text) IS
  'bucket_drop_before with the name of the archive read';

-- Deferred work -----------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._bucket_index_starts(rel regclass) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._derive_create_index(p.packed, 'bucket', p.name,
    ARRAY[substr(p.packed_start, 3)])
  FROM docpatterns._bucket_parts($1) p WHERE @extschema@.bson_exists(p.options, 'retain')
$$;
COMMENT ON FUNCTION docpatterns._bucket_index_starts(regclass) IS
  'with option "retain", an index by which old spans are found, unless there is one';


CREATE FUNCTION docpatterns._bucket_aged(rel regclass, OUT drops boolean, OUT since timestamptz,
  OUT amount bigint, OUT until timestamptz) RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  age interval;
  span interval;
  ends timestamptz;
  bound timestamptz;
  recent_time text;
BEGIN
  SELECT q.* INTO p FROM docpatterns._bucket_parts(rel) q;
  IF p.time_column IS NULL OR p.packed IS NULL OR p.recent IS NULL THEN
    RETURN;
  END IF;
  span := @extschema@.bson_get_text(p.options, 'span')::interval;
  SELECT format('r.%I', a.name) INTO recent_time
    FROM (SELECT a.attname AS name, row_number() OVER (ORDER BY a.attnum) AS n FROM pg_attribute a
        WHERE a.attrelid = p.recent AND a.attnum > 0 AND NOT a.attisdropped) a
    WHERE a.n = @extschema@.bson_get_text(p.options, 'time_at')::int;
  FOREACH drops IN ARRAY '{true,false}'::boolean[] LOOP
    age := @extschema@.bson_get_text(p.options, CASE WHEN drops THEN 'retain'
      ELSE 'pack_after' END);
    CONTINUE WHEN drops AND age IS NULL;
    ends := clock_timestamp() - coalesce(age, '0');
    IF p.time_type ~ 'without' THEN
      ends := ends AT TIME ZONE @extschema@.bson_get_text(p.options, 'time_zone');
    END IF;
    bound := docpatterns._bucket_span_of(rel, ends);
    EXECUTE format('SELECT min(q.at), nullif(count(*), 0) FROM ('
        '(SELECT %1$s::timestamptz AS at FROM %2$s AS r WHERE %1$s < $1::%3$s LIMIT 10000)%4$s) '
        'AS q',
        recent_time, p.recent, p.time_type, CASE WHEN drops THEN
          format(' UNION ALL (SELECT %1$s::timestamptz FROM %2$s AS p WHERE %1$s < $1::%3$s '
            'ORDER BY %1$s LIMIT 10000)', p.packed_start, p.packed, p.time_type) END)
      INTO since, amount USING bound;
    IF amount > 0 THEN
      -- in the next span: what is before that is packed or deleted
      until := least(docpatterns._bucket_span_of(rel, since) + 1.5 * span, ends);
      since := since + span + coalesce(age, '0');
      RETURN NEXT;
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._bucket_aged(regclass) IS
  'whether spans have become old enough to be deleted, or packed: since when, how many buckets and '
  'measurements, and a time in the span after the first of them';

CREATE FUNCTION docpatterns._bucket_due(rel regclass, name text, OUT what text,
  OUT since timestamptz, OUT amount bigint) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN a.drops THEN 'buckets past retention' ELSE 'measurements to pack' END, a.since,
    a.amount
  FROM docpatterns._bucket_aged($1) a
$$;
COMMENT ON FUNCTION docpatterns._bucket_due(regclass, text) IS
  'pattern_due of a relation of measurements';

CREATE FUNCTION docpatterns._bucket_maintain(rel regclass, name text, most int) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  a record;
  n bigint;
  done bigint := 0;
BEGIN
  -- one span after the other; what another transaction is changing stays
  WHILE done < most LOOP
    n := 0;
    FOR a IN SELECT q.* FROM docpatterns._bucket_aged(rel) q LOOP
      n := n + CASE WHEN a.drops THEN docpatterns._bucket_drop_before(rel, a.until, NULL, NULL)
        ELSE @extschema@.bucket_pack(rel, a.until) END;
    END LOOP;
    EXIT WHEN n = 0;
    done := done + n;
  END LOOP;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._bucket_maintain(regclass, text, int) IS
  'pattern_maintain of a relation of measurements';

-- Columns -----------------------------------------------------------------------------------------

CREATE FUNCTION bucket_add_column(rel regclass, name text, type text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  recent_columns text[];
  arrived text;
  next_arrived text;
BEGIN
  SELECT q.* INTO p FROM docpatterns._bucket_parts(rel) q;
  PERFORM docpatterns._pattern_require_owner(rel);
  IF name IS NULL OR type IS NULL THEN
    RAISE EXCEPTION 'name and type must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  type := format_type(to_regtype(type), NULL);
  IF type IS NULL OR type = '-' THEN
    RAISE EXCEPTION 'type does not exist' USING ERRCODE = 'undefined_object';
  END IF;
  PERFORM docpatterns._bucket_lock(rel);
  EXECUTE format('ALTER TABLE %s ADD COLUMN %I %s', p.recent, name, type);
  IF p.time_column IS NULL THEN
    -- the order of arrival stays the last column; while it is being moved, the relation cannot be
    -- read
    SELECT array_agg(a.attname::text ORDER BY a.attnum) INTO recent_columns
      FROM pg_attribute a WHERE a.attrelid = p.recent AND a.attnum > 0 AND NOT a.attisdropped;
    arrived := recent_columns[cardinality(p.columns) + 1];
    next_arrived := 'arrived_' || replace(gen_random_uuid()::text, '-', '');
    EXECUTE format('ALTER TABLE %s ADD COLUMN %I bigint', p.recent, next_arrived);
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I TYPE bigint USING %I', p.recent, next_arrived,
        arrived);
    EXECUTE format('ALTER TABLE %s DROP COLUMN %I', p.recent, arrived);
    EXECUTE format('ALTER TABLE %s RENAME COLUMN %I TO %I', p.recent, next_arrived, arrived);
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET NOT NULL', p.recent, arrived);
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED BY DEFAULT AS IDENTITY', p.recent,
        arrived);
    EXECUTE format('SELECT setval(pg_get_serial_sequence(%L, %L), coalesce((SELECT max(%I) FROM '
        '%s), 0) + 1, false)', p.recent, arrived, arrived, p.recent);
    EXECUTE format('CREATE INDEX ON %s (%s%I)', p.recent,
                   (SELECT coalesce(string_agg(quote_ident(recent_columns[array_position(p.columns,
                         u.c)]) || ', ', '' ORDER BY u.n), '') FROM unnest(p.group_columns)
                     WITH ORDINALITY AS u (c, n)), arrived);
  END IF;
  PERFORM docpatterns._bucket_alter(rel,
      format('ALTER FOREIGN TABLE %s ADD COLUMN %I %s', p.base, name, type));
END
$$;
COMMENT ON FUNCTION bucket_add_column(regclass, text, text) IS
  'Adds a measured column, NULL in existing measurements; no bucket is written. Locks the relation '
  'for a moment. Errors: 42701 the column exists, 42704 no such type';

-- Conversion --------------------------------------------------------------------------------------

CREATE PROCEDURE bucket_from_table(rel regclass, source regclass, batch int DEFAULT 100000,
  keep_source boolean DEFAULT false)
LANGUAGE docpatterns AS $$
DECLARE
  list pg_catalog.text;
  strange pg_catalog.text;
  n bigint;
  total bigint := 0;
  blocks bigint;
  step bigint;
  at bigint := 0;
  rows_estimate pg_catalog.float8;
BEGIN
  PERFORM docpatterns._pattern_require_owner(rel);
  IF batch IS NOT NULL AND batch OPERATOR(pg_catalog.<) 1 THEN
    RAISE EXCEPTION 'batch must be positive' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid OPERATOR(pg_catalog.=) source
        AND c.relkind OPERATOR(pg_catalog.=) ANY ('{r,m}'::pg_catalog."char"[])) THEN
    RAISE EXCEPTION '"%" is not a table',
        docpatterns._relname(source) USING ERRCODE = 'wrong_object_type';
  END IF;
  SELECT pg_catalog.string_agg(pg_catalog.quote_ident(a.attname), ', ' ORDER BY a.attnum),
         pg_catalog.string_agg(pg_catalog.quote_ident(a.attname), ', '
           ORDER BY a.attnum) FILTER (WHERE a.attname::pg_catalog.text OPERATOR(pg_catalog.<>) ALL
           (p.columns)) INTO list, strange
    FROM docpatterns._bucket_parts(rel) p, pg_catalog.pg_attribute a
    WHERE a.attrelid OPERATOR(pg_catalog.=) source AND a.attnum OPERATOR(pg_catalog.>) 0
      AND NOT a.attisdropped;
  IF strange IS NOT NULL THEN
    RAISE EXCEPTION '"%" has no columns %', docpatterns._relname(rel),
        strange USING ERRCODE = 'undefined_column',
      HINT = 'Add one with bucket_add_column().';
  END IF;
  IF batch IS NULL THEN
    IF keep_source THEN
      EXECUTE pg_catalog.format('INSERT INTO %s (%s) SELECT %2$s FROM ONLY %s', rel, list, source);
    ELSE
      EXECUTE pg_catalog.format('WITH moved AS (DELETE FROM ONLY %3$s RETURNING %2$s) INSERT INTO '
          '%1$s (%2$s) SELECT %2$s FROM moved', rel, list, source);
    END IF;
    GET DIAGNOSTICS total = ROW_COUNT;
  ELSE
    blocks := pg_catalog.pg_relation_size(source) OPERATOR(pg_catalog./)
      pg_catalog.current_setting('block_size')::bigint;
    SELECT c.reltuples INTO rows_estimate FROM pg_catalog.pg_class c
      WHERE c.oid OPERATOR(pg_catalog.=) source;
    -- as many pages as contain a batch; a hundred rows per page without statistics
    step := greatest(1, (batch OPERATOR(pg_catalog./) CASE
          WHEN rows_estimate OPERATOR(pg_catalog.>) 0 AND blocks OPERATOR(pg_catalog.>) 0
              THEN greatest(rows_estimate OPERATOR(pg_catalog./) blocks, 1) ELSE 100 END)::bigint);
    WHILE at OPERATOR(pg_catalog.<) blocks LOOP
      EXECUTE pg_catalog.format(
        CASE WHEN keep_source THEN 'INSERT INTO %1$s (%2$s) SELECT %2$s FROM ONLY %3$s WHERE ctid '
          'OPERATOR(pg_catalog.>=) ''(%4$s,0)'' AND ctid OPERATOR(pg_catalog.<) ''(%5$s,0)'''
             ELSE 'WITH moved AS (DELETE FROM ONLY %3$s WHERE ctid OPERATOR(pg_catalog.>=) '
               '''(%4$s,0)'' AND ctid OPERATOR(pg_catalog.<) ''(%5$s,0)'' RETURNING %2$s) '
                  'INSERT INTO %1$s (%2$s) SELECT %2$s FROM moved' END,
        rel, list, source, at, at OPERATOR(pg_catalog.+) step);
      GET DIAGNOSTICS n = ROW_COUNT;
      total := total OPERATOR(pg_catalog.+) n;
      at := at OPERATOR(pg_catalog.+) step;
      COMMIT;
      IF at OPERATOR(pg_catalog.<) blocks THEN
        RAISE NOTICE '"%" of table "%": % measurements, page % of %', docpatterns._relname(rel),
            docpatterns._relname(source), total, at, blocks;
      END IF;
    END LOOP;
  END IF;
  RAISE NOTICE '"%" of table "%": % measurements', docpatterns._relname(rel),
      docpatterns._relname(source), total;
END
$$;
COMMENT ON PROCEDURE bucket_from_table(regclass, regclass, int, boolean) IS
  'Moves the rows of a table into a bucket relation with columns of the same names, with a commit '
  'after each batch (NULL: in the caller''s transaction). You can stop it and call it again. '
  'keep_source copies instead. Locks the rows of a batch. Errors: 42703 a column that the relation '
  'lacks, 22023';

CREATE PROCEDURE bucket_to_table(rel regclass, target text, batch int DEFAULT 100000)
LANGUAGE docpatterns AS $$
DECLARE
  p pg_catalog.record;
  list pg_catalog.text;
  new_table pg_catalog.text;
  ident pg_catalog.text[];
  bounds pg_catalog.text[];
  bound pg_catalog.text;
  n bigint;
  total bigint := 0;
BEGIN
  PERFORM docpatterns._pattern_require_owner(rel);
  IF batch IS NOT NULL AND batch OPERATOR(pg_catalog.<) 1 THEN
    RAISE EXCEPTION 'batch must be positive' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT q.* INTO p FROM docpatterns._bucket_parts(rel) q;
  ident := pg_catalog.parse_ident(target);
  new_table := pg_catalog.format('%I.%I', CASE
      WHEN pg_catalog.cardinality(ident) OPERATOR(pg_catalog.>) 1 THEN ident[1] ELSE p.schema_name
      END, ident[pg_catalog.cardinality(ident)]);
  IF pg_catalog.to_regclass(new_table) IS NULL THEN
    EXECUTE pg_catalog.format('CREATE TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS)',
        new_table, p.base);
  END IF;
  SELECT pg_catalog.string_agg(pg_catalog.quote_ident(u.c), ', ' ORDER BY u.n) INTO list
    FROM pg_catalog.unnest(p.columns) WITH ORDINALITY AS u (c, n);
  IF batch IS NOT NULL AND p.time_column IS NOT NULL THEN
    -- spans, as many together as make a batch
    EXECUTE pg_catalog.format('SELECT pg_catalog.array_agg(b.until ORDER BY b.until) FROM (SELECT '
        'pg_catalog.max(s.start)::pg_catalog.text AS until FROM '
      '(SELECT r.start, pg_catalog.sum(r.n) OVER (ORDER BY r.start) AS total FROM (SELECT q.%1$I '
        'AS start, pg_catalog.count(*) AS n FROM %2$s AS q GROUP BY 1) AS r) AS s '
      'GROUP BY (s.total OPERATOR(pg_catalog./) %3$s)::bigint) AS b', p.time_column, p.base, batch)
        INTO bounds;
    FOREACH bound IN ARRAY coalesce(bounds, '{}') LOOP
      EXECUTE pg_catalog.format('WITH moved AS (DELETE FROM %1$s WHERE %4$I '
          'OPERATOR(pg_catalog.<=) %5$L RETURNING %2$s) INSERT INTO %3$s (%2$s) SELECT %2$s FROM '
          'moved', p.base, list, new_table, p.time_column, bound);
      GET DIAGNOSTICS n = ROW_COUNT;
      total := total OPERATOR(pg_catalog.+) n;
      COMMIT;
      RAISE NOTICE '"%" to table "%": % measurements', docpatterns._relname(rel),
          docpatterns._relname(new_table::pg_catalog.regclass), total;
    END LOOP;
  END IF;
  EXECUTE pg_catalog.format('WITH moved AS (DELETE FROM %1$s RETURNING %2$s) INSERT INTO %3$s '
      '(%2$s) SELECT %2$s FROM moved', p.base, list, new_table);
  GET DIAGNOSTICS n = ROW_COUNT;
  RAISE NOTICE '"%" to table "%": % measurements', docpatterns._relname(rel),
      docpatterns._relname(new_table::pg_catalog.regclass), total OPERATOR(pg_catalog.+) n;
END
$$;
COMMENT ON PROCEDURE bucket_to_table(regclass, text, int) IS
  'Moves the measurements into a table, created if missing, with a commit after each batch (NULL: '
  'in the caller''s transaction). Locks the buckets of a batch. Error: 22023';

-- Looking at it -----------------------------------------------------------------------------------

CREATE FUNCTION bucket_stats(rel regclass, OUT buckets bigint, OUT packed bigint,
  OUT waiting bigint, OUT measurements_per_bucket float8,
                             OUT packed_bytes bigint, OUT waiting_bytes bigint,
                             OUT index_bytes bigint, OUT bytes_per_measurement float8)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._bucket_parts(rel) q;
  PERFORM docpatterns._pattern_require_owner(rel);
  EXECUTE format('SELECT count(*), coalesce(sum(@extschema@.bucket_count(%s)), 0) FROM %s AS p',
      p.packed_data, p.packed) INTO buckets, packed;
  EXECUTE format('SELECT count(*) FROM %s', p.recent) INTO waiting;
  measurements_per_bucket := packed / nullif(buckets, 0)::float8;
  packed_bytes := pg_table_size(p.packed);
  waiting_bytes := pg_table_size(p.recent);
  index_bytes := pg_indexes_size(p.packed) + pg_indexes_size(p.recent);
  bytes_per_measurement := (packed_bytes + waiting_bytes + index_bytes) / nullif(packed + waiting,
      0)::float8;
END
$$;
COMMENT ON FUNCTION bucket_stats(regclass) IS
  'Numbers of buckets and measurements, and their bytes. Reads the headers of all buckets';

CREATE FUNCTION bucket_advise(rel regclass,
  spans interval[] DEFAULT '{10 minutes,1 hour,6 hours,1 day,7 days,1 month}')
  RETURNS TABLE (span interval, measurements_per_bucket float8, bytes_per_measurement float8,
      buckets bigint, declared boolean)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  s interval;
  total bigint;
  most int;
  group_list text;
  value_list text;
BEGIN
  SELECT q.* INTO p FROM docpatterns._bucket_parts(rel) q;
  PERFORM docpatterns._pattern_require_owner(rel);
  IF p.time_column IS NULL THEN
    RAISE EXCEPTION '"%" has pages, not spans of time',
        docpatterns._relname(rel) USING ERRCODE = 'invalid_parameter_value';
  END IF;
  most := @extschema@.bson_get_text(p.options, 'max_count')::int;
  EXECUTE format('SELECT count(*) FROM %s', p.base) INTO total;
  group_list := (SELECT string_agg(format('r.%I', u.c) || ', ', '' ORDER BY u.n)
      FROM unnest(p.group_columns) WITH ORDINALITY AS u (c, n));
  value_list := (SELECT string_agg(format('r.%I', u.c), ', ' ORDER BY u.n) FROM unnest(p.columns)
      WITH ORDINALITY AS u (c, n) WHERE u.c <> ALL (p.group_columns || p.time_column));
  FOR s IN SELECT DISTINCT u.s FROM unnest(spans
        || (@extschema@.bson_get_text(p.options, 'span'))::interval) AS u (s) ORDER BY 1 LOOP
    span := s;
    declared := s = @extschema@.bson_get_text(p.options, 'span')::interval;
    -- a sample of groups is packed in memory; a row of the table of buckets and its entry in the
    -- index are about 60 bytes more
    EXECUTE format('SELECT sum(b.n) / nullif(sum(ceil(b.n / %6$s::float8)), 0), sum(b.bytes + 60 * '
        'ceil(b.n / %6$s::float8)) / nullif(sum(b.n), 0), '
                   'ceil(%7$s * sum(ceil(b.n / %6$s::float8)) / nullif(sum(b.n), 0))::bigint '
                   'FROM (SELECT count(*) AS n, '
                     'pg_column_size(@extschema@.bucket_agg(r.%4$I::timestamptz%5$s)) AS bytes '
                   'FROM (SELECT * FROM %3$s AS r LIMIT 100000) AS r GROUP BY %1$s '
                     '@extschema@.bucket_start(%2$L, r.%4$I)) AS b',
                   coalesce(group_list, ''), s, p.base, p.time_column,
                   coalesce(', ' || value_list, ', 0'), most, total)
      INTO measurements_per_bucket, bytes_per_measurement, buckets;
    RETURN NEXT;
  END LOOP;
END
$$;
COMMENT ON FUNCTION bucket_advise(regclass, interval[]) IS
  'What other spans would cost: measurements per bucket, bytes per measurement and buckets, from '
  'up to 100000 measurements packed in memory for each span. Error: 22023 for pages';

CREATE FUNCTION bucket_salvage(rel regclass) RETURNS TABLE (key bson_value, start text, fault text)
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  damaged text;
BEGIN
  SELECT q.* INTO p FROM docpatterns._bucket_parts(rel) q;
  PERFORM docpatterns._pattern_require_owner(rel);
  PERFORM docpatterns._bucket_lock(rel);
  damaged := format('%I.%I', p.schema_name,
      docpatterns._pattern_object_name(p.table_name, NULL, 'damaged'));
  RETURN QUERY EXECUTE format('SELECT %s, (%s)::text, f.found FROM %s AS p CROSS JOIN LATERAL '
      'docpatterns._bucket_fault(%L, %s, %s) AS f WHERE f.what = ''bucket''',
    p.packed_key, p.packed_start, p.packed, rel, p.packed_start, p.packed_data);
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF to_regclass(damaged) IS NULL THEN
    EXECUTE format('CREATE TABLE %s (LIKE %s)', damaged, p.packed);
    EXECUTE format('COMMENT ON TABLE %s IS %L', damaged, 'buckets of ' || p.base
        || ' whose bytes are damaged');
    EXECUTE format('ALTER TABLE %s OWNER TO %s', damaged, p.owner::regrole);
  END IF;
  PERFORM docpatterns._bucket_beneath(rel, format(
    'WITH moved AS (DELETE FROM %s AS p WHERE (SELECT f.what FROM docpatterns._bucket_fault(%L, '
    '%s, '
    '%s) AS f) = ''bucket'' RETURNING p.*) INSERT INTO %s SELECT * FROM moved',
    p.packed, rel, p.packed_start, p.packed_data, damaged));
END
$$;
COMMENT ON FUNCTION bucket_salvage(regclass) IS
  'Moves buckets with damaged bytes to the table <relation>_damaged and returns their groups and '
  'faults; the rest stays readable. Reads everything; locks the relation against writers';
