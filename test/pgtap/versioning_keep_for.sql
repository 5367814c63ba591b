-- The document versioning pattern: keep_for, how long revisions stay after they ended.
\set ECHO none
SET client_min_messages = error;
SELECT plan(44);
SELECT setseed(0.11) \g /dev/null

-- a history of ten days for each form of storage: its stamps are moved back, each transaction a day apart
CREATE PROCEDURE write_history(rel text) LANGUAGE plpgsql AS $$
DECLARE
  i int;
  k int;
BEGIN
  FOR i IN 1..120 LOOP
    k := 1 + (random() * 11)::int;
    CASE (random() * 9)::int
      WHEN 0 THEN EXECUTE format('DELETE FROM %I WHERE id = $1', rel) USING k;
      WHEN 1 THEN EXECUTE format('UPDATE %I SET doc = doc WHERE id = $1', rel) USING k;
      WHEN 2 THEN EXECUTE format('UPDATE %I SET doc = bson_set(doc, ''n'', $2) WHERE id IN ($1, $1 + 1)', rel) USING k, i;
      ELSE EXECUTE format('INSERT INTO %I (id, doc) VALUES ($1, bson_build(''n'', $2, ''pad'', repeat(''x'', 30))) ON CONFLICT (id) DO UPDATE SET doc = bson_set(%1$I.doc, ''n'', $2)', rel) USING k, i;
    END CASE;
    COMMIT;
  END LOOP;
END $$;
-- 12 revisions a day: the newest is from now
CREATE PROCEDURE age(rel text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('ALTER TABLE %I DISABLE TRIGGER USER', rel || '_changes');
  EXECUTE format('UPDATE %I c SET since = date_trunc(''hour'', now()) - n.n * interval ''2 hours'' FROM (SELECT change, row_number() OVER (ORDER BY change DESC) - 1 AS n FROM %1$I) n WHERE n.change = c.change', rel || '_changes');
  EXECUTE format('ALTER TABLE %I ENABLE TRIGGER USER', rel || '_changes');
END $$;
CREATE FUNCTION states(rel text, days int) RETURNS TABLE (at timestamptz, key text, revision bigint, since timestamptz, doc text) LANGUAGE sql AS $$
  SELECT t.at, v.key::text, v.revision, v.since, v.doc::text
  FROM (SELECT date_trunc('hour', now()) - i * interval '30 min' FROM generate_series(0, days * 48 - 3) i) t (at), versioning_as_of(rel::regclass, t.at) v $$;

CREATE FUNCTION pg_temp.left_of(rel text, cut timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  n bigint;
BEGIN
  -- revisions that ended before, or are deletions from before
  EXECUTE format('SELECT count(*) FROM %1$I r JOIN %2$I c USING (change) WHERE EXISTS (SELECT FROM %1$I n JOIN %2$I d USING (change) WHERE n.key = r.key AND n.revision = r.revision + 1 AND d.since <= $1)
    OR r.operation = ''d'' AND c.since <= $1', rel || '_revisions', rel || '_changes') INTO n USING cut;
  RETURN n;
END $$;

CREATE TABLE delta (id int PRIMARY KEY, doc bson);
CREATE TABLE whole (id int PRIMARY KEY, doc bson);
CREATE TABLE few (id int PRIMARY KEY, doc bson);
CREATE TABLE parts (id int PRIMARY KEY, doc bson) PARTITION BY HASH (id);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
SELECT versioning_enable('delta', keep_for => '3 days'), versioning_enable('whole', storage => 'full', keep_for => '3 days'), versioning_enable('few', keep => 4, keep_for => '3 days'),
  versioning_enable('parts', keep_for => '3 days') \g /dev/null
CALL write_history('delta');
CALL write_history('whole');
CALL write_history('few');
CALL write_history('parts');
SELECT is((SELECT count(*) FROM pattern_due()), 0::bigint, 'nothing is due');
CALL age('delta');
CALL age('whole');
CALL age('few');
CALL age('parts');

SELECT is((SELECT count(*) FROM pattern_check()), 0::bigint, 'all is consistent before');
SELECT ok(pg_temp.left_of(t, now() - interval '72 hours') > 3, t || ' has old revisions') FROM unnest('{delta,whole,parts}'::text[]) t;
CREATE TEMP TABLE before AS SELECT t, s.* FROM unnest('{delta,whole,few,parts}'::text[]) t, states(t, 3) s;
SELECT ok((SELECT count(*) FROM before WHERE t = 'delta') > 200, 'states to compare');
SELECT is((SELECT string_agg(DISTINCT what, ' ') FROM pattern_due()), 'old revisions', 'they are due');
SELECT ok((SELECT since BETWEEN now() - interval '9 days' AND now() - interval '3 days' FROM pattern_due('delta')), 'since the first of them ended three days before');
CALL pattern_maintain('delta', max_rows => 3, batch => 1);
SELECT ok(pg_temp.left_of('delta', now() - interval '72 hours') > 0, 'in batches');
SELECT is((SELECT count(*) FROM pattern_check('delta')), 0::bigint, 'between which all is consistent');
CALL pattern_maintain(batch => 7);
SELECT is((SELECT count(*) FROM pattern_due()), 0::bigint, 'nothing is due');
SELECT is(pg_temp.left_of(t, now() - interval '72 hours'), 0::bigint, t || ' has no old revisions') FROM unnest('{delta,whole,few,parts}'::text[]) t;
SELECT is((SELECT count(*) FROM pattern_check()), 0::bigint, 'all is consistent after');
SELECT is((SELECT count(*) FROM (SELECT * FROM before WHERE t = u EXCEPT SELECT u, s.* FROM states(u, 3) s) q), 0::bigint, u || ': what was valid within three days is there') FROM unnest('{delta,whole,few,parts}'::text[]) u;
SELECT is((SELECT count(*) FROM (SELECT u, s.* FROM states(u, 3) s EXCEPT SELECT * FROM before WHERE t = u) q), 0::bigint, u || ': and nothing else') FROM unnest('{delta,whole,few,parts}'::text[]) u;
SELECT is((SELECT count(*) FROM delta) + (SELECT count(*) FROM whole) + (SELECT count(*) FROM parts), (SELECT count(*) FROM delta_as_of('infinity')) + (SELECT count(*) FROM whole_as_of('infinity')) + (SELECT count(*) FROM parts_as_of('infinity')), 'each document has its newest revision');
SELECT is((SELECT count(*) FROM delta_changes c WHERE NOT EXISTS (SELECT FROM delta_revisions r WHERE r.change = c.change)), 0::bigint, 'transactions without revisions are gone');
SELECT is((SELECT count(*) FROM whole_changes c WHERE NOT EXISTS (SELECT FROM whole_revisions r WHERE r.change = c.change)), 0::bigint, 'with full storage, too');

-- as versioning_purge does
CREATE TABLE purged (id int PRIMARY KEY, doc bson);
CREATE TABLE kept (id int PRIMARY KEY, doc bson);
SELECT versioning_enable('purged'), versioning_enable('kept', keep_for => '4 days') \g /dev/null
SELECT setseed(0.5) \g /dev/null
CALL write_history('purged');
SELECT setseed(0.5) \g /dev/null
CALL write_history('kept');
CALL age('purged');
CALL age('kept');
SELECT versioning_purge('purged', now() - interval '96 hours') \g /dev/null
CALL pattern_maintain('kept');
SELECT results_eq('SELECT key, revision, operation, doc FROM kept_history ORDER BY 1, 2', 'SELECT key, revision, operation, doc FROM purged_history ORDER BY 1, 2', 'what versioning_purge leaves');

-- the edge: a revision that ended exactly then is old
CREATE TABLE edge (id int PRIMARY KEY, doc bson);
SELECT versioning_enable('edge', keep_for => '1 day') \g /dev/null
INSERT INTO edge VALUES (1, '{a: 1}');
UPDATE edge SET doc = bson_set(doc, 'a', 2);
UPDATE edge SET doc = bson_set(doc, 'a', 3);
ALTER TABLE edge_changes DISABLE TRIGGER USER;
UPDATE edge_changes SET since = v.since FROM (SELECT change, now() - (4 - 1.5 * row_number() OVER (ORDER BY change)) * interval '24 hours' AS since FROM edge_changes) v WHERE v.change = edge_changes.change;
ALTER TABLE edge_changes ENABLE TRIGGER USER;
-- revisions of 60 hours ago, 24 hours ago, and in 12 hours
CALL pattern_maintain('edge');
SELECT is((SELECT string_agg(revision::text, ' ' ORDER BY revision) FROM edge_history), '2 3', 'the revision at the edge stays');
SELECT is((SELECT doc ->> 'a' FROM edge_as_of(now() - interval '1 hour')), '2', 'and is what was valid since');

-- altered
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 'edge_revisions'::regclass AND indexprs IS NOT NULL), 1::bigint, 'an index finds old revisions');
SELECT pattern_alter('edge', NULL, '{keep_for: null}') \g /dev/null
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 'edge_revisions'::regclass AND indexprs IS NOT NULL), 0::bigint, 'and its index');
SELECT is((SELECT count(*) FROM pattern_due('edge')), 0::bigint, 'nothing is due');
SELECT pattern_alter('edge', NULL, '{keep_for: "6 hours"}') \g /dev/null
SELECT is((SELECT options ->> 'keep_for' FROM pattern_list('edge')), '6 hours', 'and begins again');
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 'edge_revisions'::regclass AND indexprs IS NOT NULL), 1::bigint, 'with the index');
SELECT throws_ok($$SELECT pattern_alter('edge', NULL, '{keep_for: "-1 s"}')$$, '22023', NULL, 'not negative');
SELECT throws_ok($$SELECT pattern_alter('edge', NULL, '{keep_for: "soon"}')$$, '22007', NULL, 'an interval');
SELECT pattern_alter('edge', NULL, '{keep_for: "300000 years"}') \g /dev/null
SELECT is((SELECT count(*) FROM pattern_due('edge')), 0::bigint, 'longer than there was time');
SELECT pattern_alter('edge', NULL, '{keep_for: "0"}') \g /dev/null
DELETE FROM edge;
CALL pattern_maintain('edge');
SELECT is((SELECT string_agg(revision || operation::text, ' ' ORDER BY revision) FROM edge_revisions), '2u 3u 4d', 'a revision stays that has not ended, a deletion whose time has not come');

-- a bounded look at a long history
SET enable_seqscan = off;
CREATE FUNCTION pg_temp.plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query; END $$;
SELECT ok((SELECT bool_or(p LIKE '%Index%delta_revisions%') FROM pg_temp.plan_of(replace(replace((docpatterns._versioning_old('delta', 'revision')).query, '$1', '10'), '$2', 'now()')) p), 'the index serves it');
RESET enable_seqscan;

-- writers go on; a rewrite of the history comes first
SELECT is((SELECT count(*) FROM pattern_check()), 0::bigint, 'all is as declared');
UPDATE delta SET doc = bson_set(doc, 'n', -1);
SELECT is((SELECT count(*) FROM pattern_check()), 0::bigint, 'after writes, too');
SELECT versioning_redact('delta', id, 'pad') FROM delta \g /dev/null
SELECT is((SELECT count(*) FROM pattern_check()), 0::bigint, 'and after a redaction');
SELECT pattern_disable('delta') \g /dev/null
SELECT hasnt_table('delta_revisions');
SELECT * FROM finish();
