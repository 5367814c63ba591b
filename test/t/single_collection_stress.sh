#!/bin/bash
# Many writers at once on single collections: nothing dangles at any moment, whatever is deleted or gets another id.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 6
stress_begin dp_single_collection_stress 20269
stress_setup <<'SQL'
CREATE TABLE bad (what text);
SELECT collection_create('catalog'), collection_create('loose'), collection_create('keyed');
SELECT single_collection_enable('catalog', id_fields => '{book: "bookId", user: "userId"}', self_related => '{book}', on_delete => 'cascade', views => false);
SELECT single_collection_enable('loose', id_fields => '{book: "bookId"}', on_delete => 'restrict', views => false);
SELECT single_collection_enable('keyed', key_field => 'sc_id', on_delete => 'cascade');
INSERT INTO catalog (doc) SELECT bson_build('docType', 'book', 'bookId', i) FROM generate_series(1, 15) i;
INSERT INTO loose (doc) SELECT bson_build('docType', 'book', 'bookId', i) FROM generate_series(1, 15) i;
INSERT INTO keyed (doc) SELECT bson_build('sc_id', 'b' || i) FROM generate_series(1, 15) i;
SQL

# One client's work: transactions, most of one statement, until the time is over.
work() {  # work NUMBER TAG
  stress_awk "$1" "$2" '
    BEGIN {
      for (i = 0; i < 40000; i++) {
        what = r(20); a = r(15); b = r(15); one = r(4) > 1; t = r(2) == 1 ? "catalog" : "loose"
        if (one) printf "SET default_transaction_isolation = $$%s$$;", r(3) == 1 ? "repeatable read" : "read committed"
        else printf "BEGIN ISOLATION LEVEL %s;", r(3) == 1 ? "REPEATABLE READ" : "READ COMMITTED"
        if (!one && r(3) == 1) printf "SAVEPOINT s; DELETE FROM catalog WHERE doc @@ bson_build($$bookId$$, %d); ROLLBACK TO s;", a
        if (what <= 4) printf "INSERT INTO %s (doc) VALUES (bson_build($$docType$$, $$review$$, $$relatedTo$$, bson_array(%d)));", t, a
        else if (what <= 6) printf "INSERT INTO %s (doc) VALUES (bson_build($$docType$$, $$note$$, $$relatedTo$$, bson_array(%d, %d)));", t, a, b
        else if (what <= 8) printf "INSERT INTO %s (doc) VALUES (bson_build($$docType$$, $$book$$, $$bookId$$, %d)) ON CONFLICT DO NOTHING;", t, a
        else if (what == 9) printf "DELETE FROM %s WHERE doc @@ bson_build($$bookId$$, %d);", t, a
        else if (what == 10) printf "DELETE FROM %s WHERE doc @@ bson_build($$relatedTo$$, %d);", t, a
        else if (what == 11) printf "UPDATE %s SET doc = bson_set(doc, $$bookId$$, %d) WHERE doc @@ bson_build($$bookId$$, %d);", t, a, b
        else if (what == 12) printf "UPDATE %s SET doc = bson_set(doc, $$relatedTo$$, bson_array(%d)) WHERE doc @@ bson_build($$relatedTo$$, %d, $$docType$$, $$review$$);", t, a, b
        else if (what <= 14) printf "INSERT INTO keyed (doc) VALUES (bson_build($$sc_id$$, $$b%d/%d$$));", a, i % 50
        else if (what == 15) printf "INSERT INTO keyed (doc) VALUES (bson_build($$sc_id$$, $$b%d/%d/x$$)) ON CONFLICT DO NOTHING;", a, i % 50
        else if (what == 16) printf "INSERT INTO keyed (doc) VALUES (bson_build($$sc_id$$, $$b%d$$)) ON CONFLICT DO NOTHING;", a
        else if (what == 17) printf "DELETE FROM keyed WHERE doc @@ bson_build($$sc_id$$, $$b%d$$);", a
        else if (what == 18) printf "UPDATE keyed SET doc = bson_set(doc, $$sc_id$$, $$b%d$$::text) WHERE doc @@ bson_build($$sc_id$$, $$b%d$$);", a, b
        else if (what == 19) printf "UPDATE %s SET doc = bson_set(doc, $$title$$, %d) WHERE doc @@ bson_build($$bookId$$, %d);", t, i, a
        else printf "INSERT INTO bad SELECT c::text FROM pattern_check() c;"
        print one ? "" : (r(10) == 1 ? "ROLLBACK;" : "COMMIT;")
      }
    }'
}
stress_run all "$seconds"
ask "SELECT '# ' || n_tup_ins + n_tup_upd + n_tup_del || ' rows of ' || relname || ' were written' FROM pg_stat_user_tables WHERE relname IN ('catalog', 'loose', 'keyed') ORDER BY relname"

is "$(ask 'SELECT * FROM pattern_check()')" '' 'the collections are true afterwards'
is "$(ask 'SELECT * FROM bad LIMIT 5')" '' 'and were at any moment in between'
is "$(ask "SELECT count(*) FROM (SELECT bson_values(doc, 'relatedTo') AS id FROM catalog) c WHERE NOT EXISTS (SELECT FROM catalog b WHERE b.doc -> 'bookId' = c.id)")" 0 'no review of a book that is gone, as plain SQL sees it'
is "$(ask "SELECT count(*) FROM (SELECT bson_values(doc, 'relatedTo') AS id FROM loose) c WHERE NOT EXISTS (SELECT FROM loose b WHERE b.doc -> 'bookId' = c.id)")" 0 'where deletes are refused neither'
is "$(ask "SELECT count(*) FROM keyed c WHERE c.doc ->> 'sc_id' LIKE '%/%' AND NOT EXISTS (SELECT FROM keyed p WHERE p.doc ->> 'sc_id' = regexp_replace(c.doc ->> 'sc_id', '/[^/]*\$', ''))")" 0 'and no key below one that is gone'
is "$(stress_count XX)" 0 'nobody met an internal error'
stress_end
