-- Patterns beside each other on one table: what each keeps stays true, whatever is written with the others there (INSERT, COPY, MERGE,
-- both forms of ON CONFLICT, the table and all views, calls), and after all are disabled, in another order each time, there are plain
-- documents that hold what was written. Five patterns are tried at a time, so chosen that each meets every other one once.
\set QUIET 1
SET client_min_messages = warning;
SET timezone = 'UTC';
\o /dev/null
CREATE SCHEMA together;
SET search_path = together, public;

-- Of each pattern: how it is declared, where and under which name, what a document (number %1$s) comes with, what is then done to
-- document 2, and what is in documents after it was disabled, document 2 last.
CREATE TABLE patterns (pattern text PRIMARY KEY, place int GENERATED ALWAYS AS IDENTITY, enable text, rel text, name text, comes text, does text, plain text, plain_2 text);
INSERT INTO patterns (pattern, enable, rel, name, comes, does, plain, plain_2) VALUES
  ('schema_versioning', $$SELECT schema_versioning_enable('t', current => 2), schema_versioning_step('t', 1, 2, up_update => '{$rename: {old: "new"}}', down_update => '{$rename: {new: "old"}}')$$,
    't', 'schema_version', 'old: "x"', $$UPDATE t_v1 SET doc = bson_set(doc, 'old', 'y') WHERE _id = 2$$, 'new: "x"', 'new: "y"'),
  ('attribute', $$SELECT attribute_enable('t', into_field => 'specs', prefix => 'spec_')$$,
    't', 'specs', 'spec_a: 1, spec_b: "x"', $$UPDATE t_wide SET doc = bson_set(doc, 'spec_a', 2) WHERE _id = 2$$, 'spec_a: 1, spec_b: "x"', 'spec_a: 2, spec_b: "x"'),
  ('payload', $$SELECT payload_enable('t', 'letter', '{sender: "regex:from (\\w+)"}')$$,
    't', 'letter', 'letter: "from ann"', $$UPDATE t_whole SET doc = bson_set(doc, 'letter', 'from bob') WHERE _id = 2$$, 'letter: "from ann"', 'letter: "from bob"'),
  ('reference', $$SELECT reference_enable('t', 'maker', 'makers', live => '{name}')$$,
    't', 'maker', 'maker: 1', $$UPDATE t SET doc = bson_set(doc, 'maker', 2) WHERE _id = 2; UPDATE makers SET doc = bson_set(doc, 'name', 'new') WHERE _id = 2$$,
    'maker: {_id: 1, name: "m1"}', 'maker: {_id: 2, name: "new"}'),
  ('relationship', $$SELECT relationship_enable('t', 'pals', 'others', 'friends')$$,
    't', 'pals', 'pals: [1]', $$UPDATE others SET doc = bson_update(doc, '{$addToSet: {friends: 2}}') WHERE _id = 2$$, 'pals: [1]', 'pals: [1, 2]'),
  ('preallocated', $$SELECT preallocated_enable('t', 'seats', preallocated_pool(2), store => 'slots', available_field => 'free')$$,
    't', 'seats', '', $$SELECT preallocated_claim('t', 2, '{2}', holder => 'ada')$$, 'seats: [0, 0], free: 2', 'seats: [0, "ada"], free: 1'),
  ('tree_attach', $$SELECT tree_attach('t', tree => 'categories', parent => 'category', ancestors => 'trail')$$,
    't', 'category', 'category: 2', $$UPDATE t SET doc = bson_set(doc, 'category', 1) WHERE _id = 2$$, 'category: 2, trail: [1, 2]', 'category: 1, trail: [1]'),
  ('polymorphic', $$SELECT polymorphic_enable('t', by => 'kind'), polymorphic_variant('t', 'a', schema => '{"required": ["side"], "properties": {"side": {"bsonType": "int"}}}')$$,
    't', 'kind', 'kind: "a", side: 1', $$UPDATE t_a SET doc = bson_set(doc, 'side', 2) WHERE _id = 2$$, 'kind: "a", side: 1', 'kind: "a", side: 2'),
  ('single_collection', $$SELECT single_collection_enable('t', type_field => 'docType', related_field => 'relatedTo', self_related => '{b}')$$,
    't', 'relatedTo', 'docType: "b"', $$UPDATE t SET doc = bson_set(doc, 'relatedTo', bson_array(2, 1)) WHERE _id = 2$$, 'docType: "b", relatedTo: [%1$s]', 'docType: "b", relatedTo: [2, 1]'),
  ('outlier', $$SELECT outlier_enable('t', 'list', 2, keep => 1, chunk => 2, is_set => true)$$,
    't', 'list', 'list: [1, 2, 3]', $$SELECT outlier_push('t', 2, 4); UPDATE t_whole SET doc = bson_array_append(doc, 'list', 5) WHERE _id = 2$$, 'list: [1, 2, 3]', 'list: [1, 2, 3, 4, 5]'),
  ('subset_fields', $$SELECT subset_fields_enable('t', cold => '{cold,meta.cold}', name => 'cold')$$,
    't', 'cold', 'cold: "c", meta: {warm: 1, cold: 2}', $$UPDATE t_whole SET doc = bson_set(doc, 'cold', 'd') WHERE _id = 2$$, 'cold: "c", meta: {warm: 1, cold: 2}', 'cold: "d", meta: {warm: 1, cold: 2}'),
  ('subset', $$SELECT subset_enable('t', field => 'last', source => 'events', on_field => 'of', order_by => '{x: -1}', keep => 1, fields => '{x: 1}', count_field => 'events')$$,
    't', 'last', '', $$INSERT INTO events (doc) VALUES ('{of: 2, x: 3}'), ('{of: 2, x: 4}')$$, '', ''),
  ('computed', $$SELECT computed_enable('t', 'events', 'of', '{total: {$sum: "$x"}}')$$,
    't', 'total', '', $$INSERT INTO events (doc) VALUES ('{of: 2, x: 5}')$$, '', ''),
  ('rollup', $$SELECT rollup_enable('t', name => 'by_level', fields => '{n: {$count: {}}}', time_field => 'at', levels => '{day,year}')$$,
    't', 'by_level', 'at: ISODate("2024-01-01T10:00:00Z")', $$UPDATE t SET doc = bson_set(doc, 'at', timestamptz '2024-02-02 10:00Z') WHERE _id = 2$$,
    'at: ISODate("2024-01-01T10:00:00Z")', 'at: ISODate("2024-02-02T10:00:00Z")'),
  ('slots', $$SELECT approximation_enable('t', 'views', slots => 2)$$,
    't', 'views', 'views: 5', $$SELECT approximation_add('t', 2, 1, name => 'views'); UPDATE t_whole SET doc = bson_set(doc, 'views', 9) WHERE _id = 2; SELECT approximation_add('t', 2, 1, name => 'views')$$, 'views: 5', 'views: 10'),
  ('threshold', $$SELECT approximation_enable('t', 'people', threshold => '10')$$,
    't', 'people', 'people: 100', $$UPDATE t SET doc = bson_set(doc, 'people', 150) WHERE _id = 2; UPDATE t SET doc = bson_set(doc, 'people', 155) WHERE _id = 2$$, 'people: 100', 'people: 150'),
  ('versioning', $$SELECT versioning_enable('t')$$,
    't', 'revision', 'was: 1', $$UPDATE t SET doc = bson_set(doc, 'was', 2) WHERE _id = 2; UPDATE t SET doc = bson_set(doc, 'was', 3) WHERE _id = 2$$, 'was: 1', 'was: 3'),
  ('change_feed', $$SELECT change_feed_enable('t', notify => false)$$,
    't', 'feed', 'fed: 1', $$UPDATE t SET doc = bson_set(doc, 'fed', 2) WHERE _id = 2$$, 'fed: 1', 'fed: 2'),
  ('query_table', $$SELECT query_table_create('t_by_g', source => 't', partition => '{g}', fields => '{h: 1}')$$,
    't', 't_by_g', 'g: 1, h: 1', $$UPDATE t SET doc = bson_set(doc, 'g', 2) WHERE _id = 2$$, 'g: 1, h: 1', 'g: 2, h: 1'),
  ('polymorphic_merge', $$SELECT polymorphic_merge('all_of', merge_on => 'who', sources => '{t}')$$,
    'all_of', 't', 'who: %1$s', $$UPDATE t SET doc = bson_set(doc, 'who', 'two') WHERE _id = 2$$, 'who: %1$s', 'who: "two"'),
  ('leaderboard', $$SELECT kv_create('board'), kv_leaderboard('board', 'best', 't', 'points')$$,
    't', 'best', 'points: %1$s', $$UPDATE t SET doc = bson_set(doc, 'points', 20) WHERE _id = 2$$, 'points: %1$s', 'points: 20');

CREATE TABLE wrong (round int, what text);

CREATE FUNCTION note(round int, at text) RETURNS void LANGUAGE sql AS $$
  INSERT INTO wrong SELECT round, at || ': ' || v FROM pattern_check() v
$$;

-- A document with what the patterns want of it, or with what they leave.
CREATE FUNCTION document(mine patterns[], id int, n int) RETURNS bson LANGUAGE sql AS $$
  SELECT ('{_id: ' || id || string_agg(format(coalesce(', ' || nullif(comes, ''), ''), id), '' ORDER BY place) || ', n: ' || n || '}')::bson FROM unnest(mine)
$$;
CREATE FUNCTION plain(mine patterns[], id int, n int) RETURNS bson LANGUAGE sql AS $$
  SELECT ('{_id: ' || id || string_agg(format(coalesce(', ' || nullif(CASE id WHEN 2 THEN plain_2 ELSE plain END, ''), ''), id), '' ORDER BY place) || ', n: ' || n || '}')::bson FROM unnest(mine)
$$;

CREATE PROCEDURE try(round int, mine patterns[]) LANGUAGE plpgsql AS $$
DECLARE
  p patterns;
  v regclass;
  at text := 'declare';
  k int := array_length(mine, 1);
BEGIN
  BEGIN
    PERFORM collection_create(c) FROM unnest('{t,others,makers,categories,events}'::text[]) c;
    PERFORM tree_enable('categories', parent => 'up');
    INSERT INTO others (doc) VALUES ('{_id: 1}'), ('{_id: 2}');
    INSERT INTO makers (doc) VALUES ('{_id: 1, name: "m1"}'), ('{_id: 2, name: "m2"}');
    INSERT INTO categories (doc) VALUES ('{_id: 1}'), ('{_id: 2, up: 1}');
    FOREACH p IN ARRAY mine LOOP
      EXECUTE p.enable;
    END LOOP;

    at := 'write';
    INSERT INTO t (doc) VALUES (document(mine, 1, 1)), (document(mine, 2, 1));
    EXECUTE format('COPY t (doc) FROM PROGRAM %L', format('echo %L', document(mine, 3, 1)));
    INSERT INTO t (doc) VALUES (document(mine, 1, 2)), (document(mine, 4, 2)) ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
    INSERT INTO t (doc) VALUES (document(mine, 2, 2)), (document(mine, 5, 2)) ON CONFLICT (_id) DO UPDATE SET doc = bson_set(t.doc, 'n', EXCLUDED.doc -> 'n');
    INSERT INTO t (doc) VALUES (document(mine, 3, 9)) ON CONFLICT DO NOTHING;
    MERGE INTO t USING (VALUES (4, document(mine, 4, 2)), (6, document(mine, 6, 2))) AS s (id, doc) ON t._id = s.id
      WHEN MATCHED THEN UPDATE SET doc = s.doc WHEN NOT MATCHED THEN INSERT (doc) VALUES (s.doc);
    PERFORM note(round, 'written');
    at := 'change';
    FOREACH p IN ARRAY mine LOOP
      EXECUTE p.does;
    END LOOP;
    UPDATE t SET doc = bson_set(doc, 'n', (doc -> 'n')::int + 1);
    FOR v IN SELECT tgrelid::regclass FROM pg_trigger JOIN pg_class c ON c.oid = tgrelid WHERE relkind = 'v' AND relnamespace = 'together'::regnamespace AND tgtype & 80 = 80 ORDER BY tgrelid::regclass::text LOOP
      at := 'write to ' || v;
      EXECUTE format('UPDATE %s SET doc = bson_set(doc, ''n'', (doc -> ''n'')::int + 1)', v);
      EXECUTE format('UPDATE %s SET doc = bson_set(doc, ''n'', (doc -> ''n'')::int - 1)', v);
      EXECUTE format('DELETE FROM %s WHERE _id = 6', v);
      EXECUTE format('INSERT INTO %s (doc) VALUES ($1)', v) USING document(mine, 6, 1);
    END LOOP;
    PERFORM note(round, 'written through views');
    at := 'delete';
    DELETE FROM t WHERE _id = 4;
    INSERT INTO t (doc) VALUES (document(mine, 4, 3));
    DELETE FROM t WHERE _id IN (5, 6);
    PERFORM note(round, 'deleted');
  EXCEPTION WHEN OTHERS THEN
    INSERT INTO wrong VALUES (round, at || ': ' || SQLSTATE || ' ' || SQLERRM);
  END;
  COMMIT;
  FOR i IN 1..k LOOP
    p := mine[(i + round) % k + 1];
    BEGIN
      PERFORM pattern_disable(p.rel::regclass, p.name);
      UPDATE t SET doc = bson_set(doc, 'n', (doc -> 'n')::int + 1);
      PERFORM note(round, 'written without ' || p.pattern);
    EXCEPTION WHEN OTHERS THEN
      INSERT INTO wrong VALUES (round, p.pattern || ' disabled: ' || SQLSTATE || ' ' || SQLERRM);
    END;
    COMMIT;
  END LOOP;
  INSERT INTO wrong SELECT round, format('expected %s, found %s', e.doc, t.doc)
    FROM (SELECT i, plain(mine, i, CASE i WHEN 3 THEN 2 ELSE 3 END + k) AS doc FROM generate_series(1, 4) i) e FULL JOIN t ON t._id = e.i
    WHERE e.doc::jsonb IS DISTINCT FROM (t.doc - 'revision' - 'schema_version')::jsonb;
  INSERT INTO wrong SELECT round, 'left behind: ' || tgname FROM pg_trigger WHERE tgrelid = 't'::regclass AND NOT tgisinternal AND tgname LIKE 'zz\_docpatterns%' AND tgname NOT LIKE 'zz\_docpatterns\_00%';
  DROP TABLE IF EXISTS t, others, makers, categories, events, all_of, by_level CASCADE;
  DROP SCHEMA IF EXISTS board CASCADE;
  INSERT INTO wrong SELECT round, 'left behind: ' || relname FROM pg_class WHERE relnamespace = 'together'::regnamespace AND relkind IN ('r', 'v') AND relname NOT IN ('patterns', 'wrong', 'lines');
  COMMIT;
END $$;

-- The lines of a plane of 21 points: two points are on one line.
CREATE VIEW lines AS
  SELECT round, array_agg(p ORDER BY place) AS mine, string_agg(pattern, ', ' ORDER BY place) AS names
  FROM generate_series(1, 21) AS round CROSS JOIN unnest('{0,1,4,14,16}'::int[]) AS d JOIN patterns p ON p.place = (round + d) % 21 + 1 GROUP BY round;

DO $$
DECLARE
  line record;
BEGIN
  FOR line IN SELECT * FROM lines ORDER BY round LOOP
    CALL try(line.round, line.mine);
  END LOOP;
END $$;
\o
\pset fieldsep '\n'
SELECT plan(45);
SELECT is((SELECT count(*) FROM (SELECT DISTINCT a.place, b.place FROM lines CROSS JOIN unnest(mine) a CROSS JOIN unnest(mine) b WHERE a.place < b.place) pairs), 210::bigint, 'each pattern meets each other one');
SELECT is((SELECT string_agg(what, E'\n') FROM (SELECT DISTINCT what FROM wrong WHERE wrong.round = lines.round LIMIT 12) w), NULL, names) FROM lines ORDER BY round;

-- what a pattern takes out of documents when its options change is a change for others
\o /dev/null
SELECT collection_create('t'), collection_create('events');
SELECT computed_enable('t', 'events', 'of', '{total: {$sum: "$x"}}'), versioning_enable('t'), change_feed_enable('t', notify => false);
INSERT INTO t (doc) VALUES ('{_id: 1}');
INSERT INTO events (doc) VALUES ('{of: 1, x: 2}'), ('{of: 1, x: 3}');
SELECT pattern_alter('t', 'total', '{fields: {most: {$max: "$x"}}}');
\o
SELECT is((SELECT (doc - 'revision' - '_computed')::text FROM t), '{"_id": 1, "most": 3}', 'other fields are computed');
SELECT is_empty('SELECT * FROM pattern_check()', 'and history and feed know it');

-- in partitions a pattern knows its own writes, also where triggers of others are called for them
\o /dev/null
CREATE TABLE parted (id int PRIMARY KEY, doc bson) PARTITION BY HASH (id);
CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT computed_enable('parted', 'events', 'of', '{total: {$sum: "$x"}}'), subset_enable('parted', field => 'last', source => 'events', on_field => 'of', order_by => '{x: -1}', keep => 1, fields => '{x: 1}'), versioning_enable('parted');
INSERT INTO parted SELECT i, bson_build('_id', i) FROM generate_series(1, 4) i;
INSERT INTO events (doc) SELECT bson_build('of', i, 'x', i * j) FROM generate_series(1, 4) i, generate_series(1, 2) j;
\o
SELECT is((SELECT string_agg(concat_ws(' ', doc ->> 'total', doc ->> 'last'), ', ' ORDER BY id) FROM parted), '8 [{"x": 3}], 6 [{"x": 4}], 9 [{"x": 6}], 12 [{"x": 8}]', 'partitions have totals and first rows beside a history');
SELECT is_empty('SELECT * FROM pattern_check()', 'and all is true');
SELECT throws_ok(command, '42809', NULL, command) FROM (VALUES
  ($$SELECT outlier_enable('parted_0', 'list', 2)$$), ($$SELECT subset_fields_enable('parted_0', cold => '{cold}')$$), ($$SELECT approximation_enable('parted_0', 'views', slots => 2)$$),
  ($$SELECT preallocated_enable('parted_0', 'seats', preallocated_pool(2), store => 'slots')$$)) v (command);

-- what lies aside goes along with a row that another partition gets, whoever moves it: a foreign key, or a statement into which a
-- trigger puts another one
\o /dev/null
CREATE TABLE heads (id int PRIMARY KEY);
CREATE TABLE split (id int PRIMARY KEY REFERENCES heads ON UPDATE CASCADE, doc bson) PARTITION BY RANGE (id);
CREATE TABLE split_low PARTITION OF split FOR VALUES FROM (0) TO (100);
CREATE TABLE split_high PARTITION OF split FOR VALUES FROM (100) TO (200);
SELECT outlier_enable('split', 'list', 2, chunk => 2), subset_fields_enable('split', cold => '{cold}', name => 'cold'), approximation_enable('split', 'views', slots => 2),
  preallocated_enable('split', 'seats', preallocated_pool(2), store => 'slots');
INSERT INTO heads SELECT generate_series(1, 3);
INSERT INTO split SELECT i, bson_build('list', bson_array(i, 2, 3, 4, 5), 'cold', i) FROM generate_series(1, 3) i;
SELECT approximation_add('split', i, i, name => 'views'), preallocated_claim('split', i, '{2}', holder => 'ada', name => 'seats') FROM generate_series(1, 3) i;
CREATE TABLE before_moves AS SELECT id, doc FROM split_whole;
UPDATE heads SET id = id + 100;
\o
SELECT is((SELECT string_agg((w.doc - 'revision' = b.doc - 'revision')::text, ',') FROM split_whole w JOIN before_moves b ON w.id = b.id + 100), 'true,true,true', 'a foreign key moves rows to another partition, with all that lies aside');
SELECT is_empty('SELECT * FROM pattern_check()', 'and all is true');
\o /dev/null
INSERT INTO heads VALUES (1), (2);
CREATE FUNCTION also() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.id <> OLD.id THEN UPDATE together.split SET doc = bson_set(doc, 'also', true) WHERE id = 103; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER also BEFORE UPDATE ON split FOR EACH ROW EXECUTE FUNCTION also();
UPDATE split SET id = id - 100 WHERE id < 103;
\o
SELECT is((SELECT string_agg((w.doc - 'revision' = b.doc - 'revision')::text, ',') FROM split_whole w JOIN before_moves b ON w.id = b.id), 'true,true', 'so does a statement while a trigger writes to another row');
SELECT is_empty('SELECT * FROM pattern_check()', 'and all is true, too');

-- a trigger's statement between a foreign key's action and the triggers after it
\o /dev/null
DROP TRIGGER also ON split;
TRUNCATE before_moves;
INSERT INTO before_moves SELECT id, doc - 'also' FROM split_whole WHERE id < 100;
CREATE FUNCTION afterwards() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF pg_trigger_depth() = 1 THEN UPDATE together.split SET doc = bson_set(doc, 'also', true) WHERE id = 103; END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER afterwards AFTER DELETE ON split FOR EACH ROW EXECUTE FUNCTION afterwards();
DELETE FROM heads WHERE id IN (101, 102);
UPDATE heads SET id = id + 100 WHERE id < 100;
\o
SELECT is((SELECT string_agg((w.doc - 'revision' = b.doc - 'revision')::text, ',') FROM split_whole w JOIN before_moves b ON w.id = b.id + 100), 'true,true', 'what lies aside goes along where a trigger writes between a key''s action and its end');
SELECT is_empty('SELECT * FROM pattern_check()', 'and all is true still');
\o /dev/null
CREATE TABLE summed (id int PRIMARY KEY, head int REFERENCES heads ON DELETE CASCADE, doc bson);
SELECT collection_create('sums');
SELECT computed_enable('sums', 'summed', on_field => 'group', fields => '{n: {$sum: 1}, s: {$sum: "$v"}}', create_missing => true);
INSERT INTO heads VALUES (1), (2);
INSERT INTO summed SELECT i, 1 + i % 2, bson_build('group', i % 3, 'v', i) FROM generate_series(1, 12) i;
CREATE FUNCTION and_then() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF pg_trigger_depth() = 1 THEN UPDATE together.summed SET doc = bson_set(doc, 'v', 100) WHERE id = 12; END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER and_then AFTER DELETE ON summed FOR EACH ROW EXECUTE FUNCTION and_then();
DELETE FROM heads WHERE id = 2;
\o
SELECT is((SELECT string_agg(doc::text, ' ' ORDER BY _id) FROM sums), '{"_id": 0, "n": 2, "s": 106} {"_id": 1, "n": 2, "s": 14} {"_id": 2, "n": 2, "s": 10}', 'what is derived follows the key''s deletion and the trigger''s update');
SELECT is_empty('SELECT * FROM pattern_check()', 'and is right');
\o /dev/null
CREATE TABLE named (id int PRIMARY KEY REFERENCES heads ON UPDATE CASCADE, doc bson) PARTITION BY RANGE (id);
CREATE TABLE named_low PARTITION OF named FOR VALUES FROM (0) TO (100);
CREATE TABLE named_high PARTITION OF named FOR VALUES FROM (100) TO (300);
SELECT collection_create('naming');
SELECT reference_enable('naming', field => 'ref', source => 'named', live => '{name}', on_delete => 'cascade');
INSERT INTO heads VALUES (3), (4) ON CONFLICT DO NOTHING;
INSERT INTO named VALUES (3, '{name: "c"}'), (4, '{name: "d"}');
INSERT INTO naming (doc) VALUES ('{_id: 1, ref: {_id: 3}}'), ('{_id: 2, ref: {_id: 4}}');
UPDATE heads SET id = id + 200 WHERE id IN (3, 4);
\o
SELECT is((SELECT string_agg(doc::text, ' ' ORDER BY _id) FROM naming), '{"_id": 1, "ref": {"_id": 203, "name": "c"}} {"_id": 2, "ref": {"_id": 204, "name": "d"}}', 'references follow sources that a key moves to another partition');
SELECT is_empty('SELECT * FROM pattern_check()', 'and are right');

-- a field that another pattern keeps is not given to a tree afterwards
\o /dev/null
SELECT collection_create(c) FROM unnest('{boughs,hung}'::text[]) c;
SELECT tree_enable('boughs', parent => 'up', depth => 'level'), tree_attach('hung', tree => 'boughs', parent => 'bough', path => 'way');
SELECT approximation_enable(c, 'n', step => 2) FROM unnest('{boughs,hung}'::regclass[]) c;
\o
SELECT throws_ok($$SELECT pattern_alter('boughs', 'up', '{depth: "n"}')$$, '22023', NULL, 'a tree is not given a field that another pattern keeps');
SELECT throws_ok($$SELECT pattern_alter('boughs', 'up', '{path: "n.path"}')$$, '22023', NULL, 'nor one inside of it');
SELECT lives_ok($$SELECT pattern_alter('boughs', 'up', '{depth: "deep", path: "way"}')$$, 'but one of its own');
SELECT throws_ok($$SELECT pattern_alter('hung', 'bough', '{depth: "n"}')$$, '22023', NULL, 'nor is what hangs on a tree');
SELECT lives_ok($$SELECT pattern_alter('hung', 'bough', '{path: null, depth: "deep"}')$$, 'but one of its own, too');

\o /dev/null
DROP SCHEMA together CASCADE;
\o
SELECT * FROM finish();
