#!/bin/bash
# A scheduler in the server: pg_cron calls pattern_maintain() as docs/maintenance.md says, in background workers and by
# connections. Deferred work is done, as the role that has scheduled it, in transactions of their own; errors can be seen.
. "$DP_TOP/test/env/tap.sh"
set -u
[ -e "$(pg_config --pkglibdir)/pg_cron.so" ] || { echo '1..0 # SKIP pg_cron is not installed'; exit 0; }
plan 14
export PGOPTIONS='-c client_min_messages=warning -c timezone=UTC' PGDATABASE=dp_cron
admin() { psql -XqAt -d postgres -v ON_ERROR_STOP=1 "$@"; }
ask() { psql -XqAt -c "$1" 2>&1; }
finish() {
  for name in shared_preload_libraries cron.database_name cron.use_background_workers cron.host; do
    admin -c "ALTER SYSTEM RESET $name" 2>/dev/null
  done
  "$DP_CLUSTER" restart
  admin -c 'DROP DATABASE IF EXISTS dp_cron WITH (FORCE)'
  admin -c 'DROP ROLE IF EXISTS dp_cron_owner'
}
trap finish EXIT
# Waits up to 90 seconds (a schedule begins with a minute) until a query returns the expected text; prints what it returned last.
comes() {  # comes EXPECTED QUERY
  local got i
  for i in {1..900}; do
    got=$(ask "$2")
    [ "$got" != "$1" ] || break
    sleep 0.1
  done
  echo "$got"
}

admin -c 'DROP DATABASE IF EXISTS dp_cron' -c 'CREATE DATABASE dp_cron' -c "ALTER SYSTEM SET shared_preload_libraries = 'pg_cron'"
"$DP_CLUSTER" restart
admin -c "ALTER SYSTEM SET cron.database_name = 'dp_cron'" -c "ALTER SYSTEM SET cron.host = '$PGHOST'"
for workers in on off; do
  admin -c "ALTER SYSTEM SET cron.use_background_workers = $workers"
  "$DP_CLUSTER" restart
  psql -Xq >/dev/null 2>&1 <<'SQL'
DROP EXTENSION IF EXISTS pg_cron, docpatterns CASCADE;
CREATE EXTENSION docpatterns;
CREATE EXTENSION pg_cron;
DROP TABLE IF EXISTS refuses, carts, sessions, deleted CASCADE;
CREATE ROLE dp_cron_owner LOGIN;
GRANT USAGE ON SCHEMA cron TO dp_cron_owner;
GRANT CREATE ON SCHEMA public TO dp_cron_owner;
SET ROLE dp_cron_owner;
SELECT collection_create('sessions');
SELECT ttl_enable('sessions', 'until');
CREATE TABLE deleted (who name, transaction xid8);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.deleted VALUES (current_user, pg_current_xact_id()); RETURN NULL; END $$;
CREATE TRIGGER note AFTER DELETE ON sessions FOR EACH STATEMENT EXECUTE FUNCTION note();
INSERT INTO sessions (doc) SELECT bson_build('_id', i, 'until', now() - i * interval '1 s') FROM generate_series(1, 500) i;
SELECT collection_create('carts');
SELECT ttl_enable('carts', 'until');
INSERT INTO carts (doc) VALUES ('{_id: 1, until: {$date: "2020-01-01T00:00:00Z"}}');
CREATE TABLE refuses (id bson_value REFERENCES carts);
INSERT INTO refuses SELECT _id FROM carts;
SELECT cron.schedule('maintain', '* * * * *', $$CALL pattern_maintain(max_time => '50 s')$$);
SQL
  is "$(comes 0 'SELECT count(*) FROM sessions')" 0 "background workers $workers: what is due is done"
  is "$(ask 'SELECT string_agg(DISTINCT who, $$ $$) FROM deleted')" dp_cron_owner 'as the role that has scheduled it'
  is "$(ask 'SELECT count(DISTINCT transaction) > 2 FROM deleted')" t 'in several transactions'
  is "$(comes succeeded "SELECT status FROM cron.job_run_details ORDER BY runid DESC LIMIT 1")" succeeded 'pg_cron says so'
  is "$(ask 'SELECT string_agg(rel::text, $$ $$) FROM pattern_due()')" carts 'nothing else is due than what a foreign key refuses'
  is "$(comes t "SELECT count(*) > 0 FROM docpatterns.maintenance WHERE error LIKE '%foreign key%'")" t 'an error is remembered'
  is "$(ask "SELECT count(*) FROM pattern_stats() s WHERE s::text LIKE '%foreign key%'")" 1 'and shown by pattern_stats()'
done
