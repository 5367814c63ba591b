-- Sorting documents (src/mql/sort_key.c).

CREATE FUNCTION bson_sort_key(doc bson, spec bson) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_sort_key' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bson_sort_key(bson, bson) IS
  'Bytes that sort as documents do by the specification, 1 for ascending and -1 for descending. '
  'Errors: 22023 a bad specification, or fields in different arrays, 0A000';
