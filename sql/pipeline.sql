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

-- The languages with a document of variables, which may differ from row to row: compiled once per
-- query. NULL without a document; let may be NULL. A "$$name" that the specification does not define
-- is looked up in let when it is evaluated: error 22023 if it is not there (so the compiler of
-- pipelines need not know the names, and may check them). $$NOW is the transaction's time.
-- $$USER_ROLES, $$CLUSTER_TIME and $$SEARCH_META are error 0A000.

-- The variables of a stage for the next level: _let(doc, '{x: "$a"}', outer let). Inner ones hide
-- outer ones; a missing value stays missing (bson_build would make it null).
CREATE FUNCTION docpatterns._let(doc bson, variables bson, let bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pipeline_let' LANGUAGE C STABLE PARALLEL SAFE COST 10;

CREATE FUNCTION docpatterns._eval(doc bson, expression bson_value, let bson) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_eval' LANGUAGE C STABLE PARALLEL SAFE COST 10;

-- Filters with $expr that has variables or $$NOW. No index serves it: conditions that have none
-- belong into @@.
CREATE FUNCTION docpatterns._match(doc bson, filter bson, let bson) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_pipeline_match' LANGUAGE C STABLE PARALLEL SAFE COST 2;

-- $project, and the stages $set $addFields $unset $project $replaceRoot $replaceWith in an array.
-- Other than bson_project and bson_update: no $slice: n, $elemMatch and positional operator of
-- queries, and _id may change or go. Use them without variables, too (let NULL).
CREATE FUNCTION docpatterns._project(doc bson, spec bson, let bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pipeline_project' LANGUAGE C STABLE PARALLEL SAFE COST 10;
CREATE FUNCTION docpatterns._update(doc bson, stages bson_value, let bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pipeline_update' LANGUAGE C STABLE PARALLEL SAFE COST 2;

-- NULL if the document is pruned: the stage is a subquery with WHERE .. IS NOT NULL.
CREATE FUNCTION docpatterns._redact(doc bson, expression bson_value, let bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pipeline_redact' LANGUAGE C STABLE PARALLEL SAFE COST 10;
