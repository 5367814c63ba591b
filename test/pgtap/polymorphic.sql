-- The contract of the polymorphic pattern: what is refused and how, every kind of write, views and their types, indexes, calls, who
-- may do what, hostile names, other patterns on the table, and a seeded random run against bson_validate.
SET client_min_messages = warning;
SET timezone = 'UTC';
SELECT plan(176);
CREATE FUNCTION pg_temp.all_true(what text) RETURNS text LANGUAGE sql AS $$ SELECT is_empty('SELECT * FROM pattern_check()', what || ': pattern_check has nothing to report') $$;
-- What a view's columns are.
CREATE FUNCTION pg_temp.columns(rel regclass) RETURNS text LANGUAGE sql AS
$$ SELECT string_agg(format('%I %s', attname, format_type(atttypid, NULL)), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = rel AND attnum > 0 AND NOT attisdropped $$;
-- What an error's detail says.
CREATE FUNCTION pg_temp.detail(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE said text; told text;
BEGIN
  EXECUTE command;
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS said = PG_EXCEPTION_DETAIL, told = MESSAGE_TEXT;
  RETURN format('%s %s: %s', SQLSTATE, told, said);
END $$;

-- Signatures
SELECT function_returns(f, r, f || ' returns ' || r) FROM (VALUES ('polymorphic_enable', 'text'), ('polymorphic_variant', 'text'), ('polymorphic_retype', 'boolean'), ('polymorphic_retype_all', 'bigint'),
  ('polymorphic_variants', 'setof record'), ('polymorphic_infer', 'setof record'), ('polymorphic_errors', 'setof record')) AS v (f, r);
SELECT volatility_is(f, v, f || ' is ' || v) FROM (VALUES ('polymorphic_enable', 'volatile'), ('polymorphic_variant', 'volatile'), ('polymorphic_retype', 'volatile'), ('polymorphic_variants', 'stable'),
  ('polymorphic_infer', 'stable'), ('polymorphic_errors', 'stable')) AS w (f, v);

-- Refused declarations
SELECT collection_create('a'), collection_create('b');
CREATE TABLE no_key (doc bson);
CREATE VIEW a_view AS SELECT * FROM a;
SELECT throws_ok(format('SELECT polymorphic_enable(%s)', args), state, NULL, 'enable: ' || what) FROM (VALUES
  ($$NULL, by => 'k'$$, '22004', 'no table'), ($$'a', by => NULL$$, '22004', 'no field'), ($$'a', by => 'k', unknown => NULL$$, '22004', 'nothing about unknown ones'),
  ($$'a', by => 'k', unknown => 'maybe'$$, '22023', 'unknown is neither'), ($$'a', by => 'k..l'$$, '22023', 'a bad path'), ($$'no_key', by => 'k'$$, '55000', 'no primary key'),
  ($$'a_view', by => 'k'$$, '42809', 'a view'), ($$'a', by => 'k', common => '{required: "x"}'$$, '22023', 'a bad schema'), ($$'a', by => 'k', common => '{nonsense: 1}'$$, '0A000', 'an unknown keyword'),
  ($$'a', by => 'k', view => 'b'$$, '42P07', 'the name of a table for the view'), ($$'a', by => 'k', doc_column => 'x'$$, '42703', 'no such column')) AS v (args, state, what);
SELECT throws_ok($$SELECT polymorphic_variant('a', 'x')$$, '42704', NULL, 'a variant of nothing');
SELECT is(polymorphic_enable('a', by => 'k', common => '{required: ["n"]}'), 'k', 'the name is that of the field');
SELECT throws_ok($$SELECT polymorphic_enable('a', by => 'k')$$, '42710', NULL, 'the name is taken');
SELECT throws_ok(format('SELECT polymorphic_variant(%s)', args), state, NULL, 'variant: ' || what) FROM (VALUES
  ($$'a', NULL$$, '22004', 'no name'), ($$'a', 'x', closed => NULL$$, '22004', 'closed or not'), ($$'a', 'k'$$, '42710', 'the name of a declaration'), ($$'a', 'x', of => 'nothing'$$, '42704', 'of nothing'),
  ($$'a', 'x', schema => '{bsonType: "thing"}'$$, '22023', 'a bad schema'), ($$'a', 'x', indexes => '{a..b}'$$, '22023', 'a bad path'), ($$'a', 'x', view => 'b'$$, '42P07', 'the name of a table for the view')) AS v (args, state, what);

-- What an error says
SELECT is(polymorphic_variant('a', 'x', schema => '{required: ["s"], properties: {s: {bsonType: "string", maxLength: 3}, "i.j": {}, o: {properties: {p: {bsonType: "int"}, q: {bsonType: "bool"}}}}}', closed => true), 'x', 'a variant');
SELECT is(polymorphic_variant('a', 'y', schema => '{properties: {s: {}, y1: {bsonType: "long"}, o: {properties: {r: {}}}, l: {bsonType: "array", items: {properties: {m: {bsonType: "int"}}}}}}'), 'y', 'another one');
SELECT is(polymorphic_variant('a', 'seven', value => '7'), 'seven', 'a kind that is a number');
SELECT throws_ok($$SELECT polymorphic_variant('a', 'sieben', value => '7.0')$$, '42710', NULL, 'equal values are one variant');
SELECT is(pg_temp.detail($$INSERT INTO a (doc) VALUES ('{k: "x", n: 1}')$$), '23514 document is not valid for variant "x" of table "a": Field "s": rule "required", expected a value, found missing.', 'variant, path and rule');
SELECT is(pg_temp.detail($$INSERT INTO a (doc) VALUES ('{k: "x", n: 1, s: "abcd", o: {r: 1}, y1: 2}')$$), E'23514 document is not valid for variant "x" of table "a": Field "s": rule "maxLength", expected at most 3 characters, found 4.\nField "o.r": rule "closed", expected no field of other variants, found int.\nField "y1": rule "closed", expected no field of other variants, found int.', 'three things at once');
SELECT is(pg_temp.detail($$INSERT INTO a (doc) VALUES ('{k: "z", n: 1}')$$), '23514 document does not match a variant of table "a": Field "k": rule "variant", expected a declared variant, found "z".', 'an unknown variant');
SELECT is(pg_temp.detail($$INSERT INTO a (doc) VALUES ('{n: 1}')$$), '23514 document does not match a variant of table "a": Field "k": rule "variant", expected a declared variant, found missing.', 'none');
SELECT is(pg_temp.detail($$INSERT INTO a (doc) VALUES ('{k: "y", s: 1}')$$), '23514 document is not valid for variant "y" of table "a": Field "n": rule "required" of all variants, expected a value, found missing.', 'the common schema');
SELECT results_eq($$SELECT variant, part, path, rule FROM polymorphic_errors('a', '{k: "x", y1: 1}')$$, $$VALUES ('x', 'common', 'n', 'required'), ('x', 'variant', 's', 'required'), ('x', 'closed', 'y1', 'closed')$$, 'polymorphic_errors tells before');
SELECT is_empty($$SELECT polymorphic_errors('a', '{k: "y", n: 1, y1: 7, l: [{m: "no"}]}') EXCEPT SELECT polymorphic_errors('a', '{k: "y", n: 1, y1: 7, l: [{m: "no"}]}')$$, 'it can be called twice');
SELECT is((SELECT string_agg(path, ' ') FROM polymorphic_errors('a', '{k: "y", n: 1, y1: 7, l: [{m: "no"}]}')), 'y1 l.0.m', 'an int is no long; a path into an array');

-- Every kind of write
INSERT INTO a (doc) VALUES ('{_id: 1, k: "x", n: 1, s: "a"}'), ('{_id: 2, k: "y", n: 2, y1: NumberLong(5)}'), ('{_id: 3, k: 7, n: 3}'), ('{_id: 4, k: NumberLong(7), n: 3}');
SELECT throws_ok($$INSERT INTO a (doc) VALUES ('{_id: 1, k: "x", n: 1}') ON CONFLICT DO NOTHING$$, '23514', NULL, 'ON CONFLICT: what is proposed is looked at, as with a CHECK');
SELECT throws_ok($$INSERT INTO a (doc) VALUES ('{_id: 1, k: "x", n: 1, s: "b"}') ON CONFLICT (_id) DO UPDATE SET doc = bson_unset(excluded.doc, 's')$$, '23514', NULL, 'ON CONFLICT DO UPDATE');
SELECT lives_ok($$INSERT INTO a (doc) VALUES ('{_id: 1, k: "x", n: 1, s: "b"}') ON CONFLICT (_id) DO UPDATE SET doc = excluded.doc$$, 'and a good one');
SELECT throws_ok($$MERGE INTO a USING (VALUES (1)) AS v (i) ON a._id = v.i WHEN MATCHED THEN UPDATE SET doc = bson_set(doc, 'k', 'z'::text)$$, '23514', NULL, 'MERGE');
SELECT throws_ok($$UPDATE a SET doc = bson_set(doc, 'y1', 1) WHERE _id = 2$$, '23514', NULL, 'UPDATE');
SELECT lives_ok($$UPDATE a SET doc = bson_set(doc, 'y1', 6::bigint) WHERE _id = 2$$, 'a good UPDATE');
SELECT throws_ok($$COPY a (doc) FROM PROGRAM 'echo "{_id: 5, k: 9}"'$$, '23514', NULL, 'COPY');
DO $$ BEGIN
  BEGIN INSERT INTO a (doc) VALUES ('{_id: 6, k: "y", n: 1}'), ('{_id: 7, k: "x"}'); EXCEPTION WHEN check_violation THEN NULL; END;
  INSERT INTO a (doc) VALUES ('{_id: 6, k: "seven", n: 1}');
EXCEPTION WHEN check_violation THEN INSERT INTO a (doc) VALUES ('{_id: 6, k: 7, n: 1}'); END $$;
SELECT is((SELECT doc ->> 'k' FROM a WHERE _id = 6), '7', 'subtransactions');
SELECT pg_temp.all_true('writes');

-- What was there before stays, and is told
CREATE FUNCTION pg_temp.without(command text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('docpatterns.maintain', 'off', true); EXECUTE command; END $$;
SELECT pg_temp.without($$INSERT INTO a (doc) VALUES ('{_id: 20, k: "x", n: 1}'), ('{_id: 21, k: "w", n: 1}'), ('{_id: 22, k: "y", y1: "no"}')$$);
SELECT bag_eq('SELECT name, key::text, what, expected, found FROM pattern_check()', $$VALUES ('x', '20', 'field "s", rule "required" of variant "x"', 'a value', 'missing'), ('k', '21', 'field "k", rule "variant"', 'a declared variant', '"w"'),
  ('k', '22', 'field "n", rule "required" of variant "y"', 'a value', 'missing'), ('y', '22', 'field "y1", rule "bsonType" of variant "y"', 'long', 'string')$$, 'each is told once, where it belongs');
SELECT is(pg_temp.detail($$SELECT pattern_repair('a', 'x')$$), '23514 1 documents in table "a" do not match their variants: Their keys: 20.', 'what cannot be repaired is named');
SELECT throws_ok($$CALL pattern_build('a', 'k', NULL)$$, '23514', NULL, 'nor built');
SELECT lives_ok($$UPDATE a SET doc = doc WHERE _id = 20$$, 'an update that changes nothing is no new document');
SELECT is((SELECT y1 FROM a_y WHERE _id = 22), NULL, 'a view shows what fits');
DELETE FROM a WHERE _id >= 20;
SELECT lives_ok($$CALL pattern_build('a', 'k', NULL)$$, 'now all is in order');
SELECT is(pattern_repair('a', 'x'), 0::bigint, 'and nothing to repair');

-- Views
SELECT is(pg_temp.columns('a_x'), '_id bson_value, k text, n bson_value, s text, "i.j" bson_value, "o.p" integer, "o.q" boolean, doc bson', 'columns of a variant');
SELECT is(pg_temp.columns('a_y'), '_id bson_value, k text, n bson_value, s bson_value, y1 bigint, "o.r" bson_value, l bson_value, "l.m" bson_value, doc bson', 'a path through an array');
SELECT is(pg_temp.columns('a_common'), '_id bson_value, k text, n bson_value, doc bson', 'columns of all');
UPDATE a SET doc = bson_set(doc, 'l', '[{m: 1}, {}, {m: 2}, 5]'::bson_value) WHERE _id = 2;
SELECT is((SELECT "l.m"::text FROM a_y WHERE _id = 2), '[1, 2]', 'what is inside of an array');
SELECT is((SELECT count(*) FROM a_seven), 3::bigint, '7 is 7');
SELECT lives_ok($$INSERT INTO a_x (doc) VALUES ('{_id: 30, k: "x", n: 1, s: "v"}')$$, 'a view takes documents of its variant');
SELECT throws_ok($$INSERT INTO a_x (doc) VALUES ('{_id: 31, k: "y", n: 1}')$$, '44000', NULL, 'and no others');
SELECT lives_ok($$DELETE FROM a_x WHERE s = 'v'$$, 'and lets them be deleted');
SELECT collection_create('types'); SELECT polymorphic_enable('types', by => 'kind');
SELECT polymorphic_variant('types', 'a', schema => '{properties: {s: {bsonType: "string"}, i: {bsonType: "int"}, l: {bsonType: "long"}, il: {bsonType: ["int", "long"]}, d: {bsonType: "double"}, n: {bsonType: "number"}, c: {bsonType: "decimal"}, b: {bsonType: "bool"},
  t: {bsonType: "date"}, o: {bsonType: "objectId"}, x: {bsonType: "binData"}, m: {bsonType: "object"}, r: {bsonType: "array"}, sn: {bsonType: ["string", "null"]}, si: {bsonType: ["string", "int"]}, e: {enum: ["a", "b"]}, en: {enum: [1, 2]}, z: {}, j: {type: "string"}, al: {allOf: [{bsonType: "int"}, {minimum: 3}]}}}');
SELECT is(pg_temp.columns('types_a'), '_id bson_value, kind text, s text, i integer, l bigint, il bigint, d double precision, n numeric, c numeric, b boolean, t timestamp with time zone, o objectid, x bytea, m bson, r bson_value, sn text, si bson_value, e text, en numeric, z bson_value, j text, al integer, doc bson', 'SQL types of BSON types');
INSERT INTO types (doc) VALUES ('{_id: 1, kind: "a", s: "x\u0000y", sn: null, n: NaN, c: NumberDecimal("1E+100"), m: {a: 1}, o: ObjectId("507f191e810c19729de860ea"), x: BinData(0, "AQI="), e: "b"}');
SELECT is((SELECT ROW(s, sn, n, c, m, o, x, e)::text FROM types_a), $$(,,NaN,10000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000,"{""a"": 1}",507f191e810c19729de860ea,"\\x0102",b)$$, 'values; a string with a NUL is no text');

-- Sub-documents
SELECT collection_create('e'); SELECT polymorphic_enable('e', by => 'ev.list.type', common => '{required: ["n"]}');
SELECT polymorphic_variant('e', 'one', schema => '{required: ["a"], properties: {a: {bsonType: "int"}}}', closed => true), polymorphic_variant('e', 'two', schema => '{properties: {b: {bsonType: "string"}}}');
INSERT INTO e (doc) VALUES ('{_id: 1, ev: {list: [{type: "one", n: 1, a: 5}, {type: "two", n: 2, b: "x"}]}}'), ('{_id: 2, ev: [{list: {type: "two", n: 3}}, {list: [{type: "one", n: 4, a: 6}]}]}'), ('{_id: 3}'), ('{_id: 4, ev: null}'), ('{_id: 5, ev: {list: []}}');
SELECT results_eq('SELECT _id::int, item_path, a, doc ->> ''n'' FROM e_one ORDER BY 1', $$VALUES (1, 'ev.list.0', 5, '1'), (2, 'ev.1.list.0', 6, '4')$$, 'a view of sub-documents, and where they are');
SELECT is((SELECT count(*) FROM e_common), 4::bigint, 'all of them');
SELECT is(pg_temp.detail($$INSERT INTO e (doc) VALUES ('{ev: {list: [{type: "two", n: 1}, {type: "one", n: 1, b: "x"}]}}')$$), E'23514 document is not valid for variant "one" of table "e": Field "ev.list.1.a": rule "required", expected a value, found missing.\nField "ev.list.1.b": rule "closed", expected no field of other variants, found string.', 'paths lead into the array');
SELECT is(pg_temp.detail($$INSERT INTO e (doc) VALUES ('{ev: {list: [5]}}')$$), '23514 document does not match a variant of table "e": Field "ev.list.0": rule "bsonType", expected object, found int.', 'an element that is no document');
SELECT throws_ok($$INSERT INTO e (doc) VALUES ('{ev: "x"}')$$, '23514', NULL, 'nor something else in its place');
SELECT throws_ok($$SELECT polymorphic_variant('e', 'three', indexes => '{a}')$$, '0A000', NULL, 'no indexes of sub-documents');
SELECT results_eq($$SELECT variant, documents FROM polymorphic_variants('e')$$, $$VALUES ('one', 2::bigint), ('two', 2)$$, 'and their number');
SELECT pg_temp.all_true('sub-documents');

-- What some documents of a variant have, its schema names too; and a validator as MongoDB stores it names what its schema does
SELECT collection_create('alt'); SELECT polymorphic_enable('alt', by => 'k', common => '{$jsonSchema: {properties: {c: {bsonType: "int"}}}}');
SELECT polymorphic_variant('alt', 'a', closed => true, schema => '{anyOf: [{required: ["x"]}, {properties: {y: {bsonType: "int"}}}], oneOf: [{}], dependencies: {x: ["z"], v: {required: ["u"]}}, not: {required: ["n"]}, items: [{required: ["i"]}], additionalItems: {required: ["j"]}}'),
       polymorphic_variant('alt', 'b', schema => '{$jsonSchema: {properties: {x: {}, y: {}, z: {}, v: {}, u: {}, n: {}, i: {}, j: {}, only_b: {bsonType: "int"}}}}');
SELECT lives_ok($$INSERT INTO alt (doc) VALUES ('{k: "a", x: 1, y: 1, z: 1, v: 1, u: 1, i: 1, j: 1}')$$, 'closed: what the own schema names for some documents is its own');
SELECT is(pg_temp.detail($$INSERT INTO alt (doc) VALUES ('{k: "a", x: 1, z: 1, only_b: 1}')$$), '23514 document is not valid for variant "a" of table "alt": Field "only_b": rule "closed", expected no field of other variants, found int.', 'but not what $jsonSchema of another one names');
SELECT is((SELECT array_agg(path ORDER BY path) FROM polymorphic_errors('alt', '{k: "a", n: 1, x: 1, z: 1}') WHERE rule = 'closed'), '{n}', 'nor what the own one forbids');
SELECT is(pg_temp.columns('alt_b'), '_id bson_value, k text, c integer, x bson_value, y bson_value, z bson_value, v bson_value, u bson_value, n bson_value, i bson_value, j bson_value, only_b integer, doc bson', 'views have the columns of $jsonSchema');

-- Indexes
SELECT collection_create('i'); SELECT polymorphic_enable('i', by => 'k', unknown => 'accept');
INSERT INTO i (doc) SELECT bson_build('_id', g, 'k', CASE WHEN g % 50 = 0 THEN 'rare' ELSE 'often' END, 'n', g, 'email', 'm' || g) FROM generate_series(1, 2000) g;
SELECT polymorphic_variant('i', 'rare', schema => '{properties: {n: {bsonType: "int"}, email: {bsonType: "string"}}}', indexes => '{n,"email, n",free}', unique_keys => '{email}');
ANALYZE i;
SET enable_seqscan = off;
CREATE FUNCTION pg_temp.plan(query text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE l text; r text := ''; BEGIN FOR l IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP r := r || l; END LOOP; RETURN r; END $$;
SELECT matches(pg_temp.plan('SELECT * FROM i_rare WHERE n = 50'), 'i_rare_n_idx', 'the view is served by the partial index');
SELECT matches(pg_temp.plan($$SELECT * FROM i_rare WHERE email = 'm50'$$), 'i_rare_email_(key|idx)', 'so is the unique key');
RESET enable_seqscan;
SELECT throws_ok($$INSERT INTO i (doc) VALUES ('{k: "rare", email: "m50"}')$$, '23505', NULL, 'a unique key in the variant');
SELECT lives_ok($$INSERT INTO i (doc) VALUES ('{_id: 5000, k: "often", email: "m50"}'), ('{_id: 5001, k: "rare"}'), ('{_id: 5002, k: "rare"}')$$, 'not in others, and not without the field');
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 'i'::regclass), 5::bigint, 'four indexes and the primary key');
DROP INDEX i_rare_n_idx;
SELECT bag_eq($$SELECT name, what, found FROM pattern_check('i')$$, $$VALUES ('rare', 'index on n', 'missing')$$, 'an index that is missing is told');
DROP VIEW i_rare; DROP VIEW i_common;
SELECT is((SELECT count(*) FROM pattern_check('i')), 3::bigint, 'so are views');
SELECT pattern_repair('i', 'rare'), pattern_repair('i', 'k');
SELECT pg_temp.all_true('repair');
ALTER VIEW i_rare RENAME TO rarities;
SELECT pattern_alter('i', 'rare', '{unique_keys: [], schema: {properties: {n: {bsonType: "long"}}}}');
SELECT is(pg_temp.columns('rarities'), '_id bson_value, k text, n bigint, doc bson', 'pattern_alter makes the view anew, whatever its name');
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 'i'::regclass), 4::bigint, 'and the indexes');
SELECT lives_ok($$INSERT INTO i (doc) VALUES ('{_id: 5003, k: "rare", email: "m50"}')$$, 'the key is no key any more');
SELECT is(pattern_disable('i', 'rare'), 0::bigint, 'pattern_disable of a variant');
SELECT is((SELECT count(*) FROM pg_index WHERE indrelid = 'i'::regclass), 1::bigint, 'takes its indexes along');
SELECT hasnt_view('rarities', 'and its view');
SELECT throws_ok($$SELECT pattern_alter('a', 'k', '{by: "z"}')$$, '22023', NULL, 'by stays');
SELECT throws_ok($$SELECT pattern_alter('a', 'x', '{value: 1}')$$, '22023', NULL, 'value stays');
SELECT throws_ok($$SELECT pattern_alter('a', 'x', '{closed: 1}')$$, '22023', NULL, 'closed is true or false');
SELECT is(pg_temp.detail($$SELECT pattern_disable('a', 'seven')$$), '23514 table "a" has documents of variant "seven": Their keys: 3, 4, 6.', 'documents of a variant keep it');
SELECT is(pattern_disable('a', 'seven', keep_data => true), 0::bigint, 'unless they are to stay');
SELECT is((SELECT count(*) FROM pattern_check('a')), 3::bigint, 'and are told then');
SELECT pattern_alter('a', 'k', '{unknown: "accept", common: null}');
SELECT pg_temp.all_true('accepted');
SELECT is(pg_temp.columns('a_common'), '_id bson_value, k text, doc bson', 'views follow the common schema');

-- Another variant
SELECT collection_create('r'); SELECT polymorphic_enable('r', by => 'k'), polymorphic_variant('r', 'a'), polymorphic_variant('r', 'b', schema => '{required: ["total"]}');
INSERT INTO r (doc) SELECT bson_build('_id', g, 'k', 'a', 'x', g, 'y', 10) FROM generate_series(1, 5) g;
CREATE FUNCTION to_b(bson) RETURNS bson LANGUAGE sql IMMUTABLE AS $$ SELECT bson_set($1, 'total', ($1 -> 'x')::int + ($1 -> 'y')::int) $$;
CREATE FUNCTION other(text) RETURNS bson LANGUAGE sql AS $$ SELECT NULL::bson $$;
SELECT throws_ok($$SELECT polymorphic_retype('r', 1, 'b')$$, '23514', NULL, 'a document has to become what its variant asks for');
SELECT ok(polymorphic_retype('r', 1, 'b', change_update => '{$set: {total: 5}, $unset: {x: 1}}'), 'by an update document');
SELECT ok(polymorphic_retype('r', 2, 'b', change => 'to_b(bson)'), 'or a function');
SELECT results_eq('SELECT doc::text FROM r WHERE _id <= 2 ORDER BY _id', ARRAY['{"_id": 1, "k": "b", "y": 10, "total": 5}', '{"_id": 2, "k": "b", "x": 2, "y": 10, "total": 12}'], 'and is it then');
SELECT ok(NOT polymorphic_retype('r', 99, 'b'), 'no such document');
SELECT throws_ok(format('SELECT polymorphic_retype(%s)', args), state, NULL, 'retype: ' || what) FROM (VALUES ($$'r', NULL, 'b'$$, '22004', 'no key'), ($$'r', 1, 'c'$$, '42704', 'no such variant'),
  ($$'r', 1, 'b', change => 'other(text)'$$, '42804', 'a function of another kind'), ($$'r', 1, 'b', '{}', 'to_b(bson)'$$, '22023', 'two changes'), ($$'r', 1, 'b', item_path => 'q'$$, '22023', 'no such place'), ($$'r', ROW(1, 2), 'b'$$, '42809', 'a key of another type')) AS v (args, state, what);
SELECT is(polymorphic_retype_all('r', 'a', 'b', filter => '{x: {$gt: 3}}', change => 'to_b(bson)'), 2::bigint, 'many at once');
SELECT results_eq($$SELECT variant, documents FROM polymorphic_variants('r')$$, $$VALUES ('a', 1::bigint), ('b', 4)$$, 'that is what there is now');
SELECT ok(polymorphic_retype('e', 1, 'two', change_update => '{$unset: {a: 1}}', item_path => 'ev.list.0'), 'a sub-document');
SELECT throws_ok($$SELECT polymorphic_retype('e', 1, 'two')$$, '22023', NULL, 'of several, one has to be named');
SELECT is((SELECT doc::text FROM e WHERE _id = 1), '{"_id": 1, "ev": {"list": [{"type": "two", "n": 1}, {"type": "two", "n": 2, "b": "x"}]}}', 'it is of the other variant');

-- Proposals can be used as they are
SELECT collection_create('inf');
INSERT INTO inf (doc) SELECT CASE g % 4 WHEN 0 THEN bson_build('_id', g, 'kind', 'int', 'v', g, 'when', timestamptz '2020-01-01') WHEN 1 THEN bson_build('_id', g, 'kind', 'mix', 'v', CASE WHEN g % 8 = 1 THEN to_bson(g::float8) ELSE to_bson(g::bigint) END, 'sub', bson_build('a', g, 'b', bson_array(1, 'x')))
  WHEN 2 THEN bson_build('_id', g, 'kind', 'enum', 'v', (ARRAY['p', 'q'])[1 + g % 3 % 2], 'list', bson_array(bson_build('z', g), bson_build())) ELSE bson_build('_id', g, 'kind', 3, 'opt', CASE WHEN g % 8 = 3 THEN g END) END FROM generate_series(1, 80) g;
SELECT is((SELECT schema::text FROM polymorphic_infer('inf', 'kind') WHERE variant = 'enum'), '{"required": ["v", "list"], "properties": {"v": {"bsonType": "string", "enum": ["p", "q"]}, "list": {"bsonType": "array", "items": {"bsonType": "object", "properties": {"z": {"bsonType": "int"}}}}}}', 'few strings that occur again and again are an enum');
SELECT is((SELECT schema::text FROM polymorphic_infer('inf', 'kind') WHERE variant = 'mix'), '{"required": ["v", "sub"], "properties": {"v": {"bsonType": "number"}, "sub": {"bsonType": "object", "required": ["a", "b"], "properties": {"a": {"bsonType": "int"}, "b": {"bsonType": "array", "items": {"bsonType": ["string", "int"]}}}}}}', 'numbers of two types are numbers');
SELECT is((SELECT schema::text FROM polymorphic_infer('inf', 'kind', enum_max => 1) WHERE variant = 'enum'), '{"required": ["v", "list"], "properties": {"v": {"bsonType": "string"}, "list": {"bsonType": "array", "items": {"bsonType": "object", "properties": {"z": {"bsonType": "int"}}}}}}', 'no enum of more than enum_max');
SELECT command FROM polymorphic_infer('inf', 'kind') \gexec
SELECT is((SELECT count(*) FROM pattern_list('inf')), 5::bigint, 'the commands declare all');
SELECT pg_temp.all_true('proposals');
SELECT is((SELECT count(*) FROM polymorphic_infer('inf') WHERE command LIKE 'SELECT pattern_alter(%'), 4::bigint, 'what is declared is altered');
SELECT throws_ok($$SELECT * FROM polymorphic_infer('b')$$, '42704', NULL, 'no field and no declaration');
SELECT throws_ok($$SELECT * FROM polymorphic_infer('inf', '_id', enum_max => -1)$$, '22023', NULL, 'a negative number of strings');
INSERT INTO b (doc) SELECT bson_build('_id', g) FROM generate_series(1, 201) g;
SELECT throws_ok($$SELECT * FROM polymorphic_infer('b', '_id')$$, '54000', NULL, 'too many kinds');

-- Schemas are twice as deep as documents
SELECT collection_create('deep');
INSERT INTO deep (doc) SELECT format('{"k": "%s", "d": %s1%s}', k, repeat(b, n / length(replace(b, '"a":', ''))), repeat(e, n / length(e)))::bson
  FROM (VALUES ('documents', '{"a":', '}'), ('arrays', '[', ']'), ('both', '[{"a":', '}]')) AS v (k, b, e), generate_series(40, 98, 2) n;
SELECT command FROM polymorphic_infer('deep', 'k') \gexec
SELECT is((SELECT count(*) FROM pattern_list('deep')), 4::bigint, 'proposals for documents that are nested deeply');
SELECT pg_temp.all_true('what is too deep for a schema is free');

-- Hostile names
CREATE SCHEMA "W eird"; CREATE TABLE "W eird"."T '"" t" ("k'ey" int, "key 2" text COLLATE "C", "d ""oc" bson, "Other" int, PRIMARY KEY ("k'ey", "key 2"));
SELECT polymorphic_enable('"W eird"."T ''"" t"', by => '"a b"."c''.""d"', common => '{required: ["it''s"]}', name => 'n''"m');
SELECT polymorphic_variant('"W eird"."T ''"" t"', 'v''"x', schema => '{properties: {"a\"b": {bsonType: "int"}, "": {}, "Other": {}, "x.y": {properties: {"z ''": {bsonType: "string"}}}}}');
INSERT INTO "W eird"."T '"" t" VALUES (1, 'k', '{"a b": [{"c''.\"d": "v''\"x", "it''s": 1, "a\"b": 5, "x.y": {"z ''": "q"}}]}');
SELECT is((SELECT ROW("k'ey", "Other", item_path, "c'.""d", "it's"::text, "a""b", "Other_2", "x.y.z '")::text FROM "W eird"."T '"" t_v'""x"), $$(1,,"a b.0","v'""x",1,5,,q)$$, 'hostile names');
SELECT throws_ok($$INSERT INTO "W eird"."T '"" t" VALUES (2, 'k', '{"a b": {"c''.\"d": "v''\"x"}}')$$, '23514', NULL, 'and they are refused');
SELECT pattern_disable('"W eird"."T ''"" t"', 'n''"m');
SELECT is_empty($$SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'W eird' AND c.relkind = 'v'$$, 'nothing is left behind');
DROP SCHEMA "W eird" CASCADE;

-- Partitions
CREATE TABLE p (id int PRIMARY KEY, doc bson) PARTITION BY RANGE (id);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10);
SELECT polymorphic_enable('p', by => 'k'), polymorphic_variant('p', 'a', schema => '{required: ["x"]}', indexes => '{x}');
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20);
CREATE TABLE p3 (doc bson, id int PRIMARY KEY); INSERT INTO p3 VALUES ('{k: "a", x: 1}', 25); ALTER TABLE p ATTACH PARTITION p3 FOR VALUES FROM (20) TO (30);
SELECT throws_ok(format($$INSERT INTO %s (id, doc) VALUES (%s, '{k: "a"}')$$, t, i), '23514', NULL, t || ' is looked at') FROM (VALUES ('p', 1), ('p', 15), ('p2', 16), ('p3', 26)) AS v (t, i);
INSERT INTO p VALUES (1, '{k: "a", x: 1}'); UPDATE p SET id = 21 WHERE id = 1;
SELECT is((SELECT count(*) FROM p_a), 2::bigint, 'one view for all');
SELECT throws_ok($$SELECT polymorphic_enable('p1', by => 'z')$$, '42809', NULL, 'a partition itself cannot be declared');
SELECT pattern_alter('p', 'a', '{schema: {required: ["y"]}}');
SELECT throws_ok($$INSERT INTO p2 VALUES (12, '{k: "a", x: 1}')$$, '23514', NULL, 'partitions hear of changes');
ALTER TABLE p DETACH PARTITION p2;
SELECT lives_ok($$INSERT INTO p2 VALUES (12, '{k: "a"}')$$, 'a table that was a partition is free');
DROP TABLE p, p2 CASCADE;

-- Beside other patterns: parts that lie elsewhere count
SELECT collection_create('m'); SELECT polymorphic_enable('m', by => 'k'), polymorphic_variant('m', 'film', schema => '{required: ["title", "cast"], properties: {cast: {bsonType: "array", minItems: 4}}}');
SELECT subset_fields_enable('m', cold => '{specs,cast}'); SELECT outlier_enable('m', field => 'votes', threshold => 3, flag => 'more');
SELECT pattern_alter('m', 'film', '{schema: {required: ["title", "cast", "specs"], properties: {cast: {bsonType: "array", minItems: 4}, votes: {minItems: 2}}}}');
INSERT INTO m (doc) VALUES ('{_id: 1, k: "film", title: "A", cast: [1, 2, 3, 4], specs: {}, votes: [1, 2, 3, 4, 5, 6]}');
SELECT is((SELECT doc::text FROM m), '{"_id": 1, "k": "film", "title": "A", "votes": [1, 2, 3], "more": true}', 'fields are split off');
SELECT lives_ok($$UPDATE m SET doc = bson_set(doc, 'title', 'B') WHERE _id = 1$$, 'an update of the rest');
SELECT throws_ok($$UPDATE m SET doc = bson_unset(doc, 'title') WHERE _id = 1$$, '23514', NULL, 'is looked at with them');
SELECT throws_ok($$UPDATE m_whole SET doc = bson_unset(doc, 'specs') WHERE _id = 1$$, '23514', NULL, 'so is a whole document');
SELECT throws_ok($$UPDATE m SET doc = bson_set(doc, 'cast', '[1]'::bson_value) WHERE _id = 1$$, '23514', NULL, 'and what would lie aside');
SELECT pg_temp.all_true('other patterns');

-- Polymorphic, versioned in its shape and in its history, with fields that are packed: each sees what the ones before it made
SELECT collection_create('all_at_once');
SELECT polymorphic_enable('all_at_once', by => 'kind', common => '{required: ["name", "version"]}'), polymorphic_variant('all_at_once', 'film', schema => '{required: ["releases"], properties: {releases: {bsonType: "array", items: {required: ["location", "date"]}}}}');
SELECT schema_versioning_enable('all_at_once', field => 'version', current => 2, write => 'upgrade'), schema_versioning_step('all_at_once', 1, 2, up_update => '[{"$set": {"name": "$title"}}]', down_update => '[{"$unset": "name"}]');
SELECT versioning_enable('all_at_once', revision_field => 'revision', storage => 'delta'), attribute_enable('all_at_once', into_field => 'releases', pattern => 'release_{location}', value_field => 'date');
INSERT INTO all_at_once (doc) VALUES ('{_id: 1, kind: "film", title: "Star Wars", release_US: 1977, release_DK: 1978}');
SELECT is((SELECT bson_unset(doc, 'revision')::text FROM all_at_once), '{"_id": 1, "version": 2, "kind": "film", "title": "Star Wars", "releases": [{"location": "US", "date": 1977}, {"location": "DK", "date": 1978}], "name": "Star Wars"}', 'upgraded, packed, looked at');
SELECT throws_ok($$INSERT INTO all_at_once (doc) VALUES ('{_id: 2, kind: "film", title: "x"}')$$, '23514', NULL, 'nothing to pack');
SELECT throws_ok($$INSERT INTO all_at_once (doc) VALUES ('{_id: 2, kind: "film", release_US: 1}')$$, '23514', NULL, 'nothing to upgrade from');
UPDATE all_at_once SET doc = bson_set(doc, 'release_SE', 1979) WHERE _id = 1;
SELECT throws_ok($$UPDATE all_at_once SET doc = bson_set(doc, 'kind', 'song'::text)$$, '23514', NULL, 'a refused update makes no revision');
SELECT is((SELECT doc -> 'revision' FROM all_at_once), '2'::bson_value, 'two revisions');
SELECT is((SELECT bson_array_length(versioning_at('all_at_once', 1, 1) -> 'releases')), 2, 'the first one as it was');
SELECT pg_temp.all_true('all at once');
DROP TABLE all_at_once CASCADE;

-- Who may do what
CREATE ROLE poly_writer; CREATE ROLE poly_owner;
GRANT SELECT, INSERT ON r TO poly_writer;
GRANT CREATE, USAGE ON SCHEMA public TO poly_owner;
SET ROLE poly_writer;
SELECT throws_ok($$SELECT polymorphic_variant('r', 'c')$$, '42501', NULL, 'others declare nothing');
SELECT throws_ok($$SELECT pattern_check('r')$$, '42501', NULL, 'and check nothing');
SELECT throws_ok($$INSERT INTO r (doc) VALUES ('{k: "b"}')$$, '23514', NULL, 'a writer is told the same');
SELECT lives_ok($$INSERT INTO r (doc) VALUES ('{_id: 50, k: "a"}')$$, 'and may write');
SELECT throws_ok($$SELECT polymorphic_retype('r', 50, 'b', '{$set: {total: 1}}')$$, '42501', NULL, 'retype needs UPDATE');
RESET ROLE;
ALTER TABLE r OWNER TO poly_owner;
SELECT view_owner_is('r_b', 'poly_owner', 'views follow their table to its owner');
SELECT is(pattern_disable('r', 'k'), 0::bigint, 'pattern_disable of all');
SELECT is_empty($$SELECT * FROM pattern_list('r')$$, 'takes the variants along');
SELECT hasnt_view('r_b', 'and their views'); SELECT hasnt_view('r_common', 'and the common one');
DROP TABLE r; DROP OWNED BY poly_writer, poly_owner; DROP ROLE poly_writer, poly_owner;

-- Two fields of one table
SELECT collection_create('two'); SELECT polymorphic_enable('two', by => 'k'), polymorphic_enable('two', by => 'parts.k', unknown => 'accept');
SELECT throws_ok($$SELECT polymorphic_variant('two', 'x')$$, '22023', NULL, 'of several, one has to be named');
SELECT polymorphic_variant('two', 'x', of => 'k'), polymorphic_variant('two', 'x', of => 'parts.k', name => 'px', schema => '{required: ["z"]}');
SELECT bag_eq($$SELECT relname::text FROM pg_class WHERE relkind = 'v' AND relname LIKE 'two%'$$, ARRAY['two_common', 'two_parts.k_common', 'two_x', 'two_parts.k_x'], 'views of both');
SELECT throws_ok($$INSERT INTO two (doc) VALUES ('{k: "x", parts: [{k: "y"}, {k: "x"}]}')$$, '23514', NULL, 'both look');
SELECT lives_ok($$DROP TABLE two CASCADE$$, 'DROP TABLE');
SELECT is_empty($$SELECT FROM pg_class WHERE relname LIKE 'two%'$$, 'leaves nothing behind');

-- A seeded random run: what is accepted is what bson_validate accepts
SELECT collection_create('z'), setseed(0.20268);
SELECT polymorphic_enable('z', by => 'k', common => '{properties: {c: {bsonType: "int", minimum: 0}}}'), polymorphic_variant('z', 'a', schema => '{required: ["a1", "long_name_of_a_field"], properties: {a1: {bsonType: ["int", "string"]}, o: {required: ["p"], properties: {p: {enum: [1, "x", null]}}}}}', closed => true),
  polymorphic_variant('z', 'b', schema => '{properties: {b1: {bsonType: "array", maxItems: 2, items: {bsonType: "int"}}, b2: {}}, minProperties: 3}'), polymorphic_variant('z', 'c', schema => '{required: ["a1"], additionalProperties: false, properties: {_id: {}, k: {}, c: {}, a1: {}}}');
CREATE FUNCTION pg_temp.value() RETURNS bson_value LANGUAGE sql VOLATILE AS $$ SELECT (ARRAY['1', '-5', '"x"', 'null', 'true', '[1, 2]', '[1, "a"]', '[1, 2, 3]', '{p: 1}', '{p: "y"}', '{}', '1.5']::bson_value[])[1 + floor(random() * 12)] $$;
CREATE FUNCTION pg_temp.document(i int) RETURNS bson LANGUAGE plpgsql VOLATILE AS $$
DECLARE d bson := bson_build('_id', i); f text;
BEGIN
  IF random() < 0.95 THEN d := bson_set(d, 'k', (ARRAY['"a"', '"a"', '"b"', '"b"', '"c"', '"d"', '1']::bson_value[])[1 + floor(random() * 7)]); END IF;
  FOREACH f IN ARRAY CASE WHEN random() < 0.5 THEN ARRAY['a1', 'b1', 'o', 'c', 'b2', 'long_name_of_a_field'] ELSE ARRAY['long_name_of_a_field', 'c', 'o', 'b2', 'b1', 'a1'] END LOOP
    IF random() < 0.6 THEN d := bson_set(d, f, pg_temp.value()); END IF;
  END LOOP;
  RETURN d;
END $$;
-- the model: the schemas, and closed by hand
CREATE FUNCTION pg_temp.model(d bson) RETURNS boolean LANGUAGE sql AS $$
  SELECT bson_validate(d, '{properties: {c: {bsonType: "int", minimum: 0}}}') AND CASE d ->> 'k'
    WHEN 'a' THEN bson_validate(d, '{required: ["a1", "long_name_of_a_field"], properties: {a1: {bsonType: ["int", "string"]}, o: {required: ["p"], properties: {p: {enum: [1, "x", null]}}}}}') AND NOT d ?| ARRAY['b1', 'b2']
    WHEN 'b' THEN bson_validate(d, '{properties: {b1: {bsonType: "array", maxItems: 2, items: {bsonType: "int"}}, b2: {}}, minProperties: 3}')
    WHEN 'c' THEN bson_validate(d, '{required: ["a1"], additionalProperties: false, properties: {_id: {}, k: {}, c: {}, a1: {}}}') ELSE false END $$;
CREATE TABLE tried (i int, d bson, taken boolean);
DO $$ DECLARE d bson; BEGIN
  FOR i IN 1 .. 3000 LOOP
    d := pg_temp.document(i);
    BEGIN
      INSERT INTO z (doc) VALUES (d);
      INSERT INTO tried VALUES (i, d, true);
    EXCEPTION WHEN check_violation THEN INSERT INTO tried VALUES (i, d, false); END;
  END LOOP;
END $$;
SELECT is((SELECT count(*) FROM tried WHERE taken IS DISTINCT FROM pg_temp.model(d)), 0::bigint, 'seed 0.20268: 3000 documents, taken or not as the model says');
SELECT cmp_ok((SELECT count(*) FROM tried WHERE taken), '>', 100::bigint, 'some were taken');
SELECT is((SELECT count(*) FROM tried WHERE taken <> NOT EXISTS (SELECT FROM polymorphic_errors('z', d))), 0::bigint, 'polymorphic_errors agrees');
SELECT pg_temp.all_true('the random run');
SELECT * FROM finish();
DROP TABLE a, b, types, e, i, inf, m, z, tried, no_key CASCADE; DROP FUNCTION to_b, other;
