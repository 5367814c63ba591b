-- The types and their input and output. The functions behind them are in src/bson/.

DO $$
BEGIN
  IF pg_catalog.current_setting('server_encoding') OPERATOR(pg_catalog.<>) 'UTF8' THEN
    RAISE EXCEPTION 'docpatterns needs a database whose encoding is UTF8'
      USING ERRCODE = 'feature_not_supported',
            DETAIL = pg_catalog.format('This database has the encoding %s.', pg_catalog.current_setting('server_encoding')),
            HINT = 'Create the database with ENCODING ''UTF8'' TEMPLATE template0.';
  END IF;
  -- functions that make SQL have the name of the schema in their formats
  IF pg_catalog.strpos($s$@extschema@$s$, '%') OPERATOR(pg_catalog.>) 0 THEN
    RAISE EXCEPTION 'docpatterns cannot be installed into a schema whose name has a percent sign'
      USING ERRCODE = 'invalid_schema_name';
  END IF;
END
$$;

CREATE TYPE bson;
CREATE TYPE bson_value;
CREATE TYPE objectid;

CREATE FUNCTION bson_in(cstring) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_out(bson) RETURNS cstring
  AS 'MODULE_PATHNAME', 'dp_bson_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_recv(internal) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_send(bson) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION bson_typanalyze(internal) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bson_typanalyze' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_typanalyze(internal) IS 'sets up ANALYZE of columns of documents: statistics path by path, which bson_stats shows';

CREATE TYPE bson (
  INPUT = bson_in, OUTPUT = bson_out, RECEIVE = bson_recv, SEND = bson_send, ANALYZE = bson_typanalyze,
  INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = extended,
  -- a category of their own, so that a bare literal is a bson where a function takes either type
  CATEGORY = 'J', PREFERRED = true
);
COMMENT ON TYPE bson IS 'one BSON document, stored byte for byte as a MongoDB driver writes it';

CREATE FUNCTION bson_value_in(cstring) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_value_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_out(bson_value) RETURNS cstring
  AS 'MODULE_PATHNAME', 'dp_bson_value_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_recv(internal) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_value_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_send(bson_value) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_value_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE bson_value (
  INPUT = bson_value_in, OUTPUT = bson_value_out, RECEIVE = bson_value_recv, SEND = bson_value_send,
  INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = extended, CATEGORY = 'J'
);
COMMENT ON TYPE bson_value IS 'any BSON value: one byte of type, then the bytes of the value as they stand in a document';

CREATE FUNCTION objectid_in(cstring) RETURNS objectid
  AS 'MODULE_PATHNAME', 'dp_objectid_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION objectid_out(objectid) RETURNS cstring
  AS 'MODULE_PATHNAME', 'dp_objectid_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION objectid_recv(internal) RETURNS objectid
  AS 'MODULE_PATHNAME', 'dp_objectid_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION objectid_send(objectid) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_objectid_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE objectid (
  INPUT = objectid_in, OUTPUT = objectid_out, RECEIVE = objectid_recv, SEND = objectid_send,
  INTERNALLENGTH = 12, ALIGNMENT = char
);
COMMENT ON TYPE objectid IS 'a 12-byte id that MongoDB drivers generate: seconds first, big-endian';
