#!/bin/bash
# Servers that are killed in the midst of writes through every pattern of shapes, of what belongs together and of what happened:
# all is true after recovery, and what was counted, claimed, recorded and kept is what was committed.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/crash.sh"
. "$DP_TOP/test/env/shapes.sh"
set -u
rounds=5 kinds=24
RANDOM=${SEED:-$((16#$(head -c 2 /dev/urandom | od -An -tx1 | tr -d ' ')))}
plan $((rounds * 4 + 3))
export PGDATABASE=dp_shapes_crash PGOPTIONS='-c client_min_messages=warning'
ask() { psql -XqAt -c "$1" 2>&1; }

psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_shapes_crash WITH (FORCE)' -c 'CREATE DATABASE dp_shapes_crash'
ask 'CREATE EXTENSION docpatterns'
shapes_fill dp_shapes_crash
psql -XqAt -v ON_ERROR_STOP=1 >/dev/null <<'SQL' || echo 'not ok 0 - what writes was made'
CREATE SEQUENCE s START 1000;
CREATE TABLE log (n bigint, slot text);
SELECT kv_hset('game', 'log', 'n', 0);
INSERT INTO shows (doc) SELECT bson_build('_id', 99, 'seats', bson_agg('[0, 0, 0, 0]'::bson_value)) FROM generate_series(1, 1000);
-- One transaction of some kind.
CREATE FUNCTION work(kind int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE n bigint := nextval('s'); k int := 1 + n % 4; slot text;
BEGIN
  CASE kind
    WHEN 1 THEN INSERT INTO movies_v1 (doc) VALUES (bson_build('_id', n, 'title', 't', 'kind', 'film', 'minutes', k, 'director', 'd', 'release_US', n)), (bson_build('_id', -n, 'title', 't', 'kind', 'series', 'seasons', k, 'release_UK', n));
    WHEN 2 THEN UPDATE movies_current SET doc = bson_set(bson_set(doc, 'seen', n), 'release_R' || k, n) WHERE _id::int % 5 = k;
    WHEN 3 THEN DELETE FROM movies WHERE _id = (SELECT max(_id) FROM movies); PERFORM versioning_revert('movies', k, 1);
    WHEN 4 THEN INSERT INTO messages (doc) VALUES (bson_build('_id', n, 'body', format('{"from": "f%s", "size": %s}', n, k))) ON CONFLICT (_id) DO NOTHING; UPDATE messages_whole SET doc = bson_set(doc, 'body', format('{"from": "%s"}', n)) WHERE _id = k;
    WHEN 5 THEN INSERT INTO crm (doc) VALUES (bson_build('_id', n, 'c', n)); UPDATE crm SET doc = bson_set(doc, 'c', -n) WHERE _id = k; DELETE FROM crm WHERE _id = (SELECT max(_id) FROM crm) AND n % 3 = 0;
    WHEN 6 THEN UPDATE billing SET doc = bson_set(doc, 'c', n) WHERE _id = k; DELETE FROM support WHERE _id IN (SELECT _id FROM support ORDER BY _id LIMIT 1);
    WHEN 7 THEN INSERT INTO support (doc) VALUES (bson_build('_id', n, 'c', k)), (bson_build('_id', -n, 'c', k)); UPDATE merged SET doc = bson_set(doc, 'note', n) WHERE doc -> 'c' = k;
    WHEN 8, 9 THEN
      slot := (preallocated_find('shows', 99, 1))[1];
      IF slot IS NOT NULL THEN INSERT INTO log SELECT NULL, slot WHERE preallocated_claim('shows', 99, ARRAY[slot], n); END IF;
    WHEN 10 THEN PERFORM preallocated_claim('shows', 3, '{B1,B2}', 'x', '1 ms'), preallocated_release('shows', 4, '{B1}', 'x'), preallocated_claim('shows', 4, '{B1}', 'x');
    WHEN 11 THEN INSERT INTO halls (doc) VALUES (bson_build('_id', n)); PERFORM preallocated_claim('halls', n, '{1,2}', k); DELETE FROM halls WHERE _id = (SELECT min(_id) FROM halls WHERE _id > 999);
    WHEN 12 THEN INSERT INTO books (doc) VALUES (bson_build('bookId', n, 'docType', 'book')); INSERT INTO books (doc) SELECT bson_build('docType', 'review', 'relatedTo', bson_array(n, 'ada')) FROM generate_series(1, 3);
    WHEN 13 THEN DELETE FROM books WHERE doc -> 'bookId' = (SELECT min(doc -> 'bookId') FROM books WHERE doc -> 'bookId' > 2); UPDATE books SET doc = bson_set(doc, 'bookId', n + 1000000) WHERE doc -> 'bookId' = (SELECT max(doc -> 'bookId') FROM books WHERE doc -> 'bookId' > 2);
    WHEN 14 THEN INSERT INTO notes (doc) VALUES (bson_build('at', 'n' || n)), (bson_build('at', format('n%s/1', n))), (bson_build('at', format('n%s/1/2', n))); UPDATE notes SET doc = bson_set(doc, 'at', 'm' || n) WHERE doc ->> 'at' = 'n' || n;
    WHEN 15 THEN UPDATE patients SET doc = bson_set(doc, 'doctors', CASE WHEN n % 2 = 0 THEN bson_array(1 + n % 4) ELSE bson_array(2, 3) END) WHERE _id = k;
    WHEN 16 THEN INSERT INTO doctors (doc) VALUES (bson_build('_id', n, 'patients', bson_array(k, 5))); UPDATE patients SET doc = bson_set(doc, 'friends', bson_array(n % 6 + 1, n)) WHERE _id = k; DELETE FROM doctors WHERE _id = (SELECT min(_id) FROM doctors WHERE _id > 999);
    WHEN 17 THEN INSERT INTO orders (doc) SELECT bson_build('_id', n * 10 + i, 'u', i, 'd', date '2024-01-01' + (n % 1000)::int, 'n', n * 10 + i, 't', n) FROM generate_series(0, 5) i;
    WHEN 18 THEN UPDATE orders SET doc = bson_set(doc, 'u', (n + 1) % 4) WHERE _id IN (SELECT _id FROM orders ORDER BY _id LIMIT 3); DELETE FROM orders WHERE _id = (SELECT max(_id) FROM orders);
    WHEN 19 THEN PERFORM single_table_put('app', 'order', bson_build('id', k, 'n', n % 9999)); UPDATE app_user SET doc = bson_set(doc, 'mail', n); DELETE FROM app_order WHERE pk = 'USER#' || k;
    WHEN 20, 21 THEN PERFORM kv_hincrby('game', 'log', 'n', 1); INSERT INTO log (n) VALUES (n);
    WHEN 22 THEN PERFORM kv_zadd('game', 'z', n % 100, 'm' || n % 3000), kv_sadd('game', 's', n), kv_zpopmin('game', 'z'), kv_expire('game', 's', 1000), kv_spop('game', 's');
    WHEN 23 THEN UPDATE players SET doc = bson_set(doc, 'points', n % 100) WHERE _id::int % 7 = k; INSERT INTO players (doc) VALUES (bson_build('_id', n, 'points', k));
    ELSE INSERT INTO parts VALUES (20 + n % 900, bson_build('docType', 'p', '_id', n, 'u', n, 'kind', 'a', 'x_b', n, 'relatedTo', bson_array(n))) ON CONFLICT (id) DO UPDATE SET doc = bson_set(parts.doc, 'x_c', n); PERFORM preallocated_claim('parts', 20 + n % 900, '{1}', n); DELETE FROM parts WHERE id = 999; UPDATE parts SET id = 999 WHERE id = (SELECT max(id) FROM parts);
  END CASE;
END $$;
CREATE FUNCTION work() RETURNS void LANGUAGE sql AS 'SELECT work(1 + (random() * 23)::int)';
SQL
each() { for kind in $(seq $kinds) $(seq $kinds); do echo "SELECT work($kind);"; done | psql -XqAt 2>&1 | grep .; }
is "$(each)" '' 'each kind of write succeeds'

for round in $(seq $rounds); do
  delay=0.$((RANDOM % 7 + 3))
  echo "# round $round: killed after $delay s"
  crash_during 2 'SELECT work();' "$delay"
  is "$(ask 'SELECT v FROM pattern_check() v')" '' "round $round: all is true after recovery"
  is "$(ask "SELECT kv_hget('game', 'log', 'n')")" "$(ask 'SELECT count(n) FROM log')" "round $round: a counter has counted what was committed"
  is "$(ask "SELECT slot FROM preallocated_slots('shows', 99) WHERE holder IS NOT NULL EXCEPT ALL SELECT slot FROM log UNION ALL (SELECT slot FROM log WHERE slot IS NOT NULL EXCEPT ALL SELECT slot FROM preallocated_slots('shows', 99) WHERE holder IS NOT NULL)")" '' "round $round: slots are taken as was committed, once"
  is "$(ask "(SELECT key, document FROM change_feed_read('movies', NULL, 1000000) WHERE operation <> 'delete' EXCEPT ALL SELECT key, doc FROM movies_history WHERE operation <> 'delete')
    UNION ALL (SELECT key, doc FROM movies_history WHERE operation <> 'delete' EXCEPT ALL SELECT key, document FROM change_feed_read('movies', NULL, 1000000) WHERE operation <> 'delete')")" '' "round $round: feed and history tell the same"
done
is "$(ask "SELECT nextval('s') > 1100")" t 'much was written'
is "$(each; ask 'SELECT v FROM pattern_check() v')" '' 'and all goes on'
psql -Xq -d postgres -c 'DROP DATABASE dp_shapes_crash WITH (FORCE)'
