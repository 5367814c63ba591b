#!/bin/bash
# Two-phase commit in the midst of writes through every pattern: a transaction is prepared, or refused and undone; the server is
# killed; what was prepared is committed or rolled back after recovery, and everything is true before and after. KILLS says how often.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/crash.sh"
. "$DP_TOP/test/env/load.sh"
set -u
seed=${SEED:-20343} kills=${KILLS:-2}
RANDOM=$seed
echo "# seed $seed, $kills kills"
plan $((kills * 4 + 15))
export PGOPTIONS='-c client_min_messages=warning -c timezone=UTC -c lock_timeout=500ms'
ask() { psql -XqAt -v VERBOSITY=sqlstate -d "dp_two_$1" -c "$2" 2>&1; }
forget() {  # what is prepared keeps its database from being dropped
  local gid database
  psql -XqAt -d postgres -c "SELECT gid, database FROM pg_prepared_xacts WHERE database LIKE 'dp_two_%'" |
    while IFS='|' read -r gid database; do psql -Xq -d "$database" -c "ROLLBACK PREPARED '$gid'"; done
}
forget
load_fill dp_two
is "$(load_each dp_two)" '' 'each kind of write succeeds'

# What has notified cannot be prepared, and is undone as a whole.
number=$(printf '%s\n' 'BEGIN;' 'SELECT work(1);' "PREPARE TRANSACTION 'told';" | psql -XqAt -d dp_two_shapes 2>"$DP_WORK/refused")
is "$(cat "$DP_WORK/refused")" 'ERROR:  cannot PREPARE a transaction that has executed LISTEN, UNLISTEN, or NOTIFY' 'a feed that notifies is in the way of preparing'
is "$(ask shapes "SELECT count(*) FROM done WHERE n = $number; SELECT count(*) FROM pg_prepared_xacts; SELECT pattern_alter('movies', 'feed', '{channel: null}'); SELECT v FROM pattern_check('movies') v")" $'0\n0' 'and nothing is left of it'

# prepare DATABASE KIND: a transaction with a kind of work; prints its number
prepare() { printf '%s\n' 'BEGIN;' "SELECT work($2);" "PREPARE TRANSACTION '$1 $2';" | psql -XqAt -v VERBOSITY=sqlstate -d "dp_two_$1" 2>&1; }

# Every kind alone, with either end.
for name in shapes derived; do
  for kind in $(eval "seq \$load_kinds_$name"); do
    for end in COMMIT ROLLBACK; do
      number=$(prepare $name "$kind")
      psql -XqAt -d dp_two_$name -c "$end PREPARED '$name $kind'" \
        -c "SELECT '$name $kind: $end' WHERE $([ $end = ROLLBACK ] || echo NOT) EXISTS (SELECT FROM done WHERE n = ${number//[!0-9]/ })" 2>&1
    done
  done >"$DP_WORK/ends"
  is "$(cat "$DP_WORK/ends")" '' "$name: each kind of write is prepared, and committed or rolled back"
done
is "$(load_wrong dp_two)" '' 'all is true'

# Killed with several of them prepared, others' writes under way.
count=0
for kill in $(seq "$kills"); do
  load_start dp_two "${load_chores[$((RANDOM % ${#load_chores[@]}))]}"
  for _ in {1..3000}; do [ "$(load_told)" -gt 0 ] && break; sleep 0.02; done
  prepared=()
  for _ in {1..200}; do
    if [ $((RANDOM % 2)) = 0 ]; then name=shapes kind=$((RANDOM % load_kinds_shapes + 1)); else name=derived kind=$((RANDOM % load_kinds_derived + 1)); fi
    number=$(prepare $name $kind)
    # those that would wait for one that is prepared, or that somebody else was in the way of, are not
    case $number in ''|*[!0-9]*) ;; *) prepared+=("$name $kind $number") ;; esac
    [ ${#prepared[@]} -lt 8 ] || break
  done
  crash_kill all
  load_wait
  crash_start
  count=$((count + ${#prepared[@]}))
  echo "# kill $kill: ${#prepared[@]} prepared: $(IFS=,; echo "${prepared[*]}")"
  is "$(psql -XqAt -d postgres -c "SELECT gid FROM pg_prepared_xacts WHERE database LIKE 'dp_two_%' ORDER BY gid COLLATE \"C\"")" \
    "$([ ${#prepared[@]} = 0 ] || printf '%s\n' "${prepared[@]% *}" | LC_ALL=C sort)" "kill $kill: what was prepared is, after recovery"
  is "$(load_lost dp_two; load_wrong dp_two | grep -v 'canceling statement due to lock timeout')" '' "kill $kill: all is true without it"
  for one in "${prepared[@]}"; do
    read -r name kind number <<<"$one"
    end=$([ $((RANDOM % 2)) = 0 ] && echo COMMIT || echo ROLLBACK)
    ask "$name" "$end PREPARED '$name $kind'"
    ask "$name" "SELECT '$one: $end' WHERE $([ $end = ROLLBACK ] || echo NOT) EXISTS (SELECT FROM done WHERE n = $number)"
  done >"$DP_WORK/ends"
  is "$(cat "$DP_WORK/ends")" '' "kill $kill: it is committed or rolled back"
  is "$(load_finish dp_two; load_wrong dp_two)" '' "kill $kill: and all is true"
done
ok 'transactions were prepared' [ $count -ge $((kills * 2)) ]

# A prepared transaction holds readers of its feed back, also after a crash; and a declaration can be prepared.
psql -XqAt -d dp_two_shapes >/dev/null <<'SQL'
CREATE TABLE position AS SELECT change_feed_position('orders') AS at;
BEGIN;
INSERT INTO orders (doc) VALUES ('{_id: 1000001, n: 1000001}');
PREPARE TRANSACTION 'first';
INSERT INTO orders (doc) VALUES ('{_id: 1000002, n: 1000002}');
SQL
psql -XqAt -d dp_two_derived >/dev/null <<'SQL'
BEGIN;
SELECT outlier_enable('heap', 'l', 10, keep => 5, chunk => 7);
CALL pattern_build('heap', 'l', NULL);
PREPARE TRANSACTION 'declared';
SQL
read="SELECT string_agg(key::text, ',' ORDER BY position) FROM change_feed_read('orders', (SELECT at FROM position))"
is "$(ask shapes "$read")" '' 'a reader waits for what was prepared before'
crash_kill all
crash_start
is "$(ask shapes "$read")" '' 'also after a crash'
is "$(ask shapes "SELECT count(*) FROM orders WHERE _id > 1000000; SELECT v FROM pattern_check('orders') v")" 1 'who reads the table does not'
is "$(ask shapes "COMMIT PREPARED 'first'")$(ask shapes "$read; SELECT v FROM pattern_check('orders') v")" 1000001,1000002 'and is told everything in order'
is "$(ask derived "SELECT count(*) FROM pattern_list('heap')")" 0 'a declaration that is prepared does not exist'
is "$(ask derived 'UPDATE heap SET doc = doc WHERE _id = 39')" 'ERROR:  55P03' 'and is waited for'
# (a session that knows the table from before)
is "$(psql -XqAt -d dp_two_derived 2>&1 <<'SQL'
SELECT count(*) FROM pattern_list('heap');
\! psql -XqAt -d dp_two_derived -c "COMMIT PREPARED 'declared'"
UPDATE heap SET doc = bson_array_append(doc, 'l', 40) WHERE _id = 12;
SELECT bson_array_length(h.doc, 'l'), bson_array_length(w.doc, 'l') FROM heap h JOIN heap_whole w USING (_id) WHERE _id IN (12, 39) ORDER BY _id;
SELECT v FROM pattern_check('heap') v;
UPDATE heap_whole SET doc = bson_set(doc, 'l', bson_array(1)) WHERE _id = 12;
SELECT pattern_disable('heap', 'l') > 0;
SELECT bson_array_length(doc, 'l') FROM heap WHERE _id IN (12, 39) ORDER BY _id;
SQL
)" $'0\n5|13\n5|39\nt\n1\n39' 'it is there when it is committed'
is "$(ask derived "UPDATE heap SET doc = bson_set(doc, 'l', (SELECT bson_agg(j) FROM generate_series(1, 12) j)) WHERE _id = 12")$(load_finish dp_two; load_each dp_two; load_wrong dp_two)" '' 'and all goes on'
forget
load_drop dp_two
