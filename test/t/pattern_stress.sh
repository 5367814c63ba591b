#!/bin/bash
# Many writers at once: nothing is lost, nothing appears twice, and the patterns stay true.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 12
stress_begin dp_pattern_stress 20261
stress_setup <<'SQL'
CREATE TABLE added (rel text, v bigint);
CREATE TABLE removed (rel text, v bigint);
CREATE TABLE bad (what text);
CREATE SEQUENCE s CACHE 100;
SELECT collection_create('a'), collection_create('b'), collection_create('users'), collection_create('orders');
SELECT outlier_enable('a', 'x', 6, keep => 3, chunk => 4);
SELECT outlier_enable('b', 'x', 5, keep => 0, chunk => 3, count_field => 'n', stay => 'last');
SELECT outlier_enable('users', 'o', 2, keep => 1, count_field => 'n', extras => 'orders', on_field => 'u');
INSERT INTO a (doc) SELECT bson_build('_id', i, 'x', bson_array()) FROM generate_series(1, 10) i;
INSERT INTO b (doc) SELECT bson_build('_id', i, 'x', bson_array()) FROM generate_series(1, 10) i;
INSERT INTO users (doc) SELECT bson_build('_id', i, 'o', bson_array()) FROM generate_series(1, 10) i;

-- What is not one statement: the row is locked first, so that what is noted is what happens.
CREATE FUNCTION pull(rel regclass, k int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE w bson_value; d bson;
BEGIN
  EXECUTE format('SELECT doc FROM %s WHERE _id = $1 FOR UPDATE', rel) INTO d USING k;
  IF d IS NULL THEN RETURN; END IF;
  SELECT value INTO w FROM outlier_page(rel, k, (random() * outlier_count(rel, k))::int, 1);
  IF w IS NOT NULL THEN
    INSERT INTO removed SELECT rel::text, w::bigint FROM generate_series(1, outlier_pull(rel, k, w));
  END IF;
END $$;
CREATE FUNCTION cut(rel regclass, k int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE d bson;
BEGIN
  EXECUTE format('SELECT doc FROM %s WHERE _id = $1 FOR UPDATE', rel) INTO d USING k;
  IF bson_array_length(d, 'x') > 0 THEN
    INSERT INTO removed VALUES (rel::text, (d -> 'x.0')::bigint);
    EXECUTE format('UPDATE %s SET doc = bson_set(doc, ''x'', coalesce((SELECT bson_agg(e) FROM (SELECT e FROM bson_elements(doc -> ''x'') WITH ORDINALITY AS t (e, i) WHERE i > 1 ORDER BY i) q), bson_array())) WHERE _id = $1', rel) USING k;
  END IF;
END $$;
CREATE FUNCTION renew(rel regclass, k int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE d bson;
BEGIN
  EXECUTE format('SELECT doc FROM %s WHERE _id = $1 FOR UPDATE', rel) INTO d USING k;
  IF d IS NULL THEN RETURN; END IF;
  INSERT INTO removed SELECT rel::text, value::bigint FROM outlier_page(rel, k, 0, 1000000);
  EXECUTE format('DELETE FROM %s WHERE _id = $1', rel) USING k;
  EXECUTE format('INSERT INTO %s (doc) VALUES (bson_build(''_id'', $1, ''x'', bson_array()))', rel) USING k;
END $$;
SQL

# One client's work: whole transactions, one after the other, until the time is over.
work() {  # work NUMBER TAG
  stress_awk "$1" "$2" '
    BEGIN {
      for (i = 0; i < 20000; i++) {
        t = r(2) == 1 ? "a" : "b"; k = r(10); k2 = r(10); u = r(10); u2 = r(10); what = r(20)
        printf "%s", level()
        if (what <= 4) printf "WITH v AS (SELECT nextval($$s$$) v), l AS (INSERT INTO added SELECT $$%s$$, v FROM v) SELECT outlier_push($$%s$$, %d, v) FROM v;", t, t, k
        else if (what <= 8) printf "WITH v AS MATERIALIZED (SELECT nextval($$s$$) v), w AS (UPDATE %s SET doc = bson_array_append(doc, $$x$$, v) FROM v WHERE _id = %d RETURNING v) INSERT INTO added SELECT $$%s$$, v FROM w;", t, k, t
        else if (what == 9) printf "WITH v AS MATERIALIZED (SELECT nextval($$s$$) v), w AS (UPDATE %s_whole SET doc = bson_array_append(doc, $$x$$, v) FROM v WHERE _id = %d RETURNING v) INSERT INTO added SELECT $$%s$$, v FROM w;", t, k, t
        else if (what == 10) printf "SELECT pull($$%s$$, %d);", t, k
        else if (what == 11) printf "SELECT cut($$%s$$, %d);", t, k
        else if (what == 12) printf "SELECT renew($$%s$$, %d);", t, r(40) == 1 ? k : 0
        else if (what == 13) printf "UPDATE %s SET doc = bson_set(doc, $$_id$$, (_id::int + 10) %% 20) WHERE _id = %d;", t, r(20)
        else if (what == 14) printf "UPDATE %s_whole SET doc = bson_set(doc, $$t$$, %d) WHERE _id = %d;", t, i, k
        else if (what <= 16) printf "INSERT INTO orders (doc) SELECT bson_build($$_id$$, nextval($$s$$), $$u$$, u) FROM unnest(ARRAY[%d, %d]) u;", u, u2
        else if (what == 17) printf "UPDATE orders SET doc = bson_set(doc, $$u$$, %d) WHERE _id IN (SELECT _id FROM orders WHERE doc -> $$u$$ = %d LIMIT 1);", u2, u
        else if (what == 18) printf "SELECT outlier_push($$users$$, %d, bson_build($$_id$$, nextval($$s$$)));", u
        else if (what == 19) printf "DELETE FROM orders WHERE _id IN (SELECT _id FROM orders WHERE doc -> $$u$$ = %d LIMIT 1);", u
        else printf "INSERT INTO bad SELECT c::text FROM pattern_check(%s) c WHERE NOT EXISTS (SELECT FROM docpatterns.notes);", r(3) == 1 ? "" : "$$" t "$$"
        print (r(15) == 1 ? "ROLLBACK;" : "COMMIT;")
      }
    }'
}
stress_run all "$seconds"

ask "SELECT format('# %s added, %s removed from %s', count(*), (SELECT count(*) FROM removed r WHERE r.rel = a.rel), rel) FROM added a GROUP BY rel ORDER BY rel"
is "$(ask 'SELECT * FROM pattern_check()')" '' 'the patterns are true afterwards'
is "$(ask 'SELECT * FROM bad LIMIT 5')" '' 'and were at any moment in between'
for t in a b; do
  ok "$t: much was added, and some removed" [ "$(ask "SELECT (SELECT count(*) FROM added WHERE rel = '$t') > 200 AND (SELECT count(*) FROM removed WHERE rel = '$t') > 10")" = t ]
  is "$(ask "SELECT count(*) FROM (SELECT v FROM added WHERE rel = '$t' EXCEPT ALL SELECT v FROM removed WHERE rel = '$t'
    EXCEPT ALL SELECT e::bigint FROM ${t}_whole CROSS JOIN bson_elements(doc -> 'x') e) q")" 0 "$t: nothing is lost"
  is "$(ask "SELECT count(*) FROM (SELECT e::bigint FROM ${t}_whole CROSS JOIN bson_elements(doc -> 'x') e EXCEPT ALL
    (SELECT v FROM added WHERE rel = '$t' EXCEPT ALL SELECT v FROM removed WHERE rel = '$t')) q")" 0 "$t: nothing is there that was not added, or twice"
done
is "$(ask "SELECT sum((doc ->> 'n')::int) = sum(bson_array_length(doc, 'o')) + (SELECT count(*) FROM orders) FROM users")" t 'the counts of users are those of their orders'
is "$(stress_count '23505.*extras')" 0 'no two chunks had one number'
is "$(stress_others 'ERROR:  23505: duplicate key value violates unique constraint "[ab]_pkey"\|ERROR:  P0002')" '' \
  'errors are serialization failures, keys that are taken and documents that are gone'
is "$(stress_count 40P01)" 0 'nobody waited for somebody who waited for him'
stress_end
