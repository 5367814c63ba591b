-- The GIN operator class bson_ops (src/index).

-- What an index stores (src/index/key.h)
CREATE FUNCTION bson_gin_options(internal) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_bson_gin_options' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_gin_options(internal) IS 'for GIN: the options paths and pairs of bson_ops';
CREATE FUNCTION bson_gin_extract_value(bson, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_gin_extract_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_gin_extract_value(bson, internal) IS 'for GIN: the keys of a document';
CREATE FUNCTION bson_gin_compare(bytea, bytea) RETURNS int
  AS 'MODULE_PATHNAME', 'dp_bson_gin_compare' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_gin_compare(bytea, bytea) IS 'for GIN: the order of keys, byte by byte';

CREATE FUNCTION bson_index_keys(doc bson, paths text DEFAULT NULL, pairs text DEFAULT NULL,
  OUT path text, OUT class text, OUT value bytea, OUT key bytea) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bson_index_keys' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10 ROWS 20;
COMMENT ON FUNCTION bson_index_keys(bson, text, text) IS 'the keys that a GIN index with these options of bson_ops stores for a document, in the order of the index: the path without positions (of a pair with the value of its first part), the class, the bytes of the value in the key, the key; nothing for null; 22023 for bad options; walks the document once, or once for each path and pair';
