#!/bin/bash
# Writers and VACUUM at once: in every snapshot the indexes find the rows that the table has. SECONDS_OF_WORK changes how long.
. "$DP_TOP/test/env/tap.sh"
set -u
seconds=${SECONDS_OF_WORK:-5}
plan 6
export PGDATABASE=dp_index_vacuum PGOPTIONS='-c client_min_messages=warning'
ask() { psql -XqAt -c "$1" 2>&1; }

psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_index_vacuum WITH (FORCE)' -c 'CREATE DATABASE dp_index_vacuum'
psql -XqAt -v ON_ERROR_STOP=1 >/dev/null <<'SQL' || echo 'not ok 0 - the tables were made'
CREATE EXTENSION docpatterns;
CREATE TABLE things (id bigint, doc bson) WITH (autovacuum_enabled = off);
CREATE INDEX things_n ON things ((doc -> 'n'));
CREATE INDEX things_all ON things USING gin (doc bson_ops) WITH (gin_pending_list_limit = 64);
CREATE INDEX things_pairs ON things USING gin (doc bson_ops (paths = 'tags', pairs = 'r(k,v)')) WITH (fastupdate = off);
CREATE SEQUENCE s;
CREATE TABLE bad (what text);
CREATE TABLE turns (who text, n int);

CREATE FUNCTION thing(i bigint) RETURNS bson LANGUAGE sql AS $$
  SELECT bson_build('n', i % 100, 'tags', bson_array('t' || i % 13, 't' || i % 7), 'r', bson_array(bson_build('k', 'k' || i % 5, 'v', i % 40), bson_build('k', 'k' || i % 6, 'v', i % 30))) $$;
INSERT INTO things SELECT nextval('s'), thing(i) FROM generate_series(1, 2000) i;

CREATE PROCEDURE write(until timestamptz) LANGUAGE plpgsql AS $$
DECLARE i bigint; n int := 0;
BEGIN
  WHILE clock_timestamp() < until LOOP
    i := nextval('s');
    INSERT INTO things VALUES (i, thing(i));
    IF n % 3 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
    UPDATE things SET doc = bson_set(doc, 'n', 100 + i % 10) WHERE doc @@ bson_build('n', i % 100, 'tags', 't' || i % 13) AND id % 10 = i % 10;
    DELETE FROM things WHERE id IN (SELECT id FROM things WHERE doc -> 'n' = (100 + i % 10)::int LIMIT 5);
    COMMIT;
    n := n + 1;
  END LOOP;
  INSERT INTO turns VALUES ('write', n);
END $$;

-- In one snapshot (transactions are repeatable read here): what the table has, and what the indexes find.
CREATE PROCEDURE look(until timestamptz) LANGUAGE plpgsql AS $$
DECLARE
  condition text;
  one text;
  other text;
  n int := 0;
BEGIN
  WHILE clock_timestamp() < until LOOP
    FOREACH condition IN ARRAY ARRAY['doc -> ''n'' = 7', 'doc -> ''n'' >= 100', 'doc @@ ''{n: 5}''', 'doc @@ ''{tags: "t3"}''', 'doc @@ ''{n: {$gte: 98, $lt: 103}}''', 'doc @@ ''{r: {$elemMatch: {k: "k2", v: {$gt: 10, $lt: 20}}}}'''] LOOP
      SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off;
      EXECUTE 'SELECT string_agg(id::text, '','' ORDER BY id) FROM things WHERE ' || condition INTO one;
      SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = on; SET LOCAL enable_bitmapscan = on;
      EXECUTE 'SELECT string_agg(id::text, '','' ORDER BY id) FROM things WHERE ' || condition INTO other;
      n := n + 1;
      IF one IS DISTINCT FROM other THEN
        COMMIT;
        INSERT INTO bad VALUES (condition);
        COMMIT;
        EXIT;
      END IF;
    END LOOP;
    COMMIT;
  END LOOP;
  INSERT INTO turns VALUES ('look', n);
END $$;
SQL

until="'$(ask "SELECT clock_timestamp() + interval '$seconds seconds'")'"
jobs=()
for _ in 1 2 3; do psql -XqAt -c "CALL write($until)" >>"$DP_WORK/log" 2>&1 & jobs+=($!); done
for _ in 1 2; do psql -XqAt -c "SET default_transaction_isolation = 'repeatable read'" -c "CALL look($until)" >>"$DP_WORK/log" 2>&1 & jobs+=($!); done
(
  n=0
  while [ "$(ask "SELECT clock_timestamp() < $until")" = t ]; do
    ask 'VACUUM things' >>"$DP_WORK/log"
    ask "SELECT gin_clean_pending_list('things_all') IS NULL" >>"$DP_WORK/cleaned"
    n=$((n + 1))
  done
  ask "INSERT INTO turns VALUES ('vacuum', $n)"
) &
jobs+=($!)
wait "${jobs[@]}"

is "$(ask 'SELECT string_agg(DISTINCT what, chr(10)) FROM bad')" '' 'an index never found other rows than the table had'
is "$(cat "$DP_WORK/log")" '' 'nobody met an error'
is "$(ask "SELECT sum(n) > 20 FROM turns WHERE who = 'write'")" t 'there were writes'
is "$(ask "SELECT sum(n) > 20 FROM turns WHERE who = 'look'")" t 'looks'
is "$(ask "SELECT sum(n) > 0 FROM turns WHERE who = 'vacuum'")" t 'and VACUUM'
psql -XqAt -c "SET enable_seqscan = off" -c "CREATE TABLE i AS SELECT id FROM things WHERE doc @@ '{n: {\$gte: 0}}'" \
  -c 'SET enable_seqscan = on' -c 'SET enable_bitmapscan = off' -c "SET enable_indexscan = off" -c "CREATE TABLE t AS SELECT id FROM things WHERE doc @@ '{n: {\$gte: 0}}'" >/dev/null
is "$(ask 'SELECT count(*) FROM ((TABLE i EXCEPT TABLE t) UNION ALL (TABLE t EXCEPT TABLE i)) x')" 0 'in the end they have the same rows'
psql -Xq -d postgres -c 'DROP DATABASE dp_index_vacuum WITH (FORCE)'
