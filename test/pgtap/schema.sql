-- Schemas: signatures, every keyword case by case, errors, reports, and use in constraints.
\set QUIET 1
SET client_min_messages = warning;
BEGIN;
SELECT plan(167);

SELECT function_returns('bson_validate', ARRAY['bson', 'bson'], 'boolean', 'bson_validate');
SELECT function_returns('bson_schema_errors', ARRAY['bson', 'bson'], 'setof record', 'bson_schema_errors');
SELECT is((SELECT count(*) FROM pg_proc WHERE proname IN ('bson_validate', 'bson_schema_errors') AND provolatile = 'i' AND proisstrict AND proparallel = 's'), 2::bigint, 'immutable, strict, parallel safe');

-- a document is valid exactly when there is nothing to report
CREATE FUNCTION valid(d text, s text) RETURNS boolean LANGUAGE sql AS $$
  SELECT CASE WHEN bson_validate(d::bson, s::bson) = NOT EXISTS (SELECT FROM bson_schema_errors(d::bson, s::bson)) AND
                   bson_validate(d::bson, s::bson) = (d::bson @@ ('{$jsonSchema: ' || s || '}')::bson) THEN bson_validate(d::bson, s::bson) END $$;

SELECT is(valid(d, s), want, d || CASE WHEN want THEN ' fits ' ELSE ' does not fit ' END || s) FROM (VALUES
-- types
('{}', '{}', true), ('{}', '{bsonType: "object"}', true), ('{}', '{type: "object"}', true), ('{}', '{bsonType: "array"}', false),
('{a: 1}', '{properties: {a: {bsonType: "int"}}}', true), ('{a: NumberLong(1)}', '{properties: {a: {bsonType: "int"}}}', false), ('{a: NumberLong(1)}', '{properties: {a: {bsonType: ["int", "long"]}}}', true),
('{a: 1.5}', '{properties: {a: {bsonType: "number"}}}', true), ('{a: NumberDecimal("1")}', '{properties: {a: {type: "number"}}}', true), ('{a: "1"}', '{properties: {a: {type: ["number", "null"]}}}', false),
('{a: null}', '{properties: {a: {type: ["number", "null"]}}}', true), ('{}', '{properties: {a: {bsonType: "int"}}}', true), ('{a: null}', '{properties: {a: {bsonType: "int"}}}', false),
('{a: [1]}', '{properties: {a: {bsonType: "int"}}}', false), ('{a: true}', '{properties: {a: {type: "boolean"}}}', true), ('{a: true}', '{properties: {a: {bsonType: "bool"}}}', true),
('{a: MinKey}', '{properties: {a: {bsonType: "minKey"}}}', true), ('{a: ObjectId("507f191e810c19729de860ea")}', '{properties: {a: {bsonType: "objectId"}}}', true), ('{a: ISODate("2020-01-01")}', '{properties: {a: {bsonType: "date"}}}', true),
-- required and dependencies
('{a: 1}', '{required: ["a"]}', true), ('{a: null}', '{required: ["a"]}', true), ('{b: 1}', '{required: ["a", "b"]}', false), ('{a: 1, a: 2}', '{required: ["a", "b"]}', false),
('{a: 5}', '{properties: {a: {required: ["b"]}}}', true), ('{a: {}}', '{properties: {a: {required: ["b"]}}}', false),
('{a: 1}', '{dependencies: {a: ["b"]}}', false), ('{a: 1, b: 1}', '{dependencies: {a: ["b"]}}', true), ('{b: 1}', '{dependencies: {a: ["b"]}}', true),
('{a: 1}', '{dependencies: {a: {required: ["c"]}}}', false), ('{a: 1, c: 1}', '{dependencies: {a: {required: ["c"]}}}', true), ('{}', '{dependencies: {a: {required: ["c"]}}}', true),
-- fields
('{a: 1, b: 2}', '{properties: {a: {}}, additionalProperties: false}', false), ('{a: 1}', '{properties: {a: {}}, additionalProperties: false}', true), ('{a: 1, b: 2}', '{additionalProperties: true}', true),
('{a: 1, b: "x"}', '{properties: {a: {}}, additionalProperties: {bsonType: "string"}}', true), ('{a: 1, b: 2}', '{properties: {a: {}}, additionalProperties: {bsonType: "string"}}', false),
('{abc: 1}', '{patternProperties: {"^a": {bsonType: "int"}}, additionalProperties: false}', true), ('{abc: "x"}', '{patternProperties: {"^a": {bsonType: "int"}}}', false), ('{bc: 1}', '{patternProperties: {"^a": {}}, additionalProperties: false}', false),
('{abc: 1}', '{properties: {abc: {bsonType: "int"}}, patternProperties: {c: {bsonType: "string"}}}', false), ('{b: 1}', '{required: ["b"], additionalProperties: false}', false),
('{a: 1}', '{minProperties: 2}', false), ('{a: 1, b: 2}', '{minProperties: 2, maxProperties: 2}', true), ('{a: 1, b: 2, c: 3}', '{maxProperties: 2}', false),
-- numbers
('{a: 5}', '{properties: {a: {minimum: 5, maximum: 5.0}}}', true), ('{a: 4.9}', '{properties: {a: {minimum: 5}}}', false), ('{a: 5}', '{properties: {a: {minimum: 5, exclusiveMinimum: true}}}', false), ('{a: 5}', '{properties: {a: {minimum: 5, exclusiveMinimum: false}}}', true),
('{a: NumberDecimal("5.1")}', '{properties: {a: {maximum: 5}}}', false), ('{a: 5}', '{properties: {a: {maximum: 5, exclusiveMaximum: true}}}', false), ('{a: "x"}', '{properties: {a: {minimum: 5}}}', true), ('{a: NaN}', '{properties: {a: {minimum: 5}}}', false), ('{a: NaN}', '{properties: {a: {maximum: 5}}}', false),
('{a: 9}', '{properties: {a: {multipleOf: 3}}}', true), ('{a: 10}', '{properties: {a: {multipleOf: 3}}}', false), ('{a: 0.3}', '{properties: {a: {multipleOf: 0.1}}}', true), ('{a: 0.35}', '{properties: {a: {multipleOf: 0.1}}}', false),
('{a: NumberDecimal("0.30")}', '{properties: {a: {multipleOf: NumberDecimal("0.1")}}}', true), ('{a: Infinity}', '{properties: {a: {multipleOf: 2}}}', false), ('{a: "x"}', '{properties: {a: {multipleOf: 2}}}', true), ('{a: NumberLong("-9223372036854775808")}', '{properties: {a: {multipleOf: 1}}}', true),
-- strings
('{a: "äöü"}', '{properties: {a: {minLength: 3, maxLength: 3}}}', true), ('{a: "ab"}', '{properties: {a: {minLength: 3}}}', false), ('{a: "abcd"}', '{properties: {a: {maxLength: 3.0}}}', false), ('{a: 5}', '{properties: {a: {minLength: 3}}}', true),
('{a: "abc"}', '{properties: {a: {pattern: "b"}}}', true), ('{a: "abc"}', '{properties: {a: {pattern: "^b"}}}', false), ('{a: 5}', '{properties: {a: {pattern: "^b"}}}', true),
-- arrays
('{a: [1, 2]}', '{properties: {a: {items: {bsonType: "int"}}}}', true), ('{a: [1, "x"]}', '{properties: {a: {items: {bsonType: "int"}}}}', false), ('{a: []}', '{properties: {a: {items: {bsonType: "int"}}}}', true), ('{a: "x"}', '{properties: {a: {items: {bsonType: "int"}}}}', true),
('{a: [1, "x", 5]}', '{properties: {a: {items: [{bsonType: "int"}, {bsonType: "string"}]}}}', true), ('{a: ["x"]}', '{properties: {a: {items: [{bsonType: "int"}, {bsonType: "string"}]}}}', false),
('{a: [1, "x", 5]}', '{properties: {a: {items: [{}, {}], additionalItems: false}}}', false), ('{a: [1, "x"]}', '{properties: {a: {items: [{}, {}], additionalItems: false}}}', true), ('{a: [1, "x"]}', '{properties: {a: {items: [{}], additionalItems: {bsonType: "int"}}}}', false),
('{a: [1, "x"]}', '{properties: {a: {items: {}, additionalItems: false}}}', true), ('{a: [1]}', '{properties: {a: {minItems: 2}}}', false), ('{a: [1, 2]}', '{properties: {a: {minItems: 2, maxItems: 2}}}', true), ('{a: [1, 2, 3]}', '{properties: {a: {maxItems: 2}}}', false),
('{a: [1, 2, 1.0]}', '{properties: {a: {uniqueItems: true}}}', false), ('{a: [1, "1", [1]]}', '{properties: {a: {uniqueItems: true}}}', true), ('{a: [{x: 1, y: 2}, {y: 2, x: 1}]}', '{properties: {a: {uniqueItems: true}}}', false), ('{a: [1, 1]}', '{properties: {a: {uniqueItems: false}}}', true),
('{a: [1, 2, 3, 4, 5, 6, 7, 8, 9, {p: 1, q: [2]}, 11, {q: [2.0], p: NumberLong(1)}]}', '{properties: {a: {uniqueItems: true}}}', false), ('{a: [1, 2, 3, 4, 5, 6, 7, 8, 9, {p: 1, q: [2]}, 11, {q: [2.0], p: 2}]}', '{properties: {a: {uniqueItems: true}}}', true),
-- logic
('{a: 1}', '{properties: {a: {enum: [1, "x", null]}}}', true), ('{a: 1.0}', '{properties: {a: {enum: [1, "x"]}}}', true), ('{a: 2}', '{properties: {a: {enum: [1, "x"]}}}', false), ('{a: {y: 1, x: 2}}', '{properties: {a: {enum: [{x: 2, y: 1}]}}}', true), ('{a: [1]}', '{properties: {a: {enum: [1]}}}', false), ('{a: 1}', '{enum: [{a: 1}]}', true),
('{a: 1}', '{allOf: [{required: ["a"]}, {properties: {a: {minimum: 0}}}]}', true), ('{a: -1}', '{allOf: [{required: ["a"]}, {properties: {a: {minimum: 0}}}]}', false),
('{a: 1}', '{anyOf: [{required: ["a"]}, {required: ["b"]}]}', true), ('{c: 1}', '{anyOf: [{required: ["a"]}, {required: ["b"]}]}', false),
('{a: 1}', '{oneOf: [{required: ["a"]}, {required: ["b"]}]}', true), ('{a: 1, b: 1}', '{oneOf: [{required: ["a"]}, {required: ["b"]}]}', false), ('{}', '{oneOf: [{required: ["a"]}, {required: ["b"]}]}', false),
('{a: 1}', '{not: {required: ["a"]}}', false), ('{}', '{not: {required: ["a"]}}', true), ('{}', '{title: "T", description: "D"}', true)
) AS t (d, s, want);
SELECT ok(bson_validate('{a: 1}', '{$jsonSchema: {required: ["a"]}}') AND NOT bson_validate('{}', '{$jsonSchema: {required: ["a"]}}'), 'a validator as MongoDB keeps it');

-- bad schemas
CREATE FUNCTION complaint(s text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE state text; detail text;
BEGIN
  PERFORM bson_validate('{}', s::bson);
  RETURN 'none';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, detail = PG_EXCEPTION_DETAIL;
  RETURN state || ' ' || detail;
END $$;
SELECT is(complaint(s), want, s) FROM (VALUES
('{foo: 1}', '0A000 At path "foo".'), ('{properties: {a: {format: "date"}}}', '0A000 At path "properties.a.format".'), ('{items: [{}, {$ref: "x"}]}', '0A000 At path "items.1.$ref".'),
('{bsonType: "integer"}', '22023 At path "bsonType".'), ('{type: "integer"}', '22023 At path "type".'), ('{type: "objectId"}', '22023 At path "type".'), ('{bsonType: 2}', '22023 At path "bsonType".'), ('{bsonType: []}', '22023 At path "bsonType".'), ('{bsonType: ["int", "int"]}', '22023 At path "bsonType.1".'),
('{type: "object", bsonType: "object"}', '22023 At path "bsonType".'), ('{required: []}', '22023 At path "required".'), ('{required: ["a", "a"]}', '22023 At path "required.1".'), ('{required: "a"}', '22023 At path "required".'), ('{required: [1]}', '22023 At path "required.0".'),
('{properties: 1}', '22023 At path "properties".'), ('{properties: {a: 1}}', '22023 At path "properties.a".'), ('{properties: {a: {}, a: {}}}', '22023 At path "properties.a".'), ('{patternProperties: {"(": {}}}', '2201B At path "patternProperties.(".'), ('{additionalProperties: 1}', '22023 At path "additionalProperties".'),
('{dependencies: {a: 1}}', '22023 At path "dependencies.a".'), ('{dependencies: {a: []}}', '22023 At path "dependencies.a".'), ('{dependencies: {a: [1]}}', '22023 At path "dependencies.a".'), ('{minProperties: -1}', '22023 At path "minProperties".'), ('{maxProperties: 1.5}', '22023 At path "maxProperties".'),
('{minimum: "1"}', '22023 At path "minimum".'), ('{maximum: null}', '22023 At path "maximum".'), ('{exclusiveMinimum: true}', '22023 At path "exclusiveMinimum".'), ('{maximum: 1, exclusiveMaximum: 1}', '22023 At path "exclusiveMaximum".'), ('{multipleOf: 0}', '22023 At path "multipleOf".'), ('{multipleOf: "a"}', '22023 At path "multipleOf".'),
('{minLength: "a"}', '22023 At path "minLength".'), ('{maxLength: -1}', '22023 At path "maxLength".'), ('{pattern: 1}', '22023 At path "pattern".'), ('{properties: {a: {pattern: "("}}}', '2201B At path "properties.a.pattern".'), ('{items: 1}', '22023 At path "items".'), ('{items: [1]}', '22023 At path "items.0".'), ('{additionalItems: "x"}', '22023 At path "additionalItems".'),
('{minItems: 0.5}', '22023 At path "minItems".'), ('{maxItems: []}', '22023 At path "maxItems".'), ('{uniqueItems: 1}', '22023 At path "uniqueItems".'), ('{enum: []}', '22023 At path "enum".'), ('{enum: [1, 1.0]}', '22023 At path "enum".'), ('{enum: 1}', '22023 At path "enum".'),
('{allOf: []}', '22023 At path "allOf".'), ('{anyOf: [{}, {a: 1}]}', '0A000 At path "anyOf.1.a".'), ('{oneOf: {}}', '22023 At path "oneOf".'), ('{not: 1}', '22023 At path "not".'), ('{title: 1}', '22023 At path "title".'), ('{description: 1}', '22023 At path "description".'), ('{title: "a", title: "b"}', '22023 At path "title".')
) AS t (s, want);

-- reports
SELECT results_eq($$SELECT * FROM bson_schema_errors('{name: "Xanderson", year: 3017, major: 5, gpa: 0.35, tags: ["a", 2, "a"], address: {}, "x.y": {}}',
  '{required: ["name", "phone"], additionalProperties: false, properties: {name: {bsonType: "string", minLength: 20, maxLength: 5, pattern: "^J"}, year: {bsonType: ["long", "double"], maximum: 3017, exclusiveMaximum: true},
    major: {enum: ["Math", "English", null]}, gpa: {multipleOf: 0.1}, tags: {uniqueItems: true, minItems: 4, items: {type: "string"}}, address: {required: ["city"], minProperties: 1}}}')$$,
  $$VALUES ('name', 'minLength', 'at least 20 characters', '9'), ('name', 'maxLength', 'at most 5 characters', '9'), ('name', 'pattern', 'a match of "^J"', '"Xanderson"'), ('year', 'bsonType', 'long or double', 'int'), ('year', 'maximum', 'less than 3017', '3017'),
    ('major', 'enum', 'one of ["Math", "English", null]', '5'), ('gpa', 'multipleOf', 'a multiple of 0.1', '0.35'), ('tags', 'minItems', 'at least 4 elements', '3'), ('tags.1', 'type', 'string', 'int'), ('tags', 'uniqueItems', 'no element twice', 'an element twice'),
    ('address.city', 'required', 'a value', 'missing'), ('address', 'minProperties', 'at least 1 fields', '0'), ('"x.y"', 'additionalProperties', 'no other fields', 'object'), ('phone', 'required', 'a value', 'missing')$$, 'path, rule, expected and found of each broken rule');
SELECT results_eq($$SELECT path, rule, expected, found FROM bson_schema_errors('{a: [1, 2], c: 1}', '{dependencies: {c: ["d"]}, properties: {a: {items: [{}], additionalItems: false}}, anyOf: [{required: ["n"]}], oneOf: [{}, {}], not: {}, maxProperties: 1, bsonType: "array"}')$$,
  $$VALUES ('', 'bsonType', 'array', 'object'), ('a.1', 'additionalItems', 'no other elements', 'int'), ('d', 'dependencies', 'a value beside "c"', 'missing'), ('', 'maxProperties', 'at most 1 fields', '2'),
    ('', 'anyOf', 'a fit of at least one of 1 schemas', 'none'), ('', 'oneOf', 'a fit of exactly one of 2 schemas', 'more than one'), ('', 'not', 'no fit of the schema', 'a fit')$$, 'the others');
SELECT ok(length(found) < 100 AND found LIKE '"x%...', 'long values are cut') FROM bson_schema_errors(bson_build('a', repeat('x', 5000)), '{properties: {a: {enum: [1]}}}');
SELECT is(found, 'object of 2 fields', 'no document is printed') FROM bson_schema_errors('{a: {b: 1, c: 2}}', '{properties: {a: {enum: [1]}}}');

-- constraints; a schema that changes from row to row
CREATE TABLE checked (doc bson CHECK (bson_validate(doc, '{required: ["a"], properties: {a: {bsonType: "int"}}}')));
SELECT lives_ok($$INSERT INTO checked VALUES ('{a: 1}'), ('{a: 2, b: 3}')$$, 'a document that fits');
SELECT throws_ok($$INSERT INTO checked VALUES ('{a: "x"}')$$, '23514', NULL, 'one that does not');
SELECT throws_ok($$UPDATE checked SET doc = bson_unset(doc, 'a')$$, '23514', NULL, 'nor on update');
SELECT is((SELECT string_agg(bson_validate('{a: 5}', bson_build('properties', bson_build('a', bson_build('maximum', i))))::text, ',' ORDER BY i) FROM generate_series(3, 7) i), 'false,false,true,true,true', 'compiled again where it changes');
SELECT is((SELECT count(*) FROM generate_series(1, 300) i WHERE bson_validate(bson_build('f' || i, i), (SELECT bson_build('properties', bson_object_agg('f' || j, '{bsonType: "int"}'::bson), 'additionalProperties', false, 'required', ARRAY['f7']) FROM generate_series(1, 300) j))), 1::bigint, 'three hundred names');
SELECT is(bson_validate(NULL, '{}'), NULL, 'strict');
SELECT * FROM finish();
ROLLBACK;
