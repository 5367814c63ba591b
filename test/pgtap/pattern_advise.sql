-- Advice: each kind of data asks for its pattern, with a statement that works; plain documents ask for none.
\set ECHO none
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(27);

SELECT collection_create('books'), collection_create('products'), collection_create('customers'), collection_create('orders'), collection_create('categories'),
       collection_create('media'), collection_create('pages'), collection_create('readings'), collection_create('people'), collection_create('devices'), collection_create('plain'), collection_create('few');
INSERT INTO books (doc) SELECT bson_build('title', 'b' || i, 'buyers', (SELECT bson_agg(j) FROM generate_series(1, CASE WHEN i = 7 THEN 3000 ELSE i % 20 END) j)) FROM generate_series(1, 500) i;
-- the older, the more reviews
INSERT INTO products (doc) SELECT bson_build('_id', objectid(timestamptz '2024-01-01' + i * interval '1 day'), 'name', 'p' || i,
    'reviews', (SELECT bson_agg(bson_build('author', bson_build('name', 'u' || j), 'text', 'good', 'at', timestamptz '2024-02-01' + j * interval '1 hour')) FROM generate_series(1, 210 - i) j),
    'release_US', 1, 'release_DK', 2, 'release_SE', 3, 'release_NO', 3, 'release_FI', 4) FROM generate_series(1, 200) i;
INSERT INTO customers (doc) SELECT bson_build('_id', i, 'name', 'c' || i) FROM generate_series(1, 100) i;
INSERT INTO orders (doc) SELECT bson_build('_id', i, 'customer_id', i % 100 + 1, 'total', i / 4.0, 'html', repeat('text ', 800)) FROM generate_series(1, 300) i;
INSERT INTO categories (doc) SELECT bson_build('_id', 'c' || i, 'parent', CASE WHEN i > 1 THEN 'c' || i / 2 END) FROM generate_series(1, 100) i;
INSERT INTO media (doc) SELECT CASE i % 2 WHEN 0 THEN bson_build('_id', i, 'type', 'video', 'codec', 'x', 'duration', i) ELSE bson_build('_id', i, 'type', 'image', 'width', 1, 'height', 2) END FROM generate_series(1, 100) i;
INSERT INTO pages (doc) SELECT bson_build('_id', i, 'views', 0) FROM generate_series(1, 30) i;
DO $$ BEGIN FOR i IN 1 .. 400 LOOP UPDATE pages SET doc = bson_set(doc, 'views', i + _id::int); END LOOP; END $$;
INSERT INTO readings (doc) SELECT bson_build('sensor', i % 10, 'at', timestamptz '2024-01-01' + i * interval '1 min', 'temp', 20.5::float8 + i % 7) FROM generate_series(1, 12000) i;
INSERT INTO people (doc) SELECT bson_build('_id', i, 'name', 'x' || i, 'phone', CASE WHEN i % 3 = 0 THEN to_bson(i) ELSE to_bson('n' || i) END) FROM generate_series(1, 100) i;
INSERT INTO devices (doc) SELECT bson_build('_id', i, 'values', (SELECT bson_agg(bson_build('at', timestamptz '2024-01-01' + j * interval '1 min', 'temp', j / 2.0::float8)) FROM generate_series(1, 300) j)) FROM generate_series(1, 30) i;
INSERT INTO plain (doc) SELECT bson_build('_id', i, 'name', 'n' || i, 'tags', bson_array('a', 'b'), 'address', bson_build('city', 'x', 'zip', i)) FROM generate_series(1, 300) i;
INSERT INTO few (doc) SELECT bson_build('_id', i, 'list', (SELECT bson_agg(j) FROM generate_series(1, 5000) j)) FROM generate_series(1, 10) i;
SELECT pg_stat_force_next_flush();
ANALYZE;
SELECT pg_stat_clear_snapshot();

CREATE FUNCTION pg_temp.advice(rel regclass) RETURNS text LANGUAGE sql AS $$
  SELECT coalesce(string_agg(concat_ws(' ', pattern, path), ', ' ORDER BY pattern, path), 'none') FROM pattern_advise(rel)
$$;
SELECT is(pg_temp.advice('books'), 'outlier buyers', 'an array that is enormous in one document');
SELECT is((SELECT statement FROM pattern_advise('books')), 'SELECT public.outlier_enable(''public.books'', field => ''buyers'', threshold => 50, flag => ''has_extras'');', 'with a threshold above the others');
SELECT is(pg_temp.advice('products'), 'attribute release_*, subset reviews', 'an array that grows, and a family of fields');
SELECT matches((SELECT why FROM pattern_advise('products') WHERE pattern = 'subset'), 'it grows: the older half of the documents \(by _id\) has 1\d\d\.\d, the younger \d\d\.\d, which is [0-9.]+ a month$', 'growth is measured');
SELECT cmp_ok((SELECT weight FROM pattern_advise('products') WHERE pattern = 'subset'), '>', (SELECT max(weight) FROM pattern_advise('products') WHERE pattern <> 'subset'), 'and weighs most');
SELECT is(pg_temp.advice('orders'), 'reference customer_id, subset_fields html', 'keys of other documents, and a large field');
SELECT is(pg_temp.advice('categories'), 'tree parent', 'keys of the same documents');
SELECT is(pg_temp.advice('media'), 'polymorphic type', 'several kinds');
SELECT is(pg_temp.advice('pages'), 'approximation views', 'a hot counter');
SELECT is(pg_temp.advice('readings'), 'bucket at', 'measurements');
SELECT is(pg_temp.advice('people'), 'schema_versioning phone', 'several shapes');
SELECT is(pg_temp.advice('devices'), 'bucket values', 'measurements in an array');
SELECT is(pg_temp.advice('plain'), 'none', 'plain documents will do');
SELECT is(pg_temp.advice('customers'), 'none', 'these too');
SELECT is(pg_temp.advice('few'), 'none', 'nothing is told of ten documents');

-- the statements do what they say, and what is declared is not advised again
CREATE FUNCTION pg_temp.run(rel text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  a record;
  result text := '';
BEGIN
  FOR a IN SELECT * FROM pattern_advise(rel::regclass) WHERE pattern <> 'subset_fields' ORDER BY pattern LOOP
    BEGIN
      EXECUTE a.statement;
      IF a.pattern <> 'bucket' AND EXISTS (SELECT FROM pattern_advise(rel::regclass) b WHERE b.pattern = a.pattern) THEN
        result := result || a.pattern || ' is advised again; ';
      END IF;
      RAISE SQLSTATE 'UNDO1';
    EXCEPTION
      WHEN SQLSTATE 'UNDO1' THEN NULL;
      WHEN OTHERS THEN result := result || SQLERRM || '; ';
    END;
  END LOOP;
  RETURN result;
END $$;
SELECT is(pg_temp.run(t), '', t || ': the statements work') FROM unnest('{books,products,orders,categories,media,pages,readings,people}'::text[]) t;

SELECT throws_ok('SELECT pattern_advise(NULL)', '22004', 'the table must not be null');
SELECT throws_ok('SELECT pattern_advise(''books'', 0)', '22023', 'sample must be between 1 and 100000');
SELECT throws_ok('SELECT pattern_advise(''pg_class'')', '42703');
CREATE ROLE advice_reader;
SET ROLE advice_reader;
SELECT throws_ok('SELECT pattern_advise(''books'')', '42501');
RESET ROLE;
DROP ROLE advice_reader;
DROP TABLE books, products, customers, orders, categories, media, pages, readings, people, devices, plain, few CASCADE;
SELECT * FROM finish();
