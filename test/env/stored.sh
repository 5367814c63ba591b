# For the scripts in test/t that prove what lies in other tables than it is written to (outliers, buckets, walls), trees, versions,
# indexes and every type, which source it: a database with a declaration of every kind, and what has to hold in it.
#
#   stored_fill DATABASE      makes the tables in the first schema of search_path, declares and fills (the database has the extension)
#   stored_writes             prints SQL that writes through all of it in a transaction that is rolled back, and says "ok" or what
#                             is wrong

stored_fill() {
  psql -XqAt -v ON_ERROR_STOP=1 -d "$1" >/dev/null <<'SQL' || echo 'not ok 0 - the tables were made'
SET timezone = 'UTC';
SELECT collection_create(c) FROM unnest('{books,users,lendings,kinds,forms,goods,by_path,by_above,by_list,posts,follows,people,films,athletes,cat,keyed,sights,policies,sold}'::text[]) c;
CREATE TABLE pieces (id int, k text, doc bson, PRIMARY KEY (id, k)) PARTITION BY RANGE (id);
CREATE TABLE pieces_1 PARTITION OF pieces FOR VALUES FROM (0) TO (100);
CREATE TABLE pieces_2 PARTITION OF pieces FOR VALUES FROM (100) TO (200);
CREATE SCHEMA "st'O.red";
CREATE TABLE "st'O.red"."T ""t" ("K k" text PRIMARY KEY, "D ""d" bson);
CREATE TABLE "st'O.red"."N ""n%s" ("K k" int PRIMARY KEY, "D ""d" bson);
CREATE TABLE "st'O.red"."L ""l" (id int, part int, doc bson, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE "st'O.red"."P 1" PARTITION OF "st'O.red"."L ""l" FOR VALUES IN (1);
CREATE TABLE "st'O.red"."P 2" PARTITION OF "st'O.red"."L ""l" FOR VALUES IN (2);
CREATE FUNCTION "st'O.red"."f ""f"(text) RETURNS int IMMUTABLE LANGUAGE sql RETURN length($1);

-- outliers: in extras of their own and in a collection
SELECT outlier_enable('books', 'b', 3, chunk => 2, count_field => 'n'), outlier_enable('users', 'o', 1, extras => 'lendings', on_field => 'u', count_field => 'n'), outlier_enable('pieces', 'p', 2, keep => 0, stay => 'last'),
       outlier_enable('"st''O.red"."T ""t"', 'a."b c"', 1, name => 'it''s "n" %s', index_elements => true, is_set => true);
SELECT collection_validator('books', '{_id: {$ne: -9}}', 'moderate'), collection_validator('policies', '{_id: {$ne: -9}}');
INSERT INTO books (doc) SELECT bson_build('_id', i, 'b', (SELECT bson_agg(j) FROM generate_series(1, i) j)) FROM generate_series(1, 9) i;
INSERT INTO users (doc) VALUES ('{_id: "u1", o: [{_id: 1, a: 1}, {_id: 2}, {_id: 3}]}'), ('{_id: "u2", o: []}');
INSERT INTO pieces SELECT 60 * i, 'k', '{p: [1, 2, 3, 4]}' FROM generate_series(1, 2) i;
INSERT INTO "st'O.red"."T ""t" VALUES ('x''y', '{a: {"b c": [1, 2, 3]}}');

-- measurements, some of which wait
SELECT bucket_create('readings', columns => 'g int, ts timestamptz, v float8, note text, doc bson', group_by => '{g}', time_field => 'ts', span => '1 hour', max_count => 50, time_zone => 'Europe/Berlin'),
       bucket_create('"st''O.red"."Page ""s"', columns => '"Who" text, n numeric(10,2)', group_by => '{Who}', span => NULL, max_count => 10),
       bucket_create('slots', columns => 'g int, ts timestamp, v int', group_by => '{g}', time_field => 'ts', span => '1 day', granularity => '1 minute', same_slot => 'add');
INSERT INTO readings SELECT i % 3, timestamptz '2024-03-30' + i * interval '1 min', CASE WHEN i % 7 > 0 THEN i / 10.0 END, 'n' || i % 4, bson_build('i', i) FROM generate_series(0, 2999) i;
INSERT INTO readings VALUES (1, '2024-03-30', 'NaN', 'late', NULL), (NULL, '2025-01-01', '-0', 'no group', NULL);
ALTER FOREIGN TABLE readings RENAME COLUMN v TO value;
SELECT bucket_add_column('readings', 'more', 'int');
UPDATE readings SET more = 1 WHERE g = 2;
INSERT INTO "st'O.red"."Page ""s" SELECT 'x', i FROM generate_series(1, 25) i;
SELECT bucket_pack('"st''O.red"."Page ""s"');
INSERT INTO "st'O.red"."Page ""s" SELECT 'x', i FROM generate_series(26, 28) i;
INSERT INTO slots VALUES (1, '2024-01-01 00:00:10', 1), (1, '2024-01-01 00:00:20', 2);
SELECT bucket_create('series', timeseries => '{timeField: "ts", metaField: "meta"}', group_by => '{meta.sensor}');
INSERT INTO series (doc) SELECT bson_build('_id', i, 'ts', timestamptz '2024-03-30' + i * interval '1 min', 'meta', bson_build('sensor', i % 3), 'v', i) FROM generate_series(0, 1499) i;
INSERT INTO series (doc) VALUES ('{ts: ISODate("1960-01-01"), meta: {sensor: 1}, later: [1]}');
ALTER FOREIGN TABLE series RENAME COLUMN ts TO at;

-- trees in every form, and documents that hang on one
SELECT tree_enable('forms', parent => 'up', ancestors => 'anc', path => 'path', children => 'kids', depth => 'depth', on_delete => 'reparent', order_by => 'rank'),
       tree_enable('by_path', parent => 'up', path => 'path', separator => '/', depth => 'depth', truth => 'path'),
       tree_enable('by_above', parent => 'up', ancestors => 'above', ancestors_order => 'nearest_first', truth => 'ancestors', on_delete => 'cascade'),
       tree_enable('by_list', parent => 'up', children => 'kids', depth => 'depth', truth => 'children'),
       tree_enable('"st''O.red"."N ""n%s"', node_id => 'na me', parent => '"a.b"', ancestors => 'x.y', name => 'it''s %s');
SELECT tree_attach('goods', tree => 'forms', parent => 'cat', ancestors => 'cats', depth => 'depth');
INSERT INTO forms (doc) SELECT bson_build('_id', i, 'up', nullif(i / 3, 0), 'rank', -i) FROM generate_series(40, 1, -1) i;
INSERT INTO goods (doc) SELECT bson_build('_id', i, 'cat', nullif(i % 41, 0)) FROM generate_series(1, 60) i;
INSERT INTO by_path (doc) VALUES ('{_id: "a"}'), ('{_id: "b", path: "/a"}'), ('{_id: "c", path: "/a/b"}'), ('{_id: "d"}');
INSERT INTO by_above (doc) VALUES ('{_id: 1}'), ('{_id: 2, above: [1]}'), ('{_id: 3, above: [2, 1]}'), ('{_id: 4}');
INSERT INTO by_list (doc) VALUES ('{_id: 3}'), ('{_id: 2, kids: [3]}'), ('{_id: 1, kids: [2]}'), ('{_id: 4, kids: []}');
INSERT INTO "st'O.red"."N ""n%s" VALUES (1, '{"na me": "b", "a.b": "a"}'), (2, '{"na me": "a"}'), (3, NULL);

-- walls
SELECT fanout_enable('posts', walls => 'walls', author => 'by', followers => 'follows', follower => 'r', followee => 'a', keep => 5, celebrity_threshold => 3),
       fanout_enable('posts', walls => 'best', author => 'by', followers => 'follows', follower => 'r', followee => 'a', keep => 4, celebrity_threshold => 8, order_by => '{v: -1}');
INSERT INTO follows (doc) SELECT bson_build('_id', i, 'r', i % 5, 'a', i % 3) FROM generate_series(1, 10) i;
INSERT INTO posts (doc) SELECT bson_build('_id', i, 'by', i % 3, 'v', i * 7 % 20) FROM generate_series(1, 20) i;

-- versions: nothing in these functions is qualified, and whoever restores has another search_path
CREATE FUNCTION people_up(d bson) RETURNS bson LANGUAGE sql IMMUTABLE AS $f$ SELECT bson_set(d - 'home', 'contact_method', bson_array(bson_build('home', d -> 'home'))) $f$;
CREATE FUNCTION people_down(d bson) RETURNS bson LANGUAGE plpgsql IMMUTABLE AS $f$ BEGIN RETURN bson_set(d - 'contact_method', 'home', d -> 'contact_method.0.home'); END $f$;
SELECT schema_versioning_enable('people', current => 3, write => 'accept');
SELECT schema_versioning_step('people', 1, 2, up => 'people_up(bson)', down => 'people_down(bson)'),
       schema_versioning_step('people', 2, 3, up_update => '{$rename: {name: "called"}}', down_update => '{$rename: {called: "name"}}', schema => '{required: ["called"]}');
CREATE INDEX people_home ON people ((people_as_v1(doc) ->> 'home'));
INSERT INTO people (doc) SELECT bson_build('_id', i, 'name', 'p' || i, 'home', i::text) FROM generate_series(1, 100) i;
UPDATE people_v2 SET doc = bson_set(doc, 'x', 1) WHERE _id <= 60;
CREATE TABLE made (id int PRIMARY KEY, doc bson);
SELECT schema_versioning_enable('made', current => 2), schema_versioning_step('made', 1, 2, up_update => '{$rename: {phone: "mobile"}}', down_update => '{$rename: {mobile: "phone"}}');
ALTER TABLE made ADD COLUMN mobile text GENERATED ALWAYS AS (made_as_v2(doc) ->> 'mobile') STORED;
ALTER TABLE made ADD CHECK (made_as_v1(doc) ->> 'phone' <> 'none');
INSERT INTO made (id, doc) VALUES (1, '{phone: "111"}');
CREATE TABLE phones (id int PRIMARY KEY, doc bson) PARTITION BY RANGE (id);
CREATE TABLE phones_1 PARTITION OF phones FOR VALUES FROM (0) TO (100);
SELECT schema_versioning_enable('phones', current => 2, write => 'accept'), schema_versioning_step('phones', 1, 2, up_update => '{$rename: {phone: "mobile"}}', down_update => '{$rename: {mobile: "phone"}}');
INSERT INTO phones VALUES (1, '{phone: "1"}'), (2, '{schema_version: 2, mobile: "2"}');
-- a step that was replaced while an index used it
CREATE TABLE changed (id int PRIMARY KEY, doc bson);
SELECT schema_versioning_enable('changed', current => 2, write => 'accept'), schema_versioning_step('changed', 1, 2, up_update => '{$set: {a: 1}}', down_update => '{$unset: {a: 1}}');
CREATE INDEX changed_a ON changed ((changed_as_v2(doc) -> 'a'));
SELECT schema_versioning_step('changed', 1, 2, up_update => '{$set: {a: 2}}', down_update => '{$unset: {a: 1}}');
INSERT INTO changed VALUES (1, '{}');
-- history of keys of several columns, one of them a time
SELECT versioning_enable('policies', keep => 1000);
CREATE TABLE stays (a int, at timestamptz, doc bson, PRIMARY KEY (a, at)) PARTITION BY LIST (a);
CREATE TABLE stays_1 PARTITION OF stays FOR VALUES IN (1);
CREATE TABLE stays_2 PARTITION OF stays DEFAULT;
SELECT versioning_enable('stays', storage => 'full', revision_field => 'r');
INSERT INTO policies (doc) SELECT bson_build('_id', i, 'cover', i * 1000, 'text', repeat('x', i * 40)) FROM generate_series(1, 20) i;
INSERT INTO stays SELECT i % 3, '2026-01-01Z'::timestamptz + i * interval '1 us', bson_build('n', i) FROM generate_series(1, 9) i;
DO $$ BEGIN FOR i IN 1 .. 10 LOOP UPDATE policies SET doc = bson_set(doc, 'cover', i) WHERE _id = i % 7; UPDATE stays SET doc = bson_set(doc, 'n', i) WHERE a = 1; COMMIT; END LOOP; END $$;
DELETE FROM policies WHERE _id = 5;

-- attributes, payloads, variants, keys and query tables with what others do not have
SELECT attribute_enable('films', 'releases', pattern => 'release_{location}', value_field => 'date', rename => '{"US": "USA"}', is_unique => true), attribute_enable('films', 'specs', paths => '{color,size.height}', qualifiers => '{"size.height": "cm"}');
INSERT INTO films (doc) SELECT bson_build('_id', i, 'release_US', i, 'release_UK', 'x' || i, 'color', 'c', 'size', bson_build('height', i)) FROM generate_series(1, 20) i;
SELECT payload_enable('"st''O.red"."L ""l"', 'xml', '{a: "xpath:/m/@a::int", n: "function:\"st''O.red\".\"f \"\"f\""}'), attribute_enable('"st''O.red"."L ""l"', 'list', prefix => 'x ', view_name => 'W ''w');
INSERT INTO "st'O.red"."L ""l" SELECT i, 1 + i % 2, bson_build('xml', format('<m a="%s">%s</m>', i, repeat('text ', 100)), 'x y', i) FROM generate_series(1, 20) i;
SELECT polymorphic_enable('athletes', by => 'sport', common => '{required: ["name"]}');
SELECT polymorphic_variant('athletes', 'tennis', schema => '{required: ["event"], properties: {event: {properties: {titles: {bsonType: "int"}}}}}', indexes => '{event.titles}', unique_keys => '{name}', closed => true),
       polymorphic_variant('athletes', 'golf', schema => '{properties: {handicap: {bsonType: "double", minimum: -10}, odd: {enum: ["$numberInt", {"$numberInt": "5"}, ISODate("2020-01-01")]}}}', view => 'golfers');
SELECT polymorphic_enable('athletes', by => 'parts.kind', unknown => 'accept'), polymorphic_variant('athletes', 'seven', value => '7', of => 'parts.kind', schema => '{required: ["x"]}');
INSERT INTO athletes (doc) SELECT bson_build('_id', i, 'sport', 'tennis', 'name', 'n' || i, 'event', bson_build('titles', i), 'parts', bson_array(bson_build('kind', 7, 'x', 1), bson_build('kind', 8))) FROM generate_series(1, 20) i;
INSERT INTO athletes (doc) SELECT bson_build('_id', i, 'sport', 'golf', 'name', 'n1', 'handicap', i::float8) FROM generate_series(21, 30) i;
SELECT single_collection_enable('cat', id_fields => '{"it''s \"b\" %s": "n"}', self_related => ARRAY['it''s "b" %s'], types => ARRAY['it''s "b" %s', 'note'], on_delete => 'cascade'), single_collection_enable('keyed', key_field => 'k', separator => '::');
INSERT INTO cat (doc) SELECT bson_build('_id', i, 'docType', 'it''s "b" %s', 'n', i) FROM generate_series(1, 5) i;
INSERT INTO cat (doc) SELECT bson_build('_id', 100 + i, 'docType', 'note', 'relatedTo', bson_array(1 + i % 5)) FROM generate_series(1, 9) i;
INSERT INTO keyed (doc) VALUES ('{_id: 1, k: "a"}'), ('{_id: 2, k: "a::b"}'), ('{_id: 3, k: "a::b::c"}');
SELECT query_table_create('sold_by_user', 'sold', '{u}', '{d: -1, n: 1}', '{t: 1, twice: {$multiply: ["$t", 2]}}', '{d: "date", t: "numeric(10,2)"}', ttl_field => 'until');
INSERT INTO sold (doc) SELECT bson_build('_id', i, 'u', i % 5, 'd', date '2024-01-01' + i % 9, 'n', i, 't', i * 1.5, 'until', 4000000000) FROM generate_series(1, 30) i;
SELECT single_table_create('items', 2, 'ttl');
SELECT single_table_entity('items', 'person', 'USER#{id}', 'PROFILE', gsi1_pk => 'MAIL#{mail}'), single_table_entity('items', 'item', 'USER#{id}', 'ITEM#{n:04}', gsi2_pk => 'STATUS#{status}', view_name => 'an''s "items" %s');
INSERT INTO items (doc) SELECT bson_build('entity', 'item', 'id', i % 3, 'n', i, 'status', 'paid', 'ttl', 4000000000) FROM generate_series(1, 9) i;
INSERT INTO items_person (doc) VALUES ('{id: 1, mail: "a#b"}');
-- a sorted set of several blocks
SET docpatterns.kv_block_size = 64;
SELECT kv_create('store');
SELECT count(kv_zadd('store', 'z', i % 100, 'm' || i)) FROM generate_series(1, 300) i;
RESET docpatterns.kv_block_size;

-- all that a partitioned table may have and the others do not
SELECT collection_create(c) FROM unnest('{owners,fans}'::text[]) c;
CREATE TABLE mixed (id int, doc bson, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE mixed_1 PARTITION OF mixed FOR VALUES FROM (0) TO (10);
CREATE TABLE mixed_2 PARTITION OF mixed FOR VALUES FROM (10) TO (1000);
SELECT reference_enable('mixed', 'owner', 'owners', live => '{name}'), reference_enable('fans', 'likes', 'mixed', live => '{title}'), tree_attach('mixed', tree => 'forms', parent => 'cat', ancestors => 'cats'),
       relationship_enable('mixed', 'pals', 'mixed', 'pals', missing => 'allow'), subset_fields_enable('mixed', cold => '{specs}', name => 'mixed_cold'), approximation_enable('mixed', field => 'shown', slots => 3),
       rollup_enable('mixed', name => 'mixed_by_day', time_field => 'ts', levels => '{day}', fields => '{n: {$count: {}}, sum: {$sum: "$x"}}'),
       fanout_enable('mixed', walls => 'mixed_walls', author => 'by', followers => 'follows', follower => 'r', followee => 'a', keep => 3), polymorphic_merge('mixed_once', merge_on => 'by', sources => '{mixed,keyed}', arrays => '{mixed}');
INSERT INTO owners (doc) SELECT bson_build('_id', i, 'name', 'n' || i) FROM generate_series(1, 3) i;
INSERT INTO mixed SELECT i, bson_build('title', 't' || i, 'owner', 1 + i % 3, 'cat', 1 + i, 'pals', bson_array(1 + (i + 1) % 15), 'specs', repeat('s', i), 'ts', timestamptz '2024-01-01Z' + i * interval '5 hours', 'x', i, 'by', i % 3) FROM generate_series(1, 14) i;
INSERT INTO fans (doc) SELECT bson_build('_id', i, 'likes', i) FROM generate_series(5, 12) i;
SELECT approximation_add('mixed', 3, 5), approximation_add('mixed', 12, 7);

-- every type, odd keys, data that looks like a type wrapper, what is no document, and indexes of every kind
INSERT INTO kinds (doc) VALUES ($${_id: 1, a: {$numberInt: "5"}, b: {$numberLong: "5"}, c: {$numberDouble: "-0.0"}, d: {$numberDouble: "NaN"}, e: {$numberDecimal: "1.2300"},
  f: {$date: {$numberLong: "-62135596800001"}}, g: {$oid: "0123456789abcdef01234567"}, h: {$binary: {base64: "AAEC", subType: "80"}}, i: {$regularExpression: {pattern: "a/b\\n", options: "ix"}},
  j: {$timestamp: {t: 4294967295, i: 1}}, k: {$minKey: 1}, l: {$maxKey: 1}, m: {$undefined: true}, n: null, o: {$symbol: "s\u0000"}, p: {$code: "x"}, q: {$code: "x", $scope: {y: 1}},
  r: {$dbPointer: {$ref: "n", $id: {$oid: "0123456789abcdef01234567"}}}, s: "a\u0000\ue000\\\"\n\t", t: [], u: {}, v: [{}, [1]], w: true, "": "", "a.b": 1, a: "twice", x: {$numberDouble: "1e300"},
  y: {$uuid: "00112233-4455-6677-8899-aabbccddeeff"}, z: 1.0, i2: Infinity, "$dollar": {"$numberInt": "5"}}$$), ('{_id: {k: 1}}'), ('{_id: ObjectId("507f191e810c19729de860ea"), l: NumberLong("9223372036854775807")}'), ('{_id: "x", min: MinKey}');
INSERT INTO kinds (doc) SELECT bson_build('_id', 2, 'w', bson_build('$numberInt', '5'), 'o', bson_build('$oid', 'x', 'y', 1), 'd', bson_build('$date', bson_build('$numberLong', '1')));
CREATE TABLE loose (id objectid PRIMARY KEY, v bson_value, t treepath, b bucket, many bson[], CHECK (v IS NULL OR v <> '"forbidden"'));
INSERT INTO loose VALUES ('507f191e810c19729de860ea', '1.50', NULL, (SELECT bucket_agg(ts, '{"v": 1}'::bson) FROM generate_series(timestamptz '2024-01-01Z', '2024-01-02Z', '1 hour') ts), ARRAY['{a: 1}', '{}']::bson[]), ('507f191e810c19729de860eb', '{"a": [1, null]}', '[1, "b"]', NULL, NULL);
CREATE TABLE by_id (id objectid, doc bson) PARTITION BY HASH (id, (doc -> 'h'));
CREATE TABLE by_id_0 PARTITION OF by_id FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE by_id_1 PARTITION OF by_id FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO by_id SELECT lpad(to_hex(i), 24, '0')::objectid, bson_build('h', CASE i % 3 WHEN 0 THEN to_bson(i) WHEN 1 THEN to_bson(i::float8) ELSE to_bson(i::numeric) END) FROM generate_series(1, 40) i;
INSERT INTO sights (doc) SELECT bson_build('_id', i, 'kind', (ARRAY['lake', 'hill', 'town'])[i % 3 + 1], 'n', CASE i % 3 WHEN 0 THEN to_bson(i) WHEN 1 THEN to_bson(i / 4.0::float8) ELSE to_bson(i / 8.0) END, 'words', 'word ' || i % 90,
  'tags', bson_array('t' || i % 30, 't' || i % 17), 'seen', bson_array(bson_build('by', i % 40, 'at', i % 9)), 'map', bson_build('x', i % 50, 'y', i)) FROM generate_series(1, 600) i;
CREATE INDEX sights_all ON sights USING gin (doc);
CREATE INDEX sights_paths ON sights USING gin (doc bson_ops (paths = 'kind, map.x'));
CREATE INDEX sights_pairs ON sights USING gin (doc bson_ops (pairs = 'seen(by,at)'));
CREATE INDEX sights_words ON sights ((doc -> 'words'), (doc -> 'n') DESC);
CREATE INDEX sights_hash ON sights USING hash ((doc -> 'kind'));
CREATE UNIQUE INDEX sights_map ON sights ((doc -> 'map')) WHERE doc @@ '{"kind": {"$ne": "sea"}}';
CREATE STATISTICS sights_stats ON (doc -> 'kind'), (doc -> 'words') FROM sights;
SELECT collection_create_index('sights', '{"map.y": 1}');
SQL
}

# Each line that asks something prints one line: "ok" if what stands in the second place is what was written, or what is wrong.
stored_writes() {
  cat <<'SQL'
SET timezone = 'UTC';
BEGIN;
CREATE FUNCTION pg_temp.is(what text, got text, expected text) RETURNS text LANGUAGE sql RETURN CASE WHEN got = expected THEN 'ok' ELSE format('%s: %s, not %s', what, got, expected) END;
CREATE FUNCTION pg_temp.refused(command text) RETURNS text LANGUAGE plpgsql AS $f$ BEGIN EXECUTE command; RETURN 'taken'; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $f$;

SELECT pg_temp.is('outlier', concat(outlier_push('books', 9, 'new'), outlier_push('users', 'u1', '{"_id": 4}'::bson), outlier_push('pieces', ROW(60, 'k'), 5), outlier_push('"st''O.red"."T ""t"', 'x''y', 4)), '1111');
INSERT INTO books (doc) VALUES ('{_id: 10, b: [1, 2, 3, 4, 5, 6]}'); INSERT INTO lendings (doc) VALUES ('{_id: 5, u: "u2"}'), ('{_id: 6, u: "u2"}');
UPDATE pieces SET id = id + 50; UPDATE pieces_2 SET k = 'other' WHERE id = 170;
SELECT pg_temp.is('outlier, counts', concat_ws('|', outlier_count('books', 9), outlier_count('users', 'u1'), outlier_count('users', 'u2'), outlier_count('pieces', ROW(170, 'other')), (SELECT count(*) FROM books_b_extras WHERE key = to_bson(10)), outlier_contains('"st''O.red"."T ""t"', 'x''y', 4)), '10|4|2|4|2|t');
SELECT pg_temp.is('outlier, whole', doc::text, '{"_id": 10, "b": [1, 2, 3, 4, 5, 6], "n": 6}') FROM books_whole WHERE _id = 10;
SELECT pg_temp.is('validators', concat_ws('|', pg_temp.refused($q$INSERT INTO books (doc) VALUES ('{_id: -9}')$q$), pg_temp.refused($q$INSERT INTO policies (doc) VALUES ('{_id: -9}')$q$)), '23514|23514');
SELECT pg_temp.is('outlier, direct', pg_temp.refused('INSERT INTO books_b_extras SELECT * FROM books_b_extras'), '55000');

INSERT INTO readings SELECT 7, timestamptz '2024-05-01' + i * interval '1 min', i FROM generate_series(1, 1200) i;
UPDATE readings SET more = 2 WHERE g = 2;
DELETE FROM readings WHERE g = 1;
INSERT INTO slots VALUES (1, '2024-01-01 00:00:30', 4);
INSERT INTO "st'O.red"."Page ""s" VALUES ('x', 100);
SELECT pg_temp.is('buckets', concat_ws('|', bucket_pack('"st''O.red"."Page ""s"') > 0, (SELECT count(*) FROM readings), (SELECT sum(more) FROM readings), (SELECT v FROM slots), (SELECT count(*) FROM "st'O.red"."Page ""s_packed"), (SELECT count(*) FROM readings WHERE g IS NULL)), 't|3201|2000|7|3|1');
SELECT pg_temp.is('buckets, resized', concat_ws('|', bucket_resize('readings', span => '1 day') IS NOT NULL, (SELECT count(*) || ' ' || sum(value) FROM readings WHERE g = 7 AND ts < '2024-05-01 02:00:30')), 't|120 7260');
DO $d$ BEGIN
  PERFORM collection_insert('series', '{ts: ISODate("2024-03-30T00:00:00Z"), meta: {sensor: 8}}');
  PERFORM collection_update('series', '{"meta.sensor": 2}', '{$set: {"meta.sensor": 1}}', multi => true);
  PERFORM collection_delete('series', '{"meta.sensor": 0, ts: {$lt: ISODate("2024-03-30T12:00:00Z")}}', multi => true);
END $d$;
SELECT pg_temp.is('buckets of documents', concat_ws('|', (SELECT count(*) FROM series), collection_count('series', '{"meta.sensor": 1}'), (SELECT at FROM series WHERE "meta.sensor" = 8), collection_find('series', '{ts: {$lt: ISODate("1970-01-01")}}', '{ts: 0}'), pg_temp.refused($q$INSERT INTO series (doc) VALUES ('{}')$q$)), '1262|1001|2024-03-30 00:00:00+00|{"meta": {"sensor": 1}, "later": [1]}|23502');
SELECT pg_temp.is('buckets, direct', pg_temp.refused('DELETE FROM readings_packed'), '55000');

UPDATE forms SET doc = bson_set(doc, 'up', 20) WHERE _id = 3;
DELETE FROM forms WHERE _id = 4;
UPDATE by_path SET doc = bson_set(doc, 'path', '/d'::text) WHERE _id = 'b'::text;
UPDATE by_above SET doc = bson_set(doc, 'above', '[4]'::bson_value) WHERE _id = 2;
UPDATE by_list SET doc = bson_set(doc, 'kids', CASE WHEN _id = 1 THEN '[]'::bson_value ELSE '[2]'::bson_value END) WHERE _id IN (1, 4);
UPDATE "st'O.red"."N ""n%s" SET "D ""d" = bson_set("D ""d", '"a.b"', null) WHERE "K k" = 1;
SELECT pg_temp.is('tree', concat_ws('|', doc -> 'anc', doc ->> 'path', doc -> 'depth', (SELECT string_agg((doc -> 'kids')::text, '' ORDER BY _id) FROM forms WHERE _id IN (1, 20))), '[2, 6, 20, 3]|.2.6.20.3|4|[14, 13, 12, 5][3]') FROM forms WHERE _id = 11;
SELECT pg_temp.is('tree, attached', doc ->> 'cats', '[2, 6, 20, 3, 11]') FROM goods WHERE _id = 11;
SELECT pg_temp.is('tree, other truths', concat((SELECT doc ->> 'path' FROM by_path WHERE _id = 'c'::text), (SELECT doc ->> 'above' FROM by_above WHERE _id = 3), (SELECT concat(doc -> 'up', doc -> 'depth') FROM by_list WHERE _id = 2), (SELECT "D ""d" -> 'x.y' FROM "st'O.red"."N ""n%s" WHERE "K k" = 1)), '/d/b[2, 4]41[]');

INSERT INTO posts (doc) VALUES ('{_id: 100, by: 1, v: 1000}'), ('{_id: 101, by: 2, v: -1}'); DELETE FROM posts WHERE _id = 20; INSERT INTO follows (doc) VALUES ('{_id: 100, r: "new", a: 1}');
SELECT pg_temp.is('walls', string_agg(key::text, ','), '100,19,16,13,10') FROM fanout_timeline('posts', 'new', 5, 'walls');
SELECT pg_temp.is('walls in order', string_agg(key::text, ','), '100,19,16,13') FROM fanout_timeline('posts', 1, 4, 'best');
SELECT pg_temp.is('walls, direct', pg_temp.refused('DELETE FROM walls'), '55000');

UPDATE people_v1 SET doc = bson_set(doc, 'home', 'moved') WHERE _id = 50;
SELECT pg_temp.is('versions', (SELECT string_agg(doc::text, '') FROM people WHERE people_as_v1(doc) ->> 'home' = 'moved'), '{"_id": 50, "schema_version": 2, "name": "p50", "contact_method": [{"home": "moved"}], "x": 1}');
INSERT INTO made (id, doc) VALUES (2, '{phone: "222"}');
SELECT pg_temp.is('versions, generated', (SELECT string_agg(mobile, ',' ORDER BY id) FROM made) || pg_temp.refused($$INSERT INTO made (id, doc) VALUES (3, '{phone: "none"}')$$), '111,22223514');
SELECT pg_temp.is('versions of partitions', string_agg(doc ->> 'mobile', ',' ORDER BY id), '1,2') FROM phones_current;
UPDATE policies SET doc = bson_set(doc, 'cover', 'new') WHERE _id = 1; DELETE FROM stays WHERE a = 2; INSERT INTO policies (doc) VALUES ('{_id: 5}');
SELECT pg_temp.is('history', concat((SELECT count(*) FROM policies_history WHERE key IN (1, 5)), (SELECT string_agg(operation, ',') FROM (SELECT operation FROM policies_history WHERE key = 5 ORDER BY revision DESC LIMIT 2) h), (SELECT count(*) FROM stays_history WHERE key1 = 2 AND operation = 'delete')), '8insert,delete3');

INSERT INTO films_wide (doc) VALUES ('{_id: 99, release_US: 5, color: "red"}');
SELECT pg_temp.is('attributes', concat(doc, (SELECT doc FROM films_wide WHERE _id = 99)), '{"_id": 99, "releases": [{"location": "USA", "date": 5}], "specs": [{"name": "color", "value": "red"}]}{"_id": 99, "release_US": 5, "color": "red"}') FROM films WHERE _id = 99;
UPDATE "st'O.red"."L ""l_whole" AS w SET doc = bson_set(doc, 'xml', '<m a="7"/>') WHERE id = 1;
SELECT pg_temp.is('payloads', concat(doc -> 'a', doc -> 'n'), '710') FROM "st'O.red"."L ""l" WHERE id = 1;
SELECT pg_temp.is('variants', concat(pg_temp.refused('INSERT INTO athletes (doc) VALUES (bson_build(''sport'', ''tennis'', ''name'', ''x''))'), pg_temp.refused('INSERT INTO athletes (doc) SELECT bson_set(doc, ''_id'', 99) FROM athletes WHERE _id = 1'), pg_temp.refused('UPDATE athletes SET doc = bson_unset(doc, ''parts.0.x'') WHERE _id = 1'),
  (SELECT sum("event.titles") FROM athletes_tennis), (SELECT count(*) FROM golfers)), '23514235052351421010');
DELETE FROM cat WHERE _id = 1;
SELECT pg_temp.is('single collection', concat_ws('|', (SELECT count(*) FROM cat), (SELECT count(*) FROM cat_note), (SELECT count(*) FROM single_collection_get('keyed', 'a::b'))), '12|8|2');
UPDATE sold SET doc = bson_set(bson_set(doc, 'u', 77), 'd', date '2025-01-01' + _id::int) WHERE _id <= 3; DELETE FROM sold WHERE _id = 3;
SELECT pg_temp.is('query table', string_agg(concat_ws(' ', d, t, twice::numeric), ',' ORDER BY d), '2025-01-02 1.50 3.0,2025-01-03 3.00 6.0') FROM sold_by_user WHERE u = 77;
UPDATE items SET doc = bson_set(doc, 'n', 100) WHERE sk = 'ITEM#0009'; INSERT INTO "an's ""items"" %s" (doc) VALUES ('{id: 8, n: 8}');
SELECT pg_temp.is('single table', string_agg(concat_ws(' ', pk, sk, gsi2_pk), ',' ORDER BY pk), 'USER#0 ITEM#0100 STATUS#paid,USER#8 ITEM#0008') FROM items WHERE doc -> 'n' = 100 OR pk = 'USER#8';
SELECT pg_temp.is('kv', kv_zadd('store', 'z', 50, 'new')::text, '1');
SELECT pg_temp.is('kv, blocks', concat_ws('|', kv_zrank('store', 'z', 'm1'), kv_zrank('store', 'z', 'new'), kv_zcard('store', 'z')), '3|153|301');

UPDATE owners SET doc = bson_set(doc, 'name', 'renamed') WHERE _id = 2; UPDATE mixed SET doc = bson_set(bson_set(doc, 'title', 'new'), 'x', 100) WHERE id = 11; UPDATE mixed SET id = id + 500 WHERE id = 2; DELETE FROM mixed WHERE id = 14;
INSERT INTO mixed VALUES (600, '{title: "last", owner: 2, cat: 11, pals: [3], specs: "x", ts: ISODate("2024-01-01T00:00:00Z"), x: 1, by: 0}');
SELECT pg_temp.is('a partitioned table of all', concat_ws('|', doc, (SELECT count(*) FROM mixed WHERE doc @@ '{"owner.name": "renamed"}'), (SELECT doc ->> 'likes.title' FROM fans WHERE _id = 11), (SELECT doc ->> 'specs' FROM mixed_whole WHERE id = 600), approximation_add('mixed', 600, 4),
  (SELECT doc ->> 'pals' FROM mixed WHERE id = 3), (SELECT sum((doc -> 'sum')::int) FROM mixed_by_day), (SELECT string_agg(key::text, ',') FROM fanout_timeline('mixed', 3, 3, 'mixed_walls'))), '{"title": "last", "owner": {"_id": 2, "name": "renamed"}, "cat": 11, "pals": [3], "ts": {"$date": "2024-01-01T00:00:00Z"}, "x": 1, "by": 0, "cats": [2, 6, 20, 3, 11]}|6|new|x|t|[5, 1, 600]|181|600,502,12') FROM mixed WHERE id = 600;
INSERT INTO kinds (doc) VALUES ('{a: 1}'); SELECT pg_temp.is('an _id', string_agg(bson_typeof(_id), ''), 'objectId') FROM kinds WHERE doc @@ '{"a": 1}' AND bson_typeof(_id) = 'objectId';
SELECT pg_temp.is('a check', pg_temp.refused($$UPDATE loose SET v = '"forbidden"'$$), '23514');
INSERT INTO sights (doc) VALUES ('{_id: 1000, kind: "lake", words: "word 60", n: 1, seen: [{by: 3, at: 3}], map: {x: 1, y: 1000}}'); DELETE FROM sights WHERE _id IN (60, 150);
SET LOCAL enable_seqscan = off;
SELECT pg_temp.is('indexes', concat_ws('|', (SELECT string_agg(_id::text, ',' ORDER BY _id) FROM sights WHERE doc -> 'words' = 'word 60'::text), (SELECT count(*) FROM sights WHERE doc @@ '{"kind": "lake", "n": {"$gt": 500}}'), (SELECT count(*) FROM sights WHERE doc @@ '{"seen": {"$elemMatch": {"by": 3, "at": 3}}}'),
  pg_temp.refused($$INSERT INTO sights (doc) VALUES ('{map: {x: 1, y: 1000}}')$$), (SELECT count(*) FROM by_id WHERE id = lpad(to_hex(7), 24, '0')::objectid AND doc -> 'h' = 7)), '240,330,420,510,600,1000|34|3|23505|1');
RESET enable_seqscan;
SELECT v FROM pattern_check() v;
ROLLBACK;
SQL
}

# Answers of indexes, each beside that of a sequential scan: prints what differs, and indexes that were not used.
stored_indexes() {
  psql -XqAt -v ON_ERROR_STOP=1 -d "$1" 2>&1 <<'SQL'
CREATE FUNCTION pg_temp.differ(index text, condition text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
  rel text := CASE WHEN index ~ '^people' THEN 'people' ELSE 'sights' END;
  question text := format('SELECT concat(count(*), '' '', sum(hashtext(_id::text))) FROM %s WHERE %s', rel, condition);
  found text; expected text; line text; plan text := '';
BEGIN
  PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_indexonlyscan', 'off', true);
  EXECUTE question INTO expected;
  PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'on', true), set_config('enable_bitmapscan', 'on', true);
  EXECUTE question INTO found;
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || question LOOP plan := plan || line; END LOOP;
  RETURN CASE WHEN found <> expected THEN format('%s: %s, not %s', condition, found, expected) WHEN expected = '0 ' THEN condition || ' finds nothing' WHEN plan !~ index THEN condition || ': ' || plan END;
END $f$;
BEGIN;
SELECT d FROM (VALUES ('sights_words', $$doc -> 'words' = 'word 60'::text$$), ('sights_words', $$doc -> 'words' < 'word 2'::text AND doc -> 'n' > 30$$), ('sights_hash', $$doc -> 'kind' = 'lake'::text$$), ('sights_map', $$doc -> 'map' = '{"x": 7, "y": 57}'::bson_value AND doc @@ '{"kind": {"$ne": "sea"}}'$$),
  ('sights_map_y_idx', $$doc -> 'map.y' BETWEEN 100 AND 110$$), ('sights_all', $$doc @@ '{"tags": {"$all": ["t5", "t7"]}}'$$), ('sights_all', $$doc @@ '{"n": {"$gte": 70, "$lt": 72.5}}'$$), ('sights_(all|paths)', $$doc @> '{"map": {"x": 7}}'$$), ('sights_all', $$doc @@ '{"words": {"$regex": "^word 8"}}'$$),
  ('sights_(pairs|all)', $$doc @@ '{"seen": {"$elemMatch": {"by": 3, "at": {"$gt": 5}}}}'$$), ('sights_paths', $$doc @@ '{"kind": "hill", "map.x": 3}'$$), ('people_home', $$people_as_v1(doc) ->> 'home' = '77'$$)) q (i, c) CROSS JOIN LATERAL pg_temp.differ(i, c) d WHERE d IS NOT NULL;
ROLLBACK;
SQL
}
