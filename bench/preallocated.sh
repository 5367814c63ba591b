#!/bin/bash
# Claims of different seats of one hot screening by several clients, beside what is written by hand for it: an UPDATE of the
# screening's jsonb document. Events a second, and the ratio.
#
#   preallocated.sh CLUSTER SECONDS CLIENTS
#
# Every claim is a transaction of its own and the server flushes its log to disk. "with work": between the claim and its commit
# the client is busy for 5 ms, as a shop is. Seats are held for a millisecond, so that they do not run out. The private
# cluster must be running; fsync is switched on in it for the time of the run.
set -eu
cluster=$1 seconds=${2:-10} clients=${3:-8}
work=$(mktemp -d)
trap 'rm -rf "$work"; "$cluster" psql -qXc "ALTER SYSTEM RESET fsync" -c "SELECT pg_reload_conf()" >/dev/null' EXIT
export PGOPTIONS='-c client_min_messages=warning'
sql() { "$cluster" psql -qXAt -v ON_ERROR_STOP=1 "$@"; }
sql -c 'ALTER SYSTEM SET fsync = on' -c 'SELECT pg_reload_conf()' >/dev/null
sql >/dev/null <<'SQL'
CREATE EXTENSION IF NOT EXISTS docpatterns;
DROP SCHEMA IF EXISTS bench_preallocated CASCADE;
CREATE SCHEMA bench_preallocated;
SET search_path = bench_preallocated, public;
CREATE TABLE plain (id int PRIMARY KEY, doc jsonb);
INSERT INTO plain SELECT 1, jsonb_build_object('title', 'Avatar', 'seats', (SELECT jsonb_agg((SELECT jsonb_agg(0) FROM generate_series(1, 40))) FROM generate_series(1, 20)));
SELECT collection_create('slots'), collection_create('document');
SELECT preallocated_enable('slots', 'seats', preallocated_grid(array_fill(40, ARRAY[20])), store => 'slots', available_field => 'free'),
       preallocated_enable('document', 'seats', preallocated_grid(array_fill(40, ARRAY[20])), store => 'document', available_field => 'free');
INSERT INTO slots (doc) VALUES ('{_id: 1, title: "Avatar"}');
INSERT INTO document (doc) VALUES ('{_id: 1, title: "Avatar"}');
SQL
cat >"$work/plain.sql" <<'EOS'
\set row random(0, 19)
\set seat random(0, 39)
UPDATE bench_preallocated.plain SET doc = jsonb_set(doc, ARRAY['seats', :row::text, :seat::text], to_jsonb('client ' || :client_id)) WHERE id = 1;
EOS
for store in slots document; do
  cat >"$work/$store.sql" <<EOS
\set row random(0, 19)
\set seat random(1, 40)
SELECT preallocated_claim('bench_preallocated.$store', 1, ARRAY[chr(65 + :row) || :seat], 'client ' || :client_id, '1 ms');
EOS
done
for t in plain slots; do
  { grep '^.set' "$work/$t.sql"; echo 'BEGIN;'; grep -v '^.set' "$work/$t.sql"; printf '%s\n' '\sleep 5 ms' 'COMMIT;'; } >"$work/work_$t.sql"
done
chmod 755 "$work"; chmod 644 "$work"/*.sql
events() {  # events FILE: of the best of two runs
  local best=0 tps
  for _ in 1 2; do
    tps=$("$cluster" run pgbench -n -M prepared -c "$clients" -j 2 -T "$seconds" -f "$work/$1.sql" 2>/dev/null | sed -n 's/^tps = \([0-9.]*\).*/\1/p')
    best=$(awk -v a="$best" -v b="$tps" 'BEGIN { printf "%d", (a > b ? a : b) }')
  done
  echo "$best"
}
# show NAME RATE BASE BAR [NAME IN THE REPORT]: a line of the table; where it compares, also what run.sh collects
show() { printf '%-46s %9d %7.1f %5s\n' "$1" "$2" "$(awk -v n="$2" -v b="$3" 'BEGIN { print n / b }')" "$4";
  [ "$2" = "$3" ] || printf '=\t%s\t%s\t%s\thigh\t\t\t%s\t%s\n' "${5:-$1}" "$(awk -v n="$2" -v b="$3" 'BEGIN { printf "%.4g", n / b }')" "$4" "$3" "$2"
}
echo "one screening of 800 seats, $clients clients        claims/s   ratio   bar"
base=$(events plain)
show 'UPDATE of one jsonb document' "$base" "$base" ''
show "preallocated_claim, store => 'slots'" "$(events slots)" "$base" 4
show "preallocated_claim, store => 'document'" "$(events document)" "$base" ''
base=$(events work_plain)
show 'with 5 ms of work: UPDATE of one jsonb document' "$base" "$base" ''
show "preallocated_claim, store => 'slots'" "$(events work_slots)" "$base" '' "preallocated_claim with 5 ms of work, store => 'slots'"
[ "$(sql -c "SELECT count(*) FROM pattern_check('bench_preallocated.slots')")" = 0 ] || { echo 'pattern_check found violations' >&2; exit 1; }
sql -c 'DROP SCHEMA bench_preallocated CASCADE'
