-- What pattern_advise() knows of a table before it weighs patterns: a sample of the documents, the
-- facts of all paths (src/index/stats/facts.c), and the server's statistics.

CREATE TYPE pattern_advice AS (pattern text, path text, weight numeric, why text, statement text,
  rel regclass, changes text, cost text, saved_bytes bigint, saved_versions numeric,
  saved_rows numeric);
COMMENT ON TYPE pattern_advice IS 'a row of pattern_advise()';

CREATE TYPE docpatterns.advise_fact AS (path text, parent text, nested boolean, reached int,
  present int, "values" bigint, type text, type_docs int, types bson, bytes bigint, largest bigint,
  lengths int[], items bigint, different bigint, common bson_value[], common_docs int[],
  some_values bson_value[]);
COMMENT ON TYPE docpatterns.advise_fact IS
  'a path of a sample. nested: an array is on the way. reached, present: documents with a value '
  'there, and where -> finds one, with values in all. type, type_docs, types: the most frequent '
  'type but null, and the numbers of documents. bytes, largest: of values that -> finds. lengths '
  'of arrays: least, median, 90 and 99 of a hundred, greatest. items, different: scalars, elements '
  'included. common, common_docs: the most frequent. some_values: up to 200, in order';

CREATE TYPE docpatterns.advise_table AS (rel regclass, base text, doc text, key text, stem text,
  live float8, n int, bytes float8, disk float8, days float8, inserted float8, updated float8,
  deleted float8, read float8, queries text[], calls bigint[], returned bigint[]);
COMMENT ON TYPE docpatterns.advise_table IS
  'a table: its columns, the name of one document, rows, documents in the sample, bytes of one, '
  'bytes of the table, the days that statistics cover, rows written and read in them, and the '
  'statements that name the table (NULL: not known)';

CREATE FUNCTION docpatterns._advise_facts(docs bson[]) RETURNS SETOF docpatterns.advise_fact
  AS 'MODULE_PATHNAME', 'dp_advise_facts' LANGUAGE C STABLE STRICT PARALLEL SAFE ROWS 100 COST
    10000;
COMMENT ON FUNCTION docpatterns._advise_facts(bson[]) IS
  'what documents have at each of the 1000 most frequent paths; error XX001 damaged documents';

-- The next greater number with one significant digit.
CREATE FUNCTION docpatterns._advise_round(n numeric) RETURNS int
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT (CASE WHEN $1 <= 1 * p THEN 1 WHEN $1 <= 2 * p THEN 2 WHEN $1 <= 5 * p THEN 5 ELSE 10
      END * p)::int
  FROM (SELECT 10 ^ floor(log(greatest($1, 1))) AS p) q
$$;
COMMENT ON FUNCTION docpatterns._advise_round(numeric) IS
  'the least of 1, 2, 5, 10, 20, 50 and so on that is not below a number';

CREATE FUNCTION docpatterns._advise_percent(part numeric, whole numeric) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT round(100 * $1 / greatest($2, 1), CASE WHEN $1 < 0.1 * $2 THEN 1 ELSE 0 END) || ' %'
$$;
COMMENT ON FUNCTION docpatterns._advise_percent(numeric, numeric) IS 'a share as text';

-- Dates of documents reach further than those of PostgreSQL.
CREATE FUNCTION docpatterns._advise_time(v bson_value) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN @extschema@.bson_typeof($1) = 'date'
    AND $1 OPERATOR(@extschema@.>) timestamptz '0001-01-01 UTC'
    AND $1 OPERATOR(@extschema@.<) timestamptz '9999-12-31 UTC' THEN $1::timestamptz END
$$;
COMMENT ON FUNCTION docpatterns._advise_time(bson_value) IS
  'a date of the years 1 to 9999; NULL for anything else';

-- The SQL type that holds all values of a path without loss.
CREATE FUNCTION docpatterns._advise_type(f docpatterns.advise_fact) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN k = '{int}' THEN 'int' WHEN k <@ '{int,long}' THEN 'bigint'
    WHEN k <@ '{int,double}' THEN 'float8' WHEN k = '{decimal}' THEN 'numeric'
    WHEN k = '{string}' THEN 'text' WHEN k = '{date}' THEN 'timestamptz'
    WHEN k = '{bool}' THEN 'boolean' WHEN k = '{objectId}' THEN '@extschema@.objectid'
    ELSE '@extschema@.bson_value' END
  FROM (SELECT array_agg(e.key ORDER BY e.key) AS k FROM @extschema@.bson_each(f.types) e) q
$$;
COMMENT ON FUNCTION docpatterns._advise_type(docpatterns.advise_fact) IS
  'the SQL type for the values of a path; bson_value if they are mixed or may be null';

-- A name in the schema of a table that no relation has yet.
CREATE FUNCTION docpatterns._advise_name(rel regclass, suffix text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('%I.%I', nspname, q.name) FROM (
    SELECT n.oid, n.nspname, left(suffix, 50) || CASE WHEN i > 1 THEN '_' || i ELSE '' END AS name,
      i
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, generate_series(1, 100) i
    WHERE c.oid = rel) q
  WHERE NOT EXISTS (SELECT FROM pg_class o WHERE o.relnamespace = q.oid
    AND (o.relname = q.name OR starts_with(o.relname, q.name || '_')))
  ORDER BY q.i LIMIT 1
$$;
COMMENT ON FUNCTION docpatterns._advise_name(regclass, text) IS
  'a qualified name for a new table beside rel, free with all that begins like it';

CREATE FUNCTION docpatterns._advise_build(rel regclass, name text, discard boolean DEFAULT false)
  RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format(' CALL @extschema@.pattern_build(%L, %L, batch => NULL%s);', $1::text, $2,
    CASE WHEN $3 THEN ', discard => true' ELSE '' END)
$$;
COMMENT ON FUNCTION docpatterns._advise_build(regclass, text, boolean) IS
  'the second statement of an advice: existing rows';

-- The same where values that exist nowhere else are replaced: those go to a table first.
CREATE FUNCTION docpatterns._advise_replace(t docpatterns.advise_table, path text, differ boolean,
  statement text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN $3 AND t.key IS NOT NULL THEN
    format('CREATE TABLE %1$s AS SELECT d.%2$I AS key, d.%3$I OPERATOR(@extschema@.->) %4$L AS '
      'value FROM %5$s AS d; ', q.name, t.key, t.doc, q.field, t.base) || $4
      || docpatterns._advise_build(t.rel, $2, true)
      || format(' DELETE FROM %1$s AS b USING %5$s AS d WHERE b.key = d.%2$I AND '
        'coalesce(b.value OPERATOR(@extschema@.=) (d.%3$I OPERATOR(@extschema@.->) %4$L), b.value '
        'IS NULL);', q.name, t.key, t.doc, q.field, t.base)
    ELSE $4 || docpatterns._advise_build(t.rel, $2) END
  FROM (SELECT split_part($2, '.', 1) AS field, docpatterns._advise_name(t.rel,
    t.stem || '_' || replace($2, '.', '_') || '_before') AS name) q
$$;
COMMENT ON FUNCTION docpatterns._advise_replace(docpatterns.advise_table, text, boolean, text) IS
  'statements that declare a pattern and keep the values of a path that it replaces in a new table';

-- Statements from pg_stat_statements about this table, if it is installed and may be read.
CREATE FUNCTION docpatterns._advise_statements(rel regclass, OUT queries text[], OUT calls bigint[],
  OUT returned bigint[])
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  place text := (SELECT quote_ident(n.nspname) FROM pg_extension e
      JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_stat_statements');
BEGIN
  IF place IS NULL THEN
    RETURN;
  END IF;
  BEGIN
    EXECUTE format('SELECT array_agg(s.query), array_agg(s.calls), array_agg(s.rows) FROM '
        '%s.pg_stat_statements s WHERE s.dbid = (SELECT oid FROM pg_database WHERE datname = '
        'current_database()) AND s.query ~* $1 AND s.query !~* ''pattern_advise'' AND s.calls > 0',
        place)
      INTO queries, calls, returned
      USING '[[:<:]]' || (SELECT regexp_replace(c.relname, '([^[:alnum:]_])', E'\\\\\\1', 'g')
          FROM pg_class c WHERE c.oid = rel) || '[[:>:]]';
  EXCEPTION WHEN object_not_in_prerequisite_state OR insufficient_privilege OR undefined_table THEN
    RETURN;                     -- it is not loaded, or not for this user
  END;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_statements(regclass) IS
  'statements that name a table, as pg_stat_statements counted them; NULL without it';

-- Calls of the statements that match a regular expression.
CREATE FUNCTION docpatterns._advise_calls(t docpatterns.advise_table, wanted text) RETURNS numeric
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT sum(c) FROM unnest(t.queries, t.calls) AS q (query, c) WHERE q.query ~* wanted
$$;
COMMENT ON FUNCTION docpatterns._advise_calls(docpatterns.advise_table, text) IS
  'how often counted statements that match a regular expression were called; NULL: none';

CREATE FUNCTION docpatterns._advise_table(rel regclass, doc_column text)
  RETURNS docpatterns.advise_table
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t docpatterns.advise_table;
  pages float8;
BEGIN
  t.rel := rel;
  SELECT p.base, p.doc, CASE WHEN cardinality(p.keys) = 1 THEN p.keys[1] END,
      regexp_replace(regexp_replace(p.table_name, 'ies$', 'y'), 's$', '')
    INTO t.base, t.doc, t.key, t.stem FROM docpatterns._pattern_table(rel, doc_column) p;
  SELECT sum(pg_relation_size(c.oid)) / current_setting('block_size')::int,
      sum(pg_table_size(c.oid)), CASE WHEN bool_and(c.reltuples > 0
        OR pg_relation_size(c.oid) = 0) THEN sum(greatest(c.reltuples, 0)) END
    INTO pages, t.disk, t.live
    FROM pg_class c WHERE c.relkind = 'r'
      AND c.oid IN (SELECT p.relid FROM pg_partition_tree(rel) p WHERE p.isleaf UNION SELECT rel);
  IF t.live IS NULL THEN        -- never analyzed: counted on some pages
    EXECUTE format('SELECT count(*) FROM %s AS s TABLESAMPLE SYSTEM (%s) REPEATABLE (1)', t.base,
      least(100, 3000 / greatest(pages, 1))) INTO t.live;
    t.live := t.live * greatest(pages / 30, 1);
  END IF;
  SELECT sum(s.n_tup_ins), sum(s.n_tup_upd), sum(s.n_tup_del),
      sum(s.seq_tup_read + coalesce(s.idx_tup_fetch, 0))
    INTO t.inserted, t.updated, t.deleted, t.read
    FROM pg_stat_all_tables s WHERE s.relid IN (SELECT p.relid FROM pg_partition_tree(rel) p UNION
        SELECT rel);
  SELECT greatest(extract(epoch FROM now() - coalesce(d.stats_reset,
      pg_postmaster_start_time())) / 86400, 1 / 24.0) INTO t.days
    FROM pg_stat_database d WHERE d.datname = current_database();
  SELECT s.queries, s.calls, s.returned INTO t.queries, t.calls, t.returned
    FROM docpatterns._advise_statements(rel) s;
  RETURN t;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_table(regclass, text) IS
  'what is known of a table without its documents; errors of _pattern_table()';

-- Documents from all over the table, at most so many bytes of them.
CREATE FUNCTION docpatterns._advise_sample(t docpatterns.advise_table, sample int,
  most bigint DEFAULT 8388608) RETURNS bson[]
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  docs @extschema@.bson[];
  share float8 := sample / greatest(t.live, 1);
BEGIN
  -- fewer of them if they are large, as far as the size of the table tells
  share := least(share, most / greatest(t.disk, 1));
  EXECUTE format('SELECT array_agg(q.d) FROM (SELECT t.%1$I AS d, '
      'sum(@extschema@.bson_size(t.%1$I)) OVER (ROWS UNBOUNDED PRECEDING) AS bytes FROM (SELECT '
      's.%1$I FROM %2$s AS s%3$s WHERE s.%1$I IS NOT NULL LIMIT $1) t) q WHERE q.bytes <= $2',
        t.doc,
      t.base, CASE WHEN share < 0.8 AND t.live > 1000 THEN
        format(' TABLESAMPLE SYSTEM (%s) REPEATABLE (1)', 110 * greatest(share, 300 / t.live))
        ELSE '' END)
    INTO docs USING CASE WHEN share < 0.8 THEN 2 * sample ELSE sample + sample / 2 END, 2 * most;
  RETURN docs;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_sample(docpatterns.advise_table, int, bigint) IS
  'about so many documents of a table, or NULL';

-- The paths that declarations are about: their own, and those that they name in their options.
CREATE FUNCTION docpatterns._advise_declared(rel regclass, OUT pattern text, OUT path text)
  RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT d.pattern, p.path FROM docpatterns._pattern_declarations($1) d,
    LATERAL (SELECT d.name UNION SELECT e.value::text
      FROM @extschema@.bson_each(d.options) e
      WHERE e.key IN ('field', 'into_field', 'by', 'parent', 'ancestors', 'path', 'children',
        'revision_field', 'related_field', 'type_field', 'key_field', 'a_field', 'author')
        AND @extschema@.bson_typeof(e.value) = 'string'
    UNION SELECT x::text FROM @extschema@.bson_each(d.options) e,
        @extschema@.bson_elements(CASE WHEN @extschema@.bson_typeof(e.value) = 'array'
          THEN e.value ELSE '[]'::@extschema@.bson_value END) x
      WHERE e.key IN ('cold', 'paths') AND @extschema@.bson_typeof(x) = 'string') AS p (path)
  UNION ALL SELECT 'polymorphic', @extschema@.bson_get_text(l.options, 'merge_on')
    FROM @extschema@.pattern_list() l
    WHERE l.pattern = 'polymorphic_merge' AND $1 = ANY (l.sources)
$$;
COMMENT ON FUNCTION docpatterns._advise_declared(regclass) IS
  'patterns of a table, and the fields that they are about';
