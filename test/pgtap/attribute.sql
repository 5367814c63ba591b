-- The attribute pattern: forms and what they refuse, documents both ways, every kind of write, and a seeded random run of
-- writes to the table and its wide view against plain documents.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(201);
CREATE FUNCTION pg_temp.true_everywhere(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;

-- Signatures
SELECT function_returns('attribute_enable', 'text');
SELECT volatility_is('attribute_enable', 'volatile');
SELECT volatility_is('attribute_pack', 'immutable');
SELECT volatility_is('attribute_unpack', 'immutable');
SELECT volatility_is('attribute_keys', 'stable');

-- Forms
SELECT is(attribute_pack('{a: 1, release_US: 2, b: 3, release_UK: "x"}', 'r', pattern => 'release_{where}', value_field => 'when')::text,
          '{"a": 1, "r": [{"where": "US", "when": 2}, {"where": "UK", "when": "x"}], "b": 3}', 'the array comes where the first field stood');
SELECT is(attribute_pack('{x_: 1, _id: 2, x_a_b: 3, "x__": 4}', 'r', pattern => 'x_{k}')::text, '{"x_": 1, "_id": 2, "r": [{"k": "a_b", "value": 3}, {"k": "_", "value": 4}]}', 'a placeholder is at least one character');
SELECT is(attribute_pack('{_id: 1, i_d: 2}', 'r_s', pattern => '{a}_{b}')::text, '{"_id": 1, "r_s": [{"a": "i", "b": "d", "value": 2}]}', '_id is never packed');
SELECT is(attribute_pack('{r_s: []}', 'r_s', pattern => '{a}_{b}')::text, '{"r_s": []}', 'nor is the array');
SELECT is(attribute_pack('{net_price_euros: 1, a_b: 2, ab: 3, _a: 4, a_: 5}', 'r', pattern => '{d}_{q}')::text,
          '{"r": [{"d": "net_price", "q": "euros", "value": 1}, {"d": "a", "q": "b", "value": 2}], "ab": 3, "_a": 4, "a_": 5}', 'the first placeholder takes as much as it can');
SELECT is(attribute_pack('{"a.b-c": 1, "aa.bb-cc!": 2, "..-!": 3, "x.y-z!!": 4}', 'r', pattern => '{p}.{q}-{r}!')::text,
          '{"a.b-c": 1, "r": [{"p": "aa", "q": "bb", "r": "cc", "value": 2}, {"p": "x", "q": "y", "r": "z!", "value": 4}], "..-!": 3}', 'three placeholders and what is around them');
SELECT is(attribute_pack('{"{x}1": 1}', 'r', pattern => '{{x}}{k}')::text, '{"r": [{"k": "1", "value": 1}]}', 'braces that are doubled');
SELECT is(attribute_pack('{attr_: 1, attr_x: 2, "attr_ö": 3}', 'r', prefix => 'attr_')::text, '{"attr_": 1, "r": [{"name": "x", "value": 2}, {"name": "ö", "value": 3}]}', 'a prefix');
SELECT is(attribute_pack('{size: 1, specs: {cpu: 2, ram: 3}, colors: 4, color: 5}', 'r', paths => '{color,specs.cpu,size}', name_field => 'k', value_field => 'v')::text,
          '{"r": [{"k": "size", "v": 1}, {"k": "color", "v": 5}, {"k": "specs.cpu", "v": 2}], "specs": {"ram": 3}, "colors": 4}', 'paths, also into documents');
SELECT is(attribute_pack('{height: 16, w: 2}', 'r', paths => '{height,w}', qualifiers => '{height: "cm"}')::text, '{"r": [{"name": "height", "qualifier": "cm", "value": 16}, {"name": "w", "value": 2}]}', 'a qualifier');
SELECT is(attribute_pack('{a_US: 1, b_UK: 2}', 'r', pattern => '{k}_{c}', rename => '{a: "A", c: {UK: "GB"}}')::text, '{"r": [{"k": "A", "c": "US", "value": 1}, {"k": "b", "c": "GB", "value": 2}]}', 'other names');
SELECT is(attribute_pack('{x_a: 1, m: {r: [{k: "b", value: 0}]}, x_b: 2}', 'm.r', pattern => 'x_{k}')::text, '{"m": {"r": [{"k": "b", "value": 2}, {"k": "a", "value": 1}]}}', 'an array inside a document');
SELECT is(attribute_pack('{x_a: 1}', 'm.r', pattern => 'x_{k}')::text, '{"m": {"r": [{"k": "a", "value": 1}]}}', 'that is not there yet');
SELECT is(attribute_pack('{x_a: 9, r: [{k: "b", value: 0, note: 1}, {k: "a", value: 1, note: 2}, 5], x_c: 3, x_b: 0}', 'r', pattern => 'x_{k}')::text,
          '{"r": [{"k": "b", "value": 0, "note": 1}, {"k": "a", "value": 9, "note": 2}, 5, {"k": "c", "value": 3}]}', 'a written field replaces the member of its key, others follow');
SELECT is(attribute_pack('{x_a: 1, x_a: 2}', 'r', pattern => 'x_{k}')::text, '{"r": [{"k": "a", "value": 1}, {"k": "a", "value": 2}]}', 'nothing is lost of two fields of one name');
SELECT is(attribute_pack('{r: null, x_a: 1}', 'r', pattern => 'x_{k}')::text, '{"r": [{"k": "a", "value": 1}]}', 'null is no array, and nothing');
SELECT is(attribute_pack('{r: 5, a: 1}', 'r', pattern => 'x_{k}')::text, '{"r": 5, "a": 1}', 'a document without such fields is not looked at');
SELECT throws_ok($$SELECT attribute_pack('{r: 5, x_a: 1}', 'r', pattern => 'x_{k}')$$, '23514', NULL, 'something else in the place of the array');
SELECT throws_ok($$SELECT attribute_pack('{x_a: 1, x_a: 2}', 'r', pattern => 'x_{k}', is_unique => true)$$, '23505', NULL, 'a key twice');
SELECT is(attribute_pack(NULL, 'r', pattern => 'x_{k}'), NULL, 'NULL is NULL');
SELECT is(attribute_pack(('{"r": [], "x_a": ' || repeat('[', 96) || repeat(']', 96) || '}')::bson, 'r', pattern => 'x_{k}') IS NULL, false, 'deep enough');
SELECT throws_ok($$SELECT attribute_pack(('{"x_a": ' || repeat('[', 99) || repeat(']', 99) || '}')::bson, 'r', pattern => 'x_{k}')$$, '54000', NULL, 'too deep');

SELECT throws_ok(format('SELECT attribute_pack(''{}'', %s)', args), state, NULL, what) FROM (VALUES
  ($$'r'$$, '22023', 'no form'), ($$'r', pattern => 'x_{k}', prefix => 'x_'$$, '22023', 'two forms'), ($$NULL, prefix => 'x'$$, '22004', 'no array'),
  ($$'r', pattern => 'x'$$, '22023', 'no placeholder'), ($$'r', pattern => '{k}'$$, '22023', 'every field'), ($$'r', pattern => 'x_{k'$$, '22023', 'a placeholder that does not end'),
  ($$'r', pattern => 'x_k}'$$, '22023', 'a brace alone'), ($$'r', pattern => 'x_{}'$$, '22023', 'a placeholder without a name'), ($$'r', pattern => 'x_{a}{b}'$$, '22023', 'nothing between two'),
  ($$'r', pattern => '{a}_{a}'$$, '22023', 'two of one name'), ($$'r', pattern => 'x_{value}'$$, '22023', 'one of the name of the value'),
  ($$'r', pattern => 'x_{k}', name_field => 'n'$$, '22023', 'a pattern and a name field'), ($$'r', prefix => ''$$, '22023', 'an empty prefix'), ($$'r', paths => '{}'$$, '22023', 'no paths'),
  ($$'r', paths => '{a,a}'$$, '22023', 'one twice'), ($$'r', paths => '{a,a.b}'$$, '22023', 'one inside another'), ($$'r', paths => '{_id}'$$, '22023', '_id'), ($$'r', paths => '{r}'$$, '22023', 'the array'),
  ($$'r', paths => '{r.a}'$$, '22023', 'inside the array'), ($$'a.r', paths => '{a}'$$, '22023', 'around the array'), ($$'_id', prefix => 'a'$$, '22023', 'into _id'), ($$'a..b', prefix => 'a'$$, '22023', 'a bad path'),
  ($$'r', paths => '{a}', qualifiers => '{b: 1}'$$, '22023', 'a qualifier of nothing'), ($$'r', paths => '{a}', qualifier_field => 'q'$$, '22023', 'a qualifier field without qualifiers'),
  ($$'r', paths => '{a}', qualifiers => '{a: 1}', qualifier_field => 'name'$$, '22023', 'two fields of one name'), ($$'r', prefix => 'a', rename => '{a: 1}'$$, '22023', 'a name that is no text'),
  ($$'r', prefix => 'a', rename => '{a: "x", b: "x"}'$$, '22023', 'one name for two'), ($$'r', prefix => 'a', rename => '{q: {a: "x"}}'$$, '22023', 'names of no placeholder'), ($$'r', prefix => 'a', value_field => ''$$, '22023', 'no name for values')) v (args, state, what);

-- And back
SELECT is(attribute_unpack(attribute_pack(d, 'r', pattern => '{k}_{c}', rename => '{a: "A", c: {UK: "GB"}}'), 'r', pattern => '{k}_{c}', rename => '{a: "A", c: {UK: "GB"}}')::text, d::text, 'as it was: ' || d::text)
  FROM (VALUES (bson '{_id: 1, a_US: 1, b_UK: [1, {x: 2}], rest: 5}'), ('{_id: 1}'), ('{}'), ('{"a_b_c": null, "ö_ü": {"$numberLong": "5"}}'), ('{r: []}'), ('{r: 5}')) v (d);
SELECT is(attribute_unpack('{r: [{k: "a", value: 1}, {k: "a", value: 2}, {k: "b", value: 1, note: 1}, 7, {k: 5, value: 1}, {k: "c"}, {k: "", value: 1}, {value: 4, k: "d"}, {k: "e", value: 1}], x_e: 0}', 'r', pattern => 'x_{k}')::text,
          '{"x_a": 1, "x_d": 4, "r": [{"k": "a", "value": 2}, {"k": "b", "value": 1, "note": 1}, 7, {"k": 5, "value": 1}, {"k": "c"}, {"k": "", "value": 1}, {"k": "e", "value": 1}], "x_e": 0}', 'members that cannot become fields stay');
SELECT is(attribute_unpack('{r: [{name: "height", qualifier: "inch", value: 1}, {name: "height", qualifier: "cm", value: 2}, {name: "w", qualifier: "kg", value: 3}, {name: "z", value: 4}]}', 'r', paths => '{height,w}', qualifiers => '{height: "cm"}')::text,
          '{"height": 2, "r": [{"name": "height", "qualifier": "inch", "value": 1}, {"name": "w", "qualifier": "kg", "value": 3}, {"name": "z", "value": 4}]}', 'nor with a qualifier that is another');
SELECT is(attribute_unpack('{r: [{name: "a.b", value: 1}, {name: "c.d", value: 2}], c: 5}', 'r', paths => '{a.b,c.d}')::text, '{"r": [{"name": "c.d", "value": 2}], "c": 5, "a": {"b": 1}}', 'a path that is blocked');
SELECT is(attribute_unpack('{m: {x: 1, r: [{k: "a", value: 1}]}}', 'm.r', pattern => 'x_{k}')::text, '{"m": {"x": 1}, "x_a": 1}', 'from an array inside a document');
SELECT is(attribute_unpack('{r: [{k: "US", value: 1}]}', 'r', pattern => 'x_{k}', rename => '{US: "USA"}')::text, '{"r": [{"k": "US", "value": 1}]}', 'a name that its field would not get again');

-- Declaring
CREATE TABLE t (id int PRIMARY KEY, doc bson, n int DEFAULT 7);
SELECT throws_ok(format('SELECT attribute_enable(%s)', args), state, NULL, what) FROM (VALUES
  ($$'t', 'r'$$, '22023', 'enable: no form'), ($$'t', NULL, prefix => 'x_'$$, '22004', 'enable: no array'), ($$NULL, 'r', prefix => 'x_'$$, '22004', 'enable: no table'),
  ($$'t', 'r', prefix => 'x_', doc_column => 'nope'$$, '42703', 'enable: no such column')) v (args, state, what);
CREATE TABLE t_wide ();
SELECT throws_ok($$SELECT attribute_enable('t', 'r', prefix => 'x_')$$, '42P07', NULL, 'enable: the name of the view is taken');
DROP TABLE t_wide;
SELECT is(attribute_enable('t', 'r', pattern => 'x_{k}', value_field => 'v', is_unique => true, rename => '{US: "USA"}'), 'r', 'enabled');
SELECT throws_ok($$SELECT attribute_enable('t', 's', prefix => 'y_', name => 'r')$$, '42710', NULL, 'a second declaration of the name');
SELECT throws_ok($$SELECT attribute_enable('t', 'r', prefix => 'y_', name => 'other')$$, '22023', NULL, 'an array that another declaration keeps');
SELECT throws_ok($$SELECT attribute_enable('t', 's', prefix => 'y_', view_name => 'other')$$, '22023', NULL, 'a second view');
SELECT is(options, '{"into_field": "r", "pattern": "x_{k}", "value_field": "v", "rename": {"US": "USA"}, "is_unique": true, "doc_column": "doc"}'::bson, 'as it is listed') FROM pattern_list('t');
SELECT is(pg_get_indexdef('t_r_idx'::regclass), 'CREATE INDEX t_r_idx ON public.t USING gin (doc bson_ops (pairs=''r(k,v)'')) WHERE docpatterns._pattern_made(''attribute 1 r''::text)', 'its index');

-- Writes
INSERT INTO t VALUES (1, '{a: 1, x_US: 2, x_UK: 3}'), (2, '{a: 1}'), (3, NULL);
SELECT is((SELECT string_agg(doc::text, ' ' ORDER BY id) FROM t), '{"a": 1, "r": [{"k": "USA", "v": 2}, {"k": "UK", "v": 3}]} {"a": 1}', 'packed');
SELECT is((SELECT string_agg(doc::text, ' ' ORDER BY id) FROM t_wide), '{"a": 1, "x_US": 2, "x_UK": 3} {"a": 1}', 'and wide');
COPY t (id, doc) FROM stdin;
4	{"x_a": 1}
\.
SELECT is((SELECT doc::text FROM t WHERE id = 4), '{"r": [{"k": "a", "v": 1}]}', 'COPY');
UPDATE t SET doc = bson_set(doc, 'x_b', 5) WHERE id IN (2, 4);
SELECT is((SELECT string_agg(doc::text, ' ' ORDER BY id) FROM t WHERE id IN (2, 4)), '{"a": 1, "r": [{"k": "b", "v": 5}]} {"r": [{"k": "a", "v": 1}, {"k": "b", "v": 5}]}', 'UPDATE');
INSERT INTO t VALUES (4, '{x_a: 9}') ON CONFLICT DO NOTHING;
SELECT is((SELECT doc::text FROM t WHERE id = 4), '{"r": [{"k": "a", "v": 1}, {"k": "b", "v": 5}]}', 'ON CONFLICT DO NOTHING');
INSERT INTO t VALUES (4, '{x_a: 9}'), (5, '{x_c: 1}') ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is((SELECT string_agg(doc::text, ' ' ORDER BY id) FROM t WHERE id IN (4, 5)), '{"r": [{"k": "a", "v": 9}]} {"r": [{"k": "c", "v": 1}]}', 'ON CONFLICT DO UPDATE');
MERGE INTO t USING (VALUES (5, bson '{x_c: 2}'), (6, '{x_d: 3}')) v (id, doc) ON t.id = v.id WHEN MATCHED THEN UPDATE SET doc = v.doc WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.doc);
SELECT is((SELECT string_agg(doc::text, ' ' ORDER BY id) FROM t WHERE id IN (5, 6)), '{"r": [{"k": "c", "v": 2}]} {"r": [{"k": "d", "v": 3}]}', 'MERGE');
SELECT throws_ok($$INSERT INTO t VALUES (7, '{r: [{k: "a", v: 1}, {k: "a", v: 2}]}')$$, '23505', NULL, 'a key twice in the array');
SELECT throws_ok($$INSERT INTO t VALUES (7, '{x_US: 1, x_USA: 2}')$$, '23505', NULL, 'and by names that become one');
SELECT lives_ok($$INSERT INTO t VALUES (7, '{r: [{k: "a", v: 1}], x_a: 2}')$$, 'a field beside its member is the same key');
SELECT throws_ok($$UPDATE t SET doc = '{r: "text", x_a: 2}' WHERE id = 7$$, '23514', NULL, 'something else in the array''s place');
SELECT results_eq($$WITH w AS (UPDATE t SET doc = doc RETURNING 1) SELECT count(*) FROM w$$, 'VALUES (7::bigint)', 'what is in order is written as it is');
CREATE TABLE before AS SELECT id, doc FROM t;
UPDATE t_wide SET doc = doc;
SELECT is_empty('SELECT id, doc::bytea FROM t EXCEPT ALL SELECT id, doc::bytea FROM before', 'also through the view');
DROP TABLE before;
SELECT pg_temp.true_everywhere('after writes');

-- The view
INSERT INTO t_wide (id, doc) VALUES (8, '{x_US: 1, b: 2}') RETURNING n, doc \g /dev/null
SELECT is((SELECT doc::text || n FROM t WHERE id = 8), '{"r": [{"k": "USA", "v": 1}], "b": 2}7', 'INSERT into the view');
UPDATE t SET doc = '{q: 1, r: [{k: "a", v: 1}, {k: "z", v: 2, more: 3}, {k: "b", v: 2, more: 4}, {k: "c", v: 3}], y: 0}' WHERE id = 8;
SELECT is((SELECT doc::text FROM t_wide WHERE id = 8), '{"q": 1, "x_a": 1, "x_c": 3, "r": [{"k": "z", "v": 2, "more": 3}, {"k": "b", "v": 2, "more": 4}], "y": 0}', 'members with more stay');
UPDATE t_wide SET doc = bson_set(bson_unset(doc, 'x_a'), 'x_n', 5) WHERE id = 8;
SELECT is((SELECT doc::text FROM t WHERE id = 8), '{"q": 1, "r": [{"k": "z", "v": 2, "more": 3}, {"k": "b", "v": 2, "more": 4}, {"k": "c", "v": 3}, {"k": "n", "v": 5}], "y": 0}', 'and keep their places');
UPDATE t_wide SET doc = bson_set(doc, 'x_b', 0) WHERE id = 8;
SELECT is((SELECT doc -> 'r' FROM t WHERE id = 8)::text, '[{"k": "z", "v": 2, "more": 3}, {"k": "b", "v": 0, "more": 4}, {"k": "c", "v": 3}, {"k": "n", "v": 5}]', 'a field of their key is their value');
UPDATE t_wide SET doc = bson_set(doc, 'r', '[{"k": "y", "v": 9, "more": 1}]'::bson_value) WHERE id = 8;
SELECT is((SELECT doc::text FROM t WHERE id = 8), '{"q": 1, "r": [{"k": "y", "v": 9, "more": 1}, {"k": "c", "v": 3}, {"k": "n", "v": 5}], "y": 0}', 'they can be written too');
UPDATE t_wide SET doc = '{y: 1}' WHERE id = 8;
SELECT is((SELECT doc::text FROM t WHERE id = 8), '{"y": 1}', 'and go with the others');
DELETE FROM t_wide WHERE id = 8;
SELECT is((SELECT count(*) FROM t WHERE id = 8), 0::bigint, 'DELETE from the view');
UPDATE t_wide SET id = 80, doc = bson_set(doc, 'x_k', 1) WHERE id = 7;
SELECT is((SELECT doc::text FROM t WHERE id = 80), '{"r": [{"k": "a", "v": 2}, {"k": "k", "v": 1}]}', 'a key that changes');
SELECT pg_temp.true_everywhere('after writes to the view');

-- The index, found when somebody has made it, missed when it is gone
SELECT ok(EXISTS (SELECT FROM bson_index_conditions('t_r_idx', '{r: {$elemMatch: {k: "USA", v: {$gt: 1}}}}') c WHERE c.lookup = 'pair'), 'one search for key and value');
DROP INDEX t_r_idx;
SELECT results_eq('SELECT what, expected, found FROM pattern_check()', $$VALUES ('index of pairs = ''r(k,v)''', 'present', 'missing')$$, 'the index is missed');
SELECT is(pattern_repair('t', 'r'), 0::bigint, 'and made by pattern_repair');
SELECT pg_temp.true_everywhere('repaired');

-- A full table
ALTER TABLE t DISABLE TRIGGER ALL;
INSERT INTO t SELECT i, bson_build('x_a', i, 'x_b', i, 'c', 1) FROM generate_series(100, 120) i;
ALTER TABLE t ENABLE TRIGGER ALL;
SELECT is((SELECT count(*) FROM pattern_check() WHERE what = 'field "x_a"' AND expected = 'packed into "r"' AND found = 'in the document'), 21::bigint, 'what is not packed is found');
CALL pattern_build('t', 'r', 7);
SELECT pg_temp.true_everywhere('built');
SELECT is((SELECT doc::text FROM t WHERE id = 100), '{"r": [{"k": "a", "v": 100}, {"k": "b", "v": 100}], "c": 1}', 'in order');
ALTER TABLE t DISABLE TRIGGER ALL;
INSERT INTO t VALUES (200, '{x_a: 1, r: [{k: "b", v: 1}, {k: "b", v: 2}]}');
ALTER TABLE t ENABLE TRIGGER ALL;
SELECT is((SELECT string_agg(what, '; ' ORDER BY what) FROM pattern_check()), 'attribute "b" in "r"; field "x_a"', 'a key twice is found');
SELECT throws_ok($$CALL pattern_build('t', 'r', NULL)$$, '23505', NULL, 'and stops building');
SELECT throws_ok($$SELECT pattern_disable('t', 'r')$$, '23001', NULL, 'and disabling');
DELETE FROM t WHERE id = 200;

-- Reports
SELECT results_eq($$SELECT key, qualifier, documents, round(frequency::numeric, 3), types, distinct_values FROM attribute_keys('t') LIMIT 2$$,
  $$VALUES ('a', NULL::text, 23::bigint, 0.821, '{int}'::text[], 23::bigint), ('b', NULL, 22, 0.786, '{int}', 22)$$, 'keys with their frequency, types and values');
SELECT throws_ok($$SELECT attribute_keys('t', 'nope')$$, '42704', NULL, 'of no pattern');
SELECT throws_ok($$SELECT attribute_keys(NULL)$$, '22004', NULL, 'of no table');

-- Other options
SELECT throws_ok(format('SELECT pattern_alter(''t'', ''r'', %L)', o), '22023', NULL, 'alter: ' || o) FROM unnest(ARRAY['{nope: 1}', '{view_name: "x"}', '{is_unique: 1}', '{pattern: "x"}', '{into_field: 5}']) o;
SELECT lives_ok($$SELECT pattern_alter('t', 'r', '{into_field: "list", pattern: "x_{name}", value_field: "value", is_unique: false, rename: null}')$$, 'another form');
SELECT is((SELECT doc::text FROM t WHERE id = 1), '{"a": 1, "list": [{"name": "US", "value": 2}, {"name": "UK", "value": 3}]}', 'documents follow');
SELECT pg_temp.true_everywhere('altered');
UPDATE t SET doc = '{list: [{name: "a", value: 1, more: 1}]}' WHERE id = 1;
SELECT throws_ok($$SELECT pattern_alter('t', 'r', '{value_field: "v"}')$$, '23001', NULL, 'a form that members cannot get');
SELECT lives_ok($$SELECT pattern_alter('t', 'r', '{pattern: null, prefix: "x_", name_field: "name"}')$$, 'one that they have');
SELECT throws_like($$SELECT pattern_disable('t', 'r')$$, '%has members that cannot become fields', 'disable refuses');
SELECT is(pattern_disable('t', 'r', keep_data => true), 0::bigint, 'and leaves them where that is wanted');
SELECT is((SELECT doc::text FROM t WHERE id = 1), '{"list": [{"name": "a", "value": 1, "more": 1}]}', 'as they are');
SELECT is(to_regclass('t_wide'), NULL, 'the view is gone');
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 't'::regclass), 1::bigint, 'and the index');
DROP TABLE t;

-- Back in batches, beside writers
CREATE TABLE t (id int PRIMARY KEY, doc bson);
SELECT attribute_enable('t', 'r', pattern => 'x_{k}') \g /dev/null
INSERT INTO t SELECT i, bson_build('x_a', i, 'b', i, 'x_c', i) FROM generate_series(1, 20) i;
UPDATE t SET doc = bson_array_append(doc, 'r', bson '{k: "m", value: 1, more: 1}') WHERE id = 20;
SELECT throws_ok($$SELECT pattern_alter('t', 'r', '{shape: "round"}')$$, '22023', NULL, 'a shape that there is not');
SELECT lives_ok($$SELECT pattern_alter('t', 'r', '{shape: "wide"}')$$, 'the wide shape');
SELECT is((SELECT count(*) FROM pattern_check('t')), 20::bigint, 'which documents do not have yet');
INSERT INTO t VALUES (21, '{x_a: 1, r: [{k: "z", value: 2}]}');
UPDATE t_wide SET doc = bson_set(doc, 'x_a', 0) WHERE id = 1;
SELECT is((SELECT string_agg(doc::text, ' ' ORDER BY id) FROM t WHERE id IN (1, 21)), '{"x_a": 0, "x_c": 1, "b": 1} {"x_a": 1, "x_z": 2}', 'new writes get it');
CALL pattern_build('t', 'r', 6);
SELECT pg_temp.true_everywhere('on the way back');
SELECT is((SELECT string_agg(doc::text, ' ' ORDER BY id) FROM t WHERE id IN (2, 20)), '{"x_a": 2, "x_c": 2, "b": 2} {"x_a": 20, "x_c": 20, "r": [{"k": "m", "value": 1, "more": 1}], "b": 20}', 'and those that were there');
SELECT lives_ok($$SELECT pattern_alter('t', 'r', '{shape: "packed"}')$$, 'there and back');
CALL pattern_build('t', 'r', NULL);
SELECT is((SELECT doc::text FROM t WHERE id = 20), '{"r": [{"k": "m", "value": 1, "more": 1}, {"k": "a", "value": 20}, {"k": "c", "value": 20}], "b": 20}', 'packed again');
DELETE FROM t WHERE id = 20;
SELECT lives_ok($$SELECT pattern_alter('t', 'r', '{shape: "wide", value_field: "v"}')$$, 'with another form at once');
SELECT is((SELECT doc::text FROM t WHERE id = 19), '{"x_a": 19, "x_c": 19, "b": 19}', 'all documents follow');
SELECT pg_temp.true_everywhere('wide');
SELECT pattern_alter('t', 'r', '{shape: "packed"}'), pattern_alter('t', 'r', '{rename: {a: "c", c: "a"}}') \g /dev/null
SELECT is((SELECT doc::text FROM t WHERE id = 19), '{"r": [{"k": "c", "v": 19}, {"k": "a", "v": 19}], "b": 19}', 'names that are exchanged');
SELECT pattern_alter('t', 'r', '{rename: null, shape: "wide"}') \g /dev/null
SELECT is(pattern_disable('t', 'r'), 0::bigint, 'nothing is left to put back');
DROP TABLE t;

-- Hostile names, a composite key, partitions, somebody who only writes
CREATE SCHEMA "S p";
CREATE TABLE "S p"."T ""t" ("K 1" text, "k'2" int, "d oc" bson, PRIMARY KEY ("K 1", "k'2")) PARTITION BY LIST ("k'2");
CREATE TABLE "S p"."P 1" PARTITION OF "S p"."T ""t" FOR VALUES IN (1);
SELECT is(attribute_enable('"S p"."T ""t"', '"a ''b"', pattern => 'x ''"{k "\}', value_field => 'v."w', name => 'n ''"\', view_name => 'W ''"'), 'n ''"\', 'hostile names');
CREATE TABLE "S p"."P 2" PARTITION OF "S p"."T ""t" FOR VALUES IN (2);
INSERT INTO "S p"."T ""t" VALUES ('a', 1, '{"x ''\"q": 1}'), ('b', 2, '{"x ''\"r": 2}');
SELECT is((SELECT string_agg("d oc"::text, ' ' ORDER BY "K 1") FROM "S p"."T ""t"), '{"a ''b": [{"k \"\\": "q", "v.\"w": 1}]} {"a ''b": [{"k \"\\": "r", "v.\"w": 2}]}', 'packed in partitions');
UPDATE "S p"."W '""" SET "k'2" = 2, "d oc" = bson_set("d oc", '"x ''""q"', 5) WHERE "K 1" = 'a';
SELECT is((SELECT string_agg("d oc"::text, ' ' ORDER BY "K 1") FROM "S p"."P 2"), '{"a ''b": [{"k \"\\": "q", "v.\"w": 5}]} {"a ''b": [{"k \"\\": "r", "v.\"w": 2}]}', 'and moved to another');
SELECT pg_temp.true_everywhere('hostile');
CREATE TABLE "S p"."P 3" ("K 1" text, "k'2" int, "d oc" bson, PRIMARY KEY ("K 1", "k'2"));
INSERT INTO "S p"."P 3" VALUES ('c', 3, '{"x ''\"q": 1}');
ALTER TABLE "S p"."T ""t" ATTACH PARTITION "S p"."P 3" FOR VALUES IN (3);
SELECT is(pattern_repair('"S p"."T ""t"'), 1::bigint, 'a partition that comes with rows is brought in line');
ALTER TABLE "S p"."T ""t" RENAME COLUMN "d oc" TO "e";
ALTER TABLE "S p"."T ""t" RENAME TO "U";
ALTER SCHEMA "S p" RENAME TO sp;
INSERT INTO sp."U" VALUES ('d', 1, '{"x ''\"q": 1}');
SELECT pg_temp.true_everywhere('renamed');
ALTER TABLE sp."U" DETACH PARTITION sp."P 3";
SELECT lives_ok($$INSERT INTO sp."P 3" VALUES ('e', 4, '{"x ''\"q": 1}')$$, 'a detached partition takes writes');
SELECT is(pattern_disable('sp."U"'), 3::bigint, 'disabled');
SELECT is((SELECT string_agg(e::text, ' ' ORDER BY "K 1") FROM sp."U"), '{"x ''\"q": 5} {"x ''\"r": 2} {"x ''\"q": 1}', 'put back');
DROP SCHEMA sp CASCADE;

CREATE ROLE attribute_writer;
CREATE TABLE t (id int PRIMARY KEY, doc bson);
GRANT SELECT, INSERT, UPDATE ON t TO attribute_writer;
SELECT attribute_enable('t', 'r', prefix => 'x_', is_unique => true) \g /dev/null
SET ROLE attribute_writer;
SELECT lives_ok($$INSERT INTO t VALUES (1, '{x_a: 1}'); INSERT INTO t_wide VALUES (2, '{x_a: 1}'); UPDATE t_wide SET doc = '{x_b: 2}' WHERE id = 1$$, 'a writer needs no other rights');
SELECT throws_ok('DELETE FROM t_wide', '42501', NULL, 'and gets no other');
SELECT throws_ok($$SELECT attribute_enable('t', 's', prefix => 'y_')$$, '42501', NULL, 'who is no owner cannot declare');
SELECT throws_ok($$SELECT pattern_disable('t')$$, '42501', NULL, 'nor end it');
SELECT is((SELECT key FROM attribute_keys('t') WHERE documents = 1 ORDER BY 1 LIMIT 1), 'a', 'but may ask');
RESET ROLE;
SELECT is((SELECT string_agg(doc::text, ' ' ORDER BY id) FROM t), '{"r": [{"name": "b", "value": 2}]} {"r": [{"name": "a", "value": 1}]}', 'packed for everybody');
ALTER TABLE t OWNER TO attribute_writer;
SELECT is((SELECT relowner::regrole::text FROM pg_class WHERE oid = 't_wide'::regclass), 'attribute_writer', 'the view follows to a new owner');
ALTER TABLE t OWNER TO CURRENT_USER;
REVOKE ALL ON t, t_wide FROM attribute_writer;
DROP ROLE attribute_writer;

-- A second one, and others beside it
SELECT is(attribute_enable('t', 's', pattern => '{d}_{q}', value_field => 'v'), 's', 'a second one');
SELECT outlier_enable('t', 'b_c', 2, flag => 'has_more', count_field => 'b_n') \g /dev/null
CALL pattern_build('t', 'b_c', NULL);
INSERT INTO t VALUES (3, '{x_a: 1, price_won: 2, b_c: [1, 2, 3], z: 1}');
SELECT is((SELECT bson_unset(doc, 'b_c')::text FROM t WHERE id = 3), '{"r": [{"name": "a", "value": 1}], "s": [{"d": "price", "q": "won", "v": 2}], "z": 1, "has_more": true, "b_n": 3}', 'fields that other patterns keep are left alone');
SELECT is((SELECT bson_array_length(doc, 'b_c') FROM t_whole WHERE id = 3), 3, 'and these know of them');
UPDATE t_wide SET doc = bson_set(bson_set(doc, 'x_a', 2), 'price_won', 3) WHERE id = 3;
SELECT is((SELECT (doc -> 'r')::text || (doc -> 's')::text FROM t WHERE id = 3), '[{"name": "a", "value": 2}][{"d": "price", "q": "won", "v": 3}]', 'one view shows both and takes both');
SELECT is((SELECT bson_array_length(doc, 'b_c') FROM t_whole WHERE id = 3), 3, 'and leaves what lies aside where it is');
SELECT pg_temp.true_everywhere('several patterns');
SELECT is(pattern_disable('t', 's'), 1::bigint, 'the second one ends');
SELECT isnt(to_regclass('t_wide'), NULL, 'the view stays for the first');
SELECT pg_temp.true_everywhere('one of several');
DROP TABLE t CASCADE;
SELECT is(to_regclass('t_wide'), NULL, 'with CASCADE nothing is left');

-- A pattern that would match what others go by
SELECT collection_create('items') \g /dev/null
SELECT attribute_enable('items', 'specs', pattern => '{d}_{q}') \g /dev/null
SELECT schema_versioning_enable('items', field => 'schema_version', current => 2, write => 'accept'),
       schema_versioning_step('items', 1, 2, up_update => '{$rename: {phone: "mobile"}}', down_update => '{$rename: {mobile: "phone"}}') \g /dev/null
SELECT polymorphic_enable('items', by => 'item_type'), polymorphic_variant('items', 'book', schema => '{"required": ["title", "specs"]}') \g /dev/null
SELECT versioning_enable('items', revision_field => 'doc_revision', storage => 'delta') \g /dev/null
INSERT INTO items (doc) VALUES ('{_id: 1, item_type: "book", title: "A", price_eur: 5, size_cm: 30, phone: "1"}');
UPDATE items_wide SET doc = bson_set(doc, 'price_eur', 6);
SELECT is((SELECT doc::text FROM items), '{"_id": 1, "item_type": "book", "title": "A", "specs": [{"d": "price", "q": "eur", "value": 6}, {"d": "size", "q": "cm", "value": 30}], "phone": "1", "doc_revision": 2}',
          'leaves it alone, before and after these are declared');
SELECT is((SELECT doc -> 'specs' -> 0 ->> 'value' FROM items_current), '6', 'other versions are of packed documents');
SELECT is((SELECT string_agg(doc -> 'specs' -> 0 ->> 'value', ',' ORDER BY revision) FROM items_history), '5,6', 'and so is the history');
SELECT throws_ok($$INSERT INTO items (doc) VALUES ('{_id: 2, item_type: "book", title: "B"}')$$, '23514', NULL, 'what is packed is what is validated');
SELECT pg_temp.true_everywhere('four patterns');
DROP TABLE items CASCADE;

-- A random run: writes to the table and to the view, and plain documents beside them
\set seed 0.41
SELECT diag('seed ' || :seed);
SELECT setseed(:seed) \g /dev/null
CREATE FUNCTION pg_temp.sorted(d bson) RETURNS text LANGUAGE sql AS $$ SELECT string_agg(key || '=' || value, ' ' ORDER BY key, value::text) FROM bson_each(d) $$;
CREATE FUNCTION pg_temp.some_fields() RETURNS bson LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(bson_object_agg(k, v), '{}') FROM (SELECT (ARRAY['x_a', 'x_b', 'x_US', 'x_ö', 'x_c_d', 'y', 'z', 'p_q', 'n'])[i] AS k, (random() * 5)::int AS v FROM generate_series(1, 9) i WHERE random() < 0.4 ORDER BY random()) f $$;
CREATE FUNCTION pg_temp.run(label text, form text) RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE
  x int;
  d bson;
  k text;
  wrong text;
  failures text;
BEGIN
  CREATE TABLE t (id int PRIMARY KEY, doc bson NOT NULL);
  CREATE TABLE m (id int PRIMARY KEY, doc bson NOT NULL);
  INSERT INTO t SELECT i, pg_temp.some_fields() FROM generate_series(1, 5) i;
  INSERT INTO m SELECT * FROM t;
  EXECUTE format('SELECT attribute_enable(''t'', %s)', form);
  CALL pattern_build('t', NULL, NULL);
  FOR batch IN 1 .. 30 LOOP
    FOR op IN 1 .. 10 LOOP
      x := 1 + (random() * 9)::int;
      d := pg_temp.some_fields();
      k := (ARRAY['x_a', 'x_b', 'x_US', 'x_c_d', 'y', 'p_q'])[1 + (random() * 5)::int];
      CASE (random() * 7)::int
      WHEN 0 THEN
        INSERT INTO t VALUES (x, d) ON CONFLICT DO NOTHING;
        INSERT INTO m VALUES (x, d) ON CONFLICT DO NOTHING;
      WHEN 1 THEN
        INSERT INTO t VALUES (x, d) ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
        INSERT INTO m VALUES (x, d) ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
      WHEN 2 THEN
        UPDATE t SET doc = bson_set(doc, k, op) WHERE id = x;
        UPDATE m SET doc = bson_set(doc, k, op) WHERE id = x;
      WHEN 3 THEN
        UPDATE t_wide SET doc = bson_unset(doc, k) WHERE id <= x;
        UPDATE m SET doc = bson_unset(doc, k) WHERE id <= x;
      WHEN 4 THEN
        UPDATE t_wide SET doc = bson_set(doc, k, op) WHERE id >= x;
        UPDATE m SET doc = bson_set(doc, k, op) WHERE id >= x;
      WHEN 5 THEN
        DELETE FROM t_wide WHERE id = x;
        DELETE FROM m WHERE id = x;
        INSERT INTO t_wide VALUES (x, d);
        INSERT INTO m VALUES (x, d);
      WHEN 6 THEN
        UPDATE t SET doc = doc || d WHERE id = x;
        UPDATE m SET doc = doc || d WHERE id = x;
      ELSE
        DELETE FROM t WHERE id = x;
        DELETE FROM m WHERE id = x;
      END CASE;
    END LOOP;
    SELECT string_agg(format('batch %s: %s', batch, v), '; ') INTO failures FROM (SELECT v FROM pattern_check('t') v LIMIT 3) v;
    SELECT format('batch %s: key %s is %s, not %s', batch, id, w.doc, m.doc) INTO wrong
      FROM m FULL JOIN t_wide w USING (id) WHERE pg_temp.sorted(w.doc) IS DISTINCT FROM pg_temp.sorted(m.doc) LIMIT 1;
    EXIT WHEN failures IS NOT NULL OR wrong IS NOT NULL;
  END LOOP;
  RETURN NEXT is(failures, NULL, label || ': nothing is violated');
  RETURN NEXT is(wrong, NULL, label || ': wide documents equal plain ones');
  PERFORM pattern_disable('t');
  SELECT format('key %s is %s, not %s', id, t.doc, m.doc) INTO wrong FROM m FULL JOIN t USING (id) WHERE pg_temp.sorted(t.doc) IS DISTINCT FROM pg_temp.sorted(m.doc) LIMIT 1;
  RETURN NEXT is(wrong, NULL, label || ': and so do those that were put back');
  DROP TABLE t, m;
END $f$;
SELECT pg_temp.run('pattern', $$'r', pattern => 'x_{k}', rename => '{US: "USA"}', is_unique => true$$);
SELECT pg_temp.run('two placeholders', $$'m.r', pattern => '{k}_{l}'$$);
SELECT pg_temp.run('paths', $$'r', paths => '{x_a,y,p_q,x_c_d}', qualifiers => '{y: {unit: "cm"}}', name_field => 'p_r'$$);
SELECT pg_temp.run('prefix', $$'z_', prefix => 'x', value_field => 'x'$$);
-- Documents that would be too large in the wide shape are named, and nothing is changed
CREATE TABLE t (id int, part text, doc bson NOT NULL, PRIMARY KEY (part, id));
SELECT attribute_enable('t', 'r', pattern => 'x_{k}', rename => bson_build(repeat('long', 100), 'L')) \g /dev/null
INSERT INTO t SELECT i, 'p', bson_build('x_' || repeat('long', 100), i, 'x_b', repeat('x', i * 100)) FROM generate_series(1, 8) i;
SET docpatterns.max_document_size = '1kB';
CREATE FUNCTION pg_temp.keys_of_refusal(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  d text;
BEGIN
  EXECUTE command;
  RETURN 'no error';
EXCEPTION WHEN program_limit_exceeded THEN
  GET STACKED DIAGNOSTICS d = PG_EXCEPTION_DETAIL;
  RETURN d;
END $$;
SELECT is(pg_temp.keys_of_refusal('SELECT pattern_disable(''t'')'), 'Their keys: ["p", 7], ["p", 8].', 'disable names what would be too large');
SELECT is(pg_temp.keys_of_refusal('SELECT pattern_alter(''t'', ''r'', ''{shape: "wide", into_field: "s"}'')'), 'Their keys: ["p", 7], ["p", 8].', 'so does a change of shape');
SELECT is((SELECT count(*) FROM t WHERE bson_exists(doc, 'r')), 8::bigint, 'and nothing has changed');
SELECT is(pattern_disable('t', keep_data => true), 0::bigint, 'the data can be left where they are');
RESET docpatterns.max_document_size;
DROP TABLE t;
-- Values of one key are not lost where documents are written anew, and what is in the array's way is refused
CREATE TABLE t (id int PRIMARY KEY, doc bson NOT NULL);
SELECT attribute_enable('t', 'a.r', pattern => 'x_{k}') \g /dev/null
SELECT throws_ok(format('INSERT INTO t VALUES (1, %L)', doc), '23514', NULL, 'in the way: ' || doc) FROM (VALUES ('{a: 5, x_k: 1}'), ('{a: [], x_k: 1}'), ('{a: null, x_k: 1}'), ('{a: {r: {}}, x_k: 1}')) AS v (doc);
INSERT INTO t VALUES (1, '{a: {r: [{k: "q", value: 1}, {k: "q", value: 2}]}}'), (2, '{a: 5}'), (3, '{x_k: 1}');
SELECT throws_ok(format('SELECT pattern_alter(''t'', ''a.r'', %L)', change), '23505', NULL, 'a key twice, and ' || change)
  FROM (VALUES ('{is_unique: true}'), ('{pattern: "y_{k}"}'), ('{rename: {p: "q"}}'), ('{shape: "wide"}')) AS v (change);
SELECT results_eq('SELECT id, doc FROM t ORDER BY id', $$VALUES (1, '{a: {r: [{k: "q", value: 1}, {k: "q", value: 2}]}}'::bson), (2, '{a: 5}'), (3, '{a: {r: [{k: "k", value: 1}]}}')$$, 'and all is as it was');
DELETE FROM t WHERE id = 1;
SELECT lives_ok($$SELECT pattern_alter('t', 'a.r', '{is_unique: true}')$$, 'once');
DROP TABLE t CASCADE;
-- a document with more attributes than there is room for at first
CREATE TABLE wide (id int PRIMARY KEY, doc bson);
SELECT attribute_enable('wide', 'list', prefix => 'x_') \g /dev/null
INSERT INTO wide SELECT 1, bson_object_agg('x_' || i, i) FROM generate_series(1, 1000) i;
SELECT is((SELECT count(*)::int FROM wide, bson_elements(doc -> 'list')), 1000, 'a thousand attributes');
SELECT is_empty('SELECT * FROM pattern_check(''wide'')', 'all as they have to be');

SELECT * FROM finish();
