#!/bin/bash
# Fuzzes what needs a server: the languages, texts and stored values through SQL (see server.c and targets.sql).
#
#   server.sh ITERATIONS SEED [TARGET [FIRST]]     for each target (times its share), or for one alone
#
# Runs in the environment of test/env/cluster.sh run. The exit status is 0 when nothing was wrong; a line for each target
# says what came. test/fuzz/corpus/ROOM/*.txt has the seeds of the corpus, one a line.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
work=${DP_WORK:-$top/build/fuzz}
iterations=$1 seed=$2 only=${3:-} first=${4:-0}
mkdir -p "$work"
cd "$top" || exit 1
pg_config=$(command -v pg_config)
"${CC:-gcc}" -fPIC -shared -O1 -g -Wall -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -Wno-clobbered \
  -fno-strict-aliasing -fwrapv -Wl,-Bsymbolic -Isrc -Itest/fuzz -isystem "$("$pg_config" --includedir-server)" -D_GNU_SOURCE \
  -o "$work/docpatterns_fuzz.so" test/fuzz/server.c test/fuzz/documents.c src/bson/builder.c src/bson/reader.c || exit 1
# where the server can read it, whoever it runs as
library=$("$pg_config" --pkglibdir)/docpatterns_fuzz.so
cp "$work/docpatterns_fuzz.so" "$library.$$" && mv "$library.$$" "$library" || exit 1

export PGOPTIONS='-c client_min_messages=warning -c timezone=UTC -c extra_float_digits=1'
psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_fuzz WITH (FORCE)' -c 'CREATE DATABASE dp_fuzz' || exit 1
export PGDATABASE=dp_fuzz
for file in test/fuzz/corpus/*/*.txt; do
  room=${file%/*} room=${room##*/}
  while IFS= read -r line || [ -n "$line" ]; do printf '%s\x01%s\n' "$room" "$line"; done <"$file"
done >"$work/corpus"
psql -Xq -v ON_ERROR_STOP=1 -1 <<SQL || exit 1
CREATE EXTENSION docpatterns;
LOAD 'docpatterns';
CREATE FUNCTION fuzz_run(target text, iterations bigint, seed bigint, first bigint) RETURNS text AS 'docpatterns_fuzz' LANGUAGE C;
CREATE FUNCTION fuzz_valid(bson) RETURNS boolean AS 'docpatterns_fuzz' LANGUAGE C STRICT;
CREATE TABLE fuzz_corpus (room text NOT NULL, content text NOT NULL);
\copy fuzz_corpus FROM '$work/corpus' WITH (FORMAT csv, DELIMITER E'\x01', QUOTE E'\x02', NULL E'\x03')
DELETE FROM fuzz_corpus a USING fuzz_corpus b WHERE (a.room, a.content) = (b.room, b.content) AND a.ctid > b.ctid;
\i test/fuzz/targets.sql
SQL
status=0
while IFS='|' read -r name n; do
  [ -z "$only" ] || [ "$only" = "$name" ] || continue
  # psql's own status says whether the server lived
  psql -XqAt -v ON_ERROR_STOP=1 -v name="$name" -v n="$n" -v seed="$seed" -v first="$first" >"$work/server.out" 2>&1 <<'SQL'
SET statement_timeout = '20min';
-- so that an index answers where one can
SET enable_seqscan = off;
LOAD 'docpatterns';
SELECT fuzz_run(:'name', :n, :seed, :first);
SQL
  ended=$?
  cat "$work/server.out"
  if [ $ended != 0 ]; then
    status=1
    echo "FAILED: $name, seed $seed: psql ended with status $ended"
    for _ in {1..60}; do psql -Xq -c 'SELECT 1' >/dev/null 2>&1 && break; sleep 0.5; done
    echo "the last iteration was $(psql -XqAt -c "SELECT pg_read_file('fuzz.iteration')" 2>&1)"
  fi
  grep -q 'FAILED' "$work/server.out" && status=1
done < <(psql -XqAt -c "SELECT name, greatest(1, ($iterations * share)::bigint) FROM fuzz_targets ORDER BY name" </dev/null)
psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_fuzz WITH (FORCE)'
rm -f "$library"
[ $status = 0 ] && echo "no fault in $iterations iterations of each target, seed $seed"
exit $status
