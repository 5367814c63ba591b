#!/bin/bash
# Through PgBouncer: clients write through every pattern, and each transaction gets whichever of three server sessions is free.
# What a session keeps in memory must not belong to one client. DISCARD ALL runs between transactions.
. "$DP_TOP/test/env/storm.sh"
set -u
PATH=$PATH:/usr/sbin
command -v pgbouncer >/dev/null || { echo '1..0 # SKIP no pgbouncer'; exit 0; }
plan 10
STRESS_SECONDS=${STRESS_SECONDS:-2}
before='""'
pool=$("$DP_CLUSTER" home)/pool
mkdir -p "$pool"
printf '"%s" ""\n' "$PGUSER" >"$pool/users"
cat >"$pool/ini" <<EOF
[databases]
* = host=$PGHOST port=$PGPORT
[pgbouncer]
listen_port = 6432
unix_socket_dir = $pool
auth_type = trust
auth_file = $pool/users
pool_mode = transaction
default_pool_size = 3
server_idle_timeout = 1
server_reset_query = DISCARD ALL
server_reset_query_always = 1
ignore_startup_parameters = options,extra_float_digits
EOF
as=
if [ "$(id -u)" = 0 ]; then
  chown -R postgres "$pool"
  as='setpriv --reuid=postgres --regid=postgres --init-groups'
fi
$as pgbouncer -q "$pool/ini" 2>"$DP_WORK/pool.log" &
trap 'kill %1; wait; rm -rf "$pool"' EXIT
for _ in {1..50}; do [ -S "$pool/.s.PGSQL.6432" ] && break; sleep 0.1; done
directly=$PGHOST:$PGPORT
pooled() { export PGHOST=$pool PGPORT=6432; "$@"; export PGHOST=${directly%:*} PGPORT=${directly##*:}; }

transactions='SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()'
for what in derived shapes; do
  stress_begin dp_pooler 20331
  "storm_$what"
  done=$(ask "$transactions")
  pooled stress_run "$what" "$seconds"
  storm_true "$what"
  ok 'transactions were done' test "$(ask "$transactions")" -gt $((done + 100))
  stress_end
done
stress_begin dp_pooler 20331
psql -XqAt -c "SELECT collection_create('books')" -c "SELECT outlier_enable('books', 'tags', 3)" >/dev/null
is "$(pooled psql -XqAt -c "CALL pattern_build('books', 'tags')" 2>&1)" 'NOTICE:  pattern "tags" of table "books": 0 documents updated' 'a procedure that commits runs in one session'
is "$(pooled psql -XqAt -c "SET docpatterns.maintain = off" -c "LOAD 'docpatterns'; SHOW docpatterns.maintain")" on 'a setting does not reach the next transaction'
stress_end
