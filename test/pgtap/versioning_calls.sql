-- What the calls that read history show: to whom documents that were there under the same key, who wrote what is not committed yet,
-- documents that are not known, and what is said where something was dropped or is not to be called.
\set ECHO none
SET client_min_messages = error;
SET timezone = 'UTC';
SELECT plan(32);
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
SELECT * FROM finish();
DROP TABLE shared, notes, nested, kept, counted CASCADE;
DROP OWNED BY dp_keeper, dp_tenant;
DROP ROLE dp_keeper, dp_tenant;
