-- Filters: MongoDB's query language (src/mql/filter*.c).

CREATE FUNCTION docpatterns.bson_match_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_match_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_match_support(internal) IS
  'for the planner: which indexes serve doc @@ filter, and how';
CREATE FUNCTION bson_match(doc bson, filter bson) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bson_match' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 2 SUPPORT
    docpatterns.bson_match_support;
COMMENT ON FUNCTION bson_match(bson, bson) IS
  'Whether the document matches the filter: the function of the operator @@';

CREATE OPERATOR @@ (LEFTARG = bson, RIGHTARG = bson, FUNCTION = bson_match,
    RESTRICT = docpatterns.bson_matchsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR @@ (bson, bson) IS 'the document on the left matches the filter on the right';
