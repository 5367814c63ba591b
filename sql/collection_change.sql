-- Calls that change documents of collections (src/mql/collection_change.c). As the calls that read,
-- they run statements as the caller, and everything is qualified.

CREATE FUNCTION docpatterns._collection_value(value anycompatible, replaces boolean)
  RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_collection_value' LANGUAGE C IMMUTABLE STRICT;
COMMENT ON FUNCTION docpatterns._collection_value(anycompatible, boolean) IS
  'internal: an argument given as bson, bson_value or Extended JSON, with replaces a whole '
  'document; 22023 update operators in it, 42804 another type, 22P02 invalid text';
CREATE FUNCTION docpatterns._collection_ticket(keeps boolean) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_collection_ticket' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._collection_ticket(boolean) IS
  'internal: begins to count the documents that an update leaves alone, and to keep the last one '
  'that it has seen';
CREATE FUNCTION docpatterns._collection_unchanged(ticket bigint, OUT unchanged bigint,
  OUT doc bson)
  AS 'MODULE_PATHNAME', 'dp_collection_unchanged' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._collection_unchanged(bigint) IS
  'internal: how many documents the update with the ticket left alone, and the last one before it';
-- The last condition: no condition may follow for a document that was counted.
CREATE FUNCTION docpatterns._collection_changes(doc bson, updated bson, ticket bigint)
  RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_collection_changes' LANGUAGE C VOLATILE STRICT COST 100;
COMMENT ON FUNCTION docpatterns._collection_changes(bson, bson, bigint) IS
  'internal: whether an update has changed the document; counts those that it has not';

CREATE FUNCTION docpatterns._collection_locate(statement text, filter bson, operands bson_value[],
  sort bson, OUT row_table oid, OUT row_place tid, OUT row_condition text)
  AS 'MODULE_PATHNAME', 'dp_collection_locate' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION docpatterns._collection_locate(text, bson, bson_value[], bson) IS
  'internal: runs a statement that finds and locks a row; the session keeps it';
CREATE FUNCTION docpatterns._collection_write(statement text, filter bson, operands bson_value[],
  row_table oid, row_place tid, update bson_value, array_filters bson_value, ticket bigint,
  collation bson) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_collection_write' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION docpatterns._collection_write(text, bson, bson_value[], oid, tid, bson_value,
  bson_value, bigint, bson) IS
  'internal: runs a statement that updates or deletes rows, and returns how many; the session '
  'keeps it';

CREATE FUNCTION docpatterns._collection_change(rel regclass, filter bson, update bson_value,
  deletes boolean DEFAULT false, multi boolean DEFAULT false, upsert boolean DEFAULT false,
    array_filters bson_value DEFAULT NULL, sort bson DEFAULT NULL, finds boolean DEFAULT false,
    projection bson DEFAULT NULL, return_new boolean DEFAULT false, collation bson DEFAULT NULL,
    OUT matched bigint, OUT modified bigint, OUT upserted bson_value, OUT doc bson)
LANGUAGE docpatterns VOLATILE AS $$
DECLARE
  q pg_catalog.record := docpatterns._collection_query(rel, filter, sort,
      CASE WHEN finds THEN coalesce(projection, '{}') END, update => update,
      array_filters => array_filters, multi => multi, collation => "collation");
  updated pg_catalog.text := CASE WHEN "collation" IS NULL
      THEN pg_catalog.concat('@extschema@.bson_update(', q.doc, ', $5, $1, $6)')
      ELSE pg_catalog.concat('docpatterns._collated_update(', q.doc,
        ', $5, $1, $6, false, $8)') END;
  missing pg_catalog.text := CASE WHEN update IS NULL AND NOT deletes THEN 'update'
      WHEN multi IS NULL THEN 'multi' WHEN upsert IS NULL THEN 'upsert'
      WHEN return_new IS NULL THEN 'return_new' END;
  attempts pg_catalog.int4 := CASE WHEN deletes THEN 10 ELSE 3 END;
  lock_clause pg_catalog.text := CASE WHEN deletes THEN ' FOR UPDATE OF t'
      ELSE ' FOR NO KEY UPDATE OF t' END;
  row_table pg_catalog.oid;
  row_place pg_catalog.tid;
  row_condition pg_catalog.text;
  command pg_catalog.text;
  ticket bigint;
  seen pg_catalog.record;
  docs @extschema@.bson[];
BEGIN
  IF missing IS NOT NULL THEN
    RAISE EXCEPTION '% cannot be null', missing USING ERRCODE = 'null_value_not_allowed';
  ELSIF multi AND sort IS NOT NULL THEN
    RAISE EXCEPTION 'sort cannot be combined with multi'
      USING ERRCODE = 'invalid_parameter_value';
  ELSIF NOT multi AND q.locate IS NULL THEN
    RAISE EXCEPTION 'cannot distinguish the rows of "%"', docpatterns._relname(rel)
      USING ERRCODE = 'feature_not_supported',
        DETAIL = 'It does not contain the primary key of one table.',
        HINT = 'Updates and deletions of all matching documents work, with multi => true.';
  END IF;
  IF "collation" IS NOT NULL AND q.change IS NOT NULL THEN
    RAISE EXCEPTION 'collation is not supported for changes that concern split fields'
      USING ERRCODE = 'feature_not_supported';
  END IF;
  -- Locking a row before it is deleted requires UPDATE privilege.
  q.locks := q.locks AND (NOT deletes OR pg_catalog.has_any_column_privilege(rel, 'UPDATE'));
  -- Retry if another transaction meanwhile changes a found row of a view, or inserts the document
  -- of an upsert.
  FOR attempt IN 1 .. attempts LOOP
    matched := 0;
    modified := 0;
    doc := NULL;
    IF q.change IS NOT NULL THEN
      EXECUTE q.change INTO matched, modified, docs USING filter, q.operands, sort, NULL, update,
        array_filters, CASE WHEN NOT multi THEN 1 END, finds;
      doc := docs[1][CASE WHEN return_new AND modified OPERATOR(pg_catalog.>) 0 THEN 2 ELSE 1 END];
      EXIT WHEN matched OPERATOR(pg_catalog.>) 0;
    -- A separate statement finds and locks one row, so that the next one sees it as it was locked.
    ELSIF NOT multi THEN
      IF "collation" IS NULL THEN
        SELECT l.row_table, l.row_place, l.row_condition INTO row_table, row_place, row_condition
          FROM docpatterns._collection_locate(pg_catalog.concat(q.locate,
              CASE WHEN q.locks THEN lock_clause END), filter, q.operands, sort) AS l;
      ELSE
        EXECUTE pg_catalog.concat(q.locate, CASE WHEN q.locks THEN lock_clause END)
          INTO row_table, row_place, row_condition USING filter, q.operands, sort, NULL, NULL, NULL,
            NULL, "collation";
      END IF;
      IF q.holds AND row_condition IS NOT NULL THEN
        EXECUTE pg_catalog.concat('SELECT FROM ', q.source, ' WHERE ', row_condition, lock_clause);
      END IF;
    END IF;
    IF q.change IS NULL AND (multi OR row_place IS NOT NULL OR row_condition IS NOT NULL) THEN
      ticket := docpatterns._collection_ticket(finds);
      command := pg_catalog.concat(
          CASE WHEN deletes THEN pg_catalog.concat('DELETE FROM ', q.source)
            ELSE pg_catalog.concat('UPDATE ', q.source, ' SET ', q.doc_column, ' = ', updated) END,
          ' WHERE ', q.conditions,
          CASE WHEN NOT multi THEN ' AND ' OPERATOR(pg_catalog.||) coalesce(q.located,
              row_condition) END,
          CASE WHEN NOT deletes THEN pg_catalog.concat(' AND docpatterns._collection_changes(',
              q.doc, ', ', updated, ', $7)') END);
      IF finds THEN
        EXECUTE pg_catalog.concat(command, ' RETURNING t.', q.doc_column) INTO doc
          USING filter, q.operands, row_table, row_place, update, array_filters, ticket,
            "collation";
        GET DIAGNOSTICS modified = ROW_COUNT;
      ELSIF multi OR q.located IS NOT NULL THEN
        modified := docpatterns._collection_write(command, filter, q.operands, row_table, row_place,
            update, array_filters, ticket, "collation");
      ELSE
        EXECUTE command
          USING filter, q.operands, row_table, row_place, update, array_filters, ticket,
            "collation";
        GET DIAGNOSTICS modified = ROW_COUNT;
      END IF;
      seen := docpatterns._collection_unchanged(ticket);
      matched := modified OPERATOR(pg_catalog.+) seen.unchanged;
      IF NOT multi AND q.locks THEN
        matched := 1;
      END IF;
      IF seen.doc IS NOT NULL AND (NOT return_new OR doc IS NULL) THEN
        doc := seen.doc;
      END IF;
      EXIT WHEN matched OPERATOR(pg_catalog.>) 0;
      CONTINUE WHEN NOT multi;
    END IF;
    EXIT WHEN NOT upsert;

    EXECUTE pg_catalog.concat(q.insertion,
        CASE WHEN q.locks AND attempt OPERATOR(pg_catalog.<) attempts
          THEN ' ON CONFLICT DO NOTHING' END,
        ' RETURNING coalesce(', q.id, ', ''null'')',
        CASE WHEN return_new THEN ', t.' OPERATOR(pg_catalog.||) q.doc_column
          ELSE ', NULL::@extschema@.bson' END)
      INTO upserted, doc USING ARRAY[@extschema@.bson_update(NULL::@extschema@.bson, update, filter,
          array_filters, true)];
    EXIT WHEN upserted IS NOT NULL;
  END LOOP;
  IF projection IS NOT NULL THEN
    doc := CASE WHEN "collation" IS NULL THEN @extschema@.bson_project(doc, projection, filter)
      ELSE docpatterns._collated_project(doc, projection, filter, "collation") END;
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._collection_change(regclass, bson, bson_value, boolean, boolean,
  boolean, bson_value, bson, boolean, bson, boolean, bson) IS
  'internal: updates, replaces or deletes documents, one or all that match; if it finds, doc is '
  'what the projection shows of the one, before or after';

CREATE FUNCTION collection_update(rel regclass, filter bson, update anycompatible,
  upsert boolean DEFAULT false, multi boolean DEFAULT false,
    array_filters bson_value DEFAULT NULL, sort bson DEFAULT NULL, collation bson DEFAULT NULL,
    OUT matched bigint,
    OUT modified bigint, OUT upserted bson_value)
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  SELECT c.matched, c.modified, c.upserted INTO matched, modified, upserted
    FROM docpatterns._collection_change(rel, filter, docpatterns._collection_value(update, false),
        multi => multi, upsert => upsert, array_filters => array_filters, sort => sort,
        collation => "collation") AS c;
END
$$;
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
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  SELECT c.matched, c.modified, c.upserted INTO matched, modified, upserted
    FROM docpatterns._collection_change(rel, filter,
        docpatterns._collection_value(replacement, true), upsert => upsert, sort => sort,
        collation => "collation") AS c;
END
$$;
COMMENT ON FUNCTION collection_replace(regclass, bson, anycompatible, boolean, bson, bson) IS
  'Replaces one document that matches the filter, the first in the order of sort, by a whole one '
  'with the same _id. Arguments, result, rights and errors as collection_update; 22023 update '
  'operators';

CREATE FUNCTION collection_delete(rel regclass, filter bson, multi boolean DEFAULT false,
  collation bson DEFAULT NULL) RETURNS bigint
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  RETURN (SELECT c.modified FROM docpatterns._collection_change(rel, filter, NULL, true, multi,
        collation => "collation") AS c);
END
$$;
COMMENT ON FUNCTION collection_delete(regclass, bson, boolean, bson) IS
  'Deletes one document that matches the filter, with multi all of them, and returns their number. '
  'Needs SELECT and DELETE; locks the rows. Errors: 22004 a NULL, those of collection_find';

CREATE FUNCTION collection_find_one_and_update(rel regclass, filter bson, update anycompatible,
  projection bson DEFAULT NULL, sort bson DEFAULT NULL, upsert boolean DEFAULT false,
    return_new boolean DEFAULT false, array_filters bson_value DEFAULT NULL,
    collation bson DEFAULT NULL) RETURNS bson
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  RETURN (SELECT c.doc FROM docpatterns._collection_change(rel, filter,
        docpatterns._collection_value(update, false), upsert => upsert,
        array_filters => array_filters, sort => sort, finds => true, projection => projection,
        return_new => return_new, collation => "collation") AS c);
END
$$;
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
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  RETURN (SELECT c.doc FROM docpatterns._collection_change(rel, filter,
        docpatterns._collection_value(replacement, true), upsert => upsert, sort => sort,
        finds => true, projection => projection, return_new => return_new,
        collation => "collation") AS c);
END
$$;
COMMENT ON FUNCTION collection_find_one_and_replace(regclass, bson, anycompatible, bson, bson,
  boolean, boolean, bson) IS
  'As collection_find_one_and_update, for a whole document instead of an update; 22023 update '
  'operators';

CREATE FUNCTION collection_find_one_and_delete(rel regclass, filter bson,
  projection bson DEFAULT NULL, sort bson DEFAULT NULL, collation bson DEFAULT NULL)
  RETURNS bson
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  RETURN (SELECT c.doc FROM docpatterns._collection_change(rel, filter, NULL, true, sort => sort,
        finds => true, projection => projection, collation => "collation") AS c);
END
$$;
COMMENT ON FUNCTION collection_find_one_and_delete(regclass, bson, bson, bson, bson) IS
  'Deletes the first document that matches the filter, in the order of sort, and returns it as the '
  'projection shows it; NULL if none matches. Rights and errors as collection_delete';

CREATE FUNCTION collection_bulk_write(rel regclass, operations anycompatible,
  ordered boolean DEFAULT true, OUT index int, OUT operation text, OUT matched bigint,
    OUT modified bigint, OUT deleted bigint, OUT id bson_value, OUT error_code text, OUT error text)
  RETURNS SETOF record
LANGUAGE docpatterns VOLATILE AS $$
DECLARE
  list CONSTANT @extschema@.bson_value := docpatterns._collection_value(operations, false);
  is_one pg_catalog.bool;
  arguments @extschema@.bson;
  allowed pg_catalog.text[];
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
          HINT = 'The planner chooses indexes by their statistics.';
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
      IF operation OPERATOR(pg_catalog.=) 'insertOne' THEN
        id := (SELECT i FROM @extschema@.collection_insert(rel, VARIADIC ARRAY[
          (arguments OPERATOR(@extschema@.->) 'document'::pg_catalog.text)::@extschema@.bson])
            AS i);
      ELSE
        SELECT c.matched, c.modified, c.upserted INTO matched, modified, id
          FROM docpatterns._collection_change(rel,
            (arguments OPERATOR(@extschema@.->) 'filter'::pg_catalog.text)::@extschema@.bson,
            docpatterns._collection_value(arguments OPERATOR(@extschema@.->)
              CASE operation WHEN 'replaceOne' THEN 'replacement' ELSE 'update' END,
              operation OPERATOR(pg_catalog.=) 'replaceOne'),
            deletes => pg_catalog.starts_with(operation, 'delete'),
            multi => operation OPERATOR(pg_catalog.~) 'Many$',
            upsert => coalesce((arguments OPERATOR(@extschema@.->)
              'upsert'::pg_catalog.text)::pg_catalog.bool, false),
            array_filters => arguments OPERATOR(@extschema@.->) 'arrayFilters'::pg_catalog.text,
            sort => (arguments OPERATOR(@extschema@.->)
              'sort'::pg_catalog.text)::@extschema@.bson,
            collation => (arguments OPERATOR(@extschema@.->)
              'collation'::pg_catalog.text)::@extschema@.bson) AS c;
        IF pg_catalog.starts_with(operation, 'delete') THEN
          deleted := modified;
          matched := NULL;
          modified := NULL;
        END IF;
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
  'replaceOne, deleteOne, deleteMany. Returns a row for each, with its place from 0, how many '
  'documents matched, changed and were deleted, and the _id of an inserted one. An error undoes '
  'its operation only, and is in the row: error_code is its SQLSTATE. ordered: it is the last one, '
  'otherwise the others run, too. Rights as for the operations. Errors: 22004 a NULL, 22023 or '
  '0A000 an operation that is not written so, or hint, before any runs; errors of the classes 40, '
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
        'CHECK (%s OPERATOR(@extschema@.@@) %L::@extschema@.bson) NOT VALID', rel, doc_column,
        validator);
  ELSE
    command := format('CREATE TRIGGER zz_docpatterns_49_validator BEFORE INSERT OR UPDATE OF %s '
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
