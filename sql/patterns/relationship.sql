-- Relationships with ids on both sides: two arrays that are kept consistent by
-- src/patterns/relationship/relationship.c; conversions and advice are in relationship_calls.sql.

CREATE FUNCTION docpatterns.relationship_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_relationship_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.relationship_trigger() IS
  'trigger of tables with the relationship pattern; made by relationship_enable';

CREATE FUNCTION docpatterns._relationship_ids(doc bson, field text) RETURNS SETOF bson_value
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 10 SET search_path = pg_catalog, pg_temp AS $$
  SELECT e FROM @extschema@.bson_elements(CASE
      WHEN @extschema@.bson_typeof($1, $2) = 'array' THEN $1 OPERATOR(@extschema@.->) $2 END) AS e
$$;
COMMENT ON FUNCTION docpatterns._relationship_ids(bson, text) IS
  'the IDs in an array of a document; none if there is no array';

CREATE FUNCTION docpatterns._relationship_repair_references(rel regclass, name text, side int,
    key bson_value,
  only_missing boolean) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_relationship_repair_references' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._relationship_repair_references(regclass, text, int, bson_value,
    boolean) IS
  'makes the rows that a row of that side refers to refer back to it, or removes its references to '
  'missing rows; as the owner of the table; error 42501 unless the caller owns it';

-- Declaring ---------------------------------------------------------------------------------------

CREATE FUNCTION relationship_enable(a regclass, a_field text, b regclass, b_field text,
  missing text DEFAULT 'error', on_delete text DEFAULT 'unset',
                                name text DEFAULT NULL, doc_column text DEFAULT NULL,
                                  source_doc_column text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s record;
  t record;
  options @extschema@.bson;
  is_symmetric boolean := a = b AND a_field = b_field;
BEGIN
  SELECT p.* INTO s FROM docpatterns._pattern_table(a, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(a);
  SELECT p.* INTO t FROM docpatterns._pattern_table(b, source_doc_column) p;
  PERFORM docpatterns._pattern_require_same_owner(a, b);
  PERFORM docpatterns._pattern_refuse_partition(a, b);
  IF cardinality(s.keys) > 1 OR cardinality(t.keys) > 1 THEN
    RAISE EXCEPTION 'the primary key of table "%" has several columns', docpatterns._relname(CASE
        WHEN cardinality(s.keys) > 1 THEN a ELSE b END)
      USING ERRCODE = 'feature_not_supported', DETAIL = 'An ID must be a single value.';
  END IF;
  PERFORM docpatterns._shard_require_beside(a, b);
  options := docpatterns._pattern_declare(a, 'relationship', @extschema@.bson_build(
    'name', coalesce(name, a_field), 'field', a_field, 'other_field', b_field, 'missing', missing,
    'on_delete', on_delete, 'symmetric', is_symmetric,
    'link_id', replace(gen_random_uuid()::text, '-', ''), 'doc_column', s.doc,
    'source_doc_column', t.doc));
  name := @extschema@.bson_get_text(options, 'name');
  IF a = b AND NOT is_symmetric AND s.doc = t.doc
      AND docpatterns._pattern_paths_overlap(a_field, b_field) THEN
    RAISE EXCEPTION 'fields must be different, none inside the other'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM docpatterns._pattern_refuse_kept(b, t.doc, name, ARRAY[b_field]);
  EXECUTE format('LOCK TABLE %s, %s IN SHARE ROW EXCLUSIVE MODE', s.base, t.base);
  PERFORM docpatterns._relationship_create_indexes(a, b, options);
  PERFORM docpatterns._relationship_create_triggers(a, b, options);
  PERFORM docpatterns._pattern_require_fit(q.rel, q.doc, q.field,
      'v.kind IN (''array'', ''undefined'')', 'an array of ids', q.argument)
    FROM (VALUES (a, s.doc, a_field, 'a_field'), (b, t.doc, b_field, 'b_field')) AS q (rel, doc,
        field, argument);
  IF docpatterns._pattern_notice_held(a, name) THEN
    NULL;
  ELSIF EXISTS (SELECT FROM docpatterns._pattern_nonempty(a) n WHERE n)
      OR EXISTS (SELECT FROM docpatterns._pattern_nonempty(b) n WHERE n) THEN
    RAISE NOTICE 'table "%" already has rows', docpatterns._relname(CASE
        WHEN EXISTS (SELECT FROM docpatterns._pattern_nonempty(a) n WHERE n) THEN a ELSE b END)
      USING HINT = format('Run CALL pattern_build(%L, %L) to process them.', s.base, name);
  END IF;
  RETURN name;
END
$$;
COMMENT ON FUNCTION relationship_enable(regclass, text, regclass, text, text, text, text, text,
  text) IS
  'Declares that two arrays of IDs point at each other and keeps them in agreement, whichever side '
  'is written. Returns the name of the declaration. Locks both tables against writers. Errors: '
  '22023, 0A000, 42710, 55000 documents with another value than an array there, 42501 unless the '
  'caller owns both tables';

CREATE FUNCTION docpatterns._relationship_check_field(field text) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM @extschema@.bson_exists('{}'::@extschema@.bson, field);
  -- filters ask for it by its name
  IF field = '' OR field ~ '["$]' OR field ~ '(^|[.])-?[0-9]*([.]|$)' THEN
    RAISE EXCEPTION 'field "%" is not a path of names that a filter can use', field
      USING ERRCODE = 'invalid_parameter_value',
      DETAIL = 'Quotes, dollar signs and positions cannot be part of it.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._relationship_check_field(text) IS
  'error 22023 unless the path can have an array of IDs';

CREATE FUNCTION docpatterns._relationship_verify(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM docpatterns._relationship_check_field(@extschema@.bson_get_text($2, o))
  FROM unnest('{field,other_field}'::text[]) o;
END
$$;
COMMENT ON FUNCTION docpatterns._relationship_verify(regclass, bson) IS
  'error 22023 unless the paths of a relationship can have arrays of IDs';

-- References to a missing document must be found when it is inserted.
CREATE FUNCTION docpatterns._relationship_create_indexes(a regclass, b regclass, options bson)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  q record;
BEGIN
  IF @extschema@.bson_get_text(options, 'missing') <> 'allow' THEN
    RETURN;
  END IF;
  FOR q IN SELECT * FROM (VALUES (a, @extschema@.bson_get_text(options, 'doc_column'),
        @extschema@.bson_get_text(options, 'field')),
                                 (b, @extschema@.bson_get_text(options, 'source_doc_column'),
                                   @extschema@.bson_get_text(options, 'other_field'))) AS v (rel,
                                   doc, field) LOOP
    IF docpatterns._single_collection_filter_index(q.rel, q.doc, q.field) IS NULL THEN
      EXECUTE format('CREATE INDEX ON %s USING gin (%I @extschema@.bson_ops (paths = %L)) WHERE %s',
          q.rel, q.doc, q.field,
                     docpatterns._pattern_mark('relationship',
                       @extschema@.bson_get_text(options, 'name')));
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._relationship_create_indexes(regclass, regclass, bson) IS
  'makes the indexes that a relationship needs which allows what is missing, unless they are there';

CREATE FUNCTION docpatterns._relationship_create_triggers(a regclass, b regclass, options bson)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  events record;
  q record;
  t record;
  part record;
  decl_name text := @extschema@.bson_get_text(options, 'name');
  trigger_name text;
  stem constant text := 'zz_docpatterns_40_relation';
BEGIN
  EXECUTE format('CREATE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION '
      'docpatterns.relationship_trigger(%L)',
                 docpatterns._pattern_trigger_name(a, stem, decl_name, NULL), a, options::text);
  FOR q IN SELECT * FROM (VALUES (a, 'doc_column', 'field', format('%L, %L', 'of', decl_name), NULL,
        ''),
                                 (b, 'source_doc_column', 'other_field',
                                   format('%L, %L, %L', 'side',
                                     @extschema@.bson_get_text(options, 'link_id'), decl_name),
                                  format('%L, %L, %L', 'part', @extschema@.bson_get_text(options,
                                        'link_id'), decl_name), 'b')) AS v (rel, doc, field,
                                            arguments,
                                    part_arguments, mark) LOOP
    CONTINUE WHEN q.mark = 'b' AND @extschema@.bson_get_text(options, 'symmetric') = 'true';
    SELECT p.* INTO t FROM docpatterns._pattern_table(q.rel,
        @extschema@.bson_get_text(options, q.doc)) p;
    IF q.mark = 'b' THEN
      EXECUTE format('CREATE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE '
          'FUNCTION docpatterns.relationship_trigger(%s)',
                     docpatterns._pattern_trigger_name(q.rel, stem, decl_name, 'before'), q.rel,
                     q.arguments);
    END IF;
    EXECUTE format('CREATE TRIGGER %I AFTER INSERT OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION '
        'docpatterns.relationship_trigger(%s)',
                   docpatterns._pattern_trigger_name(q.rel, stem, decl_name, 'row' || q.mark),
                   q.rel, q.arguments);
    -- an update of something else passes the condition and costs no call
    EXECUTE format('CREATE TRIGGER %I AFTER UPDATE ON %s FOR EACH ROW WHEN (NOT (OLD.%I %s '
        'NEW.%3$I) OR docpatterns.reference_differs(OLD.%5$I, NEW.%5$I, %6$L::text[])) EXECUTE '
        'FUNCTION docpatterns.relationship_trigger(%7$s)',
                   docpatterns._pattern_trigger_name(q.rel, stem, decl_name, 'update' || q.mark),
                   q.rel, t.keys[1], t.key_ops[1], t.doc,
                   ARRAY[@extschema@.bson_get_text(options, q.field)], q.arguments);
    FOR events IN SELECT * FROM docpatterns._pattern_split_events(
          'AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE', 60) LOOP
      trigger_name := docpatterns._pattern_trigger_name(q.rel, stem, decl_name,
          concat_ws('_', 'statement' || q.mark, events.label));
      -- triggers for statements are not inherited by partitions
      FOR part IN SELECT p.relid FROM pg_partition_tree(q.rel) p UNION SELECT q.rel LOOP
        EXECUTE format('CREATE TRIGGER %I %s ON %s FOR EACH STATEMENT EXECUTE FUNCTION '
            'docpatterns.relationship_trigger(%s)',
                       trigger_name, events.event, part.relid::regclass,
                       CASE WHEN part.relid = q.rel THEN q.arguments
                       ELSE coalesce(q.part_arguments, q.arguments) END);
      END LOOP;
    END LOOP;
  END LOOP;
  PERFORM docpatterns._pattern_anchor(a, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._relationship_create_triggers(regclass, regclass, bson) IS
  'triggers of a relationship on its two tables';

-- Verbs -------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._relationship_parts(rel regclass, name text, OUT options bson,
  OUT side int, OUT base text, OUT doc text, OUT key text, OUT key_column text, OUT field text,
                                OUT other text, OUT other_doc text, OUT other_key text,
                                  OUT other_field text) RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o @extschema@.bson;
  b regclass;
  s record;
  t record;
BEGIN
  SELECT d.options INTO o FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = 'relationship' AND d.name = _relationship_parts.name;
  IF o IS NULL THEN
    RAISE EXCEPTION 'table "%" has no relationship pattern named "%"', docpatterns._relname(rel),
        name
      USING ERRCODE = 'undefined_object';
  END IF;
  b := CASE WHEN @extschema@.bson_get_text(o, 'symmetric') = 'true' THEN rel ELSE
    docpatterns._pattern_side(@extschema@.bson_get_text(o, 'link_id'), rel) END;
  SELECT p.* INTO s FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(o, 'doc_column'))) p;
  IF b IS NOT NULL THEN
    SELECT p.* INTO t FROM docpatterns._pattern_table(b,
        docpatterns._pattern_doc_column(b, @extschema@.bson_get_text(o, 'source_doc_column'))) p;
  END IF;
  options := o;
  FOR n IN 0 .. CASE WHEN b IS NULL OR @extschema@.bson_get_text(o, 'symmetric') = 'true' THEN 0
      ELSE 1 END LOOP
    side := n;
    IF n = 0 THEN
      base := s.base; doc := s.doc; key_column := s.keys[1];
      field := @extschema@.bson_get_text(o, 'field');
      IF b IS NOT NULL THEN
        other := t.base; other_doc := t.doc; other_key := t.keys[1];
        other_field := @extschema@.bson_get_text(o, 'other_field');
      END IF;
    ELSE
      base := t.base; doc := t.doc; key_column := t.keys[1];
      field := @extschema@.bson_get_text(o, 'other_field');
      other := s.base; other_doc := s.doc; other_key := s.keys[1];
      other_field := @extschema@.bson_get_text(o, 'field');
    END IF;
    key := format('@extschema@.to_bson(b.%I)', key_column);
    RETURN NEXT;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._relationship_parts(regclass, text) IS
  'names and options of a relationship as seen from each of its sides: "b" is a row of it';

CREATE FUNCTION docpatterns._relationship_held(rel regclass, name text, OUT base text, OUT doc text,
  OUT key text, OUT paths text[]) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.base, r.doc, r.key, ARRAY[r.field] FROM docpatterns._relationship_parts($1, $2) r
  WHERE r.side = 1
$$;
COMMENT ON FUNCTION docpatterns._relationship_held(regclass, text) IS
  'the other table and its field, whose values bringing documents in line could lose';

-- Edges that are wrong, of one side: key of the row, id that it names, whether that is there.
CREATE FUNCTION docpatterns._relationship_wrong(key text, base text, doc text, field text,
  other text, other_doc text, other_key text, other_field text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  -- the edges of the other side are hashed, not looked for in its arrays again and again
  SELECT format('SELECT %1$s AS key, v.id, o.%2$I IS NOT NULL AS present FROM %3$s AS b CROSS JOIN '
      'LATERAL docpatterns._relationship_ids(b.%4$I, %5$L) AS v (id) '
                'LEFT JOIN %6$s AS o ON @extschema@.to_bson(o.%2$I) OPERATOR(@extschema@.=) v.id '
                'WHERE NOT EXISTS (SELECT FROM (SELECT @extschema@.to_bson(x.%2$I) AS key, w.id '
                  'FROM %6$s AS x CROSS JOIN LATERAL docpatterns._relationship_ids(x.%7$I, %8$L) '
                  'AS w (id)) AS y '
                'WHERE y.key OPERATOR(@extschema@.=) v.id AND y.id OPERATOR(@extschema@.=) %1$s)',
                $1, $7, $2, $3, $4, $5, $6, $8)
$$;
COMMENT ON FUNCTION docpatterns._relationship_wrong(text, text, text, text, text, text, text,
  text) IS
  'SQL text: the IDs in the arrays of one side that do not agree with the other';

CREATE FUNCTION docpatterns._relationship_check(rel regclass, name text)
  RETURNS TABLE (key bson_value, what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  FOR p IN SELECT q.* FROM docpatterns._relationship_parts(rel, name) q LOOP
    IF p.other IS NULL THEN
      RETURN QUERY SELECT NULL::@extschema@.bson_value, 'other side'::text,
        'a table with the triggers of the pattern'::text, 'none'::text;
      RETURN;
    END IF;
    IF @extschema@.bson_get_text(p.options, 'missing') = 'allow'
        AND docpatterns._single_collection_filter_index(p.base::regclass, p.doc,
          p.field) IS NULL THEN
      RETURN QUERY SELECT NULL::@extschema@.bson_value,
        format('index on "%s" of %s', p.field, p.base), 'present'::text, 'missing'::text;
    END IF;
    RETURN QUERY EXECUTE format('SELECT w.key, format(''"%%s" of %%s'', %L, %L), CASE WHEN '
        'w.present THEN ''named by '' ELSE ''a document '' END || left(w.id::text, 100), CASE WHEN '
        'w.present THEN ''not named'' ELSE ''none'' END '
                                'FROM (%s) AS w WHERE w.present OR %L::boolean',
      p.field, p.base, docpatterns._relationship_wrong(p.key, p.base, p.doc, p.field, p.other,
        p.other_doc, p.other_key, p.other_field),
      @extschema@.bson_get_text(p.options, 'missing') = 'error');
    RETURN QUERY EXECUTE format('SELECT %s, format(''"%%s" of %%s'', %L, %L), ''an array'', '
        '@extschema@.bson_typeof(b.%I, %2$L) FROM %s AS b WHERE @extschema@.bson_typeof(b.%4$I, '
        '%2$L) NOT IN (''array'', ''null'', ''undefined'')',
      p.key, p.field, p.base, p.doc, p.base);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._relationship_check(regclass, text) IS
  'violated invariants of a relationship';

CREATE FUNCTION docpatterns._relationship_pending(rel regclass, name text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('SELECT ROW(b.%I) AS key FROM %s AS b WHERE %s OPERATOR(@extschema@.=) ANY (SELECT '
      'w.key FROM (%s) AS w WHERE w.present) ORDER BY b.%1$I', p.key_column, p.base, p.key,
                docpatterns._relationship_wrong(p.key, p.base, p.doc, p.field, p.other, p.other_doc,
                  p.other_key, p.other_field))
  FROM docpatterns._relationship_parts($1, $2) AS p WHERE p.side = 0
$$;
COMMENT ON FUNCTION docpatterns._relationship_pending(regclass, text) IS
  'SQL text: keys of rows of the first side whose IDs do not agree';

-- References on the other side only.
CREATE FUNCTION docpatterns._relationship_build_end(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  r record;
  done bigint := 0;
BEGIN
  FOR p IN SELECT q.* FROM docpatterns._relationship_parts(rel, name) q WHERE q.side = 1
      AND q.other IS NOT NULL LOOP
    FOR r IN EXECUTE format('SELECT DISTINCT w.key FROM (%s) AS w WHERE w.present ORDER BY w.key',
          docpatterns._relationship_wrong(p.key, p.base, p.doc, p.field, p.other, p.other_doc,
            p.other_key, p.other_field)) LOOP
      PERFORM docpatterns._relationship_repair_references(rel, name, 1, r.key, false);
      done := done + 1;
    END LOOP;
  END LOOP;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._relationship_build_end(regclass, text) IS
  'what pattern_build of a relationship does after all rows of the first side; returns how many '
  'rows of the other had to be looked at';

CREATE FUNCTION docpatterns._relationship_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  r record;
  done bigint := 0;
BEGIN
  FOR p IN SELECT q.* FROM docpatterns._relationship_parts(rel, name) q LOOP
    IF p.other IS NULL THEN
      RAISE EXCEPTION 'the other side of the relationship pattern "%" on table "%" is missing',
          name,
        docpatterns._relname(rel) USING ERRCODE = 'undefined_table',
          HINT = 'Restore it, or disable the pattern.';
    END IF;
    PERFORM docpatterns._relationship_create_indexes(rel, p.other::regclass, p.options)
      WHERE p.side = 0;
    -- an edge that one side has is meant, one that leads nowhere is not
    FOR r IN EXECUTE format('SELECT w.key, bool_or(NOT w.present) AS missing, bool_or(w.present) '
        'AS present FROM (%s) AS w GROUP BY w.key ORDER BY w.key',
                            docpatterns._relationship_wrong(p.key, p.base, p.doc, p.field, p.other,
                                p.other_doc, p.other_key, p.other_field)) LOOP
      IF r.present THEN
        PERFORM docpatterns._relationship_repair_references(rel, name, p.side, r.key, false);
      END IF;
      IF r.missing AND @extschema@.bson_get_text(p.options, 'missing') = 'error' THEN
        PERFORM docpatterns._relationship_repair_references(rel, name, p.side, r.key, true);
      END IF;
      done := done + 1;
    END LOOP;
  END LOOP;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._relationship_repair(regclass, text) IS
  'pattern_repair of a relationship';

CREATE FUNCTION docpatterns._relationship_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._relationship_parts(rel, name) q WHERE q.side = 0;
  IF p.other IS NULL THEN
    RAISE EXCEPTION 'the other side of the relationship pattern "%" on table "%" is missing', name,
      docpatterns._relname(rel) USING ERRCODE = 'undefined_table';
  END IF;
  EXECUTE format('LOCK TABLE %s, %s IN SHARE ROW EXCLUSIVE MODE', p.base, p.other);
  PERFORM docpatterns._relationship_create_indexes(rel, p.other::regclass, options);
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.relationship_trigger(%L)',
                 (SELECT g.tgname FROM pg_trigger g
                   JOIN docpatterns._pattern_declarations(rel) d ON d.trigger_oid = g.oid
                   WHERE d.pattern = 'relationship' AND d.name = _relationship_alter.name), p.base,
                 options::text);
END
$$;
COMMENT ON FUNCTION docpatterns._relationship_alter(regclass, text, bson) IS
  'pattern_alter of a relationship';

CREATE FUNCTION docpatterns._relationship_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._relationship_parts(rel, name) q WHERE q.side = 0;
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', concat_ws(', ', p.base, p.other));
  PERFORM docpatterns._derive_drop(rel, 'relationship', name);
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._relationship_disable(regclass, text, bson) IS
  'pattern_disable of a relationship: documents stay as they are';
