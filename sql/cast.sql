-- Casts between bson_value and SQL types. The functions are in src/bson/cast.c and src/bson/cast_out.c.
--
-- None is implicit: it would make 1 = 'a'::text legal in the whole database.

-- SQL values become BSON values in assignments.

CREATE FUNCTION bson_value_from(boolean) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_bool' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(boolean) IS 'BSON value: a boolean';
CREATE CAST (boolean AS bson_value) WITH FUNCTION bson_value_from(boolean) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(smallint) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_int2' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(smallint) IS 'BSON value: an int32';
CREATE CAST (smallint AS bson_value) WITH FUNCTION bson_value_from(smallint) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(integer) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_int4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(integer) IS 'BSON value: an int32';
CREATE CAST (integer AS bson_value) WITH FUNCTION bson_value_from(integer) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(bigint) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(bigint) IS 'BSON value: an int64';
CREATE CAST (bigint AS bson_value) WITH FUNCTION bson_value_from(bigint) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(real) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(real) IS 'BSON value: a double';
CREATE CAST (real AS bson_value) WITH FUNCTION bson_value_from(real) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(double precision) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_float8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(double precision) IS 'BSON value: a double';
CREATE CAST (double precision AS bson_value) WITH FUNCTION bson_value_from(double precision) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(numeric) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_numeric' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(numeric) IS 'BSON value: a decimal128; error 22003 if it needs more than 34 digits';
CREATE CAST (numeric AS bson_value) WITH FUNCTION bson_value_from(numeric) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(text) IS 'BSON value: a string';
CREATE CAST (text AS bson_value) WITH FUNCTION bson_value_from(text) AS ASSIGNMENT;

-- Without a cast of its own it would be read as Extended JSON by the input function.
CREATE CAST (character varying AS bson_value) WITH FUNCTION bson_value_from(text) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(character) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_bpchar' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(character) IS 'BSON value: a string without the padding';
CREATE CAST (character AS bson_value) WITH FUNCTION bson_value_from(character) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(name) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_name' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(name) IS 'BSON value: a string';
CREATE CAST (name AS bson_value) WITH FUNCTION bson_value_from(name) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(timestamp with time zone) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_timestamptz' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(timestamp with time zone) IS 'BSON value: a date in milliseconds; error 22008 if it is infinite';
CREATE CAST (timestamp with time zone AS bson_value) WITH FUNCTION bson_value_from(timestamp with time zone) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(timestamp) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_timestamp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(timestamp) IS 'BSON value: a date in milliseconds, taken as UTC; error 22008 if it is infinite';
CREATE CAST (timestamp AS bson_value) WITH FUNCTION bson_value_from(timestamp) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(date) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_date' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(date) IS 'BSON value: the date at midnight UTC; error 22008 if it is infinite';
CREATE CAST (date AS bson_value) WITH FUNCTION bson_value_from(date) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(uuid) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_uuid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(uuid) IS 'BSON value: binary data of subtype 4';
CREATE CAST (uuid AS bson_value) WITH FUNCTION bson_value_from(uuid) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(objectid) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_objectid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(objectid) IS 'BSON value: an ObjectId';
CREATE CAST (objectid AS bson_value) WITH FUNCTION bson_value_from(objectid) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(bytea) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(bytea) IS 'BSON value: binary data of subtype 0';
CREATE CAST (bytea AS bson_value) WITH FUNCTION bson_value_from(bytea) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(jsonb) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_jsonb' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(jsonb) IS 'BSON value: what it says, see the cast from jsonb to bson';
CREATE CAST (jsonb AS bson_value) WITH FUNCTION bson_value_from(jsonb) AS ASSIGNMENT;

CREATE FUNCTION bson_value_from(bson) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_cast_from_bson' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_from(bson) IS 'BSON value: a document';
CREATE CAST (bson AS bson_value) WITH FUNCTION bson_value_from(bson) AS ASSIGNMENT;

-- BSON values become SQL values where a cast is written. null becomes NULL; anything that does not fit is an error.

CREATE FUNCTION bson_value_to_bool(bson_value) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_cast_to_bool' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_bool(bson_value) IS 'boolean of a boolean; error 22023 for a value of another type';
CREATE CAST (bson_value AS boolean) WITH FUNCTION bson_value_to_bool(bson_value);

CREATE FUNCTION bson_value_to_int2(bson_value) RETURNS smallint
  AS 'MODULE_PATHNAME', 'dp_cast_to_int2' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_int2(bson_value) IS 'smallint of a number; error 22023 for a value of another type, 22003 if it has a fraction or is out of range';
CREATE CAST (bson_value AS smallint) WITH FUNCTION bson_value_to_int2(bson_value);

CREATE FUNCTION bson_value_to_int4(bson_value) RETURNS integer
  AS 'MODULE_PATHNAME', 'dp_cast_to_int4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_int4(bson_value) IS 'integer of a number; error 22023 for a value of another type, 22003 if it has a fraction or is out of range';
CREATE CAST (bson_value AS integer) WITH FUNCTION bson_value_to_int4(bson_value);

CREATE FUNCTION bson_value_to_int8(bson_value) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_cast_to_int8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_int8(bson_value) IS 'bigint of a number; error 22023 for a value of another type, 22003 if it has a fraction or is out of range';
CREATE CAST (bson_value AS bigint) WITH FUNCTION bson_value_to_int8(bson_value);

CREATE FUNCTION bson_value_to_float4(bson_value) RETURNS real
  AS 'MODULE_PATHNAME', 'dp_cast_to_float4' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_float4(bson_value) IS 'real of a number; error 22023 for a value of another type, 22003 if it is out of range';
CREATE CAST (bson_value AS real) WITH FUNCTION bson_value_to_float4(bson_value);

CREATE FUNCTION bson_value_to_float8(bson_value) RETURNS double precision
  AS 'MODULE_PATHNAME', 'dp_cast_to_float8' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_float8(bson_value) IS 'double precision of a number; error 22023 for a value of another type, 22003 if it is out of range';
CREATE CAST (bson_value AS double precision) WITH FUNCTION bson_value_to_float8(bson_value);

CREATE FUNCTION bson_value_to_numeric(bson_value) RETURNS numeric
  AS 'MODULE_PATHNAME', 'dp_cast_to_numeric' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_numeric(bson_value) IS 'numeric of a number; error 22023 for a value of another type';
CREATE CAST (bson_value AS numeric) WITH FUNCTION bson_value_to_numeric(bson_value);

CREATE FUNCTION bson_value_to_text(bson_value) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_cast_to_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_text(bson_value) IS 'text of any value, as ->> gives it; error 22P05 for a string with a null character';
CREATE CAST (bson_value AS text) WITH FUNCTION bson_value_to_text(bson_value);
-- Without casts of their own they would get the output function's Extended JSON.
CREATE CAST (bson_value AS character varying) WITH FUNCTION bson_value_to_text(bson_value);
CREATE CAST (bson_value AS character) WITH FUNCTION bson_value_to_text(bson_value);

CREATE FUNCTION bson_value_to_name(bson_value) RETURNS name
  AS 'MODULE_PATHNAME', 'dp_cast_to_name' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_name(bson_value) IS 'name of any value: its text, cut off at 63 bytes; error 22P05 for a string with a null character';
CREATE CAST (bson_value AS name) WITH FUNCTION bson_value_to_name(bson_value);

CREATE FUNCTION bson_value_to_timestamptz(bson_value) RETURNS timestamp with time zone
  AS 'MODULE_PATHNAME', 'dp_cast_to_timestamptz' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_timestamptz(bson_value) IS 'timestamp with time zone of a date; error 22023 for a value of another type, 22008 if it is out of range';
CREATE CAST (bson_value AS timestamp with time zone) WITH FUNCTION bson_value_to_timestamptz(bson_value);

CREATE FUNCTION bson_value_to_timestamp(bson_value) RETURNS timestamp
  AS 'MODULE_PATHNAME', 'dp_cast_to_timestamp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_timestamp(bson_value) IS 'timestamp of a date, in UTC; error 22023 for a value of another type, 22008 if it is out of range';
CREATE CAST (bson_value AS timestamp) WITH FUNCTION bson_value_to_timestamp(bson_value);

CREATE FUNCTION bson_value_to_date(bson_value) RETURNS date
  AS 'MODULE_PATHNAME', 'dp_cast_to_date' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_date(bson_value) IS 'date the day of a date, in UTC; error 22023 for a value of another type, 22008 if it is out of range';
CREATE CAST (bson_value AS date) WITH FUNCTION bson_value_to_date(bson_value);

CREATE FUNCTION bson_value_to_uuid(bson_value) RETURNS uuid
  AS 'MODULE_PATHNAME', 'dp_cast_to_uuid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_uuid(bson_value) IS 'uuid of binary data of subtype 4; error 22023 for a value of another type';
CREATE CAST (bson_value AS uuid) WITH FUNCTION bson_value_to_uuid(bson_value);

CREATE FUNCTION bson_value_to_objectid(bson_value) RETURNS objectid
  AS 'MODULE_PATHNAME', 'dp_cast_to_objectid' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_objectid(bson_value) IS 'objectid of an ObjectId; error 22023 for a value of another type';
CREATE CAST (bson_value AS objectid) WITH FUNCTION bson_value_to_objectid(bson_value);

CREATE FUNCTION bson_value_to_bytea(bson_value) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_cast_to_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_bytea(bson_value) IS 'bytea of binary data of any subtype; error 22023 for a value of another type';
CREATE CAST (bson_value AS bytea) WITH FUNCTION bson_value_to_bytea(bson_value);

CREATE FUNCTION bson_value_to_jsonb(bson_value) RETURNS jsonb
  AS 'MODULE_PATHNAME', 'dp_cast_to_jsonb' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_jsonb(bson_value) IS 'jsonb of any value, see the cast from bson to jsonb; error 22P05 for a string with a null character';
CREATE CAST (bson_value AS jsonb) WITH FUNCTION bson_value_to_jsonb(bson_value);

CREATE FUNCTION bson_value_to_bson(bson_value) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_cast_to_bson' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_value_to_bson(bson_value) IS 'bson of a document; error 22023 for a value of another type';
CREATE CAST (bson_value AS bson) WITH FUNCTION bson_value_to_bson(bson_value);

