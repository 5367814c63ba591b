# For the scripts test/t/*_stress.sh, which source it: many clients in a database of their own, and what they met.
#
#   . "$DP_TOP/test/env/stress.sh"
#   stress_begin dp_x 20261            # makes the database with the extension; SEED and STRESS_SECONDS win over 20261 and 5
#   work() { stress_awk "$1" "$2" 'BEGIN { for (;;) print "SELECT " r(6) ";" }'; }
#   stress_run alone 3                 # each client runs what `work NUMBER alone` prints, for 3 seconds
#   stress_count 40P01 alone           # how many of these errors they met
#   stress_retry 3 <<<'UPDATE ..'      # the same by pgbench, where each transaction is tried until it succeeds
. "$DP_TOP/test/env/tap.sh"

stress_begin() {  # stress_begin DATABASE SEED: sets seed, seconds and clients
  seed=${SEED:-$2} seconds=${STRESS_SECONDS:-5} clients=8
  echo "# seed $seed, $seconds seconds, $clients clients"
  export PGOPTIONS='-c client_min_messages=warning' PGDATABASE=postgres
  psql -Xq -c "DROP DATABASE IF EXISTS $1 WITH (FORCE)" -c "CREATE DATABASE $1" -c "ALTER DATABASE $1 SET deadlock_timeout = '50ms'"
  export PGDATABASE=$1
  psql -Xq -c 'CREATE EXTENSION docpatterns'
}

stress_end() {
  local database=$PGDATABASE
  PGDATABASE=postgres psql -Xq -c "DROP DATABASE $database WITH (FORCE)"
}

ask() { psql -XqAt -c "$1" 2>&1; }

# Makes the tables: the SQL that comes on standard input.
stress_setup() {
  psql -XqAt -v ON_ERROR_STOP=1 >/dev/null || echo 'not ok 0 - the tables were made'
}

# An awk program that prints statements for ever, with a random source of its own: r(n) is one of 1..n, level() what to begin a
# transaction with.
stress_awk() {  # stress_awk NUMBER TAG PROGRAM
  awk -v seed=$((seed + $1)) -v client="$1" -v tag="$2" "
    function r(n) { return int(rand() * n) + 1 }
    function level(   l) { l = r(6); return \"BEGIN ISOLATION LEVEL \" (l <= 3 ? \"READ COMMITTED\" : l <= 5 ? \"REPEATABLE READ\" : \"SERIALIZABLE\") \"; \" }
    BEGIN { srand(seed) }
    $3" 2>/dev/null
}

# Runs all clients and waits until the sessions whose psql was stopped have ended what they were doing. With a command they run again until
# it succeeds, because a slow machine does little in that time; at most 20 times.
stress_run() {  # stress_run TAG SECONDS [COMMAND...]
  local i jobs tag=$1 time=$2
  shift 2
  rm -f "$DP_WORK/errors.$tag".*
  for _ in {1..20}; do
    jobs=
    for i in $(seq "$clients"); do
      work "$i" "$tag" | timeout "$time" psql -XqAt -v VERBOSITY=verbose >/dev/null 2>>"$DP_WORK/errors.$tag.$i" &
      jobs="$jobs $!"
    done
    # shellcheck disable=SC2086
    wait $jobs
    "${@:-true}" && break
  done
  set -- "$tag"
  for _ in {1..200}; do
    [ "$(ask "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'")" = 0 ] && break
    sleep 0.1
  done
  stress_repair
  echo "# $1: $(stress_count 40P01 "$1") deadlocks, $(stress_count 40001 "$1") serialization failures; so far $(ask "SELECT xact_commit || ' transactions' FROM pg_stat_database WHERE datname = current_database()")"
  [ "$1" != alone ] || [ "$(stress_count 40P01 alone)" = 0 ] || stress_deadlocks
  cat "$DP_WORK/errors.$1".* | grep -o 'ERROR:  .*' | sed 's/[0-9a-f]\{6,\}/N/g; s/[0-9][0-9]* of \(table\|relation\)/N of \1/' | cut -c 1-150 | sort | uniq -c | sort -rn | head -12 | sed 's/^/# /'
}

# Repairs what a transaction left to one that was then rolled back: it waits for the next one that writes to the table. Anything
# that is wrong has such a note.
stress_repair() {
  if [ "$(ask 'SELECT count(*) FROM docpatterns.notes')" != 0 ]; then
    ask 'SELECT format($$not ok 0 - wrong without a note: %s$$, x) FROM pattern_check() x WHERE NOT EXISTS (SELECT FROM docpatterns.notes n WHERE (n.rel, n.name) = (x.rel, x.name)) LIMIT 5'
    ask 'SELECT format($$# left to %s of %s: %s$$, n.name, n.rel, pattern_repair(n.rel, n.name)) FROM (SELECT DISTINCT rel, name FROM docpatterns.notes) n'
  fi
}

# Runs transactions that have to succeed in the end: what fails with a serialization failure or a deadlock is tried again by pgbench,
# and any other error ends its client. Standard input has one transaction a line, without BEGIN and COMMIT, in pgbench's language; :a to
# :d are random numbers up to 8, 12, 100 and 1000. Isolation levels are mixed. Prints what went wrong, and how much was done into
# $DP_WORK/retried.
stress_retry() {  # stress_retry SECONDS
  local line files= i=0
  while IFS= read -r line; do
    [ -n "$line" ] || continue
    i=$((i + 1))
    {
      printf '\\set %s random(1, %s)\n' a 8 b 12 c 100 d 1000 level 6
      printf '\\if :level <= 3\nBEGIN;\n\\elif :level <= 5\nBEGIN ISOLATION LEVEL REPEATABLE READ;\n\\else\nBEGIN ISOLATION LEVEL SERIALIZABLE;\n\\endif\n%s\nCOMMIT;\n' "$line"
    } >"$DP_WORK/retry.$i.sql"
    files="$files -f $DP_WORK/retry.$i.sql"
  done
  # shellcheck disable=SC2086
  pgbench -n -c "$clients" -j 2 -T "$1" --max-tries=0 --random-seed="$seed" $files >"$DP_WORK/retried" 2>&1 </dev/null
  stress_repair >&2
  sed -n 's/^number of transactions actually processed: \(.*\)/# retried: \1 transactions/p;s/^\(number of transactions retried.*\|total number of retries.*\)/# \1/p' "$DP_WORK/retried" >&2
  grep -i 'error\|aborted\|fatal\|^number of failed transactions: [1-9]' "$DP_WORK/retried" | head -5
}

# Who waited for whom in the deadlocks that there were last, as the server's log says.
stress_deadlocks() {
  awk '/deadlock detected/ { n = 9 } n-- > 0' "$("$DP_TOP/test/env/cluster.sh" log)" | grep 'DETAIL:\|Process\|CONTEXT:' | cut -c 1-300 | tail -n 24 | sed 's/^/# /'
}

# How many errors of that SQLSTATE (or that begin with these letters) clients met.
stress_count() {  # stress_count SQLSTATE [TAG]
  cat "$DP_WORK/errors.${2:-}"* | grep -c "ERROR:  $1"
}

# Whether there were so many.
stress_met() {  # stress_met NUMBER SQLSTATE TAG
  [ "$(stress_count "$2" "$3")" -ge "$1" ]
}

# Errors other than these: serialization failures, deadlocks, what follows an error in its transaction, and what the pattern says.
stress_others() {  # stress_others [PATTERN]
  cat "$DP_WORK"/errors.* | grep 'ERROR:\|FATAL:\|PANIC:\|connection to server was lost' |
    grep -v "ERROR:  40001\|ERROR:  40P01\|ERROR:  25P02\|ERROR:  3B001${1:+\|$1}" | sort | uniq -c | sort -rn | cut -c 1-200 | head -5
}
