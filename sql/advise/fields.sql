-- Advice on the fields of single documents: many similar or rare ones (attribute), large ones that
-- are mostly not read (subset of fields), bulky texts (payload), slots (preallocated).

CREATE FUNCTION docpatterns._advise_names(t docpatterns.advise_table,
  facts docpatterns.advise_fact[]) RETURNS SETOF pattern_advice
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH names AS (
    SELECT f.path, f.present::numeric / t.n AS presence, f.type, f.bytes
    FROM unnest(facts) f WHERE f.parent IS NULL AND f.path !~ '"' AND f.path <> '_id'
      AND f.type NOT IN ('object', 'array')),
  families AS (
    SELECT substring(n.path from '^([[:alpha:]]+)_') AS prefix, count(*) AS members,
      avg(n.presence) AS presence, array_agg(n.path ORDER BY n.path) AS paths
    FROM names n WHERE n.path ~ '^[[:alpha:]]+_.' GROUP BY 1, n.type
    -- names that are codes, or that many documents lack: else they are a sub-document written flat
    HAVING count(*) >= 5 AND (avg(n.presence) < 0.8
      OR avg((n.path ~ '_([A-Z]{2,3}|[a-z]{2,3}|[0-9]+)$')::int) >= 0.8)),
  rare AS (
    SELECT count(*) AS members, avg(n.presence) AS presence,
      array_agg(n.path ORDER BY n.path) AS paths
    FROM names n WHERE n.presence <= 0.3 AND n.presence * t.n >= 2
      AND NOT EXISTS (SELECT FROM families a WHERE n.path = ANY (a.paths)))
  SELECT 'attribute', a.prefix || '_*',
    round(least(1, 0.3 + a.members / 50.0 + (1 - a.presence) * 0.3), 2),
    format('%s fields begin with "%s_" (%s), each in %s %% of the documents: an index for each '
      'would be small and many', a.members, a.prefix, array_to_string(a.paths[1:3], ', ')
      || CASE WHEN a.members > 3 THEN ', ..' ELSE '' END, round(100 * a.presence)),
    format('SELECT @extschema@.attribute_enable(%L, into_field => %L, pattern => %L, '
      'value_field => ''value'');', t.rel::text, q.into_field, a.prefix || '_{name}')
      || docpatterns._advise_build(t.rel, q.into_field), t.rel,
    format('Documents hold %s: [{name, value}, ..] instead of the fields; one index finds all of '
      'them. The view with the ending _wide shows the fields.', q.into_field),
    'Each document is written once; filters that name a field must name the array.',
    NULL::bigint, NULL::numeric, NULL::numeric
  FROM families a, LATERAL (SELECT a.prefix || CASE WHEN EXISTS (SELECT FROM unnest(facts) f
      WHERE f.path = a.prefix || 's') THEN '_values' ELSE 's' END AS into_field) q
  UNION ALL
  SELECT 'attribute', NULL, round(least(0.9, 0.2 + r.members / 100.0), 2),
    format('%s fields are in %s %% of the documents each (%s, ..): an index for each would be '
      'small and many', r.members, round(100 * r.presence, 1), array_to_string(r.paths[1:3], ', ')),
    format('SELECT @extschema@.attribute_enable(%L, into_field => %L, paths => '
      '%L, name_field => ''k'', value_field => ''v'');', t.rel::text, q.into_field, r.paths)
      || docpatterns._advise_build(t.rel, q.into_field), t.rel,
    format('Documents hold %s: [{k, v}, ..] instead of the fields; one index finds all of them. '
      'The view with the ending _wide shows the fields.', q.into_field),
    'Each document is written once; filters that name a field must name the array.',
    NULL::bigint, NULL::numeric, NULL::numeric
  FROM rare r, LATERAL (SELECT 'attributes' || CASE WHEN EXISTS (SELECT FROM unnest(facts) f
      WHERE f.path = 'attributes') THEN '_rare' ELSE '' END AS into_field) q
  WHERE r.members >= 20
$$;
COMMENT ON FUNCTION docpatterns._advise_names(docpatterns.advise_table,
  docpatterns.advise_fact[]) IS
  'advice on families of fields and on rare ones: attribute';

CREATE FUNCTION docpatterns._advise_size(t docpatterns.advise_table,
  facts docpatterns.advise_fact[], taken text[]) RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  total numeric := t.bytes * t.n;
  -- constants are not in the texts of statements, so only those that show a field's name count
  counted numeric := docpatterns._advise_calls(t, (SELECT '[''"](' || string_agg(q.path, '|')
    || ')[''"]' FROM unnest(facts) q WHERE q.parent IS NULL AND q.path ~ '^[[:alnum:]_]+$'));
  rewritten boolean := coalesce(t.updated >= greatest(t.live, 100), false);
  f docpatterns.advise_fact;
  cold text[] := '{}';
  share numeric := 0;
BEGIN
  IF t.bytes < 2000 OR t.key IS NULL THEN
    RETURN;
  END IF;
  FOR f IN SELECT (q).* FROM unnest(facts) q WHERE q.parent IS NULL AND q.path !~ '"'
      AND q.path <> '_id' AND q.bytes >= 0.1 * total AND q.path <> ALL (taken)
      -- the main text of an article, a vector, an area are what the document is for
      AND (counted > 0 OR rewritten
        OR q.type IN ('string', 'binData')
          AND q.path !~* '^(body|text|content|message|embedding|geometry|vector)$')
      AND NOT (q.type = 'array' AND q.lengths[1] = q.lengths[5] AND q.items > 0)
      ORDER BY q.bytes DESC LOOP
    CONTINUE WHEN coalesce(docpatterns._advise_calls(t, '[[:<:]]' || f.path || '[[:>:]]'), 0)
      > 0.1 * counted;
    cold := cold || f.path;
    share := share + f.bytes / total;
  END LOOP;
  IF share >= (CASE WHEN counted > 0 OR rewritten THEN 0.5 ELSE 0.8 END) THEN
    RETURN QUERY SELECT 'subset_fields'::text, array_to_string(cold, ', '),
      round(least(0.9, 0.2 + CASE WHEN counted > 0 OR rewritten THEN 0.3 ELSE 0 END + share * 0.3),
        2),
      format('documents have %s on average, %s %% of it in %s field%s',
        pg_size_pretty(t.bytes::bigint), round(100 * share), cardinality(cold),
        CASE WHEN cardinality(cold) > 1 THEN 's' ELSE '' END) ||
        CASE WHEN counted > 0 THEN format(' that less than a tenth of %s counted statements name',
            counted)
          WHEN rewritten THEN format(', which %s updates of %s documents wrote again', t.updated,
            round(t.live))
          ELSE ': worth it if most reads do without' END,
      format('SELECT @extschema@.subset_fields_enable(%L, cold => %L, name => ''cold'');',
        t.rel::text, cold) || docpatterns._advise_build(t.rel, 'cold'), t.rel,
      format('Plain SQL does not see %s; the view "%s_whole" and the collection calls do.',
        array_to_string(cold, ', '), regexp_replace(t.base, '^.*[.]', '')),
      'A reader of whole documents reads two rows for each; so does an insert write.',
      (share * t.bytes * t.live)::bigint, NULL::numeric, NULL::numeric;
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_size(docpatterns.advise_table, docpatterns.advise_fact[],
  text[]) IS 'advice on large documents, fields of other advice apart: subset of fields';

-- Texts that are XML or JSON, with the first scalars in them as extracts.
CREATE FUNCTION docpatterns._advise_payload(t docpatterns.advise_table,
  facts docpatterns.advise_fact[], docs bson[]) RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp
  SET standard_conforming_strings = on AS $$
DECLARE
  f docpatterns.advise_fact;
  texts text[];
  kind text;
  root text;
  extracts @extschema@.bson;
BEGIN
  FOR f IN SELECT (q).* FROM unnest(facts) q WHERE q.parent IS NULL AND q.path !~ '"'
      AND q.type = 'string' AND q.bytes >= 150 * q.present AND q.present >= 0.5 * t.n LOOP
    texts := ARRAY(SELECT d OPERATOR(@extschema@.->>) f.path FROM unnest(docs[1:100]) d
      WHERE @extschema@.bson_typeof(d, f.path) = 'string');
    kind := CASE
      WHEN (SELECT avg((x ~ '^\s*(<[?]xml|<[A-Za-z_][^>]*>.*</[^>]+>\s*$)'
        AND x !~* '^\s*<(!doctype html|html|p|div|span|h[1-6]|ul|ol|table|br)\M')::int) >= 0.95
        FROM unnest(texts) x) THEN 'xpath'
      WHEN (SELECT avg((x ~ '^\s*[{].*[}]\s*$')::int) >= 0.95 FROM unnest(texts) x)
        THEN 'jsonpath' END;
    CONTINUE WHEN kind IS NULL;
    IF kind = 'xpath' THEN
      BEGIN
        CONTINUE WHEN (SELECT avg(xml_is_well_formed_document(x)::int) < 0.95
          FROM unnest(texts) x);
        root := substring(texts[1] from '<([A-Za-z_][A-Za-z0-9_]*)[ />]');
        extracts := (SELECT @extschema@.bson_merge_agg(@extschema@.bson_build(q.name, q.what))
          FROM (SELECT m.name, m.what FROM (
              SELECT r[1] AS name, format('xpath:/%s/@%s', root, r[1]) AS what, 1 AS n
              FROM regexp_matches(substring(texts[1] from '<' || root || '([^>]*)>'),
                '\m([A-Za-z_]+)=', 'g') r
              UNION ALL SELECT r[1], format('xpath:/%s/%s/text()', root, r[1]), 2
              FROM regexp_matches(texts[1], '<([A-Za-z_]+)>[^<]{1,60}</\1>', 'g') r
              WHERE texts[1] ~ ('<' || root || '[^>]*>(\s*<([A-Za-z_]+)>[^<]*</\2>)+\s*</')) m
            WHERE NOT EXISTS (SELECT FROM unnest(facts) o WHERE o.path = m.name)
              AND lower(m.name) NOT LIKE 'xmlns%'
            GROUP BY m.name, m.what, m.n ORDER BY m.n, m.name LIMIT 3) q);
      EXCEPTION WHEN feature_not_supported THEN
        extracts := NULL;       -- PostgreSQL without libxml
      END;
    ELSE
      BEGIN
        extracts := (SELECT @extschema@.bson_merge_agg(@extschema@.bson_build(q.key, q.what))
          FROM (SELECT k.key, 'jsonpath:$.' || k.key AS what
            FROM (SELECT x::jsonb AS j FROM unnest(texts) x) j, jsonb_each(j.j) k
            WHERE jsonb_typeof(k.value) IN ('string', 'number') AND k.key ~ '^[A-Za-z_]+$'
              AND NOT EXISTS (SELECT FROM unnest(facts) o WHERE o.path = k.key)
            GROUP BY 1 HAVING count(*) >= 0.9 * cardinality(texts) ORDER BY 1 LIMIT 3) q);
      EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
        CONTINUE;
      END;
    END IF;
    RETURN QUERY SELECT 'payload'::text, f.path, round(least(0.9, 0.4 + f.bytes / t.n / 10000.0),
      2),
      format('"%s" is %s in each document, %s on average, %s of the documents'' bytes', f.path,
        CASE kind WHEN 'xpath' THEN 'XML' ELSE 'JSON in a string' END,
        pg_size_pretty(f.bytes / f.present), docpatterns._advise_percent(f.bytes,
          (t.bytes * t.n)::numeric)),
      format('SELECT @extschema@.payload_enable(%L, field => %L, extracts => %L);', t.rel::text,
        f.path, coalesce(extracts, '{}')::text) || docpatterns._advise_build(t.rel, f.path), t.rel,
      format('Filters use the extracted fields; the text itself is compressed, and the view '
        '"%s_whole" shows it.', regexp_replace(t.base, '^.*[.]', '')),
      'A write parses and compresses the text.', (0.6 * f.bytes / t.n * t.live)::bigint,
      NULL::numeric, NULL::numeric;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_payload(docpatterns.advise_table, docpatterns.advise_fact[],
  bson[]) IS 'advice on XML and JSON in strings: payload';

-- Cells of which many hold one value and the others different ones, in one array or in rows.
CREATE FUNCTION docpatterns._advise_slots(t docpatterns.advise_table,
  facts docpatterns.advise_fact[], docs bson[]) RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f docpatterns.advise_fact;
  s record;
  changes constant text := 'Programs call preallocated_claim, _confirm and _release; an UPDATE of '
    'cells is refused. Readers see the cells as before.';
  cost constant text := 'Claims of one document wait for each other (store => ''slots'' lets them '
    'pass).';
BEGIN
  -- an array of fixed length, where the free cells have another type than their holders
  FOR f IN SELECT (q).* FROM unnest(facts) q WHERE q.type = 'array' AND NOT q.nested
      AND q.path !~ '"' AND q.items > 0 AND q.present >= 0.9 * t.n AND q.different >= 4
      AND q.lengths[1] = q.lengths[5] AND q.lengths[5] BETWEEN 2 AND 1000
      AND NOT EXISTS (SELECT FROM unnest(facts) c WHERE c.parent = q.path) LOOP
    SELECT mode() WITHIN GROUP (ORDER BY c) AS fill, count(*) AS n INTO s
      FROM unnest(docs[1:200]) d, @extschema@.bson_elements(CASE
        WHEN @extschema@.bson_typeof(d, f.path) = 'array' THEN d OPERATOR(@extschema@.->) f.path
        ELSE '[]'::@extschema@.bson_value END) c;
    CONTINUE WHEN NOT (SELECT count(*) FILTER (WHERE c OPERATOR(@extschema@.=) s.fill) >= 0.1 * s.n
        AND bool_and(c OPERATOR(@extschema@.=) s.fill
          OR @extschema@.bson_typeof(c) <> @extschema@.bson_typeof(s.fill))
      FROM unnest(docs[1:200]) d, @extschema@.bson_elements(CASE
        WHEN @extschema@.bson_typeof(d, f.path) = 'array' THEN d OPERATOR(@extschema@.->) f.path
        ELSE '[]'::@extschema@.bson_value END) c);
    RETURN QUERY SELECT 'preallocated'::text, f.path, 0.6::numeric,
      format('"%s" has %s cells in each document; a part of them holds %s, the others %s different '
        'values: slots with their holders', f.path, f.lengths[5], s.fill, f.different - 1),
      format('SELECT @extschema@.preallocated_enable(%L, field => %L, shape => '
        '@extschema@.preallocated_pool(%s, fill => %L::@extschema@.bson_value));', t.rel::text,
        f.path, f.lengths[5], s.fill::text) || docpatterns._advise_build(t.rel, f.path),
      t.rel, changes, cost, NULL::bigint, NULL::numeric, NULL::numeric;
  END LOOP;
  FOR f IN SELECT (q).* FROM unnest(facts) q WHERE q.type = 'array' AND NOT q.nested
      AND q.path !~ '"|(^|[.])coordinates$' AND q.items = 0 AND q.present >= 0.9 * t.n
      AND q.lengths[5] BETWEEN 1 AND 1000 AND q.lengths[1] = q.lengths[5]
      AND NOT EXISTS (SELECT FROM unnest(facts) c WHERE c.parent = q.path) LOOP
    WITH cells AS MATERIALIZED (
      SELECT d.i, r.n AS row_number, c.cell
      FROM unnest(docs[1:200]) WITH ORDINALITY AS d (doc, i),
        @extschema@.bson_elements(d.doc OPERATOR(@extschema@.->) f.path)
          WITH ORDINALITY AS r (cells, n),
        @extschema@.bson_elements(CASE WHEN @extschema@.bson_typeof(r.cells) = 'array'
          THEN r.cells ELSE '[]'::@extschema@.bson_value END) AS c (cell)),
    lengths AS (SELECT c.row_number, c.i, count(*) AS n FROM cells c GROUP BY 1, 2)
    SELECT (SELECT array_agg(q.n ORDER BY q.row_number) FROM (SELECT l.row_number,
      min(l.n)::int AS n
          FROM lengths l GROUP BY 1) q) AS rows,
        (SELECT count(DISTINCT c.cell) FROM cells c) AS different,
        (SELECT mode() WITHIN GROUP (ORDER BY c.cell) FROM cells c) AS fill,
        (SELECT count(*) FROM cells c) AS n,
        (SELECT bool_and(q.same) FROM (SELECT min(l.n) = max(l.n) AS same FROM lengths l
          GROUP BY l.row_number) q) AS fixed
      INTO s;
    CONTINUE WHEN s.n IS NULL OR s.n = 0 OR s.rows IS NULL OR s.fixed IS NOT TRUE;
    -- a matrix of numbers is no map of seats
    CONTINUE WHEN (SELECT count(*) FILTER (WHERE c OPERATOR(@extschema@.=) s.fill) < 0.1 * s.n
        OR bool_and(@extschema@.bson_typeof(c) IN ('int', 'long', 'double', 'decimal'))
          AND count(DISTINCT c) > 3
      FROM unnest(docs[1:200]) d, @extschema@.bson_elements(d OPERATOR(@extschema@.->) f.path) r,
        @extschema@.bson_elements(CASE WHEN @extschema@.bson_typeof(r) = 'array' THEN r ELSE
          '[]'::@extschema@.bson_value END) c);
    RETURN QUERY SELECT 'preallocated'::text, f.path, 0.6::numeric,
      format('"%s" has %s rows of %s cells in each document, %s of them the same (%s), the others '
        '%s different values: slots with their holders', f.path, cardinality(s.rows),
        CASE WHEN s.rows[1] = ALL (s.rows) THEN s.rows[1]::text ELSE 'up to ' || (SELECT max(x)
          FROM unnest(s.rows) x) END,
        (SELECT docpatterns._advise_percent(count(*) FILTER (WHERE c OPERATOR(@extschema@.=)
          s.fill),
            count(*)) FROM unnest(docs[1:200]) d,
          @extschema@.bson_elements(d OPERATOR(@extschema@.->) f.path) r,
          @extschema@.bson_elements(CASE WHEN @extschema@.bson_typeof(r) = 'array' THEN r ELSE
            '[]'::@extschema@.bson_value END) c), s.fill, s.different - 1),
      format('SELECT @extschema@.preallocated_enable(%L, field => %L, shape => '
        '@extschema@.preallocated_grid(rows => %L, fill => %L::@extschema@.bson_value));',
        t.rel::text, f.path, s.rows, s.fill::text) || docpatterns._advise_build(t.rel, f.path),
      t.rel, changes, cost, NULL::bigint, NULL::numeric, NULL::numeric;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_slots(docpatterns.advise_table, docpatterns.advise_fact[],
  bson[]) IS 'advice on rows of cells: preallocated';
