#!/bin/bash
# Few rows that come and go on both sides of patterns with two tables, and few documents with parts elsewhere: they are deleted and
# inserted again, get other keys, and move between partitions all the time. Each transaction is one statement, and at any moment all
# that it concerns is true.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 11
stress_begin dp_source_churn 20306
stress_setup <<'SQL'
CREATE TABLE bad (what text);
CREATE SEQUENCE ids CACHE 100;
SELECT collection_create('users'), collection_create('posts'), collection_create('rows'), collection_create('shown'), collection_create('made');
CREATE TABLE pusers (_id bson_value PRIMARY KEY, doc bson) PARTITION BY HASH (_id);
CREATE TABLE pusers0 PARTITION OF pusers FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE pusers1 PARTITION OF pusers FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE pposts (region int, id int, doc bson, PRIMARY KEY (region, id)) PARTITION BY LIST (region);
CREATE TABLE pposts1 PARTITION OF pposts FOR VALUES IN (1);
CREATE TABLE pposts2 PARTITION OF pposts FOR VALUES IN (2);
SELECT reference_enable('posts', 'author', 'users', live => '{name}', on_delete => 'unset', missing => 'allow'),
       reference_enable('posts', 'comments.by', 'users', live => '{name}', on_delete => 'cascade'),
       reference_enable('posts', 'likes', 'users', live => '{name}', on_delete => 'unset', refresh => 'deferred'),
       reference_enable('pposts', 'author', 'pusers', live => '{name}', on_delete => 'cascade', missing => 'allow');
-- documents that two sources make, and those of partitions that several share
CREATE TABLE prows (region int, id int, doc bson, PRIMARY KEY (region, id)) PARTITION BY LIST (region);
CREATE TABLE prows1 PARTITION OF prows FOR VALUES IN (1);
CREATE TABLE prows2 PARTITION OF prows FOR VALUES IN (2);
CREATE TABLE pshown (region int, id int, doc bson, PRIMARY KEY (region, id)) PARTITION BY LIST (region);
CREATE TABLE pshown1 PARTITION OF pshown FOR VALUES IN (1);
CREATE TABLE pshown2 PARTITION OF pshown FOR VALUES IN (2);
SELECT computed_enable('made', 'rows', 'q', '{n: {$count: {}}, best: {$max: "$i"}}', name => 'rows', create_missing => true),
       computed_enable('made', 'prows', 'q', '{pn: {$count: {}}, low: {$min: "$i"}}', name => 'prows', create_missing => true),
       computed_enable('pshown', 'rows', 'q', '{n: {$count: {}}, best: {$max: "$i"}}', target_field => 'k'),
       subset_enable('made', field => 'first', source => 'rows', on_field => 'p', order_by => '{i: -1}', keep => 2, fields => '{i: 1}'),
       subset_enable('shown', field => 'first', source => 'prows', on_field => 'q', order_by => '{i: -1}', keep => 2, fields => '{i: 1}', count_field => 'n');
-- what lies beside documents: each has its number in all places
CREATE TABLE parts (region int, id int, doc bson, PRIMARY KEY (region, id)) PARTITION BY LIST (region);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts2 PARTITION OF parts FOR VALUES IN (2);
SELECT subset_fields_enable('parts', '{plot}', name => 'cold'), attribute_enable('parts', 'r', pattern => 'x_{k}', is_unique => true), payload_enable('parts', 'p', '{pv: "xpath:/m/@v::int"}');
CREATE FUNCTION part(v int) RETURNS bson LANGUAGE sql AS $$ SELECT bson_build('v', v, 'plot', v, 'x_a', v, 'p', format('<m v="%s"/>', v)) $$;
CREATE VIEW torn AS SELECT doc FROM parts_whole WHERE concat_ws(' ', doc ->> 'plot', doc ->> 'pv', doc ->> 'r.0.value') <> concat_ws(' ', doc ->> 'v', doc ->> 'v', doc ->> 'v');
CREATE TABLE votes (id int PRIMARY KEY, doc bson);
SELECT approximation_enable('votes', 'n', slots => 3);
CREATE TABLE counted (owner int, n bigint);
CREATE FUNCTION vote(k int, x int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM approximation_add('votes', k, x);
  INSERT INTO counted SELECT (doc -> 'owner')::int, x FROM votes WHERE id = k;
END $$;
CREATE VIEW miscounted AS SELECT v.doc, c.n FROM votes_whole v LEFT JOIN (SELECT owner, sum(n) AS n FROM counted GROUP BY 1) c ON c.owner = (v.doc -> 'owner')::int WHERE (v.doc ->> 'n')::numeric <> coalesce(c.n, 0);
SQL

work() {
  stress_awk "$1" "$2" '
    function number() { return "nextval($$ids$$)" }
    function user(i) { return "bson_build($$_id$$, " i ", $$name$$, " number() ")" }
    function post(i,   w) { w = r(4); return "bson_build($$_id$$, " i ", " (w == 1 ? "$$author$$, " r(4) : w == 2 ? "$$comments$$, bson_array(bson_build($$by$$, " r(4) "))" : w == 3 ? "$$likes$$, bson_array(" r(4) ")" : "$$author$$, " r(4) ", $$likes$$, bson_array(" r(4) ")") ")" }
    function row() { return "bson_build($$_id$$, " number() ", $$p$$, " r(4) ", $$q$$, " r(4) ", $$i$$, " r(100) ")" }
    function some(n) { return "_id IN (SELECT _id FROM rows WHERE _id > (SELECT last_value FROM ids) * " rand() " ORDER BY _id LIMIT " n " FOR UPDATE)" }
    function psome(n) { return "(region, id) IN (SELECT region, id FROM prows WHERE id > (SELECT last_value FROM ids) * " rand() " ORDER BY region, id LIMIT " n " FOR UPDATE)" }
    function place() { return "region = " r(2) " AND id = " r(3) }
    function references(   w, k) {
      w = r(16); k = r(4)
      if (w <= 2) return "INSERT INTO users (doc) VALUES (" user(k) ") ON CONFLICT DO NOTHING;"
      if (w == 3) return "DELETE FROM users WHERE _id = " k ";"
      if (w == 4) return "UPDATE users SET doc = " user(r(4)) " WHERE _id = " k ";"
      if (w <= 7) return "INSERT INTO posts (doc) VALUES (" post(r(6)) ") ON CONFLICT " (r(2) == 1 ? "DO NOTHING;" : "(_id) DO UPDATE SET doc = EXCLUDED.doc;")
      if (w == 8) return "DELETE FROM posts WHERE _id = " r(6) ";"
      if (w <= 10) { k = user(k); return "INSERT INTO pusers SELECT doc -> $$_id$$, doc FROM (SELECT " k " AS doc) q ON CONFLICT DO NOTHING;" }
      if (w == 11) return "DELETE FROM pusers WHERE _id = " k ";"
      if (w == 12) { w = r(4); return "UPDATE pusers SET _id = to_bson(" w "), doc = " user(w) " WHERE _id = " k ";" }
      if (w <= 14) return "INSERT INTO pposts VALUES (" r(2) ", " r(3) ", bson_build($$author$$, " k ")) ON CONFLICT DO NOTHING;"
      if (w == 15) return "UPDATE pposts SET region = 3 - region" (r(2) == 1 ? ", doc = bson_set(doc, $$author$$, " k ")" : "") " WHERE " place() ";"
      return r(2) == 1 ? "DELETE FROM pposts WHERE " place() ";" : "SELECT reference_refresh($$posts$$);"
    }
    function derived(   w, k) {
      w = r(20); k = r(4)
      if (w <= 3) return "INSERT INTO rows (doc) VALUES (" row() ")" (r(2) == 1 ? ";" : ", (" row() ");")
      if (w <= 6) return "DELETE FROM rows WHERE " some(4) ";"
      if (w == 7) return "UPDATE rows SET doc = bson_set(bson_set(doc, $$p$$, " r(4) "), $$q$$, " k ") WHERE " some(2) ";"
      if (w <= 10) return "INSERT INTO prows VALUES (" r(2) ", " number() ", bson_build($$q$$, " k ", $$i$$, " r(100) "));"
      if (w <= 12) return "DELETE FROM prows WHERE " psome(4) ";"
      if (w == 13) return "UPDATE prows SET region = 3 - region WHERE " psome(2) ";"
      if (w == 14) return "DELETE FROM made WHERE _id = " k ";"
      if (w == 15) return r(2) == 1 ? "DELETE FROM shown WHERE _id = " k ";" : "UPDATE shown SET doc = bson_set(doc, $$_id$$, " r(4) ") WHERE _id = " k ";"
      if (w <= 17) return "INSERT INTO shown (doc) VALUES (bson_build($$_id$$, " k ")) ON CONFLICT DO NOTHING;"
      if (w == 18) return "INSERT INTO pshown VALUES (" r(2) ", " r(3) ", bson_build($$k$$, " k ")) ON CONFLICT DO NOTHING;"
      if (w == 19) return "UPDATE pshown SET " (r(2) == 1 ? "region = 3 - region" : "doc = bson_set(doc, $$k$$, " k ")") " WHERE " place() ";"
      return "DELETE FROM pshown WHERE " place() ";"
    }
    function beside(   w) {
      w = r(14)
      if (w <= 3) return "INSERT INTO parts VALUES (" r(2) ", " r(3) ", part(" number() "::int)) ON CONFLICT " (r(2) == 1 ? "DO NOTHING;" : "(region, id) DO UPDATE SET doc = EXCLUDED.doc;")
      if (w <= 5) return "DELETE FROM parts WHERE " place() ";"
      if (w <= 7) return "UPDATE parts SET " (r(2) == 1 ? "region = 3 - region" : "id = " r(3)) " WHERE " place() ";"
      if (w == 8) return "UPDATE parts_whole SET doc = part(" number() "::int)" (r(2) == 1 ? "" : ", region = 3 - region") " WHERE " place() ";"
      if (w == 9) return "UPDATE parts_wide SET doc = bson_set(doc, $$x_b$$, 1) WHERE " place() ";"
      if (w == 10) return "INSERT INTO votes VALUES (" r(3) ", bson_build($$owner$$, " number() ", $$n$$, 0)) ON CONFLICT DO NOTHING;"
      if (w == 11) return r(2) == 1 ? "DELETE FROM votes WHERE id = " r(3) ";" : "UPDATE votes SET id = " r(3) " WHERE id = " r(3) ";"
      if (w == 12) return "SELECT approximation_sync($$votes$$);"
      return ""
    }
    function check(   w) {
      w = r(3)
      if (w == 1) return "INSERT INTO bad SELECT x::text FROM pattern_check() x WHERE x.what <> $$document of the group$$ AND NOT EXISTS (SELECT FROM docpatterns.notes);"
      if (w == 2) return "INSERT INTO bad SELECT x::text FROM miscounted x UNION ALL SELECT x::text FROM torn x;"
      return "INSERT INTO bad SELECT x::text FROM pattern_check($$" (r(2) == 1 ? "made" : "posts") "$$) x WHERE x.what <> $$document of the group$$ AND NOT EXISTS (SELECT FROM docpatterns.notes);"
    }
    BEGIN {
      for (i = 0;; i++) {
        what = r(10); s = what <= 3 ? references() : what <= 7 ? derived() : what <= 9 ? beside() : check()
        # an older snapshot need not show whose vote it was; and what is built is committed on its way
        if (s == "") s = r(4) == 1 ? "CALL pattern_build($$parts$$, $$cold$$);" : "BEGIN; SELECT vote(" r(3) ", " r(9) - 3 "); COMMIT;"
        else s = level() s (r(12) == 1 ? " ROLLBACK;" : " COMMIT;")
        print s
      }
    }'
}
stress_run all "$seconds"
ask "SELECT format('# %s numbers, %s votes; %s posts, %s rows', last_value, (SELECT count(*) FROM counted), (SELECT count(*) FROM posts), (SELECT count(*) FROM rows)) FROM ids"
ok 'much was written' [ "$(ask 'SELECT last_value > 300 FROM ids')" = t ]
is "$(stress_others 'ERROR:  23503\|ERROR:  23505\|ERROR:  P0002')" '' 'errors are serialization failures, keys that are taken, and documents that are gone'
is "$(cat "$DP_WORK"/errors.* | grep -c '23505.*"made_pkey"')" 0 'no key is taken where nobody inserts by hand'
is "$(ask 'SELECT * FROM bad LIMIT 5')" '' 'all was true at any moment'
is "$(ask "SELECT * FROM pattern_check() WHERE what <> 'document of the group' LIMIT 5")" '' 'and is true afterwards'

# the same in plain SQL
ask "SELECT reference_refresh('posts')" >/dev/null
is "$(ask "SELECT p.doc FROM posts p LEFT JOIN users u ON u._id = p.doc -> 'author._id' WHERE p.doc -> 'author.name' IS DISTINCT FROM u.doc -> 'name'
  UNION ALL SELECT p.doc FROM posts p CROSS JOIN LATERAL (SELECT e FROM bson_elements(p.doc -> 'likes') e UNION ALL SELECT e -> 'by' FROM bson_elements(p.doc -> 'comments') e) q LEFT JOIN users u ON u._id = e -> '_id' WHERE u._id IS NULL OR e -> 'name' IS DISTINCT FROM u.doc -> 'name'")" '' 'names of users'
is "$(ask "SELECT p.doc FROM pposts p LEFT JOIN pusers u ON u._id = p.doc -> 'author._id' WHERE p.doc -> 'author.name' IS DISTINCT FROM u.doc -> 'name'")" '' 'over partitions, too'
is "$(ask "SELECT doc FROM made m WHERE concat_ws(' ', doc ->> 'n', doc ->> 'best', doc ->> 'pn', doc ->> 'low') <>
  (SELECT concat_ws(' ', count(*), max((doc -> 'i')::int)) FROM rows WHERE doc -> 'q' = m._id) || ' ' || (SELECT concat_ws(' ', count(*), min((doc -> 'i')::int)) FROM prows WHERE doc -> 'q' = m._id)
  UNION ALL SELECT doc FROM pshown m WHERE concat_ws(' ', doc ->> 'n', doc ->> 'best') <> (SELECT concat_ws(' ', count(*), max((doc -> 'i')::int)) FROM rows WHERE doc -> 'q' = m.doc -> 'k')")" '' 'totals'
is "$(ask "SELECT doc FROM made m WHERE doc -> 'first' <> coalesce((SELECT bson_agg(bson_build('i', i) ORDER BY i DESC) FROM (SELECT (doc -> 'i')::int AS i FROM rows WHERE doc -> 'p' = m._id ORDER BY 1 DESC LIMIT 2) q), '[]')
  UNION ALL SELECT doc FROM shown m WHERE doc -> 'first' <> coalesce((SELECT bson_agg(bson_build('i', i) ORDER BY i DESC) FROM (SELECT (doc -> 'i')::int AS i FROM prows WHERE doc -> 'q' = m._id ORDER BY 1 DESC LIMIT 2) q), '[]')
    OR doc ->> 'n' <> (SELECT count(*)::text FROM prows WHERE doc -> 'q' = m._id)")" '' 'first rows'
is "$(ask 'SELECT * FROM torn')" '' 'documents are whole'
is "$(ask 'SELECT * FROM miscounted')" '' 'and votes are counted once'
stress_end
