#!/bin/bash
# Runs for about SOAK_MINUTES (60 unless set) everything that takes a seed, each time with another one: the fuzzers (the server
# with the sanitizers), the scripts with many writers, the ones that kill servers, the calls that nobody should make.
#
#   soak.sh [PART...]               all parts, or some: fuzz stress crash hostile
#
# SEED gives the first seed; all others follow from it. The last lines say what was run with which seed for how long, and
# whether it passed; the logs of all stay in build/soak.logs. The exit status is 0 when nothing failed. Building comes on top of
# the time, and so does the end of what was begun.
set -u
cd "$(dirname "$0")/.." || exit 1
minutes=${SOAK_MINUTES:-60}
RANDOM=${SEED:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}
unset SEED FILTER FUZZ KILLS STRESS_SECONDS
logs=$PWD/build/soak.logs
rm -rf "$logs" && mkdir -p "$logs" || exit 1
summary=() failed=0 rounds=0 ending= job=
parts=(fuzz stress crash hostile)
[ $# = 0 ] || parts=("$@")

finish() {
  trap - EXIT
  [ -z "$job" ] || { kill "$job" 2>/dev/null; wait "$job" 2>/dev/null; }
  echo
  printf '%-10s %-8s %10s %8s  %s\n' part result seed seconds what
  for line in "${summary[@]}"; do echo "$line"; done
  [ "${#summary[@]}" -gt 0 ] || failed=1
  echo "$rounds rounds in $((SECONDS / 60)) minutes, $failed failed; logs: build/soak.logs"
  [ -n "$ending" ] || [ "$failed" != 0 ] || exit 0
  exit "${ending:-1}"
}
trap 'ending=1 finish' EXIT
trap 'ending=130 finish' INT
trap 'ending=143 finish' TERM HUP

# Runs a command of tests with a new seed, for at most so many seconds more than it should take.
round() {  # round PART SECONDS WHAT COMMAND...
  local part=$1 limit=$2 what=$3 log began=$SECONDS status result=passed
  shift 3
  rounds=$((rounds + 1))
  log=$logs/$rounds.$part.log
  echo "== $part, seed $seed: $what"
  timeout -k 30 $((limit + 900)) env SEED="$seed" TIMEOUT=$((limit + 300)) "$@" >"$log" 2>&1 </dev/null &
  job=$!
  wait "$job"
  status=$? job=
  if [ $status != 0 ]; then
    result=FAILED failed=$((failed + 1))
    grep -vE '^ok ' "$log" | tail -n 60
    # the next run deletes what the tests wrote
    cp -r "build/$([ "$part" = fuzz ] && echo sanitize || echo soak).out" "$logs/$rounds.$part"
  fi
  summary+=("$(printf '%-10s %-8s %10s %8s  %s' "$part" "$result" "$seed" $((SECONDS - began)) "$(grep -E '^[0-9]+ passed' "$log" | tail -n 1) ($what)")")
}

# Repeats a round until the part's share of the time is over.
repeat() {  # repeat SHARE PART SECONDS WHAT COMMAND...
  local until=$((SECONDS + minutes * 60 * $1 / 100))
  shift
  while :; do
    seed=$((RANDOM * 32768 + RANDOM))
    round "$@"
    [ $SECONDS -lt $until ] || break
  done
}

for part in "${parts[@]}"; do
  case $part in
    fuzz)
      # 100,000 take half a minute, and longer with the sanitizers in the server
      n=$((100000 * (minutes > 40 ? 10 : minutes > 4 ? minutes / 4 : 1)))
      repeat 30 fuzz $((n / 1000)) "$n iterations" env CLUSTER=sanitize FUZZ="$n" test/sanitize.sh fuzz ;;
    stress)
      scripts=(test/t/*_stress.sh test/t/*_churn.sh)
      seconds=$((minutes * 60 * 40 / 100 / ${#scripts[@]} / 2))
      [ $seconds -ge 2 ] || seconds=2
      seed=$((RANDOM * 32768 + RANDOM))
      round stress $((seconds * 4 * ${#scripts[@]})) "${#scripts[@]} scripts of $seconds seconds" env CLUSTER=soak STRESS_SECONDS=$seconds FILTER='*_@(stress|churn)' test/run.sh t ;;
    crash)
      kills=$((minutes * 50 / 60))
      [ $kills -ge 6 ] || kills=6
      [ $kills -le 50 ] || kills=50
      seed=$((RANDOM * 32768 + RANDOM))
      round crash $((kills * 60)) "$kills kills" env CLUSTER=soak KILLS=$kills FILTER='*crash*' test/run.sh t ;;
    hostile)
      n=$((minutes / 4 < 5 ? 5 : minutes / 4 > 10 ? 10 : minutes / 4))
      repeat 10 hostile $((n * 30)) "$n rounds" bash -c \
        'PGOPTIONS="-c hostile.seed=0.$SEED -c hostile.rounds='$n'" CLUSTER=soak FILTER="@(hostile|injection)_*" exec test/run.sh pgtap' ;;
    *) echo "there is no part $part; parts: fuzz stress crash hostile" >&2; failed=1 ending=2; finish ;;
  esac
done
finish
