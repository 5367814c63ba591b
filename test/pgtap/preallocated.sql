-- The contract of the preallocated pattern: shapes, what is refused and how, claims, and what every kind of write does.
SET client_min_messages = warning;
SET timezone = 'UTC';
\pset fieldsep '\n'
SELECT plan(319);
CREATE FUNCTION pg_temp.true_everywhere(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;
CREATE TABLE t (id int PRIMARY KEY, doc bson);

-- Signatures
SELECT function_returns(f, r, f || ' returns ' || r) FROM (VALUES ('preallocated_enable', 'text'), ('preallocated_claim', 'boolean'), ('preallocated_confirm', 'boolean'), ('preallocated_release', 'boolean'),
  ('preallocated_extend', 'integer'), ('preallocated_grid', 'bson'), ('preallocated_calendar', 'bson'), ('preallocated_pool', 'bson'), ('preallocated_ranges', 'bson_value'), ('preallocated_cells', 'bson_value')) AS v (f, r);
SELECT volatility_is(f, v, f || ' is ' || v) FROM (VALUES ('preallocated_claim', 'volatile'), ('preallocated_confirm', 'volatile'), ('preallocated_release', 'volatile'), ('preallocated_extend', 'volatile'),
  ('preallocated_slots', 'volatile'), ('preallocated_grid', 'immutable'), ('preallocated_ranges', 'immutable'), ('preallocated_cells', 'immutable')) AS w (f, v);

-- Shapes
SELECT is(preallocated_grid('{2,3}', '{A1,B3}'), '{kind: "grid", rows: [2, 3], fill: 0, accessible: ["A1", "B3"]}'::bson, 'a grid');
SELECT is(preallocated_calendar(), '{kind: "calendar", weekdays_only: false, month_field: "month", year_field: "year"}'::bson, 'a calendar');
SELECT is(preallocated_pool(3, '-'), '{kind: "pool", n: 3, fill: "-"}'::bson, 'a pool');
SELECT is(preallocated_pool(3, fill => bson_value 'null'), '{kind: "pool", n: 3, fill: null}'::bson, 'with null in free cells');
SELECT is(preallocated_grid('{1}', fill => 7::bigint), '{kind: "grid", rows: [1], fill: NumberLong(7)}'::bson, 'fill is any SQL value');
SELECT is(preallocated_clock('{hour,minute}'), '{kind: "clock", units: ["hour", "minute"], fill: 0}'::bson, 'a clock');
SELECT is(preallocated_clock('{minute}', fill => 1.5::float8), '{kind: "clock", units: ["minute"], fill: 1.5}'::bson, 'with another fill');
SELECT throws_ok('SELECT ' || call, '22023', NULL, call) FROM unnest(ARRAY['preallocated_grid(''{}'')', 'preallocated_grid(''{2,0}'')', 'preallocated_grid(''{-1}'')', 'preallocated_grid(''{2,NULL}'')', 'preallocated_grid(''{100001}'')',
  'preallocated_grid(''{60000,60000}'')', 'preallocated_grid(''{2}'', ''{A3}'')', 'preallocated_grid(''{2}'', ''{B1}'')', 'preallocated_grid(''{2}'', ''{A01}'')', 'preallocated_grid(''{2}'', ''{1}'')', 'preallocated_grid(''{2}'', ''{""}'')',
  'preallocated_grid(''{2}'', fill => ''[]''::bson_value)', 'preallocated_grid(NULL)', 'preallocated_pool(0)', 'preallocated_pool(100001)', 'preallocated_pool(NULL)', 'preallocated_clock(''{}'')', 'preallocated_clock(''{hour,second}'')',
  'preallocated_clock(''{day}'')', 'preallocated_clock(''{week}'')', 'preallocated_clock(''{minute,hour}'')', 'preallocated_calendar(month_field => ''a..b'')', 'preallocated_calendar(year_field => NULL)']) AS call;

-- Refused options
SELECT throws_ok(format('SELECT preallocated_enable(''t'', %s)', args), state, NULL, what) FROM (VALUES
  ($$NULL, preallocated_pool(2)$$, '22004', 'no field'), ($$'a', NULL$$, '22004', 'no shape'), ($$'a', preallocated_pool(2), store => NULL$$, '22004', 'no store'),
  ($$'a', preallocated_pool(2), store => 'paper'$$, '22023', 'no such store'), ($$'a', '{}'$$, '22023', 'no shape at all'), ($$'a', '{kind: "pool"}'$$, '22023', 'a shape that is incomplete'),
  ($$'_id', preallocated_pool(2)$$, '22023', 'the key'), ($$'a..b', preallocated_pool(2)$$, '22023', 'a bad path'), ($$'a', preallocated_pool(2), available_field => 'a.b'$$, '22023', 'a count inside the slots'),
  ($$'a', preallocated_pool(2), 'document', 'a_until'$$, '22023', 'a count where times stand'), ($$'a', preallocated_clock('{hour}'), available_field => 'n'$$, '22023', 'a clock has no free slots'),
  ($$'a', preallocated_pool(2), doc_column => 'nope'$$, '42703', 'a column that does not exist')) AS v (args, state, what);
CREATE TABLE no_key (id int, doc bson);
SELECT throws_ok($$SELECT preallocated_enable('no_key', 'a', preallocated_pool(2))$$, '55000', NULL, 'no primary key');
SELECT throws_ok($$SELECT preallocated_enable(NULL, 'a', preallocated_pool(2))$$, '22004', NULL, 'no table');
SELECT throws_ok($$SELECT preallocated_claim('t', 1, '{1}', 'ada')$$, '42704', NULL, 'no such pattern');

-- A grid with its claims aside
SELECT is(preallocated_enable('t', 'hall.seats', preallocated_grid('{3,4}', '{A1}'), store => 'slots', available_field => 'free'), 'hall.seats', 'the name is the field');
SELECT throws_ok($$SELECT preallocated_enable('t', 'b', preallocated_pool(2), name => 'hall.seats')$$, '42710', NULL, 'a second declaration of the name');
SELECT throws_ok($$SELECT preallocated_enable('t', 'hall', preallocated_pool(2))$$, '22023', NULL, 'a second declaration of the field');
INSERT INTO t VALUES (1, '{title: "x"}'), (2, NULL), (3, '{hall: {accessible: [], seats: [[0, 0, 0], [0, 0, 0, 0, 0], [0]]}}');
SELECT is((SELECT doc FROM t WHERE id = 1), '{title: "x", hall: {seats: [[0, 0, 0], [0, 0, 0, 0]], accessible: ["A1"]}}'::bson, 'a new document gets the empty shape');
SELECT is((SELECT doc FROM t_whole WHERE id = 1), '{title: "x", hall: {seats: [[0, 0, 0], [0, 0, 0, 0]], accessible: ["A1"]}, free: 7}'::bson, 'the whole one has its number of free cells');
SELECT is((SELECT doc FROM t_whole WHERE id = 3), '{hall: {accessible: [], seats: [[0, 0, 0], [0, 0, 0, 0, 0], [0]]}, free: 9}'::bson, 'a document may come with more');
SELECT is((SELECT doc FROM t_whole WHERE id = 2), NULL::bson, 'a null document has none');
SELECT throws_ok(format('INSERT INTO t VALUES (9, %L)', doc), '23514', NULL, doc) FROM unnest(ARRAY['{hall: {seats: 0}}', '{hall: {seats: [[0, 0, 0]]}}', '{hall: {seats: [[0, 0], [0, 0, 0, 0]]}}', '{hall: {seats: [0, 0]}}',
  '{hall: {seats: [[0, 0, null], [0, 0, 0, 0]]}}', '{hall: {seats: [[0, 0, {}], [0, 0, 0, 0]]}}', '{hall: {seats: {A1: 0}}}']) AS doc;
SELECT throws_ok($$INSERT INTO t VALUES (9, '{hall: 5}')$$, '22023', NULL, 'nothing can be put inside a number');

SELECT throws_ok(format('SELECT preallocated_claim(%s)', args), state, NULL, what) FROM (VALUES
  ($$'t', NULL::int, '{A1}', 'ada'$$, '22004', 'no key'), ($$'t', 1, NULL, 'ada'$$, '22004', 'no slots'), ($$'t', 1, '{A1}', NULL::text$$, '22004', 'no holder'), ($$NULL, 1, '{A1}', 'ada'$$, '22004', 'no table'),
  ($$'t', 1, '{}', 'ada'$$, '22023', 'an empty list'), ($$'t', 1, '{A1,NULL}', 'ada'$$, '22004', 'a null slot'), ($$'t', 1, '{A1,A1}', 'ada'$$, '22023', 'a slot twice'), ($$'t', 1, '{A4}', 'ada'$$, '22023', 'a seat that is not there'),
  ($$'t', 1, '{C1}', 'ada'$$, '22023', 'a row that is not there'), ($$'t', 1, '{a1}', 'ada'$$, '22023', 'names are upper case'), ($$'t', 1, '{A0}', 'ada'$$, '22023', 'seats begin with 1'), ($$'t', 1, '{A01}', 'ada'$$, '22023', 'without zeros'),
  ($$'t', 1, '{A}', 'ada'$$, '22023', 'no seat'), ($$'t', 1, '{""}', 'ada'$$, '22023', 'no name'), ($$'t', 1, '{AAAAAAAAAAAAAAAAAAAAAAAAAA1}', 'ada'$$, '22023', 'a row far away'), ($$'t', 1, '{A99999999999999}', 'ada'$$, '22023', 'a seat far away'),
  ($$'t', 1, '{A1}', 0$$, '22023', 'what a free cell holds is no holder'), ($$'t', 1, '{A1}', 0.0::float8$$, '22023', 'in no form'), ($$'t', 1, '{A1}', '{}'::bson$$, '22023', 'a document is no holder'),
  ($$'t', 1, '{A1}', ARRAY[1]$$, '22023', 'nor an array'), ($$'t', 1, '{A1}', repeat('x', 2000)$$, '22023', 'a long holder'), ($$'t', 1, '{A1}', 'ada', hold_for => '0'$$, '22023', 'no time'),
  ($$'t', 1, '{A1}', 'ada', hold_for => '-1 s'$$, '22023', 'a time that is over'), ($$'t', 99, '{A1}', 'ada'$$, 'P0002', 'no such document'), ($$'t', now(), '{A1}', 'ada'$$, '42809', 'a key of another type'),
  ($$'t', 1, '{A1}', 'ada', name => 'nope'$$, '42704', 'no such name')) AS v (args, state, what);
SELECT is(preallocated_claim('t', 1, '{B2,B1}', 'ada', '1 hour'), true, 'ada claims two');
SELECT is(preallocated_claim('t', 1, '{B2,B3}', 'bob'), false, 'bob gets none of which one is taken');
SELECT is(preallocated_claim('t', 1, '{B2}', 'ada'), false, 'nor does ada again');
SELECT is(preallocated_claim('t', 1, '{B3}', 7), true, 'a holder may be a number');
SELECT is(preallocated_claim('t', 3, '{B5,C1}', objectid '507f191e810c19729de860ea'), true, 'or an objectid, on slots that only this document has');
SELECT is((SELECT doc -> 'hall.seats' FROM t_whole WHERE id = 1), '[[0, 0, 0], ["ada", "ada", 7, 0]]'::bson_value, 'the whole document shows them');
SELECT is((SELECT doc -> 'hall.seats' FROM t WHERE id = 1), '[[0, 0, 0], [0, 0, 0, 0]]'::bson_value, 'the stored one stays empty');
SELECT is((SELECT doc ->> 'free' FROM t_whole WHERE id = 1), '4', 'and what is free is counted');
SELECT results_eq($$SELECT slot, holder, until IS NULL FROM preallocated_slots('t', 1)$$, $$VALUES ('A1'::text, NULL::bson_value, true), ('A2', NULL, true), ('A3', NULL, true),
  ('B1', '"ada"', false), ('B2', '"ada"', false), ('B3', '7', true), ('B4', NULL, true)$$, 'as rows');
SELECT is(preallocated_find('t', 1, 3), '{A1,A2,A3}'::text[], 'three side by side');
SELECT is(preallocated_find('t', 1, 1), '{A1}'::text[], 'one');
SELECT is(preallocated_find('t', 1, 4), NULL::text[], 'four are not to be had: rows do not join');
SELECT is((SELECT preallocated_find(doc, 3, 'hall.seats') FROM t_whole WHERE id = 1), '{A1,A2,A3}'::text[], 'in the document too');
SELECT throws_ok($$SELECT preallocated_find('t', 1, 0)$$, '22023', NULL, 'none cannot be found');
SELECT throws_ok($$SELECT preallocated_find('t', 1, NULL::int)$$, '22004', NULL, 'nor null');
SELECT is(preallocated_confirm('t', 1, '{B1,B3}', 'ada'), false, 'ada cannot confirm what is not all hers');
SELECT is((SELECT until IS NULL FROM preallocated_slots('t', 1) WHERE slot = 'B1'), false, 'and then nothing is confirmed');
SELECT is(preallocated_confirm('t', 1, '{B1}', 'ada'), true, 'one is');
SELECT is(preallocated_confirm('t', 1, '{B2}', 'ada', '1 day'), true, 'the other is held longer');
SELECT results_eq($$SELECT until IS NULL, until > now() + interval '23 hours' FROM preallocated_slots('t', 1) WHERE holder = '"ada"' ORDER BY slot$$, $$VALUES (true, NULL), (false, true)$$, 'until then');
SELECT is(preallocated_confirm('t', 1, '{B1}', 'ada', '1 s'), true, 'what is his for good can be confirmed again');
SELECT is((SELECT until FROM preallocated_slots('t', 1) WHERE slot = 'B1'), NULL, 'and stays so');
SELECT is(preallocated_release('t', 1, '{B1,B2}', 'bob'), false, 'bob cannot free what is not his');
SELECT is(preallocated_release('t', 1, '{B1,B4}', 'ada'), false, 'ada cannot free what she does not have');
SELECT is((SELECT doc ->> 'free' FROM t_whole WHERE id = 1), '4', 'all or nothing');
SELECT is(preallocated_release('t', 1, '{B1,B2}', 'ada'), true, 'what is hers she can');
SELECT is(preallocated_release('t', 1, '{B3}', 7.0::float8), true, 'numbers are the same in any form');
SELECT is((SELECT doc ->> 'free' FROM t_whole WHERE id = 1), '7', 'all is free again');
SELECT throws_ok($$SELECT preallocated_confirm('t', 1, '{Z9}', 'ada')$$, '22023', NULL, 'a slot that is not there cannot be confirmed');
SELECT throws_ok($$SELECT preallocated_release('t', 1, '{Z9}', 'ada')$$, '22023', NULL, 'nor released');

-- Time
SELECT is(preallocated_claim('t', 1, '{A1,A2}', 'ada', '1 ms'), true, 'ada holds for a millisecond');
SELECT is(pg_sleep(0.02)::text, '', 'which is soon over');
SELECT is((SELECT doc ->> 'free' FROM t_whole WHERE id = 1), '7', 'what is over is free');
SELECT is((SELECT count(*) FROM preallocated_slots('t', 1) WHERE holder IS NOT NULL), 0::bigint, 'in rows too');
SELECT is(preallocated_confirm('t', 1, '{A1}', 'ada'), false, 'and is not confirmed any more');
SELECT is(preallocated_claim('t', 1, '{A2,A3}', 'bob'), true, 'somebody else takes it');
SELECT is(preallocated_release('t', 1, '{A1,A2}', 'ada'), false, 'then it is not hers to free');
SELECT is(preallocated_release('t', 1, '{A1}', 'ada'), true, 'what nobody took she may give back');
DO $$ BEGIN
  PERFORM preallocated_claim('t', 1, '{A1}', 'ada', '1 ms'); PERFORM pg_sleep(0.01);
  IF NOT preallocated_claim('t', 1, '{A1}', 'bob', '1 ms') THEN RAISE 'time stands still inside a statement'; END IF; PERFORM pg_sleep(0.01);
END $$;
SELECT is((SELECT doc -> 'hall.seats.0' FROM t_whole WHERE id = 1), '[0, "bob", "bob"]'::bson_value, 'time goes on inside a statement');
SELECT pg_temp.true_everywhere('after claims');

-- What plain SQL may do
SELECT throws_ok($$UPDATE t_whole SET doc = bson_set(doc, 'hall.seats.0.1', 0) WHERE id = 1$$, '23514', NULL, 'a claim is not freed through the view');
SELECT throws_ok($$UPDATE t_whole SET doc = bson_set(doc, 'hall.seats.1.1', 'eve'::text) WHERE id = 1$$, '23514', NULL, 'nor made');
SELECT throws_ok($$UPDATE t SET doc = bson_set(doc, 'hall.seats.1.1', 'eve'::text) WHERE id = 1$$, '23514', NULL, 'nor in the table');
SELECT throws_ok($$UPDATE t SET doc = bson_set(doc, 'hall.seats.2', '[0]'::bson_value) WHERE id = 1$$, '23514', NULL, 'nor are seats added');
SELECT throws_ok($$UPDATE t SET doc = NULL WHERE id = 1$$, '23514', NULL, 'nor the document removed alone');
SELECT throws_ok($$UPDATE "t_hall.seats_claims" SET holder = '"eve"'$$, '55000', NULL, 'claims are guarded');
SELECT throws_ok($$DELETE FROM "t_hall.seats_claims"$$, '55000', NULL, 'against deletion too');
UPDATE t SET doc = bson_set(doc, 'title', 'y') WHERE id = 1;
UPDATE t_whole SET doc = bson_set(doc, 'stars', 5) WHERE id = 1;
SELECT is((SELECT doc FROM t_whole WHERE id = 1), '{title: "y", hall: {seats: [[0, "bob", "bob"], [0, 0, 0, 0]], accessible: ["A1"]}, stars: 5, free: 5}'::bson, 'other fields are written, in the table and in the view');
SELECT is((SELECT doc FROM t WHERE id = 1), '{title: "y", hall: {seats: [[0, 0, 0], [0, 0, 0, 0]], accessible: ["A1"]}, stars: 5}'::bson, 'and claims stay aside');
UPDATE t SET doc = '{title: "z"}' WHERE id = 1;
SELECT is((SELECT doc FROM t_whole WHERE id = 1), '{title: "z", hall: {seats: [[0, "bob", "bob"], [0, 0, 0, 0]], accessible: ["A1"]}, free: 5}'::bson, 'a document that is replaced keeps its slots');
UPDATE t SET doc = bson_set(doc, 'free', 99) WHERE id = 1;
SELECT is((SELECT doc ->> 'free' FROM t WHERE id = 1), NULL, 'a number of free cells is not stored');
INSERT INTO t VALUES (1, '{title: "u"}') ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is((SELECT doc FROM t_whole WHERE id = 1), '{title: "u", hall: {seats: [[0, "bob", "bob"], [0, 0, 0, 0]], accessible: ["A1"]}, free: 5}'::bson, 'an upsert keeps them too');
INSERT INTO t VALUES (1, '{title: "v"}') ON CONFLICT DO NOTHING;
MERGE INTO t USING (VALUES (1), (4)) AS s (id) ON t.id = s.id WHEN MATCHED THEN UPDATE SET doc = '{title: "m"}' WHEN NOT MATCHED THEN INSERT VALUES (s.id, '{title: "n"}');
SELECT results_eq($$SELECT doc ->> 'title', doc ->> 'free' FROM t_whole WHERE id IN (1, 4) ORDER BY id$$, $$VALUES ('m', '5'), ('n', '7')$$, 'MERGE');
UPDATE t SET id = id + 10;
SELECT results_eq($$SELECT id, doc ->> 'free' FROM t_whole WHERE doc IS NOT NULL ORDER BY id$$, $$VALUES (11, '5'), (13, '7'), (14, '7')$$, 'claims follow the keys of their documents');
SELECT is(preallocated_claim('t', 11, '{A2}', 'eve'), false, 'and hold');
UPDATE t SET doc = bson_set(doc, 'k', id) WHERE doc IS NOT NULL;
DELETE FROM t WHERE id = 13;
SELECT is((SELECT count(*) FROM "t_hall.seats_claims" WHERE key = 13), 0::bigint, 'a document that is deleted takes its claims along');
INSERT INTO t VALUES (20, '{hall: {seats: [["x", 0, 0], [0, 5, 0, 0]]}}');
SELECT is((SELECT doc -> 'hall.seats' FROM t WHERE id = 20), '[[0, 0, 0], [0, 0, 0, 0]]'::bson_value, 'a document that comes with taken cells is stored empty');
SELECT is((SELECT doc -> 'hall.seats' FROM t_whole WHERE id = 20), '[["x", 0, 0], [0, 5, 0, 0]]'::bson_value, 'they are claims');
INSERT INTO t_whole VALUES (21, '{hall: {seats: [["y", 0, 0], [0, 0, 0, 0]]}, free: 3}');
SELECT is((SELECT doc FROM t_whole WHERE id = 21), '{hall: {seats: [["y", 0, 0], [0, 0, 0, 0]]}, free: 6}'::bson, 'through the view too');
BEGIN; SELECT preallocated_claim('t', 11, '{B1}', 'eve'); SAVEPOINT a; SELECT preallocated_claim('t', 11, '{B2}', 'eve'); ROLLBACK TO a;
SELECT is((SELECT doc -> 'hall.seats.1' FROM t_whole WHERE id = 11), '["eve", 0, 0, 0]'::bson_value, 'a savepoint takes back its claims'); ROLLBACK;
SELECT is((SELECT doc -> 'hall.seats.1' FROM t_whole WHERE id = 11), '[0, 0, 0, 0]'::bson_value, 'and a transaction all');
BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT preallocated_claim('t', 11, '{B1}', 'eve'), preallocated_release('t', 11, '{B1}', 'eve'), preallocated_claim('t', 11, '{B1}', 'ida'), preallocated_claim('t', 11, '{B1}', 'eve');
SELECT is((SELECT doc -> 'hall.seats.1' FROM t_whole WHERE id = 11), '["ida", 0, 0, 0]'::bson_value, 'with one snapshot a transaction sees its own claims'); ROLLBACK;
SELECT pg_temp.true_everywhere('after plain SQL');

-- More slots
SELECT is(preallocated_extend('t', 11, preallocated_grid('{5,4,2}', '{A5,A1}')), 4, 'a larger shape: four more');
SELECT is((SELECT doc -> 'hall' FROM t_whole WHERE id = 11), '{seats: [[0, "bob", "bob", 0, 0], [0, 0, 0, 0], [0, 0]], accessible: ["A1", "A5"]}'::bson_value, 'the others stay as they are');
SELECT is(preallocated_extend('t', 11, preallocated_grid('{1}')), 0, 'a smaller one changes nothing');
SELECT is(preallocated_claim('t', 11, '{C2}', 'ada'), true, 'what is new can be claimed');
SELECT throws_ok($$SELECT preallocated_extend('t', 11, preallocated_pool(5))$$, '22023', NULL, 'a shape of another kind');
SELECT throws_ok($$SELECT preallocated_extend('t', 11, NULL)$$, '22004', NULL, 'no shape');
SELECT throws_ok($$SELECT preallocated_extend('t', 99, preallocated_grid('{1}'))$$, 'P0002', NULL, 'no document');
SELECT throws_ok($$SELECT pattern_alter('t', 'hall.seats', '{store: "document"}')$$, '22023', NULL, 'the store stays');
SELECT throws_ok($$SELECT pattern_alter('t', 'hall.seats', bson_build('shape', preallocated_pool(3)))$$, '22023', NULL, 'and the kind of the shape');
SELECT pattern_alter('t', 'hall.seats', bson_build('shape', preallocated_grid('{3,4,1}'), 'available_field', 'left'::text));
SELECT isnt_empty($$SELECT * FROM pattern_check()$$, 'a larger shape is still missing in old documents');
CALL pattern_build('t', 'hall.seats');
SELECT is((SELECT doc -> 'hall.seats' FROM t_whole WHERE id = 20), '[["x", 0, 0], [0, 5, 0, 0], [0]]'::bson_value, 'pattern_build gives it to them');
SELECT is((SELECT doc ->> 'left' FROM t_whole WHERE id = 20), '6', 'under its new name');
SELECT pg_temp.true_everywhere('after more slots');
SELECT is(pattern_disable('t', 'hall.seats'), 4::bigint, 'disable puts all back');
SELECT is((SELECT doc -> 'hall.seats' FROM t WHERE id = 20), '[["x", 0, 0], [0, 5, 0, 0], [0]]'::bson_value, 'into the documents');
SELECT hasnt_relation('t_hall.seats_claims'), hasnt_view('t_whole');
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgrelid = 't'::regclass), 0::bigint, 'and leaves nothing behind');
TRUNCATE t;

-- A full table
INSERT INTO t VALUES (1, '{}'), (2, '{p: ["a", 0]}'), (3, '{p: [0, 0, 0, "b"]}'), (4, NULL);
SELECT is(preallocated_enable('t', 'p', preallocated_pool(3), store => 'slots'), 'p', 'a pool on a full table');
SELECT results_eq($$SELECT key, found FROM pattern_check('t') ORDER BY key$$, $$VALUES ('1'::bson_value, 'The field is missing.'), ('2', 'It has 2 slots, not 3.'), ('3', 'Cells are taken in the stored document.')$$, 'pattern_check tells what is to be done');
SELECT is(preallocated_claim('t', 3, '{4}', 'eve'), false, 'what a document holds is taken before it is done');
SELECT is(preallocated_claim('t', 1, '{1}', 'eve'), true, 'and what it does not have yet is free');
CALL pattern_build('t');
SELECT results_eq($$SELECT doc -> 'p' FROM t_whole ORDER BY id$$, $$VALUES ('["eve", 0, 0]'::bson_value), ('["a", 0, 0]'), ('[0, 0, 0, "b"]'), (NULL)$$, 'pattern_build does it');
SELECT is(preallocated_find('t', 3, 3), '{1,2,3}'::text[], 'slots of a pool are numbers');
SELECT pg_temp.true_everywhere('after pattern_build');
TRUNCATE t;
SELECT is((SELECT count(*) FROM t_p_claims), 0::bigint, 'TRUNCATE forgets all claims');
INSERT INTO t SELECT i, '{}' FROM generate_series(1, 3) i;
SELECT is(pattern_repair('t', 'p'), 0::bigint, 'nothing to repair');
SELECT is(preallocated_claim('t', 1, '{1}', 'eve'), true, 'a claim');
SELECT is(pattern_disable('t', 'p', keep_data => true), 0::bigint, 'disabled, with its data where it is');
SELECT is((SELECT holder FROM t_p_claims), '"eve"'::bson_value, 'there');
DROP TABLE t_p_claims;
TRUNCATE t;

-- A calendar
SELECT is(preallocated_enable('t', 'days', preallocated_calendar(), store => 'slots', available_field => 'free'), 'days', 'a calendar');
SELECT lives_ok(format('INSERT INTO t VALUES (%s, %L)', n, doc), doc) FROM (VALUES (1, '{month: "February", year: 2024}'), (2, '{month: "feb", year: "1900"}'), (3, '{month: "02", year: 2000.0}'), (4, '{month: "SEPT", year: NumberLong(2023)}'),
  (5, '{month: Decimal(12), year: 9999}'), (6, '{month: "may", year: "1"}')) AS v (n, doc);
SELECT results_eq($$SELECT doc ->> 'free' FROM t_whole ORDER BY id$$, ARRAY['29', '28', '29', '30', '31', '31'], 'leap years and all');
SELECT throws_ok(format('INSERT INTO t VALUES (9, %L)', doc), '23514', NULL, doc) FROM unnest(ARRAY['{}', '{month: 4}', '{year: 2019}', '{month: 13, year: 2019}', '{month: 0, year: 2019}', '{month: 4.5, year: 2019}', '{month: "Avril", year: 2019}',
  '{month: "", year: 2019}', '{month: "a", year: 2019}', '{month: "100", year: 2019}', '{month: 4, year: 0}', '{month: 4, year: 10000}', '{month: 4, year: "19x"}', '{month: 4, year: null}', '{month: [4], year: 2019}',
  '{month: 4, year: 2019, days: [1, 2, 3]}']) AS doc;
UPDATE t SET doc = bson_set(doc, 'month', 4) WHERE id = 1;
SELECT is((SELECT doc ->> 'free' FROM t_whole WHERE id = 1), '30', 'another month, other days');
UPDATE t_whole SET doc = bson_set(doc, 'month', '"Feb"'::bson_value) WHERE id = 1;
SELECT is((SELECT doc ->> 'free' FROM t_whole WHERE id = 1), '29', 'through the view too');
SELECT is(preallocated_claim('t', 1, '{29}', 'ada'), true, 'a claim');
SELECT throws_ok($$UPDATE t SET doc = bson_set(doc, 'month', 4) WHERE id = 1$$, '23514', NULL, 'then the month stays');
SELECT lives_ok($$UPDATE t SET doc = bson_set(doc, 'month', 'february'::text) WHERE id = 1$$, 'it may be written otherwise');
SELECT throws_ok($$SELECT preallocated_claim('t', 1, '{30}', 'ada')$$, '22023', NULL, 'February has no 30th');
SELECT throws_ok($$SELECT preallocated_claim('t', 1, '{28}', 28)$$, '22023', NULL, 'a day is no holder of itself');
SELECT is(preallocated_find('t', 1, 28), (SELECT array_agg(i::text) FROM generate_series(1, 28) i), 'days side by side');
SELECT is((SELECT preallocated_find(doc, 2, 'days') FROM t_whole WHERE id = 1), '{1,2}'::text[], 'in the document');
SELECT is((SELECT preallocated_ranges(doc, 'days') FROM t_whole WHERE id = 1), '[[1, 28]]'::bson_value, 'what is free as ranges');
SELECT pg_temp.true_everywhere('calendars');
SELECT pattern_disable('t', 'days');
TRUNCATE t;
SELECT is(preallocated_enable('t', 'days', preallocated_calendar(true, 'when.m', 'when.y'), store => 'document', available_field => 'free'), 'days', 'weekdays');
INSERT INTO t VALUES (1, '{when: {m: "April", y: "2019"}}');
SELECT is(preallocated_claim('t', 1, '{8,9}', 'ada', '1 h'), true, 'a week');
SELECT is(preallocated_extend('t', 1, preallocated_calendar()), 8, 'weekends too');
SELECT is((SELECT preallocated_ranges(doc, 'days') FROM t WHERE id = 1), '[[1, 7], [10, 30]]'::bson_value, 'the claims stay where they are');
SELECT is((SELECT doc ->> 'free' FROM t WHERE id = 1), '28', 'counted');
SELECT pg_temp.true_everywhere('weekends');
SELECT pattern_disable('t', 'days');
TRUNCATE t;

-- In the document
SELECT is(preallocated_enable('t', 'p', preallocated_pool(4), store => 'document', available_field => 'free'), 'p', 'claims in the document');
INSERT INTO t VALUES (1, '{}'), (2, '{p: ["z", 0, 0, 0], p_until: {"1": ISODate("2100-01-01")}}');
SELECT is((SELECT doc FROM t WHERE id = 1), '{p: [0, 0, 0, 0], free: 4}'::bson, 'the number of free cells is stored there');
SELECT is(preallocated_claim('t', 1, '{1,2}', 'ada', '1 hour'), true, 'ada');
SELECT is(preallocated_claim('t', 1, '{2,3}', 'bob'), false, 'bob not');
SELECT is(preallocated_claim('t', 1, '{3}', 'bob', '1 ms'), true, 'bob for a millisecond');
SELECT is((SELECT bson_unset(doc, 'p_until') FROM t WHERE id = 1), '{p: ["ada", "ada", "bob", 0], free: 1}'::bson, 'in the cells');
SELECT is((SELECT bson_typeof(doc, 'p_until.3') FROM t WHERE id = 1), 'date', 'and until when beside them');
SELECT is(pg_sleep(0.02)::text, '', 'soon over');
SELECT is((SELECT doc FROM t_whole WHERE id = 1), '{p: ["ada", "ada", 0, 0], free: 2}'::bson, 'the whole document frees what is over');
SELECT results_eq($$SELECT slot, holder FROM preallocated_slots('t', 1)$$, $$VALUES ('1', '"ada"'::bson_value), ('2', '"ada"'), ('3', NULL), ('4', NULL)$$, 'and so do rows');
SELECT is(preallocated_confirm('t', 1, '{3}', 'bob'), false, 'it is not confirmed any more');
SELECT is(preallocated_confirm('t', 1, '{1}', 'ada'), true, 'what is held is');
SELECT is((SELECT doc -> 'p' FROM t WHERE id = 1), '["ada", "ada", 0, 0]'::bson_value, 'who writes frees what is over');
SELECT throws_ok(format('UPDATE t SET doc = %s WHERE id = 1', expr), '23514', NULL, expr) FROM unnest(ARRAY[$$bson_set(doc, 'p.0', 0)$$, $$bson_set(doc, 'p.3', 'eve'::text)$$, $$bson_set(doc, 'p_until.2', timestamptz '2200-01-01')$$,
  $$bson_set(doc, 'p', '[0, 0, 0, 0]'::bson_value)$$, 'NULL']) AS expr;
UPDATE t SET doc = '{title: "t", free: 77}' WHERE id = 1;
SELECT is((SELECT bson_unset(doc, 'p_until') FROM t WHERE id = 1), '{title: "t", free: 2, p: ["ada", "ada", 0, 0]}'::bson, 'a document that is replaced keeps its slots');
UPDATE t_whole SET doc = bson_set(doc, 'title', 'w'::text) WHERE id = 1;
SELECT is((SELECT doc ->> 'title' FROM t WHERE id = 1), 'w', 'through the view');
SELECT ok((SELECT doc ? 'p_until' FROM t WHERE id = 1), 'which keeps the times');
INSERT INTO t VALUES (1, '{title: "u"}') ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is((SELECT bson_unset(doc, 'p_until') FROM t WHERE id = 1), '{title: "u", p: ["ada", "ada", 0, 0], free: 2}'::bson, 'an upsert keeps them too');
SELECT is(preallocated_release('t', 1, '{1,2}', 'ada'), true, 'released');
SELECT is((SELECT doc FROM t WHERE id = 1), '{title: "u", p: [0, 0, 0, 0], free: 4}'::bson, 'all free');
SELECT throws_ok($$INSERT INTO t VALUES (9, '{p: [0, 0, 0, 0], p_until: {"1": ISODate("2100-01-01")}}')$$, '23514', NULL, 'a time of a free cell');
SELECT throws_ok($$INSERT INTO t VALUES (9, '{p: [0, 0, 0, 0], p_until: 5}')$$, '23514', NULL, 'a time that is none');
SELECT pg_temp.true_everywhere('in the document');
SELECT is(pattern_disable('t', 'p'), 1::bigint, 'disabled: one had times');
SELECT is((SELECT doc FROM t WHERE id = 2), '{p: ["z", 0, 0, 0], free: 3}'::bson, 'which are gone');
TRUNCATE t;

-- A clock
SELECT is(preallocated_enable('t', 'v', preallocated_clock('{hour,minute}', fill => 0)), 'v', 'a clock');
INSERT INTO t VALUES (1, '{}');
UPDATE t SET doc = bson_update(doc, '{$inc: {"v.23.59": 5}}');
SELECT is((SELECT doc ->> 'v.23.59' FROM t), '5', 'is counted in');
SELECT throws_ok(format('UPDATE t SET doc = bson_update(doc, %L)', u), '23514', NULL, u) FROM unnest(ARRAY['{$inc: {"v.24.0": 1}}', '{$inc: {"v.23.60": 1}}', '{$unset: {"v.0": 1}}', '{$set: {"v.0.0": []}}', '{$set: {v: 5}}']) AS u;
SELECT throws_ok($$SELECT preallocated_claim('t', 1, '{0}', 'ada')$$, '22023', NULL, 'nobody claims its slots');
SELECT throws_ok($$SELECT * FROM preallocated_slots('t', 1)$$, '22023', NULL, 'nor lists them');
SELECT hasnt_view('t_whole', 'it needs no view');
UPDATE t SET doc = '{a: 1}';
SELECT is((SELECT doc ->> 'v.23.59' FROM t), '5', 'a document that is replaced keeps its counts');
SELECT pg_temp.true_everywhere('a clock');
SELECT is(pattern_disable('t', 'v'), 0::bigint, 'disabled');

-- Ranges
SELECT is(preallocated_ranges(d, 'a'), r, d::text) FROM (VALUES ('{a: []}'::bson, '[]'::bson_value), ('{a: [5]}', '[[5, 5]]'), ('{a: [1, 2, "x", 3, 5, 4]}', '[[1, 2], [3, 3], [5, 5], [4, 4]]'), ('{a: [1.0, 2, NumberLong(3), 3.5]}', '[[1, 3]]'),
  ('{a: [NumberLong("4294967296"), NumberLong("4294967297")]}', '[[NumberLong("4294967296"), NumberLong("4294967297")]]'), ('{b: 1}', NULL)) AS v (d, r);
SELECT throws_ok($$SELECT preallocated_ranges('{a: 5}', 'a')$$, '42804', NULL, 'ranges of what is no array');
SELECT is(preallocated_cells(r), c, r::text) FROM (VALUES ('[]'::bson_value, '[]'::bson_value), ('[[1, 3], 7, [9, 9]]', '[1, 2, 3, 7, 9]'), ('[[-1, 1]]', '[-1, 0, 1]')) AS v (r, c);
SELECT throws_ok(format('SELECT preallocated_cells(%L)', r), state, NULL, r) FROM (VALUES ('5', '22023'), ('[[1]]', '22023'), ('[[2, 1]]', '22023'), ('["a"]', '22023'), ('[[1, 2.5]]', '22023'), ('[[1, 2, 3]]', '22023'), ('[[1, 2000000]]', '54000'),
  ('[[-9007199254740991, 9007199254740991]]', '54000')) AS v (r, state);

-- A document without a declaration
SELECT is(preallocated_find('{x: 1, d: [1, "a", 3, 4]}'::bson, 2), '{3,4}'::text[], 'the first array');
SELECT is(preallocated_find('{d: [1], s: [["a", 0], [0, 0]]}'::bson, 2), '{B1,B2}'::text[], 'or the first grid');
SELECT is(preallocated_find('{s: [["a", "-"], ["-", "-"]]}'::bson, 2, fill => '-'::text), '{B1,B2}'::text[], 'with another fill');
SELECT throws_ok($$SELECT preallocated_find('{x: 1}'::bson, 1)$$, '22023', NULL, 'no array at all');
-- By default the state is in the document, for every reader.
SELECT preallocated_enable(collection_create('plainly'), 'days', preallocated_calendar(), available_field => 'free') \g /dev/null
INSERT INTO plainly (doc) VALUES ('{_id: 1, month: 2, year: 2023}');
SELECT ok(preallocated_claim('plainly', 1, '{2}', holder => 'ada') AND preallocated_claim('plainly', 1, '{3}', holder => 'bob', hold_for => '1 h'), 'claimed');
SELECT is((SELECT concat_ws(' ', doc ->> 'days.0', doc ->> 'days.1', doc ->> 'days.2', doc ->> 'free') FROM plainly), '1 ada bob 26', 'a claimed day is not shown as free');
SELECT is((SELECT collection_count('plainly', '{"days.1": 2}')), 0::bigint, 'nor by a call');

-- An upsert of a clock begins with some of its counters.
SELECT preallocated_enable(collection_create('counted'), 'v', preallocated_clock('{hour,minute}', fill => 0)) \g /dev/null
SELECT is((SELECT (upserted::int, matched) FROM collection_update('counted', bson_build('_id', i), u::bson, upsert => true)), (i, 0::bigint), u)
  FROM unnest(ARRAY['{"$inc": {"v.7.37": 5}}', '{"$set": {"v.7.37": 5}}', '{"$set": {"v.7.37": 5, "v.7.2": 1}, "$max": {"v.0.0": 3}}', '{"$set": {"v.7": {"37": 5}}}']) WITH ORDINALITY x (u, o), LATERAL (SELECT o::int AS i) n;
SELECT is((SELECT string_agg(concat_ws(' ', doc ->> 'v.7.37', doc ->> 'v.7.2', doc ->> 'v.0.0', doc ->> 'v.23.59'), ', ' ORDER BY _id) FROM counted), '5 0 0 0, 5 0 0 0, 5 1 3 0, 5 0 0 0', 'and has the others');
SELECT is((SELECT concat_ws(' ', matched, modified) FROM collection_update('counted', '{_id: 2}', '{$inc: {"v.7.37": 5}}', upsert => true)), '1 1', 'which then count');
SELECT throws_ok(format('INSERT INTO counted (doc) VALUES (%L)', d), '23514', NULL, d) FROM unnest(ARRAY['{v: {"24": {}}}', '{v: {"1": 5}}', '{v: {"1": {"60": 1}}}', '{v: {"1": {"07": 1}}}', '{v: [1]}', '{v: {"1": {"1": 1, "1": 2}}}', '{v: {"1": {"1": {}}}}']) d;
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');

SELECT * FROM finish();
