-- Tables that Citus distributes. Their rows are in shards, ordinary tables <table>_<shard ID>,
-- which have the same triggers: Citus repeats what is done to the structure of a table for its
-- shards, but for triggers for TRUNCATE.

CREATE FUNCTION docpatterns._pattern_distribution(rel regclass, OUT method text,
  OUT column_name text, OUT colocation int, OUT of_table regclass)
  AS 'MODULE_PATHNAME', 'dp_pattern_distribution' LANGUAGE C STABLE;
COMMENT ON FUNCTION docpatterns._pattern_distribution(regclass) IS
  'how Citus distributes a table: by "hash" of a column, "single" for all rows on one server, '
  '"copied" to each server, "local" for a table of the coordinator that Citus knows; '
  '"shard" for a part of such a table (of_table), NULL for a table without Citus; tables with the '
  'same colocation have their shards together';

CREATE FUNCTION docpatterns._pattern_allow_triggers(rel regclass) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_pattern_allow_triggers' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._pattern_allow_triggers(regclass) IS
  'lets this transaction create triggers on a table that Citus distributes';

CREATE FUNCTION docpatterns._pattern_table_of(rel regclass) RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce((docpatterns._pattern_distribution($1)).of_table, $1)
$$;
COMMENT ON FUNCTION docpatterns._pattern_table_of(regclass) IS
  'the table that has the views of a pattern: of a shard, the distributed table';

-- Distributes a table beside rel as rel is distributed, so that Citus moves their shards together.
CREATE FUNCTION docpatterns._pattern_distribute_side(made regclass, rel regclass,
  key_column text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  method text := (docpatterns._pattern_distribution(rel)).method;
BEGIN
  PERFORM docpatterns._tenant_refuse(n.nspname, 'a table of another schema''s pattern')
    FROM pg_class a JOIN pg_class b ON b.oid = rel JOIN pg_namespace n ON n.oid = a.relnamespace
    WHERE a.oid = made AND a.relnamespace <> b.relnamespace;
  IF method IS NULL OR (docpatterns._pattern_distribution(made)).method IS NOT NULL THEN
    RETURN;
  END IF;
  PERFORM docpatterns._pattern_allow_triggers(rel);
  IF method = 'single' AND (SELECT a.relnamespace <> b.relnamespace FROM pg_class a, pg_class b
      WHERE a.oid = made AND b.oid = rel) THEN
    PERFORM docpatterns._shard_require_beside(rel, made);
  END IF;
  CASE method
    WHEN 'hash' THEN
      IF key_column IS NULL THEN
        RAISE EXCEPTION 'the table "%" cannot be distributed with table "%"',
          docpatterns._relname(made), docpatterns._relname(rel)
          USING ERRCODE = 'feature_not_supported',
            DETAIL = 'Its rows do not have the column by which the other table is distributed.',
            HINT = 'Distribute the table by a key of type bson_value, or its schema with '
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

-- Citus commits a query that only reads by itself, unless it could lock rows.
CREATE FUNCTION docpatterns._shard_query(rel regclass, condition text, query text,
  writes boolean DEFAULT true) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('SELECT %3$s FROM (SELECT docpatterns._shard_of(b) AS rel FROM %1$s AS b WHERE %2$s'
    '%4$s) AS s', $1, $2, $3, CASE WHEN $4 THEN
      format(' AND NOT EXISTS (SELECT FROM %s AS b WHERE %s AND false FOR KEY SHARE)', $1, $2) END)
$$;
COMMENT ON FUNCTION docpatterns._shard_query(regclass, text, text, boolean) IS
  'SQL text: a query of one shard, s.rel, of a distributed table; condition is that of '
  '_pattern_shards(), query a list of expressions; writes: these write in the transaction';

CREATE FUNCTION docpatterns._shard_lock_all(rel regclass) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_pattern_shard_lock_all' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._shard_lock_all(regclass) IS
  'keeps the shards of a distributed table where they are until the transaction ends; waits for '
  'moves and splits that block writes';

CREATE FUNCTION docpatterns._pattern_sum_shards(rel regclass, call text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s record;
  n bigint;
  done bigint := 0;
BEGIN
  PERFORM docpatterns._shard_lock_all(rel);
  FOR s IN SELECT q.condition FROM docpatterns._pattern_shards(rel) q LOOP
    EXECUTE docpatterns._shard_query(rel, s.condition, call) INTO n;
    done := done + coalesce(n, 0);
  END LOOP;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_sum_shards(regclass, text) IS
  'evaluates SQL text of type bigint, in which s.rel is a shard, for each shard of a distributed '
  'table, and returns the sum';

CREATE FUNCTION docpatterns._pattern_is_distributed(rel regclass) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce((docpatterns._pattern_distribution($1)).method <> 'shard', false)
$$;
COMMENT ON FUNCTION docpatterns._pattern_is_distributed(regclass) IS
  'whether Citus has the rows of a table in shards';

-- Citus names the triggers of shards itself.
CREATE FUNCTION docpatterns._pattern_expected_triggers(rel regclass, triggers text[])
  RETURNS SETOF text
LANGUAGE docpatterns STABLE ROWS 5 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  main regclass := (docpatterns._pattern_distribution(rel)).of_table;
BEGIN
  IF main IS NULL THEN
    RETURN QUERY SELECT unnest(triggers);
    RETURN;
  END IF;
  RETURN QUERY SELECT coalesce(g.tgname, t.tgname)::text
    FROM pg_trigger t LEFT JOIN pg_trigger g ON g.tgrelid = rel AND g.tgtype = t.tgtype
      AND g.tgfoid = t.tgfoid AND g.tgnargs = t.tgnargs AND (g.tgnargs = 1 OR g.tgargs = t.tgargs)
    WHERE t.tgrelid = main AND t.tgname = ANY (triggers);
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_expected_triggers(regclass, text[]) IS
  'the triggers of a table that an anchor names; of a shard, their names there, or on the '
  'distributed table if the shard misses them';

-- Called by the event trigger, on every server: for a shard, or for a table whose shards are here.
CREATE FUNCTION docpatterns._shard_truncate_triggers(rel regclass) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  main regclass := coalesce((docpatterns._pattern_distribution(rel)).of_table, rel);
  shards regclass[] := ARRAY[rel];
  shard regclass;
  g record;
BEGIN
  IF main = rel THEN
    -- shard_name() leaves the schema out if it is "public"
    EXECUTE 'SELECT array_agg(s.shard) FROM (SELECT to_regclass(format(''%s.%I'', '
      'm.relnamespace::regnamespace, q.parts[cardinality(q.parts)])) AS shard '
      'FROM pg_dist_shard d JOIN pg_class m ON m.oid = d.logicalrelid '
      'CROSS JOIN LATERAL parse_ident(shard_name(d.logicalrelid, d.shardid)) AS q (parts) '
      'WHERE d.logicalrelid = $1) AS s WHERE s.shard IS NOT NULL' INTO shards USING main;
  END IF;
  FOREACH shard IN ARRAY coalesce(shards, '{}') LOOP
    FOR g IN
      SELECT o.tgname AS made, t.tgname AS declared, t.oid, t.tgtype::int, t.tgfoid, t.tgargs
      FROM (SELECT q.* FROM pg_trigger q WHERE q.tgrelid = main AND q.tgtype::int & 32 <> 0
          AND starts_with(q.tgname, 'zz_docpatterns_')) AS t
        FULL JOIN (SELECT q.* FROM pg_trigger q WHERE q.tgrelid = shard AND q.tgtype::int & 32 <> 0
          AND starts_with(q.tgname, 'zz_docpatterns_')) AS o
          ON o.tgfoid = t.tgfoid AND o.tgtype = t.tgtype AND o.tgargs = t.tgargs
          AND o.tgenabled = t.tgenabled
      WHERE t.oid IS NULL OR o.oid IS NULL
      ORDER BY o.oid
    LOOP
      IF g.oid IS NULL THEN
        EXECUTE format('DROP TRIGGER %I ON %s', g.made, shard);
      ELSE
        EXECUTE format('CREATE TRIGGER %I %s TRUNCATE ON %s FOR EACH STATEMENT EXECUTE FUNCTION '
            '%s(%s)', docpatterns._pattern_object_name(g.declared, NULL,
              substring(shard::text FROM '([0-9]+)"?$')),
          CASE WHEN g.tgtype & 2 <> 0 THEN 'BEFORE' ELSE 'AFTER' END, shard, g.tgfoid::regproc,
          docpatterns._pattern_trigger_arguments(g.tgargs));
      END IF;
    END LOOP;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._shard_truncate_triggers(regclass) IS
  'gives shards on this server the triggers for TRUNCATE of their table, and takes away others';

CREATE FUNCTION docpatterns._pattern_shard_places(rel regclass) RETURNS TABLE (shard bigint,
  condition text, place text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY EXECUTE 'SELECT q.shard, q.condition, (SELECT format(''shard %s on %s:%s'', '
      'q.shard, n.nodename, n.nodeport) '
      'FROM pg_dist_placement p JOIN pg_dist_node n USING (groupid) '
      'WHERE p.shardid = q.shard ORDER BY p.placementid LIMIT 1) '
    'FROM docpatterns._pattern_shards($1) AS q' USING rel;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_shard_places(regclass) IS
  'the shards of a distributed table as _pattern_shards() returns them, and where they are';

-- Documents and what they refer to ----------------------------------------------------------------

CREATE FUNCTION docpatterns._shard_by(column_value anyelement, doc bson, path text) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_shard_by' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 5;
COMMENT ON FUNCTION docpatterns._shard_by(anyelement, bson, text) IS
  'whether all values at a path of a document equal a column; the condition of constraints that '
  'keep documents in the shard of what they refer to; error 22023 for a bad path';

CREATE FUNCTION docpatterns._shard_require_by(rel regclass, doc_column text, path text)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  routed text := (docpatterns._pattern_distribution(rel)).column_name;
  keys text[];
BEGIN
  IF path IS NULL THEN
    -- it is found by its key
    SELECT t.keys INTO keys FROM docpatterns._pattern_table(rel, doc_column) t;
    IF keys <> ARRAY[routed] THEN
      RAISE EXCEPTION 'table "%" is not distributed by its primary key', docpatterns._relname(rel)
        USING ERRCODE = 'feature_not_supported',
          DETAIL = 'Documents of other tables refer to it by its primary key.';
    END IF;
  ELSIF NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conrelid = rel AND c.contype = 'c'
      AND strpos(pg_get_constraintdef(c.oid), format('_shard_by(%I, %I, %L', routed, doc_column,
        path)) > 0) THEN
    EXECUTE format('ALTER TABLE %s ADD CONSTRAINT %I CHECK (docpatterns._shard_by(%I, %I, %L))',
      rel, docpatterns._pattern_object_name((SELECT c.relname FROM pg_class c WHERE c.oid = rel),
        path, 'shard'), routed, doc_column, path);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._shard_require_by(regclass, text, text) IS
  'adds a constraint to a distributed table: a field has the value of the column that distributes '
  'it; path NULL: error 0A000 unless that column is the primary key; error 23514 for documents '
  'that violate it';

CREATE FUNCTION docpatterns._shard_require_fit(rel regclass, pattern text, method text)
  RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF method = 'copied' THEN
    RAISE EXCEPTION 'each server has all rows of table "%"', docpatterns._relname(rel)
      USING ERRCODE = 'feature_not_supported',
        DETAIL = 'Patterns would maintain these copies independently.',
        HINT = 'Declare patterns on the tables whose documents refer to it.';
  ELSIF method = 'shard' THEN
    RAISE EXCEPTION 'table "%" is distributed', docpatterns._relname(rel)
      USING ERRCODE = 'feature_not_supported',
        HINT = 'Declare the pattern on the distributed table, not on a shard.';
  ELSIF method = 'hash' AND (docpatterns._pattern_facts(pattern)).whole_table THEN
    RAISE EXCEPTION 'the % pattern needs all rows of table "%" on one server',
        replace(pattern, '_', ' '), docpatterns._relname(rel)
      USING ERRCODE = 'feature_not_supported',
        DETAIL = 'The table is distributed by a column.',
        HINT = 'Distribute the schema of the table instead, with citus_schema_distribute().';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._shard_require_fit(regclass, text, text) IS
  'error 0A000 for a pattern that cannot be kept on a table that Citus distributes by that method';

CREATE FUNCTION docpatterns._shard_require_beside(rel regclass, other regclass) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r record;
  o record;
BEGIN
  SELECT q.* INTO r FROM docpatterns._pattern_distribution(rel) q;
  SELECT q.* INTO o FROM docpatterns._pattern_distribution(other) q;
  IF r.method IS DISTINCT FROM o.method OR r.colocation <> o.colocation THEN
    RAISE EXCEPTION 'tables "%" and "%" are not on the same servers', docpatterns._relname(rel),
      docpatterns._relname(other)
      USING ERRCODE = 'feature_not_supported',
        HINT = 'Distribute both in one schema, or by key with colocate_with.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._shard_require_beside(regclass, regclass) IS
  'error 0A000 unless Citus keeps the shards of two tables together, or knows neither';

-- A pattern of two tables reads and writes both on one server.
CREATE FUNCTION docpatterns._shard_require_together(rel regclass, doc_column text, path text,
  source regclass, source_doc text, source_path text, copied boolean DEFAULT false) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
  s record;
BEGIN
  SELECT q.* INTO d FROM docpatterns._pattern_distribution(rel) q;
  SELECT q.* INTO s FROM docpatterns._pattern_distribution(source) q;
  IF d.method IS NULL AND s.method IS NULL OR copied AND s.method = 'copied' AND d.method = 'hash'
  THEN
    RETURN;
  END IF;
  PERFORM docpatterns._shard_require_beside(rel, source);
  IF d.method = 'hash' THEN
    PERFORM docpatterns._pattern_allow_triggers(rel);
    PERFORM docpatterns._shard_require_by(rel, doc_column, path);
    PERFORM docpatterns._shard_require_by(source, source_doc, source_path);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._shard_require_together(regclass, text, text, regclass, text, text,
  boolean) IS
  'error 0A000 unless the rows of both tables that belong together are on one server: they have '
  'the same shards, by the fields at the paths, or by the primary key where a path is NULL; '
  'copied: each server may have all of source';

-- Side tables are distributed by the key columns of the table.
CREATE FUNCTION docpatterns._collection_distribute(rel regclass, on_field text,
  colocate_with text) RETURNS SETOF text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp
  SET citus.enable_unsafe_triggers = on SET citus.multi_shard_modify_mode = 'sequential' AS $$
DECLARE
  t record;
  d record;
  side record;
  side_key text;
  maintain text := current_setting('docpatterns.maintain');
BEGIN
  IF to_regclass('pg_catalog.pg_dist_partition') IS NULL THEN
    RAISE EXCEPTION 'extension citus is not installed in this database'
      USING ERRCODE = 'feature_not_supported', HINT = 'Install it with CREATE EXTENSION citus.';
  END IF;
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, NULL) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  IF (docpatterns._pattern_distribution(rel)).method IS NOT NULL THEN
    RAISE EXCEPTION 'table "%" is already distributed', docpatterns._relname(rel)
      USING ERRCODE = 'object_not_in_prerequisite_state';
  ELSIF (on_field = ANY (t.keys)) IS NOT TRUE THEN
    RAISE EXCEPTION 'column "%" is not in the primary key of table "%"', on_field,
        docpatterns._relname(rel) USING ERRCODE = 'invalid_parameter_value',
      HINT = format('The primary key is (%s).', array_to_string(t.keys, ', '));
  END IF;
  side_key := (docpatterns._pattern_side_keys(cardinality(t.keys)))[array_position(t.keys,
    on_field)];
  FOR d IN SELECT q.rel, q.name FROM docpatterns._pattern_read_by(rel) q LOOP
    RAISE EXCEPTION 'table "%" is the source of pattern "%" of table "%"',
      docpatterns._relname(rel), d.name, docpatterns._relname(d.rel)
      USING ERRCODE = 'feature_not_supported',
      HINT = 'Disable the pattern, distribute both tables, and declare it again.';
  END LOOP;
  FOR d IN SELECT q.pattern, q.name, q.options FROM docpatterns._pattern_declarations(rel) q LOOP
    PERFORM docpatterns._shard_require_fit(rel, d.pattern, 'hash');
    FOR side IN SELECT l.id, docpatterns._pattern_side(l.id, rel) AS rel
        FROM unnest(docpatterns._pattern_link_ids(d.options)) AS l (id) LOOP
      IF NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = side.rel
            AND g.tgfoid = 'docpatterns.pattern_guard_trigger'::regproc)
          OR NOT EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
            AND a.attnum = ANY (i.indkey::int2[])
            WHERE i.indrelid = side.rel AND i.indisprimary AND a.attname = side_key) THEN
        RAISE EXCEPTION 'pattern "%" of table "%" cannot be distributed with it', d.name,
            docpatterns._relname(rel) USING ERRCODE = 'feature_not_supported',
          DETAIL = format('The rows of table "%s" do not have the key.',
            docpatterns._relname(side.rel)),
          HINT = 'Disable the pattern, distribute the tables, and declare it again.';
      END IF;
    END LOOP;
  END LOOP;

  PERFORM docpatterns._pattern_unlink(rel);
  -- rows are copied as they are
  PERFORM docpatterns._tenant_maintain('off');
  EXECUTE 'SELECT create_distributed_table($1, $2, colocate_with => $3)'
    USING rel, on_field, colocate_with;
  RETURN NEXT format('table %s: distributed by column %I', rel, on_field);
  FOR side IN SELECT DISTINCT docpatterns._pattern_side(l.id, q.rel) AS rel
      FROM docpatterns._pattern_declarations(_collection_distribute.rel) q
        CROSS JOIN unnest(docpatterns._pattern_link_ids(q.options)) AS l (id) LOOP
    EXECUTE 'SELECT create_distributed_table($1, $2, colocate_with => $3)'
      USING side.rel, side_key, rel::text;
    RETURN NEXT format('table %s: distributed with it by column %I', side.rel, side_key);
  END LOOP;
  PERFORM docpatterns._tenant_maintain(maintain);
  PERFORM @extschema@.pattern_relink(rel);
END
$$;
COMMENT ON FUNCTION docpatterns._collection_distribute(regclass, text, text) IS
  'collection_distribute with the other table resolved';

-- The other table is looked up as the caller's search_path has it.
CREATE FUNCTION collection_distribute(rel regclass, on_field text DEFAULT '_id',
  colocate_with text DEFAULT 'default') RETURNS SETOF text
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  RETURN QUERY SELECT d.line FROM docpatterns._collection_distribute(rel, on_field,
    coalesce((SELECT pg_catalog.format('%I.%I', n.nspname, c.relname)
      FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n
        ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
      WHERE c.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass(colocate_with)),
      colocate_with)) AS d (line);
END
$$;
COMMENT ON FUNCTION collection_distribute(regclass, text, text) IS
  'Distributes a table with documents over the servers of Citus by a column of its primary key, '
  'with the side tables of its patterns, and returns what it has distributed. colocate_with is as '
  'in create_distributed_table(). Copies all rows and locks the tables until the end of the '
  'transaction. Errors: 0A000 a pattern that cannot be distributed so, or a database without '
  'Citus, 22023 another column, 42501 unless the caller owns the table, 55000 a distributed table';
