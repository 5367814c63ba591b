-- The payload pattern: a bulky field is compressed in its document, fields for queries are
-- extracted from it on every write. Its triggers are in src/patterns/payload/.

CREATE FUNCTION docpatterns.payload_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_payload_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.payload_trigger() IS
  'trigger of the payload pattern; made by payload_enable';

CREATE FUNCTION payload_pack(value bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_payload_pack_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION payload_pack(bson_value) IS
  'The value as a compressed Binary; a packed value stays. Costs a compression';

CREATE FUNCTION payload_unpack(value bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_payload_unpack_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 50;
COMMENT ON FUNCTION payload_unpack(bson_value) IS
  'The payload that a packed value holds; any other value stays. Costs a decompression. Error: '
  'XX001 a damaged one';

CREATE FUNCTION docpatterns._payload_verify(rel regclass, options bson) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_payload_verify' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._payload_verify(regclass, bson) IS
  'errors 22023, 42P17, 42501 and those of expressions for options of the payload pattern that are '
  'wrong';

CREATE FUNCTION docpatterns._payload_is_pending(doc bson, rel regclass, name text) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_payload_is_pending' LANGUAGE C STABLE STRICT COST 5;
COMMENT ON FUNCTION docpatterns._payload_is_pending(bson, regclass, text) IS
  'whether the payload of a document is not packed';

CREATE FUNCTION docpatterns._payload_is_packed(value bson_value) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_payload_is_packed_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._payload_is_packed(bson_value) IS
  'whether a value is a packed payload';

CREATE FUNCTION docpatterns._payload_faults(doc bson, rel regclass, name text, key "any",
  OUT what text, OUT expected text, OUT found text) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_payload_faults' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 1000
  ROWS 1;
COMMENT ON FUNCTION docpatterns._payload_faults(bson, regclass, text, "any") IS
  'what is wrong with a document: its payload is read and all fields are extracted';

-- Declaring ---------------------------------------------------------------------------------------

CREATE FUNCTION payload_enable(rel regclass, field text, extracts bson DEFAULT '{}',
  name text DEFAULT NULL, doc_column text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE AS $$
DECLARE
  declared @extschema@.bson;
BEGIN
  -- functions are meant as the caller finds them, so their names are completed before the search
  -- path changes
  IF extracts IS NOT NULL THEN
    declared := docpatterns._payload_functions(extracts);
  END IF;
  RETURN docpatterns._payload_enable(rel, field, declared, name, doc_column);
END
$$;
COMMENT ON FUNCTION payload_enable(regclass, text, bson, text, text) IS
  'Declares the payload pattern: the value of field (text, JSON, XML, a document ..) is stored as '
  'a compressed Binary, and the fields of extracts are taken from it on every write. The view '
  '<table>_whole shows and takes payloads as they were. Returns the name of the declaration '
  '(default: field). Locks the table against writers. Errors: 22023 wrong extracts, 42P17 a '
  'function that is not immutable, 0A000 xpath without libxml, 42710 the name exists, 42501 unless '
  'the caller owns the table';

-- Functions with their schema and argument: f, s.f or s.f(text) becomes s.f(text).
CREATE FUNCTION docpatterns._payload_functions(extracts bson) RETURNS bson
LANGUAGE docpatterns STABLE AS $$
DECLARE
  result @extschema@.bson := extracts;
  e pg_catalog.record;
  given pg_catalog.text;
  suffix pg_catalog.text;
  found pg_catalog.oid;
BEGIN
  FOR e IN SELECT k.key, k.value FROM @extschema@.bson_each(extracts) k LOOP
    IF @extschema@.bson_typeof(e.value) OPERATOR(pg_catalog.=) 'string'
        AND e.value::pg_catalog.text OPERATOR(pg_catalog.~) '^function:' THEN
      given := pg_catalog.substring(e.value::pg_catalog.text, '^function:(.*?)(?:::[^:]*)?$');
      suffix := pg_catalog.substring(e.value::pg_catalog.text, '(::[^:"()]*)$');
    ELSIF @extschema@.bson_typeof(e.value) OPERATOR(pg_catalog.=) 'object'
        AND @extschema@.bson_typeof(e.value::@extschema@.bson, 'function') OPERATOR(pg_catalog.=)
        'string' THEN
      given := @extschema@.bson_get_text(e.value::@extschema@.bson, 'function');
      suffix := NULL;
    ELSE
      CONTINUE;
    END IF;
    IF given OPERATOR(pg_catalog.~) '[)][[:space:]]*$' THEN
      found := given::pg_catalog.regprocedure;
    ELSE
      found := given::pg_catalog.regproc;
    END IF;
    SELECT pg_catalog.format('%I.%I(%s)', n.nspname, p.proname,
             (SELECT pg_catalog.string_agg(pg_catalog.format('%I.%I', tn.nspname, t.typname), ', '
                 ORDER BY a.n)
              FROM pg_catalog.unnest(p.proargtypes::pg_catalog.oid[]) WITH ORDINALITY AS a (type, n)
                JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) a.type
                JOIN pg_catalog.pg_namespace tn ON tn.oid OPERATOR(pg_catalog.=) t.typnamespace))
                  INTO given
      FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=)
        p.pronamespace WHERE p.oid OPERATOR(pg_catalog.=) found;
    IF @extschema@.bson_typeof(e.value) OPERATOR(pg_catalog.=) 'string' THEN
      result := @extschema@.bson_set(result, docpatterns._pattern_name_path(e.key),
          pg_catalog.concat('function:', given, suffix));
    ELSE
      result := @extschema@.bson_set(result,
          docpatterns._pattern_name_path(e.key) OPERATOR(pg_catalog.||) '.function', given);
    END IF;
  END LOOP;
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._payload_functions(bson) IS
  'extracts with the full names of their functions; error 42883 if a function does not exist';

CREATE FUNCTION docpatterns._payload_enable(rel regclass, field text, extracts bson, name text,
  doc_column text) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  options @extschema@.bson;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  options := docpatterns._pattern_declare(rel, 'payload', @extschema@.bson_build(
    'name', coalesce(name, field), 'field', field, 'extracts', extracts, 'doc_column', t.doc));
  name := @extschema@.bson_get_text(options, 'name');
  PERFORM docpatterns._payload_create_triggers(rel, options);
  PERFORM docpatterns._pattern_create_whole(rel, doc_column);
  PERFORM docpatterns._pattern_notice_rows(rel, name);
  RETURN name;
END
$$;
COMMENT ON FUNCTION docpatterns._payload_enable(regclass, text, bson, text, text) IS
  'payload_enable with its functions written in full';

CREATE FUNCTION docpatterns._payload_paths(options bson, OUT path text, OUT kept boolean,
  OUT guarded boolean, OUT derived boolean) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT @extschema@.bson_get_text($1, 'field'), true, false, false
  UNION ALL
  SELECT k, true, true, false FROM @extschema@.bson_keys(($1 OPERATOR(@extschema@.->)
        'extracts'::text)::@extschema@.bson) k
$$;
COMMENT ON FUNCTION docpatterns._payload_paths(bson) IS
  'paths of the payload and of the fields that are extracted from it';

-- The main trigger extracts, the other one packs.
CREATE FUNCTION docpatterns._payload_create_triggers(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  declared text := @extschema@.bson_get_text(options, 'name');
  main text;
  late text;
BEGIN
  SELECT g.tgname::text INTO main FROM docpatterns._pattern_declarations(rel) d
    JOIN pg_trigger g ON g.oid = d.trigger_oid
    WHERE d.pattern = 'payload' AND d.name = declared;
  SELECT g.tgname::text INTO late FROM pg_trigger g
    WHERE g.tgrelid = rel AND g.tgfoid = 'docpatterns.payload_trigger'::regproc
      AND g.tgargs = docpatterns._pattern_arguments('of', declared);
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.payload_trigger(%L)',
                 coalesce(main, docpatterns._pattern_trigger_name(rel, 'zz_docpatterns_28_payload',
                     declared, NULL)), rel, options::text);
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.payload_trigger(%L, %L)',
                 coalesce(late, docpatterns._pattern_trigger_name(rel, 'zz_docpatterns_54_payload',
                     declared, 'pack')), rel, 'of', declared);
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._payload_create_triggers(regclass, bson) IS
  'creates the triggers of a payload pattern, or replaces them when options change';

-- Verbs -------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._payload_check(rel regclass, name text) RETURNS TABLE (key bson_value,
  what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'payload', name) q;
  RETURN QUERY EXECUTE format('SELECT %s, f.what, f.expected, f.found FROM %s AS b CROSS JOIN '
      'LATERAL docpatterns._payload_faults(%s, $1, $2, %s) f',
                              p.key_value, p.base, p.doc, p.key_row) USING rel, name;
END
$$;
COMMENT ON FUNCTION docpatterns._payload_check(regclass, text) IS
  'violated invariants of a payload pattern';

CREATE FUNCTION docpatterns._payload_wrong(key_row text, base text, doc text, key_list text,
  name text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('SELECT %1$s AS key FROM %2$s AS b '
                'WHERE EXISTS (SELECT FROM docpatterns._payload_faults(%3$s, '
                '%2$L::regclass, %5$L, %1$s)) ORDER BY %4$s', key_row, base, doc, key_list, name)
$$;
COMMENT ON FUNCTION docpatterns._payload_wrong(text, text, text, text, text) IS
  'SQL text: keys of rows that are not as a payload pattern has them';

CREATE FUNCTION docpatterns._payload_pending(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'payload', name) q;
  IF @extschema@.bson_exists(p.options, 'held') THEN
    -- one that is packed may hold a value from before
    RETURN docpatterns._payload_wrong(p.key_row, p.base, p.doc, p.key_list, name);
  END IF;
  RETURN format('SELECT %1$s AS key FROM %2$s AS b WHERE docpatterns._payload_is_pending(%3$s, '
      '%4$L::regclass, %5$L) '
                'OR coalesce(@extschema@.bson_typeof(%3$s, %6$L), ''null'') OPERATOR(pg_catalog.=) '
                  'ANY (''{"null",undefined}'') AND @extschema@.bson_exists_any(%3$s, '
                  '%7$L::text[]) ORDER BY %8$s',
                p.key_row, p.base, p.doc, p.base, name,
                @extschema@.bson_get_text(p.options, 'field'),
                ARRAY(SELECT g.path FROM docpatterns._payload_paths(p.options) g
                  WHERE g.guarded)::text, p.key_list);
END
$$;
COMMENT ON FUNCTION docpatterns._payload_pending(regclass, text) IS
  'SQL text: keys of rows whose payload is not packed, or that have none and fields all the same';

CREATE FUNCTION docpatterns._payload_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'payload', name) q;
  PERFORM docpatterns._pattern_create_whole(rel, p.doc_name);
  RETURN docpatterns._pattern_repair_rows(rel, name,
           docpatterns._payload_wrong(p.key_row, p.base, p.doc, p.key_list, name));
END
$$;
COMMENT ON FUNCTION docpatterns._payload_repair(regclass, text) IS
  'pattern_repair of a payload pattern';

CREATE FUNCTION docpatterns._payload_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  dropped text[];
BEGIN
  EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', rel);
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'payload', name) q;
  options := @extschema@.bson_set(options, 'extracts', docpatterns._payload_functions(
               (options OPERATOR(@extschema@.->) 'extracts'::text)::@extschema@.bson));
  dropped := array(SELECT k.path FROM docpatterns._payload_paths(p.options) k EXCEPT SELECT k.path
      FROM docpatterns._payload_paths(options) k);
  PERFORM docpatterns._payload_create_triggers(rel, options);
  IF cardinality(dropped) > 0 THEN
    EXECUTE format('UPDATE %s AS b SET %I = @extschema@.bson_unset(%s, VARIADIC $1) WHERE '
        '@extschema@.bson_exists_any(%3$s, $1)', p.base, p.doc_name, p.doc) USING dropped;
  END IF;
  PERFORM docpatterns._payload_repair(rel, name);
END
$$;
COMMENT ON FUNCTION docpatterns._payload_alter(regclass, text, bson) IS
  'pattern_alter of a payload pattern: extracts the new fields of all documents';

CREATE FUNCTION docpatterns._payload_follow_owner(rel regclass, former oid) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM docpatterns._pattern_require_trusted($1, f::regprocedure)
  FROM docpatterns._pattern_declarations($1) d
    CROSS JOIN LATERAL @extschema@.bson_each(docpatterns._payload_functions(
      (d.options OPERATOR(@extschema@.->) 'extracts'::text)::@extschema@.bson)) e
    CROSS JOIN LATERAL (SELECT CASE @extschema@.bson_typeof(e.value)
      WHEN 'object' THEN @extschema@.bson_get_text(e.value::@extschema@.bson, 'function')
      ELSE substring(e.value::text, '^function:(.*?)(?:::[^:]*)?$') END) AS x (f)
  WHERE d.pattern = 'payload' AND f IS NOT NULL;
END
$$;
COMMENT ON FUNCTION docpatterns._payload_follow_owner(regclass, oid) IS
  'error 55000 where a function of others than the table''s new owner extracts fields; '
  '42883 where there is none';

CREATE FUNCTION docpatterns._payload_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  field text;
  extracted text;
  done bigint := 0;
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'payload', name) q;
  field := @extschema@.bson_get_text(p.options, 'field');
  extracted := array(SELECT k.path FROM docpatterns._payload_paths(p.options) k WHERE k.guarded
      AND k.path <> ALL (docpatterns._pattern_own_paths(p.options)))::text;
  PERFORM docpatterns._pattern_drop_triggers(rel, 'payload', name);
  IF @extschema@.bson_get_text(how, 'keep_data') IS DISTINCT FROM 'true' THEN
    done := docpatterns._pattern_convert(rel, name, p.doc_name,
      format('@extschema@.bson_unset(CASE WHEN @extschema@.bson_exists(%1$s, %2$L) THEN '
        '@extschema@.bson_set(%1$s, %2$L, @extschema@.payload_unpack(%1$s OPERATOR(@extschema@.->) '
        '%2$L::text)) ELSE %1$s END, VARIADIC %3$L::text[])',
             p.doc, field, extracted),
      format('docpatterns._payload_is_packed(%1$s OPERATOR(@extschema@.->) %2$L::text) OR '
        '@extschema@.bson_exists_any(%1$s, %3$L::text[])', p.doc, field, extracted));
  END IF;
  PERFORM docpatterns._pattern_drop_whole(rel);
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._payload_disable(regclass, text, bson) IS
  'pattern_disable of a payload pattern: payloads as they were, without what was extracted';
