-- Advice on documents of several shapes in one table: kinds, versions of a schema, revisions, items
-- under computed keys, documents that belong to each other.

-- Kinds of documents. Two kinds differ if each has fields that the other lacks: where one only has
-- more (a status and its dates), the documents are of one kind.
CREATE FUNCTION docpatterns._advise_kinds(t docpatterns.advise_table,
  facts docpatterns.advise_fact[], docs bson[]) RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found record;
BEGIN
  FOR found IN
    WITH sampled AS MATERIALIZED (SELECT d.doc, d.i FROM unnest(docs[1:2000])
        WITH ORDINALITY AS d (doc, i)),
      fields AS MATERIALIZED (SELECT s.i, k.key FROM sampled s, @extschema@.bson_keys(s.doc) AS k
        (key)),
      candidates AS (SELECT f.path, f.different FROM unnest(facts) f WHERE f.parent IS NULL
        AND f.type = 'string' AND f.present >= 0.95 * t.n AND f.different BETWEEN 2 AND 20
        AND f.path !~ '"' AND f.path !~* 'version$'
        ORDER BY f.path !~* 'type|kind|category|class|sport', f.different LIMIT 5),
      kinds AS (SELECT c.path, s.doc OPERATOR(@extschema@.->>) c.path AS value, count(*) AS n,
          array_agg(s.i) AS docs
        FROM candidates c, sampled s GROUP BY 1, 2
        HAVING count(*) >= greatest(5, 0.01 * (SELECT count(*) FROM sampled))),
      has AS (SELECT k.path, k.value, f.key, count(*)::numeric / k.n AS presence
        FROM kinds k, unnest(k.docs) AS d (i) JOIN fields f ON f.i = d.i
        WHERE f.key <> k.path GROUP BY 1, 2, 3, k.n),
      own AS (SELECT h.path, h.value, h.key FROM has h
        JOIN unnest(facts) f ON f.path = h.key AND f.type <> 'date' WHERE h.presence >= 0.9),
      differ AS (SELECT DISTINCT a.path, a.value, b.value AS other, a.key
        FROM own a JOIN kinds b ON b.path = a.path AND b.value <> a.value
        WHERE NOT EXISTS (SELECT FROM has h WHERE h.path = a.path AND h.value = b.value
          AND h.key = a.key AND h.presence > 0.05))
    SELECT x.path, (SELECT count(*) FROM kinds k WHERE k.path = x.path) AS kinds,
        count(DISTINCT x.key) AS fields, array_agg(DISTINCT x.key) AS others
    FROM differ x WHERE EXISTS (SELECT FROM differ y WHERE y.path = x.path AND y.value = x.other
      AND y.other = x.value)
    GROUP BY 1 HAVING count(DISTINCT x.key) >= 2 ORDER BY 3 DESC, 2 LIMIT 1
  LOOP
    RETURN QUERY SELECT 'polymorphic'::text, found.path,
      round(least(0.9, 0.3 + found.fields / 20.0), 2),
      format('"%s" has %s values, and %s fields come with some of them only (%s)', found.path,
        found.kinds, found.fields, array_to_string(found.others[1:4], ', ') || CASE
        WHEN found.fields > 4 THEN ', ..' ELSE '' END),
      format('SELECT @extschema@.polymorphic_enable(%L, by => %L, unknown => ''accept'');',
        t.rel::text, found.path), t.rel,
      'The documents stay as they are. polymorphic_infer proposes a schema for each kind, and each '
      'declared kind gets a view with typed columns.',
      'A write checks its document.', NULL::bigint, NULL::numeric, NULL::numeric;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_kinds(docpatterns.advise_table, docpatterns.advise_fact[],
  bson[]) IS 'advice on documents of several kinds: polymorphic';

-- An update that brings documents with the fields of one version to those of the next: fields that
-- only the older has become fields that only the newer has, where one can be made of the other.
CREATE FUNCTION docpatterns._advise_upgrade(older text[], newer text[],
  facts docpatterns.advise_fact[], down boolean) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $up$
  WITH gone AS (SELECT f.path, f.type, row_number() OVER (ORDER BY f.path) AS n FROM unnest(facts) f
      WHERE f.path = ANY (older) AND f.path <> ALL (newer)),
    come AS (SELECT f.path, f.type, f.items, row_number() OVER (ORDER BY f.path) AS n
      FROM unnest(facts) f WHERE f.path = ANY (newer) AND f.path <> ALL (older)),
    pairs AS (SELECT g.path AS a, c.path AS b,
        c.type = 'array' AND g.type <> 'array' AND c.items > 0 AS listed,
        g.type = 'array' AND c.type <> 'array' AND down AS single
      FROM gone g JOIN come c ON (g.type = c.type OR c.type = 'array' AND g.type <> 'array'
        AND c.items > 0 OR g.type = 'array' AND down)
      WHERE (SELECT count(*) FROM gone) = 1 AND (SELECT count(*) FROM come) = 1)
  SELECT coalesce((SELECT format('[{"$set": {%s: {"$ifNull": [%s, %s]}}}, {"$unset": %s}]',
      to_json(p.b), to_json('$' || p.b),
      CASE WHEN p.listed THEN format('{"$cond": [{"$eq": [{"$type": %1$s}, "missing"]}, '
          '"$$REMOVE", [%1$s]]}', to_json('$' || p.a))
        WHEN p.single THEN format('{"$first": %s}', to_json('$' || p.a))
        ELSE to_json('$' || p.a)::text END, to_json(p.a))
    -- pipelines cannot name a field whose path has quotation marks
    FROM pairs p WHERE p.a || p.b !~ '"'), '[]')
$up$;
COMMENT ON FUNCTION docpatterns._advise_upgrade(text[], text[], docpatterns.advise_fact[], boolean)
  IS 'a pipeline from the fields of one version to those of another; [] if it is not known';

-- Versions of a schema: a field that tells them, a field that has another type or another name in
-- a part of the documents.
CREATE FUNCTION docpatterns._advise_versions(t docpatterns.advise_table,
  facts docpatterns.advise_fact[], docs bson[]) RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f docpatterns.advise_fact;
  v record;
  m record;
  a docpatterns.advise_fact;
  b docpatterns.advise_fact;
  steps text;
  version_field text;
  accepted constant text := 'Readers choose a view: each has all documents in its version. Old '
    'programs keep writing; what they write is converted for new ones.';
  price constant text := 'A document is converted at each read until schema_versioning_migrate has '
    'stored it anew.';
BEGIN
  -- a field with the version
  FOR f IN SELECT (q).* FROM unnest(facts) q WHERE q.parent IS NULL AND q.path !~ '"'
      AND q.path ~* '^_?(schema_?version|doc_?version|format_?version|version|schema|v|sv)$'
      AND q.type IN ('int', 'long', 'double', 'string') AND q.different BETWEEN 2 AND 20
      ORDER BY q.path !~* 'schema' LIMIT 1 LOOP
    WITH sampled AS MATERIALIZED (SELECT d.doc, d.i, coalesce(substring(
          d.doc OPERATOR(@extschema@.->>) f.path from '^[1-9][0-9]{0,2}(?:[.]0)?$')::numeric::int,
          1) AS version
        FROM unnest(docs[1:2000]) WITH ORDINALITY AS d (doc, i)),
      versions AS (SELECT s.version, count(*) AS n FROM sampled s GROUP BY 1),
      has AS (SELECT s.version, array_agg(s.key::text) AS fields FROM (
          SELECT q.version, k.key, count(*) AS n FROM sampled q, @extschema@.bson_keys(q.doc) k
            (key)
          GROUP BY 1, 2) s JOIN versions w USING (version)
        WHERE s.n >= 0.5 * w.n AND s.key <> f.path GROUP BY 1)
    SELECT array_agg(w.version ORDER BY w.version) AS versions,
        array_agg(w.n ORDER BY w.version) AS counts, max(w.version) AS newest,
        (SELECT count(DISTINCT (SELECT array_agg(x ORDER BY x) FROM unnest(h.fields) x)) FROM has h)
          AS shapes,
        string_agg(DISTINCT x.step, ' ' ORDER BY x.step) AS steps
      INTO v FROM versions w LEFT JOIN LATERAL (SELECT format('SELECT '
          '@extschema@.schema_versioning_step(%L, %s, %s, up_update => %L, down_update => %L);',
          t.rel::text, w.version, n.version,
          docpatterns._advise_upgrade(o.fields, h.fields, facts, false),
          docpatterns._advise_upgrade(h.fields, o.fields, facts, true)) AS step
        FROM (SELECT min(z.version) AS version FROM versions z WHERE z.version > w.version) n
          JOIN has h ON h.version = n.version JOIN has o ON o.version = w.version) x ON true;
    IF v.shapes >= 2 AND v.newest <= 100 AND cardinality(v.versions) >= 2 THEN
      RETURN QUERY SELECT 'schema_versioning'::text, f.path,
        round(least(0.9, 0.5 + cardinality(v.versions) / 10.0), 2),
        format('"%s" has the versions %s (%s of each hundred documents), with %s sets of fields',
          f.path, array_to_string(v.versions, ', '), (SELECT string_agg(round(100.0 * c
            / least(t.n, 2000))::text, ', ') FROM unnest(v.counts) c), v.shapes),
        format('SELECT @extschema@.schema_versioning_enable(%L, field => %L, current => %s, write '
          '=> ''accept''); ', t.rel::text, f.path, v.newest) || v.steps, t.rel, accepted, price,
        NULL::bigint, NULL::numeric, NULL::numeric;
      RETURN;
    END IF;
  END LOOP;
  version_field := (SELECT 'schema_version' || CASE WHEN count(*) > 0 THEN '_2' ELSE '' END
    FROM unnest(facts) q WHERE q.path = 'schema_version');

  -- one field in old documents, another one in the others
  FOR a IN SELECT (q).* FROM unnest(facts) q WHERE q.parent IS NULL AND q.path !~ '"'
      AND q.present BETWEEN 0.05 * t.n AND 0.95 * t.n LOOP
    FOR b IN SELECT (q).* FROM unnest(facts) q WHERE q.parent IS NULL AND q.path !~ '"'
        AND q.path <> a.path AND q.present BETWEEN 0.05 * t.n AND 0.95 * t.n
        AND a.present + q.present BETWEEN 0.9 * t.n AND 1.01 * t.n
        AND (q.path = a.path || 's' OR q.path = a.path || 'es'
          OR a.type = q.type AND lower(replace(q.path, '_', '')) = lower(replace(a.path, '_', ''))
            AND q.path > a.path
          OR a.type <> 'array' AND q.type = 'array' AND q.items > 0
            AND starts_with(q.path, a.path)) LOOP
      CONTINUE WHEN EXISTS (SELECT FROM unnest(docs) d WHERE @extschema@.bson_exists(d, a.path)
        AND @extschema@.bson_exists(d, b.path));
      RETURN QUERY SELECT 'schema_versioning'::text, a.path || ', ' || b.path, 0.6::numeric,
        format('%s of the documents have "%s" (%s), %s have "%s" (%s), none has both: the shape '
          'has changed', docpatterns._advise_percent(a.present, t.n), a.path, a.type,
          docpatterns._advise_percent(b.present, t.n), b.path, b.type),
        format('SELECT @extschema@.schema_versioning_enable(%L, field => %L, current => 2, write '
          '=> ''accept''); SELECT @extschema@.schema_versioning_step(%L, 1, 2, up_update => %L, '
          'down_update => %L);', t.rel::text, version_field, t.rel::text,
          docpatterns._advise_upgrade(ARRAY[a.path], ARRAY[b.path], facts, false),
          docpatterns._advise_upgrade(ARRAY[b.path], ARRAY[a.path], facts, true)),
        t.rel, accepted, price, NULL::bigint, NULL::numeric, NULL::numeric;
      RETURN;
    END LOOP;
  END LOOP;

  -- paths of several types
  SELECT count(*) AS n, array_agg(q.path ORDER BY q.path) AS paths,
      string_agg(format('"%s": %s', q.path, q.conversion), ', ' ORDER BY q.path)
        FILTER (WHERE q.path !~ '[.]') AS conversions,
      min(format('%s of the documents have "%s" as %s, the others not',
        docpatterns._advise_percent(q.n, t.n), q.path, q.type)) AS figures
    INTO m FROM (
      SELECT p.path, p.type, p.type_docs AS n, CASE p.type WHEN 'string' THEN
          format('{"$convert": {"input": "$%1$s", "to": "string", "onError": "$%1$s"}}', p.path)
        WHEN 'array' THEN format('{"$cond": [{"$or": [{"$isArray": ["$%1$s"]}, {"$eq": [{"$type": '
          '"$%1$s"}, "missing"]}, {"$eq": ["$%1$s", null]}]}, "$%1$s", ["$%1$s"]]}', p.path)
        ELSE format('"$%s"', p.path) END AS conversion
      FROM unnest(facts) p
      WHERE NOT p.nested AND p.path <> '_id' AND p.path !~ '"' AND (SELECT count(*) FROM (
        SELECT CASE WHEN e.key IN ('int', 'long', 'double', 'decimal') THEN 'number' ELSE e.key END,
          sum(e.value::int) AS n
        FROM @extschema@.bson_each(p.types) e WHERE e.key NOT IN ('null', 'undefined') GROUP BY 1)
        AS k (type, n) WHERE k.n >= 0.05 * t.n) > 1) q;
  IF m.n > 0 THEN
    RETURN QUERY SELECT 'schema_versioning'::text, array_to_string(m.paths, ', '),
      round(least(0.8, 0.3 + m.n / 10.0), 2),
      format('%s path%s of more than one type, in at least one document of twenty each (%s): '
        'shapes that came one after the other', m.n, CASE WHEN m.n > 1 THEN 's are' ELSE ' is' END,
        m.figures),
      format('SELECT @extschema@.schema_versioning_enable(%L, field => %L, current => %s, write => '
        '''accept'');', t.rel::text, version_field,
        CASE WHEN m.conversions IS NULL THEN 1 ELSE 2 END)
      || CASE WHEN m.conversions IS NULL THEN '' ELSE format(' SELECT '
        '@extschema@.schema_versioning_step(%L, 1, 2, up_update => %L, down_update => ''[]'');',
        t.rel::text, format('[{"$set": {%s}}]', m.conversions)) END,
      t.rel, accepted, price, NULL::bigint, NULL::numeric, NULL::numeric;
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_versions(docpatterns.advise_table,
  docpatterns.advise_fact[], bson[]) IS 'advice on shapes that came one after the other';

-- Revisions kept by hand: documents of one thing that a number counts, or copies of the document in
-- an array of it.
CREATE FUNCTION docpatterns._advise_revisions(t docpatterns.advise_table,
  facts docpatterns.advise_fact[], docs bson[]) RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f docpatterns.advise_fact;
  g record;
  same text[];
  fields bigint;
  name text;
BEGIN
  FOR f IN SELECT (q).* FROM unnest(facts) q WHERE q.type = 'array' AND q.parent IS NULL
      AND q.path ~* '(histor|revision|version|previous|old_)' LOOP
    same := ARRAY(SELECT substr(c.path, length(f.path) + 2) FROM unnest(facts) c
      JOIN unnest(facts) o ON o.path = substr(c.path, length(f.path) + 2) AND o.type = c.type
      WHERE c.parent = f.path AND o.path <> '_id' ORDER BY 1);
    fields := (SELECT count(*) FROM unnest(facts) c WHERE c.parent = f.path);
    IF cardinality(same) >= greatest(2, 0.5 * fields) THEN
      name := (SELECT 'revision' || CASE WHEN count(*) > 0 THEN '_number' ELSE '' END
        FROM unnest(facts) c WHERE c.path = 'revision');
      RETURN QUERY SELECT 'versioning'::text, f.path, 0.6::numeric,
        format('the elements of "%s" have %s of the documents'' own fields (%s), up to %s of them '
          'in a document: former states, kept by hand', f.path, cardinality(same),
          array_to_string(same[1:3], ', '), f.lengths[5]),
        format('SELECT @extschema@.versioning_enable(%L, revision_field => %L, optimistic => '
          'false);',
          t.rel::text, name) || docpatterns._advise_build(t.rel, name), t.rel,
        'Each update keeps the former document, with the time and the user; versioning_as_of shows '
        'any day. Programs need not add to the array any more.',
        'A row of history for each change. What the array holds stays in it.',
        (f.bytes / t.n * t.live)::bigint, NULL::numeric, NULL::numeric;
    END IF;
  END LOOP;
  FOR f IN SELECT (q).* FROM unnest(facts) q WHERE q.parent IS NULL AND q.path !~ '"'
      AND q.type IN ('int', 'long') AND q.present >= 0.95 * t.n
      AND q.path ~* '^_?(revision|rev|version|ver|version_?no|revision_?no)$' LOOP
    FOR g IN SELECT q.path, q.different FROM unnest(facts) q WHERE q.parent IS NULL
        AND q.path !~ '"' AND q.present >= 0.95 * t.n AND q.path <> '_id'
        AND (q.path ~* '(id|key|slug|no|number|name)$')
        AND q.type IN ('int', 'long', 'string', 'objectId', 'binData') AND q.path <> f.path
        AND q.different <= 0.9 * t.n AND q.different >= 0.02 * t.n LOOP
      CONTINUE WHEN (SELECT count(DISTINCT (d OPERATOR(@extschema@.->) g.path,
          d OPERATOR(@extschema@.->) f.path)) < 0.98 * count(*) FROM unnest(docs) d);
      name := docpatterns._advise_name(t.rel, t.stem || '_current');
      RETURN QUERY SELECT 'versioning'::text, f.path, 0.6::numeric,
        format('%s documents of %s values at "%s", told apart by "%s": each change is a new '
          'document', round(t.live), round(t.live * g.different / t.n), g.path, f.path),
        format('SELECT @extschema@.collection_create(%L); SELECT @extschema@.versioning_enable(%L, '
          'revision_field => %L); INSERT INTO %s (doc) SELECT DISTINCT ON (d.%I '
          'OPERATOR(@extschema@.->) %L) d.%I FROM %s AS d ORDER BY d.%I OPERATOR(@extschema@.->) '
          '%L, d.%I OPERATOR(@extschema@.->) %L DESC;', name, name, f.path, name, t.doc, g.path,
            t.doc,
          t.base, t.doc, g.path, t.doc, f.path), t.rel,
        format('Programs read and update the one current document in %s, and versioning_as_of '
          'shows any day; no query has to look for the newest revision.', name),
        'A row of history for each change. The former revisions stay where they are.',
        (greatest(1 - 1.0 * g.different / t.n, 0) * t.bytes * t.live / 2)::bigint, NULL::numeric,
        NULL::numeric;
      RETURN;
    END LOOP;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_revisions(docpatterns.advise_table,
  docpatterns.advise_fact[], bson[]) IS 'advice on revisions kept by hand: versioning';

-- Items under keys that programs compute, and documents that say what they belong to.
CREATE FUNCTION docpatterns._advise_together(t docpatterns.advise_table,
  facts docpatterns.advise_fact[], docs bson[]) RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  k record;
  f docpatterns.advise_fact;
  kind docpatterns.advise_fact;
  hits bigint;
  name text;
  entities text;
BEGIN
  SELECT max(q.path) FILTER (WHERE upper(q.path) = 'PK') AS pk,
      max(q.path) FILTER (WHERE upper(q.path) = 'SK') AS sk
    INTO k FROM unnest(facts) q
    WHERE q.parent IS NULL AND q.type = 'string' AND q.type_docs >= 0.95 * t.n;
  IF k.pk = 'PK' AND k.sk = 'SK' THEN
    name := docpatterns._advise_name(t.rel, regexp_replace(t.stem, '_?items?$', '') || '_items');
    -- an entity for each pair of beginnings of the keys; what follows is a field
    entities := (SELECT string_agg(format('SELECT @extschema@.single_table_entity(%L, %L, pk => '
          '%L, sk => %L);', name, q.entity, q.pk, q.sk), ' ' ORDER BY q.entity)
      FROM (SELECT DISTINCT ON (e.entity) e.entity,
          e.p || CASE WHEN e.p ~ '#$' THEN '{' || e.pk_field || '}' ELSE '' END AS pk,
          e.s || CASE WHEN e.s ~ '#$' THEN '{' || e.sk_field || '}' ELSE '' END AS sk
        FROM (SELECT p, s, count(*) AS n,
            lower(regexp_replace(CASE WHEN s ~ '#$' THEN s ELSE p || '_' || s END, '[^A-Za-z0-9]+',
              '_', 'g')) AS raw,
            trim('_' FROM lower(regexp_replace(CASE WHEN s ~ '#$' THEN s ELSE p || '_' || s END,
              '[^A-Za-z0-9]+', '_', 'g'))) AS entity,
            trim('_' FROM lower(regexp_replace(p, '[^A-Za-z0-9]+', '_', 'g'))) || '_id' AS pk_field,
            trim('_' FROM lower(regexp_replace(s, '[^A-Za-z0-9]+', '_', 'g'))) || '_id'
              || CASE WHEN p = s THEN '_2' ELSE '' END AS sk_field
          FROM (SELECT coalesce(substring(d OPERATOR(@extschema@.->>) 'PK' from '^[^#]+#'),
                d OPERATOR(@extschema@.->>) 'PK') AS p,
              coalesce(substring(d OPERATOR(@extschema@.->>) 'SK' from '^[^#]+#'),
                d OPERATOR(@extschema@.->>) 'SK') AS s FROM unnest(docs) d) b
          GROUP BY 1, 2 HAVING count(*) >= 5) e
        WHERE e.p ~ '#$' AND e.entity <> '' ORDER BY e.entity, e.n DESC LIMIT 20) q);
    RETURN QUERY SELECT 'single_table'::text, 'PK'::text, 0.7::numeric,
      format('%s of the documents have the keys "PK" and "SK", made of texts and values such as '
        '%s', docpatterns._advise_percent((SELECT count(*) FROM unnest(docs) d
          WHERE @extschema@.bson_exists(d, 'PK') AND @extschema@.bson_exists(d, 'SK')), t.n),
        docs[1] OPERATOR(@extschema@.->) 'PK'),
      format('SELECT @extschema@.single_table_create(%L); %s INSERT INTO %s (doc) SELECT d.%I FROM '
        '%s AS d;', name, coalesce(entities, ''), name, t.doc, t.base), t.rel,
      format('Programs write the fields, and %s computes the keys; one index scan reads an item '
        'with all that belongs to it.', name),
      'The documents are copied; the old table stays until you drop it.', NULL::bigint,
      NULL::numeric, NULL::numeric;
    RETURN;
  END IF;

  SELECT (q).* INTO kind FROM unnest(facts) q WHERE q.parent IS NULL AND q.path !~ '"'
    AND q.type = 'string' AND q.present >= 0.95 * t.n AND q.different BETWEEN 2 AND 20
    AND q.path ~* 'type|kind|class|entity' ORDER BY q.different LIMIT 1;
  IF kind.path IS NOT NULL AND t.key IS NOT NULL AND EXISTS (SELECT FROM pg_attribute a
      WHERE a.attrelid = t.rel AND a.attname = t.key
        AND a.atttypid = '@extschema@.bson_value'::regtype) THEN
    FOR f IN SELECT (q).* FROM unnest(facts) q WHERE q.parent IS NULL AND q.path !~ '"'
        AND q.type = 'array' AND q.items > 0 AND q.present >= 0.5 * t.n AND q.different >= 5
        AND q.path ~* '(relat|belong|link|parent|ref)' LOOP
      EXECUTE format('SELECT count(*) FROM %s AS t WHERE t.%I OPERATOR(@extschema@.=) ANY ($1)',
        t.base, t.key) INTO hits USING f.some_values;
      CONTINUE WHEN hits < 0.8 * cardinality(f.some_values);
      RETURN QUERY SELECT 'single_collection'::text, f.path, 0.7::numeric,
        format('%s of %s values in "%s" are keys of the table, whose documents are of %s kinds '
          '("%s")', hits, cardinality(f.some_values), f.path, kind.different, kind.path),
        format('SELECT @extschema@.single_collection_enable(%L, type_field => %L, related_field => '
          '%L, missing => %L, views => true);', t.rel::text, kind.path, f.path,
          CASE WHEN hits < cardinality(f.some_values) THEN 'allow' ELSE 'error' END)
        || docpatterns._advise_build(t.rel, f.path), t.rel,
        'The documents stay as they are. single_collection_get reads one with all that belongs to '
        'it by one index scan; each kind has a view.',
        'A write checks that the documents which it names exist.', NULL::bigint, NULL::numeric,
        NULL::numeric;
    END LOOP;
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_together(docpatterns.advise_table,
  docpatterns.advise_fact[], bson[]) IS 'advice on single tables and single collections';
