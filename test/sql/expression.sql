-- Expressions: values computed from a document, in MongoDB's aggregation language.
SET timezone = 'UTC';
\pset null NULL

CREATE TEMP TABLE orders (doc bson);
INSERT INTO orders VALUES
  ('{_id: 1, customer: "Ada", status: "shipped", placed: ISODate("2024-03-30T22:30:00Z"), items: [{sku: "a-1", qty: 2, price: NumberDecimal("10.50")}, {sku: "b-7", qty: 1, price: NumberDecimal("99.00")}], tags: ["gift", "fragile"]}'),
  ('{_id: 2, customer: "Grace", status: "new", placed: ISODate("2024-02-29T12:00:00Z"), items: [{sku: "a-1", qty: 10, price: NumberDecimal("9.75")}], discount: 0.1}'),
  ('{_id: 3, customer: "Edsger", status: "new", items: [], tags: []}');

-- A string that begins with a dollar is a path, everything else is itself. Over an array a path gives an array of values.
SELECT bson_eval(doc, '"$customer"'), bson_eval(doc, '"$items.sku"'), bson_eval(doc, '"$discount"'), bson_eval(doc, '"plain"') FROM orders ORDER BY doc -> '_id';
-- Objects and arrays are made of expressions. What is missing is left out of an object and null in an array.
SELECT bson_eval(doc, '{id: "$_id", off: "$discount", both: ["$customer", "$discount"], price: {$literal: "$5"}}') FROM orders ORDER BY doc -> '_id';

-- Arithmetic. Integers that do not fit become wider, decimals stay exact.
SELECT bson_eval('{a: 7, b: 2}', '{sum: {$add: ["$a", "$b"]}, quotient: {$divide: ["$a", "$b"]}, rest: {$mod: ["$a", "$b"]}, power: {$pow: ["$b", "$a"]}, root: {$sqrt: "$b"}}');
SELECT bson_eval('{}', '[{$add: [2147483647, 1]}, {$multiply: [NumberDecimal("0.10"), 3]}, {$round: [NumberDecimal("2.675"), 2]}, {$trunc: [-7.89, 1]}]');
SELECT bson_eval(doc, '{$round: [{$sum: {$map: {input: "$items", as: "i", in: {$multiply: ["$$i.qty", "$$i.price"]}}}}, 2]}') AS total FROM orders ORDER BY doc -> '_id';

-- Conditions.
SELECT bson_eval(doc, '{$cond: [{$eq: ["$status", "shipped"]}, "on its way", "waiting"]}'), bson_eval(doc, '{$ifNull: ["$discount", 0]}'),
  bson_eval(doc, '{$switch: {branches: [{case: {$gt: [{$size: "$items"}, 1]}, then: "many"}, {case: {$eq: [{$size: "$items"}, 1]}, then: "one"}], default: "none"}}')
  FROM orders ORDER BY doc -> '_id';
-- They can stand in WHERE.
SELECT doc ->> 'customer' AS customer FROM orders WHERE bson_eval(doc, '{$gt: [{$sum: "$items.qty"}, 2]}')::boolean ORDER BY 1;

-- Strings.
SELECT bson_eval(doc, '{upper: {$toUpper: "$customer"}, first: {$substrCP: ["$customer", 0, 2]}, hello: {$concat: ["Hello, ", "$customer", "!"]}, e: {$indexOfCP: ["$customer", "e"]}, long: {$gte: [{$strLenCP: "$customer"}, 4]}}') FROM orders ORDER BY doc -> '_id';
SELECT bson_eval('{s: "one, two,three"}', '{$map: {input: {$split: ["$s", ","]}, in: {$trim: {input: "$$this"}}}}'),
  bson_eval('{s: "a-1 b-22"}', '{$regexFindAll: {input: "$s", regex: /([a-z])-([0-9]+)/}}');

-- Arrays: $map, $filter and $reduce run an expression for each element.
SELECT bson_eval(doc, '{$filter: {input: "$items", as: "i", cond: {$gte: ["$$i.qty", 2]}}}') FROM orders ORDER BY doc -> '_id';
SELECT bson_eval('{a: [3, 1, 2]}', '{sorted: {$sortArray: {input: "$a", sortBy: 1}}, last: {$last: "$a"}, reversed: {$reverseArray: "$a"}, product: {$reduce: {input: "$a", initialValue: 1, in: {$multiply: ["$$value", "$$this"]}}}, two: {$slice: ["$a", 2]}, has: {$in: [2, "$a"]}, range: {$range: [0, 10, 4]}}');
SELECT bson_eval('{a: ["x", "y"], b: [1, 2]}', '{$arrayToObject: {$zip: {inputs: ["$a", "$b"]}}}'), bson_eval('{a: [1, 2, 2], b: [2, 3]}', '[{$setUnion: ["$a", "$b"]}, {$setIntersection: ["$a", "$b"]}, {$setDifference: ["$a", "$b"]}]');

-- Objects.
SELECT bson_eval('{a: {x: 1, y: 2}}', '{merged: {$mergeObjects: ["$a", {y: 3, z: 4}]}, pairs: {$objectToArray: "$a"}}'), bson_eval('{"price.eur": 5}', '{$getField: "price.eur"}');

-- Types.
SELECT bson_eval('{n: "12", d: "2024-01-31"}', '[{$toInt: "$n"}, {$toDate: "$d"}, {$type: "$x"}, {$convert: {input: "twelve", to: "int", onError: "no number"}}]');

-- Dates, with time zones.
SELECT bson_eval(doc, '{day: {$dateToString: {date: "$placed", format: "%Y-%m-%d", timezone: "Europe/Vienna"}}, year: {$year: "$placed"}, due: {$dateAdd: {startDate: "$placed", unit: "month", amount: 1}}, week: {$dateTrunc: {date: "$placed", unit: "week", startOfWeek: "monday"}}}') FROM orders ORDER BY doc -> '_id';
SELECT bson_eval('{}', '{$dateDiff: {startDate: ISODate("2024-01-31"), endDate: ISODate("2024-03-01"), unit: "month"}}'), bson_eval('{}', '{$dateFromParts: {year: 2024, month: 2, day: 30}}');

-- Errors say where. The operator is unknown, its arguments are wrong, or a value has the wrong type.
SELECT bson_eval('{}', '{total: {$add: [1, {$plus: [1, 2]}]}}');
SELECT bson_eval('{}', '{total: {$add: [1, {$subtract: [1]}]}}');
SELECT bson_eval('{a: "x"}', '{total: {$add: [1, "$a"]}}');
SELECT bson_eval('{}', '{$divide: [1, 0]}');
SELECT bson_eval('{}', '"$$nobody"');
