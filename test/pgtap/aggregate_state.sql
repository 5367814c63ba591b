-- States of aggregates: packed and combined they give what one process computes, damaged ones an error, in every plan.
\set QUIET 1
\getenv seed SEED
\if :{?seed}
\else
  SELECT (random() * 1000000)::int AS seed \gset
\endif
SET client_min_messages = warning;
BEGIN;
SELECT plan(68);
SELECT diag('seed: ' || :seed);
SELECT setseed(:seed / 1000000.0);

SELECT is((SELECT string_agg(p.oid::regprocedure::text, E'\n' ORDER BY p.oid::regprocedure::text COLLATE "C")
    FROM pg_aggregate a JOIN pg_proc p ON p.oid = aggfnoid JOIN pg_depend d ON d.objid = p.oid AND d.deptype = 'e' AND d.classid = 'pg_proc'::regclass
    WHERE aggcombinefn = 0 AND p.pronamespace = (SELECT extnamespace FROM pg_extension WHERE extname = 'docpatterns')),
  E'bson_merge_agg(bson)\nbson_object_agg(text,anycompatible)\nbucket_locf(anyelement)', 'what cannot be computed in parts');
SELECT is((SELECT string_agg(p.oid::regprocedure::text, E'\n' ORDER BY p.oid::regprocedure::text COLLATE "C")
    FROM pg_aggregate a JOIN pg_proc p ON p.oid = aggfnoid JOIN pg_depend d ON d.objid = p.oid AND d.deptype = 'e' AND d.classid = 'pg_proc'::regclass
    WHERE aggcombinefn <> 0 AND aggtranstype = 'internal'::regtype AND p.pronamespace = (SELECT extnamespace FROM pg_extension WHERE extname = 'docpatterns')),
  E'bson_agg(anycompatible)\nbson_distinct_agg(anycompatible)\nbucket_agg(timestamp with time zone,"any")\nbucket_page_agg("any")', 'what Citus cannot compute in parts');

CREATE TABLE data AS SELECT i, i % 5 AS g, (random() * 3)::int AS part, bson_build('_id', i, 'x', CASE (random() * 5)::int WHEN 0 THEN to_bson(i) WHEN 1 THEN to_bson(random() * power(10, i % 30))
  WHEN 2 THEN to_bson((random() * 1000)::numeric(10, 3)) WHEN 3 THEN to_bson('text ' || i % 40) WHEN 4 THEN '[1, {"a": null}]' END, 'y', random()) AS doc,
  timestamptz '2024-01-01' + i * interval '7 min' AS ts FROM generate_series(1, 3000) i;
CREATE TABLE buckets AS SELECT g, i % 20 AS n, bucket_agg(ts, doc) AS b FROM data GROUP BY 1, 2;

-- An aggregate, the arguments of its step function, its functions, a call.
CREATE TABLE kinds (name text, types text, step text, combine text, final text, arguments text, source text);
INSERT INTO kinds SELECT name, types, 'docpatterns.' || step, 'docpatterns.' || combine, 'docpatterns.' || final, arguments, source FROM (VALUES
  ('sum', 'bson_value', 'bson_value_sum_step', 'bson_value_sum_combine', 'bson_value_sum_final', $$doc -> 'x'$$, 'data'),
  ('avg', 'bson_value', 'bson_value_sum_step', 'bson_value_sum_combine', 'bson_value_avg_final', $$doc -> 'x'$$, 'data'),
  ('bson_distinct_agg', 'bson_value', 'bson_distinct_step', 'bson_distinct_combine', 'bson_distinct_final', $$doc -> 'x'$$, 'data'),
  ('bson_distinct_agg', 'text', 'bson_distinct_step', 'bson_distinct_combine', 'bson_distinct_final', $$doc ->> 'x'$$, 'data'),
  ('bson_distinct_merge_agg', 'bson_value', 'bson_distinct_merge_step', 'bson_distinct_combine', 'bson_distinct_final', $$bson_distinct_add(NULL, i)$$, 'data'),
  ('bson_accumulate', 'bson, bson', 'bson_accumulate_step', 'bson_accumulate_combine', 'bson_accumulate_final', $$doc, '{a: {$sum: "$x"}, b: {$avg: "$y"}, c: {$max: "$x"}, d: {$last: "$y"}, e: {$topN: {n: 3, sortBy: {y: 1}, output: "$x"}}, f: {$addToSet: "$x"}, g: {$stdDevSamp: "$y"}, h: {$median: "$y"}}'$$, 'data'),
  ('bson_accumulate', 'bson, bson, bson', 'bson_accumulate_step', 'bson_accumulate_combine', 'bson_accumulate_final', $$doc, '{a: {$push: "$_id"}, b: {$first: "$x"}}', '{y: -1}'$$, 'data'),
  ('bson_accumulate', 'bson, bson, bson, bson_value', 'bson_accumulate_step', 'bson_accumulate_combine', 'bson_accumulate_final', $$doc, '{a: {$push: "$_id"}, b: {$first: "$x"}}', '{g: 1}', i::bson_value$$, 'data'),
  ('bucket_agg', 'timestamptz, bson', 'bucket_agg_step', 'bucket_agg_combine', 'bucket_agg_final', $$ts, doc$$, 'data'),
  ('bucket_merge', 'bucket', 'bucket_merge_step', 'bucket_agg_combine', 'bucket_agg_final', $$b$$, 'buckets'),
  ('docpatterns._accumulate_any', 'bson, bson, bson', '_accumulate_step', 'bson_accumulate_combine', 'bson_accumulate_final', $q$doc, '{a: {$sum: "$x"}, b: {$avg: "$$v"}, c: {$addToSet: "$x"}}', '{v: 5}'$q$, 'data')) v (name, types, step, combine, final, arguments, source);
ALTER TABLE kinds ADD id serial;
-- packed_<id> gives a packed state, joined_<id> combines such states.
SELECT format('CREATE AGGREGATE packed_%1$s(%2$s) (SFUNC = %3$s, STYPE = bytea); CREATE AGGREGATE joined_%1$s(bytea) (SFUNC = %4$s, STYPE = bytea, FINALFUNC = %5$s)', id, types, step, combine, final) FROM kinds \gexec

CREATE FUNCTION pg_temp.answer(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text;
BEGIN
  EXECUTE 'SELECT string_agg(format(''%s'', q), E''\n'' ORDER BY g) FROM (' || q || ') q' INTO r;
  RETURN r;
END $$;
CREATE FUNCTION pg_temp.plan_of(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; lines text := '';
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP lines := lines || line || E'\n'; END LOOP;
  RETURN lines;
END $$;

-- ---------------------------------------------------------------- combined

SELECT is(pg_temp.answer(format('SELECT g, joined_%s(s) FROM (SELECT g, packed_%s(%s) AS s FROM (SELECT *, (random() * 4)::int AS piece FROM %s) t GROUP BY g, piece) t GROUP BY g', id, id, arguments, source)),
          pg_temp.answer(format('SELECT g, %s(%s) FROM %s GROUP BY g', name, arguments, source)), 'pieces: ' || name || ', ' || arguments) FROM kinds ORDER BY id;
SELECT is(pg_temp.answer(format('SELECT 0 AS g, joined_%s(s) FROM (SELECT NULL::bytea AS s UNION ALL SELECT packed_%s(%s) FROM %s UNION ALL SELECT NULL) t', id, id, arguments, source)),
          pg_temp.answer(format('SELECT 0 AS g, %s(%s) FROM %s', name, arguments, source)), 'and NULLs: ' || name || ', ' || arguments) FROM kinds ORDER BY id;
SELECT is(pg_temp.answer(format('SELECT 0 AS g, joined_%s(s) FROM (SELECT packed_%s(%s) AS s FROM %s WHERE g > 100) t', id, id, arguments, source)),
          pg_temp.answer(format('SELECT 0 AS g, %s(%s) FROM %s WHERE g > 100', name, arguments, source)), 'without rows: ' || name) FROM kinds ORDER BY id;

-- ---------------------------------------------------------------- plans

-- Partial states in one process: they are not packed before they are combined.
CREATE TABLE parts (LIKE data) PARTITION BY LIST (part);
SELECT format('CREATE TABLE parts_%1$s PARTITION OF parts FOR VALUES IN (%1$s)', n) FROM generate_series(0, 3) n \gexec
INSERT INTO parts SELECT * FROM data;
ANALYZE parts;
SET LOCAL enable_partitionwise_aggregate = on; SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL enable_hashagg = on; SET LOCAL cpu_operator_cost = 0.0001;
SELECT matches(pg_temp.plan_of($$SELECT g, avg(doc -> 'x') FROM parts GROUP BY g$$), 'Finalize.*Append.*Partial', 'a plan without workers');
SELECT is(pg_temp.answer(format('SELECT g, %s(%s) FROM parts GROUP BY g', name, arguments)), pg_temp.answer(format('SELECT g, %s(%s) FROM data GROUP BY g', name, arguments)), 'partitions: ' || name || ', ' || arguments) FROM kinds WHERE source = 'data' ORDER BY id;

-- Sorted while they are not packed: what packs them leaves nothing in the sort.
DECLARE sorted CURSOR FOR SELECT packed_3(doc -> 'x') FROM data GROUP BY i ORDER BY count(*);
FETCH sorted \g /dev/null
SELECT cmp_ok((SELECT sum(used_bytes) FROM pg_backend_memory_contexts WHERE name = 'Caller tuples'), '<', 500000::numeric, 'the memory of a sort');
CLOSE sorted;

-- Arrays, in any order
SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0; SET LOCAL max_parallel_workers_per_gather = 2; SET LOCAL parallel_leader_participation = off;
SELECT matches(pg_temp.plan_of($$SELECT bson_agg(doc) FROM data$$), 'Finalize.*Gather.*Partial', 'arrays in parallel');
SELECT doesnt_match(pg_temp.plan_of($$SELECT bson_agg(doc ORDER BY i) FROM data$$), 'Partial', 'but not with an order');
CREATE TABLE arrays AS SELECT g, bson_agg(doc) AS docs, bson_agg(i) FILTER (WHERE i % 3 = 0) AS numbers, bson_agg(i) FILTER (WHERE i < 0) AS none FROM data GROUP BY g;
SELECT is_empty('(SELECT g, d FROM arrays, bson_elements(docs) d) EXCEPT ALL SELECT g, doc::bson_value FROM data', 'no other elements');
SELECT is((SELECT sum(jsonb_array_length(docs::jsonb)) FROM arrays), 3000::bigint, 'all elements');
SELECT is((SELECT count(*) FROM arrays, bson_elements(numbers)), 1000::bigint, 'numbers');
SELECT is((SELECT count(none) FROM arrays), 0::bigint, 'no array without rows');

-- ---------------------------------------------------------------- bad states

CREATE AGGREGATE mixed(bson_value) (SFUNC = docpatterns.bson_value_sum_step, STYPE = bytea, FINALFUNC = docpatterns.bson_distinct_final);
SELECT throws_ok($$SELECT mixed('1') FROM data$$, '42803', NULL, 'the state of another aggregate');
CREATE AGGREGATE flat(bson_value) (SFUNC = docpatterns.bson_value_sum_step, STYPE = bytea, INITCOND = '\x0000');
SELECT throws_ok($$SELECT flat('1') FROM data$$, '42803', NULL, 'bytes as a state');
SELECT throws_ok($$SELECT docpatterns.bson_value_sum_step('\x00', '1')$$, '42803', NULL, 'a call outside an aggregate');
CREATE AGGREGATE cut(bytea) (SFUNC = docpatterns.bson_accumulate_combine, STYPE = bytea, FINALFUNC = docpatterns.bson_accumulate_final);
SELECT throws_ok($$SELECT cut(s) FROM (VALUES ('\x00090500'::bytea)) v (s)$$, 'XX001', NULL, 'a damaged state');

-- Damaged in random bytes, or cut off: an answer or an error of damage, of input or of limits
CREATE FUNCTION pg_temp.damage(kind kinds, tries int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state bytea; bad bytea; other text;
BEGIN
  EXECUTE format('SELECT packed_%s(%s) FROM (SELECT * FROM %s LIMIT 30) t', kind.id, kind.arguments, kind.source) INTO state;
  FOR i IN 1 .. tries LOOP
    bad := state;
    FOR j IN 1 .. 1 + (random() * 2)::int LOOP
      bad := set_byte(bad, (random() * (length(bad) - 1))::int, CASE WHEN random() < 0.3 THEN 255 ELSE (random() * 255)::int END);
    END LOOP;
    IF random() < 0.2 THEN bad := substr(bad, 1, (random() * length(bad))::int); END IF;
    BEGIN
      EXECUTE format('SELECT length(joined_%s(s)::text) FROM (VALUES ($1), ($2), ($1)) v (s)', kind.id) USING bad, state;
    EXCEPTION WHEN OTHERS THEN
      IF SQLSTATE <> 'XX001' AND SQLSTATE !~ '^(22|54|0A|42804)' THEN other := concat_ws(' ', SQLSTATE, SQLERRM, bad::text); END IF;
    END;
  END LOOP;
  RETURN other;
END $$;
SELECT is(pg_temp.damage(kinds, 300), NULL, 'damaged: ' || name) FROM kinds ORDER BY id;

SELECT * FROM finish();
ROLLBACK;
