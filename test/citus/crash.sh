# Processes of workers are killed, and servers crash, also the coordinator, while statements write documents in two shards at once, and while pattern_repair() mends them: what is left is all or nothing, or pattern_check() reports it and pattern_repair() mends it.
# SEED and STRESS_SECONDS win over the defaults. The environment is that of test/env/citus.sh run; CLUSTER names its servers.
. "$DP_TOP/test/env/tap.sh"
seed=${SEED:-20263} seconds=${STRESS_SECONDS:-15} clients=3
cluster=$DP_TOP/test/env/cluster.sh
export PGOPTIONS='-c client_min_messages=error'
plan 9
RANDOM=$((seed % 32768))
ask() { psql -XqAt -c "$1" 2>&1; }
worker() { PGPORT=$(ask "SELECT nodeport FROM pg_dist_node WHERE groupid = $1") psql -XqAt -c "$2" 2>&1; }
alive() { for _ in $(seq 100); do [ "$(worker "$1" 'SELECT pg_is_in_recovery()')" = f ] && return; sleep 0.1; done; return 1; }
# Kills a process that works for the coordinator, with which the worker restarts all of them; prints whether there was one.
kill_one() {
  local pid
  pid=$(worker "$1" "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'citus_internal%' AND pid <> pg_backend_pid() AND $2 ORDER BY random() LIMIT 1")
  case $pid in ''|*[!0-9]*) ;; *) kill -9 "$pid" && echo yes ;; esac
}

psql -XqAt -v ON_ERROR_STOP=1 <<'SQL' >/dev/null || echo 'not ok 0 - the tables were made'
SET citus.shard_count = 4;
CREATE TABLE pairs (_id bson_value PRIMARY KEY, doc bson);
CREATE TABLE lines (_id bson_value, book bson_value, doc bson, PRIMARY KEY (book, _id));
SELECT create_distributed_table('pairs', '_id'), create_distributed_table('lines', 'book', colocate_with => 'pairs');
SELECT outlier_enable('pairs', 'a', threshold => 2, count_field => 'n', chunk => 2), subset_fields_enable('pairs', '{cold}'), versioning_enable('pairs', optimistic => false);
SELECT computed_enable('pairs', 'lines', 'book', '{sum: {$sum: "$x"}}', name => 'sums');
INSERT INTO pairs SELECT i, bson_build('_id', i, 'x', 0, 'a', '[1, 2, 3, 4]'::bson_value, 'cold', 0) FROM generate_series(1, 40) i;
CREATE VIEW whole AS SELECT b._id, pattern_whole(b.doc, b.tableoid::regclass, b._id) AS doc FROM pairs AS b;
SQL

# Documents k and k + 20 always have the same token and as many values and lines.
work() {
  awk -v seed=$((seed + $1)) 'BEGIN { srand(seed); for (;;) { k = int(rand() * 20) + 1; t = int(rand() * 1e6)
    print "BEGIN; UPDATE pairs SET doc = bson_update_immutable(doc, $${$set: {x: " t ", cold: " t "}, $push: {a: " t "}}$$) WHERE _id IN (" k "::bson_value, " k + 20 "::bson_value);"
    if (t % 2) print "INSERT INTO lines SELECT gen_random_uuid()::text::bson_value, b::bson_value, bson_build($$_id$$, 1, $$book$$, b, $$x$$, 1) FROM unnest($${" k "," k + 20 "}$$::int[]) b;"
    print "COMMIT;" } }' 2>/dev/null
}
end=$((SECONDS + seconds)) jobs= killed=0 crashed=0
for i in $(seq $clients); do
  while [ $SECONDS -lt $end ]; do work "$((i + RANDOM))" | timeout $((end - SECONDS + 1)) psql -XqAt -v ON_ERROR_STOP=1 -v VERBOSITY=verbose; sleep 0.1; done >/dev/null 2>"$DP_WORK/errors.$i" &
  jobs="$jobs $!"
done
while [ $SECONDS -lt $((end - 1)) ]; do
  sleep "1.$((RANDOM % 10))"
  node=$((1 + RANDOM % 2))
  if [ $((killed > crashed)) = 1 ]; then
    # the next one in turn: a worker, or the coordinator
    node=$((crashed % 3))
    NODE=${node#0} PGOPTIONS='' "$cluster" crash && crashed=$((crashed + 1))
  else
    [ "$(kill_one $node "xact_start IS NOT NULL")" = yes ] && killed=$((killed + 1))
  fi
  alive $node
done
# shellcheck disable=SC2086
wait $jobs
alive 1 && alive 2
prepared=$(for n in 1 2; do worker $n 'SELECT gid FROM pg_prepared_xacts'; done | grep -c .)
ask 'SELECT recover_prepared_transactions()' >/dev/null
echo "# $killed processes killed, $crashed servers crashed, $prepared prepared transactions left; $(ask 'SELECT count(*) FROM lines') lines, $(ask "SELECT sum((doc -> 'revision')::int) FROM pairs") revisions"
cat "$DP_WORK"/errors.* | grep -o 'ERROR:  .*' | sed 's/[0-9][0-9]*/N/g' | cut -c 1-120 | sort | uniq -c | sort -rn | head -8 | sed 's/^/# /'
is "$(cat "$DP_WORK"/errors.* | grep -E 'PANIC|ERROR:  XX[0-9]{3}: ' | grep -v 'connection' | sort | uniq -c | head -5)" '' 'no internal error'
ok 'processes and servers were killed' test $killed -gt 0 -a $crashed -gt 0
is "$(for n in 1 2; do worker $n 'SELECT count(*) FROM pg_prepared_xacts'; done | sort -u)" 0 'no prepared transaction is left'
is "$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' 'all is consistent'
is "$(ask "WITH w AS MATERIALIZED (SELECT _id::int AS k, bson_project(doc, '{_id: 0, revision: 0}')::text AS doc FROM whole) SELECT * FROM w a JOIN w b ON b.k = a.k + 20 WHERE a.doc <> b.doc LIMIT 3")" '' 'each transaction wrote both documents, or none'
is "$(ask "WITH l AS MATERIALIZED (SELECT book::int AS k, count(*) AS n FROM lines GROUP BY 1), p AS MATERIALIZED (SELECT _id::int AS k, (doc -> 'sum')::int AS n FROM pairs) SELECT * FROM p LEFT JOIN l USING (k) WHERE coalesce(l.n, 0) <> coalesce(p.n, 0) LIMIT 3")" '' 'and sums are those of their lines'

# A repair waits for a row in a shard and is killed there.
before=$(ask 'SELECT md5(string_agg(_id::text || doc::text, $$ $$ ORDER BY _id)) FROM (SELECT * FROM whole) w')
ask "SELECT run_command_on_shards('pairs', \$d\$DO \$x\$ BEGIN SET LOCAL session_replication_role = replica; UPDATE %s SET doc = bson_set(doc, 'n', -1); END \$x\$\$d\$)" >/dev/null
damaged=$(ask 'SELECT count(*) FROM pattern_check()')
# the lock is held until the coordinator's session ends
(echo "BEGIN; SELECT _id FROM pairs WHERE _id = 7::bson_value FOR UPDATE;"; sleep 4) | psql -XqAt >/dev/null 2>&1 &
sleep 1
ask "SELECT pattern_repair('pairs', 'a')" >"$DP_WORK/repair" &
repair=$!
sleep 1.5
dead=
for n in 1 2; do dead=$dead$(kill_one $n "wait_event_type = 'Lock'"); done
wait $repair
alive 1 && alive 2
ok 'a repair was killed' test "$dead" = yes -a -n "$(grep ERROR "$DP_WORK/repair")"
left=$(ask 'SELECT count(*) FROM pattern_check()')
wait
ask "SELECT recover_prepared_transactions()" >/dev/null
ask "SELECT pattern_repair('pairs', 'a')" >"$DP_WORK/repair"
is "$damaged $left $(ask 'SELECT count(*) FROM pattern_check()')" "40 40 0" 'it mended nothing, and the next one mends all'
is "$(ask 'SELECT md5(string_agg(_id::text || doc::text, $$ $$ ORDER BY _id)) FROM (SELECT * FROM whole) w')" "$before" 'documents are as before'
