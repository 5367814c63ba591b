-- Walks through linked documents (src/types/tree/). Like the calls for collections they run as the
-- caller, and no search_path is set, because policies and views run inside.

CREATE FUNCTION graph_lookup(rel regclass, start anycompatible, connect_from text, connect_to text,
  max_depth int DEFAULT NULL,
    restrict bson DEFAULT NULL, depth_field text DEFAULT NULL, collation bson DEFAULT NULL,
    OUT node bson_value, OUT depth int, OUT path bson_value[], OUT key bson_value, OUT doc bson)
    RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_graph_lookup' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS 1000;
COMMENT ON FUNCTION graph_lookup(regclass, anycompatible, text, text, int, bson, text, bson) IS
  'Documents reached from start, breadth first and each once, as $graphLookup finds them: those '
  'with the value at connect_to, then those with the values that these have at connect_from. '
  'Returns the value that led to the document, the number of steps, the values on the way, the '
  'row''s primary key (NULL without one) and the document, with its depth at depth_field if given. '
  'With a collation, strings compare so, and no index is used. Needs SELECT. Errors: 22004 a NULL, '
  '22023 a bad path or collation or a negative max_depth, 0A000 a bad filter, 53400 more nodes '
  'than work_mem times hash_mem_multiplier allows';

CREATE FUNCTION graph_shortest_path(rel regclass, start anycompatible, target "any",
  connect_from text, connect_to text, max_depth int DEFAULT NULL, restrict bson DEFAULT NULL,
  OUT step int, OUT node bson_value, OUT key bson_value, OUT doc bson) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_graph_shortest_path' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000
    ROWS 10;
COMMENT ON FUNCTION graph_shortest_path(regclass, anycompatible, "any", text, text, int, bson) IS
  'One of the shortest paths from start to target: a row for each value, with the document that '
  'leads on from there. At the target the document is the one that has the value at connect_to, '
  'NULL if there are several or none. No rows: no path has at most max_depth steps. Needs SELECT; '
  'errors as graph_lookup';
