-- The GIN operator class bson_ops (src/index).

-- Keys that an index stores (src/index/key.h)
CREATE FUNCTION docpatterns.bson_gin_options(internal) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_bson_gin_options' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_gin_options(internal) IS
  'for GIN: the options paths and pairs of bson_ops';
CREATE FUNCTION docpatterns.bson_gin_extract_value(bson, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_gin_extract_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_gin_extract_value(bson, internal) IS
  'for GIN: the keys of a document';
CREATE FUNCTION docpatterns.bson_gin_compare(bytea, bytea) RETURNS int
  AS 'MODULE_PATHNAME', 'dp_bson_gin_compare' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_gin_compare(bytea, bytea) IS
  'for GIN: the order of keys, byte by byte';

CREATE FUNCTION bson_index_keys(doc bson, paths text DEFAULT NULL, pairs text DEFAULT NULL,
  OUT path text, OUT class text, OUT value bytea, OUT key bytea) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bson_index_keys' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 10 ROWS 20;
COMMENT ON FUNCTION bson_index_keys(bson, text, text) IS
  'The keys that a GIN index of bson_ops with these options stores for a document, in index order: '
  'the path without positions (for a pair with the value of its first part), the class, the bytes '
  'of the value, the key. Costs one pass over the document, or one for each path and pair. Errors: '
  '22023 bad options, XX001';

-- Searching an index (src/index/consistent.c)
CREATE FUNCTION docpatterns.bson_gin_extract_query(internal, internal, int2, internal, internal,
  internal, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_bson_gin_extract_query' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_gin_extract_query(internal, internal, int2, internal, internal,
  internal, internal) IS
  'for GIN: the keys to search';
CREATE FUNCTION docpatterns.bson_gin_consistent(internal, int2, internal, int4, internal, internal,
  internal) RETURNS "char"
  AS 'MODULE_PATHNAME', 'dp_bson_gin_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_gin_consistent(internal, int2, internal, int4, internal,
  internal, internal) IS
  'for GIN: whether a document with the found keys matches, in three values';
CREATE FUNCTION docpatterns.bson_gin_compare_partial(bytea, bytea, int2, internal) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_bson_gin_compare_partial' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.bson_gin_compare_partial(bytea, bytea, int2, internal) IS
  'for GIN: whether a key is in the searched range';

CREATE OPERATOR @@~ (LEFTARG = bson, RIGHTARG = bson, FUNCTION = bson_match,
    RESTRICT = docpatterns.bson_matchsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR @@~ (bson, bson) IS
  'the index condition that the planner derives from @@: the document may match; not for queries';

CREATE OPERATOR CLASS bson_ops DEFAULT FOR TYPE bson USING gin AS
  OPERATOR 1 @@~ (bson, bson),
  OPERATOR 2 @> (bson, bson),
  OPERATOR 3 ? (bson, text),
  OPERATOR 4 ?| (bson, text[]),
  OPERATOR 5 ?& (bson, text[]),
  FUNCTION 1 docpatterns.bson_gin_compare(bytea, bytea),
  FUNCTION 2 docpatterns.bson_gin_extract_value(bson, internal),
  FUNCTION 3 docpatterns.bson_gin_extract_query(internal, internal, int2, internal, internal,
    internal, internal),
  FUNCTION 5 docpatterns.bson_gin_compare_partial(bytea, bytea, int2, internal),
  FUNCTION 6 docpatterns.bson_gin_consistent(internal, int2, internal, int4, internal, internal,
    internal),
  FUNCTION 7 docpatterns.bson_gin_options(internal),
  STORAGE bytea;
COMMENT ON OPERATOR FAMILY bson_ops USING gin IS 'documents: @@ (by @@~), @>, ?, ?| and ?&';
COMMENT ON OPERATOR CLASS bson_ops USING gin IS
  'documents, all their paths; options: paths = ''a.b, c'' for these paths only, pairs = '
  '''releases(location,date)'' for pairs of fields of sub-documents';

CREATE FUNCTION bson_index_conditions(index regclass, filter bson,
  OUT condition bson, OUT lookup text, OUT looked_up bson) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bson_index_conditions' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10
    ROWS 5;
COMMENT ON FUNCTION bson_index_conditions(regclass, bson) IS
  'How a GIN index of bson_ops looks up a filter: a row for each field, with the lookup (key, '
  'range, pair, path: all keys of a path or type; nothing: no document can match; NULL: not at '
  'all) and the filter that is looked up. The planner chooses among them. Takes ACCESS SHARE on '
  'the index. Errors: 42809 another index, 42P01 no index, those of bson_match';
