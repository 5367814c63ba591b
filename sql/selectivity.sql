-- Estimates for the planner (src/index/selectivity*.c): the functions that operators name as RESTRICT and JOIN. Nobody calls
-- them but the planner.

CREATE FUNCTION bson_matchsel(internal, oid, internal, int4) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_bson_matchsel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_matchsel(internal, oid, internal, int4) IS 'for the planner: which share of the rows a filter keeps, from the statistics that ANALYZE collects path by path';
CREATE FUNCTION bson_containsel(internal, oid, internal, int4) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_bson_containsel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_containsel(internal, oid, internal, int4) IS 'for the planner: which share of the rows contains a document';
CREATE FUNCTION bson_existssel(internal, oid, internal, int4) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_bson_existssel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_existssel(internal, oid, internal, int4) IS 'for the planner: which share of the rows has a path';
