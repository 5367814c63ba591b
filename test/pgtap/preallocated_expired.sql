-- The preallocated pattern: maintenance removes expired holds.
\set ECHO none
SET client_min_messages = error;
SELECT plan(31);

SELECT collection_create('lists'), collection_create('seats') \g /dev/null
CREATE TABLE halls ("the hall" text COLLATE "C", n int, doc bson, PRIMARY KEY ("the hall", n)) PARTITION BY LIST (n);
CREATE TABLE halls_1 PARTITION OF halls FOR VALUES IN (1);
SELECT preallocated_enable('lists', 'places', preallocated_pool(4), available_field => 'free'), preallocated_enable('seats', 'seats', preallocated_grid('{3,3}'), store => 'slots', available_field => 'free'),
  preallocated_enable('halls', '"the seats"', preallocated_pool(3)) \g /dev/null
CREATE TABLE halls_2 PARTITION OF halls FOR VALUES IN (2);
INSERT INTO lists (doc) SELECT bson_build('_id', i) FROM generate_series(1, 20) i;
INSERT INTO seats (doc) SELECT bson_build('_id', i) FROM generate_series(1, 3) i;
INSERT INTO halls VALUES ('a', 1, '{}'), ('a', 2, '{}');
SELECT is((SELECT count(*) FROM pattern_due()), 0::bigint, 'nothing is due');

-- a hold that ends at once, one that goes on, a claim without an end
SELECT preallocated_claim('lists', i, '{2}', 'bob', '1 hour'), preallocated_claim('lists', i, '{3}', 'cy'), preallocated_claim('lists', i, '{1}', 'ada', '1 ms') FROM generate_series(1, 3) i \g /dev/null
SELECT preallocated_claim('seats', i, '{A1,A2}', 'ada', '1 ms'), preallocated_claim('seats', i, '{B1}', 'bob', '1 hour'), preallocated_claim('seats', i, '{B3}', 'cy') FROM generate_series(1, 3) i \g /dev/null
SELECT preallocated_claim('halls', ROW('a', 2), '{1,3}', 'ada', '1 ms') \g /dev/null
SELECT preallocated_claim('lists', 9, '{1}', 'ada', '1 hour'), pg_sleep(0.05) \g /dev/null
SELECT results_eq('SELECT rel::text, what, amount FROM pattern_due() ORDER BY 1', $$VALUES ('halls', 'documents with expired holds', 1::bigint), ('lists', 'documents with expired holds', 3), ('seats', 'expired holds', 6)$$, 'expired holds are due');
SELECT ok((SELECT bool_and(since BETWEEN now() - interval '1 min' AND clock_timestamp()) FROM pattern_due()), 'since they expired');
SELECT is((SELECT doc FROM lists WHERE doc @@ '{_id: 1}') -> 'free', to_bson(1), 'they count as taken in the table');
SELECT is((SELECT count(*) FROM pattern_check()), 0::bigint, 'all is consistent before');
CREATE TEMP TABLE shown AS SELECT l._id, s.* FROM lists_whole l, preallocated_slots('lists', l._id) s;
CALL pattern_maintain(max_rows => 1, batch => 1);
SELECT ok((SELECT sum(amount) FROM pattern_due()) < 10, 'some are removed');
CALL pattern_maintain(batch => 2);
SELECT is((SELECT count(*) FROM pattern_due()), 0::bigint, 'nothing is due');
SELECT is((SELECT doc FROM lists WHERE doc @@ '{_id: 1}') - 'places_until', '{_id: 1, places: [0, "bob", "cy", 0], free: 2}'::bson, 'the cell is free, and counted');
SELECT is((SELECT string_agg(k, ' ') FROM lists, bson_keys((doc -> 'places_until')::bson) k WHERE doc @@ '{_id: 1}'), '2', 'the other hold goes on');
SELECT results_eq($$SELECT l._id, s.* FROM lists_whole l, preallocated_slots('lists', l._id) s ORDER BY 1, 2$$, 'SELECT * FROM shown ORDER BY 1, 2', 'what readers of slots see is the same');
SELECT is((SELECT string_agg(slot, ' ' ORDER BY slot) FROM seats_seats_claims WHERE key = to_bson(2)), 'B1 B3', 'rows of expired claims are gone');
SELECT is((SELECT (doc -> '"the seats"')::text FROM halls WHERE n = 2), '[0, 0, 0]', 'in a partition');
SELECT ok(NOT (SELECT doc ? '"the seats_until"' FROM halls WHERE n = 2), 'without a field of ends');
SELECT is((SELECT count(*) FROM pattern_check()), 0::bigint, 'all is consistent after');

-- claims of what was removed
SELECT is(preallocated_claim('lists', 1, '{1}', 'dora'), true, 'a claim of the freed slot');
SELECT is(preallocated_claim('seats', 1, '{A1}', 'dora'), true, 'with a table, too');
SELECT is(preallocated_release('seats', 1, '{A2}', 'ada'), false, 'the former holder has nothing to release');
SELECT is(preallocated_confirm('lists', 1, '{2}', 'bob'), true, 'a hold that goes on is confirmed');
SELECT is((SELECT count(*) FROM pattern_due()), 0::bigint, 'nothing is due');

-- the index: documents that hold nothing are not read
SET enable_seqscan = off;
CREATE FUNCTION pg_temp.plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query; END $$;
SELECT ok((SELECT bool_or(p LIKE '%Index%') FROM pg_temp.plan_of(format('SELECT FROM lists AS t WHERE %1$s <= now() ORDER BY %1$s', e)) p), 'an index has the first end of a document')
  FROM docpatterns._preallocated_first_end('lists', (SELECT options FROM docpatterns._pattern_declarations('lists'))) e;
SELECT ok((SELECT bool_or(p LIKE '%seats_seats_claims_until_idx%') FROM pg_temp.plan_of('SELECT FROM seats_seats_claims WHERE until <= now() ORDER BY until LIMIT 2') p), 'and one the ends of claims');
RESET enable_seqscan;
SELECT is(docpatterns._preallocated_expiry(format('{a: %s}', v)::bson -> 'a'), w, v) FROM (VALUES ('{}', NULL::timestamptz), ('7', NULL), ('{"A1": {"$date": "2024-05-02T00:00:00Z"}, "A2": {"$date": "2024-05-01T00:00:00Z"}, "A3": 1}', '2024-05-01 00:00:00+00'),
  ('{"A1": {"$date": {"$numberLong": "9223372036854775807"}}}', NULL), ('{"A1": {"$date": {"$numberLong": "9223372036854775806"}}}', 'infinity'), ('{"A1": {"$date": {"$numberLong": "-9223372036854775808"}}}', '-infinity')) q (v, w);

-- a field of ends that documents held before is nothing to purge
SELECT collection_create('old') \g /dev/null
INSERT INTO old (doc) VALUES ('{_id: 1, a_until: {x: {$date: "2020-01-01T00:00:00Z"}}}');
SELECT preallocated_enable('old', 'a', preallocated_pool(2)) \g /dev/null
SELECT is((SELECT count(*) FROM pattern_due('old')), 0::bigint, 'values from before the declaration are left alone');
CALL pattern_maintain('old');
SELECT is((SELECT doc FROM old), '{_id: 1, a_until: {x: {$date: "2020-01-01T00:00:00Z"}}}'::bson, 'by maintenance, too');

-- a clock has no holds
SELECT collection_create('clocks') \g /dev/null
SELECT preallocated_enable('clocks', 'v', preallocated_clock('{hour}')) \g /dev/null
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 'clocks'::regclass), 1::bigint, 'a clock needs no index');
SELECT pattern_disable('lists') \g /dev/null
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 'lists'::regclass), 1::bigint, 'pattern_disable drops it');
SELECT * FROM finish();
