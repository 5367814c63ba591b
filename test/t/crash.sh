#!/bin/bash
# Servers that are killed in the midst of writes through every pattern, while one is built, repaired, altered or undone, measurements
# are packed, trees move, and indexes are made and cleaned: what was acknowledged is there, what was not is there whole or not at all,
# every pattern is true, and every index gives the table's answers. KILLS says how often, SEED when and at what.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/crash.sh"
. "$DP_TOP/test/env/load.sh"
set -u
kills=${KILLS:-6} seed=${SEED:-20341}
RANDOM=$seed
export PGOPTIONS='-c client_min_messages=warning'
echo "# seed $seed, $kills kills"
load_fill dp_crash
is "$(load_each dp_crash)" '' 'each kind of write succeeds'

hit=0 cut=0 began=$SECONDS
# (a kill may meet all clients between two transactions; then there is one more)
for ((kill = 1; kill <= kills || (hit == 0 && kill <= 5 * kills); kill++)); do
  # of five times one a backend, one the postmaster; as soon as the clients run, or up to 0.3 or 1.3 seconds later, in the midst
  # of their work at least once in three times
  case $((kill % 5)) in 0) how=postmaster ;; 3) how=backend ;; *) how=all ;; esac
  case $((RANDOM % 3)) in 0) delay=0 ;; 1) delay=0.$((RANDOM % 3))$((RANDOM % 10)) ;; 2) delay=$((RANDOM % 2)).$((RANDOM % 3))$((RANDOM % 10)) ;; esac
  [ $((kill % 3)) != 1 ] || delay=$((kill % 2)).$((5 + RANDOM % 5))
  again=; [ $((RANDOM % 4)) != 0 ] || [ $how = backend ] || again=0.$((RANDOM % 4))
  chore=${load_chores[$(((kill + seed) % ${#load_chores[@]}))]}
  told=$(load_told)
  load_start dp_crash "$chore"
  for _ in {1..3000}; do [ "$(load_told)" -gt "$told" ] && break; sleep 0.02; done
  sleep "$delay"
  crash_kill $how
  load_wait
  # shellcheck disable=SC2086
  crash_start $again
  [ "$crash_cut" = 0 ] || hit=$((hit + 1))
  cut=$((cut + crash_cut))
  echo "# kill $kill ($how) during $chore, $delay s after the first commit${again:+, and again $again s after the start}: $(($(load_told) - told)) commits were acknowledged, $crash_cut transactions cut off"
  is "$(load_finish dp_crash)" '' "kill $kill: what was begun by $chore is brought to an end"
  is "$(load_wrong dp_crash)" '' "kill $kill: all is true"
  is "$(load_lost dp_crash)" '' "kill $kill: what was acknowledged is there"
  is "$(grep -h 'ERROR:  XX\|PANIC' "$DP_WORK"/errors."$load_turn".* | head -3)" '' "kill $kill: nobody met an internal error"
done
echo "# $(load_told) commits were acknowledged; $hit of $kills kills cut $cut transactions off; $((SECONDS - began)) s"
cat "$DP_WORK"/errors.* | grep 'ERROR:' | sed 's/[0-9]\{3,\}/N/g' | cut -c 1-120 | sort | uniq -c | sort -rn | head -12 | sed 's/^/# /'
ok 'much was written' [ "$(load_told shapes)" -gt $((kills * 20)) ] && [ "$(load_told derived)" -gt $((kills * 20)) ]
ok 'transactions were cut off' [ "$hit" -gt 0 ]
is "$(load_each dp_crash; psql -XqAt -d dp_crash_derived -c 'REINDEX TABLE things' -c 'VACUUM things')" '' 'all goes on'
is "$(load_wrong dp_crash)" '' 'and is true'
load_drop dp_crash
plan "$tap_count"
