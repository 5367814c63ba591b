-- Updates: bson_update (src/mql/update.c).

CREATE FUNCTION bson_update(doc bson, update bson_value, filter bson DEFAULT NULL,
  array_filters bson_value DEFAULT NULL, upsert boolean DEFAULT false) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_update' LANGUAGE C STABLE PARALLEL SAFE COST 2;
COMMENT ON FUNCTION bson_update(bson, bson_value, bson, bson_value, boolean) IS
  'The document after an update; the same datum if nothing changes. filter is the query that found '
  'the document; array_filters are for $[identifier]; with upsert, a NULL document is one to '
  'insert. Errors: 22023 an invalid update, 42804 a field of the wrong type, 22003 out of range, '
  '0A000 an unknown operator, 54000 a limit';

-- bson_build() returns a document.
CREATE FUNCTION bson_update(doc bson, update bson, filter bson DEFAULT NULL,
  array_filters bson_value DEFAULT NULL, upsert boolean DEFAULT false) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_update_document' LANGUAGE C STABLE PARALLEL SAFE COST 2;
COMMENT ON FUNCTION bson_update(bson, bson, bson, bson_value, boolean) IS
  'The same for an update of type bson';

-- A bare literal is resolved as text if a function accepts it, so that it may also be an array of
-- stages.
CREATE FUNCTION bson_update(doc bson, update text, filter bson DEFAULT NULL,
  array_filters bson_value DEFAULT NULL, upsert boolean DEFAULT false) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_update_text' LANGUAGE C STABLE PARALLEL SAFE COST 2;
COMMENT ON FUNCTION bson_update(bson, text, bson, bson_value, boolean) IS
  'The same for an update that is Extended JSON; error 22P02 for invalid text';

CREATE FUNCTION bson_update_immutable(doc bson, update bson_value, filter bson DEFAULT NULL,
  array_filters bson_value DEFAULT NULL, upsert boolean DEFAULT false) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_update_immutable' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 2;
COMMENT ON FUNCTION bson_update_immutable(bson, bson_value, bson, bson_value, boolean) IS
  'bson_update for generated columns and distributed tables: $currentDate, $$NOW and $rand are '
  'errors (0A000)';
