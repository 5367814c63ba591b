#!/bin/bash
# Measures bson beside jsonb, and the patterns beside what a person would write by hand: the same documents, the same server,
# turn by turn. Most tables print for each operation the median CPU time that the backend took over all documents, the ratio,
# the bar that the ratio is meant to stay below, and the lowest and highest ratio of a round. Where several clients write at
# the same time, throughput is measured, and higher is better; the headings say what is what.
#
#   run.sh [PATTERN]     only operations whose name matches the shell pattern, and only throughput of the patterns (subset,
#                        computed, approximation, preallocated, versioning) whose name does
#
# SCALE=10 takes a tenth of the documents, ROUNDS (default 5) is how often each is measured, SECONDS_EACH (default 5, less with
# a smaller scale) how long each run of several clients takes. The private cluster is stopped at the end.
#
# Every comparison is also kept in build/bench/results, one to a line (see report.sh), and build/bench/performance.md with its
# charts is made of that; a run of everything at full scale puts them into docs/.
set -eu -o pipefail
cd "$(dirname "$0")/.."
export CLUSTER=bench LC_ALL=C.UTF-8
cluster=test/env/cluster.sh
scale=${SCALE:-100} rounds=${ROUNDS:-5} only=${1:-*}
seconds=${SECONDS_EACH:-$((scale >= 100 ? 5 : 1 + scale / 25))}
trap '"$cluster" stop' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

results=build/bench/results
mkdir -p build/bench

# Shows what is printed and keeps the lines that begin with "=", which are for the report, with the area that they belong to.
collect() {  # collect AREA
  local line
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      $'=\t'*) printf '%s\t%s\n' "$1" "${line#$'=\t'}" >>"$results" ;;
      *) printf '%s\n' "$line" ;;
    esac
  done
}

# A file of SQL with what measures; at most so many percent of the documents.
sql() {  # sql FILE [SCALE]
  timeout 2400 "$cluster" psql -qAt -v ON_ERROR_STOP=1 -v rounds="$rounds" -v only="$only" -v scale="${2:-$scale}" -f bench/measure.sql -f "bench/$1" |
    collect "${1%.sql}"
}

# A script that measures throughput of several clients, or anything else that has one name, if it is asked for.
script() {  # script NAME COMMAND...
  local name=$1
  shift
  # shellcheck disable=SC2053
  [[ $name == $only ]] || return 0
  echo
  "$@" | collect "$name"
}

"$cluster" start
# CPU time is compared, so both sides of every operation fit into the buffers: copying pages from the kernel is no part of it
"$cluster" psql -qc "ALTER SYSTEM SET shared_buffers = '1GB'"
"$cluster" restart
"$cluster" run postgres --version
machine=$(grep -m1 'model name' /proc/cpuinfo | sed 's/.*: //')
echo "$machine"
printf '@%s\t%s\n' date "$(date -u +%Y-%m-%d)" scale "$scale" rounds "$rounds" seconds "$seconds" only "$only" \
  machine "$machine, $(nproc) CPUs, $(awk '/^MemTotal/ { printf "%.0f GB", $2 / 1e6 }' /proc/meminfo)" \
  system "$(. /etc/os-release && echo "$PRETTY_NAME"), Linux $(uname -r | sed 's/-.*//')" \
  versions "docpatterns $(sed -n "s/^default_version = '\(.*\)'/\1/p" docpatterns.control), PostgreSQL $("$cluster" run postgres --version | awk '{ print $3 }'), libbson $(pkg-config --modversion bson2 2>/dev/null || pkg-config --modversion libbson-1.0)" >"$results"
echo "making the documents"
timeout 900 "$cluster" psql -qAt -v scale="$scale" -f bench/shapes.sql
bench/packages.sh "$cluster" "$scale"

for file in types mql pipeline index estimates outlier bucket reference single_table attribute payload schema_versioning polymorphic; do sql "$file.sql"; done
sql loads.sql
script subset timeout 2400 bench/subset.sh "$cluster" "$seconds" 1
sql computed.sql
script computed timeout 2400 env COMPUTED_SECONDS="$seconds" COMPUTED_ROUNDS="$rounds" "$cluster" run bench/computed.sh
script query_table timeout 2400 bench/query_table.sh "$cluster" "$seconds" 1
# how far counts are off does not depend on how many there are
script approximation sql approximation.sql "$((scale > 5 ? 5 : scale))"
script approximation timeout 2400 bench/approximation.sh "$cluster" "$seconds" 8
script preallocated timeout 2400 bench/preallocated.sh "$cluster" "$seconds" 8
script change_feed timeout 2400 bench/change_feed.sh "$cluster" "$seconds" 8
script maintain timeout 2400 bench/maintain.sh "$cluster" "$seconds" 1000
script versioning sql versioning.sql
script versioning timeout 2400 bench/versioning.sh "$cluster" "$seconds" "$scale"
sql single_collection.sql
script single_collection timeout 2400 bench/single_collection.sh "$cluster" "$seconds" "$rounds"
for file in distinct tree tree_pattern graph; do sql "$file.sql"; done
script kv sql kv.sql
script kv timeout 2400 bench/kv.sh "$cluster" "$seconds" "$((scale * 10000))"
if /usr/bin/python3 -c 'import bson, psycopg, pymongo' 2>/dev/null; then
  script clients timeout 2400 env SCALE="$scale" ROUNDS="$rounds" "$cluster" run /usr/bin/python3 bench/clients.py
fi

printf '@load\t%s\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)" >>"$results"
bench/report.sh "$results" build/bench
if [ "$scale" -ge 100 ] && [ "$only" = '*' ]; then
  cp build/bench/performance.md build/bench/performance-*.svg docs/
  echo "docs/performance.md shows it"
else
  echo "build/bench/performance.md shows it"
fi
