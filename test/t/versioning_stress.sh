#!/bin/bash
# History under many writers, with long transactions that end in any order: nothing is lost, nothing is there twice, intervals touch,
# and what the table was at any time is what whole transactions made of it.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 8
stress_begin dp_versioning_stress 20268
stress_setup <<'SQL'
CREATE TABLE d (id int PRIMARY KEY, doc bson NOT NULL);
SELECT versioning_enable('d');
INSERT INTO d SELECT i, bson_build('n', 0) FROM generate_series(1, 12) i;
-- two that are always written together
CREATE TABLE pair (id int PRIMARY KEY, doc bson NOT NULL);
SELECT versioning_enable('pair', storage => 'full');
INSERT INTO pair VALUES (1, '{tag: 0}'), (2, '{tag: 0}');
-- what was written, by transactions that ended well; whatever came into being meanwhile that is wrong
CREATE TABLE written (id int, doc bson);
CREATE TABLE bad (what text);
CREATE FUNCTION write(k int, n int) RETURNS void LANGUAGE sql AS $$
  WITH w AS (UPDATE d SET doc = bson_update(doc, bson_build('$set', bson_build('n', n), '$push', bson_build('list', bson_build('$each', ARRAY[n], '$slice', -5)))) WHERE id = k RETURNING id, doc)
  INSERT INTO written SELECT * FROM w
$$;
CREATE FUNCTION put(k int, n int) RETURNS void LANGUAGE sql AS $$
  INSERT INTO d VALUES (k, bson_build('n', n)) ON CONFLICT (id) DO UPDATE SET doc = bson_set(EXCLUDED.doc, 'put', true)
$$;
SQL

work() {  # work NUMBER TAG: whole transactions, one after the other, until the time is over
  stress_awk "$1" "$2" '
    BEGIN {
      for (i = 0; i < 20000; i++) {
        k = r(12); what = r(26); l = level(); n = client * 100000 + i
        if (what <= 9) s = sprintf("SELECT write(%d, %d);", k, n)
        else if (what <= 12) { a = r(6); b = a + r(6); s = sprintf("SELECT write(%d, %d); SELECT pg_sleep(%s); SELECT write(%d, %d);", a, n, r(3) * 0.003, b, n) }
        else if (what == 13) s = sprintf("SELECT write(%d, %d); SAVEPOINT a; SELECT write(%d, %d); ROLLBACK TO a; SELECT write(%d, %d);", k, n, k, n + 50000, k, n + 60000)
        else if (what == 14) s = sprintf("SELECT put(%d, %d);", k, n)
        else if (what == 15) s = sprintf("DELETE FROM d WHERE id = %d;", k)
        else if (what == 16) s = sprintf("DELETE FROM d WHERE id = %d; SELECT put(%d, %d);", k, k, n)
        else if (what == 17) s = sprintf("UPDATE d SET id = (id + 5) %% 12 + 1 WHERE id = %d;", k)
        else if (what <= 20) s = sprintf("UPDATE pair SET doc = bson_set(doc, $$tag$$, %d) WHERE id = 1; %s UPDATE pair SET doc = bson_set(doc, $$tag$$, %d) WHERE id = 2;", n, r(3) == 1 ? "SELECT pg_sleep(0.004);" : "", n)
        else if (what == 21) s = sprintf("UPDATE d SET doc = bson_build($$n$$, -1, $$revision$$, %d) WHERE id = %d;", r(40), k)
        else if (what == 22) s = "INSERT INTO bad SELECT c::text FROM pattern_check() c;"
        else if (what == 23) s = "INSERT INTO bad SELECT $$tags$$ FROM versioning_as_of($$pair$$, clock_timestamp() - interval $$3 ms$$) HAVING count(DISTINCT doc -> $$tag$$) > 1;"
        else if (what == 24) s = sprintf("SELECT versioning_revert($$d$$, %d, 1);", k)
        else if (what == 25) s = sprintf("SELECT count(doc) FROM d_history WHERE key = %d;", k)
        else s = "SET CONSTRAINTS ALL IMMEDIATE; " sprintf("SELECT write(%d, %d);", k, n)
        print l s (r(15) == 1 ? "ROLLBACK;" : "COMMIT;")
      }
    }'
}
stress_run all "$seconds"

ask "SELECT format('# %s written, %s revisions in %s transactions', (SELECT count(*) FROM written), (SELECT count(*) FROM d_revisions), (SELECT count(*) FROM d_changes))"
is "$(ask 'SELECT * FROM pattern_check()')" '' 'the patterns are true afterwards'
is "$(ask 'SELECT what, count(*) FROM bad GROUP BY 1 LIMIT 5')" '' 'and were at any moment in between'
ok 'much was written' [ "$(ask 'SELECT count(*) > 100 FROM written')" = t ]
is "$(ask "SELECT w.id, w.doc FROM written w WHERE NOT EXISTS (SELECT FROM d_history h WHERE h.key = w.id AND h.doc::bytea = w.doc::bytea) LIMIT 3")" '' 'what was written is a revision, byte for byte'
is "$(ask "SELECT h.key, h.revision FROM d_history h JOIN d_history n ON n.key = h.key AND n.revision = h.revision + 1 WHERE h.until IS DISTINCT FROM n.since OR h.since > n.since LIMIT 3")" '' 'intervals touch and do not run backwards'
is "$(ask "SELECT transaction FROM d_history GROUP BY 1 HAVING count(DISTINCT since) > 1 LIMIT 3")" '' 'a transaction has one time'
is "$(ask "SELECT c.since FROM pair_changes c WHERE (SELECT count(DISTINCT a.doc -> 'tag') FROM versioning_as_of('pair', c.since) a) <> 1 LIMIT 3")" '' 'whenever it was, whole transactions are seen'
is "$(stress_others 'ERROR:  23505: duplicate key value violates unique constraint "d_pkey"\|ERROR:  22023: \(document\|there is no document\)')" '' \
  'errors are serialization failures, stale revisions, keys that are taken and revisions that there are not'
stress_end
