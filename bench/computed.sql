-- What computed fields cost: loading beside the same table without them, and reading a total beside adding it up.
\echo
\echo 'computed pattern                         base ms    ours ms   ratio    bar'

CREATE TABLE screenings_source AS
  SELECT bson_build('theater', 'Cinema ' || i % 50, 'location', 'Lakeview, OR', 'movie', i * 7919 % 1000 + 1, 'viewers', i % 500, 'revenue', i % 500 * 10) AS doc
  FROM generate_series(1, 1000 * :scale) i;
SELECT collection_create('screenings_plain'), collection_create('screenings'), collection_create('movies') \g /dev/null
CREATE INDEX ON screenings_plain ((doc -> 'movie'));
SELECT computed_enable('movies', source => 'screenings', on_field => 'movie',
  fields => '{viewers: {$sum: "$viewers"}, revenue: {$sum: "$revenue"}, screenings: {$count: {}}, average: {$avg: "$viewers"}}') \g /dev/null
INSERT INTO movies (doc) SELECT bson_build('_id', i, 'title', 'Movie ' || i) FROM generate_series(1, 1000) i;
SELECT compare('insert of many rows, 1,000 groups', 1.10, 'INSERT INTO screenings_plain (doc) SELECT doc FROM screenings_source',
               'INSERT INTO screenings (doc) SELECT doc FROM screenings_source', 'TRUNCATE screenings_plain, screenings');
INSERT INTO screenings_plain (doc) SELECT doc FROM screenings_source, generate_series(1, 10);
VACUUM ANALYZE screenings_plain, movies;
SELECT compare('read a total, table of ten times as many', 0.006, $$SELECT sum((doc -> 'viewers')::int), sum((doc -> 'revenue')::int), count(*), avg((doc -> 'viewers')::int) FROM screenings_plain GROUP BY doc -> 'movie'$$,
               $$SELECT doc -> 'viewers', doc -> 'revenue', doc -> 'screenings', doc -> 'average' FROM movies$$);
DROP TABLE screenings, screenings_plain, movies, screenings_source CASCADE;
