-- What users call of the single collection pattern.

CREATE FUNCTION single_collection_get(rel regclass, id "any", type text DEFAULT NULL, name text DEFAULT NULL) RETURNS SETOF bson
  AS 'MODULE_PATHNAME', 'dp_single_collection_get' LANGUAGE C STABLE COST 1000 ROWS 100;
COMMENT ON FUNCTION single_collection_get(regclass, "any", text, text) IS
  'the documents that are related to an id, or the document of a key with all that belongs to it, in the order of keys; with type only those of that type. '
  'One index scan with the rights of the caller; errors 42704 without the pattern, 22023 for a type where documents have none, 42809 for a key that is no string';

CREATE FUNCTION single_collection_query(rel regclass, with_type boolean DEFAULT false, name text DEFAULT NULL) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_single_collection_query' LANGUAGE C STABLE;
COMMENT ON FUNCTION single_collection_query(regclass, boolean, text) IS
  'the statement that single_collection_get runs, for EXPLAIN and PREPARE: $1 is a filter, or of keys $1 and $2 are the bounds (and $3 a filter on the type); errors 42704, 22004';
