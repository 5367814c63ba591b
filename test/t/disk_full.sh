#!/bin/bash
# A disk that is full: all tables lie in a tablespace that is too small (a file system of its own, which goes when the test ends; the log of
# the server is elsewhere), and fills up while clients write through every pattern. A statement that finds no place fails with 53100 and
# has done nothing; the others go on; and when there is room again everything does. Temporary files end in the same way.
. "$DP_TOP/test/env/storm.sh"
set -u
STRESS_SECONDS=${STRESS_SECONDS:-2}
place=$("$DP_CLUSTER" home)/small
skip() { echo "1..0 # SKIP $1"; exit 0; }
[ "$(id -u)" = 0 ] || skip 'only root can mount a file system'
mkdir -p "$place"
mount -t tmpfs -o "size=${SMALL:-64m},mode=0700,uid=$(id -u postgres),gid=$(id -g postgres)" tmpfs "$place" 2>"$DP_WORK/mount.err" || { rmdir "$place"; skip "no file system: $(head -n 1 "$DP_WORK/mount.err")"; }
away() {
  trap - EXIT
  psql -Xq -d postgres -c 'ALTER SYSTEM RESET autovacuum' -c 'SELECT pg_reload_conf()' >/dev/null 2>&1
  psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_full WITH (FORCE)' -c 'DROP TABLESPACE IF EXISTS dp_small' >/dev/null 2>&1
  umount "$place" 2>/dev/null || umount -l "$place"
  rmdir "$place"
}
trap away EXIT
trap 'exit 1' INT TERM HUP
plan 13
# a catalog that is vacuumed takes the file away that new sessions begin with, and for another one there is no room
psql -Xq -d postgres -c 'ALTER SYSTEM SET autovacuum = off' -c 'SELECT pg_reload_conf()' >/dev/null

for what in derived shapes; do
  stress_begin dp_full 20331
  psql -Xq -d postgres -c 'DROP DATABASE dp_full' -c "CREATE TABLESPACE dp_small LOCATION '$place'" -c 'CREATE DATABASE dp_full TABLESPACE dp_small' -c "ALTER DATABASE dp_full SET temp_tablespaces = dp_small"
  psql -Xq -c 'CREATE EXTENSION docpatterns' -c "ALTER DATABASE dp_full SET deadlock_timeout = '50ms'"
  "storm_$what"
  # what is left is filled but for some pages, and taken again and again
  psql -Xq -c 'CREATE UNLOGGED TABLE filler (t text)' -c 'ALTER TABLE filler ALTER t SET STORAGE EXTERNAL' -c 'CREATE UNLOGGED TABLE crumbs (t text)'
  for n in 4000000 1000000 200000 50000; do
    for _ in {1..30}; do psql -Xq -c "INSERT INTO filler VALUES (repeat('x', $n))" 2>/dev/null || break; done
  done
  before='"INSERT INTO crumbs SELECT repeat($$x$$, 1000) FROM generate_series(1, 50);"'
  stress_run "full_$what" "$seconds" stress_met 10 53100 "full_$what"
  is "$(grep -hE 'PANIC|FATAL|connection .*(lost|closed)|ERROR:  XX' "$DP_WORK/errors.full_$what".* | sort | uniq -c | cut -c 1-200)" '' "$what: no internal error, no session lost"
  ok "$what: the disk was full" stress_met 10 53100 "full_$what"
  [ "$what" = shapes ] || is "$(psql -XqAt -v VERBOSITY=sqlstate -c "SET work_mem = '64kB'" -c 'SELECT count(*) FROM (SELECT d FROM (SELECT bson_build($$_id$$, i, $$t$$, repeat($$x$$, 300)) AS d FROM generate_series(1, 30000) i OFFSET 0) q ORDER BY d -> $$_id$$ DESC OFFSET 0) s' 2>&1)" 'ERROR:  53100' 'a sort that finds no place for its files'
  psql -Xq -c 'DROP TABLE filler, crumbs' -c CHECKPOINT
  is "$(ask 'SELECT * FROM storm.bad LIMIT 5')$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' "$what: all was true at any moment, and is"
  before='""'
  stress_run "room_$what" 1
  is "$(stress_count 53100 "room_$what")" 0 "$what: with room again nothing finds the disk full"
  is "$(grep -hE 'PANIC|FATAL|connection .*(lost|closed)|ERROR:  XX' "$DP_WORK/errors.room_$what".* | head -3)" '' "$what: no internal error"
  is "$(ask 'SELECT * FROM storm.bad LIMIT 5')$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' "$what: and all is true"
  psql -Xq -d postgres -c 'DROP DATABASE dp_full WITH (FORCE)' -c 'DROP TABLESPACE dp_small'
done
