#!/bin/bash
# Writers, packers and readers of relations of measurements at once. Every transaction does the same to a plain table; whatever
# the others do meanwhile, any snapshot sees the same in both, from the headers of buckets as from their rows. First each
# transaction changes one thing only, and nobody waits for somebody who waits for him; then there are longer ones, with
# savepoints.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 13
stress_begin dp_bucket_stress 20265
clients=7 seconds=${STRESS_SECONDS:-8}  # five write, two read
export PGOPTIONS="$PGOPTIONS -c timezone=UTC"
stress_setup <<'SQL'
CREATE TABLE bad (who text, what text);
CREATE TABLE looks (who text);
SELECT bucket_create('r', columns => 'g int, ts timestamptz, v float8, w text, id bigint', group_by => '{g}', time_field => 'ts', span => '1 hour', max_count => 60);
SELECT bucket_create('p', columns => 'g int, ts timestamptz, v float8, w text, id bigint', group_by => '{g}', span => NULL, max_count => 25);
SELECT bucket_create('s', columns => 'g int, ts timestamptz, v bigint', group_by => '{g}', time_field => 'ts', span => '1 hour', granularity => '1 minute', same_slot => 'add');
CREATE TABLE r_twin (g int, ts timestamptz, v float8, w text, id bigint);
CREATE TABLE p_twin (LIKE r_twin);
CREATE INDEX ON r_twin (id);
CREATE INDEX ON p_twin (id);
CREATE TABLE s_twin (g int, slot timestamptz, v bigint, PRIMARY KEY (g, slot));
CREATE SEQUENCE ids CACHE 1000;

-- What one statement sees: the relation by its headers, by its rows, and the plain table.
CREATE VIEW r_differs AS
  WITH h AS (SELECT g, count(*) AS n, sum(id) AS s, min(ts) AS a, max(ts) AS z FROM r GROUP BY g),
       w AS (SELECT g, count(*) AS n, sum(id) AS s, min(ts) AS a, max(ts) AS z FROM (SELECT * FROM r OFFSET 0) q GROUP BY g),
       t AS (SELECT g, count(*) AS n, sum(id) AS s, min(ts) AS a, max(ts) AS z FROM r_twin GROUP BY g)
  SELECT g, h::text AS h, w::text AS w, t::text AS t FROM h FULL JOIN w USING (g) FULL JOIN t USING (g) WHERE h IS DISTINCT FROM w OR w IS DISTINCT FROM t;
CREATE VIEW p_differs AS
  WITH h AS (SELECT g, count(*) AS n, sum(id) AS s FROM p GROUP BY g),
       w AS (SELECT g, count(*) AS n, sum(id) AS s FROM (SELECT * FROM p OFFSET 0) q GROUP BY g),
       t AS (SELECT g, count(*) AS n, sum(id) AS s FROM p_twin GROUP BY g)
  SELECT g, h::text AS h, w::text AS w, t::text AS t FROM h FULL JOIN w USING (g) FULL JOIN t USING (g) WHERE h IS DISTINCT FROM w OR w IS DISTINCT FROM t;
CREATE VIEW s_differs AS
  WITH h AS (SELECT g, count(*) AS n, sum(v) AS s FROM s GROUP BY g),
       w AS (SELECT g, count(*) AS n, sum(v) AS s FROM (SELECT * FROM s OFFSET 0) q GROUP BY g),
       t AS (SELECT g, count(*) AS n, sum(v) AS s FROM s_twin GROUP BY g)
  SELECT g, h::text AS h, w::text AS w, t::text AS t FROM h FULL JOIN w USING (g) FULL JOIN t USING (g) WHERE h IS DISTINCT FROM w OR w IS DISTINCT FROM t;
CREATE FUNCTION differences(rel text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
  EXECUTE format('SELECT (SELECT count(*) FROM (SELECT * FROM %1$s EXCEPT ALL SELECT * FROM %1$s_twin) x) + (SELECT count(*) FROM (SELECT * FROM %1$s_twin EXCEPT ALL SELECT * FROM %1$s) x)', rel) INTO n;
  RETURN n;
END $$;
SQL

# Files for COPY; they are loaded again and again, so that there are measurements that are the same in all they hold.
awk -v seed="$seed" -v at="$DP_WORK/copy" 'BEGIN { srand(seed); for (f = 0; f < 6; f++) { n = f < 3 ? 1500 : 40; for (i = 0; i < n; i++)
  printf "%d\t2024-01-01 %02d:%02d:%02d+00\t%.1f\tw%d\t%d\n", rand() * 4, f * 2 + i / n * 2, rand() * 60, rand() * 60, 20 + rand(), rand() * 4, f * 10000 + i >(at "." f) } }'

# One reader's: what the headers say, what the rows say and what the plain table says, in one snapshot.
look() {  # look NUMBER
  printf '\\set %s 0\n' a_count a_sum b_count b_sum  # the first look may fail
  for i in $(seq 100000); do
    for t in r p s; do
      echo "INSERT INTO bad SELECT '$t', d::text FROM ${t}_differs d;"
    done
    echo "INSERT INTO bad SELECT 'cut', i FROM generate_series(1, 3) i WHERE (SELECT row(count(*), sum(id)) FROM r WHERE ts BETWEEN '2024-01-01 00:17' AND timestamptz '2024-01-01' + i * interval '77 min') IS DISTINCT FROM (SELECT row(count(*), sum(id)) FROM r_twin WHERE ts BETWEEN '2024-01-01 00:17' AND timestamptz '2024-01-01' + i * interval '77 min');"
    echo "INSERT INTO bad SELECT 'order', 'r' WHERE (SELECT array_agg(ts) FROM (SELECT ts FROM r WHERE g = 1 ORDER BY ts DESC LIMIT 50) q) IS DISTINCT FROM (SELECT array_agg(ts) FROM (SELECT ts FROM r_twin WHERE g = 1 ORDER BY ts DESC LIMIT 50) q);"
    echo "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*), sum(id) FROM r \\gset a_"
    echo "SELECT count(*), sum(id) FROM (SELECT * FROM r OFFSET 0) q \\gset b_"
    echo "INSERT INTO bad SELECT 'later', q::text FROM (SELECT :a_count - count(*) AS n, :b_count - count(*) AS m, :a_sum - sum(id) AS s FROM r_twin) q WHERE q.n <> 0 OR q.m <> 0 OR q.s <> 0; COMMIT;"
    [ $((i % 5)) != 0 ] || echo "INSERT INTO bad SELECT 'check', c::text FROM pattern_check() c;"
    echo "INSERT INTO looks VALUES ('$1');"
  done 2>/dev/null
}
# One writer's work: whole transactions, one after the other, until the time is over.
export DP_WORK
work() {  # work NUMBER TAG
  [ "$1" -le 5 ] || { look "$1"; return; }
  stress_awk "$1" "$2" '
    # the relation first: what only changes data in WITH comes last
    function both(a, t,   b) { b = a; gsub(/@/, t, a); gsub(/@/, t "_twin", b); return "WITH twin AS (" b ") " a ";" }
    # new measurements of a relation, the newest times or late ones
    function fresh(t, n,   q) {
      q = sprintf("SELECT i %% 4 AS g, timestamptz $$2024-01-01$$ + (%d + i - %d) * interval $$9 s$$ AS ts, round((20 + random())::numeric, 1)::float8 AS v, $$w$$ || i %% 5 AS w, nextval($$ids$$) AS id FROM generate_series(1, %d) i",
        k * 3, r(5) == 1 ? r(k * 3) : 0, n)
      return "CREATE TEMP TABLE batch ON COMMIT DROP AS " q "; INSERT INTO " t " SELECT * FROM batch; INSERT INTO " t "_twin SELECT * FROM batch; DROP TABLE batch;"
    }
    function single(t,   g, late) {
      late = r(5) == 1 ? r(k * 3) : 0
      g = sprintf("VALUES (%d, timestamptz $$2024-01-01$$ + %d * interval $$9 s$$, %.1f, $$w%d$$, %d)", r(4) - 1, k * 3 - late, 20 + rand(), r(5), 1000000 * (1 + seed % 100) + k * 10 + r(9))
      return "INSERT INTO " t " " g "; INSERT INTO " t "_twin " g ";"
    }
    function one(t, what,   m, f) {
      m = 150 + r(50)
      if (what <= 6) return single(t)
      if (what <= 9) return fresh(t, 2 + r(30))
      if (what == 10) return r(3) == 1 ? fresh(t, 1000 + r(500)) : fresh(t, 200)
      if (what == 11) { f = ENVIRON["DP_WORK"] "/copy." (r(4) == 1 ? r(3) - 1 : 2 + r(3)); return "\n\\copy " t " from " f "\n\\copy " t "_twin from " f "\n" }
      if (what <= 14) return both("UPDATE @ SET v = v + 1, w = w || $$!$$ WHERE id % " m " = " r(m) - 1, t)
      if (what == 15) return both("UPDATE @ SET g = (g + 1) % 4, ts = ts + interval $$20 min$$ WHERE id % " m " = " r(m) - 1, t)
      if (what <= 18) return both("DELETE FROM @ WHERE id % " m " = " r(m) - 1, t)
      if (what == 19) return both("DELETE FROM @ WHERE id % 11 = " r(11) - 1, t)
      return "SELECT bucket_pack($$" t "$$);"
    }
    BEGIN {
      for (k = 1; k < 20000; k++) {
        t = r(4) == 1 ? "p" : "r"; what = r(80)
        if (what == 1) {
          print "SELECT bucket_resize($$r$$, span => $$" (r(2) == 1 ? "1 hour" : r(2) == 1 ? "3 hours" : "20 min") "$$, max_count => " 40 + r(60) ");"
          continue
        }
        if (what == 2) { print "SELECT bucket_resize($$p$$, max_count => " 10 + r(40) ");"; continue }
        if (what <= 10) {
          g = r(3); at = k * 11 - r(400); v = r(100)
          printf "%sINSERT INTO s VALUES (%d, timestamptz $$2024-01-01$$ + interval $$%d s$$, %d);", level(), g, at, v
          printf "INSERT INTO s_twin VALUES (%d, date_trunc($$minute$$, timestamptz $$2024-01-01$$ + interval $$%d s$$), %d) ON CONFLICT (g, slot) DO UPDATE SET v = s_twin.v + excluded.v; %s\n", g, at, v, r(8) == 1 ? "ROLLBACK;" : "COMMIT;"
          if (r(10) == 1) print "SELECT bucket_pack($$s$$);"
          continue
        }
        printf "%s", level()
        print one(t, r(20))
        if (tag == "alone") { print "COMMIT;"; continue }
        n = r(4) == 1 ? r(2) : 0
        if (r(6) == 1) print "SAVEPOINT a; " one(t, r(20)) "\nROLLBACK TO a; " one(t, r(20))
        while (n-- > 0) print one(r(4) == 1 ? "p" : "r", r(20))
        print r(12) == 1 ? "ROLLBACK;" : "COMMIT;"
      }
    }'
}
stress_run alone $((seconds / 2))
stress_run mixed $((seconds / 2))

ask "SELECT format('# %s looks; %s measurements and %s buckets, %s pages, %s slots', (SELECT count(*) FROM looks), (SELECT count(*) FROM r_twin), (SELECT count(*) FROM r_packed), (SELECT count(*) FROM p_packed), (SELECT count(*) FROM s_twin))"
is "$(cat "$DP_WORK"/errors.* | grep -c 'connection to server was lost')" 0 'the server stands'
ok 'single changes do not deadlock' [ "$(stress_count 40P01 alone)" -le 2 ]
is "$(ask 'SELECT * FROM pattern_check()')" '' 'the pattern is true afterwards'
is "$(ask 'SELECT * FROM bad LIMIT 10')" '' 'headers, rows and the plain table were the same for every snapshot'
for t in r p; do
  is "$(ask "SELECT differences('$t')")" 0 "$t: the measurements are those of the plain table"
  is "$(ask "SELECT bucket_pack('$t') >= 0; SELECT differences('$t'), (SELECT count(*) FROM ${t}_recent)")" $'t\n0|0' "$t: and so when all are packed"
done
is "$(ask "SELECT count(*) FROM (SELECT g, date_trunc('minute', ts), v FROM s) a FULL JOIN s_twin b ON (a.g, a.date_trunc, a.v) = (b.g, b.slot, b.v) WHERE a.g IS NULL OR b.g IS NULL")" 0 's: each slot has its sum'
is "$(ask 'SELECT * FROM pattern_check()')" '' 'and the pattern is true still'
is "$(ask "SELECT (SELECT count(*) FROM r_twin) > 500 AND (SELECT count(*) FROM looks) > 2")" t 'much was written, and looked at'
is "$(stress_others)" '' 'errors are serialization failures and deadlocks'
is "$(cat "$DP_WORK"/errors.*.[67] | grep 'ERROR:' | grep -v 'ERROR:  40001: .*new declaration\|ERROR:  25P02' | head -3)" '' 'readers fail only when their snapshot is older than the spans'
stress_end
