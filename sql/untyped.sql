-- Drivers send parameters without a type, and "any" accepts no such parameter. So every function
-- that takes "any" exists a second time with text instead, and PostgreSQL prefers that one.
-- (A single argument of any type is anycompatible, where untyped means text already.)

DO $$
DECLARE
  f record;
BEGIN
  FOR f IN
    SELECT p.proname AS name, pg_catalog.pg_get_functiondef(p.oid) AS definition,
      pg_catalog.pg_get_function_identity_arguments(p.oid) AS arguments,
      pg_catalog.obj_description(p.oid, 'pg_proc') AS comment
    FROM pg_catalog.pg_extension e
      JOIN pg_catalog.pg_depend d ON d.refclassid = 'pg_catalog.pg_extension'::regclass
        AND d.refobjid = e.oid AND d.classid = 'pg_catalog.pg_proc'::regclass AND d.deptype = 'e'
      JOIN pg_catalog.pg_proc p ON p.oid = d.objid AND p.pronamespace = e.extnamespace
    WHERE e.extname = 'docpatterns' AND p.prokind = 'f'
      AND '"any"'::regtype = ANY (p.proargtypes::oid[])
  LOOP
    EXECUTE pg_catalog.replace(pg_catalog.regexp_replace(
      pg_catalog.format('%s; COMMENT ON FUNCTION @extschema@.%I(%s) IS %L', f.definition,
        f.name, f.arguments, f.comment), '(VARIADIC [^,)]*)"any"', '\1text[]', 'g'),
      '"any"', 'text');
  END LOOP;
END
$$;
