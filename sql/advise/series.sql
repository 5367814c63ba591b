-- Advice on what is written: rows that are measurements, and counters that are updated again and
-- again.

CREATE FUNCTION docpatterns._advise_series(t docpatterns.advise_table,
  facts docpatterns.advise_fact[], docs bson[]) RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f docpatterns.advise_fact;
  g docpatterns.advise_fact;
  c record;
  measured text[];
  seen record;
  device text;
  why text;
  name text;
  packed numeric;
  senders constant text := '(sensor|device|meter|station|host|machine|vehicle|source|probe|node|'
    'series|tag)';
BEGIN
  IF t.live < 10000 OR coalesce(t.updated, 0) > 0.01 * greatest(t.inserted, t.live)
      OR t.bytes >= 1000 THEN
    RETURN;
  END IF;
  SELECT (q).* INTO f FROM unnest(facts) q WHERE NOT q.nested AND q.path !~ '"'
    AND q.type = 'date' AND q.type_docs >= 0.98 * t.n AND q.different >= 10
    ORDER BY q.different DESC, q.path LIMIT 1;
  -- money, quantities and ratings of orders and reviews are no measurements
  measured := ARRAY(SELECT q.path FROM unnest(facts) q WHERE NOT q.nested AND q.path <> '_id'
    AND q.type IN ('int', 'long', 'double', 'decimal') AND q.present >= 0.5 * t.n
    AND q.different > 5 AND q.path !~* '(^|[._])(id|no|nr|number|code|zip|year|version)$'
    AND q.path !~ 'Id$' AND q.path !~* ('(^|[._])(total|price|amount|cost|quantity|qty|sum|tax|'
      'discount|balance|rating|stars|score)')
    ORDER BY 1);
  IF f.path IS NULL OR cardinality(measured) = 0 OR EXISTS (SELECT FROM unnest(facts) q
      WHERE q.type = 'string' AND NOT q.nested AND q.path <> '_id' AND q.different > 0.5 * t.n
        AND q.present >= 0.5 * t.n) THEN
    RETURN;                     -- nothing is measured, or each row has a text of its own
  END IF;
  -- what sends: values that repeat, each at most once at a time
  FOR g IN SELECT (q).* FROM unnest(facts) q WHERE NOT q.nested AND q.path !~ '"'
      AND q.path <> '_id' AND q.type IN ('int', 'long', 'string', 'objectId', 'binData')
      AND q.type_docs >= 0.98 * t.n AND q.different <= 0.5 * t.n
      AND q.path !~* ('(customer|client|user|account|order|product|buyer|author|member|patient|'
        'invoice)')
      ORDER BY q.path !~* senders, q.path = ANY (measured), q.different DESC, q.path LIMIT 3 LOOP
    WITH steps AS MATERIALIZED (
      SELECT extract(epoch FROM v.at - lag(v.at) OVER (PARTITION BY v.sender ORDER BY v.at)) AS step
      FROM (SELECT d OPERATOR(@extschema@.->) g.path AS sender,
          docpatterns._advise_time(d OPERATOR(@extschema@.->) f.path) AS at
        FROM unnest(docs[1:2000]) d
        WHERE @extschema@.bson_typeof(d, f.path) = 'date') v),
    usual AS MATERIALIZED (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY s.step) AS usual
      FROM steps s)
    SELECT avg((s.step > 0)::int) AS single, avg((s.step BETWEEN 0.7 * (SELECT u.usual FROM usual u)
          AND 1.3 * (SELECT u.usual FROM usual u))::int) AS steady INTO seen
      FROM steps s WHERE s.step IS NOT NULL;
    CONTINUE WHEN seen.single IS NULL OR seen.single < 0.95;
    why := CASE
      WHEN t.n >= 2 * f.different THEN format('%s rows have the same time', round(1.0 * t.n
        / f.different, 1))
      WHEN seen.steady >= 0.6 THEN format('%s of them come at the same interval',
        docpatterns._advise_percent(seen.steady, 1))
      WHEN g.path ~* senders THEN 'each at times of its own' END;
    CONTINUE WHEN why IS NULL OR g.path = ANY (measured) AND g.different > 0.1 * t.n;
    device := g.path;
    EXIT;
  END LOOP;
  IF device IS NULL THEN
    RETURN;
  END IF;
  -- each field without fields is a column
  SELECT string_agg(format('%I %s', replace(q.path, '.', '_'), docpatterns._advise_type(q)), ', '
        ORDER BY q.path <> device, q.path <> f.path, n) AS columns,
      string_agg(format('(d.%I OPERATOR(@extschema@.->) %L)::%s', t.doc, q.path,
        docpatterns._advise_type(q)), ', ' ORDER BY q.path <> device, q.path <> f.path, n) AS fields
    INTO c FROM generate_subscripts(facts, 1) AS n, unnest(facts[n:n]) AS q
    WHERE NOT q.nested AND q.path !~ '"'
      AND NOT EXISTS (SELECT FROM unnest(facts) b WHERE b.parent = q.path AND NOT b.nested)
      AND (q.parent IS NULL OR NOT EXISTS (SELECT FROM unnest(facts) p
        WHERE p.path = q.parent AND p.type <> 'object'));
  name := docpatterns._advise_name(t.rel, t.stem || '_series');
  packed := (SELECT sum(pg_column_size(b.packed))::numeric / sum(b.bytes) FROM (
    SELECT @extschema@.bucket_agg(docpatterns._advise_time(d OPERATOR(@extschema@.->) f.path), d)
        AS packed, sum(@extschema@.bson_size(d)) AS bytes
    FROM unnest(docs) d
    WHERE docpatterns._advise_time(d OPERATOR(@extschema@.->) f.path) IS NOT NULL
    GROUP BY d OPERATOR(@extschema@.->) device) b);
  RETURN QUERY SELECT 'bucket'::text, f.path,
    round(least(0.9, 0.3 + 0.1 * log(greatest(t.live, 1)::numeric / 1000.0)), 2),
    format('%s small documents with a time ("%s") and %s of "%s" that come and hardly change (%s '
      'updates), %s', round(t.live), f.path, array_to_string((array_remove(measured, device))[1:3],
      ', '), device,
      coalesce(t.updated, 0), why),
    format('SELECT @extschema@.bucket_create(%L, columns => %L, group_by => %L, time_field => %L, '
      'span => %L); INSERT INTO %s SELECT %s FROM %s AS d;', name, c.columns,
      ARRAY[replace(device, '.', '_')], replace(f.path, '.', '_'),
      docpatterns._advise_span(facts, f.path, (SELECT q.different FROM unnest(facts) q
        WHERE q.path = device)), name, c.fields, t.base), t.rel,
    format('%s takes INSERT, COPY and SELECT like a table with a column for each field; counts and '
      'averages come from the headers of buckets.', name),
    'A measurement that is changed or deleted alone repacks its bucket. The old table stays until '
    'you drop it.',
    greatest(t.disk - packed::float8 * t.bytes * t.live, 0)::bigint, NULL::numeric,
    round((t.read * 0.99 / t.days)::numeric);
END
$$;
COMMENT ON FUNCTION docpatterns._advise_series(docpatterns.advise_table,
  docpatterns.advise_fact[], bson[]) IS 'advice on rows that are measurements: bucket';

CREATE FUNCTION docpatterns._advise_counters(t docpatterns.advise_table,
  facts docpatterns.advise_fact[]) RETURNS SETOF pattern_advice
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT 'approximation', f.path,
    round(least(0.9, 0.3 + CASE WHEN f.calls > 0 THEN 0.3 ELSE 0 END
      + 0.1 * log(greatest(t.updated / greatest(t.live, 1) / 100, 1)::numeric)), 2),
    format('%s updates of %s rows: %s to a row, which queue on it', t.updated, round(t.live),
      round(t.updated / greatest(t.live, 1))) || CASE WHEN f.calls > 0 THEN
      format('; %s counted statements change "%s"', f.calls, f.path) ELSE
      format('; "%s" is a number that differs from row to row', f.path) END,
    format('SELECT @extschema@.approximation_enable(%L, field => %L, slots => 16);', t.rel::text,
      f.path), t.rel,
    format('Writers call approximation_add and do not wait for each other; the view "%s_whole" and '
      'the collection calls show the sum.', regexp_replace(t.base, '^.*[.]', '')),
    'Up to 16 rows for each counter in a side table until approximation_sync adds them.',
    NULL::bigint, round((t.updated / t.days)::numeric), NULL::numeric
  FROM (SELECT q.path, q.different,
      docpatterns._advise_calls(t, '[[:<:]]' || q.path || '[[:>:]].*(inc|[+]|update)|'
        '(inc|[+]|update).*[[:<:]]' || q.path || '[[:>:]]') AS calls
    FROM unnest(facts) q WHERE q.type IN ('int', 'long') AND q.parent IS NULL AND q.path !~ '"'
      AND q.path <> '_id' AND q.present >= 0.5 * t.n
      AND q.path !~* '(^|_)(id|year|version|revision)$'
    ORDER BY 3 DESC NULLS LAST, q.path !~* ('(count|view|like|hit|visit|click|vote|download|play|'
      'share|total|num)'), q.different DESC, q.path LIMIT 1) f
  WHERE t.updated >= 10000 AND t.updated >= 100 * greatest(t.live, 1)
$$;
COMMENT ON FUNCTION docpatterns._advise_counters(docpatterns.advise_table,
  docpatterns.advise_fact[]) IS 'advice on hot counters: approximation';
