-- Text and binary forms. The functions behind them are in src/bson/textfn.c.

CREATE FUNCTION bson_to_json(doc bson, form text DEFAULT 'relaxed') RETURNS text
  AS 'MODULE_PATHNAME', 'dp_bson_to_json' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bson_to_json(bson, text) IS
  'The text as relaxed or canonical Extended JSON, or as the shell writes it. Error: 22023 another '
  'form';

CREATE FUNCTION bson_to_json(value bson_value, form text DEFAULT 'relaxed') RETURNS text
  AS 'MODULE_PATHNAME', 'dp_bson_value_to_json' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bson_to_json(bson_value, text) IS
  'The text as relaxed or canonical Extended JSON, or as the shell writes it. Error: 22023 another '
  'form';

CREATE FUNCTION bson_pretty(doc bson) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_bson_pretty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bson_pretty(bson) IS
  'Relaxed Extended JSON, one field or element a line, indented by two spaces a level';

CREATE FUNCTION bson_pretty(value bson_value) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_bson_value_pretty' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bson_pretty(bson_value) IS
  'Relaxed Extended JSON, one field or element a line, indented by two spaces a level';

-- The bytes of a bson are those of the document: a cast to bytea changes nothing, a cast from bytea
-- checks everything. A bson_value is cast to bytea and back as the binary data that it contains
-- (cast.sql); its own bytes, with the type first, are those of bson_value_send() and
-- bson_value_from_bytea().

CREATE FUNCTION bson_from_bytea(bytes bytea) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_from_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION bson_from_bytea(bytea) IS
  'The document with these bytes. Errors: 22P03 with the offset of the first fault, 54000';

CREATE FUNCTION bson_value_from_bytea(bytes bytea) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_value_from_bytea' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
    COST 10;
COMMENT ON FUNCTION bson_value_from_bytea(bytea) IS
  'The value with these type and bytes. Errors: 22P03 with the offset of the first fault, 54000';

CREATE CAST (bson AS bytea) WITHOUT FUNCTION;
CREATE CAST (bytea AS bson) WITH FUNCTION bson_from_bytea(bytea) AS ASSIGNMENT;
COMMENT ON CAST (bson AS bytea) IS 'the bytes of the document, as a driver writes them';
COMMENT ON CAST (bytea AS bson) IS
  'the document that the bytes are, after all of them have been checked';

CREATE FUNCTION bson_documents(bytes bytea) RETURNS SETOF bson
  AS 'MODULE_PATHNAME', 'dp_bson_documents' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100 ROWS
    1000;
COMMENT ON FUNCTION bson_documents(bytea) IS
  'The documents that follow each other in the bytes, as in a file that mongodump writes. Errors: '
  '22P03 with the offset of the first fault in the file, 54000';
