#!/bin/bash
# Runs the suites of the type and its languages with the server under valgrind's memcheck, which finds what the sanitizers
# do not: uses of memory that was never written, also on its way to disk.
#
#   valgrind.sh [SUITE...]          regress and pgtap unless others are named; FILTER chooses others than the type's files
#
# Each piece of memory that our code allocates or reads is one that memcheck knows, and each value that it gets is asked for bytes
# that nobody wrote (see test/env/redzones.c). What counts is a
# report with our code in it, where it happened or where the memory came from; what PostgreSQL does alone is its own
# (test/env/valgrind.supp keeps the most frequent of that out of the logs). VALGRIND_ORIGINS=yes says where the memory came from, and
# takes twice as long. TIMEOUT (seconds, default 1500) bounds each file.
set -u
cd "$(dirname "$0")/.." || exit 1
export CLUSTER=valgrind
export TIMEOUT=${TIMEOUT:-1500}
export FILTER=${FILTER:-'@(bson*|objectid|filter|regex|expression|update*|projection|sort_key|schema|treepath|ancestors|distinct|accumulate*|bucket_agg|bucket_type|bucket_functions|index|index_keys|statistics|collection)'}
[ $# -gt 0 ] || set -- regress pgtap
cluster=$PWD/test/env/cluster.sh
tools=/tmp/docpatterns.valgrind.$$
logs=$tools/logs
mkdir -m 755 "$tools" && mkdir -m 777 "$logs" || exit 1
trap 'rm -rf "$tools"' EXIT
wraps=$(sed -n 's/^__wrap_\([A-Za-z0-9_]*\)(.*/-Wl,--wrap=\1/p' test/env/redzones.c | tr '\n' ' ')
export COPT="-g -O1 -fno-omit-frame-pointer $wraps"
"${CC:-gcc}" -shared -fPIC -g -O1 -Wall -DUNDER_VALGRIND -o "$tools/redzones.so" test/env/redzones.c || exit 1

# In the private copy of the installation, the server that pg_ctl starts is valgrind with the server in it; initdb has its own.
bin=$(dirname "$("$cluster" prefix)")
[ -e "$bin/postgres.alone" ] || mv "$bin/postgres" "$bin/postgres.alone"
cat >"$bin/postgres" <<SH
#!/bin/sh
case "\$*" in *--boot*|*--single*|*--check*|-V|--version) exec "$bin/postgres.alone" "\$@" ;; esac
export LD_PRELOAD=$tools/redzones.so
exec valgrind --quiet --leak-check=no --trace-children=yes --track-origins=${VALGRIND_ORIGINS:-no} --error-limit=no --num-callers=30 --fullpath-after= \\
  --suppressions="$PWD/test/env/valgrind.supp" --log-file="$logs/%p" "$bin/postgres.alone" "\$@" -c autovacuum=off -c jit=off
SH
chmod 755 "$bin/postgres"

test/run.sh "$@"
status=$?
# A report is a run of lines that ends with an empty one.
found=$(cat "$logs"/* 2>/dev/null | sed 's/^==[0-9]*== \{0,1\}//; s/^\*\*[0-9]*\*\* \{0,1\}//' |
  awk -v RS= '/[ (]([^ ]*\/)?src\/(bson|mql|index|bucket|tree|patterns|docpatterns)[^ ]*\.[ch]:[0-9]+\)/ && !seen[$0]++ {print; print ""}')
"$cluster" destroy
mv "$bin/postgres.alone" "$bin/postgres"
mkdir -p build/valgrind.out && cat "$logs"/* >build/valgrind.out/valgrind.log 2>/dev/null
if [ -n "$found" ]; then
  echo "reports, from build/valgrind.out/valgrind.log:"
  printf '%s\n' "$found" | head -n 300
  exit 1
fi
echo "valgrind reported nothing in our code"
exit $status
