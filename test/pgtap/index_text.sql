-- Conditions on the text of a field: indexes and statistics of the field serve them, and the rows are those that the text selects.
\set ECHO none
SET client_min_messages = warning;
CREATE TABLE p (id serial, doc bson);
INSERT INTO p (doc) SELECT bson_build('sku', 'sku' || i % 1000, 'n', i) FROM generate_series(1, 20000) i;
INSERT INTO p (doc) VALUES ('{sku: 5}'), ('{sku: 5.0}'), ('{sku: "5"}'), ('{sku: NumberDecimal("5.0")}'), ('{sku: true}'), ('{sku: null}'), ('{}'), ('{sku: {a: 1}}'), ('{sku: "{}"}');
CREATE INDEX p_sku ON p ((doc -> 'sku'));
ANALYZE p;
CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  line text;
  plan text := '';
BEGIN
  FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
    plan := plan || line || E'\n';
  END LOOP;
  RETURN plan;
END
$$;

-- A new session plans its first statement so.
\c -
SELECT * FROM no_plan();
SELECT matches(plan_of($$SELECT FROM p WHERE doc ->> 'sku' = 'sku5'$$), 'rows=2[0-9] .*Index Cond: \(\(doc -> ''sku''::text\) = ''"sku5"''', 'an index of the field, and its statistics');
SELECT matches(plan_of(q), 'Index Cond: ', q) FROM unnest(ARRAY[$$SELECT FROM p WHERE 'sku5' = doc ->> 'sku'$$, $$SELECT FROM p WHERE doc ->> 'sku' IN ('sku5', '5')$$, $$SELECT FROM p WHERE doc ->> 'sku' = ANY ('{sku5,sku6}')$$,
  $$SELECT FROM p WHERE doc ->> 'sku' LIKE 'sku51%'$$, $$SELECT FROM p WHERE doc ->> 'sku' LIKE '5%'$$, $$SELECT FROM p WHERE doc ->> 'sku' LIKE 'sku5_' AND id < 10000$$, $$DELETE FROM p WHERE doc ->> 'sku' = 'sku5'$$,
  $$UPDATE p SET doc = doc WHERE doc ->> 'sku' = 'sku5'$$, $$SELECT FROM p WHERE doc ->> 'sku' = (SELECT 'sku5'::text)$$, $$SELECT FROM p a LEFT JOIN p b ON a.id = b.id AND b.doc ->> 'sku' = 'sku5' WHERE a.id = 7$$]) q;
PREPARE by_sku AS SELECT count(*) FROM p WHERE doc ->> 'sku' = $1;
SET plan_cache_mode = force_generic_plan;
SELECT matches(plan_of('EXECUTE by_sku (''sku5'')'), 'Index Cond: ', 'a parameter');
SELECT results_eq($$EXECUTE by_sku ('5')$$, ARRAY[3::bigint], 'finds strings and numbers');
SELECT results_eq('EXECUTE by_sku (NULL)', ARRAY[0::bigint], 'NULL');
SELECT matches(plan_of('EXECUTE by_sku (''sku5'')'), 'Scan .*rows=20 ', 'estimates one value for a parameter');
PREPARE by_number AS SELECT count(*) FROM p WHERE doc ->> 'n' = $1;
SELECT matches(plan_of('EXECUTE by_number (''5'')'), 'rows=1 [^\n]*\n *Filter', 'also without an index');
RESET plan_cache_mode;
SELECT count(plan_of(format('EXECUTE by_sku (''sku%s'')', i))) AS executed FROM generate_series(1, 6) i \gset
SELECT matches(plan_of('EXECUTE by_sku (''sku5'')'), '_text_values\(\$1\)', 'is not planned each time');
PREPARE by_two AS SELECT count(*) FROM p WHERE doc ->> 'sku' IN ($1, $2);
SELECT count(plan_of(format('EXECUTE by_two (''sku%s'', ''b'')', i))) AS executed FROM generate_series(1, 6) i \gset
SELECT matches(plan_of('EXECUTE by_two (''sku5'', ''sku6'')'), 'rows=40 .*_text_values\(ARRAY\[\$1, \$2\]\)', 'nor is IN');
SELECT results_eq($$EXECUTE by_two ('5', 'sku6')$$, ARRAY[23::bigint], 'which finds all');
SELECT matches(plan_of($$SELECT FROM p WHERE doc ->> 'n' = '7'$$), 'rows=[123] ', 'the estimate without an index');

-- PostgreSQL's own way where there is one.
SELECT doesnt_match(plan_of(q), 'docpatterns', q) FROM unnest(ARRAY[$$SELECT FROM p WHERE doc ->> 'sku' <> 'x'$$, $$SELECT FROM p WHERE doc ->> 'sku' LIKE '%x'$$, $$SELECT FROM p a JOIN p b ON a.doc ->> 'sku' = b.doc ->> 'sku'$$,
  $$SELECT FROM p WHERE NOT doc ->> 'sku' = 'x'$$, $$SELECT FROM p WHERE doc ->> 'sku' = random()::text$$, $$SELECT FROM p WHERE doc ->> 'sku' = NULL$$, $$SELECT FROM p WHERE doc ->> 'sku' LIKE NULL$$, $$SELECT FROM p WHERE doc ->> 'sku' = id::text$$]) q;
CREATE TABLE served (id int, doc bson) PARTITION BY LIST ((doc ->> 'region'));
CREATE TABLE served_a PARTITION OF served FOR VALUES IN ('a');
CREATE TABLE served_b PARTITION OF served FOR VALUES IN ('b');
CREATE INDEX ON served ((doc ->> 'name'));
CREATE INDEX ON served (id) WHERE doc ->> 'kind' = 'x';
SELECT doesnt_match(plan_of($$SELECT FROM served WHERE doc ->> 'region' = 'a'$$), 'docpatterns|served_b', 'a partition key');
SET enable_seqscan = off;
SELECT matches(plan_of($$SELECT FROM served_a WHERE doc ->> 'name' = 'a'$$), 'Index Cond: \(\(doc ->> ''name''', 'an index of the text');
SELECT matches(plan_of($$SELECT FROM served WHERE doc ->> 'kind' = 'x' AND id = 5$$), 'Index Cond: \(id = 5', 'a partial index');
RESET enable_seqscan;
CREATE INDEX p_text ON p ((doc ->> 'sku') COLLATE "und-x-icu");
SELECT matches(plan_of(q), 'p_sku', q || ' beside an index in another order') FROM unnest(ARRAY[$$SELECT FROM p WHERE doc ->> 'sku' = 'sku5'$$, $$SELECT FROM p WHERE doc ->> 'sku' LIKE 'sku51%'$$]) q;
DROP INDEX p_text;
CREATE INDEX p_text ON p ((doc ->> 'sku') text_pattern_ops);
SELECT matches(plan_of(q), 'p_text', q || ' with an index for it') FROM unnest(ARRAY[$$SELECT FROM p WHERE doc ->> 'sku' = 'sku5'$$, $$SELECT FROM p WHERE doc ->> 'sku' LIKE 'sku51%'$$]) q;
DROP INDEX p_text;
CREATE STATISTICS p_n ON (doc ->> 'n') FROM p;
ANALYZE p;
SELECT doesnt_match(plan_of($$SELECT FROM p WHERE doc ->> 'n' = 'a'$$), 'docpatterns', 'statistics of the text');

-- Every value whose text is asked for is found: all types, and numbers, dates and others at random.
CREATE TABLE v (i serial, doc bson);
INSERT INTO v (doc) SELECT format('{v: %s}', x)::bson FROM unnest(ARRAY['1', '1.0', '-1.5', '1e3', '1e300', '1e-7', 'NaN', 'Infinity', '-Infinity', '{"$numberLong": "9007199254740993"}', '{"$numberDecimal": "1.10"}', '{"$numberDecimal": "1E+3"}',
  '{"$numberDecimal": "NaN"}', '{"$numberDecimal": "-Infinity"}', '-0.0', '0.1', '123456.78', '99999999999999999999', 'true', 'false', '"x"', '""', '"5"', '"{"', '{"a": 1}', '{}', '[]', '[1, "x"]', '{"$oid": "507f191e810c19729de860ea"}',
  'UUID("758c8927-b1ca-4656-a2ce-cdae6ed9398d")', '{"$binary": {"base64": "YWJj", "subType": "00"}}', 'ISODate("2024-01-01")', 'ISODate("2024-01-01T10:00:00.123Z")', '{"$date": {"$numberLong": "-62135596800001"}}',
  '{"$date": {"$numberLong": "253402300800000"}}', '{"$date": {"$numberLong": "-9223372036854775808"}}', '{"$date": {"$numberLong": "9223372036854775807"}}', '{"$minKey": 1}', '{"$maxKey": 1}',
  '{"$regularExpression": {"pattern": "a", "options": "i"}}', '{"$timestamp": {"t": 1, "i": 2}}', '{"$code": "x"}', '{"$symbol": "s"}', '{"$code": "x", "$scope": {}}', '{"$dbPointer": {"$ref": "x", "$id": {"$oid": "507f191e810c19729de860ea"}}}',
  'undefined', 'null', '0.30000000000000004', '1e21', '5e-324', '1.7976931348623157e308', '{"$numberInt": "5"}', '"true"', '"2024-01-01T00:00:00Z"', '"ÿ"', '"𐀀"', U&'"\+10FFFF"']) x;
SELECT setseed(0.19) \gset
INSERT INTO v (doc) SELECT bson_build('v', (random() - 0.5) * 10 ^ (random() * 40 - 20)) FROM generate_series(1, 500);
INSERT INTO v (doc) SELECT bson_build('v', ((random() - 0.5) * 10 ^ (random() * 20))::numeric) FROM generate_series(1, 500);
INSERT INTO v (doc) SELECT bson_build('v', timestamptz '1970-01-01' + (random() - 0.5) * 10 ^ (random() * 6) * interval '1 day') FROM generate_series(1, 200);
INSERT INTO v (doc) SELECT bson_build('v', bson_build('a', (random() * 10)::int, 'b', random())) FROM generate_series(1, 50);
INSERT INTO v (doc) SELECT bson_build('v', gen_random_uuid()) FROM generate_series(1, 20);
SELECT is_empty($$SELECT doc -> 'v' FROM v WHERE doc ->> 'v' IS NOT NULL AND NOT (doc -> 'v' = ANY (docpatterns._text_values(doc ->> 'v')))$$, 'the values of a text');
CREATE INDEX ON v ((doc -> 'v'));
ANALYZE v;
CREATE FUNCTION differences() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  t text;
  found int[];
  wanted int[];
BEGIN
  FOR t IN SELECT DISTINCT left(doc ->> 'v', n) FROM v, unnest('{1,4,100}'::int[]) n WHERE doc ->> 'v' IS NOT NULL LOOP
    EXECUTE format('SELECT array_agg(i ORDER BY i) FROM v WHERE doc ->> %L = %L', 'v', t) INTO found;
    wanted := (SELECT array_agg(i ORDER BY i) FROM v WHERE (doc ->> 'v') || '' = t);
    IF found IS DISTINCT FROM wanted THEN
      RETURN NEXT '= ' || t;
    END IF;
    t := replace(replace(replace(t, '\', '\\'), '%', '\%'), '_', '\_') || '%';
    EXECUTE format('SELECT array_agg(i ORDER BY i) FROM v WHERE doc ->> %L LIKE %L', 'v', t) INTO found;
    wanted := (SELECT array_agg(i ORDER BY i) FROM v WHERE (doc ->> 'v') || '' LIKE t);
    IF found IS DISTINCT FROM wanted THEN
      RETURN NEXT 'LIKE ' || t;
    END IF;
  END LOOP;
END
$$;
SET enable_seqscan = off;
DELETE FROM v WHERE i > 55 AND i % 20 > 0;
SELECT is_empty('SELECT differences()', 'the same rows as without an index');
SELECT is((SELECT count(*) FROM v WHERE doc ->> 'v' = t), 0::bigint, 'a text that is no value: ' || t) FROM unnest(ARRAY['{abc', '[[[', '{"$oid": 5}', '2024-13-01T00:00:00Z', '1e999', '0x10', '+5', '.5', 'TZ', '-']) t;
SELECT is((SELECT count(*) FROM v WHERE doc ->> 'v' = repeat('[', 200)), 0::bigint, 'nested too deeply');
CREATE COLLATION ignore_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
SELECT is((SELECT count(*) FROM v WHERE doc ->> 'v' = 'X' COLLATE ignore_case), 1::bigint, 'a collation for which other texts are equal');
SELECT * FROM finish();
DROP TABLE p, served, v;
DROP FUNCTION plan_of, differences;
DROP COLLATION ignore_case;
