-- Side tables: one that its owner has altered is an error that names the column, and works again when it is restored.
SET client_min_messages = warning;
CREATE SCHEMA beside;
SET search_path = beside, public;
SELECT plan(33);

\o /dev/null
CREATE TABLE t (id text PRIMARY KEY, doc bson);
SELECT outlier_enable('t', 'list', 2, name => 'list'), subset_fields_enable('t', cold => '{cold}', name => 'cold'), approximation_enable('t', 'views', slots => 2),
  preallocated_enable('t', 'seats', preallocated_pool(9), store => 'slots'), versioning_enable('t', name => 'history'), change_feed_enable('t', name => 'feed');
CREATE TABLE makers (_id int PRIMARY KEY, doc bson);
CREATE TABLE things (_id int PRIMARY KEY, doc bson);
SELECT computed_enable('makers', 'things', fields => '{n: {$sum: 1}}', on_field => 'maker', mode => 'deferred', name => 'n');
INSERT INTO makers VALUES (1, '{}');
INSERT INTO t VALUES ('a', '{}');
\o

-- What a statement says while a table is altered
CREATE FUNCTION said(altered text, statement text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
  hint text;
  result text;
BEGIN
  EXECUTE altered;
  EXECUTE statement;
  RAISE EXCEPTION 'nothing was said';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(': ', SQLSTATE, SQLERRM, nullif(hint, ''));
END $f$;

SELECT is(said(format('ALTER TABLE %s RENAME COLUMN %s TO other', split_part(c, '.', 1), split_part(c, '.', 2)), statement),
          format('55000: side table "%s" of pattern "%s" must have %s "%s" of type %s: Restore the column with ALTER TABLE.', split_part(c, '.', 1), name,
                 CASE WHEN c IN ('t_feed.number', 't_changes.change', 'makers_n_queue.id') THEN 'an identity column' ELSE 'a column' END, split_part(c, '.', 2), type), c)
FROM (VALUES ('t_list_extras.sealed', 'list', 'boolean', $$INSERT INTO t VALUES ('b', '{list: [1, 2, 3]}')$$),
             ('t_list_extras.key', 'list', 'text', $$INSERT INTO t VALUES ('b', '{list: [1, 2, 3]}')$$),
             ('t_cold_cold.cold', 'cold', 'bson', $$INSERT INTO t VALUES ('b', '{cold: 1}')$$),
             ('t_cold_cold.key', 'cold', 'text', $$INSERT INTO t VALUES ('b', '{cold: 1}')$$),
             ('t_views_shards.amount', 'views', 'bson_value', $$SELECT approximation_add('t', 'a', 1, name => 'views')$$),
             ('t_views_shards.shard', 'views', 'bigint', $$SELECT estimate FROM approximation_read('t', 'a', name => 'views')$$),
             ('t_seats_claims.until', 'seats', 'timestamp with time zone', $$SELECT preallocated_claim('t', 'a', '{1}', 'ada', name => 'seats')$$),
             ('t_seats_claims.holder', 'seats', 'bson_value', $$DELETE FROM t$$),
             ('t_revisions.delta', 'history', 'bytea', $$INSERT INTO t VALUES ('b', '{}')$$),
             ('t_changes.change', 'history', 'bigint', $$INSERT INTO t VALUES ('b', '{}')$$),
             ('t_feed.number', 'feed', 'bigint', $$INSERT INTO t VALUES ('b', '{}')$$),
             ('t_feed.paths', 'feed', 'text[]', $$INSERT INTO t VALUES ('b', '{}')$$),
             ('makers_n_queue.id', 'n', 'bigint', $$INSERT INTO things VALUES (1, '{maker: 1}')$$),
             ('makers_n_queue.delta', 'n', 'bson', $$INSERT INTO things VALUES (1, '{maker: 1}')$$)) AS v (c, name, type, statement);


-- Rows are found by the primary key, and values of another type would be compared with the key's.
SELECT is(said(format('ALTER TABLE %1$s DROP CONSTRAINT %1$s_pkey, ADD PRIMARY KEY (%2$s)', side, altered), statement),
          format('55000: side table "%s" of pattern "%s" must have the primary key (%s): Restore the primary key with ALTER TABLE.', side, name, columns), side)
FROM (VALUES ('t_list_extras', 'list', 'chunk, key', 'key, chunk', $$INSERT INTO t VALUES ('b', '{list: [1, 2, 3]}')$$),
             ('t_cold_cold', 'cold', 'cold', 'key', $$INSERT INTO t VALUES ('b', '{cold: 1}')$$),
             ('t_views_shards', 'views', 'key, shard, amount', 'key, shard', $$SELECT approximation_add('t', 'a', 1, name => 'views')$$),
             ('t_seats_claims', 'seats', 'slot, key', 'key, slot', $$SELECT preallocated_claim('t', 'a', '{1}', 'ada', name => 'seats')$$),
             ('t_revisions', 'history', 'revision, key', 'key, revision', $$INSERT INTO t VALUES ('b', '{}')$$),
             ('t_changes', 'history', 'since, change', 'change', $$INSERT INTO t VALUES ('b', '{}')$$),
             ('t_feed', 'feed', 'at', 'number', $$INSERT INTO t VALUES ('b', '{}')$$),
             ('makers_n_queue', 'n', 'key', 'id', $$INSERT INTO things VALUES (1, '{maker: 1}')$$)) AS v (side, name, altered, columns, statement);

SELECT lives_ok($$INSERT INTO t VALUES ('c', '{list: [1, 2, 3], cold: 1}')$$, 'all tables work again');
SELECT is(preallocated_claim('t', 'c', '{1}', 'ada', name => 'seats'), true, 'so do claims');
SELECT is_empty('SELECT * FROM pattern_check()', 'and all is true');

-- A first write finds the other table without reading the triggers of all tables.
BEGIN;
CREATE FUNCTION read_all() RETURNS bigint LANGUAGE sql VOLATILE AS $$ SELECT coalesce(sum(seq_scan), 0)::bigint FROM pg_stat_xact_sys_tables WHERE relname = 'pg_trigger' $$;
CREATE TABLE first_writes (n int GENERATED ALWAYS AS IDENTITY, pattern text, readings bigint);
CREATE PROCEDURE write_first(pattern text, declaration text, write text) LANGUAGE plpgsql AS $$
DECLARE before bigint;
BEGIN
  EXECUTE declaration;
  before := read_all();
  EXECUTE write;
  INSERT INTO first_writes (pattern, readings) VALUES (pattern, read_all() - before);
END $$;
SELECT collection_create(n) FROM unnest('{groups,many_versions,many_outliers,many_cold,many_references,many_computed,many_subsets,many_queried,many_fed}'::text[]) n \g /dev/null
INSERT INTO groups (doc) VALUES ('{_id: 1, name: "one"}');
CALL write_first('versioning', $$SELECT versioning_enable('many_versions')$$, $$INSERT INTO many_versions (doc) VALUES ('{_id: 1}'); UPDATE many_versions SET doc = bson_set(doc, 'n', 1)$$);
CALL write_first('outlier', $$SELECT outlier_enable('many_outliers', 'list', 2)$$, $$INSERT INTO many_outliers (doc) VALUES ('{list: [1, 2, 3, 4]}')$$);
CALL write_first('cold fields', $$SELECT subset_fields_enable('many_cold', '{text}')$$, $$INSERT INTO many_cold (doc) VALUES ('{text: "cold"}')$$);
CALL write_first('reference', $$SELECT reference_enable('many_references', 'group', 'groups', live => '{name}')$$, $$INSERT INTO many_references (doc) VALUES ('{group: 1}'); UPDATE groups SET doc = bson_set(doc, 'name', 'uno')$$);
CALL write_first('computed', $$SELECT computed_enable('groups', 'many_computed', 'group', '{n: {$count: {}}}')$$, $$INSERT INTO many_computed (doc) VALUES ('{group: 1}')$$);
CALL write_first('subset', $$SELECT subset_enable('groups', 'newest', 'many_subsets', 'group', '{n: -1}', 3)$$, $$INSERT INTO many_subsets (doc) VALUES ('{group: 1, n: 2}')$$);
CALL write_first('query table', $$SELECT query_table_create('many_by_color', 'many_queried', partition => '{color}', clustering => '{n: -1}')$$, $$INSERT INTO many_queried (doc) VALUES ('{color: "red", n: 2}')$$);
CALL write_first('change feed', $$SELECT change_feed_enable('many_fed', notify => false)$$, $$INSERT INTO many_fed (doc) VALUES ('{n: 2}')$$);
SELECT is(readings, 0::bigint, 'all triggers read by a first write: ' || pattern) FROM first_writes ORDER BY n;
ROLLBACK;

DROP SCHEMA beside CASCADE;
SELECT * FROM finish();
