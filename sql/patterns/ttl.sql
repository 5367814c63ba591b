-- The TTL pattern: documents expire some time after a date that they hold. They are invisible in
-- the view <table>_current from then on; pattern_maintain() deletes them.

CREATE FUNCTION docpatterns.ttl_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_ttl_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.ttl_trigger() IS
  'trigger that carries the declaration of expiring documents; made by ttl_enable';

CREATE FUNCTION docpatterns._ttl_date(value bson_value) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'dp_ttl_date' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._ttl_date(bson_value) IS
  'a date, or the earliest date in an array; NULL for other values; never changes: indexes are '
  'made of it';

CREATE FUNCTION docpatterns._ttl_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_ttl_support' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._ttl_support(internal) IS 'planner support of _ttl_current()';

CREATE FUNCTION docpatterns._ttl_current(doc bson, field text, cutoff timestamptz) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_ttl_current' LANGUAGE C IMMUTABLE PARALLEL SAFE
  SUPPORT docpatterns._ttl_support;
COMMENT ON FUNCTION docpatterns._ttl_current(bson, text, timestamptz) IS
  'whether a document has not expired: it has no date in the field at the cutoff or before';

CREATE FUNCTION ttl_enable(rel regclass, field text, after interval DEFAULT '0',
  name text DEFAULT NULL, doc_column text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp
  SET intervalstyle = postgres AS $$
DECLARE
  t record;
  options @extschema@.bson;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  PERFORM docpatterns._pattern_refuse_partition(rel);
  options := docpatterns._pattern_declare(rel, 'ttl', @extschema@.bson_build(
    'name', coalesce(name, field), 'field', field, 'after', after::text, 'doc_column', t.doc));
  PERFORM docpatterns._ttl_create_triggers(rel, options);
  PERFORM docpatterns._ttl_create_index(rel, options);
  PERFORM docpatterns._ttl_create_view(rel, options);
  RETURN @extschema@.bson_get_text(options, 'name');
END
$$;
COMMENT ON FUNCTION ttl_enable(regclass, text, interval, text, text) IS
  'Declares that documents expire: after says how long after the date in field, or the earliest '
  'date if it holds an array; documents without one stay. The view <table>_current leaves expired '
  'documents out at once, pattern_maintain() deletes them. Returns the name of the declaration '
  '(default: field). Locks the table against writers and builds an index. Errors: 22004, 22023 '
  'options that do not fit, 42710 the name exists, 42501 unless the caller owns the table';

CREATE FUNCTION docpatterns._ttl_create_triggers(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name text := @extschema@.bson_get_text(options, 'name');
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE TRUNCATE ON %s FOR EACH STATEMENT EXECUTE '
      'FUNCTION docpatterns.ttl_trigger(%L)',
      docpatterns._pattern_own_trigger(rel, 95, 'ttl', name, NULL, 34), rel, options::text);
  PERFORM docpatterns._pattern_anchor(rel, name);
END
$$;
COMMENT ON FUNCTION docpatterns._ttl_create_triggers(regclass, bson) IS
  'the trigger that carries a declaration of expiring documents';

-- In SQL text about a table, "t" is a row of it.
CREATE FUNCTION docpatterns._ttl_parts(rel regclass, options bson, OUT base text,
  OUT schema_name text, OUT table_name text, OUT keys text[], OUT key_ops text[], OUT date text,
  OUT after interval, OUT current text, OUT expired text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  SELECT q.* INTO t FROM docpatterns._pattern_table(rel, docpatterns._pattern_doc_column(rel,
        @extschema@.bson_get_text(options, 'doc_column'))) q;
  base := t.base; schema_name := t.schema_name; table_name := t.table_name;
  keys := t.keys; key_ops := t.key_ops;
  after := @extschema@.bson_get_text(options, 'after')::interval;
  date := format('docpatterns._ttl_date(t.%I OPERATOR(@extschema@.->) %L::text)', t.doc,
      @extschema@.bson_get_text(options, 'field'));
  current := format('docpatterns._ttl_current(t.%I, %L, docpatterns._pattern_cutoff(%L))', t.doc,
      @extschema@.bson_get_text(options, 'field'), after);
  expired := format('%s OPERATOR(pg_catalog.<=) docpatterns._pattern_cutoff(%L)', date, after);
END
$$;
COMMENT ON FUNCTION docpatterns._ttl_parts(regclass, bson) IS
  'names and options of a declaration of expiring documents, and pieces of SQL text about it';

CREATE FUNCTION docpatterns._ttl_options(rel regclass, name text) RETURNS bson
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT d.options FROM docpatterns._pattern_declarations($1) d
  WHERE d.pattern = 'ttl' AND d.name = $2
$$;
COMMENT ON FUNCTION docpatterns._ttl_options(regclass, text) IS
  'the options of a declaration of expiring documents';

CREATE FUNCTION docpatterns._ttl_create_index(rel regclass, options bson) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._derive_create_index($1, 'ttl', @extschema@.bson_get_text($2, 'name'),
    ARRAY[replace(p.date, '(t.', '(')])
  FROM docpatterns._ttl_parts($1, $2) p
$$;
COMMENT ON FUNCTION docpatterns._ttl_create_index(regclass, bson) IS
  'the index by which expired documents are found';

-- Creates the view, or writes a new time into the one that there is.
CREATE FUNCTION docpatterns._ttl_create_view(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  declared text := @extschema@.bson_get_text(options, 'name');
  made regclass := docpatterns._pattern_made_view(rel, 'ttl', declared);
  view text := made::text;
BEGIN
  SELECT q.* INTO p FROM docpatterns._ttl_parts(rel, options) q;
  IF made IS NULL THEN
    -- a second declaration has a view of its own
    view := format('%I.%I', p.schema_name, docpatterns._pattern_relation_name(p.schema_name,
        p.table_name, CASE WHEN EXISTS (SELECT FROM docpatterns._pattern_declarations(rel) d
          WHERE d.pattern = 'ttl' AND d.name <> declared) THEN declared END,
        'current'));
  END IF;
  -- columns keep the names that they have in the view
  EXECUTE format('CREATE OR REPLACE VIEW %s WITH (security_invoker = true) AS SELECT %s FROM %s AS '
      't WHERE %s AND %s', view,
      (SELECT string_agg(format('t.%I AS %I', a.attname, coalesce(v.attname, a.attname)), ', '
          ORDER BY a.n)
        FROM (SELECT q.attname, row_number() OVER (ORDER BY q.attnum) AS n FROM pg_attribute q
            WHERE q.attrelid = rel AND q.attnum > 0 AND NOT q.attisdropped) a
          LEFT JOIN pg_attribute v ON v.attrelid = made AND v.attnum = a.n),
      p.base, p.current, docpatterns._pattern_mark('ttl', declared));
  IF made IS NULL THEN
    EXECUTE format('COMMENT ON VIEW %s IS %L', view, 'documents of ' || p.base
      || ' that have not expired');
    PERFORM docpatterns._pattern_copy_grants(rel, view::regclass);
    EXECUTE format('ALTER VIEW %s OWNER TO %s', view, (SELECT c.relowner::regrole FROM pg_class c
        WHERE c.oid = rel));
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._ttl_create_view(regclass, bson) IS
  'the view of documents that have not expired';

-- Verbs -------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._ttl_check(rel regclass, name text)
  RETURNS TABLE (key bson_value, what text, expected text, found text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT NULL::@extschema@.bson_value, 'index on the date', 'present', 'missing'
    WHERE NOT EXISTS (SELECT FROM pg_index i JOIN pg_depend d
        ON d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
          AND d.refobjid = 'docpatterns._ttl_date'::regproc
      WHERE i.indrelid = $1 AND i.indisvalid
        AND position(quote_literal(@extschema@.bson_get_text(docpatterns._ttl_options($1, $2),
          'field')) IN pg_get_indexdef(i.indexrelid, 1, true)) > 0)
  UNION ALL
  SELECT NULL, 'view', 'present', 'missing'
    WHERE docpatterns._pattern_made_view($1, 'ttl', $2) IS NULL
$$;
COMMENT ON FUNCTION docpatterns._ttl_check(regclass, text) IS
  'pattern_check of expiring documents';

CREATE FUNCTION docpatterns._ttl_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o @extschema@.bson := docpatterns._ttl_options(rel, name);
BEGIN
  PERFORM docpatterns._ttl_create_index(rel, o);
  PERFORM docpatterns._ttl_create_view(rel, o);
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._ttl_repair(regclass, text) IS
  'pattern_repair of expiring documents: makes the index and the view if they are missing';

CREATE FUNCTION docpatterns._ttl_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp
  SET intervalstyle = postgres AS $$
BEGIN
  options := @extschema@.bson_set(options, 'after',
      (@extschema@.bson_get_text(options, 'after')::interval)::text);
  PERFORM docpatterns._ttl_create_triggers(rel, options);
  PERFORM docpatterns._ttl_create_view(rel, options);
END
$$;
COMMENT ON FUNCTION docpatterns._ttl_alter(regclass, text, bson) IS
  'pattern_alter of expiring documents';

CREATE FUNCTION docpatterns._ttl_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  view regclass := docpatterns._pattern_made_view(rel, 'ttl', name);
BEGIN
  IF view IS NOT NULL THEN
    EXECUTE format('DROP VIEW %s', view);
  END IF;
  PERFORM docpatterns._derive_drop_indexes(rel, 'ttl', name);
  PERFORM docpatterns._pattern_drop_triggers(rel, 'ttl', name);
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._ttl_disable(regclass, text, bson) IS
  'pattern_disable of expiring documents: expired ones stay';

CREATE FUNCTION docpatterns._ttl_follow_owner(rel regclass, former oid) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._pattern_renew_view($1, docpatterns._pattern_made_view($1, 'ttl', d.name,
        owner => $2), format('SELECT docpatterns._ttl_create_view(%L, %L)', $1, d.options::text),
      format('SELECT docpatterns._pattern_made_view(%L, ''ttl'', %L)', $1, d.name))
  FROM docpatterns._pattern_declarations($1) d WHERE d.pattern = 'ttl'
$$;
COMMENT ON FUNCTION docpatterns._ttl_follow_owner(regclass, oid) IS
  'makes the views of expiring documents again after a change of the table''s owner';

-- Deferred work -----------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._ttl_due(rel regclass, name text, OUT what text,
  OUT since timestamptz, OUT amount bigint) RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._ttl_parts(rel, docpatterns._ttl_options(rel, name)) q;
  RETURN QUERY EXECUTE format('SELECT ''expired documents'', (min(q.date) AT TIME ZONE ''UTC'' '
      '+ $1) AT TIME ZONE ''UTC'', nullif(count(*), 0) FROM (SELECT %s AS date FROM %s AS t '
      'WHERE %s ORDER BY 1 LIMIT 10000) q', p.date, p.base, p.expired) USING p.after;
END
$$;
COMMENT ON FUNCTION docpatterns._ttl_due(regclass, text) IS 'pattern_due of expiring documents';

-- A row that a user has locked is skipped: its date may change.
CREATE FUNCTION docpatterns._ttl_maintain(rel regclass, name text, most int) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  done bigint;
BEGIN
  SELECT q.* INTO p FROM docpatterns._ttl_parts(rel, docpatterns._ttl_options(rel, name)) q;
  EXECUTE format('DELETE FROM %1$s AS d USING (SELECT %2$s FROM %1$s AS t WHERE %3$s ORDER BY %4$s '
      'LIMIT $1 FOR UPDATE SKIP LOCKED) AS e WHERE %5$s', p.base,
      (SELECT string_agg(format('t.%I', k), ', ') FROM unnest(p.keys) k), p.expired, p.date,
      (SELECT string_agg(format('d.%1$I %2$s e.%1$I', k, o), ' AND ')
        FROM unnest(p.keys, p.key_ops) AS u (k, o))) USING most;
  GET DIAGNOSTICS done = ROW_COUNT;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._ttl_maintain(regclass, text, int) IS
  'pattern_maintain of expiring documents';
