#!/bin/bash
# Old and new applications write at once, each through the view of its version, while documents are migrated up and down beside
# them and the declaration changes: no write is lost, nothing is left that nobody can read, and no statement meets a deadlock.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 7
stress_begin dp_schema_versioning_stress 20271
stress_setup <<'SQL'
CREATE TABLE bad (what text);
CREATE TABLE written (id int, field text);
CREATE TABLE people (id int PRIMARY KEY, doc bson NOT NULL);
SELECT schema_versioning_enable('people', current => 3, write => 'accept');
SELECT schema_versioning_step('people', 1, 2, up_update => '{$rename: {phone: "mobile"}}', down_update => '[{$set: {phone: "$mobile"}}, {$unset: ["mobile", "handles"]}]');
SELECT schema_versioning_step('people', 2, 3, up_update => '[{$set: {contact: {mobile: "$mobile", calls: "$calls"}}}, {$unset: ["mobile", "calls"]}]', down_update => '[{$set: {mobile: "$contact.mobile", calls: "$contact.calls"}}, {$unset: "contact"}]');
INSERT INTO people SELECT i, bson_build('phone', i, 'calls', 0) FROM generate_series(1, 40) i;
CREATE INDEX ON people ((people_as_v1(doc) ->> 'phone'));
SQL

# What the old version calls calls is contact.calls in the new one; handles is a list that the old one knows nothing of.
work() {  # work NUMBER TAG
  stress_awk "$1" "$2" '
    BEGIN {
      for (i = 0; i < 20000; i++) {
        what = r(24); d = r(40); e = 40 + r(40); one = r(5) > 1
        if (one) printf "SET default_transaction_isolation = $$%s$$;", r(3) == 1 ? "repeatable read" : "read committed"
        else printf "%s", level()
        if (!one && r(3) == 1) printf "SAVEPOINT s; UPDATE people_v1 SET doc = bson_set(doc, $$calls$$, -1) WHERE id = %d; ROLLBACK TO s;", d
        if (what <= 5) printf "WITH u AS (UPDATE people_v1 SET doc = bson_set(doc, $$calls$$, (doc -> $$calls$$)::int + 1) WHERE id = %d RETURNING id) INSERT INTO written SELECT id, $$calls$$ FROM u;", d
        else if (what <= 9) printf "WITH u AS (UPDATE people_v3 SET doc = bson_set(doc, $$contact.calls$$, (doc -> $$contact.calls$$)::int + 1) WHERE id = %d RETURNING id) INSERT INTO written SELECT id, $$calls$$ FROM u;", d
        else if (what <= 13) printf "WITH u AS (UPDATE people_current SET doc = bson_array_append(doc, $$handles$$, %d) WHERE id = %d RETURNING id) INSERT INTO written SELECT id, $$handles$$ FROM u;", i, d
        else if (what == 14) printf "UPDATE people_v2 SET doc = bson_set(doc, $$mobile$$, %d) WHERE id = %d;", i, d
        else if (what == 15) printf "SELECT schema_versioning_read($$people$$, %d);", d
        else if (what == 16) printf "INSERT INTO people_v%d VALUES (%d, bson_build($$name$$, %d)) ;", r(3), e, i
        else if (what == 17) printf "INSERT INTO people VALUES (%d, bson_build($$phone$$, %d)) ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;", e, i
        else if (what == 18) printf "DELETE FROM people_v%d WHERE id = %d;", r(3), e
        else if (what == 19) printf "UPDATE people SET doc = bson_set(doc, $$seen$$, %d) WHERE id IN (%d, %d);", i, d, e
        else if (what == 20 && one && client <= 2) printf "CALL schema_versioning_migrate($$people$$, batch => %d);", r(20)
        else if (what == 21 && one && client <= 2) printf "CALL schema_versioning_migrate($$people$$, batch => %d, target => 2, filter => $${calls: {$exists: false}}$$);", r(20)
        else if (what == 22 && one && client == 3 && r(4) == 1) printf "SELECT pattern_alter($$people$$, NULL, bson_build($$write$$, $$%s$$));", r(2) == 1 ? "accept" : "upgrade"
        else if (what == 23 && one && client == 3 && r(8) == 1) printf "SELECT pattern_repair($$people$$);"
        else printf "INSERT INTO bad SELECT c::text FROM pattern_check() c;"
        print one ? "" : (r(10) == 1 ? "ROLLBACK;" : "COMMIT;")
      }
    }'
}
stress_run all "$seconds"

ask "SELECT '# ' || n_tup_ins + n_tup_upd + n_tup_del || ' rows of people were written' FROM pg_stat_user_tables WHERE relname = 'people'"
ask "SELECT '# ' || count(*) || ' writes of ' || field || ' are counted' FROM written GROUP BY field"
is "$(ask 'SELECT * FROM pattern_check()')" '' 'the pattern is true afterwards'
is "$(ask 'SELECT * FROM bad LIMIT 5')" '' 'and was at any moment in between'
is "$(ask "SELECT p.id, p.doc ->> 'calls', w.n FROM people_v1 p LEFT JOIN (SELECT id, count(*) AS n FROM written WHERE field = 'calls' GROUP BY id) w USING (id) WHERE p.id <= 40 AND (p.doc -> 'calls')::int <> coalesce(w.n, 0)")" '' 'every count is the number of writes, whatever version they were made in'
is "$(ask "SELECT p.id, w.n FROM people_v2 p LEFT JOIN (SELECT id, count(*) AS n FROM written WHERE field = 'handles' GROUP BY id) w USING (id) WHERE p.id <= 40 AND (SELECT count(*) FROM bson_elements(coalesce(p.doc -> 'handles', '[]'))) <> coalesce(w.n, 0)")" '' 'and of what the old version cannot see nothing is lost'
is "$(stress_count 40P01 all)" 0 'no deadlock'
ask 'CALL schema_versioning_migrate($$people$$)' >/dev/null
is "$(ask "SELECT version, state FROM schema_versioning_histogram('people')")" '3|current' 'in the end all are migrated'
is "$(ask "SET enable_seqscan = off; SELECT count(*) FROM people WHERE people_as_v1(doc) ->> 'phone' IS NOT NULL")" "$(ask "SET enable_indexscan = off; SET enable_bitmapscan = off; SELECT count(*) FROM people WHERE people_as_v1(doc) ->> 'phone' IS NOT NULL")" 'and the index is right'
stress_end
