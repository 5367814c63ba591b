-- Collections: ordinary tables of documents. The trigger function is in
-- src/patterns/collection/collection.c.

CREATE FUNCTION docpatterns.collection_set_id() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_collection_set_id' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.collection_set_id() IS
  'trigger of collections, BEFORE INSERT OR UPDATE OF key, document FOR EACH ROW: keeps the key '
  'equal to the document''s _id and gives one to documents that have none';

CREATE FUNCTION docpatterns._collection_keys(ids bson_value[], key anyelement) RETURNS anyarray
  AS 'MODULE_PATHNAME', 'dp_collection_keys' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._collection_keys(bson_value[], anyelement) IS
  'internal: the ids as keys of that type, without those that no document of a collection with '
  'such keys can have';

-- Makes a table with the columns a collection. Internal; needs the privileges of ALTER TABLE and
-- CREATE TRIGGER.
CREATE FUNCTION docpatterns._collection_attach(rel regclass, id_column name, doc_column name)
  RETURNS void
LANGUAGE docpatterns VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('ALTER TABLE %s ADD CHECK (%I OPERATOR(@extschema@.=) (%I '
      'OPERATOR(@extschema@.->) ''_id''::text))',
                 rel, id_column, doc_column);
  EXECUTE format('CREATE TRIGGER zz_docpatterns_00_collection BEFORE INSERT OR UPDATE OF %I, %I '
                 'ON %s FOR EACH ROW EXECUTE FUNCTION docpatterns.collection_set_id()',
                 id_column, doc_column, rel);
END
$$;
COMMENT ON FUNCTION docpatterns._collection_attach(regclass, name, name) IS
  'internal: adds the check and the trigger of a collection to a table that has the columns';

-- The caller's search_path determines the schema of an unqualified name, so none is set here and
-- everything else is qualified.
CREATE FUNCTION collection_create(name text, if_not_exists boolean DEFAULT false,
  key_type text DEFAULT 'bson_value') RETURNS regclass
LANGUAGE docpatterns VOLATILE STRICT AS $$
DECLARE
  key_oid pg_catalog.regtype := pg_catalog.to_regtype(pg_catalog.concat(CASE
    WHEN key_type OPERATOR(pg_catalog.=) ANY ('{bson_value,objectid}'::pg_catalog.text[])
      THEN '@extschema@.' END, key_type));
  parts pg_catalog.text[] := pg_catalog.parse_ident(name);
  target pg_catalog.text;
  existing pg_catalog.regclass;
  existing_key pg_catalog.regtype;
BEGIN
  IF pg_catalog.cardinality(parts) OPERATOR(pg_catalog.>) 2 THEN
    RAISE EXCEPTION 'invalid name of a collection: %', name
      USING ERRCODE = 'invalid_name',
        HINT = 'Use the name of a table, or of a schema and a table.';
  END IF;
  IF pg_catalog.cardinality(parts) OPERATOR(pg_catalog.=) 1 THEN
    IF pg_catalog.current_schema() IS NULL THEN
      RAISE EXCEPTION 'no schema has been selected to create in'
        USING ERRCODE = 'invalid_schema_name';
    END IF;
    parts := pg_catalog.array_prepend(pg_catalog.current_schema()::pg_catalog.text, parts);
  END IF;
  IF pg_catalog.to_regnamespace(pg_catalog.quote_ident(parts[1])) IS NULL
      AND parts[1] OPERATOR(pg_catalog.<>) 'pg_temp' THEN
    RAISE EXCEPTION 'schema "%" does not exist', parts[1] USING ERRCODE = 'invalid_schema_name';
  END IF;
  target := pg_catalog.format('%I.%I', parts[1], parts[2]);
  IF (pg_catalog.strpos(key_type, '(') OPERATOR(pg_catalog.=) 0 AND key_oid
      OPERATOR(pg_catalog.=) ANY (ARRAY['@extschema@.bson_value', 'pg_catalog.text',
        'pg_catalog.int4', 'pg_catalog.int8', 'pg_catalog.numeric', 'pg_catalog.uuid',
        '@extschema@.objectid']::pg_catalog.regtype[])) IS NOT TRUE THEN
    RAISE EXCEPTION 'collections cannot have keys of type "%"', key_type
      USING ERRCODE = 'invalid_parameter_value',
        HINT = 'Use bson_value, text, int4, int8, numeric, uuid or objectid.';
  END IF;

  IF if_not_exists THEN
    existing := pg_catalog.to_regclass(target);
    IF existing IS NOT NULL THEN
      existing_key := (SELECT a.atttypid::pg_catalog.regtype FROM pg_catalog.pg_trigger AS t
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid OPERATOR(pg_catalog.=) t.tgrelid
          AND a.attnum OPERATOR(pg_catalog.=) t.tgattr[0]
        WHERE t.tgrelid OPERATOR(pg_catalog.=) existing
          AND t.tgfoid OPERATOR(pg_catalog.=)
            'docpatterns.collection_set_id()'::pg_catalog.regprocedure);
      IF (existing_key OPERATOR(pg_catalog.=) key_oid) IS NOT TRUE THEN
        RAISE EXCEPTION 'relation "%" exists but is not %', docpatterns._relname(existing), CASE
            WHEN existing_key IS NULL THEN 'a collection'
            ELSE pg_catalog.format('a collection with keys of type %s', key_oid) END
          USING ERRCODE = 'wrong_object_type';
      END IF;
      RAISE NOTICE 'collection "%" already exists, skipping', docpatterns._relname(existing)
        USING ERRCODE = 'duplicate_table';
      RETURN existing;
    END IF;
  END IF;

  EXECUTE pg_catalog.format('CREATE TABLE %s (_id %s NOT NULL PRIMARY KEY, doc @extschema@.bson '
      'NOT NULL)', target, key_oid);
  PERFORM docpatterns._tenant_table(target::pg_catalog.regclass);
  PERFORM docpatterns._collection_attach(target::pg_catalog.regclass, '_id', 'doc');
  RETURN target::pg_catalog.regclass;
END
$$;
COMMENT ON FUNCTION collection_create(text, boolean, text) IS
  'Creates a table with the columns _id (primary key, follows the document, of the type key_type) '
  'and doc, and returns it. The name is written as in SQL, with or without a schema. Errors: 42P07 '
  'the relation exists, unless if_not_exists, 42809 it exists and is not such a collection, 42602 '
  'or 22023 a bad name, 22023 another type, 3F000 no such schema';

CREATE FUNCTION bson_column_convert(rel regclass, target text, doc_column name DEFAULT NULL)
  RETURNS integer
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off
  SET standard_conforming_strings = on AS $$
DECLARE
  col record;
  chk name;
  actions text[] := '{}';
  converted integer := 0;
  numbers int2[] := '{}';
  blockers text;
  trg record;
  id_column name;
  is_id boolean;
  reader record;
  candidates name[];
BEGIN
  IF rel IS NULL OR target IS NULL THEN
    RAISE EXCEPTION 'table and target type cannot be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF target NOT IN ('jsonb', 'bytea', 'bson') THEN
    RAISE EXCEPTION 'cannot convert documents to type %', quote_literal(target)
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Use jsonb, bytea or bson.';
  END IF;
  PERFORM FROM pg_class AS c WHERE c.oid = rel AND c.relkind IN ('r', 'p');
  IF NOT FOUND THEN
    RAISE EXCEPTION '"%" is not a table',
        docpatterns._relname(rel) USING ERRCODE = 'wrong_object_type';
  END IF;
  IF doc_column IS NOT NULL THEN
    PERFORM FROM pg_attribute AS a WHERE a.attrelid = rel AND a.attname = doc_column
      AND a.attnum > 0 AND NOT a.attisdropped;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'column % of relation "%" does not exist', quote_ident(doc_column),
          docpatterns._relname(rel)
        USING ERRCODE = 'undefined_column';
    END IF;
  END IF;
  -- Triggers of patterns have a name prefix; the collection's own trigger does not belong to a
  -- pattern.
  PERFORM FROM pg_trigger AS t WHERE t.tgrelid = rel AND NOT t.tgisinternal
    AND starts_with(t.tgname, 'zz_docpatterns_')
      AND t.tgfoid NOT IN ('docpatterns.collection_set_id()'::regprocedure,
        'docpatterns.collection_validator_trigger()'::regprocedure);
  IF FOUND THEN
    SELECT d.* INTO reader FROM docpatterns._pattern_read_by(bson_column_convert.rel) AS d
      WHERE NOT EXISTS (SELECT FROM docpatterns._pattern_declarations(bson_column_convert.rel));
    IF FOUND THEN
      RAISE EXCEPTION 'table "%" is the source of pattern "%" of table "%"',
        docpatterns._relname(rel), reader.name, docpatterns._relname(reader.rel)
        USING ERRCODE = 'object_not_in_prerequisite_state',
          HINT = format('SELECT pattern_disable(%L, %L);', reader.rel, reader.name);
    END IF;
    RAISE EXCEPTION 'table "%" has a pattern', docpatterns._relname(rel)
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Use pattern_list() to show its patterns and pattern_disable() to disable them.';
  END IF;

  IF target = 'bson' THEN
    candidates := ARRAY(SELECT a.attname FROM pg_attribute AS a
      WHERE a.attrelid = rel AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> '_id'
        AND a.atttypid IN ('jsonb'::regtype, 'json'::regtype, 'bytea'::regtype)
        AND (doc_column IS NULL OR a.attname = doc_column));
    IF cardinality(candidates) <> 1 THEN
      RAISE EXCEPTION 'table "%" has % columns that could hold documents',
          docpatterns._relname(rel),
        cardinality(candidates)
        USING ERRCODE = 'invalid_parameter_value',
              HINT = 'Specify a column of type jsonb, json or bytea as doc_column.';
    END IF;
    -- A primary key _id is, or can be, that of a collection.
    SELECT a.attname, a.atttypid IN ('jsonb'::regtype, 'bytea'::regtype) INTO id_column, is_id
      FROM pg_attribute AS a
      JOIN pg_index AS i ON i.indrelid = a.attrelid
      WHERE a.attrelid = rel AND a.attname = '_id' AND a.atttypid = ANY (ARRAY['jsonb', 'bytea',
          'text', 'int4', 'int8', 'numeric', 'uuid']::regtype[])
        AND i.indisprimary AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum;
    FOR col IN SELECT a.attname, a.atttypid::regtype AS typ FROM pg_attribute AS a
                WHERE a.attrelid = rel
                  AND (a.attname = candidates[1] OR a.attname = id_column AND is_id) LOOP
      actions := actions || CASE
        WHEN col.attname = id_column THEN
          format('ALTER COLUMN %1$I TYPE @extschema@.bson_value USING %2$s(%1$I)', col.attname,
                 CASE col.typ WHEN 'jsonb'::regtype THEN 'docpatterns.bson_value_from' ELSE
                   '@extschema@.bson_value_from_bytea' END)
        WHEN col.typ = 'jsonb'::regtype THEN
          format('ALTER COLUMN %1$I TYPE @extschema@.bson USING docpatterns.jsonb_to_bson(%1$I)',
              col.attname)
        ELSE
          format('ALTER COLUMN %1$I TYPE @extschema@.bson USING %1$I::@extschema@.bson',
              col.attname)
        END;
    END LOOP;
    EXECUTE format('ALTER TABLE %s %s', rel, array_to_string(actions, ', '));
    IF NOT is_id THEN
      EXECUTE format('SELECT coalesce(bool_and(coalesce(%I OPERATOR(@extschema@.=) (%I '
          'OPERATOR(@extschema@.->) ''_id''::text), false)), true) FROM %s', id_column,
          candidates[1], rel) INTO is_id;
    END IF;
    IF is_id THEN
      PERFORM docpatterns._collection_attach(rel, id_column, candidates[1]);
    END IF;
    RETURN cardinality(actions);
  END IF;

  FOR col IN SELECT a.attname, a.attnum, a.atttypid::regtype AS typ, a.atthasdef
    AND a.attgenerated = '' AS has_default
               FROM pg_attribute AS a
              WHERE a.attrelid = rel AND a.attnum > 0 AND NOT a.attisdropped
                AND a.atttypid IN ('@extschema@.bson'::regtype, '@extschema@.bson_value'::regtype,
                    '@extschema@.objectid'::regtype)
                AND (doc_column IS NULL OR a.attname = doc_column)
              ORDER BY a.attnum LOOP
    -- A default would depend on the extension.
    IF col.has_default THEN
      actions := actions || format('ALTER COLUMN %I DROP DEFAULT', col.attname);
      RAISE NOTICE 'dropping the default of column %', quote_ident(col.attname);
    END IF;
    converted := converted + 1;
    numbers := numbers || col.attnum;
    actions := actions || format('ALTER COLUMN %1$I TYPE %2$s USING %3$s', col.attname,
      CASE WHEN col.typ = '@extschema@.objectid'::regtype THEN 'text' ELSE target END,
      format(CASE
        WHEN col.typ = '@extschema@.objectid'::regtype THEN '%1$I::text'
        WHEN target = 'jsonb' THEN '%1$I::jsonb'
        WHEN col.typ = '@extschema@.bson'::regtype THEN '%1$I::bytea'
        ELSE '@extschema@.bson_value_send(%1$I)' END, col.attname));
  END LOOP;
  IF cardinality(actions) = 0 THEN
    RAISE EXCEPTION 'table "%" has no column to convert', docpatterns._relname(rel)
      USING ERRCODE = 'invalid_parameter_value',
            DETAIL = 'Columns of the types bson, bson_value and objectid are converted.';
  END IF;

  FOR trg IN SELECT t.tgname, i.attname AS id, d.attname AS doc FROM pg_trigger AS t
               JOIN pg_attribute AS i ON i.attrelid = rel AND i.attnum = t.tgattr[0]
               JOIN pg_attribute AS d ON d.attrelid = rel AND d.attnum = t.tgattr[1]
              WHERE t.tgrelid = rel AND NOT t.tgisinternal
                AND t.tgfoid = 'docpatterns.collection_set_id()'::regprocedure LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', trg.tgname, rel);
    FOR chk IN SELECT c.conname FROM pg_constraint AS c WHERE c.conrelid = rel AND c.contype = 'c'
                  AND pg_get_constraintdef(c.oid) = format('CHECK ((%I OPERATOR(@extschema@.=) '
                    '(%I OPERATOR(@extschema@.->) ''_id''::text)))', trg.id, trg.doc) LOOP
      EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', rel, chk);
    END LOOP;
  END LOOP;
  -- Expressions over documents cannot be converted.
  SELECT string_agg(b.name, ', ' ORDER BY b.name) INTO blockers FROM (
    SELECT format('index %s', i.indexrelid::regclass) FROM pg_index AS i
     WHERE i.indrelid = rel AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)
       AND EXISTS (SELECT FROM pg_depend AS d
                    WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid
                      AND d.refclassid = 'pg_class'::regclass
                      AND d.refobjid = rel AND d.refobjsubid = ANY (numbers))
    UNION ALL
    SELECT format('constraint %I', c.conname) FROM pg_constraint AS c
     WHERE c.conrelid = rel AND c.contype = 'c' AND c.conkey && numbers
    UNION ALL
    SELECT 'a validator' FROM pg_trigger AS t WHERE t.tgrelid = rel
       AND t.tgfoid = 'docpatterns.collection_validator_trigger()'::regprocedure) AS b (name);
  IF blockers IS NOT NULL THEN
    RAISE EXCEPTION 'cannot convert columns of "%" because expressions use them',
        docpatterns._relname(rel)
      USING ERRCODE = 'dependent_objects_still_exist',
        DETAIL = format('They are used by %s.', blockers), HINT = 'Drop them first.';
  END IF;
  EXECUTE format('ALTER TABLE %s %s', rel, array_to_string(actions, ', '));
  RETURN converted;
END
$$;
COMMENT ON FUNCTION bson_column_convert(regclass, text, name) IS
  'Converts columns of types bson and bson_value to jsonb or bytea, and those of type objectid to '
  'text, or one column of type jsonb, json or bytea to bson. Returns the number of columns. Needs '
  'ownership. Takes ACCESS EXCLUSIVE and rewrites the table. Errors: 55000 the table has a '
  'pattern, 2BP01 indexes on expressions or checks use the columns, 22023 nothing to convert or '
  'another target, 42809 not a table, 42703 no such column, 22004 a NULL, 42501';
