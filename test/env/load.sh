# For the scripts in test/t that break servers, which source it: two databases in which every pattern is declared, clients that
# write through all of them, and what has to hold afterwards.
#
#   load_fill P            makes the databases P_shapes and P_derived
#   load_each P            writes once in each way, says what fails
#   load_start P [CHORE]   starts six clients, and one that does a chore (build, spill, repair, alter, pack, move, index, vacuum,
#                          migrate) over and over; what was acknowledged is noted in $DP_WORK
#   load_wait              waits until the clients have ended, as they do when the server is gone
#   load_stop P            ends them
#   load_finish P          finishes what a chore has left undone, as one does after a crash: prints nothing
#   load_wrong P           prints what is not true in the databases: nothing
#   load_lost P            prints numbers of transactions that were acknowledged and are not there: nothing
#   load_drop P            drops the databases
#
# SEED decides what clients do. A transaction gets a number, which it writes into the table done.
. "$DP_TOP/test/env/shapes.sh"
. "$DP_TOP/test/env/derived.sh"
load_kinds_shapes=24 load_kinds_derived=25
load_chores=(build spill repair alter pack move index vacuum migrate)
load_turn=0
load_jobs=

load_fill() {
  load_drop "$1"
  for name in "$1_shapes" "$1_derived"; do
    # (compiling what checks small tables takes longer than the check)
    psql -Xq -d postgres -c "CREATE DATABASE $name" -c "ALTER DATABASE $name SET jit = off"
    psql -Xq -d "$name" -c 'CREATE EXTENSION docpatterns'
    # which looks at btree indexes entry by entry, where it is installed
    psql -Xq -d "$name" -c 'CREATE EXTENSION amcheck' 2>/dev/null
    psql -XqAt -d "$name" <<'SQL'
CREATE FUNCTION indexes_wrong() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE i record;
BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = 'amcheck') THEN
    FOR i IN SELECT c.oid FROM pg_class c JOIN pg_index x ON x.indexrelid = c.oid JOIN pg_am a ON a.oid = c.relam
             WHERE a.amname = 'btree' AND c.oid >= 16384 AND c.relkind = 'i' AND x.indisvalid AND c.relpersistence = 'p' LOOP
      BEGIN
        PERFORM bt_index_check(i.oid, true);
      EXCEPTION WHEN OTHERS THEN RETURN NEXT SQLERRM;
      END;
    END LOOP;
  END IF;
END $$;
SQL
  done
  shapes_fill "$1_shapes"
  load_work_shapes | psql -XqAt -v ON_ERROR_STOP=1 -d "$1_shapes" >/dev/null || echo 'not ok 0 - what writes to shapes was made'
  derived_fill "$1_derived"
  load_work_derived | psql -XqAt -v ON_ERROR_STOP=1 -d "$1_derived" >/dev/null || echo 'not ok 0 - what writes to derived data was made'
}

load_drop() {
  for name in "$1_shapes" "$1_derived"; do psql -Xq -d postgres -c "DROP DATABASE IF EXISTS $name WITH (FORCE)" 2>/dev/null; done
  rm -f "$DP_WORK"/done.* "$DP_WORK"/errors.*
}

load_work_shapes() {
  cat <<'SQL'
CREATE SEQUENCE s START 1000;
CREATE TABLE done (n bigint PRIMARY KEY);
CREATE TABLE log (n bigint, slot text);
SELECT kv_hset('game', 'log', 'n', 0);
INSERT INTO shows (doc) SELECT bson_build('_id', 99, 'seats', bson_agg('[0, 0, 0, 0]'::bson_value)) FROM generate_series(1, 5000) i;
-- One transaction of some kind.
CREATE FUNCTION work(kind int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint := nextval('s'); k int := 1 + n % 4; slot text;
BEGIN
  CASE kind
    WHEN 1 THEN INSERT INTO movies_v1 (doc) VALUES (bson_build('_id', n, 'title', 't', 'kind', 'film', 'minutes', k, 'director', 'd', 'release_US', n)), (bson_build('_id', -n, 'title', 't', 'kind', 'series', 'seasons', k, 'release_UK', n));
    WHEN 2 THEN UPDATE movies_current SET doc = bson_set(bson_set(doc, 'seen', n), 'release_R' || k, n) WHERE _id::int % 5 = k;
    WHEN 3 THEN DELETE FROM movies WHERE _id = (SELECT max(_id) FROM movies); PERFORM versioning_revert('movies', k, 1);
    WHEN 4 THEN INSERT INTO messages (doc) VALUES (bson_build('_id', n, 'body', format('{"from": "f%s", "size": %s}', n, k))) ON CONFLICT (_id) DO NOTHING; UPDATE messages_whole SET doc = bson_set(doc, 'body', format('{"from": "%s"}', n)) WHERE _id = k;
    WHEN 5 THEN INSERT INTO crm (doc) VALUES (bson_build('_id', n, 'c', n)); UPDATE crm SET doc = bson_set(doc, 'c', -n) WHERE _id = k; DELETE FROM crm WHERE _id = (SELECT max(_id) FROM crm) AND n % 3 = 0;
    WHEN 6 THEN UPDATE billing SET doc = bson_set(doc, 'c', n) WHERE _id = k; DELETE FROM support WHERE _id IN (SELECT _id FROM support ORDER BY _id LIMIT 1);
    WHEN 7 THEN INSERT INTO support (doc) VALUES (bson_build('_id', n, 'c', k)), (bson_build('_id', -n, 'c', k)); UPDATE merged SET doc = bson_set(doc, 'note', n) WHERE doc -> 'c' = k;
    WHEN 8, 9 THEN
      slot := (preallocated_find('shows', 99, 1))[1];
      IF slot IS NOT NULL THEN INSERT INTO log SELECT NULL, slot WHERE preallocated_claim('shows', 99, ARRAY[slot], n); END IF;
    WHEN 10 THEN PERFORM preallocated_claim('shows', 3, '{B1,B2}', 'x', '1 ms'), preallocated_release('shows', 4, '{B1}', 'x'), preallocated_claim('shows', 4, '{B1}', 'x');
    WHEN 11 THEN INSERT INTO halls (doc) VALUES (bson_build('_id', n)); PERFORM preallocated_claim('halls', n, '{1,2}', k); DELETE FROM halls WHERE _id = (SELECT min(_id) FROM halls WHERE _id > 999);
    WHEN 12 THEN INSERT INTO books (doc) VALUES (bson_build('bookId', n, 'docType', 'book')); INSERT INTO books (doc) SELECT bson_build('docType', 'review', 'relatedTo', bson_array(n, 'ada')) FROM generate_series(1, 3);
    WHEN 13 THEN DELETE FROM books WHERE doc -> 'bookId' = (SELECT min(doc -> 'bookId') FROM books WHERE doc -> 'bookId' > 2); UPDATE books SET doc = bson_set(doc, 'bookId', n + 1000000) WHERE doc -> 'bookId' = (SELECT max(doc -> 'bookId') FROM books WHERE doc -> 'bookId' > 2);
    WHEN 14 THEN INSERT INTO notes (doc) VALUES (bson_build('at', 'n' || n)), (bson_build('at', format('n%s/1', n))), (bson_build('at', format('n%s/1/2', n))); UPDATE notes SET doc = bson_set(doc, 'at', 'm' || n) WHERE doc ->> 'at' = 'n' || n;
    WHEN 15 THEN UPDATE patients SET doc = bson_set(doc, 'doctors', CASE WHEN n % 2 = 0 THEN bson_array(1 + n % 4) ELSE bson_array(2, 3) END) WHERE _id = k;
    WHEN 16 THEN INSERT INTO doctors (doc) VALUES (bson_build('_id', n, 'patients', bson_array(k, 5))); UPDATE patients SET doc = bson_set(doc, 'friends', bson_array(n % 6 + 1, n)) WHERE _id = k; DELETE FROM doctors WHERE _id = (SELECT min(_id) FROM doctors WHERE _id > 999);
    WHEN 17 THEN INSERT INTO orders (doc) SELECT bson_build('_id', n * 10 + i, 'u', i, 'd', date '2024-01-01' + (n % 1000)::int, 'n', n * 10 + i, 't', n) FROM generate_series(0, 5) i;
    WHEN 18 THEN UPDATE orders SET doc = bson_set(doc, 'u', (n + 1) % 4) WHERE _id IN (SELECT _id FROM orders ORDER BY _id LIMIT 3); DELETE FROM orders WHERE _id = (SELECT max(_id) FROM orders);
    WHEN 19 THEN PERFORM single_table_put('app', 'order', bson_build('id', k, 'n', n % 9999)); UPDATE app_user SET doc = bson_set(doc, 'mail', n); DELETE FROM app_order WHERE pk = 'USER#' || k;
    WHEN 20, 21 THEN PERFORM kv_hincrby('game', 'log', 'n', 1); INSERT INTO log (n) VALUES (n);
    WHEN 22 THEN PERFORM kv_zadd('game', 'z', n % 100, 'm' || n % 3000), kv_sadd('game', 's', n), kv_zpopmin('game', 'z'), kv_expire('game', 's', 1000), kv_spop('game', 's');
    WHEN 23 THEN UPDATE players SET doc = bson_set(doc, 'points', n % 100) WHERE _id::int % 7 = k; INSERT INTO players (doc) VALUES (bson_build('_id', n, 'points', k));
    ELSE INSERT INTO parts VALUES (20 + n % 900, bson_build('docType', 'p', '_id', n, 'u', n, 'kind', 'a', 'x_b', n, 'relatedTo', bson_array(n))) ON CONFLICT (id) DO UPDATE SET doc = bson_set(parts.doc, 'x_c', n); PERFORM preallocated_claim('parts', 20 + n % 900, '{1}', n); DELETE FROM parts WHERE id = 999; UPDATE parts SET id = 999 WHERE id = (SELECT max(id) FROM parts);
  END CASE;
  INSERT INTO done VALUES (n);
  RETURN n;
END $$;

CREATE FUNCTION wrong() RETURNS SETOF text LANGUAGE sql AS $$
  SELECT v::text FROM pattern_check() v;
  SELECT format('the counter has counted %s of %s', kv_hget('game', 'log', 'n'), (SELECT count(n) FROM log)) WHERE kv_hget('game', 'log', 'n')::int <> (SELECT count(n) FROM log);
  SELECT 'a slot is not taken as was committed: ' || q FROM (SELECT slot FROM preallocated_slots('shows', 99) WHERE holder IS NOT NULL EXCEPT ALL SELECT slot FROM log
    UNION ALL (SELECT slot FROM log WHERE slot IS NOT NULL EXCEPT ALL SELECT slot FROM preallocated_slots('shows', 99) WHERE holder IS NOT NULL)) q;
  SELECT 'feed and history differ: ' || q FROM ((SELECT key, doc FROM movies_history WHERE operation <> 'delete' EXCEPT ALL SELECT key, document FROM movies_feed WHERE operation <> 'delete')
    UNION ALL (SELECT key, document FROM movies_feed WHERE operation <> 'delete' EXCEPT ALL SELECT key, doc FROM movies_history WHERE operation <> 'delete') LIMIT 3) q;
  SELECT * FROM indexes_wrong();
$$;
SQL
}

load_work_derived() {
  cat <<'SQL'
CREATE SEQUENCE s START 1000;
CREATE SEQUENCE things_s;
CREATE SEQUENCE nodes_s START 1000;
CREATE TABLE done (n bigint PRIMARY KEY);
CREATE TABLE log (n bigint);
-- measurements, and a plain table with the same
SELECT bucket_create('readings', columns => 'g int, ts timestamptz, n bigint, who int', group_by => '{g}', time_field => 'ts', span => '1 hour', max_count => 40);
CREATE TABLE twin (g int, ts timestamptz, n bigint, who int);
-- arrays that spill, and what they hold
CREATE TABLE tome_log (k int, v bigint);
SELECT collection_create('tomes');
SELECT outlier_enable('tomes', 'x', 20, keep => 10, chunk => 7, count_field => 'n');
INSERT INTO tomes (doc) SELECT bson_build('_id', i, 'x', bson_array()) FROM generate_series(1, 5) i;
-- trees, and who is below whom
CREATE TABLE node_log (id int, up int);
SELECT collection_create('nodes'), collection_create('leaves');
SELECT tree_enable('nodes', parent => 'up', ancestors => 'anc', path => 'path', children => 'kids', depth => 'depth', on_delete => 'cascade'), tree_attach('leaves', tree => 'nodes', parent => 'node', ancestors => 'above');
INSERT INTO nodes (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 1 THEN greatest(1, i / 3) END) FROM generate_series(1, 100) i;
INSERT INTO node_log SELECT _id::int, (doc ->> 'up')::int FROM nodes;
INSERT INTO leaves (doc) SELECT bson_build('_id', i, 'node', 1 + i % 100) FROM generate_series(1, 100) i;
-- walls
SELECT collection_create('blog'), collection_create('follows');
SELECT fanout_enable('blog', walls => 'walls', author => 'user', followers => 'follows', follower => 'user', followee => 'of', keep => 3, celebrity_threshold => 4);
INSERT INTO follows (doc) SELECT bson_build('_id', i, 'user', i % 6, 'of', i % 4) FROM generate_series(1, 12) i;
-- indexes of all kinds
SELECT collection_create('things');
SELECT collection_create_index('things', '{n: 1}'), collection_create_index('things', '{"$**": 1}', name => 'things_all'), collection_create_index('things', '{"tags.$**": 1, "sub.$**": 1}', name => 'things_named');
CREATE INDEX things_pairs ON things USING gin (doc bson_ops (pairs = 'r(k,v)')) WITH (fastupdate = off);
CREATE INDEX things_name ON things USING hash ((doc -> 'sub.name'));
ALTER INDEX things_all SET (gin_pending_list_limit = 64);
CREATE FUNCTION thing(i bigint) RETURNS bson LANGUAGE sql AS $$
  SELECT bson_build('_id', i, 'n', i % 100, 'tags', bson_array('t' || i % 13, 't' || i % 7), 'sub', bson_build('x', i % 50, 'name', 'a name that is long enough ' || i % 30),
    'r', bson_array(bson_build('k', 'k' || i % 5, 'v', i % 40), bson_build('k', 'k' || i % 6, 'v', i % 30)), 'pad', repeat('x', (i % 500)::int)) $$;
INSERT INTO things (doc) SELECT thing(nextval('things_s')) FROM generate_series(1, 300);
-- for chores: documents that are brought in line and put back, totals that are broken and mended
SELECT collection_create('heap'), collection_create('tally'), collection_create('tally_of');
INSERT INTO heap (doc) SELECT bson_build('_id', i, 'x_a', i, 'x_b', -i, 'l', (SELECT bson_agg(j) FROM generate_series(1, i % 40) j)) FROM generate_series(1, 600) i;
CREATE TABLE heap_before AS SELECT _id, doc::jsonb AS doc FROM heap;
INSERT INTO tally (doc) SELECT bson_build('_id', i) FROM generate_series(1, 100) i;
INSERT INTO tally_of (doc) SELECT bson_build('_id', i, 't', i % 100 + 1, 'x', i) FROM generate_series(1, 300) i;
SELECT computed_enable('tally', 'tally_of', 't', '{sum: {$sum: "$x"}, n: {$count: {}}}', name => 'totals');
CALL pattern_build('tally', 'totals');

-- One transaction of some kind.
CREATE FUNCTION work(kind int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE k int := 1 + random() * 3; n bigint := nextval('s'); ts timestamptz; i bigint; m bigint := n; me int := pg_backend_pid(); a int; b int;
BEGIN
  SET LOCAL timezone = 'UTC';
  ts := timestamptz '2023-01-01' + n % 40 * interval '9 hours';
  CASE kind
    WHEN 1 THEN INSERT INTO screenings (doc) VALUES (bson_build('_id', n, 'movie', 'm' || k, 'x', n / 7.0::float8, 'i', n % 100, 'ts', ts)), (bson_build('_id', nextval('s'), 'movie', 'm' || n % 5, 'x', 0.1::float8, 'i', 5, 'ts', ts));
    WHEN 2 THEN DELETE FROM screenings WHERE _id IN (SELECT _id FROM screenings ORDER BY random() LIMIT 2);
    WHEN 3 THEN UPDATE screenings SET doc = bson_set(doc, 'movie', 'm' || k) WHERE _id IN (SELECT _id FROM screenings ORDER BY random() LIMIT 2);
    WHEN 4 THEN INSERT INTO source_parts VALUES (n % 900 + 50, bson_build('a', k, 'x', n)) ON CONFLICT (id) DO UPDATE SET doc = bson_set(EXCLUDED.doc, 'a', 2);
    WHEN 5 THEN DELETE FROM source_parts WHERE id = (SELECT max(id) FROM source_parts WHERE (doc -> 'a')::int = k);
    WHEN 6 THEN INSERT INTO sales (doc) VALUES (bson_build('_id', n, 'category', (ARRAY['e', 'c', 'l', 'p'])[k], 'amount', n));
    WHEN 7 THEN UPDATE categories SET doc = bson_set(doc, 'parent', (ARRAY['e', 'p'])[1 + n % 2]) WHERE _id = '"c"';
    WHEN 8 THEN INSERT INTO reviews (doc) VALUES (bson_build('_id', n, 'product', k, 'date', n % 50, 'text', 't'));
    WHEN 9 THEN DELETE FROM reviews WHERE _id IN (SELECT doc -> 'reviews' -> 0 -> '_id' FROM products WHERE _id = k);
    WHEN 10 THEN INSERT INTO notes (doc) VALUES (bson_build('_id', n, 'product', k, 'date', n % 50)); DELETE FROM notes WHERE _id = (SELECT min(_id) FROM notes);
    WHEN 11 THEN UPDATE customers SET doc = bson_set(doc, 'name', 'c' || n) WHERE _id = k;
    WHEN 12 THEN INSERT INTO orders (doc) VALUES (bson_build('_id', n, 'customer', k)); UPDATE suppliers SET doc = bson_set(doc, 'name', 's' || n) WHERE _id = k;
    WHEN 13 THEN PERFORM approximation_add('votes', k % 2 + 1, 1); INSERT INTO log VALUES (n);
    WHEN 14 THEN PERFORM approximation_add('pages', 1, 30, 'views'), approximation_sync('votes'); UPDATE cities SET doc = bson_set(doc, 'population', n);
    WHEN 15 THEN UPDATE films SET doc = bson_set(doc, 'specs', n) WHERE _id = k; UPDATE films_whole SET doc = bson_set(doc, 'cast.full', n) WHERE _id = k;
    WHEN 16 THEN PERFORM computed_refresh('made'), reference_refresh('items');
    WHEN 17 THEN PERFORM subset_refresh('products', 'reviews'); UPDATE posts SET doc = bson_set(doc, 'comments.0.author', bson_build('_id', k)) WHERE _id = n % 6 + 1;
    WHEN 18, 19 THEN
      FOR turn IN 1 .. 5 LOOP
        i := nextval('things_s');
        INSERT INTO things (doc) VALUES (thing(i));
        UPDATE things SET doc = bson_set(doc, 'n', 1000 + i % 10) WHERE _id = i - 20;
        DELETE FROM things WHERE _id = i - 1500;
      END LOOP;
    WHEN 20, 21, 22 THEN
      -- in order and late, its session's own ones changed; what meets another session's change is told to try again
      INSERT INTO twin SELECT j % 4, timestamptz '2024-01-01' + (n * 10 - (n % 3) * 400 + j) * interval '7 s', n, me FROM generate_series(1, CASE WHEN n % 17 = 0 THEN 400 ELSE 1 + n % 5 END) j;
      INSERT INTO readings SELECT * FROM twin t WHERE t.n = m;
      IF n % 4 = 0 THEN
        UPDATE readings r SET n = -r.n WHERE r.who = me AND r.n % 5 = k; UPDATE twin r SET n = -r.n WHERE r.who = me AND r.n % 5 = k;
      ELSIF n % 4 = 1 THEN
        DELETE FROM readings r WHERE r.who = me AND r.g = m / 4 % 4 AND r.n % 3 = 0; DELETE FROM twin r WHERE r.who = me AND r.g = m / 4 % 4 AND r.n % 3 = 0;
      ELSIF n % 4 = 2 THEN
        PERFORM bucket_pack('readings');
      END IF;
    WHEN 23 THEN
      PERFORM FROM tomes ORDER BY _id FOR UPDATE;
      PERFORM outlier_push('tomes', k, n, n);
      UPDATE tomes SET doc = bson_array_append(doc, 'x', n) WHERE _id <= k;
      IF n % 5 = 0 THEN PERFORM outlier_pull('tomes', k, n - 3); END IF;
      IF n % 20 = 0 THEN UPDATE tomes_whole SET doc = bson_set(doc, 'x', bson_array(n)) WHERE _id = k; END IF;
      DELETE FROM tome_log;
      INSERT INTO tome_log SELECT _id::int, e::bigint FROM tomes_whole CROSS JOIN bson_elements(doc -> 'x') e;
    WHEN 24 THEN
      -- a subtree moves, nodes come in any order, others go with all below them
      PERFORM pg_advisory_xact_lock(1);
      i := nextval('nodes_s');
      SELECT _id::int INTO a FROM nodes WHERE _id > 1 ORDER BY random() LIMIT 1;
      SELECT _id::int INTO b FROM nodes WHERE NOT tree_is_below(doc, 'anc', a) AND _id <> a ORDER BY random() LIMIT 1;
      UPDATE nodes SET doc = bson_set(doc, 'up', b) WHERE _id = a;
      INSERT INTO nodes (doc) SELECT bson_build('_id', i * 1000 + j, 'up', CASE WHEN j > 1 THEN i * 1000 + j / 2 ELSE a END) FROM generate_series(1, 30) j ORDER BY j DESC;
      INSERT INTO leaves (doc) VALUES (bson_build('_id', i, 'node', i * 1000 + 17));
      DELETE FROM nodes WHERE _id >= (i - 3) * 1000 + 1 AND _id < (i - 2) * 1000;
      DELETE FROM node_log;
      INSERT INTO node_log SELECT _id::int, (doc ->> 'up')::int FROM nodes;
    ELSE
      INSERT INTO blog (doc) VALUES (bson_build('_id', n, 'user', n % 4)); DELETE FROM blog WHERE _id = (SELECT min(_id) FROM blog WHERE _id < n - 100);
      INSERT INTO follows (doc) VALUES (bson_build('_id', n, 'user', n % 7, 'of', k)); DELETE FROM follows WHERE _id = (SELECT min(_id) FROM follows);
  END CASE;
  INSERT INTO done VALUES (n);
  RETURN n;
END $$;

-- A subtree with all of its nodes is moved to and fro.
CREATE FUNCTION move() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(1);
  UPDATE nodes SET doc = bson_set(doc, 'up', CASE WHEN doc -> 'up' = 1 THEN 3 ELSE 1 END) WHERE _id = 2 AND NOT tree_is_below((SELECT n.doc FROM nodes n WHERE n._id = 3), 'anc', 2);
  DELETE FROM node_log;
  INSERT INTO node_log SELECT _id::int, (doc ->> 'up')::int FROM nodes;
END $$;

-- Which queries find other rows in an index than in the table.
CREATE FUNCTION differ() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  condition text;
  one text;
  other text;
  plan text;
BEGIN
  FOREACH condition IN ARRAY ARRAY['doc -> ''n'' = 7', 'doc -> ''n'' > 1000', 'doc @@ ''{n: 5}''', 'doc @@ ''{tags: "t3"}''', 'doc @@ ''{"sub.x": {$gte: 10, $lt: 14}}''', 'doc @@ ''{"sub.name": /^a name that is long enough 1/}''',
      'doc @@ ''{r: {$elemMatch: {k: "k2", v: {$gt: 10, $lt: 20}}}}''', 'doc @@ ''{n: {$gt: 1003}}''', 'doc @> ''{"sub": {"x": 7}}''', 'doc @@ ''{_id: {$gt: 30}}''', 'doc -> ''sub.name'' = ''a name that is long enough 4''::text'] LOOP
    SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexonlyscan = off;
    EXECUTE 'SELECT string_agg(_id::text, '','' ORDER BY _id) FROM things WHERE ' || condition INTO one;
    SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = on; SET LOCAL enable_bitmapscan = on; SET LOCAL enable_indexonlyscan = on;
    EXECUTE 'SELECT string_agg(_id::text, '','' ORDER BY _id) FROM things WHERE ' || condition INTO other;
    EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) SELECT _id FROM things WHERE ' || condition INTO plan;
    IF plan !~ 'Index Cond' THEN RETURN NEXT condition || ' is not looked up'; END IF;
    IF one IS DISTINCT FROM other THEN RETURN NEXT condition || ' differs: ' || coalesce(left(one, 60), 'nothing') || ' in the table, ' || coalesce(left(other, 60), 'nothing') || ' by the index'; END IF;
  END LOOP;
  RESET enable_seqscan;
END $$;

CREATE FUNCTION wrong() RETURNS SETOF text LANGUAGE sql AS $$
  SELECT v::text FROM pattern_check() v;
  SELECT format('%s votes were counted of %s', sum((doc -> 'likes')::int) - 12, (SELECT count(*) FROM log)) FROM votes_whole HAVING sum((doc -> 'likes')::int) - 12 <> (SELECT count(*) FROM log);
  SELECT 'measurements: ' || q FROM ((SELECT * FROM readings EXCEPT ALL SELECT * FROM twin) UNION ALL (SELECT * FROM twin EXCEPT ALL SELECT * FROM readings) LIMIT 3) q;
  SELECT 'arrays: ' || q FROM ((SELECT _id::int, e::bigint FROM tomes_whole CROSS JOIN bson_elements(doc -> 'x') e EXCEPT ALL SELECT * FROM tome_log)
    UNION ALL (SELECT * FROM tome_log EXCEPT ALL SELECT _id::int, e::bigint FROM tomes_whole CROSS JOIN bson_elements(doc -> 'x') e) LIMIT 3) q;
  SELECT 'an element is not found by the index: ' || q FROM tome_log q WHERE NOT outlier_contains('tomes', k, v) LIMIT 3;
  SELECT 'nodes: ' || q FROM ((SELECT _id::int, (doc ->> 'up')::int FROM nodes EXCEPT ALL SELECT * FROM node_log) UNION ALL (SELECT * FROM node_log EXCEPT ALL SELECT _id::int, (doc ->> 'up')::int FROM nodes) LIMIT 3) q;
  SELECT 'nodes below the first: ' || q FROM (SELECT count(*) - (SELECT count(*) FROM tree_descendants('nodes', 1)) FROM nodes) AS q (n) WHERE q.n <> 1;
  SELECT * FROM differ();
  SELECT * FROM indexes_wrong();
$$;
SQL
}

# Statements of one client for ever: a kind of work in a transaction, now and then two, and some that take their time.
load_client() {  # load_client NUMBER KINDS
  awk -v seed=$((seed + load_turn * 100 + $1)) -v kinds="$2" 'function r(n) { return int(rand() * n) + 1 }
    BEGIN { srand(seed); print "SELECT setseed(" rand() ") IS NULL WHERE false;"; for (;;) if (r(4) == 1) print "SELECT work(" r(kinds) "), " (r(2) == 1 ? "pg_sleep(0.03), " : "") "work(" r(kinds) ");"; else print "SELECT work(" r(kinds) ");" }' 2>/dev/null
}

load_start() {  # load_start P [CHORE]
  local i name
  load_turn=$((load_turn + 1)) load_jobs=
  for i in 1 2 3 4 5 6; do
    name=shapes; [ $i -le 3 ] || name=derived
    if [ $name = shapes ]; then load_client $i $load_kinds_shapes; else load_client $i $load_kinds_derived; fi |
      psql -XqAt -v VERBOSITY=verbose -d "$1_$name" >"$DP_WORK/done.$load_turn.$i.$name" 2>"$DP_WORK/errors.$load_turn.$i" &
    load_jobs="$load_jobs $!"
  done
  [ $# = 1 ] && return
  name=derived; [ "$2" != migrate ] || name=shapes
  yes "$(load_chore "$2")" | psql -XqAt -v VERBOSITY=verbose -d "$1_$name" >/dev/null 2>"$DP_WORK/errors.$load_turn.$2" &
  load_jobs="$load_jobs $!"
}

load_chore() {
  case $1 in
    build) echo "SELECT attribute_enable('heap', 'list', prefix => 'x_'); CALL pattern_build('heap', 'list', 20); SELECT pattern_disable('heap', 'list');" ;;
    spill) echo "SELECT outlier_enable('heap', 'l', 10, keep => 5, chunk => 7); CALL pattern_build('heap', 'l', 20); SELECT pattern_disable('heap', 'l');" ;;
    repair) echo "SET docpatterns.maintain = off; UPDATE tally SET doc = bson_set(doc, 'sum', -1); RESET docpatterns.maintain; SELECT pattern_repair('tally', 'totals'); UPDATE tally_of SET doc = bson_set(doc, 'x', 1 - (doc ->> 'x')::int);" ;;
    alter) echo "SELECT pattern_alter('tomes', 'x', '{threshold: 15}'); SELECT pattern_alter('tomes', 'x', '{threshold: 25}'); SELECT pattern_repair('tomes', 'x'), pattern_repair('blog', name) FROM pattern_list('blog');" ;;
    pack) echo "SELECT bucket_pack('readings'); SELECT bucket_resize('readings', '1 day'); SELECT bucket_pack('readings'); SELECT bucket_resize('readings', '20 min');" ;;
    move) echo "SELECT move();" ;;
    index) echo "CREATE INDEX things_gin ON things USING gin (doc bson_ops); CREATE INDEX CONCURRENTLY things_more ON things USING gin (doc bson_ops (paths = 'sub')); CREATE INDEX things_x ON things ((doc -> 'sub.x')); DROP INDEX things_gin, things_more, things_x;" ;;
    vacuum) echo "VACUUM things; VACUUM (FULL) screenings; VACUUM readings_packed, readings_recent; REINDEX TABLE CONCURRENTLY things; CLUSTER tomes USING tomes_pkey; VACUUM (FREEZE) nodes; ANALYZE;" ;;
    migrate) echo "CALL schema_versioning_migrate('movies', batch => 10, target => 1); CALL schema_versioning_migrate('movies', batch => 10); SELECT kv_purge('game'); SELECT change_feed_purge('parts', until => change_feed_position('parts') - 50); VACUUM game.scores; REINDEX TABLE CONCURRENTLY orders_by_user;" ;;
  esac
}

# shellcheck disable=SC2086
load_wait() { wait $load_jobs 2>/dev/null; }

load_stop() {
  psql -XqAt -d postgres -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname IN ('$1_shapes', '$1_derived')" >/dev/null
  load_wait
}

load_finish() {
  psql -XqAt -v ON_ERROR_STOP=1 -d "$1_derived" 2>&1 <<'SQL'
SET client_min_messages = warning;
SELECT format('DROP INDEX %s', indexrelid::regclass) FROM pg_index WHERE NOT indisvalid AND indexrelid >= 16384 AND indrelid >= 16384 ORDER BY indexrelid::regclass::text !~ '_ccnew' \gexec
DROP INDEX IF EXISTS things_gin, things_more, things_x;
SELECT format('CALL pattern_build(%L, %L)', rel, name) FROM pattern_list('heap') \gexec
SELECT v FROM pattern_check('heap') v;
SELECT CASE WHEN pattern_disable('heap', name) < 0 THEN name END FROM pattern_list('heap') \g /dev/null
SELECT count(*) || ' documents of the heap are not what they were' FROM heap_before b FULL JOIN heap h USING (_id) WHERE h.doc::jsonb IS DISTINCT FROM b.doc HAVING count(*) > 0;
SELECT pattern_repair('tally', 'totals') \g /dev/null
SQL
}

load_wrong() {
  local name
  for name in shapes derived; do
    PGOPTIONS='-c client_min_messages=warning -c timezone=UTC' psql -XqAt -d "$1_$name" -c 'SELECT * FROM wrong()' 2>&1 | head -5
  done
}

load_lost() {
  local name
  for name in shapes derived; do
    { echo 'CREATE TEMP TABLE told (n bigint); COPY told FROM stdin;'; cat "$DP_WORK"/done.*."$name" | tr '|' '\n' | grep .; printf '%s\n' '\.' "SELECT 'lost of $name: ' || n FROM told WHERE NOT EXISTS (SELECT FROM done d WHERE d.n = told.n) ORDER BY n LIMIT 5;"; } |
      psql -XqAt -d "$1_$name" 2>&1
  done
}

# How many transactions were told to be committed, of one database or of both.
load_told() {  # load_told [shapes|derived]
  cat "$DP_WORK"/done.*."${1:-}"* 2>/dev/null | tr '|' '\n' | grep -c .
}

load_each() {
  local kind name
  for name in shapes derived; do
    for kind in $(eval "seq \$load_kinds_$name; seq \$load_kinds_$name"); do echo "SELECT 'nothing' WHERE work($kind) IS NULL;"; done | psql -XqAt -d "$1_$name" 2>&1
  done
}
