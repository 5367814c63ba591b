-- Sets of key-value spaces. The functions are in src/patterns/kv/set.c.

CREATE FUNCTION kv_sadd(space text, key text, VARIADIC members "any") RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_sadd' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_sadd(text, text, "any") IS
  'adds members to a set; returns how many are new. Members are of any type, an untyped literal is text; equal numbers of different types are one member. '
  'Locks the key shared; needs INSERT on the table sets; errors 22004, 22023 for MinKey and MaxKey, 3F000, 42809 for a key of another type, 42501';

CREATE FUNCTION kv_srem(space text, key text, VARIADIC members "any") RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_srem' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_srem(text, text, "any") IS
  'removes members of a set, and the key with the last one; returns how many there were. Locks the key shared and the members, in order; needs DELETE on the table sets; errors as kv_sadd';

CREATE FUNCTION kv_smembers(space text, key text) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_smembers' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10 ROWS 10;
COMMENT ON FUNCTION kv_smembers(text, text) IS 'members of a set, in their order. Needs SELECT on the table sets; errors 3F000, 42809 for a key of another type, 42501';

CREATE FUNCTION kv_sismember(space text, key text, member "any") RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_kv_sismember' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_sismember(text, text, "any") IS 'whether a value is a member of a set. Rights and errors as kv_smembers';

CREATE FUNCTION kv_scard(space text, key text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_scard' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_scard(text, text) IS 'number of members of a set; reads the index of all of them. Rights and errors as kv_smembers';

CREATE FUNCTION kv_sinter(space text, VARIADIC keys text[]) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_sinter' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 100 ROWS 10;
COMMENT ON FUNCTION kv_sinter(text, text[]) IS 'members that all of the sets have, in order; a key that is not there is an empty set. Reads the sets; errors 22004 and as kv_smembers';

CREATE FUNCTION kv_sunion(space text, VARIADIC keys text[]) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_sunion' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 100 ROWS 10;
COMMENT ON FUNCTION kv_sunion(text, text[]) IS 'members that any of the sets has, each once, in order. Reads the sets; errors as kv_sinter';

CREATE FUNCTION kv_sdiff(space text, VARIADIC keys text[]) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_sdiff' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 100 ROWS 10;
COMMENT ON FUNCTION kv_sdiff(text, text[]) IS 'members that the first set has and none of the others, in order. Reads the sets; errors as kv_sinter';

CREATE FUNCTION kv_srandmember(space text, key text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_srandmember' LANGUAGE C VOLATILE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION kv_srandmember(text, text) IS 'a member of a set, drawn at random, NULL where there is none. Reads the set; rights and errors as kv_smembers';

CREATE FUNCTION kv_srandmember(space text, key text, take bigint) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_srandmember_take' LANGUAGE C VOLATILE STRICT PARALLEL SAFE COST 100 ROWS 10;
COMMENT ON FUNCTION kv_srandmember(text, text, bigint) IS
  'that many different members of a set, drawn at random, or all if it has fewer; with a number below 0 as many as that, drawn one by one, which may repeat. Reads the set; rights and errors as kv_smembers';

CREATE FUNCTION kv_spop(space text, key text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_spop' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_spop(text, text) IS 'removes a member of a set, drawn at random, and returns it, NULL where there is none. Reads the set, locks the key exclusively; needs SELECT and DELETE on the table sets; errors as kv_srem';

CREATE FUNCTION kv_spop(space text, key text, take bigint) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_spop_take' LANGUAGE C VOLATILE COST 100 ROWS 10;
COMMENT ON FUNCTION kv_spop(text, text, bigint) IS 'removes that many members of a set, drawn at random, or all if it has fewer, and returns them. Locks and rights as for one; errors as kv_srem, and 22023 for a number below 0';
