#!/bin/sh
# Makes sure that what a command needs is installed.
#
#   packages.sh build       compiler, PostgreSQL with its server headers, libbson, PCRE2, ICU
#   packages.sh test        the same and pgTAP (the isolation tester comes with the server headers)
#   packages.sh clients     the drivers that the pages for clients use, as far as they can be had: exit status 0
#   packages.sh extensions  PostGIS and pgvector, for the examples in docs/search.md, as far as they can be had
#   packages.sh docs        Sphinx with MyST and the theme Furo
#   packages.sh valgrind    all that, and valgrind
#   packages.sh matrix      debootstrap
#   packages.sh deb         what builds a Debian package
#
# On Debian, as root or with sudo, what is missing is installed from the distribution. Anywhere else the missing packages
# are named and the exit status is 1. Prints nothing when nothing is missing. PG_CONFIG chooses a PostgreSQL of your own;
# it is then never installed by us.
#
# The machine's clusters are left alone: the server package would create and start a cluster "main", so it is told not to
# for as long as the installation runs.
set -eu

what=${1:-}
case $what in
  build|test|clients|extensions|valgrind|matrix|docs|deb) ;;
  *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 2 ;;
esac

# The major version of the PostgreSQL to use: the one chosen or installed, else the one of the distribution.
pg_version() {
  v=
  if [ -n "${PG_CONFIG:-}" ]; then
    v=$("$PG_CONFIG" --version 2>/dev/null) || v=
  elif command -v pg_config >/dev/null && [ -e "$(pg_config --pgxs 2>/dev/null)" ]; then
    v=$(pg_config --version)
  fi
  v=$(printf '%s' "$v" | sed 's/[^0-9]*\([0-9]*\).*/\1/')
  [ -n "$v" ] || v=$(find /usr/lib/postgresql/*/bin/initdb 2>/dev/null | sed 's|.*postgresql/\([0-9]*\)/.*|\1|' | sort -n | tail -1)
  [ -n "$v" ] || v=$(apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9][0-9]*\)$/\1/p' | sort -n | tail -1)
  printf '%s' "$v"
}

# Prints the Debian packages that are missing, one a line.
missing() {
  packages=
  case $what in
    docs) packages='python3-sphinx python3-myst-parser furo' ;;
    deb) packages='build-essential debhelper fakeroot libbson-dev libicu-dev libpcre2-dev pkg-config postgresql-server-dev-all' ;;
  esac
  if [ -n "$packages" ]; then
    for package in $packages; do
      dpkg -s "$package" >/dev/null 2>&1 || echo "$package"
    done
    return
  fi
  if [ "$what" = clients ]; then
    for module in psycopg psycopg2 sqlalchemy django pandas pymongo; do
      [ -e "/usr/lib/python3/dist-packages/$module" ] || echo "python3-$module"
    done
    ls /usr/lib/python3/dist-packages/bson/_cbson*.so >/dev/null 2>&1 || echo python3-bson-ext
    command -v redis-server >/dev/null || echo redis-server
    command -v javac >/dev/null || echo default-jdk-headless
    [ -e /usr/share/java/postgresql.jar ] || echo libpostgresql-jdbc-java
    [ -e /usr/share/java/bson.jar ] || echo libmongodb-java
    [ -e /usr/share/java/spring3-jdbc.jar ] || echo libspring-jdbc-java
    command -v go >/dev/null || echo golang-go
    [ -e /usr/share/gocode/src/github.com/jackc/pgx/v4 ] || echo golang-github-jackc-pgx-v4-dev
    [ -e /usr/share/gocode/src/go.mongodb.org/mongo-driver ] || echo golang-mongodb-mongo-driver-dev
    return
  fi
  if [ "$what" = extensions ]; then
    version=$(pg_version)
    share=$("${PG_CONFIG:-pg_config}" --sharedir)/extension
    [ -e "$share/postgis.control" ] || echo "postgresql-$version-postgis-3"
    [ -e "$share/vector.control" ] || echo "postgresql-$version-pgvector"
    return
  fi
  if [ "$what" = matrix ]; then
    command -v debootstrap >/dev/null || [ -x /usr/sbin/debootstrap ] || echo debootstrap
    return
  fi
  command -v cc >/dev/null && command -v make >/dev/null || echo build-essential
  command -v pkg-config >/dev/null || echo pkg-config
  command -v pkg-config >/dev/null && { pkg-config --exists bson2 || pkg-config --exists libbson-1.0; } 2>/dev/null || echo libbson-dev
  command -v pkg-config >/dev/null && pkg-config --exists icu-i18n 2>/dev/null || echo libicu-dev
  command -v pkg-config >/dev/null && pkg-config --exists libpcre2-8 2>/dev/null || echo libpcre2-dev
  version=$(pg_version)
  config=${PG_CONFIG:-/usr/lib/postgresql/$version/bin/pg_config}
  [ -x "$config" ] || config=$(command -v "${PG_CONFIG:-pg_config}" || echo false)
  includes=$("$config" --includedir-server 2>/dev/null) || includes=
  bin=$("$config" --bindir 2>/dev/null) || bin=/usr/lib/postgresql/$version/bin
  share=$("$config" --sharedir 2>/dev/null) || share=/usr/share/postgresql/$version
  [ -x "$bin/initdb" ] || echo "postgresql-${version:-server}"
  [ -e "$includes/postgres.h" ] && [ -e "$("$config" --pgxs 2>/dev/null)" ] || echo "postgresql-server-dev-${version:-all}"
  if [ "$what" = valgrind ]; then command -v valgrind >/dev/null && [ -e /usr/include/valgrind/memcheck.h ] || echo valgrind; fi
  if [ "$what" = test ] || [ "$what" = valgrind ]; then
    [ -e "$share/extension/pgtap.control" ] || echo "postgresql-${version:-server}-pgtap"
  fi
}

# Node's packages come from its registry. Debian's npm is four hundred packages, so it is not installed.
node_packages() {
  build=$(dirname "$0")/../../build
  [ "$what" = clients ] && command -v npm >/dev/null && [ ! -e "$build/node_modules/drizzle-orm" ] || return 0
  mkdir -p "$build"
  npm install --prefix "$build" --silent --no-fund --no-audit pg@8 pg-copy-streams@6 bson@6 drizzle-orm@0 >/dev/null 2>&1 </dev/null || true
}

refuse() {
  [ -z "$optional" ] || { echo "docpatterns: tests that need these packages are skipped:" $lack; node_packages; exit 0; }
  {
    echo "docpatterns: $1"
    echo "These packages are missing (Debian's names):"
    printf '  %s\n' $lack
  } >&2
  exit 1
}

optional=
case $what in clients|extensions) optional=1 ;; esac
lack=$(missing)
[ -n "$lack" ] || { node_packages; exit 0; }
[ -e /etc/debian_version ] && command -v apt-get >/dev/null || refuse "packages are installed on Debian only, and this is another system."
[ -z "${PG_CONFIG:-}" ] || case "$lack" in
  *postgresql*) refuse "PG_CONFIG=$PG_CONFIG is not a complete PostgreSQL installation." ;;
esac
sudo=
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || refuse "packages can be installed by root only, and there is no sudo."
  if [ -t 0 ]; then sudo=sudo; else sudo='sudo -n'; fi
  $sudo true 2>/dev/null || refuse "packages can be installed by root only, and sudo is refused."
fi

# Everything that is changed for the time of the installation is put back at its end, whatever the end is.
quiet=/etc/postgresql-common/createcluster.d/docpatterns.conf
policy=/usr/sbin/policy-rc.d
placed=
restore() {
  # shellcheck disable=SC2086
  [ -z "$placed" ] || $sudo rm -f $placed
}
trap restore EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# No cluster is made for a server that is installed now, and none that is stopped is started.
$sudo mkdir -p "${quiet%/*}"
placed=$quiet
echo 'create_main_cluster = false' | $sudo tee "$quiet" >/dev/null
if [ ! -e "$policy" ] && [ -n "$(find /etc/postgresql -name postgresql.conf 2>/dev/null)" ]; then
  placed="$placed $policy"
  printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" >/dev/null
  $sudo chmod 755 "$policy"
fi

apt() {
  $sudo env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get -q -y \
    -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=120 "$@" </dev/null
}

log=$(mktemp)
placed="$placed $log"
attempt() {
  "$@" >"$log" 2>&1 || { tail -n 20 "$log" >&2; return 1; }
}

# Each package by itself: one that a release does not have leaves the others.
if [ -n "$optional" ]; then
  echo "docpatterns: installing" $lack
  apt update >"$log" 2>&1 || true
  for package in $lack; do apt install --no-install-recommends "$package" >"$log" 2>&1 || true; done
  lack=$(missing)
  [ -z "$lack" ] || refuse
  node_packages
  exit 0
fi

# Lists that are missing or old know no version to install, so a failed attempt refreshes them and tries again.
lack=$(missing)
echo "docpatterns: installing" $lack
case "$lack" in *-server*|*-all*) attempt apt update; lack=$(missing) ;; esac
# shellcheck disable=SC2086
if ! apt install --no-install-recommends $lack >"$log" 2>&1; then
  attempt apt update || refuse "the package lists cannot be refreshed."
  lack=$(missing)
  # shellcheck disable=SC2086
  attempt apt install --no-install-recommends $lack || refuse "the installation failed."
fi
lack=$(missing)
[ -z "$lack" ] || refuse "packages are still missing after the installation."
