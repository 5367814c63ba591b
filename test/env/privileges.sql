-- Who may call what: the catalogue of every public function and procedure that touches a table, with a call that works and the rights
-- that it needs and that suffice. test/pgtap/privileges.sql tries each of them and compares docs/privileges.md with them; test/env/privileges.sh writes the table there.
--
-- A line is a call, the rights, a remark for the page (what the call shows, or when it is that the rights are these) and, where several
-- functions have the name, which one it is. Rights are separated by commas: SELECT is about the first table of the call, SELECT others about
-- that one, UPDATE/DELETE either of them; OWN is to be its owner or a member of that role; CREATE is about the schema public.
CREATE TEMP VIEW not_immutable AS
SELECT p.oid::regprocedure AS function, p.proname AS name, p.prokind = 'p' AS is_procedure
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
  JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass AND e.extname = 'docpatterns'
WHERE p.prokind IN ('f', 'p') AND p.pronamespace = 'public'::regnamespace AND (p.provolatile <> 'i' OR p.proargtypes::oid[] && '{regclass,regclass[]}'::regtype[]::oid[])
  -- needs Citus
  AND p.proname !~ 'distribute'
  -- the other form of a function that takes "any", for arguments without a type
  AND NOT EXISTS (SELECT FROM pg_proc o WHERE o.proname = p.proname AND o.prosrc = p.prosrc AND '"any"'::regtype = ANY (o.proargtypes) AND '"any"'::regtype <> ALL (p.proargtypes));
CREATE TEMP TABLE catalogue AS
SELECT n AS place, f[1] AS call, string_to_array(coalesce(f[2], ''), ', ') AS needs, nullif(f[3], '') AS remark,
       CASE WHEN f[4] <> '' THEN f[4]::regprocedure ELSE (SELECT i.function FROM not_immutable i WHERE i.name = substring(f[1] from '^\w+')) END AS function
FROM regexp_split_to_table(trim(E'\n' FROM $catalogue$
collection_create('made') | CREATE
collection_insert('docs', '{n: 9}') | SELECT, INSERT | | collection_insert(regclass,"any")
collection_bulk_write('docs', '[]') | | with the rights that the operations need
collection_find('docs') | SELECT
collection_count('docs') | SELECT
collection_distinct('docs', 'n') | SELECT
collection_update('docs', '{_id: 1}', '{$set: {n: 2}}') | SELECT, UPDATE
collection_update('docs', '{_id: 77}', '{$set: {n: 2}}', upsert => true) | SELECT, INSERT, UPDATE | `upsert`
collection_replace('docs', '{_id: 1}', '{n: 1}') | SELECT, UPDATE
collection_replace('docs', '{_id: 77}', '{n: 2}', upsert => true) | SELECT, INSERT, UPDATE | `upsert`
collection_find_one_and_update('docs', '{_id: 1}', '{$set: {n: 2}}') | SELECT, UPDATE
collection_find_one_and_update('docs', '{_id: 77}', '{$set: {n: 2}}', upsert => true) | SELECT, INSERT, UPDATE | `upsert`
collection_find_one_and_replace('docs', '{_id: 1}', '{n: 1}') | SELECT, UPDATE
collection_find_one_and_replace('docs', '{_id: 77}', '{n: 2}', upsert => true) | SELECT, INSERT, UPDATE | `upsert`
collection_find_one_and_delete('docs', '{_id: 1}') | SELECT, DELETE
collection_delete('docs', '{_id: 1}') | SELECT, DELETE
collection_delete('docs', '{n: 1}', multi => true) | SELECT, DELETE
collection_validator('docs', '{}') | OWN
collection_aggregate('docs', '[{$match: {n: 1}}]') | SELECT
collection_aggregate_sql('docs', '[]')
collection_explain('docs', '[]') | SELECT
collection_view_create('made_view', 'docs', '[]') | CREATE
collection_list_indexes('docs')
collection_create_index('docs', '{m: 1}') | OWN, CREATE
collection_drop_index('docs', name => 'docs_n') | OWN
bson_column_convert('blank', 'jsonb') | OWN
bson_lookup('docs', '_id', 1) | SELECT
bson_stats('docs') | SELECT
bson_index_conditions('docs_gin', '{n: 1}')
graph_lookup('docs', 1, 'up', '_id') | SELECT
graph_shortest_path('docs', 3, 1, 'up', '_id') | SELECT
pattern_list() | | shows declarations, as the catalog does, and no documents
pattern_list('spilled') | | shows declarations, as the catalog does, and no documents
pattern_check() | | of all tables: shows those that the caller owns
pattern_check('spilled') | OWN
pattern_check('totals') | OWN
pattern_repair('spilled') | OWN
pattern_repair('totals', 'first') | OWN
pattern_alter('spilled', NULL, '{threshold: 3}') | OWN
pattern_build('spilled', NULL, NULL) | OWN
pattern_disable('spilled') | OWN
pattern_disable('totals', 'first') | OWN
pattern_disable_all() | | of all tables: does it for those that the caller owns
pattern_disable_all('spilled') | OWN
pattern_stats() | | of all tables: shows those that the caller owns
pattern_stats('spilled') | OWN
pattern_due() | | of all tables: shows those that the caller owns
pattern_due('spilled') | OWN
pattern_maintain() | | of all tables: does it for those that the caller owns
pattern_maintain('spilled') | OWN
pattern_relink() | | of all tables: does it for those that the caller owns
pattern_relink('spilled') | OWN
pattern_advise('docs') | SELECT | | pattern_advise(regclass,integer,text)
pattern_advise() | | of all tables: shows those that the caller may read | pattern_advise()
pattern_trial('docs', 'UPDATE docs SET doc = doc') | SELECT, CREATE
pattern_whole('{has_extras: true}', 'spilled', '1'::bson_value) | SELECT
outlier_enable('bare', 'tags', 5) | OWN, CREATE
outlier_enable('bare', 'tags', 5, extras => 'others', on_field => 'of') | OWN, OWN others, CREATE | `extras` names a table that exists
outlier_advise('docs', 'tags') | SELECT
outlier_count('spilled', 1) | SELECT
outlier_contains('spilled', 1, 4) | SELECT
outlier_page('spilled', 1, 0, 9) | SELECT
outlier_find('spilled', 4) | SELECT
outlier_push('spilled', 1, 5) | SELECT, UPDATE
outlier_push_into('spilled', 'tags', 1, 5) | SELECT, UPDATE
outlier_pull('spilled', 1, 4) | SELECT, UPDATE
outlier_spill('spilled') | OWN
tree_enable('bare', parent => 'up') | OWN, CREATE
tree_attach('bare', 'nodes', 'in') | OWN, OWN nodes, CREATE
tree_ancestors('nodes', 2) | SELECT
tree_descendants('nodes', 1) | SELECT
tree_children('nodes', 1) | SELECT
tree_siblings('nodes', 2) | SELECT
tree_root('nodes', 2) | SELECT
tree_lca('nodes', 2, 3) | SELECT |  | tree_lca(regclass,anycompatible,"any",text)
tree_subtree_count('nodes', 1) | SELECT
tree_nest('nodes', 1) | SELECT
tree_render('nodes') | SELECT
tree_stats('nodes') | SELECT
tree_unnest('nodes', '{_id: 8, children: [{_id: 9}]}')
tree_unnest('nodes', '{_id: 8, children: [{_id: 9}]}', 2) |  | `parent`
tree_move('nodes', 3, 2) | SELECT, UPDATE
tree_copy('nodes', 'leaf', 3, '_copy') | SELECT, INSERT
tree_delete('nodes', 3) | SELECT, DELETE
computed_enable('bare', 'others', 'of', '{many: {$count: {}}}') | OWN, OWN others, CREATE
computed_refresh('totals') | OWN
computed_staleness('totals') | OWN
subset_enable('bare', 'top', 'others', 'of', '{n: 1}', 2) | OWN, OWN others, CREATE
subset_refresh('totals') | OWN
subset_fields_enable('bare', '{much}') | OWN, CREATE
subset_split('bare', field => 'kids', source => 'made', on_field => 'of', keep => 1) | OWN, CREATE
subset_split('bare', field => 'kids', source => 'third', on_field => 'of', keep => 1, if_exists => 'append') | OWN, OWN third, CREATE | `source` exists
subset_join('chapters') | OWN
reference_enable('bare', 'to', 'others', live => '{n}') | OWN, OWN others, CREATE
reference_cost('docs', 'ref', 'others') | SELECT, SELECT others
reference_refresh('refs') | OWN
reference_staleness('refs') | OWN
reference_dangling('refs') | OWN
rollup_enable('bare', name => 'per_day', time_field => 'ts', levels => '{day}', fields => '{m: {$count: {}}}') | OWN, CREATE
rollup_enable('bare', name => 'by_node', tree => 'nodes', group_by => '{n}', fields => '{m: {$count: {}}}') | OWN, OWN nodes, CREATE | `tree`
approximation_enable('bare', 'hits', slots => 2) | OWN, CREATE
approximation_add('counted', 1, 1) | SELECT, UPDATE
approximation_read('counted', 1) | SELECT
approximation_sync('counted') | OWN
fanout_enable('bare', walls => 'made', author => 'by', followers => 'others', follower => 'who', followee => 'whom') | OWN, OWN others, CREATE
fanout_timeline('posts', 2) | SELECT, SELECT walls
fanout_timeline('posts', 7) | SELECT, SELECT followers, SELECT walls | a reader without a wall
attribute_enable('bare', 'all', prefix => 'x_') | OWN, CREATE
attribute_keys('packed') | SELECT
attribute_wide('{_id: 1}', 'packed')
payload_enable('bare', 'body', '{first: "regex:(.)"}') | OWN, CREATE
polymorphic_enable('bare', by => 'kind', unknown => 'accept') | OWN, CREATE
polymorphic_variant('kinds', 'c', schema => '{}', indexes => '{n}') | OWN, CREATE
polymorphic_variants('kinds') | SELECT
polymorphic_errors('kinds', '{kind: "a"}')
polymorphic_infer('bare', 'kind') | SELECT
polymorphic_retype('kinds', 1, 'b') | SELECT, UPDATE
polymorphic_retype_all('kinds', 'a', 'b') | SELECT, UPDATE
polymorphic_merge('made', 'n', '{bare,others}') | OWN, OWN others, CREATE
schema_versioning_enable('bare') | OWN, CREATE
schema_versioning_step('versions', 2, 3, up_update => '{$set: {b: 1}}', down_update => '{$unset: {b: 1}}') | OWN, CREATE
schema_versioning_read('versions', 1) | SELECT, UPDATE
schema_versioning_histogram('versions') | SELECT
schema_versioning_migrate('versions', NULL) | OWN, CREATE | the first time, when it notes of what type versions are
schema_versioning_test('versions') | OWN
versioning_enable('bare') | OWN, CREATE
versioning_at('revised', 1, 1) | SELECT
versioning_revisions('revised', 1) | SELECT
versioning_as_of('revised', now()) | SELECT
versioning_diff('revised', 1, 1, 2) | SELECT
versioning_field_history('revised', 1, 'n') | SELECT
versioning_revert('revised', 1, 1) | SELECT, UPDATE
versioning_revert('revised', 5, 1) | SELECT, INSERT, UPDATE | the document is gone
versioning_purge('revised', now()) | OWN
versioning_redact('revised', 1, 'm') | OWN
change_feed_enable('bare') | OWN, CREATE
ttl_enable('bare', 'at') | OWN, CREATE
change_feed_read('watched') | SELECT
change_feed_position('watched') | SELECT
change_feed_purge('watched', 0) | OWN
preallocated_enable('bare', 'seats', preallocated_pool(3), store => 'slots') | OWN, CREATE
preallocated_claim('shows', 1, '{2}', 'eve') | SELECT, UPDATE
preallocated_confirm('shows', 1, '{1}', 'ann') | SELECT, UPDATE
preallocated_release('shows', 1, '{1}', 'ann') | SELECT, UPDATE
preallocated_find('shows', 1, 1) | SELECT
preallocated_slots('shows', 1) | SELECT
preallocated_extend('shows', 1, preallocated_pool(5)) | SELECT, UPDATE
single_collection_enable('bare', views => false) | OWN, CREATE
single_collection_enable('bare', types => '{a}') | OWN, CREATE | with views
single_collection_view('mixed', 'a') | OWN, CREATE
single_collection_get('mixed', 1) | SELECT
single_collection_query('mixed')
single_collection_from('made', '{bare,third}', '{bare,third}') | SELECT, DELETE, SELECT third, DELETE third, CREATE
single_collection_split('mixed', '{"a": "made_a", "b": "made_b"}') | OWN, CREATE
relationship_enable('bare', 'theirs', 'others', 'ours') | OWN, OWN others
relationship_advise('bare', 'others', on_field => 'of') | SELECT, SELECT others
relationship_embed('bare', 'others', on_field => 'of', into_field => 'list') | SELECT, UPDATE, SELECT others, DELETE others
relationship_link('bare', 'kids', 'made', on_field => 'of') | SELECT, UPDATE, CREATE
relationship_link('bare', 'kids', 'third', on_field => 'of') | SELECT, UPDATE, INSERT third, UPDATE/DELETE/TRUNCATE third | `child` exists
query_table_create('made', 'bare', '{n}') | OWN, CREATE
query_table_read('by_n', 1) | SELECT
query_table_purge('by_n') | OWN
single_table_create('made', 1) | CREATE
single_table_entity('app', 'user', 'U#{id}', 'S') | OWN, CREATE
single_table_key('app', 'item', '{id: 1}')
single_table_put('app', 'item', '{id: 2}') | SELECT, INSERT, UPDATE
single_table_get('app', 'I#1', 'S') | SELECT
single_table_update('app', 'I#1', 'S', '{$set: {n: 2}}') | SELECT, UPDATE
single_table_update('app', 'I#7', 'S', '{$set: {entity: "item", id: 7}}', upsert => true) | SELECT, INSERT, UPDATE | `upsert`
single_table_delete('app', 'I#1', 'S') | SELECT, UPDATE, DELETE
single_table_query('app', 'I#1') | SELECT
single_table_batch_get('app', '[{"PK": "I#1", "SK": "S"}]') | SELECT
single_table_batch_write('app', '[{"put": {"entity": "item", "doc": {"id": 3}}}]') | SELECT, INSERT, UPDATE | a `put`
single_table_batch_write('app', '[{"delete": {"PK": "I#1", "SK": "S"}}]') | SELECT, UPDATE, DELETE | a `delete`
single_table_transact('app', '[{"put": {"entity": "item", "doc": {"id": 3}}}]') | SELECT, INSERT, UPDATE | a `put`
single_table_transact('app', '[{"update": {"PK": "I#1", "SK": "S", "update": {"$inc": {"n": 1}}}}]') | SELECT, UPDATE | an `update` or a `check`
single_table_transact('app', '[{"delete": {"PK": "I#1", "SK": "S"}}]') | SELECT, UPDATE, DELETE | a `delete`
single_table_purge('app') | SELECT, UPDATE, DELETE
bucket_create('made', columns => 'g int, ts timestamptz, v float8', group_by => '{g}', time_field => 'ts') | CREATE
bucket_create('made', columns_of => 'rows', group_by => '{g}', time_field => 'ts') | CREATE | `columns_of`
bucket_add_column('measured', 'w', 'float8') | OWN
bucket_pack('measured') | INSERT
bucket_drop_before('measured', '2020-01-01') | OWN
bucket_resize('measured', span => '2 hours') | OWN
bucket_stats('measured') | OWN
bucket_advise('measured') | OWN
bucket_salvage('measured') | OWN
bucket_from_table('measured', 'rows', NULL) | OWN, SELECT rows, DELETE rows
bucket_from_table('measured', 'rows', NULL, keep_source => true) | OWN, SELECT rows | `keep_source`
bucket_to_table('measured', 'made', NULL) | OWN, CREATE
kv_create('newspace') | CREATE DATABASE
kv_hset('game', 'h', 'f', 2) | INSERT hashes, UPDATE hashes
kv_hsetnx('game', 'h', 'f', 2) | INSERT hashes
kv_hget('game', 'h', 'f') | SELECT hashes
kv_hmget('game', 'h', 'f') | SELECT hashes
kv_hgetall('game', 'h') | SELECT hashes
kv_hkeys('game', 'h') | SELECT hashes
kv_hvals('game', 'h') | SELECT hashes
kv_hlen('game', 'h') | SELECT hashes
kv_hexists('game', 'h', 'f') | SELECT hashes
kv_hdel('game', 'h', 'f') | DELETE hashes
kv_hincrby('game', 'h', 'f', 1) | SELECT hashes, INSERT hashes, UPDATE hashes
kv_sadd('game', 's', 9) | INSERT sets
kv_srem('game', 's', 1) | DELETE sets
kv_smembers('game', 's') | SELECT sets
kv_sismember('game', 's', 1) | SELECT sets
kv_scard('game', 's') | SELECT sets
kv_sinter('game', 's', 's') | SELECT sets
kv_sunion('game', 's', 's') | SELECT sets
kv_sdiff('game', 's', 't') | SELECT sets
kv_srandmember('game', 's') | SELECT sets |  | kv_srandmember(text,text)
kv_srandmember('game', 's', 2) | SELECT sets |  | kv_srandmember(text,text,bigint)
kv_spop('game', 's') | SELECT sets, DELETE sets |  | kv_spop(text,text)
kv_spop('game', 's', 2) | SELECT sets, DELETE sets |  | kv_spop(text,text,bigint)
kv_zadd('game', 'z', 3, 'c') | INSERT scores, UPDATE scores
kv_zincrby('game', 'z', 1, 'a') | SELECT scores, INSERT scores, UPDATE scores
kv_zrem('game', 'z', 'a') | DELETE scores
kv_zscore('game', 'z', 'a') | SELECT scores
kv_zcard('game', 'z') | SELECT scores
kv_zcount('game', 'z', 0, 9) | SELECT scores
kv_zrank('game', 'z', 'a') | SELECT scores
kv_zrevrank('game', 'z', 'a') | SELECT scores
kv_zrange('game', 'z', 0, -1) | SELECT scores
kv_zrevrange('game', 'z', 0, -1) | SELECT scores
kv_zrangebyscore('game', 'z', 0, 9) | SELECT scores
kv_zrevrangebyscore('game', 'z', 9, 0) | SELECT scores
kv_zremrangebyscore('game', 'z', 0, 1) | SELECT scores, DELETE scores
kv_zremrangebyrank('game', 'z', 0, 0) | SELECT scores, DELETE scores
kv_zpopmin('game', 'z') | SELECT scores, DELETE scores
kv_zpopmax('game', 'z') | SELECT scores, DELETE scores
kv_zunionstore('game', 'y', '{z}') | SELECT scores, INSERT scores, UPDATE scores, DELETE scores
kv_zunionstore('game', 'y', '{z,s}') | SELECT scores, INSERT scores, UPDATE scores, DELETE scores, SELECT sets | of a set
kv_zinterstore('game', 'y', '{z}') | SELECT scores, INSERT scores, UPDATE scores, DELETE scores
kv_zinterstore('game', 'y', '{z,s}') | SELECT scores, INSERT scores, UPDATE scores, DELETE scores, SELECT sets | of a set
kv_del('game', 'h') | DELETE keys
kv_rename('game', 'h', 'h2') | INSERT keys, DELETE keys
kv_exists('game', 'h') | SELECT keys
kv_type_of('game', 'h') | SELECT keys
kv_expire('game', 'h', 100) | UPDATE keys
kv_persist('game', 'h') | UPDATE keys
kv_ttl('game', 'h') | SELECT keys
kv_keys('game') | SELECT keys
kv_scan('game') | SELECT keys
kv_purge('game') | SELECT hashes, SELECT keys, DELETE keys, SELECT scores, SELECT sets
kv_leaderboard('game', 'third', 'others', 'n') | SELECT keys, OWN others, INSERT scores, UPDATE scores, DELETE scores
$catalogue$), '\n') WITH ORDINALITY l (line, n), regexp_split_to_array(l.line, ' *[|] *') f;
-- Functions that are not immutable, but touch no table: they make values up, or what they do depends on types or settings.
CREATE TEMP VIEW without_tables AS SELECT f::regprocedure AS function FROM (VALUES
  ('objectid()'),
  ('bson_array("any")'),
  ('bson_build("any")'),
  ('to_bson(anycompatible)'),
  ('bucket_to_recordset(bucket)'),
  ('bucket_unpack(bucket,anyelement)'),
  ('bucket_document(bucket,bson,bson,text[],timestamp with time zone,timestamp with time zone,text)'),
  ('bson_populate_record(anyelement,bson)'),
  ('bson_populate_recordset(anyelement,bson_value)'),
  ('bson_to_record(bson)'),
  ('bson_eval(bson,bson_value)'),
  ('bson_array_append(bson,text,"any")'),
  ('bson_set(bson,text,anycompatible)'),
  ('bson_set(bson,text,anycompatible,boolean)'),
  ('bson_project(bson,bson,bson)'),
  ('bson_update(bson,bson,bson,bson_value,boolean)'),
  ('bson_update(bson,bson_value,bson,bson_value,boolean)'),
  ('bson_update(bson,text,bson,bson_value,boolean)'),
  ('bson_to_recordset(bson_value)'),
  ('row_to_bson(record)'),
  ('bson_distinct_add(bson_value,anycompatible)')) v (f);

-- The table of the page.
CREATE FUNCTION pg_temp.needed(function regprocedure, call text, needs text[]) RETURNS text LANGUAGE sql AS $$
  SELECT coalesce(string_agg(CASE WHEN place ~ '^(database|schema)$' THEN format('CREATE on the %s', place) WHEN rights = 'OWN' THEN 'to own ' || place ELSE format('%s on %s', rights, place) END, '; ' ORDER BY n), 'nothing')
  FROM (
    SELECT place, string_agg(replace(r, '/', ' or '), ', ' ORDER BY n) AS rights, min(n) AS n
    FROM (SELECT place, word[1] AS r, min(n) AS n FROM unnest(needs) WITH ORDINALITY u (need, n), string_to_array(need, ' ') word,
      LATERAL (SELECT substring(call from CASE WHEN word[2] IS NULL THEN '^\w+?\((.*?)''(?:[{])?(?:' || (SELECT string_agg(relname, '|') FROM pg_class WHERE relkind IN ('r', 'f') AND relnamespace = 'public'::regnamespace) || ')['',}]'
                                     ELSE '^\w+?\((.*?)''(?:[{][\w,]*)?' || word[2] || '['',}]' END) AS before) b,
      LATERAL (SELECT CASE WHEN need = 'CREATE' THEN 'schema' WHEN need = 'CREATE DATABASE' THEN 'database' WHEN before IS NULL THEN 'the table ' || word[2]
                           ELSE format('`%s`', coalesce(substring(before from '(\w+) => $'), (SELECT proargnames[1 + length(before) - length(replace(before, ',', ''))] FROM pg_proc WHERE oid = function))) END AS place) a
      GROUP BY 1, 2) w
    GROUP BY place) r
$$;
CREATE TEMP VIEW page AS
SELECT format('| %s | %s |', needs, string_agg(entry, ', ' ORDER BY place)) AS line, min(place) AS place
FROM (SELECT pg_temp.needed(function, call, needs) AS needs, format('`%s`', substring(call from '^\w+')) || coalesce(' (' || remark || ')', '') AS entry, min(place) AS place
  FROM catalogue GROUP BY 1, 2) l
GROUP BY needs
UNION ALL SELECT '| needs | calls |', 0;
