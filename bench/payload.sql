-- What the payload pattern saves: asking by a field that was extracted beside xpath() in the filter, reading a payload back, and
-- what extracting and compressing cost on the way in. Messages of 20 kB of XML.
\echo
\echo 'payload pattern                          base ms    ours ms   ratio    bar'

CREATE TABLE messages_source AS
  SELECT i AS id, format('<msg created="2023-%s-%s"><from>user%s</from><subject>Message %s</subject>%s</msg>', lpad((1 + i % 12)::text, 2, '0'), lpad((1 + i % 28)::text, 2, '0'), i % 200, i,
                         (SELECT string_agg(format('<line n="%s">%s %s</line>', l, md5((i * l)::text), 'and what everybody writes all the time, ' || l % 7), '') FROM generate_series(1, 200) l)) AS xml
  FROM generate_series(1, 20 * :scale) i;
CREATE TABLE messages_xml (id int PRIMARY KEY, body xml);
SELECT collection_create('messages') \g /dev/null
SELECT payload_enable('messages', field => 'xml', extracts => '{created: "xpath:/msg/@created::date", sender: "xpath:/msg/from/text()", subject: "xpath:/msg/subject/text()"}') \g /dev/null
INSERT INTO messages_xml SELECT id, xml::xml FROM messages_source;
INSERT INTO messages (doc) SELECT bson_build('_id', id, 'xml', xml) FROM messages_source;
VACUUM ANALYZE messages_xml, messages;
-- without an index the first chunk of each document is fetched
SELECT compare('query by one field, no index', 'infinity', $$SELECT count(*) FROM messages_xml WHERE (xpath('/msg/from/text()', body))[1]::text = 'user5'$$,
               $$SELECT count(*) FROM messages WHERE doc -> 'sender' = 'user5'::text$$);
CREATE INDEX ON messages ((doc -> 'sender'));
ANALYZE messages;
SELECT compare('query by one field, with an index', 0.01, $$SELECT count(*) FROM messages_xml WHERE (xpath('/msg/from/text()', body))[1]::text = 'user5'$$,
               $$SELECT count(*) FROM messages WHERE doc -> 'sender' = 'user5'::text$$);
SELECT compare('read a payload: xml column / _whole', 'infinity', 'SELECT sum(length(body::text)) FROM messages_xml', $$SELECT sum(length(doc ->> 'xml')) FROM messages_whole$$);
SELECT compare('insert / insert with xpath()', 'infinity',
  $$INSERT INTO messages_xml SELECT id + 1000000, xml::xml FROM messages_source WHERE id <= 100 AND (xpath('/msg/@created', xml::xml))[1]::text <> '' AND (xpath('/msg/from/text()', xml::xml))[1]::text <> '' AND (xpath('/msg/subject/text()', xml::xml))[1]::text <> ''$$,
  $$INSERT INTO messages (doc) SELECT bson_build('_id', id + 1000000, 'xml', xml) FROM messages_source WHERE id <= 100$$,
  $$DELETE FROM messages WHERE _id > 1000000; DELETE FROM messages_xml WHERE id > 1000000$$);
SELECT line('size of the table, MB', pg_total_relation_size('messages_xml') / 1e6, pg_total_relation_size('messages') / 1e6, 'infinity') WHERE 'size of the table' LIKE replace(:'only', '*', '%');
DROP TABLE messages, messages_xml, messages_source CASCADE;
