#!/bin/bash
# Single inserts into bench.ingest_plain and bench.ingest_readings by two clients, turn by turn. Prints the median time of an
# insert and the ratio; throughput is the reverse. Called by bucket.sql with the environment of its cluster.
#
# INGEST_SCALE is a percentage of 30,000 inserts per client and round (an hour of 1,000 sensors), INGEST_ROUNDS how many rounds.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
inserts=$((30000 * ${INGEST_SCALE:-100} / 100))
for side in plain readings; do
  # n counts the inserts of a client; both together send every sensor's measurement of a minute, then the next minute's
  cat >"$dir/$side.sql" <<SQL
\\set i :n * 2 + :client_id
\\set sensor :i % 1000 + 1
\\set minute :i / 1000
\\set temperature 200 + :i / 7919 % 40
\\set n :n + 1
INSERT INTO bench.ingest_$side VALUES (:sensor, timestamptz '2024-01-01 00:00+00' + :minute * interval '1 min', :temperature / 10.0::float8, :sensor % 50);
SQL
done

# The microseconds of an insert: run SIDE ROUND
run() {
  pgbench -n -M prepared -c 2 -j 2 -t "$inserts" -D n=$(($2 * inserts)) -f "$dir/$1.sql" 2>"$dir/errors" |
    awk '/^tps/ { print 1e6 / $3; found = 1 } END { exit !found }' || { cat "$dir/errors" >&2; exit 1; }
}
for ((round = 0; round < ${INGEST_ROUNDS:-5}; round++)); do
  plain=$(run plain $round)
  ours=$(run readings $round)
  echo "$plain $ours"
done >"$dir/times"
median() { sort -g | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }
plain=$(awk '{ print $1 }' "$dir/times" | median)
ours=$(awk '{ print $2 }' "$dir/times" | median)
echo
echo 'operation                                 plain us    our us   ratio    bar         spread of the ratio'
awk -v plain="$plain" -v ours="$ours" '{ r = $2 / $1; if (!low || r < low) low = r; if (r > high) high = r }
  END { printf "%-40s %9.1f %9.1f %7.3f   1.18  %s  %.3f-%.3f\n", "single inserts, 2 clients", plain, ours, ours / plain,
        (ours / plain > 1.18 ? "ABOVE" : "     "), low, high
        printf "=\tsingle inserts, 2 clients\t%.4g\t1.18\tlow\t%.3f\t%.3f\t%.4g\t%.4g\n", ours / plain, low, high, plain, ours }' "$dir/times"
