-- Document versioning beside patterns that keep fields of the same documents: what they write is no revision, makes no save stale, and
-- is left out of history, unless kept => true. And what the check knows of documents that were changed unseen.
\set QUIET 1
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(74);
CREATE SCHEMA vk;
SET search_path = vk, public;
CREATE FUNCTION story(rel regclass, k int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  result text;
BEGIN
  -- the newest is the row: without what is left out of it
  EXECUTE format('SELECT string_agg(h.revision || left(h.operation, 1) || coalesce(bson_unset(h.doc, VARIADIC ''{_id,revision}'' || coalesce(string_to_array(r.kept, '', ''), ''{}''))::text, ''''), '' '' ORDER BY h.revision)
                  FROM %1$s_history h JOIN %1$s_revisions r ON (r.key, r.revision) = (h.key, h.revision) WHERE h.key = $1', rel) INTO result USING to_bson(k);
  RETURN result;
END $$;
CREATE FUNCTION now_in(rel regclass, k int) RETURNS bson LANGUAGE plpgsql AS $$
DECLARE
  result bson;
BEGIN
  EXECUTE format('SELECT doc FROM %s WHERE _id = $1', rel) INTO result USING to_bson(k);
  RETURN result;
END $$;

-- Comments and totals, with both kinds of storage
SELECT collection_create('comments') \g /dev/null
SELECT format($q$
  SELECT collection_create(%1$L);
  SELECT subset_enable(%1$L, field => 'last', source => 'comments', on_field => 'of', order_by => '{n: -1}', keep => 3, fields => '{n: 1}', count_field => 'comments'),
         computed_enable(%1$L, 'comments', 'of', '{total: {$sum: "$n"}}'), versioning_enable(%1$L, storage => %2$L);
  INSERT INTO %1$s (doc) VALUES ('{_id: 1, title: "a"}'), ('{_id: 2, title: "x"}');
$q$, 'articles_' || s, s) FROM unnest('{delta,full}'::text[]) s
\o /dev/null
\gexec
\o
SELECT collection_create('kept') \g /dev/null
SELECT computed_enable('kept', 'comments', 'of', '{total: {$sum: "$n"}}'), versioning_enable('kept', kept => true) \g /dev/null
INSERT INTO kept (doc) VALUES ('{_id: 1, title: "a"}');
SELECT now_in('articles_delta', 1) AS delta_fresh, now_in('articles_full', 1) AS full_fresh, now_in('kept', 1) AS kept_fresh \gset
DO $$ BEGIN FOR i IN 1..20 LOOP INSERT INTO comments (doc) VALUES (bson_build('of', 1, 'n', i)); END LOOP; END $$;
SELECT is(story('articles_delta', 1), '1i{"title": "a"}', 'twenty comments are no revision');
SELECT is(story('articles_full', 1), '1i{"title": "a"}', 'likewise with whole documents');
SELECT is((SELECT count(*) FROM kept_history), 21::bigint, 'but with kept');
SELECT is(now_in('articles_delta', 1) - 'revision', '{_id: 1, title: "a", total: 210, last: [{n: 20}, {n: 19}, {n: 18}], comments: 20}', 'they are in the document');
-- an editor read it before they came
UPDATE articles_delta SET doc = bson_set(:'delta_fresh'::bson, 'title', 'b'::text) WHERE _id = 1;
UPDATE articles_full SET doc = bson_set(:'full_fresh'::bson, 'title', 'b'::text) WHERE _id = 1;
SELECT is(now_in('articles_delta', 1)::jsonb, '{"_id": 1, "title": "b", "total": 210, "last": [{"n": 20}, {"n": 19}, {"n": 18}], "comments": 20, "revision": 2}', 'the save is accepted, and the comments stay');
SELECT throws_ok(format('UPDATE kept SET doc = bson_set(%L::bson, ''title'', ''b''::text)', :'kept_fresh'), '40001', NULL, 'with kept it is not');
SELECT throws_ok(format('UPDATE articles_delta SET doc = bson_set(%L::bson, ''title'', ''c''::text) WHERE _id = 1', :'delta_fresh'), '40001', NULL, 'a second editor''s save is refused');
SELECT now_in('articles_delta', 1) AS delta_second, now_in('articles_full', 1) AS full_second \gset
INSERT INTO comments (doc) VALUES ('{of: 1, n: 21}');
DELETE FROM comments WHERE doc @@ '{n: 5}';
UPDATE articles_delta SET doc = bson_set(:'delta_second'::bson, 'title', 'c'::text) WHERE _id = 1;
UPDATE articles_full SET doc = bson_set(:'full_second'::bson, 'title', 'c'::text) WHERE _id = 1;
SELECT is(story('articles_delta', 1), '1i{"title": "a"} 2u{"title": "b"} 3u{"title": "c"}', 'history is of what was written');
SELECT is(story('articles_full', 1), story('articles_delta', 1), 'with both kinds of storage');
SELECT is(now_in('articles_delta', 1) -> 'total', to_bson(226), 'and the total goes on');
-- what a stale copy of kept fields changes is nothing
UPDATE articles_delta SET doc = bson_set(doc, 'total', 5) WHERE _id = 2;
SELECT is(story('articles_delta', 2), '1i{"title": "x"}', 'a kept field alone is no change');
-- reading
SELECT is(versioning_at('articles_delta', 1, 2), '{_id: 1, title: "b", revision: 2}', 'an old revision is without them');
SELECT is(versioning_at('articles_delta', 1, 3), now_in('articles_delta', 1), 'the newest is the row');
SELECT is((SELECT doc FROM versioning_as_of('articles_delta', 'infinity') WHERE key = 1), now_in('articles_delta', 1), 'as of now');
SELECT is((SELECT string_agg(path || old || new, ' ') FROM versioning_diff('articles_full', 1, 1, 3)), 'titleac', 'differences');
SELECT is_empty($$SELECT * FROM versioning_field_history('articles_delta', 1, 'total')$$, 'they have no history');
SELECT is(versioning_revert('articles_delta', 1, 1), 4::bigint, 'an old revision comes back');
SELECT is((now_in('articles_delta', 1) - 'revision')::jsonb, '{"_id": 1, "title": "a", "total": 226, "last": [{"n": 21}, {"n": 20}, {"n": 19}], "comments": 20}', 'with what is kept now');
DELETE FROM articles_delta WHERE _id = 1;
SELECT is(versioning_revert('articles_delta', 1, 2), 6::bigint, 'also where the document is gone');
SELECT is((now_in('articles_delta', 1))::jsonb, '{"_id": 1, "title": "b", "total": 226, "last": [{"n": 21}, {"n": 20}, {"n": 19}], "comments": 20, "revision": 6}', 'with what is kept now, too');
INSERT INTO comments (doc) VALUES ('{of: 1, n: 22}');
SELECT is((SELECT count(*) FROM articles_delta_history WHERE key = 1), 6::bigint, 'and comments are no revision then, either');
SELECT is_empty('SELECT * FROM pattern_check()', 'all of it is true');

-- Declarations come and go: what people wrote until then stays in history
SELECT collection_create('late') \g /dev/null
SELECT versioning_enable('late') \g /dev/null
INSERT INTO late (doc) VALUES ('{_id: 1, total: 15234.5}'), ('{_id: 2, total: 1, n: 1}');
UPDATE late SET doc = bson_set(doc, 'n', 2);
SELECT computed_enable('late', 'comments', 'of', '{total: {$sum: "$n"}}') \g /dev/null
CALL pattern_build('late', 'total', discard => true);
INSERT INTO comments (doc) VALUES ('{of: 1, n: 30}');
SELECT is(versioning_at('late', 1, 2) -> 'total', '15234.5', 'a total that was kept by hand is in the history');
SELECT is((SELECT max(revision) FROM late_history WHERE key = 1), 3::bigint, 'the first change by the pattern is a revision');
INSERT INTO comments (doc) VALUES ('{of: 1, n: 31}');
SELECT is((SELECT max(revision) FROM late_history WHERE key = 1), 3::bigint, 'the next one is none');
UPDATE late SET doc = bson_set(doc, 'n', 3) WHERE _id = 1;
SELECT is(versioning_at('late', 1, 2), '{_id: 1, total: 15234.5, n: 2, revision: 2}', 'and it stays there');
SELECT pattern_disable('late', 'total') \g /dev/null
UPDATE late SET doc = bson_set(doc, 'total', 7) WHERE _id = 1;
UPDATE late SET doc = bson_set(doc, 'total', 8) WHERE _id = 1;
SELECT is((SELECT string_agg(coalesce(versioning_at('late', 1, r) ->> 'total', '-'), ' ' ORDER BY r) FROM generate_series(1, 7) r), '15234.5 15234.5 - - - 7 8', 'the pattern takes its field away, and it is written by hand again');
SELECT is_empty($$SELECT * FROM pattern_check('late')$$, 'and everything leads back');
SELECT pattern_alter('articles_full', 'revision', '{kept: true}') \g /dev/null
INSERT INTO comments (doc) VALUES ('{of: 1, n: 40}');
SELECT is(versioning_at('articles_full', 1, 4) -> 'comments', to_bson(bson_get_text(now_in('articles_full', 1), 'comments')::int), 'from now on with what is kept');
SELECT pattern_alter('articles_full', 'revision', '{kept: false}') \g /dev/null
INSERT INTO comments (doc) VALUES ('{of: 1, n: 41}'), ('{of: 1, n: 42}');
INSERT INTO comments (doc) VALUES ('{of: 1, n: 43}');
SELECT is((SELECT max(revision) FROM articles_full_history WHERE key = 1), 5::bigint, 'or without again');
SELECT is_empty($$SELECT * FROM pattern_check()$$, 'all of it is true');

-- Copies in arrays and beside what is written, slots, flags, ancestors, counters
SELECT collection_create(c) FROM unnest('{makers,shop,places}'::text[]) c \g /dev/null
SELECT outlier_enable('shop', 'buyers', 2, keep => 2, count_field => 'n'), preallocated_enable('shop', 'seats', preallocated_pool(2), available_field => 'free', store => 'document'),
  reference_enable('shop', 'items.maker', 'makers', live => '{name}'), reference_enable('shop', 'by', 'makers', live => '{name}', frozen => '{rank}'),
  approximation_enable('shop', 'views', slots => 2), tree_enable('places', parent => 'up', ancestors => 'trail'), versioning_enable('shop'), versioning_enable('places') \g /dev/null
INSERT INTO makers (doc) VALUES ('{_id: 1, name: "ann", rank: 1}'), ('{_id: 2, name: "bob", rank: 2}');
INSERT INTO shop (doc) VALUES ('{_id: 1, by: 1, items: [{maker: 1}, {maker: 2, q: 5}]}');
SELECT now_in('shop', 1) AS read \gset
UPDATE makers SET doc = bson_set(doc, 'name', 'zoe'::text);
UPDATE makers SET doc = bson_set(doc, 'rank', 9);
SELECT preallocated_claim('shop', 1, '{2}', holder => 'ada'), approximation_add('shop', 1, 5, name => 'views') \g /dev/null
-- (slots in the document are not written back: a statement may not change them)
UPDATE shop SET doc = bson_set(bson_set(bson_set(:'read'::bson, 'title', 'b'::text), 'seats', doc -> 'seats'), 'free', doc -> 'free');
SELECT is(story('shop', 1), '1i{"by": {"_id": 1, "rank": 1}, "items": [{"maker": {"_id": 1}}, {"maker": {"_id": 2}, "q": 5}]} '
  '2u{"by": {"_id": 1, "rank": 1}, "items": [{"maker": {"_id": 1, "name": "zoe"}}, {"maker": {"_id": 2, "name": "zoe"}, "q": 5}], "title": "b"}', 'copies, slots and counters are left out, frozen copies are not');
SELECT is(now_in('shop', 1) ->> 'by.name' || (now_in('shop', 1) ->> 'items.1.maker.name') || (now_in('shop', 1) ->> 'free') || (now_in('shop', 1) ->> 'seats.1'), 'zoezoe1ada', 'and right');
UPDATE shop SET doc = bson_update(doc, '{$set: {by: 2}}');
SELECT is(versioning_revert('shop', 1, 1), 4::bigint, 'a revert');
SELECT is(now_in('shop', 1) -> 'by' , '{_id: 1, rank: 1, name: "zoe"}', 'names the old maker, as that one is now');
SELECT ok(now_in('shop', 1) @@ '{"seats.1": "ada", free: 1}', 'and takes no seat away');
INSERT INTO places (doc) VALUES ('{_id: 1}'), ('{_id: 2, up: 1}'), ('{_id: 3, up: 2}'), ('{_id: 4}');
UPDATE places SET doc = bson_set(doc, 'up', 4) WHERE _id = 2;
SELECT is(story('places', 2) || story('places', 3), '1i{"up": 1} 2u{"up": 4}1i{"up": 2}', 'whoever moves has a revision, what hangs below has none');
SELECT is(now_in('places', 3) -> 'trail', '[4, 2]', 'but its ancestors');
SELECT is_empty($$SELECT * FROM pattern_check()$$, 'all of it is true');

-- What moves aside while a document is written is part of that write
SELECT collection_create('wide') \g /dev/null
SELECT outlier_enable('wide', 'buyers', 2, keep => 1, count_field => 'n'), subset_fields_enable('wide', cold => '{cold}', name => 'cold'), versioning_enable('wide') \g /dev/null
INSERT INTO wide (doc) VALUES ('{_id: 1, buyers: ["a", "b", "c"], cold: 1}'), ('{_id: 2, buyers: ["a"], cold: 2, revision: 1}'), ('{_id: 3, cold: 3, revision: 7}');
SELECT is(story('wide', 1) || story('wide', 2) || story('wide', 3), '1i{"buyers": ["a"]}1i{"buyers": ["a"]}1i{}', 'a new document is at its first revision');
SELECT is((SELECT string_agg(coalesce(doc ->> 'revision', '-'), '' ORDER BY _id) FROM wide), '-11', 'with its number, or without');
UPDATE wide SET doc = '{_id: 1, buyers: ["a", "b", "c"], cold: 1, t: 1}' WHERE _id = 1;
SELECT is(story('wide', 1), '1i{"buyers": ["a"]} 2u{"buyers": ["a"], "t": 1}', 'the program that inserted it can save it');
UPDATE wide SET doc = bson_set(doc, 'cold', 5) WHERE _id < 3;
UPDATE wide SET doc = bson_update(doc, '{$push: {buyers: {$each: ["x", "y", "z"]}}, $set: {t: 2}}') WHERE _id = 2;
DELETE FROM wide WHERE _id = 2;
INSERT INTO wide (doc) VALUES ('{_id: 2, buyers: ["p", "q", "r"], cold: 6}'), ('{_id: 3, cold: 7}') ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is(story('wide', 2), '1i{"buyers": ["a"]} 2u{"buyers": ["a"]} 3u{"buyers": ["a"], "t": 2} 4d 5i{"buyers": ["p"]}', 'a document that comes back');
SELECT is((SELECT string_agg(coalesce(doc ->> 'revision', '-'), '' ORDER BY _id) FROM wide), '352', 'all have their numbers');
SELECT is((SELECT pattern_whole(doc, 'wide', _id) - 'revision' FROM wide WHERE _id = 2)::jsonb, '{"_id": 2, "buyers": ["p", "q", "r"], "cold": 6, "n": 3}', 'and are whole');
SELECT is_empty($$SELECT * FROM pattern_check()$$, 'all of it is true');

-- Only some revisions are kept; many of them
SELECT collection_create('few') \g /dev/null
SELECT computed_enable('few', 'comments', 'of', '{total: {$sum: "$n"}}'), versioning_enable('few', keep => 2) \g /dev/null
INSERT INTO few (doc) VALUES ('{_id: 1, n: 0}');
DO $$ BEGIN FOR i IN 1..40 LOOP UPDATE few SET doc = bson_set(doc, 'n', i); INSERT INTO comments (doc) VALUES ('{of: 1, n: 1}'); END LOOP; END $$;
SELECT is(story('few', 1), '40u{"n": 39} 41u{"n": 40}', 'two stay');
SELECT versioning_purge('few', now() + interval '1 hour') \g /dev/null
INSERT INTO comments (doc) VALUES ('{of: 1, n: 1}');
UPDATE few SET doc = bson_set(doc, 'n', 41);
SELECT is(story('few', 1), '41u{"n": 40} 42u{"n": 41}', 'then one, and a new one');
SELECT versioning_redact('few', 1, 'n') \g /dev/null
SELECT is(story('few', 1), '42u{} 43u{}', 'a value is taken out of all');
SELECT is_empty($$SELECT * FROM pattern_check('few')$$, 'all of it is true');

-- Changed unseen: at the first revision, with whole documents, where a whole document leads back; not in what is kept
SELECT collection_create('unseen_' || s), versioning_enable('unseen_' || s, storage => s) FROM unnest('{delta,full}'::text[]) s \g /dev/null
INSERT INTO unseen_delta (doc) SELECT bson_build('_id', i, 'n', 0) FROM generate_series(1, 9) i;
INSERT INTO unseen_full (doc) SELECT bson_build('_id', i, 'n', 0) FROM generate_series(1, 9) i;
DO $$ BEGIN FOR i IN 1..9 LOOP
  UPDATE unseen_delta SET doc = bson_set(doc, 'n', i) WHERE _id > i;
  UPDATE unseen_full SET doc = bson_set(doc, 'n', i) WHERE _id > i;
END LOOP; END $$;
SELECT is((SELECT string_agg(revision::text, ' ' ORDER BY key) FROM versioning_as_of('unseen_delta', 'infinity')), '1 2 3 4 5 6 7 8 9', 'documents of all ages');
SELECT is_empty($$SELECT * FROM pattern_check('unseen_delta') UNION ALL SELECT * FROM pattern_check('unseen_full')$$, 'nothing is wrong with them');
BEGIN;
SET LOCAL session_replication_role = replica;
UPDATE unseen_delta SET doc = bson_set(doc, 'x', 'altered'::text); UPDATE unseen_full SET doc = bson_set(doc, 'x', 'altered'::text);
COMMIT;
SELECT is((SELECT string_agg(DISTINCT key::text, ' ' ORDER BY key::text) FROM pattern_check('unseen_delta')), '1 2 3 4 5 6 7 8 9', 'each is found');
SELECT is((SELECT string_agg(DISTINCT key::text, ' ' ORDER BY key::text) FROM pattern_check('unseen_full')), '1 2 3 4 5 6 7 8 9', 'with whole documents, too');
SELECT is((SELECT what || ': ' || expected || ', ' || found FROM pattern_check('unseen_delta') WHERE key = 1), 'document of revision 1: as it was recorded, another one', 'it says so');
SELECT is(pattern_repair('unseen_delta') + pattern_repair('unseen_full'), 18::bigint, 'each is recorded as changed now');
SELECT is_empty($$SELECT * FROM pattern_check('unseen_delta') UNION ALL SELECT * FROM pattern_check('unseen_full')$$, 'which is true');
SELECT is((SELECT string_agg(revision || coalesce(doc ->> 'x', '-'), ' ' ORDER BY revision) FROM unseen_delta_history WHERE key = 1), '1- 2altered', 'the altered text is not what was there before');
BEGIN;
SET LOCAL session_replication_role = replica;
UPDATE unseen_delta SET doc = bson_set(doc, 'x', 'again'::text); UPDATE unseen_full SET doc = bson_set(doc, 'x', 'again'::text);
COMMIT;
UPDATE unseen_delta SET doc = bson_set(doc, 'y', 1); UPDATE unseen_full SET doc = bson_set(doc, 'y', 1);
SELECT is((SELECT count(DISTINCT key) FROM pattern_check('unseen_delta')) + (SELECT count(DISTINCT key) FROM pattern_check('unseen_full')), 18::bigint, 'also after a change that was seen');
SELECT is(pattern_repair('unseen_delta') + pattern_repair('unseen_full'), 18::bigint, 'what was there before is given up');
SELECT is_empty($$SELECT * FROM pattern_check('unseen_delta') UNION ALL SELECT * FROM pattern_check('unseen_full')$$, 'which is true, too');
SELECT is((SELECT string_agg(revision || coalesce(doc ->> 'x', '-'), ' ' ORDER BY revision) FROM unseen_delta_history WHERE key = 1), '1- 2- 3again', 'and not made up');
BEGIN;
SET LOCAL session_replication_role = replica;
UPDATE few SET doc = bson_set(doc, 'total', -1);
COMMIT;
SELECT is((SELECT string_agg(pattern, ' ') FROM pattern_check('few')), 'computed', 'a wrong total is for the pattern that keeps it');
SELECT pattern_repair('few', 'total') \g /dev/null
SELECT is_empty($$SELECT * FROM pattern_check('few')$$, 'which repairs it');

-- Statements that insert or update have read nothing, whatever they are, on the table and on a partition; an UPDATE beside them has
CREATE TABLE parts (id int PRIMARY KEY, doc bson NOT NULL) PARTITION BY RANGE (id);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES FROM (0) TO (10);
SELECT versioning_enable('parts') \g /dev/null
CREATE TABLE parts_b PARTITION OF parts FOR VALUES FROM (10) TO (20);
CREATE TABLE parts_c (id int PRIMARY KEY, doc bson NOT NULL);
ALTER TABLE parts ATTACH PARTITION parts_c FOR VALUES FROM (20) TO (30);
INSERT INTO parts VALUES (1, '{n: 0}'), (11, '{n: 0}'), (21, '{n: 0}');
INSERT INTO parts VALUES (1, '{n: 1}'), (11, '{n: 1}'), (21, '{n: 1}') ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
INSERT INTO parts_a VALUES (1, '{n: 2}') ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
INSERT INTO parts_b VALUES (11, '{n: 2}') ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
INSERT INTO parts_c VALUES (21, '{n: 2}') ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
MERGE INTO parts USING (VALUES (1), (11), (22)) AS s (k) ON id = k WHEN MATCHED THEN UPDATE SET doc = '{n: 3}' WHEN NOT MATCHED THEN INSERT VALUES (k, '{n: 3}');
SELECT is((SELECT string_agg(id || (doc ->> 'n') || coalesce(doc ->> 'revision', '-'), ' ' ORDER BY id) FROM parts), '134 1134 2123 223-', 'loads can be repeated');
SELECT throws_ok($$UPDATE parts SET doc = '{n: 9}' WHERE id = 1$$, '40001', NULL, 'a save of the document as it was inserted');
SELECT throws_ok($$UPDATE parts_b SET doc = '{n: 9}'$$, '40001', NULL, 'in a partition');
SELECT throws_ok($$MERGE INTO parts USING (VALUES (1)) AS s (k) ON id = k WHEN MATCHED THEN UPDATE SET doc = '{n: 9}'$$, '40001', NULL, 'a MERGE that inserts nothing');
CREATE FUNCTION inserts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO parts VALUES (2, '{}') ON CONFLICT DO NOTHING; RETURN NEW; END $$;
CREATE TRIGGER a BEFORE UPDATE ON parts FOR EACH ROW EXECUTE FUNCTION inserts();
SELECT throws_ok($$UPDATE parts SET doc = '{n: 9}' WHERE id = 1$$, '40001', NULL, 'beside a trigger that inserts');
INSERT INTO parts VALUES (1, '{n: 4}'), (11, '{n: 4}') ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is((SELECT string_agg(doc ->> 'n', '' ORDER BY id) FROM parts WHERE id IN (1, 11)), '44', 'which does not concern an upsert');
SELECT is_empty($$SELECT * FROM pattern_check('parts')$$, 'all of it is true');

-- Random writes, comments and declarations that come and go: each revision is what was written, but for what was kept then
SELECT setseed(0.43) \g /dev/null
SELECT collection_create('wild'), collection_create('about') \g /dev/null
SELECT versioning_enable('wild') \g /dev/null
INSERT INTO wild (doc) SELECT bson_build('_id', i, 'a', 0) FROM generate_series(1, 3) i;
-- each revision as the row was last while it stood for it
CREATE TABLE model (k bson_value, n bigint, doc bson, PRIMARY KEY (k, n));
CREATE PROCEDURE writes(times int) LANGUAGE plpgsql AS $$
DECLARE
  kk int;
  dice float;
  kept boolean := false;
BEGIN
  FOR i IN 1..times LOOP
    kk := 1 + floor(random() * 3);
    dice := random();
    IF dice < 0.5 THEN
      INSERT INTO about (doc) VALUES (bson_build('of', kk, 'n', i));
    ELSIF dice < 0.55 THEN
      DELETE FROM about WHERE doc @@ bson_build('of', kk) AND random() < 0.5;
    ELSIF dice < 0.62 THEN
      kept := NOT kept;
      IF kept THEN
        PERFORM computed_enable('wild', 'about', 'of', '{total: {$sum: "$n"}}');
        CALL pattern_build('wild', 'total');
      ELSE
        PERFORM pattern_disable('wild', 'total');
      END IF;
    ELSIF dice < 0.67 THEN
      PERFORM pattern_alter('wild', 'revision', bson_build('storage', CASE WHEN random() < 0.5 THEN 'full' ELSE 'delta' END));
    ELSE
      UPDATE wild SET doc = bson_set(doc, CASE WHEN random() < 0.5 THEN 'a' ELSE 'b' END,
        CASE WHEN random() < 0.5 THEN to_bson(i) ELSE to_bson(repeat('x', (random() * 300)::int)) END) WHERE _id = kk;
    END IF;
    INSERT INTO model SELECT key, revision, w.doc FROM versioning_as_of('wild', 'infinity') h JOIN wild w ON w._id = key
      ON CONFLICT (k, n) DO UPDATE SET doc = EXCLUDED.doc;
  END LOOP;
END $$;
CALL writes(300);
SELECT cmp_ok((SELECT count(*) FROM model), '>', 60::bigint, 'many revisions');
SELECT is_empty($$SELECT k, n, r.kept, h.doc, m.doc FROM model m FULL JOIN wild_history h ON h.key = m.k AND h.revision = m.n JOIN wild_revisions r ON (r.key, r.revision) = (h.key, h.revision)
  WHERE (CASE WHEN r.kept IS NULL THEN h.doc ELSE bson_unset(h.doc, 'total') END)::bytea IS DISTINCT FROM (CASE WHEN r.kept IS NULL THEN m.doc ELSE bson_unset(m.doc, 'total') END)::bytea$$, 'each is what was written');
SELECT is_empty('SELECT * FROM pattern_check()', 'all of it is true');
\o /dev/null
DROP SCHEMA vk CASCADE;
\o
SELECT * FROM finish();
