-- The payload pattern: a bulky field is stored compressed, and the fields that queries need are taken from it on every write.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT collection_create('messages');
SELECT payload_enable('messages', field => 'xml', extracts => '{created: "xpath:/msg/@created::date", sender: "xpath:/msg/from/text()", recipients: "xpath:/msg/to::text[]"}');
INSERT INTO messages (doc) VALUES
  ('{_id: 1, xml: "<msg created=\"2023-02-23\"><from>bob</from><to>eve</to><to>alice</to><body>long</body></msg>"}'),
  ('{_id: 2, xml: "<msg created=\"2023-02-24\"><from>eve &amp; co</from><body>longer</body></msg>"}');

-- The fields are ordinary ones: queries and indexes use them. Nobody has to read the payload for that.
SELECT _id, doc -> 'created' AS created, doc ->> 'sender' AS sender, doc -> 'recipients' AS recipients, bson_typeof(doc, 'xml') AS payload FROM messages ORDER BY _id;
CREATE INDEX ON messages ((doc -> 'sender'));
SELECT _id FROM messages WHERE doc @@ '{recipients: "alice", created: {$lt: ISODate("2023-02-24")}}';

-- The view shows the payload as it was, and takes it. Another payload, other fields; they are not written by hand.
SELECT doc ->> 'xml' FROM messages_whole WHERE _id = 1;
UPDATE messages_whole SET doc = bson_set(doc, 'xml', '<msg created="2023-02-25"><from>carol</from></msg>') WHERE _id = 1;
UPDATE messages SET doc = bson_set(doc, 'sender', 'somebody else') WHERE _id = 2;
SELECT _id, bson_unset(doc, 'xml') FROM messages ORDER BY _id;

-- What cannot be read is refused, and the error says which document it was.
\set VERBOSITY terse
INSERT INTO messages (doc) VALUES ('{_id: 3, xml: "<msg"}');
INSERT INTO messages (doc) VALUES ('{_id: 3, xml: "<msg created=\"tomorrow, perhaps\"/>"}');
\set VERBOSITY default

-- JSON, regular expressions, and functions of one's own
CREATE FUNCTION letters(text) RETURNS int IMMUTABLE LANGUAGE sql RETURN length($1);
SELECT collection_create('events');
SELECT payload_enable('events', 'raw', '{user: "jsonpath:$.user.name", items: "jsonpath:$.items[*].sku::text[]", level: "regex:\"level\": *\"([a-z]+)\"", size: "function:letters"}');
INSERT INTO events (doc) VALUES ($$ {_id: 1, raw: '{"user": {"name": "Anna"}, "items": [{"sku": "A-1"}, {"sku": "B-2"}], "level": "warning"}'} $$);
SELECT bson_unset(doc, 'raw') FROM events;
SELECT pattern_alter('events', 'raw', '{extracts: {first: "jsonpath:$.items[0].sku"}}');
SELECT bson_unset(doc, 'raw') FROM events;

-- Without a table: the compressed form of any value
SELECT payload_unpack(payload_pack('{"a": [1, 2, 3]}'));

-- All of that is checked, and the documents can be put back as they were.
SELECT * FROM pattern_check();
SELECT pattern_disable('events', 'raw');
SELECT doc FROM events;
DROP TABLE messages, events CASCADE;
DROP FUNCTION letters(text);
