#!/bin/bash
# Few rows that come and go, so that documents which derived data makes are deleted and made again all the time: totals of days
# and months, totals along a tree whose nodes move, walls, computed documents, and a single view of two sources. Each transaction
# is one statement. First nobody writes to what is derived, and nothing deadlocks; then documents are deleted by hand, too, and
# stay away until their groups change.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 8
stress_begin dp_derive_churn 20272
stress_setup <<'SQL'
CREATE TABLE bad (what text);
CREATE SEQUENCE ids CACHE 100;
SELECT collection_create('orders'), collection_create('categories'), collection_create('follows'), collection_create('totals'), collection_create('notes'), collection_create('view');
SELECT tree_enable('categories', parent => 'up', ancestors => 'above', on_delete => 'reparent');
SELECT rollup_enable('orders', name => 'by_day', time_field => 'at', levels => '{day,month}', group_by => '{shop}', fields => '{sum: {$sum: "$amount"}, best: {$max: "$amount"}, n: {$count: {}}}'),
       rollup_enable('orders', name => 'by_category', tree => 'categories', group_by => '{category}', fields => '{sum: {$sum: "$amount"}, best: {$max: "$amount"}}'),
       fanout_enable('orders', walls => 'walls', author => 'shop', followers => 'follows', follower => 'r', followee => 'a', keep => 3, celebrity_threshold => 3);
SELECT computed_enable('totals', 'notes', 'on', '{n: {$count: {}}, best: {$max: "$i"}}', create_missing => true),
       polymorphic_merge('view', merge_on => 'on', sources => '{notes,orders}', arrays => '{notes,orders}', fields => '{notes: {i: 1}, orders: {amount: 1}}');
INSERT INTO categories (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 2 THEN i / 2 END) FROM generate_series(1, 12) i;
SQL

work() {
  stress_awk "$1" "$2" '
    function order() { return "bson_build($$_id$$, nextval($$ids$$), $$category$$, " r(14) ", $$shop$$, " r(2) ", $$on$$, " r(6) ", $$amount$$, " r(100) ", $$at$$, timestamptz $$2024-01-30$$ + " r(100) " * interval $$1 hour$$)" }
    function note() { return "bson_build($$_id$$, nextval($$ids$$), $$on$$, " r(6) ", $$i$$, " r(100) ")" }
    function some(t, n) { return "_id IN (SELECT _id FROM " t " WHERE _id > (SELECT last_value FROM ids) * " rand() " ORDER BY _id LIMIT " n " FOR UPDATE)" }
    function one(   w) {
      if (tag == "deleted" && r(3) > 1) {
        w = r(8)
        if (w <= 2) return "INSERT INTO notes (doc) VALUES (" note() ");"
        if (w == 3) return "INSERT INTO notes (doc) VALUES (" note() "), (" note() "), (" note() ");"
        if (w <= 5) return "DELETE FROM notes WHERE " some("notes", 4) ";"
        if (w == 6) return "UPDATE notes SET doc = bson_set(doc, $$on$$, " r(6) ") WHERE " some("notes", r(3)) ";"
        if (w == 7) return "DELETE FROM totals WHERE _id IN (SELECT _id FROM totals ORDER BY _id LIMIT " r(4) " FOR UPDATE);"
        return "DELETE FROM view WHERE doc -> $$on$$ = " r(6) ";"
      }
      w = r(24)
      if (w <= 5) return "INSERT INTO orders (doc) VALUES (" order() ");"
      if (w <= 7) return "INSERT INTO orders (doc) VALUES (" order() "), (" order() "), (" order() ");"
      if (w <= 14) return "DELETE FROM orders WHERE " some("orders", 4) ";"
      if (w == 15) return "UPDATE orders SET doc = bson_set(bson_set(doc, $$amount$$, " r(100) "), $$at$$, timestamptz $$2024-01-30$$ + " r(100) " * interval $$1 hour$$) WHERE " some("orders", r(3)) ";"
      if (w <= 17) return "UPDATE orders SET doc = bson_set(doc, $$category$$, " r(14) ") WHERE " some("orders", r(3)) ";"
      if (w == 18) return "INSERT INTO follows (doc) VALUES (bson_build($$_id$$, nextval($$ids$$), $$r$$, " r(5) ", $$a$$, " r(2) "));"
      if (w == 19) return "DELETE FROM follows WHERE " some("follows", 2) ";"
      if (w <= 22) return "INSERT INTO bad SELECT concat_ws($$ $$, $$" tag "$$, current_setting($$transaction_isolation$$), x) FROM pattern_check($$" (tag == "alone" || r(2) == 1 ? "orders" : r(2) == 1 ? "totals" : "view") "$$) x WHERE x.what <> $$document of the group$$ AND NOT EXISTS (SELECT FROM docpatterns.notes);"
      return client == 1 ? "UPDATE categories SET doc = bson_set(doc, $$up$$, " r(12) ") WHERE _id = " r(12) ";" : "SELECT 1;"
    }
    BEGIN {
      for (i = 0;; i++) {
        printf "%s%s", level(), one()
        print r(12) == 1 ? " ROLLBACK;" : " COMMIT;"
      }
    }'
}
stress_run alone $(((seconds + 1) / 2))
stress_run deleted $(((seconds + 1) / 2))
ask "SELECT format('# %s orders, %s notes of %s', count(*), (SELECT count(*) FROM notes), (SELECT last_value FROM ids)) FROM orders"
is "$(stress_count 40P01 alone)" 0 'nothing deadlocks'
is "$(stress_others 'ERROR:  23514.*\|ERROR:  55000: .*view.*')" '' 'errors are serialization failures, and deadlocks where documents are deleted by hand'
is "$(ask 'SELECT * FROM bad LIMIT 3')" '' 'the patterns were true at any moment'
is "$(ask "SELECT * FROM pattern_check() WHERE what <> 'document of the group' LIMIT 5")" '' 'and are true afterwards'
ok 'much was written' [ "$(ask "SELECT last_value > 500 FROM ids")" = t ]

# the same in plain SQL
is "$(ask "SELECT count(*) FROM by_day b FULL JOIN (SELECT level, date_trunc(level, (doc -> 'at')::timestamptz, 'UTC') AS start, doc -> 'shop' AS shop, count(*) AS n, sum((doc -> 'amount')::int) AS s, max((doc -> 'amount')::int) AS best
      FROM orders, (VALUES ('day'), ('month')) v (level) GROUP BY 1, 2, 3) q ON b.doc ->> 'level' = q.level AND (b.doc -> 'start')::timestamptz = q.start AND b.doc -> 'shop' = q.shop
  WHERE ((b.doc -> 'n')::bigint, (b.doc -> 'sum')::bigint, (b.doc -> 'best')::int) IS DISTINCT FROM (q.n, q.s, q.best)")" 0 'orders by day and month'
is "$(ask "SELECT count(*) FROM (SELECT doc -> 'on' AS o, count(*) AS n, max((doc -> 'i')::int) AS best FROM notes GROUP BY 1) q FULL JOIN totals t ON t._id = q.o
  WHERE (coalesce((t.doc -> 'n')::bigint, 0), (t.doc -> 'best')::int) IS DISTINCT FROM (coalesce(q.n, 0), q.best) AND t._id IS NOT NULL")" 0 'totals of notes, where they have not been deleted'
is "$(ask "SELECT count(*) FROM (SELECT DISTINCT doc -> 'on' AS o FROM notes UNION SELECT DISTINCT doc -> 'on' FROM orders) q FULL JOIN view v ON v.doc -> 'on' = q.o
  WHERE v._id IS NOT NULL AND (coalesce(bson_array_length(v.doc, 'notes'), 0) <> (SELECT count(*) FROM notes n WHERE n.doc -> 'on' = v.doc -> 'on') OR coalesce(bson_array_length(v.doc, 'orders'), 0) <> (SELECT count(*) FROM orders n WHERE n.doc -> 'on' = v.doc -> 'on'))")" 0 'the single view, likewise'
stress_end
