-- The machinery beneath all derived data: what statements on a source tell, for every kind of statement, partition and writer.
-- The totals of the computed pattern show what was told.
\set QUIET 1
\set ON_ERROR_STOP 1
SET client_min_messages = warning;
SET timezone = 'UTC';
SET check_function_bodies = off;

BEGIN;
SELECT plan(76);

-- Whether the totals are what a plain query over the source says, and pattern_check agrees.
CREATE FUNCTION pg_temp.wrong() RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws('; ',
    (SELECT string_agg(format('%s has %s of %s', t._id, t.doc -> 'n', coalesce(s.n, 0)), ', ')
     FROM films t LEFT JOIN (SELECT doc -> 'film' AS film, count(*) AS n, sum((doc -> 'seen')::int) AS seen FROM shows GROUP BY 1) s ON s.film = t._id
     WHERE (t.doc -> 'n')::int IS DISTINCT FROM coalesce(s.n, 0) OR (t.doc -> 'seen')::int IS DISTINCT FROM coalesce(s.seen, 0)),
    (SELECT string_agg(c::text, ', ') FROM pattern_check('films') c))
$$;

SELECT collection_create('films');
SELECT collection_create('shows');
INSERT INTO films (doc) SELECT bson_build('_id', i) FROM generate_series(1, 5) i;
SELECT computed_enable('films', source => 'shows', on_field => 'film', fields => '{n: {$count: {}}, seen: {$sum: "$seen"}}', name => 'totals');
CALL pattern_build('films', 'totals', NULL);

-- Kinds of statements
INSERT INTO shows (doc) VALUES ('{_id: 1, film: 1, seen: 10}'), ('{_id: 2, film: 2, seen: 20}'), ('{_id: 3, film: 1, seen: 5}');
SELECT is(pg_temp.wrong(), '', 'INSERT of several rows');
UPDATE shows SET doc = bson_set(doc, 'film', 3) WHERE _id = 1::bson_value;
SELECT is(pg_temp.wrong(), '', 'UPDATE that moves a row to another group');
UPDATE shows SET doc = bson_set(doc, 'film', 6 - (doc -> 'film')::int);
SELECT is(pg_temp.wrong(), '', 'UPDATE that exchanges groups');
DELETE FROM shows WHERE _id = 2::bson_value;
SELECT is(pg_temp.wrong(), '', 'DELETE');
INSERT INTO shows (doc) VALUES ('{_id: 1, film: 2, seen: 7}'), ('{_id: 4, film: 2, seen: 7}')
  ON CONFLICT (_id) DO UPDATE SET doc = bson_set(EXCLUDED.doc, 'seen', 100);
SELECT is(pg_temp.wrong(), '', 'INSERT .. ON CONFLICT DO UPDATE that does both');
INSERT INTO shows (doc) VALUES ('{_id: 1, film: 4, seen: 7}'), ('{_id: 5, film: 4, seen: 7}') ON CONFLICT DO NOTHING;
SELECT is(pg_temp.wrong(), '', 'INSERT .. ON CONFLICT DO NOTHING');
MERGE INTO shows s USING (VALUES (1, 5), (4, 6), (6, 7), (7, 8)) v (id, seen) ON s._id = v.id::bson_value
  WHEN MATCHED AND v.id = 4 THEN DELETE
  WHEN MATCHED THEN UPDATE SET doc = bson_set(s.doc, 'seen', v.seen)
  WHEN NOT MATCHED THEN INSERT (doc) VALUES (bson_build('_id', v.id, 'film', 5, 'seen', v.seen));
SELECT is(pg_temp.wrong(), '', 'MERGE that inserts, updates and deletes');
WITH gone AS (DELETE FROM shows WHERE _id = 6::bson_value RETURNING doc), moved AS (UPDATE shows SET doc = bson_set(doc, 'film', 1) WHERE _id = 7::bson_value)
INSERT INTO shows (doc) SELECT bson_set(doc, '_id', 60) FROM gone;
SELECT is(pg_temp.wrong(), '', 'a query with three parts that write');
COPY shows (doc) FROM stdin;
{"_id": 70, "film": 3, "seen": 1}
{"_id": 71, "film": 3, "seen": 2}
\.
SELECT is(pg_temp.wrong(), '', 'COPY');
UPDATE shows SET doc = doc;
SELECT is(pg_temp.wrong(), '', 'UPDATE that changes nothing');
DELETE FROM shows WHERE false;
SELECT is(pg_temp.wrong(), '', 'DELETE of nothing');

-- Nothing is written, and nobody locked, where nothing changes
CREATE TEMP TABLE was AS SELECT _id, ctid AS place, xmin::text AS by FROM films;
UPDATE shows SET doc = bson_set(doc, 'note', 'x');
SELECT is((SELECT count(*) FROM was JOIN films f USING (_id) WHERE f.ctid <> was.place OR f.xmin::text <> was.by), 0::bigint, 'a change that concerns no group leaves all target rows as they are');
INSERT INTO shows (doc) VALUES ('{_id: 80, film: 1, seen: 1}');
SELECT is((SELECT count(*) FROM was JOIN films f USING (_id) WHERE f.ctid <> was.place), 1::bigint, 'a change of one group writes one row');
UPDATE shows SET doc = bson_set(doc, 'seen', (doc -> 'seen')::int + 1);
SELECT is((SELECT max(n) FROM (SELECT count(*) AS n FROM films GROUP BY _id) q), 1::bigint, 'each row is there once');
SELECT is(pg_temp.wrong(), '', 'a change of all groups');

-- Savepoints and errors
SAVEPOINT a;
INSERT INTO shows (doc) VALUES ('{_id: 90, film: 1, seen: 1}');
SELECT is(pg_temp.wrong(), '', 'in a savepoint');
ROLLBACK TO a;
SELECT is(pg_temp.wrong(), '', 'after ROLLBACK TO');
DO $$
BEGIN
  INSERT INTO shows (doc) VALUES ('{_id: 91, film: 2, seen: 1}'), ('{_id: 91, film: 2, seen: 1}');
EXCEPTION WHEN unique_violation THEN NULL;
END
$$;
INSERT INTO shows (doc) VALUES ('{_id: 92, film: 2, seen: 1}');
SELECT is(pg_temp.wrong(), '', 'a statement after one that failed half way');

-- Rows that a user's trigger writes to the source while a statement on it is under way
CREATE FUNCTION pg_temp.echo() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT bson_exists(NEW.doc, 'echo') THEN
    INSERT INTO public.shows (doc) VALUES (bson_set(bson_set(NEW.doc, '_id', 1000 + (NEW.doc -> '_id')::int), 'echo', true));
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER echo AFTER INSERT ON shows FOR EACH ROW EXECUTE FUNCTION pg_temp.echo();
INSERT INTO shows (doc) VALUES ('{_id: 101, film: 1, seen: 1}'), ('{_id: 102, film: 2, seen: 1}');
SELECT is(pg_temp.wrong(), '', 'a trigger that inserts into the source itself');
SELECT is((SELECT count(*) FROM shows WHERE bson_exists(doc, 'echo')), 2::bigint, '(it did)');
DROP TRIGGER echo ON shows;

-- Foreign keys that cascade into the source
CREATE TABLE halls (id int PRIMARY KEY);
ALTER TABLE shows ADD hall int REFERENCES halls ON DELETE CASCADE ON UPDATE CASCADE;
INSERT INTO halls VALUES (1), (2);
INSERT INTO shows (doc, hall) SELECT bson_build('_id', 200 + i, 'film', 1 + i % 5, 'seen', i), 1 + i % 2 FROM generate_series(1, 20) i;
SELECT is(pg_temp.wrong(), '', 'rows with another column');
DELETE FROM halls WHERE id = 1;
SELECT is(pg_temp.wrong(), '', 'ON DELETE CASCADE');
UPDATE halls SET id = 3 WHERE id = 2;
SELECT is(pg_temp.wrong(), '', 'ON UPDATE CASCADE');

-- Users' triggers on the target
CREATE FUNCTION pg_temp.meddle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.doc := bson_set(bson_set(NEW.doc, 'n', -1), 'touched', true);
  RETURN NEW;
END
$$;
CREATE TRIGGER meddle BEFORE UPDATE ON films FOR EACH ROW EXECUTE FUNCTION pg_temp.meddle();
INSERT INTO shows (doc) VALUES ('{_id: 300, film: 1, seen: 1}');
SELECT is(pg_temp.wrong(), '', 'a BEFORE trigger that writes over what is derived');
SELECT is((SELECT (doc ->> 'touched') FROM films WHERE _id = 1::bson_value), 'true', 'what else it writes is kept');
DROP TRIGGER meddle ON films;
CREATE FUNCTION pg_temp.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER refuse BEFORE UPDATE ON films FOR EACH ROW EXECUTE FUNCTION pg_temp.refuse();
SELECT throws_ok($$INSERT INTO shows (doc) VALUES ('{_id: 301, film: 1, seen: 1}')$$, '27000', NULL, 'a BEFORE trigger that suppresses the write is an error');
DROP TRIGGER refuse ON films;
CREATE TABLE seen_by (kind text, id bson_value, n int);
CREATE FUNCTION pg_temp.watch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_LEVEL = 'ROW' THEN
    INSERT INTO public.seen_by VALUES ('row', NEW._id, (NEW.doc -> 'n')::int - (OLD.doc -> 'n')::int);
  ELSE
    INSERT INTO public.seen_by SELECT 'table', n._id, (n.doc -> 'n')::int FROM new_rows n;
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER watch_row AFTER UPDATE ON films FOR EACH ROW EXECUTE FUNCTION pg_temp.watch();
CREATE TRIGGER watch_table AFTER UPDATE ON films REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION pg_temp.watch();
INSERT INTO shows (doc) VALUES ('{_id: 310, film: 2, seen: 1}'), ('{_id: 311, film: 3, seen: 1}'), ('{_id: 312, film: 2, seen: 1}');
SELECT results_eq($$SELECT kind, id::int, CASE kind WHEN 'row' THEN n END FROM seen_by ORDER BY 1, 2$$,
  $$VALUES ('row', 2, 2), ('row', 3, 1), ('table', 2, NULL), ('table', 3, NULL)$$, 'AFTER triggers on the target see each row once, transition tables too');
DROP TRIGGER watch_row ON films;
DROP TRIGGER watch_table ON films;

-- Generated columns, checks and unique indexes of the target
ALTER TABLE films ADD total int GENERATED ALWAYS AS ((doc -> 'seen')::int) STORED, ADD CONSTRAINT few CHECK ((doc -> 'n')::int < 100);
INSERT INTO shows (doc) VALUES ('{_id: 320, film: 2, seen: 11}');
SELECT is((SELECT count(*) FROM films WHERE total IS DISTINCT FROM (doc -> 'seen')::int), 0::bigint, 'generated columns follow');
SELECT throws_ok($$INSERT INTO shows (doc) SELECT bson_build('_id', 5000 + i, 'film', 1, 'seen', 1) FROM generate_series(1, 100) i$$, '23514', NULL, 'checks hold');
ALTER TABLE films DROP CONSTRAINT few, DROP COLUMN total;
CREATE INDEX ON films ((doc -> 'seen'));
INSERT INTO shows (doc) VALUES ('{_id: 321, film: 2, seen: 1000}');
SET LOCAL enable_seqscan = off;
SELECT is((SELECT count(*) FROM films WHERE doc -> 'seen' > 1000), 1::bigint, 'indexes of the target know the new value');
RESET enable_seqscan;
SELECT is(pg_temp.wrong(), '', 'and all is right');

-- A writer who has rights on the source only
CREATE ROLE derive_writer;
GRANT INSERT, UPDATE, DELETE, SELECT ON shows TO derive_writer;
ALTER TABLE films ENABLE ROW LEVEL SECURITY;
ALTER TABLE films FORCE ROW LEVEL SECURITY;
SET LOCAL ROLE derive_writer;
INSERT INTO shows (doc) VALUES ('{_id: 330, film: 4, seen: 4}');
UPDATE shows SET doc = bson_set(doc, 'film', 5) WHERE _id = 330::bson_value;
SELECT throws_ok('SELECT * FROM films', '42501', NULL, 'somebody who may only write to the source');
RESET ROLE;
SELECT is(pg_temp.wrong(), '', 'writes to it, and what is derived follows');
SELECT is(current_setting('role'), 'none', 'the role is what it was');
ALTER TABLE films DISABLE ROW LEVEL SECURITY;
ALTER TABLE films NO FORCE ROW LEVEL SECURITY;

-- Renames
ALTER TABLE films RENAME TO movies;
ALTER TABLE shows RENAME TO screenings;
ALTER TABLE screenings RENAME COLUMN doc TO document;
INSERT INTO screenings (document) VALUES ('{_id: 340, film: 4, seen: 4}');
ALTER TABLE screenings RENAME COLUMN document TO doc;
ALTER TABLE movies RENAME TO films;
ALTER TABLE screenings RENAME TO shows;
CREATE SCHEMA "el se";
ALTER TABLE shows SET SCHEMA "el se";
INSERT INTO "el se".shows (doc) VALUES ('{_id: 341, film: 4, seen: 4}');
ALTER TABLE "el se".shows SET SCHEMA public;
SELECT is(pg_temp.wrong(), '', 'tables and columns that have other names');

-- Owners
ALTER TABLE shows OWNER TO derive_writer;
SELECT throws_ok($$INSERT INTO shows (doc) VALUES ('{_id: 350, film: 4, seen: 4}')$$, '55000', NULL, 'a source that has another owner is not written to untold');
ALTER TABLE films OWNER TO derive_writer;
INSERT INTO shows (doc) VALUES ('{_id: 351, film: 4, seen: 4}');
SELECT is(pg_temp.wrong(), '', 'once the target has the same owner it is');
ALTER TABLE films OWNER TO CURRENT_USER;
ALTER TABLE shows OWNER TO CURRENT_USER;

-- TRUNCATE
TRUNCATE shows;
SELECT is(pg_temp.wrong(), '', 'TRUNCATE');
INSERT INTO shows (doc) VALUES ('{_id: 1, film: 4, seen: 4}');
SELECT is(pg_temp.wrong(), '', 'and writing again');

-- DROP
SELECT throws_ok('DROP TABLE shows', '2BP01', NULL, 'DROP TABLE of the source needs CASCADE');
SELECT throws_ok('DROP TABLE films', '2BP01', NULL, 'DROP TABLE of the target needs CASCADE');
SAVEPOINT a;
DROP TABLE shows CASCADE;
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgrelid = 'films'::regclass AND tgname LIKE 'zz\_docpatterns\_8%'), 0::bigint, 'with CASCADE no trigger is left on the target');
UPDATE films SET doc = bson_set(doc, 'x', 1);
ROLLBACK TO a;
DROP TABLE films CASCADE;
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgrelid = 'shows'::regclass AND tgname LIKE 'zz\_docpatterns\_8%'), 0::bigint, 'nor on the source');
INSERT INTO shows (doc) VALUES ('{_id: 2, film: 4, seen: 4}');
DROP TABLE shows;

-- A partitioned source, whose partitions have their columns in other orders
CREATE TABLE shows (hall int, _id int, doc bson NOT NULL, PRIMARY KEY (_id, hall)) PARTITION BY LIST (hall);
CREATE TABLE shows_1 PARTITION OF shows FOR VALUES IN (1);
SELECT collection_create('films');
INSERT INTO films (doc) SELECT bson_build('_id', i) FROM generate_series(1, 5) i;
SELECT computed_enable('films', source => 'shows', on_field => 'film', fields => '{n: {$count: {}}, seen: {$sum: "$seen"}}', name => 'totals');
CALL pattern_build('films', 'totals', NULL);
CREATE TABLE shows_2 (note text, doc bson NOT NULL, _id int NOT NULL, hall int NOT NULL);
ALTER TABLE shows_2 DROP COLUMN note;
INSERT INTO shows_2 (doc, _id, hall) SELECT bson_build('film', 1 + i % 3, 'seen', i), i, 2 FROM generate_series(1, 9) i;
ALTER TABLE shows ATTACH PARTITION shows_2 FOR VALUES IN (2);
SELECT is(pg_temp.wrong(), '', 'ATTACH of a partition with rows');
CREATE TABLE shows_3 PARTITION OF shows FOR VALUES IN (3);
INSERT INTO shows SELECT 1 + i % 3, 100 + i, bson_build('film', 1 + i % 5, 'seen', i) FROM generate_series(1, 30) i;
SELECT is(pg_temp.wrong(), '', 'INSERT through the table');
INSERT INTO shows_2 (doc, _id, hall) VALUES ('{film: 4, seen: 3}', 200, 2), ('{film: 5, seen: 3}', 201, 2);
INSERT INTO shows_3 (doc, _id, hall) VALUES ('{film: 4, seen: 3}', 202, 3);
SELECT is(pg_temp.wrong(), '', 'INSERT into partitions');
UPDATE shows SET hall = 1 + hall % 3, doc = bson_set(doc, 'seen', (doc -> 'seen')::int + 1);
SELECT is(pg_temp.wrong(), '', 'UPDATE that moves rows between partitions');
UPDATE shows_2 SET doc = bson_set(doc, 'film', 1);
DELETE FROM shows_1 WHERE _id % 2 = 0;
DELETE FROM shows WHERE _id % 5 = 0;
SELECT is(pg_temp.wrong(), '', 'UPDATE and DELETE of partitions');
TRUNCATE shows_3;
SELECT is(pg_temp.wrong(), '', 'TRUNCATE of a partition');
ALTER TABLE shows DETACH PARTITION shows_2;
SELECT is(pg_temp.wrong(), '', 'DETACH of a partition with rows');
INSERT INTO shows_2 (doc, _id, hall) VALUES ('{film: 4, seen: 3}', 300, 2);
SELECT is(pg_temp.wrong(), '', 'what was a partition is written to');
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgrelid = 'shows_2'::regclass AND tgname LIKE 'zz\_docpatterns%'), 0::bigint, 'and has no triggers of the pattern any more');
SELECT throws_ok($$CREATE TABLE all_shows (LIKE shows) PARTITION BY LIST (_id); ALTER TABLE all_shows ATTACH PARTITION shows DEFAULT$$, '0A000', NULL, 'a source does not become a partition');
SELECT throws_ok($$SELECT computed_enable('films', source => 'shows_1', on_field => 'film', fields => '{m: {$count: {}}}')$$, '42809', NULL, 'and a partition is no source by itself');
SELECT lives_ok($$SELECT pattern_disable('films', 'totals')$$, 'the end');
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgrelid IN ('films'::regclass, 'shows'::regclass, 'shows_1'::regclass, 'shows_3'::regclass) AND tgname LIKE 'zz\_docpatterns\_8%'), 0::bigint, 'leaves no triggers behind');
SELECT is((SELECT count(*) FROM unnest('{films,shows}'::regclass[]) t CROSS JOIN docpatterns._pattern_indexes(t)), 0::bigint, 'nor indexes');
DROP TABLE films, shows, shows_2;

-- Indexes of users stay, and are used
SELECT collection_create('films');
SELECT collection_create('shows');
CREATE INDEX mine ON shows ((doc -> 'film'), (doc -> 'at'));
SELECT computed_enable('films', source => 'shows', on_field => 'film', fields => '{n: {$count: {}}}', name => 'one');
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 'shows'::regclass), 2::bigint, 'an index that begins with the same columns is enough');
SELECT pattern_disable('films', 'one');
SELECT is(to_regclass('mine') IS NOT NULL, true, 'and stays when the pattern ends');
DROP INDEX mine;
SELECT computed_enable('films', source => 'shows', on_field => 'film', fields => '{n: {$count: {}}}', name => 'one');
SELECT computed_enable('films', source => 'shows', on_field => 'film', fields => '{m: {$sum: "$seen"}}', name => 'two');
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 'shows'::regclass), 2::bigint, 'two declarations share one index');
SELECT pattern_disable('films', 'one');
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 'shows'::regclass), 2::bigint, 'which stays while one of them needs it');
INSERT INTO films (doc) VALUES ('{_id: 1}');
INSERT INTO shows (doc) VALUES ('{film: 1, seen: 4}'), ('{film: 1, seen: 5}');
SELECT is((SELECT doc ->> 'm' FROM films), '9', 'and goes on');
SELECT pattern_disable('films', 'two');
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 'shows'::regclass), 1::bigint, 'and goes with the last');
DROP TABLE films, shows;

-- Measurements as a source
SELECT bucket_create('readings', columns => 'sensor int, at timestamptz, s int', group_by => '{sensor}', time_field => 'at', span => '1 hour');
SELECT collection_create('sensors');
INSERT INTO sensors (doc) SELECT bson_build('_id', i) FROM generate_series(1, 3) i;
SELECT computed_enable('sensors', source => 'readings', on_field => 'sensor', fields => '{n: {$count: {}}, total: {$sum: "$s"}}', name => 'totals');
CREATE FUNCTION pg_temp.wrong_sensors() RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(format('%s has %s of %s', t._id, t.doc -> 'n', coalesce(s.n, 0)), ', ')
  FROM sensors t LEFT JOIN (SELECT sensor, count(*) AS n, sum(s) AS total FROM readings GROUP BY 1) s ON s.sensor::bson_value = t._id
  WHERE (t.doc -> 'n')::int IS DISTINCT FROM coalesce(s.n, 0) OR (t.doc -> 'total')::int IS DISTINCT FROM coalesce(s.total, 0)
$$;
CALL pattern_build('sensors', 'totals', NULL);
INSERT INTO readings SELECT 1 + i % 3, '2024-01-01 00:00 UTC'::timestamptz + i * interval '5 minutes', i FROM generate_series(1, 60) i;
SELECT is(pg_temp.wrong_sensors(), NULL, 'INSERT of measurements');
SELECT bucket_pack('readings');
SELECT is(pg_temp.wrong_sensors(), NULL, 'packing changes nothing');
UPDATE readings SET s = s + 1 WHERE sensor = 2;
SELECT is(pg_temp.wrong_sensors(), NULL, 'UPDATE of packed ones');
DELETE FROM readings WHERE at < '2024-01-01 01:30 UTC' AND sensor = 1;
SELECT is(pg_temp.wrong_sensors(), NULL, 'DELETE');
SELECT bucket_resize('readings', span => '2 hours');
SELECT is(pg_temp.wrong_sensors(), NULL, 'another span');
SELECT bucket_drop_before('readings', '2024-01-01 03:00 UTC');
SELECT is(pg_temp.wrong_sensors(), NULL, 'bucket_drop_before');
TRUNCATE readings;
SELECT is(pg_temp.wrong_sensors(), NULL, 'TRUNCATE');
SELECT is((SELECT sum((doc -> 'n')::int) FROM sensors), 0::bigint, 'all is 0');

-- Triggers of users on a table of partitions that has derived fields: what is written to them is not taken for an ordinary write.
CREATE TABLE parted (id int, doc bson, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (0) TO (5);
CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (5) TO (100);
CREATE TABLE feeding (id int PRIMARY KEY, doc bson);
SELECT computed_enable('parted', 'feeding', 'of', '{n: {$count: {}}, least: {$min: "$x"}}'), subset_enable('parted', 'first', 'feeding', 'of', '{x: -1}', 2) \g /dev/null
INSERT INTO parted SELECT i, '{}' FROM generate_series(1, 8) i;
CREATE FUNCTION touches() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.doc := bson_set(NEW.doc, 'touched', true); RETURN NEW; END $$;
CREATE TRIGGER a_touches BEFORE UPDATE ON parted FOR EACH ROW EXECUTE FUNCTION touches();
INSERT INTO feeding SELECT i, bson_build('of', i % 9, 'x', i) FROM generate_series(1, 40) i;
UPDATE feeding SET doc = bson_set(doc, 'x', 5) WHERE id < 9;
DELETE FROM feeding WHERE id > 38;
SELECT is_empty($$SELECT * FROM pattern_check('parted')$$, 'derived fields of partitions with triggers of users');
SELECT is((SELECT string_agg(doc ->> 'n', ' ' ORDER BY id) || ' ' || bool_and((doc -> 'touched')::bool) FROM parted), (SELECT string_agg(n::text, ' ' ORDER BY of) || ' true' FROM (SELECT id % 9 AS of, count(*) AS n FROM feeding WHERE id % 9 > 0 GROUP BY 1) f), 'are what they have to be');

-- A source that is a target itself, before another one: what its own derived fields lead to there is written while the statement is handled.
SELECT collection_create('nodes'), collection_create('roots') \g /dev/null
SELECT computed_enable('nodes', 'nodes', 'parent', '{children: {$count: {}}}'), computed_enable('roots', 'nodes', 'root', '{n: {$count: {}}, most: {$max: "$children"}, sum: {$sum: "$d"}}', name => 'totals') \g /dev/null
INSERT INTO roots (doc) VALUES ('{_id: 1}');
INSERT INTO nodes (doc) VALUES ('{_id: 1, root: 1, d: 1}'), ('{_id: 2, root: 1, d: 2, parent: 1}'), ('{_id: 3, root: 1, d: 3, parent: 1}');
SELECT is((SELECT doc FROM roots), '{_id: 1, n: 3, most: 2, sum: 6}', 'one row is written by the statement and by what it led to');
DELETE FROM nodes WHERE _id = 3;
UPDATE nodes SET doc = bson_set(bson_set(doc, 'parent', 2), 'd', 10);
SELECT is((SELECT doc FROM roots), '{_id: 1, n: 2, most: 2, sum: 20}', 'and again');
SELECT is_empty($$SELECT * FROM pattern_check('nodes') UNION ALL SELECT * FROM pattern_check('roots')$$, 'all of it is true');

SELECT * FROM finish();
ROLLBACK;
