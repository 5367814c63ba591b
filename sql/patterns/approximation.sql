-- The approximation pattern. Its triggers and calls are in src/patterns/approximation/, shards in
-- src/patterns/approximation/shards.c.

CREATE FUNCTION docpatterns.approximation_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_approximation_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.approximation_trigger() IS
  'trigger of tables with the approximation pattern; made by approximation_enable';

CREATE FUNCTION docpatterns._approximation_paths(options bson, OUT path text, OUT kept boolean,
  OUT guarded boolean, OUT derived boolean) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT @extschema@.bson_get_text($1, 'field'), true, false, @extschema@.bson_exists($1, 'slots')
$$;
COMMENT ON FUNCTION docpatterns._approximation_paths(bson) IS 'the path of its field';

CREATE FUNCTION docpatterns._approximation_view_labels(options bson) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN @extschema@.bson_exists($1, 'slots') THEN '{whole}'::text[] END
$$;
COMMENT ON FUNCTION docpatterns._approximation_view_labels(bson) IS 'what its view is named after';

CREATE FUNCTION docpatterns._approximation_plus(doc bson, field text, amount bson_value)
  RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_approximation_plus' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._approximation_plus(bson, text, bson_value) IS
  'the document with an amount added to a field; errors 42804 for what is no number, 22003 for a '
  'sum that is out of range';

CREATE FUNCTION docpatterns._approximation_verify(rel regclass, options bson) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_approximation_verify' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._approximation_verify(regclass, bson) IS
  'error 22023 unless these are options of the approximation pattern';

-- Declaring ---------------------------------------------------------------------------------------

CREATE FUNCTION approximation_enable(
  rel regclass, field text, step bigint DEFAULT NULL, error double precision DEFAULT NULL,
  threshold text DEFAULT NULL, slots int DEFAULT NULL,
  name text DEFAULT NULL, doc_column text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  options @extschema@.bson;
  link_id text := replace(gen_random_uuid()::text, '-', '');
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  IF slots IS NOT NULL THEN
    PERFORM docpatterns._pattern_refuse_partition(rel);
  END IF;
  options := docpatterns._pattern_declare(rel, 'approximation', @extschema@.bson_build(
    'name', coalesce(name, field), 'field', field, 'step', step, 'error', error,
    'threshold', threshold, 'slots', slots,
    'link_id', CASE WHEN slots IS NOT NULL THEN link_id END, 'doc_column', t.doc));
  name := @extschema@.bson_get_text(options, 'name');

  IF slots IS NOT NULL THEN
    PERFORM docpatterns._approximation_create_shards(rel, t.doc, name, link_id);
  END IF;
  PERFORM docpatterns._approximation_create_triggers(rel, options);
  IF slots IS NOT NULL THEN
    PERFORM docpatterns._pattern_create_whole(rel, doc_column);
  END IF;
  IF threshold IS NOT NULL THEN
    RAISE NOTICE 'updates that change "%" by less than % are undone and do not add up', field,
      threshold
      USING HINT = 'Write absolute values, or count with approximation_add().';
  END IF;
  RETURN name;
END
$$;
COMMENT ON FUNCTION approximation_enable(regclass, text, bigint, double precision, text, int, text,
  text) IS
  'Declares the approximation pattern for a field, with one of four forms: step (one write in n), '
  'error (a bound for the standard error), threshold (''100'' or ''1%'': smaller moves by an '
  'UPDATE are undone) or slots (exact, in side rows). Returns the name of the declaration '
  '(default: the field). Locks the table against writers. Errors: 22023 not exactly one form, or '
  'options that do not fit, 42710 the name exists, 42501 unless the caller owns the table';

-- The triggers on the table, created again when options change. The main one has the declaration.
CREATE FUNCTION docpatterns._approximation_create_triggers(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name text := @extschema@.bson_get_text(options, 'name');
  t record;
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.approximation_trigger(%L)',
                 docpatterns._pattern_own_trigger(rel, 85, 'approximation', name, NULL, 23), rel,
                 options::text);
  IF NOT @extschema@.bson_exists(options, 'slots') THEN
    PERFORM docpatterns._pattern_anchor(rel, name);
    RETURN;
  END IF;
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) p;
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER DELETE ON %s FOR EACH ROW EXECUTE FUNCTION '
      'docpatterns.approximation_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 85, 'approximation', name, 'delete', 9), rel,
                 'of', name);
  -- an update that leaves the key alone costs no call and no entry in the queue of triggers
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER UPDATE ON %s FOR EACH ROW WHEN (NOT (%s)) '
      'EXECUTE FUNCTION docpatterns.approximation_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 85, 'approximation', name, 'key', 17), rel,
                 (SELECT string_agg(format('OLD.%1$I %2$s NEW.%1$I', k, o), ' AND ')
                   FROM unnest(t.keys, t.key_ops) AS u (k, o)), 'of', name);
  PERFORM docpatterns._pattern_statement_trigger(rel, 85, 'approximation', name, 'statement', 56,
      'AFTER UPDATE OR DELETE OR TRUNCATE');
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._approximation_create_triggers(regclass, bson) IS
  'triggers of the approximation pattern on its table';

-- The table of shards and its guard.
CREATE FUNCTION docpatterns._approximation_create_shards(rel regclass, doc_column text, name text,
  link_id text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- pages with room: every addition is a new version of its row
  PERFORM docpatterns._pattern_create_side($1, $2, 'approximation', $3, $4,
      format('%I.%I', t.schema_name, docpatterns._pattern_relation_name(t.schema_name, t.table_name,
          $3, 'shards')),
           'shard bigint NOT NULL, amount @extschema@.bson_value NOT NULL', 'shard',
           'WITH (fillfactor = 30)',
           format('what counts for "%s" of %s and is not yet in its documents', $3, t.base))
  FROM docpatterns._pattern_table($1, $2) t;
END
$$;
COMMENT ON FUNCTION docpatterns._approximation_create_shards(regclass, text, text, text) IS
  'table for the shards of an approximation pattern';

-- Verbs -------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._approximation_check(rel regclass, name text)
  RETURNS TABLE (key bson_value, what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'approximation', name) q;
  BEGIN
    PERFORM docpatterns._approximation_verify(rel, p.options);
  EXCEPTION WHEN invalid_parameter_value THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'options'::text, 'valid'::text, SQLERRM;
    RETURN;
  END;
  RETURN QUERY EXECUTE format($q$
    SELECT %1$s, 'field'::text, 'a number or absent'::text, @extschema@.bson_typeof(b.%2$I, %3$L)
    FROM %4$s AS b WHERE @extschema@.bson_typeof(b.%2$I, %3$L) NOT IN ('int', 'long', 'double',
        'decimal', 'null')
    $q$, p.key_value, p.doc_name, @extschema@.bson_get_text(p.options, 'field'), p.base);
  IF NOT @extschema@.bson_exists(p.options, 'slots') THEN
    RETURN;
  END IF;
  IF p.side IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'table of shards'::text, 'present'::text,
      'missing'::text;
    RETURN;
  END IF;
  RETURN QUERY EXECUTE format($q$
    SELECT %1$s, 'document of shards'::text, 'present'::text, 'missing'::text
      FROM (SELECT DISTINCT %2$s FROM %3$s AS s) AS s
    WHERE NOT EXISTS (SELECT 1 FROM %4$s AS b WHERE %5$s)
    $q$, p.side_key_value, p.side_key_list, p.side, p.base, p.matches);
  RETURN QUERY EXECUTE format($q$
    SELECT %1$s, 'amount of a shard'::text, 'a number'::text, @extschema@.bson_typeof(s.amount)
      FROM %2$s AS s
    WHERE @extschema@.bson_typeof(s.amount) NOT IN ('int', 'long', 'double', 'decimal')
    $q$, p.side_key_value, p.side);
END
$$;
COMMENT ON FUNCTION docpatterns._approximation_check(regclass, text) IS
  'violated invariants of an approximation pattern';

-- Keys of documents that have shards.
CREATE FUNCTION docpatterns._approximation_pending(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'approximation', name) q;
  IF p.side IS NULL THEN
    RETURN format('SELECT %s AS key FROM %s AS b WHERE false', p.key_row, p.base);
  END IF;
  RETURN format('SELECT %s AS key FROM (SELECT DISTINCT %s FROM %s AS s) AS s ORDER BY %2$s',
      p.side_key_row, p.side_key_list, p.side);
END
$$;
COMMENT ON FUNCTION docpatterns._approximation_pending(regclass, text) IS
  'SQL text: keys of documents that have shards';

CREATE FUNCTION docpatterns._approximation_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'approximation', name) q;
  IF @extschema@.bson_exists(p.options, 'slots') THEN
    PERFORM docpatterns._pattern_create_whole(rel, p.doc_name);
    IF p.side IS NULL THEN
      PERFORM docpatterns._approximation_create_shards(rel, p.doc_name, name,
          @extschema@.bson_get_text(p.options, 'link_id'));
    END IF;
  END IF;
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._approximation_repair(regclass, text) IS
  'pattern_repair of the approximation pattern';

CREATE FUNCTION docpatterns._approximation_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  done bigint := 0;
  keep_data boolean := @extschema@.bson_get_text(how, 'keep_data') = 'true';
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'approximation', name) q;
  IF p.side IS NOT NULL AND NOT keep_data THEN
    done := @extschema@.approximation_sync(rel, name);
  END IF;
  PERFORM docpatterns._pattern_drop_triggers(rel, 'approximation', name);
  PERFORM docpatterns._pattern_drop_side(p.side, rel, keep_data);
  PERFORM docpatterns._pattern_drop_whole(rel);
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._approximation_disable(regclass, text, bson) IS
  'pattern_disable of the approximation pattern';

-- Calls -------------------------------------------------------------------------------------------

CREATE FUNCTION approximation_add(rel regclass, key anycompatible, amount "any",
  name text DEFAULT NULL)
  RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_approximation_add' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION approximation_add(regclass, anycompatible, "any", text) IS
  'Counts an event: adds the amount on average (with slots exactly) and returns whether anything '
  'was written. Needs UPDATE; locks the row only to write it (with slots, never). Errors: P0002 '
  'no such document, if it is read, 42804 an amount or a field that is not a number, 22023 an '
  'amount that is not finite, 42809 a key of another type';

CREATE FUNCTION approximation_read(rel regclass, key anycompatible, name text DEFAULT NULL,
  OUT estimate numeric, OUT low numeric, OUT high numeric) RETURNS record
  AS 'MODULE_PATHNAME', 'dp_approximation_read' LANGUAGE C STABLE;
COMMENT ON FUNCTION approximation_read(regclass, anycompatible, text) IS
  'The count and its bounds at 95 % (with a threshold: certain, for absolute writes; with slots: '
  'exact). Needs SELECT; reads one row, with slots one row per shard';

CREATE FUNCTION approximation_sync(rel regclass, name text DEFAULT NULL) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_approximation_sync' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION approximation_sync(regclass, text) IS
  'Adds shards that nothing is adding to into documents that nothing is writing, and returns the '
  'number of documents; does nothing in the other forms. Does not wait; locks these rows. Error: '
  '42501 unless the caller owns the table';

-- Shards of keys that are counted all the time stay few: as many as the slots.
CREATE FUNCTION docpatterns._approximation_due(rel regclass, name text, OUT what text,
  OUT since timestamptz, OUT amount bigint) RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  shards regclass := (SELECT docpatterns._pattern_side(@extschema@.bson_get_text(d.options,
        'link_id'), d.rel)
      FROM docpatterns._pattern_declarations($1) d
      WHERE d.pattern = 'approximation' AND d.name = $2);
BEGIN
  IF shards IS NOT NULL THEN
    RETURN QUERY EXECUTE format('SELECT ''shards''::text, NULL::timestamptz, nullif(count(*), 0) '
        'FROM (SELECT FROM %s LIMIT 10000) q', shards);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._approximation_due(regclass, text) IS
  'pattern_due of the approximation pattern';

CREATE FUNCTION docpatterns._approximation_maintain(rel regclass, name text, most int)
  RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_approximation_sync' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._approximation_maintain(regclass, text, int) IS
  'pattern_maintain of the approximation pattern';
