-- The contract of the functions that return rows.
SET timezone = 'UTC';
BEGIN;
SELECT plan(69);

SELECT function_returns('bson_each', ARRAY['bson'], 'setof record');
SELECT function_returns('bson_keys', ARRAY['bson'], 'setof text');
SELECT function_returns('bson_elements', ARRAY['bson_value'], 'setof bson_value');
SELECT function_returns('bson_unwind', ARRAY['bson', 'text', 'boolean', 'text'], 'setof bson');
SELECT function_returns('bson_populate_record', ARRAY['anyelement', 'bson'], 'anyelement');
SELECT function_returns('bson_populate_recordset', ARRAY['anyelement', 'bson_value'], 'setof anyelement');
SELECT function_returns('bson_to_record', ARRAY['bson'], 'record');
SELECT function_returns('bson_to_recordset', ARRAY['bson_value'], 'setof record');
SELECT is((SELECT count(*) FROM pg_proc WHERE proname IN ('bson_each', 'bson_keys', 'bson_elements', 'bson_unwind') AND provolatile = 'i' AND proparallel = 's'), 4::bigint, 'immutable and parallel safe');
SELECT is((SELECT count(*) FROM pg_proc WHERE proname ~ '^bson_(populate|to)_record' AND provolatile = 's' AND proparallel = 's'), 4::bigint, 'stable: input functions are');

-- bson_each and bson_keys
SELECT results_eq($$SELECT key, value FROM bson_each('{b: 1, a: [1], "": null, b: 2}')$$, $$VALUES ('b', '1'::bson_value), ('a', '[1]'), ('', 'null'), ('b', '2')$$, 'fields in order, repeated ones too');
SELECT is_empty($$SELECT * FROM bson_each('{}')$$, 'no fields');
SELECT is_empty($$SELECT * FROM bson_each(NULL)$$, 'NULL has none');
SELECT results_eq($$SELECT * FROM bson_keys('{b: 1, "a.b": 2, "": 3}')$$, ARRAY['b', 'a.b', ''], 'names as they are');
SELECT is_empty($$SELECT bson_keys(NULL)$$, 'NULL has no names');
SELECT is((SELECT count(*) FROM bson_each((SELECT bson_object_agg('f' || i, repeat('x', 1000)) FROM generate_series(1, 5000) i))), 5000::bigint, 'many fields');
CREATE TABLE toasted (d bson);
INSERT INTO toasted SELECT bson_object_agg('f' || i, md5(i::text)) FROM generate_series(1, 3000) i;
SELECT is((SELECT count(*) FROM toasted, bson_each(d) WHERE (value)::text = md5(substr(key, 2))), 3000::bigint, 'of a stored document');

-- bson_elements
SELECT results_eq($$SELECT * FROM bson_elements('[1, [2], null]') WITH ORDINALITY$$, $$VALUES ('1'::bson_value, 1::bigint), ('[2]', 2), ('null', 3)$$, 'elements with ordinality');
SELECT is_empty($$SELECT * FROM bson_elements('[]')$$, 'the empty array');
SELECT is_empty($$SELECT * FROM bson_elements('null')$$, 'null');
SELECT is_empty($$SELECT * FROM bson_elements('{"$undefined": true}')$$, 'undefined');
SELECT is_empty($$SELECT * FROM bson_elements(NULL)$$, 'NULL');
SELECT throws_ok($$SELECT * FROM bson_elements('"a"')$$, '22023', NULL, 'a string');
SELECT throws_ok($$SELECT * FROM bson_elements('{a: 1}')$$, '22023', NULL, 'a document');
SELECT results_eq($$SELECT x.e::int FROM (SELECT bson_elements((SELECT bson_agg(i) FROM generate_series(1, 100000) i)) AS e LIMIT 2) AS x$$, ARRAY[1, 2], 'LIMIT in the select list');

-- bson_unwind
SELECT results_eq($$SELECT bson_unwind('{_id: 1, a: [1, {b: 2}, [3], null], z: 9}', 'a')$$, $$VALUES ('{_id: 1, a: 1, z: 9}'::bson), ('{_id: 1, a: {b: 2}, z: 9}'), ('{_id: 1, a: [3], z: 9}'), ('{_id: 1, a: null, z: 9}')$$, 'elements of any type in place');
SELECT results_eq($$SELECT bson_unwind('{a: [{b: [1, 2]}, {b: [3]}]}', 'a.0.b')$$, $$VALUES ('{a: [{b: 1}, {b: [3]}]}'::bson), ('{a: [{b: 2}, {b: [3]}]}')$$, 'a path with a position');
SELECT results_eq($$SELECT bson_unwind('{"a.b": [1, 2]}', '"a.b"')$$, $$VALUES ('{"a.b": 1}'::bson), ('{"a.b": 2}')$$, 'a quoted name');
SELECT results_eq($$SELECT bson_unwind('{a: ["x", "y"]}', 'a', false, 'n')$$, $$VALUES ('{a: "x", n: NumberLong(0)}'::bson), ('{a: "y", n: NumberLong(1)}')$$, 'positions');
SELECT results_eq($$SELECT bson_typeof(bson_unwind('{a: ["x"]}', 'a', index_field => 'b.n') -> 'b.n')$$, ARRAY['long'], 'are int64, also further down');
SELECT is_empty($$SELECT bson_unwind('{b: 1}', 'a')$$, 'missing');
SELECT is_empty($$SELECT bson_unwind('{a: []}', 'a')$$, 'empty');
SELECT is_empty($$SELECT bson_unwind('{a: null}', 'a')$$, 'null');
SELECT is_empty($$SELECT bson_unwind(NULL, 'a', true)$$, 'NULL document');
SELECT is_empty($$SELECT bson_unwind('{a: [1]}', NULL, true)$$, 'NULL path');
SELECT results_eq($$SELECT bson_unwind('{b: 1}', 'a', true)$$, $$VALUES ('{b: 1}'::bson)$$, 'missing, preserved');
SELECT results_eq($$SELECT bson_unwind('{a: [], b: 1}', 'a', true)$$, $$VALUES ('{b: 1}'::bson)$$, 'empty, preserved without the field');
SELECT results_eq($$SELECT bson_unwind('{a: null, b: 1}', 'a', true)$$, $$VALUES ('{a: null, b: 1}'::bson)$$, 'null, preserved');
SELECT results_eq($$SELECT bson_unwind('{a: 5}', 'a', index_field => 'n')$$, $$VALUES ('{a: 5, n: null}'::bson)$$, 'no array: one row without a position');
SELECT throws_ok($$SELECT bson_unwind('{a: [1]}', 'a..b')$$, '22023', NULL, 'a malformed path');
SELECT throws_ok($$SELECT bson_unwind('{a: [1]}', 'a', false, 'b..')$$, '22023', NULL, 'a malformed path of the position');
SELECT is((SELECT count(*) FROM bson_unwind(bson_build('k', repeat('x', 1000), 'a', (SELECT bson_agg(bson_build('i', i)) FROM generate_series(1, 20000) i)), 'a') AS u (d) WHERE bson_size(d) < 1100), 20000::bigint, 'many elements');

-- bson_populate_record
CREATE DOMAIN posint AS int NOT NULL CHECK (value > 0);
CREATE TYPE inner_type AS (x int, y text);
CREATE TABLE target (a int, b text, gone int, c numeric(4, 1), d inner_type, e inner_type[], f int[], g varchar(3), h jsonb, i bson_value, j uuid);
ALTER TABLE target DROP COLUMN gone;
CREATE DOMAIN target_domain AS inner_type CHECK ((value).x > 0);
SELECT is(bson_populate_record(NULL::target, '{a: 1, b: "x", c: 1.26, d: {x: 1}, e: [{y: "q"}, null], f: [[1], [2]], g: "abc", h: null, i: null, j: null, k: 5}'),
          ROW(1, 'x', 1.3, ROW(1, NULL)::inner_type, ARRAY[ROW(NULL, 'q'), NULL]::inner_type[], '{{1},{2}}'::int[], 'abc', 'null'::jsonb, 'null'::bson_value, NULL)::target, 'a row');
SELECT is(bson_populate_record(ROW(7, 'old', 2, NULL, NULL, NULL, 'g', NULL, NULL, NULL)::target, '{b: null, c: 3}'), ROW(7, NULL, 3, NULL, NULL, NULL, 'g', NULL, NULL, NULL)::target, 'over a row');
SELECT is(bson_populate_record(ROW(7, 'old', 2, NULL, NULL, NULL, 'g', NULL, NULL, NULL)::target, NULL), ROW(7, 'old', 2, NULL, NULL, NULL, 'g', NULL, NULL, NULL)::target, 'NULL changes nothing');
SELECT is(bson_populate_record(NULL::target, NULL), NULL, 'NULL over NULL');
SELECT is(bson_populate_record(NULL::inner_type, '{x: 1, x: 2}'), ROW(1, NULL)::inner_type, 'the first of equal names');
SELECT is(bson_populate_record(NULL::inner_type, row_to_bson(ROW(5, 'five')::inner_type)), ROW(5, 'five')::inner_type, 'there and back');
SELECT is(bson_populate_record(ROW(1, 'a'::text), '{f1: 2}')::text, '(2,a)', 'over an anonymous row');
SELECT is(bson_populate_record(NULL::target_domain, '{x: 1}')::text, '(1,)', 'a domain over a row');
SELECT throws_ok($$SELECT bson_populate_record(NULL::target_domain, '{x: 0}')$$, '23514', NULL, 'which checks');
SELECT throws_ok($$SELECT bson_populate_record(NULL::target, '{a: 1.5}')$$, '22003', NULL, 'a fraction');
SELECT throws_ok($$SELECT bson_populate_record(NULL::target, '{a: "1"}')$$, '22023', NULL, 'another type');
SELECT throws_ok($$SELECT bson_populate_record(NULL::target, '{c: 1000}')$$, '22003', NULL, 'a numeric that is too large');
SELECT throws_ok($$SELECT bson_populate_record(NULL::target, '{g: "abcd"}')$$, '22001', NULL, 'a string that is too long');
SELECT throws_ok($$SELECT bson_populate_record(NULL::target, '{f: [[1], [2, 3]]}')$$, '22023', NULL, 'a ragged matrix');
SELECT throws_ok($$SELECT bson_populate_record(NULL::target, '{f: [[[[[[[1]]]]]]]}')$$, '54000', NULL, 'seven dimensions');
SELECT throws_ok($$SELECT bson_populate_record(5, '{}')$$, '42804', NULL, 'not a row');
SELECT throws_ok($$SELECT bson_populate_record(NULL::record, '{}')$$, '22023', NULL, 'a row without columns');
CREATE TABLE with_domain (p posint);
SELECT throws_ok($$SELECT bson_populate_record(NULL::with_domain, '{}')$$, '23502', NULL, 'a domain that must not be null');
CREATE FUNCTION failing(d bson) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE c text;
BEGIN PERFORM bson_populate_record(NULL::target, d); RETURN NULL; EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS c = PG_EXCEPTION_CONTEXT; RETURN c; END $f$;
SELECT matches(failing('{e: [{}, {x: "no"}]}'), '^field "x"\nfield "e"\n', 'errors say in which field');

-- bson_to_record and sets
SELECT results_eq($$SELECT * FROM bson_to_record('{a: 1, b: {c: 2}, c: [1, 2]}') AS r (a bigint, b bson, c int[], d text)$$, $$VALUES (1::bigint, '{c: 2}'::bson, '{1,2}'::int[], NULL::text)$$, 'columns of the query');
SELECT is_empty($$SELECT * FROM bson_to_record(NULL) AS r (a int) WHERE a IS NOT NULL$$, 'NULL');
SELECT throws_ok($$SELECT bson_to_record('{}')$$, '0A000', NULL, 'without columns');
SELECT results_eq($$SELECT * FROM bson_to_recordset('[{a: 1}, {b: "x"}]') AS r (a int, b text)$$, $$VALUES (1, NULL), (NULL, 'x'::text)$$, 'a set');
SELECT results_eq($$SELECT x, y FROM bson_populate_recordset(ROW(9, 'd')::inner_type, '[{x: 1}, {}]')$$, $$VALUES (1, 'd'::text), (9, 'd')$$, 'a set over a row');
SELECT is_empty($$SELECT * FROM bson_populate_recordset(NULL::inner_type, NULL)$$, 'no set');
SELECT throws_ok($$SELECT * FROM bson_to_recordset('[1]') AS r (a int)$$, '22023', NULL, 'an array of something else');
SELECT throws_ok($$SELECT * FROM bson_to_recordset('{}') AS r (a int)$$, '22023', NULL, 'not an array');

SELECT * FROM finish();
ROLLBACK;
