-- The TTL pattern: the calls for collections do not see expired documents.
\set ECHO none
SET client_min_messages = error;
SELECT plan(82);

CREATE FUNCTION pg_temp.plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query; END $$;
CREATE FUNCTION pg_temp.ids(docs bson_value[]) RETURNS text LANGUAGE sql AS $$ SELECT string_agg(v::text, ' ' ORDER BY v) FROM unnest(docs) v $$;
CREATE FUNCTION pg_temp.found(rel regclass, filter bson DEFAULT '{}') RETURNS text LANGUAGE sql AS $$
  SELECT pg_temp.ids(array_agg(d -> '_id')) FROM collection_find(rel, filter) d $$;

CREATE ROLE dp_ttl_owner;
CREATE ROLE dp_ttl_writer;
GRANT CREATE ON SCHEMA public TO dp_ttl_owner;
SET ROLE dp_ttl_owner;
SELECT collection_create('carts') \g /dev/null
SELECT ttl_enable('carts', 'a."til"', '1 hour', name => 'til') \g /dev/null
CREATE UNIQUE INDEX ON carts ((doc -> 'mail'));
CREATE INDEX ON carts ((doc -> 'n'));
-- 1 to 3 live, 4 to 6 have expired, 7 to 11 have no date that counts
INSERT INTO carts (doc) SELECT bson_build('_id', i, 'a', bson_build('til', now() - (i - 3.5) * interval '2 hours'), 'mail', 'm' || i, 'n', i) FROM generate_series(1, 6) i;
INSERT INTO carts (doc) VALUES ('{_id: 7, mail: "m7"}'), ('{_id: 8, mail: "m8", a: null}'), ('{_id: 9, mail: "m9", a: {til: "2020-01-01"}}'), ('{_id: 10, mail: "m10", a: {til: null}}'),
  ('{_id: 11, mail: "m11", a: {til: {$timestamp: {t: 1, i: 1}}}}'),
  ('{_id: 12, mail: "m12", a: {til: [7, {$date: "2999-01-01T00:00:00Z"}, {$date: "2020-01-01T00:00:00Z"}]}}'), ('{_id: 13, mail: "m13", a: {til: [{$date: "2999-01-01T00:00:00Z"}]}}'),
  ('{_id: 14, mail: "m14", a: {til: []}}'), ('{_id: 15, mail: "m15", a: [{til: {$date: "2020-01-01T00:00:00Z"}}]}');

-- reads
\set live '1 2 3 7 8 9 10 11 13 14 15'
SELECT is(pg_temp.found('carts'), :'live', 'find');
SELECT is(pg_temp.ids(array_agg(doc -> '_id')), :'live', 'the view shows the same') FROM carts_current;
SELECT is((SELECT count(*) FROM carts), 15::bigint, 'plain SQL sees all');
SELECT is(pg_temp.found('carts', '{_id: 4}'), NULL, 'find by key');
SELECT is(pg_temp.found('carts', '{n: 5}'), NULL, 'find by an index');
SELECT is(pg_temp.found('carts', '{$or: [{_id: 1}, {_id: 4}]}'), '1', 'find by alternatives');
SELECT is((SELECT pg_temp.ids(array_agg(d -> '_id')) FROM collection_find('carts', '{n: {$gte: 3}}', sort => '{n: -1}', take => 2) d), '3', 'find in an order');
SELECT is((SELECT pg_temp.ids(array_agg(d -> '_id')) FROM collection_find('carts', '{mail: {$in: ["M3", "M4"]}}', collation => '{locale: "en", strength: 2}') d), '3', 'find with a collation');
SELECT is(collection_count('carts'), 11::bigint, 'count');
SELECT is(collection_count('carts', '{n: {$gt: 2}}'), 1::bigint, 'count by a filter');
SELECT is((SELECT pg_temp.ids(array_agg(v)) FROM collection_distinct('carts', 'n') v), '1 2 3', 'distinct');
SELECT is((SELECT array_agg(d) FROM collection_aggregate('carts', '[{$match: {n: {$gte: 3}}}, {$count: "n"}]') d), ARRAY['{n: 1}'::bson], 'aggregate');
SELECT is((SELECT array_agg(d) FROM collection_aggregate('carts', '[{$count: "n"}]') d), ARRAY['{n: 11}'::bson], 'aggregate without a filter');
SELECT is((SELECT d ->> 'n' FROM collection_aggregate('carts', '[{$group: {_id: null, n: {$sum: 1}}}]') d), '11', 'aggregate groups');

-- joins of pipelines
SELECT collection_create('users') \g /dev/null
INSERT INTO users (doc) SELECT bson_build('_id', i, 'cart', i, 'mail', 'm' || i) FROM generate_series(1, 6) i;
SELECT is((SELECT string_agg(d ->> 'c', ' ' ORDER BY d -> '_id') FROM collection_aggregate('users', (format('{a: [{$lookup: {from: "carts", localField: "%s", foreignField: "%s", as: "c"}}, {$set: {c: {$size: "$c"}}}]}', l, f)::bson -> 'a')) d),
  '1 1 1 0 0 0', format('$lookup by %s', f)) FROM (VALUES ('cart', '_id'), ('cart', 'n'), ('mail', 'mail')) v (l, f);
SELECT is((SELECT string_agg(d ->> 'c', ' ' ORDER BY d -> '_id') FROM collection_aggregate('users', '[{$lookup: {from: "carts", let: {m: "$mail"}, pipeline: [{$match: {$expr: {$eq: ["$mail", "$$m"]}}}], as: "c"}}, {$set: {c: {$size: "$c"}}}]') d), '1 1 1 0 0 0', '$lookup by a pipeline');
SELECT is((SELECT string_agg(d ->> 'c', ' ' ORDER BY d -> '_id') FROM collection_aggregate('users', '[{$graphLookup: {from: "carts", startWith: "$cart", connectFromField: "none", connectToField: "n", as: "c"}}, {$set: {c: {$size: "$c"}}}]') d), '1 1 1 0 0 0', '$graphLookup');
SELECT is((SELECT count(*) FROM collection_aggregate('users', '[{$unionWith: "carts"}]')), 17::bigint, '$unionWith');
SELECT is((SELECT count(*) FROM collection_aggregate('users', '[{$unionWith: {coll: "carts", pipeline: [{$match: {n: {$gt: 2}}}]}}]')), 7::bigint, '$unionWith a pipeline');

-- changes: as if it was not there
SELECT is(collection_update('carts', '{_id: 4}', '{$set: {x: 1}}')::text, '(0,0,)', 'update by key');
SELECT is(collection_update('carts', '{n: 4}', '{$set: {x: 1}}')::text, '(0,0,)', 'update');
SELECT is(collection_update('carts', '{n: {$gte: 2}}', '{$set: {x: 1}}', multi => true)::text, '(2,2,)', 'update of many');
SELECT is(collection_replace('carts', '{_id: 4}', '{x: 1}')::text, '(0,0,)', 'replace');
SELECT is(collection_delete('carts', '{_id: 4}'), 0::bigint, 'delete');
SELECT is(collection_delete('carts', '{n: {$gte: 4}}', multi => true), 0::bigint, 'delete of many');
SELECT is(collection_find_one_and_update('carts', '{_id: 4}', '{$set: {x: 1}}'), NULL, 'find_one_and_update');
SELECT is(collection_find_one_and_update('carts', '{n: {$gte: 3}}', '{$set: {y: 1}}', sort => '{n: -1}') ->> '_id', '3', 'find_one_and_update in an order');
SELECT is(collection_find_one_and_replace('carts', '{_id: 4}', '{x: 1}'), NULL, 'find_one_and_replace');
SELECT is(collection_find_one_and_delete('carts', '{_id: 4}'), NULL, 'find_one_and_delete');
SELECT is((SELECT count(*) FROM carts WHERE doc @@ '{x: 1}'), 2::bigint, 'nothing else has changed');
SELECT is((SELECT count(*) FROM carts), 15::bigint, 'and nothing was deleted');

-- an expired document makes way
SELECT is(collection_update('carts', '{_id: 4}', '{$set: {mail: "m4"}, $setOnInsert: {fresh: true}}', upsert => true)::text, '(0,0,4)', 'upsert with its _id');
SELECT is((SELECT doc FROM carts WHERE doc @@ '{_id: 4}'), '{_id: 4, fresh: true, mail: "m4"}'::bson, 'inserts a new document');
SELECT is(collection_update('carts', '{_id: 4}', '{$set: {seen: 1}}', upsert => true)::text, '(1,1,)', 'which the next one finds');
SELECT is((SELECT pg_temp.ids(array_agg(v)) FROM collection_insert('carts', '{_id: 5, n: 50, mail: "new"}'::bson) v), '5', 'insert with its _id');
SELECT throws_ok($$SELECT collection_insert('carts', '{_id: 5, mail: "newer"}')$$, '23505', NULL, 'not again');
SELECT throws_ok($$SELECT collection_insert('carts', '{_id: 100, mail: "m6"}', '{_id: 1}')$$, '23505', NULL, 'a failed insert');
SELECT is((SELECT count(*) FROM carts WHERE doc @@ '{_id: 6}'), 1::bigint, 'deletes nothing');
SELECT is((SELECT pg_temp.ids(array_agg(v)) FROM collection_insert('carts', '[{_id: 100, mail: "m6"}, {_id: 101}]') v), '100 101', 'another unique index');
SELECT is((SELECT count(*) FROM carts WHERE doc @@ '{_id: 6}'), 0::bigint, 'the expired one is gone');
INSERT INTO carts (doc) SELECT bson_build('_id', i, 'a', bson_build('til', now() - interval '1 day'), 'mail', 'x' || i, 'n', i) FROM generate_series(20, 29) i;
SELECT is(collection_replace('carts', '{mail: "x20"}', '{mail: "x20", r: 1}', upsert => true)::text LIKE '(0,0,%)', true, 'an upsert of a replacement by another unique field');
SELECT is(collection_find_one_and_update('carts', '{_id: 21}', '{$set: {mail: "x21", r: 1}}', upsert => true, return_new => true), '{_id: 21, mail: "x21", r: 1}'::bson, 'find_one_and_update with upsert');
SELECT is(collection_find_one_and_replace('carts', '{_id: 22}', '{mail: "x22", r: 1}', upsert => true, return_new => true), '{_id: 22, mail: "x22", r: 1}'::bson, 'find_one_and_replace with upsert');
SELECT is((SELECT pg_temp.ids(array_agg(v)) FROM collection_insert('carts_current', '{_id: 23, mail: "x23"}'::bson) v), '23', 'insert into the view');
SELECT is(collection_update('carts_current', '{_id: 24}', '{$set: {mail: "x24"}}', upsert => true)::text, '(0,0,24)', 'upsert into the view');
SELECT is((SELECT count(*) FROM carts WHERE doc @@ '{_id: {$gte: 20, $lte: 24}, "a.til": {$exists: true}}'), 0::bigint, 'these are gone');
SELECT throws_ok($$SELECT collection_update('carts', '{_id: 1}', '{$set: {mail: "x29"}}')$$, '23505', NULL, 'an update meets an expired document in another unique index');

-- $merge
SELECT collection_aggregate('users', '[{$match: {_id: 1}}, {$project: {_id: {$literal: 25}, mail: {$literal: "x25"}, merged: {$literal: 1}}}, {$merge: "carts"}]') \g /dev/null
SELECT is((SELECT doc FROM carts WHERE doc @@ '{_id: 25}'), '{_id: 25, mail: "x25", merged: 1}'::bson, '$merge does not merge with an expired document');
SELECT collection_aggregate('users', '[{$match: {_id: 1}}, {$project: {_id: {$literal: 26}, mail: {$literal: "x26"}, merged: {$literal: 1}}}, {$merge: {into: "carts", whenMatched: "fail"}}]') \g /dev/null
SELECT is((SELECT doc ->> 'merged' FROM carts WHERE doc @@ '{_id: 26}'), '1', 'nor fails because of one');
SELECT collection_aggregate('users', '[{$match: {_id: 1}}, {$project: {_id: {$literal: 26}, mail: {$literal: "x26"}, again: {$literal: 1}}}, {$merge: "carts"}]') \g /dev/null
SELECT is((SELECT doc ->> 'merged' FROM carts WHERE doc @@ '{_id: 26, again: 1}'), '1', 'but with a live one');

-- a program without rights on expired rows
GRANT SELECT, INSERT ON carts TO dp_ttl_writer;
SET ROLE dp_ttl_writer;
SELECT is((SELECT pg_temp.ids(array_agg(v)) FROM collection_insert('carts', '{_id: 27, mail: "x27"}'::bson) v), '27', 'an insert needs no right to delete');
SELECT throws_ok($$DELETE FROM carts$$, '42501', NULL, 'which the user does not have');
RESET ROLE;
REVOKE INSERT ON carts FROM dp_ttl_writer;
SET ROLE dp_ttl_writer;
SELECT throws_ok($$SELECT docpatterns._pattern_make_way('carts', ARRAY['{_id: 28}'::bson])$$, '42501', NULL, 'without INSERT nothing makes way');
SET ROLE dp_ttl_owner;

-- the time
SELECT is(docpatterns._pattern_cutoff('1 day'), statement_timestamp() - interval '24 hours', 'a day has 24 hours');
SELECT is(docpatterns._pattern_cutoff('300000 years'), '-infinity', 'a time before all times');
SELECT is(bool_and(c = d), true, 'in all time zones') FROM (SELECT set_config('timezone', z, false), docpatterns._pattern_cutoff('400 days') AS c, statement_timestamp() - interval '9600 hours' AS d
  FROM (VALUES ('Europe/Berlin'), ('America/New_York'), ('Pacific/Apia'), ('UTC')) v (z)) q;
RESET timezone;
SELECT collection_create('zoned') \g /dev/null
INSERT INTO zoned (doc) SELECT bson_build('_id', i, 'at', now() - interval '24 hours' * 200 + i * interval '30 min') FROM generate_series(-3, 3) i;
SELECT ttl_enable('zoned', 'at', '200 days') \g /dev/null
SELECT is(collection_count('zoned'), 3::bigint, format('days in %s', set_config('timezone', z, false))) FROM (VALUES ('Europe/Berlin'), ('Australia/Lord_Howe'), ('UTC')) v (z);
SELECT is((SELECT count(*) FROM zoned_current), 3::bigint, 'the view agrees');
SELECT is((SELECT amount FROM pattern_due('zoned')), 4::bigint, 'and maintenance');
RESET timezone;
SET intervalstyle = sql_standard;
SELECT is((SELECT count(*) FROM zoned_current) + collection_count('zoned'), 6::bigint, 'however intervals are spelled');
RESET intervalstyle;
SELECT pattern_alter('zoned', 'at', '{after: "300000 years"}') \g /dev/null
SELECT is(collection_count('zoned'), 7::bigint, 'pattern_alter changes what calls see');
SELECT pattern_alter('zoned', 'at', '{after: "0"}') \g /dev/null
SELECT is(collection_count('zoned'), 0::bigint, 'at once');
SELECT pattern_disable('zoned', 'at') \g /dev/null
SELECT is(collection_count('zoned'), 7::bigint, 'and pattern_disable');

-- the time is the statement's, as in the view
SELECT ttl_enable('zoned', 'at') \g /dev/null
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT is(collection_update('zoned', '{_id: "soon"}', bson_build('$set', bson_build('at', clock_timestamp() + interval '0.3 s'))::bson_value, upsert => true)::text, '(0,0,"""soon""")', 'a document that expires soon');
SELECT is(collection_count('zoned', '{_id: "soon"}') + (SELECT count(*) FROM zoned_current), 2::bigint, 'is there');
SELECT pg_sleep(0.4) \g /dev/null
SELECT is(collection_count('zoned', '{_id: "soon"}') + (SELECT count(*) FROM zoned_current), 0::bigint, 'and is gone in the same transaction when its time has come');
COMMIT;

-- declared twice; whole documents; partitions; other indexes
SELECT ttl_enable('zoned', 'by', name => 'by') \g /dev/null
INSERT INTO zoned (doc) VALUES ('{_id: 50, by: {$date: "2999-01-01T00:00:00Z"}}'), ('{_id: 51, by: {$date: "2020-01-01T00:00:00Z"}}');
SELECT is(pg_temp.found('zoned'), '50', 'two declarations');
CREATE TABLE parts (id int GENERATED ALWAYS AS IDENTITY, doc bson, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (3);
CREATE TABLE parts_2 (doc bson, id int NOT NULL);
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (3) TO (100);
SELECT ttl_enable('parts', 'at', '1 h') \g /dev/null
INSERT INTO parts (doc) SELECT bson_build('n', i, 'at', now() - i * interval '35 min') FROM generate_series(1, 4) i;
SELECT is(collection_count('parts') || ' ' || collection_count('parts_1') || ' ' || collection_count('parts_2'), '1 1 0', 'partitions');
SELECT collection_create('long') \g /dev/null
SELECT outlier_enable('long', 'items', threshold => 2) \g /dev/null
SELECT ttl_enable('long', 'at') \g /dev/null
INSERT INTO long (doc) SELECT bson_build('_id', i, 'at', now() + (i - 2) * interval '1 min', 'items', '[1, 2, 3, 4]'::bson_value) FROM generate_series(1, 3) i;
SELECT is(pg_temp.found('long', '{items: 4}'), '3', 'whole documents');
SELECT is(collection_update('long', '{items: 4}', '{$push: {items: 5}}', multi => true)::text, '(1,1,)', 'their updates');
SELECT is(collection_update('long', '{_id: 1}', '{$push: {items: 5}}', upsert => true)::text, '(0,0,1)', 'and upserts');
SELECT is((SELECT d FROM collection_find('long', '{_id: 1}') d), '{_id: 1, items: [5]}'::bson, 'begin with nothing');
SELECT is((SELECT count(*) FROM pattern_check()), 0::bigint, 'all is as declared');
CREATE UNIQUE INDEX ON long ((lower(doc ->> 'name')), (doc -> 'k')) WHERE doc ? 'name';
INSERT INTO long (doc) VALUES ('{_id: 60, name: "Ann", k: 1, at: {$date: "2020-01-01T00:00:00Z"}}'), ('{_id: 61, name: "Bob", k: 1, at: {$date: "2020-01-01T00:00:00Z"}}');
SELECT collection_insert('long', '{_id: 62, name: "ANN", k: 1}', '{_id: 63, name: "bob", k: 2}', '{_id: 64, k: 1}') \g /dev/null
SELECT is((SELECT pg_temp.ids(array_agg(doc -> '_id')) FROM long WHERE doc @@ '{_id: {$gte: 60}}'), '61 62 63 64', 'an index with two expressions and a condition');

-- a single table
SELECT single_table_create('app', ttl_field => 'ttl') \g /dev/null
INSERT INTO app (doc) SELECT bson_build('PK', 'a', 'SK', i::text, 'ttl', extract(epoch FROM now())::bigint + (i - 2) * 60 - 5) FROM generate_series(1, 3) i;
INSERT INTO app (doc) VALUES ('{PK: "b", SK: "x"}');
SELECT is((SELECT string_agg(d ->> 'SK', ' ' ORDER BY d ->> 'SK') FROM collection_find('app') d), '3 x', 'calls do not see expired items of a single table');
SELECT is(collection_delete('app', '{PK: "a"}', multi => true), 1::bigint, 'nor delete them');
SELECT pattern_alter('app', NULL, '{ttl_field: null}') \g /dev/null
SELECT is(collection_count('app'), 3::bigint, 'without a field of expiry they see all');

-- plans
SET enable_seqscan = off;
INSERT INTO carts (doc) SELECT bson_build('_id', i, 'n', i, 'mail', i) FROM generate_series(1000, 1500) i;
ANALYZE carts;
SELECT ok(bool_or(p LIKE '%Index%'), 'a join finds its index') FROM pg_temp.plan_of($$SELECT * FROM carts t WHERE (doc -> 'n') = 1200 AND docpatterns._ttl_current(t.doc, 'a."til"', docpatterns._pattern_cutoff('1 h'))$$) p;
RESET ROLE;
SELECT * FROM finish();
