-- Functions and calls on distributed tables: what runs on the shards, with the same results as on a table of one server.
SET client_min_messages = warning;
SELECT plan(105);

CREATE TABLE one (_id bson_value PRIMARY KEY, doc bson);
CREATE TABLE many (_id bson_value PRIMARY KEY, doc bson);
SELECT create_distributed_table('many', '_id') \gset
SELECT setseed(0.5) \gset
INSERT INTO one SELECT i::bson_value, bson_build('_id', i, 'g', i % 7, 'x', CASE i % 4 WHEN 0 THEN to_bson(i) WHEN 1 THEN to_bson(random() * power(10, i % 30)) WHEN 2 THEN to_bson((i * 0.37)::numeric(10, 2))
  ELSE to_bson('text ' || i % 50) END, 'y', random(), 'at', timestamptz '2024-01-01' + i * interval '1 min') FROM generate_series(1, 2000) i;
INSERT INTO many SELECT * FROM one;

-- How a query is computed: pushed (parts of aggregates on the shards), or not.
CREATE FUNCTION pg_temp.way(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; way text := 'gathered';
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || q LOOP
    IF line ~ 'worker_partial_agg' THEN way := 'pushed'; END IF;
  END LOOP;
  RETURN way;
END $$;
CREATE FUNCTION pg_temp.answer(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text;
BEGIN
  EXECUTE 'SELECT string_agg(format(''%s'', q), E''\n'' ORDER BY format(''%s'', q)) FROM (' || q || ') q' INTO r;
  RETURN r;
END $$;

-- ---------------------------------------------------------------- aggregates

CREATE TEMP TABLE calls (way text, call text);
INSERT INTO calls VALUES
  ('pushed', $q$avg(doc -> 'x')$q$),
  ('pushed', $q$sum(doc -> 'x')$q$),
  ('pushed', $q$min(doc -> 'x'), max(doc -> 'y'), avg(doc -> 'y'), count(*)$q$),
  ('pushed', $q$bson_accumulate(doc, '{a: {$sum: "$x"}, b: {$avg: "$y"}, c: {$first: "$y"}, d: {$topN: {n: 3, sortBy: {y: 1}, output: "$x"}}, e: {$addToSet: "$g"}}')$q$),
  ('pushed', $q$bson_accumulate(doc, '{a: {$push: "$y"}, b: {$last: "$x"}}', '{y: 1}')$q$),
  ('pushed', $q$bson_accumulate(doc, '{a: {$push: "$_id"}}', '{g: 1}', _id)$q$),
  ('pushed', $q$bson_distinct_agg(doc -> 'x')$q$),
  ('pushed', $q$bson_distinct_agg(doc ->> 'x')$q$),
  ('gathered', $q$bson_distinct_agg((doc -> 'g')::int)$q$),
  ('pushed', $q$bson_distinct_merge_agg(bson_distinct_add(NULL::bson_value, doc -> 'x'))$q$),
  ('pushed', $q$bucket_agg((doc -> 'at')::timestamptz, bson_project_immutable(doc, '{x: 1, y: 1}'))$q$),
  ('gathered', $q$bucket_agg((doc -> 'at')::timestamptz, (doc -> 'y')::float8)$q$),
  ('gathered', $q$bson_agg(doc ORDER BY _id)$q$),
  ('gathered', $q$bson_merge_agg(doc ORDER BY _id)$q$);
SELECT is(pg_temp.way(format('SELECT %s FROM many', call)), way, call) FROM calls;
SELECT is(pg_temp.answer(format('SELECT %s FROM many', call)), pg_temp.answer(format('SELECT %s FROM one', call)), 'equal: ' || call) FROM calls;
SELECT is(pg_temp.answer(format('SELECT doc -> ''g'', %s FROM many GROUP BY 1', call)), pg_temp.answer(format('SELECT doc -> ''g'', %s FROM one GROUP BY 1', call)), 'groups: ' || call) FROM calls;
SELECT is(pg_temp.answer(format('SELECT %s FROM many WHERE doc @@ ''{y: -1}''', call)), pg_temp.answer(format('SELECT %s FROM one WHERE doc @@ ''{y: -1}''', call)), 'nothing: ' || call) FROM calls;
SELECT is(pg_temp.answer('SELECT bson_array_length(bson_agg(doc)) FROM many'), '(2000)', 'an array of all shards');
SELECT is(pg_temp.answer('SELECT bucket_merge(b) FROM (SELECT _id, bucket_agg((doc -> ''at'')::timestamptz, doc) AS b FROM many GROUP BY 1) q'),
          pg_temp.answer('SELECT bucket_merge(b) FROM (SELECT _id, bucket_agg((doc -> ''at'')::timestamptz, doc) AS b FROM one GROUP BY 1) q'), 'buckets of all shards');
SELECT throws_ok($$SELECT coord_combine_agg('avg(bson_value)'::regprocedure, '\x05ff'::cstring, NULL::bson_value)$$, 'XX001', NULL, 'a damaged part');

-- ---------------------------------------------------------------- pipelines

SELECT is(pg_temp.answer(format('SELECT * FROM collection_aggregate(''many'', %L)', p)), pg_temp.answer(format('SELECT * FROM collection_aggregate(''one'', %L)', p)), p) FROM unnest(ARRAY[
  '[{$match: {g: 1}}, {$group: {_id: "$g", n: {$sum: "$y"}}}]',
  '[{$group: {_id: "$g", n: {$avg: "$y"}, c: {$count: {}}}}, {$sort: {n: -1}}, {$limit: 2}]',
  '[{$group: {_id: {g: "$g", k: {$mod: ["$_id", 2]}}, n: {$max: "$y"}, s: {$addToSet: "$g"}}}]',
  '[{$group: {_id: null, n: {$max: "$y"}, s: {$addToSet: "$g"}}}]',
  '[{$sort: {_id: 1}}, {$group: {_id: "$g", n: {$push: "$y"}}}]',
  '[{$sortByCount: "$g"}]',
  '[{$match: {$expr: {$gt: ["$y", {$divide: ["$g", 10]}]}}}, {$count: "n"}]',
  '[{$bucket: {groupBy: "$g", boundaries: [0, 3, 6], default: "x", output: {n: {$sum: "$y"}}}}]',
  '[{$bucketAuto: {groupBy: "$y", buckets: 4}}]',
  '[{$sort: {y: 1}}, {$skip: 5}, {$limit: 3}, {$project: {y: 1}}]',
  '[{$set: {z: {$add: ["$g", 1]}}}, {$match: {z: 4}}, {$unset: "x"}]',
  '[{$set: {a: [1, 2]}}, {$unwind: "$a"}, {$group: {_id: "$a", n: {$sum: 1}}}]',
  '[{$facet: {a: [{$count: "n"}], b: [{$sortByCount: "$g"}]}}]',
  '[{$setWindowFields: {partitionBy: "$g", sortBy: {_id: 1}, output: {s: {$sum: "$y", window: {documents: ["unbounded", "current"]}}}}}]',
  '[{$replaceRoot: {newRoot: {a: "$g"}}}, {$group: {_id: "$a"}}]']) p;

-- ---------------------------------------------------------------- updates and projections

UPDATE many SET doc = bson_update_immutable(doc, '{$inc: {y: 1}}') WHERE doc @@ '{g: 3}';
UPDATE one SET doc = bson_update(doc, '{$inc: {y: 1}}') WHERE doc @@ '{g: 3}';
UPDATE many SET doc = bson_update_immutable(doc, '[{$set: {z: {$multiply: ["$y", 2]}}}]') WHERE _id = 5::bson_value;
UPDATE one SET doc = bson_update(doc, '[{$set: {z: {$multiply: ["$y", 2]}}}]') WHERE _id = 5;
SELECT is(pg_temp.answer('SELECT doc FROM many'), pg_temp.answer('SELECT doc FROM one'), 'updates on shards');
SELECT throws_ok($$UPDATE many SET doc = bson_update_immutable(doc, '{$currentDate: {t: true}}')$$, '0A000', NULL, 'no clock');
CREATE INDEX ON many (bson_eval_immutable(doc, '{$add: ["$g", 1]}'));
SELECT is((SELECT count(*) FROM many WHERE bson_eval_immutable(doc, '{$add: ["$g", 1]}') = 4), 286::bigint, 'an index of each shard');

-- ---------------------------------------------------------------- calls

CREATE FUNCTION pg_temp.same() RETURNS text LANGUAGE sql AS $$ SELECT is(pg_temp.answer('SELECT doc FROM many'), pg_temp.answer('SELECT doc FROM one'), 'the same documents') $$;
SELECT is(pg_temp.answer(format('SELECT * FROM %s', replace(c, '%', 'many'))), pg_temp.answer(format('SELECT * FROM %s', replace(c, '%', 'one'))), c) FROM unnest(ARRAY[
  $$collection_update('%', '{_id: 5}', '{$inc: {n: 1}}')$$, $$collection_update('%', '{_id: 5}', '{$set: {n: 1}}')$$, $$collection_update('%', '{_id: 0}', '{$set: {n: 1}}')$$,
  $$collection_update('%', '{g: 1}', '{$inc: {n: 1}}', sort => '{y: -1}')$$, $$collection_update('%', '{g: {$gt: 4}}', '{$set: {n: 1}}', multi => true)$$,
  $$collection_update('%', '{g: {$gt: 3}}', '{$set: {n: 1}}', multi => true)$$, $$collection_replace('%', '{_id: 6}', '{h: 1}')$$,
  $$collection_find_one_and_update('%', '{g: 2}', '{$inc: {n: 1}}', sort => '{_id: 1}')$$, $$collection_find_one_and_update('%', '{g: 2}', '{$inc: {n: 1}}', sort => '{_id: 1}', return_new => true)$$,
  $$collection_find_one_and_replace('%', '{_id: 9}', '{h: 2}', return_new => true)$$, $$collection_find_one_and_delete('%', '{g: 3}', sort => '{_id: -1}')$$,
  $$collection_update('%', '{x: "TEXT 3"}', '{$set: {c: 1}}', sort => '{_id: 1}', collation => '{locale: "en", strength: 2}')$$,
  $$collection_delete('%', '{_id: 11}')$$, $$collection_delete('%', '{g: 5}', multi => true)$$]) c;
SELECT pg_temp.same();
SELECT throws_ok($$SELECT collection_update('many', '{}', '{$currentDate: {t: true}}', multi => true)$$, '0A000', '$currentDate is not allowed here, because the result must not depend on the time', 'many documents, no clock');
SELECT is((SELECT modified FROM collection_update('many', '{_id: 1}', '{$currentDate: {t: true}}')), 1::bigint, 'one document, with a clock');
SELECT throws_ok($$SELECT collection_update('many', '{}', '{$set: {t: 1}}', multi => true, collation => '{locale: "en"}')$$, '0A000', 'collation and multi cannot be combined for a distributed table', 'a collation');
CREATE TABLE keyless (k int, doc bson);
SELECT create_distributed_table('keyless', 'k') \gset
SELECT throws_ok($$SELECT collection_update('keyless', '{}', '{$set: {t: 1}}')$$, '0A000', 'cannot distinguish the rows of "keyless"', 'no key');

SET citus.enable_unsafe_triggers = on;
SELECT collection_create('people') \gset
SELECT create_distributed_table('people', '_id') \gset
SELECT is((SELECT string_agg(i::text, ' ' ORDER BY o) FROM collection_insert('people', '[{_id: 1, n: 1}, {_id: "x", n: 2}, {_id: 2, n: 1}, {_id: 3}, {_id: 4}]') WITH ORDINALITY c (i, o)), '1 x 2 3 4', 'documents inserted, in order');
SELECT is((SELECT array_agg(i ORDER BY o) FROM collection_insert('people', '[{n: 5}, {n: 5}, {n: 5}]') WITH ORDINALITY c (i, o)), (SELECT array_agg(_id ORDER BY _id) FROM people WHERE doc @@ '{n: 5}' AND bson_typeof(_id) = 'objectId'), 'documents without _id get one');
SELECT is((SELECT count(*) FROM people WHERE _id = doc -> '_id'), 8::bigint, 'keys are those of the documents');
SELECT is((SELECT upserted FROM collection_update('people', '{_id: 9}', '{$inc: {n: 3}}', upsert => true)), '9', 'an upsert inserts');
SELECT is((SELECT modified FROM collection_update('people', '{_id: 9}', '{$inc: {n: 3}}', upsert => true)), 1::bigint, 'or updates');
SELECT is(pg_temp.answer($$SELECT doc -> 'n' FROM people WHERE _id = 9::bson_value$$), '(6)', 'the same document');
SELECT throws_like($$SELECT collection_insert('people', ARRAY['{_id: 1}']::bson[])$$, 'duplicate key%', 'a key that is there');

-- ---------------------------------------------------------------- types on their way between servers

CREATE TABLE typed (_id bson_value PRIMARY KEY, doc bson, o objectid, p treepath, b bucket, docs bson[], paths treepath[], sketch bson_value);
INSERT INTO typed SELECT i::bson_value, bson_build('k', CASE i % 3 WHEN 0 THEN '{"$minKey": 1}'::bson_value WHEN 1 THEN '{"$binary": {"base64": "AAEC", "subType": "80"}}' END), objectid(), treepath(ARRAY['a', i::text]),
  (SELECT bucket_agg(timestamptz '2024-01-01' + j * interval '1 min', bson_build('x', j)) FROM generate_series(1, i % 20) j), ARRAY['{}', NULL, bson_build('i', i)], ARRAY[treepath(ARRAY[i]), NULL],
  (SELECT bson_distinct_agg(j) FROM generate_series(1, i * 3) j) FROM generate_series(1, 300) i;
CREATE TABLE typed_many (LIKE typed INCLUDING ALL);
SELECT create_distributed_table('typed_many', '_id', shard_count => 4) \gset
SELECT is(current_setting('citus.enable_binary_protocol'), 'on', 'the binary protocol is in use');
INSERT INTO typed_many SELECT * FROM typed;
SELECT format('SELECT citus_move_shard_placement(%s, %L, %s, nodename, nodeport, %L) FROM pg_dist_node WHERE nodeport <> %3$s AND shouldhaveshards', shardid, nodename, nodeport, 'block_writes')
  FROM citus_shards WHERE table_name = 'typed_many'::regclass ORDER BY shardid LIMIT 2 \gexec
SELECT set_eq('SELECT * FROM typed_many', 'SELECT * FROM typed', 'values of all types');
SELECT * FROM finish();
