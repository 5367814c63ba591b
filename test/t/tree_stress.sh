#!/bin/bash
# Several sessions insert, move, rename and delete nodes, and documents that hang on them: afterwards everything equals what a
# recursive query makes of the parents.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 8
stress_begin dp_tree_stress 20263
clients=6
stress_setup <<'SQL'
CREATE TABLE bad (what text);
CREATE SEQUENCE s START 1000;
SELECT collection_create('r'), collection_create('d'), collection_create('p');
SELECT tree_enable('r', parent => 'up', ancestors => 'anc', path => 'path', children => 'kids', depth => 'depth', on_delete => 'reparent');
SELECT tree_enable('d', parent => 'up', ancestors => 'anc', ancestors_order => 'nearest_first', on_delete => 'cascade');
SELECT tree_attach('p', tree => 'd', parent => 'cat', ancestors => 'cats', depth => 'depth');
INSERT INTO r (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 3 THEN i / 3 END) FROM generate_series(1, 60) i;
INSERT INTO d (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 3 THEN i / 3 END) FROM generate_series(1, 60) i;
INSERT INTO p (doc) SELECT bson_build('_id', i, 'cat', i) FROM generate_series(1, 60) i;
SQL

# One client's work: whole transactions, one after the other, until the time is over.
work() {  # work NUMBER TAG
  stress_awk "$1" "$2" '
    BEGIN {
      for (i = 0; i < 20000; i++) {
        t = r(2) == 1 ? "r" : "d"; k = r(60); k2 = r(60); what = r(20)
        printf "%s", level()
        if (what <= 4) printf "INSERT INTO %s (doc) SELECT bson_build($$_id$$, %d, $$up$$, (SELECT _id FROM %s ORDER BY _id OFFSET %d LIMIT 1)) ON CONFLICT DO NOTHING;", t, k, t, r(30)
        else if (what == 5) printf "INSERT INTO %s (doc) VALUES (bson_build($$_id$$, %d, $$up$$, %d)) ON CONFLICT (_id) DO UPDATE SET doc = bson_set(%s.doc, $$up$$, %d);", t, k, k2, t, k2
        else if (what <= 10) printf "UPDATE %s SET doc = bson_set(doc, $$up$$, %d) WHERE _id = %d;", t, k2, k
        else if (what == 11) printf "UPDATE %s SET doc = bson_set(doc, $$up$$, %d) WHERE _id IN (%d, %d, %d);", t, k2, k, r(60), r(60)
        else if (what == 12) printf "UPDATE %s SET doc = bson_set(doc, $$_id$$, %d) WHERE _id = %d;", t, k2, k
        else if (what == 13) printf "UPDATE %s SET doc = bson_unset(bson_set(doc, $$n$$, %d), $$anc$$) WHERE _id = %d;", t, i, k
        else if (what == 14) printf "DELETE FROM r WHERE _id IN (%d, %d);", k, k2
        else if (what == 15) printf "DELETE FROM %s WHERE _id = %d;", t, (k > 20 ? k : 0)
        else if (what <= 17) printf "INSERT INTO p (doc) SELECT bson_build($$_id$$, nextval($$s$$), $$cat$$, c) FROM (SELECT _id FROM d ORDER BY (_id < %d), _id LIMIT 2) v (c);", k
        else if (what == 18) printf "UPDATE p SET doc = bson_set(doc, $$cat$$, %d) WHERE _id IN (SELECT _id FROM p ORDER BY _id OFFSET %d LIMIT 2);", k2, r(60)
        else if (what == 19) printf "SAVEPOINT a; UPDATE %s SET doc = bson_set(doc, $$up$$, null) WHERE _id = %d; ROLLBACK TO a; UPDATE %s SET doc = bson_unset(doc, $$up$$) WHERE _id = %d;", t, k, t, k2
        else printf "INSERT INTO bad SELECT c::text FROM pattern_check() c WHERE NOT EXISTS (SELECT FROM docpatterns.notes);"
        print (r(15) == 1 ? "ROLLBACK;" : "COMMIT;")
      }
    }'
}
stress_run all "$seconds"

ask "SELECT format('# %s nodes, %s nodes, %s documents', (SELECT count(*) FROM r), (SELECT count(*) FROM d), (SELECT count(*) FROM p))"
is "$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' 'the patterns are true afterwards'
is "$(ask 'SELECT * FROM bad LIMIT 5')" '' 'and were at any moment in between'
# a recursive query of plain SQL, not the pattern's own
is "$(ask "WITH RECURSIVE w AS (SELECT _id::int AS id, '{}'::int[] AS anc FROM r WHERE (doc ->> 'up') IS NULL
    UNION ALL SELECT r._id::int, w.anc || w.id FROM w JOIN r ON (r.doc ->> 'up')::int = w.id)
  SELECT count(*) FROM r FULL JOIN w ON w.id = r._id::int
  WHERE (r.doc -> 'anc') <> to_bson(w.anc) OR (r.doc ->> 'depth')::int <> cardinality(w.anc) OR r._id IS NULL OR w.id IS NULL
    OR (r.doc ->> 'path') <> coalesce('.' || nullif(array_to_string(w.anc, '.'), ''), '')")" 0 'all forms equal a recursive query'
is "$(ask "SELECT count(*) FROM r WHERE (doc -> 'kids') <> coalesce((SELECT bson_agg(c._id ORDER BY c._id) FROM r c WHERE c.doc -> 'up' = r._id), bson_array())")" 0 'all children are listed'
is "$(ask "WITH RECURSIVE w AS (SELECT _id::int AS id, ARRAY[_id::int] AS chain FROM d WHERE (doc ->> 'up') IS NULL
    UNION ALL SELECT d._id::int, d._id::int || w.chain FROM w JOIN d ON (d.doc ->> 'up')::int = w.id)
  SELECT count(*) FROM d FULL JOIN w ON w.id = d._id::int WHERE to_bson(w.chain[2:]) IS DISTINCT FROM (d.doc -> 'anc')")" 0 'nearest first, too'
is "$(ask "SELECT count(*) FROM p LEFT JOIN d ON d._id = p.doc -> 'cat'
  WHERE (p.doc -> 'cat') IS NOT NULL AND (d._id IS NULL OR (p.doc ->> 'depth')::int IS DISTINCT FROM bson_array_length(d.doc, 'anc') + 1
    OR (p.doc -> 'cats.-1') IS DISTINCT FROM d._id)")" 0 'documents follow the nodes that they hang on'
ok 'there is still something to see' [ "$(ask 'SELECT (SELECT count(*) FROM r) > 0 AND (SELECT count(*) FROM d) > 0 AND (SELECT count(*) FROM p) > 10')" = t ]
is "$(stress_others 'ERROR:  23505: duplicate key value violates unique constraint "[rd]_pkey"\|ERROR:  23503\|ERROR:  23514')" '' \
  'errors are serialization failures, deadlocks of movers, cycles, missing parents and ids that are taken'
stress_end
