-- Roll-ups: totals by spans of time, and along a tree.
\set VERBOSITY terse
SET timezone = 'UTC';
SET client_min_messages = warning;

-- Screenings of films, and what they come to by the hour, day and month in each theatre.
SELECT collection_create('screenings');
SELECT rollup_enable('screenings', name => 'screenings_by', time_field => 'ts', levels => '{hour,day,month}', group_by => '{theater}',
                     fields => '{viewers: {$sum: "$num_viewers"}, best: {$max: "$num_viewers"}, screenings: {$count: {}}}');
SELECT rel, pattern, name, options FROM pattern_list('screenings');
INSERT INTO screenings (doc) VALUES
  ('{_id: 1, ts: ISODate("2023-01-31T20:10:00Z"), theater: "City", num_viewers: 30}'),
  ('{_id: 2, ts: ISODate("2023-01-31T20:40:00Z"), theater: "City", num_viewers: 50}'),
  ('{_id: 3, ts: ISODate("2023-01-31T22:00:00Z"), theater: "City", num_viewers: 20}'),
  ('{_id: 4, ts: ISODate("2023-02-01T20:00:00Z"), theater: "City", num_viewers: 10}'),
  ('{_id: 5, ts: ISODate("2023-01-31T20:00:00Z"), theater: "Alger", num_viewers: 5}');
SELECT doc FROM screenings_by ORDER BY _id;

-- A screening that is gone: its hour has no document any more, and the best of its day is found again.
DELETE FROM screenings WHERE _id = 2;
DELETE FROM screenings WHERE _id = 3;
SELECT bson_unset(doc, '_id') FROM screenings_by WHERE doc @@ '{theater: "City"}' ORDER BY _id;

-- One that moves to another theatre and time with one UPDATE.
UPDATE screenings SET doc = bson_update(doc, '{$set: {theater: "Alger", ts: ISODate("2023-03-01T01:00:00Z")}}') WHERE _id = 1;
SELECT bson_unset(doc, '_id') FROM screenings_by ORDER BY _id;
SELECT * FROM pattern_check('screenings');

-- The best of a day that becomes less, at an hour that had none.
INSERT INTO screenings (doc) VALUES ('{_id: 10, ts: ISODate("2024-05-05T10:00:00Z"), theater: "Best", num_viewers: 50}'), ('{_id: 11, ts: ISODate("2024-05-05T11:00:00Z"), theater: "Best", num_viewers: 10}');
UPDATE screenings SET doc = bson_update(doc, '{$set: {num_viewers: 40, ts: ISODate("2024-05-05T15:00:00Z")}}') WHERE _id = 10;
SELECT bson_unset(doc, '_id') FROM screenings_by WHERE doc @@ '{theater: "Best"}' ORDER BY _id;
SELECT * FROM pattern_check('screenings');
DELETE FROM screenings WHERE doc @@ '{theater: "Best"}';

-- Nobody writes to the totals but the pattern.
INSERT INTO screenings_by (doc) VALUES ('{_id: 1}');
DELETE FROM screenings_by;

-- Rows without a date count nowhere.
INSERT INTO screenings (doc) VALUES ('{_id: 6, theater: "City", num_viewers: 1}'), ('{_id: 7, ts: "yesterday", theater: "City", num_viewers: 1}');
SELECT count(*) FROM screenings_by;
-- Those without a theatre are a group of their own.
INSERT INTO screenings (doc) VALUES ('{_id: 8, ts: ISODate("2023-03-01T01:00:00Z"), num_viewers: 1}');
SELECT bson_unset(doc, '_id') FROM screenings_by WHERE doc @@ '{theater: null}' ORDER BY _id;
TRUNCATE screenings;
SELECT count(*) FROM screenings_by;

-- A table that is full already.
SELECT pattern_disable('screenings', 'screenings_by');
SELECT to_regclass('screenings_by');
INSERT INTO screenings (doc) SELECT bson_build('_id', i, 'ts', timestamptz '2023-01-01' + i * interval '7 hours', 'num_viewers', i) FROM generate_series(0, 99) i;
SELECT rollup_enable('screenings', name => 'by_week', time_field => 'ts', levels => '{week,day,"6 hours"}', time_zone => 'Europe/Copenhagen',
                     fields => '{viewers: {$sum: "$num_viewers"}, n: {$count: {}}}');
CALL pattern_build('screenings', 'by_week');
SELECT doc ->> 'level' AS level, count(*), sum(doc -> 'viewers') FROM by_week GROUP BY 1 ORDER BY 1;
SELECT (doc -> 'start')::timestamptz, doc -> 'n' AS n FROM by_week WHERE doc @@ '{level: "week"}' ORDER BY 1 LIMIT 2;
SELECT * FROM pattern_check('screenings');
SELECT pattern_disable('screenings', 'by_week', keep_data => true);
SELECT count(*) > 0 AS kept FROM by_week;
DELETE FROM by_week;
DROP TABLE by_week;

-- Along a tree: a category with all that lies below it.
SELECT collection_create('categories'), collection_create('sales');
SELECT tree_enable('categories', parent => 'parent');
INSERT INTO categories (doc) VALUES ('{_id: "Electronics"}'), ('{_id: "Computers", parent: "Electronics"}'), ('{_id: "Laptops", parent: "Computers"}'), ('{_id: "Phones", parent: "Electronics"}');
SELECT rollup_enable('sales', name => 'sales_by', tree => 'categories', group_by => '{category}', fields => '{total: {$sum: "$amount"}, best: {$max: "$amount"}}');
INSERT INTO sales (doc) VALUES ('{_id: 1, category: "Laptops", amount: 10}'), ('{_id: 2, category: "Computers", amount: 20}'), ('{_id: 3, category: "Phones", amount: 30}');
SELECT _id, doc -> 'total' AS total, doc -> 'best' AS best FROM sales_by ORDER BY _id;
-- the best is sold no more
DELETE FROM sales WHERE _id = 3;
SELECT _id, doc -> 'total' AS total, doc -> 'best' AS best FROM sales_by ORDER BY _id;
-- a category that moves takes its sales along
UPDATE categories SET doc = bson_set(doc, 'parent', 'Phones') WHERE _id = 'Laptops'::text;
SELECT _id, doc -> 'total' AS total, doc -> 'best' AS best FROM sales_by ORDER BY _id;
-- one that comes later finds its sales
INSERT INTO sales (doc) VALUES ('{_id: 4, category: "Tablets", amount: 7}');
SELECT _id, doc -> 'total' AS total FROM sales_by ORDER BY _id;
INSERT INTO categories (doc) VALUES ('{_id: "Tablets", parent: "Computers"}');
SELECT _id, doc -> 'total' AS total FROM sales_by ORDER BY _id;
SELECT * FROM pattern_check('sales');

-- What cannot be.
SELECT rollup_enable('screenings', name => 'x', time_field => 'ts', levels => '{hour,fortnight}', fields => '{n: {$count: {}}}');
SELECT rollup_enable('screenings', name => 'x', time_field => 'ts', levels => '{hour,"60 minutes"}', fields => '{n: {$count: {}}}');
SELECT rollup_enable('screenings', name => 'x', time_field => 'ts', levels => '{hour}', group_by => '{n}', fields => '{n: {$count: {}}}');
SELECT rollup_enable('screenings', name => 'x', time_field => 'ts', levels => '{hour}', time_zone => 'Nowhere', fields => '{n: {$count: {}}}');
SELECT rollup_enable('screenings', name => 'x', fields => '{n: {$count: {}}}');
SELECT rollup_enable('screenings', name => 'x', tree => 'sales', group_by => '{a}', fields => '{n: {$count: {}}}');
SELECT rollup_enable('screenings', name => 'sales', time_field => 'ts', levels => '{hour}', fields => '{n: {$count: {}}}');

DROP TABLE sales, categories, screenings CASCADE;
SELECT to_regclass('sales_by');
