-- The schema versioning pattern: documents of several shapes side by side, read in any of them, brought to the present one without
-- a pause.
SET client_min_messages = warning;
SET timezone = 'UTC';
\set SHOW_CONTEXT never

-- Persons had telephone numbers for fields. Then came twitter, and they have a list of ways to reach them. A step between the two
-- shapes is a function up and a function down; both are immutable.
SELECT collection_create('people');
CREATE FUNCTION people_1_to_2(d bson) RETURNS bson LANGUAGE sql IMMUTABLE AS $f$
  SELECT bson_set(d - 'home' - 'work' - 'mobile', 'contact_method',
                  (SELECT bson_agg(bson_build(k, d -> k) ORDER BY n) FROM unnest('{home,work,mobile}'::text[]) WITH ORDINALITY AS f (k, n) WHERE d ? k)) $f$;
CREATE FUNCTION people_2_to_1(d bson) RETURNS bson LANGUAGE sql IMMUTABLE AS $f$
  SELECT (d - 'contact_method') || (SELECT bson_merge_agg((u.doc -> 'contact_method')::bson - 'twitter' - 'skype') FROM bson_unwind(d, 'contact_method') AS u (doc)) $f$;
SELECT schema_versioning_enable('people', field => 'schema_version', current => 2, write => 'accept');
SELECT schema_versioning_step('people', 1, 2, up => 'people_1_to_2(bson)', down => 'people_2_to_1(bson)');
INSERT INTO people (doc) VALUES
  ('{_id: 1, name: "Anakin Skywalker", home: "503-555-0000", work: "503-555-0010"}'),
  ('{_id: 2, name: "Darth Vader", home: "503-555-0100", work: "503-555-0110", mobile: "503-555-0120"}'),
  ('{_id: 3, schema_version: "2", name: "Anakin Skywalker (Retired)", contact_method: [{work: "503-555-0210"}, {mobile: "503-555-0220"}, {twitter: "@anaskywalker"}, {skype: "AlwaysWithYou"}]}');

-- They are stored as they were written, and read in the present shape, or in the old one by applications that know no other.
SELECT doc FROM people ORDER BY _id;
SELECT doc FROM people_current ORDER BY _id;
SELECT doc FROM people_v1 ORDER BY _id;
SELECT * FROM schema_versioning_histogram('people');

-- An old application changes a number in a new document. It knows nothing of twitter, and twitter stays.
UPDATE people_v1 SET doc = bson_set(doc, 'mobile', '503-555-0299') WHERE _id = 3;
SELECT doc FROM people WHERE _id = 3;
-- A new one writes to an old document, which then has the new shape.
UPDATE people_current SET doc = bson_update(doc, '{$push: {contact_method: {twitter: "@vader"}}}') WHERE _id = 2;
SELECT doc FROM people WHERE _id = 2;

-- Is there a way back? A sample of documents is brought up and down again.
SELECT * FROM schema_versioning_test('people');
-- The rest is brought to the present shape in batches. It can be stopped at any time, and goes on when it is called again.
CALL schema_versioning_migrate('people', batch => 2, pause => '1 ms');
SELECT rel, target, state, documents, part FROM schema_versioning_progress;
SELECT doc FROM people ORDER BY _id;
-- What nobody knows yet is refused.
INSERT INTO people (doc) VALUES ('{_id: 9, schema_version: 7}');
INSERT INTO people (doc) VALUES ('{_id: 9, schema_version: "new"}');
SELECT * FROM pattern_check('people');

-- A step may also be an update document, or stages of one. There are three versions here; the documents of the last one have to
-- satisfy a schema.
SELECT collection_create('customers');
SELECT schema_versioning_enable('customers', current => 3);
SELECT schema_versioning_step('customers', 1, 2, up_update => '{$rename: {phone: "mobile"}}', down_update => '{$rename: {mobile: "phone"}}'),
       schema_versioning_step('customers', 2, 3, up_update => '[{$set: {contact: {mobile: "$mobile"}}}, {$unset: "mobile"}]', down_update => '[{$set: {mobile: "$contact.mobile"}}, {$unset: "contact"}]',
                              schema => '{properties: {contact: {bsonType: "object", properties: {mobile: {bsonType: "string"}}}}}');
-- Unless it is told otherwise, what is written in an old shape is brought to the present one at once.
INSERT INTO customers (doc) VALUES ('{_id: 1, phone: "111"}'), ('{_id: 2, schema_version: 2, mobile: "222"}'), ('{_id: 3, schema_version: 3, contact: {mobile: "333"}}') RETURNING doc;
INSERT INTO customers (doc) VALUES ('{_id: 4, phone: 444}');

-- Each version has a function of its own, and an index on it serves documents of all versions.
SELECT pattern_alter('customers', NULL, '{write: "accept"}');
UPDATE customers SET doc = '{_id: 1, phone: "111"}' WHERE _id = 1;
CREATE INDEX customers_mobile ON customers ((customers_as_v3(doc) -> 'contact.mobile'));
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT _id FROM customers_current WHERE doc -> 'contact.mobile' = '111'::text;
SELECT _id FROM customers_current WHERE doc -> 'contact.mobile' = '111'::text;
RESET enable_seqscan;

-- A fourth version. The index goes on serving all of them.
SELECT schema_versioning_step('customers', 3, 4, up_update => '{$rename: {contact: "contacts"}}', down_update => '{$rename: {contacts: "contact"}}');
SELECT pattern_alter('customers', NULL, '{current: 4}');
INSERT INTO customers (doc) VALUES ('{_id: 5, schema_version: 4, contacts: {mobile: "555"}}');
SELECT _id, doc FROM customers WHERE customers_as_v3(doc) -> 'contact.mobile' = '555'::text;

-- Upgraded when it is accessed: what is read in the present shape is also stored in it.
SELECT schema_versioning_read('customers', 1);
SELECT doc FROM customers WHERE _id = 1;

-- The step to version 2 was wrong, it should have kept the old field. An index still uses the function of version 3 as it was, so
-- there is a new one; nothing that an index was made of changes behind it.
SELECT schema_versioning_step('customers', 1, 2, up_update => '[{$set: {mobile: "$phone"}}]', down_update => '{$unset: {mobile: 1}}');
SELECT proname FROM pg_proc WHERE proname LIKE 'customers\_as\_%' ORDER BY 1;
DROP INDEX customers_mobile;
SELECT pattern_repair('customers');
SELECT proname FROM pg_proc WHERE proname LIKE 'customers\_as\_%' ORDER BY 1;

-- A step that fails stops a migration at the document, which is named; those before it have been brought up.
SELECT schema_versioning_step('customers', 4, 5, up_update => '{$inc: {"contacts.calls": 1}}', down_update => '{$unset: {"contacts.calls": 1}}'), pattern_alter('customers', NULL, '{current: 5}');
UPDATE customers SET doc = '{_id: 3, schema_version: 4, contacts: {mobile: "333", calls: "many"}}' WHERE _id = 3;
CALL schema_versioning_migrate('customers');
SELECT rel, state, key, message FROM schema_versioning_progress WHERE rel = 'customers'::regclass;
UPDATE customers SET doc = bson_unset(doc, 'contacts.calls') WHERE _id = 3;
CALL schema_versioning_migrate('customers');
SELECT * FROM schema_versioning_histogram('customers');
-- Down, too; then the old version can be the current one again.
CALL schema_versioning_migrate('customers', target => 4);
SELECT pattern_alter('customers', NULL, '{current: 4}');
SELECT name, options FROM pattern_list('customers');
SELECT * FROM pattern_check();

-- The end of it: documents stay as they are, views and functions go.
SELECT pattern_disable('customers');
SELECT doc FROM customers ORDER BY _id;
DROP TABLE people CASCADE;
DROP TABLE customers;
SELECT count(*) FROM pg_proc WHERE proname ~ '^(people|customers)_as';
DROP FUNCTION people_1_to_2, people_2_to_1;
