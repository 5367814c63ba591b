-- Every public function of the extension, called with texts, documents and numbers that mean harm, one at a time among arguments that
-- mean something: no internal error, nothing runs for ever, and no text is taken for SQL (hostile_calls tries random combinations). The calls are made from the catalog.
\set ECHO none
SET client_min_messages = error;
SET statement_timeout = '300s';
SELECT plan(8);

CREATE TABLE canary (id int PRIMARY KEY, doc bson);
INSERT INTO canary SELECT i, bson_build('_id', i, 'n', i, 'tags', bson_array('a', i), 'at', timestamptz '2024-01-01') FROM generate_series(1, 5) i;
-- A table for each pattern, so that its calls go on after they have found the declaration.
CREATE TABLE stems (stem text PRIMARY KEY, rel text);
CREATE FUNCTION pg_temp.stem(stem text, declare text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE rel text := 'c_' || stem;
BEGIN
  EXECUTE format('CREATE TABLE %s (id int PRIMARY KEY, doc bson)', rel);
  EXECUTE replace(declare, '@', rel);
  EXECUTE format('INSERT INTO %s SELECT id, doc FROM canary', rel);
  INSERT INTO stems VALUES (stem, rel);
END $$;
SELECT pg_temp.stem('outlier', $$SELECT outlier_enable('@', 'tags', 1)$$);
SELECT pg_temp.stem('tree', $$SELECT tree_enable('@', node_id => 'n', parent => 'up', ancestors => 'above')$$);
SELECT pg_temp.stem('computed', $$SELECT computed_enable('@', 'canary', 'n', '{total: {$sum: "$n"}}', mode => 'deferred')$$);
SELECT pg_temp.stem('subset', $$SELECT subset_enable('@', 'first', 'canary', 'n', '{n: 1}', 2, fields => '{n: 1}', count_field => 'c', count_mode => 'deferred')$$);
SELECT pg_temp.stem('reference', $$SELECT reference_enable('@', 'n', 'canary', id_field => 'x', live => '{tags}', refresh => 'deferred')$$);
SELECT pg_temp.stem('approximation', $$SELECT approximation_enable('@', 'hits', slots => 2)$$);
SELECT pg_temp.stem('attribute', $$SELECT attribute_enable('@', into_field => 'all', pattern => 'a_{k}', value_field => 'v')$$);
SELECT pg_temp.stem('polymorphic', $$SELECT polymorphic_enable('@', by => 'kind', unknown => 'accept')$$);
SELECT pg_temp.stem('schema', $$SELECT schema_versioning_enable('@'); SELECT schema_versioning_step('@', 1, 2, up_update => '{$set: {a: 1}}', down_update => '{$unset: {a: 1}}')$$);
SELECT pg_temp.stem('preallocated', $$SELECT preallocated_enable('@', 'seats', preallocated_grid('{2,2}'), store => 'slots')$$);
SELECT collection_create('c_collection'); INSERT INTO c_collection (doc) SELECT doc FROM canary; INSERT INTO stems VALUES ('collection', 'c_collection');
SELECT single_table_create('c_single', indexes => 1); SELECT single_table_entity('c_single', 'tags', pk => 'A#{n}', sk => 'B'); INSERT INTO stems VALUES ('single', 'c_single');
SELECT query_table_create('c_query', source => 'canary', partition => '{n}'); CALL pattern_build('canary', 'c_query'); INSERT INTO stems VALUES ('query', 'c_query');
SELECT bucket_create('c_bucket', columns => 'g int, ts timestamptz, v float8', group_by => '{g}', time_field => 'ts', span => '1 hour'); INSERT INTO c_bucket VALUES (1, '2024-01-01', 1.5); INSERT INTO stems VALUES ('bucket', 'c_bucket');
SELECT kv_create('c_kv'), kv_hset('c_kv', 'h', 'tags', 1), kv_sadd('c_kv', 's', 'tags'), kv_zadd('c_kv', 'tags', 1, 'tags');
CREATE TABLE called (call text, state text, message text);

-- Functions that can be called in a query, with the types of their arguments.
CREATE TEMP TABLE functions AS
  SELECT p.oid, format('%I.%I', n.nspname, p.proname) AS name, p.prokind, p.provariadic,
         ARRAY(SELECT format_type(t, NULL) FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY u (t, i) ORDER BY i) AS types,
         p.proname
  FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
    JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass AND e.extname = 'docpatterns'
    JOIN pg_namespace n ON n.oid = p.pronamespace
  WHERE p.prokind IN ('f', 'p') AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype, 'internal'::regtype, 'fdw_handler'::regtype, 'language_handler'::regtype)
    AND NOT 'internal'::regtype = ANY (p.proargtypes::oid[]) AND NOT 'cstring'::regtype = ANY (p.proargtypes::oid[])
    AND p.proname !~ '^_' AND NOT (p.prorettype = 'record'::regtype AND p.proargmodes IS NULL);

-- A value of each type that means something, and values that mean harm.
CREATE TEMP TABLE plain (type text, value text);
INSERT INTO plain VALUES ('regclass', '''canary''::regclass'), ('text', '''tags''::text'), ('name', '''tags''::name'), ('bson', '''{n: 1}''::bson'), ('bson_value', '''1''::bson_value'),
  ('integer', '1'), ('bigint', '1::bigint'), ('smallint', '1::int2'), ('boolean', 'true'), ('double precision', '1.5::float8'), ('numeric', '1.5'), ('interval', '''1 day''::interval'),
  ('timestamp with time zone', '''2024-01-01''::timestamptz'), ('timestamp without time zone', '''2024-01-01''::timestamp'), ('date', '''2024-01-01''::date'),
  ('text[]', '''{tags}''::text[]'), ('bson[]', 'ARRAY[''{n: 1}''::bson]'), ('bytea', '''\x00''::bytea'), ('"any"', '1'), ('anyelement', '1'), ('anynonarray', '1'),
  ('jsonb', '''{"a": 1}''::jsonb'), ('objectid', '''507f1f77bcf86cd799439011''::objectid'), ('treepath', '''["a", "b"]''::treepath'), ('bigint[]', '''{1}''::bigint[]'),
  ('integer[]', '''{1}''::int[]'), ('objectid[]', '''{507f1f77bcf86cd799439011}''::objectid[]'), ('uuid', '''11111111-1111-1111-1111-111111111111''::uuid'), ('record', 'ROW(1)'),
  ('regprocedure', '''bson_size(bson)''::regprocedure'), ('anyarray', '''{a}''::text[]'), ('real', '1.5::real'), ('json', '''{"a": 1}''::json'), ('double precision[]', '''{1.5}''::float8[]'), ('bucket', '(SELECT bucket_agg(ts, v) FROM c_bucket)'), ('oid', '1::oid'), ('uuid[]', '''{11111111-1111-1111-1111-111111111111}''::uuid[]'), ('character', '''a''::"char"'),
  ('"char"', '''a''::"char"'), ('numeric[]', '''{1.5}''::numeric[]'), ('anycompatiblearray', '''{a}''::text[]'), ('anycompatible', '''a''::text'), ('bson_value[]', 'ARRAY[''1''::bson_value]'), ('interval[]', '''{1 day}''::interval[]'), ('regclass[]', '''{canary}''::regclass[]'), ('regprocedure[]', '''{bson_size(bson)}''::regprocedure[]'), ('point', '''(1,1)''::point'), ('xml', '''<a/>''::xml');
CREATE TEMP TABLE harm (type text, value text);
INSERT INTO harm SELECT t, format('%L::%s', v, t) FROM unnest('{text,name}'::text[]) t, unnest(ARRAY[
  '', ' ', '''', '"', '""', ';', '\', '$$', '--', '/*', 'canary; DROP TABLE canary; --', 'a int); DROP TABLE canary; CREATE TABLE zz (b int', 'a int) INHERITS (canary', 'a int DEFAULT 1', 'int; DROP TABLE canary', 'canary(bson)',  '"; DROP TABLE canary; --', '''; DROP TABLE canary; --', '$1', '%s', '%I%L%n', '{', '}', '{}', '{"', '.', '..', 'a.', '.a', 'a..b', '$', '$where',
  '*', '-1', '999999999999999999999', repeat('a.', 120) || 'a', repeat('x', 3000), E'\t\n', 'é', 'pg_catalog.pg_class', 'null', '(', ')', '[', 'a"b', 'a''b', 'a b', 'SELECT 1']) v;
INSERT INTO harm SELECT 'bson', format('%L::bson', v) FROM unnest(ARRAY['{}', '{"": 1}', '{"''; DROP TABLE canary; --": 1}', '{a: "''); DROP TABLE canary; --"}', '{"$set": 1}', '{"$where": "x"}', '{"a.b": {"$gt": NaN}}', '{_id: null}', '{a: {$meta: 1}}', '{"a": -1}', '{"\"": {"$sum": "$\"; DROP TABLE canary"}}',
  '{a: [[[[[[1]]]]]]}', '{a: MinKey, b: MaxKey}', '{a: {$regex: "("}}']) v;
INSERT INTO harm SELECT 'bson_value', format('%L::bson_value', v) FROM unnest(ARRAY['null', '[]', '{}', '"''; DROP TABLE canary; --"', 'NaN', '[{"$set": {"a": 1}}]', 'MinKey', '"$a"', '/(/']) v;
INSERT INTO harm SELECT 'text[]', format('%L::text[]', v) FROM unnest(ARRAY['{}', '{NULL}', '{""}', '{"''; DROP TABLE canary; --"}', '{a,a}', '{{a,b},{c,d}}', '[5:6]={a,b}']) v;
INSERT INTO harm SELECT t, format('(%s)::%s', v, t) FROM unnest('{integer,bigint,smallint,numeric}'::text[]) t, unnest('{0,-1,32767,-32768}'::text[]) v;
INSERT INTO harm VALUES ('integer', '2147483647'), ('integer', '(-2147483648)'), ('bigint', '9223372036854775807'), ('bigint', '(-9223372036854775808)'), ('double precision', '''NaN''::float8'), ('double precision', '''-Infinity''::float8'), ('double precision', '0::float8'),
  ('numeric', '''NaN''::numeric'), ('interval', '''0''::interval'), ('interval', '''-1 day''::interval'), ('interval', '''178000000 years''::interval'), ('timestamp with time zone', '''infinity''::timestamptz'), ('timestamp with time zone', '''-infinity''::timestamptz'),
  ('timestamp without time zone', '''infinity''::timestamp'), ('date', '''-infinity''::date'), ('regclass', '0::oid::regclass'), ('regclass', '999999999::oid::regclass'), ('regclass', '''pg_class''::regclass'), ('regclass', '''pg_toast.pg_toast_1255''::regclass'),
  ('regclass', '''canary_pkey''::regclass'), ('bytea', '''''::bytea'), ('bytea', '''\x05000000''::bytea'), ('bytea', '''\x0500000000''::bytea'), ('bytea', '''\xffffffffffffffffffff''::bytea'), ('regprocedure', '0::oid::regprocedure'), ('"any"', 'NULL::text'), ('"any"', 'ROW(1, NULL, ''x'')'),
  ('"any"', '''{1,NULL}''::int[]'), ('"any"', '''''::text'), ('"any"', '''NaN''::float8'), ('record', 'ROW()'), ('record', 'ROW(NULL, 1)'), ('bigint[]', '''{}''::bigint[]'), ('bigint[]', '''{{1,2}}''::bigint[]'), ('bigint[]', '''{NULL}''::bigint[]'),
  ('integer[]', '''{}''::int[]'), ('integer[]', '''{NULL}''::int[]'), ('integer[]', '''{{1,2}}''::int[]'), ('bson[]', '''{}''::bson[]'), ('bson[]', 'ARRAY[NULL::bson]'), ('anyelement', 'NULL::text'), ('boolean', 'false');

INSERT INTO harm SELECT t, value FROM harm, unnest('{anycompatible,anycompatiblenonarray}'::text[]) t WHERE type = '"any"';
INSERT INTO plain VALUES ('anycompatiblenonarray', '''a''::text');

-- Makes a call and undoes it, and notes what came of it.
CREATE FUNCTION pg_temp.call(f functions, arguments text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  call text := format(CASE f.prokind WHEN 'p' THEN 'CALL %s(%s)' ELSE 'SELECT * FROM %s(%s) LIMIT 20' END, f.name, array_to_string(arguments, ', '));
  state text := '00000';
  message text;
BEGIN
  BEGIN
    EXECUTE call;
    IF to_regclass('canary') IS NULL OR to_regclass('zz') IS NOT NULL THEN
      RAISE SQLSTATE 'HARM1';
    END IF;
    RAISE SQLSTATE 'UNDO1';
  EXCEPTION
    WHEN SQLSTATE 'UNDO1' THEN NULL;
    WHEN OTHERS THEN state := SQLSTATE; message := SQLERRM;
  END;
  INSERT INTO called VALUES (call, state, message);
END $$;
CREATE FUNCTION pg_temp.variadic(f functions, argument text, i int) RETURNS text LANGUAGE sql AS $$
  SELECT CASE WHEN f.provariadic <> 0 AND i = cardinality(f.types) AND f.types[i] <> '"any"' THEN 'VARIADIC ' ELSE '' END || argument
$$;
CREATE FUNCTION pg_temp.arguments(f functions, place int, value text) RETURNS text[] LANGUAGE sql AS $$
  SELECT array_agg(pg_temp.variadic(f, CASE WHEN i = place THEN value WHEN i = 1 AND t = 'text' AND f.proname ~ '^kv_' THEN '''c_kv''' ELSE coalesce((SELECT format('%L::regclass', s.rel) FROM stems s WHERE t = 'regclass' AND f.proname LIKE s.stem || '\_%'),(SELECT p.value FROM plain p WHERE p.type = t), format('NULL::%s', t)) END, i::int) ORDER BY i)
  FROM unnest(f.types) WITH ORDINALITY u (t, i)
$$;

-- all nulls, then one null among plain values, then one value that means harm
DO $$
DECLARE
  f functions;
  v record;
BEGIN
  FOR f IN SELECT * FROM functions ORDER BY proname, types LOOP
    PERFORM pg_temp.call(f, ARRAY(SELECT pg_temp.variadic(f, format('NULL::%s', CASE t WHEN '"any"' THEN 'text' WHEN 'anycompatible' THEN 'text' WHEN 'anycompatiblenonarray' THEN 'text' WHEN 'anyelement' THEN 'text' WHEN 'anynonarray' THEN 'text' WHEN 'anyarray' THEN 'text[]' WHEN 'record' THEN 'canary' ELSE t END), i::int) FROM unnest(f.types) WITH ORDINALITY u (t, i) ORDER BY i));
    FOR v IN SELECT i::int AS place, h.value FROM unnest(f.types) WITH ORDINALITY u (t, i)
               CROSS JOIN LATERAL (SELECT harm.value FROM harm WHERE harm.type = t UNION ALL SELECT format('NULL::%s', CASE WHEN t ~ '^"?any' THEN 'text' WHEN t = 'record' THEN 'canary' ELSE t END) UNION ALL SELECT plain.value FROM plain WHERE plain.type = t AND i = 1) h LOOP
      PERFORM pg_temp.call(f, pg_temp.arguments(f, v.place, v.value));
    END LOOP;
  END LOOP;
END $$;

SELECT diag(format('%s calls of %s functions: %s', count(*), (SELECT count(*) FROM functions), (SELECT string_agg(state || ' ' || n, ', ' ORDER BY n DESC) FROM (SELECT state, count(*) AS n FROM called GROUP BY 1 ORDER BY 2 DESC LIMIT 12) q))) FROM called;
SELECT cmp_ok((SELECT count(*) FROM functions), '>', 300::bigint, 'the functions were found');
SELECT is_empty('SELECT DISTINCT type FROM functions, unnest(types) type WHERE type NOT IN (SELECT p.type FROM plain p)', 'there is a value for each type of argument');
SELECT is_empty($$SELECT left(call, 200), state, left(message, 100) FROM called WHERE state LIKE 'XX%' AND NOT (state = 'XX001' AND call ~ 'bytea|bucket|recv') LIMIT 20$$, 'no internal error');
SELECT is_empty($$SELECT left(call, 200), left(message, 150) FROM called WHERE state = '42601' AND call !~ 'bucket_(add_column|create)|collection_create|query_table_create|pattern_trial' AND message !~ '^improper relation name|^invalid name syntax' LIMIT 20$$, 'nothing that was sent became a part of a statement that cannot be read (names of types and statements aside, which are read as such)');
SELECT is_empty($$SELECT left(call, 200), left(message, 150) FROM called WHERE state = '57014' LIMIT 20$$, 'nothing ran for ever');
SELECT is_empty($$SELECT left(call, 200) FROM called WHERE state = 'HARM1'$$, 'no call dropped the table or made another');
SELECT is((SELECT count(*) FROM canary), 5::bigint, 'the table is as it was');
SELECT is_empty('SELECT * FROM pattern_check()', 'and nothing was left behind');
SELECT set_config('client_min_messages', 'error', false);
DROP SCHEMA c_kv CASCADE;
DROP TABLE canary, called CASCADE;
SELECT * FROM finish();
