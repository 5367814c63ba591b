-- Collations of the calls: options, filters, order, distinct values, changes, indexes, split documents, errors.
\set QUIET 1
SET client_min_messages = warning;
BEGIN;
SELECT plan(70);

CREATE TABLE made AS SELECT collection_create('w');
SELECT collection_insert('w', '[{_id: 1, n: "Äpfel", t: ["b", "C"], d: {x: "Ö"}}, {_id: 2, n: "apfel"}, {_id: 3, n: "zebra"}, {_id: 4, n: "APFEL", t: "c"}, {_id: 5, n: "a10"}, {_id: 6, n: "a9"}, {_id: 7, n: 5}, {_id: 8, n: "a b"}, {_id: "Key"}]') \g /dev/null
CREATE FUNCTION ids(filter bson, collation bson, sort bson DEFAULT '{_id: 1}', rel regclass DEFAULT 'w') RETURNS text LANGUAGE sql AS $$ SELECT string_agg(d ->> '_id', ' ') FROM collection_find($4, $1, sort => $3, collation => $2) d $$;

-- ---------------------------------------------------------------- filters, with and without an index

CREATE FUNCTION filters(about text) RETURNS SETOF text LANGUAGE sql AS $f$
  SELECT is(ids(f, ('{locale: "de", strength: ' || s || '}')::bson), i, concat_ws(' ', about, s, f)) FROM (VALUES
    ('{n: "apfel"}'::bson, 1, '1 2 4'), ('{n: "apfel"}', 2, '2 4'), ('{n: "apfel"}', 3, '2'), ('{n: {$in: ["ZEBRA", "ÄPFEL", 5]}}', 2, '1 3 7'), ('{n: {$nin: ["ZEBRA", "ÄPFEL", 5]}}', 1, '5 6 8 Key'),
    ('{n: {$gt: "APFEL"}}', 2, '1 3'), ('{n: {$gt: "APFEL"}}', 1, '3'), ('{n: {$ne: "apfel"}, t: {$exists: true}}', 2, '1'), ('{t: "c"}', 1, '1 4'), ('{t: {$all: ["B", "c"]}}', 2, '1'), ('{t: {$elemMatch: {$eq: "B"}}}', 2, '1'), ('{d: {x: "o"}}', 1, '1'), ('{"d.x": "ö"}', 2, '1'),
    ('{t: ["B", "c"]}', 2, '1'), ('{n: /^A/}', 1, '4'), ('{$expr: {$eq: ["$n", "APFEL"]}}', 1, '1 2 4'), ('{$expr: {$in: ["$n", ["ZEBRA"]]}}', 2, '3'), ('{n: 5}', 1, '7'), ('{_id: "KEY"}', 1, 'Key')) x (f, s, i) $f$;
SELECT filters('no index');
SELECT collection_create_index('w', '{n: 1}'), collection_create_index('w', '{"$**": 1}') \g /dev/null
SET LOCAL enable_seqscan = off;
SELECT filters('indexes');
RESET enable_seqscan;

-- ---------------------------------------------------------------- order and options

SELECT is(ids('{n: {$type: "string"}}', c, '{n: 1, _id: 1}'), i, c::text) FROM (VALUES
  ('{locale: "de"}'::bson, '8 5 6 2 4 1 3'), ('{locale: "de", caseFirst: "upper"}', '8 5 6 4 2 1 3'), ('{locale: "de", numericOrdering: true}', '8 6 5 2 4 1 3'), ('{locale: "sv"}', '8 5 6 2 4 3 1'), ('{locale: "simple"}', '4 8 5 6 2 3 1'),
  ('{locale: "de", strength: 1}', '8 5 6 1 2 4 3'), ('{locale: "de", strength: 1, caseLevel: true}', '8 5 6 2 1 4 3'), ('{locale: "de", alternate: "shifted", maxVariable: "space"}', '5 6 8 2 4 1 3'), ('{locale: "fr", backwards: true, normalization: true, strength: 5}', '8 5 6 2 4 1 3')) x (c, i);
SELECT is(ids('{n: {$type: "string"}}', '{locale: "de", numericOrdering: true}', '{n: -1}'), '3 1 4 2 5 6 8', 'descending');
SELECT is((SELECT string_agg(v::text, ' ') FROM collection_distinct('w', 'n', '{n: {$type: "string"}}', '{locale: "de", strength: 1}') v), 'a b a10 a9 APFEL zebra', 'distinct values');
SELECT is(collection_count('w', '{n: "APFEL"}', '{locale: "de", strength: 1}'), 3::bigint, 'their number');

-- ---------------------------------------------------------------- changes

SELECT is((SELECT (matched, modified)::text FROM collection_update('w', '{n: "ÄPFEL"}', '{$pull: {t: "c"}}', collation => '{locale: "de", strength: 2}')), '(1,1)', 'an update');
SELECT is(collection_find_one_and_update('w', '{_id: 1, t: "B"}', '{$set: {"t.$": "x"}}', '{t: 1, _id: 0}', return_new => true, collation => '{locale: "de", strength: 2}')::text, '{"t": ["x"]}', 'a position');
SELECT is((SELECT (matched, modified)::text FROM collection_replace('w', '{n: "A9"}', '{n: "r"}', collation => '{locale: "en", strength: 2}')), '(1,1)', 'a replacement');
SELECT is(collection_find_one_and_delete('w', '{n: "R"}', collation => '{locale: "en", strength: 2}') ->> '_id', '6', 'one deleted');
SELECT is((SELECT deleted FROM collection_bulk_write('w', '[{deleteMany: {filter: {n: "ZEBRA"}, collation: {locale: "en", strength: 1}}}]')), 1::bigint, 'in bulk');
SELECT is(collection_find_one_and_update('w', '{_id: 50}', '{$addToSet: {t: {$each: ["a", "A"]}}}', upsert => true, return_new => true, collation => '{locale: "en", strength: 2}')::text, '{"_id": 50, "t": ["a"]}', 'an upsert');
SELECT is(collection_delete('w', '{n: "APFEL"}', multi => true, collation => '{locale: "de", strength: 1}'), 3::bigint, 'many');

-- ---------------------------------------------------------------- split documents, errors

CREATE TABLE made2 AS SELECT collection_create('s');
SELECT outlier_enable('s', 'a', 1) \g /dev/null
SELECT collection_insert('s', '{_id: 1, n: "x", a: ["a", "B", "C"]}') \g /dev/null
SELECT is(ids('{a: "c"}', '{locale: "en", strength: 2}', rel => 's'), '1', 'a split document');
SELECT throws_ok($$SELECT collection_update('s', '{a: "c"}', '{$set: {n: 1}}', collation => '{locale: "en", strength: 2}')$$, '0A000', NULL, 'which is not changed by it');
SELECT is((SELECT modified FROM collection_update('s', '{n: "X"}', '{$set: {m: 1}}', collation => '{locale: "en", strength: 2}')), 1::bigint, 'unless nothing split is concerned');
SELECT throws_ok(format($$SELECT collection_count('s', collation => %L)$$, c), '22023', 'invalid collation', c) FROM unnest(ARRAY['{}', '{locale: 1}', '{locale: "zzzz"}', '{locale: "de", strength: 6}', '{locale: "de", strength: "x"}', '{locale: "de", caseLevel: 1}', '{locale: "de", version: "57.1"}', '{locale: "simple", strength: 1}']) c;
SELECT throws_ok($$SELECT collection_find('s', '{$expr: {$divide: [1, 0]}}', collation => '{locale: "de", strength: 1}')$$, NULL, NULL, 'an error ends it');
SELECT is(collection_count('w', '{n: "A10"}'), 0::bigint, 'and bytes compare again');

SELECT * FROM finish();
ROLLBACK;
