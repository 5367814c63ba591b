-- Casts between bson_value and SQL types. The functions are in src/bson/cast.c and
-- src/bson/cast_out.c.
--
-- No cast is implicit: it would make 1 = 'a'::text legal in the whole database.

-- SQL values become BSON values by assignment. BSON values become SQL values by an explicit cast:
-- null becomes NULL, a value that does not fit is an error.
DO $$
DECLARE
  p record;
BEGIN
  FOR p IN
    SELECT * FROM (VALUES
      ('boolean', 'bool', 'a boolean',
       'boolean of a boolean; error 22023 for a value of another type'),
      ('smallint', 'int2', 'an int32',
       'smallint of a number;'
       ' error 22023 for a value of another type, 22003 if it has a fraction or is out of range'),
      ('integer', 'int4', 'an int32',
       'integer of a number;'
       ' error 22023 for a value of another type, 22003 if it has a fraction or is out of range'),
      ('bigint', 'int8', 'an int64',
       'bigint of a number;'
       ' error 22023 for a value of another type, 22003 if it has a fraction or is out of range'),
      ('real', 'float4', 'a double',
       'real of a number; error 22023 for a value of another type, 22003 if it is out of range'),
      ('double precision', 'float8', 'a double',
       'double precision of a number;'
       ' error 22023 for a value of another type, 22003 if it is out of range'),
      ('numeric', 'numeric', 'a decimal128; error 22003 if it needs more than 34 digits',
       'numeric of a number; error 22023 for a value of another type'),
      ('text', 'text', 'a string',
       'text of any value, as ->> gives it; error 22P05 for a string with a null character'),
      ('character', 'bpchar', 'a string without the padding',
       NULL),
      ('name', 'name', 'a string',
       'name of any value: its text, cut off at 63 bytes;'
       ' error 22P05 for a string with a null character'),
      ('timestamp with time zone', 'timestamptz',
        'a date in milliseconds; error 22008 if it is infinite',
       'timestamp with time zone of a date;'
       ' error 22023 for a value of another type, 22008 if it is out of range'),
      ('timestamp', 'timestamp', 'a date in milliseconds, taken as UTC; error 22008 if it is '
        'infinite',
       'timestamp of a date, in UTC;'
       ' error 22023 for a value of another type, 22008 if it is out of range'),
      ('date', 'date', 'the date at midnight UTC; error 22008 if it is infinite',
       'date the day of a date, in UTC;'
       ' error 22023 for a value of another type, 22008 if it is out of range'),
      ('uuid', 'uuid', 'binary data of subtype 4',
       'uuid of binary data of subtype 4; error 22023 for a value of another type'),
      ('objectid', 'objectid', 'an ObjectId',
       'objectid of an ObjectId; error 22023 for a value of another type'),
      ('bytea', 'bytea', 'binary data of subtype 0',
       'bytea of binary data of any subtype; error 22023 for a value of another type'),
      ('json', 'json', 'what its text is as Extended JSON; error 22P02',
       'json of any value, see the cast from bson to json'),
      ('jsonb', 'jsonb', 'what it says, see the cast from jsonb to bson',
       'jsonb of any value, see the cast from bson to jsonb;'
       ' error 22P05 for a string with a null character'),
      ('bson', 'bson', 'a document',
       'bson of a document; error 22023 for a value of another type'))
      AS v (t, name, from_sql, to_sql)
  LOOP
    EXECUTE pg_catalog.format($q$
      CREATE FUNCTION docpatterns.bson_value_from(%1$s) RETURNS bson_value
        AS 'MODULE_PATHNAME', 'dp_cast_from_%2$s' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
      COMMENT ON FUNCTION docpatterns.bson_value_from(%1$s) IS 'BSON value: %3$s';
      CREATE CAST (%1$s AS bson_value)
        WITH FUNCTION docpatterns.bson_value_from(%1$s) AS ASSIGNMENT$q$,
      p.t, p.name, p.from_sql);
    CONTINUE WHEN p.to_sql IS NULL;
    EXECUTE pg_catalog.format($q$
      CREATE FUNCTION docpatterns.bson_value_to_%2$s(bson_value) RETURNS %1$s
        AS 'MODULE_PATHNAME', 'dp_cast_to_%2$s' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
      COMMENT ON FUNCTION docpatterns.bson_value_to_%2$s(bson_value) IS %3$L;
      CREATE CAST (bson_value AS %1$s) WITH FUNCTION docpatterns.bson_value_to_%2$s(bson_value)$q$,
      p.t, p.name, p.to_sql);
  END LOOP;
END
$$;

-- Without their own casts they would use I/O conversion, from and to Extended JSON.
CREATE CAST (character varying AS bson_value)
  WITH FUNCTION docpatterns.bson_value_from(text) AS ASSIGNMENT;
CREATE CAST (bson_value AS character varying)
  WITH FUNCTION docpatterns.bson_value_to_text(bson_value);
CREATE CAST (bson_value AS character) WITH FUNCTION docpatterns.bson_value_to_text(bson_value);
