-- Reading fields by path: -> ->> #> #>> ? ?| ?& and the functions behind them (src/bson/access.c).

CREATE FUNCTION docpatterns._field_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_field_support' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._field_support(internal) IS
  'for the planner: loads the library, whose hooks find indexes and statistics for fields';

CREATE FUNCTION bson_get(doc bson, path text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_get' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT docpatterns._field_support;
COMMENT ON FUNCTION bson_get(bson, text) IS
  'The value at a path, NULL without one: a dotted path, the parts of a path taken literally, or a '
  'position (in a document the field whose name is that number)';

CREATE FUNCTION bson_get(value bson_value, path text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_value_get' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_get(bson_value, text) IS
  'The value at a path, NULL without one: a dotted path, the parts of a path taken literally, or a '
  'position (in a document the field whose name is that number)';

CREATE FUNCTION bson_get(doc bson, field int) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_get_number' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT docpatterns._field_support;
COMMENT ON FUNCTION bson_get(bson, int) IS
  'The value at a path, NULL without one: a dotted path, the parts of a path taken literally, or a '
  'position (in a document the field whose name is that number)';

CREATE FUNCTION bson_get(value bson_value, element int) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_value_element' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_get(bson_value, int) IS
  'The value at a path, NULL without one: a dotted path, the parts of a path taken literally, or a '
  'position (in a document the field whose name is that number)';

CREATE FUNCTION bson_get(doc bson, path text[]) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_get_array' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT docpatterns._field_support;
COMMENT ON FUNCTION bson_get(bson, text[]) IS
  'The value at a path, NULL without one: a dotted path, the parts of a path taken literally, or a '
  'position (in a document the field whose name is that number)';

CREATE FUNCTION bson_get(value bson_value, path text[]) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_value_get_array' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_get(bson_value, text[]) IS
  'The value at a path, NULL without one: a dotted path, the parts of a path taken literally, or a '
  'position (in a document the field whose name is that number)';

CREATE FUNCTION bson_get_text(doc bson, path text) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_bson_get_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE
  SUPPORT docpatterns._field_support;
COMMENT ON FUNCTION bson_get_text(bson, text) IS
  'The same as text; NULL also for null. Error: 22P05 a string with a null character';

CREATE FUNCTION bson_get_text(value bson_value, path text) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_bson_value_get_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_get_text(bson_value, text) IS
  'The same as text; NULL also for null. Error: 22P05 a string with a null character';

CREATE FUNCTION bson_get_text(doc bson, field int) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_bson_get_number_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_get_text(bson, int) IS
  'The same as text; NULL also for null. Error: 22P05 a string with a null character';

CREATE FUNCTION bson_get_text(value bson_value, element int) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_bson_value_element_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_get_text(bson_value, int) IS
  'The same as text; NULL also for null. Error: 22P05 a string with a null character';

CREATE FUNCTION bson_get_text(doc bson, path text[]) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_bson_get_array_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_get_text(bson, text[]) IS
  'The same as text; NULL also for null. Error: 22P05 a string with a null character';

CREATE FUNCTION bson_get_text(value bson_value, path text[]) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_bson_value_get_array_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_get_text(bson_value, text[]) IS
  'The same as text; NULL also for null. Error: 22P05 a string with a null character';

CREATE OPERATOR -> (LEFTARG = bson, RIGHTARG = text, FUNCTION = bson_get);
COMMENT ON OPERATOR -> (bson, text) IS 'the field that the dotted path leads to';
CREATE OPERATOR -> (LEFTARG = bson, RIGHTARG = int, FUNCTION = bson_get);
COMMENT ON OPERATOR -> (bson, int) IS 'the field of a document whose name is this number';
CREATE OPERATOR -> (LEFTARG = bson_value, RIGHTARG = text, FUNCTION = bson_get);
COMMENT ON OPERATOR -> (bson_value, text) IS
  'the field that the dotted path leads to inside a document or an array';
CREATE OPERATOR -> (LEFTARG = bson_value, RIGHTARG = int, FUNCTION = bson_get);
COMMENT ON OPERATOR -> (bson_value, int) IS 'the element of an array';

CREATE OPERATOR ->> (LEFTARG = bson, RIGHTARG = text, FUNCTION = bson_get_text);
COMMENT ON OPERATOR ->> (bson, text) IS 'the field that the dotted path leads to, as text';
CREATE OPERATOR ->> (LEFTARG = bson, RIGHTARG = int, FUNCTION = bson_get_text);
COMMENT ON OPERATOR ->> (bson, int) IS 'the field of a document whose name is this number, as text';
CREATE OPERATOR ->> (LEFTARG = bson_value, RIGHTARG = text, FUNCTION = bson_get_text);
COMMENT ON OPERATOR ->> (bson_value, text) IS
  'the field that the dotted path leads to inside a document or an array, as text';
CREATE OPERATOR ->> (LEFTARG = bson_value, RIGHTARG = int, FUNCTION = bson_get_text);
COMMENT ON OPERATOR ->> (bson_value, int) IS 'the element of an array, as text';

CREATE OPERATOR #> (LEFTARG = bson, RIGHTARG = text[], FUNCTION = bson_get);
COMMENT ON OPERATOR #> (bson, text[]) IS
  'the field that the parts of the path lead to, each taken as it is';
CREATE OPERATOR #> (LEFTARG = bson_value, RIGHTARG = text[], FUNCTION = bson_get);
COMMENT ON OPERATOR #> (bson_value, text[]) IS
  'the value at a path inside a document or an array';
CREATE OPERATOR #>> (LEFTARG = bson, RIGHTARG = text[], FUNCTION = bson_get_text);
COMMENT ON OPERATOR #>> (bson, text[]) IS 'the field that the parts of the path lead to, as text';
CREATE OPERATOR #>> (LEFTARG = bson_value, RIGHTARG = text[], FUNCTION = bson_get_text);
COMMENT ON OPERATOR #>> (bson_value, text[]) IS
  'the value at a path inside a document or an array, as text';

CREATE FUNCTION bson_exists(doc bson, path text) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bson_exists' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_exists(bson, text) IS
  'Whether there is a value at the path, null included';
CREATE FUNCTION bson_exists(value bson_value, path text) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bson_value_exists' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_exists(bson_value, text) IS
  'Whether there is a value at the path, null included';
CREATE FUNCTION bson_exists_any(doc bson, paths text[]) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bson_exists_any' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_exists_any(bson, text[]) IS
  'Whether there is a value at any of the paths; NULLs among them are ignored';
CREATE FUNCTION bson_exists_all(doc bson, paths text[]) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bson_exists_all' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_exists_all(bson, text[]) IS
  'Whether there are values at all of the paths; NULLs among them are ignored';

CREATE OPERATOR ? (LEFTARG = bson, RIGHTARG = text, FUNCTION = bson_exists,
    RESTRICT = docpatterns.bson_existssel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR ? (bson, text) IS 'whether the dotted path leads to anything';
CREATE OPERATOR ? (LEFTARG = bson_value, RIGHTARG = text, FUNCTION = bson_exists,
    RESTRICT = matchingsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR ? (bson_value, text) IS
  'whether the dotted path leads to anything inside a document or an array';
CREATE OPERATOR ?| (LEFTARG = bson, RIGHTARG = text[], FUNCTION = bson_exists_any,
    RESTRICT = docpatterns.bson_existssel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR ?| (bson, text[]) IS 'whether any of the paths leads to anything';
CREATE OPERATOR ?& (LEFTARG = bson, RIGHTARG = text[], FUNCTION = bson_exists_all,
    RESTRICT = docpatterns.bson_existssel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR ?& (bson, text[]) IS 'whether all of the paths lead to something';

CREATE FUNCTION bson_typeof(value bson_value) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_bson_value_typeof' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_typeof(bson_value) IS
  'MongoDB''s name of the type: double, string, object, array, binData, undefined, objectId, bool, '
  'date, null, regex, dbPointer, javascript, symbol, javascriptWithScope, int, timestamp, long, '
  'decimal, minKey or maxKey';
CREATE FUNCTION bson_typeof(doc bson, path text) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_bson_typeof' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_typeof(bson, text) IS
  'The type of the value at the path; NULL without one';

CREATE FUNCTION bson_size(doc bson) RETURNS int
  AS 'MODULE_PATHNAME', 'dp_bson_size' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_size(bson) IS 'The bytes of the document, known without reading it';
CREATE FUNCTION bson_size(value bson_value) RETURNS int
  AS 'MODULE_PATHNAME', 'dp_bson_value_size' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_size(bson_value) IS
  'The bytes of the value inside a document, known without reading it';

CREATE FUNCTION bson_array_length(value bson_value) RETURNS int
  AS 'MODULE_PATHNAME', 'dp_bson_array_length' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_array_length(bson_value) IS
  'The number of elements of an array. Error: 42804 another value';
CREATE FUNCTION bson_array_length(doc bson, path text) RETURNS int
  AS 'MODULE_PATHNAME', 'dp_bson_array_length_path' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_array_length(bson, text) IS
  'The number of elements of the array at the path; NULL without a value. Error: 42804 another '
  'value';

CREATE FUNCTION bson_values(doc bson, path text) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_values' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 10;
COMMENT ON FUNCTION bson_values(bson, text) IS
  'Every value that the dotted path reaches, also through documents in arrays; an array at its end '
  'gives its elements, one level';

CREATE FUNCTION docpatterns.bson_subscript(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_subscript' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
ALTER TYPE bson SET (SUBSCRIPT = docpatterns.bson_subscript);
ALTER TYPE bson_value SET (SUBSCRIPT = docpatterns.bson_subscript);
