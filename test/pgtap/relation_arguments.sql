-- Functions that take a table, given what is none: views, foreign tables, catalogs, sequences, indexes, types, toast tables,
-- materialized views, tables of other sessions, tables without documents or keys, and numbers that nothing has. Each is refused with an
-- error that says why, or does what it says; none ends with an internal error, and nobody's table is changed.
\set ECHO none
SET client_min_messages = error;
SET statement_timeout = '60s';
SELECT plan(4);
CREATE TABLE canary (id int PRIMARY KEY, doc bson);
INSERT INTO canary VALUES (1, '{_id: 1, n: 1}');
CREATE TABLE targets (rel oid, what text);
CREATE VIEW a_view AS SELECT id, doc FROM canary;
CREATE MATERIALIZED VIEW a_matview AS SELECT id, doc FROM canary;
CREATE SEQUENCE a_sequence;
CREATE TYPE a_type AS (id int, doc bson);
CREATE TABLE no_key (id int, doc bson);
CREATE TABLE no_document (id int PRIMARY KEY);
CREATE TABLE two_documents (id int PRIMARY KEY, doc bson, other bson);
CREATE TABLE no_columns ();
CREATE TABLE parted (id int, doc bson, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY, doc bson);
CREATE TEMP TABLE temporary (id int PRIMARY KEY, doc bson);
CREATE TABLE parent (id int PRIMARY KEY, doc bson);
CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent);
SELECT kv_create('a_space'), kv_hset('a_space', 'h', 'f', 1);
SELECT bucket_create('a_bucket', columns => 'g int, ts timestamptz, v float8', group_by => '{g}', time_field => 'ts');
SELECT outlier_enable('canary', 'list', 5), versioning_enable('canary');
CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing; CREATE FOREIGN TABLE a_foreign (id int, doc bson) SERVER nowhere;
INSERT INTO targets SELECT c.oid, c.relname FROM pg_class c WHERE relname IN ('a_view', 'a_matview', 'a_sequence', 'a_type', 'no_key', 'no_document', 'two_documents', 'no_columns', 'parted', 'parted_1', 'unlogged', 'temporary',
  'child', 'a_bucket', 'a_foreign', 'canary_pkey', 'canary_list_extras', 'canary_history', 'canary_whole', 'pg_class', 'pg_attribute_relid_attnum_index', 'pg_database', 'pg_stats');
INSERT INTO targets SELECT reltoastrelid, 'a toast table' FROM pg_class WHERE oid = 'canary'::regclass;
INSERT INTO targets SELECT oid, 'keys of a space' FROM pg_class WHERE relname = 'keys' AND relnamespace = 'a_space'::regnamespace;
INSERT INTO targets VALUES (0, 'zero'), (4294967295, 'nothing'), (1, 'no relation');
-- a table that was dropped
CREATE TABLE gone (id int PRIMARY KEY, doc bson);
INSERT INTO targets VALUES ('gone'::regclass, 'dropped');
DROP TABLE gone;
-- in an order that does not depend on names, and each with arguments that mean something
CREATE TEMP TABLE values_of (type text, value text);
INSERT INTO values_of VALUES ('text', '''n'''), ('name', '''doc'''), ('bson', '''{}'''), ('bson_value', '''1'''), ('integer', '1'), ('bigint', '1'), ('boolean', 'false'), ('double precision', '1'), ('interval', '''1 day'''), ('timestamp with time zone', '''2024-01-01'''),
  ('text[]', '''{n}'''), ('bson[]', '''{"{}"}'''), ('"any"', '1'), ('anycompatible', '1'), ('regprocedure', '''bson_size(bson)'''), ('interval[]', '''{1 day}''');
CREATE TABLE outcome (call text, what text, state text, message text);
CREATE FUNCTION try_all() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  c record;
  command text;
BEGIN
  FOR c IN
    SELECT t.rel, t.what, p.proname, p.prokind, p.oid,
      (SELECT string_agg(CASE WHEN p.provariadic <> 0 AND i = p.pronargs AND a.type::regtype::text <> '"any"' THEN 'VARIADIC ' ELSE '' END ||
         CASE WHEN a.type = 'regclass'::regtype THEN format('%s::oid::regclass', CASE WHEN pass = 1 OR i = 1 THEN t.rel ELSE 'canary'::regclass::oid END)
              WHEN a.type = 'regclass[]'::regtype THEN format('ARRAY[%s::oid::regclass]', t.rel) ELSE v.value || '::' || CASE WHEN a.type::regtype::text IN ('"any"', 'anycompatible') THEN 'int' ELSE a.type::regtype::text END END, ', ' ORDER BY i)
       FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY a (type, i) LEFT JOIN values_of v ON v.type = a.type::regtype::text WHERE i <= p.pronargs - p.pronargdefaults) AS arguments
    FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e' JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass AND e.extname = 'docpatterns', targets t,
      generate_series(1, 2) pass
    WHERE (p.proargtypes::oid[] && ARRAY['regclass'::regtype, 'regclass[]'::regtype]::oid[]) AND p.proname !~ '^_' AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype, 'internal'::regtype)
      AND (pass = 1 OR (SELECT count(*) FROM unnest(p.proargtypes::oid[]) a WHERE a = 'regclass'::regtype) > 1) AND NOT (p.prorettype = 'record'::regtype AND p.proargmodes IS NULL)
    ORDER BY p.proname, p.oid, t.what, pass
  LOOP
    command := format(CASE c.prokind WHEN 'p' THEN 'CALL public.%I(%s)' ELSE 'SELECT count(x::text) FROM public.%I(%s) x' END, c.proname, c.arguments);
    BEGIN
      EXECUTE command;
      RAISE EXCEPTION 'undone' USING ERRCODE = 'XUNDO';
    EXCEPTION WHEN OTHERS THEN
      INSERT INTO outcome VALUES (command, c.what, SQLSTATE, SQLERRM);
    END;
  END LOOP;
END $$;
SELECT try_all();
SELECT is_empty($$SELECT what, state, left(message, 100), min(left(call, 80)), count(*) FROM outcome WHERE state ~ '^(XX|42601|42P02|25|2F|3B)' OR message ~ 'cache lookup|could not open|unexpected' GROUP BY 1, 2, 3 ORDER BY 1, 2$$, 'no internal error, no statement that cannot be read');
SELECT is_empty($$SELECT what, state, left(message, 100), min(left(call, 80)) FROM outcome WHERE what IN ('zero', 'nothing', 'no relation', 'dropped') AND state = 'XUNDO' AND call !~ 'pattern_(list|check|relink|disable_all|stats|due|maintain)|query_table_read' GROUP BY 1, 2, 3$$, 'what does not exist is not taken for a table');
SELECT ok((SELECT count(*) FROM outcome) > 1000, 'many calls were made');
SELECT is((SELECT doc::text FROM canary_whole), '{"_id": 1, "n": 1}', 'and a table is what it was');
SELECT finish();
