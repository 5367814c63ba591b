-- Object ids: making them and reading their time. Input and output are in types.sql, order and
-- hashing in compare.sql.

COMMENT ON FUNCTION docpatterns.objectid_cmp(objectid, objectid) IS
  'compares two object IDs in MongoDB''s order: less than, equal to or greater than 0';
COMMENT ON FUNCTION docpatterns.objectid_hash(objectid) IS
  'hash of 32 bits; equal object IDs have equal hashes, which never change';
COMMENT ON FUNCTION docpatterns.objectid_hash_extended(objectid, int8) IS
  'hash of 64 bits with a seed; equal object IDs have equal hashes, which never change';
COMMENT ON OPERATOR CLASS objectid_ops USING btree IS 'MongoDB''s order';
COMMENT ON OPERATOR CLASS objectid_ops USING hash IS 'equality in MongoDB''s order';

CREATE FUNCTION objectid() RETURNS objectid
  AS 'MODULE_PATHNAME', 'dp_objectid' LANGUAGE C VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION objectid() IS
  'A new ID, fit for DEFAULT objectid(). Error: XX000 if the system has no random numbers';

CREATE FUNCTION objectid(timestamptz) RETURNS objectid
  AS 'MODULE_PATHNAME', 'dp_objectid_from_timestamp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION objectid(timestamptz) IS
  'The smallest ID of the second that the time falls into, for ranges: WHERE id >= '
  'objectid(since). Error: 22008 outside 1970-01-01 to 2106-02-07';

CREATE FUNCTION objectid_timestamp(objectid) RETURNS timestamptz
  AS 'MODULE_PATHNAME', 'dp_objectid_timestamp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION objectid_timestamp(objectid) IS 'The time of an ID, to the second';

CREATE FUNCTION docpatterns.objectid_smaller(objectid, objectid) RETURNS objectid
  AS 'MODULE_PATHNAME', 'dp_objectid_smaller' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.objectid_larger(objectid, objectid) RETURNS objectid
  AS 'MODULE_PATHNAME', 'dp_objectid_larger' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE AGGREGATE min(objectid) (
  SFUNC = docpatterns.objectid_smaller, STYPE = objectid,
  COMBINEFUNC = docpatterns.objectid_smaller, SORTOP = <, PARALLEL = SAFE
);
COMMENT ON AGGREGATE min(objectid) IS 'The least ID, the oldest to the second; an index answers it';
CREATE AGGREGATE max(objectid) (
  SFUNC = docpatterns.objectid_larger, STYPE = objectid, COMBINEFUNC = docpatterns.objectid_larger,
  SORTOP = >, PARALLEL = SAFE
);
COMMENT ON AGGREGATE max(objectid) IS
  'The greatest ID, the newest to the second; an index answers it';
