-- Sets of key-value spaces. The functions are in src/patterns/kv/set.c.

CREATE FUNCTION kv_sadd(space text, key text, VARIADIC members "any") RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_sadd' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_sadd(text, text, "any") IS
  'Adds members to a set and returns how many are new. Error: 22023 MinKey and MaxKey';

CREATE FUNCTION kv_srem(space text, key text, VARIADIC members "any") RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_srem' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_srem(text, text, "any") IS
  'Removes members of a set and returns how many there were';

CREATE FUNCTION kv_smembers(space text, key text) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_smembers' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10 ROWS 10;
COMMENT ON FUNCTION kv_smembers(text, text) IS 'The members of a set, in order';

CREATE FUNCTION kv_sismember(space text, key text, member anycompatible) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_kv_sismember' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_sismember(text, text, anycompatible) IS
  'Whether a value is a member of a set';

CREATE FUNCTION kv_scard(space text, key text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_scard' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_scard(text, text) IS 'The number of members of a set';

CREATE FUNCTION kv_sinter(space text, VARIADIC keys text[]) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_sinter' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 100 ROWS 10;
COMMENT ON FUNCTION kv_sinter(text, text[]) IS
  'Members of all sets, in order; a missing key is an empty set';

CREATE FUNCTION kv_sunion(space text, VARIADIC keys text[]) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_sunion' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 100 ROWS 10;
COMMENT ON FUNCTION kv_sunion(text, text[]) IS 'Members of any of the sets, each once, in order';

CREATE FUNCTION kv_sdiff(space text, VARIADIC keys text[]) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_sdiff' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 100 ROWS 10;
COMMENT ON FUNCTION kv_sdiff(text, text[]) IS
  'Members of the first set that are in none of the others, in order';

CREATE FUNCTION kv_srandmember(space text, key text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_srandmember' LANGUAGE C VOLATILE STRICT PARALLEL SAFE COST 100;
COMMENT ON FUNCTION kv_srandmember(text, text) IS 'A random member of a set, NULL without one';

CREATE FUNCTION kv_srandmember(space text, key text, take bigint) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_srandmember_take' LANGUAGE C VOLATILE STRICT PARALLEL SAFE COST 100
    ROWS 10;
COMMENT ON FUNCTION kv_srandmember(text, text, bigint) IS
  'So many different random members; with a negative number as many, drawn one by one, which may '
  'repeat';

CREATE FUNCTION kv_spop(space text, key text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_spop' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_spop(text, text) IS
  'Removes a random member of a set and returns it, NULL without one';

CREATE FUNCTION kv_spop(space text, key text, take bigint) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_spop_take' LANGUAGE C VOLATILE COST 100 ROWS 10;
COMMENT ON FUNCTION kv_spop(text, text, bigint) IS
  'Removes so many random members, or all if there are fewer. Error: 22023 below 0';
