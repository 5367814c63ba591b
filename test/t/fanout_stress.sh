#!/bin/bash
# Many who post, follow and unfollow at once, authors crossing the threshold: walls end as posts and follows give them. First
# each transaction is one statement, and nothing deadlocks; then there are longer ones, with savepoints and rollbacks.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 5
stress_begin dp_fanout_stress 20381
stress_setup <<'SQL'
SELECT collection_create('posts'), collection_create('follows');
SELECT fanout_enable('posts', walls => 'walls', author => 'by', followers => 'follows', follower => 'r', followee => 'a', keep => 5, celebrity_threshold => 6);
SELECT fanout_enable('posts', walls => 'best', author => 'by', followers => 'follows', follower => 'r', followee => 'a', keep => 4, celebrity_threshold => 8, order_by => '{v: -1}');
CREATE SEQUENCE ids CACHE 1000;
SQL

work() {  # work NUMBER TAG
  stress_awk "$1" "$2" '
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
      for (k = 1; k < 20000; k++) {
        printf "%s%s ", level(), one()
        if (tag != "alone") {
          if (r(3) == 1) printf "SAVEPOINT a; %s ROLLBACK TO a; ", one()
          for (n = r(3) - 1; n > 0; n--) printf "%s ", one()
        }
        print r(8) == 1 ? "ROLLBACK;" : "COMMIT;"
      }
    }'
}
stress_run alone $(((seconds + 1) / 2))
ask "SELECT format('# %s violations after single statements', count(*)) FROM pattern_check()"
stress_run mixed $(((seconds + 1) / 2))
ask "SELECT format('# %s posts, %s follows, %s walls, %s with celebrities, last id %s', (SELECT count(*) FROM posts), (SELECT count(*) FROM follows), (SELECT count(*) FROM walls), (SELECT count(*) FROM walls WHERE bson_exists(doc, 'merged.0')), (SELECT last_value FROM ids))"
is "$(cat "$DP_WORK"/errors.* | grep -c 'connection to server was lost')" 0 'the server stands'
is "$(stress_count 40P01 alone)" 0 'single statements do not deadlock'
is "$(ask 'SELECT * FROM pattern_check()')" '' 'the walls are true'
is "$(ask "SELECT q.r, q.fan FROM (SELECT DISTINCT doc -> 'r' AS r, f.fan FROM follows, (VALUES ('walls', 5), ('best', 4)) f (fan, keep)) q
  WHERE ARRAY(SELECT key FROM fanout_timeline('posts', q.r, 5, q.fan)) <> ARRAY(SELECT p._id FROM posts p
    WHERE p.doc -> 'by' IN (SELECT doc -> 'a' FROM follows WHERE doc -> 'r' = q.r)
    ORDER BY CASE WHEN q.fan = 'best' THEN -(p.doc -> 'v')::int END, p._id DESC LIMIT CASE WHEN q.fan = 'best' THEN 4 ELSE 5 END)")" '' 'and timelines the same as in plain SQL'
is "$(stress_others)" '' 'errors are serialization failures and deadlocks'
stress_end
