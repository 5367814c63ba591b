-- Documents as text
SET timezone = 'UTC';
\set SHOW_CONTEXT never

-- A document is written as Extended JSON. What plain JSON cannot say is spelled in a document of its own, {"$oid": ".."}.
SELECT '{"_id": {"$oid": "507f191e810c19729de860ea"}, "item": "journal", "qty": 25, "price": {"$numberDecimal": "100.00"}}'::bson;

-- It may also be pasted as it is written in mongosh: names and strings as JavaScript has them, comments, trailing commas.
SELECT '{
  _id: ObjectId("507f191e810c19729de860ea"),
  title: ''The Dharma Bums'',        // single quotes
  released: ISODate("1958-10-02"),
  price: NumberDecimal("169.99"),
  "300_games": true, 37: 50000,      /* names without quotes, or numbers */
  tags: [ /beat/i, MinKey, undefined, ],
}'::bson;

-- A number without point and exponent is an int32 if it fits, else an int64, else a double. With one of them it is a double.
SELECT '{a: 5, b: 3000000000, c: 5.0, d: 1e3, e: 12345678901234567890}'::bson;

-- Output is read back as the same bytes. An int64 that would fit into an int32 says so, a decimal keeps its zeros.
SELECT d, d::text::bson::bytea = d::bytea AS same
FROM (SELECT '{a: 1.0, b: NumberLong(1), c: Decimal(1.50), d: ISODate("1969-12-31"), e: -0.0, f: Timestamp(1, 2), g: /x/i, h: MinKey, a: [null, undefined]}'::bson AS d) x;

-- Three forms: relaxed (as above), canonical, where every type is spelled out, and the one of the shell.
SELECT form, bson_to_json('{n: 5, t: ISODate("2018-12-11T12:00:00Z"), u: UUID("507f191e-810c-1972-9de8-60ea507f191e")}'::bson, form)
FROM unnest(ARRAY['relaxed', 'canonical', 'shell']) AS form;
SELECT bson_to_json('{}'::bson, 'xml');

-- And one to look at.
SELECT bson_pretty('{_id: 1, name: "libc6", depends: [{name: "libgcc-s1"}, {name: "libcrypt1", version: ">= 1:4.4.10-10"}], tags: []}'::bson);

-- A document that looks like another type is written in {"$document": ..}, and so comes back as what it is.
SELECT '{a: {"$numberInt": "5"}, b: {"$document": {"$numberInt": "5"}}}'::bson;
-- Documents of query operators are documents.
SELECT '{name: {$regex: "^a", $options: "i"}, qty: {$gt: 5}}'::bson;

-- Any value of a document is a bson_value, in the same language.
SELECT '"shipped"'::bson_value, '5'::bson_value, '[1, 2]'::bson_value, 'ObjectId("507f191e810c19729de860ea")'::bson_value;
SELECT 'shipped'::bson_value;

-- Errors say where.
SELECT '{stars: 5 review_text: "Wow"}'::bson;
SELECT '{
  _id: 1,
  when: new Date(),
}'::bson;
SELECT '{_id: ObjectId()}'::bson;
SELECT '{a: {"$oid": 5}}'::bson;
SELECT '{a: ISODate("2018-02-29")}'::bson;
SELECT '[1, 2]'::bson;

-- What mongoexport writes is loaded line by line. Quoting is turned off by a quote that does not occur.
CREATE TABLE text_import (doc bson);
COPY text_import FROM stdin WITH (FORMAT csv, QUOTE e'\x01', DELIMITER e'\x02');
{"_id":{"$oid":"507f191e810c19729de860ea"},"name":"a \"quoted\" name, with a comma","n":{"$numberLong":"5"}}
{"_id":2,"when":{"$date":"2018-12-11T12:00:00.000Z"},"path":"C:\\temp"}
\.
SELECT doc FROM text_import;
COPY text_import TO stdout;
DROP TABLE text_import;

-- The bytes are those that a driver writes.
SELECT '{a: 5}'::bson::bytea;
SELECT '\x0c0000001061000500000000'::bytea::bson;
-- They are checked on the way in.
SELECT '\x0c0000001461000500000000'::bytea::bson;
-- A file of documents, one after the other, is what mongodump writes.
SELECT doc FROM bson_documents('\x0c0000001061000500000000' || '\x0500000000'::bytea) AS doc;
