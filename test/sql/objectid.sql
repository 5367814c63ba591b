-- Object ids

SET timezone = 'UTC';

-- An id is written as 24 hexadecimal digits.
SELECT '507F1F77BCF86CD799439011'::objectid;
SELECT '507f1f77'::objectid;
SELECT 'x07f1f77bcf86cd799439011'::objectid;

-- Its first four bytes are the time when it was made.
SELECT objectid_timestamp('507f1f77bcf86cd799439011');
SELECT objectid_timestamp('00000000ffffffffffffffff'), objectid_timestamp('ffffffff0000000000000000');

-- New ids differ; those of one session share their random part.
CREATE TABLE events (id objectid PRIMARY KEY DEFAULT objectid(), n int);
INSERT INTO events (n) SELECT generate_series(1, 1000);
SELECT count(DISTINCT id) AS ids, count(DISTINCT substring(docpatterns.objectid_send(id) FROM 5 FOR 5)) AS "random parts" FROM events;
SELECT bool_and(objectid_timestamp(id) BETWEEN now() - interval '1 hour' AND now() + interval '1 hour') AS "made now" FROM events;

-- Ranges of time are ranges of ids, which the primary key's index serves.
SELECT objectid('2012-10-17 21:13:27+00'::timestamptz) AS "the first of its second", objectid('2012-10-17 21:13:27.999999+00'::timestamptz) AS "the same second";
SELECT objectid('1969-12-31 23:59:59.5+00'::timestamptz);
SELECT objectid('infinity'::timestamptz);
INSERT INTO events VALUES ('507f1f77bcf86cd799439011', 0), ('507f1f77bcf86cd799439012', -1), ('507f1f78bcf86cd799439011', -2);
ANALYZE events;
SET enable_seqscan = off; SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE id >= objectid('2012-10-17 21:13:27+00'::timestamptz) AND id < objectid('2012-10-17 21:13:28+00'::timestamptz);
SELECT * FROM events WHERE id >= objectid('2012-10-17 21:13:27+00'::timestamptz) AND id < objectid('2012-10-17 21:13:28+00'::timestamptz) ORDER BY id;
SELECT n FROM events WHERE id = '507f1f78bcf86cd799439011';
SELECT min(id) FROM events;
SELECT max(id) = (SELECT id FROM events ORDER BY id DESC LIMIT 1) AS "the last one" FROM events;
RESET enable_seqscan; RESET enable_bitmapscan;

-- Bytes decide the order; sorting, hashing and joins go with it.
SELECT id FROM unnest(ARRAY['ff0000000000000000000000', '00000000000000000000007f', '000000000000000000000080', '7f0000000000000000000000']::objectid[]) id ORDER BY id DESC;
SELECT a < b AS lt, a <= b AS le, a = b AS eq, a <> b AS ne, a >= b AS ge, a > b AS gt FROM (VALUES ('507f1f77bcf86cd799439011'::objectid, '507f1f77bcf86cd799439012'::objectid)) x(a, b);
SET enable_mergejoin = off; SET enable_nestloop = off;
SELECT count(*) FROM events a JOIN events b USING (id);
RESET enable_mergejoin; RESET enable_nestloop;
SELECT count(*) FROM (SELECT id FROM events UNION SELECT id FROM events) x;

-- Beside a bson_value an objectid compares as the ObjectId in it.
SELECT '{"_id": {"$oid": "507f1f77bcf86cd799439011"}}'::bson -> '_id' = '507f1f77bcf86cd799439011'::objectid AS same,
       '507f1f77bcf86cd799439012'::objectid > '{"_id": {"$oid": "507f1f77bcf86cd799439011"}}'::bson -> '_id' AS greater,
       '{"_id": 5}'::bson -> '_id' < '507f1f77bcf86cd799439011'::objectid AS "numbers come first";

-- Another session has another random part.
\c -
INSERT INTO events (n) VALUES (-3);
SELECT count(DISTINCT substring(docpatterns.objectid_send(id) FROM 5 FOR 5)) AS "random parts" FROM events WHERE n > 0 OR n = -3;

DROP TABLE events;
