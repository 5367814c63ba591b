#!/bin/bash
# A streaming standby: everything that patterns keep is there, reads read, and what writes is refused (25006), as in a read-only
# transaction. The primary is killed in the midst of writes and the standby promoted: what was acknowledged is there, all is true,
# indexes give the table's answers, and writes go on.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/crash.sh"
. "$DP_TOP/test/env/load.sh"
. "$DP_TOP/test/env/calls.sh"
set -u
seed=${SEED:-20342} seconds=${STRESS_SECONDS:-2}
RANDOM=$seed
echo "# seed $seed, $seconds seconds"
plan 21
export PGOPTIONS='-c client_min_messages=warning -c timezone=UTC'
finish() {
  "$DP_CLUSTER" leave
  psql -Xq -d postgres -c 'ALTER SYSTEM RESET synchronous_standby_names' -c 'SELECT pg_reload_conf()' >/dev/null
}
trap finish EXIT
there() { PGPORT=$port "$@"; }
# Waits until the standby has replayed what the primary has written.
caught_up() {
  local end
  end=$(psql -XqAt -d postgres -c 'SELECT pg_current_wal_insert_lsn()')
  for _ in {1..3000}; do
    [ "$(there psql -XqAt -d postgres -c "SELECT pg_last_wal_replay_lsn() >= '$end'")" = t ] && return
    sleep 0.1
  done
  echo "# the standby does not catch up"
}

load_fill dp_standby
is "$(load_each dp_standby)" '' 'each kind of write succeeds'
psql -XqAt -v ON_ERROR_STOP=1 -d dp_standby_shapes >/dev/null <<'SQL' || echo 'not ok 0 - the unlogged table was made'
CREATE UNLOGGED TABLE drafts (_id int PRIMARY KEY, doc bson);
SELECT outlier_enable('drafts', 'x', 3), versioning_enable('drafts'), change_feed_enable('drafts', notify => false), query_table_create('drafts_by_u', 'drafts', '{u}');
INSERT INTO drafts SELECT i, bson_build('u', i, 'x', bson_array(1, 2, 3, 4, 5)) FROM generate_series(1, 5) i;
SQL
# the copy begins while others write
load_start dp_standby pack
port=$("$DP_CLUSTER" standby)
sleep "$seconds"
load_stop dp_standby
load_finish dp_standby
caught_up

# everything is there
is "$(psql -XqAt -d postgres -c 'SHOW full_page_writes'; there psql -XqAt -d postgres -c 'SELECT pg_is_in_recovery()')" $'on\nt' 'a standby follows'
is "$(there shapes_rows dp_standby_shapes | grep -v 'drafts\|unlogged' | md5sum)" "$(shapes_rows dp_standby_shapes | grep -v 'drafts\|unlogged' | md5sum)" 'shapes: all tables are the same, byte for byte'
is "$(there derived_rows dp_standby_derived | md5sum)" "$(derived_rows dp_standby_derived | md5sum)" 'derived: all tables are the same, byte for byte'
is "$(there load_wrong dp_standby)" '' 'all is true there, and indexes give the answers of tables'

# reads read
for name in shapes derived; do
  # (where it may, schema_versioning_read() writes what it has upgraded)
  calls_read $name | PGOPTIONS="$PGOPTIONS -c default_transaction_read_only=on" psql -XqAt -d dp_standby_$name >"$DP_WORK/here" 2>&1
  calls_read $name | there psql -XqAt -d dp_standby_$name >"$DP_WORK/there" 2>&1
  is "$(diff "$DP_WORK/here" "$DP_WORK/there" | head -5; grep ERROR "$DP_WORK/here" | head -3)" '' "$name: what reads gives the same there"
  is "$(there calls_taken $name dp_standby_$name; PGOPTIONS='-c default_transaction_read_only=on' calls_taken $name dp_standby_$name)" '' "$name: what writes is refused there, and in a read-only transaction"
done
is "$(there psql -XqAt -v VERBOSITY=sqlstate -d dp_standby_shapes -c "SELECT change_feed_read('orders')" 2>&1)" 'ERROR:  55000' 'a feed is not read there'

# killed in the midst, when each commit waits for the standby
psql -Xq -d postgres -c "ALTER SYSTEM SET synchronous_standby_names = '*'" -c 'SELECT pg_reload_conf()' >/dev/null
for _ in {1..1500}; do [ "$(psql -XqAt -d postgres -c "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")" = 1 ] && break; sleep 0.1; done
is "$(psql -XqAt -d postgres -c 'SHOW synchronous_standby_names' -c "SELECT sync_state FROM pg_stat_replication")" $'*\nsync' 'commits wait for the standby'
# (the primary that comes back later is not to)
psql -Xq -d postgres -c 'ALTER SYSTEM RESET synchronous_standby_names'
printf '%s\n' 'BEGIN;' "INSERT INTO orders (doc) VALUES ('{_id: 1000001, u: 99, n: 1000001}');" "PREPARE TRANSACTION 'over';" | psql -XqAt -d dp_standby_shapes
position=$(psql -XqAt -d dp_standby_shapes -c "SELECT change_feed_position('orders')")
rm -f "$DP_WORK"/done.*
chore=${load_chores[$((RANDOM % ${#load_chores[@]}))]}
load_start dp_standby "$chore"
sleep "$seconds"
crash_kill all
load_wait
"$DP_CLUSTER" promote
echo "# killed during $chore: $(load_told) commits were acknowledged, $crash_cut transactions cut off"
ok 'much was written' [ "$(load_told)" -gt 20 ]
is "$(there psql -XqAt -d postgres -c 'SELECT pg_is_in_recovery()')" f 'the standby is promoted'
is "$(there load_lost dp_standby)" '' 'what was acknowledged is there'
is "$(there load_finish dp_standby)" '' "what was begun by $chore is brought to an end"
is "$(there load_wrong dp_standby)" '' 'all is true there, and indexes give the answers of tables'
is "$(there psql -XqAt -d dp_standby_shapes -c "SELECT key FROM change_feed_read('orders', $position) WHERE key = 1000001" -c "COMMIT PREPARED 'over'" -c "SELECT key FROM change_feed_read('orders', $position) WHERE key = 1000001" 2>&1)" 1000001 'what was prepared is committed there, and read once from the position of before'
is "$(there psql -XqAt -d dp_standby_shapes -c 'SELECT (SELECT count(*) FROM drafts), (SELECT count(*) FROM drafts_whole), (SELECT count(*) FROM drafts_history), (SELECT count(*) FROM drafts_feed), (SELECT count(*) FROM drafts_by_u)' \
  -c "INSERT INTO drafts VALUES (1, '{u: 1, x: [1, 2, 3, 4, 5]}')" -c 'SELECT bson_array_length(doc, $$x$$) FROM drafts_whole' -c 'SELECT count(*) FROM drafts_by_u' -c "SELECT count(*) FROM change_feed_read('drafts')" -c "SELECT v FROM pattern_check('drafts') v" 2>&1)" \
  $'0|0|0|0|0\n5\n1\n2' 'unlogged tables are empty, with all that is kept of them, and taken into use'
is "$(there load_each dp_standby)$(there shapes_alive dp_standby_shapes | grep '^psql')" '' 'writes go on'
PGPORT=$port load_start dp_standby move
sleep 1
there load_stop dp_standby
is "$(there load_finish dp_standby; there load_wrong dp_standby; there load_lost dp_standby)" '' 'and leave all true'

# the old primary comes back by itself
crash_start
is "$(load_finish dp_standby; load_wrong dp_standby)" '' 'the old primary is true, too'
for gid in $(psql -XqAt -d postgres -c "SELECT gid FROM pg_prepared_xacts WHERE database = 'dp_standby_shapes'"); do psql -Xq -d dp_standby_shapes -c "ROLLBACK PREPARED '$gid'"; done
load_drop dp_standby
