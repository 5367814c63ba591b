-- The calls for collections: signatures, results, what the planner makes of them, names, rights, views, partitions, errors.
\set QUIET 1
\pset fieldsep '\n'
SET client_min_messages = warning;
BEGIN;
SELECT plan(537);

-- ---------------------------------------------------------------- signatures

SELECT function_returns('collection_insert', ARRAY['regclass', '"any"'], 'setof bson_value');
SELECT function_returns('collection_find', ARRAY['regclass', 'bson', 'bson', 'bson', 'bigint', 'bigint', 'bson'], 'setof bson');
SELECT function_returns('collection_count', ARRAY['regclass', 'bson', 'bson'], 'bigint');
SELECT function_returns('collection_distinct', ARRAY['regclass', 'text', 'bson', 'bson'], 'setof bson_value');
SELECT function_returns('collection_delete', ARRAY['regclass', 'bson', 'boolean', 'bson'], 'bigint');
SELECT function_returns('collection_update', ARRAY['regclass', 'bson', 'anycompatible', 'boolean', 'boolean', 'bson_value', 'bson', 'bson'], 'record');
SELECT is((SELECT string_agg(DISTINCT array_to_string(proargnames, ' '), '; ') FROM pg_proc WHERE proname = 'collection_update'), 'rel filter update upsert multi array_filters sort collation matched modified upserted', 'the names of its arguments');
SELECT is((SELECT string_agg(DISTINCT provolatile::text || proparallel::text || prosecdef::text, ' ') FROM pg_proc WHERE proname IN ('collection_find', 'collection_count', 'collection_distinct')), 'srfalse', 'those that read are stable and run as the caller');
SELECT is((SELECT string_agg(DISTINCT provolatile::text || proparallel::text || prosecdef::text, ' ') FROM pg_proc WHERE proname IN ('collection_insert', 'collection_update', 'collection_delete')), 'vufalse', 'those that write are volatile');

-- ---------------------------------------------------------------- insert

CREATE TABLE made AS SELECT collection_create('c') AS rel;
PREPARE stored AS SELECT doc::text FROM c ORDER BY _id;
SELECT results_eq($$SELECT collection_insert('c', '{_id: 2, a: 1}', '{a: 2, _id: 1}')::text$$, ARRAY['2', '1'], 'ids in the order of the documents');
SELECT results_eq('stored', ARRAY['{"a": 2, "_id": 1}', '{"_id": 2, "a": 1}'], 'stored as they are');
SELECT results_eq($$SELECT collection_insert('c', VARIADIC ARRAY['{_id: 3}', '{_id: 4}']::bson[])::int$$, ARRAY[3, 4], 'an array of documents');
SELECT is_empty($$SELECT collection_insert('c', VARIADIC '{}'::bson[])$$, 'of none');
SELECT is((SELECT bson_typeof(i) FROM collection_insert('c', '{n: 1}') i), 'objectId', 'an ObjectId where there is none');
SELECT is((SELECT collection_insert('c', bson_build('_id', i, 'n', i)) FROM generate_series(10, 10) i), 10::bson_value, 'what bson_build makes');
SELECT throws_ok($$SELECT collection_insert('c', '{_id: 20}', '{_id: 1}')$$, '23505', NULL, 'an _id that is there');
SELECT is((SELECT count(*) FROM c WHERE _id = 20), 0::bigint, 'all or nothing');
SELECT throws_ok($$SELECT collection_insert('c', '{_id: [1]}')$$, '23514', NULL, 'an _id that cannot be one');
SELECT throws_ok($$SELECT collection_insert('c', '{_id: 5}', NULL)$$, '22004', NULL, 'a document that is NULL');
SELECT throws_ok($$SELECT collection_insert('c', VARIADIC NULL::bson[])$$, '22004', NULL, 'no documents');
SELECT throws_ok($$SELECT collection_insert(NULL, '{}')$$, '22004', NULL, 'no relation');
DELETE FROM c;

-- ---------------------------------------------------------------- find, count, distinct

INSERT INTO c (doc) SELECT bson_build('_id', i, 'n', i % 7, 'tags', bson_array('t' || i % 3, 't' || i % 4), 'sub', bson_build('x', i % 5)) FROM generate_series(1, 50) i;
INSERT INTO c (doc) VALUES ('{_id: 51}'), ('{_id: 52, n: null, tags: []}'), ('{_id: 53, n: "x", tags: "t0"}');
SELECT set_eq(format('SELECT doc::text FROM collection_find(%L, %L) doc', 'c', f), format('SELECT doc::text FROM c WHERE doc @@ %L', f), 'found as by @@: ' || f)
  FROM unnest(ARRAY['{}', '{n: 3}', '{n: {$gt: 3, $lt: 6}}', '{_id: 7}', '{_id: {$gt: 45}}', '{_id: {$in: [1, 2, 99]}}', '{_id: {$in: []}}', '{_id: {$in: [null, 5]}}', '{_id: {$ne: 5}}', '{_id: {$not: {$gt: 5}}}', '{_id: null}', '{_id: {$gte: null}}', '{_id: {$lt: MaxKey}}', '{_id: {$type: "int"}}',
    '{_id: 7.0}', '{_id: "7"}', '{_id: {$gt: 48, $lt: NaN}}', '{_id: {$lte: NaN}}', '{$and: [{_id: 3}, {n: 3}]}', '{$or: [{_id: 3}, {_id: 4}]}', '{tags: "t0"}', '{n: null}', '{"sub.x": 2}', '{_id: {$eq: {a: 1}}}', '{_id: /x/}', '{$nor: [{_id: 1}]}', '{$expr: {$gt: ["$n", "$sub.x"]}}']) f;
SELECT is((SELECT count(*) FROM collection_find('c')), 53::bigint, 'without a filter all');
SELECT is(collection_count('c'), 53::bigint, 'counted');
SELECT is(collection_count('c', '{n: 3}'), 7::bigint, 'by a filter');
SELECT is(collection_count('c', '{x: 1}'), 0::bigint, 'none');
SELECT results_eq($$SELECT (doc ->> '_id')::int FROM collection_find('c', '{n: 3}', sort => '{_id: -1}', skip => 1, take => 2) doc$$, ARRAY[38, 31], 'sorted by _id, skipped and taken');
SELECT results_eq($$SELECT (doc ->> '_id')::int FROM collection_find('c', '{_id: {$gt: 46}}', sort => '{n: 1, _id: -1}') doc$$, ARRAY[52, 51, 49, 50, 47, 48, 53], 'by two fields, as MongoDB sorts');
SELECT results_eq($$SELECT (doc ->> '_id')::int FROM collection_find('c', '{_id: {$in: [1, 2, 3, 4]}}', sort => '{tags: -1, _id: 1}') doc$$, ARRAY[3, 2, 1, 4], 'by arrays');
SELECT is((SELECT count(*) FROM collection_find('c', take => 0)), 0::bigint, 'take 0');
SELECT is((SELECT count(*) FROM collection_find('c', skip => 50)), 3::bigint, 'skip');
SELECT is((SELECT count(*) FROM collection_find('c', skip => 99)), 0::bigint, 'skip all');
SELECT is((SELECT count(*) FROM collection_find('c', skip => NULL, take => NULL)), 53::bigint, 'NULL: no limits');
SELECT results_eq($$SELECT doc::text FROM collection_find('c', '{_id: 8}', '{n: 1, "sub.x": 1}') doc$$, ARRAY['{"_id": 8, "n": 1, "sub": {"x": 3}}'], 'a projection');
SELECT results_eq($$SELECT doc::text FROM collection_find('c', '{_id: 8, tags: "t0"}', '{_id: 0, "tags.$": 1}') doc$$, ARRAY['{"tags": ["t0"]}'], 'a positional one, by the filter');
SELECT results_eq($$SELECT v::text FROM collection_distinct('c', 'tags') v$$, ARRAY['t0', 't1', 't2', 't3'], 'the elements of arrays, in order');
SELECT results_eq($$SELECT v::text FROM collection_distinct('c', 'n', '{n: {$not: {$type: "string"}}}') v$$, ARRAY[NULL, '0', '1', '2', '3', '4', '5', '6'], 'null, but not what is missing');
SELECT results_eq($$SELECT v::int FROM collection_distinct('c', 'sub.x', '{_id: {$lt: 3}}') v$$, ARRAY[1, 2], 'a path, by a filter');
SELECT is_empty(format('SELECT collection_distinct(%L, %L)', 'c', path), 'a path that leads nowhere: ' || path) FROM unnest(ARRAY['.n', 'n.', 'sub..x']) path;
SELECT is((SELECT count(*) FROM collection_find('c', sort => '{}')), (SELECT collection_count('c')), 'no sort');
SELECT throws_ok(t, e, NULL, t) FROM (VALUES ($$SELECT collection_find('c', skip => -1)$$, '22023'), ($$SELECT collection_find('c', take => -1)$$, '22023'), ($$SELECT collection_find('c', NULL)$$, '22004'), ($$SELECT collection_find(NULL)$$, '22004'), ($$SELECT collection_count('c', NULL)$$, '22004'),
  ($$SELECT collection_distinct('c', NULL)$$, '22004'), ($$SELECT collection_distinct('c', '"a')$$, '22023'), ($$SELECT collection_find('c', '{n: {$foo: 1}}')$$, '0A000'), ($$SELECT collection_find('c', '{n: {$in: 1}}')$$, '22023'), ($$SELECT collection_find('c', sort => '{n: 2}')$$, '22023'),
  ($$SELECT collection_find('c', projection => '{n: 1, "sub.x": 0}')$$, '22023'), ($$SELECT collection_find('c', '{_id: "none"}', '{n: 1, "sub.x": 0}')$$, '22023'), ($$SELECT collection_find('nope')$$, '42P01'), ($$SELECT collection_find(1::regclass)$$, '42P01'), ($$SELECT collection_find('c_pkey')$$, '42809')) x (t, e);

-- ---------------------------------------------------------------- what the planner makes of it

-- The plan of collection_find(): the same statement, explained.
CREATE FUNCTION plan_of(rel regclass, filter bson, sort bson DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE q record := docpatterns._collection_query(rel, filter, sort); line text; result text := '';
BEGIN
  FOR line IN EXECUTE concat('EXPLAIN (COSTS OFF) SELECT ', q.doc, ' FROM ', q.source, ' WHERE ', q.conditions, ' ORDER BY ' || q.ordering) USING filter, q.operands, sort LOOP
    result := concat_ws(E'\n', nullif(result, ''), line);
  END LOOP;
  RETURN result;
END $$;
CREATE TABLE made2 AS SELECT collection_create('big') AS rel;
INSERT INTO big (doc) SELECT bson_build('_id', i, 'n', i, 'p.q', 1, 's', bson_build('t', 'k' || i), 'free', i) FROM generate_series(1, 3000) i;
CREATE INDEX ON big ((doc -> 'n') NULLS FIRST);
CREATE INDEX ON big ((doc -> 's.t'));
CREATE INDEX ON big ((doc -> 'free'));
CREATE INDEX ON big ((doc -> '"p.q"'));
ANALYZE big;
SELECT matches(plan_of('big', '{_id: 5}'), E'Index Scan using big_pkey on big t\n +Index Cond: \\(_id = .5.::bson_value\\)', 'the primary key serves _id');
SELECT matches(plan_of('big', f::bson), 'Index.* big_pkey', 'and ' || f) FROM unnest(ARRAY['{_id: {$in: [5, 6]}}', '{_id: {$gt: 5, $lt: 9}}', '{n: 5, $and: [{_id: {$lte: 3}}]}', '{_id: null}', '{_id: "x"}', '{_id: {$eq: 5}}']) f;
SELECT matches(plan_of('big', f::bson), 'Seq Scan', 'but not ' || f) FROM unnest(ARRAY['{_id: {$gte: null}}', '{_id: {$in: [null, 1]}}', '{_id: {$lt: MaxKey}}', '{_id: {$ne: 3}}', '{_id: /x/}', '{$nor: [{_id: 1}]}', '{}']) f;
SELECT doesnt_match(plan_of('big', '{_id: 5}'), 'Sort', 'nothing to sort');
SELECT doesnt_match(plan_of('big', '{}', '{_id: -1}'), 'Sort', 'the key gives the order by _id');
SELECT matches(plan_of('big', '{}', '{_id: -1}'), 'Index Scan Backward using big_pkey', 'backwards');
SELECT matches(plan_of('big', '{n: 5}'), E'BitmapOr\n +->  Bitmap Index Scan on big_expr_idx\n.* = .5.::bson_value.*\n +->  Bitmap Index Scan on big_expr_idx\n.*\\[\\]', 'nothing says that n is no array, so arrays are looked at, too');
SELECT matches(plan_of('big', '{"s.t": {$gt: "k7", $lt: "k70"}}'), 'k7".* AND .*k70".*(\n.*){3}IS NULL', 'and what is NULL, with an array on the way; a range is searched once');

-- Checks that prove it, and others that do not.
CREATE FUNCTION proven(path text, VARIADIC checks text[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE c text; found boolean;
BEGIN
  FOREACH c IN ARRAY checks LOOP EXECUTE 'ALTER TABLE big ADD CHECK (' || c || ')'; END LOOP;
  found := (SELECT conditions LIKE '%->)%' AND conditions NOT LIKE '%[]%' FROM docpatterns._collection_query('big', bson_build(path, 5)));
  RAISE EXCEPTION USING ERRCODE = 'P0099', MESSAGE = found;
EXCEPTION WHEN SQLSTATE 'P0099' THEN RETURN SQLERRM::boolean;
END $$;
SELECT ok(proven('n', c), 'proof: ' || c) FROM unnest(ARRAY[
  $$bson_typeof(doc, 'n') = 'int'$$, $$bson_typeof(doc, 'n') IN ('int', 'long')$$, $$bson_typeof(doc -> 'n') <> 'array'$$, $$bson_typeof(doc, 'n') = 'int' AND _id IS NOT NULL$$, $$bson_typeof(doc, 'n') = 'int' OR bson_typeof(doc, 'n') = 'string'$$, $$bson_typeof(doc, 'n') <> ALL ('{array,object}')$$,
  $$bson_validate(doc, '{properties: {n: {bsonType: "int"}}}')$$, $$doc @@ '{$jsonSchema: {required: ["n"], properties: {n: {bsonType: ["int", "string"], minimum: 0}}}}'$$, $$bson_validate(doc, '{properties: {n: {type: "number"}}}') AND _id > 0$$]) c;
SELECT ok(NOT proven('n', c), 'no proof: ' || c) FROM unnest(ARRAY[
  $$doc -> 'n' IS NOT NULL$$, $$doc -> 'n' > 0$$, $$bson_typeof(doc, 'free') = 'int'$$, $$bson_typeof(doc, 'n') = 'int' OR _id > 0$$, $$bson_typeof(doc, 'n') <> 'string'$$, $$bson_typeof(doc, 'n') IN ('int', 'array')$$, $$doc @@ '{n: {$type: "int"}}'$$,
  $$bson_validate(doc, '{properties: {n: {bsonType: ["int", "array"]}}}')$$, $$bson_validate(doc, '{properties: {n: {minimum: 0}}}')$$, $$bson_validate(doc, '{required: ["n"]}')$$, $$bson_validate(doc, '{properties: {free: {bsonType: "int"}}}') OR _id > 0$$, $$doc @@ '{n: {$gt: 0}}'$$, $$true$$]) c;
SELECT ok(NOT proven('n', $$bson_typeof(doc, 'n') = 'int') NOT VALID --$$), 'a check that was not validated');
SELECT ok(NOT proven('n', $$bson_typeof(doc, 'n') = 'int') NO INHERIT --$$), 'one that children have not');
SELECT ok(NOT proven('s.t', $$bson_typeof(doc, 's.t') = 'string'$$), 'the way to a path counts');
SELECT ok(proven('s.t', $$bson_typeof(doc, 's.t') = 'string'$$, $$bson_typeof(doc, 's') = 'object'$$), 'each part of it');
SELECT ok(proven('s.t', $$bson_validate(doc, '{properties: {s: {bsonType: "object", properties: {t: {bsonType: "string"}}}}}')$$), 'a schema for all parts');
SELECT ok(NOT proven('s.t', $$bson_validate(doc, '{properties: {s: {properties: {t: {bsonType: "string"}}}}}')$$), 'one without a type on the way');
SELECT ok(NOT proven('p.q', $$bson_typeof(doc, '"p.q"') = 'int'$$), 'an index on a name with a dot is another path');

ALTER TABLE big ADD CONSTRAINT scalar CHECK (bson_validate(doc, '{properties: {n: {bsonType: "int"}, s: {bsonType: "object", properties: {t: {bsonType: "string"}}}}}'));
SELECT matches(plan_of('big', f::bson), 'Index', 'with a check an index serves ' || f) FROM unnest(ARRAY['{n: 5}', '{n: {$gt: 5, $lte: 9}}', '{"s.t": "k7"}', '{$and: [{n: {$in: [1, 2]}}, {free: 1}]}', '{n: {$eq: 5}, x: {$exists: true}}']) f;
SELECT matches(plan_of('big', f::bson), 'Seq Scan', 'and none ' || f) FROM unnest(ARRAY['{n: null}', '{$nor: [{n: 5}]}', '{n: {$in: [null, 1]}}', '{n: {$not: {$lt: 5}}}', '{n: {$gte: null}}']) f;
SELECT matches(plan_of('big', '{}', '{n: 1}'), 'Index Scan using', 'and gives an order');
SELECT matches(plan_of('big', '{}', '{n: -1}'), 'Index Scan Backward using', 'backwards');
SELECT set_eq(format('SELECT doc FROM collection_find(%L, %L) doc', 'big', f), format('SELECT doc FROM big WHERE doc @@ %L', f), 'found as by @@: ' || f)
  FROM unnest(ARRAY['{n: 5}', '{n: {$gt: 5, $lte: 9}}', '{"s.t": "k7"}', '{n: {$lt: 4.5}}', '{n: {$lt: NaN}}', '{n: {$in: [1, 2.0, "x"]}}', '{n: {$gt: 2990, $lt: MaxKey}}', '{"s.t": {$gte: "k998"}, n: {$gt: 5}}', '{n: "5"}', '{s: {t: "k1"}}']) f;
SELECT is((SELECT array_agg(doc -> '_id') FROM collection_find('big', sort => '{n: -1}', take => 3) doc), '{3000,2999,2998}'::bson_value[], 'the order is right');
SELECT doesnt_match(plan_of('big', '{}', '{_id: 1, n: 1}'), 'bson_sort_key', 'the key decides alone');
SELECT is((SELECT ordering FROM docpatterns._collection_query('big', '{}', '{n: 1, free: 1}')), $$public.bson_sort_key(t.doc, '{"n": 1}'::public.bson), public.bson_sort_key(t.doc, '{"n": 1, "free": 1}'::public.bson)$$, 'the first of several fields comes alone, too');
SELECT is((SELECT ordering FROM docpatterns._collection_query('big', '{}', '{x: 1, free: 1}')), $$public.bson_sort_key(t.doc, '{"x": 1, "free": 1}'::public.bson)$$, 'if it has an index');
SELECT set_eq($$SELECT doc FROM collection_find('big', '{n: {$gt: 2990}}', sort => '{n: 1}') doc$$, $$SELECT doc FROM big WHERE doc @@ '{n: {$gt: 2990}}'$$, 'sorted and found by the same index');
-- Nothing and null are as good, and the next field decides.
CREATE TABLE nulls AS SELECT collection_create('maybe') AS rel;
INSERT INTO maybe (doc) VALUES ('{_id: 1, n: null}'), ('{_id: 2}'), ('{_id: 3, n: null}'), ('{_id: 4}'), ('{_id: 5, n: 1}'), ('{_id: 6, n: undefined}');
CREATE INDEX ON maybe ((doc -> 'n') NULLS FIRST);
ALTER TABLE maybe ADD CONSTRAINT no_array CHECK (bson_typeof(doc, 'n') <> 'array');
SELECT is((SELECT array_agg(doc -> '_id') FROM collection_find('maybe', sort => '{n: 1, _id: 1}') doc), '{6,1,2,3,4,5}'::bson_value[], 'the order is right');
DELETE FROM maybe WHERE _id = 6;
ALTER TABLE maybe DROP CONSTRAINT no_array, ADD CHECK (bson_typeof(doc, 'n') NOT IN ('array', 'undefined'));
SELECT is((SELECT array_agg(doc -> '_id') FROM collection_find('maybe', sort => '{n: 1, _id: 1}') doc), '{1,2,3,4,5}'::bson_value[], 'the order is right');
SELECT is((SELECT array_agg(doc -> '_id') FROM collection_find('maybe', sort => '{n: -1, _id: 1}') doc), '{5,1,2,3,4}'::bson_value[], 'backwards');
-- At random (seed 11): values of all types, filters and sorts by an index against the same without one.
SELECT setseed(0.11);
CREATE TABLE made7 AS SELECT collection_create('mixed') AS rel;
CREATE TABLE word AS SELECT v::bson_value FROM unnest(ARRAY['null', '1', '1.5', '2', 'NumberLong(2)', 'NumberDecimal("2.00")', 'NaN', '-Infinity', '"a"', '"b"', '""', '{"$symbol": "a"}', '{x: 1}', '{}', 'true', 'false', 'ISODate("2024-01-01")', 'Timestamp(1, 1)', 'ObjectId("507f191e810c19729de860ea")', '/a/', 'MinKey', 'MaxKey', 'BinData(0, "AQ==")']) v;
INSERT INTO mixed (doc) SELECT bson_build('_id', i) || CASE WHEN random() < 0.1 THEN '{}' ELSE bson_build('v', (SELECT v FROM word WHERE i > 0 ORDER BY random() LIMIT 1)) END FROM generate_series(1, 300) i;
CREATE INDEX ON mixed ((doc -> 'v') NULLS FIRST);
ALTER TABLE mixed ADD CHECK (bson_typeof(doc, 'v') NOT IN ('array', 'undefined'));
CREATE TABLE asked AS SELECT bson_build('v', bson_build(op, CASE op WHEN '$in' THEN bson_array(a.v, b.v) ELSE a.v END)) AS filter FROM word a, word b, unnest(ARRAY['$eq', '$in', '$gt', '$gte', '$lt', '$lte', '$ne']) op WHERE (op = '$in' OR b.v = '1') AND (op IN ('$eq', '$in') OR bson_typeof(a.v) <> 'regex');
SET LOCAL enable_seqscan = off;
SELECT cmp_ok((SELECT count(*) FROM asked WHERE (docpatterns._collection_query('mixed', filter)).conditions LIKE '%->)%'), '>', 300::bigint, 'most filters get a condition');
SELECT matches(plan_of('mixed', '{v: 2}'), 'Index', 'that an index serves');
SELECT is_empty($$SELECT filter FROM asked WHERE ARRAY(SELECT doc -> '_id' FROM collection_find('mixed', filter) doc ORDER BY 1) <> ARRAY(SELECT _id FROM mixed WHERE doc @@ filter ORDER BY 1)$$, 'found by an index as by @@');
SELECT results_eq($$SELECT coalesce(doc -> 'v', 'null') FROM collection_find('mixed', sort => '{v: 1}') doc$$, $$SELECT coalesce(doc -> 'v', 'null') FROM mixed ORDER BY bson_sort_key(doc, '{v: 1}')$$, 'sorted by an index as by the sort key');
SELECT results_eq($$SELECT coalesce(doc -> 'v', 'null') FROM collection_find('mixed', sort => '{v: -1}') doc$$, $$SELECT coalesce(doc -> 'v', 'null') FROM mixed ORDER BY bson_sort_key(doc, '{v: -1}')$$, 'backwards');
RESET enable_seqscan;
ALTER TABLE big DISABLE TRIGGER zz_docpatterns_00_collection;
SELECT matches(plan_of('big', '{_id: 5}'), 'Seq Scan', 'a collection whose trigger is off is none');
ALTER TABLE big ENABLE TRIGGER zz_docpatterns_00_collection;

-- ---------------------------------------------------------------- update

DELETE FROM c;
CREATE FUNCTION upd(filter bson, update text, upsert boolean DEFAULT false, multi boolean DEFAULT false, array_filters bson_value DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT concat_ws(' ', matched, modified, upserted) FROM collection_update('c', filter, update, upsert, multi, array_filters));
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
END $$;
INSERT INTO c (doc) VALUES ('{_id: 1, n: 1}'), ('{_id: 2, n: 1}'), ('{_id: 3, n: 3, a: [1, 5]}');
SELECT is(upd('{n: 1}', '{$inc: {n: 1}}'), '1 1', 'one of those that match');
SELECT is((SELECT string_agg(doc ->> 'n', ' ' ORDER BY doc -> 'n') FROM c), '1 2 3', 'and only that');
SELECT is(upd('{n: {$lt: 3}}', '{$max: {n: 2}}', multi => true), '2 1', 'all that match; those that do not change are not counted as modified');
SELECT is(upd('{n: 2}', '{$set: {n: 2}}'), '1 0', 'nothing changes');
SELECT is(upd('{n: 99}', '{$set: {n: 2}}'), '0 0', 'nothing matches');
SELECT is(upd('{n: 99}', '{$set: {n: 2}}', multi => true), '0 0', 'in any row');
SELECT is(upd('{a: 5}', '{$set: {"a.$": 6}}'), '1 1', 'positional');
SELECT is(upd('{_id: 3}', '{$inc: {"a.$[x]": 1}}', array_filters => '[{x: {$gt: 5}}]'), '1 1', 'array filters');
SELECT is((SELECT doc ->> 'a' FROM c WHERE _id = 3), '[1, 7]', 'both');
SELECT is(upd('{_id: 3}', '{z: 1}'), '1 1', 'a whole document');
SELECT is((SELECT doc::text FROM c WHERE _id = 3), '{"_id": 3, "z": 1}', 'takes the place, the _id stays');
SELECT is(upd('{_id: 3}', '[{$set: {y: {$add: ["$z", 1]}}}]'), '1 1', 'stages');
SELECT is((SELECT doc::text FROM c WHERE _id = 3), '{"_id": 3, "z": 1, "y": 2}', 'with expressions');
SELECT is((SELECT modified FROM collection_update('c', '{_id: 3}', bson_build('$set', bson_build('z', 2)))), 1::bigint, 'an update of type bson');
SELECT is((SELECT modified FROM collection_update('c', '{_id: 3}', bson_value '{$set: {z: 3}}')), 1::bigint, 'bson_value');
SELECT is((SELECT modified FROM collection_update('c', '{_id: 3}', format('{$set: {z: %s}}', 4))), 1::bigint, 'text');
CREATE TABLE versions AS SELECT _id, ctid AS place FROM c;
SELECT is(upd('{}', '{$min: {n: 100}}', multi => true), '3 1', 'of three one has no n');
SELECT is((SELECT count(*) FROM c JOIN versions v ON v._id = c._id AND v.place = c.ctid), 2::bigint, 'the others are not written');
-- upsert
DELETE FROM c;
SELECT is(upd('{_id: 5, k: "x", $and: [{"p.q": 1}], r: {$gt: 1}}', '{$inc: {n: 2}, $setOnInsert: {s: 1}}', upsert => true), '0 0 5', 'an upsert');
SELECT is((SELECT doc::text FROM c), '{"_id": 5, "k": "x", "p": {"q": 1}, "n": 2, "s": 1}', 'made of the filter and the update');
SELECT is(upd('{_id: 5, k: "x"}', '{$inc: {n: 2}, $setOnInsert: {s: 2}}', upsert => true), '1 1', 'which then is found');
SELECT is((SELECT doc ->> 'n' || (doc ->> 's') FROM c), '41', 'and $setOnInsert is ignored');
SELECT is(upd('{_id: 5}', '{$set: {k: "x"}}', upsert => true), '1 0', 'found and not changed');
SELECT is(upd('{_id: 5}', '{$set: {k: "x"}}', upsert => true, multi => true), '1 0', 'with multi, too');
SELECT is(upd('{_id: 5, k: "other"}', '{$inc: {n: 2}}', upsert => true), '23505', 'a document that has the key and does not match');
SELECT matches(upd('{k: "new"}', '{$set: {n: 1}}', upsert => true, multi => true), '^0 0 \{"\$oid": ', 'an _id is made');
SELECT is(upd('{k: "new"}', '{$set: {_id: 7}}', upsert => true), '22023', 'it is not changed');
SELECT is(upd('{k: "newer"}', '{$set: {_id: 7}}', upsert => true), '0 0 7', 'but set');
SELECT is(upd('{_id: 8}', '{whole: true}', upsert => true), '0 0 8', 'a whole document');
SELECT is((SELECT doc::text FROM c WHERE _id = 8), '{"_id": 8, "whole": true}', 'with the _id of the filter');
SELECT is(upd('{_id: 9}', '{$inc: {a: "x"}}', upsert => true), '22023', 'an update that cannot be');
SELECT is(upd('{_id: 9, a: "x"}', '{$inc: {a: 1}}', upsert => true), '42804', 'or not be applied');
CREATE UNIQUE INDEX ON c ((doc -> 'u'));
SELECT is(upd('{u: 1}', '{$set: {n: 1}}', upsert => true) LIKE '0 0 %', true, 'with another key');
SELECT is(upd('{u: 1, n: 2}', '{$set: {m: 1}}', upsert => true), '23505', 'that counts as well');
SELECT is(upd('{_id: 5}', NULL), '22004', 'no update');
SELECT is(upd(NULL, '{$set: {a: 1}}'), '22004', 'no filter');
SELECT is(upd('{_id: 5}', '{$foo: {a: 1}}'), '0A000', 'an unknown operator');
SELECT is(upd('{a: {$foo: 1}}', '{$set: {a: 1}}'), '0A000', 'in the filter');
SELECT is(upd('{_id: 5}', '{$set: {_id: 6}}'), '22023', 'another _id');
SELECT is(upd('{_id: 5}', '{$set: {a: 1}}', multi => NULL), '22004', 'multi NULL');
SELECT is(upd('{_id: 5}', '{$set: {a: 1}', multi => true), '22P02', 'no JSON');

-- An update that an inner update disturbs: a trigger that calls again, and one that fails.
CREATE TABLE made3 AS SELECT collection_create('log') AS rel;
CREATE FUNCTION log_it() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM collection_update('log', '{_id: 1}', '{$inc: {n: 1}}', upsert => true);
  PERFORM collection_update('log', '{}', '{$set: {same: 1}}', multi => true);
  BEGIN
    PERFORM collection_update('log', '{}', '{$inc: {same: "x"}}', multi => true);
  EXCEPTION WHEN invalid_parameter_value THEN NULL; END;
  RETURN NEW;
END $$;
CREATE TRIGGER log_it AFTER UPDATE ON c FOR EACH ROW EXECUTE FUNCTION log_it();
DELETE FROM c;
SELECT is((SELECT count(*) FROM collection_insert('c', VARIADIC (SELECT array_agg(bson_build('_id', i, 'n', i % 2, 'u', i)) FROM generate_series(1, 10) i))), 10::bigint, 'ten documents');
SELECT is(upd('{}', '{$max: {n: 1}}', multi => true), '10 5', 'counted right around others');
SELECT is((SELECT doc::text FROM log), '{"_id": 1, "n": 5, "same": 1}', 'which did their work');
DROP TRIGGER log_it ON c;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER refuse BEFORE UPDATE OR DELETE ON c FOR EACH ROW EXECUTE FUNCTION refuse();
SELECT is(upd('{_id: 1}', '{$set: {z: 1}}', upsert => true), '1 0', 'a trigger that refuses');
SELECT is(upd('{_id: 1}', '{$set: {z: 1}}', upsert => true, multi => true), '1 0', 'also of all');
SELECT is(upd('{n: 1}', '{$set: {z: 1}}', upsert => true), '1 0', 'or of one');
SELECT is(upd('{n: 1}', '{$set: {z: 1}}', upsert => true, multi => true), '10 0', 'of several');
SELECT is(upd('{n: 77}', '{$set: {n: 77}}', multi => true), '0 0', 'there is none');
SELECT is(collection_delete('c', '{_id: 1}'), 0::bigint, 'a deletion, too');
DROP TRIGGER refuse ON c;
CREATE TRIGGER refuse BEFORE INSERT ON c FOR EACH ROW EXECUTE FUNCTION refuse();
SELECT is(upd('{_id: 78}', '{$set: {z: 1}}', upsert => true, multi => m), '0 0', 'a trigger that refuses the document of an upsert') FROM unnest('{t,f}'::boolean[]) AS m;
SELECT is(collection_find_one_and_update('c', '{_id: 78}', '{$set: {z: 1}}', upsert => true, return_new => true), NULL, 'there is no new document');
SELECT is(collection_count('c'), 10::bigint, 'nothing was inserted');
DROP TRIGGER refuse ON c;

-- ---------------------------------------------------------------- delete

SELECT is(collection_delete('c', '{n: 1}'), 1::bigint, 'one of those that match');
SELECT is(collection_count('c', '{n: 1}'), 9::bigint, 'and only that');
SELECT is(collection_delete('c', '{_id: {$gt: 5}}', multi => true), 5::bigint, 'all that match');
SELECT is(collection_delete('c', '{n: 99}'), 0::bigint, 'none');
SELECT is(collection_delete('c', '{n: 99}', true), 0::bigint, 'of all');
SELECT throws_ok($$SELECT collection_delete('c', NULL)$$, '22004', NULL, 'no filter is no way to delete all');
SELECT throws_ok($$SELECT collection_delete('c', '{}', NULL)$$, '22004', NULL, 'nor is NULL');
SELECT is(collection_delete('c', '{}', true), 4::bigint, 'but {} is');

-- ---------------------------------------------------------------- other relations

CREATE TABLE plain (id serial PRIMARY KEY, body bson, "N o""te" text DEFAULT 'x');
SELECT is((SELECT array_agg(i) FROM collection_insert('plain', '{a: 1}', '{_id: 5, a: 2}', '{a: 3}') i)::text, '{NULL,5,NULL}', 'a table with a document: ids are those of the documents');
SELECT is((SELECT string_agg(concat_ws(' ', id, body, "N o""te"), ', ' ORDER BY id) FROM plain), '1 {"a": 1} x, 2 {"_id": 5, "a": 2} x, 3 {"a": 3} x', 'stored as they are, the other columns have their defaults');
SELECT is((SELECT concat_ws(' ', matched, modified, upserted) FROM collection_update('plain', '{a: {$gt: 1}}', '{$inc: {a: 1}}')), '1 1', 'update one');
SELECT is((SELECT sum((body -> 'a')::int) FROM plain), 7::bigint, 'of them');
SELECT is((SELECT concat_ws(' ', matched, modified, bson_typeof(upserted)) FROM collection_update('plain', '{a: 99}', '{$set: {b: 1}}', true)), '0 0 null', 'a document without an _id was inserted');
SELECT is(collection_delete('plain', '{a: 99}'), 1::bigint, 'deleted');
SELECT is((SELECT count(*) FROM collection_find('plain', '{_id: 5}')), 1::bigint, 'found');
SELECT matches(plan_of('plain', '{_id: 5}'), 'Seq Scan', 'without a key');
INSERT INTO plain (body) VALUES (NULL);
SELECT is(collection_count('plain'), 3::bigint, 'a row without a document is no document');
SELECT is((SELECT matched FROM collection_update('plain', '{}', '{$set: {z: 1}}', multi => true)), 3::bigint, 'nor updated');
SELECT is(collection_delete('plain', '{}', true), 3::bigint, 'nor deleted');
CREATE TABLE none (a int);
CREATE TABLE two (a bson, b bson);
SELECT throws_ok($$SELECT collection_find('none')$$, '42703', NULL, 'no column');
SELECT throws_ok($$SELECT collection_find('two')$$, '42702', NULL, 'two of them');
CREATE VIEW one_of_two AS SELECT a FROM two;
SELECT is_empty($$SELECT * FROM collection_insert('one_of_two', '{x: 1}') i WHERE i IS NOT NULL$$, 'a view shows one');
SELECT is(collection_count('one_of_two', '{x: 1}'), 1::bigint, 'and takes documents');
SELECT throws_ok($$SELECT collection_update('one_of_two', '{}', '{$set: {x: 2}}')$$, '0A000', NULL, 'but its rows cannot be told apart');
SELECT throws_ok($$SELECT collection_delete('one_of_two', '{}')$$, '0A000', NULL, 'nor one deleted');
SELECT is((SELECT concat_ws(' ', matched, modified) FROM collection_update('one_of_two', '{}', '{$set: {x: 2}}', multi => true)), '1 1', 'all of them can');
SELECT is(collection_delete('one_of_two', '{x: 2}', true), 1::bigint, 'and be deleted');
CREATE VIEW part AS SELECT doc, _id AS key FROM big WHERE _id > 10;
SELECT matches(plan_of('part', '{_id: 50}'), 'Index.* big_pkey', 'a view of a collection has its key');
SELECT is((SELECT concat_ws(' ', matched, modified) FROM collection_update('part', '{_id: {$gt: 5}}', '{$set: {seen: 1}}')), '1 1', 'update one');
SELECT is(collection_count('big', '{seen: 1}'), 1::bigint, 'of them');
SELECT is((SELECT concat_ws(' ', matched, modified) FROM collection_update('part', '{_id: 5}', '{$set: {seen: 1}}')), '0 0', 'that it shows');
SELECT is(collection_delete('part', '{seen: 1}'), 1::bigint, 'delete one');
SELECT is((SELECT collection_insert('part', '{_id: 4000, n: 1}')), 4000::bson_value, 'insert');
SELECT is((SELECT upserted FROM collection_update('part', '{_id: 4001, n: 2}', '{$set: {x: 1}}', true)), 4001::bson_value, 'upsert');
CREATE VIEW other AS SELECT _id, bson_set(doc, '_id', 0) AS doc FROM big;
SELECT matches(plan_of('other', '{_id: 0}'), 'Seq Scan', 'a view with documents of its own has not');
SELECT is(collection_count('other', '{_id: 0}'), collection_count('big'), 'all of which are found');
CREATE MATERIALIZED VIEW copied AS SELECT doc FROM big;
SELECT is(collection_count('copied', '{n: {$lt: 5}}'), 6::bigint, 'a materialized view can be read');
SELECT throws_ok($$SELECT collection_insert('copied', '{}')$$, '42809', NULL, 'and not written');

CREATE TABLE parts (_id bson_value NOT NULL PRIMARY KEY, doc bson NOT NULL) PARTITION BY HASH (_id);
CREATE TABLE parts0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT docpatterns._collection_attach('parts', '_id', 'doc');
SELECT is((SELECT count(*) FROM collection_insert('parts', VARIADIC (SELECT array_agg(bson_build('n', i)) || array_agg(bson_build('_id', i, 'n', i)) FROM generate_series(1, 20) i))), 40::bigint, 'a collection with partitions');
SELECT ok((SELECT count(*) FROM parts0) BETWEEN 1 AND 39, 'goes into them');
SELECT is((SELECT concat_ws(' ', matched, modified) FROM collection_update('parts', '{n: 5}', '{$set: {one: 1}}')), '1 1', 'update one');
SELECT is(collection_count('parts', '{one: 1}'), 1::bigint, 'of two');
SELECT is(collection_delete('parts', '{n: 6}'), 1::bigint, 'delete one');
SELECT is(collection_count('parts', '{n: 6}'), 1::bigint, 'of two');
SELECT matches(plan_of('parts', '{_id: 6}'), 'Index.* parts._pkey', 'its key serves');
SELECT doesnt_match(plan_of('parts', '{_id: 6}'), 'Append', 'in one of them');
SELECT is((SELECT upserted FROM collection_update('parts', '{_id: 77}', '{$set: {x: 1}}', true)), 77::bson_value, 'upsert');

-- The view of the whole documents.
CREATE TABLE made4 AS SELECT collection_create('books') AS rel;
CREATE TABLE made5 AS SELECT outlier_enable('books', field => 'buyers', threshold => 3) AS name;
SELECT is((SELECT count(*) FROM collection_insert('books', '{_id: 1, buyers: ["a", "b", "c", "d", "e"]}', '{_id: 2, buyers: ["a"]}')), 2::bigint, 'a collection with a pattern');
SELECT is((SELECT bson_array_length(doc, 'buyers') FROM books WHERE _id = 1), 3, 'splits');
SELECT is((SELECT bson_array_length(d, 'buyers') FROM collection_find('books_whole', '{_id: 1}') d), 5, 'and the view shows it whole');
SELECT matches(plan_of('books_whole', '{_id: 1}'), '_id = .1.', 'by the key');
SELECT is((SELECT concat_ws(' ', matched, modified) FROM collection_update('books_whole', '{buyers: "e"}', '{$pull: {buyers: "e"}}')), '1 1', 'found and changed by what lies elsewhere');
SELECT is((SELECT d ->> 'buyers' FROM collection_find('books_whole', '{_id: 1}') d), '["a", "b", "c", "d"]', 'in the view');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
SELECT is((SELECT collection_insert('books_whole', '{_id: 3, buyers: [1, 2, 3, 4]}')), 3::bson_value, 'inserted');
SELECT is(collection_delete('books_whole', '{_id: 1}'), 1::bigint, 'deleted');
SELECT is_empty('SELECT * FROM pattern_check()', 'still true');

-- ---------------------------------------------------------------- names, rights, other schemas

CREATE SCHEMA "S p";
CREATE TABLE made6 AS SELECT collection_create('"S p"."Q""u''o.te; DROP TABLE c"') AS rel;
ALTER TABLE "S p"."Q""u'o.te; DROP TABLE c" RENAME COLUMN doc TO "d""o'c $1";
ALTER TABLE "S p"."Q""u'o.te; DROP TABLE c" RENAME COLUMN _id TO "t.doc %s";
CREATE INDEX ON "S p"."Q""u'o.te; DROP TABLE c" (("d""o'c $1" -> '"a''b""c"'));
ALTER TABLE "S p"."Q""u'o.te; DROP TABLE c" ADD CHECK (bson_typeof("d""o'c $1", '"a''b""c"') = 'int');
SELECT is((SELECT string_agg(i::text, ' ') FROM collection_insert((SELECT rel FROM made6), '{_id: 1, "a''b\"c": 1}', '{_id: 2}') i), '1 2', 'hostile names: insert');
SELECT ok(conditions LIKE '%->)%', 'an index is used') FROM docpatterns._collection_query((SELECT rel FROM made6), '{"a''b\"c": 1}');
SELECT is((SELECT count(*) FROM collection_find((SELECT rel FROM made6), '{_id: 1, "a''b\"c": 1}', sort => '{"a''b\"c": 1}')), 1::bigint, 'find');
SELECT is((SELECT concat_ws(' ', matched, modified, upserted) FROM collection_update((SELECT rel FROM made6), '{_id: 3, "x''\";": 5}', '{$set: {"y''; --": 1}}', true)), '0 0 3', 'update');
SELECT is((SELECT collection_count(rel, '{"y''; --": 1}') FROM made6), 1::bigint, 'count');
SELECT is((SELECT count(*) FROM made6, collection_distinct(rel, '"y''; --"')), 1::bigint, 'distinct');
SELECT is((SELECT collection_delete(rel, '{"x''\";": 5}') FROM made6), 1::bigint, 'delete');
-- A search_path and operators of somebody else.
CREATE SCHEMA evil;
CREATE FUNCTION evil.wrong(bigint, int) RETURNS boolean LANGUAGE sql AS $$ SELECT true $$;
CREATE OPERATOR evil.< (LEFTARG = bigint, RIGHTARG = int, FUNCTION = evil.wrong);
CREATE OPERATOR evil.> (LEFTARG = bigint, RIGHTARG = int, FUNCTION = evil.wrong);
CREATE TABLE evil.c (doc bson);
SET LOCAL search_path = evil, pg_catalog;
CREATE TEMP TABLE result AS SELECT public.collection_count('public.big', '{_id: 7}') AS counted, (SELECT count(*) FROM public.collection_find('public.big', '{_id: 7}', skip => 0, take => 1)) AS found,
  (SELECT concat_ws(' ', matched, modified) FROM public.collection_update('public.big', '{_id: -7}', '{$set: {a: 1}}')) AS updated, (SELECT public.collection_insert('public.big', '{_id: 5000}'))::text AS inserted, public.collection_delete('public.big', '{_id: 7}') AS deleted;
RESET search_path;
SELECT is((SELECT concat_ws('|', counted, found, updated, inserted, deleted) FROM result), '1|1|0 0|5000|1', 'a search_path does not matter');

CREATE ROLE calls_reader; CREATE ROLE calls_writer;
GRANT SELECT ON big TO calls_reader; GRANT ALL ON big TO calls_writer;
SET LOCAL ROLE calls_reader;
SELECT is(collection_count('big', '{_id: 8}'), 1::bigint, 'SELECT is enough to read');
SELECT throws_ok($$SELECT collection_insert('big', '{}')$$, '42501', NULL, 'not to insert');
SELECT throws_ok($$SELECT collection_update('big', '{}', '{$set: {a: 1}}')$$, '42501', NULL, 'to update');
SELECT throws_ok($$SELECT collection_update('big', '{}', '{$set: {a: 1}}', multi => true)$$, '42501', NULL, 'or all');
SELECT throws_ok($$SELECT collection_delete('big', '{}')$$, '42501', NULL, 'or to delete');
SELECT throws_ok($$SELECT collection_find('c')$$, '42501', NULL, 'nor another table');
RESET ROLE;
ALTER TABLE big ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON big USING ((doc -> 'n')::int BETWEEN 20 AND 29);
SET LOCAL ROLE calls_writer;
SELECT is(collection_count('big'), 10::bigint, 'row-level security: what may be seen');
SELECT is(collection_count('big', '{_id: 8}'), 0::bigint, 'is counted');
SELECT is((SELECT count(*) FROM collection_distinct('big', 'n')), 10::bigint, 'distinct');
SELECT is((SELECT concat_ws(' ', matched, modified) FROM collection_update('big', '{}', '{$set: {mine: 1}}', multi => true)), '10 10', 'updated');
SELECT is((SELECT concat_ws(' ', matched, modified) FROM collection_update('big', '{}', '{$set: {mine: 1}}', multi => true)), '10 0', 'and left alone');
SELECT throws_ok($$SELECT collection_insert('big', '{_id: 6000, n: 8}')$$, '42501', NULL, 'written');
SELECT throws_ok($$SELECT collection_update('big', '{n: 25}', '{$set: {n: 30}}')$$, '42501', NULL, 'or moved away');
SELECT is(collection_delete('big', '{_id: 8}'), 0::bigint, 'not deleted');
SELECT is(collection_delete('big', '{_id: {$lt: 24}}', true), 4::bigint, 'but these');
RESET ROLE;
SELECT is(collection_count('big', '{mine: 1}'), 6::bigint, 'and only these');

-- ---------------------------------------------------------------- plans that are kept

SELECT made FROM collection_create('kept') AS made \g /dev/null
INSERT INTO kept (doc) SELECT bson_build('_id', i, 'k', 'v' || i, 'n', i % 10) FROM generate_series(1, 2000) i;
SELECT collection_create_index('kept', '{k: 1}') \g /dev/null
ANALYZE kept;
CREATE FUNCTION kept_find(key text) RETURNS int LANGUAGE sql AS $$SELECT (d -> '_id')::int FROM collection_find('kept', bson_build('k', key)) d$$;
SELECT is((SELECT count(*) FROM generate_series(1, 20) i WHERE kept_find('v' || i) = i), 20::bigint, 'one plan for many values');
SELECT is((SELECT count(*) FROM pg_backend_memory_contexts WHERE name = 'CachedPlanSource' AND ident LIKE '%.kept AS t%'), 1::bigint, 'is kept');
SELECT is((SELECT sum(u.modified) FROM generate_series(1, 20) i, collection_update('kept', bson_build('k', 'v' || i), bson_build('$set', bson_build('z', i))) u), 20::numeric, 'updates of many values');
SELECT is((SELECT count(*) FROM generate_series(1981, 2000) i WHERE collection_delete('kept', bson_build('_id', i)) = 1), 20::bigint, 'deletions');
SELECT is((SELECT string_agg(n || ' ' || s, ', ' ORDER BY s) FROM (SELECT count(*) n, left(ident, 6) s FROM pg_backend_memory_contexts WHERE name = 'CachedPlanSource' AND ident ~ '^(SELECT t.tableoid|UPDATE|DELETE).*[.]kept AS t' GROUP BY 2) x), '1 DELETE, 1 SELECT, 1 UPDATE', 'one plan each, and one that finds rows');
CREATE FUNCTION kept_more() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF pg_trigger_depth() < 10 THEN
    PERFORM collection_update('kept', bson_build('_id', (NEW.doc -> '_id')::int + 1), '{$inc: {y: 1}}');
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER more AFTER UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION kept_more();
SELECT is((SELECT modified FROM collection_update('kept', '{_id: 100}', '{$inc: {y: 1}}')), 1::bigint, 'an update inside of itself');
SELECT is(collection_count('kept', '{y: 1}'), 10::bigint, 'and so on');
DROP TRIGGER more ON kept;
DROP INDEX kept_k_idx;
SELECT is(kept_find('v7'), 7, 'the plan follows a dropped index');
ALTER TABLE kept ADD COLUMN more int, ALTER COLUMN doc SET STORAGE EXTERNAL;
SELECT is(kept_find('v8'), 8, 'a changed table');
ALTER TABLE kept RENAME TO kept_before;
SELECT made FROM collection_create('grows') AS made \g /dev/null
SELECT collection_create_index('grows', '{k: 1}') \g /dev/null
INSERT INTO grows (doc) SELECT bson_build('k', i) FROM generate_series(1, 9) i;
ANALYZE grows;
SELECT count(*) FROM collection_find('grows', '{k: 5}') \g /dev/null
INSERT INTO grows (doc) SELECT bson_build('k', i) FROM generate_series(10, 5000) i;
SELECT pg_stat_get_xact_numscans('grows'::regclass) AS scans \gset
SELECT count(*) FROM collection_find('grows', '{k: 5}') \g /dev/null
SELECT is(pg_stat_get_xact_numscans('grows'::regclass), :scans::bigint, 'no plan of the small table is kept');
SELECT made FROM collection_create('kept') AS made \g /dev/null
INSERT INTO kept (doc) VALUES ('{_id: 70, k: "v7"}');
SELECT is(kept_find('v7'), 70, 'and another one of that name');
SELECT is((SELECT sum(collection_count('kept_before', bson_build('f' || i, 1)) + (SELECT count(*) FROM collection_find('kept_before', bson_build('f' || i, bson_build('$ne', 1)), take => i))) FROM generate_series(1, 100) i), 5050::numeric, 'more statements than plans are kept');
SELECT is(kept_find('v7'), 70, 'and again');
-- What calls have in common is kept without values; each pair has one shape or two, and any change of the catalog counts.
SELECT made FROM collection_create('formed') AS made \g /dev/null
INSERT INTO formed (doc) VALUES ('{_id: 1, a: 1, b: [1, 2]}'), ('{_id: 2, a: "x", b: []}'), ('{_id: 3, a: null, l: 1}'), ('{_id: 4, a: {c: 1}}'), ('{_id: 5, a: 5.5, z: 9}'), ('{_id: "6", a: true}');
CREATE FUNCTION pg_temp.formed(filter bson, sort bson DEFAULT '{_id: 1}') RETURNS text LANGUAGE sql AS $$SELECT string_agg(d ->> '_id', ' ') FROM collection_find('formed', filter, sort => sort) d$$;
CREATE FUNCTION pg_temp.formed_all(about text) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT is(pg_temp.formed(f), (SELECT string_agg(doc ->> '_id', ' ' ORDER BY bson_sort_key(doc, '{_id: 1}')) FROM formed WHERE doc @@ f), format('%s: %s', about, f)) FROM unnest(ARRAY['{a: 1}', '{a: "x"}', '{a: true}', '{a: null}', '{a: {c: 1}}', '{a: [1]}', '{a: /x/}', '{a: 5.5}',
    '{a: {$gt: 1}}', '{a: {$gt: 5}}', '{a: {$gt: 0, $lt: 2}}', '{a: {$gt: 0}, z: {$lt: 10}}', '{a: {$gt: 1, $lt: 6}}', '{a: {$ne: 1}}', '{a: {$ne: "x"}}', '{a: {$in: [1, "x"]}}', '{a: {$in: [5.5, 1, "x"]}}', '{a: {$in: [true]}}', '{a: {$in: []}}', '{_id: {$in: [1, 2, 3]}, a: 1}', '{_id: {$in: [4, 5]}, a: 5.5}',
    '{_id: 1}', '{_id: "6"}', '{_id: 1, a: 1}', '{_id: 1, a: 2}', '{_id: {$gt: 1}}', '{_id: {$gt: 3, $lte: 5}}', '{$and: [{_id: 1}, {a: 1}]}', '{$and: [{_id: 2}, {a: "x"}]}', '{b: 2}', '{b: 3}', '{b: {$size: 0}}', '{b: {$size: 2}}']::bson[]) WITH ORDINALITY AS u (f, n), generate_series(1, 2) AS again ORDER BY again, n$$;
SELECT pg_temp.formed_all('no index');
SELECT collection_create_index('formed', '{a: 1}') \g /dev/null
SELECT pg_temp.formed_all('an index');
ALTER TABLE formed ADD CHECK (bson_typeof(doc, 'a') <> 'array');
SELECT pg_temp.formed_all('a check');
SELECT is(pg_temp.formed('{_id: {$gt: 1}}', '{_id: -1}'), '5 4 3 2', 'another order');
SELECT is(pg_temp.formed(bson_build('x', repeat('x', 3000))) IS NULL AND pg_temp.formed(bson_build('$comment', repeat('x', 3000), 'a', 1)) = '1', true, 'values are of any length');
ALTER TABLE formed RENAME COLUMN doc TO "d o";
SELECT is(pg_temp.formed('{a: 1}'), '1', 'a column of another name');
ALTER TABLE formed RENAME COLUMN "d o" TO doc;
CREATE SCHEMA formed_schema;
ALTER TABLE formed SET SCHEMA formed_schema;
SET LOCAL search_path = formed_schema, public;
SELECT is(pg_temp.formed('{a: 1}'), '1', 'another schema');
ALTER SCHEMA formed_schema RENAME TO "formed s";
SET LOCAL search_path = "formed s", public;
SELECT is(pg_temp.formed('{a: 1}'), '1', 'a schema of another name');
SELECT is((SELECT concat_ws(' ', matched, modified) FROM collection_update('formed', '{_id: 1}', '{$set: {z: 1}}')), '1 1', 'an update');
SELECT throws_ok($$SELECT collection_update('formed', '{_id: 99}', '{$sat: {z: 1}}')$$, '0A000', NULL, 'another one of the same filter is checked');
SELECT is((SELECT concat_ws(' ', matched, modified) FROM collection_update('formed', '{_id: 5}', '{$set: {z: 9}}')), '1 0', 'that changes nothing');
SELECT is(collection_delete('formed', '{_id: 5}'), 1::bigint, 'deleted');
SELECT is(pg_temp.formed('{_id: 5}'), NULL, 'and gone');
SELECT outlier_enable('formed', 'b', 1) \g /dev/null
SELECT collection_insert('formed', '{_id: 7, a: 1, b: [1, 2, 3]}') \g /dev/null
SELECT is(pg_temp.formed('{b: 3}'), '7', 'a pattern that splits documents');
SELECT is((SELECT d::text FROM collection_find('formed', '{_id: 7}') d), '{"_id": 7, "a": 1, "b": [1, 2, 3]}', 'which are shown whole');
SELECT pattern_disable('formed', 'b') \g /dev/null
SELECT is(pg_temp.formed('{b: 3}'), '7', 'and when it is gone');
SET LOCAL search_path = public;

GRANT SELECT ON kept TO calls_reader;
ALTER TABLE kept ENABLE ROW LEVEL SECURITY;
SET LOCAL ROLE calls_reader;
SELECT is(kept_find('v7'), NULL, 'a policy for another role');
RESET ROLE;
CREATE FUNCTION kept_inner(doc bson) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER AS $$SELECT kept_find(doc ->> 'k') = 70$$;
CREATE POLICY finds ON kept USING (kept_inner(doc));
SET LOCAL ROLE calls_reader;
SELECT is(kept_find('v7'), 70, 'a plan that runs inside itself');
RESET ROLE;
REVOKE SELECT ON kept FROM calls_reader;
SET LOCAL ROLE calls_reader;
SELECT throws_ok($$SELECT kept_find('v7')$$, '42501', NULL, 'a right that is gone');
RESET ROLE;

-- Filters that ask for the time
SELECT collection_create('due');
SELECT collection_insert('due', '[{_id: 1, at: ISODate("2020-01-01")}, {_id: 2, at: ISODate("2999-01-01")}]'::text);
\set late '''{$expr: {$lt: ["$at", "$$NOW"]}}'''
SELECT is((SELECT string_agg(d ->> '_id', ' ') FROM collection_find('due', :late) d), '1', '$$NOW in find');
SELECT is(collection_count('due', '{_id: {$gt: 1}, $expr: {$gt: ["$at", "$$NOW"]}}'), 1::bigint, 'in count');
SELECT is((collection_update('due', :late, '{$set: {late: true}}', multi => true)).modified, 1::bigint, 'in update');
SELECT is(collection_find_one_and_update('due', :late, '{$inc: {n: 1}}', '{n: 1}', return_new => true)::text, '{"_id": 1, "n": 1}', 'in findAndModify');
SELECT is(collection_delete('due', :late), 1::bigint, 'in delete');
SELECT throws_ok('SELECT * FROM due WHERE doc @@ ' || quote_literal(:late), '0A000', NULL, 'but not in an operator');
SELECT matches(plan_of('due', '{_id: 2, $expr: {$gt: ["$at", "$$NOW"]}}'), 'Index Cond: \(_id = ', 'an index serves the other conditions');
SELECT matches((SELECT string_agg(l, ' ') FROM collection_explain('due', '[{$match: {_id: 2, $expr: {$gt: ["$at", "$$NOW"]}}}]') AS l), 'Index Cond: \(_id = ', 'in a pipeline, too');

SELECT * FROM finish();
ROLLBACK;
