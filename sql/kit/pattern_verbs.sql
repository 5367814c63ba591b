-- The verbs of all patterns: checking, statistics, repairing, altering, disabling and building.

CREATE FUNCTION docpatterns._pattern_check_one(rel regclass, pattern text, name text)
  RETURNS SETOF pattern_violation
  AS 'MODULE_PATHNAME', 'dp_pattern_check_one' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._pattern_check_one(regclass, text, text) IS
  'pattern_check for one declaration, run as the owner of the table; error 42501 unless the caller '
  'owns it';

CREATE FUNCTION docpatterns._pattern_disabled_triggers(rel regclass, label text, name text)
  RETURNS TABLE (trigger_name name, on_table regclass, state text)
LANGUAGE sql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
  SELECT g.tgname, g.tgrelid, CASE g.tgenabled WHEN 'D' THEN 'disabled' ELSE
    'enabled on replicas only' END
  FROM pg_trigger g
  WHERE g.tgrelid = ANY (ARRAY(SELECT p.relid::oid FROM pg_partition_tree($1) p UNION SELECT $1))
    AND g.tgenabled IN ('D', 'R')
    AND (g.tgname IN (SELECT e.expected FROM docpatterns._pattern_anchors($1) a
          CROSS JOIN docpatterns._pattern_expected_triggers($1, a.triggers) AS e (expected)
          WHERE a.label = $2) OR g.tgargs = docpatterns._pattern_arguments('side', $2, $3))
$$;
COMMENT ON FUNCTION docpatterns._pattern_disabled_triggers(regclass, text, text) IS
  'triggers of a declaration that do not fire, on one of its tables and the partitions of that';

-- Checks the tables of a declaration, which its own check takes for granted.
CREATE FUNCTION docpatterns._pattern_check_declaration(rel regclass, pattern text, name text)
  RETURNS SETOF pattern_violation
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH declared AS (
    SELECT d.options, docpatterns._pattern_link_ids(d.options) AS link_ids
    FROM docpatterns._pattern_declarations($1) d WHERE d.pattern = $2 AND d.name = $3
  ), tables AS (
    SELECT $1 AS tab, $3 AS label UNION ALL SELECT s.tab, p FROM declared d
      CROSS JOIN unnest(d.link_ids) p CROSS JOIN docpatterns._pattern_side(p, $1) s (tab)
      WHERE s.tab IS NOT NULL
  ), anchors AS (
    SELECT t.tab, a.* FROM tables t CROSS JOIN LATERAL docpatterns._pattern_anchors(t.tab) a
      WHERE a.label = t.label
  ), primary_keys AS (
    SELECT i.indrelid AS tab, array_agg(a.attname::text ORDER BY k.n) AS keys
    FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, n)
      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
    WHERE i.indisprimary AND k.n <= i.indnkeyatts AND i.indrelid IN (SELECT t.tab FROM tables t)
      GROUP BY i.indrelid
  )
  SELECT $1, $2, $3, NULL::@extschema@.bson_value, v.what, v.expected, v.found
  FROM (
    SELECT 'primary key' AS what, a.keys::text AS expected,
      format('%s of %s', k.keys, a.tab) AS found
      FROM anchors a JOIN primary_keys k ON k.tab = a.tab WHERE k.keys <> a.keys AND a.keys <> '{}'
    UNION ALL
    SELECT 'trigger', format('%s on %s', e.expected, a.tab), 'missing'
      FROM anchors a CROSS JOIN docpatterns._pattern_expected_triggers(a.tab, a.triggers)
        AS e (expected)
      WHERE NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = a.tab AND g.tgname = e.expected)
    UNION ALL
    SELECT 'trigger', format('%s on %s', g.trigger_name, g.on_table), g.state FROM tables t
      CROSS JOIN LATERAL docpatterns._pattern_disabled_triggers(t.tab, t.label, $3) g
    UNION ALL
    SELECT 'trigger', format('the anchor on %s', $1), 'missing'
      WHERE NOT (docpatterns._pattern_facts($2)).creates_table
        AND NOT EXISTS (SELECT FROM anchors a WHERE a.label = $3)
    UNION ALL
    SELECT 'persistence', format('%s is logged, as %s is', t.tab, $1),
      'it is not, and a crash would empty it'
      FROM tables t JOIN pg_class c ON c.oid = t.tab JOIN pg_class m ON m.oid = $1
        WHERE c.relpersistence = 'u' AND m.relpersistence = 'p' AND m.relkind <> 'f'
    UNION ALL
    SELECT 'owner of ' || q.object, (SELECT c.relowner::regrole::text FROM pg_class c
        WHERE c.oid = $1), q.owner::text FROM docpatterns._pattern_taken($1, $2, $3) q
    UNION ALL
    SELECT 'view ' || l.label, 'present', 'missing'
      FROM declared d
        CROSS JOIN unnest(docpatterns._pattern_view_labels($2, d.options)) AS l (label)
      WHERE docpatterns._pattern_is_distributed($1)
        AND docpatterns._pattern_made_view($1, $2, $3, l.label,
          (SELECT c.relowner FROM pg_class c WHERE c.oid = $1)) IS NULL
    UNION ALL
    SELECT 'shards', format('with those of %s', $1), format('%s has its own', t.tab) FROM tables t
      WHERE docpatterns._pattern_is_distributed($1)
        AND (docpatterns._pattern_distribution(t.tab)).colocation IS DISTINCT FROM
          (docpatterns._pattern_distribution($1)).colocation
        AND (docpatterns._pattern_distribution(t.tab)).method IS DISTINCT FROM 'copied'
    UNION ALL
    SELECT 'inheritance', format('no table inherits from %s', t.tab), i.inhrelid::regclass::text
      FROM tables t JOIN pg_class c ON c.oid = t.tab JOIN pg_inherits i ON i.inhparent = t.tab
        WHERE c.relkind = 'r'
  ) AS v
$$;
COMMENT ON FUNCTION docpatterns._pattern_check_declaration(regclass, text, text) IS
  'violations in the catalogs by the tables of a declaration: another primary key, missing or '
  'disabled triggers, tables that a crash would empty, views of other owners, tables that inherit, '
  'and on Citus shards in other places and missing views';

CREATE FUNCTION docpatterns._pattern_check_shards(rel regclass, pattern text, name text)
  RETURNS SETOF pattern_violation
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s record;
  c record;
  declared boolean;
BEGIN
  FOR s IN SELECT q.* FROM docpatterns._pattern_shard_places(rel) q LOOP
    EXECUTE docpatterns._shard_query(rel, s.condition, 'EXISTS (SELECT FROM '
      'docpatterns._pattern_declarations(s.rel) d WHERE d.pattern = $1 AND d.name = $2)', false)
      INTO declared USING pattern, name;
    IF NOT declared THEN
      RETURN NEXT (rel, pattern, name, NULL, 'trigger', 'those of ' || rel::text,
        format('missing (%s)', s.place))::@extschema@.pattern_violation;
      CONTINUE;
    END IF;
    -- OIDs are those of another server; views and functions are looked for beside the table
    FOR c IN EXECUTE format('SELECT v.key, v.what, v.expected, v.found FROM (%s) AS q CROSS JOIN '
        'LATERAL @extschema@.pattern_check(q.rel, $1) AS v',
        docpatterns._shard_query(rel, s.condition, 's.rel', false)) USING name LOOP
      CONTINUE WHEN c.key IS NULL AND c.what ~ '^(view|function) ?';
      RETURN NEXT (rel, pattern, name, c.key, c.what, c.expected,
        format('%s (%s)', c.found, s.place))::@extschema@.pattern_violation;
    END LOOP;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_check_shards(regclass, text, text) IS
  'pattern_check for one declaration of a distributed table: each row says in which shard';

-- The planner assumes that a never analyzed table is large, and would compile the check's query for
-- longer than the check takes; and that a check has many results, which parallel workers would have
-- to pass on.
CREATE FUNCTION pattern_check(rel regclass DEFAULT NULL, name text DEFAULT NULL)
  RETURNS SETOF pattern_violation
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp SET jit = off
  SET parallel_tuple_cost = 0 AS $$
DECLARE
  d record;
  damage @extschema@.pattern_violation[];
BEGIN
  IF pattern_check.rel IS NOT NULL THEN
    PERFORM docpatterns._pattern_require_owner(pattern_check.rel);
    IF pattern_check.name IS NOT NULL THEN
      PERFORM docpatterns._pattern_find(pattern_check.rel, pattern_check.name);
    END IF;
  END IF;
  FOR d IN
    SELECT q.rel, q.pattern, q.name
    FROM docpatterns._pattern_declarations(pattern_check.rel) q
      JOIN pg_class c ON c.oid = q.rel
    WHERE (pattern_check.name IS NULL OR q.name = pattern_check.name)
      AND pg_has_role(c.relowner, 'USAGE') AND NOT pg_is_other_temp_schema(c.relnamespace)
      -- unlogged tables cannot be read on a standby
      AND NOT (c.relpersistence = 'u' AND pattern_check.rel IS NULL AND pg_is_in_recovery())
      AND docpatterns._pattern_hook(q.pattern, 'check', 'regclass, text') IS NOT NULL
      AND (pattern_check.rel IS NOT NULL
        OR (docpatterns._pattern_distribution(q.rel)).method IS DISTINCT FROM 'shard')
    ORDER BY q.rel::text, q.pattern, q.name
  LOOP
    BEGIN
      damage := ARRAY(SELECT c FROM docpatterns._pattern_check_declaration(d.rel, d.pattern, d.name)
          c);
      IF docpatterns._pattern_is_distributed(d.rel) THEN
        RETURN QUERY SELECT c.* FROM docpatterns._pattern_check_shards(d.rel, d.pattern, d.name) c;
      -- another key would compare the rows of other documents
      ELSIF NOT EXISTS (SELECT FROM unnest(damage) c
            WHERE c.what IN ('primary key', 'inheritance')) THEN
        RETURN QUERY SELECT c.* FROM docpatterns._pattern_check_one(d.rel, d.pattern, d.name) c;
      END IF;
      RETURN QUERY SELECT c.* FROM unnest(damage) c;
    EXCEPTION WHEN OTHERS THEN
      -- an error for one table must not hide violations in others
      IF pattern_check.rel IS NOT NULL OR SQLSTATE ~ '^(40|53|57)' THEN
        RAISE;
      END IF;
      RETURN QUERY SELECT d.rel, d.pattern, d.name, NULL::@extschema@.bson_value,
        'declaration'::text, 'can be checked'::text, SQLERRM;
    END;
  END LOOP;
END
$$;
COMMENT ON FUNCTION pattern_check(regclass, text) IS
  'One row for each violated invariant of a declaration, a table, or all tables that the caller '
  'owns; no rows mean that all is consistent. On a standby, unlogged tables are left out unless '
  'named. Reads everything that the patterns keep, in one snapshot, and shows the declaration at '
  'hand in pg_stat_activity. Error: 42501 a table of another owner';

CREATE FUNCTION pattern_stats(rel regclass DEFAULT NULL) RETURNS SETOF pattern_statistics
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
  s @extschema@.pattern_statistics;
  part record;
  one record;
  queue regclass;
BEGIN
  IF rel IS NOT NULL THEN
    PERFORM docpatterns._pattern_require_owner(rel);
  END IF;
  FOR d IN
    SELECT q.rel, q.pattern, q.name, q.options
    FROM docpatterns._pattern_declarations(pattern_stats.rel) q JOIN pg_class c ON c.oid = q.rel
    WHERE pg_has_role(c.relowner, 'USAGE') AND NOT pg_is_other_temp_schema(c.relnamespace)
      AND NOT (c.relpersistence = 'u' AND pg_is_in_recovery())
      AND (pattern_stats.rel IS NOT NULL
        OR (docpatterns._pattern_distribution(q.rel)).method IS DISTINCT FROM 'shard')
    ORDER BY q.rel::text, q.pattern, q.name
  LOOP
    s := (d.rel, d.pattern, d.name, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    IF @extschema@.bson_exists(d.options, 'held') THEN
      s.unbuilt := ARRAY(SELECT e::text
          FROM @extschema@.bson_elements(d.options OPERATOR(@extschema@.->) 'held'::text) e);
    END IF;
    IF docpatterns._pattern_is_distributed(d.rel) THEN
      FOR part IN SELECT q.condition FROM docpatterns._pattern_shards(d.rel) q LOOP
        EXECUTE format('SELECT c.waiting, c.notes, c.failed, c.side_writes, c.side_bytes FROM (%s) '
            'AS q CROSS JOIN LATERAL @extschema@.pattern_stats(q.rel) AS c WHERE c.name = $1',
            docpatterns._shard_query(d.rel, part.condition, 's.rel', false)) INTO one USING d.name;
        s.waiting := coalesce(s.waiting + one.waiting, s.waiting, one.waiting);
        s.notes := coalesce(s.notes, 0) + one.notes;
        s.failed := coalesce(s.failed, 0) + one.failed;
        s.side_writes := coalesce(s.side_writes + one.side_writes, s.side_writes, one.side_writes);
        s.side_bytes := coalesce(s.side_bytes + one.side_bytes, s.side_bytes, one.side_bytes);
      END LOOP;
      RETURN NEXT s;
      CONTINUE;
    END IF;
    queue := docpatterns._pattern_side(@extschema@.bson_get_text(d.options,
        (docpatterns._pattern_facts(d.pattern)).waiting), d.rel);
    IF queue IS NOT NULL THEN
      EXECUTE format('SELECT count(*) FROM %s', queue) INTO s.waiting;
    END IF;
    SELECT count(*) FILTER (WHERE NOT n.failed), count(*) FILTER (WHERE n.failed)
      INTO s.notes, s.failed FROM docpatterns.notes n WHERE n.rel = d.rel AND n.name = d.name;
    SELECT sum(pg_stat_get_tuples_inserted(t.side) + pg_stat_get_tuples_updated(t.side)
        + pg_stat_get_tuples_deleted(t.side)), sum(pg_total_relation_size(t.side))
      INTO s.side_writes, s.side_bytes
      FROM (SELECT docpatterns._pattern_side(l, d.rel) AS side
        FROM unnest(docpatterns._pattern_link_ids(d.options)) l) t
      WHERE EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = t.side
          AND g.tgfoid = 'docpatterns.pattern_guard_trigger'::regproc);
    SELECT m.error INTO s.error FROM docpatterns.maintenance m
      WHERE m.rel = d.rel AND m.pattern = d.pattern AND m.name = d.name;
    RETURN NEXT s;
  END LOOP;
END
$$;
COMMENT ON FUNCTION pattern_stats(regclass) IS
  'What the declarations of a table, or of all tables that the caller owns, still have to do, '
  'which error ended their maintenance, and the size of their side tables. Reads the catalogs, '
  'PostgreSQL''s statistics and all rows of queues. Error: 42501 a table of another owner';

CREATE FUNCTION docpatterns._pattern_call(verb text, rel regclass, pattern text, name text,
  options bson) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_pattern_call' LANGUAGE C;
COMMENT ON FUNCTION docpatterns._pattern_call(text, regclass, text, text, bson) IS
  'calls _<pattern>_<verb> as the owner of the table; error 42501 unless the caller owns it';

CREATE FUNCTION docpatterns._pattern_mend_triggers(rel regclass, pattern text, name text,
  options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g record;
BEGIN
  FOR g IN
    SELECT q.trigger_name, q.on_table
    FROM (SELECT rel AS tab, name AS label UNION ALL SELECT docpatterns._pattern_side(p, rel), p
          FROM unnest(docpatterns._pattern_link_ids(options)) p) t
      CROSS JOIN LATERAL docpatterns._pattern_disabled_triggers(t.tab, t.label, name) q
        WHERE t.tab IS NOT NULL
          AND (docpatterns._pattern_distribution(rel)).method IS DISTINCT FROM 'shard'
  LOOP
    EXECUTE format('ALTER TABLE %s ENABLE TRIGGER %I', g.on_table, g.trigger_name);
  END LOOP;
  IF docpatterns._pattern_is_distributed(rel) AND EXISTS (
      SELECT FROM docpatterns._pattern_check_shards(rel, pattern, name) c
      WHERE c.what = 'trigger' AND c.found ~ '^(disabled|enabled)') THEN
    PERFORM docpatterns._pattern_allow_triggers(rel);
    FOR g IN SELECT unnest(a.triggers) AS trigger_name FROM docpatterns._pattern_anchors(rel) a
        WHERE a.label = name LOOP
      EXECUTE format('ALTER TABLE %s ENABLE TRIGGER %I', rel, g.trigger_name);
    END LOOP;
  END IF;
  -- those of a shard are made for all of them
  IF docpatterns._pattern_hook(pattern, 'create_triggers', 'regclass, @extschema@.bson') IS NOT NULL
     AND (EXISTS (SELECT FROM docpatterns._pattern_anchors(rel) a CROSS JOIN unnest(a.triggers) e
                  WHERE a.label = name AND NOT EXISTS (SELECT FROM pg_trigger t
                        WHERE t.tgrelid = rel AND t.tgname = e)
                    AND (docpatterns._pattern_distribution(rel)).method IS DISTINCT FROM 'shard')
       OR docpatterns._pattern_is_distributed(rel)
         AND EXISTS (SELECT FROM docpatterns._pattern_check_shards(rel, pattern, name) c
                     WHERE c.what = 'trigger')) THEN
    PERFORM docpatterns._pattern_allow_triggers(rel);
    EXECUTE format('SELECT docpatterns.%I($1, $2)', '_' || pattern || '_create_triggers')
      USING rel, options;
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_mend_triggers(regclass, text, text, bson) IS
  'enables disabled triggers of a declaration, and creates missing ones of its own table if the '
  'pattern has a function for it';

CREATE FUNCTION pattern_repair(rel regclass, name text DEFAULT NULL,
  accept_loss boolean DEFAULT false) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  d record;
  r record;
  done bigint := 0;
BEGIN
  SELECT f.* INTO d FROM docpatterns._pattern_find(pattern_repair.rel, pattern_repair.name) f;
  PERFORM docpatterns._pattern_require_owner(pattern_repair.rel);
  PERFORM docpatterns._pattern_require_views(pattern_repair.rel, d.pattern, d.name);
  PERFORM docpatterns._pattern_mend_triggers(pattern_repair.rel, d.pattern, d.name, d.options);
  IF docpatterns._pattern_is_distributed(pattern_repair.rel) THEN
    done := docpatterns._pattern_sum_shards(pattern_repair.rel,
        format('@extschema@.pattern_repair(s.rel, %L, %L)', d.name, accept_loss));
    IF EXISTS (SELECT FROM docpatterns._pattern_check_declaration(pattern_repair.rel, d.pattern,
          d.name) c WHERE starts_with(c.what, 'view')) THEN
      done := done + docpatterns._pattern_call('repair', pattern_repair.rel, d.pattern, d.name,
          NULL)::bigint;
    END IF;
    PERFORM docpatterns._pattern_note_built(pattern_repair.rel, d.name, accept_loss IS TRUE);
    RETURN done;
  END IF;
  IF @extschema@.bson_exists(d.options, 'held') THEN
    IF accept_loss IS NOT TRUE THEN
      PERFORM docpatterns._pattern_require_kept(pattern_repair.rel, d.pattern, d.name);
    END IF;
    FOR r IN SELECT k.key FROM docpatterns._pattern_pending_keys(pattern_repair.rel, d.pattern,
          d.name) AS k (key record) LOOP
      done := done + docpatterns._pattern_repair_row(pattern_repair.rel, d.name, r.key,
          accept_loss IS NOT TRUE)::int;
    END LOOP;
    IF docpatterns._pattern_hook(d.pattern, 'build_end', 'regclass, text') IS NOT NULL THEN
      done := done + docpatterns._pattern_call('build_end', pattern_repair.rel, d.pattern, d.name,
          NULL)::bigint;
    END IF;
    PERFORM docpatterns._pattern_note_built(pattern_repair.rel, d.name, accept_loss IS TRUE);
    -- violations may be such values, too
    IF accept_loss IS NOT TRUE THEN
      RETURN done;
    END IF;
  END IF;
  IF accept_loss AND docpatterns._pattern_hook(d.pattern, 'accept_loss',
        'regclass, text') IS NOT NULL THEN
    done := docpatterns._pattern_call('accept_loss', pattern_repair.rel, d.pattern, d.name,
        NULL)::bigint;
  END IF;
  RETURN done + docpatterns._pattern_call('repair', pattern_repair.rel, d.pattern, d.name, CASE
      WHEN accept_loss THEN '{accept_loss: true}'::@extschema@.bson END)::bigint;
END
$$;
COMMENT ON FUNCTION pattern_repair(regclass, text, boolean) IS
  'Makes the data of a pattern consistent, enables disabled triggers, and returns the number of '
  'documents written. Lost data are reported by a warning with keys, or by error 55000 for a '
  'missing table; accept_loss continues without them. Where fields hold values from before the '
  'declaration it does what pattern_build does. Locks the rows that it writes. Errors: 42501 '
  'unless the caller owns the table, 55000 also for a view name that a relation of another role '
  'has, 55006 in a trigger during a statement that changes keys, 40001 as pattern_alter';

CREATE FUNCTION pattern_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
BEGIN
  IF options IS NULL THEN
    RAISE EXCEPTION 'options must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  PERFORM docpatterns._pattern_require_owner(pattern_alter.rel);
  SELECT f.* INTO d FROM docpatterns._pattern_find(pattern_alter.rel, pattern_alter.name) f;
  IF @extschema@.bson_exists(d.options, 'held') THEN
    RAISE EXCEPTION 'pattern_build() has not finished for the existing rows of table "%"',
      docpatterns._relname(pattern_alter.rel)
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Call pattern_build() first.';
  END IF;
  PERFORM docpatterns._pattern_call('alter', pattern_alter.rel, d.pattern, d.name,
    pattern_alter.options);
END
$$;
COMMENT ON FUNCTION pattern_alter(regclass, text, bson) IS
  'Changes options of a declaration. Locks the table against writers; needs ownership. Errors: '
  '22023 an option that does not exist or cannot be changed, 55000 where documents already have '
  'values in fields that the pattern does not keep yet, 40001 where the transaction''s snapshot is '
  'older than one of the table''s declarations';

CREATE FUNCTION pattern_disable(rel regclass, name text DEFAULT NULL,
  keep_data boolean DEFAULT false) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (
    SELECT docpatterns._pattern_call('disable', $1, d.pattern, d.name,
        @extschema@.bson_build('keep_data', $3))::bigint
    FROM docpatterns._pattern_find($1, $2) d);
END
$$;
COMMENT ON FUNCTION pattern_disable(regclass, text, boolean) IS
  'Ends a declaration, puts its data back into plain documents (with keep_data: leaves them where '
  'they are) and returns the number of documents. Locks the table; needs ownership. Errors: 54000 '
  'with the keys of documents that would be too large, 40001 as pattern_alter';

-- Patterns that read what others write have later places (NN in the names of triggers), so the last
-- one ends first; of one place, polymorphic ends before polymorphic_variant. Declarations that
-- others need, also of other tables, are tried again.
CREATE FUNCTION pattern_disable_all(rel regclass DEFAULT NULL) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
  needed record;
  ended boolean;
  done bigint := 0;
BEGIN
  IF rel IS NOT NULL THEN
    PERFORM docpatterns._pattern_require_owner(rel);
  END IF;
  LOOP
    ended := false;
    needed := NULL;
    FOR d IN
      SELECT q.rel, q.name FROM docpatterns._pattern_declarations(pattern_disable_all.rel) q
        JOIN pg_class c ON c.oid = q.rel JOIN pg_trigger g ON g.oid = q.trigger_oid
      WHERE pg_has_role(c.relowner, 'USAGE') AND NOT pg_is_other_temp_schema(c.relnamespace)
        AND (pattern_disable_all.rel IS NOT NULL
          OR (docpatterns._pattern_distribution(q.rel)).method IS DISTINCT FROM 'shard')
      ORDER BY left(g.tgname, 17) DESC, q.pattern, q.rel
    LOOP
      -- another one may have ended it
      CONTINUE WHEN NOT EXISTS (SELECT FROM docpatterns._pattern_declarations(d.rel) q
          WHERE q.name = d.name);
      BEGIN
        done := done + @extschema@.pattern_disable(d.rel, d.name);
        ended := true;
      EXCEPTION WHEN dependent_objects_still_exist THEN
        needed := d;
      END;
    END LOOP;
    EXIT WHEN NOT ended;
  END LOOP;
  IF needed IS NOT NULL THEN
    PERFORM @extschema@.pattern_disable(needed.rel, needed.name);
  END IF;
  RETURN done;
END
$$;
COMMENT ON FUNCTION pattern_disable_all(regclass) IS
  'Ends all declarations of a table, or of all tables that the caller owns, as pattern_disable '
  'does and in an order in which each finds what it needs. Returns the number of documents. Locks '
  'the tables. Errors: those of pattern_disable, 2BP01 where a pattern of another table needs one, '
  '42501 unless the caller owns the table';

CREATE FUNCTION docpatterns._pattern_repair_row(rel regclass, name text, key record,
  adopt boolean DEFAULT false) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_pattern_repair_row' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._pattern_repair_row(regclass, text, record, boolean) IS
  'makes one row consistent with a declaration, as the owner of the table; adopt: first moves '
  'earlier values of its fields to the source or side table; error 42501 unless the caller owns it';

CREATE FUNCTION docpatterns._pattern_pending_keys(rel regclass, pattern text, name text)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_pattern_pending_keys' LANGUAGE C STABLE STRICT
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION docpatterns._pattern_pending_keys(regclass, text, text) IS
  'keys (key record) of rows that may be inconsistent with a declaration, read as the owner of the '
  'table; error 42501 unless the caller owns it';

CREATE FUNCTION docpatterns._pattern_build_all(rel regclass, pattern text, name text,
  discard boolean) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r record;
  done bigint := 0;
BEGIN
  IF docpatterns._pattern_hook(pattern, 'pending', 'regclass, text') IS NOT NULL THEN
    FOR r IN SELECT k.key FROM docpatterns._pattern_pending_keys(rel, pattern, name) AS k
        (key record) LOOP
      PERFORM docpatterns._pattern_repair_row(rel, name, r.key, discard IS NOT TRUE);
      done := done + 1;
    END LOOP;
  END IF;
  IF docpatterns._pattern_hook(pattern, 'build_end', 'regclass, text') IS NOT NULL THEN
    done := done + docpatterns._pattern_call('build_end', rel, pattern, name, NULL)::bigint;
  END IF;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_build_all(regclass, text, text, boolean) IS
  'pattern_build of all rows at once; error 42501 unless the caller owns the table';

CREATE PROCEDURE pattern_build(rel regclass, name text DEFAULT NULL, batch int DEFAULT 1000,
  discard boolean DEFAULT false)
LANGUAGE docpatterns AS $$
DECLARE
  d pg_catalog.record;
  r pg_catalog.record;
  n bigint;
  done bigint := 0;
  total bigint;
  held boolean;
BEGIN
  PERFORM docpatterns._pattern_require_owner(rel);
  SELECT f.* INTO d FROM docpatterns._pattern_find(rel, name) f;
  IF batch OPERATOR(pg_catalog.<) 1 THEN
    RAISE EXCEPTION 'batch must be positive' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  held := @extschema@.bson_exists(d.options, 'held');
  IF held AND discard IS NOT TRUE THEN
    -- nothing is written before it is certain that nothing is lost
    PERFORM docpatterns._pattern_require_kept(rel, d.pattern, d.name);
  END IF;
  IF docpatterns._pattern_is_distributed(rel) THEN
    FOR r IN SELECT s.* FROM docpatterns._pattern_shard_places(rel) AS s LOOP
      PERFORM docpatterns._shard_lock_all(rel);
      EXECUTE docpatterns._shard_query(rel, r.condition, pg_catalog.format(
          'docpatterns._pattern_build_all(s.rel, %L, %L, %L)', d.pattern, d.name, discard)) INTO n;
      done := done OPERATOR(pg_catalog.+) n;
      IF batch IS NOT NULL THEN
        COMMIT;
        RAISE NOTICE 'pattern "%" of table "%": % documents in %', d.name,
            docpatterns._relname(rel), n, r.place;
      END IF;
    END LOOP;
  ELSIF docpatterns._pattern_hook(d.pattern, 'pending', 'regclass, text') IS NULL THEN
    -- a change feed starts with the next change
    NULL;
  ELSIF batch IS NULL THEN
    done := docpatterns._pattern_build_all(rel, d.pattern, d.name, discard);
  ELSE
    SELECT pg_catalog.count(*) INTO total
      FROM docpatterns._pattern_pending_keys(rel, d.pattern, d.name) AS k (key pg_catalog.record);
    -- the first COMMIT materializes the loop's cursor, so each key is visited once
    FOR r IN SELECT k.key FROM docpatterns._pattern_pending_keys(rel, d.pattern, d.name) AS k
        (key pg_catalog.record) LOOP
      PERFORM docpatterns._pattern_repair_row(rel, d.name, r.key, discard IS NOT TRUE);
      done := done OPERATOR(pg_catalog.+) 1;
      IF done OPERATOR(pg_catalog.%) batch OPERATOR(pg_catalog.=) 0 THEN
        COMMIT;
        IF done OPERATOR(pg_catalog.<) total THEN
          RAISE NOTICE 'pattern "%" of table "%": % of % documents', d.name,
              docpatterns._relname(rel), done, total;
        END IF;
      END IF;
    END LOOP;
    COMMIT;
  END IF;
  -- data without a row of the table
  IF batch IS NOT NULL AND NOT docpatterns._pattern_is_distributed(rel)
      AND docpatterns._pattern_hook(d.pattern, 'build_end', 'regclass, text') IS NOT NULL THEN
    done := done OPERATOR(pg_catalog.+) docpatterns._pattern_call('build_end', rel, d.pattern,
        d.name, NULL)::bigint;
    COMMIT;
  END IF;
  IF held THEN
    PERFORM docpatterns._pattern_note_built(rel, d.name, discard IS TRUE);
    IF batch IS NOT NULL THEN
      COMMIT;
    END IF;
  END IF;
  RAISE NOTICE 'pattern "%" of table "%": % documents updated', d.name, docpatterns._relname(rel),
      done;
END
$$;
COMMENT ON PROCEDURE pattern_build(regclass, text, int, boolean) IS
  'Makes existing rows consistent with the declaration, with a commit after each batch (NULL: in '
  'the caller''s transaction). You can stop it and call it again. Locks the rows of a batch. '
  'Errors: 55000 with the number of documents and some keys, before anything is written, if a '
  'value of a field exists nowhere else; 42501 unless the caller owns the table';

-- Rewrites documents, some pages of the table at a time, and reports progress. The scan may reach a
-- rewritten document again, so the condition must not hold for it then; if that is impossible,
-- everything is rewritten at once.
CREATE FUNCTION docpatterns._pattern_convert(rel regclass, name text, doc_name text,
  expression text, condition text, at_once boolean DEFAULT false) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  leaf regclass;
  pages bigint;
  page bigint;
  n bigint;
  done bigint := 0;
  step bigint := 4096;
BEGIN
  IF docpatterns._pattern_is_distributed(rel) THEN
    RETURN docpatterns._pattern_sum_shards(rel, format(
        'docpatterns._pattern_convert(s.rel, %L, %L, %L, %L, %L)', name, doc_name, expression,
        condition, at_once));
  END IF;
  FOR leaf IN SELECT l.oid::regclass
    FROM (SELECT pt.relid FROM pg_partition_tree(rel) pt WHERE pt.isleaf UNION SELECT rel) AS r
    JOIN pg_class l ON l.oid = r.relid
              WHERE l.relkind = 'r' ORDER BY l.oid LOOP
    pages := pg_relation_size(leaf) / current_setting('block_size')::bigint;
    page := 0;
    IF at_once THEN
      step := greatest(pages, 1);
    END IF;
    WHILE page < pages LOOP
      BEGIN
        EXECUTE format('UPDATE %s AS b SET %I = %s WHERE b.ctid >= %L::tid AND b.ctid < %L::tid '
            'AND (%s)', leaf, doc_name, expression,
                       format('(%s,0)', page), format('(%s,0)', page + step), condition);
        GET DIAGNOSTICS n = ROW_COUNT;
      EXCEPTION WHEN program_limit_exceeded THEN
        PERFORM docpatterns._pattern_refuse_large(rel, name, doc_name, expression, condition);
        RAISE;
      END;
      done := done + n;
      page := page + step;
      IF pages > step THEN
        RAISE NOTICE 'pattern "%" of table "%": % of % pages, % documents written', name,
            docpatterns._relname(leaf),
          least(page, pages), pages, done;
      END IF;
    END LOOP;
  END LOOP;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_convert(regclass, text, text, text, text, boolean) IS
  'rewrites the documents of a table (rows b) that satisfy a condition; returns how many';

-- Reports which documents prevent _pattern_convert().
CREATE FUNCTION docpatterns._pattern_refuse_large(rel regclass, name text, doc_name text,
  expression text, condition text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  r record;
  too_large text[] := '{}';
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_name) p;
  FOR r IN EXECUTE format('SELECT %s AS key, b.%I AS doc FROM %s AS b ORDER BY %s', t.key_value,
        doc_name, t.base, t.key_list) LOOP
    BEGIN
      EXECUTE format('SELECT %s FROM (SELECT $1 AS %I) AS b WHERE (%s)', expression, doc_name,
          condition) USING r.doc;
    EXCEPTION WHEN program_limit_exceeded THEN
      too_large := too_large || left(r.key::text, 100);
    END;
  END LOOP;
  IF cardinality(too_large) > 0 THEN
    RAISE EXCEPTION 'pattern "%" of table "%": % documents would be too large', name,
        docpatterns._relname(rel),
      cardinality(too_large)
      USING ERRCODE = 'program_limit_exceeded',
            DETAIL = 'Their keys: ' || array_to_string(too_large[1:20], ', ') || CASE
            WHEN cardinality(too_large) > 20 THEN ', ...' ELSE '' END || '.',
            HINT = 'Raise docpatterns.max_document_size; pattern_disable() leaves the data where '
            'they are with keep_data => true.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_refuse_large(regclass, text, text, text, text) IS
  'error 54000 with the keys of the documents (of rows b that fulfil a condition) for which an '
  'expression raises it; nothing if there are none';
