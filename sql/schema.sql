-- Schemas: MongoDB's $jsonSchema (src/mql/schema*.c).

CREATE FUNCTION bson_validate(doc bson, schema bson) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bson_validate' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 4;
COMMENT ON FUNCTION bson_validate(bson, bson) IS 'whether the document has the shape that the schema, in MongoDB''s dialect of JSON Schema, asks for; 0A000 for an unknown keyword, 22023 for a bad argument, 2201B for a bad pattern; a schema that is a constant is compiled once per query';

CREATE FUNCTION bson_schema_errors(doc bson, schema bson)
  RETURNS TABLE (path text, rule text, expected text, found text)
  AS 'MODULE_PATHNAME', 'dp_bson_schema_errors' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10 ROWS 2;
COMMENT ON FUNCTION bson_schema_errors(bson, bson) IS 'a row for each rule of the schema that the document breaks: the field, the keyword, what it asks for and what is there; errors as bson_validate';
