#!/bin/bash
# One server beside a coordinator and two workers of Citus, on one machine: the same documents in tables without patterns and
# with three (attribute, outlier, versioning), turn by turn.
#
#   citus.sh [PATTERN]     only operations whose name matches the shell pattern
#
# ROWS (default 100000) is how many documents, ROUNDS (default 5) how often each operation is measured, SECONDS_EACH (default 5)
# how long a run of statements takes. Prints for each operation the median of the elapsed microseconds and of the CPU time that
# the coordinator (or the only server) and the workers took, then the ratios. All servers share the machine: what it shows is
# what distribution costs, not what more machines gain. CPU time is what to compare when the machine has other work.
# The servers are deleted at the end.
set -eu -o pipefail
cd "$(dirname "$0")/.."
export CLUSTER=${CLUSTER:-citusbench} LC_ALL=C.UTF-8
cluster=test/env/cluster.sh citus=test/env/citus.sh
rows=${ROWS:-100000} rounds=${ROUNDS:-5} seconds=${SECONDS_EACH:-5} only=${1:-*}
lack=$("$citus" missing) && { echo "$lack"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"; NODE=3 "$cluster" destroy; "$citus" destroy' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export PGOPTIONS='-c client_min_messages=warning'
chmod 755 "$work"

"$citus" start
CONF='shared_buffers = 128MB' NODE=3 "$cluster" start
place() { [ "$1" = one ] && echo 3 || true; }  # NODE of a side: the only server, or the coordinator
sql() { local side=$1; shift; NODE=$(place "$side") "$cluster" psql -qXAt -v ON_ERROR_STOP=1 "$@"; }

# CPU time of a server and all its processes, in microseconds
cpu() {  # cpu NODE
  local pid
  pid=$(NODE=$1 "$cluster" psql -qXAtc "SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)")
  cat /proc/[0-9]*/stat 2>/dev/null | sed 's/(.*)/x/' |
    awk -v pid="$pid" -v tick="$(getconf CLK_TCK)" '$1 == pid { t += $14 + $15 + $16 + $17 } $4 == pid { t += $14 + $15 } END { printf "%d\n", t * 1e6 / tick }'
}

sql one -c 'CREATE EXTENSION IF NOT EXISTS docpatterns'
for node in '' 1 2 3; do  # its work would be counted
  NODE=$node "$cluster" psql -qXc 'ALTER SYSTEM SET autovacuum = off' -c 'SELECT pg_reload_conf()' >/dev/null
done
for side in one many; do
  sql "$side" >/dev/null <<SQL
CREATE TABLE plain (_id bson_value PRIMARY KEY, doc bson);
CREATE TABLE ours (_id bson_value PRIMARY KEY, doc bson);
$([ "$side" = one ] || echo "SELECT create_distributed_table('plain', '_id'), create_distributed_table('ours', '_id', colocate_with => 'none');")
SELECT attribute_enable('ours', 'attributes', paths => ARRAY['color', 'size', 'weight']);
SELECT outlier_enable('ours', field => 'buyers', threshold => 20);
SELECT versioning_enable('ours');
SQL
done
sql one >"$work/rows" <<SQL
COPY (SELECT i::bson_value, bson_build('_id', i, 'title', 'Title of book ' || i, 'group', i % 100, 'price', i % 7919,
    'color', (ARRAY['red', 'green', 'blue'])[i % 3 + 1], 'size', i % 50, 'text', repeat(md5(i::text), 6),
    'buyers', (SELECT array_agg('user' || j) FROM generate_series(1, i % 8 + 1) j))
  FROM generate_series(1, $rows) i) TO STDOUT
SQL

# What is measured: name, a statement of pgbench (@ is the table) or "once" and SQL, of which tables; per is what its time is divided by
names=() hows=() statements=() tables=() pers=()
operation() { names+=("$1") hows+=("$2") tables+=("$3") pers+=("$4") statements+=("$5"); }
operation 'load by COPY, a document' once 'plain ours' "$rows" "\\copy @ FROM '$work/rows'"
operation 'point read' each 'plain ours' 1 'SELECT doc FROM @ WHERE _id = :k::bson_value;'
operation 'update of a field' each 'plain ours' 1 "UPDATE @ SET doc = bson_update_immutable(doc, '{\$inc: {price: 1}}') WHERE _id = :k::bson_value;"
operation 'GROUP BY, a document' once 'plain ours' "$rows" "SELECT doc -> 'group', count(*), sum(doc -> 'price') FROM @ GROUP BY 1"
operation 'pattern_check, a document' once ours "$rows" "SELECT * FROM pattern_check('@')"
operation 'elements: bson_array_length()' each ours 1 "SELECT bson_array_length(doc, 'buyers') FROM @ WHERE _id = :k::bson_value;"
operation 'elements: outlier_count()' each ours 1 "SELECT outlier_count('@', :k::bson_value);"
operation 'push: bson_update_immutable()' each ours 1 "UPDATE @ SET doc = bson_update_immutable(doc, '{\$push: {buyers: \"x\"}}') WHERE _id = :k::bson_value;"
operation 'push: outlier_push()' each ours 1 "SELECT outlier_push('@', :k::bson_value, 'x'::text);"

# Runs it once: prints the microseconds that passed, and those of the CPU of the first server and of the workers, per unit
run() {  # run SIDE TABLE OPERATION
  local side=$1 statement=${statements[$3]//@/$2} node start end before after n w0 w1 tps
  node=$(place "$side")
  [ "${names[$3]}" != 'load by COPY, a document' ] || sql "$side" -c "TRUNCATE $2" >/dev/null
  before=$(cpu "$node") w0=0 w1=0
  [ "$side" = one ] || w0=$(($(cpu 1) + $(cpu 2)))
  if [ "${hows[$3]}" = once ]; then
    start=$(date +%s%N)
    sql "$side" -c "$statement" >/dev/null
    end=$(date +%s%N)
    n=${pers[$3]} took=$(((end - start) / 1000))
  else
    printf '\\set k random(1, %s)\n%s\n' "$rows" "$statement" >"$work/statement.sql"
    chmod 644 "$work/statement.sql"
    NODE=$node "$cluster" run pgbench -n -M prepared -T "$seconds" -f "$work/statement.sql" >"$work/printed" 2>"$work/errors" ||
      { cat "$work/errors" >&2; return 1; }
    n=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' "$work/printed")
    tps=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' "$work/printed")
    took=$(awk -v n="$n" -v tps="$tps" 'BEGIN { printf "%d", n / tps * 1e6 }')
  fi
  after=$(cpu "$node")
  [ "$side" = one ] || w1=$(($(cpu 1) + $(cpu 2)))
  awk -v n="$n" -v took="$took" -v first=$((after - before)) -v workers=$((w1 - w0)) 'BEGIN { printf "%.2f\t%.2f\t%.2f\n", took / n, first / n, workers / n }'
}

for ((i = 0; i < ${#names[@]}; i++)); do
  # shellcheck disable=SC2053
  [[ ${names[$i]} == $only || $i = 0 ]] || continue
  for ((round = 1; round <= rounds; round++)); do
    for table in ${tables[$i]}; do
      for side in one many; do
        line=$(run "$side" "$table" "$i")
        printf '%s\t%s\t%s\t%s\n' "${names[$i]}" "$side" "$table" "$line"
      done
    done
  done
  [ "$i" != 0 ] || for side in one many; do sql "$side" -c 'VACUUM ANALYZE plain, ours'; done
done >"$work/times"

awk -F'\t' '
  function median(list,    a, n, i, j, x) {
    n = split(list, a, " ")
    for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] + 0 < a[j - 1] + 0; j--) { x = a[j]; a[j] = a[j - 1]; a[j - 1] = x }
    return a[int((n + 1) / 2)]
  }
  !($1 in seen) { seen[$1] = 1; order[++n] = $1 }
  { key = $1 SUBSEP $2 SUBSEP $3; for (c = 4; c <= 6; c++) of[key, c] = of[key, c] " " $c; have[key] = 1 }
  END {
    printf "%-32s %-8s %10s %10s %10s %10s   %s\n", "microseconds", "", "one server", "its CPU", "Citus", "its CPU", "of it: coordinator, workers"
    for (i = 1; i <= n; i++) for (t = 1; t <= 2; t++) {
      table = t == 1 ? "plain" : "ours"
      one = order[i] SUBSEP "one" SUBSEP table; many = order[i] SUBSEP "many" SUBSEP table
      if (!(one in have)) continue
      for (c = 4; c <= 6; c++) m[c] = median(of[many, c])
      printf "%-32s %-8s %10.1f %10.1f %10.1f %10.1f   %.1f, %.1f\n", order[i], table, median(of[one, 4]), median(of[one, 5]), m[4], m[5] + m[6], m[5], m[6]
      took[order[i], table] = m[4]; cpu[order[i], table] = m[5] + m[6]
      if (table == "ours" && (order[i], "plain") in took)
        printf "%-32s %-8s with patterns / without, both on Citus: %.2f of the time, %.2f of the CPU%s\n", "", "", took[order[i], "ours"] / took[order[i], "plain"], cpu[order[i], "ours"] / cpu[order[i], "plain"],
          order[i] == "point read" ? "; the bar is 1.2" : ""
      if (order[i] ~ /outlier/)
        printf "%-32s %-8s the call / plain SQL by key, both on Citus: %.2f of the time, %.2f of the CPU\n", "", "", took[order[i], "ours"] / took[order[i - 1], "ours"], cpu[order[i], "ours"] / cpu[order[i - 1], "ours"]
    }
  }' "$work/times"
"$cluster" run postgres --version
sql many -c "SELECT 'Citus ' || extversion FROM pg_extension WHERE extname = 'citus'"
grep -m1 'model name' /proc/cpuinfo | sed "s/.*: //; s/$/, $(nproc) CPUs/"
