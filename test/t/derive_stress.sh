#!/bin/bash
# All that is derived, together, on one pair of tables: customers have totals of their orders, of the orders that they brought
# in, and the last ones; orders have the names of both customers; roll-ups count orders by day and along a tree; visits are
# counted in slots and tags are split off. First each transaction is one statement that does not go from a customer to its orders
# (which somebody else may be holding who waits for the customer), and nothing deadlocks; then all of it, with savepoints.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 16
stress_begin dp_derive_stress 20270
stress_setup <<'SQL'
CREATE TABLE bad (what text);
CREATE TABLE visited (customer int, n bigint);
CREATE SEQUENCE ids CACHE 100;
SELECT collection_create('customers'), collection_create('orders'), collection_create('categories');
SELECT tree_enable('categories', parent => 'up', ancestors => 'above', on_delete => 'reparent');
SELECT computed_enable('customers', 'orders', 'customer._id', '{n: {$count: {}}, sum: {$sum: "$x"}, best: {$max: "$amount"}}', name => 'totals'),
       computed_enable('customers', 'orders', 'agent._id', '{brought: {$count: {}}, least: {$min: "$amount"}, mean: {$avg: "$amount"}}', name => 'brought', filter => '{amount: {$lt: 80}}'),
       subset_enable('customers', field => 'recent', source => 'orders', on_field => 'customer._id', order_by => '{at: -1}', keep => 3, fields => '{at: 1, amount: 1}', count_field => 'orders'),
       reference_enable('orders', 'customer', 'customers', live => '{name}', on_delete => 'unset', missing => 'allow'),
       reference_enable('orders', 'agent', 'customers', live => '{name}', on_delete => 'keep', missing => 'allow', refresh => 'deferred'),
       rollup_enable('orders', name => 'by_day', time_field => 'at', levels => '{day,month}', group_by => '{shop}', fields => '{sum: {$sum: "$amount"}, best: {$max: "$amount"}, n: {$count: {}}}'),
       rollup_enable('orders', name => 'by_category', tree => 'categories', group_by => '{category}', fields => '{sum: {$sum: "$amount"}, best: {$max: "$amount"}}'),
       approximation_enable('customers', 'visits', slots => 4),
       outlier_enable('customers', 'tags', 5, keep => 2, chunk => 3);
INSERT INTO categories (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 2 THEN i / 2 END) FROM generate_series(1, 12) i;
INSERT INTO customers (doc) SELECT bson_build('_id', i, 'name', 'c' || i, 'visits', 0) FROM generate_series(1, 12) i;
SQL

work() {
  stress_awk "$1" "$2" '
    function c() { return r(15) }
    function order() { return "bson_build($$_id$$, nextval($$ids$$), $$customer$$, " c() ", $$agent$$, " c() ", $$category$$, " r(14) ", $$shop$$, " r(2) ", $$amount$$, " r(100) ", $$x$$, " rand() "::float8, $$at$$, timestamptz $$2024-01-30$$ + " r(100) " * interval $$1 hour$$)" }
    function some() { return "_id IN (SELECT _id FROM orders WHERE _id > (SELECT last_value FROM ids) * " rand() " ORDER BY _id LIMIT " r(3) " FOR UPDATE)" }
    function one(   w) {
      w = r(tag == "alone" ? 24 : 30)
      if (w <= 5) return "INSERT INTO orders (doc) VALUES (" order() ");"
      if (w <= 7) return "INSERT INTO orders (doc) VALUES (" order() "), (" order() "), (" order() ");"
      if (w == 8) return "INSERT INTO orders (doc) SELECT bson_set(" order() ", $$customer$$, j) FROM generate_series(1, 15) j;"
      if (w <= 11) return "DELETE FROM orders WHERE " some() ";"
      if (w == 12) return "DELETE FROM orders WHERE _id IN (SELECT _id FROM orders WHERE doc -> $$customer._id$$ = " c() " AND (doc -> $$amount$$)::int % 7 = " r(7) - 1 " ORDER BY _id FOR UPDATE);"
      if (w <= 14) return "UPDATE orders SET doc = bson_set(bson_set(doc, $$amount$$, " r(100) "), $$at$$, timestamptz $$2024-01-30$$ + " r(100) " * interval $$1 hour$$) WHERE " some() ";"
      if (w == 15) return "UPDATE orders SET doc = bson_set(doc, $$category$$, " r(14) ") WHERE " some() ";"
      if (w <= 17) return "UPDATE orders SET doc = bson_set(doc, $$" (r(2) == 1 ? "customer" : "agent") "$$, " c() ") WHERE " some() ";"
      if (w == 18) return "UPDATE customers SET doc = bson_update(doc, $${\"$inc\": {n: 3, own: 1}}$$) WHERE _id = " c() ";"
      if (w == 19) { k = r(12); return "WITH v AS (INSERT INTO visited SELECT " k ", 1 FROM customers WHERE _id = " k " FOR KEY SHARE RETURNING 1) SELECT approximation_add($$customers$$, " k ", 1) FROM v;" }
      if (w == 20) return "SELECT outlier_push($$customers$$, _id, nextval($$ids$$)) FROM customers WHERE _id = " r(12) ";"
      if (w == 21) return "UPDATE customers SET doc = bson_array_append(doc, $$tags$$, " r(9) ") WHERE _id = " r(12) ";"
      if (w == 22) return "SELECT reference_refresh($$orders$$);"
      if (w == 23) return "INSERT INTO bad SELECT concat_ws($$ $$, $$" tag "$$, current_setting($$transaction_isolation$$), x) FROM pattern_check($$" (r(3) == 1 ? "orders" : "customers") "$$) x WHERE NOT EXISTS (SELECT FROM docpatterns.notes);"
      if (w == 24) return client == 1 ? "UPDATE categories SET doc = bson_set(doc, $$up$$, " r(12) ") WHERE _id = " r(12) ";" : "SELECT 1;"
      if (w <= 26) return "UPDATE customers SET doc = bson_set(doc, $$name$$, " r(1000) "::text) WHERE _id = " c() ";"
      if (w == 27) return "UPDATE customers SET doc = bson_set(doc, $$name$$, " r(1000) "::text) WHERE _id::int % 5 = " r(5) - 1 ";"
      if (w == 28) return "INSERT INTO customers (doc) VALUES (bson_build($$_id$$, " 12 + r(3) ", $$name$$, $$new$$)) ON CONFLICT (_id) DO UPDATE SET doc = bson_set(customers.doc, $$name$$, $$again$$);"
      if (w == 29) return "DELETE FROM customers WHERE _id = " 12 + r(3) ";"
      return "INSERT INTO categories (doc) VALUES (bson_build($$_id$$, " 12 + r(2) ", $$up$$, " r(12) ")) ON CONFLICT DO NOTHING; DELETE FROM categories WHERE _id = " 12 + r(2) ";"
    }
    BEGIN {
      for (i = 0;; i++) {
        printf "%s%s", level(), one()
        if (tag != "alone") {
          if (r(6) == 1) printf " SAVEPOINT a; %s ROLLBACK TO a;", one()
          if (r(3) == 1) printf " %s", one()
        }
        print r(12) == 1 ? " ROLLBACK;" : " COMMIT;"
      }
    }'
}
stress_run alone $(((seconds + 1) / 2))
stress_run mixed $(((seconds + 1) / 2))
ask "SELECT format('# %s orders of %s, %s visits', count(*), (SELECT last_value FROM ids), (SELECT count(*) FROM visited)) FROM orders"

is "$(stress_count 40P01 alone)" 0 'no transaction of one statement waited for one that waited for it'
is "$(stress_others 'ERROR:  23514.*\|ERROR:  23503.*tree.*')" '' 'errors are serialization failures, and deadlocks of longer transactions'
is "$(ask 'SELECT * FROM bad LIMIT 3')" '' 'the patterns were true at any moment'
ask "SELECT reference_refresh('orders'), approximation_sync('customers')" >/dev/null
is "$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' 'and are true afterwards'
ok 'much was written' [ "$(ask "SELECT count(*) > 50 FROM orders")" = t ]

# the same in plain SQL
is "$(ask "SELECT c._id FROM customers c LEFT JOIN (SELECT doc -> 'customer._id' AS c, count(*) AS n, sum((doc -> 'x')::float8) AS s, max((doc -> 'amount')::int) AS best FROM orders GROUP BY 1) q ON q.c = c._id
  WHERE ((doc -> 'n')::bigint, (doc -> 'best')::int) IS DISTINCT FROM (coalesce(q.n, 0), q.best) OR abs((doc -> 'sum')::float8 - coalesce(q.s, 0)) > 1e-9")" '' 'totals of customers'
is "$(ask "SELECT c._id FROM customers c LEFT JOIN (SELECT doc -> 'agent._id' AS c, count(*) AS n, avg((doc -> 'amount')::int) AS a, min((doc -> 'amount')::int) AS least FROM orders WHERE (doc -> 'amount')::int < 80 GROUP BY 1) q ON q.c = c._id
  WHERE ((doc -> 'brought')::bigint, (doc -> 'least')::int) IS DISTINCT FROM (coalesce(q.n, 0), q.least) OR abs((doc -> 'mean')::float8 - q.a) > 1e-9")" '' 'totals of agents, in the same documents'
is "$(ask "SELECT c._id FROM customers c WHERE doc -> 'recent' IS DISTINCT FROM coalesce((SELECT bson_agg(bson_build('at', q.doc -> 'at', 'amount', q.doc -> 'amount') ORDER BY q.n)
  FROM (SELECT doc, row_number() OVER (ORDER BY doc -> 'at' DESC, _id) AS n FROM orders WHERE doc -> 'customer._id' = c._id) q WHERE q.n <= 3), '[]')")" '' 'their last orders'
is "$(ask "SELECT c._id FROM customers c WHERE (doc ->> 'orders')::int <> (SELECT count(*) FROM orders WHERE doc -> 'customer._id' = c._id)")" '' 'how many they are'
for who in customer agent; do
  is "$(ask "SELECT count(*) FROM orders o JOIN customers c ON c._id = o.doc -> '$who._id' WHERE (o.doc -> '$who.name') IS DISTINCT FROM (c.doc -> 'name')")" 0 "the name of the $who"
done
is "$(ask "SELECT count(*) FROM orders o WHERE (doc -> 'customer') IS NOT NULL AND NOT bson_exists(doc, 'customer._id')")" 0 'no reference is bare'
for level in day month; do
  is "$(ask "SELECT count(*) FROM (SELECT doc -> 'start' AS t, doc -> 'shop' AS shop, doc FROM by_day WHERE doc ->> 'level' = '$level') b
    FULL JOIN (SELECT date_trunc('$level', (doc -> 'at')::timestamptz, 'UTC')::bson_value AS t, doc -> 'shop' AS shop, count(*) AS n, sum((doc -> 'amount')::int) AS s, max((doc -> 'amount')::int) AS best FROM orders GROUP BY 1, 2) q USING (t, shop)
    WHERE ((b.doc -> 'n')::bigint, (b.doc -> 'sum')::bigint, (b.doc -> 'best')::int) IS DISTINCT FROM (q.n, q.s, q.best)")" 0 "orders by $level"
done
is "$(ask "WITH RECURSIVE up AS (SELECT _id AS node, _id AS above FROM categories UNION SELECT DISTINCT doc -> 'category', doc -> 'category' FROM orders
    UNION SELECT u.node, c.doc -> 'up' FROM up u JOIN categories c ON c._id = u.above WHERE (c.doc ->> 'up') IS NOT NULL)
  SELECT count(*) FROM by_category b FULL JOIN (SELECT u.above AS _id, sum((o.doc -> 'amount')::int) AS s, max((o.doc -> 'amount')::int) AS best FROM up u JOIN orders o ON o.doc -> 'category' = u.node GROUP BY 1) q USING (_id)
  WHERE ((b.doc -> 'sum')::bigint, (b.doc -> 'best')::int) IS DISTINCT FROM (q.s, q.best)")" 0 'orders along the tree'
is "$(ask "SELECT c._id, doc -> 'visits' FROM customers c LEFT JOIN (SELECT customer, sum(n) AS n FROM visited GROUP BY 1) v ON v.customer = c._id WHERE c._id <= 12 AND (doc -> 'visits')::bigint <> coalesce(v.n, 0)")" '' 'and visits'
stress_end
