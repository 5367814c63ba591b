-- What documents held before a pattern was declared is not destroyed: not by a build or a repair, unless it is told to, and not by the
-- first write to an old row or to a source. What a build adopts, pattern_disable() leaves where it is.
SET client_min_messages = warning;
SELECT plan(164);

CREATE FUNCTION pg_temp.docs(rel regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
  EXECUTE format('SELECT string_agg((doc - ''_id'')::text, E''\n'' ORDER BY _id) FROM %s', rel) INTO result;
  RETURN result;
END $$;
-- SQLSTATE, detail and hint of an error
CREATE FUNCTION pg_temp.told(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; message text; detail text; hint text;
BEGIN
  EXECUTE command;
  RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(' | ', state, message, nullif(detail, ''), nullif(hint, ''));
END $$;
-- A build stops, and so does a repair, an alteration waits, and nothing is written
CREATE FUNCTION pg_temp.stops(rel text, name text, detail text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE was text := pg_temp.docs(rel::regclass); told text;
BEGIN
  told := pg_temp.told(format('CALL pattern_build(%L, %L, NULL)', rel, name));
  RETURN NEXT matches(told, '^55000 \|.*' || detail || '.*discard => true', rel || ': a build stops and says where');
  told := pg_temp.told(format('SELECT pattern_repair(%L, %L)', rel, name));
  RETURN NEXT matches(told, '^55000 \|.*' || detail, rel || ': so does a repair');
  RETURN NEXT is(pg_temp.docs(rel::regclass), was, rel || ': nothing was written');
END $$;

-- Subset: elements that no row gives ----------------------------------------------------------------------------------------
SELECT collection_create('p') \g /dev/null
SELECT collection_create('p_reviews') \g /dev/null
INSERT INTO p (doc) VALUES ('{_id: 1, reviews: [{id: 1, d: 1}, {id: 2, d: 2}]}'), ('{_id: 2, reviews: [{id: 3, d: 3}]}'), ('{_id: 3, reviews: []}');
INSERT INTO p_reviews (doc) VALUES ('{_id: 30, product_id: 2, id: 3, d: 3}'), ('{_id: 31, product_id: 3, id: 4, d: 4}');
SELECT subset_enable('p', 'reviews', 'p_reviews', 'product_id', '{d: -1}', 2) \g /dev/null
SELECT is(options -> 'held', '["reviews"]', 'the declaration knows that the field held values') FROM pattern_list('p');
SELECT matches(pg_temp.told($$SELECT pattern_alter('p', 'reviews', '{keep: 3}')$$), '^55000', 'it is not altered before it is built');
CALL pattern_build('p', 'reviews');
SELECT is(pg_temp.docs('p_reviews'), E'{"product_id": 2, "id": 3, "d": 3}\n{"product_id": 3, "id": 4, "d": 4}\n{"id": 1, "d": 1, "product_id": 1}\n{"id": 2, "d": 2, "product_id": 1}', 'elements became rows');
SELECT is((SELECT string_agg(e ->> 'id', ' ') FROM p, bson_elements(doc -> 'reviews') e), '2 1 3 4', 'and documents show the rows of the source');
SELECT ok(NOT options ? 'held' AND options -> 'own' = '["reviews"]', 'the guard is off') FROM pattern_list('p');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
DELETE FROM p_reviews WHERE doc @@ '{product_id: 1}';
SELECT is((doc -> 'reviews')::text, '[]', 'from now on the source is the truth') FROM p WHERE _id = 1;
SELECT pattern_disable('p', 'reviews') \g /dev/null
SELECT ok(bool_and(doc ? 'reviews'), 'a field that documents had before stays') FROM p;

SELECT collection_create('q') \g /dev/null
SELECT collection_create('q_rows') \g /dev/null
INSERT INTO q (doc) VALUES ('{_id: 1, a: [{id: 1, d: 1}, {id: 9, d: 9}], n: 2}'), ('{_id: 2, a: [{id: 5}]}'), ('{_id: 3, n: 44}');
INSERT INTO q_rows (doc) VALUES ('{_id: 1, of: 1, id: 1, d: 1}'), ('{_id: 2, of: 1, id: 2, d: 2}');
SELECT subset_enable('q', 'a', 'q_rows', 'of', '{d: -1}', 1, count_field => 'n', fields => '{id: 1, d: 1}') \g /dev/null
SELECT pg_temp.stops('q', 'a', '2 documents .*Fields: a, n\. Keys: 1, 3');
UPDATE q SET doc = bson_set(doc, 'x', 1);
INSERT INTO q_rows (doc) VALUES ('{_id: 3, of: 1, id: 3, d: 30}'), ('{_id: 4, of: 2, id: 6, d: 1}');
SELECT is((SELECT string_agg(doc::text, E'\n' ORDER BY _id) FROM q WHERE _id < 3), E'{"_id": 1, "a": [{"id": 1, "d": 1}, {"id": 9, "d": 9}], "n": 3, "x": 1}\n{"_id": 2, "a": [{"id": 5}], "x": 1, "n": 1}',
          'writes to a document or to its source leave elements alone that only it has');
INSERT INTO q (doc) VALUES ('{_id: 7}');
INSERT INTO q_rows (doc) VALUES ('{_id: 5, of: 7, id: 7, d: 1}'), ('{_id: 6, of: 7, id: 8, d: 2}'); DELETE FROM q_rows WHERE _id = 6; UPDATE q_rows SET doc = bson_set(doc, 'd', 5) WHERE _id = 5;
SELECT is(doc::text, '{"_id": 7, "a": [{"id": 7, "d": 5}], "n": 1}', 'while new documents follow it') FROM q WHERE _id = 7;
TRUNCATE q_rows;
SELECT is((doc -> 'a')::text, '[{"id": 1, "d": 1}, {"id": 9, "d": 9}]', 'also when the source is emptied') FROM q WHERE _id = 1;
CALL pattern_build('q', 'a', discard => true);
SELECT is(pg_temp.docs('q'), E'{"a": [], "n": 0, "x": 1}\n{"a": [], "x": 1, "n": 0}\n{"n": 0, "x": 1, "a": []}\n{"a": [], "n": 0}', 'discard throws them away');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
SELECT pattern_disable('q', 'a') \g /dev/null
SELECT is(pg_temp.docs('q'), E'{"x": 1}\n{"x": 1}\n{"x": 1}\n{}', 'what was discarded is no longer the user''s');

-- A misspelt source is none
SELECT is(pg_temp.told($$SELECT subset_enable('q', 'a', 'q_row', 'of', '{d: -1}', 1)$$), '42P01 | relation "q_row" does not exist | Did you mean q_rows? Use create_source => true to create it.', 'a source that does not exist');
SELECT hasnt_table('q_row');
SELECT lives_ok($$SELECT subset_enable('q', 'b', 'q_new', 'of', '{d: -1}', 1, create_source => true)$$, 'unless it is wanted');
SELECT has_table('q_new');
SELECT pattern_disable('q', 'b') \g /dev/null

-- A table that an extension left behind which was dropped
CREATE TABLE q_c_extras (key int);
SELECT matches(pg_temp.told($$SELECT outlier_enable('q', 'c', 2)$$), '^42P07 \| relation "q_c_extras" already exists \| .*DROP EXTENSION', 'a name that is taken');

-- Computed: totals that the rows do not give ---------------------------------------------------------------------------------
SELECT collection_create('f') \g /dev/null
SELECT collection_create('s') \g /dev/null
INSERT INTO f (doc) VALUES ('{_id: 1, total: 15234.5, best: 77, mean: 12}'), ('{_id: 2, total: 7, best: 4, mean: 3.5}'), ('{_id: 3}'), ('{_id: 4, total: 0}');
INSERT INTO s (doc) VALUES ('{_id: 1, film: 2, v: 3}'), ('{_id: 2, film: 2, v: 4}');
SELECT computed_enable('f', 's', 'film', '{total: {$sum: "$v"}, best: {$max: "$v"}, mean: {$avg: "$v"}}', name => 'c') \g /dev/null
SELECT pg_temp.stops('f', 'c', '1 document .*Fields: total\. Keys: 1\.');
UPDATE f SET doc = bson_set(doc, 'x', 1);
INSERT INTO s (doc) SELECT bson_build('_id', 10 + i, 'film', i, 'v', 10) FROM generate_series(1, 4) i;
SELECT is((doc - '_id')::text, '{"total": 15234.5, "best": 77, "mean": 12, "x": 1}', 'a row of the source leaves totals alone that only the document has') FROM f WHERE _id = 1;
SELECT is((SELECT string_agg(bson_project(doc, '{_id: 0, total: 1, best: 1}')::text, ' ' ORDER BY _id) FROM f WHERE _id > 2), '{"total": 10, "best": 10} {"total": 10, "best": 10}', 'and those of others follow');
DELETE FROM s WHERE _id = 11;
SELECT is((doc ->> 'total'), '15234.5', 'in both directions') FROM f WHERE _id = 1;
TRUNCATE s;
SELECT is((doc ->> 'total'), '15234.5', 'also when the source is emptied') FROM f WHERE _id = 1;
INSERT INTO s (doc) VALUES ('{_id: 1, film: 2, v: 3}');
SELECT ok(pattern_repair('f', 'c', accept_loss => true) > 0, 'a repair can be told to discard them, too');
SELECT is((doc ->> 'total'), '0', 'and does') FROM f WHERE _id = 1;
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
SELECT pattern_disable('f') \g /dev/null

UPDATE f SET doc = CASE WHEN _id = 2 THEN bson '{_id: 2, total: 3.0, mine: 1}' ELSE bson_build('_id', _id) END;
SELECT computed_enable('f', 's', 'film', '{total: {$sum: "$v"}, rows: {$count: {}}}', name => 'c') \g /dev/null
CALL pattern_build('f', 'c');
SELECT is_empty('SELECT * FROM pattern_check()', 'a total that the rows give is adopted');
SELECT pattern_disable('f') \g /dev/null
SELECT is((doc - '_id')::text, '{"total": 3, "mine": 1}', 'and comes back; a field that is the pattern''s goes') FROM f WHERE _id = 2;
SELECT computed_enable('f', 's', 'film', '{total: {$min: "$v"}}', name => 'c') \g /dev/null
SELECT pattern_disable('f') \g /dev/null
SELECT is((doc - '_id')::text, '{"total": 3, "mine": 1}', 'also when nothing was ever built') FROM f WHERE _id = 2;

-- Tree: the edges that lists imply -------------------------------------------------------------------------------------------
SELECT collection_create('emp') \g /dev/null
INSERT INTO emp (doc) VALUES ('{_id: 3, name: "C", reports_to: ["A", "B"]}'), ('{_id: 1, name: "A", reports_to: []}'), ('{_id: 2, name: "B", reports_to: ["A"]}');
SELECT tree_enable('emp', node_id => 'name', parent => 'boss', ancestors => 'reports_to') \g /dev/null
UPDATE emp SET doc = bson_set(doc, 'x', 1);
SELECT is((doc -> 'reports_to')::text, '["A", "B"]', 'a write leaves the list') FROM emp WHERE _id = 3;
CALL pattern_build('emp');
SELECT is(pg_temp.docs('emp'), E'{"name": "A", "reports_to": [], "x": 1}\n{"name": "B", "reports_to": ["A"], "x": 1, "boss": "A"}\n{"name": "C", "reports_to": ["A", "B"], "x": 1, "boss": "B"}', 'missing parents are taken from the lists');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
SELECT pattern_disable('emp') \g /dev/null
UPDATE emp SET doc = bson_unset(doc, 'boss');
UPDATE emp SET doc = bson_set(doc, 'reports_to', '["Z"]'::bson_value) WHERE _id = 2;
SELECT tree_enable('emp', node_id => 'name', parent => 'boss', ancestors => 'reports_to') \g /dev/null
SELECT pg_temp.stops('emp', 'boss', 'Fields: reports_to\. Keys: .*truth => ''ancestors''');
CALL pattern_build('emp', discard => true);
SELECT is((SELECT string_agg((doc -> 'reports_to')::text, ' ') FROM emp), '[] [] []', 'discarded');
SELECT collection_create('kids') \g /dev/null
INSERT INTO kids (doc) VALUES ('{_id: 1, children: [2, 3]}'), ('{_id: 2, children: []}'), ('{_id: 3}');
SELECT tree_enable('kids', parent => 'up', children => 'children') \g /dev/null
CALL pattern_build('kids');
SELECT is(pg_temp.docs('kids'), E'{"children": [2, 3]}\n{"children": [], "up": 1}\n{"up": 1, "children": []}', 'and from lists of children');
SELECT collection_create('att') \g /dev/null
INSERT INTO att (doc) VALUES ('{_id: 1, above: [1, 2]}'), ('{_id: 2, "on": 3, above: [9]}');
SELECT tree_attach('att', tree => 'kids', parent => 'on', ancestors => 'above', name => 'hung') \g /dev/null
SELECT pg_temp.stops('att', 'hung', '1 document .*Fields: above\. Keys: 2\.');
UPDATE att SET doc = bson_set(doc, 'above', '[1, 3]'::bson_value) WHERE _id = 2;
SELECT pattern_disable('att') \g /dev/null
UPDATE att SET doc = bson_set(doc, 'above', '[1, 3]'::bson_value) WHERE _id = 2;
SELECT tree_attach('att', tree => 'kids', parent => 'on', ancestors => 'above', name => 'hung') \g /dev/null
CALL pattern_build('att');
SELECT is(pg_temp.docs('att'), E'{"above": [1, 2], "on": 2}\n{"on": 3, "above": [1, 3]}', 'what hangs on a tree is hung where its list says');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');

-- Outlier: a flag that is none, a count of something else --------------------------------------------------------------------
SELECT collection_create('b') \g /dev/null
INSERT INTO b (doc) VALUES ('{_id: 1, buyers: ["a"], has_extras: "leather", n: 55}'), ('{_id: 2, buyers: ["a", "b", "c"], n: 55}'), ('{_id: 3, buyers: ["a", "b", "c"], has_extras: "yes", n: 3}'), ('{_id: 4, buyers: ["a"], has_extras: true}');
SELECT outlier_enable('b', 'buyers', 2, count_field => 'n') \g /dev/null
SELECT pg_temp.stops('b', 'buyers', '2 documents .*Fields: has_extras, n\. Keys: 1, 2\.');
UPDATE b SET doc = bson_set(doc, 'x', 1);
SELECT is((doc - '_id')::text, '{"buyers": ["a"], "has_extras": "leather", "n": 55, "x": 1}', 'a write leaves them') FROM b WHERE _id = 1;
SELECT is(doc ->> 'n', '55', 'also where elements move') FROM b WHERE _id = 2;
SELECT throws_ok($$UPDATE b SET doc = bson_update(doc, '{$push: {buyers: {$each: ["y", "z"]}}}') WHERE _id = 1$$, '55000', NULL, 'the flag is needed: the write is refused');
SELECT pattern_disable('b') \g /dev/null
SELECT is(pg_temp.docs('b'), E'{"buyers": ["a"], "has_extras": "leather", "n": 55, "x": 1}\n{"buyers": ["a", "b", "c"], "n": 55, "x": 1}\n{"buyers": ["a", "b", "c"], "n": 3, "x": 1}\n{"buyers": ["a"], "x": 1, "n": 1}',
          'and so does the end of the declaration');

-- Reference: copies of what is not there, or says something else -------------------------------------------------------------
SELECT collection_create('o') \g /dev/null
SELECT collection_create('c') \g /dev/null
INSERT INTO c (doc) VALUES ('{_id: 1, name: "N", at: "X"}');
INSERT INTO o (doc) VALUES ('{_id: 1, customer: {_id: 1, name: "Old", at: "Y"}}'), ('{_id: 2, customer: {_id: 9, name: "Gone", at: "Z"}}'), ('{_id: 3, customer: 1}'), ('{_id: 4, customer: {_id: 1}}');
SELECT reference_enable('o', 'customer', 'c', live => '{name}', frozen => '{at}', missing => 'allow') \g /dev/null
SELECT pg_temp.stops('o', 'customer', '1 document .*Fields: customer\. Keys: 1\.');
CALL pattern_build('o', discard => true);
SELECT is(pg_temp.docs('o'), E'{"customer": {"_id": 1, "name": "N", "at": "Y"}}\n{"customer": {"_id": 9, "name": "Gone", "at": "Z"}}\n{"customer": {"_id": 1, "name": "N", "at": "X"}}\n{"customer": {"_id": 1, "name": "N", "at": "X"}}',
          'live copies follow, frozen ones and those without a source stay');

-- Payload: a field that an extract is to fill --------------------------------------------------------------------------------
SELECT collection_create('m') \g /dev/null
INSERT INTO m (doc) VALUES ('{_id: 1, xml: "<a><b>5</b></a>", b: "mine"}'), ('{_id: 2, xml: "<a><b>6</b></a>", b: "6"}'), ('{_id: 3, b: "alone"}');
SELECT payload_enable('m', 'xml', '{b: "xpath:/a/b/text()"}') \g /dev/null
SELECT pg_temp.stops('m', 'xml', '2 documents .*Fields: b\. Keys: 1, 3\.');
UPDATE m SET doc = bson_set(doc, 'x', 1);
SELECT is((SELECT string_agg(doc ->> 'b', ' ' ORDER BY _id) FROM m), 'mine 6 alone', 'a write leaves it');
SELECT pattern_disable('m') \g /dev/null
SELECT is((SELECT string_agg(doc ->> 'b', ' ' ORDER BY _id) FROM m), 'mine 6 alone', 'the end of the declaration, too');

-- Preallocated slots: another number of free ones ----------------------------------------------------------------------------
SELECT collection_create('sc') \g /dev/null
INSERT INTO sc (doc) VALUES ('{_id: 1, seats: [["ada", 0], [0, 0]], free: 99}'), ('{_id: 2, seats: [["bob", 0], [0, 0]], free: 3}'), ('{_id: 3}');
SELECT preallocated_enable('sc', 'seats', preallocated_grid('{2,2}'), available_field => 'free') \g /dev/null
SELECT pg_temp.stops('sc', 'seats', '1 document .*Fields: free\. Keys: 1\.');
UPDATE sc SET doc = bson_set(doc, 'x', 1);
SELECT is(doc ->> 'free', '99', 'a write leaves it') FROM sc WHERE _id = 1;
CALL pattern_build('sc', discard => true);
SELECT is((SELECT string_agg(doc ->> 'free' || (doc ->> 'seats'), ' ' ORDER BY _id) FROM sc_whole), '3[["ada", 0], [0, 0]] 3[["bob", 0], [0, 0]] 4[[0, 0], [0, 0]]', 'seats that are taken become claims');

-- Single view: fields of documents that are there ----------------------------------------------------------------------------
SELECT collection_create('crm') \g /dev/null
SELECT collection_create('cu') \g /dev/null
INSERT INTO cu (doc) VALUES ('{_id: 1, cid: 1, crm: {mine: 1}}'), ('{_id: 2, cid: 2, crm: {mine: 2}}');
INSERT INTO crm (doc) VALUES ('{_id: 5, cid: 1, a: 1}');
SELECT polymorphic_merge('cu', 'cid', '{crm}') \g /dev/null
SELECT pg_temp.stops('cu', 'crm', '2 documents .*Fields: crm\. Keys: 1, 2\.');
UPDATE crm SET doc = bson_set(doc, 'a', 2); INSERT INTO crm (doc) VALUES ('{_id: 6, cid: 2, a: 1}'), ('{_id: 7, cid: 3, a: 1}'); UPDATE crm SET doc = bson_set(doc, 'a', 3) WHERE _id = 7;
SELECT is((SELECT string_agg((doc -> 'crm')::text, ' ' ORDER BY doc -> 'cid') FROM cu), '{"mine": 1} {"mine": 2} {"_id": 7, "cid": 3, "a": 3}', 'sources leave them, and fill the others');

-- What moves and comes back as it was is adopted as it is -------------------------------------------------------------------
SELECT collection_create('at') \g /dev/null
INSERT INTO at (doc) VALUES ('{_id: 1, r_us: 5, releases: [{k: "q", v: 1, note: "mine"}]}');
SELECT attribute_enable('at', into_field => 'releases', paths => '{r_us}') \g /dev/null
CALL pattern_build('at');
SELECT is(pg_temp.docs('at'), '{"releases": [{"k": "q", "v": 1, "note": "mine"}, {"name": "r_us", "value": 5}]}', 'attributes are added to those that are there');
SELECT throws_ok($$SELECT pattern_disable('at')$$, '23001', NULL, 'those that were there cannot become fields');
SELECT collection_create('pa') \g /dev/null
SELECT collection_create('dr') \g /dev/null
INSERT INTO pa (doc) VALUES ('{_id: 1, d: [1]}'); INSERT INTO dr (doc) VALUES ('{_id: 1}'), ('{_id: 3, p: [1]}');
SELECT relationship_enable('pa', 'd', 'dr', 'p') \g /dev/null
CALL pattern_build('pa');
SELECT is(pg_temp.docs('pa') || pg_temp.docs('dr'), E'{"d": [1, 3]}{"p": [1]}\n{"p": [1]}', 'a relationship has what either side said');
SELECT is_empty('SELECT * FROM pattern_check(''pa'')', 'all is true');

-- In batches nothing is written before all has been looked at; a table of the user's own, its partitions included
CREATE TABLE big (id int PRIMARY KEY, doc bson NOT NULL) PARTITION BY RANGE (id);
CREATE TABLE big_1 PARTITION OF big FOR VALUES FROM (0) TO (50);
CREATE TABLE big_2 PARTITION OF big FOR VALUES FROM (50) TO (1000);
INSERT INTO big SELECT i, bson_build('n', CASE WHEN i = 99 THEN 5 ELSE 0 END) FROM generate_series(1, 99) i;
SELECT computed_enable('big', 's', 'film', '{n: {$sum: "$v"}}') \g /dev/null
SELECT throws_ok($$CALL pattern_build('big', 'n', 10)$$, '55000', 'pattern "n" of table "big": 1 document holds values that would be lost', 'the last of many stops all');
SELECT is(count(*), 0::bigint, 'and none was written') FROM big WHERE doc ? '_computed';
CALL pattern_build('big', 'n', 10, discard => true);
SELECT is_empty('SELECT * FROM pattern_check(''big'')', 'in line');
SELECT is(count(DISTINCT tgargs), 1::bigint, 'partitions have heard that the guard is off') FROM pg_trigger WHERE tgrelid IN ('big'::regclass, 'big_1'::regclass, 'big_2'::regclass) AND tgnargs = 1 AND tgfoid = 'docpatterns.computed_trigger'::regproc;

-- What two documents hold, of which only one can keep it
SELECT collection_create('two'), collection_create('two_r'), collection_create('fork') \g /dev/null
INSERT INTO two (doc) VALUES ('{_id: 1, r: [{_id: 1, d: 1}]}'), ('{_id: 2, r: [{_id: 1, d: 9}]}');
SELECT subset_enable('two', 'r', 'two_r', 'p', '{d: -1}', 10) \g /dev/null
SELECT throws_ok($$CALL pattern_build('two', 'r', NULL)$$, '55000', NULL, 'elements of two documents with one _id');
SELECT is(count(*), 2::bigint, 'stay') FROM two WHERE bson_array_length(doc -> 'r') = 1;
SELECT throws_ok($$SELECT pattern_repair('two', 'r')$$, '55000', NULL, 'a repair keeps them, too');
INSERT INTO fork (doc) VALUES ('{_id: "a", kids: ["c"]}'), ('{_id: "b", kids: ["c"]}'), ('{_id: "c"}');
SELECT tree_enable('fork', parent => 'parent', children => 'kids', name => 'tree') \g /dev/null
SELECT throws_ok($$CALL pattern_build('fork', 'tree', NULL)$$, '55000', NULL, 'a node in the lists of two others');
SELECT is(count(*), 2::bigint, 'stays in both') FROM fork WHERE doc -> 'kids' = '["c"]';
CALL pattern_build('fork', 'tree', discard => true);
SELECT is_empty('SELECT * FROM pattern_check(''fork'')', 'what is thrown away');

-- Before the build: what others write leaves such values alone ------------------------------------------------------------------
-- a copy follows its source, if it said what the source said
SELECT collection_create('lo'), collection_create('lc') \g /dev/null
INSERT INTO lc (doc) VALUES ('{_id: 1, name: "N"}'), ('{_id: 2, name: "M"}');
INSERT INTO lo (doc) VALUES ('{_id: 1, c: {_id: 1, name: "Old"}}'), ('{_id: 2, c: {_id: 1, name: "N"}}'), ('{_id: 3, c: {_id: 1}}'), ('{_id: 4, c: {_id: 2, name: "Old", at: "X"}}');
SELECT reference_enable('lo', 'c', 'lc', live => '{name}', frozen => '{at}', on_delete => 'unset') \g /dev/null
UPDATE lc SET doc = bson_set(doc, 'name', 'New'::text) WHERE _id = 1;
UPDATE lo SET doc = bson_set(doc, 'c.at', 'Y'::text) WHERE _id = 4;
SELECT is(pg_temp.docs('lo'), E'{"c": {"_id": 1, "name": "Old"}}\n{"c": {"_id": 1, "name": "New"}}\n{"c": {"_id": 1, "name": "New"}}\n{"c": {"_id": 2, "name": "Old", "at": "Y"}}',
          'reference: a copy that says something else stays');
SELECT matches(pg_temp.told($$DELETE FROM lc WHERE _id = 2$$), '^55000 .*pattern_build', 'reference: it is not taken away');
SELECT matches(pg_temp.told($$UPDATE lc SET doc = bson_set(doc, '_id', 5) WHERE _id = 2$$), '^55000 .*pattern_build', 'reference: nor given another id');
CALL pattern_build('lo', 'c', discard => true);
DELETE FROM lc WHERE _id = 2;
SELECT is(pg_temp.docs('lo'), E'{"c": {"_id": 1, "name": "New"}}\n{"c": {"_id": 1, "name": "New"}}\n{"c": {"_id": 1, "name": "New"}}\n{}', 'reference: afterwards all follow');

-- INSERT .. ON CONFLICT DO UPDATE of what holds such a value
SELECT collection_create('up'), collection_create('up_rows') \g /dev/null
INSERT INTO up (doc) VALUES ('{_id: 1, n: 7}');
SELECT computed_enable('up', 'up_rows', 'k', '{n: {$sum: "$v"}}') \g /dev/null
INSERT INTO up (doc) VALUES ('{_id: 1, n: 7, new: 1}') ON CONFLICT (_id) DO UPDATE SET doc = bson_set(up.doc, 'x', EXCLUDED.doc -> 'new');
INSERT INTO up (doc) VALUES ('{_id: 1, n: 8, x: 2}') ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is((SELECT doc::text FROM up), '{"_id": 1, "n": 7, "x": 2}', 'computed: an upsert leaves it alone, as UPDATE does');
SELECT matches(pg_temp.told($$INSERT INTO up (doc) VALUES ('{_id: 2, n: 7}')$$), '^55000', 'computed: a new document does not come with one');

SELECT collection_create('up_a'), collection_create('up_p') \g /dev/null
INSERT INTO up_a (doc) VALUES ('{_id: 1, a: [1, 2], n: 44}');
INSERT INTO up_p (doc) VALUES ('{_id: 1, p: "axa", e: "mine"}'), ('{_id: 2, p: "axa", e: "x"}');
SELECT outlier_enable('up_a', 'a', 3, count_field => 'n'), payload_enable('up_p', 'p', '{e: "regex:(x|y)"}') \g /dev/null
INSERT INTO up_a (doc) VALUES ('{_id: 1, a: [1], n: 44}') ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is((SELECT doc::text FROM up_a), '{"_id": 1, "a": [1], "n": 44}', 'outlier: nor does an upsert write over a count');
INSERT INTO up_p (doc) VALUES ('{_id: 1, p: "axa", e: "mine"}') ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is((SELECT doc ->> 'e' FROM up_p WHERE _id = 1), 'mine', 'payload: nor over what looks like an extract');
UPDATE up_p SET doc = bson_set(doc, 'p', 'aya'::text);
SELECT is((SELECT string_agg(doc ->> 'e', ' ' ORDER BY _id) FROM up_p), 'mine y', 'payload: nor does another payload, but extracts follow');
SELECT matches(pg_temp.told('CALL pattern_build(''up_p'', batch => NULL)'), '^55000 .*Keys: 1', 'payload: and a build says so');
CALL pattern_build('up_p', discard => true);
SELECT is((SELECT string_agg(doc ->> 'e', ' ' ORDER BY _id) FROM up_p), 'y y', 'payload: unless it is told to discard it');
SELECT is_empty('SELECT * FROM pattern_check(''up_p'')', 'payload: then all is true');

SELECT collection_create('up_s') \g /dev/null
INSERT INTO up_s (doc) VALUES ('{_id: 1, free: 9}'), ('{_id: 2, free: 8, s_until: {x: 1}}'), ('{_id: 3}');
SELECT preallocated_enable('up_s', 's', preallocated_pool(2), store => 'document', available_field => 'free') \g /dev/null
UPDATE up_s SET doc = bson_set(doc, 'k', 1);
INSERT INTO up_s (doc) VALUES ('{_id: 1, free: 9}') ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is((SELECT string_agg(bson_unset(doc, '_id', 's', 'k')::text, ' ' ORDER BY _id) FROM up_s), '{"free": 9} {"free": 8, "s_until": {"x": 1}} {"free": 2}',
  'preallocated: a document that gets its slots keeps what it had');
SELECT pg_temp.stops('up_s', 's', '2 documents .*Fields: free\. Keys: [12], [12]\.');

-- numbers that are added to
SELECT collection_create('nt'), collection_create('nr') \g /dev/null
INSERT INTO nt (doc) VALUES ('{_id: 1, n: 44, sum: 5}'), ('{_id: 2}');
SELECT subset_enable('nt', 'a', 'nr', 'of', '{v: -1}', 1, fields => '{v: 1}', count_field => 'n'), computed_enable('nt', 'nr', 'of', '{sum: {$sum: "$v"}}') \g /dev/null
INSERT INTO nr (doc) VALUES ('{of: 1, v: 1}'), ('{of: 2, v: 1}');
INSERT INTO nr (doc) VALUES ('{of: 1, v: 2}'), ('{of: 2, v: 2}');
DELETE FROM nr WHERE doc @@ '{v: 1}';
SELECT is((SELECT string_agg((doc - 'a')::text, ' ' ORDER BY _id) FROM nt), '{"_id": 1, "n": 44, "sum": 5} {"_id": 2, "n": 1, "sum": 2}', 'subset, computed: a number that counts nothing stays');
INSERT INTO nr (doc) VALUES ('{of: 1, v: 3}');
SELECT lives_ok($$CALL pattern_build('nt', 'sum', NULL)$$, 'computed: one that the rows come to is adopted');
SELECT pg_temp.stops('nt', 'a', '1 document .*Fields: n\. Keys: 1\.');

SELECT collection_create('lu'), collection_create('lr') \g /dev/null
INSERT INTO lr (doc) VALUES ('{u: 1}'), ('{u: 1}'); INSERT INTO lu (doc) VALUES ('{_id: 1, n: 55}'), ('{_id: 2}');
SELECT outlier_enable('lu', 'o', 1, keep => 0, count_field => 'n', extras => 'lr', on_field => 'u') \g /dev/null
INSERT INTO lr (doc) VALUES ('{u: 1}'), ('{u: 2}'), ('{u: 2}'); INSERT INTO lr (doc) VALUES ('{u: 2}');
SELECT is((SELECT string_agg(doc ->> 'n', ' ' ORDER BY _id) FROM lu), '55 3', 'outlier: a count stays when its collection is written to');

-- a tree does not move
SELECT collection_create('tm'), collection_create('th') \g /dev/null
INSERT INTO tm (doc) VALUES ('{_id: 1, depth: 40, kids: [2, 9]}'), ('{_id: 2, parent: 1, depth: 50}'), ('{_id: 3}'), ('{_id: 4, parent: 2, above: [7, 2]}');
INSERT INTO th (doc) VALUES ('{_id: 1, "on": 3, above: [8]}');
SELECT tree_enable('tm', parent => 'parent', depth => 'depth', children => 'kids', ancestors => 'above', on_delete => 'reparent'), tree_attach('th', tree => 'tm', parent => 'on', ancestors => 'above', name => 'hung') \g /dev/null
SELECT matches(pg_temp.told(c), '^55000 .*pattern_build', c) FROM unnest(ARRAY[$$SELECT tree_move('tm', 2, 3)$$, $$UPDATE tm SET doc = bson_set(doc, 'parent', 1) WHERE _id = 4$$,
  $$DELETE FROM tm WHERE _id = 2$$, $$UPDATE tm SET doc = bson_set(doc, '_id', 22) WHERE _id = 2$$, $$SELECT tree_move('tm', 3, 1)$$, $$UPDATE th SET doc = bson_set(doc, 'on', 1)$$]) c;
INSERT INTO tm (doc) VALUES ('{_id: 5, parent: 4}');
SELECT is(pg_temp.docs('tm') || pg_temp.docs('th'), E'{"depth": 40, "kids": [2, 9]}\n{"parent": 1, "depth": 50}\n{}\n{"parent": 2, "above": [7, 2], "kids": [5]}\n{"parent": 4, "above": [1, 2, 4], "depth": 3, "kids": []}{"on": 3, "above": [8]}',
          'tree: nodes that come leave lists and numbers alone');
CALL pattern_build('th', 'hung', discard => true);
CALL pattern_build('tm', discard => true);
SELECT lives_ok($$SELECT tree_move('tm', 2, 3)$$, 'tree: afterwards it moves');
SELECT is_empty('SELECT * FROM pattern_check(''tm'') UNION ALL SELECT * FROM pattern_check(''th'')', 'tree: and is true');

-- slots
SELECT collection_create('sl') \g /dev/null
INSERT INTO sl (doc) VALUES ('{_id: 1, seats: [["ann", 0]], free: 99}'), ('{_id: 2, seats: [["ann", 0]], seats_until: "mine", free: 1}'), ('{_id: 3, seats: [["ann", 0]], seats_until: {A1: ISODate("2999-01-01T00:00:00Z")}}'), ('{_id: 4, seats: [[0, 0]], free: 2}');
SELECT preallocated_enable('sl', 'seats', preallocated_grid('{2}'), available_field => 'free') \g /dev/null
SELECT ok(preallocated_claim('sl', 1, '{A2}', holder => 'bob') AND preallocated_release('sl', 1, '{A1}', holder => 'ann') AND preallocated_claim('sl', 4, '{A2}', holder => 'bob'), 'slots are claimed');
SELECT is((SELECT doc::text FROM sl WHERE _id = 1) || (SELECT doc::text FROM sl WHERE _id = 4), '{"_id": 1, "seats": [[0, "bob"]], "free": 99}{"_id": 4, "seats": [[0, "bob"]], "free": 1}', 'preallocated: another number stays');
SELECT matches(pg_temp.told($$SELECT preallocated_claim('sl', 2, '{A2}', holder => 'bob')$$), '^55000 .*seats_until.*pattern_build', 'preallocated: a claim needs the times');
UPDATE sl SET doc = bson_set(doc, 'x', 1);
SELECT pg_temp.stops('sl', 'seats', '2 documents .*Fields: .*seats_until.* Keys: .*2.*\.');
UPDATE sl SET doc = bson_unset(doc, 'free') WHERE _id = 1;
SELECT pattern_disable('sl') \g /dev/null
SELECT is((SELECT string_agg(doc ->> 'seats_until', ' ' ORDER BY _id) FROM sl), 'mine {"A1": {"$date": "2999-01-01T00:00:00Z"}}', 'preallocated: the times stay when the declaration ends');
UPDATE sl SET doc = bson_unset(bson_unset(doc, 'seats_until'), 'free') WHERE _id < 3;
SELECT preallocated_enable('sl', 'seats', preallocated_grid('{2}'), available_field => 'free') \g /dev/null
CALL pattern_build('sl');
SELECT is_empty('SELECT * FROM pattern_check(''sl'')', 'preallocated: holds that fit are adopted');
SELECT pattern_disable('sl') \g /dev/null
SELECT ok(doc ? 'seats_until', 'preallocated: and stay') FROM sl WHERE _id = 3;

-- both tables of a relationship
SELECT collection_create('ra'), collection_create('rb') \g /dev/null
INSERT INTO ra (doc) VALUES ('{_id: 1}'), ('{_id: 2, b: [1]}'); INSERT INTO rb (doc) VALUES ('{_id: 1, a: "Dr"}'), ('{_id: 3, a: [1, 77]}');
SELECT matches(pg_temp.told($$SELECT relationship_enable('ra', 'b', 'rb', 'a')$$), '^55000 .*"a" in table "rb" must be an array.*1 documents. Keys: 1.*b_field', 'relationship: what is not an array is refused');
UPDATE rb SET doc = bson_set(doc, 'a', '[]'::bson_value) WHERE _id = 1;
SELECT relationship_enable('ra', 'b', 'rb', 'a') \g /dev/null
SELECT is(options -> 'held', '["b", "a"]', 'relationship: both sides are looked at') FROM pattern_list('ra');
SELECT pattern_repair('ra') \g /dev/null
SELECT is(pg_temp.docs('ra') || pg_temp.docs('rb'), E'{"b": [3]}\n{"b": [1]}{"a": [2]}\n{"a": [1, 77]}', 'relationship: an id without a document stays in the other table, too');

-- revisions
SELECT collection_create('va') \g /dev/null
INSERT INTO va (doc) VALUES ('{_id: 1, revision: 7}'), ('{_id: 2, revision: "B2"}'), ('{_id: 3, revision: 1.5}'), ('{_id: 4, revision: NaN}'), ('{_id: 5}');
SELECT matches(pg_temp.told($$SELECT versioning_enable('va')$$), '^55000 .*"revision" in table "va" must be a whole number.*3 documents.*revision_field', 'versioning: a field that holds something else');
DELETE FROM va WHERE _id IN (2, 3, 4);
SELECT versioning_enable('va') \g /dev/null
SELECT is(options -> 'held', '["revision"]', 'versioning: numbers are announced') FROM pattern_list('va');
CALL pattern_build('va');
UPDATE va SET doc = bson_set(doc, 'x', 1);
SELECT is((SELECT string_agg(revision::text, ' ' ORDER BY revision) FROM versioning_revisions('va', 1)), '7 8', 'versioning: and continued');

-- a partition brings values
CREATE TABLE big_3 (id int PRIMARY KEY, doc bson NOT NULL);
INSERT INTO big_3 VALUES (1001, '{n: 7}'), (1002, '{}');
ALTER TABLE big ATTACH PARTITION big_3 FOR VALUES FROM (1000) TO (2000);
SELECT is(options -> 'held', '["\"n\""]', 'a partition is looked at when it comes') FROM pattern_list('big');
SELECT matches(pg_temp.told($$CALL pattern_build('big', 'n', NULL)$$), '^55000 .*Keys: 1001', 'and its values stop a build');
INSERT INTO s (doc) VALUES ('{film: 1001, v: 3}'), ('{film: 1002, v: 3}'); INSERT INTO s (doc) VALUES ('{film: 1001, v: 4}');
SELECT is((SELECT string_agg(doc ->> 'n', ' ' ORDER BY id) FROM big_3), '7 3', 'or are what their rows come to');
CALL pattern_build('big', 'n');
ALTER TABLE big DETACH PARTITION big_3;
ALTER TABLE big ATTACH PARTITION big_3 FOR VALUES FROM (1000) TO (2000);
SELECT ok(NOT options ? 'held' AND options ? 'own', 'one that is in line needs no guard') FROM pattern_list('big');

-- names of tables, and what is promised
SELECT is(pg_temp.told($$SELECT outlier_enable('q', 'z', 2, extras => 'q_row', on_field => 'of')$$), '42P01 | relation "q_row" does not exist | Did you mean q_rows or q_new? Use create_extras => true to create it.', 'extras that do not exist');
SELECT hasnt_table('q_row');
SELECT collection_create('fi'), collection_create('fr') \g /dev/null
INSERT INTO fi (doc) VALUES ('{_id: 1, r: [{id: 1, d: 1, z: 4}]}');
SELECT subset_enable('fi', 'r', 'fr', 'p', '{d: -1}', 10, fields => '{id: 1, d: 1}') \g /dev/null
CALL pattern_build('fi');
SELECT is(pg_temp.docs('fi') || pg_temp.docs('fr'), '{"r": [{"id": 1, "d": 1}]}{"id": 1, "d": 1, "z": 4, "p": 1}', 'subset: what members do not show is in the rows');
SELECT pattern_disable('fi') \g /dev/null
DELETE FROM fr;
SELECT subset_enable('fi', 'r', 'fr', 'p', '{d: -1}', 10, fields => '{id: "$nr", d: 1}') \g /dev/null
SELECT pg_temp.stops('fi', 'r', '1 document .*Insert such elements into public\.fr');
SELECT is_empty('SELECT FROM fr', 'subset: renamed elements do not become rows');

-- A build that two neighbours stop has written nothing, and goes on when one of them has changed
CALL pattern_build('two', 'r', 1, discard => true);
SELECT pattern_disable('two', 'r') \g /dev/null
DELETE FROM two_r;
UPDATE two SET doc = bson_set(doc, 'r', bson_array(bson_build('_id', 1, 'd', _id)));
INSERT INTO two (doc) VALUES ('{_id: 3, r: [{_id: 3, d: 3}]}');
SELECT subset_enable('two', 'r', 'two_r', 'p', '{d: -1}', 10) \g /dev/null
\set ON_ERROR_STOP off
\o /dev/null
CALL pattern_build('two', 'r', 1);
\o
\set ON_ERROR_STOP on
SELECT is((SELECT string_agg(doc ->> 'r', ' ' ORDER BY _id) FROM two), '[{"_id": 1, "d": 1}] [{"_id": 1, "d": 2}] [{"_id": 3, "d": 3}]', 'nothing is written');
UPDATE two SET doc = bson_set(doc, 'r.0._id', 2) WHERE _id = 2;
CALL pattern_build('two', 'r', 1);
SELECT is((SELECT string_agg(doc::text, ' ' ORDER BY _id) FROM two_r), '{"_id": 1, "d": 1, "p": 1} {"_id": 2, "d": 2, "p": 2} {"_id": 3, "d": 3, "p": 3}', 'all elements are rows');
SELECT is_empty('SELECT * FROM pattern_check(''two'')', 'and all is true');

-- Fields that a declaration keeps later -----------------------------------------------------------------------------------------

SELECT collection_create('later'), collection_create('later_rows') \g /dev/null
INSERT INTO later (doc) VALUES ('{_id: 1, avg: 7, own: "mine", kids: ["x"], free: 9, p: "x1"}'), ('{_id: 2, avg: 0}');
SELECT computed_enable('later', 'later_rows', 'k', '{n: {$count: {}}}'), tree_enable('later', parent => 'up'),
  payload_enable('later', 'p', '{a: "regex:x(.)"}'), preallocated_enable('later', 's', preallocated_pool(2)) \g /dev/null
CALL pattern_build('later', 'n'); CALL pattern_build('later', 'up'); CALL pattern_build('later', 'p'); CALL pattern_build('later', 's');
CREATE TEMP TABLE later_was AS SELECT doc FROM later;
SELECT throws_ok(format('SELECT pattern_alter(''later'', %L, %L)', name, options), '55000', NULL, 'a value in a field of ' || name)
  FROM (VALUES ('n', '{fields: {n: {$count: {}}, avg: {$avg: "$v"}}}'), ('up', '{children: "kids"}'),
    ('p', '{extracts: {own: "regex:(x)"}}'), ('s', '{available_field: "free"}')) AS v (name, options);
SELECT is((SELECT string_agg(doc::text, ' ' ORDER BY _id) FROM later), (SELECT string_agg(doc::text, ' ' ORDER BY doc) FROM later_was), 'is not touched');
UPDATE later SET doc = doc - 'avg' WHERE _id = 1;
SELECT lives_ok($$SELECT pattern_alter('later', 'n', '{fields: {n: {$count: {}}, avg: {$avg: "$v"}}}')$$, 'empty fields are free');
SELECT lives_ok($$SELECT pattern_alter('later', 'n', '{fields: {n: {$sum: 1}, avg: {$max: "$v"}}}')$$, 'so are those that it has');
SELECT throws_ok($$SELECT pattern_alter('later', 'n', '{fields: 5}')$$, '22023', NULL, 'bad options are told as ever');
CREATE TABLE later_odd (_id int PRIMARY KEY, "doc, true) OR (doc" bson);
SELECT computed_enable('later_odd', 'later', 'k', '{n: {$count: {}}}') \g /dev/null
INSERT INTO later_odd VALUES (1, '{_id: 1, avg: 7}');
SELECT throws_ok($$SELECT pattern_alter('later_odd', 'n', '{fields: {n: {$count: {}}, avg: {$avg: "$v"}}}')$$, '55000', NULL, 'a column whose name has to be quoted');

SELECT collection_create('later_copies') \g /dev/null
SELECT reference_enable('later_copies', 'r', 'later', live => '{kids}', missing => 'allow'),
  reference_enable('later_copies', 'many', 'later') \g /dev/null
INSERT INTO later_copies (doc) VALUES ('{_id: 1, r: {_id: 1, own: "copy"}, many: [{_id: 1, own: "mine"}]}'),
  ('{_id: 2, r: {_id: 1, own: "mine"}}'), ('{_id: 3, r: 1}'), ('{_id: 4, r: {_id: 9, own: "copy"}}');
PREPARE more AS SELECT pattern_alter('later_copies', 'r', '{live: ["kids", "own"]}');
SELECT throws_ok('more', '55000', 'pattern "r" of table "later_copies": 2 documents have values in fields that it does not maintain yet',
  'a value of a copy that the source does not have');
SELECT throws_ok($$SELECT pattern_alter('later_copies', 'many', '{live: ["_id", "x"]}')$$, '22023', NULL, 'bad options are told as ever');
SELECT lives_ok($$SELECT pattern_alter('later_copies', 'many', '{live: ["own"]}')$$, 'what the source has is no loss');
SELECT is((SELECT string_agg(doc #>> '{r,own}', ' ' ORDER BY _id) FROM later_copies), 'copy mine copy', 'copies are not touched');
UPDATE later_copies SET doc = bson_unset(doc, 'r.own') WHERE _id IN (1, 4);
SELECT lives_ok('more', 'after that they are free');
CALL pattern_build('later_copies', 'r'); CALL pattern_build('later_copies', 'many');
SELECT is((SELECT string_agg(doc #>> '{r,own}', ' ' ORDER BY _id) FROM later_copies), 'mine mine mine', 'and filled in');
SELECT is_empty('SELECT * FROM pattern_check(''later_copies'')', 'as they should be');

-- The comparison takes few numbers of transactions
SELECT collection_create('many'), collection_create('many_rows') \g /dev/null
INSERT INTO many_rows (doc) SELECT bson_build('_id', i, 'm', i, 'n', i) FROM generate_series(1, 400) i;
INSERT INTO many (doc) SELECT bson_build('_id', i, 'total', i) FROM generate_series(1, 400) i;
SELECT computed_enable('many', 'many_rows', 'm', '{total: {$sum: "$n"}}') \g /dev/null
SELECT txid_current() AS before \gset
CALL pattern_build('many', batch => NULL);
SELECT cmp_ok(txid_current() - :before, '<', 100::bigint, 'documents that hold values are compared many at a time');

SELECT * FROM finish();
