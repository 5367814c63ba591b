-- Projections (src/mql/projection.c).

CREATE FUNCTION bson_project(doc bson, projection bson, filter bson DEFAULT NULL) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_project' LANGUAGE C STABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bson_project(bson, bson, bson) IS 'the document with the fields that a projection leaves or computes, {"a": 1, "b.c": 1}, {"a": 0}, $slice, $elemMatch, "a.$" (which needs the filter), expressions; the same datum if nothing changes; errors 22023 for a bad projection, 0A000 for unknown operators, and those of expressions; takes no locks';
