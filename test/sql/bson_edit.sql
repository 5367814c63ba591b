-- Changing documents.
SET timezone = 'UTC';
\pset null NULL

-- bson_set puts any SQL value where a path leads. What is missing on the way is made.
SELECT bson_set('{name: "JK", year: 1965}', 'name', 'Joanne Rowling');
SELECT bson_set('{a: 1}', 'a', 2.5::float8), bson_set('{a: 1}', 'b', 2), bson_set('{}', 'a.b.c', true), bson_set('{}', 'at', date '2024-01-02');
SELECT bson_set('{a: 1}', 'a', '[1, {"b": 2}]'::bson_value), bson_set('{a: 1}', 'a', '{b: 2}'::bson), bson_set('{}', 'a', ARRAY['x', 'y']);
SELECT bson_set('{a: 1}', 'a', NULL), bson_set('{a: 1}', 'a', 1.50), bson_set('{a: 1}', '"b.c"', 1);
-- In an array a number is a position. A position beyond the end pads with null.
SELECT bson_set('{a: [1, 2]}', 'a.1', 'two'), bson_set('{a: [1, 2]}', 'a.-2', 'one'), bson_set('{a: [1]}', 'a.3', 4), bson_set('{a: [{b: 1}]}', 'a.0.b', 2),
  bson_set('{a: [1]}', 'a.1.x', 1), bson_set('{}', 'a.0', 1);
-- Without create_missing only what is there is changed.
SELECT bson_set('{a: 1}', 'a', 2, false), bson_set('{a: 1}', 'b', 2, false), bson_set('{a: 1}', 'b', 2, true);
-- NULL documents, paths and flags give NULL.
SELECT bson_set(NULL, 'a', 1), bson_set('{}', NULL, 1), bson_set('{}', 'a', 1, NULL);

-- Where the path cannot be followed.
SELECT bson_set('{a: 5}', 'a.b', 1);
SELECT bson_set('{a: null}', 'a.b.c', 1);
SELECT bson_set('{a: [1]}', 'a.b', 1);
SELECT bson_set('{a: [1]}', 'a.-2', 1);
SELECT bson_set('{a: []}', 'a.9000000', 1);

-- bson_unset and - take fields away. An element of an array becomes null, so that the others keep their places.
SELECT bson_unset('{a: 1, b: {c: 2, d: 3}, e: [1, 2]}', 'a', 'b.c', 'e.0', 'nothing'), bson_unset('{a: 1}', NULL);
SELECT '{a: 1, b: {c: 2, d: 3}}'::bson - 'a', '{a: 1, b: {c: 2, d: 3}}'::bson - 'b.c', '{a: 1, b: {c: 2, d: 3}}'::bson - '{a,b.d}'::text[];
SELECT '{a: 1, a: 2}'::bson - 'a', '{"a.b": 1, a: {b: 2}}'::bson - 'a.b', '{"a.b": 1, a: {b: 2}}'::bson - '"a.b"';

-- || merges: the fields of the left document keep their places, the right one's values win, the others follow.
SELECT '{a: 1, b: 2, c: 3}'::bson || '{d: 4, b: "two"}', '{}'::bson || '{}', '{a: {x: 1}}'::bson || '{a: {y: 2}}';
SELECT '{a: 1, b: 2, a: 3}'::bson || '{a: 9}', '{b: 2}'::bson || '{a: 1, a: 2, b: 3, b: 4}';

-- The same for values. Arrays are put together, and a value that is no array is one element.
SELECT '[1, 2]'::bson_value || '[3]', '[1]'::bson_value || '{a: 1}', '1'::bson_value || '[2]', '1'::bson_value || '2', '{a: 1}'::bson_value || '{b: 2}';
SELECT '[1, 2, 3]'::bson_value - 0, '[1, 2, 3]'::bson_value - -1, '[1, 2, 3]'::bson_value - 5, '{a: 1, b: 2}'::bson_value - 'a', '[{a: 1}]'::bson_value - '0.a';
SELECT '{a: 1}'::bson_value - 0;
SELECT '5'::bson_value - 'a';

-- Appending to an array.
SELECT bson_array_append('{a: [1]}', 'a', 2, 'three', NULL, '{four: 4}'::bson), bson_array_append('{}', 'a.b', 1),
  bson_array_append('{a: [1]}', 'a', VARIADIC ARRAY[2, 3]), bson_array_append('{a: [[1]]}', 'a.0', 2);
SELECT bson_array_append('{a: 5}', 'a', 1);

-- Containment: documents field by field, arrays as sets, numbers by value.
SELECT '{a: 1, b: {c: 2, d: 3}}'::bson @> '{b: {d: 3.0}}', '{a: 1}'::bson @> '{a: 1, b: 2}', '{a: 1}'::bson <@ '{a: NumberLong(1), b: 2}', '{}'::bson <@ '{a: 1}';
SELECT '{a: [1, [2, 3], {x: 1, y: 2}]}'::bson @> '{a: [{y: 2}, 1, 1]}', '{a: [[2, 3]]}'::bson @> '{a: [2]}', '{a: [1]}'::bson @> '{a: 1}',
  '[1, 2]'::bson_value @> '2', '2'::bson_value <@ '[1, 2]', '[[2]]'::bson_value @> '2';

-- Limits.
SET docpatterns.max_document_size = '1kB';
SELECT bson_set('{}', 'a', repeat('x', 1015));
SELECT '{a: 1}'::bson || bson_build('b', '{}') || bson_build('c', repeat('x', 900)) || bson_build('d', repeat('x', 200));
RESET docpatterns.max_document_size;
SELECT bson_typeof(bson_set('{}', string_agg('a', '.'), 1) -> string_agg('a', '.')) FROM generate_series(1, 100);
SELECT bson_set('{}', string_agg('a', '.'), 1) FROM generate_series(1, 101);
SELECT bson_set('{}', string_agg('a', '.'), '{}'::bson) FROM generate_series(1, 100);
