-- The bucket pattern: relations of measurements that are kept in buckets. The access path is in
-- src/patterns/bucket/.

CREATE FUNCTION docpatterns.bucket_handler() RETURNS fdw_handler
  AS 'MODULE_PATHNAME', 'dp_bucket_handler' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.bucket_handler() IS
  'the access path of relations made by bucket_create';

CREATE FUNCTION docpatterns.bucket_validator(options text[], catalog oid) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_bucket_validator' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.bucket_validator(text[], oid) IS
  'refuses options of the wrapper, its server and its tables (HV00D): bucket_create takes them all';

CREATE FOREIGN DATA WRAPPER docpatterns_bucket HANDLER docpatterns.bucket_handler VALIDATOR
  docpatterns.bucket_validator;
COMMENT ON FOREIGN DATA WRAPPER docpatterns_bucket IS
  'relations of measurements that are kept in buckets; made by bucket_create';
CREATE SERVER docpatterns_bucket FOREIGN DATA WRAPPER docpatterns_bucket;
COMMENT ON SERVER docpatterns_bucket IS
  'relations of measurements that are kept in buckets; made by bucket_create';
GRANT USAGE ON FOREIGN SERVER docpatterns_bucket TO PUBLIC;

CREATE FUNCTION docpatterns.bucket_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_bucket_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.bucket_trigger() IS
  'carries the declaration of a bucket pattern and does nothing; made by bucket_create';

CREATE FUNCTION docpatterns._bucket_columns(columns text, OUT name text, OUT type text,
  OUT not_null boolean) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bucket_columns' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._bucket_columns(text) IS
  'column definitions, read as CREATE TABLE reads them; errors 42601, 42704, 0A000 for constraints '
  'other than NOT NULL';

CREATE FUNCTION docpatterns._bucket_alter(rel regclass, command text) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_bucket_alter' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._bucket_alter(regclass, text) IS
  'runs a command that alters the columns of a bucket relation, as the current user; error 42501 '
  'unless the user owns the relation';

-- Declaring ---------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._bucket_granularity_fits(granularity interval, span interval)
  RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN m.fine > 0 THEN m.coarse > 0 AND m.coarse % m.fine = 0
              WHEN m.coarse > 0 THEN 86400 % extract(epoch FROM granularity) = 0
              ELSE extract(epoch FROM span) % extract(epoch FROM granularity) = 0 END
  FROM (SELECT extract(year FROM granularity) * 12 + extract(month FROM granularity) AS fine,
      extract(year FROM span) * 12 + extract(month FROM span) AS coarse) m
$$;
COMMENT ON FUNCTION docpatterns._bucket_granularity_fits(interval, interval) IS
  'whether a span consists of whole slots; slots in spans of months have to divide a day';

CREATE FUNCTION docpatterns._bucket_verify(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  span interval := @extschema@.bson_get_text(options, 'span')::interval;
  granularity interval := @extschema@.bson_get_text(options, 'granularity')::interval;
  origin timestamptz := @extschema@.bson_get_text(options, 'origin')::timestamptz;
  time_zone text := @extschema@.bson_get_text(options, 'time_zone');
BEGIN
  IF (span IS NULL) = @extschema@.bson_exists(options, 'time_field') THEN
    RAISE EXCEPTION 'span and time_field must be specified together'
      USING ERRCODE = 'invalid_parameter_value',
      HINT = 'For measurements without time, specify span => NULL and no time_field.';
  END IF;
  IF span IS NULL AND (granularity IS NOT NULL OR origin IS NOT NULL) THEN
    RAISE EXCEPTION 'pages cannot have a granularity or an origin'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF span IS NULL AND @extschema@.bson_exists_any(options, '{pack_after,retain}') THEN
    RAISE EXCEPTION 'pages cannot have "pack_after" or "retain"'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF @extschema@.bson_exists(options, 'doc_at')
      AND @extschema@.bson_get_text(options, 'same_slot') = 'add' THEN
    RAISE EXCEPTION 'documents cannot be added' USING ERRCODE = 'invalid_parameter_value',
      HINT = 'same_slot of a time series is refuse, replace or keep.';
  END IF;
  -- raises errors in the span, the origin and the time zone
  PERFORM @extschema@.bucket_start(s, timestamptz '2000-01-01 00:00:00+00', origin, time_zone)
    FROM unnest(ARRAY[span, granularity]) s WHERE s IS NOT NULL;
  IF granularity > span THEN
    RAISE EXCEPTION 'granularity must not be greater than the span'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF NOT docpatterns._bucket_granularity_fits(granularity, span) THEN
    RAISE EXCEPTION 'span % must be a multiple of granularity %', span, granularity
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._bucket_verify(regclass, bson) IS
  'error 22023 for a span, a granularity, an origin and same_slot that do not fit each other';

-- Types and names are resolved by the caller's search_path; the work is done under a fixed one.
CREATE FUNCTION bucket_create(
  rel text, columns text DEFAULT NULL, group_by text[] DEFAULT '{}', time_field text DEFAULT NULL,
  span interval DEFAULT '1 hour',
  origin timestamptz DEFAULT NULL, time_zone text DEFAULT 'UTC', max_count int DEFAULT 1000,
  max_bytes int DEFAULT 125000,
  granularity interval DEFAULT NULL, same_slot text DEFAULT NULL, document bson DEFAULT NULL,
  end_date text DEFAULT 'inclusive',
  columns_of text DEFAULT NULL, name text DEFAULT NULL, pack_after interval DEFAULT NULL,
  retain interval DEFAULT NULL, timeseries bson DEFAULT NULL) RETURNS regclass
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  RETURN docpatterns._bucket_create(
    pg_catalog.parse_ident(rel), pg_catalog.current_schema(),
    (SELECT pg_catalog.array_agg(c.name) FROM docpatterns._bucket_columns(columns) c),
    (SELECT pg_catalog.array_agg(c.type) FROM docpatterns._bucket_columns(columns) c),
    (SELECT pg_catalog.array_agg(c.not_null) FROM docpatterns._bucket_columns(columns) c),
    columns_of::pg_catalog.regclass, group_by, time_field, span, origin, time_zone, max_count,
    max_bytes, granularity, same_slot,
    document, end_date, name, pack_after, retain, timeseries);
END
$$;
COMMENT ON FUNCTION bucket_create(text, text, text[], text, interval, timestamptz, text, int, int,
  interval, text, bson, text, text, text, interval, interval, bson) IS
  'Creates a relation of measurements stored in buckets: one for each group and span, of at most '
  'max_count measurements and max_bytes; span NULL makes pages without time. columns as in CREATE '
  'TABLE, or those of a table (columns_of), or documents (timeseries: the options of a time series '
  'collection of MongoDB). pattern_maintain() packs a span pack_after its end (default: at once) '
  'and deletes it retain after its end (default: never). Returns the relation. Needs CREATE on the '
  'schema. The errors are listed below';

CREATE FUNCTION docpatterns._bucket_timeseries(timeseries bson, INOUT group_by text[],
  INOUT time_field text, INOUT span interval)
LANGUAGE docpatterns IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  field text;
  kind text;
BEGIN
  FOR field IN SELECT k FROM @extschema@.bson_keys(timeseries) k LOOP
    kind := CASE WHEN field IN ('timeField', 'metaField', 'granularity') THEN 'string'
      WHEN field IN ('bucketMaxSpanSeconds', 'bucketRoundingSeconds') THEN 'number' END;
    IF kind IS NULL THEN
      RAISE EXCEPTION 'time series have no option "%"', field
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Use timeField, metaField, granularity, '
          'bucketMaxSpanSeconds and bucketRoundingSeconds.';
    END IF;
    IF NOT timeseries OPERATOR(@extschema@.@@) @extschema@.bson_build(field,
        @extschema@.bson_build('$type', kind)) THEN
      RAISE EXCEPTION 'option "%" of a time series must be a %', field, kind
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
  END LOOP;
  IF time_field IS NOT NULL THEN
    RAISE EXCEPTION 'time_field and timeseries cannot be combined'
      USING ERRCODE = 'invalid_parameter_value', HINT = 'The time is the field timeField.';
  END IF;
  time_field := @extschema@.bson_get_text(timeseries, 'timeField');
  IF time_field IS NULL THEN
    RAISE EXCEPTION 'a time series requires a timeField'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF group_by = '{}' THEN
    group_by := array_remove(ARRAY[@extschema@.bson_get_text(timeseries, 'metaField')], NULL);
  END IF;
  field := @extschema@.bson_get_text(timeseries, 'granularity');
  IF field NOT IN ('seconds', 'minutes', 'hours') THEN
    RAISE EXCEPTION 'granularity of a time series must be seconds, minutes or hours, not "%"', field
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  span := coalesce(
    @extschema@.bson_get_text(timeseries, 'bucketMaxSpanSeconds')::float8 * interval '1 second',
    CASE field WHEN 'seconds' THEN interval '1 hour' WHEN 'minutes' THEN '1 day'
      WHEN 'hours' THEN '30 days' END, span);
END
$$;
COMMENT ON FUNCTION docpatterns._bucket_timeseries(bson, text[], text, interval) IS
  'the options of a time series collection of MongoDB as those of bucket_create; error 22023';

CREATE FUNCTION docpatterns._bucket_create(
  ident text[], schema_name text, names text[], types text[], not_nulls boolean[],
  columns_of regclass, group_by text[], time_field text,
  span interval, origin timestamptz, time_zone text, max_count int, max_bytes int,
  granularity interval, same_slot text,
  document bson, end_date text, name text, pack_after interval, retain interval, timeseries bson)
  RETURNS regclass
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp SET intervalstyle = postgres
  SET datestyle = 'ISO' SET timezone = 'UTC' AS $$
DECLARE
  table_name text := ident[cardinality(ident)];
  base text;
  time_type text;
  options @extschema@.bson;
  link_id text := replace(gen_random_uuid()::text, '-', '');
  rel regclass;
  missing text;
BEGIN
  IF ident IS NULL THEN
    RAISE EXCEPTION 'the name of the relation must not be null'
      USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF cardinality(ident) > 2 THEN
    RAISE EXCEPTION 'improper relation name (too many dotted names)' USING ERRCODE = 'syntax_error';
  END IF;
  IF cardinality(ident) = 2 THEN
    schema_name := ident[1];
  END IF;
  IF schema_name IS NULL THEN
    RAISE EXCEPTION 'no schema has been selected to create in'
      USING ERRCODE = 'invalid_schema_name';
  END IF;
  IF starts_with(schema_name, 'pg_temp') THEN
    RAISE EXCEPTION 'a relation of buckets cannot be temporary'
      USING ERRCODE = 'feature_not_supported';
  END IF;
  PERFORM docpatterns._tenant_refuse(schema_name, 'a relation of buckets');
  base := format('%I.%I', schema_name, table_name);
  group_by := coalesce(group_by, '{}');

  -- columns
  IF num_nonnulls(names, columns_of, timeseries) <> 1 THEN
    RAISE EXCEPTION 'exactly one of columns, columns_of and timeseries must be specified'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF timeseries IS NOT NULL THEN
    SELECT t.* INTO group_by, time_field, span
      FROM docpatterns._bucket_timeseries(timeseries, group_by, time_field, span) t;
    names := group_by || ARRAY[time_field, 'doc'];
    types := array_fill('@extschema@.bson_value'::text, ARRAY[cardinality(group_by)])
      || ARRAY['timestamp with time zone', '@extschema@.bson'];
    not_nulls := array_fill(false, ARRAY[cardinality(group_by)]) || ARRAY[true, true];
  END IF;
  name := coalesce(name, time_field, 'page');
  IF columns_of IS NOT NULL THEN
    SELECT array_agg(a.attname::text ORDER BY a.attnum), array_agg(a.attnotnull ORDER BY a.attnum),
           array_agg(format_type(a.atttypid, a.atttypmod) ||
             CASE WHEN a.attcollation <> 0 AND a.attcollation <> t.typcollation THEN
               ' COLLATE ' || a.attcollation::regcollation ELSE '' END ORDER BY a.attnum)
      INTO names, not_nulls, types
      FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
      WHERE a.attrelid = columns_of AND a.attnum > 0 AND NOT a.attisdropped;
    IF names IS NULL THEN
      RAISE EXCEPTION 'table "%" has no columns', docpatterns._relname(columns_of)
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
  END IF;
  SELECT u.c INTO missing FROM unnest(group_by || time_field) AS u (c) WHERE u.c IS NOT NULL
    AND u.c <> ALL (names) LIMIT 1;
  IF missing IS NOT NULL THEN
    RAISE EXCEPTION 'column "%" does not exist', missing USING ERRCODE = 'undefined_column',
      HINT = format('The columns are %s.', array_to_string(names, ', '));
  END IF;
  IF time_field = ANY (group_by)
      OR (SELECT count(*) <> count(DISTINCT u.c) FROM unnest(group_by) AS u (c)) THEN
    RAISE EXCEPTION 'group_by and time_field must name different columns'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF group_by && ARRAY['start', 'seq', 'data'] THEN
    RAISE EXCEPTION 'columns of the group cannot be named start, seq or data'
      USING ERRCODE = 'invalid_parameter_value',
      DETAIL = 'The table of buckets has columns of these names.';
  END IF;
  IF cardinality(group_by) > 30 THEN
    RAISE EXCEPTION 'a group cannot have more than 30 columns'
      USING ERRCODE = 'program_limit_exceeded';
  END IF;

  IF time_field IS NULL THEN
    IF 'arrived' = ANY (names) THEN
      RAISE EXCEPTION 'a column of pages cannot be named arrived'
        USING ERRCODE = 'invalid_parameter_value',
        DETAIL = 'The table of waiting measurements has a column of that name.';
    END IF;
  ELSE
    time_type := types[array_position(names, time_field)];
    IF time_type !~ '^timestamp([(][0-9][)])? with(out)? time zone$' THEN
      RAISE EXCEPTION 'time column "%" has type %', time_field, time_type
        USING ERRCODE = 'datatype_mismatch', DETAIL = 'It must be timestamptz or timestamp.';
    END IF;
    not_nulls[array_position(names, time_field)] := true;
  END IF;
  IF granularity IS NULL AND same_slot IS NOT NULL THEN
    RAISE EXCEPTION 'same_slot requires a granularity' USING ERRCODE = 'invalid_parameter_value';
  END IF;

  -- The declaration. Columns are found by position (group_at, time_at), because they may be
  -- renamed.
  options := docpatterns._pattern_options('bucket', @extschema@.bson_build(
    'name', name, 'group_by', group_by, 'time_field', time_field, 'span', span::text,
    'time_zone', time_zone, 'origin', origin::text, 'granularity', granularity::text,
    'same_slot', same_slot, 'max_count', max_count, 'max_bytes', max_bytes, 'document', document,
    'pack_after', pack_after::text, 'retain', retain::text, 'end_date', end_date,
    'group_at', (SELECT coalesce(array_agg(array_position(names, u.c) ORDER BY u.n), '{}')
      FROM unnest(group_by) WITH ORDINALITY AS u (c, n)),
    'time_at', array_position(names, time_field),
    'doc_at', CASE WHEN timeseries IS NOT NULL THEN cardinality(names) END,
    'link_id', link_id, 'second_link_id', link_id || '.recent'));
  PERFORM docpatterns._bucket_verify(NULL, options);

  EXECUTE format('CREATE FOREIGN TABLE %s (%s) SERVER docpatterns_bucket', base,
                 (SELECT string_agg(format('%I %s%s', u.name, u.type, CASE
                       WHEN u.not_null THEN ' NOT NULL' ELSE '' END), ', ' ORDER BY u.n)
                  FROM unnest(names, types, not_nulls)
                    WITH ORDINALITY AS u (name, type, not_null, n)));
  rel := base::regclass;
  PERFORM docpatterns._bucket_create_tables(rel, names, types, not_nulls, group_by, time_field,
      name, link_id);
  EXECUTE format('CREATE TRIGGER %I BEFORE UPDATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION '
      'docpatterns.bucket_trigger(%L)',
                 docpatterns._pattern_trigger_name(rel, 'zz_docpatterns_50_bucket', name, NULL),
                 base, options::text);
  PERFORM docpatterns._bucket_check_document(rel);
  PERFORM docpatterns._bucket_index_starts(rel);
  RETURN rel;
END
$$;
COMMENT ON FUNCTION docpatterns._bucket_create(text[], text, text[], text[], boolean[], regclass,
  text[], text, interval, timestamptz, text, int, int, interval, text, bson, text, text, interval,
  interval, bson) IS
  'bucket_create with names resolved';

-- The documents: one for each bucket, waiting measurements included.
CREATE FUNCTION docpatterns._bucket_documents(rel regclass, VARIADIC keys "any", OUT page int,
  OUT doc bson) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bucket_documents' LANGUAGE C STABLE COST 1000 ROWS 1;
COMMENT ON FUNCTION docpatterns._bucket_documents(regclass, "any") IS
  'documents of the buckets of a group and span (keys: the group columns, then the beginning of '
  'the span unless the relation has pages); error 42501 without the SELECT privilege';
CREATE FUNCTION docpatterns._bucket_documents(rel regclass, OUT page int, OUT doc bson)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bucket_documents' LANGUAGE C STABLE COST 1000 ROWS 1;
COMMENT ON FUNCTION docpatterns._bucket_documents(regclass) IS 'the same for pages of one group';

CREATE FUNCTION docpatterns._bucket_span_start(rel regclass, ts timestamptz) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'dp_bucket_span_start' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._bucket_span_start(regclass, timestamptz) IS
  'the beginning of the span of the relation that the time lies in';
CREATE FUNCTION docpatterns._bucket_span_start(rel regclass, ts timestamp) RETURNS timestamp
  AS 'MODULE_PATHNAME', 'dp_bucket_span_start' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._bucket_span_start(regclass, timestamp) IS
  'the same for times that know no zone';

CREATE FUNCTION docpatterns._bucket_check_document(rel regclass) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_bucket_check_document' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._bucket_check_document(regclass) IS
  'raises what is wrong with the template of a bucket relation''s documents';

CREATE FUNCTION docpatterns._bucket_create_view(rel regclass, packed text, recent text,
  group_by text[], time_field text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  base text;
  view_name text;
  owner oid;
  group_list text;
  output_list text;
BEGIN
  SELECT format('%I.%I', n.nspname, c.relname),
    format('%I.%I', n.nspname, docpatterns._pattern_relation_name(n.nspname, c.relname, NULL,
        'buckets')), c.relowner
    INTO base, view_name, owner
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = rel;
  SELECT coalesce(string_agg(format('%I, ', u.c), '' ORDER BY u.n), ''),
    coalesce(string_agg(format('s.%I, ', u.c), '' ORDER BY u.n), '')
    INTO group_list, output_list FROM unnest(group_by) WITH ORDINALITY AS u (c, n);
  IF time_field IS NOT NULL THEN
    EXECUTE format('CREATE VIEW %s AS SELECT %s s.start, d.doc FROM (SELECT %s start FROM %s UNION '
        'SELECT %s docpatterns._bucket_span_start(%L::regclass, %I) FROM %s) AS s '
                   'CROSS JOIN LATERAL docpatterns._bucket_documents(%L::regclass, %s s.start) AS '
                     'd (page, doc)',
                   view_name, output_list, group_list, packed, group_list, base, time_field, recent,
                   base, output_list);
  ELSIF group_by = '{}' THEN
    EXECUTE format('CREATE VIEW %s AS SELECT d.page, d.doc FROM '
        'docpatterns._bucket_documents(%L::regclass) AS d (page, doc)', view_name, base);
  ELSE
    EXECUTE format('CREATE VIEW %s AS SELECT %s d.page, d.doc FROM (SELECT %s FROM %s UNION SELECT '
        '%s FROM %s) AS s '
                   'CROSS JOIN LATERAL docpatterns._bucket_documents(%L::regclass, %s) AS d (page, '
                     'doc)',
                   view_name, output_list, rtrim(group_list, ', '), packed, rtrim(group_list, ', '),
                   recent, base, rtrim(output_list, ', '));
  END IF;
  EXECUTE format('COMMENT ON VIEW %s IS %L', view_name, 'the buckets of ' || base
      || ' as documents, waiting measurements included');
  EXECUTE format('ALTER VIEW %s OWNER TO %s', view_name, owner::regrole);
END
$$;
COMMENT ON FUNCTION docpatterns._bucket_create_view(regclass, text, text, text[], text) IS
  'makes the view <relation>_buckets';

CREATE FUNCTION docpatterns._bucket_view(rel regclass, name text DEFAULT NULL,
  label text DEFAULT NULL, owner oid DEFAULT NULL) RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.ev_class::regclass
  FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class v ON v.oid = r.ev_class
    AND v.relkind = 'v'
  WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
    AND d.refobjid = $1
    AND EXISTS (SELECT FROM pg_depend f WHERE f.classid = 'pg_rewrite'::regclass AND f.objid = r.oid
        AND f.refclassid = 'pg_proc'::regclass
                  AND f.refobjid IN ('docpatterns._bucket_documents(regclass)'::regprocedure,
                      'docpatterns._bucket_documents(regclass, "any")'::regprocedure))
    AND v.relowner = coalesce($4, (SELECT c.relowner FROM pg_class c WHERE c.oid = $1))
  ORDER BY v.oid LIMIT 1
$$;
COMMENT ON FUNCTION docpatterns._bucket_view(regclass, text, text, oid) IS
  'the view of a bucket relation''s documents, whatever it is called now; of the same owner, or of '
  'the one given';

-- The table of buckets and that of waiting measurements, their indexes and their guards.
CREATE FUNCTION docpatterns._bucket_create_tables(rel regclass, names text[], types text[],
  not_nulls boolean[], group_by text[], time_field text, name text, link_id text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  base text;
  schema_name text;
  table_name text;
  packed text;
  recent text;
  group_list text;
BEGIN
  SELECT format('%I.%I', n.nspname, c.relname), n.nspname, c.relname
    INTO base, schema_name, table_name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = rel;
  packed := format('%I.%I', schema_name, docpatterns._pattern_relation_name(schema_name, table_name,
        NULL, 'packed'));
  recent := format('%I.%I', schema_name, docpatterns._pattern_relation_name(schema_name, table_name,
        NULL, 'recent'));
  SELECT string_agg(format('%I, ', u.c), '' ORDER BY u.n) INTO group_list FROM unnest(group_by)
    WITH ORDINALITY AS u (c, n);
  group_list := coalesce(group_list, '');

  PERFORM docpatterns._pattern_create_table(rel, 'bucket', name, link_id, packed,
    format('%sseq int NOT NULL, %sdata @extschema@.bucket NOT NULL',
      (SELECT string_agg(format('%I %s%s, ', u.c, types[array_position(names, u.c)], CASE
            WHEN not_nulls[array_position(names, u.c)] THEN ' NOT NULL' ELSE '' END), ''
          ORDER BY u.n) FROM unnest(group_by) WITH ORDINALITY AS u (c, n)),
      CASE WHEN time_field IS NULL THEN '' ELSE
        format('start %s NOT NULL, ', types[array_position(names, time_field)]) END), NULL,
    'buckets of ' || base);
  EXECUTE format('CREATE INDEX ON %s (%s)', packed, group_list || CASE
      WHEN time_field IS NULL THEN 'seq' ELSE 'start' END);

  -- with a tenth of each page left free, readers do not prune a page for each of its rows that was
  -- packed
  PERFORM docpatterns._pattern_create_table(rel, 'bucket', name, link_id || '.recent', recent,
    concat((SELECT string_agg(format('%I %s%s', u.name, u.type, CASE WHEN u.not_null THEN
          ' NOT NULL' ELSE '' END), ', ' ORDER BY u.n)
        FROM unnest(names, types, not_nulls) WITH ORDINALITY AS u (name, type, not_null, n)),
      CASE WHEN time_field IS NULL THEN ', arrived bigint GENERATED BY DEFAULT AS IDENTITY' END),
    'WITH (fillfactor = 90)', 'measurements of ' || base || ' that wait to be packed');
  EXECUTE format('CREATE INDEX ON %s (%s)', recent,
      group_list || coalesce(quote_ident(time_field), 'arrived'));
  PERFORM docpatterns._bucket_create_view(rel, packed, recent, group_by, time_field);
END
$$;
COMMENT ON FUNCTION docpatterns._bucket_create_tables(regclass, text[], text[], boolean[], text[],
  text, text, text) IS
  'the tables beneath a bucket relation';
