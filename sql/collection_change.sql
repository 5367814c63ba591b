-- Calls that change documents of collections (src/patterns/collection/change.c). As the calls that
-- read, they run statements as the caller, and everything is qualified.

CREATE FUNCTION docpatterns._collection_value(value anycompatible) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_collection_value' LANGUAGE C IMMUTABLE STRICT;
COMMENT ON FUNCTION docpatterns._collection_value(anycompatible) IS
  'internal: an argument given as bson, bson_value or Extended JSON; 42804 another type, 22P02 '
  'invalid text';
-- The last condition: no condition may follow for a document that was counted.
CREATE FUNCTION docpatterns._collection_changes(doc bson, updated bson, ticket bigint)
  RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_collection_changes' LANGUAGE C VOLATILE STRICT COST 100;
COMMENT ON FUNCTION docpatterns._collection_changes(bson, bson, bigint) IS
  'internal: whether an update has changed the document; counts those that it has not';
CREATE FUNCTION docpatterns._collection_updated(doc bson, ticket bigint) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_collection_updated' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._collection_updated(bson, bigint) IS
  'internal: what _collection_changes() saw the document become; NULL if that was another one';

CREATE FUNCTION collection_update(rel regclass, filter bson, update anycompatible,
  upsert boolean DEFAULT false, multi boolean DEFAULT false,
    array_filters bson_value DEFAULT NULL, sort bson DEFAULT NULL, collation bson DEFAULT NULL,
    OUT matched bigint,
    OUT modified bigint, OUT upserted bson_value)
  AS 'MODULE_PATHNAME', 'dp_collection_update' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION collection_update(regclass, bson, anycompatible, boolean, boolean, bson_value,
  bson, bson) IS
  'Updates one document that matches the filter, the first in the order of sort, or with multi all '
  'of them, as bson_update does; update is bson, bson_value or Extended JSON. With upsert it '
  'inserts one if none matches. Returns how many matched, how many of these changed (others are '
  'not written), and the _id of an inserted document. Needs SELECT and UPDATE, for upserts also '
  'INSERT; locks the rows. Errors: those of bson_update, 22023 a whole document or sort with '
  'multi, 22004 a NULL, 23505 an upsert whose key belongs to a document that does not match';

CREATE FUNCTION collection_replace(rel regclass, filter bson, replacement anycompatible,
  upsert boolean DEFAULT false, sort bson DEFAULT NULL, collation bson DEFAULT NULL,
  OUT matched bigint, OUT modified bigint,
  OUT upserted bson_value)
  AS 'MODULE_PATHNAME', 'dp_collection_replace' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION collection_replace(regclass, bson, anycompatible, boolean, bson, bson) IS
  'Replaces one document that matches the filter, the first in the order of sort, by a whole one '
  'with the same _id. Arguments, result, rights and errors as collection_update; 22023 update '
  'operators';

CREATE FUNCTION collection_delete(rel regclass, filter bson, multi boolean DEFAULT false,
  collation bson DEFAULT NULL) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_collection_delete' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION collection_delete(regclass, bson, boolean, bson) IS
  'Deletes one document that matches the filter, with multi all of them, and returns their number. '
  'Needs SELECT and DELETE; locks the rows. Errors: 22004 a NULL, those of collection_find';

CREATE FUNCTION collection_find_one_and_update(rel regclass, filter bson, update anycompatible,
  projection bson DEFAULT NULL, sort bson DEFAULT NULL, upsert boolean DEFAULT false,
    return_new boolean DEFAULT false, array_filters bson_value DEFAULT NULL,
    collation bson DEFAULT NULL) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_collection_find_one_and_update' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION collection_find_one_and_update(regclass, bson, anycompatible, bson, bson,
  boolean, boolean, bson_value, bson) IS
  'Updates the first document that matches the filter, in the order of sort, as collection_update '
  'does, and returns it as the projection shows it: as it was, or with return_new as it is then. '
  'NULL if none matches, unless an upsert inserts it and return_new is true. The row is locked '
  'when it is found, so each of several callers gets another document if the update makes it no '
  'longer match. Rights and errors as collection_update';

CREATE FUNCTION collection_find_one_and_replace(rel regclass, filter bson,
  replacement anycompatible, projection bson DEFAULT NULL, sort bson DEFAULT NULL,
    upsert boolean DEFAULT false, return_new boolean DEFAULT false, collation bson DEFAULT NULL)
  RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_collection_find_one_and_replace' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION collection_find_one_and_replace(regclass, bson, anycompatible, bson, bson,
  boolean, boolean, bson) IS
  'As collection_find_one_and_update, for a whole document instead of an update; 22023 update '
  'operators';

CREATE FUNCTION collection_find_one_and_delete(rel regclass, filter bson,
  projection bson DEFAULT NULL, sort bson DEFAULT NULL, collation bson DEFAULT NULL)
  RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_collection_find_one_and_delete' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION collection_find_one_and_delete(regclass, bson, bson, bson, bson) IS
  'Deletes the first document that matches the filter, in the order of sort, and returns it as the '
  'projection shows it; NULL if none matches. Rights and errors as collection_delete';

CREATE FUNCTION collection_bulk_write(rel regclass, operations anycompatible,
  ordered boolean DEFAULT true, OUT index int, OUT operation text, OUT matched bigint,
    OUT modified bigint, OUT deleted bigint, OUT id bson_value, OUT error_code text, OUT error text)
  RETURNS SETOF record
LANGUAGE docpatterns VOLATILE AS $$
DECLARE
  list CONSTANT @extschema@.bson_value := docpatterns._collection_value(operations);
  is_one pg_catalog.bool;
  arguments @extschema@.bson;
  allowed pg_catalog.text[];
  filter @extschema@.bson;
  upsert pg_catalog.bool;
  sort @extschema@.bson;
  "collation" @extschema@.bson;
  field pg_catalog.text;
BEGIN
  IF list IS NULL OR ordered IS NULL THEN
    RAISE EXCEPTION '% cannot be null', CASE WHEN list IS NULL THEN 'operations' ELSE 'ordered' END
      USING ERRCODE = 'null_value_not_allowed';
  END IF;
  -- All are checked before the first one runs.
  FOR index, is_one IN
    SELECT o.n OPERATOR(pg_catalog.-) 1, @extschema@.bson_typeof(o.v)
        OPERATOR(pg_catalog.=) 'object' AND (SELECT pg_catalog.count(*) OPERATOR(pg_catalog.=) 1
          AND pg_catalog.bool_and(@extschema@.bson_typeof(e.value) OPERATOR(pg_catalog.=) 'object')
        FROM @extschema@.bson_each(o.v::@extschema@.bson) AS e)
      FROM @extschema@.bson_elements(list) WITH ORDINALITY AS o (v, n) LOOP
    IF NOT is_one THEN
      RAISE EXCEPTION 'operation % is not a document with one document in it', index
        USING ERRCODE = 'invalid_parameter_value',
          HINT = 'Write operations as {updateOne: {filter: {..}, update: {..}}}.';
    END IF;
  END LOOP;
  FOR index, operation, arguments IN
    SELECT o.n OPERATOR(pg_catalog.-) 1, e.key, e.value::@extschema@.bson
      FROM @extschema@.bson_elements(list) WITH ORDINALITY AS o (v, n),
        @extschema@.bson_each(o.v::@extschema@.bson) AS e LOOP
    allowed := CASE operation
        WHEN 'insertOne' THEN '{document}'
        WHEN 'updateOne' THEN '{filter,update,upsert,arrayFilters,sort,collation}'
        WHEN 'updateMany' THEN '{filter,update,upsert,arrayFilters,collation}'
        WHEN 'replaceOne' THEN '{filter,replacement,upsert,sort,collation}'
        WHEN 'deleteOne' THEN '{filter,collation}'
        WHEN 'deleteMany' THEN '{filter,collation}' END;
    field := (SELECT k FROM @extschema@.bson_keys(arguments) AS k
      WHERE k OPERATOR(pg_catalog.<>) ALL (allowed) LIMIT 1);
    IF allowed IS NULL THEN
      RAISE EXCEPTION 'operation % has the unknown type "%"', index, operation
        USING ERRCODE = 'feature_not_supported',
          HINT = 'Use insertOne, updateOne, updateMany, replaceOne, deleteOne or deleteMany.';
    ELSIF arguments OPERATOR(@extschema@.?) 'hint' THEN
      RAISE EXCEPTION 'operation % (%): hint is not supported', index, operation
        USING ERRCODE = 'feature_not_supported',
          HINT = 'The planner chooses indexes by their statistics. ANALYZE refreshes these, and '
            'collection_explain() shows what it chooses.';
    ELSIF field IS NOT NULL THEN
      RAISE EXCEPTION 'operation % (%) has the unknown field "%"', index, operation, field
        USING ERRCODE = 'feature_not_supported',
          HINT = pg_catalog.concat('Use ', pg_catalog.array_to_string(allowed, ', '), '.');
    END IF;
  END LOOP;

  FOR index, operation, arguments IN
    SELECT o.n OPERATOR(pg_catalog.-) 1, e.key, e.value::@extschema@.bson
      FROM @extschema@.bson_elements(list) WITH ORDINALITY AS o (v, n),
        @extschema@.bson_each(o.v::@extschema@.bson) AS e ORDER BY o.n LOOP
    matched := NULL;
    modified := NULL;
    deleted := NULL;
    id := NULL;
    BEGIN
      filter := (arguments OPERATOR(@extschema@.->) 'filter'::pg_catalog.text)::@extschema@.bson;
      upsert := coalesce((arguments OPERATOR(@extschema@.->)
        'upsert'::pg_catalog.text)::pg_catalog.bool, false);
      sort := (arguments OPERATOR(@extschema@.->) 'sort'::pg_catalog.text)::@extschema@.bson;
      "collation" := (arguments OPERATOR(@extschema@.->)
        'collation'::pg_catalog.text)::@extschema@.bson;
      IF operation OPERATOR(pg_catalog.=) 'insertOne' THEN
        id := (SELECT i FROM @extschema@.collection_insert(rel, VARIADIC ARRAY[
          (arguments OPERATOR(@extschema@.->) 'document'::pg_catalog.text)::@extschema@.bson])
            AS i);
      ELSIF pg_catalog.starts_with(operation, 'delete') THEN
        deleted := @extschema@.collection_delete(rel, filter,
          operation OPERATOR(pg_catalog.=) 'deleteMany', "collation");
      ELSIF operation OPERATOR(pg_catalog.=) 'replaceOne' THEN
        SELECT c.* INTO matched, modified, id FROM @extschema@.collection_replace(rel, filter,
          arguments OPERATOR(@extschema@.->) 'replacement'::pg_catalog.text, upsert, sort,
          "collation") AS c;
      ELSE
        SELECT c.* INTO matched, modified, id FROM @extschema@.collection_update(rel, filter,
          arguments OPERATOR(@extschema@.->) 'update'::pg_catalog.text, upsert,
          operation OPERATOR(pg_catalog.=) 'updateMany',
          arguments OPERATOR(@extschema@.->) 'arrayFilters'::pg_catalog.text, sort,
          "collation") AS c;
      END IF;
    EXCEPTION WHEN OTHERS THEN
      -- Errors that are not the operation's: serialization, resources, the server.
      IF pg_catalog."left"(SQLSTATE, 2) OPERATOR(pg_catalog.=) ANY ('{40,53,57,58,XX}') THEN
        RAISE;
      END IF;
      error_code := SQLSTATE;
      error := SQLERRM;
    END;
    RETURN NEXT;
    EXIT WHEN error IS NOT NULL AND ordered;
    error_code := NULL;
    error := NULL;
  END LOOP;
END
$$;
COMMENT ON FUNCTION collection_bulk_write(regclass, anycompatible, boolean) IS
  'Runs the operations of an array one after the other: insertOne, updateOne, updateMany, '
  'replaceOne, deleteOne, deleteMany. Returns a row for each: its position, counted from 0, how '
  'many documents matched, changed and were deleted, and the _id of an inserted one. An error '
  'undoes its operation only; its row has the message, and the SQLSTATE in error_code. If ordered, '
  'no operation runs after an error. Rights as for the operations. Errors, before any operation '
  'runs: 22004 a NULL, 22023 or 0A000 a malformed operation or a hint. Errors of the classes 40, '
  '53, 57, 58 and XX end the call';

CREATE FUNCTION docpatterns.collection_validator_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_collection_validator_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.collection_validator_trigger() IS
  'trigger of collection_validator: refuses whole documents that do not match, or warns';

CREATE FUNCTION collection_validator(rel regclass, validator bson, level text DEFAULT 'strict',
  action text DEFAULT 'error') RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  doc_column text := (docpatterns._collection_query(rel, '{}')).doc_column;
  command text;
BEGIN
  IF NOT coalesce(level IN ('strict', 'moderate', 'off'), false)
      OR NOT coalesce(action IN ('error', 'warn'), false) THEN
    RAISE EXCEPTION 'level must be strict, moderate or off, and action error or warn'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM FROM pg_class AS c WHERE c.oid = rel AND c.relkind IN ('r', 'p');
  IF NOT FOUND THEN
    RAISE EXCEPTION '"%" is not a table', docpatterns._relname(rel)
      USING ERRCODE = 'wrong_object_type';
  END IF;
  PERFORM docpatterns._pattern_require_owner(rel);
  -- A bad filter is an error even if it is for later, or for nothing.
  PERFORM '{}'::@extschema@.bson OPERATOR(@extschema@.@@) validator;
  FOR command IN
    SELECT format('DROP TRIGGER %I ON %s', t.tgname, rel) FROM pg_trigger AS t
      WHERE t.tgrelid = rel AND t.tgparentid = 0
        AND t.tgfoid = 'docpatterns.collection_validator_trigger()'::regprocedure
    UNION ALL
    SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', rel, c.conname) FROM pg_constraint AS c
      WHERE c.conrelid = rel AND c.contype = 'c' AND c.conname = 'docpatterns_validator' LOOP
    EXECUTE command;
  END LOOP;
  IF level = 'off' OR coalesce(@extschema@.bson_size(validator) <= 5, true) THEN
    RETURN NULL;
  END IF;
  IF level = 'strict' AND action = 'error'
      AND NOT EXISTS (SELECT FROM docpatterns._pattern_declarations(rel)) THEN
    command := format('ALTER TABLE %s ADD CONSTRAINT docpatterns_validator '
        'CHECK (%I OPERATOR(@extschema@.@@) %L::@extschema@.bson) NOT VALID', rel, doc_column,
        validator);
  ELSE
    command := format('CREATE TRIGGER zz_docpatterns_49_validator BEFORE INSERT OR UPDATE OF %I '
        'ON %s FOR EACH ROW EXECUTE FUNCTION docpatterns.collection_validator_trigger(%L, %L, %L)',
        doc_column, rel, validator, level, action);
  END IF;
  EXECUTE command;
  RETURN command;
END
$$;
COMMENT ON FUNCTION collection_validator(regclass, bson, text, text) IS
  'Requires that documents match a filter, such as {$jsonSchema: ..}, and returns the command that '
  'creates the constraint or trigger; it replaces the former validator. level: strict, or moderate '
  '(an update may leave a document as wrong as it is), or off (removes it, as {} and NULL do); '
  'action: error (23514) or warn. Existing documents are not tested. Needs ownership. Takes ACCESS '
  'EXCLUSIVE for a moment. Errors: 22023 another level or action, 42809 no table, 42501, those of '
  'collection_find about the filter';
