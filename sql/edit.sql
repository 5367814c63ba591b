-- Editing documents: bson_set, bson_unset, || and - (src/bson/editfn.c).

CREATE FUNCTION bson_set(doc bson, path text, value anycompatible) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_set' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bson_set(bson, text, anycompatible) IS
  'The document with the value, of any SQL type, at the dotted path';

CREATE FUNCTION bson_set(doc bson, path text, value anycompatible, create_missing boolean)
  RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_set' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bson_set(bson, text, anycompatible, boolean) IS
  'The same; with create_missing false, a document without a value at the path stays as it is';

CREATE FUNCTION bson_unset(doc bson, VARIADIC paths text[]) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_unset' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_unset(bson, text[]) IS
  'The document without the values at the dotted paths. An array element becomes null; NULLs among '
  'the paths and paths that lead nowhere are ignored';

CREATE FUNCTION docpatterns.bson_remove(doc bson, path text) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_unset_one' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_remove(bson, text) IS 'the function of the operator -';

CREATE FUNCTION docpatterns.bson_remove(doc bson, paths text[]) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_unset' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_remove(bson, text[]) IS 'the function of the operator -';

CREATE OPERATOR - (LEFTARG = bson, RIGHTARG = text, FUNCTION = docpatterns.bson_remove);
COMMENT ON OPERATOR - (bson, text) IS 'the document without the value at the dotted path';
CREATE OPERATOR - (LEFTARG = bson, RIGHTARG = text[], FUNCTION = docpatterns.bson_remove);
COMMENT ON OPERATOR - (bson, text[]) IS 'the document without the values at the dotted paths';

CREATE FUNCTION docpatterns.bson_concat(bson, bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_concat' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_concat(bson, bson) IS
  'the fields of both documents: those of the left one, with the values of the right one for equal '
  'names, then the others';
CREATE OPERATOR || (LEFTARG = bson, RIGHTARG = bson, FUNCTION = docpatterns.bson_concat);
COMMENT ON OPERATOR || (bson, bson) IS
  'the fields of both documents, the right one''s values winning';

CREATE FUNCTION docpatterns.bson_concat(bson_value, bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_value_concat' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_concat(bson_value, bson_value) IS
  'of two documents, the fields of both; otherwise an array of the elements of both, a value that '
  'is no array being one element';
CREATE OPERATOR || (LEFTARG = bson_value, RIGHTARG = bson_value,
    FUNCTION = docpatterns.bson_concat);
COMMENT ON OPERATOR || (bson_value, bson_value) IS
  'the fields of two documents, or an array of the elements of both';

CREATE FUNCTION docpatterns.bson_remove(value bson_value, path text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_value_unset' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_remove(bson_value, text) IS
  'a document or an array without the value at the dotted path; error 22023 for any other value';
CREATE OPERATOR - (LEFTARG = bson_value, RIGHTARG = text, FUNCTION = docpatterns.bson_remove);
COMMENT ON OPERATOR - (bson_value, text) IS
  'a document or an array without the value at the dotted path';

CREATE FUNCTION docpatterns.bson_remove(value bson_value, element int) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_bson_value_remove' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_remove(bson_value, int) IS
  'an array without the element at a position, negative ones from the end; an error 42804 for any '
  'other value';
CREATE OPERATOR - (LEFTARG = bson_value, RIGHTARG = int, FUNCTION = docpatterns.bson_remove);
COMMENT ON OPERATOR - (bson_value, int) IS 'an array without the element at a position';

CREATE FUNCTION bson_array_append(doc bson, path text, VARIADIC elements "any") RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_array_append' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bson_array_append(bson, text, "any") IS
  'The document with the values, of any SQL types, at the end of the array at the path, which is '
  'created if missing. Error: 42804 if something else is there';
