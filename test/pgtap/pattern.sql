-- The contract of the verbs that are the same for all patterns, and that pattern_check finds whatever is wrong.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(125);

SELECT function_returns(f, r, f || ' returns ' || r) FROM (VALUES ('pattern_list', 'setof pattern_declaration'), ('pattern_check', 'setof pattern_violation'), ('pattern_repair', 'bigint'),
  ('pattern_alter', 'void'), ('pattern_disable', 'bigint'), ('pattern_whole', 'bson')) AS v (f, r);
SELECT volatility_is(f, v, f || ' is ' || v) FROM (VALUES ('pattern_list', 'stable'), ('pattern_check', 'stable'), ('pattern_repair', 'volatile'), ('pattern_alter', 'volatile'),
  ('pattern_disable', 'volatile'), ('pattern_whole', 'stable')) AS w (f, v);
SELECT is_procedure('pattern_build', ARRAY['regclass', 'text', 'integer', 'boolean']);

CREATE TABLE t (id int PRIMARY KEY, doc bson);
SELECT throws_ok(format('SELECT %s', call), '42704', NULL, 'nothing is declared: ' || call)
FROM unnest(ARRAY['pattern_repair(''t'')', 'pattern_alter(''t'', ''a'', ''{}'')', 'pattern_disable(''t'')', 'pattern_check(''t'', ''a'')']) call;
SELECT is_empty($$SELECT * FROM pattern_check('t')$$, 'no pattern, no violation');
SELECT is_empty($$SELECT * FROM pattern_list('t')$$, 'nothing to list');
SELECT outlier_enable('t', 'a', 3, chunk => 2, count_field => 'n'), outlier_enable('t', 'b', 2, flag => 'more', is_set => true, stay => 'last') \g /dev/null
SELECT results_eq($$SELECT rel::text, pattern, name, (options ->> 'threshold')::int FROM pattern_list('t')$$, $$VALUES ('t', 'outlier', 'a', 3), ('t', 'outlier', 'b', 2)$$, 'two declarations');
SELECT ok(NOT bool_or(options ? 'link_id' OR options ? 'name'), 'listed without what is not an option') FROM pattern_list();
SELECT throws_ok(format('SELECT %s', call), '22023', NULL, 'which one? ' || call) FROM unnest(ARRAY['pattern_repair(''t'')', 'pattern_disable(''t'')', 'outlier_count(''t'', 1)']) call;
SELECT throws_ok('CALL pattern_build(''t'')', '22023', NULL, 'which one? pattern_build');
SELECT throws_ok($$SELECT pattern_repair('t', 'c')$$, '42704', 'table "t" has no pattern "c"', 'a name that is not declared');
SELECT throws_ok($$SELECT subset_join('t')$$, '42704', 'table "t" has no subset pattern', 'a pattern that is not declared');
CREATE TABLE orders (id int PRIMARY KEY, doc bson); CREATE TABLE customers (id int PRIMARY KEY, doc bson); SELECT computed_enable('customers', 'orders', 'c', '{spent: {$sum: "$n"}}') \g /dev/null
SELECT throws_ok($$SELECT pattern_disable('orders')$$, '42704', 'table "orders" is the source of pattern "spent" of table "customers"', 'the pattern of another table');
DROP TABLE orders, customers CASCADE;
SELECT throws_ok(format('SELECT pattern_alter(''t'', ''a'', %L)', changes), state, message, changes) FROM (VALUES
  ('{treshold: 5}', '22023', 'the outlier pattern has no option "treshold"'), ('{threshold: 0}', '22023', 'threshold must be at least 1, not 0'),
  ('{chunk: 1000001}', '22023', 'chunk must be between 1 and 1000000, not 1000001'), ('{threshold: "5"}', '22023', 'threshold must be of type int, not string'),
  ('{mode: "lazy"}', '22023', 'mode must be "immediate" or "deferred", not "lazy"'), ('{threshold: null}', '22004', 'threshold must not be null'),
  ('{field: "b"}', '22023', 'option "field" of the outlier pattern cannot be changed')) AS v (changes, state, message);
SELECT throws_ok($$SELECT outlier_enable('t', 'c', 3, flag => 'n.x')$$, '22023', 'field "n.x" of table "t" is already maintained by the outlier pattern "a"', 'a field of another declaration');
SELECT throws_ok($$SELECT outlier_enable('t', 'c', 3, flag => 'c.x')$$, '22023', 'fields "c" and "c.x" must not be equal or contain each other', 'a field inside another one');
SELECT is(pattern_whole(NULL, 't', 1), NULL, 'no document');
SELECT is(pattern_whole('{x: 1}', 't', 99)::text, '{"x": 1}', 'a document that is not split is not looked up');
SELECT is(pattern_whole('{has_extras: true}', 't', 99)::text, '{"has_extras": true}', 'a row that does not exist');
SELECT throws_ok($$SELECT pattern_whole('{}', NULL, 1)$$, '22004', NULL, 'no table');
SELECT throws_ok($$SELECT pattern_whole('{has_extras: true}', 't', now())$$, '42809', NULL, 'a key of another type');

-- Every kind of damage is found, by one row that says what, and repaired. It is done with the setting that restores use.
CREATE FUNCTION pg_temp.damage(command text, what text, finds text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE got text;
BEGIN
  DELETE FROM t;
  INSERT INTO t VALUES (1, '{a: [1, 2, 3, 4, 5, 6, 7, 8], b: [1, 2, 3, 4]}'), (2, '{a: [1], b: []}');
  SET LOCAL docpatterns.maintain = off;
  EXECUTE command;
  SET LOCAL docpatterns.maintain = on;
  SELECT string_agg(DISTINCT format('%s %s: %s, expected %s, found %s', v.name, v.key, v.what, v.expected, v.found), '; ') INTO got FROM pattern_check('t') v;
  RETURN NEXT is(got, finds, what);
  -- that extras may have been there is not forgotten unasked
  IF what = 'a flag without extras' THEN
    RETURN NEXT is(pattern_repair('t', 'a'), 0::bigint, what || ': left');
  END IF;
  PERFORM pattern_repair('t', 'a', accept_loss => what = 'a flag without extras'), pattern_repair('t', 'b');
  RETURN NEXT is_empty('SELECT * FROM pattern_check()', what || ': repaired');
  SET LOCAL docpatterns.maintain = off;
  DELETE FROM t_a_extras; DELETE FROM t_b_extras; DELETE FROM t;
  SET LOCAL docpatterns.maintain = on;
END $$;
SELECT pg_temp.damage(c, w, f) FROM (VALUES
  ('UPDATE t SET doc = bson_set(doc, ''a'', ''[1, 2]''::bson_value) WHERE id = 1', 'too few stay', 'a 1: count, expected 7, found 8; a 1: elements that stay, expected 3, found 2'),
  ('UPDATE t SET doc = bson_set(bson_set(doc, ''a'', ''[1, 2, 3, 3]''::bson_value), ''n'', 9) WHERE id = 1', 'too many stay', 'a 1: elements that stay, expected 3, found 4'),
  ('UPDATE t SET doc = bson_set(bson_set(doc, ''a'', ''[1, 2, 3, 4]''::bson_value), ''n'', 4) WHERE id = 2', 'a document that should be split', 'a 2: elements of a document without extras, expected at most 3, found 4'),
  ('UPDATE t SET doc = doc - ''has_extras'' WHERE id = 1', 'no flag', 'a 1: flag, expected true, found absent'),
  ('UPDATE t SET doc = bson_set(doc, ''has_extras'', 1) WHERE id = 1', 'a flag that is no boolean', 'a 1: flag, expected true, found another value'),
  ('UPDATE t SET doc = bson_set(doc, ''has_extras'', true) WHERE id = 2', 'a flag without extras', 'a 2: flag, expected absent, found true'),
  ('UPDATE t SET doc = bson_set(doc, ''has_extras'', ''no''::text) WHERE id = 2', 'a stale flag', 'a 2: flag, expected absent, found another value'),
  ('UPDATE t SET doc = bson_set(doc, ''n'', 7) WHERE id = 1', 'a wrong count', 'a 1: count, expected 8, found 7'),
  ('UPDATE t SET doc = bson_set(doc, ''n'', ''8''::text) WHERE id = 1', 'a count that is no number', 'a 1: count, expected 8, found string'),
  ('UPDATE t SET doc = doc - ''n'' WHERE id = 2', 'no count', 'a 2: count, expected 1, found absent'),
  ('DELETE FROM t WHERE id = 1', 'extras without their document', 'a 1: document of extras, expected present, found missing; b 1: document of extras, expected present, found missing'),
  ('UPDATE t SET doc = NULL WHERE id = 1', 'extras of a null document', 'a 1: document of extras, expected present, found missing; b 1: document of extras, expected present, found missing'),
  ('UPDATE t_a_extras SET n = 1 WHERE chunk = 0', 'a chunk that counts wrong', 'a 1: count, expected 7, found 8; a 1: elements that a chunk counts, expected 2, found 1'),
  ('UPDATE t_a_extras SET n = 0 WHERE chunk = 0', 'a chunk that counts nothing', 'a 1: count, expected 6, found 8; a 1: elements of a chunk, expected 1 to 2, found 0; a 1: elements of neighbouring chunks, expected more than 2, found 2; a 1: elements that a chunk counts, expected 2, found 0'),
  ('UPDATE t_a_extras SET n = 0, elements = ''[]'' WHERE chunk = 0', 'an empty chunk', 'a 1: count, expected 6, found 8; a 1: elements of a chunk, expected 1 to 2, found 0; a 1: elements of neighbouring chunks, expected more than 2, found 2'),
  ('UPDATE t_a_extras SET n = 3, elements = ''[4, 5, 5]'' WHERE chunk = 0', 'a chunk that is too full', 'a 1: count, expected 9, found 8; a 1: elements of a chunk, expected 1 to 2, found 3'),
  ('UPDATE t_a_extras SET n = 1, elements = ''[4]'' WHERE chunk = 0; UPDATE t_a_extras SET n = 1, elements = ''[6]'' WHERE chunk = 1', 'neighbours that fit into one', 'a 1: count, expected 6, found 8; a 1: elements of neighbouring chunks, expected more than 2, found 2'),
  ('UPDATE t_a_extras SET chunk = chunk + (1::bigint << 62)', 'chunks that seem to move', 'a 1: number of a chunk, expected less than 2305843009213693952, found 4611686018427387904; a 1: number of a chunk, expected less than 2305843009213693952, found 4611686018427387905; a 1: number of a chunk, expected less than 2305843009213693952, found 4611686018427387906'),
  ('UPDATE t_b_extras SET elements = ''[3, 1]''', 'an element of a set twice', 'b 1: elements of a set, expected distinct, found 2 times one value')
) AS v (c, w, f);
SELECT throws_ok($$SET docpatterns.maintain = off; INSERT INTO t_a_extras VALUES (1, 0, 1, false, '5')$$, '23514', NULL, 'elements are an array, whoever writes');
RESET docpatterns.maintain;
DROP TABLE t CASCADE;

-- The same for a collection
SELECT collection_create('c'), collection_create('e') \g /dev/null
SELECT outlier_enable('c', 'a', 1, keep => 0, extras => 'e', on_field => 'c', count_field => 'n') \g /dev/null
INSERT INTO c (doc) VALUES ('{_id: 1, a: [{_id: 1}, {_id: 2}, {_id: 3}]}');
SET docpatterns.maintain = off;
UPDATE c SET doc = bson_set(doc, 'a', 5);
INSERT INTO e (doc) VALUES ('{_id: 9, c: 77}'), ('{_id: 4, c: 1}');
RESET docpatterns.maintain;
SELECT results_eq($$SELECT key::text, what FROM pattern_check() ORDER BY 1, 2$$, $$VALUES ('1', 'count'), ('1', 'field of a document that keeps nothing'), ('77', 'document of extras')$$, 'damage to a collection');
SELECT ok(pattern_repair('c') > 0, 'is repaired');
SELECT is_empty('SELECT * FROM pattern_check()', 'all of it');
SELECT is((SELECT doc::text FROM c_whole), '{"_id": 1, "n": 4, "a": [{"_id": 1}, {"_id": 2}, {"_id": 3}, {"_id": 4}]}', 'with the element that came');
DROP TABLE c CASCADE; DROP TABLE e;

-- Extras that are missing
CREATE TABLE t (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('t', 'a', 1) \g /dev/null
DROP TABLE t_a_extras CASCADE;
SELECT is_empty($$SELECT * FROM pattern_list('t')$$, 'a pattern goes with its extras');
SELECT lives_ok($$INSERT INTO t VALUES (1, '{a: [1, 2]}')$$, 'and leaves an ordinary table');
DROP TABLE t CASCADE;

-- Rights
CREATE ROLE dp_pattern_owner; CREATE ROLE dp_pattern_reader; CREATE ROLE dp_pattern_writer; CREATE ROLE dp_pattern_limited;
CREATE SCHEMA s AUTHORIZATION dp_pattern_owner;
GRANT USAGE ON SCHEMA s TO dp_pattern_reader, dp_pattern_writer, dp_pattern_limited;
SET ROLE dp_pattern_owner;
CREATE TABLE s.t (id int PRIMARY KEY, who text, doc bson);
SELECT outlier_enable('s.t', 'a', 1, chunk => 2) \g /dev/null
GRANT SELECT ON s.t, s.t_whole TO dp_pattern_reader;
GRANT INSERT, UPDATE ON s.t TO dp_pattern_writer; GRANT SELECT (id) ON s.t TO dp_pattern_writer, dp_pattern_limited;
INSERT INTO s.t VALUES (1, 'dp_pattern_reader', '{a: [1, 2, 3]}'), (2, 'somebody', '{a: [4, 5, 6]}');
SET ROLE dp_pattern_reader;
SELECT throws_ok(format('SELECT %s', call), '42501', NULL, 'not the owner: ' || call) FROM unnest(ARRAY['outlier_enable(''s.t'', ''b'', 1)', 'pattern_check(''s.t'')', 'pattern_repair(''s.t'')', 'pattern_alter(''s.t'', ''a'', ''{threshold: 2}'')',
  'pattern_disable(''s.t'')', 'outlier_spill(''s.t'')', 'docpatterns._outlier_rejoin(''s.t'', ''a'', ROW(1))', 'docpatterns._pattern_repair_row(''s.t'', ''a'', ROW(1))']) call;
SELECT throws_ok('CALL pattern_build(''s.t'')', '42501', NULL, 'not the owner: pattern_build');
SELECT is_empty('SELECT * FROM pattern_check()', 'a check of all tables is one of one''s own');
SELECT is((SELECT string_agg(doc ->> 'a', '' ORDER BY id) FROM s.t_whole), '[1, 2, 3][4, 5, 6]', 'a reader reads the whole');
SELECT is(outlier_count('s.t', 1) || ' ' || (SELECT count(*) FROM outlier_find('s.t', 3)), '3 1', 'counts and finds');
SELECT throws_ok($$SELECT outlier_push('s.t', 1, 4)$$, '42501', NULL, 'but does not push');
SELECT throws_ok($$SELECT outlier_pull('s.t', 1, 3)$$, '42501', NULL, 'or pull');
SELECT throws_ok('SELECT * FROM s.t_a_extras', '42501', NULL, 'and the extras themselves are nobody''s');
SELECT throws_ok($$UPDATE s.t_whole SET doc = '{}'$$, '42501', NULL, 'nor does he write through the view');
SET docpatterns.maintain = off;
SET ROLE dp_pattern_writer;
SELECT lives_ok($$INSERT INTO s.t VALUES (3, 'x', '{a: [7, 8, 9]}')$$, 'INSERT and UPDATE are all that a writer needs');
SELECT lives_ok($$UPDATE s.t SET doc = '{a: [7, 10]}' WHERE id = 3$$, 'for outliers, too');
RESET docpatterns.maintain;
SET ROLE dp_pattern_limited;
SELECT throws_ok($$SELECT pattern_whole('{has_extras: true}', 's.t', 1)$$, '42501', NULL, 'who may not read the column may not read the rest of it');
SET ROLE dp_pattern_owner;
SELECT is((SELECT doc ->> 'a' FROM s.t_whole WHERE id = 3), '[7, 8, 9, 10]', 'his setting is not heard: the pattern held');
-- Row-level security
ALTER TABLE s.t ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON s.t USING (who = current_user);
SET ROLE dp_pattern_reader;
SELECT is((SELECT string_agg(doc ->> 'a', '') FROM s.t_whole), '[1, 2, 3]', 'the view shows rows that one may see');
SELECT is(pattern_whole('{has_extras: true}', 's.t', 2)::text, '{"has_extras": true}', 'and so does its function');
SELECT throws_ok(format('SELECT %s', call), 'P0002', NULL, 'an invisible row: ' || call) FROM unnest(ARRAY['outlier_count(''s.t'', 2)', 'outlier_contains(''s.t'', 2, 5)', 'outlier_page(''s.t'', 2, 0, 9)']) call;
SELECT is((SELECT count(*) FROM outlier_find('s.t', 5)) + (SELECT count(*) FROM outlier_find('s.t', 4)), 0::bigint, 'and is not found');
SELECT is((SELECT count(*) FROM outlier_find('s.t', 2)), 1::bigint, 'a visible one is');
RESET ROLE;
ALTER TABLE s.t DISABLE ROW LEVEL SECURITY;
-- Another owner
ALTER TABLE s.t OWNER TO dp_pattern_writer;
GRANT CREATE ON SCHEMA s TO dp_pattern_writer;
SELECT is((SELECT array_agg(DISTINCT relowner::regrole::text) FROM pg_class WHERE relname IN ('t', 't_a_extras', 't_whole') AND relnamespace = 's'::regnamespace), '{dp_pattern_writer}', 'what a pattern keeps follows to another owner');
SET ROLE dp_pattern_writer;
SELECT is(outlier_push('s.t', 1, 4), 1::bigint, 'and works');
SELECT is(pattern_disable('s.t'), 3::bigint, 'and can be ended by him');
RESET ROLE;
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');
DROP SCHEMA s CASCADE;
DROP ROLE dp_pattern_owner, dp_pattern_reader, dp_pattern_writer, dp_pattern_limited;

-- A table of the session's own
CREATE TEMP TABLE own (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('own', 'a', 1) \g /dev/null
INSERT INTO own VALUES (1, '{a: [1, 2, 3]}');
SELECT is((SELECT doc ->> 'a' FROM own_whole), '[1, 2, 3]', 'a temporary table');
SELECT is_empty('SELECT * FROM pattern_check()', 'can be checked');
SELECT throws_ok(format(call, 'NULL'), '22004', NULL, 'a null: ' || call) FROM unnest(ARRAY[
  'SELECT pattern_repair(%s)', 'SELECT pattern_disable(%s)', 'CALL pattern_build(%s)', 'SELECT pattern_alter(''own'', ''a'', %s)']) AS call;
DROP TABLE own CASCADE;
SELECT * FROM finish();
