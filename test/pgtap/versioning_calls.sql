-- What the calls that read history show: to whom documents that were there under the same key, who wrote what is not committed yet,
-- documents that are not known, and what is said where something was dropped or is not to be called.
\set ECHO none
SET client_min_messages = error;
SET timezone = 'UTC';
SELECT plan(81);
DROP ROLE IF EXISTS dp_tenant;
DROP ROLE IF EXISTS dp_keeper;
CREATE ROLE dp_tenant;
CREATE ROLE dp_keeper;
GRANT CREATE ON SCHEMA public TO dp_keeper;

-- Row security: whoever inserts a document under the key of one that is gone sees nothing of that
SELECT collection_create('shared') \gset
SELECT versioning_enable('shared') \gset
ALTER TABLE shared ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON shared USING (doc ->> 'tenant' = current_user);
GRANT ALL ON shared TO dp_tenant;
GRANT SELECT ON shared_history TO dp_tenant;
INSERT INTO shared (doc) VALUES ('{_id: 1, tenant: "somebody", x: "first secret"}');
UPDATE shared SET doc = bson_set(doc, 'x', 'second secret');
SELECT clock_timestamp() AS before_that \gset
DELETE FROM shared;
SET ROLE dp_tenant;
INSERT INTO shared (doc) VALUES ('{_id: 1, tenant: "dp_tenant", x: 1}');
UPDATE shared SET doc = bson_set(doc, 'x', 2);
SELECT throws_ok($$SELECT versioning_at('shared', 1, 1)$$, '22023', 'document 1 of table "shared" has no revision 1', 'a document that was there before is not shown');
SELECT throws_ok($$SELECT versioning_at('shared', 1, 3)$$, '22023', NULL, 'nor that it was deleted');
SELECT is(versioning_at('shared', 1, 4) -> 'x', '1', 'one''s own is');
SELECT is((SELECT string_agg(concat(revision, operation, who), ' ' ORDER BY revision) FROM versioning_revisions('shared', 1)), '4insertdp_tenant 5updatedp_tenant', 'its revisions');
SELECT is((SELECT string_agg(revision || doc::text, ' ' ORDER BY revision) FROM shared_history), '4{"_id": 1, "tenant": "dp_tenant", "x": 1, "revision": 4}' || ' 5' || (SELECT doc::text FROM shared), 'the view');
SELECT is_empty(format('SELECT * FROM versioning_as_of(%L, %L)', 'shared', :'before_that'), 'as of a time before');
SELECT is((SELECT revision FROM versioning_as_of('shared', 'infinity')), 5::bigint, 'as of now');
SELECT throws_ok($$SELECT * FROM versioning_diff('shared', 1, 2, 5)$$, '22023', NULL, 'differences');
SELECT is((SELECT string_agg(revision || value::text, ' ' ORDER BY revision) FROM versioning_field_history('shared', 1, 'x')), '41 52', 'the history of a field');
SELECT throws_ok($$SELECT versioning_revert('shared', 1, 1)$$, '22023', 'document 1 of table "shared" has no revision 1', 'it cannot be brought back');
SELECT is(versioning_revert('shared', 1, 4), 6::bigint, 'one''s own can');
RESET ROLE;
SELECT is(versioning_at('shared', 1, 1) ->> 'x', 'first secret', 'for whom no row security holds all of it is there');
SELECT is((SELECT doc ->> 'x' FROM versioning_as_of('shared', :'before_that')), 'second secret', 'as of, too');

-- Who wrote what is not committed
SELECT collection_create('notes') \gset
SELECT versioning_enable('notes') \gset
GRANT ALL ON notes TO dp_tenant;
INSERT INTO notes (doc) SELECT bson_build('_id', 1, 'x', 1, 'y', 0, 'filler', repeat('f', 1000));
BEGIN;
SET LOCAL ROLE dp_tenant;
UPDATE notes SET doc = bson_set(doc, 'y', 1);
RESET ROLE;
UPDATE notes SET doc = bson_set(doc, 'y', 2);
SELECT is((SELECT string_agg(who, ' ' ORDER BY revision) FROM versioning_revisions('notes', 1) WHERE since IS NULL), 'dp_tenant ' || current_user, 'they are told apart');
SELECT is((SELECT string_agg(who, ' ' ORDER BY revision) FROM versioning_field_history('notes', 1, 'y') WHERE since IS NULL), 'dp_tenant ' || current_user, 'and named in the history of a field');
SELECT is((SELECT count(*) FROM versioning_revisions('notes', 1) WHERE transaction = pg_current_xact_id()), 2::bigint, 'with the transaction');
ROLLBACK;
SELECT is((SELECT string_agg(concat(revision, who), ' ') FROM versioning_revisions('notes', 1)), '1' || current_user, 'what was rolled back is gone');

-- Documents that are not known: neither empty ones, nor without the field
UPDATE notes SET doc = bson_set(doc, 'y', 1);
UPDATE notes SET doc = bson_set(doc, 'y', 2);
SET docpatterns.maintain = off;
UPDATE notes SET doc = bson_set(bson_set(doc, 'revision', 7), 'y', 9);
RESET docpatterns.maintain;
SELECT pattern_repair('notes') \gset
SELECT is((SELECT string_agg(revision::text, ' ' ORDER BY revision) FROM notes_history WHERE doc IS NULL), '1 2 3', 'after a repair there are some');
SELECT throws_ok($$SELECT * FROM versioning_diff('notes', 1, 1, 4)$$, '22023', 'the document in revision 1 of document 1 of table "notes" is not known', 'they differ from others in nobody knows what');
SELECT is((SELECT string_agg(revision || value::text, ' ' ORDER BY revision) FROM versioning_field_history('notes', 1, 'x')), '41', 'and change no field');
SELECT is(versioning_at('notes', 1, 1), NULL, 'they are null');

-- A field beside that of the revision
SELECT collection_create('nested') \gset
SELECT versioning_enable('nested', revision_field => 'meta.rev') \gset
INSERT INTO nested (doc) VALUES ('{_id: 1, meta: {name: "secret"}}');
SELECT is(versioning_redact('nested', 1, 'meta.name'), 1::bigint, 'may be taken out');
SELECT throws_ok($$SELECT versioning_redact('nested', 1, 'meta')$$, '22023', NULL, 'what holds it may not');
SELECT throws_ok($$SELECT versioning_redact('nested', 1, 'meta.rev')$$, '22023', NULL, 'nor it itself');

-- The right to call the table's own function is not needed, and what was dropped is named
ALTER DEFAULT PRIVILEGES FOR ROLE dp_keeper REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
SET ROLE dp_keeper;
SELECT collection_create('kept') \gset
SELECT versioning_enable('kept') \gset
INSERT INTO kept (doc) VALUES ('{_id: 1}');
GRANT SELECT ON kept TO dp_tenant;
SET ROLE dp_tenant;
SELECT is((SELECT count(*) FROM versioning_as_of('kept', 'infinity')), 1::bigint, 'who may read the table may read its history');
RESET ROLE;
DROP FUNCTION kept_as_of;
DROP VIEW kept_history, kept_deleted;
SELECT throws_ok($$SELECT * FROM versioning_as_of('kept', 'infinity')$$, '55000', 'the history of table "kept" is missing', 'a view was dropped');
SELECT pattern_repair('kept') \gset
SELECT is((SELECT count(*) FROM versioning_as_of('kept', 'infinity')), 1::bigint, 'and is made anew');

-- a threshold leaves out what is near enough, and so a revert that would change nothing else
SELECT collection_create('counted');
SELECT versioning_enable('counted'), approximation_enable('counted', 'stock', threshold => '10');
INSERT INTO counted (doc) VALUES ('{_id: 1, stock: 100, name: "a"}'), ('{_id: 2, stock: 100, secret: 1}');
UPDATE counted SET doc = bson_set(doc, 'stock', 120) WHERE _id = 1;
UPDATE counted SET doc = bson_set(doc, 'stock', 112) WHERE _id = 1;
SELECT is((SELECT doc -> 'stock' FROM counted WHERE _id = 1), '120', 'the threshold holds');
UPDATE counted SET doc = bson_set(doc, 'stock', 109) WHERE _id = 1;
UPDATE counted SET doc = bson_set(doc, 'stock', 105) WHERE _id = 1;
SELECT is(versioning_revert('counted', 1, 1), 3::bigint, 'nothing is written where only the field differs, by less: the last revision stands');
SELECT is(doc, '{_id: 1, stock: 109, name: "a", revision: 3}', 'and so does the document') FROM counted WHERE _id = 1;
SELECT is(versioning_revert('counted', 1, 2), 4::bigint, 'what is far enough is written');
SELECT versioning_redact('counted', 2, 'stock') \gset
SELECT ok(NOT doc ? 'stock', 'what is redacted goes whatever the threshold') FROM counted WHERE _id = 2;
-- the newest revisions: of a query that asks for these alone no others are read, and every query answers as over a copy
SELECT collection_create('long', key_type => 'int8') \g /dev/null
SELECT versioning_enable('long') \g /dev/null
INSERT INTO long (doc) SELECT bson_build('_id', i, 'n', 0) FROM generate_series(1, 4) i;
DO $$ BEGIN FOR i IN 1 .. 60 LOOP UPDATE long SET doc = bson_set(doc, 'n', i) WHERE _id <= 1 + i % 3; COMMIT; END LOOP; END $$;
DELETE FROM long WHERE _id = 3;
CREATE TEMP TABLE copied AS SELECT * FROM long_history;
CREATE TEMP TABLE numbers AS SELECT i::bigint AS n FROM generate_series(1, 30) i;
CREATE FUNCTION pg_temp.plan_of(q text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE l text; r text; BEGIN FOR l IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP r := concat_ws(' ', r, trim(l)); END LOOP; RETURN r; END $$;
CREATE FUNCTION pg_temp.answer(q text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE r text; BEGIN EXECUTE format('SELECT string_agg(x::text, E''\n'') FROM (%s) x', q) INTO r; RETURN coalesce(r, 'no rows'); END $$;
SELECT is(pg_temp.plan_of(q) LIKE '%_versioning_newest%', newest, CASE WHEN newest THEN 'the newest only: ' ELSE 'all: ' END || q) || E'\n' || is(pg_temp.answer(q), pg_temp.answer(replace(q, 'long_history', 'copied')), 'right: ' || q) FROM (VALUES
  (true, 'SELECT * FROM long_history WHERE key = 1 ORDER BY revision DESC LIMIT 10'),
  (true, 'SELECT revision, operation, doc FROM long_history WHERE key = 2 ORDER BY revision DESC LIMIT 100'),
  (true, 'SELECT key, revision, until, since FROM long_history ORDER BY revision DESC, key LIMIT 7'),
  (true, 'SELECT key, revision FROM long_history WHERE key IN (1, 3) ORDER BY revision DESC, key LIMIT 5'),
  (true, 'SELECT * FROM long_history WHERE key = 1 ORDER BY revision DESC LIMIT 0'),
  (true, 'SELECT * FROM long_history WHERE key = 1 ORDER BY revision DESC LIMIT 2000'),
  (true, 'SELECT h.revision, n FROM numbers, long_history h WHERE key = n AND n < 3 ORDER BY revision DESC, n LIMIT 6'),
  (false, 'SELECT * FROM long_history WHERE key = 1 ORDER BY revision LIMIT 10'),
  (false, 'SELECT * FROM long_history WHERE key = 1 ORDER BY revision DESC'),
  (false, 'SELECT revision FROM long_history WHERE key = 1 ORDER BY revision DESC LIMIT 5 OFFSET 3'),
  (false, 'SELECT revision FROM long_history WHERE key = 1 AND revision < 20 ORDER BY revision DESC LIMIT 3'),
  (false, 'SELECT revision FROM long_history WHERE key = 1 AND operation = ''insert'' ORDER BY revision DESC LIMIT 3'),
  (false, 'SELECT revision FROM long_history WHERE key = 1 AND doc @@ ''{n: 5}'' ORDER BY revision DESC LIMIT 3'),
  (false, 'SELECT revision FROM long_history WHERE key = 1 AND EXISTS (SELECT FROM numbers WHERE n = revision) ORDER BY revision DESC LIMIT 3'),
  (false, 'SELECT revision FROM long_history WHERE key = 1 AND revision NOT IN (SELECT n + 5 FROM numbers) ORDER BY revision DESC LIMIT 3'),
  (false, 'SELECT revision FROM long_history JOIN numbers ON n = revision WHERE key = 1 ORDER BY revision DESC LIMIT 3'),
  (false, 'SELECT revision, i FROM long_history h, generate_series(1, CASE WHEN h.revision < 9 THEN 2 ELSE 0 END) i WHERE key = 1 ORDER BY revision DESC, i LIMIT 3'),
  (false, 'SELECT revision, x FROM long_history h, LATERAL (SELECT 1 AS x WHERE h.revision % 7 = 0 OFFSET 0) x WHERE key = 1 ORDER BY revision DESC LIMIT 3'),
  (false, 'SELECT DISTINCT operation, revision FROM long_history WHERE key = 1 ORDER BY revision DESC LIMIT 3'),
  (false, 'SELECT max(revision) AS revision FROM long_history GROUP BY key ORDER BY revision DESC LIMIT 3'),
  (false, 'SELECT revision, count(*) OVER () FROM long_history WHERE key = 1 ORDER BY revision DESC LIMIT 3'),
  (false, 'SELECT n, revision FROM numbers LEFT JOIN long_history h ON key = n AND revision < 5 WHERE n = 1 ORDER BY revision DESC LIMIT 3'),
  (false, 'SELECT x.revision FROM (SELECT * FROM long_history WHERE key = 1 OFFSET 0) x ORDER BY x.revision DESC LIMIT 3')) AS asked (newest, q);
SELECT is(pg_temp.answer('SELECT x.* FROM long b, LATERAL (SELECT key, revision FROM long_history h WHERE h.key = b._id ORDER BY revision DESC LIMIT 2) x ORDER BY 1, 2'),
  pg_temp.answer('SELECT key, revision FROM (SELECT *, row_number() OVER (PARTITION BY key ORDER BY revision DESC) AS r FROM copied WHERE key <> 3) x WHERE r <= 2 ORDER BY 1, 2'), 'two of each');
SELECT is(pg_temp.answer('SELECT * FROM versioning_revisions(''long'', 2) ORDER BY revision DESC LIMIT 4'), pg_temp.answer('SELECT revision, since, until, operation, who, transaction FROM copied WHERE key = 2 ORDER BY revision DESC LIMIT 4'), 'the function itself');
SET plan_cache_mode = force_generic_plan;
PREPARE newest_of_1(int) AS SELECT revision FROM long_history WHERE key = 1 ORDER BY revision DESC LIMIT $1;
CREATE TEMP TABLE some_rows (n text, revision bigint);
DO $$ DECLARE r record; BEGIN FOR n IN 0 .. 3 LOOP FOR r IN EXECUTE format('EXECUTE newest_of_1(%s)', CASE n WHEN 3 THEN 'NULL' ELSE n::text END) LOOP INSERT INTO some_rows VALUES (n, r.revision); END LOOP; END LOOP; END $$;
SELECT is((SELECT string_agg(n || ':' || c || ':' || m, ' ' ORDER BY n) FROM (SELECT n, count(*) AS c, min(revision) AS m FROM some_rows GROUP BY n) x), (SELECT '1:1:' || max(revision) || ' 2:2:' || max(revision) - 1 || ' 3:' || count(*) || ':1' FROM copied WHERE key = 1), 'a limit that is a parameter');
RESET plan_cache_mode;
DROP TABLE long CASCADE;
SELECT * FROM finish();
DROP TABLE shared, notes, nested, kept, counted CASCADE;
DROP OWNED BY dp_keeper, dp_tenant;
DROP ROLE dp_keeper, dp_tenant;
