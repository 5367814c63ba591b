-- What the outlier pattern costs: beside the same table without it, and for long arrays beside short ones.
\echo
\echo 'outlier pattern                          base ms    ours ms   ratio    bar'

SET docpatterns.max_document_size = '64MB';
CREATE TABLE books_source AS
  SELECT bson_build('_id', i, 'title', 'Book number ' || i, 'author', 'Author ' || i % 1000, 'price', 19.99,
                    'buyers', (SELECT array_agg('user' || i * 7 + j) FROM generate_series(1, 8) j), 'blurb', repeat('lorem ipsum ', 10)) AS doc
  FROM generate_series(1, 50000) i;
SELECT collection_create('books_plain'), collection_create('books'), collection_create('books_counted') \g /dev/null
SELECT outlier_enable('books', field => 'buyers', threshold => 1000),
       outlier_enable('books_counted', field => 'buyers', threshold => 1000, count_field => 'buyers_count') \g /dev/null

SELECT compare('load documents below the threshold', 1.15, 'INSERT INTO books_plain (doc) SELECT doc FROM books_source',
               'INSERT INTO books (doc) SELECT doc FROM books_source', 'TRUNCATE books_plain, books');
SELECT compare('the same with count_field', 'infinity', 'INSERT INTO books_plain (doc) SELECT doc FROM books_source',
               'INSERT INTO books_counted (doc) SELECT doc FROM books_source', 'TRUNCATE books_plain, books_counted');

INSERT INTO books_plain (doc) SELECT doc FROM books_source;
INSERT INTO books (doc) SELECT doc FROM books_source;
VACUUM ANALYZE books_plain, books;
SELECT compare('read typical documents, table', 1.05, $$SELECT count(doc ->> 'title') FROM books_plain$$, $$SELECT count(doc ->> 'title') FROM books$$);
SELECT compare('read typical documents, books_whole', 'infinity', $$SELECT count(doc ->> 'title') FROM books_plain$$, $$SELECT count(doc ->> 'title') FROM books_whole$$);
SELECT compare('update another field', 'infinity', $$UPDATE books_plain SET doc = bson_set(doc, 'price', 20) WHERE _id <= 5000$$,
               $$UPDATE books SET doc = bson_set(doc, 'price', 20) WHERE _id <= 5000$$);

INSERT INTO books (doc)
  SELECT bson_build('_id', key, 'title', 'A bestseller', 'buyers', (SELECT array_agg('user' || j) FROM generate_series(1, n) j))
  FROM (VALUES ('short', 2000), ('long', 1000000)) v (key, n);
VACUUM ANALYZE books, books_buyers_extras;

-- Each push is a transaction of its own, as in life.
CREATE PROCEDURE compare_committed(name text, bar float8, base text, ours text, runs int) LANGUAGE plpgsql AS $$
DECLARE
  base_costs float8[];
  our_costs float8[];
  started float8;
BEGIN
  IF name NOT LIKE replace(current_setting('bench.only'), '*', '%') THEN RETURN; END IF;
  FOR round IN 0 .. current_setting('bench.rounds')::int LOOP
    started := cpu();
    FOR i IN 1 .. runs LOOP EXECUTE base; COMMIT; END LOOP;
    IF round > 0 THEN base_costs := base_costs || (cpu() - started) / runs; END IF;
    started := cpu();
    FOR i IN 1 .. runs LOOP EXECUTE ours; COMMIT; END LOOP;
    IF round > 0 THEN our_costs := our_costs || (cpu() - started) / runs; END IF;
  END LOOP;
  INSERT INTO results SELECT line(name, percentile_disc(0.5) WITHIN GROUP (ORDER BY b), (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY o) FROM unnest(our_costs) o), bar)
    FROM unnest(base_costs) b;
END $$;
CREATE TEMP TABLE results (line text);
CALL compare_committed('push to 1,000,000 beside 2,000', 1.5, $$SELECT outlier_push('books', 'short', 'another')$$, $$SELECT outlier_push('books', 'long', 'another')$$, 500);
CALL compare_committed('outlier_contains, the same', 'infinity', $$SELECT outlier_contains('books', 'short', 'user1999')$$, $$SELECT outlier_contains('books', 'long', 'user999999')$$, 500);
-- A child row beside a push: neither changes a row that other columns' indexes know, and vacuum has nothing to do.
CREATE TABLE books_ids (id int PRIMARY KEY);
INSERT INTO books_ids VALUES (1);
CREATE TABLE buyers_plain (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, book int REFERENCES books_ids, buyer text);
CREATE INDEX ON buyers_plain (book);
CALL compare_committed('push beside inserting a child row', 2, $$INSERT INTO buyers_plain (book, buyer) VALUES (1, 'another')$$, $$SELECT outlier_push('books', 'short', 'another')$$, 2000);
CREATE PROCEDURE wal_committed(command text, runs int, INOUT bytes float8) LANGUAGE plpgsql AS $$
DECLARE started pg_lsn := pg_current_wal_insert_lsn();
BEGIN
  FOR i IN 1 .. runs LOOP EXECUTE command; COMMIT; END LOOP;
  bytes := (pg_current_wal_insert_lsn() - started) / runs;
END $$;
CREATE PROCEDURE compare_wal(name text, bar float8, base text, ours text, runs int) LANGUAGE plpgsql AS $$
DECLARE b float8; o float8;
BEGIN
  IF name NOT LIKE replace(current_setting('bench.only'), '*', '%') THEN RETURN; END IF;
  CALL wal_committed(base, runs, b);
  CALL wal_committed(ours, runs, o);
  INSERT INTO results SELECT line(name, b, o, bar);
END $$;
CALL compare_wal('the same, bytes of WAL', 3, $$INSERT INTO buyers_plain (book, buyer) VALUES (1, 'another')$$, $$SELECT outlier_push('books', 'short', 'another')$$, 2000);
SELECT line FROM results;
