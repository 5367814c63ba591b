#!/bin/bash
# Runs the test suites on a private cluster of their own and counts.
#
#   run.sh                  all suites
#   run.sh SUITE...         some of them:
#     build                 the build gives no warning; what the library exports; who includes whom; what SQL objects say
#     regress               test/sql/*.sql against expected/*.out
#     pgtap                 test/pgtap/*.sql
#     isolation             test/specs/*.spec against expected/isolation/*.out
#     t                     test/t/*.sh: crash, dump, replication; scripts that print TAP
#     citus                 test/citus/*.sql and *.sh on a coordinator and two workers, where Citus is installed
#     docs                  the examples in README.md and docs/
#     clients               the programs in docs/clients/, each with its driver, and those in test/clients/
#     fuzz                  test/fuzz/run.sh, for a short time
#
# Set FILTER to a shell pattern to run only the test files with such a stem. The last line is "N passed, N failed"; the exit
# status is 0 when nothing failed. The cluster is stopped at the end, however the run ends. Nothing waits for ever: TIMEOUT
# (seconds, default 600) bounds each test file.
set -u
cd "$(dirname "$0")/.." || exit 1
export CLUSTER=${CLUSTER:-test}
export LC_ALL=C.UTF-8
cluster=$PWD/test/env/cluster.sh
out=$PWD/build/$CLUSTER.out
limit=${TIMEOUT:-600}
suites=(build regress pgtap isolation t citus docs clients fuzz)
[ $# = 0 ] || suites=("$@")
passed=0 failed=0 job=
declare -A suite_passed suite_failed
. test/env/run-lib.sh

finish() {
  trap - EXIT
  [ -z "$job" ] || kill "$job" 2>/dev/null
  "$cluster" stop
  exit "$1"
}
trap 'finish 1' EXIT
trap 'finish 130' INT
trap 'finish 143' TERM HUP

# Runs one suite and notes what it counted.
run_suite() {
  local before=$passed,$failed
  case $1 in
    build|regress|pgtap|isolation|t|citus|docs|clients|fuzz) ;;
    *) echo "there is no suite $1; suites: build regress pgtap isolation t citus docs clients fuzz" >&2; finish 2 ;;
  esac
  echo "== $1"
  "suite_$1"
  suite_passed[$1]=$((passed - ${before%,*})) suite_failed[$1]=$((failed - ${before#*,}))
}

mkdir -p "$out"
rm -rf "${out:?}"/*
"$cluster" destroy
rm -f "$("$cluster" log)"
build_cluster || finish 1
echo "docpatterns on $("$cluster" run postgres --version)"
for suite in "${suites[@]}"; do run_suite "$suite"; done

echo
echo "suite        passed  failed"
for suite in "${suites[@]}"; do
  printf '%-12s %6d  %6d\n' "$suite" "${suite_passed[$suite]}" "${suite_failed[$suite]}"
done
[ $((passed + failed)) -gt 0 ] || { echo "no test was run"; failed=1; }
[ ! -s "$out/failures" ] || { echo; echo "What failed:"; head -n 400 "$out/failures"; echo; }
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
finish $?
