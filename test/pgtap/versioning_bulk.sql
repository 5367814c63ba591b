-- Statements that write many documents: their revisions and changes are written together at the end of the statement.
\set QUIET 1
SET client_min_messages = warning;
\set seed 0.2718
SELECT plan(29);
SELECT diag('seed ' || :seed);
SELECT setseed(:seed) \g /dev/null
CREATE SCHEMA vb;
SET search_path = vb, public;
CREATE FUNCTION checked(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;
-- how many documents have this sequence of operations
CREATE FUNCTION stories(rel text) RETURNS TABLE (story text, n bigint) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE format('SELECT s, count(*) FROM (SELECT string_agg(revision || operation::text, '' '' ORDER BY revision) AS s FROM %s_revisions GROUP BY key) q GROUP BY s ORDER BY s', rel);
END $$;

-- Many batches, keys in any order
SELECT collection_create('m') \g /dev/null
SELECT versioning_enable('m'), change_feed_enable('m', notify => false) \g /dev/null
INSERT INTO m (doc) SELECT bson_build('_id', i, 'n', 0) FROM generate_series(1, 30000) i ORDER BY random();
SELECT results_eq($$SELECT * FROM stories('m')$$, $$VALUES ('1i', 30000::bigint)$$, 'each new document has a first revision');
SELECT is((SELECT count(*) FROM change_feed_read('m', NULL, 100000)), 30000::bigint, 'and a change');
SELECT is_empty($$SELECT * FROM (SELECT key, row_number() OVER (ORDER BY position) AS a FROM change_feed_read('m', NULL, 100000)) f JOIN (SELECT _id AS key, row_number() OVER (ORDER BY ctid) AS b FROM m) t USING (key) WHERE a <> b$$,
  'changes have the order of the rows');
SELECT checked('many inserts');

-- Keys that had a history, between new ones
DELETE FROM m WHERE ((_id)::int) % 3 = 0;
SELECT results_eq($$SELECT * FROM stories('m')$$, $$VALUES ('1i', 20000::bigint), ('1i 2d', 10000::bigint)$$, 'many deletions');
INSERT INTO m (doc) SELECT bson_build('_id', i, 'n', 1) FROM generate_series(1, 30000) i WHERE i % 30 = 0 UNION ALL SELECT bson_build('_id', i + 0.5, 'n', 1, 'revision', 1) FROM generate_series(1, 30000) i WHERE i % 30 = 0 ORDER BY 1;
SELECT results_eq($$SELECT * FROM stories('m')$$, $$VALUES ('1i', 21000::bigint), ('1i 2d', 9000::bigint), ('1i 2d 3i', 1000::bigint)$$, 'a key goes on with its numbers, a new one begins');
SELECT is((SELECT count(*) FROM m WHERE doc -> 'revision' = 3), 1000::bigint, 'which their documents have');
SELECT checked('keys with a history');
WITH gone AS (DELETE FROM m WHERE _id IN (1, 2, 4) RETURNING doc) INSERT INTO m (doc) SELECT doc FROM gone;
SELECT is((SELECT string_agg(revision || operation::text, ' ' ORDER BY key, revision) FROM m_revisions WHERE key IN (1, 2, 4)), '1i 2d 3i 1i 2d 3i 1i 2d 3i', 'deleted and inserted by one statement');
INSERT INTO m (doc) SELECT bson_build('_id', i, 'n', 5) FROM generate_series(29990, 30010) i ON CONFLICT (_id) DO NOTHING;
INSERT INTO m (doc) SELECT bson_build('_id', i, 'n', 6) FROM generate_series(30005, 30020) i ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is((SELECT string_agg(revision || operation::text, ' ' ORDER BY key, revision) FROM m_revisions WHERE key >= 30004 AND key <= 30012), '1i 1i 2u 1i 2u 1i 2u 1i 2u 1i 2u 1i 2u 1i 1i', 'ON CONFLICT');
UPDATE m SET doc = bson_set(doc, '_id', (doc -> '_id')::float8 + 100000), _id = to_bson((_id)::float8 + 100000) WHERE _id <= 50;
SELECT checked('conflicts and other keys');
DO $$
BEGIN
  INSERT INTO m (doc) SELECT bson_build('_id', i) FROM generate_series(500001, 501000) i;
  BEGIN
    INSERT INTO m (doc) SELECT bson_build('_id', i) FROM generate_series(501001, 502000) i;
    RAISE 'no';
  EXCEPTION WHEN raise_exception THEN NULL;
  END;
  INSERT INTO m (doc) SELECT bson_build('_id', i) FROM generate_series(501500, 502500) i;
END $$;
SELECT is((SELECT count(*) FROM m_revisions WHERE key > 500000 AND key < 600000), 2001::bigint, 'a subtransaction that is rolled back leaves none');
SELECT checked('subtransactions');

-- Updates, and deletions, of documents with numbers and without
UPDATE m SET doc = bson_set(doc, 'n', 7);
UPDATE m SET doc = bson_set(doc, 'n', 8) WHERE random() < 0.5;
SELECT is((SELECT count(*) FROM m_revisions r WHERE operation = 'u' AND NOT EXISTS (SELECT FROM m_revisions b WHERE b.key = r.key AND b.revision = r.revision - 1)), 0::bigint, 'revisions have no gaps');
SELECT checked('many updates');
DELETE FROM m;
SELECT is((SELECT count(DISTINCT key) FROM m_revisions WHERE operation = 'd'), (SELECT count(DISTINCT key) FROM m_revisions), 'all are gone');
SELECT checked('all deleted');

-- Fields that another pattern keeps, declared while documents have numbers
SELECT collection_create('k'), collection_create('s') \g /dev/null
SELECT versioning_enable('k') \g /dev/null
INSERT INTO k (doc) SELECT bson_build('_id', i, 'n', 0) FROM generate_series(1, 300) i;
UPDATE k SET doc = bson_set(doc, 'n', 1) WHERE _id <= 200;
SELECT computed_enable('k', source => 's', on_field => 'k', fields => '{total: {$sum: "$n"}}') \g /dev/null
CALL pattern_build('k', 'total');
INSERT INTO s (doc) SELECT bson_build('_id', i, 'k', i, 'n', i) FROM generate_series(1, 300) i;
UPDATE k SET doc = bson_set(doc, 'n', 2);
UPDATE k SET doc = bson_set(doc, 'n', 3);
SELECT is((SELECT string_agg(DISTINCT h.doc ->> 'n', ' ' ORDER BY h.doc ->> 'n') FROM k_history h WHERE key <= 200), '0 1 2 3', 'each revision is what was written');
SELECT checked('fields that are kept');

-- A trigger that looks at the history while its statement is under way
CREATE TABLE looks (n bigint);
CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO vb.looks SELECT count(*) FROM vb.t_revisions;
  RETURN NULL;
END $$;
CREATE TABLE t (id int PRIMARY KEY, parent int, doc bson);
SELECT versioning_enable('t') \g /dev/null
CREATE TRIGGER a AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION look();
INSERT INTO t SELECT i, 1, bson_build('n', i) FROM generate_series(1, 3) i;
SELECT results_eq('SELECT n FROM looks ORDER BY n', 'VALUES (0::bigint), (1), (2)', 'a row trigger finds the revisions of the rows before');
DROP TRIGGER a ON t;
TRUNCATE looks;
CREATE TRIGGER a AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION look();
INSERT INTO t SELECT i, 1, bson_build('n', i) FROM generate_series(4, 6) i;
SELECT results_eq('SELECT n FROM looks', 'VALUES (6::bigint)', 'a statement trigger finds all');
DROP TRIGGER a ON t;

-- A foreign key deletes rows of the table and of another one, whose trigger reads in a subtransaction
CREATE TABLE parent (id int PRIMARY KEY);
INSERT INTO parent SELECT generate_series(1, 3);
UPDATE t SET parent = 1 + id % 3;
ALTER TABLE t ADD FOREIGN KEY (parent) REFERENCES parent ON DELETE CASCADE;
CREATE TABLE u (parent int REFERENCES parent ON DELETE CASCADE);
INSERT INTO u SELECT generate_series(1, 3);
CREATE FUNCTION try() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  BEGIN
    TRUNCATE vb.looks;
    INSERT INTO vb.looks SELECT count(*) FROM versioning_as_of('vb.t', 'infinity');
    PERFORM versioning_at('vb.t', 3, 1);
    IF OLD.parent = 1 THEN RAISE 'no'; END IF;
  EXCEPTION WHEN raise_exception THEN NULL;
  END;
  RETURN NULL;
END $$;
CREATE TRIGGER try AFTER DELETE ON u FOR EACH ROW EXECUTE FUNCTION try();
DELETE FROM parent WHERE id = 1;
SELECT results_eq($$SELECT * FROM stories('t')$$, $$VALUES ('1i', 4::bigint), ('1i 2d', 2::bigint)$$, 'revisions that a subtransaction wrote are written again when it is rolled back');
DELETE FROM parent WHERE id = 2;
SELECT results_eq($$SELECT * FROM stories('t')$$, $$VALUES ('1i', 2::bigint), ('1i 2d', 4::bigint)$$, 'and once when it is not');
SELECT checked('cascades');

-- Without the trigger that ends a statement
ALTER TABLE t_revisions DISABLE TRIGGER ALL;
INSERT INTO t SELECT i, 3, bson_build('n', i) FROM generate_series(10, 12) i;
SELECT is((SELECT count(*) FROM t_revisions WHERE key >= 10), 3::bigint, 'rows are written at once');
ALTER TABLE t_revisions ENABLE TRIGGER ALL;
COPY t (id, parent, doc) FROM STDIN;
20	3	{n: 1}
21	3	{n: 2}
\.
SELECT is((SELECT count(*) FROM t_revisions WHERE key >= 20), 2::bigint, 'COPY');

-- Partitions
CREATE TABLE pt (id int, region int, doc bson, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE pt1 PARTITION OF pt FOR VALUES IN (1);
CREATE TABLE pt2 PARTITION OF pt FOR VALUES IN (2);
SELECT versioning_enable('pt') \g /dev/null
INSERT INTO pt SELECT i, 1 + i % 2, bson_build('n', i) FROM generate_series(1, 1000) i;
UPDATE pt SET region = 3 - region, doc = bson_set(doc, 'n', 0) WHERE id <= 100;
UPDATE pt2 SET doc = bson_set(doc, 'n', -1);
SELECT is((SELECT count(*) FROM pt_revisions), 1200::bigint + 500, 'partitions');
SELECT checked('partitions');
TRUNCATE looks;
CREATE FUNCTION look_pt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO vb.looks SELECT count(*) FROM vb.pt_revisions;
  RETURN NULL;
END $$;
CREATE TRIGGER a AFTER INSERT ON pt FOR EACH STATEMENT EXECUTE FUNCTION look_pt();
INSERT INTO pt VALUES (5000, 1, '{}'), (5001, 2, '{}');
SELECT results_eq('SELECT n FROM looks', 'VALUES (1702::bigint)', 'a trigger of the partitioned table finds all');
\o /dev/null
DROP SCHEMA vb CASCADE;
\o
SELECT * FROM finish();
