-- For the docs suite: a block that has a call of collection_aggregate and, after "-- becomes", the SQL that it runs. Both are
-- compared as PostgreSQL prints them when it has parsed them, without what a reader does not need: casts of literals, quotes of
-- JSON's keys, names of results.
CREATE FUNCTION pg_temp.parsed(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'CREATE OR REPLACE FUNCTION pg_temp.pipeline() RETURNS void LANGUAGE sql BEGIN ATOMIC ' || statement || '; END';
  RETURN regexp_replace(regexp_replace(pg_get_function_sqlbody(to_regproc('pg_temp.pipeline')),
    ' AS (doc|"coalesce")|::(text|bson|bson_value|interval|regclass|timestamp with time zone)\M|\s', '', 'g'), '"([$\w]+)":', '\1:', 'g');
END $$;
CREATE PROCEDURE pg_temp.becomes(shown text, pipeline text) LANGUAGE plpgsql AS $$
BEGIN
  IF pg_temp.parsed(shown) IS DISTINCT FROM pg_temp.parsed(pipeline) THEN
    RAISE 'the pipeline becomes %', regexp_replace(pipeline, '\s+', ' ', 'g');
  END IF;
END $$;
