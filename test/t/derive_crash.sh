#!/bin/bash
# Backends and servers that are killed in the midst of writes leave derived data true, and what was queued is worked off once.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/crash.sh"
. "$DP_TOP/test/env/derived.sh"
set -u
rounds=4
plan $((rounds * 2 + 1))
export PGDATABASE=dp_derived_crash PGOPTIONS='-c client_min_messages=warning'
ask() { psql -XqAt -c "$1" 2>&1; }

psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_derived_crash WITH (FORCE)' -c 'CREATE DATABASE dp_derived_crash'
ask 'CREATE EXTENSION docpatterns'
derived_fill dp_derived_crash
psql -XqAt -v ON_ERROR_STOP=1 >/dev/null <<'SQL' || echo 'not ok 0 - what writes was made'
CREATE SEQUENCE s START 1000;
CREATE TABLE log (n bigint);
-- One statement of some kind, by chance.
CREATE FUNCTION work() RETURNS void LANGUAGE plpgsql AS $$
DECLARE k int := 1 + random() * 3; n bigint := nextval('s'); ts timestamptz := timestamptz '2023-01-01' + n % 40 * interval '9 hours';
BEGIN
  SET LOCAL timezone = 'UTC';
  CASE (random() * 17)::int
    WHEN 0, 1 THEN INSERT INTO screenings (doc) VALUES (bson_build('_id', n, 'movie', 'm' || k, 'x', n / 7.0::float8, 'i', n % 100, 'ts', ts)), (bson_build('_id', nextval('s'), 'movie', 'm' || n % 5, 'x', 0.1::float8, 'i', 5, 'ts', ts));
    WHEN 2 THEN DELETE FROM screenings WHERE _id IN (SELECT _id FROM screenings ORDER BY random() LIMIT 2);
    WHEN 3 THEN UPDATE screenings SET doc = bson_set(doc, 'movie', 'm' || k) WHERE _id IN (SELECT _id FROM screenings ORDER BY random() LIMIT 2);
    WHEN 4 THEN INSERT INTO source_parts VALUES (n % 900 + 50, bson_build('a', k, 'x', n)) ON CONFLICT (id) DO UPDATE SET doc = bson_set(EXCLUDED.doc, 'a', 2);
    WHEN 5 THEN DELETE FROM source_parts WHERE id = (SELECT max(id) FROM source_parts WHERE (doc -> 'a')::int = k);
    WHEN 6 THEN INSERT INTO sales (doc) VALUES (bson_build('_id', n, 'category', (ARRAY['e', 'c', 'l', 'p'])[k], 'amount', n));
    WHEN 7 THEN UPDATE categories SET doc = bson_set(doc, 'parent', (ARRAY['e', 'p'])[1 + n % 2]) WHERE _id = '"c"';
    WHEN 8 THEN INSERT INTO reviews (doc) VALUES (bson_build('_id', n, 'product', k, 'date', n % 50, 'text', 't'));
    WHEN 9 THEN DELETE FROM reviews WHERE _id IN (SELECT doc -> 'reviews' -> 0 -> '_id' FROM products WHERE _id = k);
    WHEN 10 THEN INSERT INTO notes (doc) VALUES (bson_build('_id', n, 'product', k, 'date', n % 50)); DELETE FROM notes WHERE _id = (SELECT min(_id) FROM notes);
    WHEN 11 THEN UPDATE customers SET doc = bson_set(doc, 'name', 'c' || n) WHERE _id = k;
    WHEN 12 THEN INSERT INTO orders (doc) VALUES (bson_build('_id', n, 'customer', k)); UPDATE suppliers SET doc = bson_set(doc, 'name', 's' || n) WHERE _id = k;
    WHEN 13 THEN PERFORM approximation_add('votes', k % 2 + 1, 1); INSERT INTO log VALUES (n);
    WHEN 14 THEN PERFORM approximation_add('pages', 1, 30, 'views'), approximation_sync('votes');
    WHEN 15 THEN UPDATE films SET doc = bson_set(doc, 'specs', n) WHERE _id = k; UPDATE films_whole SET doc = bson_set(doc, 'cast.full', n) WHERE _id = k;
    WHEN 16 THEN PERFORM computed_refresh('made'), reference_refresh('items');
    ELSE PERFORM subset_refresh('products', 'reviews');
  END CASE;
END $$;
SQL

for round in $(seq $rounds); do
  crash_during "$round" 'SELECT work();' 1
  is "$(ask 'SELECT v FROM pattern_check() v')" '' "round $round: all is true after recovery"
  is "$(ask "SELECT sum((doc -> 'likes')::int) - 12 FROM votes_whole")" "$(ask 'SELECT count(*) FROM log')" "round $round: each event is counted once"
done
is "$(ask "SELECT nextval('s') > 1200; SELECT computed_refresh('made') >= 0, reference_refresh('items') >= 0, subset_refresh('products', 'reviews') >= 0; SELECT v FROM pattern_check() v;
  SELECT count(*) FROM made m JOIN (SELECT doc ->> 'movie' AS movie, sum((doc -> 'x')::float8) AS s FROM screenings GROUP BY 1) q ON q.movie = m.doc ->> '_id' WHERE abs((m.doc -> 'total')::float8 - q.s) > 1e-6")" $'t\nt|t|t\n0' 'much was written, and queues are worked off'
psql -Xq -d postgres -c 'DROP DATABASE dp_derived_crash WITH (FORCE)'
