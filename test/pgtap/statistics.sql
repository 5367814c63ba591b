-- Statistics of documents and the estimates from them: what is collected, what each condition is estimated at, who may see it, and
-- tables that are unusual. The tables are small enough for ANALYZE to look at every row, so nothing is left to chance.
\set QUIET 1
SET client_min_messages = warning;
BEGIN;
SELECT plan(173);

-- How many rows the planner expects.
CREATE FUNCTION expected(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
  RETURN (plan -> 0 -> 'Plan' ->> 'Plan Rows')::float8;
END $$;
CREATE FUNCTION plan_lines(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query;
END $$;
CREATE FUNCTION counted(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE n float8;
BEGIN
  EXECUTE 'SELECT count(*) FROM (' || query || ') q' INTO n;
  RETURN n;
END $$;
-- Whether the estimate is within a factor of what there is.
CREATE FUNCTION near(condition text, bound float8, tab text DEFAULT 'docs') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  query text := format('SELECT * FROM %s WHERE %s', tab, condition);
  e float8 := greatest(expected(query), 1);
  a float8 := greatest(counted(query), 1);
BEGIN
  RETURN ok(e / a <= bound AND a / e <= bound, format('%s: %s expected, %s are there', condition, e, a));
END $$;

SELECT is((SELECT string_agg(format('%s %s', proname, provolatile), ', ' ORDER BY proname) FROM pg_proc WHERE proname ~ '^bson_(stats|typanalyze|.*sel)$'),
  'bson_containsel s, bson_existssel s, bson_matchsel s, bson_stats s, bson_typanalyze s, bson_value_eqjoinsel s, bson_value_eqsel s, bson_value_gesel s, bson_value_gtsel s, bson_value_lesel s, bson_value_ltsel s, bson_value_neqjoinsel s, bson_value_neqsel s',
  'functions and their volatility');
SELECT is((SELECT typanalyze::text FROM pg_type WHERE oid = 'bson'::regtype), 'docpatterns.bson_typanalyze', 'ANALYZE of the type');
SELECT is((SELECT string_agg(DISTINCT oprrest::text, ' ') FROM pg_operator WHERE oprname = '=' AND 'bson_value'::regtype IN (oprleft, oprright)), 'docpatterns.bson_value_eqsel', 'equality of values, all types');

CREATE TABLE docs (id int, doc bson);
INSERT INTO docs SELECT i, CASE WHEN i % 20 = 0 THEN NULL ELSE bson_build('_id', i,
    'skew', CASE WHEN i % 2 = 0 THEN 'half' WHEN i % 10 < 3 THEN 'tenth' ELSE 'v' || i % 500 END,
    'number', i % 1000, 'real', (i % 997) / 10.0::float8, 'flag', i % 8 = 0,
    'when', timestamptz '2024-01-01 00:00:00Z' + i * interval '1 hour',
    'name', bson_build('first', 'f' || i % 50, 'last', 'l' || i % 700),
    'tags', to_bson(ARRAY['t' || i % 5, 't' || i % 7, 'u' || i % 300]),
    'lines', (SELECT bson_agg(bson_build('sku', 's' || (i * 7 + j) % 200, 'qty', (i + j) % 10)) FROM generate_series(1, 1 + i % 4) j),
    'mixed', CASE i % 4 WHEN 0 THEN '1'::bson_value WHEN 1 THEN '"s"' WHEN 2 THEN 'null' ELSE '[1, 2]' END)
    || CASE WHEN i % 3 = 0 THEN bson_build('rare', i % 30) ELSE '{}'::bson END END FROM generate_series(1, 10000) i;
ANALYZE docs;

-- filters
SELECT near(format('doc @@ %L', f), b) FROM (VALUES
  ('{}', 1.01::float8), ('{_id: 77}', 1.1), ('{skew: "half"}', 1.01), ('{skew: "v37"}', 1.5), ('{skew: {$ne: "half"}}', 1.01), ('{skew: "nowhere"}', 15), ('{number: 5}', 1.5), ('{number: 5.0}', 1.5),
  ('{number: {$lt: 100}}', 1.1), ('{number: {$gte: 900}}', 1.1), ('{number: {$gte: 200, $lt: 300}}', 1.15), ('{$and: [{number: {$gt: 200}}, {number: {$lte: 300}}]}', 1.15), ('{number: {$gt: 5000}}', 1.5), ('{number: {$gt: "a"}}', 1.5),
  ('{real: {$gt: 50, $lt: 60}}', 1.15), ('{flag: true}', 1.1), ('{when: {$gte: ISODate("2024-06-01"), $lt: ISODate("2024-07-01")}}', 1.1),
  ('{number: {$in: [1, 2, 3, 4]}}', 1.5), ('{skew: {$in: ["half", "tenth"]}}', 1.01), ('{skew: {$nin: ["half", "tenth"]}}', 1.05), ('{$or: [{skew: "half"}, {skew: "tenth"}]}', 1.01), ('{$nor: [{skew: "half"}, {skew: "tenth"}]}', 1.05),
  ('{"name.first": "f7"}', 1.3), ('{"name.last": "l77"}', 1.5), ('{name: {first: "f7", last: "l7"}}', 15), ('{"name.first": /^f1/}', 1.5), ('{"name.last": {$regex: "7$"}}', 1.6), ('{skew: /^ten/}', 1.05),
  ('{tags: "t3"}', 1.1), ('{tags: "u3"}', 1.5), ('{tags: {$all: ["t1", "t2"]}}', 4), ('{tags: {$size: 3}}', 1.01), ('{tags: {$size: 2}}', 1.5), ('{"tags.0": "t3"}', 2.5),
  ('{lines: {$size: 2}}', 1.1), ('{"lines.sku": "s5"}', 1.6), ('{"lines.qty": {$gt: 8}}', 1.3), ('{lines: {$elemMatch: {qty: 3}}}', 1.2), ('{lines: {$elemMatch: {sku: "s5", qty: {$gte: 5}}}}', 3), ('{lines: {$elemMatch: {qty: {$gte: 3, $lt: 5}}}}', 1.3), ('{"lines.qty": {$gte: 3, $lt: 5}}', 1.6),
  ('{tags: {$elemMatch: {$gte: "t0", $lt: "t1"}}}', 1.5),
  ('{rare: {$exists: true}}', 1.01), ('{rare: {$exists: false}}', 1.01), ('{rare: null}', 1.01), ('{rare: {$ne: null}}', 1.01), ('{"rare.below": null}', 1.01), ('{"lines.none": null}', 1.01), ('{nowhere: {$exists: true}}', 1.5), ('{nowhere: null}', 1.01),
  ('{mixed: 1}', 1.1), ('{mixed: null}', 1.1), ('{mixed: {$type: "array"}}', 1.05), ('{mixed: {$type: ["string", "null"]}}', 1.05), ('{mixed: {$gt: MinKey}}', 1.4), ('{number: {$mod: [10, 3]}}', 1.6), ('{number: {$bitsAllSet: 1}}', 1.3),
  ('{skew: "half", flag: true}', 2.6), ('{rare: {$exists: true}, "rare": {$lt: 10}}', 1.2)) t (f, b);

-- other operators; both sides; SQL values
SELECT near(c, b) FROM (VALUES
  ($$doc @> '{skew: "half"}'$$, 1.01::float8), ($$'{skew: "half"}' <@ doc$$, 1.01), ($$doc @> '{name: {first: "f7"}}'$$, 1.3), ($$doc @> '{tags: ["t3"]}'$$, 1.1), ($$doc @> '{lines: [{sku: "s5"}]}'$$, 1.6), ($$doc @> '{mixed: [1]}'$$, 1.1), ($$doc @> '{}'$$, 1.01),
  ($$doc ? 'rare'$$, 1.01), ($$NOT doc ? 'rare'$$, 1.1), ($$doc ? 'lines.2'$$, 1.2), ($$doc ? 'nowhere'$$, 1.5), ($$doc ?| '{rare,nowhere}'$$, 1.01), ($$doc ?& '{rare,_id}'$$, 1.01),
  ($$doc -> 'skew' = 'half'::text$$, 1.01), ($$doc -> 'skew' = '"half"'$$, 1.01), ($$'"half"' = doc -> 'skew'$$, 1.01), ($$doc -> 'skew' <> '"half"'$$, 1.01), ($$doc -> 'number' = 5$$, 1.5), ($$doc -> 'number' = 5.0$$, 1.5),
  ($$doc -> 'number' < 100$$, 1.1), ($$100 > doc -> 'number'$$, 1.1), ($$doc -> 'number' >= 900::int8$$, 1.1), ($$doc -> 'number' > 199 AND doc -> 'number' <= 299.5$$, 1.2), ($$200 <= doc -> 'number' AND 300 > doc -> 'number'$$, 1.2),
  ($$doc -> 'number' BETWEEN 10 AND 19$$, 2), ($$doc -> 'number' IN (1, 2, 3)$$, 1.5), ($$doc -> 'when' < timestamptz '2024-03-01'$$, 1.1), ($$doc -> 'when' < date '2024-03-01'$$, 1.1), ($$doc -> 'flag' = true$$, 1.1),
  ($$doc -> 'name.first' = '"f7"'$$, 1.3), ($$doc -> 'name' -> 'first' = '"f7"'$$, 1.3), ($$doc #> '{name,first}' = '"f7"'$$, 1.3), ($$doc['name']['first'] = '"f7"'$$, 1.3), ($$doc -> 'lines.0.qty' = 3$$, 2.5),
  ($$doc -> 'mixed' > 1$$, 1.2), ($$doc -> 'mixed' = 'null'$$, 1.05), ($$doc -> 'tags' = '"t3"'$$, 15), ($$doc -> 'nowhere' = 1$$, 1.5), ($$doc -> 'number' = 12345678901234567890123456789012345678901234567890$$, 15), ($$doc -> 'when' < 'infinity'::timestamptz$$, 4),
  ($$bson_match(doc, '{skew: "half"}')$$, 1.01)) t (c, b);

-- joins
CREATE TABLE owners (_id bson_value, doc bson);
INSERT INTO owners SELECT v, bson_build('_id', v) FROM (SELECT to_bson(i) AS v FROM generate_series(0, 999) i) t;
ANALYZE owners;
CREATE FUNCTION join_near(condition text, bound float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  query text := format('SELECT d.id FROM docs d JOIN owners o ON %s', condition);
  e float8 := expected(query);
  a float8 := counted(query);
BEGIN
  RETURN ok(e / a <= bound AND a / e <= bound, format('%s: %s expected, %s are there', condition, e, a));
END $$;
SELECT join_near(c, 1.5) FROM unnest(ARRAY['d.doc -> ''number'' = o._id', 'o.doc -> ''_id'' = d.doc -> ''number''', 'd.id = o.doc -> ''_id''']) c;
SELECT ok(expected('SELECT * FROM docs a JOIN docs b ON a.doc -> ''skew'' = b.doc -> ''skew''') / counted('SELECT 1 FROM docs a JOIN docs b ON a.doc -> ''skew'' = b.doc -> ''skew''') BETWEEN 0.8 AND 1.25, 'a join of skewed values');
SELECT ok(expected('SELECT * FROM docs d WHERE EXISTS (SELECT FROM owners o WHERE o._id = d.doc -> ''number'')') BETWEEN 8000 AND 10000, 'a semi-join');

-- bson_stats
SELECT is((SELECT string_agg(path, ' ' ORDER BY path COLLATE "C") FROM bson_stats('docs')), '_id flag lines lines.qty lines.sku mixed name name.first name.last number rare real skew tags when', 'the paths');
SELECT is((SELECT format('%s %s', presence, n_distinct) FROM bson_stats('docs') WHERE path = 'rare'), '0.33336842 10', 'presence and different values');
SELECT is((SELECT format('%s %s', most_common_values[1], most_common_freqs[1]) FROM bson_stats('docs', 'doc') WHERE path = 'skew'), '"half" 0.47368422', 'the most common value');
SELECT is((SELECT types FROM bson_stats('docs') WHERE path = 'tags'), '{"string": 1.0, "array": 1.0}', 'types, of elements too');
SELECT is((SELECT array_lengths FROM bson_stats('docs') WHERE path = 'lines'), '{"min": 1, "median": 3, "max": 4}', 'lengths of arrays');
SELECT is((SELECT null_frac > 0.2 FROM bson_stats('docs') WHERE path = 'mixed'), true, 'nulls');
SELECT throws_ok($$SELECT bson_stats('docs', 'nope')$$, '42703', NULL, 'no such column');
SELECT throws_ok($$SELECT bson_stats('docs', 'id')$$, '42809', NULL, 'a column of another type');
SELECT throws_ok($$SELECT bson_stats('pg_stats')$$, '42809', NULL, 'a view');
SELECT throws_ok($$SELECT bson_stats(NULL)$$, '22004', NULL, 'no table');
SELECT throws_ok($$SELECT bson_stats(0)$$, '42P01', NULL, 'no relation at all');

-- who may see what
CREATE ROLE statistics_reader;
GRANT SELECT ON docs TO statistics_reader;
REVOKE ALL ON owners FROM statistics_reader;
GRANT SELECT (_id) ON owners TO statistics_reader;
SET ROLE statistics_reader;
SELECT throws_ok($$SELECT bson_stats('owners')$$, '42501', NULL, 'a column without the right to read it');
SELECT throws_ok($$SELECT bson_stats('owners', 'doc')$$, '42501', NULL, 'the same by name');
SELECT is((SELECT count(*) FROM bson_stats('docs')), 15::bigint, 'a table that may be read');
RESET ROLE;
ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON docs TO statistics_reader USING (id < 10);
SET ROLE statistics_reader;
SELECT throws_ok($$SELECT bson_stats('docs')$$, '42501', NULL, 'not past row-level security');
SELECT ok(expected($$SELECT * FROM docs WHERE doc @@ '{skew: "half"}'$$) < 100, 'nor do estimates use it');
RESET ROLE;
ALTER TABLE docs DISABLE ROW LEVEL SECURITY;

-- unusual tables
CREATE TABLE odd (doc bson);
ANALYZE odd;
SELECT is_empty($$SELECT * FROM bson_stats('odd')$$, 'an empty table');
INSERT INTO odd SELECT NULL FROM generate_series(1, 100);
ANALYZE odd;
SELECT is_empty($$SELECT * FROM bson_stats('odd')$$, 'nothing but nulls');
SELECT is(expected($$SELECT * FROM odd WHERE doc @@ '{a: 1}'$$), 1::float8, 'and no rows of it expected');
TRUNCATE odd;
INSERT INTO odd SELECT '{}' FROM generate_series(1, 100);
ANALYZE odd;
SELECT near($$doc @@ '{a: null}'$$, 1.01, 'odd');
TRUNCATE odd;
INSERT INTO odd SELECT '{a: [null, undefined]}' FROM generate_series(1, 100);
ANALYZE odd;
SELECT is((SELECT null_frac FROM bson_stats('odd')), 1::float4, 'null and undefined');
TRUNCATE odd;
INSERT INTO odd SELECT ('{"' || repeat('x', 600) || '": 1, "a.b": {"": 2, "\"": [[1], [2]]}, "a": {"b": 3}}')::bson FROM generate_series(1, 100);
ANALYZE odd;
SELECT is((SELECT string_agg(path, ' ') FROM bson_stats('odd')), '"a.b" "a.b"."" "a.b"."""" a a.b', 'names with dots, quotes and nothing; one that is too long');
SELECT near($$doc @@ '{"a.b": 3}'$$, 1.01, 'odd');
TRUNCATE odd;
INSERT INTO odd SELECT (SELECT bson_object_agg('f' || j, i + j) FROM generate_series(1, 1000) j) FROM generate_series(1, 200) i;
ANALYZE odd;
SELECT ok((SELECT count(*) FROM bson_stats('odd')) BETWEEN 200 AND 1000, 'a thousand fields');
SELECT near($$doc @@ '{f150: 200}'$$, 2, 'odd');
SELECT near($$doc @@ '{f950: {$exists: true}}'$$, 1.01, 'odd');
TRUNCATE odd;
INSERT INTO odd SELECT (repeat('{"a": ', 99) || '1' || repeat('}', 99))::bson FROM generate_series(1, 20);
INSERT INTO odd SELECT bson_build('text', repeat(md5(i::text), 12000), 'last', i) FROM generate_series(1, 5) i;
ANALYZE odd;
SELECT is((SELECT count(*) FROM bson_stats('odd') WHERE presence > 0.79), 99::bigint, 'deep and large documents');
SELECT lives_ok(format('ALTER TABLE docs ALTER doc SET STATISTICS %s; ANALYZE docs', n), 'statistics target ' || n) FROM unnest('{0,1,10,1000,10000}'::int[]) n;

-- partitions
CREATE TABLE whole (k int, doc bson) PARTITION BY RANGE (k);
CREATE TABLE whole1 PARTITION OF whole FOR VALUES FROM (0) TO (500);
CREATE TABLE whole2 PARTITION OF whole FOR VALUES FROM (500) TO (1000);
INSERT INTO whole SELECT i, bson_build('k', i, 'half', i < 500) FROM generate_series(0, 999) i;
ANALYZE whole;
SELECT is((SELECT n_distinct FROM bson_stats('whole') WHERE path = 'half'), 2::float4, 'a partitioned table');
SELECT is((SELECT n_distinct FROM bson_stats('whole1') WHERE path = 'half'), 1::float4, 'and a partition');
SELECT near($$doc @@ '{half: true}'$$, 1.05, 'whole');

-- statistics of expressions, which have neither a relation nor a column of their own to be told apart by
CREATE TABLE extended1 AS SELECT bson_build('a', i % 10) AS doc FROM generate_series(1, 1000) i;
CREATE TABLE extended2 AS SELECT bson_build('a', 100 + i % 10) AS doc FROM generate_series(1, 1000) i;
CREATE STATISTICS extended1_stats ON (doc || '{}'::bson) FROM extended1;
CREATE STATISTICS extended2_stats ON (doc || '{}'::bson) FROM extended2;
ANALYZE extended1, extended2;
SELECT near($$(doc || '{}'::bson) @@ '{a: 3}'$$, 1.01, 'extended1');
SELECT near($$(doc || '{}'::bson) @@ '{a: 103}'$$, 1.01, 'extended2');

-- more paths than ANALYZE keeps: those of most documents stay
-- groups, and fields that are missing
CREATE FUNCTION groups(query text, n float8, bound float8 DEFAULT 1.1) RETURNS text LANGUAGE sql AS $$
  SELECT ok(e / n <= bound AND n / e <= bound, format('%s: %s expected', query, e)) FROM expected(query) e$$;
SELECT groups(format('SELECT %s FROM docs GROUP BY %1$s', e), n) FROM (VALUES ($$doc -> 'flag'$$, 2), ($$doc -> 'number'$$, 1000), ($$doc -> 'name' -> 'first'$$, 50), ($$doc #> '{name,first}'$$, 50), ($$doc['name']['first']$$, 50), ($$doc ->> 'name.first'$$, 50), ($$coalesce(doc -> 'number', 'null')$$, 1000),
  ($$(doc -> 'number')::int$$, 1000), ($$doc -> 'name.first', doc -> 'flag'$$, 100), ($$doc -> 'nowhere'$$, 1), ($$doc -> 'tags'$$, 9500), ($$(doc -> 'number')::int + 1, upper(doc ->> 'name.first')$$, 1000)) v (e, n);
SELECT groups($$SELECT DISTINCT doc -> 'number' FROM docs$$, 1000);
SELECT groups($$SELECT DISTINCT doc -> 'number' FROM (SELECT * FROM docs WHERE id > 0) d$$, 1000);
SELECT groups($$SELECT doc -> 'number' FROM docs WHERE doc -> 'flag' = true GROUP BY 1$$, 1000, 1.6);
SELECT near(c, 1.05) FROM (VALUES ($$doc -> 'rare' IS NULL$$), ($$doc -> 'rare' IS NOT NULL$$), ($$doc ->> 'rare' IS NULL$$), ($$doc -> 'number' IS NULL$$), ($$NOT (doc -> 'rare' IS NULL)$$)) v (c);
SELECT near($$doc -> 'skew' = 'half'::text AND (doc -> 'skew' IS NULL OR id > 0)$$, 1.1);
SELECT is((SELECT expected($$SELECT * FROM docs a JOIN docs b ON a.doc -> 'number' = b.doc -> 'number' WHERE a.doc -> 'number' IS NOT NULL$$) BETWEEN 80000 AND 110000), true, 'a join of a field that is tested');
CREATE TABLE grouped (id int, doc bson) PARTITION BY RANGE (id);
CREATE TABLE grouped1 PARTITION OF grouped FOR VALUES FROM (0) TO (500);
CREATE TABLE grouped2 PARTITION OF grouped FOR VALUES FROM (500) TO (1001);
INSERT INTO grouped SELECT i, bson_build('a', i % 7, 'b', i) FROM generate_series(1, 1000) i;
ANALYZE grouped;
SELECT groups($$SELECT doc -> 'a' FROM grouped GROUP BY 1$$, 7);
CREATE STATISTICS grouped_stats ON (doc -> 'a') FROM grouped1;
ANALYZE grouped1;
SELECT groups($$SELECT doc -> 'a' FROM grouped1 GROUP BY 1$$, 7);
CREATE INDEX ON grouped2 ((doc -> 'b'));
SELECT groups($$SELECT doc -> 'b' FROM grouped2 GROUP BY 1$$, 501);
SET LOCAL ROLE pg_read_all_data;
SELECT groups($$SELECT doc -> 'number' FROM docs GROUP BY 1$$, 1000);
RESET ROLE;
SELECT is((SELECT string_agg(l, '|') FROM plan_lines($$SELECT doc -> 'flag', count(*) FROM docs GROUP BY 1$$) l), 'HashAggregate|  Group Key: (doc -> ''flag''::text)|  ->  Seq Scan on docs', 'few groups are hashed');

CREATE TABLE shapeless AS SELECT i AS id, bson_merge_agg(bson_build('f' || i || '_' || k, k)) || bson_build('everywhere', i % 10) AS doc FROM generate_series(1, 400) i, generate_series(1, 60) k GROUP BY i;
ANALYZE shapeless;
SELECT cmp_ok((SELECT count(*) FROM bson_stats('shapeless') WHERE path = 'everywhere'), '>', 0::bigint, 'a path that all documents have is known among 24000 that one has');

SELECT * FROM finish();
ROLLBACK;
