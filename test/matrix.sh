#!/bin/bash
# Runs the suites on other releases of Debian and Ubuntu, each in a chroot of its own.
#
#   matrix.sh               noble (Ubuntu's, with PostgreSQL 16), trixie (17) and sid (18)
#   matrix.sh RELEASE...    these; "bare" is bookworm with nothing but git and make, thrown away afterwards, where a fresh
#                           clone runs the two commands of the README: make demo and make test; "bare-trixie" is the same
#                           with trixie
#   matrix.sh pg_upgrade    a cluster of PostgreSQL 15 (the packages of bookworm, unpacked in the chroot of trixie) goes
#                           through pg_upgrade to 17 (test/upgrade_server.sh)
#   matrix.sh package       in bookworm and trixie the Debian package is built from the tarball of make dist, and installed
#                           in a chroot that has nothing else; there CREATE EXTENSION is tried
#
# Chroots are made by debootstrap under CHROOTS (default build/matrix) and kept, with what was installed in them. MIRROR is
# Debian's archive (default: the one that apt uses here), UBUNTU_MIRROR Ubuntu's. SUITE chooses suites. Needs root and the right to mount: everything runs
# in mount and process namespaces of its own, so nothing stays mounted and nothing stays running.
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD
chroots=${CHROOTS:-$top/build/matrix}
releases=("$@")
[ $# -gt 0 ] || releases=(noble trixie sid)
[ "$(id -u)" = 0 ] || { echo "docpatterns: chroots can be made by root only" >&2; exit 1; }
unshare -m -p -f --propagation private true || { echo "docpatterns: no namespaces can be made here" >&2; exit 1; }
PATH=$PATH:/usr/sbin

# Prints the Debian archive that this machine's apt uses.
mirror() {
  local url
  url=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -v '^ *#' |
    grep -oE 'https?://[^ ]+/debian/?( |$)' | head -1)
  echo "${url:-http://deb.debian.org/debian}" | tr -d ' '
}

# Puts the keys of Ubuntu's archive into a file. They are in a package of its own, which is known by its checksum.
ubuntu_keys() {  # ubuntu_keys ARCHIVE FILE
  local dir status=1
  dir=$(mktemp -d) || return 1
  wget -q -O "$dir/keyring.deb" "$1/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb" &&
    echo "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8  $dir/keyring.deb" | sha256sum -c --quiet &&
    dpkg -x "$dir/keyring.deb" "$dir" && cp "$dir/usr/share/keyrings/ubuntu-archive-keyring.gpg" "$2" && status=0
  rm -rf "$dir"
  return $status
}

# Makes the chroot of a release when it is not there.
bootstrap() {  # bootstrap RELEASE DIRECTORY [OPTION...]
  local release=$1 root=$2 archive=${MIRROR:-$(mirror)} script=
  shift 2
  [ ! -e "$root/etc/debian_version" ] || return 0
  if [ "$release" = noble ]; then
    archive=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu} script=gutsy  # what all of its releases are made by
    ubuntu_keys "$archive" "$root.gpg" || return 1
    set -- "$@" --components=main,universe --keyring="$root.gpg"
  fi
  rm -rf "$root.part"
  mkdir -p "$root.part"
  echo "making a chroot of $release from $archive"
  # shellcheck disable=SC2086
  debootstrap --variant=minbase "$@" "$release" "$root.part" "$archive" $script >"$root.log" 2>&1 ||
    { tail -n 5 "$root.log" >&2; return 1; }
  mv "$root.part" "$root"
}

# Runs a shell command in a chroot, for at most so many seconds.
inside() {  # inside ROOT SECONDS COMMAND
  # shellcheck disable=SC2016
  timeout -k 10 "$2" unshare -m -p -f --kill-child --propagation private sh -c '
    mount -t proc proc "$1/proc" && mkdir -p "$1/dev/shm" && mount -t tmpfs tmpfs "$1/dev/shm" || exit 1
    exec chroot "$1" /usr/bin/env -i HOME=/root TERM=dumb LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c "$2"
  ' sh "$1" "$3" </dev/null
}

# Copies the source into a chroot; what is built there is kept for the next time.
copy_source() {  # copy_source ROOT
  local dir=$1/srv/docpatterns
  mkdir -p "$dir"
  find "$dir" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
  tar -C "$top" --exclude=./build --exclude=./.git --exclude='*.o' --exclude='*.bc' --exclude='*.d' --exclude='*.so' -cf - . | tar -C "$dir" -xf -
}

# The suites on a release.
try_release() {
  local root=$chroots/$1
  bootstrap "$1" "$root" || return 1
  copy_source "$root"
  inside "$root" 3000 "cd /srv/docpatterns
    # a mirror of sid that stands still for some weeks is good enough
    echo 'Acquire::Check-Valid-Until \"false\";' >/etc/apt/apt.conf.d/90matrix
    { apt-get -qq update && apt-get -qq -y install make; } >/dev/null 2>&1
    make test SUITE='${SUITE:-}'"'
    status=$?
    bson=$(pkg-config --modversion bson2 2>/dev/null || pkg-config --modversion libbson-1.0)
    echo "versions: $(pg_config --version), libbson $bson, PCRE2 $(pkg-config --modversion libpcre2-8), $(gcc --version | head -1)"
    exit $status'
}

# From 15 to 17. What bookworm has is only unpacked, into a directory of its own, so that the chroot stays what it is. (Without
# the library for JIT, which would need an LLVM that trixie does not have.)
try_pg_upgrade() {
  local root=$chroots/trixie
  bootstrap trixie "$root" || return 1
  copy_source "$root"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${MIRROR:-$(mirror)} bookworm main" >"$root/srv/bookworm.list"
  inside "$root" 3000 "export COPT='${COPT:-}'"'
    cd /srv/docpatterns
    { apt-get -qq update && apt-get -qq -y install make; } >/dev/null 2>&1
    test/env/packages.sh test || exit 1
    old=/srv/pg15
    rm -rf $old && mkdir -p $old/lists/partial $old/archives/partial
    from_bookworm() {
      apt-get -q -o Dir::Etc::sourcelist=/srv/bookworm.list -o Dir::Etc::sourceparts=/nonexistent -o Dir::State::lists=$old/lists \
        -o Dir::Cache::archives=$old/archives -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root "$@"
    }
    (cd $old && from_bookworm update && from_bookworm download postgresql-15 postgresql-client-15 postgresql-server-dev-15 libicu72 libldap-2.5-0) >/srv/bookworm.log 2>&1 ||
      { tail -n 5 /srv/bookworm.log; exit 1; }
    for package in $old/*.deb; do dpkg -x $package $old; done
    rm -rf $old/*.deb $old/lists $old/archives $old/usr/lib/postgresql/15/lib/llvmjit*
    export LD_LIBRARY_PATH=$(echo $old/usr/lib/*-linux-gnu)
    test/upgrade_server.sh $old/usr/lib/postgresql/15/bin/pg_config /usr/lib/postgresql/17/bin/pg_config >/srv/upgrade.tap 2>&1
    cat /srv/upgrade.tap
    echo "versions: $($old/usr/lib/postgresql/15/bin/pg_config --version) to $(pg_config --version)"
    passed=$(grep -c "^ok " /srv/upgrade.tap)
    failed=$(( $(sed -n "s/^1\.\.//p" /srv/upgrade.tap) - passed ))
    echo "$passed passed, $failed failed"
    [ $failed = 0 ]'
}

# What a person does: clone, and the two commands. The packages that were installed before are listed to show how bare it is.
try_bare() {  # try_bare RELEASE CHROOT
  local root=$chroots/$2.run status
  bootstrap "$1" "$chroots/$2" --include=git,make,ca-certificates || return 1
  rm -rf "$root"
  cp -a "$chroots/$2" "$root"
  git clone -q --bare "$top" "$root/srv/origin.git" || return 1
  inside "$root" 3000 '
    echo "installed at first: $(dpkg-query -W | wc -l) packages, of PostgreSQL: $(dpkg-query -W 2>/dev/null | grep -ci postgres)"
    git clone -q /srv/origin.git /root/docpatterns && cd /root/docpatterns || exit 1
    time=$(date +%s)
    make demo || exit 1
    echo "make demo took $(( $(date +%s) - time )) s"
    time=$(date +%s)
    make test || exit 1
    echo "make test took $(( $(date +%s) - time )) s"
    echo "clusters of the machine: $(pg_lsclusters -h | wc -l)"
    [ -z "$(git status --short)" ] || { echo "the tree is not clean:"; git status --short; exit 1; }
    echo "versions: $(pg_config --version), libbson $(pkg-config --modversion libbson-1.0)"'
  status=$?
  rm -rf "$root"
  return $status
}

# The package for Debian: built by make deb, then installed where nothing but make and git is; a cluster that the machine's own tools
# make takes the extension.
try_package() {  # try_package RELEASE CHROOT
  local root=$chroots/$2.run status=1
  bootstrap "$1" "$chroots/$2" --include=git,make,ca-certificates || return 1
  rm -rf "$root" "$chroots/$2.packages"
  cp -a "$chroots/$2" "$root"
  git clone -q --bare "$top" "$root/srv/origin.git" || return 1
  inside "$root" 3000 "export DEB_BUILD_OPTIONS='${DEB_BUILD_OPTIONS:-}'"'
    git clone -q /srv/origin.git /root/docpatterns && cd /root/docpatterns && make deb' &&
    mkdir -p "$chroots/$2.packages" && cp "$root"/root/docpatterns/build/deb/postgresql-*-docpatterns_*.deb "$chroots/$2.packages/" && status=0
  rm -rf "$root"
  [ "$status" = 0 ] || return 1
  cp -a "$chroots/$2" "$root"
  cp "$chroots/$2.packages"/*.deb "$root/srv/"
  inside "$root" 600 '
    export DEBIAN_FRONTEND=noninteractive
    { apt-get -qq update && apt-get -qq -y install --no-install-recommends /srv/*.deb; } >/srv/install.log 2>&1 || { tail -n 10 /srv/install.log; exit 1; }
    rm /srv/*.deb
    version=$(pg_lsclusters -h | cut -d" " -f1)
    pg_ctlcluster $version main start || exit 1
    setpriv --reuid=postgres --regid=postgres --init-groups psql -X -v ON_ERROR_STOP=1 -At -c "CREATE EXTENSION docpatterns" -c "SELECT collection_create(\$\$books\$\$)" \
      -c "INSERT INTO books (doc) SELECT bson_build(\$\$n\$\$, i) FROM generate_series(1, 100) i" -c "SELECT count(*) FROM books WHERE doc @@ \$\${\"n\": {\"\$gt\": 50}}\$\$" || exit 1
    ls /usr/share/doc/postgresql-$version-docpatterns | head
    echo "versions: PostgreSQL $version, $(dpkg-query -W postgresql-$version-docpatterns)"
    pg_ctlcluster $version main stop -m immediate'
  status=$?
  rm -rf "$root"
  return $status
}

mkdir -p "$chroots"
failures=0
summary=
for release in "${releases[@]}"; do
  echo "=== $release"
  log=$chroots/$release.out
  case $release in
    bare) try_bare bookworm bare ;;
    bare-*) try_bare "${release#bare-}" "$release" ;;
    pg_upgrade) try_pg_upgrade ;;
    package) try_package bookworm bare && try_package trixie bare-trixie ;;
    *) try_release "$release" ;;
  esac > >(tee "$log") 2>&1
  status=$?
  wait
  [ "$status" = 0 ] || failures=$((failures + 1))
  summary+=$(printf '%-10s %-8s %s; %s' "$release" "$([ "$status" = 0 ] && echo passed || echo FAILED)" \
    "$(sed -n 's/^versions: //p' "$log" | tail -1)" "$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -1)")$'\n'
done
echo
printf '%s' "$summary"
[ "$failures" = 0 ]
