-- Types that somebody made to run his code: a domain with a check as the key of a table and as the type of a column that a pattern
-- fills, a domain over bson for documents, a type with implicit casts to and from documents. What a superuser starts on such a table by
-- the calls that work for its owner runs that code as the owner, never as him.
\set ECHO none
SET client_min_messages = error;
SET timezone = 'UTC';
SELECT plan(10);
DROP ROLE IF EXISTS dp_type_owner;
CREATE ROLE dp_type_owner;
CREATE SCHEMA evil AUTHORIZATION dp_type_owner;
CREATE SEQUENCE by_owner; CREATE SEQUENCE by_others; CREATE SEQUENCE cast_by_others;
GRANT USAGE ON by_owner, by_others, cast_by_others TO PUBLIC;
SET ROLE dp_type_owner;
SET search_path = evil, public;
CREATE FUNCTION spy(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval(CASE current_user WHEN 'dp_type_owner' THEN 'public.by_owner' ELSE 'public.by_others' END); RETURN true; END $$;
CREATE DOMAIN number AS int CHECK (evil.spy(VALUE::text));
CREATE DOMAIN document AS bson CHECK (evil.spy(VALUE::text));
CREATE TYPE pair AS (a int);
CREATE FUNCTION pair_bson(pair) RETURNS bson LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('public.cast_by_others') WHERE current_user <> 'dp_type_owner'; RETURN '{_id: "from a cast"}'; END $$;
CREATE FUNCTION pair_value(pair) RETURNS bson_value LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('public.cast_by_others') WHERE current_user <> 'dp_type_owner'; RETURN '"from a cast"'; END $$;
CREATE FUNCTION pair_text(pair) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('public.cast_by_others') WHERE current_user <> 'dp_type_owner'; RETURN 'from a cast'; END $$;
CREATE FUNCTION value_pair(bson_value) RETURNS pair LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('public.cast_by_others') WHERE current_user <> 'dp_type_owner'; RETURN ROW(7); END $$;
CREATE CAST (pair AS bson) WITH FUNCTION pair_bson(pair) AS IMPLICIT;
CREATE CAST (pair AS bson_value) WITH FUNCTION pair_value(pair) AS IMPLICIT;
CREATE CAST (pair AS text) WITH FUNCTION pair_text(pair) AS ASSIGNMENT;
CREATE CAST (bson_value AS pair) WITH FUNCTION value_pair(bson_value) AS IMPLICIT;
CREATE TABLE things (id number PRIMARY KEY, note pair, doc bson);
CREATE TABLE parts (id number PRIMARY KEY, doc bson);
CREATE TABLE documents (id int PRIMARY KEY, doc document);
CREATE TABLE pairs (id pair PRIMARY KEY, doc bson);
SELECT throws_ok($$SELECT outlier_enable('documents', 'list', 2, doc_column => 'doc')$$, '42703', NULL, 'a domain over bson is no type of documents for a pattern');
SELECT lives_ok($$SELECT outlier_enable('things', 'list', 2), versioning_enable('things'), change_feed_enable('things'), subset_fields_enable('things', '{cold}'), attribute_enable('things', 'all', prefix => 'x_'),
  computed_enable('things', 'parts', 'of', '{n: {$sum: "$n"}}', mode => 'deferred', name => 'n'), query_table_create('by_n', 'things', '{n}', types => '{n: "evil.number"}', name => 'by_n')$$, 'patterns on a table whose keys have a type of their owner''s');
SELECT lives_ok($$SELECT outlier_enable('pairs', 'list', 2)$$, 'and on one whose key he can cast');
INSERT INTO parts SELECT i, bson_build('_id', i, 'of', i, 'n', i) FROM generate_series(1, 5) i;
INSERT INTO things SELECT i, ROW(i)::pair, bson_build('_id', i, 'n', i, 'list', bson_array(1, 2, 3), 'cold', 1, 'x_a', 1) FROM generate_series(1, 5) i;
INSERT INTO pairs SELECT ROW(i)::pair, bson_build('n', i, 'list', bson_array(1, 2, 3)) FROM generate_series(1, 3) i;
RESET ROLE;
SELECT setval('by_owner', 1, false), setval('by_others', 1, false), setval('cast_by_others', 1, false);
SELECT format('SELECT %L, pattern_repair(%L, %L)', name, rel, name), CASE WHEN pattern <> 'change_feed' THEN format('CALL pattern_build(%L, %L, NULL)', rel, name) END FROM pattern_list() WHERE rel::text ~ '^evil|^things|^pairs' ORDER BY rel::text, pattern, name \gexec
SELECT computed_refresh('things'), versioning_purge('things', now()), change_feed_purge('things', 1);
SELECT pattern_alter('things', 'list', '{threshold: 1}');
CALL pattern_build('things', 'list', NULL);
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
SELECT format('SELECT pattern_disable(%L, %L)', rel, name) FROM pattern_list() WHERE rel::text ~ 'things|pairs' ORDER BY rel::text, pattern DESC, name \gexec
-- what a history writes at the end of the transaction of a repair, into tables with indexes of the owner's
SET ROLE dp_type_owner;
CREATE TABLE dated (id int PRIMARY KEY, doc bson); CREATE TABLE counted (id int PRIMARY KEY, doc bson);
SELECT computed_enable('dated', 'counted', 'of', '{n: {$sum: 1}}', target_field => 'k', name => 'n'); SELECT versioning_enable('dated', kept => true);
INSERT INTO dated VALUES (1, '{k: 1}');
CREATE FUNCTION spied(bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM evil.spy(''); RETURN $1; END $$;
CREATE INDEX ON dated_changes (spied(change)); CREATE INDEX ON dated_revisions (spied(revision));
SET docpatterns.maintain = off; UPDATE dated SET doc = bson_set(doc, 'n', 7); RESET docpatterns.maintain;
RESET ROLE;
SELECT pattern_repair('dated', 'n');
SELECT ok(NOT (SELECT is_called FROM by_others), 'history is written as its owner, at the end of a repair by a superuser, too');
SELECT is((SELECT count(*) FROM dated_history WHERE revision = 2), 1::bigint, 'and it is written');
SELECT is((SELECT count(*) FROM things WHERE doc ->> 'cold' = '1' AND doc ->> 'list' = '[1, 2, 3]'), 5::bigint, 'a superuser repairs, builds, checks, alters and disables');
SELECT ok((SELECT is_called FROM by_owner), 'which runs code of the type''s owner as him');
SELECT ok(NOT (SELECT is_called FROM by_others), 'and not as the superuser');
SELECT ok(NOT (SELECT is_called FROM cast_by_others), 'nor his casts');
DROP SCHEMA evil CASCADE;
DROP OWNED BY dp_type_owner;
DROP ROLE dp_type_owner;
SELECT finish();
