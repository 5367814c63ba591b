-- A table with patterns gets another owner. The former one, who could have changed what patterns have made, gains nothing by it.
BEGIN;
SET client_min_messages = error;
SELECT plan(133);

CREATE ROLE own_old; CREATE ROLE own_new; CREATE ROLE own_friend;
CREATE SCHEMA own; GRANT ALL ON SCHEMA own TO own_old, own_new, own_friend; GRANT CREATE ON SCHEMA own TO PUBLIC;
SET search_path = own, public, pg_temp;
CREATE TABLE own.taken (who text, how text); GRANT ALL ON own.taken TO PUBLIC;
-- what belongs to whom among all that is in the schema, but for what the old owner is to keep
CREATE FUNCTION pg_temp.owners() RETURNS text LANGUAGE sql AS $$
  SELECT coalesce(string_agg(DISTINCT o.object || ' ' || o.owner::regrole, ', ' ORDER BY o.object || ' ' || o.owner::regrole), '') FROM (
    SELECT c.oid::regclass::text, c.relowner FROM pg_class c WHERE c.relnamespace = 'own'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'f')
    UNION ALL SELECT f.oid::regprocedure::text, f.proowner FROM pg_proc f WHERE f.pronamespace = 'own'::regnamespace) AS o (object, owner)
  WHERE o.owner = 'own_old'::regrole
$$;

-- Everything follows, as it was declared --------------------------------------------------------------------------------------

SET ROLE own_old;
SELECT collection_create('b'); SELECT outlier_enable('b', 'x', 2); SELECT versioning_enable('b');
SELECT collection_create('a'); SELECT attribute_enable('a', 'specs', prefix => 's_');
SELECT collection_create('k'); SELECT polymorphic_enable('k', 'kind', common => '{required: ["n"]}');
SELECT polymorphic_variant('k', 'one', '{properties: {m: {bsonType: "int"}}}');
SELECT collection_create('s'); SELECT collection_create('c'); SELECT computed_enable('c', 's', 'of', '{n: {$sum: "$q"}}', mode => 'on_read');
SELECT collection_create('sc'); SELECT single_collection_enable('sc', related_field => 'r', type_field => 't', types => ARRAY['it''s']);
SELECT single_table_create('st'); SELECT single_table_entity('st', 'order', 'O#{id}', 'O');
SELECT collection_create('people'); SELECT schema_versioning_enable('people', current => 2);
SELECT schema_versioning_step('people', 1, 2, up_update => '{$set: {b: 1}}');
SELECT bucket_create('m', 'dev int, ts timestamptz, v float8', group_by => ARRAY['dev'], time_field => 'ts', span => '1 hour');
CREATE INDEX ON people ((people_as_v2(doc)));
ALTER VIEW b_whole RENAME TO b_all; GRANT SELECT ON b, b_all TO own_friend;
INSERT INTO b (doc) VALUES ('{_id: 1, x: [1, 2, 3]}'); INSERT INTO people (doc) VALUES ('{_id: 1, schema_version: 1}');
INSERT INTO m VALUES (1, '2020-01-01', 1);
RESET ROLE;
SELECT lives_ok(format('ALTER %s %s OWNER TO own_new', CASE WHEN t = 'm' THEN 'FOREIGN TABLE' ELSE 'TABLE' END, t), t || ' gets another owner')
  FROM unnest('{b,a,k,s,c,sc,st,people,m}'::text[]) t;
SELECT is(pg_temp.owners(), '', 'with everything that was made for it');
SET ROLE own_new;
SELECT is((SELECT string_agg(v::text, ' ') FROM unnest('{b,a,k,c,sc,st,people,m}'::regclass[]) t CROSS JOIN LATERAL pattern_check(t) v), NULL, 'in order');
SELECT is((SELECT doc ->> 'x' FROM b_all), '[1, 2, 3]', 'under the names that the views had');
SELECT is((SELECT doc ->> 'b' FROM people_v2), '1', 'and showing what they showed');
RESET ROLE;
SELECT ok(has_table_privilege('own_friend', 'b_all', 'SELECT'), 'to those they were shown to');
SELECT is((SELECT string_agg(pattern_disable(t, name)::text, ' ') FROM unnest('{b,a,k,c,sc,st,people}'::regclass[]) t CROSS JOIN LATERAL (SELECT d.name FROM pattern_list(t) d WHERE d.pattern <> 'polymorphic_variant') l) IS NOT NULL, true, 'all can be ended');
SELECT is((SELECT string_agg(relname, ' ') FROM pg_class WHERE relnamespace = 'own'::regnamespace AND relkind = 'v' AND relname <> 'm_buckets'), NULL, 'and no view is left');

-- Functions --------------------------------------------------------------------------------------------------------------------

SET ROLE own_old;
CREATE TABLE p2 (id int PRIMARY KEY, doc bson);
SELECT schema_versioning_enable('p2', current => 2);
SELECT schema_versioning_step('p2', 1, 2, up_update => '{$set: {b: 1}}');
CREATE OR REPLACE FUNCTION p2_as_v2(doc bson) RETURNS bson LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET work_mem = '1MB' AS $$
BEGIN INSERT INTO own.taken VALUES (current_user, 'p2_as_v2'); RETURN doc; END $$;
RESET ROLE;
SELECT lives_ok('ALTER TABLE p2 OWNER TO own_new', 'a generated function that was replaced');
SELECT is((SELECT row(proowner::regrole, prosecdef, proconfig, provolatile, (SELECT lanname FROM pg_language l WHERE l.oid = prolang))::text FROM pg_proc WHERE oid = 'p2_as_v2(bson)'::regprocedure),
  '(own_new,f,,i,sql)', 'is made again, and nothing is left of it');
INSERT INTO p2 VALUES (1, '{}'); SELECT doc FROM p2_v2; SELECT p2_as_v2(doc) FROM p2; DROP TABLE p2 CASCADE;
SELECT is((SELECT count(*) FROM taken), 0::bigint, 'no code of the former owner has run');

SET ROLE own_old;
CREATE TABLE p3 (id int PRIMARY KEY, doc bson);
CREATE FUNCTION p3_up(doc bson) RETURNS bson LANGUAGE sql IMMUTABLE RETURN doc;
SELECT schema_versioning_enable('p3', current => 2);
SELECT schema_versioning_step('p3', 1, 2, up => 'p3_up(bson)');
RESET ROLE;
SELECT throws_ok('ALTER TABLE p3 OWNER TO own_new', '55000', NULL, 'a step that the former owner could replace is not called with the rights of the new one');
ALTER FUNCTION p3_up OWNER TO own_new;
SELECT lives_ok('ALTER TABLE p3 OWNER TO own_new', 'and is when it belongs to the new one');
DROP TABLE p3 CASCADE;

SET ROLE own_old;
CREATE TABLE p4 (id int PRIMARY KEY, doc bson);
CREATE FUNCTION p4_counted(t text) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN true;
SELECT outlier_enable('p4', 'x', 2);
CREATE STATISTICS p4_side ON (p4_counted(n::text)), chunk FROM p4_x_extras;
RESET ROLE;
SELECT throws_ok('ALTER TABLE p4 OWNER TO own_new', '55000', NULL, 'statistics that ANALYZE would compute with the rights of the new owner');
DROP STATISTICS p4_side;
SELECT lives_ok('ALTER TABLE p4 OWNER TO own_new', 'and without them');
DROP TABLE p4 CASCADE;

SET ROLE own_old;
CREATE TABLE h (id int PRIMARY KEY, doc bson);
SELECT versioning_enable('h');
INSERT INTO h VALUES (1, '{}'); DELETE FROM h;
CREATE OR REPLACE VIEW h_deleted AS SELECT length(a.rolpassword) + r.key AS key FROM h_revisions r, pg_authid a WHERE docpatterns._versioning_sees_all('own.h'::regclass, 'revision');
ALTER FUNCTION h_as_of(timestamptz) SECURITY DEFINER;
RESET ROLE;
SELECT lives_ok('ALTER TABLE h OWNER TO CURRENT_USER', 'a view of a history that shows a catalog');
SELECT unalike(pg_get_viewdef('h_deleted'), '%authid%', 'is made again');
SELECT is((SELECT prosecdef FROM pg_proc WHERE oid = 'h_as_of(timestamptz)'::regprocedure), false, 'so is the function that reads it');
SELECT is((SELECT string_agg(v::text, ' ') FROM pattern_check('h') v), NULL, 'in order');
DROP TABLE h CASCADE;

-- Views ------------------------------------------------------------------------------------------------------------------------

SET ROLE own_old;
CREATE TABLE w (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('w', 'x', 2);
CREATE RULE gain AS ON INSERT TO w_whole DO ALSO INSERT INTO taken VALUES (current_user, 'rule');
CREATE FUNCTION own.gain() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO own.taken VALUES (current_user, TG_RELID::regclass::text); RETURN coalesce(NEW, OLD); END $$;
CREATE TRIGGER a_gain INSTEAD OF INSERT ON w_whole FOR EACH ROW EXECUTE FUNCTION gain();
GRANT INSERT ON w TO own_old;
RESET ROLE;
SELECT lives_ok('ALTER TABLE w OWNER TO own_new', 'a view with a rule and a trigger');
SELECT is((SELECT count(*) FROM pg_rewrite WHERE ev_class = 'w_whole'::regclass AND rulename <> '_RETURN'), 0::bigint, 'loses the rule');
SELECT is((SELECT count(*) FROM pg_trigger WHERE tgrelid = 'w_whole'::regclass), 1::bigint, 'and the trigger');
SET ROLE own_old; CREATE VIEW over_whole AS SELECT 1 AS one FROM w_whole; RESET ROLE;
SELECT lives_ok('ALTER TABLE w OWNER TO own_friend', 'a view that others depend on');
SELECT is((SELECT relowner::regrole::text FROM pg_class WHERE oid = 'w_whole'::regclass), 'own_new', 'stays with its owner');
SELECT is((SELECT concat_ws(', ', what, expected, found) FROM pattern_check('w')), 'owner of own.w_whole, own_friend, own_new', 'and the check says whose it is');
SELECT throws_ok($$SELECT pattern_repair('w')$$, '55000', 'view "w_whole" of pattern "x" has another owner than table "w"', 'so does a repair');
DROP VIEW w_whole CASCADE; DROP TABLE w CASCADE;

-- A view that is no longer as it was made, on which nothing depends, is named. pgTAP does not see warnings.
SET ROLE own_old;
SELECT collection_create('v'); SELECT outlier_enable('v', 'x', 2); SELECT attribute_enable('v', 'specs', prefix => 's_'); SELECT versioning_enable('v');
SELECT polymorphic_enable('v', 'kind', common => '{required: ["n"]}'); SELECT polymorphic_variant('v', 'one', '{properties: {m: {bsonType: "int"}}}');
SELECT schema_versioning_enable('v', current => 2); SELECT schema_versioning_step('v', 1, 2, up_update => '{$set: {b: 1}}');
SELECT collection_create('s2'); SELECT computed_enable('v', 's2', 'of', '{n: {$sum: "$q"}}', mode => 'on_read', name => 'sum');
SELECT single_collection_enable('v', related_field => 'r', type_field => 't', types => ARRAY['it''s']);
CREATE TABLE expected_views AS SELECT u.view FROM unnest('{v_whole,v_wide,v_v1,v_current,v_one,v_common,v_deleted,v_history,v_sum_view,"v_it''s"}'::text[]) AS u (view);
DO $$ DECLARE r record; BEGIN
  FOR r IN SELECT v.view FROM expected_views v LOOP EXECUTE format('DROP VIEW IF EXISTS %I CASCADE', r.view); EXECUTE format('CREATE VIEW %I AS SELECT 1 AS one', r.view); END LOOP; END $$;
RESET ROLE;
SELECT lives_ok('ALTER TABLE v OWNER TO own_new', 'views that were replaced');
SELECT is((SELECT string_agg(substr(what, 10), ' ' ORDER BY what) FROM pattern_check('v') WHERE what LIKE 'owner of %' AND expected = 'own_new' AND found = 'own_old'),
  (SELECT string_agg(format('own.%I', view), ' ' ORDER BY format('own.%I', view)) FROM expected_views), 'all of them have another owner');
SELECT throws_ok(format('SELECT pattern_repair(%L, %L)', 'v', name), '55000', NULL, format('a repair of %s says so, too', name)) FROM pattern_list('v') ORDER BY pattern;
DO $$ DECLARE r record; BEGIN FOR r IN SELECT v.view FROM expected_views v LOOP EXECUTE format('DROP VIEW %I', r.view); END LOOP; END $$;
SELECT lives_ok(format('SELECT pattern_repair(%L, %L)', 'v', name), format('%s is repaired when they are gone', name)) FROM pattern_list('v') WHERE name IN ('x', 'schema_version') ORDER BY name;
SELECT is(pg_get_viewdef('v_whole') ~ 'pattern_whole', true, 'and makes its view');
DROP TABLE v CASCADE;


-- Tables that patterns keep, and code beside the table -----------------------------------------------------------------------

SET ROLE own_old;
CREATE TABLE t (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('t', 'x', 2);
CREATE TRIGGER a_gain AFTER INSERT ON t_x_extras FOR EACH ROW EXECUTE FUNCTION gain();
GRANT ALL ON t_x_extras TO own_friend; GRANT INSERT ON t TO own_friend;
RESET ROLE;
SELECT throws_ok('ALTER TABLE t OWNER TO own_new', '55000', 'cannot change the owner of table "t_x_extras" to "own_new"', 'a trigger of the former owner''s on extras');
DROP TRIGGER a_gain ON t_x_extras;
SET ROLE own_old; CREATE RULE gain AS ON INSERT TO t_x_extras DO ALSO INSERT INTO taken VALUES (current_user, 'rule'); RESET ROLE;
SELECT throws_ok('ALTER TABLE t OWNER TO own_new', '55000', NULL, 'a rule');
DROP RULE gain ON t_x_extras;
SET ROLE own_old; CREATE FUNCTION own.one(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1'; CREATE INDEX one ON t_x_extras (own.one(key)); RESET ROLE;
SELECT throws_ok('ALTER TABLE t OWNER TO own_new', '55000', NULL, 'an index over a function');
DROP INDEX one;
SET ROLE own_old; ALTER TABLE t_x_extras ADD CHECK (own.one(key) = 1); RESET ROLE;
SELECT throws_ok('ALTER TABLE t OWNER TO own_new', '55000', NULL, 'a constraint');
ALTER TABLE t_x_extras DROP CONSTRAINT t_x_extras_key_check;
SET ROLE own_old; ALTER TABLE t_x_extras ADD more int DEFAULT own.one(1); RESET ROLE;
SELECT throws_ok('ALTER TABLE t OWNER TO own_new', '55000', NULL, 'a default');
ALTER TABLE t_x_extras DROP more;
SELECT lives_ok('ALTER TABLE t OWNER TO own_new', 'without any of these they follow');
SELECT is((SELECT relacl::text FROM pg_class WHERE oid = 't_x_extras'::regclass), '{own_new=arwdDxtm/own_new}', 'and nobody else has rights on them')
  WHERE current_setting('server_version_num')::int >= 170000
UNION ALL SELECT is((SELECT relacl::text FROM pg_class WHERE oid = 't_x_extras'::regclass), '{own_new=arwdDxt/own_new}', 'and nobody else has rights on them')
  WHERE current_setting('server_version_num')::int < 170000;

SET ROLE own_old;
CREATE TABLE target (id int PRIMARY KEY, doc bson); CREATE TABLE source (id int PRIMARY KEY, doc bson);
SELECT computed_enable('target', 'source', 'of', '{n: {$sum: 1}}', target_field => 'k');
CREATE TRIGGER a_gain BEFORE UPDATE ON target FOR EACH ROW EXECUTE FUNCTION gain();
RESET ROLE;
SELECT throws_ok('ALTER TABLE target OWNER TO own_new', '55000', 'table "target" has code that would run with the privileges of "own_new"', 'a trigger on a table that is written to when others write');
ALTER FUNCTION gain() OWNER TO own_new;
CREATE RULE gain AS ON UPDATE TO target DO ALSO INSERT INTO taken VALUES (current_user, 'rule');
SELECT throws_ok('ALTER TABLE target OWNER TO own_new', '55000', 'table "target" has code that would run with the privileges of "own_new"', 'a rule there');
DROP RULE gain ON target;
GRANT TRIGGER ON target TO own_friend;
SELECT throws_ok('ALTER TABLE target OWNER TO own_new', '55000', 'table "target" has code that would run with the privileges of "own_new"', 'a role that could make a trigger afterwards');
REVOKE TRIGGER ON target FROM own_friend;
SELECT lives_ok('ALTER TABLE target OWNER TO own_new; ALTER TABLE source OWNER TO own_new', 'may stay if its function is the new owner''s');
SET ROLE own_old;
CREATE TABLE parts (id int PRIMARY KEY, doc bson) PARTITION BY RANGE (id); CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
SELECT outlier_enable('parts', 'x', 2);
RESET ROLE;
SELECT throws_ok('ALTER TABLE parts OWNER TO own_new', '55000', NULL, 'the former owner could put a trigger on a partition');
CREATE RULE gain AS ON UPDATE TO parts_1 DO ALSO INSERT INTO taken VALUES (current_user, 'rule');
SELECT throws_ok('ALTER TABLE parts_1 OWNER TO own_new; ALTER TABLE parts OWNER TO own_new', '55000', NULL, 'a rule on a partition');
DROP RULE gain ON parts_1;
SELECT lives_ok('ALTER TABLE parts_1 OWNER TO own_new; ALTER TABLE parts OWNER TO own_new', 'which goes first');
SELECT lives_ok('ALTER TABLE parts OWNER TO own_new', 'a change that is none');
SELECT is(pg_temp.owners(), 'own.over_whole own_old', 'of all that there is nothing is left with the old owner') WHERE false
UNION ALL SELECT is((SELECT count(*) FROM taken), 0::bigint, 'no code of the former owner has run');

-- Who may create in the schema of the extension cannot add to what patterns do -------------------------------------------------

GRANT CREATE ON SCHEMA public TO own_old;
SET ROLE own_old;
CREATE FUNCTION public._outlier_follow_owner(regclass, oid) RETURNS void LANGUAGE sql AS $$ INSERT INTO own.taken VALUES (current_user, 'follow') $$;
CREATE FUNCTION public._computed_paths(public.bson, OUT path text, OUT kept bool, OUT guarded bool, OUT derived bool) RETURNS SETOF record LANGUAGE sql AS $$ INSERT INTO own.taken VALUES (current_user, 'paths') RETURNING 'x', true, true, true $$;
CREATE FUNCTION public._change_feed_pending(regclass, text) RETURNS text LANGUAGE sql AS $$ INSERT INTO own.taken VALUES (current_user, 'pending') RETURNING 'SELECT 1' $$;
CREATE FUNCTION public._versioning_build_end(regclass, text) RETURNS text LANGUAGE sql AS $$ INSERT INTO own.taken VALUES (current_user, 'end') RETURNING '1' $$;
CREATE FUNCTION public._reference_create_triggers(regclass, public.bson) RETURNS void LANGUAGE sql AS $$ INSERT INTO own.taken VALUES (current_user, 'triggers') $$;
RESET ROLE;
SELECT collection_create('mend'); SELECT collection_create('mend_source'); SELECT reference_enable('mend', 'ref', 'mend_source', live => '{n}');
DO $$ BEGIN EXECUTE format('DROP TRIGGER %I ON mend', (SELECT max(tgname) FROM pg_trigger WHERE tgrelid = 'mend'::regclass AND tgargs = docpatterns._pattern_arguments('of', 'ref') AND tgname NOT LIKE '%anchor%')); END $$;
SELECT is((SELECT count(*) FROM pattern_check('mend') WHERE what = 'trigger'), 1::bigint, 'a trigger that is missing');
SELECT pattern_repair('mend');
CREATE TABLE i (id int PRIMARY KEY, doc bson); CREATE TABLE j (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('i', 'x', 2), versioning_enable('i'), computed_enable('i', 'j', 'of', '{n: {$sum: 1}}', target_field => 'k'), change_feed_enable('i');
SELECT lives_ok('ALTER TABLE i OWNER TO own_new; ALTER TABLE j OWNER TO own_new', 'a new owner');
SELECT lives_ok(format('CALL pattern_build(''i'', %L, NULL)', name), 'a build of ' || name) FROM pattern_list('i') WHERE pattern IN ('versioning', 'change_feed') ORDER BY name;
SELECT is((SELECT string_agg(taken::text, ' ') FROM taken), NULL, 'no function that was not the extension''s was called');

-- A function that only the declaration names; and code on tables that have no patterns is nothing to us -----------------------

SET ROLE own_old;
CREATE FUNCTION fee(t text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS
  $$ BEGIN PERFORM fee_note(); RETURN t; END $$;
CREATE FUNCTION fee_note() RETURNS void LANGUAGE sql AS
  $$ INSERT INTO own.taken VALUES (current_user, 'payload') $$;
CREATE TABLE letters (id int PRIMARY KEY, doc bson);
SELECT payload_enable('letters', 'body', '{fee: "function:fee(text)::text", n: "regex:^n(.)"}');
INSERT INTO letters VALUES (1, '{body: "n1"}');
CREATE TABLE bare (id int);
CREATE TRIGGER gain BEFORE INSERT ON bare FOR EACH ROW EXECUTE FUNCTION gain();
RESET ROLE;
DELETE FROM taken;
SELECT throws_ok('ALTER TABLE letters OWNER TO own_new', '55000', NULL, 'a function that extracts fields');
ALTER FUNCTION fee(text) RENAME TO fie;
SELECT throws_ok('ALTER TABLE letters OWNER TO own_new', '42883', NULL, 'also while it has another name');
ALTER FUNCTION fie(text) RENAME TO fee; ALTER FUNCTION fee(text) OWNER TO own_new;
SELECT lives_ok('ALTER TABLE letters OWNER TO own_new', 'unless it is the new owner''s');
SELECT lives_ok('ALTER TABLE bare OWNER TO own_new', 'a table without patterns goes as it is');

-- A table that a pattern keeps belongs to another role -----------------------------------------------------------------------

CREATE FUNCTION pg_temp.owners_of(like_this text) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(DISTINCT relowner::regrole::text, ' ') FROM pg_class WHERE relnamespace = 'own'::regnamespace AND relkind IN ('r', 'v') AND relname ~ like_this
$$;
SET ROLE own_old;
CREATE TABLE f (id int PRIMARY KEY, doc bson); SELECT outlier_enable('f', 'x', 2, name => 'x'); SELECT versioning_enable('f');
SELECT subset_fields_enable('f', cold => ARRAY['c'], name => 'cold');
INSERT INTO f VALUES (1, '{x: [1, 2, 3, 4], c: "cold"}');
RESET ROLE;
CREATE TEMPORARY TABLE was AS SELECT doc FROM f_whole;
ALTER TABLE f_x_extras OWNER TO own_friend; ALTER TABLE f_cold_cold OWNER TO own_friend; ALTER TABLE f_revisions OWNER TO own_friend;
SELECT is((SELECT string_agg(format('%s: %s, %s', what, expected, found), '; ' ORDER BY what) FROM pattern_check('f')),
  'owner of own.f_cold_cold: own_old, own_friend; owner of own.f_revisions: own_old, own_friend; owner of own.f_x_extras: own_old, own_friend', 'the check says whose they are');
SELECT throws_ok($$UPDATE f SET doc = '{x: [1, 2, 3, 4, 5]}'$$, '55000', NULL, 'and nothing is written that could not be put there');
ALTER TABLE f RENAME TO g;
SELECT throws_ok(format('SELECT %s(%L, %L)', call, 'g', name), '55000', NULL, format('no %s of %s', call, name))
  FROM unnest('{pattern_repair,pattern_disable}'::text[]) call, unnest('{x,cold,revision}'::text[]) name;
SELECT throws_ok('CALL pattern_build(''g'', ''x'', NULL)', '55000', NULL, 'nor a build');
SELECT is((SELECT count(*) FROM pg_class WHERE relnamespace = 'own'::regnamespace AND relname LIKE 'g\_%'), 0::bigint, 'so that no empty table is made beside them');
ALTER TABLE g OWNER TO own_old;
SELECT is(pg_temp.owners_of('^[fg](_|$)'), 'own_old', 'ALTER TABLE .. OWNER TO the same owner brings them together again');
SELECT is((SELECT string_agg(v::text, ' ') FROM pattern_check('g') v), NULL, 'in order');
SELECT is((SELECT doc::text FROM f_whole), (SELECT doc::text FROM was), 'with all that they held');
SET session_replication_role = replica; ALTER TABLE g OWNER TO own_new; RESET session_replication_role;
SELECT is((SELECT count(*) FROM pattern_check('g') WHERE what LIKE 'owner of %'), 3::bigint, 'a change of owner that the event trigger does not hear is seen');
ALTER TABLE g OWNER TO own_new;
SELECT is(pg_temp.owners_of('^[fg](_|$)'), 'own_new', 'and made good in the same way, views included');
SELECT is((SELECT string_agg(v::text, ' ') FROM pattern_check('g') v), NULL, 'in order');
SELECT is((SELECT doc::text FROM f_whole), (SELECT doc::text FROM was), 'with all that they held');
SELECT lives_ok(format('SELECT pattern_disable(%L, %L)', 'g', name), 'ended: ' || name) FROM unnest('{x,cold}'::text[]) name;
SELECT is((SELECT doc - 'revision' FROM g), '{"x": [1, 2, 3, 4], "c": "cold"}', 'and the document is whole');

-- Two tables of a pattern get different owners: what one of them must be told is refused, and when they have the same one again all is true.
CREATE FUNCTION pg_temp.try(sql text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN EXECUTE sql; RETURN ''; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$;
CREATE SCHEMA apart; GRANT ALL ON SCHEMA apart TO own_old, own_new; SET search_path = apart, own, public, pg_temp;
CREATE TABLE pairs (n int, declaration text, written_source text, written_target text);
INSERT INTO pairs VALUES
  (1, $$reference_enable('t1', 'ref', 's1', live => '{n}')$$, '{n: 2}', '{ref: {_id: 1}}'),
  (2, $$relationship_enable('t2', 'r', 's2', 'back')$$, '{n: 2}', '{r: [1]}'),
  (3, $$computed_enable('t3', 's3', 'of', '{sum: {$sum: "$n"}}')$$, '{of: 2}', '{}'),
  (4, $$subset_enable('t4', 'top', 's4', 'of', '{n: -1}', 3)$$, '{of: 2}', '{}'),
  (5, $$outlier_enable('t5', 'x', 2, extras => 's5', on_field => 'of', keep => 0)$$, '{of: 2}', '{x: [{a: 1}, {a: 2}, {a: 3}]}'),
  (6, $$polymorphic_merge('t6', 'k', '{s6}')$$, '{k: 2}', '{k: 2}'),
  (7, $$tree_enable('s7', parent => 'p', ancestors => 'a', name => 'tr'), tree_attach('t7', 's7', 'cat', 'anc')$$, '{p: 9}', '{cat: 1}'),
  (8, $$tree_enable('s8', parent => 'p', ancestors => 'a', name => 'tr'), rollup_enable('t8', 'ro', '{n: {$sum: 1}}', group_by => '{cat}', tree => 's8')$$, '{p: 9}', '{cat: 1}'),
  (9, $$fanout_enable('t9', 'walls9', 'author', 's9', 'follower', 'followee')$$, '{follower: 1, followee: 2}', '{author: 1}');
GRANT SELECT ON pairs TO own_old;
SET ROLE own_old;
SELECT collection_create(k || n) FROM pairs, unnest('{s,t}'::text[]) k;
DO $$ DECLARE r record; BEGIN FOR r IN SELECT * FROM pairs ORDER BY n LOOP EXECUTE 'SELECT ' || r.declaration; END LOOP; END $$;
SELECT collection_insert(('s' || n)::regclass, '{_id: 9, of: 1}'::bson, '{_id: 1, n: 1, of: 1, k: 1, follower: 2, followee: 1}') FROM pairs WHERE n <> 5;
SELECT collection_insert(('t' || n)::regclass, bson_set(written_target::bson, '_id', 1)) FROM pairs WHERE n <> 6;
SELECT collection_insert(('s' || n)::regclass, '{_id: 9, of: 1}'::bson, '{_id: 1, n: 1, of: 1, k: 1, follower: 2, followee: 1}') FROM pairs WHERE n = 5;
RESET ROLE;
SELECT is((SELECT string_agg(v::text, ' ') FROM pattern_check() v WHERE rel::text ~ '^[st][0-9]$'), NULL, 'declared');
CREATE FUNCTION pg_temp.apart(k text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE r record; done text; BEGIN
  FOR r IN SELECT * FROM pairs ORDER BY n LOOP
    EXECUTE format('ALTER TABLE %I OWNER TO own_new', k || r.n);
    RETURN NEXT cmp_ok((SELECT count(*) FROM unnest(ARRAY['s' || r.n, 't' || r.n]) t CROSS JOIN LATERAL pattern_check(t::regclass) v WHERE what LIKE 'owner of %'), '>', 0::bigint, format('the check says so: %s', r.declaration));
    done := concat_ws(' ', CASE pg_temp.try(format('UPDATE %I SET doc = doc || %L WHERE doc -> %L = %L', 's' || r.n, r.written_source, '_id', '1')) WHEN '55000' THEN 'source' ELSE '-' END,
      CASE pg_temp.try(format('INSERT INTO %I (doc) VALUES (bson_set(%L, %L, 2))', 't' || r.n, r.written_target, '_id')) WHEN '55000' THEN 'target' ELSE '-' END);
    RETURN NEXT is(done, 'source target', format('%s, the other owner is that of %s', r.declaration, k));
    EXECUTE format('ALTER TABLE %I OWNER TO own_old', k || r.n);
    PERFORM collection_insert(('t' || r.n)::regclass, bson_set(r.written_target::bson, '_id', CASE k WHEN 's' THEN 3 ELSE 4 END)) WHERE r.n <> 6;
  END LOOP; END $$;
SELECT pg_temp.apart('s');
SELECT is((SELECT string_agg(v::text, ' ') FROM pattern_check() v WHERE rel::text ~ '^[st][0-9]$'), NULL, 'and when they have one owner again, in the same session too, all is true');
SELECT pg_temp.apart('t');
SELECT is((SELECT string_agg(v::text, ' ') FROM pattern_check() v WHERE rel::text ~ '^[st][0-9]$'), NULL, 'so it is the other way round');
DROP SCHEMA apart CASCADE; SET search_path = own, public, pg_temp;

-- REASSIGN OWNED hands everything over as it is, and no event trigger hears of it: nothing is told.
SET ROLE own_old;
CREATE TABLE re (id int PRIMARY KEY, doc bson); SELECT outlier_enable('re', 'x', 2); INSERT INTO re VALUES (1, '{x: [1, 2, 3]}');
CREATE OR REPLACE VIEW re_whole WITH (security_invoker = true) AS SELECT id, bson_set(doc, 'y', 1) AS doc FROM re;
RESET ROLE;
CREATE ROLE own_last; GRANT USAGE ON SCHEMA own TO own_last;
REASSIGN OWNED BY own_old TO own_last;
SELECT is((SELECT string_agg(v::text, ' ') FROM pattern_check('re') v), NULL, 'after REASSIGN OWNED all belongs to one role');
SELECT is((SELECT doc ->> 'y' FROM re_whole), '1', 'with views as they were made last');
DROP TABLE re CASCADE;

SELECT * FROM finish();
ROLLBACK;
