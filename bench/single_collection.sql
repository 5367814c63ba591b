-- A book with its 50 reviews and 20 users: one indexed query on a single collection, beside three queries on three collections and
-- beside one join of the three, as the server sees them; what a client waits for is in single_collection.sh, which uses these
-- tables. The documents are the same, they came in the same random order, and every query finds them by an index.
\echo
\echo 'single collection pattern                base ms    ours ms   ratio    bar'

SELECT greatest(50, :scale * 10) AS books \gset
CREATE TABLE sc_source AS
  SELECT 'book' AS type, i AS id, i AS book, NULL::int AS reader, bson_build('title', 'Book number ' || i, 'author', 'Author ' || i % 97, 'summary', repeat('lorem ipsum ', 20)) AS doc FROM generate_series(1, :books) i
  UNION ALL SELECT 'user', 1000000 + i * 20 + j, i, NULL, bson_build('name', 'Reader ' || j || ' of ' || i, 'email', 'reader' || j || '@example.com', 'city', 'Town ' || (i + j) % 300) FROM generate_series(1, :books) i, generate_series(0, 19) j
  UNION ALL SELECT 'review', 10000000 + i * 50 + j, i, 1000000 + i * 20 + j % 20, bson_build('rating', j % 5 + 1, 'date', timestamptz '2024-01-01' + j * interval '1 day', 'text', repeat('good ', 10 + j % 30)) FROM generate_series(1, :books) i, generate_series(0, 49) j;
CREATE TABLE sc_order AS SELECT s.*, row_number() OVER (ORDER BY type = 'book' DESC, type = 'user' DESC, md5(id::text)) AS n FROM sc_source s;

SELECT collection_create('sc_books'), collection_create('sc_users'), collection_create('sc_reviews'), collection_create('sc_catalog'), collection_create('sc_keyed') \g /dev/null
INSERT INTO sc_books (doc) SELECT bson_build('_id', id) || doc FROM sc_order WHERE type = 'book' ORDER BY n;
INSERT INTO sc_users (doc) SELECT bson_build('_id', id, 'book', book) || doc FROM sc_order WHERE type = 'user' ORDER BY n;
INSERT INTO sc_reviews (doc) SELECT bson_build('_id', id, 'book', book, 'user', reader) || doc FROM sc_order WHERE type = 'review' ORDER BY n;
CREATE INDEX ON sc_users ((doc -> 'book')); CREATE INDEX ON sc_reviews ((doc -> 'book'));
SELECT single_collection_enable('sc_catalog', id_fields => '{book: "_id", user: "_id"}', self_related => '{book}') \g /dev/null
INSERT INTO sc_catalog (doc) SELECT bson_build('_id', id, 'docType', type) || CASE type WHEN 'book' THEN '{}' WHEN 'user' THEN bson_build('relatedTo', bson_array(book)) ELSE bson_build('relatedTo', bson_array(book, reader)) END || doc
  FROM sc_order ORDER BY n;
SELECT single_collection_enable('sc_keyed', key_field => 'sc_id') \g /dev/null
INSERT INTO sc_keyed (doc) SELECT bson_build('_id', id, 'sc_id', CASE type WHEN 'book' THEN id::text ELSE book || '/' || id END) || doc FROM sc_order ORDER BY n;
VACUUM ANALYZE sc_books, sc_users, sc_reviews, sc_catalog, sc_keyed;

-- the next book each time
CREATE SEQUENCE sc_next;
CREATE OR REPLACE FUNCTION book() RETURNS int LANGUAGE sql VOLATILE AS $$ SELECT (nextval('bench.sc_next') * 7919 % (SELECT greatest(50, current_setting('bench.scale')::int * 10)))::int + 1 $$;
CREATE OR REPLACE FUNCTION three_queries() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE b int := book(); n bigint; total bigint := 0;
BEGIN
  EXECUTE format('SELECT count(doc) FROM sc_books WHERE _id = %s', b) INTO n; total := total + n;
  EXECUTE format('SELECT count(doc) FROM sc_reviews WHERE doc -> ''book'' = %s', b) INTO n; total := total + n;
  EXECUTE format('SELECT count(doc) FROM sc_users WHERE doc -> ''book'' = %s', b) INTO n; total := total + n;
  RETURN total;
END $$;
CREATE OR REPLACE FUNCTION one_join() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE b int := book(); n bigint;
BEGIN
  EXECUTE format('SELECT count(b.doc) + count(r.doc) + count(u.doc) FROM sc_books b JOIN sc_reviews r ON r.doc -> ''book'' = b._id JOIN sc_users u ON u._id = r.doc -> ''user'' WHERE b._id = %s', b) INTO n;
  RETURN n;
END $$;
CREATE OR REPLACE FUNCTION one_query() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE b int := book(); n bigint;
BEGIN
  EXECUTE format('SELECT count(doc) FROM sc_catalog WHERE doc @@ ''{"relatedTo": %s}''', b) INTO n;
  RETURN n;
END $$;
CREATE OR REPLACE FUNCTION one_call() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE b int := book(); n bigint;
BEGIN
  EXECUTE format('SELECT count(d) FROM single_collection_get(''sc_catalog'', %s) d', b) INTO n;
  RETURN n;
END $$;
CREATE OR REPLACE FUNCTION one_key() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE b int := book(); n bigint;
BEGIN
  EXECUTE format('SELECT count(d) FROM single_collection_get(''sc_keyed'', %L) d', b) INTO n;
  RETURN n;
END $$;
SELECT CASE WHEN three_queries() = 71 AND one_query() = 71 AND one_call() = 71 AND one_key() = 71 THEN NULL ELSE 'the answers differ' END WHERE NOT (three_queries() = 71 AND one_query() = 71 AND one_call() = 71 AND one_key() = 71);

SELECT compare('related, three queries : get', 'infinity', 'SELECT three_queries() FROM generate_series(1, 20)', 'SELECT one_call() FROM generate_series(1, 20)');
SELECT compare('related, one join : get', 0.8, 'SELECT one_join() FROM generate_series(1, 20)', 'SELECT one_call() FROM generate_series(1, 20)');
SELECT compare('related, three queries : filter', 'infinity', 'SELECT three_queries() FROM generate_series(1, 20)', 'SELECT one_query() FROM generate_series(1, 20)');
SELECT compare('keyed, three queries : get', 'infinity', 'SELECT three_queries() FROM generate_series(1, 20)', 'SELECT one_key() FROM generate_series(1, 20)');
SELECT compare('keyed, one join : get', 0.8, 'SELECT one_join() FROM generate_series(1, 20)', 'SELECT one_key() FROM generate_series(1, 20)');

-- the same where the documents of a book lie together, on both sides: they came with it, or the tables were clustered
TRUNCATE sc_reviews, sc_users, sc_catalog, sc_keyed;
INSERT INTO sc_users (doc) SELECT bson_build('_id', id, 'book', book) || doc FROM sc_order WHERE type = 'user' ORDER BY book, n;
INSERT INTO sc_reviews (doc) SELECT bson_build('_id', id, 'book', book, 'user', reader) || doc FROM sc_order WHERE type = 'review' ORDER BY book, n;
INSERT INTO sc_catalog (doc) SELECT bson_build('_id', id, 'docType', type) || CASE type WHEN 'book' THEN '{}' WHEN 'user' THEN bson_build('relatedTo', bson_array(book)) ELSE bson_build('relatedTo', bson_array(book, reader)) END || doc
  FROM sc_order ORDER BY book, n;
INSERT INTO sc_keyed (doc) SELECT bson_build('_id', id, 'sc_id', CASE type WHEN 'book' THEN id::text ELSE book || '/' || id END) || doc FROM sc_order ORDER BY book, n;
VACUUM ANALYZE sc_users, sc_reviews, sc_catalog, sc_keyed;
SELECT compare('together: related, three queries : get', 'infinity', 'SELECT three_queries() FROM generate_series(1, 20)', 'SELECT one_call() FROM generate_series(1, 20)');
SELECT compare('together: keyed, three queries : get', 'infinity', 'SELECT three_queries() FROM generate_series(1, 20)', 'SELECT one_key() FROM generate_series(1, 20)');
SELECT compare('together: related, one join : get', 0.8, 'SELECT one_join() FROM generate_series(1, 20)', 'SELECT one_call() FROM generate_series(1, 20)');

-- what it costs to keep it
CREATE TABLE sc_more AS SELECT type, bson_build('docType', 'review', 'relatedTo', bson_array(book, reader)) || doc AS related, bson_build('sc_id', book || '/x') || doc AS keyed, bson_build('book', book, 'user', reader) || doc AS linked
  FROM sc_order WHERE type = 'review' ORDER BY md5(n::text) LIMIT 1000;
SELECT compare('insert 1,000 reviews, beside a plain one', 'infinity', 'INSERT INTO sc_reviews (doc) SELECT linked FROM sc_more', 'INSERT INTO sc_catalog (doc) SELECT related FROM sc_more',
  $$DELETE FROM sc_reviews WHERE bson_typeof(doc, '_id') = 'objectId'; DELETE FROM sc_catalog WHERE bson_typeof(doc, '_id') = 'objectId'$$);
SELECT compare('the same with keys', 'infinity', 'INSERT INTO sc_reviews (doc) SELECT linked FROM sc_more', $$INSERT INTO sc_keyed (doc) SELECT bson_set(keyed, 'sc_id', (keyed ->> 'sc_id') || nextval('sc_next')) FROM sc_more$$,
  $$DELETE FROM sc_reviews WHERE bson_typeof(doc, '_id') = 'objectId'; DELETE FROM sc_keyed WHERE bson_typeof(doc, '_id') = 'objectId'$$);
