-- What happens around relations of measurements: savepoints in the midst of loading and packing, cursors and prepared statements that
-- outlive changes, foreign keys, triggers of users, names that change, columns that come, input that is refused.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(56);

CREATE FUNCTION twin_differs(rel regclass, twin regclass) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
  EXECUTE format('SELECT (SELECT count(*) FROM (SELECT * FROM %1$s EXCEPT ALL SELECT * FROM %2$s) x) + (SELECT count(*) FROM (SELECT * FROM %2$s EXCEPT ALL SELECT * FROM %1$s) x)', rel, twin) INTO n;
  RETURN n;
END $$;
SELECT bucket_create('readings', columns => 'g int, ts timestamptz, v float8, note text', group_by => '{g}', time_field => 'ts', span => '1 hour', max_count => 100) \g /dev/null

-- Savepoints: bulk loads and packings that are undone, and what comes after them.
CREATE TABLE twin (g int, ts timestamptz, v float8, note text);
BEGIN;
INSERT INTO readings SELECT i % 3, timestamptz '2024-01-01' + i * interval '1 min', i, 'a' FROM generate_series(1, 1500) i;
SAVEPOINT a;
INSERT INTO readings SELECT i % 3, timestamptz '2024-01-01' + i * interval '1 min', i, 'b' FROM generate_series(1, 1500) i;
INSERT INTO readings VALUES (1, '2024-01-01 00:30', 5, 'single');
SAVEPOINT b;
SELECT bucket_pack('readings') \g /dev/null
UPDATE readings SET v = 0 WHERE note = 'b';
ROLLBACK TO b;
SELECT is((SELECT count(*) FROM readings WHERE note = 'b' AND v > 0), 1500::bigint, 'a packing and an UPDATE are undone');
ROLLBACK TO a;
SELECT results_eq('SELECT count(*), min(note), max(note) FROM readings', $$VALUES (1500::bigint, 'a', 'a')$$, 'a bulk load is undone');
DELETE FROM readings WHERE g = 1;
SAVEPOINT c;
DELETE FROM readings;
ROLLBACK TO c;
INSERT INTO readings VALUES (1, '2024-01-01 00:30', 5, 'after');
SELECT bucket_pack('readings') \g /dev/null
COMMIT;
INSERT INTO twin SELECT i % 3, timestamptz '2024-01-01' + i * interval '1 min', i, 'a' FROM generate_series(1, 1500) i WHERE i % 3 <> 1 UNION ALL SELECT 1, '2024-01-01 00:30', 5, 'after';
SELECT is(twin_differs('readings', 'twin'), 0::bigint, 'what is left is what was not undone');
SELECT is_empty('SELECT * FROM pattern_check()', 'and is true');

-- An error in the midst of a bulk load leaves nothing.
SELECT throws_ok($$INSERT INTO readings SELECT 1, timestamptz '2024-02-01' + i * interval '1 s', 1 / (i - 1999), 'x' FROM generate_series(1, 2000) i$$, '22012', NULL, 'a bulk load fails at its end');
SELECT is(twin_differs('readings', 'twin'), 0::bigint, 'and leaves nothing');
DO $$
BEGIN
  FOR i IN 1 .. 30 LOOP
    BEGIN
      INSERT INTO readings SELECT 1, timestamptz '2024-02-01' + j * interval '1 s', j, 'x' FROM generate_series(1, 1000 + i) j;
      PERFORM bucket_pack('readings');
      UPDATE readings SET v = -1 WHERE note = 'x' AND v < 10;
      DELETE FROM readings WHERE note = 'a' AND v < 5 * i;
      RAISE EXCEPTION 'undo';
    EXCEPTION WHEN raise_exception THEN NULL;
    END;
  END LOOP;
END $$;
SELECT is(twin_differs('readings', 'twin'), 0::bigint, 'nor do blocks that end with an exception');

-- Cursors see what was there when they were opened, whatever packing, changes and other spans come between.
BEGIN;
INSERT INTO readings SELECT 2, timestamptz '2024-01-03' + i * interval '1 min', i, 'cursor' FROM generate_series(1, 20) i;
INSERT INTO twin SELECT 2, timestamptz '2024-01-03' + i * interval '1 min', i, 'cursor' FROM generate_series(1, 20) i;
DECLARE c1 CURSOR FOR SELECT * FROM readings;
DECLARE c2 CURSOR FOR SELECT v FROM readings WHERE g = 2 ORDER BY ts DESC;
DECLARE c3 SCROLL CURSOR FOR SELECT * FROM readings WHERE g = 2 ORDER BY ts;
DECLARE c4 CURSOR WITH HOLD FOR SELECT g, count(*) FROM readings GROUP BY g;
FETCH 7 FROM c1 \g /dev/null
FETCH 7 FROM c2 \g /dev/null
FETCH 7 FROM c3 \g /dev/null
SELECT bucket_pack('readings') \g /dev/null
UPDATE readings SET v = v + 10000 WHERE g = 2;
DELETE FROM readings WHERE g = 0;
INSERT INTO readings SELECT 2, timestamptz '2024-01-04' + i * interval '1 min', i, 'new' FROM generate_series(1, 1200) i;
CREATE TEMP TABLE seen (g int, ts timestamptz, v float8, note text);
CREATE FUNCTION drain(c refcursor) RETURNS SETOF readings LANGUAGE plpgsql AS $$
DECLARE r readings;
BEGIN
  LOOP
    FETCH c INTO r;
    EXIT WHEN NOT FOUND;
    RETURN NEXT r;
  END LOOP;
END $$;
SELECT is((SELECT count(*) FROM drain('c1')), (SELECT count(*) - 7 FROM twin), 'a cursor goes on over a packing');
SELECT is((SELECT count(*) FROM drain('c3') d WHERE d.v < 10000 AND d.note <> 'new'), (SELECT count(*) - 7 FROM twin WHERE g = 2), 'one in order, too');
MOVE ABSOLUTE 0 c3;
SELECT is((SELECT count(*) FROM drain('c3') d WHERE d.v < 10000 AND d.note <> 'new'), (SELECT count(*) FROM twin WHERE g = 2), 'and from its beginning');
SELECT bucket_resize('readings', span => '1 day') \g /dev/null
MOVE ABSOLUTE 0 c3;
SELECT is((SELECT count(*) FROM drain('c3') d WHERE d.v < 10000 AND d.note <> 'new'), (SELECT count(*) FROM twin WHERE g = 2), 'a cursor begins anew after other spans');
SELECT is((SELECT count(*) FROM drain('c2')), (SELECT count(*) - 7 FROM twin WHERE g = 2), 'another goes on over other spans');
ROLLBACK;
SELECT is(twin_differs('readings', 'twin'), 0::bigint, 'all was undone');

-- Prepared statements over DDL.
PREPARE q AS SELECT count(*), sum(v)::bigint FROM readings WHERE g = $1 AND ts >= $2;
PREPARE i (int, timestamptz, float8) AS INSERT INTO readings (g, ts, v, note) VALUES ($1, $2, $3, 'prepared');
PREPARE u (int) AS UPDATE readings SET v = v + 1 WHERE g = $1 AND note = 'prepared';
PREPARE d (int) AS DELETE FROM readings WHERE g = $1 AND note = 'prepared';
CREATE TEMP TABLE said (n int GENERATED ALWAYS AS IDENTITY, count bigint, sum bigint);
CREATE PROCEDURE again() LANGUAGE plpgsql AS $$
BEGIN
  FOR k IN 1 .. 7 LOOP
    EXECUTE 'EXECUTE i(9, ''2024-01-01 00:00'', 1)';
    EXECUTE 'EXECUTE u(9)';
  END LOOP;
END $$;
CALL again();
SELECT results_eq('EXECUTE q(9, ''2023-01-01'')', 'VALUES (7::bigint, 35::bigint)', 'prepared statements');
SELECT bucket_resize('readings', span => '1 day', max_count => 3) \g /dev/null
SELECT results_eq('EXECUTE q(9, ''2023-01-01'')', 'VALUES (7::bigint, 35::bigint)', 'after other spans');
SELECT bucket_add_column('readings', 'more', 'int');
CALL again();
SELECT results_eq('EXECUTE q(9, ''2023-01-01'')', 'VALUES (14::bigint, 119::bigint)', 'and another column');
ALTER FOREIGN TABLE readings RENAME TO lectures;
ALTER FOREIGN TABLE lectures RENAME TO readings;
EXECUTE d(9);
SELECT results_eq('EXECUTE q(9, ''2023-01-01'')', 'VALUES (0::bigint, NULL::bigint)', 'and other names');
SELECT bucket_resize('readings', span => '1 hour', max_count => 100) \g /dev/null
SELECT is_empty('SELECT * FROM pattern_check()', 'nothing to report');
DEALLOCATE ALL;

-- Foreign keys from the group column, on both tables beneath.
CREATE TABLE sensors (id int PRIMARY KEY);
INSERT INTO sensors SELECT DISTINCT g FROM readings;
ALTER TABLE readings_packed ADD FOREIGN KEY (g) REFERENCES sensors ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE readings_recent ADD FOREIGN KEY (g) REFERENCES sensors ON DELETE CASCADE ON UPDATE CASCADE;
SELECT throws_ok($$INSERT INTO readings (g, ts, v) VALUES (99, '2024-01-01', 1)$$, '23503', NULL, 'a measurement of no sensor');
SELECT throws_ok($$INSERT INTO readings (g, ts, v) SELECT 99, timestamptz '2024-01-01' + i * interval '1 s', 1 FROM generate_series(1, 1500) i$$, '23503', NULL, 'nor many');
SELECT throws_ok($$UPDATE readings SET g = 99 WHERE g = 0$$, '23503', NULL, 'nor by UPDATE');
SELECT throws_ok($$COPY readings (g, ts, v) FROM PROGRAM 'printf "99\t2024-01-01\t1\n"'$$, '23503', NULL, 'nor by COPY');
SELECT throws_ok($$COPY readings (g, ts, v) FROM PROGRAM 'awk "BEGIN { for (i = 0; i < 1500; i++) print 99 \"\t2024-01-01\t\" i }"'$$, '23503', NULL, 'nor by a long one');
INSERT INTO readings (g, ts, v) VALUES (2, '2024-01-05', 1);
INSERT INTO readings (g, ts, v) SELECT 2, timestamptz '2024-01-06' + i * interval '1 s', 1 FROM generate_series(1, 1500) i;
UPDATE sensors SET id = 22 WHERE id = 2;
SELECT is((SELECT count(*) FROM readings WHERE g = 22), 2001::bigint, 'ON UPDATE CASCADE takes packed and waiting ones along');
DELETE FROM sensors WHERE id = 22;
SELECT is((SELECT count(*) FROM readings WHERE g = 22), 0::bigint, 'ON DELETE CASCADE, too');
SELECT is((SELECT count(*) FROM readings), (SELECT count(*) FROM twin WHERE g <> 2), 'and no others');
SELECT is_empty('SELECT * FROM pattern_check()', 'nothing to report');
DELETE FROM twin WHERE g = 2;
ALTER TABLE readings_packed DROP CONSTRAINT readings_packed_g_fkey; ALTER TABLE readings_recent DROP CONSTRAINT readings_recent_g_fkey;
ALTER TABLE readings_packed ADD FOREIGN KEY (g) REFERENCES sensors;
ALTER TABLE readings_recent ADD FOREIGN KEY (g) REFERENCES sensors DEFERRABLE INITIALLY DEFERRED;
SELECT throws_ok('DELETE FROM sensors WHERE id = 0', '23503', NULL, 'RESTRICT: a sensor with measurements stays');
BEGIN;
INSERT INTO readings (g, ts, v) VALUES (7, '2024-01-05', 1);
INSERT INTO sensors VALUES (7);
COMMIT;
SELECT is((SELECT count(*) FROM readings WHERE g = 7), 1::bigint, 'a deferred key is looked at at the end');
DELETE FROM readings WHERE g = 7;
DELETE FROM sensors WHERE id = 7;
SELECT is((SELECT count(*) FROM sensors WHERE id = 7), 0::bigint, 'without measurements it goes');
SELECT bucket_pack('readings') \g /dev/null
ALTER TABLE readings_packed DROP CONSTRAINT readings_packed_g_fkey; ALTER TABLE readings_recent DROP CONSTRAINT readings_recent_g_fkey;
DROP TABLE sensors;

-- Triggers of users.
CREATE TABLE log (what text, n bigint);
CREATE FUNCTION change_it() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RETURN CASE WHEN OLD.note = 'stay' THEN NULL ELSE OLD END;
  END IF;
  IF NEW.v < 0 THEN RETURN NULL; END IF;
  NEW.note := coalesce(NEW.note, 'by trigger');
  RETURN NEW;
END $$;
CREATE FUNCTION count_it() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO log VALUES (TG_WHEN || ' ' || TG_OP, (SELECT count(*) FROM readings));
  RETURN NULL;
END $$;
TRUNCATE readings;
CREATE TRIGGER b BEFORE INSERT OR UPDATE OR DELETE ON readings FOR EACH ROW EXECUTE FUNCTION change_it();
CREATE TRIGGER sb BEFORE INSERT OR UPDATE OR DELETE ON readings FOR EACH STATEMENT EXECUTE FUNCTION count_it();
CREATE TRIGGER sa AFTER INSERT OR UPDATE OR DELETE ON readings FOR EACH STATEMENT EXECUTE FUNCTION count_it();
INSERT INTO readings (g, ts, v) SELECT 1, timestamptz '2024-01-01' + i * interval '1 min', i - 100 FROM generate_series(0, 1599) i;
SELECT results_eq('SELECT count(*), min(v)::int, min(note) FROM readings', $$VALUES (1500::bigint, 0, 'by trigger')$$, 'BEFORE ROW triggers change and drop rows');
SELECT results_eq('SELECT what, n FROM log', $$VALUES ('BEFORE INSERT', 0::bigint), ('AFTER INSERT', 1500)$$, 'statement triggers see before and after');
SELECT bucket_pack('readings') \g /dev/null
TRUNCATE log;
UPDATE readings SET note = CASE WHEN v < 10 THEN 'stay' ELSE note END, v = CASE WHEN v = 20 THEN -1 ELSE v END WHERE v < 100;
SELECT results_eq($$SELECT count(*), count(*) FILTER (WHERE note = 'stay'), count(*) FILTER (WHERE v = 20) FROM readings$$, 'VALUES (1500::bigint, 10::bigint, 1::bigint)', 'and of an UPDATE of packed ones');
DELETE FROM readings WHERE v < 100;
SELECT results_eq('SELECT count(*), max(v)::int FROM readings WHERE v < 100', 'VALUES (10::bigint, 9)', 'and of a DELETE');
SELECT results_eq('SELECT what, n FROM log', $$VALUES ('BEFORE UPDATE', 1500::bigint), ('AFTER UPDATE', 1500), ('BEFORE DELETE', 1500), ('AFTER DELETE', 1410)$$, 'statement triggers again');
DROP TRIGGER b ON readings; DROP TRIGGER sb ON readings; DROP TRIGGER sa ON readings;
CREATE FUNCTION cascade_it() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.v = 5 THEN DELETE FROM readings WHERE v = 6; END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER c BEFORE DELETE ON readings FOR EACH ROW EXECUTE FUNCTION cascade_it();
SELECT throws_ok('DELETE FROM readings WHERE v BETWEEN 5 AND 6', '27000', NULL, 'a BEFORE trigger that changes the bucket of the row is told so');
DROP TRIGGER c ON readings;
CREATE TRIGGER c AFTER DELETE ON readings FOR EACH ROW EXECUTE FUNCTION cascade_it();
DELETE FROM readings WHERE v = 5;
SELECT is((SELECT array_agg(v::int ORDER BY v) FROM readings WHERE v < 10), ARRAY[0, 1, 2, 3, 4, 7, 8, 9], 'an AFTER trigger may');
DROP TRIGGER c ON readings;
SELECT throws_ok('CREATE TRIGGER t AFTER INSERT ON readings REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION count_it()', '42809', NULL, 'transition tables are not for foreign tables');
SELECT is_empty('SELECT * FROM pattern_check()', 'nothing to report');

-- Names and columns.
ALTER FOREIGN TABLE readings RENAME COLUMN g TO "the Group";
ALTER FOREIGN TABLE readings RENAME COLUMN ts TO "select";
ALTER TABLE readings_packed RENAME COLUMN data TO bytes;
ALTER TABLE readings_recent RENAME COLUMN ts TO moment;
ALTER TABLE readings_recent RENAME TO waiting;
INSERT INTO readings VALUES (1, '2024-03-01', 1), (2, '2024-03-01', 1);
SELECT is_empty('SELECT * FROM pattern_check()', 'pattern_check after columns were renamed');
SELECT is(bucket_pack('readings'), 2::bigint, 'bucket_pack, too');
SELECT is((SELECT count(*) FROM readings_buckets WHERE g = 2), 1::bigint, 'and the documents');
SELECT throws_ok(c, '0A000', NULL, c) FROM unnest(ARRAY['ALTER FOREIGN TABLE readings ADD COLUMN x int', 'ALTER TABLE readings DROP COLUMN note', 'ALTER FOREIGN TABLE readings ALTER COLUMN v TYPE int']) c;
BEGIN;
ALTER TABLE readings_packed ADD COLUMN x int;
SELECT throws_ok('SELECT count(*) FROM readings', '55000', NULL, 'a column that was put beneath it by hand');
ROLLBACK;
SELECT throws_ok('DROP TABLE readings_packed CASCADE', '2BP01', NULL, 'the table of buckets goes with the relation only');
BEGIN;
DROP INDEX readings_packed_g_start_idx;
SELECT results_eq('SELECT what FROM pattern_check()', $$VALUES ('index of public.readings_packed')$$, 'a missing index is found');
SELECT pattern_repair('readings') \g /dev/null
SELECT is_empty('SELECT * FROM pattern_check()', 'and made anew');
ROLLBACK;
CREATE SCHEMA bucket_events;
ALTER FOREIGN TABLE readings SET SCHEMA bucket_events;
SELECT is((SELECT count(*) FROM bucket_events.readings), 1410::bigint, 'in another schema');
DROP SCHEMA bucket_events CASCADE;
SELECT is_empty($$SELECT relname FROM pg_class WHERE relname ~ '^(readings|waiting)'$$, 'DROP SCHEMA CASCADE takes what lies beneath along, wherever it is');

-- Pages: a column more, and a page that becomes too large.
SELECT bucket_create('pages', columns => 'who text, n int, note text', group_by => '{who}', span => NULL, max_count => 10, max_bytes => 1000) \g /dev/null
INSERT INTO pages SELECT 'a', i FROM generate_series(1, 25) i;
SELECT bucket_pack('pages') \g /dev/null
INSERT INTO pages VALUES ('a', 26), ('a', 27);
SELECT bucket_add_column('pages', 'more', 'int');
INSERT INTO pages VALUES ('a', 28, NULL, 7);
SELECT bucket_pack('pages') \g /dev/null
SELECT results_eq('SELECT n, more FROM pages WHERE n > 25', 'VALUES (26, NULL), (27, NULL), (28, 7)', 'pages take a column more, and the order stays');
UPDATE pages SET note = (SELECT string_agg(md5((n * 100 + i)::text), '') FROM generate_series(1, 20) i) WHERE n <= 10;
SELECT is_empty('SELECT * FROM pattern_check()', 'a page that is cut gives the rest a number of its own');
SELECT is((SELECT sum(n) FROM pages), 406::bigint, 'nothing is lost');
DROP FOREIGN TABLE pages;

-- Dead entries in an index, and a scan in order that is told of them.
SELECT bucket_create('readings', columns => 'g int, ts timestamptz, w text', group_by => '{g}', time_field => 'ts', span => '10 s') \g /dev/null
INSERT INTO readings SELECT i % 2, timestamptz '2024-01-01' + i * interval '1 s', 'word' || i FROM generate_series(1, 9000) i;
UPDATE readings SET w = w || '!' WHERE extract(minute FROM ts)::int % 2 = 0;
DELETE FROM readings WHERE extract(minute FROM ts)::int % 3 = 0;
SELECT is((SELECT count(*) FROM (SELECT w || repeat(w, 20) FROM readings ORDER BY g, ts OFFSET 0) q), (SELECT count(*) FROM readings), 'a scan over dead entries, ' || n) FROM generate_series(1, 2) n;
DROP FOREIGN TABLE readings;

DROP TABLE twin, log;
DROP FUNCTION change_it, count_it, cascade_it, twin_differs;
DROP PROCEDURE again;
SELECT * FROM finish();
