-- Statements that change measurements and insert others while they do: each has to do to a relation of measurements what it does
-- to a plain table, with measurements that wait, that are packed, or both.
SET client_min_messages = warning;
SET timezone = 'UTC';

CREATE TABLE states (fill text);
INSERT INTO states VALUES ('SELECT fill(1000), pack()'), ('SELECT fill(30)'), ('SELECT fill(1000), pack(), fill(30)');

CREATE TABLE commands (command text);
INSERT INTO commands VALUES
  ('WITH w AS (UPDATE t SET id = id + 100 RETURNING *) INSERT INTO t SELECT * FROM w'),
  ('WITH w AS (UPDATE t SET id = id + 100 RETURNING *) INSERT INTO t SELECT id - 100, ts, -v FROM w'),
  ('WITH w AS (UPDATE t SET id = id + 100 RETURNING *) INSERT INTO t SELECT id, ts, 0 FROM w WHERE ts < ''2024-01-01 00:00:02'' LIMIT 1'),
  ('WITH w AS (DELETE FROM t RETURNING *) INSERT INTO t SELECT * FROM w'),
  ('WITH w AS (INSERT INTO t SELECT 1, ts, v FROM t RETURNING *) UPDATE t SET v = t.v + 1 FROM w WHERE w.ts = t.ts AND w.v = t.v'),
  ('WITH w AS (INSERT INTO t SELECT 1, ts, v FROM t RETURNING *) DELETE FROM t USING w WHERE w.ts = t.ts'),
  ('WITH w AS (UPDATE t SET id = 2 WHERE id = 1 RETURNING *), x AS (INSERT INTO t SELECT id, ts, -v FROM w RETURNING *) INSERT INTO t SELECT 0, ts, v FROM x'),
  ('WITH w AS (UPDATE t SET v = v + 1 WHERE id = 1), x AS (UPDATE t SET v = v + 2 WHERE id = 2) DELETE FROM t WHERE id = 0'),
  ('UPDATE t SET id = inserted(id + 5, v)'),
  ('UPDATE t SET v = inserted(id, v)'),
  ('UPDATE t SET id = 5, v = inserted(5, v)'),
  ('DELETE FROM t WHERE inserted(id, v) = 1'),
  ('DELETE FROM t WHERE inserted(id, 0) = 1'),
  ('INSERT INTO t SELECT inserted(id, v), ts, v FROM t'),
  ('UPDATE t SET v = v + packed()'),
  -- what a plain table refuses, too
  ('UPDATE t SET v = updated(id)'),
  ('DELETE FROM t WHERE updated(1) = 1 AND id = 1'),
  ('UPDATE t SET v = updated(1) WHERE id = 2');

-- What a command makes of a state, or its SQLSTATE.
CREATE FUNCTION outcome(fill text, command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
  BEGIN
    EXECUTE fill;
    EXECUTE command;
    SELECT concat_ws(' ', count(*), sum(id), sum(v), md5(string_agg(concat_ws(' ', id, ts, v), ',' ORDER BY id, ts, v))) INTO result FROM t;
    IF EXISTS (SELECT FROM pattern_check()) THEN result := 'pattern_check has something to report'; END IF;
    RAISE 'undo' USING ERRCODE = 'UNDO0';
  EXCEPTION WHEN SQLSTATE 'UNDO0' THEN NULL; WHEN OTHERS THEN result := SQLSTATE;
  END;
  RETURN result;
END $$;
SET check_function_bodies = off;
CREATE FUNCTION inserted(i int, v float8) RETURNS int LANGUAGE plpgsql AS $$
BEGIN INSERT INTO t VALUES (i, timestamptz '2024-01-01' + v * interval '1 second', 1); RETURN i; END $$;
CREATE FUNCTION updated(i int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN UPDATE t SET v = v + 1 WHERE id = i; RETURN i; END $$;

CREATE FUNCTION fill(n int) RETURNS void LANGUAGE sql AS $$
INSERT INTO t SELECT i % 3, timestamptz '2024-01-01' + i * interval '1 second', i FROM generate_series(1, n) i $$;
CREATE FUNCTION packed() RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN INSERT INTO t SELECT 1, '2024-01-01', i FROM generate_series(1, 5) i; PERFORM pack(); RETURN 1; END $$;

CREATE TABLE t (id int, ts timestamptz, v float8);
CREATE FUNCTION pack() RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';
CREATE TABLE plain AS SELECT fill, command, outcome(fill, command) FROM states, commands;
DROP TABLE t;
SELECT bucket_create('t', columns => 'id int, ts timestamptz, v float8', group_by => '{id}', time_field => 'ts', max_count => 50) \g /dev/null
CREATE OR REPLACE FUNCTION pack() RETURNS bigint LANGUAGE sql AS $$ SELECT bucket_pack('t') $$;

SELECT plan((SELECT count(*) FROM plain)::int + 1);
SELECT is(outcome(fill, command), outcome, command || ' after ' || fill) FROM plain;
SELECT is((SELECT array_agg(DISTINCT outcome) FROM plain WHERE outcome !~ ' '), '{27000}', 'what a plain table refuses');
DROP FOREIGN TABLE t;
SELECT * FROM finish();
