#!/bin/bash
# Upgrades a server: a cluster with every pattern (test/env/everything.sh) goes through pg_upgrade, once with copies of its files and
# once with links to them, and everything in it goes on. Prints TAP.
#
#   upgrade_server.sh OLD_PG_CONFIG NEW_PG_CONFIG
#
# test/matrix.sh pg_upgrade calls it in a chroot that has two versions of PostgreSQL. Both clusters are private ones under build/.
set -u
cd "$(dirname "$0")/.." || exit 1
export DP_TOP=$PWD LC_ALL=C.UTF-8 PGOPTIONS='-c client_min_messages=warning -c jit=off'
. test/env/tap.sh
. test/env/everything.sh
old_config=$1 new_config=$2
cluster() { CLUSTER=upgrade_$1 PG_CONFIG=$([ "$1" = old ] && echo "$old_config" || echo "$new_config") test/env/cluster.sh "${@:2}"; }
# A function of this file (or of those it has read), connected to one of the clusters.
on() {  # on CLUSTER FUNCTION ARGUMENT...
  local PGHOST PGPORT PGUSER=${as:-postgres} PATH=$PATH
  eval "$(cluster "$1" run sh -c 'printf "PGHOST=%s PGPORT=%s PATH=%s" "$PGHOST" "$PGPORT" "$PATH"')"
  export PGHOST PGPORT PGUSER PATH
  shift
  "$@"
}
# Its dump without the bodies of views, which each version of PostgreSQL writes in its own way, and of settings.
statements() { PATH=$new_bin:$PATH everything_text dp_all | grep -av '^ \|^SET \|^$'; }
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d dp_all -c "$1" 2>&1; }
work=$PWD/build/upgrade_server
plan 30

finish() {
  cluster old destroy
  cluster new destroy
}
trap finish EXIT
finish
rm -rf "$work"
mkdir -p "$work"
chmod 777 "$work"
home_old=$(cluster old home) home_new=$(cluster new home)

for mode in copy link; do
  cluster old start && cluster new start || exit 1
  fill() {
    psql -Xq -d postgres -c 'CREATE ROLE dp_all_owner LOGIN' -c 'CREATE DATABASE dp_all OWNER dp_all_owner'
    psql -Xq -d dp_all -c 'CREATE EXTENSION docpatterns'
    PGUSER=dp_all_owner everything_fill dp_all
  }
  on old fill
  is "$(as=dp_all_owner on old everything_alive dp_all undone)" '' "$mode: all is true and alive before"
  on old everything_rows dp_all >"$work/rows"
  on old everything_made dp_all >"$work/made"
  old_bin=$(dirname "$(cluster old run sh -c 'command -v postgres')") new_bin=$(dirname "$(cluster new run sh -c 'command -v postgres')")
  on old statements >"$work/text"
  on old ask "SELECT extversion FROM pg_extension WHERE extname = 'docpatterns'" >"$work/version"
  cluster old stop
  cluster new stop
  rm -rf "$work/run"
  mkdir -p "$work/run"
  [ "$(id -u)" != 0 ] || chown postgres: "$work/run"
  # (the path of a socket may not be long)
  sockets=$(mktemp -d /tmp/dpXXXXXX)
  [ "$(id -u)" != 0 ] || chown postgres: "$sockets"
  upgrade() {
    cd "$work/run" && if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --init-groups env HOME="$work/run" "$@"; else "$@"; fi
  }
  (upgrade "$new_bin/pg_upgrade" -b "$old_bin" -B "$new_bin" -d "$home_old"/data* -D "$home_new"/data* -s "$sockets" -U postgres $([ "$mode" = link ] && echo --link)) >"$work/log" 2>&1
  status=$?
  rm -rf "$sockets"
  is "$status" 0 "$mode: pg_upgrade says that it went well"
  [ "$status" = 0 ] || { tail -n 30 "$work/log"; find "$home_new"/data*/pg_upgrade_output.d -name '*.log' -size +0 -exec tail -n 8 {} + 2>/dev/null; } | sed 's/^/# /'
  cluster new start
  is "$(on new ask "SELECT extversion FROM pg_extension WHERE extname = 'docpatterns'")" "$(cat "$work/version")" "$mode: the extension is there"
  is "$(as=dp_all_owner on new ask 'SELECT pattern_relink() > 80')" t "$mode: dependencies are recorded again"
  is "$(on new statements | diff - "$work/text" | head -5)" '' "$mode: a dump of it is the same text"
  is "$(on new everything_rows dp_all | diff - "$work/rows" | head -5)" '' "$mode: every byte is the same"
  is "$(on new everything_made dp_all | diff - "$work/made" | head -10)" '' "$mode: declarations, triggers and dependencies are the same"
  is "$(on new ask 'SELECT v FROM pattern_check() v')" '' "$mode: it is true"
  is "$(PGOPTIONS="$PGOPTIONS -c search_path=stored,public" on new stored_indexes dp_all)" '' "$mode: indexes that were not built anew answer as the tables do"
  is "$(on new ask "ANALYZE stored.sights; SELECT n_distinct FROM bson_stats('stored.sights') WHERE path = 'kind'")" 3 "$mode: ANALYZE finds statistics"
  is "$(as=dp_all_owner on new everything_alive dp_all)" '' "$mode: it goes on, and is true"
  is "$(PGOPTIONS="$PGOPTIONS -c search_path=stored,public" on new stored_indexes dp_all)" '' "$mode: indexes that were written to answer as the tables do"
  is "$(on new ask "DROP TABLE stored.books; " | head -1)" 'ERROR:  cannot drop table stored.books because other objects depend on it' "$mode: what belongs together is not dropped alone"
  is "$(on new ask "BEGIN; DROP TABLE movies, stored.books, derived.films CASCADE; SELECT count(*) FROM pg_class WHERE relname ~ '^(movies_history|movies_feed|books_b_extras|films_cold)' AND relnamespace <> 'derived'::regnamespace; ROLLBACK")" 0 "$mode: with CASCADE nothing is left"
  # a dump of what was upgraded can be restored
  again() {
    psql -Xq -d postgres -c 'CREATE DATABASE dp_again'
    pg_dump dp_all | psql -Xq -v ON_ERROR_STOP=1 -d dp_again 2>&1 >/dev/null
    psql -XqAt -d dp_again -c 'SELECT v FROM pattern_check() v' 2>&1
  }
  is "$(on new again)" '' "$mode: a dump of it can be restored"
  finish
done
