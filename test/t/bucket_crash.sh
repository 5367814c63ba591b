#!/bin/bash
# Backends and servers that are killed in the midst of inserting and packing lose nothing and write nothing twice: every
# transaction that was told so is there, whole, and no other one in part.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/crash.sh"
set -u
rounds=4
plan $((rounds * 2 + 1))
export PGDATABASE=dp_bucket_crash PGOPTIONS='-c client_min_messages=warning'
ask() { psql -XqAt -c "$1" 2>&1; }

psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_bucket_crash WITH (FORCE)' -c 'CREATE DATABASE dp_bucket_crash'
psql -XqAt -v ON_ERROR_STOP=1 >/dev/null <<'SQL' || echo 'not ok 0 - the tables were made'
CREATE EXTENSION docpatterns;
SELECT bucket_create('readings', columns => 'g int, ts timestamptz, n bigint, who int', group_by => '{g}', time_field => 'ts', span => '1 hour', max_count => 40);
CREATE TABLE twin (g int, ts timestamptz, n bigint, who int);
CREATE SEQUENCE s;

-- One transaction: some measurements of some groups, in order and late, changes of its session's own ones among them, a packing or
-- other spans; the same to a plain table. What meets another session's change and is told to try again does nothing to either.
CREATE FUNCTION work() RETURNS void LANGUAGE plpgsql AS $$
DECLARE k bigint := nextval('s'); m int := CASE WHEN k % 17 = 0 THEN 1200 ELSE 1 + k % 5 END; me int := pg_backend_pid();
BEGIN
  IF k % 50 = 0 THEN
    PERFORM bucket_resize('readings', (ARRAY['1 hour', '1 day', '20 min'])[1 + k / 50 % 3]::interval);
  END IF;
  INSERT INTO twin SELECT i % 4, timestamptz '2024-01-01' + (k * 10 - (k % 3) * 400 + i) * interval '7 s', k, me FROM generate_series(1, m) i;
  INSERT INTO readings SELECT * FROM twin WHERE n = k;
  IF k % 4 = 0 THEN
    UPDATE readings SET n = -n WHERE who = me AND n % 5 = k % 5; UPDATE twin SET n = -n WHERE who = me AND n % 5 = k % 5;
  ELSIF k % 4 = 1 THEN
    DELETE FROM readings WHERE who = me AND g = k / 4 % 4 AND n % 3 = 0; DELETE FROM twin WHERE who = me AND g = k / 4 % 4 AND n % 3 = 0;
  ELSIF k % 4 = 2 THEN
    PERFORM bucket_pack('readings');
  END IF;
END $$;
SQL

for round in $(seq $rounds); do
  crash_during "$round" 'SELECT work();' 1
  is "$(ask 'SELECT * FROM pattern_check()')" '' "round $round: the pattern is true after recovery"
  is "$(ask 'SELECT count(*) FROM (SELECT * FROM readings EXCEPT ALL SELECT * FROM twin) a UNION ALL SELECT count(*) FROM (SELECT * FROM twin EXCEPT ALL SELECT * FROM readings) b')" $'0\n0' \
    "round $round: the measurements are those of the plain table"
done
is "$(ask 'SELECT (SELECT count(*) FROM twin) > 100 AND (SELECT count(*) FROM readings_packed) > 10')" t 'much was written, and packed'
psql -Xq -d postgres -c 'DROP DATABASE dp_bucket_crash WITH (FORCE)'
