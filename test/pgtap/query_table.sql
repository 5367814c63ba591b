-- The contract of query tables: what is refused and how, hostile names, keys and partitions of all kinds, statements inside of
-- statements, who may write and read, and a seeded random run against plain SQL.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(142);
CREATE FUNCTION pg_temp.all_true(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;

-- Signatures
SELECT function_returns(f, r, f || ' returns ' || r) FROM (VALUES ('query_table_create', 'regclass'), ('query_table_read', 'setof bson'), ('query_table_purge', 'bigint')) AS v (f, r);
SELECT volatility_is(f, v, f || ' is ' || v) FROM (VALUES ('query_table_create', 'volatile'), ('query_table_read', 'stable'), ('query_table_purge', 'volatile')) AS w (f, v);

-- Refused
SELECT collection_create('s'), collection_create('taken');
CREATE TABLE no_key (doc bson);
CREATE VIEW a_view AS SELECT * FROM s;
SELECT throws_ok(format('SELECT query_table_create(%s)', args), state, NULL, what) FROM (VALUES
  ($$NULL, 's', '{a}'$$, '22004', 'no name'), ($$'q', NULL, '{a}'$$, '22004', 'no source'), ($$'q', 's', NULL$$, '22004', 'no partition'), ($$'q', 's', '{a}', is_unique => NULL$$, '22004', 'unique or not'),
  ($$'q', 's', '{}'$$, '22023', 'an empty partition'), ($$'q', 's', '{a,NULL}'$$, '22004', 'a null in the partition'), ($$'q', 's', '{a,a}'$$, '22023', 'a field twice'),
  ($$'q', 's', '{a}', '{a: 1}'$$, '22023', 'a field in both'), ($$'q', 's', '{a}', '{b: 2}'$$, '22023', 'a direction that is none'), ($$'q', 's', '{a}', '{b: "x"}'$$, '22023', 'a direction that is no number'),
  ($$'q', 's', '{a}', fields => '{b: 0}'$$, '22023', 'a field that is excluded'), ($$'q', 's', '{a}', fields => '{b: {$nope: 1}}'$$, '0A000', 'an unknown operator'),
  ($a$'q', 's', '{a}', fields => '{b: "$$NOW"}'$a$, '0A000', 'the clock'), ($$'q', 's', '{a..b}'$$, '22023', 'a bad path'), ($$'q', 's', '{a}', fields => '{b: 1, b: 1}'$$, '22023', 'a name twice'),
  ($$'q', 's', '{a}', types => '{b: "int"}'$$, '22023', 'a type of no column'), ($$'q', 's', '{a}', types => '{a: "nope"}'$$, '42704', 'an unknown type'), ($$'q', 's', '{a}', types => '{a: 1}'$$, '22023', 'a type that is no name'),
  ($$'q', 's', '{a}', types => '{a: "record"}'$$, '22023', 'a pseudo-type'), ($$'q', 's', '{a}', types => '{a: "int); DROP TABLE s; --"}'$$, '42601', 'a type that is more than one'),
  ($$'q', 's', '{a}', limit_per_partition => 0$$, '22023', 'no row at all'), ($$'q', 's', '{a}', limit_per_partition => 1, is_unique => true$$, '22023', 'unique with a limit'), ($$'q', 's', '{a}', is_unique => true, ttl_field => 'x'$$, '22023', 'unique with an expiry'), ($$'q', 's', '{a}', limit_per_partition => 1, ttl_field => 'x'$$, '22023', 'a limit with an expiry'),
  ($$'q', 's', '{a}', ttl_field => 'x..y'$$, '22023', 'a bad path of the expiry'), ($$'q', 's', '{a}', fields => '{expires_at: 1}', ttl_field => 'x'$$, '42701', 'the name of the column of the expiry'),
  ($$'q', 's', '{a}', fields => '{a: {$add: ["$x", 1]}}', limit_per_partition => 1$$, '22023', 'an expression with a limit'),
  ($$'q', 's', '{source_key}'$$, '42701', 'the name of the key''s column'), ($$'q', 's', ARRAY[repeat('x', 64)]$$, '22023', 'a name that is too long'), ($$'q', 's', '{xmin}'$$, '42701', 'a system column'),
  ($$'taken', 's', '{a}'$$, '42P07', 'a table that exists'), ($$'a.b.c', 's', '{a}'$$, '42602', 'no name of a table'), ($$'q', 'no_key', '{a}'$$, '55000', 'a source without a key'), ($$'q', 'a_view', '{a}'$$, '42809', 'a view')) AS v (args, state, what);
SELECT is(query_table_create('q', 's', '{a}', '{b: 1}', '{c: 1}')::text, 'q', 'the table is returned');
SELECT throws_ok($$SELECT query_table_create('taken2', 's', '{a}', name => 'q')$$, '42710', NULL, 'the name is taken');
SELECT throws_ok(format('SELECT query_table_read(%s)', args), state, NULL, what) FROM (VALUES
  ($$'s', 1$$, '42809', 'no query table'), ($$'q', 1, 2, 3$$, '22023', 'too many values'), ($$'q', NULL$$, '22004', 'a null'), ($$NULL, 1$$, '22004', 'no table')) AS v (args, state, what);
SELECT throws_ok($$SELECT query_table_purge('s')$$, '42809', NULL, 'no query table to purge'); SELECT throws_ok($$SELECT query_table_purge(NULL)$$, '22004', NULL, 'no table to purge'); SELECT throws_ok($$SELECT query_table_purge('q', -1)$$, '22023', NULL, 'fewer than none'); SELECT is(query_table_purge('q'), 0::bigint, 'nothing expires here');
CREATE FUNCTION pg_temp.hint(c text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE h text; BEGIN EXECUTE c; EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS h = PG_EXCEPTION_HINT; RETURN h; END $$;
SELECT is(pg_temp.hint('DELETE FROM q'), 'Write to table "s", which has the pattern "q".', 'the error of a direct write names the table to write to');
SELECT throws_ok($$SELECT pattern_alter('s', 'q', '{is_unique: true}')$$, '22023', NULL, 'other options stay');
SELECT throws_ok(c, '55000', NULL, c) FROM unnest(ARRAY['INSERT INTO q VALUES (''1'', ''1'', ''1'', ''1'')', 'UPDATE q SET c = ''1''', 'DELETE FROM q', 'TRUNCATE q', 'COPY q FROM STDIN']) c WHERE c NOT LIKE 'COPY%';

-- Long values, and values of all types
INSERT INTO s (doc) VALUES ('{_id: 1, a: {x: [1]}, b: null, c: 1}'), ('{_id: 2, a: [1, 2], b: {"$undefined": true}}'), ('{_id: 3, a: ISODate("2024-01-01"), b: MinKey, c: "3"}'), ('{_id: 4, a: "", b: "", c: null}');
SELECT is((SELECT string_agg(source_key::text, ' ' ORDER BY source_key) FROM q), '3 4', 'null and undefined are no values of a place, MinKey and the empty string are');
SELECT throws_ok($$INSERT INTO s (doc) VALUES (bson_build('_id', 5, 'a', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 300) i), 'b', 1))$$, '54000', NULL, 'a key that is too long for an index');
INSERT INTO s (doc) SELECT bson_build('_id', 6, 'a', 1, 'b', 1, 'c', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 5000) i));
UPDATE s SET doc = bson_set(doc, 'c', 5) WHERE _id = 1;
UPDATE s SET doc = bson_set(doc, 'b', 2) WHERE _id = 6;
UPDATE s SET doc = bson_set(doc, '_id', 7::float8) WHERE _id = 6;
SELECT is((SELECT length(c::text) FROM q WHERE a = 1 AND b = 2 AND source_key = 7), 160000, 'a long value');
UPDATE s SET doc = bson_set(doc, 'a', 1.0::float8) WHERE _id = 7;
SELECT is((SELECT bson_typeof(a) FROM q WHERE source_key = 7), 'double', 'another type of number, equal as a key');
SELECT pg_temp.all_true('values');

-- Hostile names
CREATE SCHEMA "W eird"";";
CREATE TABLE "W eird"";"."T t'" ("k 1" int, "k""2" text, other int, "D oc" bson, PRIMARY KEY ("k""2", "k 1"));
SELECT is(query_table_create('"Q ""q''$1"', '"W eird"";"."T t''"', ARRAY['"a.b"."c d"', 'x''y'], '{"o $1": -1}', '{"f \"f": "$a", "sel;ect": {"$concat": ["$f", "\"; DROP"]}}', '{"o $1": "varchar(5)"}')::text,
  '"W eird"";"."Q ""q''$1"', 'hostile names of schema, table, keys, fields and columns');
INSERT INTO "W eird"";"."T t'" VALUES (1, 'a', 0, '{"a.b": {"c d": 1}, "x''y": 2, "o $1": "three", a: 4, f: "x"}'), (2, 'a', 0, '{"a.b": {"c d": 1}, "x''y": 2, "o $1": "zzz", a: 5}');
UPDATE "W eird"";"."T t'" SET "k 1" = 3 WHERE "k 1" = 1;
UPDATE "W eird"";"."T t'" SET "D oc" = bson_set("D oc", 'a', 6);
SELECT is((SELECT string_agg(concat_ws(',', "o $1", "f ""f", "sel;ect", source_key1, source_key2), ' ' ORDER BY "o $1") FROM "W eird"";"."Q ""q'$1"), 'three,6,"x\"; DROP",a,3 zzz,6,null,a,2', 'rows of a table with a key of two columns');
SELECT is((SELECT count(*) FROM query_table_read('"W eird"";"."Q ""q''$1"', 1, 2, 'three')), 1::bigint, 'read by partition and clustering');
SELECT pg_temp.all_true('hostile names');
ALTER TABLE "W eird"";"."T t'" RENAME COLUMN "D oc" TO d;
ALTER TABLE "W eird"";"."T t'" RENAME COLUMN "k""2" TO k2;
ALTER TABLE "W eird"";"."T t'" DROP COLUMN other;
ALTER TABLE "W eird"";"."T t'" SET SCHEMA public;
UPDATE "T t'" SET k2 = 'b' WHERE "k 1" = 3;
SELECT is((SELECT string_agg(source_key1, ' ' ORDER BY source_key1) FROM "W eird"";"."Q ""q'$1"), 'a b', 'columns renamed and dropped, another schema');
ALTER TABLE "W eird"";"."Q ""q'$1" DROP COLUMN "sel;ect";
SELECT throws_ok($$DELETE FROM "T t'"$$, '55000', NULL, 'a column that was dropped is missed');
SELECT pattern_disable('"T t''"') IS NOT NULL AS done \gset
DELETE FROM "T t'";
DROP TABLE "T t'";
DROP SCHEMA "W eird"";" CASCADE;
TRUNCATE s;
SELECT pattern_disable('s', 'q') IS NOT NULL AS done \gset

-- Columns that are called as the check calls its own
CREATE TABLE cells (b int PRIMARY KEY, "all cells" int, e int, s int, "row cells" int, doc bson);
SELECT query_table_create('by_a', 'cells', '{a}', '{c: -1}', limit_per_partition => 2) \g /dev/null
INSERT INTO cells (b, doc) SELECT i, bson_build('a', i % 2, 'c', i) FROM generate_series(1, 8) i;
SELECT results_eq($$SELECT a::text, c::text FROM by_a ORDER BY 1, 2$$, $$VALUES ('0', '6'), ('0', '8'), ('1', '5'), ('1', '7')$$, 'names of columns of the source');
SELECT pg_temp.all_true('names of columns of the source');
DROP TABLE cells CASCADE;

-- Users' columns in a query table, and types by the search_path
CREATE SCHEMA other;
CREATE DOMAIN other.small AS int CHECK (value < 100);
CREATE TYPE other.mood AS ENUM ('ok', 'happy');
SET search_path = other, public;
SELECT query_table_create('public.q', 'public.s', '{a}', types => '{a: "small", m: "mood", l: "int[]"}', fields => '{m: 1, l: 1}') IS NOT NULL AS made \gset
RESET search_path;
INSERT INTO s (doc) VALUES ('{_id: 1, a: 5, m: "happy", l: [1, 2]}'), ('{_id: 2, a: 6, m: null}');
SELECT results_eq('SELECT a::int, m::text, l FROM q ORDER BY a', $$VALUES (5, 'happy', '{1,2}'::int[]), (6, NULL, NULL)$$, 'a domain, an enum and an array');
SELECT throws_ok($$INSERT INTO s (doc) VALUES ('{_id: 3, a: 500}')$$, '23514', NULL, 'the domain''s check');
SELECT throws_ok($$INSERT INTO s (doc) VALUES ('{_id: 3, a: 5, m: "sad"}')$$, '22P02', NULL, 'no value of the enum');
SELECT throws_ok($$INSERT INTO s (doc) VALUES ('{_id: 3, a: 1.5}')$$, '22003', NULL, 'a fraction');
ALTER TABLE q ADD COLUMN mine text DEFAULT 'x';
SET docpatterns.maintain = off; UPDATE q SET mine = 'note'; RESET docpatterns.maintain;
UPDATE s SET doc = bson_set(doc, 'm', 'ok') WHERE _id = 1;
SELECT is((SELECT mine FROM q WHERE a = 5), 'note', 'a column that was added stays as it is');
SELECT pg_temp.all_true('types');
SELECT pattern_disable('s', 'q') IS NOT NULL AS done \gset
DELETE FROM s;

-- Partitions with other orders of columns; they come and go with their rows
CREATE TABLE parts (at int, doc bson, id int, PRIMARY KEY (at, id)) PARTITION BY RANGE (at);
CREATE TABLE parts_1 (id int NOT NULL, gone text, at int NOT NULL, doc bson);
ALTER TABLE parts_1 DROP COLUMN gone;
INSERT INTO parts_1 VALUES (1, 1, '{u: 1, x: 1}');
ALTER TABLE parts ATTACH PARTITION parts_1 FOR VALUES FROM (0) TO (10);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20);
SELECT query_table_create('pq', 'parts', '{u}', '{x: -1}'), query_table_create('pt', 'parts', '{u}', '{x: 1}', limit_per_partition => 2) \g /dev/null
CALL pattern_build('parts', 'pq', 1);
CALL pattern_build('parts', 'pt');
INSERT INTO parts (at, id, doc) VALUES (2, 2, '{u: 1, x: 2}'), (12, 3, '{u: 1, x: 3}');
INSERT INTO parts_1 (at, id, doc) VALUES (3, 4, '{u: 2, x: 0}');
UPDATE parts SET at = 13, doc = bson_set(doc, 'x', 0) WHERE id = 2;
SELECT is((SELECT string_agg(concat_ws(':', u, x, source_key1, source_key2), ' ' ORDER BY u, x) FROM pq), '1:0:13:2 1:1:1:1 1:3:12:3 2:0:3:4', 'rows of all partitions');
CREATE TABLE parts_3 (LIKE parts INCLUDING ALL);
INSERT INTO parts_3 VALUES (25, '{u: 1, x: -1}', 9);
ALTER TABLE parts ATTACH PARTITION parts_3 FOR VALUES FROM (20) TO (30);
SELECT is((SELECT string_agg(x::text, ' ' ORDER BY x) FROM pt WHERE u = 1), '-1 0', 'a partition that comes with its rows');
INSERT INTO parts_3 VALUES (26, '{u: 1, x: -2}', 10);
ALTER TABLE parts DETACH PARTITION parts_3;
SELECT is((SELECT string_agg(x::text, ' ' ORDER BY x) FROM pt WHERE u = 1), '0 1', 'and goes');
SELECT pg_temp.all_true('partitions');
TRUNCATE parts_2;
SELECT is((SELECT string_agg(x::text, ' ' ORDER BY u, x) FROM pq), '1 0', 'one of them is truncated');
SELECT is((SELECT string_agg(x::text, ' ' ORDER BY u, x) FROM pt), '1 0', 'and what showed it, too');
CREATE TABLE parts_4 (doc bson, id int NOT NULL, at int NOT NULL) PARTITION BY LIST (id);
CREATE TABLE parts_4_20 PARTITION OF parts_4 FOR VALUES IN (20);
CREATE TABLE parts_4_21 PARTITION OF parts_4 FOR VALUES IN (21);
INSERT INTO parts_4 VALUES ('{u: 4, x: 7}', 20, 30), ('{u: 4, x: 8}', 21, 31);
ALTER TABLE parts ATTACH PARTITION parts_4 FOR VALUES FROM (30) TO (40);
SELECT is((SELECT string_agg(x::text, ' ' ORDER BY x) FROM pq WHERE u = 4), '7 8', 'partitions of a partition come with it');
SELECT pg_temp.all_true('partitions of partitions');
ALTER TABLE parts DETACH PARTITION parts_4;
SELECT is((SELECT string_agg(x::text, ' ' ORDER BY x) FROM pq WHERE u = 4), NULL, 'and go');
DROP TABLE parts_4;
SELECT throws_ok($$SELECT query_table_create('p1', 'parts_1', '{u}')$$, '42809', NULL, 'a partition is no source');
DROP TABLE parts CASCADE;
DROP TABLE parts_3;
SELECT hasnt_table('pq', 'a table goes with its source');

-- Several on one source, statements inside of statements
SELECT query_table_create('q', 's', '{a}', '{b: -1}'), query_table_create('q2', 's', '{b}', fields => '{a: 1}', is_unique => true), query_table_create('q3', 's', '{a}', '{b: 1}', limit_per_partition => 1) \g /dev/null
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.doc ->> 'again' = 'row' THEN UPDATE s SET doc = bson_set(bson_unset(doc, 'again'), 'a', 'row'::text) WHERE _id = NEW._id; END IF; RETURN NULL; END $$;
CREATE FUNCTION all_again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF pg_trigger_depth() = 1 THEN UPDATE s SET doc = bson_set(doc, 'a', 'all'::text) WHERE doc ? 'all'; DELETE FROM s WHERE doc ? 'gone'; END IF; RETURN NULL; END $$;
CREATE TRIGGER aa AFTER INSERT OR UPDATE ON s FOR EACH ROW EXECUTE FUNCTION again();
CREATE TRIGGER ab AFTER INSERT OR UPDATE ON s FOR EACH STATEMENT EXECUTE FUNCTION all_again();
INSERT INTO s (doc) VALUES ('{_id: 1, a: 1, b: 1, again: "row"}'), ('{_id: 2, a: 1, b: 2, all: 1}'), ('{_id: 3, a: 1, b: 3, gone: 1}'), ('{_id: 4, a: 1, b: 4}');
SELECT is((SELECT string_agg(concat_ws(':', a, b), ' ' ORDER BY b) FROM q), '"row":1 "all":2 1:4', 'triggers that write the rows again, and delete them');
SELECT pg_temp.all_true('triggers');
UPDATE s SET doc = bson_update(doc, '{$set: {again: "row", a: 9}, $inc: {b: 1}}');
SELECT is((SELECT string_agg(concat_ws(':', a, b), ' ' ORDER BY b) FROM q), '"row":2 "all":3 "row":5', 'places that are handed on meanwhile');
SELECT pg_temp.all_true('updates inside of updates');
DROP TRIGGER aa ON s; DROP TRIGGER ab ON s;
BEGIN; DELETE FROM s WHERE _id = 4; SAVEPOINT x; INSERT INTO s (doc) VALUES ('{_id: 5, a: 5, b: 5}'); ROLLBACK TO x; INSERT INTO s (doc) VALUES ('{_id: 6, a: 6, b: 5}'); COMMIT;
SELECT pg_temp.all_true('savepoints');
-- a long statement is handled in pieces, what goes before what comes
INSERT INTO s (doc) SELECT bson_build('_id', 1000 + i, 'a', repeat('x', 1000) || i % 100, 'b', 1000 + i) FROM generate_series(1, 12000) i;
UPDATE s SET doc = bson_set(doc, 'b', 23001 - (doc -> 'b')::int) WHERE _id > 1000;
SELECT is((SELECT count(*) FROM q JOIN q2 USING (a, b)), 12003::bigint, 'all rows change places');
DELETE FROM s WHERE _id > 2000;
SELECT pg_temp.all_true('a long statement');

-- A pattern that writes to the source while the statement is handled: what is counted in the table's own rows
SELECT collection_create('o') \g /dev/null
SELECT computed_enable('o', 'o', 'parent', '{children: {$count: {}}}'), query_table_create('o1', 'o', '{u}', '{d: 1}', '{children: 1, seen: 1}'),
  query_table_create('o2', 'o', '{children}', '{d: 1}', '{seen: 1}'), query_table_create('o3', 'o', '{u}', '{children: -1}', limit_per_partition => 2) \g /dev/null
INSERT INTO o (doc) VALUES ('{_id: 1, u: 1, d: 1}'), ('{_id: 2, u: 1, d: 2, parent: 1}'), ('{_id: 3, u: 2, d: 3, parent: 3}'), ('{_id: 4, u: 1, d: 4, parent: 1}');
SELECT is((SELECT string_agg(concat_ws(':', source_key, children), ' ' ORDER BY source_key) FROM o1), '1:2 2:0 3:1 4:0', 'rows are counted in rows of the same statement');
SELECT is((SELECT string_agg(concat_ws(':', source_key, children), ' ' ORDER BY source_key) FROM o2), '1:2 2:0 3:1 4:0', 'where the count is the place, too');
UPDATE o SET doc = bson_set(bson_set(doc, 'parent', 4), 'u', 3);
DELETE FROM o WHERE _id = 3;
SELECT is((SELECT string_agg(concat_ws(':', u, source_key, children), ' ' ORDER BY source_key) FROM o1), '3:1:0 3:2:0 3:4:3', 'rows that move');
SELECT pg_temp.all_true('a pattern that writes to the source');
-- triggers on query tables write to the source, before the next table has followed
CREATE FUNCTION react() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE o SET doc = bson_set(bson_set(doc, 'seen', true), 'u', 9) WHERE _id = NEW.source_key AND NOT doc ? 'seen'; RETURN NEW; END $$;
CREATE TRIGGER react AFTER INSERT OR UPDATE ON o1 FOR EACH ROW EXECUTE FUNCTION react();
INSERT INTO o (doc) SELECT bson_build('_id', i, 'u', 1, 'd', i, 'parent', 1) FROM generate_series(5, 8) i;
UPDATE o SET doc = bson_set(doc, 'd', (doc -> 'd')::int + 1) WHERE _id <= 4;
DROP TRIGGER react ON o1;
CREATE TRIGGER react BEFORE INSERT ON o2 FOR EACH ROW EXECUTE FUNCTION react();
INSERT INTO o (doc) SELECT bson_build('_id', i, 'u', 1, 'd', i, 'parent', 1) FROM generate_series(9, 12) i;
SELECT is((SELECT string_agg(concat_ws(':', source_key, d, seen), ' ' ORDER BY source_key) FROM o1 WHERE u = 9), '1:2:true 2:3:true 4:5:true 5:5:true 6:6:true 7:7:true 8:8:true 9:9:true 10:10:true 11:11:true 12:12:true', 'triggers on query tables');
SELECT pg_temp.all_true('triggers on query tables');
-- a statement inside of a statement that is rolled back
CREATE FUNCTION in_vain() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  BEGIN UPDATE o SET doc = bson_set(doc, 'u', 5) WHERE NOT doc ? 'vain'; INSERT INTO o (doc) VALUES ('{_id: 13, u: 5, d: 5}'); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END;
  BEGIN UPDATE o SET doc = bson_set(doc, 'u', 6) WHERE _id = 2; EXCEPTION WHEN division_by_zero THEN NULL; END; RETURN NULL; END $$;
DROP TRIGGER react ON o2;
CREATE TRIGGER in_vain AFTER UPDATE ON o FOR EACH ROW WHEN (NEW.doc ? 'vain') EXECUTE FUNCTION in_vain();
UPDATE o SET doc = bson_set(bson_set(doc, 'u', 7), 'vain', true) WHERE _id = 1;
SELECT is((SELECT string_agg(concat_ws(':', u, source_key), ' ' ORDER BY source_key) FROM o1 WHERE u <> 9), '7:1 6:2', 'a statement inside of another one is rolled back');
SELECT pg_temp.all_true('a statement that is rolled back');
DROP TABLE o CASCADE;
DROP FUNCTION react, in_vain;

-- Foreign keys' actions, which write to a row more than once in one statement
CREATE TABLE p (id int PRIMARY KEY);
CREATE TABLE f (a int REFERENCES p ON UPDATE CASCADE ON DELETE CASCADE, b int REFERENCES p ON UPDATE CASCADE, doc bson, PRIMARY KEY (a, b));
SELECT query_table_create('f1', 'f', '{u}', fields => '{n: 1}'), query_table_create('f2', 'f', '{u}', limit_per_partition => 2) \g /dev/null
INSERT INTO p SELECT generate_series(1, 5);
INSERT INTO f VALUES (1, 2, '{u: 1, n: 1}'), (2, 3, '{u: 1, n: 2}'), (4, 4, '{u: 2, n: 3}'), (5, 4, '{u: 2, n: 4}');
UPDATE p SET id = id + 100;
SELECT is((SELECT string_agg(concat_ws(':', u, n, source_key1, source_key2), ' ' ORDER BY n) FROM f1), '1:1:101:102 1:2:102:103 2:3:104:104 2:4:105:104', 'both parts of keys change');
MERGE INTO p USING p q ON p.id = q.id WHEN MATCHED AND p.id <> 105 THEN UPDATE SET id = p.id - 100 WHEN MATCHED THEN DELETE;
SELECT is((SELECT string_agg(concat_ws(':', u, n, source_key1, source_key2), ' ' ORDER BY n) FROM f1), '1:1:1:2 1:2:2:3 2:3:4:4', 'rows that move and go');
SELECT pg_temp.all_true('actions of foreign keys');
INSERT INTO p SELECT generate_series(1001, 4000);
INSERT INTO f SELECT i, i, bson_build('u', repeat('x', 1500), 'n', i) FROM generate_series(1001, 4000) i;
UPDATE p SET id = id + 10000 WHERE id > 1000;
SELECT is((SELECT concat_ws(':', count(*), min(source_key1), max(source_key2)) FROM f1 WHERE n > 1000), '3000:11001:14000', 'many of them');
SELECT pg_temp.all_true('many actions of foreign keys');
DROP TABLE f, p CASCADE;

-- Who may do what
CREATE ROLE query_table_owner; CREATE ROLE query_table_writer;
ALTER TABLE s OWNER TO query_table_owner;
SELECT is((SELECT relowner::regrole::text FROM pg_class WHERE oid = 'q'::regclass), 'query_table_owner', 'the table follows to a new owner');
GRANT INSERT, SELECT, UPDATE, DELETE ON s TO query_table_writer;
SET ROLE query_table_writer;
SELECT lives_ok($$INSERT INTO s (doc) VALUES ('{_id: -1, a: 1, b: -1}'); UPDATE s SET doc = bson_set(doc, 'a', 2) WHERE _id = -1$$, 'who may write to the source needs no other rights');
SELECT throws_ok($$SELECT * FROM q$$, '42501', NULL, 'and may not read what others read');
SELECT throws_ok($$SELECT query_table_read('q', 2)$$, '42501', NULL, 'by no call either');
SELECT throws_ok($$SELECT query_table_create('w', 's', '{a}')$$, '42501', NULL, 'nor make one');
SELECT throws_ok($$SELECT docpatterns._query_table_sweep('s', 'q')$$, '42501', NULL, 'nor repair one');
RESET ROLE;
SELECT is((SELECT a FROM q WHERE b = -1), '2'::bson_value, 'the row is there');
SELECT pattern_disable('s', n) IS NOT NULL FROM unnest('{q,q2,q3}'::text[]) n \g /dev/null
DROP TABLE s CASCADE;
DROP ROLE query_table_owner; DROP ROLE query_table_writer;

-- Rows that expire
SELECT collection_create('mortal') \g /dev/null
SELECT query_table_create('mortal_by_u', 'mortal', '{u}', '{n: 1}', '{x: 1}', '{u: "uuid"}', ttl_field => 'life.until') \g /dev/null
CREATE FUNCTION pg_temp.at(i interval) RETURNS bson_value LANGUAGE sql AS $$ SELECT to_bson(clock_timestamp() + i) $$;
CREATE FUNCTION pg_temp.living() RETURNS text LANGUAGE sql AS $$ SELECT string_agg(q ->> 'n', ' ') FROM query_table_read('mortal_by_u', '00000000-0000-0000-0000-000000000001') q $$;
INSERT INTO mortal (doc) SELECT bson_build('_id', n, 'u', '00000000-0000-0000-0000-000000000001', 'n', n, 'life', bson_build('until', v)) FROM unnest(ARRAY['null'::bson_value, '"2001-01-01"', 'NaN', '1e300', '-1e300', '0', 'ISODate("2001-01-01")', pg_temp.at('1 hour'), pg_temp.at('-1 ms')]) WITH ORDINALITY AS t (v, n);
INSERT INTO mortal (doc) VALUES ('{_id: 10, u: UUID("00000000-0000-0000-0000-000000000001"), n: 10}');
SELECT is(pg_temp.living(), '1 2 3 4 8 10', 'a date, or seconds since 1970, ends the life of a row');
SELECT is((SELECT count(*) FROM mortal_by_u), 10::bigint, 'the row stays in the table');
SELECT pg_temp.all_true('expired rows');
SELECT is(query_table_purge('mortal_by_u', 1), 1::bigint, 'one is purged'); SELECT is((SELECT count(*) FROM mortal_by_u WHERE source_key = 5), 0::bigint, 'the oldest'); SELECT is(query_table_purge('mortal_by_u', 0), 0::bigint, 'none'); SELECT is(query_table_purge('mortal_by_u'), 3::bigint, 'then the others'); SELECT is(query_table_purge('mortal_by_u'), 0::bigint, 'each once');
SELECT is((SELECT string_agg(source_key::text, ' ' ORDER BY source_key) FROM mortal_by_u), '1 2 3 4 8 10', 'those that live are left');
SELECT pg_temp.all_true('purged rows');
SELECT is(pattern_repair('mortal', 'mortal_by_u'), 0::bigint, 'a repair does not bring them back');
UPDATE mortal SET doc = bson_set(doc, 'life.until', pg_temp.at('1 hour')) WHERE _id = 6; UPDATE mortal SET doc = bson_set(doc, 'life.until', pg_temp.at('-1 hour')) WHERE _id = 8; DELETE FROM mortal WHERE _id = 7;
SELECT is(pg_temp.living(), '1 2 3 4 6 10', 'a life that is prolonged, and one that is ended');
SELECT pg_temp.all_true('lives that change');
SET docpatterns.maintain = off; DELETE FROM mortal_by_u WHERE source_key = 10; UPDATE mortal_by_u SET expires_at = NULL WHERE source_key = 6; RESET docpatterns.maintain;
SELECT is((SELECT string_agg(key::text, ' ' ORDER BY key) FROM pattern_check('mortal')), '6 10', 'what is missing or wrong is found'); SELECT is(pattern_repair('mortal', 'mortal_by_u'), 2::bigint, 'and repaired'); SELECT pg_temp.all_true('repaired rows');
SELECT throws_ok(format('INSERT INTO mortal (doc) VALUES (%L)', doc), state, NULL, doc) FROM (VALUES ('{_id: 20, u: "nobody", n: 1}', '22P02'), ('{_id: 20, u: 5, n: 1}', '22023')) AS v (doc, state);
CREATE ROLE query_table_other; GRANT ALL ON mortal_by_u TO query_table_other; SET ROLE query_table_other; SELECT throws_ok($$SELECT query_table_purge('mortal_by_u')$$, '42501', NULL, 'rows are purged by the owner'); RESET ROLE; DROP OWNED BY query_table_other; DROP ROLE query_table_other;
ALTER TABLE mortal_by_u RENAME COLUMN expires_at TO "W hen"; SELECT is(pg_temp.living(), '1 2 3 4 6 10', 'another name of the column'); SELECT is(query_table_purge('mortal_by_u'), 1::bigint, 'by which rows are purged'); SELECT pg_temp.all_true('another name');
DROP TABLE mortal CASCADE;
-- UUIDs that are strings, with a limit: the source has an index on them
SELECT collection_create('u') \g /dev/null
SELECT query_table_create('u_top', 'u', '{u}', '{n: -1}', types => '{u: "uuid"}', limit_per_partition => 2) \g /dev/null
INSERT INTO u (doc) SELECT bson_build('_id', n, 'u', CASE WHEN n % 2 = 0 THEN to_bson('00000000-0000-0000-0000-00000000000a'::uuid) ELSE to_bson('00000000-0000-0000-0000-00000000000A'::text) END, 'n', n) FROM generate_series(1, 5) n;
DELETE FROM u WHERE _id = 4;
SELECT is((SELECT string_agg(n::text, ' ' ORDER BY n DESC) FROM u_top), '5 3', 'are one partition'); SELECT pg_temp.all_true('UUIDs');
DROP TABLE u CASCADE;

-- A seeded random run beside plain SQL
SELECT setseed(0.2301);
SELECT diag('seed 0.2301');
SELECT collection_create('r') \g /dev/null
SELECT query_table_create('ra', 'r', '{u}', '{d: -1, t: 1}', '{n: 1}', '{d: "int"}'), query_table_create('rl', 'r', '{u}', '{t: -1}', limit_per_partition => 3), query_table_create('ru', 'r', '{t,d}', fields => '{id: "$_id"}', is_unique => true) \g /dev/null
DO $$
DECLARE n int;
BEGIN
  FOR i IN 1 .. 500 LOOP
    n := (random() * 40)::int;
    BEGIN
      CASE (random() * 6)::int
        WHEN 0, 1, 2 THEN INSERT INTO r (doc) SELECT bson_build('_id', n, 'u', n % 5, 'd', nullif((random() * 20)::int, 7), 't', (random() * 30)::int, 'n', i) ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
        WHEN 3 THEN UPDATE r SET doc = bson_set(doc, 'u', (random() * 5)::int) WHERE _id <= n AND (doc -> 'n')::int % 3 = 0;
        WHEN 4 THEN UPDATE r SET doc = bson_set(doc, 't', ((doc -> 't')::int + 1) % 30) WHERE _id > n;
        WHEN 5 THEN DELETE FROM r WHERE _id BETWEEN n AND n + 1;
        ELSE UPDATE r SET doc = bson_set(doc, '_id', (doc ->> '_id')::int + 100) WHERE _id = n;
      END CASE;
    EXCEPTION WHEN unique_violation THEN NULL;
    END;
  END LOOP;
END $$;
SELECT cmp_ok((SELECT count(*) FROM r), '>', 20::bigint, 'rows are left');
SELECT is_empty($$SELECT * FROM ra FULL JOIN (SELECT _id, doc FROM r WHERE bson_typeof(doc -> 'd') <> 'null') q ON source_key = _id WHERE (u, d, t, n) IS DISTINCT FROM (doc -> 'u', (doc -> 'd')::int, doc -> 't', doc -> 'n')$$, 'the same as plain SQL: all rows');
SELECT is_empty($$SELECT * FROM rl FULL JOIN (SELECT * FROM (SELECT _id, doc, row_number() OVER (PARTITION BY doc -> 'u' ORDER BY doc -> 't' DESC, _id DESC) AS n FROM r) x WHERE n <= 3) q ON source_key = _id WHERE (u, t) IS DISTINCT FROM (doc -> 'u', doc -> 't')$$, 'the first three');
SELECT is_empty($$SELECT * FROM ru FULL JOIN (SELECT _id, doc FROM r WHERE bson_typeof(doc -> 'd') <> 'null') q ON source_key = _id WHERE (t, d, id) IS DISTINCT FROM (doc -> 't', doc -> 'd', _id)$$, 'unique rows');
SELECT pg_temp.all_true('the random run');
DROP TABLE r CASCADE; DROP TABLE no_key, taken CASCADE; DROP SCHEMA other CASCADE;
SELECT * FROM finish();
