-- Containment: @> and <@ (src/bson/contain.c).

CREATE FUNCTION bson_contains(bson, bson) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bson_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2;
COMMENT ON FUNCTION bson_contains(bson, bson) IS 'Whether the left operand contains the right one';
CREATE FUNCTION bson_contained(bson, bson) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bson_contained' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2;
COMMENT ON FUNCTION bson_contained(bson, bson) IS 'Whether the right operand contains the left one';
CREATE FUNCTION bson_contains(bson_value, bson_value) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bson_value_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2;
COMMENT ON FUNCTION bson_contains(bson_value, bson_value) IS
  'Whether the left operand contains the right one';
CREATE FUNCTION bson_contained(bson_value, bson_value) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bson_value_contained' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2;
COMMENT ON FUNCTION bson_contained(bson_value, bson_value) IS
  'Whether the right operand contains the left one';

CREATE OPERATOR @> (LEFTARG = bson, RIGHTARG = bson, FUNCTION = bson_contains,
  COMMUTATOR = OPERATOR(@extschema@.<@), RESTRICT = docpatterns.bson_containsel,
  JOIN = matchingjoinsel);
COMMENT ON OPERATOR @> (bson, bson) IS 'the left document contains the right one';
CREATE OPERATOR <@ (LEFTARG = bson, RIGHTARG = bson, FUNCTION = bson_contained,
  COMMUTATOR = OPERATOR(@extschema@.@>), RESTRICT = docpatterns.bson_containsel,
  JOIN = matchingjoinsel);
COMMENT ON OPERATOR <@ (bson, bson) IS 'the right document contains the left one';
CREATE OPERATOR @> (LEFTARG = bson_value, RIGHTARG = bson_value, FUNCTION = bson_contains,
  COMMUTATOR = OPERATOR(@extschema@.<@), RESTRICT = matchingsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR @> (bson_value, bson_value) IS 'the left value contains the right one';
CREATE OPERATOR <@ (LEFTARG = bson_value, RIGHTARG = bson_value, FUNCTION = bson_contained,
  COMMUTATOR = OPERATOR(@extschema@.@>), RESTRICT = matchingsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR <@ (bson_value, bson_value) IS 'the right value contains the left one';
