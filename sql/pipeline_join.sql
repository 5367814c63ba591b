-- What the SQL of $lookup calls (src/mql/pipeline/joinfn.c).

CREATE FUNCTION docpatterns._join_local(doc bson, path text) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_join_local' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 1;
COMMENT ON FUNCTION docpatterns._join_local(bson, text) IS
  'internal: the values by which $lookup finds foreign documents';
CREATE FUNCTION docpatterns._join_local(doc bson, path text, collation bson)
  RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_join_local' LANGUAGE C STABLE STRICT PARALLEL SAFE ROWS 1;
COMMENT ON FUNCTION docpatterns._join_local(bson, text, bson) IS
  'internal: the same, of equal ones one';

CREATE FUNCTION docpatterns._join_foreign(doc bson, path text) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_join_foreign' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 1;
COMMENT ON FUNCTION docpatterns._join_foreign(bson, text) IS
  'internal: the values by which $lookup finds this document';
CREATE FUNCTION docpatterns._join_foreign(doc bson, path text, collation bson)
  RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_join_foreign' LANGUAGE C STABLE STRICT PARALLEL SAFE ROWS 1;
COMMENT ON FUNCTION docpatterns._join_foreign(bson, text, bson) IS
  'internal: the same, of equal ones one';

CREATE FUNCTION docpatterns._join_values(doc bson, path text) RETURNS bson_value[]
  AS 'MODULE_PATHNAME', 'dp_join_values' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._join_values(bson, text) IS 'internal: _join_local as an array';

CREATE FUNCTION docpatterns._join_several(doc bson, path text) RETURNS bson_value[]
  AS 'MODULE_PATHNAME', 'dp_join_several' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._join_several(bson, text) IS
  'internal: the values of _join_local; NULL if there is one';

CREATE FUNCTION docpatterns._join_value(doc bson, path text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_join_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._join_value(bson, text) IS
  'internal: the value of _join_local; NULL if there are several';

CREATE FUNCTION docpatterns._join_filter(field text, vals bson_value[]) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_join_filter' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._join_filter(text, bson_value[]) IS
  'internal: a filter for documents that have one of the values';

CREATE FUNCTION docpatterns._join_has(doc bson, path text, vals bson_value[]) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_join_has' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._join_has(bson, text, bson_value[]) IS
  'internal: whether _join_foreign has one of the values';

CREATE FUNCTION docpatterns._join_once(local bson, local_path text, "foreign" bson,
  foreign_path text, value bson_value) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_join_once' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._join_once(bson, text, bson, text, bson_value) IS
  'internal: whether the value is the first that the documents join by';
CREATE FUNCTION docpatterns._join_once(local bson, local_path text, "foreign" bson,
  foreign_path text, value bson_value, collation bson) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_join_once' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._join_once(bson, text, bson, text, bson_value, bson) IS
  'internal: the same by a collation';

CREATE FUNCTION docpatterns._join_first(bson, bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_join_first' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._join_first(bson, bson) IS 'internal: the first document';

CREATE AGGREGATE docpatterns._join_any(bson) (
  SFUNC = docpatterns._join_first, STYPE = bson, COMBINEFUNC = docpatterns._join_first,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE docpatterns._join_any(bson) IS 'internal: one of the documents';

CREATE FUNCTION docpatterns._join_first(bson_value, bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_join_first' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._join_first(bson_value, bson_value) IS
  'internal: the first value';

CREATE AGGREGATE docpatterns._join_any(bson_value) (
  SFUNC = docpatterns._join_first, STYPE = bson_value, COMBINEFUNC = docpatterns._join_first,
  PARALLEL = SAFE
);
COMMENT ON AGGREGATE docpatterns._join_any(bson_value) IS
  'internal: the first of values, of which all are one to the collation of a pipeline';

CREATE FUNCTION docpatterns._join_below(doc bson, path text) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_join_below' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._join_below(bson, text) IS
  'internal: the document at the path, or an empty one';
