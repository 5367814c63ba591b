-- The document versioning pattern. Its triggers and calls are in src/patterns/versioning/.

CREATE FUNCTION docpatterns.versioning_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_versioning_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.versioning_trigger() IS
  'trigger of tables with the document versioning pattern; made by versioning_enable';

-- Declaring ---------------------------------------------------------------------------------------

CREATE FUNCTION versioning_enable(
  rel regclass, revision_field text DEFAULT 'revision', storage text DEFAULT 'delta',
  keep bigint DEFAULT NULL, optimistic boolean DEFAULT true,
  kept boolean DEFAULT false, keep_for interval DEFAULT NULL, name text DEFAULT NULL,
  doc_column text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp
  SET intervalstyle = postgres AS $$
DECLARE
  t record;
  options @extschema@.bson;
  link_id text := replace(gen_random_uuid()::text, '-', '');
  second_link_id text := replace(gen_random_uuid()::text, '-', '');
  held boolean;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  options := docpatterns._pattern_declare(rel, 'versioning', @extschema@.bson_build(
    'name', coalesce(name, revision_field), 'revision_field', revision_field, 'storage', storage,
    'optimistic', optimistic, 'kept', kept, 'doc_column', t.doc, 'link_id', link_id,
    'second_link_id', second_link_id, 'keep', keep, 'keep_for', keep_for::text));
  name := @extschema@.bson_get_text(options, 'name');
  PERFORM docpatterns._pattern_require_fit(rel, t.doc, revision_field,
    'CASE WHEN v.kind IN (''int'', ''long'', ''double'', ''decimal'') THEN v.value::numeric '
    'BETWEEN 1 AND 9223372036854775806 AND v.value::numeric % 1 = 0 END', 'a whole number from 1',
    'revision_field');
  PERFORM docpatterns._versioning_create_tables(rel, options);
  PERFORM docpatterns._versioning_create_triggers(rel, options);
  PERFORM docpatterns._versioning_create_reading(rel, name);
  IF docpatterns._pattern_nonempty(rel) THEN
    held := docpatterns._pattern_note_held(rel, name) <> '{}';
    RAISE NOTICE 'existing documents of table "%" have no history yet%', docpatterns._relname(rel),
        CASE
      WHEN held THEN format('; numbers in field "%s" are continued', revision_field)
      ELSE '' END
      USING HINT = format('CALL pattern_build(%L, %L) records them; each is recorded when it is '
          'changed, too.', t.base, name);
  END IF;
  RETURN name;
END
$$;
COMMENT ON FUNCTION versioning_enable(regclass, text, text, bigint, boolean, boolean, interval,
  text, text) IS
  'Declares the document versioning pattern: each change of a document adds a revision to a '
  'history. revision_field holds its number; storage is delta (reverse differences) or full (whole '
  'documents); keep is how many revisions of a document stay (NULL: all); optimistic refuses '
  'updates with an old number (40001); kept includes fields that other patterns derive; '
  'pattern_maintain() deletes revisions that ended more than keep_for ago (NULL: never). Returns '
  'the name of the declaration (default: the field). Locks the table against writers. Errors: '
  '22004, 22023 options that do not fit or a second history of a column, 55000 another value in '
  'the field, 42710 the name exists, 42501 unless the caller owns the table';

CREATE FUNCTION docpatterns._versioning_verify(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  doc text := @extschema@.bson_get_text(options, 'doc_column');
BEGIN
  IF EXISTS (SELECT FROM docpatterns._pattern_declarations(rel) d
             WHERE d.pattern = 'versioning'
               AND d.name <> @extschema@.bson_get_text(_versioning_verify.options, 'name')
               AND @extschema@.bson_get_text(d.options, 'doc_column') = doc) THEN
    RAISE EXCEPTION 'column % of table "%" already has a history', doc, docpatterns._relname(rel)
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_verify(regclass, bson) IS
  'error 22023 if the documents have a history already';

-- A name for one of our tables, views and functions that nothing in the schema has.
CREATE FUNCTION docpatterns._versioning_object_name(schema_name text, table_name text, name text,
  label text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN to_regclass(format('%I.%I', $1, o.short)) IS NULL
    AND to_regprocedure(format('%I.%I(timestamptz)', $1, o.short)) IS NULL
              THEN o.short ELSE docpatterns._pattern_relation_name($1, $2, $3, $4) END
  FROM (SELECT docpatterns._pattern_object_name($2, NULL, $4)) AS o (short)
$$;
COMMENT ON FUNCTION docpatterns._versioning_object_name(text, text, text, text) IS
  'table_label, or table_name_label where that is taken';

-- The two tables of the history, and their guards.
CREATE FUNCTION docpatterns._versioning_create_tables(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  name text := @extschema@.bson_get_text(options, 'name');
  revisions text;
  changes text;
  side_keys text[];
  -- Citus sends a row to a shard by its key: a change is in that of its document
  routed text := (docpatterns._pattern_distribution(rel)).column_name;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) p;
  side_keys := docpatterns._pattern_side_keys(cardinality(t.keys));
  IF docpatterns._pattern_side(@extschema@.bson_get_text(options, 'second_link_id'),
      rel) IS NULL THEN
    changes := format('%I.%I', t.schema_name,
        docpatterns._versioning_object_name(t.schema_name, t.table_name, name, 'changes'));
    PERFORM docpatterns._pattern_create_table(rel, 'versioning', name,
        @extschema@.bson_get_text(options, 'second_link_id'), changes,
        concat('change bigint GENERATED BY DEFAULT AS IDENTITY, ',
          CASE WHEN routed IS NOT NULL THEN (SELECT string_agg(format('%I %s, ', k, type), '')
            FROM unnest(side_keys, t.key_types) AS u (k, type)) END,
          'since timestamptz NOT NULL, who text, transaction xid8 NOT NULL, ',
          format('PRIMARY KEY (%s)', concat_ws(', ', 'change',
            CASE WHEN routed IS NOT NULL THEN array_to_string(side_keys, ', ') END))), NULL,
        format('transactions that changed documents of %s: since when what they wrote is valid, '
          'and whose they were', t.base), side_keys[array_position(t.keys, routed)]);
    EXECUTE format('CREATE INDEX ON %s (since)', changes);
  END IF;
  IF docpatterns._pattern_side(@extschema@.bson_get_text(options, 'link_id'), rel) IS NULL THEN
    revisions := format('%I.%I', t.schema_name,
        docpatterns._versioning_object_name(t.schema_name, t.table_name, name, 'revisions'));
    PERFORM docpatterns._pattern_create_side(rel, t.doc, 'versioning', name,
        @extschema@.bson_get_text(options, 'link_id'), revisions,
              'revision bigint NOT NULL, change bigint NOT NULL, operation "char" NOT NULL, delta '
              'bytea, previous @extschema@.bson, checksum integer, kept text', 'revision', NULL,
              format('revisions of the documents of %s; %s_history shows them', t.base,
                t.table_name));
    EXECUTE format('CREATE INDEX ON %s (%s) WHERE operation = ''d''', revisions,
        array_to_string(side_keys, ', '));
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_create_tables(regclass, bson) IS
  'tables for the history of a versioning pattern, where they are missing';

-- The triggers on the table, created again when options change. The main one has the declaration.
CREATE FUNCTION docpatterns._versioning_create_triggers(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name text := @extschema@.bson_get_text(options, 'name');
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION '
      'docpatterns.versioning_trigger(%L)',
                 docpatterns._pattern_own_trigger(rel, 88, 'versioning', name, NULL, 19), rel,
                 options::text);
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW '
      'EXECUTE FUNCTION docpatterns.versioning_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 88, 'versioning', name, 'record', 29), rel,
                 'of', name);
  PERFORM docpatterns._pattern_statement_trigger(rel, 88, 'versioning', name, 'statement', 38,
      'BEFORE INSERT OR TRUNCATE');
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
  PERFORM docpatterns._versioning_create_index(rel, options);
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_create_triggers(regclass, bson) IS
  'triggers of the versioning pattern on its table, and an index that it needs with keep_for';

-- Whether a revision r may have an earlier one, which ended when r began, or is a deletion.
CREATE FUNCTION docpatterns._versioning_follows() RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT '(operation = ''d'' OR operation = ''u'' AND (previous IS NOT NULL OR delta IS NULL OR '
    'length(delta) > 0))'
$$;
COMMENT ON FUNCTION docpatterns._versioning_follows() IS
  'SQL text: whether maintenance has something to do for a revision that is old enough';

-- Finds what maintenance has to do: the expression first, then the transaction.
CREATE FUNCTION docpatterns._versioning_create_index(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  revisions regclass := docpatterns._pattern_side(@extschema@.bson_get_text(options, 'link_id'),
      rel);
  made regclass := (SELECT i.indexrelid FROM pg_index i WHERE i.indrelid = revisions
      AND i.indexprs IS NOT NULL ORDER BY 1 LIMIT 1);
BEGIN
  IF @extschema@.bson_exists(options, 'keep_for') AND made IS NULL AND revisions IS NOT NULL THEN
    EXECUTE format('CREATE INDEX ON %s (%s, change)', revisions,
        docpatterns._versioning_follows());
  ELSIF NOT @extschema@.bson_exists(options, 'keep_for') AND made IS NOT NULL THEN
    EXECUTE format('DROP INDEX %s', made);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_create_index(regclass, bson) IS
  'creates or drops the index for keep_for';

-- Finds the functions and views created for a history by their dependencies, under any name.
CREATE FUNCTION docpatterns._versioning_made(revisions regclass, made_by oid, OUT history regclass,
  OUT deleted regclass, OUT as_of regprocedure)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  SELECT v.oid::regclass INTO deleted
    FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class v ON v.oid = r.ev_class
      AND v.relkind = 'v'
      JOIN pg_depend f ON f.classid = 'pg_rewrite'::regclass AND f.objid = r.oid
        AND f.refclassid = 'pg_proc'::regclass
    WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
      AND d.refobjid = revisions
      AND f.refobjid = 'docpatterns._versioning_sees_all(regclass, text)'::regprocedure
        AND v.relowner = made_by
    ORDER BY v.oid LIMIT 1;
  SELECT v.oid::regclass INTO history
    FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class v ON v.oid = r.ev_class
      AND v.relkind = 'v'
      JOIN pg_depend f ON f.classid = 'pg_rewrite'::regclass AND f.objid = r.oid
        AND f.refclassid = 'pg_proc'::regclass
    WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
      AND d.refobjid = deleted
      AND f.refobjid =
        '@extschema@.versioning_revisions(regclass, anycompatible, text)'::regprocedure
        AND v.relowner = made_by
      AND 'security_invoker=true' = ANY (v.reloptions)
    ORDER BY v.oid LIMIT 1;
  SELECT p.oid::regprocedure INTO as_of
    FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
      AND p.proowner = made_by
      JOIN pg_depend f ON f.classid = 'pg_proc'::regclass AND f.objid = p.oid
        AND f.refclassid = 'pg_proc'::regclass
    WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = deleted
      AND f.refobjid = 'docpatterns._versioning_as_of(regclass, "any", @extschema@.bson, '
        'timestamptz, text)'::regprocedure
    ORDER BY p.oid LIMIT 1;
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_made(regclass, oid) IS
  'the views and the function through which a history is read, as far as they belong to a role';

-- Names and options of a declaration, and pieces of SQL text about them.
CREATE FUNCTION docpatterns._versioning_parts(rel regclass, name text,
                                  OUT base text, OUT schema_name text, OUT table_name text,
                                  OUT owner oid, OUT options bson, OUT doc text,
                                  OUT revisions regclass, OUT changes regclass,
                                  OUT history regclass, OUT deleted regclass,
                                      OUT as_of regprocedure,
                                  OUT keys text[], OUT key_ops text[], OUT key_types text[],
                                  OUT side_keys text[], OUT single boolean)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  SELECT q.* INTO t FROM docpatterns._pattern_parts(rel, 'versioning', name) q;
  base := t.base; schema_name := t.schema_name; table_name := t.table_name; owner := t.owner;
  options := t.options; doc := t.doc_name;
  keys := t.keys; key_ops := t.key_ops; key_types := t.key_types; single := cardinality(t.keys) = 1;
  side_keys := t.side_keys;
  revisions := t.side;
  changes := docpatterns._pattern_side(@extschema@.bson_get_text(options, 'second_link_id'), rel);
  SELECT m.history, m.deleted, m.as_of INTO history, deleted, as_of
    FROM docpatterns._versioning_made(revisions, owner) m;
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_parts(regclass, text) IS
  'names and options of a versioning declaration, and what was made for it';

CREATE FUNCTION docpatterns._versioning_view(rel regclass, name text, label text, owner oid)
  RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE $3 WHEN 'history' THEN m.history ELSE m.deleted END
  FROM docpatterns._versioning_parts($1, $2) p
    CROSS JOIN LATERAL docpatterns._versioning_made(p.revisions, $4) m
$$;
COMMENT ON FUNCTION docpatterns._versioning_view(regclass, text, text, oid) IS
  'a view of a history (label "history" or "deleted") that belongs to a role';

-- All present and former keys, with the present document: "k" below.
CREATE FUNCTION docpatterns._versioning_keys_query(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  is_shard boolean := docpatterns._pattern_table_of(rel) <> rel;
BEGIN
  SELECT q.* INTO p FROM docpatterns._versioning_parts(rel, name) q;
  IF p.deleted IS NULL AND NOT is_shard THEN
    RAISE EXCEPTION 'the history of table "%" is missing', docpatterns._relname(rel)
      USING ERRCODE = 'object_not_in_prerequisite_state',
        DETAIL = 'The view of deleted keys was dropped.',
        HINT = 'Create it again with pattern_repair().';
  END IF;
  RETURN (SELECT format('SELECT %1$s, b.%2$I AS live FROM %3$s AS b WHERE b.%2$I IS NOT NULL UNION '
        'ALL SELECT %4$s, NULL::@extschema@.bson FROM %5$s AS g',
                        string_agg(format('b.%I AS %I', k, s), ', ' ORDER BY n), p.doc, p.base,
                        string_agg(format('g.%I', s), ', ' ORDER BY n),
                        CASE WHEN is_shard THEN format(
                            '(SELECT * FROM %1$s AS r WHERE r.operation = ''d'' AND NOT EXISTS '
                            '(SELECT 1 FROM %1$s AS n WHERE %2$s AND n.revision > r.revision))',
                            p.revisions, string_agg(format('n.%1$I %2$s r.%1$I', s, o), ' AND '))
                        ELSE (SELECT format('%I.%I', ns.nspname, c.relname) FROM pg_class c
                          JOIN pg_namespace ns ON ns.oid = c.relnamespace WHERE c.oid = p.deleted)
                        END)
          FROM unnest(p.keys, p.side_keys, p.key_ops) WITH ORDINALITY AS u (k, s, o, n));
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_keys_query(regclass, text) IS
  'SQL text: keys of documents that are or were in a table';

-- An expression for the table's state at a time.
CREATE FUNCTION docpatterns._versioning_as_of_query(rel regclass, name text, moment text)
  RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  columns text;
BEGIN
  SELECT q.* INTO p FROM docpatterns._versioning_parts(rel, name) q;
  SELECT string_agg(format('k.%I', s), ', ' ORDER BY n) INTO columns FROM unnest(p.side_keys)
    WITH ORDINALITY AS u (s, n);
  RETURN format('SELECT %s AS key, d.revision, d.since, d.until, d.doc FROM (%s) AS k CROSS JOIN '
      'LATERAL docpatterns._versioning_as_of(%L::pg_catalog.regclass, %s, k.live, %s, %L) AS d',
                CASE WHEN p.single AND p.key_types[1] = '@extschema@.bson_value'::regtype::text THEN
                  columns
                     WHEN p.single THEN format('@extschema@.to_bson(%s)', columns) ELSE
                       format('@extschema@.bson_array(%s)', columns) END,
                docpatterns._versioning_keys_query(rel, name), p.base, CASE WHEN p.single THEN
                columns ELSE format('ROW(%s)', columns) END, moment, name);
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_as_of_query(regclass, text, text) IS
  'SQL text: the documents of a table as they were at a time';

-- The views and the function through which history is read, where they are missing.
CREATE FUNCTION docpatterns._versioning_create_reading(rel regclass, name text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  qualified text;
  columns text;
  key text;
BEGIN
  IF docpatterns._pattern_table_of(rel) <> rel THEN
    RETURN;
  END IF;
  SELECT q.* INTO p FROM docpatterns._versioning_parts(rel, name) q;
  IF p.deleted IS NULL THEN
    -- It shows keys with the privileges of its owner, but the condition only shows them to users
    -- who may see all documents.
    qualified := format('%I.%I', p.schema_name,
        docpatterns._versioning_object_name(p.schema_name, p.table_name, name, 'deleted'));
    EXECUTE format('CREATE VIEW %1$s AS SELECT %2$s FROM %3$s AS r WHERE r.operation = ''d'' AND '
        'docpatterns._versioning_sees_all(%4$L::pg_catalog.regclass, %5$L) '
                   'AND NOT EXISTS (SELECT 1 FROM %3$s AS n WHERE %6$s '
                   'AND n.revision > r.revision)',
                     qualified,
      (SELECT string_agg(format('r.%I', s), ', ' ORDER BY n) FROM unnest(p.side_keys)
        WITH ORDINALITY AS u (s, n)),
      p.revisions, p.base, name,
      (SELECT string_agg(format('n.%1$I %2$s r.%1$I', s, o), ' AND ' ORDER BY n)
        FROM unnest(p.side_keys, p.key_ops) WITH ORDINALITY AS u (s, o, n)));
    EXECUTE format('COMMENT ON VIEW %s IS %L', qualified,
        format('keys of documents that %s has no longer', p.base));
    EXECUTE format('ALTER VIEW %s OWNER TO %s', qualified, p.owner::regrole);
    EXECUTE format('GRANT SELECT ON %s TO PUBLIC', qualified);
    SELECT q.* INTO p FROM docpatterns._versioning_parts(rel, name) q;
  END IF;
  SELECT string_agg(format('k.%I', s), ', ' ORDER BY n) INTO columns FROM unnest(p.side_keys)
    WITH ORDINALITY AS u (s, n);
  key := CASE WHEN p.single THEN columns ELSE format('ROW(%s)', columns) END;
  IF p.history IS NULL THEN
    qualified := format('%I.%I', p.schema_name,
        docpatterns._versioning_object_name(p.schema_name, p.table_name, name, 'history'));
    EXECUTE format('CREATE VIEW %1$s WITH (security_invoker = true) AS SELECT %2$s, r.revision, '
        'r.since, r.until, r.operation, r.who, r.transaction, '
                   '@extschema@.versioning_at(%3$L::pg_catalog.regclass, %4$s, r.revision, %5$L) '
                     'AS doc '
                   'FROM (%6$s) AS k CROSS JOIN LATERAL '
                     '@extschema@.versioning_revisions(%3$L::pg_catalog.regclass, %4$s, %5$L) AS r',
                   qualified, columns, p.base, key, name,
                   docpatterns._versioning_keys_query(rel, name));
    EXECUTE format('COMMENT ON VIEW %s IS %L', qualified,
        format('all revisions of the documents of %s', p.base));
    PERFORM docpatterns._pattern_copy_grants(rel, qualified::regclass);
    EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON %s FROM PUBLIC', qualified);
    EXECUTE format('ALTER VIEW %s OWNER TO %s', qualified, p.owner::regrole);
  END IF;
  IF p.as_of IS NULL THEN
    qualified := format('%I.%I', p.schema_name,
        docpatterns._versioning_object_name(p.schema_name, p.table_name, name, 'as_of'));
    EXECUTE format('CREATE FUNCTION %s(at timestamptz, OUT key @extschema@.bson_value, OUT '
        'revision bigint, OUT since timestamptz, OUT until timestamptz, OUT doc @extschema@.bson) '
                   'RETURNS SETOF record LANGUAGE sql STABLE PARALLEL UNSAFE BEGIN ATOMIC %s; END',
                     qualified, docpatterns._versioning_as_of_query(rel, name, 'at'));
    EXECUTE format('COMMENT ON FUNCTION %s(timestamptz) IS %L', qualified,
        format('the documents of %s as they were at a time', p.base));
    EXECUTE format('ALTER FUNCTION %s(timestamptz) OWNER TO %s', qualified, p.owner::regrole);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_create_reading(regclass, text) IS
  'views and function through which a history is read';

CREATE FUNCTION docpatterns._versioning_follow_owner(rel regclass, former oid) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
  m record;
  old record;
BEGIN
  FOR d IN SELECT q.name, docpatterns._pattern_side(@extschema@.bson_get_text(q.options, 'link_id'),
      $1) AS revisions
           FROM docpatterns._pattern_declarations($1) q WHERE q.pattern = 'versioning' LOOP
    SELECT q.* INTO m FROM docpatterns._versioning_made(d.revisions, former) q;
    SELECT array_agg(concat_ws(' ', w.kind, w.object) ORDER BY w.n) AS objects, array_agg(w.n) AS n,
      array_agg(i.schema_name) AS schemas, array_agg(i.name) AS names INTO old
      FROM (VALUES (1, 'FUNCTION', m.as_of::text), (2, 'VIEW', m.history::text),
          (3, 'VIEW', m.deleted::text)) AS w (n, kind, object)
        CROSS JOIN LATERAL docpatterns._pattern_location(w.kind, w.object) i
          WHERE w.object IS NOT NULL;
    IF old.objects IS NOT NULL AND docpatterns._pattern_discard(VARIADIC old.objects) THEN
      PERFORM docpatterns._versioning_create_reading($1, d.name);
      SELECT q.* INTO m FROM docpatterns._versioning_parts($1, d.name) q;
      PERFORM docpatterns._pattern_move(w.kind, w.object, o.schema_name, o.name)
        FROM (VALUES (1, 'FUNCTION', m.as_of::text), (2, 'VIEW', m.history::text),
            (3, 'VIEW', m.deleted::text)) AS w (n, kind, object)
          JOIN unnest(old.n, old.schemas, old.names) AS o (n, schema_name, name) ON o.n = w.n;
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_follow_owner(regclass, oid) IS
  'makes the views and the function through which a history is read again after a change of the '
  'table''s owner';

-- Verbs -------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._versioning_check_key(rel regclass, name text, doc bson, key "any")
  RETURNS TABLE (key_value bson_value, what text, expected text, found text)
  AS 'MODULE_PATHNAME', 'dp_versioning_check_key' LANGUAGE C STABLE PARALLEL SAFE
  COST 1000 ROWS 1;
COMMENT ON FUNCTION docpatterns._versioning_check_key(regclass, text, bson, "any") IS
  'what is wrong with the history of one document, which is given (NULL: it does not exist); error '
  '42501 unless the caller owns the table';

CREATE FUNCTION docpatterns._versioning_check(rel regclass, name text)
  RETURNS TABLE (key bson_value, what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  o record;
  columns text;
BEGIN
  SELECT q.* INTO p FROM docpatterns._versioning_parts(rel, name) q;
  FOR o IN SELECT * FROM (VALUES ('table of revisions', p.revisions IS NULL),
      ('table of changes', p.changes IS NULL), ('view of the history', p.history IS NULL),
                                 ('view of deleted documents', p.deleted IS NULL),
                                   ('function as_of', p.as_of IS NULL)) AS v (object, missing)
                                 WHERE missing LOOP
    RETURN QUERY SELECT NULL::@extschema@.bson_value, o.object, 'present'::text, 'missing'::text;
  END LOOP;
  IF p.revisions IS NULL OR p.changes IS NULL THEN
    RETURN;
  END IF;
  columns := (SELECT string_agg(format('k.%I', s), ', ' ORDER BY n) FROM unnest(p.side_keys)
      WITH ORDINALITY AS u (s, n));
  RETURN QUERY EXECUTE format($q$
    SELECT c.* FROM (SELECT %1$s, b.%9$I AS doc_value FROM %2$s AS b
        UNION ALL SELECT DISTINCT %3$s, NULL::@extschema@.bson FROM %4$s AS r
          WHERE NOT EXISTS (SELECT FROM %2$s AS b WHERE %8$s)) AS k
      CROSS JOIN LATERAL docpatterns._versioning_check_key(%5$L::regclass, %6$L, k.doc_value, %7$s)
        AS c
    $q$, (SELECT string_agg(format('b.%I AS %I', k, s), ', ' ORDER BY n)
        FROM unnest(p.keys, p.side_keys) WITH ORDINALITY AS u (k, s, n)), p.base,
         (SELECT string_agg(format('r.%I', s), ', ' ORDER BY n) FROM unnest(p.side_keys)
           WITH ORDINALITY AS u (s, n)), p.revisions, p.base, name,
         CASE WHEN p.single THEN columns ELSE format('ROW(%s)', columns) END,
         (SELECT string_agg(format('b.%I %s r.%I', u.k, u.o, u.s), ' AND ' ORDER BY u.n)
           FROM unnest(p.keys, p.key_ops, p.side_keys) WITH ORDINALITY AS u (k, o, s, n)), p.doc);
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_check(regclass, text) IS
  'violated invariants of a versioning pattern';

-- Keys of documents that have no history.
CREATE FUNCTION docpatterns._versioning_pending(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._versioning_parts(rel, name) q;
  RETURN (SELECT format('SELECT ROW(%1$s) AS key FROM %2$s AS b WHERE NOT EXISTS (SELECT 1 FROM '
        '%3$s AS r WHERE %4$s) ORDER BY %1$s',
                        string_agg(format('b.%I', k), ', ' ORDER BY n), p.base, p.revisions,
                        string_agg(format('b.%I %s r.%I', k, o, s), ' AND ' ORDER BY n))
          FROM unnest(p.keys, p.key_ops, p.side_keys) WITH ORDINALITY AS u (k, o, s, n));
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_pending(regclass, text) IS
  'SQL text: keys of documents that have no history';

CREATE FUNCTION docpatterns._versioning_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  r record;
  done bigint := 0;
BEGIN
  SELECT q.* INTO p FROM docpatterns._versioning_parts(rel, name) q;
  IF @extschema@.bson_get_text(p.options, 'link_id') IS NULL
      OR @extschema@.bson_get_text(p.options, 'second_link_id') IS NULL THEN
    RAISE EXCEPTION 'declaration of versioning pattern "%" on table "%" is incomplete', name,
      docpatterns._relname(rel)
      USING ERRCODE = 'invalid_parameter_value',
        DETAIL = 'It does not name the tables of the history.';
  END IF;
  IF p.revisions IS NULL OR p.changes IS NULL THEN
    PERFORM docpatterns._versioning_create_tables(rel, p.options);
  END IF;
  PERFORM docpatterns._versioning_create_reading(rel, name);
  PERFORM docpatterns._versioning_raise_sequence(rel, name);
  SELECT q.* INTO p FROM docpatterns._versioning_parts(rel, name) q;
  FOR r IN EXECUTE format('SELECT DISTINCT ROW(%s) AS key FROM (SELECT %s FROM %s AS b UNION '
      'SELECT %s FROM %s AS r) AS k',
                          (SELECT string_agg(format('k.%I', s), ', ' ORDER BY n)
                            FROM unnest(p.side_keys) WITH ORDINALITY AS u (s, n)),
                          (SELECT string_agg(format('b.%I AS %I', k, s), ', ' ORDER BY n)
                            FROM unnest(p.keys, p.side_keys) WITH ORDINALITY AS u (k, s, n)),
                          p.base,
                          (SELECT string_agg(format('r.%I', s), ', ' ORDER BY n)
                              FROM unnest(p.side_keys) WITH ORDINALITY AS u (s, n)),
                            p.revisions) LOOP
    IF docpatterns._pattern_repair_row(rel, name, r.key) THEN
      done := done + 1;
    END IF;
  END LOOP;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_repair(regclass, text) IS
  'pattern_repair of the versioning pattern';

-- After replication, the numbers of new changes must follow those of the history.
CREATE FUNCTION docpatterns._versioning_raise_sequence(rel regclass, name text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  sequence text;
BEGIN
  SELECT q.* INTO p FROM docpatterns._versioning_parts(rel, name) q;
  sequence := pg_get_serial_sequence(p.changes::text, 'change');
  IF sequence IS NOT NULL THEN
    EXECUTE format('SELECT setval(%1$L, greatest((SELECT max(change) FROM %2$s), (SELECT '
        'max(change) FROM %3$s), s.last_value), s.is_called OR EXISTS (SELECT 1 FROM %2$s)) FROM '
        '%1$s AS s',
                   sequence, p.changes, p.revisions);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_raise_sequence(regclass, text) IS
  'numbers of changes go on behind those that are there';

CREATE FUNCTION docpatterns._versioning_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  keep_data boolean := @extschema@.bson_get_text(how, 'keep_data') = 'true';
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  SELECT q.* INTO p FROM docpatterns._versioning_parts(rel, name) q;
  IF p.as_of IS NOT NULL THEN
    EXECUTE format('DROP FUNCTION %s', p.as_of);
  END IF;
  IF p.history IS NOT NULL THEN
    EXECUTE format('DROP VIEW %s', p.history);
  END IF;
  IF p.deleted IS NOT NULL THEN
    EXECUTE format('DROP VIEW %s', p.deleted);
  END IF;
  PERFORM docpatterns._pattern_drop_triggers(rel, 'versioning', name);
  PERFORM docpatterns._pattern_drop_side(p.revisions, rel, keep_data);
  PERFORM docpatterns._pattern_drop_side(p.changes, rel, keep_data);
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_disable(regclass, text, bson) IS
  'pattern_disable of the versioning pattern';

-- Deferred work -----------------------------------------------------------------------------------

-- A revision ended when the next one began.  What a transaction has begun up to the cutoff has
-- about the smallest numbers.
CREATE FUNCTION docpatterns._versioning_old(rel regclass, name text, OUT revisions regclass,
  OUT changes regclass, OUT side_keys text[], OUT key_ops text[], OUT keep_for interval,
  OUT query text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'versioning', name) q;
  revisions := p.side; side_keys := p.side_keys; key_ops := p.key_ops;
  changes := docpatterns._pattern_side(@extschema@.bson_get_text(p.options, 'second_link_id'), rel);
  keep_for := @extschema@.bson_get_text(p.options, 'keep_for')::interval;
  query := (SELECT format('SELECT %s, r.revision, r.operation, c.since FROM %s AS r JOIN %s AS c '
      'ON c.change = r.change WHERE %s AND r.change <= (SELECT max(m.change) FROM (SELECT n.change '
      'FROM %3$s AS n WHERE n.since <= $2 ORDER BY n.since DESC LIMIT 1000) AS m) '
      'AND c.since <= $2 ORDER BY r.change LIMIT $1', string_agg(format('r.%I', k), ', '),
      revisions, changes, docpatterns._versioning_follows()) FROM unnest(side_keys) k);
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_old(regclass, text) IS
  'tables of a history, and SQL text for up to $1 revisions that began up to $2 and have something '
  'before them';

CREATE FUNCTION docpatterns._versioning_due(rel regclass, name text, OUT what text,
  OUT since timestamptz, OUT amount bigint) RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._versioning_old(rel, name) q;
  IF p.keep_for IS NOT NULL AND p.query IS NOT NULL THEN
    RETURN QUERY EXECUTE format('SELECT ''old revisions'', (min(q.since) AT TIME ZONE ''UTC'' '
        '+ $3) AT TIME ZONE ''UTC'', nullif(count(*), 0) FROM (%s) q', p.query)
      USING 10000, docpatterns._pattern_cutoff(p.keep_for), p.keep_for;
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_due(regclass, text) IS 'pattern_due of histories';

CREATE FUNCTION docpatterns._versioning_maintain_run(rel regclass, name text, old text, cut text,
  changes text, most int, cutoff timestamptz) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_versioning_maintain_run' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._versioning_maintain_run(regclass, text, text, text, text, int,
  timestamptz) IS
  'runs the statements of pattern_maintain, which write to guarded tables; error 42501 unless the '
  'caller owns the table';

CREATE FUNCTION docpatterns._versioning_maintain(rel regclass, name text, most int) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._versioning_old(rel, name) q;
  IF p.keep_for IS NULL OR p.query IS NULL THEN
    RETURN 0;
  END IF;
  RETURN (SELECT docpatterns._versioning_maintain_run(rel, name,
      format('WITH q AS MATERIALIZED (%s) DELETE FROM %s AS r USING q WHERE %s AND (r.revision < '
        'q.revision OR r.revision = q.revision AND q.operation = ''d'') RETURNING r.change',
        p.query, p.revisions, string_agg(format('r.%1$I %2$s q.%1$I', k, o), ' AND ')),
      format('WITH q AS MATERIALIZED (%s) UPDATE %s AS r SET delta = '''', previous = NULL FROM q '
        'WHERE %s AND r.revision = q.revision AND NOT EXISTS (SELECT FROM %2$s AS b WHERE %4$s '
        'AND b.revision = r.revision - 1)', p.query, p.revisions,
        string_agg(format('r.%1$I %2$s q.%1$I', k, o), ' AND '),
        string_agg(format('b.%1$I %2$s r.%1$I', k, o), ' AND ')),
      format('DELETE FROM %s AS c WHERE c.change = ANY ($3) AND c.since <= $2 AND NOT EXISTS '
        '(SELECT FROM %s AS r WHERE r.change = c.change AND %3$s) AND NOT EXISTS (SELECT FROM '
        '%2$s AS r WHERE r.change = c.change AND NOT %3$s)', p.changes, p.revisions,
        docpatterns._versioning_follows()),
      most, docpatterns._pattern_cutoff(p.keep_for))
    FROM unnest(p.side_keys, p.key_ops) AS u (k, o));
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_maintain(regclass, text, int) IS
  'pattern_maintain of histories: deletes what ended more than keep_for ago';
