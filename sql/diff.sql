-- How two documents differ (src/bson/diff.h).

CREATE FUNCTION bson_diff(before bson, after bson, OUT path text, OUT old bson_value, OUT new bson_value) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bson_diff' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 10;
COMMENT ON FUNCTION bson_diff(bson, bson) IS
  'a row for each path at which two documents differ, NULL where there is nothing; elements of arrays are compared in order, what was taken away has its old position and everything else the new one; '
  'documents that differ in the order of their members only give one row';

CREATE FUNCTION bson_diff_pack(before bson, after bson) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_diff_pack' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_diff_pack(bson, bson) IS 'a packed difference for bson_diff_apply, NULL if the documents have the same bytes; one pass over both';

CREATE FUNCTION bson_diff_apply(diff bytea, doc bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_diff_apply' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_diff_apply(bytea, bson) IS 'bson_diff_apply(bson_diff_pack(a, b), a) is b, byte for byte; error 22P03 if the bytes are no difference from the document';

CREATE FUNCTION bson_diff_carry(before bson, after bson, onto bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_diff_carry' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_diff_carry(bson, bson, bson) IS
  'the third document with the change made to it that turned the first into the second; what did not change stays as it is there. Members go by name, elements of arrays by being the same, else by position';
