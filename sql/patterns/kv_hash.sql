-- Hashes of key-value spaces. The functions are in src/patterns/kv/hash.c.

CREATE FUNCTION kv_hset(space text, key text, VARIADIC pairs "any") RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_hset' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_hset(text, text, "any") IS
  'Sets fields of a hash: field, value, ... Returns how many are new. Error: 22023 an odd number '
  'of arguments';

CREATE FUNCTION kv_hset(space text, key text, field text, value anycompatible) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_hset' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_hset(text, text, text, anycompatible) IS
  'Sets a field of a hash. Returns 1 if it is new';

CREATE FUNCTION kv_hsetnx(space text, key text, field text, value anycompatible) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_kv_hsetnx' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_hsetnx(text, text, text, anycompatible) IS
  'Sets a field of a hash unless it exists; whether it did';

CREATE FUNCTION kv_hget(space text, key text, field text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_hget' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_hget(text, text, text) IS 'The value of a field, NULL without one';

CREATE FUNCTION kv_hmget(space text, key text, VARIADIC fields text[]) RETURNS bson_value[]
  AS 'MODULE_PATHNAME', 'dp_kv_hmget' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_hmget(text, text, text[]) IS
  'The values of fields in the order of the arguments, NULL for missing ones';

CREATE FUNCTION kv_hgetall(space text, key text) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_kv_hgetall' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_hgetall(text, text) IS
  'All fields of a hash as a document in their order, {} without any. Error: 54000 beyond the size '
  'limit';

CREATE FUNCTION kv_hkeys(space text, key text) RETURNS SETOF text
  AS 'MODULE_PATHNAME', 'dp_kv_hkeys' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10 ROWS 10;
COMMENT ON FUNCTION kv_hkeys(text, text) IS 'The names of the fields of a hash, in order';

CREATE FUNCTION kv_hvals(space text, key text) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_hvals' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10 ROWS 10;
COMMENT ON FUNCTION kv_hvals(text, text) IS 'The values of a hash, in the order of the fields';

CREATE FUNCTION kv_hlen(space text, key text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_hlen' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_hlen(text, text) IS 'The number of fields of a hash';

CREATE FUNCTION kv_hexists(space text, key text, field text) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_kv_hexists' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_hexists(text, text, text) IS 'Whether a hash has a field';

CREATE FUNCTION kv_hdel(space text, key text, VARIADIC fields text[]) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_hdel' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_hdel(text, text, text[]) IS 'Removes fields and returns how many there were';

CREATE FUNCTION kv_hincrby(space text, key text, field text, "by" bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_hincrby' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_hincrby(text, text, text, bigint) IS
  'Adds to a field (0 if missing) and returns the new value; an int32 that overflows becomes an '
  'int64. Errors: 42804 not an integer, 22003 beyond an int64';
