-- Event triggers: partitions come and go, tables are altered and dropped, and so is the extension.

-- The statement-level triggers of a partition's ancestors, which PostgreSQL does not clone. Those
-- of a source ('side') only fire on its partitions ('part').
CREATE FUNCTION docpatterns._pattern_join_partition(part regclass) RETURNS void
LANGUAGE docpatterns VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  FOR t IN
    SELECT DISTINCT p.relid::regclass AS rel, g.tgname, g.tgtype::int AS kind,
      g.tgfoid::regproc AS function, g.tgoldtable, g.tgnewtable,
           CASE WHEN g.tgnargs = 3 THEN overlay(g.tgargs PLACING 'part'::bytea FROM 1 FOR 4) ELSE
             g.tgargs END AS arguments
    FROM pg_partition_ancestors(part) a JOIN pg_trigger g ON g.tgrelid = a.relid
      JOIN pg_proc f ON f.oid = g.tgfoid
      CROSS JOIN pg_partition_tree(part) p
    WHERE a.relid <> part AND starts_with(g.tgname, 'zz_docpatterns_') AND g.tgtype::int & 1 = 0
      AND (g.tgnargs = 2 OR g.tgnargs = 3
          AND substring(g.tgargs FROM 1 FOR 5) = docpatterns._pattern_arguments('side'))
      AND f.pronamespace = 'docpatterns'::regnamespace
  LOOP
    EXECUTE format('CREATE OR REPLACE TRIGGER %I %s %s ON %s %s FOR EACH STATEMENT EXECUTE '
        'FUNCTION %s(%s)', t.tgname,
                   CASE WHEN t.kind & 2 <> 0 THEN 'BEFORE' ELSE 'AFTER' END,
                   concat_ws(' OR ', CASE WHEN t.kind & 4 <> 0 THEN 'INSERT' END, CASE
                     WHEN t.kind & 8 <> 0 THEN 'DELETE' END,
                       CASE WHEN t.kind & 16 <> 0 THEN 'UPDATE' END, CASE
                         WHEN t.kind & 32 <> 0 THEN 'TRUNCATE' END),
                   t.rel,
                   CASE WHEN coalesce(t.tgoldtable, t.tgnewtable) IS NOT NULL
                        THEN concat_ws(' ', 'REFERENCING',
                            'OLD TABLE AS ' || quote_ident(t.tgoldtable),
                            'NEW TABLE AS ' || quote_ident(t.tgnewtable)) ELSE '' END,
                   t.function, docpatterns._pattern_trigger_arguments(t.arguments));
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_join_partition(regclass) IS
  'gives a new partition the triggers for statements that patterns have on the tables above it';

CREATE FUNCTION docpatterns._pattern_trigger_arguments(arguments bytea) RETURNS text
LANGUAGE docpatterns IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  rest bytea := arguments;
  result text;
  z int;
BEGIN
  WHILE length(rest) > 0 LOOP
    z := position(decode('00', 'hex') IN rest);
    result := concat_ws(', ', result,
        quote_literal(convert_from(substring(rest FROM 1 FOR z - 1), 'UTF8')));
    rest := substring(rest FROM z + 1);
  END LOOP;
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_trigger_arguments(bytea) IS
  'the arguments of a trigger as pg_trigger has them, written for CREATE TRIGGER';

-- A former partition keeps the triggers that were created for it; this removes them.
CREATE FUNCTION docpatterns._pattern_leave_partition(part regclass) RETURNS void
LANGUAGE docpatterns VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  FOR t IN
    SELECT p.relid::regclass AS rel, g.tgname
    FROM (SELECT q.relid FROM pg_partition_tree(part) q UNION SELECT part) p
      JOIN pg_trigger g ON g.tgrelid = p.relid JOIN pg_proc f ON f.oid = g.tgfoid
    WHERE starts_with(g.tgname, 'zz_docpatterns_') AND g.tgtype::int & 1 = 0 AND g.tgparentid = 0
      AND f.pronamespace = 'docpatterns'::regnamespace
      AND (g.tgnargs = 3 AND substring(g.tgargs
            FROM 1 FOR 5) = docpatterns._pattern_arguments('part')
           OR g.tgnargs = 2 AND NOT EXISTS (SELECT FROM docpatterns._pattern_declarations(p.relid) d
             WHERE g.tgargs = docpatterns._pattern_arguments('of',
                 d.name)))
  LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', t.tgname, t.rel);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_leave_partition(regclass) IS
  'takes the triggers for statements away that a table had as a partition';

CREATE FUNCTION docpatterns._pattern_linked(rel regclass) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_pattern_linked' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._pattern_linked(regclass) IS
  'whether other tables of patterns, or triggers on them, depend on a table';

CREATE FUNCTION docpatterns._pattern_unlink(rel regclass) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_pattern_unlink' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._pattern_unlink(regclass) IS
  'removes these dependencies, which pattern_relink() records again; error 42501';

CREATE FUNCTION pattern_relink(rel regclass DEFAULT NULL) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_pattern_relink' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION pattern_relink(regclass) IS
  'Records the dependencies between tables of patterns again, which pg_upgrade does not keep, for '
  'one table or all that the caller owns. Returns the number of tables. Locks each against changes '
  'of its structure. Error: 42501 a table of another owner';

CREATE FUNCTION docpatterns._pattern_created() RETURNS event_trigger
  AS 'MODULE_PATHNAME', 'dp_pattern_created' LANGUAGE C;
COMMENT ON FUNCTION docpatterns._pattern_created() IS
  'records the dependencies between the tables of a pattern when its triggers are created, '
  'completes the triggers of new partitions, and changes the owner of objects of a pattern with '
  'that of its table';

CREATE EVENT TRIGGER docpatterns_created ON ddl_command_end
  WHEN TAG IN ('CREATE TRIGGER', 'DROP TRIGGER', 'CREATE TABLE', 'CREATE TABLE AS',
    'CREATE FOREIGN TABLE',
    'ALTER TABLE', 'ALTER FOREIGN TABLE', 'ALTER SCHEMA')
  EXECUTE FUNCTION docpatterns._pattern_created();
COMMENT ON EVENT TRIGGER docpatterns_created IS
  'records dependencies between the tables of a pattern, also after a restore, and changes their '
  'owners together';

CREATE FUNCTION docpatterns._pattern_dropping() RETURNS event_trigger
  AS 'MODULE_PATHNAME', 'dp_pattern_dropping' LANGUAGE C;
COMMENT ON FUNCTION docpatterns._pattern_dropping() IS
  'refuses that Citus replaces tables of which patterns have a pair';

CREATE EVENT TRIGGER docpatterns_table_dropping ON ddl_command_start WHEN TAG IN ('DROP TABLE')
  EXECUTE FUNCTION docpatterns._pattern_dropping();
COMMENT ON EVENT TRIGGER docpatterns_table_dropping IS
  'keeps pairs of tables together when Citus replaces one of them';

CREATE FUNCTION docpatterns._extension_require_unused() RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tables text[] := ARRAY(
    SELECT DISTINCT c.oid::regclass::text COLLATE "C"
    FROM pg_extension e JOIN pg_depend t ON t.refclassid = 'pg_extension'::regclass
        AND t.refobjid = e.oid AND t.deptype = 'e' AND t.classid = 'pg_type'::regclass
      JOIN pg_attribute a ON a.atttypid = t.objid
      JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p', 'f', 'm')
    WHERE e.extname = 'docpatterns' AND pg_has_role(e.extowner, 'USAGE')
      AND c.relnamespace <> 'docpatterns'::regnamespace
    ORDER BY 1);
BEGIN
  IF cardinality(tables) > 0 THEN
    RAISE EXCEPTION 'cannot drop extension docpatterns because tables contain documents'
      USING ERRCODE = 'dependent_objects_still_exist',
        DETAIL = format('These tables have columns of its types: %s%s.',
          array_to_string(tables[1:20], ', '),
          CASE WHEN cardinality(tables) > 20 THEN ', ...' ELSE '' END),
        HINT = 'To keep the data, run pattern_disable_all(), then bson_column_convert() for each '
          'of these tables. CASCADE drops the columns.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._extension_require_unused() IS
  'error 2BP01, which says how to leave, while tables have columns of the extension''s types';

CREATE FUNCTION docpatterns._extension_dropping() RETURNS event_trigger
  AS 'MODULE_PATHNAME', 'dp_extension_dropping' LANGUAGE C;
COMMENT ON FUNCTION docpatterns._extension_dropping() IS
  'refuses DROP EXTENSION docpatterns without CASCADE while tables have columns of its types';

CREATE EVENT TRIGGER docpatterns_dropping ON ddl_command_start WHEN TAG IN ('DROP EXTENSION')
  EXECUTE FUNCTION docpatterns._extension_dropping();
COMMENT ON EVENT TRIGGER docpatterns_dropping IS
  'says how to leave when DROP EXTENSION docpatterns would fail';
