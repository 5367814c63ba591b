-- The contract of the change feed: what every kind of write records, positions, purging, rights, partitions, other patterns
-- beside it, and that applying the feed gives the table, after random writes.
SET client_min_messages = warning;
SET timezone = 'UTC';
\pset fieldsep '\n'
\set seed 0.1415
SELECT plan(102);
SELECT diag('seed ' || :seed);
CREATE FUNCTION pg_temp.true_everywhere(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;
-- What happened since the last call.
CREATE TEMP TABLE seen (rel text PRIMARY KEY, at bigint);
CREATE FUNCTION pg_temp.news(t text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT * FROM change_feed_read(t::regclass, (SELECT at FROM seen WHERE rel = t)) LOOP
    INSERT INTO seen VALUES (t, r.position) ON CONFLICT (rel) DO UPDATE SET at = r.position;
    RETURN NEXT concat_ws(' ', r.operation, r.key::text, coalesce(r.document::text, '-'), r.paths::text);
  END LOOP;
END $$;

-- Signatures and refusals
SELECT function_returns(f, r, f || ' returns ' || r) FROM (VALUES ('change_feed_enable', 'text'), ('change_feed_read', 'setof record'), ('change_feed_position', 'bigint'), ('change_feed_purge', 'bigint')) AS v (f, r);
SELECT volatility_is(f, 'volatile', f || ' is volatile') FROM unnest(ARRAY['change_feed_enable', 'change_feed_read', 'change_feed_position', 'change_feed_purge']) f;
CREATE TABLE t (id int PRIMARY KEY, doc bson, other int);
SELECT throws_ok(format('SELECT change_feed_enable(%s)', args), state, NULL, what) FROM (VALUES ($$NULL$$, '22004', 'no table'), ($$'t', name => NULL$$, '22004', 'no name'), ($$'t', channel => ''$$, '22023', 'no channel'),
  ($$'t', channel => repeat('x', 64)$$, '22023', 'a long channel'), ($$'t', notify => false, channel => 'x'$$, '22023', 'a channel for nothing'), ($$'t', doc_column => 'nope'$$, '42703', 'no such column')) AS v (args, state, what);
SELECT throws_ok(format('SELECT %s', call), '42704', NULL, call || ' without a feed') FROM unnest(ARRAY[$$change_feed_read('t')$$, $$change_feed_position('t')$$, $$change_feed_purge('t', 1)$$]) call;
SELECT is(change_feed_enable('t'), 'feed', 'the name');
SELECT throws_ok($$SELECT change_feed_enable('t')$$, '42710', NULL, 'a second one of the name');
SELECT throws_ok($$SELECT * FROM change_feed_read('t', NULL, 0)$$, '22023', NULL, 'take must be positive');
SELECT throws_ok($$SELECT change_feed_purge('t')$$, '22023', NULL, 'purge what');
SELECT throws_ok($$SELECT change_feed_purge('t', 1, '1 day')$$, '22023', NULL, 'purge one or the other');
SELECT is(change_feed_position('t'), 0::bigint, 'nothing yet');

-- Every kind of write
INSERT INTO t VALUES (1, '{a: 1, b: {c: [1, 2]}}'), (2, NULL);
SELECT results_eq($$SELECT pg_temp.news('t')$$, ARRAY['insert 1 {"a": 1, "b": {"c": [1, 2]}}', 'insert 2 -'], 'INSERT');
UPDATE t SET doc = bson_set(bson_set(doc, 'b.c.1', 7), 'd', 'x'::text) WHERE id = 1;
SELECT results_eq($$SELECT pg_temp.news('t')$$, ARRAY['update 1 {"a": 1, "b": {"c": [1, 7]}, "d": "x"} {b.c.1,d}'], 'UPDATE tells the paths that changed');
UPDATE t SET other = 5; UPDATE t SET doc = doc; UPDATE t SET id = id;
SELECT is_empty($$SELECT pg_temp.news('t')$$, 'what changes no document is no change');
UPDATE t SET doc = '{}' WHERE id = 2; UPDATE t SET doc = NULL WHERE id = 2;
SELECT results_eq($$SELECT pg_temp.news('t')$$, ARRAY['update 2 {}', 'update 2 -'], 'from null and to null');
UPDATE t SET id = 3 WHERE id = 1;
SELECT results_eq($$SELECT pg_temp.news('t')$$, ARRAY['delete 1 {"a": 1, "b": {"c": [1, 7]}, "d": "x"}', 'insert 3 {"a": 1, "b": {"c": [1, 7]}, "d": "x"}'], 'another key is another document');
INSERT INTO t VALUES (3, '{}'), (4, '{}') ON CONFLICT (id) DO UPDATE SET doc = bson_set(t.doc, 'a', 2);
INSERT INTO t VALUES (3, '{}') ON CONFLICT DO NOTHING;
SELECT results_eq($$SELECT pg_temp.news('t')$$, ARRAY['update 3 {"a": 2, "b": {"c": [1, 7]}, "d": "x"} {a}', 'insert 4 {}'], 'ON CONFLICT');
MERGE INTO t USING (VALUES (3), (4), (5)) s (id) ON t.id = s.id WHEN MATCHED AND t.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET doc = '{m: 1}' WHEN NOT MATCHED THEN INSERT VALUES (s.id, '{n: 1}');
SELECT set_eq($$SELECT pg_temp.news('t')$$, ARRAY['delete 3 {"a": 2, "b": {"c": [1, 7]}, "d": "x"}', 'update 4 {"m": 1} {m}', 'insert 5 {"n": 1}'], 'MERGE');
COPY t (id, doc) FROM PROGRAM 'printf "6\\t{k: 1}\\n"';
SELECT results_eq($$SELECT pg_temp.news('t')$$, ARRAY['insert 6 {"k": 1}'], 'COPY');
BEGIN; INSERT INTO t VALUES (7, '{}'); SAVEPOINT a; INSERT INTO t VALUES (8, '{}'); ROLLBACK TO a; INSERT INTO t VALUES (9, '{}');
SELECT is_empty($$SELECT pg_temp.news('t')$$, 'a transaction does not read what it has not committed'); COMMIT;
SELECT results_eq($$SELECT pg_temp.news('t')$$, ARRAY['insert 7 {}', 'insert 9 {}'], 'a savepoint takes back its part');
BEGIN; SAVEPOINT a; INSERT INTO t VALUES (10, '{}'); ROLLBACK TO a; SAVEPOINT b; INSERT INTO t VALUES (11, '{}'); RELEASE b; SAVEPOINT c; DELETE FROM t WHERE id = 11; ROLLBACK TO c; COMMIT;
SELECT results_eq($$SELECT pg_temp.news('t')$$, ARRAY['insert 11 {}'], 'also the first');
BEGIN; DELETE FROM t; ROLLBACK;
SELECT is_empty($$SELECT pg_temp.news('t')$$, 'what is undone has not happened');
DELETE FROM t WHERE id = 11; INSERT INTO t VALUES (11, '{again: 1}');
SELECT results_eq($$SELECT pg_temp.news('t')$$, ARRAY['delete 11 {}', 'insert 11 {"again": 1}'], 'a key that comes again');
SELECT pg_temp.true_everywhere('after all kinds of writes');
TRUNCATE t;
SELECT results_eq($$SELECT pg_temp.news('t')$$, ARRAY['truncate -'], 'TRUNCATE');
SELECT pg_temp.true_everywhere('after TRUNCATE');
UPDATE t SET doc = '{}';
INSERT INTO t SELECT 1, (SELECT bson_object_agg('f' || i, i) FROM generate_series(1, 2000) i);
UPDATE t SET doc = (SELECT bson_object_agg('f' || i, bson_build('x', i)) FROM generate_series(1, 2000) i);
SELECT is((SELECT cardinality(paths) FROM change_feed_read('t') WHERE operation = 'update' ORDER BY position DESC LIMIT 1), 2000, 'many changed fields');
UPDATE t SET doc = bson_build('x', (SELECT bson_object_agg('f' || i, i) FROM generate_series(1, 2000) i));
UPDATE t SET doc = bson_build('x', (SELECT bson_object_agg('f' || i, i + 1) FROM generate_series(1, 2000) i));
SELECT is((SELECT paths FROM change_feed_read('t') WHERE operation = 'update' ORDER BY position DESC LIMIT 1), '{x}'::text[], 'of more than a thousand paths the fields that they are in');
TRUNCATE t;

-- Guard, order, positions
SELECT throws_ok('DELETE FROM t_feed', '55000', NULL, 'the table of changes is guarded');
SELECT throws_ok('TRUNCATE t_feed', '55000', NULL, 'against TRUNCATE too');
ALTER TABLE t_feed ADD CONSTRAINT few CHECK (number < 0) NOT VALID;
SELECT throws_ok($$INSERT INTO t VALUES (1, '{}')$$, '23514', NULL, 'its constraints are checked');
ALTER TABLE t_feed DROP CONSTRAINT few;
INSERT INTO t SELECT i, bson_build('i', i) FROM generate_series(1, 10) i;
SELECT pg_temp.news('t') \g /dev/null
SELECT is((SELECT array_agg(operation ORDER BY position) FROM (SELECT * FROM change_feed_read('t', (SELECT max(position) - 4 FROM change_feed_read('t')), 3)) q), '{insert,insert,insert}'::text[], 'taken three at a time');
SELECT is((SELECT count(*) FROM change_feed_read('t', change_feed_position('t'))), 0::bigint, 'the present position');
SELECT ok((SELECT bool_and(position > coalesce(before, 0)) FROM (SELECT position, lag(position) OVER () AS before FROM change_feed_read('t')) q), 'positions rise');
BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t \g /dev/null
SELECT is((SELECT count(*) > 0 FROM change_feed_read('t')), true, 'a transaction of one snapshot may read'); COMMIT;

-- A trigger of somebody else writes the row again before the feed sees it
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.doc ? 'twice' THEN UPDATE t SET doc = bson_set(bson_unset(doc, 'twice'), 'n', 1) WHERE id = NEW.id; END IF;
  IF NEW.doc ? 'gone' THEN DELETE FROM t WHERE id = NEW.id; END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER a AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION again();
INSERT INTO t VALUES (20, '{twice: 1}'), (21, '{gone: 1}'), (22, '{}');
SELECT results_eq($$SELECT pg_temp.news('t')$$, ARRAY['insert 20 {"twice": 1}', 'update 20 {"n": 1} {twice,n}', 'insert 21 {"gone": 1}', 'delete 21 {"gone": 1}', 'insert 22 {}'], 'changes of one document stay in order');
UPDATE t SET doc = bson_set(doc, 'twice', 2) WHERE id IN (20, 22);
SELECT results_eq($$SELECT pg_temp.news('t')$$, ARRAY['update 20 {"n": 1, "twice": 2} {twice}', 'update 20 {"n": 1} {twice}', 'update 22 {"twice": 2} {twice}', 'update 22 {"n": 1} {twice,n}'], 'of updates too');
DROP TRIGGER a ON t;
SELECT pg_temp.true_everywhere('after triggers');

-- Purging
SELECT is(change_feed_purge('t', (SELECT position FROM change_feed_read('t', NULL, 5) ORDER BY position DESC LIMIT 1)), 5::bigint, 'five are purged');
SELECT is(change_feed_purge('t', (SELECT position FROM change_feed_read('t', NULL, 2) ORDER BY position DESC LIMIT 1)), 2::bigint, 'and two more');
SELECT is(change_feed_purge('t', 1), 0::bigint, 'what is gone is gone');
SELECT throws_ok($$SELECT * FROM change_feed_read('t', 1)$$, '22023', NULL, 'who is behind is told');
SELECT lives_ok($$SELECT * FROM change_feed_read('t')$$, 'who begins is not');
SELECT is((SELECT min(position) FROM change_feed_read('t')), (SELECT min(position) FROM change_feed_read('t', (SELECT min(number) FROM t_feed))), 'and nothing is lost between');
SELECT is(change_feed_purge('t', older_than => '1 hour'), 0::bigint, 'nothing is that old');
SELECT pg_temp.true_everywhere('after purging');
SELECT ok(change_feed_purge('t', older_than => '0') > 10, 'all is older than now');
SELECT is((SELECT count(*) FROM t_feed), 1::bigint, 'a mark is left');
SELECT lives_ok($$SELECT * FROM change_feed_read('t', change_feed_position('t'))$$, 'who is up to date goes on');
INSERT INTO t VALUES (30, '{}');
SELECT is((SELECT count(*) FROM change_feed_read('t')), 1::bigint, 'what comes then is read');
SELECT pg_temp.true_everywhere('after purging all');

-- What was done behind its back
SET docpatterns.maintain = off; INSERT INTO t VALUES (31, '{}'); UPDATE t SET doc = '{q: 1}' WHERE id = 30; DELETE FROM t WHERE id = 22; RESET docpatterns.maintain;
SELECT results_eq($$SELECT key, what, expected FROM pattern_check('t')$$, $$VALUES ('30'::bson_value, 'last change'::text, 'update'::text)$$, 'pattern_check finds it');
SELECT is(pattern_repair('t'), 1::bigint, 'pattern_repair records it');
SELECT is((SELECT operation || ' ' || key::text || ' ' || document::text FROM change_feed_read('t') ORDER BY position DESC LIMIT 1), 'update 30 {"q": 1}', 'as a change');
SELECT pg_temp.true_everywhere('repaired');
SELECT throws_ok($$SELECT pattern_alter('t', 'feed', '{documents: false}')$$, '22023', NULL, 'documents cannot be left out later');
SELECT lives_ok($$SELECT pattern_alter('t', 'feed', '{channel: null}')$$, 'the channel can be given up');
SELECT is(change_feed_enable('t', name => 'keys', documents => false, notify => false), 'keys', 'a second feed');
UPDATE t SET doc = bson_set(doc, 'w', 1) WHERE id = 30;
SELECT results_eq($$SELECT key, document, paths FROM change_feed_read('t', name => 'keys')$$, $$VALUES ('30'::bson_value, NULL::bson, '{w}'::text[])$$, 'of keys and paths only');
SELECT throws_ok($$SELECT * FROM change_feed_read('t')$$, '22023', NULL, 'then the name has to be said');
SELECT is(pattern_disable('t', 'keys'), 0::bigint, 'it ends');
SELECT hasnt_relation('t_keys');
SELECT is(pattern_disable('t', 'feed', keep_data => true), 0::bigint, 'and leaves its table if it is told to');
SELECT ok((SELECT count(*) > 1 FROM t_feed), 'which is an ordinary one');
DROP TABLE t_feed; DROP TABLE t;

-- A transaction that is prepared has not ended
CREATE TABLE t (id int PRIMARY KEY, doc bson);
SELECT change_feed_enable('t', notify => false) \g /dev/null
BEGIN; INSERT INTO t VALUES (1, '{}'); PREPARE TRANSACTION 'dp_feed';
INSERT INTO t VALUES (2, '{}');
SELECT is((SELECT count(*) FROM change_feed_read('t')), 0::bigint, 'a prepared transaction holds readers back');
COMMIT PREPARED 'dp_feed';
SELECT results_eq($$SELECT key FROM change_feed_read('t')$$, $$VALUES ('1'::bson_value), ('2')$$, 'until it ends');
DROP TABLE t CASCADE;

-- Rights and hostile names
CREATE ROLE dp_follower; CREATE ROLE dp_maker;
CREATE SCHEMA "F eed"; GRANT USAGE ON SCHEMA "F eed" TO dp_follower, dp_maker;
CREATE TABLE "F eed"."T "" t" ("k 1" text, "k'2" int, "d oc" bson, PRIMARY KEY ("k 1", "k'2"));
SELECT is(change_feed_enable('"F eed"."T "" t"', name => 'n''a"me'), 'n''a"me', 'hostile names');
GRANT INSERT ON "F eed"."T "" t" TO dp_maker; GRANT SELECT ON "F eed"."T "" t" TO dp_follower;
SET ROLE dp_maker; INSERT INTO "F eed"."T "" t" VALUES ('a', 1, '{"x ''y": 1}');
SELECT throws_ok($$SELECT * FROM change_feed_read('"F eed"."T "" t"')$$, '42501', NULL, 'who may write need not be let read');
SET ROLE dp_follower;
SELECT results_eq($$SELECT operation, key FROM change_feed_read('"F eed"."T "" t"')$$, $$VALUES ('insert'::text, '["a", 1]'::bson_value)$$, 'who may read may follow');
SELECT throws_ok($$SELECT change_feed_purge('"F eed"."T "" t"', 1)$$, '42501', NULL, 'but not purge');
SELECT throws_ok($$SELECT * FROM "F eed"."T "" t_n'a""me"$$, '42501', NULL, 'nor look at the table of changes');
RESET ROLE; ALTER TABLE "F eed"."T "" t" ENABLE ROW LEVEL SECURITY; SET ROLE dp_follower;
SELECT throws_ok($$SELECT * FROM change_feed_read('"F eed"."T "" t"')$$, '42501', NULL, 'whom policies hide rows from may not');
RESET ROLE;
ALTER TABLE "F eed"."T "" t" RENAME TO plain; ALTER TABLE "F eed".plain RENAME COLUMN "d oc" TO d;
UPDATE "F eed".plain SET d = '{}';
SELECT is((SELECT count(*) FROM change_feed_read('"F eed".plain')), 2::bigint, 'renamed');
SELECT pg_temp.true_everywhere('renamed');
DROP TABLE "F eed".plain CASCADE;
SELECT is((SELECT count(*) FROM pg_class WHERE relnamespace = '"F eed"'::regnamespace), 0::bigint, 'DROP TABLE leaves nothing behind');
DROP SCHEMA "F eed"; DROP ROLE dp_follower, dp_maker;

-- Partitions
CREATE TABLE p (id int PRIMARY KEY, doc bson) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
SELECT change_feed_enable('p') \g /dev/null
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200);
INSERT INTO p VALUES (1, '{}'), (101, '{}'); UPDATE p SET id = 150 WHERE id = 1;
SELECT results_eq($$SELECT pg_temp.news('p')$$, ARRAY['insert 1 {}', 'insert 101 {}', 'delete 1 {}', 'insert 150 {}'], 'a row that moves to another partition');
INSERT INTO p2 VALUES (102, '{}'); TRUNCATE p2;
SELECT set_eq($$SELECT pg_temp.news('p')$$, ARRAY['insert 102 {}', 'delete 101 {}', 'delete 102 {}', 'delete 150 {}'], 'a partition that is truncated alone');
INSERT INTO p VALUES (1, '{}'), (101, '{}'); TRUNCATE p;
SELECT results_eq($$SELECT pg_temp.news('p')$$, ARRAY['insert 1 {}', 'insert 101 {}', 'truncate -'], 'and with the table');
INSERT INTO p VALUES (1, '{}'), (101, '{}'); ALTER TABLE p DETACH PARTITION p2;
SELECT results_eq($$SELECT pg_temp.news('p')$$, ARRAY['insert 1 {}', 'insert 101 {}', 'delete 101 {}'], 'one that is detached takes its rows along');
INSERT INTO p2 VALUES (103, '{}'); ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (100) TO (200);
SELECT set_eq($$SELECT pg_temp.news('p')$$, ARRAY['insert 101 {}', 'insert 103 {}'], 'and brings them when it is attached, with those that came meanwhile');
SELECT is_empty($$SELECT * FROM pattern_check('p')$$, 'that is all');
CREATE TABLE p3 (LIKE p INCLUDING ALL) PARTITION BY RANGE (id); CREATE TABLE p31 PARTITION OF p3 FOR VALUES FROM (200) TO (300);
INSERT INTO p3 VALUES (201, '{}'); ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (200) TO (300);
ALTER TABLE p3 DETACH PARTITION p31;
SELECT results_eq($$SELECT pg_temp.news('p')$$, ARRAY['insert 201 {}', 'delete 201 {}'], 'of all levels');
DROP TABLE p31;
DROP TABLE p2;
SELECT set_eq($$SELECT key, expected FROM pattern_check('p')$$, $$VALUES ('101'::bson_value, 'delete'::text), ('103', 'delete')$$, 'one that is dropped is missed');
SELECT is(pattern_repair('p'), 2::bigint, 'until that is recorded');
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200); ALTER TABLE p DETACH PARTITION p2;
SELECT lives_ok('UPDATE p2 SET doc = ''{z: 1}''; TRUNCATE p2', 'and is an ordinary table then');
SELECT pg_temp.true_everywhere('partitions');
DROP TABLE p CASCADE; DROP TABLE p2;

-- Applying the feed gives the table, beside patterns that write rows of their own
CREATE FUNCTION pg_temp.r(n int) RETURNS int LANGUAGE sql AS 'SELECT floor(random() * n)::int';
SELECT setseed(:seed) \g /dev/null
CREATE TABLE w (id int PRIMARY KEY, doc bson); CREATE TABLE copy (key bson_value PRIMARY KEY, doc bson);
SELECT outlier_enable('w', 'a', 3, keep => 2, chunk => 4), subset_fields_enable('w', '{cold}'), preallocated_enable('w', 's', preallocated_pool(3), store => 'slots'), change_feed_enable('w') \g /dev/null
DO $$
DECLARE k int; at bigint; r record;
BEGIN
  FOR i IN 1..400 LOOP
    k := pg_temp.r(8);
    CASE pg_temp.r(9)
      WHEN 0, 1 THEN INSERT INTO w VALUES (k, bson_build('a', ARRAY(SELECT pg_temp.r(9) FROM generate_series(1, pg_temp.r(7))), 'cold', i)) ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
      WHEN 2 THEN UPDATE w SET doc = bson_update(doc, bson_build('$push', bson_build('a', i))) WHERE id = k;
      WHEN 3 THEN UPDATE w SET doc = bson_set(doc, 'cold', i) WHERE id = k;
      WHEN 4 THEN DELETE FROM w WHERE id = k;
      WHEN 5 THEN UPDATE w SET id = 8 + pg_temp.r(4) WHERE id = k AND NOT EXISTS (SELECT FROM w WHERE id > 7);
      WHEN 6 THEN DELETE FROM w WHERE id > 7;
      WHEN 7 THEN UPDATE w_whole SET doc = bson_set(doc, 'x', i) WHERE id = k;
      ELSE INSERT INTO w VALUES (k, bson_build('s', bson_array('h' || i, 0, 0), 'a', ARRAY[1, 2, 3, 4, 5])) ON CONFLICT DO NOTHING;
    END CASE;
    IF i % 40 = 0 THEN COMMIT; END IF;
    IF i = 200 THEN TRUNCATE w; END IF;
  END LOOP;
  COMMIT;
  FOR r IN SELECT * FROM change_feed_read('w') LOOP
    IF r.operation = 'truncate' THEN DELETE FROM copy; ELSE
      DELETE FROM copy WHERE key = r.key;
      IF r.operation <> 'delete' THEN INSERT INTO copy VALUES (r.key, r.document); END IF;
    END IF;
  END LOOP;
END $$;
SELECT results_eq('SELECT key::int, doc::text FROM copy ORDER BY 1', 'SELECT id, doc::text FROM w ORDER BY 1', 'applied in order, the feed gives the table');
SELECT ok((SELECT count(*) > 300 FROM change_feed_read('w')), 'much has happened');
SELECT pg_temp.true_everywhere('random writes');
DROP TABLE w CASCADE;
SELECT * FROM finish();
