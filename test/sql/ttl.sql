-- The TTL pattern: documents that expire some time after a date that they hold.
SET timezone = 'UTC';
SELECT collection_create('sessions');
INSERT INTO sessions (doc) SELECT bson_build('_id', i, 'seen', now() - i * interval '20 min') FROM generate_series(0, 3) i;

-- They live for half an hour after they were seen.
SELECT ttl_enable('sessions', field => 'seen', after => '30 min');

-- What has expired is invisible at once in the view, and still in the table.
SELECT doc -> '_id' FROM sessions_current ORDER BY _id;
SELECT count(*) FROM sessions;

-- A document without a date stays; a list expires with its earliest date.
INSERT INTO sessions (doc) VALUES ('{_id: "root"}'), ('{_id: "text", seen: "yesterday"}'), ('{_id: "list", seen: [ISODate("2020-01-01T00:00:00Z"), ISODate("2999-01-01T00:00:00Z")]}');
SELECT doc -> '_id' FROM sessions_current ORDER BY _id;

-- Maintenance deletes what has expired: by itself where a worker runs, else by a call.
SELECT rel, pattern, name, what, amount FROM pattern_due();
CALL pattern_maintain();
SELECT doc -> '_id' FROM sessions ORDER BY _id;
SELECT count(*) FROM pattern_due();

-- The view takes writes, and the calls of collections.
UPDATE sessions_current SET doc = bson_set(doc, 'user', 'ann') WHERE _id = 'root'::text;
SELECT collection_find('sessions_current', '{user: "ann"}');

-- Another time takes effect at once.
SELECT pattern_alter('sessions', 'seen', '{after: "10 min"}');
SELECT doc -> '_id' FROM sessions_current ORDER BY _id;
SELECT pattern, name, options FROM pattern_list('sessions');

-- What is wrong
SELECT ttl_enable('sessions', 'seen', '-1 min', name => 'negative');
SELECT ttl_enable('sessions', 'seen');
SELECT ttl_enable('sessions', NULL);
SELECT pattern_alter('sessions', 'seen', '{fied: "x"}');

-- The end: nothing is deleted.
SELECT pattern_disable('sessions', 'seen');
SELECT count(*) FROM sessions;
SELECT * FROM sessions_current;
