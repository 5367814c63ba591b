#!/bin/bash
# Runs the suites on other releases of Debian, each in a chroot of its own.
#
#   matrix.sh               trixie (PostgreSQL 17) and sid (PostgreSQL 18)
#   matrix.sh RELEASE...    these; "bare" is bookworm with nothing but git and make, thrown away afterwards, where a fresh
#                           clone runs the two commands of the README: make demo and make test
#
# Chroots are made by debootstrap under CHROOTS (default build/matrix) and kept, with what was installed in them. MIRROR is
# the archive (default: the one that apt uses here). SUITE chooses suites. Needs root and the right to mount: everything runs
# in mount and process namespaces of its own, so nothing stays mounted and nothing stays running.
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD
chroots=${CHROOTS:-$top/build/matrix}
releases=("$@")
[ $# -gt 0 ] || releases=(trixie sid)
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

# Makes the chroot of a release when it is not there.
bootstrap() {  # bootstrap RELEASE DIRECTORY [OPTION...]
  local release=$1 root=$2
  shift 2
  [ ! -e "$root/etc/debian_version" ] || return 0
  rm -rf "$root.part"
  mkdir -p "$root.part"
  echo "making a chroot of $release from ${MIRROR:-$(mirror)}"
  debootstrap --variant=minbase "$@" "$release" "$root.part" "${MIRROR:-$(mirror)}" >"$root.log" 2>&1 ||
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

# A release with the source copied in, and what is built there kept for the next time.
try_release() {
  local root=$chroots/$1 dir
  bootstrap "$1" "$root" || return 1
  dir=$root/srv/docpatterns
  mkdir -p "$dir"
  find "$dir" -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
  tar -C "$top" --exclude=./build --exclude=./.git --exclude='*.o' --exclude='*.bc' --exclude='*.so' -cf - . | tar -C "$dir" -xf -
  inside "$root" 900 "cd /srv/docpatterns
    # a mirror of sid that stands still for some weeks is good enough
    echo 'Acquire::Check-Valid-Until \"false\";' >/etc/apt/apt.conf.d/90matrix
    { apt-get -qq update && apt-get -qq -y install make; } >/dev/null 2>&1
    make test SUITE='${SUITE:-}'"'
    status=$?
    bson=$(pkg-config --modversion bson2 2>/dev/null || pkg-config --modversion libbson-1.0)
    echo "versions: $(pg_config --version), libbson $bson, $(gcc --version | head -1)"
    exit $status'
}

# What a person does: clone, and the two commands. The packages that were installed before are listed to show how bare it is.
try_bare() {
  local root=$chroots/bare.run status
  bootstrap bookworm "$chroots/bare" --include=git,make,ca-certificates || return 1
  rm -rf "$root"
  cp -a "$chroots/bare" "$root"
  git clone -q --bare "$top" "$root/srv/origin.git" || return 1
  inside "$root" 1500 '
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

mkdir -p "$chroots"
failures=0
summary=
for release in "${releases[@]}"; do
  echo "=== $release"
  log=$chroots/$release.out
  if [ "$release" = bare ]; then try_bare; else try_release "$release"; fi > >(tee "$log") 2>&1
  status=$?
  wait
  [ "$status" = 0 ] || failures=$((failures + 1))
  summary+=$(printf '%-10s %-8s %s; %s' "$release" "$([ "$status" = 0 ] && echo passed || echo FAILED)" \
    "$(sed -n 's/^versions: //p' "$log" | tail -1)" "$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -1)")$'\n'
done
echo
printf '%s' "$summary"
[ "$failures" = 0 ]
