-- Triggers of the patterns with arguments that nobody should give them.
--
-- Anybody can make a trigger of the extension's on a table of his own, with any argument. Each declaration is altered in one
-- option after the other: the option goes, or becomes a value of another type; then the tables are written to and read.
-- All of that may fail, but with an error of its own: never with an internal error or the end of the server.
-- The values repeat; to try others: PGOPTIONS='-c hostile.seed=0.5 -c hostile.rounds=14'.
BEGIN;
SET client_min_messages = warning;
SET timezone = 'UTC';
SET statement_timeout = '240s';
SELECT plan(4);
SELECT diag('seed ' || coalesce(current_setting('hostile.seed', true), '0.1') || ', values for each option ' || coalesce(current_setting('hostile.rounds', true), '2'));
SELECT setseed(coalesce(current_setting('hostile.seed', true), '0.1')::float8) \g /dev/null

-- Declarations ------------------------------------------------------------------------------------------------------------

CREATE SCHEMA forged;
SET search_path = forged, public;
CREATE TABLE one (id int PRIMARY KEY, doc bson);
CREATE TABLE two (id int PRIMARY KEY, doc bson);
CREATE TABLE three (id int PRIMARY KEY, doc bson);
SELECT kv_create('forged_space');
SELECT query_table_create('shown', 'one', '{a}', '{b: -1}', fields => '{r: 1}', types => '{b: "text"}');
SELECT query_table_create('top', 'one', '{a}', '{b: 1}', limit_per_partition => 2);
SELECT change_feed_enable('one');
SELECT preallocated_enable('one', 'pool', preallocated_pool(3), store => 'slots'), preallocated_enable('one', 'grid', preallocated_grid('{2,2}'), store => 'document', available_field => 'free'),
       preallocated_enable('one', 'clock', preallocated_clock('{hour}'));
SELECT relationship_enable('one', 'r', 'two', 's', missing => 'allow');
SELECT kv_leaderboard('forged_space', 'board', 'one', 'a', 'm');
SELECT single_collection_enable('two', 'docType', 'of', id_fields => '{x: "x"}', self_related => '{x}', missing => 'allow', views => false),
       single_collection_enable('two', key_field => 'k', missing => 'allow', views => false);
SELECT preallocated_enable('three', 'days', preallocated_calendar(), store => 'slots');
SELECT single_table_create('items', 1, 'ttl');
SELECT single_table_entity('items', 'item', 'I#{i}', 'S#{s}', gsi1_pk => 'G#{g}');

CREATE TABLE declared AS
  SELECT d.rel, d.pattern, d.name, d.options, t.tgname, regexp_replace(pg_get_triggerdef(t.oid), '(^CREATE TRIGGER)(.*)\(''.*$', 'CREATE OR REPLACE TRIGGER\2') AS definition
  FROM docpatterns._pattern_declarations(NULL) d JOIN pg_trigger t ON t.oid = d.trigger_oid
  WHERE d.rel IN ('one'::regclass, 'two', 'three', 'items', 'forged_space.keys');
SELECT set_eq($$SELECT DISTINCT pattern FROM declared$$, ARRAY['query_table', 'change_feed', 'preallocated', 'relationship', 'kv_leaderboard', 'single_collection', 'single_table', 'kv'],
              'these patterns are declared');

-- What is tried -----------------------------------------------------------------------------------------------------------

CREATE TABLE statements (n serial, patterns text[], sql text);
INSERT INTO statements (patterns, sql) VALUES
  ('{query_table,change_feed,preallocated,relationship,kv_leaderboard}', $$INSERT INTO one VALUES (1, '{a: 1, b: "x", r: [1, 2], m: 5}'), (2, '{a: 1, b: "y", m: 6, pool: ["h", 0, 0]}'), (3, NULL) ON CONFLICT DO NOTHING$$),
  ('{relationship,single_collection}', $$INSERT INTO two VALUES (1, '{docType: "x", x: 1, k: "a", s: [1]}'), (2, '{docType: "y", of: [1], k: "a/b"}') ON CONFLICT DO NOTHING$$),
  ('{preallocated}', $$INSERT INTO three VALUES (1, '{month: "May", year: 2026}') ON CONFLICT DO NOTHING$$),
  ('{query_table,change_feed,preallocated,relationship,kv_leaderboard}', $$UPDATE one SET doc = bson_set(doc, 'a', 7)$$),
  ('{single_collection}', $$UPDATE two SET doc = bson_set(doc, 'docType', 'z'::text)$$),
  ('{single_table}', $$SELECT single_table_put('items', 'item', '{i: 1, s: 2, g: 3, ttl: 1}')$$),
  ('{single_table}', $$SELECT single_table_query('items', 'I#1'), single_table_query('items', 'G#3', index => 1)$$),
  ('{preallocated}', $$SELECT preallocated_claim('one', 1, '{1}', 'x'::text, name => 'pool')$$), ('{preallocated}', $$SELECT preallocated_claim('one', 1, '{A1}', 'x'::text, name => 'grid')$$),
  ('{preallocated}', $$UPDATE three SET doc = bson_set(doc, 'month', 6)$$), ('{preallocated}', $$SELECT preallocated_slots('one', 1, 'grid')$$),
  ('{change_feed}', $$SELECT change_feed_read('one')$$), ('{query_table}', $$SELECT query_table_read('shown', 1), query_table_read('top', 1, 2)$$),
  ('{kv,kv_leaderboard}', $$SELECT kv_zadd('forged_space', 'other', 1, 'a'), kv_zrange('forged_space', 'board', 0, -1)$$),
  ('{query_table,change_feed,preallocated,relationship,kv_leaderboard}', $$SELECT pattern_check('one')$$), ('{relationship,single_collection}', $$SELECT pattern_check('two')$$), ('{single_table}', $$SELECT pattern_check('items')$$),
  ('{query_table,kv_leaderboard}', $$TRUNCATE one$$);

-- two values for each option, drawn at random
CREATE TABLE trials (pattern text, options bson, definition text);
INSERT INTO trials
  SELECT d.pattern, CASE WHEN v IS NULL THEN bson_unset(d.options, p.path) ELSE bson_set(d.options, p.path, v::bson_value) END, d.definition
  FROM declared d
    CROSS JOIN LATERAL (SELECT format('"%s"', e.key) FROM bson_each(d.options) e WHERE e.key <> 'name'
                        UNION SELECT 'shape.' || e.key FROM bson_each(coalesce((d.options -> 'shape')::bson, '{}')) e) AS p (path)
    CROSS JOIN LATERAL (SELECT v FROM unnest(ARRAY[NULL, '1', '-1', '2147483647', '""', '"a.0"', '[]', '[1]', '["a", "a", 1, "b"]', '{}', '{"a": 1}', '{"a": "b", "b": {}}', 'true', 'null']) AS v
                        WHERE p.path IS NOT NULL ORDER BY random() LIMIT coalesce(current_setting('hostile.rounds', true), '2')::int) AS v;
-- what has ended the server once
INSERT INTO trials SELECT pattern, bson_unset(options, o), definition FROM declared, unnest('{space,key,score_path}'::text[]) o WHERE pattern = 'kv_leaderboard';
-- more columns than an index can have
INSERT INTO trials SELECT pattern, bson_set(options, 'partition', (SELECT bson_agg('c' || i) FROM generate_series(1, 40) i)), definition FROM declared WHERE pattern = 'query_table';

CREATE FUNCTION try_all(OUT tried bigint, OUT refused bigint) LANGUAGE plpgsql AS $$
DECLARE
  t record;
  s record;
BEGIN
  tried := 0; refused := 0;
  FOR t IN SELECT * FROM trials LOOP
    BEGIN
      EXECUTE t.definition || format('(%L)', t.options::text);
      FOR s IN SELECT * FROM statements WHERE t.pattern = ANY (patterns) ORDER BY n LOOP
        BEGIN
          tried := tried + 1;
          EXECUTE s.sql;
        EXCEPTION WHEN OTHERS THEN
          refused := refused + 1;
          IF SQLSTATE IN ('XX000', 'XX001', 'XX002') THEN
            INSERT INTO surprises VALUES (t.definition, t.options, s.sql, SQLSTATE, SQLERRM);
          END IF;
        END;
      END LOOP;
      -- what was found out is told, all the rest is undone
      RAISE EXCEPTION 'done' USING ERRCODE = 'ZZ001', DETAIL = (SELECT coalesce(jsonb_agg(u), '[]') FROM surprises u);
    EXCEPTION WHEN SQLSTATE 'ZZ001' THEN
      DECLARE
        found text;
      BEGIN
        GET STACKED DIAGNOSTICS found = PG_EXCEPTION_DETAIL;
        INSERT INTO kept SELECT u.* FROM jsonb_populate_recordset(NULL::kept, found::jsonb) u;
      END;
    WHEN OTHERS THEN
      -- the trigger could not be made
      IF SQLSTATE IN ('XX000', 'XX001', 'XX002') THEN
        INSERT INTO kept VALUES (t.definition, t.options, 'CREATE TRIGGER', SQLSTATE, SQLERRM);
      END IF;
    END;
  END LOOP;
END
$$;
CREATE TABLE surprises (definition text, options text, sql text, code text, message text);
CREATE TABLE kept (LIKE surprises);
CREATE TABLE outcome AS SELECT * FROM try_all();
SELECT is_empty($$SELECT sql, left(message, 100), min(options), count(*) FROM kept GROUP BY 1, 2$$, 'nothing ends with an internal error');
SELECT ok(tried > 500, 'many statements were tried') FROM outcome;
SELECT ok(refused > 100 AND refused < tried, 'some of them were refused, and others were not') FROM outcome;
SELECT finish();
ROLLBACK;
