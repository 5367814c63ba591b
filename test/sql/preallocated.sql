-- The preallocated pattern: documents are laid out beforehand with slots, which are then taken by one holder each.
SET client_min_messages = warning;
\set SHOW_CONTEXT never

-- A theatre: three rows of seats. New screenings get them, all free. Many buy at the same time, so claims are kept in a table of
-- their own, where different seats do not wait for each other; the view shows whole documents, with who holds what.
SELECT collection_create('screenings');
SELECT preallocated_enable('screenings', field => 'seats', shape => preallocated_grid(rows => '{6,6,8}', accessible => '{A1,A2}'), store => 'slots', available_field => 'seats_available');
INSERT INTO screenings (doc) VALUES ('{_id: 1, title: "Matinee"}');
SELECT doc FROM screenings;
SELECT doc FROM screenings_whole;

-- Ada takes two seats into her basket for ten minutes. Bob wants one of them and another: he gets neither.
SELECT preallocated_claim('screenings', 1, '{C7,C8}', holder => 'ada', hold_for => '10 min');
SELECT preallocated_claim('screenings', 1, '{C8,B1}', holder => 'bob');
SELECT doc -> 'seats' AS seats, doc -> 'seats_available' AS available FROM screenings_whole;
-- He looks for three side by side, and takes them for good.
SELECT preallocated_find('screenings', 1, 3);
SELECT preallocated_claim('screenings', 1, preallocated_find('screenings', 1, 3), holder => 'bob');
-- Ada pays for one seat, and gives the other back.
SELECT preallocated_confirm('screenings', 1, '{C7}', holder => 'ada'), preallocated_release('screenings', 1, '{C8}', holder => 'ada');
SELECT slot, holder, until FROM preallocated_slots('screenings', 1) WHERE holder IS NOT NULL;
-- Nobody frees or takes a seat in another way.
UPDATE screenings_whole SET doc = bson_set(doc, 'seats.2.6', 0);
UPDATE screenings SET doc = bson_set(doc, 'seats.2.7', 'eve'::text);
DELETE FROM screenings_seats_claims;
-- What else is in the document is written as ever, in the table and in the view.
UPDATE screenings SET doc = '{_id: 1, title: "Evening"}';
UPDATE screenings_whole SET doc = bson_set(doc, 'stars', 5);
SELECT doc FROM screenings_whole;
-- A seat that does not exist, a hold that is over.
SELECT preallocated_claim('screenings', 1, '{A7}', holder => 'bob');
SELECT preallocated_claim('screenings', 1, '{B3}', holder => 'eve', hold_for => '1 ms'), pg_sleep(0.02);
SELECT preallocated_claim('screenings', 1, '{B3}', holder => 'ida');
-- Another row of seats is put up, for this screening.
SELECT preallocated_extend('screenings', 1, preallocated_grid('{6,6,8,4}'));
SELECT doc -> 'seats.3' AS row_d, doc -> 'seats_available' AS available FROM screenings_whole;
SELECT name, options FROM pattern_list('screenings');
SELECT * FROM pattern_check();

-- A room that is booked by the day: the calendar fills itself from the month and the year. Claims are written into the document.
SELECT collection_create('rooms');
SELECT preallocated_enable('rooms', field => 'work_days', shape => preallocated_calendar(weekdays_only => true));
INSERT INTO rooms (doc) VALUES ('{_id: 1, month: "April", year: "2019"}'), ('{_id: 2, month: 2, year: 2024}');
SELECT doc FROM rooms ORDER BY _id;
SELECT preallocated_claim('rooms', 1, '{8,9,10}', holder => 'ada');
SELECT doc FROM rooms WHERE _id = 1;
-- What is free, as ranges, and back.
SELECT preallocated_ranges(doc, 'work_days') FROM rooms_whole WHERE _id = 1;
SELECT preallocated_cells('[[1,5],[11,12]]');
SELECT bson_size(doc) AS cells, bson_size(bson_set(doc, 'work_days', preallocated_ranges(doc, 'work_days'))) AS ranges FROM rooms WHERE _id = 1;
-- With days taken the month stays what it is.
UPDATE rooms SET doc = bson_set(doc, 'month', 5) WHERE _id = 1;
UPDATE rooms SET doc = bson_set(doc, 'month', 3) WHERE _id = 2 RETURNING doc;

-- A pool of places.
SELECT collection_create('courses');
SELECT preallocated_enable('courses', field => 'places', shape => preallocated_pool(4), available_field => 'left');
INSERT INTO courses (doc) VALUES ('{_id: "sql"}');
SELECT preallocated_claim('courses', 'sql', preallocated_find('courses', 'sql', 2), holder => 17);
SELECT doc FROM courses;

-- Counters for each minute, which are then counted in. An upsert may begin with one of them.
SELECT collection_create('metrics');
SELECT preallocated_enable('metrics', field => 'values', shape => preallocated_clock(units => '{minute}', fill => 0));
INSERT INTO metrics (doc) VALUES ('{_id: 1, metric: "op_counter"}');
UPDATE metrics SET doc = bson_update(doc, '{$inc: {"values.37": 50000}}');
SELECT doc -> 'values.36' AS before, doc -> 'values.37' AS counted, doc -> 'values.59' AS last FROM metrics;
SELECT matched, modified FROM collection_update('metrics', '{_id: 2}', '{$set: {"values.5": 9}}', upsert => true);
SELECT doc -> 'values.0' AS before, doc -> 'values.5' AS counted, doc -> 'values.59' AS last FROM metrics WHERE _id = 2;
UPDATE metrics SET doc = bson_update(doc, '{$inc: {"values.60": 1}}') WHERE _id = 1;

SELECT * FROM pattern_check();
-- The end of it: who holds what is written into the documents.
SELECT pattern_disable('screenings'), pattern_disable('rooms'), pattern_disable('courses'), pattern_disable('metrics');
SELECT doc FROM screenings;
DROP TABLE screenings, rooms, courses, metrics;
