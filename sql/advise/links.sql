-- Advice on documents that name others: references and their copies, trees, relationships, totals,
-- first elements and projections that programs keep beside their source.

CREATE TYPE docpatterns.advise_other AS (rel regclass, base text, name text, key text, doc text,
  live float8, facts docpatterns.advise_fact[]);
COMMENT ON TYPE docpatterns.advise_other IS 'a table whose keys documents may name';

-- Tables of a schema with documents whose key is a value of a document, with facts of 300 of them.
CREATE FUNCTION docpatterns._advise_tables(schema oid)
  RETURNS SETOF docpatterns.advise_other
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o docpatterns.advise_other;
  u docpatterns.advise_table;
BEGIN
  FOR o IN SELECT c.oid::regclass, format('%I.%I', n.nspname, c.relname), c.relname, a.attname,
        d.attname, greatest(c.reltuples, 0), NULL
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary AND i.indnkeyatts = 1
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
          AND (a.atttypid = '@extschema@.bson_value'::regtype
            OR EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid
              AND g.tgfoid = 'docpatterns.collection_set_id'::regproc AND g.tgattr[0] = a.attnum))
        JOIN pg_attribute d ON d.attrelid = c.oid AND d.attnum = (SELECT min(e.attnum)
          FROM pg_attribute e WHERE e.attrelid = c.oid AND NOT e.attisdropped
            AND e.atttypid = '@extschema@.bson'::regtype)
      WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
        AND c.relnamespace = schema
        AND has_table_privilege(c.oid, 'SELECT') AND NOT row_security_active(c.oid)
      ORDER BY c.relname LIMIT 200 LOOP
    u.live := o.live;
    u.base := o.base;
    u.doc := o.doc;
    u.disk := pg_table_size(o.rel);
    o.facts := ARRAY(SELECT f FROM docpatterns._advise_facts(docpatterns._advise_sample(u, 300,
      2097152)) f);
    RETURN NEXT o;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_tables(oid) IS
  'the tables of a schema that documents may name';

-- How many values are keys of a table. $1 is what is sought.
CREATE FUNCTION docpatterns._advise_hits(base text, key text, sought bson_value[]) RETURNS bigint
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  n bigint;
BEGIN
  EXECUTE format('SELECT count(*) FROM %s AS t WHERE t.%I OPERATOR(@extschema@.=) ANY ($1)', base,
    key) INTO n USING sought;
  RETURN n;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_hits(text, text, bson_value[]) IS
  'how many of the values are keys of a table';

CREATE FUNCTION docpatterns._advise_differ(a bson_value, b bson_value) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(a OPERATOR(@extschema@.<>) b, (a IS NULL) OPERATOR(pg_catalog.<>) (b IS NULL));
COMMENT ON FUNCTION docpatterns._advise_differ(bson_value, bson_value) IS
  'whether two values, NULL included, are different';

-- Whether the name of a field names the documents of a table.
CREATE FUNCTION docpatterns._advise_names_table(path text, relname text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
  SET standard_conforming_strings = on AS $$
  SELECT position(lower(regexp_replace(regexp_replace(relname, 'ies$', ''), '(e?)s$', '\1'))
    IN lower(path)) > 0 OR position(lower(regexp_replace(relname, 'e?s$', '')) IN lower(path)) > 0
$$;
COMMENT ON FUNCTION docpatterns._advise_names_table(text, text) IS
  'whether the name of a table, without its plural, is in a path';

-- Ids of documents of another table, bare or with copies of its fields.
CREATE FUNCTION docpatterns._advise_references(t docpatterns.advise_table,
  facts docpatterns.advise_fact[], docs bson[], others docpatterns.advise_other[])
  RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f docpatterns.advise_fact;
  o docpatterns.advise_other;
  hits bigint;
  joins numeric;
  copied text[];
  c record;
  live text[];
  frozen text[];
  figures text[];
  drifted numeric;
  whole text;
  shown text[];
BEGIN
  FOR f IN SELECT (q).* FROM unnest(facts) q WHERE q.path <> '_id' AND q.path !~ '"'
      AND q.type IN ('int', 'long', 'string', 'objectId', 'binData') AND q.items >= 20
      AND q.different >= 5 AND NOT EXISTS (SELECT FROM unnest(q.some_values) v WHERE v IS NULL)
      ORDER BY q.path LOOP
    FOR o IN SELECT (q).* FROM unnest(others) q LOOP
      -- small numbers and words match keys by chance: the field's name must match too, unless the
      -- values are ids
      CONTINUE WHEN f.type NOT IN ('objectId', 'binData')
        AND NOT docpatterns._advise_names_table(f.path, o.name);
      hits := docpatterns._advise_hits(o.base, o.key, f.some_values);
      CONTINUE WHEN hits < 0.8 * cardinality(f.some_values);
      -- what is beside the id and in the source too
      whole := CASE WHEN f.path ~ '[.](_?id|key)$' THEN f.parent END;
      copied := CASE WHEN whole IS NULL THEN '{}' ELSE ARRAY(
        SELECT substr(k.path, length(whole) + 2) FROM unnest(facts) k
          JOIN unnest(o.facts) s ON s.path = substr(k.path, length(whole) + 2)
        WHERE k.parent = whole AND k.path <> f.path AND k.path !~ '"' ORDER BY 1) END;
      -- elements that are documents of the other table which name this one are a subset
      CONTINUE WHEN f.nested AND f.different >= 0.95 * f.items AND EXISTS (SELECT FROM
        unnest(o.facts)
        s WHERE docpatterns._advise_names_table(s.path, regexp_replace(t.base, '^.*[.]', ''))
          AND s.path <> '_id');
      IF cardinality(copied) > 0 THEN
        live := '{}';
        frozen := '{}';
        figures := '{}';
        drifted := 0;
        FOR c IN EXECUTE format($q$
            SELECT p.path, count(*) AS n, count(*) FILTER (WHERE docpatterns._advise_differ(
                q.copy OPERATOR(@extschema@.->) p.path, s.%2$I OPERATOR(@extschema@.->) p.path))
                AS other
            FROM (SELECT CASE WHEN @extschema@.bson_typeof(v.value) = 'object'
                THEN v.value::@extschema@.bson END AS copy FROM unnest($1[1:2000]) d,
                @extschema@.bson_values(d, $2) AS v (value)) q
              JOIN %1$s AS s ON s.%3$I OPERATOR(@extschema@.=) (q.copy OPERATOR(@extschema@.->) $3)
              CROSS JOIN unnest($4) AS p (path)
            GROUP BY 1 ORDER BY 1$q$, o.base, o.doc, o.key)
            USING docs, whole, substr(f.path, length(whole) + 2), copied LOOP
          IF c.other > 0.5 * c.n THEN
            frozen := frozen || c.path;
          ELSE
            live := live || c.path;
            drifted := drifted + c.other;
          END IF;
          IF c.other > 0 THEN
            figures := figures || format('%s of %s copies of "%s" differ from %s',
              docpatterns._advise_percent(c.other, c.n), c.n, c.path, o.rel);
          END IF;
        END LOOP;
        RETURN QUERY SELECT 'reference'::text, whole,
          round(CASE WHEN drifted > 0 THEN 0.8 ELSE 0.5 END, 2),
          format('"%s" has copies of fields of %s, kept by hand', whole, o.rel)
            || CASE WHEN cardinality(figures) > 0 THEN ': ' || array_to_string(figures, '; ')
               ELSE '; all are equal to the source now' END,
          docpatterns._advise_replace(t, whole, drifted > 0 OR t.live > t.n,
            format('SELECT @extschema@.reference_enable(%L, field => %L, source => %L, id_field => '
              '%L, live => %L, frozen => %L%s);', t.rel::text, whole, o.rel::text,
              substr(f.path, length(whole) + 2), live, frozen,
              CASE WHEN hits < cardinality(f.some_values) THEN ', missing => ''allow''' ELSE ''
                END)),
          t.rel,
          format('The documents keep their shape. A change of %s reaches all copies in its '
            'transaction; programs need not write them.', o.rel),
          CASE WHEN drifted > 0 THEN 'Copies that differ get the source''s value; the former ones '
            'are kept in a table of their own. ' ELSE '' END || 'A change of a source writes all '
              'documents that copy from it (reference_cost '
            'counts them).', NULL::bigint, NULL::numeric, NULL::numeric;
        CONTINUE;
      END IF;
      CONTINUE WHEN f.nested OR f.type_docs < 0.8 * f.present;
      -- a projection of the source is no reference to it
      CONTINUE WHEN (SELECT bool_and(EXISTS (SELECT FROM unnest(o.facts) s WHERE s.path = k.path))
        FROM unnest(facts) k WHERE k.parent IS NULL AND k.path NOT IN ('_id', f.path));
      joins := docpatterns._advise_calls(t, '[[:<:]]' || regexp_replace(o.name, '([^[:alnum:]_])',
        E'\\\\\\1', 'g') || '[[:>:]]');
      CONTINUE WHEN t.queries IS NOT NULL AND joins IS NULL;         -- they are not joined
      shown := ARRAY(SELECT s.path FROM unnest(o.facts) s WHERE s.parent IS NULL
        AND s.type = 'string' AND s.path NOT IN ('_id') AND s.path !~ '"'
        AND s.bytes < 60 * s.present ORDER BY s.path !~* 'name|title', s.present DESC,
          s.path LIMIT 1);
      CONTINUE WHEN cardinality(shown) = 0;
      RETURN QUERY SELECT 'reference'::text, f.path,
        round(CASE WHEN joins > 0 THEN least(1, 0.5 + 0.1 * log(greatest(joins, 1)))
          ELSE 0.3 END, 2),
        format('%s of %s values at "%s" are keys of %s', hits, cardinality(f.some_values), f.path,
          o.rel) ||
          CASE WHEN joins > 0 THEN format(', and %s counted statements name both tables', joins)
            ELSE ': worth it if reads join to show a few fields of it' END,
        format('SELECT @extschema@.reference_enable(%L, field => %L, source => %L, live => %L%s);',
          t.rel::text, f.path, o.rel::text, shown,
          CASE WHEN hits < cardinality(f.some_values) THEN ', missing => ''allow''' ELSE '' END)
          || docpatterns._advise_build(t.rel, f.path), t.rel,
        format('The ID becomes a sub-document, {_id, %s}: find({%s: 5}), joins on doc -> ''%s'' '
          'and their indexes stop matching; programs must ask for ''%s._id''.',
          array_to_string(shown, ', '), f.path, f.path, f.path),
        'A change of a copied field writes all documents that copy it (reference_cost counts '
        'them); each document is written once now.',
        NULL::bigint, NULL::numeric,
        round(((SELECT sum(r) FROM unnest(t.queries, t.returned) AS q (query, r)
          WHERE q.query ~* ('[[:<:]]' || o.name || '[[:>:]]')) / t.days)::numeric);
    END LOOP;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_references(docpatterns.advise_table,
  docpatterns.advise_fact[], bson[], docpatterns.advise_other[]) IS
  'advice on ids of other tables'' documents and on copies beside them: extended reference';

-- Documents that name documents of the same table: by a parent, children, ancestors or a path.
CREATE FUNCTION docpatterns._advise_trees(t docpatterns.advise_table,
  facts docpatterns.advise_fact[], docs bson[]) RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f docpatterns.advise_fact;
  u docpatterns.advise_fact;
  hits bigint;
  sought bigint;
  form record;
  what text;
  extra text;
  changes constant text := 'Programs write one form; the others follow, also when a subtree moves. '
    'Cycles and parents that do not exist are refused.';
  cost constant text := 'Moving a node writes its whole subtree; each document is written once '
    'now.';
BEGIN
  IF t.key IS NULL THEN
    RETURN;
  END IF;
  extra := (SELECT 'ancestors' || CASE WHEN count(*) > 0 THEN '_ids' ELSE '' END
    FROM unnest(facts) q WHERE q.path = 'ancestors');
  -- names of nodes: the key, or another field that is different in each document
  FOR u IN SELECT (q).* FROM unnest(facts) q WHERE NOT q.nested AND q.path !~ '"'
      AND q.type IN ('int', 'long', 'string', 'objectId', 'binData') AND q.items >= 0.99 * t.n
      AND q.different >= 0.99 * q.items AND (q.path = '_id' OR q.path ~*
        '(id|name|title|slug|code|key)$')
      ORDER BY q.path <> '_id' LIMIT 3 LOOP
    FOR f IN SELECT (q).* FROM unnest(facts) q WHERE NOT q.nested AND q.path !~ '"'
        AND q.path <> u.path AND q.path <> '_id' AND q.items >= 10 AND q.different >= 3
        AND (q.type = u.type OR q.type = 'array')
        AND (q.path ~* ('(^|[._])(parent|super|upper|boss|manager|leader|root|reports_?to|part_?of|'
            'belongs_?to|ancestor|children|child|sub|lineage|breadcrumb)')
          OR q.type IN ('objectId', 'binData')) ORDER BY q.path LOOP
      CONTINUE WHEN EXISTS (SELECT FROM unnest(f.some_values) v WHERE v IS NULL);
      sought := cardinality(f.some_values);
      IF u.path = '_id' AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = t.rel
          AND a.attname = t.key AND a.atttypid = '@extschema@.bson_value'::regtype) THEN
        hits := docpatterns._advise_hits(t.base, t.key, f.some_values);
      ELSE
        CONTINUE WHEN t.live > 300000;
        EXECUTE format('SELECT count(*) FROM %s AS t WHERE t.%I OPERATOR(@extschema@.->) $2 '
          'OPERATOR(@extschema@.=) ANY ($1)', t.base, t.doc) INTO hits USING f.some_values, u.path;
      END IF;
      CONTINUE WHEN hits < 0.8 * sought;
      what := NULL;
      IF f.type <> 'array' THEN
        what := format('parent => %L, ancestors => %L', f.path, extra);
      ELSIF f.path ~* 'child|sub' AND f.items = f.different THEN
        what := format('parent => %L, children => %L, truth => ''children''', (SELECT 'parent'
          || CASE WHEN count(*) > 0 THEN '_id' ELSE '' END FROM unnest(facts) q
          WHERE q.path = 'parent'), f.path);
      ELSIF f.items > 0 THEN
        -- the nearest ancestor's array is the rest, at which end it is
        WITH nodes AS (SELECT d OPERATOR(@extschema@.->) u.path AS id, ARRAY(SELECT e FROM
              @extschema@.bson_elements(d OPERATOR(@extschema@.->) f.path) e) AS up
            FROM unnest(docs) d WHERE @extschema@.bson_typeof(d, f.path) = 'array')
        SELECT avg((p.up = n.up[:cardinality(n.up) - 1])::int) FILTER (WHERE p.id
          OPERATOR(@extschema@.=)
              n.up[cardinality(n.up)]) AS root_first,
            avg((p.up = n.up[2:])::int) FILTER (WHERE p.id OPERATOR(@extschema@.=) n.up[1])
              AS nearest_first
          INTO form FROM (SELECT * FROM nodes LIMIT 300) n
            JOIN nodes p ON p.id OPERATOR(@extschema@.=) n.up[cardinality(n.up)]
              OR p.id OPERATOR(@extschema@.=) n.up[1]
          WHERE cardinality(n.up) >= 2;
        CONTINUE WHEN greatest(form.root_first, form.nearest_first) IS DISTINCT FROM 1
          AND coalesce(greatest(form.root_first, form.nearest_first), 0) < 0.8;
        what := format('ancestors => %L, ancestors_order => %L, truth => ''ancestors''', f.path,
          CASE WHEN coalesce(form.root_first, 0) >= coalesce(form.nearest_first, 0)
            THEN 'root_first' ELSE 'nearest_first' END);
      END IF;
      CONTINUE WHEN what IS NULL;
      RETURN QUERY SELECT 'tree'::text, f.path, 0.6::numeric,
        format('%s of %s values at "%s" are %s of the table: documents refer to each other', hits,
          sought, f.path, CASE WHEN u.path = '_id' THEN 'keys' ELSE format('values of "%s"', u.path)
          END),
        format('SELECT @extschema@.tree_enable(%L, %s%s);', t.rel::text,
          CASE WHEN u.path = '_id' THEN '' ELSE format('node_id => %L, ', u.path) END, what)
          || docpatterns._advise_build(t.rel, f.path), t.rel, changes, cost, NULL::bigint,
        NULL::numeric, NULL::numeric;
    END LOOP;
    -- paths of ids
    FOR f IN SELECT (q).* FROM unnest(facts) q WHERE q.parent IS NULL AND q.path !~ '"'
        AND q.path <> u.path AND q.type = 'string' AND q.items >= 0.9 * t.n
        AND q.path ~* '(path|lineage|breadcrumb|ancestors)' LOOP
      SELECT s.separator INTO form FROM unnest('{/,.,",",|,>}'::text[]) AS s (separator)
        WHERE (SELECT avg((position(s.separator IN d OPERATOR(@extschema@.->>) f.path) > 0)::int)
          FROM unnest(docs) d) >= 0.5 LIMIT 1;
      CONTINUE WHEN form.separator IS NULL;
      WITH nodes AS MATERIALIZED (SELECT d OPERATOR(@extschema@.->>) u.path AS id,
            d OPERATOR(@extschema@.->>) f.path AS path,
            string_to_array(trim(form.separator FROM d OPERATOR(@extschema@.->>) f.path),
              form.separator) AS parts FROM unnest(docs) d)
      SELECT form.separator, avg((n.parts[cardinality(n.parts)] = n.id)::int) AS self,
          avg(starts_with(n.path, form.separator)::int) AS lead,
          avg((EXISTS (SELECT FROM nodes p WHERE p.id = n.parts[cardinality(n.parts) - CASE
            WHEN n.parts[cardinality(n.parts)] = n.id THEN 1 ELSE 0 END]))::int)
            FILTER (WHERE cardinality(n.parts) >= 2) AS known
        INTO form FROM (SELECT * FROM nodes LIMIT 500) n;
      CONTINUE WHEN form.self BETWEEN 0.02 AND 0.98 OR coalesce(form.known, 0)
        < least(0.8, 0.5 * t.n / greatest(t.live, 1));
      RETURN QUERY SELECT 'tree'::text, f.path, 0.6::numeric,
        format('"%s" is a path of values of "%s", joined by "%s": documents are below each other',
          f.path, u.path, form.separator),
        format('SELECT @extschema@.tree_enable(%L, %sparent => %L, path => %L, separator => %L, '
          'path_self => %s, path_lead => %s, truth => ''path'');', t.rel::text,
          CASE WHEN u.path = '_id' THEN '' ELSE format('node_id => %L, ', u.path) END,
          (SELECT 'parent' || CASE WHEN count(*) > 0 THEN '_id' ELSE '' END FROM unnest(facts) q
            WHERE q.path = 'parent'), f.path, form.separator,
          (form.self > 0.5)::text, (form.lead > 0.5)::text)
          || docpatterns._advise_build(t.rel, f.path), t.rel, changes, cost, NULL::bigint,
        NULL::numeric, NULL::numeric;
      EXIT;
    END LOOP;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_trees(docpatterns.advise_table, docpatterns.advise_fact[],
  bson[]) IS 'advice on documents that name others of the same table: tree';

-- What programs keep beside their source: ids on two sides, totals, copies for a query, walls.
CREATE FUNCTION docpatterns._advise_derived(t docpatterns.advise_table,
  facts docpatterns.advise_fact[], docs bson[], others docpatterns.advise_other[])
  RETURNS SETOF pattern_advice
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f docpatterns.advise_fact;
  k docpatterns.advise_fact;
  o docpatterns.advise_other;
  w docpatterns.advise_other;
  ids @extschema@.bson_value[];
  best record;
  n bigint;
  m bigint;
  shared text[];
  name text;
  author docpatterns.advise_fact;
  target text;
BEGIN
  IF t.key IS NULL OR NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = t.rel
      AND a.attname = t.key AND a.atttypid = '@extschema@.bson_value'::regtype) THEN
    RETURN;
  END IF;

  -- arrays of ids that point at each other
  FOR f IN SELECT (q).* FROM unnest(facts) q WHERE q.type = 'array' AND NOT q.nested
      AND q.path !~ '"' AND q.items >= 20 AND q.different >= 5
      AND NOT EXISTS (SELECT FROM unnest(q.some_values) v WHERE v IS NULL) LOOP
    FOR o IN SELECT (q).* FROM unnest(others) q LOOP
      FOR k IN SELECT (q).* FROM unnest(o.facts) q WHERE q.type = 'array' AND NOT q.nested
          AND q.path !~ '"' AND q.items >= 20
          AND NOT EXISTS (SELECT FROM unnest(q.some_values) v WHERE v IS NULL) LOOP
        CONTINUE WHEN docpatterns._advise_hits(o.base, o.key, f.some_values)
          < 0.8 * cardinality(f.some_values)
          OR docpatterns._advise_hits(t.base, t.key, k.some_values) < 0.8 *
            cardinality(k.some_values);
        EXECUTE format('SELECT count(*), count(*) FILTER (WHERE NOT EXISTS (SELECT FROM '
            '@extschema@.bson_elements(s.%2$I OPERATOR(@extschema@.->) $3) e WHERE e '
            'OPERATOR(@extschema@.=) (d OPERATOR(@extschema@.->) ''_id''))) FROM unnest($1[1:200]) '
            'd, @extschema@.bson_elements(d OPERATOR(@extschema@.->) $2) AS v (id) JOIN %1$s AS s '
              'ON '
            's.%3$I OPERATOR(@extschema@.=) v.id WHERE @extschema@.bson_typeof(d, $2) = ''array''',
          o.base, o.doc, o.key) INTO n, m USING docs, f.path, k.path;
        CONTINUE WHEN n = 0 OR m > 0.5 * n;
        RETURN QUERY SELECT 'relationship'::text, f.path,
          round(CASE WHEN m > 0 THEN 0.7 ELSE 0.5 END, 2),
          format('"%s" has keys of %s, and "%s" there has keys of this table; %s of %s links are '
            'on this side only', f.path, o.rel, k.path, m, n),
          format('SELECT @extschema@.relationship_enable(%L, %L, %L, %L, missing => ''allow'');',
            t.rel::text, f.path, o.rel::text, k.path) || docpatterns._advise_build(t.rel, f.path),
          t.rel, format('Programs write either side; the other follows in the same transaction.'),
          'A write of one side writes the documents that it adds or removes on the other.'
          || CASE WHEN m > 0 THEN ' Links that one side names are added on the other.' ELSE '' END,
          NULL::bigint, NULL::numeric, NULL::numeric;
      END LOOP;
    END LOOP;
  END LOOP;

  FOR o IN SELECT (q).* FROM unnest(others) q WHERE q.live <= 2000000 LOOP
    FOR k IN SELECT (q).* FROM unnest(o.facts) q WHERE NOT q.nested AND q.path !~ '"'
        AND q.path <> '_id' AND q.type IN ('int', 'long', 'string', 'objectId', 'binData')
        AND q.items >= 20 AND q.different >= 3
        AND (q.type IN ('objectId', 'binData')
          OR docpatterns._advise_names_table(q.path, regexp_replace(t.base, '^.*[.]', '')))
        AND NOT EXISTS (SELECT FROM unnest(q.some_values) v WHERE v IS NULL) LOOP
      target := '_id';
      IF docpatterns._advise_hits(t.base, t.key, k.some_values) < 0.8 * cardinality(k.some_values)
      THEN
        -- another field that names one document
        target := (SELECT q.path FROM unnest(facts) q WHERE q.parent IS NULL AND q.path !~ '"'
          AND q.type = k.type AND q.different >= 0.99 * q.items AND q.items >= 0.9 * t.n
          AND k.path ~* ('(^|_)' || q.path || '$') AND q.path <> '_id'
          AND (SELECT count(*) FROM unnest(docs) d JOIN unnest(k.some_values) v
            ON v OPERATOR(@extschema@.=) (d OPERATOR(@extschema@.->) q.path))
            >= 0.8 * cardinality(k.some_values) * least(1, t.n / t.live) LIMIT 1);
        CONTINUE WHEN target IS NULL;
      END IF;
      ids := ARRAY(SELECT d OPERATOR(@extschema@.->) target FROM unnest(docs[1:150]) d
        WHERE @extschema@.bson_exists(d, target));

      -- totals of what belongs to a document: all of them by one scan
      FOR best IN EXECUTE format($q$
          WITH sums AS MATERIALIZED (SELECT s.%2$I OPERATOR(@extschema@.->) $2 AS id, a.name,
              a.field, CASE a.name WHEN '$count' THEN @extschema@.to_bson(count(*))
                WHEN '$sum' THEN @extschema@.sum(s.%2$I OPERATOR(@extschema@.->) a.field)
                WHEN '$avg' THEN @extschema@.avg(s.%2$I OPERATOR(@extschema@.->) a.field)
                WHEN '$max' THEN @extschema@.max(s.%2$I OPERATOR(@extschema@.->) a.field) END
                AS value
            FROM %1$s AS s, (SELECT '$count', NULL UNION ALL SELECT n, p FROM unnest($4) p,
              unnest('{$sum,$avg,$max}'::text[]) n) AS a (name, field)
            WHERE s.%2$I OPERATOR(@extschema@.->) $2 OPERATOR(@extschema@.=) ANY ($1)
            GROUP BY 1, 2, 3)
          SELECT DISTINCT ON (d.path) d.path, a.name, a.field, count(*) AS n,
            count(*) FILTER (WHERE d.value OPERATOR(@extschema@.=) a.value) AS same
          FROM (SELECT d OPERATOR(@extschema@.->) $6 AS id, p.path,
              d OPERATOR(@extschema@.->) p.path AS value
            FROM unnest($3[1:150]) d, unnest($5) AS p (path)) d
            JOIN sums a ON a.id OPERATOR(@extschema@.=) d.id
          WHERE d.value IS NOT NULL
          GROUP BY 1, 2, 3 ORDER BY 1, 5 DESC$q$, o.base, o.doc)
          USING ids, k.path, docs, ARRAY(SELECT q.path FROM unnest(o.facts) q
            WHERE q.parent IS NULL AND q.path NOT IN ('_id', k.path) AND q.path !~ '"'
              AND q.type IN ('int', 'long', 'double', 'decimal') LIMIT 5),
            CASE WHEN k.different < 0.95 * k.items THEN ARRAY(SELECT q.path FROM unnest(facts) q
              WHERE q.parent IS NULL AND q.path !~ '"' AND q.path <> '_id'
                AND q.type IN ('int', 'long', 'double', 'decimal') AND q.present >= 0.5 * t.n
                AND q.different >= 3 LIMIT 20) ELSE '{}' END, target LOOP
        CONTINUE WHEN best.n < 5 OR best.same < 0.6 * best.n;
        RETURN QUERY SELECT 'computed'::text, best.path,
          round(CASE WHEN best.same < best.n THEN 0.8 ELSE 0.6 END, 2),
          format('"%s" is the %s of %s, kept by hand: %s of %s totals are %s', best.path,
            CASE best.name WHEN '$count' THEN 'number of documents' WHEN '$sum' THEN format(
              'sum of "%s"', best.field) WHEN '$avg' THEN format('average of "%s"', best.field)
              ELSE format('maximum of "%s"', best.field) END, o.rel,
            CASE WHEN best.same < best.n THEN best.n - best.same ELSE best.n END, best.n,
            CASE WHEN best.same < best.n THEN 'wrong' ELSE 'right now' END),
          docpatterns._advise_replace(t, best.path, best.same < best.n OR t.live > best.n,
            format('SELECT @extschema@.computed_enable(%L, source => %L, on_field => %L,%s fields '
              '=> '
              '%L, name => %L);', t.rel::text, o.rel::text, k.path, CASE WHEN target <> '_id' THEN
              format(' target_field => %L,', target) ELSE '' END,
              @extschema@.bson_build(best.path, @extschema@.bson_build(best.name,
                CASE best.name WHEN '$count' THEN @extschema@.to_bson('{}'::@extschema@.bson)
                  ELSE @extschema@.to_bson('$' || best.field) END))::text, best.path)), t.rel,
          format('Programs need not write "%s"; it is right when a transaction commits.',
            best.path),
          format('A write of %s also writes its %s, and writers of one wait for each other (mode '
            '=> ''deferred'' does not).', o.rel, t.stem) || CASE WHEN best.same < best.n THEN
            ' Wrong totals are replaced; they are kept in a table of their own.' ELSE '' END,
          NULL::bigint, NULL::numeric, round((SELECT s.seq_tup_read / t.days
            FROM pg_stat_all_tables s WHERE s.relid = o.rel)::numeric);
      END LOOP;

      CONTINUE WHEN target <> '_id';

      -- the first of what belongs to a document, in an array of it
      FOR f IN SELECT (q).* FROM unnest(facts) q WHERE q.type = 'array' AND q.parent IS NULL
          AND q.path !~ '"' AND q.present >= 0.3 * t.n AND q.lengths[5] BETWEEN 1 AND 200
          AND EXISTS (SELECT FROM unnest(facts) c WHERE c.path = q.path || '._id'
            AND c.different >= 0.95 * c.items) LOOP
        ids := (SELECT c.some_values FROM unnest(facts) c WHERE c.path = f.path || '._id');
        CONTINUE WHEN docpatterns._advise_hits(o.base, o.key, ids) < 0.8 * cardinality(ids);
        shared := ARRAY(SELECT substr(c.path, length(f.path) + 2) FROM unnest(facts) c
          WHERE c.parent = f.path AND c.path !~ '"' ORDER BY 1);
        CONTINUE WHEN EXISTS (SELECT FROM unnest(shared) s WHERE NOT EXISTS (
          SELECT FROM unnest(o.facts) x WHERE x.path = s));
        name := (SELECT substr(c.path, length(f.path) + 2) FROM unnest(facts) c
          WHERE c.parent = f.path AND c.type = 'date' ORDER BY c.path LIMIT 1);
        RETURN QUERY SELECT 'subset'::text, f.path, 0.6::numeric,
          format('"%s" has up to %s documents of %s, whose field "%s" names this one: the first of '
            'them, copied by a program', f.path, f.lengths[5], o.rel, k.path),
          docpatterns._advise_replace(t, f.path, true,
            format('SELECT @extschema@.subset_enable(%L, field => %L, source => %L, on_field => '
              '%L, '
              'order_by => %L, keep => %s, fields => %L);', t.rel::text, f.path, o.rel::text,
                k.path,
              CASE WHEN name IS NULL THEN '{"_id": -1}' ELSE @extschema@.bson_build(name, -1, '_id',
                -1)::text END, f.lengths[5],
              (SELECT @extschema@.bson_merge_agg(@extschema@.bson_build(s.path, 1))
                FROM unnest(shared) AS s (path))::text)), t.rel,
          format('Programs write %s only; the array follows, also after a change or a deletion. '
            'Readers see no difference.', o.rel),
          format('A write there that is among the first %s writes the %s, too. Arrays that differ '
            'are '
            'kept in a table of their own.', f.lengths[5], t.stem), NULL::bigint, NULL::numeric,
          NULL::numeric;
      END LOOP;

      -- documents that repeat fields of this table's, one for each
      shared := ARRAY(SELECT q.path FROM unnest(o.facts) q JOIN unnest(facts) p
          ON p.path = q.path AND p.type = q.type
        WHERE q.parent IS NULL AND q.path NOT IN ('_id', k.path) AND q.path !~ '"' ORDER BY q.path);
      CONTINUE WHEN k.different < 0.95 * k.items OR cardinality(shared) < 2
        OR EXISTS (SELECT FROM unnest(o.facts) q WHERE q.parent IS NULL
          AND q.path NOT IN ('_id', k.path) AND q.path <> ALL (shared));
      EXECUTE format('SELECT count(*), count(*) FILTER (WHERE NOT (SELECT bool_and(NOT '
          'docpatterns._advise_differ(d OPERATOR(@extschema@.->) p, s.%2$I '
            'OPERATOR(@extschema@.->) '
          'p)) FROM unnest($2) p)) FROM (SELECT o.%2$I FROM %1$s AS o LIMIT 300) s JOIN %3$s AS b '
            'ON b.%4$I '
          'OPERATOR(@extschema@.=) (s.%2$I OPERATOR(@extschema@.->) $1) CROSS JOIN LATERAL (SELECT '
          'b.%5$I AS d) x', o.base, o.doc, t.base, t.key, t.doc) INTO n, m USING k.path, shared;
      CONTINUE WHEN n < 20 OR m > 0.3 * n;
      SELECT q.path INTO best FROM unnest(o.facts) q WHERE q.path = ANY (shared)
        AND q.type IN ('int', 'long', 'string', 'objectId', 'binData')
        ORDER BY position(lower(q.path) IN lower(o.name)) = 0, q.different < 0.95 * q.items DESC,
          q.path LIMIT 1;
      CONTINUE WHEN best.path IS NULL;
      name := docpatterns._advise_name(t.rel, o.name || '_kept');
      RETURN QUERY SELECT 'query_table'::text, o.name, round(CASE WHEN m > 0 THEN 0.7 ELSE 0.5 END,
        2),
        format('%s repeats %s fields of this table (%s) for another query; %s of %s rows differ '
          'from their source', o.rel, cardinality(shared), array_to_string(shared[1:4], ', '), m,
            n),
        format('SELECT @extschema@.query_table_create(%L, source => %L, partition => %L, '
          'clustering '
          '=> %L, fields => %L, name => %L);', name, t.rel::text, ARRAY[best.path],
          coalesce((SELECT @extschema@.bson_build(q.path, -1) FROM unnest(o.facts) q
            WHERE q.path = ANY (shared) AND q.type = 'date' ORDER BY q.path LIMIT 1), '{}')::text,
          coalesce((SELECT @extschema@.bson_merge_agg(@extschema@.bson_build(s.path, 1))
            FROM unnest(shared) AS s (path) WHERE s.path <> best.path), '{}')::text, o.name)
          || docpatterns._advise_build(t.rel, o.name), t.rel,
        format('Programs write this table only; %s follows in the same transaction and has real '
          'columns.', name),
        format('Each write here also writes %s. %s stays until you drop it.', name, o.rel),
        NULL::bigint, NULL::numeric, NULL::numeric;
    END LOOP;
  END LOOP;

  -- several tables, each with a part of the same things
  FOR k IN SELECT (q).* FROM unnest(facts) q WHERE q.parent IS NULL AND q.path !~ '"'
      AND q.path ~* '(_?id|key|email|number|no)$' AND q.path <> '_id' AND q.items >= 0.95 * t.n
      AND q.different >= 0.99 * q.items AND q.type IN ('int', 'long', 'string', 'objectId',
        'binData')
      LOOP
    shared := ARRAY[t.rel::text];
    FOR o IN SELECT (q).* FROM unnest(others) q WHERE q.live <= 300000
        AND EXISTS (SELECT FROM unnest(q.facts) x WHERE x.path = k.path AND x.type = k.type
          AND x.different >= 0.99 * x.items AND x.items >= 20)
        AND NOT EXISTS (SELECT FROM unnest(q.facts) x JOIN unnest(_advise_derived.facts) y
          ON y.path = x.path
          WHERE x.parent IS NULL AND x.path NOT IN ('_id', k.path)) LOOP
      EXECUTE format('SELECT count(*) FROM %s AS s WHERE s.%I OPERATOR(@extschema@.->) $2 '
        'OPERATOR(@extschema@.=) ANY ($1)', o.base, o.doc) INTO n USING k.some_values, k.path;
      IF n >= 0.25 * cardinality(k.some_values) THEN
        shared := shared || o.rel::text;
      END IF;
    END LOOP;
    CONTINUE WHEN cardinality(shared) < 3;
    name := docpatterns._advise_name(t.rel, regexp_replace(k.path, '_?(id|key|email|number|no)$',
      '',
      'i') || '_view');
    RETURN QUERY SELECT 'polymorphic'::text, k.path, 0.5::numeric,
      format('%s tables have a document for each "%s", with fields of their own (%s)',
        cardinality(shared), k.path, array_to_string(shared, ', ')),
      format('SELECT @extschema@.polymorphic_merge(%L, merge_on => %L, sources => %L);', name,
        k.path,
        (SELECT array_agg(x ORDER BY x) FROM unnest(shared) x))
        || (SELECT string_agg(format(' CALL @extschema@.pattern_build(%L, %L, batch => NULL);',
          name,
          l), '' ORDER BY l) FROM (
          SELECT regexp_replace(x, '^.*[.]', '') FROM unnest(shared) x) u (l)), t.rel,
      format('%s has one document for each "%s", with the document of each table under its name; '
        'it '
        'follows in the same transaction.', name, k.path),
      'A write of one of the tables also writes there.', NULL::bigint, NULL::numeric, NULL::numeric;
  END LOOP;

  -- walls: arrays of keys of this table in another one, for readers who follow its authors
  FOR w IN SELECT (q).* FROM unnest(others) q WHERE EXISTS (SELECT FROM unnest(q.facts) x
      WHERE x.type = 'array' AND NOT x.nested AND x.items >= 50) LOOP
    SELECT (q).* INTO k FROM unnest(w.facts) q WHERE q.type = 'array' AND NOT q.nested
      AND q.items >= 50 AND q.path !~ '"' LIMIT 1;
    CONTINUE WHEN EXISTS (SELECT FROM unnest(k.some_values) v WHERE v IS NULL)
      OR docpatterns._advise_hits(t.base, t.key, k.some_values) < 0.8 * cardinality(k.some_values);
    FOR o IN SELECT (q).* FROM unnest(others) q WHERE q.rel <> w.rel LOOP
      FOR author IN SELECT (q).* FROM unnest(facts) q WHERE q.parent IS NULL AND q.path !~ '"'
          AND q.path <> '_id' AND q.items >= 0.9 * t.n AND q.different BETWEEN 2 AND 0.9 * t.n
          AND q.type IN ('int', 'long', 'string', 'objectId', 'binData') LOOP
        SELECT a.path AS follower, b.path AS followee INTO best
          FROM unnest(o.facts) a, unnest(o.facts) b
          WHERE a.parent IS NULL AND b.parent IS NULL AND a.path <> b.path AND a.path <> '_id'
            AND b.path <> '_id' AND a.type = author.type AND b.type = author.type
            AND a.path !~ '"' AND b.path !~ '"'
            AND (SELECT count(*) FROM unnest(b.some_values) v
              WHERE v OPERATOR(@extschema@.=) ANY (author.some_values)) >= 0.5 *
                cardinality(b.some_values)
            AND docpatterns._advise_hits(w.base, w.key, a.some_values)
              >= 0.5 * cardinality(a.some_values)
          ORDER BY b.path ~* 'follow(s|ee|ing|ed)|target|author' DESC,
            a.path ~* '(user|follower|reader|source)' DESC LIMIT 1;
        CONTINUE WHEN best.follower IS NULL;
        name := docpatterns._advise_name(t.rel, w.name || '_kept');
        RETURN QUERY SELECT 'fanout'::text, author.path, 0.6::numeric,
          format('"%s" in %s has keys of this table for each reader, and %s says who reads whom: '
            'walls that a program fills', k.path, w.rel, o.rel),
          format('SELECT @extschema@.fanout_enable(%L, walls => %L, author => %L, followers => %L, '
            'follower => %L, followee => %L, keep => %s, name => %L);', t.rel::text, name,
            author.path, o.rel::text, best.follower, best.followee,
            least(greatest(k.lengths[5], 10), 10000), w.name)
            || docpatterns._advise_build(t.rel, w.name), t.rel,
          format('Programs write posts and follows; %s follows in the same transaction, also when '
            'a post is deleted.', name),
          format('A post writes the walls of its readers. %s stays until you drop it.', w.rel),
          NULL::bigint, NULL::numeric, NULL::numeric;
        RETURN;
      END LOOP;
    END LOOP;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._advise_derived(docpatterns.advise_table,
  docpatterns.advise_fact[], bson[], docpatterns.advise_other[]) IS
  'advice on what programs keep beside its source: relationship, computed, query table, fan-out';
