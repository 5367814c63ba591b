-- Builds documents and arrays from SQL values. The functions are in src/bson/build.c and
-- src/bson/merge.c.

CREATE FUNCTION bson_build(VARIADIC "any") RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_build' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bson_build(VARIADIC "any") IS
  'A document of names and values in turn; names are text, values of any type. Errors: 22023 an '
  'odd number of arguments, or a name that is an array, row or document, 22004 a NULL name';

CREATE FUNCTION bson_build() RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_build_empty' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bson_build() IS 'The empty document';

CREATE FUNCTION bson_array(VARIADIC "any") RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_array' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bson_array(VARIADIC "any") IS 'An array of the arguments, each of any type';

CREATE FUNCTION bson_array() RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_array_empty' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION bson_array() IS 'The empty array';

CREATE FUNCTION to_bson(anycompatible) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_to_bson' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION to_bson(anycompatible) IS
  'SQL value of any type as a BSON value; NULL for NULL; error 22003 for a numeric of more than 34 '
  'digits, 22008 for an infinite date';

CREATE FUNCTION row_to_bson(record) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_row_to_bson' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION row_to_bson(record) IS 'A document of the columns of a row, NULL as null';

-- The states of aggregates with arguments of any type: see src/bson/state.h.
CREATE FUNCTION docpatterns.state_serialize(internal) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_state_serialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.state_deserialize(bytea, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_state_deserialize' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION docpatterns.bson_agg_transfn(internal, anycompatible) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_agg_transfn' LANGUAGE C STABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_agg_combinefn(internal, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_agg_combinefn' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_agg_finalfn(internal) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_agg_finalfn' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE AGGREGATE bson_agg(anycompatible) (
  SFUNC = docpatterns.bson_agg_transfn, STYPE = internal, SSPACE = 1024,
  FINALFUNC = docpatterns.bson_agg_finalfn, COMBINEFUNC = docpatterns.bson_agg_combinefn,
  SERIALFUNC = docpatterns.state_serialize, DESERIALFUNC = docpatterns.state_deserialize,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE bson_agg(anycompatible) IS
  'An array of the values of all rows, in the order of the aggregate''s ORDER BY; NULL becomes '
  'null';

CREATE FUNCTION docpatterns.bson_object_agg_transfn(internal, text, anycompatible) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_object_agg_transfn' LANGUAGE C STABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_merge_agg_transfn(internal, bson) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_merge_agg_transfn' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_merge_agg_finalfn(internal) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_merge_agg_finalfn' LANGUAGE C IMMUTABLE PARALLEL SAFE;

CREATE AGGREGATE bson_object_agg(key text, value anycompatible) (
  SFUNC = docpatterns.bson_object_agg_transfn, STYPE = internal, SSPACE = 2048,
  FINALFUNC = docpatterns.bson_merge_agg_finalfn, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bson_object_agg(text, anycompatible) IS
  'A document of names and values of all rows; of a repeated name the last value stays, at the '
  'place of the first. The order of rows counts, so it is never computed in parts. Error: 22004 a '
  'NULL name';

CREATE AGGREGATE bson_merge_agg(bson) (
  SFUNC = docpatterns.bson_merge_agg_transfn, STYPE = internal, SSPACE = 2048,
  FINALFUNC = docpatterns.bson_merge_agg_finalfn, PARALLEL = SAFE
);
COMMENT ON AGGREGATE bson_merge_agg(bson) IS
  'One document with the fields of all; of a repeated name the last value stays, at the place of '
  'the first; NULL is passed over. The order of rows counts, so it is never computed in parts';
