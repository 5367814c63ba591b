-- Expressions of the aggregation language (src/mql/expressionfn.c).

CREATE FUNCTION bson_eval(doc bson, expression bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_eval' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bson_eval(bson, bson_value) IS
  'The value of an expression of the aggregation language for the document, NULL if missing. '
  'Compiled once per query. Errors: 0A000 an unknown operator, 22023 and others of class 22 for '
  'wrong arguments';

CREATE FUNCTION bson_eval_immutable(doc bson, expression bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_eval_immutable' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bson_eval_immutable(bson, bson_value) IS
  'bson_eval for indexes and distributed tables: $$NOW and $rand are errors (0A000)';
