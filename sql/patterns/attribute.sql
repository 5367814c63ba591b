-- The attribute pattern: similar fields are packed into an array of names and values. Its trigger
-- and its views are in src/patterns/attribute/, other functions for users in attribute_calls.sql.

CREATE FUNCTION docpatterns.attribute_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_attribute_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.attribute_trigger() IS
  'trigger of the attribute pattern; made by attribute_enable';

CREATE FUNCTION docpatterns.attribute_wide_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_attribute_wide_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.attribute_wide_trigger() IS
  'INSTEAD OF trigger of the views <table>_wide: packs what is written to them; error 40001 when '
  'the document has changed since it was read';

CREATE FUNCTION attribute_wide(doc bson, rel regclass) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_attribute_wide' LANGUAGE C STABLE STRICT COST 10;
COMMENT ON FUNCTION attribute_wide(bson, regclass) IS
  'The document with its packed fields, as the view <table>_wide shows it';

CREATE FUNCTION docpatterns._attribute_pack(doc bson, options bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_attribute_pack_document' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    COST 10;
COMMENT ON FUNCTION docpatterns._attribute_pack(bson, bson) IS
  'the document with its fields packed as the options say; errors 22023 for bad options, 23514 and '
  '23505 for documents that cannot be';

CREATE FUNCTION docpatterns._attribute_unpack(doc bson, options bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_attribute_unpack_document' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    COST 10;
COMMENT ON FUNCTION docpatterns._attribute_unpack(bson, bson) IS
  'the document with the fields that are packed; error 22023 for bad options';

CREATE FUNCTION docpatterns._attribute_left(doc bson, options bson) RETURNS int
  AS 'MODULE_PATHNAME', 'dp_attribute_left' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION docpatterns._attribute_left(bson, bson) IS
  'how many members of a document no field can stand for';

CREATE FUNCTION docpatterns._attribute_has_twice(doc bson, options bson) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_attribute_has_twice' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION docpatterns._attribute_has_twice(bson, bson) IS
  'whether a key stands twice in the array of a document';

CREATE FUNCTION docpatterns._attribute_is_wide(doc bson, options bson) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_attribute_is_wide_document' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    COST 5;
COMMENT ON FUNCTION docpatterns._attribute_is_wide(bson, bson) IS
  'whether a document has fields that are not packed';

CREATE FUNCTION docpatterns._attribute_is_pending(doc bson, options bson) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_attribute_is_pending' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION docpatterns._attribute_is_pending(bson, bson) IS
  'whether a document has another shape than the options want';

CREATE FUNCTION docpatterns._attribute_meant(options bson, name text) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_attribute_meant' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._attribute_meant(bson, text) IS
  'whether a field of that name is packed';

CREATE FUNCTION docpatterns._attribute_fields(options bson) RETURNS text[]
  AS 'MODULE_PATHNAME', 'dp_attribute_fields' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._attribute_fields(bson) IS
  'names of the key fields of members, in their order; error 22023 for bad options';

CREATE FUNCTION docpatterns._attribute_faults(doc bson, options bson, OUT what text,
  OUT expected text, OUT found text) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_attribute_faults' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 20 ROWS
    1;
COMMENT ON FUNCTION docpatterns._attribute_faults(bson, bson) IS 'what is wrong with a document';

-- Declaring ---------------------------------------------------------------------------------------

-- A function of all options makes one document of them, for the calls too.
CREATE FUNCTION docpatterns._attribute_options(into_field text, pattern text, prefix text,
  paths text[], name_field text, value_field text,
                                   qualifiers bson, qualifier_field text, rename bson,
                                     is_unique boolean) RETURNS bson
LANGUAGE docpatterns IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN docpatterns._pattern_options('attribute', @extschema@.bson_build(
    'into_field', into_field, 'pattern', pattern, 'prefix', prefix, 'paths', paths,
    'name_field', name_field, 'value_field', value_field, 'qualifiers', qualifiers,
    'qualifier_field', qualifier_field, 'rename', rename, 'is_unique', is_unique));
END
$$;
COMMENT ON FUNCTION docpatterns._attribute_options(text, text, text, text[], text, text, bson, text,
  bson, boolean) IS
  'options of the attribute pattern as a document; error 22004 for those that must not be null';

CREATE FUNCTION attribute_enable(
  rel regclass, into_field text, pattern text DEFAULT NULL, value_field text DEFAULT 'value',
  prefix text DEFAULT NULL, paths text[] DEFAULT NULL,
  name_field text DEFAULT NULL, qualifiers bson DEFAULT NULL, qualifier_field text DEFAULT NULL,
  rename bson DEFAULT NULL,
  is_unique boolean DEFAULT false, view_name text DEFAULT NULL, name text DEFAULT NULL,
    doc_column text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  options @extschema@.bson;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  options := docpatterns._pattern_declare(rel, 'attribute',
    @extschema@.bson_build('name', coalesce(name, into_field))
    OPERATOR(@extschema@.||) docpatterns._attribute_options(into_field, pattern, prefix, paths,
      name_field, value_field, qualifiers, qualifier_field, rename, is_unique)
    OPERATOR(@extschema@.||) @extschema@.bson_build('doc_column', t.doc));
  name := @extschema@.bson_get_text(options, 'name');
  PERFORM docpatterns._attribute_create_view(rel, t.doc, view_name);
  PERFORM docpatterns._attribute_create_trigger(rel, options);
  PERFORM docpatterns._attribute_create_index(rel, options);
  PERFORM docpatterns._pattern_notice_rows(rel, name);
  RETURN name;
END
$$;
COMMENT ON FUNCTION attribute_enable(regclass, text, text, text, text, text[], text, bson, text,
  bson, boolean, text, text, text) IS
  'Declares the attribute pattern: fields whose names match pattern, begin with prefix or are in '
  'paths become members of the array into_field. Creates the view <table>_wide and a GIN index of '
  'pairs. Returns the name of the declaration (default: into_field). Locks the table against '
  'writers while the index is built. Errors: 22023 options that do not fit, 22004 a NULL, 42710 '
  'the name exists, 42P07 the name of the view is taken, 42501 unless the caller owns the table';

CREATE FUNCTION docpatterns._attribute_verify(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM docpatterns._attribute_pack('{}', $2);
END
$$;
COMMENT ON FUNCTION docpatterns._attribute_verify(regclass, bson) IS
  'error 22023 for options of the attribute pattern that do not fit each other';

-- The options, and the fields that other declarations of the table keep or use, which the pattern
-- must not pack.
CREATE FUNCTION docpatterns._attribute_full_options(rel regclass, name text, options bson)
  RETURNS bson
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN @extschema@.bson_exists($3, 'paths') THEN $3 ELSE
    @extschema@.bson_set($3, 'except', @extschema@.to_bson(array(
    SELECT DISTINCT (SELECT k
        FROM @extschema@.bson_keys(@extschema@.bson_set('{}'::@extschema@.bson, p.path, 1)) k
        LIMIT 1)
    FROM docpatterns._pattern_declarations($1) d
      CROSS JOIN LATERAL docpatterns._pattern_paths(d.pattern, d.options) AS p
    WHERE NOT (d.pattern = 'attribute' AND d.name = $2) AND p.path <> '' ORDER BY 1))) END
$$;
COMMENT ON FUNCTION docpatterns._attribute_full_options(regclass, text, bson) IS
  'options of a declaration with the names of fields that other patterns of the table keep or read';

CREATE FUNCTION docpatterns._attribute_create_trigger(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.attribute_trigger(%L)',
                 docpatterns._pattern_own_trigger(rel, 20, 'attribute',
                   @extschema@.bson_get_text(options, 'name'), NULL, 23), rel, options::text);
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._attribute_create_trigger(regclass, bson) IS
  'creates the trigger of a declaration, or replaces it when options change';

-- The view <table>_wide ---------------------------------------------------------------------------

CREATE FUNCTION docpatterns._attribute_view(rel regclass, name text DEFAULT NULL,
  label text DEFAULT NULL, owner oid DEFAULT NULL) RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT v.oid::regclass
  FROM pg_depend d
    JOIN pg_rewrite r ON r.oid = d.objid
    JOIN pg_class v ON v.oid = r.ev_class AND v.relkind = 'v'
    JOIN pg_trigger t ON t.tgrelid = v.oid
      AND t.tgfoid = 'docpatterns.attribute_wide_trigger'::regproc
  WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
    AND d.refobjid = $1
    AND 'security_invoker=true' = ANY (v.reloptions)
      AND v.relowner = coalesce($4, (SELECT c.relowner FROM pg_class c WHERE c.oid = $1))
  ORDER BY v.oid LIMIT 1
$$;
COMMENT ON FUNCTION docpatterns._attribute_view(regclass, text, text, oid) IS
  'the view <table>_wide of a table, whatever it is called now; of the table''s owner, or of the '
  'one given';

CREATE FUNCTION docpatterns._attribute_follow_owner(rel regclass, former oid) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._pattern_renew_view($1, docpatterns._attribute_view($1, owner => $2),
           format('SELECT docpatterns._attribute_create_view(%L, %L, NULL)', $1,
             docpatterns._pattern_doc_column($1,
               @extschema@.bson_get_text(d.options, 'doc_column'))),
           format('SELECT docpatterns._attribute_view(%L)', $1))
  FROM docpatterns._pattern_declarations($1) d WHERE d.pattern = 'attribute' ORDER BY d.trigger_oid
    LIMIT 1
$$;
COMMENT ON FUNCTION docpatterns._attribute_follow_owner(regclass, oid) IS
  'makes the view <table>_wide again after a change of the table''s owner';

CREATE FUNCTION docpatterns._attribute_create_view(rel regclass, doc_column text, view_name text)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  present regclass := docpatterns._attribute_view(rel);
  qualified text;
BEGIN
  IF docpatterns._pattern_table_of(rel) <> rel THEN
    RETURN;
  END IF;
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  IF present IS NOT NULL THEN
    IF view_name IS NOT NULL AND view_name <> (SELECT c.relname FROM pg_class c
          WHERE c.oid = present) THEN
      RAISE EXCEPTION 'table "%" already has view "%"', docpatterns._relname(rel),
          docpatterns._relname(present)
        USING ERRCODE = 'invalid_parameter_value',
          HINT = 'One view shows the fields of all attribute patterns of a table; it can be '
          'renamed.';
    END IF;
    RETURN;
  END IF;
  qualified := format('%I.%I', t.schema_name,
      coalesce(view_name, docpatterns._pattern_relation_name(t.schema_name, t.table_name, NULL,
          'wide')));
  EXECUTE format('CREATE VIEW %s WITH (security_invoker = true) AS SELECT %s FROM %s AS base',
      qualified,
    (SELECT string_agg(CASE WHEN a.attname = t.doc THEN
        format('@extschema@.attribute_wide(base.%1$I, base.tableoid::regclass) AS %1$I', a.attname)
                            ELSE format('base.%I', a.attname) END, ', ' ORDER BY a.attnum)
     FROM pg_attribute a WHERE a.attrelid = rel AND a.attnum > 0 AND NOT a.attisdropped), t.base);
  EXECUTE format('CREATE TRIGGER zz_docpatterns_wide INSTEAD OF INSERT OR UPDATE OR DELETE ON %s '
                 'FOR EACH ROW EXECUTE FUNCTION docpatterns.attribute_wide_trigger()', qualified);
  EXECUTE format('COMMENT ON VIEW %s IS %L', qualified, 'documents of ' || t.base
      || ' with the fields that the attribute pattern has packed');
  PERFORM docpatterns._pattern_copy_grants(rel, qualified::regclass);
  EXECUTE format('ALTER VIEW %s OWNER TO %s', qualified, t.owner::regrole);
END
$$;
COMMENT ON FUNCTION docpatterns._attribute_create_view(regclass, text, text) IS
  'makes the view <table>_wide unless the table has one; errors 42P07 when its name is taken, '
  '22023 when it is to have another name than it has';

-- The index ---------------------------------------------------------------------------------------

-- The key of the index: the first field of a member's key, and its value.
CREATE FUNCTION docpatterns._attribute_pair(options bson) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('%s(%s,%s)', @extschema@.bson_get_text($1, 'into_field'),
      docpatterns._pattern_name_path((docpatterns._attribute_fields($1))[1]),
                docpatterns._pattern_name_path(@extschema@.bson_get_text($1, 'value_field')))
$$;
COMMENT ON FUNCTION docpatterns._attribute_pair(bson) IS
  'the pair that the index of a declaration is about, as an option of bson_ops';

CREATE FUNCTION docpatterns._attribute_index(rel regclass, doc_column text, pair text)
  RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT i.indexrelid::regclass
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    JOIN pg_attribute x ON x.attrelid = i.indexrelid
  WHERE i.indrelid = $1 AND i.indisvalid AND i.indisready
    AND docpatterns._pattern_index_full(i.indexrelid)
    AND (i.indkey::int2[])[x.attnum - 1] = (SELECT a.attnum FROM pg_attribute a
        WHERE a.attrelid = $1 AND a.attname = $2)
    AND (i.indclass::oid[])[x.attnum - 1] = (SELECT o.oid FROM pg_opclass o
        JOIN pg_am m ON m.oid = o.opcmethod AND m.amname = 'gin'
          WHERE o.opcname = 'bson_ops' AND o.opcintype
            = '@extschema@.bson'::regtype)
    AND EXISTS (SELECT FROM unnest(x.attoptions) o WHERE o LIKE 'pairs=%'
                AND position('),' || replace($3, ' ', '') || ',' IN '),'
                    || replace(substr(o, 7), ' ', '') || ',') > 0)
  ORDER BY i.indpred IS NOT NULL, i.indexrelid LIMIT 1
$$;
COMMENT ON FUNCTION docpatterns._attribute_index(regclass, text, text) IS
  'an index of the documents that has the pair, or NULL';

CREATE FUNCTION docpatterns._attribute_create_index(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  name text := @extschema@.bson_get_text(options, 'name');
  pair text := docpatterns._attribute_pair(options);
  made text;
  n int := 0;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) p;
  IF docpatterns._attribute_index(rel, t.doc, pair) IS NOT NULL THEN
    RETURN;
  END IF;
  made := docpatterns._pattern_object_name(t.table_name, name, 'idx');
  WHILE EXISTS (SELECT FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace
        WHERE s.nspname = t.schema_name AND c.relname = made) LOOP
    n := n + 1;
    made := docpatterns._pattern_object_name(t.table_name, name, 'idx' || n);
  END LOOP;
  EXECUTE format('CREATE INDEX %I ON %s USING gin (%I @extschema@.bson_ops (pairs = %L)) WHERE %s',
      made, t.base, t.doc, pair, docpatterns._pattern_mark('attribute', name));
END
$$;
COMMENT ON FUNCTION docpatterns._attribute_create_index(regclass, bson) IS
  'makes the index of a declaration unless there is one with its pair; locks the table against '
  'writers while it is built';

-- Verbs -------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._attribute_parts(rel regclass, name text, OUT base text,
  OUT options bson, OUT full_options bson, OUT doc text, OUT doc_name text,
                                 OUT key_row text, OUT key_list text, OUT key_value text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT p.base, p.options, docpatterns._attribute_full_options($1, $2, p.options), p.doc,
    p.doc_name, p.key_row, p.key_list, p.key_value
  FROM docpatterns._pattern_parts($1, 'attribute', $2) p
$$;
COMMENT ON FUNCTION docpatterns._attribute_parts(regclass, text) IS
  'options of a declaration and pieces of SQL text about its table, whose row is b';

CREATE FUNCTION docpatterns._attribute_check(rel regclass, name text) RETURNS TABLE (key bson_value,
  what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._attribute_parts(rel, name) q;
  RETURN QUERY EXECUTE format('SELECT %s, f.what, f.expected, f.found FROM %s AS b CROSS JOIN '
      'LATERAL docpatterns._attribute_faults(%s, %L::@extschema@.bson) f',
                              p.key_value, p.base, p.doc, p.full_options::text);
  IF docpatterns._attribute_index(rel, p.doc_name,
        docpatterns._attribute_pair(p.options)) IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'index of pairs = '
      || quote_literal(docpatterns._attribute_pair(p.options)), 'present'::text, 'missing'::text;
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._attribute_check(regclass, text) IS
  'violated invariants of an attribute pattern';

CREATE FUNCTION docpatterns._attribute_pending(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._attribute_parts(rel, name) q;
  RETURN format('SELECT %s AS key FROM %s AS b WHERE docpatterns._attribute_is_pending(%s, '
      '%L::@extschema@.bson) ORDER BY %s',
                p.key_row, p.base, p.doc, p.full_options::text, p.key_list);
END
$$;
COMMENT ON FUNCTION docpatterns._attribute_pending(regclass, text) IS
  'SQL text: keys of rows that have not the shape that is wanted';

CREATE FUNCTION docpatterns._attribute_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._attribute_parts(rel, name) q;
  PERFORM docpatterns._attribute_create_view(rel, p.doc_name, NULL);
  PERFORM docpatterns._attribute_create_index(rel, p.options);
  RETURN docpatterns._pattern_repair_rows(rel, name, docpatterns._attribute_pending(rel, name));
END
$$;
COMMENT ON FUNCTION docpatterns._attribute_repair(regclass, text) IS
  'pattern_repair of an attribute pattern: packs fields, makes the index and the view where they '
  'are missing; keys that a document has twice are the user''s to mend';

-- Refuses to go on where members could not become fields.
CREATE FUNCTION docpatterns._attribute_require_fields(rel regclass, name text) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  held text[];
BEGIN
  SELECT q.* INTO p FROM docpatterns._attribute_parts(rel, name) q;
  EXECUTE format('SELECT array_agg(k::text) FROM (SELECT %s AS k FROM %s AS b WHERE '
      'docpatterns._attribute_left(%s, %L::@extschema@.bson) > 0 ORDER BY %s) AS q',
                 p.key_value, p.base, p.doc, p.full_options::text, p.key_list) INTO held;
  IF held IS NOT NULL THEN
    RAISE EXCEPTION 'pattern "%" of table "%" has members that cannot become fields', name,
        docpatterns._relname(rel)
      USING ERRCODE = 'restrict_violation',
            DETAIL = 'The keys of their documents: ' || array_to_string(held[1:20], ', ') || CASE
            WHEN cardinality(held) > 20 THEN format(', ... (%s in all)', cardinality(held)) ELSE ''
            END || '.',
            HINT = 'Such members have an undeclared name or qualifier, other fields, the name of '
            'an existing field, or a duplicate name. keep_data => true keeps all arrays.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._attribute_require_fields(regclass, text) IS
  'error 23001 with the keys of documents that have members which no field can stand for';

-- Only one of the members with the same key can become a field: rewriting documents would lose
-- others.
CREATE FUNCTION docpatterns._attribute_require_once(rel regclass, name text) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  held text[];
BEGIN
  SELECT q.* INTO p FROM docpatterns._attribute_parts(rel, name) q;
  EXECUTE format('SELECT array_agg(k::text) FROM (SELECT %s AS k FROM %s AS b WHERE '
      'docpatterns._attribute_has_twice(%s, %L::@extschema@.bson) ORDER BY %s) AS q',
                 p.key_value, p.base, p.doc, p.full_options::text, p.key_list) INTO held;
  IF held IS NOT NULL THEN
    RAISE EXCEPTION 'documents in table "%" have duplicate attributes in "%"',
        docpatterns._relname(rel),
      @extschema@.bson_get_text(p.options, 'into_field')
      USING ERRCODE = 'unique_violation',
            DETAIL = 'Their keys: ' || array_to_string(held[1:20], ', ') || CASE
            WHEN cardinality(held) > 20 THEN format(', ... (%s in all)', cardinality(held)) ELSE ''
            END || '.',
            HINT = 'Only one of them can become a field.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._attribute_require_once(regclass, text) IS
  'error 23505 with the keys of documents that have a key twice in their array';

CREATE FUNCTION docpatterns._attribute_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  full_options @extschema@.bson;
  conversion text;
  shape_only boolean;
BEGIN
  SELECT q.* INTO p FROM docpatterns._attribute_parts(rel, name) q;
  shape_only := @extschema@.bson_unset(options, 'shape')::text
                = @extschema@.bson_unset(p.options, 'shape')::text;
  -- the trigger is dropped and created again after documents were written; the lock hides this
  EXECUTE format('LOCK TABLE %s IN %s MODE', rel,
                 CASE WHEN shape_only THEN 'SHARE ROW EXCLUSIVE' ELSE 'ACCESS EXCLUSIVE' END);
  full_options := docpatterns._attribute_full_options(rel, name, options);
  IF docpatterns._attribute_fields(options) <> docpatterns._attribute_fields(p.options)
     OR EXISTS (SELECT FROM unnest(ARRAY['into_field', 'value_field', 'qualifier_field']) o
                WHERE @extschema@.bson_get_text(options,
                      o) IS DISTINCT FROM @extschema@.bson_get_text(p.options, o)) THEN
    -- members get another shape, those that cannot become fields would keep the old one
    PERFORM docpatterns._attribute_require_fields(rel, name);
  ELSIF @extschema@.bson_get_text(p.options, 'is_unique') IS DISTINCT FROM 'true' THEN
    PERFORM docpatterns._attribute_require_once(rel, name);
  END IF;
  IF shape_only THEN
    PERFORM docpatterns._attribute_create_trigger(rel, options);
    IF docpatterns._pattern_nonempty(rel) THEN
      RAISE NOTICE 'only new writes to table "%" have the new layout',
          docpatterns._relname(rel) USING
        HINT = format('Run CALL pattern_build(%L, %L) to convert existing documents in batches.',
            p.base, name);
    END IF;
    RETURN;
  END IF;
  PERFORM docpatterns._pattern_drop_triggers(rel, 'attribute', name);
  PERFORM docpatterns._derive_drop_indexes(rel, 'attribute', name);
  conversion := CASE WHEN @extschema@.bson_get_text(options, 'shape') = 'wide' THEN
    format('docpatterns._attribute_unpack(%s, %L::@extschema@.bson)', p.doc, p.full_options::text)
    ELSE format('docpatterns._attribute_pack(docpatterns._attribute_unpack(%1$s, '
      '%2$L::@extschema@.bson), %3$L::@extschema@.bson)', p.doc, p.full_options::text,
      full_options::text) END;
  PERFORM docpatterns._pattern_convert(rel, name, p.doc_name, conversion,
            format('CASE WHEN @extschema@.bson_exists(%1$s, %2$L) OR '
              'docpatterns._attribute_is_wide(%1$s, %3$L::@extschema@.bson) THEN %1$s::bytea '
              'OPERATOR(pg_catalog.<>) %4$s::bytea END',
                   p.doc, @extschema@.bson_get_text(p.options, 'into_field'), full_options::text,
                     conversion), true);
  PERFORM docpatterns._attribute_create_trigger(rel, options);
  PERFORM docpatterns._attribute_create_index(rel, options);
END
$$;
COMMENT ON FUNCTION docpatterns._attribute_alter(regclass, text, bson) IS
  'pattern_alter of an attribute pattern: brings all documents into the new form';

CREATE FUNCTION docpatterns._attribute_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  view_rel regclass;
  done bigint := 0;
  keep_data boolean := @extschema@.bson_get_text(how, 'keep_data') = 'true';
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  SELECT q.* INTO p FROM docpatterns._attribute_parts(rel, name) q;
  IF NOT keep_data THEN
    PERFORM docpatterns._attribute_require_fields(rel, name);
  END IF;
  PERFORM docpatterns._pattern_drop_triggers(rel, 'attribute', name);
  PERFORM docpatterns._derive_drop_indexes(rel, 'attribute', name);
  IF NOT keep_data THEN
    done := docpatterns._pattern_convert(rel, name, p.doc_name,
        format('docpatterns._attribute_unpack(%s, %L::@extschema@.bson)', p.doc,
          p.full_options::text),
              format('@extschema@.bson_typeof(%1$s, %2$L) OPERATOR(pg_catalog.=) ''array'' AND '
                '@extschema@.bson_array_length(%1$s, %2$L) OPERATOR(pg_catalog.>) 0',
                     p.doc, @extschema@.bson_get_text(p.options, 'into_field')));
  END IF;
  IF NOT EXISTS (SELECT FROM docpatterns._pattern_declarations(rel) d
        WHERE d.pattern = 'attribute') THEN
    view_rel := docpatterns._attribute_view(rel);
    IF view_rel IS NOT NULL THEN
      EXECUTE format('DROP VIEW %s', view_rel);
    END IF;
  END IF;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._attribute_disable(regclass, text, bson) IS
  'pattern_disable of an attribute pattern';
