-- Recommends patterns for a table with documents, from its data and from the server's statement
-- statistics. Each kind of advice has its own function over a sample of the documents; declared
-- patterns are skipped.

CREATE TYPE pattern_advice AS (pattern text, path text, weight numeric, why text, statement text);
COMMENT ON TYPE pattern_advice IS 'a row of pattern_advise()';

-- The fields of a sample: members of documents, and of documents in them. Names that would need
-- quotes are skipped.
CREATE FUNCTION docpatterns._advise_fields(docs bson[], OUT doc bigint, OUT path text,
  OUT type text, OUT value bson_value) RETURNS SETOF record
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  WITH top AS (
    SELECT d.i, e.key, @extschema@.bson_typeof(e.value) AS type, e.value
    FROM unnest(docs) WITH ORDINALITY AS d (doc, i), @extschema@.bson_each(d.doc) AS e
    WHERE e.key ~ '^[[:alpha:]_][[:alnum:]_-]*$')
  SELECT t.i, t.key, t.type, t.value FROM top t
  UNION ALL
  SELECT t.i, t.key || '.' || e.key, @extschema@.bson_typeof(e.value), e.value
  FROM top t, @extschema@.bson_each(CASE WHEN t.type = 'object' THEN t.value::@extschema@.bson
      END) AS e
  WHERE t.type = 'object' AND e.key ~ '^[[:alpha:]_][[:alnum:]_-]*$'
$$;
COMMENT ON FUNCTION docpatterns._advise_fields(bson[]) IS
  'the members of documents and of documents in them: number of the document, path, type and value';

-- The next greater number with one significant digit.
CREATE FUNCTION docpatterns._advise_round(n numeric) RETURNS int
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT (CASE WHEN $1 <= 1 * p THEN 1 WHEN $1 <= 2 * p THEN 2 WHEN $1 <= 5 * p THEN 5 ELSE 10
      END * p)::int
  FROM (SELECT 10 ^ floor(log(greatest($1, 1))) AS p) q
$$;
COMMENT ON FUNCTION docpatterns._advise_round(numeric) IS
  'the least of 1, 2, 5, 10, 20, 50 and so on that is not below a number';

-- Arrays that grow without limit, and arrays that are very large in a few documents. Growth is
-- measured by the documents' ages, from their ObjectId or from a date that all of them have.
CREATE FUNCTION docpatterns._advise_arrays(rel regclass, stem text, docs bson[])
  RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  a record;
  born text;
  members record;
  grows boolean;
  found text;
  kind text;
BEGIN
  SELECT f.path INTO born FROM docpatterns._advise_fields(docs) f
    WHERE f.type IN ('date', 'objectId') AND (f.type = 'date' OR f.path = '_id')
    GROUP BY f.path HAVING count(*) >= 0.9 * cardinality(docs)
      ORDER BY f.path <> '_id', f.path !~* 'creat|since|start|born|regist|join', f.path LIMIT 1;
  FOR a IN
    WITH arrays AS (
      SELECT f.path, @extschema@.bson_array_length(f.value) AS n,
        @extschema@.bson_size(f.value) AS bytes,
             @extschema@.bson_typeof(docs[f.doc], f.path || '.0') AS element,
             CASE WHEN born = '_id' THEN
               @extschema@.objectid_timestamp((docs[f.doc] OPERATOR(@extschema@.->)
                   '_id')::@extschema@.objectid)
                  WHEN born IS NOT NULL AND @extschema@.bson_typeof(docs[f.doc], born) = 'date' THEN
                    (docs[f.doc] OPERATOR(@extschema@.->) born)::timestamptz END AS at
      FROM docpatterns._advise_fields(docs) f WHERE f.type = 'array')
    SELECT q.path, count(*) AS documents, percentile_disc(0.5) WITHIN GROUP (ORDER BY q.n) AS p50,
      percentile_disc(0.9) WITHIN GROUP (ORDER BY q.n) AS p90,
           percentile_disc(0.99) WITHIN GROUP (ORDER BY q.n) AS p99, max(q.n) AS longest,
           max(q.bytes) AS bytes,
           mode() WITHIN GROUP (ORDER BY q.element) AS element,
           corr(extract(epoch FROM q.at), q.n) AS correlation,
           regr_slope(q.n, extract(epoch FROM q.at) / 2592000) AS slope,
           avg(q.n) FILTER (WHERE q.late = 1) AS young, avg(q.n) FILTER (WHERE q.late = 0) AS old,
           extract(epoch FROM max(q.at) - min(q.at)) / 86400 AS days
    FROM (SELECT b.*, ntile(2) OVER (PARTITION BY b.path ORDER BY b.at) - 1 AS late FROM arrays b) q
    GROUP BY q.path HAVING count(*) >= 20 AND max(q.n) >= 50
  LOOP
    grows := coalesce(a.correlation <= -0.5 AND a.old >= 2 * a.young AND a.days >= 1, false);
    found := NULL;
    IF a.element = 'object' AND (grows OR a.p50 >= 100) THEN
      -- kind of elements: measurements have a time, a number and little else
      SELECT bool_or(m.type = 'date') AND bool_or(m.type IN ('int', 'long', 'double', 'decimal'))
        AND count(DISTINCT m.path) <= 6
        AND bool_and(m.type <> 'object' AND m.type <> 'array') AS measured,
             string_agg(DISTINCT format('%I %s', m.path, CASE m.type WHEN 'date' THEN 'timestamptz'
                 WHEN 'int' THEN 'int' WHEN 'long' THEN 'bigint' WHEN 'double' THEN 'float8'
                 WHEN 'decimal' THEN 'numeric' WHEN 'bool' THEN 'boolean' ELSE 'text' END),
               ', ') AS columns,
             min(m.path) FILTER (WHERE m.type = 'date') AS at
        INTO members
        FROM docpatterns._advise_fields(ARRAY(SELECT e.element::@extschema@.bson
              FROM unnest(docs) d (doc),
              @extschema@.bson_elements(d.doc OPERATOR(@extschema@.->) a.path) AS e (element)
               WHERE @extschema@.bson_typeof(d.doc, a.path) = 'array'
                     AND @extschema@.bson_typeof(e.element) = 'object' LIMIT 1000)) m
        WHERE m.path !~ '[.]';
      IF members.measured THEN
        kind := 'bucket';
        found := format('SELECT @extschema@.bucket_create(%L, columns => %L, group_by => %L, '
            'time_field => %L);', stem || '_' || replace(a.path, '.', '_'),
                        format('%I_id text, ', stem) || members.columns, ARRAY[stem || '_id'],
                        members.at);
      ELSE
        kind := 'subset';
        found := format('SELECT @extschema@.subset_split(%L, field => %L, source => %L, on_field '
            '=> %L, keep => 10, order_by => %s);', rel::text, a.path,
            stem || '_' || replace(a.path, '.', '_'), stem || '_id',
                        coalesce(quote_literal(@extschema@.bson_build(members.at, -1)::text),
                          'NULL'));
      END IF;
    ELSIF NOT grows AND a.longest >= 10 * greatest(a.p90, 10) THEN
      kind := 'outlier';
      found := format('SELECT @extschema@.outlier_enable(%L, field => %L, threshold => %s, flag => '
          '''has_extras'');', rel::text, a.path,
          docpatterns._advise_round(greatest(a.p99, 2 * a.p90, 20)));
    ELSIF grows OR a.p50 >= 1000 THEN
      kind := 'outlier';
      found := format('SELECT @extschema@.outlier_enable(%L, field => %L, threshold => %s, keep => '
          '%s, stay => ''last'');', rel::text, a.path,
          docpatterns._advise_round(greatest(a.p50, 20)),
          docpatterns._advise_round(greatest(a.p50, 20)));
    END IF;
    CONTINUE WHEN found IS NULL;
    RETURN QUERY SELECT kind, a.path,
      round(least(1, 0.4 + CASE WHEN grows THEN 0.2 ELSE 0
          END + 0.1 * log(greatest(a.bytes, 1000) / 1000.0)), 2),
      format('the array has %s elements in the middle, %s in one document of a hundred, %s at most '
        '(%s)', a.p50, a.p99, a.longest, pg_size_pretty(a.bytes::bigint)) ||
        CASE WHEN grows THEN format('; it grows: the older half of the documents (by %s) has %s, '
            'the younger %s, which is %s a month', born, round(a.old, 1), round(a.young, 1),
            round(-a.slope::numeric, 1)) ELSE '' END,
      found;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_arrays(regclass, text, bson[]) IS
  'advice on arrays: outlier, subset, bucket; stem is the name of one document';

-- Many similar fields, and many fields that few documents have.
CREATE FUNCTION docpatterns._advise_names(rel regclass, docs bson[]) RETURNS SETOF pattern_advice
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH names AS (
    SELECT f.path, count(*)::numeric / cardinality(docs) AS presence,
      mode() WITHIN GROUP (ORDER BY f.type) AS type
    FROM docpatterns._advise_fields(docs) f WHERE f.path !~ '[.]' AND f.path <> '_id'
      AND f.type NOT IN ('object', 'array') GROUP BY 1),
  families AS (
    SELECT substring(n.path from '^([[:alpha:]]+)_') AS prefix, count(*) AS members,
      avg(n.presence) AS presence, array_agg(n.path ORDER BY n.path) AS paths
    FROM names n WHERE n.path ~ '^[[:alpha:]]+_.' GROUP BY 1, n.type HAVING count(*) >= 5),
  rare AS (
    SELECT count(*) AS members, avg(n.presence) AS presence,
      array_agg(n.path ORDER BY n.path) AS paths
    FROM names n WHERE n.presence <= 0.3
      AND NOT EXISTS (SELECT FROM families a WHERE n.path = ANY (a.paths)))
  SELECT 'attribute', a.prefix || '_*',
    round(least(1, 0.3 + a.members / 50.0 + (1 - a.presence) * 0.3), 2),
         format('%s fields begin with "%s_" (%s), each in %s %% of the documents: an index for '
           'each would be small and many', a.members, a.prefix,
                array_to_string(a.paths[1:3], ', ') || CASE WHEN a.members > 3 THEN ', ..' ELSE ''
                END, round(100 * a.presence)),
         format('SELECT @extschema@.attribute_enable(%L, into_field => %L, pattern => %L, '
           'value_field => ''value'');', rel::text, a.prefix || 's', a.prefix || '_{name}')
  FROM families a
  UNION ALL
  SELECT 'attribute', NULL, round(least(0.9, 0.2 + r.members / 100.0), 2),
         format('%s fields are in %s %% of the documents each (%s, ..)', r.members,
           round(100 * r.presence, 1), array_to_string(r.paths[1:3], ', ')),
         format('SELECT @extschema@.attribute_enable(%L, into_field => ''attributes'', paths => '
           '%L, name_field => ''k'', value_field => ''v'');', rel::text, r.paths)
  FROM rare r WHERE r.members >= 20
$$;
COMMENT ON FUNCTION docpatterns._advise_names(regclass, bson[]) IS
  'advice on families of fields and on rare ones: attribute';

-- Statements from pg_stat_statements about this table, if it is installed and may be read.
CREATE FUNCTION docpatterns._advise_statements(rel regclass, OUT query text, OUT calls bigint)
  RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  place text := (SELECT quote_ident(n.nspname) FROM pg_extension e
      JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_stat_statements');
BEGIN
  IF place IS NULL THEN
    RETURN;
  END IF;
  BEGIN
    RETURN QUERY EXECUTE format('SELECT s.query, s.calls FROM %s.pg_stat_statements s WHERE s.dbid '
        '= (SELECT oid FROM pg_database WHERE datname = current_database()) AND s.query ~* $1 AND '
        's.calls > 0', place)
      USING '[[:<:]]' || (SELECT regexp_replace(c.relname, '([^[:alnum:]_])', E'\\\\\\1', 'g')
          FROM pg_class c WHERE c.oid = rel) || '[[:>:]]';
  EXCEPTION WHEN object_not_in_prerequisite_state OR insufficient_privilege OR undefined_table THEN
    RETURN;                     -- it is not loaded, or not for this user
  END;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_statements(regclass) IS
  'statements that name a table, as pg_stat_statements counted them; no rows without it';

-- Large documents that are mostly not read.
CREATE FUNCTION docpatterns._advise_size(rel regclass, docs bson[]) RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  total numeric := (SELECT sum(@extschema@.bson_size(d)) FROM unnest(docs) d);
  counted bigint := (SELECT sum(s.calls) FROM docpatterns._advise_statements(rel) s);
  f record;
  used bigint;
  cold text[] := '{}';
  share numeric := 0;
BEGIN
  IF total / cardinality(docs) < 2000 THEN
    RETURN;
  END IF;
  FOR f IN SELECT q.path, sum(@extschema@.bson_size(q.value)) / total AS part
    FROM docpatterns._advise_fields(docs) q
           WHERE q.path !~ '[.]' AND q.path <> '_id' GROUP BY 1
             HAVING sum(@extschema@.bson_size(q.value)) >= 0.1 * total ORDER BY 2 DESC LOOP
    used := (SELECT sum(s.calls) FROM docpatterns._advise_statements(rel) s
        WHERE position(f.path IN s.query) > 0);
    CONTINUE WHEN coalesce(used, 0) > 0.1 * coalesce(counted, 0);
    cold := cold || f.path;
    share := share + f.part;
  END LOOP;
  IF share >= 0.5 THEN
    RETURN QUERY SELECT 'subset_fields'::text, array_to_string(cold, ', '),
      round(least(0.9, 0.2 + CASE WHEN counted > 0 THEN 0.3 ELSE 0 END + share * 0.3), 2),
      format('documents have %s on average, %s %% of it in %s field%s',
        pg_size_pretty((total / cardinality(docs))::bigint), round(100 * share), cardinality(cold),
        CASE WHEN cardinality(cold) > 1 THEN 's' ELSE '' END) ||
        CASE WHEN counted > 0 THEN format(' that less than a tenth of %s counted statements name',
            counted) ELSE ': worth it if most reads do without (pg_stat_statements would tell)' END,
      format('SELECT @extschema@.subset_fields_enable(%L, cold => %L);', rel::text, cold);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_size(regclass, bson[]) IS
  'advice on large documents: subset of fields';

-- Fields with keys of other tables with documents, or of the same one.
CREATE FUNCTION docpatterns._advise_links(rel regclass, docs bson[]) RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f record;
  other record;
  hits bigint;
  joins bigint;
  shown text[];
BEGIN
  FOR f IN SELECT q.path, q.type, array_agg(DISTINCT q.value) AS sought FROM (
             SELECT v.path, v.type, v.value, row_number() OVER (PARTITION BY v.path, v.type) AS n
               FROM docpatterns._advise_fields(docs) v
             WHERE v.path <> '_id' AND v.type IN ('int', 'long', 'string', 'objectId', 'binData')) q
           WHERE q.n <= 200 GROUP BY q.path, q.type HAVING count(*) >= 20
             AND count(DISTINCT q.value) >= 5 ORDER BY 1 LOOP
    FOR other IN SELECT c.oid::regclass AS rel, format('%I.%I', n.nspname, c.relname) AS base,
      c.relname, a.attname AS key, d.attname AS doc
                 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                   JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary AND i.indnkeyatts = 1
                   JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
                     AND (a.atttypid = '@extschema@.bson_value'::regtype
                       OR EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid
                         AND t.tgfoid = 'docpatterns.collection_set_id'::regproc
                         AND t.tgattr[0] = a.attnum))
                   JOIN pg_attribute d ON d.attrelid = c.oid
                     AND d.atttypid = '@extschema@.bson'::regtype AND NOT d.attisdropped
                 WHERE c.relkind IN ('r', 'p') AND c.relnamespace = (SELECT b.relnamespace
                     FROM pg_class b WHERE b.oid = _advise_links.rel)
                   AND has_table_privilege(c.oid, 'SELECT') AND NOT row_security_active(c.oid)
                     ORDER BY c.relname LOOP
      -- small numbers and words match keys by chance: the field's name must match too, unless the
      -- values are ids
      CONTINUE WHEN f.type NOT IN ('objectId', 'binData')
        AND f.path !~* CASE WHEN other.rel = rel THEN
          '(^|[._])(parent|super|upper|boss|manager|leader|root|reports_?to|part_?of|belongs_?to)'
          ELSE regexp_replace(other.relname, '(ie|e?)s$', '') END;
      EXECUTE format('SELECT count(*) FROM %s AS t WHERE t.%I OPERATOR(@extschema@.=) ANY ($1)',
          other.base, other.key) INTO hits USING f.sought;
      CONTINUE WHEN hits < 0.8 * cardinality(f.sought);
      IF other.rel = rel THEN
        RETURN QUERY SELECT 'tree'::text, f.path, 0.6::numeric,
          format('%s of %s values at "%s" are keys of the table: documents refer to each other',
            hits, cardinality(f.sought), f.path),
          format('SELECT @extschema@.tree_enable(%L, parent => %L, ancestors => ''ancestors'');',
            rel::text, f.path);
        CONTINUE;
      END IF;
      joins := (SELECT sum(s.calls) FROM docpatterns._advise_statements(rel) s
          WHERE s.query ~* ('[[:<:]]' || regexp_replace(other.relname, '([^[:alnum:]_])',
              E'\\\\\\1', 'g') || '[[:>:]]'));
      EXECUTE format('SELECT array_agg(path ORDER BY n DESC, path) FROM (SELECT q.path, count(*) '
          'AS n FROM docpatterns._advise_fields(ARRAY(SELECT t.%I FROM %s AS t LIMIT 100)) q '
                     'WHERE q.type = ''string'' AND q.path !~ ''[.]'' AND '
                         '@extschema@.bson_size(q.value) < 60 GROUP BY 1 ORDER BY q.path !~* '
                         '''name|title'', 2 DESC LIMIT 1) p', other.doc, other.base) INTO shown;
      RETURN QUERY SELECT 'reference'::text, f.path,
        round(CASE WHEN joins > 0 THEN least(1, 0.5 + 0.1 * log(greatest(joins, 1)::numeric))
          ELSE 0.3 END, 2),
        format('%s of %s values at "%s" are keys of %s', hits, cardinality(f.sought), f.path,
          other.rel) ||
          CASE WHEN joins > 0 THEN format(', and %s counted statements name both tables', joins)
            ELSE ': worth it if reads join to show a few fields of it' END,
        format('SELECT @extschema@.reference_enable(%L, field => %L, source => %L, live => %L);',
          rel::text, f.path, other.rel::text, coalesce(shown, '{}'));
    END LOOP;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_links(regclass, bson[]) IS
  'advice on fields with keys of documents: extended reference, tree';

-- Documents of several kinds, and documents of several shapes without a field that distinguishes
-- them.
CREATE FUNCTION docpatterns._advise_shapes(rel regclass, docs bson[]) RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found record;
  told boolean := false;
  m record;
BEGIN
  FOR found IN
    WITH fields AS MATERIALIZED (SELECT f.doc, f.path, f.type, f.value
        FROM docpatterns._advise_fields(docs) f WHERE f.path !~ '[.]'),
      candidates AS (SELECT f.path, count(DISTINCT f.value) AS kinds FROM fields f
        WHERE f.type = 'string' GROUP BY 1
                     HAVING count(*) >= 0.95 * cardinality(docs)
                       AND count(DISTINCT f.value) BETWEEN 2 AND 20),
      kinds AS (SELECT c.path, f.value, count(*) AS n, array_agg(f.doc) AS docs FROM candidates c
        JOIN fields f ON f.path = c.path GROUP BY 1, 2
        HAVING count(*) >= greatest(5, 0.01 * cardinality(docs))),
      has AS (SELECT k.path, k.value, o.path AS other,
        count(DISTINCT o.doc)::numeric / k.n AS presence FROM kinds k
        JOIN fields f ON f.path = k.path AND f.value OPERATOR(@extschema@.=) k.value
              JOIN fields o ON o.doc = f.doc AND o.path <> k.path GROUP BY 1, 2, 3, k.n),
      differ AS (SELECT h.path, h.other FROM has h GROUP BY 1, 2 HAVING max(h.presence) >= 0.9
        AND (min(h.presence) <= 0.05
          OR count(*) < (SELECT count(*) FROM kinds q WHERE q.path = h.path)))
    SELECT d.path, (SELECT count(*) FROM kinds q WHERE q.path = d.path) AS kinds,
      count(*) AS fields, array_agg(d.other ORDER BY d.other) AS others
    FROM differ d GROUP BY 1 HAVING count(*) >= 2 ORDER BY 3 DESC LIMIT 1
  LOOP
    told := true;
    RETURN QUERY SELECT 'polymorphic'::text, found.path,
      round(least(0.9, 0.3 + found.fields / 20.0), 2),
      format('"%s" has %s values, and %s fields come with some of them only (%s)', found.path,
        found.kinds, found.fields, array_to_string(found.others[1:4], ', ') || CASE
        WHEN found.fields > 4 THEN ', ..' ELSE '' END),
      format('SELECT @extschema@.polymorphic_enable(%L, by => %L, unknown => ''accept'');',
        rel::text, found.path);
  END LOOP;
  SELECT count(*) AS n, array_agg(q.path ORDER BY q.path) AS paths INTO m FROM (
    SELECT f.path FROM (
      SELECT g.path, CASE WHEN g.type IN ('int', 'long', 'double', 'decimal') THEN 'number' ELSE
        g.type END AS type, count(*) AS n
      FROM docpatterns._advise_fields(docs) g WHERE g.type NOT IN ('null', 'undefined')
          AND g.path <> '_id' GROUP BY 1, 2) f
    WHERE f.n >= 0.05 * cardinality(docs) GROUP BY f.path HAVING count(*) > 1) q;
  IF m.n > 0 AND NOT told THEN
    RETURN QUERY SELECT 'schema_versioning'::text, array_to_string(m.paths, ', '),
      round(least(0.8, 0.3 + m.n / 10.0), 2),
      format('%s path%s of more than one type, in at least one document of twenty each: shapes '
        'that came one after the other', m.n, CASE WHEN m.n > 1 THEN 's are' ELSE ' is' END),
      format('SELECT @extschema@.schema_versioning_enable(%L, field => ''schema_version'', current '
        '=> 1);', rel::text);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_shapes(regclass, bson[]) IS
  'advice on mixed shapes: polymorphic, schema versioning';

-- Counters with many concurrent writers, and rows that are measurements.
CREATE FUNCTION docpatterns._advise_writes(rel regclass, stem text, docs bson[])
  RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s record;
  f record;
BEGIN
  SELECT sum(t.n_tup_ins) AS ins, sum(t.n_tup_upd) AS upd, sum(t.n_live_tup) AS live,
    sum(t.n_tup_hot_upd) AS hot INTO s
    FROM pg_stat_all_tables t WHERE t.relid IN (SELECT p.relid FROM pg_partition_tree(rel) p UNION
        SELECT rel);
  IF s.upd >= 10000 AND s.upd >= 100 * greatest(s.live, 1) THEN
    FOR f IN SELECT q.path, count(DISTINCT q.value) AS n,
      (SELECT sum(c.calls) FROM docpatterns._advise_statements(rel) c
        WHERE position(q.path IN c.query) > 0 AND c.query ~ 'inc|[+]|UPDATE|update') AS calls
             FROM docpatterns._advise_fields(docs) q WHERE q.type IN ('int', 'long')
               AND q.path !~ '[.]' AND q.path <> '_id'
               AND q.path !~* '(^|_)(id|year|version|revision)$'
             GROUP BY 1 HAVING count(*) >= 0.5 * cardinality(docs)
               ORDER BY 3 DESC NULLS LAST, 2 DESC LIMIT 2 LOOP
      RETURN QUERY SELECT 'approximation'::text, f.path,
        round(least(0.9, 0.3 + CASE WHEN f.calls > 0 THEN 0.3 ELSE 0
            END + 0.1 * log(s.upd::numeric / greatest(s.live, 1) / 100)), 2),
        format('%s updates of %s rows: %s to a row, which queue on it', s.upd, s.live,
          round(s.upd::numeric / greatest(s.live, 1))) || CASE WHEN f.calls > 0 THEN
        format('; %s counted statements change "%s"', f.calls, f.path) ELSE
        format('; "%s" is a number that differs from row to row', f.path) END,
        format('SELECT @extschema@.approximation_enable(%L, field => %L, slots => 16);', rel::text,
          f.path);
    END LOOP;
  END IF;
  IF s.live >= 10000 AND s.upd <= 0.01 * greatest(s.ins, 1)
      AND (SELECT avg(@extschema@.bson_size(d)) < 400 FROM unnest(docs) d) THEN
    SELECT string_agg(format('%I %s', q.path, CASE q.type WHEN 'date' THEN 'timestamptz'
          WHEN 'int' THEN 'int' WHEN 'long' THEN 'bigint' WHEN 'double' THEN 'float8'
          WHEN 'decimal' THEN 'numeric' WHEN 'bool' THEN 'boolean' ELSE 'text' END), ', '
        ORDER BY q.place) AS columns,
           min(q.path) FILTER (WHERE q.type = 'date' AND q.n >= 0.5 * cardinality(docs)) AS at,
           (array_agg(q.path ORDER BY q.n) FILTER (WHERE q.type IN ('int', 'long', 'string')
               AND q.n <= 0.5 * cardinality(docs)))[1] AS device,
           bool_or(q.type IN ('int', 'long', 'double', 'decimal')) AS measured
      INTO f
      FROM (SELECT v.path, mode() WITHIN GROUP (ORDER BY v.type) AS type,
          count(DISTINCT v.value) AS n, min(v.doc) AS place FROM docpatterns._advise_fields(docs) v
            WHERE v.path !~ '[.]' AND v.path <> '_id' AND v.type NOT IN ('object', 'array')
                GROUP BY 1 HAVING count(*) >= 0.9 * cardinality(docs)) q;
    IF f.at IS NOT NULL AND f.device IS NOT NULL AND f.measured THEN
      RETURN QUERY SELECT 'bucket'::text, f.at,
        round(least(0.9, 0.3 + 0.1 * log(s.live / 1000.0)), 2),
        format('%s small documents with a time ("%s") that come and hardly change (%s updates): '
          'measurements of "%s"', s.live, f.at, s.upd, f.device),
        format('SELECT @extschema@.bucket_create(%L, columns => %L, group_by => %L, time_field => '
          '%L);', stem || '_buckets', f.columns, ARRAY[f.device], f.at);
    END IF;
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_writes(regclass, text, bson[]) IS
  'advice on hot counters and on measurements: approximation, bucket';

CREATE FUNCTION pattern_advise(rel regclass, sample int DEFAULT 5000, doc_column text DEFAULT NULL)
  RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  base text;
  doc text;
  live float8;
  stem text;
  docs @extschema@.bson[];
BEGIN
  IF rel IS NULL OR sample IS NULL THEN
    RAISE EXCEPTION '% must not be null', CASE WHEN rel IS NULL THEN 'the table' ELSE 'sample' END
      USING ERRCODE = 'null_value_not_allowed';
  ELSIF sample < 1 OR sample > 100000 THEN
    RAISE EXCEPTION 'sample must be between 1 and 100000' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT p.base, p.doc, regexp_replace(p.table_name, 's$', '') INTO base, doc, stem
    FROM docpatterns._pattern_table(rel, doc_column) p;
  live := (SELECT sum(c.reltuples) FROM pg_class c
      WHERE c.oid IN (SELECT p.relid FROM pg_partition_tree(rel) p WHERE p.isleaf UNION SELECT rel)
      AND c.reltuples > 0);
  -- documents from all over the table, at most 64 MB
  EXECUTE format('SELECT array_agg(q.d) FROM (SELECT t.%1$I AS d, '
      'sum(@extschema@.bson_size(t.%1$I)) OVER (ROWS UNBOUNDED PRECEDING) AS bytes FROM (SELECT '
      's.%1$I FROM %2$s AS s%3$s WHERE s.%1$I IS NOT NULL LIMIT $1) t) q WHERE q.bytes <= 67108864',
                 doc, base, CASE WHEN live > 4 * sample THEN
                 format(' TABLESAMPLE SYSTEM (%s) REPEATABLE (1)',
                   least(100, 300.0 * sample / live)) ELSE '' END)
    INTO docs USING sample;
  IF docs IS NULL OR cardinality(docs) < 20 THEN
    RETURN;                     -- nothing can be told of so few
  END IF;
  RETURN QUERY
    WITH advice AS MATERIALIZED (
      SELECT * FROM docpatterns._advise_arrays(rel, stem, docs)
      UNION ALL SELECT * FROM docpatterns._advise_names(rel, docs)
      UNION ALL SELECT * FROM docpatterns._advise_size(rel, docs)
      UNION ALL SELECT * FROM docpatterns._advise_links(rel, docs)
      UNION ALL SELECT * FROM docpatterns._advise_shapes(rel, docs)
      UNION ALL SELECT * FROM docpatterns._advise_writes(rel, stem, docs))
    SELECT a.* FROM advice a
    WHERE NOT (a.pattern = 'subset_fields'
        AND EXISTS (SELECT FROM advice b WHERE b.path = a.path
          AND b.pattern IN ('subset', 'bucket', 'outlier')))
      AND NOT EXISTS (SELECT FROM docpatterns._pattern_declarations(rel) d
                      WHERE a.pattern IN ('outlier', 'subset')
                          AND @extschema@.bson_get_text(d.options, 'field') = a.path
                        OR d.pattern = a.pattern AND (d.name = a.path OR a.path IS NULL
                          OR a.pattern = 'schema_versioning' OR a.path ~ '[*]$|,'
                          OR @extschema@.bson_get_text(d.options, 'field') = a.path
                          OR @extschema@.bson_get_text(d.options, 'by') = a.path
                          OR @extschema@.bson_get_text(d.options, 'parent') = a.path))
    ORDER BY a.weight DESC, a.pattern, a.path;
END
$$;
COMMENT ON FUNCTION pattern_advise(regclass, int, text) IS
  'Which patterns the documents of a table suggest, the most important first: the pattern, the '
  'path, a weight from 0 to 1, the reason, and the statement to run. No rows: plain documents '
  'suffice. Reads a sample of the documents, keys of other tables of the schema, '
  'pg_stat_all_tables and pg_stat_statements. Needs SELECT. Errors: 22004, 22023 a bad sample, '
  '42501, 42703 or 55000 a table that cannot have a pattern';
