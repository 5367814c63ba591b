-- Advice on arrays: those that grow without limit, that are very large in a few documents, and that
-- hold measurements. Growth is measured by the documents' ages, from their ObjectId or from a date
-- that nearly all of them have.
CREATE FUNCTION docpatterns._advise_arrays(t docpatterns.advise_table,
  facts docpatterns.advise_fact[], docs bson[]) RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f docpatterns.advise_fact;
  born docpatterns.advise_fact;
  m record;
  a record;
  grows boolean;
  kept int;
  moved bigint;
  field text;
  name text;
  figures text;
BEGIN
  SELECT (b).* INTO born FROM unnest(facts) b
    WHERE b.present >= 0.9 * t.n
      AND (b.type = 'date' OR b.path = '_id' AND b.type = 'objectId')
      AND b.path !~* '(expire|until|due|birth|updat|modif|delet|clos|end)'
    ORDER BY b.path <> '_id', b.path !~* 'creat|since|start|born|regist|join', b.path LIMIT 1;
  FOR f IN SELECT (q).* FROM unnest(facts) q WHERE q.type = 'array' AND NOT q.nested
      AND q.present >= 20 AND q.lengths[5] >= 50
      -- a vector has a fixed length, as has what a program cuts off
      AND (q.lengths[2] < q.lengths[5] OR q.items = 0 AND q.lengths[5] >= 100)
      AND q.path !~ '"|(^|[.])coordinates$' LOOP
    SELECT count(*) AS n, max(c.values) AS elements,
        bool_or(c.type = 'date' AND c.values = w.most) AS timed,
        bool_or(c.type IN ('int', 'long', 'double', 'decimal') AND c.different > 5
          AND c.path !~* '(_|[.]|I)(id|no)$') AS numbered,
        bool_and(c.type NOT IN ('object', 'array')
          AND (c.type <> 'string' OR c.different <= greatest(20, 0.02 * c.items))) AS flat,
        string_agg(format('%I %s', substr(c.path, length(f.path) + 2), docpatterns._advise_type(c)),
          ', ' ORDER BY c.values DESC, c.path) AS columns,
        string_agg(format(', (e OPERATOR(@extschema@.->) %L)::%s',
          substr(c.path, length(f.path) + 2), docpatterns._advise_type(c)), ''
          ORDER BY c.values DESC, c.path) AS fields,
        min(c.path) FILTER (WHERE c.type = 'date') AS at
      INTO m FROM unnest(facts) c, (SELECT max(k.values) AS most FROM unnest(facts) k
        WHERE k.parent = f.path) w WHERE c.parent = f.path;
    CONTINUE WHEN m.n = 0 AND f.items = 0;               -- arrays of arrays
    m.at := substr(m.at, length(f.path) + 2);
    SELECT corr(q.at, q.n) AS correlation, regr_slope(q.n, q.at) * 2592000 AS slope,
        avg(q.n) FILTER (WHERE q.late = 1) AS young, avg(q.n) FILTER (WHERE q.late = 0) AS old,
        (max(q.at) - min(q.at)) / 86400 AS days, max(q.bytes) AS bytes,
        array_agg(q.n ORDER BY q.n) AS lengths, array_agg(q.bytes ORDER BY q.n) AS sizes
      INTO a FROM (SELECT b.*, ntile(2) OVER (ORDER BY b.at) - 1 AS late FROM (
        SELECT @extschema@.bson_array_length(d OPERATOR(@extschema@.->) f.path) AS n,
          @extschema@.bson_size(d OPERATOR(@extschema@.->) f.path) AS bytes,
          extract(epoch FROM CASE WHEN @extschema@.bson_typeof(d, born.path) <> born.type THEN NULL
            WHEN born.type = 'objectId' THEN @extschema@.objectid_timestamp(
              (d OPERATOR(@extschema@.->) born.path)::@extschema@.objectid)
            ELSE docpatterns._advise_time(d OPERATOR(@extschema@.->) born.path) END) AS at
        FROM unnest(docs) d WHERE @extschema@.bson_typeof(d, f.path) = 'array') b) q;
    grows := coalesce(a.correlation <= -0.5 AND a.old >= 2 * a.young AND a.days >= 1, false);
    figures := format('the array has %s elements in the middle, %s in one document of a hundred, '
        '%s at most (%s)', f.lengths[2], f.lengths[4], f.lengths[5],
          pg_size_pretty(a.bytes::bigint))
      || CASE WHEN grows THEN format('; it grows: the older half of the documents (by %s) has %s, '
        'the younger %s, which is %s a month', born.path, round(a.old, 1), round(a.young, 1),
        round(-a.slope::numeric, 1)) ELSE '' END;
    kept := CASE WHEN m.n > 0 AND (grows OR f.lengths[2] >= 100) THEN 10
      WHEN NOT grows AND f.lengths[5] >= 10 * greatest(f.lengths[3], 10)
        THEN docpatterns._advise_round(greatest(f.lengths[4], 2 * f.lengths[3], 20))
      WHEN grows OR f.lengths[2] >= 1000
        THEN docpatterns._advise_round(greatest(f.lengths[2], 20)) END;
    CONTINUE WHEN kept IS NULL;
    moved := (SELECT sum(s * greatest(l - kept, 0) / greatest(l, 1)) / t.n * t.live
      FROM unnest(a.lengths, a.sizes) AS q (l, s));
    IF m.n > 0 AND (grows OR f.lengths[2] >= 100) AND m.timed AND m.numbered AND m.flat
        AND m.n <= 8 AND t.key IS NOT NULL THEN
      name := docpatterns._advise_name(t.rel, t.stem || '_' || replace(f.path, '.', '_'));
      field := (SELECT docpatterns._advise_type(k) FROM unnest(facts) k WHERE k.path = '_id');
      field := CASE WHEN EXISTS (SELECT FROM pg_attribute k WHERE k.attrelid = t.rel
          AND k.attname = t.key AND k.atttypid = '@extschema@.bson_value'::regtype)
          AND field IS NOT NULL THEN field ELSE (SELECT format_type(k.atttypid, k.atttypmod)
            FROM pg_attribute k WHERE k.attrelid = t.rel AND k.attname = t.key) END;
      RETURN QUERY SELECT 'bucket'::text, f.path,
        round(least(1, 0.5 + CASE WHEN grows THEN 0.2 ELSE 0 END
          + 0.1 * log(greatest(a.bytes, 1000) / 1000.0)), 2),
        figures || format('; its elements are measurements: a time ("%s"), numbers, and no text',
          m.at),
        format('SELECT @extschema@.bucket_create(%L, columns => %L, group_by => %L, time_field => '
          '%L, span => %L); INSERT INTO %s SELECT %s%s FROM %s AS d, @extschema@.bson_elements('
          'd.%I OPERATOR(@extschema@.->) %L) AS e WHERE @extschema@.bson_typeof(d.%I, %L) = '
          '''array'' AND @extschema@.bson_typeof(e) = ''object'';',
          name, format('%I %s, ', t.stem || '_id', field) || m.columns, ARRAY[t.stem || '_id'],
          m.at, docpatterns._advise_span(facts, f.path || '.' || m.at, t.n), name,
          CASE WHEN field = (SELECT format_type(k.atttypid, k.atttypmod)
            FROM pg_attribute k WHERE k.attrelid = t.rel AND k.attname = t.key) THEN
            format('d.%I', t.key) ELSE format('(d.%I)::%s', t.key, field) END, m.fields,
          t.base, t.doc, f.path, t.doc, f.path), t.rel,
        format('Programs insert into %s instead of adding to the array, and read it with SQL.',
          name),
        format('A measurement that is changed alone repacks its bucket; the array stays in the '
          'documents of "%s" until you remove it.', t.stem),
        (0.9 * moved)::bigint, NULL::numeric, NULL::numeric;
    ELSIF m.n > 0 AND (grows OR f.lengths[2] >= 100) AND t.key IS NOT NULL
        AND f.path !~ '[.]' THEN
      name := docpatterns._advise_name(t.rel, t.stem || '_' || replace(f.path, '.', '_'));
      field := t.stem || '_key';
      IF NOT EXISTS (SELECT FROM unnest(facts) k WHERE k.path = f.path || '.' || t.stem || '_id')
        THEN
        field := t.stem || '_id';
      END IF;
      RETURN QUERY SELECT 'subset'::text, f.path,
        round(least(1, 0.5 + CASE WHEN grows THEN 0.2 ELSE 0 END
          + 0.1 * log(greatest(a.bytes, 1000) / 1000.0)), 2), figures,
        format('SELECT @extschema@.subset_split(%L, field => %L, source => %L, on_field => %L, '
          'keep => %s, order_by => %s);', t.rel::text, f.path, name, field, kept,
          CASE WHEN m.at IS NULL THEN 'NULL' ELSE
            quote_literal(@extschema@.bson_build(m.at, -1)::text) END), t.rel,
        format('Readers of "%s" see %s elements; the others are documents of %s. Programs insert '
          'there instead of adding to the array.', f.path, kept, name),
        format('An insert there that is among the first %s also writes the %s.', kept, t.stem),
        moved, NULL::numeric, NULL::numeric;
    ELSIF NOT grows AND f.lengths[5] >= 10 * greatest(f.lengths[3], 10)
        OR grows OR f.lengths[2] >= 1000 THEN
      RETURN QUERY SELECT 'outlier'::text, f.path,
        round(least(1, 0.4 + CASE WHEN grows THEN 0.2 ELSE 0 END
          + 0.1 * log(greatest(a.bytes, 1000) / 1000.0)), 2), figures,
        format('SELECT @extschema@.outlier_enable(%L, field => %L, threshold => %s, %s);',
          t.rel::text, f.path, kept,
          CASE WHEN grows OR f.lengths[2] >= 1000 THEN format('keep => %s, stay => ''last''', kept)
            ELSE format('flag => %L', (SELECT 'has_extras' || CASE WHEN count(*) > 0 THEN '_' ||
              f.path
              ELSE '' END FROM unnest(facts) k WHERE k.path = 'has_extras')) END)
          || docpatterns._advise_build(t.rel, f.path), t.rel,
        format('Plain SQL sees the %s %s elements of a long array; the view "%s_whole" and the '
          'collection calls see all.', CASE WHEN grows OR f.lengths[2] >= 1000 THEN 'last' ELSE
          'first' END, kept, regexp_replace(t.base, '^.*[.]', '')),
        format('%s of the documents (%s) keep the rest in a side table.',
          docpatterns._advise_percent(
          (SELECT count(*) FROM unnest(a.lengths) l WHERE l > kept), t.n), f.path),
        moved, NULL::numeric, NULL::numeric;
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_arrays(docpatterns.advise_table, docpatterns.advise_fact[],
  bson[]) IS 'advice on arrays: outlier, subset, bucket';

-- The span of a bucket that holds some hundred measurements of a group.
CREATE FUNCTION docpatterns._advise_span(facts docpatterns.advise_fact[], at text, groups numeric)
  RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce((SELECT s FROM unnest('{1 minute,1 hour,1 day,7 days,30 days}'::text[])
      WITH ORDINALITY AS u (s, n)
      WHERE extract(epoch FROM s::interval) * q.n / greatest(groups, 1) / q.seconds >= 100
      ORDER BY u.n LIMIT 1), '365 days')
  FROM (SELECT f.values::numeric AS n, greatest(extract(epoch FROM
          docpatterns._advise_time(f.some_values[cardinality(f.some_values)])
          - docpatterns._advise_time(f.some_values[1])),
          1) AS seconds
        FROM unnest(facts) f WHERE f.path = at) q
$$;
COMMENT ON FUNCTION docpatterns._advise_span(docpatterns.advise_fact[], text, numeric) IS
  'a span of buckets for a path of times and a number of groups';
