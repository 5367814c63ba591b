-- Patterns that govern the shape of documents on one table: documents of several schema versions, of several kinds, with fields
-- packed into an array, and with a history, written by old and new applications at random.
SET client_min_messages = warning;
SET timezone = 'UTC';
\pset fieldsep '\n'
SELECT plan(21);
SELECT collection_create('movies');
SELECT schema_versioning_enable('movies', current => 2, write => 'accept'),
       schema_versioning_step('movies', 1, 2, up_update => '[{$set: {directors: {$cond: ["$director", ["$director"], []]}}}, {$unset: "director"}]', down_update => '[{$set: {director: {$arrayElemAt: ["$directors", 0]}}}, {$unset: "directors"}]');
SELECT attribute_enable('movies', into_field => 'releases', pattern => 'release_{location}', value_field => 'date');
SELECT polymorphic_enable('movies', by => 'kind', unknown => 'error', common => '{"required": ["title"]}');
SELECT polymorphic_variant('movies', 'film', schema => '{"required": ["minutes"], "properties": {"minutes": {"bsonType": "int"}}}'), polymorphic_variant('movies', 'series', schema => '{"required": ["seasons"]}');
SELECT versioning_enable('movies', revision_field => 'revision', storage => 'delta');

INSERT INTO movies_v1 (doc) VALUES ('{_id: 1, title: "Star Wars", kind: "film", director: "Lucas", minutes: 121, release_US: 1977, release_UK: 1978}');
INSERT INTO movies (doc) VALUES ('{_id: 2, schema_version: 2, title: "Andor", kind: "series", directors: ["Haynes", "White"], seasons: 2, release_US: 2022}');
SELECT results_eq('SELECT doc::text FROM movies ORDER BY _id', ARRAY[
  '{"_id": 1, "title": "Star Wars", "kind": "film", "director": "Lucas", "minutes": 121, "releases": [{"location": "US", "date": 1977}, {"location": "UK", "date": 1978}]}',
  '{"_id": 2, "schema_version": 2, "title": "Andor", "kind": "series", "directors": ["Haynes", "White"], "seasons": 2, "releases": [{"location": "US", "date": 2022}]}'], 'an old document stays old, and its fields are packed');
SELECT results_eq('SELECT doc ->> ''director'' FROM movies_v1 ORDER BY _id', ARRAY['Lucas', 'Haynes'], 'in the old version');
SELECT results_eq('SELECT doc ->> ''directors.0'' FROM movies_current ORDER BY _id', ARRAY['Lucas', 'Haynes'], 'in the present one');
SELECT throws_ok(command, '23514', NULL, what) FROM (VALUES
  ($$INSERT INTO movies_v1 (doc) VALUES ('{_id: 3, title: "x", kind: "film"}')$$, 'a film without its minutes, through an old view'),
  ($$UPDATE movies_v1 SET doc = bson_set(doc, 'minutes', 'many') WHERE _id = 1$$, 'or with minutes that are none'),
  ($$UPDATE movies_v1 SET doc = doc - 'seasons' WHERE _id = 2$$, 'a new document spoilt by an old application'),
  ($$INSERT INTO movies (doc) VALUES ('{_id: 3, schema_version: 3, title: "x", kind: "film", minutes: 1}')$$, 'a version from the future')) AS v (command, what);
UPDATE movies_v1 SET doc = bson_set(bson_set(doc, 'release_DE', 2023), 'director', 'Gilroy') WHERE _id = 2;
SELECT is((SELECT doc::text FROM movies WHERE _id = 2),
  '{"_id": 2, "schema_version": 2, "title": "Andor", "kind": "series", "directors": ["Gilroy", "White"], "seasons": 2, "releases": [{"location": "US", "date": 2022}, {"location": "DE", "date": 2023}], "revision": 2}',
  'an old application changes what it knows; the rest stays, new fields are packed, and there is a revision');
CALL schema_versioning_migrate('movies', batch => 1);
SELECT is((SELECT doc::text FROM movies WHERE _id = 1),
  '{"_id": 1, "schema_version": 2, "title": "Star Wars", "kind": "film", "minutes": 121, "releases": [{"location": "US", "date": 1977}, {"location": "UK", "date": 1978}], "directors": ["Lucas"], "revision": 2}', 'a migration is a revision');
SELECT is(movies_as_v2(versioning_at('movies', 1, 1)) ->> 'directors.0', 'Lucas', 'history is read in the version asked for'),
       is(versioning_at('movies', 1, 1) ->> 'director', 'Lucas', 'or as it was'), is(movies_as_v1(versioning_at('movies', 2, 2)) ->> 'director', 'Gilroy', 'or as an old application knows it');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');

-- At random
CREATE TABLE model (id int PRIMARY KEY, seen int, tag int, revisions int);
DO $$
DECLARE
  k int;
  op float8;
BEGIN
  PERFORM setseed(0.75);
  FOR i IN 10..29 LOOP
    INSERT INTO movies_v1 (doc) VALUES (bson_build('_id', i, 'title', 't' || i, 'kind', CASE WHEN i % 2 = 0 THEN 'film' ELSE 'series' END, 'minutes', i, 'seasons', i, 'director', 'd'));
    INSERT INTO model VALUES (i, NULL, NULL, 1);
  END LOOP;
  FOR i IN 1..250 LOOP
    k := 10 + floor(random() * 20);
    op := random();
    IF op < 0.4 THEN
      UPDATE movies_v1 SET doc = bson_set(bson_set(doc, 'seen', i), 'release_R' || i % 5, i) WHERE _id = k;
      UPDATE model SET seen = i, revisions = revisions + 1 WHERE id = k;
    ELSIF op < 0.8 THEN
      UPDATE movies_current SET doc = bson_set(bson_update(doc, '{$set: {"directors.1": "second"}}'), 'tag', i) WHERE _id = k;
      UPDATE model SET tag = i, revisions = revisions + 1 WHERE id = k;
    ELSIF op < 0.95 THEN
      PERFORM schema_versioning_read('movies', k);
    ELSE
      CALL schema_versioning_migrate('movies', batch => NULL);
    END IF;
  END LOOP;
END $$;
SELECT is_empty($$SELECT * FROM movies m JOIN model o ON m._id = o.id WHERE (m.doc -> 'seen')::int IS DISTINCT FROM o.seen OR (m.doc -> 'tag')::int IS DISTINCT FROM o.tag$$, 'what old and new applications wrote is there');
SELECT is_empty($$SELECT * FROM movies m JOIN model o ON m._id = o.id WHERE o.tag IS NOT NULL AND m.doc ->> 'directors.1' IS DISTINCT FROM 'second'$$, 'and what the old ones cannot see');
SELECT cmp_ok((SELECT count(*) FROM movies m JOIN model o ON m._id = o.id WHERE coalesce((m.doc -> 'revision')::int, 1) BETWEEN o.revisions AND o.revisions + 1), '=', 20::bigint, 'a revision for each write, and one for the upgrade');
SELECT is_empty($$SELECT m._id FROM movies m WHERE versioning_at('movies', m._id, coalesce((m.doc -> 'revision')::int, 1))::bytea <> m.doc::bytea$$, 'the last revision is the document');
SELECT is_empty($$SELECT m._id, n FROM movies m CROSS JOIN LATERAL generate_series(1, coalesce((m.doc -> 'revision')::int, 1)) n WHERE movies_as_v1(versioning_at('movies', m._id, n)) ->> 'title' IS DISTINCT FROM m.doc ->> 'title'$$, 'and every revision can be read in the old version');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
SELECT lives_ok(format('SELECT pattern_disable(''movies'', %L)', name), 'ended: ' || name) FROM (VALUES ('schema_version'), ('releases')) AS v (name);
DROP TABLE movies CASCADE;
DROP TABLE model;
SELECT * FROM finish();
