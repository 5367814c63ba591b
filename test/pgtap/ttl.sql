-- The TTL pattern: documents that expire.
\set ECHO none
SET client_min_messages = error;
SELECT plan(43);

CREATE ROLE dp_ttl;
CREATE ROLE dp_ttl_reader;
GRANT CREATE ON SCHEMA public TO dp_ttl;
SET ROLE dp_ttl;
SELECT has_function('ttl_enable', ARRAY['regclass', 'text', 'interval', 'text', 'text']);
SELECT function_returns('ttl_enable', 'text');

-- what is a date
SELECT is(docpatterns._ttl_date(format('{a: %s}', v)::bson -> 'a'), w, v) FROM (VALUES
  ('{"$date": "2024-05-01T10:00:00.123Z"}', timestamptz '2024-05-01 10:00:00.123+00'),
  ('{"$date": "1969-12-31T23:59:59.999Z"}', timestamptz '1969-12-31 23:59:59.999+00'),
  ('[3, {"$date": "2024-05-02T00:00:00Z"}, {"$date": "2024-05-01T00:00:00Z"}, null]', timestamptz '2024-05-01 00:00:00+00'),
  ('[[{"$date": "2024-05-01T00:00:00Z"}]]', NULL), ('[]', NULL), ('1714557600', NULL), ('"2024-05-01"', NULL), ('null', NULL), ('{"$timestamp": {t: 1, i: 1}}', NULL),
  ('{"$date": {"$numberLong": "9223372036854775807"}}', timestamptz 'infinity'), ('{"$date": {"$numberLong": "-9223372036854775808"}}', timestamptz '-infinity'),
  ('{"$date": {"$numberLong": "-210866803200001"}}', timestamptz '-infinity'), ('{"$date": {"$numberLong": "9224318016000000"}}', timestamptz 'infinity'),
  ('{"$date": {"$numberLong": "9224318015999999"}}', timestamptz '294276-12-31 23:59:59.999+00'), ('{"$date": {"$numberLong": "-210866803200000"}}', timestamptz '4714-11-24 00:00:00+00 BC')) AS q (v, w);

-- invisible at once, deleted by maintenance
CREATE TABLE "the sessions" ("user id" int, n text COLLATE "C", "the doc" bson, other int, PRIMARY KEY ("user id", n));
INSERT INTO "the sessions" SELECT i, 'x', bson_build('last "seen"', now() - i * interval '1 hour'), i FROM generate_series(1, 10) i;
INSERT INTO "the sessions" VALUES (11, 'x', '{}', 1), (12, 'x', NULL, 1), (13, 'x', '{"last \"seen\"": "yesterday"}', 1);
GRANT SELECT ON "the sessions" TO dp_ttl_reader;
SELECT is(ttl_enable('"the sessions"', '"last ""seen"""', '5 hours 30 min'), '"last ""seen"""', 'the name is the field');
SELECT is((SELECT count(*) FROM "the sessions_current"), 8::bigint, 'what has expired is invisible at once, what has no date stays');
SELECT is((SELECT count(*) FROM "the sessions"), 13::bigint, 'in the table it is until it is deleted');
SELECT results_eq($$SELECT what, amount FROM pattern_due()$$, $$VALUES ('expired documents', 5::bigint)$$, 'it is due');
SELECT ok((SELECT since BETWEEN now() - interval '4 hours 31 min' AND now() - interval '4 hours 29 min' FROM pattern_due()), 'since it expired');
SET enable_seqscan = off;
SELECT ok(EXISTS (SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = '"the sessions"'::regclass AND pg_get_indexdef(i.indexrelid, 1, true) LIKE '%_ttl_date%'), 'an index');
CREATE FUNCTION pg_temp.plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query; END $$;
SELECT ok((SELECT bool_or(p LIKE '%Index Scan%') FROM pg_temp.plan_of($$SELECT FROM "the sessions" t WHERE docpatterns._ttl_date("the doc" -> '"last ""seen"""') <= now() ORDER BY docpatterns._ttl_date("the doc" -> '"last ""seen"""') LIMIT 1$$) p), 'serves maintenance');
RESET enable_seqscan;
CALL pattern_maintain('"the sessions"', batch => 2);
SELECT is((SELECT array_agg("user id" ORDER BY "user id") FROM "the sessions"), '{1,2,3,4,5,11,12,13}', 'maintenance deletes it');
SELECT is((SELECT count(*) FROM pattern_due()), 0::bigint, 'nothing is due');
SELECT is((SELECT count(*) FROM pattern_check()), 0::bigint, 'all is as declared');

-- the view
INSERT INTO "the sessions_current" ("user id", n, "the doc") VALUES (20, 'y', '{a: 1}');
UPDATE "the sessions_current" SET other = 7 WHERE "user id" = 20;
SELECT is((SELECT other FROM "the sessions" WHERE "user id" = 20), 7, 'takes writes');
SET ROLE dp_ttl_reader;
SELECT is((SELECT count(*) FROM "the sessions_current"), 9::bigint, 'has the grants of the table');
SELECT throws_ok($$SELECT ttl_enable('"the sessions"', 'other')$$, '42501', NULL, 'to declare is for the owner');
SET ROLE dp_ttl;

-- altered
SELECT pattern_alter('"the sessions"', NULL, '{after: "2 hours 30 min"}') \g /dev/null
SELECT is((SELECT array_agg("user id" ORDER BY "user id") FROM "the sessions_current"), '{1,2,11,12,13,20}', 'pattern_alter changes the time');
SELECT is((SELECT amount FROM pattern_due()), 3::bigint, 'for maintenance, too');
SELECT throws_ok($$SELECT pattern_alter('"the sessions"', NULL, '{after: "-1 s"}')$$, '22023', NULL, 'not a negative one');
SELECT throws_ok($$SELECT pattern_alter('"the sessions"', NULL, '{field: "x"}')$$, '22023', NULL, 'nor another field');
ALTER VIEW "the sessions_current" RENAME TO alive;
ALTER TABLE "the sessions" RENAME "the doc" TO d;
SELECT pattern_alter('"the sessions"', NULL, '{after: "1 hour 30 min"}') \g /dev/null
SELECT is((SELECT count(*) FROM alive), 5::bigint, 'after the view and the column have other names');

-- a date that changes in time
UPDATE "the sessions" SET d = bson_set(d, '"last ""seen"""', now()) WHERE "user id" = 5;
CALL pattern_maintain();
SELECT is((SELECT array_agg("user id" ORDER BY "user id") FROM "the sessions"), '{1,5,11,12,13,20}', 'a later date saves a document');

-- repair
DROP VIEW alive;
SELECT is((SELECT what FROM pattern_check()), 'view', 'a view that was dropped');
SELECT pattern_repair('"the sessions"') \g /dev/null
SELECT is((SELECT count(*) FROM pattern_check()), 0::bigint, 'is made again');

-- partitions, and other patterns
CREATE TABLE events (day int, id int, doc bson, PRIMARY KEY (day, id)) PARTITION BY LIST (day);
CREATE TABLE events_1 PARTITION OF events FOR VALUES IN (1);
SELECT ttl_enable('events', 'until'), versioning_enable('events'), change_feed_enable('events', notify => false, keep_for => '1 hour') \g /dev/null
CREATE TABLE events_2 PARTITION OF events FOR VALUES IN (2);
INSERT INTO events SELECT i % 2 + 1, i, bson_build('until', now() + (i - 3) * interval '1 min') FROM generate_series(1, 6) i;
CALL pattern_maintain('events');
SELECT is((SELECT array_agg(id ORDER BY id) FROM events), '{4,5,6}', 'partitions');
SELECT is((SELECT count(*) FROM change_feed_read('events') WHERE operation = 'delete'), 3::bigint, 'expiry is a delete for other patterns');
SELECT is((SELECT count(*) FROM pattern_check()), 0::bigint, 'which are consistent');

-- disabled
SELECT is(pattern_disable('"the sessions"'), 0::bigint, 'disabled');
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = '"the sessions"'::regclass) + (SELECT count(*) FROM pg_trigger WHERE tgrelid = '"the sessions"'::regclass)
  + (SELECT count(*) FROM pg_views WHERE schemaname = 'public' AND viewname LIKE 'the sessions%'), 1::bigint, 'nothing is left but the primary key');
RESET ROLE;
SELECT * FROM finish();
