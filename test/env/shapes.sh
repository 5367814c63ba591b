# For the scripts in test/t that prove the patterns of shapes, of what belongs together and of what happened, which source it: a
# database with a declaration of every kind, and what has to hold in it. Who calls sets PGUSER to the owner of it all.
#
#   shapes_fill DATABASE      makes the tables, declares and fills (the database has the extension)
#   shapes_rows DATABASE      prints what all tables hold, in one order
#   shapes_made DATABASE      prints declarations, triggers, indexes, views, generated functions and dependencies
#   shapes_writes             prints SQL that writes through every pattern in a transaction that is rolled back, and says "ok" or
#                             what is wrong
#   shapes_alive DATABASE     runs it and prints what is wrong: nothing

shapes_fill() {
  psql -XqAt -v ON_ERROR_STOP=1 -d "$1" >/dev/null <<'SQL' || echo 'not ok 0 - the tables were made'
SET timezone = 'UTC';
SELECT collection_create(c) FROM unnest('{movies,messages,crm,billing,support,shows,halls,books,notes,patients,doctors,orders,players}'::text[]) c;
CREATE TABLE parts (id int, doc bson, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (1000);
CREATE SCHEMA "o'S.chema";
CREATE TABLE "o'S.chema"."T ""t%s" ("K k" int PRIMARY KEY, "D ""d" bson);
CREATE FUNCTION "o'S.chema"."f ""f"(text) RETURNS int IMMUTABLE LANGUAGE sql RETURN length($1);

-- several on one table
SELECT schema_versioning_enable('movies', current => 2, write => 'accept'),
       schema_versioning_step('movies', 1, 2, up_update => '[{$set: {directors: {$cond: ["$director", ["$director"], []]}}}, {$unset: "director"}]', down_update => '[{$set: {director: {$arrayElemAt: ["$directors", 0]}}}, {$unset: "directors"}]');
SELECT attribute_enable('movies', into_field => 'releases', pattern => 'release_{location}', value_field => 'date', is_unique => true);
SELECT polymorphic_enable('movies', by => 'kind', common => '{required: ["title"]}'),
       polymorphic_variant('movies', 'film', schema => '{required: ["minutes"], properties: {minutes: {bsonType: "int"}}}', indexes => '{minutes}'), polymorphic_variant('movies', 'series', schema => '{required: ["seasons"]}');
SELECT versioning_enable('movies'), change_feed_enable('movies');
CREATE INDEX movies_director ON movies ((movies_as_v1(doc) ->> 'director'));
SELECT payload_enable('messages', 'body', '{sender: "jsonpath:$.from", size: "jsonpath:$.size::int"}'), ttl_enable('messages', 'until', '1 day');
SELECT polymorphic_merge('merged', merge_on => 'c', sources => '{crm,billing,support}', arrays => '{support}', fields => '{billing: {total: 1}}');
SELECT preallocated_enable('shows', 'seats', preallocated_grid('{3,4}'), store => 'slots', available_field => 'free'), change_feed_enable('shows', notify => false);
SELECT preallocated_enable('halls', 'days', preallocated_pool(5), store => 'document', available_field => 'left'), versioning_enable('halls', storage => 'full', keep => 50);
SELECT single_collection_enable('books', id_fields => '{"book": "bookId", "user": "_id"}', self_related => '{book}', on_delete => 'cascade');
SELECT single_collection_enable('notes', key_field => 'at', on_delete => 'cascade');
SELECT relationship_enable('patients', 'doctors', 'doctors', 'patients'), relationship_enable('patients', 'friends', 'patients', 'friends', missing => 'allow');
SELECT query_table_create('orders_by_user', 'orders', '{u}', '{d: -1}', '{t: 1}', '{d: "date", t: "numeric(10,2)"}'), query_table_create('newest', 'orders', '{u}', '{d: -1}', limit_per_partition => 2),
       query_table_create('by_n', 'orders', '{n}', is_unique => true), change_feed_enable('orders', documents => false, notify => false);
SELECT single_table_create('app', 1, 'ttl');
SELECT single_table_entity('app', 'user', 'USER#{id}', 'PROFILE', gsi1_pk => 'MAIL#{mail}'), single_table_entity('app', 'order', 'USER#{id}', 'ORDER#{n:04}');
SELECT versioning_enable('app', revision_field => 'rev');
SELECT kv_create('game'), kv_leaderboard('game', 'best', 'players', 'points');
SELECT attribute_enable('parts', 'list', prefix => 'x_'), polymorphic_enable('parts', by => 'kind', unknown => 'accept'), polymorphic_variant('parts', 'a', schema => '{required: ["u"]}'),
       versioning_enable('parts'), change_feed_enable('parts', notify => false), query_table_create('parts_by_u', 'parts', '{u}'), preallocated_enable('parts', 'cells', preallocated_pool(3), store => 'slots'),
       single_collection_enable('parts', types => '{p}', views => false), kv_leaderboard('game', 'parts', 'parts', 'u');
SELECT attribute_enable('"o''S.chema"."T ""t%s"', '"li''st ""%s"', prefix => 'x ''"%s', view_name => 'W ''w%s', name => 'at ''"%s'), payload_enable('"o''S.chema"."T ""t%s"', '"pay ''%s"', '{"\"n ''\"\"%s\"": "function:\"o''S.chema\".\"f \"\"f\""}'),
       polymorphic_enable('"o''S.chema"."T ""t%s"', by => '"ki''nd %s"', unknown => 'accept'), polymorphic_variant('"o''S.chema"."T ""t%s"', 'it''s %s', schema => '{required: ["x"]}'),
       schema_versioning_enable('"o''S.chema"."T ""t%s"', field => 'v', current => 2, write => 'accept', stem => 'st"em '' %s'), schema_versioning_step('"o''S.chema"."T ""t%s"', 1, 2, up_update => '{$rename: {old: "new"}}', down_update => '{$rename: {new: "old"}}'),
       versioning_enable('"o''S.chema"."T ""t%s"', revision_field => '"re''v %s"'), change_feed_enable('"o''S.chema"."T ""t%s"', name => 'fe''"ed %s', notify => false), preallocated_enable('"o''S.chema"."T ""t%s"', '"se''at %s"', preallocated_pool(2), store => 'slots', available_field => '"fr''ee %s"'),
       relationship_enable('"o''S.chema"."T ""t%s"', 'friends', '"o''S.chema"."T ""t%s"', 'friends', name => 're''l "%s'), query_table_create('"o''S.chema"."Q ""q%s"', '"o''S.chema"."T ""t%s"', '{"\"ke''y %s\""}', name => 'qu''"ery %s'),
       single_collection_enable('"o''S.chema"."T ""t%s"', types => ARRAY['ty''"pe %s'], name => 'si''"ng %s'), kv_create('o''S.pace "k%s'), kv_leaderboard('o''S.pace "k%s', 'it''s %s', '"o''S.chema"."T ""t%s"', 'x', name => 'bo''"ard %s');
SELECT ttl_enable('"o''S.chema"."T ""t%s"', '"un''til ""%s"', '1 day', name => 'tt''"l %s');

INSERT INTO movies_v1 (doc) SELECT bson_build('_id', i, 'title', 't' || i, 'kind', (ARRAY['film', 'series'])[i % 2 + 1], 'minutes', i, 'seasons', i, 'director', 'd' || i, 'release_US', i, 'release_UK', -i) FROM generate_series(1, 12) i;
UPDATE movies_current SET doc = bson_set(doc, 'directors.1', 'second') WHERE _id <= 4;
DO $$ BEGIN FOR i IN 1 .. 10 LOOP UPDATE movies SET doc = bson_set(doc, 'seen', i) WHERE _id IN (i, 5); COMMIT; END LOOP; END $$;
DELETE FROM movies WHERE _id = 12;
INSERT INTO messages (doc) SELECT bson_build('_id', i, 'body', format('{"from": "f%s", "size": %s, "text": "%s"}', i, i, repeat('text ', 100))) FROM generate_series(1, 8) i;
INSERT INTO crm (doc) SELECT bson_build('_id', i, 'c', i) FROM generate_series(1, 6) i;
INSERT INTO billing (doc) SELECT bson_build('_id', i, 'c', i * 2, 'total', i, 'secret', i) FROM generate_series(1, 6) i;
INSERT INTO support (doc) SELECT bson_build('_id', i, 'c', i % 4) FROM generate_series(1, 10) i;
UPDATE merged SET doc = bson_set(doc, 'note', 'mine') WHERE doc -> 'c' = 3;
INSERT INTO shows (doc) SELECT bson_build('_id', i) FROM generate_series(1, 4) i;
INSERT INTO halls (doc) SELECT bson_build('_id', i) FROM generate_series(1, 3) i;
SELECT preallocated_claim('shows', 1, '{A1,B2}', 'ada'), preallocated_claim('shows', 2, '{A1}', 'bob', '1 day'), preallocated_claim('halls', 1, '{2,3}', 'ada'), preallocated_claim('halls', 2, '{1}', 'bob', '1 day');
INSERT INTO books (doc) VALUES ('{_id: "b1", bookId: 1, docType: "book"}'), ('{_id: "b2", bookId: 2, docType: "book"}'), ('{_id: "ada", docType: "user"}'), ('{_id: "bob", docType: "user"}');
INSERT INTO books (doc) SELECT bson_build('_id', i, 'docType', 'review', 'relatedTo', bson_array(1 + i % 2, 'ada')) FROM generate_series(1, 6) i;
INSERT INTO notes (doc) VALUES ('{_id: 1, at: "a"}'), ('{_id: 2, at: "a/1"}'), ('{_id: 3, at: "a/1/x"}'), ('{_id: 4, at: "ab"}');
INSERT INTO doctors (doc) SELECT bson_build('_id', i) FROM generate_series(1, 4) i;
INSERT INTO patients (doc) SELECT bson_build('_id', i, 'doctors', bson_array(1 + i % 4, 1 + (i + 1) % 4), 'friends', bson_array(1 + i % 7)) FROM generate_series(1, 6) i;
INSERT INTO orders (doc) SELECT bson_build('_id', i, 'u', i % 4, 'd', date '2024-01-01' + i, 'n', i, 't', i * 1.5) FROM generate_series(1, 20) i;
INSERT INTO app (doc) SELECT bson_build('entity', 'order', 'id', i % 3, 'n', i, 'ttl', 4000000000) FROM generate_series(1, 6) i;
INSERT INTO app_user (doc) VALUES ('{id: 1, mail: "a#b"}');
UPDATE app_user SET doc = bson_set(doc, 'name', 'n');
SELECT kv_hset('game', 'h', 'a', 1), kv_sadd('game', 's', 'x', 'y'), kv_expire('game', 's', 100000);
SELECT kv_zadd('game', 'z', i % 7, 'm' || i) FROM generate_series(1, 30) i;
INSERT INTO players (doc) SELECT bson_build('_id', i, 'points', i * 7 % 30) FROM generate_series(1, 30) i;
INSERT INTO parts SELECT i, bson_build('docType', 'p', '_id', i, 'u', i, 'kind', 'a', 'x_b', i, 'relatedTo', bson_array(i)) FROM generate_series(5, 15) i;
UPDATE parts SET doc = bson_set(doc, 'x_c', 1) WHERE id % 2 = 0;
SELECT preallocated_claim('parts', 12, '{2}', 'ada');
INSERT INTO "o'S.chema"."T ""t%s" SELECT i, bson_build('docType', 'ty''"pe %s', '_id', i, 'x', i, 'old', 'o', 'ki''nd %s', 'it''s %s', 'x ''"%sy', i, 'pay ''%s', repeat('p', i * 50), 'ke''y %s', 'k', 'friends', bson_array(i)) FROM generate_series(1, 3) i;
SELECT preallocated_claim('"o''S.chema"."T ""t%s"', 1, '{2}', 'ada'), kv_hset('o''S.pace "k%s', 'h''"%s', 'f', 1);
SQL
}

shapes_rows() {
  psql -XqAt -d "$1" 2>&1 <<'SQL'
SET timezone = 'UTC';
SELECT format('SELECT %L, r::text FROM %s r ORDER BY r::text COLLATE "C"', c.oid::regclass, c.oid::regclass) FROM pg_class c
  WHERE relkind = 'r' AND NOT relispartition AND relnamespace::regnamespace::text IN ('public', '"o''S.chema"', 'game', '"o''S.pace ""k%s"') ORDER BY c.oid::regclass::text COLLATE "C" \gexec
SELECT 'parts', tableoid::regclass, p::text FROM parts p ORDER BY id;
SQL
}

shapes_made() {
  psql -XqAt -d "$1" 2>&1 <<'SQL'
SELECT rel, pattern, name, options FROM pattern_list() ORDER BY rel::text COLLATE "C", pattern COLLATE "C", name COLLATE "C";
SELECT tgrelid::regclass, pg_get_triggerdef(oid), tgenabled FROM pg_trigger WHERE tgname LIKE 'zz_docpatterns_%' ORDER BY tgrelid::regclass::text COLLATE "C", tgname COLLATE "C";
SELECT indrelid::regclass, pg_get_indexdef(indexrelid), obj_description(indexrelid, 'pg_class') FROM pg_index WHERE indrelid >= 16384 AND indrelid::regclass::text !~ '^pg_toast' ORDER BY indrelid::regclass::text COLLATE "C", pg_get_indexdef(indexrelid) COLLATE "C";
SELECT oid::regclass, pg_get_viewdef(oid), reloptions, obj_description(oid, 'pg_class'), relowner::regrole FROM pg_class WHERE relkind = 'v' AND oid >= 16384 AND relnamespace::regnamespace::text IN ('public', '"o''S.chema"') ORDER BY oid::regclass::text COLLATE "C";
SELECT p.oid::regprocedure, prosrc, prosqlbody IS NULL, obj_description(p.oid, 'pg_proc') FROM pg_proc p WHERE p.oid >= 16384 AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = p.oid AND deptype = 'e') AND pronamespace::regnamespace::text !~ '^pg_' ORDER BY p.oid::regprocedure::text COLLATE "C";
SELECT pg_describe_object(classid, objid, objsubid), pg_describe_object(refclassid, refobjid, refobjsubid), deptype FROM pg_depend
  WHERE classid IN ('pg_trigger'::regclass, 'pg_class'::regclass, 'pg_proc'::regclass) AND refclassid = 'pg_class'::regclass AND refobjid >= 16384 AND pg_describe_object(classid, objid, objsubid) !~ 'toast' ORDER BY pg_describe_object(classid, objid, objsubid) COLLATE "C", pg_describe_object(refclassid, refobjid, refobjsubid) COLLATE "C", deptype;
SQL
}

shapes_alive() { shapes_writes | psql -XqAt -v ON_ERROR_STOP=1 -d "$1" 2>&1 | grep -v '^ok\(|ok\)*$'; }

# Each line that asks something prints one line: "ok" if what stands in the second place is what was written, or what is wrong.
shapes_writes() {
  cat <<'SQL'
SET timezone = 'UTC';
BEGIN;
CREATE FUNCTION pg_temp.is(what text, got text, expected text) RETURNS text LANGUAGE sql RETURN CASE WHEN got = expected THEN 'ok' ELSE format('%s: %s, not %s', what, got, expected) END;
CREATE FUNCTION pg_temp.refused(command text) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN EXECUTE command; RETURN 'taken'; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $f$;

INSERT INTO movies_wide (doc) VALUES ('{_id: 100, title: "new", kind: "film", minutes: 5, director: "x", release_DE: 1}');
UPDATE movies_v1 SET doc = bson_set(bson_set(doc, 'director', 'new'), 'release_FR', 7) WHERE _id = 2;
DELETE FROM movies WHERE _id = 3;
SELECT pg_temp.is('attribute', doc ->> 'releases', '[{"location": "DE", "date": 1}]') FROM movies WHERE _id = 100;
SELECT pg_temp.is('attribute, unique', pg_temp.refused($$UPDATE movies SET doc = bson_update(doc, '{$push: {releases: {location: "US", date: 2}}}') WHERE _id = 1$$), '23505');
SELECT pg_temp.is('schema versions', (doc -> 'directors')::text || (doc ->> 'schema_version') || (doc ->> 'releases.2.date'), '["new", "second"]27') FROM movies WHERE _id = 2;
SELECT pg_temp.is('an index on a version', (SELECT string_agg(_id::text, ',') FROM movies WHERE movies_as_v1(doc) ->> 'director' = 'new'), '2');
SELECT pg_temp.is('polymorphic', pg_temp.refused($$INSERT INTO movies (doc) VALUES ('{title: "x", kind: "film"}')$$) || pg_temp.refused($$UPDATE movies SET doc = bson_set(doc, 'kind', 'opera')$$), '2351423514');
SELECT pg_temp.is('a view of a variant', sum(minutes)::text, '15') FROM movies_film WHERE _id IN (4, 6, 100);
SELECT pg_temp.is('versioning', (SELECT string_agg(operation, ',' ORDER BY revision) FROM movies_history WHERE key = 3), 'insert,update,update,delete'), pg_temp.is('versioning, before', versioning_at('movies', 2, 1) ->> 'director', 'd2'), pg_temp.is('versioning, gone', (SELECT count(*)::text FROM movies_history WHERE key = 12), '2');
SELECT pg_temp.is('change feed', (SELECT string_agg(operation, ',' ORDER BY number) FROM (SELECT * FROM movies_feed ORDER BY number DESC LIMIT 3) f), 'insert,update,delete');
UPDATE messages_whole SET doc = bson_set(doc, 'body', '{"from": "new", "size": 7}') WHERE _id = 1;
SELECT pg_temp.is('payload', (doc ->> 'sender') || (doc ->> 'size') || (SELECT doc ->> 'body' FROM messages_whole WHERE _id = 2), 'new7' || format('{"from": "f%s", "size": %s, "text": "%s"}', 2, 2, repeat('text ', 100))) FROM messages WHERE _id = 1;
SELECT pg_temp.is('payload, bad', pg_temp.refused($$UPDATE messages SET doc = bson_set(doc, 'body', '{')$$), '22P02');
UPDATE billing SET doc = bson_set(doc, 'c', 100) WHERE _id = 1; DELETE FROM crm WHERE _id = 5; TRUNCATE support;
SELECT pg_temp.is('merged', string_agg(doc ->> 'c', ',' ORDER BY doc -> 'c') || ':' || sum((doc -> 'billing.total')::int), '1,2,3,4,6,8,10,12,100:21') FROM merged;
SELECT pg_temp.is('merged, direct', pg_temp.refused($$DELETE FROM merged$$), '55000');
SELECT pg_temp.is('preallocated', concat(preallocated_claim('shows', 1, '{A1}', 'eve'), preallocated_claim('shows', 1, '{A2,A3}', 'eve'), preallocated_confirm('shows', 2, '{A1}', 'bob'), preallocated_release('shows', 1, '{B2}', 'ada')), 'ftt' || 't');
SELECT pg_temp.is('preallocated, free', string_agg(doc ->> 'free', ',' ORDER BY _id), '4,6,7,7') FROM shows_whole;
SELECT pg_temp.is('preallocated, a cell', pg_temp.refused($$UPDATE shows SET doc = bson_set(doc, 'seats.0.0', 'me')$$), '23514');
SELECT pg_temp.is('preallocated in documents', concat(preallocated_claim('halls', 1, '{2}', 'eve'), preallocated_claim('halls', 1, '{1}', 'eve'), preallocated_confirm('halls', 2, '{1}', 'bob')), 'ftt');
SELECT pg_temp.is('preallocated in documents, free', string_agg(concat(doc ->> 'left', doc -> 'days'), ',' ORDER BY _id), '2["eve", "ada", "ada", 0, 0],4["bob", 0, 0, 0, 0],5[0, 0, 0, 0, 0]') FROM halls;
INSERT INTO books (doc) VALUES ('{_id: 50, docType: "review", relatedTo: [1, "bob"]}');
UPDATE books SET doc = bson_set(doc, 'bookId', 11) WHERE _id = '"b1"';
DELETE FROM books WHERE _id = '"b2"';
SELECT pg_temp.is('single collection', (SELECT count(*)::text FROM single_collection_get('books', 11)) || (SELECT count(*) FROM single_collection_get('books', 2)) || (SELECT count(*) FROM single_collection_get('books', 'ada', 'review')), '506');
SELECT pg_temp.is('single collection, nobody', pg_temp.refused($$INSERT INTO books (doc) VALUES ('{docType: "review", relatedTo: [77]}')$$), '23503');
UPDATE notes SET doc = bson_set(doc, 'at', 'b') WHERE _id = 1;
SELECT pg_temp.is('keys', string_agg(doc ->> 'at', ',' ORDER BY _id) || (SELECT count(*) FROM single_collection_get('notes', 'b')), 'b,b/1,b/1/x,ab3') FROM notes;
UPDATE doctors SET doc = bson_update(doc, '{$addToSet: {patients: 4}}') WHERE _id = 3;
DELETE FROM doctors WHERE _id = 1;
INSERT INTO patients (doc) VALUES ('{_id: 7}');
SELECT pg_temp.is('relationship', string_agg(doc ->> 'doctors', ' ' ORDER BY _id), '[2, 3] [3, 4] [4] [2, 3] [2, 3] [3, 4]') FROM patients WHERE _id < 7;
SELECT pg_temp.is('relationship, to come', doc ->> 'friends', '[6]') FROM patients WHERE _id = 7;
SELECT pg_temp.is('relationship, nobody', pg_temp.refused($$UPDATE patients SET doc = bson_set(doc, 'doctors.0', 99) WHERE _id = 1$$), '23503');
UPDATE orders SET doc = bson_set(doc, 'u', 77) WHERE _id <= 3; DELETE FROM orders WHERE _id = 20;
SELECT pg_temp.is('query table', string_agg(concat_ws(' ', d, t), ',' ORDER BY d), '2024-01-02 1.50,2024-01-03 3.00,2024-01-04 4.50') FROM orders_by_user WHERE u = 77;
SELECT pg_temp.is('query table, limit', string_agg(source_key::text, ',' ORDER BY source_key), '2,3,12,16') FROM newest WHERE u IN (77, 0);
SELECT pg_temp.is('query table, unique', pg_temp.refused('INSERT INTO orders (doc) VALUES (''{n: 5}'')') || pg_temp.refused('DELETE FROM newest'), '2350555000');
SELECT pg_temp.is('feed of keys', string_agg(concat(operation, array_to_string(paths, '')), ',' ORDER BY number), 'updateu,updateu,updateu,delete') FROM (SELECT * FROM orders_feed ORDER BY number DESC LIMIT 4) f;
SELECT pg_temp.is('single table', single_table_put('app', 'order', '{id: 9, n: 9}') ->> 'SK', 'ORDER#0009');
UPDATE app SET doc = bson_set(doc, 'n', 100) WHERE sk = 'ORDER#0005';
SELECT pg_temp.is('single table, keys', string_agg(sk, ',' ORDER BY sk), 'ORDER#0002,ORDER#0100') FROM app WHERE pk = 'USER#2';
SELECT pg_temp.is('single table, index', gsi1_pk || (doc ->> 'rev'), 'MAIL#a%23b2') FROM app WHERE entity = 'user';
SELECT pg_temp.is('kv', concat(kv_hincrby('game', 'h', 'a', 2), kv_zadd('game', 'z', 100, 'm1', -1, 'new'), kv_sadd('game', 's', 'z'), kv_ttl('game', 's') > 0), '311t');
SELECT pg_temp.is('kv, ranks', concat(kv_zrank('game', 'z', 'm1'), ' ', kv_zrank('game', 'z', 'new'), ' ', kv_zcard('game', 'z'), kv_scard('game', 's')), '30 0 313');
UPDATE players SET doc = bson_set(doc, 'points', 1000) WHERE _id = 5;
SELECT pg_temp.is('leaderboard', concat(kv_zrevrank('game', 'best', 5), pg_temp.refused($$SELECT kv_zadd('game', 'best', 1, 1)$$), pg_temp.refused('DELETE FROM game.scores')), '05500055000');
INSERT INTO parts VALUES (3, '{docType: "p", _id: 3, u: 100, kind: "a", x_n: 1, relatedTo: [3, 12]}'); UPDATE parts SET id = 500 WHERE id = 7; DELETE FROM parts_2 WHERE id = 14;
SELECT pg_temp.is('partitions', concat(doc -> 'list', preallocated_claim('parts', 3, '{1}', 'x'), preallocated_claim('parts', 12, '{2}', 'x'), kv_zrevrank('game', 'parts', 3), (SELECT count(*) FROM parts_by_u WHERE u IN (7, 14, 100)), (SELECT string_agg(operation, '' ORDER BY number) FROM parts_feed WHERE key IN (3, 7, 500, 14) AND number > (SELECT max(number) - 4 FROM parts_feed))), '[{"name": "n", "value": 1}]tf02insertdeleteinsertdelete') FROM parts WHERE id = 3;
SELECT pg_temp.is('partitions, history', string_agg(operation, ',' ORDER BY key, revision), 'insert,delete,insert,update,delete,insert') FROM parts_history WHERE key IN (7, 14, 500);
INSERT INTO "o'S.chema"."T ""t%s" VALUES (4, '{docType: "ty''\"pe %s", _id: 4, x: 50, "ki''nd %s": "it''s %s", "x ''\"%sz": 1, "pay ''%s": "four", "ke''y %s": "k4", friends: [1, 2]}'); DELETE FROM "o'S.chema"."T ""t%s" WHERE "K k" = 2;
SELECT pg_temp.is('hostile names', concat("D ""d" -> '"li''st ""%s"', "D ""d" -> '"n ''""%s"', preallocated_claim('"o''S.chema"."T ""t%s"', 4, '{1}', 'x'), (SELECT count(*) FROM "o'S.chema"."Q ""q%s"), (SELECT count(*) FROM "o'S.chema"."T ""t%s_history"), kv_zrevrank('o''S.pace "k%s', 'it''s %s', 4), kv_hincrby('o''S.pace "k%s', 'h''"%s', 'f', 1), (SELECT string_agg("D ""d" ->> 'friends', ' ' ORDER BY "K k") FROM "o'S.chema"."T ""t%s")), '[{"name": "z", "value": 1}]4t3802[1, 4] [3] [1]') FROM "o'S.chema"."T ""t%s" WHERE "K k" = 4;
SELECT v FROM pattern_check() v;
ROLLBACK;
SQL
}
