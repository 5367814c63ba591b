-- The contract of the extended reference pattern: what is refused, what every option does, what every kind of write does.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(158);

CREATE FUNCTION pg_temp.all_true(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;

-- Signatures
SELECT function_returns(f, r, f || ' returns ' || r) FROM (VALUES ('reference_enable', 'text'), ('reference_refresh', 'bigint'), ('reference_staleness', 'setof record'),
  ('reference_dangling', 'setof record'), ('reference_cost', 'record')) AS v (f, r);
SELECT function_returns('docpatterns', f, r, f || ' returns ' || r) FROM (VALUES ('reference_array_hashes', 'bigint[]'), ('reference_differs', 'boolean')) AS v (f, r);
SELECT volatility_is(f, v, f || ' is ' || v) FROM (VALUES ('reference_enable', 'volatile'), ('reference_refresh', 'volatile'), ('reference_staleness', 'stable'),
  ('reference_dangling', 'stable'), ('reference_cost', 'stable')) AS w (f, v);
SELECT volatility_is('docpatterns', f, 'immutable', f || ' is immutable') FROM unnest('{reference_array_hashes,reference_differs}'::text[]) f;

-- Refused options
SELECT collection_create('s') \g /dev/null
SELECT collection_create('t') \g /dev/null
CREATE TABLE no_key (id int, doc bson);
CREATE TABLE no_doc (id int PRIMARY KEY, doc jsonb);
SELECT throws_ok(format('SELECT reference_enable(''t'', %s)', args), state, NULL, what) FROM (VALUES
  ($$NULL, 's'$$, '22004', 'no field'), ($$'a', NULL$$, '22004', 'no source'), ($$'a..b', 's'$$, '22023', 'a bad path'), ($$'_id', 's'$$, '22023', 'the field is _id'),
  ($$'a', 's', id_field => 'x.y'$$, '22023', 'id_field is a path'), ($$'a', 's', id_field => NULL$$, '22004', 'no id_field'),
  ($$'a', 's', live => '{_id}'$$, '22023', 'the id as a live field'), ($$'a', 's', live => '{b,b.c}'$$, '22023', 'a live field in another'),
  ($$'a', 's', live => '{b}', frozen => '{b}'$$, '22023', 'live and frozen'), ($$'a', 's', live => NULL$$, '22004', 'null for live'), ($$'a', 's', live => '{b,NULL}'$$, '22004', 'a null in live'),
  ($$'a', 's', on_delete => 'explode'$$, '22023', 'an unknown rule'), ($$'a', 's', missing => 'maybe'$$, '22023', 'an unknown missing'), ($$'a', 's', refresh => 'later'$$, '22023', 'an unknown refresh'),
  ($$'a', 's', max_staleness => '1 min'$$, '22023', 'max_staleness without a queue'), ($$'a', 'no_key'$$, '55000', 'a source without a key'), ($$'a', 'no_doc'$$, '42703', 'a source without documents'),
  ($$'a', 't', live => '{a.b}'$$, '22023', 'a table that copies its copies')) AS v (args, state, what);
SELECT reference_enable('t', 'a', 's', live => '{n}') \g /dev/null
SELECT throws_ok($$SELECT reference_enable('t', 'a', 's')$$, '42710', NULL, 'a second declaration of the name');
SELECT throws_ok($$SELECT reference_enable('t', 'a.b', 's')$$, '22023', NULL, 'a reference in a reference');
SELECT outlier_enable('t', 'long', 5) \g /dev/null
SELECT throws_ok($$SELECT reference_enable('t', 'long.by', 's')$$, '22023', NULL, 'references in an array that is split');
SELECT throws_ok($$SELECT outlier_enable('t', 'a', 5, flag => 'other', name => 'o')$$, '22023', NULL, 'splitting an array with references');
SELECT pattern_disable('t', 'a'), pattern_disable('t', 'long') \g /dev/null
SELECT is_empty($$SELECT tgname FROM pg_trigger WHERE tgrelid IN ('s'::regclass, 't'::regclass) AND tgname LIKE '%reference%'$$, 'no trigger is left');
SELECT is(count(*), 2::bigint, 'nor an index') FROM pg_index WHERE indrelid IN ('s'::regclass, 't'::regclass);

-- Filling in
INSERT INTO s (doc) VALUES ('{_id: 1, n: "one", f: {x: 1, y: 2}, secret: 5}'), ('{_id: 2, n: "two", f: {x: 3}, secret: 6}'), ('{_id: 3, f: {}}');
SELECT reference_enable('t', 'a', 's', live => '{n,f.x}', frozen => '{f.y}') \g /dev/null
INSERT INTO t (doc) VALUES ('{_id: 1, a: {_id: 1}}'), ('{_id: 2, a: 1}'), ('{_id: 3, a: {own: true, _id: 2, n: "wrong", last: 1}}'), ('{_id: 4, a: [{_id: 1}, 2]}'), ('{_id: 5, a: {own: 1}}'),
  ('{_id: 6, a: null}'), ('{_id: 7, a: []}'), ('{_id: 8, a: {_id: 3, n: "wrong"}}'), ('{_id: 9, a: {_id: 1, f: {y: 7}}}'), ('{_id: 10, a: {_id: 1.0}}'), ('{_id: 11}');
SELECT is((SELECT doc ->> 'a' FROM t WHERE _id = id), (expected::bson -> 'a')::text, what) FROM (VALUES
  (1, '{a: {_id: 1, n: "one", f: {x: 1, y: 2}}}', 'a sub-document'), (2, '{a: {_id: 1, n: "one", f: {x: 1, y: 2}}}', 'a bare id'),
  (3, '{a: {own: true, _id: 2, n: "two", last: 1, f: {x: 3}}}', 'members and their order stay'), (4, '{a: [{_id: 1, n: "one", f: {x: 1, y: 2}}, {_id: 2, n: "two", f: {x: 3}}]}', 'an array'),
  (5, '{a: {own: 1}}', 'no id, no reference'), (7, '{a: []}', 'an empty array'), (8, '{a: {_id: 3}}', 'fields that the source does not have'),
  (9, '{a: {_id: 1, f: {y: 7, x: 1}, n: "one"}}', 'a frozen field that is given stays')) AS v (id, expected, what);
SELECT is(bson_typeof(doc, 'a._id'), 'double', 'an equal id of another type stays as it is written') FROM t WHERE _id = 10;
SELECT pg_temp.all_true('filled in');

-- Sources change
UPDATE s SET doc = bson_set(bson_set(doc, 'n', 'uno'), 'f.y', 9) WHERE _id = 1;
SELECT is((SELECT doc ->> 'a' FROM t WHERE _id = 1), '{"_id": 1, "n": "uno", "f": {"x": 1, "y": 2}}', 'live follows, frozen stays');
SELECT is((SELECT doc ->> 'a.0.n' FROM t WHERE _id = 4), 'uno', 'in arrays too');
UPDATE s SET doc = bson_unset(doc, 'n') WHERE _id = 1;
SELECT ok(NOT doc ? 'a.n', 'a field that the source loses goes from the copies') FROM t WHERE _id = 1;
UPDATE s SET doc = bson_set(doc, 'f', 5) WHERE _id = 2;
SELECT is((SELECT doc ->> 'a' FROM t WHERE _id = 3), '{"own": true, "_id": 2, "n": "two", "last": 1, "f": {}}', 'a sub-document that became a number is none to copy from');
SELECT pg_temp.all_true('sources changed');
CREATE TEMP TABLE places AS SELECT _id, ctid AS place FROM t;
UPDATE s SET doc = bson_set(doc, 'secret', 7);
SELECT is(count(*), 11::bigint, 'what is not copied concerns no row') FROM t JOIN places p ON p._id = t._id AND p.place = t.ctid;
UPDATE s SET doc = bson_set(bson_set(doc, 'n', 'one'), 'f', '{"x": 1, "y": 9}'::bson) WHERE _id = 1;
UPDATE s SET doc = bson_set(doc, 'f', '{"x": 3}'::bson) WHERE _id = 2;

-- References change
UPDATE t SET doc = bson_set(doc, 'a.n', 'forged') WHERE _id = 1;
SELECT is((SELECT doc ->> 'a.n' FROM t WHERE _id = 1), 'one', 'a forged live copy');
UPDATE t SET doc = bson_unset(doc, 'a.n') WHERE _id = 1;
SELECT is((SELECT doc ->> 'a.n' FROM t WHERE _id = 1), 'one', 'a live copy that was taken away');
UPDATE t SET doc = bson_set(doc, 'a', 1) WHERE _id = 1;
SELECT ok(doc @@ '{"a.f.y": 2, "a.n": "one"}', 'the bare id again: frozen is what it was') FROM t WHERE _id = 1;
UPDATE t SET doc = bson_set(doc, 'a._id', 2) WHERE _id = 1;
SELECT is((SELECT doc ->> 'a' FROM t WHERE _id = 1), '{"_id": 2, "n": "two", "f": {"x": 3}}', 'another id: nothing of the old source is left');
UPDATE t SET doc = bson_set(doc, 'a', '[{"_id": 2}, {"_id": 1, "n": "x"}, {"_id": 1}]'::bson_value) WHERE _id = 4;
SELECT is((SELECT doc ->> 'a' FROM t WHERE _id = 4), '[{"_id": 2, "n": "two", "f": {"x": 3}}, {"_id": 1, "n": "one", "f": {"x": 1, "y": 2}}, {"_id": 1, "n": "one", "f": {"x": 1, "y": 9}}]',
          'elements that move keep what is frozen, a new one takes what is there now');
SELECT pg_temp.all_true('references changed');
SELECT throws_ok($$UPDATE t SET doc = bson_set(doc, 'a', 99) WHERE _id = 1$$, '23503', NULL, 'a source that does not exist');
SELECT throws_ok($$INSERT INTO t (doc) VALUES ('{_id: 90, a: [{_id: 1}, {_id: 99}]}')$$, '23503', NULL, 'in an array');
INSERT INTO t (doc) VALUES ('{_id: 1, a: 99}') ON CONFLICT DO NOTHING;
SELECT pass('a row that is not stored names nobody');
INSERT INTO t (doc) VALUES ('{_id: 1, a: 1}') ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT ok(doc @@ '{"a.n": "one"}', 'ON CONFLICT DO UPDATE') FROM t WHERE _id = 1;
COPY t (doc) FROM stdin;
{"_id": 20, "a": 2}
\.
SELECT is((SELECT doc ->> 'a.n' FROM t WHERE _id = 20), 'two', 'COPY');
MERGE INTO t USING (VALUES (20), (21)) AS v (id) ON t._id = v.id
  WHEN MATCHED THEN UPDATE SET doc = bson_set(doc, 'a', 1) WHEN NOT MATCHED THEN INSERT (doc) VALUES (bson_build('_id', v.id, 'a', v.id - 19));
SELECT is(string_agg(doc ->> 'a.n', ',' ORDER BY _id), 'one,two', 'MERGE') FROM t WHERE _id IN (20, 21);
WITH new AS (INSERT INTO s (doc) VALUES ('{_id: 30, n: "new"}')) INSERT INTO t (doc) VALUES ('{_id: 30, a: 30}');
SELECT is((SELECT doc ->> 'a.n' FROM t WHERE _id = 30), 'new', 'a source of the same statement');
BEGIN;
SAVEPOINT a; UPDATE s SET doc = bson_set(doc, 'n', 'undone') WHERE _id = 1; ROLLBACK TO a;
SELECT is((SELECT doc ->> 'a.n' FROM t WHERE _id = 20), 'one', 'a savepoint takes all back');
COMMIT;
SELECT pg_temp.all_true('all kinds of writes');

-- Keys of sources change
UPDATE s SET doc = bson_set(doc, '_id', 31) WHERE _id = 30;
SELECT is((SELECT doc ->> 'a._id' FROM t WHERE _id = 30), '31', 'references follow the key');
UPDATE s SET doc = bson_set(doc, '_id', CASE WHEN _id = 1 THEN 100 ELSE 1 END) WHERE _id IN (1, 31);
SELECT is((SELECT string_agg(doc ->> 'a._id', ',' ORDER BY _id) FROM t WHERE _id IN (20, 30)), '100,1', 'a chain of keys');
SELECT pg_temp.all_true('keys changed');
DELETE FROM t WHERE _id > 11;

-- Delete rules
SELECT throws_ok('DELETE FROM s WHERE _id = 100', '23503', NULL, 'restrict');
SELECT throws_ok('TRUNCATE s', '23503', NULL, 'restrict and TRUNCATE');
SELECT lives_ok('WITH gone AS (DELETE FROM t) DELETE FROM s', 'both in one statement');
SELECT pattern_disable('t') \g /dev/null
CREATE FUNCTION pg_temp.rule(rule text, field text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  TRUNCATE s, t;
  PERFORM reference_enable('t', field, 's', live => '{n}', on_delete => rule);
  INSERT INTO s (doc) VALUES ('{_id: 1, n: "one"}'), ('{_id: 2, n: "two"}');
  INSERT INTO t (doc) VALUES ('{_id: 1, a: 1, b: [1, 2, {_id: 1, own: 5}], c: [{t: "x", by: 1}, {t: "y", by: 2}]}'), ('{_id: 2, a: 2, b: [2], c: []}');
  DELETE FROM s WHERE _id = 1;
END $$;
CREATE FUNCTION pg_temp.after(field text) RETURNS text LANGUAGE sql AS $$ SELECT string_agg(coalesce(doc ->> field, '-'), ' ' ORDER BY _id) FROM t $$;
SELECT pg_temp.rule('cascade', 'a') \g /dev/null
SELECT is(count(*), 1::bigint, 'cascade deletes the document') FROM t; SELECT pg_temp.all_true('cascade'); SELECT pattern_disable('t') \g /dev/null
SELECT pg_temp.rule('cascade', 'b') \g /dev/null
SELECT is(pg_temp.after('b'), '[{"_id": 2, "n": "two"}] [{"_id": 2, "n": "two"}]', 'cascade in an array takes the elements'); SELECT pg_temp.all_true('cascade'); SELECT pattern_disable('t') \g /dev/null
SELECT pg_temp.rule('cascade', 'c.by') \g /dev/null
SELECT is(pg_temp.after('c'), '[{"t": "y", "by": {"_id": 2, "n": "two"}}] []', 'the element that holds the reference'); SELECT pg_temp.all_true('cascade'); SELECT pattern_disable('t') \g /dev/null
SELECT pg_temp.rule('unset', 'a') \g /dev/null
SELECT is(pg_temp.after('a'), '- {"_id": 2, "n": "two"}', 'unset takes the field'); SELECT pg_temp.all_true('unset'); SELECT pattern_disable('t') \g /dev/null
SELECT pg_temp.rule('unset', 'b') \g /dev/null
SELECT is(pg_temp.after('b'), '[{"_id": 2, "n": "two"}] [{"_id": 2, "n": "two"}]', 'unset pulls the member of an array'); SELECT pg_temp.all_true('unset'); SELECT pattern_disable('t') \g /dev/null
SELECT pg_temp.rule('unset', 'c.by') \g /dev/null
SELECT is(pg_temp.after('c'), '[{"t": "x"}, {"t": "y", "by": {"_id": 2, "n": "two"}}] []', 'unset inside of an element'); SELECT pg_temp.all_true('unset');
TRUNCATE s;
SELECT is(pg_temp.after('c'), '[{"t": "x"}, {"t": "y"}] []', 'unset and TRUNCATE'); SELECT pg_temp.all_true('truncated'); SELECT pattern_disable('t') \g /dev/null
SELECT pg_temp.rule('keep', 'a') \g /dev/null
SELECT is(pg_temp.after('a'), '{"_id": 1, "n": "one"} {"_id": 2, "n": "two"}', 'keep keeps'); SELECT pg_temp.all_true('keep');
SELECT is((SELECT string_agg(format('%s %s %s', key, id, transactions >= 0), ',') FROM reference_dangling('t')), '1 1 t', 'what dangles is told');
UPDATE t SET doc = bson_set(doc, 'x', 1); SELECT pass('a document with a reference that was kept can be changed');
INSERT INTO s (doc) VALUES ('{_id: 1, n: "again"}');
SELECT is(pg_temp.after('a.n'), 'again two', 'a source that comes back'); SELECT pg_temp.all_true('came back'); SELECT pattern_disable('t') \g /dev/null

-- Missing sources that are allowed
TRUNCATE s, t;
SELECT reference_enable('t', 'a', 's', live => '{n}', frozen => '{f}', missing => 'allow') \g /dev/null
INSERT INTO t (doc) VALUES ('{_id: 1, a: 5}'), ('{_id: 2, a: [5, {_id: 6, n: "as written"}]}');
SELECT is(pg_temp.after('a'), '{"_id": 5} [{"_id": 5}, {"_id": 6, "n": "as written"}]', 'a bare id is expanded, the rest stays');
SELECT is(count(*), 3::bigint, 'reference_dangling') FROM reference_dangling('t', 'a'); SELECT pg_temp.all_true('allowed');
INSERT INTO s (doc) VALUES ('{_id: 5, n: "five", f: 1}');
SELECT is(pg_temp.after('a'), '{"_id": 5, "n": "five", "f": 1} [{"_id": 5, "n": "five", "f": 1}, {"_id": 6, "n": "as written"}]', 'a source that appears fills in');
SELECT pg_temp.all_true('appeared');
SELECT reference_enable('t', 'b', 's', live => '{n}') \g /dev/null
SELECT throws_ok($$UPDATE t SET doc = bson_set(doc, 'b', 6) WHERE _id = 2$$, '23503', NULL, 'one declaration allows it, another does not');
UPDATE t SET doc = bson_set(doc, 'b', 5); SELECT is(pg_temp.after('b'), '{"_id": 5, "n": "five"} {"_id": 5, "n": "five"}', 'but who is there is named in both');
SELECT pg_temp.all_true('in both'); SELECT pattern_disable('t', 'a'), pattern_disable('t', 'b') \g /dev/null

-- Deferred
TRUNCATE s, t;
INSERT INTO s (doc) VALUES ('{_id: 1, n: "one"}'), ('{_id: 2, n: "two"}');
SELECT reference_enable('t', 'a', 's', live => '{n}', refresh => 'deferred', max_staleness => '1 hour') \g /dev/null
INSERT INTO t (doc) VALUES ('{_id: 1, a: 1}'), ('{_id: 2, a: [1, 2]}');
SELECT is_empty($$SELECT * FROM reference_staleness('t')$$, 'nothing lags');
UPDATE s SET doc = bson_set(doc, 'n', 'uno') WHERE _id = 1;
SELECT is(pg_temp.after('a'), '{"_id": 1, "n": "one"} [{"_id": 1, "n": "one"}, {"_id": 2, "n": "two"}]', 'stale');
SELECT results_eq($$SELECT reference, sources, copies, lag < '1 hour' FROM reference_staleness('t')$$, $$VALUES ('a', 1::bigint, 2::bigint, true)$$, 'two copies lag'); SELECT pg_temp.all_true('queued');
INSERT INTO t (doc) VALUES ('{_id: 3, a: 1}');
SELECT is((SELECT doc ->> 'a.n' FROM t WHERE _id = 3), 'uno', 'a new copy is fresh');
SELECT throws_ok('DELETE FROM s WHERE _id = 1', '23503', NULL, 'restrict is immediate');
SELECT is(reference_refresh('t'), 2::bigint, 'two documents were refreshed'); SELECT is(reference_refresh('t'), 0::bigint, 'and no other');
SELECT is(pg_temp.after('a'), '{"_id": 1, "n": "uno"} [{"_id": 1, "n": "uno"}, {"_id": 2, "n": "two"}] {"_id": 1, "n": "uno"}', 'refreshed'); SELECT pg_temp.all_true('refreshed');
SELECT pattern_alter('t', 'a', '{max_staleness: "0 s"}') \g /dev/null
UPDATE s SET doc = bson_set(doc, 'n', 'dos') WHERE _id = 2;
SELECT is((SELECT what FROM pattern_check('t')), 'staleness', 'max_staleness is checked');
SELECT throws_ok($$INSERT INTO t_a_queue (key) VALUES ('1')$$, '55000', NULL, 'the queue is guarded');
SELECT throws_ok($$SELECT pattern_alter('t', 'a', '{field: "b"}')$$, '22023', NULL, 'an option that cannot be changed');
SELECT pattern_alter('t', 'a', '{refresh: "immediate"}') \g /dev/null
SELECT is((SELECT doc ->> 'a.1.n' FROM t WHERE _id = 2), 'dos', 'what was queued is applied'); SELECT hasnt_table('t_a_queue'); SELECT pg_temp.all_true('immediate');
SELECT pattern_alter('t', 'a', '{live: ["n", "m"], on_delete: "unset"}') \g /dev/null
UPDATE s SET doc = bson_set(doc, 'm', 1);
SELECT ok(bool_and(doc @@ '{"a.m": 1}'), 'another live field') FROM t;
DELETE FROM s WHERE _id = 1; SELECT is(pg_temp.after('a._id'), '- - -', 'another rule'); SELECT pg_temp.all_true('altered'); SELECT pattern_disable('t') \g /dev/null

-- Old rows: build and repair
TRUNCATE s, t;
INSERT INTO s (doc) SELECT bson_build('_id', i, 'n', 'n' || i, 'f', i) FROM generate_series(1, 5) i;
INSERT INTO t (doc) SELECT bson_build('_id', i, 'a', CASE WHEN i % 2 = 0 THEN to_bson(i % 5 + 1) ELSE to_bson(bson_build('_id', i % 5 + 1, 'n', 'old')) END) FROM generate_series(1, 20) i;
SELECT results_eq($$SELECT * FROM reference_cost('t', 'a', 's')$$, $$VALUES (5::bigint, 20::bigint, 4::bigint, 4::bigint, 4::bigint)$$, 'reference_cost, before enabling');
SELECT reference_enable('t', 'a', 's', live => '{n}', frozen => '{f}') \g /dev/null
SELECT is(count(*), 20::bigint, 'all are reported') FROM pattern_check('t');
SELECT throws_ok($$CALL pattern_build('t', 'a', 7)$$, '55000', NULL, 'copies that differ from the source');
CALL pattern_build('t', 'a', 7, discard => true);
SELECT pg_temp.all_true('built'); SELECT ok(bool_and(doc ? 'a.f'), 'frozen fields were filled in') FROM t;
SET docpatterns.maintain = off; UPDATE t SET doc = bson_set(doc, 'a.n', 'x') WHERE _id <= 3; DELETE FROM s WHERE _id = 5; RESET docpatterns.maintain;
SELECT is(count(*), 7::bigint, 'three wrong copies, four that dangle') FROM pattern_check('t');
SELECT pattern_alter('t', 'a', '{on_delete: "cascade"}') \g /dev/null
SELECT ok(pattern_repair('t', 'a') > 0, 'repaired'); SELECT pg_temp.all_true('repaired'); SELECT is(count(*), 16::bigint, 'what dangled is gone') FROM t; SELECT pattern_disable('t') \g /dev/null

-- Chains, cycles, and a table that refers to itself
SELECT collection_create('u') \g /dev/null
TRUNCATE s, t;
SELECT reference_enable('s', 'up', 'u', live => '{n}'), reference_enable('t', 'a', 's', live => '{n,up.n}'), reference_enable('u', 'back', 't', live => '{n}', missing => 'allow') \g /dev/null
INSERT INTO u (doc) VALUES ('{_id: 1, n: "top", back: 1}'); INSERT INTO s (doc) VALUES ('{_id: 1, n: "mid", up: 1}'); INSERT INTO t (doc) VALUES ('{_id: 1, n: "low", a: 1}');
UPDATE u SET doc = bson_set(doc, 'n', 'TOP');
SELECT is(pg_temp.after('a'), '{"_id": 1, "n": "mid", "up": {"n": "TOP"}}', 'a chain');
UPDATE t SET doc = bson_set(doc, 'n', 'LOW'); SELECT is((SELECT doc ->> 'back.n' FROM u), 'LOW', 'a cycle of tables ends'); SELECT pg_temp.all_true('chain');
SELECT pattern_disable('t'), pattern_disable('s'), pattern_disable('u') \g /dev/null
TRUNCATE t;
SELECT reference_enable('t', 'boss', 't', live => '{n}') \g /dev/null
INSERT INTO t (doc) VALUES ('{_id: 1, n: "worker", boss: 2}'), ('{_id: 2, n: "boss", boss: 2}');
SELECT is(pg_temp.after('boss.n'), 'boss boss', 'a table that refers to itself, in one statement');
UPDATE t SET doc = bson_set(doc, 'n', 'Boss') WHERE _id = 2; SELECT is(pg_temp.after('boss.n'), 'Boss Boss', 'and a row to itself'); SELECT pg_temp.all_true('self');
SELECT throws_ok('DELETE FROM t WHERE _id = 2', '23503', NULL, 'restrict'); SELECT lives_ok('DELETE FROM t', 'all at once');
DROP TABLE t CASCADE; DROP TABLE u CASCADE; DROP TABLE s CASCADE;

-- Hostile names, other keys, partitions, tables of users
CREATE SCHEMA "W eird";
CREATE TABLE "W eird"."S'rc" (k text, "the ""doc" bson NOT NULL, PRIMARY KEY (k)) PARTITION BY HASH (k);
CREATE TABLE "W eird"."S0" PARTITION OF "W eird"."S'rc" FOR VALUES WITH (MODULUS 2, REMAINDER 0); CREATE TABLE "W eird"."S1" PARTITION OF "W eird"."S'rc" FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE "W eird"."T t" (id int, "d d" bson, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE "W eird"."T0" PARTITION OF "W eird"."T t" FOR VALUES FROM (0) TO (100);
SELECT reference_enable('"W eird"."T t"', '"a.b".c', '"W eird"."S''rc"', id_field => '"i d"', live => '{"\"n.m\"",x}', on_delete => 'cascade', name => 'it''s') \g /dev/null
CREATE TABLE "W eird"."T1" PARTITION OF "W eird"."T t" FOR VALUES FROM (100) TO (200);
INSERT INTO "W eird"."S'rc" VALUES ('k1', '{"n.m": 1}'), ('k2', '{"n.m": 2, x: 3}');
INSERT INTO "W eird"."T t" VALUES (1, '{"a.b": {c: "k1"}}'), (150, '{"a.b": [{c: "k2"}, {c: {"i d": "k1"}}]}'); INSERT INTO "W eird"."T1" VALUES (151, '{"a.b": {c: "k2"}}');
SELECT is((SELECT "d d"::text FROM "W eird"."T t" WHERE id = 150), '{"a.b": [{"c": {"i d": "k2", "n.m": 2, "x": 3}}, {"c": {"i d": "k1", "n.m": 1}}]}', 'hostile names');
UPDATE "W eird"."S'rc" SET "the ""doc" = '{"n.m": 7}';
SELECT is((SELECT string_agg("d d"::text, ' ' ORDER BY id) FROM "W eird"."T t"),
  '{"a.b": {"c": {"i d": "k1", "n.m": 7}}} {"a.b": [{"c": {"i d": "k2", "n.m": 7}}, {"c": {"i d": "k1", "n.m": 7}}]} {"a.b": {"c": {"i d": "k2", "n.m": 7}}}', 'partitions on both sides');
SELECT throws_ok($$INSERT INTO "W eird"."T1" VALUES (152, '{"a.b": {c: "k9"}}')$$, '23503', NULL, 'written to a partition');
UPDATE "W eird"."T t" SET id = 99 WHERE id = 151; UPDATE "W eird"."S'rc" SET k = 'k3' WHERE k = 'k2';
SELECT is((SELECT "d d" -> '"a.b".c."i d"' FROM "W eird"."T t" WHERE id = 99)::text, 'k3', 'rows and keys move');
DELETE FROM "W eird"."S'rc" WHERE k = 'k1'; SELECT is(count(*), 2::bigint, 'cascade') FROM "W eird"."T t"; SELECT pg_temp.all_true('hostile names');
ALTER TABLE "W eird"."T t" RENAME TO renamed; ALTER TABLE "W eird"."S'rc" SET SCHEMA public; ALTER TABLE "S'rc" RENAME COLUMN k TO key;
UPDATE "S'rc" SET "the ""doc" = '{"n.m": 8}'; SELECT is((SELECT "d d" -> '"a.b".c."n.m"' FROM "W eird".renamed WHERE id = 99)::int, 8, 'renamed'); SELECT pg_temp.all_true('renamed');
SELECT throws_ok($$DROP TABLE "S'rc"$$, '2BP01', NULL, 'the source cannot be dropped'); DROP TABLE "S'rc" CASCADE;
SELECT lives_ok($$INSERT INTO "W eird".renamed VALUES (5, '{"a.b": {c: "k9"}}')$$, 'with CASCADE nothing is left behind'); SELECT is_empty('SELECT * FROM pattern_list()', 'no declaration is left');
DROP SCHEMA "W eird" CASCADE;

-- Writers who are not the owner
CREATE ROLE reference_writer; GRANT USAGE, CREATE ON SCHEMA public TO reference_writer;
SELECT collection_create('s'), collection_create('t') \g /dev/null
INSERT INTO s (doc) VALUES ('{_id: 1, n: "one", secret: 1}');
SELECT reference_enable('t', 'a', 's', live => '{n}') \g /dev/null
GRANT SELECT, INSERT, UPDATE ON t TO reference_writer; SET ROLE reference_writer;
SELECT lives_ok($$INSERT INTO t (doc) VALUES ('{_id: 1, a: 1}')$$, 'no right on the source is needed'); SELECT is((SELECT doc::text FROM t), '{"_id": 1, "a": {"_id": 1, "n": "one"}}', 'what is declared is copied, and nothing else');
SELECT throws_ok('SELECT * FROM s', '42501', NULL, 'the source itself stays closed');
SELECT throws_ok($$SELECT reference_cost('t', 'a', 's')$$, '42501', NULL, 'to reference_cost too'); SELECT throws_ok($$SELECT * FROM reference_dangling('t')$$, '42501', NULL, 'reference_dangling is the owner''s');
SELECT throws_ok($$SELECT reference_refresh('t')$$, '42501', NULL, 'reference_refresh too'); SELECT throws_ok($$SELECT * FROM reference_staleness('t')$$, '42501', NULL, 'reference_staleness too');
CREATE TABLE mine (id int PRIMARY KEY, doc bson); SELECT throws_ok($$SELECT reference_enable('mine', 'a', 's', live => '{secret}')$$, '42501', NULL, 'a declaration needs both tables'); DROP TABLE mine;
RESET ROLE; DROP TABLE s, t CASCADE; REVOKE ALL ON SCHEMA public FROM reference_writer; DROP ROLE reference_writer;
SELECT * FROM finish();
