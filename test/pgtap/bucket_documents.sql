-- Time series of documents: relations of buckets that a collection of the same documents answers for, too.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT no_plan();

CREATE SCHEMA bucket_documents;
SET search_path = bucket_documents, public;

-- Declaring -----------------------------------------------------------------------------------------------------------------

SELECT bucket_create('readings', timeseries => '{timeField: "ts", metaField: "meta", granularity: "minutes"}', retain => '400 days') \g /dev/null
SELECT is((SELECT array_agg(attname || ' ' || format_type(atttypid, -1) || attnotnull ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'readings'::regclass AND attnum > 0),
          '{"meta bson_valuefalse","ts timestamp with time zonetrue","doc bsontrue"}', 'the columns: group, time and document');
SELECT is((SELECT options ->> 'span' FROM pattern_list('readings')), '1 day', 'minutes: buckets of a day');
CREATE FUNCTION span_of(timeseries bson) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  PERFORM bucket_create('spans', timeseries => timeseries);
  result := (SELECT options ->> 'span' FROM pattern_list('spans'));
  DROP FOREIGN TABLE spans;
  RETURN result;
END $$;
SELECT is(span_of('{timeField: "ts", granularity: "seconds"}'), '01:00:00', 'seconds: an hour');
SELECT is(span_of('{timeField: "ts", granularity: "hours"}'), '30 days', 'hours: 30 days');
SELECT is(span_of('{timeField: "ts", granularity: "seconds", bucketMaxSpanSeconds: 300, bucketRoundingSeconds: 300}'), '00:05:00', 'a span in seconds');
SELECT is(span_of('{timeField: "ts"}'), '01:00:00', 'an hour by default');
SELECT throws_ok($$SELECT bucket_create('x', timeseries => '{metaField: "meta"}')$$, '22023', 'a time series requires a timeField');
SELECT throws_ok($$SELECT bucket_create('x', timeseries => '{timeField: 5}')$$, '22023', 'option "timeField" of a time series must be a string');
SELECT throws_ok($$SELECT bucket_create('x', timeseries => '{timeField: "ts", bucketMaxSpanSeconds: "5"}')$$, '22023', 'option "bucketMaxSpanSeconds" of a time series must be a number');
SELECT throws_ok($$SELECT bucket_create('x', timeseries => '{timeField: "ts", granularity: "days"}')$$, '22023', 'granularity of a time series must be seconds, minutes or hours, not "days"');
SELECT throws_ok($$SELECT bucket_create('x', timeseries => '{timeField: "ts", timefield: "ts"}')$$, '22023', 'time series have no option "timefield"');
SELECT throws_ok($$SELECT bucket_create('x', timeseries => '{timeField: "ts", metaField: "ts"}')$$, '22023', 'group_by and time_field must name different columns');
SELECT throws_ok($$SELECT bucket_create('x', timeseries => '{timeField: "ts"}', columns => 'a int')$$, '22023', 'exactly one of columns, columns_of and timeseries must be specified');
SELECT throws_ok($$SELECT bucket_create('x', timeseries => '{timeField: "ts"}', time_field => 'ts')$$, '22023', 'time_field and timeseries cannot be combined');
SELECT throws_ok($$SELECT bucket_create('x', timeseries => '{timeField: "ts"}', granularity => '1 minute', same_slot => 'add')$$, '22023', 'documents cannot be added');
SELECT throws_ok($$SELECT bucket_create('x', timeseries => '{timeField: "ts"}', span => NULL)$$, '22023', 'span and time_field must be specified together');

-- Documents ---------------------------------------------------------------------------------------------------------------

SELECT is(array(SELECT collection_insert('readings', '{ts: ISODate("2024-01-01T10:00:00Z"), meta: {sensor: 5}, temp: 20.5}', '{_id: 1, temp: 21, meta: {sensor: 5}, ts: ISODate("1965-01-01T10:00:00.125Z")}')),
          ARRAY[NULL, '1']::bson_value[], 'a document keeps its _id, and needs none');
SELECT is(array(SELECT collection_insert('readings', '[{ts: ISODate("2024-01-01T10:01:00Z")}, {later: {field: [1, 2]}, ts: ISODate("2024-01-01T10:02:00Z"), meta: null}]')),
          ARRAY[NULL, NULL]::bson_value[], 'meta is optional, fields need no declaration');
SELECT is((SELECT array_agg(r::text ORDER BY ts) FROM readings r), $t${"(\"{\"\"sensor\"\": 5}\",\"1965-01-01 10:00:00.125+00\",\"{\"\"_id\"\": 1, \"\"temp\"\": 21, \"\"meta\"\": {\"\"sensor\"\": 5}, \"\"ts\"\": {\"\"$date\"\": {\"\"$numberLong\"\": \"\"-157730399875\"\"}}}\")","(\"{\"\"sensor\"\": 5}\",\"2024-01-01 10:00:00+00\",\"{\"\"ts\"\": {\"\"$date\"\": \"\"2024-01-01T10:00:00Z\"\"}, \"\"meta\"\": {\"\"sensor\"\": 5}, \"\"temp\"\": 20.5}\")","(,\"2024-01-01 10:01:00+00\",\"{\"\"ts\"\": {\"\"$date\"\": \"\"2024-01-01T10:01:00Z\"\"}}\")","(null,\"2024-01-01 10:02:00+00\",\"{\"\"later\"\": {\"\"field\"\": [1, 2]}, \"\"ts\"\": {\"\"$date\"\": \"\"2024-01-01T10:02:00Z\"\"}, \"\"meta\"\": null}\")"}$t$,
          'columns follow the document, whose fields keep their order');
SELECT throws_ok($$SELECT collection_insert('readings', '{meta: {sensor: 5}}')$$, '23502', 'a document of "readings" has no time in field "ts"');
SELECT throws_ok($$SELECT collection_insert('readings', '{ts: null}')$$, '23502', 'a document of "readings" has no time in field "ts"');
SELECT throws_ok($$SELECT collection_insert('readings', '{ts: "2024-01-01"}')$$, '23514', 'field "ts" of a document of "readings" must be a date');
SELECT throws_ok($$SELECT collection_insert('readings', '{ts: [ISODate("2024-01-01T10:00:00Z")]}')$$, '23514', 'field "ts" of a document of "readings" must be a date');
SELECT throws_ok($$SELECT collection_insert('readings', '{ts: {$date: {$numberLong: "9223372036854775807"}}}')$$, '22008', 'timestamp out of range');
SELECT throws_ok($$SELECT collection_insert('readings', '{ts: ISODate("2024-01-01T10:00:00Z"), meta: [1]}')$$, '23514', 'field "meta" of a document of "readings" must not be an array');
SELECT throws_ok($$INSERT INTO readings (doc) VALUES (NULL)$$, '23502');
SELECT throws_ok($$INSERT INTO readings (ts, doc) VALUES ('2024-01-02', '{ts: ISODate("2024-01-01T10:00:00Z")}')$$, '23514', 'column "ts" of "readings" follows a field of the document');
SELECT throws_ok($$INSERT INTO readings (meta, doc) VALUES ('5', '{ts: ISODate("2024-01-01T10:00:00Z")}')$$, '23514', 'column "meta" of "readings" follows a field of the document');
SELECT throws_ok($$UPDATE readings SET meta = '7'$$, '23514', 'column "meta" of "readings" follows a field of the document');
SELECT lives_ok($$INSERT INTO readings VALUES ('5', '2024-01-01 10:00Z', '{ts: ISODate("2024-01-01T10:00:00Z"), meta: 5}')$$, 'the same values are accepted');
UPDATE readings SET doc = bson_set(doc, 'ts', timestamptz '2023-05-05'), meta = '5' WHERE doc @@ '{meta: 5}';
SELECT is((SELECT (meta, ts)::text FROM readings WHERE meta = 5), '(5,"2023-05-05 00:00:00+00")', 'an update of the document changes its columns');
SELECT results_eq($$INSERT INTO readings (doc) VALUES ('{ts: ISODate("2024-01-01T10:00:00Z"), meta: 6}') RETURNING meta, ts$$, $$VALUES ('6'::bson_value, timestamptz '2024-01-01 10:00')$$, 'RETURNING shows them');
COPY readings (doc) FROM stdin;
{"ts": {"$date": "2024-02-01T10:00:00Z"}, "meta": 7}
\.
SELECT is((SELECT ts FROM readings WHERE meta = 7), '2024-02-01 10:00', 'COPY');
CREATE TABLE seen (t text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO bucket_documents.seen VALUES (TG_WHEN || NEW::text); RETURN NEW; END $$;
CREATE TRIGGER b BEFORE INSERT ON readings FOR EACH ROW EXECUTE FUNCTION see();
CREATE TRIGGER a AFTER INSERT ON readings FOR EACH ROW EXECUTE FUNCTION see();
INSERT INTO readings (doc) VALUES ('{ts: ISODate("2024-03-01T10:00:00Z"), meta: 8}');
SELECT is(array(SELECT t FROM seen ORDER BY t DESC), $t${"BEFORE(,,\"{\"\"ts\"\": {\"\"$date\"\": \"\"2024-03-01T10:00:00Z\"\"}, \"\"meta\"\": 8}\")","AFTER(8,\"2024-03-01 10:00:00+00\",\"{\"\"ts\"\": {\"\"$date\"\": \"\"2024-03-01T10:00:00Z\"\"}, \"\"meta\"\": 8}\")"}$t$, 'AFTER triggers see them');
DROP TRIGGER a ON readings;
DROP TRIGGER b ON readings;

-- What such a relation cannot do ------------------------------------------------------------------------------------------------

SELECT throws_ok($$SELECT collection_update('readings', '{meta: 8}', '{$set: {a: 1}}')$$, '0A000', 'cannot distinguish the rows of "readings"');
SELECT throws_ok($$SELECT collection_replace('readings', '{meta: 8}', '{a: 1}')$$, '0A000', 'cannot distinguish the rows of "readings"');
SELECT throws_ok($$SELECT collection_delete('readings', '{meta: 8}')$$, '0A000', 'cannot distinguish the rows of "readings"');
SELECT throws_ok($$SELECT collection_find_one_and_update('readings', '{meta: 8}', '{$set: {a: 1}}')$$, '0A000', 'cannot distinguish the rows of "readings"');
SELECT throws_ok($$SELECT collection_find_one_and_replace('readings', '{meta: 8}', '{a: 1}')$$, '0A000', 'cannot distinguish the rows of "readings"');
SELECT throws_ok($$SELECT collection_find_one_and_delete('readings', '{meta: 8}')$$, '0A000', 'cannot distinguish the rows of "readings"');
SELECT throws_ok($$SELECT collection_create_index('readings', '{temp: 1}')$$, '42809');
SELECT throws_ok($$SELECT collection_validator('readings', '{temp: 1}')$$, '42809', '"readings" is not a table');
SELECT throws_ok($$SELECT collection_aggregate('readings', '[{$out: "readings"}]')$$, '42809');
SELECT is((SELECT error_code FROM collection_bulk_write('readings', '[{deleteOne: {filter: {meta: 8}}}]')), '0A000', 'deleteOne in a bulk');
SELECT is((SELECT array_agg((operation, matched, modified, deleted, error_code)::text) FROM collection_bulk_write('readings', '[{insertOne: {document: {ts: ISODate("2024-01-01T10:00:00Z"), meta: 9}}},
            {updateMany: {filter: {meta: 9}, update: {$set: {a: 1}}}}, {deleteMany: {filter: {a: 1}}}]')), '{"(insertOne,,,,)","(updateMany,1,1,,)","(deleteMany,,,1,)"}', 'the others work there');

-- Plans ---------------------------------------------------------------------------------------------------------------------

SELECT bucket_create('r', timeseries => '{timeField: "ts", metaField: "meta"}', span => '1 day') \g /dev/null
SELECT bucket_create('g', timeseries => '{timeField: "ts", metaField: "meta"}', span => '7 days', group_by => '{meta.sensor,meta.room}', max_count => 40) \g /dev/null
SELECT is((SELECT array_agg(attname || ' ' || format_type(atttypid, -1) ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'g'::regclass AND attnum > 0),
          '{"meta.sensor bson_value","meta.room bson_value","ts timestamp with time zone","doc bson"}', 'groups of fields below meta');
SELECT throws_ok($$SELECT collection_insert('g', '{ts: ISODate("2024-01-01T10:00:00Z"), meta: {sensor: [1]}}')$$, '23514', 'field "meta.sensor" of a document of "g" must not be an array');
SELECT throws_ok($$SELECT collection_insert('g', '{ts: ISODate("2024-01-01T10:00:00Z"), meta: [{sensor: 1}]}')$$, '23514', 'field "meta.sensor" of a document of "g" must not be an array');

CREATE FUNCTION plan(rel regclass, query bson_value) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(trim(l), e'\n') FROM collection_explain(rel, query) l WHERE l ~ 'Bucket|Filter|Sort|Relation' $$;
SET max_parallel_workers_per_gather = 0;
INSERT INTO r (doc) SELECT bson_build('ts', timestamptz '2024-01-01' + i * interval '10 min', 'meta', bson_build('sensor', i % 50, 'room', 'a'), 'temp', i % 7) FROM generate_series(0, 19999) i;
INSERT INTO g (doc) SELECT doc FROM r;
SELECT is(plan('g', '{"meta.sensor": 5, ts: {$gte: ISODate("2024-01-03T00:00:00Z"), $lt: ISODate("2024-01-04T00:00:00Z")}}'),
          e'Buckets: by index\nBucket Cond: ("meta.sensor" = ''5''::bson_value) AND (ts >= ''2024-01-03 00:00:00+00''::timestamp with time zone) AND (ts < ''2024-01-04 00:00:00+00''::timestamp with time zone)',
          'a filter on group and time is a search of the index, which decides it');
SELECT is(plan('g', '{$and: [{"meta.sensor": {$eq: 5}}, {ts: ISODate("2024-01-03T00:00:00Z")}]}'),
          e'Buckets: by index\nBucket Cond: ("meta.sensor" = ''5''::bson_value) AND (ts = ''2024-01-03 00:00:00+00''::timestamp with time zone)', 'likewise below $and');
SELECT is(plan('g', '{"meta.sensor": 5, temp: 3}'), e'Filter: (doc @@ ''{"meta.sensor": 5, "temp": 3}''::bson)\nBuckets: by index\nBucket Cond: ("meta.sensor" = ''5''::bson_value)', 'other fields are tested');
SELECT is(plan('r', '{meta: {sensor: 5, room: "a"}, temp: 3}'), e'Filter: (doc @@ ''{"meta": {"sensor": 5, "room": "a"}, "temp": 3}''::bson)\nBuckets: by index\nBucket Cond: (meta = ''{"sensor": 5, "room": "a"}''::bson_value)', 'the whole meta');
SELECT is(plan('r', '{"meta.sensor": 5}'), e'Filter: (doc @@ ''{"meta.sensor": 5}''::bson)\nBuckets: all\nGroup Filter: v of meta: {"$and": [{"v.sensor": 5}]}', 'a part of meta is tested once for each bucket');
SELECT is(plan('r', '[{$match: {ts: {$gt: ISODate("2024-01-03T00:00:00Z")}}}, {$count: "n"}]'), e'Filter: ((count(*)) > 0)\nRelation: r\nBuckets: all\nBucket Cond: (ts > ''2024-01-03 00:00:00+00''::timestamp with time zone)', 'headers answer counts');
SELECT is(plan('g', '[{$match: {"meta.sensor": 5, "meta.room": "a"}}, {$sort: {ts: -1}}, {$limit: 3}]'), e'Buckets: by index, from the end\nBucket Cond: ("meta.sensor" = ''5''::bson_value) AND ("meta.room" = ''"a"''::bson_value)', 'no sort by time in a group');
SELECT is(plan('r', '[{$sort: {ts: -1}}, {$limit: 3}]'), 'Buckets: all groups, in order of time, from the end', 'nor over all groups');
SELECT is(plan('r', '[{$sort: {ts: 1}}, {$limit: 3}]'), 'Buckets: all groups, in order of time', 'nor upwards');
SELECT matches(plan('r', '[{$sort: {ts: 1, temp: 1}}, {$limit: 3}]'), 'Sort Key', 'another order is sorted');
SELECT is(collection_count('r', '{ts: {$gt: ISODate("2024-01-03T00:00:00Z"), $lte: ISODate("2024-02-03T00:00:00Z")}}'), (SELECT count(*) FROM r WHERE ts > '2024-01-03' AND ts <= '2024-02-03'), 'the bounds');
TRUNCATE r, g;

-- Beside a collection -----------------------------------------------------------------------------------------------------------

SELECT collection_create('c') \g /dev/null
\set seed `echo ${SEED:-$(date +%s)}`
SELECT diag('seed ' || :seed);
SELECT setseed(:seed % 1000000 / 1000000.0);

CREATE FUNCTION pick(VARIADIC choices text[]) RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT choices[1 + floor(random() * cardinality(choices))::int] $$;
CREATE FUNCTION a_value() RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT pick('1', '2', '2.5', '-7', 'NumberLong(2)', 'NumberDecimal("2.50")', '"x"', '"2"', 'null', 'true', '[1, 2]', '[]', '[{b: 1}, {b: 2}]', '{b: 1}', '{b: [1, 5]}', '{}', 'ISODate("1960-01-01")', 'NaN', 'undefined') $$;
CREATE FUNCTION a_document(id int) RETURNS bson LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  parts text[] := ARRAY[format('_id: %s', id),
    format('ts: {$date: {$numberLong: "%s"}}', (random() * 400 * 86400000)::bigint + pick('-157766400000', '1700000000000')::bigint)];
BEGIN
  IF random() < 0.9 THEN
    parts := parts || ('meta: ' || pick('null', '7', '"s"', '{}', '{sensor: 1}', '{sensor: 1, room: "a"}', '{sensor: 1.0, room: "a"}', '{room: "a", sensor: 1}', '{sensor: 2, room: "b", tags: ["x", "y"]}',
      '{sensor: null}', '{sensor: {no: 3}}', '{sensor: "z", room: 5}', '{sensor: 2, room: "a"}'));
  END IF;
  IF random() < 0.8 THEN parts := parts || ('temp: ' || pick('1', '2', '20.5', '3.25', 'NumberLong(5)', 'NumberDecimal("1.10")')); END IF;
  IF random() < 0.6 THEN parts := parts || ('a: ' || a_value()); END IF;
  IF random() < 0.4 THEN parts := parts || ('tags: ' || pick('["x"]', '["x", "y"]', '[]', '"x"')); END IF;
  IF id > 300 AND random() < 0.5 THEN parts := parts || (pick('later', 'late2', 'late3') || ': ' || a_value()); END IF;
  RETURN ('{' || (SELECT string_agg(p, ', ' ORDER BY CASE WHEN id % 5 = 0 THEN random() END) FROM unnest(parts) p) || '}')::bson;
END $$;

INSERT INTO c (doc) SELECT a_document(i) FROM generate_series(1, 600) i;
-- some together, some one by one; some are packed, some wait
INSERT INTO r (doc) SELECT doc FROM c WHERE _id <= 300;
INSERT INTO g (doc) SELECT doc FROM c WHERE _id <= 300;
SELECT bucket_pack('r'), bucket_pack('g') \g /dev/null
DO $$ DECLARE d bson; BEGIN FOR d IN SELECT doc FROM c WHERE _id > 300 LOOP PERFORM collection_insert('r', d); PERFORM collection_insert('g', d); END LOOP; END $$;

-- of equal numbers of several types a group or a distinct value shows any
CREATE FUNCTION same_numbers(call text, x text) RETURNS text LANGUAGE sql AS $$
  SELECT CASE WHEN call ~ 'distinct|_id: "[$]meta"' THEN regexp_replace(regexp_replace(x, '[{]"[$]number(Long|Decimal)": "([^"]*)"[}]', '\2', 'g'), '[.]?0+(?!\d)', '', 'g') ELSE x END $$;
CREATE FUNCTION answer(call text, rel text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  result text[];
BEGIN
  EXECUTE format('SELECT array_agg(x) FROM (SELECT x FROM (SELECT same_numbers(%3$L, (%1$s)::text) AS x OFFSET 0) q ORDER BY %2$s OFFSET 0) z', replace(call, '%R', rel),
                 CASE WHEN call ~ 'sort' THEN 'NULL::int' ELSE 'x COLLATE "C"' END, call) INTO result;
  RETURN result;
END $$;
CREATE TABLE calls (call text);
-- those whose answers differ
CREATE FUNCTION differ() RETURNS SETOF text LANGUAGE sql AS $$
  SELECT rel || ': ' || call FROM calls, unnest(ARRAY['r', 'g']) rel WHERE answer(call, rel) IS DISTINCT FROM answer(call, 'c') $$;
CREATE TABLE filters (f text);
INSERT INTO filters VALUES ('{}'), ('{meta: {sensor: 1}}'), ('{meta: {sensor: 1, room: "a"}}'), ('{"meta.sensor": 1}'), ('{"meta.sensor": {$gt: 1}}'), ('{"meta.sensor": {$gte: 1}, "meta.room": "a"}'), ('{"meta.sensor": {$lt: "zz"}}'),
  ('{"meta.sensor": {$in: [1, "z"]}}'), ('{"meta.sensor": {$in: [1, null]}}'), ('{"meta.sensor": null}'), ('{"meta.sensor": {$ne: 1}}'), ('{"meta.sensor": {$nin: [1, 2]}}'), ('{"meta.sensor": {$exists: true}}'),
  ('{"meta.sensor": {$exists: false}}'), ('{"meta.sensor.no": 3}'), ('{"meta.sensor": {no: 3}}'), ('{"meta.tags": "x"}'), ('{meta: null}'), ('{meta: {$exists: false}}'), ('{meta: {$type: "object"}}'), ('{meta: {$type: "string"}}'),
  ('{meta: 7}'), ('{meta: {$gt: 5}}'), ('{meta: {$gt: {}}}'), ('{meta: {$in: [7, "s"]}}'), ('{meta: {$in: []}}'), ('{meta: /s/}'), ('{meta: {$not: {$eq: 7}}}'), ('{$or: [{meta: 7}, {"meta.sensor": 1}]}'), ('{$nor: [{meta: 7}]}'),
  ('{ts: {$lt: ISODate("1970-01-01T00:00:00Z")}}'), ('{ts: {$gte: ISODate("2023-12-01T00:00:00Z"), $lt: ISODate("2024-03-01T00:00:00Z")}}'), ('{ts: {$gt: 5}}'), ('{ts: {$ne: null}}'), ('{ts: {$exists: true}}'),
  ('{ts: {$lt: {$date: {$numberLong: "9223372036854775807"}}}}'), ('{ts: {$gt: {$minKey: 1}}}'), ('{ts: {$in: []}}'), ('{ts: {$type: "date"}}'), ('{ts: {$not: {$lt: ISODate("1970-01-01T00:00:00Z")}}}'),
  ('{"meta.sensor": 1, ts: {$gte: ISODate("2023-12-01T00:00:00Z")}, temp: {$gt: 2}}'), ('{$and: [{"meta.sensor": 2}, {ts: {$lt: ISODate("2024-03-01T00:00:00Z")}}, {$or: [{temp: 1}, {a: 2}]}]}'),
  ('{temp: {$gt: 2}}'), ('{a: 2}'), ('{a: null}'), ('{a: {$size: 2}}'), ('{"a.b": 1}'), ('{tags: "x"}'), ('{tags: {$all: ["x", "y"]}}'), ('{later: {$exists: true}}'), ('{_id: 17}'), ('{_id: {$gt: 590}}'),
  ('{$expr: {$eq: ["$meta.room", "a"]}}'), ('{"meta.sensor": 1, "meta.sensor": {$gt: 0}}'), ('{"meta.sensor": {$eq: 1, $exists: true}}'), ('{"meta.0": 1}'), ('{$jsonSchema: {required: ["meta"]}}');
INSERT INTO calls
  SELECT format('collection_find(''%%R'', %L)', f) FROM filters
  UNION ALL SELECT format('collection_find(''%%R'', %L, projection => ''{temp: 1, "meta.room": 1}'')', f) FROM filters
  UNION ALL SELECT format('collection_find(''%%R'', %L, sort => ''{ts: -1, _id: 1}'', skip => 3, take => 10)', f) FROM filters
  UNION ALL SELECT format('collection_find(''%%R'', %L, sort => ''{ts: 1}'', projection => ''{ts: 1, _id: 0}'', take => 50)', f) FROM filters
  UNION ALL SELECT format('collection_find(''%%R'', %L, sort => ''{ts: -1}'', projection => ''{ts: 1, _id: 0}'')', f) FROM filters
  UNION ALL SELECT format('collection_count(''%%R'', %L)', f) FROM filters
  UNION ALL SELECT format('collection_distinct(''%%R'', %L, %L)', field, f) FROM filters, unnest('{meta,meta.sensor,a,tags,ts}'::text[]) field WHERE length(f) % 5 = length(field) % 5
  UNION ALL SELECT format('collection_aggregate(''%%R'', %L)', replace('[{$match: %F}, {$group: {_id: "$meta.room", n: {$sum: 1}, top: {$max: "$temp"}, a: {$avg: "$temp"}}}]', '%F', f)) FROM filters
  UNION ALL SELECT format('collection_aggregate(''%%R'', %L)', replace('[{$match: %F}, {$group: {_id: null, n: {$sum: 1}}}]', '%F', f)) FROM filters
  UNION ALL SELECT format('collection_aggregate(''%%R'', %L)', replace('[{$match: %F}, {$count: "n"}]', '%F', f)) FROM filters;
INSERT INTO calls SELECT format('collection_aggregate(''%%R'', %L)', p) FROM unnest(ARRAY[
  '[{$project: {temp: 1, x: "$meta.sensor"}}]', '[{$set: {when: {$year: "$ts"}}}, {$group: {_id: "$when", n: {$sum: 1}}}]', '[{$unwind: "$tags"}, {$sortByCount: "$tags"}]',
  '[{$group: {_id: {$dateTrunc: {date: "$ts", unit: "month"}}, n: {$sum: 1}, docs: {$max: "$$ROOT"}}}]', '[{$group: {_id: "$meta", last: {$max: "$ts"}, n: {$sum: {$cond: [{$gt: ["$temp", 2]}, 1, 0]}}}}]',
  '[{$match: {"meta.sensor": 1}}, {$lookup: {from: "c", localField: "_id", foreignField: "_id", as: "twin"}}]', '[{$match: {$expr: {$gt: ["$ts", {$literal: {$date: "2024-01-01T00:00:00Z"}}]}}}, {$replaceWith: {v: "$a.b", m: "$meta"}}]',
  '[{$facet: {old: [{$match: {ts: {$lt: {$date: "1970-01-01T00:00:00Z"}}}}, {$count: "n"}], all: [{$count: "n"}]}}]', '[{$unset: ["ts", "meta"]}]',
  '[{$setWindowFields: {partitionBy: "$meta.room", sortBy: {ts: 1}, output: {n: {$sum: 1, window: {documents: ["unbounded", "current"]}}}}}]']) p
  UNION ALL SELECT 'collection_aggregate(''c'', ''[{$match: {_id: {$lt: 50}}}, {$lookup: {from: "%R", localField: "meta.sensor", foreignField: "meta.sensor", pipeline: [{$count: "n"}], as: "same"}}]'')';

SELECT is((SELECT array_agg(d) FROM differ() d), NULL, 'documents that wait or are packed: every call answers as a collection');
SELECT is((SELECT count(*) FROM calls WHERE answer(call, 'c') IS NOT NULL) > 350, true, 'most answers are not empty');
SET enable_seqscan = off;
SET random_page_cost = 0.01;
SELECT is((SELECT array_agg(d) FROM differ() d), NULL, 'also by the indexes');
RESET enable_seqscan;
RESET random_page_cost;
SELECT bucket_pack('r'), bucket_pack('g') \g /dev/null
SELECT is((SELECT waiting FROM bucket_stats('g')), 0::bigint, 'all are packed');
SELECT is((SELECT array_agg(d) FROM differ() d), NULL, 'packed');
SELECT is((SELECT count(*) FROM r JOIN c ON c._id = r.doc -> '_id' WHERE c.doc::bytea = r.doc::bytea), 600::bigint, 'documents come back byte for byte');
SELECT is((SELECT count(*) FROM g JOIN c ON c._id = g.doc -> '_id' WHERE c.doc::bytea = g.doc::bytea AND g."meta.room" IS NOT DISTINCT FROM c.doc -> 'meta.room' AND g.ts = (c.doc -> 'ts')::timestamptz), 600::bigint, 'and so in the other');

-- plain SQL that reads fields
SELECT is((SELECT array_agg(x ORDER BY x) FROM (SELECT doc ->> 'meta.room' || count(*) || coalesce(sum(doc -> 'temp'), '0') AS x FROM g WHERE doc ? 'temp' GROUP BY doc ->> 'meta.room') z),
          (SELECT array_agg(x ORDER BY x) FROM (SELECT doc ->> 'meta.room' || count(*) || coalesce(sum(doc -> 'temp'), '0') AS x FROM c WHERE doc ? 'temp' GROUP BY doc ->> 'meta.room') z), 'GROUP BY a field');
SELECT is((SELECT count(*) FROM r a JOIN g b ON a.doc -> '_id' = b.doc -> '_id' AND a.doc -> 'temp' = b.doc -> 'temp'), (SELECT count(*) FROM c WHERE doc -> 'temp' IS NOT NULL), 'a join by fields');
SELECT is((SELECT count(*) FROM r a WHERE EXISTS (SELECT FROM g b WHERE b.doc = a.doc)), 600::bigint, 'a join by documents');
SELECT is((SELECT sum(bson_size(x)) FROM (SELECT (SELECT b.doc FROM g b WHERE b.doc -> '_id' = a.doc -> '_id') x FROM r a) z), (SELECT sum(bson_size(doc)) FROM c), 'a subquery that returns documents');
SELECT is((SELECT sum(bson_size(x.doc)) FROM r, LATERAL (SELECT r.doc) x WHERE r.doc -> 'temp' = 1), (SELECT sum(bson_size(doc)) FROM c WHERE doc -> 'temp' = 1), 'LATERAL');
SELECT is((SELECT count(*) FROM (SELECT doc FROM r WHERE doc -> 'temp' = 1 UNION ALL SELECT doc FROM c WHERE doc -> 'temp' = 1) x WHERE bson_exists(doc, 'ts')), (SELECT 2 * count(*) FROM c WHERE doc -> 'temp' = 1), 'UNION ALL');
SELECT is((SELECT sum(length(t::text)) FROM (SELECT r FROM r WHERE doc -> 'temp' = 1) t), (SELECT sum(length(t::text)) FROM (SELECT (c.doc -> 'meta', (c.doc -> 'ts')::timestamptz, c.doc) FROM c WHERE doc -> 'temp' = 1) t), 'whole rows');

-- Changes ----------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION changed(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  results text[];
  rel text;
  one text;
BEGIN
  FOREACH rel IN ARRAY '{c,r,g}'::text[] LOOP
    EXECUTE 'SELECT (' || replace(call, '%R', rel) || ')::text' INTO one;
    results := results || one;
  END LOOP;
  RETURN is(results[2:], ARRAY[results[1], results[1]], call);
END $$;
SELECT changed($$collection_update('%R', '{"meta.sensor": 1}', '{$set: {"meta.sensor": 4}, $inc: {n: 1}}', multi => true)$$);
SELECT changed($$collection_update('%R', '{temp: {$gt: 2}}', '{$unset: {temp: 1}, $set: {hot: true}}', multi => true)$$);
SELECT changed($$collection_update('%R', '{ts: {$lt: ISODate("1970-01-01T00:00:00Z")}}', '[{$set: {ts: {$dateAdd: {startDate: "$ts", unit: "year", amount: 60}}}}]', multi => true)$$);
SELECT changed($$collection_update('%R', '{_id: 5000}', '{$set: {ts: ISODate("2024-01-01T00:00:00Z"), meta: {sensor: 1}}}', upsert => true, multi => true)$$);
SELECT changed($$collection_update('%R', '{"meta.sensor": 77}', '{$set: {a: 1}}', multi => true)$$);
SELECT changed($$collection_delete('%R', '{meta: 7}', multi => true)$$);
SELECT changed($$collection_delete('%R', '{a: 2}', multi => true)$$);
SELECT is((SELECT array_agg(d) FROM differ() d), NULL, 'after updates and deletions');
SELECT bucket_pack('r'), bucket_pack('g') \g /dev/null
SELECT is((SELECT array_agg(d) FROM differ() d), NULL, 'and packed again');
SELECT throws_ok($$SELECT collection_update('r', '{"meta.sensor": 4}', '{$unset: {ts: 1}}', multi => true)$$, '23502');
SELECT is((SELECT count(*) FROM pattern_check('r')) + (SELECT count(*) FROM pattern_check('g')), 0::bigint, 'the checks');
SELECT bucket_resize('g', span => '1 day', max_count => 10) \g /dev/null
SELECT is((SELECT array_agg(d) FROM differ() d WHERE d ~ '^g'), NULL, 'resized');
SELECT is((SELECT array_agg(d) FROM differ() d WHERE d ~ '^r'), NULL, 'the other one still');
SELECT is((SELECT sum((doc -> 'transaction_count')::int) FROM r_buckets), (SELECT count(*) FROM c), 'the documents of buckets');
ALTER FOREIGN TABLE g RENAME ts TO at;
ALTER FOREIGN TABLE g RENAME "meta.sensor" TO sensor;
SELECT is((SELECT array_agg(d) FROM differ() d WHERE d ~ '^g'), NULL, 'renamed columns still follow the fields');
SELECT lives_ok($$SELECT collection_insert('g', '{_id: 9000, ts: ISODate("2024-01-01T00:00:00Z"), meta: {sensor: 3}}')$$, 'also in writes');
SELECT is((SELECT sensor FROM g WHERE doc @@ '{_id: 9000}'), '3', 'whose columns have values');

-- Old documents --------------------------------------------------------------------------------------------------------------

SELECT pattern_alter('r', 'ts', '{retain: "100 days"}') \g /dev/null
CALL pattern_maintain('r');
DELETE FROM c WHERE (doc -> 'ts')::timestamptz < now() - interval '101 days';
SELECT is((SELECT count(*) FROM r), (SELECT count(*) FROM c), 'retain is expireAfterSeconds');

-- As a source ----------------------------------------------------------------------------------------------------------------

SELECT bucket_create('s', timeseries => '{timeField: "ts", metaField: "meta"}', group_by => '{meta.sensor}') \g /dev/null
SELECT collection_create('sensors') \g /dev/null
INSERT INTO sensors (doc) SELECT bson_build('_id', i) FROM generate_series(1, 3) i;
SELECT computed_enable('sensors', source => 's', on_field => 'meta.sensor', fields => '{n: {$count: {}}, total: {$sum: "$temp"}}', name => 'totals') \g /dev/null
SELECT rollup_enable('s', 'hours', '{n: {$count: {}}, top: {$max: "$temp"}}', time_field => 'ts', levels => '{hour,day}', group_by => '{meta.room}') \g /dev/null
CREATE FUNCTION wrong() RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(format('%s has %s of %s', t._id, t.doc, x), ', ') FROM sensors t
  LEFT JOIN (SELECT doc -> 'meta.sensor' AS sensor, bson_build('_id', doc -> 'meta.sensor', 'n', count(*)::int, 'total', sum(doc -> 'temp')) AS x FROM s GROUP BY 1) q ON q.sensor = t._id
  WHERE coalesce(x, bson_build('_id', t._id, 'n', 0, 'total', 0)) <> t.doc $$;
CREATE FUNCTION wrong_hours() RETURNS bigint LANGUAGE sql AS $$
  SELECT count(*) FROM (SELECT doc -> 'meta.room' AS room, (doc -> 'start')::timestamptz AS start, (doc -> 'n')::int AS n, doc -> 'top' AS top FROM hours WHERE doc ->> 'level' = 'hour') a
    FULL JOIN (SELECT doc -> 'meta.room' AS room, date_trunc('hour', ts) AS start, count(*)::int AS n, max(doc -> 'temp') AS top FROM s GROUP BY 1, 2) b USING (room, start) WHERE (a.n, a.top) IS DISTINCT FROM (b.n, b.top) $$;
INSERT INTO s (doc) SELECT bson_build('ts', timestamptz '2024-01-01' + i * interval '1 min', 'meta', bson_build('sensor', 1 + i % 3, 'room', 'r' || i % 2), 'temp', i % 7) FROM generate_series(0, 1299) i;
SELECT is(wrong(), NULL, 'computed fields of documents');
SELECT is(wrong_hours(), 0::bigint, 'roll-up of documents');
SELECT bucket_pack('s') \g /dev/null
SELECT collection_update('s', '{"meta.sensor": 2, temp: 3}', '{$set: {"meta.sensor": 3, "meta.room": "r0"}}', multi => true) \g /dev/null
SELECT collection_delete('s', '{ts: {$lt: ISODate("2024-01-01T05:30:00Z")}, "meta.sensor": 1}', multi => true) \g /dev/null
SELECT is(wrong(), NULL, 'computed after changes');
SELECT is(wrong_hours(), 0::bigint, 'rolled up after changes');
SELECT bucket_drop_before('s', '2024-01-01 08:00Z') \g /dev/null
SELECT is(wrong(), NULL, 'computed after a drop of old spans');
SELECT is(wrong_hours(), 0::bigint, 'rolled up after it');
SELECT is((SELECT count(*) FROM pattern_check('sensors')) + (SELECT count(*) FROM pattern_check('s')), 0::bigint, 'and the checks say so');

-- One document per slot ----------------------------------------------------------------------------------------------------------

SELECT bucket_create('slots', timeseries => '{timeField: "ts", metaField: "meta"}', granularity => '1 minute', same_slot => 'replace') \g /dev/null
SELECT collection_insert('slots', '{ts: ISODate("2024-01-01T10:00:05Z"), meta: 1, n: 1}', '{ts: ISODate("2024-01-01T10:00:25Z"), meta: 1, n: 2}', '{ts: ISODate("2024-01-01T10:00:05Z"), meta: 2, n: 3}') \g /dev/null
SELECT is((SELECT array_agg((ts, doc -> 'n')::text ORDER BY doc -> 'n') FROM slots), '{"(\"2024-01-01 10:00:25+00\",2)","(\"2024-01-01 10:00:05+00\",3)"}', 'a second document of a slot replaces the first');
SELECT throws_ok($$SELECT pattern_alter('slots', 'ts', '{same_slot: "add"}')$$, '22023', 'documents cannot be added');

-- A partition ----------------------------------------------------------------------------------------------------------------

CREATE TABLE parted (meta bson_value, ts timestamptz NOT NULL, doc bson NOT NULL) PARTITION BY RANGE (ts);
ALTER TABLE parted ATTACH PARTITION slots FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
SELECT is(collection_count('parted', '{meta: 1}'), 1::bigint, 'as a partition');
SELECT is((SELECT array_agg(doc -> 'n' ORDER BY ts) FROM parted WHERE doc @@ '{ts: {$gt: ISODate("2024-01-01T00:00:00Z")}}'), '{3,2}', 'of a table that is read by fields');
SELECT throws_ok($$INSERT INTO parted VALUES (1::int::bson_value, '2024-05-05', '{ts: ISODate("2024-05-05T00:00:00Z"), meta: 2}')$$, '23514', 'column "meta" of "slots" follows a field of the document');

-- Out again -----------------------------------------------------------------------------------------------------------------

SELECT pattern_disable('g', 'ts') \g /dev/null
SELECT is((SELECT relkind FROM pg_class WHERE oid = 'g'::regclass), 'r', 'a plain table with the documents');
SELECT is((SELECT count(*) FROM g JOIN r ON g.doc = r.doc), (SELECT count(*) FROM r), 'which are still those');

SELECT * FROM finish();
