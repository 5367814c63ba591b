-- The contract of the approximation pattern: what is refused and how, what every form does, what every kind of write does, and
-- that nothing is counted too often or too seldom.
SET client_min_messages = warning;
SET timezone = 'UTC';
\pset fieldsep '\n'
SELECT plan(186);
CREATE FUNCTION pg_temp.true_everywhere(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;
CREATE TABLE t (id int PRIMARY KEY, doc bson);

-- Signatures
SELECT function_returns(f, r, f || ' returns ' || r) FROM (VALUES ('approximation_enable', 'text'), ('approximation_add', 'boolean'), ('approximation_read', 'record'), ('approximation_sync', 'bigint')) AS v (f, r);
SELECT volatility_is(f, v, f || ' is ' || v) FROM (VALUES ('approximation_enable', 'volatile'), ('approximation_add', 'volatile'), ('approximation_read', 'stable'), ('approximation_sync', 'volatile')) AS w (f, v);

-- Refused options
SELECT throws_ok(format('SELECT approximation_enable(''t'', %s)', args), state, NULL, what) FROM (VALUES
  ($$NULL, step => 2$$, '22004', 'no field'), ($$'a'$$, '22023', 'no form'), ($$'a', step => 2, error => 0.1$$, '22023', 'two forms'),
  ($$'a', step => 0$$, '22023', 'step 0'), ($$'a', step => -1$$, '22023', 'a negative step'), ($$'a', step => 1000000000001$$, '22023', 'too large a step'),
  ($$'a', error => 0$$, '22023', 'error 0'), ($$'a', error => 0.6$$, '22023', 'too large an error'), ($$'a', error => 'NaN'$$, '22023', 'an error that is no number'),
  ($$'a', threshold => '0'$$, '22023', 'threshold 0'), ($$'a', threshold => '-1'$$, '22023', 'a negative threshold'), ($$'a', threshold => 'much'$$, '22023', 'a threshold that is no number'),
  ($$'a', threshold => '%'$$, '22023', 'a percentage without a number'), ($$'a', threshold => ''$$, '22023', 'an empty threshold'), ($$'a', threshold => 'Infinity'$$, '22023', 'an infinite threshold'),
  ($$'a', slots => 0$$, '22023', 'no slots'), ($$'a', slots => 10001$$, '22023', 'too many slots'), ($$'_id', step => 2$$, '22023', 'the key'), ($$'a..b', step => 2$$, '22023', 'a bad path'),
  ($$'a', step => 2, doc_column => 'nope'$$, '42703', 'a column that does not exist')) AS v (args, state, what);
CREATE TABLE no_key (id int, doc bson);
CREATE VIEW a_view AS SELECT * FROM t;
SELECT throws_ok(format('SELECT approximation_enable(%L, ''a'', step => 2)', rel), state, NULL, what) FROM (VALUES ('no_key', '55000', 'no primary key'), ('a_view', '42809', 'a view')) AS v (rel, state, what);
SELECT throws_ok($$SELECT approximation_enable(NULL, 'a', step => 2)$$, '22004', NULL, 'no table');
SELECT throws_ok($$SELECT approximation_add('t', 1, 1)$$, '42704', NULL, 'no such pattern');

-- Step
SELECT is(approximation_enable('t', 'a', step => 10), 'a', 'the name is the field');
SELECT throws_ok($$SELECT approximation_enable('t', 'b', step => 2, name => 'a')$$, '42710', NULL, 'a second declaration of the name');
SELECT throws_ok($$SELECT approximation_enable('t', 'a.b', step => 2)$$, '22023', NULL, 'a second declaration of the field');
INSERT INTO t VALUES (1, '{}'), (2, NULL), (3, '{a: 5}'), (4, '{a: null}');
SELECT throws_ok($$INSERT INTO t VALUES (9, '{a: "many"}')$$, '23514', NULL, 'the field is a number');
SELECT throws_ok($$UPDATE t SET doc = '{a: []}' WHERE id = 1$$, '23514', NULL, 'also after an update');
SELECT throws_ok(format('SELECT approximation_add(%s)', args), state, NULL, what) FROM (VALUES
  ($$'t', NULL::int, 1$$, '22004', 'no key'), ($$'t', 1, NULL::int$$, '22004', 'no amount'), ($$NULL, 1, 1$$, '22004', 'no table'), ($$'t', 1, 'x'::text$$, '22P02', 'an amount that is no number'),
  ($$'t', 1, 'NaN'::float8$$, '22023', 'NaN'), ($$'t', 1, 'Infinity'::float8$$, '22023', 'infinity'), ($$'t', 99, 10$$, 'P0002', 'no such document'),
  ($$'t', now(), 10$$, '42809', 'a key of another type'), ($$'t', 1, 10, 'zzz'$$, '42704', 'no such declaration'), ($$'t', 1, 9e18::float8$$, '22003', 'more than an int64 holds')) AS v (args, state, what);
SELECT ok(approximation_add('t', 1, 30), 'three steps are written for sure');
SELECT ok(NOT approximation_add('t', 1, 0), 'and nothing is not');
SELECT approximation_add('t', 2, 10), approximation_add('t', 3, -20), approximation_add('t', 4, 20.0::float8);
SELECT results_eq('SELECT id, doc FROM t ORDER BY id', $$VALUES (1, '{"a": 30}'::bson), (2, '{"a": 10}'), (3, '{"a": -15}'), (4, '{"a": 20}')$$, 'a null document, a null and no field count as 0; steps are integers');
SET docpatterns.approximation_seed = 7;
SELECT array_agg(approximation_add('t', 1, 1)) AS first FROM generate_series(1, 100) \gset
SET docpatterns.approximation_seed = 7;
SELECT is((SELECT array_agg(approximation_add('t', 1, 1)) FROM generate_series(1, 100)), :'first'::bool[], 'the seed makes it repeatable');
SELECT ok((SELECT bool_and((doc ->> 'a')::int % 10 = 0) FROM t WHERE id = 1), 'in tens');
-- 200 counters, several amounts: the mean of their sums is right within 4.5 standard errors
CREATE TABLE c (id int PRIMARY KEY, doc bson NOT NULL);
SELECT approximation_enable('c', 'n', step => 50);
CREATE FUNCTION pg_temp.mean(amount anyelement, n int, OUT mean float8, OUT sd float8) LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM c; INSERT INTO c SELECT i, '{}' FROM generate_series(1, 200) i;
  PERFORM count(approximation_add('c', i, amount)) FROM generate_series(1, 200) i, generate_series(1, n);
  SELECT avg(x), stddev_samp(x) INTO mean, sd FROM (SELECT coalesce((doc ->> 'n')::float8, 0) x FROM c) q;
END $$;
SELECT ok(abs(mean - 1000) < 4.5 * sqrt(1000 * 49 / 200.0) AND sd BETWEEN 0.8 * sqrt(1000 * 49) AND 1.2 * sqrt(1000 * 49), 'a thousand events of 1, in steps of 50') FROM pg_temp.mean(1, 1000);
SELECT ok(abs(mean - 1001) < 4.5 * sqrt(143 * 7 * 43 / 200.0), '143 events of 7') FROM pg_temp.mean(7, 143);
SELECT ok(abs(mean + 500) < 4.5 * sqrt(500 * 49 / 200.0), 'five hundred of -1') FROM pg_temp.mean(-1, 500);
SELECT ok(abs(mean - 1000) < 4.5 * sqrt(100 * 0.2 * 0.8 * 2500 / 200.0), 'a hundred of 10.0, a double') FROM pg_temp.mean(10.0::float8, 100);
SELECT ok(mean = 1000 AND sd = 0, 'ten of 100, exactly') FROM pg_temp.mean(100.0::numeric, 10);
SELECT pg_temp.true_everywhere('step');

-- Error: exact while the value is small, then within the bound at every size
SELECT pattern_alter('c', 'n', '{error: 0.2}');
SELECT is((SELECT options ->> 'error' FROM pattern_list('c')), '0.2', 'another form');
SELECT ok(mean = 12 AND sd = 0, 'a dozen is counted exactly') FROM pg_temp.mean(1, 12);
SELECT ok(abs(mean - 100) < 4.5 * 20 / sqrt(200) AND sd < 20 * 1.15, 'a hundred within a fifth') FROM pg_temp.mean(1, 100);
SELECT ok(abs(mean - 1000) < 4.5 * 200 / sqrt(200) AND sd BETWEEN 140 AND 200 * 1.15, 'a thousand too') FROM pg_temp.mean(1, 1000);
-- the bounds of 95 % hold the truth in about 95 of 100 cases
SELECT ok(count(*) FILTER (WHERE low <= 1000 AND 1000 <= high) >= 180, 'at least 90 of 100 hold it') FROM c, approximation_read('c', id);
SELECT ok(abs(mean - 1000) < 4.5 * 200 / sqrt(200) AND sd < 200 * 1.15, 'by 10') FROM pg_temp.mean(10, 100);
SELECT ok(abs(mean - 100) < 4.5 * 20 / sqrt(200) AND sd < 20 * 1.15, 'by 0.5, a double') FROM pg_temp.mean(0.5::float8, 200);
SELECT ok(abs(mean - 100) < 4.5 * 20 / sqrt(200) AND sd < 20 * 1.15, 'by 0.5, a decimal') FROM pg_temp.mean(0.5::numeric, 200);
SELECT ok((SELECT bool_and(bson_typeof(doc, 'n') = 'decimal') FROM c), 'which stays one');
SELECT ok(abs(mean + 100) < 4.5 * 20 / sqrt(200), 'downwards') FROM pg_temp.mean(-1, 100);
UPDATE t SET doc = '{}' WHERE id = 2;
SELECT ok(estimate = 0 AND low = 0 AND high BETWEEN 30 AND 40, 'the bounds of nothing') FROM approximation_read('t', 2);
SELECT throws_ok($$SELECT approximation_read('t', 99)$$, 'P0002', NULL, 'no such document');
SELECT throws_ok($$SELECT approximation_add('c', 999, 1)$$, 'P0002', NULL, 'this form looks at the document always');
SELECT throws_ok($$SELECT pattern_alter('c', 'n', '{slots: 5}')$$, '22023', NULL, 'no slots later');
SELECT throws_ok($$SELECT pattern_alter('c', 'n', '{field: "x"}')$$, '22023', NULL, 'no other field later');
SELECT throws_ok($$SELECT pattern_alter('c', 'n', '{step: "x"}')$$, '22023', NULL, 'no step that is a text');
SELECT throws_ok($$SELECT pattern_alter('c', 'n', '{step: 0}')$$, '22023', NULL, 'no step 0');
SELECT is(pattern_disable('c'), 0::bigint, 'ended');
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgrelid = 'c'::regclass), 0::bigint, 'nothing is left');

-- Threshold
SELECT is(approximation_enable('c', 'p', threshold => '100'), 'p', 'a threshold');
ALTER TABLE c ADD other text;
DELETE FROM c;
INSERT INTO c VALUES (1, '{p: 1000, q: 1}'), (2, '{p: 1000.5}'), (3, '{p: NumberDecimal("10.1")}'), (4, '{}');
CREATE FUNCTION pg_temp.upd(k int, p text, OUT written int) LANGUAGE plpgsql AS $$
BEGIN EXECUTE format('UPDATE c SET doc = bson_set(doc, ''p'', %s) WHERE id = %s', p, k); GET DIAGNOSTICS written = ROW_COUNT; END $$;
SELECT is(pg_temp.upd(1, '1099'), 0, 'a move by 99 is no write'), is(pg_temp.upd(1, '1100'), 1, 'one by 100 is'), is(pg_temp.upd(1, '1001'), 0, 'back by 99 is none'), is(pg_temp.upd(1, '1000'), 1, 'back by 100 is');
SELECT is(pg_temp.upd(1, '1000::float8'), 0, 'the same value of another type'), is(pg_temp.upd(2, '1100.4::float8'), 0, 'doubles'), is(pg_temp.upd(2, '1100.5::float8'), 1, 'doubles too');
SELECT is(pg_temp.upd(1, '''NaN''::float8'), 1, 'what is no number is written'), is(pg_temp.upd(1, '1000'), 1, 'and from there'), is(pg_temp.upd(1, 'NULL::int'), 1, 'null too'), is(pg_temp.upd(1, '1000'), 1, 'and from there too'), is(pg_temp.upd(4, '5'), 1, 'a new field');
UPDATE c SET doc = bson_set(bson_set(doc, 'p', 1050), 'q', 2) WHERE id = 1;
SELECT is((SELECT doc FROM c WHERE id = 1), '{"p": 1000, "q": 2}'::bson, 'other fields are written');
UPDATE c SET doc = bson_set(doc, 'p', 1050), other = 'x' WHERE id = 1;
SELECT is((SELECT (doc ->> 'p') || other FROM c WHERE id = 1), '1000x', 'other columns too');
SELECT is((SELECT count(*) FROM c WHERE id = 1 AND NOT EXISTS (SELECT 1)), 0::bigint, 'no row');
INSERT INTO c (id, doc) VALUES (1, '{p: 1060, q: 2}') ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is((SELECT doc ->> 'p' FROM c WHERE id = 1), '1000', 'ON CONFLICT DO UPDATE');
MERGE INTO c USING (VALUES (1, '{p: 1200, q: 2}'::bson)) AS v (id, doc) ON c.id = v.id WHEN MATCHED THEN UPDATE SET doc = v.doc;
SELECT is((SELECT doc ->> 'p' FROM c WHERE id = 1), '1200', 'MERGE');
SET docpatterns.approximation_seed = 1;
SELECT count(*) FILTER (WHERE approximation_add('c', 1, 1)) AS written FROM generate_series(1, 2000) \gset
SELECT ok(:written BETWEEN 5 AND 40 AND (doc ->> 'p')::int = 1200 + 100 * :written, 'additions go in steps of the threshold') FROM c WHERE id = 1;
SELECT ok(approximation_add('c', 1, 100), 'what reaches it is written for sure');
SELECT doc -> 'p' AS p FROM c WHERE id = 1 \gset
SELECT is((SELECT sum(modified) FROM generate_series(1, 1000), collection_update('c', '{q: 2}', '{$inc: {p: 1}}')), 0::numeric, 'small moves do not add up, and the call says so');
SELECT is((SELECT (doc ->> 'p')::int FROM c WHERE id = 1), :p, 'as the page says');
SELECT results_eq($$SELECT estimate - low, high - estimate FROM approximation_read('c', 1)$$, $$VALUES (100::numeric, 100::numeric)$$, 'the bounds are the threshold');
SELECT pattern_alter('c', 'p', '{threshold: "0.1"}');
SELECT is(pg_temp.upd(3, '10.19::numeric'), 0, 'decimals'), is(pg_temp.upd(3, '10.2::numeric'), 1, 'exactly');
UPDATE c SET doc = '{p: 10.1}' WHERE id = 4;
SELECT is(pg_temp.upd(4, '10.2::float8'), 1, '10.2 is by 0.1 more than 10.1');
SELECT pattern_alter('c', 'p', '{threshold: "1%"}');
UPDATE c SET doc = '{p: 39000}' WHERE id = 1;
SELECT is(pg_temp.upd(1, '39389'), 0, 'less than a hundredth'), is(pg_temp.upd(1, '39390'), 1, 'a hundredth'), is(pg_temp.upd(1, '39000'), 0, 'less than a hundredth of the new one');
UPDATE c SET doc = '{p: 0}' WHERE id = 1;
SELECT is(pg_temp.upd(1, '1'), 1, 'from 0 any move is a write');
BEGIN; SET LOCAL docpatterns.maintain = off; UPDATE c SET doc = '{p: 100}' WHERE id = 1; UPDATE c SET doc = '{p: 100.5}' WHERE id = 1; COMMIT;
SELECT is((SELECT doc ->> 'p' FROM c WHERE id = 1), '100.5', 'the owner may switch it off');
SELECT pg_temp.true_everywhere('threshold');
DROP TABLE c CASCADE;

-- Shards
CREATE TABLE s (id int PRIMARY KEY, doc bson, note text);
SELECT is(approximation_enable('s', 'n', slots => 4), 'n', 'slots');
SELECT has_table('s_n_shards'), has_view('s_whole');
INSERT INTO s SELECT i, bson_build('n', i) FROM generate_series(1, 5) i;
SELECT ok(approximation_add('s', 1, 1)) FROM generate_series(1, 3);
SELECT approximation_add('s', 2, 10000000000), approximation_add('s', 3, 0.25::float8), approximation_add('s', 4, 0.10::numeric), approximation_add('s', 5, -7);
SELECT results_eq('SELECT doc FROM s_whole ORDER BY id', $$VALUES ('{"n": 4}'::bson), ('{"n": 10000000002}'), ('{"n": 3.25}'), ('{"n": {"$numberDecimal": "4.10"}}'), ('{"n": -2}')$$, 'exact, in every type');
SELECT results_eq('SELECT doc FROM s ORDER BY id', $$VALUES ('{"n": 1}'::bson), ('{"n": 2}'), ('{"n": 3}'), ('{"n": 4}'), ('{"n": 5}')$$, 'aside');
SELECT is((SELECT count(*) FROM s_n_shards), 5::bigint, 'one writer needs one shard');
SELECT results_eq($$SELECT estimate, low, high FROM approximation_read('s', 4)$$, $$VALUES (4.10, 4.10, 4.10)$$, 'read exactly');
SELECT throws_ok($$SELECT approximation_add('s', 99, 1)$$, 'P0002', NULL, 'no such document');
SELECT throws_ok($$SELECT approximation_add('s', 1, 'NaN'::float8)$$, '22023', NULL, 'NaN');
SELECT throws_ok($$DELETE FROM s_n_shards$$, '55000', NULL, 'shards are guarded');
SELECT throws_ok($$INSERT INTO s_n_shards VALUES (77, 1, '1')$$, '55000', NULL, 'against inserts too');
BEGIN; SELECT approximation_add('s', 1, 50); SAVEPOINT a; SELECT approximation_add('s', 1, 500); ROLLBACK TO a; SELECT approximation_add('s', 1, 5);
SELECT is((SELECT doc ->> 'n' FROM s_whole WHERE id = 1), '59', 'a savepoint takes back its part'); ROLLBACK;
SELECT is((SELECT doc ->> 'n' FROM s_whole WHERE id = 1), '4', 'and a transaction all');
UPDATE s SET doc = bson_set(doc, 'title', 'x') WHERE id = 1;
SELECT is((SELECT doc FROM s_whole WHERE id = 1), '{"n": 4, "title": "x"}'::bson, 'a write to the table leaves the shards');
UPDATE s_whole SET doc = bson_set(doc, 'title', 'y') WHERE id = 1;
SELECT is((SELECT doc FROM s WHERE id = 1), '{"n": 1, "title": "y"}'::bson, 'a write to the view that leaves the total leaves the field');
UPDATE s_whole SET doc = bson_set(doc, 'n', 200) WHERE id = 1;
SELECT is((SELECT doc ->> 'n' FROM s_whole WHERE id = 1), '200', 'one that sets it sets it');
UPDATE s_whole SET doc = bson_unset(doc, 'n') WHERE id = 2;
SELECT is((SELECT doc ->> 'n' FROM s_whole WHERE id = 2), '0', 'one that takes it away makes it 0');
INSERT INTO s_whole VALUES (6, '{n: 6}');
SELECT is((SELECT doc ->> 'n' FROM s WHERE id = 6), '6', 'an insert into the view');
SELECT is(approximation_sync('s'), 5::bigint, 'five documents are folded'), is(approximation_sync('s'), 0::bigint, 'then none');
SELECT is_empty('SELECT * FROM s_n_shards', 'and no shard is left');
SELECT results_eq('SELECT s.doc FROM s ORDER BY id', 'SELECT doc FROM s_whole ORDER BY id', 'the documents say it all');
-- rows that go and keys that change
SELECT count(approximation_add('s', i, 10 * i)) FROM generate_series(1, 6) i;
CREATE TABLE model AS SELECT id, (doc ->> 'n')::numeric AS n FROM s_whole;
DELETE FROM s WHERE id = 6; DELETE FROM model WHERE id = 6;
SELECT is((SELECT count(*) FROM s_n_shards WHERE key = 6), 0::bigint, 'shards go with their document');
UPDATE s SET id = 12 WHERE id = 2; UPDATE model SET id = 12 WHERE id = 2;
UPDATE s SET id = id + 100; UPDATE model SET id = id + 100;
UPDATE s SET id = 210 - id WHERE id IN (103, 104, 105); UPDATE model SET id = 210 - id WHERE id IN (103, 104, 105);
UPDATE s SET id = CASE id WHEN 101 THEN 1001 ELSE id END; UPDATE model SET id = CASE id WHEN 101 THEN 1001 ELSE id END;
SELECT results_eq('SELECT id, (doc ->> ''n'')::numeric FROM s_whole ORDER BY id', 'SELECT id, n FROM model ORDER BY id', 'shards follow keys');
SELECT pg_temp.true_everywhere('shards');
INSERT INTO s VALUES (1001, '{n: 5}') ON CONFLICT (id) DO NOTHING;
INSERT INTO s VALUES (1001, '{n: 5}') ON CONFLICT (id) DO UPDATE SET note = 'again';
SELECT results_eq('SELECT (doc ->> ''n'')::numeric FROM s_whole WHERE id = 1001', 'SELECT n FROM model WHERE id = 1001', 'ON CONFLICT leaves them');
TRUNCATE s;
SELECT is_empty('SELECT * FROM s_n_shards', 'TRUNCATE forgets them');
INSERT INTO s VALUES (1, '{n: 1}'), (2, '{}');
SELECT approximation_add('s', 1, 1), approximation_add('s', 2, 2);
CALL pattern_build('s', NULL, NULL);
SELECT results_eq('SELECT doc FROM s ORDER BY id', $$VALUES ('{"n": 2}'::bson), ('{"n": 2}')$$, 'pattern_build folds them');
-- damage is told and mended
SELECT approximation_add('s', 1, 1), approximation_add('s', 2, 2);
BEGIN; SET LOCAL docpatterns.maintain = off; DELETE FROM s WHERE id = 2; UPDATE s SET doc = '{n: "x"}'; COMMIT;
SELECT results_eq($$SELECT key, what, found FROM pattern_check('s') ORDER BY what$$, $$VALUES ('2'::bson_value, 'document of shards', 'missing'), ('1', 'field', 'string')$$, 'shards without a document, and a field that is no number');
SELECT throws_ok($$SELECT approximation_sync('s')$$, '42804', 'cannot add to field "n": it is of type string', 'what cannot be folded is an error');
SELECT is(pattern_repair('s'), 0::bigint, 'repair deletes the shards'); UPDATE s SET doc = '{n: 5}';
SELECT pg_temp.true_everywhere('repaired');
SELECT is((SELECT doc ->> 'n' FROM s_whole), '6', 'and keeps the others');
SELECT is(pattern_disable('s'), 1::bigint, 'ending folds');
SELECT is((SELECT doc FROM s), '{"n": 6}'::bson, 'into plain documents');
SELECT hasnt_table('s_n_shards'), hasnt_view('s_whole');
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgrelid = 's'::regclass), 0::bigint, 'nothing is left');
SELECT approximation_enable('s', 'n', slots => 2);
SELECT approximation_add('s', 1, 5);
SELECT is(pattern_disable('s', keep_data => true), 0::bigint, 'or leaves them where they are');
SELECT is((SELECT amount FROM s_n_shards), '5'::bson_value, 'as an ordinary table');
DROP TABLE s, s_n_shards, model;

-- A field that is no number
CREATE TABLE odd (id int PRIMARY KEY, doc bson);
INSERT INTO odd VALUES (1, '{n: "x"}'), (2, NULL);
SELECT approximation_enable('odd', 'n', slots => 2);
SELECT throws_ok($$SELECT approximation_add('odd', 1, 1)$$, '42804', 'cannot add to field "n": it is of type string', 'nothing is added to it');
SELECT ok(approximation_add('odd', 2, 1), 'a document that is null takes it');
UPDATE odd SET doc = '{n: 1}' WHERE id = 1;
SELECT ok(approximation_add('odd', 1, 1), 'a number does');
BEGIN; SET LOCAL docpatterns.maintain = off; UPDATE odd SET doc = '{n: "x"}' WHERE id = 1; COMMIT;
DO $$ DECLARE told text; BEGIN
  PERFORM pattern_disable('odd');
EXCEPTION WHEN datatype_mismatch THEN
  GET STACKED DIAGNOSTICS told = PG_EXCEPTION_CONTEXT;
  PERFORM set_config('odd.told', told, false);
END $$;
SELECT matches(current_setting('odd.told'), 'adding shards to document with key 1 of', 'the end says where it stands');
UPDATE odd SET doc = '{n: 5}' WHERE id = 1;
SELECT is(pattern_disable('odd'), 2::bigint, 'and comes when it is mended');
SELECT is((SELECT string_agg(doc::text, ' ' ORDER BY id) FROM odd), '{"n": 6} {"n": 1}', 'with all that was added');

-- Partitions: rows move with their shards
CREATE TABLE p (region text, id int, doc bson, PRIMARY KEY (region, id)) PARTITION BY LIST (region);
CREATE TABLE p_eu PARTITION OF p FOR VALUES IN ('eu');
CREATE TABLE p_us PARTITION OF p FOR VALUES IN ('us');
SELECT approximation_enable('p', 'n', slots => 4), approximation_enable('p', 'e', error => 0.1), approximation_enable('p', 'h', threshold => '10');
CREATE TABLE p_asia PARTITION OF p FOR VALUES IN ('asia');
INSERT INTO p SELECT r, i, '{n: 1, h: 0}' FROM unnest('{eu,us,asia}'::text[]) r, generate_series(1, 2) i;
SELECT count(approximation_add('p', ROW(r, i), i, 'n')) FROM unnest('{eu,us,asia}'::text[]) r, generate_series(1, 2) i;
SELECT count(approximation_add('p', ROW('eu'::text, 1), 1, 'e')) FROM generate_series(1, 50);
UPDATE p SET region = 'asia', id = 3 WHERE region = 'eu' AND id = 2;
UPDATE p SET doc = bson_set(doc, 'h', 5); UPDATE p_us SET id = 3 - id + 10;
DELETE FROM p_asia WHERE id = 1;
SELECT results_eq('SELECT region, id, doc ->> ''n'', doc ->> ''h'' FROM p_whole ORDER BY 1, 2',
  $$VALUES ('asia', 2, '3', '0'), ('asia', 3, '3', '0'), ('eu', 1, '2', '0'), ('us', 11, '3', '0'), ('us', 12, '2', '0')$$, 'every row has what belongs to it');
SELECT is((SELECT doc ->> 'e' FROM p WHERE region = 'eu'), '50', 'the error form on a partitioned table');
TRUNCATE p_us;
SELECT is((SELECT count(*) FROM p_n_shards), 3::bigint, 'TRUNCATE of a partition');
SELECT pg_temp.true_everywhere('partitions');
DROP TABLE p CASCADE;
SELECT hasnt_table('p_n_shards', 'DROP .. CASCADE leaves nothing');

-- Hostile names, and several declarations on one table
CREATE SCHEMA "W eird";
CREATE TABLE "W eird"."T ""t'" ("k'ey" text PRIMARY KEY, "d""oc" bson);
SELECT approximation_enable('"W eird"."T ""t''"', '"a.b".c''d', slots => 3), approximation_enable('"W eird"."T ""t''"', 'step', step => 2, name => 'x"''y');
INSERT INTO "W eird"."T ""t'" VALUES ('a''b"', '{}');
SELECT approximation_add('"W eird"."T ""t''"', 'a''b"'::text, 3, '"a.b".c''d'), approximation_add('"W eird"."T ""t''"', 'a''b"'::text, 2, 'x"''y');
SELECT is((SELECT "d""oc" FROM "W eird"."T ""t'_whole"), '{"step": 2, "a.b": {"c''d": 3}}'::bson, 'names of any kind');
ALTER TABLE "W eird"."T ""t'" RENAME TO plain; ALTER TABLE "W eird".plain RENAME "d""oc" TO d; ALTER TABLE "W eird".plain RENAME "k'ey" TO k; ALTER TABLE "W eird".plain SET SCHEMA public;
SELECT approximation_add('plain', 'a''b"', 3, '"a.b".c''d'), approximation_add('plain', 'a''b"', 2, 'x"''y'), approximation_sync('plain', '"a.b".c''d');
SELECT is((SELECT d FROM plain), '{"step": 4, "a.b": {"c''d": 6}}'::bson, 'renamed');
SELECT pg_temp.true_everywhere('names');
SELECT pattern_disable('plain', 'x"''y'), pattern_disable('plain', '"a.b".c''d');
DROP TABLE plain; DROP SCHEMA "W eird" CASCADE;

-- A user's triggers; and rights
CREATE TABLE u (id int PRIMARY KEY, doc bson);
SELECT approximation_enable('u', 'n', slots => 2), approximation_enable('u', 'm', step => 2);
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.doc = bson_set(NEW.doc, 'stamp', coalesce((OLD.doc ->> 'stamp')::int, 0) + 1); RETURN NEW; END $$;
CREATE TRIGGER stamp BEFORE INSERT OR UPDATE ON u FOR EACH ROW EXECUTE FUNCTION stamp();
INSERT INTO u VALUES (1, '{n: 1}'), (2, '{n: 2}');
SELECT approximation_add('u', 1, 2, 'm'), approximation_add('u', 1, 2, 'n'), approximation_sync('u', 'n');
SELECT is((SELECT doc FROM u WHERE id = 1), '{"n": 3, "stamp": 3, "m": 2}'::bson, 'triggers of users see what is written');
CREATE ROLE dp_counter; CREATE ROLE dp_reader;
GRANT SELECT, UPDATE ON u TO dp_counter; GRANT SELECT ON u, u_whole TO dp_reader;
ALTER TABLE u ENABLE ROW LEVEL SECURITY;
CREATE POLICY one ON u USING (id = 1);
SET ROLE dp_counter;
SELECT approximation_add('u', 1, 2, 'n'), approximation_add('u', 1, 2, 'm');
SELECT throws_ok($$SELECT approximation_add('u', 2, 2, 'n')$$, 'P0002', NULL, 'a row that a policy hides is none');
SELECT throws_ok($$SELECT approximation_add('u', 2, 2, 'm')$$, 'P0002', NULL, 'in no form');
SELECT throws_ok($$SELECT approximation_read('u', 2, 'n')$$, 'P0002', NULL, 'nor is it read');
SELECT throws_ok($$SELECT approximation_sync('u', 'n')$$, '42501', NULL, 'only the owner folds');
SELECT throws_ok($$SELECT approximation_enable('u', 'z', step => 2)$$, '42501', NULL, 'or declares');
RESET ROLE; SET ROLE dp_reader;
SELECT throws_ok($$SELECT approximation_add('u', 1, 1, 'n')$$, '42501', NULL, 'who may only read does not count');
SELECT throws_ok($$SELECT approximation_add('u', 1, 1, 'm')$$, '42501', NULL, 'nor where nothing would be written');
SELECT is((SELECT estimate FROM approximation_read('u', 1, 'n')), 5::numeric, 'he reads');
SELECT is((SELECT doc ->> 'n' FROM u_whole), '5', 'and sees the whole');
RESET ROLE;
BEGIN READ ONLY;
SELECT throws_ok($$SELECT approximation_add('u', 1, 1, 'm')$$, '25006', NULL, 'not in a transaction that only reads');
ROLLBACK;
SET client_min_messages = error;
ALTER TABLE u_n_shards REPLICA IDENTITY NOTHING; CREATE PUBLICATION dp_shards FOR TABLE u_n_shards;
RESET client_min_messages;
SELECT throws_ok($$SELECT approximation_add('u', 1, 1, 'n')$$, '55000', NULL, 'published shards need a replica identity');
DROP PUBLICATION dp_shards; ALTER TABLE u_n_shards REPLICA IDENTITY DEFAULT;
SELECT throws_ok($$DROP TABLE u_n_shards$$, '2BP01', NULL, 'the shards are not dropped by themselves');
SELECT throws_ok($$DROP TABLE u$$, '2BP01', NULL, 'nor the table without CASCADE');
DROP TABLE u CASCADE; DROP FUNCTION stamp(); DROP ROLE dp_counter, dp_reader;

-- At random beside a plain model: shards under several keys, with everything that moves them
SELECT setseed(0.42);
CREATE TABLE r (id int PRIMARY KEY, doc bson);
CREATE TABLE m (id int PRIMARY KEY, n bigint);
SELECT approximation_enable('r', 'n', slots => 3);
INSERT INTO r SELECT i, bson_build('n', 0) FROM generate_series(1, 10) i;
INSERT INTO m SELECT i, 0 FROM generate_series(1, 10) i;
DO $$
DECLARE k int; w int; a int;
BEGIN
  FOR i IN 1..600 LOOP
    k := 1 + (random() * 19)::int; w := (random() * 9)::int; a := (random() * 20)::int - 5;
    BEGIN
      IF w <= 4 THEN PERFORM approximation_add('r', k, a) FROM m WHERE id = k; UPDATE m SET n = n + a WHERE id = k;
      ELSIF w = 5 THEN UPDATE r SET doc = bson_set(doc, 'n', (doc -> 'n')::int + a) WHERE id = k; UPDATE m SET n = n + a WHERE id = k;
      ELSIF w = 6 THEN UPDATE r_whole SET doc = bson_set(doc, 'n', a) WHERE id = k; UPDATE m SET n = a WHERE id = k;
      ELSIF w = 7 THEN DELETE FROM r WHERE id = k; DELETE FROM m WHERE id = k;
      ELSIF w = 8 THEN INSERT INTO r VALUES (k, bson_build('n', a)) ON CONFLICT DO NOTHING; INSERT INTO m VALUES (k, a) ON CONFLICT DO NOTHING;
      ELSE UPDATE r SET id = 21 - id; UPDATE m SET id = 21 - id;
      END IF;
      IF i % 7 = 0 THEN RAISE EXCEPTION USING ERRCODE = 'ZZ000'; END IF;
    EXCEPTION WHEN unique_violation OR SQLSTATE 'ZZ000' THEN NULL;
    END;
    IF i % 50 = 0 THEN PERFORM approximation_sync('r'); END IF;
  END LOOP;
END $$;
SELECT results_eq('SELECT id, (doc ->> ''n'')::bigint FROM r_whole ORDER BY id', 'SELECT id, n FROM m ORDER BY id', 'as the model says');
SELECT pg_temp.true_everywhere('at random');
DROP TABLE r CASCADE; DROP TABLE m, t, no_key CASCADE;

-- A shard that has moved to another page: versions that its page has no room for need entries in the index
CREATE TABLE w (id int PRIMARY KEY, doc bson);
SELECT approximation_enable('w', 'n', slots => 1);
INSERT INTO w VALUES (1, '{}');
SELECT count(approximation_add('w', 1, 1)) FROM generate_series(1, 1000);
SELECT is((SELECT doc ->> 'n' FROM w_whole), '1000', 'a thousand versions of a shard in one transaction');
DROP TABLE w CASCADE;
-- amounts that no field can hold
CREATE TABLE huge (id int PRIMARY KEY, doc bson);
SELECT approximation_enable('huge', 'n', step => 10) \g /dev/null
INSERT INTO huge VALUES (1, '{n: 1}');
SELECT throws_ok(format('SELECT approximation_add(%L, 1, %s, %L)', 'huge', amount, field), '22003', 'the amount is out of range', amount || ' to ' || field) FROM (VALUES
  ('9223372036854775807', 'n'), ('(-9223372036854775808)::bigint', 'n'), ('1e300::float8', 'n')) AS v (amount, field);

SELECT * FROM finish();
