#!/bin/bash
# Background workers that maintain databases: commits wake them, and they survive errors, cancellation, being killed, a crash of
# the server, DROP DATABASE, DROP EXTENSION and a promotion. Then a soak: a database that nobody maintains by hand, under load.
# Its tables stop growing, little is due at any time, and everything is true. SOAK_MINUTES=30 SOAK_RATE=1500 (transactions a second,
# of which three in eight insert a measurement) SOAK_ORDERS=100000 make it longer and larger.
. "$DP_TOP/test/env/tap.sh"
set -u
seconds=${STRESS_SECONDS:-12} rate=${SOAK_RATE:-150} orders=${SOAK_ORDERS:-1000}
[ -z "${SOAK_MINUTES:-}" ] || seconds=$((SOAK_MINUTES * 60))
echo "# $seconds seconds"
plan 36
export PGOPTIONS='-c client_min_messages=warning -c timezone=UTC' PGDATABASE=dp_maintain
admin() { psql -XqAt -d postgres -v ON_ERROR_STOP=1 "$@"; }
ask() { psql -XqAt -c "$1" 2>&1; }
finish() {
  "$DP_CLUSTER" leave
  for name in shared_preload_libraries docpatterns.maintain_databases docpatterns.maintain_interval docpatterns.maintain_workers; do
    admin -c "ALTER SYSTEM RESET $name" 2>/dev/null
  done
  "$DP_CLUSTER" restart
  for name in dp_maintain dp_maintain_other; do admin -c "DROP DATABASE IF EXISTS $name WITH (FORCE)"; done
  admin -c 'DROP ROLE IF EXISTS dp_maintain_owner'
}
trap finish EXIT
# Waits up to 20 seconds until a query returns the expected text; prints what it returned last.
comes() {  # comes EXPECTED QUERY
  local got i
  for i in {1..400}; do
    got=$(ask "$2")
    [ "$got" != "$1" ] || break
    sleep 0.05
  done
  echo "$got"
}
worker="SELECT pid FROM pg_stat_activity WHERE backend_type = 'docpatterns worker' AND datname = current_database()"

admin -c "DROP DATABASE IF EXISTS dp_maintain" -c "DROP DATABASE IF EXISTS dp_maintain_other" -c "CREATE DATABASE dp_maintain" -c "CREATE DATABASE dp_maintain_other" \
  -c "LOAD 'docpatterns'" -c "ALTER SYSTEM SET shared_preload_libraries = 'docpatterns'" -c "ALTER SYSTEM SET docpatterns.maintain_databases = 'dp_maintain, dp_maintain_other, nothing'" \
  -c "ALTER SYSTEM SET docpatterns.maintain_interval = '1h'"
"$DP_CLUSTER" restart
psql -Xqv ON_ERROR_STOP=1 >/dev/null <<'SQL'
CREATE EXTENSION docpatterns;
CREATE ROLE dp_maintain_owner;
GRANT CREATE ON SCHEMA public TO dp_maintain_owner;
SET ROLE dp_maintain_owner;
SELECT collection_create('customers'), collection_create('orders');
SELECT computed_enable('customers', source => 'orders', on_field => 'customer', fields => '{spent: {$sum: "$price"}}', mode => 'deferred');
INSERT INTO customers (doc) SELECT bson_build('_id', i) FROM generate_series(1, 10) i;
SQL
spent="SELECT doc ->> 'spent' FROM customers WHERE _id = 1"
order() { ask "INSERT INTO orders (doc) VALUES ('{customer: 1, price: 1}')"; }

# commits wake it
is "$(comes 1 "SELECT count(*) FROM ($worker) w")" 1 'a database has a worker'
order
is "$(comes 1 "$spent")" 1 'a commit wakes it, long before the interval'
psql -XqAt >"$DP_WORK/lag" <<'SQL'
CREATE TABLE lags (lag interval);
DO $$
DECLARE began timestamptz;
BEGIN
  FOR i IN 1..30 LOOP
    INSERT INTO orders (doc) VALUES ('{customer: 2, price: 1}');
    COMMIT;
    began := clock_timestamp();
    WHILE EXISTS (SELECT FROM customers_spent_queue) LOOP
      PERFORM pg_sleep(0.005);
      COMMIT;
      EXIT WHEN clock_timestamp() > began + interval '5 s';
    END LOOP;
    INSERT INTO lags VALUES (clock_timestamp() - began);
    PERFORM pg_sleep(0.1);
  END LOOP;
END $$;
SQL
echo "# from commit to effect: $(ask "SELECT format('p50 %s, p99 %s', percentile_cont(0.5) WITHIN GROUP (ORDER BY lag), percentile_cont(0.99) WITHIN GROUP (ORDER BY lag)) FROM lags")"
is "$(ask "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY lag) < interval '100 ms' FROM lags")" t 'half of the effects within 100 milliseconds'
is "$(ask "SELECT count(*) FROM pattern_stats() WHERE error IS NOT NULL"; ask "SELECT count(*) FROM pattern_check()")" $'0\n0' 'no error, all is true'

# as whom: the owner of the table, in a security-restricted operation
psql -Xq <<'SQL'
SET ROLE dp_maintain_owner;
CREATE TABLE acted (who text, session text);
CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.acted VALUES (current_user, session_user); RETURN NEW; END $$;
CREATE TRIGGER act BEFORE UPDATE ON customers FOR EACH ROW EXECUTE FUNCTION act();
SQL
order
is "$(comes dp_maintain_owner 'SELECT DISTINCT who FROM acted')" dp_maintain_owner 'triggers run as the owner of the table'
psql -Xq <<'SQL'
SET ROLE dp_maintain_owner;
CREATE OR REPLACE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SET ROLE postgres'; RETURN NEW; END $$;
SQL
order
is "$(comes 'cannot set parameter "role"' "SELECT left(error, 27) FROM pattern_stats('customers')")" 'cannot set parameter "role"' 'and cannot become another role; pattern_stats() has the error'
ok 'and so has the log' grep -q 'could not maintain the computed pattern "spent" of table "customers"' "$("$DP_CLUSTER" log)"
admin -c "ALTER SYSTEM SET docpatterns.maintain_interval = '1s'" -c 'SELECT pg_reload_conf()' >/dev/null
ask 'DROP TRIGGER act ON customers'
is "$(comes 3 "$spent")" 3 'it tries again'
is "$(comes 0 "SELECT count(error) FROM pattern_stats()")" 0 'and forgets the error'

# locks of users
psql -XqAt >"$DP_WORK/locker" 2>&1 <<'SQL' &
BEGIN;
SELECT FROM customers WHERE _id = 1 FOR UPDATE;
SELECT pg_sleep(3);
COMMIT;
SQL
sleep 0.5
ask "INSERT INTO orders (doc) SELECT bson_build('customer', i % 10 + 1, 'price', 1) FROM generate_series(1, 100) i"
is "$(comes 1 'SELECT count(DISTINCT key) FROM customers_spent_queue')" 1 'it passes over a row that is locked'
is "$(ask "SELECT count(*) FROM pg_locks WHERE NOT granted AND waitstart < clock_timestamp() - interval '200 ms'")" 0 'and does not wait for it'
wait
is "$(comes 0 'SELECT count(*) FROM customers_spent_queue')" 0 'and comes back to it'

# signals
pid=$(ask "$worker")
ask "SELECT pg_cancel_backend(pid) FROM ($worker) w" >/dev/null
sleep 0.3
order
is "$(comes 14 "$spent")" 14 'cancelled, it goes on'
is "$(ask "$worker")" "$pid" 'in the same process'
ask "SELECT pg_terminate_backend(pid) FROM ($worker) w" >/dev/null
order
is "$(comes 15 "$spent")" 15 'terminated, it is started again'
before=$(ask "$worker")
kill -9 "$before"
for _ in {1..100}; do psql -XqAtc 'SELECT 1' >/dev/null 2>&1 && [ "$(ask "$worker")" != "$before" ] && break; sleep 0.1; done
order
is "$(comes 16 "$spent")" 16 'killed, and the server with it: it is there again'
admin -c "ALTER SYSTEM SET docpatterns.maintain_databases = ''" -c 'SELECT pg_reload_conf()' >/dev/null
is "$(comes 0 "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'docpatterns worker'")" 0 'without databases there are no workers'
order
admin -c "ALTER SYSTEM SET docpatterns.maintain_databases = '*'" >/dev/null
"$DP_CLUSTER" crash
is "$(comes 17 "$spent")" 17 'what waited when the server crashed is done afterwards'

# DROP DATABASE, templates, one worker for all
is "$(comes 1 "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'docpatterns worker' AND datname = 'dp_maintain_other'")" 1 'the other database has a worker'
is "$(admin -c 'ALTER DATABASE dp_maintain_other RENAME TO dp_maintain_renamed' -c 'ALTER DATABASE dp_maintain_renamed RENAME TO dp_maintain_other' 2>&1)" '' 'which is no obstacle to renaming it'
sleep 1
is "$(admin -c 'CREATE DATABASE dp_maintain_copy TEMPLATE dp_maintain' -c 'DROP DATABASE dp_maintain_copy' 2>&1)" '' 'to copying one'
is "$(admin -c 'DROP DATABASE dp_maintain_other' 2>&1)" '' 'and to dropping it'
admin -c 'CREATE DATABASE dp_maintain_other' -c "ALTER SYSTEM SET docpatterns.maintain_workers = 1" -c 'SELECT pg_reload_conf()' >/dev/null
order
is "$(comes 18 "$spent")" 18 'databases share one worker'
PGDATABASE=dp_maintain_other psql -Xqc 'CREATE EXTENSION docpatterns' -c "SELECT single_table_create('items', ttl_field => 'until')" -c "INSERT INTO items (doc) SELECT bson_build('PK', 'a', 'SK', i::text, 'until', now()) FROM generate_series(1, 5) i" >/dev/null
is "$(PGDATABASE=dp_maintain_other comes 0 'SELECT count(*) FROM items')" 0 'so that each has its turn'
is "$(ask "SELECT count(*) <= 1 FROM pg_stat_activity WHERE backend_type = 'docpatterns worker'")" t 'and not more'

# the extension
ask "DROP EXTENSION docpatterns CASCADE" >/dev/null
sleep 1.5
psql -Xqv ON_ERROR_STOP=1 >/dev/null <<'SQL'
DROP TABLE customers, orders;
CREATE EXTENSION docpatterns;
SELECT single_table_create('items', ttl_field => 'until');
INSERT INTO items (doc) SELECT bson_build('PK', 'a', 'SK', i::text, 'until', now()) FROM generate_series(1, 5) i;
SQL
is "$(comes 0 'SELECT count(*) FROM items')" 0 'dropped and created again, the extension is maintained'

# a standby
admin -c "ALTER SYSTEM SET docpatterns.maintain_workers = 4" -c 'SELECT pg_reload_conf()' >/dev/null
port=$("$DP_CLUSTER" standby)
is "$(PGPORT=$port ask "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'docpatterns%'")" 0 'a standby has no workers'
ask "INSERT INTO items (doc) SELECT bson_build('PK', 'b', 'SK', i::text, 'until', now() + interval '4 s') FROM generate_series(1, 5) i"
is "$(PGPORT=$port comes 5 'SELECT count(*) FROM items')" 5 'it replays'
"$DP_CLUSTER" promote
is "$(PGPORT=$port comes 0 'SELECT count(*) FROM items')" 0 'promoted, it maintains'
"$DP_CLUSTER" leave

# The soak. What ages does so in seconds.
psql -Xqv ON_ERROR_STOP=1 -v orders="$orders" -v people=$((orders / 20)) >/dev/null <<'SQL'
SELECT collection_create(c) FROM unnest('{people,orders,reviews,books,pages,docs,sessions}'::text[]) c;
SELECT bucket_create('readings', 'sensor int, at timestamptz, v int', '{sensor}', 'at', span => '1 s', pack_after => '1 s', retain => '4 s'),
  reference_enable('orders', 'buyer', 'people', live => '{name}', refresh => 'deferred'),
  computed_enable('people', 'orders', 'buyer._id', '{spent: {$sum: "$price"}, orders: {$count: {}}}', mode => 'deferred', name => 'spent'),
  subset_enable('books', 'newest', 'reviews', 'book', order_by => '{at: -1}', keep => 3, count_field => 'reviews', count_mode => 'deferred'),
  outlier_enable('books', 'readers', 5, mode => 'deferred', is_set => true), approximation_enable('pages', 'views', slots => 4),
  change_feed_enable('docs', notify => false, keep_for => '4 s'), versioning_enable('docs', keep => 50, keep_for => '4 s'), ttl_enable('sessions', 'seen', '3 s'), ttl_enable('reviews', 'at', '4 s'), kv_create('game');
INSERT INTO people (doc) SELECT bson_build('_id', i, 'name', 'n' || i) FROM generate_series(1, :people) i;
INSERT INTO orders (doc) SELECT bson_build('_id', i, 'buyer', bson_build('_id', i % :people + 1), 'price', i) FROM generate_series(1, :orders) i;
INSERT INTO books (doc) SELECT bson_build('_id', i, 'readers', '[]'::bson_value) FROM generate_series(1, 20) i;
INSERT INTO pages (doc) SELECT bson_build('_id', i, 'views', 0) FROM generate_series(1, 5) i;
INSERT INTO docs (doc) SELECT bson_build('_id', i, 'n', 0) FROM generate_series(1, 50) i;
CREATE TABLE due (at timestamptz DEFAULT clock_timestamp(), age interval, amount bigint);
CREATE TABLE counted (n bigint, what text);
SQL
script() { cat >"$DP_WORK/$1.sql"; }
script measure <<'EOS'
\set s random(1, 20)
INSERT INTO readings VALUES (:s, clock_timestamp(), 1);
EOS
script order <<'EOS'
\set o random(1, :orders)
\set p random(1, :people)
UPDATE orders SET doc = bson_set(doc, 'price', :o::int) WHERE _id = :o::int;
UPDATE orders SET doc = bson_set(doc, 'buyer', bson_build('_id', :p::int)) WHERE _id = :o::int;
EOS
script rename <<'EOS'
\set p random(1, :people)
\set n random(1, 1000000)
UPDATE people SET doc = bson_set(doc, 'name', 'n' || :n::int) WHERE _id = :p::int;
EOS
script expire <<'EOS'
\set b random(1, 20)
\set k random(1, 500)
INSERT INTO sessions (doc) VALUES (bson_build('seen', clock_timestamp()));
INSERT INTO reviews (doc) VALUES (bson_build('book', :b::int, 'at', clock_timestamp()));
INSERT INTO items (doc) VALUES (bson_build('PK', 'p', 'SK', gen_random_uuid()::text, 'until', clock_timestamp() + interval '2 s'));
SELECT kv_hset('game', 'k' || :k::int, 'f', 1), kv_expire('game', 'k' || :k::int, 2);
EOS
script change <<'EOS'
\set d random(1, 50)
\set b random(1, 20)
\set r random(1, 30)
UPDATE docs SET doc = bson_update(doc, '{"$inc": {"n": 1}}', filter => '{}') WHERE _id = :d::int;
SELECT approximation_add('pages', :b::int % 5 + 1, 1);
UPDATE books SET doc = bson_update(doc, bson_build('$addToSet', bson_build('readers', :r::int))) WHERE _id = :b::int;
EOS
chmod 755 "$DP_WORK"; chmod 644 "$DP_WORK"/*.sql
# Writes for so many seconds, and looks every second what is due; before the end, counts what ages.
load() {  # load SECONDS
  local files='' file end=$((SECONDS + $1))
  for file in measure@3 order@1 rename@1 expire@2 change@1; do files="$files -f $DP_WORK/${file%@*}.sql@${file#*@}"; done
  # shellcheck disable=SC2086
  pgbench -n -M prepared -c 4 -j 1 -D orders="$orders" -D people=$((orders / 20)) -R "$rate" -T "$1" $files >"$DP_WORK/load" 2>&1 &
  while [ $SECONDS -lt $((end - 1)) ]; do
    psql -XqAtc 'INSERT INTO due (age, amount) SELECT coalesce(max(clock_timestamp() - since), $$0$$), coalesce(sum(amount), 0) FROM pattern_due()' >/dev/null 2>&1
    sleep 0.9
  done
  aging=$(rows) size=$(bytes)
  wait
}
rows() {
  ask "SELECT (SELECT count(*) FROM readings) + (SELECT count(*) FROM sessions) + (SELECT count(*) FROM reviews) + (SELECT count(*) FROM items) + (SELECT count(*) FROM game.keys) + (SELECT count(*) FROM docs_feed) + (SELECT count(*) FROM docs_history)
    + (SELECT sum(waiting) FROM pattern_stats() WHERE pattern <> 'bucket')"
}
bytes() { ask "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace IN ('public'::regnamespace, 'game'::regnamespace)"; }
load $((seconds / 3))
first=$aging first_size=$size
ask "SELECT pg_cancel_backend(pid) FROM ($worker) w" >/dev/null
load $((seconds / 3))
second=$aging half=$size
kill -9 "$(ask "$worker")"
for _ in {1..100}; do sleep 0.1; psql -XqAtc 'SELECT 1' >/dev/null 2>&1 && break; done
load $((seconds / 3))
third=$aging
echo "# rows that age, at the end of each third: $first, $second, $third; bytes: $first_size, $half, $size"
echo "# $(grep -h 'processed: \|^tps' "$DP_WORK/load" | tr '\n' ' ')"
echo "# age of the oldest work that was due, and its amount: $(ask "SELECT format('p50 %s, p95 %s, max %s; p50 %s, max %s', percentile_cont(0.5) WITHIN GROUP (ORDER BY age), percentile_cont(0.95) WITHIN GROUP (ORDER BY age), max(age), percentile_cont(0.5) WITHIN GROUP (ORDER BY amount), max(amount)) FROM due")"
ok 'tables stop growing' [ "$third" -lt $((second + second / 2 + 500)) ]
is "$(ask "SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY age) < interval '4 s' FROM due")" t 'what is due does not wait'
[ "$seconds" -lt 300 ] || ok 'files stop growing, too' [ "$size" -lt $((half * 2)) ]
[ "$seconds" -ge 300 ] || ok 'files are not looked at in so short a time' true
is "$(comes 0 'SELECT count(*) FROM pattern_due()')" 0 'afterwards nothing is due'
is "$(comes 0 "SELECT (SELECT count(*) FROM readings) + (SELECT count(*) FROM sessions) + (SELECT count(*) FROM items) + (SELECT count(*) FROM game.keys) + (SELECT count(*) FROM reviews)")" 0 'what expires is gone'
is "$(ask 'SELECT rel, name, error FROM pattern_stats() WHERE error IS NOT NULL')" '' 'nothing failed'
is "$(ask "SELECT rel, name, what, key, expected, found FROM pattern_check() LIMIT 10")" '' 'and everything is true'
