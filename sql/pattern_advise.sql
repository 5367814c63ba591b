-- pattern_advise(): which patterns the documents of a table, or of a database, suggest; and
-- pattern_trial(): what a statement does to a copy of some documents. The advice on each subject is
-- in sql/advise/: each function looks at a sample of the documents and at the facts of its paths.

-- What is declared is not advised again: a pattern on the same field, or any pattern that keeps the
-- field.
CREATE FUNCTION docpatterns._advise(rel regclass, sample int, doc_column text,
  tables docpatterns.advise_other[]) RETURNS SETOF pattern_advice
-- compiling statements takes longer than running them once
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  t docpatterns.advise_table;
  docs @extschema@.bson[];
  facts docpatterns.advise_fact[];
  others docpatterns.advise_other[];
BEGIN
  t := docpatterns._advise_table(_advise.rel, doc_column);
  docs := docpatterns._advise_sample(t, sample);
  t.n := cardinality(docs);
  facts := ARRAY(SELECT f FROM docpatterns._advise_facts(docs) f);
  t.bytes := (SELECT avg(@extschema@.bson_size(d)) FROM unnest(docs) d);
  IF t.n >= 20 THEN             -- little can be told of so few
    others := ARRAY(SELECT o FROM unnest(coalesce(tables, ARRAY(SELECT a
      FROM docpatterns._advise_tables((SELECT c.relnamespace FROM pg_class c WHERE c.oid = t.rel))
        a)))
      o WHERE o.rel <> t.rel);
  END IF;
  RETURN QUERY
    WITH single AS MATERIALIZED (
      SELECT * FROM docpatterns._advise_counters(t, facts) WHERE t.n > 0),
    parts AS MATERIALIZED (
      SELECT * FROM docpatterns._advise_arrays(t, facts, docs)
      UNION ALL SELECT * FROM docpatterns._advise_payload(t, facts, docs)
      UNION ALL SELECT * FROM docpatterns._advise_slots(t, facts, docs)
      UNION ALL SELECT * FROM docpatterns._advise_series(t, facts, docs)
      UNION ALL SELECT * FROM docpatterns._advise_revisions(t, facts, docs)),
    kinds AS MATERIALIZED (
      SELECT * FROM docpatterns._advise_together(t, facts, docs)
      UNION ALL SELECT * FROM docpatterns._advise_kinds(t, facts, docs)),
    links AS MATERIALIZED (
      SELECT * FROM docpatterns._advise_references(t, facts, docs, others)
      UNION ALL SELECT * FROM docpatterns._advise_trees(t, facts, docs)
      UNION ALL SELECT * FROM docpatterns._advise_derived(t, facts, docs, others)),
    advice AS MATERIALIZED (
      SELECT * FROM single
      UNION ALL SELECT q.* FROM (
        SELECT * FROM parts
        -- kinds of items under computed keys, or that name each other, are part of that
        UNION ALL SELECT * FROM kinds k WHERE k.pattern <> 'polymorphic'
          OR NOT EXISTS (SELECT FROM kinds o WHERE o.pattern <> 'polymorphic')
        UNION ALL SELECT * FROM links l WHERE l.pattern <> 'tree'
          OR NOT EXISTS (SELECT FROM kinds o WHERE o.path = l.path)
        UNION ALL SELECT * FROM docpatterns._advise_names(t, facts) a
          WHERE a.path IS NOT NULL OR NOT EXISTS (SELECT FROM kinds)
        UNION ALL SELECT * FROM docpatterns._advise_versions(t, facts, docs)
          WHERE NOT EXISTS (SELECT FROM kinds)
        UNION ALL SELECT * FROM docpatterns._advise_size(t, facts,
          ARRAY(SELECT p.path FROM parts p))) q
      WHERE t.n >= 20)
    SELECT a.* FROM advice a
    WHERE NOT EXISTS (SELECT FROM docpatterns._advise_declared(t.rel) d
      WHERE a.path = d.path OR starts_with(a.path, d.path || '.')
        OR a.pattern = d.pattern AND (a.path IS NULL OR a.path ~ '[*]$|,' OR a.pattern IN
          ('schema_versioning', 'versioning', 'subset_fields', 'single_collection', 'tree',
            'polymorphic')))
    ORDER BY a.weight DESC, a.pattern, a.path;
END
$$;
COMMENT ON FUNCTION docpatterns._advise(regclass, int, text, docpatterns.advise_other[]) IS
  'pattern_advise() of a table; tables are those that it may name, NULL: those of its schema';

CREATE FUNCTION pattern_advise(rel regclass, sample int DEFAULT 5000, doc_column text DEFAULT NULL)
  RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF rel IS NULL OR sample IS NULL THEN
    RAISE EXCEPTION '% must not be null', CASE WHEN rel IS NULL THEN 'the table' ELSE 'sample' END
      USING ERRCODE = 'null_value_not_allowed';
  ELSIF sample < 1 OR sample > 100000 THEN
    RAISE EXCEPTION 'sample must be between 1 and 100000' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN QUERY SELECT * FROM docpatterns._advise(pattern_advise.rel, sample, doc_column, NULL);
END
$$;
COMMENT ON FUNCTION pattern_advise(regclass, int, text) IS
  'Which patterns the documents of a table suggest, the most important first: the pattern, the '
  'path, a weight from 0 to 1, the reason, the statement to run, what changes for readers and '
  'writers, what it costs, and what it saves: bytes, row versions and rows read a day. No rows: '
  'plain documents suffice. Reads a sample of the documents, keys of other tables of the schema, '
  'pg_stat_all_tables and pg_stat_statements. Needs SELECT. Errors: 22004, 22023 a bad sample, '
  '42501, 42703 or 55000 a table that cannot have a pattern';

-- Tables that users write: no partitions, and none that a pattern guards or that cannot have one.
CREATE FUNCTION pattern_advise() RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s record;
  r regclass;
  tables docpatterns.advise_other[];
  advice @extschema@.pattern_advice[] := '{}';
BEGIN
  FOR s IN SELECT c.relnamespace AS schema, array_agg(c.oid::regclass ORDER BY c.relname) AS rels
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname <> 'docpatterns'
        AND n.nspname !~ '^pg_(toast|temp)' AND has_table_privilege(c.oid, 'SELECT')
        AND has_schema_privilege(n.oid, 'USAGE')
        AND (SELECT count(*) = 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0
          AND NOT a.attisdropped AND a.atttypid = '@extschema@.bson'::regtype)
        AND EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
        AND NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid
          AND g.tgfoid = 'docpatterns.pattern_guard_trigger'::regproc)
      GROUP BY 1 LOOP
    tables := ARRAY(SELECT a FROM docpatterns._advise_tables(s.schema) a);
    FOREACH r IN ARRAY s.rels LOOP
      BEGIN
        advice := advice || ARRAY(SELECT a FROM docpatterns._advise(r, 2000, NULL, tables) a);
      EXCEPTION WHEN object_not_in_prerequisite_state OR wrong_object_type OR insufficient_privilege
          OR feature_not_supported OR undefined_table THEN
        NULL;                   -- it cannot have a pattern
      END;
    END LOOP;
  END LOOP;
  RETURN QUERY SELECT (a).* FROM unnest(advice) a
    ORDER BY (a).weight DESC, (a).saved_bytes DESC NULLS LAST, (a).rel::text, (a).pattern, (a).path;
END
$$;
COMMENT ON FUNCTION pattern_advise() IS
  'The advice of pattern_advise(rel), from 2000 documents of each table, on all tables with '
  'documents that you may read, the most important first. Tables that a pattern keeps and tables '
  'that cannot have one are left out';

-- The same statement about another table: the name where it is qualified, or after a word or in an
-- argument that takes a table.
CREATE FUNCTION docpatterns._trial_statement(statement text, rel regclass, copy text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
  SET standard_conforming_strings = on AS $$
  SELECT regexp_replace(regexp_replace($1,
      '(?<![[:alnum:]_."])' || docpatterns._trial_pattern(format('%I.%I', n.nspname, c.relname))
        || '(?![[:alnum:]_"])', $3, 'g'),
    '((?:\(\s*|\m(?:rel|source|parent|child|tree|a|b|followers)\s*=>\s*)''|'
      '\m(?:FROM|JOIN|INTO|UPDATE|TABLE|ONLY)\s+)' || docpatterns._trial_pattern(format('%I',
        c.relname))
      || '(?![[:alnum:]_."])', '\1' || $3, 'gi')
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $2
$$;
COMMENT ON FUNCTION docpatterns._trial_statement(text, regclass, text) IS
  'a statement with the name of a copy in place of a table''s';

CREATE FUNCTION docpatterns._trial_pattern(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
  SET standard_conforming_strings = on AS $$
  SELECT regexp_replace($1, '([^[:alnum:]_])', '\\\1', 'g')
$$;
COMMENT ON FUNCTION docpatterns._trial_pattern(text) IS
  'a regular expression that matches a text';

-- path is the caller's search_path, with which the statement runs.
CREATE FUNCTION docpatterns._trial(target regclass, statement text, sample int, path text,
  OUT what text, OUT before text, OUT after text) RETURNS SETOF record
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  live docpatterns.advise_table;
  copy text;
  changed text;
  columns text;
  definition text;
  began timestamptz;
  ended timestamptz;
  old_tables oid[];
  new_tables text[];
  rows_before text[];
  rows_after text[];
  sums text[];
  keys_before text[];
  n bigint;
  n_after bigint;
  docs_before bigint;
  docs_after bigint;
  kept_before bigint;
  kept_after bigint;
  size bigint;
  read_before numeric;
  read_after numeric;
  write_before numeric;
  write_after numeric;
  r text;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(target, NULL) p;
  live := docpatterns._advise_table(target, NULL);
  BEGIN
    copy := docpatterns._advise_name(target, t.table_name || '_trial');
    changed := docpatterns._trial_statement(statement, target, copy);
    IF changed = statement THEN
      RAISE EXCEPTION 'the statement does not name table "%"', docpatterns._relname(target)
        USING ERRCODE = 'invalid_parameter_value',
        HINT = format('Write its name as %s.', t.base);
    END IF;
    SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) INTO columns
      FROM pg_attribute a WHERE a.attrelid = target AND a.attnum > 0 AND NOT a.attisdropped
        AND a.attgenerated = '';
    EXECUTE format('CREATE TABLE %s (LIKE %s INCLUDING ALL)', copy, t.base);
    EXECUTE format('INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM %s AS s%s LIMIT %s',
      copy, columns, columns, t.base, CASE WHEN live.live > 3 * sample THEN
        format(' TABLESAMPLE SYSTEM (%s) REPEATABLE (1)', least(100, 300.0 * sample / live.live))
        ELSE '' END, sample);
    -- the key of a collection comes from its documents
    FOR definition IN SELECT pg_get_triggerdef(g.oid) FROM pg_trigger g
        WHERE g.tgrelid = target AND g.tgfoid = 'docpatterns.collection_set_id'::regproc LOOP
      EXECUTE docpatterns._trial_statement(definition, target, copy);
    END LOOP;
    EXECUTE format('SELECT array_agg(q.key), array_agg(left(q.doc, 2000)), array_agg(md5(q.doc)) '
      'FROM (SELECT %s::text AS key, %I::text AS doc FROM %s AS b) q', t.key_value, t.doc, copy)
      INTO keys_before, rows_before, sums;
    n := coalesce(cardinality(keys_before), 0);
    SELECT q.docs, q.kept, q.read, q.write INTO docs_before, kept_before, read_before, write_before
      FROM docpatterns._trial_measure(copy, t.doc) q;
    old_tables := ARRAY(SELECT c.oid FROM pg_class c WHERE c.relkind IN ('r', 'm'));

    PERFORM set_config('search_path', path, true);
    began := pg_catalog.clock_timestamp();
    EXECUTE changed;
    ended := pg_catalog.clock_timestamp();
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

    SELECT q.docs, q.kept, q.read, q.write INTO docs_after, kept_after, read_after, write_after
      FROM docpatterns._trial_measure(copy, t.doc) q;
    new_tables := ARRAY(SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind IN ('r', 'm')
      AND c.oid <> ALL (old_tables) AND c.relpersistence <> 't'
      AND pg_has_role(c.relowner, 'MEMBER') ORDER BY c.relname);
    FOREACH r IN ARRAY new_tables LOOP
      EXECUTE format('SELECT coalesce(sum(pg_column_size(x)), 0) FROM %s AS x', r) INTO size;
      kept_after := kept_after + size;
    END LOOP;
    -- three documents, first those that are different now
    EXECUTE format('SELECT array_agg(q.k ORDER BY q.n), array_agg(q.b ORDER BY q.n), array_agg(q.a '
      'ORDER BY q.n), (SELECT count(*) FROM %3$s) FROM (SELECT o.k, o.b, left(d.doc, 2000) AS a, '
      'row_number() OVER (ORDER BY o.s IS NOT DISTINCT FROM md5(d.doc), o.n) AS n FROM unnest($1, '
      '$2, $3) WITH ORDINALITY AS o (k, b, s, n) LEFT JOIN (SELECT %1$s::text AS key, %2$I::text '
        'AS '
      'doc FROM %3$s AS b) d ON d.key = o.k ORDER BY 4 LIMIT 3) q', t.key_value, t.doc, copy)
      INTO keys_before, rows_before, rows_after, n_after USING keys_before, rows_before, sums;
    RAISE SQLSTATE 'DPUND';
  EXCEPTION WHEN SQLSTATE 'DPUND' THEN
    NULL;                       -- all of it is undone
  END;
  RETURN QUERY SELECT 'document ' || k, b, a FROM unnest(keys_before, rows_before,
    rows_after) AS u (k, b, a);
  RETURN QUERY VALUES ('rows', n::text, n_after::text),
    ('bytes of documents', docs_before::text, docs_after::text),
    ('bytes of rows, new tables included', kept_before::text, kept_after::text),
    ('new tables', '', replace(array_to_string(new_tables, ', '), copy, t.base)),
    ('ms to read all documents', round(read_before, 1)::text, round(read_after, 1)::text),
    ('ms to write 100 documents', round(write_before, 1)::text, round(write_after, 1)::text),
    ('ms of the statement', NULL, round(1000 * extract(epoch FROM ended - began), 1)::text);
END
$$;
COMMENT ON FUNCTION docpatterns._trial(regclass, text, int, text) IS
  'pattern_trial() with the search_path of the caller';

CREATE FUNCTION docpatterns._trial_measure(copy text, doc text, OUT docs bigint, OUT kept bigint,
  OUT read numeric, OUT write numeric)
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  began timestamptz;
BEGIN
  EXECUTE format('SELECT coalesce(sum(pg_column_size(x)), 0) FROM %s AS x', copy) INTO kept;
  began := clock_timestamp();
  EXECUTE format('SELECT coalesce(sum(length(x.%I::bytea)), 0) FROM %s AS x', doc, copy)
    INTO docs;
  read := 1000 * extract(epoch FROM clock_timestamp() - began);
  began := clock_timestamp();
  EXECUTE format('UPDATE %s AS x SET %2$I = x.%2$I WHERE x.ctid = ANY (ARRAY(SELECT y.ctid FROM '
    '%1$s AS y LIMIT 100))', copy, doc);
  write := 1000 * extract(epoch FROM clock_timestamp() - began);
END
$$;
COMMENT ON FUNCTION docpatterns._trial_measure(text, text) IS
  'bytes of documents and rows of a table, and milliseconds to read all and to write 100';

CREATE FUNCTION pattern_trial(rel regclass, statement text, sample int DEFAULT 1000,
  OUT what text, OUT before text, OUT after text) RETURNS SETOF record
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  IF rel IS NULL OR statement IS NULL OR sample IS NULL THEN
    RAISE EXCEPTION 'rel, statement and sample must not be null'
      USING ERRCODE = 'null_value_not_allowed';
  ELSIF sample OPERATOR(pg_catalog.<) 1 OR sample OPERATOR(pg_catalog.>) 100000 THEN
    RAISE EXCEPTION 'sample must be between 1 and 100000' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN QUERY SELECT * FROM docpatterns._trial(rel, statement, sample,
    pg_catalog.current_setting('search_path'));
END
$$;
COMMENT ON FUNCTION pattern_trial(regclass, text, int) IS
  'What a statement, such as that of pattern_advise(), does to a copy of some documents: three of '
  'them before and after, the bytes, and the times. Runs with your rights on a new table beside '
  'rel, in a subtransaction that is rolled back; other tables that the statement names are locked '
    'and '
  'changed until then. Needs SELECT and CREATE on the schema. Errors: 22023 a bad sample, or a '
  'statement that does not name the table, 22004, those of the statement, and of pattern_advise()';
