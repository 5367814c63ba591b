-- Editing documents: bson_set, bson_unset, || and - (src/bson/editfn.c).

CREATE FUNCTION bson_set(doc bson, path text, value "any") RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_set' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bson_set(bson, text, "any") IS 'the document with the value, of any SQL type, where the dotted path leads; missing sub-documents are made, SQL NULL becomes null; an error 22023 where the path meets a value that is no document and no array';

CREATE FUNCTION bson_set(doc bson, path text, value "any", create_missing boolean) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_set' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION bson_set(bson, text, "any", boolean) IS 'the same; without create_missing the document is left as it is where nothing is at the path';

CREATE FUNCTION bson_unset(doc bson, VARIADIC paths text[]) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_unset' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_unset(bson, text[]) IS 'the document without what the dotted paths lead to; an element of an array becomes null; nulls among the paths are ignored';

CREATE FUNCTION bson_remove(doc bson, path text) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_unset_one' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_remove(bson, text) IS 'the function of the operator -';

CREATE FUNCTION bson_remove(doc bson, paths text[]) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_unset' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_remove(bson, text[]) IS 'the function of the operator -';

CREATE OPERATOR - (LEFTARG = bson, RIGHTARG = text, FUNCTION = bson_remove);
COMMENT ON OPERATOR - (bson, text) IS 'the document without what the dotted path leads to';
CREATE OPERATOR - (LEFTARG = bson, RIGHTARG = text[], FUNCTION = bson_remove);
COMMENT ON OPERATOR - (bson, text[]) IS 'the document without what the dotted paths lead to';

CREATE FUNCTION bson_concat(bson, bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bson_concat' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION bson_concat(bson, bson) IS 'the fields of both documents: those of the left one keep their places, with the values of the right one where it has the same names, and the others follow';
CREATE OPERATOR || (LEFTARG = bson, RIGHTARG = bson, FUNCTION = bson_concat);
COMMENT ON OPERATOR || (bson, bson) IS 'the fields of both documents, the right one''s values winning';
