-- Every public function that takes a table, on tables with outliers, trees, derived data and measurements, called by those who may not see all of it:
-- somebody without rights, somebody who may read other columns only, a reader from whom a policy hides rows, and one who may only read. Nobody is
-- shown what he may not see, in a result or in a message, and nothing is changed. (test/t/shapes_rights.sh does it for the other patterns.)
\set ECHO none
SET client_min_messages = error;
SET statement_timeout = '60s';
SELECT plan(10);
DROP ROLE IF EXISTS dp_nobody, dp_columns, dp_hidden, dp_reader;
CREATE ROLE dp_nobody; CREATE ROLE dp_columns; CREATE ROLE dp_hidden; CREATE ROLE dp_reader;
SELECT collection_create(c) FROM unnest('{rows,totals,nodes,refs,counted,feed,follows,cold}'::text[]) c;
CREATE TABLE mates (id int PRIMARY KEY, doc bson);
INSERT INTO rows (doc) SELECT bson_build('_id', i, 'of', 1 + i % 3, 'n', i, 'list', bson_array(i, i, i, i), 'at', timestamptz '2024-01-01') FROM generate_series(1, 9) i;
INSERT INTO totals (doc) SELECT bson_build('_id', i, 'title', 't') FROM generate_series(1, 3) i;
INSERT INTO nodes (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 1 THEN i / 2 END) FROM generate_series(1, 7) i;
INSERT INTO refs (doc) SELECT bson_build('_id', i, 'to', 1) FROM generate_series(1, 3) i;
INSERT INTO counted (doc) SELECT bson_build('_id', i, 'hits', i) FROM generate_series(1, 3) i;
INSERT INTO feed (doc) SELECT bson_build('_id', i, 'by', 1) FROM generate_series(1, 3) i;
INSERT INTO follows (doc) SELECT bson_build('_id', i, 'who', i, 'whom', 1) FROM generate_series(1, 3) i;
INSERT INTO cold (doc) SELECT bson_build('_id', i, 'much', 'x') FROM generate_series(1, 3) i;
INSERT INTO mates SELECT i, bson_build('_id', i, 'list', bson_array(1, 2, 3)) FROM generate_series(1, 3) i;
SELECT outlier_enable('rows', 'list', 2, name => 'list'), outlier_enable('mates', 'list', 2, name => 'list'), tree_enable('nodes', parent => 'up', ancestors => 'above', name => 'tree'), computed_enable('totals', 'rows', 'of', '{n: {$count: {}}}', name => 'n'),
  subset_enable('totals', 'first', 'rows', 'of', '{n: -1}', 2, fields => '{n: 1}', name => 'first'), reference_enable('refs', 'to', 'totals', live => '{title}', missing => 'allow', name => 'to'), rollup_enable('rows', name => 'by_day', time_field => 'at', levels => '{day}', fields => '{n: {$count: {}}}'),
  approximation_enable('counted', 'hits', slots => 2, name => 'hits'), subset_fields_enable('cold', cold => '{much}', name => 'much'), fanout_enable('feed', walls => 'walls', author => 'by', followers => 'follows', follower => 'who', followee => 'whom', name => 'walls', keep => 5);
SELECT bucket_create('measured', columns => 'id int, ts timestamptz, v float8, t text', group_by => '{id}', time_field => 'ts');
INSERT INTO measured VALUES (1, '2024-01-01', 1, 'classified'), (2, '2024-01-01', 1, 'x');
SELECT format('CALL pattern_build(%L, %L)', rel, name) FROM pattern_list() WHERE pattern <> 'bucket' ORDER BY pattern \gexec
DO $$ DECLARE t text; BEGIN
  FOREACH t IN ARRAY '{rows,totals,nodes,refs,counted,feed,follows,cold}'::text[] LOOP EXECUTE format('UPDATE %I SET doc = bson_set(doc, ''mark'', ''classified''::text) WHERE _id = 1', t); END LOOP;
END $$;
UPDATE mates SET doc = bson_set(doc, 'mark', 'classified'::text) WHERE id = 1;
CREATE TABLE declared AS SELECT rel, pattern, name FROM pattern_list();
GRANT SELECT ON declared TO PUBLIC;
GRANT SELECT ON rows, totals, nodes, refs, counted, feed, follows, cold, mates, measured TO dp_hidden, dp_reader;
GRANT SELECT (_id) ON rows, totals, nodes, refs, counted, feed, follows, cold TO dp_columns;
GRANT SELECT (id) ON mates, measured TO dp_columns;
CREATE FUNCTION all_rows() RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; part text; result text := '';
BEGIN
  FOR r IN SELECT c.oid::regclass AS rel FROM pg_class c WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace AND relname NOT IN ('declared', 'before', 'given', 'ended') ORDER BY relname LOOP
    EXECUTE format('SELECT md5(string_agg(r::text, '','' ORDER BY r::text)) FROM %s r', r.rel) INTO part;
    result := result || r.rel || coalesce(part, '') || ' ';
  END LOOP;
  RETURN result;
END $$;
CREATE TABLE before AS SELECT all_rows() AS was;
CREATE TABLE given (type text, value text);
INSERT INTO given VALUES ('text', '''n'''), ('name', '''doc'''), ('bson', '''{}'''), ('bson_value', '''1'''), ('integer', '1'), ('bigint', '1'), ('boolean', 'false'), ('double precision', '1'), ('interval', '''1 day'''), ('timestamp with time zone', '''2024-01-01'''),
  ('text[]', '''{n}'''), ('bson[]', '''{"{}"}'''), ('"any"', '1'), ('anycompatible', '1'), ('regprocedure', '''bson_size(bson)'''), ('interval[]', '''{1 day}''');
GRANT SELECT ON given TO PUBLIC;
-- what is shown that should not be, and how the calls ended; changes of the table it is asked to undo
CREATE FUNCTION calls(undo boolean, OUT call text, OUT state text, OUT shown boolean) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
  c record;
  result text;
BEGIN
  FOR c IN
    SELECT format(CASE p.prokind WHEN 'p' THEN 'CALL public.%I(%s)' ELSE 'SELECT string_agg(x::text, '' '') FROM public.%I(%s) x' END, p.proname,
        (SELECT string_agg(CASE WHEN i > p.pronargs - p.pronargdefaults THEN quote_ident(p.proargnames[i]) || ' => ' WHEN p.provariadic <> 0 AND i = p.pronargs AND a.type::regtype::text <> '"any"' THEN 'VARIADIC ' ELSE '' END ||
           CASE WHEN a.type = 'regclass'::regtype THEN format('%L::regclass', CASE WHEN i = 1 OR other IS NULL THEN d.rel ELSE other END) WHEN p.proargnames[i] = 'name' THEN quote_literal(d.name)
                ELSE v.value || '::' || CASE WHEN a.type::regtype::text IN ('"any"', 'anycompatible') THEN 'int' ELSE a.type::regtype::text END END, ', ' ORDER BY i)
         FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY a (type, i) LEFT JOIN given v ON v.type = a.type::regtype::text WHERE i <= p.pronargs - p.pronargdefaults OR (p.proargnames[i] IN ('name', 'key') AND p.provariadic = 0))) AS command
    FROM pg_proc p JOIN pg_depend e ON e.objid = p.oid AND e.classid = 'pg_proc'::regclass AND e.deptype = 'e' JOIN pg_extension x ON x.oid = e.refobjid AND x.extname = 'docpatterns', declared d, (VALUES (NULL::regclass), ('totals')) o (other)
    WHERE 'regclass'::regtype = ANY (p.proargtypes) AND p.proname !~ '^_' AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype) AND NOT (p.prorettype = 'record'::regtype AND p.proargmodes IS NULL)
      AND (o.other IS NULL OR (SELECT count(*) FROM unnest(p.proargtypes::oid[]) a WHERE a = 'regclass'::regtype) > 1)
    ORDER BY 1
  LOOP
    call := c.command;
    shown := false;
    state := '00000';
    BEGIN
      result := '';
      EXECUTE c.command INTO result;
      shown := coalesce(result ~ 'classified', false);
      IF undo THEN RAISE EXCEPTION 'undone' USING ERRCODE = 'XUNDO'; END IF;
    EXCEPTION WHEN OTHERS THEN
      state := SQLSTATE;
      shown := shown OR SQLERRM ~ 'classified';
    END;
    RETURN NEXT;
  END LOOP;
END $$;
CREATE TABLE ended (who text, call text, state text, shown boolean);
GRANT INSERT ON ended TO PUBLIC;
SET ROLE dp_nobody; INSERT INTO ended SELECT current_user, * FROM calls(false); RESET ROLE;
SELECT is_empty($$SELECT left(call, 100) FROM ended WHERE who = 'dp_nobody' AND shown$$, 'who has no rights is shown nothing');
SELECT is(all_rows(), was, 'and changes nothing') FROM before;
SET ROLE dp_columns; INSERT INTO ended SELECT current_user, * FROM calls(false); RESET ROLE;
SELECT is_empty($$SELECT left(call, 100) FROM ended WHERE who = 'dp_columns' AND shown$$, 'who may read another column is shown nothing of the documents');
SELECT is(all_rows(), was, 'and changes nothing') FROM before;
SET ROLE dp_reader; INSERT INTO ended SELECT current_user, * FROM calls(false); RESET ROLE;
SELECT ok((SELECT count(*) FROM ended WHERE who = 'dp_reader' AND shown) > 10, 'who may read is shown it');
SELECT is(all_rows(), was, 'and changes nothing') FROM before;
DO $$ DECLARE t text; BEGIN
  FOREACH t IN ARRAY '{rows,totals,nodes,refs,counted,feed,follows,cold,mates}'::text[] LOOP
    EXECUTE format('ALTER TABLE %1$I ENABLE ROW LEVEL SECURITY; CREATE POLICY hidden ON %1$I USING (NOT bson_exists(doc, ''mark''))', t);
  END LOOP;
END $$;
REVOKE SELECT ON measured FROM dp_hidden;
SET ROLE dp_hidden; INSERT INTO ended SELECT current_user, * FROM calls(false); RESET ROLE;
SELECT is_empty($$SELECT left(call, 100) FROM ended WHERE who = 'dp_hidden' AND shown$$, 'rows that a policy hides are hidden from every function');
SELECT is(all_rows(), was, 'and nothing is changed') FROM before;
SELECT is_empty($$SELECT who, state, left(call, 100) FROM ended WHERE state ~ '^(XX|42601|42P02)' AND NOT (state = '42601' AND call LIKE 'CALL %')$$, 'nobody meets an internal error');
SELECT is_empty($$SELECT * FROM pattern_check()$$, 'all is true');
DROP OWNED BY dp_nobody, dp_columns, dp_hidden, dp_reader;
DROP ROLE dp_nobody, dp_columns, dp_hidden, dp_reader;
SELECT finish();
