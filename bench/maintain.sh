#!/bin/bash
# How stale deferred data is with background workers: source rows are written at a fixed rate, and every ten milliseconds the age
# of the oldest write is taken that the documents do not show yet (0 if they show all).
#
#   maintain.sh CLUSTER SECONDS RATE
#
# Every write is a transaction of its own and the server flushes its log to disk. The private cluster must be running; it is
# restarted with the library preloaded, and at the end without.
set -eu
cluster=$1 seconds=${2:-10} rate=${3:-1000}
work=$(mktemp -d)
settings='fsync shared_preload_libraries docpatterns.maintain_databases'
finish() {
  rm -rf "$work"
  for name in $settings; do "$cluster" psql -qXc "ALTER SYSTEM RESET $name" || true; done
  "$cluster" restart
}
trap finish EXIT
export PGOPTIONS='-c client_min_messages=warning'
sql() { "$cluster" psql -qXAt -v ON_ERROR_STOP=1 "$@"; }
sql -c "LOAD 'docpatterns'" -c 'ALTER SYSTEM SET fsync = on' -c "ALTER SYSTEM SET shared_preload_libraries = 'docpatterns'" -c "ALTER SYSTEM SET docpatterns.maintain_databases = 'postgres'"
"$cluster" restart
sql >/dev/null <<'SQL'
CREATE EXTENSION IF NOT EXISTS docpatterns;
DROP SCHEMA IF EXISTS bench_maintain CASCADE;
CREATE SCHEMA bench_maintain;
SET search_path = bench_maintain, public;
CREATE TABLE customers (id int PRIMARY KEY, doc bson);
CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, doc bson);
CREATE TABLE reviews (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, doc bson);
CREATE TABLE people (id int PRIMARY KEY, doc bson);
CREATE TABLE letters (id int PRIMARY KEY, doc bson);
CREATE TABLE samples (what text, age double precision);
INSERT INTO customers SELECT i, bson_build('_id', i) FROM generate_series(1, 1000) i;
INSERT INTO people SELECT i, bson_build('_id', i, 'name', 'n' || i) FROM generate_series(1, 1000) i;
INSERT INTO letters SELECT i, bson_build('_id', i, 'to', bson_build('_id', i % 1000 + 1, 'name', 'n' || (i % 1000 + 1))) FROM generate_series(1, 10000) i;
SELECT computed_enable('customers', 'orders', 'customer', '{spent: {$sum: "$price"}, orders: {$count: {}}}', mode => 'deferred', name => 'spent'),
  subset_enable('customers', 'newest', 'reviews', 'customer', order_by => '{at: -1}', keep => 5, count_field => 'reviews', count_mode => 'deferred', name => 'newest'),
  reference_enable('letters', 'to', 'people', live => '{name}', refresh => 'deferred', name => 'to');
CALL pattern_build('customers', 'spent');
CALL pattern_build('customers', 'newest');
CALL pattern_build('letters', 'to');
SQL
cat >"$work/computed.sql" <<'EOS'
\set c random(1, 1000)
INSERT INTO bench_maintain.orders (doc) VALUES (bson_build('customer', :c::int, 'price', 5));
EOS
cat >"$work/subset.sql" <<'EOS'
\set c random(1, 1000)
INSERT INTO bench_maintain.reviews (doc) VALUES (bson_build('customer', :c::int, 'at', now()));
EOS
cat >"$work/reference.sql" <<'EOS'
\set c random(1, 1000)
\set n random(1, 1000000)
UPDATE bench_maintain.people SET doc = bson_set(doc, 'name', 'n' || :n::int) WHERE id = :c;
EOS
chmod 755 "$work"; chmod 644 "$work"/*.sql
printf '%-34s %9s %9s %9s %9s\n' "deferred, $rate source writes a second" 'writes/s' 'p50 ms' 'p99 ms' 'max ms'
for what in computed:customers_spent_queue subset:customers_newest_queue reference:letters_to_queue; do
  queue=${what#*:} what=${what%:*}
  "$cluster" run pgbench -n -M prepared -c 8 -j 2 -R "$rate" -T "$((seconds + 2))" -f "$work/$what.sql" >"$work/out" 2>"$work/err" &
  sleep 1
  sql <<SQL
DO \$\$
DECLARE ends timestamptz := clock_timestamp() + interval '$seconds s';
BEGIN
  WHILE clock_timestamp() < ends LOOP
    INSERT INTO bench_maintain.samples SELECT '$what', coalesce(1000 * extract(epoch FROM clock_timestamp() - min(q.queued_at)), 0) FROM bench_maintain.$queue q;
    COMMIT;
    PERFORM pg_sleep(0.01);
    COMMIT;
  END LOOP;
END \$\$;
SQL
  wait; head -3 "$work/err"
  tps=$(sed -n 's/^tps = \([0-9]*\).*/\1/p' "$work/out")
  printf '%-34s %9s %9s %9s %9s\n' "$what" "$tps" $(sql -F ' ' -c "SELECT round(percentile_cont(0.5) WITHIN GROUP (ORDER BY age)::numeric, 1), round(percentile_cont(0.99) WITHIN GROUP (ORDER BY age)::numeric, 1), round(max(age)::numeric, 1) FROM bench_maintain.samples WHERE what = '$what'")
done
echo "wrong: $(sql -c 'SELECT pg_sleep(1)' -c 'SELECT count(*) FROM pattern_check()' | tail -1)"
[ -n "${KEEP:-}" ] || sql -c 'DROP SCHEMA bench_maintain CASCADE'
