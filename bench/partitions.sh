#!/bin/bash
# Partitioned tables with patterns: what a declaration costs by the number of partitions, and rows that come and go with them.
#
#   partitions.sh [PATTERN]     only patterns whose name matches the shell pattern
#
# ROWS (default 1000000, 100000000 for the full size) are loaded into PARTS (default 20) partitions, for each pattern anew; COUNTS
# (default "10 100 400") are the numbers of empty partitions with which a declaration is timed. Every figure is an elapsed time:
# milliseconds of a command, or microseconds for a row. "none" is the same table without patterns. The data is deleted at the end.
set -eu -o pipefail
cd "$(dirname "$0")/.."
export CLUSTER=${CLUSTER:-bench} LC_ALL=C.UTF-8
cluster=test/env/cluster.sh
rows=${ROWS:-1000000} parts=${PARTS:-20} counts=${COUNTS:-10 100 400} only=${1:-*}
export PGOPTIONS='-c client_min_messages=warning -c jit=off -c search_path=bench_parts,public'
trap '"$cluster" psql -qc "DROP SCHEMA IF EXISTS bench_parts CASCADE"; "$cluster" stop' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"$cluster" start
sql() { "$cluster" psql -qXAt -v ON_ERROR_STOP=1 "$@"; }
sql -c 'CREATE EXTENSION IF NOT EXISTS docpatterns'

patterns='none attribute payload schema_versioning polymorphic outlier cold preallocated approximation versioning change_feed reference computed subset query_table'
enable() {  # enable PATTERN: the declaration on t, in SQL
  case $1 in
    none) echo 'SELECT 1' ;;
    attribute) echo "SELECT attribute_enable('t', 'attributes', paths => ARRAY['color', 'size'])" ;;
    payload) echo "SELECT payload_enable('t', 'raw', extracts => '{\"total\": \"xpath:/order/@total::integer\"}')" ;;
    schema_versioning) echo "SELECT schema_versioning_enable('t')" ;;
    polymorphic) echo "SELECT polymorphic_enable('t', 'kind', unknown => 'accept')" ;;
    outlier) echo "SELECT outlier_enable('t', 'list', threshold => 5)" ;;
    cold) echo "SELECT subset_fields_enable('t', ARRAY['text'])" ;;
    preallocated) echo "SELECT preallocated_enable('t', 'seats', preallocated_grid(rows => '{2,2}'), store => 'slots')" ;;
    approximation) echo "SELECT approximation_enable('t', 'views', slots => 4)" ;;
    versioning) echo "SELECT versioning_enable('t')" ;;
    change_feed) echo "SELECT change_feed_enable('t', notify => false)" ;;
    reference) echo "SELECT reference_enable('t', 'group', 'other', live => ARRAY['name'])" ;;
    computed) echo "SELECT computed_enable('other', 't', 'group', '{\"total\": {\"\$sum\": \"\$n\"}}')" ;;
    subset) echo "SELECT subset_enable('other', 'top', 't', 'group', '{\"n\": -1}', 3)" ;;
    query_table) echo "SELECT query_table_create('by_color', 't', partition => '{color}', clustering => '{\"n\": -1}')" ;;
  esac
}

make_table() {  # make_table PARTITIONS ROWS: partitions of so many rows each
  sql >/dev/null <<SQL
DROP SCHEMA IF EXISTS bench_parts CASCADE;
CREATE SCHEMA bench_parts;
SELECT collection_create('other');
INSERT INTO other (doc) SELECT bson_build('_id', i, 'name', 'Group ' || i) FROM generate_series(0, 999) i;
CREATE TABLE t (_id bigint PRIMARY KEY, doc bson NOT NULL) PARTITION BY RANGE (_id);
SELECT format('CREATE TABLE t%s PARTITION OF t FOR VALUES FROM (%s) TO (%s)', p, (p - 1) * $2, p * $2) FROM generate_series(1, $1) p \\gexec
CREATE FUNCTION fill(low bigint, high bigint) RETURNS SETOF t LANGUAGE sql AS \$\$
  SELECT i, bson_build('_id', i, 'n', i % 7919, 'group', i * 7 % 1000, 'color', (ARRAY['red', 'green', 'blue'])[i % 3 + 1], 'size', i % 50,
    'kind', 'book', 'views', 0, 'text', repeat(md5(i::text), 6), 'raw', format('<order total="%s"><item>%s</item></order>', i % 1000, md5(i::text)),
    'list', (SELECT array_agg('user' || j) FROM generate_series(1, CASE WHEN i % 10 = 0 THEN 12 ELSE i % 5 + 1 END) j))
  FROM generate_series(low, high) i \$\$;
SQL
}

ms() { sql -c '\timing on' -c "$1" | awk '/^Time: / { t += $2 } END { printf "%.1f", t }'; }  # ms SQL: how long it takes
each() { awk -v ms="$1" -v n="$2" 'BEGIN { printf "%.2f", ms * 1000 / n }'; }
found() { sql -c 'SELECT count(*) FROM pattern_check()'; }

chosen=
for pattern in $patterns; do
  # shellcheck disable=SC2053
  [[ $pattern != $only ]] || chosen+=" $pattern"
done

echo 'Commands on a table with so many empty partitions: milliseconds'
printf '%-18s %10s %10s %10s %10s %10s %10s\n' '' partitions declare create detach attach disable
for pattern in $chosen; do
  for count in $counts; do
    make_table "$count" 1000
    declare=$(ms "$(enable "$pattern")")
    create=$(ms "CREATE TABLE t_new PARTITION OF t FOR VALUES FROM (1000000000) TO (1000001000)")
    detach=$(ms "ALTER TABLE t DETACH PARTITION t1")
    attach=$(ms "ALTER TABLE t ATTACH PARTITION t1 FOR VALUES FROM (0) TO (1000)")
    printf '%-18s %10s %10s %10s %10s %10s %10s\n' "$pattern" "$count" "$declare" "$create" "$detach" "$attach" \
      "$(ms "SELECT pattern_disable(rel, name) FROM (SELECT DISTINCT rel, name FROM pattern_list() WHERE rel::text !~ '^t[0-9]') q")"
  done
done

each_part=$((rows / parts))
printf '\n%s\n' "$rows documents in $parts partitions: microseconds for a document of the table (load, check) or of the partition (the others); x: pattern_check finds differences"
printf '%-18s %10s %10s %10s %10s %10s %10s %10s\n' '' load check bytes detach attach retain drop
for pattern in $chosen; do
  make_table "$parts" "$each_part"
  sql -c "$(enable "$pattern")" >/dev/null
  load=$(ms "INSERT INTO t SELECT * FROM fill(0, $((each_part * parts - 1)))")
  check=$(ms 'SELECT * FROM pattern_check()')
  sql -c 'VACUUM ANALYZE' >/dev/null
  bytes=$(sql -c "SELECT sum(pg_total_relation_size(c.oid)) / $rows FROM pg_class c WHERE relnamespace = 'bench_parts'::regnamespace AND relkind = 'r' AND relname <> 'other'")
  line=
  for command in 'ALTER TABLE t DETACH PARTITION t1' "ALTER TABLE t ATTACH PARTITION t1 FOR VALUES FROM (0) TO ($each_part)" \
      'ALTER TABLE t DETACH PARTITION t2; DROP TABLE t2 CASCADE' 'DROP TABLE t3'; do
    [ "$(found)" = 0 ] || sql -c "SELECT pattern_repair(rel, name, accept_loss => true) FROM (SELECT DISTINCT rel, name FROM pattern_check()) q" >/dev/null
    took=$(ms "$command")
    line+=$(printf ' %9s%s' "$(each "$took" "$each_part")" "$([ "$(found)" = 0 ] && echo ' ' || echo x)")
  done
  printf '%-18s %10s %10s %10.0f%s\n' "$pattern" "$(each "$load" "$rows")" "$(each "$check" "$rows")" "$bytes" "$line"
done
