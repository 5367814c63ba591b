#!/bin/bash
# Buckets beside TimescaleDB with compressed chunks, and computed fields beside pg_ivm, by the CPU time of the backend, turn by
# turn. Both extensions must be installed where PG_CONFIG says; where one is missing, its part is left out. SCALE, ROUNDS and
# PATTERN as for run.sh.
#
#   PG_CONFIG=/usr/lib/postgresql/15/bin/pg_config bench/peers.sh [PATTERN]
#
# TimescaleDB compresses with the part that is under its Timescale License, which packages of distributions leave out. To build
# both from their sources:
#
#   ./bootstrap -DCMAKE_BUILD_TYPE=Release -DREGRESS_CHECKS=OFF && make -C build install      (timescaledb)
#   make install                                                                             (pg_ivm)
set -eu -o pipefail
cd "$(dirname "$0")/.."
export CLUSTER=${CLUSTER:-peers} LC_ALL=C.UTF-8
cluster=test/env/cluster.sh
trap '"$cluster" stop' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"$cluster" start
"$cluster" psql -qc "ALTER SYSTEM SET shared_buffers = '1GB'"
has() { [ "$("$cluster" psql -XqAtc "SELECT count(*) FROM pg_available_extensions WHERE name = '$1'")" = 1 ]; }
if has timescaledb; then
  "$cluster" psql -qc "ALTER SYSTEM SET shared_preload_libraries = 'timescaledb'"
fi
"$cluster" restart
"$cluster" psql -qc 'SET client_min_messages = warning' -c 'DROP EXTENSION IF EXISTS docpatterns CASCADE' -c 'CREATE EXTENSION docpatterns' \
  -c 'DROP SCHEMA IF EXISTS bench CASCADE' -c 'CREATE SCHEMA bench'
for part in timescaledb pg_ivm; do
  if ! has "$part"; then echo "$part is not installed"; continue; fi
  "$cluster" psql -qAt -v ON_ERROR_STOP=1 -v rounds="${ROUNDS:-5}" -v only="${1:-*}" -v scale="${SCALE:-100}" -f bench/measure.sql -f "bench/$part.sql" |
    grep -v '^=' | grep .
done
