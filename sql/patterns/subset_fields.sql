-- Hot and cold fields: rarely read fields of documents are in a side table. Triggers and methods
-- are in src/patterns/subset/fields.c.

CREATE FUNCTION docpatterns.subset_fields_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_subset_fields_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.subset_fields_trigger() IS
  'trigger of tables with cold fields; made by subset_fields_enable';

CREATE FUNCTION subset_fields_enable(rel regclass, cold text[], name text DEFAULT NULL,
  doc_column text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  link_id text := replace(gen_random_uuid()::text, '-', '');
  options @extschema@.bson;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  PERFORM docpatterns._pattern_refuse_partition(rel);
  options := docpatterns._pattern_declare(rel, 'subset_fields', @extschema@.bson_build(
    'name', coalesce(name, cold[1]), 'cold', cold, 'link_id', link_id, 'doc_column', t.doc));
  name := @extschema@.bson_get_text(options, 'name');
  PERFORM docpatterns._subset_fields_create_side(rel, doc_column, name, link_id);
  PERFORM docpatterns._subset_fields_create_triggers(rel, options);
  PERFORM docpatterns._pattern_create_whole(rel, doc_column);
  PERFORM docpatterns._pattern_notice_rows(rel, name);
  RETURN name;
END
$$;
COMMENT ON FUNCTION subset_fields_enable(regclass, text[], text, text) IS
  'Declares that the fields in cold (a set of paths) are stored in the side table '
  '<table>_<name>_cold; the view <table>_whole shows and takes whole documents. Returns the name '
  'of the declaration (default: the first path). Locks the table against writers. Errors: 22023 '
  'paths that do not fit, 42809 a partition, 42710 the name exists, 42501 unless the caller owns '
  'the table';

CREATE FUNCTION docpatterns._subset_fields_cold(options bson) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(array_agg(e::pg_catalog.text), '{}')
    FROM @extschema@.bson_elements($1 OPERATOR(@extschema@.->) 'cold'::text) e
$$;
COMMENT ON FUNCTION docpatterns._subset_fields_cold(bson) IS
  'paths of the cold fields of a declaration';

CREATE FUNCTION docpatterns._subset_fields_create_side(rel regclass, doc_column text, name text,
  link_id text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM docpatterns._pattern_create_side($1, $2, 'subset_fields', $3, $4,
      format('%I.%I', t.schema_name, docpatterns._pattern_relation_name(t.schema_name, t.table_name,
          $3, 'cold')),
           'cold @extschema@.bson NOT NULL', NULL, NULL,
           format('cold fields of documents of %s', t.base))
  FROM docpatterns._pattern_table($1, $2) t;
END
$$;
COMMENT ON FUNCTION docpatterns._subset_fields_create_side(regclass, text, text, text) IS
  'side table for the cold fields of a table';

CREATE FUNCTION docpatterns._subset_fields_create_triggers(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  name text := @extschema@.bson_get_text(options, 'name');
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW '
      'EXECUTE FUNCTION docpatterns.subset_fields_trigger(%L)',
                 docpatterns._pattern_own_trigger(rel, 52, 'subset_fields', name, NULL, 29), rel,
                 options::text);
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION '
      'docpatterns.subset_fields_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 52, 'subset_fields', name, 'before', 19),
                 rel, 'of', name);
  PERFORM docpatterns._pattern_statement_trigger(rel, 52, 'subset_fields', name, 'statement', 56,
      'AFTER UPDATE OR DELETE OR TRUNCATE');
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._subset_fields_create_triggers(regclass, bson) IS
  'triggers of a table with cold fields';

-- Verbs -------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._subset_fields_check(rel regclass, name text)
  RETURNS TABLE (key bson_value, what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'subset_fields', name) q;
  RETURN QUERY EXECUTE format('SELECT %s, format(''cold field "%%s" in the document'', c), '
      '''absent'', ''present'' FROM %s AS b CROSS JOIN unnest($1) AS c WHERE '
      '@extschema@.bson_exists(%s, c)',
                              p.key_value, p.base, p.doc) USING
                              docpatterns._subset_fields_cold(p.options);
  IF p.side IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'side table'::text, 'present'::text,
      'missing'::text;
    RETURN;
  END IF;
  RETURN QUERY EXECUTE format('SELECT %s, ''document of cold fields'', ''present'', ''missing'' '
      'FROM %s AS s WHERE NOT EXISTS (SELECT 1 FROM %s AS b WHERE %s AND %s IS NOT NULL)',
                              p.side_key_value, p.side, p.base, p.matches, p.doc);
  RETURN QUERY EXECUTE format('SELECT %s, ''field of the side table'', ''a cold field'', '
      'coalesce(''"'' || e.key || ''"'', ''none'') FROM %s AS s LEFT JOIN LATERAL '
      '@extschema@.bson_each(s.cold) e ON true WHERE e.key IS NULL OR NOT e.key = ANY ($1)',
                              p.side_key_value, p.side) USING
                              docpatterns._subset_fields_cold(p.options);
END
$$;
COMMENT ON FUNCTION docpatterns._subset_fields_check(regclass, text) IS
  'violated invariants of cold fields';

CREATE FUNCTION docpatterns._subset_fields_pending(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'subset_fields', name) q;
  RETURN format('SELECT %s AS key FROM %s AS b WHERE %s ORDER BY %s', p.key_row, p.base,
                coalesce((SELECT string_agg(format('@extschema@.bson_exists(%s, %L)', p.doc, c),
                      ' OR ') FROM unnest(docpatterns._subset_fields_cold(p.options)) c), 'false'),
                p.key_list);
END
$$;
COMMENT ON FUNCTION docpatterns._subset_fields_pending(regclass, text) IS
  'SQL text: keys of rows whose cold fields are not aside';

CREATE FUNCTION docpatterns._subset_fields_rejoin(rel regclass, name text, key record, paths text[])
  RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_subset_fields_rejoin' LANGUAGE C;
COMMENT ON FUNCTION docpatterns._subset_fields_rejoin(regclass, text, record, text[]) IS
  'puts cold fields (NULL: all) back into the document of a key; returns the size of that; does '
  'nothing when it would be too large; forgets what has no document';

CREATE FUNCTION docpatterns._subset_fields_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  r record;
  done bigint := 0;
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'subset_fields', name) q;
  PERFORM docpatterns._pattern_create_whole(rel, p.doc_name);
  IF p.side IS NULL THEN
    PERFORM docpatterns._subset_fields_create_side(rel, p.doc_name, name,
        @extschema@.bson_get_text(p.options, 'link_id'));
    SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'subset_fields', name) q;
  END IF;
  -- rows without a document, and fields that are no longer cold
  FOR r IN EXECUTE format('SELECT %1$s AS key, array(SELECT e.key FROM '
      '@extschema@.bson_each(s.cold) e WHERE NOT e.key = ANY ($1)) AS others FROM %2$s AS s '
                          'WHERE NOT EXISTS (SELECT 1 FROM %3$s AS b WHERE %4$s AND %5$s IS NOT '
                            'NULL) OR NOT EXISTS (SELECT FROM @extschema@.bson_each(s.cold)) '
                          'OR EXISTS (SELECT FROM @extschema@.bson_each(s.cold) e WHERE NOT e.key '
                              '= ANY ($1))', p.side_key_row, p.side, p.base, p.matches, p.doc)
                            USING docpatterns._subset_fields_cold(p.options) LOOP
    PERFORM docpatterns._subset_fields_rejoin(rel, name, r.key, r.others);
    done := done + 1;
  END LOOP;
  RETURN done + docpatterns._pattern_repair_rows(rel, name,
      docpatterns._subset_fields_pending(rel, name));
END
$$;
COMMENT ON FUNCTION docpatterns._subset_fields_repair(regclass, text) IS
  'pattern_repair of cold fields';

-- Puts fields back into their documents, all or none.
CREATE FUNCTION docpatterns._subset_fields_put_back(rel regclass, name text, paths text[])
  RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  r record;
  done bigint := 0;
  too_large text[];
  limit_size bigint := (SELECT s.setting::bigint FROM pg_settings s
      WHERE s.name = 'docpatterns.max_document_size');
BEGIN
  IF docpatterns._pattern_is_distributed(rel) THEN
    RETURN docpatterns._pattern_sum_shards(rel,
        format('docpatterns._subset_fields_put_back(s.rel, %L, %L)', name, paths));
  END IF;
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'subset_fields', name) q;
  FOR r IN EXECUTE format('SELECT %s AS key, %s AS value FROM %s AS b JOIN %s AS s ON %s ORDER BY '
        '%s', p.key_row, p.key_value, p.base, p.side, p.matches, p.key_list) LOOP
    IF docpatterns._subset_fields_rejoin(rel, name, r.key, paths) > limit_size THEN
      too_large := too_large || r.value::text;
    ELSE
      done := done + 1;
    END IF;
  END LOOP;
  IF too_large IS NOT NULL THEN
    RAISE EXCEPTION 'pattern "%" of table "%": % documents would be too large', name,
        docpatterns._relname(rel),
      cardinality(too_large)
      USING ERRCODE = 'program_limit_exceeded',
            DETAIL = 'Their keys: ' || array_to_string(too_large[1:20], ', ') || CASE
            WHEN cardinality(too_large) > 20 THEN ', ...' ELSE '' END || '.',
            HINT = 'Raise docpatterns.max_document_size, or keep the data in place with '
            'keep_data => true.';
  END IF;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._subset_fields_put_back(regclass, text, text[]) IS
  'puts cold fields (NULL: all) of all documents back; error 54000 with the keys of those that '
  'would be too large';

CREATE FUNCTION docpatterns._subset_fields_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  cold text[];
  others text[];
BEGIN
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'subset_fields', name) q;
  cold := docpatterns._subset_fields_cold(options);
  EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', rel);
  -- fields that are no longer cold go back before the declaration forgets them
  others := array(SELECT o FROM unnest(docpatterns._subset_fields_cold(p.options)) o
      WHERE NOT o = ANY (cold));
  IF cardinality(others) > 0 THEN
    PERFORM docpatterns._subset_fields_put_back(rel, name, others);
  END IF;
  PERFORM docpatterns._subset_fields_create_triggers(rel, options);
  IF NOT cold <@ docpatterns._subset_fields_cold(p.options) THEN
    RAISE NOTICE
      'new cold fields of existing documents are moved by CALL pattern_build(%, %)',
        quote_literal(p.base), quote_literal(name);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._subset_fields_alter(regclass, text, bson) IS
  'pattern_alter of cold fields';

CREATE FUNCTION docpatterns._subset_fields_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  done bigint := 0;
  keep_data boolean := @extschema@.bson_get_text(how, 'keep_data') = 'true';
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  SELECT q.* INTO p FROM docpatterns._pattern_parts(rel, 'subset_fields', name) q;
  IF NOT keep_data AND p.side IS NOT NULL THEN
    done := docpatterns._subset_fields_put_back(rel, name, NULL);
  END IF;
  PERFORM docpatterns._pattern_drop_triggers(rel, 'subset_fields', name);
  PERFORM docpatterns._pattern_drop_side(p.side, rel, keep_data);
  PERFORM docpatterns._pattern_drop_whole(rel);
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._subset_fields_disable(regclass, text, bson) IS
  'pattern_disable of cold fields';
