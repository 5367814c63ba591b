-- Building documents out of SQL values.
SET timezone = 'UTC';
\pset null NULL

-- Names and values in turn. Every SQL type becomes the BSON type that it fits best.
SELECT bson_build('title', 'Harry Potter', 'pages', 607, 'price', 19.99, 'weight', 1.5::float8,
                  'sold', 7000000000, 'in_print', true, 'series', NULL);
SELECT name, bson_typeof(value) FROM (VALUES
  ('boolean', to_bson(true)), ('smallint', to_bson(1::smallint)), ('integer', to_bson(1)), ('bigint', to_bson(1::bigint)),
  ('real', to_bson(1::real)), ('double precision', to_bson(1::float8)), ('numeric', to_bson(1::numeric)),
  ('text', to_bson('a'::text)), ('varchar', to_bson('a'::varchar)), ('char', to_bson('a'::char(3))), ('name', to_bson('a'::name)),
  ('timestamptz', to_bson(timestamptz '2024-01-01')), ('timestamp', to_bson(timestamp '2024-01-01')), ('date', to_bson(date '2024-01-01')),
  ('uuid', to_bson('11111111-2222-3333-4444-555555555555'::uuid)), ('bytea', to_bson('\x01'::bytea)),
  ('objectid', to_bson('507f191e810c19729de860ea'::objectid)), ('bson', to_bson('{}'::bson)), ('bson_value', to_bson('{"$minKey": 1}'::bson_value)),
  ('jsonb', to_bson('[1]'::jsonb)), ('json', to_bson('1'::json)), ('integer[]', to_bson('{1}'::int[])), ('record', to_bson(ROW(1))),
  ('interval', to_bson('1 day'::interval)), ('inet', to_bson('::1'::inet))) AS t (name, value);

-- Times are kept in milliseconds; what is finer is cut off towards the past.
SELECT bson_build('z', timestamptz '2024-01-02 03:04:05.678999+02', 'local', timestamp '1969-12-31 23:59:59.9999', 'day', date '2024-02-29');
SELECT bson_build('never', 'infinity'::timestamptz);
SELECT bson_build('never', '-infinity'::date);

-- A numeric keeps its scale. More than 34 digits do not fit.
SELECT bson_build('price', 100.00, 'tiny', 1e-20::numeric, 'nan', 'NaN'::numeric, 'inf', '-Infinity'::numeric);
SELECT bson_build('n', 12345678901234567890123456789012345::numeric);

-- Enums are strings, domains are what they are made of, char(n) comes without its padding.
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN posint AS int CHECK (value > 0);
SELECT bson_build('mood', 'ok'::mood, 'n', 5::posint, 'c', 'ab'::char(5));

-- Arrays and rows, nested as they are.
CREATE TYPE item AS (sku text, qty int);
SELECT bson_build('a', ARRAY['x', NULL, 'z'], 'matrix', ARRAY[[1, 2], [3, 4]], 'none', '{}'::int[],
                  'item', ROW('a1', 2)::item, 'items', ARRAY[ROW('a1', 2), ROW('b2', NULL)]::item[], 'row', ROW(1, 'x'::text));
SELECT row_to_bson(t) FROM (SELECT 1 AS a, 'b' AS b, NULL::int AS c) AS t;

-- Documents and values go in as they are, jsonb is converted.
SELECT bson_build('doc', '{a: {b: 1}}'::bson, 'value', '{a: 1}'::bson -> 'a', 'missing', '{a: 1}'::bson -> 'x',
                  'json', '{"z": 1, "a": {"$date": "2024-01-01T00:00:00Z"}}'::jsonb);

-- The order and repeated names are the caller's.
SELECT bson_build('b', 1, 'a', 2, 'b', 3);

-- A name is text, or something that is written as one word.
SELECT bson_build(1, 'one', 'two'::name, 2, '"three"'::bson_value, 3, '', 'empty');
SELECT bson_build('a');
SELECT bson_build(NULL, 1);
SELECT bson_build('a', 1, NULL::text, 2);
SELECT bson_build('{1}'::int[], 1);
SELECT bson_build('5'::bson_value, 1);

-- An array of arguments.
SELECT bson_build(VARIADIC ARRAY['a', '1', 'b', NULL]), bson_array(VARIADIC ARRAY[1, 2]), bson_build(), bson_array();
SELECT bson_build(VARIADIC NULL::text[]), bson_array(VARIADIC NULL::int[]);
SELECT bson_array(1, 'two', 3.0::float8, NULL, bson_build('four', 4), ARRAY[5]);

-- An aggregate collects rows into an array, in the order that it is told.
SELECT bson_agg(i ORDER BY i DESC) FROM generate_series(1, 5) AS i;
SELECT bson_build('_id', '507f191e810c19729de860ea'::objectid, 'customers_purchased', array_agg('user' || i ORDER BY i)) FROM generate_series(0, 3) AS i;
SELECT bson_agg(bson_build('id', i) ORDER BY i) FILTER (WHERE i <> 2) FROM generate_series(1, 3) AS i;
SELECT bson_agg(x) FROM (VALUES (1), (NULL), (3)) AS t (x);
SELECT bson_agg(DISTINCT x) FROM (VALUES (2), (1), (2)) AS t (x);
SELECT bson_agg(x) FROM generate_series(1, 0) AS x;
SELECT i, bson_agg(i) OVER (ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), bson_agg(i) OVER (ORDER BY i) FROM generate_series(1, 4) AS i;

-- Names and values of rows make one document; the last value of a name stays, where the name came first.
SELECT bson_object_agg('k' || i % 3, i ORDER BY i) FROM generate_series(1, 7) AS i;
SELECT bson_object_agg(k, v) FROM (VALUES ('a', 'x'), ('b', NULL)) AS t (k, v);
SELECT bson_object_agg(NULL, 1);
SELECT bson_object_agg('a', 1) FROM generate_series(1, 0);

-- Documents are laid over each other.
SELECT bson_merge_agg(doc ORDER BY i) FROM (VALUES
  (1, '{name: "Anakin", side: "light", saber: "blue"}'::bson), (2, NULL), (3, '{side: "the dark side of the Force", name: "Darth"}'), (4, '{mask: true}')) AS t (i, doc);
SELECT bson_merge_agg(NULL::bson);

-- Large arrays and documents are built in linear time; what would pass the limit is refused at once.
SELECT bson_size(bson_build('a', bson_agg(i))) FROM generate_series(1, 100000) AS i;
SELECT bson_size(bson_object_agg('k' || i % 50000, i)) FROM generate_series(1, 100000) AS i;
SET docpatterns.max_document_size = 1024;
SELECT bson_agg(i) FROM generate_series(1, 1000) AS i;
SELECT bson_object_agg(i::text, i) FROM generate_series(1, 1000) AS i;
SELECT bson_build('a', repeat('x', 1024));
SELECT to_bson(repeat('x', 1024));
RESET docpatterns.max_document_size;

-- Neither does anything nest deeper than 100 levels, whatever it is put together from.
SELECT bson_build('a', (repeat('{a:', 98) || '{}' || repeat('}', 98))::bson) IS NOT NULL AS "100 levels";
SELECT bson_build('a', (repeat('{a:', 99) || '{}' || repeat('}', 99))::bson);
SELECT bson_agg((repeat('{a:', 99) || '{}' || repeat('}', 99))::bson);
SELECT bson_build('a', (repeat('[', 100) || repeat(']', 100))::jsonb);

DROP TYPE mood, posint, item;
