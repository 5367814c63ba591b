-- A seeded random run of commands on key-value structures beside a plain model of them: three tables and their rules, ranks by a
-- window function. The seed is printed.
SET client_min_messages = warning;
\pset fieldsep '\n'
SELECT plan(8);
SELECT '# seed 4711';
SELECT setseed(0.4711) \g /dev/null
SELECT kv_create('rnd') \g /dev/null
-- small blocks, so that there are several levels of them
SET docpatterns.kv_block_size = 16;
CREATE TEMP TABLE m_hash (key text, field text, value int, PRIMARY KEY (key, field));
CREATE TEMP TABLE m_set (key text, member int, PRIMARY KEY (key, member));
CREATE TEMP TABLE m_zset (key text, member int, score numeric, PRIMARY KEY (key, member));
CREATE TEMP TABLE wrong (what text);
CREATE FUNCTION pg_temp.r(n int) RETURNS int LANGUAGE sql VOLATILE AS $$ SELECT 1 + floor(random() * n)::int $$;
CREATE FUNCTION pg_temp.kind(k text) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT CASE WHEN EXISTS (SELECT FROM m_hash WHERE key = k) THEN 'hash' WHEN EXISTS (SELECT FROM m_set WHERE key = k) THEN 'set' WHEN EXISTS (SELECT FROM m_zset WHERE key = k) THEN 'zset' ELSE 'none' END $$;
CREATE FUNCTION pg_temp.say(op text, have anyelement, want anyelement) RETURNS void LANGUAGE sql AS $$ INSERT INTO wrong SELECT format('%s: %s, not %s', op, have, want) WHERE to_jsonb(have) IS DISTINCT FROM to_jsonb(want) $$;
CREATE FUNCTION pg_temp.step() RETURNS void LANGUAGE plpgsql AS $f$
DECLARE
  k text := 'k' || pg_temp.r(5); m int := pg_temp.r(25); v int := pg_temp.r(12); f text := 'f' || pg_temp.r(6);
  op int := pg_temp.r(18); kind text; want bigint; have bigint; old numeric; flags text[]; wanted numeric; b1 int; b2 int;
BEGIN
  IF op BETWEEN 6 AND 13 OR op = 17 THEN k := 'z' || pg_temp.r(3); m := pg_temp.r(1500); v := pg_temp.r(40); END IF;
  kind := pg_temp.kind(k);
  PERFORM pg_temp.say('type of ' || k, kv_type_of('rnd', k), kind);
  BEGIN
    CASE op
      WHEN 1 THEN
        have := kv_hset('rnd', k, f, v);
        WITH i AS (INSERT INTO m_hash VALUES (k, f, v) ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) INTO want FROM i;
        UPDATE m_hash SET value = v WHERE key = k AND field = f;
      WHEN 2 THEN
        have := kv_hdel('rnd', k, f, 'f1');
        WITH d AS (DELETE FROM m_hash WHERE key = k AND field IN (f, 'f1') RETURNING 1) SELECT count(*) INTO want FROM d;
      WHEN 3 THEN
        have := kv_hincrby('rnd', k, f, v);
        INSERT INTO m_hash VALUES (k, f, v) ON CONFLICT (key, field) DO UPDATE SET value = m_hash.value + v RETURNING value INTO want;
      WHEN 4 THEN
        have := kv_sadd('rnd', k, m, m + 1, m);
        WITH i AS (INSERT INTO m_set VALUES (k, m), (k, m + 1) ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) INTO want FROM i;
      WHEN 5 THEN
        have := kv_srem('rnd', k, m, m + 1, m + 2);
        WITH d AS (DELETE FROM m_set WHERE key = k AND member IN (m, m + 1, m + 2) RETURNING 1) SELECT count(*) INTO want FROM d;
      WHEN 6, 7, 8, 9 THEN
        flags := (ARRAY['{}', '{nx}', '{xx,ch}', '{gt,ch}', '{lt,ch}', '{ch}', '{}', '{}'])[pg_temp.r(8)]::text[];
        SELECT z.score INTO old FROM m_zset z WHERE z.key = k AND z.member = m;
        wanted := CASE WHEN pg_temp.r(3) = 1 THEN v + 0.5 ELSE v END;
        -- text, so that options and score can stand in one array
        have := CASE WHEN flags = '{}' THEN kv_zadd('rnd', k, wanted, m) ELSE kv_zadd('rnd', k, flags[1], CASE WHEN cardinality(flags) > 1 THEN flags[2] ELSE flags[1] END, wanted, m) END;
        IF old IS NULL AND NOT 'xx' = ANY (flags) THEN
          INSERT INTO m_zset VALUES (k, m, wanted); want := 1;
        ELSIF old IS NULL OR 'nx' = ANY (flags) OR ('gt' = ANY (flags) AND wanted <= old) OR ('lt' = ANY (flags) AND wanted >= old) OR wanted = old THEN
          want := 0;
        ELSE
          UPDATE m_zset SET score = wanted WHERE key = k AND member = m; want := ('ch' = ANY (flags))::int;
        END IF;
      WHEN 10 THEN
        PERFORM pg_temp.say('zincrby', kv_zincrby('rnd', k, v, m)::numeric, coalesce((SELECT z.score FROM m_zset z WHERE z.key = k AND z.member = m), 0) + v);
        INSERT INTO m_zset VALUES (k, m, v) ON CONFLICT (key, member) DO UPDATE SET score = m_zset.score + v;
      WHEN 11 THEN
        have := kv_zrem('rnd', k, m, m + 1, m + 2);
        WITH d AS (DELETE FROM m_zset WHERE key = k AND member IN (m, m + 1, m + 2) RETURNING 1) SELECT count(*) INTO want FROM d;
      WHEN 12 THEN
        PERFORM pg_temp.say('rank', kv_zrank('rnd', k, m), (SELECT q.n FROM (SELECT z.member, row_number() OVER (ORDER BY z.score, z.member) - 1 AS n FROM m_zset z WHERE z.key = k) q WHERE q.member = m));
        PERFORM pg_temp.say('revrank', kv_zrevrank('rnd', k, m), (SELECT q.n FROM (SELECT z.member, row_number() OVER (ORDER BY z.score DESC, z.member DESC) - 1 AS n FROM m_zset z WHERE z.key = k) q WHERE q.member = m));
        b1 := pg_temp.r(400) - 100; b2 := pg_temp.r(400) - 100;
        PERFORM pg_temp.say('range ' || b1 || ' ' || b2, (SELECT string_agg(a.member::text || '=' || a.score::text, ' ' ORDER BY a.o) FROM kv_zrange('rnd', k, b1, b2) WITH ORDINALITY a(member, score, o)),
          (SELECT string_agg(q.member || '=' || trim_scale(q.score), ' ' ORDER BY q.n) FROM (SELECT z.*, row_number() OVER (ORDER BY z.score, z.member) - 1 AS n, count(*) OVER () AS c FROM m_zset z WHERE z.key = k) q
           WHERE q.n BETWEEN CASE WHEN b1 < 0 THEN b1 + q.c ELSE b1 END AND CASE WHEN b2 < 0 THEN b2 + q.c ELSE b2 END));
        PERFORM pg_temp.say('revrange', (SELECT string_agg(a.member::text, ' ' ORDER BY a.o) FROM kv_zrevrange('rnd', k, 3, 12) WITH ORDINALITY a(member, score, o)),
          (SELECT string_agg(q.member::text, ' ' ORDER BY q.n) FROM (SELECT z.member, row_number() OVER (ORDER BY z.score DESC, z.member DESC) - 1 AS n FROM m_zset z WHERE z.key = k) q WHERE q.n BETWEEN 3 AND 12));
        PERFORM pg_temp.say('count', kv_zcount('rnd', k, v, '(' || v + 6), (SELECT count(*) FROM m_zset z WHERE z.key = k AND z.score >= v AND z.score < v + 6));
        PERFORM pg_temp.say('card', kv_zcard('rnd', k), (SELECT count(*) FROM m_zset z WHERE z.key = k));
      WHEN 13 THEN
        IF pg_temp.r(2) = 1 THEN
          PERFORM pg_temp.say('popmin', (SELECT string_agg(p.member::text, ' ') FROM kv_zpopmin('rnd', k, 4) p), (SELECT string_agg(q.member::text, ' ') FROM (SELECT z.member FROM m_zset z WHERE z.key = k ORDER BY z.score, z.member LIMIT 4) q));
          DELETE FROM m_zset z WHERE z.key = k AND z.member IN (SELECT y.member FROM m_zset y WHERE y.key = k ORDER BY y.score, y.member LIMIT 4);
        ELSIF pg_temp.r(12) = 1 THEN
          have := kv_zunionstore('rnd', 'z1', '{z1,z2}', '{1,2}', 'max');
          CREATE TEMP TABLE merged AS SELECT q.member, max(q.score) AS score FROM (SELECT z.member, z.score FROM m_zset z WHERE z.key = 'z1' UNION ALL SELECT z.member, z.score * 2 FROM m_zset z WHERE z.key = 'z2') q GROUP BY 1;
          DELETE FROM m_zset WHERE key = 'z1'; INSERT INTO m_zset SELECT 'z1', g.member, g.score FROM merged g; SELECT count(*) INTO want FROM merged; DROP TABLE merged;
        END IF;
      WHEN 14 THEN
        IF pg_temp.r(4) = 1 THEN
          have := kv_del('rnd', k); want := (kind <> 'none')::int;
          DELETE FROM m_hash WHERE key = k; DELETE FROM m_set WHERE key = k; DELETE FROM m_zset WHERE key = k;
        END IF;
      WHEN 15 THEN
        IF pg_temp.r(4) = 1 THEN
          have := kv_expire('rnd', k, -1)::int; want := (kind <> 'none')::int;
          DELETE FROM m_hash WHERE key = k; DELETE FROM m_set WHERE key = k; DELETE FROM m_zset WHERE key = k;
        END IF;
      WHEN 16 THEN
        have := kv_zadd('rnd', k, v, m);
        WITH i AS (INSERT INTO m_zset VALUES (k, m, v) ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) INTO want FROM i;
        UPDATE m_zset SET score = v WHERE key = k AND member = m;
      WHEN 17 THEN
        IF pg_temp.r(2) = 1 THEN
          PERFORM pg_temp.say('revrangebyscore', (SELECT string_agg(a.member::text, ' ' ORDER BY a.o) FROM kv_zrevrangebyscore('rnd', k, v + 3, '(' || v, 2, 50) WITH ORDINALITY a(member, score, o)),
            (SELECT string_agg(q.member::text, ' ' ORDER BY q.n) FROM (SELECT z.member, row_number() OVER (ORDER BY z.score DESC, z.member DESC) AS n FROM m_zset z WHERE z.key = k AND z.score > v AND z.score <= v + 3) q WHERE q.n BETWEEN 3 AND 52));
        ELSIF pg_temp.r(2) = 1 THEN
          wanted := v - CASE WHEN pg_temp.r(9) = 1 THEN 4 ELSE 0.5 END;
          have := kv_zremrangebyscore('rnd', k, wanted, '(' || v);
          WITH d AS (DELETE FROM m_zset z WHERE z.key = k AND z.score >= wanted AND z.score < v RETURNING 1) SELECT count(*) INTO want FROM d;
        ELSE
          b1 := pg_temp.r(900); b2 := b1 + pg_temp.r(CASE WHEN pg_temp.r(9) = 1 THEN 150 ELSE 5 END);
          have := kv_zremrangebyrank('rnd', k, b1, b2);
          WITH d AS (DELETE FROM m_zset z USING (SELECT y.member, row_number() OVER (ORDER BY y.score, y.member) - 1 AS n FROM m_zset y WHERE y.key = k) q WHERE z.key = k AND z.member = q.member AND q.n BETWEEN b1 AND b2 RETURNING 1) SELECT count(*) INTO want FROM d;
        END IF;
      WHEN 18 THEN
        IF pg_temp.r(3) = 1 AND kind <> 'none' THEN
          f := 'k' || pg_temp.r(5);
          PERFORM kv_rename('rnd', k, f);
          IF k <> f THEN
            DELETE FROM m_hash WHERE key = f; DELETE FROM m_set WHERE key = f; DELETE FROM m_zset WHERE key = f;
            UPDATE m_hash SET key = f WHERE key = k; UPDATE m_set SET key = f WHERE key = k; UPDATE m_zset SET key = f WHERE key = k;
          END IF;
        ELSIF kind IN ('none', 'hash') THEN
          have := kv_hsetnx('rnd', k, f, v)::int;
          WITH i AS (INSERT INTO m_hash VALUES (k, f, v) ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) INTO want FROM i;
        END IF;
    END CASE;
    PERFORM pg_temp.say('operation ' || op || ' on ' || k, have, want);
  EXCEPTION WHEN wrong_object_type THEN
    PERFORM pg_temp.say('refused ' || op || ' on ' || k, kind = CASE WHEN op <= 3 THEN 'hash' WHEN op <= 5 THEN 'set' WHEN op IN (14, 15) THEN kind ELSE 'zset' END, false);
  END;
END $f$;
INSERT INTO m_zset SELECT 'z' || k, i, i * k % 40 FROM generate_series(1, 3) k, generate_series(1, 900) i;
SELECT count(kv_zadd('rnd', key, score, member)) FROM m_zset \g /dev/null
DO $$ BEGIN
  FOR i IN 1 .. 3000 LOOP
    PERFORM pg_temp.step();
    IF i % 20 = 0 THEN COMMIT; END IF;
    IF i % 1000 = 0 THEN PERFORM kv_purge('rnd'); END IF;
  END LOOP;
END $$;
SELECT is((SELECT string_agg(what, E'\n') FROM (SELECT what FROM wrong LIMIT 10) q), NULL, 'all commands did what the model did');
SELECT is_empty('SELECT * FROM pattern_check()', 'pattern_check has nothing to report');
SELECT results_eq($$SELECT key, field, value::int FROM rnd.hashes h WHERE kv_type_of('rnd', key) = 'hash' ORDER BY 1, 2$$, 'SELECT key COLLATE "C", field COLLATE "C", value FROM m_hash ORDER BY 1, 2', 'the hashes are the model''s');
SELECT results_eq($$SELECT key, member::int FROM rnd.sets WHERE kv_type_of('rnd', key) = 'set' ORDER BY 1, 2$$, 'SELECT key COLLATE "C", member FROM m_set ORDER BY 1, 2', 'so are the sets');
SELECT results_eq($$SELECT key, member::int, score::numeric FROM rnd.scores WHERE kv_type_of('rnd', key) = 'zset' ORDER BY 1, 2$$, 'SELECT key COLLATE "C", member, score FROM m_zset ORDER BY 1, 2', 'and the sorted sets');
SELECT is_empty($$SELECT key, member FROM (SELECT key, member, kv_zrank('rnd', key, member) AS r, row_number() OVER (PARTITION BY key ORDER BY score, member) - 1 AS w FROM rnd.scores WHERE kv_type_of('rnd', key) = 'zset') q WHERE r IS DISTINCT FROM w$$, 'every rank is that of a window function');
SELECT cmp_ok((SELECT count(*) FROM m_zset), '>', 500::bigint, 'the boards have grown'), cmp_ok((SELECT count(DISTINCT (score, member)) FROM rnd.counts WHERE level = 3), '>', 3::bigint, 'and were divided, on three levels');
DROP SCHEMA rnd CASCADE;
SELECT * FROM finish();
