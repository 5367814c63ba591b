#!/bin/bash
# Transactions of several statements, with savepoints and at all isolation levels, through all that is derived: they leave notes to each
# other (src/kit/note.h), fail, and are rolled back in part. What is wrong at any moment has a note, and in the end nothing is.
. "$DP_TOP/test/env/storm.sh"
set -u
plan 3
before='""'
stress_begin dp_note 20362
storm_derived
stress_run storm "$seconds"
is "$(grep -hE 'PANIC|FATAL|connection .*(lost|closed)|ERROR:  XX' "$DP_WORK/errors.storm".* | sort | uniq -c | cut -c 1-200)" '' 'no internal error, no session lost'
is "$(ask 'SELECT * FROM storm.bad LIMIT 5')$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' 'at any moment all was true or had a note, and all is true'

# Many notes at once: none of them takes room for all of them.
size="(SELECT substring(pg_read_file('/proc/self/status') FROM 'VmPeak:\s*(\d+)')::int8)"
is "$(psql -Xq -At -v ON_ERROR_STOP=1 2>&1 <<SQL
SELECT collection_create('many'), collection_create('more') \g /dev/null
SELECT computed_enable('many', 'more', 'g', '{n: {\$count: {}}}', name => 'n') \g /dev/null
INSERT INTO many (doc) VALUES ('{_id: 1}');
INSERT INTO docpatterns.notes SELECT 'many', 'computed', 'n', to_bson(i), 'more', false FROM generate_series(2, 20000) i;
SELECT $size AS before \gset
INSERT INTO more (doc) VALUES ('{_id: 1, g: 1}');
SELECT count(*), $size - :before < 500000, (SELECT doc ->> 'n' FROM many) FROM docpatterns.notes;
SQL
)" '0|t|1' 'many notes are processed in little memory'
stress_end
