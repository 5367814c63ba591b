-- Schemas that Citus distributes: all tables of one are on the same server, each with one shard.

CREATE FUNCTION docpatterns._tenant_schema(schema_name text) RETURNS boolean
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  result boolean := false;
BEGIN
  IF to_regclass('pg_catalog.pg_dist_schema') IS NOT NULL THEN
    EXECUTE 'SELECT EXISTS (SELECT FROM pg_dist_schema s JOIN pg_namespace n ON n.oid = s.schemaid '
      'WHERE n.nspname = $1)' INTO result USING schema_name;
  END IF;
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._tenant_schema(text) IS 'whether Citus distributes a schema';

CREATE FUNCTION docpatterns._tenant_refuse(schema_name text, what text) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF docpatterns._tenant_schema(schema_name) THEN
    RAISE EXCEPTION 'cannot create % in distributed schema "%"', what, schema_name
      USING ERRCODE = 'feature_not_supported',
        HINT = 'Create it in a schema that is not distributed.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._tenant_refuse(text, text) IS
  'error 0A000 for a schema that Citus distributes';

CREATE FUNCTION docpatterns._tenant_join(rel regclass) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_tenant_join' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._tenant_join(regclass) IS
  'distributes a new table of a distributed schema; error 0A000 inside of another command';

-- Citus only distributes tables that no function creates.
CREATE FUNCTION docpatterns._tenant_table(made regclass) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp
  SET client_min_messages = warning AS $$
BEGIN
  IF docpatterns._tenant_schema((SELECT n.nspname FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = made)) THEN
    PERFORM docpatterns._tenant_join(made);
    PERFORM docpatterns._pattern_allow_triggers(made);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._tenant_table(regclass) IS
  'distributes a new table if its schema is distributed, and allows triggers on it; error 0A000 '
  'inside of another command';

-- Shards have no identity columns. A new shard begins with numbers that no other server has given:
-- a reader of a change feed must never see a smaller number after a greater one, even if all rows
-- were purged.
CREATE FUNCTION docpatterns._shard_identity(shard regclass) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  a record;
BEGIN
  FOR a IN
    SELECT s.attname, m.attidentity
    FROM pg_attribute m JOIN pg_attribute s ON s.attname = m.attname
      JOIN pg_trigger g ON g.tgrelid = s.attrelid
        AND g.tgfoid = 'docpatterns.pattern_guard_trigger'::regproc
    WHERE m.attrelid = (docpatterns._pattern_distribution(shard)).of_table AND m.attidentity <> ''
      AND s.attrelid = shard AND s.attidentity = '' LIMIT 1
  LOOP
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP DEFAULT', shard, a.attname);
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I ADD GENERATED %s AS IDENTITY', shard, a.attname,
      CASE a.attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END);
    PERFORM docpatterns._tenant_number(shard, a.attname);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._shard_identity(regclass) IS
  'makes the column of a shard of a side table an identity column that is one in its table';

-- For tables that Citus has distributed with their triggers: it did not know their shards when the
-- event trigger saw these.
CREATE FUNCTION docpatterns._shard_identities(tables regclass[]) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  guard text;
BEGIN
  FOR guard IN SELECT pg_get_triggerdef(g.oid) FROM pg_trigger g
      WHERE g.tgrelid = ANY (tables) AND g.tgtype::int & 32 = 0
        AND g.tgfoid = 'docpatterns.pattern_guard_trigger'::regproc
        AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = g.tgrelid
          AND a.attidentity <> '') LOOP
    EXECUTE regexp_replace(guard, '^CREATE', 'CREATE OR REPLACE');
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._shard_identities(regclass[]) IS
  'creates the guards of side tables with identity columns again, for the event trigger that '
  'completes their shards';

CREATE FUNCTION docpatterns._tenant_number(rel regclass, column_name name) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('SELECT setval(pg_get_serial_sequence($1, $2), '
    'greatest(max(%I), extract(epoch FROM clock_timestamp()) * 1000000)::bigint) FROM %s',
    column_name, rel) USING rel::text, column_name;
END
$$;
COMMENT ON FUNCTION docpatterns._tenant_number(regclass, name) IS
  'sets the sequence of an identity column to the microseconds of the present time, or to a '
  'greater number that the column has';

-- Distributing a schema ---------------------------------------------------------------------------

-- Tables with patterns, or beside those.
CREATE FUNCTION docpatterns._tenant_tables(schema_name text) RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT g.tgrelid::regclass FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_proc f ON f.oid = g.tgfoid
  WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'f')
    AND f.pronamespace = 'docpatterns'::regnamespace
    AND (docpatterns._pattern_distribution(c.oid)).method IS DISTINCT FROM 'shard'
  ORDER BY 1
$$;
COMMENT ON FUNCTION docpatterns._tenant_tables(text) IS
  'tables of a schema with triggers of the extension, without shards';

CREATE FUNCTION docpatterns._tenant_require(schema_name text, call text) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF schema_name IS NULL THEN
    RAISE EXCEPTION 'the schema must not be null' USING ERRCODE = 'null_value_not_allowed';
  ELSIF to_regproc('pg_catalog.' || call) IS NULL THEN
    RAISE EXCEPTION 'extension "citus" is not installed'
      USING ERRCODE = 'object_not_in_prerequisite_state';
  ELSIF to_regnamespace(quote_ident(schema_name)) IS NULL THEN
    RAISE EXCEPTION 'schema "%" does not exist', schema_name
      USING ERRCODE = 'invalid_schema_name';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._tenant_require(text, text) IS
  'errors 22004, 55000 and 3F000 for calls that need a schema, and Citus';

-- SET LOCAL, also on the servers where this transaction works.
CREATE FUNCTION docpatterns._tenant_maintain(value text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp
  SET citus.propagate_set_commands = 'local' AS $$
BEGIN
  EXECUTE format('DO %L', format('BEGIN SET LOCAL docpatterns.maintain = %s; END', value));
END
$$;
COMMENT ON FUNCTION docpatterns._tenant_maintain(text) IS
  'sets docpatterns.maintain until the transaction ends, on all servers that take part in it';

-- What Citus cannot distribute with the schema, or would take apart.
CREATE FUNCTION docpatterns._tenant_refuse_declarations(schema_name text) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tables regclass[] := ARRAY(SELECT * FROM docpatterns._tenant_tables(schema_name));
  d record;
BEGIN
  SELECT q.rel, q.pattern, q.name INTO d FROM docpatterns._pattern_declarations(NULL) q
    WHERE q.rel = ANY (tables) AND (docpatterns._pattern_facts(q.pattern)).creates_table
    ORDER BY q.rel::text LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'cannot distribute schema "%"', schema_name
      USING ERRCODE = 'feature_not_supported',
        DETAIL = format('The %s pattern "%s" of "%s" works on one server.',
          replace(d.pattern, '_', ' '), d.name, docpatterns._relname(d.rel)),
        HINT = 'Keep it in another schema.';
  END IF;
  -- a trigger depends on the table to which it writes
  SELECT g.tgrelid::regclass AS rel, p.refobjid::regclass AS other INTO d
    FROM pg_depend p JOIN pg_trigger g ON g.oid = p.objid JOIN pg_class c ON c.oid = p.refobjid
    WHERE p.classid = 'pg_trigger'::regclass AND p.refclassid = 'pg_class'::regclass
      AND starts_with(g.tgname, 'zz_docpatterns_') AND c.relkind IN ('r', 'p')
      AND g.tgrelid <> p.refobjid
      AND (g.tgrelid = ANY (tables)) <> (p.refobjid = ANY (tables))
    ORDER BY g.tgrelid::regclass::text LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'cannot distribute schema "%"', schema_name
      USING ERRCODE = 'feature_not_supported',
        DETAIL = format('The tables "%s" and "%s" of a pattern are in different schemas.',
          docpatterns._relname(d.rel), docpatterns._relname(d.other)),
        HINT = 'Move one of them with ALTER TABLE .. SET SCHEMA, or disable the pattern.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._tenant_refuse_declarations(text) IS
  'error 0A000 if a pattern has only one of its tables in a schema, or cannot be distributed';

-- Citus copies the rows into tables that have their triggers already, and distributes one table
-- after the other, which dependencies between them forbid.
CREATE FUNCTION pattern_distribute_schema(schema_name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp
  SET citus.enable_unsafe_triggers = on SET citus.multi_shard_modify_mode = 'sequential' AS $$
DECLARE
  former text := current_setting('docpatterns.maintain');
  tables regclass[];
BEGIN
  PERFORM docpatterns._tenant_require(schema_name, 'citus_schema_distribute');
  PERFORM docpatterns._tenant_refuse_declarations(schema_name);
  tables := ARRAY(SELECT * FROM docpatterns._tenant_tables(schema_name));
  PERFORM docpatterns._pattern_unlink(q) FROM unnest(tables) q;
  PERFORM docpatterns._tenant_maintain('off');
  EXECUTE 'SELECT citus_schema_distribute($1)' USING to_regnamespace(quote_ident(schema_name));
  PERFORM docpatterns._shard_identities(tables);
  PERFORM docpatterns._tenant_maintain(former);
  PERFORM @extschema@.pattern_relink(q) FROM unnest(tables) q;
  RETURN cardinality(tables);
END
$$;
COMMENT ON FUNCTION pattern_distribute_schema(text) IS
  'Distributes a schema with Citus, as citus_schema_distribute() does, which refuses tables with '
  'patterns. Returns the number of tables with patterns. Locks the tables against reads and writes '
  'and copies all rows. Errors: 0A000 a pattern that has only one of its tables in the schema, '
  'buckets, a key-value space, 22004, 3F000, 42501, 55000 no Citus';

-- What Citus does not give to a copy of a table or of a view on it: as statements.
CREATE FUNCTION docpatterns._tenant_statements(schema_name text) RETURNS SETOF text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH relations AS (
    SELECT c.oid, c.relkind, c.reloptions, c.relacl, format('%I.%I', $1, c.relname) AS name,
      c.relowner
    FROM pg_class c WHERE c.relnamespace = to_regnamespace(quote_ident($1))
      AND c.relkind IN ('r', 'p', 'v')
      AND (docpatterns._pattern_distribution(c.oid)).method IS DISTINCT FROM 'shard'
  ), functions AS (
    SELECT DISTINCT p.oid, p.proowner, p.proacl
    FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid
    WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_class'::regclass
      AND d.deptype = 'n' AND d.refobjid IN (SELECT r.oid FROM relations r)
  )
  SELECT s.statement FROM (
    SELECT 1, format('ALTER VIEW %s SET (%s)', r.name, array_to_string(r.reloptions, ', '))
      FROM relations r WHERE r.relkind = 'v' AND r.reloptions IS NOT NULL
    UNION ALL
    SELECT 2, regexp_replace(pg_get_triggerdef(g.oid), '^CREATE', 'CREATE OR REPLACE')
      FROM relations r JOIN pg_trigger g ON g.tgrelid = r.oid WHERE r.relkind = 'v'
    UNION ALL
    SELECT 3, format('ALTER VIEW %s ALTER COLUMN %I SET DEFAULT %s', r.name, a.attname,
        pg_get_expr(d.adbin, d.adrelid))
      FROM relations r JOIN pg_attrdef d ON d.adrelid = r.oid
        JOIN pg_attribute a ON a.attrelid = r.oid AND a.attnum = d.adnum WHERE r.relkind = 'v'
    UNION ALL
    SELECT 4, format('GRANT %s ON %s TO %s%s', a.privilege_type, r.name,
        CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
        CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
      FROM relations r CROSS JOIN LATERAL aclexplode(r.relacl) a
      WHERE r.relkind = 'v' AND a.grantee <> r.relowner
    UNION ALL
    SELECT 5, format('COMMENT ON %s %s IS %L', CASE r.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END,
        r.name, d.description)
      FROM relations r JOIN pg_description d ON d.classoid = 'pg_class'::regclass
        AND d.objoid = r.oid AND d.objsubid = 0
    UNION ALL
    SELECT 6, pg_get_functiondef(f.oid) FROM functions f
    UNION ALL
    SELECT 7, format('ALTER ROUTINE %s OWNER TO %s', f.oid::regprocedure, f.proowner::regrole)
      FROM functions f
    UNION ALL
    SELECT 8, format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', f.oid::regprocedure)
      FROM functions f WHERE f.proacl IS NOT NULL
    UNION ALL
    SELECT 9, format('GRANT EXECUTE ON ROUTINE %s TO %s%s', f.oid::regprocedure,
        CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END,
        CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
      FROM functions f CROSS JOIN LATERAL aclexplode(f.proacl) a
    UNION ALL
    SELECT 9, format('COMMENT ON ROUTINE %s IS %L', f.oid::regprocedure, d.description)
      FROM functions f JOIN pg_description d ON d.classoid = 'pg_proc'::regclass
        AND d.objoid = f.oid
  ) AS s (place, statement) ORDER BY s.place
$$;
COMMENT ON FUNCTION docpatterns._tenant_statements(text) IS
  'SQL text: options, triggers, defaults, grants and comments of the views of a schema, comments '
  'of its tables, and functions that depend on both';

-- Citus does not replace tables with identity columns.
CREATE FUNCTION docpatterns._tenant_set_aside(t regclass) RETURNS text[]
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp
  SET client_min_messages = warning AS $$
DECLARE
  copy text := format('pg_temp.docpatterns_%s', t::oid);
  result text[];
BEGIN
  SELECT ARRAY[format('CREATE %sTABLE %s (LIKE %s INCLUDING ALL)%s',
        CASE c.relpersistence WHEN 'u' THEN 'UNLOGGED ' ELSE '' END, t, copy,
        ' WITH (' || array_to_string(c.reloptions, ', ') || ')'),
      format('INSERT INTO %s OVERRIDING SYSTEM VALUE SELECT * FROM %s', t, copy),
      format('DROP TABLE %s', copy),
      format('ALTER TABLE %s OWNER TO %s', t, c.relowner::regrole)]
      || ARRAY(SELECT pg_get_triggerdef(g.oid) FROM pg_trigger g
          WHERE g.tgrelid = t AND NOT g.tgisinternal ORDER BY g.tgname)
    INTO result FROM pg_class c WHERE c.oid = t;
  EXECUTE format('CREATE TEMP TABLE docpatterns_%s (LIKE %s INCLUDING ALL)', t::oid, t);
  EXECUTE format('INSERT INTO %s OVERRIDING SYSTEM VALUE SELECT * FROM %s', copy, t);
  EXECUTE format('DROP TABLE %s', t);
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._tenant_set_aside(regclass) IS
  'replaces a table by a temporary copy, and returns the statements that make it again';

-- Citus replaces one table after the other by a copy, and drops it with all that depends on it.
CREATE FUNCTION pattern_undistribute_schema(schema_name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp
  SET citus.multi_shard_modify_mode = 'sequential' AS $$
DECLARE
  tables text[];
  statements text[];
  numbered text[] := '{}';
  t regclass;
  column_name name;
BEGIN
  PERFORM docpatterns._tenant_require(schema_name, 'citus_schema_undistribute');
  tables := ARRAY(SELECT q::text FROM docpatterns._tenant_tables(schema_name) q);
  statements := ARRAY(SELECT * FROM docpatterns._tenant_statements(schema_name));
  PERFORM docpatterns._pattern_unlink(q::regclass) FROM unnest(tables) q;
  FOREACH t IN ARRAY tables::regclass[] LOOP
    IF EXISTS (SELECT FROM pg_attribute a JOIN pg_trigger g ON g.tgrelid = a.attrelid
          AND g.tgfoid = 'docpatterns.pattern_guard_trigger'::regproc
        WHERE a.attrelid = t AND a.attidentity <> '') THEN
      numbered := numbered || docpatterns._tenant_set_aside(t);
    END IF;
  END LOOP;
  EXECUTE 'SELECT citus_schema_undistribute($1)' USING to_regnamespace(quote_ident(schema_name));
  statements := numbered || statements;
  FOR i IN 1 .. cardinality(statements) LOOP
    EXECUTE statements[i];
  END LOOP;
  FOREACH t IN ARRAY tables::regclass[] LOOP
    FOR column_name IN SELECT a.attname FROM pg_attribute a
        WHERE a.attrelid = t AND a.attidentity <> '' LOOP
      PERFORM docpatterns._tenant_number(t, column_name);
    END LOOP;
    PERFORM @extschema@.pattern_relink(t);
  END LOOP;
  RETURN cardinality(tables);
END
$$;
COMMENT ON FUNCTION pattern_undistribute_schema(text) IS
  'Makes a schema that Citus distributes an ordinary one, as citus_schema_undistribute() does, '
  'which refuses tables of patterns. Returns the number of tables with patterns. Locks the tables '
  'against reads and writes and copies all rows. Errors: 22004, 3F000, 42501, 55000 no Citus';

-- Called by the event trigger for DROP TABLE .. CASCADE of a distributed table.
CREATE FUNCTION docpatterns._tenant_refuse_replacing(rel regclass) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp
  SET standard_conforming_strings = on AS $$
BEGIN
  IF docpatterns._pattern_linked(rel) AND EXISTS (SELECT FROM pg_class c, pg_class n
      WHERE c.oid = rel AND n.relnamespace = c.relnamespace
        AND right(n.relname, 11) LIKE '%\_' || (hashtext(c.relname)::bigint & 4294967295)) THEN
    RAISE EXCEPTION 'cannot replace table "%" because it is one of two tables of a pattern',
      docpatterns._relname(rel)
      USING ERRCODE = 'feature_not_supported',
        HINT = 'Use pattern_undistribute_schema() instead of citus_schema_undistribute(). '
          'Disable the pattern before undistribute_table() and alter_distributed_table().';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._tenant_refuse_replacing(regclass) IS
  'error 0A000 for a table of a pattern that Citus is about to replace by a copy';
