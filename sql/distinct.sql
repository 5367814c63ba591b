-- Sketches of distinct values (HyperLogLog). The functions are in src/bson/distinctfn.c.

CREATE FUNCTION docpatterns.bson_distinct_step(internal, anycompatible) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_distinct_step' LANGUAGE C STABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_distinct_step(bytea, bson_value) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_distinct_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_distinct_step(bytea, text) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_distinct_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_distinct_merge_step(bytea, bson_value) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_distinct_merge_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_distinct_combine(bytea, bytea) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_distinct_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_distinct_combine(internal, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_distinct_combine' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_distinct_final(bytea) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_distinct_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_distinct_final(internal) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_distinct_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE AGGREGATE bson_distinct_agg(anycompatible) (
  SFUNC = docpatterns.bson_distinct_step, STYPE = internal, SSPACE = 2100,
  FINALFUNC = docpatterns.bson_distinct_final,
  COMBINEFUNC = docpatterns.bson_distinct_combine, SERIALFUNC = docpatterns.state_serialize,
  DESERIALFUNC = docpatterns.state_deserialize, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bson_distinct_agg(anycompatible) IS
  'A sketch of the distinct values; without rows an empty one';

CREATE AGGREGATE bson_distinct_agg(bson_value) (
  SFUNC = docpatterns.bson_distinct_step, STYPE = bytea, SSPACE = 2100,
  FINALFUNC = docpatterns.bson_distinct_final,
  COMBINEFUNC = docpatterns.bson_distinct_combine, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bson_distinct_agg(bson_value) IS
  'The same, which Citus computes on its shards';

-- Without it, PostgreSQL could not choose between the others for an argument without a type.
CREATE AGGREGATE bson_distinct_agg(text) (
  SFUNC = docpatterns.bson_distinct_step, STYPE = bytea, SSPACE = 2100,
  FINALFUNC = docpatterns.bson_distinct_final,
  COMBINEFUNC = docpatterns.bson_distinct_combine, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bson_distinct_agg(text) IS 'The same, which Citus computes on its shards';

CREATE AGGREGATE bson_distinct_merge_agg(bson_value) (
  SFUNC = docpatterns.bson_distinct_merge_step, STYPE = bytea, SSPACE = 2100,
  FINALFUNC = docpatterns.bson_distinct_final,
  COMBINEFUNC = docpatterns.bson_distinct_combine, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bson_distinct_merge_agg(bson_value) IS
  'One sketch of the values of all sketches; NULL and null are empty ones. Errors: 22023 not a '
  'sketch, XX001 a damaged one';

CREATE FUNCTION bson_distinct_add(sketch bson_value, value anycompatible) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_distinct_add' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bson_distinct_add(bson_value, anycompatible) IS
  'The sketch with one more value; NULL and null sketches are empty, a NULL value adds nothing. '
  'Errors: 22023 not a sketch, XX001 a damaged one';

CREATE FUNCTION bson_distinct_merge(a bson_value, b bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_distinct_merge' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bson_distinct_merge(bson_value, bson_value) IS
  'One sketch of the values of both; NULL and null are empty ones. Errors: 22023 not a sketch, '
  'XX001 a damaged one';

CREATE FUNCTION bson_distinct_count(sketch bson_value) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_bson_distinct_count' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_distinct_count(bson_value) IS
  'The approximate number of distinct values; NULL for NULL, 0 for null. Errors: 22023 not a '
  'sketch, XX001 a damaged one';
