-- The approximation pattern: counters that are not written for every event, values that are not rewritten for every small move,
-- and exact counters whose writers do not wait for each other.
SET client_min_messages = warning;
\set SHOW_CONTEXT never

-- Page views: one event in ten is written, and counts ten. The seed makes the draws of this session repeatable.
SELECT collection_create('pages');
SELECT approximation_enable('pages', field => 'views', step => 10);
INSERT INTO pages (doc) VALUES ('{_id: "home", views: 0}'), ('{_id: "about"}');
SET docpatterns.approximation_seed = 42;
SELECT count(*) AS events, count(*) FILTER (WHERE written) BETWEEN 70 AND 130 AS a_tenth_written FROM (SELECT approximation_add('pages', 'home', 1) AS written FROM generate_series(1, 1000)) e;
SELECT (doc -> 'views')::int % 10 AS rest FROM pages WHERE _id = 'home'::text;
SELECT low <= 1000 AND 1000 <= high AS held, low < estimate AND estimate < high AS bounds FROM approximation_read('pages', 'home');
-- Any amount keeps the average right; what is a multiple of the step is written for sure.
SELECT approximation_add('pages', 'about', 30), approximation_add('pages', 'about', -10);
SELECT doc FROM pages WHERE _id = 'about'::text;

-- Or the step grows with the value, so that the error stays below a tenth of it. Small values are exact.
SELECT pattern_alter('pages', 'views', '{error: 0.1}');
UPDATE pages SET doc = '{_id: "about", views: 0}' WHERE _id = 'about'::text;
DO $$ BEGIN FOR i IN 1..40 LOOP PERFORM approximation_add('pages', 'about', 1); END LOOP; END $$;
SELECT doc FROM pages WHERE _id = 'about'::text;
SELECT * FROM approximation_read('pages', 'about');
SELECT name, options FROM pattern_list('pages');

-- A city's population: moves by less than a hundred are put back, other fields are written.
SELECT collection_create('cities');
SET client_min_messages = notice;
SELECT approximation_enable('cities', field => 'population', threshold => '100');
SET client_min_messages = warning;
INSERT INTO cities (doc) VALUES ('{_id: 1, name: "Cork", population: 39000}');
UPDATE cities SET doc = bson_set(doc, 'population', 39099) RETURNING doc;
UPDATE cities SET doc = bson_set(bson_set(doc, 'population', 39099), 'mayor', 'Ada') RETURNING doc;
UPDATE cities SET doc = bson_set(doc, 'population', 39100) RETURNING doc;
SELECT * FROM approximation_read('cities', 1);
SELECT pattern_alter('cities', 'population', '{threshold: "1%"}');
UPDATE cities SET doc = bson_set(doc, 'population', 39490) RETURNING doc;
UPDATE cities SET doc = bson_set(doc, 'population', 39491) RETURNING doc;
UPDATE cities SET doc = bson_set(doc, 'population', 'many') RETURNING doc;

-- Votes are exact, on rows aside that writers do not queue for.
SELECT collection_create('votes');
SELECT approximation_enable('votes', field => 'likes', slots => 16);
INSERT INTO votes (doc) VALUES ('{_id: 1, likes: 5}'), ('{_id: 2}');
SELECT approximation_add('votes', 1, 1), approximation_add('votes', 1, 10), approximation_add('votes', 2, 0.25::numeric);
SELECT doc FROM votes ORDER BY _id;
SELECT doc FROM votes_whole ORDER BY _id;
SELECT key, amount FROM votes_likes_shards ORDER BY key;
UPDATE votes_whole SET doc = bson_set(doc, 'likes', 100) WHERE _id = 1;
SELECT approximation_add('votes', 1, 1);
SELECT doc FROM votes_whole WHERE _id = 1;
SELECT * FROM approximation_read('votes', 1);
-- The shards cannot be written to directly; folding adds them to the documents.
DELETE FROM votes_likes_shards;
SELECT approximation_sync('votes');
SELECT doc FROM votes ORDER BY _id;
SELECT count(*) AS shards FROM votes_likes_shards;

-- All is true, and everything can be undone.
SELECT * FROM pattern_check();
SELECT approximation_add('votes', 2, 1);
SELECT pattern_disable('votes'), pattern_disable('pages'), pattern_disable('cities');
SELECT doc FROM votes ORDER BY _id;
DROP TABLE votes, pages, cities;
