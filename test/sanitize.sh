#!/bin/bash
# Runs the suites with the extension built under the address and undefined-behaviour sanitizers and with PostgreSQL's
# assertions switched on in our code, in a private server that has the sanitizers' libraries loaded. Each piece of memory that
# our code allocates or reads gets bounds of its own (see test/env/redzones.c).
#
#   sanitize.sh [SUITE...]          the suites of test/run.sh
#
# Any report fails the run. Leaks are not looked for: the server's memory contexts free by the block.
set -u
cd "$(dirname "$0")/.." || exit 1
export CLUSTER=${CLUSTER:-sanitize}
export TIMEOUT=${TIMEOUT:-1500}
tools=/tmp/docpatterns.sanitize.$$
library() {
  local file
  file=$(${CC:-gcc} -print-file-name="$1")
  [ -e "$file" ] || { echo "docpatterns: the compiler has no $1" >&2; exit 1; }
  readlink -f "$file"
}
asan=$(library libasan.so) && ubsan=$(library libubsan.so) || exit 1
export COPT="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1 -DUSE_ASSERT_CHECKING=1 $(sed -n 's/^__wrap_\([A-Za-z0-9_]*\)(.*/-Wl,--wrap=\1/p' test/env/redzones.c | tr '\n' ' ')"
# a report ends the backend, which fails the test that caused it, and is in the server's log
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:detect_stack_use_after_return=0:quarantine_size_mb=32:malloc_context_size=10
export UBSAN_OPTIONS=print_stacktrace=1:abort_on_error=1
export SERVER_ENV="LD_PRELOAD=$asan:$ubsan:$tools/first.so:$tools/redzones.so ASAN_OPTIONS=$ASAN_OPTIONS UBSAN_OPTIONS=$UBSAN_OPTIONS"

mkdir -m 755 "$tools" || exit 1
trap 'rm -rf "$tools"' EXIT
"${CC:-gcc}" -shared -fPIC -Wl,-z,initfirst -o "$tools/first.so" test/env/asan_first.c || exit 1
"${CC:-gcc}" -shared -fPIC -g -O1 -Wall -o "$tools/redzones.so" test/env/redzones.c || exit 1
test/run.sh "$@"
status=$?
# A test's own SQL can be in the log too, so a report is known by how its line begins.
report='^(TRAP: |.*: runtime error: |==[0-9]+==ERROR: AddressSanitizer)'
log=$(test/env/cluster.sh log)
logs=("$log" "${log%/*}"/data*.standby.log)
if grep -qsE "$report" "${logs[@]}"; then
  echo "reports, from ${log%/*}:"
  grep -hsE -A 20 "$report" "${logs[@]}" | head -n 200
  exit 1
fi
echo "the sanitizers and assertions reported nothing"
exit $status
