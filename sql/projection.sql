-- Projections (src/mql/projection.c).

CREATE FUNCTION bson_project(doc bson, projection bson, filter bson DEFAULT NULL) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_project' LANGUAGE C STABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bson_project(bson, bson, bson) IS
  'The document with the fields that the projection includes or computes. filter is for the '
  'positional operator. Errors: 22023 a bad projection, 0A000 an unknown operator, and those of '
  'expressions';

CREATE FUNCTION bson_project_immutable(doc bson, projection bson, filter bson DEFAULT NULL)
  RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_project_immutable' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bson_project_immutable(bson, bson, bson) IS
  'bson_project for indexes and distributed tables: $$NOW and $rand are errors (0A000)';
