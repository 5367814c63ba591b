-- The preallocated pattern under hostile names, for users who are not the owner, on partitions, beside other patterns, and
-- random writes of all kinds against a plain model of who holds what.
SET client_min_messages = warning;
SET timezone = 'UTC';
\set seed 0.2718
SELECT plan(53);
SELECT diag('seed ' || :seed);
CREATE FUNCTION pg_temp.true_everywhere(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;

-- Hostile names, a key of two columns
CREATE SCHEMA "W eird";
CREATE TABLE "W eird"."T "" t" ("k 1" text, "k'2" date, "d oc" bson, PRIMARY KEY ("k 1", "k'2"));
SELECT preallocated_enable('"W eird"."T "" t"', '"se.at''s"."""q"', preallocated_grid('{2,2}', '{A1}'), store => 'slots', available_field => '"n; DROP TABLE x"', name => 'n''a"me');
INSERT INTO "W eird"."T "" t" VALUES ('a', '2019-04-01', '{}'), ('b', '2019-04-01', '{}');
SELECT is(preallocated_claim('"W eird"."T "" t"', ROW('a', date '2019-04-01'), '{A1,B2}', $$'); DROP TABLE x; --$$), true, 'a claim');
SELECT is(preallocated_claim('"W eird"."T "" t"', ROW('a', date '2019-04-01'), '{B2}', 'bob'), false, 'taken');
SELECT throws_ok($$SELECT preallocated_claim('"W eird"."T "" t"', 'a'::text, '{B2}', 'bob')$$, '42809', NULL, 'the key has two columns');
SELECT is((SELECT "d oc" FROM "W eird"."T "" t_whole" WHERE "k 1" = 'a'), $${"se.at's": {"\"q": [["'); DROP TABLE x; --", 0], [0, "'); DROP TABLE x; --"]], "accessible": ["A1"]}, "n; DROP TABLE x": 2}$$::bson, 'whole');
UPDATE "W eird"."T "" t" SET "k 1" = 'c' WHERE "k 1" = 'a';
SELECT is((SELECT count(*) FROM preallocated_slots('"W eird"."T "" t"', ROW('c', date '2019-04-01')) WHERE holder IS NOT NULL), 2::bigint, 'with a new key');
SELECT pg_temp.true_everywhere('hostile names');
SELECT is(pattern_repair('"W eird"."T "" t"'), 0::bigint, 'nothing to repair');
ALTER TABLE "W eird"."T "" t" RENAME TO plain; ALTER TABLE "W eird".plain RENAME COLUMN "d oc" TO d; ALTER TABLE "W eird".plain RENAME COLUMN "k 1" TO k1; ALTER SCHEMA "W eird" RENAME TO fine;
SELECT is(preallocated_claim('fine.plain', ROW('c', date '2019-04-01'), '{A2}', 'bob'), true, 'renamed');
SELECT pg_temp.true_everywhere('renamed');
DROP TABLE fine.plain CASCADE;
SELECT is((SELECT count(*) FROM pg_class WHERE relnamespace = 'fine'::regnamespace), 0::bigint, 'DROP TABLE leaves nothing behind');
DROP SCHEMA fine;

-- Two keys change places; what is missing is made again
CREATE TABLE t (id int PRIMARY KEY DEFERRABLE INITIALLY IMMEDIATE, doc bson);
SELECT throws_ok($$SELECT preallocated_enable('t', 's', preallocated_pool(3), store => 'slots')$$, '55000', NULL, 'a key that may be checked later is none');
DROP TABLE t;
CREATE TABLE t (id int PRIMARY KEY, doc bson);
SELECT preallocated_enable('t', 's', preallocated_pool(3), store => 'slots');
INSERT INTO t VALUES (1, '{}'), (2, '{}'), (3, '{}');
SELECT preallocated_claim('t', 1, '{1}', 'ada'), preallocated_claim('t', 2, '{1,2}', 'bob');
UPDATE t SET id = id + 1 WHERE id = 3;
DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (1, '{}');
SELECT is((SELECT doc -> 's' FROM t_whole WHERE id = 1), '[0, 0, 0]'::bson_value, 'a new document under an old key has nothing of it');
BEGIN; DELETE FROM t WHERE id = 2; ROLLBACK;
SELECT is((SELECT doc -> 's' FROM t_whole WHERE id = 2), '["bob", "bob", 0]'::bson_value, 'a deletion that is undone');
SET docpatterns.maintain = off;
UPDATE t SET doc = bson_set(doc, 's', '["x"]'::bson_value) WHERE id = 4;
DELETE FROM t WHERE id = 2;
RESET docpatterns.maintain;
SELECT results_eq($$SELECT key, what FROM pattern_check('t') ORDER BY what, key$$, $$VALUES ('2'::bson_value, 'document of a claim'), ('2', 'document of a claim'), ('4', 'slots')$$, 'pattern_check finds what was done behind its back');
SELECT is(pattern_repair('t'), 1::bigint, 'pattern_repair brings it in line');
SELECT is((SELECT doc -> 's' FROM t_whole WHERE id = 4), '["x", 0, 0]'::bson_value, 'and loses no holder');
SELECT pg_temp.true_everywhere('repaired');
DROP TABLE t CASCADE;

-- Users who are not the owner
CREATE ROLE dp_seller; CREATE ROLE dp_looker;
CREATE SCHEMA hall; GRANT USAGE ON SCHEMA hall TO dp_seller, dp_looker;
CREATE TABLE hall.shows (id int PRIMARY KEY, doc bson, seller text DEFAULT 'dp_seller');
SELECT preallocated_enable('hall.shows', 's', preallocated_pool(3), store => 'slots', available_field => 'n'), preallocated_enable('hall.shows', 'd', preallocated_pool(3), store => 'document');
GRANT SELECT, INSERT, UPDATE, DELETE ON hall.shows, hall.shows_whole TO dp_seller; GRANT SELECT ON hall.shows, hall.shows_whole TO dp_looker;
INSERT INTO hall.shows VALUES (1, '{}', 'dp_seller'), (2, '{}', 'somebody');
SET ROLE dp_seller;
SELECT is(preallocated_claim('hall.shows', 1, '{1}', 'ada', name => 's'), true, 'who may update may claim');
SELECT is(preallocated_claim('hall.shows', 1, '{1}', 'ada', name => 'd'), true, 'in the document too');
INSERT INTO hall.shows VALUES (3, '{s: ["x", 0, 0]}'); UPDATE hall.shows SET id = 4 WHERE id = 3; UPDATE hall.shows_whole SET doc = bson_set(doc, 'a', 1) WHERE id = 4;
SELECT is((SELECT doc -> 's' FROM hall.shows_whole WHERE id = 4), '["x", 0, 0]'::bson_value, 'and insert, move and write');
DELETE FROM hall.shows WHERE id = 4;
SELECT throws_ok($$SELECT * FROM hall.shows_s_claims$$, '42501', NULL, 'claims themselves are the owner''s');
SELECT throws_ok($$SELECT pattern_repair('hall.shows', 's')$$, '42501', NULL, 'and so are the verbs');
SET ROLE dp_looker;
SELECT throws_ok($$SELECT preallocated_claim('hall.shows', 1, '{2}', 'ada', name => 's')$$, '42501', NULL, 'who may not update may not claim');
SELECT throws_ok($$SELECT preallocated_claim('hall.shows', 1, '{2}', 'ada', name => 'd')$$, '42501', NULL, 'in the document neither');
SELECT throws_ok($$SELECT preallocated_extend('hall.shows', 1, preallocated_pool(5), name => 's')$$, '42501', NULL, 'nor extend');
SELECT is((SELECT count(*) FROM preallocated_slots('hall.shows', 1, 's') WHERE holder IS NOT NULL), 1::bigint, 'but look');
SELECT is((SELECT doc ->> 'n' FROM hall.shows_whole WHERE id = 1), '2', 'in the view too');
RESET ROLE;
ALTER TABLE hall.shows ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON hall.shows USING (seller = current_user);
SET ROLE dp_seller;
SELECT is(preallocated_claim('hall.shows', 1, '{2}', 'bob', name => 's'), true, 'a row that a policy shows');
SELECT is(preallocated_claim('hall.shows', 1, '{2}', 'bob', name => 'd'), true, 'in the document too');
SELECT throws_ok(format('SELECT preallocated_%s', call), 'P0002', NULL, 'hidden: ' || call) FROM unnest(ARRAY[$$claim('hall.shows', 2, '{2}', 'bob', name => 's')$$, $$claim('hall.shows', 2, '{2}', 'bob', name => 'd')$$,
  $$release('hall.shows', 2, '{2}', 'bob', name => 's')$$, $$extend('hall.shows', 2, preallocated_pool(9), name => 's')$$, $$extend('hall.shows', 2, preallocated_pool(9), name => 'd')$$, $$slots('hall.shows', 2, 's')$$,
  $$find('hall.shows', 2, 1, 's')$$]) AS call;
RESET ROLE;
SELECT pg_temp.true_everywhere('other users');
DROP SCHEMA hall CASCADE; DROP ROLE dp_seller, dp_looker;

-- Partitions
CREATE TABLE p (id int PRIMARY KEY, doc bson) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
SELECT preallocated_enable('p', 's', preallocated_pool(3), store => 'slots');
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200);
INSERT INTO p VALUES (1, '{}'), (2, '{s: ["z", 0, 0]}'), (150, '{}');
SELECT is(preallocated_claim('p', 1, '{1}', 'ada'), true, 'a claim in a partition');
UPDATE p SET id = id + 100 WHERE id < 3;
SELECT results_eq($$SELECT id, doc -> 's' FROM p_whole ORDER BY id$$, $$VALUES (101, '["ada", 0, 0]'::bson_value), (102, '["z", 0, 0]'), (150, '[0, 0, 0]')$$, 'claims go along to another partition');
SELECT is(preallocated_claim('p', 101, '{1}', 'bob'), false, 'and hold there');
CREATE TABLE p3 (id int PRIMARY KEY, doc bson); INSERT INTO p3 VALUES (250, '{}');
ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (200) TO (300);
SELECT is(preallocated_claim('p', 250, '{3}', 'eve'), true, 'in one that was attached full');
CALL pattern_build('p');
SELECT pg_temp.true_everywhere('partitions');
ALTER TABLE p DETACH PARTITION p2;
SELECT lives_ok('UPDATE p2 SET id = id + 1000; DELETE FROM p2; TRUNCATE p2', 'one that was detached is an ordinary table');
SELECT is(pattern_repair('p'), 0::bigint, 'whose claims are forgotten');
SELECT pg_temp.true_everywhere('detached');
DROP TABLE p CASCADE; DROP TABLE p2;

-- Random writes
CREATE TEMP TABLE docs (id int PRIMARY KEY, n int NOT NULL, title int);
CREATE TEMP TABLE held (id int, slot text, holder text, live boolean, PRIMARY KEY (id, slot));
CREATE FUNCTION pg_temp.r(n int) RETURNS int LANGUAGE sql AS 'SELECT floor(random() * n)::int';
CREATE FUNCTION pg_temp.run(how text, partitioned boolean, seed float8) RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE
  op int; k int; m int; s text[]; h text; want boolean; got boolean; live boolean; wrong text; done int[] := array_fill(0, ARRAY[14]);
BEGIN
  PERFORM setseed(seed);
  TRUNCATE docs, held;
  EXECUTE format('CREATE TABLE w (id int PRIMARY KEY, doc bson) %s', CASE WHEN partitioned THEN 'PARTITION BY HASH (id)' ELSE '' END);
  IF partitioned THEN
    FOR k IN 0..2 LOOP EXECUTE format('CREATE TABLE w%s PARTITION OF w FOR VALUES WITH (MODULUS 3, REMAINDER %1$s)', k); END LOOP;
  END IF;
  PERFORM preallocated_enable('w', 's', preallocated_pool(4), store => how, available_field => 'free');
  FOR i IN 1..700 LOOP
    op := pg_temp.r(13); k := pg_temp.r(6); h := chr(97 + pg_temp.r(4));
    SELECT n INTO m FROM docs WHERE id = k;
    IF m IS NULL THEN op := 13; END IF;
    s := ARRAY(SELECT x::text FROM generate_series(1, coalesce(m, 4)) x ORDER BY random() LIMIT 1 + pg_temp.r(2));
    done[op + 1] := done[op + 1] + 1;
    CASE
      WHEN op <= 3 THEN
        live := pg_temp.r(3) > 0;
        want := NOT EXISTS (SELECT FROM held x WHERE x.id = k AND x.slot = ANY (s) AND x.live);
        got := preallocated_claim('w', k, s, h, CASE WHEN NOT live THEN interval '1 microsecond' WHEN op = 0 THEN interval '1 hour' END);
        IF want THEN
          INSERT INTO held SELECT k, x, h, live FROM unnest(s) x ON CONFLICT (id, slot) DO UPDATE SET holder = EXCLUDED.holder, live = EXCLUDED.live;
        END IF;
      WHEN op = 4 THEN
        want := (SELECT count(*) = cardinality(s) FROM held x WHERE x.id = k AND x.slot = ANY (s) AND x.live AND x.holder = h);
        got := preallocated_confirm('w', k, s, h, CASE WHEN pg_temp.r(2) = 0 THEN interval '1 day' END);
      WHEN op IN (5, 6) THEN
        want := (SELECT count(*) = cardinality(s) FROM held x WHERE x.id = k AND x.slot = ANY (s) AND x.live AND x.holder = h);
        -- what is over may or may not still be there to be given back: not asked for
        IF EXISTS (SELECT FROM held x WHERE x.id = k AND x.slot = ANY (s) AND NOT x.live) THEN CONTINUE; END IF;
        got := preallocated_release('w', k, s, h);
        IF want THEN DELETE FROM held WHERE id = k AND slot = ANY (s); END IF;
      WHEN op = 7 THEN
        UPDATE w SET doc = bson_set(doc, 'title', i) WHERE id = k; UPDATE docs SET title = i WHERE id = k;
      WHEN op = 8 THEN
        UPDATE w_whole SET doc = bson_set(doc, 'title', i) WHERE id = k; UPDATE docs SET title = i WHERE id = k;
      WHEN op = 9 THEN
        INSERT INTO w VALUES (k, bson_build('title', i)) ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc; UPDATE docs SET title = i WHERE id = k;
      WHEN op = 10 THEN
        m := 6 + pg_temp.r(3);
        IF NOT EXISTS (SELECT FROM docs WHERE id = m) THEN UPDATE w SET id = m WHERE id = k; UPDATE docs SET id = m WHERE id = k; UPDATE held SET id = m WHERE id = k;
        ELSE
          UPDATE w SET id = id + 100 WHERE id IN (k, m); UPDATE w SET id = k + m + 100 - id WHERE id > 99;
          UPDATE docs SET id = id + 100 WHERE id IN (k, m); UPDATE docs SET id = k + m + 100 - id WHERE id > 99;
          UPDATE held SET id = id + 100 WHERE id IN (k, m); UPDATE held SET id = k + m + 100 - id WHERE id > 99;
        END IF;
      WHEN op = 11 THEN
        DELETE FROM w WHERE id = k; DELETE FROM docs WHERE id = k; DELETE FROM held WHERE id = k;
      WHEN op = 12 THEN
        PERFORM preallocated_extend('w', k, preallocated_pool(m + 1)); UPDATE docs SET n = n + 1 WHERE id = k;
      ELSE
        IF pg_temp.r(2) = 0 THEN INSERT INTO w VALUES (k, bson_build('title', i));
        ELSE INSERT INTO w_whole VALUES (k, bson_build('title', i, 's', bson_array(h, 0, 0, 0), 'free', 2)); INSERT INTO held VALUES (k, '1', h, true); END IF;
        INSERT INTO docs VALUES (k, 4, i);
    END CASE;
    IF op <= 6 AND got IS DISTINCT FROM want THEN RETURN NEXT fail(format('%s %s: operation %s (%s) said %s', how, i, op, s, got)); EXIT; END IF;
    -- the whole documents are what the model says
    SELECT format('%s %s: operation %s: document %s is %s, not %s', how, i, op, x.id, x.have, x.want) INTO wrong FROM (
      SELECT coalesce(d.id, v.id) AS id, v.doc ->> 'title' || ' ' || (v.doc ->> 's') || ' ' || (v.doc ->> 'free') AS have,
             d.title || ' ' || (SELECT bson_agg(coalesce(to_bson(q.holder), '0'::bson_value) ORDER BY g)::text || ' ' || count(*) FILTER (WHERE q.holder IS NULL)
                                FROM generate_series(1, d.n) g LEFT JOIN held q ON q.id = d.id AND q.slot = g::text AND q.live) AS want
      FROM docs d FULL JOIN w_whole v ON v.id = d.id) x WHERE x.have IS DISTINCT FROM x.want LIMIT 1;
    IF wrong IS NOT NULL THEN RETURN NEXT fail(wrong); EXIT; END IF;
    IF i % 100 = 0 AND EXISTS (SELECT FROM pattern_check('w')) THEN RETURN NEXT fail(format('%s %s: pattern_check: %s', how, i, (SELECT v::text FROM pattern_check('w') v LIMIT 1))); EXIT; END IF;
  END LOOP;
  RETURN NEXT ok(wrong IS NULL AND 0 <> ALL (done), format('%s%s: 700 random writes of all kinds give what the model says', how, CASE WHEN partitioned THEN ' in partitions' ELSE '' END));
  RETURN NEXT is_empty('SELECT * FROM pattern_check()', how || ': pattern_check has nothing to report');
  DROP TABLE w CASCADE;
END $f$;
SELECT pg_temp.run('slots', false, :seed);
SELECT pg_temp.run('slots', true, :seed + 0.1);
SELECT pg_temp.run('document', false, :seed + 0.2);
SELECT pg_temp.run('document', true, :seed + 0.3);
SELECT * FROM finish();
