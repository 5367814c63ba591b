-- Ordered access: what btree and hash indexes on (doc -> 'path') and on columns of type bson_value serve, with the plans, and that
-- the answers are those of a sequential scan.
\set QUIET 1
\pset fieldsep '\n'
SET client_min_messages = warning;
SET timezone = 'UTC';
SET jit = off;
SET max_parallel_workers_per_gather = 0;
-- no transaction: VACUUM tells which pages need not be looked at
SELECT plan(89);

CREATE TABLE made AS SELECT collection_create('c') AS rel;
INSERT INTO c (doc) SELECT CASE WHEN i % 200 = 0 THEN d ELSE bson_unset(d, 'sparse') END FROM generate_series(1, 4000) i, bson_build('_id', i, 'n', i % 1000, 'd', i * 0.25::float8, 's', 's' || i % 700, 'b', i % 100 = 0, 'at', timestamptz '2024-01-01' + i * interval '1 hour', 'o', objectid(lpad(to_hex(i), 24, '0')), 'u', lpad(i::text, 32, '0')::uuid,
   'sub', bson_build('x', i % 500), 'g', i % 20, 'sparse', i) d;
CREATE INDEX c_n ON c ((doc -> 'n'));
CREATE INDEX c_d ON c ((doc -> 'd'));
CREATE INDEX c_s ON c ((doc -> 's'));
CREATE INDEX c_b ON c ((doc -> 'b')) WHERE doc -> 'b' = true;
CREATE INDEX c_at ON c ((doc -> 'at'));
CREATE INDEX c_o ON c ((doc -> 'o'));
CREATE INDEX c_u ON c ((doc -> 'u'));
CREATE INDEX c_g ON c ((doc -> 'g'), (doc -> 'at') DESC);
CREATE INDEX c_sparse ON c ((doc -> 'sparse'));
CREATE INDEX c_x ON c ((doc -> 'sub.x') DESC);
CREATE UNIQUE INDEX c_id ON c ((doc -> '_id'));
CREATE INDEX c_hash ON c USING hash ((doc -> 's'));
-- what a session with an older snapshot may see keeps VACUUM from it: an ANALYZE that the server has begun, say
CREATE FUNCTION pg_temp.wait_until_alone() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. 600 LOOP
    PERFORM pg_stat_clear_snapshot();
    EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL));
    PERFORM pg_sleep(0.1);
  END LOOP;
END $$;
SELECT pg_temp.wait_until_alone() \g /dev/null
VACUUM ANALYZE c;

CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; result text := '';
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP result := concat_ws(E'\n', nullif(result, ''), line); END LOOP;
  RETURN result;
END $$;
-- The rows of a query, in its order.
CREATE FUNCTION rows_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; result text := '';
BEGIN
  FOR r IN EXECUTE query LOOP result := result || r::text || E'\n'; END LOOP;
  RETURN result;
END $$;
CREATE FUNCTION rows_without_indexes(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
  SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; SET LOCAL enable_bitmapscan = off;
  result := rows_of(query);
  SET LOCAL enable_indexscan = on; SET LOCAL enable_indexonlyscan = on; SET LOCAL enable_bitmapscan = on;
  RETURN result;
END $$;

-- ---------------------------------------------------------------- comparisons

-- The whole condition is looked up and nothing is left to be filtered.
SELECT ok(plan_of(q) ~ i AND plan_of(q) ~ 'Index Cond' AND plan_of(q) !~ 'Filter|Seq Scan' AND rows_of(q || ' ORDER BY 1') = rows_without_indexes(q || ' ORDER BY 1') AND rows_of(q) <> '', w) FROM (
  SELECT w, i, 'SELECT _id FROM c WHERE ' || w AS q FROM (VALUES
  ($$doc -> 'n' = 5$$, 'c_n'), ($$doc -> 'n' = '5'$$, 'c_n'), ($$doc -> 'n' = 5::smallint$$, 'c_n'), ($$doc -> 'n' = 5::bigint$$, 'c_n'), ($$doc -> 'n' = 5.0$$, 'c_n'), ($$doc -> 'n' = 5::float8$$, 'c_n'), ($$doc -> 'n' = 5::real$$, 'c_n'),
  ($$5 = doc -> 'n'$$, 'c_n'), ($$doc -> 'n' > 990$$, 'c_n'), ($$doc -> 'n' < 9.5$$, 'c_n'), ($$990 <= doc -> 'n'$$, 'c_n'), ($$doc -> 'n' BETWEEN 10 AND 20$$, 'c_n'), ($$doc -> 'n' > 5 AND doc -> 'n' <= 7.5::float8 AND doc -> 'n' < 100::bigint$$, 'c_n'),
  ($$doc -> 'd' = 10.25$$, 'c_d'), ($$doc -> 'd' >= 990$$, 'c_d'), ($$doc -> 's' = 's77'::text$$, 'c_(s|hash)'), ($$doc -> 's' = '"s77"'$$, 'c_(s|hash)'), ($$doc -> 's' > 's698'::text AND doc -> 's' < '{}'$$, 'c_s'), ($$doc -> 'at' < timestamptz '2024-01-02'$$, 'c_at'), ($$doc -> 'at' >= date '2024-01-01' AND doc -> 'at' < date '2024-01-03'$$, 'c_at'),
  ($$doc -> 'at' = timestamptz '2024-02-01 05:00'$$, 'c_at'), ($$doc -> 'o' = objectid '000000000000000000000123'$$, 'c_o'), ($$doc -> 'o' < objectid '000000000000000000000012'$$, 'c_o'), ($$doc -> 'u' = uuid '00000000-0000-0000-0000-000000000123'$$, 'c_u'), ($$doc -> 'u' > uuid '00000000-0000-0000-0000-000000003990'$$, 'c_u'),
  ($$doc -> 'sub.x' = 5$$, 'c_x'), ($$doc -> 'sub.x' > 495$$, 'c_x'), ($$doc -> 'n' IN (5, 7, 9)$$, 'c_n'), ($$doc -> 'n' IN ('5', '7')$$, 'c_n'), ($$doc -> 'n' = ANY (ARRAY[5, 7, 2000])$$, 'c_n'), ($$doc -> 'n' = ANY ('{5,7}'::bson_value[])$$, 'c_n'), ($$doc -> 'n' = ANY ('{5,7}'::numeric[])$$, 'c_n'), ($$doc -> 's' = ANY ('{s5,s7}'::text[])$$, 'c_(s|hash)'),
  ($$doc -> 'sparse' IS NOT NULL$$, 'c_sparse'), ($$doc -> 'sparse' = 400$$, 'c_sparse'), ($$_id = 17$$, 'c_pkey'), ($$_id IN (17, 18)$$, 'c_pkey'), ($$_id < 20::float8$$, 'c_pkey'), ($$doc -> '_id' = 17$$, 'c_id')) v (w, i)) x;
SELECT ok(plan_of(q) ~ 'Index Scan using c_b' AND rows_of(q) = rows_without_indexes(q), 'a partial index is for a query that has its condition') FROM (VALUES ($$SELECT _id FROM c WHERE doc -> 'b' = true ORDER BY doc -> 'b', _id$$)) x (q);
CREATE TABLE few AS SELECT _id, CASE WHEN _id > 20 THEN bson_set(doc, 'sparse', 1) ELSE doc END AS doc FROM c;
CREATE INDEX few_sparse ON few ((doc -> 'sparse'));
CREATE INDEX few_g ON few ((doc -> 'g'), (doc -> 'at') DESC);
CREATE INDEX few_gn ON few ((doc -> 'g'), (doc -> 'n'));
VACUUM ANALYZE few;
SELECT ok(plan_of(q) ~ 'Index Cond: .*IS NULL' AND rows_of(q) = rows_without_indexes(q) AND rows_of(q) <> '', 'IS NULL') FROM (VALUES ($$SELECT _id FROM few WHERE doc -> 'sparse' IS NULL ORDER BY _id$$)) x (q);

-- Several fields: equality on the first, then a range; or the rows after one that is known, for the next page of a list.
SELECT ok(plan_of(q) ~ i AND plan_of(q) !~ 'Filter|Seq Scan' AND rows_of(q) = rows_without_indexes(q) AND rows_of(q) <> '', w) FROM (SELECT w, i, 'SELECT _id FROM few WHERE ' || w || ' ORDER BY _id' AS q FROM (VALUES
  ($$doc -> 'g' = 3 AND doc -> 'at' > timestamptz '2024-06-10'$$, 'few_g\M.*Cond:.*at'), ($$doc -> 'g' = 3 AND doc -> 'at' IN (timestamptz '2024-01-01 23:00', timestamptz '2024-01-02')$$, 'few_g\M.*Cond:.*at'), ($$doc -> 'g' IN (3, 4) AND doc -> 'n' = 3$$, 'few_gn'),
  ($$(doc -> 'g', doc -> 'n') > ('19'::bson_value, '17'::bson_value)$$, 'few_gn.*Cond: \(ROW'), ($$(doc -> 'g', doc -> 'n') >= (19, 17.5)$$, 'few_gn.*Cond: \(ROW')) v (w, i)) x;

-- What is not known when the query is planned.
SET plan_cache_mode = force_generic_plan;
PREPARE by_int (int) AS SELECT _id FROM c WHERE doc -> 'n' = $1;
PREPARE by_value (bson_value) AS SELECT _id FROM c WHERE doc -> 'n' >= $1 AND doc -> 'n' < '3' ORDER BY _id;
PREPARE by_text (text) AS SELECT _id FROM c WHERE doc -> 's' = $1;
PREPARE by_array (bson_value[]) AS SELECT _id FROM c WHERE doc -> 'n' = ANY ($1);
PREPARE by_ints (int[]) AS SELECT _id FROM c WHERE doc -> 'n' = ANY ($1);
SELECT matches(plan_of(q), 'Index Cond', 'a parameter: ' || q) FROM unnest(ARRAY['EXECUTE by_int(5)', $$EXECUTE by_value('2')$$, $$EXECUTE by_text('s5')$$, $$EXECUTE by_array('{5,7}')$$, $$EXECUTE by_ints('{5,7}')$$]) q;
SELECT results_eq('EXECUTE by_ints(''{5,7,5}'')', 'SELECT _id FROM c WHERE _id::int % 1000 IN (5, 7)', 'and its answer');
RESET plan_cache_mode;

-- ---------------------------------------------------------------- order

SELECT ok(plan_of(q) ~ i AND plan_of(q) !~ 'Sort' AND rows_of(q) = rows_without_indexes(q) AND rows_of(q) <> '', q) FROM (VALUES
  ($$SELECT _id, doc -> 'd' FROM c ORDER BY doc -> 'd' LIMIT 10$$, 'Index Scan using c_d'), ($$SELECT _id FROM c ORDER BY doc -> 'd' DESC LIMIT 10$$, 'Backward using c_d'), ($$SELECT _id FROM c WHERE doc -> 'd' > 500 ORDER BY doc -> 'd' LIMIT 10$$, 'Index Scan using c_d'),
  ($$SELECT _id FROM few WHERE doc -> 'g' = 5 ORDER BY doc -> 'at' DESC LIMIT 10$$, 'Index Scan using few_g'), ($$SELECT _id FROM c ORDER BY doc -> 'g', doc -> 'at' DESC LIMIT 10$$, 'Index Scan using c_g'), ($$SELECT _id FROM c ORDER BY doc -> 'g' DESC, doc -> 'at' LIMIT 10$$, 'Backward using c_g'),
  ($$SELECT _id FROM c ORDER BY doc -> 'sub.x' DESC, doc -> 'sub.x' LIMIT 1 OFFSET 0$$, 'Index Scan using c_x'), ($$SELECT _id FROM c ORDER BY _id DESC LIMIT 5$$, 'Backward using c_pkey'),
  ($$SELECT _id FROM c WHERE doc -> 'd' > '{"$minKey": 1}' AND (doc -> 'n') <> 7 ORDER BY doc -> 'd' LIMIT 10 OFFSET 20$$, 'c_d'),
  ($$SELECT min(doc -> 'd') FROM c$$, 'Index Scan using c_d'), ($$SELECT max(doc -> 'd') FROM c$$, 'Backward using c_d'), ($$SELECT max(doc -> 'at') FROM few WHERE doc -> 'g' = 5$$, 'few_g')) x (q, i);
SELECT ok(plan_of(q) ~ 'Incremental Sort.*Presorted Key.*Index Scan using c_d', 'a part of the order: the rest is sorted') FROM (VALUES ($$SELECT _id FROM c ORDER BY doc -> 'd', doc -> 'n' DESC LIMIT 5$$)) x (q);
SET enable_hashagg = off; SET enable_sort = off; SET enable_seqscan = off;
SELECT ok(plan_of(q) ~ 'Index Scan using c_n' AND plan_of(q) !~ 'Sort' AND rows_of(q) = rows_without_indexes(q), q) FROM (VALUES ($$SELECT doc -> 'n', count(*) FROM c GROUP BY doc -> 'n'$$), ($$SELECT DISTINCT doc -> 'n' FROM c$$)) x (q);
RESET enable_hashagg; RESET enable_sort; RESET enable_seqscan;
-- ---------------------------------------------------------------- joins

CREATE TABLE ints AS SELECT i AS id, 's' || i AS s FROM generate_series(1, 300) i;
CREATE INDEX ints_id ON ints (id);
VACUUM ANALYZE ints;
SET enable_hashjoin = off; SET enable_mergejoin = off;
SELECT ok(plan_of(q) ~ 'Nested Loop.*Index Cond: \(\(.*doc -> .* = ' AND rows_of(q) = r, 'nested loop: ' || q) FROM (VALUES ($$SELECT count(*) FROM few a JOIN c b ON b.doc -> 'n' = a.doc -> '_id' WHERE a._id < 100$$, E'(396)\n'),
  ($$SELECT count(*) FROM ints JOIN c ON doc -> 'n' = id WHERE id < 50$$, E'(196)\n'), ($$SELECT count(*) FROM ints JOIN c ON doc -> 's' = s WHERE id < 50$$, E'(294)\n'), ($$SELECT count(*) FROM ints JOIN c ON doc -> 'n' = ANY (ARRAY[id, id + 1]) WHERE id < 50$$, E'(392)\n')) x (q, r);
RESET enable_hashjoin; RESET enable_mergejoin;
SET enable_hashjoin = off; SET enable_nestloop = off;
SELECT ok(plan_of(q) ~ 'Merge Join' AND plan_of(q) ~ i AND rows_of(q) = r, 'merge join: ' || q) FROM (VALUES ($$SELECT count(*) FROM c a JOIN c b ON a.doc -> 'd' = b.doc -> '_id'$$, 'Index', E'(1000)\n')) x (q, i, r);
RESET enable_hashjoin; RESET enable_nestloop;
SET enable_mergejoin = off; SET enable_nestloop = off;
SELECT ok(plan_of(q) ~ 'Hash Join' AND rows_of(q) = r, 'hash join: ' || q) FROM (VALUES ($$SELECT count(*) FROM c a JOIN c b ON a.doc -> 'd' = b.doc -> '_id'$$, E'(1000)\n'), ($$SELECT count(*) FROM c JOIN ints ON doc -> 'n' = id$$, E'(1200)\n'), ($$SELECT count(*) FROM c JOIN ints ON doc -> 's' = s$$, E'(1800)\n')) x (q, r);
RESET enable_mergejoin; RESET enable_nestloop;

-- ---------------------------------------------------------------- columns

SELECT ok(plan_of(q) ~ 'Index Only Scan (Backward )?using c_pkey' AND rows_of(q) = rows_without_indexes(q) AND rows_of(q) <> '', 'index-only: ' || q) FROM (VALUES ($$SELECT _id FROM c WHERE _id > 3990 ORDER BY _id$$), ($$SELECT max(_id) FROM c$$), ($$SELECT _id FROM c WHERE _id = ANY ('{1,5}'::int[]) ORDER BY _id$$), ($$SELECT count(*) FROM c WHERE _id < 10$$)) x (q);
CREATE TABLE gen (doc bson, price bson_value GENERATED ALWAYS AS (doc -> 'price') STORED, name text GENERATED ALWAYS AS (doc ->> 'name') STORED);
INSERT INTO gen SELECT bson_build('price', i % 997, 'name', 'n' || i) FROM generate_series(1, 3000) i;
CREATE INDEX gen_price ON gen (price) INCLUDE (name);
SELECT pg_temp.wait_until_alone() \g /dev/null
VACUUM ANALYZE gen;
SELECT ok(plan_of(q) ~ 'Index Only Scan (Backward )?using gen_price' AND rows_of(q) = rows_without_indexes(q) AND rows_of(q) <> '', 'index-only: ' || q) FROM (VALUES ($$SELECT price, name FROM gen WHERE price > 990 ORDER BY price, name$$), ($$SELECT price FROM gen ORDER BY price DESC LIMIT 5$$)) x (q);

-- ---------------------------------------------------------------- unique

SELECT throws_ok($$INSERT INTO c (_id, doc) VALUES ('17.0', '{_id: 17.0}')$$, '23505', NULL, 'numbers are equal across types');
CREATE TABLE users (doc bson);
CREATE UNIQUE INDEX users_email ON users ((doc -> 'email'));
INSERT INTO users VALUES ('{email: "a"}'), ('{}'), ('{}');
SELECT throws_ok($$INSERT INTO users VALUES ('{email: "a", x: 1}')$$, '23505', NULL, 'a unique path');
SELECT lives_ok($$INSERT INTO users VALUES ('{email: "a", x: 1}') ON CONFLICT ((doc -> 'email')) DO UPDATE SET doc = users.doc || EXCLUDED.doc$$, 'ON CONFLICT finds the index');
SELECT is((SELECT doc ->> 'x' FROM users WHERE doc -> 'email' = 'a'::text), '1', 'and the row');
SELECT lives_ok($$INSERT INTO users VALUES ('{email: "A"}') ON CONFLICT DO NOTHING$$, 'case counts');
SELECT throws_ok($$INSERT INTO users VALUES (bson_build('email', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 200) i)))$$, '54000', NULL, 'a value of more than a third of a page does not fit into a btree index');

-- ---------------------------------------------------------------- others

CREATE TABLE parts (k int, doc bson) PARTITION BY LIST (k);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts2 PARTITION OF parts FOR VALUES IN (2);
CREATE INDEX ON parts ((doc -> 'n'));
INSERT INTO parts SELECT 1 + i % 2, bson_build('n', i) FROM generate_series(1, 3000) i;
VACUUM ANALYZE parts;
SELECT ok(plan_of(q) ~ 'Merge Append' AND plan_of(q) !~ '> Sort' AND rows_of(q) = rows_without_indexes(q), 'partitions give one order') FROM (VALUES ($$SELECT doc -> 'n' FROM parts ORDER BY doc -> 'n' LIMIT 7$$)) x (q);
SELECT is((SELECT stakeys FROM (SELECT count(*) AS stakeys FROM pg_stats WHERE tablename = 'c_n' AND n_distinct <> 0 AND most_common_vals IS NOT NULL) x), 1::bigint, 'an index on an expression has statistics');
SELECT * FROM finish();
