-- GIN indexes on documents: what they store, and which conditions they serve
SET timezone = 'UTC';
CREATE TABLE films (doc bson);
INSERT INTO films VALUES
  ('{_id: 1, title: "Dune", year: 2021, genres: ["drama", "adventure"], rating: {imdb: 8.0, votes: 900}, releases: [{location: "USA", date: ISODate("2021-10-22")}, {location: "France", date: ISODate("2021-09-15")}]}'),
  ('{_id: 2, title: "Stalker", year: 1979, genres: ["drama"], rating: {imdb: 8.1}, releases: [{location: "USSR", date: ISODate("1979-05-25")}, {location: "USA", date: ISODate("1982-10-20")}]}'),
  ('{_id: 3, title: "Solaris", year: 1972, genres: [], rating: null}'),
  ('{_id: 4, title: "Dark Star", year: NumberLong("1974"), genres: "comedy", releases: [{location: "USA"}, {date: ISODate("1974-03-30")}]}');

-- Without options all fields are indexed, however deep they are. bson_index_keys shows what is stored for a document: each
-- value under its path, arrays with what is in them. Positions are left out; numbers of all types are alike.
SELECT path, class, value FROM films, bson_index_keys(doc) WHERE doc @@ '{_id: 2}' ORDER BY path COLLATE "C", class COLLATE "C", value;
CREATE INDEX films_doc ON films USING gin (doc);

-- The plan says what the index serves of a filter (Index Cond); the rest is looked at in the documents (Filter).
SET enable_seqscan = off;
CREATE FUNCTION find(filter bson) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  line text;
BEGIN
  FOR line IN EXECUTE format('EXPLAIN (COSTS OFF) SELECT * FROM films WHERE doc @@ %L', filter) LOOP
    IF line !~ 'Disabled' THEN RETURN NEXT line; END IF;  -- which not all servers say
  END LOOP;
  RETURN QUERY EXECUTE format('SELECT string_agg(doc ->> ''title'', '', '' ORDER BY doc ->> ''title'') FROM films WHERE doc @@ %L', filter);
END $$;
SELECT find('{title: "Dune"}');
SELECT find('{genres: "drama", year: {$lt: 2000}}');
SELECT find('{"rating.imdb": {$gte: 8.05}}');
SELECT find('{title: /^D/}');
SELECT find('{title: {$in: ["Stalker", /^So/]}, year: {$ne: 1979}}');
SELECT find('{$or: [{year: 1974}, {"rating.votes": {$exists: true}}]}');
SELECT find('{releases: {$elemMatch: {location: "USA", date: {$gt: ISODate("2000-01-01")}}}}');
SELECT find('{genres: []}');

-- @> and the operators for existence use it, too.
EXPLAIN (COSTS OFF) SELECT doc -> '_id' FROM films WHERE doc @> '{genres: ["drama"], rating: {imdb: 8}}';
SELECT doc -> '_id' FROM films WHERE doc @> '{genres: ["drama"], rating: {imdb: 8}}';
EXPLAIN (COSTS OFF) SELECT doc -> '_id' FROM films WHERE doc ? 'rating.votes';
SELECT doc -> '_id' FROM films WHERE doc ? 'rating.votes';
SELECT doc -> '_id' FROM films WHERE doc ?& ARRAY['rating', 'releases'] ORDER BY 1;

-- An index does not know what is not there: null also finds documents without the field, so this looks at all of them.
SELECT find('{rating: null}');

-- With named paths an index has only these, and it knows which documents lack one.
DROP INDEX films_doc;
CREATE INDEX films_some ON films USING gin (doc bson_ops (paths = 'rating, releases.date'));
SELECT path, class, value FROM films, bson_index_keys(doc, 'rating, releases.date') WHERE doc @@ '{_id: 4}' ORDER BY path COLLATE "C", class COLLATE "C", value;
SELECT find('{rating: null}');
SELECT find('{"rating.votes": 900}');
SELECT find('{title: "Dune"}');

-- A pair indexes two fields of sub-documents together: equality on the first and a range of the second are one search.
DROP INDEX films_some;
CREATE INDEX films_releases ON films USING gin (doc bson_ops (pairs = 'releases(location,date)'));
SELECT path, class, value FROM films, bson_index_keys(doc, pairs => 'releases(location,date)') WHERE doc @@ '{_id: {$in: [1, 4]}}' ORDER BY path COLLATE "C";
SELECT find('{releases: {$elemMatch: {location: "USA", date: {$gt: ISODate("2000-01-01")}}}}');
SELECT find('{"releases.location": "USSR"}');

-- Paths in options are written as everywhere else; positions have no place in them.
CREATE INDEX ON films USING gin (doc bson_ops (paths = 'releases.0.date'));
CREATE INDEX ON films USING gin (doc bson_ops (pairs = 'releases(location)'));
CREATE INDEX films_odd ON films USING gin (doc bson_ops (paths = '"a.b", "c,d".e', pairs = '"x(y"(k,"v w")'));
SELECT pg_get_indexdef('films_odd'::regclass);

DROP TABLE films;
DROP FUNCTION find;
