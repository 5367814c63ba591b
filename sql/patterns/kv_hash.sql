-- Hashes of key-value spaces. The functions are in src/patterns/kv/hash.c.

CREATE FUNCTION kv_hset(space text, key text, VARIADIC pairs "any") RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_hset' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_hset(text, text, "any") IS
  'gives fields of a hash values: kv_hset(''game'', ''user:1'', ''name'', ''Ada'', ''age'', 36). Returns how many fields are new. Values are of any type, an untyped literal is text. '
  'Locks the key shared and the rows of the fields, in order; needs INSERT and UPDATE on the table hashes; errors 22023 for an odd number of arguments, 22004, 3F000, 42809 for a key of another type, 42501';

CREATE FUNCTION kv_hget(space text, key text, field text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_hget' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_hget(text, text, text) IS 'value of a field of a hash, NULL where there is none. Needs SELECT on the table hashes; errors 3F000, 42809 for a key of another type, 42501';

CREATE FUNCTION kv_hmget(space text, key text, VARIADIC fields text[]) RETURNS bson_value[]
  AS 'MODULE_PATHNAME', 'dp_kv_hmget' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_hmget(text, text, text[]) IS 'values of fields of a hash in the order of the arguments, NULL for those that are not there. Rights and errors as kv_hget';

CREATE FUNCTION kv_hgetall(space text, key text) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_kv_hgetall' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_hgetall(text, text) IS 'all fields of a hash as one document, in their order; {} where there are none. Rights and errors as kv_hget, and 54000 beyond the size limit';

CREATE FUNCTION kv_hkeys(space text, key text) RETURNS SETOF text
  AS 'MODULE_PATHNAME', 'dp_kv_hkeys' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10 ROWS 10;
COMMENT ON FUNCTION kv_hkeys(text, text) IS 'names of the fields of a hash, in order. Rights and errors as kv_hget';

CREATE FUNCTION kv_hvals(space text, key text) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_hvals' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10 ROWS 10;
COMMENT ON FUNCTION kv_hvals(text, text) IS 'values of a hash, in the order of the fields. Rights and errors as kv_hget';

CREATE FUNCTION kv_hlen(space text, key text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_hlen' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_hlen(text, text) IS 'number of fields of a hash; reads the index of all of them. Rights and errors as kv_hget';

CREATE FUNCTION kv_hexists(space text, key text, field text) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_kv_hexists' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_hexists(text, text, text) IS 'whether a hash has a field. Rights and errors as kv_hget';

CREATE FUNCTION kv_hdel(space text, key text, VARIADIC fields text[]) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_hdel' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_hdel(text, text, text[]) IS
  'removes fields of a hash, and the key with the last one; returns how many there were. Locks as kv_hset; needs DELETE on the table hashes; errors 22004, 3F000, 42809 for a key of another type, 42501';

CREATE FUNCTION kv_hincrby(space text, key text, field text, "by" bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_hincrby' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_hincrby(text, text, text, bigint) IS
  'adds to a field of a hash, which counts as 0 if it is not there; returns the new value. An int32 that overflows becomes an int64. '
  'Locks as kv_hset; needs SELECT, INSERT and UPDATE on the table hashes; errors 42804 for a field that is no integer, 22003 beyond an int64, 22004, 3F000, 42809, 42501';
