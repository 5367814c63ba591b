-- Shared by the SQL of patterns: side tables, with owner and guard, and the end of a declaration.
-- Nothing here checks the caller's privileges: the verbs of pattern.sql and the declaring functions
-- did.

-- Declaring ---------------------------------------------------------------------------------------

-- The verbs find a declaration by its name, so a table has each name only once, in all patterns.
-- The lock is the one that the triggers need anyway: without it, two sessions that declare the same
-- name would both find it free.
CREATE FUNCTION docpatterns._pattern_require_unused(rel regclass, name text,
    link_id text DEFAULT NULL)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF (SELECT c.relkind IN ('r', 'p') FROM pg_class c WHERE c.oid = rel) THEN
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', rel);
  END IF;
  IF EXISTS (SELECT FROM docpatterns._pattern_declarations(rel) d
             WHERE d.name = _pattern_require_unused.name
                 AND NOT coalesce(@extschema@.bson_get_text(d.options, 'link_id')
                   = _pattern_require_unused.link_id, false)) THEN
    RAISE EXCEPTION 'table "%" already has a pattern named "%"', docpatterns._relname(rel), name
      USING ERRCODE = 'duplicate_object',
        HINT = 'Change it with pattern_alter(), or specify another name with the argument "name".';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_require_unused(regclass, text, text) IS
  'locks a table for a declaration of that name; error 42710 if there is one already (but for the '
  'one with the link ID)';

CREATE FUNCTION docpatterns._pattern_nonempty(rel regclass) RETURNS boolean
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  result boolean;
BEGIN
  EXECUTE format('SELECT EXISTS (SELECT 1 FROM %s)', rel) INTO result;
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_nonempty(regclass) IS 'whether a table has rows';

CREATE FUNCTION docpatterns._pattern_distance(a text, b text) RETURNS int
  AS 'MODULE_PATHNAME', 'dp_pattern_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION docpatterns._pattern_distance(text, text) IS
  'how many characters of a name have to be inserted, deleted or changed to make it the other one; '
  'NULL for names of more than 255 bytes';

CREATE FUNCTION docpatterns._pattern_near_tables(schema_name text, table_name text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce('Did you mean ' || string_agg(quote_ident(n.relname), ' or '
        ORDER BY n.d, n.relname) || '? ', '')
  FROM (SELECT c.relname, docpatterns._pattern_distance(c.relname, $2) AS d
        FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
        WHERE s.nspname = $1 AND c.relkind IN ('r', 'p')
          AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid
            AND a.atttypid = '@extschema@.bson'::regtype)
          AND has_table_privilege(c.oid, 'SELECT') ORDER BY 2, 1 LIMIT 3) n
  WHERE n.d <= greatest(2, length($2) / 3)
$$;
COMMENT ON FUNCTION docpatterns._pattern_near_tables(text, text) IS
  'the beginning of a hint: tables with documents whose names resemble a missing one, or an empty '
  'text';

-- A named table that does not exist is more often misspelt than intended.
CREATE FUNCTION docpatterns._pattern_create_collection(wanted text, schema_name text, owner oid,
  allowed boolean, argument text) RETURNS regclass
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  parts text[] := parse_ident(wanted);
  made regclass;
BEGIN
  IF cardinality(parts) > 1 THEN
    schema_name := parts[1];
  END IF;
  IF allowed IS NOT TRUE THEN
    RAISE EXCEPTION 'relation "%" does not exist', wanted USING ERRCODE = 'undefined_table',
      HINT = docpatterns._pattern_near_tables(schema_name, parts[cardinality(parts)])
      || format('Use %s => true to create it.', argument);
  END IF;
  made := @extschema@.collection_create(format('%I.%I', schema_name, parts[cardinality(parts)]));
  EXECUTE format('ALTER TABLE %s OWNER TO %s', made, owner::regrole);
  RETURN made;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_create_collection(text, text, oid, boolean, text) IS
  'creates a missing collection if that is allowed; else error 42P01 with similar names and the '
  'argument that allows it';

-- For queries of verbs that have locked the table.
CREATE FUNCTION docpatterns._pattern_latest(query text) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_pattern_latest' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._pattern_latest(text) IS
  'the value that a query returns, read with the latest snapshot at every isolation level; runs '
  'with the privileges of the caller';

-- Values from before the declaration --------------------------------------------------------------

-- Fields that a pattern maintains may have values that exist nowhere else. Their paths are stored
-- in the declaration as "held" until pattern_build() has adopted or discarded the values, and as
-- "own" from then on: see src/kit/adopt.h.
CREATE FUNCTION docpatterns._pattern_option_paths(pattern text, options bson, OUT path text,
  OUT kept boolean, OUT guarded boolean, OUT derived boolean) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_pattern_option_paths' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._pattern_option_paths(text, bson) IS
  'paths in the options of a pattern, by the flags in its table of options';

-- A pattern may have a function _<pattern>_paths(bson) where its table of options does not tell.
CREATE FUNCTION docpatterns._pattern_paths(pattern text, options bson, OUT path text,
  OUT kept boolean, OUT guarded boolean, OUT derived boolean) RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY EXECUTE format('SELECT p.* FROM docpatterns.%s p',
    CASE WHEN docpatterns._pattern_hook($1, 'paths', '@extschema@.bson') IS NOT NULL THEN
      format('%I($2)', concat('_', $1, '_paths')) ELSE '_pattern_option_paths($1, $2)' END)
    USING $1, $2;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_paths(text, bson) IS
  'paths of the fields of a declaration with these options: kept by it alone, guarded because '
  'bringing documents in line could lose a value there, derived from something else, or only read';

CREATE FUNCTION docpatterns._pattern_holds(doc bson, path text, is_flag boolean) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_pattern_holds' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION docpatterns._pattern_holds(bson, text, boolean) IS
  'whether a field has a value other than null, false, zero or an empty one and, if it is a flag, '
  '"yes" and the like';

CREATE FUNCTION docpatterns._pattern_set_options(rel regclass, trigger_oid oid, options text)
  RETURNS void
  AS 'MODULE_PATHNAME', 'dp_pattern_set_options' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._pattern_set_options(regclass, oid, text) IS
  'writes options into the trigger that carries a declaration, and lets writers go on; error 42704 '
  'for another trigger, 42501 unless the caller owns the table';

-- The fields that a declaration maintains and that already have values: scanned once, with the
-- table locked by the caller; for a new partition, if documents in it are inconsistent.
CREATE FUNCTION docpatterns._pattern_note_held(rel regclass, name text, part regclass DEFAULT NULL)
  RETURNS text[]
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
  s record;
  found text[];
  held text[] := '{}';
  wrong boolean;
BEGIN
  SELECT q.pattern, q.options, q.trigger_oid INTO d FROM docpatterns._pattern_declarations(rel) q
    WHERE q.name = _pattern_note_held.name;
  FOR s IN EXECUTE concat('SELECT t.base, t.doc, t.key_value, $1 AS paths '
      'FROM docpatterns._pattern_table($2, $3) t',
      CASE WHEN docpatterns._pattern_hook(d.pattern, 'held', 'regclass, text') IS NOT NULL THEN
        format(' UNION ALL SELECT h.* FROM docpatterns.%I($4, $5) h',
          concat('_', d.pattern, '_held')) END)
      USING ARRAY(SELECT p.path FROM docpatterns._pattern_paths(d.pattern, d.options) p
        WHERE p.guarded), coalesce(part, rel),
      @extschema@.bson_get_text(d.options, 'doc_column'), rel, name LOOP
    CONTINUE WHEN s.paths = '{}';
    EXECUTE format('SELECT ARRAY[%s] FROM %s AS b',
                   (SELECT string_agg(format('CASE WHEN bool_or(docpatterns._pattern_holds(b.%I, '
                         '%L, %L)) THEN %2$L END', s.doc, p,
                         p IS NOT DISTINCT FROM @extschema@.bson_get_text(d.options, 'flag')), ', '
                       ORDER BY n)
                    FROM unnest(s.paths) WITH ORDINALITY AS u (p, n)), s.base) INTO found;
    found := array_remove(found, NULL);
    IF part IS NOT NULL AND found <> '{}' THEN
      -- one that was here before may be consistent
      EXECUTE format('SELECT EXISTS (SELECT 1 FROM %s AS b JOIN @extschema@.pattern_check($1, $2) '
          'AS c ON %s OPERATOR(@extschema@.=) c.key)', s.base, s.key_value)
        INTO wrong USING rel, name;
      CONTINUE WHEN NOT wrong;
    END IF;
    held := held || found;
  END LOOP;
  IF held <> '{}' THEN
    PERFORM docpatterns._pattern_set_options(rel, d.trigger_oid,
        @extschema@.bson_set(d.options, 'held',
      ARRAY(SELECT p FROM unnest(ARRAY(SELECT e::text
            FROM @extschema@.bson_elements(d.options OPERATOR(@extschema@.->) 'held'::text) e)
          || held) WITH ORDINALITY AS u (p, n) GROUP BY p ORDER BY min(n)))::text);
  END IF;
  RETURN held;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_note_held(regclass, text, regclass) IS
  'stores in a declaration which of its fields have values in the documents of the table, or in '
  'those of an inconsistent partition, and returns their paths; reads or checks the table once';

-- A field that a pattern writes to in existing documents.
CREATE FUNCTION docpatterns._pattern_require_fit(rel regclass, doc text, field text, fits text,
  must text, argument text) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  r record;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc) p;
  EXECUTE format('SELECT count(*) AS n, (array_agg(left(v.key::text, 100)))[1:5] AS keys FROM '
      '(SELECT %s AS key, @extschema@.bson_typeof(b.%I, $1) AS kind, '
      '@extschema@.bson_get_text(b.%2$I, $1) AS value FROM %s AS b) v '
                 'WHERE v.kind <> ''null'' AND (%s) IS NOT TRUE', t.key_value, doc, t.base, fits)
                   INTO r USING field;
  IF r.n > 0 THEN
    RAISE EXCEPTION 'field "%" in table "%" must be %', field, docpatterns._relname(rel), must
      USING ERRCODE = 'object_not_in_prerequisite_state',
      DETAIL = format('It has another type in %s documents. Keys: %s%s.', r.n,
        array_to_string(r.keys, ', '), CASE WHEN r.n > 5 THEN ', ...' ELSE '' END),
      HINT = format('Specify another field with the argument %s, or change the '
        'documents.', argument);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_require_fit(regclass, text, text, text, text, text) IS
  'error 55000, with their number and some keys, for documents that have the field but do not '
  'satisfy a condition on its type and text, SQL text with v.kind and v.value; reads the table '
  'once';

-- How to adopt values that only the documents have.
CREATE FUNCTION docpatterns._pattern_adopt_hint(rel regclass, pattern text, options bson)
  RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT replace(replace(coalesce(f.adopt_hint,
      'Give the pattern another field, or move the values to one.'),
    '{source}', coalesce(docpatterns._pattern_side(@extschema@.bson_get_text($3, 'link_id'),
        $1)::text,
      'the source')),
    '{on_field}', coalesce(@extschema@.bson_get_text($3, 'on_field'), '')) || ' '
  FROM docpatterns._pattern_facts($2) f
$$;
COMMENT ON FUNCTION docpatterns._pattern_adopt_hint(regclass, text, bson) IS
  'a hint for values that a declaration with these options would lose';

CREATE FUNCTION docpatterns._pattern_notice_held(rel regclass, name text,
  part regclass DEFAULT NULL) RETURNS boolean
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
  held text[] := docpatterns._pattern_note_held(rel, name, part);
  base text := (SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = rel);
BEGIN
  IF held = '{}' THEN
    RETURN false;
  END IF;
  SELECT q.pattern INTO d FROM docpatterns._pattern_declarations(rel) q
    WHERE q.name = _pattern_notice_held.name;
  RAISE NOTICE '% "%" has rows with values in fields of pattern "%": %', CASE
    WHEN part IS NULL THEN 'table' ELSE 'partition' END, docpatterns._relname(coalesce(part, rel)),
    name, array_to_string(held, ', ')
    USING HINT = format('CALL pattern_build(%L, %L) makes them consistent, %sand writes nothing if '
      'a value would be lost.', base, name, (docpatterns._pattern_facts(d.pattern)).adopts || ', ');
  RETURN true;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_notice_held(regclass, text, regclass) IS
  'stores which fields of a new declaration have values, and reports them in a notice; whether '
  'there are any';

-- The rows of a new partition may have such values, too.
CREATE FUNCTION docpatterns._pattern_notice_partition(part regclass) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._pattern_notice_held(a.relid, d.name, $1)
  FROM pg_partition_ancestors($1) a JOIN pg_class c ON c.oid = a.relid
    AND pg_has_role(c.relowner, 'USAGE')
    CROSS JOIN LATERAL docpatterns._pattern_declarations(a.relid) d
  WHERE a.relid <> $1
$$;
COMMENT ON FUNCTION docpatterns._pattern_notice_partition(regclass) IS
  '_pattern_notice_held for all declarations of the ancestors of a partition';

-- A declaration leaves existing rows to pattern_build().
CREATE FUNCTION docpatterns._pattern_notice_rows(rel regclass, name text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  base text;
BEGIN
  IF docpatterns._pattern_nonempty(rel) AND NOT docpatterns._pattern_notice_held(rel, name) THEN
    SELECT format('%I.%I', n.nspname, c.relname) INTO base FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = rel;
    RAISE NOTICE 'table "%" already has rows', docpatterns._relname(rel)
      USING HINT = format('Run CALL pattern_build(%L, %L) to make them consistent.', base, name);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_notice_rows(regclass, text) IS
  'a notice, if the table has rows, that says how to make them consistent';

CREATE FUNCTION docpatterns._pattern_repair_rows(rel regclass, name text, query text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r record;
  done bigint := 0;
BEGIN
  IF docpatterns._pattern_is_distributed(rel) THEN
    RETURN docpatterns._pattern_sum_shards(rel, format('@extschema@.pattern_repair(s.rel, %L)',
        name));
  END IF;
  FOR r IN EXECUTE query USING rel, name LOOP
    done := done + docpatterns._pattern_repair_row(rel, name, r.key)::int;
  END LOOP;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_repair_rows(regclass, text, text) IS
  'makes the rows consistent whose keys SQL text returns as "key" ($1: rel, $2: name), and returns '
  'how many were written';

CREATE FUNCTION docpatterns._pattern_lost(rel regclass, name text, keys record[]) RETURNS text[]
  AS 'MODULE_PATHNAME', 'dp_pattern_lost' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._pattern_lost(regclass, text, record[]) IS
  'for each row the first field whose value would be lost if these rows were made consistent, or '
  'NULL; does that in a subtransaction and rolls it back; error 42501 unless the caller owns the '
  'table';

CREATE FUNCTION docpatterns._pattern_require_kept(rel regclass, pattern text, name text)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r record;
  lost text[];
  fields text[] := '{}';
  keys text[] := '{}';
  n bigint := 0;
BEGIN
  IF docpatterns._pattern_is_distributed(rel) THEN
    PERFORM docpatterns._pattern_sum_shards(rel, format(
        'CASE WHEN docpatterns._pattern_require_kept(s.rel, %L, %L) IS NULL THEN 0 END', pattern,
        name));
    RETURN;
  END IF;
  -- a batch at a time: each subtransaction uses a transaction ID
  FOR r IN
    SELECT array_agg(k.key ORDER BY k.n) AS keys
    FROM (SELECT p.key, row_number() OVER () AS n
          FROM docpatterns._pattern_pending_keys(rel, pattern, name) AS p (key record)) AS k
    GROUP BY k.n / 64 ORDER BY min(k.n)
  LOOP
    lost := docpatterns._pattern_lost(rel, name, r.keys);
    n := n + cardinality(array_remove(lost, NULL));
    FOR i IN 1 .. cardinality(lost) LOOP
      IF lost[i] IS NOT NULL AND cardinality(keys) < 5 THEN
        keys := keys || left(substring((r.keys)[i]::text FROM '^[(](.*)[)]$'), 100);
      END IF;
    END LOOP;
    fields := ARRAY(SELECT f FROM unnest(fields || lost) WITH ORDINALITY AS u (f, i)
                    WHERE f IS NOT NULL GROUP BY f ORDER BY min(i));
  END LOOP;
  IF n > 0 THEN
    RAISE EXCEPTION 'pattern "%" of table "%": % that would be lost', name,
        docpatterns._relname(rel), CASE n
      WHEN 1 THEN '1 document holds values' ELSE format('%s documents hold values', n) END
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Fields: %s. Keys: %s%s.', array_to_string(fields, ', '),
              array_to_string(keys, ', '), CASE WHEN n > 5 THEN ', ...' ELSE '' END),
            HINT = (SELECT docpatterns._pattern_adopt_hint(d.rel, d.pattern, d.options)
              FROM docpatterns._pattern_declarations(_pattern_require_kept.rel) d
              WHERE d.name = _pattern_require_kept.name)
                   || format('Run CALL pattern_build(%L, %L, discard => true) to discard '
                     'them.', rel,
                       name);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_require_kept(regclass, text, text) IS
  'error 55000, with their number and some keys, if documents have values that would be lost by '
  'making them consistent';

-- Fields that documents had before a declaration: they stay when it ends.
CREATE FUNCTION docpatterns._pattern_own_paths(options bson) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT ARRAY(SELECT e::text FROM unnest(ARRAY['held', 'own']) o
      CROSS JOIN LATERAL @extschema@.bson_elements($1 OPERATOR(@extschema@.->) o) e)
$$;
COMMENT ON FUNCTION docpatterns._pattern_own_paths(bson) IS
  'paths of fields of a declaration that documents had before it';

-- When a pattern is to maintain more fields, existing values in them are the user's.
CREATE FUNCTION docpatterns._pattern_require_free(rel regclass, pattern text, name text,
  options bson, altered bson)
RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  added text[];
  holds text;
  found record;
BEGIN
  IF docpatterns._pattern_hook(pattern, 'added',
       'regclass, text, @extschema@.bson, @extschema@.bson') IS NOT NULL THEN
    EXECUTE format('SELECT a.* FROM docpatterns.%I($1, $2, $3, $4) a',
        concat('_', pattern, '_added')) INTO added, holds USING rel, name, options, altered;
  ELSE
    added := ARRAY(
      SELECT p.path FROM docpatterns._pattern_paths(pattern, altered) p WHERE p.guarded
      EXCEPT SELECT p.path FROM docpatterns._pattern_paths(pattern, options) p WHERE p.guarded);
  END IF;
  IF added = '{}' THEN
    RETURN;
  END IF;
  SELECT q.* INTO t
    FROM docpatterns._pattern_table(rel, @extschema@.bson_get_text(options, 'doc_column')) q;
  EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', t.base);
  holds := coalesce(holds, (SELECT string_agg(format('docpatterns._pattern_holds(%I, %L, false)',
      t.doc, a), ' OR ') FROM unnest(added) a));
  SELECT j.* INTO found FROM jsonb_to_record(docpatterns._pattern_latest(format(
    'SELECT jsonb_build_object(''n'', count(*), ''keys'', '
      'string_agg(CASE WHEN i <= 3 THEN key END, '', '')) '
    'FROM (SELECT (%s)::text AS key, row_number() OVER () AS i FROM %s AS b WHERE %s) AS q',
    t.key_value, t.base, holds))::jsonb) AS j (n bigint, keys text);
  IF found.n > 0 THEN
    RAISE EXCEPTION 'pattern "%" of table "%": % in fields that it does not maintain yet', name,
        docpatterns._relname(rel),
        CASE found.n WHEN 1 THEN '1 document has a value'
          ELSE found.n || ' documents have values' END
      USING ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Fields: %s. Keys: %s.', array_to_string(added, ', '), found.keys),
            HINT = 'Rename or remove these fields, and repeat the call.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_require_free(regclass, text, text, bson, bson) IS
  'error 55000 if documents have values in fields that a declaration maintains only with other '
  'options; locks the table against writers';

-- All rows are consistent: values in their fields are adopted or discarded.
CREATE FUNCTION docpatterns._pattern_note_built(rel regclass, name text, discarded boolean)
  RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._pattern_set_options($1, d.trigger_oid,
           CASE WHEN $3 THEN @extschema@.bson_unset(d.options, 'held')
                ELSE @extschema@.bson_set(@extschema@.bson_unset(d.options, 'held'), 'own',
                    ARRAY(SELECT DISTINCT p FROM unnest(docpatterns._pattern_own_paths(d.options)) p
                      ORDER BY p)) END::text)
  FROM docpatterns._pattern_declarations($1) d WHERE d.name = $2
    AND @extschema@.bson_exists(d.options, 'held')
$$;
COMMENT ON FUNCTION docpatterns._pattern_note_built(regclass, text, boolean) IS
  'ends the guard on values from before the declaration';

-- A declaration, as the verbs need it -------------------------------------------------------------

-- Names, options and pieces of SQL text, in which "b" is a row of the table and "s" one of the
-- second table, if the extension made it. Rows are matched by the key columns themselves: as BSON,
-- two timestamps of one millisecond are equal.
CREATE FUNCTION docpatterns._pattern_parts(rel regclass, pattern text, name text,
                               OUT base text, OUT schema_name text, OUT table_name text,
                               OUT owner oid, OUT options bson, OUT doc_name text, OUT doc text,
                               OUT keys text[], OUT key_types text[], OUT key_ops text[],
                               OUT key_list text, OUT key_row text, OUT key_value text,
                               OUT side regclass, OUT side_keys text[], OUT side_key_list text,
                               OUT side_key_row text, OUT side_key_value text, OUT matches text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  as_value text;
BEGIN
  SELECT d.options INTO options FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = _pattern_parts.pattern AND d.name = _pattern_parts.name;
  IF options IS NULL THEN
    RAISE EXCEPTION 'table "%" has no % pattern "%"', docpatterns._relname(rel), replace(pattern,
        '_', ' '), name
      USING ERRCODE = 'undefined_object';
  END IF;
  SELECT p.base, p.schema_name, p.table_name, p.owner, p.doc, format('b.%I', p.doc), p.keys,
    p.key_types, p.key_ops
    INTO base, schema_name, table_name, owner, doc_name, doc, keys, key_types, key_ops
    FROM docpatterns._pattern_table(rel,
        docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) p;
  side := docpatterns._pattern_side(@extschema@.bson_get_text(options, 'link_id'), rel);
  side_keys := docpatterns._pattern_side_keys(cardinality(keys));
  as_value := CASE WHEN cardinality(keys) = 1 THEN '@extschema@.to_bson(%s)' ELSE
    '@extschema@.bson_array(%s)' END;
  SELECT string_agg(format('b.%I', k), ', ' ORDER BY n), string_agg(format('s.%I', s), ', '
      ORDER BY n), string_agg(format('b.%I %s s.%I', k, o, s), ' AND ' ORDER BY n)
    INTO key_list, side_key_list, matches FROM unnest(keys, key_ops, side_keys)
      WITH ORDINALITY AS u (k, o, s, n);
  key_row := format('ROW(%s)', key_list);
  key_value := format(as_value, key_list);
  side_key_row := format('ROW(%s)', side_key_list);
  side_key_value := format(as_value, side_key_list);
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_parts(regclass, text, text) IS
  'a declaration: its table, options and second table, and the pieces of SQL text for its verbs; '
  'error 42704 if there is none';

-- Options -----------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._pattern_options(pattern text, given bson, declared bson DEFAULT NULL)
  RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pattern_options' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._pattern_options(text, bson, bson) IS
  'options of a new declaration, without nulls, or a declaration''s options with changes; '
  'errors 22023 and 22004 for what the pattern''s table of options does not allow';

CREATE FUNCTION docpatterns._pattern_refuse_kept(rel regclass, doc_column text, name text,
  fields text[])
RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  clash record;
BEGIN
  SELECT d.pattern, d.name, f.path INTO clash
    FROM docpatterns._pattern_declarations(rel) d
      CROSS JOIN LATERAL docpatterns._pattern_paths(d.pattern, d.options) AS k
      CROSS JOIN unnest(fields) AS f (path)
    WHERE d.name <> _pattern_refuse_kept.name AND (k.kept OR k.derived)
      AND @extschema@.bson_get_text(d.options, 'doc_column') IS NOT DISTINCT FROM doc_column
      AND docpatterns._pattern_paths_overlap(k.path, f.path) LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'field "%" of table "%" is already maintained by the % pattern '
      '"%"', clash.path, docpatterns._relname(rel),
      replace(clash.pattern, '_', ' '), clash.name USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_refuse_kept(regclass, text, text, text[]) IS
  'error 22023 for fields that another declaration of the table maintains in documents of that '
  'column';

-- A pattern may have a function _<pattern>_verify(regclass, bson) that checks options against each
-- other.
CREATE FUNCTION docpatterns._pattern_verify(rel regclass, pattern text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  paths text[];
  clash record;
BEGIN
  IF docpatterns._pattern_hook(pattern, 'verify', 'regclass, @extschema@.bson') IS NOT NULL THEN
    EXECUTE format('SELECT docpatterns.%I($1, $2)', concat('_', pattern, '_verify'))
      USING rel, options;
  END IF;
  paths := ARRAY(SELECT p.path FROM docpatterns._pattern_paths(pattern, options) p WHERE p.kept);
  SELECT a.p, b.p AS other INTO clash
    FROM unnest(paths) WITH ORDINALITY AS a (p, n)
      JOIN unnest(paths || '_id'::text) WITH ORDINALITY AS b (p, n) ON a.n < b.n
    WHERE docpatterns._pattern_paths_overlap(a.p, b.p) LIMIT 1;
  IF clash.other = '_id' THEN
    RAISE EXCEPTION 'a pattern cannot maintain field "%"', clash.p
      USING ERRCODE = 'invalid_parameter_value';
  ELSIF FOUND THEN
    RAISE EXCEPTION 'fields "%" and "%" must not be equal or contain each other',
      clash.p, clash.other USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM docpatterns._pattern_refuse_kept(rel, @extschema@.bson_get_text(options, 'doc_column'),
            @extschema@.bson_get_text(options, 'name'), paths);
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_verify(regclass, text, bson) IS
  'errors 22023 and others for options that do not fit each other, the table or its patterns';

CREATE FUNCTION docpatterns._pattern_declare(rel regclass, pattern text, given bson) RETURNS bson
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  options @extschema@.bson := docpatterns._pattern_options(pattern, given);
BEGIN
  PERFORM docpatterns._shard_require_fit(rel, pattern,
    (docpatterns._pattern_distribution(rel)).method);
  PERFORM docpatterns._pattern_require_unused(rel, @extschema@.bson_get_text(options, 'name'));
  PERFORM docpatterns._pattern_verify(rel, pattern, options);
  PERFORM docpatterns._pattern_allow_triggers(rel);
  RETURN options;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_declare(regclass, text, bson) IS
  'the options of a new declaration, checked; locks the table against writers; '
  'errors as _pattern_options(), _pattern_verify() and _pattern_require_unused()';

-- Other work of a pattern is in its _<pattern>_alter().
CREATE FUNCTION docpatterns._pattern_alter(rel regclass, name text, changes bson) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
  options @extschema@.bson;
  result text;
BEGIN
  SELECT q.pattern, q.options INTO d FROM docpatterns._pattern_declarations(rel) q
    WHERE q.name = _pattern_alter.name;
  options := docpatterns._pattern_options(d.pattern, changes, d.options);
  IF changes::text = '{}' THEN
    RETURN NULL;
  END IF;
  PERFORM docpatterns._pattern_verify(rel, d.pattern, options);
  PERFORM docpatterns._pattern_require_free(rel, d.pattern, name, d.options, options);
  IF docpatterns._pattern_hook(d.pattern, 'alter', 'regclass, text, @extschema@.bson')
     IS NOT NULL THEN
    EXECUTE format('SELECT docpatterns.%I($1, $2, $3)', concat('_', d.pattern, '_alter'))
      INTO result USING rel, name, options;
  ELSE
    EXECUTE format('SELECT docpatterns.%I($1, $2)', concat('_', d.pattern, '_create_triggers'))
      USING rel, options;
  END IF;
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_alter(regclass, text, bson) IS
  'pattern_alter of a declaration: checks its options with changes and replaces its triggers';

-- Tables that a pattern keeps ---------------------------------------------------------------------

-- Rows of a side table refer to a row of the user's table by their own columns: key, or key1, key2,
-- .. if its key has several (at most 32, the limit of an index).
CREATE FUNCTION docpatterns._pattern_side_keys(n int) RETURNS text[]
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN $1 = 1 THEN ARRAY['key'] ELSE
    (SELECT array_agg('key' || i ORDER BY i) FROM generate_series(1, least($1, 32)) i) END
$$;
COMMENT ON FUNCTION docpatterns._pattern_side_keys(int) IS
  'the columns of a side table for a key of n columns';

CREATE FUNCTION docpatterns._pattern_require_no_table(qualified text) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF to_regclass(qualified) IS NOT NULL THEN
    RAISE EXCEPTION 'relation "%" already exists', (SELECT c.relname FROM pg_class c
        WHERE c.oid = to_regclass(qualified)) USING ERRCODE = 'duplicate_table',
      HINT = 'The pattern creates a table of this name. Rename or drop the existing one: DROP '
        'EXTENSION .. CASCADE leaves such tables behind, without their documents.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_require_no_table(text) IS
  'error 42P07, with a hint, for the name of a table that is there';

CREATE FUNCTION docpatterns._pattern_create_table(rel regclass, pattern text, name text,
    link_id text,
  made text, columns text, settings text, description text, key_column text DEFAULT NULL,
  actions text DEFAULT NULL)
  RETURNS regclass
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF docpatterns._pattern_table_of(rel) <> rel THEN
    RAISE EXCEPTION 'side table "%" of a shard is missing', made
      USING ERRCODE = 'object_not_in_prerequisite_state',
        DETAIL = 'It has been moved or dropped by hand.';
  END IF;
  PERFORM docpatterns._pattern_require_owner(rel);
  PERFORM docpatterns._pattern_require_no_table(made);
  EXECUTE format('CREATE %sTABLE %s (%s) %s', CASE (SELECT c.relpersistence FROM pg_class c
      WHERE c.oid = rel) WHEN 'u' THEN 'UNLOGGED ' WHEN 't' THEN 'TEMP ' ELSE '' END,
    made, columns, settings);
  EXECUTE format('COMMENT ON TABLE %s IS %L', made, description);
  -- Citus does not alter everything of a distributed table
  IF actions IS NOT NULL THEN
    EXECUTE format('ALTER TABLE %s %s', made, actions);
  END IF;
  PERFORM docpatterns._pattern_distribute_side(made::regclass, rel, key_column);
  PERFORM docpatterns._pattern_keep_table(made::regclass, rel, pattern, name, link_id);
  RETURN made::regclass;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_create_table(regclass, text, text, text, text, text, text,
  text, text, text) IS
  'makes the table "made" for a declaration of rel: columns, settings behind them (or NULL), a '
  'comment, and what _pattern_keep_table() gives it; key_column is that of the column by which rel '
  'is distributed, actions those of ALTER TABLE; error 42501 unless the caller owns rel';

CREATE FUNCTION docpatterns._pattern_create_side(rel regclass, doc_column text, pattern text,
  name text, link_id text, side_name text,
    columns text, more_key text, settings text, description text, actions text DEFAULT NULL)
    RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM docpatterns._pattern_create_table(rel, pattern, name, link_id, side_name,
    format('%s, %s, PRIMARY KEY (%s)',
      (SELECT string_agg(format('%I %s NOT NULL', k, type), ', ' ORDER BY n)
        FROM unnest(s.keys, t.key_types) WITH ORDINALITY AS u (k, type, n)), columns,
      concat_ws(', ', VARIADIC s.keys || more_key)), settings, description,
    s.keys[array_position(t.keys, (docpatterns._pattern_distribution(rel)).column_name)], actions)
  FROM docpatterns._pattern_table(rel, doc_column) t
    CROSS JOIN docpatterns._pattern_side_keys(cardinality(t.keys)) AS s (keys);
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_create_side(regclass, text, text, text, text, text, text,
  text, text, text, text) IS
  'makes the table side_name for a declaration, with the columns of the key of rel, the columns '
  'that are given, and the primary key of both (more_key: what it has besides, or NULL)';

CREATE FUNCTION docpatterns._pattern_guard(side regclass, pattern text, name text, link_id text)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g record;
BEGIN
  FOR g IN SELECT * FROM docpatterns._pattern_split_events(
        'BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE', 62) LOOP
    EXECUTE format('CREATE TRIGGER %I %s ON %s FOR EACH STATEMENT EXECUTE FUNCTION '
        'docpatterns.pattern_guard_trigger(%L, %L, %L)',
                   docpatterns._pattern_trigger_name(side, 'zz_docpatterns_90_' || pattern, name,
                     concat_ws('_', 'guard', g.label)), g.event, side, 'side', link_id, name);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_guard(regclass, text, text, text) IS
  'makes a table writable only by the declaration with the link ID';

CREATE FUNCTION docpatterns._pattern_keep_table(side regclass, rel regclass, pattern text,
  name text, link_id text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s OWNER TO %s', side, (SELECT c.relowner::regrole FROM pg_class c
        WHERE c.oid = rel));
  IF (SELECT c.relpersistence = 'u' AND s.relpersistence = 'p' FROM pg_class c, pg_class s
        WHERE c.oid = rel AND s.oid = side) THEN
    EXECUTE format('ALTER TABLE %s SET UNLOGGED', side);
  END IF;
  PERFORM docpatterns._pattern_guard(side, pattern, name, link_id);
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_keep_table(regclass, regclass, text, text, text) IS
  'makes a new table a side table of a declaration of rel: with the owner of rel, no grants, and '
  'the guard';

CREATE FUNCTION docpatterns._pattern_forget(side regclass, rel regclass) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_pattern_forget' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._pattern_forget(regclass, regclass) IS
  'removes the dependency of a side table on the pattern''s table; error 42501 unless the '
  'caller owns both';

CREATE FUNCTION docpatterns._pattern_release_table(side regclass, rel regclass) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  guard name;
BEGIN
  FOR guard IN SELECT t.tgname FROM pg_trigger t WHERE t.tgrelid = side
      AND t.tgfoid = 'docpatterns.pattern_guard_trigger'::regproc LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', guard, side);
  END LOOP;
  PERFORM docpatterns._pattern_forget(side, rel);
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_release_table(regclass, regclass) IS
  'makes a side table of rel an ordinary table';

CREATE FUNCTION docpatterns._pattern_drop_side(side regclass, rel regclass, keep_data boolean)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF side IS NOT NULL AND keep_data THEN
    PERFORM docpatterns._pattern_release_table(side, rel);
  ELSIF side IS NOT NULL THEN
    EXECUTE format('DROP TABLE %s', side);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_drop_side(regclass, regclass, boolean) IS
  'drops a side table of rel, or (keep_data) makes it an ordinary table; does nothing if there is '
  'none';

-- Anchors -----------------------------------------------------------------------------------------

-- Tracks columns and triggers of a declaration: see src/kit/anchor.h. Created after its triggers,
-- and again when these have changed.
CREATE FUNCTION docpatterns._pattern_anchor(rel regclass, name text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  options @extschema@.bson;
  main oid;
  t record;
  doc text;
  coarse text;
  anchor text;
  more @extschema@.bson;
BEGIN
  SELECT d.options, d.trigger_oid INTO options, main FROM docpatterns._pattern_declarations(rel) d
    WHERE d.name = _pattern_anchor.name;
  FOR t IN
    SELECT rel AS tab, name AS label, @extschema@.bson_get_text(options, 'doc_column') AS doc
    UNION ALL
    SELECT s.side, s.link_id, @extschema@.bson_get_text(options, 'source_doc_column')
    FROM (SELECT q.link_id, docpatterns._pattern_side(q.link_id, rel) AS side
          FROM unnest(docpatterns._pattern_link_ids(options)) AS q (link_id)) AS s
    WHERE NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = s.side
        AND g.tgfoid = 'docpatterns.pattern_guard_trigger'::regproc
          AND g.tgargs
            = docpatterns._pattern_arguments('side',
              s.link_id, name))
      AND s.side IS NOT NULL
  LOOP
    IF docpatterns._pattern_lasts_longer(rel, t.tab)
        AND NOT EXISTS (SELECT FROM docpatterns._pattern_anchors(t.tab) a
          WHERE a.label = t.label) THEN
      RAISE EXCEPTION 'table "%" is unlogged, and table "%" is not', docpatterns._relname(t.tab),
          docpatterns._relname(rel)
        USING ERRCODE = 'invalid_table_definition',
          DETAIL = 'A crash would empty only one of them.';
    END IF;
    SELECT a.attname INTO coarse
      FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, n)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        JOIN pg_opclass o ON o.oid = (i.indclass::oid[])[k.n - 1]
          LEFT JOIN pg_collation c ON c.oid = (i.indcollation::oid[])[k.n - 1]
      WHERE i.indrelid = t.tab AND i.indisprimary AND k.n <= i.indnkeyatts
        AND (NOT c.collisdeterministic OR o.opcname = 'citext_ops') LIMIT 1;
    IF FOUND THEN
      RAISE EXCEPTION 'column "%" of the primary key of table "%" is compared by a coarser '
        'equality than documents are', coarse, docpatterns._relname(t.tab)
        USING ERRCODE = 'feature_not_supported',
          DETAIL = 'One key there could be several values in documents.',
          HINT = 'Give the column a deterministic collation.';
    END IF;
    SELECT CASE WHEN count(*) = 1 THEN min(a.attname::text) END INTO doc FROM pg_attribute a
      JOIN pg_class c ON c.oid = a.attrelid
      WHERE a.attrelid = t.tab AND a.attnum > 0 AND NOT a.attisdropped
        AND a.atttypid = '@extschema@.bson'::regtype AND c.relkind <> 'f'
        AND (t.doc IS NULL OR a.attname = t.doc);
    more := @extschema@.bson_build(
      'keys', ARRAY(SELECT a.attname::text FROM pg_index i
        CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, n)
                      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
                    WHERE i.indrelid = t.tab AND i.indisprimary AND k.n <= i.indnkeyatts
                      ORDER BY k.n),
      'triggers', ARRAY(SELECT g.tgname::text FROM pg_trigger g JOIN pg_proc f ON f.oid = g.tgfoid
                        WHERE g.tgrelid = t.tab AND f.pronamespace = 'docpatterns'::regnamespace
                          AND (g.oid = main OR g.tgargs = docpatterns._pattern_arguments('of', name)
                              AND t.label = name
                               OR g.tgargs = docpatterns._pattern_arguments('side', t.label, name))
                                 ORDER BY g.tgname));
    anchor := coalesce((SELECT a.trigger_name FROM docpatterns._pattern_anchors(t.tab) a
          WHERE a.label = t.label),
                       docpatterns._pattern_trigger_name(t.tab, 'zz_docpatterns_00_anchor', name,
                         NULL));
    EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE UPDATE %s ON %s FOR EACH STATEMENT EXECUTE '
        'FUNCTION docpatterns.pattern_anchor_trigger(%L, %L, %L)',
                   anchor, CASE WHEN doc IS NOT NULL THEN format('OF %I', doc) ELSE ''
                   END, t.tab, 'anchor', t.label, more::text);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_anchor(regclass, text) IS
  'creates or replaces the anchors of a declaration on users'' tables; locks them against writers';

-- A crash empties an unlogged table without a trigger.
CREATE FUNCTION docpatterns._pattern_lasts_longer(rel regclass, other regclass) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.relpersistence = 'p' AND o.relpersistence = 'u' FROM pg_class r, pg_class o
    WHERE r.oid = $1 AND o.oid = $2 AND r.relkind <> 'f'
$$;
COMMENT ON FUNCTION docpatterns._pattern_lasts_longer(regclass, regclass) IS
  'whether a crash would empty the other table of a declaration, but not its own';

CREATE FUNCTION docpatterns._pattern_follow_persistence(rel regclass) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  is_unlogged boolean := (SELECT c.relpersistence = 'u' FROM pg_class c WHERE c.oid = rel);
  side regclass;
BEGIN
  FOR side IN
    SELECT s.side FROM docpatterns._pattern_declarations(_pattern_follow_persistence.rel) q
      CROSS JOIN LATERAL unnest(docpatterns._pattern_link_ids(q.options)) AS p (link_id)
      CROSS JOIN LATERAL (SELECT docpatterns._pattern_side(p.link_id, q.rel) AS side) s
      JOIN pg_class c ON c.oid = s.side
    WHERE (c.relpersistence = 'u') <> is_unlogged
      AND EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = s.side
          AND g.tgfoid = 'docpatterns.pattern_guard_trigger'::regproc)
  LOOP
    EXECUTE format('ALTER TABLE %s SET %s', side, CASE WHEN is_unlogged THEN 'UNLOGGED'
        ELSE 'LOGGED' END);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_follow_persistence(regclass) IS
  'makes side tables logged or unlogged as their table; called by an event trigger';

CREATE FUNCTION docpatterns._pattern_anchor_renamed(rel regclass, old_name text, new_name text)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  a record;
BEGIN
  FOR a IN SELECT q.* FROM docpatterns._pattern_anchors(rel) q WHERE old_name = ANY (q.keys) LOOP
    EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE UPDATE %s ON %s FOR EACH STATEMENT EXECUTE '
        'FUNCTION docpatterns.pattern_anchor_trigger(%L, %L, %L)',
                   a.trigger_name, CASE WHEN a.doc_column IS NOT NULL THEN
                   format('OF %I', a.doc_column) ELSE '' END, rel, 'anchor', a.label,
                   @extschema@.bson_build('keys', array_replace(a.keys, old_name, new_name),
                     'triggers', a.triggers)::text);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_anchor_renamed(regclass, text, text) IS
  'a column has another name: anchors whose key has it follow; called by an event trigger';

-- Triggers, and the end of a declaration ----------------------------------------------------------

CREATE FUNCTION docpatterns._pattern_arguments(VARIADIC words text[]) RETURNS bytea
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT string_agg(convert_to(w, 'UTF8') || decode('00', 'hex'), ''::bytea ORDER BY n)
    FROM unnest($1) WITH ORDINALITY AS u (w, n)
$$;
COMMENT ON FUNCTION docpatterns._pattern_arguments(text[]) IS
  'the arguments of a trigger as pg_trigger has them';

CREATE FUNCTION docpatterns._pattern_drop_anchor(rel regclass, label text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  anchor text;
BEGIN
  FOR anchor IN SELECT a.trigger_name FROM docpatterns._pattern_anchors(rel) a
      WHERE a.label = _pattern_drop_anchor.label LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', anchor, rel);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_drop_anchor(regclass, text) IS
  'drops the anchor of a declaration on one of its tables';

CREATE FUNCTION docpatterns._pattern_drop_triggers(rel regclass, pattern text, name text)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r record;
BEGIN
  PERFORM docpatterns._pattern_drop_anchor(rel, name);
  -- the main trigger goes last: it is the declaration, which identifies the others
  FOR r IN SELECT t.tgname, t.tgrelid::regclass AS tab FROM pg_trigger t
           WHERE t.tgfoid = format('docpatterns.%I', pattern || '_trigger')::regproc
             AND t.tgparentid = 0
             AND t.tgrelid IN (SELECT pt.relid FROM pg_partition_tree(rel) pt UNION SELECT rel)
             AND (t.oid = (SELECT d.trigger_oid FROM docpatterns._pattern_declarations(rel) d
                   WHERE d.pattern = _pattern_drop_triggers.pattern
                   AND d.name = _pattern_drop_triggers.name)
                  OR t.tgargs = docpatterns._pattern_arguments('of', name))
           ORDER BY t.tgnargs DESC LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', r.tgname, r.tab);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_drop_triggers(regclass, text, text) IS
  'drops the triggers of a declaration on its table and on the partitions of that';

CREATE FUNCTION docpatterns._pattern_drop_side_triggers(side regclass, link_id text, name text)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r record;
BEGIN
  PERFORM docpatterns._pattern_drop_anchor(side, link_id);
  FOR r IN SELECT t.tgname FROM pg_trigger t WHERE t.tgrelid = side
      AND t.tgargs = docpatterns._pattern_arguments('side', link_id, name) LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', r.tgname, side);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_drop_side_triggers(regclass, text, text) IS
  'drops the triggers of a declaration on its second table';
