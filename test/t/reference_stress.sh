#!/bin/bash
# Many writers at once on documents that name others: no copy is stale afterwards, nothing names what is gone, and no statement
# of its own transaction meets a deadlock.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 7
stress_begin dp_reference_stress 20267
stress_setup <<'SQL'
CREATE TABLE bad (what text);
SELECT collection_create('firms'), collection_create('users'), collection_create('posts');
SELECT reference_enable('users', 'firm', 'firms', live => '{name}', frozen => '{city}', on_delete => 'unset', missing => 'allow');
SELECT reference_enable('posts', 'author', 'users', live => '{name,firm.name}');
SELECT reference_enable('posts', 'comments.by', 'users', live => '{name}', on_delete => 'cascade');
SELECT reference_enable('posts', 'likes', 'users', live => '{name}', on_delete => 'unset', refresh => 'deferred');
INSERT INTO firms (doc) SELECT bson_build('_id', i, 'name', 'firm' || i, 'city', 'city' || i) FROM generate_series(1, 5) i;
INSERT INTO users (doc) SELECT bson_build('_id', i, 'name', 'user' || i, 'firm', i % 5 + 1) FROM generate_series(1, 20) i;
INSERT INTO posts (doc) SELECT bson_build('_id', i, 'author', i % 20 + 1, 'comments', bson_array(bson_build('by', i % 7 + 1)), 'likes', bson_array(i % 3 + 1)) FROM generate_series(1, 60) i;
SQL

# One client's work: transactions, most of one statement, until the time is over.
work() {  # work NUMBER TAG
  stress_awk "$1" "$2" '
    BEGIN {
      for (i = 0; i < 20000; i++) {
        what = r(24); u = r(20); v = r(20); p = r(60); f = r(5); one = r(4) > 1
        if (one) printf "SET default_transaction_isolation = $$%s$$;", r(3) == 1 ? "repeatable read" : "read committed"
        else printf "BEGIN ISOLATION LEVEL %s;", r(3) == 1 ? "REPEATABLE READ" : "READ COMMITTED"
        if (!one && r(3) == 1) printf "SAVEPOINT s; UPDATE users SET doc = bson_set(doc, $$name$$, $$undone$$) WHERE _id = %d; ROLLBACK TO s;", r(20)
        if (what <= 5) printf "UPDATE users SET doc = bson_set(doc, $$name$$, $$u%d.%d$$) WHERE _id = %d;", client, i, u
        else if (what <= 7) printf "UPDATE firms SET doc = bson_set(bson_set(doc, $$name$$, $$f%d.%d$$), $$city$$, %d) WHERE _id = %d;", client, i, i, f
        else if (what <= 10) printf "INSERT INTO posts (doc) VALUES (bson_build($$_id$$, %d, $$author$$, %d, $$comments$$, bson_array(bson_build($$by$$, %d), bson_build($$by$$, %d)), $$likes$$, bson_array(%d))) ON CONFLICT (_id) DO UPDATE SET doc = bson_set(EXCLUDED.doc, $$again$$, true);", 60 + r(60), u, v, r(20), r(20)
        else if (what <= 12) printf "UPDATE posts SET doc = bson_set(doc, $$author$$, %d) WHERE _id = %d;", u, p
        else if (what <= 14) printf "UPDATE posts SET doc = bson_array_append(doc, $$comments$$, bson_build($$by$$, %d)) WHERE _id = %d;", u, p
        else if (what == 15) printf "UPDATE posts SET doc = bson_array_append(doc, $$likes$$, %d) WHERE _id = %d;", u, p
        else if (what == 16) printf "UPDATE posts SET doc = bson_set(bson_set(doc, $$author.name$$, $$forged$$), $$title$$, %d) WHERE _id IN (%d, %d);", i, p, r(60)
        else if (what == 17) printf "UPDATE users SET doc = bson_set(doc, $$firm$$, %d) WHERE _id = %d;", r(7), u
        else if (what == 18) printf "DELETE FROM posts WHERE _id = %d;", 60 + r(60)
        else if (what == 19) printf "DELETE FROM users WHERE _id = %d;", 20 + r(10)
        else if (what == 20) printf "INSERT INTO users (doc) VALUES (bson_build($$_id$$, %d, $$name$$, $$n%d$$, $$firm$$, %d)) ON CONFLICT DO NOTHING;", 20 + r(10), i, r(7)
        else if (what == 21) printf "UPDATE posts SET doc = bson_set(doc, $$comments$$, bson_array(bson_build($$by$$, %d))) WHERE _id = %d;", 20 + r(10), p
        else if (what == 22) printf "DELETE FROM firms WHERE _id = %d; INSERT INTO firms (doc) VALUES (bson_build($$_id$$, %d, $$name$$, $$again$$)) ON CONFLICT DO NOTHING;", 5 + r(2), 5 + r(2)
        else if (what == 23) printf "SELECT reference_refresh($$posts$$);"
        else printf "INSERT INTO bad SELECT concat_ws($$ $$, current_setting($$transaction_isolation$$), c, (SELECT p.doc FROM posts p WHERE p._id = c.key), (SELECT u.doc FROM users u WHERE c.expected = $$the field of $$ || u._id)) FROM pattern_check() c WHERE NOT EXISTS (SELECT FROM docpatterns.notes);"
        print one ? "" : (r(10) == 1 ? "ROLLBACK;" : "COMMIT;")
      }
    }'
}
stress_run all "$seconds"
ask "SELECT '# ' || n_tup_ins + n_tup_upd + n_tup_del || ' rows of ' || relname || ' were written' FROM pg_stat_user_tables WHERE relname IN ('firms', 'users', 'posts') ORDER BY relname"

is "$(ask 'SELECT * FROM pattern_check()')" '' 'the patterns are true afterwards'
is "$(ask 'SELECT * FROM bad LIMIT 5')" '' 'and were at any moment in between'
is "$(ask "SELECT count(*) FROM posts p JOIN users u ON u._id = p.doc -> 'author._id'
  WHERE (p.doc -> 'author.name') IS DISTINCT FROM (u.doc -> 'name') OR (p.doc -> 'author.firm.name') IS DISTINCT FROM (u.doc -> 'firm.name')")" 0 'authors are as plain SQL joins them'
is "$(ask "SELECT count(*) FROM posts p CROSS JOIN LATERAL bson_elements(p.doc -> 'comments') c LEFT JOIN users u ON u._id = c -> 'by._id'
  WHERE (c -> 'by.name') IS DISTINCT FROM (u.doc -> 'name')")" 0 'so are the authors of comments'
is "$(ask "SELECT count(*) FROM users u JOIN firms f ON f._id = u.doc -> 'firm._id' WHERE (u.doc -> 'firm.name') IS DISTINCT FROM (f.doc -> 'name')")" 0 'and the firms of users'
ask "SELECT reference_refresh('posts')" >/dev/null
is "$(ask "SELECT count(*) FROM posts p CROSS JOIN LATERAL bson_elements(p.doc -> 'likes') c LEFT JOIN users u ON u._id = c -> '_id'
  WHERE (c -> 'name') IS DISTINCT FROM (u.doc -> 'name')")" 0 'refreshed, the deferred ones too'
is "$(stress_count XX)" 0 'nobody met an internal error'
stress_end
