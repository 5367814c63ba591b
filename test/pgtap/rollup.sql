-- The contract of the roll-up pattern: what is refused and how, spans and time zones, what every kind of write does, and a
-- seeded random run against plain SQL.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(102);

CREATE FUNCTION pg_temp.true_everywhere(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;
-- all documents of a level, without their keys and states
CREATE FUNCTION pg_temp.level(rel regclass, level text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
  EXECUTE format('SELECT string_agg(bson_unset(bson_unset(bson_unset(doc, ''_id''), ''_computed''), ''level'')::text, '' '' ORDER BY _id) FROM %s WHERE doc ->> ''level'' = $1', rel) INTO result USING level;
  RETURN result;
END $$;
CREATE TABLE s (id int PRIMARY KEY, doc bson);

-- Signatures
SELECT function_returns('rollup_enable', 'text');
SELECT volatility_is('rollup_enable', 'volatile', 'rollup_enable is volatile');

-- Refused options
SELECT throws_ok(format('SELECT rollup_enable(''s'', %s)', args), state, NULL, what) FROM (VALUES
  ($$NULL, '{n: {$count: {}}}', 't', '{day}'$$, '22004', 'no name'), ($$'x', NULL, 't', '{day}'$$, '22004', 'no fields'),
  ($$'x', '{n: {$count: {}}}', NULL, '{day}'$$, '22023', 'neither time nor tree'), ($$'x', '{n: {$count: {}}}', 't', NULL$$, '22023', 'no levels'),
  ($$'x', '{n: {$count: {}}}', 't', '{}'$$, '22023', 'empty levels'), ($$'x', '{n: {$count: {}}}', 't', '{NULL}'$$, '22004', 'a null level'),
  ($$'x', '{n: {$count: {}}}', 't', '{fortnight}'$$, '22007', 'an unknown unit'), ($$'x', '{n: {$count: {}}}', 't', '{day,"24 hours"}'$$, '22023', 'two levels of one width'),
  ($$'x', '{n: {$count: {}}}', 't', '{"100 milliseconds"}'$$, '22023', 'too short a level'), ($$'x', '{n: {$count: {}}}', 't', '{"-1 day"}'$$, '22023', 'a negative level'),
  ($$'x', '{n: {$count: {}}}', 't', '{day}', group_by => '{g,NULL}'$$, '22004', 'a null in group_by'), ($$'x', '{n: {$count: {}}}', 't', '{day}', group_by => '{n}'$$, '22023', 'a group and a field of one name'),
  ($$'x', '{n: {$count: {}}}', 't', '{day}', group_by => '{start}'$$, '22023', 'a group called start'), ($$'x', '{n: {$count: {}}}', 't', '{day}', group_by => '{a,a.b}'$$, '22023', 'a group inside another'),
  ($$'x', '{level: {$count: {}}}', 't', '{day}'$$, '22023', 'a field called level'), ($$'x', '{n: {$nope: 1}}', 't', '{day}'$$, '0A000', 'an unknown accumulator'),
  ($$'x', '{n: 1}', 't', '{day}'$$, '22023', 'a field that is no accumulator'), ($$'x', '{n: {$count: {}}}', 't', '{day}', time_zone => 'Nowhere'$$, '22023', 'an unknown time zone'),
  ($$'x', '{n: {$count: {}}}', 't', '{day}', time_zone => NULL$$, '22004', 'no time zone'), ($$'x', '{n: {$count: {}}}', 't', '{day}', filter => '{$nope: 1}'$$, '0A000', 'a filter that is none'),
  ($$'x', '{n: {$count: {}}}', 't..u', '{day}'$$, '22023', 'a bad path'), ($$'x', '{n: {$count: {}}}', 't', '{day}', target => 's'$$, '42P07', 'a target that exists'),
  ($$'x', '{n: {$count: {}}}', tree => 's', group_by => '{g}'$$, '42704', 'a tree that is none'), ($$'x', '{n: {$count: {}}}', 't', '{day}', tree => 's'$$, '22023', 'time and tree'),
  ($$'x', '{n: {$count: {}}}', tree => 's', levels => '{day}', group_by => '{g}'$$, '22023', 'levels along a tree'), ($$'x', '{n: {$count: {}}}', 't', '{day}', doc_column => 'nope'$$, '42703', 'an unknown column')) AS v (args, state, what);
SELECT is((SELECT count(*)::int FROM pattern_list('s')), 0, 'nothing of that is left behind');
SELECT hasnt_table('x', 'nor a table');

-- Declared, and every kind of write
SELECT is(rollup_enable('s', 'Spans', '{n: {$count: {}}, best: {$max: "$v"}, last: {$last: "$v"}, mid: {$median: {input: "$v", method: "approximate"}}, sum: {$sum: "$v"}}',
                        time_field => 't', levels => '{month,day}', group_by => '{g}'), 'Spans', 'enabled');
SELECT has_table('Spans', 'the documents lie in a table of that name');
SELECT throws_ok($$SELECT rollup_enable('s', 'Spans', '{n: {$count: {}}}', 't', '{day}')$$, '42710', NULL, 'a second roll-up of the name');
INSERT INTO s SELECT i, bson_build('t', timestamptz '2024-01-01' + i * interval '8 hours', 'g', 'a', 'v', i) FROM generate_series(0, 5) i;
SELECT is(pg_temp.level('"Spans"', 'day'), '{"start": {"$date": "2024-01-01T00:00:00Z"}, "g": "a", "n": 3, "best": 2, "last": 2, "mid": 1.0, "sum": 3} {"start": {"$date": "2024-01-02T00:00:00Z"}, "g": "a", "n": 3, "best": 5, "last": 5, "mid": 4.0, "sum": 12}', 'INSERT');
SELECT is(pg_temp.level('"Spans"', 'month'), '{"start": {"$date": "2024-01-01T00:00:00Z"}, "g": "a", "n": 6, "best": 5, "last": 5, "mid": 2.0, "sum": 15}', 'a level above is the total');
DELETE FROM s WHERE id = 5;
SELECT is(pg_temp.level('"Spans"', 'month'), '{"start": {"$date": "2024-01-01T00:00:00Z"}, "g": "a", "n": 5, "best": 4, "last": 4, "mid": 2.0, "sum": 10}', '$max, $last and $median are found again');
COPY s FROM stdin;
6	{"t": {"$date": "2024-02-29T23:59:59.999Z"}, "g": "a", "v": 6}
7	{"t": {"$date": "2024-03-01T00:00:00Z"}, "g": null, "v": 7}
8	{"t": {"$date": "2024-03-01T00:00:00Z"}, "v": 8}
9	{"t": "2024-03-01", "g": "a", "v": 9}
10	{"g": "a", "v": 10}
11	{"t": null, "g": "a", "v": 11}
\.
SELECT is(pg_temp.level('"Spans"', 'month'), '{"start": {"$date": "2024-03-01T00:00:00Z"}, "g": null, "n": 2, "best": 8, "last": 8, "mid": 7.0, "sum": 15} {"start": {"$date": "2024-01-01T00:00:00Z"}, "g": "a", "n": 5, "best": 4, "last": 4, "mid": 2.0, "sum": 10} {"start": {"$date": "2024-02-01T00:00:00Z"}, "g": "a", "n": 1, "best": 6, "last": 6, "mid": 6.0, "sum": 6}', 'COPY; a null and a missing group are one; rows without a date count nowhere');
INSERT INTO s VALUES (6, '{t: {$date: "2024-02-01T00:00:00Z"}, g: "b", v: 1}'), (12, '{t: {$date: "2024-02-01T00:00:00Z"}, g: "b", v: 2}') ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
INSERT INTO s VALUES (6, '{t: {$date: "2025-02-01T00:00:00Z"}, g: "b", v: 1}') ON CONFLICT DO NOTHING;
SELECT is((SELECT count(*)::int FROM "Spans" WHERE doc @@ '{g: "b"}'), 2, 'ON CONFLICT, both forms');
MERGE INTO s USING (VALUES (6, 1), (12, 2), (20, 3)) AS v (id, what) ON v.id = s.id
  WHEN MATCHED AND what = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET doc = bson_set(doc, 'g', 'c') WHEN NOT MATCHED THEN INSERT VALUES (v.id, '{t: {$date: "2024-02-02T00:00:00Z"}, g: "c", v: 3}');
SELECT is((SELECT string_agg(doc ->> 'sum', ' ' ORDER BY _id) FROM "Spans" WHERE doc @@ '{g: "c"}') || (SELECT count(*) FROM "Spans" WHERE doc @@ '{g: "b"}'), '2 3 50', 'MERGE');
WITH d AS (DELETE FROM s WHERE id = 20 RETURNING doc) INSERT INTO s SELECT 21, bson_set(doc, 'v', 30) FROM d;
SELECT is((SELECT doc ->> 'sum' FROM "Spans" WHERE doc @@ '{g: "c", level: "month"}'), '32', 'a query of several parts');
SELECT ctid AS before FROM "Spans" WHERE doc @@ '{g: "c", level: "month"}' \gset
UPDATE s SET doc = bson_set(doc, 'unseen', 1);
SELECT is((SELECT ctid FROM "Spans" WHERE doc @@ '{g: "c", level: "month"}'), :'before'::tid, 'what is not accumulated touches no document');
UPDATE s SET id = id + 100;
SELECT pg_temp.true_everywhere('writes');
BEGIN;
SAVEPOINT a;
DELETE FROM s;
SELECT is((SELECT count(*)::int FROM "Spans"), 0, 'without rows there are no documents');
ROLLBACK TO a;
TRUNCATE s;
SELECT is((SELECT count(*)::int FROM "Spans"), 0, 'TRUNCATE');
ROLLBACK;
SELECT pg_temp.true_everywhere('rolled back');

-- The documents belong to the pattern
SELECT throws_ok(format('%s "Spans"%s', what, rest), '55000', NULL, what || ' is refused') FROM (VALUES ('DELETE FROM', ''), ('UPDATE', ' SET doc = doc'), ('TRUNCATE', ''), ('INSERT INTO', ' (doc) VALUES (''{}'')')) AS v (what, rest);
SELECT throws_ok($$SELECT pattern_alter('s', 'Spans', '{filter: {}}')$$, '22023', NULL, 'options stay');

-- Off, and on again
SET docpatterns.maintain = off;
DELETE FROM s WHERE id % 2 = 0;
INSERT INTO s VALUES (1, '{t: {$date: "2030-01-01T00:00:00Z"}, g: "z", v: 1}');
RESET docpatterns.maintain;
SELECT cmp_ok((SELECT count(*) FROM pattern_check('s')), '>', 0::bigint, 'what was written behind its back is found');
SELECT cmp_ok(pattern_repair('s', 'Spans'), '>', 0::bigint, 'and repaired');
SELECT pg_temp.true_everywhere('repaired');
SELECT is(pattern_repair('s', 'Spans'), 0::bigint, 'nothing is left to repair');
SELECT is(pattern_disable('s', 'Spans', keep_data => true) IS NOT NULL, true, 'disabled');
SELECT lives_ok($$DELETE FROM "Spans"; DROP TABLE "Spans"$$, 'the documents are ordinary ones now');
SELECT is(rollup_enable('s', 'Spans', '{n: {$count: {}}}', time_field => 't', levels => '{month}'), 'Spans', 'declared on a full table');
CALL pattern_build('s', 'Spans');
SELECT pg_temp.true_everywhere('built');
SELECT pattern_disable('s', 'Spans');
SELECT hasnt_table('Spans', 'disabled without keep_data');
TRUNCATE s;

-- Time zones: days of 23 and 25 hours, and an hour that comes twice
SELECT rollup_enable('s', 'z', '{n: {$count: {}}}', time_field => 't', levels => '{hour,day,week,month,quarter}', time_zone => 'Europe/Copenhagen');
INSERT INTO s SELECT i, bson_build('t', timestamptz '2024-03-30 00:00+01' + i * interval '1 hour') FROM generate_series(0, 71) i;
INSERT INTO s SELECT 1000 + i, bson_build('t', timestamptz '2024-10-26 00:00+02' + i * interval '1 hour') FROM generate_series(0, 72) i;
SELECT is((SELECT string_agg(doc ->> 'n', ' ' ORDER BY _id) FROM z WHERE doc ->> 'level' = 'day'), '24 23 24 1 24 25 24', 'days are as long as the clock says');
SELECT is((SELECT count(*)::int FROM z WHERE doc ->> 'level' = 'hour'), 145, 'hours follow one another');
SELECT is_empty($$SELECT doc FROM z WHERE doc ->> 'level' NOT IN ('hour') AND (doc -> 'start')::timestamptz <> date_trunc(doc ->> 'level', (doc -> 'start')::timestamptz, 'Europe/Copenhagen')$$, 'starts are where the zone has them');
SELECT is((SELECT string_agg(doc ->> 'n', ' ' ORDER BY _id) FROM z WHERE doc ->> 'level' = 'month'), '47 25 73', 'months');
SELECT is((SELECT string_agg(doc ->> 'n', ' ' ORDER BY _id) FROM z WHERE doc ->> 'level' = 'quarter'), '47 25 73', 'quarters');
DELETE FROM s WHERE id BETWEEN 20 AND 1030;
SELECT is((SELECT string_agg(doc ->> 'n', ' ' ORDER BY _id) FROM z WHERE doc ->> 'level' = 'day'), '20 18 24', 'rows that go, go from their own days');
SELECT pg_temp.true_everywhere('time zones');
SELECT pattern_disable('s', 'z');
TRUNCATE s;
-- Dates before 1970 and at the ends of what PostgreSQL knows
SELECT rollup_enable('s', 'z', '{n: {$count: {}}}', time_field => 't', levels => '{hour,year}');
INSERT INTO s VALUES (1, '{t: {$date: "1969-12-31T23:59:59.999Z"}}'), (2, '{t: {$date: {$numberLong: "-9223372036854775808"}}}'), (3, '{t: {$date: {$numberLong: "9223372036854775807"}}}'), (4, '{t: {$date: "0001-01-01T00:00:00Z"}}');
SELECT is((SELECT count(*)::int FROM z), 4, 'dates that are no timestamps count nowhere');
SELECT pg_temp.true_everywhere('early dates');
SELECT pattern_disable('s', 'z');
TRUNCATE s;

-- Numbers: decimals as decimals, doubles without drift
SELECT rollup_enable('s', 'z', '{d: {$sum: "$d"}, x: {$sum: "$x"}, a: {$avg: "$x"}}', time_field => 't', levels => '{day,year}', filter => '{x: {$ne: 5}}');
INSERT INTO s SELECT i, bson_build('t', timestamptz '2024-01-01' + i * interval '1 day', 'd', 0.1, 'x', CASE WHEN i = 0 THEN 1e16 ELSE 0.1 END::float8) FROM generate_series(0, 100) i;
DELETE FROM s WHERE id = 0;
SELECT is((SELECT bson_unset(bson_unset(bson_unset(doc, '_id'), '_computed'), 'start')::text FROM z WHERE doc ->> 'level' = 'year'), '{"level": "year", "d": {"$numberDecimal": "10.0"}, "x": 10.0, "a": 0.1}', 'sums are exact, whatever came and went');
INSERT INTO s VALUES (200, '{t: {$date: "2024-01-01T00:00:00Z"}, x: 5}'), (201, '{t: {$date: "2024-01-01T00:00:00Z"}, x: "text"}');
SELECT is((SELECT doc ->> 'x' FROM z WHERE doc ->> 'level' = 'year'), '10', 'a filter, and what is no number');
INSERT INTO s VALUES (202, '{t: {$date: "2024-01-01T00:00:00Z"}, x: {$numberDouble: "Infinity"}}'), (203, '{t: {$date: "2024-01-01T00:00:00Z"}, x: {$numberDouble: "-Infinity"}}');
SELECT is((SELECT doc ->> 'x' FROM z WHERE doc ->> 'level' = 'year'), 'NaN', 'infinities');
DELETE FROM s WHERE id IN (202, 203);
SELECT is((SELECT doc ->> 'x' FROM z WHERE doc ->> 'level' = 'year'), '10', 'that go again');
SELECT pg_temp.true_everywhere('numbers');
DROP TABLE s CASCADE;
SELECT hasnt_table('z', 'a roll-up goes with its source');

-- Hostile names
CREATE SCHEMA "o'S";
CREATE TABLE "o'S"."T ""t"" %s" ("k ""1" int, "k'2" text, "d""oc" bson, PRIMARY KEY ("k'2", "k ""1"));
SELECT is(rollup_enable('"o''S"."T ""t"" %s"', 'it''s "n" %s', '{"a b": {$max: "$x y"}, "q\"u''o": {$count: {}}}', time_field => 'a."t ''t"', levels => '{day}', group_by => ARRAY['"g""''%s"']), 'it''s "n" %s', 'hostile names are names');
INSERT INTO "o'S"."T ""t"" %s" VALUES (1, 'a', bson_build('a', bson_build('t ''t', timestamptz '2024-01-01'), 'x y', 3)), (2, 'a', bson_build('a', bson_build('t ''t', timestamptz '2024-01-01'), 'x y', 9));
DELETE FROM "o'S"."T ""t"" %s" WHERE "k ""1" = 2;
SELECT is((SELECT (doc ->> '"a b"') || (doc ->> '"q""u''o"') FROM "o'S"."it's ""n"" %s"), '31', 'and are kept');
SELECT pg_temp.true_everywhere('hostile names');
CALL pattern_build('"o''S"."T ""t"" %s"', 'it''s "n" %s');
SELECT lives_ok($$SELECT pattern_disable('"o''S"."T ""t"" %s"', 'it''s "n" %s')$$, 'disabled');
DROP SCHEMA "o'S" CASCADE;

-- Partitions
CREATE TABLE parts (id int, r int, doc bson, PRIMARY KEY (id, r)) PARTITION BY RANGE (r);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE parts_2 (r int NOT NULL, junk int, doc bson, id int NOT NULL, PRIMARY KEY (id, r));
ALTER TABLE parts_2 DROP COLUMN junk;
SELECT rollup_enable('parts', 'pn', '{n: {$count: {}}, m: {$max: "$v"}}', time_field => 't', levels => '{day,month}');
INSERT INTO parts SELECT i, i % 10, bson_build('t', timestamptz '2024-01-01' + i * interval '1 hour', 'v', i) FROM generate_series(1, 60) i;
INSERT INTO parts_2 (id, r, doc) SELECT i, 10 + i % 10, bson_build('t', timestamptz '2024-01-01' + i * interval '1 hour', 'v', i) FROM generate_series(61, 90) i;
SELECT is((SELECT doc ->> 'n' FROM pn WHERE doc ->> 'level' = 'month'), '60', 'through the table');
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (10) TO (20);
SELECT is((SELECT (doc ->> 'n') || '/' || (doc ->> 'm') FROM pn WHERE doc ->> 'level' = 'month'), '90/90', 'ATTACH');
UPDATE parts SET r = r + 10 WHERE id = 60;
DELETE FROM parts_2 WHERE id = 90;
SELECT is((SELECT (doc ->> 'n') || '/' || (doc ->> 'm') FROM pn WHERE doc ->> 'level' = 'month'), '89/89', 'rows that move; a partition by itself');
TRUNCATE parts_1;
SELECT is((SELECT (doc ->> 'n') || '/' || (doc ->> 'm') FROM pn WHERE doc ->> 'level' = 'month'), '30/89', 'TRUNCATE of a partition');
SELECT pg_temp.true_everywhere('partitions');
ALTER TABLE parts DETACH PARTITION parts_2;
SELECT is((SELECT count(*)::int FROM pn), 0, 'DETACH');
SELECT pg_temp.true_everywhere('detached');
DROP TABLE parts, parts_2 CASCADE;

-- Relations of measurements
SELECT bucket_create('meas', columns => 'sensor int, ts timestamptz, s float8', group_by => '{sensor}', time_field => 'ts', span => '1 hour', max_count => 30);
SELECT rollup_enable('meas', 'mr', '{n: {$count: {}}, top: {$max: "$s"}, sum: {$sum: "$s"}}', time_field => 'ts', levels => '{hour,day}', group_by => '{sensor}');
INSERT INTO meas SELECT i % 3, timestamptz '2024-01-01' + i * interval '1 minute', i FROM generate_series(0, 2999) i;
DELETE FROM meas WHERE s >= 2990;
UPDATE meas SET s = s + 0.5 WHERE sensor = 1 AND s < 100;
SELECT is_empty($$SELECT * FROM (SELECT (doc -> 'sensor')::int AS s, (doc -> 'start')::timestamptz AS t, (doc -> 'n')::bigint AS n, (doc -> 'top')::float8 AS top, (doc -> 'sum')::float8 AS sum FROM mr WHERE doc ->> 'level' = 'hour') a
  FULL JOIN (SELECT sensor AS s, date_trunc('hour', ts) AS t, count(*) AS n, max(s) AS top, sum(s) AS sum FROM meas GROUP BY 1, 2) b USING (s, t) WHERE (a.n, a.top, a.sum) IS DISTINCT FROM (b.n, b.top, b.sum)$$, 'as plain SQL has it');
SELECT bucket_drop_before('meas', '2024-01-02');
SELECT is((SELECT sum((doc -> 'n')::bigint) FROM mr WHERE doc ->> 'level' = 'day')::bigint, (SELECT count(*) FROM meas), 'what is dropped before a time is gone from the totals');
SELECT pg_temp.true_everywhere('measurements');
SELECT throws_ok($$CALL pattern_build('meas', 'mr')$$, '0A000', NULL, 'they have no keys to build by');
SELECT lives_ok($$SELECT pattern_repair('meas', 'mr')$$, 'but can be repaired');
SELECT pattern_disable('meas', 'mr');
SELECT hasnt_table('mr', 'a roll-up of measurements can be disabled');
DROP FOREIGN TABLE meas;

-- Along a tree
SELECT collection_create('nodes'), collection_create('sales');
SELECT tree_enable('nodes', parent => 'up', on_delete => 'reparent');
SELECT rollup_enable('sales', 'by_node', '{n: {$count: {}}, best: {$max: "$v"}, mid: {$median: {input: "$v", method: "approximate"}}, sum: {$sum: "$v"}}', tree => 'nodes', group_by => '{c}');
INSERT INTO nodes (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 1 THEN i / 2 END) FROM generate_series(1, 7) i;
INSERT INTO sales (doc) SELECT bson_build('_id', i, 'c', i % 8, 'v', i) FROM generate_series(1, 40) i;
CREATE VIEW by_node_differs AS
  WITH RECURSIVE up AS (SELECT _id AS node, _id AS above FROM nodes UNION SELECT DISTINCT doc -> 'c', doc -> 'c' FROM sales WHERE (doc ->> 'c') IS NOT NULL
    UNION SELECT u.node, c.doc -> 'up' FROM up u JOIN nodes c ON c._id = u.above WHERE (c.doc ->> 'up') IS NOT NULL)
  SELECT b._id, b.doc::text, q::text FROM by_node b FULL JOIN (SELECT u.above AS _id, count(*) AS n, sum((o.doc -> 'v')::int) AS s, max((o.doc -> 'v')::int) AS best, percentile_disc(0.5) WITHIN GROUP (ORDER BY (o.doc -> 'v')::int) AS mid FROM up u JOIN sales o ON o.doc -> 'c' = u.node GROUP BY 1) q USING (_id)
  WHERE ((b.doc -> 'n')::bigint, (b.doc -> 'sum')::bigint, (b.doc -> 'best')::int, (b.doc -> 'mid')::float8) IS DISTINCT FROM (q.n, q.s, q.best, q.mid::float8);
SELECT is((SELECT doc ->> 'n' FROM by_node WHERE _id = 1), '35', 'the root has all that is in the tree');
SELECT is((SELECT doc ->> 'n' FROM by_node WHERE _id = 0), '5', 'a node that is not there counts alone');
UPDATE nodes SET doc = bson_set(doc, 'up', 7) WHERE _id = 2;
SELECT is_empty('SELECT * FROM by_node_differs', 'a subtree that moves');
UPDATE nodes SET doc = bson_set(doc, 'up', NULL) WHERE _id IN (5, 6);
SELECT is_empty('SELECT * FROM by_node_differs', 'new roots');
INSERT INTO nodes (doc) VALUES ('{_id: 0, up: 5}');
DELETE FROM nodes WHERE _id = 7;
SELECT is_empty('SELECT * FROM by_node_differs', 'a node that comes, and one that goes');
DELETE FROM sales WHERE (doc -> 'v')::int > 30;
UPDATE sales SET doc = bson_set(doc, 'c', 4) WHERE _id < 10;
SELECT is_empty('SELECT * FROM by_node_differs', 'sales that go and move');
SELECT pg_temp.true_everywhere('a tree');
CALL pattern_build('sales', 'by_node');
SELECT pattern_repair('sales', 'by_node');
SELECT is_empty('SELECT * FROM by_node_differs', 'built and repaired');
SELECT throws_ok('DROP TABLE nodes', '2BP01', NULL, 'the tree is needed');

-- A random run
CREATE TABLE s (id int PRIMARY KEY, doc bson);
SELECT rollup_enable('s', 'z', '{n: {$count: {}}, x: {$sum: "$x"}, best: {$max: "$v"}, low: {$min: "$v"}, first: {$first: "$v"}, mid: {$median: {input: "$v", method: "approximate"}}}',
                     time_field => 't', levels => '{"6 hours",day,week,month}', group_by => '{g}', time_zone => 'America/New_York', filter => '{v: {$gte: 0}}');
CREATE FUNCTION pg_temp.row(i int) RETURNS bson LANGUAGE sql VOLATILE AS $$
  SELECT bson_build('t', timestamptz '2024-11-01 00:00-04' + (random() * 200)::int * interval '1 hour', 'v', (random() * 60)::int - 5, 'x', random() * 1e9, 'g', (ARRAY['a', 'b', NULL])[1 + (random() * 2)::int], 'c', (random() * 8)::int)
$$;
CREATE TABLE random_bad (step int, what text);
SELECT setseed(0.42);
DO $$
DECLARE what int;
BEGIN
  RAISE NOTICE 'seed 0.42';
  FOR i IN 1 .. 300 LOOP
    what := (random() * 9)::int;
    IF what <= 3 THEN
      INSERT INTO s SELECT (random() * 500)::int, pg_temp.row(i) FROM generate_series(1, 1 + (random() * 5)::int) ON CONFLICT DO NOTHING;
    ELSIF what = 4 THEN
      INSERT INTO s SELECT DISTINCT ON (k) k, pg_temp.row(i) FROM (SELECT (random() * 500)::int AS k FROM generate_series(1, 4)) q ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
    ELSIF what = 5 THEN
      DELETE FROM s WHERE id % 29 = (random() * 28)::int;
    ELSIF what = 6 THEN
      UPDATE s SET doc = bson_set(doc, 't', timestamptz '2024-11-01 00:00-04' + (random() * 200)::int * interval '1 hour') WHERE id % 17 = i % 17;
    ELSIF what = 7 THEN
      UPDATE s SET doc = bson_set(doc, 'v', (random() * 60)::int - 5), id = id + 500 * (1 - 2 * (id / 500)) WHERE id % 23 = i % 23 AND NOT EXISTS (SELECT FROM s o WHERE o.id = s.id + 500 * (1 - 2 * (s.id / 500)));
    ELSIF what = 8 THEN
      DELETE FROM sales WHERE _id = (random() * 60)::int;
      INSERT INTO sales (doc) SELECT bson_set(pg_temp.row(i), '_id', 100 + i);
    ELSE
      BEGIN
        UPDATE nodes SET doc = bson_set(doc, 'up', (random() * 6)::int) WHERE _id = (random() * 6)::int;
      EXCEPTION WHEN check_violation OR foreign_key_violation THEN NULL;
      END;
    END IF;
    IF i % 30 = 0 THEN
      INSERT INTO random_bad SELECT i, c::text FROM pattern_check() c;
      INSERT INTO random_bad SELECT i, d::text FROM by_node_differs d;
      INSERT INTO random_bad SELECT i, b.doc::text FROM (SELECT (doc -> 'start')::timestamptz AS t, doc ->> 'g' AS g, doc ->> 'level' AS level, doc FROM z WHERE doc ->> 'level' <> '6 hours') b
        FULL JOIN (SELECT date_trunc(l.level, (doc -> 't')::timestamptz, 'America/New_York') AS t, l.level, doc ->> 'g' AS g, count(*) AS n, sum((doc ->> 'x')::numeric)::float8 AS x, max((doc -> 'v')::int) AS best, min((doc -> 'v')::int) AS low,
                     (array_agg((doc -> 'v')::int ORDER BY id))[1] AS first, percentile_disc(0.5) WITHIN GROUP (ORDER BY (doc -> 'v')::int) AS mid
                   FROM s CROSS JOIN (VALUES ('day'), ('week'), ('month')) AS l (level) WHERE (doc -> 'v')::int >= 0 GROUP BY 1, 2, 3) q ON b.t = q.t AND b.level = q.level AND b.g IS NOT DISTINCT FROM q.g
        WHERE b.doc IS NULL OR q.t IS NULL OR ((b.doc -> 'n')::bigint, (b.doc -> 'best')::int, (b.doc -> 'low')::int, (b.doc -> 'first')::int, (b.doc -> 'mid')::float8) IS DISTINCT FROM (q.n, q.best, q.low, q.first, q.mid::float8)
          OR abs((b.doc -> 'x')::float8 - q.x) > 1e-5;
    END IF;
  END LOOP;
END $$;
SELECT cmp_ok((SELECT count(*) FROM s), '>', 50::bigint, 'seed 0.42: much is there');
SELECT is_empty('SELECT * FROM random_bad LIMIT 5', 'and all totals are those of plain SQL');

DROP TABLE s, sales, nodes CASCADE;
DROP TABLE random_bad;
SELECT * FROM finish();
