-- Btree indexes on fields serve filters and both orders of SQL: the plans, and the same rows as without an index.
\set QUIET 1
SET client_min_messages = warning;
BEGIN;
SELECT plan(433);

CREATE FUNCTION lines(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; result text := '';
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    result := concat_ws('|', nullif(result, ''), regexp_replace(line, '^ *(-> *)?', ''));
  END LOOP;
  RETURN result;
END $$;
CREATE FUNCTION looks(query text, part text) RETURNS text LANGUAGE sql AS $$SELECT matches(lines(query), part, query)$$;

SELECT setseed(0.5);
CREATE TABLE plain (id int, doc bson);
INSERT INTO plain SELECT i, bson_build('_id', i, 'b', i % 1000, 'at', timestamptz '2024-01-01Z' + i * interval '1 minute', 'c', 'c' || i % 200, 'sub', bson_build('x', i % 700)) FROM generate_series(1, 10000) i;
CREATE TABLE docs (LIKE plain);
INSERT INTO docs SELECT * FROM plain;
SELECT collection_create_index('docs', k) FROM unnest('{"{b: 1}","{at: -1}","{\"sub.x\": 1}","{c: 1, at: -1}"}'::bson[]) k \g /dev/null
ANALYZE docs;
ANALYZE plain;

-- ---------------------------------------------------------------- filters

\set array '.*\\[\\].*'
SELECT looks($$SELECT * FROM docs WHERE doc @@ '{b: 5}'$$, $$^Bitmap Heap Scan on docs\|Recheck Cond: .*\|Filter: \(doc @@ '\{"b": 5\}'::bson\)\|BitmapOr\|Bitmap Index Scan on docs_b_idx\|Index Cond: \(\(doc -> 'b'::text\) = '5'::bson_value\)\|Bitmap Index Scan on docs_b_idx\|Index Cond: .*'\[\]'.*$$);
SELECT looks($$SELECT * FROM docs WHERE bson_match(doc, '{b: 5}')$$, $$BitmapOr\|Bitmap Index Scan on docs_b_idx$$);
SELECT looks($$SELECT * FROM docs WHERE doc @@ '{"sub.x": 7}'$$, $$BitmapOr\|Bitmap Index Scan on docs_sub_x_idx.*IS NULL\)$$);
SELECT looks($$SELECT * FROM docs WHERE doc @@ '{b: {$gte: 5, $lt: 7}}'$$, $$>= '5'::bson_value\) AND .* < '7'::bson_value.*Bitmap Index Scan on docs_b_idx$$);
SELECT looks($$SELECT * FROM docs WHERE doc @@ '{b: {$in: [5, 6]}}'$$, $$= ANY \('\{5,6\}'::bson_value\[\]\)$$);
SELECT looks($$SELECT * FROM docs WHERE doc @@ '{$and: [{b: 5}, {z: 1}]}'$$, 'docs_b_idx');
SELECT looks($$SELECT * FROM (SELECT * FROM docs WHERE id > 5) d WHERE doc @@ '{b: 5}'$$, 'docs_b_idx');
SELECT looks($$SELECT * FROM docs a JOIN plain USING (id) WHERE a.doc @@ '{b: 5}'$$, 'docs_b_idx');
SELECT looks(format($$SELECT * FROM docs WHERE doc @@ %L$$, f), '^Seq Scan') FROM unnest('{"{b: null}","{b: {$ne: 5}}","{b: {$exists: false}}","{$or: [{b: 5}, {c: 1}]}","{b: {$gt: MinKey}}","{z: 1}","{b: {$gte: 0}}"}'::text[]) f;
SELECT looks($$SELECT * FROM docs a JOIN plain p ON a.doc @@ p.doc$$, 'Nested Loop');
CREATE VIEW seen AS SELECT id, doc FROM docs;
SELECT looks($$SELECT * FROM seen WHERE doc @@ '{b: 5}'$$, 'docs_b_idx');
PREPARE one(bson) AS SELECT id FROM docs WHERE doc @@ $1;
SELECT looks($$EXECUTE one('{b: 5}')$$, 'docs_b_idx');
SET LOCAL plan_cache_mode = force_generic_plan;
SELECT looks($$EXECUTE one('{b: 5}')$$, '^Seq Scan');
RESET plan_cache_mode;
SELECT made FROM collection_create('coll') AS made \g /dev/null
INSERT INTO coll (doc) SELECT doc FROM plain;
ANALYZE coll;
SELECT looks($$SELECT * FROM coll WHERE doc @@ '{_id: 5}'$$, $$^Index Scan using coll_pkey on coll\|Index Cond: \(_id = '5'::bson_value\)\|Filter$$);
CREATE TABLE parts (id int, doc bson) PARTITION BY RANGE (id);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (5000);
CREATE TABLE parts2 PARTITION OF parts FOR VALUES FROM (5000) TO (20000);
INSERT INTO parts SELECT * FROM plain;
CREATE INDEX ON parts ((doc -> 'b') DESC);
ANALYZE parts;
SELECT looks($$SELECT * FROM parts WHERE doc @@ '{b: 5}'$$, $$Bitmap Index Scan on parts1_expr_idx.*Bitmap Index Scan on parts2_expr_idx$$);
SELECT is((SELECT count(*) FROM parts WHERE doc @@ '{b: 5}'), 10::bigint, 'in all partitions');
SELECT results_eq($$SELECT doc -> 'b' FROM parts ORDER BY doc -> 'b' DESC LIMIT 50$$, $$SELECT doc -> 'b' FROM plain ORDER BY doc -> 'b' DESC LIMIT 50$$, 'an order over partitions');
ALTER TABLE docs ADD CONSTRAINT no_array CHECK (bson_typeof(doc, 'b') <> 'array');
SELECT looks($$SELECT * FROM docs WHERE doc @@ '{b: 5}'$$, $$Index Cond: \(\(doc -> 'b'::text\) = '5'::bson_value\)$$);
SELECT doesnt_match(lines($$SELECT * FROM docs WHERE doc @@ '{b: 5}'$$), '\[\]', 'a check excludes arrays');
ALTER TABLE docs DROP CONSTRAINT no_array;
CREATE ROLE field_reader;
GRANT SELECT ON docs TO field_reader;
ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
CREATE POLICY even ON docs USING (id % 2 = 0);
SET LOCAL ROLE field_reader;
SELECT looks($$SELECT * FROM docs WHERE doc @@ '{b: 6}'$$, $$^Seq Scan$$);
SELECT is((SELECT count(*) FROM docs WHERE doc @@ '{b: 6}'), 10::bigint, 'with a policy');
RESET ROLE;
ALTER TABLE docs DISABLE ROW LEVEL SECURITY;

-- ---------------------------------------------------------------- orders

SELECT looks($$SELECT id FROM docs ORDER BY doc -> 'at' DESC LIMIT 5$$, $$Append\|Index Scan using docs_at_idx on docs\|Index Cond: \(\(doc -> 'at'::text\) IS NULL\)\|Index Scan using docs_at_idx on docs\|Index Cond: \(\(doc -> 'at'::text\) IS NOT NULL\)$$);
SELECT looks($$SELECT id FROM docs ORDER BY doc -> 'at' LIMIT 5$$, $$Append\|Index Scan Backward using docs_at_idx on docs\|Index Cond: \(\(doc -> 'at'::text\) IS NOT NULL\)\|Index Scan Backward using docs_at_idx on docs\|Index Cond: \(\(doc -> 'at'::text\) IS NULL\)$$);
SELECT looks($$SELECT id FROM docs ORDER BY doc -> 'at' DESC NULLS LAST LIMIT 5$$, $$^Limit\|Index Scan using docs_at_idx on docs$$);
SELECT looks($$SELECT id FROM docs ORDER BY doc -> 'at' NULLS FIRST LIMIT 5$$, $$^Limit\|Index Scan Backward using docs_at_idx on docs$$);
SELECT looks($$SELECT id FROM docs WHERE doc -> 'c' = 'c5'::text ORDER BY doc -> 'at' DESC LIMIT 5$$, $$Append\|Index Scan using docs_c_at_idx on docs\|Index Cond: .*= '"c5"'.* IS NULL$$);
SELECT looks($$SELECT id FROM docs WHERE doc -> 'at' < timestamptz '2024-01-03Z' ORDER BY doc -> 'at' DESC LIMIT 5$$, $$Append\|Index Scan using docs_at_idx$$);
SELECT looks($$SELECT id FROM docs ORDER BY doc -> 'b' DESC, id LIMIT 5$$, $$Incremental Sort.*Append\|Index Scan Backward using docs_b_idx$$);
SELECT looks($$SELECT id FROM seen ORDER BY doc -> 'at' DESC LIMIT 5$$, $$Append\|Index Scan using docs_at_idx$$);
SELECT looks($$SELECT a.id FROM docs a JOIN plain p ON p.id = a.id ORDER BY a.doc -> 'at' DESC LIMIT 1$$, $$Index Scan using docs_at_idx|Sort$$);
SELECT looks($$SELECT id FROM docs ORDER BY doc -> 'c', doc -> 'at' LIMIT 5$$, $$Incremental Sort|Sort$$);
SELECT looks($$SELECT id FROM docs ORDER BY doc -> 'at' DESC LIMIT 5 FOR UPDATE$$, $$LockRows\|Result\|Append\|Custom Scan \(Changed Row\) on docs\|Index Scan using docs_at_idx$$);
SELECT looks($$SELECT id FROM parts ORDER BY doc -> 'b' DESC NULLS LAST LIMIT 5$$, $$Merge Append\|Sort Key: .*\|Append\|Index Scan using parts1_expr_idx.*\|Append\|Index Scan using parts2_expr_idx$$);

-- ---------------------------------------------------------------- sort keys

-- values before all arrays and after them, arrays, and what is missing
SELECT looks($$SELECT id FROM docs ORDER BY bson_sort_key(doc, '{at: -1}') LIMIT 5$$, $r$^Limit\|Result\|Merge Append\|Sort Key: \(bson_sort_key\(doc, '\{"at": -1\}'::bson\)\)\|Index Scan using docs_at_idx on docs\|Index Cond: [^|]* < '\[\]'::bson_value\)\|Index Scan using docs_at_idx on docs\|Index Cond: [^|]* >= '[^|]*\|Sort\|Sort Key: [^|]*\|Index Scan using docs_at_idx on docs\|Index Cond: [^|]*\[\][^|]*\|Sort\|[^|]*\|Index Scan using docs_at_idx on docs\|Index Cond: [^|]* IS NULL\)$$r$);
SELECT looks($$SELECT id FROM docs WHERE doc IS NOT NULL ORDER BY bson_sort_key(doc, '{at: 1}') LIMIT 5$$, $r$Backward using docs_at_idx on docs\|[^|]*\[\][^|]*\|Index Scan Backward using docs_at_idx on docs\|Index Cond: [^|]* IS NULL\)\|Filter[^|]*$$r$);
SELECT looks($$SELECT id FROM docs ORDER BY bson_sort_key(doc, '{at: -1}') DESC LIMIT 5$$, 'Merge Append.*Index Scan Backward using docs_at_idx');
SELECT looks($$SELECT id FROM docs WHERE doc -> 'c' = 'c5'::text ORDER BY bson_sort_key(doc, '{at: -1}') LIMIT 5$$, $$Merge Append.*Index Scan using docs_c_at_idx on docs\|Index Cond: [^|]* = '"c5"'[^|]* < '\[\]'$$);
SELECT looks($$SELECT id FROM docs WHERE doc @@ '{c: "c5"}' ORDER BY bson_sort_key(doc, '{at: -1}') LIMIT 5$$, $$Merge Append\|[^|]*\|Sort\|[^|]*\|Index Scan using docs_c_at_idx on docs\|[^|]*\[\][^|]*\|Filter: [^|]*\|Index Scan using docs_c_at_idx on docs\|Index Cond: [^|]* = '"c5"'[^|]* < '\[\]'$$);
SELECT looks($$SELECT id FROM docs ORDER BY bson_sort_key(doc, '{at: -1}'), id LIMIT 5$$, 'Incremental Sort.*Merge Append');
SELECT looks($$SELECT id FROM docs ORDER BY bson_sort_key(doc, '{at: -1}'), bson_sort_key(doc, '{at: -1, b: 1}') LIMIT 5$$, 'Incremental Sort.*Merge Append');
SELECT looks($$SELECT id FROM seen ORDER BY bson_sort_key(doc, '{at: -1}') LIMIT 5$$, 'Merge Append');
SELECT looks($$SELECT id FROM docs d WHERE EXISTS (SELECT FROM plain p WHERE p.id = d.id) ORDER BY bson_sort_key(doc, '{at: -1}') LIMIT 5$$, 'Merge Append.*Index Scan using docs_at_idx on docs d');
SELECT looks($$SELECT (SELECT d.id FROM docs d WHERE d.doc -> 'c' = p.doc -> 'c' ORDER BY bson_sort_key(d.doc, '{at: -1}') LIMIT 1) FROM plain p$$, $$Merge Append.*Index Cond: [^|]* = \(p.doc -> 'c'::text\)[^|]* < '\[\]'$$);
SELECT looks($$SELECT id, row_number() OVER (ORDER BY bson_sort_key(doc, '{at: -1}')) FROM docs LIMIT 5$$, 'WindowAgg.*Merge Append');
SELECT looks($$SELECT id FROM docs ORDER BY bson_sort_key(doc, '{at: -1}') LIMIT 5 FOR UPDATE$$, $$LockRows\|Result\|Merge Append\|[^|]*\|Custom Scan \(Changed Row\) on docs\|Index Scan using docs_at_idx$$);
SELECT looks($$SELECT id FROM parts ORDER BY bson_sort_key(doc, '{b: -1}') LIMIT 5$$, 'Merge Append.*Merge Append.*Index Scan using parts1_expr_idx.*Merge Append.*Index Scan using parts2_expr_idx');
SELECT doesnt_match(lines(q), 'Append', q) FROM unnest(ARRAY[$$SELECT id FROM docs ORDER BY bson_sort_key(doc, '{b: 1}')$$, $$SELECT id FROM docs ORDER BY bson_sort_key(doc, '{at: -1, b: 1}') LIMIT 5$$, $$SELECT id FROM docs ORDER BY bson_sort_key(doc, '{c: 1, at: -1}') LIMIT 5$$, $$SELECT id FROM docs ORDER BY bson_sort_key(doc, '{x: 1}') LIMIT 5$$,
  $$SELECT id FROM docs ORDER BY docpatterns._collated_sort_key(doc, '{at: 1}', '{locale: "de"}') LIMIT 5$$, $$SELECT id FROM docs WHERE doc -> 'c' > 'c5'::text AND id < 0 ORDER BY bson_sort_key(doc, '{at: -1}') LIMIT 500$$]) q;
PREPARE sorted(int) AS SELECT id FROM parts WHERE id < $1 ORDER BY bson_sort_key(doc, '{b: -1}') LIMIT 5;
SET LOCAL plan_cache_mode = force_generic_plan;
SELECT looks('EXECUTE sorted(10)', 'Subplans Removed: 1.*Merge Append.*parts1_expr_idx');
RESET plan_cache_mode;
SET LOCAL ROLE field_reader;
SELECT throws_ok($$SELECT id FROM parts ORDER BY bson_sort_key(doc, '{b: -1}') LIMIT 5$$, '42501');
RESET ROLE;
DECLARE forth SCROLL CURSOR FOR SELECT (doc -> '_id')::int FROM docs ORDER BY bson_sort_key(doc, '{at: -1}');
MOVE 3 IN forth;
SELECT results_eq('FETCH BACKWARD 2 FROM forth', 'VALUES (9999), (10000)', 'a cursor goes back');
CLOSE forth;
-- checks leave one scan, for several fields, too
CREATE TABLE strict (doc bson NOT NULL CHECK (bson_validate(doc, '{properties: {c: {bsonType: "string"}, at: {bsonType: ["int", "null"]}}}')));
INSERT INTO strict SELECT bson_build('c', 'c' || i % 20, 'at', CASE WHEN i % 10 > 0 THEN i END) - CASE WHEN i % 9 = 0 THEN 'at' ELSE 'x' END FROM generate_series(1, 5000) i;
CREATE INDEX strict_at ON strict ((doc -> 'at') DESC NULLS LAST);
CREATE INDEX strict_c_at ON strict ((doc -> 'c') NULLS FIRST, (doc -> 'at') DESC NULLS LAST);
ANALYZE strict;
SELECT looks($$SELECT doc FROM strict ORDER BY bson_sort_key(doc, '{at: -1}') LIMIT 5$$, '^Limit\|Index Scan using strict_at on strict$');
SELECT looks($$SELECT doc FROM strict ORDER BY bson_sort_key(doc, '{at: 1}') LIMIT 5 FOR UPDATE$$, '^Limit\|LockRows\|Index Scan Backward using strict_at on strict$');
SELECT looks($$SELECT doc FROM strict ORDER BY bson_sort_key(doc, '{c: 1, at: -1}') LIMIT 5$$, '^Limit\|Index Scan using strict_c_at on strict$');
SELECT looks($$SELECT doc FROM strict ORDER BY bson_sort_key(doc, '{c: -1}'), bson_sort_key(doc, '{c: -1, at: 1}') LIMIT 5$$, '^Limit\|Index Scan Backward using strict_c_at on strict$');
SELECT looks($$SELECT doc FROM strict ORDER BY bson_sort_key(doc, '{c: 1, at: 1}') LIMIT 5$$, '\|Sort\|');
SELECT doesnt_match(lines($$SELECT doc FROM strict WHERE doc -> 'c' IN ('c1'::text, 'c2'::text) ORDER BY bson_sort_key(doc, '{at: -1}') LIMIT 500$$), '^Limit\|Index Scan using strict_c_at', 'values of the first field, one after the other, are not in the order of the second');
SELECT looks($$SELECT doc FROM strict WHERE doc -> 'at' IN (1, 2) ORDER BY bson_sort_key(doc, '{c: 1, at: -1}') LIMIT 5$$, 'Sort');
SELECT results_eq(format('SELECT bson_sort_key(doc, %1$L) FROM strict ORDER BY bson_sort_key(doc, %1$L) LIMIT 500', k), format('SELECT k FROM (SELECT bson_sort_key(doc, %L) AS k FROM strict OFFSET 0) s ORDER BY k LIMIT 500', k), k) FROM unnest('{"{at: -1}","{at: 1}","{c: 1}","{c: 1, at: -1}","{c: -1, at: 1}"}'::text[]) k;

-- ---------------------------------------------------------------- the same rows

TRUNCATE plain, docs;
CREATE FUNCTION any_value() RETURNS bson_value LANGUAGE sql VOLATILE AS $$
  SELECT ('{1,2,3,2.5,"\"x\"","\"y\"",null,"[]","[1]","[2, [3]]","{\"x\": 1}","{\"x\": [1, 2]}","[{\"x\": 2}, {\"x\": 3}]","[{\"x\": 1}, 5]",true,"{\"x\": null}","{\"x\": {\"x\": 1}}","{\"$undefined\": true}","{\"$minKey\": 1}","{\"$binary\": {\"base64\": \"\", \"subType\": \"00\"}}"}'::bson_value[])[1 + floor(random() * 20)]$$;
INSERT INTO plain SELECT i, CASE WHEN i % 50 <> 0 THEN CASE WHEN i % 3 > 0 THEN bson_build('b', any_value()) ELSE '{}' END || CASE WHEN i % 4 > 0 THEN bson_build('sub', any_value()) ELSE '{}' END || CASE WHEN i % 5 > 0 THEN bson_build('c', any_value(), 'at', any_value()) ELSE '{}' END END FROM generate_series(1, 800) i;
INSERT INTO docs SELECT * FROM plain;
ANALYZE docs;
SET LOCAL enable_seqscan = off;
SET LOCAL jit = off;
SELECT is((SELECT array_agg(id ORDER BY id) FROM docs WHERE doc @@ f), (SELECT array_agg(id ORDER BY id) FROM plain WHERE doc @@ f), format('a filter of a row: %s', f))
  FROM unnest('{"{b: 1}","{\"sub.x\": 1}"}'::bson[]) f;
CREATE FUNCTION same_rows(f bson) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found int[]; wanted int[];
BEGIN
  EXECUTE format('SELECT array_agg(id ORDER BY id) FROM docs WHERE doc @@ %L', f) INTO found;
  EXECUTE format('SELECT array_agg(id ORDER BY id) FROM plain WHERE doc @@ %L', f) INTO wanted;
  RETURN is(found, wanted, format('%s (%s)', f, CASE WHEN lines(format('SELECT id FROM docs WHERE doc @@ %L', f)) ~ 'Index' THEN 'index' ELSE 'no index' END));
END $$;
SELECT same_rows(replace(replace(f, 'F', p), 'V', v)::bson)
  FROM unnest('{"{\"F\": V}","{\"F\": {$gt: V}}","{\"F\": {$lte: V}}","{\"F\": {$gte: V, $lt: 3}}","{\"F\": {$in: [V, 2]}}","{\"F\": V, at: {$gt: 1}}"}'::text[]) f, unnest('{b,sub.x,c}'::text[]) p, unnest('{1,2.5,"\"x\"","[2, [3]]","{x: 1}"}'::text[]) v;
CREATE FUNCTION same_order(terms text, condition text DEFAULT 'true') RETURNS text LANGUAGE plpgsql AS $$
DECLARE found text[]; wanted text[]; fields text := regexp_replace(terms, ' (DESC|NULLS (FIRST|LAST))', '', 'g');
BEGIN
  EXECUTE format('SELECT array_agg(r::text) FROM (SELECT %s FROM docs WHERE %s ORDER BY %s) r', fields, condition, terms) INTO found;
  EXECUTE format('SELECT array_agg(r::text) FROM (SELECT %s FROM plain WHERE %s ORDER BY %s) r', fields, condition, terms) INTO wanted;
  RETURN is(found, wanted, format('%s where %s', terms, condition));
END $$;
SELECT same_order(t, c) FROM unnest('{"doc -> ''at'' DESC","doc -> ''at''","doc -> ''at'' DESC NULLS LAST","doc -> ''b''","doc -> ''b'' DESC, id","doc -> ''c'', doc -> ''at'' DESC NULLS LAST","doc -> ''c'', doc -> ''at'' DESC"}'::text[]) t,
  unnest('{true,"doc -> ''at'' > 1","doc @@ ''{b: 1}''"}'::text[]) c;
SELECT is((SELECT count(*) FROM (SELECT id FROM docs ORDER BY doc -> 'at' DESC) d), 800::bigint, 'every row once');
CREATE INDEX ON docs ((doc -> 'sub.0') NULLS FIRST);
CREATE INDEX ON docs ((doc -> 'sub.-1'));
CREATE INDEX ON docs ((doc -> 'sub.x.x') DESC);
CREATE INDEX ON docs ((doc -> 'b') DESC, id);
CREATE INDEX ON docs ((doc -> 'sub.x'), (doc -> 'c'), (doc -> 'b'));
SET LOCAL enable_bitmapscan = off;
SELECT same_order(replace(t, '@', f), c) FROM unnest('{at,b,c,sub.x,sub.0,sub.-1,sub.x.x}'::text[]) f, unnest('{"bson_sort_key(doc, ''{\"@\": 1}'')","bson_sort_key(doc, ''{\"@\": -1}'')","bson_sort_key(doc, ''{\"@\": -1}'') DESC","bson_sort_key(doc, ''{\"@\": 1}'') NULLS FIRST, id"}'::text[]) t,
  unnest('{true,"doc -> ''at'' > 1","doc @@ ''{b: 1}''","doc -> ''c'' = 2","doc IS NOT NULL","doc @@ ''{c: 2}''","doc @@ ''{\"sub.x\": 1, c: {$gte: 2}}''","doc @@ ''{c: [1]}''"}'::text[]) c;
SELECT looks(format($$SELECT id FROM docs ORDER BY bson_sort_key(doc, '{"%s": 1}')$$, f), '^Result\|Merge Append') FROM unnest('{at,b,c,sub.x,sub.0,sub.x.x}'::text[]) f;
SELECT doesnt_match(lines($$SELECT id FROM docs ORDER BY bson_sort_key(doc, '{"sub.-1": 1}')$$), 'Append', 'a position from the end is a name in a sort key');
SELECT is((SELECT count(*) FROM (SELECT id FROM docs ORDER BY bson_sort_key(doc, '{at: 1}')) d), 800::bigint, 'every row once');
-- without arrays, and with undefined and MinKey, which come before what is missing
ALTER TABLE docs ADD x bson;
UPDATE docs SET doc = NULL WHERE bson_typeof(doc, 'at') = 'array' OR bson_typeof(doc, 'sub') = 'array' OR bson_typeof(doc, 'sub.x') = 'array';
UPDATE plain SET doc = NULL WHERE bson_typeof(doc, 'at') = 'array' OR bson_typeof(doc, 'sub') = 'array' OR bson_typeof(doc, 'sub.x') = 'array';
ALTER TABLE docs ADD CHECK (bson_typeof(doc, 'at') <> 'array'), ADD CHECK (bson_typeof(doc, 'sub') <> 'array' AND bson_typeof(doc, 'sub.x') <> 'array');
SELECT same_order(replace(t, '@', f), c) FROM unnest('{at,sub.x}'::text[]) f, unnest('{"bson_sort_key(doc, ''{\"@\": 1}'')","bson_sort_key(doc, ''{\"@\": -1}'')"}'::text[]) t, unnest('{true,"doc @@ ''{b: 1}''","doc IS NOT NULL"}'::text[]) c;
SELECT looks(format($$SELECT id FROM docs WHERE doc IS NOT NULL ORDER BY bson_sort_key(doc, '{"%s": 1}')$$, f), '^Result\|Merge Append\|[^|]*\|Index Scan [^|]*\|[^|]* IS NOT NULL\)\|Filter[^|]*\|Index Scan[^|]*\|[^|]* IS NULL\)\|Filter[^|]*$') FROM unnest('{at,sub.x}'::text[]) f;

SELECT * FROM finish();
ROLLBACK;
