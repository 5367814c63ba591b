-- Relationships: conversion between embedded and linked documents, advice on which to choose, and
-- $lookup as a function. Consistent arrays of ids are in relationship.sql.

CREATE FUNCTION bson_lookup(rel regclass, path text, value anycompatible) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_lookup' LANGUAGE C STABLE COST 1000;
COMMENT ON FUNCTION bson_lookup(regclass, text, anycompatible) IS
  'The documents of rel whose field at path equals the value, as an array, as $lookup finds them. '
  'An array is looked up by its elements, arrays on the other side match by theirs; NULL finds '
  'documents without the field, or with null. Uses an index on (doc -> path), the key _id of a '
  'collection, or a GIN index; reads with the rights of the caller';

-- Embedding ---------------------------------------------------------------------------------------

-- The two tables of a conversion, locked; "p" is a row of the parent, "c" one of the child.
CREATE FUNCTION docpatterns._relationship_tables(parent regclass, child regclass,
  OUT parent_base text, OUT parent_doc text, OUT parent_key text, OUT parent_keys text,
                                 OUT child_base text, OUT child_doc text, OUT child_key text,
                                 OUT child_keys text)
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  IF parent IS NULL OR child IS NULL THEN
    RAISE EXCEPTION 'the tables must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF parent = child THEN
    RAISE EXCEPTION 'parent and child must be different tables'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT q.* INTO t FROM docpatterns._pattern_table(parent, NULL) q;
  IF cardinality(t.keys) > 1 THEN
    RAISE EXCEPTION 'the primary key of table "%" has several columns',
        docpatterns._relname(t.base::regclass)
      USING ERRCODE = 'feature_not_supported', DETAIL = 'A link must be a single value.';
  END IF;
  parent_base := t.base;
  parent_doc := format('p.%I', t.doc);
  parent_key := format('@extschema@.to_bson(p.%I)', t.keys[1]);
  parent_keys := format('p.%I', t.keys[1]);
  SELECT q.* INTO t FROM docpatterns._pattern_table(child, NULL) q;
  IF cardinality(t.keys) > 1 THEN
    RAISE EXCEPTION 'the primary key of table "%" has several columns',
        docpatterns._relname(t.base::regclass)
      USING ERRCODE = 'feature_not_supported', DETAIL = 'A link must be a single value.';
  END IF;
  child_base := t.base;
  child_doc := format('c.%I', t.doc);
  child_key := format('@extschema@.to_bson(c.%I)', t.keys[1]);
  child_keys := format('c.%I', t.keys[1]);
  EXECUTE format('LOCK TABLE %s, %s IN SHARE ROW EXCLUSIVE MODE', parent_base, child_base);
END
$$;
COMMENT ON FUNCTION docpatterns._relationship_tables(regclass, regclass) IS
  'names of two tables as the statements of conversions need them; locks them against writers';

-- Raises the error that names the keys of a query, if it gives any.
CREATE FUNCTION docpatterns._relationship_refuse(query text, code text, message text,
  hint text DEFAULT NULL) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  keys text[];
  detail text;
BEGIN
  EXECUTE format('SELECT array_agg(left(q.key::text, 100)) FROM (SELECT DISTINCT k.key FROM (%s) '
      'AS k ORDER BY k.key) AS q', query) INTO keys;
  IF keys IS NULL THEN
    RETURN;
  END IF;
  detail := format('Their keys: %s%s.', array_to_string(keys[1:20], ', '), CASE
      WHEN cardinality(keys) > 20 THEN format(' and %s more', cardinality(keys) - 20) ELSE '' END);
  IF hint IS NULL THEN
    RAISE EXCEPTION '%', message USING ERRCODE = code, DETAIL = detail;
  END IF;
  RAISE EXCEPTION '%', message USING ERRCODE = code, DETAIL = detail, HINT = hint;
END
$$;
COMMENT ON FUNCTION docpatterns._relationship_refuse(text, text, text, text) IS
  'raises an error of that code that names the keys which the query gives, if there are any';

CREATE FUNCTION relationship_embed(parent regclass, child regclass, on_field text DEFAULT NULL,
  into_field text DEFAULT NULL, keep_id boolean DEFAULT false, one boolean DEFAULT false)
  RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r record;
  element text;
  links text;
  groups text;
  room text;
  left_over bigint;
  done bigint;
BEGIN
  IF into_field IS NULL AND on_field IS NOT NULL THEN
    SELECT CASE WHEN c.relname ~ '^[[:alpha:]_][[:alnum:]_]*$' THEN c.relname ELSE
      '"' || replace(c.relname, '"', '""') || '"' END INTO into_field FROM pg_class c
      WHERE c.oid = child;
  END IF;
  IF into_field IS NULL OR keep_id IS NULL OR one IS NULL THEN
    RAISE EXCEPTION 'the field with the ids, keep_id and one must not be null'
      USING ERRCODE = 'null_value_not_allowed',
      HINT = 'Name the field of the child that links to the parent with on_field, or the field of '
      'the parent with the ids with into_field.';
  END IF;
  IF docpatterns._pattern_paths_overlap(into_field, '_id')
      OR docpatterns._pattern_paths_overlap(on_field, '_id') THEN
    RAISE EXCEPTION 'on_field and into_field must not be _id'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT q.* INTO r FROM docpatterns._relationship_tables(parent, child) q;
  element := r.child_doc;
  IF on_field IS NOT NULL THEN
    element := format('@extschema@.bson_unset(%s, %L)', element, on_field);
  END IF;
  element := CASE WHEN keep_id THEN
    format('CASE WHEN @extschema@.bson_exists(%1$s, ''_id'') THEN %2$s ELSE '
      '@extschema@.bson_build(''_id'', %3$s) OPERATOR(@extschema@.||) %2$s END', r.child_doc,
      element, r.child_key)
             ELSE format('@extschema@.bson_unset(%s, ''_id'')', element) END;

  IF on_field IS NOT NULL THEN
    -- children all of whose parents are there: "link" is the parent, "id" the child. Columns of the
    -- tables may have any names.
    links := format('SELECT %s AS element, %s AS id, l.v AS link, bool_and(p.id IS NOT NULL) OVER '
        '(PARTITION BY %s) AS complete FROM %s AS c '
                    'CROSS JOIN LATERAL (SELECT DISTINCT u.v FROM @extschema@.bson_values(%s, %L) '
                      'AS u (v)) AS l (v) LEFT JOIN (SELECT %s AS id FROM %s AS p) AS p ON p.id '
                      'OPERATOR(@extschema@.=) l.v '
                    'WHERE @extschema@.bson_typeof(l.v) <> ''null''', element, r.child_key,
                      r.child_keys, r.child_base, r.child_doc, on_field, r.parent_key,
                      r.parent_base);
    groups := 'SELECT k.link AS owner, @extschema@.bson_agg(k.element ORDER BY k.id) AS elements, '
      'count(*) AS n, sum(@extschema@.bson_size(k.element)::bigint + 8) AS bytes FROM links AS k '
      'WHERE k.complete GROUP BY k.link';
  ELSE
    PERFORM docpatterns._relationship_refuse(format('SELECT %1$s AS key FROM %2$s AS p CROSS JOIN '
          'LATERAL @extschema@.bson_values(%3$s, %4$L) AS u (v) WHERE @extschema@.bson_typeof(u.v) '
          '<> ''null'' AND NOT EXISTS (SELECT 1 FROM %5$s AS c WHERE %6$s OPERATOR(@extschema@.=) '
          'u.v)',
              r.parent_key, r.parent_base, r.parent_doc, into_field, r.child_base, r.child_key),
              '23503',
              format('documents in table "%s" refer to documents that table "%s" does not have',
                docpatterns._relname(r.parent_base::regclass),
                    docpatterns._relname(r.child_base::regclass)));
    links := format('SELECT %s AS element, v.owner, v.n, %s AS id FROM (SELECT %s AS owner, u.v, '
        'u.n FROM %s AS p CROSS JOIN LATERAL @extschema@.bson_values(%s, %L) WITH ORDINALITY AS u '
        '(v, n)) AS v JOIN %s AS c ON %2$s OPERATOR(@extschema@.=) v.v',
                    element, r.child_key, r.parent_key, r.parent_base, r.parent_doc, into_field,
                    r.child_base);
    groups := 'SELECT k.owner, @extschema@.bson_agg(k.element ORDER BY k.n) AS elements, count(*) '
      'AS n, sum(@extschema@.bson_size(k.element)::bigint + 8) AS bytes FROM links AS k GROUP BY '
      'k.owner';
  END IF;

  -- refuses invalid documents before anything is written
  IF on_field IS NOT NULL THEN
    PERFORM docpatterns._relationship_refuse(format('WITH links AS (%s), g AS (%s) SELECT g.owner '
          'AS key FROM g JOIN %s AS p ON %s OPERATOR(@extschema@.=) g.owner WHERE NOT '
          'coalesce(@extschema@.bson_typeof(%s, %L) IN (''null''%s), true)',
              links, groups, r.parent_base, r.parent_key, r.parent_doc, into_field, CASE
              WHEN one THEN '' ELSE ', ''array''' END),
              '22023', format('documents in table "%s" already have another value in the '
                'field "%s"', docpatterns._relname(r.parent_base::regclass), into_field));
  END IF;
  IF one THEN
    PERFORM docpatterns._relationship_refuse(format('WITH links AS (%s), g AS (%s) SELECT g.owner '
          'AS key FROM g WHERE g.n > 1', links, groups), '23505',
              format('documents in table "%s" have several documents in table "%s"',
                  docpatterns._relname(r.parent_base::regclass),
                docpatterns._relname(r.child_base::regclass)),
              'Without "one", they are embedded as an array.');
  END IF;
  room := format('WITH links AS (%s), g AS (%s) SELECT g.owner AS key FROM g JOIN %s AS p ON %s '
      'OPERATOR(@extschema@.=) g.owner WHERE g.bytes + @extschema@.bson_size(%s) + length(%L) + 8 '
      '> '
                 '(SELECT s.setting::bigint FROM pg_settings s WHERE s.name = '
                   '''docpatterns.max_document_size'')', links, groups, r.parent_base, r.parent_key,
                   r.parent_doc, into_field);
  PERFORM docpatterns._relationship_refuse(room, '54000',
      format('documents in table "%s" would be too large with embedded documents of table "%s"',
        docpatterns._relname(r.parent_base::regclass),
            docpatterns._relname(r.child_base::regclass)),
            'Link them, keep a part with subset_enable(), or raise docpatterns.max_document_size.');

  EXECUTE format($q$
    WITH links AS MATERIALIZED (%1$s), g AS (%2$s),
      written AS (UPDATE %3$s AS p SET %4$I = @extschema@.bson_set(%5$s, %6$L, %7$s) FROM g
        WHERE g.owner OPERATOR(@extschema@.=) %8$s),
      removed AS (DELETE FROM %9$s AS c USING (SELECT DISTINCT k.id FROM links AS k %10$s) AS k
        WHERE k.id OPERATOR(@extschema@.=) %11$s RETURNING 1)
    SELECT (SELECT count(*) FROM removed)
    $q$, links, groups, r.parent_base, substring(r.parent_doc FROM 3)::name, r.parent_doc,
      into_field,
    CASE WHEN one THEN 'g.elements OPERATOR(@extschema@.->) 0'
         WHEN on_field IS NULL THEN 'g.elements'
         ELSE format('CASE @extschema@.bson_typeof(%1$s, %2$L) WHEN ''array'' THEN (%1$s '
             'OPERATOR(@extschema@.->) %2$L::text) OPERATOR(@extschema@.||) g.elements ELSE '
             'g.elements END', r.parent_doc, into_field) END,
    r.parent_key, r.child_base, CASE WHEN on_field IS NOT NULL THEN 'WHERE k.complete' ELSE ''
      END, r.child_key) INTO done;
  EXECUTE format('SELECT count(*) FROM %s', r.child_base) INTO left_over;
  IF left_over > 0 THEN
    RAISE NOTICE '% documents in table "%" belong to no document in table "%" and are kept',
        left_over,
      docpatterns._relname(r.child_base::regclass), docpatterns._relname(r.parent_base::regclass);
  END IF;
  RETURN done;
END
$$;
COMMENT ON FUNCTION relationship_embed(regclass, regclass, text, text, boolean, boolean) IS
  'Moves the documents of child into the documents of parent that they link to by on_field (a key, '
  'or an array of keys: then into each), without on_field and, unless keep_id, without _id. '
  'Without on_field, the parent''s into_field has the IDs, and documents replace them. Returns how '
  'many were moved. Locks both tables against writers; needs SELECT and UPDATE on parent, SELECT '
  'and DELETE on child';

-- Linking -----------------------------------------------------------------------------------------

CREATE FUNCTION relationship_link(parent regclass, field text, child text,
  on_field text DEFAULT NULL, ids_in text DEFAULT 'child', many_to_many boolean DEFAULT false)
  RETURNS bigint
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  IF parent IS NULL OR field IS NULL OR child IS NULL OR ids_in IS NULL OR many_to_many IS NULL THEN
    RAISE EXCEPTION 'parent, field, child, ids_in and many_to_many must not be null'
      USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF pg_catalog.to_regclass(child) IS NULL THEN
    PERFORM @extschema@.collection_create(child);
  END IF;
  RETURN docpatterns._relationship_link(parent, field, child::pg_catalog.regclass, on_field, ids_in,
      many_to_many);
END
$$;
COMMENT ON FUNCTION relationship_link(regclass, text, text, text, text, boolean) IS
  'Moves the sub-documents in a field (an array of them, or one) of parent to child, created if '
  'missing. ids_in child: each gets its parent''s key in on_field, and the field is removed; '
  'ids_in parent: the field has their IDs. The same _id in several documents becomes one document '
  'with an array of keys with many_to_many. Sub-documents without _id get a new one. Returns how '
  'many documents were made. Locks both tables against writers; needs SELECT and UPDATE on parent, '
  'INSERT and a right to lock on child';

CREATE FUNCTION docpatterns._relationship_link(parent regclass, field text, child regclass,
  on_field text, ids_in text, many_to_many boolean) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r record;
  parts text;
  documents text;
  done bigint;
BEGIN
  IF ids_in NOT IN ('child', 'parent') THEN
    RAISE EXCEPTION 'ids_in must be "child" or "parent"' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF (ids_in = 'child') <> (on_field IS NOT NULL) THEN
    RAISE EXCEPTION 'on_field is required with ids_in "child" and not allowed with "parent"'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF docpatterns._pattern_paths_overlap(field, '_id')
      OR docpatterns._pattern_paths_overlap(on_field, '_id') THEN
    RAISE EXCEPTION 'field and on_field must not be _id' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT q.* INTO r FROM docpatterns._relationship_tables(parent, child) q;

  PERFORM docpatterns._relationship_refuse(format($q$SELECT %1$s AS key FROM %2$s AS p
      WHERE CASE @extschema@.bson_typeof(%3$s, %4$L) WHEN 'array' THEN
        EXISTS (SELECT FROM @extschema@.bson_elements(%3$s OPERATOR(@extschema@.->) %4$L::text) e
          WHERE @extschema@.bson_typeof(e) <> 'object')
              WHEN 'object' THEN false WHEN 'null' THEN false ELSE
                @extschema@.bson_exists(%3$s, %4$L) END$q$, r.parent_key, r.parent_base,
                r.parent_doc, field),
    '22023', format('documents in table "%s" have other values than documents in the field "%s"',
      docpatterns._relname(r.parent_base::regclass), field));
  -- new ids are made once
  parts := format($q$SELECT u.owner, u.n, u.e OPERATOR(@extschema@.->) '_id'::text AS id, u.e AS doc
    FROM (SELECT %1$s AS owner, u.n, CASE
        WHEN @extschema@.bson_exists(u.e::@extschema@.bson, '_id') THEN u.e::@extschema@.bson
        ELSE @extschema@.bson_build('_id', @extschema@.objectid()) OPERATOR(@extschema@.||)
        u.e::@extschema@.bson END AS e
          FROM %2$s AS p CROSS JOIN LATERAL @extschema@.bson_elements(CASE
              @extschema@.bson_typeof(%3$s, %4$L)
              WHEN 'array' THEN %3$s OPERATOR(@extschema@.->) %4$L::text
            WHEN 'object' THEN @extschema@.bson_array(%3$s OPERATOR(@extschema@.->) %4$L::text)
                  ELSE '[]'::@extschema@.bson_value END) WITH ORDINALITY AS u (e, n)) AS u$q$,
              r.parent_key, r.parent_base, r.parent_doc, field);
  IF on_field IS NOT NULL THEN
    PERFORM docpatterns._relationship_refuse(format('SELECT e.owner AS key FROM (%s) AS e WHERE '
          '(e.doc OPERATOR(@extschema@.->) %L::text) OPERATOR(@extschema@.<>) e.owner', parts,
          on_field),
              '22023', format('documents in the field "%s" have a field "%s" with another value '
                'than the key of their document', field, on_field));
  END IF;
  IF many_to_many OR ids_in = 'parent' THEN
    PERFORM docpatterns._relationship_refuse(format('SELECT e.id AS key FROM (%s) AS e GROUP BY '
          'e.id HAVING count(DISTINCT e.doc::text) > 1', parts),
              '23505', format('documents in the field "%s" with the same _id are not the same',
                field));
    documents := 'SELECT (array_agg(e.doc))[1] AS doc, @extschema@.bson_agg(e.owner ORDER BY '
      'e.owner) AS owner, @extschema@.min(e.owner) AS first, min(e.n) AS n FROM e GROUP BY e.id';
  ELSE
    PERFORM docpatterns._relationship_refuse(format('SELECT e.id AS key FROM (%s) AS e GROUP BY '
          'e.id HAVING count(*) > 1', parts),
              '23505', format('documents in the field "%s" have the same _id', field),
              'With many_to_many they are one document with several links.');
    documents := 'SELECT e.doc, e.owner, e.owner AS first, e.n FROM e';
  END IF;
  EXECUTE format($q$
    WITH e AS MATERIALIZED (%1$s), d AS (%2$s),
      made AS (INSERT INTO %3$s AS c (%4$I) SELECT %5$s FROM d ORDER BY d.first, d.n RETURNING 1),
      i AS (SELECT e.owner, @extschema@.bson_agg(e.id ORDER BY e.n) AS ids FROM e GROUP BY e.owner),
      written AS (UPDATE %6$s AS p SET %7$I = %8$s)
    SELECT (SELECT count(*) FROM made)
    $q$, parts, documents, r.child_base, substring(r.child_doc FROM 3)::name, CASE
      WHEN on_field IS NOT NULL THEN format('@extschema@.bson_set(d.doc, %L, d.owner)', on_field)
      ELSE 'd.doc' END,
    r.parent_base, substring(r.parent_doc FROM 3)::name,
    CASE WHEN ids_in = 'child' THEN
      format('@extschema@.bson_unset(%1$s, %2$L) WHERE @extschema@.bson_exists(%1$s, %2$L)',
        r.parent_doc, field)
         ELSE format($q$@extschema@.bson_set(%1$s, %2$L, CASE @extschema@.bson_typeof(%1$s, %2$L)
               WHEN 'object' THEN i.ids OPERATOR(@extschema@.->) 0 ELSE i.ids END) FROM i
             WHERE i.owner OPERATOR(@extschema@.=) %3$s$q$,
                     r.parent_doc, field, r.parent_key) END) INTO done;
  IF ids_in = 'parent' THEN
    -- a table that exists may make keys of its own
    PERFORM docpatterns._relationship_refuse(format('SELECT u.v AS key FROM %s AS p CROSS JOIN '
          'LATERAL @extschema@.bson_values(%s, %L) AS u (v) WHERE @extschema@.bson_typeof(u.v) <> '
          '''null'' AND NOT EXISTS (SELECT 1 FROM %s AS c WHERE %s OPERATOR(@extschema@.=) u.v)',
              r.parent_base, r.parent_doc, field, r.child_base, r.child_key), '23503',
              format('documents got other keys in table "%s" than their _id',
                  docpatterns._relname(r.child_base::regclass)),
              'Link them with ids_in => ''child'', or to a collection.');
  END IF;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._relationship_link(regclass, text, regclass, text, text, boolean) IS
  'relationship_link with a child that exists';

-- Advice ------------------------------------------------------------------------------------------

CREATE FUNCTION relationship_advise(parent regclass, child regclass, on_field text DEFAULT NULL,
  ids_field text DEFAULT NULL,
  OUT parents bigint, OUT children bigint, OUT orphans bigint, OUT cardinality text,
  OUT children_median bigint, OUT children_p99 bigint, OUT children_max bigint,
  OUT parents_max bigint, OUT child_bytes bigint, OUT embedded_p99 bigint, OUT embedded_max bigint,
  OUT writes_per_read numeric,
  OUT choice text, OUT ids_in text, OUT why text, OUT statement text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  c record;
  edges text;
  most bigint := (SELECT s.setting::bigint FROM pg_settings s
      WHERE s.name = 'docpatterns.max_document_size');
  parent_bytes bigint;
  writes bigint;
  reads bigint;
  reasons text[] := '{}';
  field text;
BEGIN
  IF parent IS NULL OR child IS NULL OR (on_field IS NULL) = (ids_field IS NULL) THEN
    RAISE EXCEPTION 'exactly one of on_field and ids_field must be specified'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT q.* INTO p FROM docpatterns._pattern_table(parent, NULL) q;
  SELECT q.* INTO c FROM docpatterns._pattern_table(child, NULL) q;
  IF pg_catalog.cardinality(p.keys) > 1 OR pg_catalog.cardinality(c.keys) > 1 THEN
    RAISE EXCEPTION 'the primary key of a table has several columns'
      USING ERRCODE = 'feature_not_supported', DETAIL = 'A link must be a single value.';
  END IF;
  edges := CASE WHEN on_field IS NOT NULL
    THEN format('SELECT DISTINCT u.v AS owner, @extschema@.to_bson(t.%I) AS id, '
        '@extschema@.bson_size(t.%I)::bigint AS bytes FROM %s AS t CROSS JOIN LATERAL '
        '@extschema@.bson_values(t.%2$I, %4$L) AS u (v) WHERE @extschema@.bson_typeof(u.v) <> '
        '''null''',
                c.keys[1], c.doc, c.base, on_field)
    ELSE format('SELECT DISTINCT @extschema@.to_bson(q.%I) AS owner, u.v AS id, '
        '@extschema@.bson_size(t.%I)::bigint AS bytes FROM %s AS q CROSS JOIN LATERAL '
        '@extschema@.bson_values(q.%I, %L) AS u (v) JOIN %s AS t ON @extschema@.to_bson(t.%I) '
        'OPERATOR(@extschema@.=) u.v',
                p.keys[1], c.doc, p.base, p.doc, ids_field, c.base, c.keys[1]) END;
  EXECUTE format($q$
    WITH edge AS MATERIALIZED (%1$s),
      many AS (SELECT e.owner, count(*) AS n, sum(e.bytes + 8) AS bytes FROM edge AS e
        GROUP BY e.owner),
      p AS (SELECT coalesce(m.n, 0) AS n,
        coalesce(m.bytes, 0) + @extschema@.bson_size(q.%2$I) AS whole,
        @extschema@.bson_size(q.%2$I) AS own FROM %3$s AS q
        LEFT JOIN many AS m ON m.owner OPERATOR(@extschema@.=) @extschema@.to_bson(q.%4$I))
    SELECT (SELECT count(*) FROM p), (SELECT count(*) FROM %5$s), (SELECT count(*) FROM %5$s AS t
        WHERE NOT EXISTS (SELECT FROM edge AS e
          JOIN %3$s AS q ON @extschema@.to_bson(q.%4$I) OPERATOR(@extschema@.=) e.owner
          WHERE e.id OPERATOR(@extschema@.=) @extschema@.to_bson(t.%6$I))),
      (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY p.n) FROM p),
      (SELECT percentile_disc(0.99) WITHIN GROUP (ORDER BY p.n) FROM p),
      coalesce((SELECT max(p.n) FROM p), 0),
      coalesce((SELECT max(q.n) FROM (SELECT count(*) AS n FROM edge AS e GROUP BY e.id) AS q), 0),
      coalesce((SELECT avg(@extschema@.bson_size(t.%7$I))::bigint FROM %5$s AS t), 0),
      (SELECT percentile_disc(0.99) WITHIN GROUP (ORDER BY p.whole) FROM p),
      coalesce((SELECT max(p.whole) FROM p), 0), coalesce((SELECT avg(p.own)::bigint FROM p), 0)
    $q$, edges, p.doc, p.base, p.keys[1], c.base, c.keys[1], c.doc)
    INTO parents, children, orphans, children_median, children_p99, children_max, parents_max,
      child_bytes, embedded_p99, embedded_max, parent_bytes;
  -- partitions count by themselves
  SELECT sum(pg_stat_get_tuples_updated(r.relid) + pg_stat_get_tuples_deleted(r.relid)),
    sum(pg_stat_get_tuples_returned(r.relid) + pg_stat_get_tuples_fetched(r.relid))
    INTO writes, reads FROM (SELECT t.relid::oid AS relid FROM pg_partition_tree(child) t UNION
        SELECT child::oid) AS r;
  writes_per_read := round(writes / greatest(reads, 1)::numeric, 3);
  cardinality := CASE WHEN parents_max > 1 THEN 'many-to-many' WHEN children_max > 1 THEN
    'one-to-many' ELSE 'one-to-one' END;
  field := coalesce(ids_field, quote_ident((SELECT q.relname FROM pg_class q WHERE q.oid = child)));

  choice := 'embed';
  IF embedded_max > most THEN
    choice := 'link';
    reasons := reasons || format('the largest document would have %s bytes with its children in '
        'it, and at most %s are allowed', embedded_max, most);
  END IF;
  IF cardinality = 'many-to-many' THEN
    choice := 'link';
    reasons := reasons || format('a child has up to %s parents, and would be stored as often',
        parents_max);
  END IF;
  IF children_max > 1000 OR children_max > 100
      AND children_max > 20 * greatest(children_median, 1) THEN
    choice := 'link';
    reasons := reasons || format('a parent has up to %s children (median %s): the array has no '
        'bound', children_max, children_median);
  END IF;
  IF embedded_p99 > 262144 AND embedded_max <= most THEN
    choice := 'link';
    reasons := reasons || format('one document in a hundred would have %s bytes or more, which '
        'each change of a child rewrites', embedded_p99);
  END IF;
  IF writes > 1000 AND writes > reads / 2 THEN
    choice := 'link';
    reasons := reasons || format('children are changed %s times for each time that one is read',
        writes_per_read);
  END IF;
  IF choice = 'embed' THEN
    reasons := ARRAY[CASE cardinality
        WHEN 'one-to-one' THEN 'each child has one parent, which has no other: they are one '
        'document'
          ELSE format('a parent has few children (at most %s), which '
              'belong to it alone', children_max) END,
                     format('the largest document would have %s bytes', embedded_max)];
    statement := format('SELECT relationship_embed(%L, %L, %sinto_field => %L, keep_id => true%s)',
        parent::text, child::text,
                        CASE WHEN on_field IS NOT NULL THEN format('on_field => %L, ', on_field)
                          ELSE '' END, field, CASE WHEN cardinality = 'one-to-one'
                          AND on_field IS NOT NULL THEN ', one => true' ELSE '' END);
  ELSIF cardinality = 'many-to-many' THEN
    IF children_p99 <= 1000 AND parents_max <= 1000 THEN
      ids_in := 'both';
      reasons := reasons || 'both arrays of ids are short, and each side finds the other by '
        'itself'::text;
      statement := CASE WHEN on_field IS NOT NULL THEN
        format('SELECT relationship_enable(%L, %L, %L, %L)', child::text, on_field, parent::text,
          field)
                        ELSE format('SELECT relationship_enable(%L, %L, %L, %L)', parent::text,
                            ids_field, child::text, quote_ident((SELECT q.relname FROM pg_class q
                                WHERE q.oid = parent))) END;
    ELSE
      ids_in := CASE WHEN parents_max <= children_max THEN 'child' ELSE 'parent' END;
      reasons := reasons || format('the ids are in the %s, whose array is the shorter one', ids_in);
    END IF;
  ELSE
    ids_in := CASE WHEN ids_field IS NOT NULL AND children_max <= 100 THEN 'parent' ELSE 'child'
      END;
    reasons := reasons || CASE ids_in WHEN 'child' THEN
      'the id is in the child, which has one parent: nothing grows'
        ELSE 'the parent may keep the ids: they are few, and it has '
          'them at hand' END::text;
  END IF;
  IF statement IS NULL THEN
    statement := CASE
      WHEN ids_in = 'child' AND on_field IS NOT NULL THEN
        format('CREATE INDEX ON %s ((%I -> %L))', child, c.doc, on_field)
      WHEN ids_in = 'parent' AND ids_field IS NOT NULL THEN
        format('CREATE INDEX ON %s USING gin (%I bson_ops (paths = %L))', parent, p.doc, ids_field)
      WHEN ids_in = 'child' THEN format('SELECT relationship_embed(%1$L, %2$L, into_field => %3$L, '
          'keep_id => true), relationship_link(%1$L, %3$L, %2$L, on_field => %4$L, many_to_many => '
          '%5$s)', parent::text, child::text, ids_field,
            quote_ident((SELECT q.relname FROM pg_class q
                WHERE q.oid = parent)), parents_max > 1)
      ELSE format('SELECT relationship_embed(%1$L, %2$L, on_field => %3$L, into_field => %4$L, '
          'keep_id => true), relationship_link(%1$L, %4$L, %2$L, ids_in => ''parent'')',
          parent::text, child::text, on_field, field) END;
  END IF;
  why := array_to_string(reasons, '; ');
END
$$;
COMMENT ON FUNCTION relationship_advise(regclass, regclass, text, text) IS
  'Measures a relationship, linked by on_field of the child or by the IDs in ids_field of the '
  'parent, and says whether to embed or to link, and why. Reads both tables once. Errors: 22023, '
  '0A000';
