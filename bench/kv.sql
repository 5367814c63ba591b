-- Key-value structures beside plain tables. Ranks: a hundred in the middle of a board of 1 million, beside counting once what stands
-- before it with an index-only scan, and a board of 10 thousand beside the large one. Hashes: beside an upsert and a select on a plain table.
-- Throughput of zadd with two clients is in kv.sh.
DROP SCHEMA IF EXISTS bench_kv CASCADE;
DROP TABLE IF EXISTS kv_docs, kv_small_docs, kv_plain;
SELECT kv_create('bench_kv') \g /dev/null
CREATE TABLE kv_docs (id text PRIMARY KEY, doc bson);
INSERT INTO kv_docs SELECT 'player' || i, bson_build('score', hashint8(i)::bigint) FROM generate_series(1, :scale * 10000) i;
CREATE TABLE kv_small_docs (LIKE kv_docs INCLUDING ALL);
INSERT INTO kv_small_docs SELECT * FROM kv_docs LIMIT 10000;
SELECT kv_leaderboard('bench_kv', 'large', 'kv_docs', 'score'), kv_leaderboard('bench_kv', 'small', 'kv_small_docs', 'score') \g /dev/null
VACUUM ANALYZE bench_kv.keys, bench_kv.scores, bench_kv.counts;
SELECT member AS large_member, score AS large_score FROM kv_zrange('bench_kv', 'large', :scale * 5000, :scale * 5000) \gset
SELECT member AS small_member FROM kv_zrange('bench_kv', 'small', 5000, 5000) \gset

SELECT format(E'\n%s %s %s %s %s  %s', rpad('ms: ranks', 40), lpad('base', 9), lpad('zrank', 9), lpad('ratio', 7), lpad('bar', 6), 'rounds');
SELECT compare('100 ranks in the middle of ' || :scale || '0000', 1,
               format('SELECT count(*) FROM bench_kv.scores WHERE key = ''large'' AND (score, member) < (%L::bson_value, %L::bson_value)', :'large_score', :'large_member'),
               format('SELECT sum(kv_zrank(''bench_kv'', ''large'', %L::bson_value)) FROM generate_series(1, 100)', :'large_member'));
SELECT compare('the large board beside one of 10000', 2,
               format('SELECT sum(kv_zrank(''bench_kv'', ''small'', %L::bson_value)) FROM generate_series(1, 100)', :'small_member'),
               format('SELECT sum(kv_zrank(''bench_kv'', ''large'', %L::bson_value)) FROM generate_series(1, 100)', :'large_member'));

CREATE TABLE kv_plain (key text COLLATE "C", field text COLLATE "C", value bson_value, PRIMARY KEY (key, field)) WITH (fillfactor = 90);
INSERT INTO kv_plain SELECT 'user' || i, f, to_bson(i) FROM generate_series(1, :scale * 100) i, unnest(ARRAY['name', 'age', 'city']) f;
SELECT count(kv_hset('bench_kv', 'user' || i, 'name', i, 'age', i, 'city', i)) FROM generate_series(1, :scale * 100) i \g /dev/null
VACUUM ANALYZE kv_plain, bench_kv.keys, bench_kv.hashes;
-- each in a loop of 100, with plans that are kept, as an application's are
CREATE OR REPLACE FUNCTION kv_plain_loop(n int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE k text; v bson_value;
BEGIN
  FOR i IN 1 .. 100 LOOP
    k := 'user' || 1 + (random() * (n - 1))::int;
    INSERT INTO bench.kv_plain VALUES (k, 'age', to_bson(i)) ON CONFLICT (key, field) DO UPDATE SET value = EXCLUDED.value;
    SELECT value INTO v FROM bench.kv_plain WHERE key = k AND field = 'age';
  END LOOP;
END $$;
CREATE OR REPLACE FUNCTION kv_hash_loop(n int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE k text; v bson_value;
BEGIN
  FOR i IN 1 .. 100 LOOP
    k := 'user' || 1 + (random() * (n - 1))::int;
    PERFORM kv_hset('bench_kv', k, 'age', i);
    v := kv_hget('bench_kv', k, 'age');
  END LOOP;
END $$;
SELECT format(E'\n%s %s %s %s %s  %s', rpad('ms: 100 times hset and hget', 40), lpad('plain', 9), lpad('hash', 9), lpad('ratio', 7), lpad('bar', 6), 'rounds');
SELECT compare('hset and hget', 1.3, format('SELECT kv_plain_loop(%s)', :scale * 100), format('SELECT kv_hash_loop(%s)', :scale * 100));
DROP FUNCTION kv_plain_loop, kv_hash_loop;

-- many members in random order in one statement: what an addition costs does not depend on how many there were before it
SELECT format(E'\n%s %s %s %s %s  %s', rpad('ms: members added by one statement', 40), lpad('few', 9), lpad('many', 9), lpad('ratio', 7), lpad('bar', 6), 'rounds');
SELECT compare(:scale * 200 || ' additions four times, beside ' || :scale * 800, 1.5,
               format($$SELECT count(kv_zadd('bench_kv', k, i * 7919::bigint %% 1000003, 'm' || i)) FROM unnest(ARRAY['a', 'b', 'c', 'd']) k, generate_series(1, %s) i$$, :scale * 200),
               format($$SELECT count(kv_zadd('bench_kv', 'e', i * 7919::bigint %% 1000003, 'm' || i)) FROM generate_series(1, %s) i$$, :scale * 800),
               $$SELECT kv_del('bench_kv', 'a', 'b', 'c', 'd', 'e')$$);
DROP SCHEMA bench_kv CASCADE;
DROP TABLE kv_docs, kv_small_docs, kv_plain;
