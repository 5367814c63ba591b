-- What somebody who may create a schema can put in the way of others: the schema evil, in which everything of pg_catalog and of the
-- extension is there a second time. Each function, operator, aggregate, type and relation of it raises the error EVIL1 when it is used,
-- and counts in evil.hits, also where the error is caught. evil.come_closer() does the same for a session's own temporary schema.
SET client_min_messages = error;
CREATE SCHEMA evil AUTHORIZATION dp_evil;
GRANT USAGE ON SCHEMA evil TO PUBLIC;
CREATE SEQUENCE evil.hits;
GRANT ALL ON SEQUENCE evil.hits TO PUBLIC;
SET search_path = pg_catalog;

CREATE PROCEDURE evil.try(command text) LANGUAGE plpgsql AS $$ BEGIN EXECUTE command; EXCEPTION WHEN OTHERS THEN NULL; END $$;
CREATE FUNCTION evil.body(what text) RETURNS text LANGUAGE sql RETURN format('LANGUAGE plpgsql COST 1 AS %L', format(
  'BEGIN PERFORM pg_catalog.nextval(''evil.hits''::pg_catalog.regclass); RAISE EXCEPTION %L, current_user USING ERRCODE = ''EVIL1''; END', 'trapped as %: ' || replace(what, '%', '%%')));
DO $$ BEGIN EXECUTE 'CREATE FUNCTION evil.trap(what text) RETURNS boolean ' || evil.body('a type or a relation'); END $$;

DO $$
DECLARE
  r record;
BEGIN
  -- functions, those for triggers too; one of these may replace a longer list of arguments that has defaults
  FOR r IN SELECT p.oid, p.proname, pg_get_function_arguments(p.oid) AS arguments, pg_get_function_result(p.oid) AS result FROM pg_proc p
           WHERE p.pronamespace IN ('pg_catalog'::regnamespace, 'public'::regnamespace, 'docpatterns'::regnamespace) AND p.prokind = 'f' AND NOT p.proargtypes::oid[] && ARRAY['internal'::regtype, '"any"'::regtype]::oid[] LOOP
    CALL evil.try(format('CREATE FUNCTION evil.%I(%s) RETURNS %s %s', r.proname, r.arguments, r.result, evil.body(r.oid::regprocedure::text)));
  END LOOP;
  -- those that take anything, for the types that are likely; aggregates
  FOR r IN SELECT p.proname, a.list, CASE WHEN p.prorettype IN (SELECT oid FROM pg_type WHERE typtype = 'p') THEN 'text' ELSE format_type(p.prorettype, NULL) END AS result
           FROM pg_proc p CROSS JOIN unnest(ARRAY['text', 'text, text', 'text, name', 'text, regclass', 'text, oid', 'text, text, text', 'text, name, name', 'text, text, name', 'text, name, text', 'text, text, text, text',
                                                  'text, VARIADIC text[]', 'anyelement', 'text, anyelement', 'text, anyelement, text', 'anyarray', 'text, VARIADIC anyarray']) AS a (list)
           WHERE p.pronamespace IN ('pg_catalog'::regnamespace, 'public'::regnamespace, 'docpatterns'::regnamespace) AND p.prokind = 'f' AND p.proargtypes::oid[] && ARRAY['"any"'::regtype, 'anycompatible'::regtype]::oid[] LOOP
    CALL evil.try(format('CREATE FUNCTION evil.%I(%s) RETURNS %s %s', r.proname, r.list, r.result, evil.body(r.proname || ' of anything')));
  END LOOP;
  FOR r IN SELECT p.proname, a.list, row_number() OVER () AS n FROM pg_proc p JOIN pg_aggregate g ON g.aggfnoid = p.oid
             CROSS JOIN LATERAL unnest(ARRAY[pg_get_function_arguments(p.oid), 'anyelement']) a (list)
           WHERE p.pronamespace IN ('pg_catalog'::regnamespace, 'public'::regnamespace, 'docpatterns'::regnamespace) AND g.aggkind = 'n' AND a.list <> '"any"' LOOP
    CALL evil.try(format('CREATE FUNCTION evil.step_%s(text%s) RETURNS text %s', r.n, coalesce(', ' || nullif(r.list, ''), ''), evil.body('aggregate ' || r.proname)));
    CALL evil.try(format('CREATE AGGREGATE evil.%I(%s) (SFUNC = evil.step_%s, STYPE = text)', r.proname, coalesce(nullif(r.list, ''), '*'), r.n));
  END LOOP;
  FOR r IN SELECT o.oid, o.oprname, o.oprleft, o.oprright, o.oprresult, o.oid::regoperator AS signature FROM pg_operator o
           WHERE o.oprnamespace IN ('pg_catalog'::regnamespace, 'public'::regnamespace, 'docpatterns'::regnamespace) LOOP
    CALL evil.try(format('CREATE FUNCTION evil.operator_%s(%s) RETURNS %s %s', r.oid, concat_ws(', ', nullif(r.oprleft, 0)::regtype, r.oprright::regtype), r.oprresult::regtype, evil.body('operator ' || r.signature)));
    CALL evil.try(format('CREATE OPERATOR evil.%s (%s FUNCTION = evil.operator_%s, RIGHTARG = %s)', r.oprname, 'LEFTARG = ' || nullif(r.oprleft, 0)::regtype || ',', r.oid, r.oprright::regtype));
  END LOOP;
END
$$;

CREATE PROCEDURE evil.types_and_relations(place text) LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT t.typname, n.nspname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
           WHERE n.nspname IN ('pg_catalog', 'public') AND t.typtype = 'b' AND t.typcategory <> 'A' AND t.typrelid = 0 LOOP
    CALL evil.try(format('CREATE DOMAIN %s.%I AS %I.%I CHECK (evil.trap(''type''))', place, r.typname, r.nspname, r.typname));
  END LOOP;
  FOR r IN SELECT c.relname, n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE c.relkind IN ('r', 'v') AND (n.nspname IN ('pg_catalog', 'docpatterns') OR n.nspname = 'public') LOOP
    CALL evil.try(format('CREATE VIEW %s.%I AS SELECT * FROM %I.%I WHERE evil.trap(''relation'')', place, r.relname, r.nspname, r.relname));
    CALL evil.try(format('GRANT ALL ON %s.%I TO PUBLIC', place, r.relname));
  END LOOP;
END
$$;
CREATE DOMAIN evil.record AS int CHECK (evil.trap('type'));
CALL evil.types_and_relations('evil');
CREATE PROCEDURE evil.come_closer() LANGUAGE plpgsql AS $$ BEGIN CALL evil.types_and_relations('pg_temp'); EXECUTE 'SET search_path = evil, pg_catalog, public, s'; END $$;
SELECT format('ALTER ROUTINE %s OWNER TO dp_evil', oid::regprocedure) FROM pg_proc WHERE pronamespace = 'evil'::regnamespace AND proname NOT IN ('try', 'body', 'types_and_relations', 'come_closer') \gexec
