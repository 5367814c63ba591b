# For the scripts in test/t that ask whether calls read or write, which source it: calls of the patterns in the databases of load.sh.
#
#   calls_read shapes|derived     statements that read, one on each line
#   calls_write shapes|derived    statements that write
#   calls_taken shapes|derived DATABASE   which of these are not refused with 25006: for a standby, and read-only transactions

# Which of the calls that write are not refused as such, with what they say instead.
calls_taken() {  # calls_taken shapes|derived DATABASE
  local n=0 call
  calls_write "$1" >"$DP_WORK/calls"
  while read -r call; do n=$((n + 1)); printf '\\echo call %s\n%s\n' $n "$call"; done <"$DP_WORK/calls" |
    psql -XqAt -v VERBOSITY=sqlstate -d "$2" 2>&1 | awk '/^call /{ if (n && !refused) print n, said; n = $2; refused = 0; said = ""; next } /^ERROR:  25006$/{ refused = 1; next } { said = $0 } END { if (!refused) print n, said }' |
    while read -r n call; do echo "$(sed -n "${n}p" "$DP_WORK/calls") $call"; done
}

calls_read() {
  cat <<'SQL'
SELECT rel, pattern, name, options FROM pattern_list() ORDER BY rel::text COLLATE "C", 2, 3;
SELECT count(*) FROM pattern_check();
SQL
  if [ "$1" = shapes ]; then
    cat <<'SQL'
SELECT doc FROM movies_v1 ORDER BY _id;
SELECT doc FROM movies_current ORDER BY _id;
SELECT doc FROM movies_wide ORDER BY _id;
SELECT * FROM movies_film ORDER BY _id;
SELECT _id FROM movies WHERE movies_as_v1(doc) ->> 'director' = 'd5' ORDER BY 1;
SELECT schema_versioning_read('movies', 2);
SELECT version, state, documents FROM schema_versioning_histogram('movies') ORDER BY 1;
SELECT * FROM schema_versioning_test('movies') ORDER BY 1;
SELECT attribute_keys('movies');
SELECT * FROM polymorphic_variants('movies');
SELECT * FROM polymorphic_errors('movies', '{kind: "film"}');
SELECT versioning_at('movies', 2, 1);
SELECT revision, operation FROM versioning_revisions('movies', 5) ORDER BY 1;
SELECT * FROM versioning_diff('movies', 5, 1, 2);
SELECT key, revision, doc FROM versioning_as_of('movies', 'infinity') ORDER BY 1;
SELECT revision, value FROM versioning_field_history('movies', 5, 'seen');
SELECT operation, key, paths, document FROM movies_feed ORDER BY number;
SELECT doc FROM messages_whole ORDER BY _id;
SELECT doc FROM merged ORDER BY doc -> 'c';
SELECT doc FROM shows_whole ORDER BY _id;
SELECT * FROM preallocated_slots('shows', 1);
SELECT preallocated_find('shows', 1, 2);
SELECT md5(string_agg(s::text, ',')) FROM preallocated_slots('shows', 99) s;
SELECT single_collection_get('books', 'ada');
SELECT * FROM orders_by_user ORDER BY u, d DESC, source_key;
SELECT query_table_read('orders_by_user', 1);
SELECT single_table_get('app', 'USER#1', 'PROFILE');
SELECT single_table_query('app', 'USER#2');
SELECT doc FROM app_order ORDER BY pk, sk;
SELECT kv_hgetall('game', 'h'), kv_hget('game', 'log', 'n'), kv_scard('game', 's'), kv_zcard('game', 'z');
SELECT kv_zrange('game', 'best', 0, -1);
SELECT kv_zrevrank('game', 'best', 5), kv_zscore('game', 'best', 5);
SELECT doc FROM patients ORDER BY _id;
SELECT collection_find('players', '{points: {$gt: 10}}', sort => '{_id: 1}');
SELECT collection_count('players', '{}'), collection_distinct('players', 'points');
SELECT id, doc FROM parts ORDER BY id;
SELECT "K k", "D ""d" FROM "o'S.chema"."T ""t%s_whole" ORDER BY 1;
SELECT count(*) FROM pattern_advise('players');
SQL
  else
    cat <<'SQL'
SELECT doc FROM movies ORDER BY _id;
SELECT doc FROM movies_seen_view ORDER BY _id;
SELECT count(*) FROM computed_staleness('made');
SELECT doc FROM by_time ORDER BY _id;
SELECT doc FROM by_category ORDER BY _id;
SELECT doc FROM products ORDER BY _id;
SELECT doc FROM films_whole ORDER BY _id;
SELECT reference, sources, copies FROM reference_staleness('items');
SELECT reference, key FROM reference_dangling('items') ORDER BY 2;
SELECT * FROM reference_cost('orders', 'customer', 'customers');
SELECT approximation_read('pages', 1, 'hits');
SELECT doc FROM votes_whole ORDER BY _id;
SELECT g, ts, n, who FROM readings ORDER BY 1, 2, 3, 4;
SELECT count(*), sum(n), min(ts) FROM readings WHERE g = 1 AND ts > timestamptz '2024-01-01 03:00';
SELECT doc FROM readings_buckets ORDER BY doc::text COLLATE "C";
SELECT buckets, packed, waiting, measurements_per_bucket FROM bucket_stats('readings');
SELECT span FROM bucket_advise('readings', '{1 hour,1 day}') ORDER BY 1;
SELECT outlier_count('tomes', 1), outlier_contains('tomes', 1, 5);
SELECT outlier_page('tomes', 1, 0, 10);
SELECT outlier_find('tomes', 5);
SELECT doc FROM tomes_whole ORDER BY _id;
SELECT outlier_advise('tomes', 'x');
SELECT tree_descendants('nodes', 1) ORDER BY 1;
SELECT tree_ancestors('nodes', (SELECT max(_id) FROM nodes));
SELECT tree_render('nodes', 1);
SELECT tree_stats('nodes');
SELECT tree_subtree_count('nodes', 1);
SELECT doc FROM leaves ORDER BY _id;
SELECT fanout_timeline('blog', 1, 3);
SELECT doc FROM walls ORDER BY _id;
SELECT graph_lookup('nodes', 1, 'up', '_id') IS NULL;
SELECT differ();
SELECT collection_find('things', '{"sub.x": {$gt: 40}}', sort => '{_id: 1}');
SELECT count(*) FROM collection_list_indexes('things');
SELECT count(*) FROM pattern_advise('things');
SQL
  fi
}

calls_write() {
  if [ "$1" = shapes ]; then
    cat <<'SQL'
SELECT work(1);
UPDATE movies_v1 SET doc = bson_set(doc, 'director', 'x') WHERE _id = 2;
CALL schema_versioning_migrate('movies', target => 1);
SELECT schema_versioning_enable('players', current => 1);
SELECT schema_versioning_step('movies', 2, 3);
SELECT attribute_enable('players', into_field => 'l', prefix => 'x_');
SELECT polymorphic_enable('players', by => 'kind');
SELECT polymorphic_variant('movies', 'play');
SELECT polymorphic_retype('movies', 2, 'series');
SELECT polymorphic_retype_all('movies', 'film', 'series');
SELECT polymorphic_merge('other', merge_on => 'c', sources => '{crm}');
SELECT versioning_enable('players');
SELECT versioning_revert('movies', 5, 1);
SELECT versioning_purge('movies', now());
SELECT versioning_redact('movies', 5, 'title');
SELECT change_feed_enable('players');
SELECT payload_enable('players', 'body');
SELECT preallocated_enable('players', 'cells', preallocated_pool(3), store => 'slots');
SELECT preallocated_claim('shows', 3, '{A1}', 'x');
SELECT preallocated_confirm('shows', 3, '{A1}', 'x');
SELECT preallocated_release('shows', 1, '{A1}', 'ada');
SELECT preallocated_extend('shows', 1, preallocated_grid('{5,5}'));
SELECT single_collection_enable('players', type_field => 'docType');
SELECT single_collection_split('books');
SELECT relationship_enable('players', 'a', 'players', 'b');
SELECT query_table_create('by_points', 'players', '{points}');
SELECT single_table_create('app2', 1);
SELECT single_table_entity('app', 'third', 'T#{id}', 'T');
SELECT single_table_put('app', 'user', '{id: 7, mail: "x"}');
SELECT single_table_update('app', 'USER#1', 'PROFILE', '{$set: {x: 1}}');
SELECT single_table_delete('app', 'USER#1', 'PROFILE');
SELECT single_table_transact('app', '[{put: {entity: "user", doc: {id: 8, mail: "y"}}}]');
SELECT single_table_purge('app');
SELECT kv_create('other');
SELECT kv_hset('game', 'h', 'a', 1);
SELECT kv_hincrby('game', 'h', 'a', 1);
SELECT kv_hdel('game', 'h', 'a');
SELECT kv_sadd('game', 's', 'new');
SELECT kv_srem('game', 's', 'x');
SELECT kv_spop('game', 's');
SELECT kv_zadd('game', 'z', 1, 'm1');
SELECT kv_zincrby('game', 'z', 1, 'm1');
SELECT kv_zrem('game', 'z', 'm1');
SELECT kv_zpopmin('game', 'z');
SELECT kv_expire('game', 'h', 10);
SELECT kv_persist('game', 's');
SELECT kv_del('game', 'h');
SELECT kv_leaderboard('game', 'more', 'players', 'points');
SELECT pattern_repair('movies', name) FROM pattern_list('movies');
SELECT pattern_alter('halls', 'revision', '{keep: 40}');
SELECT pattern_disable('players', 'best');
SELECT collection_create('fresh');
SELECT collection_insert('players', '{_id: 5000}');
SELECT collection_update('players', '{}', '{$set: {x: 1}}');
SELECT collection_delete('players', '{}');
SELECT collection_create_index('players', '{points: 1}', name => 'players_points');
SQL
  else
    cat <<'SQL'
SELECT work(1);
SELECT computed_enable('movies', 'sales', 'm', '{k: {$count: {}}}');
SELECT computed_refresh('made');
SELECT rollup_enable('sales', name => 'r', time_field => 'ts', levels => '{day}', fields => '{n: {$count: {}}}');
SELECT subset_enable('movies', 'sales', 'sales', 'm', '{d: 1}', 2);
SELECT subset_refresh('products', 'reviews');
SELECT subset_join('products', 'reviews');
SELECT subset_fields_enable('movies', cold => '{x}');
SELECT reference_enable('sales', 'c', 'customers');
SELECT reference_refresh('items');
SELECT approximation_enable('movies', field => 'k', step => 10);
SELECT approximation_add('votes', 1, 1);
SELECT approximation_add('pages', 1, 100, 'views');
SELECT outlier_enable('movies', 'x', 5);
SELECT outlier_push('tomes', 1, 5);
SELECT outlier_pull('tomes', 1, 5);
SELECT bucket_create('others', columns => 'ts timestamptz, v int', time_field => 'ts', span => '1 hour');
SELECT bucket_pack('readings');
SELECT bucket_resize('readings', '2 hours');
SELECT bucket_drop_before('readings', now());
SELECT bucket_add_column('readings', 'more', 'int');
SELECT bucket_salvage('readings');
INSERT INTO readings VALUES (1, now(), 1, 1);
UPDATE readings SET n = 0;
SELECT tree_enable('movies', parent => 'up');
SELECT tree_move('nodes', (SELECT max(_id) FROM nodes), 1);
SELECT tree_copy('nodes', (SELECT max(_id) FROM nodes), 1);
SELECT tree_delete('nodes', (SELECT max(_id) FROM nodes));
SELECT fanout_enable('sales', walls => 'w', author => 'a', followers => 'follows', follower => 'user', followee => 'of');
SELECT pattern_repair('tally', 'totals');
SELECT pattern_alter('tomes', 'x', '{threshold: 30}');
SELECT pattern_disable('tomes', 'x');
CALL pattern_build('tally', 'totals');
DELETE FROM films_whole WHERE _id = 1;
TRUNCATE blog;
SQL
  fi
}
