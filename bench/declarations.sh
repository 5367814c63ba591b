#!/bin/bash
# Many declarations in one database: what commands take by the number of tables that have patterns.
#
#   declarations.sh
#
# COUNTS (default "100 1000 4000") are numbers of collections, each in a schema of its own, with document versioning and the
# attribute pattern. Elapsed milliseconds of a command in a new session; of all declarations, for each of them. What is flat shows
# the same in all columns. The data is deleted at the end.
set -eu -o pipefail
cd "$(dirname "$0")/.."
export CLUSTER=${CLUSTER:-bench} LC_ALL=C.UTF-8
cluster=test/env/cluster.sh
counts=${COUNTS:-100 1000 4000}
export PGOPTIONS='-c client_min_messages=warning -c jit=off'
sql() { "$cluster" psql -qXAt -v ON_ERROR_STOP=1 "$@"; }
# one by one: a transaction locks all that it drops
clear() { sql -f - >/dev/null <<<"SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace WHERE nspname ~ '^many[0-9]+$' \\gexec"; }
trap 'clear; "$cluster" stop' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"$cluster" start
sql -c 'CREATE EXTENSION IF NOT EXISTS docpatterns'

enable="SELECT versioning_enable('many%1\$s.t'), attribute_enable('many%1\$s.t', 'attributes', paths => ARRAY['color', 'size'])"
names=('CREATE TABLE without patterns' 'ALTER TABLE of it' 'DROP TABLE of it' collection_create versioning_enable 'first insert of a session' 'next insert' pattern_check pattern_list
  pattern_stats pattern_disable 'DROP TABLE of a collection' 'a collection and its two declarations' 'pattern_list of all, each' 'pattern_check one by one, each')
commands=('CREATE TABLE public.other (a int)' 'ALTER TABLE public.other ADD b int' 'DROP TABLE public.other' "SELECT collection_create('many1.x')" "SELECT versioning_enable('many1.x')"
  "INSERT INTO many1.x (doc) VALUES ('{_id: 1}')" "INSERT INTO many1.x (doc) VALUES ('{_id: 2}'); INSERT INTO many1.x (doc) VALUES ('{_id: 3}')" "SELECT count(*) FROM pattern_check('many1.x')"
  "SELECT count(*) FROM pattern_list('many1.x')" "SELECT count(*) FROM pattern_stats('many1.x')" "SELECT pattern_disable('many1.x', 'revision')" 'DROP TABLE many1.x CASCADE')

# The time of the last statement of a new session. The first looks up types and operators that each session needs once.
ms() { printf '\\timing on\nSELECT '"'{a: 1}'::bson"';\n%s;\n' "${1//; /;$'\n'}" | sql -f - | awk '/^Time: / { t = $2 } END { printf "%.1f", t }'; }
each() { awk -v began="$1" -v now="$(date +%s%N)" -v n="$2" 'BEGIN { printf "%.1f", (now - began) / 1e6 / n }'; }

made=0 column=0
declare -A figures
for count in $counts; do
  began=$(date +%s%N) before=$made
  while [ "$made" -lt "$count" ]; do
    to=$((made + 100 > count ? count : made + 100))
    sql -c "DO \$do\$ BEGIN FOR i IN $made + 1 .. $to LOOP
        EXECUTE format('CREATE SCHEMA many%1\$s; SELECT collection_create(''many%1\$s.t'')', i);
        EXECUTE format(\$\$$enable\$\$, i);
      END LOOP; END \$do\$"
    made=$to
  done
  figures[12,$column]=$(each "$began" $((made - before)))
  sql -c 'VACUUM ANALYZE'
  for i in "${!commands[@]}"; do figures[$i,$column]=$(ms "${commands[i]}"); done
  began=$(date +%s%N)
  sql -c 'SELECT count(*) FROM pattern_list()' >/dev/null
  figures[13,$column]=$(each "$began" $((made * 2)))
  began=$(date +%s%N)
  sql -f - >/dev/null <<<"SELECT format('SELECT count(*) FROM pattern_check(%L, %L)', rel, name) FROM pattern_list() \\gexec"
  figures[14,$column]=$(each "$began" $((made * 2)))
  column=$((column + 1))
done

# shellcheck disable=SC2086
printf '%-38s' 'tables with two patterns each' && printf ' %10s' $counts && echo
for i in "${!names[@]}"; do
  printf '%-38s' "${names[i]}"
  for ((c = 0; c < column; c++)); do printf ' %10s' "${figures[$i,$c]}"; done
  echo
done
