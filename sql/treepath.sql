-- The type treepath: the ids from a root to a node. The functions are in src/types/tree/.

CREATE TYPE treepath;

CREATE FUNCTION docpatterns.treepath_in(cstring) RETURNS treepath
  AS 'MODULE_PATHNAME', 'dp_treepath_in' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.treepath_out(treepath) RETURNS cstring
  AS 'MODULE_PATHNAME', 'dp_treepath_out' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.treepath_recv(internal) RETURNS treepath
  AS 'MODULE_PATHNAME', 'dp_treepath_recv' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.treepath_send(treepath) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_treepath_send' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE TYPE treepath (
  INPUT = docpatterns.treepath_in, OUTPUT = docpatterns.treepath_out,
  RECEIVE = docpatterns.treepath_recv, SEND = docpatterns.treepath_send,
  INTERNALLENGTH = VARIABLE, ALIGNMENT = int4, STORAGE = extended
);
COMMENT ON TYPE treepath IS
  'the IDs from a root to a node, root first; in depth-first order, so that the descendants of a '
  'path are one range of an index';

-- Order, equality and hashing
CREATE FUNCTION docpatterns.treepath_lt(treepath, treepath) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_lt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.treepath_le(treepath, treepath) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_le' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.treepath_eq(treepath, treepath) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.treepath_ne(treepath, treepath) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_ne' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.treepath_ge(treepath, treepath) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_ge' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.treepath_gt(treepath, treepath) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_gt' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.treepath_cmp(treepath, treepath) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_treepath_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.treepath_hash(treepath) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_treepath_hash' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.treepath_hash_extended(treepath, int8) RETURNS int8
  AS 'MODULE_PATHNAME', 'dp_treepath_hash_extended' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.treepath_sortsupport(internal) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_treepath_sortsupport' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE OPERATOR < (LEFTARG = treepath, RIGHTARG = treepath, FUNCTION = docpatterns.treepath_lt,
  COMMUTATOR = >, NEGATOR = >=, RESTRICT = scalarltsel, JOIN = scalarltjoinsel);
CREATE OPERATOR <= (LEFTARG = treepath, RIGHTARG = treepath, FUNCTION = docpatterns.treepath_le,
  COMMUTATOR = >=, NEGATOR = >, RESTRICT = scalarlesel, JOIN = scalarlejoinsel);
CREATE OPERATOR = (LEFTARG = treepath, RIGHTARG = treepath, FUNCTION = docpatterns.treepath_eq,
  COMMUTATOR = =, NEGATOR = <>, RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES);
CREATE OPERATOR <> (LEFTARG = treepath, RIGHTARG = treepath, FUNCTION = docpatterns.treepath_ne,
  COMMUTATOR = <>, NEGATOR = =, RESTRICT = neqsel, JOIN = neqjoinsel);
CREATE OPERATOR >= (LEFTARG = treepath, RIGHTARG = treepath, FUNCTION = docpatterns.treepath_ge,
  COMMUTATOR = <=, NEGATOR = <, RESTRICT = scalargesel, JOIN = scalargejoinsel);
CREATE OPERATOR > (LEFTARG = treepath, RIGHTARG = treepath, FUNCTION = docpatterns.treepath_gt,
  COMMUTATOR = <, NEGATOR = <=, RESTRICT = scalargtsel, JOIN = scalargtjoinsel);
COMMENT ON OPERATOR < (treepath, treepath) IS 'less than, in depth-first order';
COMMENT ON OPERATOR <= (treepath, treepath) IS 'less than or equal to, in depth-first order';
COMMENT ON OPERATOR = (treepath, treepath) IS 'the same path';
COMMENT ON OPERATOR <> (treepath, treepath) IS 'another path';
COMMENT ON OPERATOR >= (treepath, treepath) IS 'greater than or equal to, in depth-first order';
COMMENT ON OPERATOR > (treepath, treepath) IS 'greater than, in depth-first order';

CREATE OPERATOR CLASS treepath_ops DEFAULT FOR TYPE treepath USING btree AS
  OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
  FUNCTION 1 docpatterns.treepath_cmp(treepath, treepath),
  FUNCTION 2 docpatterns.treepath_sortsupport(internal),
  FUNCTION 4 btequalimage(oid);
CREATE OPERATOR CLASS treepath_ops DEFAULT FOR TYPE treepath USING hash AS
  OPERATOR 1 =,
  FUNCTION 1 docpatterns.treepath_hash(treepath),
  FUNCTION 2 docpatterns.treepath_hash_extended(treepath, int8);
COMMENT ON FUNCTION docpatterns.treepath_cmp(treepath, treepath) IS
  'compares two paths in depth-first order: less than, equal to or greater than 0';
COMMENT ON FUNCTION docpatterns.treepath_hash(treepath) IS
  'hash of 32 bits; equal paths have equal hashes, which never change';
COMMENT ON FUNCTION docpatterns.treepath_hash_extended(treepath, int8) IS
  'hash of 64 bits with a seed; equal paths have equal hashes, which never change';
COMMENT ON OPERATOR CLASS treepath_ops USING btree IS 'depth-first order; serves <@ and @>, too';
COMMENT ON OPERATOR CLASS treepath_ops USING hash IS 'equality of paths';

-- Casts. From an array of SQL values, or a BSON array, root first; and back.

DO $$
DECLARE
  p record;
BEGIN
  FOR p IN SELECT * FROM (VALUES ('text', 'text'), ('int4', NULL), ('int8', 'int8'),
      ('objectid', 'objectid'),
                                 ('uuid', NULL), ('bson_value', 'value')) AS v (t, back) LOOP
    EXECUTE pg_catalog.format($q$
      CREATE FUNCTION treepath(%1$s[]) RETURNS treepath
        AS 'MODULE_PATHNAME', 'dp_treepath_from_array' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
      CREATE CAST (%1$s[] AS treepath) WITH FUNCTION treepath(%1$s[]) AS ASSIGNMENT;
      COMMENT ON FUNCTION treepath(%1$s[]) IS
  'The path of these IDs, root first: the function of the casts';
      COMMENT ON CAST (%1$s[] AS treepath) IS 'the path of these ids, root first'$q$, p.t);
    CONTINUE WHEN p.back IS NULL;
    EXECUTE pg_catalog.format($q$
      CREATE FUNCTION docpatterns.treepath_to_%2$s_array(treepath) RETURNS %1$s[]
        AS 'MODULE_PATHNAME', 'dp_treepath_to_array' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
      CREATE CAST (treepath AS %1$s[])
        WITH FUNCTION docpatterns.treepath_to_%2$s_array(treepath) AS ASSIGNMENT;
      COMMENT ON FUNCTION docpatterns.treepath_to_%2$s_array(treepath) IS
  'the IDs of a path, root first; error 22023 for an ID that is of another type, 22004 for one '
  'that is null';
      COMMENT ON CAST (treepath AS %1$s[]) IS 'the ids of a path, root first'$q$, p.t, p.back);
  END LOOP;
END
$$;
CREATE FUNCTION treepath(bson_value) RETURNS treepath
  AS 'MODULE_PATHNAME', 'dp_treepath_from_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE CAST (bson_value AS treepath) WITH FUNCTION treepath(bson_value);
COMMENT ON FUNCTION treepath(bson_value) IS
  'The path of these IDs, root first: the function of the casts';
COMMENT ON CAST (bson_value AS treepath) IS 'the path of the ids in a BSON array, root first';

CREATE FUNCTION docpatterns.treepath_to_value(treepath) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_treepath_to_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE CAST (treepath AS bson_value)
  WITH FUNCTION docpatterns.treepath_to_value(treepath) AS ASSIGNMENT;
COMMENT ON FUNCTION docpatterns.treepath_to_value(treepath) IS
  'the IDs of a path as a BSON array, root first';
COMMENT ON CAST (treepath AS bson_value) IS 'the ids of a path as a BSON array, root first';

CREATE FUNCTION treepath_from_text(path text, separator text DEFAULT '.') RETURNS treepath
  AS 'MODULE_PATHNAME', 'dp_treepath_from_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION treepath_from_text(text, text) IS
  'The path of strings, root first, between separators, optionally after a leading one. Error: '
  '22023 an empty ID or separator';
CREATE FUNCTION treepath_to_text(path treepath, separator text DEFAULT '.') RETURNS text
  AS 'MODULE_PATHNAME', 'dp_treepath_to_text' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION treepath_to_text(treepath, text) IS
  'The IDs of a path as text, root first, with separators. Error: 22023 an ID that is empty or '
  'contains the separator';

-- Parts of paths

CREATE FUNCTION treepath_depth(treepath) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_treepath_depth' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION treepath_depth(treepath) IS
  'The depth of the node: 0 for a root, -1 for the empty path';
CREATE FUNCTION treepath_parent(treepath) RETURNS treepath
  AS 'MODULE_PATHNAME', 'dp_treepath_parent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION treepath_parent(treepath) IS
  'The path without its last ID; NULL for a root and for the empty path';
CREATE FUNCTION treepath_root(treepath) RETURNS treepath
  AS 'MODULE_PATHNAME', 'dp_treepath_root' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION treepath_root(treepath) IS 'The path of the root; NULL for the empty path';
CREATE FUNCTION treepath_id(treepath) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_treepath_id' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION treepath_id(treepath) IS 'The last ID of the path; NULL for the empty path';
CREATE FUNCTION treepath_subpath(path treepath, first int4, ids int4 DEFAULT NULL) RETURNS treepath
  AS 'MODULE_PATHNAME', 'dp_treepath_subpath' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION treepath_subpath(treepath, int4, int4) IS
  'A number of IDs from a position, counted from 0, or from the end if negative; without a number '
  'to the end. Error: 22023 a negative number';
CREATE FUNCTION treepath_lca(treepath, treepath) RETURNS treepath
  AS 'MODULE_PATHNAME', 'dp_treepath_lca' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION treepath_lca(treepath, treepath) IS
  'The lowest common ancestor, which may be one of the two; NULL without a common root';
CREATE FUNCTION treepath_distance(treepath, treepath) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_treepath_distance' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION treepath_distance(treepath, treepath) IS
  'The number of edges between two nodes; NULL without a common root';
CREATE FUNCTION treepath_ancestors(treepath) RETURNS treepath[]
  AS 'MODULE_PATHNAME', 'dp_treepath_ancestors' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION treepath_ancestors(treepath) IS 'The paths of the ancestors, root first';
CREATE FUNCTION treepath_prefixes(treepath) RETURNS treepath[]
  AS 'MODULE_PATHNAME', 'dp_treepath_prefixes' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION treepath_prefixes(treepath) IS
  'All paths above this one or equal to it, with the empty one';
CREATE FUNCTION treepath_last(treepath) RETURNS treepath
  AS 'MODULE_PATHNAME', 'dp_treepath_last_below' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION treepath_last(treepath) IS
  'The greatest path that is this one or below it, which ends in MaxKey';

-- Ancestors and descendants

CREATE FUNCTION docpatterns.treepath_belowsel(internal, oid, internal, int4) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_treepath_belowsel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_belowsel(internal, oid, internal, int4) IS
  'the selectivity of <@';
CREATE FUNCTION docpatterns.treepath_abovesel(internal, oid, internal, int4) RETURNS float8
  AS 'MODULE_PATHNAME', 'dp_treepath_abovesel' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_abovesel(internal, oid, internal, int4) IS
  'the selectivity of @>';
CREATE FUNCTION docpatterns.treepath_below_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_treepath_below_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_below_support(internal) IS
  'tells the planner the range of an index that <@ is';
CREATE FUNCTION docpatterns.treepath_above_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_treepath_above_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_above_support(internal) IS
  'tells the planner the keys of an index that @> is';

CREATE FUNCTION docpatterns.treepath_is_above(treepath, treepath) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_is_above' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT
    docpatterns.treepath_above_support;
COMMENT ON FUNCTION docpatterns.treepath_is_above(treepath, treepath) IS
  'whether the second path equals the first one or is below it';
CREATE FUNCTION docpatterns.treepath_is_below(treepath, treepath) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_is_below' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE SUPPORT
    docpatterns.treepath_below_support;
COMMENT ON FUNCTION docpatterns.treepath_is_below(treepath, treepath) IS
  'whether the first path equals the second one or is below it';
CREATE OPERATOR @> (LEFTARG = treepath, RIGHTARG = treepath,
    FUNCTION = docpatterns.treepath_is_above,
  COMMUTATOR = <@, RESTRICT = docpatterns.treepath_abovesel, JOIN = contjoinsel);
CREATE OPERATOR <@ (LEFTARG = treepath, RIGHTARG = treepath,
    FUNCTION = docpatterns.treepath_is_below,
  COMMUTATOR = @>, RESTRICT = docpatterns.treepath_belowsel, JOIN = contjoinsel);
COMMENT ON OPERATOR @> (treepath, treepath) IS
  'is an ancestor of, or the same; a btree index answers it';
COMMENT ON OPERATOR <@ (treepath, treepath) IS
  'is a descendant of, or the same; a btree index answers it';

CREATE FUNCTION docpatterns.treepath_concat(treepath, treepath) RETURNS treepath
  AS 'MODULE_PATHNAME', 'dp_treepath_concat' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_concat(treepath, treepath) IS
  'the IDs of the first path, then those of the second';
CREATE OPERATOR || (LEFTARG = treepath, RIGHTARG = treepath,
    FUNCTION = docpatterns.treepath_concat);
COMMENT ON OPERATOR || (treepath, treepath) IS
  'the IDs of the first path, then those of the second';
CREATE FUNCTION docpatterns.treepath_append(treepath, text) RETURNS treepath
  AS 'MODULE_PATHNAME', 'dp_treepath_append' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_append(treepath, text) IS
  'the path of a child with this ID';
CREATE OPERATOR || (LEFTARG = treepath, RIGHTARG = text, FUNCTION = docpatterns.treepath_append);
COMMENT ON OPERATOR || (treepath, text) IS 'the path of a child with this ID';
-- One operator for all other types: an operator with bigint would make 'n' || 5::bigint read 'n' as
-- a path.
CREATE FUNCTION docpatterns.treepath_append(treepath, anynonarray) RETURNS treepath
  AS 'MODULE_PATHNAME', 'dp_treepath_append' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_append(treepath, anynonarray) IS
  'the path of a child with this ID; error 22023 for a value that cannot be an ID';
CREATE OPERATOR || (LEFTARG = treepath, RIGHTARG = anynonarray,
    FUNCTION = docpatterns.treepath_append);
COMMENT ON OPERATOR || (treepath, anynonarray) IS 'the path of a child with this ID';

-- Nodes on a path

CREATE FUNCTION docpatterns.treepath_contains(treepath, text) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_contains(treepath, text) IS
  'whether the node is on the path';
CREATE OPERATOR ? (LEFTARG = treepath, RIGHTARG = text, FUNCTION = docpatterns.treepath_contains,
    RESTRICT = matchingsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR ? (treepath, text) IS 'whether the node is on the path; a GIN index answers it';
CREATE FUNCTION docpatterns.treepath_contains(treepath, int8) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_contains(treepath, int8) IS
  'whether the node is on the path';
CREATE OPERATOR ? (LEFTARG = treepath, RIGHTARG = int8, FUNCTION = docpatterns.treepath_contains,
    RESTRICT = matchingsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR ? (treepath, int8) IS 'whether the node is on the path; a GIN index answers it';
CREATE FUNCTION docpatterns.treepath_contains(treepath, objectid) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_contains(treepath, objectid) IS
  'whether the node is on the path';
CREATE OPERATOR ? (LEFTARG = treepath, RIGHTARG = objectid,
    FUNCTION = docpatterns.treepath_contains, RESTRICT = matchingsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR ? (treepath, objectid) IS
  'whether the node is on the path; a GIN index answers it';
CREATE FUNCTION docpatterns.treepath_contains(treepath, bson_value) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_contains' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_contains(treepath, bson_value) IS
  'whether the node is on the path';
CREATE OPERATOR ? (LEFTARG = treepath, RIGHTARG = bson_value,
    FUNCTION = docpatterns.treepath_contains, RESTRICT = matchingsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR ? (treepath, bson_value) IS
  'whether the node is on the path; a GIN index answers it';
CREATE FUNCTION docpatterns.treepath_contains_any(treepath, text[]) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_contains_any' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_contains_any(treepath, text[]) IS
  'whether one of the nodes is on the path';
CREATE OPERATOR ?| (LEFTARG = treepath, RIGHTARG = text[],
    FUNCTION = docpatterns.treepath_contains_any, RESTRICT = matchingsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR ?| (treepath, text[]) IS
  'whether one of the nodes is on the path; a GIN index answers it';
CREATE FUNCTION docpatterns.treepath_contains_any(treepath, int8[]) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_contains_any' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_contains_any(treepath, int8[]) IS
  'whether one of the nodes is on the path';
CREATE OPERATOR ?| (LEFTARG = treepath, RIGHTARG = int8[],
    FUNCTION = docpatterns.treepath_contains_any, RESTRICT = matchingsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR ?| (treepath, int8[]) IS
  'whether one of the nodes is on the path; a GIN index answers it';
CREATE FUNCTION docpatterns.treepath_contains_any(treepath, objectid[]) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_contains_any' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_contains_any(treepath, objectid[]) IS
  'whether one of the nodes is on the path';
CREATE OPERATOR ?| (LEFTARG = treepath, RIGHTARG = objectid[],
    FUNCTION = docpatterns.treepath_contains_any, RESTRICT = matchingsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR ?| (treepath, objectid[]) IS
  'whether one of the nodes is on the path; a GIN index answers it';
CREATE FUNCTION docpatterns.treepath_contains_any(treepath, bson_value[]) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_contains_any' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_contains_any(treepath, bson_value[]) IS
  'whether one of the nodes is on the path';
CREATE OPERATOR ?| (LEFTARG = treepath, RIGHTARG = bson_value[],
    FUNCTION = docpatterns.treepath_contains_any, RESTRICT = matchingsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR ?| (treepath, bson_value[]) IS
  'whether one of the nodes is on the path; a GIN index answers it';
CREATE FUNCTION docpatterns.treepath_contains_all(treepath, text[]) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_contains_all' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_contains_all(treepath, text[]) IS
  'whether all of the nodes are on the path';
CREATE OPERATOR ?& (LEFTARG = treepath, RIGHTARG = text[],
    FUNCTION = docpatterns.treepath_contains_all, RESTRICT = matchingsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR ?& (treepath, text[]) IS
  'whether all of the nodes are on the path; a GIN index answers it';
CREATE FUNCTION docpatterns.treepath_contains_all(treepath, int8[]) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_contains_all' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_contains_all(treepath, int8[]) IS
  'whether all of the nodes are on the path';
CREATE OPERATOR ?& (LEFTARG = treepath, RIGHTARG = int8[],
    FUNCTION = docpatterns.treepath_contains_all, RESTRICT = matchingsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR ?& (treepath, int8[]) IS
  'whether all of the nodes are on the path; a GIN index answers it';
CREATE FUNCTION docpatterns.treepath_contains_all(treepath, objectid[]) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_contains_all' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_contains_all(treepath, objectid[]) IS
  'whether all of the nodes are on the path';
CREATE OPERATOR ?& (LEFTARG = treepath, RIGHTARG = objectid[],
    FUNCTION = docpatterns.treepath_contains_all, RESTRICT = matchingsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR ?& (treepath, objectid[]) IS
  'whether all of the nodes are on the path; a GIN index answers it';
CREATE FUNCTION docpatterns.treepath_contains_all(treepath, bson_value[]) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_treepath_contains_all' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_contains_all(treepath, bson_value[]) IS
  'whether all of the nodes are on the path';
CREATE OPERATOR ?& (LEFTARG = treepath, RIGHTARG = bson_value[],
    FUNCTION = docpatterns.treepath_contains_all, RESTRICT = matchingsel, JOIN = matchingjoinsel);
COMMENT ON OPERATOR ?& (treepath, bson_value[]) IS
  'whether all of the nodes are on the path; a GIN index answers it';

CREATE FUNCTION docpatterns.treepath_gin_extract_value(treepath, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_treepath_gin_extract_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_gin_extract_value(treepath, internal) IS
  'the keys of a path in a GIN index: its IDs';
CREATE FUNCTION docpatterns.treepath_gin_extract_query(treepath, internal, int2, internal, internal,
  internal, internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_treepath_gin_extract_query' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_gin_extract_query(treepath, internal, int2, internal,
  internal, internal, internal) IS
  'the keys that a GIN index is searched for';
CREATE FUNCTION docpatterns.treepath_gin_consistent(internal, int2, treepath, int4, internal,
  internal, internal) RETURNS "char"
  AS 'MODULE_PATHNAME', 'dp_treepath_gin_consistent' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.treepath_gin_consistent(internal, int2, treepath, int4, internal,
  internal, internal) IS
  'whether a path with these keys is an answer';

CREATE OPERATOR CLASS treepath_ops DEFAULT FOR TYPE treepath USING gin AS
  OPERATOR 1 ? (treepath, text),
  OPERATOR 2 ? (treepath, int8),
  OPERATOR 3 ? (treepath, objectid),
  OPERATOR 4 ? (treepath, bson_value),
  OPERATOR 5 ?| (treepath, text[]),
  OPERATOR 6 ?| (treepath, int8[]),
  OPERATOR 7 ?| (treepath, objectid[]),
  OPERATOR 8 ?| (treepath, bson_value[]),
  OPERATOR 9 ?& (treepath, text[]),
  OPERATOR 10 ?& (treepath, int8[]),
  OPERATOR 11 ?& (treepath, objectid[]),
  OPERATOR 12 ?& (treepath, bson_value[]),
  FUNCTION 1 byteacmp(bytea, bytea),
  FUNCTION 2 docpatterns.treepath_gin_extract_value(treepath, internal),
  FUNCTION 3 docpatterns.treepath_gin_extract_query(treepath, internal, int2, internal, internal,
    internal, internal),
  FUNCTION 6 docpatterns.treepath_gin_consistent(internal, int2, treepath, int4, internal, internal,
    internal),
  STORAGE bytea;
COMMENT ON OPERATOR CLASS treepath_ops USING gin IS 'the IDs of paths: serves ?, ?| and ?&';
