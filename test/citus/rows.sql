-- Patterns on tables whose rows Citus distributes by key: written by statements through the coordinator, each does what it does on an ordinary table; also after moves, a split and a rebalance.
SET client_min_messages = error;
SET citus.shard_count = 4;
SELECT plan(263);

CREATE FUNCTION pg_temp.answer(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text;
BEGIN
  EXECUTE 'SELECT string_agg(format(''%s'', q), E''\n'' ORDER BY format(''%s'', q)) FROM (' || q || ') q' INTO r;
  RETURN r;
END $$;
-- Documents as they are stored, then as they are with what is beside them.
CREATE FUNCTION pg_temp.stored(t text) RETURNS text LANGUAGE sql AS $$ SELECT pg_temp.answer(format('SELECT _id, doc FROM %s', t)) $$;
CREATE FUNCTION pg_temp.whole(t text) RETURNS text LANGUAGE sql AS $$ SELECT pg_temp.answer(format('SELECT b._id, pattern_whole(b.doc, b.tableoid::regclass, b._id) AS doc FROM %s AS b', t)) $$;

-- Each table is called many_<table> and one_<table>; % stands for the first part.
CREATE TEMP TABLE cases (n int GENERATED ALWAYS AS IDENTITY, t text PRIMARY KEY, declare text[], calls text[], damage text, options text);
INSERT INTO cases (t, declare, calls, damage, options) VALUES
  ('outlier', '{"SELECT outlier_enable(''%_outlier'', ''a'', threshold => 3, count_field => ''n'', chunk => 2)"}',
    ARRAY['SELECT outlier_push(''%_outlier'', 3, 100, 101, 102)', 'SELECT outlier_pull(''%_outlier'', 3, 101)', 'SELECT outlier_count(''%_outlier'', 3)', 'SELECT outlier_contains(''%_outlier'', 3, 102)',
      'SELECT position, value FROM outlier_page(''%_outlier'', 9, skip => 2, take => 3)', 'SELECT outlier_find(''%_outlier'', 7)', 'SELECT outlier_spill(''%_outlier'')'],
    'UPDATE %s SET doc = bson_set(doc, ''n'', 77) WHERE doc @@ ''{n: {$gt: 8}}''', '{threshold: 5}'),
  ('subset_fields', '{"SELECT subset_fields_enable(''%_subset_fields'', ''{a,c.full}'')"}', '{}',
    'UPDATE %s SET doc = bson_set(doc, ''a'', 1) WHERE doc @@ ''{x: {$gt: 8}}''', '{cold: ["a"]}'),
  ('attribute', '{"SELECT attribute_enable(''%_attribute'', ''specs'', prefix => ''spec_'')"}', ARRAY['SELECT key, documents FROM attribute_keys(''%_attribute'', ''specs'')'],
    'UPDATE %s SET doc = bson_set(doc, ''spec_late'', 1) WHERE doc @@ ''{x: 9}''', NULL),
  ('polymorphic', '{"SELECT polymorphic_enable(''%_polymorphic'', by => ''kind'')","SELECT polymorphic_variant(''%_polymorphic'', ''even'', schema => ''{properties: {x: {bsonType: \"int\"}}}'')","SELECT polymorphic_variant(''%_polymorphic'', ''odd'', schema => ''{required: [\"x\"]}'')"}',
    ARRAY['SELECT polymorphic_retype(''%_polymorphic'', 4, ''odd'', change_update => ''{$set: {z: 1}}'')', 'SELECT part, path FROM polymorphic_errors(''%_polymorphic'', ''{kind: "even", x: "s"}'')',
      'SELECT variant, documents FROM polymorphic_variants(''%_polymorphic'')'],
    'UPDATE %s SET doc = bson_set(doc, ''kind'', ''none'') WHERE doc @@ ''{x: 8}''', NULL),
  ('versioning', '{"SELECT versioning_enable(''%_versioning'', revision_field => ''r'', optimistic => false)"}',
    ARRAY['SELECT versioning_at(''%_versioning'', 5, 1)', 'SELECT path, old, new FROM versioning_diff(''%_versioning'', 5, 1, 2)', 'SELECT revision, operation FROM versioning_revisions(''%_versioning'', 5)',
      'SELECT versioning_revert(''%_versioning'', 5, 1)', 'SELECT revision, value FROM versioning_field_history(''%_versioning'', 5, ''x'')', 'SELECT versioning_redact(''%_versioning'', 6, ''x'')'],
    'UPDATE %s SET doc = bson_set(doc, ''r'', 77) WHERE doc @@ ''{x: 9}''', '{keep: 10}'),
  ('payload', '{"SELECT payload_enable(''%_payload'', ''body'', extracts => ''{\"total\": \"jsonpath:$.total::numeric\"}'')"}', '{}',
    'UPDATE %s SET doc = bson_set(doc, ''total'', 77) WHERE doc @@ ''{x: 9}''', NULL),
  ('preallocated', '{"SELECT preallocated_enable(''%_preallocated'', ''seats'', available_field => ''free'', shape => preallocated_grid(rows => ''{4,4}''))"}',
    ARRAY['SELECT preallocated_claim(''%_preallocated'', 4, ''{A1,B2}'', holder => ''ada'')', 'SELECT preallocated_claim(''%_preallocated'', 4, ''{A1}'', holder => ''bob'')', 'SELECT preallocated_find(''%_preallocated'', 4, 3)',
      'SELECT preallocated_confirm(''%_preallocated'', 4, ''{A1}'', holder => ''ada'')', 'SELECT preallocated_release(''%_preallocated'', 4, ''{B2}'', holder => ''ada'')'],
    'UPDATE %s SET doc = bson_set(doc, ''free'', 77) WHERE doc @@ ''{x: 9}''', NULL),
  ('slots', '{"SELECT preallocated_enable(''%_slots'', ''seats'', store => ''slots'', shape => preallocated_grid(rows => ''{4,4}''))"}',
    ARRAY['SELECT preallocated_claim(''%_slots'', 4, ''{A1,B2}'', holder => ''ada'')', 'SELECT preallocated_claim(''%_slots'', 4, ''{A1}'', holder => ''bob'')', 'SELECT preallocated_find(''%_slots'', 4, 3)'],
    NULL, NULL),
  ('approximation', '{"SELECT approximation_enable(''%_approximation'', ''views'', slots => 4)"}',
    ARRAY['SELECT approximation_add(''%_approximation'', 4, 5)', 'SELECT approximation_add(''%_approximation'', 4, 6)', 'SELECT estimate FROM approximation_read(''%_approximation'', 4)', 'SELECT approximation_sync(''%_approximation'')'],
    NULL, NULL);

-- Writes with the numbers 1 to 12; documents have the fields of all patterns.
CREATE FUNCTION doc_of(i bigint) RETURNS bson LANGUAGE sql IMMUTABLE AS $$
  SELECT bson_build('_id', i, 'x', i::int, 'a', (SELECT coalesce(bson_agg(j), '[]') FROM generate_series(1, i) j), 'c', bson_build('full', i), 'spec_w', i, 'kind', CASE i % 2 WHEN 0 THEN 'even' ELSE 'odd' END,
    'body', format('{"total": %s, "text": "%s"}', i, repeat('t', 40))) $$;
CREATE TEMP TABLE writes (n int GENERATED ALWAYS AS IDENTITY, write text);
INSERT INTO writes (write) VALUES
  ('INSERT INTO % VALUES (5, doc_of(5)), (6, doc_of(6)), (7, doc_of(7)), (8, doc_of(8))'),
  ('INSERT INTO % SELECT i, doc_of(i) FROM generate_series(9, 12) i'),
  ('INSERT INTO % VALUES (6, doc_of(12)), (13, bson_set(doc_of(9), ''_id'', 13)) ON CONFLICT DO NOTHING'),
  ('INSERT INTO % AS t VALUES (7, bson_set(doc_of(9), ''_id'', 7)) ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc'),
  ('UPDATE % SET doc = bson_update_immutable(doc, ''{$set: {x: 8, "spec_new": 1}}'') WHERE _id = 8'),
  ('UPDATE % SET doc = bson_update_immutable(doc, ''{$set: {touched: true}}'') WHERE (doc -> ''x'')::int > 3'),
  ('DELETE FROM % WHERE _id IN (10::bson_value, 2::bson_value)'),
  ('DO $x$ BEGIN INSERT INTO % VALUES (20, bson_set(doc_of(9), ''_id'', 20)); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN END $x$');

CREATE TEMP VIEW tables AS SELECT c.n, c.t, p || '_' || c.t AS tab, p FROM cases c, unnest('{one,many}'::text[]) p;
SELECT format('CREATE TABLE %s (_id bson_value PRIMARY KEY, doc bson)', tab) FROM tables ORDER BY n \gexec
\o /dev/null
SELECT format('SELECT create_distributed_table(%L, %L)', 'many_' || t, '_id') FROM cases ORDER BY n \gexec

-- rows from before the declaration
SELECT format('INSERT INTO %s SELECT i, doc_of(i) FROM generate_series(1, 4) i', tab) FROM tables ORDER BY n \gexec
SELECT replace(d, '%', v.p) FROM tables v JOIN cases USING (n) CROSS JOIN unnest(declare) WITH ORDINALITY d (d, o) ORDER BY n, p, o \gexec
SELECT format('CALL pattern_build(%L, %L)', tab, l.name) FROM tables CROSS JOIN LATERAL pattern_list(tab) l WHERE l.name NOT IN ('odd', 'even') ORDER BY n \gexec
\o
SELECT is(pg_temp.stored('many_' || t), pg_temp.stored('one_' || t), t || ': rows from before are built') FROM cases ORDER BY n;
SELECT replace(write, '%', tab) FROM tables, writes w ORDER BY tables.n, p, w.n \gexec
SELECT is(pg_temp.stored('many_' || t), pg_temp.stored('one_' || t), t || ': writes store the same') FROM cases ORDER BY n;
SELECT is(pg_temp.whole('many_' || t), pg_temp.whole('one_' || t), t || ': whole documents are the same') FROM cases ORDER BY n;
SELECT is(pg_temp.answer(replace(c, '%', 'many')), pg_temp.answer(replace(c, '%', 'one')), c) FROM cases, unnest(calls) WITH ORDINALITY q (c, o) ORDER BY n, o;
SELECT is(pg_temp.whole('many_' || t), pg_temp.whole('one_' || t), t || ': calls write the same') FROM cases ORDER BY n;
SELECT is_empty(format('SELECT * FROM pattern_check(%L)', tab), tab || ' is consistent') FROM tables ORDER BY n;
SELECT is((SELECT (s.notes, s.failed)::text FROM pattern_stats('many_' || t) s LIMIT 1), '(0,0)', t || ': statistics of all shards') FROM cases ORDER BY n;

-- ---------------------------------------------------------------- damage in a shard

SELECT format('SELECT * FROM run_command_on_shards(%L, %L) WHERE NOT success', 'many_' || t, format('DO $x$ BEGIN SET LOCAL session_replication_role = replica; %s; END $x$', damage)) FROM cases WHERE damage IS NOT NULL ORDER BY n \gexec
SELECT format('DO $x$ BEGIN SET LOCAL session_replication_role = replica; %s; END $x$', format(damage, 'one_' || t)) FROM cases WHERE damage IS NOT NULL ORDER BY n \gexec
SELECT matches(pg_temp.answer(format('SELECT found FROM pattern_check(%L)', 'many_' || t)), 'shard [0-9]+ on .+:[0-9]+', t || ': damage is reported, with its place') FROM cases WHERE damage IS NOT NULL ORDER BY n;
SELECT format('SELECT is(pattern_repair(%L, %L, accept_loss => true), pattern_repair(%L, %2$L, accept_loss => true), %L)', 'many_' || t, name, 'one_' || t, t || ': documents repaired') FROM cases, pattern_list('one_' || t) WHERE damage IS NOT NULL AND t <> 'polymorphic' ORDER BY n \gexec
UPDATE many_polymorphic SET doc = bson_update_immutable(doc, '{$set: {kind: "even"}}') WHERE doc @@ '{x: 8}';
UPDATE one_polymorphic SET doc = bson_update_immutable(doc, '{$set: {kind: "even"}}') WHERE doc @@ '{x: 8}';
SELECT is_empty(format('SELECT * FROM pattern_check(%L)', 'many_' || t), t || ' is repaired') FROM cases ORDER BY n;
SELECT is(pg_temp.whole('many_' || t), pg_temp.whole('one_' || t), t || ': repaired documents') FROM cases ORDER BY n;

-- ---------------------------------------------------------------- options

\o /dev/null
SELECT format('SELECT pattern_alter(%L, %L, %L)', tab, l.name, cases.options) FROM tables JOIN cases USING (n, t) CROSS JOIN LATERAL pattern_list(tab) l WHERE cases.options IS NOT NULL ORDER BY n \gexec
SELECT format('CALL pattern_build(%L, %L)', tab, l.name) FROM tables JOIN cases USING (n, t) CROSS JOIN LATERAL pattern_list(tab) l WHERE cases.options IS NOT NULL ORDER BY n \gexec
\o
SELECT is(pg_temp.stored('many_' || t), pg_temp.stored('one_' || t), t || ': other options store the same') FROM cases WHERE options IS NOT NULL ORDER BY n;

-- ---------------------------------------------------------------- a call is in the transaction of its caller

SELECT throws_ok($$SELECT outlier_push('many_outlier', 5, 1), 1 / (SELECT count(*) - count(*) FROM cases)$$, '22012', NULL, 'a statement fails after its call');
SELECT is(pg_temp.whole('many_outlier'), pg_temp.whole('one_outlier'), 'its call is rolled back');
BEGIN;
SELECT outlier_push('many_outlier', i, 1) FROM generate_series(3, 6) i \g /dev/null
ROLLBACK;
SELECT is(pg_temp.whole('many_outlier'), pg_temp.whole('one_outlier'), 'calls in two shards are rolled back');

-- a call keeps its shard where it is, like an UPDATE of the document
CREATE TEMP VIEW held AS SELECT array_agg(format('%s %s %s', classid, objid, objsubid) ORDER BY 1) AS locks FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND pid = pg_backend_pid();
BEGIN;
UPDATE many_outlier SET doc = doc WHERE _id = 5;
SELECT locks AS of_update FROM held \gset
ROLLBACK;
BEGIN;
SELECT outlier_push('many_outlier', 5, 1) \g /dev/null
SELECT is(locks::text, :'of_update', 'a call holds the lock of an UPDATE, which moves wait for') FROM held;
SELECT pattern_repair('many_outlier', 'a') \g /dev/null
SELECT is(cardinality(locks), 4, 'a call for all documents holds those of all shards') FROM held;
ROLLBACK;

-- ---------------------------------------------------------------- moves

CREATE FUNCTION pg_temp.same(what text) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT is(pg_temp.whole('many_' || t), pg_temp.whole('one_' || t), format('%s: the documents of %s', what, t)) FROM cases
  UNION ALL SELECT is_empty('SELECT * FROM pattern_check() WHERE rel::text ~ ''^many_''', what || ': all is consistent')
  UNION ALL SELECT is((SELECT string_agg(DISTINCT result, ' ') FROM run_command_on_shards('many_outlier', 'SELECT count(*) FROM pg_trigger WHERE tgrelid = ''%s''::regclass AND tgtype::int & 32 <> 0 AND tgname ~ ''docpatterns''')), '1', what || ': triggers for TRUNCATE') $$;
CREATE TEMP VIEW moves AS SELECT s.shardid, s.nodename, s.nodeport, n.nodename AS to_name, n.nodeport AS to_port, row_number() OVER (ORDER BY s.shardid) AS i FROM citus_shards s JOIN pg_dist_node n ON n.nodeport <> s.nodeport AND n.shouldhaveshards WHERE s.table_name = 'many_outlier'::regclass;
SELECT format('SELECT citus_move_shard_placement(%s, %L, %s, %L, %s, %L)', shardid, nodename, nodeport, to_name, to_port, 'block_writes') FROM moves WHERE i = 1 \gexec
SELECT pg_temp.same('a move that blocks writes');
SELECT format('SELECT citus_move_shard_placement(%s, %L, %s, %L, %s, %L)', shardid, nodename, nodeport, to_name, to_port, 'force_logical') FROM moves WHERE i = 2 \gexec
SELECT pg_temp.same('a logical move');
SELECT format('SELECT citus_split_shard_by_split_points(%s, ARRAY[%L], ARRAY[%s, %3$s]::int[], %L)', s.shardid, ((s.shardminvalue::bigint + s.shardmaxvalue::bigint) / 2)::text, (SELECT nodeid FROM pg_dist_node WHERE shouldhaveshards ORDER BY nodeid LIMIT 1), 'block_writes')
  FROM pg_dist_shard s JOIN moves m ON m.shardid = s.shardid AND m.i = 3 \gexec
SELECT pg_temp.same('a split');
SELECT isolate_tenant_to_new_shard('many_outlier', 5::bson_value, 'CASCADE', shard_transfer_mode => 'block_writes') > 0 AS isolated \gset
SELECT pg_temp.same('a document in a shard of its own');
SELECT rebalance_table_shards('many_outlier', shard_transfer_mode => 'block_writes') \gset
SELECT pg_temp.same('a rebalance');
SELECT replace(write, '%', tab) FROM tables, (VALUES (1, 'INSERT INTO % SELECT i, doc_of(i) FROM generate_series(21, 30) i'), (2, 'UPDATE % SET doc = bson_update_immutable(doc, ''{$set: {touched: 2}}'') WHERE (doc -> ''x'')::int > 7'), (3, 'DELETE FROM % WHERE _id > 25')) w (n, write) ORDER BY tables.n, p, w.n \gexec
SELECT pg_temp.same('writes after them');
-- MERGE from co-located tables, and COPY
CREATE TABLE many_source (_id bson_value PRIMARY KEY, doc bson);
CREATE TABLE one_source (_id bson_value PRIMARY KEY, doc bson);
SELECT create_distributed_table('many_source', '_id', colocate_with => 'many_outlier') \gset
INSERT INTO many_source SELECT i, bson_set(doc_of(i + 2), '_id', i) FROM generate_series(18, 32) i;
INSERT INTO one_source SELECT i, bson_set(doc_of(i + 2), '_id', i) FROM generate_series(18, 32) i;
SELECT format('MERGE INTO %s AS t USING %s_source AS s ON t._id = s._id WHEN MATCHED AND s._id = 21::bson_value THEN DELETE WHEN MATCHED THEN UPDATE SET doc = bson_update_immutable(t.doc, ''{$set: {merged: true, x: 1}}'') WHEN NOT MATCHED THEN INSERT VALUES (s._id, s.doc)', tab, p) FROM tables ORDER BY n, p \gexec
SELECT format('COPY %s FROM PROGRAM %L', tab, 'for i in 61 62 63 64 65 66; do printf ''%s\t{"_id": %s, "x": 3, "a": [1, 2, 3, 4, 5, 6, 7], "c": {"full": 3}, "spec_w": 3, "kind": "odd"}\n'' $i $i; done') FROM tables ORDER BY n, p \gexec
SELECT is((SELECT count(*) FROM many_outlier), (SELECT count(*) FROM one_outlier), 'documents of MERGE and COPY');
SELECT is((SELECT count(*) FROM many_versioning WHERE doc @@ '{merged: true}') > 0, true, 'some were merged');
SELECT is(pg_temp.stored('many_' || t), pg_temp.stored('one_' || t), t || ': MERGE and COPY store the same') FROM cases ORDER BY n;
SELECT pg_temp.same('MERGE and COPY');
SELECT format('TRUNCATE %s', tab) FROM tables WHERE t IN ('outlier', 'slots', 'approximation') ORDER BY n \gexec
SELECT pg_temp.same('TRUNCATE');
SELECT is((SELECT count(*) FROM many_outlier_a_extras), 0::bigint, 'TRUNCATE empties side tables');

-- ---------------------------------------------------------------- the end

SELECT format('SELECT is((SELECT count(pattern_disable(%L, l.name)) FROM pattern_list(%1$L) l), %L::bigint, %L)', tab, (SELECT count(*) FROM pattern_list(tab)), tab || ' is disabled') FROM tables WHERE t <> 'polymorphic' ORDER BY n, p \gexec
SELECT is(pg_temp.stored('many_' || t), pg_temp.stored('one_' || t), t || ': documents are given back') FROM cases WHERE t <> 'polymorphic' ORDER BY n;
SELECT is((SELECT string_agg(DISTINCT result, ' ') FROM run_command_on_shards('many_' || t, 'SELECT count(*) FROM pg_trigger WHERE tgrelid = ''%s''::regclass AND tgname ~ ''docpatterns''')), '0', t || ': no trigger is left on shards') FROM cases WHERE t <> 'polymorphic' ORDER BY n;
SELECT * FROM finish();
