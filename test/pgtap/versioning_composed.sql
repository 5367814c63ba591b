-- Everything at once: documents of several kinds and several versions, with packed attributes, and a history of all of it.
\set QUIET 1
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(23);
CREATE SCHEMA vc;
SET search_path = vc, public;
\o /dev/null
SELECT collection_create('people');
SELECT schema_versioning_enable('people', field => 'schema_version', current => 2, write => 'upgrade');
SELECT schema_versioning_step('people', 1, 2, up_update => '{$rename: {phone: "mobile"}}', down_update => '{$rename: {mobile: "phone"}}');
SELECT attribute_enable('people', into_field => 'specs', pattern => 'spec_{k}', value_field => 'v');
SELECT polymorphic_enable('people', by => 'kind', unknown => 'error', common => '{"required": ["name"]}');
SELECT polymorphic_variant('people', 'jedi', schema => '{"required": ["master"]}');
SELECT versioning_enable('people');
\o
INSERT INTO people (doc) VALUES ('{_id: 1, kind: "jedi", name: "Anakin", master: "Obi-Wan", phone: "503", spec_color: "blue", spec_height: 188}');
SELECT ok(doc @@ '{mobile: "503", schema_version: 2, "specs.k": "height", spec_color: {$exists: false}}', 'a document is upgraded and packed') FROM people;
UPDATE people SET doc = bson_set(doc, 'name', 'Vader');
UPDATE people SET doc = bson_set(doc, 'spec_color', 'red'::text);
UPDATE people SET doc = doc;
SELECT is((SELECT count(*) FROM people_history), 3::bigint, 'each change is a revision, none is none');
SELECT is((SELECT count(*) FROM people_history h WHERE NOT h.doc @@ '{schema_version: 2, specs: {$size: 2}}'), 0::bigint, 'of the document as it is stored');
SELECT throws_ok($$UPDATE people SET doc = bson_unset(doc, 'master')$$, '23514', NULL, 'what is not valid is refused');
SELECT throws_ok($$UPDATE people SET doc = bson_set(doc, 'revision', 1)$$, '40001', NULL, 'and what is old');
SELECT is((SELECT count(*) FROM people_revisions), 3::bigint, 'neither leaves a revision');
SELECT is(people_as_v1(versioning_at('people', 1, 1)) ->> 'phone', '503', 'history is read in the version that is asked for');
SELECT is(people_as_v1(doc) ->> 'phone', '503', 'at any time') FROM versioning_as_of('people', now()) WHERE key = 1;
SELECT is((SELECT string_agg(path || ':' || old || '>' || new, ' ') FROM versioning_diff('people', 1, 1, 3)), 'name:Anakin>Vader specs.0.v:blue>red', 'differences reach into packed attributes');
-- an old application
INSERT INTO people_v1 (doc) VALUES ('{_id: 2, kind: "jedi", name: "Luke", master: "Yoda", phone: "504"}');
UPDATE people_v1 SET doc = bson_set(doc, 'phone', '505'::text) WHERE _id = 2;
SELECT is((SELECT string_agg(doc ->> 'mobile', ' ' ORDER BY revision) FROM people_history WHERE key = 2), '504 505', 'writes through an old view have history, too');
SELECT is(versioning_revert('people', 1, 1), 4::bigint, 'an old document comes back through all patterns');
SELECT ok(doc @@ '{name: "Anakin", revision: 4, mobile: "503"}', 'as it was') FROM people WHERE _id = 1;
-- documents of the first version side by side with the second, migrated afterwards
SELECT pattern_alter('people', 'schema_version', '{write: "accept"}') \g /dev/null
INSERT INTO people (doc) VALUES ('{_id: 3, kind: "jedi", name: "Ahsoka", master: "Anakin", phone: "506"}');
SELECT ok(doc ? 'phone', 'stored as written') FROM people WHERE _id = 3;
CALL schema_versioning_migrate('people');
SELECT is((SELECT string_agg(coalesce(doc ->> 'phone', doc ->> 'mobile') || (doc ? 'mobile')::text, ' ' ORDER BY revision) FROM people_history WHERE key = 3), '506false 506true', 'a migration is a change like any other');
SELECT is(people_as_v2(versioning_at('people', 3, 1)) ->> 'mobile', '506', 'which history can be read without');
DELETE FROM people WHERE _id = 2;
SELECT is((SELECT doc ->> 'name' FROM versioning_as_of('people', (SELECT since FROM people_history WHERE key = 2 AND revision = 2)) WHERE key = 2), 'Luke', 'what is gone was there');
SELECT is((SELECT count(DISTINCT pattern) FROM pattern_list('people')), 5::bigint, 'four patterns and a variant');
SELECT is_empty('SELECT * FROM pattern_check()', 'and all is true');

-- A partition that goes, is written to, and comes back: history and feed tell the same, in the order in which it was.
\o /dev/null
CREATE TABLE p (id int PRIMARY KEY, doc bson) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100);
SELECT versioning_enable('p'); SELECT change_feed_enable('p');
INSERT INTO p VALUES (1, '{a: 1}'), (2, '{a: 2}'); UPDATE p SET doc = bson_set(doc, 'a', 3) WHERE id = 1;
ALTER TABLE p DETACH PARTITION p1;
\o
SELECT is_empty('SELECT * FROM pattern_check()', 'a partition has gone');
\o /dev/null
UPDATE p1 SET doc = bson_set(doc, 'a', 4) WHERE id = 2; INSERT INTO p1 VALUES (3, '{a: 5}'); DELETE FROM p1 WHERE id = 1;
ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (0) TO (100);
\o
SELECT is_empty('SELECT * FROM pattern_check()', 'and is back');
SELECT is((SELECT string_agg(concat(operation, ' ', key, ' ', document), ', ' ORDER BY number) FROM (SELECT *, max(transaction) OVER () AS last FROM p_feed) f WHERE transaction = last),
  'insert 2 {"a": 4}, insert 3 {"a": 5}, update 2 {"a": 4, "revision": 3}', 'a row comes before it gets its number');
SELECT is((SELECT string_agg(concat(id, ' ', doc), ', ' ORDER BY id) FROM p), (SELECT string_agg(concat(key, ' ', document), ', ' ORDER BY key) FROM (SELECT DISTINCT ON (key) * FROM p_feed ORDER BY key, number DESC) f WHERE operation <> 'delete'), 'what the feed ends with is there');
SELECT is((SELECT string_agg(concat(key, ' ', doc), ', ' ORDER BY key) FROM versioning_as_of('p', now() + interval '1 s')), '2 {"a": 4, "revision": 3}, 3 {"a": 5}', 'and what the history ends with');
\o /dev/null
DROP SCHEMA vc CASCADE;
\o
SELECT * FROM finish();
