-- Schemas: MongoDB's $jsonSchema.
\set schema '{bsonType: "object", required: ["name", "year"], additionalProperties: false, properties: {_id: {}, name: {bsonType: "string", minLength: 2, maxLength: 20, pattern: "^[A-Z]", description: "a name"}, year: {bsonType: "int", minimum: 2017, maximum: 3017}, major: {enum: ["Math", "English", null]}, gpa: {bsonType: ["double", "decimal"], multipleOf: 0.1}, tags: {bsonType: "array", items: {type: "string"}, minItems: 1, uniqueItems: true}, address: {bsonType: "object", required: ["city"], properties: {city: {type: "string"}}}}}'

-- bson_validate says whether a document fits.
SELECT bson_validate('{name: "Alice", year: 2019, major: "Math", gpa: 3.4, tags: ["a", "b"], address: {city: "Oslo"}}', :'schema') AS good,
  bson_validate('{name: "Alice", year: 2019.0}', :'schema') AS "a double", bson_validate('{name: "Alice"}', :'schema') AS "no year";
-- bson_schema_errors says what is wrong.
SELECT * FROM bson_schema_errors('{name: "x", year: 1999, major: "Art", gpa: 3.45, tags: ["a", 1, "a"], address: {}, "e.mail": "x"}', :'schema');
SELECT count(*) FROM bson_schema_errors('{name: "Alice", year: 2019}', :'schema');

-- A CHECK keeps every row of a table in shape.
CREATE TABLE students (doc bson CHECK (bson_validate(doc, '{required: ["name"], properties: {name: {bsonType: "string"}, age: {bsonType: "int", minimum: 18}}}')));
INSERT INTO students VALUES ('{_id: 1, name: "Alice", age: 20}'), ('{_id: 2, name: "Bob"}');
INSERT INTO students VALUES ('{_id: 3, name: "Carol", age: 12}');
UPDATE students SET doc = bson_unset(doc, 'name');
-- Which rows would a stricter schema refuse, and why?
SELECT s.doc -> '_id' AS _id, e.path, e.rule FROM students s, bson_schema_errors(s.doc, '{required: ["name", "age"]}') e;
DROP TABLE students;

-- Fields by pattern, and those that come together.
SELECT bson_validate(d::bson, '{patternProperties: {"^n_": {bsonType: "int"}}, additionalProperties: {bsonType: "string"}, dependencies: {n_paid: ["card"]}, maxProperties: 3}') AS fits, d
FROM (VALUES ('{n_a: 1, b: "x"}'), ('{n_a: "1"}'), ('{b: 1}'), ('{n_paid: 1}'), ('{n_paid: 1, card: "x"}'), ('{a: "", b: "", c: "", d: ""}')) t (d);
-- Arrays position by position.
SELECT bson_validate(d::bson, '{properties: {p: {items: [{bsonType: "number"}, {bsonType: "string"}], additionalItems: false}}}') AS fits, d
FROM (VALUES ('{p: [1, "x"]}'), ('{p: [1]}'), ('{p: ["x", 1]}'), ('{p: [1, "x", 2]}')) t (d);
-- Schemas put together.
SELECT bson_validate(d::bson, '{oneOf: [{required: ["phone"]}, {required: ["email"]}], not: {required: ["banned"]}, anyOf: [{properties: {age: {minimum: 18}}}, {required: ["guardian"]}], allOf: [{minProperties: 2}]}') AS fits, d
FROM (VALUES ('{phone: 1, age: 20}'), ('{phone: 1, email: 1, age: 20}'), ('{phone: 1, age: 5}'), ('{phone: 1, age: 5, guardian: 1}'), ('{phone: 1, age: 20, banned: 1}'), ('{phone: 1}')) t (d);
-- An exclusive limit.
SELECT bson_validate(d::bson, '{properties: {x: {minimum: 0, exclusiveMinimum: true, maximum: 1, exclusiveMaximum: false}}}') AS fits, d FROM (VALUES ('{x: 0}'), ('{x: 0.5}'), ('{x: 1}')) t (d);

-- A validator as MongoDB keeps it, and a filter that holds a schema.
SELECT bson_validate('{a: 1}', '{$jsonSchema: {required: ["a"]}}'), '{a: 1}'::bson @@ '{$jsonSchema: {required: ["b"]}}';

-- What is wrong with a schema, and where.
SELECT bson_validate('{}', '{properties: {born: {type: "string", format: "date"}}}');
SELECT bson_validate('{}', '{properties: {age: {bsonType: "integer"}}}');
SELECT bson_validate('{}', '{properties: {age: {exclusiveMinimum: true}}}');
SELECT bson_validate('{}', '{properties: {name: {pattern: "("}}}');
