-- The computed pattern: signatures, errors, values at the edges, names that need quoting, and every way to declare it. What
-- statements on a source tell is tried in derive_sources.sql.
\set QUIET 1
\set ON_ERROR_STOP 1
SET client_min_messages = warning;
SET timezone = 'UTC';

BEGIN;
SELECT plan(96);

-- Signatures
SELECT has_function('computed_enable', ARRAY['regclass', 'regclass', 'text', 'bson', 'text', 'bson', 'bson', 'boolean', 'text', 'text', 'text', 'text']);
SELECT function_returns('computed_enable', 'text');
SELECT volatility_is('computed_enable', 'volatile');
SELECT has_function('computed_refresh', ARRAY['regclass', 'text', 'integer']);
SELECT function_returns('computed_refresh', 'bigint');
SELECT volatility_is('computed_staleness', 'stable');
SELECT function_returns('docpatterns', 'computed_trigger', ARRAY[]::name[], 'trigger');

-- Errors of declarations
SELECT collection_create('t'), collection_create('s') \g /dev/null
CREATE TABLE plain (id int PRIMARY KEY, x int);
SELECT throws_ok($$SELECT computed_enable('t', 's', 'a', NULL)$$, '22004', NULL, 'fields must not be null');
SELECT throws_ok($$SELECT computed_enable('t', 's', NULL, '{n: {$count: {}}}')$$, '22004', NULL, 'on_field must not be null');
SELECT throws_ok($$SELECT computed_enable('t', 's', 'a', '{}')$$, '22023', NULL, 'there must be fields');
SELECT throws_ok($$SELECT computed_enable('t', 's', 'a', '{n: 5}')$$, '22023', NULL, 'a field is an accumulator');
SELECT throws_ok($$SELECT computed_enable('t', 's', 'a', '{n: {$nonsense: 1}}')$$, '0A000', NULL, 'an accumulator has a known name');
SELECT throws_ok($$SELECT computed_enable('t', 's', 'a', '{_id: {$count: {}}}')$$, '22023', NULL, '_id is not computed');
SELECT throws_ok($$SELECT computed_enable('t', 's', 'a', '{n: {$count: {}}}', target_field => 'n')$$, '22023', NULL, 'the link is not computed');
SELECT throws_ok($$SELECT computed_enable('t', 's', 'a', '{n: {$count: {}}}', mode => 'soon')$$, '22023', NULL, 'a mode is one of three');
SELECT throws_ok($$SELECT computed_enable('t', 's', 'a', '{n: {$count: {}}}', mode => 'on_read', create_missing => true)$$, '22023', NULL, 'a view makes no documents');
SELECT throws_ok($$SELECT computed_enable('t', 's', 'a', '{n: {$count: {}}}', filter => '{$nonsense: 1}')$$, NULL, NULL, 'a filter is a filter');
SELECT throws_ok($$SELECT computed_enable('plain', 's', 'a', '{n: {$count: {}}}')$$, NULL, NULL, 'the target has documents');
SELECT is(computed_enable('t', 's', 'a', '{n: {$count: {}}, sum: {$sum: "$x"}}'), 'n', 'the name is the first field');
SELECT throws_ok($$SELECT computed_enable('t', 's', 'b', '{n: {$count: {}}}')$$, '42710', NULL, 'a name is used once');
SELECT throws_ok($$SELECT computed_enable('t', 's', 'b', '{sum: {$count: {}}}', name => 'other')$$, '22023', NULL, 'no two keep one field');
SELECT throws_ok($$SELECT computed_refresh('t', batch => 0)$$, '22023', NULL, 'a batch is positive');
SELECT throws_ok($$SELECT pattern_alter('t', 'n', '{on_field: "b"}')$$, '22023', NULL, 'on_field stays');
SELECT throws_ok($$SELECT pattern_alter('t', 'n', '{mode: "on_read"}')$$, '22023', NULL, 'the mode does not become on_read');
SELECT throws_ok($$SELECT pattern_alter('t', 'n', '{fields: 5}')$$, '22023', NULL, 'options keep their types');
SELECT throws_ok($$SELECT pattern_alter('t', 'nobody', '{mode: "deferred"}')$$, '42704', NULL, 'a declaration that is not there');

-- Values at the edges
INSERT INTO t (doc) VALUES ('{_id: 1}'), ('{_id: "one"}'), ('{_id: {a: 1, b: [2]}}') \g /dev/null
SELECT is((SELECT doc -> 'n' FROM t WHERE _id = 1), '0'::bson_value, 'a new document has the totals of no rows');
INSERT INTO s (doc) VALUES ('{_id: 1, a: 1, x: 1}'), ('{_id: 2, a: 1.0, x: 2.5}'), ('{_id: 3, a: {$numberDecimal: "1"}, x: {$numberDecimal: "0.1"}}'),
  ('{_id: 4, a: "one", x: "text"}'), ('{_id: 5, a: null, x: 9}'), ('{_id: 6, x: 9}'), ('{_id: 7, a: {a: 1, b: [2]}, x: {$numberLong: "9223372036854775807"}}');
SELECT is((SELECT doc -> 'n' FROM t WHERE _id = 1), '3'::bson_value, 'equal numbers of all types are one group');
SELECT is((SELECT (doc -> 'sum')::numeric FROM t WHERE _id = 1), 3.6, 'a sum of mixed types is exact');
SELECT is((SELECT doc -> 'sum' FROM t WHERE _id = '"one"'), '0'::bson_value, 'texts add nothing');
SELECT is((SELECT bson_typeof(doc -> 'sum') FROM t WHERE _id = '{a: 1, b: [2]}'), 'long', 'a sum that fits into a long is one');
INSERT INTO s (doc) VALUES ('{_id: 8, a: {a: 1, b: [2]}, x: 1}');
SELECT is((SELECT bson_typeof(doc -> 'sum') FROM t WHERE _id = '{a: 1, b: [2]}'), 'double', 'one that does not is a double');
DELETE FROM s WHERE _id = 8;
SELECT is((SELECT doc -> 'sum' FROM t WHERE _id = '{a: 1, b: [2]}'), '{"$numberLong": "9223372036854775807"}'::bson_value, 'and exact again when it does');
INSERT INTO s (doc) VALUES ('{_id: 9, a: "one", x: {$numberDouble: "Infinity"}}'), ('{_id: 10, a: "one", x: {$numberDouble: "-Infinity"}}'), ('{_id: 11, a: "one", x: 4.5}');
SELECT is((SELECT (doc -> 'sum')::float8 FROM t WHERE _id = '"one"'), 'NaN'::float8, 'infinities of both signs make NaN');
DELETE FROM s WHERE _id = 10;
SELECT is((SELECT (doc -> 'sum')::float8 FROM t WHERE _id = '"one"'), 'Infinity'::float8, 'one of them is what is left');
DELETE FROM s WHERE _id = 9;
SELECT is((SELECT (doc -> 'sum')::float8 FROM t WHERE _id = '"one"'), 4.5::float8, 'without it the sum is what it was');
UPDATE s SET doc = bson_set(doc, 'x', 'NaN'::float8) WHERE _id = 11;
SELECT is((SELECT (doc -> 'sum')::float8 FROM t WHERE _id = '"one"'), 'NaN'::float8, 'so it is with NaN');
SELECT is_empty($$SELECT * FROM pattern_check()$$, 'all of that is in line');
DELETE FROM s;
SELECT is((SELECT count(*) FROM t WHERE doc -> 'n' = '0'::bson_value AND doc -> 'sum' = '0'::bson_value AND NOT bson_exists(doc, '_computed.n')), 3::bigint, 'emptied groups are those of no rows, without a state');

-- Protection, build and repair
UPDATE t SET doc = bson_set(bson_set(doc, 'n', 77), 'mine', 5) WHERE _id = 1;
SELECT is((SELECT doc FROM t WHERE _id = 1), '{_id: 1, n: 0, sum: 0, mine: 5}'::bson, 'hand-written totals are put back');
UPDATE t SET doc = bson_unset(doc, 'sum') WHERE _id = 1;
SELECT is((SELECT doc -> 'sum' FROM t WHERE _id = 1), '0'::bson_value, 'those that are taken out, too');
SET LOCAL docpatterns.maintain = off;
UPDATE t SET doc = bson_set(doc, 'n', 77) WHERE _id = 1;
INSERT INTO s (doc) VALUES ('{a: "one", x: 2}');
SET LOCAL docpatterns.maintain = on;
SELECT is((SELECT count(DISTINCT key) FROM pattern_check('t')), 2::bigint, 'pattern_check finds what is wrong');
SELECT is(pattern_repair('t', 'n'), 2::bigint, 'pattern_repair writes just that');
SELECT is_empty($$SELECT * FROM pattern_check()$$, 'and mends it');
SELECT is(pattern_repair('t', 'n'), 0::bigint, 'a second time there is nothing to do');

-- Changing and ending
SELECT pattern_alter('t', 'n', '{fields: {n: {$count: {}}, best: {$max: "$x"}}, filter: {x: {$gt: 0}}}') \g /dev/null
SELECT is((SELECT doc FROM t WHERE _id = '"one"'), '{_id: "one", n: 1, best: 2}'::bson, 'fields are exchanged');
INSERT INTO s (doc) VALUES ('{a: "one", x: -2}'), ('{a: "one", x: 8}');
SELECT is((SELECT doc FROM t WHERE _id = '"one"'), '{_id: "one", n: 2, best: 8}'::bson, 'the filter holds');
UPDATE s SET doc = bson_set(doc, 'x', -8) WHERE doc @@ '{x: 8}';
SELECT is((SELECT doc FROM t WHERE _id = '"one"'), '{_id: "one", n: 1, best: 2}'::bson, 'a row that it lets through no more is gone');
SELECT pattern_disable('t', 'n', true) \g /dev/null
SELECT is((SELECT doc FROM t WHERE _id = '"one"'), '{_id: "one", n: 1, best: 2}'::bson, 'keep_data keeps the fields');
INSERT INTO s (doc) VALUES ('{a: "one", x: 8}');
SELECT is((SELECT doc -> 'n' FROM t WHERE _id = '"one"'), '1'::bson_value, 'and nobody keeps them in line');
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgrelid IN ('t'::regclass, 's'::regclass) AND tgname LIKE '%computed%'), 0::bigint, 'no trigger is left');
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 's'::regclass), 1::bigint, 'nor an index');
DELETE FROM s; DELETE FROM t;

-- Names that need quoting, other columns, another key; a path with quotes
CREATE SCHEMA "a ""b";
CREATE TABLE "a ""b"."T ' x" ("k ""1" int, k2 text, "the doc" bson, other int DEFAULT 7, PRIMARY KEY ("k ""1", k2));
CREATE TABLE "a ""b"."S %s" ("no" int PRIMARY KEY, "Doc" bson, noise bson);
SELECT computed_enable('"a ""b"."T '' x"', '"a ""b"."S %s"', 'to."a b"', '{"n''s": {$count: {}}, "x\"y": {$sum: {$multiply: ["$q", 2]}}}', name => 'it''s "%I"',
  doc_column => 'the doc', source_doc_column => 'Doc') \g /dev/null
INSERT INTO "a ""b"."T ' x" VALUES (1, 'one', '{}'), (2, 'two', NULL);
INSERT INTO "a ""b"."S %s" VALUES (1, '{to: {"a b": [1, "one"]}, q: 4}', NULL), (2, '{to: {"a b": [1, "one"]}, q: 5}', '{q: 100}'), (3, NULL, NULL), (4, '{to: {"a b": [2, "two"]}}', NULL);
SELECT is((SELECT "the doc" FROM "a ""b"."T ' x" WHERE "k ""1" = 1), '{"n''s": 2, "x\"y": 18}'::bson, 'names that need quoting');
SELECT is((SELECT "the doc" FROM "a ""b"."T ' x" WHERE "k ""1" = 2), NULL::bson, 'no document, no fields');
UPDATE "a ""b"."T ' x" SET "the doc" = '{own: 1}' WHERE "k ""1" = 2;
SELECT is((SELECT ("the doc" -> 'n''s')::int FROM "a ""b"."T ' x" WHERE "k ""1" = 2), 1, 'a document that comes later');
SELECT is_empty($$SELECT * FROM pattern_check('"a ""b"."T '' x"')$$, 'they are checked');
SELECT pattern_disable('"a ""b"."T '' x"') \g /dev/null
SELECT is((SELECT "the doc" FROM "a ""b"."T ' x" WHERE "k ""1" = 1), '{}'::bson, 'and go away');

-- Source and target are one table; a chain of two; several documents of one link
SELECT computed_enable('t', 't', 'parent', '{children: {$count: {}}, size: {$sum: "$own"}}') \g /dev/null
INSERT INTO t (doc) VALUES ('{_id: 1, own: 1}'), ('{_id: 2, parent: 1, own: 2}'), ('{_id: 3, parent: 1, own: 3}'), ('{_id: 4, parent: 4, own: 4}');
SELECT results_eq($$SELECT _id::int, (doc -> 'children')::int, (doc -> 'size')::int FROM t ORDER BY 1$$, $$VALUES (1, 2, 5), (2, 0, 0), (3, 0, 0), (4, 1, 4)$$, 'a table that is source and target');
UPDATE t SET doc = bson_set(doc, 'parent', 2) WHERE _id IN (3, 4);
SELECT results_eq($$SELECT _id::int, (doc -> 'children')::int, (doc -> 'size')::int FROM t ORDER BY 1$$, $$VALUES (1, 1, 2), (2, 2, 7), (3, 0, 0), (4, 0, 0)$$, 'rows that move in it');
SELECT is_empty($$SELECT * FROM pattern_check('t')$$, 'it is in line');
SELECT pattern_disable('t') \g /dev/null
TRUNCATE t;
SELECT collection_create('u') \g /dev/null
SELECT computed_enable('t', 's', 'a', '{n: {$count: {}}}', create_missing => true), computed_enable('u', 't', 'n', '{groups: {$count: {}}}', create_missing => true) \g /dev/null
INSERT INTO s (doc) VALUES ('{_id: 1, a: 1}'), ('{_id: 2, a: 1}'), ('{_id: 3, a: 2}'), ('{_id: 4, a: 3}');
SELECT results_eq($$SELECT _id::int, (doc -> 'groups')::int FROM u ORDER BY 1$$, $$VALUES (1, 2), (2, 1)$$, 'totals of totals');
UPDATE s SET doc = bson_set(doc, 'a', 3) WHERE _id = 3;
SELECT results_eq($$SELECT _id::int, (doc -> 'groups')::int FROM u ORDER BY 1$$, $$VALUES (0, 1), (1, 0), (2, 2)$$, 'they follow');
TRUNCATE s;
SELECT results_eq($$SELECT _id::int, (doc -> 'groups')::int FROM u ORDER BY 1$$, $$VALUES (0, 3), (1, 0), (2, 0)$$, 'also TRUNCATE');
SELECT is_empty($$SELECT * FROM pattern_check()$$, 'the chain is in line');
SELECT pattern_disable('u'), pattern_disable('t') \g /dev/null
TRUNCATE t, s;
SELECT computed_enable('t', 's', 'a', '{n: {$count: {}}, all: {$addToSet: "$x", cap: 10}}', target_field => 'g') \g /dev/null
INSERT INTO t (doc) VALUES ('{_id: 1, g: 5}'), ('{_id: 2, g: 5}'), ('{_id: 3}');
INSERT INTO s (doc) VALUES ('{a: 5, x: 1}'), ('{a: 5, x: 1}'), ('{a: 6, x: 2}');
SELECT results_eq($$SELECT (doc -> 'n')::int, doc ->> 'all' FROM t ORDER BY _id$$, $$VALUES (2, '[1]'), (2, '[1]'), (0, '[]')$$, 'all documents of a link');
UPDATE t SET doc = bson_set(doc, 'g', 6) WHERE _id IN (2, 3);
SELECT results_eq($$SELECT (doc -> 'n')::int, doc ->> 'all' FROM t ORDER BY _id$$, $$VALUES (2, '[1]'), (1, '[2]'), (1, '[2]')$$, 'a link that changes');
SELECT pattern_disable('t') \g /dev/null
TRUNCATE t, s;

-- Later, and on reading
SELECT computed_enable('t', 's', 'a', '{n: {$count: {}}}', mode => 'deferred') \g /dev/null
INSERT INTO t (doc) VALUES ('{_id: 1}'), ('{_id: 2}');
INSERT INTO s (doc) VALUES ('{a: 1}'), ('{a: 1}'), ('{a: 2}'), ('{a: 3}');
SELECT is((SELECT count(*) FROM t WHERE doc -> 'n' = '0'::bson_value), 2::bigint, 'deferred: nothing is written yet');
SELECT is((SELECT count(*) FROM computed_staleness('t')), 3::bigint, 'what waits is told');
SELECT is_empty($$SELECT * FROM pattern_check()$$, 'and no violation');
SELECT computed_refresh('t', batch => 1), computed_refresh('t') \g /dev/null
SELECT results_eq($$SELECT (doc -> 'n')::int FROM t ORDER BY _id$$, $$VALUES (2), (1)$$, 'computed_refresh works it off');
SELECT pattern_alter('t', 'n', '{mode: "immediate"}'), pattern_disable('t') \g /dev/null
SELECT computed_enable('t', 's', 'a', '{n: {$count: {}}, sum: {$sum: "$x"}}', mode => 'on_read', filter => '{a: {$lt: 3}}') \g /dev/null
SELECT results_eq($$SELECT doc FROM t_n_view ORDER BY _id$$, $$VALUES ('{_id: 1, n: 2, sum: 0}'::bson), ('{_id: 2, n: 1, sum: 0}')$$, 'on_read: a view computes');
SELECT pattern_disable('t') \g /dev/null
SELECT hasnt_view('t_n_view');
TRUNCATE t, s;

-- Partitions on both sides
CREATE TABLE pt (_id bson_value, doc bson, region int NOT NULL, PRIMARY KEY (_id, region)) PARTITION BY LIST (region);
CREATE TABLE pt1 PARTITION OF pt FOR VALUES IN (1);
CREATE TABLE pt2 PARTITION OF pt FOR VALUES IN (2);
CREATE TABLE ps (id int, extra int, doc bson, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE ps1 PARTITION OF ps FOR VALUES FROM (0) TO (100);
SELECT computed_enable('pt', 'ps', 'a', '{n: {$count: {}}, low: {$min: "$x"}}', target_field => 'g') \g /dev/null
INSERT INTO pt VALUES (to_bson(1), '{g: 1}', 1), (to_bson(2), '{g: 2}', 2);
CREATE TABLE ps2 PARTITION OF ps FOR VALUES FROM (100) TO (200);
INSERT INTO ps (id, doc) VALUES (1, '{a: 1, x: 5}'), (101, '{a: 1, x: 3}'), (102, '{a: 2, x: 4}');
UPDATE ps SET id = 105 WHERE id = 1;
UPDATE pt SET region = 3 - region;
DELETE FROM ps2 WHERE doc @@ '{x: 3}';
SELECT results_eq($$SELECT _id::int, region, (doc -> 'n')::int, (doc -> 'low')::int FROM pt ORDER BY 1$$, $$VALUES (1, 2, 1, 5), (2, 1, 1, 4)$$, 'partitions on both sides');
SELECT is_empty($$SELECT * FROM pattern_check('pt')$$, 'are in line');

-- A document that one declaration makes has what the others keep in it, too.
SELECT collection_create('orders'), collection_create('refunds'), collection_create('days') \g /dev/null
SELECT computed_enable('days', 'orders', 'day', '{n: {$count: {}}, best: {$max: "$x"}}', name => 'orders', create_missing => true),
       computed_enable('days', 'refunds', 'day', '{refunds: {$count: {}}}', name => 'refunds', create_missing => true) \g /dev/null
INSERT INTO orders (doc) VALUES ('{_id: 1, day: 1, x: 5}');
INSERT INTO refunds (doc) VALUES ('{_id: 1, day: 2}');
SELECT results_eq($$SELECT doc FROM days ORDER BY _id$$, $$VALUES ('{_id: 1, n: 1, best: 5, refunds: 0}'::bson), ('{_id: 2, refunds: 1, n: 0, best: null}')$$, 'without rows');
SET session_replication_role = replica; DELETE FROM days; SET session_replication_role = origin;
INSERT INTO refunds (doc) VALUES ('{_id: 2, day: 1}'), ('{_id: 3, day: 1}');
SET session_replication_role = replica; DELETE FROM days; SET session_replication_role = origin;
INSERT INTO orders (doc) VALUES ('{_id: 2, day: 1, x: 7}'), ('{_id: 3, day: 2, x: 1}');
SELECT results_eq($$SELECT doc FROM days ORDER BY _id$$, $$VALUES ('{_id: 1, n: 2, best: 7, refunds: 2}'::bson), ('{_id: 2, n: 1, best: 1, refunds: 1}')$$, 'with rows that were there before');
SELECT pattern_disable('days', 'refunds') \g /dev/null
SELECT computed_enable('days', 'refunds', 'day', '{refunds: {$count: {}}}', name => 'refunds'),
       computed_enable('days', 'refunds', 'day', '{later: {$count: {}}}', name => 'later', mode => 'deferred'),
       computed_enable('days', 'orders', 'day', '{low: {$min: "$x"}}', name => 'low'),
       subset_enable('days', field => 'last', source => 'refunds', on_field => 'day', order_by => '{_id: -1}', keep => 2, fields => '{_id: 1}', count_field => 'all') \g /dev/null
SET session_replication_role = replica; DELETE FROM days; SET session_replication_role = origin;
INSERT INTO orders (doc) VALUES ('{_id: 4, day: 1, x: 7}'), ('{_id: 5, day: 3, x: 2}');
SELECT results_eq($$SELECT doc FROM days ORDER BY _id$$, $$VALUES ('{_id: 1, n: 3, best: 7, later: 0, low: 5, refunds: 2, last: [{_id: 3}, {_id: 2}], all: 2}'::bson), ('{_id: 3, n: 1, best: 2, later: 0, low: 2, refunds: 0, last: [], all: 0}')$$,
  'with declarations that make no documents');
SELECT is_empty($$SELECT * FROM pattern_check('days') WHERE what <> 'document of the group'$$, 'as they should be');
SELECT computed_refresh('days', 'later') \g /dev/null
SELECT results_eq($$SELECT (doc -> 'later')::int FROM days ORDER BY _id$$, $$VALUES (2), (0)$$, 'a deferred one is put off');
SELECT polymorphic_merge('view', merge_on => 'day', sources => '{orders}', arrays => '{orders}', fields => '{orders: {x: 1}}') FROM collection_create('view') \g /dev/null
SELECT computed_enable('view', 'refunds', 'day', '{refunds: {$count: {}}}', target_field => 'day') \g /dev/null
INSERT INTO orders (doc) VALUES ('{_id: 6, day: 4, x: 2}');
INSERT INTO refunds (doc) VALUES ('{_id: 4, day: 5}');
INSERT INTO orders (doc) VALUES ('{_id: 7, day: 5, x: 3}');
SELECT results_eq($$SELECT bson_unset(doc, '_id') FROM view WHERE (doc -> 'day')::int > 3 ORDER BY doc -> 'day'$$, $$VALUES ('{day: 4, orders: [{x: 2}], refunds: 0}'::bson), ('{day: 5, orders: [{x: 3}], refunds: 1}')$$, 'and of a single view');

-- A document that is made for its group is made again
SELECT collection_create('made'), collection_create('rows_of') \g /dev/null
SELECT computed_enable('made', 'rows_of', 'a', '{n: {$count: {}}}', create_missing => true, name => 'n'),
       computed_enable('made', 'rows_of', 'b', '{m: {$count: {}}}', target_field => 'b', create_missing => true, name => 'm') \g /dev/null
INSERT INTO rows_of (doc) SELECT bson_build('_id', i, 'a', i % 2, 'b', 'b' || i % 2) FROM generate_series(1, 5) i;
CREATE FUNCTION pg_temp.made() RETURNS text LANGUAGE sql AS $$
  SELECT concat((SELECT string_agg(concat_ws(' ', coalesce(doc ->> 'b', doc ->> '_id'), doc ->> 'n', doc ->> 'm'), ', ' ORDER BY coalesce(doc ->> 'b', doc ->> '_id')) FROM made), (SELECT string_agg(v::text, E'\n') FROM pattern_check('made') v))
$$;
SELECT is(pg_temp.made(), '0 2 0, 1 3 0, b0 0 2, b1 0 3', 'a document for each group');
DELETE FROM made WHERE _id = '1' OR doc ->> 'b' = 'b0';
SELECT is(pg_temp.made(), '0 2 0, 1 3 0, b0 0 2, b1 0 3', 'one that is deleted is made again');
UPDATE made SET doc = bson_set(doc, '_id', 7) WHERE _id = '1';
SELECT is(pg_temp.made(), '0 2 0, 1 3 0, 7 0 0, b0 0 2, b1 0 3', 'and one that gets another key');
UPDATE made SET doc = bson_set(doc, 'b', 'other') WHERE doc ->> 'b' = 'b1';
SELECT is(pg_temp.made(), '0 2 0, 1 3 0, 7 0 0, b0 0 2, b1 0 3, other 0 0', 'or another link');
TRUNCATE made;
SELECT is(pg_temp.made(), '0 2 0, 1 3 0, b0 0 2, b1 0 3', 'all of them');
WITH gone AS (DELETE FROM rows_of WHERE doc ->> 'a' = '0') DELETE FROM made;
SELECT is(pg_temp.made(), '1 3 0, b1 0 3', 'not where the group goes with it');
TRUNCATE made, rows_of;
SELECT is(pg_temp.made(), '', 'nor where all of it goes');
-- once for a table and all of its partitions
CREATE TABLE parts (id int DEFAULT (random() * 1000000000)::int PRIMARY KEY, doc bson) PARTITION BY HASH (id);
SELECT format('CREATE TABLE parts_%s PARTITION OF parts FOR VALUES WITH (MODULUS 6, REMAINDER %1$s)', i) FROM generate_series(0, 5) i \gexec
SELECT computed_enable('parts', 'rows_of', 'c', '{n: {$count: {}}}', target_field => 'c', create_missing => true) \g /dev/null
INSERT INTO rows_of (doc) SELECT bson_build('_id', i, 'a', 0, 'b', 'b', 'c', i % 10) FROM generate_series(1, 300) i;
CREATE FUNCTION pg_temp.rows_read(command text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  before bigint := pg_stat_get_xact_tuples_returned('rows_of'::regclass) + pg_stat_get_xact_tuples_fetched('rows_of'::regclass);
BEGIN
  EXECUTE command;
  RETURN pg_stat_get_xact_tuples_returned('rows_of'::regclass) + pg_stat_get_xact_tuples_fetched('rows_of'::regclass) - before;
END $$;
SELECT cmp_ok(pg_temp.rows_read('TRUNCATE parts'), '<', 1000::bigint, 'a source is read once when a table of partitions is truncated');
SELECT results_eq('SELECT count(*), sum((doc ->> ''n'')::int) FROM parts', 'VALUES (10::bigint, 300::bigint)', 'and all is there again');
DROP TABLE parts CASCADE;
DELETE FROM rows_of; TRUNCATE made;
INSERT INTO rows_of (doc) VALUES ('{_id: 1, a: 1, b: 1}');
SELECT pattern_alter('made', 'n', '{create_missing: false}'), pattern_alter('made', 'm', '{mode: "deferred"}') \g /dev/null
DELETE FROM made;
SELECT is((SELECT count(*) FROM made), 0::bigint, 'nor where it is not made, or not at once');
SELECT computed_refresh('made', 'm') \g /dev/null
SELECT is(pg_temp.made(), '1 0 1', 'but then');
DROP TABLE made, rows_of CASCADE;

-- What follows from itself is an error that says so
CREATE FUNCTION pg_temp.why(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE why text;
BEGIN
  EXECUTE command;
  RETURN 'nothing';
EXCEPTION WHEN object_not_in_prerequisite_state THEN
  GET STACKED DIAGNOSTICS why = PG_EXCEPTION_DETAIL;
  RETURN (SELECT string_agg(DISTINCT m[1], ', ' ORDER BY m[1]) FROM regexp_matches(why, '\d of table "\w+"', 'g') m);
END
$$;
SELECT collection_create('nodes'), collection_create('left_side'), collection_create('right_side') \g /dev/null
SELECT computed_enable('nodes', 'nodes', 'parent', '{total: {$sum: {$add: ["$own", "$total"]}}}') \g /dev/null
INSERT INTO nodes (doc) VALUES ('{_id: 1, own: 1}'), ('{_id: 2, parent: 1, own: 2}'), ('{_id: 3, parent: 2, own: 3}');
SELECT is((SELECT doc ->> 'total' FROM nodes WHERE _id = '1'), '5', 'totals of totals in one table');
SELECT is(pg_temp.why($$UPDATE nodes SET doc = bson_set(doc, 'parent', 3) WHERE _id = '1'$$),
  '1 of table "nodes", 2 of table "nodes", 3 of table "nodes"', 'rows in a circle');
SELECT is((SELECT doc ->> 'total' FROM nodes WHERE _id = '1'), '5', 'nothing has happened');
SELECT collection_create('copying'), collection_create('listing') \g /dev/null
SELECT reference_enable('copying', 'r', 'listing', live => '{list}'), subset_enable('listing', 'list', 'copying', 'r._id', '{_id: 1}', 3) \g /dev/null
INSERT INTO listing (doc) VALUES ('{_id: 1}');
SELECT is(pg_temp.why($$INSERT INTO copying (doc) VALUES ('{_id: 1, r: {_id: 1}}')$$), '1 of table "listing"', 'a copy of a list that holds the copy');
SELECT computed_enable('left_side', 'right_side', 'k', '{l: {$sum: "$r"}}'), computed_enable('right_side', 'left_side', 'k', '{r: {$sum: {$add: ["$l", 1]}}}') \g /dev/null
INSERT INTO left_side (doc) VALUES ('{_id: 1, k: 1}');
SELECT is(pg_temp.why($$INSERT INTO right_side (doc) VALUES ('{_id: 1, k: 1}')$$),
  '1 of table "left_side", 1 of table "right_side"', 'declarations that sum each other');
DROP TABLE nodes, left_side, right_side CASCADE;

SELECT * FROM finish();
ROLLBACK;
