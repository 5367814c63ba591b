-- The computed pattern: totals of the rows of another table, kept in documents.
SET client_min_messages = warning;
SET timezone = 'UTC';

SELECT collection_create('movies'), collection_create('screenings');
SELECT computed_enable('movies', source => 'screenings', on_field => 'movie', target_field => 'title',
  fields => '{viewers: {$sum: "$viewers"}, screenings: {$count: {}}, best: {$max: "$revenue"}, average: {$avg: "$viewers"}}');
INSERT INTO movies (doc) VALUES ('{_id: 1, title: "Avatar"}'), ('{_id: 2, title: "Alien"}');
SELECT doc FROM movies ORDER BY _id;

-- Every statement keeps them true.
INSERT INTO screenings (doc) VALUES ('{_id: 1, movie: "Avatar", viewers: 344, revenue: 3440}'), ('{_id: 2, movie: "Avatar", viewers: 1498, revenue: 22440}'),
  ('{_id: 3, movie: "Alien", viewers: 12, revenue: 120.5}'), ('{_id: 4, movie: "Tron", viewers: 7}'), ('{_id: 5}');
SELECT doc ->> 'title' AS title, doc -> 'viewers' AS viewers, doc -> 'screenings' AS screenings, doc -> 'best' AS best, doc -> 'average' AS average FROM movies ORDER BY _id;
UPDATE screenings SET doc = bson_set(doc, 'movie', 'Alien') WHERE _id = 2;
DELETE FROM screenings WHERE _id = 3;
SELECT doc ->> 'title' AS title, doc -> 'viewers' AS viewers, doc -> 'screenings' AS screenings, doc -> 'best' AS best, doc -> 'average' AS average FROM movies ORDER BY _id;
INSERT INTO screenings (doc) VALUES ('{_id: 1, movie: "Avatar", viewers: 1}'), ('{_id: 6, movie: "Alien", viewers: 1}')
  ON CONFLICT (_id) DO UPDATE SET doc = bson_set(screenings.doc, 'viewers', 1000);
SELECT doc ->> 'title' AS title, doc -> 'viewers' AS viewers FROM movies ORDER BY _id;

-- A document that comes later finds what is there already; one that gets another title, too.
INSERT INTO movies (doc) VALUES ('{_id: 3, title: "Tron"}');
UPDATE movies SET doc = bson_set(doc, 'title', 'Nobody saw this') WHERE _id = 2;
SELECT doc ->> 'title' AS title, doc -> 'viewers' AS viewers, doc -> 'average' AS average FROM movies ORDER BY _id;
UPDATE movies SET doc = bson_set(doc, 'title', 'Alien') WHERE _id = 2;

-- A hand-written total is no total, and a change of something else touches no document.
UPDATE movies SET doc = bson_update(doc, '{$inc: {viewers: 10}, $set: {year: 2009}}') WHERE _id = 1;
SELECT doc ->> 'title' AS title, doc -> 'viewers' AS viewers, doc -> 'year' AS year FROM movies WHERE _id = 1;
SELECT ctid AS before FROM movies WHERE _id = 1 \gset
UPDATE screenings SET doc = bson_set(doc, 'theater', 'City') WHERE doc @@ '{movie: "Avatar"}';
SELECT ctid = :'before' AS untouched FROM movies WHERE _id = 1;
SELECT * FROM pattern_check();
TRUNCATE screenings;
SELECT doc ->> 'title' AS title, doc -> 'viewers' AS viewers, doc -> 'best' AS best FROM movies ORDER BY _id;
SELECT pattern_disable('movies');
SELECT doc FROM movies ORDER BY _id;

-- Doubles do not drift, whatever came and went.
SELECT computed_enable('movies', 'screenings', 'movie_id', '{total: {$sum: "$x"}, spread: {$stdDevPop: "$x"}}', name => 'sums');
CALL pattern_build('movies', 'sums', 1);
INSERT INTO screenings (doc) SELECT bson_build('_id', i, 'movie_id', 1, 'x', CASE WHEN i % 2 = 0 THEN 1e300 ELSE 0.1 END::float8) FROM generate_series(1, 1000) i;
DELETE FROM screenings WHERE doc @@ '{x: 1e300}';
DELETE FROM screenings WHERE _id > 3;
SELECT doc -> 'total' AS total, doc -> 'spread' AS spread FROM movies WHERE _id = 1;
SELECT * FROM pattern_check();
SELECT pattern_disable('movies');

-- Documents that do not exist are made; later: what is queued is no violation, and computed_refresh() works it off.
SELECT computed_enable('movies', 'screenings', 'movie_id', '{n: {$count: {}}}', create_missing => true, mode => 'deferred');
INSERT INTO screenings (doc) SELECT bson_build('movie_id', 10 + i % 2) FROM generate_series(1, 5) i;
SELECT declaration, key, entries FROM computed_staleness('movies') ORDER BY key;
SELECT * FROM pattern_check('movies') WHERE key > 9;
SELECT computed_refresh('movies');
SELECT doc FROM movies WHERE _id > 9 ORDER BY _id;
SELECT pattern_repair('movies');
SELECT * FROM pattern_check();
SELECT pattern_alter('movies', 'n', '{mode: "immediate", filter: {big: true}}');
INSERT INTO screenings (doc) VALUES ('{movie_id: 10, big: true}'), ('{movie_id: 12, big: true}'), ('{movie_id: 11}');
SELECT doc FROM movies WHERE _id > 9 ORDER BY _id;
SELECT * FROM pattern_check();
SELECT pattern_disable('movies');

-- On reading: nothing is kept, a view computes.
SELECT computed_enable('movies', 'screenings', 'movie_id', '{n: {$count: {}}, last: {$max: "$_id"}}', mode => 'on_read', name => 'now', filter => '{big: true}');
SELECT doc -> '_id' AS id, doc -> 'n' AS n FROM movies_now_view ORDER BY _id;
SELECT pattern_disable('movies');
DROP TABLE movies, screenings;

-- Source and target may be one table.
SELECT collection_create('staff');
SELECT computed_enable('staff', 'staff', 'boss', '{reports: {$count: {}}}');
INSERT INTO staff (doc) VALUES ('{_id: "jim", boss: "michael"}'), ('{_id: "dwight", boss: "michael"}'), ('{_id: "michael"}'), ('{_id: "temp", boss: "jim"}');
UPDATE staff SET doc = bson_set(doc, 'boss', 'dwight') WHERE _id = 'temp'::text;
SELECT doc FROM staff ORDER BY _id;
SELECT * FROM pattern_check();
DROP TABLE staff;
