-- Every function of the extension, called with what nobody should call it with.
--
-- The list of functions comes from the catalog, so that a new function is in it by itself. Each is called with NULLs, extreme
-- numbers, wrong tables, odd names and random documents, in a subtransaction that is rolled back. A pattern's functions are
-- called half of the time with a table that has it, or with the name or options of a declaration. A call may fail, but
-- with an error of its own: never with an internal error, a full disk or memory, or the end of the server.
-- The random numbers repeat; to try others: PGOPTIONS='-c hostile.seed=0.5 -c hostile.rounds=50'.
BEGIN;
SET client_min_messages = warning;
SET timezone = 'UTC';
SET statement_timeout = '240s';
SELECT plan(5);
SELECT diag('seed ' || coalesce(current_setting('hostile.seed', true), '0.1') || ', rounds ' || coalesce(current_setting('hostile.rounds', true), '5'));
SELECT setseed(coalesce(current_setting('hostile.seed', true), '0.1')::float8);

-- Tables to call them with ------------------------------------------------------------------------------------------------

CREATE TABLE hostile (_id bson_value PRIMARY KEY, doc bson);
SELECT outlier_enable('hostile', 'a', 2);
INSERT INTO hostile SELECT to_bson(i), bson_build('_id', i, 'a', ARRAY[1, 2, 3, i], 'b', 'x') FROM generate_series(1, 5) i;
CREATE TABLE hostile_keys (id int, name text, doc bson, PRIMARY KEY (id, name));
SELECT outlier_enable('hostile_keys', 'a', 2, extras => 'hostile_kept', mode => 'deferred');
INSERT INTO hostile_keys VALUES (1, 'x', '{a: [1, 2, 3, 4]}');
SELECT collection_create('hostile_collection');
CREATE VIEW hostile_view AS SELECT 1 AS x;
SELECT collection_create('hostile_tree'), collection_create('hostile_rows'), collection_create('hostile_totals'), collection_create('hostile_counts');
SELECT tree_enable('hostile_tree', parent => 'in', ancestors => 'above', children => 'holds', path => 'way', depth => 'level', name => 'tree');
INSERT INTO hostile_tree (doc) VALUES ('{_id: "a"}'), ('{_id: "b", in: "a"}'), ('{_id: 1, in: "b"}');
SELECT computed_enable('hostile_totals', 'hostile_rows', 'in', '{n: {$count: {}}, best: {$max: "$a"}, all: {$push: "$a", cap: 3}}', name => 'totals'),
       computed_enable('hostile_totals', 'hostile_rows', 'in', '{later: {$sum: "$a"}}', mode => 'deferred', name => 'later'),
       subset_enable('hostile_totals', 'shown', 'hostile_rows', 'in', '{a: -1}', 2, name => 'shown'),
       subset_fields_enable('hostile_rows', '{cold}', name => 'cold'),
       reference_enable('hostile_rows', 'ref', 'hostile_totals', live => '{title}', missing => 'allow', name => 'ref'),
       rollup_enable('hostile_rows', 'hostile_days', '{n: {$count: {}}}', time_field => 'at', levels => '{day,month}', group_by => '{in}'),
       approximation_enable('hostile_counts', 'a', step => 10, name => 'a'), approximation_enable('hostile_counts', 'b', slots => 2, name => 'b');
SELECT query_table_create('hostile_query', 'hostile_rows', '{in}', '{a: -1}', fields => '{cold: 1}'), query_table_create('hostile_top', 'hostile_rows', '{in}', '{at: 1}', limit_per_partition => 2);
SELECT single_table_create('hostile_single', 1, 'ttl');
SELECT single_table_entity('hostile_single', 'x', 'X#{a}', '{b}', gsi1_pk => 'G#{g}');
SELECT single_table_put('hostile_single', 'x', '{a: 1, b: 2, g: 3}');
SELECT attribute_enable('hostile_totals', 'attributes', prefix => 'x_', name => 'attributes'), payload_enable('hostile_totals', 'payload', '{first: "regex:(.)"}', name => 'payload');
SELECT collection_create('hostile_kinds'), polymorphic_merge('hostile_merged', 'in', '{hostile_rows}', into_fields => '{hostile}', arrays => '{hostile}');
SELECT polymorphic_enable('hostile_kinds', by => 'a', unknown => 'accept', name => 'hostile'), polymorphic_variant('hostile_kinds', 'first', schema => '{properties: {"a.0": {}, b: {bsonType: "int"}}}', indexes => '{b}');
CREATE TABLE hostile_versions (id int PRIMARY KEY, doc bson);
CREATE FUNCTION hostile_step(bson) RETURNS bson IMMUTABLE RETURN $1;
SELECT schema_versioning_enable('hostile_versions', current => 3, write => 'accept'), schema_versioning_step('hostile_versions', 1, 2, up_update => '{$rename: {a: "b"}}', down_update => '{$rename: {b: "a"}}'),
       schema_versioning_step('hostile_versions', 2, 3, up => 'hostile_step(bson)', down => 'hostile_step(bson)');
INSERT INTO hostile_versions VALUES (1, '{a: 1}'), (2, '{schema_version: 2, b: 2}');
INSERT INTO hostile_totals (doc) VALUES ('{_id: "a", title: "A"}'), ('{_id: 1, title: "B"}');
INSERT INTO hostile_rows (doc) SELECT bson_build('_id', i, 'in', CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END, 'a', i, 'ref', 'a', 'at', now(), 'cold', i) FROM generate_series(1, 5) i;
INSERT INTO hostile_counts (doc) VALUES ('{_id: 1}');
SELECT fanout_enable('hostile_rows', walls => 'hostile_walls', author => 'in', followers => 'hostile_counts', follower => 'who', followee => 'whom', name => 'walls');
INSERT INTO hostile_counts (doc) VALUES ('{_id: 2, who: "x", whom: "a"}');
SELECT collection_create('hostile_slots');
SELECT preallocated_enable('hostile_slots', 'a', preallocated_pool(3), available_field => 'n', name => 'a'), preallocated_enable('hostile_slots', 'b', preallocated_grid('{2,2}'), store => 'document', name => 'b'),
       change_feed_enable('hostile_slots', name => 'feed');
INSERT INTO hostile_slots (doc) VALUES ('{_id: 1}'), ('{_id: "a", a: ["x", 0, 0]}');
SELECT collection_create('hostile_catalog'), collection_create('hostile_left'), collection_create('hostile_right');
SELECT single_collection_enable('hostile_catalog', id_fields => '{a: "id"}', self_related => '{a}', views => false), single_collection_enable('hostile_catalog', key_field => 'key', type_field => 'kind', missing => 'allow', name => 'keys'),
       relationship_enable('hostile_left', 'in', 'hostile_right', 'out', missing => 'allow', name => 'in'), relationship_enable('hostile_left', 'friends', 'hostile_left', 'friends', name => 'friends');
INSERT INTO hostile_catalog (doc) VALUES ('{_id: 1, docType: "a", id: 1, key: "a", kind: "k"}'), ('{_id: 2, docType: "b", relatedTo: [1], key: "a/b", kind: "k"}');
INSERT INTO hostile_left (doc) VALUES ('{_id: 1, in: [1, 2], friends: [1]}'); INSERT INTO hostile_right (doc) VALUES ('{_id: 1}');
SELECT bucket_create('hostile_measured', columns => 'id int, ts timestamptz, a float8', group_by => '{id}', time_field => 'ts');
INSERT INTO hostile_measured VALUES (1, now(), 1), (1, now() - interval '1 h', 2);
CREATE TABLE declared AS SELECT rel::text, pattern, name, options FROM pattern_list();
CREATE TABLE state_before AS SELECT _id, doc FROM hostile_whole;

-- Values to call them with, as SQL ----------------------------------------------------------------------------------------

CREATE TABLE pool (type text, value text);
INSERT INTO pool
  SELECT type, format('%L::%s', v, type) FROM (VALUES
    ('bson', ARRAY[
      '{}', '{"_id": 1, "a": [1, 2, 3], "b": {"c": null}}', '{"": 1, "": 2, "a.b": {"$x": 3}, "$set": {"a": 1}}',
      '{"a": -1, "b": 0}', '{"a": {"$numberDecimal": "9E6144"}, "b": {"$numberLong": "-9223372036854775808"}}',
      '{"a": {"$date": {"$numberLong": "9223372036854775807"}}, "b": {"$minKey": 1}, "c": {"$undefined": true}}',
      '{$set: {a: NaN}}', '{$push: {a: {$each: [1], $slice: -9223372036854775808}}}', '{$and: [{a: 1}, {$or: []}]}',
      '{a: {$elemMatch: {$gt: 1}}}', '{a: {$regex: "((a*)*)*"}}', '{$expr: {$divide: [1, 0]}}',
      '{a: {$slice: [-2147483648, 2147483647]}}', '{$jsonSchema: {multipleOf: 0}}', '{$jsonSchema: {multipleOf: 1}}',
      '{bsonType: "object", properties: {a: {multipleOf: 0.5, maximum: NaN}}}', '{threshold: 0}', '{nosuch: 1}',
      '{v: {$add: ["$a", {$numberLong: "9223372036854775807"}]}}', '{upsert: true, take: -1}']),
    ('bson_value', ARRAY[
      'null', '1', '-0.0', 'NaN', 'Infinity', '{"$numberLong": "-9223372036854775808"}', '{"$numberLong": "9223372036854775807"}',
      '{"$numberDecimal": "-9.999999999999999999999999999999999E6144"}', '{"$numberDecimal": "NaN"}', '{"$numberDecimal": "1E-6176"}',
      '1.7976931348623157e308', '-5e-324', '""', '"a\u0000b"', '"日本"', '[]', '{}', '[[[]], {"a": [1]}]', '[1, "a", null, {"a": 1}]',
      '{"$date": {"$numberLong": "-9223372036854775808"}}', '{"$timestamp": {"t": 4294967295, "i": 4294967295}}', '{"$minKey": 1}',
      '{"$maxKey": 1}', '{"$regularExpression": {"pattern": "(", "options": "x"}}', '{"$code": "f()", "$scope": {"x": 1}}',
      '{"$symbol": "s"}', '{"$dbPointer": {"$ref": "a", "$id": {"$oid": "000000000000000000000000"}}}',
      '{"$binary": {"base64": "AAAA", "subType": "02"}}', '{"$binary": {"base64": "AAAA", "subType": "04"}}',
      '{"$oid": "ffffffffffffffffffffffff"}', 'true', '{"$undefined": true}', '{"$set": {"a.0": 1}}', '[{"$set": {"a": "$$ROOT"}}]']),
    ('objectid', ARRAY['000000000000000000000000', 'ffffffffffffffffffffffff', '507f1f77bcf86cd799439011']),
    ('text', ARRAY['', 'a', 'a.0', 'a.', '"', '.', '$', 'a.$[].b', '0', '-1', '99999999999999999999', 'first', 'last', 'immediate', 'canonical',
      'shell', 'hostile', 'hostile_collection', '"W eird"."T t"', '{"a": 1}', 'check', 'outlier', repeat('x', 5000), repeat('a.', 90) || 'a',
      repeat('a.', 3000) || 'a', '日本', '%s%n', '2020-01-01', '1e400', 'null']),
    ('bigint', '{0, 1, -1, 9223372036854775807, -9223372036854775808, 2147483648}'),
    ('integer', '{0, 1, 2, -1, 2147483647, -2147483648}'),
    ('smallint', '{0, -32768, 32767}'),
    ('boolean', '{t, f}'),
    ('real', '{0, -0, NaN, Infinity, 1e-45, 3.4e38}'),
    ('double precision', '{0, -0, NaN, -Infinity, 5e-324, 1.7e308}'),
    ('numeric', '{0, NaN, -Infinity, 1e-16000, 1e131000, -0.1, 12345678901234567890123456789012345}'),
    ('timestamp with time zone', '{infinity, -infinity, 294276-12-31, 4714-11-24 00:00:00+00 BC, 2020-01-01}'),
    ('timestamp without time zone', '{infinity, -infinity, 294276-12-31, 2020-01-01}'),
    ('date', '{infinity, -infinity, 5874897-12-31, 4713-01-01 BC, 2020-01-01}'),
    ('uuid', '{00000000-0000-0000-0000-000000000000, ffffffff-ffff-ffff-ffff-ffffffffffff}'),
    ('regclass', '{0, 4294967295, hostile, hostile, hostile_keys, hostile_collection, hostile_tree, hostile_rows, hostile_totals, hostile_days, hostile_counts, hostile_walls, hostile_kinds, hostile_merged, hostile_measured, hostile_versions, hostile_view, hostile_a_extras, hostile_kept, hostile_whole, pg_class, hostile_pkey}'),
    ('oid', ARRAY['0', '1', '4294967295']),
    ('regprocedure', ARRAY['0', '4294967295', 'hostile_step(bson)', 'pg_sleep(double precision)', 'hostile_versions_as_v2(bson)']),
    ('regprocedure[]', ARRAY['{}', '{NULL}', '{0}', '{hostile_step(bson)}', '{hostile_step(bson),hostile_step(bson)}', '{pg_sleep(double precision)}']),
    ('regclass[]', ARRAY['{}', '{NULL}', '{0}', '{hostile}', '{hostile_versions_v1,hostile_versions_v2}']),
    ('text[]', ARRAY['{}', '{NULL}', '{a,a.b,a.b.c}', '{a,NULL,""}', '{{a,b},{c,d}}', '[5:6]={a,b}']),
    ('bytea', ARRAY['', '\x00', '\x0500000000', '\x0500000001', '\xffffffff00', '\x7fffffff', '\x000000000000000000000000',
      '\x0c0000001061000100000000', '\x0d000000046100050000000000', '\x10000000026100ffffffff7800000000']),
    ('name', ARRAY['', 'doc', '_id', 'no']),
    ('treepath', ARRAY['[]', '[1]', '["a", "b"]', '[1, 2, "x", null, {"$maxKey": 1}]', '[1e300, {"$numberDecimal": "-1E-6176"}, {"$oid": "ffffffffffffffffffffffff"}, ""]']),
    ('treepath[]', ARRAY['{}', '{NULL,[]}', '{"[1]","[1,2]"}']),
    ('integer[]', ARRAY['{}', '{NULL}', '{2147483647,-1}']),
    ('bigint[]', ARRAY['{}', '{NULL}', '{9223372036854775807,-1}', '{{1,2},{3,4}}']),
    ('uuid[]', ARRAY['{}', '{ffffffff-ffff-ffff-ffff-ffffffffffff}']),
    ('objectid[]', ARRAY['{}', '{NULL}', '{507f1f77bcf86cd799439011}']),
    ('bson_value[]', ARRAY['{}', '{NULL}', '{1,"\"a\"",null}', '{{1},{[2]}}', '{"{\"a\": 1}"}']),
    ('cstring', ARRAY['', '{', '{}', '1', repeat('[', 10000)]),
    ('jsonb', ARRAY['null', '{}', '[]', '1e1000', '{"": {"$oid": 1}}', '"x"', '{"a": [1, 2.5, -0, 12345678901234567890123]}']),
    ('character', ARRAY['', 'a']),
    ('interval', ARRAY['0', '1 us', '15 min', '-1 day', '1 day', '100000000 days', '1 month', '1 month 1 day', '-178000000 years', '178000000 years']),
    ('bson[]', ARRAY['{}', '{NULL}', '{"{}",NULL,"{\"_id\": 1}"}', '{{"{}"},{"{}"}}'])) AS t (type, vs), unnest(vs::text[]) AS v
  UNION ALL
  SELECT 'record', v FROM unnest(ARRAY['ROW()', 'ROW(1)', 'ROW(1, NULL, ''x'')', 'ROW(1, ''x''::text)', 'ROW(''1''::bson_value)', 'ROW(ROW(ROW(1)))',
    '(SELECT h FROM hostile h LIMIT 1)', '(SELECT c FROM pg_class c LIMIT 1)']) v
  UNION ALL
  SELECT 'anyelement', v FROM unnest(ARRAY['NULL::int', '1', 'NULL::hostile', '(SELECT h FROM hostile h LIMIT 1)', '''x''::text', '''{}''::bson',
    'NULL::pg_proc', '''{1,2}''::int[]', 'now()']) v
  UNION ALL
  SELECT 'bucket', v FROM unnest(ARRAY['(SELECT bucket_agg(''2020-01-01'', ''{"a": 1, "b": {"c": null}}''::bson))', '(SELECT bucket_agg(''4714-11-24 BC'', 1, NULL::text, ''NaN''::float8))',
    '(SELECT bucket_page_agg(''{"a": [1, 2]}''::bson))', '(SELECT bucket_page_agg(''x''::text))', '(SELECT bucket_page_agg(ROW(1, ''9999-12-31''::date)))',
    '(SELECT bucket_agg(timestamptz ''2020-01-01'' + i * interval ''7 h'', i) FROM generate_series(1, 300) i)',
    '(SELECT bucket_agg(''294276-12-31'', to_bson(i)) FROM generate_series(1, 3) i)', '(SELECT bucket_agg(now(), h) FROM hostile h)']) v
  UNION ALL
  SELECT 'bson', $$('{"a": ' || repeat('[', 90) || repeat(']', 90) || '}')::bson$$
  UNION ALL
  SELECT 'bson', $$bson_build('a', (SELECT array_agg(i) FROM generate_series(1, 3000) i))$$;
INSERT INTO pool SELECT 'bson', format('bson_build(%s)', string_agg(format('%L, %s', chr(96 + (random() * 4)::int), v.value), ', '))
  FROM generate_series(1, 20) AS n, LATERAL (SELECT value FROM pool WHERE type IN ('bson', 'bson_value') ORDER BY random() + n LIMIT 3) AS v GROUP BY n;
INSERT INTO pool SELECT DISTINCT type, 'NULL::' || type FROM pool WHERE type NOT IN ('record', 'anyelement');
INSERT INTO pool VALUES ('record', 'NULL'), ('internal', 'NULL'), ('"any"', 'NULL');
INSERT INTO pool SELECT '"any"', value FROM pool WHERE type NOT IN ('cstring', 'anyelement', 'internal', '"any"');
INSERT INTO pool SELECT t, value FROM pool, unnest('{anycompatible,anycompatiblenonarray}'::text[]) t WHERE type = '"any"';

-- The calls ---------------------------------------------------------------------------------------------------------------

CREATE TABLE outcome (function text, call text, state text, message text);

CREATE FUNCTION call_everything(rounds int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  f record;
  declaration record;
  fits boolean;
  call text;
BEGIN
  FOR f IN
    SELECT p.oid::regprocedure::text AS signature, p.proname, p.prokind, p.pronargs, p.proargtypes, p.proargnames, n.nspname,
           p.prorettype IN ('internal'::regtype, 'void'::regtype, 'trigger'::regtype, 'event_trigger'::regtype) AS no_text,
           p.proname = '_pattern_pending_keys' AS wants_columns
    FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid JOIN pg_proc p ON p.oid = d.objid JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'docpatterns'
    ORDER BY p.oid::regprocedure::text COLLATE "C"
  LOOP
    FOR i IN 1 .. greatest(rounds * f.pronargs, 1) LOOP
      SELECT q.* INTO declaration FROM declared q ORDER BY f.proname ~ ('^_?' || q.pattern || '_') DESC, random() LIMIT 1;
      fits := random() < 0.5;
      SELECT format('%I.%I(%s)', f.nspname, f.proname, string_agg(CASE
                 WHEN fits AND a.name IN ('rel', 'tree') THEN format('%L::regclass', declaration.rel)
                 WHEN fits AND a.name = 'name' AND a.type = 'text'::regtype THEN format('%L::text', declaration.name)
                 WHEN fits AND a.name IN ('options', 'declaration') THEN format('%L::bson', declaration.options)
                 ELSE v.value END, ', ' ORDER BY a.n)) INTO call
        FROM unnest(f.proargtypes::oid[], f.proargnames[:f.pronargs]) WITH ORDINALITY AS a (type, name, n)
          CROSS JOIN LATERAL (SELECT p.value FROM pool p WHERE p.type = format_type(a.type, NULL) ORDER BY random() + a.n LIMIT 1) AS v;
      BEGIN
        EXECUTE CASE
          WHEN f.prokind = 'p' THEN 'CALL ' || call
          WHEN f.wants_columns THEN format('SELECT count(t::text) FROM %s AS t (key record)', call)
          ELSE format('SELECT count(x) FROM (SELECT (%s)%s AS x LIMIT 100) AS t', call, CASE WHEN f.no_text THEN ' IS NULL' ELSE '::text' END)
        END;
        RAISE SQLSTATE 'DP000';
      EXCEPTION WHEN OTHERS THEN
        INSERT INTO outcome VALUES (f.signature, left(call, 300), SQLSTATE, left(SQLERRM, 200));
      END;
    END LOOP;
  END LOOP;
END
$$;
SELECT call_everything(coalesce(current_setting('hostile.rounds', true), '5')::int);

SELECT is((SELECT string_agg(format('%s: %s %s', call, state, message), E'\n' ORDER BY call)
           FROM outcome WHERE state ~ '^(XX|53|57|58)'), NULL, 'no call ends with an internal error or a lack of resources');
SELECT is((SELECT string_agg(p.oid::regprocedure::text, ', ')
           FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid JOIN pg_proc p ON p.oid = d.objid
           WHERE d.classid = 'pg_proc'::regclass AND d.deptype = 'e' AND e.extname = 'docpatterns'
             AND p.oid::regprocedure::text NOT IN (SELECT function FROM outcome)), NULL, 'every function was called');
SELECT cmp_ok((SELECT count(DISTINCT function) FILTER (WHERE state = 'DP000') * 100 / count(DISTINCT function) FROM outcome), '>=', 65::bigint,
  'most functions also took some of it');
SELECT is((SELECT string_agg(v::text, E'\n') FROM pattern_check() v), NULL, 'the patterns are in order');
SELECT results_eq('SELECT _id, doc FROM hostile_whole ORDER BY 1', 'SELECT _id, doc FROM state_before ORDER BY 1', 'and the documents are as they were');

SELECT * FROM finish();
ROLLBACK;
