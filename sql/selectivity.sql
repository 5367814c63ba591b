-- Estimates for the planner (src/index/stats/): the functions that operators name as RESTRICT and
-- JOIN.

CREATE FUNCTION docpatterns.bson_matchsel(internal, oid, internal, int4) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_bson_matchsel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_matchsel(internal, oid, internal, int4) IS
  'for the planner: the selectivity of a filter, from the statistics of paths that ANALYZE '
  'collects';
CREATE FUNCTION docpatterns.bson_containsel(internal, oid, internal, int4) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_bson_containsel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_containsel(internal, oid, internal, int4) IS
  'for the planner: which share of the rows contains a document';
CREATE FUNCTION docpatterns.bson_existssel(internal, oid, internal, int4) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_bson_existssel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_existssel(internal, oid, internal, int4) IS
  'for the planner: which share of the rows has a path';

-- Comparisons of a bson_value, with another one or with a SQL value. They return the estimates of
-- PostgreSQL's own functions unless one side is doc -> 'path' and there are statistics about the
-- documents.
CREATE FUNCTION docpatterns.bson_value_eqsel(internal, oid, internal, int4) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_bson_value_eqsel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_value_eqsel(internal, oid, internal, int4) IS
  'for the planner: in which share of the rows a field equals a value';
CREATE FUNCTION docpatterns.bson_value_neqsel(internal, oid, internal, int4) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_bson_value_neqsel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_value_neqsel(internal, oid, internal, int4) IS
  'for the planner: in which share of the rows a field differs from a value';
CREATE FUNCTION docpatterns.bson_value_ltsel(internal, oid, internal, int4) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_bson_value_ltsel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_value_ltsel(internal, oid, internal, int4) IS
  'for the planner: in which share of the rows a field is less than a value';
CREATE FUNCTION docpatterns.bson_value_lesel(internal, oid, internal, int4) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_bson_value_lesel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_value_lesel(internal, oid, internal, int4) IS
  'for the planner: in which share of the rows a field is at most a value';
CREATE FUNCTION docpatterns.bson_value_gtsel(internal, oid, internal, int4) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_bson_value_gtsel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_value_gtsel(internal, oid, internal, int4) IS
  'for the planner: in which share of the rows a field is greater than a value';
CREATE FUNCTION docpatterns.bson_value_gesel(internal, oid, internal, int4) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_bson_value_gesel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_value_gesel(internal, oid, internal, int4) IS
  'for the planner: in which share of the rows a field is at least a value';
CREATE FUNCTION docpatterns.bson_value_eqjoinsel(internal, oid, internal, int2, internal)
  RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_bson_value_eqjoinsel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_value_eqjoinsel(internal, oid, internal, int2, internal) IS
  'for the planner: which share of the pairs of rows have equal fields';
CREATE FUNCTION docpatterns.bson_value_neqjoinsel(internal, oid, internal, int2, internal)
  RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_bson_value_neqjoinsel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_value_neqjoinsel(internal, oid, internal, int2, internal) IS
  'for the planner: which share of the pairs of rows have different fields';

-- Conditions on the text of a field (src/index/text_condition.c): operators for those from which
-- another condition follows that has the estimate, and the values of a text.
CREATE FUNCTION docpatterns._text_sel(internal, oid, internal, int4) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_text_sel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._text_sel(internal, oid, internal, int4) IS
  'for the planner: a condition that another one estimates';
CREATE OPERATOR docpatterns.= (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_catalog.texteq,
  RESTRICT = docpatterns._text_sel);
COMMENT ON OPERATOR docpatterns.= (text, text) IS 'internal: equal, in plans';
CREATE OPERATOR docpatterns.~~ (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_catalog.textlike,
  RESTRICT = docpatterns._text_sel);
COMMENT ON OPERATOR docpatterns.~~ (text, text) IS 'internal: LIKE, in plans';
CREATE FUNCTION docpatterns._text_values(value text) RETURNS bson_value[]
  AS 'MODULE_PATHNAME', 'dp_text_values' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._text_values(text) IS
  'internal: values such that each value that ->> shows as the text equals one of them';
CREATE FUNCTION docpatterns._text_values(value text[]) RETURNS bson_value[]
  AS 'MODULE_PATHNAME', 'dp_texts_values' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._text_values(text[]) IS 'internal: the same for several texts';
