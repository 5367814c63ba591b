# Fifth part of the tour: measurements of this machine, taken while you watch, in buckets. Sourced by run.sh.

tick_ms=$((1000 / $(getconf CLK_TCK)))
page_kb=$(($(getconf PAGESIZE) / 1024))

# Prints a line of CSV for each process: pid, command, time, state, CPU time so far (ms), memory (kB), threads.
sample() {
  local now=$EPOCHREALTIME time zone file line command rest
  printf -v time '%(%F %T)T' "${now%[.,]*}"
  printf -v zone '%(%z)T' "${now%[.,]*}"
  for file in /proc/[0-9]*/stat; do
    # a process may have ended meanwhile
    { read -r line <"$file"; } 2>/dev/null || continue
    command=${line#*(}
    command=${command%)*}
    read -r -a rest <<<"${line##*) }"
    printf '%s,"%s",%s.%s%s,%s,%s,%s,%s\n' "${line%% *}" "${command//\"/\"\"}" "$time" "${now#*[.,]}" "$zone" \
      "${rest[0]}" $(((rest[11] + rest[12]) * tick_ms)) $((rest[21] * page_kb)) "${rest[17]}"
  done
}

# A transaction for each sample, ten a second, until so many seconds are over: record SECONDS RELATION
record() {
  local until=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000))
  while [ "${EPOCHREALTIME/[.,]/}" -lt $until ]; do
    echo "COPY $2 FROM STDIN (FORMAT csv);"
    sample
    echo '\.'
    sleep 0.1
  done | "$cluster" psql -q -v ON_ERROR_STOP=1
}

# A session with something to do for so many seconds: it makes an index, drops it, and rests: work SECONDS
work() {
  ask "DO \$\$ BEGIN
    WHILE clock_timestamp() < now() + $1 * interval '1 s' LOOP
      CREATE INDEX tour ON packages USING gin (doc bson_ops (paths = 'depends.name'));
      DROP INDEX tour;
      PERFORM pg_sleep(1);
    END LOOP; END \$\$"
}

title 'Measurements, while you watch'
say "The next pattern is for measurements: a relation that is read and written like a table, one measurement a row. Underneath they" \
  "are kept in buckets, packed by column; here one for each process and minute."
show "SELECT bucket_create('processes',
  columns => 'pid int, command text, ts timestamptz, state text,
              cpu_ms int, memory_kb int, threads int',
  group_by => '{pid,command}', time_field => 'ts', span => '1 minute')"
seconds=${DEMO_SECONDS:-10}
say "For $seconds seconds, ten times a second, the state of every process of this machine goes in, each sample a COPY and a transaction" \
  "of its own. Meanwhile another session makes an index, rests, and does so again ..."
work "$seconds" &
record "$seconds" processes
wait $!
ask 'ANALYZE processes'
show "SELECT count(*) AS measurements, count(DISTINCT pid) AS processes,
       max(ts) - min(ts) AS during FROM processes"
say "Who was busy? The CPU time of a process only grows, so the difference of two minima and maxima tells:"
show "SELECT command, pid, max(cpu_ms) - min(cpu_ms) AS cpu_ms,
       max(memory_kb) / 1024 AS megabytes, count(*) AS measurements
FROM processes GROUP BY command, pid ORDER BY 3 DESC, 2 LIMIT 5"
busiest=$(ask "SELECT pid FROM processes GROUP BY pid, command ORDER BY max(cpu_ms) - min(cpu_ms) DESC, pid LIMIT 1")
say "The busiest one, half second by half second:"
show "SELECT to_char(half, 'MI:SS.MS') AS at, cpu, memory_mb AS mb,
       repeat('#', least(50, coalesce(cpu, 0) / 10)) AS cpu_ms_in_half_a_second
FROM (SELECT half, max(memory_kb) / 1024 AS memory_mb,
             max(cpu_ms) - lag(max(cpu_ms)) OVER (ORDER BY half) AS cpu
      FROM (SELECT min(ts) AS since, max(ts) AS until FROM processes) t,
           bucket_starts('0.5 s', since, until) AS half
      LEFT JOIN processes ON pid = $busiest
           AND ts >= half AND ts < half + interval '0.5 s'
      GROUP BY half) x ORDER BY half"

title 'What is underneath'
say "These measurements still wait as rows, because their minute is not over. Packed now, which a busy relation does by itself:"
show "SELECT bucket_pack('processes')"
show "SELECT buckets, packed, waiting, measurements_per_bucket
FROM bucket_stats('processes')"
say "A bucket as the document that applications usually keep by hand (all but two of its measurements left out):"
show -t "SELECT bson_pretty(bson_project(doc, '{measurements: {\$slice: 2}}'))
FROM processes_buckets WHERE pid = $busiest ORDER BY start LIMIT 1"
ask "CREATE TABLE plain_processes AS TABLE processes; CREATE INDEX ON plain_processes (pid, command, ts)"
say "The same measurements in a plain table with an index on process and time, and in buckets with theirs:"
show "SELECT pg_size_pretty(pg_total_relation_size('plain_processes')) AS plain,
       pg_size_pretty(pg_total_relation_size('processes_packed')) AS buckets,
       round(sum(pg_column_size(data)) / sum(bucket_count(data))::numeric, 2)
         AS bytes_of_data_per_measurement
FROM processes_packed"
say "The question of before is answered from the headers of the buckets:"
show "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT command, pid, max(cpu_ms) - min(cpu_ms)
FROM processes GROUP BY command, pid"
limit=$(ask "SELECT max(memory_kb) / 2 FROM processes")
say "Filters on process and time are looked up in the index, and headers tell which buckets other filters can skip unread:"
show "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT ts, cpu_ms FROM processes WHERE memory_kb > $limit"
say "Plain SQL corrects single measurements; only their buckets are packed again:"
show "WITH changed AS (UPDATE processes SET state = 'asleep'
                 WHERE pid = $busiest AND state = 'S' RETURNING ts)
SELECT count(*) AS changed FROM changed"
show "WITH gone AS (DELETE FROM processes
              WHERE ts < (SELECT min(ts) + interval '1 s' FROM processes)
              RETURNING ts)
SELECT count(*) AS gone, max(ts) - min(ts) AS during FROM gone"
show "SELECT state, count(*) FROM processes GROUP BY state ORDER BY 2 DESC"
say "And header, limits and times of every bucket are what its measurements say:"
show "SELECT * FROM pattern_check('processes')"
[ "$(ask "SELECT count(*) FROM pattern_check()")" = 0 ] || { echo "pattern_check found violations"; exit 1; }
printf '  %s\n' "${green}$(ask 'SELECT count(*) FROM processes_packed') buckets checked, 0 violations${plain}"
