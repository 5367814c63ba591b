-- Tables of random documents, with all types and odd names in all places, and keys of several types: advice raises no error,
-- and neither does a statement that it gives. SEED=7 draws other documents.
\set ECHO none
SET client_min_messages = error;
\set seed 77
\getenv seed SEED
SELECT plan(2);
SELECT diag('seed ' || :seed);
SELECT setseed(:seed / 1000000.0);
CREATE SCHEMA random_shapes;
SET search_path = random_shapes, public;
CREATE FUNCTION r(n int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT floor(random() * n)::int';
CREATE FUNCTION val(level int) RETURNS bson_value LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  k int := r(CASE WHEN level > 2 THEN 16 ELSE 20 END);
BEGIN
  RETURN CASE
    WHEN k < 12 THEN ('{null,5,7.5,"\"s\"",true,"{\"$numberLong\": \"90071992547409930\"}","{\"$minKey\": 1}","{\"$numberDecimal\": \"NaN\"}","{\"$undefined\": true}",
      "{\"$date\": {\"$numberLong\": \"9223372036854775807\"}}","{\"$date\": {\"$numberLong\": \"-9223372036854775808\"}}","{\"$regularExpression\": {\"pattern\": \"a\", \"options\": \"\"}}"}'::bson_value[])[1 + k]
    WHEN k = 12 THEN to_bson(repeat('x', r(300))) WHEN k = 13 THEN to_bson(now() - r(10000) * interval '1 hour')
    WHEN k = 14 THEN to_bson(objectid()) WHEN k = 15 THEN to_bson(gen_random_uuid())
    WHEN k < 18 THEN (SELECT coalesce(bson_agg(val(level + 1)), '[]') FROM generate_series(1, r(CASE WHEN r(20) = 0 THEN 90 ELSE 4 END)))
    ELSE to_bson(obj(level + 1)) END;
END $$;
CREATE FUNCTION obj(level int) RETURNS bson LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  names text[] := '{_id,a,b,parent,type,kind,history,path,ancestors,children,revision,PK,SK,schema_version,version,at,ts,sensor,t0_id,t1_id,tags,tag,name,x y,price_eur,price_usd,price_dkk,price_sek,price_nok,body,seats,"\"q\"","\"a.b\""}';
BEGIN
  RETURN coalesce((SELECT bson_merge_agg(bson_build(trim('"' FROM names[1 + r(33)]), val(level))) FROM generate_series(1, 1 + r(12))), '{}');
END $$;
-- every second table: all documents have the same fields, as those of programs do
CREATE FUNCTION doc(t int, i int) RETURNS bson LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN t % 2 = 0 THEN bson_unset(obj(0), '_id') ELSE bson_build('kind', 'k' || r(3), 'at', now() - i * interval '1 min', 't0_id', r(150), 'parent', 1 + r(150), 'sensor', r(5), 'v', val(0),
    'list', val(0), 'o', val(0), 'schema_version', r(4), 'path', '/a/' || r(20), 'ancestors', val(0), 'PK', 'A#' || r(50), 'revision', r(5), CASE WHEN r(2) = 0 THEN 'tags' ELSE 'tag' END, val(0)) END
$$;
CREATE TABLE problems (what text);
DO $$
DECLARE
  key text;
  a record;
BEGIN
  FOR i IN 0 .. 11 LOOP
    key := (ARRAY['bson_value', 'int', 'uuid', 'varchar(40)', 'date', 'bigint'])[1 + i % 6];
    IF key = 'bson_value' THEN
      PERFORM collection_create('t' || i);
      EXECUTE format('INSERT INTO t%s (doc) SELECT doc(%s, n) FROM generate_series(1, 150) n', i, i);
    ELSE
      EXECUTE format('CREATE TABLE t%s (id %s PRIMARY KEY, doc bson)', i, key);
      EXECUTE format('INSERT INTO t%s SELECT (%s)::%s, doc(%s, n) FROM generate_series(1, 150) n', i, CASE key WHEN 'uuid' THEN 'gen_random_uuid()' WHEN 'date' THEN '(date ''2024-01-01'' + n)' ELSE 'n' END, key, i);
    END IF;
  END LOOP;
  FOR i IN 0 .. 11 LOOP
    FOR a IN SELECT * FROM pattern_advise(('random_shapes.t' || i)::regclass) LOOP
      BEGIN
        EXECUTE a.statement;
        RAISE SQLSTATE 'UNDO1';
      EXCEPTION
        WHEN SQLSTATE 'UNDO1' THEN INSERT INTO problems VALUES (NULL);
        WHEN OTHERS THEN INSERT INTO problems VALUES (format('%s: %s of t%s: %s', SQLERRM, a.pattern, i, a.statement));
      END;
    END LOOP;
  END LOOP;
END $$;
SELECT is((SELECT string_agg(what, E'\n') FROM problems), NULL, 'no error in advice and statements');
SELECT cmp_ok((SELECT count(*) FROM problems), '>', 3::bigint, 'there was advice');
DROP SCHEMA random_shapes CASCADE;
SELECT * FROM finish();
