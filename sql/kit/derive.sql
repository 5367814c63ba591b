-- What patterns of two tables share: the triggers on a source, indexes, queues, and their end. The
-- triggers' machinery is in src/kit/derive/change.c, that of queues in queue.c. None of this is for
-- users.

-- Declaring ---------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._derive_source(rel regclass, source regclass, doc_column text,
  OUT doc text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  c record;
BEGIN
  IF source IS NULL THEN
    RAISE EXCEPTION 'the source must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  SELECT q.relkind, q.relispartition, q.relowner, q.relpersistence INTO c FROM pg_class q
    WHERE q.oid = source;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'relation "%" does not exist',
        docpatterns._relname(source) USING ERRCODE = 'undefined_table';
  END IF;
  PERFORM docpatterns._pattern_require_same_owner(rel, source);
  PERFORM docpatterns._shard_require_beside(rel, source);
  PERFORM docpatterns._pattern_refuse_partition(rel, source);
  IF c.relpersistence = 't' AND (SELECT q.relpersistence FROM pg_class q
        WHERE q.oid = rel) <> 't' THEN
    RAISE EXCEPTION '"%" is a temporary table, and "%" is not', docpatterns._relname(source),
        docpatterns._relname(rel)
      USING ERRCODE = 'invalid_table_definition';
  END IF;
  IF c.relkind = 'f' THEN
    IF NOT EXISTS (SELECT FROM docpatterns._pattern_declarations(source) d
          WHERE (docpatterns._pattern_facts(d.pattern)).creates_table) THEN
      RAISE EXCEPTION '"%" is a foreign table', docpatterns._relname(source)
        USING ERRCODE = 'wrong_object_type',
          DETAIL = 'Of foreign tables, only relations of buckets can be a source.';
    END IF;
    RETURN;
  END IF;
  SELECT p.doc INTO doc FROM docpatterns._pattern_table(source, doc_column) p;
END
$$;
COMMENT ON FUNCTION docpatterns._derive_source(regclass, regclass, text) IS
  'the document column of a table from which rel shall be derived, NULL for a relation of '
  'measurements; errors 22004, 42P01, 42501, 42809, 42P16 and those of _pattern_table() when it '
  'cannot be a source';

-- Triggers on sources -----------------------------------------------------------------------------

CREATE FUNCTION docpatterns._derive_source_triggers(source regclass, pattern text, name text,
  link_id text) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._derive_statement_triggers($1, $2, $3, ARRAY['side', $4, $3])
$$;
COMMENT ON FUNCTION docpatterns._derive_source_triggers(regclass, text, text, text) IS
  'triggers on a source, and on its partitions, that tell a declaration of another table (or of '
  'the same) what statements do; they call <pattern>_trigger()';

CREATE FUNCTION docpatterns._derive_main_triggers(source regclass, pattern text, name text)
  RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._derive_statement_triggers($1, $2, $3, ARRAY['of', $3])
$$;
COMMENT ON FUNCTION docpatterns._derive_main_triggers(regclass, text, text) IS
  'the same for a source that has the main trigger itself';

CREATE FUNCTION docpatterns._derive_statement_triggers(source regclass, pattern text, name text,
  arguments text[]) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g record;
  part record;
  trigger_name text;
  is_foreign boolean := (SELECT c.relkind = 'f' FROM pg_class c WHERE c.oid = source);
  function text := format('docpatterns.%I', pattern || '_trigger');
BEGIN
  -- a relation of measurements has no transition tables: row triggers report rows, functions other
  -- changes
  FOR g IN SELECT * FROM (VALUES
      ('before', NULL, 'BEFORE INSERT OR UPDATE OR DELETE', '', 'STATEMENT', false),
      ('before_truncate', NULL, 'BEFORE TRUNCATE', '', 'STATEMENT', false),
      ('insert', 'i', 'AFTER INSERT', 'REFERENCING NEW TABLE AS new_rows', 'STATEMENT', false),
      ('update', 'u', 'AFTER UPDATE', 'REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows',
        'STATEMENT', false),
      ('delete', 'd', 'AFTER DELETE', 'REFERENCING OLD TABLE AS old_rows', 'STATEMENT', false),
      ('truncate', 't', 'AFTER TRUNCATE', '', 'STATEMENT', false),
      ('before', NULL, 'BEFORE INSERT OR UPDATE OR DELETE', '', 'STATEMENT', true),
      ('row', NULL, 'AFTER INSERT OR UPDATE OR DELETE', '', 'ROW', true),
      ('after', NULL, 'AFTER INSERT OR UPDATE OR DELETE', '', 'STATEMENT', true)) AS v (label,
        event, timing, tables, level, foreign_table)
    WHERE v.foreign_table = is_foreign
  LOOP
    trigger_name := docpatterns._pattern_trigger_name(source, 'zz_docpatterns_80_' || pattern, name,
        g.label);
    FOR part IN SELECT p.relid FROM pg_partition_tree(source) p UNION SELECT source LOOP
      -- that of a partition only fires: what it says about declarations is said by the one above
      EXECUTE format('CREATE TRIGGER %I %s ON %s %s FOR EACH %s EXECUTE FUNCTION %s(%s)',
          trigger_name, g.timing, part.relid::regclass, g.tables, g.level, function,
                     (SELECT string_agg(quote_literal(CASE WHEN a = 'side' AND n = 1
                           AND part.relid <> source THEN 'part' ELSE a END), ', ' ORDER BY n)
                      FROM unnest(arguments) WITH ORDINALITY AS u (a, n)));
    END LOOP;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._derive_statement_triggers(regclass, text, text, text[]) IS
  'makes the triggers of a source; locks it against writers';

-- Indexes -----------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._derive_create_index(rel regclass, pattern text, name text,
  columns text[], is_unique boolean DEFAULT false) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  made text;
  twin regclass;
  schema_name text;
  table_name text;
  n int := 0;
  probe text;
BEGIN
  SELECT s.nspname, c.relname INTO schema_name, table_name FROM pg_class c
    JOIN pg_namespace s ON s.oid = c.relnamespace WHERE c.oid = rel;
  made := docpatterns._pattern_object_name(table_name, name, 'idx');
  WHILE EXISTS (SELECT FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
        WHERE s.nspname = schema_name AND c.relname = made) LOOP
    n := n + 1;
    made := docpatterns._pattern_object_name(table_name, name, 'idx' || n);
  END LOOP;

  -- what the columns mean is PostgreSQL's to say: the index is made without rows and compared with
  -- those that are there
  probe := format('%I.%I', schema_name, 'docpatterns_probe_'
      || replace(gen_random_uuid()::text, '-', ''));
  EXECUTE format('CREATE %s TABLE %s (LIKE %s)', CASE
      WHEN starts_with(schema_name, 'pg_temp_') THEN 'TEMPORARY' ELSE 'UNLOGGED' END, probe, rel);
  EXECUTE format('CREATE INDEX ON %s (%s)', probe, array_to_string(columns, ', '));
  SELECT i.indexrelid::regclass INTO twin
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
      CROSS JOIN (SELECT p.* FROM pg_index p WHERE p.indrelid = probe::regclass) AS p
    WHERE i.indrelid = rel AND i.indisvalid AND i.indisready
      AND docpatterns._pattern_index_full(i.indexrelid) AND (i.indisunique OR NOT is_unique)
      AND c.relam = (SELECT a.oid FROM pg_am a WHERE a.amname = 'btree')
        AND i.indnkeyatts >= p.indnkeyatts
      AND NOT EXISTS (SELECT FROM generate_series(1, p.indnkeyatts) AS k
                      WHERE pg_get_indexdef(i.indexrelid, k, true) <> pg_get_indexdef(p.indexrelid,
                          k, true)
                         OR (i.indclass::oid[])[k - 1] <> (p.indclass::oid[])[k - 1]
                           OR (i.indcollation::oid[])[k - 1] <> (p.indcollation::oid[])[k - 1]
                         OR (i.indoption::int2[])[k - 1] <> (p.indoption::int2[])[k - 1])
    ORDER BY i.indpred IS NOT NULL, i.indnkeyatts, i.indexrelid LIMIT 1;
  EXECUTE format('DROP TABLE %s', probe);

  IF twin IS NULL THEN
    EXECUTE format('CREATE %sINDEX %I ON %s (%s) WHERE %s', CASE WHEN is_unique THEN 'UNIQUE '
        ELSE '' END, made, rel, array_to_string(columns, ', '),
        docpatterns._pattern_mark(pattern, name));
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._derive_create_index(regclass, text, text, text[], boolean) IS
  'creates an index for a declaration, unless an index begins with the same columns; locks the '
  'table against writers';

-- An index that another declaration needs remains until that one ends too: its options name the
-- columns that the index begins with.
CREATE FUNCTION docpatterns._derive_drop_indexes(rel regclass, pattern text, name text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp
  SET standard_conforming_strings = on
  SET quote_all_identifiers = off AS $$
DECLARE
  i record;
BEGIN
  FOR i IN
    WITH others AS MATERIALIZED (
      SELECT d.pattern, d.name, d.options::text AS options
        FROM docpatterns._pattern_declarations(NULL) d
      WHERE NOT (d.pattern = _derive_drop_indexes.pattern AND d.name = _derive_drop_indexes.name)
        AND (d.rel = _derive_drop_indexes.rel
            OR _derive_drop_indexes.rel IN (
              docpatterns._pattern_side(@extschema@.bson_get_text(d.options, 'link_id'), d.rel),
              docpatterns._pattern_side(@extschema@.bson_get_text(d.options, 'second_link_id'),
                d.rel))))
    SELECT m.index FROM docpatterns._pattern_indexes(_derive_drop_indexes.rel) m
      JOIN pg_index x ON x.indexrelid = m.index JOIN pg_class c ON c.oid = m.index
    WHERE NOT EXISTS (SELECT FROM others o WHERE o.pattern = m.pattern AND o.name = m.name)
      AND (m.pattern = _derive_drop_indexes.pattern AND m.name = _derive_drop_indexes.name
          OR m.part = '')
      -- wanted: all that it is made of is named, or its first column is, and no other index begins
      -- with that
      AND NOT EXISTS (
        SELECT FROM others o WHERE m.part = ''
          AND (NOT x.indisunique OR o.pattern = m.pattern)
          AND c.relam = (SELECT a.oid FROM pg_am a WHERE a.amname = 'btree')
          AND (SELECT bool_and(w.named) OR bool_and(w.named) FILTER (WHERE w.k = 1) AND NOT EXISTS (
                 SELECT FROM pg_index y JOIN pg_class z ON z.oid = y.indexrelid
                 WHERE y.indrelid = x.indrelid AND y.indexrelid <> x.indexrelid
                   AND z.relam = c.relam AND pg_get_indexdef(y.indexrelid, 1,
                     true) = pg_get_indexdef(x.indexrelid, 1, true))
               FROM (SELECT k, position(CASE WHEN starts_with(v[1], '{') THEN v[1]
                     ELSE format('"%s"', v[1]) END IN o.options) > 0 AS named
                     FROM generate_series(1, x.indnkeyatts) k
                       CROSS JOIN LATERAL regexp_matches(pg_get_indexdef(m.index, k, true),
                         '''((?:[^'']|'''')*)''', 'g') v
                     UNION ALL SELECT 1, position(format('"%s"', a.attname) IN o.options) > 0
                       FROM pg_attribute a
                       WHERE a.attrelid = x.indrelid AND a.attnum = x.indkey[0]
                               AND x.indkey[0] > 0) AS w)) LOOP
    EXECUTE format('DROP INDEX %s', i.index);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._derive_drop_indexes(regclass, text, text) IS
  'drops indexes created for a declaration, or for one that has ended, unless other declarations '
  'need them; indexes of users remain';

-- Queues ------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._derive_create_queue(rel regclass, pattern text, name text,
  suffix text DEFAULT 'queue', holds text DEFAULT 'has put off') RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  link_id text := replace(gen_random_uuid()::text, '-', '');
  queue regclass;
  -- Citus sends a row to a shard by its key, which is a bson_value here
  routed boolean := EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = rel
    AND a.attname = (docpatterns._pattern_distribution(rel)).column_name
    AND a.atttypid = '@extschema@.bson_value'::regtype);
BEGIN
  SELECT docpatterns._pattern_create_table(rel, pattern, name, link_id,
      format('%I.%I', s.nspname, docpatterns._pattern_relation_name(s.nspname, q.relname, name,
        suffix)),
      'id bigint GENERATED ALWAYS AS IDENTITY, key @extschema@.bson_value NOT NULL, '
      'delta @extschema@.bson, queued_at timestamptz NOT NULL DEFAULT clock_timestamp(), '
      || CASE WHEN routed THEN 'PRIMARY KEY (id, key)' ELSE 'PRIMARY KEY (id)' END, NULL,
      format('what the %s pattern "%s" of %s %s', pattern, name, rel, holds),
      CASE WHEN routed THEN 'key' END) INTO queue
    FROM pg_class q JOIN pg_namespace s ON s.oid = q.relnamespace WHERE q.oid = rel;
  EXECUTE format('CREATE INDEX ON %s (key, id)', queue);
  RETURN link_id;
END
$$;
COMMENT ON FUNCTION docpatterns._derive_create_queue(regclass, text, text, text, text) IS
  'makes the table <rel>_<name>_<suffix> of keys with what holds says of them, and returns its '
  'link ID, which is to become an option of the declaration ("second_link_id"); error 42P07 if '
  'the table '
  'exists';

CREATE FUNCTION docpatterns._pattern_forget_removed(rel regclass, name text) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_pattern_forget_removed' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._pattern_forget_removed(regclass, text) IS
  'deletes entries older than 30 days from the list of removed members (<rel>_<name>_removed); '
  'error 42501 unless the caller owns the table';

-- A queue is about to be dropped, and what it held has been applied: but only what the transaction
-- sees. The tables are locked.
CREATE FUNCTION docpatterns._derive_require_seen(queue regclass) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  seen text;
BEGIN
  EXECUTE format('SELECT count(*) FROM %s', queue) INTO seen;
  IF docpatterns._pattern_latest(format('SELECT count(*) FROM %s', queue)) <> seen THEN
    RAISE EXCEPTION 'could not serialize access due to concurrent update'
      USING ERRCODE = 'serialization_failure',
      DETAIL = format('Entries were added to %s since the transaction took its snapshot.', queue),
      HINT = 'The transaction might succeed if retried.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._derive_require_seen(regclass) IS
  'error 40001 if a queue, all of which has been applied, still holds entries that the '
  'transaction''s snapshot does not show; reads the queue';

-- The end of a declaration ------------------------------------------------------------------------

CREATE FUNCTION docpatterns._derive_drop(rel regclass, pattern text, name text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  options @extschema@.bson;
  main name;
  link_ids text[];
  tables oid[];
  queue regclass;
  t record;
BEGIN
  SELECT d.options, g.tgname INTO options, main FROM docpatterns._pattern_declarations(rel) d
    JOIN pg_trigger g ON g.oid = d.trigger_oid
    WHERE d.pattern = _derive_drop.pattern AND d.name = _derive_drop.name;
  IF main IS NULL THEN
    IF EXISTS (SELECT FROM docpatterns._pattern_declarations(rel) d
          WHERE d.pattern = _derive_drop.pattern AND d.name = _derive_drop.name) THEN
      RAISE EXCEPTION 'could not serialize access due to concurrent update'
        USING ERRCODE = 'serialization_failure',
        DETAIL = format('The %s pattern "%s" was declared since the transaction took its snapshot.',
          pattern, name), HINT = 'The transaction might succeed if retried.';
    END IF;
    RETURN;
  END IF;
  link_ids := docpatterns._pattern_link_ids(options);
  SELECT array_agg(DISTINCT docpatterns._pattern_side(p,
      rel)::oid) INTO tables FROM unnest(link_ids) p
    WHERE docpatterns._pattern_side(p, rel) IS NOT NULL;

  PERFORM docpatterns._pattern_drop_anchor(rel, name);
  PERFORM docpatterns._pattern_drop_anchor(docpatterns._pattern_side(p, rel), p)
    FROM unnest(link_ids) p WHERE docpatterns._pattern_side(p, rel) IS NOT NULL;
  -- the main trigger takes those that belong to it along
  EXECUTE format('DROP TRIGGER %I ON %s', main, rel);
  FOR t IN
    SELECT DISTINCT g.tgrelid::regclass AS on_table, g.tgname
    FROM unnest(tables || rel::oid) AS r (oid)
      CROSS JOIN LATERAL (SELECT q.relid::oid AS relid FROM pg_partition_tree(r.oid) q UNION
        SELECT r.oid) AS p
      JOIN pg_trigger g ON g.tgrelid = p.relid AND g.tgparentid = 0
        JOIN pg_proc f ON f.oid = g.tgfoid
      CROSS JOIN LATERAL (SELECT string_to_array(encode(g.tgargs, 'escape'),
            E'\\000') AS arguments) AS a
    WHERE starts_with(g.tgname, 'zz_docpatterns_') AND f.pronamespace = 'docpatterns'::regnamespace
      AND f.proname <> 'pattern_guard_trigger'
      AND ((g.tgnargs = 3 AND a.arguments[1] IN ('side', 'part')
          AND a.arguments[2] = ANY (link_ids))
           OR (g.tgnargs = 2 AND f.proname = _derive_drop.pattern || '_trigger'
               AND g.tgargs = docpatterns._pattern_arguments('of', _derive_drop.name)))
  LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', t.tgname, t.on_table);
  END LOOP;

  FOR queue IN SELECT u::regclass FROM unnest(tables) u
               WHERE EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = u
                   AND g.tgfoid = 'docpatterns.pattern_guard_trigger'::regproc)
                 AND EXISTS (SELECT FROM pg_class c WHERE c.oid = u) LOOP
    EXECUTE format('DROP TABLE %s', queue);
  END LOOP;
  PERFORM docpatterns._derive_drop_indexes(u::regclass, pattern, name)
    FROM unnest(tables || rel::oid) u WHERE EXISTS (SELECT FROM pg_class c WHERE c.oid = u);
END
$$;
COMMENT ON FUNCTION docpatterns._derive_drop(regclass, text, text) IS
  'drops the triggers of a declaration on all its tables and partitions, its queue, and the '
  'indexes that were made for it; locks the tables';
