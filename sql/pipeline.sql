-- Aggregation pipelines as SQL (src/mql/pipeline/).

CREATE FUNCTION docpatterns._int(n bigint) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_int' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._int(bigint) IS 'internal: an int32 if it fits, else an int64';

CREATE FUNCTION collection_aggregate(rel regclass, pipeline bson_value, let bson DEFAULT NULL)
  RETURNS SETOF bson
  AS 'MODULE_PATHNAME', 'dp_collection_aggregate' LANGUAGE C VOLATILE COST 1000;
COMMENT ON FUNCTION collection_aggregate(regclass, bson_value, bson) IS
  'The result of an aggregation pipeline, an array of stages, on the documents of a relation '
  '(NULL: on none), computed by the SQL that collection_aggregate_sql() returns. let has variables. '
  'Needs SELECT. Errors: 22023 a bad specification, 0A000 an unknown stage or operator';

CREATE FUNCTION collection_aggregate_sql(rel regclass, pipeline bson_value, let bson DEFAULT NULL)
  RETURNS text
  AS 'MODULE_PATHNAME', 'dp_collection_aggregate_sql' LANGUAGE C STABLE;
COMMENT ON FUNCTION collection_aggregate_sql(regclass, bson_value, bson) IS
  'The query of an aggregation pipeline, without its last semicolon. Errors as '
  'collection_aggregate';
