-- Calls for users who think in collections. Each builds one statement, with its values as
-- parameters, and runs it as the caller (src/mql/collection_calls.c). No search_path is set,
-- because the caller's triggers and policies run inside; everything is qualified instead.

-- The collation must not be null.
CREATE FUNCTION docpatterns._collated_match(doc bson, filter bson, collation bson) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_collated_match' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION docpatterns._collated_match(bson, bson, bson) IS
  'internal: bson_match by a collation';
CREATE FUNCTION docpatterns._collated_sort_key(doc bson, spec bson, collation bson) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_collated_sort_key' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION docpatterns._collated_sort_key(bson, bson, bson) IS
  'internal: bson_sort_key by a collation';
CREATE FUNCTION docpatterns._collated_key(value bson_value, collation bson) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_collated_key' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION docpatterns._collated_key(bson_value, bson) IS
  'internal: bytes that sort as values do by a collation';
CREATE FUNCTION docpatterns._collated_project(doc bson, projection bson, filter bson,
  collation bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_collated_project' LANGUAGE C STABLE PARALLEL SAFE COST 20;
COMMENT ON FUNCTION docpatterns._collated_project(bson, bson, bson, bson) IS
  'internal: bson_project by a collation';
CREATE FUNCTION docpatterns._collated_update(doc bson, update bson_value, filter bson,
  array_filters bson_value, upsert boolean, collation bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_collated_update' LANGUAGE C STABLE PARALLEL SAFE COST 20;
COMMENT ON FUNCTION docpatterns._collated_update(bson, bson_value, bson, bson_value, boolean,
  bson) IS
  'internal: bson_update by a collation';

CREATE FUNCTION docpatterns._collection_query(rel regclass, filter bson, sort bson DEFAULT NULL,
  projection bson DEFAULT NULL, field text DEFAULT NULL, update bson_value DEFAULT NULL,
    OUT source text, OUT doc text, OUT conditions text, OUT ordering text, OUT doc_column text,
    OUT key_column text, OUT change text, OUT operands bson_value[])
  AS 'MODULE_PATHNAME', 'dp_collection_query' LANGUAGE C STABLE;
COMMENT ON FUNCTION docpatterns._collection_query(regclass, bson, bson, bson, text, bson_value) IS
  'internal: the parts of a statement on a relation: its name, the document, conditions ($1 '
  'filter, $2 operands), order, columns, and how split documents are changed';

CREATE FUNCTION collection_insert(rel regclass, VARIADIC docs "any") RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_collection_insert' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION collection_insert(regclass, "any") IS
  'Inserts documents, all or none, and returns the _id of each, in their order. A document '
  'without _id gets one in a collection; in other tables its result is NULL. Arguments are of type '
  'bson, or text in Extended JSON; a bson_value, bson[] or text may be an array of documents. '
  'Locks as INSERT; needs INSERT, and SELECT on the key. Errors: 23505 an existing _id, 23502 '
  'another column of the table that is NOT NULL without a default, 22023 or 42804 an argument that '
  'is not a document, 22P02 invalid text, 42809, 42703 or 42702 unless the relation has exactly '
  'one column of type bson';

CREATE FUNCTION collection_find(rel regclass, filter bson DEFAULT '{}',
  projection bson DEFAULT NULL, sort bson DEFAULT NULL,
    skip bigint DEFAULT 0, take bigint DEFAULT NULL, collation bson DEFAULT NULL)
  RETURNS SETOF bson
  AS 'MODULE_PATHNAME', 'dp_collection_find' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;
COMMENT ON FUNCTION collection_find(regclass, bson, bson, bson, bigint, bigint, bson) IS
  'The documents that match the filter, sorted as by bson_sort_key, without the first skip, at '
  'most take (NULL: all, 0: none), as bson_project shows them. With a collation, strings compare '
  'so. Needs SELECT. Errors: 22023 a negative skip or take or a bad specification, 0A000 an '
  'unknown operator';

CREATE FUNCTION collection_count(rel regclass, filter bson DEFAULT '{}',
  collation bson DEFAULT NULL) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_collection_count' LANGUAGE C STABLE PARALLEL RESTRICTED COST 1000;
COMMENT ON FUNCTION collection_count(regclass, bson, bson) IS
  'The number of documents that match the filter. Rights and errors as collection_find';

CREATE FUNCTION collection_distinct(rel regclass, field text, filter bson DEFAULT '{}',
  collation bson DEFAULT NULL) RETURNS SETOF bson_value
  AS 'MODULE_PATHNAME', 'dp_collection_distinct' LANGUAGE C STABLE PARALLEL RESTRICTED
    COST 1000;
COMMENT ON FUNCTION collection_distinct(regclass, text, bson, bson) IS
  'The distinct values of a field, a dotted path, in the documents that match the filter, in '
  'order; of an array the elements. Rights and errors as collection_find';
