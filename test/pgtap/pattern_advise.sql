-- Advice: each kind of data asks for its pattern, with a statement that works; plain documents ask for none.
\set ECHO none
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(60);

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
SELECT is((SELECT statement FROM pattern_advise('books')), 'SELECT public.outlier_enable(''public.books'', field => ''buyers'', threshold => 50, flag => ''has_extras''); CALL public.pattern_build(''public.books'', ''buyers'', batch => NULL);', 'with a threshold above the others');
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

-- Tables as programs leave them
SELECT collection_create('customers'), collection_create('orders'), collection_create('products'), collection_create('ticks'), collection_create('million');
INSERT INTO customers (doc) SELECT bson_build('_id', i, 'name', 'c' || i) FROM generate_series(1, 1000) i;
INSERT INTO orders (doc) SELECT bson_build('_id', i, 'customer_id', i % 1000 + 1, 'total', i / 4.0, 'at', timestamptz '2024-01-01' + i * interval '1 min') FROM generate_series(1, 50000) i;
INSERT INTO products (doc) SELECT bson_build('_id', i, 'name', 'p' || i, 'since', timestamptz '2024-01-01' + i * interval '1 hour', 'reviews',
    (SELECT bson_agg(bson_build('rating', j % 7, 'text', 'good ' || i * j, 'at', timestamptz '2024-02-01' + j * interval '1 hour')) FROM generate_series(1, 5 + (10000 - i) / 100) j)) FROM generate_series(1, 10000) i;
INSERT INTO ticks (doc) SELECT bson_build('sensor', s, 'at', timestamptz '2024-01-01' + m * interval '1 min', 'temp', 20 + (s * m) % 70 / 10.0::float8) FROM generate_series(1, 2000) m, generate_series(1, 50) s;
INSERT INTO million (doc) SELECT bson_build('_id', i, 'name', 'n' || i, 'place', bson_build('x', i % 100, 'y', i % 70)) FROM generate_series(1, 1000000) i;
SELECT is(pg_temp.advice('orders'), 'reference customer_id', 'orders are no measurements');
SELECT alike((SELECT changes FROM pattern_advise('orders')), '%find({customer_id: 5})%stop matching%', 'a bare id becomes a sub-document, and the advice says so');
SELECT is(pg_temp.advice('products'), 'subset reviews', 'reviews are no measurements');
SELECT is(pg_temp.advice('ticks'), 'bucket at', 'sensors that tick together');
SELECT alike((SELECT statement FROM pattern_advise('ticks')), '%columns => ''sensor int, at timestamptz, _id public.objectid, temp float8''%group_by => ''{sensor}''%', 'grouped by sensor, all fields kept, with their types');
SELECT cmp_ok((SELECT saved_bytes FROM pattern_advise('ticks')), '>', pg_table_size('ticks') / 2, 'what it saves');
SELECT is(pg_temp.advice('million'), 'none', 'a million plain documents');
CREATE FUNCTION pg_temp.seconds(statement text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
  began timestamptz := clock_timestamp();
BEGIN
  EXECUTE statement;
  RETURN extract(epoch FROM clock_timestamp() - began);
END $$;
SELECT cmp_ok(pg_temp.seconds('SELECT pattern_advise(''million'')'), '<', 5::numeric, 'in seconds');
SELECT is((SELECT string_agg(pattern || ' ' || rel::text, ', ' ORDER BY weight DESC, rel::text) FROM pattern_advise()), 'subset products, bucket ticks, reference orders', 'the whole database, the most important first');

-- what is declared is not proposed again under another path
SELECT collection_create('tree'), collection_create('items');
INSERT INTO tree (doc) SELECT bson_build('_id', i, 'parent_id', CASE WHEN i > 1 THEN i / 2 END, 'up', bson_array()) FROM generate_series(1, 200) i;
SELECT is(pg_temp.advice('tree'), 'tree parent_id', 'a tree');
SELECT tree_enable('tree', parent => 'parent_id', ancestors => 'ancestors', name => 'hierarchy');
CALL pattern_build('tree', 'hierarchy', NULL);
SELECT is(pg_temp.advice('tree'), 'none', 'declared under another name');
INSERT INTO items (doc) SELECT bson_build('_id', i, 'customer_id', i % 1000 + 1) FROM generate_series(1, 300) i;
SELECT reference_enable('items', field => 'customer_id', source => 'customers', live => '{name}', name => 'who');
CALL pattern_build('items', 'who', NULL);
SELECT is(pg_temp.advice('items'), 'none', 'copies that are declared are not advised below their field');

-- tables with other keys and columns, and in parts
CREATE TABLE plain_keys (id bigint, place text, body bson, PRIMARY KEY (id, place)) PARTITION BY LIST (place);
CREATE TABLE plain_keys_a PARTITION OF plain_keys FOR VALUES IN ('a');
CREATE TABLE plain_keys_b PARTITION OF plain_keys FOR VALUES IN ('b');
INSERT INTO plain_keys SELECT i, CASE i % 2 WHEN 0 THEN 'a' ELSE 'b' END, bson_build('kind', 'k', 'list', (SELECT bson_agg(j) FROM generate_series(1, CASE WHEN i = 7 THEN 3000 ELSE i % 20 END) j)) FROM generate_series(1, 500) i;
SELECT is(pg_temp.advice('plain_keys'), 'outlier list', 'partitions, a key of two columns');
SELECT lives_ok($$DO 'BEGIN EXECUTE (SELECT statement FROM pattern_advise(''plain_keys'')); END'$$, 'and its statement works');
SELECT is_empty('SELECT * FROM pattern_check()', 'and adopts the rows');
SELECT pattern_disable('plain_keys', 'list');
CREATE TABLE "W eird" ("k ey" int PRIMARY KEY, "d oc" bson);
INSERT INTO "W eird" SELECT i, bson_build('a "b', i, 'x.y', 'z', 'li''st', (SELECT bson_agg(j) FROM generate_series(1, CASE WHEN i = 7 THEN 3000 ELSE i % 20 END) j)) FROM generate_series(1, 500) i;
SELECT is(pg_temp.advice('"W eird"'), 'outlier li''st', 'hostile names');
SELECT lives_ok($$DO 'BEGIN EXECUTE (SELECT statement FROM pattern_advise(''"W eird"'')); END'$$, 'in its statement, too');
SELECT pattern_disable('"W eird"', 'li''st');

-- a trial
CREATE TEMP TABLE objects AS SELECT oid, relname FROM pg_class WHERE relpersistence <> 't';
SELECT results_eq($$SELECT what FROM pattern_trial('products', (SELECT statement FROM pattern_advise('products')), 200) WHERE what !~ '^document '$$,
  ARRAY['rows', 'bytes of documents', 'bytes of rows, new tables included', 'new tables', 'ms to read all documents', 'ms to write 100 documents', 'ms of the statement'], 'what a trial shows');
SELECT is((SELECT count(*)::int FROM pattern_trial('products', (SELECT statement FROM pattern_advise('products')), 200) WHERE what LIKE 'document %' AND bson_array_length(after::bson -> 'reviews') <= 10), 3, 'three documents afterwards');
SELECT cmp_ok(before::bigint, '>', 3 * after::bigint, 'documents are smaller') FROM pattern_trial('products', (SELECT statement FROM pattern_advise('products')), 200) WHERE what = 'bytes of documents';
SELECT alike(after, 'public.product_reviews%', 'new tables are named') FROM pattern_trial('products', (SELECT statement FROM pattern_advise('products')), 200) WHERE what = 'new tables';
SELECT is((SELECT after FROM pattern_trial('customers', 'UPDATE customers SET doc = bson_set(doc, ''n'', 1)', 50) WHERE what LIKE 'document%' LIMIT 1) ~ '"n": 1', true, 'any statement on the table, by a name without schema');
SELECT is((SELECT count(*)::int FROM customers WHERE doc ? 'n'), 0, 'the table itself is not changed');
SELECT throws_ok('SELECT pattern_trial(''customers'', ''UPDATE orders SET doc = doc'')', '22023', 'the statement does not name table "customers"');
SELECT throws_ok('SELECT pattern_trial(''customers'', ''SELECT outlier_enable(''''customers'''', field => ''''x'''', threshold => 0)'')', '22023', 'threshold must be at least 1, not 0', 'an error of the statement');
SELECT throws_ok('SELECT pattern_trial(''customers'', ''DO ''''BEGIN PERFORM FROM customers; COMMIT; END'''''')', '2D000', NULL, 'a statement cannot commit');
SELECT throws_ok('SELECT pattern_trial(''customers'', NULL)', '22004', 'rel, statement and sample must not be null');
SELECT is_empty('SELECT relname FROM pg_class WHERE relpersistence <> ''t'' AND NOT EXISTS (SELECT FROM objects o WHERE o.oid = pg_class.oid)', 'nothing is left behind');
SELECT is_empty('SELECT * FROM pattern_list(''products'')', 'and nothing is declared');
CREATE ROLE advice_reader;
GRANT SELECT ON customers TO advice_reader;
SET ROLE advice_reader;
SELECT throws_ok('SELECT pattern_trial(''customers'', ''UPDATE customers SET doc = doc'')', '42501', NULL, 'it needs the right to create a table');
SELECT is((SELECT count(*)::int FROM pattern_advise()), 0, 'tables that may not be read are left out');
RESET ROLE;
-- names of fields come from documents
SELECT is(bson_update(bson_build('tel\x', 1), docpatterns._advise_upgrade(ARRAY['tel\x'], ARRAY['phone\y'],
    ARRAY(SELECT f FROM docpatterns._advise_facts(ARRAY[bson_build('tel\x', 1), bson_build('phone\y', 1)]) f), false)),
  bson_build('phone\y', 1), 'an upgrade quotes the names of fields');
SELECT is(docpatterns._advise_upgrade(ARRAY['"tel""x"'], ARRAY['phone'],
    ARRAY(SELECT f FROM docpatterns._advise_facts(ARRAY[bson_build('tel"x', 1), bson_build('phone', 1)]) f), false),
  '[]', 'and leaves those that a pipeline cannot name');
DROP OWNED BY advice_reader;
DROP ROLE advice_reader;
DROP TABLE customers, orders, products, ticks, million, tree, items, plain_keys, "W eird" CASCADE;
SELECT * FROM finish();
