-- The contract of key-value structures: signatures, results as there, what is refused and how, rights, expiry, hostile names.
SET client_min_messages = warning;
SET timezone = 'UTC';
\pset fieldsep '\n'
SELECT plan(489);
CREATE FUNCTION pg_temp.true_everywhere(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;
CREATE FUNCTION pg_temp.members(key text) RETURNS text LANGUAGE sql AS $$ SELECT string_agg(concat(member::text, '=', score::text), ' ' ORDER BY o) FROM kv_zrange('k', key, 0, -1) WITH ORDINALITY AS z(member, score, o) $$;

-- Signatures
SELECT function_returns(f, r, f || ' returns ' || r) FROM (VALUES ('kv_create', 'text'), ('kv_hset', 'bigint'), ('kv_hget', 'bson_value'), ('kv_hmget', 'bson_value[]'), ('kv_hgetall', 'bson'), ('kv_hkeys', 'setof text'),
  ('kv_hvals', 'setof bson_value'), ('kv_hlen', 'bigint'), ('kv_hexists', 'boolean'), ('kv_hdel', 'bigint'), ('kv_hincrby', 'bigint'), ('kv_sadd', 'bigint'), ('kv_srem', 'bigint'), ('kv_smembers', 'setof bson_value'),
  ('kv_sismember', 'boolean'), ('kv_scard', 'bigint'), ('kv_sinter', 'setof bson_value'), ('kv_sunion', 'setof bson_value'), ('kv_sdiff', 'setof bson_value'), ('kv_zadd', 'bigint'), ('kv_zincrby', 'numeric'), ('kv_zrem', 'bigint'),
  ('kv_zscore', 'numeric'), ('kv_zcard', 'bigint'), ('kv_zcount', 'bigint'), ('kv_zrank', 'bigint'), ('kv_zrevrank', 'bigint'), ('kv_zrange', 'setof record'), ('kv_zrevrange', 'setof record'), ('kv_zrangebyscore', 'setof record'),
  ('kv_zpopmin', 'setof record'), ('kv_zpopmax', 'setof record'), ('kv_zunionstore', 'bigint'), ('kv_zinterstore', 'bigint'), ('kv_del', 'bigint'), ('kv_exists', 'bigint'), ('kv_type_of', 'text'), ('kv_expire', 'boolean'),
  ('kv_persist', 'boolean'), ('kv_hsetnx', 'boolean'), ('kv_zrevrangebyscore', 'setof record'), ('kv_zremrangebyscore', 'bigint'), ('kv_zremrangebyrank', 'bigint'), ('kv_rename', 'void'), ('kv_scan', 'record'), ('kv_ttl', 'bigint'), ('kv_keys', 'setof text'), ('kv_purge', 'bigint'), ('kv_leaderboard', 'text')) AS v (f, r);
SELECT volatility_is(f, 'stable', f || ' is stable') FROM unnest(ARRAY['kv_hget', 'kv_hgetall', 'kv_smembers', 'kv_zscore', 'kv_zrank', 'kv_zrange', 'kv_zcount', 'kv_ttl', 'kv_exists', 'kv_scan', 'kv_zrevrangebyscore']) f;
SELECT volatility_is(f, 'volatile', f || ' is volatile') FROM unnest(ARRAY['kv_hset', 'kv_sadd', 'kv_zadd', 'kv_del', 'kv_expire', 'kv_zpopmin', 'kv_purge', 'kv_rename', 'kv_zremrangebyscore', 'kv_hsetnx']) f;

-- Spaces
SELECT is(kv_create('k'), 'k', 'a space has a name');
SELECT throws_ok($$SELECT kv_create('k')$$, '42P07', 'key-value space "k" already exists', 'it exists once');
SELECT throws_ok($$SELECT kv_create(NULL)$$, '22004', NULL, 'no name');
SELECT throws_ok($$SELECT kv_create('')$$, '42602', NULL, 'an empty name');
SELECT throws_ok($$SELECT kv_create(repeat('x', 64))$$, '42602', NULL, 'a name that is too long');
SELECT throws_ok($$SELECT kv_create('pg_mine')$$, '42939', NULL, 'a reserved name');
SELECT throws_ok($$SELECT kv_hget('nowhere', 'a', 'b')$$, '3F000', 'key-value space "nowhere" does not exist', 'no such schema');
SELECT throws_ok($$SELECT kv_hget('public', 'a', 'b')$$, '42809', NULL, 'a schema that is no space');
SELECT throws_ok(format('SELECT kv_hget(%L, ''a'', ''b'')', repeat('x', 64)), '42809', NULL, 'a name that no schema has');
CREATE SCHEMA mine; CREATE TABLE mine.own (a int);
SELECT is(kv_create('mine'), 'mine', 'a schema that is there becomes a space');
SELECT is(kv_sadd('mine', 'a', 1), 1::bigint, 'and works');
CREATE SCHEMA fake; CREATE TABLE fake.keys (key int);
SELECT throws_ok($$SELECT kv_exists('fake', 'a')$$, '42809', NULL, 'tables of the same names are none');
SELECT is(kv_hset('k', 'a', 'b', 1), 1::bigint, 'as a start'), is(kv_del('k', 'a'), 1::bigint, 'and away');

-- Hashes
SELECT is(kv_hset('k', 'h', 'a', 1, 'b', 'x', 'c', 2.5, 'd', now()), 4::bigint, 'fields are counted when they are new'), is(kv_hset('k', 'h', 'a', 2, 'e', 1), 1::bigint, 'and only then');
SELECT is(kv_hset('k', 'h', 'a', 5, 'a', 6), 0::bigint, 'a field that is given twice'), is(kv_hset('k', 'h', 7, true), 1::bigint, 'a field that is no text');
SELECT is(kv_hget('k', 'h', 'a')::int, 6, 'has the last value'), is(kv_hget('k', 'h', '7')::bool, true, 'becomes one'), is(bson_typeof(kv_hget('k', 'h', 'd')), 'date', 'values keep their types');
SELECT is(kv_hget('k', 'h', 'no'), NULL, 'nil of a field'), is(kv_hget('k', 'no', 'a'), NULL, 'nil of a key'), is(kv_hgetall('k', 'no')::text, '{}', 'no fields'), is(kv_hlen('k', 'no'), 0::bigint, 'none');
SELECT is(kv_hmget('k', 'h', 'no', 'a')::text, '{NULL,6}', 'HMGET'), is(kv_hmget('k', 'no', 'a')::text, '{NULL}', 'of no key'), is(kv_hmget('k', 'h', VARIADIC '{}')::text, '{}', 'of no fields');
SELECT is(kv_hset('k', 'h', VARIADIC ARRAY['p', 'q', 'r', 's']), 2::bigint, 'pairs in an array');
SELECT throws_ok($$SELECT kv_hset('k', 'h', 'a')$$, '22023', NULL, 'half a pair'), throws_ok($$SELECT kv_hset('k', 'h', 'a', NULL)$$, '22004', NULL, 'a null'), throws_ok($$SELECT kv_hset('k', 'h', NULL, 1)$$, '22004', NULL, 'a field of null'),
       throws_ok($$SELECT kv_hset('k', NULL, 'a', 1)$$, '22004', NULL, 'a key of null'), throws_ok($$SELECT kv_hset(NULL, 'h', 'a', 1)$$, '22004', NULL, 'a space of null');
SELECT is(kv_hincrby('k', 'h', 'n', 2147483647), 2147483647::bigint, 'HINCRBY of nothing'), is(kv_hincrby('k', 'h', 'n', 1), 2147483648::bigint, 'an int32 grows');
SELECT is(bson_typeof(kv_hget('k', 'h', 'n')), 'long', 'into an int64');
SELECT throws_ok($$SELECT kv_hincrby('k', 'h', 'n', 9223372036854775807)$$, '22003', NULL, 'beyond an int64'), throws_ok($$SELECT kv_hincrby('k', 'h', 'b', 1)$$, '42804', NULL, 'a string'), throws_ok($$SELECT kv_hincrby('k', 'h', 'c', 1)$$, '42804', NULL, 'a fraction');
SELECT is(kv_hdel('k', 'h', 'no'), 0::bigint, 'HDEL of nothing'), is(kv_hdel('k', 'h', 'a', 'a', 'b'), 2::bigint, 'each once'), is(kv_hdel('k', 'no', 'a'), 0::bigint, 'of no key');
SELECT is(kv_hdel('k', 'h', VARIADIC array(SELECT kv_hkeys('k', 'h'))), 7::bigint, 'all'); SELECT is(kv_type_of('k', 'h'), 'none', 'and the key with them'), is_empty('SELECT * FROM k.keys WHERE key = ''h''', 'without a trace');
SELECT throws_ok($$SELECT kv_hset('k', 'big', 'a', repeat('x', 16 * 1024 * 1024)); SELECT kv_hgetall('k', 'big')$$, '54000', NULL, 'HGETALL beyond the size of a document');

SELECT is(kv_hset('k', 'same', 'a', 'v'), 1::bigint, 'a value'); SELECT ctid AS at, xmin AS by FROM k.hashes WHERE key = 'same' \gset
SELECT is(kv_hset('k', 'same', 'a', 'v'), 0::bigint, 'the same again'), is(kv_zadd('k', 'same:z', 5, 'a'), 1::bigint, 'a score'); SELECT ctid AS zat FROM k.scores WHERE key = 'same:z' \gset
SELECT is(kv_zadd('k', 'same:z', 'ch', 5.0::float8, 'a'), 0::bigint, 'the same again'); SELECT is((SELECT ctid FROM k.hashes WHERE key = 'same'), :'at'::tid, 'what is the same is not written'), is((SELECT ctid FROM k.scores WHERE key = 'same:z'), :'zat'::tid, 'nor a score');

-- Sets
SELECT is(kv_sadd('k', 's', 5, 5.0::float8, 5::bigint, '5', 5.0), 2::bigint, 'equal numbers are one member, a string is another');
SELECT is(kv_sadd('k', 's', '5'), 0::bigint, 'it is there'), is(kv_sismember('k', 's', 5.0), true, 'SISMEMBER'), is(kv_sismember('k', 's', 6), false, 'of another'), is(kv_sismember('k', 'no', 6), false, 'of no key'), is(kv_scard('k', 's'), 2::bigint, 'SCARD');
SELECT throws_ok($$SELECT kv_sadd('k', 's', NULL::text)$$, '22004', NULL, 'a null'), throws_ok($$SELECT kv_sadd('k', 's', '{"$minKey": 1}'::bson_value)$$, '22023', NULL, 'MinKey'), throws_ok($$SELECT kv_sadd('k', 's', '{"$maxKey": 1}'::bson_value)$$, '22023', NULL, 'MaxKey');
SELECT lives_ok($$SELECT kv_sadd('k', 's', '{"a": [1, {"b": null}]}'::bson, ARRAY[1,2], 'null'::bson_value, '\x00'::bytea)$$, 'documents, arrays and null are members'); SELECT is(kv_scard('k', 's'), 6::bigint, 'each');
SELECT is((SELECT count(*) FROM kv_sinter('k', 's', 'no')), 0::bigint, 'nothing is in a set that is not there'), is((SELECT count(*) FROM kv_sdiff('k', 's', 'no')), 6::bigint, 'all but nothing'), is((SELECT count(*) FROM kv_sunion('k', 's', 's', 'no')), 6::bigint, 'each once');
SELECT isnt(kv_srandmember('k', 's'), NULL, 'SRANDMEMBER'), is(kv_srandmember('k', 'no'), NULL, 'of nothing'), is((SELECT count(DISTINCT m) FROM kv_srandmember('k', 's', 4) m), 4::bigint, 'different ones'),
       is((SELECT count(*) FROM kv_srandmember('k', 's', 100) m), 6::bigint, 'at most all'), is((SELECT count(*) FROM kv_srandmember('k', 's', -100) m), 100::bigint, 'drawn one by one'), is((SELECT count(*) FROM kv_srandmember('k', 's', 0) m), 0::bigint, 'none');
SELECT is(kv_spop('k', 'no'), NULL, 'SPOP of nothing'), is((SELECT count(*) FROM kv_spop('k', 's', 4) m), 4::bigint, 'SPOP'); SELECT is(kv_scard('k', 's'), 2::bigint, 'they are gone'), isnt(kv_spop('k', 's'), NULL, 'one more'), throws_ok($$SELECT kv_spop('k', 's', -1)$$, '22023', NULL, 'less than none');
SELECT is((SELECT count(*) FROM kv_spop('k', 's', 4) m), 1::bigint, 'the last'); SELECT is(kv_exists('k', 's'), 0::bigint, 'and the key');

-- Sorted sets: the options
SELECT is(kv_zadd('k', 'z', 1, 'a', 2, 'b', 3, 'c'), 3::bigint, 'ZADD'), is(kv_zadd('k', 'z', 5, 'a', 4, 'd'), 1::bigint, 'counts new ones'), is(kv_zadd('k', 'z', 'ch', 6, 'a', 3, 'c', 7, 'e'), 2::bigint, 'with ch changed ones too');
SELECT is(pg_temp.members('z'), 'b=2 c=3 d=4 a=6 e=7', 'in order');
SELECT is(kv_zadd('k', 'z', 'nx', 9, 'a', 8, 'f'), 1::bigint, 'nx'), is(kv_zadd('k', 'z', 'XX', 'CH', 9, 'a', 8, 'g'), 1::bigint, 'xx'), is(kv_zadd('k', 'z', 'gt', 'ch', 1, 'a', 10, 'f', 1, 'g'), 2::bigint, 'gt adds new ones'), is(kv_zadd('k', 'z', 'lt', 'ch', 1, 'b', 10, 'f', 50, 'a'), 1::bigint, 'lt'),
       is(kv_zadd('k', 'z', 'xx', 'gt', 'ch', 5, 'new', 2, 'b'), 1::bigint, 'xx and gt');
SELECT is(pg_temp.members('z'), 'g=1 b=2 c=3 d=4 e=7 a=9 f=10', 'all as told');
SELECT is(kv_zadd('k', 'z', 'incr', 5, 'b'), 0::bigint, 'incr'), is(kv_zadd('k', 'z', 'incr', 'nx', 5, 'b'), NULL, 'nil where a condition says no'), is(kv_zadd('k', 'z', 'incr', 'gt', -1, 'b'), NULL, 'so here'), is(kv_zincrby('k', 'z', 0.5, 'b')::text, '7.5', 'ZINCRBY'), is(kv_zincrby('k', 'z', 'xx', 1, 'nobody'), NULL, 'nil'), is(kv_zincrby('k', 'z', 3, 'h')::text, '3', 'of nobody');
SELECT throws_ok(format('SELECT kv_zadd(''k'', ''z'', %s)', args), state, NULL, what) FROM (VALUES ($$'nx', 'xx', 1, 'a'$$, '22023', 'nx and xx'), ($$'nx', 'gt', 1, 'a'$$, '22023', 'nx and gt'), ($$'gt', 'lt', 1, 'a'$$, '22023', 'gt and lt'),
  ($$'incr', 1, 'a', 2, 'b'$$, '22023', 'incr of two'), ($$1$$, '22023', 'no member'), ($$'xx'$$, '22023', 'options alone'), ($$'NaN'::float8, 'a'$$, '22023', 'NaN'), ($$'nan', 'a'$$, '22023', 'NaN as text'), ($$'NaN'::numeric, 'a'$$, '22023', 'NaN as numeric'),
  ($$'one', 'a'$$, '22P02', 'a word'), ($$'', 'a'$$, '22P02', 'nothing'), ($$'(5', 'a'$$, '22P02', 'a bound'), ($$now(), 'a'$$, '42804', 'a time'), ($$'"5"'::bson_value, 'a'$$, '42804', 'a string of BSON'), ($$NULL::int, 'a'$$, '22004', 'no score'), ($$1, NULL::text$$, '22004', 'no member'),
  ($$1, '{"$minKey": 1}'::bson_value$$, '22023', 'MinKey'), ($$1e400, 'a'$$, '22003', 'too large')) AS v (args, state, what);
SELECT is(kv_zadd('k', 'z', 'xx', 1, 'x'), 0::bigint, 'xx'), is(kv_zadd('k', 'fresh', 'xx', 1, 'x'), 0::bigint, 'on no key'); SELECT is(kv_exists('k', 'fresh'), 0::bigint, 'makes none');

-- Scores exactly
SELECT is(kv_zadd('k', 'e', 9007199254740993, 'i', 9007199254740992::float8, 'd', 9007199254740992, 'j', '9007199254740994', 't', 9007199254740991.0, 'n', 'inf', 'top', '-inf', 'bottom', 0.1, 'tenth', -0.0::float8, 'zero', 0, 'nought'), 10::bigint, 'doubles and integers');
SELECT is(array(SELECT member::text FROM kv_zrange('k', 'e', 0, -1)), ARRAY['bottom', 'nought', 'zero', 'tenth', 'n', 'd', 'j', 'i', 't', 'top'], 'in exact order, members in order where scores are equal');
SELECT is(kv_zrank('k', 'e', 'i'), 7::bigint, 'exact ranks'), is(kv_zscore('k', 'e', 'top')::text, 'Infinity', 'infinity'), is(kv_zcount('k', 'e', '(9007199254740992', '+inf'), 3::bigint, 'exact bounds'), is(kv_zcount('k', 'e', 9007199254740992, '(inf'), 4::bigint, 'included'), is(kv_zcount('k', 'e', '-inf', 'inf'), 10::bigint, 'all'), is(kv_zcount('k', 'e', 5, 1), 0::bigint, 'none');
SELECT throws_ok($$SELECT kv_zincrby('k', 'e', '-inf', 'top')$$, '22003', NULL, 'infinity less infinity'), throws_ok($$SELECT kv_zincrby('k', 'e', 9223372036854775807, 'i')$$, '22003', NULL, 'beyond an int64');
SELECT is(kv_zcount('k', 'e', NULL::int, 5), NULL, 'a bound of NULL'), throws_ok($$SELECT * FROM kv_zrangebyscore('k', 'e', 1, 2, -1)$$, '22023', NULL, 'a negative skip'), throws_ok($$SELECT * FROM kv_zrangebyscore('k', 'e', NULL::int, 2)$$, '22004', NULL, 'no bound');

-- Ranges
SELECT is((SELECT string_agg(member::text, ' ') FROM kv_zrange('k', 'z', a, b)), r, format('from %s to %s', a, b)) FROM (VALUES (0, 0, 'g'), (1, 2, 'c h'), (-2, -1, 'a f'), (-100, 0, 'g'), (6, 100, 'a f'), (5, 2, NULL), (100, 200, NULL), (0, -100, NULL), (-1, -2, NULL)) AS v (a, b, r);
SELECT is((SELECT string_agg(member::text, ' ') FROM kv_zrevrange('k', 'z', a, b)), r, format('downwards from %s to %s', a, b)) FROM (VALUES (0, 0, 'f'), (1, 2, 'a b'), (-1, -1, 'g'), (0, -1, 'f a b e d h c g')) AS v (a, b, r);
SELECT is(kv_zrank('k', 'z', 'nobody'), NULL, 'nil of a member'), is(kv_zrank('k', 'no', 'a'), NULL, 'of a key'), is(kv_zcard('k', 'no'), 0::bigint, 'none'), is((SELECT count(*) FROM kv_zrange('k', 'no', 0, -1)), 0::bigint, 'no rows');
SELECT is((SELECT string_agg(member::text, ' ') FROM kv_zpopmax('k', 'z', 2)), 'f a', 'ZPOPMAX from the highest down'), is((SELECT string_agg(member::text, ' ') FROM kv_zpopmin('k', 'z', 2)), 'g c', 'ZPOPMIN'), is((SELECT count(*) FROM kv_zpopmin('k', 'no')), 0::bigint, 'of nothing'), throws_ok($$SELECT kv_zpopmin('k', 'z', -1)$$, '22023', NULL, 'less than none');
SELECT is(kv_zrem('k', 'z', 'b', 'b', 'nobody'), 1::bigint, 'ZREM'), is((SELECT count(*) FROM kv_zpopmin('k', 'z', 100)), 3::bigint, 'the rest'); SELECT is(kv_exists('k', 'z'), 0::bigint, 'and the key'), is_empty('SELECT * FROM k.counts c WHERE NOT EXISTS (SELECT FROM k.keys WHERE zset = c.zset)', 'without a trace');

-- Union and intersection
SELECT is(kv_zadd('k', 'u1', 1, 'a', 2, 'b'), 2::bigint, 'one'), is(kv_zadd('k', 'u2', 10, 'b', 20.5, 'c', 'inf', 'd'), 3::bigint, 'another'), is(kv_sadd('k', 'u3', 'a', 'b'), 2::bigint, 'and a set');
SELECT is(kv_zunionstore('k', 'u', '{u1,u2}'), 4::bigint, 'union'); SELECT is(pg_temp.members('u'), 'a=1 b=12 c=20.5 d=Infinity', 'adds up');
SELECT is(kv_zinterstore('k', 'u', '{u1,u2}', '{2,0}'), 1::bigint, 'intersection'); SELECT is(pg_temp.members('u'), 'b=4', 'with weights');
SELECT is(kv_zunionstore('k', 'u', '{u1,u2,u3}', NULL, 'MAX'), 4::bigint, 'the greatest'); SELECT is(pg_temp.members('u'), 'a=1 b=10 c=20.5 d=Infinity', 'of each');
SELECT is(kv_zunionstore('k', 'u', '{u1,u2}', '{1,0}', 'min'), 4::bigint, 'the least'); SELECT is(pg_temp.members('u'), 'b=0 c=0 d=0 a=1', 'no NaN');
SELECT is(kv_zunionstore('k', 'u3', '{u3,u1}'), 2::bigint, 'onto a source of another type'); SELECT is(kv_type_of('k', 'u3'), 'zset', 'which becomes a sorted set'), is(pg_temp.members('u3'), 'a=2 b=3', 'made of itself');
SELECT is(kv_zinterstore('k', 'u', '{u1,no}'), 0::bigint, 'nothing'); SELECT is(kv_exists('k', 'u'), 0::bigint, 'is no key');
SELECT throws_ok(format('SELECT kv_zunionstore(''k'', ''u'', %s)', args), state, NULL, what) FROM (VALUES ($$'{}'$$, '22023', 'no keys'), ($$'{a}', '{1,2}'$$, '22023', 'too many weights'), ($$'{a}', NULL, 'avg'$$, '22023', 'another aggregate'), ($$'{NULL}'$$, '22004', 'a key of null'), ($$NULL$$, '22004', 'no array')) AS v (args, state, what);
SELECT pg_temp.true_everywhere('structures');

-- Types
SELECT is(kv_hset('k', 'th', 'a', 1), 1::bigint, 'a hash'), is(kv_sadd('k', 'ts', 'a'), 1::bigint, 'a set'), is(kv_zadd('k', 'tz', 1, 'a'), 1::bigint, 'a sorted set');
SELECT throws_like('SELECT ' || c, 'WRONGTYPE%', c) FROM unnest(ARRAY[$$kv_hget('k', 'ts', 'a')$$, $$kv_hset('k', 'tz', 'a', 1)$$, $$kv_hdel('k', 'ts', 'a')$$, $$kv_sadd('k', 'th', 'a')$$, $$kv_smembers('k', 'tz')$$, $$kv_sinter('k', 'ts', 'th')$$, $$kv_zadd('k', 'th', 1, 'a')$$, $$kv_zrank('k', 'ts', 'a')$$, $$kv_zpopmin('k', 'th')$$, $$kv_zunionstore('k', 'x', '{th}')$$, $$kv_hincrby('k', 'ts', 'a', 1)$$, $$kv_spop('k', 'tz')$$]) c;
SELECT throws_ok($$SELECT kv_hget('k', 'ts', 'a')$$, '42809', NULL, 'with this state');
SELECT is(kv_exists('k', 'th', 'ts', 'tz', 'th', 'no'), 4::bigint, 'EXISTS counts each'), is(kv_del('k', 'th', 'ts', 'th', 'no'), 2::bigint, 'DEL counts once'), is(kv_sadd('k', 'th', 1), 1::bigint, 'then it can be of another type');

-- Expiry
SELECT is(kv_expire('k', 'no', 5), false, 'EXPIRE of nothing'), is(kv_expire('k', 'th', 1000), true, 'EXPIRE'), is(kv_persist('k', 'tz'), false, 'PERSIST of what does not expire'); SELECT is(kv_ttl('k', 'th') BETWEEN 990 AND 1000, true, 'TTL');
SELECT is(kv_srem('k', 'th', 1), 1::bigint, 'emptied'), is(kv_sadd('k', 'th', 2), 1::bigint, 'and begun anew'); SELECT is(kv_ttl('k', 'th'), -1::bigint, 'without its time');
SELECT is(kv_expire('k', 'th', 0.05), true, 'soon'), is(kv_expire('k', 'tz', 0), true, 'now'), is(pg_sleep(0.1)::text, '', 'later'); SELECT is(kv_type_of('k', 'th'), 'none', 'gone'), is(kv_scard('k', 'th'), 0::bigint, 'nothing in it'), is(kv_ttl('k', 'th'), -2::bigint, 'no time'), is(kv_zrank('k', 'tz', 'a'), NULL, 'no rank'), is(kv_del('k', 'th'), 0::bigint, 'nothing to delete'), is(kv_expire('k', 'tz', 5), false, 'nor to expire');
SELECT is(kv_hset('k', 'tz', 'f', 1), 1::bigint, 'what has expired is in nobody''s way'); SELECT is(kv_ttl('k', 'tz'), -1::bigint, 'and begins anew'), is_empty($$SELECT * FROM k.scores WHERE key = 'tz'$$, 'without what was there');
SELECT throws_ok($$SELECT kv_expire('k', 'tz', 'NaN')$$, '22008', NULL, 'no time'), throws_ok($$SELECT kv_expire('k', 'tz', 'inf')$$, '22008', NULL, 'never'), throws_ok($$SELECT kv_expire('k', 'tz', NULL)$$, '22004', NULL, 'null');
DO $$ BEGIN PERFORM kv_sadd('k', 'in', 1), kv_expire('k', 'in', 0.05); PERFORM pg_sleep(0.1); PERFORM kv_sadd('k', 'in', 2); END $$;
SELECT is((SELECT string_agg(m::text, ',') FROM kv_smembers('k', 'in') m), '2', 'by the clock, also within a transaction');
SELECT is((SELECT sum(kv_sadd('k', 'p' || i, 1) + kv_expire('k', 'p' || i, -1)::int) FROM generate_series(1, 30) i), 60::numeric, 'thirty that have expired'); SELECT is(kv_purge('k', 10), 10::bigint, 'some'), is(kv_purge('k'), 20::bigint, 'all'), is(kv_purge('k'), 0::bigint, 'none'), throws_ok($$SELECT kv_purge('k', -1)$$, '22023', NULL, 'less than none');

-- Keys
SELECT is(kv_sadd('k', key, 1), 1::bigint, 'a key') FROM unnest(ARRAY['h:ello', 'h:allo', 'h:*', 'h:é', 'h:[x']) key;
SELECT is(array(SELECT kv_keys('k', pattern)), keys, pattern) FROM (VALUES ('h:?llo', ARRAY['h:allo', 'h:ello']), ('h:[ae]*', ARRAY['h:allo', 'h:ello']), ('h:[^a]*', ARRAY['h:*', 'h:[x', 'h:ello', 'h:é']), ('h:[a-d]llo', ARRAY['h:allo']), ('h:\*', ARRAY['h:*']), ('h:?', ARRAY['h:*', 'h:é']),
  ('h:\[x', ARRAY['h:[x']), ('*l*o', ARRAY['h:allo', 'h:ello']), ('', '{}'), ('h:', '{}'), ('h:[é-ü]', ARRAY['h:é'])) AS v (pattern, keys);

-- Ranges that are removed, and read backwards
SELECT is(kv_zadd('k', 'zr', 1, 'a', 2, 'b', 2, 'c', 3, 'd', 4, 'e', 'inf', 'f'), 6::bigint, 'as a start');
SELECT is((SELECT string_agg(member::text, ' ') FROM kv_zrevrangebyscore('k', 'zr', max, min, skip, take)), r, format('from %s down to %s, %s after %s', max, min, take, skip)) FROM (VALUES ('+inf', '-inf', 0, NULL::int, 'f e d c b a'), ('3', '2', 0, NULL, 'd c b'), ('(3', '(1', 0, NULL, 'c b'), ('inf', '2', 1, 3, 'e d c'), ('2', '3', 0, NULL, NULL), ('4', '1', 0, 0, NULL)) AS v (max, min, skip, take, r);
SELECT throws_ok($$SELECT * FROM kv_zrevrangebyscore('k', 'zr', 1, NULL::int)$$, '22004', NULL, 'no bound'), throws_ok($$SELECT * FROM kv_zrevrangebyscore('k', 'zr', 'x', 1)$$, '22P02', NULL, 'a word as a bound'), throws_ok($$SELECT * FROM kv_zrevrangebyscore('k', 'zr', 2, 1, -1)$$, '22023', NULL, 'a negative skip');
SELECT is(kv_zremrangebyscore('k', 'zr', '(1', '(3'), 2::bigint, 'without the bounds'), is(kv_zremrangebyscore('k', 'zr', 2, 2), 0::bigint, 'none is left'), is(kv_zremrangebyscore('k', 'none', 2, 2), 0::bigint, 'of no key'), is(pg_temp.members('zr'), 'a=1 d=3 e=4 f=Infinity', 'the others are');
SELECT is(kv_zremrangebyrank('k', 'zr', -1, -1), 1::bigint, 'the last'), is(kv_zremrangebyrank('k', 'zr', 1, 0), 0::bigint, 'no rank'), is(kv_zremrangebyrank('k', 'zr', 3, 9), 0::bigint, 'beyond'), is(kv_zremrangebyrank('k', 'none', 0, -1), 0::bigint, 'of no key');
SELECT is(pg_temp.members('zr'), 'a=1 d=3 e=4', 'are as expected'); SELECT is(kv_zremrangebyrank('k', 'zr', -100, 100), 3::bigint, 'all'); SELECT is_empty($$SELECT * FROM k.keys WHERE key = 'zr'$$, 'and the key with them'), is_empty($$SELECT zset FROM k.counts EXCEPT SELECT zset FROM k.keys$$, 'and its blocks');
SELECT throws_ok($$SELECT kv_zremrangebyscore('k', 'z', 1, NULL::int)$$, '22004', NULL, 'no bound'), throws_ok($$SELECT kv_zremrangebyrank('k', 'z', NULL, 1)$$, '22004', NULL, 'no rank'), throws_ok($$SELECT kv_zremrangebyscore('k', 'h2', 1, 'b')$$, '22P02', NULL, 'a word'), throws_ok($$SELECT kv_zremrangebyscore('k', NULL, 1, 2)$$, '22004', NULL, 'no key');
SET docpatterns.kv_block_size = 16;
SELECT is((SELECT sum(kv_zadd('k', 'zr', i, i)) FROM generate_series(1, 600) i), 600::numeric, 'many blocks'); SELECT (SELECT count(*) AS blocks FROM k.counts WHERE zset = (SELECT zset FROM k.keys WHERE key = 'zr')) \gset
SELECT is(kv_zremrangebyscore('k', 'zr', 20, 580), 561::bigint, 'of which most are emptied'); SELECT cmp_ok((SELECT count(*) FROM k.counts WHERE zset = (SELECT zset FROM k.keys WHERE key = 'zr')), '<', (:blocks / 5)::bigint, 'and go'), pg_temp.true_everywhere('blocks removed');
SELECT is(kv_zrank('k', 'zr', 581), 19::bigint, 'ranks follow'), is(kv_zcard('k', 'zr'), 39::bigint, 'so does the number');
SELECT count(kv_zadd('k', 'merged', i, 'm' || i)) FROM generate_series(1, 400) i \g /dev/null
SELECT is(kv_zremrangebyrank('k', 'merged', 10, 399), 390::bigint, 'a session removes blocks whose bounds it has found');
SELECT is(kv_zadd('k', 'merged', 350, 'late', 250, 'less'), 2::bigint, 'and adds to those that are left'), is(kv_zrank('k', 'merged', 'm10'), 9::bigint, 'which it counts');
RESET docpatterns.kv_block_size;

-- A field that is set only once, and keys with new names
SELECT is(kv_hsetnx('k', 'once', 'f', 1), true, 'HSETNX'), is(kv_hsetnx('k', 'once', 'f', 'two'), false, 'once'), is(kv_hsetnx('k', 'once', 'g', 'two'), true, 'of another field'); SELECT is(kv_hgetall('k', 'once')::text, '{"f": 1, "g": "two"}', 'with its type');
SELECT throws_ok($$SELECT kv_hsetnx('k', 'once', NULL, 1)$$, '22004', NULL, 'no field'), throws_ok($$SELECT kv_hsetnx('k', 'once', 'f', NULL)$$, '22004', NULL, 'no value'), throws_like($$SELECT kv_hsetnx('k', 'zr', 'f', 1)$$, 'WRONGTYPE%', 'of a sorted set');
SELECT is(kv_expire('k', 'once', 100), true, 'a hash that expires'), lives_ok($$SELECT kv_rename('k', 'once', 'zr')$$, 'takes the name of a sorted set'); SELECT is(kv_hgetall('k', 'zr')::text, '{"f": 1, "g": "two"}', 'with its fields'), is(kv_ttl('k', 'zr') BETWEEN 98 AND 100, true, 'and its time to live'), is(kv_exists('k', 'once'), 0::bigint, 'under one name'), is_empty($$SELECT * FROM k.scores WHERE key = 'zr'$$, 'of the other nothing is left');
SELECT is(kv_zadd('k', 'first', 2, 'b', 1, 'a'), 2::bigint, 'a sorted set'), is(kv_expire('k', 'once', 5), false, 'of the old name nothing'), lives_ok($$SELECT kv_rename('k', 'first', 'zr')$$, 'replaces the hash'); SELECT is(pg_temp.members('zr'), 'a=1 b=2', 'with its scores'), is(kv_zrank('k', 'zr', 'b'), 1::bigint, 'and ranks'), is(kv_ttl('k', 'zr'), -1::bigint, 'without the time of the hash'), pg_temp.true_everywhere('renamed keys');
SELECT is(kv_hset('k', 'large', 'f', repeat('x', 100000) || md5('1')), 1::bigint, 'a large value'), lives_ok($$SELECT kv_rename('k', 'large', 'large2'), kv_rename('k', 'large2', 'large2')$$, 'moves, also onto itself'); SELECT is(right(kv_hget('k', 'large2', 'f')::text, 32), md5('1'), 'whole'), is(kv_del('k', 'large2'), 1::bigint, 'as a key of its own');
SELECT throws_ok($$SELECT kv_rename('k', 'first', 'x')$$, 'P0002', 'key "first" of space "k" does not exist', 'no such key'), throws_ok($$SELECT kv_rename('k', NULL, 'x')$$, '22004', NULL, 'no key'), throws_ok($$SELECT kv_rename('k', 'first', NULL)$$, '22004', NULL, 'no name'), throws_ok($$SELECT kv_rename('k', 'first', 'first')$$, 'P0002', NULL, 'the same name');
SELECT is(kv_expire('k', 'zr', -1), true, 'what has expired'), throws_ok($$SELECT kv_rename('k', 'zr', 'x')$$, 'P0002', NULL, 'is not renamed');

-- Scanning: every key that stays, whatever happens to the others
SELECT is((SELECT sum(kv_sadd('k', 'scan:' || i, 1)) FROM generate_series(1, 100) i), 100::numeric, 'a hundred keys'), is(kv_expire('k', 'scan:50', -1), true, 'less one');
CREATE FUNCTION pg_temp.scan(pattern text, take int, during text) RETURNS SETOF text LANGUAGE plpgsql AS $$ DECLARE s record; c text := '0'; BEGIN
  LOOP s := kv_scan('k', c, pattern, take); RETURN QUERY SELECT unnest(s.keys); EXECUTE during; c := s.next_cursor; EXIT WHEN c = '0'; END LOOP; END $$;
SELECT is((SELECT count(DISTINCT k) || ' of ' || count(*) FROM pg_temp.scan('scan:*', take, 'SELECT') k), '99 of 99', 'each once, by ' || take) FROM unnest(ARRAY[1, 7, 10, 1000]) take;
SELECT is_empty($$SELECT 'scan:' || i FROM generate_series(1, 49) i EXCEPT SELECT pg_temp.scan('scan:*', 3, 'SELECT kv_del(''k'', ''scan:'' || (50 + random() * 50)::int), kv_sadd(''k'', ''scan:new'' || random(), 1), kv_purge(''k'')')$$, 'those that stay, while others come and go');
SELECT is((kv_scan('k', take => 5)).next_cursor, '>' || (SELECT max(key) FROM (SELECT key FROM k.keys ORDER BY key LIMIT 5) q), 'so many keys are read'), is((SELECT next_cursor || ' ' || keys::text FROM kv_scan('k', '>zzz')), '0 {}', 'the end'), is((kv_scan('k', pattern => 'no:*', take => 3)).keys, '{}', 'none matches');
SELECT throws_ok($$SELECT kv_scan('k', 'x')$$, '22023', 'invalid cursor: "x"', 'a cursor of its own'), throws_ok($$SELECT kv_scan('k', take => 0)$$, '22023', NULL, 'no keys'), throws_ok($$SELECT kv_scan('nowhere')$$, '3F000', NULL, 'no space');

-- Direct writes
SELECT throws_ok(c, '55000', NULL, c) FROM unnest(ARRAY['INSERT INTO k.keys VALUES (''x'', ''set'')', 'UPDATE k.hashes SET value = to_bson(1)', 'DELETE FROM k.sets', 'TRUNCATE k.scores', 'DELETE FROM k.counts']) c;

-- Hostile names and keys
SELECT is(kv_create('"o''x".%s'), '"o''x".%s', 'a hostile name'); SELECT is(kv_zadd('"o''x".%s', 'k''"%s\', 1, 'm''"'), 1::bigint, 'and key'), is(kv_hset('"o''x".%s', '', '', ''), 1::bigint, 'an empty key and field');
SELECT is(kv_hget('"o''x".%s', '', '')::text, '', 'are found'), is(array(SELECT kv_keys('"o''x".%s')), ARRAY['', 'k''"%s\'], 'and listed'), is(kv_purge('"o''x".%s'), 0::bigint, 'and cleaned'); SELECT pg_temp.true_everywhere('hostile names');
ALTER SCHEMA """o'x"".%s" RENAME TO renamed;
SELECT is(kv_zscore('renamed', 'k''"%s\', 'm''"')::text, '1', 'a space that was renamed'); SELECT throws_ok($$SELECT kv_exists('"o''x".%s', 'a')$$, '3F000', NULL, 'not by its old name');

-- Repair: what was done beneath the commands
SET docpatterns.kv_block_size = 100;
SELECT is((SELECT sum(kv_zadd('k', 'r', i % 50, i)) FROM generate_series(1, 700) i), 700::numeric, 'a board of several blocks');
SET docpatterns.maintain = off;
DELETE FROM k.scores WHERE key = 'r' AND score < to_bson(10); DELETE FROM k.keys WHERE key = 'in'; INSERT INTO k.sets VALUES ('h:*', to_bson(5)); DELETE FROM k.counts WHERE zset = (SELECT zset FROM k.keys WHERE key = 'u1');
RESET docpatterns.maintain;
SELECT is((SELECT string_agg(DISTINCT key::text || ' ' || what, ', ' ORDER BY key::text || ' ' || what) FROM pattern_check('k.keys')), 'in key, r members of a block of level 1, u1 blocks', 'is found'); RESET docpatterns.kv_block_size;
SELECT is(pattern_repair('k.keys'), 3::bigint, 'and repaired'); SELECT pg_temp.true_everywhere('repaired');
SELECT is(kv_type_of('k', 'in'), 'set', 'with its type'), is(kv_zcard('k', 'r'), 560::bigint, 'counted'), is(kv_zrank('k', 'u1', 'b'), 1::bigint, 'ranked');
SELECT throws_ok($$SELECT pattern_alter('k.keys', 'space', '{a: 1}')$$, '22023', NULL, 'there is nothing to alter');

-- Boards of tables
SELECT collection_create('players');
INSERT INTO players (doc) SELECT bson_build('_id', i, 'score', i % 10, 'nick', 'n' || i) FROM generate_series(1, 100) i;
SELECT is(kv_leaderboard('k', 'b', 'players', 'score'), 'b', 'a board'), is(kv_leaderboard('k', 'nicks', 'players', 'score', member_path => 'nick', name => 'by nick'), 'by nick', 'another one'); SELECT pg_temp.true_everywhere('made');
SELECT throws_ok($$SELECT kv_leaderboard('k', 'b', 'players', 'score')$$, '42710', NULL, 'the key is taken'), throws_ok($$SELECT kv_leaderboard('k', 'x', 'players', 'score', name => 'b')$$, '42710', NULL, 'the name is taken'), throws_ok($$SELECT kv_leaderboard('k', 'x', 'players', 'a..b')$$, '22023', NULL, 'a bad path'),
       throws_ok($$SELECT kv_leaderboard('k', 'x', 'players', NULL)$$, '22004', NULL, 'no path'), throws_ok($$SELECT kv_leaderboard('k', 'x', 'players', 'score', member_path => 'score')$$, '23505', NULL, 'members that are not unique');
SELECT throws_ok('SELECT ' || c, '55000', NULL, c) FROM unnest(ARRAY[$$kv_zadd('k', 'b', 1, 'x')$$, $$kv_zrem('k', 'b', 1)$$, $$kv_zpopmin('k', 'b')$$, $$kv_del('k', 'b')$$, $$kv_expire('k', 'b', 5)$$, $$kv_zremrangebyrank('k', 'b', 0, 0)$$, $$kv_rename('k', 'b', 'c')$$, $$kv_rename('k', 'u1', 'b')$$, $$kv_zunionstore('k', 'b', '{u1}')$$, $$kv_hset('k', 'b', 'a', 1)$$]) c;
INSERT INTO players (doc) VALUES ('{_id: 101, score: NaN, nick: "x"}'), ('{_id: 102, score: "9", nick: "y"}'), ('{_id: 103, nick: "z"}'), ('{_id: 104, score: NumberDecimal("1.50"), nick: "d"}');
SELECT is(kv_zcard('k', 'b'), 101::bigint, 'numbers only'); SELECT pg_temp.true_everywhere('inserted');
UPDATE players SET doc = bson_set(doc, 'score', _id::int * 3) WHERE _id > 50; UPDATE players SET doc = bson_unset(doc, 'score') WHERE _id < 5; UPDATE players SET doc = bson_set(doc, 'nick', 'new' || _id::text) WHERE _id < 20; UPDATE players SET doc = bson_set(doc, '_id', 1000) WHERE _id = 60; DELETE FROM players WHERE _id BETWEEN 70 AND 75;
INSERT INTO players (doc) VALUES ('{_id: 90, score: 5, nick: "up"}') ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT pg_temp.true_everywhere('updated'), is(kv_zscore('k', 'b', 1000)::text, '180', 'a new key');
SELECT throws_ok($$UPDATE players SET doc = bson_set(doc, 'nick', 'same') WHERE _id IN (30, 31)$$, '23505', NULL, 'a member that is taken');
SELECT is(pattern_disable('players', 'by nick'), (SELECT count(*) FROM k.scores WHERE key = 'b'), 'ended'); SELECT is(kv_exists('k', 'nicks'), 0::bigint, 'with its board'), is((SELECT string_agg(name, ' ') FROM pattern_list('players')), 'b', 'the other is left');
TRUNCATE players; SELECT is(kv_zcard('k', 'b'), 0::bigint, 'truncated'); INSERT INTO players (doc) VALUES ('{_id: 1, score: 5}'); SELECT is(kv_zrank('k', 'b', 1), 0::bigint, 'and filled again'); SELECT pg_temp.true_everywhere('truncated');
SET docpatterns.maintain = off; DELETE FROM k.scores WHERE key = 'b'; RESET docpatterns.maintain;
SELECT is((SELECT count(*) FROM pattern_check('players')), 1::bigint, 'what is missing is found'), is(pattern_repair('players', 'b'), 1::bigint, 'and repaired'); SELECT pg_temp.true_everywhere('repaired');
SELECT throws_ok($$SELECT pattern_disable('k.keys')$$, '2BP01', NULL, 'a space in which a table keeps a board'), throws_ok($$SELECT pattern_alter('players', 'b', '{key: 1}')$$, '22023', NULL, 'options stay');
DROP TABLE players CASCADE;
SELECT is(kv_zadd('k', 'b', 1, 'x'), 1::bigint, 'the board of a table that was dropped is anybody''s');
-- partitions
CREATE TABLE parted (id int PRIMARY KEY, doc bson) PARTITION BY RANGE (id); CREATE TABLE parted1 PARTITION OF parted FOR VALUES FROM (0) TO (100); CREATE TABLE parted2 PARTITION OF parted FOR VALUES FROM (100) TO (200);
SELECT is(kv_leaderboard('k', 'parted', 'parted', 'score'), 'parted', 'of a partitioned table'); INSERT INTO parted SELECT i, bson_build('score', i) FROM generate_series(1, 150) i; UPDATE parted SET id = id + 180 WHERE id < 20; DELETE FROM parted2 WHERE id > 140;
SELECT pg_temp.true_everywhere('partitions'), is(kv_zcard('k', 'parted'), (SELECT count(*) FROM parted), 'all are on it');
TRUNCATE parted2; SELECT pg_temp.true_everywhere('a partition is truncated'); INSERT INTO parted1 VALUES (99, '{score: 1}') ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc; SELECT pg_temp.true_everywhere('a partition is written to');
ALTER TABLE parted DETACH PARTITION parted1; SELECT pg_temp.true_everywhere('a partition goes'); UPDATE parted1 SET doc = bson_set(doc, 'score', 3); SELECT is(kv_zcard('k', 'parted'), 0::bigint, 'with its documents');
ALTER TABLE parted ATTACH PARTITION parted1 FOR VALUES FROM (0) TO (100); SELECT pg_temp.true_everywhere('and comes back'); UPDATE parted1 SET doc = bson_set(doc, 'score', id); DELETE FROM parted WHERE id = 50; SELECT pg_temp.true_everywhere('and is followed');
-- a space that gets another name
ALTER SCHEMA k RENAME TO "k' %s"; UPDATE parted SET doc = bson_set(doc, 'score', 7) WHERE id < 50; INSERT INTO parted2 VALUES (120, '{score: 1}');
SELECT is(kv_zcard('k'' %s', 'parted'), (SELECT count(*) FROM parted), 'boards follow their space'), pg_temp.true_everywhere('renamed'); ALTER SCHEMA "k' %s" RENAME TO k;

-- a board goes with its space, and the table goes on
CREATE TABLE alone (id int PRIMARY KEY, doc bson); SELECT is(kv_create('gone'), 'gone', 'another space'), is(kv_leaderboard('gone', 'a', 'alone', 'score'), 'a', 'a board of it');
SELECT throws_ok('DROP TABLE gone.keys', '2BP01', NULL, 'the board needs it'); DROP SCHEMA gone CASCADE; INSERT INTO alone VALUES (1, '{score: 1}');
SELECT is((SELECT count(*) FROM pattern_list('alone')), 0::bigint, 'it is gone with its space'), is((SELECT count(*) FROM pg_trigger WHERE tgrelid = 'alone'::regclass), 0::bigint, 'with all triggers'); DROP TABLE alone;

-- Rights
CREATE ROLE dp_kv_reader; CREATE ROLE dp_kv_player;
SET ROLE dp_kv_reader; SELECT throws_ok($$SELECT kv_exists('k', 'u1')$$, '42501', NULL, 'no right of the schema'); RESET ROLE;
GRANT USAGE ON SCHEMA k TO dp_kv_reader, dp_kv_player; GRANT SELECT ON k.scores TO dp_kv_reader, dp_kv_player; GRANT INSERT, UPDATE ON k.scores TO dp_kv_player;
SET ROLE dp_kv_reader; SELECT is(kv_zrank('k', 'u1', 'b'), 1::bigint, 'who may read scores may ask for ranks'), throws_ok($$SELECT kv_zadd('k', 'u1', 1, 'x')$$, '42501', NULL, 'not write'), throws_ok($$SELECT kv_hget('k', 'u1', 'x')$$, '42501', NULL, 'nor read hashes'), throws_ok($$SELECT kv_scan('k')$$, '42501', NULL, 'nor keys'); RESET ROLE;
SET ROLE dp_kv_player; SELECT is(kv_zadd('k', 'u1', 1, 'x'), 1::bigint, 'who may write scores may add'), is(kv_zadd('k', 'u9', 1, 'x'), 1::bigint, 'and make a key'), throws_ok($$SELECT kv_zrem('k', 'u1', 'x')$$, '42501', NULL, 'not remove'), throws_ok($$SELECT kv_del('k', 'u1')$$, '42501', NULL, 'nor delete keys'), throws_ok($$SELECT kv_rename('k', 'u1', 'x')$$, '42501', NULL, 'nor rename them'), throws_ok($$SELECT kv_zremrangebyrank('k', 'u1', 0, 0)$$, '42501', NULL, 'nor remove ranges'), throws_ok($$SELECT kv_create('other')$$, '42501', NULL, 'nor make a space'), throws_ok($$SELECT kv_leaderboard('k', 'mine', 'parted', 'score')$$, '42501', NULL, 'nor keep a board of another''s table'); RESET ROLE;
CREATE POLICY p ON k.scores USING (true); ALTER TABLE k.scores ENABLE ROW LEVEL SECURITY;
SET ROLE dp_kv_player; SELECT throws_ok($$SELECT kv_zrank('k', 'u1', 'b')$$, '0A000', NULL, 'row-level security is not looked through'); RESET ROLE; ALTER TABLE k.scores DISABLE ROW LEVEL SECURITY;
GRANT INSERT, UPDATE ON parted TO dp_kv_reader; GRANT SELECT ON parted TO dp_kv_reader; SET ROLE dp_kv_reader; INSERT INTO parted VALUES (77, '{score: 1}') ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc; RESET ROLE; SELECT pg_temp.true_everywhere('by a writer of the table only');
BEGIN READ ONLY; SELECT throws_ok($$SELECT kv_zadd('k', 'u1', 1, 'x')$$, '25006', NULL, 'a transaction that only reads'); ROLLBACK;
SELECT ok(pattern_disable('mine.keys') > 0, 'a space can be ended'); SELECT is((SELECT count(*) FROM mine.sets), 1::bigint, 'its tables are left'), throws_ok($$SELECT kv_exists('mine', 'a')$$, '42809', NULL, 'it is none any more'), lives_ok($$DELETE FROM mine.sets$$, 'and they are ordinary ones');
DROP TABLE parted CASCADE; DROP SCHEMA k, mine, fake, renamed CASCADE; DROP ROLE dp_kv_reader, dp_kv_player;
SELECT pg_temp.true_everywhere('afterwards');
-- Scores that no double comes near, of which not all digits are repeated
SELECT kv_create('far') \g /dev/null
CREATE TABLE far_scores (id int PRIMARY KEY, doc bson);
SELECT kv_leaderboard('far', 'board', 'far_scores', 's') \g /dev/null
SELECT throws_ok(c, '22003', 'score is out of range for a double', c) FROM (VALUES ($$SELECT kv_zadd('far', 'z', '1e400', 'a')$$), ($$SELECT kv_zadd('far', 'z', 1e-400, 'a')$$),
  ($$INSERT INTO far_scores VALUES (1, '{s: {"$numberDecimal": "9E6144"}}')$$), ($$INSERT INTO far_scores VALUES (1, '{s: {"$numberDecimal": "-1E-6176"}}')$$)) AS v (c);
DROP TABLE far_scores; DROP SCHEMA far CASCADE;
-- members that are none or too many
SELECT kv_create('refusing') \g /dev/null
SELECT kv_sadd('refusing', 's', 'a') \g /dev/null
SELECT throws_ok($$SELECT kv_sadd('refusing', 's', VARIADIC NULL::int[])$$, '22004', 'members must not be null', 'no array of members');
SELECT throws_ok($$SELECT kv_zincrby('refusing', 'z', 1, 'a', 2, 'b')$$, '22023', 'only one member can be incremented at a time', 'two members to increment');
SELECT throws_ok($$SELECT kv_srandmember('refusing', 's', -9000000000)$$, '54000', 'too many members are asked for', 'members by the billion');

SELECT * FROM finish();
