#!/bin/bash
# Runs the suites with the library built to count which of its lines and branches run, and writes what the counters say:
#
#   coverage.sh [SUITE...]   the suites of test/run.sh; all of them but fuzz when none is named
#   coverage.sh report       only the report, from the counters that the last run left
#
# ADD=1 adds to the counters of the last run instead of starting from nothing. The report is in build/coverage/report;
# docs/coverage.md says how it is read. A server process writes its counters when it ends by exit: what runs in one that is killed,
# or in a server that is stopped at once, is not counted.
set -u
cd "$(dirname "$0")/.." || exit 1
export CLUSTER=coverage
# without optimization a branch in the code is a branch in the source
export COPT="--coverage -O0 -Wno-cpp"
home=$(test/env/cluster.sh home)
counters=$home/counters

# The counters go to a place where the user that the server runs as may write; the build stays as it is.
export GCOV_PREFIX=$counters GCOV_PREFIX_STRIP=0
GCOV_PREFIX_STRIP=$(printf '%s' "$home/src" | tr -cd / | wc -c)

status=0
if [ "${1:-}" != report ]; then
  [ $# -gt 0 ] || set -- build regress pgtap isolation t docs
  [ -n "${ADD:-}" ] || rm -rf "$counters"
  mkdir -p "$counters" && chmod 1777 "$counters" || exit 1
  test/run.sh "$@"
  status=$?
fi

# gcov reads the compiler's notes, the counters and the source side by side
report=build/coverage/report
rm -rf "$report"
mkdir -p "$report/work" "$report/listing" || exit 1
tar -C "$home/src" --exclude='*.o' -cf - src | tar -C "$report/work" -xf - || exit 1
tar -C "$counters" -cf - src | tar -C "$report/work" -xf - || { echo "coverage: no server process left counters" >&2; exit 1; }
(cd "$report/work" && find src -name '*.gcno' | sort | xargs "${GCOV:-gcov}" -b -c -p -r >/dev/null) || exit 1
mv "$report"/work/src#*.gcov "$report/listing/" && rm -rf "$report/work"
test/env/coverage.pl "$report/listing" "$report" || exit 1
echo "the report is in $report: index.txt, functions.txt, errors.txt, branches.txt, listing/"
exit $status
