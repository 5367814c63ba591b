#!/bin/bash
# Key-value structures under many writers: ranks are those of a window function in every snapshot, no key has two types, nothing
# is lost, and transactions of one command never deadlock.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 8
stress_begin dp_kv_stress 20269
# small blocks, so that there are several levels of them
psql -Xq -c "ALTER DATABASE $PGDATABASE SET docpatterns.kv_block_size = 32"
stress_setup <<'SQL'
SELECT kv_create('s');
CREATE TABLE players (id int PRIMARY KEY, doc bson);
INSERT INTO players SELECT i, bson_build('score', i % 7) FROM generate_series(1, 50) i;
SELECT kv_leaderboard('s', 'kept', 'players', 'score');
-- a large board, with many of them
CREATE TABLE large (id int PRIMARY KEY, doc bson);
INSERT INTO large SELECT i, bson_build('score', hashint4(i)) FROM generate_series(1, 40000) i;
SELECT kv_leaderboard('s', 'large', 'large', 'score'), pattern_disable('large', 'large', keep_data => true);
CREATE TABLE added (n bigint);
CREATE TABLE bad (what text);
CREATE FUNCTION ranks(board text) RETURNS SETOF text STABLE LANGUAGE sql AS $$
  SELECT format('%s %s: rank %s, not %s', board, member, r, w)
  FROM (SELECT member, kv_zrank('s', board, member) AS r, row_number() OVER (ORDER BY score, member) - 1 AS w FROM s.scores WHERE key = board) q WHERE r IS DISTINCT FROM w
  UNION ALL SELECT format('%s has %s members, not %s', board, kv_zcard('s', board), n) FROM (SELECT count(*) AS n FROM s.scores WHERE key = board) q WHERE kv_zcard('s', board) <> n
$$;
SQL

work() {  # work NUMBER TAG: whole transactions, one after the other, until the time is over
  stress_awk "$1" "$2" '
    function command(   what, k, m) {
      what = r(32); k = "k" r(4); m = r(400)
      if (what <= 7) return sprintf("SELECT kv_zadd($$s$$, $$z%d$$, %d, %d, %d, %d);", r(3), r(60), m, r(60), r(400))
      if (what <= 9) return sprintf("SELECT kv_zadd($$s$$, $$large$$, %d, %d);", r(2000000000), r(41000))
      if (what == 10) return sprintf("SELECT kv_zincrby($$s$$, $$z1$$, %s, %d);", r(2) == 1 ? "0.5::float8" : "1", m)
      if (what == 11) return sprintf("SELECT kv_zrem($$s$$, $$z%d$$, %d, %d);", r(3), m, r(400))
      if (what == 12) return sprintf("SELECT kv_zpop%s($$s$$, $$z%d$$, %d);", r(2) == 1 ? "min" : "max", r(3), r(5))
      if (what == 13) return sprintf("SELECT kv_zunionstore($$s$$, $$z3$$, ARRAY[$$z1$$, $$z2$$]);")
      if (what == 14) return sprintf("SELECT kv_hset($$s$$, $$%s$$, $$f%d$$, %d, $$f%d$$, 2);", k, r(5), m, r(5))
      if (what == 15) return sprintf("SELECT kv_hdel($$s$$, $$%s$$, $$f%d$$, $$f%d$$);", k, r(5), r(5))
      if (what == 16) return sprintf("SELECT kv_sadd($$s$$, $$%s$$, %d, %d);", k, r(5), r(5))
      if (what == 17) return sprintf("SELECT kv_srem($$s$$, $$%s$$, %d, %d);", k, r(5), r(5))
      if (what == 18) return sprintf("SELECT kv_zadd($$s$$, $$%s$$, %d, %d);", k, r(5), r(5))
      if (what == 19) return sprintf("SELECT kv_zrem($$s$$, $$%s$$, 1, 2, 3, 4, 5);", k)
      if (what == 20) return sprintf("SELECT kv_del($$s$$, $$%s$$, $$k%d$$);", k, r(4))
      if (what == 21) return sprintf("SELECT kv_expire($$s$$, $$%s$$, %s);", k, r(2) == 1 ? "0.05" : "100")
      if (what == 22) return sprintf("SELECT kv_persist($$s$$, $$%s$$);", k)
      if (what == 23) return "SELECT kv_purge($$s$$);"
      if (what == 24) return sprintf("SELECT kv_spop($$s$$, $$%s$$);", k)
      if (what == 25) return sprintf("UPDATE players SET doc = bson_set(doc, $$score$$, %d) WHERE id = %d;", r(50), r(60))
      if (what == 26) return r(2) == 1 ? sprintf("INSERT INTO players VALUES (%d, $${score: 5}$$) ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;", r(60)) : sprintf("DELETE FROM players WHERE id = %d;", r(60))
      if (what == 27) return sprintf("WITH n AS (INSERT INTO added VALUES (1)) SELECT kv_hincrby($$s$$, $$total$$, $$n%d$$, 1);", r(3))
      if (what == 28) return "INSERT INTO bad SELECT ranks($$z1$$) UNION ALL SELECT ranks($$z2$$) UNION ALL SELECT ranks($$kept$$);"
      if (what == 29) return sprintf("INSERT INTO bad SELECT format($$large: %%s, not %%s$$, r, w) FROM (SELECT kv_zrank($$s$$, $$large$$, %d) AS r, (SELECT count(*) FROM s.scores a JOIN s.scores b ON a.key = $$large$$ AND b.key = $$large$$ AND b.member = %d AND (a.score, a.member) < (b.score, b.member)) AS w WHERE EXISTS (SELECT FROM s.scores WHERE key = $$large$$ AND member = %d)) q WHERE r IS DISTINCT FROM w;", m, m, m)
      if (what == 30) return r(2) == 1 ? sprintf("SELECT kv_zremrangebyscore($$s$$, $$z%d$$, %d, %d);", r(3), m = r(60), m + 2) : sprintf("SELECT kv_zremrangebyrank($$s$$, $$z%d$$, %d, %d);", r(3), m = r(60), m + 4);
      if (what == 31) return sprintf("DO $x$ BEGIN PERFORM kv_rename($$s$$, $$%s$$, $$k%d$$); EXCEPTION WHEN no_data_found THEN END $x$;", k, r(4));
      return r(3) == 1 ? "INSERT INTO bad SELECT c::text FROM pattern_check() c;" : sprintf("INSERT INTO bad SELECT format($$%%s is %%s$$, a, b) FROM (SELECT kv_zcount($$s$$, $$z2$$, 10, 20) AS a, (SELECT count(*) FROM s.scores WHERE key = $$z2$$ AND score BETWEEN 10 AND 20) AS b) q WHERE a <> b;")
    }
    BEGIN {
      for (i = 0; i < 30000; i++) {
        if (tag == "alone") { print command(); continue }
        s = level() command() command()
        if (r(3) == 1) s = s "SAVEPOINT a; " command() (r(2) == 1 ? "ROLLBACK TO a; " : "RELEASE a; ") command()
        print s (r(8) == 1 ? "ROLLBACK;" : "COMMIT;")
      }
    }'
}
stress_run alone "$(((seconds + 1) / 2))"
stress_run several "$(((seconds + 1) / 2))"

ask "SELECT format('# %s members, %s keys, %s blocks', (SELECT count(*) FROM s.scores), (SELECT count(*) FROM s.keys), (SELECT count(*) FROM s.counts))"
is "$(ask 'SELECT * FROM pattern_check()')" '' 'the patterns are true afterwards'
is "$(ask 'SELECT * FROM bad LIMIT 5')" '' 'and were at any moment in between, with the ranks right in every snapshot'
is "$(ask "SELECT ranks(k) FROM kv_keys('s') k WHERE kv_type_of('s', k) = 'zset' LIMIT 5")" '' 'all ranks are those of a window function'
is "$(ask "SELECT (SELECT sum(n) FROM added) = (SELECT sum(v::bigint) FROM kv_hvals('s', 'total') v)")" t 'nothing was counted twice or not at all'
is "$(ask "SELECT count(*) FROM (SELECT key FROM s.hashes UNION ALL SELECT DISTINCT key FROM s.sets UNION ALL SELECT DISTINCT key FROM s.scores) q WHERE key LIKE 'k%' AND kv_type_of('s', key) = 'none' AND NOT EXISTS (SELECT FROM s.keys k WHERE k.key = q.key AND k.expires_at < clock_timestamp())")" 0 'no key has two types'
ok 'much was done' [ "$(ask "SELECT (SELECT count(*) FROM added) > 20 AND (SELECT xact_commit > 200 FROM pg_stat_database WHERE datname = current_database())")" = t ]
is "$(stress_count 40P01 alone)" 0 'transactions of one command did not deadlock'
is "$(stress_others 'ERROR:  42809: WRONGTYPE')" '' 'errors are those of other types, serialization failures and deadlocks of transactions of several commands'
stress_end
