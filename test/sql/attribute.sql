-- The attribute pattern: many fields of one kind become one array of names and values, with one index for all of them.
SET client_min_messages = warning;
SET timezone = 'UTC';

-- A film has a release date in each of many countries, and an index for each country would be hopeless. Declared once,
-- the fields release_... of every document that is written become members of an array.
SELECT collection_create('movies');
SELECT attribute_enable('movies', into_field => 'releases', pattern => 'release_{location}', value_field => 'date', rename => '{"US": "USA"}');
INSERT INTO movies (doc) VALUES
  ('{_id: 1, title: "Star Wars", release_US: ISODate("1977-05-20"), release_Korea: ISODate("1977-10-19"), release_Italy: ISODate("1977-10-20")}'),
  ('{_id: 2, title: "Alien", release_US: ISODate("1979-05-25"), release_Italy: ISODate("1979-10-25")}');
SELECT bson_pretty(doc) FROM movies WHERE _id = 1;

-- The index finds a country and a date of the same release in one search.
SELECT c.lookup, c.looked_up FROM bson_index_conditions('movies_releases_idx', '{releases: {$elemMatch: {location: "Italy", date: {$lt: ISODate("1978-01-01")}}}}') c;
SELECT _id, doc ->> 'title' AS title FROM movies
WHERE doc @@ '{releases: {$elemMatch: {location: "Italy", date: {$lt: ISODate("1978-01-01")}}}}';

-- What applications write later is packed too: a field whose name is there already replaces that release.
UPDATE movies SET doc = bson_set(doc, 'release_Italy', timestamptz '1977-10-21') WHERE _id = 1;
SELECT doc -> 'releases' FROM movies WHERE _id = 1;

-- Programs that know the wide shape read and write it in a view.
SELECT doc FROM movies_wide WHERE _id = 2;
UPDATE movies_wide SET doc = bson_set(bson_unset(doc, 'release_US'), 'release_Spain', timestamptz '1979-09-06') WHERE _id = 2;
SELECT doc FROM movies WHERE _id = 2;

-- Which countries are there?
SELECT key, documents, frequency, types, distinct_values FROM attribute_keys('movies');

-- Fields can be listed, values have any type, and a qualifier says what numbers mean. No document has a key twice.
SELECT collection_create('things');
SELECT attribute_enable('things', into_field => 'attributes', paths => '{color,size,dimensions.height}', name_field => 'k', value_field => 'v',
                        qualifiers => '{"dimensions.height": "cm"}', is_unique => true);
INSERT INTO things (doc) VALUES ('{_id: 1, color: "blue", size: "large", dimensions: {height: 16, depth: 4}}');
SELECT doc FROM things;
\set VERBOSITY terse
INSERT INTO things (doc) VALUES ('{_id: 2, attributes: [{k: "color", v: "red"}, {k: "color", v: "blue"}]}');
\set VERBOSITY default

-- A price in euros and one in won: two placeholders.
SELECT collection_create('products');
SELECT attribute_enable('products', into_field => 'specs', pattern => '{descriptor}_{qualifier}');
INSERT INTO products (doc) VALUES ('{_id: 1, title: "T", price_euros: Decimal(100.00), price_won: Decimal(80000.00)}');
SELECT doc FROM products;

-- Single documents, without a declaration
SELECT attribute_pack('{title: "Alien", release_US: 1979, release_Italy: 1979}', 'releases', 'release_{location}', 'year');
SELECT attribute_unpack('{title: "Alien", releases: [{location: "US", year: 1979}]}', 'releases', 'release_{location}', 'year');

-- All of that is checked, and the choice can be taken back. A member that no field could stand for is in the way.
SELECT * FROM pattern_check();
UPDATE movies SET doc = bson_array_append(doc, 'releases', bson '{location: "Chile", date: ISODate("1979-12-24"), cinema: "Rex"}') WHERE _id = 2;
\set VERBOSITY terse
SELECT pattern_disable('movies', 'releases');
\set VERBOSITY default
UPDATE movies SET doc = bson_set(doc, 'releases', '[]'::bson_value) WHERE _id = 2;
SELECT pattern_disable('movies', 'releases');
SELECT doc FROM movies ORDER BY _id;
DROP TABLE movies, things, products CASCADE;
