#!/bin/bash
# How load, reads, check, repair, build, dump and memory grow with size: each shape is made anew at each size.
#
#   scale.sh [PATTERN]     only shapes whose name matches the shell pattern
#
# SIZES (default "100000 1000000") are numbers of documents, elements, measurements, members or nodes. What is linear shows the same
# microseconds for one of them at all sizes; what is flat shows the same microseconds for a read. "anon MB" is the most memory that
# the server's process had for itself while it loaded, and while it checked. The repair finds nothing to mend; the build is of a
# declaration on a full table; the dump is read by nobody. The data is deleted at the end.
set -eu -o pipefail
cd "$(dirname "$0")/.."
export CLUSTER=${CLUSTER:-bench} LC_ALL=C.UTF-8
cluster=test/env/cluster.sh
sizes=${SIZES:-100000 1000000} only=${1:-*}
export PGOPTIONS='-c client_min_messages=warning -c jit=off -c search_path=bench_scale,public'
trap '"$cluster" psql -qc "DROP SCHEMA IF EXISTS bench_scale, t CASCADE"; "$cluster" stop' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
"$cluster" start
"$cluster" psql -qc "ALTER SYSTEM SET shared_buffers = '2GB'" -c "ALTER SYSTEM SET max_wal_size = '16GB'" -c "ALTER SYSTEM SET maintenance_work_mem = '256MB'"
"$cluster" restart
sql() { "$cluster" psql -qXAt -v ON_ERROR_STOP=1 "$@"; }
sql -c 'CREATE EXTENSION IF NOT EXISTS docpatterns'

# Runs statements in one session: sets took (ms), anon (MB) and answer (the last value).
measure() {  # measure SQL...
  local out pid most=0 now args=()
  out=$(mktemp)
  for s in "$@"; do args+=(-c "$s"); done
  PGAPPNAME=bench_scale sql -c '\timing on' "${args[@]}" >"$out" &
  while [ -n "$(jobs -rp)" ]; do
    pid=${pid:-$("$cluster" psql -qXAt -c "SELECT pid FROM pg_stat_activity WHERE application_name = 'bench_scale' AND backend_type = 'client backend' LIMIT 1")}
    now=$(awk '/^RssAnon/ { print int($2 / 1024) }' "/proc/${pid:-none}/status" 2>/dev/null || true)
    [ "${now:-0}" -le "$most" ] || most=$now
    sleep 0.2
  done
  wait "$!"
  took=$(awk '/^Time: / { t += $2 } END { printf "%.1f", t }' "$out") anon=$most answer=$(sed '/^Time: /d' "$out" | tail -1)
  rm -f "$out"
}

# The mean time of a read: so many calls of a statement, in which $1 is a random number below the size.
reads() {  # reads SIZE CALLS SQL
  sql <<SQL
SET plan_cache_mode = force_generic_plan;
SELECT setseed(0.5) \gset
PREPARE one(bigint) AS $3;
DO \$do\$ DECLARE r record; keys bigint[] := ARRAY(SELECT floor(random() * $1)::bigint FROM generate_series(1, $2)); k bigint; began timestamptz;
BEGIN
  FOREACH k IN ARRAY keys[1:20] LOOP EXECUTE format('EXECUTE one(%s)', k); END LOOP;
  began := clock_timestamp();
  FOREACH k IN ARRAY keys LOOP EXECUTE format('EXECUTE one(%s)', k) ; END LOOP;
  PERFORM set_config('bench.us', round(extract(epoch FROM clock_timestamp() - began) * 1e6 / $2, 1)::text, false);
END \$do\$;
SELECT current_setting('bench.us');
SQL
}

each() { awk -v ms="$1" -v n="$2" 'BEGIN { printf "%.3f", ms * 1000 / n }'; }
bytes() { sql -c "SELECT round(sum(pg_total_relation_size(c.oid))::numeric / $1, 1) FROM pg_class c WHERE relnamespace IN (SELECT oid FROM pg_namespace WHERE nspname IN ('bench_scale', 't')) AND relkind IN ('r', 'm')"; }

# shape: make (SQL before the load), declare (SQL, before the load as well), load (SQL), read and write (SQL with $1), for a size n
shape() {
  n=$2 make='SELECT 1' declare= load= read= write= read_name= write_name=
  case $1 in
    documents)
      make="SELECT collection_create('t')"
      load="INSERT INTO t (doc) SELECT bson_build('_id', i, 'name', 'Customer ' || i, 'status', i % 7, 'at', now(), 'text', repeat(md5(i::text), 6), 'n', i::bigint * 7919 % 1000003) FROM (SELECT generate_series(0, $n - 1) AS i) s"
      read="SELECT collection_find('t', bson_build('_id', \$1))" read_name='find by _id'
      write="SELECT collection_update('t', bson_build('_id', \$1), '{\"\$inc\": {n: 1}}')" write_name='update by _id' ;;
    reference)
      make="SELECT collection_create('o'), collection_create('t'); INSERT INTO o (doc) SELECT bson_build('_id', i, 'name', 'n' || i) FROM generate_series(0, 9999) i"
      declare="SELECT reference_enable('t', 'customer', 'o', live => '{name}')"
      load="INSERT INTO t (doc) SELECT bson_build('_id', i, 'customer', i % 10000, 'n', i) FROM (SELECT generate_series(0, $n - 1) AS i) s"
      write="UPDATE t SET doc = bson_set(doc, 'customer', (\$1 + 1) % 10000) WHERE _id = \$1" write_name='another customer' ;;
    computed)
      make="SELECT collection_create('t'), collection_create('s'); INSERT INTO t (doc) SELECT bson_build('_id', i) FROM (SELECT generate_series(0, $n / 100 - 1) AS i) s"
      declare="SELECT computed_enable('t', 's', 'g', '{n: {\$count: {}}, sum: {\$sum: \"\$v\"}, best: {\$max: \"\$v\"}}')"
      load="INSERT INTO s (doc) SELECT bson_build('_id', i, 'g', i::bigint * 7919 % ($n / 100), 'v', i % 1009) FROM (SELECT generate_series(0, $n - 1) AS i) s"
      write="INSERT INTO s (doc) VALUES (bson_build('g', \$1 % ($n / 100), 'v', \$1))" write_name='insert of a row' ;;
    versioning)
      make="SELECT collection_create('t')" declare="SELECT versioning_enable('t')"
      load="INSERT INTO t (doc) SELECT bson_build('_id', i, 'text', repeat(md5(i::text), 6)) FROM (SELECT generate_series(0, $n - 1) AS i) s"
      read="SELECT versioning_at('t', \$1, 1)" read_name='revision 1'
      write="UPDATE t SET doc = bson_set(doc, 'n', 1) WHERE _id = \$1" write_name=update ;;
    outlier)
      make="SELECT collection_create('t'); SELECT outlier_enable('t', 'list', 1000); INSERT INTO t (doc) VALUES (bson_build('_id', 1, 'list', bson_array()))"
      load="SELECT outlier_push('t', 1, VARIADIC ARRAY(SELECT i * 1000 + j FROM generate_series(0, 999) j)) FROM (SELECT generate_series(0, $n / 1000 - 1) AS i) s"
      read="SELECT outlier_contains('t', 1, \$1)" read_name='is one of them'
      write="SELECT outlier_push('t', 1, \$1)" write_name='push of one' ;;
    bucket)
      make="SELECT bucket_create('t', columns => 'sensor int, ts timestamptz, temperature float8', group_by => '{sensor}', time_field => 'ts', span => '1 day')"
      load="INSERT INTO t SELECT i % 1000, '2026-01-01'::timestamptz + (i / 1000) * interval '10 s', 20 + (i::bigint * 7919 % 1000003 % 77) * 0.1 FROM (SELECT generate_series(0, $n - 1) AS i) s"
      read="SELECT avg(temperature) FROM t WHERE sensor = \$1 % 1000 AND ts >= '2026-01-01' AND ts < '2026-01-02'" read_name='a day of a sensor'
      write="SELECT * FROM t WHERE sensor = \$1 % 1000 ORDER BY ts DESC LIMIT 1" write_name='last of a sensor' ;;
    leaderboard)
      make="SELECT kv_create('t')"
      load="SELECT count(kv_zadd('t', 'board', i::bigint * 7919 % 1000003, 'member' || i)) FROM (SELECT generate_series(0, $n - 1) AS i) s"
      read="SELECT kv_zrevrank('t', 'board', 'member' || \$1)" read_name='rank of a member'
      write="SELECT kv_zadd('t', 'board', \$1, 'member' || \$1)" write_name='score of a member' ;;
    tree)
      make="SELECT collection_create('t')" declare="SELECT tree_enable('t', parent => 'up', ancestors => 'above')"
      load="INSERT INTO t (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 0 THEN (i - 1) / 10 END) FROM (SELECT generate_series(0, $n - 1) AS i) s"
      read="SELECT count(*) FROM tree_descendants('t', (\$1 % ($n / 100) + $n / 100)::int)" read_name='a subtree'
      write="UPDATE t SET doc = bson_set(doc, 'up', \$1 % 100) WHERE _id = $n - 1 - \$1 % 1000" write_name='another parent' ;;
  esac
}

begin() { sql -c 'DROP SCHEMA IF EXISTS bench_scale, t CASCADE' -c 'CREATE SCHEMA bench_scale' -c "$make" >/dev/null; }

row='%-12s %10s %8s %8s %8s %24s %24s %9s %8s %9s %9s %9s %6s\n'
# shellcheck disable=SC2059
printf "$row" shape size 'load us' 'anon MB' bytes '' us 'check us' 'anon MB' 'repair us' 'build us' 'dump us' found
for name in documents reference computed versioning outlier bucket leaderboard tree; do
  # shellcheck disable=SC2053
  [[ $name == $only ]] || continue
  for size in $sizes; do
    shape "$name" "$size"
    begin
    [ -z "$declare" ] || sql -c "$declare" >/dev/null
    measure "$load"
    loaded=$(each "$took" "$size") load_anon=$anon
    sql -c 'VACUUM ANALYZE' >/dev/null
    size_each=$(bytes "$size")
    read_us=; [ -z "$read" ] || read_us="$read_name $(reads "$size" 2000 "$read")"
    write_us=; [ -z "$write" ] || write_us="$write_name $(reads "$size" 1000 "$write")"
    measure 'SELECT count(*) FROM pattern_check()'
    checked=$(each "$took" "$size") check_anon=$anon found=$answer
    measure 'SELECT sum(pattern_repair(rel, name)) FROM pattern_list()'
    repaired=$(each "$took" "$size")
    began=$(date +%s%N)
    "$cluster" run pg_dump -n bench_scale -n t >/dev/null
    dumped=$(each "$((($(date +%s%N) - began) / 1000000))" "$size")
    built=
    if [ -n "$declare" ]; then
      begin
      sql -c "$load" -c 'VACUUM ANALYZE' >/dev/null
      measure "$declare" "CALL pattern_build('t')"
      built=$(each "$took" "$size")
    fi
    # shellcheck disable=SC2059
    printf "$row" "$name" "$size" "$loaded" "$load_anon" "$size_each" "$read_us" "$write_us" "$checked" "$check_anon" "$repaired" "$built" "$dumped" "$found"
  done
done
