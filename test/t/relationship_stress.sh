#!/bin/bash
# Many writers at once on both sides of relationships: both arrays agree at any moment, and statements of their own transactions about rows
# that stay meet no deadlock.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 8
stress_begin dp_relationship_stress 20268
stress_setup <<'SQL'
CREATE TABLE bad (what text);
SELECT collection_create('patients'), collection_create('doctors'), collection_create('nurses'), collection_create('users');
SELECT relationship_enable('patients', 'doctors', 'doctors', 'patients'), relationship_enable('patients', 'nurses', 'nurses', 'patients', missing => 'allow'), relationship_enable('users', 'friends', 'users', 'friends');
INSERT INTO patients (doc) SELECT bson_build('_id', i) FROM generate_series(1, 25) i;
INSERT INTO doctors (doc) SELECT bson_build('_id', i) FROM generate_series(1, 12) i;
INSERT INTO nurses (doc) SELECT bson_build('_id', i) FROM generate_series(1, 8) i;
INSERT INTO users (doc) SELECT bson_build('_id', i) FROM generate_series(1, 20) i;
SQL

# One client's work: transactions, most of one statement, until the time is over. "alone": of one statement, about one relationship.
work() {  # work NUMBER TAG
  stress_awk "$1" "$2" '
    BEGIN {
      for (i = 0; i < 40000; i++) {
        what = tag == "alone" ? r(6) : r(20); p = r(25); d = r(12); n = r(10); u = r(20); v = r(20); one = tag == "alone" || r(4) > 1
        if (tag == "alone") printf "SET default_transaction_isolation = $$read committed$$;"
        else if (one) printf "SET default_transaction_isolation = $$%s$$;", r(3) == 1 ? "repeatable read" : "read committed"
        else printf "BEGIN ISOLATION LEVEL %s;", r(3) == 1 ? "REPEATABLE READ" : "READ COMMITTED"
        if (!one && r(3) == 1) printf "SAVEPOINT s; UPDATE patients SET doc = bson_set(doc, $$doctors$$, bson_array(%d)) WHERE _id = %d; ROLLBACK TO s;", d, p
        if (what == 1) printf "UPDATE patients SET doc = bson_update(doc, bson_build($$$addToSet$$, bson_build($$doctors$$, %d))) WHERE _id = %d;", d, p
        else if (what == 2) printf "UPDATE doctors SET doc = bson_update(doc, bson_build($$$addToSet$$, bson_build($$patients$$, %d))) WHERE _id = %d;", p, d
        else if (what == 3) printf "UPDATE patients SET doc = bson_update(doc, bson_build($$$pull$$, bson_build($$doctors$$, %d))) WHERE _id = %d;", d, p
        else if (what == 4) printf "UPDATE doctors SET doc = bson_update(doc, bson_build($$$pull$$, bson_build($$patients$$, %d))) WHERE _id = %d;", p, d
        else if (what == 5) printf "UPDATE users SET doc = bson_update(doc, bson_build($$$addToSet$$, bson_build($$friends$$, %d))) WHERE _id = %d;", v, u
        else if (what == 6) printf "UPDATE users SET doc = bson_update(doc, bson_build($$$pull$$, bson_build($$friends$$, %d))) WHERE _id = %d;", v, u
        else if (what == 7) printf "UPDATE patients SET doc = bson_set(doc, $$doctors$$, bson_array(%d, %d)) WHERE _id = %d;", d, r(12), p
        else if (what == 8) printf "UPDATE doctors SET doc = bson_set(doc, $$patients$$, bson_array(%d, %d, %d)) WHERE _id = %d;", p, r(25), r(25), d
        else if (what == 9) printf "INSERT INTO patients (doc) VALUES (bson_build($$_id$$, %d, $$doctors$$, bson_array(%d), $$nurses$$, bson_array(%d))) ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;", 20 + r(20), d, n
        else if (what == 10) printf "INSERT INTO patients (doc) VALUES (bson_build($$_id$$, %d, $$doctors$$, bson_array(%d))) ON CONFLICT DO NOTHING;", 20 + r(20), d
        else if (what == 11) printf "DELETE FROM patients WHERE _id = %d;", 20 + r(20)
        else if (what == 12) printf "DELETE FROM nurses WHERE _id = %d;", n
        else if (what == 13) printf "INSERT INTO nurses (doc) VALUES (bson_build($$_id$$, %d, $$patients$$, bson_array(%d))) ON CONFLICT DO NOTHING;", n, p
        else if (what == 14) printf "UPDATE patients SET doc = bson_set(doc, $$nurses$$, bson_array(%d, %d)) WHERE _id = %d;", n, r(12), p
        else if (what == 15) printf "UPDATE patients SET doc = bson_set(doc, $$name$$, %d) WHERE _id = %d;", i, p
        else if (what == 16) printf "UPDATE doctors SET doc = bson_set(doc, $$name$$, %d) WHERE _id = %d;", i, d
        else if (what == 17) printf "UPDATE patients SET doc = bson_set(doc, $$_id$$, %d) WHERE _id = %d;", 20 + r(30), 20 + r(30)
        else if (what == 18) printf "UPDATE users SET doc = bson_set(doc, $$friends$$, bson_array(%d, %d)) WHERE _id = %d;", v, r(20), u
        else if (what == 19) printf "UPDATE nurses SET doc = bson_set(doc, $$patients$$, bson_array(%d)) WHERE _id = %d;", p, n
        else printf "INSERT INTO bad SELECT c::text FROM pattern_check() c WHERE NOT EXISTS (SELECT FROM docpatterns.notes);"
        print one ? "" : (r(10) == 1 ? "ROLLBACK;" : "COMMIT;")
      }
    }'
}
stress_run alone $((seconds / 2 > 0 ? seconds / 2 : 1))
stress_run all "$seconds"
ask "SELECT '# ' || n_tup_ins + n_tup_upd + n_tup_del || ' rows of ' || relname || ' were written' FROM pg_stat_user_tables WHERE relname IN ('patients', 'doctors', 'nurses', 'users') ORDER BY relname"

is "$(stress_count 40 alone)" 0 'statements of their own transactions, about one relationship each, do not fail'
is "$(ask 'SELECT * FROM pattern_check()')" '' 'the relationships agree afterwards'
is "$(ask 'SELECT * FROM bad LIMIT 5')" '' 'and did at any moment in between'
edges="SELECT p._id AS a, v AS b FROM %s p CROSS JOIN LATERAL bson_values(p.doc, '%s') v"
# shellcheck disable=SC2059
is "$(ask "SELECT count(*) FROM ($(printf "$edges" patients doctors)) x FULL JOIN ($(printf "$edges" doctors patients)) y ON x.a = y.b AND x.b = y.a WHERE x.a IS NULL OR y.a IS NULL")" 0 'patients and doctors are as plain SQL joins them'
# shellcheck disable=SC2059
is "$(ask "SELECT count(*) FROM ($(printf "$edges" users friends)) x LEFT JOIN ($(printf "$edges" users friends)) y ON x.a = y.b AND x.b = y.a WHERE y.a IS NULL")" 0 'so are friends'
# shellcheck disable=SC2059
is "$(ask "SELECT count(*) FROM ($(printf "$edges" patients nurses)) x JOIN nurses n ON n._id = x.b WHERE NOT n.doc @@ bson_build('patients', x.a)")" 0 'and nurses that are there'
is "$(ask 'SELECT (count(*) > 0)::text FROM doctors CROSS JOIN LATERAL bson_values(doc, $$patients$$)')" true 'there is something left'
is "$(stress_count XX)" 0 'nobody met an internal error'
stress_end
