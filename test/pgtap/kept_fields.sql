-- What may be written to fields that patterns keep: each row of the table in docs/patterns_together.md, its columns in their order.
-- Descriptions begin with the row's first two columns.
SET client_min_messages = warning;
SELECT plan(138);

CREATE FUNCTION pg_temp.refused(command text, state text, said text, what text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  found text;
  hint text;
  message text;
BEGIN
  BEGIN
    EXECUTE command;
  EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS found = RETURNED_SQLSTATE, hint = PG_EXCEPTION_HINT, message = MESSAGE_TEXT;
  END;
  RETURN is(concat(found, CASE WHEN concat(message, hint) LIKE '%' || said || '%' THEN '' ELSE ': ' || concat(message, '; ', hint) END), state, what);
END $$;
CREATE FUNCTION pg_temp.doc(tab regclass, id bson_value DEFAULT '1') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  d text;
BEGIN
  EXECUTE format('SELECT doc::text FROM %s WHERE _id = $1', tab) INTO d USING id;
  RETURN d;
END $$;
CREATE FUNCTION pg_temp.all_true(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;

-- subset
SELECT collection_create(t) FROM unnest('{products,reviews,whole_products,whole_reviews,weak,weak_rows,blind,blind_rows}'::text[]) t \g /dev/null
SELECT subset_enable('products', 'reviews', 'reviews', 'product', '{d: -1}', 3, fields => '{id: "$_id", d: 1, t: 1}', filter => '{hidden: {$exists: false}}', count_field => 'n') \g /dev/null
INSERT INTO products (doc) VALUES ('{_id: 1, reviews: [{id: 1, d: 1, more: true}, {id: 2, d: 2, t: "b"}]}');
SELECT is(pg_temp.doc('products'), '{"_id": 1, "reviews": [{"id": 2, "d": 2, "t": "b"}, {"id": 1, "d": 1}], "n": 2}', 'subset, array: elements of a new document are shown in their order');
SELECT is(string_agg(doc::text, ' ' ORDER BY _id), '{"d": 1, "more": true, "_id": 1, "product": 1} {"d": 2, "t": "b", "_id": 2, "product": 1}', 'subset, array: and are rows') FROM reviews;
CREATE TABLE old AS SELECT doc, 1 AS n FROM products;
SELECT is(modified, 1::bigint, 'subset, array: $push') FROM collection_update('products', '{_id: 1}', '{$push: {reviews: {id: 3, d: 3}}}');
SELECT is(pg_temp.doc('reviews', '3'), '{"d": 3, "_id": 3, "product": 1}', 'subset, array: makes a row');
INSERT INTO old SELECT doc, 2 FROM products;
INSERT INTO reviews (doc) VALUES ('{_id: 4, product: 1, d: 4}'), ('{_id: 5, product: 1, d: 1.5}');
UPDATE reviews SET doc = bson_set(doc, 't', 'edited'::text) WHERE _id = '3';
DELETE FROM reviews WHERE _id IN ('2', '4');
SELECT is(pg_temp.doc('products'), '{"_id": 1, "reviews": [{"id": 3, "d": 3, "t": "edited"}, {"id": 5, "d": 1.5}, {"id": 1, "d": 1}], "n": 3}', 'subset, array: as it is now');
UPDATE products SET doc = bson_set(old.doc, 'price', n) FROM old WHERE n = 2;
SELECT is(pg_temp.doc('products'), '{"_id": 1, "reviews": [{"id": 3, "d": 3, "t": "edited"}, {"id": 5, "d": 1.5}, {"id": 1, "d": 1}], "n": 3, "price": 2}', 'subset, array: an old copy is corrected');
INSERT INTO products (doc) SELECT bson_set(doc, 'price', n) FROM old WHERE n = 1 ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is(pg_temp.doc('products'), '{"_id": 1, "reviews": [{"id": 3, "d": 3, "t": "edited"}, {"id": 5, "d": 1.5}, {"id": 1, "d": 1}], "n": 3, "price": 1}', 'subset, array: an older one, as an upsert');
INSERT INTO products (doc) SELECT doc FROM old WHERE n = 1 ON CONFLICT DO NOTHING;
SELECT is((SELECT count(*) FROM reviews), 3::bigint, 'subset, array: no row comes back');
INSERT INTO products (doc) SELECT bson_set(doc, 'reviews.2', '{id: 6, d: 6}'::bson) FROM old WHERE n = 1 ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is(string_agg(_id::text, ' ' ORDER BY _id), '1 3 5 6', 'subset, array: what is new in an old copy is a row') FROM reviews;
SELECT is(doc ->> 'reviews.0.id', '6', 'subset, array: and shown') FROM products;
UPDATE products SET doc = bson_set(doc, 'reviews.0.t', 'by hand'::text);
SELECT is(doc ->> 'reviews.0.t', NULL, 'subset, array: an edited element is corrected') FROM products;
UPDATE products SET doc = bson_unset(doc, 'reviews');
SELECT is(bson_array_length(doc, 'reviews'), 3, 'subset, array: one that is left out comes back') FROM products;
SELECT pg_temp.refused(format($$SELECT collection_update('products', '{_id: 1}', '{$push: {reviews: %s}}')$$, e), '55000', 'reviews', 'subset, array: ' || what) FROM (VALUES
  ('{id: 9}', 'an element without the field of the order'), ('{id: 9, d: 9, product: 2}', 'of another document'), ('"text"', 'that is not a document'), ('{id: 9, d: 9, hidden: 1}', 'that the filter leaves out')) v (e, what);
SELECT pg_temp.refused($$UPDATE products SET doc = bson_set(doc, 'reviews', 5)$$, '55000', 'reviews', 'subset, array: a value that is no array');
SELECT pg_temp.refused($$INSERT INTO products (doc) VALUES ('{_id: 2, reviews: [{id: 9}]}')$$, '55000', 'reviews', 'subset, array: in a new document, too');
UPDATE products SET doc = bson_set(doc, 'n', 77);
SELECT is(doc ->> 'n', '4', 'subset, count: any number in an update is corrected') FROM products;
SELECT pg_temp.refused($$INSERT INTO products (doc) VALUES ('{_id: 2, n: 3}')$$, '55000', 'reviews', 'subset, count: in a new document without rows');
INSERT INTO reviews (doc) VALUES ('{_id: 20, product: 2, d: 1}');
INSERT INTO products (doc) VALUES ('{_id: 2, n: 3, reviews: [{id: 20, d: 1, t: "copy"}]}');
SELECT is(pg_temp.doc('products', '2'), '{"_id": 2, "n": 1, "reviews": [{"id": 20, "d": 1}]}', 'subset, count: with rows it is corrected');
UPDATE reviews SET doc = bson_set(doc, 'product', 2) WHERE _id = '6';
UPDATE products SET doc = old.doc FROM (SELECT bson_set(doc, 'reviews', '[{id: 6, d: 6}]'::bson_value) AS doc FROM products WHERE _id = '1') AS old WHERE _id = '1';
SELECT is((SELECT doc ->> 'product' FROM reviews WHERE _id = '6'), '2', 'subset, array: a row that has moved on stays there');
-- whole documents as members; members known by what they show of the order, or by their bytes
SELECT subset_enable('whole_products', 'r', 'whole_reviews', 'p', '{d: -1}', 2) \g /dev/null
INSERT INTO whole_products (doc) VALUES ('{_id: 1, r: [{id: 1, d: 1}, {id: 2, d: 2}, {id: 3, d: 3}]}');
SELECT is((SELECT count(*) FROM whole_reviews), 3::bigint, 'subset, array: elements that are not shown are rows, too');
UPDATE whole_products SET doc = bson_set(doc, 'r.2', '{id: 4, d: 4}'::bson);
SELECT is(doc ->> 'r.0.id', '4', 'subset, array: a new element without an _id') FROM whole_products;
SELECT subset_enable('weak', 'r', 'weak_rows', 'p', '{d: -1}', 2, fields => '{d: 1, t: 1}') \g /dev/null
INSERT INTO weak (doc) VALUES ('{_id: 1, r: [{d: 1}, {d: 2, t: "x"}]}');
DELETE FROM old; INSERT INTO old SELECT doc, 1 FROM weak;
DELETE FROM weak_rows WHERE doc ->> 'd' = '2';
UPDATE weak_rows SET doc = bson_set(bson_set(doc, 'd', 5), 't', 'y'::text);
UPDATE weak SET doc = bson_set(old.doc, 'a', 1) FROM old;
SELECT is(pg_temp.doc('weak'), '{"_id": 1, "r": [{"d": 5, "t": "y"}], "a": 1}', 'subset, array: an old copy whose members show no _id');
UPDATE weak SET doc = bson_set(doc, 'r.1', '{d: 7}'::bson);
SELECT is((SELECT count(*) FROM weak_rows), 2::bigint, 'subset, array: and a new element');
SELECT subset_enable('blind', 'r', 'blind_rows', 'p', '{_id: 1}', 3, fields => '{_id: 0, p: 0}') \g /dev/null
INSERT INTO blind (doc) VALUES ('{_id: 1, r: [{t: "a"}, {t: "b"}]}');
DELETE FROM old; INSERT INTO old SELECT doc, 1 FROM blind;
UPDATE blind SET doc = bson_set(doc, 'r.2', '{t: "c"}'::bson);
SELECT is(pg_temp.doc('blind'), '{"_id": 1, "r": [{"t": "a"}, {"t": "b"}, {"t": "c"}]}', 'subset, array: elements known by their bytes');
DELETE FROM blind_rows WHERE doc ->> 't' = 'b';
UPDATE blind SET doc = old.doc FROM old;
SELECT is(pg_temp.doc('blind'), '{"_id": 1, "r": [{"t": "a"}, {"t": "c"}]}', 'subset, array: an old copy of these');
SELECT pg_temp.refused($$UPDATE blind SET doc = bson_set(doc, 'r.0.t', 'edited'::text)$$, '55000', 'blind_rows', 'subset, array: an element that may be new or edited');
-- rows are inserted by the role that writes the document
CREATE ROLE kept_writer;
GRANT SELECT, INSERT, UPDATE ON products TO kept_writer;
SET ROLE kept_writer;
SELECT throws_ok($$UPDATE products SET doc = bson_set(doc, 'reviews.3', '{id: 50, d: 50}'::bson) WHERE _id = '1'$$, '42501', NULL, 'subset, array: without the right to insert rows');
SELECT lives_ok($$UPDATE products SET doc = bson_set(doc, 'reviews.0.t', 'x'::text)$$, 'subset, array: an old copy needs none');
RESET ROLE;
REVOKE ALL ON products FROM kept_writer;
DROP ROLE kept_writer;
SELECT pg_temp.all_true('subset');

-- computed
SELECT collection_create(t) FROM unnest('{movies,screenings,late}'::text[]) t \g /dev/null
SELECT computed_enable('movies', source => 'screenings', on_field => 'movie', fields => '{viewers: {$sum: "$n"}, shows: {$count: {}}, best: {$max: "$n"}}') \g /dev/null
INSERT INTO movies (doc) VALUES ('{_id: 1, viewers: 0, best: null}');
SELECT is(pg_temp.doc('movies'), '{"_id": 1, "viewers": 0, "best": null, "shows": 0}', 'computed, field: of no rows');
SELECT pg_temp.refused(format($$INSERT INTO movies (doc) VALUES ('{_id: 2, %s}')$$, f), '55000', 'screenings', 'computed, field: in a new document without rows, ' || f) FROM unnest('{viewers: 15234.5,best: 1,"shows: \"many\""}'::text[]) f;
INSERT INTO screenings (doc) VALUES ('{movie: 1, n: 10}'), ('{movie: 2, n: 20}');
SELECT is(modified, 1::bigint, 'computed, field: $inc of old code') FROM collection_update('movies', '{_id: 1}', '{$inc: {viewers: 10}}');
INSERT INTO movies (doc) VALUES ('{_id: 2, viewers: 77}'), ('{_id: 1, viewers: 5}') ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is(string_agg(doc ->> 'viewers', ' ' ORDER BY _id), '10 20', 'computed, field: is corrected, as are old copies and new documents with rows') FROM movies;
SELECT computed_enable('late', source => 'screenings', on_field => 'movie', target_field => 'title', fields => '{viewers: {$sum: "$n"}}', mode => 'deferred') \g /dev/null
SELECT pg_temp.refused($$INSERT INTO late (doc) VALUES ('{title: 9, viewers: 5}')$$, '55000', 'screenings', 'computed, field: deferred');
SELECT pg_temp.refused($$INSERT INTO late (doc) VALUES ('{viewers: 5}')$$, '55000', 'screenings', 'computed, field: of no group');
INSERT INTO late (doc) VALUES ('{_id: 1, title: 1, viewers: 5}');
SELECT computed_refresh('late') \g /dev/null
SELECT is(pg_temp.doc('late'), '{"_id": 1, "title": 1, "viewers": 10}', 'computed, field: deferred, with rows');
SELECT pg_temp.all_true('computed');

-- single view
SELECT collection_create('crm') \g /dev/null
SELECT polymorphic_merge('customers_360', merge_on => 'customer', sources => '{crm}') \g /dev/null
INSERT INTO crm (doc) VALUES ('{_id: 1, customer: 1, a: 1}');
UPDATE customers_360 SET doc = bson_set(bson_set(doc, 'crm.a', 2), 'own', 1);
SELECT is(doc ->> 'crm.a', '1', 'single view, field of a source: a change is corrected') FROM customers_360;
SELECT pg_temp.refused($$INSERT INTO customers_360 (doc) VALUES ('{customer: 2, crm: {a: 2}}')$$, '55000', 'crm', 'single view, field of a source: that has nothing');
SELECT pg_temp.refused($$INSERT INTO customers_360 (doc) VALUES ('{crm: {a: 2}}')$$, '55000', 'crm', 'single view, field of a source: in a document without a key');
INSERT INTO customers_360 (doc) VALUES ('{customer: 3, own: 1}');
SELECT pg_temp.refused($$UPDATE customers_360 SET doc = bson_set(doc, 'crm.a', 2) WHERE doc -> 'customer' = 3$$, '55000', 'crm', 'single view, field of a source: added later');
SELECT pg_temp.refused($$UPDATE customers_360 SET doc = bson_set(doc, 'customer', 4) WHERE doc -> 'customer' = 1$$, '55000', '', 'single view, field of a source: another key');
SELECT pg_temp.refused($$DELETE FROM customers_360 WHERE doc -> 'customer' = 1$$, '55000', '', 'single view, field of a source: deleting');
SELECT pg_temp.all_true('single view');

-- trees
CREATE FUNCTION pg_temp.node(tab regclass, name text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  d text;
BEGIN
  EXECUTE format('SELECT bson_unset(doc, ''_id'')::text FROM %s WHERE doc ->> ''name'' = $1', tab) INTO d USING name;
  RETURN d;
END $$;
SELECT collection_create(t) FROM unnest('{emp,by_list,by_path,goods}'::text[]) t \g /dev/null
SELECT tree_enable('emp', node_id => 'name', parent => 'boss', ancestors => 'above', path => 'path', children => 'kids', depth => 'depth') \g /dev/null
INSERT INTO emp (doc) VALUES ('{name: "A"}'), ('{name: "B", above: ["A"]}'), ('{name: "D"}');
SELECT is(pg_temp.node('emp', 'B'), '{"name": "B", "above": ["A"], "boss": "A", "path": ".A", "depth": 1, "kids": []}', 'tree, ancestors: alone, they tell the parent');
INSERT INTO emp (doc) VALUES ('{name: "C", path: ".A.B"}');
SELECT is(pg_temp.node('emp', 'C'), '{"name": "C", "path": ".A.B", "boss": "B", "above": ["A", "B"], "depth": 2, "kids": []}', 'tree, path: alone, it tells the parent');
INSERT INTO emp (doc) VALUES ('{name: "E", boss: "C", above: [], path: null}');
SELECT is(pg_temp.node('emp', 'E'), '{"name": "E", "boss": "C", "above": ["A", "B", "C"], "path": ".A.B.C", "depth": 3, "kids": []}', 'tree, ancestors: empty ones are made');
UPDATE emp SET doc = bson_set(doc, 'above', '["A"]'::bson_value) WHERE doc ->> 'name' = 'D';
SELECT is(pg_temp.node('emp', 'D'), '{"name": "D", "above": ["A"], "path": ".A", "depth": 1, "kids": [], "boss": "A"}', 'tree, ancestors: a root gets the parent that they tell');
SELECT pg_temp.refused(format($$SELECT collection_update('emp', '{name: "C"}', '{%s}')$$, u), '55000', 'boss', 'tree, ' || what) FROM (VALUES
  ('$set: {above: ["A"]}', 'ancestors: of another parent'), ('$push: {above: "Nobody"}', 'ancestors: with a new nearest one'),
  ('$push: {above: {$each: ["Nobody"], $position: 0}}', 'ancestors: with a new root'), ('$set: {above: "A"}', 'ancestors: no array'),
  ('$set: {path: ".A"}', 'path: of another parent'), ('$set: {path: 5}', 'path: no text'),
  ('$push: {kids: "Nobody"}', 'children: an id that is no node'), ('$push: {kids: "D"}', 'children: a node that never hung there'), ('$set: {kids: 5}', 'children: no array')) v (u, what);
SELECT pg_temp.refused($$INSERT INTO emp (doc) VALUES ('{name: "F", boss: "A", above: ["A", "Nobody"]}')$$, '55000', 'boss', 'tree, ancestors: of a parent that is no node, in a new node');
INSERT INTO emp (doc) SELECT bson_set(bson_set(bson_unset(doc, '_id'), 'name', 'F'::text), 'boss', 'A'::text) FROM emp WHERE doc ->> 'name' = 'E';
SELECT is(pg_temp.node('emp', 'F'), '{"name": "F", "boss": "A", "above": ["A"], "path": ".A", "depth": 1, "kids": []}', 'tree, ancestors: those of a node that was copied');
DELETE FROM emp WHERE doc ->> 'name' = 'F';
SELECT pg_temp.refused($$UPDATE emp SET doc = bson_set(doc, 'boss', 'Nobody'::text) WHERE doc ->> 'name' = 'D'$$, '23503', '', 'tree, the truth: a missing parent');
SELECT pg_temp.refused($$UPDATE emp SET doc = bson_set(doc, 'boss', 'E'::text) WHERE doc ->> 'name' = 'A'$$, '23514', '', 'tree, the truth: a circle');
DELETE FROM old; INSERT INTO old SELECT doc FROM emp;
DELETE FROM emp WHERE doc ->> 'name' = 'E';
UPDATE emp SET doc = bson_set(doc, 'boss', 'D'::text) WHERE doc ->> 'name' = 'B';
UPDATE emp SET doc = bson_set(doc, 'name', 'AA'::text) WHERE doc ->> 'name' = 'A';
UPDATE emp SET doc = bson_set(old.doc, 'seen', 1) FROM old WHERE emp.doc ->> 'name' = 'C' AND old.doc ->> 'name' = 'C';
SELECT is(pg_temp.node('emp', 'C'), '{"name": "C", "path": ".AA.D.B", "boss": "B", "above": ["AA", "D", "B"], "depth": 3, "kids": [], "seen": 1}', 'tree: old copies of all forms are corrected');
DELETE FROM old; INSERT INTO old SELECT doc FROM emp WHERE doc ->> 'name' = 'D';
UPDATE emp SET doc = bson_set(doc, 'boss', 'AA'::text) WHERE doc ->> 'name' = 'B';
UPDATE emp SET doc = old.doc FROM old WHERE emp.doc ->> 'name' = 'D';
SELECT is(doc ->> 'kids', '[]', 'tree, children: one that hangs elsewhere now') FROM emp WHERE doc ->> 'name' = 'D';
UPDATE emp SET doc = bson_set(doc, 'depth', 77);
SELECT is(string_agg(doc ->> 'depth', ' ' ORDER BY doc ->> 'name'), '0 1 2 1', 'tree, depth: any value is corrected') FROM emp;
UPDATE emp SET doc = bson_set(doc, 'boss', 'D'::text) WHERE doc ->> 'name' = 'C';
SELECT is(pg_temp.node('emp', 'C'), '{"name": "C", "path": ".AA.D", "boss": "D", "above": ["AA", "D"], "depth": 2, "kids": [], "seen": 1}', 'tree, the truth: a move takes its old forms along');
INSERT INTO emp (doc) VALUES ('{name: "P", kids: ["Q"]}');
INSERT INTO emp (doc) VALUES ('{name: "Q", boss: "P"}');
SELECT is(doc ->> 'kids', '["Q"]', 'tree, children: a new node may name those that come') FROM emp WHERE doc ->> 'name' = 'P';
SELECT tree_enable('by_list', node_id => 'name', parent => 'boss', ancestors => 'above', truth => 'ancestors') \g /dev/null
INSERT INTO by_list (doc) VALUES ('{name: "A"}'), ('{name: "B", boss: "A"}');
SELECT is(pg_temp.node('by_list', 'B'), '{"name": "B", "boss": "A", "above": ["A"]}', 'tree, parent: alone, it tells the ancestors');
INSERT INTO by_list (doc) VALUES ('{name: "C"}');
SELECT pg_temp.refused($$UPDATE by_list SET doc = bson_set(doc, 'boss', 'C'::text) WHERE doc ->> 'name' = 'B'$$, '55000', 'above', 'tree, parent: another one');
SELECT tree_enable('by_path', node_id => 'name', parent => 'boss', path => 'path', truth => 'path') \g /dev/null
INSERT INTO by_path (doc) VALUES ('{name: "A"}'), ('{name: "B", boss: "A"}');
SELECT is(pg_temp.node('by_path', 'B'), '{"name": "B", "boss": "A", "path": ".A"}', 'tree, parent: alone, it tells the path');
SELECT tree_attach('goods', tree => 'emp', parent => 'node', ancestors => 'nodes', ancestors_order => 'nearest_first') \g /dev/null
INSERT INTO goods (doc) VALUES ('{_id: 1, nodes: ["C", "D", "AA"]}');
SELECT is(pg_temp.doc('goods'), '{"_id": 1, "nodes": ["C", "D", "AA"], "node": "C"}', 'tree_attach, ancestors: alone, they tell the node');
SELECT pg_temp.refused(format($$SELECT collection_update('goods', '{_id: 1}', '{%s}')$$, u), '55000', 'node', 'tree_attach, ancestors: ' || what) FROM (VALUES
  ('$set: {nodes: ["B"]}', 'of another node'), ('$push: {nodes: "Nobody"}', 'with one that does not exist')) v (u, what);
DELETE FROM old; INSERT INTO old SELECT doc FROM goods;
UPDATE emp SET doc = bson_set(doc, 'boss', 'B'::text) WHERE doc ->> 'name' = 'C';
UPDATE goods SET doc = bson_set(old.doc, 'seen', 1) FROM old;
SELECT is(pg_temp.doc('goods'), '{"_id": 1, "nodes": ["C", "B", "AA"], "node": "C", "seen": 1}', 'tree_attach, ancestors: an old copy is corrected');
SELECT pg_temp.all_true('trees');
SELECT pattern_alter('emp', 'boss', '{children: null}') \g /dev/null
SELECT hasnt_table('emp_boss_removed', 'tree, children: the list of removed children is dropped too');
SELECT pattern_alter('emp', 'boss', '{children: "reports"}') \g /dev/null
SELECT pattern_repair('emp') \g /dev/null
SELECT has_table('emp_boss_removed', 'tree, children: and created with them');

-- reference and relationship
SELECT collection_create(t) FROM unnest('{orders,customers,patients,doctors}'::text[]) t \g /dev/null
SELECT reference_enable('orders', field => 'customer', source => 'customers', id_field => '_id', live => '{name}', frozen => '{address}') \g /dev/null
INSERT INTO customers (doc) VALUES ('{_id: 1, name: "N", address: "A"}'), ('{_id: 2, name: "M", address: "B"}');
INSERT INTO orders (doc) VALUES ('{_id: 1, customer: {_id: 1, name: "wrong"}}');
SELECT is(pg_temp.doc('orders'), '{"_id": 1, "customer": {"_id": 1, "name": "N", "address": "A"}}', 'reference, live field: any value is corrected');
UPDATE orders SET doc = bson_set(bson_set(doc, 'customer.name', 'wrong'::text), 'customer.address', 'mine'::text);
SELECT is(pg_temp.doc('orders'), '{"_id": 1, "customer": {"_id": 1, "name": "N", "address": "mine"}}', 'reference, frozen field: is as it is written');
UPDATE orders SET doc = bson_set(doc, 'customer._id', 2);
SELECT is(pg_temp.doc('orders'), '{"_id": 1, "customer": {"_id": 2, "name": "M", "address": "B"}}', 'reference, id: the copy is filled');
SELECT pg_temp.refused($$UPDATE orders SET doc = bson_set(doc, 'customer._id', 3)$$, '23503', '', 'reference, id: that the source has not');
SELECT relationship_enable('patients', 'doctors', 'doctors', 'patients') \g /dev/null
INSERT INTO doctors (doc) VALUES ('{_id: 1}');
INSERT INTO patients (doc) VALUES ('{_id: 1, doctors: [1]}');
SELECT is(pg_temp.doc('doctors'), '{"_id": 1, "patients": [1]}', 'relationship, array: the other side follows');
UPDATE doctors SET doc = bson_set(doc, 'patients', '[]'::bson_value);
SELECT is(pg_temp.doc('patients'), '{"_id": 1, "doctors": []}', 'relationship, array: and back');
SELECT pg_temp.refused($$UPDATE doctors SET doc = bson_set(doc, 'patients', '[9]'::bson_value)$$, '23503', '', 'relationship, array: an id without a document');
SELECT pg_temp.refused($$UPDATE doctors SET doc = bson_set(doc, 'patients', 5)$$, '23514', '', 'relationship, array: no array');

-- outlier, cold fields, payload, attribute
SELECT collection_create(t) FROM unnest('{books,films,messages,things}'::text[]) t \g /dev/null
SELECT outlier_enable('books', 'buyers', 2, flag => 'more', count_field => 'n') \g /dev/null
INSERT INTO books (doc) VALUES ('{_id: 1, buyers: ["a", "b", "c"], more: "yes", n: 50}');
SELECT is(pg_temp.doc('books'), '{"_id": 1, "buyers": ["a", "b"], "more": true, "n": 3}', 'outlier, flag, count: any value is corrected');
UPDATE books SET doc = bson_set(bson_set(doc, 'n', 9), 'more', false);
SELECT is(pg_temp.doc('books'), '{"_id": 1, "buyers": ["a", "b"], "more": true, "n": 3}', 'outlier, flag, count: in an update, too');
UPDATE books SET doc = bson_set(doc, 'buyers.2', 'd'::text);
SELECT is(doc ->> 'buyers', '["a", "b", "c", "d"]', 'outlier, array: a change of the part in the document') FROM books_whole;
SELECT subset_fields_enable('films', cold => '{specs}') \g /dev/null
INSERT INTO films (doc) VALUES ('{_id: 1, specs: 1}');
UPDATE films SET doc = bson_set(doc, 'specs', 2);
SELECT is(pg_temp.doc('films') || pg_temp.doc('films_whole'), '{"_id": 1}{"_id": 1, "specs": 2}', 'cold fields: a value moves aside');
SELECT payload_enable('messages', field => 'xml', extracts => '{sender: "xpath:/m/from/text()"}') \g /dev/null
INSERT INTO messages (doc) VALUES ('{_id: 1, xml: "<m><from>ada</from></m>", sender: "bob"}');
SELECT is(doc ->> 'sender', 'ada', 'payload, extracted field: with a new payload, any value is corrected') FROM messages;
DELETE FROM old; INSERT INTO old SELECT doc FROM messages;
UPDATE messages SET doc = bson_set(doc, 'xml', '<m><from>eve</from></m>'::text);
SELECT is(doc ->> 'sender', 'eve', 'payload: a new one brings new fields') FROM messages;
UPDATE messages SET doc = bson_unset(doc, 'sender');
SELECT is(doc ->> 'sender', 'eve', 'payload, extracted field: one that is left out comes back') FROM messages;
SELECT pg_temp.refused($$UPDATE messages SET doc = bson_set(doc, 'sender', 'bob'::text)$$, '55000', 'xml', 'payload, extracted field: a new value');
SELECT pg_temp.refused($$UPDATE messages_whole SET doc = bson_set(doc, 'sender', 'bob'::text)$$, '55000', 'xml', 'payload, extracted field: through the view');
SELECT pg_temp.refused($$INSERT INTO messages (doc) VALUES ('{_id: 2, sender: "bob"}')$$, '55000', 'xml', 'payload, extracted field: without a payload');
UPDATE messages SET doc = old.doc FROM old;
SELECT is(doc ->> 'sender', 'ada', 'payload: an old copy is an old payload') FROM messages;
UPDATE messages SET doc = bson_unset(doc, 'xml');
SELECT is(pg_temp.doc('messages'), '{"_id": 1}', 'payload: one that goes takes its fields along');
SELECT attribute_enable('things', into_field => 'specs', prefix => 'spec_') \g /dev/null
INSERT INTO things (doc) VALUES ('{_id: 1, spec_a: 1, specs: [{name: "a", value: 2}, {name: "b", value: 3}]}');
SELECT is(pg_temp.doc('things'), '{"_id": 1, "specs": [{"name": "a", "value": 1}, {"name": "b", "value": 3}]}', 'attribute, array: any elements; a field replaces its element');

-- approximation, preallocated
SELECT collection_create(t) FROM unnest('{pages,rooms}'::text[]) t \g /dev/null
SELECT approximation_enable('pages', 'views', threshold => '100') \g /dev/null
INSERT INTO pages (doc) VALUES ('{_id: 1, views: 5}');
UPDATE pages SET doc = bson_set(doc, 'views', 50);
SELECT is(pg_temp.doc('pages'), '{"_id": 1, "views": 5}', 'approximation, counter: a small move is corrected');
UPDATE pages SET doc = bson_set(doc, 'views', 500);
SELECT is(pg_temp.doc('pages'), '{"_id": 1, "views": 500}', 'approximation, counter: a large one is not');
SELECT preallocated_enable('rooms', field => 'seats', shape => preallocated_grid(rows => '{2}'), available_field => 'free') \g /dev/null
INSERT INTO rooms (doc) VALUES ('{_id: 1, seats: [["ann", 0]], free: 77}');
SELECT is((SELECT doc ->> 'seats' FROM rooms_whole) || (SELECT doc ->> 'free' FROM rooms_whole), '[["ann", 0]]1', 'preallocated, cells: those of a new document are claims; available: any value is corrected');
SELECT pg_temp.refused(format($$UPDATE %s SET doc = bson_set(doc, 'seats', '%s'::bson_value)$$, t, s), '23514', '', 'preallocated, cells: ' || s)
  FROM unnest('{"[[\"ann\", \"bob\"]]","[[\"bob\", 0]]","[[0, 0]]"}'::text[]) s, unnest('{rooms,rooms_whole}'::text[]) t;
DELETE FROM old; INSERT INTO old SELECT doc FROM rooms_whole;
SELECT ok(preallocated_claim('rooms', 1, '{A2}', holder => 'bob', hold_for => '1 hour'), 'preallocated, cells: one more is taken');
UPDATE rooms_whole SET doc = bson_set(old.doc, 'title', 'x'::text) FROM old;
UPDATE rooms SET doc = bson_set(old.doc, 'title', 'x'::text) FROM old;
SELECT is(concat(doc ->> 'seats', doc ->> 'free', doc ->> 'title'), '[["ann", "bob"]]0x', 'preallocated, cells: a copy that was read before is corrected') FROM rooms_whole;
UPDATE rooms SET doc = bson_unset(doc, 'seats');
SELECT is(doc ->> 'seats', '[["ann", "bob"]]', 'preallocated, cells: those left out come back') FROM rooms_whole;

-- single collection, single table, versions
SELECT collection_create(t) FROM unnest('{catalog,people,policies,plain_policies}'::text[]) t \g /dev/null
SELECT single_collection_enable('catalog', type_field => 'docType', related_field => 'relatedTo', id_fields => '{book: "bookId"}', self_related => '{book}') \g /dev/null
INSERT INTO catalog (doc) VALUES ('{_id: 1, docType: "book", bookId: 1}'), ('{_id: 2, docType: "review", relatedTo: [1]}');
SELECT is(pg_temp.doc('catalog'), '{"_id": 1, "docType": "book", "bookId": 1, "relatedTo": [1]}', 'single collection, related ids: a self-relation comes back');
SELECT pg_temp.refused($$INSERT INTO catalog (doc) VALUES ('{docType: "review", relatedTo: [9]}')$$, '23503', '', 'single collection, related ids: without a document');
SELECT single_table_create('app', indexes => 1) \g /dev/null
SELECT single_table_entity('app', 'order', pk => 'USER#{user}', sk => 'ORDER#{nr}', gsi1_pk => 'STATUS#{status}') \g /dev/null
INSERT INTO app (doc) VALUES ('{PK: "USER#5", SK: "ORDER#7"}');
SELECT is(doc ->> 'user', '5', 'single table, PK: fields of a new item that only it tells') FROM app;
INSERT INTO app (doc) VALUES ('{PK: "USER#5", SK: "ORDER#8", user: "6"}');
SELECT is(string_agg(pk, ' ' ORDER BY sk), 'USER#5 USER#6', 'single table, PK: one that its fields contradict') FROM app;
SELECT pg_temp.refused(format($$UPDATE app SET doc = bson_set(doc, '%s', 'X#9'::text) WHERE sk = 'ORDER#7'$$, k), '55000', '', 'single table, ' || k || ': another one in an update') FROM unnest('{PK,SK,GSI1PK}'::text[]) k;
UPDATE app SET doc = bson_set(doc, 'user', '9'::text) WHERE sk = 'ORDER#7';
SELECT is(doc ->> 'PK', 'USER#9', 'single table, PK: an old one beside other fields') FROM app WHERE sk = 'ORDER#7';
SELECT schema_versioning_enable('people', current => 2, write => 'accept') \g /dev/null
SELECT schema_versioning_step('people', 1, 2, up_update => '{$rename: {name: "title"}}', down_update => '{$rename: {title: "name"}}') \g /dev/null
INSERT INTO people (doc) VALUES ('{_id: 1, schema_version: 2, title: "x"}');
SELECT is(pg_temp.doc('people'), '{"_id": 1, "schema_version": 2, "title": "x"}', 'schema versioning, version: a known one');
SELECT pg_temp.refused($$UPDATE people SET doc = bson_set(doc, 'schema_version', 9)$$, '23514', '', 'schema versioning, version: another one');
SELECT versioning_enable('policies'), versioning_enable('plain_policies', optimistic => false) \g /dev/null
INSERT INTO policies (doc) VALUES ('{_id: 1, a: 1, revision: 7}');
INSERT INTO plain_policies (doc) VALUES ('{_id: 1, a: 1}');
UPDATE policies SET doc = bson_set(doc, 'a', 2);
UPDATE policies SET doc = bson_set(doc, 'a', 3);
SELECT is(doc ->> 'revision', '3', 'document versioning, revision: any number in a new document') FROM policies;
SELECT pg_temp.refused($$UPDATE policies SET doc = bson_set(bson_set(doc, 'a', 4), 'revision', 2)$$, '40001', '', 'document versioning, revision: an old one');
UPDATE plain_policies SET doc = bson_set(bson_set(doc, 'a', 4), 'revision', 77);
SELECT is(doc ->> 'revision', '2', 'document versioning, revision: any number where saves are not checked') FROM plain_policies;

-- documents, walls, rows, boards and packed tables
SELECT collection_create(t) FROM unnest('{scr,posts,followers,ord,players}'::text[]) t \g /dev/null
SELECT rollup_enable('scr', name => 'scr_by', time_field => 'ts', levels => '{day}', fields => '{v: {$sum: "$n"}}') \g /dev/null
SELECT fanout_enable('posts', walls => 'timelines', author => 'u', followers => 'followers', follower => 'u', followee => 'f', order_by => '{_id: -1}', keep => 10) \g /dev/null
SELECT query_table_create('orders_by', source => 'ord', partition => '{u}', clustering => '{d: -1}', fields => '{t: 1}') \g /dev/null
SELECT kv_create('game'), kv_leaderboard('game', 'board', 'players', 'score') \g /dev/null
SELECT bucket_create('readings', columns => 'id int, ts timestamptz, t float8', group_by => '{id}', time_field => 'ts', span => '1 hour') \g /dev/null
SELECT pg_temp.refused(command, '55000', said, 'written directly: ' || command) FROM (VALUES
  ('INSERT INTO scr_by (doc) VALUES (''{v: 1}'')', 'scr'), ('UPDATE timelines SET doc = doc', 'posts'), ('DELETE FROM orders_by', 'ord'), ('SELECT kv_zadd(''game'', ''board'', 1, ''a'')', 'players'),
  ('DELETE FROM readings_packed', 'Write to table "readings", '), ('TRUNCATE products_reviews_removed', 'products'), ('DELETE FROM emp_boss_removed', 'emp'), ('DELETE FROM books_buyers_extras', 'books')) v (command, said);

-- lists of removed members forget old entries, are created again if missing, and dropped with the declaration
SELECT isnt_empty('SELECT FROM products_reviews_removed', 'removed members are remembered');
SET session_replication_role = replica;
UPDATE products_reviews_removed SET queued_at = now() - interval '31 days';
RESET session_replication_role;
SELECT pattern_repair('products', 'reviews') \g /dev/null
SELECT is_empty('SELECT FROM products_reviews_removed', 'for a month');
DROP TABLE products_reviews_removed CASCADE;
SELECT pg_temp.all_true('at the end');
SELECT * FROM finish();
