-- How two documents differ (src/bson/diff.h).

CREATE FUNCTION bson_diff(before bson, after bson, OUT path text, OUT old bson_value,
  OUT new bson_value) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bson_diff' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 10;
COMMENT ON FUNCTION bson_diff(bson, bson) IS
  'A row for each path at which two documents differ, with NULL for an absent value';

CREATE FUNCTION bson_diff_pack(before bson, after bson) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_diff_pack' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_diff_pack(bson, bson) IS
  'A packed difference for bson_diff_apply, NULL if the documents have the same bytes';

CREATE FUNCTION bson_diff_apply(diff bytea, doc bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_diff_apply' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_diff_apply(bytea, bson) IS
  'The document that the difference makes of doc: that of bson_diff_pack(a, b) makes b of a, byte '
  'for byte. Error: 22P03 for bytes that are not a difference from doc';

CREATE FUNCTION bson_diff_carry(before bson, after bson, onto bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_diff_carry' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_diff_carry(bson, bson, bson) IS
  'The third document with the change that leads from the first to the second. Unchanged fields '
  'stay as they are there. Error: 54000';
