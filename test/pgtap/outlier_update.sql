-- The outlier pattern under bson_update: what $push, $addToSet, $pull and $pop of an ordinary UPDATE do to arrays that are split.
\set QUIET 1
\pset fieldsep '\n'
SET client_min_messages = warning;
SET timezone = 'UTC';
BEGIN;
SELECT plan(46);
-- The whole array; and what is in the document: the array, the count, the flag.
CREATE FUNCTION whole(key int DEFAULT 1) RETURNS text LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN (SELECT (doc -> 'buyers')::text FROM books_whole WHERE _id = key); END $$;
CREATE FUNCTION inside(key int DEFAULT 1) RETURNS text LANGUAGE plpgsql VOLATILE AS $$ BEGIN RETURN (SELECT concat_ws(' ', doc -> 'buyers', doc -> 'n', CASE WHEN doc -> 'more' = true THEN 'flag' ELSE doc ->> 'more' END) FROM books WHERE _id = key); END $$;
CREATE FUNCTION change(update text, key int DEFAULT 1) RETURNS text LANGUAGE plpgsql AS $$ BEGIN UPDATE books SET doc = bson_update(doc, update) WHERE _id = key; RETURN whole(key); END $$;
CREATE FUNCTION change_whole(update text, key int DEFAULT 1) RETURNS text LANGUAGE plpgsql AS $$ BEGIN UPDATE books_whole SET doc = bson_update(doc, update) WHERE _id = key; RETURN inside(key); END $$;

-- ---------------------------------------------------------------- the table

SELECT collection_create('books') \g /dev/null
SELECT outlier_enable('books', field => 'buyers', threshold => 3, flag => 'more', count_field => 'n', chunk => 2) \g /dev/null
INSERT INTO books (doc) VALUES ('{_id: 1, title: "A", buyers: ["u0", "u1", "u2", "u3", "u4", "u5"]}'), ('{_id: 2, title: "B", buyers: ["u0"]}'), ('{_id: 3, title: "C"}');
SELECT is(change('{$push: {buyers: "u6"}}'), '["u0", "u1", "u2", "u3", "u4", "u5", "u6"]', '$push appends at the logical end'), is(inside(), '["u0", "u1", "u2"] 7 flag', 'the part inside stays');
SELECT is(change('{$push: {buyers: {$each: ["u7", "u8"]}}, $set: {title: "A2"}}'), '["u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8"]', '$each, beside another operator');
SELECT is((SELECT doc ->> 'title' FROM books WHERE _id = 1), 'A2', 'which happens too');
SELECT is(change('{$addToSet: {buyers: "u1"}}'), '["u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8"]', '$addToSet of what is inside'), is(change('{$addToSet: {buyers: "u9"}}'), '["u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8", "u9"]', 'of something new');
SELECT is(change('{$pull: {buyers: "u1"}}'), '["u0", "u2", "u3", "u4", "u5", "u6", "u7", "u8", "u9"]', '$pull'), is(inside(), '["u0", "u2", "u3"] 9 flag', 'what is taken away is replaced from the extras');
SELECT is(change('{$pop: {buyers: -1}}'), '["u2", "u3", "u4", "u5", "u6", "u7", "u8", "u9"]', '$pop of the first'), is(change('{$pop: {buyers: 1}}'), '["u2", "u3", "u5", "u6", "u7", "u8", "u9"]', '$pop takes the last one inside');
SELECT is(change('{$pullAll: {buyers: ["u2", "u3", "u5"]}}'), '["u6", "u7", "u8", "u9"]', '$pullAll of all that is inside'), is(inside(), '["u6", "u7", "u8"] 4 flag', 'three come from the extras');
SELECT is(change('{$pull: {buyers: {$gte: "u7"}}}'), '["u6", "u9"]', 'a condition'), is(inside(), '["u6", "u9"] 2', 'nothing is left in the extras: no flag');
SELECT is((SELECT count(*) FROM books_buyers_extras), 0::bigint, 'and no extras');
SELECT is(change('{$push: {buyers: {$each: ["a", "b"]}}}'), '["u6", "u9", "a", "b"]', 'beyond the threshold again'), is(inside(), '["u6", "u9", "a"] 4 flag', 'it is split');
SELECT is(change('{$push: {buyers: "u1"}}', 2), '["u0", "u1"]', 'a typical document'), is(inside(2), '["u0", "u1"] 2', 'is left alone');
SELECT is(change('{$push: {buyers: "u1"}}', 3), '["u1"]', 'one without the array'), is(inside(3), '["u1"] 1', 'gets it');
SELECT is(change('{$push: {buyers: {$each: ["front", "x"], $position: 0}}}', 2), '["front", "x", "u0", "u1"]', '$position in a document that is not split yet'), is(inside(2), '["front", "x", "u0"] 4 flag', 'and is now');
SELECT is_empty('SELECT * FROM pattern_check()', 'pattern_check has nothing to report');

-- An update that changes nothing writes nothing.
CREATE TABLE versions AS SELECT _id, ctid AS at FROM books;
UPDATE books SET doc = bson_update(doc, '{$addToSet: {buyers: "u9"}}') WHERE _id = 1 AND bson_update(doc, '{$addToSet: {buyers: "u9"}}') <> doc;
SELECT is((SELECT count(*) FROM books JOIN versions USING (_id) WHERE books.ctid <> at), 0::bigint, 'WHERE can tell that nothing would change');

-- ---------------------------------------------------------------- the whole view

SELECT is(change_whole('{$pull: {buyers: "b"}}'), '["u6", "u9", "a"] 3', 'the view: $pull reaches the extras'), is(change_whole('{$push: {buyers: {$each: ["z", "y"], $sort: 1}}}'), '["a", "u6", "u9"] 5 flag', '$sort works on the whole array'), is(whole(), '["a", "u6", "u9", "y", "z"]', 'all of it');
SELECT is(change_whole('{$pop: {buyers: 1}}'), '["a", "u6", "u9"] 4 flag', '$pop takes the last of all'), is(whole(), '["a", "u6", "u9", "y"]', 'and leaves the others');
SELECT is(change_whole('{$addToSet: {buyers: "y"}}'), '["a", "u6", "u9"] 4 flag', '$addToSet looks into the extras'), is(change_whole('{$set: {"buyers.3": "w"}}'), '["a", "u6", "u9"] 4 flag', 'a position in the extras'), is(whole(), '["a", "u6", "u9", "w"]', 'is set');
SELECT is(change_whole('{$set: {buyers: ["u0"]}}'), '["u0"] 1', '$set replaces the whole: no flag');
SELECT is_empty('SELECT * FROM pattern_check()', 'pattern_check has nothing to report');
DROP TABLE books CASCADE;

-- ---------------------------------------------------------------- a set

SELECT collection_create('books') \g /dev/null
SELECT outlier_enable('books', field => 'buyers', threshold => 2, flag => 'more', chunk => 100, is_set => true) \g /dev/null
INSERT INTO books (doc) VALUES ('{_id: 1, buyers: ["a", "b", "c", "d"]}');
SELECT is(change('{$addToSet: {buyers: "d"}}'), '["a", "b", "c", "d"]', 'a set: $addToSet of what is in the extras'), is(change('{$push: {buyers: {$each: ["c", "e"]}}}'), '["a", "b", "c", "d", "e"]', '$push too');
SELECT is_empty('SELECT * FROM pattern_check()', 'pattern_check has nothing to report');
DROP TABLE books CASCADE;

-- ---------------------------------------------------------------- controversial reviews

SELECT collection_create('reviews') \g /dev/null
SELECT outlier_enable('reviews', field => 'comments', threshold => 3, flag => 'outlier', chunk => 100) \g /dev/null
INSERT INTO reviews (doc) VALUES ('{_id: 1, text: "controversial", comments: ["a", "b", "c"]}');
SELECT ok(NOT doc ? 'outlier', 'three comments: normal') FROM reviews;
UPDATE reviews SET doc = bson_update(doc, '{$push: {comments: "d"}}');
SELECT ok(doc @@ '{outlier: true, comments: ["a", "b", "c"]}', 'the fourth makes it an outlier') FROM reviews;
SELECT ok(outlier_contains('reviews', 1, 'd'), 'and is found in the extras');
SELECT is_empty('SELECT * FROM pattern_check()', 'pattern_check has nothing to report');
DROP TABLE reviews CASCADE;

-- ---------------------------------------------------------------- the newest stay, the oldest moves to a collection

SELECT collection_create('article'), collection_create('comments') \g /dev/null
SELECT outlier_enable('article', field => 'last_10_comments', threshold => 10, stay => 'last', extras => 'comments', on_field => 'article_id') \g /dev/null
INSERT INTO article (doc) SELECT bson_build('_id', 334456, 'last_10_comments', bson_agg(bson_build('name', 'Frank', 'comment', 'Great Story ' || i) ORDER BY i)) FROM generate_series(1, 10) i;
SELECT is(count(*), 0::bigint, 'ten comments: nothing moved') FROM comments;
UPDATE article SET doc = bson_update(doc, '{$push: {last_10_comments: {name: "Wendy", comment: "When can I buy an Apple Watch?"}}}');
SELECT ok(doc @@ '{last_10_comments: {$size: 10}, "last_10_comments.0.comment": "Great Story 2", "last_10_comments.9.name": "Wendy"}', 'the newest ten') FROM article;
SELECT results_eq($$SELECT doc ->> 'comment' FROM comments WHERE doc @@ '{article_id: 334456}'$$, ARRAY['Great Story 1'], 'the other one moved, not copied');
SELECT is_empty('SELECT * FROM pattern_check()', 'pattern_check has nothing to report');

SELECT * FROM finish();
ROLLBACK;
