-- The accumulators of $group and $setWindowFields: docpatterns._accumulate.
BEGIN;
SELECT plan(74);
SET client_min_messages = warning;

-- The value of an accumulator over values in their order; a bare NULL is a document without the field.
CREATE FUNCTION docs(vals text[]) RETURNS SETOF bson LANGUAGE sql AS $$
  SELECT ('{"i": ' || i || coalesce(', "x": ' || v, '') || '}')::bson FROM unnest(vals) WITH ORDINALITY u(v, i) ORDER BY i $$;
CREATE FUNCTION acc(spec text, VARIADIC vals text[]) RETURNS text LANGUAGE sql AS $$
  SELECT docpatterns._accumulate(d, ('{"f": ' || spec || '}')::bson, '{two: 2}' ORDER BY (d -> 'i')::int) ->> 'f' FROM docs(vals) d $$;

SELECT is(acc('{$sum: "$x"}', '1', '"a"', NULL, '2'), '3', '$sum');
SELECT is(acc('{$sum: "$x"}', '"a"'), '0', 'of no numbers');
SELECT is(acc('{$sum: {$multiply: ["$x", "$$two"]}}', '1', '2'), '6', 'a variable from outside');
SELECT is(acc('{$avg: "$x"}', '1', '2'), '1.5', '$avg');
SELECT is(acc('{$avg: "$x"}', '"a"', NULL), NULL, 'of no numbers');
SELECT is(acc('{$count: {}}', '1', NULL), '2', '$count');
SELECT is(acc('{$first: "$x"}', '3', '1', '2'), '3', '$first is that of the first row');
SELECT is(acc('{$first: "$x"}', NULL, '1'), NULL, 'null if it is missing there');
SELECT is(acc('{$last: "$x"}', '3', '1', '2'), '2', '$last');
SELECT is(acc('{$last: "$x"}', '3', '"a longer text than sixteen bytes"', '"another text that is long"'), 'another text that is long', 'of texts');
SELECT is(acc('{$firstN: {input: "$x", n: 2}}', '3', NULL, '2'), '[3, null]', '$firstN');
SELECT is(acc('{$lastN: {input: "$x", n: 2}}', '3', '1', '2'), '[1, 2]', '$lastN, in the order of rows');
SELECT is(acc('{$lastN: {input: "$x", n: 5}}', '3', '1', '2'), '[3, 1, 2]', 'of fewer');
SELECT is(acc('{$lastN: {input: "$x", n: "$$two"}}', '3', '1', '2'), '[1, 2]', 'n is an expression');
SELECT is(acc('{$push: "$x"}', '3', NULL, 'null', '1', '3'), '[3, null, 1, 3]', '$push skips missing values');
SELECT is(acc('{$push: {a: "$x", i: "$i"}}', '3', NULL), '[{"a": 3, "i": 1}, {"i": 2}]', 'and takes expressions');
SELECT is(acc('{$addToSet: "$x"}', '3', NULL, '1', '3.0', 'null', '1'), '[null, 1, 3.0]', '$addToSet');
SELECT is(acc('{$min: "$x"}', '3', 'null', NULL, '1', '2'), '1', '$min');
SELECT is(acc('{$max: "$x"}', '3', 'null', '"b"', '2'), 'b', '$max across types');
SELECT is(acc('{$max: "$x"}', 'null', NULL), NULL, 'of null and missing values');
SELECT is(acc('{$minN: {input: "$x", n: 2}}', '3', '1', 'null', '1'), '[1, 1]', '$minN');
SELECT is(acc('{$maxN: {input: "$x", n: 2}}', '3', '1', '3', '3'), '[3, 3]', '$maxN takes no more than n of equal ones');
SELECT is(acc('{$top: {sortBy: {x: -1}, output: "$i"}}', '3', '5', '4'), '2', '$top');
SELECT is(acc('{$bottom: {sortBy: {x: -1}, output: ["$i", "$x"]}}', '3', '5', '4'), '[1, 3]', '$bottom');
SELECT is(acc('{$topN: {sortBy: {x: 1}, output: "$i", n: 2}}', '3', '5', '4'), '[1, 3]', '$topN');
SELECT is(acc('{$bottomN: {sortBy: {x: 1}, output: "$i", n: 2}}', '3', '5', '4'), '[3, 2]', '$bottomN');
SELECT is(acc('{$stdDevPop: "$x"}', '2', '5', '"a"'), '1.5', '$stdDevPop');
SELECT is(acc('{$stdDevSamp: "$x"}', '2'), NULL, '$stdDevSamp of one number');
SELECT is(acc('{$mergeObjects: "$x"}', '{"a": 1, "b": 1}', 'null', NULL, '{"b": 2, "c": {"d": 1}}'), '{"a": 1, "b": 2, "c": {"d": 1}}', '$mergeObjects');
SELECT is(acc('{$mergeObjects: "$x"}', NULL), '{}', 'of none');
SELECT is((SELECT bson_size(docpatterns._accumulate(bson_build('x', bson_build('k' || i % 10, repeat('y', 1000) || i)), '{f: {$mergeObjects: "$x"}}', NULL ORDER BY i)) FROM generate_series(1, 20000) i),
  (SELECT bson_size(docpatterns._accumulate(bson_build('x', bson_build('k' || i % 10, repeat('y', 1000) || i)), '{f: {$mergeObjects: "$x"}}', NULL ORDER BY i)) FROM generate_series(19991, 20000) i),
  'of many, which are merged on the way');
SELECT is(acc('{$concatArrays: "$x"}', '[3]', NULL, '[1, [2]]', '[]'), '[3, 1, [2]]', '$concatArrays');
SELECT is(acc('{$setUnion: "$x"}', '[3, 1]', NULL, '[1, 2]'), '[1, 2, 3]', '$setUnion');
SELECT is(acc('{$median: {input: "$x", method: "approximate"}}', '4', '1', '3', '2', '"a"'), '2', '$median');
SELECT is(acc('{$median: {input: "$x", method: "continuous"}}', '4', '1', '3', '2'), '2.5', 'between two');
SELECT is(acc('{$percentile: {input: "$x", p: [0, 0.5, 0.9, 1], method: "approximate"}}', '4', '1', '3', '2', '5'), '[1.0, 3.0, 5.0, 5.0]', '$percentile');
SELECT is(acc('{$percentile: {input: "$x", p: [0.25, 0.9], method: "continuous"}}', '4', '1', '3', '2', '5'), '[2.0, 4.6]', 'in proportion');
SELECT is(acc('{$percentile: {input: "$x", p: [0.5, 0.9], method: "discrete"}}', '"a"'), '[null, null]', 'of no numbers');
SELECT is(acc('{$push: {$dateToString: {date: "$$NOW", format: "%Y"}}}', '1'), format('["%s"]', extract(year FROM now() AT TIME ZONE 'UTC')), '$$NOW');
SELECT is((SELECT docpatterns._accumulate(d, '{f: {$sum: "$x"}}', NULL) FROM (VALUES (NULL::bson)) v(d))::text, '{"f": 0}', 'a document that is NULL does not count');
SELECT is((SELECT docpatterns._accumulate(d, '{f: {$sum: "$x"}}', NULL) FROM docs('{}') d), NULL, 'no rows');
SELECT is(docpatterns._accumulate_none('{a: {$sum: 1}, b: {$avg: "$x"}, c: {$push: "$x"}, d: {$first: "$x"}, e: {$mergeObjects: "$x"}, f: {$percentile: {input: "$x", p: [0.5], method: "approximate"}}, g: {$topN: {n: 1, sortBy: {x: 1}, output: "$x"}}, h: {$median: {input: "$x", method: "approximate"}}}', NULL)::text,
  '{"a": 0, "b": null, "c": [], "d": null, "e": {}, "f": [null], "g": [], "h": null}', 'the fields of no rows');
SELECT is((SELECT docpatterns._accumulate(bson_build('x', i), '{f: {$sum: {$add: ["$x", "$$v"]}}}', bson_build('v', i * 10)) FROM generate_series(1, 3) i)::text, '{"f": 66}', 'variables may differ from row to row');
SELECT is((SELECT string_agg(a::text, ' ' ORDER BY g) FROM (SELECT g, docpatterns._accumulate(bson_build('x', i), '{f: {$firstN: {input: "$x", n: {$cond: [{$eq: ["$g", 1]}, 3, 1]}}}}', NULL, bson_build('g', g)::bson_value ORDER BY i) AS a FROM generate_series(0, 2) g, generate_series(1, 4) i GROUP BY g) q),
  '{"f": [1]} {"f": [1, 2, 3]} {"f": [1]}', 'n may depend on the key of the group');
SELECT is((SELECT docpatterns._accumulate(bson_build('x', i % 5000), '{f: {$addToSet: "$x"}, g: {$push: "$x"}}', NULL) FROM generate_series(1, 30000) i) -> 'f',
  (SELECT to_bson(array_agg(i)) FROM generate_series(0, 4999) i), 'a large set');

CREATE TABLE items AS SELECT bson_build('_id', i, 'k', i % 3, 'x', i) AS doc FROM generate_series(1, 9) i;
SELECT results_eq($q$SELECT collection_aggregate('items', '[{$sort: {x: -1}}, {$group: {_id: {k: "$k"}, f: {$firstN: {input: {$add: ["$x", "$$v"]}, n: {$add: ["$k", 1]}}}}}, {$sort: {_id: 1}}]', '{v: 100}')::text$q$,
  $$VALUES ('{"_id": {"k": 0}, "f": [109]}'), ('{"_id": {"k": 1}, "f": [107, 104]}'), ('{"_id": {"k": 2}, "f": [108, 105, 102]}')$$, 'a pipeline');
SELECT results_eq($q$SELECT collection_aggregate('items', '[{$group: {_id: null, p: {$percentile: {input: "$x", p: "$$ps", method: "approximate"}}}}]', '{ps: [0.5, 1]}')::text$q$,
  $$VALUES ('{"_id": null, "p": [5.0, 9.0]}')$$, 'percentiles in a variable');
SELECT throws_ok($$SELECT collection_aggregate('items', '[{$match: {}}, {$group: {_id: null, f: {$frob: 1}}}]')$$, '0A000', 'unknown accumulator "$frob"', 'an accumulator that is not known');

CREATE FUNCTION bad(spec text, vals text[] DEFAULT '{1}') RETURNS text LANGUAGE sql AS $$ SELECT acc(spec, VARIADIC vals) $$;
SELECT throws_ok($$SELECT bad('{$function: {}}')$$, '0A000', NULL, '$function');
SELECT throws_ok($$SELECT bad('{$accumulator: {}}')$$, '0A000', NULL, '$accumulator');
SELECT throws_ok($$SELECT bad('{$sum: ["$x"]}')$$, '22023', '$sum needs one expression, not an array', 'an array of expressions');
SELECT throws_ok($$SELECT bad('{$firstN: {input: "$x", n: 0}}')$$, '22023', NULL, 'n is at least 1');
SELECT throws_ok($$SELECT bad('{$firstN: {input: "$x", n: "$g"}}')$$, '22023', NULL, 'and a number');
SELECT throws_ok($$SELECT bad('{$percentile: {input: "$x", p: [2], method: "approximate"}}')$$, '22023', NULL, 'p is at most 1');
SELECT throws_ok($$SELECT bad('{$percentile: {input: "$x", p: [], method: "approximate"}}')$$, '22023', NULL, 'and there is one');
SELECT throws_ok($$SELECT bad('{$percentile: {input: "$x", p: [0.5]}}')$$, '22023', NULL, 'with a method');
SELECT throws_ok($$SELECT bad('{$median: {input: "$x", method: "other"}}')$$, '22023', NULL, 'that there is');
SELECT throws_ok($$SELECT bad('{$concatArrays: "$x"}')$$, '22023', 'field "f" must accumulate arrays, not int', '$concatArrays of a number');
SELECT throws_ok($$SELECT bad('{$setUnion: "$x"}', '{"null"}')$$, '22023', 'field "f" must accumulate arrays, not null', '$setUnion of null');
SELECT throws_ok($$SELECT bad('{$mergeObjects: "$x"}')$$, '22023', 'field "f" must accumulate documents, not int', '$mergeObjects of a number');
SELECT throws_ok($$SELECT bad('{$push: "$x", cap: 3}')$$, '22023', NULL, 'MongoDB has no cap');
SELECT throws_ok($q$SELECT bad('{$sum: "$$none"}')$q$, '22023', 'variable "$$none" is not defined', 'a variable that is not there');
SELECT throws_ok($$SELECT docpatterns._accumulate('{}', NULL, NULL)$$, '22004', NULL, 'no fields');
SELECT throws_ok($$SELECT bson_accumulate('{}', '{f: {$mergeObjects: "$x"}}')$$, '0A000', NULL, 'bson_accumulate has no accumulators that need the order of rows');

-- In parallel: the same as without.
CREATE TABLE many AS SELECT bson_build('g', i % 7, 'x', (i * 7919) % 1009, 't', 'text ' || (i * 31) % 501, 'a', array[i % 3, i % 11]) AS doc FROM generate_series(1, 20000) i;
ALTER TABLE many SET (parallel_workers = 2);
ANALYZE many;
CREATE FUNCTION plan_of(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text; l text; BEGIN FOR l IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP r := concat_ws(E'\n', r, l); END LOOP; RETURN r; END $$;
\set any_of 'SELECT docpatterns._accumulate_any(doc, ''{s: {$sum: "$x"}, a: {$avg: "$x"}, n: {$count: {}}, mi: {$min: "$t"}, ma: {$max: "$x"}, mn: {$minN: {input: "$t", n: 3}}, t: {$top: {sortBy: {x: 1, t: 1}, output: "$t"}}, u: {$setUnion: "$a"}, w: {$addToSet: "$t"}, d: {$stdDevSamp: "$x"}, p: {$percentile: {input: "$x", p: [0.1, 0.9], method: "approximate"}}}'', NULL)::text FROM many'
SET LOCAL max_parallel_workers_per_gather = 0;
CREATE TEMP TABLE serial AS :any_of;
SET LOCAL max_parallel_workers_per_gather = 2;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SET LOCAL min_parallel_table_scan_size = 0;
SELECT matches(plan_of(:'any_of'), 'Partial Aggregate', 'it is computed in parallel');
SELECT results_eq(:'any_of', 'TABLE serial', 'with the same result');
SELECT ok(plan_of($$SELECT docpatterns._accumulate(doc, '{s: {$sum: "$x"}}', NULL) FROM many$$) !~ 'Partial', 'what may depend on the order is not');
SET LOCAL max_parallel_workers_per_gather = 0;

-- Windows: each frame is the group of its rows.
CREATE TABLE win AS SELECT i, bson_build('i', i, 'x', CASE WHEN i % 5 = 0 THEN NULL ELSE (i * 7919) % 23 END, 'd', ((i * 31) % 17)::float8 / 8, 't', 'a text that is longer ' || (i * 7) % 13, 'a', array[i % 3, i % 11], 'o', bson_build('k' || i % 4, i)) - CASE WHEN i % 7 = 0 THEN 'x' ELSE 'none' END AS doc FROM generate_series(1, 60) i;
CREATE FUNCTION frames(spec text, frame text, lower text, upper text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE r bigint; BEGIN
  EXECUTE format('SELECT count(*) FROM (SELECT i, docpatterns._accumulate(doc, %1$L, NULL) OVER (ORDER BY i %2$s) AS a FROM win) w
    WHERE coalesce(a, docpatterns._accumulate_none(%1$L, NULL))::bytea IS DISTINCT FROM (SELECT coalesce(docpatterns._accumulate(doc, %1$L, NULL ORDER BY v.i), docpatterns._accumulate_none(%1$L, NULL))::bytea FROM win v WHERE v.i BETWEEN w.i %3$s AND w.i %4$s)', spec, frame, lower, upper) INTO r;
  RETURN r;
END $$;
\set everything '{s: {$sum: "$x"}, c: {$count: {}}, a: {$avg: "$d"}, sp: {$stdDevPop: "$d"}, ss: {$stdDevSamp: "$x"}, mi: {$min: "$x"}, ma: {$max: "$t"}, f: {$first: "$x"}, l: {$last: "$t"}, fn: {$firstN: {input: "$t", n: 2}}, ln: {$lastN: {input: "$x", n: 3}}, p: {$push: "$x"}, as: {$addToSet: "$t"}, su: {$setUnion: "$a"}, ca: {$concatArrays: "$a"}, mo: {$mergeObjects: "$o"}, mn: {$minN: {input: "$x", n: 2}}, mx: {$maxN: {input: "$t", n: 2}}, t: {$top: {sortBy: {x: 1, i: 1}, output: "$t"}}, b: {$bottomN: {sortBy: {t: 1, i: 1}, output: "$i", n: 2}}, me: {$median: {input: "$x", method: "approximate"}}, pe: {$percentile: {input: "$d", p: [0.2, 0.8], method: "continuous"}}}'
SELECT is(frames(:'everything', 'ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING', '-3', '+2'), 0::bigint, 'a frame of rows on both sides');
SELECT is(frames(:'everything', 'ROWS BETWEEN 5 PRECEDING AND 2 PRECEDING', '-5', '-2'), 0::bigint, 'one that begins empty');
SELECT is(frames(:'everything', 'ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW', '-100', '+0'), 0::bigint, 'one that only grows');
SELECT is(frames(:'everything', 'ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING', '+0', '+100'), 0::bigint, 'one that only shrinks');
SELECT is(frames(:'everything', 'RANGE BETWEEN 4 PRECEDING AND CURRENT ROW', '-4', '+0'), 0::bigint, 'a frame of values');
SELECT is((SELECT string_agg(a ->> 'f', ' ' ORDER BY i) FROM (SELECT i, docpatterns._accumulate(bson_build('x', i), '{f: {$push: {$add: ["$x", {$multiply: [0, {$rand: {}}]}]}}}', NULL) OVER (ORDER BY i ROWS 1 PRECEDING) AS a FROM generate_series(1, 3) i) q), '[1.0] [1.0, 2.0] [2.0, 3.0]', '$rand in a window');
SELECT is((SELECT string_agg((SELECT string_agg((v::float8 < 1)::text, ',') FROM bson_elements(a -> 'f') v), ' ' ORDER BY i) FROM (SELECT i, docpatterns._accumulate(bson_build('x', i), '{f: {$minN: {input: {$rand: {}}, n: 2}}}', NULL) OVER (ORDER BY i ROWS 1 PRECEDING) AS a FROM generate_series(1, 3) i) q), 'true true,true true,true', 'values that are not there again are computed again');
SELECT * FROM finish();
ROLLBACK;
