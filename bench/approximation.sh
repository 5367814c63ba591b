#!/bin/bash
# Counters on one hot row under several clients, beside the exact +1 that everybody writes: events a second, and the ratio. Then
# how far the counts are off that as many clients make together on the same rows at the same time.
#
#   approximation.sh CLUSTER SECONDS CLIENTS
#
# Every event is a transaction of its own and the server flushes its log to disk. "in the server": a procedure calls and commits
# in a loop, for both sides, so that the counter is measured; "over the wire": every event is a statement of a client, which
# costs more than the counter does (a SELECT 1 is shown beside it). The private cluster must be running; fsync is switched on in
# it for the time of the run.
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
SELECT collection_create('exact'), collection_create('steps'), collection_create('errors'), collection_create('slots'), collection_create('many');
SELECT approximation_enable('steps', 'views', step => 1000), approximation_enable('errors', 'views', error => 0.01), approximation_enable('slots', 'views', slots => 16);
INSERT INTO exact (doc) VALUES ('{_id: 1, views: 0}');
INSERT INTO steps (doc) VALUES ('{_id: 1, views: 0}');
INSERT INTO errors (doc) VALUES ('{_id: 1, views: 5000000}');
INSERT INTO slots (doc) VALUES ('{_id: 1, views: 0}');
SELECT approximation_enable('many', 'steps', step => 100), approximation_enable('many', 'errors', error => 0.05);
INSERT INTO many (doc) SELECT bson_build('_id', i) FROM generate_series(1, 200) i;

CREATE PROCEDURE exact(n int) LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..n LOOP UPDATE bench_approximation.exact SET doc = bson_update(doc, '{$inc: {views: 1}}') WHERE _id = 1; COMMIT; END LOOP; END $$;
CREATE PROCEDURE steps(n int) LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..n LOOP PERFORM approximation_add('bench_approximation.steps', 1, 1); COMMIT; END LOOP; END $$;
CREATE PROCEDURE errors(n int) LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..n LOOP PERFORM approximation_add('bench_approximation.errors', 1, 1); COMMIT; END LOOP; END $$;
CREATE PROCEDURE slots(n int) LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1..n LOOP PERFORM approximation_add('bench_approximation.slots', 1, 1); COMMIT; END LOOP; END $$;
-- all clients go through the counters in one order and stay with each for some events
CREATE PROCEDURE many(n int) LANGUAGE plpgsql AS $$
BEGIN
  FOR k IN 1..200 LOOP
    FOR i IN 1..n LOOP PERFORM approximation_add('bench_approximation.many', k, 1, 'steps'), approximation_add('bench_approximation.many', k, 1, 'errors'); COMMIT; END LOOP;
  END LOOP;
END $$;
SQL
echo "UPDATE bench_approximation.exact SET doc = bson_update(doc, '{\$inc: {views: 1}}') WHERE _id = 1;" >"$work/exact.sql"
echo 'SELECT 1;' >"$work/nothing.sql"
for t in steps errors slots; do echo "SELECT approximation_add('bench_approximation.$t', 1, 1);" >"$work/$t.sql"; done
for t in exact slots; do echo "CALL bench_approximation.$t(50);" >"$work/loop_$t.sql"; done
for t in steps errors; do echo "CALL bench_approximation.$t(2000);" >"$work/loop_$t.sql"; done
chmod 755 "$work"; chmod 644 "$work"/*.sql
events() {  # events FILE EVENTS_PER_CALL: of the best of two runs
  local best=0 tps
  for _ in 1 2; do
    tps=$("$cluster" run pgbench -n -M prepared -c "$clients" -j 2 -T "$seconds" -f "$work/$1.sql" 2>/dev/null | sed -n 's/^tps = \([0-9.]*\).*/\1/p')
    best=$(awk -v a="$best" -v b="$tps" -v n="$2" 'BEGIN { x = b * n; if (x < a) x = a; printf "%d", x }')
  done
  echo "$best"
}
# show NAME RATE BASE BAR [NAME IN THE REPORT]: a line of the table; where it compares, also what run.sh collects
show() { printf '%-46s %9d %7.1f %5s\n' "$1" "$2" "$(awk -v n="$2" -v b="$3" 'BEGIN { print n / b }')" "$4";
  [ "$2" = "$3" ] || printf '=\t%s\t%s\t%s\thigh\t\t\t%s\t%s\n' "${5:-$1}" "$(awk -v n="$2" -v b="$3" 'BEGIN { printf "%.4g", n / b }')" "$4" "$3" "$2"
}
echo "one hot row, $clients clients                     events/s   ratio   bar"
loop=$(events loop_exact 50)
show 'in the server: exact +1' "$loop" "$loop" ''
show 'step => 1000' "$(events loop_steps 2000)" "$loop" 60 'step => 1000, in the server'
show 'error => 0.01, at 5 million' "$(events loop_errors 2000)" "$loop" 60 'error => 0.01, in the server'
show 'slots => 16, exact' "$(events loop_slots 50)" "$loop" 3 'slots => 16, exact, in the server'
base=$(events exact 1)
show 'over the wire: exact +1' "$base" "$base" ''
show 'step => 1000' "$(events steps 1)" "$base" '' 'step => 1000, over the wire'
show 'error => 0.01, at 5 million' "$(events errors 1)" "$base" '' 'error => 0.01, over the wire'
show 'slots => 16, exact' "$(events slots 1)" "$base" 3 'slots => 16, exact, over the wire'
show 'SELECT 1, for comparison' "$(events nothing 1)" "$base" ''
sql <<'SQL'
SELECT format('shards: %s rows', (SELECT count(*) FROM bench_approximation.slots_views_shards));
SQL

# 200 counters that all clients count in at the same time
each=250
for i in $(seq "$clients"); do sql -c "SET docpatterns.approximation_seed = $((100 + i))" -c "CALL bench_approximation.many($each)" & done
wait
sql -v n=$((each * clients)) <<'SQL'
SELECT format('200 counters of %s events by several clients at once: mean, rms error, bound'::text, :n);
SELECT format('%-12s %8s %8s %8s', what, round((100 * (avg(v) / :n - 1))::numeric, 2) || ' %', round((100 * sqrt(avg((v - :n) ^ 2)) / :n)::numeric, 2) || ' %', round(100 * bound, 2) || ' %')
FROM (SELECT 'step 100' AS what, (doc ->> 'steps')::float8 AS v, sqrt(99.0 / :n) AS bound FROM bench_approximation.many UNION ALL SELECT 'error 0.05', (doc ->> 'errors')::float8, 0.05 FROM bench_approximation.many) q GROUP BY what, bound;
SELECT format('violations found by pattern_check: %s', (SELECT count(*) FROM pattern_check('bench_approximation.slots')) + (SELECT count(*) FROM pattern_check('bench_approximation.many')));
DROP SCHEMA bench_approximation CASCADE;
SQL
