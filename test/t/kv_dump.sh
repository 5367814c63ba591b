#!/bin/bash
# Key-value spaces are ordinary tables: they are dumped and restored in any form, replicated, and dropped without a trace.
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning'
plan 19
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }  # ask DATABASE SQL
cleanup() {
  psql -Xq -d dp_kv_sub -c 'ALTER SUBSCRIPTION dp_kv_sub DISABLE' -c 'ALTER SUBSCRIPTION dp_kv_sub SET (slot_name = NONE)' -c 'DROP SUBSCRIPTION dp_kv_sub' >/dev/null 2>&1
  for db in dp_kv_copy dp_kv_third dp_kv_part dp_kv_sub; do psql -Xqc "DROP DATABASE IF EXISTS $db WITH (FORCE)" postgres; done
  psql -Xq -d dp_kv_source -c "SELECT pg_drop_replication_slot('dp_kv_sub')" >/dev/null 2>&1
  psql -Xqc 'DROP DATABASE IF EXISTS dp_kv_source WITH (FORCE)' postgres
}
cleanup
for db in dp_kv_source dp_kv_copy dp_kv_third dp_kv_part dp_kv_sub; do psql -Xqc "CREATE DATABASE $db" postgres; done

psql -Xq -v ON_ERROR_STOP=1 dp_kv_source >/dev/null <<'SQL' || echo 'not ok 0 - the source database was filled'
CREATE EXTENSION docpatterns;
SELECT kv_create('g'), kv_create('o''S.pace "x"');
SELECT kv_hset('g', 'h', 'a', 1, 'b', 'x'), kv_sadd('g', 's', 1, 'one'), kv_hset('o''S.pace "x"', 'it''s', 'a', 1), kv_sadd('g', 'soon', 1), kv_expire('g', 'soon', 1000);
SELECT count(kv_zadd('g', 'z', i % 100, 'm' || i)) FROM generate_series(1, 1000) i;
SELECT collection_create('players');
INSERT INTO players (doc) SELECT bson_build('_id', i, 'points', i * 7 % 100) FROM generate_series(1, 600) i;
SELECT kv_leaderboard('g', 'best', 'players', 'points');
CREATE TABLE later (id int PRIMARY KEY, doc bson);
SELECT kv_leaderboard('g', 'later', 'later', 'points');
SQL
data="SELECT 'keys', key || type || coalesce(expires_at::text, '') || coalesce(kept_by::text, '') FROM g.keys UNION ALL SELECT 'h', h::text FROM g.hashes h UNION ALL SELECT 's', s::text FROM g.sets s
  UNION ALL SELECT 'z', z::text || kv_zrank('g', key, member) FROM g.scores z UNION ALL SELECT 'c', c::text FROM g.counts c UNION ALL SELECT 'd', d::text FROM pattern_list() d ORDER BY 1, 2"
wanted=$(ask dp_kv_source "$data")
is "$(ask dp_kv_source "SELECT count(*) FROM pattern_list()")|$(ask dp_kv_source 'SELECT * FROM pattern_check()')" '4|' 'two spaces and two boards, all true'

# what a restored database has to be like; 4 tests
same() {  # same DATABASE NAME
  is "$(ask "$1" "$data")" "$wanted" "$2: all is the same, ranks too"
  is "$(ask "$1" 'SELECT * FROM pattern_check()')" '' "$2: and true"
  is "$(ask "$1" "SELECT kv_zadd('g', 'z', 50, 'new'), kv_hincrby('g', 'h', 'a', 1), kv_zrank('g', 'z', 'm1'); UPDATE players SET doc = bson_set(doc, 'points', 1000) WHERE _id = 5; INSERT INTO later VALUES (1, '{points: 3}'); SELECT kv_zrevrank('g', 'best', 5), kv_zrank('g', 'later', 1)")" '1|2|10
0|0' "$2: commands and boards go on"
  is "$(ask "$1" "UPDATE g.scores SET score = member" | head -1 | cut -c 1-40)|$(ask "$1" "SELECT kv_zadd('g', 'best', 1, 1)" | head -1 | cut -c 1-40)" 'ERROR:  table g.scores belongs to a key-|ERROR:  key "best" of space "g" is kept ' "$2: direct writes are refused"
}
pg_dump -Fc -f "$DP_WORK/all" dp_kv_source && pg_restore -j 4 -d dp_kv_copy "$DP_WORK/all" 2>"$DP_WORK/errors"
is "$(cat "$DP_WORK/errors")" '' 'a dump is restored in parallel without an error'
same dp_kv_copy 'in parallel'
pg_dump --inserts dp_kv_source | psql -Xq -v ON_ERROR_STOP=1 dp_kv_third >/dev/null 2>"$DP_WORK/errors"
is "$(cat "$DP_WORK/errors")" '' 'a plain dump with INSERTs is restored without an error'
same dp_kv_third 'with INSERTs'
ask dp_kv_part 'CREATE EXTENSION docpatterns' >/dev/null
pg_dump -n '*pace*' dp_kv_source | psql -Xq -v ON_ERROR_STOP=1 dp_kv_part >/dev/null 2>"$DP_WORK/errors"
is "$(cat "$DP_WORK/errors")|$(ask dp_kv_part "SELECT kv_hget('o''S.pace \"x\"', 'it''s', 'a')")|$(ask dp_kv_part 'SELECT * FROM pattern_check()')" '|1|' 'one space alone is dumped and restored'

# replication: the tables alone, to a space that was made there
ask dp_kv_sub "CREATE EXTENSION docpatterns; SELECT kv_create('g'); CREATE TABLE players (_id bson_value PRIMARY KEY, doc bson); CREATE TABLE later (id int PRIMARY KEY, doc bson)" >/dev/null
ask dp_kv_source "CREATE PUBLICATION p FOR TABLE g.keys, g.hashes, g.sets, g.scores, g.counts" >/dev/null
ask dp_kv_source "SELECT pg_create_logical_replication_slot('dp_kv_sub', 'pgoutput')" >/dev/null
ask dp_kv_sub "CREATE SUBSCRIPTION dp_kv_sub CONNECTION 'dbname=dp_kv_source host=$PGHOST port=$PGPORT user=$PGUSER' PUBLICATION p WITH (create_slot = false, slot_name = 'dp_kv_sub')" >/dev/null
ask dp_kv_source "SELECT count(kv_zadd('g', 'z', i, 'm' || i * 3)) FROM generate_series(1, 500) i" >/dev/null
ask dp_kv_source "SELECT kv_zrem('g', 'z', 'm1'), kv_hdel('g', 'h', 'b'), kv_del('g', 's'), kv_sadd('g', 's2', 5)" >/dev/null
rows="SELECT md5(string_agg(r, ' ' ORDER BY r)) FROM (SELECT k.key || k.type FROM g.keys k UNION ALL SELECT h::text FROM g.hashes h UNION ALL SELECT s::text FROM g.sets s UNION ALL SELECT z::text || kv_zrank('g', key, member) FROM g.scores z) t (r)"
want=$(ask dp_kv_source "$rows")
for _ in {1..75}; do
  [ "$(ask dp_kv_sub "$rows")" = "$want" ] && break
  sleep 0.2
done
is "$(ask dp_kv_sub "$rows")" "$want" 'what commands do arrives at a subscriber, with ranks'
is "$(ask dp_kv_sub "SELECT * FROM pattern_check('g.keys')")" '' 'and the space there is true'

is "$(ask dp_kv_copy "DROP TABLE g.keys" | head -1)" 'ERROR:  cannot drop table g.keys because other objects depend on it' 'boards need their space, after a restore too'
is "$(ask dp_kv_copy "DROP TABLE g.keys, g.hashes, g.sets, g.scores, g.counts CASCADE; SELECT count(*) FROM pattern_list() WHERE rel::text LIKE 'g.%'")|$(ask dp_kv_copy "SELECT kv_exists('g', 'h')" | head -1)" '0|ERROR:  schema "g" is not a key-value space' 'a space that was dropped is none'
is "$(ask dp_kv_copy 'DROP TABLE players, later CASCADE; DROP SCHEMA g, "o'"'"'S.pace ""x""" CASCADE; SELECT count(*) FROM pattern_list(); SELECT * FROM pattern_check()')" 0 'and nothing is left'
is "$(ask dp_kv_third 'DROP EXTENSION docpatterns CASCADE; SELECT count(*) FROM g.keys')" 6 'without the extension its keys are still there'
is "$(ask dp_kv_third "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'zz_docpatterns%'")" 0 'without triggers'
cleanup
