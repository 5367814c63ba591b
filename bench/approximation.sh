#!/bin/bash
# Counters on one hot row under several clients, beside the exact +1 that everybody writes: events a second, and the ratio.
# The server flushes its log to disk, as one that is in use does; every event is a transaction of its own.
#
#   approximation.sh CLUSTER SECONDS CLIENTS
#
# The private cluster must be running; its setting of fsync is changed for the time of the run.
set -eu
cluster=$1 seconds=${2:-10} clients=${3:-8}
work=$(mktemp -d)
trap 'rm -rf "$work"; "$cluster" psql -qXc "ALTER SYSTEM RESET fsync" -c "SELECT pg_reload_conf()" >/dev/null' EXIT
export PGOPTIONS='-c client_min_messages=warning'
sql() { "$cluster" psql -qXAt -v ON_ERROR_STOP=1 "$@"; }
sql -c 'ALTER SYSTEM SET fsync = on' -c 'SELECT pg_reload_conf()' >/dev/null
sql >/dev/null <<'SQL'
CREATE EXTENSION IF NOT EXISTS docpatterns;
DROP SCHEMA IF EXISTS bench_approximation CASCADE;
CREATE SCHEMA bench_approximation;
SET search_path = bench_approximation, public;
SELECT collection_create('exact'), collection_create('steps'), collection_create('errors'), collection_create('slots');
SELECT approximation_enable('steps', 'views', step => 1000), approximation_enable('errors', 'views', error => 0.01), approximation_enable('slots', 'views', slots => 16);
INSERT INTO exact (doc) VALUES ('{_id: 1, views: 0}');
INSERT INTO steps (doc) VALUES ('{_id: 1, views: 0}');
INSERT INTO errors (doc) VALUES ('{_id: 1, views: 5000000}');
INSERT INTO slots (doc) VALUES ('{_id: 1, views: 0}');
SQL
cat >"$work/exact.sql" <<'SQL'
UPDATE bench_approximation.exact SET doc = bson_update(doc, '{$inc: {views: 1}}') WHERE _id = 1;
SQL
for t in steps errors slots; do
  echo "SELECT approximation_add('bench_approximation.$t', 1, 1);" >"$work/$t.sql"
done
events() {  # events NAME: of the best of two runs
  local best=0 tps
  for _ in 1 2; do
    tps=$("$cluster" run pgbench -n -M prepared -c "$clients" -j 2 -T "$seconds" -f "$work/$1.sql" 2>/dev/null | sed -n 's/^tps = \([0-9]*\).*/\1/p')
    [ "$tps" -gt "$best" ] && best=$tps
  done
  echo "$best"
}
"$cluster" run chmod 755 "$work" 2>/dev/null || chmod 755 "$work"
chmod 644 "$work"/*.sql
base=$(events exact)
echo "one hot row, $clients clients            events/s   ratio   bar"
printf '%-38s %9d %7s %5s\n' 'exact +1' "$base" 1 ''
for line in 'steps|step => 1000|60' 'errors|error => 0.01, at 5 million|60' 'slots|slots => 16, exact|3'; do
  IFS='|' read -r t what bar <<<"$line"
  n=$(events "$t")
  printf '%-38s %9d %7.1f %5s\n' "$what" "$n" "$(awk -v n="$n" -v b="$base" 'BEGIN { print n / b }')" "$bar"
done
sql <<'SQL'
SELECT format('slots: %s rows, the total %s', (SELECT count(*) FROM bench_approximation.slots_views_slots), doc ->> 'views') FROM bench_approximation.slots_whole;
SELECT format('check: %s', count(*)) FROM pattern_check();
DROP SCHEMA bench_approximation CASCADE;
SQL
