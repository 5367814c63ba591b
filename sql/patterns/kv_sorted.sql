-- Sorted sets of key-value spaces. The functions are in src/patterns/kv/.

CREATE FUNCTION kv_zadd(space text, key text, VARIADIC scores_and_members "any") RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zadd' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_zadd(text, text, "any") IS
  'gives members of a sorted set scores: kv_zadd(''game'', ''board'', 1500, ''ada'', 900, ''bob''). Before the first score stand options: nx (only new members), xx (only those that are there), '
  'gt and lt (only if the score becomes greater, or less; new members are added), ch, incr (adds to the score of one member). Returns how many are new, with ch how many are new or have another score; '
  'with incr NULL where a condition kept the member from being written. Scores are int64 or double, exactly. '
  'Locks the key shared and the members, in order; needs INSERT and UPDATE on the table scores; '
  'errors 22023 for options and numbers of arguments that do not fit, NaN, MinKey and MaxKey, 42804 and 22P02 for what is no number, 22003, 22004, 3F000, 42809 for a key of another type, 42501, 55000 for a board that a table keeps';

CREATE FUNCTION kv_zincrby(space text, key text, VARIADIC by_and_member "any") RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_zincrby' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_zincrby(text, text, "any") IS
  'adds to the score of a member, which counts as 0 if it is not there: kv_zincrby(''game'', ''board'', 600, ''ada''). Returns the new score; with the options nx, xx, gt or lt before the number NULL where they kept it from being written. '
  'Locks and errors as kv_zadd; needs SELECT, INSERT and UPDATE on the table scores; 22003 beyond an int64 or for a sum that is NaN';

CREATE FUNCTION kv_zrem(space text, key text, VARIADIC members "any") RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zrem' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_zrem(text, text, "any") IS
  'removes members of a sorted set, and the key with the last one; returns how many there were. Locks as kv_zadd; needs DELETE on the table scores; errors 22004, 22023, 3F000, 42809, 42501, 55000';

CREATE FUNCTION kv_zscore(space text, key text, member "any") RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_zscore' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_zscore(text, text, "any") IS 'score of a member of a sorted set, NULL where there is none. Needs SELECT on the table scores; errors 3F000, 42809 for a key of another type, 42501';

CREATE FUNCTION kv_zcard(space text, key text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zcard' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_zcard(text, text) IS 'number of members of a sorted set, from the counts of its blocks. Rights and errors as kv_zscore';

CREATE FUNCTION kv_zcount(space text, key text, min "any", max "any") RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zcount' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_zcount(text, text, "any", "any") IS
  'number of members with scores from min to max; as text they may be ''-inf'', ''+inf'', and ''(5'' for more, or less, than 5. Costs two ranks. Rights as kv_zscore; errors 42804, 22P02, 22023, 3F000, 42809, 42501';

CREATE FUNCTION kv_zrank(space text, key text, member "any") RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zrank' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_zrank(text, text, "any") IS
  'rank of a member: how many have a lower score, or the same and are before it in the order of members; NULL where it is none. Grows with the logarithm of the number of members. Rights and errors as kv_zscore';

CREATE FUNCTION kv_zrevrank(space text, key text, member "any") RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zrevrank' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_zrevrank(text, text, "any") IS 'rank of a member from the highest score down, NULL where it is none. Cost, rights and errors as kv_zrank';

CREATE FUNCTION kv_zrange(space text, key text, start bigint, stop bigint, OUT member bson_value, OUT score bson_value) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_kv_zrange' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10 ROWS 10;
COMMENT ON FUNCTION kv_zrange(text, text, bigint, bigint) IS
  'members and scores from one rank to another, both included; -1 is the last one, -2 the one before it. Costs a rank and the rows. Rights and errors as kv_zscore';

CREATE FUNCTION kv_zrevrange(space text, key text, start bigint, stop bigint, OUT member bson_value, OUT score bson_value) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_kv_zrevrange' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10 ROWS 10;
COMMENT ON FUNCTION kv_zrevrange(text, text, bigint, bigint) IS 'members and scores from one rank to another, counted from the highest score down, both included. Cost, rights and errors as kv_zrange';

CREATE FUNCTION kv_zrangebyscore(space text, key text, min "any", max "any", skip bigint DEFAULT 0, take bigint DEFAULT NULL,
                                 OUT member bson_value, OUT score bson_value) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_kv_zrangebyscore' LANGUAGE C STABLE PARALLEL SAFE COST 10 ROWS 10;
COMMENT ON FUNCTION kv_zrangebyscore(text, text, "any", "any", bigint, bigint) IS
  'members and scores with scores from min to max (see kv_zcount), in order, without the first skip, at most take. Rights as kv_zscore; errors 22004, 22023, 42804, 22P02, 3F000, 42809, 42501';

CREATE FUNCTION kv_zpopmin(space text, key text, take bigint DEFAULT 1, OUT member bson_value, OUT score bson_value) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_kv_zpopmin' LANGUAGE C VOLATILE COST 100 ROWS 1;
COMMENT ON FUNCTION kv_zpopmin(text, text, bigint) IS
  'removes the members with the lowest scores and returns them. Locks the key exclusively; needs SELECT and DELETE on the table scores; errors 22023 for a number below 0 and as kv_zrem';

CREATE FUNCTION kv_zpopmax(space text, key text, take bigint DEFAULT 1, OUT member bson_value, OUT score bson_value) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_kv_zpopmax' LANGUAGE C VOLATILE COST 100 ROWS 1;
COMMENT ON FUNCTION kv_zpopmax(text, text, bigint) IS 'removes the members with the highest scores and returns them, the highest first. Locks, rights and errors as kv_zpopmin';

CREATE FUNCTION kv_zunionstore(space text, destination text, keys text[], weights numeric[] DEFAULT NULL, aggregate text DEFAULT 'sum') RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zunionstore' LANGUAGE C VOLATILE COST 1000;
COMMENT ON FUNCTION kv_zunionstore(text, text, text[], numeric[], text) IS
  'makes a sorted set of the members of several, in the place of whatever the destination was; returns how many it has. Scores are multiplied by weights and become one by sum, min or max; in a set every score is 1. '
  'Locks the destination exclusively and nothing else; needs all rights on the table scores, SELECT on sets where one is read; errors 22004, 22023, 22003, 3F000, 42809 for a key that is a hash, 42501, 55000';

CREATE FUNCTION kv_zinterstore(space text, destination text, keys text[], weights numeric[] DEFAULT NULL, aggregate text DEFAULT 'sum') RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_zinterstore' LANGUAGE C VOLATILE COST 1000;
COMMENT ON FUNCTION kv_zinterstore(text, text, text[], numeric[], text) IS 'makes a sorted set of the members that all of several have, in the place of whatever the destination was; returns how many it has. Scores, locks, rights and errors as kv_zunionstore';
