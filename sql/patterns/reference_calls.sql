-- Functions of the extended reference pattern for users.

CREATE FUNCTION reference_refresh(rel regclass, name text DEFAULT NULL, batch bigint DEFAULT NULL)
  RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF batch < 1 THEN
    RAISE EXCEPTION 'batch must be positive' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN docpatterns._reference_maintain(rel, name, least(batch, 2147483647)::int);
END
$$;
COMMENT ON FUNCTION reference_refresh(regclass, text, bigint) IS
  'Updates the copies of deferred references and returns the number of documents written. batch is '
  'the most changes of each declaration, NULL means all. Locks the rows that it writes, in key '
  'order, and skips entries that another refresh has taken. Errors: 42501 unless the caller owns '
  'the table, 42704';

CREATE FUNCTION docpatterns._reference_due(rel regclass, name text, OUT what text,
  OUT since timestamptz, OUT amount bigint) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT * FROM docpatterns._derive_due($1, 'reference', $2, 'changes of sources')
$$;
COMMENT ON FUNCTION docpatterns._reference_due(regclass, text) IS
  'pattern_due of the extended reference pattern';

CREATE FUNCTION docpatterns._reference_maintain(rel regclass, name text, most int) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_reference_maintain' LANGUAGE C;
COMMENT ON FUNCTION docpatterns._reference_maintain(regclass, text, int) IS
  'pattern_maintain of the extended reference pattern: applies up to so many entries of the queue '
  'of a declaration, or of each, in one pass, as the owner of the table; error 42501 unless the '
  'caller owns it';

CREATE FUNCTION reference_staleness(rel regclass, name text DEFAULT NULL,
  OUT reference text, OUT sources bigint, OUT copies bigint,
    OUT oldest timestamptz, OUT lag interval) RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
  p record;
BEGIN
  PERFORM docpatterns._pattern_require_owner(rel);
  FOR d IN SELECT q.name FROM docpatterns._pattern_declarations(rel) q
           WHERE q.pattern = 'reference' AND @extschema@.bson_exists(q.options, 'second_link_id')
             AND (reference_staleness.name IS NULL OR q.name = reference_staleness.name)
           ORDER BY q.name LOOP
    SELECT q.* INTO p FROM docpatterns._reference_parts(rel, d.name) q;
    CONTINUE WHEN p.queue IS NULL;
    reference := d.name;
    EXECUTE format('SELECT count(DISTINCT q.key), min(q.queued_at), clock_timestamp() - '
        'min(q.queued_at) FROM %s AS q', p.queue) INTO sources, oldest, lag;
    CONTINUE WHEN sources = 0;
    EXECUTE format($q$
      WITH k AS MATERIALIZED (SELECT DISTINCT q.key FROM %1$s AS q)
      SELECT count(*)
      FROM k JOIN (%2$s) AS s ON s.id OPERATOR(@extschema@.=) k.key
        CROSS JOIN LATERAL (SELECT b.* FROM %3$s AS b WHERE %4$s OPERATOR(@extschema@.=) k.key
                            UNION ALL SELECT b.* FROM %3$s AS b
                                WHERE %5$s && ARRAY[@extschema@.bson_value_hash_extended(k.key, 0)]
                                AND %5$s IS NOT NULL) AS b
        CROSS JOIN LATERAL %6$s AS r
      WHERE r.id OPERATOR(@extschema@.=) k.key
        AND docpatterns._reference_wrong(r.copy, s.doc, %7$L::text[]) IS NOT NULL
      $q$, p.queue, p.sources, p.base, p.by_id, p.by_hash, p.sites, p.live) INTO copies;
    RETURN NEXT;
  END LOOP;
END
$$;
COMMENT ON FUNCTION reference_staleness(regclass, text) IS
  'Deferred references with waiting changes: the number of changed sources, of copies that differ, '
  'and the age of the oldest change. Reads the queue and the rows that name queued sources. Error: '
  '42501 unless the caller owns the table';

CREATE FUNCTION reference_dangling(rel regclass, name text DEFAULT NULL,
                                   OUT reference text, OUT key bson_value, OUT id bson_value,
                                     OUT written timestamptz, OUT transactions integer) RETURNS
                                   SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
  p record;
BEGIN
  PERFORM docpatterns._pattern_require_owner(rel);
  FOR d IN SELECT q.name FROM docpatterns._pattern_declarations(rel) q
           WHERE q.pattern = 'reference' AND (reference_dangling.name IS NULL
               OR q.name = reference_dangling.name)
           ORDER BY q.name LOOP
    SELECT q.* INTO p FROM docpatterns._reference_parts(rel, d.name) q;
    RETURN QUERY EXECUTE format($q$
      SELECT %1$L::text, %2$s, r.id, %3$s, age(b.xmin)
      FROM %4$s AS b CROSS JOIN LATERAL %5$s AS r
      WHERE %6$s IS NOT NULL AND NOT EXISTS (SELECT FROM (%7$s) AS s
          WHERE s.id OPERATOR(@extschema@.=) r.id)
      ORDER BY %8$s
      $q$, d.name, p.key_value,
      -- requires track_commit_timestamp
      CASE WHEN current_setting('track_commit_timestamp') = 'on' THEN
        'pg_xact_commit_timestamp(b.xmin)' ELSE 'NULL::timestamptz' END,
      p.base, p.sites, p.doc, p.sources, p.key_list);
  END LOOP;
END
$$;
COMMENT ON FUNCTION reference_dangling(regclass, text) IS
  'References to documents that do not exist: the key of the document, the ID, when its row was '
  'last written (NULL unless track_commit_timestamp is on) and how many transactions ago. Reads '
  'both tables. Error: 42501 unless the caller owns the table';

CREATE FUNCTION reference_cost(rel regclass, field text, source regclass,
  id_field text DEFAULT '_id', doc_column text DEFAULT NULL, source_doc_column text DEFAULT NULL,
                               OUT sources bigint, OUT documents bigint, OUT median bigint,
                               OUT p99 bigint, OUT max bigint)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  s record;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  SELECT p.* INTO s FROM docpatterns._pattern_table(source, source_doc_column) p;
  IF field IS NULL OR id_field IS NULL THEN
    RAISE EXCEPTION 'field and id_field must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  EXECUTE format($q$
    WITH n AS (
      SELECT r.id, count(*) AS n
      FROM %1$s AS b CROSS JOIN LATERAL (SELECT DISTINCT r.id
          FROM docpatterns._reference_sites(b.%2$I, %3$L, %4$L) AS r) AS r
      WHERE b.%2$I IS NOT NULL GROUP BY r.id)
    SELECT count(*), coalesce(sum(n.n), 0)::bigint,
      percentile_disc(0.5) WITHIN GROUP (ORDER BY coalesce(n.n, 0)),
           percentile_disc(0.99) WITHIN GROUP (ORDER BY coalesce(n.n, 0)), coalesce(max(n.n), 0)
    FROM (SELECT %5$s AS id FROM %6$s) AS s LEFT JOIN n ON n.id OPERATOR(@extschema@.=) s.id
    $q$, t.base, t.doc, field, id_field, s.key_value, s.base) INTO sources, documents, median, p99,
      max;
END
$$;
COMMENT ON FUNCTION reference_cost(regclass, text, regclass, text, text, text) IS
  'How many documents of rel one change of a source document would rewrite, over all sources: '
  'their number, and the sum, median, 99th percentile and maximum. Works with and without a '
  'declaration. Reads both tables once, with the rights of the caller. Error: 22023 a bad path';
