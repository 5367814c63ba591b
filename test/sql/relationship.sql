-- Relationships: to embed or to link, both ways; $lookup as a function; arrays of ids on both sides that agree.
SET client_min_messages = warning;
SET timezone = 'UTC';
\set VERBOSITY terse
\pset null NULL

-- A patient and his procedures, linked in the child. $lookup is a function, a join is SQL's.
SELECT collection_create('patients'), collection_create('procedures');
INSERT INTO patients (doc) VALUES ('{_id: 1, name: "John Doe", age: 21}'), ('{_id: 2, name: "Jane Doe", age: 42}');
INSERT INTO procedures (doc) VALUES ('{_id: 1001, name: "PET Scan", date: ISODate("2023-02-23"), patient_id: 1}'), ('{_id: 1002, name: "Blood Test", date: ISODate("2023-03-23"), patient_id: 1}'), ('{_id: 1003, name: "Lost", patient_id: 9}');
SELECT bson_lookup('patients', '_id', doc -> 'patient_id') AS patient FROM procedures ORDER BY _id;
SELECT bson_lookup('procedures', '_id', '[1003, 1002]'::bson_value) AS procedures;
SELECT bson_lookup('patients', 'address.city', NULL::text) AS no_city;

-- What should it be? The advice comes with its reasons and the statement.
SELECT cardinality, children_max, orphans, embedded_max, choice, ids_in, why, statement FROM relationship_advise('patients', 'procedures', on_field => 'patient_id') \gx

-- Embedded, in one statement. Who belongs to nobody stays.
SELECT relationship_embed('patients', 'procedures', on_field => 'patient_id', into_field => 'procedures', keep_id => true);
SELECT doc FROM patients ORDER BY _id;
SELECT doc FROM procedures;

-- Linked again in the child, and with the ids in the parent.
SELECT relationship_link('patients', 'procedures', 'procedures2', on_field => 'patient_id');
SELECT doc FROM procedures2 ORDER BY _id;
SELECT doc FROM patients ORDER BY _id;
SELECT relationship_embed('patients', 'procedures2', on_field => 'patient_id', into_field => 'procedures', keep_id => true);
SELECT relationship_link('patients', 'procedures', 'procedures3', ids_in => 'parent');
SELECT doc FROM patients ORDER BY _id;
SELECT doc FROM procedures3 ORDER BY _id;
SELECT relationship_embed('patients', 'procedures3', into_field => 'procedures', keep_id => true);
SELECT doc FROM patients WHERE _id = 1;

-- One to one: a sub-document.
SELECT collection_create('passports');
INSERT INTO passports (doc) VALUES ('{_id: "P1", owner: 1, country: "DK"}'), ('{_id: "P2", owner: 2, country: "SE"}');
SELECT cardinality, choice, statement FROM relationship_advise('patients', 'passports', on_field => 'owner');
SELECT relationship_embed('patients', 'passports', on_field => 'owner', into_field => 'passport', keep_id => true, one => true);
SELECT doc -> 'passport' AS passport FROM patients ORDER BY _id;
SELECT relationship_link('patients', 'passport', 'passports', on_field => 'owner');
SELECT doc FROM passports ORDER BY _id;
INSERT INTO passports (doc) VALUES ('{_id: "P3", owner: 2, country: "NO"}');
SELECT relationship_embed('patients', 'passports', on_field => 'owner', into_field => 'passport', one => true);

-- Many to many: a document that has several parents is embedded in each, and is one again when it is linked.
SELECT collection_create('authors'), collection_create('books');
INSERT INTO authors (doc) VALUES ('{_id: "ann"}'), ('{_id: "bob"}');
INSERT INTO books (doc) VALUES ('{_id: 1, title: "Both", authors: ["ann", "bob"]}'), ('{_id: 2, title: "Hers", authors: ["ann"]}');
SELECT relationship_embed('authors', 'books', on_field => 'authors', keep_id => true);
SELECT doc FROM authors ORDER BY _id;
SELECT relationship_link('authors', 'books', 'books', on_field => 'authors');
SELECT relationship_link('authors', 'books', 'books', on_field => 'authors', many_to_many => true);
SELECT doc FROM books ORDER BY _id;
SELECT doc FROM authors ORDER BY _id;

-- A document that would be too large is refused, with its key.
\set VERBOSITY default
\set SHOW_CONTEXT never
SET docpatterns.max_document_size = '100kB';
INSERT INTO books (doc) SELECT bson_build('_id', 100 + i, 'authors', 'bob', 'text', repeat('x', 30000)) FROM generate_series(1, 4) i;
SELECT relationship_embed('authors', 'books', on_field => 'authors');
RESET docpatterns.max_document_size;
SELECT count(*) FROM books;
-- So is a field that has something else, and an id of nobody.
UPDATE authors SET doc = bson_set(doc, 'books', 'none'::text) WHERE _id = 'ann'::text;
SELECT relationship_embed('authors', 'books', on_field => 'authors');
SELECT relationship_link('authors', 'books', 'books', on_field => 'authors');
UPDATE authors SET doc = bson_set(doc, 'books', '[1, 77]'::bson_value) WHERE _id = 'ann'::text;
SELECT relationship_embed('authors', 'books', into_field => 'books');

-- Ids on both sides: whichever is written, the other follows.
SELECT collection_create('doctors');
SELECT relationship_enable('patients', 'doctors', 'doctors', 'patients');
INSERT INTO doctors (doc) VALUES ('{_id: 1, name: "Dr. Strange"}'), ('{_id: 2, name: "Dr. House"}'), ('{_id: 3, name: "Dr. Who"}');
UPDATE patients SET doc = bson_set(bson_unset(doc, 'procedures'), 'doctors', '[1, 2]'::bson_value) WHERE _id = 1;
UPDATE patients SET doc = bson_set(doc, 'doctors', '[2, 3]'::bson_value) WHERE _id = 2;
SELECT doc FROM doctors ORDER BY _id;
UPDATE doctors SET doc = bson_update(doc, '{$addToSet: {patients: 2}}') WHERE _id = 1;
UPDATE patients SET doc = bson_update(doc, '{$pull: {doctors: 2}}') WHERE _id = 1;
UPDATE doctors SET doc = bson_set(doc, '_id', 33) WHERE _id = 3;
SELECT doc -> '_id' AS patient, doc -> 'doctors' AS doctors FROM patients ORDER BY _id;
SELECT doc -> '_id' AS doctor, doc -> 'patients' AS patients FROM doctors ORDER BY _id;
UPDATE patients SET doc = bson_update(doc, '{$push: {doctors: 99}}') WHERE _id = 1;
UPDATE patients SET doc = bson_set(doc, 'doctors', 5) WHERE _id = 1;
DELETE FROM doctors WHERE _id = 33;
SELECT doc -> 'doctors' AS doctors FROM patients ORDER BY _id;
SELECT * FROM pattern_check('patients');

-- Friends: both sides are one array.
SELECT collection_create('users');
INSERT INTO users (doc) VALUES ('{_id: "ann", friends: ["bob"]}'), ('{_id: "bob"}'), ('{_id: "cy"}');
SELECT relationship_enable('users', 'friends', 'users', 'friends', missing => 'allow');
SELECT key, what, expected, found FROM pattern_check('users');
CALL pattern_build('users');
UPDATE users SET doc = bson_update(doc, '{$addToSet: {friends: {$each: ["ann", "dan"]}}}') WHERE _id = 'cy'::text;
INSERT INTO users (doc) VALUES ('{_id: "dan"}');
SELECT doc FROM users ORDER BY _id;
TRUNCATE doctors;
SELECT doc -> 'doctors' AS doctors FROM patients ORDER BY _id;
SELECT * FROM pattern_check();
SELECT rel, pattern, name FROM pattern_list() ORDER BY 1;
SELECT pattern_disable('users'), pattern_disable('patients');
DROP TABLE patients, procedures, procedures2, procedures3, passports, authors, books, doctors, users;
