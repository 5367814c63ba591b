-- Changing documents in MongoDB's update language.
SET timezone = 'UTC';
\set SHOW_CONTEXT never
\pset null NULL

-- An update says what becomes of fields: here one gets a value, one counts, one goes, and an array grows.
SELECT bson_update('{_id: 1, title: "Old", views: 41, draft: true, tags: ["a"]}',
                   '{$set: {title: "New", "author.name": "Ada"}, $inc: {views: 1}, $unset: {draft: ""}, $push: {tags: "b"}}');

-- In a table it stands where any value would. A document that does not change comes back as it is stored.
CREATE TABLE patients (doc bson);
INSERT INTO patients VALUES ('{_id: 12345, name: "John Doe", numProcedures: 2, procedures: ["proc121", "proc122"], addr: {city: "Austin", state: "CA"}}');
UPDATE patients SET doc = bson_update(doc, '{$inc: {numProcedures: 1}, $push: {procedures: "proc123"}, $set: {"addr.state": "TX"}}') WHERE doc -> '_id' = 12345 RETURNING doc;
-- The update may be put together in SQL.
UPDATE patients SET doc = bson_update(doc, bson_build('$set', bson_build('seen', date '2024-01-02'))) RETURNING doc ->> 'seen' AS seen;
DROP TABLE patients;

-- $set makes what is missing on the way. New fields come last, in the order of their names; numbers by value.
SELECT bson_update('{z: 1}', '{$set: {b: 1, a: 2, "c.y": 3, "c.x": 4, "10": 5, "9": 6}}');
-- A number is a position where it meets an array. Beyond the end nulls are put between.
SELECT bson_update('{a: [1, 2]}', '{$set: {"a.0": "one"}}'), bson_update('{a: [1]}', '{$set: {"a.3": 4}}'), bson_update('{}', '{$set: {"a.0": 1}}');
-- $unset takes fields away. An element of an array becomes null, so that the others keep their positions.
SELECT bson_update('{a: 1, b: {c: 2, d: 3}, e: [1, 2]}', '{$unset: {a: "", "b.c": "", "e.0": "", nothing: ""}}');
-- $rename moves a value.
SELECT bson_update('{nmae: "Ada", address: {zip: "1"}}', '{$rename: {nmae: "name", "address.zip": "address.code"}}');

-- $inc and $mul keep integers as long as they fit, and go from 32 to 64 bits by themselves. Nothing times a number is zero.
SELECT bson_update('{a: 5, b: 2147483647, c: 1, d: 1}', '{$inc: {a: -2, b: 1, c: 0.5, d: NumberDecimal("0.10"), e: 7}}');
SELECT bson_update('{price: 10}', '{$mul: {price: 1.25, discount: 3}}');
-- $min and $max compare by the order of all types.
SELECT bson_update('{low: 5, high: 5, first: ISODate("2024-05-01")}', '{$min: {low: 3, first: ISODate("2024-04-01")}, $max: {high: 4, best: 9}}');
-- $bit works on the bits of integers, $currentDate puts the time of the transaction.
SELECT bson_update('{flags: 13}', '{$bit: {flags: {and: 10, or: 1}}}');
SELECT (bson_update('{}', '{$currentDate: {at: true}}') ->> 'at')::timestamptz = date_trunc('milliseconds', now()) AS is_now;

-- $push inserts, then sorts, then slices: here the best three.
SELECT bson_update('{scores: [80, 95]}', '{$push: {scores: {$each: [90, 70], $sort: -1, $slice: 3}}}');
SELECT bson_update('{scores: [80, 95]}', '{$push: {scores: {$each: [1, 2], $position: 1}}}'), bson_update('{scores: [80, 95]}', '{$push: {scores: [1, 2]}}');
SELECT bson_update('{r: [{n: "a", s: 2}, {n: "b", s: 3}]}', '{$push: {r: {$each: [{n: "c", s: 1}], $sort: {s: 1}, $slice: -2}}}');
-- $addToSet adds what is not there. Documents are equal if their fields come in the same order.
SELECT bson_update('{tags: ["a", "b"]}', '{$addToSet: {tags: {$each: ["b", "c", "c"]}}}'), bson_update('{d: [{x: 1, y: 2}]}', '{$addToSet: {d: {y: 2, x: 1}}}');
-- $pop takes the last element or the first one, $pullAll all that are equal, $pull all that match.
SELECT bson_update('{a: [1, 2, 3]}', '{$pop: {a: 1}}'), bson_update('{a: [1, 2, 3]}', '{$pop: {a: -1}}'), bson_update('{a: [1, 2, 1.0, 3]}', '{$pullAll: {a: [1, 3]}}');
SELECT bson_update('{a: [1, 5, 8]}', '{$pull: {a: {$gte: 5}}}'), bson_update('{a: [{x: 1, y: 2}, {x: 2}]}', '{$pull: {a: {x: 1}}}'), bson_update('{a: ["ab", "b"]}', '{$pull: {a: /^a/}}');

-- $[] is every element, $[name] every element that an array filter of that name matches.
SELECT bson_update('{grades: [85, 100, 92]}', '{$inc: {"grades.$[]": 1}}');
SELECT bson_update('{grades: [85, 100, 102]}', '{$set: {"grades.$[top]": 99}}', array_filters => '[{top: {$gt: 99}}]');
SELECT bson_update('{items: [{sku: "A", n: 1}, {sku: "B", n: 1}]}', '{$inc: {"items.$[i].n": 5}}', array_filters => '[{"i.sku": "B"}]');
-- $ is the element through which the filter found the document.
SELECT bson_update('{tags: [{type: "ticker", label: "AAPL"}, {type: "financials", label: "Earnings"}]}', '{$set: {"tags.$.label": "Results"}}', '{"tags.type": "financials"}');

-- A document without operators takes the old one's place. The _id stays.
SELECT bson_update('{_id: 1, a: 1, b: 2}', '{c: 3}');
-- An upsert where there is no document begins with what the filter says is equal; only then $setOnInsert counts.
SELECT bson_update(NULL, '{$inc: {n: 1}, $setOnInsert: {created: true}}', '{_id: "x", "a.b": 1, c: {$gt: 5}}', upsert => true);
SELECT bson_update('{_id: "x", n: 1}', '{$inc: {n: 1}, $setOnInsert: {created: true}}', '{_id: "x"}', upsert => true);

-- What is wrong is an error that says where.
SELECT bson_update('{a: "text"}', '{$inc: {a: 1}}');
SELECT bson_update('{a: 5}', '{$set: {"a.b": 1}}');
SELECT bson_update('{a: 5}', '{$push: {a: 1}}');
SELECT bson_update('{a: 5}', '{$set: {a: 1}, $inc: {"a.b": 1}}');
SELECT bson_update('{_id: 5}', '{$set: {_id: 6}}');
SELECT bson_update('{a: 9223372036854775807}', '{$inc: {a: 1}}');
SELECT bson_update('{}', '{$set: {"a..b": 1}}');
SELECT bson_update('{}', '{$push: {a: {$each: 5}}}');
SELECT bson_update('{}', '{$increment: {a: 1}}');
SELECT bson_update('{a: [1]}', '{$set: {"a.$": 1}}', '{}');
SELECT bson_update('{a: [1]}', '{$set: {"a.$[x]": 1}}');
SELECT bson_update('{a: 1}', '{$set: {"a.$[]": 1}}');
SELECT bson_update('{a: [1]}', '{$rename: {"a.0": "b"}}');
