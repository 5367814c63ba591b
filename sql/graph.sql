-- Walks through documents that lead to each other (src/types/tree/). Like the calls for collections they run as the caller,
-- and no search_path is set, because policies and views run inside.

CREATE FUNCTION graph_lookup(rel regclass, start "any", connect_from text, connect_to text, max_depth int DEFAULT NULL,
    restrict bson DEFAULT NULL, depth_field text DEFAULT NULL,
    OUT node bson_value, OUT depth int, OUT path bson_value[], OUT key bson_value, OUT doc bson) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_graph_lookup' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS 1000;
COMMENT ON FUNCTION graph_lookup(regclass, "any", text, text, int, bson, text) IS
  'what $graphLookup finds: the documents with the value start (or an element of the array start) at connect_to, then those whose connect_to has what these have at connect_from, and so on, breadth first, each once; both paths may lead to arrays, null connects nothing; max_depth 0: the first documents only; restrict: a filter that all documents on the way match; depth_field: where the depth is written into the documents. Returns the value through which a document was found, its depth, the values from the start to there, the row''s key, the document. An index on connect_to (btree on (doc -> ''..''), bson_ops, or the key) is searched by many values at once; without one the relation is hashed. Errors 22004, 22023, 0A000 for a bad filter, 53400 for more nodes than work_mem allows; needs SELECT';

CREATE FUNCTION graph_shortest_path(rel regclass, start "any", target "any", connect_from text, connect_to text, max_depth int DEFAULT NULL,
    restrict bson DEFAULT NULL,
    OUT step int, OUT node bson_value, OUT key bson_value, OUT doc bson) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_graph_shortest_path' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000 ROWS 10;
COMMENT ON FUNCTION graph_shortest_path(regclass, "any", "any", text, text, int, bson) IS
  'one of the shortest ways from a value (or from an element of an array) to another: a row for each node on it, from step 0 on, with the document that has the node at connect_to and the next one at connect_from, and its key; at the target the one document that has it at connect_to, NULL if there are several; no rows if there is no way, or none of at most max_depth steps. Searches as graph_lookup does, same errors; needs SELECT';
