-- Query tables: a table of real columns for each query, derived from a source. The triggers are in
-- src/patterns/query_table/, functions shared by patterns of two tables in derive.sql.

CREATE FUNCTION docpatterns.query_table_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_query_table_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.query_table_trigger() IS
  'trigger of the source of a query table; made by query_table_create';

CREATE FUNCTION docpatterns._query_table_verify(rel regclass, name text) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_query_table_verify' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._query_table_verify(regclass, text) IS
  'compiles a declaration: errors for what is wrong with its paths, expressions and types';

CREATE FUNCTION docpatterns._query_table_types(types bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_query_table_types' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._query_table_types(bson) IS
  'names of types, found by the search_path, written so that they mean the same everywhere; errors '
  '42704 and 22023';

CREATE FUNCTION docpatterns._query_table_path(rel regclass, name text, column_name text)
  RETURNS text
  AS 'MODULE_PATHNAME', 'dp_query_table_path' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._query_table_path(regclass, text, text) IS
  'path of the field that a column shows, NULL for an expression';

CREATE FUNCTION docpatterns._query_table_columns(rel regclass, name text) RETURNS text[]
  AS 'MODULE_PATHNAME', 'dp_query_table_columns' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._query_table_columns(regclass, text) IS
  'names that the columns of a query table have now: the fields, then the key of the source';

CREATE FUNCTION docpatterns._query_table_expected(rel regclass, name text, doc bson) RETURNS text[]
  AS 'MODULE_PATHNAME', 'dp_query_table_expected' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION docpatterns._query_table_expected(regclass, text, bson) IS
  'the row that a document leads to, as texts; NULL if it leads to none';

CREATE FUNCTION docpatterns._query_table_hash(rel regclass, name text, doc bson) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_query_table_hash' LANGUAGE C STABLE STRICT COST 100;
COMMENT ON FUNCTION docpatterns._query_table_hash(regclass, text, bson) IS
  'the order in which partitions are locked; NULL for a document that leads to no row';

CREATE FUNCTION docpatterns._query_table_sweep(rel regclass, name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_query_table_sweep' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._query_table_sweep(regclass, text) IS
  'takes rows out of a query table that do not follow from its source; returns how many; error '
  '42501 unless the caller owns the source';

CREATE FUNCTION query_table_read(rel regclass, VARIADIC "values" "any") RETURNS SETOF bson
  AS 'MODULE_PATHNAME', 'dp_query_table_read' LANGUAGE C STABLE COST 100 ROWS 100;
COMMENT ON FUNCTION query_table_read(regclass, "any") IS
  'The rows of a partition in clustering order, as documents; values of the first clustering '
  'columns may follow. One index scan, with the rights of the caller. Errors: 42809 not a query '
  'table, 22023 too few or too many values, 22004 NULLs';

CREATE FUNCTION query_table_purge(rel regclass, take bigint DEFAULT NULL) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_query_table_purge' LANGUAGE C VOLATILE COST 1000;
COMMENT ON FUNCTION query_table_purge(regclass, bigint) IS
  'Removes expired rows from a query table with ttl_field, at most take of them, the oldest first, '
  'and returns their number; skips locked ones. Errors: 22023 a negative take, 42809 not a query '
  'table, 42501 unless the caller owns it';

-- Declaring ---------------------------------------------------------------------------------------

-- The wrapper finds types by the caller's search_path; the work is done under a fixed one.
CREATE FUNCTION query_table_create(
  rel text, source regclass, partition text[], clustering bson DEFAULT '{}',
  fields bson DEFAULT '{}', types bson DEFAULT '{}',
  limit_per_partition int DEFAULT NULL, is_unique boolean DEFAULT false,
  ttl_field text DEFAULT NULL, name text DEFAULT NULL, doc_column text DEFAULT NULL)
  RETURNS regclass
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  RETURN docpatterns._query_table_create(rel, source, partition, clustering, fields,
      docpatterns._query_table_types(types), limit_per_partition, is_unique, ttl_field,
      name, doc_column);
END
$$;
COMMENT ON FUNCTION query_table_create(text, regclass, text[], bson, bson, bson, int, boolean, text,
  text, text) IS
  'Creates a table with a row for each document of source that has the fields of partition and '
  'clustering: these, the other fields (name -> 1 or an expression) and the source''s key as '
  'columns, of type bson_value or as types says. Every write to the source updates it. ttl_field: '
  'the date at which a row expires, or seconds since 1970. Returns the table. Locks the source '
  'against writers for a moment. Errors: 22023 or 22004 options that do not fit, 42P07 or 42710 a '
  'name is taken, 42501 unless the caller owns the source';

CREATE FUNCTION docpatterns._query_table_verify(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF @extschema@.bson_exists(options, 'limit_per_partition')
      AND @extschema@.bson_get_text(options, 'is_unique') = 'true' THEN
    RAISE EXCEPTION 'a query table with limit_per_partition cannot be unique'
      USING ERRCODE = 'invalid_parameter_value',
      DETAIL = 'It contains only the first rows of a partition.';
  ELSIF @extschema@.bson_exists(options, 'ttl_field')
      AND (@extschema@.bson_exists(options, 'limit_per_partition')
        OR @extschema@.bson_get_text(options, 'is_unique') = 'true') THEN
    RAISE EXCEPTION 'a query table with ttl_field cannot be unique or have limit_per_partition'
      USING ERRCODE = 'invalid_parameter_value',
      DETAIL = 'An expired row would take the place of another one until it is purged.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._query_table_verify(regclass, bson) IS
  'error 22023 for a unique query table with a limit, and for either with an expiry';

CREATE FUNCTION docpatterns._query_table_create(
  rel text, source regclass, partition text[], clustering bson, fields bson, types bson,
  limit_per_partition int, is_unique boolean, ttl_field text, name text, doc_column text)
  RETURNS regclass
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s record;
  link_id text := replace(gen_random_uuid()::text, '-', '');
  parts text[];
  schema_name text;
  made text;
  result regclass;
  options @extschema@.bson;
  columns text[];
  place text[];
  key_columns text[];
  directions text[];
BEGIN
  PERFORM docpatterns._pattern_require_owner(source);
  SELECT p.* INTO s FROM docpatterns._pattern_table(source,
      docpatterns._derive_source(source, source, doc_column)) p;
  IF EXISTS (SELECT FROM pg_class q WHERE q.oid = source AND q.relkind = 'f') THEN
    RAISE EXCEPTION '"%" is a relation of measurements',
        docpatterns._relname(source) USING ERRCODE = 'wrong_object_type',
      DETAIL = 'Its rows have no key.';
  END IF;

  parts := parse_ident(rel);
  IF cardinality(parts) > 2 THEN
    RAISE EXCEPTION 'invalid name of a table: "%"', rel USING ERRCODE = 'invalid_name';
  END IF;
  schema_name := CASE WHEN cardinality(parts) > 1 THEN parts[1] ELSE s.schema_name END;
  options := docpatterns._pattern_declare(source, 'query_table', @extschema@.bson_build(
    'name', coalesce(name, parts[cardinality(parts)]), 'partition', partition,
    'clustering', clustering, 'fields', fields, 'types', types, 'is_unique', is_unique,
    'doc_column', s.doc, 'link_id', link_id, 'limit_per_partition', limit_per_partition,
    'ttl_field', ttl_field));
  name := @extschema@.bson_get_text(options, 'name');

  -- names of columns
  IF EXISTS (SELECT FROM @extschema@.bson_each(clustering) e
        WHERE @extschema@.bson_typeof(e.value) <> 'int' OR e.value::int NOT IN (1, -1)) THEN
    RAISE EXCEPTION 'clustering must be a document like {"date": -1}'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  place := partition || ARRAY(SELECT k FROM @extschema@.bson_keys(clustering)
      WITH ORDINALITY AS u (k, n) ORDER BY n);
  IF (SELECT count(DISTINCT p) FROM unnest(place) p) <> cardinality(place) THEN
    RAISE EXCEPTION 'partition and clustering must be different fields'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  columns := place || ARRAY(SELECT k FROM @extschema@.bson_keys(fields) WITH ORDINALITY AS u (k, n)
      WHERE k <> ALL (place) ORDER BY n);
  IF (SELECT count(DISTINCT k) FROM unnest(columns) k) <> cardinality(columns) THEN
    RAISE EXCEPTION 'fields must be different' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF EXISTS (SELECT FROM unnest(columns) k WHERE k = '' OR octet_length(k) > 63) THEN
    RAISE EXCEPTION 'a field cannot be the name of a column'
      USING ERRCODE = 'invalid_parameter_value', DETAIL = 'Column names must have 1 to 63 bytes.',
      HINT = 'Give the field a name: {"short": "$a.long.path"}.';
  END IF;
  IF EXISTS (SELECT FROM @extschema@.bson_keys(types) k WHERE k <> ALL (columns)) THEN
    RAISE EXCEPTION 'types contains column "%", which the query table does not have',
      (SELECT k FROM @extschema@.bson_keys(types) k WHERE k <> ALL (columns) LIMIT 1)
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- the table: its primary key is where a row stands
  SELECT array_agg(CASE WHEN cardinality(s.keys) = 1 THEN 'source_key' ELSE 'source_key' || n END
      ORDER BY n) INTO key_columns FROM generate_subscripts(s.keys, 1) n;
  made := format('%I.%I', schema_name, parts[cardinality(parts)]);
  result := docpatterns._pattern_create_table(source, 'query_table', name, link_id, made,
    format('%s%s, %s, PRIMARY KEY (%s)',
    (SELECT string_agg(format('%I %s', k,
          coalesce(@extschema@.bson_get_text(types, format('"%s"', replace(k, '"', '""'))),
          '@extschema@.bson_value')), ', ' ORDER BY n) FROM unnest(columns)
      WITH ORDINALITY AS u (k, n)),
    CASE WHEN ttl_field IS NOT NULL THEN ', expires_at timestamptz' END,
    (SELECT string_agg(format('%I %s NOT NULL', key_columns[n], s.key_types[n]), ', ' ORDER BY n)
      FROM generate_subscripts(key_columns, 1) n),
    (SELECT string_agg(quote_ident(k), ', ' ORDER BY n)
      FROM unnest(place || CASE WHEN is_unique THEN '{}' ELSE key_columns END)
      WITH ORDINALITY AS u (k, n))), NULL,
    format('projection of %s; kept by the query table pattern "%s"', source, name));
  SELECT array_agg(format('%I%s', e.key, CASE WHEN e.value::int < 0 THEN ' DESC' ELSE '' END)
      ORDER BY e.n) INTO directions
    FROM (SELECT b.key, b.value, row_number() OVER () AS n FROM @extschema@.bson_each(clustering) b)
      e;
  IF (SELECT count(DISTINCT e.value::int) FROM @extschema@.bson_each(clustering) e) > 1 THEN
    -- the primary key, read forwards or backwards, has one direction only
    EXECUTE format('CREATE INDEX ON %s (%s, %s%s)', result,
        (SELECT string_agg(quote_ident(k), ', ' ORDER BY n) FROM unnest(partition)
          WITH ORDINALITY AS u (k, n)), array_to_string(directions, ', '),
      (SELECT string_agg(format(', %I%s', k, CASE
            WHEN directions[cardinality(directions)] LIKE '% DESC' THEN ' DESC' ELSE '' END), ''
          ORDER BY n) FROM unnest(key_columns) WITH ORDINALITY AS u (k, n)));
  END IF;
  IF ttl_field IS NOT NULL THEN
    EXECUTE format('CREATE INDEX ON %s (expires_at) WHERE expires_at IS NOT NULL', result);
  END IF;
  -- the main trigger carries the declaration
  EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION '
      'docpatterns.query_table_trigger(%L)',
                 docpatterns._pattern_trigger_name(source, 'zz_docpatterns_80_query_table', name,
                   NULL), source, options::text);
  PERFORM docpatterns._derive_main_triggers(source, 'query_table', name);
  PERFORM docpatterns._pattern_anchor(source, name);
  PERFORM docpatterns._query_table_verify(source, name);
  PERFORM docpatterns._query_table_create_index(source, name);
  IF docpatterns._pattern_nonempty(source) THEN
    RAISE NOTICE 'table "%" already has rows', docpatterns._relname(source)
      USING HINT = format('Run CALL pattern_build(%L, %L) to add them to the query table.',
          source::text, name);
  END IF;
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._query_table_create(text, regclass, text[], bson, bson, bson, int,
  boolean, text, text, text) IS
  'query_table_create with its types resolved';

-- With a limit, the first rows of a partition are found by an index on the source.
CREATE FUNCTION docpatterns._query_table_create_index(rel regclass, name text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._query_table_parts(rel, name) q;
  IF p.per_partition IS NOT NULL THEN
    PERFORM docpatterns._derive_create_index(rel, 'query_table', name,
      ARRAY(SELECT format('(%s)%s', x, d) FROM unnest(p.key_expressions, p.key_directions)
        WITH ORDINALITY AS u (x, d, n) ORDER BY n)
      || ARRAY(SELECT format('%I%s', k, CASE
            WHEN p.key_directions[cardinality(p.key_directions)] = ' DESC' THEN ' DESC' ELSE ''
            END) FROM unnest(p.keys) WITH ORDINALITY AS u (k, n) ORDER BY n));
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._query_table_create_index(regclass, text) IS
  'index on the source of a query table with a limit, unless there is one';

-- Verbs -------------------------------------------------------------------------------------------

-- Names and options of a declaration, and pieces of SQL: there "s" is a row of the source, "t" one
-- of the query table.
CREATE FUNCTION docpatterns._query_table_parts(rel regclass, name text,
                                   OUT base text, OUT options bson, OUT doc text, OUT keys text[],
                                   OUT key_row text, OUT result regclass, OUT result_keys text[],
                                   OUT result_fields text[],
                                   OUT key_match text, OUT per_partition int,
                                       OUT key_expressions text[],
                                   OUT key_directions text[], OUT partitions text,
                                   OUT clusterings text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
  t record;
  all_columns text[];
  npartition int;
BEGIN
  SELECT q.* INTO t FROM docpatterns._pattern_parts(rel, 'query_table', name) q;
  base := t.base; options := t.options; doc := t.doc_name; keys := t.keys; result := t.side;
  key_row := (SELECT format('ROW(%s)', string_agg(format('s.%I', k), ', ' ORDER BY n))
      FROM unnest(keys) WITH ORDINALITY AS u (k, n));
  per_partition := (options OPERATOR(@extschema@.->) 'limit_per_partition'::text)::int;
  IF result IS NULL THEN
    RETURN;
  END IF;
  all_columns := docpatterns._query_table_columns(rel, name);
  result_fields := all_columns[:cardinality(all_columns) - cardinality(keys)];
  result_keys := all_columns[cardinality(result_fields) + 1:];
  key_match := (SELECT string_agg(format('t.%I %s s.%I', result_keys[n], t.key_ops[n], keys[n]),
        ' AND ' ORDER BY n) FROM generate_subscripts(keys, 1) n);
  SELECT array_agg(CASE WHEN y.path IS NULL THEN NULL
                        ELSE format('(%I OPERATOR(@extschema@.->) %L::text)%s', doc, y.path,
                            CASE y.type WHEN 'pg_catalog.uuid' THEN '::text::uuid'
                              ELSE '::' || y.type END) END ORDER BY y.n),
         array_agg(CASE WHEN y.direction < 0 THEN ' DESC' ELSE '' END ORDER BY y.n)
    INTO key_expressions, key_directions
    FROM (SELECT x.c, x.direction, row_number() OVER () AS n,
        docpatterns._query_table_path(rel, name, x.c) AS path,
        @extschema@.bson_get_text(options OPERATOR(@extschema@.->) 'types'::text,
            format('"%s"', replace(x.c, '"', '""'))) AS type
          FROM (SELECT e::text AS c, 1 AS direction
              FROM @extschema@.bson_elements(options OPERATOR(@extschema@.->) 'partition'::text) e
                UNION ALL SELECT e.key, e.value::int
                      FROM @extschema@.bson_each((options OPERATOR(@extschema@.->)
                        'clustering'::text)::@extschema@.bson) e) x) y;
  npartition := @extschema@.bson_array_length(options OPERATOR(@extschema@.->) 'partition'::text);
  partitions := array_to_string(key_expressions[:npartition], ', ');
  clusterings := array_to_string(ARRAY(SELECT key_expressions[n] || key_directions[n]
        FROM generate_series(npartition + 1, cardinality(key_expressions)) n)
    || ARRAY(SELECT quote_ident(k) || key_directions[cardinality(key_directions)]
        FROM unnest(keys) k), ', ');
END
$$;
COMMENT ON FUNCTION docpatterns._query_table_parts(regclass, text) IS
  'names and options of a query table, and pieces of SQL text about it';

CREATE FUNCTION docpatterns._query_table_check(rel regclass, name text)
  RETURNS TABLE (key bson_value, what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._query_table_parts(rel, name) q;
  IF p.result IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'query table'::text, 'present'::text,
      'missing'::text;
    RETURN;
  END IF;
  RETURN QUERY EXECUTE format($q$
    SELECT coalesce(s."row key", t."row key"), 'row'::text,
      coalesce(left(s."row cells"::text, 100), 'absent'),
      coalesce(left(t."row cells"::text, 100), 'absent')
    FROM (SELECT %1$s AS "row key", %2$s, %3$s AS "row cells" FROM %7$s AS b
        CROSS JOIN LATERAL (SELECT docpatterns._query_table_expected(%4$L::regclass, %5$L,
            b.%6$I) AS "all cells" OFFSET 0) AS e) AS s
      FULL JOIN (SELECT %8$s AS "row key", %9$s, ARRAY[%10$s]::text[] AS "row cells"
          FROM %11$s) AS t ON %12$s
    WHERE s."row cells" IS DISTINCT FROM t."row cells"%13$s
    $q$,
    format(CASE WHEN cardinality(p.keys) = 1 THEN '@extschema@.to_bson(%s)'
      ELSE '@extschema@.bson_array(%s)' END, (SELECT string_agg(format('b.%I', k), ', ' ORDER BY n)
        FROM unnest(p.keys) WITH ORDINALITY AS u (k, n))),
    (SELECT string_agg(format('b.%I', k), ', ') FROM unnest(p.keys) k),
    CASE WHEN p.per_partition IS NULL THEN 'e."all cells"'
         ELSE format('CASE WHEN e."all cells" IS NOT NULL AND row_number() OVER (PARTITION BY '
             'e."all cells" IS NULL, %s ORDER BY %s) <= %s THEN e."all cells" END', p.partitions,
             p.clusterings, p.per_partition) END,
    rel::text, name, p.doc, p.base,
    format(CASE WHEN cardinality(p.keys) = 1 THEN '@extschema@.to_bson(%s)'
      ELSE '@extschema@.bson_array(%s)'
      END, (SELECT string_agg(quote_ident(k), ', ' ORDER BY n) FROM unnest(p.result_keys)
        WITH ORDINALITY AS u (k, n))),
    (SELECT string_agg(quote_ident(k), ', ') FROM unnest(p.result_keys) k),
    (SELECT string_agg(format('CASE WHEN %1$I IS NOT NULL THEN format(''%%s'', %1$I) END', k), ', '
        ORDER BY n) FROM unnest(p.result_fields) WITH ORDINALITY AS u (k, n)),
    p.result, p.key_match,
    -- expired rows may be purged
    CASE WHEN @extschema@.bson_exists(p.options, 'ttl_field') THEN format(
        ' AND (t."row cells" IS NULL AND s."row cells"[%s]::timestamptz <= clock_timestamp()) IS '
        'NOT TRUE',
        cardinality(p.result_fields)) END);
END
$$;
COMMENT ON FUNCTION docpatterns._query_table_check(regclass, text) IS
  'violated invariants of a query table: rows that are not what the source gives';

-- Rows of the source that the table does not show, each of them or, with a limit, one of each
-- partition.
CREATE FUNCTION docpatterns._query_table_pending(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._query_table_parts(rel, name) q;
  IF p.result IS NULL THEN
    RAISE EXCEPTION 'the query table "%" of table "%" is missing', name, docpatterns._relname(rel)
      USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  IF p.per_partition IS NOT NULL THEN
    -- in the order in which writers lock them
    RETURN format('SELECT q.key FROM (SELECT DISTINCT ON (%s) %s AS key, '
        'docpatterns._query_table_hash(%L::regclass, %L, s.%I) AS hash FROM %s AS s WHERE %s ORDER '
        'BY %1$s) AS q ORDER BY q.hash',
      p.partitions, p.key_row, rel::text, name, p.doc, p.base,
      (SELECT string_agg(x || ' IS NOT NULL', ' AND ') FROM unnest(p.key_expressions) x));
  END IF;
  RETURN format('SELECT %s AS key FROM %s AS s WHERE NOT EXISTS (SELECT 1 FROM %s AS t WHERE %s) '
      'ORDER BY %s', p.key_row, p.base, p.result, p.key_match,
    (SELECT string_agg(format('s.%I', k), ', ' ORDER BY n) FROM unnest(p.keys)
      WITH ORDINALITY AS u (k, n)));
END
$$;
COMMENT ON FUNCTION docpatterns._query_table_pending(regclass, text) IS
  'SQL text: keys of rows of the source that the table does not show';

CREATE FUNCTION docpatterns._query_table_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  done bigint;
BEGIN
  SELECT q.* INTO p FROM docpatterns._query_table_parts(rel, name) q;
  PERFORM docpatterns._query_table_create_index(rel, name);
  -- deletes rows that do not belong there first: they may conflict with new ones
  done := docpatterns._query_table_sweep(rel, name);
  RETURN done + docpatterns._pattern_repair_rows(rel, name, CASE
      WHEN p.per_partition IS NOT NULL THEN docpatterns._query_table_pending(rel, name)
      ELSE format('SELECT %s AS key FROM %s AS s', p.key_row, p.base) END);
END
$$;
COMMENT ON FUNCTION docpatterns._query_table_repair(regclass, text) IS
  'pattern_repair of a query table';

CREATE FUNCTION docpatterns._query_table_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE '
      'FUNCTION docpatterns.query_table_trigger(%L)',
                 (SELECT g.tgname FROM docpatterns._pattern_declarations(rel) d
                   JOIN pg_trigger g ON g.oid = d.trigger_oid WHERE d.pattern = 'query_table'
                   AND d.name = _query_table_alter.name),
                 rel, options::text);
  PERFORM docpatterns._query_table_verify(rel, name);
  PERFORM docpatterns._derive_drop_indexes(rel, 'query_table', name)
    WHERE NOT @extschema@.bson_exists(options, 'limit_per_partition');
  PERFORM docpatterns._query_table_repair(rel, name);
END
$$;
COMMENT ON FUNCTION docpatterns._query_table_alter(regclass, text, bson) IS
  'pattern_alter of a query table';

CREATE FUNCTION docpatterns._query_table_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  result regclass;
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  IF @extschema@.bson_get_text(how, 'keep_data') = 'true' THEN
    -- the rows stay behind in an ordinary table
    SELECT docpatterns._pattern_side(@extschema@.bson_get_text(d.options, 'link_id'),
        _query_table_disable.rel) INTO result
      FROM docpatterns._pattern_declarations(rel) d WHERE d.pattern = 'query_table'
        AND d.name = _query_table_disable.name;
    IF result IS NOT NULL THEN
      PERFORM docpatterns._pattern_release_table(result, rel);
    END IF;
  END IF;
  PERFORM docpatterns._derive_drop(rel, 'query_table', name);
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._query_table_disable(regclass, text, bson) IS
  'pattern_disable of a query table: drops the table, or leaves it as an ordinary one';

CREATE FUNCTION docpatterns._query_table_due(rel regclass, name text, OUT what text,
  OUT since timestamptz, OUT amount bigint) RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.result, q.options, q.result_fields[cardinality(q.result_fields)] AS expiry INTO p
    FROM docpatterns._query_table_parts(rel, name) q;
  IF p.result IS NOT NULL AND @extschema@.bson_exists(p.options, 'ttl_field') THEN
    RETURN QUERY SELECT * FROM docpatterns._pattern_expired(p.result, quote_ident(p.expiry),
      'expired rows');
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._query_table_due(regclass, text) IS
  'pattern_due of the query-table pattern';

CREATE FUNCTION docpatterns._query_table_maintain(rel regclass, name text, most int)
  RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT @extschema@.query_table_purge(p.result, $3)
    FROM docpatterns._query_table_parts($1, $2) p
$$;
COMMENT ON FUNCTION docpatterns._query_table_maintain(regclass, text, int) IS
  'pattern_maintain of the query-table pattern';
