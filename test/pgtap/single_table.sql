-- The contract of single tables: what is refused and how, templates and what they escape, conditions, cursors and expiry at
-- their boundaries, who may do what, hostile names, and a seeded random run beside a plain model.
SET client_min_messages = warning;
SET timezone = 'UTC';
\pset fieldsep '\n'
SELECT plan(229);
CREATE FUNCTION pg_temp.all_true(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;
CREATE FUNCTION pg_temp.keys(rel regclass, pk text, b text DEFAULT NULL, btw text[] DEFAULT NULL, op text DEFAULT NULL, k text DEFAULT NULL, i int DEFAULT NULL, d bool DEFAULT false, n int DEFAULT NULL, a bson DEFAULT NULL) RETURNS text LANGUAGE sql AS
$$ SELECT coalesce(string_agg(q ->> 'SK', ' '), '') FROM single_table_query(rel, pk, b, btw, op, k, i, d, n, a) q $$;

-- Signatures
SELECT function_returns(f, r, f || ' returns ' || r) FROM (VALUES ('single_table_create', 'regclass'), ('single_table_entity', 'regclass'), ('single_table_put', 'bson'), ('single_table_get', 'bson'), ('single_table_update', 'bson'),
  ('single_table_delete', 'bson'), ('single_table_query', 'setof bson'), ('single_table_transact', 'integer'), ('single_table_batch_write', 'integer'), ('single_table_batch_get', 'setof bson'), ('single_table_purge', 'bigint'), ('single_table_key', 'bson')) AS v (f, r);
SELECT volatility_is(f, v, f || ' is ' || v) FROM (VALUES ('single_table_query', 'stable'), ('single_table_get', 'stable'), ('single_table_key', 'stable'), ('single_table_put', 'volatile'), ('single_table_update', 'volatile')) AS w (f, v);

-- Refused
SELECT collection_create('plain') \g /dev/null
SELECT throws_ok(c, state, NULL, c) FROM (VALUES
  ('SELECT single_table_create(NULL)', '22004'), ('SELECT single_table_create(''a.b.c'')', '42602'), ('SELECT single_table_create(''t'', 6)', '22023'), ('SELECT single_table_create(''t'', -1)', '22023'),
  ('SELECT single_table_create(''t'', ttl_field => ''a..b'')', '22023'), ('SELECT single_table_create(''plain'')', '42P07'),
  ('SELECT single_table_entity(''plain'', ''e'', ''a'', ''b'')', '42809'), ('SELECT single_table_put(''plain'', NULL, ''{}'')', '42809'), ('SELECT single_table_query(''plain'', ''a'')', '42809')) AS v (c, state);
SELECT is(single_table_create('t', 2, 'ttl')::text, 't', 'the table is returned');
SELECT throws_ok(format('SELECT single_table_entity(''t'', %s)', args), state, NULL, args) FROM (VALUES
  ($$NULL, 'a', 'b'$$, '22004'), ($$'e', NULL, 'b'$$, '22004'), ($$'', 'a', 'b'$$, '22023'), ($$'e', '', 'b'$$, '22023'), ($$'e', '{a', 'b'$$, '22023'), ($$'e', 'a}', 'b'$$, '22023'), ($$'e', '{}', 'b'$$, '22023'), ($$'e', '{a..b}', 'b'$$, '22023'),
  ($$'e', '{a}{b}', 'b'$$, '22023'), ($$'e', '{a}x{b}', 'b'$$, '22023'), ($$'e', '{a}x', 'b'$$, '22023'), ($$'e', '{a:00}', 'b'$$, '22023'), ($$'e', '{a:099}', 'b'$$, '22023'), ($$'e', '{a:035}', 'b'$$, '22023'),
  ($$'e', '{a}', 'b', gsi3_pk => 'x'$$, '22023'), ($$'e', '{a}', 'b', gsi1_sk => 'x'$$, '22023'), ($$'e', '{a}', 'b', view_name => 'plain'$$, '42P07')) AS v (args, state);
SELECT single_table_entity('t', 'user', 'USER#{id}', 'PROFILE', gsi1_pk => 'MAIL#{mail}'), single_table_entity('t', 'order', 'USER#{id}', 'ORDER#{n:06}', gsi1_pk => 'STATUS#{status}', gsi1_sk => '{at}', gsi2_pk => '{{{shop}}}'),
       single_table_entity('t', 'line', 'ORDER#{order.n}', 'LINE#{a}|{b}') \g /dev/null
SELECT throws_ok(c, state, NULL, c) FROM (VALUES
  ($$SELECT single_table_put('t', 'nobody', '{id: 1}')$$, '42704'), ($$SELECT single_table_put('t', 'user', NULL)$$, '22004'), ($$SELECT single_table_put('t', 'user', '{}')$$, '23502'), ($$SELECT single_table_put('t', 'user', '{id: null}')$$, '23502'),
  ($$SELECT single_table_put('t', 'user', '{id: ""}')$$, '23514'), ($$SELECT single_table_put('t', 'user', '{id: [1]}')$$, '23514'), ($$SELECT single_table_put('t', 'user', '{id: {"$numberDouble": "NaN"}}')$$, '23514'), ($$SELECT single_table_put('t', 'user', '{id: "a\u0000b"}')$$, '23514'),
  ($$SELECT single_table_put('t', 'order', '{id: 1, n: -1}')$$, '23514'), ($$SELECT single_table_put('t', 'order', '{id: 1, n: 1.5}')$$, '23514'), ($$SELECT single_table_put('t', 'order', '{id: 1, n: 1000000}')$$, '23514'), ($$SELECT single_table_put('t', 'order', '{id: 1, n: "x"}')$$, '23514'),
  ($$SELECT single_table_put('t', NULL, '{PK: "a"}')$$, '23502'), ($$SELECT single_table_put('t', NULL, '{PK: "a", SK: ""}')$$, '23514'), ($$SELECT single_table_put('t', NULL, '{PK: "a", SK: 1}')$$, '23514'), ($$INSERT INTO t (doc) VALUES ('{entity: "unknown"}')$$, '23502'),
  ($$INSERT INTO t (pk, sk, doc) VALUES ('a', 'b', '{x: 1}')$$, '23502')) AS v (c, state);
SELECT throws_ok(format('SELECT single_table_query(%s)', args), state, NULL, args) FROM (VALUES
  ($$'t', NULL$$, '22004'), ($$NULL, 'a'$$, '22004'), ($$'t', 'a', index => 3$$, '22023'), ($$'t', 'a', index => 0$$, '22023'), ($$'t', 'a', take => -1$$, '22023'), ($$'t', 'a', sk_begins_with => 'a', sk => 'b'$$, '22023'), ($$'t', 'a', sk_between => '{a}'$$, '22023'),
  ($$'t', 'a', sk_between => '{a,NULL}'$$, '22023'), ($$'t', 'a', sk_op => '<>', sk => 'a'$$, '22023'), ($$'t', 'a', sk_op => '<'$$, '22023'), ($$'t', 'a', after => '{}'$$, '22023'), ($$'t', 'a', filter => '{a: {$nope: 1}}'$$, '0A000')) AS v (args, state);
SELECT throws_ok(format('SELECT single_table_transact(''t'', %L)', ops), '22023', NULL, ops) FROM unnest(ARRAY['5', '[5]', '[{}]', '[{put: 1}]', '[{put: {}, delete: {}}]', '[{nope: {}}]', '[{put: {doc: 5}}]', '[{put: {doc: {PK: "a", SK: "b"}, x: 1}}]', '[{delete: {PK: "a"}}]', '[{update: {PK: "a", SK: "b"}}]', '[{check: {PK: "a", SK: "b"}}]']) ops;
SELECT is((SELECT count(*) FROM t), 0::bigint, 'nothing was written');

-- Templates: what is computed and read back
SELECT is(single_table_key('t', e, d::bson)::text, k, e || ' ' || d) FROM (VALUES
  ('user', '{id: 5}', '{"PK": "USER#5", "SK": "PROFILE"}'), ('user', '{id: 5.0}', '{"PK": "USER#5", "SK": "PROFILE"}'), ('user', '{id: -2.50}', '{"PK": "USER#-2.5", "SK": "PROFILE"}'), ('user', '{id: 1e20}', '{"PK": "USER#100000000000000000000", "SK": "PROFILE"}'),
  ('user', '{id: true}', '{"PK": "USER#true", "SK": "PROFILE"}'), ('user', '{id: ISODate("2024-01-02T03:04:05Z")}', '{"PK": "USER#2024-01-02T03:04:05Z", "SK": "PROFILE"}'), ('user', '{id: ObjectId("507f191e810c19729de860ea")}', '{"PK": "USER#507f191e810c19729de860ea", "SK": "PROFILE"}'),
  ('user', '{id: UUID("11111111-1111-1111-1111-111111111111")}', '{"PK": "USER#11111111-1111-1111-1111-111111111111", "SK": "PROFILE"}'), ('user', '{id: "æ#%|"}', '{"PK": "USER#æ%23%25|", "SK": "PROFILE"}'), ('line', '{order: {n: 7}, a: "x|y", b: "#"}', '{"PK": "ORDER#7", "SK": "LINE#x%7Cy|%23"}'),
  ('order', '{id: "x", n: 42}', '{"PK": "USER#x", "SK": "ORDER#000042"}')) AS v (e, d, k);
INSERT INTO t (doc) VALUES ('{PK: "ORDER#7", SK: "LINE#x%7Cy|%23"}'), ('{PK: "USER#a", SK: "ORDER#000042"}'), ('{PK: "USER#a", SK: "ORDER#42"}'), ('{PK: "ORDER#8", SK: "LINE#a%7"}');
SELECT is((SELECT bson_unset(doc, 'PK', 'SK')::text FROM t WHERE pk = 'ORDER#7'), '{"entity": "line", "order": {"n": "7"}, "a": "x|y", "b": "#"}', 'fields are read from keys');
SELECT is((SELECT doc -> 'n' FROM t WHERE sk = 'ORDER#000042'), '42'::bson_value, 'digits become a number again');
SELECT is((SELECT string_agg(sk, ' ' ORDER BY sk) FROM t WHERE entity IS NULL), 'LINE#a%7 ORDER#42', 'keys that no template makes are an item''s own');
SELECT is(single_table_put('t', 'order', '{PK: "USER#zz", SK: "ORDER#000001", id: "b", n: 2, shop: "s"}')::text, '{"PK": "USER#b", "SK": "ORDER#000002", "GSI2PK": "{s}", "entity": "order", "id": "b", "n": 2, "shop": "s"}', 'fields win over keys');
SELECT is((SELECT doc::text FROM t WHERE pk = 'USER#b'), '{"PK": "USER#b", "SK": "ORDER#000002", "GSI2PK": "{s}", "entity": "order", "id": "b", "n": 2, "shop": "s"}', 'this is what is stored');
UPDATE t SET doc = bson_unset(doc, 'shop', 'entity', 'PK'), pk = 'other' WHERE pk = 'USER#b';
SELECT is((SELECT doc::text FROM t WHERE pk = 'USER#b'), '{"PK": "USER#b", "SK": "ORDER#000002", "entity": "order", "id": "b", "n": 2}', 'keys are put back, an index key without its field goes');
SELECT ctid AS was FROM t WHERE pk = 'USER#b' \gset
SELECT single_table_update('t', 'USER#b', 'ORDER#000002', '{$set: {n: 2}}') IS NOT NULL AS done \gset
SELECT is((SELECT ctid::text FROM t WHERE pk = 'USER#b'), :'was', 'an update that changes nothing writes nothing');
SELECT pg_temp.all_true('templates');
DELETE FROM t;

-- Queries
INSERT INTO t (doc) SELECT bson_build('entity', 'order', 'id', 1, 'n', i, 'status', CASE WHEN i % 2 = 0 THEN 'even' END, 'at', i % 6) FROM generate_series(1, 12) i;
INSERT INTO t (doc) SELECT bson_build('PK', 'b', 'SK', k) FROM unnest(ARRAY['a', 'ab', 'abc', 'b', 'B', 'é', 'ab' || U&'\+10FFFF', 'ac']) k;
SELECT is(pg_temp.keys('t', 'b'), 'B a ab abc ab' || U&'\+10FFFF' || ' ac b é', 'sort keys go by bytes');
SELECT is(pg_temp.keys('t', 'b', b => 'ab'), 'ab abc ab' || U&'\+10FFFF', 'begins_with');
SELECT is(pg_temp.keys('t', 'b', b => ''), pg_temp.keys('t', 'b'), 'all begin with nothing');
SELECT is(pg_temp.keys('t', 'b', b => 'é'), 'é', 'begins_with a letter of two bytes');
SELECT is(pg_temp.keys('t', 'b', btw => '{ab,b}'), 'ab abc ab' || U&'\+10FFFF' || ' ac b', 'between has both ends');
SELECT is(pg_temp.keys('t', 'b', btw => '{b,a}'), '', 'nothing is between the wrong ends');
SELECT is(pg_temp.keys('t', 'b', op => o, k => 'ab'), e, 'sk ' || o) FROM (VALUES ('=', 'ab'), ('<', 'B a'), ('<=', 'B a ab'), ('>', 'abc ab' || U&'\+10FFFF' || ' ac b é'), ('>=', 'ab abc ab' || U&'\+10FFFF' || ' ac b é')) AS v (o, e);
SELECT is(pg_temp.keys('t', 'b', d => true, n => 3), 'é b ac', 'descending, three of them');
SELECT is(pg_temp.keys('t', 'b', n => 0), '', 'take 0');
SELECT is(pg_temp.keys('t', 'b', b => 'a', n => 2, a => '{PK: "b", SK: "ab"}'), 'abc ab' || U&'\+10FFFF', 'after an item, within a range');
SELECT is(pg_temp.keys('t', 'b', btw => '{ab,b}', d => true, a => '{PK: "b", SK: "ac"}'), 'ab' || U&'\+10FFFF' || ' abc ab', 'after an item, backwards');
-- a cursor goes on where it was, whatever happens to the item that it names
CREATE FUNCTION pg_temp.pages(descends bool) RETURNS text LANGUAGE plpgsql AS $$
DECLARE page bson[]; cursor_ bson; result text[] := '{}';
BEGIN
  LOOP
    page := ARRAY(SELECT q FROM single_table_query('t', 'STATUS#even', index => 1, take => 2, after => cursor_, descending => descends) q);
    EXIT WHEN cardinality(page) = 0;
    cursor_ := page[cardinality(page)];
    result := result || ARRAY(SELECT p ->> 'n' FROM unnest(page) p);
    PERFORM single_table_put('t', 'order', bson_build('id', 2, 'n', 100 + cardinality(result), 'status', 'even', 'at', CASE WHEN descends THEN 9 ELSE -1 END));
    DELETE FROM t WHERE doc -> 'n' = cursor_ -> 'n';
  END LOOP;
  RETURN array_to_string(result, ' ');
END $$;
BEGIN;
SELECT is(pg_temp.pages(false), '6 12 2 8 4 10', 'pages of an index with equal sort keys, while items come before them and go');
ROLLBACK;
SELECT is(pg_temp.pages(true), '10 4 8 2 12 6', 'and backwards');
SELECT is((SELECT count(*) FROM single_table_query('t', 'USER#1', filter => '{at: {$gt: 2}}', take => 2)), 2::bigint, 'take counts what matches');
SELECT pg_temp.all_true('queries');
DELETE FROM t;

-- What writes return
SELECT is(single_table_put('t', 'user', '{id: "r", a: {b: 1, c: 1}, l: [1, 2], n: 1}', return_values => 'all_old'), NULL, 'nothing was there'), is(single_table_put('t', 'user', '{id: "r", n: 2}', return_values => 'none'), NULL, 'nothing is wanted');
SELECT is(single_table_put('t', 'user', '{id: "r", a: {b: 1, c: 1}, l: [1, 2], n: 3}', return_values => 'ALL_OLD', condition => '{n: 2}')::text, '{"PK": "USER#r", "SK": "PROFILE", "entity": "user", "id": "r", "n": 2}', 'what was replaced, under a condition');
SELECT is(single_table_update('t', 'USER#r', 'PROFILE', '{$inc: {n: 1}, $set: {"a.b": 1, new: true}, $unset: {no: 1}}', return_values => 'updated_old')::text, '{"a": {"b": 1}, "n": 3}', 'what the update names, before'),
       is(single_table_update('t', 'USER#r', 'PROFILE', '{$inc: {n: 1}, $set: {"a.b": 1}}', return_values => 'updated_new')::text, '{"a": {"b": 1}, "n": 5}', 'and after, also what it does not change'),
       is(single_table_update('t', 'USER#r', 'PROFILE', '{$set: {"l.0": 5}}', return_values => 'updated_new')::text, '{"l": [5, 2]}', 'an element: its array'), is(single_table_update('t', 'USER#r', 'PROFILE', '{$inc: {"l.$[e]": 1}}', array_filters => '[{e: 2}]', return_values => 'updated_old')::text, '{"l": [5, 2]}', 'so does one that is filtered'),
       is(single_table_update('t', 'USER#r', 'PROFILE', '{$rename: {new: "newer"}}', return_values => 'updated_new')::text, '{"newer": true}', 'a new name'), is(single_table_update('t', 'USER#r', 'PROFILE', '{$set: {}}', return_values => 'updated_new')::text, '{}', 'nothing is named'),
       is(single_table_update('t', 'USER#r', 'PROFILE', '{$set: {n: 0}}', return_values => 'none'), NULL, 'none'), is(single_table_update('t', 'USER#r', 'PROFILE', '{$set: {n: 1}}', return_values => 'all_old') ->> 'n', '0', 'the item before'), is(single_table_update('t', 'USER#r', 'PROFILE', '{$set: {n: 2}}', return_values => 'all_new') ->> 'n', '2', 'the item after'),
       is(single_table_update('t', 'USER#r', 'PROFILE', '{$set: {_id: 7}}', return_values => 'updated_new')::text, '{"_id": 7}', 'the _id'), is(single_table_update('t', 'USER#r', 'PROFILE', '{$set: {n: 3}}', return_values => 'updated_new')::text, '{"n": 3}', 'which is not there unless it is named');
SELECT is(single_table_update('t', 'USER#no', 'PROFILE', '{$set: {n: 1}}', return_values => v), NULL, v || ' of no item') FROM unnest(ARRAY['all_old', 'all_new', 'updated_old', 'updated_new']) v;
SELECT is(single_table_update('t', 'USER#up1', 'PROFILE', '{$set: {n: 1}}', upsert => true, return_values => 'updated_old'), NULL, 'nothing before an upsert'), is(single_table_update('t', 'USER#up2', 'PROFILE', '{$set: {n: 1}}', upsert => true, return_values => 'updated_new')::text, '{"n": 1}', 'what it sets');
SELECT is(single_table_delete('t', 'USER#up1', 'PROFILE', return_values => 'none'), NULL, 'a silent delete'), is(single_table_delete('t', 'USER#up1', 'PROFILE'), NULL, 'has deleted'), is(single_table_delete('t', 'USER#up2', 'PROFILE', return_values => 'all_old') ->> 'n', '1', 'what is deleted');
SELECT throws_ok(c, '22023', NULL, c) FROM unnest(ARRAY[$$SELECT single_table_put('t', 'user', '{id: 1}', return_values => 'updated_new')$$, $$SELECT single_table_put('t', 'user', '{id: 1}', return_values => NULL)$$, $$SELECT single_table_delete('t', 'a', 'b', return_values => 'all_new')$$, $$SELECT single_table_update('t', 'a', 'b', '{$set: {a: 1}}', return_values => 'some')$$,
  $$SELECT single_table_update('t', 'USER#r', 'PROFILE', '{id: "r"}', return_values => 'updated_old')$$, $$SELECT single_table_query('t', 'a', count_only => true, fields => '{a: 1}')$$]) c;
SELECT is(single_table_query('t', 'USER#r', count_only => true)::text, '{"count": 1}', 'a count'), is(single_table_query('t', 'USER#no', count_only => true)::text, '{"count": 0}', 'of nothing'), is(single_table_query('t', 'USER#r', count_only => true, take => 0)::text, '{"count": 0}', 'of as many as wanted'), is(single_table_query('t', 'USER#r', count_only => true, filter => '{n: 5}')::text, '{"count": 0}', 'of those that match');

-- Batches
SELECT is(single_table_batch_write('t', '[{put: {entity: "user", doc: {id: "b1"}}}, {put: {doc: {PK: "USER#b2", SK: "PROFILE", n: 1}}}, {delete: {PK: "USER#r", SK: "PROFILE"}}, {delete: {PK: "USER#no", SK: "PROFILE"}}]'), 4, 'puts and deletes'), is(single_table_batch_write('t', '[]'), 0, 'none');
SELECT is((SELECT string_agg(pk || coalesce(' ' || (doc ->> 'n'), ''), ', ' ORDER BY pk) FROM t), 'USER#b1, USER#b2 1', 'are done');
SELECT throws_ok(format('SELECT single_table_batch_write(''t'', %L)', ops), state, NULL, ops) FROM (VALUES ('[{update: {PK: "USER#b1", SK: "PROFILE", update: {$set: {a: 1}}}}]', '22023'), ('[{check: {PK: "USER#b1", SK: "PROFILE", condition: {}}}]', '22023'), ('[{delete: {PK: "USER#b1", SK: "PROFILE", condition: {}}}]', '22023'), ('[{put: {entity: "user", doc: {id: 1}, condition: {}}}]', '22023'), ('5', '22023'),
  ('[{delete: {PK: "USER#b1", SK: "PROFILE"}}, {put: {entity: "user", doc: {id: "b1"}}}]', '22023'), ('[{delete: {PK: "USER#b1", SK: "PROFILE"}}, {put: {entity: "user", doc: {}}}]', '23502'), ('[{delete: {PK: "USER#b1", SK: "PROFILE"}}, {put: {entity: "no", doc: {}}}]', '42704')) AS v (ops, state);
SELECT is((SELECT count(*) FROM t), 2::bigint, 'all or none');
SELECT pg_temp.all_true('batches');
DELETE FROM t;

-- Expiry at its boundaries
CREATE FUNCTION pg_temp.at(i interval) RETURNS bson_value LANGUAGE sql AS $$ SELECT to_bson(clock_timestamp() + i) $$;
INSERT INTO t (doc) VALUES ('{entity: "user", id: "never"}'), ('{entity: "user", id: "text", ttl: "yesterday"}'), ('{entity: "user", id: "nan", ttl: NaN}'), ('{entity: "user", id: "far", ttl: 1e300}'), ('{entity: "user", id: "zero", ttl: 0}'), ('{entity: "user", id: "long ago", ttl: -1e300}'),
  ('{entity: "user", id: "date", ttl: ISODate("2001-01-01")}'), ('{entity: "user", id: "null", ttl: null}'), (bson_build('entity', 'user', 'id', 'soon', 'ttl', pg_temp.at('1 hour'))), (bson_build('entity', 'user', 'id', 'gone', 'ttl', pg_temp.at('-1 ms')));
SELECT is((SELECT string_agg(doc ->> 'id', ' ' ORDER BY pk) FROM t_user), 'far nan never null soon text', 'the view shows what has not expired');
SELECT is((SELECT count(*) FROM unnest(ARRAY['zero', 'long ago', 'date', 'gone']) u WHERE single_table_get('t', 'USER#' || u, 'PROFILE') IS NOT NULL), 0::bigint, 'nor does get bring it');
SELECT is((SELECT count(*) FROM single_table_query('t', 'USER#gone')) + (SELECT count(*) FROM single_table_batch_get('t', '[{PK: "USER#gone", SK: "PROFILE"}]')), 0::bigint, 'nor a query');
SELECT is(single_table_update('t', 'USER#gone', 'PROFILE', '{$set: {x: 1}}'), NULL, 'an update does not find it');
SELECT lives_ok($$SELECT single_table_put('t', 'user', '{id: "zero", x: 1}', condition => '{PK: {$exists: false}}')$$, 'a condition holds as if it were not there');
SELECT is(single_table_update('t', 'USER#date', 'PROFILE', '{$set: {x: 1}}', upsert => true)::text, '{"PK": "USER#date", "SK": "PROFILE", "entity": "user", "x": 1, "id": "date"}', 'an upsert begins anew');
SELECT is(single_table_delete('t', 'USER#long ago', 'PROFILE'), NULL, 'delete returns nothing, and takes the row');
SELECT is(single_table_purge('t', 5), 1::bigint, 'what is left is purged');
SELECT is(single_table_purge('t'), 0::bigint, 'once');
SELECT is((SELECT count(*) FROM t), 8::bigint, 'the others stay');
SELECT single_table_put('t', 'user', bson_build('id', 'short', 'ttl', pg_temp.at('150 ms'))) IS NOT NULL AS put \gset
SELECT ok(single_table_get('t', 'USER#short', 'PROFILE') IS NOT NULL OR (SELECT (doc ->> 'ttl')::timestamptz < clock_timestamp() FROM t WHERE pk = 'USER#short'),
  'before its time it is there');
DO $$ BEGIN PERFORM pg_sleep(0.2); IF single_table_get('t', 'USER#short', 'PROFILE') IS NOT NULL THEN RAISE 'still there'; END IF; END $$;
SELECT is(single_table_get('t', 'USER#short', 'PROFILE'), NULL, 'and not afterwards, in the same transaction either');
SELECT pg_temp.all_true('expiry');
DELETE FROM t;

-- Other patterns beside it, and its rows as a source
SELECT query_table_create('t_shops', 't', '{shop}', fields => '{id: 1, n: 1}'), outlier_enable('t', field => 'tags', threshold => 2), change_feed_enable('t') \g /dev/null
SELECT single_table_put('t', 'order', '{id: 1, n: 1, shop: "s", tags: [1, 2, 3]}') IS NOT NULL AS put \gset
SELECT is((SELECT concat_ws(' ', shop, id, n, source_key1, source_key2) FROM t_shops), '"s" 1 1 USER#1 ORDER#000001', 'a query table of a single table');
SELECT ok((SELECT doc @@ '{tags: {$size: 2}}' FROM t), 'and an outlier');
UPDATE t SET doc = bson_set(doc, 'n', 2);
SELECT is((SELECT concat_ws(' ', n, source_key2) FROM t_shops), '2 ORDER#000002', 'a new key reaches both');
SELECT is((SELECT outlier_count('t', ROW('USER#1', 'ORDER#000002'))), 3::bigint, 'none is lost');
SELECT is((SELECT string_agg(concat_ws(' ', f.operation, f.key), ', ' ORDER BY f.position) FROM (SELECT operation, key, max(position) AS position FROM change_feed_read('t') GROUP BY 1, 2) f),
  'insert ["USER#1", "ORDER#000001"], update ["USER#1", "ORDER#000001"], delete ["USER#1", "ORDER#000001"], insert ["USER#1", "ORDER#000002"]', 'its changes are in the feed');
SELECT pg_temp.all_true('patterns together');
SELECT pattern_disable('t', 't_shops'), pattern_disable('t', 'tags'), pattern_disable('t', 'feed') \g /dev/null
DELETE FROM t;

-- Hostile names
CREATE SCHEMA "W eird"";";
SELECT is(single_table_create('"W eird"";"."T t''"', 1, '"t.t"')::text, '"W eird"";"."T t''"', 'hostile names of a table and its fields');
SELECT is(single_table_entity('"W eird"";"."T t''"', 'E''n"; --', 'X{{#{"a.b".c}#{d''d}', 'S')::text, '"W eird"";"."T t''_E''n""; --"', 'and of an entity');
INSERT INTO "W eird"";"."T t'_E'n""; --" (doc) VALUES ('{"a.b": {c: 1}, "d''d": 2}');
SELECT is((SELECT doc::text FROM "W eird"";"."T t'"), '{"PK": "X{#1#2", "SK": "S", "entity": "E''n\"; --", "a.b": {"c": 1}, "d''d": 2}', 'its item');
SELECT is(single_table_transact('"W eird"";"."T t''"', '[{"update": {"PK": "X{#1#2", "SK": "S", "update": {"$set": {"x": 1}}}}]'), 1, 'a transaction');
SELECT pg_temp.all_true('hostile names');
ALTER TABLE "W eird"";"."T t'" RENAME COLUMN doc TO "D d";
ALTER TABLE "W eird"";"."T t'" SET SCHEMA public;
ALTER VIEW "W eird"";"."T t'_E'n""; --" RENAME TO v;
SELECT is(single_table_get('"T t''"', 'X{#1#2', 'S', '{x: 1}')::text, '{"x": 1}', 'another name of the column, another schema');
SELECT is(single_table_entity('"T t''"', 'E''n"; --', 'Y#{"a.b".c}', 'S')::text, '"W eird"";".v', 'the view is known under its new name');
SELECT is((SELECT pk FROM "W eird"";".v), 'Y#1', 'the item has moved');
SELECT pattern_disable('"T t''"') IS NOT NULL AS done \gset
SELECT hasnt_view('W eird";', 'v', 'the view goes with the pattern');
DROP TABLE "T t'"; DROP SCHEMA "W eird"";";

-- Who may do what
CREATE ROLE single_table_owner; CREATE ROLE single_table_user;
SELECT ok(count(*) > 0, 'there are views of entities') FROM docpatterns._single_table_views('t');
CREATE SCHEMA somebody AUTHORIZATION single_table_user; SET ROLE single_table_user;
CREATE VIEW somebody.user_2 WITH (security_invoker = true) AS SELECT t.pk, t.sk, t.entity, t.doc FROM t WHERE t.entity = 'user' WITH LOCAL CHECK OPTION; ALTER VIEW somebody.user_2 ALTER COLUMN entity SET DEFAULT 'user'; RESET ROLE;
ALTER TABLE t OWNER TO single_table_owner;
SELECT is_empty($$SELECT v.view FROM docpatterns._single_table_views('t') v JOIN pg_class c ON c.oid = v.view WHERE c.relowner <> 'single_table_owner'::regrole$$, 'they follow to a new owner');
SELECT is((SELECT viewowner::text FROM pg_views WHERE schemaname = 'somebody'), 'single_table_user', 'one that somebody else has made like them does not');
INSERT INTO t (doc) VALUES ('{entity: "user", id: 1, of: "single_table_user"}'), ('{entity: "user", id: 2, of: "somebody"}');
SET ROLE single_table_user;
SELECT throws_ok(c, '42501', NULL, c) FROM unnest(ARRAY[$$SELECT single_table_get('t', 'USER#1', 'PROFILE')$$, $$SELECT single_table_query('t', 'USER#1')$$, $$SELECT single_table_put('t', 'user', '{id: 3}')$$, $$SELECT single_table_delete('t', 'USER#1', 'PROFILE')$$,
  $$SELECT single_table_purge('t')$$, $$SELECT single_table_entity('t', 'x', 'a', 'b')$$, $$SELECT pattern_repair('t')$$, $$SELECT * FROM t_user$$]) c;
RESET ROLE;
GRANT SELECT, INSERT, UPDATE ON t TO single_table_user;
GRANT SELECT, INSERT, UPDATE ON t_user TO single_table_user;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON t USING (doc ->> 'of' = current_user);
SET ROLE single_table_user;
SELECT is((SELECT string_agg(pk, ' ') FROM t_user), 'USER#1', 'row-level security holds in views');
SELECT ok(single_table_get('t', 'USER#2', 'PROFILE') IS NULL AND single_table_get('t', 'USER#1', 'PROFILE') IS NOT NULL, 'and in calls');
SELECT throws_ok($$SELECT single_table_put('t', 'user', '{id: 2, of: "single_table_user"}')$$, '42501', NULL, 'also for who puts');
SELECT lives_ok($$SELECT single_table_put('t', 'user', '{id: 4, of: "single_table_user"}', condition => '{PK: {$exists: false}}')$$, 'what is granted works');
RESET ROLE;
DROP TABLE t CASCADE; DROP TABLE plain; DROP SCHEMA somebody;
DROP ROLE single_table_owner; DROP ROLE single_table_user;

-- A seeded random run beside a plain model
SELECT setseed(0.2303);
SELECT diag('seed 0.2303');
SELECT single_table_create('r', 1) \g /dev/null
SELECT single_table_entity('r', 'x', 'X#{a}', '{b}#{c}', gsi1_pk => 'G#{g}', gsi1_sk => '{h}') \g /dev/null
CREATE TABLE model (a text, b text, c text, g text, h text, n int, PRIMARY KEY (a, b, c));
DO $$
DECLARE
  v text[];
  k bson;
  parts text[] := ARRAY['a', '#', '%', '%23', 'a#b', '##', 'x|y', 'é', ' ', '{', 'A'];
BEGIN
  FOR i IN 1 .. 600 LOOP
    v := ARRAY(SELECT parts[1 + (random() * 10)::int] FROM generate_series(1, 5));
    CASE (random() * 4)::int
      WHEN 0, 1 THEN
        PERFORM single_table_put('r', 'x', bson_build('a', v[1], 'b', v[2], 'c', v[3], 'g', v[4], 'h', v[5], 'n', i));
        INSERT INTO model VALUES (v[1], v[2], v[3], v[4], v[5], i) ON CONFLICT (a, b, c) DO UPDATE SET g = EXCLUDED.g, h = EXCLUDED.h, n = EXCLUDED.n;
      WHEN 2 THEN
        k := single_table_key('r', 'x', bson_build('a', v[1], 'b', v[2], 'c', v[3]));
        PERFORM single_table_update('r', k ->> 'PK', k ->> 'SK', bson_build('$set', bson_build('g', v[4], 'n', i)));
        UPDATE model SET g = v[4], n = i WHERE (a, b, c) = (v[1], v[2], v[3]);
      WHEN 3 THEN
        UPDATE r SET doc = bson_unset(doc, 'g') WHERE doc ->> 'a' = v[1] AND (doc -> 'n')::int % 7 = 0;
        UPDATE model SET g = NULL WHERE a = v[1] AND n % 7 = 0;
      ELSE
        k := single_table_key('r', 'x', bson_build('a', v[1], 'b', v[2], 'c', v[3]));
        PERFORM single_table_delete('r', k ->> 'PK', k ->> 'SK', condition => '{n: {$mod: [2, 0]}}') WHERE EXISTS (SELECT FROM r WHERE doc ->> 'a' = v[1] AND doc ->> 'b' = v[2] AND doc ->> 'c' = v[3] AND (doc -> 'n')::int % 2 = 0);
        DELETE FROM model WHERE (a, b, c) = (v[1], v[2], v[3]) AND n % 2 = 0;
    END CASE;
  END LOOP;
END $$;
SELECT cmp_ok((SELECT count(*) FROM model), '>', 100::bigint, 'items are left');
SELECT is_empty($$SELECT * FROM r FULL JOIN model ON (a, b, c) = (doc ->> 'a', doc ->> 'b', doc ->> 'c') WHERE (n, g, h) IS DISTINCT FROM ((doc -> 'n')::int, doc ->> 'g', doc ->> 'h')$$, 'the same as the model');
SELECT is((SELECT count(DISTINCT (pk, sk)) FROM r), (SELECT count(*) FROM model), 'no two items have the same keys');
SELECT is_empty($$SELECT m.g FROM (SELECT DISTINCT g FROM model WHERE g IS NOT NULL) m WHERE (SELECT count(*) FROM single_table_query('r', (SELECT gsi1_pk FROM r WHERE doc ->> 'g' = m.g LIMIT 1), index => 1)) <> (SELECT count(*) FROM model WHERE g = m.g)$$, 'the index holds what it should');
-- keys alone tell the fields
CREATE TABLE read_back AS SELECT pk, sk, doc FROM r;
DELETE FROM r;
INSERT INTO r (doc) SELECT bson_build('PK', pk, 'SK', sk) FROM read_back;
SELECT is_empty($$SELECT * FROM r JOIN read_back b USING (pk, sk) WHERE (r.doc ->> 'a', r.doc ->> 'b', r.doc ->> 'c') IS DISTINCT FROM (b.doc ->> 'a', b.doc ->> 'b', b.doc ->> 'c')$$, 'fields are read back from any key');
SELECT pg_temp.all_true('the random run');
DROP TABLE r CASCADE; DROP TABLE model, read_back;

-- What the user's own triggers do to items: suppress them, empty them
SELECT single_table_create('s', ttl_field => 'ttl') \g /dev/null
SELECT single_table_entity('s', 'x', 'X#{a}', 'S') \g /dev/null
CREATE FUNCTION pg_temp.suppress() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION pg_temp.empty() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.doc := NULL; RETURN NEW; END';
CREATE TRIGGER mine BEFORE INSERT OR UPDATE ON s FOR EACH ROW EXECUTE FUNCTION pg_temp.suppress();
SELECT throws_ok($$SELECT single_table_put('s', 'x', '{a: 1}')$$, '40001', NULL, 'an item that a trigger suppresses is not put');
SELECT throws_ok($$SELECT single_table_put('s', 'x', '{a: 1}', '{}')$$, '40001', NULL, 'nor with a condition');
DROP TRIGGER mine ON s;
ALTER TABLE s ALTER doc DROP NOT NULL;
CREATE TRIGGER zzz_mine BEFORE INSERT OR UPDATE ON s FOR EACH ROW EXECUTE FUNCTION pg_temp.empty();
SELECT is(single_table_put('s', 'x', '{a: 1}')::text, NULL, 'an item that a trigger empties is null');
SELECT is(single_table_put('s', 'x', '{a: 1}', '{}')::text, NULL, 'it is null to conditions, too');
SELECT is(single_table_get('s', 'X#1', 'S')::text, NULL, 'and to who gets it');
SELECT is((SELECT count(*) FROM single_table_query('s', 'X#1', fields => '{a: 1}') q WHERE q IS NULL), 1::bigint, 'and to queries');
SELECT is(single_table_update('s', 'X#1', 'S', '{$set: {b: 1}}', upsert => true)::text, NULL, 'and to updates');
SELECT is(single_table_delete('s', 'X#1', 'S')::text, NULL, 'it can be deleted');
SELECT throws_ok($$SELECT single_table_purge('s', -1)$$, '22023', NULL, 'less than nothing is not purged');
DROP TABLE s CASCADE;

-- What is said of a condition: one line, not all of it, and the same wherever it stands
SELECT single_table_create('s') \g /dev/null
CREATE FUNCTION pg_temp.said(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  detail text;
BEGIN
  EXECUTE statement;
  RETURN 'nothing';
EXCEPTION WHEN check_violation THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
  RETURN SQLERRM || ': ' || detail;
END $$;
SELECT is(pg_temp.said($$SELECT single_table_transact('s', '[{check: {PK: "a", SK: "b", condition: {c: 1, d: {$gt: 5}}}}]')$$),
          'the condition on the item (a, b) is not met: There is no item, and a missing item does not match {"c": 1, "d": {"$gt": 5}}.', 'of a check');
SELECT single_table_put('s', NULL, bson_build('PK', repeat('ä', 100), 'SK', 'b'::text)) \g /dev/null
SELECT is(pg_temp.said(format($$SELECT single_table_delete('s', %L, 'b', bson_build('c', %L::text))$$, repeat('ä', 100), repeat('x', 200))),
          'the condition on the item (' || repeat('ä', 48) || '..., b) is not met: It does not match {"c": "' || repeat('x', 90) || '....', 'of a long one');
DROP TABLE s CASCADE;
SELECT * FROM finish();
