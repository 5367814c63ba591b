-- Updates: bson_update (src/mql/update.c).

CREATE FUNCTION bson_update(doc bson, update bson_value, filter bson DEFAULT NULL, array_filters bson_value DEFAULT NULL, upsert boolean DEFAULT false) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_update' LANGUAGE C STABLE PARALLEL SAFE COST 2;
COMMENT ON FUNCTION bson_update(bson, bson_value, bson, bson_value, boolean) IS 'the document after an update: operators ({$set: ..}), a whole document that takes its place, or an array of stages; the same datum if nothing changes. filter is the query that found the document, for the positional $ and for upserts; array_filters are for $[identifier]; with upsert a NULL document is one to be inserted. Errors: 22023 what is wrong in the update or cannot be applied, 42804 a field of the wrong type, 22003 out of range, 0A000 unknown operators, 54000 limits';

-- What bson_build() makes is a document.
CREATE FUNCTION bson_update(doc bson, update bson, filter bson DEFAULT NULL, array_filters bson_value DEFAULT NULL, upsert boolean DEFAULT false) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_update_document' LANGUAGE C STABLE PARALLEL SAFE COST 2;
COMMENT ON FUNCTION bson_update(bson, bson, bson, bson_value, boolean) IS 'the document after an update that is a document: of operators, or one that takes its place; arguments, result and errors as for an update that is a bson_value';

-- A bare literal is taken for text where a function takes it, so that a literal may also be an array of stages.
CREATE FUNCTION bson_update(doc bson, update text, filter bson DEFAULT NULL, array_filters bson_value DEFAULT NULL, upsert boolean DEFAULT false) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_update_text' LANGUAGE C STABLE PARALLEL SAFE COST 2;
COMMENT ON FUNCTION bson_update(bson, text, bson, bson_value, boolean) IS 'the document after an update that is spelled out in Extended JSON, as a bare literal is; arguments, result and errors as for an update that is a bson_value, and 22P02 for bad text';
