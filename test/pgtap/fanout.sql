-- The contract of the fan-out pattern: what is refused and how, who may read, what every kind of write does, hostile names,
-- keys of other types, and a seeded random run against plain SQL.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(55);
CREATE FUNCTION pg_temp.all_true(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;
CREATE FUNCTION pg_temp.shown(rel regclass, reader text, take int DEFAULT 100) RETURNS text LANGUAGE sql AS $$ SELECT coalesce(string_agg(t.key::text, ' '), '') FROM fanout_timeline(rel, reader, take) t $$;

-- Signatures
SELECT function_returns(f, r, f || ' returns ' || r) FROM (VALUES ('fanout_enable', 'text'), ('fanout_timeline', 'setof record')) AS v (f, r);
SELECT volatility_is(f, v, f || ' is ' || v) FROM (VALUES ('fanout_enable', 'volatile'), ('fanout_timeline', 'stable')) AS w (f, v);

-- A follow prepares the statements that read the posts
SELECT collection_create('posts'), collection_create('follows');
SELECT fanout_enable('posts', 'walls', 'by', 'follows', 'reader', 'writer', keep => 3);
INSERT INTO posts (doc) SELECT bson_build('_id', i, 'by', 'Ada') FROM generate_series(1, 5) i;
INSERT INTO follows (doc) VALUES ('{_id: 1, reader: "Bob", writer: "Eve"}');
CREATE INDEX ON posts ((doc -> 'by'));
INSERT INTO follows (doc) VALUES ('{_id: 2, reader: "Bob", writer: "Ada"}');
SELECT is(pg_temp.shown('posts', 'Bob'), '5 4 3', 'posts from before the follow are shown');
SELECT pg_temp.all_true('after the follow');
DROP TABLE follows, posts, walls CASCADE;

-- Refused
SELECT collection_create('p'), collection_create('f'), collection_create('full'), collection_create('w');
INSERT INTO "full" (doc) VALUES ('{_id: 1}');
CREATE TABLE no_key (doc bson);
CREATE TABLE no_collection (_id int PRIMARY KEY, doc bson);
CREATE VIEW a_view AS SELECT * FROM f;
SELECT throws_ok(format('SELECT fanout_enable(%s)', args), state, NULL, what) FROM (VALUES
  ($$NULL, 'w', 'u', 'f', 'r', 'a'$$, '22004', 'no table'), ($$'p', NULL, 'u', 'f', 'r', 'a'$$, '22004', 'no walls'), ($$'p', 'w', 'u', 'f', 'r', 'a', keep => NULL$$, '22004', 'no number to keep'),
  ($$'p', 'w', 'u', 'f', 'r', 'a', keep => 0$$, '22023', 'keep 0'), ($$'p', 'w', 'u', 'f', 'r', 'a', keep => 10001$$, '22023', 'too many to keep'),
  ($$'p', 'w', 'u', 'f', 'r', 'a', celebrity_threshold => -1$$, '22023', 'a negative threshold'), ($$'p', 'w', 'u..v', 'f', 'r', 'a'$$, '22023', 'a bad path'),
  ($$'p', 'w', 'u', 'f', 'r', 'r.a'$$, '22023', 'follower and followee overlap'), ($$'p', 'w', 'u', 'p', 'r', 'a'$$, '22023', 'posts as followers'), ($$'p', 'f', 'u', 'f', 'r', 'a'$$, '22023', 'followers as walls'),
  ($$'p', 'full', 'u', 'f', 'r', 'a'$$, '55000', 'walls with documents'), ($$'p', 'no_collection', 'u', 'f', 'r', 'a'$$, '42809', 'walls that are no collection'),
  ($$'no_key', 'w', 'u', 'f', 'r', 'a'$$, '55000', 'posts without a key'), ($$'p', 'w', 'u', 'a_view', 'r', 'a'$$, '42809', 'a view of followers'),
  ($$'p', 'w', 'u', 'f', 'r', 'a', order_by => '{ts: 2}'$$, '22023', 'a bad order')) AS v (args, state, what);
SELECT throws_ok($$SELECT * FROM fanout_timeline('p', 'x')$$, '42704', NULL, 'no such pattern');
SELECT is(fanout_enable('p', 'w', 'u', 'f', 'r', 'a', keep => 3, celebrity_threshold => 2), 'w', 'the name is that of the walls');
SELECT throws_ok($$SELECT fanout_enable('p', 'w2', 'u', 'f', 'r', 'a', name => 'w')$$, '42710', NULL, 'the name is taken');
SELECT throws_ok($$SELECT * FROM fanout_timeline('p', 'x', -1)$$, '22023', NULL, 'a negative number of posts');
SELECT throws_ok($$SELECT pattern_alter('p', 'w', '{keep: 5}')$$, '22023', NULL, 'options stay');
SELECT throws_ok($$DELETE FROM w$$, '55000', NULL, 'walls are guarded');

-- Every kind of write
INSERT INTO f (doc) VALUES ('{_id: 1, r: "x", a: "k"}'), ('{_id: 2, r: "y", a: "k"}'), ('{_id: 3, r: "x", a: "k"}'), ('{_id: 4, r: [1], a: "k2"}'), ('{_id: 5, a: "k2"}'), ('{_id: 6, r: null, a: "k2"}');
SELECT is((SELECT doc -> 'merged' FROM w WHERE _id = '"x"'), '["k"]'::bson_value, 'who follows twice counts twice for the threshold');
DELETE FROM f WHERE _id = 3;
INSERT INTO p (doc) VALUES ('{_id: 1, u: "k"}'), ('{_id: 2, u: "k"}') ON CONFLICT DO NOTHING;
INSERT INTO p (doc) VALUES ('{_id: 2, u: "z"}'), ('{_id: 3, u: "k"}') ON CONFLICT (_id) DO UPDATE SET doc = excluded.doc;
SELECT is(pg_temp.shown('p', 'x'), '3 1', 'ON CONFLICT');
MERGE INTO p USING (VALUES (2, 'k'), (3, 'z'), (4, 'k')) AS v (i, u) ON p._id = v.i::bson_value
  WHEN MATCHED THEN UPDATE SET doc = bson_set(p.doc, 'u', v.u) WHEN NOT MATCHED THEN INSERT (_id, doc) VALUES (v.i::bson_value, bson_build('_id', v.i, 'u', v.u));
SELECT is(pg_temp.shown('p', 'x'), '4 2 1', 'MERGE');
WITH gone AS (DELETE FROM p WHERE _id = 4) INSERT INTO p (doc) VALUES ('{_id: 5, u: "k"}');
SELECT is(pg_temp.shown('p', 'y', 2), '5 2', 'two parts of one query');
UPDATE p SET doc = bson_set(doc, '_id', 9) WHERE _id = 1;
SELECT is(pg_temp.shown('p', 'y'), '9 5 2', 'a new key');
BEGIN; SAVEPOINT s; DELETE FROM p; ROLLBACK TO s; INSERT INTO p (doc) VALUES ('{_id: 10, u: "k"}'); COMMIT;
SELECT is(pg_temp.shown('p', 'y'), '10 9 5', 'a savepoint');
SELECT pg_temp.all_true('writes');

-- A trigger of the user's that writes to the same table
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF pg_trigger_depth() = 1 THEN UPDATE p SET doc = bson_set(doc, 'u', 'z'::text) WHERE doc -> 'echo' = 'true'; INSERT INTO p (doc) VALUES ('{_id: 100, u: "k"}'); END IF; RETURN NULL; END $$;
CREATE TRIGGER aa AFTER INSERT ON p FOR EACH STATEMENT EXECUTE FUNCTION again();
INSERT INTO p (doc) VALUES ('{_id: 11, u: "k", echo: true}'), ('{_id: 12, u: "k"}');
SELECT is(pg_temp.shown('p', 'x'), '100 12 10', 'statements inside of statements');
DROP TRIGGER aa ON p;
CREATE FUNCTION crowd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF pg_trigger_depth() = 1 THEN INSERT INTO f (doc) VALUES ('{r: "v2", a: "z"}'), ('{r: "v3", a: "z"}'); END IF; RETURN NULL; END $$;
CREATE TRIGGER aa AFTER INSERT ON f FOR EACH STATEMENT EXECUTE FUNCTION crowd();
INSERT INTO f (doc) VALUES ('{r: "v1", a: "z"}');
SELECT is((SELECT string_agg(doc ->> 'merged', ' ') FROM w WHERE (doc ->> '_id') LIKE 'v%'), '["z"] ["z"] ["z"]', 'and authors who cross the threshold by both');
DROP TRIGGER aa ON f;
SELECT pg_temp.all_true('statements inside of statements');

-- Who may read: posts and walls are enough
CREATE ROLE dp_fanout_reader; CREATE ROLE dp_fanout_writer;
GRANT SELECT ON p, w TO dp_fanout_reader;
GRANT INSERT, SELECT ON p TO dp_fanout_writer;
SET ROLE dp_fanout_reader;
SELECT is(pg_temp.shown('p', 'x'), '100 12 10', 'who may read posts and walls reads a timeline');
SELECT throws_ok($$SELECT * FROM fanout_timeline('p', 'nobody')$$, '42501', NULL, 'one without a wall needs the followers');
SET ROLE dp_fanout_writer;
INSERT INTO p (doc) VALUES ('{_id: 200, u: "k"}');
SELECT throws_ok($$SELECT * FROM fanout_timeline('p', 'x')$$, '42501', NULL, 'who may only post does not');
RESET ROLE;
SELECT is(pg_temp.shown('p', 'x'), '200 100 12', 'but fills walls');
REVOKE ALL ON p, w FROM dp_fanout_reader, dp_fanout_writer; DROP ROLE dp_fanout_reader; DROP ROLE dp_fanout_writer;

-- What is wrong is found and repaired
SET session_replication_role = replica;
DELETE FROM w WHERE _id = '"x"';
UPDATE w SET doc = bson_set(doc, 'merged', '[]'::bson_value) WHERE _id = '"v1"';
RESET session_replication_role;
SELECT is((SELECT string_agg(key::text, ' ' ORDER BY key) FROM pattern_check('p')), 'v1 x', 'walls that are wrong are found');
SELECT is(pattern_repair('p'), 2::bigint, 'and repaired');
SELECT pg_temp.all_true('repair');

-- Hostile names, a key of two columns, an order
CREATE SCHEMA "s'1"; CREATE TABLE "s'1"."p""x" (k text COLLATE "C", "n'" int, "d""oc" bson, PRIMARY KEY (k, "n'"));
CREATE TABLE "s'1"."f x" (id int PRIMARY KEY, d bson);
SELECT is(fanout_enable('"s''1"."p""x"', '"s''1"."w''w"', '"a''b".c', '"s''1"."f x"', '"r""r"', '"f''f"', keep => 2, order_by => '{"v''": 1}', name => 'n''"'), 'n''"', 'hostile names');
INSERT INTO "s'1"."f x" VALUES (1, bson_build('r"r', 'me'::text, 'f''f', 7));
INSERT INTO "s'1"."p""x" SELECT chr(97 + i % 2), i, bson_set(bson_build('v''', i / 2), '"a''b".c', 7) FROM generate_series(0, 5) i;
SELECT is(pg_temp.shown('"s''1"."p""x"', 'me'), '["b", 1] ["a", 0]', 'by order and key');
DELETE FROM "s'1"."p""x" WHERE "n'" = 1;
UPDATE "s'1"."p""x" SET "n'" = 30 WHERE "n'" = 3;
SELECT is(pg_temp.shown('"s''1"."p""x"', 'me'), '["a", 0] ["b", 30]', 'and after they change');
UPDATE "s'1"."p""x" SET "d""oc" = bson_set("d""oc", 'v''', ("d""oc" -> 'v''')::int + 10);
SELECT is(pg_temp.shown('"s''1"."p""x"', 'me'), '["a", 0] ["b", 30]', 'and after all are edited at once');
SELECT pg_temp.all_true('hostile names');
SELECT lives_ok($$SELECT pattern_disable('"s''1"."p""x"')$$, 'disabled');
SELECT is((SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 's''1' AND c.relkind IN ('r', 'i')), 4::bigint, 'nothing is left behind');
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgrelid IN ('"s''1"."p""x"'::regclass, '"s''1"."f x"'::regclass)), 0::bigint, 'no triggers either');
DROP SCHEMA "s'1" CASCADE;

-- A random run
\echo # seed 0.4711
SELECT setseed(0.4711);
CREATE FUNCTION pg_temp.run(n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  wrong text;
BEGIN
  FOR i IN 1..n LOOP
    CASE floor(random() * 7)::int
      WHEN 0, 1 THEN INSERT INTO p (doc) SELECT bson_build('u', 'u' || floor(random() * 5)::int) FROM generate_series(1, 1 + floor(random() * 4)::int);
      WHEN 2 THEN DELETE FROM p WHERE random() < 0.1;
      WHEN 3 THEN UPDATE p SET doc = bson_set(doc, 'u', 'u' || floor(random() * 5)::int) WHERE random() < 0.1;
      WHEN 4, 5 THEN INSERT INTO f (doc) SELECT bson_build('r', 'r' || floor(random() * 6)::int, 'a', 'u' || floor(random() * 5)::int) FROM generate_series(1, 1 + floor(random() * 3)::int);
      ELSE DELETE FROM f WHERE random() < 0.2;
    END CASE;
    SELECT string_agg(r.r::text, ', ') INTO wrong FROM (SELECT DISTINCT doc -> 'r' AS r FROM f WHERE bson_typeof(doc, 'r') = 'string') r
      WHERE ARRAY(SELECT key FROM fanout_timeline('p', r.r)) <> ARRAY(SELECT p._id FROM p WHERE p.doc -> 'u' IN (SELECT doc -> 'a' FROM f WHERE doc -> 'r' = r.r) ORDER BY p._id DESC LIMIT 3);
    IF wrong IS NOT NULL OR i % 20 = 0 AND EXISTS (SELECT FROM pattern_check('p')) THEN
      RETURN format('step %s: %s', i, wrong);
    END IF;
  END LOOP;
  RETURN 'true';
END $$;
SELECT is(pg_temp.run(200), 'true', 'timelines are those of plain SQL after each of 200 statements');

-- An index of the user's on the tables that are kept.
SELECT collection_create('ip'), collection_create('iif');
SELECT fanout_enable('ip', 'iw', 'u', 'iif', 'r', 'a');
CREATE INDEX ON iw ((doc -> 'posts'));
INSERT INTO iif (doc) VALUES ('{_id: 1, r: "1", a: 2}'); INSERT INTO ip (doc) VALUES ('{_id: 1, u: 2}'), ('{_id: 2, u: 2}'); DELETE FROM ip WHERE _id = 1;
SELECT is(pg_temp.shown('ip', '1'), '2', 'walls with an index of their owner''s are found by their key');
SELECT pg_temp.all_true('an index beside');
DROP TABLE ip, iif CASCADE;
SELECT finish();
DROP TABLE p, f, w, "full", no_key, no_collection CASCADE;
DROP FUNCTION again, crowd;
