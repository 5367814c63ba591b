#!/bin/bash
# A crash in the midst of a migration: what was committed is done, the rest is as it was, and it goes on.
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning' PGDATABASE=dp_migration
plan 4
cleanup() { psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_migration WITH (FORCE)'; }
trap cleanup EXIT
cleanup
psql -Xq -d postgres -c 'CREATE DATABASE dp_migration'
ask() { psql -XqAt -v ON_ERROR_STOP=1 -c "$1" 2>&1; }  # ask SQL
psql -Xq -v ON_ERROR_STOP=1 >/dev/null <<'SQL' || echo 'not ok 0 - the table was made'
CREATE EXTENSION docpatterns;
SELECT collection_create('people');
SELECT schema_versioning_enable('people', current => 3, write => 'accept'),
       schema_versioning_step('people', 1, 2, up_update => '{$rename: {home: "house"}}', down_update => '{$rename: {house: "home"}}'),
       schema_versioning_step('people', 2, 3, up_update => '{$rename: {name: "called"}}', down_update => '{$rename: {called: "name"}}', schema => '{required: ["called"]}');
INSERT INTO people (doc) SELECT bson_build('_id', i, 'name', 'p' || i, 'home', i::text) FROM generate_series(1, 20000) i;
SQL
psql -Xq -c "CALL schema_versioning_migrate('people', batch => 50, pause => '2 ms')" >/dev/null 2>&1 &
for _ in {1..1200}; do [ "$(ask "SELECT count(*) > 500 FROM people WHERE doc ->> 'schema_version' = '3'")" = t ] && break; sleep 0.05; done
"$DP_CLUSTER" crash
wait
is "$(ask "SELECT count(*) > 500 AND count(*) < 20000 AND count(*) % 50 = 0 FROM people WHERE doc ->> 'schema_version' = '3'")" t 'a crash leaves whole batches'
is "$(ask "SELECT state FROM schema_versioning_progress")" running 'and a migration that nobody ended'
is "$(ask "SELECT count(*), count(DISTINCT doc ->> 'home') FROM people_v1; SELECT v FROM pattern_check() v")" '20000|20000' 'nothing is lost'
psql -Xq -c "CALL schema_versioning_migrate('people', batch => 5000)" >/dev/null 2>&1
is "$(ask "SELECT version, documents FROM schema_versioning_histogram('people'); SELECT state FROM schema_versioning_progress")" $'3|20000\ndone' 'called again it ends'
