-- Order, equality and hashing of bson and bson_value, and comparison of bson_value with SQL values. The functions are in
-- src/bson/compare.c, hash.c, operators.c and operators_cross.c.
--
-- There is no equalimage support function, so a btree does not deduplicate: 1 and 1.0 are equal but not the same bytes.

-- bson_value
CREATE FUNCTION bson_value_lt(bson_value, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_le(bson_value, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_eq(bson_value, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_ne(bson_value, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_ge(bson_value, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_gt(bson_value, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_cmp(bson_value, bson_value) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_value_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_hash(bson_value) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_value_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_hash_extended(bson_value, int8) RETURNS int8
  AS 'MODULE_PATHNAME', 'dp_bson_value_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_sortsupport(internal) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_bson_value_sortsupport' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR < (LEFTARG = bson_value, RIGHTARG = bson_value, FUNCTION = bson_value_lt,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = bson_value, RIGHTARG = bson_value, FUNCTION = bson_value_le,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = bson_value, RIGHTARG = bson_value, FUNCTION = bson_value_eq,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES, MERGES);
CREATE OPERATOR <> (LEFTARG = bson_value, RIGHTARG = bson_value, FUNCTION = bson_value_ne,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = bson_value, RIGHTARG = bson_value, FUNCTION = bson_value_ge,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = bson_value, RIGHTARG = bson_value, FUNCTION = bson_value_gt,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);

CREATE OPERATOR CLASS bson_value_ops DEFAULT FOR TYPE bson_value USING btree AS
  OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
  FUNCTION 1 bson_value_cmp(bson_value, bson_value),
  FUNCTION 2 bson_value_sortsupport(internal);
CREATE OPERATOR CLASS bson_value_ops DEFAULT FOR TYPE bson_value USING hash AS
  OPERATOR 1 =,
  FUNCTION 1 bson_value_hash(bson_value),
  FUNCTION 2 bson_value_hash_extended(bson_value, int8);

COMMENT ON FUNCTION bson_value_cmp(bson_value, bson_value) IS 'compares two values in MongoDB''s order: less than, equal to or greater than 0';
COMMENT ON FUNCTION bson_value_hash(bson_value) IS 'hash of 32 bits; equal values have equal hashes, which never change';
COMMENT ON FUNCTION bson_value_hash_extended(bson_value, int8) IS 'hash of 64 bits with a seed; equal values have equal hashes, which never change';
COMMENT ON OPERATOR CLASS bson_value_ops USING btree IS 'MongoDB''s order';
COMMENT ON OPERATOR CLASS bson_value_ops USING hash IS 'equality in MongoDB''s order';

-- bson
CREATE FUNCTION bson_lt(bson, bson) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_le(bson, bson) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_eq(bson, bson) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_ne(bson, bson) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_ge(bson, bson) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_gt(bson, bson) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_cmp(bson, bson) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_hash(bson) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_hash_extended(bson, int8) RETURNS int8
  AS 'MODULE_PATHNAME', 'dp_bson_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_sortsupport(internal) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_bson_sortsupport' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR < (LEFTARG = bson, RIGHTARG = bson, FUNCTION = bson_lt,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = bson, RIGHTARG = bson, FUNCTION = bson_le,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = bson, RIGHTARG = bson, FUNCTION = bson_eq,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR <> (LEFTARG = bson, RIGHTARG = bson, FUNCTION = bson_ne,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR >= (LEFTARG = bson, RIGHTARG = bson, FUNCTION = bson_ge,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = bson, RIGHTARG = bson, FUNCTION = bson_gt,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);

CREATE OPERATOR CLASS bson_ops DEFAULT FOR TYPE bson USING btree AS
  OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
  FUNCTION 1 bson_cmp(bson, bson),
  FUNCTION 2 bson_sortsupport(internal);
CREATE OPERATOR CLASS bson_ops DEFAULT FOR TYPE bson USING hash AS
  OPERATOR 1 =,
  FUNCTION 1 bson_hash(bson),
  FUNCTION 2 bson_hash_extended(bson, int8);

COMMENT ON FUNCTION bson_cmp(bson, bson) IS 'compares two documents in MongoDB''s order: less than, equal to or greater than 0';
COMMENT ON FUNCTION bson_hash(bson) IS 'hash of 32 bits; equal documents have equal hashes, which never change';
COMMENT ON FUNCTION bson_hash_extended(bson, int8) IS 'hash of 64 bits with a seed; equal documents have equal hashes, which never change';
COMMENT ON OPERATOR CLASS bson_ops USING btree IS 'MongoDB''s order';
COMMENT ON OPERATOR CLASS bson_ops USING hash IS 'equality in MongoDB''s order';

-- bson_value beside SQL values. Each type has the six operators in both directions and joins both operator families, so
-- that an index on (doc -> 'price') serves doc -> 'price' > 5. No cast leads from a SQL type to bson_value implicitly.
--
-- The families are not complete: text and int4, for example, meet in them but cannot be compared with each other. The
-- planner allows for that as long as the operators are not marked MERGES. Each type has besides its own order (btree, for
-- = ANY) and its own equality and hash (hash, for joins). That equality is called =#=, so that no query that does not ask
-- for it can mean it.

-- While a query is planned, a constant of such a type becomes a bson_value, if one equals it exactly (operators_plan.c).

CREATE FUNCTION bson_value_lt_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_value_lt_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_le_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_value_le_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_eq_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_value_eq_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_ne_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_value_ne_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_ge_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_value_ge_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_gt_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_value_gt_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

-- int2
CREATE FUNCTION bson_value_lt_int2(bson_value, int2) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_lt_int2' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION bson_value_le_int2(bson_value, int2) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_le_int2' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION bson_value_eq_int2(bson_value, int2) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_eq_int2' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION bson_value_ne_int2(bson_value, int2) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ne_int2' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION bson_value_ge_int2(bson_value, int2) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ge_int2' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION bson_value_gt_int2(bson_value, int2) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_gt_int2' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION int2_lt_bson_value(int2, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int2_lt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION int2_le_bson_value(int2, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int2_le_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION int2_eq_bson_value(int2, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int2_eq_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION int2_ne_bson_value(int2, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int2_ne_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION int2_ge_bson_value(int2, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int2_ge_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION int2_gt_bson_value(int2, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int2_gt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION bson_value_cmp_int2(bson_value, int2) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_value_cmp_int2' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION int2_cmp_bson_value(int2, bson_value) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_int2_cmp_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION int2_bson_hash(int2) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_int2_bson_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION int2_bson_hash_extended(int2, int8) RETURNS int8
  AS 'MODULE_PATHNAME', 'dp_int2_bson_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR < (LEFTARG = bson_value, RIGHTARG = int2, FUNCTION = bson_value_lt_int2,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = bson_value, RIGHTARG = int2, FUNCTION = bson_value_le_int2,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = bson_value, RIGHTARG = int2, FUNCTION = bson_value_eq_int2,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = bson_value, RIGHTARG = int2, FUNCTION = bson_value_ne_int2,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = bson_value, RIGHTARG = int2, FUNCTION = bson_value_ge_int2,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = bson_value, RIGHTARG = int2, FUNCTION = bson_value_gt_int2,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR < (LEFTARG = int2, RIGHTARG = bson_value, FUNCTION = int2_lt_bson_value,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = int2, RIGHTARG = bson_value, FUNCTION = int2_le_bson_value,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = int2, RIGHTARG = bson_value, FUNCTION = int2_eq_bson_value,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = int2, RIGHTARG = bson_value, FUNCTION = int2_ne_bson_value,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = int2, RIGHTARG = bson_value, FUNCTION = int2_ge_bson_value,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = int2, RIGHTARG = bson_value, FUNCTION = int2_gt_bson_value,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR =#= (LEFTARG = int2, RIGHTARG = int2, FUNCTION = pg_catalog.int2eq,
  COMMUTATOR = =#=, RESTRICT = eqsel, JOIN = eqjoinsel);
ALTER OPERATOR FAMILY bson_value_ops USING btree ADD
  OPERATOR 1 < (bson_value, int2),
  OPERATOR 2 <= (bson_value, int2),
  OPERATOR 3 = (bson_value, int2),
  OPERATOR 4 >= (bson_value, int2),
  OPERATOR 5 > (bson_value, int2),
  OPERATOR 1 < (int2, bson_value),
  OPERATOR 2 <= (int2, bson_value),
  OPERATOR 3 = (int2, bson_value),
  OPERATOR 4 >= (int2, bson_value),
  OPERATOR 5 > (int2, bson_value),
  FUNCTION 1 (bson_value, int2) bson_value_cmp_int2(bson_value, int2),
  FUNCTION 1 (int2, bson_value) int2_cmp_bson_value(int2, bson_value),
  FUNCTION 1 (int2, int2) pg_catalog.btint2cmp(int2, int2);
ALTER OPERATOR FAMILY bson_value_ops USING hash ADD
  OPERATOR 1 = (bson_value, int2),
  OPERATOR 1 = (int2, bson_value),
  OPERATOR 1 =#= (int2, int2),
  FUNCTION 1 (int2, int2) int2_bson_hash(int2),
  FUNCTION 2 (int2, int2) int2_bson_hash_extended(int2, int8);

-- int4
CREATE FUNCTION bson_value_lt_int4(bson_value, int4) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_lt_int4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION bson_value_le_int4(bson_value, int4) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_le_int4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION bson_value_eq_int4(bson_value, int4) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_eq_int4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION bson_value_ne_int4(bson_value, int4) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ne_int4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION bson_value_ge_int4(bson_value, int4) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ge_int4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION bson_value_gt_int4(bson_value, int4) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_gt_int4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION int4_lt_bson_value(int4, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int4_lt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION int4_le_bson_value(int4, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int4_le_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION int4_eq_bson_value(int4, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int4_eq_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION int4_ne_bson_value(int4, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int4_ne_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION int4_ge_bson_value(int4, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int4_ge_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION int4_gt_bson_value(int4, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int4_gt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION bson_value_cmp_int4(bson_value, int4) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_value_cmp_int4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION int4_cmp_bson_value(int4, bson_value) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_int4_cmp_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION int4_bson_hash(int4) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_int4_bson_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION int4_bson_hash_extended(int4, int8) RETURNS int8
  AS 'MODULE_PATHNAME', 'dp_int4_bson_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR < (LEFTARG = bson_value, RIGHTARG = int4, FUNCTION = bson_value_lt_int4,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = bson_value, RIGHTARG = int4, FUNCTION = bson_value_le_int4,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = bson_value, RIGHTARG = int4, FUNCTION = bson_value_eq_int4,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = bson_value, RIGHTARG = int4, FUNCTION = bson_value_ne_int4,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = bson_value, RIGHTARG = int4, FUNCTION = bson_value_ge_int4,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = bson_value, RIGHTARG = int4, FUNCTION = bson_value_gt_int4,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR < (LEFTARG = int4, RIGHTARG = bson_value, FUNCTION = int4_lt_bson_value,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = int4, RIGHTARG = bson_value, FUNCTION = int4_le_bson_value,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = int4, RIGHTARG = bson_value, FUNCTION = int4_eq_bson_value,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = int4, RIGHTARG = bson_value, FUNCTION = int4_ne_bson_value,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = int4, RIGHTARG = bson_value, FUNCTION = int4_ge_bson_value,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = int4, RIGHTARG = bson_value, FUNCTION = int4_gt_bson_value,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR =#= (LEFTARG = int4, RIGHTARG = int4, FUNCTION = pg_catalog.int4eq,
  COMMUTATOR = =#=, RESTRICT = eqsel, JOIN = eqjoinsel);
ALTER OPERATOR FAMILY bson_value_ops USING btree ADD
  OPERATOR 1 < (bson_value, int4),
  OPERATOR 2 <= (bson_value, int4),
  OPERATOR 3 = (bson_value, int4),
  OPERATOR 4 >= (bson_value, int4),
  OPERATOR 5 > (bson_value, int4),
  OPERATOR 1 < (int4, bson_value),
  OPERATOR 2 <= (int4, bson_value),
  OPERATOR 3 = (int4, bson_value),
  OPERATOR 4 >= (int4, bson_value),
  OPERATOR 5 > (int4, bson_value),
  FUNCTION 1 (bson_value, int4) bson_value_cmp_int4(bson_value, int4),
  FUNCTION 1 (int4, bson_value) int4_cmp_bson_value(int4, bson_value),
  FUNCTION 1 (int4, int4) pg_catalog.btint4cmp(int4, int4);
ALTER OPERATOR FAMILY bson_value_ops USING hash ADD
  OPERATOR 1 = (bson_value, int4),
  OPERATOR 1 = (int4, bson_value),
  OPERATOR 1 =#= (int4, int4),
  FUNCTION 1 (int4, int4) int4_bson_hash(int4),
  FUNCTION 2 (int4, int4) int4_bson_hash_extended(int4, int8);

-- int8
CREATE FUNCTION bson_value_lt_int8(bson_value, int8) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_lt_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION bson_value_le_int8(bson_value, int8) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_le_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION bson_value_eq_int8(bson_value, int8) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_eq_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION bson_value_ne_int8(bson_value, int8) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ne_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION bson_value_ge_int8(bson_value, int8) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ge_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION bson_value_gt_int8(bson_value, int8) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_gt_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION int8_lt_bson_value(int8, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int8_lt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION int8_le_bson_value(int8, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int8_le_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION int8_eq_bson_value(int8, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int8_eq_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION int8_ne_bson_value(int8, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int8_ne_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION int8_ge_bson_value(int8, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int8_ge_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION int8_gt_bson_value(int8, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_int8_gt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION bson_value_cmp_int8(bson_value, int8) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_value_cmp_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION int8_cmp_bson_value(int8, bson_value) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_int8_cmp_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION int8_bson_hash(int8) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_int8_bson_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION int8_bson_hash_extended(int8, int8) RETURNS int8
  AS 'MODULE_PATHNAME', 'dp_int8_bson_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR < (LEFTARG = bson_value, RIGHTARG = int8, FUNCTION = bson_value_lt_int8,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = bson_value, RIGHTARG = int8, FUNCTION = bson_value_le_int8,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = bson_value, RIGHTARG = int8, FUNCTION = bson_value_eq_int8,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = bson_value, RIGHTARG = int8, FUNCTION = bson_value_ne_int8,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = bson_value, RIGHTARG = int8, FUNCTION = bson_value_ge_int8,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = bson_value, RIGHTARG = int8, FUNCTION = bson_value_gt_int8,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR < (LEFTARG = int8, RIGHTARG = bson_value, FUNCTION = int8_lt_bson_value,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = int8, RIGHTARG = bson_value, FUNCTION = int8_le_bson_value,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = int8, RIGHTARG = bson_value, FUNCTION = int8_eq_bson_value,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = int8, RIGHTARG = bson_value, FUNCTION = int8_ne_bson_value,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = int8, RIGHTARG = bson_value, FUNCTION = int8_ge_bson_value,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = int8, RIGHTARG = bson_value, FUNCTION = int8_gt_bson_value,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR =#= (LEFTARG = int8, RIGHTARG = int8, FUNCTION = pg_catalog.int8eq,
  COMMUTATOR = =#=, RESTRICT = eqsel, JOIN = eqjoinsel);
ALTER OPERATOR FAMILY bson_value_ops USING btree ADD
  OPERATOR 1 < (bson_value, int8),
  OPERATOR 2 <= (bson_value, int8),
  OPERATOR 3 = (bson_value, int8),
  OPERATOR 4 >= (bson_value, int8),
  OPERATOR 5 > (bson_value, int8),
  OPERATOR 1 < (int8, bson_value),
  OPERATOR 2 <= (int8, bson_value),
  OPERATOR 3 = (int8, bson_value),
  OPERATOR 4 >= (int8, bson_value),
  OPERATOR 5 > (int8, bson_value),
  FUNCTION 1 (bson_value, int8) bson_value_cmp_int8(bson_value, int8),
  FUNCTION 1 (int8, bson_value) int8_cmp_bson_value(int8, bson_value),
  FUNCTION 1 (int8, int8) pg_catalog.btint8cmp(int8, int8);
ALTER OPERATOR FAMILY bson_value_ops USING hash ADD
  OPERATOR 1 = (bson_value, int8),
  OPERATOR 1 = (int8, bson_value),
  OPERATOR 1 =#= (int8, int8),
  FUNCTION 1 (int8, int8) int8_bson_hash(int8),
  FUNCTION 2 (int8, int8) int8_bson_hash_extended(int8, int8);

-- float4
CREATE FUNCTION bson_value_lt_float4(bson_value, float4) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_lt_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION bson_value_le_float4(bson_value, float4) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_le_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION bson_value_eq_float4(bson_value, float4) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_eq_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION bson_value_ne_float4(bson_value, float4) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ne_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION bson_value_ge_float4(bson_value, float4) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ge_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION bson_value_gt_float4(bson_value, float4) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_gt_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION float4_lt_bson_value(float4, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_float4_lt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION float4_le_bson_value(float4, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_float4_le_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION float4_eq_bson_value(float4, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_float4_eq_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION float4_ne_bson_value(float4, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_float4_ne_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION float4_ge_bson_value(float4, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_float4_ge_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION float4_gt_bson_value(float4, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_float4_gt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION bson_value_cmp_float4(bson_value, float4) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_value_cmp_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION float4_cmp_bson_value(float4, bson_value) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_float4_cmp_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION float4_bson_cmp(float4, float4) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_float4_bson_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION float4_bson_hash(float4) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_float4_bson_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION float4_bson_hash_extended(float4, int8) RETURNS int8
  AS 'MODULE_PATHNAME', 'dp_float4_bson_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR < (LEFTARG = bson_value, RIGHTARG = float4, FUNCTION = bson_value_lt_float4,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = bson_value, RIGHTARG = float4, FUNCTION = bson_value_le_float4,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = bson_value, RIGHTARG = float4, FUNCTION = bson_value_eq_float4,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = bson_value, RIGHTARG = float4, FUNCTION = bson_value_ne_float4,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = bson_value, RIGHTARG = float4, FUNCTION = bson_value_ge_float4,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = bson_value, RIGHTARG = float4, FUNCTION = bson_value_gt_float4,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR < (LEFTARG = float4, RIGHTARG = bson_value, FUNCTION = float4_lt_bson_value,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = float4, RIGHTARG = bson_value, FUNCTION = float4_le_bson_value,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = float4, RIGHTARG = bson_value, FUNCTION = float4_eq_bson_value,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = float4, RIGHTARG = bson_value, FUNCTION = float4_ne_bson_value,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = float4, RIGHTARG = bson_value, FUNCTION = float4_ge_bson_value,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = float4, RIGHTARG = bson_value, FUNCTION = float4_gt_bson_value,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR =#= (LEFTARG = float4, RIGHTARG = float4, FUNCTION = pg_catalog.float4eq,
  COMMUTATOR = =#=, RESTRICT = eqsel, JOIN = eqjoinsel);
ALTER OPERATOR FAMILY bson_value_ops USING btree ADD
  OPERATOR 1 < (bson_value, float4),
  OPERATOR 2 <= (bson_value, float4),
  OPERATOR 3 = (bson_value, float4),
  OPERATOR 4 >= (bson_value, float4),
  OPERATOR 5 > (bson_value, float4),
  OPERATOR 1 < (float4, bson_value),
  OPERATOR 2 <= (float4, bson_value),
  OPERATOR 3 = (float4, bson_value),
  OPERATOR 4 >= (float4, bson_value),
  OPERATOR 5 > (float4, bson_value),
  FUNCTION 1 (bson_value, float4) bson_value_cmp_float4(bson_value, float4),
  FUNCTION 1 (float4, bson_value) float4_cmp_bson_value(float4, bson_value),
  FUNCTION 1 (float4, float4) float4_bson_cmp(float4, float4);
ALTER OPERATOR FAMILY bson_value_ops USING hash ADD
  OPERATOR 1 = (bson_value, float4),
  OPERATOR 1 = (float4, bson_value),
  OPERATOR 1 =#= (float4, float4),
  FUNCTION 1 (float4, float4) float4_bson_hash(float4),
  FUNCTION 2 (float4, float4) float4_bson_hash_extended(float4, int8);

-- float8
CREATE FUNCTION bson_value_lt_float8(bson_value, float8) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_lt_float8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION bson_value_le_float8(bson_value, float8) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_le_float8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION bson_value_eq_float8(bson_value, float8) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_eq_float8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION bson_value_ne_float8(bson_value, float8) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ne_float8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION bson_value_ge_float8(bson_value, float8) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ge_float8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION bson_value_gt_float8(bson_value, float8) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_gt_float8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION float8_lt_bson_value(float8, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_float8_lt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION float8_le_bson_value(float8, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_float8_le_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION float8_eq_bson_value(float8, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_float8_eq_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION float8_ne_bson_value(float8, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_float8_ne_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION float8_ge_bson_value(float8, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_float8_ge_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION float8_gt_bson_value(float8, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_float8_gt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION bson_value_cmp_float8(bson_value, float8) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_value_cmp_float8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION float8_cmp_bson_value(float8, bson_value) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_float8_cmp_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION float8_bson_cmp(float8, float8) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_float8_bson_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION float8_bson_hash(float8) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_float8_bson_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION float8_bson_hash_extended(float8, int8) RETURNS int8
  AS 'MODULE_PATHNAME', 'dp_float8_bson_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR < (LEFTARG = bson_value, RIGHTARG = float8, FUNCTION = bson_value_lt_float8,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = bson_value, RIGHTARG = float8, FUNCTION = bson_value_le_float8,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = bson_value, RIGHTARG = float8, FUNCTION = bson_value_eq_float8,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = bson_value, RIGHTARG = float8, FUNCTION = bson_value_ne_float8,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = bson_value, RIGHTARG = float8, FUNCTION = bson_value_ge_float8,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = bson_value, RIGHTARG = float8, FUNCTION = bson_value_gt_float8,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR < (LEFTARG = float8, RIGHTARG = bson_value, FUNCTION = float8_lt_bson_value,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = float8, RIGHTARG = bson_value, FUNCTION = float8_le_bson_value,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = float8, RIGHTARG = bson_value, FUNCTION = float8_eq_bson_value,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = float8, RIGHTARG = bson_value, FUNCTION = float8_ne_bson_value,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = float8, RIGHTARG = bson_value, FUNCTION = float8_ge_bson_value,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = float8, RIGHTARG = bson_value, FUNCTION = float8_gt_bson_value,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR =#= (LEFTARG = float8, RIGHTARG = float8, FUNCTION = pg_catalog.float8eq,
  COMMUTATOR = =#=, RESTRICT = eqsel, JOIN = eqjoinsel);
ALTER OPERATOR FAMILY bson_value_ops USING btree ADD
  OPERATOR 1 < (bson_value, float8),
  OPERATOR 2 <= (bson_value, float8),
  OPERATOR 3 = (bson_value, float8),
  OPERATOR 4 >= (bson_value, float8),
  OPERATOR 5 > (bson_value, float8),
  OPERATOR 1 < (float8, bson_value),
  OPERATOR 2 <= (float8, bson_value),
  OPERATOR 3 = (float8, bson_value),
  OPERATOR 4 >= (float8, bson_value),
  OPERATOR 5 > (float8, bson_value),
  FUNCTION 1 (bson_value, float8) bson_value_cmp_float8(bson_value, float8),
  FUNCTION 1 (float8, bson_value) float8_cmp_bson_value(float8, bson_value),
  FUNCTION 1 (float8, float8) float8_bson_cmp(float8, float8);
ALTER OPERATOR FAMILY bson_value_ops USING hash ADD
  OPERATOR 1 = (bson_value, float8),
  OPERATOR 1 = (float8, bson_value),
  OPERATOR 1 =#= (float8, float8),
  FUNCTION 1 (float8, float8) float8_bson_hash(float8),
  FUNCTION 2 (float8, float8) float8_bson_hash_extended(float8, int8);

-- numeric
CREATE FUNCTION bson_value_lt_numeric(bson_value, numeric) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_lt_numeric' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION bson_value_le_numeric(bson_value, numeric) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_le_numeric' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION bson_value_eq_numeric(bson_value, numeric) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_eq_numeric' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION bson_value_ne_numeric(bson_value, numeric) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ne_numeric' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION bson_value_ge_numeric(bson_value, numeric) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ge_numeric' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION bson_value_gt_numeric(bson_value, numeric) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_gt_numeric' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION numeric_lt_bson_value(numeric, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_numeric_lt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION numeric_le_bson_value(numeric, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_numeric_le_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION numeric_eq_bson_value(numeric, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_numeric_eq_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION numeric_ne_bson_value(numeric, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_numeric_ne_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION numeric_ge_bson_value(numeric, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_numeric_ge_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION numeric_gt_bson_value(numeric, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_numeric_gt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION bson_value_cmp_numeric(bson_value, numeric) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_value_cmp_numeric' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION numeric_cmp_bson_value(numeric, bson_value) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_numeric_cmp_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION numeric_bson_cmp(numeric, numeric) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_numeric_bson_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION numeric_bson_hash(numeric) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_numeric_bson_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION numeric_bson_hash_extended(numeric, int8) RETURNS int8
  AS 'MODULE_PATHNAME', 'dp_numeric_bson_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR < (LEFTARG = bson_value, RIGHTARG = numeric, FUNCTION = bson_value_lt_numeric,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = bson_value, RIGHTARG = numeric, FUNCTION = bson_value_le_numeric,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = bson_value, RIGHTARG = numeric, FUNCTION = bson_value_eq_numeric,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = bson_value, RIGHTARG = numeric, FUNCTION = bson_value_ne_numeric,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = bson_value, RIGHTARG = numeric, FUNCTION = bson_value_ge_numeric,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = bson_value, RIGHTARG = numeric, FUNCTION = bson_value_gt_numeric,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR < (LEFTARG = numeric, RIGHTARG = bson_value, FUNCTION = numeric_lt_bson_value,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = numeric, RIGHTARG = bson_value, FUNCTION = numeric_le_bson_value,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = numeric, RIGHTARG = bson_value, FUNCTION = numeric_eq_bson_value,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = numeric, RIGHTARG = bson_value, FUNCTION = numeric_ne_bson_value,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = numeric, RIGHTARG = bson_value, FUNCTION = numeric_ge_bson_value,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = numeric, RIGHTARG = bson_value, FUNCTION = numeric_gt_bson_value,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR =#= (LEFTARG = numeric, RIGHTARG = numeric, FUNCTION = pg_catalog.numeric_eq,
  COMMUTATOR = =#=, RESTRICT = eqsel, JOIN = eqjoinsel);
ALTER OPERATOR FAMILY bson_value_ops USING btree ADD
  OPERATOR 1 < (bson_value, numeric),
  OPERATOR 2 <= (bson_value, numeric),
  OPERATOR 3 = (bson_value, numeric),
  OPERATOR 4 >= (bson_value, numeric),
  OPERATOR 5 > (bson_value, numeric),
  OPERATOR 1 < (numeric, bson_value),
  OPERATOR 2 <= (numeric, bson_value),
  OPERATOR 3 = (numeric, bson_value),
  OPERATOR 4 >= (numeric, bson_value),
  OPERATOR 5 > (numeric, bson_value),
  FUNCTION 1 (bson_value, numeric) bson_value_cmp_numeric(bson_value, numeric),
  FUNCTION 1 (numeric, bson_value) numeric_cmp_bson_value(numeric, bson_value),
  FUNCTION 1 (numeric, numeric) numeric_bson_cmp(numeric, numeric);
ALTER OPERATOR FAMILY bson_value_ops USING hash ADD
  OPERATOR 1 = (bson_value, numeric),
  OPERATOR 1 = (numeric, bson_value),
  OPERATOR 1 =#= (numeric, numeric),
  FUNCTION 1 (numeric, numeric) numeric_bson_hash(numeric),
  FUNCTION 2 (numeric, numeric) numeric_bson_hash_extended(numeric, int8);

-- text
CREATE FUNCTION bson_value_lt_text(bson_value, text) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_lt_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION bson_value_le_text(bson_value, text) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_le_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION bson_value_eq_text(bson_value, text) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_eq_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION bson_value_ne_text(bson_value, text) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ne_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION bson_value_ge_text(bson_value, text) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ge_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION bson_value_gt_text(bson_value, text) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_gt_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION text_lt_bson_value(text, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_text_lt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION text_le_bson_value(text, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_text_le_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION text_eq_bson_value(text, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_text_eq_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION text_ne_bson_value(text, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_text_ne_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION text_ge_bson_value(text, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_text_ge_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION text_gt_bson_value(text, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_text_gt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION bson_value_cmp_text(bson_value, text) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_value_cmp_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION text_cmp_bson_value(text, bson_value) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_text_cmp_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION text_bson_eq(text, text) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_text_bson_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION text_bson_hash(text) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_text_bson_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION text_bson_hash_extended(text, int8) RETURNS int8
  AS 'MODULE_PATHNAME', 'dp_text_bson_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR < (LEFTARG = bson_value, RIGHTARG = text, FUNCTION = bson_value_lt_text,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = bson_value, RIGHTARG = text, FUNCTION = bson_value_le_text,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = bson_value, RIGHTARG = text, FUNCTION = bson_value_eq_text,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = bson_value, RIGHTARG = text, FUNCTION = bson_value_ne_text,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = bson_value, RIGHTARG = text, FUNCTION = bson_value_ge_text,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = bson_value, RIGHTARG = text, FUNCTION = bson_value_gt_text,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR < (LEFTARG = text, RIGHTARG = bson_value, FUNCTION = text_lt_bson_value,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = text, RIGHTARG = bson_value, FUNCTION = text_le_bson_value,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = text, RIGHTARG = bson_value, FUNCTION = text_eq_bson_value,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = text, RIGHTARG = bson_value, FUNCTION = text_ne_bson_value,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = text, RIGHTARG = bson_value, FUNCTION = text_ge_bson_value,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = text, RIGHTARG = bson_value, FUNCTION = text_gt_bson_value,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR =#= (LEFTARG = text, RIGHTARG = text, FUNCTION = text_bson_eq,
  COMMUTATOR = =#=, RESTRICT = eqsel, JOIN = eqjoinsel);
ALTER OPERATOR FAMILY bson_value_ops USING btree ADD
  OPERATOR 1 < (bson_value, text),
  OPERATOR 2 <= (bson_value, text),
  OPERATOR 3 = (bson_value, text),
  OPERATOR 4 >= (bson_value, text),
  OPERATOR 5 > (bson_value, text),
  OPERATOR 1 < (text, bson_value),
  OPERATOR 2 <= (text, bson_value),
  OPERATOR 3 = (text, bson_value),
  OPERATOR 4 >= (text, bson_value),
  OPERATOR 5 > (text, bson_value),
  FUNCTION 1 (bson_value, text) bson_value_cmp_text(bson_value, text),
  FUNCTION 1 (text, bson_value) text_cmp_bson_value(text, bson_value),
  FUNCTION 1 (text, text) pg_catalog.bttext_pattern_cmp(text, text);
ALTER OPERATOR FAMILY bson_value_ops USING hash ADD
  OPERATOR 1 = (bson_value, text),
  OPERATOR 1 = (text, bson_value),
  OPERATOR 1 =#= (text, text),
  FUNCTION 1 (text, text) text_bson_hash(text),
  FUNCTION 2 (text, text) text_bson_hash_extended(text, int8);

-- bool
CREATE FUNCTION bson_value_lt_boolean(bson_value, bool) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_lt_boolean' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION bson_value_le_boolean(bson_value, bool) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_le_boolean' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION bson_value_eq_boolean(bson_value, bool) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_eq_boolean' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION bson_value_ne_boolean(bson_value, bool) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ne_boolean' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION bson_value_ge_boolean(bson_value, bool) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ge_boolean' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION bson_value_gt_boolean(bson_value, bool) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_gt_boolean' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION boolean_lt_bson_value(bool, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_boolean_lt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION boolean_le_bson_value(bool, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_boolean_le_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION boolean_eq_bson_value(bool, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_boolean_eq_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION boolean_ne_bson_value(bool, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_boolean_ne_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION boolean_ge_bson_value(bool, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_boolean_ge_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION boolean_gt_bson_value(bool, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_boolean_gt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION bson_value_cmp_boolean(bson_value, bool) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_value_cmp_boolean' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION boolean_cmp_bson_value(bool, bson_value) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_boolean_cmp_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION boolean_bson_hash(bool) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_boolean_bson_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION boolean_bson_hash_extended(bool, int8) RETURNS int8
  AS 'MODULE_PATHNAME', 'dp_boolean_bson_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR < (LEFTARG = bson_value, RIGHTARG = bool, FUNCTION = bson_value_lt_boolean,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = bson_value, RIGHTARG = bool, FUNCTION = bson_value_le_boolean,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = bson_value, RIGHTARG = bool, FUNCTION = bson_value_eq_boolean,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = bson_value, RIGHTARG = bool, FUNCTION = bson_value_ne_boolean,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = bson_value, RIGHTARG = bool, FUNCTION = bson_value_ge_boolean,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = bson_value, RIGHTARG = bool, FUNCTION = bson_value_gt_boolean,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR < (LEFTARG = bool, RIGHTARG = bson_value, FUNCTION = boolean_lt_bson_value,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = bool, RIGHTARG = bson_value, FUNCTION = boolean_le_bson_value,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = bool, RIGHTARG = bson_value, FUNCTION = boolean_eq_bson_value,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = bool, RIGHTARG = bson_value, FUNCTION = boolean_ne_bson_value,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = bool, RIGHTARG = bson_value, FUNCTION = boolean_ge_bson_value,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = bool, RIGHTARG = bson_value, FUNCTION = boolean_gt_bson_value,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR =#= (LEFTARG = bool, RIGHTARG = bool, FUNCTION = pg_catalog.booleq,
  COMMUTATOR = =#=, RESTRICT = eqsel, JOIN = eqjoinsel);
ALTER OPERATOR FAMILY bson_value_ops USING btree ADD
  OPERATOR 1 < (bson_value, bool),
  OPERATOR 2 <= (bson_value, bool),
  OPERATOR 3 = (bson_value, bool),
  OPERATOR 4 >= (bson_value, bool),
  OPERATOR 5 > (bson_value, bool),
  OPERATOR 1 < (bool, bson_value),
  OPERATOR 2 <= (bool, bson_value),
  OPERATOR 3 = (bool, bson_value),
  OPERATOR 4 >= (bool, bson_value),
  OPERATOR 5 > (bool, bson_value),
  FUNCTION 1 (bson_value, bool) bson_value_cmp_boolean(bson_value, bool),
  FUNCTION 1 (bool, bson_value) boolean_cmp_bson_value(bool, bson_value),
  FUNCTION 1 (bool, bool) pg_catalog.btboolcmp(bool, bool);
ALTER OPERATOR FAMILY bson_value_ops USING hash ADD
  OPERATOR 1 = (bson_value, bool),
  OPERATOR 1 = (bool, bson_value),
  OPERATOR 1 =#= (bool, bool),
  FUNCTION 1 (bool, bool) boolean_bson_hash(bool),
  FUNCTION 2 (bool, bool) boolean_bson_hash_extended(bool, int8);

-- date
CREATE FUNCTION bson_value_lt_date(bson_value, date) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_lt_date' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION bson_value_le_date(bson_value, date) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_le_date' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION bson_value_eq_date(bson_value, date) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_eq_date' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION bson_value_ne_date(bson_value, date) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ne_date' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION bson_value_ge_date(bson_value, date) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ge_date' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION bson_value_gt_date(bson_value, date) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_gt_date' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION date_lt_bson_value(date, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_date_lt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION date_le_bson_value(date, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_date_le_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION date_eq_bson_value(date, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_date_eq_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION date_ne_bson_value(date, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_date_ne_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION date_ge_bson_value(date, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_date_ge_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION date_gt_bson_value(date, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_date_gt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION bson_value_cmp_date(bson_value, date) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_value_cmp_date' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION date_cmp_bson_value(date, bson_value) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_date_cmp_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION date_bson_hash(date) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_date_bson_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION date_bson_hash_extended(date, int8) RETURNS int8
  AS 'MODULE_PATHNAME', 'dp_date_bson_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR < (LEFTARG = bson_value, RIGHTARG = date, FUNCTION = bson_value_lt_date,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = bson_value, RIGHTARG = date, FUNCTION = bson_value_le_date,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = bson_value, RIGHTARG = date, FUNCTION = bson_value_eq_date,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = bson_value, RIGHTARG = date, FUNCTION = bson_value_ne_date,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = bson_value, RIGHTARG = date, FUNCTION = bson_value_ge_date,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = bson_value, RIGHTARG = date, FUNCTION = bson_value_gt_date,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR < (LEFTARG = date, RIGHTARG = bson_value, FUNCTION = date_lt_bson_value,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = date, RIGHTARG = bson_value, FUNCTION = date_le_bson_value,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = date, RIGHTARG = bson_value, FUNCTION = date_eq_bson_value,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = date, RIGHTARG = bson_value, FUNCTION = date_ne_bson_value,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = date, RIGHTARG = bson_value, FUNCTION = date_ge_bson_value,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = date, RIGHTARG = bson_value, FUNCTION = date_gt_bson_value,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR =#= (LEFTARG = date, RIGHTARG = date, FUNCTION = pg_catalog.date_eq,
  COMMUTATOR = =#=, RESTRICT = eqsel, JOIN = eqjoinsel);
ALTER OPERATOR FAMILY bson_value_ops USING btree ADD
  OPERATOR 1 < (bson_value, date),
  OPERATOR 2 <= (bson_value, date),
  OPERATOR 3 = (bson_value, date),
  OPERATOR 4 >= (bson_value, date),
  OPERATOR 5 > (bson_value, date),
  OPERATOR 1 < (date, bson_value),
  OPERATOR 2 <= (date, bson_value),
  OPERATOR 3 = (date, bson_value),
  OPERATOR 4 >= (date, bson_value),
  OPERATOR 5 > (date, bson_value),
  FUNCTION 1 (bson_value, date) bson_value_cmp_date(bson_value, date),
  FUNCTION 1 (date, bson_value) date_cmp_bson_value(date, bson_value),
  FUNCTION 1 (date, date) pg_catalog.date_cmp(date, date);
ALTER OPERATOR FAMILY bson_value_ops USING hash ADD
  OPERATOR 1 = (bson_value, date),
  OPERATOR 1 = (date, bson_value),
  OPERATOR 1 =#= (date, date),
  FUNCTION 1 (date, date) date_bson_hash(date),
  FUNCTION 2 (date, date) date_bson_hash_extended(date, int8);

-- timestamptz
CREATE FUNCTION bson_value_lt_timestamptz(bson_value, timestamptz) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_lt_timestamptz' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION bson_value_le_timestamptz(bson_value, timestamptz) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_le_timestamptz' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION bson_value_eq_timestamptz(bson_value, timestamptz) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_eq_timestamptz' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION bson_value_ne_timestamptz(bson_value, timestamptz) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ne_timestamptz' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION bson_value_ge_timestamptz(bson_value, timestamptz) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ge_timestamptz' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION bson_value_gt_timestamptz(bson_value, timestamptz) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_gt_timestamptz' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION timestamptz_lt_bson_value(timestamptz, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_timestamptz_lt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION timestamptz_le_bson_value(timestamptz, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_timestamptz_le_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION timestamptz_eq_bson_value(timestamptz, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_timestamptz_eq_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION timestamptz_ne_bson_value(timestamptz, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_timestamptz_ne_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION timestamptz_ge_bson_value(timestamptz, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_timestamptz_ge_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION timestamptz_gt_bson_value(timestamptz, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_timestamptz_gt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION bson_value_cmp_timestamptz(bson_value, timestamptz) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_value_cmp_timestamptz' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION timestamptz_cmp_bson_value(timestamptz, bson_value) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_timestamptz_cmp_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION timestamptz_bson_hash(timestamptz) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_timestamptz_bson_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION timestamptz_bson_hash_extended(timestamptz, int8) RETURNS int8
  AS 'MODULE_PATHNAME', 'dp_timestamptz_bson_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR < (LEFTARG = bson_value, RIGHTARG = timestamptz, FUNCTION = bson_value_lt_timestamptz,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = bson_value, RIGHTARG = timestamptz, FUNCTION = bson_value_le_timestamptz,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = bson_value, RIGHTARG = timestamptz, FUNCTION = bson_value_eq_timestamptz,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = bson_value, RIGHTARG = timestamptz, FUNCTION = bson_value_ne_timestamptz,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = bson_value, RIGHTARG = timestamptz, FUNCTION = bson_value_ge_timestamptz,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = bson_value, RIGHTARG = timestamptz, FUNCTION = bson_value_gt_timestamptz,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR < (LEFTARG = timestamptz, RIGHTARG = bson_value, FUNCTION = timestamptz_lt_bson_value,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = timestamptz, RIGHTARG = bson_value, FUNCTION = timestamptz_le_bson_value,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = timestamptz, RIGHTARG = bson_value, FUNCTION = timestamptz_eq_bson_value,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = timestamptz, RIGHTARG = bson_value, FUNCTION = timestamptz_ne_bson_value,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = timestamptz, RIGHTARG = bson_value, FUNCTION = timestamptz_ge_bson_value,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = timestamptz, RIGHTARG = bson_value, FUNCTION = timestamptz_gt_bson_value,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR =#= (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = pg_catalog.timestamptz_eq,
  COMMUTATOR = =#=, RESTRICT = eqsel, JOIN = eqjoinsel);
ALTER OPERATOR FAMILY bson_value_ops USING btree ADD
  OPERATOR 1 < (bson_value, timestamptz),
  OPERATOR 2 <= (bson_value, timestamptz),
  OPERATOR 3 = (bson_value, timestamptz),
  OPERATOR 4 >= (bson_value, timestamptz),
  OPERATOR 5 > (bson_value, timestamptz),
  OPERATOR 1 < (timestamptz, bson_value),
  OPERATOR 2 <= (timestamptz, bson_value),
  OPERATOR 3 = (timestamptz, bson_value),
  OPERATOR 4 >= (timestamptz, bson_value),
  OPERATOR 5 > (timestamptz, bson_value),
  FUNCTION 1 (bson_value, timestamptz) bson_value_cmp_timestamptz(bson_value, timestamptz),
  FUNCTION 1 (timestamptz, bson_value) timestamptz_cmp_bson_value(timestamptz, bson_value),
  FUNCTION 1 (timestamptz, timestamptz) pg_catalog.timestamptz_cmp(timestamptz, timestamptz);
ALTER OPERATOR FAMILY bson_value_ops USING hash ADD
  OPERATOR 1 = (bson_value, timestamptz),
  OPERATOR 1 = (timestamptz, bson_value),
  OPERATOR 1 =#= (timestamptz, timestamptz),
  FUNCTION 1 (timestamptz, timestamptz) timestamptz_bson_hash(timestamptz),
  FUNCTION 2 (timestamptz, timestamptz) timestamptz_bson_hash_extended(timestamptz, int8);

-- uuid
CREATE FUNCTION bson_value_lt_uuid(bson_value, uuid) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_lt_uuid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION bson_value_le_uuid(bson_value, uuid) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_le_uuid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION bson_value_eq_uuid(bson_value, uuid) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_eq_uuid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION bson_value_ne_uuid(bson_value, uuid) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ne_uuid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION bson_value_ge_uuid(bson_value, uuid) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ge_uuid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION bson_value_gt_uuid(bson_value, uuid) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_gt_uuid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION uuid_lt_bson_value(uuid, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_uuid_lt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION uuid_le_bson_value(uuid, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_uuid_le_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION uuid_eq_bson_value(uuid, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_uuid_eq_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION uuid_ne_bson_value(uuid, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_uuid_ne_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION uuid_ge_bson_value(uuid, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_uuid_ge_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION uuid_gt_bson_value(uuid, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_uuid_gt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION bson_value_cmp_uuid(bson_value, uuid) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_value_cmp_uuid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION uuid_cmp_bson_value(uuid, bson_value) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_uuid_cmp_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION uuid_bson_hash(uuid) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_uuid_bson_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION uuid_bson_hash_extended(uuid, int8) RETURNS int8
  AS 'MODULE_PATHNAME', 'dp_uuid_bson_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR < (LEFTARG = bson_value, RIGHTARG = uuid, FUNCTION = bson_value_lt_uuid,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = bson_value, RIGHTARG = uuid, FUNCTION = bson_value_le_uuid,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = bson_value, RIGHTARG = uuid, FUNCTION = bson_value_eq_uuid,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = bson_value, RIGHTARG = uuid, FUNCTION = bson_value_ne_uuid,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = bson_value, RIGHTARG = uuid, FUNCTION = bson_value_ge_uuid,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = bson_value, RIGHTARG = uuid, FUNCTION = bson_value_gt_uuid,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR < (LEFTARG = uuid, RIGHTARG = bson_value, FUNCTION = uuid_lt_bson_value,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = uuid, RIGHTARG = bson_value, FUNCTION = uuid_le_bson_value,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = uuid, RIGHTARG = bson_value, FUNCTION = uuid_eq_bson_value,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = uuid, RIGHTARG = bson_value, FUNCTION = uuid_ne_bson_value,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = uuid, RIGHTARG = bson_value, FUNCTION = uuid_ge_bson_value,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = uuid, RIGHTARG = bson_value, FUNCTION = uuid_gt_bson_value,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR =#= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = pg_catalog.uuid_eq,
  COMMUTATOR = =#=, RESTRICT = eqsel, JOIN = eqjoinsel);
ALTER OPERATOR FAMILY bson_value_ops USING btree ADD
  OPERATOR 1 < (bson_value, uuid),
  OPERATOR 2 <= (bson_value, uuid),
  OPERATOR 3 = (bson_value, uuid),
  OPERATOR 4 >= (bson_value, uuid),
  OPERATOR 5 > (bson_value, uuid),
  OPERATOR 1 < (uuid, bson_value),
  OPERATOR 2 <= (uuid, bson_value),
  OPERATOR 3 = (uuid, bson_value),
  OPERATOR 4 >= (uuid, bson_value),
  OPERATOR 5 > (uuid, bson_value),
  FUNCTION 1 (bson_value, uuid) bson_value_cmp_uuid(bson_value, uuid),
  FUNCTION 1 (uuid, bson_value) uuid_cmp_bson_value(uuid, bson_value),
  FUNCTION 1 (uuid, uuid) pg_catalog.uuid_cmp(uuid, uuid);
ALTER OPERATOR FAMILY bson_value_ops USING hash ADD
  OPERATOR 1 = (bson_value, uuid),
  OPERATOR 1 = (uuid, bson_value),
  OPERATOR 1 =#= (uuid, uuid),
  FUNCTION 1 (uuid, uuid) uuid_bson_hash(uuid),
  FUNCTION 2 (uuid, uuid) uuid_bson_hash_extended(uuid, int8);

-- objectid
CREATE FUNCTION bson_value_lt_objectid(bson_value, objectid) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_lt_objectid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION bson_value_le_objectid(bson_value, objectid) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_le_objectid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION bson_value_eq_objectid(bson_value, objectid) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_eq_objectid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION bson_value_ne_objectid(bson_value, objectid) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ne_objectid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION bson_value_ge_objectid(bson_value, objectid) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_ge_objectid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION bson_value_gt_objectid(bson_value, objectid) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_bson_value_gt_objectid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION objectid_lt_bson_value(objectid, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_objectid_lt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_lt_support;
CREATE FUNCTION objectid_le_bson_value(objectid, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_objectid_le_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_le_support;
CREATE FUNCTION objectid_eq_bson_value(objectid, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_objectid_eq_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_eq_support;
CREATE FUNCTION objectid_ne_bson_value(objectid, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_objectid_ne_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ne_support;
CREATE FUNCTION objectid_ge_bson_value(objectid, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_objectid_ge_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_ge_support;
CREATE FUNCTION objectid_gt_bson_value(objectid, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_objectid_gt_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT bson_value_gt_support;
CREATE FUNCTION bson_value_cmp_objectid(bson_value, objectid) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_value_cmp_objectid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION objectid_cmp_bson_value(objectid, bson_value) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_objectid_cmp_bson_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION objectid_bson_hash(objectid) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_objectid_bson_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION objectid_bson_hash_extended(objectid, int8) RETURNS int8
  AS 'MODULE_PATHNAME', 'dp_objectid_bson_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE OPERATOR < (LEFTARG = bson_value, RIGHTARG = objectid, FUNCTION = bson_value_lt_objectid,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = bson_value, RIGHTARG = objectid, FUNCTION = bson_value_le_objectid,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = bson_value, RIGHTARG = objectid, FUNCTION = bson_value_eq_objectid,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = bson_value, RIGHTARG = objectid, FUNCTION = bson_value_ne_objectid,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = bson_value, RIGHTARG = objectid, FUNCTION = bson_value_ge_objectid,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = bson_value, RIGHTARG = objectid, FUNCTION = bson_value_gt_objectid,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR < (LEFTARG = objectid, RIGHTARG = bson_value, FUNCTION = objectid_lt_bson_value,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = bson_value_ltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = objectid, RIGHTARG = bson_value, FUNCTION = objectid_le_bson_value,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = bson_value_lesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = objectid, RIGHTARG = bson_value, FUNCTION = objectid_eq_bson_value,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = bson_value_eqsel, JOIN = bson_value_eqjoinsel, HASHES);
CREATE OPERATOR <> (LEFTARG = objectid, RIGHTARG = bson_value, FUNCTION = objectid_ne_bson_value,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = bson_value_neqsel, JOIN = bson_value_neqjoinsel);
CREATE OPERATOR >= (LEFTARG = objectid, RIGHTARG = bson_value, FUNCTION = objectid_ge_bson_value,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = bson_value_gesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = objectid, RIGHTARG = bson_value, FUNCTION = objectid_gt_bson_value,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = bson_value_gtsel, JOIN = scalargtjoinsel);
CREATE OPERATOR =#= (LEFTARG = objectid, RIGHTARG = objectid, FUNCTION = objectid_eq,
  COMMUTATOR = =#=, RESTRICT = eqsel, JOIN = eqjoinsel);
ALTER OPERATOR FAMILY bson_value_ops USING btree ADD
  OPERATOR 1 < (bson_value, objectid),
  OPERATOR 2 <= (bson_value, objectid),
  OPERATOR 3 = (bson_value, objectid),
  OPERATOR 4 >= (bson_value, objectid),
  OPERATOR 5 > (bson_value, objectid),
  OPERATOR 1 < (objectid, bson_value),
  OPERATOR 2 <= (objectid, bson_value),
  OPERATOR 3 = (objectid, bson_value),
  OPERATOR 4 >= (objectid, bson_value),
  OPERATOR 5 > (objectid, bson_value),
  FUNCTION 1 (bson_value, objectid) bson_value_cmp_objectid(bson_value, objectid),
  FUNCTION 1 (objectid, bson_value) objectid_cmp_bson_value(objectid, bson_value),
  FUNCTION 1 (objectid, objectid) objectid_cmp(objectid, objectid);
ALTER OPERATOR FAMILY bson_value_ops USING hash ADD
  OPERATOR 1 = (bson_value, objectid),
  OPERATOR 1 = (objectid, bson_value),
  OPERATOR 1 =#= (objectid, objectid),
  FUNCTION 1 (objectid, objectid) objectid_bson_hash(objectid),
  FUNCTION 2 (objectid, objectid) objectid_bson_hash_extended(objectid, int8);

-- What psql shows beside the operators and the functions behind them.
DO $$
DECLARE
  o record;
  meaning constant pg_catalog.jsonb := '{"<": "less than", "<=": "less than or equal to", "=": "equal to",
    "<>": "not equal to", ">=": "greater than or equal to", ">": "greater than", "=#=": "the same value in BSON"}';
BEGIN
  FOR o IN
    SELECT p.oprname, pg_catalog.format_type(p.oprleft, NULL) AS l, pg_catalog.format_type(p.oprright, NULL) AS r,
           p.oprcode::pg_catalog.oid::pg_catalog.regprocedure AS function, f.pronamespace
    FROM pg_catalog.pg_operator p JOIN pg_catalog.pg_proc f ON f.oid OPERATOR(pg_catalog.=) p.oprcode
    WHERE p.oprnamespace OPERATOR(pg_catalog.=) '@extschema@'::pg_catalog.regnamespace
      AND ('@extschema@.bson_value'::pg_catalog.regtype IN (p.oprleft, p.oprright)
           OR p.oprleft IN ('@extschema@.bson'::pg_catalog.regtype, '@extschema@.objectid'::pg_catalog.regtype)
           OR p.oprname OPERATOR(pg_catalog.=) '=#=')
      AND meaning OPERATOR(pg_catalog.?) p.oprname::pg_catalog.text
  LOOP
    EXECUTE pg_catalog.format('COMMENT ON OPERATOR @extschema@.%s (%s, %s) IS %L', o.oprname, o.l, o.r,
      meaning OPERATOR(pg_catalog.->>) o.oprname::pg_catalog.text);
    IF o.pronamespace OPERATOR(pg_catalog.<>) 'pg_catalog'::pg_catalog.regnamespace THEN
      EXECUTE pg_catalog.format('COMMENT ON FUNCTION %s IS %L', o.function,
        pg_catalog.format('implementation of the %s operator', o.oprname));
    END IF;
  END LOOP;
END
$$;
