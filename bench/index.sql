-- Indexes: what they cost and what they answer, beside what PostgreSQL has for jsonb, columns and side tables.
--   s, m         the shapes of shapes.sql
--   packages     the package catalogue of this machine
--   million      1,000,000 small documents                 for ranges and order
--   pairs        100,000 documents of 20 (location, date)  for pairs
-- The first two and the packages are there already (run.sh). psql variable scale: a percentage of these numbers.
DROP INDEX IF EXISTS jsonb_s_all, bson_s_all, jsonb_packages_all, bson_packages_all;
DROP TABLE IF EXISTS jsonb_million, bson_million, plain_million, jsonb_pairs, bson_pairs, side_pairs, jsonb_into, bson_into;
CREATE TABLE bson_million AS SELECT i AS id, bson_build('_id', i, 'x', number(i, 10000000) / 10.0::float8, 'n', number(i, 1000000000), 'kind', words(i, 1)) AS doc FROM generate_series(1, 1000000 * :scale / 100) i;
CREATE TABLE jsonb_million AS SELECT id, doc::jsonb AS doc FROM bson_million;
CREATE TABLE plain_million AS SELECT id, (doc -> 'n')::int AS n, doc::jsonb AS doc FROM bson_million;
CREATE TABLE bson_pairs AS SELECT i AS id, bson_build('_id', i, 'title', words(i, 3), 'releases',
    (SELECT bson_agg(bson_build('location', 'L' || number(i * 20 + r, 200), 'date', timestamptz '2000-01-01' + number(i * 20 + r + 7, 8000) * interval '1 day')) FROM generate_series(1, 20) r)) AS doc
  FROM generate_series(1, 100000 * :scale / 100) i;
CREATE TABLE jsonb_pairs AS SELECT id, doc::jsonb AS doc FROM bson_pairs;
CREATE TABLE side_pairs AS SELECT id, v ->> 'location' AS location, (v -> 'date')::timestamptz AS date FROM bson_pairs, bson_elements(doc -> 'releases') v;
CREATE TABLE jsonb_into (doc jsonb);
CREATE TABLE bson_into (doc bson);
VACUUM ANALYZE jsonb_million, bson_million, plain_million, jsonb_pairs, bson_pairs, side_pairs;
SET timezone = 'UTC';
SET maintenance_work_mem = '512MB';
SET max_parallel_maintenance_workers = 0;

-- Runs a query often, with another constant each time: %1$s is a number below a bound, %2$s is 100 more and %3$s 1,000.
CREATE OR REPLACE FUNCTION often(query text, times int, below int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE found bigint := 0; n bigint;
BEGIN
  FOR i IN 1 .. times LOOP
    EXECUTE format(query, number(i, below), number(i, below) + 100, number(i, below) + 1000) INTO n;
    found := found + n;
  END LOOP;
  RETURN found;
END $$;
-- The same commands on both sides find the same.
CREATE OR REPLACE FUNCTION agree(base text, ours text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE b text; o text;
BEGIN
  EXECUTE base INTO b;
  EXECUTE ours INTO o;
  IF b IS DISTINCT FROM o THEN RAISE EXCEPTION 'jsonb finds %, bson %, by %', b, o, ours; END IF;
END $$;
-- A pair of indexes: the time it takes to build them, and their sizes.
CREATE OR REPLACE FUNCTION indexes(name text, build_bar float8, size_bar float8, base text, ours text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE base_size bigint;
BEGIN
  IF name NOT LIKE replace(current_setting('bench.only'), '*', '%') THEN RETURN; END IF;
  RETURN QUERY SELECT compare(name || ': build', build_bar, 'CREATE INDEX bench_index ON ' || base, 'CREATE INDEX bench_index ON ' || ours, 'DROP INDEX bench_index');
  EXECUTE 'CREATE INDEX bench_index ON ' || base;
  base_size := pg_relation_size('bench_index');
  DROP INDEX bench_index;
  EXECUTE 'CREATE INDEX bench_index ON ' || ours;
  RETURN NEXT line(name || ': kB', base_size / 1024.0, pg_relation_size('bench_index') / 1024.0, size_bar);
  DROP INDEX bench_index;
END $$;

\echo
\echo 'operation                                  base ms   bson ms   ratio    bar         spread of the ratio'
SELECT indexes('all paths S', 2.0, 1.5, 'jsonb_s USING gin (doc jsonb_path_ops)', 'bson_s USING gin (doc bson_ops)');
SELECT indexes('all paths M', 1.0, 1.0, 'jsonb_m USING gin (doc)', 'bson_m USING gin (doc bson_ops)');
SELECT indexes('one path S', 1.0, 1.0, $$jsonb_s USING gin ((doc -> 'customer' -> 'address' -> 'city'))$$, $$bson_s USING gin (doc bson_ops (paths = 'customer.address.city'))$$);
SELECT indexes('all paths, packages', NULL, NULL, 'jsonb_packages USING gin (doc jsonb_path_ops)', 'bson_packages USING gin (doc bson_ops)');
SELECT indexes('all paths, packages, jsonb_ops', NULL, NULL, 'jsonb_packages USING gin (doc)', 'bson_packages USING gin (doc bson_ops)');
SELECT indexes('pairs', NULL, NULL, 'side_pairs (location, date, id)', $$bson_pairs USING gin (doc bson_ops (pairs = 'releases(location,date)'))$$);
SELECT indexes('btree on a number', NULL, NULL, $$jsonb_million (((doc ->> 'x')::float8))$$, $$bson_million ((doc -> 'x'))$$);

CREATE INDEX jsonb_s_all ON jsonb_s USING gin (doc jsonb_path_ops);
CREATE INDEX bson_s_all ON bson_s USING gin (doc bson_ops);
CREATE INDEX jsonb_packages_all ON jsonb_packages USING gin (doc jsonb_path_ops);
CREATE INDEX bson_packages_all ON bson_packages USING gin (doc bson_ops);
CREATE INDEX jsonb_million_x ON jsonb_million (((doc ->> 'x')::float8));
CREATE INDEX bson_million_all ON bson_million USING gin (doc bson_ops);
CREATE INDEX plain_million_n ON plain_million (n);
CREATE INDEX bson_million_n ON bson_million ((doc -> 'n'));
CREATE INDEX side_pairs_all ON side_pairs (location, date);
CREATE UNIQUE INDEX jsonb_pairs_id ON jsonb_pairs (id);
CREATE INDEX bson_pairs_releases ON bson_pairs USING gin (doc bson_ops (pairs = 'releases(location,date)'));
VACUUM ANALYZE jsonb_s, bson_s, jsonb_packages, bson_packages, jsonb_million, bson_million, plain_million, bson_pairs, jsonb_pairs, side_pairs;

\echo
\echo 'operation                                  base ms   bson ms   ratio    bar         spread of the ratio'
-- Plan and execution, with different constants; the documents are fetched.
CREATE OR REPLACE FUNCTION lookups(name text, bar float8, times int, below int, base text, ours text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  IF name NOT LIKE replace(current_setting('bench.only'), '*', '%') THEN RETURN; END IF;
  base := format('SELECT often(%L, %s, %s)', base, times, below);
  ours := format('SELECT often(%L, %s, %s)', ours, times, below);
  PERFORM agree(base, ours);
  RETURN QUERY SELECT compare(name, bar, base, ours);
END $$;
SELECT lookups('equality: one document, S', 1.0, 100, 10000, $$SELECT count(*) FROM jsonb_s WHERE doc @> '{"_id": %1$s}'$$, $$SELECT count(*) FROM bson_s WHERE doc @@ '{"_id": %1$s}'$$);
SELECT lookups('equality: 20 documents, S', 1.0, 100, 5000, $$SELECT count(*) FROM jsonb_s WHERE doc @> '{"items": [{"sku": "A-%1$s"}]}'$$, $$SELECT count(*) FROM bson_s WHERE doc @@ '{"items.sku": "A-%1$s"}'$$);
SELECT lookups('equality: two conditions, S', 1.0, 100, 5000, $$SELECT count(*) FROM jsonb_s WHERE doc @> '{"paid": true, "items": [{"sku": "A-%1$s"}]}'$$, $$SELECT count(*) FROM bson_s WHERE doc @@ '{"paid": true, "items.sku": "A-%1$s"}'$$);
SELECT lookups('equality: 3 in 100 documents, S', 1.0, 10, 2, $$SELECT count(*) FROM jsonb_s WHERE doc @> '{"status": "amber"}' AND 1 + %1$s > 0$$, $$SELECT count(*) FROM bson_s WHERE doc @@ '{"status": "amber"}' AND 1 + %1$s > 0$$);
SELECT lookups('containment, S', 1.0, 100, 5000, $$SELECT count(*) FROM jsonb_s WHERE doc @> '{"items": [{"sku": "A-%1$s"}]}'$$, $$SELECT count(*) FROM bson_s WHERE doc @> '{"items": [{"sku": "A-%1$s"}]}'$$);
SELECT lookups('range: 0.1 % of a million', 1.5, 10, 900000, $$SELECT count(*) FROM jsonb_million WHERE (doc ->> 'x')::float8 >= %1$s AND (doc ->> 'x')::float8 < %3$s$$,
  $$SELECT count(*) FROM bson_million WHERE doc @@ '{"x": {"$gte": %1$s, "$lt": %3$s}}'$$);
SELECT lookups('range: 100 of a million', NULL, 50, 900000, $$SELECT count(*) FROM jsonb_million WHERE (doc ->> 'x')::float8 >= %1$s AND (doc ->> 'x')::float8 < %2$s$$,
                                                         $$SELECT count(*) FROM bson_million WHERE doc @@ '{"x": {"$gte": %1$s, "$lt": %2$s}}'$$);
SELECT lookups('pair: location and a range of dates', 1.5, 20, 200,
  $$SELECT count(doc) FROM (SELECT doc FROM jsonb_pairs WHERE id IN (SELECT id FROM side_pairs WHERE location = 'L%1$s' AND date >= '2010-01-01' AND date < '2010-03-01') OFFSET 0) x$$,
  $$SELECT count(doc) FROM (SELECT doc FROM bson_pairs WHERE doc @@ '{"releases": {"$elemMatch": {"location": "L%1$s", "date": {"$gte": {"$date": "2010-01-01T00:00:00Z"}, "$lt": {"$date": "2010-03-01T00:00:00Z"}}}}}' OFFSET 0) x$$);
SELECT lookups('ORDER BY LIMIT 10', 1.3, 100, 1000000000, $$SELECT sum(n) + count(doc) FROM (SELECT n, doc FROM plain_million ORDER BY n LIMIT 10) x WHERE %1$s >= 0$$,
                                                       $$SELECT sum(n::int) + count(doc) FROM (SELECT doc -> 'n' AS n, doc FROM bson_million ORDER BY doc -> 'n' LIMIT 10) x WHERE %1$s >= 0$$);
SELECT lookups('ORDER BY LIMIT 10, from somewhere on', 1.3, 100, 1000000000, $$SELECT sum(n) + count(doc) FROM (SELECT n, doc FROM plain_million WHERE n >= %1$s ORDER BY n LIMIT 10) x$$,
                                                                          $$SELECT sum(n::int) + count(doc) FROM (SELECT doc -> 'n' AS n, doc FROM bson_million WHERE doc -> 'n' >= %1$s ORDER BY doc -> 'n' LIMIT 10) x$$);
SELECT lookups('packages: by the name of a dependency', NULL, 20, 8, $$SELECT count(*) FROM jsonb_packages WHERE doc @> '{"depends": [{"name": "libc%1$s"}]}'$$, $$SELECT count(*) FROM bson_packages WHERE doc @@ '{"depends.name": "libc%1$s"}'$$);

\echo
\echo 'operation                                  base ms   bson ms   ratio    bar         spread of the ratio'
CREATE INDEX jsonb_into_all ON jsonb_into USING gin (doc jsonb_path_ops);
CREATE INDEX bson_into_all ON bson_into USING gin (doc bson_ops);
-- What an insert leaves in the list of pending entries is moved into the index as well: the list has room for other numbers of documents on both sides.
SELECT compare('insert, S, all paths', 1.3, 'INSERT INTO jsonb_into SELECT doc FROM jsonb_s LIMIT 20000; SELECT gin_clean_pending_list(''jsonb_into_all'')',
               'INSERT INTO bson_into SELECT doc FROM bson_s LIMIT 20000; SELECT gin_clean_pending_list(''bson_into_all'')', 'TRUNCATE jsonb_into, bson_into');
ALTER INDEX jsonb_into_all SET (fastupdate = off);
ALTER INDEX bson_into_all SET (fastupdate = off);
SELECT compare('insert, S, all paths, nothing pending', NULL, 'INSERT INTO jsonb_into SELECT doc FROM jsonb_s LIMIT 5000', 'INSERT INTO bson_into SELECT doc FROM bson_s LIMIT 5000', 'TRUNCATE jsonb_into, bson_into');
DROP INDEX jsonb_s_all, bson_s_all, jsonb_packages_all, bson_packages_all;
DROP TABLE jsonb_million, bson_million, plain_million, jsonb_pairs, bson_pairs, side_pairs, jsonb_into, bson_into;
