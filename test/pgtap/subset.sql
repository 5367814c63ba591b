-- The contract of the subset pattern: what is refused and how, what every kind of write does, and a seeded random run.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(78);

CREATE FUNCTION pg_temp.true_everywhere(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;
CREATE TABLE p (id int PRIMARY KEY, doc bson);
CREATE TABLE r (id int PRIMARY KEY, doc bson);
CREATE FUNCTION pg_temp.top(k int) RETURNS text LANGUAGE sql AS $$ SELECT doc ->> 'top' FROM p WHERE id = k $$;

-- Signatures
SELECT function_returns('subset_enable', 'text');
SELECT volatility_is(f, 'volatile', f || ' is volatile') FROM unnest(ARRAY['subset_enable', 'subset_split', 'subset_join', 'subset_refresh']) f;

-- Refused options
SELECT throws_ok(format('SELECT subset_enable(''p'', %s)', args), state, NULL, what) FROM (VALUES
  ($$NULL, 'r', 'p', '{n: 1}', 2$$, '22004', 'no field'), ($$'top', NULL, 'p', '{n: 1}', 2$$, '22004', 'no source'), ($$'top', 'r', NULL, '{n: 1}', 2$$, '22004', 'no on_field'),
  ($$'top', 'r', 'p', NULL, 2$$, '22004', 'no order'), ($$'top', 'r', 'p', '{n: 1}', NULL$$, '22004', 'no keep'), ($$'top', 'r', 'p', '{n: 1}', 0$$, '22023', 'keep 0'),
  ($$'top', 'r', 'p', '{n: 1}', 10001$$, '22023', 'too large a keep'), ($$'_id', 'r', 'p', '{n: 1}', 2$$, '22023', 'the field is _id'),
  ($$'top', 'r', 'p', '{n: 1}', 2, count_field => 'top.n'$$, '22023', 'the count is in the field'), ($$'top', 'r', 'p', '{n: 1}', 2, count_field => 'c', count_mode => 'lazy'$$, '22023', 'an unknown mode'),
  ($$'top', 'r', 'p', '{}', 2$$, '22023', 'an empty order'), ($$'top', 'r', 'p', '{n: "up"}', 2$$, '22023', 'an order that is none'), ($$'top', 'r', 'p', '{n: 1}', 2, fields => '{a: 1, b: 0}'$$, '22023', 'a projection that is none'),
  ($$'top', 'r', 'p', '{n: 1}', 2, filter => '{$nope: 1}'$$, '0A000', 'a filter that is none'), ($$'top', 'r', 'p..q', '{n: 1}', 2$$, '22023', 'a bad path')) AS v (args, state, what);
SELECT throws_ok($$SELECT subset_enable(NULL, 'top', 'r', 'p', '{n: 1}', 2)$$, '22004', NULL, 'no table');

SELECT is(subset_enable('p', 'top', 'r', 'p', '{n: -1}', 3, fields => '{n: 1, x: 1}'), 'top', 'enabled');
SELECT throws_ok($$SELECT subset_enable('p', 'other', 'r', 'p', '{n: -1}', 3, name => 'top')$$, '42710', NULL, 'a second declaration of the name');
SELECT throws_ok($$SELECT subset_enable('p', 'top', 'r', 'p', '{n: -1}', 3, name => 'other')$$, '22023', NULL, 'a second declaration of the field');
INSERT INTO p SELECT i, '{}' FROM generate_series(1, 3) i;
SELECT is(pg_temp.top(1), '[]', 'an empty group');

-- Writes
INSERT INTO r SELECT i, bson_build('p', 1, 'n', i) FROM generate_series(1, 5) i;
SELECT is(pg_temp.top(1), '[{"n": 5}, {"n": 4}, {"n": 3}]', 'INSERT');
SELECT ctid AS before FROM p WHERE id = 1 \gset
INSERT INTO r VALUES (6, '{p: 1, n: 0}'), (7, '{p: 1, n: 2.5}');
DELETE FROM r WHERE id = 2;
UPDATE r SET doc = bson_set(doc, 'n', 1.5) WHERE id = 1;
UPDATE r SET doc = bson_set(doc, 'unseen', true) WHERE id IN (3, 4, 5);
SELECT is((SELECT ctid FROM p WHERE id = 1), :'before'::tid, 'what is not shown leaves the row untouched');
COPY r FROM stdin;
8	{"p": 1, "n": 8}
\.
SELECT is(pg_temp.top(1), '[{"n": 8}, {"n": 5}, {"n": 4}]', 'COPY');
INSERT INTO r VALUES (8, '{p: 1, n: 9}'), (9, '{p: 2, n: 9}') ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is(pg_temp.top(1) || pg_temp.top(2), '[{"n": 9}, {"n": 5}, {"n": 4}][{"n": 9}]', 'ON CONFLICT DO UPDATE');
INSERT INTO r VALUES (8, '{p: 2, n: 99}') ON CONFLICT DO NOTHING;
SELECT is(pg_temp.top(2), '[{"n": 9}]', 'ON CONFLICT DO NOTHING');
MERGE INTO r USING (VALUES (8, 1), (20, 2), (5, 3)) AS v (id, what) ON v.id = r.id
  WHEN MATCHED AND what = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET doc = bson_set(doc, 'p', 2) WHEN NOT MATCHED THEN INSERT VALUES (v.id, '{p: 1, n: 20}');
SELECT is(pg_temp.top(1) || pg_temp.top(2), '[{"n": 20}, {"n": 4}, {"n": 3}][{"n": 9}, {"n": 5}]', 'MERGE');
WITH d AS (DELETE FROM r WHERE id = 20 RETURNING doc) INSERT INTO r SELECT 21, bson_set(doc, 'x', 'copy') FROM d;
SELECT is(pg_temp.top(1), '[{"n": 20, "x": "copy"}, {"n": 4}, {"n": 3}]', 'a query of several parts');
SELECT pg_temp.true_everywhere('writes');
UPDATE r SET doc = bson_set(doc, 'x', 'seen') WHERE id = 4;
SELECT is(pg_temp.top(1), '[{"n": 20, "x": "copy"}, {"n": 4, "x": "seen"}, {"n": 3}]', 'what is shown of a row changes');
INSERT INTO r VALUES (30, '{p: 3, n: 1, x: "b"}'), (29, '{p: 3, n: 1.0, x: "a"}'), (31, '{p: 3, n: 1, x: "c"}'), (32, '{p: 3, n: 1, x: "d"}');
SELECT is(pg_temp.top(3), '[{"n": 1.0, "x": "a"}, {"n": 1, "x": "b"}, {"n": 1, "x": "c"}]', 'ties are in the order of the primary key');
UPDATE r SET id = 1 + 27 WHERE id = 32;
SELECT is(pg_temp.top(3), '[{"n": 1, "x": "d"}, {"n": 1.0, "x": "a"}, {"n": 1, "x": "b"}]', 'which may change');
INSERT INTO r VALUES (40, '{p: null, n: 1}'), (41, '{n: 1}'), (42, '{p: 77, n: 1}'), (43, '{p: 1.0, n: 100}'), (44, NULL);
SELECT is(pg_temp.top(1), '[{"n": 100}, {"n": 20, "x": "copy"}, {"n": 4, "x": "seen"}]', 'numbers are equal across types; others belong nowhere');
SELECT throws_ok($$INSERT INTO p VALUES (77, '{top: "mine"}')$$, '55000', NULL, 'what cannot be rows');
INSERT INTO p VALUES (77, '{top: null}');
SELECT is(pg_temp.top(77), '[{"n": 1}]', 'a document that comes after its rows');
UPDATE p SET id = 78 WHERE id = 77;
SELECT is(pg_temp.top(78), '[]', 'a document with another key');
BEGIN;
DELETE FROM r WHERE id = 43;
SAVEPOINT s;
DELETE FROM r WHERE (doc -> 'p') = 1;
SELECT is(pg_temp.top(1), '[]', 'within a transaction');
ROLLBACK TO s;
SELECT is(pg_temp.top(1), '[{"n": 20, "x": "copy"}, {"n": 4, "x": "seen"}, {"n": 3}]', 'after a savepoint');
ROLLBACK;
SELECT is(pg_temp.top(1), '[{"n": 100}, {"n": 20, "x": "copy"}, {"n": 4, "x": "seen"}]', 'after a rollback');
UPDATE p SET doc = '{a: 1, top: []}' WHERE id = 1;
SELECT is((SELECT doc ->> 'a' FROM p WHERE id = 1) || pg_temp.top(1), '1[{"n": 100}, {"n": 20, "x": "copy"}, {"n": 4, "x": "seen"}]', 'the array is put back, the rest is written');
SELECT pg_temp.true_everywhere('more writes');

-- Counts, filters, several at once
SELECT subset_enable('p', 'low', 'r', 'p', '{n: 1}', 2, filter => '{n: {$lt: 50}}', count_field => 'stats.low') \g /dev/null
SELECT subset_enable('p', 'late', 'r', 'p', '{n: 1}', 1, fields => '{"row.n": "$n"}', count_field => 'late_count', count_mode => 'deferred') \g /dev/null
SELECT pattern_repair('p', 'low'), pattern_repair('p', 'late') \g /dev/null
SELECT is((SELECT doc ->> 'stats.low' FROM p WHERE id = 1), '6', 'counted, but for what the filter leaves out');
INSERT INTO r VALUES (50, '{p: 1, n: 49}'), (51, '{p: 1, n: 51}');
SELECT is((SELECT (doc ->> 'stats.low') || ' ' || (doc ->> 'late_count') FROM p WHERE id = 1), '7 7', 'at once, and later');
SELECT pg_temp.true_everywhere('a queued count is no violation');
SELECT is(subset_refresh('p', 'late'), 1::bigint, 'refreshed');
SELECT is((SELECT doc ->> 'late_count' FROM p WHERE id = 1), '9', 'counted');
UPDATE r SET doc = bson_set(doc, 'n', 60) WHERE id = 50;
SELECT is((SELECT doc ->> 'stats.low' FROM p WHERE id = 1), '6', 'a row leaves the filter');
SELECT pg_temp.true_everywhere('counts');

-- Verbs
SELECT throws_ok($$SELECT pattern_alter('p', 'top', '{field: "x"}')$$, '22023', NULL, 'an option that cannot be changed');
SELECT throws_ok($$SELECT pattern_alter('p', 'top', '{keep: 0}')$$, '22023', NULL, 'a value that does not fit');
SELECT pattern_alter('p', 'top', '{keep: 1, order_by: {n: 1}}') \g /dev/null
SELECT is(pg_temp.top(1), '[{"n": 0}]', 'altered');
SELECT pattern_alter('p', 'low', '{filter: null, count_mode: "deferred"}') \g /dev/null
SELECT is((SELECT doc ->> 'stats.low' FROM p WHERE id = 1), '9', 'without the filter');
SELECT pattern_alter('p', 'low', '{count_mode: "immediate"}') \g /dev/null
SET docpatterns.maintain = off;
UPDATE p SET doc = bson_set(bson_set(doc, 'top', 1), 'stats.low', 3) WHERE id = 1;
RESET docpatterns.maintain;
SELECT is((SELECT string_agg(name || ' ' || what || ' ' || found, ', ' ORDER BY name) FROM pattern_check('p')), 'low count "stats.low" 3, top array "top" int', 'checked');
SELECT is(pattern_repair('p', 'top') + pattern_repair('p', 'low'), 2::bigint, 'repaired');
DO $$ BEGIN EXECUTE (SELECT 'DROP INDEX ' || index FROM docpatterns._pattern_indexes('r') WHERE pg_get_indexdef(index) LIKE '%{"n": 1}%' LIMIT 1); END $$;
SELECT throws_ok($$INSERT INTO r VALUES (60, '{p: 1, n: -1}')$$, '55000', NULL, 'without the index');
SELECT is(pattern_repair('p', 'top') + pattern_repair('p', 'low') + pattern_repair('p', 'late'), 0::bigint, 'which repair makes again');
TRUNCATE r;
SELECT is((SELECT count(*) FROM p WHERE doc -> 'top' = '[]' AND doc -> 'stats.low' = 0), 4::bigint, 'TRUNCATE');
SELECT pg_temp.true_everywhere('verbs');
SELECT is(pattern_disable('p', 'top') + pattern_disable('p', 'low') + pattern_disable('p', 'late'), 12::bigint, 'disabled');
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgrelid IN ('p'::regclass, 'r'::regclass)) + (SELECT count(*) FROM pg_index WHERE indrelid = 'r'::regclass), 1::bigint, 'nothing is left behind');
DROP TABLE p, r;

-- Splitting
CREATE TABLE b (id int PRIMARY KEY, doc bson);
INSERT INTO b VALUES (1, '{a: [{v: 2, _id: 5}, {v: 1, _id: 3}]}'), (2, '{a: []}');
SELECT throws_ok($$SELECT subset_split('b', 'a', 'e', 'b', 1)$$, '22023', NULL, 'ids that do not tell the order');
SELECT is(subset_split('b', 'a', 'e', 'b', 1, position_field => 'at'), 2::bigint, 'a position does');
SELECT is((SELECT doc ->> 'a' FROM b WHERE id = 1), '[{"v": 2, "_id": 5}]', 'the first stays');
SELECT is(subset_join('b'), 2::bigint, 'joined');
SELECT is((SELECT doc ->> 'a' FROM b WHERE id = 1), '[{"v": 2, "_id": 5}, {"v": 1, "_id": 3}]', 'as it was');
INSERT INTO b VALUES (3, '{a: [1]}');
SELECT throws_ok($$SELECT subset_split('b', 'a', 'e', 'b', 1, position_field => 'at')$$, '22023', NULL, 'an element that is no document');
DROP TABLE b, e;

-- A seeded random run on a partitioned source, by a writer who owns neither table
CREATE TABLE t (id int PRIMARY KEY, doc bson);
CREATE TABLE s (id int PRIMARY KEY, doc bson) PARTITION BY HASH (id);
CREATE TABLE s0 PARTITION OF s FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE s1 PARTITION OF s FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT subset_enable('t', 'top', 's', 'k', '{n: 1, m: -1}', 3, fields => '{n: 1, m: 1}', count_field => 'c') \g /dev/null
CREATE ROLE subset_user;
GRANT SELECT, INSERT, UPDATE, DELETE ON t, s TO subset_user;
SET ROLE subset_user;
SELECT setseed(0.5) \g /dev/null
DO $$
DECLARE i int;
BEGIN
  FOR i IN 1 .. 400 LOOP
    CASE floor(random() * 8)
      WHEN 0, 1, 2 THEN INSERT INTO s SELECT i * 10 + j, bson_build('k', floor(random() * 6)::int, 'n', floor(random() * 5)::int, 'm', floor(random() * 5)::int) FROM generate_series(0, floor(random() * 3)::int) j;
      WHEN 3 THEN UPDATE s SET doc = bson_set(doc, 'n', floor(random() * 5)::int) WHERE id % 7 = floor(random() * 7)::int;
      WHEN 4 THEN UPDATE s SET doc = bson_set(doc, 'k', floor(random() * 6)::int) WHERE id % 31 = floor(random() * 31)::int;
      WHEN 5 THEN DELETE FROM s WHERE id % 17 = floor(random() * 17)::int;
      WHEN 6 THEN INSERT INTO t VALUES (floor(random() * 6), '{}') ON CONFLICT DO NOTHING;
      ELSE DELETE FROM t WHERE id = floor(random() * 20)::int;
    END CASE;
  END LOOP;
END $$;
RESET ROLE;
SELECT is_empty($$SELECT t.id, t.doc ->> 'top', (t.doc ->> 'c')::bigint FROM t EXCEPT
  SELECT t.id, coalesce((SELECT bson_agg(bson_build('n', q.doc -> 'n', 'm', q.doc -> 'm') ORDER BY place)
    FROM (SELECT doc, row_number() OVER (ORDER BY doc -> 'n', doc -> 'm' DESC, id) AS place FROM s WHERE doc -> 'k' = t.id) q WHERE place <= 3), '[]')::text,
    (SELECT count(*) FROM s WHERE doc -> 'k' = t.id) FROM t$$, 'seed 0.5: as plain SQL has it');
SELECT pg_temp.true_everywhere('random');
CREATE FUNCTION pg_temp.group_locks(insert text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE insert;
  RETURN EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory');
END $$;
SELECT results_eq($$SELECT pg_temp.group_locks('INSERT INTO t SELECT id, ''{}'' FROM t ON CONFLICT DO NOTHING'), pg_temp.group_locks('INSERT INTO t VALUES (77, ''{}'')')$$,
  'VALUES (false, true)', 'only rows that were inserted lock their groups');
DROP TABLE t, s CASCADE;

-- what new elements cost, and how long old ones are remembered
CREATE TABLE t (id int PRIMARY KEY, doc bson);
CREATE TABLE s (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, doc bson);
INSERT INTO t VALUES (1, '{}');
INSERT INTO s SELECT i, bson_build('k', 1, 'n', i, 'm', i) FROM generate_series(1, 5000) i;
SELECT setval('s_id_seq', 6000) \g /dev/null
SELECT subset_enable('t', 'top', 's', 'k', '{n: -1}', 4, fields => '{n: 1, m: 1}') \g /dev/null
CALL pattern_build('t');
ANALYZE s;
CREATE FUNCTION pg_temp.rows_read(command text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  before bigint := pg_stat_get_xact_tuples_returned('s'::regclass) + pg_stat_get_xact_tuples_fetched('s'::regclass);
BEGIN
  EXECUTE command;
  RETURN pg_stat_get_xact_tuples_returned('s'::regclass) + pg_stat_get_xact_tuples_fetched('s'::regclass) - before;
END $$;
SELECT cmp_ok(pg_temp.rows_read($$UPDATE t SET doc = '{top: [{n: 5000, m: 5000}, {n: 7, m: 7}, {n: 6000, m: 1}]}'$$), '<', 100::bigint, 'a new element costs no look at its group');
SELECT is(doc ->> 'top', '[{"n": 6000, "m": 1}, {"n": 5000, "m": 5000}, {"n": 4999, "m": 4999}, {"n": 4998, "m": 4998}]', 'and becomes a row, what is there does not') FROM t;
SET session_replication_role = replica;
INSERT INTO t_top_removed (key, delta, queued_at) SELECT 1 + i % 2, bson_build('order', bson_array(-i)), now() - interval '31 days' * (i <= 100)::int FROM generate_series(1, 20300) i;
RESET session_replication_role;
SELECT setval(pg_get_serial_sequence('t_top_removed', 'id'), 256 * 100 - 1) \g /dev/null
DELETE FROM s WHERE id = 5000;
SELECT results_eq('SELECT key::int, count(*) FROM t_top_removed GROUP BY key ORDER BY key', 'VALUES (1, 10000::bigint), (2, 10100)', 'the last 10,000 of a document are remembered');
SELECT is_empty($$SELECT FROM t_top_removed WHERE queued_at < now() - interval '30 days'$$, 'for 30 days');
SELECT pg_temp.true_everywhere('old copies');
DROP TABLE t, s CASCADE;
DROP ROLE subset_user;
SELECT * FROM finish();
