-- Updates: signatures, every operator with what it takes and refuses, positions, upserts, what an unchanged document costs, and a
-- comparison with a model in plpgsql.
\set QUIET 1
\pset fieldsep '\n'
SET client_min_messages = warning;
SET timezone = 'UTC';
BEGIN;
SELECT plan(451);

-- What an update makes of a document, as text; or the error's code and what its detail or message names.
CREATE FUNCTION up(doc bson, update text, filter bson DEFAULT NULL, array_filters bson_value DEFAULT NULL, upsert boolean DEFAULT false) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN bson_update(doc, update::text, filter, array_filters, upsert)::bytea::bson::text;
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
END $$;
CREATE FUNCTION message(doc bson, update text, filter bson DEFAULT NULL, array_filters bson_value DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE m text; d text;
BEGIN
  PERFORM bson_update(doc, update, filter, array_filters);
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS m = MESSAGE_TEXT, d = PG_EXCEPTION_DETAIL; RETURN m || ' / ' || d;
END $$;

-- ---------------------------------------------------------------- signatures

SELECT function_returns('bson_update', ARRAY['bson', t, 'bson', 'bson_value', 'boolean'], 'bson', 'an update of type ' || t) FROM unnest(ARRAY['bson_value', 'bson', 'text']) t;
SELECT is((SELECT count(*) FROM pg_proc WHERE proname = 'bson_update' AND (provolatile <> 's' OR proisstrict OR proparallel <> 's')), 0::bigint, 'all are stable, parallel safe and see NULL');
SELECT is((SELECT count(*) FROM pg_proc WHERE proname = 'bson_update' AND proargnames[1:5] <> '{doc,update,filter,array_filters,upsert}'), 0::bigint, 'and name their arguments alike');
SELECT is(bson_update('{a: 1}', '{$set: {b: 2}}')::text, '{"a": 1, "b": 2}', 'an untyped literal');
SELECT is(bson_update('{a: 1}', bson_value '{$set: {b: 2}}')::text, '{"a": 1, "b": 2}', 'a bson_value');
SELECT is(bson_update('{a: 1}', bson '{$set: {b: 2}}')::text, '{"a": 1, "b": 2}', 'a bson');
SELECT is(bson_update('{a: 1}', bson_build('$set', bson_build('b', 2)))::text, '{"a": 1, "b": 2}', 'what bson_build makes');
SELECT is(bson_update('{a: 1}', format('{$set: {b: %s}}', 2))::text, '{"a": 1, "b": 2}', 'what format makes');
SELECT is(bson_update(doc => '{a: 1}', update => '{$set: {b: 2}}', upsert => true)::text, '{"a": 1, "b": 2}', 'named arguments');
PREPARE p AS SELECT bson_update($1::bson, $2);
SELECT results_eq($$EXECUTE p('{a: 1}', '{$set: {a: 2}}')$$, ARRAY['{a: 2}'::bson], 'a parameter');
SELECT is(bson_update(NULL, '{$set: {a: 1}}'), NULL, 'no document'), is(bson_update('{}', NULL::bson), NULL, 'no update');
SELECT throws_ok($$SELECT bson_update('{}', '{$set: ')$$, '22P02', NULL, 'text that is no update');
SELECT is(up('{}', t), '22023', 'an update that is ' || t) FROM unnest(ARRAY['1', '"x"', 'null', '/x/']) t;

-- ---------------------------------------------------------------- what an update is

SELECT is(up('{a: 1}', '{$foo: {a: 1}}'), '0A000', 'an unknown operator'), matches(message('{a: 1}', '{$foo: {a: 1}}'), '\$foo', 'is named');
SELECT is(up('{a: 1}', '{$set: {a: 2}, b: 1}'), '22023', 'a field beside operators'), is(up('{a: 1}', '{b: 1, $set: {a: 2}}'), '22023', 'an operator beside fields');
SELECT is(up('{a: 1}', '{$set: 5}'), '22023', 'an operator without fields'), is(up('{a: 1}', '{$set: {}}'), '{"a": 1}', 'an operator with no field');
SELECT is(up('{a: 1}', '{$set: {"": 1}}'), '22023', 'an empty path'), is(up('{a: 1}', '{$set: {"a..b": 1}}'), '22023', 'an empty part'),
       is(up('{a: 1}', '{$set: {"a.": 1}}'), '22023', 'an empty part at the end'), is(up('{a: 1}', '{$unset: {".a": 1}}'), '22023', 'and at the beginning');
SELECT matches(message('{a: 1}', '{$set: {"a..b": 1}}'), '\$set\.a\.\.b', 'is named with its operator');
SELECT is(up('{a: 1}', '{$set: {$b: 1}}'), '22023', 'a name that begins with $');
SELECT is(up('{a: 1}', '{$rename: {a: "$b"}}'), '22023', 'for another field'), is(up('{a: 1}', '{$set: {$: 1}}'), '22023', 'the positional operator alone');
SELECT is(up('{a: 1, $b: 2}', '{$rename: {$b: "b", $c: "c"}}'), '{"a": 1, "b": 2}', 'can be replaced'), is(up('{a: 1, $b: 2}', '{$unset: {$b: ""}}'), '{"a": 1}', 'and taken away');
SELECT is(bson_update(NULL, '{$setOnInsert: {$b: 1}}', '{a: 1}', upsert => true)::text, '{"a": 1, "$b": 1}', 'and inserted');
SELECT is(up('{}', format('{$set: {"%s": 1}}', repeat('a.', 100) || 'a')), '54000', 'a path of 101 parts');
SELECT is(up('{}', format('{$set: {"%s": 1}}', repeat('a.', 99) || 'a'))::bson #>> ('{' || repeat('a,', 99) || 'a}')::text[], '1', 'one of 100');
SELECT is(up('{}', format('{$set: {"%s": {x: 1}}}', repeat('a.', 99) || 'a')), '54000', 'with a document it is too deep');
SELECT is(up('{a: []}', format('{$push: {a: {"%s": 1}}}', 'x')), '{"a": [{"x": 1}]}', 'depth counts from the document');
SELECT is(up('{_id: 1, a: 1, b: 1}', '{$set: {b: 2}, $unset: {a: 1}, $inc: {c: 3}}'), '{"_id": 1, "b": 2, "c": 3}', 'several operators');

-- ---------------------------------------------------------------- conflicts

SELECT is(up('{a: 1}', u), '22023', 'conflict: ' || u) FROM unnest(ARRAY[
  '{$set: {a: 1}, $inc: {a: 1}}', '{$set: {a: 1, "a.b": 1}}', '{$set: {"a.b": 1, a: 1}}', '{$set: {"a.b.c": 1}, $unset: {"a.b": 1}}',
  '{$set: {a: 1, a: 2}}', '{$rename: {a: "a"}}', '{$rename: {a: "a.b"}}', '{$rename: {a: "b"}, $set: {b: 1}}', '{$rename: {a: "b"}, $set: {"a.c": 1}}',
  '{$setOnInsert: {a: 1}, $set: {a: 1}}', '{$set: {"a.$[]": 1, "a.0": 1}}']) u;
SELECT matches(message('{a: 1}', '{$set: {a: 1}, $inc: {"a.b": 1}}'), '"a".*\$inc\.a\.b', 'a conflict names both');
SELECT is(up('{}', '{$set: {"a.b": 1, "a.c": 2, ab: 3}}'), '{"a": {"b": 1, "c": 2}, "ab": 3}', 'no conflict between neighbours');

-- ---------------------------------------------------------------- _id

SELECT is(up('{_id: 1, a: 5}', u), '22023', '_id cannot change: ' || u) FROM unnest(ARRAY['{$set: {_id: 2}}', '{$inc: {_id: 1}}', '{$unset: {_id: 1}}', '{$rename: {_id: "b"}}',
  '{$rename: {a: "_id"}}', '{_id: 2, a: 1}']) u;
SELECT is(up('{_id: {k: 1}}', '{$set: {"_id.k": 2}}'), '22023', 'nor a part of it'), is(up('{_id: {k: 1}}', '{$set: {"_id.k": 1}}'), '{"_id": {"k": 1}}', 'the same is fine');
SELECT is(up('{_id: 1}', '{$set: {_id: 1, a: 2}}'), '{"_id": 1, "a": 2}', 'setting the same _id'), is(up('{a: 1}', '{$set: {_id: 2}}'), '{"a": 1, "_id": 2}', 'a document that had none gets one');

-- ---------------------------------------------------------------- $set and paths

SELECT is(up('{a: 1, b: "x"}', '{$set: {b: [1, {c: 2}]}}'), '{"a": 1, "b": [1, {"c": 2}]}', 'a value of another type, where the old one stood');
SELECT is(up('{}', '{$set: {b: 1, "10": 1, a: 2, "9": 3, "c.z": 1, "c.d": 2, B: 1}}'), '{"9": 3, "10": 1, "B": 1, "a": 2, "b": 1, "c": {"d": 2, "z": 1}}', 'new fields: numbers by value, then names by bytes');
SELECT is(up('{z: 1, y: 2}', '{$set: {y: 3, a: 1, z: 4}}'), '{"z": 4, "y": 3, "a": 1}', 'old ones keep their places');
SELECT is(up('{a: {b: {c: 1}, d: 2}}', '{$set: {"a.b.c": "longer", "a.b.e": true, "a.d": 1.5}}'), '{"a": {"b": {"c": "longer", "e": true}, "d": 1.5}}', 'nested');
SELECT is(up('{}', '{$set: {"a.0": 1}}'), '{"a": {"0": 1}}', 'a number makes a field in a new document'), is(up('{a: {}}', '{$set: {"a.0": 1}}'), '{"a": {"0": 1}}', 'and in a document');
SELECT is(up('{a: [1, 2]}', '{$set: {"a.0": 5}}'), '{"a": [5, 2]}', 'and is a position in an array'), is(up('{a: [1]}', '{$set: {"a.3": 5}}'), '{"a": [1, null, null, 5]}', 'beyond the end nulls are put between');
SELECT is(up('{a: [1]}', '{$set: {"a.2.b": 5, "a.4": 6}}'), '{"a": [1, null, {"b": 5}, null, 6]}', 'for each of several'), is(up('{a: []}', '{$set: {"a.10": 1, "a.9": 2, "a.1": 3}}'), '{"a": [null, 3, null, null, null, null, null, null, null, 2, 1]}', 'in the order of numbers');
SELECT is(up('{a: [1]}', '{$set: {"a.1500001": 5}}')::bson #>> '{a,1500001}', '5', 'the most nulls'), is(up('{a: [1]}', '{$set: {"a.1500002": 5}}'), '54000', 'too many nulls');
SELECT is(up('{a: [1]}', '{$set: {"a.x": 5}}'), '22023', 'a name in an array'), is(up('{a: [1]}', '{$set: {"a.01": 5}}'), '22023', 'digits with a zero in front'), is(up('{a: [1]}', '{$set: {"a.-1": 5}}'), '22023', 'a negative position');
SELECT is(up(d, '{$set: {"a.b": 5}}'), '22023', 'a path through ' || d::text) FROM unnest(ARRAY['{a: 1}', '{a: null}', '{a: "x"}']::bson[]) d;
SELECT matches(message('{a: {b: 1}}', '{$set: {"a.b.c": 1}}'), '\$set.*a\.b\.c.*"a\.b".*int', 'the error names operator, path and type');
SELECT is(up('{a: 1, a: 2}', '{$set: {a: 3}}'), '{"a": 3, "a": 2}', 'of two fields of the name the first');
SELECT is(up('{a: 1}', '{$set: {a: NumberLong(1)}}'), '{"a": {"$numberLong": "1"}}', 'an equal number of another type is another value');
SELECT is((SELECT bson_update('{}', bson_build('$set', bson_object_agg('f' || i, i))) - 'f7' = bson_update('{}', bson_build('$set', bson_object_agg('f' || i, i), '$unset', '{f0: 1}'::bson)) - 'f7' FROM generate_series(1, 500) i), true, 'many fields at once');
SELECT is((SELECT count(*) FROM bson_each((SELECT bson_update((SELECT bson_object_agg('f' || i, i) FROM generate_series(1, 300) i), bson_build('$inc', bson_object_agg('f' || i, 1))) FROM generate_series(1, 300) i)) e (k, v) WHERE v::int <> substr(k, 2)::int + 1), 0::bigint, 'many fields that are there');

-- ---------------------------------------------------------------- $unset

SELECT is(up('{a: 1, b: 2, c: 3}', '{$unset: {a: "", c: 1}}'), '{"b": 2}', 'fields go'), is(up('{a: {b: 1, c: 2}}', '{$unset: {"a.b": 1, "a.c": 1}}'), '{"a": {}}', 'an empty document stays');
SELECT is(up('{a: [1, 2, 3]}', '{$unset: {"a.1": 1}}'), '{"a": [1, null, 3]}', 'an element becomes null'), is(up('{a: 1, b: 2, a: 3}', '{$unset: {a: 1}}'), '{"b": 2}', 'all of the name go');
SELECT is(up(d::bson, '{$unset: {"a.b.c": 1}}'), d, 'nothing to take away from ' || d) FROM unnest(ARRAY['{}', '{"a": 1}', '{"a": [1]}', '{"a": {"b": "x"}}', '{"a": null}']) d;
SELECT is(up('{a: [{b: 1, c: 2}]}', '{$unset: {"a.0.b": 1, "a.5": 1}}'), '{"a": [{"c": 2}]}', 'inside an element; beyond the end');

SELECT is(up('{_id: 1, a: 1}', '{$rename: {a: "_id"}}'), '22023', 'nor does $rename take its place with the same value'), is(up('{a: 1}', '{$rename: {a: "_id"}}'), '22023', 'or where there is none');

-- ---------------------------------------------------------------- $inc, $mul

SELECT is(up('{a: 5}', '{$inc: {a: 2, b: 3, "c.d": 1}}'), '{"a": 7, "b": 3, "c": {"d": 1}}', '$inc'), is(up('{a: 5}', '{$mul: {a: 2, b: 3, "c.d": 1.5}}'), '{"a": 10, "b": 0, "c": {"d": 0.0}}', '$mul: missing is zero of the type');
SELECT is(up('{}', '{$mul: {a: NumberLong(5), b: NumberDecimal("5")}}'), '{"a": {"$numberLong": "0"}, "b": {"$numberDecimal": "0"}}', 'of each type');
SELECT is(bson_typeof(bson_update('{a: 2147483647}', '{$inc: {a: 1}}') -> 'a'), 'long', 'an int that overflows'), is(up('{a: 2147483647}', '{$inc: {a: 1}}'), '{"a": 2147483648}', 'becomes a long');
SELECT is(up('{a: -2147483648}', '{$inc: {a: -1}}'), '{"a": -2147483649}', 'at the other end'), is(up('{a: 65536}', '{$mul: {a: 65536}}'), '{"a": 4294967296}', 'and by $mul');
SELECT is(up('{a: NumberLong(1)}', '{$inc: {a: 1}}'), '{"a": {"$numberLong": "2"}}', 'a long stays one'), is(up('{a: 1}', '{$inc: {a: NumberLong(1)}}'), '{"a": {"$numberLong": "2"}}', 'and makes one');
SELECT is(up('{a: 9223372036854775807}', '{$inc: {a: 1}}'), '22003', 'a long that overflows'), is(up('{a: -9223372036854775808}', '{$mul: {a: -1}}'), '22003', 'by $mul'), is(up('{a: -9223372036854775808}', '{$inc: {a: -1}}'), '22003', 'below');
SELECT matches(message('{a: {b: 9223372036854775807}}', '{$inc: {"a.b": 1}}'), '\$inc.*a\.b', 'names operator and path');
SELECT is(up('{a: 1}', '{$inc: {a: 0.5}}'), '{"a": 1.5}', 'a double wins over an int'), is(up('{a: 9223372036854775807}', '{$inc: {a: 1.0}}'), '{"a": 9.223372036854776e+18}', 'and over a long');
SELECT is(up('{a: 1}', '{$inc: {a: NumberDecimal("0.10")}}'), '{"a": {"$numberDecimal": "1.10"}}', 'a decimal wins over an int'), is(up('{a: NumberDecimal("1.10")}', '{$mul: {a: NumberLong(2)}}'), '{"a": {"$numberDecimal": "2.20"}}', 'over a long'),
       is(up('{a: 0.1}', '{$inc: {a: NumberDecimal("1")}}'), '{"a": {"$numberDecimal": "1.100000000000000"}}', 'and over a double, of which fifteen digits count');
SELECT is(up('{a: NumberDecimal("Infinity")}', '{$inc: {a: 1}}'), '{"a": {"$numberDecimal": "Infinity"}}', 'infinite decimals'), is(up('{a: NumberDecimal("1")}', '{$inc: {a: NaN}}'), '{"a": {"$numberDecimal": "NaN"}}', 'a double that is not a number'),
       is(up('{a: NumberDecimal("9E+6144")}', '{$mul: {a: 10}}'), '{"a": {"$numberDecimal": "Infinity"}}', 'a decimal too large');
SELECT is(up('{a: 1}', format('{%s: {a: %s}}', o, v)), '22023', o || ' by ' || v) FROM unnest(ARRAY['$inc', '$mul']) o, unnest(ARRAY['"1"', 'null', '[1]', '{b: 1}', 'true']) v;
SELECT is(up(bson_build('a', v), format('{%s: {a: 1}}', o)), '42804', o || ' of ' || v::text) FROM unnest(ARRAY['$inc', '$mul']) o, unnest(ARRAY['"1"', 'null', '[1]', '{"b": 1}', 'true']::bson_value[]) v;
SELECT matches(message('{a: {b: "x"}}', '{$inc: {"a.b": 1}}'), '\$inc.*a\.b.*string', 'the error names operator, path and type'), matches(message('{a: 1}', '{$mul: {a: "x"}}'), '\$mul\.a', 'and the place in the update');

-- ---------------------------------------------------------------- $min, $max

SELECT is(up('{a: 5, b: 5, c: 5}', '{$min: {a: 3, b: 7, d: 1}, $max: {c: 9, e: 1}}'), '{"a": 3, "b": 5, "c": 9, "d": 1, "e": 1}', '$min and $max');
SELECT is(up('{a: 5}', '{$min: {a: 5.0}}'), '{"a": 5}', 'the old value stays when they are equal'), is(up('{a: 5}', '{$max: {a: NumberLong(5)}}'), '{"a": 5}', 'by $max too');
SELECT is(up('{a: "x", b: 5, c: null}', '{$min: {a: 9}, $max: {b: "a", c: 0}}'), '{"a": 9, "b": "a", "c": 0}', 'by the order of all types'), is(up('{a: [1], b: true}', '{$max: {a: {x: 1}, b: []}}'), '{"a": [1], "b": true}', 'with containers');

-- what equals the old value leaves it
SELECT is(up('{a: -0.0}', '{$inc: {a: 0.0}}'), '{"a": -0.0}', 'a zero keeps its sign'), is(up('{a: -0.0}', '{$mul: {a: -1.0}}'), '{"a": -0.0}', 'by $mul'),
       is(up('{a: NumberDecimal("-0E+3")}', '{$mul: {a: 1}}'), '{"a": {"$numberDecimal": "-0E+3"}}', 'a decimal zero'), is(up('{a: NumberDecimal("-5")}', '{$mul: {a: 0}}'), '{"a": {"$numberDecimal": "-0"}}', 'a product of zero'),
       is(up('{a: NumberDecimal("1.5")}', '{$inc: {a: NumberDecimal("-1.5")}}'), '{"a": {"$numberDecimal": "0.0"}}', 'a sum of zero'), is(up('{a: 0}', '{$inc: {a: NumberLong(0)}}'), '{"a": {"$numberLong": "0"}}', 'another type is put');

-- ---------------------------------------------------------------- $rename

SELECT is(up('{a: 1, b: 2}', '{$rename: {a: "c"}}'), '{"b": 2, "c": 1}', '$rename'), is(up('{a: 1, b: 2, c: 3}', '{$rename: {a: "c"}}'), '{"b": 2, "c": 1}', 'onto a field that is there');
SELECT is(up('{a: {b: 1, c: 2}}', '{$rename: {"a.b": "d.e"}}'), '{"a": {"c": 2}, "d": {"e": 1}}', 'into another document'), is(up('{a: 1}', '{$rename: {x: "y"}}'), '{"a": 1}', 'nothing is there'), is(up('{a: 1}', '{$rename: {"x.y": "z.z"}}'), '{"a": 1}', 'nothing is made');
SELECT is(up('{a: 1, b: 2}', '{$rename: {a: "b", c: "d"}}'), '{"b": 1}', 'two at once'), is(up('{a: [1], b: 2}', '{$rename: {a: "c"}}'), '{"b": 2, "c": [1]}', 'an array itself can move');
SELECT is(up(d, u), '22023', '$rename ' || u || ' in ' || d::text) FROM (VALUES ('{a: [{b: 1}]}'::bson, '{$rename: {"a.0.b": "c"}}'), ('{a: [{b: 1}]}', '{$rename: {"a.b": "c"}}'), ('{a: [1], b: 1}', '{$rename: {b: "a.0"}}'), ('{a: 1, b: 1}', '{$rename: {b: "a.x"}}'),
  ('{a: 1}', '{$rename: {"a.b": "c"}}'), ('{a: 1}', '{$rename: {a: 5}}'), ('{a: 1}', '{$rename: {a: ""}}'), ('{a: 1}', '{$rename: {a: "b..c"}}'), ('{a: [1]}', '{$rename: {"a.$[]": "b"}}'), ('{a: 1}', '{$rename: {a: "b.$"}}'), ('{a: 1}', '{$rename: {a: "b\0c"}}')) t (d, u);

-- ---------------------------------------------------------------- $currentDate, $bit, $setOnInsert

SELECT is((bson_update('{a: 1}', '{$currentDate: {a: true}}') ->> 'a')::timestamptz, date_trunc('milliseconds', now()), '$currentDate'), is((bson_update('{}', '{$currentDate: {"a.b": {$type: "date"}}}') ->> 'a.b')::timestamptz, date_trunc('milliseconds', now()), 'as a date');
SELECT is(bson_typeof(bson_update('{}', '{$currentDate: {a: {$type: "timestamp"}}}') -> 'a'), 'timestamp', 'as a timestamp'), is((bson_update('{}', '{$currentDate: {a: {$type: "timestamp"}}}') ->> 'a')::jsonb #>> '{$timestamp,t}', floor(extract(epoch FROM now()))::text, 'of the same second');
SELECT is(up('{}', format('{$currentDate: {a: %s}}', v)), '22023', '$currentDate of ' || v) FROM unnest(ARRAY['1', '"date"', '{}', '{$type: 9}', '{$type: "time"}', '{x: 1}']) v;
SELECT is(up('{}', '{$currentDate: {a: {$foo: 1}}}'), '0A000', 'an unknown modifier');
SELECT is(up('{a: 13}', '{$bit: {a: {and: 10}}}'), '{"a": 8}', 'and'), is(up('{a: 3}', '{$bit: {a: {or: 5}}}'), '{"a": 7}', 'or'), is(up('{a: 1}', '{$bit: {a: {xor: 5}}}'), '{"a": 4}', 'xor'), is(up('{a: 15}', '{$bit: {a: {and: 6, or: 8, xor: 1}}}'), '{"a": 15}', 'one after the other');
SELECT is(up('{}', '{$bit: {a: {or: 5}, b: {and: NumberLong(5)}}}'), '{"a": 5, "b": {"$numberLong": "0"}}', 'nothing counts as zero'), is(up('{a: 1}', '{$bit: {a: {or: NumberLong(2)}}}'), '{"a": {"$numberLong": "3"}}', 'a long makes a long'), is(up('{a: NumberLong(-1)}', '{$bit: {a: {and: -1}}}'), '{"a": {"$numberLong": "-1"}}', 'negative ones');
SELECT is(up('{a: 1}', format('{$bit: {a: %s}}', v)), '22023', '$bit of ' || v) FROM unnest(ARRAY['1', '{}', '{and: 1.5}', '{and: 1.0}', '{and: "1"}', '{nand: 1}']) v;
SELECT is(up('{a: 1}', '{$bit: {a: {$and: 1}}}'), '0A000', 'an unknown operation'), is(up('{a: 1.0}', '{$bit: {a: {or: 1}}}'), '42804', '$bit of a double'), is(up('{a: null}', '{$bit: {a: {or: 1}}}'), '42804', 'and of null');
SELECT is(up('{a: 1}', '{$setOnInsert: {a: 5, b: 5, "a.c": 1}}'), '22023', '$setOnInsert takes part in conflicts'), is(up('{a: 1}', '{$setOnInsert: {b: 5, "c.d": 1}, $set: {e: 1}}'), '{"a": 1, "e": 1}', 'and does nothing else'), is(up('{a: 1}', '{$setOnInsert: {"a.b": 5}}'), '{"a": 1}', 'nor fails');

-- ---------------------------------------------------------------- $push

SELECT is(up('{a: [1]}', '{$push: {a: 2, b: 3, "c.d": [4]}}'), '{"a": [1, 2], "b": [3], "c": {"d": [[4]]}}', '$push: an array is one value'), is(up('{a: [1]}', '{$push: {a: {$each: [2, 3]}, b: {$each: []}}}'), '{"a": [1, 2, 3], "b": []}', '$each');
SELECT is(up('{a: [[1]]}', '{$push: {"a.0": 2, "a.2": 5}}'), '{"a": [[1, 2], null, [5]]}', 'an array in an array'), is(up('{a: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}', '{$push: {a: "ten"}}')::bson #>> '{a,10}', 'ten', 'the eleventh');
SELECT is(up('{a: [1, 2, 3]}', format('{$push: {a: {$each: [8, 9], $position: %s}}}', p)), r, '$position ' || p) FROM (VALUES ('0', '{"a": [8, 9, 1, 2, 3]}'), ('1', '{"a": [1, 8, 9, 2, 3]}'), ('7', '{"a": [1, 2, 3, 8, 9]}'), ('-1', '{"a": [1, 2, 8, 9, 3]}'), ('-9', '{"a": [8, 9, 1, 2, 3]}'), ('1.0', '{"a": [1, 8, 9, 2, 3]}')) t (p, r);
SELECT is(up('{a: [1, 2, 3]}', format('{$push: {a: {$each: [4], $slice: %s}}}', p)), r, '$slice ' || p) FROM (VALUES ('0', '{"a": []}'), ('2', '{"a": [1, 2]}'), ('9', '{"a": [1, 2, 3, 4]}'), ('-2', '{"a": [3, 4]}'), ('-9', '{"a": [1, 2, 3, 4]}')) t (p, r);
SELECT is(up('{a: [3, "x", 1]}', '{$push: {a: {$each: [2, null], $sort: 1}}}'), '{"a": [null, 1, 2, 3, "x"]}', '$sort'), is(up('{a: [3, "x", 1]}', '{$push: {a: {$each: [], $sort: -1}}}'), '{"a": ["x", 3, 1]}', 'downwards');
SELECT is(up('{a: [{k: 2, v: 1}, {k: 1, v: 2}]}', '{$push: {a: {$each: [{k: 2, v: 3}, 7], $sort: {k: -1, v: 1}}}}'), '{"a": [{"k": 2, "v": 1}, {"k": 2, "v": 3}, {"k": 1, "v": 2}, 7]}', 'by fields'), is(up('{a: [{b: {c: 2}}, {b: {c: 1}}]}', '{$push: {a: {$each: [], $sort: {"b.c": 1}}}}'), '{"a": [{"b": {"c": 1}}, {"b": {"c": 2}}]}', 'by a path');
SELECT is(up('{a: [{k: 1, i: 1}, {k: 1, i: 2}, {k: 0, i: 3}]}', '{$push: {a: {$each: [{k: 1, i: 4}], $sort: {k: 1}}}}'), '{"a": [{"k": 0, "i": 3}, {"k": 1, "i": 1}, {"k": 1, "i": 2}, {"k": 1, "i": 4}]}', 'equal ones stay in order');
SELECT is(up('{a: [5, 1]}', '{$push: {a: {$slice: 3, $sort: 1, $each: [9, 0], $position: 0}}}'), '{"a": [0, 1, 5]}', 'insert, sort, slice, in whatever order they are written'), is(up('{}', '{$push: {a: {$each: [3, 1, 2], $sort: 1, $slice: -2}}}'), '{"a": [2, 3]}', 'of a new array too');
SELECT is(up('{a: [{x: 2, y: 1}, {x: 1, y: 3}]}', '{$push: {a: {$each: [{x: 0, y: 2}], $sort: {x: 1}, $sort: {y: -1, x: 1, z: 1, w: 1, v: 1, u: 1, t: 1, s: 1}}}}'), '{"a": [{"x": 1, "y": 3}, {"x": 0, "y": 2}, {"x": 2, "y": 1}]}', 'the last $sort counts'),
       is(up('{a: [3, 1]}', '{$push: {a: {$each: [2], $sort: {x: 1, y: 1}, $sort: -1}}}'), '{"a": [3, 2, 1]}', 'whatever kind it is of');
SELECT is(up('{a: [1]}', format('{$push: {a: %s}}', v)), '22023', '$push of ' || v) FROM unnest(ARRAY['{$each: 1}', '{$each: [1], x: 1}', '{$each: [1], $slice: "1"}', '{$each: [1], $slice: 1.5}', '{$each: [1], $position: null}', '{$each: [1], $sort: 2}', '{$each: [1], $sort: {}}', '{$each: [1], $sort: {a: 0}}', '{$each: [1], $sort: {"a..b": 1}}', '{$each: [1], $sort: "a"}']) v;
SELECT is(up('{a: [1]}', format('{$push: {a: %s}}', v)), format('{"a": [1, %s]}', v), 'without $each a literal: ' || v) FROM unnest(ARRAY['{"$slice": -1}', '{"$sort": 1, "$position": 1}']) v;
SELECT is(up('{a: [1]}', '{$push: {a: {$each: [1], $foo: 1}}}'), '0A000', 'an unknown modifier');
SELECT is(up(bson_build('a', v), '{$push: {a: 1}}'), '42804', '$push to ' || v::text) FROM unnest(ARRAY['1', 'null', '{"b": 1}']::bson_value[]) v;
SELECT is((SELECT (bson_update(bson_build('a', bson_agg(i)), '{$push: {a: {$each: [100000], $sort: -1, $slice: 3}}}') -> 'a')::text FROM generate_series(1, 20000) i), '[100000, 20000, 19999]', 'a long array');

-- ---------------------------------------------------------------- $addToSet

SELECT is(up('{a: [1, 2]}', '{$addToSet: {a: 2, b: 3}}'), '{"a": [1, 2], "b": [3]}', '$addToSet'), is(up('{a: [1, 2]}', '{$addToSet: {a: 2.0}}'), '{"a": [1, 2]}', 'an equal number'), is(up('{a: [1]}', '{$addToSet: {a: {$each: [3, 1, 3.0, 2]}}}'), '{"a": [1, 3, 2]}', '$each, each of them once');
SELECT is(up('{a: [{x: 1, y: 2}]}', '{$addToSet: {a: {x: 1, y: 2}}}'), '{"a": [{"x": 1, "y": 2}]}', 'an equal document'), is(up('{a: [{x: 1, y: 2}]}', '{$addToSet: {a: {y: 2, x: 1}}}'), '{"a": [{"x": 1, "y": 2}, {"y": 2, "x": 1}]}', 'in another order it is another one');
SELECT is(up('{a: [1]}', '{$addToSet: {a: [1, 2]}}'), '{"a": [1, [1, 2]]}', 'an array is one value'), is(up('{}', '{$addToSet: {a: {$each: [1, 1]}, b: {$each: []}}}'), '{"a": [1], "b": []}', 'of nothing'), is(up('{a: [1, 1]}', '{$addToSet: {a: 2}}'), '{"a": [1, 1, 2]}', 'what was twice stays');
SELECT is(up('{a: [1]}', format('{$addToSet: {a: %s}}', v)), '22023', '$addToSet of ' || v) FROM unnest(ARRAY['{$each: 1}', '{$each: [1], x: 1}']) v;
SELECT is(up('{a: [1]}', '{$addToSet: {a: {$each: [1], $slice: 1}}}'), '0A000', 'an unknown modifier'), is(up('{a: 1}', '{$addToSet: {a: 1}}'), '42804', '$addToSet to a number'), is(up('{a: null}', '{$addToSet: {a: 1}}'), '42804', 'and to null');
SELECT is((SELECT bson_size(bson_update(bson_build('a', bson_agg(i)), bson_build('$addToSet', bson_build('a', bson_build('$each', bson_agg(i + 500)))))) = bson_size((SELECT bson_build('a', bson_agg(j)) FROM generate_series(1, 1500) j)) FROM generate_series(1, 1000) i), true, 'a thousand at once');

-- ---------------------------------------------------------------- $pop, $pull, $pullAll

SELECT is(up('{a: [1, 2, 3], b: [1, 2], c: []}', '{$pop: {a: 1, b: -1, c: 1, d: 1}}'), '{"a": [1, 2], "b": [2], "c": []}', '$pop'), is(up('{a: [1]}', '{$pop: {a: 1.0}}'), '{"a": []}', 'the last one');
SELECT is(up('{a: [1]}', format('{$pop: {a: %s}}', v)), '22023', '$pop of ' || v) FROM unnest(ARRAY['0', '2', '"1"', 'true']) v;
SELECT is(up('{a: 5}', format('{%s: {a: %s}}', o, v)), '42804', o || ' from a number'), is(up('{a: null}', format('{%s: {a: %s}}', o, v)), '42804', o || ' from null'), is(up('{b: 1}', format('{%s: {a: %s, "c.d": %s}}', o, v, v)), '{"b": 1}', o || ' from nothing'),
  is(up('{a: 5}', format('{%s: {"a.b": %s}}', o, v)), '22023', o || ' through a number') FROM (VALUES ('$pop', '1'), ('$pull', '1'), ('$pullAll', '[1]')) t (o, v);
SELECT is(up('{a: [1, 2, 1, 3, 1.0]}', '{$pull: {a: 1}}'), '{"a": [2, 3]}', '$pull: a value'), is(up('{a: [1, "x", null]}', '{$pull: {a: null}}'), '{"a": [1, "x"]}', 'null'), is(up('{a: [[1, 2], 1, 2]}', '{$pull: {a: [1, 2]}}'), '{"a": [1, 2]}', 'an array'), is(up('{a: [[5], 5]}', '{$pull: {a: 5}}'), '{"a": [[5]]}', 'not what is in an array inside');
SELECT is(up('{a: [1, 5, 8]}', '{$pull: {a: {$gte: 5}}}'), '{"a": [1]}', 'a condition'), is(up('{a: [1, 5, 8]}', '{$pull: {a: {$in: [1, 8]}}}'), '{"a": [5]}', '$in'), is(up('{a: ["ab", "cb", 5]}', '{$pull: {a: /^a/}}'), '{"a": ["cb", 5]}', 'a regular expression');
SELECT is(up('{a: [{x: 1, y: 2}, {x: 2}, 1]}', '{$pull: {a: {x: 1}}}'), '{"a": [{"x": 2}, 1]}', 'a document is a query'), is(up('{a: [{x: 1, y: 2}, {y: 2, x: 1}]}', '{$pull: {a: {y: 2, x: 1}}}'), '{"a": []}', 'whatever the order'), is(up('{a: [{x: 5}, {x: 9}]}', '{$pull: {a: {x: {$gt: 6}}}}'), '{"a": [{"x": 5}]}', 'with conditions'),
       is(up('{a: [{x: 5}, {x: 9}, 5]}', '{$pull: {a: {$or: [{x: 5}, {x: 1}]}}}'), '{"a": [{"x": 9}, 5]}', 'with $or'), is(up('{a: [{b: {x: 1, y: 2}}, {b: {y: 2, x: 1}}]}', '{$pull: {a: {b: {x: 1, y: 2}}}}'), '{"a": [{"b": {"y": 2, "x": 1}}]}', 'a document further in by its order'),
       is(up('{a: [{r: [{q: 1, v: 4}]}, {r: [{q: 2, v: 8}]}]}', '{$pull: {a: {r: {$elemMatch: {q: 2, v: {$gte: 8}}}}}}'), '{"a": [{"r": [{"q": 1, "v": 4}]}]}', 'with $elemMatch');
SELECT is(up('{a: [1]}', '{$pull: {a: {$foo: 1}}}'), '0A000', 'an unknown operator in $pull');
SELECT is(up('{a: [1, 2, 3, 1.0, "x"]}', '{$pullAll: {a: [1, "x", 9]}}'), '{"a": [2, 3]}', '$pullAll'), is(up('{a: [{x: 1, y: 2}, {y: 2, x: 1}]}', '{$pullAll: {a: [{x: 1, y: 2}]}}'), '{"a": [{"y": 2, "x": 1}]}', 'documents by their order'), is(up('{a: [1]}', '{$pullAll: {a: 1}}'), '22023', '$pullAll of a number');
SELECT matches(message('{a: {b: 1}}', '{$push: {"a.b": 1}}'), '\$push.*a\.b.*int', 'errors name operator, path and type');

-- ---------------------------------------------------------------- $[] and $[identifier]

SELECT is(up('{a: [1, 2]}', '{$inc: {"a.$[]": 10}}'), '{"a": [11, 12]}', '$[]'), is(up('{a: [{b: [1, 2]}, {b: [3]}]}', '{$mul: {"a.$[].b.$[]": 2}}'), '{"a": [{"b": [2, 4]}, {"b": [6]}]}', 'in each other'), is(up('{a: [{x: 1}, {}]}', '{$set: {"a.$[].y": 0}}'), '{"a": [{"x": 1, "y": 0}, {"y": 0}]}', 'a field of each'), is(up('{a: []}', '{$set: {"a.$[]": 0}}'), '{"a": []}', 'of none');
SELECT is(up('{a: [1, 2]}', '{$unset: {"a.$[]": 1}}'), '{"a": [null, null]}', '$unset of each'), is(up('{a: [[1], [2]]}', '{$push: {"a.$[]": 0}}'), '{"a": [[1, 0], [2, 0]]}', '$push to each');
SELECT is(up(d, '{$set: {"a.$[]": 1}}'), '22023', '$[] of ' || d::text) FROM unnest(ARRAY['{}', '{a: 1}', '{a: {b: 1}}']::bson[]) d;
SELECT is(up('{a: [[1]]}', format('{$set: {"%s": 1}}', p)), '22023', 'the path ' || p) FROM unnest(ARRAY['$[]', '$[x]', '$', 'a.$[x', 'a.$[y]']) p;
SELECT is(up('{a: [1, 5, 9]}', '{$set: {"a.$[x]": 0}}', NULL, '[{x: {$gt: 4}}]'), '{"a": [1, 0, 0]}', '$[identifier]'), is(up('{a: [{g: 80, m: 1}, {g: 90, m: 2}]}', '{$inc: {"a.$[e].m": 5}}', NULL, '[{"e.g": {$gte: 85}}]'), '{"a": [{"g": 80, "m": 1}, {"g": 90, "m": 7}]}', 'by a field'),
       is(up('{a: [{t: "x", q: [1, 9]}, {t: "y", q: [9]}]}', '{$set: {"a.$[t].q.$[s]": 0}}', NULL, '[{"t.t": "x"}, {s: {$gt: 5}}]'), '{"a": [{"t": "x", "q": [1, 0]}, {"t": "y", "q": [9]}]}', 'two of them'),
       is(up('{a: [{p: 1}, {p: 2}]}', '{$set: {"a.$[x].q": 1, "a.$[y].r": 2}}', NULL, '[{"x.p": 1}, {"y.p": {$gte: 1}}]'), '{"a": [{"p": 1, "q": 1, "r": 2}, {"p": 2, "r": 2}]}', 'two that meet at an element');
SELECT is(up('{a: [1, 2]}', '{$set: {"a.$[x]": 1}, $inc: {"a.$[y]": 1}}', NULL, '[{x: 1}, {y: 2}]'), '{"a": [1, 3]}', 'two that do not meet'), is(up('{a: [1, 2]}', '{$set: {"a.$[x]": 1}, $inc: {"a.$[y]": 1}}', NULL, '[{x: 1}, {y: 1}]'), '22023', 'two that conflict at an element');
SELECT is(up('{a: [1]}', '{$set: {"a.$[x]": 1}}', NULL, f::bson_value), '22023', 'array_filters ' || f) FROM unnest(ARRAY['{x: 1}', '[1]', '[]', '[{y: 1}]', '[{x: 1}, {x: 2}]', '[{x: 1}, {y: 2}]', '[{x: 1, y: 1}]', '[{}]']) f;
SELECT is(up('{a: [1]}', '{a: 1}', NULL, '[{x: 1}]'), '22023', 'array_filters that nothing uses');

-- ---------------------------------------------------------------- the positional $

SELECT is(up('{a: [1, 5, 5]}', '{$set: {"a.$": 0}}', '{a: 5}'), '{"a": [1, 0, 5]}', '$: the first that matched'), is(up('{a: [{t: "x", n: 1}, {t: "y", n: 1}]}', '{$inc: {"a.$.n": 1}}', '{"a.t": "y"}'), '{"a": [{"t": "x", "n": 1}, {"t": "y", "n": 2}]}', 'by a field'),
       is(up('{a: [{t: 1, n: 5}, {t: 2, n: 5}]}', '{$unset: {"a.$.n": 1}}', '{a: {$elemMatch: {t: 2, n: 5}}}'), '{"a": [{"t": 1, "n": 5}, {"t": 2}]}', 'by $elemMatch'), is(up('{k: 1, a: [4, 7]}', '{$set: {"a.$": 0}}', '{k: 1, a: {$gt: 5}}'), '{"k": 1, "a": [4, 0]}', 'beside other conditions'),
       is(up('{a: [{b: 1, c: 2}]}', '{$set: {"a.$.b": 5, "a.0.c": 6}}', '{"a.b": 1}'), '{"a": [{"b": 5, "c": 6}]}', 'beside the position itself'), is(up('{a: [{b: [1, 2]}]}', '{$push: {"a.$.b": 3}}', '{"a.b": 2}'), '{"a": [{"b": [1, 2, 3]}]}', 'of an outer array');
SELECT is(up(d, u, f), '22023', 'no element: ' || u || ' where ' || coalesce(f::text, 'there is no filter')) FROM (VALUES ('{a: [1]}'::bson, '{$set: {"a.$": 0}}', NULL::bson), ('{a: [1]}', '{$set: {"a.$": 0}}', '{}'), ('{a: [1]}', '{$set: {"a.$": 0}}', '{a: 2}'), ('{a: [1], b: 1}', '{$set: {"a.$": 0}}', '{b: 1}'),
  ('{a: [[1]]}', '{$set: {"a.$.b.$": 0}}', '{a: 1}'), ('{a: [1]}', '{$set: {"a.$": 0, "a.0": 1}}', '{a: 1}')) t (d, u, f);

-- ---------------------------------------------------------------- whole documents

SELECT is(up('{_id: 1, a: 1, b: 2}', '{c: 3}'), '{"_id": 1, "c": 3}', 'a document keeps its _id'), is(up('{a: 1}', '{b: 2}'), '{"b": 2}', 'if it has one'), is(up('{_id: 1, a: 1}', '{}'), '{"_id": 1}', 'an empty one'), is(up('{a: 1, _id: 1}', '{_id: 1, b: {$x: 1}}'), '{"_id": 1, "b": {"$x": 1}}', 'the same _id; names further in are free');
SELECT is(up('{_id: 1}', '{a: 1, $b: 2}'), '22023', 'a name that begins with $');

-- ---------------------------------------------------------------- stages

SELECT is(up('{_id: 1, a: 5, b: 2}', '[{$set: {t: {$add: ["$a", "$b"]}}}, {$unset: "a"}, {$addFields: {u: {$multiply: ["$t", 2]}}}]'), '{"_id": 1, "b": 2, "t": 7, "u": 14}', 'stages, one after the other'), is(up('{a: 1}', '[]'), '{"a": 1}', 'none');
SELECT is(up('{a: 1, b: 2}', '[{$set: {b: "$a", a: "$b"}}]'), '{"a": 2, "b": 1}', 'the fields of a stage see the document before it'), is(up('{a: 1, b: 2}', '[{$set: {a: "$$REMOVE", b: "$none", c: "$none"}}]'), '{}', 'what is missing goes');
SELECT is(up('{a: {b: 1}, c: 5, d: [{e: 1}, 7, [{e: 2}]]}', '[{$set: {"a.x": 1, "c.x": 2, "d.x": 3, f: {g: {h: "$a.b"}}}}]'), '{"a": {"b": 1, "x": 1}, "c": {"x": 2}, "d": [{"e": 1, "x": 3}, {"x": 3}, [{"e": 2, "x": 3}]], "f": {"g": {"h": 1}}}', 'paths, through documents, other values and arrays');
SELECT is(up('{a: {b: 1, c: 2}, d: [{b: 1, c: 2}, 5], e: 1}', '[{$unset: ["a.b", "d.b", "e", "x.y"]}]'), '{"a": {"c": 2}, "d": [{"c": 2}, 5]}', '$unset of several'), is(up('{a: 1, b: 2, a: 3}', '[{$unset: "a"}]'), '{"b": 2}', 'of all of the name'), is(up('{a: {}}', '[{$set: {a: {}, b: {$literal: {$x: 1}}}}]'), '{"a": {}, "b": {"$x": 1}}', 'documents as values');
SELECT is(up('{_id: 1, a: {b: 2}}', '[{$replaceWith: "$a"}]'), '{"_id": 1, "b": 2}', '$replaceWith keeps the _id'), is(up('{_id: 1, a: {b: 2}}', '[{$replaceRoot: {newRoot: {$mergeObjects: ["$a", {c: 3}]}}}]'), '{"_id": 1, "b": 2, "c": 3}', '$replaceRoot'), is(up('{_id: 1, a: {_id: 2}}', '[{$replaceWith: "$a"}]'), '22023', 'another _id'), is(up('{_id: 1, a: 2}', '[{$set: {_id: 2}}]'), '22023', 'by $set'), is(up('{_id: 1, a: 2}', '[{$unset: "_id"}]'), '{"_id": 1, "a": 2}', 'it cannot be taken away');
SELECT is(up('{_id: 1, a: 5, b: 2, c: {d: 1, e: 2}}', '[{$project: {a: 1, "c.d": 1, t: {$add: ["$a", "$b"]}}}]'), '{"_id": 1, "a": 5, "c": {"d": 1}, "t": 7}', '$project'), is(up('{_id: 1, a: 5, b: 2}', '[{$project: {b: 0}}]'), '{"_id": 1, "a": 5}', 'which leaves out'), is(up('{_id: 1, a: 5, b: 2}', '[{$project: {_id: 0, b: 1}}]'), '{"_id": 1, "b": 2}', 'but not the _id'), is(up('{a: 5}', '[{$project: 5}]'), '22023', 'bad ones'), is(up('{a: 5}', '[{$project: {a: 1, b: 0}}]'), '22023', 'and mixed ones');
SELECT is(up('{a: 1}', s), '22023', 'bad stages: ' || s) FROM unnest(ARRAY['[1]', '[{}]', '[{$set: {a: 1}, $unset: "b"}]', '[{$set: 5}]', '[{$set: {"": 1}}]', '[{$set: {"a..b": 1}}]', '[{$set: {$a: 1}}]', '[{$set: {a: 1, "a.b": 1}}]', '[{$set: {"a.b": 1, a: 1}}]', '[{$unset: 5}]', '[{$unset: []}]', '[{$unset: [5]}]', '[{$unset: ["a", "a.b"]}]', '[{$unset: ""}]',
  '[{$replaceWith: "$a"}]', '[{$replaceWith: "$none"}]', '[{$replaceRoot: {}}]', '[{$replaceRoot: {root: "$a"}}]', '[{$replaceRoot: {newRoot: "$a", x: 1}}]']) s;
SELECT is(up('{a: 1}', s), '0A000', 'unknown: ' || s) FROM unnest(ARRAY['[{$match: {a: 1}}]', '[{$push: {a: 1}}]', '[{a: 1}]', '[{$set: {a: {$foo: 1}}}]']) s;
SELECT matches(message('{a: 1}', '[{$set: {b: 1}}, {$set: {a: {b: {$foo: 1}}}}]'), '1\.\$set\.a\.b\.\$foo', 'the error names the place');
SELECT is(up('{}', format('[{$set: {"%s": 1}}]', repeat('a.', 100) || 'a')), '54000', 'a path of 101 parts'), is((bson_update('{}', '[{$set: {at: "$$NOW"}}]') ->> 'at')::timestamptz, date_trunc('milliseconds', now()), '$$NOW');
SELECT is(up(NULL, '[{$set: {n: {$add: ["$k", 1]}}}]', '{k: 4}', NULL, true), '{"k": 4, "n": 5}', 'an upsert'), is(up('{a: [1]}', '[{$set: {a: 1}}]', NULL, '[{x: 1}]'), '22023', 'array_filters are for operators');

-- ---------------------------------------------------------------- upserts

SELECT is(up(NULL, '{$set: {a: 1}, $inc: {n: 2}, $setOnInsert: {b: 3}}', NULL, NULL, true), '{"a": 1, "b": 3, "n": 2}', 'an insert'), is(up('{x: 1}', '{$set: {a: 1}, $setOnInsert: {b: 3}}', NULL, NULL, true), '{"x": 1, "a": 1}', 'an update');
SELECT is(up(NULL, '{$inc: {n: 1}}', '{k: "x", "a.b": 1, c: {$gt: 5}, d: {$eq: 2}, $and: [{e: 3}], $or: [{f: 1}, {f: 2}]}', NULL, true), '{"a": {"b": 1}, "d": 2, "e": 3, "k": "x", "n": 1}', 'begins with what the filter says is equal'), is(up(NULL, '{$set: {a: 1}}', '{Z: 1, _id: 7}', NULL, true), '{"_id": 7, "Z": 1, "a": 1}', '_id in front'),
       is(up(NULL, '{$inc: {a: 5}}', '{a: 1}', NULL, true), '{"a": 6}', 'the update works on that'), is(up(NULL, '{$unset: {a: 1}}', '{a: 1}', NULL, true), '{}', 'to the end'), is(up(NULL, '{b: 1}', '{_id: 3, a: 1}', NULL, true), '{"_id": 3, "b": 1}', 'a whole document takes the _id only'), is(up(NULL, '{$push: {a: 1}}', '{}', NULL, true), '{"a": [1]}', '$push'),
       is(up(NULL, '{$set: {_id: 5}}', '{k: 1}', NULL, true), '{"_id": 5, "k": 1}', '_id from the update'), is(up(NULL, '{$set: {_id: 5}}', '{_id: 4}', NULL, true), '22023', 'but no other than the filter''s'), is(up(NULL, '{$set: {"a.$": 5}}', '{a: 4}', NULL, true), '22023', 'nor $'), is(up(NULL, '{$set: {x: 5}}', '{a: 4, "a.b": 1}', NULL, true), '22023', 'a filter that contradicts itself'),
       is(up(NULL, '{$unset: {b: 5}}', NULL, NULL, true), '{}', 'nothing at all');

-- ---------------------------------------------------------------- in collections

SELECT collection_create('metrics_by_minute'), collection_create('article'), collection_create('patients') \g /dev/null
INSERT INTO metrics_by_minute (doc) VALUES ('{clientid: 1234, timestamp: ISODate("2015-05-29T23:06:00.000Z"), metric: "op_counter", values: {0: 0, 59: 2000000}}'), ('{clientid: 1234, metric: "other", values: {0: 0}}');
UPDATE metrics_by_minute SET doc = bson_update(doc, '{ $set : { "values.37" : 50000 } }') WHERE doc @@ '{ "clientid" : 1234, "timestamp": ISODate("2015-05-29T23:06:00.000Z"), "metric": "op_counter"}';
SELECT results_eq($$SELECT doc ->> 'metric' FROM metrics_by_minute WHERE doc @@ '{"values.37": 50000, "values.59": 2000000, "values.0": 0}'$$, ARRAY['op_counter'], 'the exact slot, the others stay');
INSERT INTO metrics_by_minute (doc) SELECT bson_update(NULL, u, f, upsert => true) FROM (VALUES ('{ $inc : { "values.37" : 50000 } }', '{clientid: 1234, metric: "insert"}'::bson)) v (u, f);
UPDATE metrics_by_minute SET doc = bson_update(doc, '{ $inc : { "values.37" : 50000 } }') WHERE doc @@ '{clientid: 1234, metric: "insert"}';
SELECT is((SELECT (doc - '_id')::text FROM metrics_by_minute WHERE doc @@ '{metric: "insert"}'), '{"clientid": 1234, "metric": "insert", "values": {"37": 100000}}', 'incremented from nothing, twice');
INSERT INTO article (doc) VALUES ('{"_id": "/decoy", "tags": [{"type": "financials", "label": "AAPL"}, {"type": "ticker", "label": "Earnings"}]}');
UPDATE article SET doc = bson_update(doc, '{$set: {"tags.$.label": "Results"}}', '{"tags.type": "financials"}') WHERE _id = '/decoy'::text;
SELECT ok(doc @@ '{"tags.0.label": "Results", "tags.1.label": "Earnings"}', 'the positional $') FROM article;
INSERT INTO patients (doc) VALUES ('{_id: 12345, name: "John Doe", numProcedures: 2, procedures: ["proc121", "proc122"], addr: {city: "Austin", state: "CA"}}');
UPDATE patients SET doc = bson_update(doc, '{ $inc : {numProcedures : 1}, $push : {procedures : "proc123"}, $set : {"addr.state" : "TX"} }') WHERE _id = 12345;
SELECT ok(doc = '{_id: 12345, name: "John Doe", numProcedures: 3, procedures: ["proc121", "proc122", "proc123"], addr: {city: "Austin", state: "TX"}}', 'all or nothing') FROM patients;

-- ---------------------------------------------------------------- nothing changed

CREATE TABLE stored (how text, doc bson);
ALTER TABLE stored ALTER doc SET STORAGE EXTERNAL;
INSERT INTO stored SELECT 'external', bson_build('_id', 1, 'n', 1, 's', 'abc', 'a', '[1, 2]'::bson_value, 'pad', repeat('x', 5000));
ALTER TABLE stored ALTER doc SET STORAGE EXTENDED;
INSERT INTO stored SELECT 'compressed', bson_build('_id', 1, 'n', 1, 's', 'abc', 'a', '[1, 2]'::bson_value, 'pad', repeat('x', 5000));
INSERT INTO stored SELECT 'short', bson_build('_id', 1, 'n', 1, 's', 'abc', 'a', '[1, 2]'::bson_value);
-- a stored value that comes back as it is stored keeps the size that it has there; a copy has none of its compression and a long header
SELECT is((SELECT count(*) FROM stored WHERE pg_column_size(bson_update(doc, u)) <> pg_column_size(doc)), 0::bigint, 'the same datum: ' || u)
  FROM unnest(ARRAY['{$set: {n: 1}}', '{$unset: {q: 1}}', '{$inc: {n: 0}}', '{$mul: {n: 1}}', '{$min: {n: 5}}', '{$max: {n: 0}}', '{$rename: {q: "r"}}', '{$setOnInsert: {q: 1}}', '{$push: {a: {$each: []}}}', '{$push: {a: {$each: [], $sort: 1, $slice: 5}}}', '{$addToSet: {a: 2}}',
    '[{$set: {n: 1}}]', '[{$unset: "q"}]', '[{$project: {q: 0}}]', '{$pull: {a: 9}}', '{$pullAll: {a: [7]}}', '{$pop: {q: 1}}', '{$bit: {n: {or: 1}}}', '{$set: {_id: 1}}', '{$set: {}}']) u;
SELECT is((SELECT count(*) FROM stored WHERE pg_column_size(bson_update(doc, doc)) <> pg_column_size(doc) OR pg_column_size(bson_update(doc, doc - '_id')) <> pg_column_size(doc)), 0::bigint, 'the same datum: the document itself, also without its _id');
SELECT is((SELECT count(*) FROM stored WHERE how <> 'external' AND pg_column_size(bson_update(doc, '{$set: {n: 2}}')) = pg_column_size(doc)), 0::bigint, 'a copy otherwise');
SELECT is((SELECT string_agg(concat_ws(' ', how, bson_update(doc, '{$set: {n: 2}}') ->> 'n', bson_update(doc, '{$set: {s: "xyz"}, $inc: {n: 1}}') ->> 's', bson_update(doc, '{$set: {s: "longer"}, $inc: {n: 1}}') ->> 'n', bson_update(doc, '{$set: {n: 9, _id: 1}}') ->> 'n',
  bson_update(doc, '{$inc: {"a.$[]": 1}, $rename: {s: "t"}}') ->> 'a', doc ->> 'n', doc ->> 's', doc ->> 'a'), ', ' ORDER BY how) FROM stored),
  'compressed 2 xyz 2 9 [2, 3] 1 abc [1, 2], external 2 xyz 2 9 [2, 3] 1 abc [1, 2], short 2 xyz 2 9 [2, 3] 1 abc [1, 2]', 'stored documents are not changed themselves');
SELECT is((SELECT string_agg(concat_ws(' ', bson_update(doc, '{$set: {n: 9, "a.$": 5}}', '{n: 1, a: 2}') ->> 'a', bson_update(doc, '{$inc: {n: 1, "a.$[x]": 1}}', array_filters => '[{x: 1}]') ->> 'a'), ', ' ORDER BY how) FROM stored), '[1, 5] [2, 2], [1, 5] [2, 2], [1, 5] [2, 2]', 'filters see what was stored');
-- an update that is another one for each row
SELECT is((SELECT string_agg(bson_update(bson_build('n', i), bson_build(CASE i % 2 WHEN 0 THEN '$inc' ELSE '$set' END, bson_build('n', i * 10))) ->> 'n', ' ' ORDER BY i) FROM generate_series(1, 4) i), '10 22 30 44', 'updates that change from row to row');
SELECT is((SELECT string_agg(up('{n: 1}', u), ' ') FROM unnest(ARRAY['{$inc: {n: 1}}', '{$foo: {n: 1}}', '{$inc: {n: 2}}', '{$inc: {n: 2}}']) u), '{"n": 2} 0A000 {"n": 3} {"n": 3}', 'an error among them');
SELECT throws_ok(format($$SELECT bson_update('{}', '{$set: {a: "%s", b: "%s"}}')$$, repeat('x', 9000000), repeat('x', 9000000)), '54000', NULL, 'a document too large');

-- array filters that are none, and a stage that is none
SELECT throws_ok(format('SELECT bson_update(%L, %L, array_filters => %L)', '{a: []}', '{$set: {"a.$[x]": 1}}', f), '22023', m, f) FROM (VALUES
  ('[1]', 'expected a filter, not int'),
  ('[{}]', 'an array filter needs the name of a value'),
  ('[{X: 1}]', 'the name of a value in an array filter must begin with a lower-case letter'),
  ('[{x_: 1}]', 'the name of a value in an array filter consists of letters and digits'),
  ('[{"x.a": 1, y: 1}]', 'an array filter speaks of one value, not of "x" and "y"'),
  ('[{$jsonSchema: {}}]', '"$jsonSchema" can only be used in the filter of a query'),
  ('[{x: 1}, {x: 2}]', 'two array filters are for the identifier "x"')
) AS refused (f, m);
SELECT throws_ok($$SELECT bson_update('{}', '[{$replaceRoot: 1}]')$$, '22023', '"$replaceRoot" needs a document with newRoot, not int', 'no newRoot');

-- ---------------------------------------------------------------- immutable forms

SELECT is(provolatile::text || proparallel::text, 'is', proname || ' is immutable') FROM pg_proc WHERE proname IN ('bson_update_immutable', 'bson_project_immutable', 'bson_eval_immutable') ORDER BY proname;
SELECT is(bson_update_immutable('{a: [1, 5]}', u), bson_update('{a: [1, 5]}', u), u::text) FROM unnest(ARRAY[bson_value '{$inc: {n: 1}, $pull: {a: {$gt: 2}}}', bson_value '[{$set: {b: {$dateToString: {date: new Date(0)}}}}]', bson_value '{z: 1}']) u;
SELECT is(bson_update_immutable(NULL, '{$setOnInsert: {b: 1}}', '{_id: 7}', upsert => true)::text, '{"_id": 7, "b": 1}', 'an upsert');
SELECT throws_ok(format('SELECT bson_update_immutable(doc, %1$L, %2$L, %3$L) FROM (VALUES (bson ''{a: []}'')) t (doc)', u, f, a), '0A000', NULL, concat_ws(' ', u, f, a)) FROM (VALUES
  ('{$currentDate: {t: true}}', NULL, NULL),
  ('[{$set: {t: "$$NOW"}}]', NULL, NULL),
  ('[{$replaceWith: {t: {$rand: {}}}}]', NULL, NULL),
  ('{$pull: {a: {$expr: {$lt: ["$t", "$$NOW"]}}}}', NULL, NULL),
  ('{$set: {"a.$": 1}}', '{a: 1, $expr: {$lt: ["$t", "$$NOW"]}}', NULL)) v (u, f, a);
SELECT lives_ok(format('SELECT bson_update(''{a: [{t: 1}]}'', %L)', u), u || ' is not wrong') FROM unnest(ARRAY['{$pull: {a: {$expr: {$lt: ["$t", "$$NOW"]}}}}', '[{$replaceWith: {t: {$rand: {}}}}]']) u;
SELECT throws_ok($q$SELECT bson_update_immutable('{}', '{$currentDate: {t: {$type: "date"}}}')$q$, '0A000', '$currentDate is not allowed here, because the result must not depend on the time', 'what is wrong');

SELECT * FROM finish();
ROLLBACK;
