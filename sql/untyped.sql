-- Drivers send parameters without a type, and "any" accepts no such parameter. So every function
-- that takes "any" exists a second time with text instead, and PostgreSQL prefers that one.
-- (A single argument of any type is anycompatible, where untyped means text already.)

CREATE FUNCTION docpatterns.untyped_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_untyped_support' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns.untyped_support(internal) IS
  'for the planner: calls the function that takes "any" for a list of arguments';

DO $$
DECLARE
  f record;
BEGIN
  FOR f IN
    SELECT pg_catalog.pg_get_functiondef(p.oid) AS definition,
      pg_catalog.format('@extschema@.%I(%s)', p.proname,
        pg_catalog.pg_get_function_identity_arguments(p.oid)) AS signature,
      p.provariadic OPERATOR(pg_catalog.<>) 0::pg_catalog.oid AS is_list,
      pg_catalog.obj_description(p.oid, 'pg_proc') AS comment
    FROM pg_catalog.pg_extension e
      JOIN pg_catalog.pg_depend d ON d.refobjid OPERATOR(pg_catalog.=) e.oid
        AND d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
        AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
        AND d.deptype OPERATOR(pg_catalog.=) 'e'
      JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) d.objid
        AND p.pronamespace OPERATOR(pg_catalog.=) e.extnamespace
    WHERE e.extname OPERATOR(pg_catalog.=) 'docpatterns' AND p.prokind OPERATOR(pg_catalog.=) 'f'
      AND '"any"'::pg_catalog.regtype OPERATOR(pg_catalog.=) ANY (p.proargtypes::pg_catalog.oid[])
  LOOP
    EXECUTE pg_catalog.replace(pg_catalog.regexp_replace(
      pg_catalog.format('%1$s; COMMENT ON FUNCTION %2$s IS %3$L;'
          OPERATOR(pg_catalog.||) CASE WHEN f.is_list
               THEN 'ALTER FUNCTION %2$s SUPPORT docpatterns.untyped_support' ELSE '' END,
        f.definition, f.signature, f.comment), '(VARIADIC [^,)]*)"any"', '\1text[]', 'g'),
      '"any"', 'text');
  END LOOP;
END
$$;
