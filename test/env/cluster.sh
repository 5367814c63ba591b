#!/bin/sh
# A private, throw-away PostgreSQL under build/: a copy of the installation in which the extension is installed, and a
# cluster on a unix socket. The machine's own installation and clusters are never touched.
#
#   cluster.sh prefix       make or refresh the copy of the installation; print its pg_config
#   cluster.sh install      build the extension and install it into the copy
#   cluster.sh start        install, then start the cluster (made when missing)
#   cluster.sh stop         stop the cluster
#   cluster.sh destroy      stop it and delete its data
#   cluster.sh psql ARGS    psql connected to the cluster
#   cluster.sh run COMMAND  any command with PGHOST, PGPORT, PGUSER and PATH set for the cluster
#
# PG_CONFIG chooses the PostgreSQL that is copied. Programs that refuse to run as root run as the user postgres.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
pg_config=${PG_CONFIG:-pg_config}
version=$("$pg_config" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
build=$top/build
prefix=$build/pg$version
data=$build/data$version
port=54$version
# The path of a socket may not be longer than about 100 bytes, so it does not always fit under build/.
sockets=$build/run
[ ${#sockets} -le 80 ] || sockets=/tmp/docpatterns.$(printf '%s' "$build" | cksum | cut -d' ' -f1)

as_postgres() {
  if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --init-groups env HOME="$build" "$@"; else "$@"; fi
}

# PostgreSQL finds its directories relative to its own binary, so a copy of the binaries next to links to everything else is
# an installation of its own, into which an extension can be installed without any rights on the machine.
make_prefix() {
  bin=$("$pg_config" --bindir) lib=$("$pg_config" --pkglibdir) share=$("$pg_config" --sharedir)
  stamp=$prefix/$("$pg_config" --version | tr -c 'A-Za-z0-9.\n' _)
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

case ${1:-} in
  prefix|install|start|stop|destroy|psql|run) ;;
  *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 2 ;;
esac
mkdir -p "$build" "$sockets"
private=$prefix$("$pg_config" --bindir)
if [ "$(id -u)" = 0 ]; then chown postgres: "$sockets" "$build"; fi

case $1 in
  prefix|install|start) make_prefix ;;
esac
case $1 in
  prefix) echo "$private/pg_config" ;;
  install|start)
    make -s -C "$top" PG_CONFIG="$pg_config" all
    make -s -C "$top" PG_CONFIG="$pg_config" install \
      pkglibdir="$prefix$("$pg_config" --pkglibdir)" datadir="$prefix$("$pg_config" --sharedir)" >/dev/null ;;
esac
case $1 in
  start)
    if [ ! -d "$data" ]; then
      mkdir -p "$data"
      [ "$(id -u)" != 0 ] || chown postgres: "$data"
      as_postgres "$private/initdb" -D "$data" -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync >"$build/initdb.log"
      cat >>"$data/postgresql.conf" <<EOF
listen_addresses = ''
unix_socket_directories = '$sockets'
port = $port
fsync = off
max_prepared_transactions = 10
max_wal_senders = 10
wal_level = logical
shared_buffers = 256MB
log_line_prefix = '%m [%p] '
EOF
    fi
    as_postgres "$private/pg_ctl" -D "$data" status >/dev/null 2>&1 ||
      as_postgres "$private/pg_ctl" -D "$data" -l "$data/server.log" -w -t 60 start >/dev/null ;;
  stop)
    [ ! -d "$data" ] || as_postgres "$private/pg_ctl" -D "$data" -m fast -w stop >/dev/null 2>&1 || true ;;
  destroy)
    [ ! -d "$data" ] || as_postgres "$private/pg_ctl" -D "$data" -m immediate -w stop >/dev/null 2>&1 || true
    rm -rf "$data" ;;
  psql|run)
    what=$1; shift
    PGHOST=$sockets PGPORT=$port PGUSER=postgres PGDATABASE=${PGDATABASE:-postgres} PATH=$private:$PATH
    export PGHOST PGPORT PGUSER PGDATABASE PATH
    if [ "$what" = psql ]; then exec "$private/psql" -X "$@"; else exec "$@"; fi ;;
esac
