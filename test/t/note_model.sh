#!/bin/bash
# The model of how transactions leave notes to each other holds in all interleavings, and without its parts it does not.
. "$DP_TOP/test/env/tap.sh"
set -u
plan 5
model() { perl "$DP_TOP/test/env/note_model.pl" "$@"; }
is "$(model | sed 's/^[0-9]* states: \(.*\), [0-9]* with a note.*/\1/')" '0 deadlocks, 0 ends with a row that is wrong and has no note' \
  'no deadlock; every row is right in the end, or has a note because another transaction was rolled back'
ok 'transactions that wait instead meet deadlocks' grep -q ': [1-9][0-9]* deadlocks' <<<"$(model waits)"
ok 'rows go wrong if they are left to a holder that does not wait' grep -q ', [1-9][0-9]* ends' <<<"$(model always)"
ok 'rows go wrong if notes of others are not looked for' grep -q ', [1-9][0-9]* ends' <<<"$(model blind)"
ok 'rows go wrong if a note is processed by a source that another transaction is changing' grep -q ', [1-9][0-9]* ends' <<<"$(model reads)"
