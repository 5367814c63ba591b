-- Accumulators: what they give, their types, and their errors.
BEGIN;
SELECT plan(88);
SET client_min_messages = warning;

SELECT is((SELECT string_agg(format('%s %s%s%s', p.oid::regprocedure, provolatile, proparallel, proisstrict), E'\n' ORDER BY p.oid::regprocedure::text COLLATE "C") FROM pg_proc p WHERE proname IN ('bson_accumulate', 'bson_accumulate_set', 'bson_accumulate_change')),
  E'bson_accumulate(bson,bson) isf\nbson_accumulate(bson,bson,bson) isf\nbson_accumulate(bson,bson,bson,bson_value) isf\nbson_accumulate_change(bson,bson,bson[],bson[],bson) isf\nbson_accumulate_set(bson,bson,bson[],bson) isf', 'the functions');

-- The value and the type of an accumulator over values; a bare NULL is a document without the field.
CREATE FUNCTION acc(spec text, VARIADIC vals text[]) RETURNS text LANGUAGE sql AS $$
  SELECT bson_typeof(d -> 'f') || ' ' || docpatterns.bson_value_out(d -> 'f')::text FROM (
    SELECT bson_accumulate(('{"_id": ' || i || coalesce(', "x": ' || v, '') || '}')::bson, ('{"f": ' || spec || '}')::bson) AS d FROM unnest(vals) WITH ORDINALITY u(v, i)) q $$;

SELECT is(acc('{$count: {}}', '1', 'null', NULL), 'int 3', 'documents are counted');
SELECT is(acc('{$sum: 1}', '1', 'null', NULL), 'int 3', 'or ones added');
SELECT is(acc('{$sum: "$x"}', '1', '2'), 'int 3', 'int32 stays int32');
SELECT is(acc('{$sum: "$x"}', '2147483647', '1'), 'long 2147483648', 'or widens');
SELECT is(acc('{$sum: "$x"}', '1', '{"$numberLong": "2"}'), 'long {"$numberLong": "3"}', 'an int64 makes it int64');
SELECT is(acc('{$sum: "$x"}', '9223372036854775807', '9223372036854775807'), 'double 1.8446744073709552e+19', 'beyond int64 it is a double');
SELECT is(acc('{$sum: "$x"}', '9223372036854775807', '1', '-1'), 'long 9223372036854775807', 'only the total counts');
SELECT is(acc('{$sum: "$x"}', '-9223372036854775808', '-1', '1'), 'long -9223372036854775808', 'the least int64');
SELECT is(acc('{$sum: "$x"}', '1', '0.5'), 'double 1.5', 'a double makes it double');
SELECT is(acc('{$sum: "$x"}', '1', '0.5', '{"$numberDecimal": "0.250"}'), 'decimal {"$numberDecimal": "1.750"}', 'a decimal makes it decimal');
SELECT is(acc('{$sum: "$x"}', '1e100', '1.0', '-1e100'), 'double 1.0', 'doubles are added exactly');
SELECT is(acc('{$sum: "$x"}', '1e308', '1e308', '-1e308'), 'double 1e+308', 'also beyond the greatest double');
SELECT is(acc('{$sum: "$x"}', '1e308', '1e308'), 'double {"$numberDouble": "Infinity"}', 'which is infinity in the end');
SELECT is(acc('{$sum: "$x"}', '5e-324', '5e-324'), 'double 1e-323', 'and the least ones');
SELECT is(acc('{$sum: "$x"}', '-0.0', '-0.0'), 'double 0.0', 'zero has no sign');
SELECT is(acc('{$sum: "$x"}', '9007199254740992.0', '1.0'), 'double 9.007199254740992e+15', 'half goes to even');
SELECT is(acc('{$sum: "$x"}', '9007199254740992.0', '1.0', '1e-300'), 'double 9.007199254740994e+15', 'more than half goes up');
SELECT is(acc('{$sum: "$x"}', '{"$numberDouble": "Infinity"}', '1'), 'double {"$numberDouble": "Infinity"}', 'infinity');
SELECT is(acc('{$sum: "$x"}', '{"$numberDouble": "Infinity"}', '{"$numberDouble": "-Infinity"}'), 'double {"$numberDouble": "NaN"}', 'NaN');
SELECT is(acc('{$sum: "$x"}', '{"$numberDecimal": "Infinity"}', '1'), 'decimal {"$numberDecimal": "Infinity"}', 'an infinite decimal');
SELECT is(acc('{$sum: "$x"}', '{"$numberDecimal": "1E+6111"}', '{"$numberDecimal": "-1E+6111"}', '{"$numberDecimal": "1E-6176"}'), 'decimal {"$numberDecimal": "1E-6176"}', 'decimals are added exactly');
SELECT is(acc('{$sum: "$x"}', '"a"', 'null', NULL, '[1]', 'true'), 'int 0', 'what is no number does not count');
SELECT is(acc('{$sum: {$multiply: ["$x", 2]}}', '1', '2'), 'int 6', 'an expression');

SELECT is(acc('{$avg: "$x"}', '1', '2'), 'double 1.5', 'averages');
SELECT is(acc('{$avg: "$x"}', '1', '2', '"a"', 'null', NULL), 'double 1.5', 'of numbers');
SELECT is(acc('{$avg: "$x"}', '{"$numberDecimal": "1"}', '0', '0'), 'decimal {"$numberDecimal": "0.3333333333333333333333333333333333"}', 'decimals');
SELECT is(acc('{$avg: "$x"}', '"a"'), 'null null', 'of none');
SELECT is(acc('{$stdDevPop: "$x"}', '1', '2', '3', '4'), 'double 1.118033988749895', 'deviations');
SELECT is(acc('{$stdDevSamp: "$x"}', '1', '2', '3', '4', '"a"'), 'double 1.2909944487358056', 'of a sample');
SELECT is(acc('{$stdDevPop: "$x"}', '5'), 'double 0.0', 'of one number');
SELECT is(acc('{$stdDevSamp: "$x"}', '5'), 'null null', 'none of a sample of one');
SELECT is(acc('{$stdDevPop: "$x"}', '1000000000.1', '1000000000.2', '1000000000.3'), 'double 0.08164962889258424', 'nothing is lost by large means');
SELECT is(acc('{$stdDevPop: "$x"}', '1e200', '3e200'), 'double 1e+200', 'nor by squares beyond the greatest double');
SELECT is(acc('{$stdDevPop: "$x"}', '1', '{"$numberDouble": "Infinity"}'), 'double {"$numberDouble": "NaN"}', 'an infinity');
SELECT is(acc('{$median: "$x"}', '5', '1', '4'), 'double 4.0', 'the number in the middle');
SELECT is(acc('{$median: {input: "$x", method: "approximate"}}', '5', '1', '4', '2'), 'double 2.0', 'the lesser one of two');
SELECT is(acc('{$median: "$x"}', '"a"', '{"$numberDouble": "NaN"}'), 'null null', 'of no numbers');

SELECT is(acc('{$min: "$x"}', '5', '"a"', 'null', NULL), 'int 5', 'the least');
SELECT is(acc('{$max: "$x"}', '5', '"a"', 'null', NULL), 'string "a"', 'the greatest, across types');
SELECT is(acc('{$max: "$x"}', 'null', NULL), 'null null', 'of null and missing values');
SELECT is(acc('{$max: "$x"}', '5', '5.0', '{"$numberLong": "5"}'), acc('{$max: "$x"}', '{"$numberLong": "5"}', '5.0', '5'), 'of equal ones always the same');
SELECT is(acc('{$minN: {input: "$x", n: 2}}', '5', '1', '3', 'null'), 'array [1, 3]', 'the least ones');
SELECT is(acc('{$maxN: {input: "$x", n: 2}}', '5', '1', '5', 'null'), 'array [5, 5]', 'the greatest ones, as often as they are there');
SELECT is(acc('{$maxN: {input: "$x", n: 2}}', NULL), 'array []', 'or none');
SELECT is(acc('{$first: "$x"}', '7', '8', '9'), 'int 7', 'the first by _id');
SELECT is(acc('{$last: "$x"}', '7', '8', NULL), 'null null', 'the last, null if it is missing');
SELECT is(acc('{$firstN: {input: "$x", n: 2}}', '7', NULL, '9'), 'array [7, null]', 'first ones');
SELECT is(acc('{$lastN: {input: "$x", n: 2}}', '7', '8', '9'), 'array [8, 9]', 'last ones, in order');
SELECT is(acc('{$top: {sortBy: {x: -1}, output: ["$_id", "$x"]}}', '7', '9', '8'), 'array [2, 9]', 'in an order of its own');
SELECT is(acc('{$bottom: {sortBy: {x: -1}, output: "$_id"}}', '7', '9', '8'), 'int 1', 'the last in it');
SELECT is(acc('{$topN: {n: 2, sortBy: {x: -1}, output: "$x"}}', '7', '9', '8'), 'array [9, 8]', 'the first ones');
SELECT is(acc('{$bottomN: {n: 2, sortBy: {x: -1}, output: "$x"}}', '7', '9', '8'), 'array [8, 7]', 'the last ones');
SELECT is(acc('{$push: "$x"}', '3', NULL, 'null', '3'), 'array [3, null, 3]', 'all values but missing ones');
SELECT is(acc('{$push: "$x", cap: 2}', '3', '4', '5'), 'array [3, 4]', 'no more than cap');
SELECT is(acc('{$addToSet: "$x"}', '3', NULL, 'null', '3.0', '1', '"a"'), 'array [null, 1, 3.0, "a"]', 'distinct values, ascending');
SELECT is(acc('{$addToSet: "$x", cap: 2}', '3', '2', '5', '1'), 'array [1, 2]', 'the first ones');

SELECT is(bson_accumulate(d, '{f: {$first: "$x"}, l: {$last: "$x"}}', '{t: -1}'), '{f: 2, l: 3}', 'in an order') FROM unnest(ARRAY['{x: 1, t: 5}', '{x: 2, t: 9}', '{x: 3, t: 1}']::bson[]) d;
SELECT is(bson_accumulate(d, '{f: {$first: "$x"}, l: {$last: "$x"}}', '{t: 1}', d -> 'k'), '{f: 2, l: 3}', 'and by keys') FROM unnest(ARRAY['{x: 1, t: 5, k: 4}', '{x: 2, t: 5, k: 1}', '{x: 3, t: 5, k: 6}']::bson[]) d;
SELECT is((SELECT bson_accumulate(d, '{f: {$sum: 1}}') FROM unnest('{}'::bson[]) d), NULL, 'no rows give NULL');
SELECT is((SELECT bson_accumulate(d, '{f: {$sum: 1}}') FROM unnest(ARRAY[NULL, '{}']::bson[]) d), '{f: 1}', 'a NULL does not count');
SELECT is(bson_accumulate_set('{}', '{a: {$sum: "$x"}, b: {$count: {}}, c: {$avg: "$x"}, d: {$max: "$x"}, e: {$last: "$x"}, f: {$stdDevPop: "$x"}, g: {$median: "$x"}, h: {$topN: {sortBy: {x: 1}, output: "$x", n: 1}}, i: {$addToSet: "$x", cap: 1}}', '{}'),
  '{a: 0, b: 0, c: null, d: null, e: null, f: null, g: null, h: [], i: []}', 'a group of no documents');

-- in parallel
CREATE TABLE many AS SELECT bson_build('_id', i, 'g', i % 3, 'x', CASE i % 4 WHEN 0 THEN to_bson(i) WHEN 1 THEN to_bson(i * 0.1::float8) WHEN 2 THEN to_bson(i * 0.01) ELSE to_bson('text'::text) END) AS doc FROM generate_series(1, 6000) i;
CREATE FUNCTION all_of() RETURNS text LANGUAGE sql AS $$ SELECT string_agg(d::text, ' ' ORDER BY g) FROM (SELECT doc -> 'g' AS g, bson_accumulate(doc, '{a: {$sum: "$x"}, b: {$count: {}}, c: {$avg: "$x"}, d: {$max: "$x"}, e: {$last: "$x"}, f: {$stdDevPop: "$x"}, g: {$median: "$x"}, h: {$topN: {sortBy: {x: 1}, output: "$x", n: 3}}, i: {$addToSet: "$g"}, j: {$firstN: {input: "$_id", n: 2}}}') AS d FROM many GROUP BY doc -> 'g') q $$;
SET LOCAL max_parallel_workers_per_gather = 0;
CREATE TABLE alone AS SELECT all_of() AS t;
SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0; SET LOCAL min_parallel_table_scan_size = 0; SET LOCAL max_parallel_workers_per_gather = 2;
SELECT is(all_of(), t, 'workers make no difference') FROM alone;
CREATE FUNCTION plan_of(q text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE l text; p text := ''; BEGIN FOR l IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP p := p || l || E'\n'; END LOOP; RETURN p; END $$;
SELECT ok(plan_of($$SELECT bson_accumulate(doc, '{a: {$sum: "$x"}}') FROM many$$) ~ 'Partial Aggregate', 'and are used');

-- documents that carry fields
SELECT is(bson_accumulate_set('{a: 1, s: "old", z: 2}', '{s: {$sum: "$x"}, t: {$max: "$x"}}', ARRAY['{x: 1}', '{x: 4}']::bson[])::text, '{"a": 1, "s": 5, "z": 2, "t": 4}', 'a field stays where it is, others come at the end');
SELECT ok(NOT bson_accumulate_set('{}', '{s: {$sum: "$x"}, c: {$count: {}}, m: {$max: "$x"}, n: {$minN: {input: "$x", n: 3}}}', ARRAY['{x: 1}']::bson[]) ? '_computed', 'no state where the fields tell all');
SELECT ok(bson_accumulate_set('{}', '{s: {$sum: "$x"}}', ARRAY['{x: 0.5}']::bson[]) ? '_computed', 'a state where they do not');
SELECT is(bson_accumulate_set('{_computed: {other: 5}}', '{s: {$sum: "$x"}}', ARRAY['{x: 0.5}']::bson[]) -> '_computed.other', '5', 'beside those of others');
SELECT is(bson_accumulate_change(bson_accumulate_set('{_computed: {other: 5}}', '{s: {$sum: "$x"}}', ARRAY['{x: 0.5}', '{x: 2}']::bson[]), '{s: {$sum: "$x"}}', NULL, ARRAY['{x: 0.5}']::bson[])::text, '{"_computed": {"other": 5}, "s": 2}', 'which stay when it goes');
SELECT is(bson_accumulate_change('{s: 5, c: 2}', '{s: {$sum: "$x"}, c: {$count: {}}}', ARRAY['{x: 1}']::bson[], ARRAY['{x: 2}', '{x: 3}']::bson[]), '{s: 1, c: 1}', 'a change of what the fields tell');
SELECT is(bson_accumulate_change('{m: 5}', '{m: {$max: "$x"}}', ARRAY['{x: 7}']::bson[], ARRAY['{x: 5}']::bson[]), '{m: 7}', 'a greater value comes while the greatest goes');
SELECT is(bson_accumulate_change('{m: 5}', '{m: {$max: "$x"}}', NULL, ARRAY['{x: 4}']::bson[]), '{m: 5}', 'a lesser value goes');
SELECT is(bson_accumulate_change('{m: 5}', '{m: {$max: "$x"}}', ARRAY['{x: 4}']::bson[], ARRAY['{x: 5}']::bson[]), NULL, 'the greatest goes: NULL');
SELECT is(bson_accumulate_change('{}', '{m: {$max: "$x"}}', NULL), NULL, 'a document without the fields');
SELECT is(bson_accumulate_change('{m: 0.5}', '{m: {$sum: "$x"}}', NULL), NULL, 'a sum of doubles without its state');
SELECT is(bson_accumulate_change('{m: "5"}', '{m: {$sum: "$x"}}', NULL), NULL, 'a sum that is none');
SELECT is(bson_accumulate_change('{c: 1}', '{c: {$count: {}}}', NULL, ARRAY['{}', '{}']::bson[]), NULL, 'more go than there are');
SELECT is(bson_accumulate_change(bson_accumulate_set('{}', '{s: {$avg: "$x"}}', ARRAY['{x: 0.5}']::bson[]), '{s: {$avg: "$y"}}', NULL), NULL, 'a state of other fields');
SELECT throws_ok($$SELECT bson_accumulate_change('{m: 0.5, _computed: {fields: BinData(128, "AgAA")}}', '{m: {$sum: "$x"}}', NULL)$$, 'XX001', NULL, 'a state of another version');
SELECT is(bson_accumulate_set(NULL, '{m: {$sum: "$x"}}', NULL), NULL, 'NULL gives NULL');

-- errors
SELECT throws_ok($$SELECT bson_accumulate('{}', '{a: {$frob: 1}}')$$, '0A000', 'unknown accumulator "$frob"', 'an unknown accumulator');
SELECT throws_ok($$SELECT bson_accumulate('{}', '{a: {$sum: {$frob: 1}}}')$$, '0A000', NULL, 'an unknown operator');
SELECT throws_ok($$SELECT bson_accumulate('{}', '{a: {$sum: {$rand: {}}}}')$$, '0A000', NULL, 'an expression that changes');
CREATE FUNCTION refused(VARIADIC specs text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$ DECLARE s text; d text; m text; BEGIN FOREACH s IN ARRAY specs LOOP BEGIN PERFORM bson_accumulate_set('{}', s::bson, NULL); RETURN NEXT 'accepted ' || s;
  EXCEPTION WHEN invalid_parameter_value THEN GET STACKED DIAGNOSTICS m = MESSAGE_TEXT, d = PG_EXCEPTION_DETAIL; RETURN NEXT m || ' ' || d; END; END LOOP; END $$;
SELECT results_eq($$SELECT refused('{}', '{a: 1}', '{a: {}}', '{"a.b": {$sum: 1}}', '{a: {$sum: 1}, a: {$sum: 1}}', '{_computed: {$sum: 1}}', '{a: {$sum: 1, $avg: 1}}', '{a: {$count: 1}}')$$,
  ARRAY['fields to accumulate must not be empty ', '"a" needs a document with an accumulator, not int At path "a".', 'field "a" needs an accumulator At path "a".', 'the name of a field may not begin with a dollar or hold a dot At path "a.b".',
    'field "a" is there already At path "a".', 'field "_computed" is there already At path "_computed".', 'a field has one accumulator At path "a.$avg".', '$count takes an empty document At path "a.$count".'], 'fields that are none');
SELECT results_eq($$SELECT refused('{a: {$minN: "$x"}}', '{a: {$minN: {input: "$x"}}}', '{a: {$minN: {n: 2}}}', '{a: {$minN: {input: 1, n: 0}}}', '{a: {$minN: {input: 1, n: 10001}}}', '{a: {$minN: {input: 1, n: 1.5}}}', '{a: {$minN: {input: 1, n: 1, m: 1}}}')$$,
  ARRAY['"$minN" needs a document, not string At path "a.$minN".', '$minN needs "n" At path "a.$minN".', '$minN needs "input" At path "a.$minN".', '"n" must be from 1 to 10000 At path "a.$minN.n".', '"n" must be from 1 to 10000 At path "a.$minN.n".', '"n" needs a whole number, not double At path "a.$minN.n".', '"m" is no argument of this accumulator At path "a.$minN.m".'], 'arguments that are wrong');
SELECT results_eq($$SELECT refused('{a: {$push: 1}}', '{a: {$sum: 1, cap: 3}}', '{a: {$push: 1, cap: 0}}', '{a: {$top: {output: 1}}}', '{a: {$top: {output: 1, sortBy: 5}}}', '{a: {$top: {output: 1, sortBy: {a: 2}}}}', '{a: {$median: {input: 1, method: "other"}}}', '{a: {$median: {input: 1, method: "continuous"}}}')$$,
  ARRAY['$push needs "cap" beside it, the most elements that it may have At path "a".', '"cap" is no argument of this accumulator At path "a.cap".', '"cap" must be from 1 to 10000 At path "a.cap".', '$top needs "sortBy" At path "a.$top".', '"sortBy" needs a document, not int At path "a.$top.sortBy".', 'invalid sort specification Field "a": the direction must be 1 or -1.', '"method" must be "approximate", "discrete" or "continuous" At path "a.$median.method".', '"method" must be "approximate" or "discrete" At path "a.$median.method".'], 'and others');
SELECT throws_ok($$SELECT bson_accumulate(d, f) FROM (VALUES ('{}'::bson, '{a: {$sum: 1}}'::bson), ('{}', '{a: {$sum: 2}}')) v(d, f)$$, '22023', 'fields and order must be the same for all rows of a group', 'fields that change within a group');
SELECT throws_ok($$SELECT bson_accumulate('{}', NULL)$$, '22004', 'fields must not be null', 'no fields');
SELECT * FROM finish();
ROLLBACK;
