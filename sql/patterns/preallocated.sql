-- The preallocated pattern. Its triggers and calls are in src/patterns/preallocated/; here are
-- shapes, declaring and the verbs.

CREATE FUNCTION docpatterns.preallocated_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_preallocated_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.preallocated_trigger() IS
  'trigger of tables with the preallocated pattern; made by preallocated_enable';

CREATE FUNCTION docpatterns._preallocated_verify(rel regclass, options bson) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_preallocated_verify' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._preallocated_verify(regclass, bson) IS
  'error 22023 unless these are options of the preallocated pattern';

CREATE FUNCTION docpatterns._preallocated_wrong(options bson, doc bson) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_preallocated_wrong' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION docpatterns._preallocated_wrong(bson, bson) IS
  'what is wrong with the slots of a stored document, NULL if nothing is';

CREATE FUNCTION docpatterns._preallocated_has_slot(options bson, doc bson, slot text)
  RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_preallocated_has_slot' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    COST 100;
COMMENT ON FUNCTION docpatterns._preallocated_has_slot(bson, bson, text) IS
  'whether a document has a slot of that name';

CREATE FUNCTION docpatterns._preallocated_expiry(until bson_value) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'dp_preallocated_expiry' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._preallocated_expiry(bson_value) IS
  'the earliest end of a hold in the field of a document; never changes: indexes are made of it';

-- Shapes ------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._preallocated_shape(shape bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_preallocated_shape' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._preallocated_shape(bson) IS
  'the shape itself; error 22023 unless it is one';

CREATE FUNCTION preallocated_grid(rows int[], accessible text[] DEFAULT NULL,
  fill anycompatible DEFAULT NULL) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_preallocated_grid' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION preallocated_grid(int[], text[], anycompatible) IS
  'A shape: rows of cells, {12,12,14} being A1 to A12, B1 to B12 and C1 to C14; the field '
  '"accessible" names some of them. fill is the value of a free cell (default 0). Error: 22023 '
  'rows without cells, more than 100000 cells, or accessible slots that do not exist';

CREATE FUNCTION preallocated_calendar(weekdays_only boolean DEFAULT false,
  month_field text DEFAULT 'month', year_field text DEFAULT 'year') RETURNS bson
LANGUAGE docpatterns IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN docpatterns._preallocated_shape(@extschema@.bson_build('kind', 'calendar'::text,
        'weekdays_only', coalesce($1, false), 'month_field', $2, 'year_field', $3));
END
$$;
COMMENT ON FUNCTION preallocated_calendar(boolean, text, text) IS
  'A shape: a cell for each day of the document''s month (with weekdays_only from Monday to '
  'Friday), which holds its number while free. Error: 22023 a bad path';

CREATE FUNCTION preallocated_pool(n int, fill anycompatible DEFAULT NULL) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_preallocated_pool' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION preallocated_pool(int, anycompatible) IS
  'A shape: slots 1 to n; fill is the value of a free cell (default 0). Error: 22023 unless there '
  'are 1 to 100000';

CREATE FUNCTION preallocated_clock(units text[], fill anycompatible DEFAULT NULL) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_preallocated_clock' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION preallocated_clock(text[], anycompatible) IS
  'A shape: counters named by the units, {hour,minute} being 0.0 to 23.59; fill is their first '
  'value (default 0). Error: 22023 unless units are hour, minute and second, each a part of the '
  'one before';

-- Declaring ---------------------------------------------------------------------------------------

CREATE FUNCTION preallocated_enable(
  rel regclass, field text, shape bson, store text DEFAULT 'document',
  available_field text DEFAULT NULL,
  name text DEFAULT NULL, doc_column text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  options @extschema@.bson;
  link_id text := replace(gen_random_uuid()::text, '-', '');
  clock boolean;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  PERFORM docpatterns._pattern_refuse_partition(rel);
  clock := @extschema@.bson_get_text(shape, 'kind') = 'clock';
  options := docpatterns._pattern_declare(rel, 'preallocated', @extschema@.bson_build(
    'name', coalesce(name, field), 'field', field, 'shape', shape, 'store', store,
    'doc_column', t.doc, 'available_field', available_field,
    'link_id', CASE WHEN store = 'slots' AND NOT coalesce(clock, false) THEN link_id END));
  name := @extschema@.bson_get_text(options, 'name');

  IF store = 'slots' AND NOT clock THEN
    PERFORM docpatterns._preallocated_create_claims(rel, t.doc, name, link_id);
  END IF;
  PERFORM docpatterns._preallocated_create_index(rel, options);
  PERFORM docpatterns._preallocated_create_triggers(rel, options);
  IF NOT clock THEN
    PERFORM docpatterns._pattern_create_whole(rel, doc_column);
  END IF;
  PERFORM docpatterns._pattern_notice_rows(rel, name);
  RETURN name;
END
$$;
COMMENT ON FUNCTION preallocated_enable(regclass, text, bson, text, text, text, text) IS
  'Declares the preallocated pattern: new documents get the slots of a shape in a field, and '
  'preallocated_claim gives each to one holder. store is "document" or "slots" (a side table). '
  'available_field counts the free ones. Returns the name of the declaration (default: the field). '
  'Locks the table against writers. Errors: 22023 options that do not fit, 42710 the name exists, '
  '42501 unless the caller owns the table';

CREATE FUNCTION docpatterns._preallocated_paths(options bson, OUT path text, OUT kept boolean,
  OUT guarded boolean, OUT derived boolean) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT @extschema@.bson_get_text($1, o), true, o <> 'field', true
    FROM unnest(ARRAY['field', 'available_field']) AS o WHERE @extschema@.bson_exists($1, o)
  UNION ALL SELECT docpatterns._preallocated_until_path($1), true, true, true
    WHERE @extschema@.bson_get_text($1, 'store') = 'document'
$$;
COMMENT ON FUNCTION docpatterns._preallocated_paths(bson) IS
  'paths of the fields that a declaration of the preallocated pattern keeps';

CREATE FUNCTION docpatterns._preallocated_view_labels(options bson) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN @extschema@.bson_get_text($1, 'shape.kind') <> 'clock' THEN '{whole}'::text[] END
$$;
COMMENT ON FUNCTION docpatterns._preallocated_view_labels(bson) IS 'what its view is named after';

CREATE FUNCTION docpatterns._preallocated_until_path(options bson) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_preallocated_until_path' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._preallocated_until_path(bson) IS
  'path of the field that says until when slots are held (store => document)';

-- The triggers on the table, created again when options change. The main one has the declaration.
CREATE FUNCTION docpatterns._preallocated_create_triggers(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name text := @extschema@.bson_get_text(options, 'name');
  t record;
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.preallocated_trigger(%L)',
                 docpatterns._pattern_own_trigger(rel, 42, 'preallocated', name, NULL, 23), rel,
                 options::text);
  IF NOT @extschema@.bson_exists(options, 'link_id') THEN
    PERFORM docpatterns._pattern_anchor(rel, name);
    RETURN;
  END IF;
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) p;
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER INSERT OR DELETE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.preallocated_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 42, 'preallocated', name, 'row', 13), rel,
                 'of', name);
  -- an update that leaves the key alone costs no call and no entry in the queue of triggers
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER UPDATE ON %s FOR EACH ROW WHEN (NOT (%s)) '
      'EXECUTE FUNCTION docpatterns.preallocated_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 42, 'preallocated', name, 'key', 17), rel,
                 (SELECT string_agg(format('OLD.%1$I %2$s NEW.%1$I', k, o), ' AND ')
                   FROM unnest(t.keys, t.key_ops) AS u (k, o)), 'of', name);
  PERFORM docpatterns._pattern_statement_trigger(rel, 42, 'preallocated', name, 'statement', 56,
      'AFTER UPDATE OR DELETE OR TRUNCATE');
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._preallocated_create_triggers(regclass, bson) IS
  'triggers of the preallocated pattern on its table';

-- The table of claims and its guard.
CREATE FUNCTION docpatterns._preallocated_create_claims(rel regclass, doc_column text, name text,
  link_id text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM docpatterns._pattern_create_side($1, $2, 'preallocated', $3, $4,
      format('%I.%I', t.schema_name, docpatterns._pattern_relation_name(t.schema_name, t.table_name,
          $3, 'claims')),
           'slot text COLLATE "C" NOT NULL, holder @extschema@.bson_value NOT NULL, until '
           'timestamptz', 'slot', 'WITH (fillfactor = 80)',
           format('who holds which slot of "%s" of %s, and until when', $3, t.base))
  FROM docpatterns._pattern_table($1, $2) t;
  EXECUTE format('CREATE INDEX ON %s (until) WHERE until IS NOT NULL',
      docpatterns._pattern_side(link_id, rel));
END
$$;
COMMENT ON FUNCTION docpatterns._preallocated_create_claims(regclass, text, text, text) IS
  'table for the claims of a preallocated pattern';

-- SQL text: the first end of a hold in a document t; NULL if a table or nothing has holds.
CREATE FUNCTION docpatterns._preallocated_first_end(rel regclass, options bson) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('docpatterns._preallocated_expiry(t.%I OPERATOR(@extschema@.->) %L::text)',
    docpatterns._pattern_doc_column($1, @extschema@.bson_get_text($2, 'doc_column')),
    docpatterns._preallocated_until_path($2))
  WHERE @extschema@.bson_get_text($2, 'store') = 'document'
    AND @extschema@.bson_get_text($2, 'shape.kind') <> 'clock'
$$;
COMMENT ON FUNCTION docpatterns._preallocated_first_end(regclass, bson) IS
  'SQL text: when the first hold in a document t ends';

CREATE FUNCTION docpatterns._preallocated_create_index(rel regclass, options bson) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._derive_create_index($1, 'preallocated',
    @extschema@.bson_get_text($2, 'name'), ARRAY[replace(e, '(t.', '(')])
  FROM docpatterns._preallocated_first_end($1, $2) e WHERE e IS NOT NULL
$$;
COMMENT ON FUNCTION docpatterns._preallocated_create_index(regclass, bson) IS
  'the index by which documents with expired holds are found';

-- Verbs -------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._preallocated_check(rel regclass, name text)
  RETURNS TABLE (key bson_value, what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'preallocated', name) q;
  BEGIN
    PERFORM docpatterns._preallocated_verify(rel, p.options);
  EXCEPTION WHEN invalid_parameter_value THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'options'::text, 'valid'::text, SQLERRM;
    RETURN;
  END;
  RETURN QUERY EXECUTE format($q$
    SELECT x.key, 'slots'::text, 'as declared'::text, x.wrong
    FROM (SELECT %1$s AS key, docpatterns._preallocated_wrong($1, %2$s) AS wrong
        FROM %3$s AS b) AS x WHERE x.wrong IS NOT NULL
    $q$, p.key_value, p.doc, p.base) USING p.options;
  IF NOT @extschema@.bson_exists(p.options, 'link_id') THEN
    RETURN;
  END IF;
  IF p.side IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'table of claims'::text, 'present'::text,
      'missing'::text;
    RETURN;
  END IF;
  RETURN QUERY EXECUTE format($q$
    SELECT %1$s, 'document of a claim'::text, 'present'::text, 'missing'::text FROM %2$s AS s
    WHERE NOT EXISTS (SELECT 1 FROM %3$s AS b WHERE %4$s)
      AND (s.until IS NULL OR s.until > clock_timestamp())
    $q$, p.side_key_value, p.side, p.base, p.matches);
  RETURN QUERY EXECUTE format($q$
    SELECT %1$s, 'slot of a claim'::text, 'a slot of the document'::text, s.slot FROM %2$s AS s
      JOIN %3$s AS b ON %4$s
    WHERE (s.until IS NULL OR s.until > clock_timestamp())
      AND docpatterns._preallocated_has_slot($1, %5$s, s.slot) IS NOT TRUE
    $q$, p.side_key_value, p.side, p.base, p.matches, p.doc) USING p.options;
END
$$;
COMMENT ON FUNCTION docpatterns._preallocated_check(regclass, text) IS
  'violated invariants of a preallocated pattern';

-- Keys of documents that are not in shape.
CREATE FUNCTION docpatterns._preallocated_pending(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'preallocated', name) q;
  RETURN format('SELECT %s AS key FROM %s AS b WHERE docpatterns._preallocated_wrong(%L, %s) IS '
      'NOT NULL', p.key_row, p.base, p.options::text, p.doc);
END
$$;
COMMENT ON FUNCTION docpatterns._preallocated_pending(regclass, text) IS
  'SQL text: keys of documents that are not in the shape of a preallocated pattern';

CREATE FUNCTION docpatterns._preallocated_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'preallocated', name) q;
  IF @extschema@.bson_get_text(p.options, 'shape.kind') <> 'clock' THEN
    PERFORM docpatterns._pattern_create_whole(rel, p.doc_name);
  END IF;
  IF @extschema@.bson_exists(p.options, 'link_id') THEN
    IF p.side IS NULL THEN
      PERFORM docpatterns._preallocated_create_claims(rel, p.doc_name, name,
          @extschema@.bson_get_text(p.options, 'link_id'));
    END IF;
  END IF;
  RETURN docpatterns._pattern_repair_rows(rel, name, docpatterns._preallocated_pending(rel, name));
END
$$;
COMMENT ON FUNCTION docpatterns._preallocated_repair(regclass, text) IS
  'pattern_repair of the preallocated pattern';

CREATE FUNCTION docpatterns._preallocated_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  shape @extschema@.bson;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'preallocated', name) q;
  shape := docpatterns._preallocated_shape((options OPERATOR(@extschema@.->)
        'shape'::text)::@extschema@.bson);
  IF EXISTS (SELECT FROM unnest('{kind,fill,units,month_field,year_field}'::text[]) part
             WHERE @extschema@.bson_get_text(shape,
                   part) IS DISTINCT FROM @extschema@.bson_get_text(p.options,
                   'shape.' || part)) THEN
    RAISE EXCEPTION 'a shape can only become a larger or smaller shape of its kind'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM docpatterns._preallocated_create_triggers(rel, options);
  IF docpatterns._pattern_nonempty(rel) THEN
    RAISE NOTICE 'table "%" already has rows', docpatterns._relname(rel)
      USING HINT = format('Run CALL pattern_build(%L, %L) to add the slots of a larger shape to '
        'them.',
          p.base, name);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._preallocated_alter(regclass, text, bson) IS
  'pattern_alter of the preallocated pattern';

CREATE FUNCTION docpatterns._preallocated_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  done bigint := 0;
  keep_data boolean := @extschema@.bson_get_text(how, 'keep_data') = 'true';
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'preallocated', name) q;
  -- claims that are missing are done without
  IF @extschema@.bson_get_text(p.options, 'shape.kind') <> 'clock' AND NOT keep_data
     AND (p.side IS NOT NULL OR NOT @extschema@.bson_exists(p.options, 'link_id')) THEN
    done := docpatterns._preallocated_put_back(rel, name);
  END IF;
  PERFORM docpatterns._derive_drop_indexes(rel, 'preallocated', name);
  PERFORM docpatterns._pattern_drop_triggers(rel, 'preallocated', name);
  PERFORM docpatterns._pattern_drop_side(p.side, rel, keep_data);
  PERFORM docpatterns._pattern_drop_whole(rel);
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._preallocated_disable(regclass, text, bson) IS
  'pattern_disable of the preallocated pattern';

CREATE FUNCTION docpatterns._preallocated_put_back(rel regclass, name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_preallocated_put_back' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._preallocated_put_back(regclass, text) IS
  'writes the holders of slots and the number of free slots into the documents; returns the number '
  'of documents written; error 42501 unless the caller owns the table, 54000 for documents that '
  'would be too large';

-- Deferred work -----------------------------------------------------------------------------------

-- What documents held before the declaration is for pattern_build().
CREATE FUNCTION docpatterns._preallocated_due(rel regclass, name text, OUT what text,
  OUT since timestamptz, OUT amount bigint) RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  first_end text;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'preallocated', name) q;
  first_end := docpatterns._preallocated_first_end(rel, p.options);
  IF p.side IS NOT NULL THEN
    RETURN QUERY SELECT e.* FROM docpatterns._pattern_expired(p.side, 'until', 'expired holds') e;
  ELSIF first_end IS NOT NULL AND NOT @extschema@.bson_exists(p.options, 'held') THEN
    RETURN QUERY SELECT e.* FROM docpatterns._pattern_expired(rel, replace(first_end, '(t.', '('),
        'documents with expired holds') e;
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._preallocated_due(regclass, text) IS
  'pattern_due of the preallocated pattern';

CREATE FUNCTION docpatterns._preallocated_purge_claims(rel regclass, name text, most int)
  RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_preallocated_purge_claims' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._preallocated_purge_claims(regclass, text, int) IS
  'deletes expired claims that are not locked; returns their number; error 42501 unless the caller '
  'owns the table';

CREATE FUNCTION docpatterns._preallocated_purge_row(rel regclass, name text, key record)
  RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_preallocated_purge_row' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._preallocated_purge_row(regclass, text, record) IS
  'frees the cells of a document whose holds have expired; false if there is no such document; '
  'error 42501 unless the caller owns the table';

CREATE FUNCTION docpatterns._preallocated_maintain(rel regclass, name text, most int) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  r record;
  first_end text;
  done bigint := 0;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'preallocated', name) q;
  IF p.side IS NOT NULL THEN
    RETURN docpatterns._preallocated_purge_claims(rel, name, most);
  END IF;
  first_end := docpatterns._preallocated_first_end(rel, p.options);
  IF first_end IS NULL OR @extschema@.bson_exists(p.options, 'held') THEN
    RETURN 0;
  END IF;
  FOR r IN EXECUTE format('SELECT ROW(%s) AS key FROM %s AS t WHERE %s <= clock_timestamp() '
      'ORDER BY %3$s LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED',
      (SELECT string_agg(format('t.%I', k), ', ') FROM unnest(p.keys) k), p.base, first_end)
    USING most LOOP
    PERFORM docpatterns._preallocated_purge_row(rel, name, r.key);
    done := done + 1;
  END LOOP;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._preallocated_maintain(regclass, text, int) IS
  'pattern_maintain of the preallocated pattern: frees slots whose holds have expired';
