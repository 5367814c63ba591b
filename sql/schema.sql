-- Schemas: MongoDB's $jsonSchema (src/mql/schema*.c).

CREATE FUNCTION bson_validate(doc bson, schema bson) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bson_validate' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 4;
COMMENT ON FUNCTION bson_validate(bson, bson) IS
  'Whether the document satisfies the schema; stops at the first violated rule. Errors: 0A000 an '
  'unknown keyword, 22023 a bad argument, 2201B a bad pattern';

CREATE FUNCTION bson_schema_errors(doc bson, schema bson)
  RETURNS TABLE (path text, rule text, expected text, found text)
  AS 'MODULE_PATHNAME', 'dp_bson_schema_errors' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 10
    ROWS 2;
COMMENT ON FUNCTION bson_schema_errors(bson, bson) IS
  'A row for each violated rule: the field, the keyword, what it requires and what was found; no '
  'rows: the document is valid. Errors as bson_validate';
