#!/bin/sh
# A private, throw-away Citus under build/: a coordinator and two workers on one unix socket directory, from the
# installation that cluster.sh copies. Citus must be installed on the machine.
#
#   citus.sh start        start the three servers (made when missing)
#   citus.sh database NAME
#                         drop a database and make it again on all three, with both extensions and, where it is
#                         installed, pgTAP; start makes the database postgres ready in the same way
#   citus.sh stop         stop them
#   citus.sh destroy      stop them and delete their data
#   citus.sh psql ARGS    psql connected to the coordinator; NODE=1 and NODE=2 are the workers
#   citus.sh run COMMAND  any command with PGHOST, PGPORT, PGUSER and PATH set for the coordinator
#   citus.sh missing      print why Citus cannot run here; exit status 1 if it can
set -eu
cd "$(dirname "$0")/../.."
cluster=$PWD/test/env/cluster.sh
export CLUSTER=${CLUSTER:-citus}
nodes='0 1 2'

node() { number=$1; shift; [ "$number" != 0 ] || number=; NODE=$number "$cluster" "$@"; }
ask() { number=$1; shift; node "$number" psql -qAtv ON_ERROR_STOP=1 -c "$@" >/dev/null; }

# Makes Citus of the database PGDATABASE of the three servers.
ready() {
  for n in $nodes; do ask "$n" 'CREATE EXTENSION citus'; done
  sockets=$(node 0 run sh -c 'echo $PGHOST')
  ask 0 "SELECT citus_set_coordinator_host('$sockets', $(node 0 run sh -c 'echo $PGPORT'))"
  for n in 1 2; do ask 0 "SELECT citus_add_node('$sockets', $(node "$n" run sh -c 'echo $PGPORT'))"; done
  ask 0 'CREATE EXTENSION docpatterns'
  node 0 psql -qc 'CREATE EXTENSION pgtap' >/dev/null 2>&1 || true
}

start() {
  CONF="shared_preload_libraries = 'citus'
max_connections = 200
max_worker_processes = 32
max_prepared_transactions = 200
shared_buffers = 128MB
citus.node_conninfo = 'sslmode=prefer'
citus.enable_statistics_collection = off
citus.shard_count = 8
citus.local_hostname = '$("$cluster" run sh -c 'echo $PGHOST')'
"
  export CONF
  for n in $nodes; do node "$n" start; done
  node 0 psql -Atc "SELECT 1 FROM pg_extension WHERE extname = 'citus'" | grep -q . && return
  ready
}

database() {
  for n in $nodes; do
    node "$n" psql -qc "DROP DATABASE IF EXISTS \"$1\" WITH (FORCE)" -c "CREATE DATABASE \"$1\"" >/dev/null 2>&1
  done
  export PGDATABASE="$1"
  ready
}

what=${1:-}
[ $# = 0 ] || shift
case $what in
  start) start ;;
  database) database "$1" ;;
  stop|destroy) for n in 2 1 0; do node "$n" "$what"; done ;;
  psql|run) exec "$cluster" "$what" "$@" ;;
  missing)
    share=$("${PG_CONFIG:-pg_config}" --sharedir)
    [ ! -e "$share/extension/citus.control" ] || exit 1
    echo "Citus is not installed for $("${PG_CONFIG:-pg_config}" --version)" ;;
  *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 2 ;;
esac
