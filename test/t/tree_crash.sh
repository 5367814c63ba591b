#!/bin/bash
# Backends and servers that are killed in the midst of moves, loads and deletions leave whole trees behind.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/crash.sh"
set -u
rounds=4
plan $((rounds * 2 + 2))
export PGDATABASE=dp_tree_crash PGOPTIONS='-c client_min_messages=warning'
ask() { psql -XqAt -c "$1" 2>&1; }

psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_tree_crash WITH (FORCE)' -c 'CREATE DATABASE dp_tree_crash'
psql -XqAt -v ON_ERROR_STOP=1 >/dev/null <<'SQL' || echo 'not ok 0 - the tables were made'
CREATE EXTENSION docpatterns;
CREATE TABLE log (id int, up int);
CREATE SEQUENCE s START 1000;
SELECT collection_create('nodes'), collection_create('things');
SELECT tree_enable('nodes', parent => 'up', ancestors => 'anc', path => 'path', children => 'kids', depth => 'depth', on_delete => 'cascade');
SELECT tree_attach('things', tree => 'nodes', parent => 'node', ancestors => 'above');
INSERT INTO nodes (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 1 THEN greatest(1, i / 3) END) FROM generate_series(1, 200) i;
INSERT INTO things (doc) SELECT bson_build('_id', i, 'node', 1 + i % 100) FROM generate_series(1, 300) i;

-- One transaction: a subtree moves, nodes come in any order, others go with all below them, and what is left is written down.
CREATE FUNCTION work() RETURNS void LANGUAGE plpgsql AS $$
DECLARE n int := nextval('s'); a int; b int;
BEGIN
  PERFORM pg_advisory_xact_lock(1);
  SELECT _id::int INTO a FROM nodes WHERE _id > 1 ORDER BY random() LIMIT 1;
  SELECT _id::int INTO b FROM nodes WHERE NOT tree_is_below(doc, 'anc', a) AND _id <> a ORDER BY random() LIMIT 1;
  UPDATE nodes SET doc = bson_set(doc, 'up', b) WHERE _id = a;
  INSERT INTO nodes (doc) SELECT bson_build('_id', n * 1000 + i, 'up', CASE WHEN i > 1 THEN n * 1000 + i / 2 ELSE a END) FROM generate_series(1, 100) i ORDER BY i DESC;
  INSERT INTO things (doc) VALUES (bson_build('_id', n, 'node', n * 1000 + 77));
  DELETE FROM nodes WHERE _id >= (n - 3) * 1000 + 1 AND _id < (n - 2) * 1000;
  DELETE FROM log;
  INSERT INTO log SELECT _id::int, (doc ->> 'up')::int FROM nodes;
END $$;
SQL

for round in $(seq $rounds); do
  crash_during "$round" 'SELECT work();' 1
  is "$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' "round $round: the pattern is true after recovery"
  is "$(ask "SELECT count(*) FROM (SELECT _id::int, (doc ->> 'up')::int FROM nodes EXCEPT ALL SELECT * FROM log) a
    UNION ALL SELECT count(*) FROM (SELECT * FROM log EXCEPT ALL SELECT _id::int, (doc ->> 'up')::int FROM nodes) b")" $'0\n0' \
    "round $round: the nodes are those of the last transaction that was committed"
done
is "$(ask "SELECT last_value > 1010 FROM s")" t 'much was written'
is "$(ask "SET enable_seqscan = off; SELECT count(*) - (SELECT count(*) FROM tree_descendants('nodes', 1)) FROM nodes")" 1 'every node is found by the index'
psql -Xq -d postgres -c 'DROP DATABASE dp_tree_crash WITH (FORCE)'
