-- Document versioning: what is promised of the declaration, of every kind of write, and of those who may read.
-- History gets its times at commit, so this does not run in one transaction.
\set QUIET 1
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(159);
CREATE SCHEMA vt;
SET search_path = vt, public;
CREATE ROLE vt_reader;
CREATE ROLE vt_writer;
CREATE ROLE vt_owner;
GRANT USAGE ON SCHEMA vt TO vt_reader, vt_writer;
GRANT USAGE, CREATE ON SCHEMA vt TO vt_owner;
-- operations and documents of a key, oldest first
CREATE FUNCTION story(rel regclass, k anyelement) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  EXECUTE format('SELECT string_agg(h.revision || left(h.operation, 1) || coalesce(bson_unset(h.doc, ''_id'', ''revision'')::text, ''''), '' '' ORDER BY h.revision) FROM %s_history h WHERE h.key = $1', rel) INTO result USING k;
  RETURN result;
END $$;
GRANT EXECUTE ON FUNCTION story TO PUBLIC;
CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  l text;
  result text := '';
BEGIN
  FOR l IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP result := result || l || E'\n'; END LOOP;
  RETURN result;
END $$;

-- Declaring
SELECT collection_create('p') \g /dev/null
SELECT throws_ok($$SELECT versioning_enable('p', revision_field => NULL)$$, '22004', NULL, 'a field is needed');
SELECT throws_ok($$SELECT versioning_enable('p', revision_field => '_id')$$, '22023', NULL, 'which is not the key');
SELECT throws_ok($$SELECT versioning_enable('p', storage => 'both')$$, '22023', NULL, 'storage is full or delta');
SELECT throws_ok($$SELECT versioning_enable('p', keep => 0)$$, '22023', NULL, 'at least one revision is kept');
SELECT throws_ok($$SELECT versioning_enable('pg_class')$$, '42703', NULL, 'a table without documents');
SELECT is(versioning_enable('p'), 'revision', 'it is called what its field is called');
SELECT throws_ok($$SELECT versioning_enable('p')$$, '42710', NULL, 'once');
SELECT throws_ok($$SELECT versioning_enable('p', name => 'again')$$, '22023', NULL, 'and once for a column');
SELECT throws_ok($$INSERT INTO p_revisions VALUES (to_bson(1), 1, 1, 'i')$$, '55000', NULL, 'history is not written by hand');
SELECT throws_ok($$DELETE FROM p_changes$$, '55000', NULL, 'neither are its times');
SELECT throws_ok($$DROP TABLE p$$, '2BP01', NULL, 'a table with a history is not dropped by mistake');
SELECT throws_ok($$SELECT versioning_at('pg_class', 1, 1)$$, '42704', NULL, 'a table without history has none to show');

-- Writes of all kinds
INSERT INTO p (doc) SELECT bson_build('_id', i, 'n', 0) FROM generate_series(1, 5) i;
UPDATE p SET doc = bson_set(doc, 'n', 1) WHERE _id = 1;
UPDATE p SET doc = bson_set(doc, 'n', 1) WHERE _id = 1;
UPDATE p SET doc = doc WHERE _id = 2;
SELECT is(story('p', to_bson(1)), '1i{"n": 0} 2u{"n": 1}', 'a change adds a revision, none adds none');
SELECT is(story('p', to_bson(2)), '1i{"n": 0}', 'an update without change is none');
MERGE INTO p USING generate_series(4, 6) k ON p._id = k::bson_value
  WHEN MATCHED AND k = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET doc = bson_set(p.doc, 'n', 9) WHEN NOT MATCHED THEN INSERT (doc) VALUES (bson_build('_id', k, 'n', k));
SELECT is(story('p', to_bson(4)) || '/' || story('p', to_bson(5)) || '/' || story('p', to_bson(6)), '1i{"n": 0} 2d/1i{"n": 0} 2u{"n": 9}/1i{"n": 6}', 'MERGE');
COPY p (doc) FROM STDIN;
{"_id": 7, "n": 7, "revision": 12}
\.
SELECT is((SELECT doc ->> 'revision' FROM p WHERE _id = 7), '1', 'a new document begins with 1, whatever number it comes with');
BEGIN; DELETE FROM p WHERE _id = 7; INSERT INTO p (doc) VALUES ('{_id: 7, n: 8}'); COMMIT;
SELECT is(story('p', to_bson(7)), '1i{"n": 7} 2d 3i{"n": 8}', 'a document that comes back goes on');
UPDATE p SET doc = bson_set(doc, 'n', 9) WHERE _id = 7;
SELECT is((SELECT doc ->> 'revision' FROM p WHERE _id = 7), '4', 'and counts on');
SELECT is(count(DISTINCT since), 1::bigint, 'a transaction has one time for all that it does') FROM p_history WHERE key = 7 AND revision IN (2, 3);
WITH d AS (DELETE FROM p WHERE _id = 6 RETURNING doc) INSERT INTO p (doc) SELECT bson_set(doc, 'n', 66) FROM d WHERE pg_sleep(0) IS NOT NULL;
SELECT is(story('p', to_bson(6)), '1i{"n": 6} 2d 3i{"n": 66}', 'one statement takes a document away and puts it there');
UPDATE p SET doc = bson_set(doc, '_id', 60) WHERE _id = 6;
SELECT is(story('p', to_bson(6)) || '/' || story('p', to_bson(60)), '1i{"n": 6} 2d 3i{"n": 66} 4d/1i{"n": 66}', 'with another key it is another document');
UPDATE p SET doc = bson_set(doc, '_id', 6) WHERE _id = 60;
SELECT is(story('p', to_bson(6)) || '/' || story('p', to_bson(60)), '1i{"n": 6} 2d 3i{"n": 66} 4d 5i{"n": 66}/1i{"n": 66} 2d', 'and with its old one it goes on there');
SELECT is((SELECT doc ->> 'revision' FROM p WHERE _id = 6), '5', 'with the number that follows');
BEGIN; UPDATE p SET doc = bson_set(doc, 'n', 100) WHERE _id = 1; SAVEPOINT a; UPDATE p SET doc = bson_set(doc, 'n', 101); ROLLBACK TO a; UPDATE p SET doc = bson_set(doc, 'n', 102) WHERE _id = 1; COMMIT;
SELECT is(story('p', to_bson(1)), '1i{"n": 0} 2u{"n": 1} 3u{"n": 100} 4u{"n": 102}', 'what was rolled back has no history');
SELECT is(story('p', to_bson(2)), '1i{"n": 0}', 'nor what was only touched by it');
BEGIN; SET CONSTRAINTS ALL IMMEDIATE; UPDATE p SET doc = bson_set(doc, 'n', 5) WHERE _id = 2; SELECT is((SELECT since FROM p_history WHERE key = 2 AND revision = 2), NULL, 'a transaction''s own revisions have no time yet');
SELECT is((SELECT count(*) FROM versioning_as_of('p', clock_timestamp()) WHERE key = 2 AND revision = 1), 1::bigint, 'so they are not valid');
SELECT is((SELECT revision FROM versioning_as_of('p', 'infinity') WHERE key = 2), 2::bigint, 'but will be'); COMMIT;
SELECT ok(since > now() - interval '1 hour' AND until IS NULL, 'and have one when it has ended') FROM p_history WHERE key = 2 AND revision = 2;
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
SELECT is((SELECT count(*) FROM p_history a JOIN p_history b ON b.key = a.key AND b.revision = a.revision + 1 WHERE a.until IS DISTINCT FROM b.since), 0::bigint, 'intervals touch');

-- As of any time
SELECT pg_sleep(0.002) \g /dev/null
SELECT clock_timestamp() AS before \gset
TRUNCATE p;
SELECT is((SELECT count(*) FROM p), 0::bigint, 'all gone');
SELECT is((SELECT string_agg(key::text || ':' || revision, ' ' ORDER BY key) FROM versioning_as_of('p', :'before')), '1:4 2:2 3:1 5:2 6:5 7:4', 'and was there a moment ago');
SELECT is_empty($$SELECT * FROM versioning_as_of('p', clock_timestamp())$$, 'not now');
SELECT is_empty($$SELECT * FROM versioning_as_of('p', '1999-01-01')$$, 'nor ever before');
SELECT is((SELECT count(*) FROM versioning_as_of((SELECT 'p'::regclass), :'before')), 6::bigint, 'also of a table that the query has to find out');
SELECT is((SELECT count(*) FROM p_as_of(:'before')), 6::bigint, 'and by the table''s own function');
SELECT is(versioning_revert('p', 2, 2), 4::bigint, 'a document that is gone is put back');
SELECT is((SELECT doc ->> 'n' FROM p WHERE _id = 2), '5', 'as it was');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
SELECT matches(plan_of($$SELECT doc FROM versioning_as_of('p', now()) WHERE key = 1$$), 'Index Scan using p_pkey.*\n *Index Cond: \(_id = ', 'a condition on the key reaches the primary key');
SELECT matches(plan_of($$SELECT doc FROM versioning_as_of('p', now()) WHERE key = 1$$), 'p_revisions_key_idx.*\n *Index Cond: \(key = ', 'and the index of what is gone');
SELECT matches(plan_of($$SELECT revision FROM p_history WHERE key = 1$$), 'p_pkey.*\n *Index Cond: \(_id = ', 'in the view of the history too');
SELECT matches(plan_of($$SELECT a.doc FROM (VALUES (to_bson(1)), (to_bson(2))) v (k) JOIN versioning_as_of('p', now()) a ON a.key = v.k$$), '_id = ', 'keys may come from a join');

-- One revision after the other
SELECT throws_ok($$SELECT versioning_at('p', 2, 99)$$, '22023', NULL, 'a revision that there is not');
SELECT throws_ok($$SELECT versioning_at('p', 99, 1)$$, '22023', NULL, 'a document that there was not');
SELECT throws_ok($$SELECT versioning_revert('p', 2, 3)$$, '22023', NULL, 'a deletion is no document to go back to');
SELECT is((SELECT string_agg(format('%s:%s', revision, value), ' ') FROM versioning_field_history('p', 1, 'n')), '1:0 2:1 3:100 4:102 5:', 'a field through time');
SELECT is((SELECT string_agg(format('%s:%s:%s', path, old, new), ' ') FROM versioning_diff('p', 1, 1, 4)), 'n:0:102', 'the number of the revision is no difference');
SELECT is((SELECT string_agg(path, ' ') FROM versioning_diff('p', 1, 4, 5)), '_id n', 'what went with a deletion');

-- Optimistic writers, numbers of all types
CREATE TABLE o (id int PRIMARY KEY, note text, doc bson);
SELECT versioning_enable('o', revision_field => 'meta.rev') \g /dev/null
INSERT INTO o VALUES (1, 'a', '{x: 1}');
UPDATE o SET doc = '{x: 2, meta: {rev: 1}}';
SELECT is((SELECT doc FROM o)::text, '{"x": 2, "meta": {"rev": 2}}', 'the first revision is 1 without a field, which may lie deeper');
SELECT throws_ok($$UPDATE o SET doc = '{x: 3, meta: {rev: 1}}'$$, '40001', NULL, 'an old one');
SELECT throws_ok($$UPDATE o SET doc = '{x: 3, meta: {rev: 3}}'$$, '40001', NULL, 'one that there is not yet');
SELECT throws_ok($$UPDATE o SET doc = '{x: 3, meta: {rev: "two"}}'$$, '23514', NULL, 'what is no number');
UPDATE o SET doc = '{x: 3, meta: {rev: 2.0}}';
UPDATE o SET doc = '{x: 4, meta: {rev: NumberLong(3)}}';
SELECT throws_ok($$UPDATE o SET doc = '{x: 5, meta: {rev: null}}'$$, '40001', NULL, 'null, as of a new document');
SELECT throws_ok($$UPDATE o SET doc = '{x: 5}'$$, '40001', NULL, 'nothing, likewise');
UPDATE o SET doc = '{x: 5}'::bson || bson_build('meta', doc -> 'meta');
SELECT is(doc::text, '{"x": 5, "meta": {"rev": 5}}', 'equal numbers of other types are right, and what is taken over') FROM o;
UPDATE o SET note = 'b';
SELECT is(story('o', 1), '1i{"x": 1} 2u{"x": 2, "meta": {"rev": 2}} 3u{"x": 3, "meta": {"rev": 3}} 4u{"x": 4, "meta": {"rev": 4}} 5u{"x": 5, "meta": {"rev": 5}}', 'other columns are no part of the document');
SELECT pattern_alter('o', 'meta.rev', '{optimistic: false}') \g /dev/null
UPDATE o SET doc = '{x: 6, meta: {rev: 1}}';
SELECT is(doc -> 'meta.rev', to_bson(6), 'without the check it is written over') FROM o;
SELECT throws_ok($$SELECT pattern_alter('o', 'meta.rev', '{revision_field: "r"}')$$, '22023', NULL, 'the field stays');
SELECT throws_ok($$SELECT pattern_alter('o', 'meta.rev', '{keep: 0}')$$, '22023', NULL, 'options are checked again');
-- columns come, go and are called otherwise
ALTER TABLE o ADD COLUMN more int DEFAULT 5; ALTER TABLE o DROP COLUMN note; ALTER TABLE o RENAME COLUMN doc TO body; ALTER TABLE o RENAME COLUMN id TO number;
UPDATE o SET body = bson_set(body, 'x', 7);
SELECT is((SELECT string_agg(bson_get_text(doc, 'x'), ' ' ORDER BY revision) FROM o_history WHERE key = 1), '1 2 3 4 5 6 7', 'history survives other columns');
SELECT is((SELECT doc ->> 'x' FROM versioning_as_of('o', now())), '7', 'as does its reading');
UPDATE o SET body = NULL;
SELECT is((SELECT operation FROM o_history WHERE revision = 8), 'delete', 'a null is no document');
UPDATE o SET body = '{x: 9}';
SELECT is((SELECT body ->> 'meta.rev' FROM o), '9', 'and a document after it a new one');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');

-- Only some revisions are kept; whole documents; redaction and purge
SELECT pattern_alter('o', 'meta.rev', '{keep: 3}') \g /dev/null
UPDATE o SET body = bson_set(body, 'x', 10); UPDATE o SET body = bson_set(body, 'x', 11);
SELECT is((SELECT string_agg(revision || ':' || bson_get_text(doc, 'x'), ' ' ORDER BY revision) FROM o_history), '9:9 10:10 11:11', 'three are kept');
SELECT pattern_alter('o', 'meta.rev', '{keep: null, storage: "full"}') \g /dev/null
UPDATE o SET body = bson_set(body, 'x', 12); UPDATE o SET body = bson_set(body, 'x', 13);
SELECT is((SELECT string_agg(bson_get_text(doc, 'x'), ' ' ORDER BY revision) FROM o_history), '9 10 11 12 13', 'and whole documents if that is wanted');
SELECT is((SELECT count(*) FROM o_revisions WHERE previous IS NOT NULL AND revision > 11), 2::bigint, 'which it is');
SELECT is(versioning_redact('o', 1, 'x'), 5::bigint, 'a field is taken out of all revisions');
SELECT is((SELECT count(*) FROM o_history WHERE doc ? 'x'), 0::bigint, 'it is in none');
SELECT throws_ok($$SELECT versioning_redact('o', 1, 'meta')$$, '22023', NULL, 'the number stays');
SELECT throws_ok($$SELECT versioning_redact('o', 1, 'meta.rev')$$, '22023', NULL, 'itself');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
SELECT is(versioning_purge('o', now() - interval '1 day'), 0::bigint, 'nothing is that old');
SELECT cmp_ok(versioning_purge('o', now()), '>', 3::bigint, 'what is no longer valid is forgotten');
SELECT is((SELECT count(*) FROM o_history), 1::bigint, 'what is stays');
SELECT is((SELECT count(*) FROM o_changes), 1::bigint, 'with its time');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');

-- A chain of many revisions, with documents that grow, shrink and turn round
SELECT collection_create('many') \g /dev/null
SELECT versioning_enable('many') \g /dev/null
CREATE TABLE model (n int PRIMARY KEY, doc bson);
INSERT INTO many (doc) VALUES ('{_id: 1}');
INSERT INTO model VALUES (1, '{}');
SELECT setseed(0.31) \g /dev/null
DO $$
DECLARE
  d bson := '{}';
BEGIN
  FOR n IN 2 .. 200 LOOP
    d := CASE WHEN n % 11 = 0 THEN bson_build('list', (SELECT bson_agg(i ORDER BY random()) FROM generate_series(1, 1 + n / 2) i), 'text', repeat(md5(n::text), n % 40))
              WHEN n % 3 = 0 THEN bson_update(d, bson_build('$push', bson_build('list2', bson_build('n', n, 'x', random()::text))))
              ELSE bson_set(d, 'f' || (n % 7), n) END;
    UPDATE many SET doc = bson_build('_id', 1) || d || bson_build('revision', doc -> 'revision');
    INSERT INTO model VALUES (n, d);
    IF n % 10 = 0 THEN COMMIT; END IF;
  END LOOP;
END $$;
SELECT is((SELECT count(*) FROM many_history), 200::bigint, 'two hundred revisions');
SELECT is_empty($$SELECT m.n FROM model m JOIN many_history h ON h.revision = m.n WHERE bson_unset(h.doc, '_id', 'revision')::bytea <> m.doc::bytea$$, 'each is what was written');
SELECT is_empty($$SELECT a.n FROM (SELECT m.n, since FROM model m JOIN many_history h ON h.revision = m.n WHERE n % 10 = 0) a
  WHERE (SELECT revision FROM versioning_as_of('many', a.since) WHERE key = 1) <> a.n$$, 'and the last of its transaction is found by its time');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
SELECT cmp_ok((SELECT max(gap) FROM (SELECT revision - lag(revision) OVER (ORDER BY revision) AS gap FROM many_revisions WHERE previous IS NOT NULL) g), '<=', 32::bigint, 'a whole document is never far');

-- The clock is set back: stamps of a document still rise, and those of others are not moved
SET docpatterns.maintain = off;
UPDATE many_changes SET since = since + interval '2 hours' WHERE change = (SELECT max(change) FROM many_changes);
RESET docpatterns.maintain;
UPDATE many SET doc = bson_set(doc, 'late', 1);
INSERT INTO many (doc) VALUES ('{_id: 2}');
UPDATE many SET doc = bson_set(doc, 'late', 2) WHERE _id = 1;
SELECT ok(bool_and(since > before), 'stamps of one document rise') FROM (SELECT since, lag(since) OVER (ORDER BY revision) AS before FROM many_history WHERE key = 1 AND revision >= 200) h WHERE before IS NOT NULL;
SELECT ok(since > now() + interval '1 hour', 'also into the future') FROM many_history WHERE key = 1 AND revision = 202;
SELECT ok(since <= now(), 'other documents keep to the clock') FROM many_history WHERE key = 2;
UPDATE many SET doc = bson_set(doc, 'late', 3);
SELECT is(count(DISTINCT since), 1::bigint, 'a transaction that writes both has one stamp') FROM many_history WHERE (key = 1 AND revision = 203) OR (key = 2 AND revision = 2);
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');

-- A full table, and what went wrong
SELECT collection_create('old') \g /dev/null
INSERT INTO old (doc) SELECT bson_build('_id', i, 'n', i) FROM generate_series(1, 6) i;
UPDATE old SET doc = bson_set(doc, 'revision', 40) WHERE _id = 6;
SELECT versioning_enable('old') \g /dev/null
SELECT is((SELECT count(*) FROM pattern_check('old')), 6::bigint, 'documents without history are told');
UPDATE old SET doc = bson_set(doc, 'n', 0) WHERE _id = 1; DELETE FROM old WHERE _id = 2;
SELECT is(story('old', to_bson(1)) || '/' || story('old', to_bson(2)), '1i{"n": 1} 2u{"n": 0}/1i{"n": 2} 2d', 'a change records them');
CALL pattern_build('old', 'revision', 2);
SELECT is_empty('SELECT * FROM pattern_check()', 'as does the build');
SELECT is((SELECT string_agg(key::text || ':' || revision, ' ' ORDER BY key, revision) FROM old_history WHERE key > 2), '3:1 4:1 5:1 6:40', 'with the number that they have');
SET docpatterns.maintain = off;
UPDATE old SET doc = bson_set(doc, 'n', 'unseen') WHERE _id IN (1, 3); DELETE FROM old WHERE _id = 4; INSERT INTO old (doc) VALUES ('{_id: 8}'), ('{_id: 2, n: "back"}');
DELETE FROM old_revisions WHERE key = 1 AND revision = 1;
RESET docpatterns.maintain;
SELECT cmp_ok((SELECT count(*) FROM pattern_check('old')), '>=', 4::bigint, 'what was written unseen is told');
SELECT cmp_ok(pattern_repair('old'), '>=', 4::bigint, 'and repaired');
SELECT is_empty('SELECT * FROM pattern_check()', 'so that all is true again');
SELECT is((SELECT doc ->> 'n' FROM versioning_as_of('old', 'infinity') WHERE key = 1), 'unseen', 'the document is what it is');
SELECT is(versioning_at('old', 4, 1), NULL, 'a document to which nothing leads is not known');
SELECT is(pattern_repair('old'), 0::bigint, 'nothing is left to be done');

-- Keys of several columns, and times as keys; partitions
CREATE TABLE parts (sensor text, at timestamptz, doc bson NOT NULL, PRIMARY KEY (sensor, at)) PARTITION BY LIST (sensor);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a');
SELECT versioning_enable('parts') \g /dev/null
CREATE TABLE parts_b PARTITION OF parts FOR VALUES IN ('b');
INSERT INTO parts VALUES ('a', '2026-01-01 00:00:00.000001Z', '{n: 1}'), ('a', '2026-01-01 00:00:00.000002Z', '{n: 2}'), ('b', '2026-01-01Z', '{n: 3}');
UPDATE parts SET doc = bson_set(doc, 'n', 10) WHERE at = '2026-01-01 00:00:00.000001Z';
UPDATE parts_b SET doc = bson_set(doc, 'n', 30);
UPDATE parts SET sensor = 'b' WHERE at = '2026-01-01 00:00:00.000002Z';
SELECT is((SELECT string_agg(format('%s/%s:%s%s%s', key1, extract(microseconds FROM key2)::int, revision, left(operation, 1), doc ->> 'n'), ' ' ORDER BY key1, key2, revision) FROM parts_history),
  'a/1:1i1 a/1:2u10 a/2:1i2 a/2:2d b/0:1i3 b/0:2u30 b/2:1i2', 'partitions, and a row that goes to another one');
SELECT is(versioning_at('parts', ROW('a'::text, '2026-01-01 00:00:00.000001Z'::timestamptz), 1) ->> 'n', '1', 'a key of several columns is a row');
SELECT is((SELECT count(*) FROM versioning_as_of('parts', now()) WHERE doc ->> 'n' = '30'), 1::bigint, 'as of');
ALTER TABLE parts DETACH PARTITION parts_b;
SELECT is((SELECT string_agg(revision || left(operation, 1), ' ' ORDER BY revision) FROM parts_history WHERE key1 = 'b' AND key2 = '2026-01-01Z'), '1i 2u 3d', 'rows go with a partition');
ALTER TABLE parts ATTACH PARTITION parts_b FOR VALUES IN ('b');
SELECT is((SELECT string_agg(revision || left(operation, 1), ' ' ORDER BY revision) FROM parts_history WHERE key1 = 'b' AND key2 = '2026-01-01Z'), '1i 2u 3d 4i', 'and come');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
TRUNCATE parts;
SELECT is((SELECT count(*) FROM parts_history WHERE operation = 'delete'), 6::bigint, 'and are truncated, once');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');

-- Users' own triggers, before and after ours
SELECT collection_create('trig') \g /dev/null
SELECT versioning_enable('trig') \g /dev/null
CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_WHEN = 'BEFORE' THEN
    NEW.doc := bson_set(NEW.doc, 'seen', coalesce((NEW.doc ->> 'seen')::int, 0) + 1);
    RETURN NEW;
  ELSIF TG_OP = 'INSERT' AND NEW.doc @@ '{again: true}' THEN
    UPDATE vt.trig SET doc = bson_set(doc, 'again', 'done') WHERE _id = NEW._id;
  ELSIF TG_OP = 'INSERT' AND NEW.doc @@ '{never: true}' THEN
    DELETE FROM vt.trig WHERE _id = NEW._id;
  ELSIF TG_OP = 'DELETE' AND OLD.doc @@ '{always: true}' THEN
    INSERT INTO vt.trig (doc) VALUES (bson_unset(OLD.doc, 'always'));
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER a_first BEFORE UPDATE ON trig FOR EACH ROW EXECUTE FUNCTION meddle();
CREATE TRIGGER a_after AFTER INSERT OR UPDATE OR DELETE ON trig FOR EACH ROW EXECUTE FUNCTION meddle();
INSERT INTO trig (doc) VALUES ('{_id: 1, again: true}'), ('{_id: 2, never: true}'), ('{_id: 3, always: true}'), ('{_id: 4, again: true, revision: 9}');
SELECT is(story('trig', to_bson(1)), '1i{"again": true} 2u{"again": "done", "seen": 1}', 'a row that is written again before its history is');
SELECT is(story('trig', to_bson(2)), '1i{"never": true} 2d', 'one that is deleted again');
DELETE FROM trig WHERE _id = 3;
SELECT is(story('trig', to_bson(3)), '1i{"always": true} 2d 3i{"seen": 1}', 'one that comes back');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
CREATE TRIGGER zzz_last BEFORE UPDATE ON trig FOR EACH ROW EXECUTE FUNCTION meddle();
UPDATE trig SET doc = bson_set(doc, 'n', 1);
UPDATE trig SET doc = bson_set(doc, 'revision', 1) WHERE false;
SELECT is_empty('SELECT * FROM pattern_check()', 'a trigger that comes last');

-- Hostile names
CREATE SCHEMA "W eird";
CREATE TABLE "W eird"."T ""t" ("k "" 1" int PRIMARY KEY, "do c" bson);
SELECT versioning_enable('"W eird"."T ""t"', revision_field => '"re v".''x''', name => 'n ''"') \g /dev/null
INSERT INTO "W eird"."T ""t" VALUES (1, '{a: 1}');
UPDATE "W eird"."T ""t" SET "do c" = bson_set("do c", 'a', 2);
SELECT is((SELECT string_agg(doc ->> 'a', ' ' ORDER BY revision) FROM "W eird"."T ""t_history"), '1 2', 'names of all kinds');
SELECT is((SELECT doc ->> 'a' FROM versioning_as_of('"W eird"."T ""t"', now()) WHERE key = 1), '2', 'as of');
SELECT is(versioning_purge('"W eird"."T ""t"', now()), 1::bigint, 'purge');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
DROP SCHEMA "W eird" CASCADE;
SELECT is(to_regclass('"W eird"."T ""t_revisions"'), NULL, 'nothing is left');

-- Rights
SELECT collection_create('secret') \g /dev/null
ALTER TABLE secret OWNER TO vt_owner;
SET ROLE vt_owner;
SELECT versioning_enable('secret') \g /dev/null
INSERT INTO secret (doc) VALUES ('{_id: 1, team: "red", n: 1}'), ('{_id: 2, team: "blue", n: 1}'), ('{_id: 3, team: "red", n: 1}');
RESET ROLE;
SET ROLE vt_writer;
SELECT throws_ok($$SELECT versioning_at('secret', 1, 1)$$, '42501', NULL, 'history is for those who may read the table');
SELECT throws_ok($$SELECT * FROM versioning_as_of('secret', now())$$, '42501', NULL, 'as is what it was');
SELECT throws_ok($$SELECT * FROM secret_history$$, '42501', NULL, 'in the view');
SELECT throws_ok($$SELECT * FROM secret_deleted$$, '42501', NULL, 'and what is gone');
SELECT throws_ok($$SELECT * FROM docpatterns._versioning_as_of('secret', to_bson(1), NULL, now(), 'revision')$$, '42501', NULL, 'whatever is called');
SELECT throws_ok($$SELECT * FROM secret_revisions$$, '42501', NULL, 'where it lies');
RESET ROLE;
GRANT SELECT, UPDATE, DELETE ON secret TO vt_writer;
SET ROLE vt_writer;
UPDATE secret SET doc = bson_set(doc, 'n', 2) WHERE _id = 1;
DELETE FROM secret WHERE _id = 3;
SELECT is((SELECT who FROM versioning_revisions('secret', 1) WHERE revision = 2), 'vt_writer', 'a writer needs no more than his rights, and is named');
SELECT is((SELECT count(*) FROM versioning_as_of('secret', now())), 2::bigint, 'he sees what there was');
SELECT is(versioning_at('secret', 3, 1) ->> 'team', 'red', 'also what is gone');
SELECT throws_ok($$SELECT versioning_purge('secret', now())$$, '42501', NULL, 'forgetting is for the owner');
SELECT throws_ok($$SELECT versioning_redact('secret', 1, 'n')$$, '42501', NULL, 'and so is taking out');
SELECT throws_ok($$SELECT versioning_revert('secret', 3, 1)$$, '42501', NULL, 'putting back needs INSERT');
SELECT is(versioning_revert('secret', 1, 1), 3::bigint, 'or UPDATE');
RESET ROLE;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY red ON secret USING (doc ->> 'team' = 'red');
GRANT SELECT ON secret_history TO vt_writer;
SET ROLE vt_writer;
SELECT is((SELECT string_agg(DISTINCT key::text, ' ') FROM versioning_as_of('secret', now())), '1', 'row security holds for what was');
SELECT is((SELECT string_agg(DISTINCT key::text, ' ') FROM secret_history), '1', 'in the view too');
SELECT is((SELECT count(*) FROM versioning_revisions('secret', 2)), 0::bigint, 'a row that is not shown has no history');
SELECT throws_ok($$SELECT versioning_at('secret', 2, 1)$$, '22023', NULL, 'nor a revision');
SELECT throws_ok($$SELECT versioning_at('secret', 3, 1)$$, '22023', NULL, 'and of what is gone nobody can say');
SELECT is((SELECT count(*) FROM docpatterns._versioning_as_of('secret', to_bson(2), '{_id: 2}', now(), 'revision')), 0::bigint, 'whatever is called');
RESET ROLE;
SET ROLE vt_owner;
SELECT is((SELECT string_agg(DISTINCT key::text, ' ' ORDER BY key::text) FROM secret_history), '1 2 3', 'the owner sees all');
RESET ROLE;
ALTER TABLE secret OWNER TO vt_reader;
SELECT is((SELECT string_agg(DISTINCT c.relowner::regrole::text, ' ') FROM pg_class c WHERE c.relname ~ '^secret_(revisions|changes|history|gone)$'), 'vt_reader', 'what was made follows to a new owner');
SELECT is((SELECT proowner::regrole::text FROM pg_proc WHERE proname = 'secret_as_of'), 'vt_reader', 'with the function');
UPDATE secret SET doc = bson_set(doc, 'n', 5) WHERE _id = 2;
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');

-- Two columns of documents, and the end
CREATE TABLE two (id int PRIMARY KEY, a bson, b bson);
SELECT versioning_enable('two', doc_column => 'a', name => 'of_a'), versioning_enable('two', doc_column => 'b', name => 'of_b') \g /dev/null
INSERT INTO two VALUES (1, '{x: 1}', '{y: 1}');
UPDATE two SET b = '{y: 2}';
SELECT is((SELECT count(*) FROM versioning_revisions('two', 1, 'of_a')) || ' ' || (SELECT count(*) FROM versioning_revisions('two', 1, 'of_b')), '1 2', 'two histories beside each other');
SELECT throws_ok($$SELECT versioning_at('two', 1, 1)$$, '22023', NULL, 'it has to be said which one');
SELECT is(versioning_at('two', 1, 1, 'of_b') ->> 'y', '1', 'and is');
SELECT is((SELECT doc ->> 'y' FROM versioning_as_of('two', now(), 'of_b') WHERE key = 1), '2', 'as of');
SELECT is((SELECT count(*) FROM versioning_as_of('two', now(), 'of_a')), 1::bigint, 'the other');
SELECT is(pattern_disable('two', 'of_a', keep_data => true), 0::bigint, 'ended');
SELECT ok(to_regclass('two_revisions') IS NOT NULL AND to_regclass('two_history') IS NULL, 'with its tables left');
SELECT is(pattern_disable('two', 'of_b'), 0::bigint, 'ended');
SELECT ok(to_regclass('two_of_b_revisions') IS NULL, 'with them gone');
DROP TABLE two;
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
DROP TABLE p CASCADE;
SELECT is(count(*), 0::bigint, 'nothing is left of a table that was dropped') FROM pg_class WHERE relname ~ '^p_' AND relnamespace = 'vt'::regnamespace;

\o /dev/null
DROP SCHEMA vt CASCADE;
DROP ROLE vt_reader, vt_writer, vt_owner;
\o
-- A number that cannot be written is refused at once, not when the document is changed next
CREATE TABLE x (id int PRIMARY KEY, doc bson);
SELECT versioning_enable('x', revision_field => 'meta.rev') \g /dev/null
SELECT throws_ok(format('INSERT INTO x VALUES (1, %L)', doc), '23514', NULL, 'no place for the revision in ' || doc) FROM (VALUES ('{meta: 5}'), ('{meta: null}'), ('{meta: []}'), ('{meta: {rev: {}}}')) AS v (doc);
INSERT INTO x VALUES (1, '{meta: {}}'), (2, '{}');
SELECT throws_ok($$UPDATE x SET doc = '{meta: "a", b: 1}'$$, '23514', NULL, 'nor by a change');
SELECT lives_ok($$UPDATE x SET doc = bson_set(doc, 'b', 1)$$, 'there is in others');
SELECT results_eq('SELECT (doc -> ''meta.rev'')::int FROM x', '{2,2}'::int[], 'and it is written');
DROP TABLE x CASCADE;

-- a declaration that somebody has written by hand
CREATE TABLE x (id int PRIMARY KEY, doc bson);
CREATE TRIGGER zz_docpatterns_88_versioning_rev BEFORE UPDATE ON x FOR EACH ROW
  EXECUTE FUNCTION docpatterns.versioning_trigger('{name: "rev", revision_field: "rev", storage: "delta", doc_column: "doc", second_link_id: "a"}');
SELECT throws_ok($$SELECT pattern_repair('x', 'rev')$$, '22023', NULL, 'which tables a history lies in has to be said');
DROP TABLE x CASCADE;
SELECT * FROM finish();
