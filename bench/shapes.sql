-- The documents of the benchmark, made once as text and stored as jsonb and as bson. The same numbers give the same documents.
--   s   an order of 300 bytes                          x 100,000
--   m   a product of 4 KB with an array of reviews     x  10,000
--   w   1,000 fields, 20 KB                            x   2,000   STORAGE EXTERNAL
--   l   1 MB, small fields first, 10,000 sub-documents x     200   pglz, lz4 and EXTERNAL
-- psql variable scale: a percentage of these numbers.
\set ON_ERROR_STOP 1
SET client_min_messages = warning;
SET synchronous_commit = off;
SET max_parallel_workers_per_gather = 0;
DROP EXTENSION IF EXISTS docpatterns CASCADE;
CREATE EXTENSION docpatterns;
DROP SCHEMA IF EXISTS bench CASCADE;
CREATE SCHEMA bench;
SET search_path = bench, public;

-- n words, always the same for the same seed.
CREATE FUNCTION words(seed int, n int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT string_agg((ARRAY['amber','basket','candle','dinner','engine','forest','garden','harbour','island','jacket','kettle',
                           'ladder','marble','needle','orange','pencil','quartz','ribbon','saddle','tunnel','umbrella','violet',
                           'window','yellow','zipper','anchor','bridge','copper','desert','ember','feather','glacier'])
                    [1 + (hashint8extended(seed::int8 * 1000 + i, 7) & 31)], ' ')
  FROM generate_series(1, n) i $$;
CREATE FUNCTION number(seed int, below int) RETURNS int LANGUAGE sql IMMUTABLE AS $$
  SELECT (abs(hashint8extended(seed, 11) % below))::int $$;

CREATE TABLE text_s AS SELECT format(
  '{"_id": %s, "status": "%s", "customer": {"name": "%s", "address": {"city": "%s", "zip": "%s"}}, '
  '"items": [{"sku": "A-%s", "quantity": %s, "price": %s}, {"sku": "B-%s", "quantity": 1, "price": 19.5}], '
  '"number": %s, "paid": %s, "total": %s.25, "last": "%s"}',
  i, words(i, 1), words(i + 1, 2), words(i + 2, 1), 10000 + number(i, 89999), number(i + 3, 9999), 1 + number(i, 9),
  number(i, 900) + 0.75, number(i + 5, 9999), number(i + 4, 1000000), CASE WHEN i % 3 = 0 THEN 'true' ELSE 'false' END, number(i + 6, 5000), words(i, 2)) AS t
FROM generate_series(1, 100000 * :scale / 100) i;

CREATE TABLE text_m AS SELECT format(
  '{"_id": %s, "name": "%s", "price": %s.5, "reviews": [%s]}', i, words(i, 3), number(i, 1000),
  (SELECT string_agg(format('{"review_id": %s, "author": "%s", "stars": %s, "text": "%s"}', i * 100 + r, words(i + r, 2),
          1 + number(i + r, 5), words(i * 31 + r, 12)), ', ') FROM generate_series(1, 26) r)) AS t
FROM generate_series(1, 10000 * :scale / 100) i;

CREATE TABLE text_w AS SELECT '{' || (SELECT string_agg(format('"field%s": %s', f,
    CASE f % 3 WHEN 0 THEN number(i + f, 1000000)::text WHEN 1 THEN '"' || words(i + f, 1) || '"' ELSE 'true' END), ', ')
    FROM generate_series(0, 999) f) || '}' AS t
FROM generate_series(1, 2000 * :scale / 100) i;

CREATE TABLE text_l (t text);
ALTER TABLE text_l ALTER t SET STORAGE EXTERNAL;
INSERT INTO text_l SELECT format('{"_id": %s, "name": "%s", "number": %s, "parts": [%s]}', i, words(i, 2), number(i, 1000),
  (SELECT string_agg(format('{"id": %s, "name": "%s", "weight": %s.5, "tags": ["%s", "%s"]}', p, words(i + p, 4), number(p, 1000),
          words(p, 1), words(p + 1, 1)), ', ') FROM generate_series(1, 10000) p))
FROM generate_series(1, 200 * :scale / 100) i;

CREATE TABLE jsonb_s AS SELECT t::jsonb AS doc FROM text_s;
CREATE TABLE bson_s AS SELECT t::bson AS doc FROM text_s;
CREATE TABLE jsonb_m (doc jsonb COMPRESSION pglz);
CREATE TABLE bson_m (doc bson COMPRESSION pglz);
INSERT INTO jsonb_m SELECT t::jsonb FROM text_m;
INSERT INTO bson_m SELECT t::bson FROM text_m;
CREATE TABLE jsonb_m_lz4 (doc jsonb COMPRESSION lz4);
CREATE TABLE bson_m_lz4 (doc bson COMPRESSION lz4);
INSERT INTO jsonb_m_lz4 SELECT t::jsonb FROM text_m;
INSERT INTO bson_m_lz4 SELECT t::bson FROM text_m;
CREATE TABLE jsonb_w (doc jsonb);
ALTER TABLE jsonb_w ALTER doc SET STORAGE EXTERNAL;
CREATE TABLE bson_w (doc bson);
ALTER TABLE bson_w ALTER doc SET STORAGE EXTERNAL;
INSERT INTO jsonb_w SELECT t::jsonb FROM text_w;
INSERT INTO bson_w SELECT t::bson FROM text_w;
CREATE TABLE jsonb_l_pglz (doc jsonb COMPRESSION pglz);
CREATE TABLE bson_l_pglz (doc bson COMPRESSION pglz);
CREATE TABLE jsonb_l_lz4 (doc jsonb COMPRESSION lz4);
CREATE TABLE bson_l_lz4 (doc bson COMPRESSION lz4);
CREATE TABLE jsonb_l_external (doc jsonb);
ALTER TABLE jsonb_l_external ALTER doc SET STORAGE EXTERNAL;
CREATE TABLE bson_l_external (doc bson);
ALTER TABLE bson_l_external ALTER doc SET STORAGE EXTERNAL;
INSERT INTO jsonb_l_pglz SELECT t::jsonb FROM text_l;
INSERT INTO bson_l_pglz SELECT t::bson FROM text_l;
INSERT INTO jsonb_l_lz4 SELECT t::jsonb FROM text_l;
INSERT INTO bson_l_lz4 SELECT t::bson FROM text_l;
INSERT INTO jsonb_l_external SELECT t::jsonb FROM text_l;
INSERT INTO bson_l_external SELECT t::bson FROM text_l;
-- the bytes of the bson, for what it costs only to get at them
CREATE TABLE bytes_m (b bytea COMPRESSION pglz);
CREATE TABLE bytes_l_external (b bytea);
ALTER TABLE bytes_l_external ALTER b SET STORAGE EXTERNAL;
INSERT INTO bytes_m SELECT doc::bytea FROM bson_m;
INSERT INTO bytes_l_external SELECT doc::bytea FROM bson_l_external;
VACUUM ANALYZE;

SELECT format('%s  %s documents of %s bytes', s, n, bytes) AS shape FROM (
  SELECT 1, 'S', count(*), round(avg(length(t))) FROM text_s UNION ALL SELECT 2, 'M', count(*), round(avg(length(t))) FROM text_m
  UNION ALL SELECT 3, 'W', count(*), round(avg(length(t))) FROM text_w UNION ALL SELECT 4, 'L', count(*), round(avg(length(t))) FROM text_l
) x (i, s, n, bytes) ORDER BY i;
