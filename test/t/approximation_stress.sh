#!/bin/bash
# Counters under many writers: shards lose nothing and count nothing twice, whatever happens to their documents at the same time,
# and steps stay right on average.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 8
stress_begin dp_approximation_stress 20267
stress_setup <<'SQL'
CREATE TABLE votes (id int PRIMARY KEY, doc bson);
CREATE TABLE pages (id int PRIMARY KEY, doc bson);
SELECT approximation_enable('votes', 'n', slots => 4), approximation_enable('pages', 'steps', step => 20), approximation_enable('pages', 'errors', error => 0.1);
INSERT INTO votes SELECT i, bson_build('owner', i, 'n', 0) FROM generate_series(1, 6) i;
INSERT INTO pages SELECT i, '{}' FROM generate_series(1, 40) i;
-- what was counted, by the document's owner, which stays when its key changes
CREATE TABLE counted (owner int, n bigint);
CREATE TABLE events (page int, n bigint);
CREATE TABLE bad (what text);
CREATE FUNCTION count_vote(k int, n int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE o int;
BEGIN
  -- the row is held, so that its owner is known
  SELECT doc -> 'owner' INTO o FROM votes WHERE id = k FOR KEY SHARE;
  IF FOUND THEN PERFORM approximation_add('votes', k, n); INSERT INTO counted VALUES (o, n); END IF;
END $$;
CREATE FUNCTION renew(k int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE o int; total bigint;
BEGIN
  SELECT doc -> 'owner' INTO o FROM votes WHERE id = k FOR UPDATE;
  IF FOUND THEN
    DELETE FROM votes WHERE id = k; DELETE FROM counted WHERE owner = o;
    INSERT INTO votes VALUES (k, bson_build('owner', o, 'n', 0));
  END IF;
END $$;
SQL

work() {  # work NUMBER TAG: whole transactions, one after the other, until the time is over
  stress_awk "$1" "$2" '
    BEGIN {
      for (i = 0; i < 20000; i++) {
        k = r(12); what = r(24); single = 1
        l = level()
        if (what <= 10) s = sprintf("SELECT count_vote(%d, %d);", k, r(9) - 3)
        else if (what == 11) { single = 0; s = sprintf("SELECT count_vote(%d, 5); SAVEPOINT a; SELECT count_vote(%d, 7); ROLLBACK TO a; SELECT count_vote(%d, 2);", k, k, k) }
        else if (what == 12) s = sprintf("UPDATE votes SET id = (id + 5) %% 12 + 1 WHERE id = %d;", k)
        else if (what == 13) s = sprintf("UPDATE votes_whole SET doc = bson_set(doc, $$t$$, %d) WHERE id = %d;", i, k)
        else if (what == 14) { s = r(6) == 1 ? sprintf("SELECT renew(%d);", k) : "SELECT 1;"; l = "BEGIN ISOLATION LEVEL READ COMMITTED; " }  # an older snapshot would not show all that was counted
        else if (what == 15) s = "SELECT approximation_sync($$votes$$);"
        else if (what == 16) s = sprintf("UPDATE votes SET doc = bson_set(doc, $$u$$, %d) WHERE id = %d;", i, k)
        else if (what == 17) s = "INSERT INTO bad SELECT c::text FROM pattern_check() c;"
        else if (what == 18) s = "INSERT INTO bad SELECT format($$%s: %s, not %s$$, v.doc ->> $$owner$$, v.doc ->> $$n$$, c.n) FROM votes_whole v LEFT JOIN (SELECT owner, sum(n) AS n FROM counted GROUP BY 1) c ON c.owner = (v.doc -> $$owner$$)::int WHERE (v.doc ->> $$n$$)::numeric <> coalesce(c.n, 0);"
        else s = sprintf("WITH e AS (INSERT INTO events VALUES (%d, %d)) SELECT approximation_add($$pages$$, %d, 1, $$steps$$), approximation_add($$pages$$, %d, 1, $$errors$$) FROM generate_series(1, %d);", p = r(40), n = r(30), p, p, n)
        print l s (r(15) == 1 ? "ROLLBACK;" : "COMMIT;")
      }
    }'
}
stress_run all "$seconds"

ask "SELECT format('# %s votes, %s events, %s shards left', (SELECT count(*) FROM counted), (SELECT sum(n) FROM events), (SELECT count(*) FROM votes_n_shards))"
is "$(ask 'SELECT * FROM pattern_check()')" '' 'the patterns are true afterwards'
is "$(ask 'SELECT * FROM bad LIMIT 5')" '' 'and were at any moment in between, with the sums right in every snapshot'
ok 'much was counted' [ "$(ask 'SELECT (SELECT count(*) FROM counted) > 20 AND (SELECT sum(n) FROM events) > 200')" = t ]
totals="SELECT string_agg(format('%s=%s', o, n), ' ' ORDER BY o) FROM"
counted="$(ask "$totals (SELECT v.owner AS o, coalesce(sum(c.n), 0) AS n FROM generate_series(1, 6) v (owner) LEFT JOIN counted c ON c.owner = v.owner GROUP BY 1) q")"
is "$(ask "$totals (SELECT doc ->> 'owner' AS o, doc ->> 'n' AS n FROM votes_whole) q")" "$counted" 'every vote is counted once'
ask "SELECT approximation_sync('votes')" >/dev/null
is "$(ask "$totals (SELECT doc ->> 'owner' AS o, doc ->> 'n' AS n FROM votes) q")" "$counted" 'and folded once'
# the sum of independent errors: at 5 standard errors one run in a million is wrong
is "$(ask "SELECT abs(sum(coalesce((doc ->> 'steps')::numeric, 0)) - e.n) < 5 * sqrt(19.0 * e.n) FROM pages, (SELECT sum(n) AS n FROM events) e GROUP BY e.n")" t 'steps are right on average, at every isolation level'
is "$(ask "SELECT abs(sum(coalesce((doc ->> 'errors')::numeric, 0) - e.n)) < 5 * sqrt(sum((0.1 * e.n) ^ 2)) FROM (SELECT page, sum(n) AS n FROM events GROUP BY 1) e JOIN pages ON id = page")" t 'errors too'
is "$(stress_others 'ERROR:  23505: duplicate key value violates unique constraint "votes_pkey"\|ERROR:  P0002')$(stress_count 40P01)" 0 \
  'errors are serialization failures, keys that are taken and documents that are gone; nobody waited for somebody who waited for him'
stress_end
