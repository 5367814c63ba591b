-- Deferred work of all patterns that is due. What a pattern provides for it is in
-- src/kit/maintain.h; workers that do it by themselves are in src/kit/worker.c.

CREATE TYPE pattern_work AS (rel regclass, pattern text, name text, what text, since timestamptz,
    amount bigint);
COMMENT ON TYPE pattern_work IS 'a row of pattern_due()';

-- Not dumped: what failed is tried again.
CREATE TABLE docpatterns.maintenance (rel regclass NOT NULL, pattern text NOT NULL,
    name text NOT NULL, error text NOT NULL, failures int NOT NULL DEFAULT 1,
  failed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  retry_at timestamptz NOT NULL DEFAULT clock_timestamp() + interval '1 s',
  PRIMARY KEY (rel, name, pattern));
-- An error may contain data.
ALTER TABLE docpatterns.maintenance ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_owner ON docpatterns.maintenance FOR SELECT USING
  (pg_catalog.pg_has_role((SELECT c.relowner FROM pg_catalog.pg_class c WHERE c.oid = rel),
      'USAGE'));
GRANT SELECT ON docpatterns.maintenance TO PUBLIC;
COMMENT ON TABLE docpatterns.maintenance IS
  'declarations whose maintenance failed the last time, and when pattern_maintain() tries them '
  'again';

CREATE FUNCTION docpatterns._pattern_due_one(rel regclass, pattern text, name text)
  RETURNS SETOF pattern_work
  AS 'MODULE_PATHNAME', 'dp_pattern_due_one' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._pattern_due_one(regclass, text, text) IS
  'rows of pattern_due() for one declaration, read as the owner of the table; error 42501 unless '
  'the caller owns it, 55P03 if it is locked';

CREATE FUNCTION docpatterns._pattern_deferring(target regclass, target_name text, OUT rel regclass,
  OUT pattern text, OUT name text) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT d.rel, d.pattern, d.name
  FROM docpatterns._pattern_declarations($1) d JOIN pg_class c ON c.oid = d.rel
  WHERE ($2 IS NULL OR d.name = $2) AND pg_has_role(c.relowner, 'USAGE')
    AND NOT pg_is_other_temp_schema(c.relnamespace)
    AND NOT (c.relpersistence = 'u' AND pg_is_in_recovery())
    AND docpatterns._pattern_hook(d.pattern, 'due', 'regclass, text') IS NOT NULL
$$;
COMMENT ON FUNCTION docpatterns._pattern_deferring(regclass, text) IS
  'declarations that may have deferred work, of one table or all that the caller owns';

CREATE FUNCTION pattern_due(rel regclass DEFAULT NULL) RETURNS SETOF pattern_work
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
BEGIN
  IF rel IS NOT NULL THEN
    PERFORM docpatterns._pattern_require_owner(rel);
  END IF;
  FOR d IN SELECT q.* FROM docpatterns._pattern_deferring(rel, NULL) q
    ORDER BY q.rel::text, q.pattern, q.name LOOP
    RETURN QUERY SELECT w.* FROM docpatterns._pattern_due_one(d.rel, d.pattern, d.name) w;
  END LOOP;
END
$$;
COMMENT ON FUNCTION pattern_due(regclass) IS
  'What pattern_maintain() has to do for a table, or for all tables that the caller owns: what, '
  'since when, and how many rows (counted up to 10,000). Reads the first '
  'entries of queues and of indexes of expiry times. Errors: 42501 a table of another owner, 55P03 '
  'a table is locked exclusively';

CREATE FUNCTION docpatterns._pattern_work(target regclass, target_name text, patient boolean,
  OUT rel regclass, OUT pattern text, OUT name text, OUT failed boolean) RETURNS SETOF record
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
  m record;
  work jsonb := '[]';
  since timestamptz;
  is_due boolean;
BEGIN
  IF $1 IS NOT NULL AND $2 IS NOT NULL THEN
    PERFORM docpatterns._pattern_find($1, $2);
  END IF;
  FOR d IN SELECT q.* FROM docpatterns._pattern_deferring($1, $2) q LOOP
    SELECT q.retry_at INTO m FROM docpatterns.maintenance q
      WHERE q.rel = d.rel AND q.name = d.name AND q.pattern = d.pattern;
    failed := FOUND;
    CONTINUE WHEN failed AND $3 AND m.retry_at > clock_timestamp();
    BEGIN
      SELECT count(*) > 0, coalesce(min(w.since), clock_timestamp()) INTO is_due, since
        FROM docpatterns._pattern_due_one(d.rel, d.pattern, d.name) w;
    EXCEPTION
      WHEN lock_not_available OR undefined_table THEN
        is_due := false;
      WHEN OTHERS THEN
        -- its maintenance will fail, too, and report it
        is_due := true;
        since := clock_timestamp();
    END;
    -- what has failed and is no longer due is forgotten
    IF is_due OR failed THEN
      work := work || jsonb_build_object('rel', d.rel::oid, 'pattern', d.pattern, 'name', d.name,
          'failed', failed, 'since', extract(epoch FROM since)::float8);
    END IF;
  END LOOP;
  RETURN QUERY SELECT (w ->> 'rel')::oid::regclass, w ->> 'pattern', w ->> 'name',
      (w ->> 'failed')::boolean FROM jsonb_array_elements(work) w
    ORDER BY (w ->> 'since')::float8;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_work(regclass, text, boolean) IS
  'declarations with something to do, the most urgent first; patient: without those that failed a '
  'short time ago';

CREATE PROCEDURE pattern_maintain(rel regclass DEFAULT NULL, name text DEFAULT NULL,
  max_time interval DEFAULT '1 min', max_rows bigint DEFAULT NULL, batch int DEFAULT 200)
  AS 'MODULE_PATHNAME', 'dp_pattern_maintain' LANGUAGE C;
COMMENT ON PROCEDURE pattern_maintain(regclass, text, interval, bigint, int) IS
  'Does deferred work that is due, as pattern_due() shows it: of a declaration, a table, or all '
  'tables that the caller owns, the oldest first, until nothing is due, max_time has passed or '
  'max_rows are done (NULL: no limit). Each batch is a transaction (all is one inside a '
  'transaction block), shown in pg_stat_activity. Locks rows that it writes, skips locked ones, '
  'and waits at most 10 ms for other locks. An error of a declaration becomes a warning, is shown '
  'by pattern_stats(), and the call for all tables tries again after 1, 2, 4 seconds to an hour. '
  'Errors: 42501 unless the caller owns the table, 42704, 22023 a negative limit, 25006';

-- The queue of a declaration that defers.
CREATE FUNCTION docpatterns._derive_due(rel regclass, pattern text, name text, entries text,
  OUT what text, OUT since timestamptz, OUT amount bigint) RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  queue regclass := (SELECT docpatterns._pattern_side(@extschema@.bson_get_text(d.options,
        'second_link_id'), d.rel)
      FROM docpatterns._pattern_declarations($1) d WHERE d.pattern = $2 AND d.name = $3);
BEGIN
  IF queue IS NOT NULL THEN
    RETURN QUERY EXECUTE format('SELECT $1, min(q.queued_at), nullif(count(*), 0) '
        'FROM (SELECT s.queued_at FROM %s s ORDER BY s.id LIMIT 10000) q', queue) USING $4;
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._derive_due(regclass, text, text, text) IS
  'a row of pattern_due() for the queue of a declaration, if it has one';

CREATE FUNCTION docpatterns._pattern_cutoff(after interval) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'dp_pattern_cutoff' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._pattern_cutoff(interval) IS
  'so much before the start of the statement, with days of 24 hours';

CREATE FUNCTION docpatterns._pattern_make_way(rel regclass, docs bson[]) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_pattern_make_way' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._pattern_make_way(regclass, bson[]) IS
  'deletes, as the owner, rows that calls do not see and that new documents would meet in a unique '
  'index; error 42501 without INSERT on the table';

CREATE FUNCTION docpatterns._pattern_expired(rel regclass, expiry text, entries text,
  OUT what text, OUT since timestamptz, OUT amount bigint) RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY EXECUTE format('SELECT $1, min(q.expiry), nullif(count(*), 0) '
      'FROM (SELECT %1$s AS expiry FROM %2$s WHERE %1$s <= $2 '
      'ORDER BY 1 LIMIT 10000) q', expiry, rel) USING entries, clock_timestamp();
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_expired(regclass, text, text) IS
  'a row of pattern_due() for the rows of a table that have expired: expiry is SQL text for the '
  'time, which an index has';
