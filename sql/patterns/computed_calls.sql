-- The computed pattern: the verbs of all patterns, and refreshing deferred groups.

-- A declaration with its tables.
CREATE FUNCTION docpatterns._computed_parts(rel regclass, name text, OUT options bson,
  OUT source regclass, OUT queue regclass, OUT trigger_oid oid)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  SELECT d.options, d.trigger_oid INTO options, trigger_oid
    FROM docpatterns._pattern_declarations(rel) d WHERE d.pattern = 'computed'
      AND d.name = _computed_parts.name;
  IF options IS NULL THEN
    RAISE EXCEPTION 'table "%" has no computed pattern named "%"', docpatterns._relname(rel), name
      USING ERRCODE = 'undefined_object';
  END IF;
  source := docpatterns._pattern_side(@extschema@.bson_get_text(options, 'link_id'), rel);
  queue := docpatterns._pattern_side(@extschema@.bson_get_text(options, 'second_link_id'), rel);
END
$$;
COMMENT ON FUNCTION docpatterns._computed_parts(regclass, text) IS
  'options, source and queue of a computed declaration; error 42704';

CREATE FUNCTION docpatterns._computed_check(rel regclass, name text) RETURNS TABLE (key bson_value,
  what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  t record;
  link text;
  filter @extschema@.bson;
BEGIN
  SELECT q.* INTO p FROM docpatterns._computed_parts(rel, name) q;
  IF @extschema@.bson_get_text(p.options, 'mode') = 'on_read' THEN
    RETURN;
  ELSIF p.source IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'source'::text,
      'a table with the triggers of the pattern'::text, 'none'::text;
    RETURN;
  END IF;
  SELECT q.* INTO t FROM docpatterns._pattern_parts(rel, 'computed', name) q;
  link := docpatterns._computed_target_key(rel, p.options);
  -- queued groups are not violations
  RETURN QUERY EXECUTE format($q$
    SELECT %1$s, f.what, f.expected, f.found
    FROM %2$s AS b CROSS JOIN LATERAL (SELECT b.*) AS t
      CROSS JOIN LATERAL docpatterns._computed_faults(%3$L::regclass, %4$L, %5$s, %6$s) AS f %7$s
    $q$, t.key_value, t.base, rel, name, link, t.doc,
    CASE WHEN p.queue IS NOT NULL THEN
      format('WHERE NOT EXISTS (SELECT 1 FROM %s q WHERE q.key OPERATOR(@extschema@.=) %s)',
        p.queue, link) END);
  IF @extschema@.bson_get_text(p.options, 'create_missing') = 'true' THEN
    filter := (p.options OPERATOR(@extschema@.->) 'filter'::text)::@extschema@.bson;
    RETURN QUERY EXECUTE format($q$
      SELECT g.link, 'document of the group'::text, 'present'::text, 'missing'::text
      FROM (SELECT DISTINCT d.doc OPERATOR(@extschema@.->) %1$L::text AS link FROM %2$s
            WHERE (d.doc OPERATOR(@extschema@.->) %1$L::text) OPERATOR(@extschema@.<>)
                'null'::@extschema@.bson_value
                AND ($1 IS NULL OR d.doc OPERATOR(@extschema@.@@) $1)) AS g
      WHERE NOT EXISTS (SELECT 1 FROM %3$s AS t WHERE %4$s OPERATOR(@extschema@.=) g.link) %5$s %6$s
      $q$, @extschema@.bson_get_text(p.options, 'on_field'),
        docpatterns._computed_source_documents(p.source, p.options), rel,
      link,
      CASE WHEN p.queue IS NULL THEN '' ELSE
        format('AND NOT EXISTS (SELECT 1 FROM %s q WHERE q.key OPERATOR(@extschema@.=) g.link)',
          p.queue) END,
      -- not a valid _id
      CASE WHEN docpatterns._computed_by_key(rel,
          @extschema@.bson_get_text(p.options, 'target_field')) THEN
        'AND @extschema@.bson_typeof(g.link) NOT IN (''array'', ''regex'')' ELSE '' END)
      USING filter;
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._computed_check(regclass, text) IS
  'violated invariants of a computed pattern';

-- FROM item d (doc): the documents of the source.
CREATE FUNCTION docpatterns._computed_source_documents(source regclass, options bson) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('(SELECT %s AS doc FROM %s AS s) AS d',
    CASE WHEN @extschema@.bson_exists($2, 'source_doc_column')
         THEN format('s.%I', (SELECT t.doc
               FROM docpatterns._pattern_table($1,
                 docpatterns._pattern_doc_column($1,
                 @extschema@.bson_get_text($2, 'source_doc_column'))) t))
         ELSE '@extschema@.row_to_bson(s.*)' END, $1)
$$;
COMMENT ON FUNCTION docpatterns._computed_source_documents(regclass, bson) IS
  'SQL text: the documents of the source of a computed declaration';

CREATE FUNCTION docpatterns._computed_repair(rel regclass, name text) RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN @extschema@.bson_get_text(p.options, 'mode') = 'on_read' THEN 0 ELSE
    docpatterns._computed_recompute($1, $2) END FROM docpatterns._computed_parts($1, $2) p
$$;
COMMENT ON FUNCTION docpatterns._computed_repair(regclass, text) IS
  'pattern_repair of the computed pattern';

CREATE FUNCTION docpatterns._computed_pending(rel regclass, name text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('SELECT ROW(%s) AS key FROM %s AS t WHERE %I IS NOT NULL AND %s ORDER BY %1$s',
      t.key_list, t.base, t.doc, CASE
      WHEN @extschema@.bson_get_text(p.options, 'mode') = 'on_read' THEN 'false' ELSE 'true' END)
  FROM docpatterns._computed_parts($1, $2) p
    CROSS JOIN LATERAL docpatterns._pattern_table($1,
        docpatterns._pattern_doc_column($1, @extschema@.bson_get_text(p.options, 'doc_column'))) t
$$;
COMMENT ON FUNCTION docpatterns._computed_pending(regclass, text) IS
  'SQL text: keys of rows that may be inconsistent with a computed pattern';

-- Groups that have no document yet.
CREATE FUNCTION docpatterns._computed_build_end(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF @extschema@.bson_get_text((SELECT p.options FROM docpatterns._computed_parts(rel, name) p),
      'create_missing') = 'true'
     AND EXISTS (SELECT FROM docpatterns._computed_check(rel, name) c
         WHERE c.what = 'document of the group') THEN
    RETURN docpatterns._computed_recompute(rel, name);
  END IF;
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._computed_build_end(regclass, text) IS
  'the end of pattern_build for a computed pattern with create_missing: makes the documents of '
  'groups that have none';

CREATE FUNCTION computed_refresh(rel regclass, name text DEFAULT NULL, batch int DEFAULT NULL)
  RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
  done bigint := 0;
BEGIN
  PERFORM docpatterns._pattern_require_owner(rel);
  IF batch < 1 THEN
    RAISE EXCEPTION 'batch must be positive' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  FOR d IN SELECT q.name FROM docpatterns._pattern_declarations(rel) q
           WHERE q.pattern = 'computed' AND (computed_refresh.name IS NULL
               OR q.name = computed_refresh.name)
             AND @extschema@.bson_get_text(q.options, 'mode') = 'deferred' ORDER BY q.name LOOP
    -- all at once: later batches would be locked out of order
    done := done + docpatterns._computed_maintain(rel, d.name,
        coalesce(batch, 2147483647));
  END LOOP;
  RETURN done;
END
$$;
COMMENT ON FUNCTION computed_refresh(regclass, text, int) IS
  'Processes the queues of deferred declarations, at most batch entries of each, group by group in '
  'key order, and returns the number of groups. Skips entries that another refresh has taken. '
  'Locks the documents that it writes. Errors: 42501 unless the caller owns the table, 22023 a '
  'batch below 1';

CREATE FUNCTION docpatterns._computed_due(rel regclass, name text, OUT what text,
  OUT since timestamptz, OUT amount bigint) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT * FROM docpatterns._derive_due($1, 'computed', $2, 'changes of groups')
$$;
COMMENT ON FUNCTION docpatterns._computed_due(regclass, text) IS
  'pattern_due of the computed pattern';

CREATE FUNCTION docpatterns._computed_maintain(rel regclass, name text, most int) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_computed_maintain' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._computed_maintain(regclass, text, int) IS
  'pattern_maintain of the computed pattern: works off up to that many entries of the queue; '
  'returns the number of groups';

CREATE FUNCTION computed_staleness(rel regclass, name text DEFAULT NULL)
  RETURNS TABLE (declaration text, key bson_value, entries bigint, oldest timestamptz, lag interval)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  d record;
BEGIN
  PERFORM docpatterns._pattern_require_owner(rel);
  FOR d IN SELECT q.name, p.queue FROM docpatterns._pattern_declarations(rel) q
    CROSS JOIN LATERAL docpatterns._computed_parts(rel, q.name) p
           WHERE q.pattern = 'computed' AND ($2 IS NULL OR q.name = $2) AND p.queue IS NOT NULL
             ORDER BY 1 LOOP
    RETURN QUERY EXECUTE format('SELECT $1, q.key, count(*), min(q.queued_at), clock_timestamp() - '
        'min(q.queued_at) FROM %s q GROUP BY q.key ORDER BY 4, 2', d.queue)
      USING d.name;
  END LOOP;
END
$$;
COMMENT ON FUNCTION computed_staleness(regclass, text) IS
  'Groups that wait for computed_refresh(), the oldest first. Reads the queues. Error: 42501 '
  'unless the caller owns the table';

-- Changing and ending -----------------------------------------------------------------------------

CREATE FUNCTION docpatterns._computed_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  o @extschema@.bson := options;
  was text;
  mode text;
  again boolean := false;
BEGIN
  EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', rel);
  SELECT q.* INTO p FROM docpatterns._computed_parts(rel, name) q;
  was := @extschema@.bson_get_text(p.options, 'mode');
  IF was = 'on_read' THEN
    RAISE EXCEPTION 'cannot alter a computed pattern with mode "on_read"'
      USING ERRCODE = 'invalid_parameter_value',
      HINT = 'Call pattern_disable() and declare the pattern again.';
  END IF;
  -- relations of measurements cannot be locked
  IF (SELECT r.relkind <> 'f' FROM pg_class r WHERE r.oid = p.source) THEN
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', p.source);
  END IF;
  again := @extschema@.bson_unset(o, 'mode')::text
           <> @extschema@.bson_unset(p.options, 'mode')::text;
  mode := @extschema@.bson_get_text(o, 'mode');
  IF mode NOT IN ('immediate', 'deferred') THEN
    RAISE EXCEPTION 'mode can only be changed to "immediate" or "deferred"'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;

  IF was = 'deferred' AND mode = 'immediate' THEN
    again := true;
    o := @extschema@.bson_unset(o, 'second_link_id');
  ELSIF was = 'immediate' AND mode = 'deferred' THEN
    o := @extschema@.bson_set(o, 'second_link_id',
        docpatterns._derive_create_queue(rel, 'computed', name));
  END IF;
  IF (o OPERATOR(@extschema@.->) 'fields'::text)::text
     <> (p.options OPERATOR(@extschema@.->) 'fields'::text)::text THEN
    -- removes fields that are no longer computed; without the trigger, which is created again below
    PERFORM docpatterns._computed_create_triggers(rel,
        @extschema@.bson_set(p.options, 'mode', 'on_read'::text));
    PERFORM docpatterns._computed_strip_all(rel, p.options, true);
  END IF;
  PERFORM docpatterns._computed_create_triggers(rel, o);
  IF was = 'deferred' AND mode = 'immediate' THEN
    EXECUTE format('DROP TABLE %s', p.queue);
  END IF;
  PERFORM docpatterns._computed_create_indexes(rel, p.source, o);
  IF again THEN
    PERFORM docpatterns._computed_recompute(rel, name);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._computed_alter(regclass, text, bson) IS
  'pattern_alter of the computed pattern';

-- Takes the fields, or their state only, out of all documents.  The pattern's own trigger, which
-- would put them back, is not there or does not fire; others see the writes as any.
CREATE FUNCTION docpatterns._computed_strip_all(rel regclass, options bson, fields boolean)
  RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  doc text := (SELECT t.doc FROM docpatterns._pattern_table(rel,
        docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) t);
  own text[] := docpatterns._pattern_own_paths(options);
  done bigint;
BEGIN
  IF own <> '{}' AND fields THEN
    -- values from before the declaration are kept
    PERFORM docpatterns._computed_strip_all(rel, options, false);
    EXECUTE format('UPDATE %1$s SET %2$I = @extschema@.bson_unset(%2$I, VARIADIC $1) WHERE '
        '@extschema@.bson_exists_any(%2$I, $1)', rel, doc)
      USING ARRAY(SELECT p.path FROM docpatterns._computed_paths(options) p
          WHERE p.guarded AND p.path <> ALL (own));
    GET DIAGNOSTICS done = ROW_COUNT;
    RETURN done;
  END IF;
  EXECUTE format('UPDATE %1$s SET %2$I = docpatterns._computed_strip(%2$I, $1, $2) '
                 'WHERE %2$I IS NOT NULL AND docpatterns._computed_strip(%2$I, $1, $2)::bytea <> '
                     '%2$I::bytea', rel, doc) USING options, fields;
  GET DIAGNOSTICS done = ROW_COUNT;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._computed_strip_all(regclass, bson, boolean) IS
  'takes computed fields and their state out of all documents of a table; returns how many were '
  'written';

-- All declarations of a table have one state.
CREATE FUNCTION docpatterns._computed_paths(options bson, OUT path text, OUT kept boolean,
  OUT guarded boolean, OUT derived boolean) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('"%s"', replace(k, '"', '""')), true,
    @extschema@.bson_get_text($1, 'mode') <> 'on_read', true
  FROM @extschema@.bson_keys(($1 OPERATOR(@extschema@.->)
    'fields'::text)::@extschema@.bson) AS k
  UNION ALL SELECT '"_computed"', false, false, true
  UNION ALL SELECT @extschema@.bson_get_text($1, 'target_field'), false, false, false
    WHERE @extschema@.bson_exists($1, 'target_field')
$$;
COMMENT ON FUNCTION docpatterns._computed_paths(bson) IS
  'paths of the computed fields, of their state and of the key that they are found by';

CREATE FUNCTION docpatterns._computed_view_sources(view regclass) RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT q.refobjid::regclass FROM pg_depend q JOIN pg_rewrite r ON r.oid = q.objid
  WHERE r.ev_class = $1 AND q.classid = 'pg_rewrite'::regclass
    AND q.refclassid = 'pg_class'::regclass AND q.refobjid <> $1
$$;
COMMENT ON FUNCTION docpatterns._computed_view_sources(regclass) IS 'the tables that a view reads';

CREATE FUNCTION docpatterns._computed_follow_owner(rel regclass, former oid) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
  source regclass;
BEGIN
  FOR d IN SELECT q.name, q.options, docpatterns._pattern_made_view(q.rel, 'computed', q.name,
      owner => former) AS view
    FROM docpatterns._pattern_declarations($1) q
           WHERE q.pattern = 'computed' AND @extschema@.bson_get_text(q.options, 'mode')
             = 'on_read' LOOP
    source := (SELECT s FROM docpatterns._computed_view_sources(d.view) s
        JOIN pg_class c ON c.oid = s
               WHERE c.relowner IN (former, (SELECT o.relowner FROM pg_class o WHERE o.oid = $1))
                 ORDER BY s = $1, s LIMIT 1);
    PERFORM docpatterns._pattern_renew_view($1, d.view,
        format('SELECT docpatterns._computed_create_view(%L, %L, %L)', $1, coalesce(source, $1),
          d.options::text),
            format('SELECT docpatterns._pattern_made_view(%L, ''computed'', %L)', $1,
              d.name));
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._computed_follow_owner(regclass, oid) IS
  'makes the views of computed declarations again after a change of the table''s owner';

CREATE FUNCTION docpatterns._computed_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  done bigint := 0;
  view_rel regclass;
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  SELECT q.* INTO p FROM docpatterns._computed_parts(rel, name) q;
  IF @extschema@.bson_get_text(p.options, 'mode') = 'on_read' THEN
    -- whatever it is called now
    view_rel := docpatterns._pattern_made_view(rel, 'computed', name);
    IF view_rel IS NOT NULL THEN
      PERFORM docpatterns._derive_drop_indexes(s, 'computed', name)
        FROM docpatterns._computed_view_sources(view_rel) s;
      EXECUTE format('DROP VIEW %s', view_rel);
    END IF;
  END IF;
  PERFORM docpatterns._derive_drop(rel, 'computed', name);
  IF @extschema@.bson_get_text(p.options, 'mode') <> 'on_read' THEN
    done := docpatterns._computed_strip_all(rel, p.options,
        @extschema@.bson_get_text(how, 'keep_data') IS DISTINCT FROM 'true');
  END IF;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._computed_disable(regclass, text, bson) IS
  'pattern_disable of the computed pattern: the fields go away, or with keep_data stay as they are';
