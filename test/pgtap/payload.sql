-- The payload pattern: extracts and what they refuse, every kind of write, damaged payloads, and a seeded random run against
-- plain documents.
SET client_min_messages = warning;
SET timezone = 'America/New_York';
SET datestyle = 'SQL, DMY';
SELECT plan(127);
CREATE FUNCTION pg_temp.true_everywhere(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;
SELECT function_returns('payload_enable', 'text');
SELECT volatility_is('payload_pack', 'immutable');
SELECT volatility_is('payload_unpack', 'immutable');

-- The format
SELECT is(bson_build('v', payload_unpack(payload_pack(v)))::bytea, bson_build('v', v)::bytea, 'back as it was: ' || left(v::text, 40)) FROM (VALUES
  (to_bson(repeat('abc', 10000))), ('"x"'::bson_value), ('""'), ('{"a": [1, 2]}'), ('[]'), ('5'), ('null'), ('{"$binary": {"base64": "AAEC", "subType": "00"}}'), ('{"$minKey": 1}')) v (v);
SELECT ok(bson_size(bson_build('v', payload_pack(to_bson(repeat('abc', 10000))))) < 500, 'smaller');
SELECT is(payload_pack(payload_pack('"x"'))::text, payload_pack('"x"')::text, 'packed once');
SELECT is(payload_unpack('5')::text, '5', 'what is not packed stays');
SELECT throws_ok(format('SELECT payload_unpack(%L)', format('{"$binary": {"base64": "%s", "subType": "81"}}', encode(b, 'base64'))), 'XX001', NULL, 'damaged: ' || b::text) FROM unnest(ARRAY[
  '\x', '\x010102', '\x0101020000', '\x02000202000000', '\x010002020000000000', '\x0102020600000000', '\x01010210000000ff', '\x010102ffffffff00', '\x01000206000000020000004142', '\x010077', '\x01007700000000']::bytea[]) b;

\set seed 0.81
SELECT diag('seed ' || :seed);
SELECT setseed(:seed) \g /dev/null
CREATE FUNCTION pg_temp.damage() RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
  good bytea;
  bad bytea;
  at int;
  refused int := 0;
BEGIN
  -- the Binary's data follow "value, {, type, v, NUL, length, subtype"
  good := bson_build('v', payload_pack('{"a": [1, "text text text text text text text text", {"b": "text text text text"}], "c": "text text text"}'))::bytea;
  good := substring(good FROM 13 FOR octet_length(good) - 13);
  FOR i IN 1 .. 1500 LOOP
    bad := good;
    FOR j IN 1 .. 1 + (random() * 2)::int LOOP
      at := (random() * (octet_length(bad) - 1))::int;
      bad := set_byte(bad, at, (random() * 255)::int);
    END LOOP;
    IF random() < 0.2 THEN
      bad := substring(bad FROM 1 FOR (random() * octet_length(bad))::int);
    END IF;
    BEGIN
      EXECUTE format('SELECT payload_unpack(%L)', format('{"$binary": {"base64": "%s", "subType": "81"}}', replace(encode(bad, 'base64'), E'\n', '')));
    EXCEPTION WHEN data_corrupted OR program_limit_exceeded THEN
      refused := refused + 1;
    END;
  END LOOP;
  RETURN cmp_ok(refused, '>', 300, 'random damage is refused, and nothing worse happens');
END $f$;
SELECT pg_temp.damage();

-- Refused options
CREATE TABLE t (id int PRIMARY KEY, doc bson, n int DEFAULT 7);
CREATE FUNCTION words(text) RETURNS int IMMUTABLE LANGUAGE sql RETURN cardinality(string_to_array($1, ' '));
CREATE FUNCTION now_of(text) RETURNS timestamptz STABLE LANGUAGE sql RETURN now();
CREATE FUNCTION two(text, text) RETURNS text IMMUTABLE LANGUAGE sql RETURN $1;
SELECT throws_ok(format('SELECT payload_enable(%s)', args), state, NULL, what) FROM (VALUES
  ($$NULL, 'p'$$, '22004', 'no table'), ($$'t', NULL$$, '22004', 'no field'), ($$'t', 'p', NULL$$, '22004', 'no extracts'), ($$'t', '_id'$$, '22023', '_id as payload'), ($$'t', 'a..b'$$, '22023', 'a bad path'),
  ($$'t', 'p', '{_id: "regex:a"}'$$, '22023', 'into _id'), ($$'t', 'p', '{p: "regex:a"}'$$, '22023', 'into the payload'), ($$'t', 'p', '{"p.x": "regex:a"}'$$, '22023', 'inside the payload'),
  ($$'t', 'p', '{a: "regex:a", "a.b": "regex:a"}'$$, '22023', 'one inside another'), ($$'t', 'p', '{a: "nope:a"}'$$, '22023', 'another kind'), ($$'t', 'p', '{a: "a"}'$$, '22023', 'no kind'),
  ($$'t', 'p', '{a: 5}'$$, '22023', 'no text'), ($$'t', 'p', '{a: "regex:"}'$$, '22023', 'nothing to find'), ($$'t', 'p', '{a: "regex:("}'$$, '2201B', 'a bad regular expression'),
  ($$'t', 'p', '{a: "xpath:/a["}'$$, '22023', 'a bad XPath'), ($$'t', 'p', '{a: "xpath:/n:a"}'$$, '22023', 'a namespace that is not given'), ($j$'t', 'p', '{a: "jsonpath:$$"}'$j$, '42601', 'a bad JSON path'),
  ($$'t', 'p', '{a: "function:nope"}'$$, '42883', 'no such function'), ($$'t', 'p', '{a: "function:now_of"}'$$, '42P17', 'a function that is not immutable'), ($$'t', 'p', '{a: "function:two"}'$$, '22023', 'one of two arguments'),
  ($$'t', 'p', '{a: {xpath: "/a", regex: "a"}}'$$, '22023', 'two kinds'), ($$'t', 'p', '{a: {xpath: "/a", type: "nope"}}'$$, '22023', 'no such type'), ($$'t', 'p', '{a: {type: "date"}}'$$, '22023', 'nothing but a type'),
  ($$'t', 'p', '{a: {regex: "a", namespaces: {}, list: 1}}'$$, '22023', 'a list that is no boolean'), ($$'t', 'p', '{}', doc_column => 'nope'$$, '42703', 'no such column')) v (args, state, what);

-- XML
SELECT is(payload_enable('t', 'body.xml', '{created: "xpath:/msg/@created::date", at: "xpath:/msg/@at::timestamptz", "h.from": "xpath:/msg/child::from", to: "xpath:/msg/to/text()::text[]",
  n: "xpath:count(//to)::int", axis: "xpath:/msg/self::date", amount: "xpath:/msg/amount::numeric", words: "function:words", day: "regex:created=.([0-9-]+)", ns: {xpath: "/msg/x:a/@b", namespaces: {x: "urn:x"}}}'), 'body.xml', 'enabled');
SELECT is((options -> 'extracts') ->> 'words', 'function:public.words(pg_catalog.text)', 'functions are written in full') FROM pattern_list('t');
INSERT INTO t VALUES (1, '{_id: 1, body: {xml: "<msg created=\"2023-02-03\" at=\"2023-02-03 04:05\"><from>bob &amp; <b>eve</b></from><to>a&lt;b</to><to/><to>c d</to><amount>1.50</amount><a xmlns=\"urn:x\" b=\"1\"/></msg>", k: 1}}'), (2, '{a: 1}'), (3, NULL);
SELECT is(bson_unset(doc, 'body.xml')::text, '{"_id": 1, "created": {"$date": "2023-02-03T00:00:00Z"}, "at": {"$date": "2023-02-03T04:05:00Z"}, "h": {"from": "bob & eve"}, '
  '"to": ["a<b", "c d"], "n": 3, "amount": {"$numberDecimal": "1.50"}, "words": 9, "day": "2023-02-03", "ns": "1", "body": {"k": 1}}', 'extracted, whatever the session''s time zone is') FROM t WHERE id = 1;
SELECT is(bson_typeof(doc, 'body.xml'), 'binData', 'packed') FROM t WHERE id = 1;
SELECT is((SELECT doc::text FROM t WHERE id = 2), '{"a": 1}', 'a document without payload has no fields');
SELECT is((SELECT doc ->> 'body.xml' FROM t_whole WHERE id = 1), '<msg created="2023-02-03" at="2023-02-03 04:05"><from>bob &amp; <b>eve</b></from><to>a&lt;b</to><to/><to>c d</to><amount>1.50</amount><a xmlns="urn:x" b="1"/></msg>', 'as it was');
SELECT throws_ok($$INSERT INTO t VALUES (4, '{body: {xml: "<msg"}}')$$, '2200M', 'cannot extract field "created" from payload "body.xml" of document 4 in table "t"', 'bad XML names the document');
SELECT throws_ok($$INSERT INTO t VALUES (4, '{body: {xml: "<msg created=\"soon\"/>"}}')$$, '22007', NULL, 'a date that is none');
SELECT throws_ok($$INSERT INTO t VALUES (4, '{body: {xml: 5}}')$$, '23514', NULL, 'a payload of another type');
SELECT throws_ok($$INSERT INTO t VALUES (4, '{body: {xml: {"$binary": {"base64": "AQECEAAAAP8=", "subType": "81"}}}}')$$, '22P03', NULL, 'bytes that claim to be packed');
SELECT is((SELECT count(*) FROM t), 3::bigint, 'nothing of that is left');

-- Writes
SELECT throws_ok($$UPDATE t SET doc = bson_set(doc, 'words', 99) WHERE id = 1$$, '55000', 'field "words" of table "t" is extracted from "body.xml"', 'an extracted field cannot be written');
UPDATE t SET doc = bson_unset(doc, 'day', 'h') WHERE id = 1;
SELECT is((SELECT concat(doc ->> 'day', doc ->> 'h.from') FROM t WHERE id = 1), '2023-02-03bob & eve', 'nor taken away');
UPDATE t SET doc = bson_set(doc, 'other', 1) WHERE id = 1;
SELECT is((SELECT doc ->> 'other' FROM t_whole WHERE id = 1), '1', 'others can');
UPDATE t SET doc = bson_set(doc, 'body.xml', '<msg created="2024-01-01"/>') WHERE id = 1;
SELECT is((SELECT bson_unset(doc, 'body')::text FROM t WHERE id = 1), '{"_id": 1, "created": {"$date": "2024-01-01T00:00:00Z"}, "to": [], "n": 0, "words": 2, "h": {}, "day": "2024-01-01", "other": 1}', 'another payload');
UPDATE t_whole SET doc = bson_set(doc, 'other', 2) WHERE id = 1;
UPDATE t_whole SET doc = bson_set(doc, 'body.xml', '<msg created="2025-01-01"/>') WHERE id = 1;
SELECT is((SELECT concat(doc ->> 'day', doc ->> 'other', bson_typeof(doc, 'body.xml')) FROM t WHERE id = 1), '2025-01-012binData', 'through the view');
INSERT INTO t_whole (id, doc) VALUES (5, '{body: {xml: "<msg><from>x</from></msg>"}}');
SELECT is((SELECT (doc ->> 'h.from') || n FROM t WHERE id = 5), 'x7', 'INSERT into the view');
UPDATE t SET doc = bson_unset(doc, 'body.xml') WHERE id = 5;
SELECT is((SELECT doc::text FROM t WHERE id = 5), '{"h": {}, "body": {}}', 'a payload that goes takes its fields along');
UPDATE t SET doc = bson_set(doc, 'body.xml', 'null'::bson_value) WHERE id = 5;
SELECT is((SELECT doc::text FROM t WHERE id = 5), '{"h": {}, "body": {"xml": null}}', 'null is none');
INSERT INTO t SELECT 6, doc FROM t WHERE id = 1;
SELECT is((SELECT doc::bytea FROM t WHERE id = 6), (SELECT doc::bytea FROM t WHERE id = 1), 'a packed payload is one');
INSERT INTO t VALUES (6, '{body: {xml: "<msg><from>z</from></msg>"}}'), (7, '{body: {xml: "<msg/>"}}') ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
SELECT is((SELECT doc ->> 'h.from' FROM t WHERE id = 6), 'z', 'ON CONFLICT DO UPDATE');
INSERT INTO t VALUES (6, '{body: {xml: "<msg><from>y</from></msg>"}}') ON CONFLICT DO NOTHING;
SELECT is((SELECT doc ->> 'body.xml' FROM t_whole WHERE id = 6), '<msg><from>z</from></msg>', 'ON CONFLICT DO NOTHING');
COPY t (id, doc) FROM stdin;
8	{"body": {"xml": "<msg><from>copied</from></msg>"}}
\.
SELECT is((SELECT doc ->> 'h.from' FROM t WHERE id = 8), 'copied', 'COPY');
CREATE TABLE before AS SELECT id, doc FROM t;
UPDATE t SET doc = doc;
UPDATE t_whole SET doc = doc;
SELECT is_empty('SELECT id, doc::bytea FROM t EXCEPT ALL SELECT id, doc::bytea FROM before', 'what stays as it was is not packed again');
DROP TABLE before;
SELECT pg_temp.true_everywhere('after writes');

-- Wrong by hand
ALTER TABLE t DISABLE TRIGGER ALL;
UPDATE t SET doc = bson_set(doc, 'words', 0) WHERE id = 6;
INSERT INTO t SELECT i, bson_build('body', bson_build('xml', '<msg><from>' || i || '</from></msg>')) FROM generate_series(100, 110) i;
ALTER TABLE t ENABLE TRIGGER ALL;
SELECT results_eq($$SELECT key::int, what, expected, found FROM pattern_check() WHERE what LIKE 'payload%' OR key = 6 ORDER BY 1 LIMIT 2$$,
  $$VALUES (6, 'field "words"', '1', '0'), (100, 'payload "body.xml"', 'packed', 'string')$$, 'found');
CALL pattern_build('t', 'body.xml', 4);
SELECT is((SELECT count(*) FROM pattern_check()), 1::bigint, 'built');
SELECT is(pattern_repair('t'), 1::bigint, 'repaired');
SELECT is((SELECT string_agg(doc ->> 'h.from', ',' ORDER BY id) FROM t WHERE id >= 100), '100,101,102,103,104,105,106,107,108,109,110', 'extracted');
SELECT pg_temp.true_everywhere('after repair');

-- Other extracts
SELECT throws_ok($$SELECT pattern_alter('t', 'body.xml', '{field: "x"}')$$, '22023', NULL, 'the payload cannot be another field');
SELECT throws_ok($$SELECT pattern_alter('t', 'body.xml', '{extracts: {bad: "xpath:["}}')$$, '22023', NULL, 'a bad extract');
SELECT lives_ok($$SELECT pattern_alter('t', 'body.xml', '{extracts: {sender: "xpath:/msg/from"}}')$$, 'others');
SELECT is((SELECT doc::text FROM t WHERE id = 100), (SELECT bson_build('h', bson '{}', 'sender', '100', 'body', doc -> 'body')::text FROM t WHERE id = 100), 'documents follow');
SELECT pg_temp.true_everywhere('altered');
SELECT is(pattern_disable('t', 'body.xml'), 15::bigint, 'disabled');
SELECT is((SELECT doc::text FROM t WHERE id = 100), '{"h": {}, "body": {"xml": "<msg><from>100</from></msg>"}}', 'as it was');
SELECT is(to_regclass('t_whole'), NULL, 'the view is gone');
DROP TABLE t;

-- JSON, documents and functions of them; a list, a null
CREATE FUNCTION "Fun ct'ion"(bson_value) RETURNS int[] IMMUTABLE LANGUAGE sql RETURN ARRAY[octet_length($1::text), 1];
CREATE SCHEMA "S p";
CREATE TABLE "S p"."T ""t" ("K 1" text, "k'2" int, "d oc" bson, PRIMARY KEY ("K 1", "k'2")) PARTITION BY LIST ("k'2");
CREATE TABLE "S p"."P 1" PARTITION OF "S p"."T ""t" FOR VALUES IN (1);
SELECT is(payload_enable('"S p"."T ""t"', '"p ''l"', $$ {"\"q 't\"": "jsonpath:$.a", n: "jsonpath:$.n::int", l: "jsonpath:$.l[*]::text[]", all: {jsonpath: "$.l[*]", list: true}, z: "jsonpath:$.z", f: "function:\"Fun ct'ion\""} $$, name => 'n ''"\'), 'n ''"\', 'hostile names');
CREATE TABLE "S p"."P 2" PARTITION OF "S p"."T ""t" FOR VALUES IN (2);
INSERT INTO "S p"."T ""t" VALUES ('a', 1, $$ {"p 'l": '{"a": {"b": 1.5}, "n": "7", "l": [1, "x", null], "z": null}'} $$), ('b', 2, $$ {"p 'l": {a: 5, n: 7, l: []}} $$);
SELECT is((SELECT string_agg(bson_unset("d oc", '"p ''l"', 'f')::text, ' ' ORDER BY "K 1") FROM "S p"."T ""t"),
  '{"q ''t": {"b": 1.5}, "n": 7, "l": ["1", "x", null], "all": [1, "x", null], "z": null} {"q ''t": 5, "n": 7, "l": [], "all": []}', 'JSON as text and as documents');
SELECT is((SELECT "d oc" ->> 'f' FROM "S p"."T ""t" WHERE "K 1" = 'b'), '[25, 1]', 'a function of the value');
SELECT throws_ok($$INSERT INTO "S p"."T ""t" VALUES ('c', 1, '{"p ''l": "{"}')$$, '22P02', NULL, 'bad JSON');
SELECT throws_ok($$INSERT INTO "S p"."T ""t" VALUES ('c', 1, '{"p ''l": "{\"n\": \"x\"}"}')$$, '22P02', NULL, 'a number that is none');
UPDATE "S p"."T ""t_whole" AS w SET "k'2" = 2 WHERE "K 1" = 'a';
SELECT is((SELECT count(*) FROM "S p"."P 2"), 2::bigint, 'a row that moves to another partition');
SELECT pg_temp.true_everywhere('hostile');
ALTER TABLE "S p"."T ""t" RENAME COLUMN "d oc" TO "e";
ALTER SCHEMA "S p" RENAME TO sp;
INSERT INTO sp."T ""t" VALUES ('d', 1, '{"p ''l": {a: 1}}');
SELECT pg_temp.true_everywhere('renamed');
SELECT is(pattern_disable('sp."T ""t"'), 3::bigint, 'put back');
SELECT is((SELECT e::text FROM sp."T ""t" WHERE "K 1" = 'b'), '{"p ''l": {"a": 5, "n": 7, "l": []}}', 'as it was');
DROP SCHEMA sp CASCADE;

-- Somebody who only writes, and functions that the owner may not call
CREATE ROLE payload_writer;
CREATE TABLE t (id int PRIMARY KEY, doc bson);
REVOKE EXECUTE ON FUNCTION words(text) FROM public;
GRANT SELECT, INSERT, UPDATE ON t TO payload_writer;
SELECT payload_enable('t', 'p', '{w: "function:words"}') \g /dev/null
SET ROLE payload_writer;
SELECT lives_ok($$INSERT INTO t VALUES (1, '{p: "a b c"}'); UPDATE t_whole SET doc = '{p: "a b"}'$$, 'a writer needs no other rights');
SELECT throws_ok($$SELECT payload_enable('t', 'q')$$, '42501', NULL, 'who is no owner cannot declare');
RESET ROLE;
SELECT is((SELECT doc ->> 'w' FROM t), '2', 'extracted for everybody');
ALTER TABLE t OWNER TO payload_writer;
SELECT throws_ok($$UPDATE t SET doc = '{p: "a"}'$$, '42501', NULL, 'an owner who may not call the function');
DROP TABLE t CASCADE;
DROP ROLE payload_writer;
DROP FUNCTION words(text), now_of(text), two(text, text), "Fun ct'ion"(bson_value);

-- One of two document columns; triggers of the user's own
CREATE TABLE t (id int PRIMARY KEY, a bson, b bson);
SELECT throws_ok($$SELECT payload_enable('t', 'p')$$, '42702', NULL, 'which of two columns');
SELECT payload_enable('t', 'p', '{n: "regex:[0-9]+::int"}', doc_column => 'b') \g /dev/null
SELECT attribute_enable('t', 'r', prefix => 'x_', doc_column => 'b') \g /dev/null
CREATE FUNCTION pg_temp.add_one() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.b := bson_set(bson_set(NEW.b, 'x_u', 1), 'p', (NEW.b ->> 'p') || '!'); RETURN NEW; END $$;
CREATE TRIGGER mine BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION pg_temp.add_one();
INSERT INTO t VALUES (1, '{p: "a1"}', '{p: "b2", x_a: 0}');
SELECT is((SELECT a::text || bson_unset(b, 'p')::text FROM t), '{"p": "a1"}{"n": 2, "r": [{"name": "a", "value": 0}, {"name": "u", "value": 1}]}', 'only that column, and what users'' triggers do to it');
SELECT is((SELECT b ->> 'p' FROM t_whole), 'b2!', 'the view shows that column whole');
UPDATE t_whole SET b = bson_set(b, 'p', '7'), a = '{}';
SELECT is((SELECT a::text || (b ->> 'n') FROM t), '{}7', 'and takes both');
SELECT pg_temp.true_everywhere('one of two columns');
DROP TABLE t CASCADE;

-- Beside others: fields are extracted before references and shapes are looked at, and the payload is still plain then
CREATE TABLE t (id int PRIMARY KEY, doc bson);
SELECT payload_enable('t', 'p', '{x_a: "regex:a=([0-9]+)::int", v: "regex:v=(.)"}') \g /dev/null
SELECT attribute_enable('t', 'r', pattern => 'x_{k}') \g /dev/null
SELECT outlier_enable('t', 'list', 2) \g /dev/null
INSERT INTO t VALUES (1, '{p: "a=5 v=q", x_b: 1, list: [1, 2, 3]}');
SELECT is((SELECT doc ->> 'x_a' || (doc -> 'r')::text FROM t), '5[{"k": "b", "value": 1}]', 'extracted fields are nobody else''s');
SELECT is((SELECT bson_array_length(doc, 'list') || (doc ->> 'p') FROM t_whole), '3a=5 v=q', 'whole with everything');
UPDATE t_whole SET doc = bson_set(doc, 'p', 'a=6');
SELECT is((SELECT bson_array_length(doc, 'list') || (doc ->> 'p') || (doc ->> 'x_a') FROM t_whole), '3a=66', 'written whole');
SELECT pg_temp.true_everywhere('several patterns');
DROP TABLE t CASCADE;

-- A random run
\set seed 0.61
SELECT diag('seed ' || :seed);
SELECT setseed(:seed) \g /dev/null
CREATE FUNCTION pg_temp.run() RETURNS SETOF text LANGUAGE plpgsql AS $f$
DECLARE
  x int;
  p text;
  wrong text;
  failures text;
BEGIN
  CREATE TABLE t (id int PRIMARY KEY, doc bson NOT NULL);
  CREATE TABLE m (id int PRIMARY KEY, p text, o int);
  PERFORM payload_enable('t', 'p', '{a: "xpath:/m/@a::int", n: "xpath:count(/m/b)::int"}');
  FOR batch IN 1 .. 30 LOOP
    FOR op IN 1 .. 10 LOOP
      x := 1 + (random() * 6)::int;
      p := CASE WHEN random() < 0.8 THEN format('<m a="%s">%s</m>', (random() * 9)::int, repeat('<b>text</b>', (random() * 40)::int)) END;
      CASE (random() * 5)::int
      WHEN 0 THEN
        INSERT INTO t VALUES (x, bson_build('p', p, 'o', op)) ON CONFLICT (id) DO UPDATE SET doc = EXCLUDED.doc;
        INSERT INTO m VALUES (x, p, op) ON CONFLICT (id) DO UPDATE SET p = EXCLUDED.p, o = EXCLUDED.o;
      WHEN 1 THEN
        UPDATE t SET doc = bson_unset(bson_set(doc, 'o', op), 'a') WHERE id = x;
        UPDATE m SET o = op WHERE id = x;
      WHEN 2 THEN
        UPDATE t_whole SET doc = bson_set(doc, 'o', op) WHERE id <= x;
        UPDATE m SET o = op WHERE id <= x;
      WHEN 3 THEN
        UPDATE t_whole SET doc = bson_set(doc, 'p', to_bson(p)) WHERE id = x AND p IS NOT NULL;
        UPDATE m SET p = run.p FROM (SELECT p) AS run (p) WHERE id = x AND run.p IS NOT NULL;
      WHEN 4 THEN
        UPDATE t SET doc = a.doc FROM (SELECT doc FROM t WHERE id = x) AS a WHERE id = x + 1;
        UPDATE m SET p = a.p, o = a.o FROM (SELECT * FROM m WHERE id = x) AS a WHERE m.id = x + 1;
      ELSE
        DELETE FROM t WHERE id = x;
        DELETE FROM m WHERE id = x;
      END CASE;
    END LOOP;
    SELECT string_agg(format('batch %s: %s', batch, v), '; ') INTO failures FROM (SELECT v FROM pattern_check('t') v LIMIT 3) v;
    SELECT format('batch %s: key %s', batch, id) INTO wrong
      FROM m FULL JOIN t_whole w USING (id)
      WHERE (w.doc ->> 'p', (w.doc -> 'o')::int, (w.doc -> 'a')::int, (w.doc -> 'n')::int) IS DISTINCT FROM
            (m.p, m.o, substring(m.p, 'a="(.*?)"')::int, CASE WHEN m.p IS NOT NULL THEN (length(m.p) - length(replace(m.p, '<b>', ''))) / 3 END) LIMIT 1;
    EXIT WHEN failures IS NOT NULL OR wrong IS NOT NULL;
  END LOOP;
  RETURN NEXT is(failures, NULL, 'random: nothing is violated');
  RETURN NEXT is(wrong, NULL, 'random: payloads and fields equal plain ones');
  DROP TABLE t, m CASCADE;
END $f$;
SELECT pg_temp.run();
-- Functions in SQL: what they keep from call to call is not gone on with after an error, and names are found whoever calls them
CREATE SCHEMA fs;
CREATE FUNCTION fs.words(t text) RETURNS int IMMUTABLE LANGUAGE sql AS $$ SELECT bson_array_length(t::bson -> 'w') FROM (VALUES (1)) v $$;
CREATE FUNCTION fs.part(t text) RETURNS int IMMUTABLE LANGUAGE sql SET search_path = pg_catalog AS $$ SELECT 100 / length(t) FROM (VALUES (1)) v $$;
CREATE TABLE t (id int PRIMARY KEY, doc bson);
SELECT payload_enable('t', 'p', '{n: "function:fs.words"}') \g /dev/null
INSERT INTO t VALUES (1, bson_build('p', '{w: [1, 2]}'::text));
SELECT true_everywhere FROM pg_temp.true_everywhere('a function that looks for names');
SELECT payload_enable('t', 'q', '{m: "function:fs.part"}') \g /dev/null
BEGIN;
INSERT INTO t VALUES (2, '{q: "abcd"}');
SELECT throws_ok($$INSERT INTO t VALUES (3, '{q: ""}')$$, '22012', NULL, 'a function that raises, attempt ' || n) FROM generate_series(1, 3) n;
INSERT INTO t VALUES (3, '{q: "abcde"}');
SELECT throws_ok($$INSERT INTO t VALUES (4, '{q: ""}')$$, '22012', NULL, 'and again');
COMMIT;
SELECT results_eq('SELECT (doc -> ''m'')::int FROM t WHERE id > 1 ORDER BY id', '{25,20}'::int[], 'and others in between');
ALTER FUNCTION fs.words(text) SET search_path = pg_catalog;
SELECT throws_ok($$INSERT INTO t VALUES (5, '{p: "{w: []}"}')$$, '42704', NULL, 'a function that gets other settings, in the same session');
DROP FUNCTION fs.words(text);
SELECT throws_ok($$INSERT INTO t VALUES (5, '{p: "{w: []}"}')$$, '42883', NULL, 'a function that was dropped');
CREATE FUNCTION fs.words(t text) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT t || '!' FROM (VALUES (1)) v $$;
INSERT INTO t VALUES (5, '{p: "5"}');
SELECT is(doc ->> 'n', '5!', 'and one that was made in its place') FROM t WHERE id = 5;
DROP TABLE t CASCADE;
DROP SCHEMA fs CASCADE;

-- Errors show little of what a payload holds
CREATE TABLE t (id int PRIMARY KEY, doc bson);
SELECT payload_enable('t', 'x', '{a: "xpath:/m/@a::date", j: "jsonpath:$.a::int"}') \g /dev/null
SELECT pattern_alter('t', 'x', '{extracts: {a: "regex:a=(.*)::date"}}') \g /dev/null
CREATE FUNCTION pg_temp.detail(VARIADIC what text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  d text;
BEGIN
  EXECUTE array_to_string(what, ' ');
  RETURN NULL;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS d = PG_EXCEPTION_DETAIL;
  RETURN d;
END $$;
SELECT is(pg_temp.detail('INSERT INTO t VALUES (1, bson_build(''x'', ''a='' || repeat(''secret'', 1000)))'),
          'invalid input syntax for type date: "' || left(repeat('secret', 20), 63) || '...', 'a value that is not of the type');
SELECT pattern_alter('t', 'x', '{extracts: {a: "xpath:/m/@a"}}') \g /dev/null
SELECT is(pg_temp.detail('INSERT INTO t VALUES (1, bson_build(''x'', ''<m>'' || repeat(''secret '', 1000)))') ~ 'secret', false, 'XML that does not end');
SELECT pattern_alter('t', 'x', '{extracts: {a: "jsonpath:$.a"}}') \g /dev/null
SELECT cmp_ok(length(pg_temp.detail('INSERT INTO t VALUES (1, bson_build(''x'', ''{"a": secret'' || repeat(''secret'', 1000)))')), '<', 220, 'JSON that is none');
DROP TABLE t CASCADE;
SELECT * FROM finish();
