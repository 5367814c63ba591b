#!/bin/bash
# Pipelines beside those of DocumentDB, by the CPU time of the backend, turn by turn: for PostgreSQL 18 of Debian, with its
# package postgresql-18-documentdb. SCALE, ROUNDS and PATTERN as for run.sh.
#
#   PG_CONFIG=/usr/lib/postgresql/18/bin/pg_config bench/documentdb.sh [PATTERN]
set -eu -o pipefail
cd "$(dirname "$0")/.."
export CLUSTER=documentdb LC_ALL=C.UTF-8
cluster=test/env/cluster.sh
trap '"$cluster" stop' EXIT
"$cluster" start
"$cluster" psql -qc "ALTER SYSTEM SET shared_buffers = '1GB'" -c "ALTER SYSTEM SET cron.database_name = 'postgres'" \
  -c "ALTER SYSTEM SET documentdb.localhost_connection_string = 'host=$("$cluster" run printenv PGHOST)'" \
  -c 'ALTER SYSTEM SET shared_preload_libraries = pg_cron, pg_documentdb_core, pg_documentdb'
"$cluster" restart
"$cluster" psql -qc 'SET client_min_messages = warning' -c 'DROP EXTENSION IF EXISTS docpatterns CASCADE' -c 'CREATE EXTENSION docpatterns' -c 'CREATE EXTENSION IF NOT EXISTS documentdb CASCADE' \
  -c 'DROP SCHEMA IF EXISTS bench CASCADE' -c 'CREATE SCHEMA bench'
"$cluster" psql -qAt -v ON_ERROR_STOP=1 -v rounds="${ROUNDS:-5}" -v only="${1:-*}" -v scale="${SCALE:-100}" -f bench/measure.sql -f bench/documentdb.sql |
  grep -v '^=' | grep .
