-- Errors of the extension's PL/pgSQL functions: their context shows functions and statements of the user, none of the extension.
SET client_min_messages = warning;
\set SHOW_CONTEXT errors

SELECT collection_create('books');
SELECT outlier_enable('books', 'buyers', threshold => 3);
SELECT pattern_alter('books', 'buyers', '{threshold: 0}');
SELECT outlier_enable('books', 'buyers', threshold => 3);
CALL pattern_build('books', 'nothing');
SELECT collection_find('books', '{title: {$regex: "("}}');

-- Callers stay in it.
CREATE FUNCTION change_threshold(n int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM public.pattern_alter('public.books', 'buyers', public.bson_build('threshold', n));
END
$$;
SELECT change_threshold(0);

-- If the error arises in code of the user that the extension calls, all stays. These are the names of the functions, the innermost first.
CREATE FUNCTION functions_of(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  context text;
BEGIN
  EXECUTE command;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
  RETURN SQLERRM || ': ' || (SELECT string_agg(m[1], ', ') FROM regexp_matches(context, '^\S+ function "?([\w.]+)', 'gn') m);
END
$$;
INSERT INTO books (doc) VALUES ('{_id: 1, buyers: [1, 2, 3, 4, 5]}');
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'books do not change'; END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON books FOR EACH ROW EXECUTE FUNCTION refuse();
SELECT functions_of($$SELECT pattern_disable('books', 'buyers')$$);
CREATE FUNCTION refused() RETURNS int VOLATILE STRICT LANGUAGE sql AS $$ SELECT 1 / (SELECT 0) $$;
CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN public.refused(); END $$;
SELECT functions_of($$SELECT pattern_disable('books', 'buyers')$$);

-- A function of the extension that this code calls leaves no line.
CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM public.change_threshold(0); RETURN NEW; END $$;
SELECT functions_of($$SELECT pattern_disable('books', 'buyers')$$);

-- An error that is thrown again, and another one after it.
DO $$
BEGIN
  PERFORM change_threshold(0);
EXCEPTION WHEN OTHERS THEN
  RAISE;
END
$$;
DO $$
BEGIN
  PERFORM change_threshold(0);
EXCEPTION WHEN OTHERS THEN
  PERFORM change_threshold(-1);
END
$$;

-- Superusers can have the full context.
SET log_error_verbosity = verbose;
SELECT functions_of($$SELECT pattern_alter('books', 'buyers', '{threshold: 0}')$$);
RESET log_error_verbosity;
SELECT functions_of($$SELECT pattern_alter('books', 'buyers', '{threshold: 0}')$$);

-- Users cannot create functions in the language.
CREATE ROLE dp_language;
SET ROLE dp_language;
CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE docpatterns AS 'BEGIN RETURN 1; END';
RESET ROLE;
DROP ROLE dp_language;
CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE docpatterns AS 'BEGIN RETURN; END';
