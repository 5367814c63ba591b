-- The polymorphic pattern: its verbs, and functions for users. Declarations and views are in
-- polymorphic.sql, the single view of several tables in polymorphic_merge.sql.

-- Verbs of the declaration ------------------------------------------------------------------------

-- A row of the table as the other patterns left it, as a whole.
CREATE FUNCTION docpatterns._polymorphic_whole(base text, doc text, keys text[]) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('@extschema@.pattern_whole(t.%I, %L::regclass, %s)', $2, $1,
                CASE WHEN cardinality($3) = 1 THEN format('t.%I', $3[1]) ELSE
                  (SELECT format('ROW(%s)', string_agg(format('t.%I', k), ', ' ORDER BY n))
                    FROM unnest($3) WITH ORDINALITY AS u (k, n)) END)
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_whole(text, text, text[]) IS
  'SQL text: the document of a row t with what other patterns have split off';

CREATE FUNCTION docpatterns._polymorphic_check(rel regclass, name text)
  RETURNS TABLE (key bson_value, what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  m record;
BEGIN
  SELECT q.* INTO m FROM docpatterns._polymorphic_main(rel, name) q;
  IF docpatterns._pattern_made_view(rel, 'polymorphic', name) IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'view'::text, 'present'::text,
      'missing'::text;
  END IF;
  -- the declaration of a variant reports its own errors
  RETURN QUERY SELECT v.key, v.what, v.expected, v.found
    FROM docpatterns._polymorphic_violations(rel, name) v WHERE v.part IN ('by', 'common');
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_check(regclass, text) IS
  'violated invariants of a polymorphic declaration: documents of unknown variants, and those that '
  'break the common schema';

CREATE FUNCTION docpatterns._polymorphic_violations(rel regclass, of text,
  only_value bson_value DEFAULT NULL) RETURNS TABLE (key bson_value, variant text, part text,
  what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  m record;
BEGIN
  SELECT q.* INTO m FROM docpatterns._polymorphic_main(rel, of) q;
  RETURN QUERY EXECUTE format(
    'SELECT q.key, e.variant, e.part, format(''%%s, rule "%%s"%%s'', CASE WHEN e.path = '''' THEN '
    '''document'' ELSE format(''field "%%s"'', e.path) END, e.rule, '
    '         CASE WHEN e.variant IS NULL THEN '''' ELSE format('' of variant "%%s"'', e.variant) '
      'END), e.expected, e.found '
    'FROM (SELECT %s AS key, %s AS doc FROM %s AS t WHERE t.%I IS NOT NULL OFFSET 0) AS q '
    '  CROSS JOIN LATERAL @extschema@.polymorphic_errors(%3$L::regclass, q.doc, %5$L) AS e '
    'WHERE %6$s AND NOT docpatterns._polymorphic_valid(%3$L::regclass, %5$L, q.doc)',
    m.key_value, docpatterns._polymorphic_whole(m.base, m.doc, m.keys), m.base, m.doc, of,
    -- groups documents by variant before it validates them
    CASE WHEN only_value IS NULL OR m.parent IS NOT NULL THEN 'true' ELSE
      docpatterns._polymorphic_predicate('q.doc', m.field_path, only_value) END);
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_violations(regclass, text, bson_value) IS
  'what is wrong with the documents of a polymorphic table; only_value: with those of one variant '
  'at least';

CREATE FUNCTION docpatterns._polymorphic_pending(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  m record;
BEGIN
  SELECT q.* INTO m FROM docpatterns._polymorphic_main(rel, name) q;
  RETURN format('SELECT %s AS key FROM %s AS t WHERE NOT '
      'docpatterns._polymorphic_valid(%L::regclass, %L, %s) ORDER BY %s',
                m.key_row, m.base, m.base, name,
                docpatterns._polymorphic_whole(m.base, m.doc, m.keys), m.key_list);
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_pending(regclass, text) IS
  'SQL text: keys of documents that the table should not hold';

-- Documents that are wrong cannot be put right here: the error names them.
CREATE FUNCTION docpatterns._polymorphic_require_valid(rel regclass, of text, variant text)
  RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  wrong text[];
BEGIN
  SELECT array_agg(DISTINCT v.key::text) INTO wrong
    FROM docpatterns._polymorphic_violations(rel, of) v
    WHERE _polymorphic_require_valid.variant IS NULL
    OR v.variant = _polymorphic_require_valid.variant;
  IF wrong IS NOT NULL THEN
    RAISE EXCEPTION '% documents in table "%" do not match their variants',
      cardinality(wrong), docpatterns._relname(rel)
      USING ERRCODE = 'check_violation',
            DETAIL = 'Their keys: ' || array_to_string(wrong[1:20], ', ') || CASE
            WHEN cardinality(wrong) > 20 THEN ', ...' ELSE '' END || '.',
            HINT = 'pattern_check() reports the errors. Correct the documents, or change their '
            'variants with polymorphic_retype().';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_require_valid(regclass, text, text) IS
  'error 23514 with the keys of documents that the table should not hold';

CREATE FUNCTION docpatterns._polymorphic_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM docpatterns._polymorphic_create_view(rel, name, NULL, NULL);
  PERFORM docpatterns._polymorphic_require_valid(rel, name, NULL);
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_repair(regclass, text) IS
  'pattern_repair of a polymorphic declaration: creates its view again; error 23514 with the keys '
  'of invalid documents';

CREATE FUNCTION docpatterns._polymorphic_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v record;
BEGIN
  PERFORM docpatterns._polymorphic_create_trigger(rel, options);
  PERFORM docpatterns._polymorphic_create_view(rel, name, NULL, NULL);
  FOR v IN SELECT q.* FROM docpatterns._polymorphic_declared(rel, name) q LOOP
    PERFORM docpatterns._polymorphic_renew(rel, name, v.name);
  END LOOP;
  PERFORM docpatterns._polymorphic_tell(rel, name);
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_alter(regclass, text, bson) IS
  'pattern_alter of a polymorphic declaration';

CREATE FUNCTION docpatterns._polymorphic_tell(rel regclass, name text) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF docpatterns._pattern_nonempty(rel) THEN
    RAISE NOTICE 'table "%" already has rows', docpatterns._relname(rel)
      USING HINT = format('Run CALL pattern_build(%L, %L) to check them.', rel, name);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_tell(regclass, text) IS
  'a notice that rows which are there have not been looked at';

-- The view and the indexes of a variant after a change of schemas.
CREATE FUNCTION docpatterns._polymorphic_renew(rel regclass, of text, variant text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  i record;
BEGIN
  PERFORM docpatterns._polymorphic_create_view(rel, of, variant, NULL);
  -- an index over an expression that its paths do not have any more is made again
  FOR i IN SELECT w.* FROM docpatterns._polymorphic_indexes(rel, of, variant) w
      WHERE w.index IS NOT NULL LOOP
    IF NOT docpatterns._polymorphic_index_fits(rel, i.index, i.expressions) THEN
      EXECUTE format('DROP INDEX %s', i.index);
    END IF;
  END LOOP;
  PERFORM docpatterns._polymorphic_drop_indexes(rel, variant,
      ARRAY(SELECT w.line FROM docpatterns._polymorphic_indexes(rel, of, variant) w));
  PERFORM docpatterns._polymorphic_create_indexes(rel, of, variant);
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_renew(regclass, text, text) IS
  'updates the view and the indexes of a variant to its schemas';

-- PostgreSQL parses expressions: creates an index without rows to compare.
CREATE FUNCTION docpatterns._polymorphic_index_fits(rel regclass, index regclass, expressions text)
  RETURNS boolean
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  probe text := (SELECT format('%I.%I', s.nspname, 'docpatterns_probe_'
        || replace(gen_random_uuid()::text, '-', ''))
                 FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace WHERE c.oid = rel);
  fits boolean;
BEGIN
  EXECUTE format('CREATE UNLOGGED TABLE %s (LIKE %s)', probe, rel);
  EXECUTE format('CREATE INDEX ON %s (%s)', probe, expressions);
  SELECT x.indnkeyatts = p.indnkeyatts
    AND NOT EXISTS (SELECT FROM generate_series(1, p.indnkeyatts) AS k
      WHERE pg_get_indexdef(x.indexrelid, k,
          true) <> pg_get_indexdef(p.indexrelid, k,
          true))
    INTO fits FROM pg_index x, pg_index p WHERE x.indexrelid = index
      AND p.indrelid = probe::regclass;
  EXECUTE format('DROP TABLE %s', probe);
  RETURN fits;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_index_fits(regclass, regclass, text) IS
  'whether an index has these expressions';

CREATE FUNCTION docpatterns._polymorphic_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v record;
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  FOR v IN SELECT q.* FROM docpatterns._polymorphic_declared(rel, name) q LOOP
    PERFORM docpatterns._polymorphic_drop(rel, 'polymorphic_variant', v.name);
  END LOOP;
  PERFORM docpatterns._polymorphic_drop(rel, 'polymorphic', name);
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_disable(regclass, text, bson) IS
  'pattern_disable of a polymorphic declaration, with its variants, their views and indexes; '
  'documents stay as they are';

-- Trigger, view and indexes of a declaration.
CREATE FUNCTION docpatterns._polymorphic_drop(rel regclass, pattern text, name text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  view_rel regclass := docpatterns._pattern_made_view(rel, pattern, name);
  main name;
BEGIN
  IF view_rel IS NOT NULL THEN
    EXECUTE format('DROP VIEW %s', view_rel);
  END IF;
  IF pattern = 'polymorphic_variant' THEN
    PERFORM docpatterns._polymorphic_drop_indexes(rel, name);
  END IF;
  SELECT g.tgname INTO main FROM docpatterns._pattern_declarations(rel) d
    JOIN pg_trigger g ON g.oid = d.trigger_oid
    WHERE d.pattern = _polymorphic_drop.pattern AND d.name = _polymorphic_drop.name;
  IF main IS NOT NULL THEN
    PERFORM docpatterns._pattern_drop_anchor(rel, name);
    EXECUTE format('DROP TRIGGER %I ON %s', main, rel);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_drop(regclass, text, text) IS
  'drops the trigger, the view and the indexes of a polymorphic declaration or of a variant';

CREATE FUNCTION docpatterns._polymorphic_follow_owner(rel regclass, former oid) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._pattern_renew_view($1,
      docpatterns._pattern_made_view($1, 'polymorphic', d.name, owner => $2),
        format('SELECT docpatterns._polymorphic_create_view(%L, '
          '%L, NULL, NULL)', $1, d.name),
        format('SELECT docpatterns._pattern_made_view(%L, '
          '''polymorphic'', %L)', $1, d.name))
  FROM docpatterns._pattern_declarations($1) d WHERE d.pattern = 'polymorphic' ORDER BY d.name
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_follow_owner(regclass, oid) IS
  'makes the views of polymorphic declarations again after a change of the table''s owner';

CREATE FUNCTION docpatterns._polymorphic_variant_follow_owner(rel regclass, former oid) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._pattern_renew_view($1,
      docpatterns._pattern_made_view($1, 'polymorphic_variant', d.name, owner => $2),
        format('SELECT docpatterns._polymorphic_create_view(%L, '
          '%L, %L, NULL)', $1, @extschema@.bson_get_text(d.options,
            'of'), d.name),
        format('SELECT docpatterns._pattern_made_view(%L, '
          '''polymorphic_variant'', %L)', $1, d.name))
  FROM docpatterns._pattern_declarations($1) d WHERE d.pattern = 'polymorphic_variant'
    ORDER BY d.name
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_variant_follow_owner(regclass, oid) IS
  'makes the views of variants again after a change of the table''s owner';

-- Verbs of a variant ------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._polymorphic_of(rel regclass, name text, OUT of text, OUT variant text,
  OUT options bson)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  SELECT d.options INTO options FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = 'polymorphic_variant' AND d.name = _polymorphic_of.name;
  IF options IS NULL THEN
    RAISE EXCEPTION 'table "%" has no variant named "%"', docpatterns._relname(rel), name
      USING ERRCODE = 'undefined_object';
  END IF;
  of := @extschema@.bson_get_text(options, 'of');
  variant := @extschema@.bson_get_text(options, 'variant');
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_of(regclass, text) IS
  'the declaration of a variant; error 42704';

CREATE FUNCTION docpatterns._polymorphic_variant_check(rel regclass, name text)
  RETURNS TABLE (key bson_value, what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o record;
BEGIN
  SELECT q.* INTO o FROM docpatterns._polymorphic_of(rel, name) q;
  IF docpatterns._pattern_made_view(rel, 'polymorphic_variant', name) IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'view'::text, 'present'::text,
      'missing'::text;
  END IF;
  RETURN QUERY SELECT NULL::@extschema@.bson_value, format('%sindex on %s', CASE
      WHEN i.is_unique THEN 'unique ' END, array_to_string(i.paths, ', ')), 'present'::text,
    'missing'::text
    FROM docpatterns._polymorphic_indexes(rel, o.of, name) i WHERE i.index IS NULL;
  RETURN QUERY SELECT v.key, v.what, v.expected, v.found
    FROM docpatterns._polymorphic_violations(rel, o.of,
      o.options OPERATOR(@extschema@.->) 'value'::text) v WHERE v.variant = o.variant
    AND v.part IN ('variant', 'closed');
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_variant_check(regclass, text) IS
  'violated invariants of a variant: documents that break its schema, its view and its indexes';

CREATE FUNCTION docpatterns._polymorphic_variant_pending(rel regclass, name text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._polymorphic_pending($1, o.of) FROM docpatterns._polymorphic_of($1, $2) o
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_variant_pending(regclass, text) IS
  'SQL text: keys of documents that the table should not hold';

CREATE FUNCTION docpatterns._polymorphic_variant_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o record;
BEGIN
  SELECT q.* INTO o FROM docpatterns._polymorphic_of(rel, name) q;
  PERFORM docpatterns._polymorphic_renew(rel, o.of, name);
  PERFORM docpatterns._polymorphic_require_valid(rel, o.of, o.variant);
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_variant_repair(regclass, text) IS
  'pattern_repair of a variant: creates its view and indexes again; error 23514 with the '
  'keys of invalid documents';

CREATE FUNCTION docpatterns._polymorphic_variant_alter(rel regclass, name text, options bson)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._polymorphic_of(rel, name) q;
  PERFORM docpatterns._polymorphic_create_variant_trigger(rel, options);
  PERFORM docpatterns._polymorphic_renew(rel, p.of, name);
  PERFORM docpatterns._polymorphic_tell(rel, name);
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_variant_alter(regclass, text, bson) IS
  'pattern_alter of a variant';

CREATE FUNCTION docpatterns._polymorphic_variant_disable(rel regclass, name text, how bson)
  RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o record;
  m record;
  keys text[];
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  SELECT q.* INTO o FROM docpatterns._polymorphic_of(rel, name) q;
  SELECT q.* INTO m FROM docpatterns._polymorphic_main(rel, o.of) q;
  -- with unknown => 'error' they could no longer be written
  IF @extschema@.bson_get_text(m.options, 'unknown') = 'error'
      AND @extschema@.bson_get_text(how, 'keep_data') IS DISTINCT FROM 'true' THEN
    -- those too that others have written since the transaction's snapshot, before the table was
    -- locked
    keys := docpatterns._pattern_latest(format('SELECT array_agg(q.key::text) FROM (SELECT %s AS '
          'key FROM %s AS t WHERE EXISTS (SELECT FROM docpatterns._polymorphic_elements(t.%I, '
          '%L::text) AS e (item_path, doc) WHERE %s) LIMIT 21) AS q',
                   m.key_value, m.base, m.doc, m.by_path,
                   docpatterns._polymorphic_predicate('e.doc', m.field_path,
                     o.options OPERATOR(@extschema@.->) 'value'::text)))::text[];
    IF keys IS NOT NULL THEN
      RAISE EXCEPTION 'table "%" has documents of variant "%"', docpatterns._relname(rel), o.variant
        USING ERRCODE = 'check_violation',
              DETAIL = 'Their keys: ' || array_to_string(keys[1:20], ', ') || CASE
              WHEN cardinality(keys) > 20 THEN ', ...' ELSE '' END || '.',
              HINT = 'Change their variant with polymorphic_retype_all(), accept '
              'unknown ones with pattern_alter(), or keep them with keep_data => '
              'true.';
    END IF;
  END IF;
  PERFORM docpatterns._polymorphic_drop(rel, 'polymorphic_variant', name);
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._polymorphic_variant_disable(regclass, text, bson) IS
  'pattern_disable of a variant, with its view and indexes; error 23514 with the keys of its '
  'documents where unknown variants are refused';

-- Calls -------------------------------------------------------------------------------------------

CREATE FUNCTION polymorphic_variants(rel regclass, name text DEFAULT NULL)
  RETURNS TABLE (variant text, value bson_value, declared boolean, closed boolean, documents bigint,
      view regclass, schema bson)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  m record;
BEGIN
  SELECT q.* INTO m FROM docpatterns._polymorphic_main(rel, name) q;
  RETURN QUERY EXECUTE format(
    'SELECT coalesce(d.variant, f.value::pg_catalog.text), coalesce(d.value, f.value), d.variant '
    'IS NOT NULL, coalesce(d.closed, false), coalesce(f.n, 0), '
    '  docpatterns._pattern_made_view($1, ''polymorphic_variant'', d.name), (d.options '
      'OPERATOR(@extschema@.->) ''schema''::text)::@extschema@.bson '
    'FROM docpatterns._polymorphic_declared($1, $2) AS d '
    '  FULL JOIN (SELECT %s OPERATOR(@extschema@.->) %L::text AS value, count(*) AS n FROM %s AS '
      't%s GROUP BY 1) AS f ON f.value OPERATOR(@extschema@.=) d.value '
    'ORDER BY d.variant IS NULL, coalesce(d.variant, f.value::pg_catalog.text)',
    CASE WHEN m.parent IS NULL THEN format('t.%I', m.doc) ELSE 'e.doc' END, m.field_path, m.base,
    CASE WHEN m.parent IS NULL THEN format(' WHERE t.%I IS NOT NULL', m.doc) ELSE
      format(' CROSS JOIN LATERAL docpatterns._polymorphic_elements(t.%I, '
        '%L::text) AS e (item_path, doc)', m.doc, m.by_path) END)
    USING rel, m.name;
END
$$;
COMMENT ON FUNCTION polymorphic_variants(regclass, text) IS
  'The variants that are declared or found (NULL: documents without the field), with the number of '
  'documents, view and schema. Reads the whole table; needs SELECT';

CREATE FUNCTION polymorphic_retype(rel regclass, key anycompatible, variant text,
  change_update bson DEFAULT NULL, change regprocedure DEFAULT NULL,
                                   item_path text DEFAULT NULL,
                                       name text DEFAULT NULL) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_polymorphic_retype' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION polymorphic_retype(regclass, anycompatible, text, bson, regprocedure, text,
  text) IS
  'Makes the document of a key (or the sub-document at item_path) one of another variant: changes '
  'it '
  'by an update document or a function of a bson, sets the field and writes it. Returns whether '
  'there was such a document. Needs SELECT and UPDATE; locks the row. Errors: 42704 an unknown '
  'variant, 23514 an invalid result, 22023 arguments that do not fit, 42804 a function that does '
  'not map bson to bson';

CREATE FUNCTION polymorphic_retype_all(rel regclass, variant text, new_variant text,
  filter bson DEFAULT NULL, change_update bson DEFAULT NULL,
    change regprocedure DEFAULT NULL, name text DEFAULT NULL)
    RETURNS bigint
LANGUAGE docpatterns VOLATILE AS $$
DECLARE
  m pg_catalog.record;
  old_value @extschema@.bson_value;
  new_value @extschema@.bson_value;
  changed pg_catalog.text;
  done bigint;
BEGIN
  SELECT q.* INTO m FROM docpatterns._polymorphic_main(rel, name) q;
  IF variant IS NULL OR new_variant IS NULL THEN
    RAISE EXCEPTION 'the variants must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF change_update IS NOT NULL AND change IS NOT NULL THEN
    RAISE EXCEPTION 'only one of change_update and change can be specified'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF m.parent IS NOT NULL THEN
    RAISE EXCEPTION 'cannot change the variant of sub-documents with one call'
      USING ERRCODE = 'feature_not_supported', HINT = 'Call polymorphic_retype() for each of them.';
  END IF;
  SELECT coalesce((SELECT d.value FROM docpatterns._polymorphic_declared(rel, m.name) d
        WHERE d.variant OPERATOR(pg_catalog.=) polymorphic_retype_all.variant),
                  @extschema@.to_bson(variant)) INTO old_value;
  SELECT d.value INTO new_value FROM docpatterns._polymorphic_declared(rel, m.name) d
    WHERE d.variant OPERATOR(pg_catalog.=) new_variant;
  IF new_value IS NULL THEN
    RAISE EXCEPTION 'table "%" has no variant "%"', docpatterns._relname(rel), new_variant
      USING ERRCODE = 'undefined_object', HINT = 'Declare it with polymorphic_variant().';
  END IF;
  changed := pg_catalog.format('t.%I', m.doc);
  IF change_update IS NOT NULL THEN
    changed := pg_catalog.format('@extschema@.bson_update(%s, $3)', changed);
  ELSIF change IS NOT NULL THEN
    SELECT pg_catalog.format('%I.%I(%s)', n.nspname, p.proname, changed) INTO changed
      FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=)
        p.pronamespace
      WHERE p.oid OPERATOR(pg_catalog.=) change
        AND p.prorettype OPERATOR(pg_catalog.=) '@extschema@.bson'::pg_catalog.regtype
        AND p.pronargs OPERATOR(pg_catalog.=) 1
          AND (p.proargtypes::pg_catalog.oid[])[0] OPERATOR(pg_catalog.=)
          '@extschema@.bson'::pg_catalog.regtype AND NOT p.proretset;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'function % must take one bson and return bson', change
        USING ERRCODE = 'datatype_mismatch';
    END IF;
  END IF;
  EXECUTE pg_catalog.format('UPDATE %s AS t SET %I = @extschema@.bson_set(%s, %L, $1) WHERE %s AND '
      '($2 IS NULL OR t.%I OPERATOR(@extschema@.@@) $2)',
    m.base, m.doc, changed, m.by_path,
    docpatterns._polymorphic_predicate(pg_catalog.format('t.%I', m.doc), m.field_path, old_value),
    m.doc)
    USING new_value, filter, change_update;
  GET DIAGNOSTICS done = ROW_COUNT;
  RETURN done;
END
$$;
COMMENT ON FUNCTION polymorphic_retype_all(regclass, text, text, bson, bson, regprocedure, text) IS
  'The same for all documents of a variant that match a filter, in one statement; returns their '
  'number. Error: 0A000 where variants are of sub-documents';

-- Proposals ---------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._polymorphic_infer_transfn(internal, bson, text, int) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_polymorphic_infer_transfn' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._polymorphic_infer_transfn(internal, bson, text, int) IS
  'takes a document in';
CREATE FUNCTION docpatterns._polymorphic_infer_finalfn(internal) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_polymorphic_infer_finalfn' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._polymorphic_infer_finalfn(internal) IS
  'the schemas that hold for the documents';
CREATE AGGREGATE docpatterns._polymorphic_infer_agg(doc bson, by text, enum_max int)
  (SFUNC = docpatterns._polymorphic_infer_transfn, STYPE = internal,
    FINALFUNC = docpatterns._polymorphic_infer_finalfn, FINALFUNC_MODIFY = READ_WRITE);
COMMENT ON AGGREGATE docpatterns._polymorphic_infer_agg(bson, text, int) IS
  'schemas of the kinds of documents (told by the field by), and of all of them: {common, '
  'variants: [{value, documents, schema}, ...]}';

CREATE FUNCTION polymorphic_infer(rel regclass, "by" text DEFAULT NULL, enum_max int DEFAULT 8,
  sample bigint DEFAULT NULL, name text DEFAULT NULL, doc_column text DEFAULT NULL)
  RETURNS TABLE (variant text, value bson_value, documents bigint, schema bson, command text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  t record;
  m record;
  v record;
  declared text;
  by_path text := polymorphic_infer."by";
  found @extschema@.bson;
BEGIN
  IF enum_max IS NULL OR enum_max NOT BETWEEN 0 AND 1000 THEN
    RAISE EXCEPTION 'enum_max must be between 0 and 1000' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, polymorphic_infer.doc_column) p;
  IF by_path IS NULL THEN
    SELECT q.* INTO m FROM docpatterns._polymorphic_main(rel, polymorphic_infer.name) q;
    by_path := m.by_path;
    declared := m.name;
    t.doc := m.doc;
  END IF;
  EXECUTE format('SELECT docpatterns._polymorphic_infer_agg(q.doc, $1, $2) FROM (SELECT t.%I AS '
      'doc FROM %s AS t%s) AS q', t.doc, t.base, CASE WHEN sample IS NOT NULL THEN ' LIMIT $3'
      ELSE '' END)
    INTO found USING by_path, enum_max, sample;
  IF declared IS NULL OR @extschema@.bson_exists(found, 'common') THEN
    schema := (found OPERATOR(@extschema@.->) 'common'::text)::@extschema@.bson;
    documents := CASE WHEN schema IS NOT NULL THEN
      (found OPERATOR(@extschema@.->) 'documents'::text)::bigint ELSE 0 END;
    -- documents without a kind must be accepted
    command := CASE WHEN declared IS NULL THEN
      format('SELECT polymorphic_enable(%L, by => %L%s%s)', t.base, by_path,
        CASE
          WHEN EXISTS (SELECT
            FROM @extschema@.bson_elements(found
              OPERATOR(@extschema@.->)
              'variants'::text) e
            WHERE coalesce(@extschema@.bson_typeof(e
                OPERATOR(@extschema@.->)
                'value'::text), 'null') = 'null')
             THEN ', unknown => ''accept''' ELSE ''
               END,
        CASE WHEN schema IS NULL THEN '' ELSE
          format(', common => %L', schema) END)
                    ELSE format('SELECT pattern_alter(%L, %L, %L)', t.base, declared,
                        @extschema@.bson_build('common', schema)) END;
    RETURN NEXT;
  END IF;
  FOR v IN SELECT (e OPERATOR(@extschema@.->) 'value'::text) AS kind,
    (e OPERATOR(@extschema@.->) 'documents'::text)::bigint AS n,
    (e OPERATOR(@extschema@.->) 'schema'::text)::@extschema@.bson AS proposal,
                  (SELECT d.name FROM docpatterns._polymorphic_declared(rel, declared) d
                    WHERE d.value OPERATOR(@extschema@.=)
                    (e OPERATOR(@extschema@.->) 'value'::text)) AS variant_name,
                  (SELECT d.variant FROM docpatterns._polymorphic_declared(rel, declared) d
                    WHERE d.value OPERATOR(@extschema@.=)
                    (e OPERATOR(@extschema@.->) 'value'::text)) AS variant_known
           FROM @extschema@.bson_elements(found OPERATOR(@extschema@.->) 'variants'::text) e
             ORDER BY 1 NULLS LAST LOOP
    variant := coalesce(v.variant_known, v.kind::pg_catalog.text);
    value := v.kind;
    documents := v.n;
    schema := v.proposal;
    command := CASE WHEN v.kind IS NULL OR @extschema@.bson_typeof(v.kind) = 'null' THEN NULL
                    WHEN v.variant_name IS NOT NULL THEN
                      format('SELECT pattern_alter(%L, %L, %L)', t.base, v.variant_name,
                        @extschema@.bson_build('schema', v.proposal))
                    ELSE format('SELECT polymorphic_variant(%L, %L, schema => %L%s)', t.base,
                        variant, schema,
                                CASE WHEN @extschema@.bson_typeof(v.kind) <> 'string' THEN
                                  format(', value => %L', v.kind) ELSE '' END
                                || CASE WHEN declared IS NOT NULL THEN format(', of => %L',
                                  declared) ELSE '' END) END;
    RETURN NEXT;
  END LOOP;
END
$$;
COMMENT ON FUNCTION polymorphic_infer(regclass, text, int, bigint, text, text) IS
  'Proposes schemas that hold for the documents: one for all (variant NULL), one for each value of '
  'the field by, and the commands that declare them. Fields that always occur are required, types '
  'are those that occur, at most enum_max recurring strings are an enum. sample is the number of '
  'rows to read, by default all. Needs SELECT. Error: 54000 more than 200 kinds';
