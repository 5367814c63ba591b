-- Patterns in a schema that Citus distributes: declared before and after, written to, moved to another server and back, and undistributed. What they keep is
-- compared with the same in an ordinary schema.
SET client_min_messages = error;
SELECT no_plan();

-- make: tables and declarations. writes: #r is the number of the round. probe: what to compare.
CREATE TABLE scenes (n serial, name text, make text, writes text, probe text);
INSERT INTO scenes (name, make, writes, probe) VALUES
('outlier', $$SELECT collection_create('books'); SELECT outlier_enable('books', 'buyers', 3, count_field => 'n', chunk => 2)$$,
 $$INSERT INTO books (doc) SELECT bson_build('_id', #r * 10 + i, 'buyers', (SELECT bson_agg(j) FROM generate_series(1, i) j)) FROM generate_series(1, 8) i;
   UPDATE books SET doc = bson_update_immutable(doc, '{$push: {buyers: 99}}') WHERE _id::int IN (#r * 10 + 2, #r * 10 + 3, #r * 10 - 5);
   DELETE FROM books WHERE _id = (#r * 10 + 7)::bson_value;
   INSERT INTO books (doc) VALUES ('{_id: #r1, buyers: [1, 2, 3, 4]}') ON CONFLICT DO NOTHING;
   INSERT INTO books (doc) VALUES ('{_id: #r2, buyers: [9, 8, 7, 6, 5]}') ON CONFLICT (_id) DO UPDATE SET doc = excluded.doc;
   MERGE INTO books AS b USING (SELECT _id FROM books WHERE _id::int IN (#r * 10 + 4, #r * 10 + 5)) AS n ON b._id = n._id WHEN MATCHED THEN UPDATE SET doc = bson_update_immutable(b.doc, '{$push: {buyers: 7}}')$$,
 $$SELECT 1, doc FROM books UNION ALL SELECT 2, bson_build('k', key, 'c', e) FROM books_buyers_extras e UNION ALL SELECT 3, doc FROM books_whole$$),
('outlier_extras', $$SELECT collection_create(c) FROM unnest('{people,loans}'::text[]) c; SELECT outlier_enable('people', 'o', 1, extras => 'loans', on_field => 'u')$$,
 $$INSERT INTO people (doc) VALUES ('{_id: #r, o: [{_id: #r1}, {_id: #r2}, {_id: #r3}]}');
   INSERT INTO loans (doc) VALUES ('{_id: #r7, u: #r}'); DELETE FROM loans WHERE _id = '#r2'::bson_value$$,
 $$SELECT 1, doc FROM people UNION ALL SELECT 2, doc FROM loans UNION ALL SELECT 3, doc FROM people_whole$$),
('subset', $$SELECT collection_create(c) FROM unnest('{products,reviews}'::text[]) c; SELECT subset_enable('products', 'reviews', 'reviews', 'product', '{date: -1}', 2, count_field => 'n', count_mode => 'immediate')$$,
 $$INSERT INTO products (doc) VALUES ('{_id: #r}'); INSERT INTO reviews (doc) SELECT bson_build('_id', #r * 10 + i, 'product', #r, 'date', i * 7 % 5) FROM generate_series(1, 5) i;
   DELETE FROM reviews WHERE _id = '#r2'::bson_value; UPDATE reviews SET doc = bson_update_immutable(doc, '{$set: {product: 1}}') WHERE _id = '#r4'::bson_value$$,
 $$SELECT 1, doc FROM products UNION ALL SELECT 2, doc FROM reviews$$),
('subset_fields', $$SELECT collection_create('films'); SELECT subset_fields_enable('films', cold => '{specs,cast.full}')$$,
 $$INSERT INTO films (doc) SELECT bson_build('_id', #r * 10 + i, 'specs', i, 'cast', bson_build('main', 1, 'full', i)) FROM generate_series(1, 3) i; UPDATE films SET doc = bson_update_immutable(doc, '{$set: {specs: "new"}}') WHERE _id = '#r1'::bson_value; DELETE FROM films WHERE _id = '#r2'::bson_value$$,
 $$SELECT 1, doc FROM films UNION ALL SELECT 2, bson_build('k', key, 'c', c) FROM films_specs_cold c UNION ALL SELECT 3, doc FROM films_whole$$),
('reference', $$SELECT collection_create(c) FROM unnest('{orders,customers}'::text[]) c; SELECT reference_enable('orders', 'customer', 'customers', live => '{name}', frozen => '{address}')$$,
 $$INSERT INTO customers (doc) SELECT bson_build('_id', #r * 10 + i, 'name', 'c' || i, 'address', 'a') FROM generate_series(1, 3) i; INSERT INTO orders (doc) SELECT bson_build('_id', #r * 10 + i, 'customer', #r * 10 + 1 + i % 3) FROM generate_series(1, 5) i;
   UPDATE customers SET doc = bson_update_immutable(doc, '{$set: {name: "new #r"}}') WHERE _id = '#r1'::bson_value$$,
 $$SELECT 1, doc FROM orders$$),
('reference_deferred', $$SELECT collection_create(c) FROM unnest('{items,suppliers}'::text[]) c; SELECT reference_enable('items', 'supplier', 'suppliers', live => '{name}', on_delete => 'unset', missing => 'allow', refresh => 'deferred')$$,
 $$INSERT INTO suppliers (doc) SELECT bson_build('_id', #r * 10 + i, 'name', 'c' || i) FROM generate_series(1, 3) i; INSERT INTO items (doc) SELECT bson_build('_id', #r * 10 + i, 'supplier', #r * 10 + 1 + i % 4) FROM generate_series(1, 5) i;
   UPDATE suppliers SET doc = bson_update_immutable(doc, '{$set: {name: "new #r"}}') WHERE _id = '#r1'::bson_value; DELETE FROM suppliers WHERE _id = '#r2'::bson_value$$,
 $$SELECT 1, doc FROM items$$),
('computed', $$SELECT collection_create(c) FROM unnest('{movies,screenings}'::text[]) c; SELECT computed_enable('movies', 'screenings', 'movie', '{n: {$count: {}}, sum: {$sum: "$x"}, best: {$max: "$i"}}', filter => '{i: {$gt: 1}}');
   SELECT computed_enable('movies', 'screenings', 'movie', '{seen: {$addToSet: "$i", cap: 100}}', mode => 'on_read')$$,
 $$INSERT INTO movies (doc) VALUES ('{_id: #r}'); INSERT INTO screenings (doc) SELECT bson_build('_id', #r * 10 + i, 'movie', #r - i % 2, 'x', i, 'i', i) FROM generate_series(1, 6) i; DELETE FROM screenings WHERE _id = '#r2'::bson_value; UPDATE screenings SET doc = bson_update_immutable(doc, '{$set: {x: 100}}') WHERE _id = '#r3'::bson_value$$,
 $$SELECT 1, doc FROM movies UNION ALL SELECT 2, doc FROM movies_seen_view$$),
('computed_deferred', $$SELECT collection_create(c) FROM unnest('{made,shown}'::text[]) c; SELECT computed_enable('made', 'shown', 'movie', '{total: {$sum: "$x"}}', create_missing => true, mode => 'deferred')$$,
 $$INSERT INTO shown (doc) SELECT bson_build('_id', #r * 10 + i, 'movie', #r - i % 2, 'x', i, 'i', i) FROM generate_series(1, 6) i; DELETE FROM shown WHERE _id = '#r2'::bson_value$$,
 $$SELECT 1, doc FROM made$$),
('rollup', $$SELECT collection_create('visits'); SELECT rollup_enable('visits', name => 'by_time', time_field => 'ts', levels => '{hour,day}', group_by => '{movie}', fields => '{viewers: {$sum: "$x"}, best: {$max: "$i"}}')$$,
 $$INSERT INTO visits (doc) SELECT bson_build('_id', #r * 10 + i, 'movie', #r - i % 2, 'x', i, 'i', i, 'ts', timestamptz '2023-01-01 UTC' + i * interval '7 hours') FROM generate_series(1, 6) i; DELETE FROM visits WHERE _id = '#r2'::bson_value$$,
 $$SELECT 1, doc FROM by_time$$),
('approximation', $$SELECT collection_create('votes'); SELECT approximation_enable('votes', field => 'likes', slots => 4); SELECT approximation_enable('votes', field => 'population', threshold => '100')$$,
 $$INSERT INTO votes (doc) VALUES ('{_id: #r, likes: 5, population: 5000}'); UPDATE votes SET doc = bson_update_immutable(doc, '{$set: {population: 5050}}'); UPDATE votes SET doc = bson_update_immutable(doc, '{$set: {likes: 7}}') WHERE _id = '#r'::bson_value$$,
 $$SELECT 1, doc FROM votes UNION ALL SELECT 2, doc FROM votes_whole$$),
('attribute', $$SELECT collection_create('attrs'); SELECT attribute_enable('attrs', into_field => 'releases', pattern => 'release_{location}', value_field => 'date', is_unique => true)$$,
 $$INSERT INTO attrs (doc) VALUES ('{_id: #r, release_US: #r1, release_UK: #r2}'); UPDATE attrs SET doc = bson_update_immutable(doc, '{$set: {release_DE: 7}}') WHERE _id = '#r'::bson_value$$,
 $$SELECT 1, doc FROM attrs UNION ALL SELECT 2, doc FROM attrs_wide$$),
('payload', $$SELECT collection_create('messages'); SELECT payload_enable('messages', 'body', '{sender: "jsonpath:$.from", size: "jsonpath:$.size::int"}')$$,
 $$INSERT INTO messages (doc) SELECT bson_build('_id', #r * 10 + i, 'body', format('{"from": "f%s", "size": %s, "text": "%s"}', i, i, repeat('text ', 10))) FROM generate_series(1, 3) i; UPDATE messages SET doc = bson_update_immutable(doc, '{$set: {body: "{\"from\": \"x\", \"size\": 7}"}}') WHERE _id = '#r1'::bson_value$$,
 $$SELECT 1, doc FROM messages UNION ALL SELECT 2, doc FROM messages_whole$$),
('polymorphic', $$SELECT collection_create('athletes'); SELECT polymorphic_enable('athletes', by => 'kind', common => '{required: ["title"]}'); SELECT polymorphic_variant('athletes', 'film', schema => '{required: ["minutes"], properties: {minutes: {bsonType: "int"}}}', indexes => '{minutes}'); SELECT polymorphic_variant('athletes', 'series', schema => '{required: ["seasons"]}')$$,
 $$INSERT INTO athletes (doc) VALUES ('{_id: #r1, kind: "film", title: "a", minutes: 1}'), ('{_id: #r2, kind: "series", title: "a", seasons: 1}')$$,
 $$SELECT 1, doc FROM athletes UNION ALL SELECT 2, doc FROM athletes_film$$),
('merge', $$SELECT collection_create(c) FROM unnest('{crm,billing}'::text[]) c; SELECT polymorphic_merge('merged', merge_on => 'c', sources => '{crm,billing}', fields => '{billing: {total: 1}}')$$,
 $$INSERT INTO crm (doc) SELECT bson_build('_id', #r * 10 + i, 'c', #r * 2 + i) FROM generate_series(1, 2) i; INSERT INTO billing (doc) SELECT bson_build('_id', #r * 10 + i, 'c', #r * 2 + i, 'total', i, 'secret', i) FROM generate_series(1, 2) i; DELETE FROM crm WHERE (_id::int) IN (#r2, #r * 10 - 8, 11)$$,
 $$SELECT 1, bson_unset(doc, '_id') FROM merged$$),
('preallocated', $$SELECT collection_create('shows'); SELECT preallocated_enable('shows', 'seats', preallocated_grid('{3,4}'), store => 'slots', available_field => 'free'); SELECT collection_create('halls'); SELECT preallocated_enable('halls', 'days', preallocated_pool(5), store => 'document', available_field => 'left')$$,
 $$INSERT INTO shows (doc) VALUES ('{_id: #r}'); INSERT INTO halls (doc) VALUES ('{_id: #r}'); UPDATE halls SET doc = bson_update_immutable(doc, '{$set: {x: 1}}'); DELETE FROM shows WHERE _id = '#r'::bson_value AND #r = 2$$,
 $$SELECT 1, doc FROM shows UNION ALL SELECT 2, doc FROM shows_whole UNION ALL SELECT 3, doc FROM halls$$),
('schema_versioning', $$SELECT collection_create('folk'); SELECT schema_versioning_enable('folk', current => 2, write => 'accept'); SELECT schema_versioning_step('folk', 1, 2, up_update => '[{$set: {names: ["$name"]}}, {$unset: "name"}]', down_update => '[{$set: {name: {$arrayElemAt: ["$names", 0]}}}, {$unset: "names"}]')$$,
 $$INSERT INTO folk (doc) VALUES ('{_id: #r, name: "a"}'); UPDATE folk SET doc = bson_update_immutable(doc, '{$set: {name: "b"}}') WHERE _id = '#r'::bson_value$$,
 $$SELECT 1, doc FROM folk UNION ALL SELECT 2, doc FROM folk_current UNION ALL SELECT 3, doc FROM folk_v1$$),
('schema_upgrade', $$SELECT collection_create('folks'); SELECT schema_versioning_enable('folks', current => 2, write => 'upgrade'); SELECT schema_versioning_step('folks', 1, 2, up_update => '[{$set: {names: ["$name"]}}, {$unset: "name"}]', down_update => '[{$set: {name: {$arrayElemAt: ["$names", 0]}}}, {$unset: "names"}]')$$,
 $$INSERT INTO folks (doc) VALUES ('{_id: #r, name: "a"}')$$,
 $$SELECT 1, doc FROM folks UNION ALL SELECT 2, doc FROM folks_current UNION ALL SELECT 3, doc FROM folks_v1$$),
('versioning', $$SELECT collection_create('policies'); SELECT versioning_enable('policies')$$,
 $$INSERT INTO policies (doc) VALUES ('{_id: #r1, x: 1}'), ('{_id: #r2, x: 1}'); UPDATE policies SET doc = bson_update_immutable(doc, '{$set: {x: 2}}') WHERE _id = '#r1'::bson_value; DELETE FROM policies WHERE _id = '#r2'::bson_value$$,
 $$SELECT 1, doc FROM policies UNION ALL SELECT 2, bson_build('k', key, 'r', revision, 'o', operation, 'd', doc) FROM policies_history$$),
('versioning_full', $$SELECT collection_create('terms'); SELECT versioning_enable('terms', storage => 'full', keep => 2)$$,
 $$INSERT INTO terms (doc) VALUES ('{_id: #r1, x: 1}'); UPDATE terms SET doc = bson_update_immutable(doc, '{$set: {x: #r}}') WHERE _id IN ('#r1'::bson_value, '11'::bson_value)$$,
 $$SELECT 1, doc FROM terms UNION ALL SELECT 2, bson_build('k', key, 'r', revision, 'o', operation, 'd', doc) FROM terms_history$$),
('change_feed', $$SELECT collection_create('fed'); SELECT change_feed_enable('fed')$$,
 $$INSERT INTO fed (doc) VALUES ('{_id: #r1, x: 1}'), ('{_id: #r2, x: 1}'); UPDATE fed SET doc = bson_update_immutable(doc, '{$set: {x: 2}}') WHERE _id = '#r1'::bson_value; DELETE FROM fed WHERE _id = '#r2'::bson_value$$,
 $$SELECT 1, bson_build('k', key, 'o', operation, 'd', document) FROM fed_feed$$),
('tree', $$SELECT collection_create(c) FROM unnest('{cats,goods}'::text[]) c; SELECT tree_enable('cats', parent => 'up', ancestors => 'anc', path => 'path', children => 'kids', depth => 'depth'); SELECT tree_attach('goods', tree => 'cats', parent => 'cat', ancestors => 'cats')$$,
 $$INSERT INTO cats (doc) SELECT bson_build('_id', #r * 10 + i, 'up', CASE WHEN i > 1 THEN #r * 10 + i / 2 END) FROM generate_series(1, 7) i; INSERT INTO goods (doc) SELECT bson_build('_id', #r * 10 + i, 'cat', #r * 10 + i) FROM generate_series(1, 7) i; UPDATE cats SET doc = bson_update_immutable(doc, '{$set: {up: #r3}}') WHERE _id = '#r2'::bson_value; DELETE FROM cats WHERE _id = '#r9'::bson_value$$,
 $$SELECT 1, doc FROM cats UNION ALL SELECT 2, doc FROM goods$$),
('rollup_tree', $$SELECT collection_create(c) FROM unnest('{kinds,sales}'::text[]) c; SELECT tree_enable('kinds', parent => 'parent'); SELECT rollup_enable('sales', name => 'by_category', tree => 'kinds', group_by => '{category}', fields => '{total: {$sum: "$amount"}}')$$,
 $$INSERT INTO kinds (doc) SELECT bson_build('_id', #r * 10 + i, 'parent', CASE WHEN i > 1 THEN #r * 10 + i / 2 END) FROM generate_series(1, 5) i; INSERT INTO sales (doc) SELECT bson_build('_id', #r * 10 + i, 'category', #r * 10 + i % 5 + 1, 'amount', i) FROM generate_series(1, 8) i; UPDATE kinds SET doc = bson_update_immutable(doc, '{$set: {parent: #r3}}') WHERE _id = '#r2'::bson_value$$,
 $$SELECT 1, doc FROM by_category$$),
('single_collection', $$SELECT collection_create('cat'); SELECT single_collection_enable('cat', id_fields => '{"book": "bookId", "user": "_id"}', self_related => '{book}', on_delete => 'cascade')$$,
 $$INSERT INTO cat (doc) VALUES ('{_id: "b#r", bookId: #r1, docType: "book"}'), ('{_id: "u#r", docType: "user"}'); INSERT INTO cat (doc) SELECT bson_build('_id', #r * 10 + i, 'docType', 'review', 'relatedTo', bson_array(#r1, 'u#r'::text)) FROM generate_series(1, 3) i; DELETE FROM cat WHERE _id = '"b#p"'::bson_value$$,
 $$SELECT 1, doc FROM cat UNION ALL SELECT 2, doc FROM cat_book$$),
('single_collection_key', $$SELECT collection_create('notes'); SELECT single_collection_enable('notes', key_field => 'at', on_delete => 'cascade')$$,
 $$INSERT INTO notes (doc) VALUES ('{_id: #r1, at: "a#r"}'), ('{_id: #r2, at: "a#r/1"}'), ('{_id: #r3, at: "a#r/1/x"}'); DELETE FROM notes WHERE _id = (#p * 10 + 1)::bson_value$$,
 $$SELECT 1, doc FROM notes$$),
('single_table', $$SELECT single_table_create('app', 1, 'ttl'); SELECT single_table_entity('app', 'user', 'USER#{id}', 'PROFILE', gsi1_pk => 'MAIL#{mail}'); SELECT single_table_entity('app', 'order', 'USER#{id}', 'ORDER#{n:04}')$$,
 $$INSERT INTO app (doc) SELECT bson_build('entity', 'order', 'id', #r, 'n', i, 'ttl', 4000000000) FROM generate_series(1, 4) i; INSERT INTO app (doc) VALUES ('{entity: "user", id: #r, mail: "x"}'); UPDATE app SET doc = bson_update_immutable(doc, '{$set: {n: 77}}') WHERE sk = 'ORDER#0002'$$,
 $$SELECT 1, bson_build('a', a) FROM app a UNION ALL SELECT 2, bson_build('d', doc) FROM app_user$$),
('query_table', $$SELECT collection_create('sold'); SELECT query_table_create('by_user', 'sold', '{u}', '{d: -1}', '{t: 1}', '{d: "date", t: "numeric(10,2)"}'); SELECT query_table_create('newest', 'sold', '{u}', '{d: -1}', limit_per_partition => 2)$$,
 $$INSERT INTO sold (doc) SELECT bson_build('_id', #r * 10 + i, 'u', i % 3, 'd', date '2024-01-01' + i + #r * 10, 't', i * 1.5) FROM generate_series(1, 7) i; DELETE FROM sold WHERE _id = '#r2'::bson_value; UPDATE sold SET doc = bson_update_immutable(doc, '{$set: {u: 9}}') WHERE _id = '#r3'::bson_value$$,
 $$SELECT 1, bson_build('u', u, 'd', d, 't', t) FROM by_user UNION ALL SELECT 2, bson_build('u', u, 'd', d) FROM newest$$),
('relationship', $$SELECT collection_create(c) FROM unnest('{patients,doctors}'::text[]) c; SELECT relationship_enable('patients', 'doctors', 'doctors', 'patients'); SELECT relationship_enable('patients', 'friends', 'patients', 'friends', missing => 'allow')$$,
 $$INSERT INTO doctors (doc) SELECT bson_build('_id', #r * 10 + i) FROM generate_series(1, 3) i; INSERT INTO patients (doc) SELECT bson_build('_id', #r * 10 + i, 'doctors', bson_array(#r * 10 + i), 'friends', bson_array(11)) FROM generate_series(1, 3) i; UPDATE patients SET doc = bson_update_immutable(doc, '{$set: {doctors: [#r1, #r2]}}') WHERE _id = '#r1'::bson_value; DELETE FROM patients WHERE _id = '#r3'::bson_value$$,
 $$SELECT 1, doc FROM patients UNION ALL SELECT 2, doc FROM doctors$$),
('fanout', $$SELECT collection_create(c) FROM unnest('{posts,follows}'::text[]) c; SELECT fanout_enable('posts', 'walls', 'by', 'follows', 'who', 'whom', order_by => '{v: -1}', keep => 3)$$,
 $$INSERT INTO follows (doc) SELECT bson_build('_id', #r * 10 + i, 'who', i, 'whom', #r - i % 2) FROM generate_series(1, 4) i; INSERT INTO posts (doc) SELECT bson_build('_id', #r * 10 + i, 'by', #r, 'v', i * 7 % 5) FROM generate_series(1, 4) i; DELETE FROM posts WHERE _id = '#r2'::bson_value$$,
 $$SELECT 1, bson_build('w', w) FROM walls w$$);

CREATE TABLE answers (way text, stage text, scene text, answer text);
CREATE TABLE failures (way text, stage text, what text);
CREATE FUNCTION answer(q text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE r text;
BEGIN
  EXECUTE 'SELECT string_agg(format(''%s'', q), E''\n'' ORDER BY format(''%s'', q)) FROM (' || q || ') q' INTO r;
  RETURN r;
EXCEPTION WHEN OTHERS THEN RETURN 'ERROR ' || SQLSTATE || ' ' || SQLERRM;
END $$;
CREATE FUNCTION try(command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE command;
  RETURN 'done';
EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE;
END $$;
-- Each statement is a transaction of its own.
CREATE PROCEDURE play(way text, stage text, script text) LANGUAGE plpgsql AS $$
DECLARE s text;
BEGIN
  FOREACH s IN ARRAY regexp_split_to_array(script, ';\s*') LOOP
    BEGIN
      EXECUTE s;
    EXCEPTION WHEN OTHERS THEN INSERT INTO public.failures VALUES (way, stage, SQLSTATE || ' ' || SQLERRM || ': ' || s);
    END;
    COMMIT;
  END LOOP;
END $$;
CREATE PROCEDURE make(way text) LANGUAGE plpgsql AS $$
DECLARE s record;
BEGIN
  PERFORM set_config('search_path', way || ', public', false);
  FOR s IN SELECT * FROM public.scenes ORDER BY n LOOP CALL public.play(way, 'make', s.make); END LOOP;
  PERFORM set_config('search_path', 'public', false);
END $$;
CREATE PROCEDURE writes(way text, r int) LANGUAGE plpgsql AS $$
DECLARE s record;
BEGIN
  PERFORM set_config('search_path', way || ', public', false);
  FOR s IN SELECT * FROM public.scenes ORDER BY n LOOP
    CALL public.play(way, 'writes ' || r, replace(replace(s.writes, '#r', r::text), '#p', (r - 1)::text));
  END LOOP;
  PERFORM set_config('search_path', 'public', false);
END $$;
CREATE PROCEDURE probe(way text, stage text) LANGUAGE plpgsql AS $$
DECLARE s record;
BEGIN
  PERFORM set_config('search_path', way || ', public', false);
  FOR s IN SELECT * FROM public.scenes ORDER BY n LOOP INSERT INTO public.answers VALUES (way, stage, s.name, public.answer(s.probe)); COMMIT; END LOOP;
  PERFORM set_config('search_path', 'public', false);
END $$;
CREATE PROCEDURE verbs(way text, verb text) LANGUAGE plpgsql AS $$
DECLARE d record;
BEGIN
  FOR d IN SELECT q.rel::text AS rel, q.pattern, q.name FROM pattern_list() q JOIN pg_class c ON c.oid = q.rel WHERE c.relnamespace = to_regnamespace(way) AND NOT (q.pattern = 'polymorphic_merge' AND verb ~ 'disable') ORDER BY q.pattern = 'tree', 1, 2 LOOP
    CONTINUE WHEN NOT EXISTS (SELECT FROM pattern_list(d.rel::regclass) q WHERE q.name = d.name);
    CALL play(way, 'verbs', format(verb, d.rel, d.name));
  END LOOP;
END $$;
CREATE FUNCTION documents(way text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE c record;
BEGIN
  FOR c IN SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(way) AND relkind = 'r' AND relname NOT IN ('merged', 'cats_up_removed') LOOP
    RETURN QUERY EXECUTE format('SELECT format(''%s: %%s'', t) FROM %I.%I t', c.relname, way, c.relname);
  END LOOP;
END $$;
CREATE FUNCTION server(way text) RETURNS text LANGUAGE sql AS $$ SELECT string_agg(DISTINCT nodeport::text, ' ') FROM citus_shards s JOIN pg_class c ON c.oid = s.table_name WHERE c.relnamespace = to_regnamespace(way) $$;
CREATE FUNCTION move(way text, mode text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE n record;
BEGIN
  SELECT d.nodename, d.nodeport INTO n FROM pg_dist_node d WHERE d.groupid <> 0 AND d.nodeport::text <> server(way);
  PERFORM citus_schema_move(way::regnamespace, n.nodename, n.nodeport, mode::citus.shard_transfer_mode);
  RETURN server(way);
END $$;
CREATE FUNCTION same(way_ text, stage_ text, as_ text) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT is(a.answer, p.answer, format('%s, %s: %s', way_, stage_, a.scene)) FROM answers a JOIN answers p USING (scene) JOIN scenes s ON s.name = a.scene WHERE a.way = way_ AND a.stage = stage_ AND p.way = 'plain' AND p.stage = as_ ORDER BY s.n
$$;

-- ---------------------------------------------------------------- the same in three schemas

CREATE SCHEMA plain;
CREATE SCHEMA before;
CREATE SCHEMA after;
SELECT citus_schema_distribute('before') \gset
CALL make('plain');
CALL make('before');
CALL make('after');
SELECT is((SELECT count(*) FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'before'::regnamespace AND NOT docpatterns._pattern_is_distributed(c.oid)), 0::bigint, 'collections and side tables of a distributed schema are distributed');
SELECT is((SELECT count(*) FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'before'::regnamespace), (SELECT count(*) FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'plain'::regnamespace), 'all of them');
CALL writes('plain', 1);
CALL writes('before', 1);
CALL writes('after', 1);
CALL probe('plain', '1');
CALL probe('before', 'declared');
SELECT try($$SELECT citus_schema_distribute('after')$$) AS refused \gset
SELECT is(:'refused'::text, 'XX000', 'Citus distributes no tables with triggers');
SET citus.enable_unsafe_triggers = on;
SELECT try($$SELECT citus_schema_distribute('after')$$) AS refused \gset
SELECT isnt(:'refused'::text, 'done', 'nor does it copy their rows where triggers are allowed');
RESET citus.enable_unsafe_triggers;
SELECT pattern_distribute_schema('after') AS n \gset
SELECT is(:n::bigint, (SELECT count(DISTINCT tgrelid) FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid WHERE c.relnamespace = 'plain'::regnamespace AND c.relkind = 'r' AND g.tgname LIKE 'zz_docpatterns%'), 'pattern_distribute_schema');
CALL probe('after', 'distributed');
SELECT is_empty($$SELECT scene FROM answers WHERE stage = '1' AND (answer IS NULL OR answer LIKE 'ERROR%') AND scene <> 'computed_deferred'$$, 'there is something to compare');
SELECT same('before', 'declared', '1');
SELECT same('after', 'distributed', '1');

CALL writes('plain', 2);
CALL writes('before', 2);
CALL writes('after', 2);
CALL probe('plain', '2');
CALL probe('before', 'written');
CALL probe('after', 'written');
SELECT same('before', 'written', '2');
SELECT same('after', 'written', '2');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is consistent in the shards');

SELECT server('before') AS before, server('after') AS after \gset
SELECT isnt(move('before', 'block_writes'), :'before'::text, 'a schema moves to another server');
SELECT isnt(move('after', 'force_logical'), :'after'::text, 'also while it takes writes');
CALL probe('before', 'moved');
CALL probe('after', 'moved');
SELECT same('before', 'moved', '2');
SELECT same('after', 'moved', '2');
CALL writes('plain', 3);
CALL writes('before', 3);
CALL writes('after', 3);
CALL probe('plain', '3');
CALL probe('before', 'written there');
CALL probe('after', 'written there');
SELECT same('before', 'written there', '3');
SELECT same('after', 'written there', '3');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is consistent there');
SELECT is(move('before', 'force_logical'), :'before'::text, 'and back');
SELECT is(move('after', 'block_writes'), :'after'::text, 'both');
CALL writes('plain', 4);
CALL writes('before', 4);
CALL writes('after', 4);
CALL probe('plain', '4');
CALL probe('before', 'written back');
CALL probe('after', 'written back');
SELECT same('before', 'written back', '4');
SELECT same('after', 'written back', '4');
CALL verbs('plain', 'SELECT pattern_repair(%L, %L)');
CALL verbs('before', 'SELECT pattern_repair(%L, %L)');
CALL verbs('after', 'SELECT pattern_repair(%L, %L)');
CALL verbs('after', 'CALL pattern_build(%L, %L, NULL)');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is consistent');
SELECT is(answer('SELECT key, operation FROM (SELECT key, operation FROM before.fed_feed ORDER BY number) f'), answer('SELECT key, operation FROM (SELECT key, operation FROM plain.fed_feed ORDER BY number) f'), 'numbers of a feed grow from server to server');

SELECT is(pattern_undistribute_schema('before'), :n::bigint, 'pattern_undistribute_schema');
SELECT is(pattern_undistribute_schema('after'), :n::bigint, 'of both');
CALL probe('plain', 'repaired');
CALL probe('before', 'undistributed');
CALL probe('after', 'undistributed');
SELECT same('before', 'undistributed', 'repaired');
SELECT same('after', 'undistributed', 'repaired');
CALL writes('plain', 5);
CALL writes('before', 5);
CALL writes('after', 5);
CALL probe('plain', '5');
CALL probe('before', 'written at last');
CALL probe('after', 'written at last');
SELECT same('before', 'written at last', '5');
SELECT same('after', 'written at last', '5');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is consistent at last');
SELECT is_empty($$SELECT * FROM failures$$, 'no statement failed');

-- ---------------------------------------------------------------- what is left behind is as in a schema that was never distributed

CREATE FUNCTION made(way text) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT replace(regexp_replace(x, '[0-9a-f]{32}', 'link', 'g'), way || '.', 'schema.') FROM (
    SELECT format('%s on %s', g.tgname, c.relname) FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid WHERE c.relnamespace = to_regnamespace(way) AND NOT g.tgisinternal
    UNION ALL SELECT format('%s %s %s %s', c.relname, c.relkind, c.reloptions, obj_description(c.oid, 'pg_class')) FROM pg_class c WHERE c.relnamespace = to_regnamespace(way) AND c.relkind IN ('r', 'v')
    UNION ALL SELECT format('%s: %s', c.relname, pg_get_viewdef(c.oid)) FROM pg_class c WHERE c.relnamespace = to_regnamespace(way) AND c.relkind = 'v'
    UNION ALL SELECT pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = to_regnamespace(way)
    UNION ALL SELECT format('%s depends on %s (%s)', pg_describe_object(d.classid, d.objid, d.objsubid), pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid), d.deptype) FROM pg_depend d JOIN pg_class c ON d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid
      WHERE c.relnamespace = to_regnamespace(way) AND c.relkind = 'r' AND d.classid IN ('pg_trigger'::regclass, 'pg_class'::regclass, 'pg_proc'::regclass) AND d.refobjsubid = 0 AND d.objsubid = 0
    UNION ALL SELECT p.oid::regprocedure::text || pg_get_functiondef(p.oid) FROM pg_proc p WHERE p.pronamespace = to_regnamespace(way)
  ) AS q (x) WHERE x NOT LIKE 'toast table%'
$$;
SELECT set_eq($$SELECT * FROM made('before')$$, $$SELECT * FROM made('plain')$$, 'objects and dependencies of the schema that was distributed before');
SELECT set_eq($$SELECT * FROM made('after')$$, $$SELECT * FROM made('plain')$$, 'and after');

-- ---------------------------------------------------------------- refusals

CREATE SCHEMA elsewhere;
CREATE SCHEMA other;
CREATE SCHEMA third;
SELECT citus_schema_distribute('other'), citus_schema_distribute('third') \gset
SELECT count(collection_create(c)) FROM unnest('{third.a,third.b,other.b,elsewhere.b}'::text[]) c \gset
SELECT is(try(command), '0A000', command) FROM unnest(ARRAY[
  $$SELECT computed_enable('third.a', 'other.b', 'x', '{n: {$count: {}}}')$$, $$SELECT computed_enable('third.a', 'elsewhere.b', 'x', '{n: {$count: {}}}')$$, $$SELECT computed_enable('elsewhere.b', 'third.a', 'x', '{n: {$count: {}}}')$$,
  $$SELECT reference_enable('third.a', 'o', 'other.b', live => '{x}')$$, $$SELECT query_table_create('elsewhere.q', 'third.a', '{u}')$$, $$SELECT query_table_create('third.q', 'elsewhere.b', '{u}')$$, $$SELECT kv_create('third')$$,
  $$SELECT bucket_create('third.q', columns => 'g int, ts timestamptz', group_by => '{g}', time_field => 'ts')$$, $$CREATE TABLE elsewhere.q AS SELECT collection_create('third.q') AS c$$]) command;
SELECT is(try('PREPARE p AS SELECT collection_create(''third.q''); EXECUTE p'), 'done', 'a prepared statement may create a collection') \gset
SELECT try($$SELECT outlier_enable('third.a', 'o', 2)$$) \gset
SELECT throws_ok($$SELECT citus_schema_undistribute('third')$$, '0A000', 'cannot replace table "a" because it is one of two tables of a pattern', 'Citus alone would drop the side table');
SELECT is(try('DROP TABLE third.a'), '2BP01', 'a table with a side table is not dropped by accident');
DROP TABLE third.a CASCADE;
SELECT is(to_regclass('third.a_o_extras'), NULL, 'with CASCADE both go');
SELECT kv_create('game'), bucket_create('elsewhere.q', columns => 'g int, ts timestamptz', group_by => '{g}', time_field => 'ts') \gset
SELECT throws_ok($$SELECT pattern_distribute_schema('game')$$, '0A000', 'cannot distribute schema "game"', 'a key-value space');
SELECT throws_ok($$SELECT pattern_distribute_schema('elsewhere')$$, '0A000', 'cannot distribute schema "elsewhere"', 'buckets');
CREATE SCHEMA copied;
SELECT collection_create('copied.a'), collection_create('copied.b') \gset
SELECT computed_enable('copied.a', 'copied.b', 'x', '{k: {$count: {}}}') \gset
INSERT INTO copied.a (doc) VALUES ('{_id: 1}');
INSERT INTO copied.b (doc) VALUES ('{_id: 1, x: 1}');
SET citus.enable_unsafe_triggers = on;
SELECT throws_ok($$SELECT citus_schema_distribute('copied')$$, 'XX000', 'cannot copy rows into shards of a table with patterns', 'triggers would count the rows again');
RESET citus.enable_unsafe_triggers;
SELECT is(answer('SELECT doc FROM copied.a'), '("{""_id"": 1, ""k"": 1}")', 'nothing has changed');
BEGIN;
SELECT collection_create('third.fed'), 'made' AS made \gset
SELECT change_feed_enable('third.fed') \gset
INSERT INTO third.fed (doc) VALUES ('{_id: 1}');
COMMIT;
SELECT is(answer('SELECT operation FROM third.fed_feed'), '(insert)', 'declared and written to in one transaction');
CREATE SCHEMA half;
SELECT collection_create('half.a'), collection_create('half.b') \gset
SELECT computed_enable('plain.movies', 'half.a', 'x', '{k: {$count: {}}}') \gset
SELECT throws_ok($$SELECT pattern_distribute_schema('half')$$, '0A000', 'cannot distribute schema "half"', 'one of two tables');
SELECT throws_ok($$SELECT pattern_distribute_schema('nowhere')$$, '3F000', NULL, 'no schema');
SELECT throws_ok($$SELECT pattern_distribute_schema(NULL)$$, '22004', NULL, 'NULL');

-- ---------------------------------------------------------------- distributed again, and without patterns

SELECT pattern_disable('plain.movies', 'k') \gset
SELECT pattern_distribute_schema('before') \gset
CALL verbs('plain', 'SELECT pattern_disable(%L, %L)');
CALL verbs('before', 'SELECT pattern_disable(%L, %L)');
SELECT is((SELECT count(*) FROM pattern_list() l JOIN pg_class c ON c.oid = l.rel WHERE c.relnamespace IN ('before'::regnamespace, 'plain'::regnamespace) AND l.pattern <> 'polymorphic_merge'), 0::bigint, 'all patterns are disabled');
SELECT set_eq($$SELECT * FROM documents('before')$$, $$SELECT * FROM documents('plain')$$, 'and documents are as they were');
SELECT is_empty($$SELECT * FROM failures$$, 'no statement failed');

SELECT * FROM finish();
