#!/bin/bash
# Single inserts by several clients into a plain collection, into one with a computed pattern of four accumulators, and into
# one with the statement trigger that a person would write, turn by turn. Prints throughput against the plain collection.
#
# COMPUTED_SECONDS is how long each run takes, COMPUTED_ROUNDS how many rounds.
set -eu
dir=$(mktemp -d)

seconds=${COMPUTED_SECONDS:-3} rounds=${COMPUTED_ROUNDS:-5} clients=${COMPUTED_CLIENTS:-2}
psql -XqAt -v ON_ERROR_STOP=1 <<'SQL'
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS computed_bench CASCADE;
CREATE SCHEMA computed_bench;
SET search_path = computed_bench, public;
SELECT collection_create('plain'), collection_create('ours'), collection_create('hand'), collection_create('totals'), collection_create('hand_totals') \g /dev/null
SELECT computed_enable('totals', source => 'ours', on_field => 'movie',
  fields => '{viewers: {$sum: "$viewers"}, revenue: {$sum: "$revenue"}, screenings: {$count: {}}, average: {$avg: "$viewers"}}') \g /dev/null
CREATE INDEX ON plain ((doc -> 'movie'));
CREATE INDEX ON hand ((doc -> 'movie'));
CREATE FUNCTION hand() RETURNS trigger LANGUAGE plpgsql SET search_path = computed_bench, public AS $$
BEGIN
  UPDATE hand_totals t SET doc = bson_update(t.doc, bson_build('$inc', bson_build('viewers', d.v, 'revenue', d.r, 'screenings', d.n)))
  FROM (SELECT doc -> 'movie' AS movie, sum((doc -> 'viewers')::int) AS v, sum((doc -> 'revenue')::int) AS r, count(*)::int AS n FROM new_rows GROUP BY 1) d
  WHERE t._id = d.movie;
  RETURN NULL;
END $$;
CREATE TRIGGER hand AFTER INSERT ON hand REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION hand();
INSERT INTO totals (doc) SELECT bson_build('_id', i, 'title', 'Movie ' || i) FROM generate_series(1, 1000) i;
INSERT INTO hand_totals (doc) SELECT bson_build('_id', i, 'title', 'Movie ' || i, 'viewers', 0, 'revenue', 0, 'screenings', 0) FROM generate_series(1, 1000) i;
VACUUM ANALYZE totals, hand_totals;
SQL
for table in plain ours hand; do
  for groups in 1000 1; do
    cat >"$dir/$table.$groups" <<SQL
\\set movie random(1, $groups)
\\set viewers random(1, 500)
INSERT INTO computed_bench.$table (doc) VALUES (public.bson_build('theater', 'Alger Cinema', 'location', 'Lakeview, OR', 'movie', :movie::int, 'viewers', :viewers::int, 'revenue', :viewers::int * 10));
SQL
  done
done
# transactions per second: run TABLE GROUPS
run() {
  psql -XqAt -c "TRUNCATE computed_bench.plain, computed_bench.hand" -c "SET docpatterns.maintain = off; TRUNCATE computed_bench.ours" \
    -c "VACUUM computed_bench.totals, computed_bench.hand_totals" -c CHECKPOINT
  pgbench -n -M prepared -c "$clients" -j 2 -T "$seconds" -f "$dir/$1.$2" 2>"$dir/errors" |
    awk '/^tps/ { print $3; found = 1 } END { exit !found }' || { cat "$dir/errors" >&2; exit 1; }
}
median() { sort -g | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }
echo
echo 'throughput of single inserts            plain/s   ours/s   ratio    bar        hand-written   spread of the ratio'
for groups in 1000 1; do
  for ((round = 0; round < rounds; round++)); do
    echo "$(run plain $groups) $(run ours $groups) $(run hand $groups)"
  done >"$dir/rates.$groups"
  awk -v name="$clients clients, $([ $groups = 1 ] && echo 'all on one group' || echo "$groups groups")" -v bar="$([ $groups = 1 ] && echo 0.65 || echo 0.75)" \
    -v plain="$(awk '{ print $1 }' "$dir/rates.$groups" | median)" -v ours="$(awk '{ print $2 }' "$dir/rates.$groups" | median)" -v hand="$(awk '{ print $3 }' "$dir/rates.$groups" | median)" '
    { r = $2 / $1; if (!low || r < low) low = r; if (r > high) high = r }
    END { printf "%-38s %8.0f %8.0f %7.3f   %.2f  %s   %5.3f       %.3f-%.3f\n", name, plain, ours, ours / plain, bar, (ours / plain < bar ? "BELOW" : "     "), hand / plain, low, high
          printf "=\t%s: inserts a second\t%.4g\t%s\thigh\t%.3f\t%.3f\t%.4g\t%.4g\n", name, ours / plain, bar, low, high, plain, ours
          printf "=\t%s: beside a trigger by hand\t%.4g\t1\thigh\t\t\t%.4g\t%.4g\n", name, ours / hand, hand, ours }' "$dir/rates.$groups"
done
psql -XqAt -c 'SET client_min_messages = warning' -c 'DROP SCHEMA computed_bench CASCADE'
