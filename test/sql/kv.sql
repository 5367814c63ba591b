-- Key-value structures: hashes, sets and sorted sets in a space of ordinary tables, with the commands that people know.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
SELECT kv_create('game');

-- A hash: fields with values of any type.
SELECT kv_hset('game', 'user:123', 'name', 'Peter', 'email', 'peter@email.dk', 'age', 30);
SELECT kv_hset('game', 'user:123', 'age', 31, 'city', 'Aarhus');
SELECT kv_hget('game', 'user:123', 'name'), kv_hget('game', 'user:123', 'phone') IS NULL AS nil, kv_hexists('game', 'user:123', 'city'), kv_hlen('game', 'user:123');
SELECT kv_hgetall('game', 'user:123');
SELECT kv_hmget('game', 'user:123', 'age', 'phone', 'name');
SELECT kv_hincrby('game', 'user:123', 'age', 1), kv_hincrby('game', 'user:123', 'visits', 5);
SELECT * FROM kv_hkeys('game', 'user:123') AS field;
SELECT kv_hdel('game', 'user:123', 'email', 'phone');
SELECT kv_hincrby('game', 'user:123', 'name', 1);
SELECT kv_hsetnx('game', 'user:123', 'name', 'Paul'), kv_hsetnx('game', 'user:123', 'nick', 'P');

-- Sets.
SELECT kv_sadd('game', 'likes:go', 'ada', 'bob', 'cy', 'ada'), kv_sadd('game', 'likes:chess', 'bob', 'dee');
SELECT kv_sismember('game', 'likes:go', 'ada'), kv_sismember('game', 'likes:go', 'dee'), kv_scard('game', 'likes:go');
SELECT array(SELECT kv_sinter('game', 'likes:go', 'likes:chess')) AS both, array(SELECT kv_sunion('game', 'likes:go', 'likes:chess')) AS any, array(SELECT kv_sdiff('game', 'likes:go', 'likes:chess')) AS only_go;
SELECT kv_srem('game', 'likes:chess', 'bob', 'dee'), kv_exists('game', 'likes:chess', 'likes:go');

-- A leaderboard is a sorted set: members by score, those of one score by their own order.
SELECT kv_zadd('game', 'board', 1500, 'ada', 2000, 'bob', 1500, 'cy');
SELECT * FROM kv_zrevrange('game', 'board', 0, 9);
SELECT kv_zrank('game', 'board', 'cy'), kv_zrevrank('game', 'board', 'cy'), kv_zscore('game', 'board', 'cy')::int AS score, kv_zrank('game', 'board', 'zed') IS NULL AS nil;
SELECT kv_zincrby('game', 'board', 600, 'cy')::int AS score, kv_zrevrank('game', 'board', 'cy') AS then_rank;
-- the same in the next statement, which sees what this one did
SELECT kv_zrevrank('game', 'board', 'cy');
-- Only if it is better, only if it is there, only if it is not; "ch" counts what has another score.
SELECT kv_zadd('game', 'board', 'gt', 'ch', 1000, 'ada', 2500, 'bob'), kv_zadd('game', 'board', 'xx', 1, 'dee'), kv_zadd('game', 'board', 'nx', 1, 'ada', 700, 'eve');
SELECT member, score::int FROM kv_zrange('game', 'board', 0, -1);
SELECT kv_zcount('game', 'board', 1500, '+inf'), kv_zcount('game', 'board', '(1500', '(2500'), kv_zcard('game', 'board');
SELECT member FROM kv_zrangebyscore('game', 'board', '-inf', 2500, skip => 1, take => 2);
SELECT member, score::int FROM kv_zpopmin('game', 'board');
SELECT member FROM kv_zrevrangebyscore('game', 'board', '+inf', '(1500');
SELECT kv_zadd('game', 'board:today', 10, 'ada', 20, 'fay');
SELECT kv_zunionstore('game', 'board:all', '{board,board:today}', '{1,100}');
SELECT member, score::int FROM kv_zrevrange('game', 'board:all', 0, -1);
-- A window that slides: what is older than 30 goes, or all but the last two.
SELECT kv_zadd('game', 'window', 10, 'a', 20, 'b', 30, 'c', 40, 'd', 50, 'e');
SELECT kv_zremrangebyscore('game', 'window', '-inf', '(30'), kv_zremrangebyrank('game', 'window', 0, -3);
SELECT member FROM kv_zrange('game', 'window', 0, -1);
-- Scores are doubles and 64-bit integers, compared exactly.
SELECT kv_zadd('game', 'exact', 9007199254740993, 'int64', 9007199254740992::float8, 'double', 'inf', 'inf', 0.5, 'half');
SELECT member, score FROM kv_zrange('game', 'exact', 0, -1);

-- A key of another type is an error, as there.
SELECT kv_hget('game', 'board', 'x');
SELECT kv_type_of('game', 'board'), kv_type_of('game', 'user:123'), kv_type_of('game', 'nobody');
SELECT * FROM kv_keys('game', '*:*') AS key;
-- Keys by steps: begin with 0, go on with what comes back, end with 0.
SELECT * FROM kv_scan('game', '0', 'board*', 3);
SELECT * FROM kv_scan('game', '>board:today', take => 3);
SELECT * FROM kv_scan('game', '>likes:go');
-- A key gets another name; the one that had it goes.
SELECT kv_rename('game', 'board:today', 'window');
SELECT kv_rename('game', 'board:today', 'window');
SELECT kv_exists('game', 'board:today'), kv_zcard('game', 'window');
SELECT kv_del('game', 'window');

-- A key whose time has come is gone at once; what it occupied is cleaned up later.
SELECT kv_expire('game', 'likes:go', 100), kv_ttl('game', 'board'), kv_ttl('game', 'nobody');
SELECT kv_ttl('game', 'likes:go') BETWEEN 98 AND 100 AS ttl, kv_persist('game', 'likes:go');
SELECT kv_ttl('game', 'likes:go'), kv_expire('game', 'likes:go', -1);
SELECT kv_exists('game', 'likes:go'), kv_scard('game', 'likes:go'), (SELECT count(*) FROM game.sets) AS rows, kv_purge('game');
SELECT count(*) AS rows FROM game.sets;
SELECT kv_del('game', 'board:all', 'exact', 'nobody');

-- All of this is in the transaction.
BEGIN;
SELECT kv_zadd('game', 'board', 9999, 'ada'), kv_del('game', 'user:123');
ROLLBACK;
SELECT kv_zscore('game', 'board', 'ada')::int AS score, kv_exists('game', 'user:123');

-- The tables can be read as any; they are written by commands only.
SELECT key, type, kept_by FROM game.keys ORDER BY key;
SELECT k.key, m.member, m.score::int FROM game.keys k JOIN game.scores m USING (key) WHERE k.key = 'board' ORDER BY m.score DESC;
UPDATE game.scores SET score = to_bson(1);
SELECT * FROM pattern_list('game.keys');

-- A board that a table keeps: the score is a field of its documents.
SELECT collection_create('players');
INSERT INTO players (doc) VALUES ('{_id: "ada", best: {points: 12}}'), ('{_id: "bob", best: {points: 30}}'), ('{_id: "cy"}');
SELECT kv_leaderboard('game', 'players', 'players', score_path => 'best.points');
UPDATE players SET doc = bson_update(doc, '{$max: {"best.points": 40}}') WHERE _id = 'ada'::text;
INSERT INTO players (doc) VALUES ('{_id: "dee", best: {points: 35}}');
SELECT member, score::int, kv_zrevrank('game', 'players', member) AS rank FROM kv_zrevrange('game', 'players', 0, 2);
DELETE FROM players WHERE _id = 'ada'::text;
SELECT member FROM kv_zrevrange('game', 'players', 0, 0);
SELECT kv_zadd('game', 'players', 99, 'me');
SELECT * FROM pattern_check();
SELECT rel, pattern, name, options FROM pattern_list('players');
SELECT pattern_disable('players', 'players', keep_data => true);
SELECT kv_zadd('game', 'players', 99, 'me');

DROP TABLE players;
DROP SCHEMA game CASCADE;
