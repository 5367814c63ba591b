-- sum, avg, min and max over bson_value. The functions are in src/bson/aggregate.c.

CREATE FUNCTION docpatterns.bson_value_sum_step(bytea, bson_value) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_value_sum_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_value_sum_combine(bytea, bytea) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_value_sum_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_value_sum_final(bytea) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_value_sum_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_value_avg_final(bytea) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_value_avg_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE AGGREGATE sum(bson_value) (
  SFUNC = docpatterns.bson_value_sum_step, STYPE = bytea, SSPACE = 208,
  FINALFUNC = docpatterns.bson_value_sum_final,
  COMBINEFUNC = docpatterns.bson_value_sum_combine, PARALLEL = SAFE
);
COMMENT ON AGGREGATE sum(bson_value) IS 'The sum of the numbers among the values; NULL without any';

CREATE AGGREGATE avg(bson_value) (
  SFUNC = docpatterns.bson_value_sum_step, STYPE = bytea, SSPACE = 208,
  FINALFUNC = docpatterns.bson_value_avg_final,
  COMBINEFUNC = docpatterns.bson_value_sum_combine, PARALLEL = SAFE
);
COMMENT ON AGGREGATE avg(bson_value) IS
  'The average of the numbers among the values: decimal128 if one of them is, otherwise double; '
  'NULL without any';

CREATE FUNCTION docpatterns.bson_value_smaller(bson_value, bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_value_smaller' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_value_larger(bson_value, bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_value_larger' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE AGGREGATE min(bson_value) (
  SFUNC = docpatterns.bson_value_smaller, STYPE = bson_value,
  COMBINEFUNC = docpatterns.bson_value_smaller, SORTOP = <, PARALLEL = SAFE
);
COMMENT ON AGGREGATE min(bson_value) IS
  'The least value in MongoDB''s order across types; an index on the value answers it';

CREATE AGGREGATE max(bson_value) (
  SFUNC = docpatterns.bson_value_larger, STYPE = bson_value,
  COMBINEFUNC = docpatterns.bson_value_larger, SORTOP = >, PARALLEL = SAFE
);
COMMENT ON AGGREGATE max(bson_value) IS
  'The greatest value in MongoDB''s order across types; an index on the value answers it';
