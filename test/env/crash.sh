# For the crash tests in test/t, which source it.
#
#   crash_during ROUND 'SELECT work();' 1
#
# lets three sessions repeat a statement in the database PGDATABASE for so many seconds and then kills one of them (odd
# rounds), or the whole server (even rounds). Returns when the server has recovered.
crash_during() {  # crash_during ROUND STATEMENT SECONDS
  local round=$1 statement=$2 seconds=$3 data postmaster children pid
  data=$(psql -XqAt -c 'SHOW data_directory')
  for _ in 1 2 3; do
    yes "$statement" | head -n 100000 | psql -XqAt >/dev/null 2>&1 &
  done
  sleep "$seconds"
  if [ $((round % 2)) = 1 ]; then
    # a backend that works: the server restarts by itself
    kill -KILL "$(psql -XqAt -d postgres -v statement="${statement%;}" -v name="$PGDATABASE" <<'SQL'
SELECT pid FROM pg_stat_activity WHERE datname = :'name' ORDER BY starts_with(query, :'statement') DESC LIMIT 1
SQL
)"
    wait
    for _ in {1..100}; do psql -XqAt -c 'SELECT 1' >/dev/null 2>&1 && break; sleep 0.2; done
  else
    # the whole server, then its orphans, which go by themselves
    postmaster=$(head -1 "$data/postmaster.pid")
    children=$(pgrep -P "$postmaster")
    kill -KILL "$postmaster"
    wait
    for pid in $children; do
      for _ in {1..100}; do
        grep -q 'State:.*[ZX]' "/proc/$pid/status" 2>/dev/null && break
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.1
      done
    done
    "$DP_CLUSTER" crash
  fi
}
