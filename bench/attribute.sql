-- What the attribute pattern costs and saves: loading beside the same table without it, and asking for one attribute among
-- twenty with its one index beside twenty expression indexes on fields.
\echo
\echo 'attribute pattern                        base ms    ours ms   ratio    bar'

-- Films with a release date in each of twenty countries: days of ten years.
CREATE TABLE films_source AS
  SELECT bson_build('_id', i, 'title', 'Film number ' || i, 'director', 'Director ' || i % 5000, 'year', 1950 + i % 75)
         || (SELECT bson_object_agg('release_C' || c, timestamptz '2010-01-01T00:00:00Z' + ((i::bigint * 7919 + c * 104729) % 3652) * interval '1 day' ORDER BY c) FROM generate_series(1, 20) c) AS doc
  FROM generate_series(1, 1000 * :scale) i;
SELECT collection_create('films_plain'), collection_create('films') \g /dev/null
SELECT attribute_enable('films', into_field => 'releases', pattern => 'release_{location}', value_field => 'date') \g /dev/null
DROP INDEX films_releases_idx;
-- as applications do it, a statement for each document
CREATE FUNCTION one_by_one(target regclass) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  d public.bson;
  command text := format('INSERT INTO %s (doc) VALUES ($1)', target);
BEGIN
  FOR d IN SELECT doc FROM bench.films_source LIMIT 5000 LOOP
    EXECUTE command USING d;
  END LOOP;
END $$;
SELECT compare('insert one by one, 20 fields packed', 1.3, $$SELECT one_by_one('films_plain')$$, $$SELECT one_by_one('films')$$, 'TRUNCATE films_plain, films');
-- many at a time: most of the difference is that packed documents are nearly twice as large
CREATE TABLE films_packed AS SELECT attribute_pack(doc, 'releases', 'release_{location}', 'date') AS doc FROM films_source;
SELECT compare('the same, many at a time', 'infinity', 'INSERT INTO films_plain (doc) SELECT doc FROM films_source LIMIT 20000',
               'INSERT INTO films (doc) SELECT doc FROM films_source LIMIT 20000', 'TRUNCATE films_plain, films');
SELECT compare('without the pattern: packed / wide', 'infinity', 'INSERT INTO films_plain (doc) SELECT doc FROM films_source LIMIT 20000',
               'INSERT INTO films_plain (doc) SELECT doc FROM films_packed LIMIT 20000', 'TRUNCATE films_plain');
SELECT compare('insert of what is packed already', 1.1, 'INSERT INTO films_plain (doc) SELECT doc FROM films_packed LIMIT 20000',
               'INSERT INTO films (doc) SELECT doc FROM films_packed LIMIT 20000', 'TRUNCATE films_plain, films');
CREATE INDEX films_releases_idx ON films USING gin (doc bson_ops (pairs = 'releases(location,date)'));
DO $$ BEGIN FOR c IN 1 .. 20 LOOP EXECUTE format('CREATE INDEX films_plain_%s ON films_plain ((doc -> %L))', c, 'release_C' || c); END LOOP; END $$;
SELECT compare('insert with its index / 20 indexes', 'infinity', 'INSERT INTO films_plain (doc) SELECT doc FROM films_source LIMIT 20000',
               'INSERT INTO films (doc) SELECT doc FROM films_source LIMIT 20000', 'TRUNCATE films_plain, films');

-- loaded first and indexed then, on both sides
DROP TABLE films_plain;
SELECT collection_create('films_plain') \g /dev/null
DROP INDEX films_releases_idx;
INSERT INTO films_plain (doc) SELECT doc FROM films_source;
INSERT INTO films (doc) SELECT doc FROM films_source;
DO $$ BEGIN FOR c IN 1 .. 20 LOOP EXECUTE format('CREATE INDEX films_plain_%s ON films_plain ((doc -> %L))', c, 'release_C' || c); END LOOP; END $$;
CREATE INDEX films_releases_idx ON films USING gin (doc bson_ops (pairs = 'releases(location,date)'));
VACUUM ANALYZE films_plain, films;
SELECT line('size of the index, MB', base, ours, 0.3)
  FROM (SELECT sum(pg_relation_size(i.indexrelid)) / 1e6 AS base, pg_relation_size('films_releases_idx') / 1e6 AS ours FROM pg_index i WHERE i.indrelid = 'films_plain'::regclass AND NOT i.indisprimary) s
  WHERE 'size of the index' LIKE replace(:'only', '*', '%');

-- A hundred questions, each about one of the countries.
CREATE FUNCTION ask(question text, days int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  n bigint := 0;
  found bigint;
BEGIN
  FOR i IN 1 .. 100 LOOP
    EXECUTE format(question, 1 + i % 20, to_char(timestamptz '2010-01-01T00:00:00Z' + i * interval '30 days', 'YYYY-MM-DD"T00:00:00Z"'),
                   to_char(timestamptz '2010-01-01T00:00:00Z' + i * interval '30 days' + days * interval '1 day', 'YYYY-MM-DD"T00:00:00Z"')) INTO found;
    n := n + found;
  END LOOP;
  RETURN n;
END $$;
SET timezone = 'UTC';
CREATE FUNCTION compare_ranges(name text, bar float8, days int) RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE
  base text := format($$SELECT ask('SELECT count(doc -> ''title'') FROM films_plain WHERE doc -> ''release_C%%1$s'' >= %%2$L::timestamptz AND doc -> ''release_C%%1$s'' < %%3$L::timestamptz', %s)$$, days);
  ours text := format($$SELECT ask('SELECT count(doc -> ''title'') FROM films WHERE doc @@ ''{"releases": {"$elemMatch": {"location": "C%%1$s", "date": {"$gte": {"$date": "%%2$s"}, "$lt": {"$date": "%%3$s"}}}}}''', %s)$$, days);
  b bigint;
  o bigint;
BEGIN
  EXECUTE base INTO b;
  EXECUTE ours INTO o;
  IF b IS DISTINCT FROM o THEN RAISE EXCEPTION 'plain films answer %, films %', b, o; END IF;
  RETURN QUERY SELECT compare(name, bar, base, ours);
END $f$;
-- 27 and 110 films found by each of a hundred questions
SELECT compare_ranges('location = x, date in a range of a day', 1.2, 1);
SELECT compare_ranges('the same, a range of four days', 'infinity', 4);
DROP FUNCTION compare_ranges(text, float8, int), ask(text, int), one_by_one(regclass);
DROP TABLE films, films_plain, films_packed, films_source CASCADE;
