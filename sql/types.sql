-- The types and their input and output. The functions behind them are in src/bson/.

DO $$
BEGIN
  IF pg_catalog.current_setting('server_encoding') OPERATOR(pg_catalog.<>) 'UTF8' THEN
    RAISE EXCEPTION 'docpatterns requires a database with encoding UTF8'
      USING ERRCODE = 'feature_not_supported',
            DETAIL = pg_catalog.format('This database has the encoding %s.',
              pg_catalog.current_setting('server_encoding')),
            HINT = 'Create the database with ENCODING ''UTF8'' TEMPLATE template0.';
  END IF;
  -- format strings of functions that generate SQL contain the name of the schema
  IF pg_catalog.strpos($s$@extschema@$s$, '%') OPERATOR(pg_catalog.>) 0 THEN
    RAISE EXCEPTION 'cannot install docpatterns into a schema whose name contains a percent sign'
      USING ERRCODE = 'invalid_schema_name';
  END IF;
END
$$;

-- Objects that users do not call. All roles may use it, because operators, triggers and views do.
CREATE SCHEMA docpatterns;
COMMENT ON SCHEMA docpatterns IS
  'internal functions and bookkeeping of the extension docpatterns';
GRANT USAGE ON SCHEMA docpatterns TO PUBLIC;

CREATE FUNCTION docpatterns._language_call() RETURNS language_handler
  AS 'MODULE_PATHNAME', 'dp_language_call' LANGUAGE C;
COMMENT ON FUNCTION docpatterns._language_call() IS
  'calls PL/pgSQL and removes the context of functions of the extension from errors';

CREATE FUNCTION docpatterns._language_validate(oid) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_language_validate' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._language_validate(oid) IS 'the validator of PL/pgSQL';

CREATE LANGUAGE docpatterns HANDLER docpatterns._language_call
  VALIDATOR docpatterns._language_validate;
COMMENT ON LANGUAGE docpatterns IS
  'PL/pgSQL of the functions of the extension docpatterns: errors do not show their statements';

CREATE TYPE bson;
CREATE TYPE bson_value;
CREATE TYPE objectid;

CREATE FUNCTION docpatterns.bson_in(cstring) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_out(bson) RETURNS cstring
  AS 'MODULE_PATHNAME', 'dp_bson_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_recv(internal) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_send(bson) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION docpatterns.bson_typanalyze(internal) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bson_typanalyze' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_typanalyze(internal) IS
  'sets up ANALYZE of columns of documents: statistics path by path, which bson_stats shows';

CREATE TYPE bson (
  INPUT = docpatterns.bson_in, OUTPUT = docpatterns.bson_out, RECEIVE = docpatterns.bson_recv,
  SEND = docpatterns.bson_send, ANALYZE = docpatterns.bson_typanalyze,
  INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = extended,
  -- a separate category, so that a bare literal is a bson where a function accepts either type
  CATEGORY = 'J', PREFERRED = true
);
COMMENT ON TYPE bson IS 'one BSON document, stored byte for byte as a MongoDB driver writes it';

CREATE FUNCTION bson_value_in(cstring) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_value_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_in(cstring) IS
  'The value of a text in Extended JSON. Error: 22P02 invalid text';
CREATE FUNCTION docpatterns.bson_value_out(bson_value) RETURNS cstring
  AS 'MODULE_PATHNAME', 'dp_bson_value_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.bson_value_recv(internal) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_value_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION bson_value_send(bson_value) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_bson_value_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_send(bson_value) IS 'The type and the bytes of the value';

CREATE TYPE bson_value (
  INPUT = bson_value_in, OUTPUT = docpatterns.bson_value_out, RECEIVE = docpatterns.bson_value_recv,
  SEND = bson_value_send,
  INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = extended, CATEGORY = 'J'
);
COMMENT ON TYPE bson_value IS
  'any BSON value: one byte of type, then the bytes of the value as they stand in a document';

CREATE FUNCTION docpatterns.objectid_in(cstring) RETURNS objectid
  AS 'MODULE_PATHNAME', 'dp_objectid_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.objectid_out(objectid) RETURNS cstring
  AS 'MODULE_PATHNAME', 'dp_objectid_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.objectid_recv(internal) RETURNS objectid
  AS 'MODULE_PATHNAME', 'dp_objectid_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.objectid_send(objectid) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_objectid_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE objectid (
  INPUT = docpatterns.objectid_in, OUTPUT = docpatterns.objectid_out,
  RECEIVE = docpatterns.objectid_recv, SEND = docpatterns.objectid_send,
  INTERNALLENGTH = 12, ALIGNMENT = char
);
COMMENT ON TYPE objectid IS 'a 12-byte ID that MongoDB drivers generate: seconds first, big-endian';
