#!/bin/bash
# Many who post, follow and unfollow at once, authors crossing the threshold: walls end as posts and follows give them. First
# each transaction is one statement, and nobody waits in a circle; then there are longer ones, with savepoints and rollbacks.
# SECONDS_OF_WORK and SEED change the run.
. "$DP_TOP/test/env/tap.sh"
set -u
seed=${SEED:-20381} seconds=${SECONDS_OF_WORK:-5} clients=8
plan 5
echo "# seed $seed, $seconds seconds, $clients clients"

export PGDATABASE=dp_fanout_stress PGOPTIONS='-c client_min_messages=warning'
ask() { psql -XqAt -c "$1" 2>&1; }
psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_fanout_stress WITH (FORCE)' -c 'CREATE DATABASE dp_fanout_stress'
psql -XqAt -v ON_ERROR_STOP=1 >/dev/null <<'SQL' || echo 'not ok 0 - the tables were made'
CREATE EXTENSION docpatterns;
SELECT collection_create('posts'), collection_create('follows');
SELECT fanout_enable('posts', walls => 'walls', author => 'by', followers => 'follows', follower => 'r', followee => 'a', keep => 5, celebrity_threshold => 6);
SELECT fanout_enable('posts', walls => 'best', author => 'by', followers => 'follows', follower => 'r', followee => 'a', keep => 4, celebrity_threshold => 8, order_by => '{v: -1}');
CREATE SEQUENCE ids CACHE 1000;
SQL

work() {  # work NUMBER ALONE
  awk -v seed=$((seed + $1)) -v alone="$2" 'function r(n) { return int(rand() * n) + 1 }
    # rows are locked in order by the statements themselves, too
    function of(t, cond) { return "WITH q AS MATERIALIZED (SELECT _id FROM " t " WHERE " cond " ORDER BY _id FOR UPDATE) " }
    function drop(t, cond) { return of(t, cond) "DELETE FROM " t " USING q WHERE " t "._id = q._id;" }
    function change(field, value, cond) { return of("posts", cond) "UPDATE posts SET doc = bson_set(doc, $$" field "$$, " value ") FROM q WHERE posts._id = q._id;" }
    function one(   w) {
      w = r(20)
      if (w <= 6) return "INSERT INTO posts (doc) VALUES (bson_build($$_id$$, nextval($$ids$$), $$by$$, " r(8) ", $$v$$, " r(50) "));"
      if (w <= 8) return "INSERT INTO posts (doc) SELECT bson_build($$_id$$, nextval($$ids$$), $$by$$, (j * 5 + " r(8) ") % 8 + 1, $$v$$, j) FROM generate_series(1, " r(20) ") j;"
      if (w <= 9) return drop("posts", "(doc -> $$v$$)::int % 10 = " r(10) - 1)
      if (w <= 10) return drop("posts", "(doc -> $$by$$) = " r(8) " AND (doc -> $$v$$)::int > " r(50))
      if (w <= 12) return change("by", r(8), "(doc -> $$v$$)::int = " r(50))
      if (w <= 13) return change("v", r(50), "(doc -> $$by$$) = " r(8) " AND (doc -> $$v$$)::int % 7 = " r(7) - 1)
      if (w <= 16) return "INSERT INTO follows (doc) VALUES (bson_build($$_id$$, nextval($$ids$$), $$r$$, " r(12) ", $$a$$, " r(8) "));"
      if (w <= 17) return "INSERT INTO follows (doc) SELECT bson_build($$_id$$, nextval($$ids$$), $$r$$, (j * 7 + " r(12) ") % 12 + 1, $$a$$, j % 8 + 1) FROM generate_series(1, " r(8) ") j;"
      if (w <= 19) return drop("follows", "(doc -> $$a$$) = " r(8) " AND (doc -> $$r$$)::int % 3 = " r(3) - 1)
      return drop("follows", "(doc -> $$r$$) = " r(12))
    }
    BEGIN {
      srand(seed)
      split("READ COMMITTED,READ COMMITTED,REPEATABLE READ", level, ",")
      for (k = 1; k < 20000; k++) {
        printf "BEGIN ISOLATION LEVEL %s; %s ", level[r(3)], one()
        if (!alone) {
          if (r(3) == 1) printf "SAVEPOINT a; %s ROLLBACK TO a; ", one()
          for (n = r(3) - 1; n > 0; n--) printf "%s ", one()
        }
        print r(8) == 1 ? "ROLLBACK;" : "COMMIT;"
      }
    }' | timeout $((seconds / 2 + 1)) psql -XqAt -v VERBOSITY=verbose >/dev/null 2>"$DP_WORK/errors.$2.$1"
}
for alone in 1 0; do
  jobs=
  for i in $(seq $clients); do work "$i" $alone & jobs="$jobs $!"; done
  wait $jobs
  for _ in {1..100}; do
    [ "$(ask "SELECT count(*) FROM pg_stat_activity WHERE datname = 'dp_fanout_stress' AND pid <> pg_backend_pid()")" = 0 ] && break
    sleep 0.1
  done
  [ $alone = 1 ] && ask "SELECT format('# %s violations after single statements', count(*)) FROM pattern_check()"
done
cat "$DP_WORK"/errors.* | grep -o 'ERROR:  .*' | cut -c 1-120 | sort | uniq -c | sort -rn | sed 's/^/# /' | head -20
ask "SELECT format('# %s posts, %s follows, %s walls, %s with celebrities, last id %s', (SELECT count(*) FROM posts), (SELECT count(*) FROM follows), (SELECT count(*) FROM walls), (SELECT count(*) FROM walls WHERE bson_exists(doc, 'merged.0')), (SELECT last_value FROM ids))"
is "$(cat "$DP_WORK"/errors.* | grep -c 'connection to server was lost')" 0 'the server stands'
is "$(cat "$DP_WORK"/errors.1.* | grep 'ERROR:  40P01' | sort | uniq -c)" '' 'single statements do not wait in a circle'
is "$(ask 'SELECT * FROM pattern_check()')" '' 'the walls are true'
is "$(ask "SELECT q.r, q.fan FROM (SELECT DISTINCT doc -> 'r' AS r, f.fan FROM follows, (VALUES ('walls', 5), ('best', 4)) f (fan, keep)) q
  WHERE ARRAY(SELECT key FROM fanout_timeline('posts', q.r, 5, q.fan)) <> ARRAY(SELECT p._id FROM posts p
    WHERE p.doc -> 'by' IN (SELECT doc -> 'a' FROM follows WHERE doc -> 'r' = q.r)
    ORDER BY CASE WHEN q.fan = 'best' THEN -(p.doc -> 'v')::int END, p._id DESC LIMIT CASE WHEN q.fan = 'best' THEN 4 ELSE 5 END)")" '' 'and timelines the same as in plain SQL'
is "$(cat "$DP_WORK"/errors.* | grep 'ERROR:' | grep -v 'ERROR:  40001\|ERROR:  40P01\|ERROR:  25P02\|ERROR:  3B001' | sort | uniq -c | head -5)" '' 'errors are serialization failures and deadlocks'
psql -Xq -d postgres -c 'DROP DATABASE dp_fanout_stress WITH (FORCE)'
