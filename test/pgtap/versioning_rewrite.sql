-- What is left behind when history is rewritten: nothing of what was taken out, also where the differences do not lead anywhere.
\set ECHO none
SET client_min_messages = error;
SET timezone = 'UTC';
SELECT plan(4);
SELECT collection_create('broken') \gset
SELECT versioning_enable('broken') \gset
INSERT INTO broken (doc) SELECT bson_build('_id', i, 'x', 'secret', 'n', 0, 'filler', repeat('f', 1000)) FROM generate_series(1, 2) i;
DO $$ BEGIN FOR i IN 1 .. 5 LOOP UPDATE broken SET doc = bson_set(bson_set(doc, 'n', i), 'x', 'secret' || i); COMMIT; END LOOP; END $$;
SET docpatterns.maintain = off;
UPDATE broken SET doc = bson_set(doc, 'unseen', true) WHERE _id = 1;
DELETE FROM broken WHERE _id = 2;
RESET docpatterns.maintain;
CREATE FUNCTION pg_temp.secrets(k int) RETURNS bigint LANGUAGE sql RETURN (SELECT count(*) FROM broken_revisions WHERE key = k AND (position('secret'::bytea IN delta) > 0 OR previous::text ~ 'secret'));
SELECT cmp_ok(pg_temp.secrets(1) + pg_temp.secrets(2), '>', 5::bigint, 'differences that do not fit the documents any more hold it');
SELECT versioning_redact('broken', 1, 'x'), versioning_redact('broken', 2, 'x') \gset
SELECT is(pg_temp.secrets(1) + pg_temp.secrets(2), 0::bigint, 'it is taken out of them, too');
SELECT pattern_repair('broken') \gset
SELECT is_empty($$SELECT * FROM pattern_check('broken')$$, 'and the history can be repaired');
SELECT is_empty($$SELECT * FROM broken_history WHERE doc::text ~ 'secret'$$, 'without it');
SELECT * FROM finish();
DROP TABLE broken CASCADE;
