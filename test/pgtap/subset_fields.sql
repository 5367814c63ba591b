-- Cold fields: what is refused and how, what every kind of write does, and a seeded random run against a plain model.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(74);

CREATE FUNCTION pg_temp.true_everywhere(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;
CREATE TABLE t (id int PRIMARY KEY, doc bson);

-- Signatures
SELECT function_returns('subset_fields_enable', 'text');
SELECT volatility_is('subset_fields_enable', 'volatile');

-- Refused options
SELECT throws_ok(format('SELECT subset_fields_enable(''t'', %s)', args), state, NULL, what) FROM (VALUES
  ('NULL', '22004', 'no paths'), ($$'{}'$$, '22023', 'an empty set of paths'), ($$'{a,NULL}'$$, '22004', 'a null path'), ($$'{a..b}'$$, '22023', 'a bad path'),
  ($$'{_id}'$$, '22023', '_id'), ($$'{_id.x}'$$, '22023', 'inside _id'), ($$'{a,a.b}'$$, '22023', 'one inside another'), ($$'{a,"\"a\""}'$$, '22023', 'one twice'),
  ($$'{a}', doc_column => 'nope'$$, '42703', 'a column that does not exist')) AS v (args, state, what);
SELECT throws_ok($$SELECT subset_fields_enable(NULL, '{a}')$$, '22004', NULL, 'no table');

SELECT is(subset_fields_enable('t', '{specs.cpu,cast}', name => 'cold'), 'cold', 'enabled');
SELECT throws_ok($$SELECT subset_fields_enable('t', '{b}', name => 'cold')$$, '42710', NULL, 'a second declaration of the name');
SELECT throws_ok($$SELECT subset_fields_enable('t', '{specs}')$$, '22023', NULL, 'a field that another declaration keeps');
SELECT is(options, '{"cold": ["specs.cpu", "cast"], "doc_column": "doc"}'::bson, 'as it is listed') FROM pattern_list('t');
SELECT throws_ok($$INSERT INTO t_cold_cold VALUES (1, '{}')$$, '55000', NULL, 'the side table takes no INSERT');
SELECT throws_ok($$UPDATE t_cold_cold SET cold = '{}'$$, '55000', NULL, 'no UPDATE');
SELECT throws_ok($$DELETE FROM t_cold_cold$$, '55000', NULL, 'no DELETE');
SELECT throws_ok($$TRUNCATE t_cold_cold$$, '55000', NULL, 'no TRUNCATE');

-- Writes
INSERT INTO t VALUES (1, '{name: "a", specs: {cpu: "x", ram: 1}, cast: [1, 2]}'), (2, '{name: "b"}'), (3, NULL);
SELECT is((SELECT string_agg(doc::text, ' ' ORDER BY id) FROM t), '{"name": "a", "specs": {"ram": 1}} {"name": "b"}', 'split');
SELECT is((SELECT string_agg(doc::text, ' ' ORDER BY id) FROM t_whole), '{"name": "a", "specs": {"ram": 1, "cpu": "x"}, "cast": [1, 2]} {"name": "b"}', 'whole');
COPY t FROM stdin;
4	{"cast": 4, "n": 1}
\.
SELECT is((SELECT doc::text FROM t WHERE id = 4), '{"n": 1}', 'COPY');
INSERT INTO t VALUES (1, '{cast: 0}') ON CONFLICT DO NOTHING;
SELECT is((SELECT doc ->> 'cast' FROM t_whole WHERE id = 1), '[1, 2]', 'ON CONFLICT DO NOTHING leaves nothing behind');
INSERT INTO t VALUES (1, '{cast: 9}'), (5, '{cast: 5}') ON CONFLICT (id) DO UPDATE SET doc = t.doc || EXCLUDED.doc;
SELECT is((SELECT string_agg(doc ->> 'cast', ' ' ORDER BY id) FROM t_whole), '9 4 5', 'ON CONFLICT DO UPDATE has the whole new document');
MERGE INTO t USING (VALUES (5, '{cast: "merged"}'::bson), (6, '{cast: 6}')) AS v (id, doc) ON v.id = t.id
  WHEN MATCHED THEN UPDATE SET doc = v.doc WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.doc);
SELECT is((SELECT string_agg(doc ->> 'cast', ' ' ORDER BY id) FROM t_whole), '9 4 merged 6', 'MERGE');
SELECT pg_temp.true_everywhere('writes');
UPDATE t SET doc = '{name: "saved"}' WHERE id = 1;
SELECT is((SELECT doc::text FROM t_whole WHERE id = 1), '{"name": "saved", "specs": {"cpu": "x"}, "cast": 9}', 'who reads rows and saves them loses nothing');
UPDATE t SET doc = '{specs: 5}' WHERE id = 1;
SELECT is((SELECT doc::text FROM t_whole WHERE id = 1), '{"specs": 5, "cast": 9}', 'what is put in the place of a document replaces what was inside it');
UPDATE t SET id = CASE id WHEN 1 THEN 104 WHEN 4 THEN 101 ELSE id END;
UPDATE t SET id = id - 100 WHERE id > 100;
SELECT is((SELECT string_agg(id || ':' || (doc ->> 'cast'), ' ' ORDER BY id) FROM t_whole WHERE id IN (1, 4)), '1:4 4:9', 'keys change');
CREATE TABLE swap (id int, doc bson, PRIMARY KEY (id));
SELECT subset_fields_enable('swap', '{c}') \g /dev/null
INSERT INTO swap SELECT i, bson_build('c', i, 'h', i) FROM generate_series(1, 5) i;
UPDATE swap SET id = id + 100;
UPDATE swap SET id = id - 99, doc = CASE WHEN id = 103 THEN bson_set(doc, 'c', 'new') ELSE doc END;
SELECT is((SELECT string_agg(id || ':' || (doc ->> 'c'), ' ' ORDER BY id) FROM swap_whole), '2:1 3:2 4:new 5:4 6:5', 'keys and fields change in one statement');
TRUNCATE swap;
SELECT is((SELECT count(*) FROM swap_c_cold), 0::bigint, 'TRUNCATE');
DROP TABLE swap CASCADE;
SELECT hasnt_table('swap_c_cold', 'DROP TABLE .. CASCADE takes the side table along');
SELECT throws_ok('DROP TABLE t', '2BP01', NULL, 'and needs CASCADE');
UPDATE t SET doc = NULL WHERE id = 4;
SELECT is((SELECT count(*) FROM t_cold_cold WHERE key = 4), 0::bigint, 'no document, no cold fields');
DELETE FROM t WHERE id = 5;
SELECT is((SELECT count(*) FROM t_cold_cold WHERE key = 5), 0::bigint, 'DELETE');
BEGIN;
SAVEPOINT s;
UPDATE t SET doc = '{cast: "gone"}';
ROLLBACK TO s;
INSERT INTO t VALUES (7, '{cast: 7}');
COMMIT;
SELECT is((SELECT string_agg(id || ':' || (doc ->> 'cast'), ' ' ORDER BY id) FROM t_whole WHERE doc ? 'cast'), '1:4 6:6 7:7', 'savepoints');
SELECT pg_temp.true_everywhere('more writes');

-- The view
UPDATE t_whole SET doc = '{only: 1}' WHERE id = 1;
SELECT is((SELECT doc::text FROM t_whole WHERE id = 1), '{"only": 1}', 'a whole document replaces all of it');
SELECT is((SELECT count(*) FROM t_cold_cold WHERE key = 1), 0::bigint, 'also what lay aside');
UPDATE t_whole SET doc = bson_set(doc, 'hot', true) WHERE id = 6;
SELECT is((SELECT doc::text FROM t WHERE id = 6), '{"hot": true}', 'a write to hot fields leaves the others aside');
UPDATE t_whole SET id = 16, doc = '{cast: "moved"}' WHERE id = 6;
SELECT is((SELECT doc::text FROM t_whole WHERE id = 16), '{"cast": "moved"}', 'key and document');
INSERT INTO t_whole VALUES (8, '{cast: 8, specs: {cpu: 8}}');
SELECT is((SELECT doc::text FROM t WHERE id = 8), '{"specs": {}}', 'INSERT');
DELETE FROM t_whole WHERE id = 8;
SELECT is((SELECT count(*) FROM t_cold_cold WHERE key = 8), 0::bigint, 'DELETE');
SELECT pg_temp.true_everywhere('the view');

-- Users' triggers, and other patterns
CREATE FUNCTION stubborn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.doc := bson_set(NEW.doc, 'cast', 'mine'); RETURN NEW; END $$;
CREATE TRIGGER a_stubborn BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION stubborn();
INSERT INTO t VALUES (20, '{cast: 1}');
SELECT is((SELECT t.doc::text || w.doc::text FROM t JOIN t_whole w USING (id) WHERE id = 20), '{}{"cast": "mine"}', 'a trigger that always sets a cold field');
DROP FUNCTION stubborn CASCADE;
SELECT outlier_enable('t', 'list', 2, name => 'list') \g /dev/null
SELECT throws_ok($$SELECT subset_fields_enable('t', '{list}', name => 'x')$$, '22023', NULL, 'a field that the outlier pattern splits');
INSERT INTO t VALUES (21, '{list: [1, 2, 3], cast: "c", h: 1}');
SELECT is((SELECT doc::text FROM t WHERE id = 21), '{"list": [1, 2], "h": 1, "has_extras": true}', 'two patterns that split');
SELECT is((SELECT doc @@ '{list: [1, 2, 3], cast: "c", h: 1}' FROM t_whole WHERE id = 21), true, 'one whole');
UPDATE t_whole SET doc = '{list: [7, 8, 9], cast: "d"}' WHERE id = 21;
SELECT is((SELECT doc @@ '{list: [7, 8, 9], cast: "d"}' FROM t_whole WHERE id = 21), true, 'written at once');
UPDATE t_whole SET doc = '{list: [7]}' WHERE id = 21;
SELECT is((SELECT doc::text FROM t_whole WHERE id = 21), '{"list": [7]}', 'and replaced');
SELECT pg_temp.true_everywhere('other patterns');
SELECT pattern_disable('t', 'list') \g /dev/null

-- Verbs
CREATE TABLE full_one (id int PRIMARY KEY, doc bson);
INSERT INTO full_one SELECT i, bson_build('c', i, 'h', i) FROM generate_series(1, 10) i;
SELECT subset_fields_enable('full_one', '{c}') \g /dev/null
SELECT is((SELECT count(*) FROM pattern_check('full_one')), 10::bigint, 'rows that were there are not in line');
CALL pattern_build('full_one', 'c', 3);
SELECT is((SELECT count(*) FROM full_one WHERE doc ? 'c'), 0::bigint, 'until they are built');
SELECT pattern_alter('full_one', 'c', '{cold: ["h"]}');
SELECT is((SELECT count(*) FROM full_one WHERE doc ? 'c'), 10::bigint, 'altered: what is no longer cold goes back');
SELECT is(pattern_repair('full_one'), 10::bigint, 'what is new goes aside');
SELECT throws_ok($$SELECT pattern_alter('full_one', 'c', '{name: "x"}')$$, '22023', NULL, 'an option that cannot be changed');
SELECT throws_ok($$SELECT pattern_alter('full_one', 'c', '{cold: [1]}')$$, '22023', NULL, 'a path that is none');
SET docpatterns.maintain = off;
UPDATE full_one SET doc = bson_set(doc, 'h', 1) WHERE id = 1;
DELETE FROM full_one WHERE id = 2;
RESET docpatterns.maintain;
SELECT is((SELECT string_agg(key::text || ' ' || what, ', ' ORDER BY key) FROM pattern_check('full_one')), '1 cold field "h" in the document, 2 document of cold fields', 'checked');
SELECT is(pattern_repair('full_one'), 2::bigint, 'repaired');
SELECT pg_temp.true_everywhere('verbs');
SET docpatterns.max_document_size = '1kB';
UPDATE full_one SET doc = bson_build('h', repeat('x', 900)) WHERE id = 3;
UPDATE full_one SET doc = bson_build('a', repeat('x', 900)) WHERE id = 3;
SELECT throws_ok($$SELECT pattern_disable('full_one')$$, '54000', NULL, 'documents that would be too large');
RESET docpatterns.max_document_size;
SELECT is(pattern_disable('full_one'), 9::bigint, 'disabled');
SELECT is((SELECT count(*) FROM full_one WHERE doc ? 'h'), 9::bigint, 'all documents are whole');
DROP TABLE full_one;

-- Rights and names
CREATE SCHEMA "S q";
CREATE TABLE "S q"."T "" t" ("K 1" text COLLATE "C", "K'2" timestamptz, "D d" bson, PRIMARY KEY ("K 1", "K'2"));
SELECT is(subset_fields_enable('"S q"."T "" t"', ARRAY['"a.b"', 'it''s']), '"a.b"', 'hostile names');
CREATE ROLE subset_writer;
GRANT USAGE ON SCHEMA "S q" TO subset_writer;
GRANT SELECT, INSERT, UPDATE, DELETE ON "S q"."T "" t" TO subset_writer;
SET ROLE subset_writer;
INSERT INTO "S q"."T "" t" VALUES ('a', '2020-01-01 00:00:00.000001', '{"a.b": 1, "it''s": 2, c: 3}'), ('a', '2020-01-01 00:00:00.000002', '{"a.b": 4}');
UPDATE "S q"."T "" t" SET "K'2" = "K'2" + '3 microseconds';
SELECT throws_ok($$SELECT pattern_check('"S q"."T "" t"')$$, '42501', NULL, 'who does not own the table cannot check it');
RESET ROLE;
SELECT is((SELECT string_agg("D d"::text, ' ' ORDER BY "K'2") FROM "S q"."T "" t"), '{"c": 3} {}', 'split for somebody else');
SELECT is((SELECT count(*) FROM pattern_check('"S q"."T "" t"')), 0::bigint, 'and true');
DROP SCHEMA "S q" CASCADE;
DROP ROLE subset_writer;

-- Partitions
CREATE TABLE p (k int PRIMARY KEY, doc bson) PARTITION BY RANGE (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
SELECT subset_fields_enable('p', '{c}') \g /dev/null
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
CREATE TABLE p3 (doc bson, k int NOT NULL);
ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (20) TO (30);
INSERT INTO p VALUES (1, '{c: 1}'), (2, '{c: 2}'), (11, '{c: 11}'), (21, '{c: 21}');
UPDATE p SET k = CASE k WHEN 1 THEN 22 WHEN 2 THEN 12 WHEN 11 THEN 1 ELSE 3 END;
SELECT is((SELECT string_agg(k || ':' || (doc ->> 'c'), ' ' ORDER BY k) FROM p_whole), '1:11 3:21 12:2 22:1', 'rows change partitions');
UPDATE p2 SET k = 13, doc = '{c: "own"}';
TRUNCATE p1;
SELECT is((SELECT string_agg(k || ':' || (doc ->> 'c'), ' ' ORDER BY k) FROM p_whole), '13:own 22:1', 'writes to partitions');
SELECT pg_temp.true_everywhere('partitions');
DROP TABLE p CASCADE;

-- A seeded random run: a table with the pattern and one that is just a table, written in the same way
CREATE TABLE r (id int PRIMARY KEY, doc bson);
CREATE TABLE model (id int PRIMARY KEY, doc bson);
SELECT subset_fields_enable('r', '{a,s.x}') \g /dev/null
SELECT setseed(0.42) \g /dev/null
DO $$
DECLARE
  k int; d bson; what int;
BEGIN
  FOR i IN 1 .. 600 LOOP
    k := floor(random() * 20); what := floor(random() * 6);
    d := bson_build('h', i);
    IF random() < 0.6 THEN d := bson_set(d, 'a', i); END IF;
    IF random() < 0.6 THEN d := bson_set(d, 's', bson_build('x', i, 'y', 1)); END IF;
    CASE what
      WHEN 0, 1 THEN
        INSERT INTO r VALUES (k, d) ON CONFLICT DO NOTHING; INSERT INTO model VALUES (k, d) ON CONFLICT DO NOTHING;
      WHEN 2 THEN
        UPDATE r_whole SET doc = d WHERE id = k; UPDATE model SET doc = d WHERE id = k;
      WHEN 3 THEN
        UPDATE r SET doc = bson_set(doc, 'h', -i) WHERE id = k; UPDATE model SET doc = bson_set(doc, 'h', -i) WHERE id = k;
      WHEN 4 THEN
        UPDATE r SET id = 100 + k WHERE id = k AND NOT EXISTS (SELECT FROM r o WHERE o.id = 100 + k); UPDATE r SET id = id - 80 WHERE id >= 100 AND NOT EXISTS (SELECT FROM r o WHERE o.id = r.id - 80);
        UPDATE model SET id = 100 + k WHERE id = k AND NOT EXISTS (SELECT FROM model o WHERE o.id = 100 + k); UPDATE model SET id = id - 80 WHERE id >= 100 AND NOT EXISTS (SELECT FROM model o WHERE o.id = model.id - 80);
      WHEN 5 THEN
        DELETE FROM r WHERE id % 20 = k; DELETE FROM model WHERE id % 20 = k;
    END CASE;
  END LOOP;
END $$;
-- the order of fields is not kept, so that they are compared without it
SELECT is_empty($$SELECT id, doc -> 'h', doc -> 'a', doc -> 's.x', doc -> 's.y' FROM r_whole EXCEPT ALL SELECT id, doc -> 'h', doc -> 'a', doc -> 's.x', doc -> 's.y' FROM model$$, 'seed 0.42: nothing is there that should not be');
SELECT is_empty($$SELECT id, doc -> 'h', doc -> 'a', doc -> 's.x', doc -> 's.y' FROM model EXCEPT ALL SELECT id, doc -> 'h', doc -> 'a', doc -> 's.x', doc -> 's.y' FROM r_whole$$, 'and nothing is missing');
SELECT pg_temp.true_everywhere('random');
DROP TABLE t, r, model CASCADE;
SELECT * FROM finish();
