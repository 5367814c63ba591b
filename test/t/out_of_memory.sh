#!/bin/bash
# Memory runs out at any moment: the server gets a malloc() that fails when it is told to (test/env/starve.c). Each statement of a list is
# repeated with the first allocation failing, then the second, and so on until it gets through; clients write through all patterns while
# one of their next allocations fails, with memory that is warm and in new sessions; and sessions may have no more than so much
# (ulimit -v). It is an error of that statement ("out of memory", 53200) and of nothing else.
. "$DP_TOP/test/env/storm.sh"
set -u
STRESS_SECONDS=${STRESS_SECONDS:-1}
skip() { echo "1..0 # SKIP $1"; exit 0; }
case ${SERVER_ENV:-} in *LD_PRELOAD*) skip 'the server has another malloc() already' ;; esac
cc -shared -fPIC -O1 -I "$(pg_config --includedir-server)" -o "$DP_WORK/starve.so" "$DP_TOP/test/env/starve.c" 2>"$DP_WORK/cc.err" ||
  skip "no library: $(head -n 1 "$DP_WORK/cc.err")"
grep -q 'GLIBC\|GNU libc' <<<"$(ldd --version 2>&1)" || skip 'not the C library of GNU'
plan 13
library=$("$DP_CLUSTER" home)/starve.so
restart() { PATH=$(dirname "$PG_CONFIG"):$PATH "$DP_CLUSTER" restart >"$DP_WORK/restart" 2>&1; }
trap 'unset SERVER_ENV; restart; rm -f "$library"' EXIT
cp "$DP_WORK/starve.so" "$library"
export SERVER_ENV="LD_PRELOAD=$library"
restart
is "$(psql -XqAt -d postgres -c 'SELECT 1')" 1 'the server runs with a malloc() that fails'
# PostgreSQL 15 does not survive when memory for a session's first snapshot of one kind is found in part only (GetSnapshotData()): this
# takes one of that kind before anything fails. Nor does PostgreSQL 18 when it finds none for its first look at a type (lookup_type_cache()).
prelude='SELECT ARRAY[1] = ARRAY[random()::int]; BEGIN; SELECT kv_zadd($$warm$$, $$z$$, 1, $$m$$); ROLLBACK;'
starving() {
  psql -XqAt -v ON_ERROR_STOP=1 -v library="$library" >/dev/null <<'SQL' || echo 'not ok 0 - functions that starve'
SELECT kv_create('warm');
CREATE FUNCTION storm.starve(n int) RETURNS void LANGUAGE c AS :'library', 'starve';
CREATE FUNCTION storm.starved() RETURNS bool LANGUAGE c AS :'library', 'starved';
-- One failure after the other, each caught; then how often the statement failed, and everything but "out of memory", and but the
-- error that the statement ends with anyway.
CREATE FUNCTION storm.each(command text, anyway text, OUT failures int, OUT others text) LANGUAGE plpgsql AS $$
DECLARE
  state text;
BEGIN
  failures := 0;
  FOR n IN 1 .. 3000 LOOP
    state := NULL;
    BEGIN
      PERFORM storm.starve(n);
      EXECUTE command;
    EXCEPTION WHEN OTHERS THEN state := SQLSTATE || ' ' || SQLERRM;
    END;
    IF NOT storm.starved() THEN
      IF left(state, 5) IS DISTINCT FROM nullif(anyway, '') THEN others := concat_ws('; ', others, state); END IF;
      EXIT;
    END IF;
    failures := failures + 1;
    IF state NOT LIKE '53200 %' AND state <> '2201B invalid regular expression: out of memory' THEN others := concat_ws('; ', others, state); END IF;
  END LOOP;
END $$;
SQL
}
# Lines of SQL, each with each of its allocations failing, in a session of its own. Prints how often each failed, and what is not as
# it should be. (PostgreSQL ends a session itself where a setting cannot be put back.)
each_fails() {  # each_fails < STATEMENTS
  local line anyway
  while IFS= read -r line; do
    anyway=$(psql -XqAt -v VERBOSITY=sqlstate -c BEGIN -c "$line" -c ROLLBACK 2>&1 </dev/null | sed -n 's/^ERROR: *//p' | head -n 1)
    printf '%s\n' "$prelude" >"$DP_WORK/line.sql"
    printf 'SELECT failures || $w$ failures of $w$ || left($w$%s$w$, 100), others FROM storm.each($w$%s$w$, $w$%s$w$);\n' "$line" "$line" "$anyway" >>"$DP_WORK/line.sql"
    timeout 60 psql -XqAt -v VERBOSITY=verbose -f "$DP_WORK/line.sql" 2>&1 | grep -v '^[1tf]$' >"$DP_WORK/line.out"
    if grep -q 'LOCATION:  guc_' "$DP_WORK/line.out"; then echo '1 failures, which ended the session|'; else cat "$DP_WORK/line.out"; fi
  done
}
# Errors that are none of "out of memory". PostgreSQL ends a session where it cannot go on without memory, with a message; a crash is
# in the server's log.
lost() {  # lost TAG
  cat "$DP_WORK/errors.$1".* | grep 'PANIC\|FATAL\|ERROR:  XX' | grep -v 'FATAL:  53200'
}

for what in derived shapes; do
  logged=$(wc -l <"$("$DP_CLUSTER" log)")
  stress_begin dp_starved 20321
  # libraries that are being loaded when memory runs out cannot be loaded again: that is PostgreSQL's
  psql -Xq -c "ALTER DATABASE dp_starved SET session_preload_libraries = plpgsql, docpatterns"
  # PostgreSQL 15 crashes when it discards statistics after it had no memory for an entry of them (pgstat_get_entry_ref()).
  psql -Xq -c 'ALTER DATABASE dp_starved SET track_counts = off'
  "storm_$what"
  starving
  # what the clients do is a list of statements, too
  before='""'
  work 0 each | sed -n 's/^ *SELECT storm.try(\$_try_\$\(.*;\)\$_try_\$);  *SELECT storm.try.*$/\1/p' | head -n "${STARVED:-5}" >"$DP_WORK/$what.statements"
  each_fails <"$DP_WORK/$what.statements" >"$DP_WORK/$what.each"
  is "$(grep -v '^[1-9][0-9]* failures.*|\(23[^;]*\)*$' "$DP_WORK/$what.each")" '' "$what: $(awk '{n += $1} END {print n}' "$DP_WORK/$what.each") allocations of $(wc -l <"$DP_WORK/$what.statements") statements fail, one after the other"
  is "$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' "$what: all is true"
  before='"SELECT storm.starve(" (r(3) == 1 ? r(400) : r(30)) ");"'
  stress_run "starved_$what" "$seconds" stress_met 5 53200 "starved_$what"
  is "$(lost "starved_$what")$(sed -n "$((logged + 1)),\$p" "$("$DP_CLUSTER" log)" | grep 'was terminated by\|PANIC' | head -5)" '' "$what: no internal error, no crash"
  is "$(ask 'SELECT * FROM storm.bad LIMIT 5')$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' "$what: all was true at any moment, and is"
  ok "$what: statements starved" stress_met 5 53200 "starved_$what"
  stress_end
done

# No more than so much: what a session may have beyond what it has already, while it is given work that needs more.
stress_begin dp_starved 20321
limited() {  # limited MEGABYTES < STATEMENTS: prints the SQLSTATE of each and of a small one afterwards
  { printf '%s\n' 'SELECT bson_size($${a: 1}$$), pg_backend_pid() AS pid \gset' '\setenv BACKEND :pid' 'SET max_parallel_workers_per_gather = 0; SET jit = off;' "SET docpatterns.max_document_size = '1000MB';" "SET statement_timeout = '20s';" '\o /dev/null'
    while IFS= read -r line; do
      printf '%s\n' "\\! \$PRLIMIT --pid \$BACKEND --as=\$(( (\$(awk '/VmSize/ {print \$2}' /proc/\$BACKEND/status) + $1 * 1024) * 1024 )):" "$line" '\set state :SQLSTATE' \
        '\! $PRLIMIT --pid $BACKEND --as=unlimited:' "SELECT bson_update('{a: 1}', '{\$inc: {a: 1}}'::text);" '\echo :state :SQLSTATE'
    done; } | psql -XqAt 2>"$DP_WORK/limited.err"
}
psql -XqAt >/dev/null <<'SQL'
CREATE TABLE large (id int PRIMARY KEY, doc bson);
INSERT INTO large SELECT 1, bson_build('a', bson_agg(bson_build('i', i, 's', 'text ' || i))) FROM generate_series(1, 150000) i;
SET statement_timeout = 0;
SQL
cat >"$DP_WORK/large.sql" <<'SQL'
SELECT bson_size(bson_agg(i)) FROM generate_series(1, 20000000) i;
SELECT bson_size(bson_object_agg('f' || i, i)) FROM generate_series(1, 20000000) i;
SELECT bson_eval('{}', '{$size: {$range: [0, 9000000]}}');
SELECT bson_eval('{}', '{$strLenBytes: {$reduce: {input: {$range: [0, 26]}, initialValue: "1234567890", in: {$concat: ["$$value", "$$value"]}}}}');
SELECT bson_size(bson_update(doc, '[{$set: {b: {$concatArrays: ["$a", "$a", "$a", "$a", "$a", "$a", "$a", "$a", "$a"]}}}]'::text)) FROM large;
SELECT length(bson_pretty(bson_build('a', doc, 'b', doc, 'c', doc, 'd', doc, 'e', doc))) FROM large;
SELECT count(*) FROM large, bson_index_keys(bson_build('a', doc, 'b', doc, 'c', doc));
SELECT count(*) FROM large, bson_diff(bson_build('a', doc, 'b', doc, 'c', doc), '{}');
SELECT bson_size(bson_accumulate(bson_build('v', repeat('x', 1000) || i), '{all: {$push: "$v"}}')) FROM generate_series(1, 1000000) i;
UPDATE large SET doc = bson_set(doc, 'b', (SELECT bson_agg(repeat('x', 1000)) FROM generate_series(1, 200000)));
SELECT bson_size(('{a: [' || repeat('1,', 20000000) || '1]}')::bson);
SQL
export PRLIMIT=prlimit
[ "$(id -u)" != 0 ] || PRLIMIT='setpriv --reuid=postgres --regid=postgres --clear-groups prlimit'
if $PRLIMIT --as >/dev/null 2>&1; then
  is "$(limited 20 <"$DP_WORK/large.sql" | sort | uniq -c | tr -s ' ')" " $(wc -l <"$DP_WORK/large.sql") 53200 00000" 'with 20 MB more large work ends with "out of memory", and the session goes on'
else
  ok 'large work # SKIP no prlimit' true
fi
is "$(ask 'SELECT bson_size(doc) > 1000000, bson_array_length(doc, $$a$$) FROM large')" 't|150000' 'nothing of it was written'
stress_end
