# For the crash tests in test/t, which source it.
#
#   crash_kill HOW         kills with SIGKILL: "all" processes of the server at once, as a power failure does; the "postmaster" alone,
#                          when the others end what they are doing; one "backend" that has written, after which the server restarts
#                          by itself. Returns when they are gone. Sets crash_cut: how many transactions had written to the log and
#                          not ended (of a backend: 1)
#   crash_during HOW STATEMENT SECONDS   lets three sessions repeat a statement for so long, kills, and starts again
#   crash_start [SECONDS]  starts the server, which recovers; with SECONDS kills all of it so long after it began to, before
crash_directory=

crash_kill() {
  local pid i
  crash_directory=$(psql -XqAt -d postgres -c 'SHOW data_directory')
  case $1 in
    backend)
      pid=$(psql -XqAt -d postgres -c "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY backend_xid IS NULL, random() LIMIT 1")
      kill -KILL "$pid"
      for ((i = 0; i < 600; i++)); do psql -XqAt -d postgres -c 'SELECT 1' >/dev/null 2>&1 && break; sleep 0.1; done
      crash_cut=1 ;;
    *)
      crash_processes "$1"
      crash_cut=$(crash_in_flight) ;;
  esac
}

# Kills the postmaster, or with "all" everybody, none of whom sees another one go.
crash_processes() {
  local postmaster children pid i
  postmaster=$(head -1 "$crash_directory/postmaster.pid") && [ -n "$postmaster" ] || return
  [ "$1" != all ] || kill -STOP "$postmaster"
  children=$(pgrep -P "$postmaster")
  # shellcheck disable=SC2086
  if [ "$1" = all ]; then kill -KILL $children "$postmaster" 2>/dev/null; else kill -KILL "$postmaster"; fi
  for pid in $children "$postmaster"; do
    for ((i = 0; i < 1200; i++)); do
      case $(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) in ''|Z*|X*) break ;; esac
      sleep 0.05
    done
  done
}

# What has written to the log that recovery will read, and neither committed nor aborted in it.
crash_in_flight() {
  local redo
  redo=$(pg_controldata "$crash_directory" | sed -n "s/^Latest checkpoint's REDO location: *//p")
  pg_waldump -p "$crash_directory/pg_wal" -s "$redo" 2>/dev/null | awk '
    { tx = 0; for (i = 1; i <= NF; i++) if ($i == "tx:") { tx = $(i + 1) + 0; break } }
    tx { seen[tx] = 1 }
    /^rmgr: Transaction/ && /desc: (COMMIT|ABORT)/ {
      ended[tx] = 1
      if (match($0, /subxacts: [0-9 ]+/)) { n = split(substr($0, RSTART + 10, RLENGTH - 10), part, " "); for (i = 1; i <= n; i++) ended[part[i] + 0] = 1 }
    }
    END { for (tx in seen) if (!(tx in ended)) open++; print open + 0 }'
}

crash_start() {
  local i
  if [ $# = 1 ]; then
    rm -f "$crash_directory/postmaster.pid"
    "$DP_CLUSTER" crash >/dev/null 2>&1 &
    for ((i = 0; i < 600; i++)); do [ -s "$crash_directory/postmaster.pid" ] && break; sleep 0.02; done
    sleep "$1"
    crash_processes all
    wait $!
  fi
  "$DP_CLUSTER" crash
}

crash_during() {
  local jobs=
  for _ in 1 2 3; do
    yes "$2" | head -n 100000 | psql -XqAt >/dev/null 2>&1 &
    jobs="$jobs $!"
  done
  sleep "$3"
  crash_kill "$1"
  # shellcheck disable=SC2086
  wait $jobs
  crash_start
}
