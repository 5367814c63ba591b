-- Parameters without a type, as drivers send them: every public call can be prepared with them, and they are text.
BEGIN;
SELECT plan(41);

-- All calls, with every number of arguments. Those that remain have a row as a pattern, or accept lists of several types.
CREATE TEMP TABLE failed (name text, state text, message text);
CREATE TEMP TABLE tried (call text);
DO $$
DECLARE
  f record;
  call text;
BEGIN
  FOR f IN SELECT p.oid, p.proname, p.prokind, p.pronargs, p.pronargdefaults, p.prorettype = 'record'::regtype AND p.proallargtypes IS NULL AS any_columns
           FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e' JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass AND e.extname = 'docpatterns'
           WHERE p.pronamespace = e.extnamespace AND p.prokind IN ('f', 'a') AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype) LOOP
    FOR n IN f.pronargs - f.pronargdefaults .. f.pronargs LOOP
      call := format('%I(%s)', f.proname, (SELECT string_agg('$' || i, ', ') FROM generate_series(1, n) i));
      INSERT INTO tried VALUES (call);
      BEGIN
        EXECUTE 'PREPARE untyped AS SELECT ' || CASE WHEN f.any_columns THEN '* FROM ' || call || ' AS (a int)' ELSE call END;
        DEALLOCATE untyped;
      EXCEPTION WHEN OTHERS THEN
        INSERT INTO failed VALUES (f.proname, SQLSTATE, SQLERRM);
      END;
    END LOOP;
  END LOOP;
END $$;
SELECT cmp_ok((SELECT count(*) FROM tried), '>', 500::bigint, 'so many calls');
SELECT set_eq('SELECT name FROM failed WHERE state = ''42725''', ARRAY['avg', 'sum', 'bucket_agg', 'bucket_page_agg', 'preallocated_find', 'tree_common', 'tree_depth', 'tree_distance', 'tree_is_below', 'tree_lca', 'treepath'],
              'where several functions fit, PostgreSQL asks for a cast');
SELECT set_eq('SELECT name FROM failed WHERE state <> ''42725''', ARRAY['bson_populate_record', 'bson_populate_recordset', 'bucket_locf', 'bucket_unpack'], 'these need a type to return');

-- Values
CREATE FUNCTION pg_temp.run(call text, VARIADIC arguments text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  DEALLOCATE ALL;
  EXECUTE 'PREPARE untyped AS SELECT (' || call || ')::text';
  -- a literal without a type in EXECUTE is a parameter in text form
  EXECUTE format('EXECUTE untyped(%s)', (SELECT string_agg(quote_nullable(a), ', ' ORDER BY n) FROM unnest(arguments) WITH ORDINALITY u (a, n))) INTO result;
  RETURN result;
END $$;
SELECT is(pg_temp.run('bson_build($1, $2)', 'a', '5'), '{"a": "5"}', 'bson_build');
SELECT is(pg_temp.run('bson_build(VARIADIC $1::text[])', '{a,b,c,NULL}'), '{"a": "b", "c": null}', 'an array of them');
SELECT throws_ok($$PREPARE untyped AS SELECT bson_build(VARIADIC $1)$$, '42725', NULL, 'whose type must be said');
SELECT is(pg_temp.run('bson_array($1, $2)', 'x', NULL), '["x", null]', 'bson_array, NULL');
SELECT is(pg_temp.run('to_bson($1)', 'x'), 'x', 'to_bson');
SELECT is(pg_temp.run('bson_set($1, $2, $3)', '{a: 1}', 'b', '{c: 1}'), '{"a": 1, "b": "{c: 1}"}', 'bson_set');
SELECT is(bson_set('{a: 1}', 'b', '{c: 1}'), '{a: 1, b: "{c: 1}"}', 'as a literal');
SELECT is(pg_temp.run('bson_array_append($1, $2, $3, $4)', '{a: []}', 'a', 'x', 'y'), '{"a": ["x", "y"]}', 'bson_array_append');
SELECT is(bson_build('a', 1, 'b', 'x', 'c', NULL, 'd', ROW(1, 'y')), '{a: 1, b: "x", c: null, d: {f1: 1, f2: "y"}}', 'typed and untyped arguments');
CREATE DOMAIN pg_temp.small AS int CHECK (VALUE < 10);
SELECT is(bson_typeof(to_bson(5::pg_temp.small)) || ' ' || bson_typeof(to_bson(ARRAY[1, 2])) || ' ' || bson_typeof(to_bson(ROW(1))) || ' ' || coalesce(bson_typeof(to_bson(NULL)), 'NULL'), 'int array object NULL', 'a domain, an array, a row, NULL');
SELECT is((SELECT bson_agg(v) FROM (VALUES (1::pg_temp.small), (NULL)) t (v)), '[1, null]', 'in an aggregate');

-- The list of arguments is planned as one of "any", without an array.
CREATE FUNCTION pg_temp.planned(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  EXECUTE 'EXPLAIN (VERBOSE, FORMAT json) ' || query INTO result;
  RETURN result;
END $$;
SELECT unalike(pg_temp.planned('SELECT bson_build(''a'', n::text), bson_array_append(''{a: []}'', ''a'', n::text, ''x'') FROM generate_series(1, 2) n'), '%VARIADIC%', 'without an array');
SELECT is((SELECT bson_agg(bson_build('a', n::text, 'b', nullif(n, 2)::text) || bson_array_append('{c: []}', 'c', n::text, 'x')) FROM generate_series(1, 2) n), '[{a: "1", b: "1", c: ["1", "x"]}, {a: "2", b: null, c: ["2", "x"]}]', 'with the same result');
SELECT alike(pg_temp.planned('SELECT bson_build(VARIADIC string_to_array(n::text, '','')) FROM generate_series(1, 2) n'), '%VARIADIC%', 'an array that is computed stays one');

-- Keys: text is read by the input function of the column's type.
CREATE TABLE by_int (id int PRIMARY KEY, doc bson);
CREATE TABLE by_uuid (id uuid PRIMARY KEY, doc bson);
CREATE TABLE by_small (id pg_temp.small PRIMARY KEY, doc bson);
CREATE TABLE by_name (id varchar(3) PRIMARY KEY, doc bson);
CREATE TABLE by_two (a int, b date, doc bson, PRIMARY KEY (a, b));
SELECT collection_create('by_value');
INSERT INTO by_int VALUES (7, '{tags: []}');
INSERT INTO by_uuid VALUES ('11111111-1111-1111-1111-111111111111', '{tags: []}');
INSERT INTO by_small VALUES (7, '{tags: []}');
INSERT INTO by_name VALUES ('abc', '{tags: []}');
INSERT INTO by_two VALUES (7, '2024-01-01', '{tags: []}');
INSERT INTO by_value (doc) VALUES ('{_id: "7", tags: []}');
SELECT outlier_enable(t, 'tags', 10) FROM unnest('{by_int,by_uuid,by_small,by_name,by_two,by_value}'::regclass[]) t;
SELECT is(pg_temp.run('outlier_push($1, $2, $3, $4)', 'by_int', '7', '{a: 1}', '5'), '2', 'a key of type int');
SELECT is((SELECT doc -> 'tags' FROM by_int), '["{a: 1}", "5"]', 'values are strings');
SELECT is(pg_temp.run('outlier_push($1, 7, $2)', 'by_int', 'x'), '1', 'a typed key beside an untyped value');
SELECT is(pg_temp.run('outlier_push_into($1, $2, $3, VARIADIC $4::text[])', 'by_int', 'tags', '7', '{y,z}'), '2', 'outlier_push_into with an array');
SELECT is(pg_temp.run('outlier_contains($1, $2, $3)', 'by_int', '7', 'y') || pg_temp.run('outlier_pull($1, $2, $3)', 'by_int', '7', 'y') || pg_temp.run('outlier_contains($1, $2, $3)', 'by_int', '7', 'y'), 'true1false', 'a key and a value');
SELECT is(pg_temp.run('outlier_count($1, $2)', 'by_uuid', '11111111-1111-1111-1111-111111111111'), '0', 'uuid');
SELECT is(outlier_count('by_uuid', '11111111-1111-1111-1111-111111111111'::text), 0::bigint, 'as text');
SELECT is(pg_temp.run('outlier_count($1, $2)', 'by_small', '7'), '0', 'a domain');
SELECT throws_ok($$SELECT pg_temp.run('outlier_count($1, $2)', 'by_small', '70')$$, '23514', NULL, 'that is checked');
SELECT is(pg_temp.run('outlier_count($1, $2)', 'by_name', 'abc'), '0', 'varchar');
SELECT is(pg_temp.run('outlier_count($1, $2)', 'by_value', '7'), '0', 'a bson_value: a string');
SELECT throws_ok($$SELECT outlier_push('by_value', 7, 'x')$$, 'P0002', NULL, 'not the number');
SELECT is(pg_temp.run('outlier_count($1, ROW($2::text, $3::text))', 'by_two', '7', '2024-01-01'), '0', 'two columns');
SELECT throws_ok($$SELECT pg_temp.run('outlier_count($1, $2)', 'by_int', '7x')$$, '22P02', 'invalid input syntax for type integer: "7x"', 'text that is no key');
SELECT throws_ok($$SELECT outlier_count('by_int', 7.5)$$, '42809', NULL, 'another type is refused');
SELECT throws_ok($$SELECT pg_temp.run('outlier_count($1, $2)', 'by_int', NULL)$$, '22004', NULL, 'so is NULL');

-- Key-value spaces: untyped arguments, also beside typed ones
SELECT kv_create('game');
SELECT is(pg_temp.run('kv_hset($1, $2, $3, $4, $5, $6)', 'game', 'h', 'name', 'Peter', 'age', '42'), '2', 'kv_hset');
SELECT is(pg_temp.run('kv_hset($1, $2, $3, 5)', 'game', 'h', 'level'), '1', 'a typed value');
SELECT is(kv_hgetall('game', 'h'), '{age: "42", level: 5, name: "Peter"}', 'text is a string');
SELECT is(pg_temp.run('kv_zadd($1, $2, $3, $4, $5, $6)', 'game', 'z', '10', 'a', '2.5', 'b'), '2', 'scores are read');
SELECT is(pg_temp.run('kv_zadd($1, $2, 3, $3)', 'game', 'z', 'c') || pg_temp.run('kv_zincrby($1, $2, 1, $3)', 'game', 'z', 'c'), '14', 'a typed score');
SELECT is(pg_temp.run('kv_zcount($1, $2, $3, $4)', 'game', 'z', '(2.5', '+inf'), '2', 'bounds');

-- Amounts
CREATE TABLE counted (id int PRIMARY KEY, doc bson);
INSERT INTO counted VALUES (1, '{n: 0}');
SELECT approximation_enable('counted', 'n', step => 1);
SELECT is(pg_temp.run('approximation_add($1, $2, $3)', 'counted', '1', '5') || pg_temp.run('approximation_read($1, $2)', 'counted', '1'), 'true(5,5,5)', 'approximation_add');
SELECT throws_ok($$SELECT pg_temp.run('approximation_add($1, $2, $3)', 'counted', '1', 'five')$$, '22P02', NULL, 'an amount that is no number');

SELECT * FROM finish();
ROLLBACK;
