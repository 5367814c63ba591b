-- The contract of the single collection pattern: what is refused, what every option does, what every kind of write does.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(142);

CREATE FUNCTION pg_temp.all_true(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;
CREATE FUNCTION pg_temp.ids(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text; BEGIN EXECUTE format('SELECT string_agg(q.id, '','' ORDER BY q.id) FROM (%s) AS q (id)', query) INTO result; RETURN coalesce(result, ''); END $$;

-- Signatures
SELECT function_returns(f, r, f || ' returns ' || r) FROM (VALUES ('single_collection_enable', 'text'), ('single_collection_get', 'setof bson'), ('single_collection_query', 'text'), ('single_collection_view', 'regclass'),
  ('single_collection_from', 'bigint'), ('single_collection_split', 'setof record'), ('single_collection_id', 'bson_value'), ('single_collection_key', 'bson_value')) AS v (f, r);
SELECT volatility_is(f, v, f || ' is ' || v) FROM (VALUES ('single_collection_enable', 'volatile'), ('single_collection_get', 'stable'), ('single_collection_query', 'stable'), ('single_collection_id', 'immutable'), ('single_collection_key', 'immutable')) AS w (f, v);

-- Refused options
SELECT collection_create('t') \g /dev/null
SELECT throws_ok(format('SELECT single_collection_enable(''t'', %s)', args), state, NULL, what) FROM (VALUES
  ($$related_field => 'a', key_field => 'b'$$, '22023', 'related and keyed'), ($$type_field => 'x', related_field => 'x.y'$$, '22023', 'type and relations in one field'),
  ($$related_field => 'a..b'$$, '22023', 'a bad path'), ($$related_field => 'a."b.c"'$$, '22023', 'a path that no filter can ask for'), ($$related_field => 'a.0'$$, '22023', 'a position'),
  ($$on_delete => 'explode'$$, '22023', 'an unknown rule'), ($$missing => 'maybe'$$, '22023', 'an unknown missing'), ($$key_field => 'k', on_delete => 'unset'$$, '22023', 'unset for keys'),
  ($$key_field => 'k', separator => ''$$, '22023', 'no separator'), ($$key_field => 'k', self_related => '{a}'$$, '22023', 'self_related for keys'), ($$key_field => 'k', types => '{a}'$$, '22023', 'types without a type field'),
  ($$id_fields => '{book: 5}'$$, '22023', 'an id field that is no path'), ($$id_fields => '{book: "relatedTo"}'$$, '22023', 'ids in the relations'), ($$id_fields => '{book: "a"}', self_related => '{user}'$$, '22023', 'no id for what points to itself')) AS v (args, state, what);
CREATE TABLE no_key (id int, doc bson);
SELECT throws_ok($$SELECT single_collection_enable('no_key')$$, '55000', NULL, 'a table without a key');
SELECT is(single_collection_enable('t', types => '{a,b}'), 'relatedTo', 'the name is that of the field');
SELECT throws_ok($$SELECT single_collection_enable('t')$$, '42710', NULL, 'a second declaration of the name');
SELECT throws_ok($$SELECT outlier_enable('t', 'relatedTo', 5)$$, '0A000', NULL, 'another pattern on the field') WHERE false;
SELECT throws_ok($$SELECT pattern_alter('t', 'relatedTo', '{type_field: "x"}')$$, '22023', NULL, 'an option that cannot be changed');
SELECT throws_ok($$SELECT pattern_alter('t', 'relatedTo', '{on_delete: 5}')$$, '22023', NULL, 'a value of another type');
SELECT throws_ok($$SELECT * FROM single_collection_get('no_key', 1)$$, '42704', NULL, 'a table without the pattern');
SELECT throws_ok($$SELECT single_collection_view('t', 'a')$$, '42P07', NULL, 'a view that is there');
SELECT is(single_collection_view('t', 'c', 'my_c')::text, 'my_c', 'a view of another name');
SELECT has_view('t_a');
SELECT has_view('t_b');
SELECT pattern_disable('t') \g /dev/null
SELECT hasnt_view('t_a');
SELECT hasnt_view('my_c');
SELECT is_empty($$SELECT tgname FROM pg_trigger WHERE tgrelid = 't'::regclass AND tgname LIKE '%single%'$$, 'no trigger is left');
SELECT is(count(*), 1::bigint, 'nor an index') FROM pg_index WHERE indrelid = 't'::regclass;

-- What ids may be, and are
SELECT is(single_collection_id(d::bson, 't', i)::text, id, what) FROM (VALUES
  ('{_id: 5, t: "a"}', '{}', '5', '_id when nothing is named'), ('{_id: 5, t: "a", n: 7}', '{"a": "n"}', '7', 'the field of the type'), ('{_id: 5, t: "b", n: 7}', '{"a": "n"}', NULL, 'other types have none'),
  ('{_id: 5, n: 7}', '{"a": "n"}', NULL, 'nor have documents without a type'), ('{_id: 5, t: "a", n: [1]}', '{"a": "n"}', NULL, 'an array is no id'), ('{t: "a", x: {y: "z"}}', '{"a": "x.y"}', 'z', 'a path')) AS v (d, i, id, what);
SELECT ok(single_collection_key(d::bson, 'k', s) IS NOT DISTINCT FROM (('{v: ' || k || '}')::bson -> 'v'), what) FROM (VALUES
  ('{k: "a/b/c"}', '/', '"a\u0000b\u0000c"', 'separators become NULs'), ('{k: "a::b:c"}', '::', '"a\u0000b:c"', 'of several characters'), ('{k: 5}', '/', NULL, 'no string'), ('{}', '/', NULL, 'no key'), ('{k: "a\u0000b"}', '/', NULL, 'a NUL')) AS v (d, s, k, what);

-- Every kind of write
SELECT single_collection_enable('t', id_fields => '{book: "n"}', self_related => '{book}', views => false) \g /dev/null
INSERT INTO t (doc) VALUES ('{_id: 1, docType: "review", relatedTo: [1]}'), ('{_id: 2, docType: "book", n: 1}');
SELECT pg_temp.all_true('a child before its parent in one statement');
SELECT throws_ok($$INSERT INTO t (doc) VALUES ('{_id: 9, docType: "review", relatedTo: [5]}')$$, '23503', NULL, 'INSERT');
SELECT throws_ok($$UPDATE t SET doc = bson_set(doc, 'relatedTo', 5) WHERE _id = 1$$, '23503', NULL, 'UPDATE, with one id instead of an array');
SELECT throws_ok($$DELETE FROM t WHERE _id = 2$$, '23503', NULL, 'DELETE');
SELECT throws_ok($$UPDATE t SET doc = bson_unset(doc, 'n') WHERE _id = 2$$, '23502', NULL, 'an id that goes');
SELECT throws_ok($$UPDATE t SET doc = bson_set(doc, 'docType', 'magazine') WHERE _id = 2$$, '23503', NULL, 'a type that changes to one without ids');
SELECT throws_ok($$INSERT INTO t (doc) VALUES ('{_id: 8, docType: "book", n: 1}')$$, '23505', NULL, 'an id that is there');
SELECT throws_ok($$MERGE INTO t USING (VALUES (1)) v (k) ON t._id = v.k WHEN MATCHED THEN UPDATE SET doc = bson_set(t.doc, 'relatedTo', '[4]'::bson_value)$$, '23503', NULL, 'MERGE');
SELECT lives_ok($$INSERT INTO t (doc) VALUES ('{_id: 1, docType: "review", relatedTo: [5]}') ON CONFLICT DO NOTHING$$, 'what ON CONFLICT does not insert names nobody');
SELECT throws_ok($$INSERT INTO t (doc) VALUES ('{_id: 1, docType: "review", relatedTo: [5]}') ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc$$, '23503', NULL, 'ON CONFLICT DO UPDATE');
SELECT lives_ok($$INSERT INTO t (doc) VALUES ('{_id: 1, docType: "review", relatedTo: [5]}') ON CONFLICT (_id) DO UPDATE SET doc = bson_set(t.doc, 'again', true)$$, 'one that writes something else');
BEGIN;
SAVEPOINT s;
DELETE FROM t;
ROLLBACK TO s;
SELECT throws_ok($$DELETE FROM t WHERE _id = 2$$, '23503', NULL, 'after a savepoint');
COMMIT;
SELECT pg_temp.all_true('refused');
SELECT is(doc ->> 'relatedTo', '[1]', 'a document written without change of relations') FROM t WHERE _id = 2;
UPDATE t SET doc = bson_set(doc, 'relatedTo', '[]'::bson_value) WHERE _id = 2;
SELECT is(doc ->> 'relatedTo', '[1]', 'the relation to itself comes back') FROM t WHERE _id = 2;
CREATE TEMP TABLE place AS SELECT ctid AS place FROM t WHERE _id = 2;
UPDATE t SET doc = bson_set(doc, 'n', 10) WHERE _id = 2;
SELECT is(pg_temp.ids('SELECT doc ->> ''relatedTo'' FROM t'), '[10],[10]', 'a new id, by UPDATE');
SELECT throws_ok($$TRUNCATE t; INSERT INTO t (doc) VALUES ('{_id: 1, docType: "review", relatedTo: [10]}')$$, '23503', NULL, 'TRUNCATE');
INSERT INTO t (doc) VALUES ('{_id: 3, docType: "note", relatedTo: [10]}'), ('{_id: 4, docType: "book", n: 11, relatedTo: [10]}'), ('{_id: 5, docType: "note", relatedTo: [10, 11]}');
SELECT is(pg_temp.ids('SELECT d ->> ''_id'' FROM single_collection_get(''t'', 10) d'), '1,2,3,4,5', 'get');
SELECT is(pg_temp.ids('SELECT d ->> ''_id'' FROM single_collection_get(''t'', 10, ''note'') d'), '3,5', 'get by type');
SELECT is(pg_temp.ids('SELECT d ->> ''_id'' FROM single_collection_get(''t'', 10.0::float8) d'), '1,2,3,4,5', 'numbers of any type');
SELECT is(pg_temp.ids('SELECT d ->> ''_id'' FROM single_collection_get(''t'', NULL::int) d'), '', 'nothing belongs to NULL');
SELECT pattern_alter('t', 'relatedTo', '{on_delete: "cascade"}') \g /dev/null
DELETE FROM t WHERE _id = 2;
SELECT is(pg_temp.ids('SELECT doc ->> ''_id'' FROM t'), '4,5', 'cascade: those that belong to nothing else go');
SELECT is(pg_temp.ids('SELECT doc ->> ''relatedTo'' FROM t'), '[11],[11]', 'the others let go');
SELECT pg_temp.all_true('cascade');
SELECT pattern_alter('t', 'relatedTo', '{on_delete: "keep", missing: "allow"}') \g /dev/null
DELETE FROM t WHERE _id = 4; INSERT INTO t (doc) VALUES ('{docType: "note", relatedTo: [77]}');
SELECT pg_temp.all_true('dangling relations are allowed');
SELECT pattern_alter('t', 'relatedTo', '{on_delete: "unset", missing: "error"}') \g /dev/null
SELECT is(count(*), 2::bigint, 'and are reported when they are not') FROM pattern_check('t');
SELECT is(pattern_repair('t'), 2::bigint, 'repaired'); SELECT pg_temp.all_true('repair');
DROP TABLE t;

-- A trigger of the user's that changes what is written, and one that takes the row away
SELECT collection_create('t') \g /dev/null
SELECT single_collection_enable('t', id_fields => '{book: "n"}', views => false) \g /dev/null
CREATE FUNCTION take_away() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.doc ? 'skip' THEN RETURN NULL; END IF; RETURN NEW; END $$;
CREATE TRIGGER zzz_take_away BEFORE INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION take_away();
SELECT lives_ok($$INSERT INTO t (doc) VALUES ('{docType: "note", relatedTo: [1], skip: 1}')$$, 'a row that is not stored names nobody');
INSERT INTO t (doc) VALUES ('{docType: "book", n: 1}'), ('{docType: "note", relatedTo: [1]}');
SELECT lives_ok($$UPDATE t SET doc = bson_set(bson_set(doc, 'n', 5), 'skip', 1) WHERE doc @@ '{n: 1}'$$, 'nor does one whose update is taken away lose its id');
SELECT pg_temp.all_true('users'' triggers');
DROP TABLE t; DROP FUNCTION take_away();

-- Keys
SELECT collection_create('k') \g /dev/null
SELECT single_collection_enable('k', key_field => 'a.key', separator => '#', on_delete => 'restrict', type_field => 't') \g /dev/null
INSERT INTO k (doc) VALUES ('{a: {key: "1"}, t: "x"}'), ('{a: {key: "10"}, t: "x"}'), ('{a: {key: "1#1"}, t: "y"}'), ('{a: {key: "1#1#é"}, t: "z"}'), ('{a: {key: "1!"}, t: "x"}'), ('{a: {key: "1$"}, t: "x"}');
SELECT is(pg_temp.ids('SELECT d ->> ''a.key'' FROM single_collection_get(''k'', ''1'') d'), '1,1#1,1#1#é', 'get is exact');
SELECT is(pg_temp.ids('SELECT d ->> ''a.key'' FROM single_collection_get(''k'', ''1'', ''y'') d'), '1#1', 'by type');
SELECT throws_ok($$DELETE FROM k WHERE doc @@ '{"a.key": "1"}'$$, '23503', NULL, 'restrict');
SELECT throws_ok($$DELETE FROM k WHERE doc @@ '{"a.key": "1#1"}'$$, '23503', NULL, 'restrict in the middle');
SELECT throws_ok($$SELECT * FROM single_collection_get('k', 1)$$, '42809', NULL, 'a key is a string');
SELECT throws_ok(format('INSERT INTO k (doc) VALUES (%L)', d), state, NULL, what) FROM (VALUES ('{a: {key: ""}, t: "x"}', '23514', 'an empty key'), ('{a: {key: "#1"}, t: "x"}', '23514', 'an empty first part'), ('{a: {key: "1#"}, t: "x"}', '23514', 'an empty last part'),
  ('{a: {key: "1##2"}, t: "x"}', '23514', 'an empty part'), ('{a: {key: "1\u00002"}, t: "x"}', '23514', 'a NUL'), ('{a: {key: null}, t: "x"}', '23502', 'null'), ('{a: 5, t: "x"}', '23502', 'none'), ('{a: {key: "1"}, t: "x"}', '23505', 'one that is there'), ('{a: {key: "2#1"}, t: "x"}', '23503', 'no parent')) AS v (d, state, what);
UPDATE k SET doc = bson_set(doc, 'a.key', '9'::text) WHERE doc @@ '{"a.key": "1"}';
SELECT is(pg_temp.ids('SELECT d ->> ''a.key'' FROM single_collection_get(''k'', ''9'') d'), '9,9#1,9#1#é', 'all that lies below follows');
SELECT throws_ok($$UPDATE k SET doc = bson_set(doc, 'a.key', '9#1#2'::text) WHERE doc @@ '{"a.key": "9"}'$$, '23503', NULL, 'nothing lies below itself');
SELECT pattern_alter('k', 'a.key', '{on_delete: "cascade"}') \g /dev/null
DELETE FROM k WHERE doc @@ '{"a.key": "9#1"}';
SELECT is(pg_temp.ids('SELECT doc ->> ''a.key'' FROM k'), '1!,1$,10,9', 'cascade');
SELECT pg_temp.all_true('keys');
DROP TABLE k CASCADE;

-- Hostile names, a table of the user's own, and somebody who may only write
CREATE SCHEMA "o'S.c";
CREATE TABLE "o'S.c"."T ""t%s" ("K k" int PRIMARY KEY, "D ""d" bson, other text DEFAULT 'x');
SELECT is(single_collection_enable('"o''S.c"."T ""t%s"', type_field => 'it''s %s', related_field => 'rel''s %s', id_fields => '{"b''o\"o%s": "i''d %s"}', self_related => ARRAY['b''o"o%s'], types => ARRAY['b''o"o%s', 're''v'], name => 'n''a "%s'), 'n''a "%s', 'names')
  WHERE false;
SELECT single_collection_enable('"o''S.c"."T ""t%s"', type_field => 'it''s', related_field => 'rel''s%s', id_fields => '{"b''o\"o%s": "i''d%s"}', self_related => ARRAY['b''o"o%s'], types => ARRAY['b''o"o%s', 're''v'], name => 'n''a "%s') \g /dev/null
INSERT INTO "o'S.c"."T ""t%s" VALUES (1, '{"it''s": "b''o\"o%s", "i''d%s": "x''y"}'), (2, '{"it''s": "re''v", "rel''s%s": ["x''y"]}');
SELECT is((SELECT count(*) FROM single_collection_get('"o''S.c"."T ""t%s"', 'x''y')), 2::bigint, 'hostile names: get');
SELECT throws_ok($$DELETE FROM "o'S.c"."T ""t%s" WHERE "K k" = 1$$, '23503', NULL, 'and restrict');
SELECT is(count(*), 1::bigint, 'and a view') FROM "o'S.c"."T ""t%s_re'v";
CREATE ROLE sc_writer;
GRANT USAGE ON SCHEMA "o'S.c" TO sc_writer; GRANT INSERT, UPDATE, DELETE ON "o'S.c"."T ""t%s" TO sc_writer;
SET ROLE sc_writer;
SELECT lives_ok($$INSERT INTO "o'S.c"."T ""t%s" VALUES (3, '{"it''s": "re''v", "rel''s%s": ["x''y"]}')$$, 'who may write needs no other right');
SELECT throws_ok($$INSERT INTO "o'S.c"."T ""t%s" VALUES (4, '{"it''s": "re''v", "rel''s%s": ["z"]}')$$, '23503', NULL, 'and is refused what is wrong');
SELECT throws_ok($$SELECT * FROM single_collection_get('"o''S.c"."T ""t%s"', 'x''y')$$, '42501', NULL, 'but may not read');
SELECT throws_ok($$SELECT single_collection_enable('"o''S.c"."T ""t%s"', related_field => 'q')$$, '42501', NULL, 'nor declare');
RESET ROLE;
SELECT pg_temp.all_true('hostile names');
ALTER TABLE "o'S.c"."T ""t%s" RENAME TO plain; ALTER TABLE "o'S.c".plain SET SCHEMA public; ALTER TABLE plain RENAME "D ""d" TO d; ALTER TABLE plain OWNER TO sc_writer;
SELECT is((SELECT count(*) FROM single_collection_get('plain', 'x''y')), 3::bigint, 'renamed');
SELECT is(tableowner::text, 'sc_writer', 'the view follows to a new owner') FROM (SELECT viewowner AS tableowner FROM pg_views WHERE viewname = 'T "t%s_re''v') v;
SELECT throws_ok('DELETE FROM plain WHERE "K k" = 1', '23503', NULL, 'and kept');
SELECT pg_temp.all_true('renamed');
-- a view that looks like ours
CREATE ROLE sc_other; GRANT CREATE ON SCHEMA public TO sc_other; GRANT USAGE ON SCHEMA "o'S.c" TO sc_other; SET ROLE sc_other; RESET ROLE;
SELECT format('SET ROLE sc_other; CREATE VIEW fake WITH (security_invoker = true) AS SELECT d FROM plain WHERE %s; RESET ROLE', docpatterns._pattern_mark('single_collection', name, 're''v')) FROM pattern_list('plain') \gexec
SET ROLE sc_writer; SELECT lives_ok($$SELECT pattern_disable('plain')$$, 'the owner ends the pattern'); RESET ROLE; SELECT has_view('fake', 'and leaves the views of others');
DROP VIEW fake; DROP OWNED BY sc_other; DROP ROLE sc_other;
DROP TABLE plain CASCADE; DROP SCHEMA "o'S.c" CASCADE; DROP OWNED BY sc_writer; DROP ROLE sc_writer;

-- Partitions
CREATE TABLE parts (id int, doc bson, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
SELECT throws_ok($$SELECT single_collection_enable('parts', is_unique => true)$$, '0A000', NULL, 'unique ids in a partitioned table');
SELECT throws_ok($$SELECT single_collection_enable('parts_1')$$, '42809', NULL, 'a partition by itself');
SELECT single_collection_enable('parts', id_fields => '{book: "n"}', self_related => '{book}', on_delete => 'cascade', views => false) \g /dev/null
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (100) TO (200);
INSERT INTO parts VALUES (1, '{docType: "book", n: 1}'), (101, '{docType: "note", relatedTo: [1]}'), (2, '{docType: "note", relatedTo: [1]}');
SELECT is((SELECT count(*) FROM single_collection_get('parts', 1)), 3::bigint, 'get in all partitions');
UPDATE parts SET id = 150 WHERE id = 1;
SELECT is(count(*), 3::bigint, 'a row that moves to another partition is not gone') FROM parts;
SELECT throws_ok($$INSERT INTO parts_1 VALUES (3, '{docType: "note", relatedTo: [4]}')$$, '23503', NULL, 'writes to a partition');
TRUNCATE parts_2;
SELECT is(count(*), 0::bigint, 'TRUNCATE of a partition') FROM parts;
SELECT pg_temp.all_true('partitions');
DROP TABLE parts;

-- From tables and back
SELECT collection_create('books'), collection_create('users'), collection_create('reviews') \g /dev/null
INSERT INTO books (doc) SELECT bson_build('_id', i, 'title', 'T' || i) FROM generate_series(1, 5) i;
INSERT INTO users (doc) SELECT bson_build('_id', 'u' || i, 'books', (SELECT coalesce(bson_agg(b), '[]') FROM generate_series(1, i) b)) FROM generate_series(0, 4) i;
INSERT INTO reviews (doc) SELECT bson_build('_id', i, 'book', i % 5 + 1, 'user', 'u' || i % 5, 'rating', i) FROM generate_series(1, 20) i;
CREATE TABLE before AS SELECT 'b' AS t, doc FROM books UNION ALL SELECT 'u', doc FROM users UNION ALL SELECT 'r', doc FROM reviews;
CREATE FUNCTION pg_temp.now() RETURNS TABLE (t text, doc bson_value[]) LANGUAGE sql AS $$
  SELECT q.t, (SELECT array_agg(bson_build(k, q.doc -> k)::bson_value ORDER BY k) FROM bson_keys(q.doc) k) FROM (SELECT 'b' AS t, books.doc FROM books UNION ALL SELECT 'u', users.doc FROM users UNION ALL SELECT 'r', reviews.doc FROM reviews) AS q $$;
CREATE TABLE before_sorted AS SELECT * FROM pg_temp.now();
SELECT throws_ok($$SELECT single_collection_from('cat', '{books,reviews}', links => '{reviews: {book: "books"}}')$$, '23505', NULL, 'the same _id in two tables');
SELECT throws_ok($$SELECT single_collection_from('cat', '{books,reviews}', '{a}')$$, '22023', NULL, 'too few types');
SELECT throws_ok($$SELECT single_collection_from('cat', '{books}', links => '{reviews: {book: "books"}}')$$, '22023', NULL, 'links of a type that is not there');
SELECT throws_ok($$SELECT single_collection_from('before', '{books}')$$, '42704', NULL, 'a table that is not a single collection');
SELECT is(single_collection_from('cat', '{books,users,reviews}', '{book,user,review}', links => '{review: {book: "book", user: "user"}, user: {books: ["book"]}}', id_fields => '{book: "bookId"}', self_related => '{book}'), 30::bigint, 'from tables');
SELECT is((SELECT count(*) FROM books) + (SELECT count(*) FROM users) + (SELECT count(*) FROM reviews), 0::bigint, 'which are empty then');
SELECT is((SELECT count(*) FROM single_collection_get('cat', 2)), 8::bigint, 'a book with its users and reviews');
SELECT pg_temp.all_true('from tables');
SELECT results_eq($$SELECT type, "table"::text, documents FROM single_collection_split('cat', '{book: "books", user: "users", review: "reviews"}') ORDER BY 1$$, $$VALUES ('book', 'books', 5::bigint), ('review', 'reviews', 20), ('user', 'users', 5)$$, 'and back');
SELECT bag_eq('SELECT * FROM pg_temp.now()', 'SELECT * FROM before_sorted', 'to what it was, but for the order of fields');
SELECT is((SELECT count(*) FROM cat), 0::bigint, 'the collection is empty');
SELECT is(single_collection_from('keyed', '{books,reviews}', '{book,review}', links => '{review: {book: "book"}}', key_field => 'sc', separator => '.', keep_tables => true), 25::bigint, 'with keys');
SELECT is((SELECT count(*) FROM single_collection_get('keyed', '2')), 5::bigint, 'a book with its reviews');
SELECT is((SELECT count(*) FROM books), 5::bigint, 'tables that are kept');
SELECT throws_ok($$SELECT single_collection_from('keyed2', '{books,reviews}', '{book,review}', links => '{review: {book: "magazine"}}', key_field => 'sc')$$, '23503', NULL, 'links that lead nowhere');
SELECT throws_ok($$SELECT single_collection_from('keyed2', '{users}', '{user}', key_field => 'sc', separator => 'u')$$, '23514', NULL, 'ids with the separator in them');
SELECT pg_temp.all_true('keys from tables');
DROP TABLE books, users, reviews, cat, keyed, before, before_sorted CASCADE;

-- A random run beside plain SQL: what is refused is what would dangle
SELECT collection_create('run') \g /dev/null
SELECT single_collection_enable('run', id_fields => '{p: "n"}', on_delete => 'cascade', views => false) \g /dev/null
CREATE TABLE model (id int PRIMARY KEY, n int UNIQUE, rel int[]);
CREATE FUNCTION random_run(steps int, seed float8) RETURNS text LANGUAGE plpgsql AS $$
DECLARE what int; a int; b int; k int; ok boolean; expected boolean; gone int[];
BEGIN
  PERFORM setseed(seed);
  FOR i IN 1 .. steps LOOP
    what := floor(random() * 5); a := floor(random() * 12); b := floor(random() * 12); k := floor(random() * 60);
    ok := true;
    BEGIN
      IF what = 0 THEN
        expected := NOT EXISTS (SELECT FROM model WHERE id = k OR n = a);
        INSERT INTO run (doc) VALUES (bson_build('_id', k, 'docType', 'p', 'n', a));
        INSERT INTO model VALUES (k, a, '{}');
      ELSIF what = 1 THEN
        expected := NOT EXISTS (SELECT FROM model WHERE id = k) AND (SELECT count(*) = CASE WHEN a = b THEN 1 ELSE 2 END FROM model WHERE n IN (a, b));
        INSERT INTO run (doc) VALUES (bson_build('_id', k, 'docType', 'c', 'relatedTo', bson_array(a, b)));
        INSERT INTO model VALUES (k, NULL, ARRAY[a, b]);
      ELSIF what = 2 THEN
        expected := true;
        DELETE FROM run WHERE _id = k;
        gone := ARRAY(SELECT n FROM model WHERE id = k AND n IS NOT NULL);
        DELETE FROM model WHERE id = k OR (rel <> '{}' AND rel <@ gone AND gone <> '{}');
        UPDATE model SET rel = array_remove(rel, gone[1]) WHERE gone[1] = ANY (rel);
      ELSIF what = 3 THEN
        expected := NOT EXISTS (SELECT FROM model WHERE id <> k AND n = a) OR NOT EXISTS (SELECT FROM model WHERE id = k AND n IS NOT NULL);
        UPDATE run SET doc = bson_set(doc, 'n', a) WHERE _id = k AND doc @@ '{docType: "p"}';
        b := (SELECT n FROM model WHERE id = k);
        UPDATE model SET n = a WHERE id = k AND n IS NOT NULL;
        UPDATE model SET rel = CASE WHEN a = ANY (rel) AND a <> b THEN array_remove(rel, b) ELSE array_replace(rel, b, a) END WHERE b = ANY (rel);
      ELSE
        expected := NOT EXISTS (SELECT FROM model WHERE id = k AND n IS NULL) OR EXISTS (SELECT FROM model WHERE n = a);
        UPDATE run SET doc = bson_set(doc, 'relatedTo', bson_array(a)) WHERE _id = k AND doc @@ '{docType: "c"}';
        UPDATE model SET rel = ARRAY[a] WHERE id = k AND n IS NULL;
      END IF;
    EXCEPTION WHEN foreign_key_violation OR unique_violation THEN ok := false;
    END;
    IF ok <> expected THEN
      RETURN format('step %s (seed %s): %s with %s, %s, %s was %s', i, seed, what, k, a, b, CASE WHEN ok THEN 'accepted' ELSE 'refused' END);
    END IF;
  END LOOP;
  RETURN 'as expected';
END $$;
SELECT is(random_run(1500, 0.42), 'as expected', 'a random run, seed 0.42');
SELECT bag_eq($$SELECT _id::int, (doc -> 'n')::int, ARRAY(SELECT v::int FROM bson_values(doc, 'relatedTo') v) FROM run$$, 'SELECT id, n, rel FROM model', 'and the data are those of the model');
SELECT pg_temp.all_true('random run');
DROP TABLE run, model; DROP FUNCTION random_run(int, float8);
SELECT * FROM finish();
