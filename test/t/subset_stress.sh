#!/bin/bash
# Many writers on few documents: the arrays end as the true first rows, the counts are right, and nobody waits for somebody who
# waits for him.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 7
stress_begin dp_subset_stress 20262
stress_setup <<'SQL'
CREATE TABLE bad (what text);
SELECT collection_create('products'), collection_create('reviews');
SELECT subset_enable('products', field => 'plain', source => 'reviews', on_field => 'p', order_by => '{r: -1}', keep => 3, fields => '{r: 1, t: 1}');
SELECT subset_enable('products', field => 'counted', source => 'reviews', on_field => 'p', order_by => '{r: 1}', keep => 4, filter => '{t: {$lt: 50}}', count_field => 'n');
SELECT subset_enable('products', field => 'later', source => 'reviews', on_field => 'q', order_by => '{t: 1, r: -1}', keep => 2, count_field => 'm', count_mode => 'deferred');
INSERT INTO products (doc) SELECT bson_build('_id', i) FROM generate_series(1, 6) i;
INSERT INTO reviews (doc) SELECT bson_build('_id', i, 'p', i % 7, 'q', i % 5, 'r', i % 60, 't', i % 100) FROM generate_series(1, 200) i;
CREATE SEQUENCE s START 1000 CACHE 50;
SQL

work() {  # work NUMBER TAG: transactions of one statement only, or of one and more
  stress_awk "$1" "$2" '
    function row() { return sprintf("bson_build($$_id$$, nextval($$s$$), $$p$$, %d, $$q$$, %d, $$r$$, %d, $$t$$, %d)", r(7), r(7), r(60), r(100)) }
    function some() { return sprintf("_id = (SELECT _id FROM reviews WHERE _id > %d ORDER BY _id LIMIT 1)", r(1200)) }
    BEGIN {
      for (i = 0; i < 20000; i++) {
        what = r(20); single = tag == "alone" || r(2) > 1
        printf "%s", level()
        for (n = single ? 1 : r(3); n > 0; n--) {
          if (!single) printf "SAVEPOINT a;"
          if (what <= 7) printf "INSERT INTO reviews (doc) VALUES (%s);", row()
          else if (what <= 9) printf "INSERT INTO reviews (doc) VALUES (%s), (%s), (%s);", row(), row(), row()
          else if (what <= 13) printf "DELETE FROM reviews WHERE %s;", some()
          else if (what <= 15) printf "UPDATE reviews SET doc = bson_set(doc, $$r$$, %d) WHERE %s;", r(60), some()
          else if (what == 16) printf "UPDATE reviews SET doc = bson_set(bson_set(doc, $$p$$, %d), $$q$$, %d) WHERE %s;", r(7), r(7), some()
          else if (what == 17) printf "UPDATE products SET doc = bson_set(doc, $$x$$, %d) WHERE _id = %d;", i, r(6)
          else if (what == 18 && r(5) == 1) printf "DELETE FROM products WHERE _id = %d;", r(7)
          else if (what == 19 && r(3) == 1) printf "INSERT INTO products (doc) VALUES (bson_build($$_id$$, %d)) ON CONFLICT DO NOTHING;", r(7)
          else if (what == 20 && r(4) == 1) printf "SELECT subset_refresh($$products$$, $$later$$);"
          else if (what == 20) printf "INSERT INTO bad SELECT c::text FROM pattern_check($$products$$) c WHERE NOT EXISTS (SELECT FROM docpatterns.notes);"
          if (!single && r(4) == 1) printf "ROLLBACK TO a;"
          what = r(17)
        }
        print (r(15) == 1 ? "ROLLBACK;" : "COMMIT;")
      }
    }'
}
stress_run alone $(((seconds + 1) / 2))
stress_run mixed $(((seconds + 1) / 2))
ask "SELECT format('# %s rows, last %s', count(*), (SELECT last_value FROM s)) FROM reviews"

is "$(ask 'SELECT * FROM pattern_check()')" '' 'the patterns are true afterwards'
is "$(ask 'SELECT * FROM bad LIMIT 5')" '' 'and were at any moment in between'
is "$(ask "SELECT doc -> '_id' FROM products b WHERE doc -> 'plain' IS DISTINCT FROM coalesce((SELECT bson_agg(bson_build('r', q.doc -> 'r', 't', q.doc -> 't') ORDER BY q.n)
    FROM (SELECT doc, row_number() OVER (ORDER BY doc -> 'r' DESC, _id) AS n FROM reviews WHERE doc -> 'p' = b._id) q WHERE q.n <= 3), '[]')")" '' 'plain SQL finds the same first rows'
is "$(ask "SELECT doc -> '_id' FROM products b WHERE (doc ->> 'n')::int <> (SELECT count(*) FROM reviews WHERE doc -> 'p' = b._id AND (doc ->> 't')::int < 50)")" '' 'and the same counts'
ok 'much was written' [ "$(ask 'SELECT last_value > 1200 FROM s')" = t ]
is "$(stress_others)" '' 'errors are serialization failures'
is "$(stress_count 40P01 alone)" 0 'no transaction of one statement waited for one that waited for it'
stress_end
