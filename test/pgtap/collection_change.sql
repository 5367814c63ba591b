-- Calls that find and change one document, or replace it: what they return, order, rights, policies, views, partitions, typed keys, errors.
\set QUIET 1
SET client_min_messages = warning;
BEGIN;
SELECT plan(123);

SELECT function_returns('collection_find_one_and_update', ARRAY['regclass', 'bson', 'anycompatible', 'bson', 'bson', 'boolean', 'boolean', 'bson_value', 'bson'], 'bson');
SELECT function_returns('collection_find_one_and_replace', ARRAY['regclass', 'bson', 'anycompatible', 'bson', 'bson', 'boolean', 'boolean', 'bson'], 'bson');
SELECT function_returns('collection_find_one_and_delete', ARRAY['regclass', 'bson', 'bson', 'bson', 'bson'], 'bson');
SELECT function_returns('collection_replace', ARRAY['regclass', 'bson', 'anycompatible', 'boolean', 'bson', 'bson'], 'record');

-- ---------------------------------------------------------------- every kind of relation gives the same

CREATE TABLE made AS SELECT collection_create('plain') UNION ALL SELECT collection_create(n, key_type => 'int4') FROM unnest('{typed,below}'::text[]) n;
CREATE TABLE "Par't" (_id bson_value NOT NULL PRIMARY KEY, "D oc" bson NOT NULL) PARTITION BY RANGE (_id);
CREATE TABLE part1 PARTITION OF "Par't" FOR VALUES FROM ('{"$minKey": 1}') TO ('3');
CREATE TABLE part2 PARTITION OF "Par't" FOR VALUES FROM ('3') TO ('{"$maxKey": 1}');
CREATE FUNCTION set_id() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW._id := NEW."D oc" -> '_id'; RETURN NEW; END $$;
CREATE TABLE bare (doc bson);
CREATE VIEW shown AS SELECT _id, doc FROM below WHERE _id < 100;
CREATE VIEW one_more AS SELECT * FROM shown;
CREATE FUNCTION fill(rel regclass) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('DELETE FROM %s', rel);
  IF rel = '"Par''t"'::regclass THEN
    INSERT INTO "Par't" SELECT bson_value(i), bson_build('_id', i, 'n', 10 - i, 'a', bson_array(i, i + 1)) FROM generate_series(1, 5) i;
    RETURN 5;
  END IF;
  RETURN (SELECT count(*) FROM generate_series(1, 5) i, collection_insert(rel, bson_build('_id', i, 'n', 10 - i, 'a', bson_array(i, i + 1))));
END $$;
CREATE FUNCTION bson_value(int) RETURNS bson_value LANGUAGE sql RETURN $1::bson_value;
SELECT is(fill(rel), 5::bigint, format('%s: filled', rel)) FROM unnest('{plain,typed,"\"Par''t\"",bare,one_more}'::regclass[]) rel;
SELECT is(collection_find_one_and_update(rel, '{n: {$gt: 6}}', '{$inc: {n: 10}}', sort => '{n: 1}')::text, '{"_id": 3, "n": 7, "a": [3, 4]}', format('%s: before, first in order', rel)) FROM unnest('{plain,typed,"\"Par''t\"",bare,one_more}'::regclass[]) rel;
SELECT is(collection_find_one_and_update(rel, '{n: {$gt: 6}}', '{$inc: {n: 1}}', '{n: 1, _id: 0}', '{n: -1}', return_new => true)::text, '{"n": 18}', format('%s: after, projected', rel)) FROM unnest('{plain,typed,"\"Par''t\"",bare,one_more}'::regclass[]) rel;
SELECT is(collection_find_one_and_update(rel, '{_id: 2}', '{$set: {n: 8}}', return_new => true)::text, '{"_id": 2, "n": 8, "a": [2, 3]}', format('%s: unchanged', rel)) FROM unnest('{plain,typed,"\"Par''t\"",bare,one_more}'::regclass[]) rel;
SELECT is(collection_find_one_and_update(rel, '{_id: 2, a: 3}', '{$set: {"a.$[low]": 1}}', '{"a.$": 1}', array_filters => '[{low: {$lt: 3}}]')::text, '{"_id": 2, "a": [3]}', format('%s: positions', rel)) FROM unnest('{plain,typed,"\"Par''t\"",bare,one_more}'::regclass[]) rel;
SELECT is(collection_find_one_and_replace(rel, '{n: 8}', bson_build('x', 1), return_new => true)::text, '{"_id": 2, "x": 1}', format('%s: replaced', rel)) FROM unnest('{plain,typed,"\"Par''t\"",bare,one_more}'::regclass[]) rel;
SELECT is((SELECT (matched, modified, upserted)::text FROM collection_replace(rel, '{n: {$exists: true}}', '{y: 1}', sort => '{n: -1}')), '(1,1,)', format('%s: the last is replaced', rel)) FROM unnest('{plain,typed,"\"Par''t\"",bare,one_more}'::regclass[]) rel;
SELECT is((SELECT (matched, modified, upserted)::text FROM collection_update(rel, '{}', '[{$set: {z: "$_id"}}]', sort => '{_id: -1}')), '(1,1,)', format('%s: the last is updated', rel)) FROM unnest('{plain,typed,"\"Par''t\"",bare,one_more}'::regclass[]) rel;
SELECT is(collection_find_one_and_delete(rel, '{n: {$lt: 9}}', '{a: 0}', '{n: -1}')::text, '{"_id": 4, "n": 6}', format('%s: deleted', rel)) FROM unnest('{plain,typed,"\"Par''t\"",bare,one_more}'::regclass[]) rel;
SELECT is((SELECT string_agg(d::text, ' ' ORDER BY d -> '_id') FROM collection_find(rel) d), '{"_id": 1, "n": 9, "a": [1, 2]} {"_id": 2, "x": 1} {"_id": 3, "y": 1} {"_id": 5, "n": 5, "a": [5, 6], "z": 5}', format('%s: what is left', rel)) FROM unnest('{plain,typed,"\"Par''t\"",bare,one_more}'::regclass[]) rel;

-- ---------------------------------------------------------------- none matches

SELECT is(collection_find_one_and_update('plain', '{_id: 9}', '{$set: {n: 1}}'), NULL, 'no document');
SELECT is(collection_find_one_and_delete('plain', '{_id: 9}'), NULL, 'no document to delete');
SELECT throws_ok($$SELECT collection_find_one_and_delete('plain', '{_id: 9}', '{n: 1, "sub.x": 0}')$$, '22023', NULL, 'a bad projection of no document');
SELECT is(collection_find_one_and_update('plain', '{_id: 9}', '{$set: {n: 1}}', upsert => true), NULL, 'an upsert had no document before');
SELECT is(collection_find_one_and_update('plain', '{_id: 10}', '{$set: {n: 1}}', '{n: 1}', upsert => true, return_new => true)::text, '{"_id": 10, "n": 1}', 'and has one after');
SELECT is(collection_find_one_and_replace('plain', '{_id: 11}', '{n: 2}', upsert => true, return_new => true)::text, '{"_id": 11, "n": 2}', 'a replacement as well');
SELECT is((SELECT upserted FROM collection_replace('plain', '{_id: 12}', '{n: 2}', upsert => true)), '12'::bson_value, 'its _id');
SELECT is(collection_count('plain', '{_id: {$gt: 8}}'), 4::bigint, 'all are there');

-- ---------------------------------------------------------------- triggers, errors, rights

CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.doc ? 'kept' THEN RETURN NULL; END IF; NEW.doc := bson_set(NEW.doc, 'touched', true); RETURN NEW; END $$;
CREATE TRIGGER touch BEFORE UPDATE ON plain FOR EACH ROW EXECUTE FUNCTION touch();
SELECT is(collection_find_one_and_update('plain', '{_id: 9}', '{$set: {kept: 1}}', return_new => true)::text, '{"_id": 9, "n": 1, "kept": 1, "touched": true}', 'what a trigger makes of it');
SELECT is(collection_find_one_and_update('plain', '{_id: 9}', '{$set: {n: 5}}', return_new => true) ->> 'n', '1', 'what a trigger keeps from it');
SELECT throws_ok($$SELECT collection_find_one_and_replace('plain', '{_id: 1}', '{$set: {a: 1}}')$$, '22023', 'a replacement must be a document without update operators');
SELECT throws_ok($$SELECT collection_replace('plain', '{_id: 99}', '[{$set: {a: 1}}]')$$, '22023', 'a replacement must be a document without update operators', 'also if none matches');
SELECT throws_ok($$SELECT collection_find_one_and_update('plain', '{_id: 1}', NULL)$$, '22004', 'update cannot be null');
SELECT throws_ok($$SELECT collection_find_one_and_update('plain', '{_id: 1}', '{$set: {a: 1}}', return_new => NULL)$$, '22004', 'return_new cannot be null');
SELECT throws_ok($$SELECT collection_find_one_and_update('plain', '{_id: 1}', 5)$$, '42804', 'an argument cannot be of type integer');
SELECT throws_ok($$SELECT collection_update('plain', '{}', '{$set: {a: 1}}', multi => true, sort => '{a: 1}')$$, '22023', 'sort cannot be combined with multi');
SELECT throws_ok($$SELECT collection_find_one_and_delete('plain', '{}', sort => '{a: 2}')$$, '22023', NULL, 'a bad direction');
SELECT is((SELECT matched FROM collection_update('plain', '{}', '{$set: {}}', sort => '{}')), 1::bigint, 'no sort');
CREATE ROLE change_reader;
GRANT SELECT ON plain TO change_reader;
SET LOCAL ROLE change_reader;
SELECT throws_ok($$SELECT collection_find_one_and_update('plain', '{}', '{$set: {a: 1}}')$$, '42501', NULL, 'reading is not enough');
SELECT throws_ok($$SELECT collection_find_one_and_delete('plain', '{}')$$, '42501', NULL, 'nor to delete');
RESET ROLE;
GRANT UPDATE ON plain TO change_reader;
ALTER TABLE plain ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON plain USING (_id > 10::bson_value);
SET LOCAL ROLE change_reader;
SELECT is(collection_find_one_and_update('plain', '{}', '{$set: {a: 1}}', sort => '{_id: 1}') ->> '_id', '11', 'the first that a policy shows');
SELECT is(collection_find_one_and_update('plain', '{_id: 1}', '{$set: {a: 1}}'), NULL, 'none that it hides');
RESET ROLE;

-- One document by its _id: triggers and rules see what they see of one statement.
CREATE TABLE made_watched AS SELECT collection_create('watched');
CREATE TABLE in_watched AS SELECT collection_insert('watched', '{_id: 1, n: 1}', '{_id: 2, n: 1}');
CREATE TABLE fired (what text);
CREATE FUNCTION deny() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO fired VALUES (tg_op || ' ' || tg_level); RETURN NULL; END $$;
CREATE TRIGGER deny_row BEFORE UPDATE OR DELETE ON watched FOR EACH ROW WHEN (OLD._id = 1) EXECUTE FUNCTION deny();
CREATE TRIGGER deny_statement AFTER UPDATE OR DELETE ON watched FOR EACH STATEMENT EXECUTE FUNCTION deny();
SELECT is((SELECT (matched, modified)::text FROM collection_update('watched', '{_id: 1}', '{$inc: {n: 1}}')), '(1,0)', 'a trigger keeps the row');
SELECT is((SELECT (matched, modified)::text FROM collection_update('watched', '{_id: 2}', '{$set: {n: 1}}')), '(1,0)', 'nothing changes');
SELECT is(collection_delete('watched', '{_id: 1}'), 0::bigint, 'a trigger keeps it from deletion');
SELECT is((SELECT string_agg(n || ' ' || what, ', ' ORDER BY what) FROM (SELECT what, count(*) n FROM fired GROUP BY what) x), '1 DELETE ROW, 1 DELETE STATEMENT, 1 UPDATE ROW, 2 UPDATE STATEMENT', 'they fire once each');
DROP TRIGGER deny_row ON watched;
DROP TRIGGER deny_statement ON watched;
CREATE RULE nothing AS ON UPDATE TO watched DO INSTEAD NOTHING;
SELECT is((SELECT (matched, modified)::text FROM collection_update('watched', '{_id: 1}', '{$inc: {n: 1}}')), '(0,0)', 'a rule leaves nothing');
DROP RULE nothing ON watched;
SELECT is((SELECT (matched, modified)::text FROM collection_update('watched', '{_id: 1}', '{$inc: {n: 1}}')), '(1,1)', 'until it is dropped');
CREATE RULE heard AS ON UPDATE TO watched DO INSTEAD NOTIFY watched;
SELECT is((SELECT (matched, modified)::text FROM collection_update('watched', '{_id: 1}', '{$inc: {n: 1}}')), '(0,0)', 'a rule leaves a notification');
DROP RULE heard ON watched;
SELECT is((SELECT (matched, modified)::text FROM collection_update('watched', '{_id: 1}', '{$inc: {n: 1}}')), '(1,1)', 'until it is dropped, too');
CREATE TABLE watched_more () INHERITS (watched);
INSERT INTO watched_more VALUES ('1', '{"_id": 1, "n": 2}');
SELECT is((SELECT (matched, modified)::text FROM collection_update('watched', '{_id: 1}', '{$inc: {n: 1}}')), '(1,1)', 'one of two with the same _id');
SELECT is(collection_delete('watched', '{_id: 1}'), 1::bigint, 'one is deleted');
SELECT is((SELECT count(*) FROM watched WHERE _id = '1'), 1::bigint, 'one is left');

-- ---------------------------------------------------------------- arrays of documents

CREATE TABLE made2 AS SELECT collection_create('many');
SELECT is((SELECT string_agg(i::text, ' ') FROM collection_insert('many', '[{_id: 2}, {_id: 1}, {_id: 3}]') i), '2 1 3', 'a literal array');
SELECT is((SELECT string_agg(i::text, ' ') FROM collection_insert('many', bson_array('{_id: 4}'::bson, '{_id: 5}'::bson)) i), '4 5', 'a bson_value');
SELECT is((SELECT string_agg(i::text, ' ') FROM collection_insert('many', '{_id: 6}') i), '6', 'one document');
SELECT is_empty($$SELECT collection_insert('many', '[]')$$, 'none');
PREPARE untyped AS SELECT string_agg(i::text, ' ') FROM collection_insert('many', $1) i;
SELECT results_eq($$EXECUTE untyped('[{_id: 7}, {_id: 8}]')$$, $$VALUES ('7 8')$$, 'a parameter without a type');
SELECT throws_ok($$SELECT collection_insert('many', '[{_id: 9}, 5]')$$, '22023', NULL, 'a number among documents');
SELECT throws_ok($$SELECT collection_insert('many', '[{_id: 9}, {_id: 1}]')$$, '23505', NULL, 'all or none');
SELECT throws_ok($$SELECT collection_insert('many', NULL)$$, '22004', NULL, 'a NULL');
SELECT is(collection_count('many'), 8::bigint, 'what is there');

-- ---------------------------------------------------------------- bulk writes

CREATE FUNCTION bulk(operations text, ordered boolean DEFAULT true, rel regclass DEFAULT 'many') RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(concat_ws(' ', index, operation, 'm' || matched, 'u' || modified, 'd' || deleted, 'id ' || id::text, error_code), ', ' ORDER BY index) FROM collection_bulk_write(rel, operations, ordered) $$;
SELECT is(bulk('[{insertOne: {document: {_id: 10, n: 1}}}, {updateOne: {filter: {_id: 10}, update: {$inc: {n: 1}}}}, {updateMany: {filter: {_id: {$gt: 8}}, update: [{$set: {n: {$add: ["$n", 1]}}}]}}, {replaceOne: {filter: {_id: 10}, replacement: {n: 7}}}, {deleteOne: {filter: {_id: 1}}}, {deleteMany: {filter: {_id: {$lt: 4}}}}]'),
  '0 insertOne id 10, 1 updateOne m1 u1, 2 updateMany m1 u1, 3 replaceOne m1 u1, 4 deleteOne d1, 5 deleteMany d2', 'each operation, one after the other');
SELECT is(bulk('[{updateOne: {filter: {_id: 11}, update: {$set: {n: 1}}, upsert: true}}, {updateOne: {filter: {}, update: {$set: {a: [1, 2]}}, sort: {_id: -1}}}, {updateOne: {filter: {_id: 11}, update: {$inc: {"a.$[e]": 5}}, arrayFilters: [{e: 2}]}}]'), '0 updateOne m0 u0 id 11, 1 updateOne m1 u1, 2 updateOne m1 u1', 'their options');
SELECT is((SELECT d::text FROM collection_find('many', '{_id: 11}') d), '{"_id": 11, "n": 1, "a": [1, 7]}', 'did what they say');
SELECT is(bulk('[{insertOne: {document: {_id: 12}}}, {insertOne: {document: {_id: 12}}}, {insertOne: {document: {_id: 13}}}]'), '0 insertOne id 12, 1 insertOne 23505', 'ordered: an error is the end');
SELECT is(bulk('[{insertOne: {document: {_id: 14}}}, {insertOne: {document: {_id: 12}}}, {insertOne: {document: {_id: 13}}}]', false), '0 insertOne id 14, 1 insertOne 23505, 2 insertOne id 13', 'not ordered: the others run');
SELECT is((SELECT string_agg(d ->> '_id', ' ') FROM collection_find('many', '{_id: {$gt: 11}}', sort => '{_id: 1}') d), '12 13 14', 'what is written stays');
SELECT is(bulk('[{insertOne: {}}, {insertOne: {document: 5}}, {deleteOne: {}}, {updateOne: {filter: {}, update: {$no: 1}}}, {updateOne: {filter: {}}}, {replaceOne: {filter: {}, replacement: {$set: {a: 1}}}}, {updateMany: {filter: {}, update: {a: 1}}}]', false),
  '0 insertOne 22004, 1 insertOne 22023, 2 deleteOne 22004, 3 updateOne 0A000, 4 updateOne 22004, 5 replaceOne 22023, 6 updateMany 22023', 'errors of operations');
SELECT throws_ok(format($$SELECT bulk(%L)$$, '[{insertOne: {document: {_id: 99}}}, ' || o || ']'), code, NULL, o) FROM (VALUES ('{drop: {}}', '0A000'), ('{deleteOne: {filter: {}, sort: {a: 1}}}', '0A000'), ('{deleteOne: {filter: {}, hint: {a: 1}}}', '0A000'), ('{deleteOne: 1}', '22023'), ('{}', '22023'), ('5', '22023'), ('{deleteOne: {}, deleteMany: {}}', '22023')) x (o, code);
SELECT throws_ok($$SELECT bulk('{a: 1}')$$, '22023', NULL, 'no array');
SELECT throws_ok($$SELECT bulk(NULL)$$, '22004', 'operations cannot be null');
SELECT throws_ok($$SELECT bulk('[]', NULL)$$, '22004', 'ordered cannot be null');
SELECT is(bulk('[]'), NULL, 'no operation');
SELECT is(collection_count('many', '{_id: 99}'), 0::bigint, 'operations are checked before the first one runs');
CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END $$;
CREATE TRIGGER conflict BEFORE DELETE ON many FOR EACH ROW EXECUTE FUNCTION conflict();
SELECT throws_ok($$SELECT bulk('[{deleteOne: {filter: {}}}]', false)$$, '40001', 'conflict', 'a transaction that must be run again');
SELECT is(outlier_enable('typed', 'a', 1), 'a', 'a pattern that splits documents');
SELECT is(bulk('[{insertOne: {document: {_id: 50, a: [1, 2, 3]}}}, {updateOne: {filter: {a: 3}, update: {$pull: {a: 1}}}}, {replaceOne: {filter: {a: 3}, replacement: {a: [7, 8]}}}, {deleteMany: {filter: {a: 8}}}, {insertOne: {document: {_id: "x"}}}]', true, 'typed'), '0 insertOne id 50, 1 updateOne m1 u1, 2 replaceOne m1 u1, 3 deleteMany d1, 4 insertOne 23514', 'sees whole documents');
CREATE ROLE change_writer;
GRANT SELECT, INSERT ON many TO change_writer;
SET LOCAL ROLE change_writer;
SELECT is(bulk('[{insertOne: {document: {_id: 30}}}, {updateOne: {filter: {_id: 30}, update: {$set: {a: 1}}}}, {deleteOne: {filter: {_id: 30}}}]', false), '0 insertOne id 30, 1 updateOne 42501, 2 deleteOne 42501', 'rights are those of each operation');
RESET ROLE;

-- ---------------------------------------------------------------- conditions of views, calls inside calls
SELECT collection_create('listed') \g /dev/null
INSERT INTO listed (doc) SELECT bson_build('_id', i) FROM generate_series(1, 9) AS i;
CREATE TABLE allowed AS SELECT i FROM generate_series(1, 2) AS i;
CREATE VIEW few_listed AS SELECT * FROM listed WHERE EXISTS (SELECT FROM allowed WHERE listed.doc -> '_id' = i);
SELECT is((SELECT (matched, modified)::text FROM collection_update('few_listed', '{}', '{$max: {_id: 0}}', multi => true)), '(2,0)', 'rows that a view hides are not counted');
SELECT is((SELECT (matched, modified, upserted)::text FROM collection_update('few_listed', '{_id: {$in: [8, 10]}}', '{$setOnInsert: {_id: 10}}', multi => true, upsert => true)), '(0,0,10)', 'and do not keep an upsert from its insertion');
CREATE FUNCTION call_others() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. current_setting('change.calls')::int LOOP PERFORM collection_count('plain', bson_build('f' || i || repeat('longname', i % 20), 1)); END LOOP;
  RETURN NULL;
END $$;
CREATE TRIGGER call_others BEFORE UPDATE ON listed FOR EACH STATEMENT EXECUTE FUNCTION call_others();
SELECT set_config('change.calls', '0', true) \g /dev/null
SELECT is((SELECT (matched, modified, upserted)::text FROM collection_update('listed', '{_id: 21, n: 1}', '{$set: {x: 1}}', multi => true, upsert => true)), '(0,0,21)', 'an upsert');
SELECT set_config('change.calls', '70', true) \g /dev/null
SELECT is((SELECT (matched, modified, upserted)::text FROM collection_update('listed', '{_id: 22, n: 1}', '{$set: {x: 1}}', multi => true, upsert => true)), '(0,0,22)', 'whose trigger makes many other calls');

SELECT * FROM finish();
ROLLBACK;
