-- Tables that Citus distributes. Their rows are in shards, ordinary tables <table>_<shard ID>,
-- which have the same triggers: Citus repeats what is done to the structure of a table for its
-- shards, but for triggers for TRUNCATE.

CREATE FUNCTION docpatterns._pattern_distribution(rel regclass, OUT method text,
  OUT column_name text)
  AS 'MODULE_PATHNAME', 'dp_pattern_distribution' LANGUAGE C STABLE;
COMMENT ON FUNCTION docpatterns._pattern_distribution(regclass) IS
  'how Citus distributes a table: by "hash" of a column, "single" for all rows on one server, '
  '"copied" to each server, "local" for a table of the coordinator that Citus knows; '
  '"shard" for a part of such a table, NULL for a table without Citus';

-- Triggers on distributed tables are allowed until the transaction ends; with them, Citus changes
-- one shard after another.
CREATE FUNCTION docpatterns._pattern_allow_triggers(rel regclass) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF (docpatterns._pattern_distribution(rel)).method <> 'shard' THEN
    PERFORM set_config('citus.enable_unsafe_triggers', 'on', true),
      set_config('citus.multi_shard_modify_mode', 'sequential', true);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_allow_triggers(regclass) IS
  'lets this transaction create triggers on a table that Citus distributes';

-- Distributes a table beside rel as rel is distributed, so that Citus moves their shards together.
CREATE FUNCTION docpatterns._pattern_distribute_side(made regclass, rel regclass,
  key_column text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  method text := (docpatterns._pattern_distribution(rel)).method;
BEGIN
  IF method IS NULL OR (docpatterns._pattern_distribution(made)).method IS NOT NULL THEN
    RETURN;
  END IF;
  PERFORM docpatterns._pattern_allow_triggers(rel);
  CASE method
    WHEN 'hash' THEN
      IF key_column IS NULL THEN
        RAISE EXCEPTION 'the table "%" cannot be distributed with table "%"',
          docpatterns._relname(made), docpatterns._relname(rel)
          USING ERRCODE = 'feature_not_supported',
            DETAIL = 'Its rows do not belong to one document.',
            HINT = 'Distribute the schema of the table instead of its rows, with '
              'citus_schema_distribute().';
      END IF;
      EXECUTE 'SELECT create_distributed_table($1, $2, colocate_with => $3)'
        USING made, key_column, rel::text;
    WHEN 'single' THEN
      EXECUTE 'SELECT create_distributed_table($1, NULL, colocate_with => $2)'
        USING made, rel::text;
    WHEN 'copied' THEN
      EXECUTE 'SELECT create_reference_table($1)' USING made;
    WHEN 'local' THEN
      EXECUTE 'SELECT citus_add_local_table_to_metadata($1)' USING made;
  END CASE;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_distribute_side(regclass, regclass, text) IS
  'distributes a new table of a pattern as Citus distributes the pattern''s table, by key_column; '
  'error 0A000 if it has no such column and the other one is distributed by one';

-- A call for one shard: SELECT f(docpatterns._shard_of(b), ..) FROM books AS b WHERE <condition>,
-- with a condition of _pattern_shards().
CREATE FUNCTION docpatterns._shard_see(state boolean, anyelement) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_shard_see' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._shard_see(boolean, anyelement) IS
  'the transition function of _shard_of()';

CREATE FUNCTION docpatterns._shard_seen(state boolean, anyelement) RETURNS regclass
  AS 'MODULE_PATHNAME', 'dp_shard_seen' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._shard_seen(boolean, anyelement) IS
  'the final function of _shard_of()';

CREATE AGGREGATE docpatterns._shard_of(anyelement) (sfunc = docpatterns._shard_see,
  stype = boolean, finalfunc = docpatterns._shard_seen, finalfunc_extra, parallel = safe);
COMMENT ON AGGREGATE docpatterns._shard_of(anyelement) IS
  'the relation that has rows of this type, also if there are none: in a query that Citus sends to '
  'a shard, the shard';

CREATE FUNCTION docpatterns._pattern_shards(rel regclass, OUT shard bigint, OUT condition text)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_pattern_shards' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._pattern_shards(regclass) IS
  'the shards of a table that Citus distributes, each with SQL text: a condition on its rows b '
  'that sends a query there; no rows for another table; error 0A000 if it is distributed by a '
  'column of an unusual type';
