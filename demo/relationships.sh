# Documents that belong together: a bookstore's catalogue in one collection, patients and their doctors. Sourced by run.sh.

title 'What belongs together'
say "A bookstore's page shows a book with its reviews and their authors: three collections and a join, or one collection in which every" \
  "document says to what it belongs. Three small collections, and the statement that makes one of them:"
ask "SET client_min_messages = warning;
SELECT collection_create('books'), collection_create('readers'), collection_create('reviews')" >/dev/null
ask "INSERT INTO books (doc) SELECT bson_build('_id', 202300 + i, 'title', 'Book ' || i) FROM generate_series(1, 500) i;
INSERT INTO readers (doc) SELECT bson_build('_id', 'reader' || i, 'books', bson_array(202301 + i % 500, 202301 + i * 7 % 500)) FROM generate_series(1, 800) i;
INSERT INTO reviews (doc) SELECT bson_build('_id', i, 'book', 202301 + i % 500, 'reader', 'reader' || 1 + i % 800, 'rating', 1 + i % 5) FROM generate_series(1, 2000) i"
show "SELECT single_collection_from('catalog', '{books,readers,reviews}',
  '{book,reader,review}', id_fields => '{book: \"bookId\"}',
  self_related => '{book}', links => '{
    review: {book: \"book\", reader: \"reader\"}, reader: {books: [\"book\"]}}')"
show "SELECT doc ->> 'docType' AS type, count(*), min(doc ->> 'relatedTo') AS related_to
FROM single_collection_get('catalog', 202356) AS doc GROUP BY 1 ORDER BY 1"
say "One scan of one index. A review of a book that does not exist, and the end of a book that has reviews:"
show -t "INSERT INTO catalog (doc)
VALUES ('{docType: \"review\", relatedTo: [999999], rating: 5}')" || :
show -t "DELETE FROM catalog WHERE doc @@ '{bookId: 202356}'" || :
show "SELECT * FROM pattern_check('catalog')"
[ "$(ask "SELECT count(*) FROM pattern_check('catalog')")" = 0 ] || { echo "pattern_check found violations"; exit 1; }
say "And the way back:"
show "SELECT * FROM single_collection_split('catalog',
  '{book: \"books\", reader: \"readers\", review: \"reviews\"}')"

say "Should reviews be inside of their books? The tables know:"
show -x "SELECT cardinality, children_max, embedded_max, choice, why, statement
FROM relationship_advise('books', 'reviews', on_field => 'book')"
show "SELECT relationship_embed('books', 'reviews', on_field => 'book', into_field => 'reviews')"
show -t "SELECT bson_project(doc, '{reviews: {\$slice: 2}}') FROM books WHERE _id = 202356"

say "Patients have doctors and doctors have patients, each with the ids of the others. Whichever side is written, they agree:"
ask "SET client_min_messages = warning; SELECT collection_create('patients'), collection_create('doctors')" >/dev/null
show "SELECT relationship_enable('patients', 'doctors', 'doctors', 'patients')"
show "INSERT INTO doctors (doc) VALUES ('{_id: 1, name: \"Dr. Strange\"}'),
  ('{_id: 2, name: \"Dr. House\"}'), ('{_id: 3, name: \"Dr. Who\"}')"
show "INSERT INTO patients (doc) VALUES
  ('{_id: 1, name: \"John Doe\", doctors: [1, 2]}'),
  ('{_id: 2, name: \"Jane Doe\", doctors: [2, 3]}')"
show "UPDATE doctors SET doc = bson_update(doc, '{\$addToSet: {patients: 2}}')
WHERE _id = 1"
show -t "SELECT doc FROM patients UNION ALL SELECT doc FROM doctors"
show "SELECT * FROM pattern_check('patients')"
[ "$(ask "SELECT count(*) FROM pattern_check('patients')")" = 0 ] || { echo "pattern_check found violations"; exit 1; }
ask 'SET client_min_messages = warning; DROP TABLE catalog, books, readers, reviews, patients, doctors CASCADE'
