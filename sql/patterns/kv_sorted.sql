-- Sorted sets of key-value spaces. The functions are in src/patterns/kv/.

CREATE FUNCTION kv_zadd(space text, key text, VARIADIC scores_and_members "any") RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zadd' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_zadd(text, text, "any") IS
  'Sets scores of members: [options,] score, member, ... Options: nx (only new members), xx (only '
  'existing ones), gt and lt (only a greater or smaller score; new members are added), ch (count '
  'changed scores too), incr (add to the score of one member). Returns how many are new; with incr '
  'NULL if a condition prevented it. Errors: 22023 options or numbers of arguments that do not '
  'fit, NaN, MinKey, MaxKey, 42804 or 22P02 not a number, 22003';

CREATE FUNCTION kv_zincrby(space text, key text, VARIADIC by_and_member "any") RETURNS numeric
  AS 'MODULE_PATHNAME', 'dp_kv_zincrby' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_zincrby(text, text, "any") IS
  'Adds to the score of a member (0 if missing): [options,] number, member. Returns the new score, '
  'NULL if a condition prevented it. Errors as kv_zadd';

-- One untyped argument beside a typed one, as some drivers send them
CREATE FUNCTION kv_zadd(space text, key text, score anycompatible, member text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zadd' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_zadd(text, text, anycompatible, text) IS
  'Sets the score of a member. Returns 1 if it is new';

CREATE FUNCTION kv_zincrby(space text, key text, "by" anycompatible, member text) RETURNS numeric
  AS 'MODULE_PATHNAME', 'dp_kv_zincrby' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_zincrby(text, text, anycompatible, text) IS
  'Adds to the score of a member (0 if missing) and returns the new score';

CREATE FUNCTION kv_zrem(space text, key text, VARIADIC members "any") RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zrem' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_zrem(text, text, "any") IS
  'Removes members of a sorted set and returns how many there were';

CREATE FUNCTION kv_zscore(space text, key text, member anycompatible) RETURNS numeric
  AS 'MODULE_PATHNAME', 'dp_kv_zscore' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_zscore(text, text, anycompatible) IS
  'The score of a member, NULL if it is missing';

CREATE FUNCTION kv_zcard(space text, key text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zcard' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_zcard(text, text) IS
  'The number of members of a sorted set, from the counts of its blocks';

CREATE FUNCTION kv_zcount(space text, key text, min "any", max "any") RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zcount' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_zcount(text, text, "any", "any") IS
  'The number of members with scores from min to max; text may be ''-inf'', ''+inf'', and ''(5'' '
  'for more, or less, than 5. Costs two ranks. Errors: 42804, 22P02, 22023';

CREATE FUNCTION kv_zrank(space text, key text, member anycompatible) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zrank' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_zrank(text, text, anycompatible) IS
  'The rank of a member: how many come before it in the order of score and member; NULL if it is '
  'missing. The cost grows with the logarithm of the number of members';

CREATE FUNCTION kv_zrevrank(space text, key text, member anycompatible) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zrevrank' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_zrevrank(text, text, anycompatible) IS
  'The rank from the highest score down, NULL if the member is missing';

CREATE FUNCTION kv_zrange(space text, key text, start bigint, stop bigint, OUT member bson_value,
  OUT score numeric) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_kv_zrange' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10 ROWS 10;
COMMENT ON FUNCTION kv_zrange(text, text, bigint, bigint) IS
  'Members and scores from one rank to another, both included; -1 is the last one. Costs a rank '
  'and the rows';

CREATE FUNCTION kv_zrevrange(space text, key text, start bigint, stop bigint, OUT member bson_value,
  OUT score numeric) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_kv_zrevrange' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10 ROWS 10;
COMMENT ON FUNCTION kv_zrevrange(text, text, bigint, bigint) IS
  'The same as kv_zrange, counted from the highest score down';

CREATE FUNCTION kv_zrangebyscore(space text, key text, min "any", max "any", skip bigint DEFAULT 0,
  take bigint DEFAULT NULL,
                                 OUT member bson_value, OUT score numeric) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_kv_zrangebyscore' LANGUAGE C STABLE PARALLEL SAFE COST 10 ROWS 10;
COMMENT ON FUNCTION kv_zrangebyscore(text, text, "any", "any", bigint, bigint) IS
  'Members and scores with scores from min to max (see kv_zcount), in order, without the first '
  'skip, at most take';

CREATE FUNCTION kv_zrevrangebyscore(space text, key text, max "any", min "any",
  skip bigint DEFAULT 0, take bigint DEFAULT NULL, OUT member bson_value, OUT score numeric)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_kv_zrevrangebyscore' LANGUAGE C STABLE PARALLEL SAFE COST 10 ROWS 10;
COMMENT ON FUNCTION kv_zrevrangebyscore(text, text, "any", "any", bigint, bigint) IS
  'The same as kv_zrangebyscore, from the highest score down; max comes before min';

CREATE FUNCTION kv_zremrangebyscore(space text, key text, min "any", max "any") RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zremrangebyscore' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_zremrangebyscore(text, text, "any", "any") IS
  'Removes the members with scores from min to max (see kv_zcount) and returns how many there '
  'were. Locks the key exclusively. Costs a rank and the members';

CREATE FUNCTION kv_zremrangebyrank(space text, key text, start bigint, stop bigint) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zremrangebyrank' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_zremrangebyrank(text, text, bigint, bigint) IS
  'Removes the members from one rank to another (see kv_zrange) and returns how many there were. '
  'Locks and costs as kv_zremrangebyscore';

CREATE FUNCTION kv_zpopmin(space text, key text, take bigint DEFAULT 1, OUT member bson_value,
  OUT score numeric) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_kv_zpopmin' LANGUAGE C VOLATILE COST 100 ROWS 1;
COMMENT ON FUNCTION kv_zpopmin(text, text, bigint) IS
  'Removes the members with the lowest scores and returns them. Locks the key exclusively. Error: '
  '22023 below 0';

CREATE FUNCTION kv_zpopmax(space text, key text, take bigint DEFAULT 1, OUT member bson_value,
  OUT score numeric) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_kv_zpopmax' LANGUAGE C VOLATILE COST 100 ROWS 1;
COMMENT ON FUNCTION kv_zpopmax(text, text, bigint) IS
  'Removes the members with the highest scores and returns them, the highest first. Locks as '
  'kv_zpopmin';

CREATE FUNCTION kv_zunionstore(space text, destination text, keys text[],
  weights numeric[] DEFAULT NULL, aggregate text DEFAULT 'sum') RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zunionstore' LANGUAGE C VOLATILE COST 1000;
COMMENT ON FUNCTION kv_zunionstore(text, text, text[], numeric[], text) IS
  'Replaces the destination by a sorted set of the members of several and returns their number. '
  'Scores are multiplied by weights and combined by sum, min or max; in a set every score is 1. '
  'Locks only the destination, exclusively. Errors: 22023 weights or aggregate, 22003';

CREATE FUNCTION kv_zinterstore(space text, destination text, keys text[],
  weights numeric[] DEFAULT NULL, aggregate text DEFAULT 'sum') RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zinterstore' LANGUAGE C VOLATILE COST 1000;
COMMENT ON FUNCTION kv_zinterstore(text, text, text[], numeric[], text) IS
  'Makes a sorted set of the members that all of several have; otherwise as kv_zunionstore';
