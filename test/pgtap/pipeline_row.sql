-- Pipelines over relations without documents: rows as documents, their SQL and plans, and random ones beside a collection of the same documents.
BEGIN;
SELECT plan(72);
SET client_min_messages = warning;
SET timezone = 'UTC';
\set seed 0.27
\set pipelines 40
SELECT diag('seed ' || :seed);
SELECT setseed(:seed) \g /dev/null

-- The result of a pipeline, a document a line
CREATE FUNCTION run(rel regclass, pipeline bson_value, ordered bool DEFAULT true) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT string_agg(bson_to_json(d, 'canonical'), E'\n' ORDER BY CASE WHEN ordered THEN n END, bson_to_json(d, 'canonical') COLLATE "C") FROM collection_aggregate(rel, pipeline) WITH ORDINALITY AS x (d, n));
EXCEPTION WHEN OTHERS THEN RETURN 'error ' || sqlstate;
END $$;
-- Its query and its plan, without line breaks
CREATE FUNCTION sql(rel regclass, pipeline bson_value) RETURNS text LANGUAGE sql AS $$ SELECT trim(regexp_replace(collection_aggregate_sql(rel, pipeline), '\s+', ' ', 'g')) $$;
CREATE FUNCTION plan_of(rel regclass, pipeline bson_value) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(regexp_replace(l, '^ *(->)? *|\s+\(cost=.*', '', 'g'), ' / ') FROM collection_explain(rel, pipeline) AS l $$;

CREATE TABLE people (id int PRIMARY KEY, name text COLLATE "C" NOT NULL, boss int REFERENCES people, born date, tags text[], extra jsonb, at timestamptz);
INSERT INTO people VALUES (1, 'Ada', NULL, '1815-12-10', '{a,b}', '{"k": [1]}', '2024-01-01 00:00:00.0005+00'), (2, 'Bob', 1, NULL, NULL, NULL, NULL), (3, 'Eve', 1, '2000-01-01', '{}', 'null', '2024-01-01 00:00:00.001+00');
CREATE INDEX ON people (boss);

-- ---------------------------------------------------------------- documents
SELECT is(run('people', '[{$sort: {id: 1}}, {$limit: 2}]'), (SELECT string_agg(bson_to_json(row_to_bson(p), 'canonical'), E'\n' ORDER BY id) FROM people p WHERE id < 3), 'a row is the document that row_to_bson() makes');
SELECT is(run('people', '[{$match: {tags: "a"}}, {$project: {_id: 0, id: 1, k: "$extra.k"}}]'), '{"id": {"$numberInt": "1"}, "k": [{"$numberInt": "1"}]}', 'arrays and documents in columns');
SELECT is(run('people', '[{$match: {born: null}}, {$project: {id: 1}}]'), '{"id": {"$numberInt": "2"}}', 'NULL is null');
SELECT is(run('people', '[{$match: {nope: null}}, {$count: "n"}]'), '{"n": {"$numberInt": "3"}}', 'what is no column is missing');
SELECT is(run('people', '[{$project: {none: "$nope"}}, {$limit: 1}]'), '{}', 'in expressions, too');
SELECT is(run('people', '[{$unwind: "$tags"}, {$group: {_id: null, t: {$push: "$tags"}}}]'), '{"_id": null, "t": ["a", "b"]}', '$unwind');
SELECT is(run('people', '[{$facet: {a: [{$match: {id: {$gt: 1}}}, {$count: "n"}], b: [{$sort: {id: -1}}, {$limit: 1}, {$project: {id: 1}}]}}]'), '{"a": [{"n": {"$numberInt": "2"}}], "b": [{"id": {"$numberInt": "3"}}]}', '$facet');
SELECT is(run('people', '[{$unionWith: {coll: "people", pipeline: [{$match: {id: 1}}]}}, {$count: "n"}]'), '{"n": {"$numberInt": "4"}}', '$unionWith');
SELECT is(run('people', '[{$setWindowFields: {sortBy: {id: 1}, output: {n: {$sum: "$id", window: {documents: ["unbounded", "current"]}}}}}, {$project: {n: 1}}]'), E'{"n": {"$numberInt": "1"}}\n{"n": {"$numberInt": "3"}}\n{"n": {"$numberInt": "6"}}', '$setWindowFields');
SELECT is(run('people', '[{$match: {$expr: {$lt: ["$born", "$$NOW"]}, id: 3}}, {$project: {id: 1}}]'), '{"id": {"$numberInt": "3"}}', 'a condition that is not constant');
SELECT is((SELECT count(*) FROM collection_aggregate('people', '[{$match: {id: 1, name: "ADA"}}]', collation => '{locale: "en", strength: 2}')), 1::bigint, 'a collation');
SELECT is((SELECT string_agg(d ->> 'name', ' ' ORDER BY n) FROM collection_aggregate('people', '[{$match: {name: {$gt: "ada"}}}, {$sort: {name: -1}}]', collation => '{locale: "en", strength: 2}') WITH ORDINALITY AS x (d, n)), 'Eve Bob', 'in comparisons and orders');
CREATE VIEW bosses AS SELECT id, name FROM people WHERE boss IS NULL;
SELECT is(run('bosses', '[{$match: {id: 1}}]'), '{"id": {"$numberInt": "1"}, "name": "Ada"}', 'a view');
SELECT is(collection_view_create('names', 'people', '[{$match: {id: {$lt: 3}}}, {$project: {name: 1}}]')::text, 'names', 'a view of a pipeline');
SELECT is(run('names', '[{$sort: {name: -1}}, {$limit: 1}]'), '{"name": "Bob"}', 'which has documents');
SELECT format('CREATE TABLE wide (%s)', string_agg('c' || i || ' int DEFAULT ' || i, ', ')) FROM generate_series(1, 120) i \gexec
INSERT INTO wide DEFAULT VALUES;
SELECT is(run('wide', '[]'), (SELECT bson_to_json(row_to_bson(w), 'canonical') FROM wide w), 'more columns than a function has arguments');
CREATE TABLE "odd ""t" ("a.b" int, "$x" int, "sel'ect" int);
INSERT INTO "odd ""t" VALUES (1, 2, 3);
SELECT is(run('"odd ""t"', '[{$match: {"sel''ect": 3}}]'), '{"a.b": {"$numberInt": "1"}, "$x": {"$numberInt": "2"}, "sel''ect": {"$numberInt": "3"}}', 'names that must be quoted');
SELECT is(run('"odd ""t"', '[{$match: {"a.b": 1}}]'), NULL, 'a path is no column');

-- ---------------------------------------------------------------- writing is refused
SELECT collection_create('kept');
SELECT throws_ok($$SELECT collection_aggregate('kept', '[{$out: "people"}]')$$, '42703', 'relation "people" has no column of type bson', '$out into rows');
SELECT throws_ok($$SELECT collection_aggregate('people', '[{$merge: "bosses"}]')$$, '42809', NULL, '$merge into a view of rows');
SELECT lives_ok($$SELECT collection_aggregate('people', '[{$project: {_id: "$id", name: 1}}, {$out: "kept"}]')$$, '$out of rows');
SELECT is((SELECT count(*) FROM kept), 3::bigint, 'writes their documents');

-- ---------------------------------------------------------------- the query
SELECT is(sql('people', '[{$match: {id: {$gt: 1, $lte: 5}, name: "Bob"}}, {$sort: {id: -1}}, {$limit: 5}, {$project: {_id: 0, boss: 1}}]'),
  $$SELECT bson_build('boss'::text, boss) AS doc FROM people t WHERE id > 1 AND id <= 5 AND name = 'Bob'::text ORDER BY id DESC LIMIT 5$$, 'conditions, order and $project are columns');
SELECT is(sql('people', '[{$sort: {id: 1}}, {$project: {b: "$boss"}}]') ~ 'bson_project\(bson_build\(''boss''::text, boss\)', true, 'a document has what is used');
SELECT is(run('people', '[{$project: {id: 1}}, {$group: {_id: "$name", n: {$sum: "$id"}}}]'), '{"_id": null, "n": {"$numberInt": "6"}}', 'what $project leaves out is gone');
SELECT is(run('people', '[{$match: {id: 1}}, {$project: {name: 1, nope: 1}}, {$project: {nope: true, id: 1}}]'), '{}', 'so is what is no column');
SELECT is(sql('people', '[{$match: {name: {$regex: "^A"}, id: {$in: [1, 2]}, $and: [{boss: null}, {$or: [{id: 1}, {extra: 2}]}], $or: [{id: 1, boss: {$ne: 2}}, {born: null}]}}, {$count: "n"}]'),
  $$SELECT bson_build('n'::text, docpatterns._int(count(*))) AS doc FROM people t WHERE (id = ANY (ARRAY[1, 2])) AND boss IS NULL AND (id = 1 AND (boss = 2) IS NOT TRUE OR born IS NULL) AND bson_build('id'::text, id, 'name'::text, name, 'extra'::text, extra) @@ '{"name": {"$regex": "^A"}, "$and": [{"$or": [{"id": 1}, {"extra": 2}]}]}'::bson HAVING count(*) > 0$$, 'the rest of a filter is tested on a document of its fields');
SELECT is(sql('people', '[{$sort: {boss: -1, born: 1, name: 1}}, {$project: {id: 1}}]') ~ 'ORDER BY boss DESC NULLS LAST, born NULLS FIRST, name$', true, 'null comes first');
SELECT is(sql('people', '[{$match: {at: ISODate("2024-01-01T00:00:00Z")}}, {$project: {id: 1}}]') ~ 'WHERE at >= ''2024-01-01 00:00:00\+00''::timestamp with time zone AND at < ''2024-01-01 00:00:00.001\+00''', true, 'a date has milliseconds');
SELECT is(sql('people', '[{$match: {at: {$gt: 5}}}, {$count: "n"}]') ~ '@@', true, 'values of another type are not compared in SQL');
SELECT is(sql('people', '[{$group: {_id: {b: "$boss", n: "$name"}, n: {$sum: 1}, s: {$sum: "$id"}, a: {$avg: "$id"}, m: {$max: "$born"}}}]'),
  $$SELECT bson_build('_id'::text, bson_build('b'::text, boss, 'n'::text, name), 'n'::text, docpatterns._int(count(*)), 's'::text, docpatterns._sum(sum(id)), 'a'::text, sum(id)::double precision / count(id)::double precision, 'm'::text, max(born)) AS doc FROM people t GROUP BY boss, name$$, '$group by columns is SQL');
SELECT is(sql('people', '[{$group: {_id: "$boss", n: {$push: "$name"}}}]') ~ 'bson_build\(''name''::text, t.name, ''boss''::text, t.boss\)', true, 'other accumulators take documents of the fields');
SET LOCAL enable_seqscan = off;
SET LOCAL enable_bitmapscan = off;
SELECT is(plan_of('people', '[{$match: {id: 2}}]'), 'Index Scan using people_pkey on people t / Index Cond: (id = 2)', 'an index is used');
SELECT is(plan_of('people', '[{$sort: {id: -1}}, {$limit: 2}, {$project: {id: 1}}]') ~ 'Index Only Scan Backward using people_pkey', true, 'and its order');

SELECT is(sql('people', '[{$match: {$expr: {$lt: ["$born", "$$NOW"]}, id: {$gt: 1}}}, {$sort: {id: 1}}, {$project: {id: 1}}]'),
  $q$SELECT bson_build('id'::text, id) AS doc FROM people t WHERE id > 1 AND docpatterns._match(bson_build('born'::text, born), '{"$expr": {"$lt": ["$born", "$$NOW"]}}'::bson, NULL::bson) ORDER BY id$q$, 'only a condition that varies takes a document');
SELECT is(run('people', '[{$match: {$expr: {$gt: [0, {$rand: {}}]}, id: {$lt: 3}}}, {$count: "n"}]'), NULL, 'one by chance, too');

-- ---------------------------------------------------------------- $lookup
SELECT is(run('people', '[{$sort: {id: 1}}, {$lookup: {from: "people", localField: "id", foreignField: "boss", as: "team"}}, {$project: {_id: 0, n: "$team.name"}}]'), E'{"n": ["Bob", "Eve"]}\n{"n": []}\n{"n": []}', '$lookup by a column with an index');
SELECT is(run('people', '[{$sort: {id: 1}}, {$lookup: {from: "people", localField: "boss", foreignField: "id", as: "b"}}, {$project: {_id: 0, n: "$b.name"}}]'), E'{"n": []}\n{"n": ["Ada"]}\n{"n": ["Ada"]}', 'by the primary key');
SELECT is(run('people', '[{$match: {id: 1}}, {$lookup: {from: "people", localField: "boss", foreignField: "boss", as: "b"}}, {$project: {_id: 0, n: "$b.name"}}]'), '{"n": ["Ada"]}', 'null finds NULL');
SELECT is(run('people', '[{$sort: {id: 1}}, {$lookup: {from: "people", localField: "name", foreignField: "name", as: "b"}}, {$unwind: "$b"}, {$project: {_id: 0, n: "$b.id"}}]'), E'{"n": {"$numberInt": "1"}}\n{"n": {"$numberInt": "2"}}\n{"n": {"$numberInt": "3"}}', 'by a column without one');
SELECT is(run('people', '[{$sort: {id: 1}}, {$lookup: {from: "people", let: {b: "$boss"}, pipeline: [{$match: {$expr: {$eq: ["$boss", "$$b"]}}}, {$sort: {id: 1}}], as: "b"}}, {$project: {_id: 0, n: "$b.id"}}]'),
  E'{"n": [{"$numberInt": "1"}]}\n{"n": [{"$numberInt": "2"}, {"$numberInt": "3"}]}\n{"n": [{"$numberInt": "2"}, {"$numberInt": "3"}]}', 'with a variable');
SELECT is(plan_of('people', '[{$match: {id: 1}}, {$lookup: {from: "people", localField: "id", foreignField: "boss", as: "team"}}]') ~ 'Index Scan using people_boss_idx', true, 'the index of the column is used');
SELECT is(plan_of('people', '[{$match: {id: 2}}, {$lookup: {from: "people", localField: "boss", foreignField: "id", as: "b"}}]') ~ 'Index Scan using people_pkey on people t_1|Index Scan using people_pkey on people t.*Index Scan using people_pkey', true, 'and the key');
SELECT throws_ok($$SELECT collection_aggregate('people', '[{$graphLookup: {from: "people", startWith: "$boss", connectFromField: "boss", connectToField: "id", as: "c"}}]')$$, '42703', NULL, '$graphLookup needs documents');

-- ---------------------------------------------------------------- partitions
CREATE TABLE parts (k int, at timestamptz NOT NULL, v int) PARTITION BY RANGE (at);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM ('2024-02-01') TO ('2024-03-01');
SELECT is(plan_of('parts', '[{$match: {at: {$gte: ISODate("2024-02-05T00:00:00Z")}}}]') ~ 'parts_1', false, 'partitions are pruned');

-- ---------------------------------------------------------------- a relation of buckets
SELECT bucket_create('readings', group_by => '{sensor}', time_field => 'ts', span => '1 hour', columns => 'sensor int, ts timestamptz, temperature float8, moisture int');
INSERT INTO readings SELECT s, timestamptz '2024-05-01 00:00+00' + m * interval '1 min', 20 + m % 16 / 16.0, nullif(500 + m % 7, 503) FROM generate_series(1, 5) s, generate_series(0, 599) m;
SELECT bucket_pack('readings');
ANALYZE readings;
SELECT collection_create('plain');
INSERT INTO plain (doc) SELECT row_to_bson(r) FROM readings r;
\set totals '"n": {"$sum": 1}, "t": {"$avg": "$temperature"}, "s": {"$sum": "$temperature"}, "m": {"$sum": "$moisture"}, "a": {"$avg": "$moisture"}, "lo": {"$min": "$moisture"}, "hi": {"$max": "$temperature"}, "last": {"$max": "$ts"}'
\set hours '[{"$match": {"ts": {"$gte": {"$date": "2024-05-01T02:00:00Z"}, "$lt": {"$date": "2024-05-01T05:00:00Z"}}, "sensor": 3}}, {"$group": {"_id": {"s": "$sensor", "h": {"$dateTrunc": {"date": "$ts", "unit": "hour"}}}, ' :totals '}}]'
SELECT is(plan_of('readings', :'hours'), 'Foreign Scan / Relation: readings / Buckets: all / Bucket Cond: (ts >= ''2024-05-01 02:00:00+00''::timestamp with time zone) AND (ts < ''2024-05-01 05:00:00+00''::timestamp with time zone) AND (sensor = 3)', 'groups of hours come from headers');
SELECT is((SELECT string_agg(trim(l), ', ') FROM collection_explain('readings', :'hours', true) AS l WHERE l ~ 'Buckets (Answered|Read)'), 'Buckets Answered From Header: 3, Buckets Read: 0', 'and no bucket is read');
SELECT is(run('readings', :'hours', false), run('plain', :'hours', false), 'with the results of a collection');
\set all '[{"$group": {"_id": null, ' :totals '}}]'
SELECT is(plan_of('readings', :'all') ~ '^Foreign Scan / Filter: \(\(count\(\*\)\) > 0\) / Relation: readings', true, 'one group of all, too');
SELECT is(run('readings', :'all'), run('plain', :'all'), 'with the same result');
\set weeks '[{"$group": {"_id": {"$dateTrunc": {"date": "$ts", "unit": "week", "binSize": 2}}, "n": {"$sum": 1}, "a": {"$avg": "$moisture"}}}]'
SELECT is(plan_of('readings', :'weeks') ~ '^Foreign Scan', true, 'other spans, too');
SELECT is(run('readings', :'weeks', false), run('plain', :'weeks', false), 'with the same results');
SELECT is(plan_of('readings', '[{$sortByCount: "$sensor"}]') ~ 'Foreign Scan / Relation: readings', true, '$sortByCount');
SELECT is(plan_of('readings', '[{$match: {sensor: 2}}, {$count: "n"}]') ~ '^Foreign Scan / Filter: \(\(count\(\*\)\) > 0\) / Relation: readings / Buckets: [a-z ]+ / Bucket Cond: \(sensor = 2\)$', true, '$count');
SELECT is(plan_of('readings', '[{$match: {moisture: {$gt: 505}}}, {$project: {ts: 1}}]') ~ 'Header Cond: \(moisture > 505\)', true, 'a condition on a measured column skips buckets');
SELECT is(plan_of('readings', '[{$match: {sensor: 2}}, {$sort: {ts: -1}}, {$limit: 3}, {$project: {moisture: 1}}]') ~ 'Limit / Foreign Scan on readings t / Buckets: by index, from the end / Bucket Cond: \(sensor = 2\)$', true, 'the order of time needs no sort');
SELECT is(run('readings', '[{$match: {sensor: 2}}, {$sort: {ts: -1}}, {$limit: 3}]'), run('plain', '[{$match: {sensor: 2}}, {$sort: {ts: -1}}, {$limit: 3}, {$unset: "_id"}]'), 'and is right');

SELECT collection_create('sensors');
INSERT INTO sensors (doc) SELECT bson_build('_id', i) FROM generate_series(1, 3) i;
SELECT bucket_create('strict', group_by => '{sensor}', time_field => 'ts', span => '1 hour', columns => 'sensor int NOT NULL, ts timestamptz, temperature float8, moisture int');
INSERT INTO strict SELECT * FROM readings;
SELECT bucket_pack('strict');
ANALYZE strict;
\set latest '[{"$sort": {"_id": 1}}, {"$lookup": {"from": "strict", "let": {"s": "$_id"}, "pipeline": [{"$match": {"ts": {"$lt": {"$date": "2024-05-01T05:00:00Z"}}, "$expr": {"$eq": ["$sensor", "$$s"]}}}, {"$sort": {"ts": -1}}, {"$limit": 1}], "as": "last"}}]'
SELECT is(plan_of('sensors', :'latest') ~ 'Limit / Foreign Scan on strict t_1 / Filter: [^/]* / Buckets: by index, from the end / Bucket Cond: \(ts < ''2024-05-01 05:00:00\+00''::timestamp with time zone\) AND \(sensor = \(', true, '$lookup of the latest measurement reads one bucket');
SELECT is(run('sensors', :'latest'), (SELECT string_agg(bson_to_json(bson_build('_id', s, 'last', bson_array(row_to_bson(r))), 'canonical'), E'\n' ORDER BY s) FROM generate_series(1, 3) s, LATERAL (SELECT * FROM readings WHERE sensor = s AND ts < '2024-05-01 05:00+00' ORDER BY ts DESC LIMIT 1) r), 'and is right');

INSERT INTO strict SELECT 9, timestamptz '2024-06-01 00:00+00' + m * interval '1 min', m % 10, m % 7 FROM generate_series(1, 50000) m;
ANALYZE strict;
SELECT is(plan_of('strict', '[{$group: {_id: {s: "$sensor", h: {$dateTrunc: {date: "$ts", unit: "hour"}}}, n: {$sum: 1}, t: {$avg: "$temperature"}, m: {$sum: "$moisture"}}}]') ~ '^Foreign Scan', true, 'there are not more groups than buckets');

-- with documents: the other columns are their fields
SELECT bucket_create('events', columns => 'device text COLLATE "C", at timestamptz, doc bson', group_by => '{device}', time_field => 'at');
INSERT INTO events SELECT 'd' || i % 3, timestamptz '2024-05-01 00:00+00' + i * interval '1 min', bson_build('v', i % 10, 'device', 'x') FROM generate_series(1, 100) i;
INSERT INTO events VALUES ('d9', '2024-05-02', NULL);
SELECT is(run('events', '[{$match: {device: "d1", v: {$gt: 8}}}, {$sort: {at: -1}}, {$limit: 1}]'), '{"v": {"$numberInt": "9"}, "device": "d1", "at": {"$date": {"$numberLong": "1714526340000"}}}', 'columns beside documents are fields');
SELECT is(run('events', '[{$match: {device: "d9"}}]'), '{"device": "d9", "at": {"$date": {"$numberLong": "1714608000000"}}}', 'also without a document');
SELECT is(run('events', '[{$group: {_id: "$device", n: {$sum: "$v"}}}, {$sort: {_id: 1}}, {$limit: 1}]'), '{"_id": "d0", "n": {"$numberInt": "153"}}', 'they group documents');
SELECT is(plan_of('events', '[{$match: {at: {$gte: ISODate("2024-05-01T00:00:00Z")}}}, {$group: {_id: "$device", n: {$sum: 1}}}]') ~ '^Foreign Scan / Relation: events', true, 'or headers');
SELECT is(plan_of('events', '[{$match: {device: "d1", v: 5}}]') ~ 'Bucket Cond: \(device = ''d1''::text\)', true, 'and find buckets');

-- ---------------------------------------------------------------- rows beside documents
CREATE TABLE r (_id int PRIMARY KEY, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, n numeric, s text, sc varchar COLLATE "C", tz timestamptz, ts timestamp, d date, b bool, u uuid, o objectid, a int[], nn int NOT NULL);
INSERT INTO r SELECT i, nullif(k[1], 9) - 3, CASE WHEN k[2] < 9 THEN k[2] * 1000000000::int8 % 2147483647 END, CASE k[3] WHEN 0 THEN NULL WHEN 1 THEN 9223372036854775807 WHEN 2 THEN 3000000000 ELSE k[3] END,
    (ARRAY[NULL, 'NaN', 'Infinity', 0.1, 2.5, 5, -3])[k[4]]::float4, (ARRAY[NULL, 'NaN', '-Infinity', 0.1, 2.5, 5, -3, 1e300])[k[5]]::float8, (ARRAY[NULL, 'NaN', 2.50, 0.10, 5.00, -3.25])[k[6]]::numeric,
    (ARRAY[NULL, 'a', 'B', 'b', 'Ä', '', 'ab'])[k[7]], (ARRAY[NULL, 'a', 'B', 'b', 'Ä', '', 'ab'])[k[8]],
    timestamptz '1999-12-31 23:59:59.9985+00' + nullif(k[9], 9) * interval '0.0005 s', timestamp '2024-01-01' + k[10] * interval '5.0005 h', date '2024-01-01' + nullif(k[11], 3), (ARRAY[true, false])[k[12] % 4],
    (ARRAY['00000000-0000-0000-0000-000000000001', 'ffffffff-0000-0000-0000-000000000001'])[k[13] % 3]::uuid, (ARRAY['000000000000000000000001', 'ff0000000000000000000001'])[k[14] % 3]::objectid,
    (ARRAY['{1,2}', '{}', NULL, '{5}'])[k[15] % 5]::int[], k[16]
  FROM generate_series(1, 200) i CROSS JOIN LATERAL (SELECT array_agg((random() * 9)::int + 0 * j) AS k FROM generate_series(1, 16) j WHERE i > 0) AS k;
SELECT collection_create('c');
INSERT INTO c (doc) SELECT row_to_bson(r) FROM r;
CREATE TABLE columns AS SELECT attname::text AS c FROM pg_attribute WHERE attrelid = 'r'::regclass AND attnum > 0;
CREATE TABLE values AS SELECT v::bson_value FROM unnest(ARRAY['0', '5', '5.5', '2.5', '0.1', '-3', '{"$numberLong": "3000000000"}', '9223372036854775807', '1e300', '1e19', '{"$numberDouble": "NaN"}', '{"$numberDouble": "Infinity"}',
  '{"$numberDecimal": "2.5"}', '{"$numberDecimal": "0.1"}', '{"$numberDecimal": "5E+0"}', '{"$numberDecimal": "NaN"}', '0.10000000149011612', '"a"', '"b"', '"B"', '""', '"Ä"', '"a\u0000"', 'null', 'true', 'false', '[1, 2]', '[]', '{}',
  '{"$date": "1999-12-31T23:59:59.999Z"}', '{"$date": "2000-01-01T00:00:00Z"}', '{"$date": "2024-01-01T10:00:00.001Z"}', '{"$date": "2024-01-03T12:00:00Z"}', '{"$date": "2024-01-05T00:00:00Z"}', '{"$date": {"$numberLong": "9000000000000000000"}}',
  '{"$uuid": "00000000-0000-0000-0000-000000000001"}', '{"$oid": "000000000000000000000001"}', '{"$minKey": 1}', '{"$undefined": true}']) AS v;
CREATE TABLE conditions AS
  SELECT bson_build(c, bson_build(op, v)) AS f FROM columns, values, unnest(ARRAY['$eq', '$gt', '$gte', '$lt', '$lte', '$ne']) AS op WHERE random() < 0.3
  UNION ALL SELECT bson_build(c, v) FROM columns, values WHERE bson_typeof(v) <> 'document' AND random() < 0.3
  UNION ALL SELECT bson_build(c, bson_build(op, bson_array(x.v, y.v))) FROM columns, values x, values y, unnest(ARRAY['$in', '$nin']) AS op WHERE random() < 0.01;
-- Whether a pipeline has other results for the rows than for the documents
CREATE FUNCTION differ(pipeline bson_value, ordered bool DEFAULT false, rows regclass DEFAULT 'r', documents regclass DEFAULT 'c') RETURNS bool LANGUAGE sql AS $$
  SELECT run(rows, pipeline, ordered) IS DISTINCT FROM run(documents, pipeline, ordered) $$;
SELECT is_empty($$SELECT f FROM conditions WHERE differ(bson_array(bson_build('$match', f), bson '{$project: {_id: 1}}'))$$, 'conditions');
SELECT is_empty($$SELECT p FROM (SELECT bson_array(bson_build('$match', bson_build(op, bson_array(f, g))), bson_build('$match', h), bson '{$sort: {s: 1, _id: 1}}', bson '{$project: {_id: 1}}') AS p
    FROM (SELECT f, lead(f) OVER w AS g, lead(f, 2) OVER w AS h FROM conditions WINDOW w AS (ORDER BY random()) LIMIT 150) AS x, unnest(ARRAY['$and', '$or']) AS op) AS x WHERE differ(p, true)$$, 'several of them');
CREATE TABLE groups AS SELECT bson_build('$group', bson_build('_id', k) || a) AS g
  FROM (SELECT to_bson('$' || c) FROM columns UNION ALL SELECT bson_build('x', '$' || x.c, 'y', '$' || y.c)::bson_value FROM columns x, columns y WHERE random() < 0.05
        UNION ALL SELECT unnest(ARRAY['null', '5', '{}', '"$nope"', '{x: "$nope", y: "$i4"}', '[5]', '{x: 5}']::bson_value[])) AS k (k),
    (SELECT bson_object_agg(c || op, bson_build('$' || op, '$' || c)) FROM columns, unnest(ARRAY['sum', 'avg']) AS op WHERE c <> 'a'
     UNION ALL SELECT bson_object_agg(c || op, bson_build('$' || op, '$' || c)) FROM columns, unnest(ARRAY['min', 'max']) AS op WHERE c <> 'a'
     UNION ALL SELECT unnest(ARRAY['{n: {$sum: 1}, m: {$count: {}}}', '{n: {$sum: "$nope"}, m: {$avg: "$a"}}', '{n: {$min: {$add: [1, "$nn"]}}}']::bson[])) AS a (a);
SELECT is_empty($$SELECT g FROM groups WHERE differ(bson_array(g))$$, 'groups');
SELECT is_empty($$SELECT g FROM groups WHERE random() < 0.3 AND differ(bson_array(bson '{$match: {i4: "none"}}', g))$$, 'groups of nothing');
SELECT is_empty($$SELECT p FROM (SELECT bson_array(bson_build('$sort', bson_build(x.c, d1, y.c, d2) || bson '{_id: 1}')) AS p FROM columns x, columns y, (VALUES (1, -1), (-1, 1)) AS d (d1, d2) WHERE x.c <> y.c AND '_id' NOT IN (x.c, y.c) AND random() < 0.3
    UNION ALL SELECT bson_array(bson_build('$match', bson_build(x.c, bson_build('$ne', null))), bson_build('$sort', bson_build(x.c, d) || bson_build('_id', 1)), bson '{$limit: 5}') FROM columns x, (VALUES (1), (-1)) AS d (d) WHERE x.c <> '_id'
    UNION ALL SELECT bson_array(bson_build('$sort', bson_build(x.c, d)), bson_build('$group', bson_build('_id', null, 'l', bson_build('$push', '$' || x.c)))) FROM columns x, (VALUES (1), (-1)) AS d (d)) AS x WHERE differ(p, true)$$, 'orders');
-- whole pipelines of such stages
CREATE FUNCTION column_() RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT c FROM columns ORDER BY random() LIMIT 1 $$;
CREATE FUNCTION stages(kind int) RETURNS bson_value LANGUAGE plpgsql VOLATILE AS $f$
BEGIN
  RETURN CASE kind
    WHEN 0 THEN bson_array(bson_build('$match', (SELECT f FROM conditions ORDER BY random() LIMIT 1)))
    WHEN 1 THEN bson_array(bson_build('$sort', bson_build(column_(), 1, column_(), -1) || bson '{_id: 1}'), bson '{$limit: 40}')
    WHEN 2 THEN bson_array(bson_build('$project', bson_build(column_(), 1, column_(), true, '_id', 1)))
    WHEN 3 THEN bson_array(bson_build('$project', bson_build(column_(), 0) || bson '{nn: 0, _id: 1}'))
    WHEN 4 THEN bson_array(bson_build('$set', bson_build(column_(), '$' || column_(), 'more', bson '{$ifNull: ["$nn", 5]}') || bson '{_id: "$_id"}'))
    WHEN 5 THEN bson_array(bson_build('$group', bson_build('_id', '$' || column_(), 's', bson '{$sum: "$i8"}', column_(), bson_build('$max', '$' || column_()), 'n', bson '{$sum: 1}')))
    WHEN 6 THEN bson_array(bson_build('$unset', bson_array(column_())), bson_build('$match', (SELECT f FROM conditions ORDER BY random() LIMIT 1)))
    WHEN 7 THEN bson_array(bson_build('$lookup', bson_build('from', 'r', 'localField', column_(), 'foreignField', '_id', 'as', 'l')), bson '{$set: {l: {$size: "$l"}}}')
    WHEN 8 THEN bson_array(bson_build('$lookup', bson_build('from', 'r', 'let', bson_build('v', '$' || column_()), 'pipeline', bson_array(bson_build('$match', bson_build('i4', bson_build('$ne', 7),
      '$expr', bson_build('$eq', bson_array('$' || column_(), '$$v')))), bson '{$sort: {_id: 1}}', bson '{$limit: 2}', bson '{$project: {i2: 1}}'), 'as', 'l')))
    ELSE bson_array(bson_build('$match', bson_build('$or', bson_array((SELECT f FROM conditions ORDER BY random() LIMIT 1), (SELECT f FROM conditions ORDER BY random() LIMIT 1)))), bson_build('$unset', column_())) END;
END $f$;
CREATE TABLE pipelines AS
  SELECT (SELECT bson_array(VARIADIC array_agg(x ORDER BY j, k)) FROM generate_series(1, 4) j, LATERAL (SELECT e, k FROM bson_elements(stages((random() * 9.9 - 0.5 + i * 0)::int)) WITH ORDINALITY AS e (e, k)) AS s (x, k)) AS p
  FROM generate_series(1, :pipelines) i;
SELECT is_empty($$SELECT p FROM pipelines WHERE differ(p)$$, 'pipelines');

CREATE TABLE times AS SELECT i AS _id, timestamptz '1950-01-01 00:00+00' + random() * interval '100 years' AS tz, timestamp '1950-01-01' + random() * interval '100 years' AS ts FROM generate_series(1, 300) i
  UNION ALL SELECT 1000 + extract(epoch FROM t)::int8 / 60 + i, t + i * interval '7 min', NULL FROM unnest('{2023-10-28 20:00+00,2018-11-03 20:00+00,2018-02-17 20:00+00}'::timestamptz[]) t, generate_series(1, 100) i;
SELECT collection_create('time_documents');
INSERT INTO time_documents (doc) SELECT row_to_bson(t) FROM times t;
SELECT is_empty($$SELECT p FROM (SELECT bson_array(bson_build('$group', bson_build('_id', bson_build('$dateTrunc', bson_build('date', '$' || c, 'unit', u, 'binSize', n) || z || w), 'n', bson '{$sum: 1}'))) AS p
    FROM unnest(ARRAY['tz', 'ts']) c, unnest(ARRAY['year', 'quarter', 'month', 'week', 'day', 'hour', 'minute', 'millisecond', 'bad']) AS u, unnest(ARRAY[1, 2, 5, 48, 0]) n,
      unnest(ARRAY['{}', '{timezone: "Europe/Paris"}', '{timezone: "America/Sao_Paulo"}', '{timezone: "+05:30"}', '{timezone: "Bad"}', '{timezone: "$tz"}']::bson[]) AS z,
      unnest(ARRAY['{}', '{startOfWeek: "Monday"}', '{startOfWeek: "fri"}', '{startOfWeek: "sunny"}']::bson[]) AS w WHERE (u = 'week' OR w = '{}')) AS x WHERE random() < 0.5 AND differ(p, false, 'times', 'time_documents')$$, '$dateTrunc as bucket_start()');
SELECT * FROM finish();
ROLLBACK;
