-- Documents as rows. The functions are in src/bson/srf.c and src/bson/record.c.

CREATE FUNCTION bson_each(doc bson, OUT key text, OUT value bson_value) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bson_each' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 ROWS 20;
COMMENT ON FUNCTION bson_each(bson) IS 'A row for each field of the document, in order';

CREATE FUNCTION bson_keys(doc bson) RETURNS SETOF text
  AS 'MODULE_PATHNAME', 'dp_bson_keys' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 ROWS 20;
COMMENT ON FUNCTION bson_keys(bson) IS 'The names of the document''s fields, in order';

CREATE FUNCTION bson_elements(value bson_value) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_elements' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 ROWS
    100;
COMMENT ON FUNCTION bson_elements(bson_value) IS
  'The elements of an array, in order; none for null. Error: 22023 another value';

CREATE FUNCTION bson_unwind(doc bson, path text, preserve_empty boolean DEFAULT false,
  index_field text DEFAULT NULL)
  RETURNS SETOF bson
  AS 'MODULE_PATHNAME', 'dp_bson_unwind' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10 ROWS 100;
COMMENT ON FUNCTION bson_unwind(bson, text, boolean, text) IS
  'The document once for each element of the array at the path, with the element in its place. A '
  'value that is not an array counts as one element. A field that is missing, null or an empty '
  'array gives no row, or with preserve_empty the document without it. index_field is the path for '
  'the position (int64 from 0, null without an array). Error: 22023 a malformed path';

CREATE FUNCTION bson_populate_record(base anyelement, doc bson) RETURNS anyelement
  AS 'MODULE_PATHNAME', 'dp_bson_populate_record' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bson_populate_record(anyelement, bson) IS
  'The row base with the columns replaced that the document has fields for; with NULL::table as '
  'base the others are NULL. Errors: 22023, 22003, 22008 with the field in the context';

CREATE FUNCTION bson_populate_recordset(base anyelement, documents bson_value)
  RETURNS SETOF anyelement
  AS 'MODULE_PATHNAME', 'dp_bson_populate_recordset' LANGUAGE C STABLE PARALLEL SAFE ROWS 100;
COMMENT ON FUNCTION bson_populate_recordset(anyelement, bson_value) IS
  'bson_populate_record for each document of an array. Error: 22023 not an array of documents';

CREATE FUNCTION bson_to_record(doc bson) RETURNS record
  AS 'MODULE_PATHNAME', 'dp_bson_to_record' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_to_record(bson) IS
  'The fields of the document that the query names as columns. Errors as bson_populate_record';

CREATE FUNCTION bson_to_recordset(documents bson_value) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bson_to_recordset' LANGUAGE C STABLE STRICT PARALLEL SAFE ROWS 100;
COMMENT ON FUNCTION bson_to_recordset(bson_value) IS
  'bson_to_record for each document of an array. Error: 22023 not an array of documents';
