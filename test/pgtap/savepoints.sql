-- What patterns remember of a statement, when triggers of users write in the midst of it in savepoints that are released and
-- then in others that are rolled back.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(16);

-- Runs the first statement in a block that ends well, and the second one in such a block inside of one that fails.
CREATE FUNCTION two_blocks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF pg_trigger_depth() = 1 THEN
    BEGIN EXECUTE TG_ARGV[0]; EXCEPTION WHEN division_by_zero THEN NULL; END;
    BEGIN
      BEGIN EXECUTE TG_ARGV[1]; EXCEPTION WHEN no_data_found THEN NULL; END;
      RAISE division_by_zero;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION pg_temp.all_true(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;

-- A key that changes twice
CREATE TABLE t (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('t', 'a', 2, chunk => 2) \g /dev/null
INSERT INTO t VALUES (1, '{a: [1, 2, 3, 4, 5]}'), (2, '{a: [6, 7, 8, 9]}');
CREATE TRIGGER aa AFTER UPDATE OF id ON t FOR EACH ROW WHEN (NEW.id = 11)
  EXECUTE FUNCTION two_blocks('UPDATE t SET id = 21 WHERE id = 11', 'UPDATE t SET id = id + 100');
UPDATE t SET id = id + 10;
SELECT results_eq($$SELECT id, doc ->> 'a' FROM t_whole ORDER BY id$$, $$VALUES (12, '[6, 7, 8, 9]'), (21, '[1, 2, 3, 4, 5]')$$, 'the array goes where the released savepoint moved its row');
SELECT pg_temp.all_true('keys');
DROP TABLE t CASCADE;

-- Sources and groups
SELECT collection_create('films'), collection_create('shows') \g /dev/null
SELECT computed_enable('films', source => 'shows', on_field => 'film._id', fields => '{n: {$count: {}}}'),
  reference_enable('shows', 'film', 'films', live => '{title}', missing => 'allow') \g /dev/null
INSERT INTO films (doc) VALUES ('{_id: 1, title: "a"}'), ('{_id: 2, title: "b"}');
CREATE TRIGGER aa AFTER INSERT ON shows FOR EACH ROW
  EXECUTE FUNCTION two_blocks($$INSERT INTO films (doc) VALUES ('{_id: 3, title: "c"}') ON CONFLICT DO NOTHING$$, $$UPDATE films SET doc = bson_set(doc, 'title', 'undone')$$);
INSERT INTO shows (doc) VALUES ('{_id: 1, film: 3}'), ('{_id: 2, film: 3}'), ('{_id: 3, film: 1}');
SELECT results_eq($$SELECT doc ->> 'n' FROM films ORDER BY _id$$, ARRAY['1', '0', '2'], 'a group that was read meanwhile is computed again');
SELECT pg_temp.all_true('groups');
DROP TRIGGER aa ON shows;
CREATE TRIGGER aa AFTER UPDATE ON films FOR EACH ROW WHEN (NEW.doc ->> 'title' = 'x')
  EXECUTE FUNCTION two_blocks($$UPDATE films SET doc = bson_set(doc, 'title', 'y') WHERE _id = 1$$, $$UPDATE films SET doc = bson_set(doc, 'title', 'z')$$);
UPDATE films SET doc = bson_set(doc, 'title', 'x');
SELECT results_eq($$SELECT doc ->> 'film.title' FROM shows ORDER BY _id$$, ARRAY['x', 'x', 'y'], 'references hold what the released savepoint wrote');
SELECT pg_temp.all_true('references');
DROP TABLE films, shows CASCADE;

-- Rows of a query table
SELECT collection_create('s') \g /dev/null
SELECT query_table_create('q', 's', '{a}', '{b: 1}') \g /dev/null
CREATE TRIGGER aa AFTER INSERT ON s FOR EACH ROW
  EXECUTE FUNCTION two_blocks($$UPDATE s SET doc = bson_set(doc, 'b', (doc -> 'b')::int + 10)$$, 'DELETE FROM s');
INSERT INTO s (doc) VALUES ('{_id: 1, a: 1, b: 1}'), ('{_id: 2, a: 1, b: 2}');
SELECT results_eq($$SELECT b::text FROM q ORDER BY b$$, ARRAY['21', '22'], 'postponed rows are those of the released savepoint');
SELECT pg_temp.all_true('query table');
DROP TABLE s CASCADE;

-- Nodes
SELECT collection_create('c') \g /dev/null
SELECT tree_enable('c', parent => 'up', ancestors => 'a') \g /dev/null
INSERT INTO c (doc) VALUES ('{_id: 1}'), ('{_id: 2, up: 1}'), ('{_id: 3, up: 2}'), ('{_id: 4, up: 3}');
CREATE TRIGGER aa AFTER UPDATE ON c FOR EACH ROW WHEN (NEW._id = 3)
  EXECUTE FUNCTION two_blocks($$UPDATE c SET doc = bson_set(doc, 'x', 1) WHERE _id = 4$$, $$DELETE FROM c WHERE _id = 4$$);
UPDATE c SET doc = bson_set(doc, 'up', 1) WHERE _id = 3;
SELECT is((SELECT doc FROM c WHERE _id = 4), '{"_id": 4, "up": 3, "a": [1, 3], "x": 1}'::bson, 'a node below has what both wrote');
SELECT pg_temp.all_true('tree');
DROP TABLE c CASCADE;

-- A statement fails at its second row, at two depths, between statements that end well.
CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.doc ? 'fails' THEN RAISE division_by_zero; END IF; RETURN NULL; END $$;
CREATE FUNCTION pg_temp.interrupted(failing text, first text, second text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  BEGIN EXECUTE failing; EXCEPTION WHEN division_by_zero THEN NULL; END;
  BEGIN
    BEGIN EXECUTE failing; EXCEPTION WHEN division_by_zero THEN NULL; END;
    EXECUTE first;
  EXCEPTION WHEN no_data_found THEN NULL;
  END;
  EXECUTE second;
END $$;
CREATE TABLE t (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('t', 'a', 2, chunk => 2), versioning_enable('t') \g /dev/null
INSERT INTO t VALUES (1, '{a: [1, 2, 3, 4, 5]}'), (2, '{a: [6, 7, 8, 9], fails: 1}');
CREATE TRIGGER aa AFTER UPDATE ON t FOR EACH ROW WHEN (NEW.id > 2) EXECUTE FUNCTION fails();
SELECT pg_temp.interrupted('UPDATE t SET id = id + 10', 'UPDATE t SET id = 3 WHERE id = 1', $$INSERT INTO t VALUES (1, '{a: [0, 0, 0]}')$$);
SELECT results_eq($$SELECT id, doc ->> 'a' FROM t_whole ORDER BY id$$, $$VALUES (1, '[0, 0, 0]'), (2, '[6, 7, 8, 9]'), (3, '[1, 2, 3, 4, 5]')$$, 'arrays go with their keys');
SELECT collection_create('c'), collection_create('l'), collection_create('s') \g /dev/null
SELECT tree_enable('c', parent => 'up', ancestors => 'a', children => 'below'), reference_enable('l', 'c', 'c', live => '{x}', on_delete => 'keep'), relationship_enable('l', 'm', 'c', 'n'),
  single_collection_enable('s', 'docType', 'of', id_fields => '{x: "x"}', missing => 'error', views => false) \g /dev/null
INSERT INTO c (doc) VALUES ('{_id: 1, x: 1, n: []}'), ('{_id: 2, up: 1, x: 2, n: []}'), ('{_id: 3, up: 2, x: 3, n: [], fails: 1}');
INSERT INTO l (doc) VALUES ('{_id: 1, c: 1, m: []}'), ('{_id: 2, c: 3, m: [], fails: 1}');
CREATE TRIGGER aa AFTER UPDATE ON c FOR EACH ROW EXECUTE FUNCTION fails();
CREATE TRIGGER aa AFTER UPDATE ON l FOR EACH ROW EXECUTE FUNCTION fails();
CREATE TRIGGER aa AFTER INSERT ON s FOR EACH ROW EXECUTE FUNCTION fails();
SELECT pg_temp.interrupted($$UPDATE c SET doc = bson_set(bson_set(doc, 'x', 9), 'up', 1) WHERE _id > 1$$, $$UPDATE c SET doc = bson_set(doc, 'x', 4) WHERE _id = 1$$, $$INSERT INTO c (doc) VALUES ('{_id: 4, up: 2, n: []}')$$);
SELECT pg_temp.interrupted($$UPDATE l SET doc = bson_set(bson_set(doc, 'c', 2), 'm', '[2]'::bson_value)$$, $$UPDATE l SET doc = bson_set(doc, 'm', '[1]'::bson_value) WHERE _id = 1$$, $$UPDATE c SET doc = bson_set(doc, 'n', '[1]'::bson_value) WHERE _id = 2$$);
SELECT pg_temp.interrupted($$INSERT INTO s (doc) VALUES ('{docType: "x", x: 1}'), ('{docType: "x", x: 2, of: ["9"], fails: 1}')$$, $$INSERT INTO s (doc) VALUES ('{docType: "x", x: 3}')$$, $$INSERT INTO s (doc) VALUES ('{docType: "x", x: 4}')$$);
SELECT results_eq($$SELECT doc -> 'a' FROM c ORDER BY _id$$, $$VALUES ('[]'::bson_value), ('[1]'), ('[1, 2]'), ('[1, 2]')$$, 'nodes are where they were');
SELECT results_eq($$SELECT doc ->> 'c.x', doc ->> 'm' FROM l ORDER BY _id$$, $$VALUES ('4', '[1, 2]'), ('3', '[]')$$, 'references and relationships follow what ended well');
SELECT pg_temp.all_true('interrupted statements');
DROP TABLE t, c, l, s CASCADE;

-- Revisions and changes
CREATE TABLE p (id int PRIMARY KEY, doc bson);
SELECT versioning_enable('p', kept => true), change_feed_enable('p') \g /dev/null
BEGIN; SAVEPOINT a; INSERT INTO p VALUES (1, '{n: 1}'); RELEASE a; SAVEPOINT b; INSERT INTO p VALUES (2, '{n: 2}'); ROLLBACK TO b; UPDATE p SET doc = '{n: 3}'; COMMIT;
SELECT results_eq($$SELECT revision, key::text, since IS NOT NULL FROM p_history ORDER BY revision$$, $$VALUES (1::bigint, '1', true), (2, '1', true)$$, 'what the released savepoint wrote is stamped');
SELECT pg_temp.all_true('revisions');
SELECT * FROM finish();
