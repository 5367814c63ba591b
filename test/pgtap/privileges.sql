-- Which rights a call needs: each public function and procedure that touches a table is called by somebody who has exactly the rights that
-- test/env/privileges.sql states, and it works; by somebody who has every other right on these tables, but one of those, for each of them; and by
-- somebody who has none. Both end with 42501. A function that the catalogue lacks fails the test, and so does docs/privileges.md when it says something else.
\set ECHO none
SET client_min_messages = error;
SET timezone = 'UTC';
SET statement_timeout = '100s';
SELECT plan(9);
DROP ROLE IF EXISTS dp_member, dp_caller, dp_table_owner;
CREATE ROLE dp_table_owner; CREATE ROLE dp_caller; CREATE ROLE dp_member IN ROLE dp_caller;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT CREATE ON SCHEMA public TO dp_table_owner;
SELECT format('GRANT CREATE ON DATABASE %I TO dp_table_owner', current_database()) \gexec
SET ROLE dp_table_owner;
-- tables without patterns
SELECT collection_create(c) FROM unnest('{docs,bare,others,third,blank}'::text[]) c;
INSERT INTO docs (doc) SELECT bson_build('_id', i, 'n', i, 'up', i - 1, 'tags', bson_array(1, 2, 3), 'ref', 1, 'kids', bson_array(i)) FROM generate_series(1, 3) i;
INSERT INTO bare (doc) SELECT bson_build('_id', i, 'n', i, 'kind', 'a', 'kids', bson_array(bson_build('_id', i, 'x', 1)), 'ts', timestamptz '2024-01-01') FROM generate_series(1, 3) i;
INSERT INTO others (doc) SELECT bson_build('_id', i, 'of', 1, 'n', i) FROM generate_series(1, 3) i;
INSERT INTO third (doc) SELECT bson_build('_id', i) FROM generate_series(11, 13) i;
CREATE INDEX docs_gin ON docs USING gin (doc);
SELECT collection_create_index('docs', '{n: 1}', name => 'docs_n');
CREATE TABLE rows (g int, ts timestamptz, v float8);
INSERT INTO rows VALUES (1, '2024-01-01', 1);
-- a table for each pattern, and those that it works with
SELECT collection_create(c) FROM unnest('{spilled,nodes,leaves,totals,facts,refs,named,counted,events,packed,slim,posts,followers,kinds,versions,revised,watched,shows,mixed,doctors,patients,queried,scores_of,chapters,stored,mail}'::text[]) c;
SELECT outlier_enable('spilled', 'tags', 2);
SELECT tree_enable('nodes', parent => 'up', ancestors => 'above'), tree_attach('leaves', 'nodes', 'in', ancestors => 'above');
SELECT computed_enable('totals', 'facts', 'of', '{n: {$count: {}}}', mode => 'deferred'), subset_enable('totals', 'first', 'facts', 'of', '{n: 1}', 2, name => 'first');
SELECT reference_enable('refs', 'to', 'named', live => '{title}', refresh => 'deferred');
SELECT approximation_enable('counted', 'hits', slots => 2);
SELECT rollup_enable('events', name => 'by_day', time_field => 'ts', levels => '{day}', fields => '{n: {$count: {}}}');
SELECT attribute_enable('packed', 'all', prefix => 'x_'), payload_enable('mail', 'body', '{first: "regex:(.)"}');
SELECT subset_fields_enable('slim', '{much}');
SELECT fanout_enable('posts', walls => 'walls', author => 'by', followers => 'followers', follower => 'who', followee => 'whom');
SELECT polymorphic_enable('kinds', by => 'kind'), polymorphic_variant('kinds', 'a', schema => '{}'), polymorphic_variant('kinds', 'b', schema => '{}');
SELECT schema_versioning_enable('versions', current => 2, write => 'accept'), schema_versioning_step('versions', 1, 2, up_update => '{$set: {a: 1}}', down_update => '{$unset: {a: 1}}');
SELECT versioning_enable('revised'), change_feed_enable('watched'), preallocated_enable('shows', 'seats', preallocated_pool(3), store => 'slots');
SELECT single_collection_enable('mixed', types => '{a,b}', views => false);
SELECT relationship_enable('doctors', 'patients', 'patients', 'doctors');
SELECT query_table_create('by_n', 'queried', '{n}');
SELECT single_table_create('app', 1, 'ttl');
SELECT single_table_entity('app', 'item', 'I#{id}', 'S');
SELECT bucket_create('measured', columns => 'g int, ts timestamptz, v float8', group_by => '{g}', time_field => 'ts');
SELECT kv_create('game'), kv_leaderboard('game', 'best', 'scores_of', 'n');
SELECT subset_split('chapters', field => 'parts', source => 'chapter_parts', on_field => 'of', keep => 1);
INSERT INTO spilled (doc) VALUES ('{_id: 1, tags: [1, 2, 3, 4]}');
INSERT INTO nodes (doc) VALUES ('{_id: 1}'), ('{_id: 2, up: 1}'), ('{_id: 3, up: 1}'), ('{_id: "leaf", up: 2}'); INSERT INTO leaves (doc) VALUES ('{_id: 1, in: 2}');
INSERT INTO totals (doc) VALUES ('{_id: 1}'); INSERT INTO facts (doc) VALUES ('{_id: 1, of: 1, n: 1}');
INSERT INTO named (doc) VALUES ('{_id: 1, title: "t"}'); INSERT INTO refs (doc) VALUES ('{_id: 1, to: 1}');
INSERT INTO counted (doc) VALUES ('{_id: 1, hits: 1}'); INSERT INTO events (doc) VALUES ('{_id: 1, ts: ISODate("2024-01-01")}');
INSERT INTO packed (doc) VALUES ('{_id: 1, x_a: 1}'); INSERT INTO slim (doc) VALUES ('{_id: 1, much: 1}'); INSERT INTO mail (doc) VALUES ('{_id: 1, body: "b"}');
INSERT INTO posts (doc) VALUES ('{_id: 1, by: 1}'); INSERT INTO followers (doc) VALUES ('{_id: 1, who: 2, whom: 1}');
INSERT INTO kinds (doc) VALUES ('{_id: 1, kind: "a"}'); INSERT INTO versions (doc) VALUES ('{_id: 1, schema_version: 1}');
INSERT INTO revised (doc) VALUES ('{_id: 1, n: 1}'); UPDATE revised SET doc = bson_set(doc, 'n', 2); UPDATE revised SET doc = bson_set(doc, 'n', 3);
INSERT INTO revised (doc) VALUES ('{_id: 5}'); DELETE FROM revised WHERE _id = 5;
INSERT INTO watched (doc) VALUES ('{_id: 1}'); INSERT INTO shows (doc) VALUES ('{_id: 1}'); SELECT preallocated_claim('shows', 1, '{1}', 'ann', '1 day');
INSERT INTO mixed (doc) VALUES ('{_id: 1, docType: "a"}'), ('{_id: 2, docType: "b", relatedTo: [1]}');
INSERT INTO patients (doc) VALUES ('{_id: 1}'); INSERT INTO doctors (doc) VALUES ('{_id: 1, patients: [1]}');
INSERT INTO queried (doc) VALUES ('{_id: 1, n: 1}'); INSERT INTO scores_of (doc) VALUES ('{_id: 1, n: 1}');
INSERT INTO chapters (doc) VALUES ('{_id: 1}'); INSERT INTO chapter_parts (doc) VALUES ('{_id: 1, of: 1}');
SELECT single_table_put('app', 'item', '{id: 1, n: 1}');
INSERT INTO measured VALUES (1, '2024-01-01', 1), (1, '2024-01-02', 2);
SELECT kv_hset('game', 'h', 'f', 1), kv_sadd('game', 's', 1, 2, 3), kv_zadd('game', 'z', 1, 'a', 2, 'b'), kv_expire('game', 'h', 100000), kv_hset('game', 'old', 'f', 1), kv_expire('game', 'old', 0.000001);
RESET ROLE;
CALL pattern_build('queried', NULL, NULL);
GRANT USAGE ON SCHEMA game TO PUBLIC;
SET search_path = public, game;
ANALYZE docs;
-- tables of a pattern have one owner
CREATE TABLE partners (rel regclass, partner regclass);
INSERT INTO partners VALUES ('totals', 'facts'), ('refs', 'named'), ('nodes', 'leaves'), ('posts', 'followers'), ('chapters', 'chapter_parts'), ('by_n', 'queried');
\ir ../env/privileges.sql

-- The tables that a call names, its own first; of a space those that commands have rights on.
CREATE FUNCTION tables_of(call text) RETURNS regclass[] LANGUAGE sql AS $$
  SELECT coalesce(array_agg(c.oid::regclass ORDER BY strpos(call, '''' || c.relname), c.relname), '{}')
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'f') AND c.relowner = 'dp_table_owner'::regrole
    AND (n.nspname = 'public' AND call ~ ('[''{,]' || c.relname || '[''},]') OR n.nspname = 'game' AND call ~ '^kv_' AND c.relname IN ('keys', 'hashes', 'sets', 'scores'))
$$;
CREATE FUNCTION own(rel regclass) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('ALTER TABLE %s OWNER TO dp_caller', rel); END $$;
-- Gives dp_caller rights, makes the call as a role, and undoes it all; returns how the call ended.
CREATE FUNCTION ends(call text, is_procedure boolean, needs text[], who text DEFAULT 'dp_caller', OUT state text, OUT message text) LANGUAGE plpgsql AS $$
DECLARE
  first regclass := (tables_of(call))[1];
  need text;
  word text[];
BEGIN
  FOREACH need IN ARRAY needs LOOP
    word := string_to_array(need, ' ');
    IF need = 'CREATE' THEN GRANT CREATE ON SCHEMA public TO dp_caller;
    ELSIF need = 'CREATE DATABASE' THEN EXECUTE format('GRANT CREATE ON DATABASE %I TO dp_caller', current_database());
    ELSIF word[1] = 'OWN' THEN PERFORM own(coalesce(word[2]::regclass, first)), (SELECT count(own(p.partner)) FROM partners p WHERE p.rel = coalesce(word[2]::regclass, first));
    ELSE EXECUTE format('GRANT %s ON %s TO dp_caller', split_part(word[1], '/', 1), coalesce(word[2]::regclass, first));
    END IF;
  END LOOP;
  EXECUTE format('SET LOCAL ROLE %I', who);
  EXECUTE format(CASE WHEN is_procedure THEN 'CALL %s' ELSE 'SELECT count(x::text) FROM %s x' END, call);
  RAISE EXCEPTION 'undone' USING ERRCODE = 'XUNDO';
EXCEPTION WHEN OTHERS THEN
  state := CASE SQLSTATE WHEN 'XUNDO' THEN '00000' ELSE SQLSTATE END;
  message := left(SQLERRM, 100);
END $$;
-- All rights on the tables of a call but one. Who is not to own a table has all others on it.
CREATE FUNCTION others_than(call text, needs text[], need text) RETURNS text[] LANGUAGE sql AS $$
  SELECT array_agg(r) FROM (
    SELECT format('%s %s', p, t) FROM unnest(tables_of(call)) t, unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) p
    WHERE NOT (p = ANY (string_to_array(split_part(need, ' ', 1), '/')) AND t = coalesce(substring(need from ' (.*)')::regclass, (tables_of(call))[1])) AND t::oid <> ALL (SELECT coalesce(substring(n from '^OWN (.*)')::regclass, (tables_of(call))[1]) FROM unnest(needs) n WHERE n ~ '^OWN' AND n <> need)
    UNION ALL SELECT unnest('{CREATE,CREATE DATABASE}'::text[]) EXCEPT SELECT need
    UNION ALL SELECT n FROM unnest(needs) n WHERE n ~ '^OWN' AND n <> need) a (r)
$$;
CREATE TABLE tried AS
SELECT c.place, c.call, c.remark, t.what, t.needs, e.state, e.message
FROM catalogue c JOIN not_immutable f ON f.function = c.function
  CROSS JOIN LATERAL (
    SELECT 'exactly', c.needs, 'dp_caller'
    UNION ALL SELECT 'member', c.needs, 'dp_member' WHERE 'OWN' = ANY (c.needs)
    UNION ALL SELECT 'none', '{}', 'dp_caller' WHERE c.needs <> '{}'
    UNION ALL SELECT 'without ' || n, others_than(c.call, c.needs, n), 'dp_caller' FROM unnest(c.needs) n) t (what, needs, who)
  CROSS JOIN LATERAL ends(c.call, f.is_procedure, t.needs, t.who) e;

SELECT is_empty('SELECT function FROM not_immutable EXCEPT SELECT function FROM catalogue EXCEPT SELECT function FROM without_tables', 'every function that may touch a table is in the catalogue');
SELECT is_empty('SELECT call FROM catalogue WHERE function IS NULL', 'and nothing else');
SELECT cmp_ok(count(DISTINCT call), '>', 180::bigint, 'it is long') FROM tried;
SELECT is_empty($$SELECT call, needs, state, message FROM tried WHERE what = 'exactly' AND state <> '00000' ORDER BY place$$, 'who has the rights that are stated can call it');
SELECT is_empty($$SELECT call, needs, state, message FROM tried WHERE what = 'member' AND state <> '00000' ORDER BY place$$, 'so can who belongs to the owner');
SELECT is_empty($$SELECT call, state, message FROM tried WHERE what = 'none' AND state <> '42501' ORDER BY place$$, 'who has none cannot');
SELECT is_empty($$SELECT call, what, state, message FROM tried WHERE what ~ '^without' AND state <> '42501' ORDER BY place$$, 'who has all but one of them cannot');
\if :{?write}
SELECT 'page: ' || line FROM page ORDER BY place;
\endif
\set page `sed -n '/^| /p' docs/privileges.md`
SELECT is(:'page', string_agg(line, E'\n' ORDER BY place), 'docs/privileges.md says the same') FROM page;
RESET search_path;
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
DROP OWNED BY dp_table_owner, dp_caller, dp_member CASCADE;
DROP ROLE dp_member, dp_caller, dp_table_owner;
SELECT finish();
