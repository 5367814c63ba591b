#!/bin/bash
# Transactions of several statements, with savepoints and at all isolation levels, through all that is derived: they leave notes to each
# other (src/patterns/note.h), fail, and are rolled back in part. What is wrong at any moment has a note, and in the end nothing is.
. "$DP_TOP/test/env/storm.sh"
set -u
plan 2
before='""'
stress_begin dp_note 20362
storm_derived
stress_run storm "$seconds"
is "$(grep -hE 'PANIC|FATAL|connection .*(lost|closed)|ERROR:  XX' "$DP_WORK/errors.storm".* | sort | uniq -c | cut -c 1-200)" '' 'no internal error, no session lost'
is "$(ask 'SELECT * FROM storm.bad LIMIT 5')$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' 'at any moment all was true or had a note, and all is true'
stress_end
