-- Lists of ancestors: in arrays, in BSON arrays and in documents. The functions are in
-- src/types/tree/ancestors.c. tree_is_below() is inlined, so that the planner sees an operator with
-- an index. The operators are qualified, because a bare @> may be that of intarray, which indexes
-- made with other opclasses do not support.

-- Ids have types with an immutable conversion, or are compared as text.
CREATE FUNCTION docpatterns._tree_node(anycompatiblenonarray) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_to_bson' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._tree_node(anycompatiblenonarray) IS
  'internal: to_bson for the IDs of nodes, which the planner may compute';
CREATE FUNCTION docpatterns._tree_below_filter(path text, node anycompatiblenonarray) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_tree_below_filter' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._tree_below_filter(text, anycompatiblenonarray) IS
  'internal: the filter {path: {$eq: node}}; NULL for a node that is null; error 22023 for a path '
  'that filters cannot spell';

CREATE FUNCTION tree_is_below(ancestors anycompatiblearray, node anycompatible) RETURNS bool
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT $1 OPERATOR(pg_catalog.@>) ARRAY[$2] $$;
COMMENT ON FUNCTION tree_is_below(anycompatiblearray, anycompatible) IS
  'Whether node is one of the ancestors';

CREATE FUNCTION tree_is_below(ancestors bson_value[], node anycompatiblenonarray) RETURNS bool
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT $1 OPERATOR(pg_catalog.@>) ARRAY[docpatterns._tree_node($2)] $$;
COMMENT ON FUNCTION tree_is_below(bson_value[], anycompatiblenonarray) IS
  'Whether node is one of the ancestors';

CREATE FUNCTION tree_is_below(ancestors bson_value, node anycompatiblenonarray) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_tree_is_below_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tree_is_below(bson_value, anycompatiblenonarray) IS
  'Whether node is one of the ancestors';

CREATE FUNCTION tree_is_below(doc bson, path text, node anycompatiblenonarray) RETURNS bool
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT $1 OPERATOR(@extschema@.@@) docpatterns._tree_below_filter($2, $3) $$;
COMMENT ON FUNCTION tree_is_below(bson, text, anycompatiblenonarray) IS
  'Whether node is one of the ancestors';

CREATE FUNCTION tree_depth(ancestors anyarray) RETURNS int4
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT pg_catalog.cardinality($1) $$;
COMMENT ON FUNCTION tree_depth(anyarray) IS
  'The depth of the node with these ancestors: their number';
CREATE FUNCTION tree_depth(ancestors bson_value) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_tree_depth_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tree_depth(bson_value) IS
  'The depth of the node with these ancestors: their number';

CREATE FUNCTION tree_common(a anycompatiblearray, b anycompatiblearray) RETURNS anycompatiblearray
  AS 'MODULE_PATHNAME', 'dp_tree_common' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tree_common(anycompatiblearray, anycompatiblearray) IS
  'The ancestors that both lists have in common, in their order';
CREATE FUNCTION tree_common(a bson_value, b bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_tree_common_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tree_common(bson_value, bson_value) IS
  'The ancestors that both lists have in common, in their order';

CREATE FUNCTION tree_lca(a anycompatiblearray, b anycompatiblearray) RETURNS anycompatible
  AS 'MODULE_PATHNAME', 'dp_tree_lca' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tree_lca(anycompatiblearray, anycompatiblearray) IS
  'The lowest common ancestor of two lists, NULL if there is none';
CREATE FUNCTION tree_lca(a bson_value, b bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_tree_lca_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tree_lca(bson_value, bson_value) IS 'The same for BSON arrays';

CREATE FUNCTION tree_distance(a anycompatiblearray, b anycompatiblearray) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_tree_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tree_distance(anycompatiblearray, anycompatiblearray) IS
  'The number of edges between the nodes at the lower ends of the lists; NULL if they have nothing '
  'in common';
CREATE FUNCTION tree_distance(a bson_value, b bson_value) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_tree_distance_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION tree_distance(bson_value, bson_value) IS
  'The number of edges between the nodes at the lower ends of the lists; NULL if they have nothing '
  'in common';
