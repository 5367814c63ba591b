-- Calls for users who think in collections. Each builds one statement, with its values as
-- parameters, and runs it as the caller (src/mql/collection_calls.c). No search_path is set,
-- because the caller's triggers and policies run inside; everything is qualified instead.

CREATE FUNCTION docpatterns._collection_query(rel regclass, filter bson, sort bson DEFAULT NULL,
  projection bson DEFAULT NULL, field text DEFAULT NULL,
    update bson_value DEFAULT NULL, array_filters bson_value DEFAULT NULL,
    multi boolean DEFAULT false,
    OUT source text, OUT doc text, OUT conditions text, OUT operands bson_value[],
    OUT ordering text,
    OUT locate text, OUT located text, OUT locks boolean, OUT insertion text, OUT id text,
    OUT doc_column text, OUT change text, OUT holds boolean, OUT key_column text)
  AS 'MODULE_PATHNAME', 'dp_collection_query' LANGUAGE C STABLE;
COMMENT ON FUNCTION docpatterns._collection_query(regclass, bson, bson, bson, text, bson_value,
  bson_value, boolean) IS
  'internal: the parts of a statement on a relation: its name, the document, conditions ($1 '
  'filter, $2 operands), order, how one row is told from the others, how documents are inserted, '
  'and how split ones are changed; 22023 for an update that replaces several documents';

CREATE FUNCTION docpatterns._collection_ticket() RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_collection_ticket' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION docpatterns._collection_ticket() IS
  'internal: begins to count the documents that an update leaves alone';
CREATE FUNCTION docpatterns._collection_unchanged(ticket bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_collection_unchanged' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._collection_unchanged(bigint) IS
  'internal: how many documents the update with the ticket left alone';
-- The last condition: no condition may follow for a document that was counted.
CREATE FUNCTION docpatterns._collection_changes(doc bson, updated bson, ticket bigint)
  RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_collection_changes' LANGUAGE C VOLATILE STRICT COST 100;
COMMENT ON FUNCTION docpatterns._collection_changes(bson, bson, bigint) IS
  'internal: whether an update has changed the document; counts those that it has not';

CREATE FUNCTION collection_insert(rel regclass, VARIADIC docs bson[]) RETURNS SETOF bson_value
LANGUAGE docpatterns VOLATILE AS $$
DECLARE
  q pg_catalog.record;
BEGIN
  IF docs IS NULL OR EXISTS (SELECT FROM pg_catalog.unnest(docs) AS d WHERE d IS NULL) THEN
    RAISE EXCEPTION 'documents cannot be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  q := docpatterns._collection_query(rel, '{}');
  RETURN QUERY EXECUTE pg_catalog.concat(q.insertion, ' RETURNING ', q.id) USING docs;
END
$$;
COMMENT ON FUNCTION collection_insert(regclass, bson[]) IS
  'Inserts documents, all or none, and returns the _id of each in their order: a collection gives '
  'one to a document without; in other tables the result is NULL for it. Locks as INSERT; needs '
  'INSERT, and SELECT on the key. Errors: 23505 an existing _id, 23502 another column of the table '
  'that is NOT NULL without a default, 42809, 42703 or 42702 without exactly one column of type '
  'bson';

CREATE FUNCTION collection_find(rel regclass, filter bson DEFAULT '{}',
  projection bson DEFAULT NULL, sort bson DEFAULT NULL,
    skip bigint DEFAULT 0, take bigint DEFAULT NULL) RETURNS SETOF bson
  AS 'MODULE_PATHNAME', 'dp_collection_find' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;
COMMENT ON FUNCTION collection_find(regclass, bson, bson, bson, bigint, bigint) IS
  'The documents that match the filter, sorted as by bson_sort_key, without the first skip, at '
  'most take (NULL: all, 0: none), as bson_project shows them. Needs SELECT. Errors: 22023 a '
  'negative skip or take or a bad specification, 0A000 an unknown operator';

CREATE FUNCTION collection_count(rel regclass, filter bson DEFAULT '{}') RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_collection_count' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;
COMMENT ON FUNCTION collection_count(regclass, bson) IS
  'The number of documents that match the filter. Rights and errors as collection_find';

CREATE FUNCTION collection_distinct(rel regclass, field text, filter bson DEFAULT '{}')
  RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_collection_distinct' LANGUAGE C STABLE PARALLEL RESTRICTED
    COST 1000;
COMMENT ON FUNCTION collection_distinct(regclass, text, bson) IS
  'The distinct values of a field, a dotted path, in the documents that match the filter, in '
  'order; of an array the elements. Rights and errors as collection_find';

CREATE FUNCTION collection_update(rel regclass, filter bson, update bson_value,
  upsert boolean DEFAULT false, multi boolean DEFAULT false,
    array_filters bson_value DEFAULT NULL, OUT matched bigint, OUT modified bigint,
    OUT upserted bson_value)
LANGUAGE docpatterns VOLATILE AS $$
DECLARE
  q pg_catalog.record := docpatterns._collection_query(rel, filter, update => update,
      array_filters => array_filters, multi => multi);
  updated pg_catalog.text := pg_catalog.concat('@extschema@.bson_update(', q.doc, ', $5, $1, $6)');
  row_table pg_catalog.oid;
  row_place pg_catalog.tid;
  row_condition pg_catalog.text;
  ticket bigint;
  new_docs @extschema@.bson[];
BEGIN
  IF update IS NULL OR upsert IS NULL OR multi IS NULL THEN
    RAISE EXCEPTION 'update, upsert and multi cannot be null'
      USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF NOT multi AND q.locate IS NULL THEN
    RAISE EXCEPTION 'cannot distinguish the rows of "%"', docpatterns._relname(rel)
      USING ERRCODE = 'feature_not_supported',
        DETAIL = 'It does not contain the primary key of one table.',
        HINT = 'Use multi => true to update all matching documents.';
  END IF;
  -- Retry if another transaction meanwhile changes a found row of a view, or inserts the document
  -- of an upsert.
  FOR attempt IN 1 .. 3 LOOP
    matched := 0;
    modified := 0;
    IF q.change IS NOT NULL THEN
      EXECUTE q.change INTO matched, modified USING filter, q.operands, NULL, NULL, update,
        array_filters, CASE WHEN multi THEN NULL ELSE 1 END;
      EXIT WHEN matched OPERATOR(pg_catalog.>) 0;
    -- A separate statement finds and locks one row, so that the next one sees it as it was locked.
    ELSIF NOT multi THEN
      EXECUTE pg_catalog.concat(q.locate, CASE WHEN q.locks THEN ' FOR NO KEY UPDATE OF t' END)
        INTO row_table, row_place, row_condition USING filter, q.operands;
      IF q.holds AND row_condition IS NOT NULL THEN
        EXECUTE pg_catalog.concat('SELECT FROM ', q.source, ' WHERE ', row_condition,
            ' FOR NO KEY UPDATE OF t');
      END IF;
    END IF;
    IF q.change IS NULL AND (multi OR row_place IS NOT NULL OR row_condition IS NOT NULL) THEN
      ticket := docpatterns._collection_ticket();
      EXECUTE pg_catalog.concat('UPDATE ', q.source, ' SET ', q.doc_column, ' = ', updated,
          ' WHERE ', q.conditions, ' AND ',
          CASE WHEN NOT multi THEN coalesce(q.located, row_condition) OPERATOR(pg_catalog.||)
            ' AND ' END,
          'docpatterns._collection_changes(', q.doc, ', ', updated, ', $7)')
        USING filter, q.operands, row_table, row_place, update, array_filters, ticket;
      GET DIAGNOSTICS modified = ROW_COUNT;
      matched := modified OPERATOR(pg_catalog.+) docpatterns._collection_unchanged(ticket);
      IF NOT multi AND q.locks THEN
        matched := 1;
      END IF;
      EXIT WHEN matched OPERATOR(pg_catalog.>) 0;
      CONTINUE WHEN NOT multi;
    END IF;
    EXIT WHEN NOT upsert;

    new_docs := ARRAY[@extschema@.bson_update(NULL::@extschema@.bson, update, filter, array_filters,
          true)];
    EXECUTE pg_catalog.concat(q.insertion,
        CASE WHEN q.locks AND attempt OPERATOR(pg_catalog.<) 3 THEN ' ON CONFLICT DO NOTHING' END,
        ' RETURNING coalesce(', q.id, ', ''null'')')
      INTO upserted USING new_docs;
    EXIT WHEN upserted IS NOT NULL;
  END LOOP;
END
$$;
COMMENT ON FUNCTION collection_update(regclass, bson, bson_value, boolean, boolean, bson_value) IS
  'Updates one document that matches the filter, with multi all of them, as bson_update does. With '
  'upsert it inserts one if none matches. Returns how many matched, how many of these changed '
  '(others are not written), and the _id of an inserted document. Needs SELECT and UPDATE, for '
  'upserts also INSERT; locks the rows. Errors: those of bson_update, 22023 a whole document with '
  'multi, 22004 a NULL, 23505 an upsert whose key belongs to a document that does not match';

-- bson_build() returns a document, and a bare literal is resolved as text if a function accepts it.
CREATE FUNCTION collection_update(rel regclass, filter bson, update bson,
  upsert boolean DEFAULT false, multi boolean DEFAULT false,
    array_filters bson_value DEFAULT NULL, OUT matched bigint, OUT modified bigint,
    OUT upserted bson_value)
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  SELECT u.matched, u.modified, u.upserted INTO matched, modified, upserted
    FROM @extschema@.collection_update(rel, filter, docpatterns.bson_value_from(update), upsert,
        multi, array_filters) AS u;
END
$$;
COMMENT ON FUNCTION collection_update(regclass, bson, bson, boolean, boolean, bson_value) IS
  'The same for an update of type bson';
CREATE FUNCTION collection_update(rel regclass, filter bson, update text,
  upsert boolean DEFAULT false, multi boolean DEFAULT false,
    array_filters bson_value DEFAULT NULL, OUT matched bigint, OUT modified bigint,
    OUT upserted bson_value)
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  SELECT u.matched, u.modified, u.upserted INTO matched, modified, upserted
    FROM @extschema@.collection_update(rel, filter,
        @extschema@.bson_value_in(pg_catalog.textout(update)), upsert, multi, array_filters) AS u;
END
$$;
COMMENT ON FUNCTION collection_update(regclass, bson, text, boolean, boolean, bson_value) IS
  'The same for an update that is Extended JSON; error 22P02 for invalid text';

CREATE FUNCTION collection_delete(rel regclass, filter bson, multi boolean DEFAULT false)
  RETURNS bigint
LANGUAGE docpatterns VOLATILE AS $$
DECLARE
  q pg_catalog.record := docpatterns._collection_query(rel, filter);
  row_table pg_catalog.oid;
  row_place pg_catalog.tid;
  row_condition pg_catalog.text;
  deleted bigint;
BEGIN
  IF multi IS NULL THEN
    RAISE EXCEPTION 'multi cannot be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF NOT multi AND q.locate IS NULL THEN
    RAISE EXCEPTION 'cannot distinguish the rows of "%"', docpatterns._relname(rel)
      USING ERRCODE = 'feature_not_supported',
        DETAIL = 'It does not contain the primary key of one table.',
        HINT = 'Use multi => true to delete all matching documents.';
  END IF;
  IF q.change IS NOT NULL THEN
    EXECUTE q.change INTO deleted USING filter, q.operands, NULL, NULL,
      NULL::@extschema@.bson_value, NULL::@extschema@.bson_value, CASE WHEN multi THEN NULL ELSE 1
      END;
    RETURN deleted;
  END IF;
  -- Locking a row before it is deleted requires UPDATE privilege.
  q.locks := q.locks AND pg_catalog.has_any_column_privilege(rel, 'UPDATE');
  FOR attempt IN 1 .. 10 LOOP
    IF NOT multi THEN
      EXECUTE pg_catalog.concat(q.locate, CASE WHEN q.locks THEN ' FOR UPDATE OF t' END)
        INTO row_table, row_place, row_condition USING filter, q.operands;
      IF row_place IS NULL AND row_condition IS NULL THEN
        RETURN 0;
      ELSIF q.holds THEN
        EXECUTE pg_catalog.concat('SELECT FROM ', q.source, ' WHERE ', row_condition,
            ' FOR UPDATE OF t');
      END IF;
    END IF;
    EXECUTE pg_catalog.concat('DELETE FROM ', q.source, ' WHERE ', q.conditions, CASE
        WHEN NOT multi THEN ' AND ' OPERATOR(pg_catalog.||) coalesce(q.located, row_condition) END)
      USING filter, q.operands, row_table, row_place;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    EXIT WHEN multi OR q.locks OR deleted OPERATOR(pg_catalog.>) 0;
  END LOOP;
  RETURN deleted;
END
$$;
COMMENT ON FUNCTION collection_delete(regclass, bson, boolean) IS
  'Deletes one document that matches the filter, with multi all of them, and returns their number. '
  'Needs SELECT and DELETE; locks the rows. Errors: 22004 a NULL, those of collection_find';
