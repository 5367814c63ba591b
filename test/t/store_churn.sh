#!/bin/bash
# Few rows that come and go, so that what is found is deleted, replaced, given another key or moved to another partition before it
# is locked: trees in all forms with documents that hang on them, single collections, outliers, versions, slots, cold fields, change
# feeds, boards and other structures, single tables, variants and buckets. First each transaction is one statement, then there are
# longer ones with savepoints. Whatever happens, all patterns are true at any moment, and equal plain SQL at the end.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 12
stress_begin dp_store_churn 20281
export PGOPTIONS="$PGOPTIONS -c timezone=UTC"
psql -Xq -c "ALTER DATABASE $PGDATABASE SET docpatterns.kv_block_size = 32"
stress_setup <<'SQL'
CREATE TABLE bad (what text);
CREATE SEQUENCE ids;
SELECT collection_create(c) FROM unnest('{tr,td,tx,tl,tk,hang,book,part,out,extra}'::text[]) c;
CREATE FUNCTION parted(t text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TABLE %1$s (id int PRIMARY KEY, doc bson) PARTITION BY RANGE (id)', t);
  EXECUTE format('CREATE TABLE %1$s_1 PARTITION OF %1$s FOR VALUES FROM (0) TO (3)', t);
  EXECUTE format('CREATE TABLE %1$s_2 PARTITION OF %1$s FOR VALUES FROM (3) TO (1000)', t);
END $$;
SELECT parted(t) FROM unnest('{hung,split,ver,slot,cold,board,kind}'::text[]) t;
SELECT tree_enable('tr', parent => 'up', ancestors => 'anc', path => 'path', children => 'kids', depth => 'depth', on_delete => 'reparent'),
       tree_enable('td', parent => 'up', ancestors => 'anc', on_delete => 'cascade'),
       tree_enable('tx', parent => 'up', ancestors => 'anc', on_delete => 'restrict'),
       tree_enable('tl', parent => 'up', children => 'kids', ancestors => 'anc', truth => 'children', on_delete => 'cascade'),
       tree_enable('tk', parent => 'up', children => 'kids', truth => 'children', on_delete => 'reparent');
SELECT tree_attach('hang', tree => 'tr', parent => 'cat', ancestors => 'cats'), tree_attach('hung', tree => 'td', parent => 'cat', ancestors => 'cats', depth => 'depth');
SELECT single_collection_enable('book', id_fields => '{book: "bookId"}', self_related => '{book}', on_delete => 'cascade', views => false),
       single_collection_enable('part', key_field => 'k', on_delete => 'cascade', views => false),
       outlier_enable('split', 'l', 3, chunk => 2, keep => 2, count_field => 'n', stay => 'last'),
       outlier_enable('out', 'l', 2, extras => 'extra', on_field => 'on', count_field => 'n'),
       versioning_enable('ver'), subset_fields_enable('cold', cold => '{cold,b.c}'), change_feed_enable('cold', notify => false),
       preallocated_enable('slot', 's', preallocated_pool(3)), preallocated_enable('slot', 'd', preallocated_pool(3), store => 'document', available_field => 'left'),
       kv_create('kv');
SELECT kv_leaderboard('kv', 'board', 'board', 'score'), single_table_create('app', 1, 'ttl');
SELECT single_table_entity('app', 'order', 'U#{id}', 'O#{n}', gsi1_pk => 'S#{status}'), polymorphic_enable('kind', by => 'k', unknown => 'error');
SELECT polymorphic_variant('kind', 'a', schema => '{properties: {v: {bsonType: "int"}}}'), polymorphic_variant('kind', 'b', schema => '{properties: {v: {bsonType: "string"}}}');
SELECT bucket_create('b', columns => 'g int, ts timestamptz, v bigint', group_by => '{g}', time_field => 'ts', span => '1 hour', max_count => 3);
CREATE TABLE b_twin (g int, ts timestamptz, v bigint);
SQL

work() {
  stress_awk "$1" "$2" '
    function either(a, b) { return r(2) == 1 ? a : b }
    function tree(  t, k, w) {
      t = substr("rrdxlk", r(6), 1); k = r(6); w = r(12)
      if (w <= 3) return sprintf("INSERT INTO t%s (doc) VALUES (bson_build($$_id$$, %d%s)) ON CONFLICT DO NOTHING;", t, k, t ~ /[lk]/ || r(3) == 1 ? "" : ", $$up$$, " r(6))
      if (w <= 6) return sprintf("DELETE FROM t%s WHERE _id IN (%d, %d);", t, k, either(k, r(6)))
      if (w <= 8 && t ~ /[lk]/) return sprintf("UPDATE t%s SET doc = bson_set(doc, $$kids$$, %s) WHERE _id = %d;", t, either("bson_array()", "bson_array(" r(6) ", " r(6) ")"), k)
      if (w <= 8) return sprintf("UPDATE t%s SET doc = bson_set(doc, $$up$$, %d) WHERE _id = %d;", t, r(6), k)
      if (w <= 10) return sprintf("UPDATE t%s SET doc = bson_set(doc, $$_id$$, %d) WHERE _id = %d;", t, r(6), k)
      return either(sprintf("SELECT tree_move($$t%s$$, %d, %d);", t, k, r(6)), sprintf("SELECT tree_delete($$t%s$$, %d);", t, k))
    }
    function hung(  k, w) {
      k = r(5); w = r(6)
      if (w <= 2) return either(sprintf("INSERT INTO hung VALUES (%d, bson_build($$cat$$, %d)) ON CONFLICT DO NOTHING;", k, r(6)), sprintf("INSERT INTO hang (doc) VALUES (bson_build($$_id$$, %d, $$cat$$, %d)) ON CONFLICT DO NOTHING;", k, r(6)))
      if (w == 3) return either(sprintf("DELETE FROM hung WHERE id = %d;", k), sprintf("DELETE FROM hang WHERE _id = %d;", k))
      if (w == 4) return either(sprintf("UPDATE hung SET doc = bson_set(doc, $$cat$$, %d) WHERE id = %d;", r(6), k), sprintf("UPDATE hang SET doc = bson_set(doc, $$cat$$, %d) WHERE _id = %d;", r(6), k))
      return sprintf("UPDATE hung SET id = %d WHERE id = %d;", r(5), k)
    }
    function key(d,  s) { s = "b" r(3); while (d-- > 0) s = s "/" r(2); return s }
    function single(  w) {
      w = r(10)
      if (w <= 2) return sprintf("INSERT INTO book (doc) VALUES (bson_build($$docType$$, %s, $$relatedTo$$, bson_array(%d))) ON CONFLICT DO NOTHING;", either("$$book$$, $$bookId$$, " r(4), "$$note$$"), r(4))
      if (w == 3) return sprintf("INSERT INTO book (doc) VALUES (bson_build($$docType$$, $$book$$, $$bookId$$, %d)) ON CONFLICT DO NOTHING;", r(4))
      if (w <= 5) return sprintf("DELETE FROM book WHERE doc @@ bson_build($$bookId$$, %d);", r(4))
      if (w == 6) return sprintf("UPDATE book SET doc = bson_set(doc, $$bookId$$, %d) WHERE doc @@ bson_build($$bookId$$, %d);", r(4), r(4))
      if (w <= 8) return sprintf("INSERT INTO part (doc) VALUES (bson_build($$k$$, $$%s$$)) ON CONFLICT DO NOTHING;", key(r(4) - 1))
      if (w == 9) return sprintf("DELETE FROM part WHERE doc @@ bson_build($$k$$, $$%s$$);", key(r(3) - 1))
      return sprintf("UPDATE part SET doc = bson_set(doc, $$k$$, $$%s$$::text) WHERE doc @@ bson_build($$k$$, $$%s$$);", key(r(3) - 1), key(r(3) - 1))
    }
    function list(n,  s) { s = "$${l: ["; while (n-- > 0) s = s r(20) (n > 0 ? ", " : ""); return s "]}$$" }
    function outlier(  w, k) {
      w = r(12); k = r(4)
      if (w == 1) return sprintf("INSERT INTO split VALUES (%d, %s) ON CONFLICT DO NOTHING;", k, list(r(7) - 1))
      if (w == 2) return sprintf("INSERT INTO out (doc) VALUES (bson_build($$_id$$, %d)) ON CONFLICT DO NOTHING;", k)
      if (w <= 4) return either("DELETE FROM split WHERE id = " k ";", "DELETE FROM out WHERE _id = " k ";")
      if (w == 5) return sprintf("UPDATE split SET id = %d WHERE id = %d;", r(4), k)
      if (w == 6) return sprintf("UPDATE split_whole SET doc = bson_set(doc, $$l$$, (%s::bson) -> $$l$$) WHERE id = %d;", list(r(7) - 1), k)
      if (w == 7) return sprintf("UPDATE out SET doc = bson_set(doc, $$_id$$, %d) WHERE _id = %d;", r(4), k)
      if (w == 8) return sprintf("INSERT INTO extra (doc) VALUES (bson_build($$_id$$, nextval($$ids$$), $$on$$, %d));", k)
      if (w == 9) return sprintf("DELETE FROM extra WHERE _id IN (SELECT _id FROM extra WHERE doc -> $$on$$ = %d LIMIT 2);", k)
      if (w == 10) return sprintf("SELECT outlier_pull($$split$$, %d, %d);", k, r(20))
      return either(sprintf("SELECT outlier_push($$split$$, %d, %d, %d);", k, r(20), r(20)), sprintf("SELECT outlier_push($$out$$, %d, bson_build($$_id$$, nextval($$ids$$)));", k))
    }
    function keyed(  t, w, k, n) {
      w = r(10); k = r(4); n = r(100); t = (t = r(3)) == 1 ? "ver" : t == 2 ? "slot" : "cold"
      if (w <= 2) return sprintf("INSERT INTO %s VALUES (%d, bson_build($$n$$, %d, $$cold$$, %d)) ON CONFLICT DO NOTHING;", t, k, n, n)
      if (w <= 4) return sprintf("DELETE FROM %s WHERE id = %d;", t, k)
      if (w == 5) return sprintf("UPDATE %s SET id = %d WHERE id = %d;", t, r(4), k)
      if (w == 6) return sprintf("UPDATE %s SET doc = bson_set(doc, $$n$$, %d) WHERE id IN (%d, %d);", t, n, k, r(4))
      if (w == 7) return sprintf("DELETE FROM %s WHERE id = %d; INSERT INTO %s VALUES (%d, bson_build($$n$$, %d)) ON CONFLICT DO NOTHING;", t, k, t, k, n)
      if (t == "cold") return sprintf("UPDATE cold_whole SET doc = bson_set(bson_set(doc, $$cold$$, %d), $$b.c$$, 7) WHERE id = %d;", n, k)
      if (t == "ver") return either(sprintf("SELECT versioning_revert($$ver$$, %d, %d);", k, r(6)), sprintf("UPDATE ver SET doc = bson_set(doc, $$m$$, %d) WHERE id = %d;", n, k))
      return sprintf("SELECT preallocated_%s, name => $$%s$$);", w == 8 ? "release($$slot$$, " k ", $${" r(3) "}$$, $$" r(3) "$$::text" : "claim($$slot$$, " k ", $${" r(3) "}$$, $$" r(3) "$$::text, " either("NULL", "$$5 ms$$"), either("s", "d"))
    }
    function other(  w, k) {
      w = r(14); k = "$$kv$$, $$k" r(2) "$$"
      if (w == 1) return sprintf("SELECT kv_zadd(%s, %d, %d);", k, r(5), r(4))
      if (w == 2) return either("SELECT kv_zrem(" k ", 1, 2, 3);", "SELECT kv_hdel(" k ", $$f1$$);")
      if (w == 3) return either("SELECT kv_hincrby(" k ", $$f1$$, 1);", "SELECT kv_del(" k ");")
      if (w == 4) return either("SELECT kv_expire(" k ", 0.002);", "SELECT kv_purge($$kv$$);")
      if (w == 5) return sprintf("INSERT INTO board VALUES (%d, bson_build($$score$$, %d)) ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;", r(5), r(5))
      if (w == 6) return either("DELETE FROM board WHERE id = " r(5) ";", "UPDATE board SET id = " r(5) " WHERE id = " r(5) ";")
      if (w <= 8) return sprintf("SELECT single_table_%s;", either("put($$app$$, $$order$$, bson_build($$id$$, " r(2) ", $$n$$, 1, $$status$$, " r(3) (r(3) == 1 ? ", $$ttl$$, clock_timestamp() + interval $$2 ms$$" : "") "))", either("purge($$app$$)", "delete($$app$$, $$U#" r(2) "$$, $$O#1$$)")))
      if (w == 9) return sprintf("SELECT single_table_update($$app$$, $$U#%d$$, $$O#1$$, bson_build($$$set$$, bson_build($$status$$, %d)), upsert => true);", r(2), r(3))
      if (w == 10) return sprintf("INSERT INTO kind VALUES (%d, bson_build($$k$$, $$%s$$)) ON CONFLICT DO NOTHING;", r(4), either("a", "b"))
      if (w == 11) return either("DELETE FROM kind WHERE id = " r(4) ";", either("UPDATE kind SET id = " r(4) " WHERE id = " r(4) ";", "SELECT polymorphic_retype($$kind$$, " r(4) ", $$" either("a", "b") "$$);"))
      if (w == 12) { k = "VALUES (" r(2) ", timestamptz $$2024-01-01$$ + " r(90) " * interval $$1 min$$, " r(99) ")"; return "INSERT INTO b " k "; INSERT INTO b_twin " k ";" }
      k = either("DELETE FROM b WHERE g = " r(2), "UPDATE b SET " either("g = 3 - g", "v = v + 1") " WHERE v % 3 = " r(3) - 1)
      w = k; sub(/ b /, " b_twin ", w)
      return r(4) == 1 ? "SELECT bucket_pack($$b$$);" : "WITH twin AS (" w ") " k ";"
    }
    function one(  w) {
      w = r(15)
      return w <= 4 ? tree() : w <= 6 ? hung() : w <= 8 ? single() : w <= 10 ? outlier() : w <= 12 ? keyed() : other()
    }
    BEGIN {
      for (;;) {
        # in a transaction of its own: one with a snapshot may see two rows of a key that it has inserted
        if (r(30) == 1) { print "INSERT INTO bad SELECT concat_ws($$ $$, $$" tag "$$, x) FROM pattern_check() x WHERE NOT EXISTS (SELECT FROM docpatterns.notes);"; continue }
        printf "%s%s", level(), one()
        if (tag != "alone" && r(3) == 1) printf " %s", one()
        if (tag != "alone" && r(5) == 1) printf " SAVEPOINT a; %s ROLLBACK TO a;", one()
        print r(15) == 1 ? " ROLLBACK;" : " COMMIT;"
      }
    }'
}
stress_run single $(((seconds + 1) / 2))
stress_run longer $(((seconds + 1) / 2))
is "$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' 'the patterns are true afterwards'
is "$(ask 'SELECT * FROM bad LIMIT 3')" '' 'and were at any moment'
is "$(stress_others 'ERROR:  23505: duplicate key\|ERROR:  2350[23]\|ERROR:  23514\|ERROR:  P0002\|ERROR:  42809: WRONGTYPE\|ERROR:  22023: \(document\|there is no document\|the document\)')" '' 'errors are those of keys that are taken or missing, of types, and those that end when a transaction is repeated'
ok 'much was written' [ "$(ask "SELECT xact_commit > 200 FROM pg_stat_database WHERE datname = current_database()")" = t ]

# the same in plain SQL
is "$(ask "WITH RECURSIVE w AS (SELECT _id::int AS id, '{}'::int[] AS anc FROM tr WHERE (doc ->> 'up') IS NULL UNION ALL SELECT t._id::int, w.anc || w.id FROM w JOIN tr t ON (t.doc ->> 'up')::int = w.id)
  SELECT count(*) FROM tr t FULL JOIN w ON w.id = t._id::int WHERE t.doc -> 'anc' IS DISTINCT FROM to_bson(w.anc) OR (t.doc ->> 'depth')::int <> cardinality(w.anc)
    OR t.doc -> 'kids' <> coalesce((SELECT bson_agg(c._id ORDER BY c._id) FROM tr c WHERE c.doc -> 'up' = t._id), bson_array())")" 0 'a tree in all forms'
is "$(ask "SELECT count(*) FROM (SELECT _id, doc ->> 'up' AS up, 'tl' AS t FROM tl WHERE (doc ->> 'up') IS NOT NULL UNION ALL SELECT _id, doc ->> 'up', 'tk' FROM tk WHERE (doc ->> 'up') IS NOT NULL) a
  FULL JOIN (SELECT bson_values(doc, 'kids') AS k, _id::text AS up, 'tl' AS t FROM tl UNION ALL SELECT bson_values(doc, 'kids'), _id::text, 'tk' FROM tk) b ON a._id = b.k AND a.up = b.up AND a.t = b.t WHERE a.t IS NULL OR b.t IS NULL")" 0 'lists of children'
is "$(ask "SELECT (SELECT count(*) FROM hang LEFT JOIN tr ON tr._id = hang.doc -> 'cat' WHERE (hang.doc ->> 'cat') IS NOT NULL AND hang.doc -> 'cats' IS DISTINCT FROM bson_array_append(tr.doc, 'anc', tr._id) -> 'anc')
  + (SELECT count(*) FROM hung LEFT JOIN td ON td._id = hung.doc -> 'cat' WHERE (hung.doc ->> 'cat') IS NOT NULL AND hung.doc -> 'cats' IS DISTINCT FROM bson_array_append(td.doc, 'anc', td._id) -> 'anc')")" 0 'what hangs on nodes'
is "$(ask "SELECT (SELECT count(*) FROM (SELECT bson_values(doc, 'relatedTo') AS id FROM book) c WHERE NOT EXISTS (SELECT FROM book b WHERE b.doc -> 'bookId' = c.id))
  + (SELECT count(*) FROM part c WHERE c.doc ->> 'k' LIKE '%/%' AND NOT EXISTS (SELECT FROM part p WHERE p.doc ->> 'k' = regexp_replace(c.doc ->> 'k', '/[^/]*\$', '')))")" 0 'single collections'
is "$(ask "SELECT (SELECT count(*) FROM out WHERE coalesce((doc -> 'n')::bigint, 0) <> coalesce(bson_array_length(doc, 'l'), 0) + (SELECT count(*) FROM extra x WHERE x.doc -> 'on' = out._id))
  + (SELECT count(*) FROM split s JOIN split_whole w USING (id) WHERE coalesce((s.doc -> 'n')::bigint, 0) <> coalesce(bson_array_length(w.doc, 'l'), 0))")" 0 'outliers'
is "$(ask "SELECT (SELECT count(*) FROM ver FULL JOIN (SELECT DISTINCT ON (key) key, doc, operation FROM ver_history ORDER BY key, revision DESC) h ON h.key = ver.id WHERE h.operation <> 'delete' AND ver.doc::bytea IS DISTINCT FROM h.doc::bytea OR h.key IS NULL OR (h.operation = 'delete' AND ver.id IS NOT NULL))
  + (SELECT count(*) FROM cold_whole c FULL JOIN (SELECT DISTINCT ON (key) key::int AS key, operation FROM change_feed_read('cold', 0, 100000000) ORDER BY key, position DESC) f ON f.key = c.id WHERE coalesce(f.operation, 'delete') = 'delete' AND c.id IS NOT NULL OR f.operation <> 'delete' AND c.id IS NULL)")" 0 'versions and changes'
is "$(ask "SELECT count(*) FROM (SELECT member::text AS id, score, kv_zrank('kv', 'board', member) AS rank FROM kv.scores WHERE key = 'board') a FULL JOIN (SELECT id::text, (doc -> 'score')::float8 AS score, row_number() OVER (ORDER BY (doc -> 'score')::float8, id) - 1 AS rank FROM board) b USING (id) WHERE (a.score, a.rank) IS DISTINCT FROM (b.score, b.rank)")" 0 'the board'
is "$(ask "SELECT (SELECT count(*) FROM (SELECT * FROM b EXCEPT ALL SELECT * FROM b_twin) x) + (SELECT count(*) FROM (SELECT * FROM b_twin EXCEPT ALL SELECT * FROM b) x)")" 0 'buckets'
stress_end
