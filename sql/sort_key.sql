-- Sorting documents (src/mql/sort_key.c).

CREATE FUNCTION bson_sort_key(doc bson, spec bson) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_sort_key' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 5;
COMMENT ON FUNCTION bson_sort_key(bson, bson) IS 'bytes that sort as the document does by {"a": 1, "b.c": -1}, descending parts included: ORDER BY bson_sort_key(doc, spec); of an array the least element counts, or the greatest if descending; errors 22023 for a specification that is none and for fields of different arrays; takes no locks';
