#!/bin/bash
# Measures bson beside jsonb: the same documents, the same server, one session, turn by turn. Prints for each operation the
# median CPU time that the backend took over all documents, the ratio, the bar that the ratio is meant to stay below, and the
# lowest and highest ratio of a round.
#
#   run.sh [PATTERN]     only operations whose name matches the shell pattern
#
# SCALE=10 takes a tenth of the documents, ROUNDS (default 5) is how often each is measured. The private cluster is stopped at the end.
set -eu
cd "$(dirname "$0")/.."
export CLUSTER=bench LC_ALL=C.UTF-8
cluster=test/env/cluster.sh
trap '"$cluster" stop' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"$cluster" start
# CPU time is compared, so both sides of every operation fit into the buffers: copying pages from the kernel is no part of it
"$cluster" psql -qc "ALTER SYSTEM SET shared_buffers = '1GB'"
"$cluster" restart
"$cluster" run postgres --version
grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //'
echo "making the documents"
timeout 900 "$cluster" psql -qAt -v scale="${SCALE:-100}" -f bench/shapes.sql
bench/packages.sh "$cluster" "${SCALE:-100}"
for file in bench/types.sql bench/mql.sql bench/index.sql bench/estimates.sql bench/outlier.sql bench/reference.sql bench/bucket.sql bench/computed.sql bench/tree.sql bench/tree_pattern.sql bench/graph.sql bench/distinct.sql; do
  [ -e "$file" ] || continue
  timeout 2400 "$cluster" psql -qAt -v ON_ERROR_STOP=1 -v rounds="${ROUNDS:-5}" -v only="${1:-*}" -v scale="${SCALE:-100}" -f bench/measure.sql -f "$file"
done
