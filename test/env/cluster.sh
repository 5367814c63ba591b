#!/bin/sh
# A private, throw-away PostgreSQL under build/: a copy of the installation in which the extension is installed, and a
# cluster on a unix socket. The machine's own installation and clusters are never touched.
#
#   cluster.sh prefix       make or refresh the copy of the installation; print its pg_config
#   cluster.sh install      build the extension and install it into the copy
#   cluster.sh start        install, then start the cluster (made when missing)
#   cluster.sh stop         stop the cluster
#   cluster.sh restart      stop it in good order and start it again
#   cluster.sh crash        stop it as a crash would and start it again
#   cluster.sh standby      a copy of the running cluster that follows it, on the same socket's directory; prints its port
#   cluster.sh promote      let the standby go on by itself
#   cluster.sh leave        stop the standby and delete it
#   cluster.sh log          print where the server's log is
#   cluster.sh home         print where all of it is
#   cluster.sh status       exit status 0 when it runs
#   cluster.sh destroy      stop it and delete its data
#   cluster.sh clean        stop every cluster under build/ and delete build/ (the chroots of the matrix stay)
#   cluster.sh psql ARGS    psql connected to the cluster
#   cluster.sh run COMMAND  any command with PGHOST, PGPORT, PGUSER and PATH set for the cluster
#
# PG_CONFIG chooses the PostgreSQL that is copied. CLUSTER=name is one more cluster, beside the first, with a copy and a
# build of its own (COPT and SERVER_ENV, compiler flags and NAME=value words for its server, are for these). NODE=number
# is one more server of a cluster, with the same installation and sockets; CONF is lines for the configuration of a new
# server. Programs that refuse to run as root run as the user postgres.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
pg_config=${PG_CONFIG:-pg_config}
build=$top/build
unset MAKEFLAGS MAKELEVEL MFLAGS

as_postgres() {
  if [ "$(id -u)" = 0 ]; then
    (cd / && setpriv --reuid=postgres --regid=postgres --init-groups env HOME="$base" "$@")
  else
    "$@"
  fi
}

# Outside of build/ somebody else may have been there first: a directory there has to be ours and no link.
ours() {
  [ ! -L "$1" ] && case $(stat -c %U "$1") in "$(id -un)"|postgres) true ;; *) false ;; esac ||
    { echo "cluster.sh: $1 belongs to somebody else" >&2; exit 1; }
}

# Where everything is: build/, unless the user postgres cannot reach it (a clone under /root).
base=$build
mkdir -p "$build"
name=$(printf '%s' "$build" | cksum | cut -d' ' -f1)
if [ "$(id -u)" = 0 ]; then
  if ! id postgres >/dev/null 2>&1; then
    [ "${1:-}" = clean ] || { echo "cluster.sh: there is no user postgres to run the server as" >&2; exit 1; }
  elif ! as_postgres test -x "$build"; then
    base=/var/tmp/docpatterns.$name
    mkdir -p "$base"
    ours "$base"
    ln -sfn "$base" "$build/elsewhere"
  fi
fi

home=$base${CLUSTER:+/$CLUSTER}
sockets=$home/run
# The path of a socket may not be longer than about 100 bytes, so it does not always fit under build/.
[ ${#sockets} -le 80 ] || sockets=/tmp/docpatterns.$name${CLUSTER:+.$CLUSTER}

# Whether the server runs. A zombie does not: where nobody collects dead processes (a container), pg_ctl takes it for alive.
running() {
  pid=$(head -1 "$data/postmaster.pid" 2>/dev/null) && [ -n "$pid" ] || return 1
  case $(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) in ''|Z*|X*) return 1 ;; esac
  grep -qE 'postgres|memcheck' "/proc/$pid/comm"  # the second is a server in valgrind
}

# Stops the server, which is no fault when it does not run.
stop() {
  running || return 0
  case $1 in fast) signal=INT ;; immediate) signal=QUIT ;; esac
  kill -"$signal" "$pid"
  i=0
  while running; do
    i=$((i + 1))
    [ $i -lt 300 ] || kill -KILL "$pid" 2>/dev/null || true
    sleep 0.1
  done
}

if [ "${1:-}" = clean ]; then
  for pid in "$base"/data*/postmaster.pid "$base"/*/data*/postmaster.pid; do
    [ -e "$pid" ] || continue
    data=${pid%/*}
    stop immediate
  done
  for dir in "$base"/* "$build"/*; do
    [ "${dir##*/}" = matrix ] || rm -rf "$dir"
  done
  [ "$base" = "$build" ] || rm -rf "$base"
  rm -rf "/tmp/docpatterns.$name" "/tmp/docpatterns.$name".*
  rmdir "$build" 2>/dev/null || true
  exit 0
fi

version=$("$pg_config" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
prefix=$home/pg$version
data=$home/data$version${NODE:+.$NODE}
log=$home/server$version${NODE:+.$NODE}.log
port=$((5400 + version + 1000 * ${NODE:-0}))
private=$prefix$("$pg_config" --bindir)

# PostgreSQL finds its directories relative to its own binary, so a copy of the binaries next to links to everything else is
# an installation of its own, into which an extension can be installed without any rights on the machine.
make_prefix() {
  bin=$("$pg_config" --bindir) lib=$("$pg_config" --pkglibdir) share=$("$pg_config" --sharedir)
  # pgTAP may come later than the first copy
  stamp=$prefix/$({ "$pg_config" --version; ls "$share/extension"; } | cksum | cut -d' ' -f1)
  [ -e "$stamp" ] && return
  rm -rf "$prefix"
  mkdir -p "$prefix$bin" "$prefix$lib" "$prefix$share"
  cp -a "$bin/." "$prefix$bin/"
  cp -as "$lib/." "$prefix$lib/"
  cp -asL "$share/." "$prefix$share/" 2>/dev/null || cp -aL "$share/." "$prefix$share/"
  for dir in includedir includedir-server; do
    d=$("$pg_config" --$dir)
    [ -e "$prefix$d" ] || { mkdir -p "$(dirname "$prefix$d")"; ln -s "$d" "$prefix$d"; }
  done
  : > "$stamp"
}

# Prints the directory to build in: the source itself for the first cluster, a copy for the others. What was deleted from
# the source is deleted from the copy; unchanged files keep their time (to the nanosecond, as posix has it), so make builds what changed.
sources() {
  if [ -z "${CLUSTER:-}" ]; then echo "$top"; return; fi
  mkdir -p "$home/src"
  tar -C "$top" --format=posix --exclude='*.o' --exclude='*.bc' --exclude='*.d' -cf - Makefile docpatterns.control src sql | tar -C "$home/src" -xf -
  (cd "$home/src" && find src sql -name '*.[ch]' -o -name '*.sql') | while read -r file; do
    [ -e "$top/$file" ] || rm -f "$home/src/$file" "$home/src/${file%.c}.o"
  done
  echo "$home/src"
}

install() {
  make_prefix
  from=$(sources)
  set -- make -s -j"$(nproc)" -C "$from" PG_CONFIG="$pg_config" with_llvm=no COPT="${COPT:-}"
  "$@" all
  rm -f "$prefix$("$pg_config" --sharedir)"/extension/docpatterns--*.sql
  "$@" install pkglibdir="$prefix$("$pg_config" --pkglibdir)" datadir="$prefix$("$pg_config" --sharedir)" >/dev/null
}

start() {
  if [ ! -e "$data/PG_VERSION" ]; then
    rm -rf "$data"
    mkdir -p "$data"
    [ "$(id -u)" != 0 ] || chown postgres: "$data"
    as_postgres "$private/initdb" -D "$data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync >"$home/initdb.log" 2>&1 ||
      { cat "$home/initdb.log" >&2; return 1; }
    cat >>"$data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$sockets'
port = $port
fsync = off
max_prepared_transactions = 10
max_wal_senders = 10
max_replication_slots = 10
wal_level = logical
shared_buffers = 256MB
log_line_prefix = '%m [%p] '
${CONF:-}
CONF
  fi
  running && return
  # what a killed server left behind would be taken for a living one
  rm -f "$data/postmaster.pid" "$sockets/.s.PGSQL.$port" "$sockets/.s.PGSQL.$port.lock"
  mkdir -p "$sockets"
  ours "$sockets"
  [ "$(id -u)" != 0 ] || chown -h postgres: "$sockets"
  : >>"$log"
  [ "$(id -u)" != 0 ] || chown postgres: "$log"
  as_postgres env ${SERVER_ENV:-} "$private/pg_ctl" -D "$data" -l "$log" -w -t 60 start >/dev/null ||
    { tail -n 20 "$log" >&2; return 1; }
}

# The standby: a base backup of the running server beside its data.
standby() {
  leave
  mkdir -m 700 "$data.standby"
  [ "$(id -u)" != 0 ] || chown postgres: "$data.standby"
  as_postgres "$private/pg_basebackup" -h "$sockets" -p "$port" -U postgres -D "$data.standby" -R -c fast -X stream --no-sync
  echo "port = 55$version" >>"$data.standby/postgresql.conf"
  : >"$data.standby.log"
  [ "$(id -u)" != 0 ] || chown postgres: "$data.standby.log"
  as_postgres env ${SERVER_ENV:-} "$private/pg_ctl" -D "$data.standby" -l "$data.standby.log" -w -t 120 start >/dev/null ||
    { tail -n 20 "$data.standby.log" >&2; return 1; }
  echo "55$version"
}

leave() {
  (data=$data.standby; stop immediate)
  rm -rf "$data.standby" "$sockets/.s.PGSQL.55$version"*
}

what=${1:-}
[ $# = 0 ] || shift
mkdir -p "$home"
case $what in
  prefix) make_prefix; echo "$private/pg_config" ;;
  install) install ;;
  start) install; start ;;
  standby) standby ;;
  promote) as_postgres "$private/pg_ctl" -D "$data.standby" -w -t 120 promote >/dev/null ;;
  leave) leave ;;
  stop) leave; stop fast; case $sockets in /tmp/*) rm -rf "$sockets" ;; esac ;;
  restart) stop fast; start ;;
  crash) stop immediate; start ;;
  status) running ;;
  log) echo "$log" ;;
  home) echo "$home" ;;
  destroy) leave; stop immediate; rm -rf "$data" "$sockets" ;;
  psql|run)
    # the copy's pg_config comes first in PATH; this script, called again from there, still copies the original
    PG_CONFIG=$(command -v "$pg_config")
    PGHOST=$sockets PGPORT=$port PGUSER=postgres PGDATABASE=${PGDATABASE:-postgres} PATH=$private:$PATH
    export PG_CONFIG PGHOST PGPORT PGUSER PGDATABASE PATH
    if [ "$what" = psql ]; then exec "$private/psql" -X "$@"; else exec "$@"; fi ;;
  *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 2 ;;
esac
