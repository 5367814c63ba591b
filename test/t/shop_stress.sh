#!/bin/bash
# A shop in which every pattern is declared at once, nineteen of them on the table of products: what one keeps is what others look
# at, copy, count, split, record. Old and new applications write to the tables and through all of their views. First each
# transaction is one statement, then there are more, with savepoints. Everything is true at any moment, no increment is lost whichever
# view it was written through, and plain SQL agrees.
. "$DP_TOP/test/env/stress.sh"
. "$DP_TOP/test/env/shop.sh"
set -u
plan 16
stress_begin dp_shop_stress 20291
export PGOPTIONS="$PGOPTIONS -c jit=off"
shop_fill dp_shop_stress
stress_setup <<'SQL'
CREATE TABLE bad (what text);
CREATE TABLE done (what text, id int, n bigint);
CREATE SEQUENCE ids START 100 CACHE 100;
SQL

work() {
  stress_awk "$1" "$2" '
    function p() { return r(14) }
    function s() { return r(8) }                    # one of the products that stay
    function q(name) { return "$$" name "$$" }
    function set(rel, field, value, id) { return "UPDATE " rel " SET doc = bson_set(doc, " q(field) ", " value ") WHERE _id = " id ";" }
    function up(rel, op, field, value, id) { return "UPDATE " rel " SET doc = bson_update(doc, bson_build($$$" op "$$, bson_build(" q(field) ", " value "))) WHERE _id = " id ";" }
    function add(rel, field, id) {                  # one more, and a note of it
      return "WITH u AS (UPDATE " rel " SET doc = bson_set(doc, " q(field) ", coalesce((doc -> " q(field) ")::int, 0) + 1) WHERE _id = " id " RETURNING _id) INSERT INTO done SELECT " q(field) ", _id::int FROM u;"
    }
    function product(id, title) {
      return "bson_build($$_id$$, " id ", " title ", $$new$$, $$kind$$, " (r(2) == 1 ? "$$tool$$, $$volts$$, 12" : "$$book$$, $$pages$$, 1") ", $$maker$$, " r(5) ", $$category$$, " r(8) ", $$spec_a$$, 1, $$sheet$$, $$<p w=\"" r(9) "\"/>$$, $$buyers$$, (SELECT bson_agg(b) FROM generate_series(1, " r(9) ") b), $$manual$$, $$long$$, $$wished_by$$, bson_array(" customer() "), $$stock$$, 50, $$price$$, " r(90) ")"
    }
    function review() { return "bson_build($$_id$$, nextval($$ids$$), $$product$$, " p() ", $$at$$, " r(1000) ", $$stars$$, " r(5) ", $$by$$, " r(7) ")" }
    function order() { return "bson_build($$_id$$, nextval($$ids$$), $$product$$, " p() ", $$customer$$, " customer() ", $$amount$$, " r(50) ", $$at$$, timestamptz $$2024-01-30$$ + " r(100) " * interval $$1 hour$$)" }
    function customer() { return r(12) }
    function some(rel) { return "_id IN (SELECT _id FROM " rel " WHERE _id > (SELECT last_value FROM ids) * " rand() " ORDER BY _id LIMIT " r(3) " FOR UPDATE)" }
    function of_products(   w) {
      w = r(tag == "alone" ? 18 : 25)
      if (w == 1) return add("products", "in_table", s())
      if (w == 2) return add("products_v1", "in_old", s())
      if (w == 3) return add("products_current", "in_current", s())
      if (w == 4) return add("products_wide", "spec_n", s())
      if (w == 5) return add("products_whole", "in_whole", s())
      if (w == 6) return add("products_book", "in_book", s())
      if (w == 7) { k = s(); return "WITH v AS (INSERT INTO done SELECT $$views$$, " k " FROM products WHERE _id = " k " FOR KEY SHARE RETURNING 1) SELECT approximation_add($$products$$, " k ", 1, name => $$views$$) FROM v;" }
      if (w == 8) { k = s(); return "WITH v AS (INSERT INTO done VALUES ($$buyers$$, " k ") RETURNING 1) SELECT outlier_push($$products$$, " k ", nextval($$ids$$)) FROM v;" }
      if (w == 9) return set("products", "stock", r(100), p())
      if (w == 10) return set("products_whole", "manual", "repeat($$long$$, " r(9) ")", p())
      if (w == 11) return set("products", "sheet", "$$<p w=\"" r(99) "\">$$ || repeat($$.$$, " r(200) ") || $$</p>$$", p())
      if (w == 12) return set("products", "maker", r(5), p())
      if (w == 13) return set("products", "category", r(8), p())
      if (w == 14) return set("products_v1", "name", "$$n" r(99) "$$", p())
      if (w == 15) return set("products_tool", "volts", r(3) - 1, p())
      if (w == 16) return "SELECT schema_versioning_read($$products$$, " p() ");"
      if (w <= 18) return "SELECT doc FROM products_whole WHERE _id = " p() "; SELECT doc FROM products_wide WHERE _id = " p() ";"
      if (w == 19) return set("products_whole", "buyers", "(SELECT bson_agg(b) FROM generate_series(1, " r(12) ") b)", 8 + r(6))
      if (w == 20) return up("products", "unset", (r(2) == 1 ? "notes" : "manual"), "1", 8 + r(6))
      if (w == 21) return "SELECT count(*), count(outlier_pull($$products$$, _id, " r(9) ")) FROM products WHERE _id = " 8 + r(6) ";"
      if (w == 22) return "INSERT INTO products (doc) VALUES (" product(8 + r(6), "$$schema_version$$, 2, $$title$$") ") ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;"
      if (w == 23) return "INSERT INTO products (doc) VALUES (" product(8 + r(6), "$$name$$") ") ON CONFLICT (_id) DO UPDATE SET doc = bson_set(products.doc, $$price$$, EXCLUDED.doc -> $$price$$);"
      if (w == 24) return "INSERT INTO products_" (r(2) == 1 ? "v1" : "whole") " (doc) VALUES (" product(8 + r(6), "$$name$$") ");"
      return "DELETE FROM products" substr("      _whole_v1   _wide ", 6 * r(4) - 5, 6) " WHERE _id = " 8 + r(6) ";"
    }
    function of_sources(   w) {
      w = r(14)
      if (w == 14) return "INSERT INTO follows (doc) VALUES (bson_build($$_id$$, nextval($$ids$$), $$reader$$, " r(5) ", $$writer$$, " r(7) "));"
      if (w == 13) return "DELETE FROM follows WHERE " some("follows") ";"
      if (w <= 2) return "INSERT INTO reviews (doc) VALUES (" review() ");"
      if (w == 3) return "INSERT INTO reviews (doc) VALUES (" review() "), (" review() "), (" review() ");"
      if (w == 4) return "DELETE FROM reviews WHERE " some("reviews") ";"
      if (w == 5) return "UPDATE reviews SET doc = bson_set(doc, $$product$$, " p() ") WHERE " some("reviews") ";"
      if (w == 6) return "UPDATE reviews SET doc = bson_set(doc, $$at$$, " r(1000) ") WHERE " some("reviews") ";"
      if (w <= 8) return "INSERT INTO orders (doc) VALUES (" order() ");"
      if (w == 9) return "INSERT INTO orders (doc) VALUES (" order() "), (" order() "), (" order() ");"
      if (w == 10) return "DELETE FROM orders WHERE " some("orders") ";"
      if (w == 11) return "UPDATE orders SET doc = bson_set(doc, $$" (r(2) == 1 ? "product" : "customer") "$$, " r(12) ") WHERE " some("orders") ";"
      return "UPDATE orders SET doc = bson_set(bson_set(doc, $$amount$$, " r(50) "), $$at$$, timestamptz $$2024-01-30$$ + " r(100) " * interval $$1 hour$$) WHERE " some("orders") ";"
    }
    function of_others(   w) {
      w = r(23)
      if (w == 21) return "SELECT outlier_push_into($$customers$$, $$coupons$$, " customer() - 1 ", bson_build($$_id$$, nextval($$ids$$)));"
      if (w == 22) return "SELECT approximation_add($$pages$$, " r(3) ", 1, name => $$hits$$);"
      if (w == 23) return "SELECT count(*) FROM fanout_timeline($$reviews$$, " r(5) "); SELECT doc FROM customers_written_view WHERE _id = " customer() ";"
      if (w == 1) return set("customers", "points", r(1000), customer())
      if (w == 2) return set("customers_wide", "contact_" substr("abc", r(3), 1), r(100), customer())
      if (w == 3) return up("customers", (r(2) == 1 ? "addToSet" : "pull"), "wishes", s(), customer())
      if (w == 4) return set("billing", "balance", r(1000), r(15))
      if (w == 5) return set("billing", "email", "$$e" r(15) "$$", r(15))
      if (w == 6) return "INSERT INTO billing (doc) VALUES (bson_build($$_id$$, " 15 + r(3) ", $$email$$, $$e" r(18) "$$)) ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;"
      if (w == 7) return "DELETE FROM billing WHERE _id = " 15 + r(3) ";"
      if (w == 8) return up("prices", "inc", "price", 1, r(10))
      if (w <= 10) return "SELECT preallocated_" (r(3) == 1 ? "release(" : r(2) == 1 ? "confirm(" : "claim(hold_for => $$" r(20) " ms$$, ") "rel => $$screenings$$, key => " r(3) ", slots => ARRAY[$$A" r(6) "$$, $$B" r(6) "$$], holder => $$h" r(3) "$$);"
      if (w == 11) return set("screenings", "title", r(1000), r(3))
      if (w == 12) return "INSERT INTO telemetry SELECT " r(3) ", timestamptz $$2024-01-30$$ + " r(10000) " * interval $$1 minute$$, 1 FROM generate_series(1, " r(9) ");"
      if (w == 13) return "SELECT bucket_pack($$telemetry$$);"
      if (w == 14) return "SELECT single_table_put($$app$$, $$cart$$, bson_build($$user$$, " r(3) ", $$cart$$, " r(5) ", $$status$$, $$s" r(3) "$$));"
      if (w == 15) return "SELECT single_table_delete($$app$$, $$USER#" r(3) "$$, $$CART#" r(5) "$$);"
      if (w == 16) return "SELECT kv_hset($$sessions$$, $$user:" r(5) "$$, $$page$$, " r(10) "), kv_zincrby($$sessions$$, $$seen$$, 1, $$page" r(9) "$$);"
      if (w == 17) return "SELECT kv_expire($$sessions$$, $$user:" r(5) "$$, " r(2) - 1 ");"
      if (w == 18) return "INSERT INTO catalog (doc) VALUES (bson_build($$_id$$, " r(12) ", $$docType$$, " (r(3) == 1 ? "$$page$$" : "$$note$$, $$relatedTo$$, bson_array(" r(6) ")") ")) ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;"
      if (w == 19) return "DELETE FROM catalog WHERE _id = " r(12) ";"
      return "SELECT kv_zrange($$sessions$$, $$seen$$, 0, 3);"
    }
    function of_many(   w) {                        # what goes from a source to those that copy it, and whole tables
      w = r(16)
      if (w <= 2) return set("makers", "name", "$$m" r(99) "$$", r(5))
      if (w == 3) return "INSERT INTO makers (doc) VALUES (bson_build($$_id$$, 5, $$name$$, $$five$$)) ON CONFLICT DO NOTHING;"
      if (w == 4) return "DELETE FROM makers WHERE _id = 5;"
      if (w <= 6) return set("customers", (r(2) == 1 ? "name" : "address"), "$$c" r(99) "$$", customer())
      if (w == 7) return set("customers", "email", "$$e" r(15) "$$", customer())
      if (w == 8) return client == 1 ? set("categories", "up", r(8), r(8)) : set("categories", "name", r(8), r(8))
      if (w == 9) return set("products", "kind", (r(2) == 1 ? "$$tool$$" : "$$book$$"), p())
      if (w == 10) return set("products", "_id", 8 + r(6), 8 + r(6))
      if (w == 11) return "CALL schema_versioning_migrate($$products$$, batch => NULL" (r(3) == 1 ? ", target => 1" : "") ");"
      if (w == 12) return "SELECT versioning_revert($$products$$, " 8 + r(6) ", " r(6) ");"
      if (w == 13) return up("products", (r(2) == 1 ? "addToSet" : "pull"), "wished_by", customer(), p())
      if (w == 14) return "SELECT reference_refresh($$orders$$), computed_refresh($$customers$$);"
      if (w == 15) return "SELECT approximation_sync($$products$$, $$views$$);"
      return r(20) == 1 ? "DELETE FROM " (r(2) == 1 ? "reviews;" : "orders;") : "SELECT kv_purge($$sessions$$);"
    }
    function one(   w) {
      w = r(tag == "alone" ? 10 : 12)
      return w <= 5 ? of_products() : w <= 7 ? of_sources() : w <= 10 ? of_others() : of_many()
    }
    # in a transaction of its own: one that has written sees, from REPEATABLE READ on, what it derived from rows newer than its snapshot
    function check() {
      return "INSERT INTO bad SELECT concat_ws($$ $$, $$" tag "$$, current_setting($$transaction_isolation$$), x) FROM pattern_check($$" (r(2) == 1 ? "products" : r(2) == 1 ? "orders" : "customers") "$$) x WHERE NOT EXISTS (SELECT FROM docpatterns.notes);"
    }
    BEGIN {
      for (i = 0;; i++) {
        if (r(50) == 1) { print level() check() " COMMIT;"; continue }
        printf "%s%s", level(), one()
        if (tag != "alone") {
          if (r(6) == 1) printf " SAVEPOINT a; %s ROLLBACK TO a;", one()
          if (r(3) == 1) printf " %s", one()
        }
        print r(12) == 1 ? " ROLLBACK;" : " COMMIT;"
      }
    }'
}
stress_run alone $((seconds / 2))
stress_run mixed $((seconds - seconds / 2))
ask "SELECT format('# %s increments; %s revisions and %s changes of products', (SELECT count(*) FROM done), (SELECT count(*) FROM products_revisions), (SELECT count(*) FROM products_feed))"
is "$(stress_count 40P01 alone)" 0 'no transaction of one statement waited for one that waited for it'
is "$(ask 'SELECT * FROM bad LIMIT 3')" '' 'the patterns were true at any moment'
ask "SELECT reference_refresh('orders'), computed_refresh('customers')" >/dev/null
is "$(shop_wrong | psql -XqAt 2>&1)" '' 'and are true afterwards, as plain SQL says'
is "$(stress_others 'ERROR:  23505: \(duplicate key value violates unique constraint "products_pkey"\|table "\(billing\|customers\)" has more than one document\)\|ERROR:  23503: .*table "\(catalog\|products\)"\|ERROR:  23514: document is not valid for variant\|ERROR:  23514: .*node.* of table "categories"\|ERROR:  22023: \(document [0-9]* of table "products" has no revision\|there is no document in revision\)\|ERROR:  P0002: table "products" has no document')" '' \
  'errors are serialization failures, deadlocks, and refusals that are meant'
ok 'much was written' [ "$(ask 'SELECT count(*) > 20 FROM done')" = t ]

# Transactions that must succeed, and are tried until they do
is "$(stress_retry $(((seconds + 1) / 2)) <<'SQL'
WITH u AS (UPDATE products SET doc = bson_set(doc, 'in_table', coalesce((doc -> 'in_table')::int, 0) + 1) WHERE _id = :a RETURNING _id) INSERT INTO done SELECT 'in_table', _id::int FROM u; UPDATE prices SET doc = bson_update(doc, '{$inc: {price: 1}}') WHERE _id = :a;
WITH u AS (UPDATE products_v1 SET doc = bson_set(doc, 'in_old', coalesce((doc -> 'in_old')::int, 0) + 1) WHERE _id = :a RETURNING _id) INSERT INTO done SELECT 'in_old', _id::int FROM u; UPDATE products_v1 SET doc = bson_set(doc, 'name', 'n:d') WHERE _id = :a;
WITH u AS (UPDATE products_whole SET doc = bson_set(bson_set(doc, 'in_whole', coalesce((doc -> 'in_whole')::int, 0) + 1), 'manual', 'm:d') WHERE _id = :a RETURNING _id) INSERT INTO done SELECT 'in_whole', _id::int FROM u;
WITH u AS (UPDATE products_wide SET doc = bson_set(doc, 'spec_n', coalesce((doc -> 'spec_n')::int, 0) + 1) WHERE _id = :a RETURNING _id) INSERT INTO done SELECT 'spec_n', _id::int FROM u; SAVEPOINT s; UPDATE products_wide SET doc = bson_set(doc, 'spec_n', 0) WHERE _id = 1 + :c % 8; ROLLBACK TO s;
INSERT INTO done VALUES ('views', :a); SELECT approximation_add('products', :a, 1, name => 'views'); INSERT INTO done VALUES ('buyers', :a); SELECT outlier_push('products', :a, nextval('ids'));
INSERT INTO products (doc) SELECT bson_build('_id', nextval('ids'), 'name', 'n', 'kind', 'book', 'pages', :c, 'maker', 1 + :c % 5, 'category', :a, 'spec_a', 1, 'sheet', '<p w=":c"/>', 'buyers', (SELECT bson_agg(b) FROM generate_series(1, :a) b), 'manual', 'm', 'wished_by', bson_array(:b - 1), 'stock', 5, 'price', :c); UPDATE products SET doc = bson_set(doc, 'price', :d) WHERE _id = :a;
DELETE FROM products WHERE _id IN (SELECT _id FROM products WHERE _id > 100 ORDER BY _id LIMIT 2 FOR UPDATE SKIP LOCKED); UPDATE products SET doc = bson_set(bson_set(doc, 'category', 1 + :c % 8), 'maker', 1 + :d % 4) WHERE _id = :a;
UPDATE products SET doc = bson_set(bson_set(doc, 'sheet', '<p w=":d"/>'), 'stock', :d) WHERE _id = :a; SELECT schema_versioning_read('products', :a);
INSERT INTO reviews (doc) SELECT bson_build('_id', nextval('ids'), 'product', :a, 'at', :d + i, 'stars', 1, 'by', 1 + :c % 7) FROM generate_series(1, 3) i; DELETE FROM reviews WHERE _id IN (SELECT _id FROM reviews ORDER BY _id LIMIT 2 FOR UPDATE SKIP LOCKED);
UPDATE reviews SET doc = bson_set(bson_set(doc, 'product', :a), 'at', :d) WHERE _id IN (SELECT _id FROM reviews ORDER BY _id DESC LIMIT 2 FOR UPDATE SKIP LOCKED); INSERT INTO follows (doc) VALUES (bson_build('_id', nextval('ids'), 'reader', :b % 5, 'writer', :a % 7)); DELETE FROM follows WHERE _id = (SELECT min(_id) FROM follows);
INSERT INTO orders (doc) SELECT bson_build('_id', nextval('ids'), 'product', :a, 'customer', :b - 1, 'amount', :c, 'at', timestamptz '2024-01-30 00:00Z' + :d * i * interval '1 minute') FROM generate_series(1, 3) i; UPDATE orders SET doc = bson_set(doc, 'amount', :d) WHERE _id IN (SELECT _id FROM orders ORDER BY _id LIMIT 2 FOR UPDATE SKIP LOCKED);
DELETE FROM orders WHERE _id IN (SELECT _id FROM orders ORDER BY _id LIMIT 4 FOR UPDATE SKIP LOCKED); SELECT kv_zincrby('sessions', 'seen', 1, 'page:a'), kv_hset('sessions', 'user::b', 'page', :c);
UPDATE customers SET doc = bson_set(bson_set(bson_set(doc, 'name', 'c:d'), 'points', :d), 'email', 'u' || nextval('ids')) WHERE _id = :b - 1; UPDATE makers SET doc = bson_set(doc, 'name', 'm:d') WHERE _id = 1 + :c % 4;
UPDATE customers SET doc = bson_update(doc, '{$addToSet: {wishes: :a}}') WHERE _id = :b - 1; UPDATE customers_wide SET doc = bson_set(doc, 'contact_a', :c) WHERE _id = :c % 12; UPDATE products SET doc = bson_update(doc, '{$pull: {wished_by: :b}}') WHERE _id = :a;
UPDATE billing SET doc = bson_set(bson_set(doc, 'balance', :d), 'email', 'v' || nextval('ids')) WHERE _id = :b; SELECT outlier_push_into('customers', 'coupons', :b - 1, bson_build('_id', nextval('ids'))); INSERT INTO telemetry SELECT :a, timestamptz '2024-02-01 00:00Z' + :d * i * interval '1 minute', 1 FROM generate_series(1, 5) i;
SELECT preallocated_claim('screenings', 1 + :c % 3, ARRAY['B' || 1 + :a % 6], 'h:b'), preallocated_release('screenings', 1 + :c % 3, ARRAY['B' || 1 + :d % 6], 'h:b'); UPDATE screenings SET doc = bson_set(doc, 'title', 't:d') WHERE _id = 1 + :c % 3; SELECT single_table_put('app', 'cart', bson_build('user', :a, 'cart', :b, 'status', 's:c'));
UPDATE categories SET doc = bson_set(doc, 'name', 'k:d') WHERE _id = :a; INSERT INTO catalog (doc) VALUES (bson_build('_id', nextval('ids'), 'docType', 'page')); SELECT approximation_add('pages', 1 + :c % 3, 1, name => 'hits'); SELECT reference_refresh('orders'), computed_refresh('customers');
SQL
)" '' 'transactions of all levels succeed when they are repeated'
ask "SELECT reference_refresh('orders'), computed_refresh('customers')" >/dev/null
is "$(shop_wrong | psql -XqAt 2>&1)" '' 'and what is kept is true'
is "$(shop_missing dp_shop_stress)" '' 'every pattern was there'

# what was written, and through which view
lost() {  # lost FIELD EXPRESSION RELATION
  ask "SELECT d._id, $2, n FROM (SELECT generate_series(1, 8) AS id) i LEFT JOIN (SELECT id, count(*) AS n FROM done WHERE what = '$1' GROUP BY 1) w USING (id) LEFT JOIN $3 d ON d._id = i.id WHERE ($2)::bigint IS DISTINCT FROM coalesce(n, 0)"
}
for field in in_table in_old in_current in_whole in_book; do
  is "$(lost $field "coalesce((doc -> '$field')::int, 0)" products)" '' "no increment is lost: $field"
done
is "$(lost spec_n "coalesce((doc -> 'spec_n')::int, 0)" products_wide)" '' 'nor one of a packed attribute'
is "$(lost views "(doc -> 'views')::int" products_whole)" '' 'nor one that slots counted'
is "$(lost buyers "coalesce(bson_array_length(doc, 'buyers'), 0)" products_whole)" '' 'nor a buyer'

stress_end
