-- The order of values and documents, equality and hashing, and the operators beside SQL values.
BEGIN;
SELECT plan(213);
SET client_min_messages = warning;
SET timezone = 'UTC';

-- One of each class, in order
CREATE TEMP TABLE ladder (rank int, v bson_value);
INSERT INTO ladder VALUES
  (1, '{"$minKey": 1}'),
  (2, '{"$undefined": true}'),
  (3, 'null'),
  (4, '{"$numberDouble": "NaN"}'), (5, '{"$numberDouble": "-Infinity"}'), (6, '-1.5'), (7, '0'), (8, '{"$numberLong": "5"}'), (9, '{"$numberDouble": "Infinity"}'),
  (10, '""'), (11, '"\u0000"'), (12, '"A"'), (13, '"a"'), (14, '"a\u0000"'), (15, '"a\u0000b"'), (16, '{"$symbol": "aa"}'), (17, '"é"'), (18, '"😀"'),
  (19, '{}'), (20, '{"z": null}'), (21, '{"b": 1}'), (22, '{"b": 1, "a": 0}'), (23, '{"b": 2}'), (24, '{"c": 0}'), (25, '{"a": "x"}'), (26, '{"a": {}}'), (27, '{"a": []}'),
  (28, '[]'), (29, '[null]'), (30, '[1]'), (31, '[1, 1]'), (32, '[2]'), (33, '["a"]'), (34, '[[]]'), (35, '[[1]]'),
  (36, '{"$binary": {"base64": "", "subType": "00"}}'), (37, '{"$binary": {"base64": "", "subType": "80"}}'),
  (38, '{"$binary": {"base64": "/w==", "subType": "00"}}'), (39, '{"$binary": {"base64": "AA==", "subType": "05"}}'),
  (40, '{"$binary": {"base64": "AAA=", "subType": "00"}}'),
  (41, '{"$oid": "000000000000000000000000"}'), (42, '{"$oid": "00000000000000000000ff00"}'), (43, '{"$oid": "ff0000000000000000000000"}'),
  (44, 'false'), (45, 'true'),
  (46, '{"$date": {"$numberLong": "-9223372036854775808"}}'), (47, '{"$date": {"$numberLong": "-1"}}'), (48, '{"$date": {"$numberLong": "0"}}'),
  (49, '{"$date": {"$numberLong": "9223372036854775807"}}'),
  (50, '{"$timestamp": {"t": 1, "i": 0}}'), (51, '{"$timestamp": {"t": 1, "i": 4294967295}}'), (52, '{"$timestamp": {"t": 4294967295, "i": 1}}'),
  (53, '{"$regularExpression": {"pattern": "a", "options": ""}}'), (54, '{"$regularExpression": {"pattern": "a", "options": "i"}}'), (55, '{"$regularExpression": {"pattern": "aa", "options": ""}}'),
  (56, '{"$dbPointer": {"$ref": "b", "$id": {"$oid": "000000000000000000000001"}}}'), (57, '{"$dbPointer": {"$ref": "aa", "$id": {"$oid": "000000000000000000000000"}}}'),
  (58, '{"$code": "a"}'), (59, '{"$code": "aa"}'),
  (60, '{"$code": "a", "$scope": {}}'), (61, '{"$code": "a", "$scope": {"x": 1}}'), (62, '{"$code": "b", "$scope": {}}'),
  (63, '{"$maxKey": 1}');
SELECT is(count(*)::int, 0, 'the classes and their values stand in MongoDB''s order')
FROM ladder a, ladder b WHERE sign(bson_value_cmp(a.v, b.v)) <> sign(a.rank - b.rank);
SELECT is((SELECT array_agg(rank ORDER BY v) FROM ladder), (SELECT array_agg(rank ORDER BY rank) FROM ladder), 'ORDER BY sorts so');
SELECT is((SELECT array_agg(rank ORDER BY v DESC) FROM ladder), (SELECT array_agg(rank ORDER BY rank DESC) FROM ladder), 'and DESC the other way round');

-- The six operators say what the comparison says, for values and for documents
SELECT is(count(*)::int, 0, 'operators of bson_value agree with bson_value_cmp')
FROM ladder a, ladder b, LATERAL (SELECT bson_value_cmp(a.v, b.v) AS c) x
WHERE (a.v < b.v) <> (c < 0) OR (a.v <= b.v) <> (c <= 0) OR (a.v = b.v) <> (c = 0) OR (a.v <> b.v) <> (c <> 0) OR (a.v >= b.v) <> (c >= 0) OR (a.v > b.v) <> (c > 0);
SELECT is(count(*)::int, 0, 'operators of bson agree with bson_cmp, and documents with their only value')
FROM ladder a, ladder b, LATERAL (SELECT bson_build('f', a.v) AS x, bson_build('f', b.v) AS y) d, LATERAL (SELECT bson_cmp(x, y) AS c) e
WHERE (x < y) <> (c < 0) OR (x <= y) <> (c <= 0) OR (x = y) <> (c = 0) OR (x <> y) <> (c <> 0) OR (x >= y) <> (c >= 0) OR (x > y) <> (c > 0)
   OR sign(c) <> sign(a.rank - b.rank);
SELECT is(count(*)::int, 0, 'arrays are ordered by their values')
FROM ladder a, ladder b WHERE sign(bson_value_cmp(bson_array(1, a.v), bson_array(1, b.v))) <> sign(a.rank - b.rank);

-- Equality
SELECT ok('"a"'::bson_value = '{"$symbol": "a"}'::bson_value AND bson_value_hash('"a"') = bson_value_hash('{"$symbol": "a"}'), 'a symbol equals the string, and hashes so');
SELECT ok('"1"'::bson_value <> '1'::bson_value AND 'true'::bson_value <> '1'::bson_value AND 'null'::bson_value <> '0'::bson_value, 'classes never mix; bool is no number');
SELECT ok('{"$undefined": true}'::bson_value < 'null'::bson_value, 'undefined is less than null');
SELECT ok('{"a": 1, "b": [2, {"c": 3}]}'::bson = '{"a": 1.0, "b": [{"$numberLong": "2"}, {"c": {"$numberDecimal": "3.0"}}]}'::bson, 'documents are equal when their numbers are');
SELECT is(bson_hash('{"a": 1, "b": [2, {"c": 3}]}'), bson_hash('{"a": 1.0, "b": [{"$numberLong": "2"}, {"c": {"$numberDecimal": "3.0"}}]}'), 'and hash the same');
SELECT ok('{"a": 1, "b": 2}'::bson <> '{"b": 2, "a": 1}'::bson, 'the order of fields counts');
SELECT ok('{"a": 1, "a": 2}'::bson > '{"a": 1, "a": 1}'::bson, 'duplicate names are compared one by one');
SELECT ok('{"a": "b"}'::bson > '{"b": 1}'::bson, 'the type counts before the name');
SELECT ok('{"a": {"$code": "f", "$scope": {"x": 1}}}'::bson = '{"a": {"$code": "f", "$scope": {"x": 1.0}}}'::bson
          AND bson_hash('{"a": {"$code": "f", "$scope": {"x": 1}}}') = bson_hash('{"a": {"$code": "f", "$scope": {"x": 1.0}}}'), 'scopes too');

-- Frozen hashes: these numbers may never change, tables are partitioned by them.
SELECT is(bson_value_hash_extended(v, seed), hash, 'the hash of ' || docpatterns.bson_value_out(v)::text || ' with seed ' || seed)
FROM (VALUES
  ('null'::bson_value, 0, -6566953864026435689), ('1', 0, -2549644237714478183), ('1', 8, 8597076356805875507), ('0.1', 0, -8468427231639126354), ('{"$numberDecimal": "0.1"}', 0, 1468414760940184131), ('"shipped"', 0, 6870015786475352904), ('true', 0, -6859981765580954056),
  ('{"$date": {"$numberLong": "0"}}', 0, -3866493161247191936), ('{"$oid": "5f0000000000000000000001"}', 0, -6433344935042907049), ('{"a": [1, "b"], "c": {}}', 0, -2546044147669703589), ('[1, 2]', 0, 7970057294080717583),
  ('{"$binary": {"base64": "AQID", "subType": "00"}}', 0, -5195107808943201554), ('{"$minKey": 1}', 0, -3670598878359251130), ('{"$timestamp": {"t": 1, "i": 2}}', 0, 3125595258849278797),
  ('{"$regularExpression": {"pattern": "a", "options": "i"}}', 0, -7324265530971578514), ('{"$code": "a"}', 0, 4047158739126414189), ('{"$code": "a", "$scope": {"x": 1}}', 0, 899336520690717855)
) frozen(v, seed, hash);

-- Laws of an order and of hashing, on random values and documents
\echo # seed 0.5
SELECT setseed(0.5);
CREATE FUNCTION pg_temp.parse(t text) RETURNS bson_value LANGUAGE sql AS $$ SELECT bson_value_in(t::cstring) $$;
CREATE FUNCTION pg_temp.any(depth int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  scalars constant text[] := ARRAY['null', 'true', 'false', '0', '-0.0', '1', '1.0', '{"$numberLong": "1"}', '{"$numberDecimal": "1.0"}', '2.5',
    '{"$numberDecimal": "2.5"}', '{"$numberDecimal": "0.1"}', '0.1', '{"$numberDouble": "NaN"}', '"a"', '"b"', '"ab"', '{"$symbol": "a"}', '{"$undefined": true}',
    '{"$minKey": 1}', '{"$maxKey": 1}', '{"$oid": "5f0000000000000000000001"}', '{"$date": {"$numberLong": "5"}}', '{"$timestamp": {"t": 5, "i": 1}}',
    '{"$binary": {"base64": "AQID", "subType": "00"}}', '{"$regularExpression": {"pattern": "a", "options": ""}}', '{"$code": "a"}', '{"$code": "a", "$scope": {"x": 1}}'];
  kind float8 := random();
  result text := '';
BEGIN
  IF depth = 0 OR kind < 0.4 THEN
    RETURN scalars[1 + trunc(random() * cardinality(scalars))];
  END IF;
  FOR i IN 1 .. trunc(random() * 4) LOOP
    result := result || CASE WHEN i > 1 THEN ', ' ELSE '' END
      || CASE WHEN kind < 0.7 THEN '' ELSE format('"%s": ', chr(97 + trunc(random() * 3)::int)) END || pg_temp.any(depth - 1);
  END LOOP;
  RETURN CASE WHEN kind < 0.7 THEN '[' || result || ']' ELSE '{' || result || '}' END;
END $$;
CREATE TEMP TABLE sample AS SELECT pg_temp.parse(pg_temp.any(3)) AS v FROM generate_series(1, 800);
INSERT INTO sample SELECT v FROM ladder;
CREATE TEMP TABLE ranked AS SELECT v, dense_rank() OVER (ORDER BY v) AS r FROM sample;
SELECT cmp_ok((SELECT max(r) FROM ranked), '>', 250::bigint, 'there are many different values');
SELECT is(count(*)::int, 0, 'antisymmetry') FROM sample a, sample b WHERE sign(bson_value_cmp(a.v, b.v)) <> -sign(bson_value_cmp(b.v, a.v));
SELECT is(count(*)::int, 0, 'every pair compares as its places in one sorted list, so the order is transitive')
FROM ranked a, ranked b WHERE sign(bson_value_cmp(a.v, b.v)) <> sign(a.r - b.r);
SELECT is(count(*)::int, 0, 'equal values have equal hashes')
FROM (SELECT r FROM ranked GROUP BY r HAVING count(DISTINCT bson_value_hash(v)) > 1 OR count(DISTINCT bson_value_hash_extended(v, 99)) > 1) x;
SELECT is((SELECT count(DISTINCT bson_value_hash_extended(v, 1)) FROM sample), (SELECT max(r) FROM ranked), 'different values have different hashes of 64 bits');
SELECT is(count(*)::int, 0, 'the short hash is the lower half of the long one for seed 0')
FROM sample WHERE bson_value_hash(v) <> (bson_value_hash_extended(v, 0) << 32 >> 32)::int;
SELECT is(count(*)::int, 0, 'documents and their values agree, in order and hash')
FROM (SELECT v, v::bson AS d FROM sample WHERE bson_typeof(v) = 'object') a, (SELECT v, v::bson AS d FROM sample WHERE bson_typeof(v) = 'object') b
WHERE sign(bson_cmp(a.d, b.d)) <> sign(bson_value_cmp(a.v, b.v)) OR bson_hash(a.d) <> bson_value_hash(a.v) OR bson_hash_extended(a.d, 5) <> bson_value_hash_extended(a.v, 5);

-- DISTINCT, GROUP BY, joins and indexes all see the same equality
CREATE TEMP TABLE t AS SELECT v, bson_build('f', v) AS d FROM sample;
ANALYZE t;
SET enable_hashagg = off;
SELECT is((SELECT count(*) FROM (SELECT DISTINCT v FROM t) x), (SELECT max(r) FROM ranked), 'DISTINCT by sorting');
SELECT is((SELECT count(*) FROM (SELECT d FROM t GROUP BY d) x), (SELECT max(r) FROM ranked), 'GROUP BY document by sorting');
RESET enable_hashagg;
SET enable_sort = off;
SELECT is((SELECT count(*) FROM (SELECT DISTINCT v FROM t) x), (SELECT max(r) FROM ranked), 'DISTINCT by hashing');
SELECT is((SELECT count(*) FROM (SELECT d FROM t GROUP BY d) x), (SELECT max(r) FROM ranked), 'GROUP BY document by hashing');
RESET enable_sort;
CREATE FUNCTION pg_temp.plan_has(query text, what text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
    IF line ~ what THEN RETURN true; END IF;
  END LOOP;
  RETURN false;
END $$;
CREATE TEMP TABLE pairs AS SELECT count(*) AS n FROM ranked a JOIN ranked b ON a.r = b.r;
SET enable_nestloop = off; SET enable_mergejoin = off;
SELECT ok(pg_temp.plan_has('SELECT count(*) FROM t a JOIN t b ON a.v = b.v', 'Hash Join'), 'values are joined by hashing');
SELECT is((SELECT count(*) FROM t a JOIN t b ON a.v = b.v), (SELECT n FROM pairs), 'with the right result');
SELECT is((SELECT count(*) FROM t a JOIN t b ON a.d = b.d), (SELECT n FROM pairs), 'documents too');
SET enable_hashjoin = off; SET enable_mergejoin = on;
SELECT ok(pg_temp.plan_has('SELECT count(*) FROM t a JOIN t b ON a.v = b.v', 'Merge Join'), 'values are joined by merging');
SELECT is((SELECT count(*) FROM t a JOIN t b ON a.v = b.v), (SELECT n FROM pairs), 'with the right result');
SELECT is((SELECT count(*) FROM t a JOIN t b ON a.d = b.d), (SELECT n FROM pairs), 'documents too');
RESET enable_hashjoin; RESET enable_nestloop;
CREATE INDEX t_v ON t (v);
CREATE INDEX t_h ON t USING hash (v);
CREATE INDEX t_d ON t (d);
SET enable_seqscan = off; SET enable_sort = off;
SELECT ok(pg_temp.plan_has('SELECT v FROM t ORDER BY v', 'Index Only Scan using t_v'), 'an index gives the order');
SELECT is((SELECT array_agg(r ORDER BY n) FROM (SELECT dense_rank() OVER (ORDER BY v) AS r, row_number() OVER (ORDER BY v) AS n FROM t) x),
          (SELECT array_agg(r ORDER BY r) FROM ranked), 'the order of the index is the order of comparison');
SELECT is((SELECT count(*) FROM ladder l JOIN LATERAL (SELECT 1 FROM t WHERE t.v = l.v) x ON true), (SELECT count(*) FROM ladder l JOIN ranked ON ranked.v = l.v), 'equality through the index');
DROP INDEX t_v;
SELECT ok(pg_temp.plan_has('SELECT count(*) FROM t WHERE v = ''1''', 't_h'), 'a hash index serves equality');
SELECT is((SELECT count(*) FROM t WHERE v = '1'), (SELECT count(*) FROM ranked WHERE bson_value_cmp(v, '{"$numberDecimal": "1.00"}') = 0), 'and finds equal numbers of every type');
RESET enable_seqscan; RESET enable_sort;
CREATE TEMP TABLE u (d bson UNIQUE);
INSERT INTO u VALUES ('{"a": 1}');
SELECT throws_ok($$INSERT INTO u VALUES ('{"a": 1.0}')$$, '23505', NULL, 'UNIQUE on documents refuses an equal one');
SELECT lives_ok($$INSERT INTO u VALUES ('{"a": 1.5}')$$, 'and takes another');
CREATE UNIQUE INDEX ON u ((d -> 'a'));
SELECT throws_ok($$INSERT INTO u VALUES ('{"b": 0, "a": {"$numberDecimal": "1.50"}}')$$, '23505', NULL, 'a unique index on a field refuses an equal number of another type');
SELECT lives_ok($$INSERT INTO u VALUES ('{"a": "1.5"}'), ('{"b": 1}'), ('{"b": 2}')$$, 'and takes another value, and absent fields');
CREATE TEMP TABLE p (d bson, part bson_value) PARTITION BY HASH (part);
CREATE TEMP TABLE p0 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TEMP TABLE p1 PARTITION OF p FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO p SELECT d, v FROM t;
SELECT is((SELECT count(*) FROM p a JOIN p b USING (part)), (SELECT n FROM pairs), 'hash partitioning by a value');
SELECT ok((SELECT count(*) FROM p0) > 0 AND (SELECT count(*) FROM p1) > 0, 'both partitions have rows');

-- Beside SQL values: each type in both directions, against the cast value
CREATE TEMP TABLE sql_values (type text, literal text);
INSERT INTO sql_values
SELECT type, unnest(literals) FROM (VALUES
  ('int2', ARRAY['0', '-32768', '5']), ('int4', ARRAY['0', '5', '2147483647']), ('int8', ARRAY['5', '9007199254740993', '-9223372036854775808']),
  ('float4', ARRAY['0.5', 'NaN', '-Infinity', '0.1']), ('float8', ARRAY['0.1', 'NaN', 'Infinity', '-0.0', '5']), ('numeric', ARRAY['0.1', '5.00', 'NaN', '-Infinity', '1e400', '-0.5']),
  ('text', ARRAY['', 'a', 'ab', 'é']), ('bool', ARRAY['true', 'false']), ('date', ARRAY['1970-01-01', '1969-12-31', '2000-02-29']),
  ('timestamptz', ARRAY['1970-01-01 00:00:00.005+00', '1969-12-31 23:59:59.999+00', '2262-01-01 00:00+00']),
  ('timestamp', ARRAY['1970-01-01 00:00:00.005', '1969-12-31 23:59:59.999', '2262-01-01 00:00']),
  ('uuid', ARRAY['00000000-0000-0000-0000-000000000000', '550e8400-e29b-41d4-a716-446655440000']), ('objectid', ARRAY['5f0000000000000000000001'])
) x(type, literals);
-- once as a constant, which the planner turns into a bson_value, and once not
CREATE FUNCTION pg_temp.disagree(type text, literal text, hidden text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE result bigint;
BEGIN
  EXECUTE format('SELECT count(*) FROM sample, (SELECT %1$L::%2$I AS s, %1$L::%2$I::bson_value AS b %3$s) x, LATERAL (SELECT bson_value_cmp(v, b) AS c) y
    WHERE (v < s) <> (c < 0) OR (v <= s) <> (c <= 0) OR (v = s) <> (c = 0) OR (v <> s) <> (c <> 0) OR (v >= s) <> (c >= 0) OR (v > s) <> (c > 0)
       OR (s < v) <> (c > 0) OR (s <= v) <> (c >= 0) OR (s = v) <> (c = 0) OR (s <> v) <> (c <> 0) OR (s >= v) <> (c <= 0) OR (s > v) <> (c < 0)
       OR (docpatterns.%4$I(s) <> bson_value_hash(b)) OR docpatterns.%5$I(s, 3) <> bson_value_hash_extended(b, 3)
       OR NOT (b = s AND s = b)', literal, type, hidden, CASE type WHEN 'bool' THEN 'boolean' ELSE type END || '_bson_hash', CASE type WHEN 'bool' THEN 'boolean' ELSE type END || '_bson_hash_extended') INTO result;
  RETURN result;
END $$;
SELECT is(pg_temp.disagree(type, literal, 'OFFSET 0'), 0::bigint, format('%s %L compares and hashes as its bson_value', type, literal)) FROM sql_values;
SELECT is(pg_temp.disagree(type, literal, ''), 0::bigint, format('%s %L also as a constant', type, literal)) FROM sql_values;

SELECT ok('{"$date": {"$numberLong": "5"}}'::bson_value < '1970-01-01 00:00:00.005001+00'::timestamptz
          AND '{"$date": {"$numberLong": "6"}}'::bson_value > '1970-01-01 00:00:00.005999+00'::timestamptz
          AND '{"$date": {"$numberLong": "-6"}}'::bson_value < '1969-12-31 23:59:59.994001+00'::timestamptz
          AND '{"$date": {"$numberLong": "-5"}}'::bson_value > '1969-12-31 23:59:59.994001+00'::timestamptz, 'microseconds count beside a date');
SELECT ok('{"$date": {"$numberLong": "9223372036854775807"}}'::bson_value < 'infinity'::timestamptz
          AND '{"$date": {"$numberLong": "-9223372036854775808"}}'::bson_value > '-infinity'::date
          AND '{"$timestamp": {"t": 0, "i": 0}}'::bson_value > 'infinity'::timestamptz, 'infinite times stay within their class');

-- A time without a zone is UTC in both directions, whatever the setting.
SET LOCAL timezone = 'Asia/Kolkata';
CREATE TEMP TABLE stored AS SELECT to_bson(t) AS v, t FROM (VALUES (timestamp '2024-05-01 12:00'), (timestamp '2024-05-01 12:00:00.001')) x (t);
SELECT is((SELECT v FROM stored WHERE v = timestamp '2024-05-01 12:00'), '{"$date": "2024-05-01T12:00:00Z"}', 'is found as it was stored');
SELECT ok((SELECT bool_and(v::timestamp = t AND v::date = '2024-05-01' AND v = t AND v >= date '2024-05-01' AND v < timestamp 'infinity') FROM stored), 'and read so');
SELECT is((SELECT count(*) FROM stored a JOIN stored b ON a.v = b.t), 2::bigint, 'joined so');
SELECT ok('{"$date": "2024-05-01T12:00:00Z"}'::bson_value < timestamp '2024-05-01 12:00:00.000001', 'with its microseconds');
RESET timezone;

-- Arrays of each type, and several conditions of different types on one column, through an index and without
CREATE TEMP TABLE indexed AS SELECT v FROM sample;
CREATE INDEX indexed_v ON indexed (v);
CREATE FUNCTION pg_temp.both_ways(type text, literals text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  condition text := format('v = ANY (%L::%I[])', literals, type);
  expected bigint;
  found bigint;
BEGIN
  SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_indexscan = on; SET LOCAL enable_indexonlyscan = on;
  IF NOT pg_temp.plan_has('SELECT count(*) FROM indexed WHERE ' || condition, 'Index Cond: .*ANY') THEN RETURN 'not by index'; END IF;
  EXECUTE 'SELECT count(*) FROM indexed WHERE ' || condition INTO found;
  SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off;
  EXECUTE 'SELECT count(*) FROM indexed WHERE ' || condition INTO expected;
  RETURN CASE WHEN found = expected THEN 'same' ELSE format('%s, not %s', found, expected) END;
END $$;
SELECT is(pg_temp.both_ways(type, array_agg(literal ORDER BY literal DESC)), 'same', 'an array of ' || type || ' through an index') FROM sql_values GROUP BY type ORDER BY type;
SET plan_cache_mode = force_generic_plan;
PREPARE mixed(int[], int8, numeric, float8, int4, text) AS
  SELECT count(*) FROM indexed WHERE v = ANY ($1) AND v > $2 AND v <= $3 AND v < $4 AND v >= $5 AND v < $6;
PREPARE mixed_range(int8, numeric, float8, int4, text) AS
  SELECT count(*) FROM indexed WHERE v > $1 AND v <= $2 AND v < $3 AND v >= $4 AND v < $5;
CREATE TEMP TABLE answers AS
SELECT (SELECT count(*) FROM sample WHERE v = '1') AS one, (SELECT count(*) FROM sample WHERE v > '0' AND v <= '2.5') AS some_numbers;
SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexscan = on; SET enable_indexonlyscan = on;
SELECT ok(pg_temp.plan_has('EXECUTE mixed(''{1,5,7}'', 0, 2.5, 100, 1, ''x'')', 'Index Cond'), 'conditions of several types use the index together');
CREATE TEMP TABLE found AS EXECUTE mixed('{1,5,7,1}', 0, 2.5, 100, 1, 'x');
SELECT is((SELECT count FROM found), (SELECT one FROM answers), 'and find what they should');
CREATE TEMP TABLE found_range AS EXECUTE mixed_range(0, 2.5, 100, -5, 'x');
SELECT is((SELECT count FROM found_range), (SELECT some_numbers FROM answers), 'ranges too');
SELECT cmp_ok((SELECT one FROM answers), '>', 10::bigint, 'which is something');
RESET plan_cache_mode; RESET enable_seqscan; RESET enable_bitmapscan; RESET enable_indexscan; RESET enable_indexonlyscan;

-- What the planner makes of constants
CREATE FUNCTION pg_temp.planned(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT 1 FROM (SELECT v FROM t OFFSET 0) x WHERE ' || condition LOOP
    IF line ~ 'Filter:' THEN RETURN btrim(replace(line, 'Filter:', '')); END IF;
  END LOOP;
END $$;
SET datestyle = 'ISO';
SELECT is(pg_temp.planned(condition), plan, condition || ' is planned as ' || plan)
FROM (VALUES ('v > 5', '(x.v > ''5''::bson_value)'), ('7::int8 <> v', '(''{"$numberLong": "7"}''::bson_value <> x.v)'), ('v <= 0.10', '(x.v <= ''{"$numberDecimal": "0.10"}''::bson_value)'),
  ('v = ''a''::text', '(x.v = ''"a"''::bson_value)'), ('v >= date ''2020-01-01''', '(x.v >= ''{"$date": "2020-01-01T00:00:00Z"}''::bson_value)'),
  ('v < ''2020-01-01 00:00:00.0001+00''::timestamptz', '(x.v < ''2020-01-01 00:00:00.0001+00''::timestamp with time zone)'),
  ('v < ''infinity''::date', '(x.v < ''infinity''::date)')) x(condition, plan);
SELECT alike(pg_temp.planned('v < 1e7000'), '%::numeric)', 'a numeric that is no decimal128 stays');

-- Nothing else changes
SELECT throws_ok($$SELECT 1 = 'a'::text$$, '42883', NULL, '1 = ''a''::text is still an error');
SELECT throws_ok($$SELECT 1 < true$$, '42883', NULL, 'so is 1 < true');
SELECT throws_ok($$SELECT now() = 1$$, '42883', NULL, 'so is now() = 1');
CREATE FUNCTION pg_temp.operator_of(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
  EXECUTE 'CREATE TEMP VIEW resolved AS SELECT ' || condition || ' AS x FROM (SELECT 1::int2 AS i2, 1::int4 AS i4, 1::int8 AS i8, 1::numeric AS n, 1::float8 AS f8, ''a''::text AS t,
    ''a''::varchar AS vc, ''a''::char(3) AS c, ''a''::name AS nm, now() AS tz, current_date AS d, localtimestamp AS ts, true AS b, ''5''::bson_value AS v OFFSET 0) s';
  SELECT string_agg(o.oid::regoperator::text, ' ' ORDER BY o.oid) INTO line
  FROM pg_depend p JOIN pg_rewrite r ON r.oid = p.objid AND p.classid = 'pg_rewrite'::regclass JOIN pg_operator o ON o.oid = p.refobjid AND p.refclassid = 'pg_operator'::regclass
  WHERE r.ev_class = 'resolved'::regclass;
  -- operators of the system itself are pinned and leave no dependency
  DROP VIEW resolved;
  RETURN coalesce(line, 'built in');
END $$;
SELECT is(pg_temp.operator_of(condition), 'built in', condition || ' means what it did')
FROM unnest(ARRAY['i4 = i8', 'i2 < i4', 'i8 = n', 'f8 > i4', 't = t', 'vc = ''x''', 't < ''x''', 'c = ''x''', 'nm = ''x''', 'vc = t', 'tz > ''2000-01-01''', 'd < tz', 'ts < tz', 'b = ''t''', 'i4 = ''5''', 'n > ''5.5''', '''a'' = ''b''']) condition;
SELECT is(pg_temp.operator_of(condition), operator, condition || ' resolves to ' || operator)
FROM (VALUES ('v = ''"x"''', '=(bson_value,bson_value)'), ('''1'' < v', '<(bson_value,bson_value)'), ('v > 5', '>(bson_value,integer)'), ('v > i2', '>(bson_value,smallint)'),
             ('i8 <= v', '<=(bigint,bson_value)'), ('v <> 5.5', '<>(bson_value,numeric)'), ('v = t', '=(bson_value,text)'), ('v = vc', '=(bson_value,text)'),
             ('v < tz', '<(bson_value,timestamp with time zone)'), ('v < d', '<(bson_value,date)'), ('v = b', '=(bson_value,boolean)')) x(condition, operator);
SELECT throws_ok($$SELECT '"a"'::bson_value = 'bare'$$, '22P02', NULL, 'an untyped literal is Extended JSON, so a bare word is an error');

-- The families
SELECT ok(bool_and(amvalidate(oid)), 'the operator classes of bson and objectid are valid')
FROM pg_opclass WHERE opcintype IN ('bson'::regtype, 'objectid'::regtype) AND opcmethod IN (SELECT oid FROM pg_am WHERE amname IN ('btree', 'hash'));
SELECT is(count(*)::int, 27, 'the btree family compares bson_value with itself and thirteen types, both ways, with five operators each')
FROM (SELECT amoplefttype, amoprighttype FROM pg_amop WHERE amopfamily = (SELECT opcfamily FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod WHERE amname = 'btree' AND opcintype = 'bson_value'::regtype)
      GROUP BY 1, 2 HAVING count(*) = 5) x;
SELECT is(count(*)::int, 0, 'each operator has its commutator, negator and estimators')
FROM pg_operator WHERE 'bson_value'::regtype IN (oprleft, oprright) AND oprname IN ('<', '<=', '=', '<>', '>=', '>')
  AND (oprcom = 0 OR oprnegate = 0 OR oprrest = 0 OR oprjoin = 0 OR (SELECT c.oprcom FROM pg_operator c WHERE c.oid = pg_operator.oprcom) <> pg_operator.oid);
SELECT is(count(*)::int, 0, 'no cast to bson_value is implicit') FROM pg_cast WHERE casttarget = 'bson_value'::regtype AND castcontext = 'i';
SELECT is(count(*)::int, 0, 'there is no deduplication by image')
FROM pg_amproc WHERE amprocnum = 4 AND amproclefttype IN ('bson'::regtype, 'bson_value'::regtype)
  AND amprocfamily IN (SELECT f.oid FROM pg_opfamily f JOIN pg_am a ON a.oid = opfmethod WHERE amname = 'btree');
SELECT is(count(*)::int, 0, 'every function is immutable, strict and parallel safe')
FROM pg_proc WHERE proname ~ '^bson(_value)?_(lt|le|eq|ne|ge|gt|cmp|hash|sortsupport)' AND NOT (provolatile = 'i' AND proisstrict AND proparallel = 's')
  AND prorettype <> 'float8'::regtype;
SELECT * FROM finish();
ROLLBACK;
