-- Declarations stay with the columns, keys and triggers that they were made for, whatever becomes of their tables.
SET client_min_messages = warning;
\set QUIET on
BEGIN;
SELECT no_plan();

-- The document column is followed through renames
CREATE TABLE b (id int PRIMARY KEY, other int UNIQUE NOT NULL, doc bson);
SELECT outlier_enable('b', 'a', 2), subset_fields_enable('b', cold => '{cold}') \g /dev/null
INSERT INTO b VALUES (1, 2, '{a: [1, 2, 3, 4], cold: "one"}'), (2, 1, '{a: [7, 8, 9], cold: "two"}');
ALTER TABLE b RENAME doc TO payload;
ALTER TABLE b ADD doc bson;
INSERT INTO b VALUES (3, 3, '{a: [1, 2, 3], cold: 3}', '{a: [5, 6, 7], cold: 4}');
UPDATE b SET payload = bson_set(payload, 'x', 1), doc = '{a: [5, 6, 7]}' WHERE id = 1;
SELECT is((SELECT string_agg(concat_ws(' ', id, payload ->> 'a', payload ->> 'cold', doc ->> 'a'), E'\n' ORDER BY id) FROM b),
          E'1 [1, 2] [5, 6, 7]\n2 [7, 8]\n3 [1, 2] [5, 6, 7]', 'what was the column is split, and what has its name now is not');
SELECT is((SELECT string_agg(concat_ws(' ', id, doc ->> 'a', doc ->> 'cold'), E'\n' ORDER BY id) FROM b_whole),
          E'1 [1, 2, 3, 4] one\n2 [7, 8, 9] two\n3 [1, 2, 3] 3', 'and the view shows it');
SELECT is((SELECT array_agg(DISTINCT options ->> 'doc_column') FROM pattern_list('b')), '{payload}', 'pattern_list has the name of today');
SELECT is_empty($$SELECT * FROM pattern_check('b')$$, 'all is true');
SELECT pattern_alter('b', 'a', '{threshold: 3}');
INSERT INTO b VALUES (4, 4, '{a: [1, 2, 3, 4]}', '{a: [5, 6, 7, 8]}');
SELECT is((SELECT concat_ws(' ', payload ->> 'a', doc ->> 'a') FROM b WHERE id = 4), '[1, 2, 3] [5, 6, 7, 8]', 'also after a change of options');
SET LOCAL session_replication_role = replica;
ALTER TABLE b RENAME payload TO third;
ALTER TABLE b RENAME doc TO payload;
SET LOCAL session_replication_role = origin;
INSERT INTO b VALUES (5, 5, '{a: [1, 2, 3, 4]}', '{a: [5, 6, 7, 8]}');
SELECT is((SELECT concat_ws(' ', third ->> 'a', payload ->> 'a') FROM b WHERE id = 5), '[1, 2, 3] [5, 6, 7, 8]', 'and where no event trigger fires');
SELECT throws_ok($$ALTER TABLE b ALTER third TYPE bson USING bson_set(third, 'a', 1)$$, '0A000', NULL, 'documents are not changed unseen');

-- So is that of a source, and of all tables of a pattern
SELECT collection_create(c) FROM unnest('{p,s,q,r1,r2,posts,follows}'::text[]) c \g /dev/null
SELECT computed_enable('p', 's', 'p', '{n: {$sum: "$x"}}', name => 'n'), subset_enable('p', 'top', 's', 'p', '{x: -1}', 1),
       reference_enable('s', 'q', 'q', live => '{name}', missing => 'allow'), rollup_enable('s', name => 'by_p', time_field => 'at', levels => '{day}', group_by => '{p}', fields => '{n: {$sum: "$x"}}'),
       query_table_create('s_by_p', source => 's', partition => '{p}'), relationship_enable('r1', 'r2', 'r2', 'r1'),
       fanout_enable('posts', 'walls', 'by', 'follows', 'who', 'whom') \g /dev/null
INSERT INTO q (doc) VALUES ('{_id: 1, name: "q"}');
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY '{p,s,q,r1,r2,posts,follows}'::text[] LOOP
    EXECUTE format('ALTER TABLE %I RENAME doc TO d; ALTER TABLE %1$I ADD doc bson', t);
  END LOOP;
END
$$;
INSERT INTO p (d, doc) VALUES ('{_id: 1}', '{n: 99}');
INSERT INTO s (d, doc) VALUES ('{_id: 1, p: 1, x: 2, q: 1, at: ISODate("2024-01-01T00:00:00Z")}', '{p: 1, x: 50}'), ('{_id: 2, p: 1, x: 3, at: ISODate("2024-01-01T00:00:00Z")}', '{p: 1, x: 60}');
SELECT is((SELECT concat_ws(' ', d ->> 'n', d #>> '{top,0,_id}', doc ->> 'n') FROM p), '5 2 99', 'a source and a target are read and written where they were');
SELECT is((SELECT d #>> '{q,name}' FROM s WHERE _id = 1), 'q', 'and what is referred to');
SELECT is((SELECT doc ->> 'n' FROM by_p ), '5', 'and what is summed up');
INSERT INTO r1 (d) VALUES ('{_id: 1}'); INSERT INTO r2 (d, doc) VALUES ('{_id: 2, r1: [1]}', '{r1: [7]}');
SELECT is((SELECT d ->> 'r2' FROM r1), '[2]', 'and both sides of a relationship');
INSERT INTO follows (d) VALUES ('{_id: 1, who: "a", whom: "b"}'); INSERT INTO posts (d) VALUES ('{_id: 1, by: "b"}');
SELECT is_empty($$SELECT * FROM pattern_check()$$, 'all of it is true');
SELECT throws_ok(format('ALTER TABLE %I ALTER d TYPE bson USING bson_set(d, ''a'', 1)', t), '0A000', NULL, 'documents of ' || t || ' are not changed unseen') FROM unnest('{p,s,q,r1,r2,posts,follows}'::text[]) t;

-- Keys
CREATE FUNCTION pg_temp.move_key() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('session_replication_role', 'replica', true);
  ALTER TABLE b DROP CONSTRAINT b_pkey, ADD PRIMARY KEY (other);
  PERFORM set_config('session_replication_role', 'origin', true);
END
$$;
SELECT throws_ok('ALTER TABLE b DROP CONSTRAINT b_pkey, ADD PRIMARY KEY (other)', '55000', NULL, 'the primary key does not move to another column');
SELECT throws_ok('ALTER TABLE q DROP CONSTRAINT q_pkey, ADD PRIMARY KEY (_id, d)', '55000', NULL, 'nor that of a table that others refer to');
SELECT lives_ok('ALTER TABLE b DROP CONSTRAINT b_pkey, ADD CONSTRAINT again PRIMARY KEY (id)', 'it may be made again');
ALTER TABLE b RENAME CONSTRAINT again TO b_pkey;
ALTER TABLE b RENAME id TO "the id";
ALTER TABLE b RENAME other TO id;
SELECT lives_ok('UPDATE b SET third = bson_set(third, ''y'', 1)', 'the key has another name, and another column its name');
SELECT is((SELECT string_agg(concat_ws(' ', id, doc ->> 'a'), E'\n' ORDER BY id) FROM b_whole WHERE id < 3), E'1 [1, 2, 3, 4]\n2 [7, 8, 9]', 'rows find what is theirs');
ALTER TABLE b RENAME id TO other; ALTER TABLE b RENAME "the id" TO id;
SAVEPOINT moved;
SELECT pg_temp.move_key();
SELECT is((SELECT DISTINCT concat_ws(' ', what, expected, found) FROM pattern_check('b')), 'primary key {id} {other} of public.b', 'a key that moved in silence is a violation');
SELECT throws_ok(c, '55000', NULL, c) FROM unnest(ARRAY['SELECT * FROM b_whole', 'DELETE FROM b WHERE id = 1', 'UPDATE b SET third = ''{a: [1, 2, 3, 4, 5]}''', 'SELECT pattern_repair(''b'', ''a'')',
  'SELECT pattern_disable(''b'', ''a'')', 'INSERT INTO b VALUES (9, 9, ''{a: [1, 2, 3, 4, 5]}'')']) c;
ROLLBACK TO moved;
SELECT is((SELECT count(*) FROM b_a_extras) + (SELECT count(*) FROM b_cold_cold), (SELECT count(*) FROM b_a_extras) + 3, 'and no data are gone');

-- Keys by whose equality documents would differ, and keys that cannot hold every value
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE DOMAIN caseless AS text COLLATE nocase;
CREATE TABLE ck (k text COLLATE nocase PRIMARY KEY, doc bson);
CREATE TABLE cd (k caseless PRIMARY KEY, doc bson);
SELECT throws_ok(format('SELECT %s', call), '0A000', NULL, call) FROM unnest(ARRAY['outlier_enable(''ck'', ''a'', 2)', 'computed_enable(''cd'', ''r2'', ''p'', ''{m: {$sum: "$x"}}'', source_doc_column => ''d'')',
  'reference_enable(''s'', ''ck'', ''ck'', live => ''{a}'', doc_column => ''d'')']) call;
CREATE FUNCTION pg_temp.keyed(type text, key text, VARIADIC links text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  EXECUTE format('CREATE TABLE kt (k %s PRIMARY KEY, doc bson)', type);
  CREATE TABLE ks (id serial PRIMARY KEY, doc bson);
  PERFORM computed_enable('kt', 'ks', 'p', '{n: {$count: {}}}'), subset_enable('kt', 'top', 'ks', 'p', '{_id: 1}', 9);
  EXECUTE format('INSERT INTO kt VALUES (%L, ''{name: "x"}'')', key);
  EXECUTE format('INSERT INTO ks (doc) SELECT format(''{p: %%s}'', l)::bson FROM unnest(%L::text[]) l', links);
  EXECUTE 'SELECT doc ->> ''n'' FROM kt' INTO result;
  result := concat_ws(' ', result, (SELECT string_agg(v::text, E'\n') FROM pattern_check() v));
  DROP TABLE ks, kt CASCADE;
  RETURN result;
END
$$;
SELECT is(pg_temp.keyed(type, key, VARIADIC links), '1', 'one link is the key of type ' || type) FROM (VALUES ('char(3)', 'a', '{"\"a\"","\"a \""}'::text[]), ('bpchar', 'a ', '{"\"a\"","\"a \""}'),
  ('numeric(4, 2)', '1.20', '{"{$numberDecimal: \"1.2\"}","{$numberDecimal: \"1.201\"}"}'), ('int', '2', '{2,1.7}'), ('varchar(2)', 'ab', '{"\"ab\"","\"abc\""}'),
  ('date', '2024-01-02', '{"{$date: \"2024-01-02T00:00:00Z\"}","{$date: \"2024-01-02T01:00:00Z\"}"}')) AS v (type, key, links);

-- Triggers
SELECT is_empty($$SELECT * FROM pattern_check()$$, 'all is true');
SAVEPOINT dropped;
DO $$
DECLARE
  g record;
  unnoticed text := '';
BEGIN
  FOR g IN SELECT t.tgname, t.tgrelid::regclass AS rel FROM pg_trigger t WHERE t.tgname ~ '^zz_docpatterns_[1-8]' AND t.tgparentid = 0 ORDER BY 2, 1 LOOP
    BEGIN
      EXECUTE format('ALTER TABLE %s DISABLE TRIGGER %I', g.rel, g.tgname);
      IF NOT EXISTS (SELECT FROM pattern_check() v WHERE v.what = 'trigger' AND v.found = 'disabled' AND v.expected = format('%s on public.%s', g.tgname, g.rel)) THEN
        unnoticed := concat_ws(' ', unnoticed, g.rel, g.tgname, 'disabled');
      END IF;
      EXECUTE format('DROP TRIGGER %I ON %s', g.tgname, g.rel);
      IF NOT EXISTS (SELECT FROM pattern_check() v WHERE v.what = 'trigger' AND v.found = 'missing' AND v.expected = format('%s on public.%s', g.tgname, g.rel)) THEN
        unnoticed := concat_ws(' ', unnoticed, g.rel, g.tgname, 'dropped');
      END IF;
      RAISE EXCEPTION 'back' USING ERRCODE = 'P0099';
    EXCEPTION WHEN SQLSTATE 'P0099' OR dependent_objects_still_exist THEN
      NULL;
    END;
  END LOOP;
  PERFORM set_config('dp.unnoticed', unnoticed, true);
END
$$;
SELECT is(current_setting('dp.unnoticed'), '', 'no trigger is disabled or dropped unnoticed');
ROLLBACK TO dropped;
ALTER TABLE b DISABLE TRIGGER zz_docpatterns_50_outlier_a_before; DROP TRIGGER zz_docpatterns_50_outlier_a_insert ON b; ALTER TABLE s DISABLE TRIGGER zz_docpatterns_80_computed_n_insert;
INSERT INTO s (d) VALUES ('{_id: 3, p: 1, x: 4}');
SELECT is((SELECT count(*) FROM pattern_check()), 3::bigint, 'several are found');
SELECT pattern_repair('b', 'a'), pattern_repair('p', 'n') \g /dev/null
SELECT is_empty($$SELECT * FROM pattern_check()$$, 'a repair enables them, and makes those that are missing');
SAVEPOINT no_source;
SELECT format('DROP TRIGGER %I ON %s', tgname, tgrelid::regclass) FROM pg_trigger WHERE tgname LIKE 'zz_docpatterns_80_computed_n%' AND tgrelid = 's'::regclass \gexec
SELECT results_eq($$SELECT what, expected, found FROM pattern_check('p', 'n')$$, $$VALUES ('source', 'a table with the triggers of the pattern', 'none')$$, 'a source without any');
ROLLBACK TO no_source;
SELECT throws_ok('DROP TRIGGER zz_docpatterns_50_outlier_a ON b', '2BP01', NULL, 'a declaration does not end by the way');

-- Inheritance, and tables that commits empty
SELECT throws_ok(format('CREATE TABLE heir () INHERITS (%I)', t), '0A000', NULL, 'nothing inherits from ' || t) FROM unnest('{b,p,s,b_a_extras}'::text[]) t;
CREATE TABLE heir (LIKE b);
SELECT throws_ok('ALTER TABLE heir INHERIT b', '0A000', NULL, 'nor does a table that is there');
CREATE FOREIGN DATA WRAPPER w; CREATE SERVER w FOREIGN DATA WRAPPER w;
SELECT throws_ok('CREATE FOREIGN TABLE far () INHERITS (b) SERVER w', '0A000', NULL, 'nor a foreign one');
CREATE TABLE plain (id int PRIMARY KEY, doc bson);
SELECT lives_ok('CREATE TABLE heir_of_plain () INHERITS (plain)', 'other tables may have heirs');
SAVEPOINT unseen;
SET LOCAL session_replication_role = replica;
ALTER TABLE heir INHERIT b;
SET LOCAL session_replication_role = origin;
SELECT is((SELECT DISTINCT concat_ws(' ', what, found) FROM pattern_check('b')), 'inheritance public.heir', 'one that came in silence is a violation');
ROLLBACK TO unseen;
CREATE TEMPORARY TABLE briefly (id int PRIMARY KEY, doc bson) ON COMMIT DELETE ROWS;
SELECT throws_ok($$SELECT outlier_enable('briefly', 'a', 2)$$, '0A000', NULL, 'a table that has ON COMMIT DELETE ROWS');
CREATE TEMPORARY TABLE briefly_too ON COMMIT DELETE ROWS AS SELECT * FROM plain;
ALTER TABLE briefly_too ADD PRIMARY KEY (id);
SELECT throws_ok($$SELECT versioning_enable('briefly_too')$$, '0A000', NULL, 'however it was made');
CREATE TEMPORARY TABLE longer (id int PRIMARY KEY, doc bson);
SELECT lives_ok($$SELECT outlier_enable('longer', 'a', 2)$$, 'another temporary one may have patterns');

-- Logged and unlogged
CREATE TABLE l (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('l', 'a', 2), subset_fields_enable('l', cold => '{cold}'), versioning_enable('l'), change_feed_enable('l'), rollup_enable('l', name => 'l_sums', time_field => 'at', levels => '{day}', group_by => '{g}', fields => '{n: {$count: {}}}'),
       query_table_create('l_by_g', source => 'l', partition => '{g}'), preallocated_enable('l', 'places', preallocated_pool(2)), subset_enable('l', 'top', 's', 'l', '{x: 1}', 2, source_doc_column => 'd', count_field => 'all', count_mode => 'deferred') \g /dev/null
CREATE FUNCTION pg_temp.persistence() RETURNS text LANGUAGE sql AS $$ SELECT string_agg(DISTINCT relpersistence::text, '') FROM pg_class WHERE relname ~ '^l(_.*)?$' AND relkind = 'r' $$;
SELECT is(pg_temp.persistence(), 'p', 'a logged table has logged tables beside it');
ALTER TABLE l SET UNLOGGED;
SELECT is(pg_temp.persistence(), 'u', 'which become unlogged with it');
ALTER TABLE l SET LOGGED;
SELECT is(pg_temp.persistence(), 'p', 'and logged again');
DO $$
DECLARE t text;
BEGIN
  FOREACH t IN ARRAY '{l_a_extras,s,q,r2,follows}'::text[] LOOP
    EXECUTE format('ALTER TABLE %I SET UNLOGGED', t);
  END LOOP;
END
$$;
SELECT is((SELECT string_agg(DISTINCT concat_ws(' ', name, expected), E'\n') FROM pattern_check() v WHERE what = 'persistence'),
  E'a public.l_a_extras is logged, as public.l is\nn public.s is logged, as public.p is\nr2 public.r2 is logged, as public.r1 is\n'
  'top public.s is logged, as public.l is\ntop public.s is logged, as public.p is\nwalls public.follows is logged, as public.posts is', 'a table that lasts not as long as what came from it is a violation');
CREATE TABLE logged (LIKE plain INCLUDING ALL);
CREATE UNLOGGED TABLE unlogged_source (id int PRIMARY KEY, doc bson);
SELECT throws_ok($$SELECT computed_enable('logged', 'unlogged_source', 'p', '{n: {$count: {}}}')$$, '42P16', NULL, 'an unlogged source of a logged table');
SELECT throws_ok($$SELECT reference_enable('logged', 'r', 'unlogged_source', live => '{n}')$$, '42P16', NULL, 'or what it refers to');
SELECT lives_ok($$SELECT rollup_enable('unlogged_source', name => 'unlogged_sums', time_field => 'at', levels => '{day}', group_by => '{g}', fields => '{n: {$count: {}}}')$$, 'what is summed up from it');
SELECT is((SELECT relpersistence FROM pg_class WHERE relname = 'unlogged_sums'), 'u', 'is as it is');
-- A repair does not hide what is lost
CREATE TABLE lost (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('lost', 'a', 2), outlier_enable('lost', 'b', 2, flag => 'bs', count_field => 'n'), subset_fields_enable('lost', cold => '{cold}') \g /dev/null
INSERT INTO lost VALUES (1, '{a: [1, 2, 3], b: [1]}'), (2, '{a: [4, 5, 6], b: []}'), (3, '{b: [5, 6, 7, 8], cold: 1}');
SET LOCAL docpatterns.maintain = off;
DELETE FROM lost_a_extras WHERE key = 1; DELETE FROM lost_b_extras;
UPDATE lost SET doc = doc - 'has_extras' WHERE id = 2;
SET LOCAL docpatterns.maintain = on;
CREATE TEMPORARY VIEW wrong AS SELECT string_agg(concat_ws(' ', name, key, what, expected, found), E'\n' ORDER BY name, key, what) FROM pattern_check('lost');
SELECT is((SELECT * FROM wrong), E'a 1 flag absent true\na 2 flag true absent\nb 3 count 2 4\nb 3 flag absent true', 'extras are lost, and a flag');
SET LOCAL client_min_messages = error;
SELECT is(pattern_repair('lost', 'a') + pattern_repair('lost', 'b'), 1::bigint, 'the flag is mended');
SET LOCAL client_min_messages = warning;
SELECT is((SELECT * FROM wrong), E'a 1 flag absent true\nb 3 count 2 4\nb 3 flag absent true', 'what is lost still shows');
UPDATE lost SET doc = bson_set(doc, 'x', 1) WHERE id = 1; UPDATE lost SET doc = '{b: [5], cold: 1}' WHERE id = 3;
UPDATE lost SET doc = bson_set(doc, 'x', 1);
SELECT is((SELECT * FROM wrong), E'a 1 flag absent true\nb 3 count 1 4\nb 3 flag absent true', 'also when the documents are written');
SELECT is(pattern_repair('lost', 'a', accept_loss => true) + pattern_repair('lost', 'b', accept_loss => true), 2::bigint, 'until the loss is accepted');
SELECT is((SELECT * FROM wrong), NULL, 'then all is true');
SAVEPOINT no_side;
DROP TRIGGER zz_docpatterns_90_subset_fields_cold_guard ON lost_cold_cold;
DROP TRIGGER zz_docpatterns_90_subset_fields_cold_guard_truncate ON lost_cold_cold;
ALTER TABLE lost_cold_cold RENAME TO kept_elsewhere;
SELECT throws_ok($$SELECT pattern_repair('lost', 'cold')$$, '55000', NULL, 'nor is a table made that was lost');
SELECT is(pattern_repair('lost', 'cold', accept_loss => true), 0::bigint, 'unless this is accepted, too');
SELECT is((SELECT * FROM wrong), NULL, 'which makes an empty one');
ROLLBACK TO no_side;

-- Tables whose names differ at the end only
SELECT repeat('long_', 11) AS stem \gset
CREATE FUNCTION pg_temp.all_patterns(t text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('CREATE TABLE %I (id int PRIMARY KEY, doc bson)', t);
  PERFORM outlier_enable(t, 'a', 2), subset_fields_enable(t, cold => '{cold}'), versioning_enable(t), change_feed_enable(t), preallocated_enable(t, 'places', preallocated_pool(2)), approximation_enable(t, 'hits', slots => 2),
          attribute_enable(t, 'releases', prefix => 'release_'), polymorphic_enable(t, by => 'kind'), schema_versioning_enable(t),
          computed_enable(t, 'logged', 'p', '{n: {$count: {}}}', mode => 'deferred'), rollup_enable(t, name => left(t, 50) || right(t, 3) || 'sums', time_field => 'at', levels => '{day}', group_by => '{g}', fields => '{m: {$count: {}}}');
  PERFORM polymorphic_variant(t, 'x', schema => '{properties: {y: {bsonType: "int"}}}');
  EXECUTE format('INSERT INTO %I VALUES (1, ''{a: [1, 2, 3], cold: 4, kind: "x", hits: 0}'')', t);
  EXECUTE format('UPDATE %I SET doc = bson_set(doc, ''b'', 1)', t);
END
$$;
SELECT lives_ok(format('SELECT pg_temp.all_patterns(%L)', :'stem' || n), 'a table with a long name') FROM generate_series(101, 103) n;
SELECT bucket_create(left(:'stem', 54) || 'mm' || n, 'at timestamptz, v float8', time_field => 'at', span => '1 hour') FROM generate_series(1, 3) n \g /dev/null
SELECT is_empty($$SELECT * FROM pattern_check() v WHERE rel::text LIKE 'long\_%'$$, 'has all that belongs to it');
SELECT is((SELECT array_agg(DISTINCT outlier_count(rel, 1)) FROM pattern_list() WHERE rel::text LIKE 'long\_%' AND pattern = 'outlier'), '{3}', 'and finds it');

SELECT pattern_disable('b', 'a'), pattern_disable('b', 'cold'), pattern_disable('p', 'n') \g /dev/null
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'zz_docpatterns_00_anchor%' AND tgrelid = 'b'::regclass), 0::bigint, 'nothing is left of a declaration that has ended');
-- Columns that patterns need cannot be dropped
CREATE TABLE needed (id int PRIMARY KEY, doc bson, d2 bson, other int) PARTITION BY RANGE (id);
CREATE TABLE needed_1 PARTITION OF needed FOR VALUES FROM (0) TO (10);
CREATE TABLE needing (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('needing', 'a', 2), computed_enable('needing', 'needed', 'k', '{n: {$count: {}}}', source_doc_column => 'd2'),
  collection_create('needing_rows'), subset_enable('needing', 'top', 'needing_rows', 'k', '{s: 1}', 2) \g /dev/null
CREATE VIEW of_needed AS SELECT other, doc FROM needed;
INSERT INTO needing VALUES (1, '{a: [1, 2, 3]}');
SELECT throws_ok(format('ALTER TABLE %s DROP COLUMN %s CASCADE', t, c), '2BP01', NULL, format('%s of %s', c, t))
  FROM (VALUES ('needed', 'd2'), ('needing', 'doc'), ('needing', 'id'), ('needing_rows', 'doc')) AS v (t, c);
SELECT throws_ok('ALTER TABLE needing DROP COLUMN id', '2BP01', NULL, 'a key without CASCADE');
SELECT lives_ok('ALTER TABLE needed DROP COLUMN doc CASCADE, DROP COLUMN other', 'others can');
INSERT INTO needed VALUES (1, '{k: 1}');
SELECT is((SELECT doc::text FROM needing_whole), '{"a": [1, 2, 3], "n": 1, "top": []}', 'and all goes on');
SELECT lives_ok($$SELECT pattern_disable('needing', n) FROM unnest('{a,n,top}'::text[]) n$$, 'declarations end');
SELECT lives_ok('ALTER TABLE needed DROP COLUMN d2', 'and columns are free');

SELECT * FROM finish();
ROLLBACK;
