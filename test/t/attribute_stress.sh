#!/bin/bash
# Many writers at once on documents with attributes and payloads, on the tables and on their views: nothing is left unpacked, no
# key stands twice, no increment is lost, and no statement of its own transaction meets a deadlock.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 7
stress_begin dp_attribute_stress 20281
stress_setup <<'SQL'
CREATE TABLE done (id int, by int);
CREATE TABLE t (id int PRIMARY KEY, doc bson NOT NULL);
SELECT attribute_enable('t', 'r', pattern => 'x_{k}', is_unique => true, rename => '{a: "A"}');
SELECT payload_enable('t', 'p', '{n: "xpath:count(/m/b)::int", v: "xpath:/m/@v::int"}');
INSERT INTO t SELECT i, bson_build('x_n', 0, 'p', '<m v="0"/>') FROM generate_series(1, 12) i;
SQL

work() {  # work NUMBER TAG
  stress_awk "$1" "$2" '
    BEGIN {
      for (i = 0; i < 20000; i++) {
        what = r(12); id = r(12); one = tag == "alone" || r(3) > 1
        if (!one) { printf "%s", level(); if (r(3) == 1) printf "SAVEPOINT s; UPDATE t SET doc = bson_set(doc, $$x_s$$, 1) WHERE id = %d; ROLLBACK TO s;", r(12) }
        if (what <= 3) printf "WITH u AS (UPDATE t_wide SET doc = bson_set(doc, $$x_n$$, (doc -> $$x_n$$)::int + 1) WHERE id = %d RETURNING id) INSERT INTO done SELECT id, 1 FROM u;", id
        else if (what == 4) printf "UPDATE t SET doc = bson_set(doc, $$x_%s$$, %d) WHERE id = %d;", substr("abcde", r(5), 1), i, id
        else if (what == 5) printf "UPDATE t_wide SET doc = bson_unset(doc, $$x_%s$$) WHERE id = %d;", substr("abcde", r(5), 1), id
        else if (what == 6) printf "INSERT INTO t VALUES (%d, $${p: \"<m v=\\\"%d\\\"/>\", x_a: 1}$$) ON CONFLICT (id) DO UPDATE SET doc = bson_set(t.doc, $$p$$, EXCLUDED.doc -> $$p$$);", id, i
        else if (what == 7) printf "UPDATE t SET doc = bson_set(doc, $$p$$, $$<m v=\"%d\">$$ || repeat($$<b/>$$, %d) || $$</m>$$) WHERE id = %d;", i, r(50), id
        else if (what == 8) printf "UPDATE t_whole SET doc = bson_set(doc, $$p$$, $$<m v=\"%d\"><b/></m>$$) WHERE id = %d;", i, id
        else if (what == 9) printf "UPDATE t SET doc = bson_set(bson_set(doc, $$v$$, -1), $$o$$, %d) WHERE id = %d;", i, id
        else if (what == 10) printf "INSERT INTO t VALUES (%d, $${x_a: 1, x_b: 2, p: \"<m/>\"}$$) ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;", 12 + r(6)
        else if (what == 11) printf "DELETE FROM t_wide WHERE id = %d;", 12 + r(6)
        else printf "SELECT doc FROM t_wide WHERE id = %d; SELECT doc ->> $$p$$ FROM t_whole WHERE id = %d;", id, r(12)
        print one ? "" : r(5) == 1 ? "ROLLBACK;" : "COMMIT;"
      }
    }'
}

stress_run alone $((seconds / 2 + 1))
is "$(stress_count 40P01 alone)" 0 'no deadlocks in transactions of one statement'
stress_run many $((seconds / 2 + 1))
is "$(ask 'SELECT count(*) > 100 FROM done')" t 'work was done'
is "$(ask 'SELECT v FROM pattern_check() v')" '' 'all is true'
is "$(ask "SELECT id, (doc -> 'x_n')::int, count(done.id) FROM t_wide LEFT JOIN done USING (id) WHERE id <= 12 GROUP BY 1, 2 HAVING (doc -> 'x_n')::int <> count(done.id)")" '' 'no increment is lost'
is "$(cat "$DP_WORK"/errors.* | grep 'ERROR: ' | grep -v 'ERROR:  40001\|ERROR:  40P01\|ERROR:  25P02\|ERROR:  55000: field "v" of table "t" is extracted from "p"' | head -3)" '' 'and nothing else went wrong'
is "$(ask "SELECT pattern_disable('t', 'r') > 0, pattern_disable('t', 'p') > 0")" 't|t' 'put back'
is "$(ask "SELECT count(*) FROM t WHERE doc ? 'r' OR doc ? 'v' OR bson_typeof(doc, 'p') = 'binData'")" 0 'all of it'
stress_end
