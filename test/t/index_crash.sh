#!/bin/bash
# Backends and servers that are killed in the midst of writes leave indexes that give the table's answers; REINDEX gives the same.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/crash.sh"
set -u
rounds=4
plan $((rounds * 2 + 4))
export PGDATABASE=dp_index_crash PGOPTIONS='-c client_min_messages=warning'
ask() { psql -XqAt -c "$1" 2>&1; }

psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_index_crash WITH (FORCE)' -c 'CREATE DATABASE dp_index_crash'
psql -XqAt -v ON_ERROR_STOP=1 >/dev/null <<'SQL' || echo 'not ok 0 - the tables were made'
CREATE EXTENSION docpatterns;
SELECT collection_create('things');
SELECT collection_create_index('things', '{n: 1}');
SELECT collection_create_index('things', '{"$**": 1}', name => 'things_all');
SELECT collection_create_index('things', '{"tags.$**": 1, "sub.$**": 1}', name => 'things_named');
CREATE INDEX things_pairs ON things USING gin (doc bson_ops (pairs = 'r(k,v)')) WITH (fastupdate = off);
ALTER INDEX things_all SET (gin_pending_list_limit = 64);
CREATE SEQUENCE s;

CREATE FUNCTION thing(i bigint) RETURNS bson LANGUAGE sql AS $$
  SELECT bson_build('_id', i, 'n', i % 100, 'tags', bson_array('t' || i % 13, 't' || i % 7), 'sub', bson_build('x', i % 50, 'name', 'a name that is long enough ' || i % 30),
    'r', bson_array(bson_build('k', 'k' || i % 5, 'v', i % 40), bson_build('k', 'k' || i % 6, 'v', i % 30)), 'pad', repeat('x', (i % 500)::int)) $$;
CREATE PROCEDURE work() LANGUAGE plpgsql AS $$
DECLARE i bigint;
BEGIN
  FOR turn IN 1 .. 10 LOOP
    i := nextval('s');
    INSERT INTO things (doc) VALUES (thing(i));
    UPDATE things SET doc = bson_set(doc, 'n', 1000 + i % 10) WHERE _id = i - 20;
    DELETE FROM things WHERE _id = i - 1500;
    COMMIT;
  END LOOP;
END $$;

-- Which queries find other rows in an index than in the table.
CREATE FUNCTION differ() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  condition text;
  one text;
  other text;
  plan text;
  result text := '';
BEGIN
  FOREACH condition IN ARRAY ARRAY['doc -> ''n'' = 7', 'doc -> ''n'' > 1000', 'doc @@ ''{n: 5}''', 'doc @@ ''{tags: "t3"}''', 'doc @@ ''{"sub.x": {$gte: 10, $lt: 14}}''', 'doc @@ ''{"sub.name": /^a name that is long enough 1/}''',
      'doc @@ ''{r: {$elemMatch: {k: "k2", v: {$gt: 10, $lt: 20}}}}''', 'doc @@ ''{n: {$gt: 1003}}''', 'doc @> ''{"sub": {"x": 7}}''', 'doc @@ ''{_id: 30}'''] LOOP
    SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off;
    EXECUTE 'SELECT string_agg(_id::text, '','' ORDER BY _id) FROM things WHERE ' || condition INTO one;
    SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = on; SET LOCAL enable_bitmapscan = on;
    EXECUTE 'SELECT string_agg(_id::text, '','' ORDER BY _id) FROM things WHERE ' || condition INTO other;
    EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) SELECT _id FROM things WHERE ' || condition INTO plan;
    IF plan !~ 'Index Cond' THEN result := result || condition || ' is not looked up; '; END IF;
    IF one IS DISTINCT FROM other THEN result := result || condition || ' differs; '; END IF;
  END LOOP;
  RETURN result;
END $$;
SQL

for round in $(seq $rounds); do
  crash_during "$round" 'CALL work();' 1.5
  is "$(ask 'SELECT differ()')" '' "round $round: the indexes give the table's answers after recovery"
  is "$(ask 'SELECT count(*) > 100 * '"$round"' FROM things')" t "round $round: there is something to be found"
done

ask 'VACUUM things'
is "$(ask 'SELECT differ()')" '' 'and after VACUUM'
ask 'REINDEX TABLE things'
is "$(ask 'SELECT differ()')" '' 'and after REINDEX'
ask 'REINDEX TABLE CONCURRENTLY things'
is "$(ask 'SELECT differ()')" '' 'and after REINDEX CONCURRENTLY'
# what was pending when the server went is looked at, too
psql -XqAt -c 'INSERT INTO things (doc) SELECT thing(i) FROM generate_series(1000001, 1000200) i' -c 'SELECT 1' >/dev/null
"$DP_CLUSTER" crash
is "$(ask "SELECT differ() || count(*) FROM things WHERE doc @@ '{_id: {\$gt: 1000000}}'")" 200 'what was pending is found after a crash'
psql -Xq -d postgres -c 'DROP DATABASE dp_index_crash WITH (FORCE)'
