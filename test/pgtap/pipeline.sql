-- Pipelines: what stages return, how they become one query, and what they write.
BEGIN;
SELECT plan(223);
SET client_min_messages = warning;

SELECT collection_create('orders');
INSERT INTO orders (doc) VALUES
  ('{_id: 1, customer: "ada", at: 10, status: "paid", items: [{sku: "pen", n: 3}, {sku: "ink", n: 1}]}'),
  ('{_id: 2, customer: "bob", at: 30, status: "new", items: [{sku: "pen", n: 10}]}'),
  ('{_id: 3, customer: "ada", at: 20, status: "paid", items: []}'),
  ('{_id: 4, customer: null, at: 40, status: "void"}'),
  ('{_id: 5, at: 50, status: "void", items: "none"}');

-- The result of a pipeline, a document a line
CREATE FUNCTION run(rel regclass, pipeline bson_value, let bson DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(bson_to_json(d), E'\n' ORDER BY n) FROM collection_aggregate(rel, pipeline, let) WITH ORDINALITY AS r (d, n) $$;
CREATE FUNCTION run(pipeline bson_value) RETURNS text LANGUAGE sql AS $$ SELECT run('orders', pipeline) $$;
-- Its query
CREATE FUNCTION sql(pipeline bson_value) RETURNS text LANGUAGE sql AS $$ SELECT collection_aggregate_sql('orders', pipeline) $$;

-- ---------------------------------------------------------------- stages
SELECT is(run('[]'), (SELECT string_agg(bson_to_json(doc), E'\n' ORDER BY _id) FROM orders), 'an empty pipeline returns all');
SELECT is(run('[{$match: {status: "paid"}}, {$project: {at: 1}}]'), E'{"_id": 1, "at": 10}\n{"_id": 3, "at": 20}', '$match and $project');
SELECT is(run('[{$match: {}}, {$sort: {at: -1}}, {$limit: 2}, {$project: {_id: 1}}]'), E'{"_id": 5}\n{"_id": 4}', '$sort and $limit');
SELECT is(run('[{$sort: {_id: 1}}, {$skip: 1}, {$limit: 3}, {$skip: 1}, {$project: {_id: 1}}]'), E'{"_id": 3}\n{"_id": 4}', '$skip and $limit add up');
SELECT is(run('[{$sort: {_id: 1}}, {$skip: 1}, {$limit: 1}, {$project: {n: {$divide: [6, {$mod: ["$_id", 3]}]}}}]'), '{"_id": 2, "n": 3.0}', 'nothing is computed for documents that are left out');
SELECT is(run('[{$sort: {_id: 1}}, {$limit: 3}, {$limit: 1}, {$project: {_id: 1}}]'), '{"_id": 1}', 'the least $limit counts');
SELECT is(run('[{$limit: 2}, {$skip: 5}]'), NULL, 'a $skip beyond the $limit leaves nothing');
SELECT is(run('[{$sort: {_id: 1}}, {$limit: 3}, {$match: {status: "paid"}}, {$project: {_id: 1}}]'), E'{"_id": 1}\n{"_id": 3}', '$match after $limit');
SELECT is(run('[{$sort: {_id: 1}}, {$limit: 2}, {$sort: {_id: -1}}, {$project: {_id: 1}}]'), E'{"_id": 2}\n{"_id": 1}', '$sort after $limit');
SELECT is(run('[{$match: {_id: 2}}, {$set: {total: {$sum: "$items.n"}}}, {$unset: ["items", "at"]}]'), '{"_id": 2, "customer": "bob", "status": "new", "total": 10}', '$set and $unset');
SELECT is(run('[{$match: {_id: 2}}, {$addFields: {_id: "two", a: "$_id"}}, {$project: {a: 1}}]'), '{"_id": "two", "a": 2}', 'a stage may change _id');
SELECT is(run('[{$match: {_id: 2}}, {$unset: "_id"}, {$project: {status: 1}}]'), '{"status": "new"}', 'or remove it');
SELECT is(run('[{$set: {k: {$subtract: [0, "$at"]}}}, {$group: {_id: null, t: {$bottom: {sortBy: {k: 1}, output: "$_id"}}}}]'), '{"_id": null, "t": 1}', 'an accumulator orders by a computed field');
SELECT is(run('[{$match: {_id: 1}}, {$unionWith: "orders"}, {$match: {$expr: {$eq: [1, 2]}}}]'), NULL, 'a condition without fields holds for $unionWith');
SELECT is(run('[{$facet: {a: [{$count: "n"}]}}, {$match: {$expr: {$eq: [1, 2]}}}]'), NULL, 'and for $facet');
SELECT is(run('[{$match: {_id: 1}}, {$set: {k: 5}}, {$project: {n: {$getField: "k"}}}]'), '{"_id": 1, "n": 5}', '$getField reads a computed field');
SELECT is(run('[{$match: {_id: 1}}, {$replaceRoot: {newRoot: {$first: "$items"}}}]'), '{"sku": "pen", "n": 3}', '$replaceRoot');
SELECT is(run('[{$match: {_id: 1}}, {$replaceWith: {k: "$customer"}}]'), '{"k": "ada"}', '$replaceWith');
SELECT is(run('[{$unwind: "$items"}, {$sort: {_id: 1, "items.n": 1}}, {$project: {n: "$items.n"}}]'),
  E'{"_id": 1, "n": 1}\n{"_id": 1, "n": 3}\n{"_id": 2, "n": 10}\n{"_id": 5}', '$unwind: a value that is no array is an element');
SELECT is(run('[{$unwind: {path: "$items", includeArrayIndex: "i", preserveNullAndEmptyArrays: true}}, {$sort: {_id: 1, i: 1}}, {$project: {i: 1}}]'),
  E'{"_id": 1, "i": {"$numberLong": "0"}}\n{"_id": 1, "i": {"$numberLong": "1"}}\n{"_id": 2, "i": {"$numberLong": "0"}}\n{"_id": 3, "i": null}\n{"_id": 4, "i": null}\n{"_id": 5, "i": null}',
  'with positions and documents without elements');
SELECT is(run('[{$sort: {_id: -1}}, {$limit: 4}, {$unwind: "$items"}, {$project: {n: "$items.n"}}]'), E'{"_id": 5}\n{"_id": 2, "n": 10}', '$unwind keeps the order');
SELECT is(run('[{$count: "n"}]'), '{"n": 5}', '$count');
SELECT is(run('[{$match: {_id: 77}}, {$count: "n"}]'), NULL, '$count of nothing is nothing');
SELECT is(run('[{$sample: {size: 100}}, {$count: "n"}]'), '{"n": 5}', '$sample of more than there are');
SELECT is(run('[{$sample: {size: 2}}, {$count: "n"}]'), '{"n": 2}', '$sample');

SELECT is(run('[{$group: {_id: "$status", n: {$sum: 1}}}, {$sort: {_id: 1}}]'), E'{"_id": "new", "n": 1}\n{"_id": "paid", "n": 2}\n{"_id": "void", "n": 2}', '$group');
SELECT is(run('[{$group: {_id: "$customer", n: {$sum: 1}}}, {$sort: {_id: 1}}]'), E'{"_id": null, "n": 2}\n{"_id": "ada", "n": 2}\n{"_id": "bob", "n": 1}', 'missing and null are one group');
SELECT is(run('[{$group: {_id: null, at: {$max: "$at"}}}]'), '{"_id": null, "at": 50}', 'one group of all');
SELECT is(run('[{$match: {_id: 77}}, {$group: {_id: null, at: {$max: "$at"}}}]'), NULL, 'no group of nothing');
SELECT is(run('[{$group: {_id: null, n: {$count: {}}, s: {$sum: "$at"}, a: {$avg: "$at"}, none: {$sum: "$status"}, no: {$avg: "$status"}}}]'),
  '{"_id": null, "n": 5, "s": 150, "a": 30.0, "none": 0, "no": null}', 'sums and averages, also without numbers');
SELECT is(run('[{$sort: {at: -1}}, {$project: {at: 1, status: {$cond: [{$lt: ["$_id", 4]}, "$status", "$$REMOVE"]}}}, {$group: {_id: null, all: {$mergeObjects: "$$ROOT"}, n: {$sum: 1}}}]'),
  '{"_id": null, "all": {"_id": 1, "at": 10, "status": "paid"}, "n": 5}', 'documents are merged in their order');
SELECT is(run('[{$group: {_id: {c: "$customer", s: "$status"}}}, {$sort: {_id: 1}}]'),
  E'{"_id": {"c": null, "s": "void"}}\n{"_id": {"c": "ada", "s": "paid"}}\n{"_id": {"c": "bob", "s": "new"}}\n{"_id": {"s": "void"}}', 'a key of several fields: a missing one is not null');
SELECT is(run('[{$sort: {at: -1}}, {$group: {_id: "$status", ids: {$push: "$_id"}, f: {$first: "$at"}, l: {$last: "$at"}}}, {$sort: {_id: 1}}]'),
  E'{"_id": "new", "ids": [2], "f": 30, "l": 30}\n{"_id": "paid", "ids": [3, 1], "f": 20, "l": 10}\n{"_id": "void", "ids": [5, 4], "f": 50, "l": 40}', 'accumulators follow the order');
SELECT is(run('[{$sort: {at: -1}}, {$limit: 4}, {$project: {status: 1}}, {$group: {_id: null, ids: {$push: "$_id"}}}]'),
  '{"_id": null, "ids": [5, 4, 2, 3]}', 'also of a subquery whose field is gone');
SELECT is(run('[{$sortByCount: "$status"}, {$limit: 1}, {$project: {count: 1, _id: 0}}]'), '{"count": 2}', '$sortByCount');
SELECT is(run('[{$group: {_id: "$status", n: {$sum: 1}}}, {$group: {_id: "$n", m: {$sum: 1}}}, {$sort: {_id: 1}}]'), E'{"_id": 1, "m": 1}\n{"_id": 2, "m": 2}', 'groups of groups');

-- ---------------------------------------------------------------- variables
SELECT is(run('orders', '[{$match: {$expr: {$eq: ["$customer", "$$who"]}}}, {$project: {w: "$$who"}}, {$sort: {_id: 1}}]', '{who: "ada"}'), E'{"_id": 1, "w": "ada"}\n{"_id": 3, "w": "ada"}', 'let');
SELECT throws_ok($t$SELECT run('[{$project: {w: "$$who"}}]')$t$, '22023', NULL, 'an undefined variable');
SELECT is(run('[{$match: {$expr: {$gt: ["$$NOW", "$at"]}}}, {$count: "n"}]'), '{"n": 5}', '$$NOW in a filter');

-- ---------------------------------------------------------------- the query
SELECT is(sql('[{$match: {status: "paid"}}, {$sort: {at: -1}}, {$project: {at: 1}}, {$limit: 5}]'),
$$ SELECT bson_project(doc, '{"at": 1}'::bson) AS doc
   FROM orders t
  WHERE doc @@ '{"status": "paid"}'::bson
  ORDER BY (bson_sort_key(doc, '{"at": -1}'::bson))
 LIMIT 5$$, 'one SELECT for stages in the order of its clauses');
SELECT is(sql('[{$group: {_id: "$status", n: {$sum: 1}, s: {$sum: "$at"}, a: {$avg: "$at"}}}]'),
$$ SELECT bson_build('_id'::text, COALESCE(doc -> 'status'::text, 'null'::bson_value), 'n'::text, docpatterns._int(count(*)), 's'::text, COALESCE(sum(doc -> 'at'::text), '0'::bson_value), 'a'::text, avg(doc -> 'at'::text)) AS doc
   FROM orders t
  GROUP BY (COALESCE(doc -> 'status'::text, 'null'::bson_value))$$, 'SQL adds up');
SELECT matches((SELECT string_agg(l, E'\n') FROM collection_explain('orders', '[{$unwind: "$items"}, {$limit: 1}]') AS l), '^Limit.*\n +->  (Subquery Scan.*\n +->  )?ProjectSet', 'elements are computed as they are taken');
SELECT is(sql('[{$set: {x: {$add: ["$at", 1]}, y: 1}}, {$match: {status: "paid"}}, {$sort: {at: 1}}, {$group: {_id: "$status", x: {$sum: "$x"}}}, {$match: {_id: "paid"}}, {$count: "n"}]') ~ '"y"', false, 'what no stage uses is not computed');
SELECT is(sql('[{$set: {x: 1}}, {$match: {status: "paid", x: 1}}]'),
$$ SELECT doc
   FROM ( SELECT bson_update(t.doc, '[{"$set": {"x": 1}}]'::bson_value) AS doc
           FROM orders t
          WHERE t.doc @@ '{"status": "paid"}'::bson
         OFFSET 0) q1
  WHERE doc @@ '{"x": 1}'::bson$$, 'a condition moves above a change of other fields');
SELECT matches(sql('[{$unwind: "$items"}, {$match: {status: "paid", "items.n": 3}}]'), 't.doc @@ ''{"status": "paid"}''::bson[)] q1\s+WHERE doc @@ ''{"items.n": 3}''', 'and above $unwind');
SELECT matches(sql('[{$group: {_id: "$status"}}, {$match: {_id: {$gt: "p"}}}]'), 'WHERE doc @@ ''{"status": {"[$]gt": "p"}}''', 'a condition on the key of a group');
SELECT is(run('[{$group: {_id: "$customer"}}, {$match: {_id: null}}]'), '{"_id": null}', 'but not one that null satisfies');
SELECT is(run('[{$project: {customer: 1}}, {$match: {status: "paid"}}]'), NULL, 'a field that is not shown does not match');
SELECT is(run('[{$project: {status: 0}}, {$match: {status: {$exists: false}}}, {$count: "n"}]'), '{"n": 5}', 'nor one that was removed');
SELECT is(run('[{$set: {status: "x"}}, {$match: {status: "x"}}, {$count: "n"}]'), '{"n": 5}', 'a changed field is compared after the change');
SELECT is(run('[{$match: {_id: 1}}, {$set: {a: {b: 5, c: 6}}}, {$project: {a: {b: 1}}}]'), '{"_id": 1, "a": {"b": 5}}', 'a projection uses the fields of its documents');
SELECT is(run('[{$match: {_id: 1}}, {$set: {o: [{b: [1, 2]}, {b: 3}]}}, {$group: {_id: "$o.b"}}, {$match: {_id: 1}}]'), NULL, 'a key of several steps is another array than the filter sees');
SELECT is(sql('[{$unwind: "$items"}, {$match: {$expr: {$lt: [{$rand: {}}, "$at"]}}}]') ~ 'bson_unwind.* q1\s+WHERE docpatterns._match', true, 'chance is asked for each element');
SELECT is(run('[{$limit: 1}, {$match: {_id: 5}}]'), NULL, 'conditions stay behind $limit');
SELECT is(sql('[{$match: {a: 1}}, {$set: {x: 1}}, {$match: {b: 2}}, {$match: {a: 3}}]') ~ '@@ ''{"[$]and": \[{"a": 1}, {"b": 2}, {"a": 3}\]}''::bson', true, 'conditions on one field become one list');
SELECT is(sql('[{$match: {c: 1}}, {$set: {x: 1}}, {$match: {x: 1, b: 2}}, {$match: {x: 2, a: 3}}]') ~ '@@ ''{"c": 1, "b": 2, "a": 3}''::bson.*@@ ''{"[$]and": \[{"x": 1}, {"x": 2}\]}''::bson', true, 'and keep their order, where they move and where they stay');

-- Pipelines of many stages: % is a stage's number.  How much the peak of memory grows, in MB
CREATE FUNCTION stages(n int, stage text, last text DEFAULT '') RETURNS bson_value LANGUAGE sql AS $$ SELECT ('{p: [' || string_agg(replace(stage, '%', i::text), ', ') || last || ']}')::bson -> 'p' FROM generate_series(1, n) AS i $$;
CREATE FUNCTION peak() RETURNS int LANGUAGE sql AS $$ SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\s+(\d+)')::int / 1024 $$;
CREATE FUNCTION growth(pipeline bson_value) RETURNS int LANGUAGE plpgsql AS $$ DECLARE was int := peak(); BEGIN PERFORM run(pipeline); RETURN peak() - was; END $$;
SELECT is(run(stages(100, '{$match: {_id: {$gte: 0}}}', ', {$count: "n"}')), '{"n": 5}', '100 conditions on one field');
SELECT is(run(stages(998, '{$match: {_id: {$gte: 0}}}', ', {$count: "n"}')), '{"n": 5}', 'or 998');
SELECT cmp_ok(growth(stages(600, format('{$match: {_id: {$ne: "%s"}}}', repeat('x', 5000)))), '<', 200, 'memory grows with their number, not with its square');
SELECT cmp_ok(growth(stages(600, format('{$match: {f%%: {$ne: "%s"}}}', repeat('x', 5000)))), '<', 200, 'also on several fields');
SELECT cmp_ok(growth(stages(600, '{$set: {f%: 1}}', format(', {$match: {at: {$ne: "%s"}}}', repeat('x', 1000000)))), '<', 200, 'a condition is not copied for each stage that it passes');
-- The CPU time that it takes to compile n stages with a field each five times, in ms
CREATE FUNCTION cost(n int) RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
  pipeline bson_value := stages(n, '{$set: {f%: {$add: ["$at", 1]}}}', (SELECT format(', {$match: {f1: 1}}, {$project: {%s}}', string_agg(format('f%s: 1', i), ', ')) FROM generate_series(1, n) AS i));
  was int8 := split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::int8;
BEGIN
  FOR i IN 1 .. 5 LOOP PERFORM sql(pipeline); END LOOP;
  RETURN (split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::int8 - was) / 1000000;
END $$;
SELECT cmp_ok(cost(990), '<', 18 * greatest(cost(330), 4), 'the time does not grow with the third power of the number');

SELECT collection_create('many');
INSERT INTO many (doc) SELECT bson_build('_id', i, 'b', i % 500, 'at', i) FROM generate_series(1, 5000) AS i;
SELECT collection_create_index('many', '{b: 1}');
ANALYZE many;
CREATE FUNCTION plan_of(rel regclass, query bson_value) RETURNS text LANGUAGE sql AS $$ SELECT string_agg(l, E'\n') FROM collection_explain(rel, query) AS l $$;
SELECT matches(plan_of('many', '{_id: 5}'), 'Index Scan using many_pkey', 'collection_explain of a filter');
SELECT matches(plan_of('many', '[{$set: {x: 1}}, {$project: {b: 1, x: 1}}, {$match: {b: 7}}]'), 'many_b_idx', 'an index serves a condition that has moved');
SELECT matches(plan_of('many', '[{$sort: {_id: -1}}, {$set: {x: 1}}, {$limit: 3}]'), 'Limit.*Index Scan Backward using many_pkey', 'the order of the key');
SELECT matches(plan_of('many', '[{$project: {b: 1}}, {$sort: {_id: 1}}, {$limit: 3}]'), 'Limit.*Index Scan using many_pkey', 'also below $project');
SELECT matches(plan_of('many', q), 'Limit.*Merge Append.*Index Scan (Backward )?using many_b_idx', q::text) FROM unnest('{"[{$sort: {b: -1}}, {$limit: 3}]","[{$set: {x: 1}}, {$sort: {b: 1}}, {$limit: 3}]","[{$sort: {b: 1, at: -1}}, {$skip: 2}, {$limit: 3}]","[{$match: {at: {$gt: 5}}}, {$sort: {b: 1}}, {$limit: 3}]","[{$unionWith: \"many\"}, {$sort: {b: 1}}, {$limit: 3}]",
  "[{$setWindowFields: {sortBy: {b: 1}, output: {n: {$sum: \"$at\", window: {documents: [-1, 0]}}}}}, {$limit: 3}]"}'::bson_value[]) AS q;
SELECT results_eq($$SELECT d -> 'b' FROM collection_aggregate('many', '[{$sort: {b: -1, at: 1}}, {$limit: 40}]') AS d$$, $$SELECT doc -> 'b' FROM many ORDER BY (doc ->> 'b')::int DESC LIMIT 40$$, 'the order of an index');
SELECT results_eq($$SELECT d -> 'at' FROM collection_aggregate('many', '[{$sort: {b: -1, at: 1}}, {$limit: 40}]') AS d$$, $$SELECT doc -> 'at' FROM many ORDER BY (doc ->> 'b')::int DESC, (doc ->> 'at')::int LIMIT 40$$, 'and of the field after it');
SELECT is((SELECT d ->> '_id' FROM (SELECT collection_aggregate('many', '[{$sort: {_id: 1}}]') AS d LIMIT 1) AS s), '1', 'rows can be taken one by one');

-- ---------------------------------------------------------------- views and other relations
SELECT is(collection_view_create('paid', 'orders', '[{$match: {status: "paid"}}, {$set: {x: 1}}]')::text, 'paid', 'a view of a pipeline');
SELECT is(run('paid', '[{$sort: {_id: 1}}, {$project: {x: 1}}]'), E'{"_id": 1, "x": 1}\n{"_id": 3, "x": 1}', 'is a source of pipelines');
SELECT is((SELECT reloptions FROM pg_class WHERE relname = 'paid'), '{security_invoker=true}', 'and reads with the rights of its reader');
SELECT throws_ok($t$SELECT collection_view_create('paid', 'orders', '[]')$t$, '42P07', NULL, 'it must not exist');
SELECT throws_ok($t$SELECT collection_view_create('w', 'orders', '[{$merge: "orders"}]')$t$, '42601', NULL, 'a view cannot write');
CREATE TABLE parts (k int, body bson) PARTITION BY LIST (k);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts VALUES (1, '{a: 1}'), (2, '{a: 2}'), (2, NULL);
SELECT is(run('parts', '[{$group: {_id: null, a: {$sum: "$a"}, n: {$sum: 1}}}]'), '{"_id": null, "a": 3, "n": 2}', 'a partitioned table; a NULL is no document');

-- ---------------------------------------------------------------- writing
SELECT collection_create('target');
SELECT is(run('[{$match: {status: "paid"}}, {$project: {at: 1}}, {$merge: "target"}]'), NULL, '$merge returns nothing');
SELECT is((SELECT string_agg(bson_to_json(doc), ' ' ORDER BY _id) FROM target), '{"_id": 1, "at": 10} {"_id": 3, "at": 20}', 'and inserts');
SELECT run('[{$match: {_id: {$lte: 2}}}, {$project: {status: 1}}, {$merge: {into: "target"}}]');
SELECT is((SELECT string_agg(bson_to_json(doc), ' ' ORDER BY _id) FROM target), '{"_id": 1, "at": 10, "status": "paid"} {"_id": 2, "status": "new"} {"_id": 3, "at": 20}', 'or merges');
SELECT run('[{$match: {_id: 1}}, {$project: {z: {$literal: 1}}}, {$merge: {into: "target", whenMatched: "replace"}}]');
SELECT is((SELECT bson_to_json(doc) FROM target WHERE _id = 1), '{"_id": 1, "z": 1}', 'or replaces');
SELECT run('[{$match: {_id: {$in: [1, 4]}}}, {$project: {k: {$literal: 1}}}, {$merge: {into: "target", whenMatched: "keepExisting"}}]');
SELECT is((SELECT string_agg(bson_to_json(doc), ' ' ORDER BY _id) FROM target WHERE _id IN (1, 4)), '{"_id": 1, "z": 1} {"_id": 4, "k": 1}', 'or keeps');
SELECT throws_ok($t$SELECT run('[{$merge: {into: "target", whenMatched: "fail"}}]')$t$, '23505', NULL, 'or fails');
SELECT run('[{$match: {_id: {$in: [1, 5]}}}, {$project: {d: {$literal: 1}}}, {$merge: {into: "target", whenNotMatched: "discard"}}]');
SELECT is((SELECT string_agg(bson_to_json(doc), ' ' ORDER BY _id) FROM target WHERE _id IN (1, 5)), '{"_id": 1, "z": 1, "d": 1}', 'what is not there can be discarded');
SELECT throws_ok($t$SELECT run('[{$merge: {into: "target", whenNotMatched: "fail"}}]')$t$, 'P0002', NULL, 'or an error');
SELECT run('[{$match: {_id: 1}}, {$merge: {into: "target", let: {a: "$at"}, whenMatched: [{$set: {sum: {$add: ["$z", "$$new.at", "$$a"]}}}]}}]');
SELECT is((SELECT bson_to_json(doc) FROM target WHERE _id = 1), '{"_id": 1, "z": 1, "d": 1, "sum": 21}', 'stages change what is there');
SELECT collection_create('coded');
SELECT collection_create_index('coded', '{code: 1}', is_unique => true);
SELECT throws_ok($t$SELECT run('[{$merge: {into: "coded", on: "kode"}}]')$t$, '42P10', NULL, 'other fields need a unique index');
SELECT throws_ok($t$SELECT run('[{$set: {code: [1]}}, {$merge: {into: "coded", on: "code"}}]')$t$, '22023', 'field "code" must not be an array', 'and no array');
SELECT run('[{$match: {_id: 2}}, {$project: {v: {$literal: 1}}}, {$merge: {into: "coded", on: "code"}}]');
SELECT is((SELECT bson_to_json(doc) FROM coded), '{"_id": 2, "v": 1, "code": null}', 'a field that is missing is null');
DELETE FROM coded;
SELECT run('[{$match: {_id: 1}}, {$project: {_id: 0, code: {$literal: "c"}, v: {$literal: 1}}}, {$merge: {into: "coded", on: "code"}}]');
SELECT run('[{$match: {_id: 1}}, {$project: {_id: 0, code: {$literal: "c"}, w: {$literal: 2}}}, {$merge: {into: "coded", on: "code"}}]');
SELECT is((SELECT string_agg(bson_to_json(doc - '_id'), ' ') FROM coded), '{"code": "c", "v": 1, "w": 2}', 'by which they find documents');
-- a key that comes twice
SELECT collection_create('twice');
SELECT collection_insert('twice', '[{_id: "a", t: 1}]'::bson_value);
CREATE FUNCTION keys(spec text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM collection_aggregate(NULL, ('{p: [{$documents: [{_id: "b", x: 1}, {_id: "a", x: 2}, {_id: "b", y: 3}, {y: 9}, {_id: "a", x: 4}]}, {$merge: ' || spec || '}]}')::bson -> 'p');
  RETURN (SELECT string_agg(bson_to_json(doc - '_id'::text), ' ' ORDER BY bson_typeof(doc -> '_id') DESC, _id) FROM twice);
EXCEPTION WHEN raise_exception THEN RETURN NULL;
END $$;
SAVEPOINT twice;
SELECT is(keys('"twice"'), '{"t": 1, "x": 4} {"x": 1, "y": 3} {"y": 9}', 'documents with the same key are merged in their order');
ROLLBACK TO twice;
SELECT is(keys('{into: "twice", whenMatched: "replace"}'), '{"x": 4} {"y": 3} {"y": 9}', 'or the last stays');
ROLLBACK TO twice;
SELECT is(keys('{into: "twice", whenMatched: "keepExisting"}'), '{"t": 1} {"x": 1} {"y": 9}', 'or the first');
ROLLBACK TO twice;
SELECT is(keys('{into: "twice", whenMatched: [{$set: {n: {$add: [{$ifNull: ["$n", 0]}, 1]}, v: "$$new"}}, {$unset: "v._id"}]}'),
  '{"t": 1, "n": 2, "v": {"x": 4}} {"x": 1, "n": 1, "v": {"y": 3}} {"y": 9}', 'or each gives a version');
ROLLBACK TO twice;
SELECT is(keys('{into: "twice", whenMatched: [{$set: {n: "$$new.x"}}], whenNotMatched: "discard"}'), '{"t": 1, "n": 4}', 'others can be left out');
ROLLBACK TO twice;
SELECT is(keys('{into: "twice", whenNotMatched: "discard"}'), '{"t": 1, "x": 4}', 'also those that merge');
ROLLBACK TO twice;
SELECT throws_ok($t$SELECT keys('{into: "twice", whenMatched: "fail"}')$t$, '23505', NULL, 'or it is an error');
SELECT throws_ok($t$SELECT keys('{into: "twice", whenNotMatched: "fail"}')$t$, 'P0002', NULL, 'as one that is not there');
DROP TABLE twice;
SELECT is(keys('"twice"'), '{"x": 4} {"x": 1, "y": 3} {"y": 9}', 'a new collection');
ROLLBACK TO twice;
RELEASE twice;
CREATE TABLE numbered (id serial PRIMARY KEY, doc bson);
CREATE UNIQUE INDEX ON numbered ((doc -> '_id'));
SELECT run('[{$match: {_id: {$lte: 3}}}, {$project: {_id: {$cond: [{$eq: ["$_id", 1]}, 1, "$$REMOVE"]}, n: "$_id"}}, {$merge: "numbered"}]');
SELECT is((SELECT string_agg(bson_to_json(doc), ' ' ORDER BY doc -> 'n') FROM numbered), '{"_id": 1, "n": 1} {"n": 2} {"n": 3}', 'documents without an _id differ, in any table');
SELECT is((SELECT string_agg(stage, ' ') FROM (VALUES ('{$match: {_id: 1}}'), ('{$project: {_id: 1, at: 1}}'), ('{$set: {at: 1}}'), ('{$unset: ["a", "_id"]}'), ('{$group: {_id: "$at"}}'),
  ('{$set: {_id: 1}}'), ('{$unset: "_id.a"}'), ('{$unwind: "$items"}')) AS v (stage) WHERE sql(('{p: [' || stage || ', {$merge: "twice"}]}')::bson -> 'p') ~ 'GROUP BY s'), '{$set: {_id: 1}} {$unset: "_id.a"} {$unwind: "$items"}', 'keys are only grouped if they can come twice');
SELECT throws_ok($t$SELECT run('[{$match: {_id: 1}}, {$merge: {into: "target", whenMatched: [{$set: {_id: 7}}]}}]')$t$, '22023', '$merge cannot change "_id"', 'the _id stays');
SELECT is(run('[{$match: {_id: 1}}, {$merge: {into: {db: null, coll: "target"}, let: null, whenNotMatched: null}}]'), NULL, 'null is the default');
SELECT run('[{$match: {_id: 3}}, {$set: {at: 21}}, {$merge: "orders"}]');
SELECT is((SELECT doc ->> 'at' FROM orders WHERE _id = 3), '21', '$merge into the source');

SELECT run('[{$group: {_id: "$status"}}, {$out: "statuses"}]');
SELECT is((SELECT string_agg(doc ->> '_id', ' ' ORDER BY _id) FROM statuses), 'new paid void', '$out creates a collection');
SELECT run('[{$match: {_id: 1}}, {$out: "statuses"}]');
SELECT is((SELECT string_agg(doc ->> '_id', ' ' ORDER BY _id) FROM statuses), '1', 'or replaces its documents');
SELECT throws_ok($t$SELECT run('[{$out: "orders"}]')$t$, '0A000', 'pipeline reads "orders", whose documents $out replaces', 'but not those that it reads');
SELECT throws_ok($t$SELECT run('paid', '[{$out: "orders"}]')$t$, '0A000', NULL, 'nor through a view');
SELECT throws_ok($t$SELECT run('parts', '[{$out: "parts1"}]')$t$, '0A000', NULL, 'nor of a partition');
SELECT throws_ok($t$SELECT run('[{$out: "paid"}]')$t$, '42809', NULL, 'a view is no target');
SELECT throws_ok($t$SELECT run('[{$out: {db: null, coll: "x"}}]')$t$, '22023', NULL, '$out takes no schema that is null');
SELECT throws_ok($t$SELECT run('[{$out: {db: "", coll: "x"}}]')$t$, '22023', NULL, 'or empty');
SELECT throws_ok($t$SELECT run('[{$out: "x"}, {$match: {}}]')$t$, '22023', NULL, 'nothing follows $out');
SELECT throws_ok($t$SELECT run('[{$facet: {a: [{$out: "x"}]}}]')$t$, '22023', NULL, 'nor is it inside a stage');

-- ---------------------------------------------------------------- statistics
ANALYZE orders;
SELECT is(run('[{$collStats: {count: {}}}, {$project: {ns: 1, count: 1}}]'), '{"ns": "public.orders", "count": 5}', '$collStats');
SELECT is(run('[{$collStats: {storageStats: {scale: 1024}}}, {$project: {n: "$storageStats.nindexes", s: "$storageStats.scaleFactor", t: {$eq: ["$storageStats.totalSize", {$add: ["$storageStats.storageSize", "$storageStats.totalIndexSize"]}]}}}]'), '{"n": 1, "s": 1024, "t": true}', 'sizes');
SELECT is(btrim(sql('[{$indexStats: {}}]')), E'SELECT doc\n   FROM docpatterns._index_stats(''orders''::regclass, ''{}''::bson) s(doc)', 'the relation by its name');
SELECT is(run('[{$indexStats: {}}, {$project: {name: 1, key: 1}}]'), '{"name": "orders_pkey", "key": {"_id": 1}}', '$indexStats');
SELECT matches(run('[{$collStats: {}}, {$project: {host: 1}}]'), '^{"host": "[^"]+:[0-9]+"}$', 'the server is named');
SELECT is(run('[{$collStats: {count: null, storageStats: null, latencyStats: null}}, {$project: {count: 1, storageStats: 1}}]'), '{}', 'options that are null are not given');
SELECT is(run(('{"a": [{$collStats: {storageStats: {scale: ' || scale || '}}}, {$replaceWith: {s: "$storageStats.scaleFactor"}}]}')::bson -> 'a'), bson_to_json(bson_build('s', expected)), 'a scale of ' || scale)
  FROM (VALUES ('1.9', 1), ('NumberDecimal("1.5")', 2), ('NumberDecimal("2.5")', 2), ('1e30', 2147483647), ('null', 1)) AS v (scale, expected);
SELECT is(run('[{$collStats: {queryExecStats: {}}}, {$project: {t: {$type: "$queryExecStats.collectionScans.total"}, n: {$type: "$queryExecStats.collectionScans.nonTailable"}}}]'), '{"t": "long", "n": "long"}', 'scans are counted in int64');
SELECT collection_create_index('target', '{u: 1}', is_unique => true, partial_filter => '{u: {$gt: 0}}', name => 'target_u');
SELECT is(run('target', '[{$indexStats: {}}, {$match: {name: "target_u"}}, {$project: {spec: 1}}]'), '{"spec": {"v": 2, "key": {"u": 1}, "name": "target_u", "unique": true, "partialFilterExpression": {"u": {"$gt": 0}}}}', 'how an index was made');
SELECT throws_ok($t$SELECT run('paid', '[{$collStats: {count: {}}}]')$t$, '42809', '"paid" is a view', 'a view stores nothing');
SELECT throws_ok('SELECT run(' || quote_literal('[{$collStats: ' || spec || '}]') || ')', state, NULL, '$collStats: ' || spec)
  FROM (VALUES ('{count: {a: 1}}', '22023'), ('{queryExecStats: {a: 1}}', '22023'), ('{storageStats: {a: 1}}', '22023'), ('{storageStats: {scale: 0}}', '22023'),
  ('{storageStats: {scale: -0.5}}', '22023'), ('{storageStats: {scale: "1"}}', '22023'), ('{counts: null}', '22023'), ('{latencyStats: {}}', '0A000')) AS v (spec, state);

-- ---------------------------------------------------------------- errors
SELECT throws_ok($t$SELECT run('{}')$t$, '22023', NULL, 'a pipeline is an array');
SELECT throws_ok($t$SELECT run('[1]')$t$, '22023', NULL, 'of documents');
SELECT throws_ok($t$SELECT run('[{}]')$t$, '22023', NULL, 'with a field');
SELECT throws_ok($t$SELECT run('[{$match: {}, $limit: 1}]')$t$, '22023', 'a stage has one field, its name, but there is "$limit" too', 'and only one');
SELECT throws_ok($t$SELECT run('[{$mach: {}}]')$t$, '0A000', 'unknown stage "$mach"', 'an unknown stage');
-- What is done in another way here: the message and the hint
CREATE FUNCTION refusal(spec text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  what text;
  instead text;
BEGIN
  IF spec LIKE '[%' THEN PERFORM run(('{v: ' || spec || '}')::bson -> 'v'); ELSE PERFORM collection_find('orders', spec::bson); END IF;
  RETURN 'none';
EXCEPTION WHEN feature_not_supported THEN
  GET STACKED DIAGNOSTICS what = MESSAGE_TEXT, instead = PG_EXCEPTION_HINT;
  RETURN what || E'\n' || instead;
END $$;
SELECT is(refusal(format('[{$limit: 1}, {%s: {}}]', s)), format(E'stage "%s" is not supported\n%s', s, hint), s) FROM (VALUES
  ('$search', 'Use PostgreSQL''s text search: see docs/search.md.'), ('$searchMeta', 'Use PostgreSQL''s text search: see docs/search.md.'),
  ('$vectorSearch', 'Use the extension pgvector: see docs/search.md.'), ('$geoNear', 'Use PostGIS: see docs/search.md.'),
  ('$rankFusion', 'Combine ranks in SQL: see docs/search.md.'), ('$scoreFusion', 'Combine ranks in SQL: see docs/search.md.'),
  ('$changeStream', 'Use the change feed pattern, or logical decoding.'),
  ('$changeStreamSplitLargeEvent', 'Use the change feed pattern, or logical decoding.'),
  ('$currentOp', 'Query the view pg_stat_activity.'), ('$listSessions', 'Query the view pg_stat_activity.'),
  ('$listLocalSessions', 'Query the view pg_stat_activity.'), ('$listSampledQueries', 'Use the extension pg_stat_statements.'),
  ('$queryStats', 'Use the extension pg_stat_statements.'), ('$planCacheStats', 'Query the view pg_prepared_statements.'),
  ('$listSearchIndexes', 'Call collection_list_indexes().'), ('$listClusterCatalog', 'Query the view pg_tables.'),
  ('$querySettings', 'Set planner parameters for a session, a role or a database.'),
  ('$shardedDataDistribution', 'Query the view citus_shards of the extension Citus.')) AS v (s, hint);
SELECT is(refusal(format('{a: {%s: {}}}', s)), format(E'filter operator "%s" is not supported\nUse PostGIS: see docs/search.md.', s), s)
  FROM unnest('{$near,$nearSphere,$geoWithin,$geoIntersects}'::text[]) AS s;
SELECT is(refusal('{$text: {$search: "x"}}'), E'top-level filter operator "$text" is not supported\nUse PostgreSQL''s text search: see docs/search.md.', '$text');
SELECT is(refusal('[{$project: {score: {$meta: "textScore"}}}]'), E'$meta is not supported\nCompute ranks and distances in SQL: see docs/search.md.', '$meta');
SELECT is(refusal('[{$sort: {score: {$meta: "textScore"}}}]'), E'sorting by $meta is not supported\nCompute ranks and distances in SQL: see docs/search.md.', '$meta in $sort');
SELECT throws_ok($t$SELECT run('[{$match: {a: {$foo: 1}}}]')$t$, '0A000', NULL, 'an unknown operator');
CREATE FUNCTION wrong(pipeline bson_value) RETURNS text LANGUAGE plpgsql AS $$ DECLARE d text; BEGIN RETURN run(pipeline); EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS d = PG_EXCEPTION_DETAIL; RETURN d; END $$;
SELECT is(wrong('[{$match: {a: 1}}, {$match: {b: {$foo: 1}}}, {$match: {c: 1}}]'), 'At path "1.$match.b.$foo".', 'of conditions that are merged, the error names the stage');
SELECT is(wrong('[{$match: {a: 1}}, {$match: 1}]'), 'At path "1.$match".', 'also of what is no filter');
SELECT throws_ok($t$SELECT run('[{$set: {a: {$foo: 1}}}, {$count: "n"}]')$t$, '0A000', NULL, 'also where it is not computed');
SELECT throws_ok($t$SELECT run('[{$limit: 0}]')$t$, '22023', NULL, '$limit is positive');
SELECT throws_ok($t$SELECT run('[{$limit: "1"}]')$t$, '22023', NULL, 'and a number');
SELECT throws_ok($t$SELECT run('[{$skip: -1}]')$t$, '22023', NULL, '$skip is not negative');
SELECT throws_ok($t$SELECT run('[{$group: {n: {$sum: 1}}}]')$t$, '22023', NULL, '$group needs an _id');
SELECT throws_ok($t$SELECT run('[{$group: {_id: 1, n: {$foo: 1}}}]')$t$, '0A000', NULL, 'and knows its accumulators');
SELECT throws_ok($t$SELECT run('[{$unwind: "items"}]')$t$, '22023', NULL, '$unwind needs a path');
SELECT throws_ok($t$SELECT run('[{$unwind: {path: "$a", foo: 1}}]')$t$, '22023', NULL, 'and knows its options');
SELECT throws_ok($t$SELECT run('[{$count: "a.b"}]')$t$, '22023', NULL, '$count needs a name');
SELECT throws_ok($t$SELECT run('[{$sort: {}}]')$t$, '22023', NULL, '$sort needs a field');
SELECT is(run('[{$sample: {size: 1.9}}, {$count: "n"}]'), '{"n": 1}', '$sample cuts fractions off');
SELECT throws_ok($t$SELECT run('[{$sample: {size: 0.5}}]')$t$, '22023', NULL, 'less than one is too little');
SELECT is(run('[{$sample: {size: NumberDecimal("1.5")}}, {$count: "n"}]'), '{"n": 2}', 'but rounds those of decimals');
SELECT is(run('[{$sample: {size: 1e300}}, {$count: "n"}]'), '{"n": 5}', 'and more than there is is all');
SELECT throws_ok($t$SELECT run('[{$count: "_id"}]')$t$, '22023', NULL, '$count does not name the _id');
SELECT throws_ok($t$SELECT run('[{$project: {}}]')$t$, '22023', NULL, '$project needs a field');
SELECT throws_ok($t$SELECT run('[{$group: {_id: {a: 1}}}]')$t$, '22023', 'field "a" of a group''s key must be an expression, not int', 'a key that includes fields');
SELECT throws_ok($t$SELECT run('[{$group: {_id: {a: "$at", b: true}}}]')$t$, '22023', NULL, 'also further on');
SELECT is(run('[{$group: {_id: {a: {b: 1}}}}]'), '{"_id": {"a": {"b": 1}}}', 'constants further in are values');
SELECT is(run('[{$group: {_id: null, "": {$sum: 1}}}]'), '{"_id": null, "": 5}', 'a name may be empty');
SELECT throws_ok($t$SELECT run('[{$sort: {at: 1, status: 1, at: -1}}]')$t$, '22023', NULL, '$sort takes a field once');
SELECT is(run('[{$sort: {_id: NumberDecimal("-0.51")}}, {$limit: 1}, {$project: {_id: 1}}]'), '{"_id": 5}', 'a decimal direction is rounded');
SELECT throws_ok($t$SELECT run('[{$merge: {into: "target", whenMatched: "fail", whenNotMatched: "discard"}}]')$t$, '22023', NULL, '$merge must be able to write');
SELECT throws_ok($t$SELECT run('[{$merge: {into: "target", let: {a: 1}}}]')$t$, '22023', NULL, 'its variables are for stages');
SELECT throws_ok('SELECT run(' || quote_literal('[{$match: {}}, {$merge: ' || spec || '}]') || ')', state, NULL, '$merge: ' || spec)
  FROM (VALUES ('{into: "target", on: null}', '22023'), ('{into: "target", whenMatched: null}', '22023'), ('{into: "target", whenMatched: [1]}', '22023'), ('{into: "target", whenMatched: [{$match: {}}]}', '0A000'),
  ('{into: "target", whenMatched: [], let: {new: "$a"}}', '22023'), ('{into: "target", whenMatched: [], let: {"$v": 1}}', '22023'), ('{into: "target", whenMatched: [], let: {v: {$foo: 1}}}', '0A000'),
  ('{into: "nowhere", on: "a"}', '22023'), ('"$at"', '22023'), ('{into: {coll: "target", timeseries: {timeField: "at"}}}', '0A000')) AS v (spec, state);
SELECT throws_like($t$SELECT run('[{$match: {}}, {$merge: {into: "target", whenMatched: [{$set: {a: 1}}, {$set: 1}]}}]')$t$, '%document of fields%', 'stages are checked before');
SELECT throws_ok($t$SELECT run('[{$merge: {into: "target", on: ["a", "a"]}}]')$t$, '22023', NULL, 'a field identifies once');
SELECT throws_ok($t$SELECT run('[{$merge: {into: "nowhere", whenNotMatched: "discard"}}]')$t$, '42P01', NULL, 'what only changes is not created');
SELECT throws_ok($t$SELECT run('[{$sample: {}}]')$t$, '22023', NULL, '$sample needs a size');
SELECT throws_ok($t$SELECT run('[{$limit: 1}, {$collStats: {}}]')$t$, '22023', NULL, '$collStats comes first');
SELECT throws_ok($t$SELECT run('[{$merge: {into: "target", whenMatched: "foo"}}]')$t$, '22023', NULL, '$merge knows its modes');
SELECT throws_ok($t$SELECT run(NULL::regclass, '[{$match: {}}]')$t$, '22023', NULL, 'no relation');
SELECT throws_ok($t$SELECT run('orders', NULL)$t$, '22004', NULL, 'no pipeline');
SELECT throws_ok($t$SELECT run(bson_array(VARIADIC array_fill(bson '{"$limit": 1}', ARRAY[1001])))$t$, '54000', NULL, 'too many stages');
SELECT throws_ok($t$SELECT run('[{$merge: "no.such.thing.at.all"}]')$t$, '42601', NULL, 'a bad name');
SELECT is(run('[{$match: {"a''b\"c": {$exists: false}}}, {$project: {"x''y": {$literal: "''; DROP TABLE orders; --"}, _id: 0}}, {$limit: 1}]'), E'{"x''y": "''; DROP TABLE orders; --"}', 'nothing in a specification becomes SQL');

CREATE ROLE pipeline_reader;
GRANT SELECT ON many TO pipeline_reader;
SET ROLE pipeline_reader;
SELECT is(run('many', '[{$count: "n"}]'), '{"n": 5000}', 'SELECT is enough to read');
SELECT throws_ok($t$SELECT run('orders', '[{$count: "n"}]')$t$, '42501', 'permission denied for table orders', 'and is needed');
SELECT throws_ok($t$SELECT run('paid', '[{$count: "n"}]')$t$, '42501', NULL, 'also below a view');
SELECT throws_ok($t$SELECT run('many', '[{$merge: "target"}]')$t$, '42501', 'permission denied for table target', 'writing needs more');
SELECT throws_ok($t$SELECT run('many', '[{$out: "target"}]')$t$, '42501', 'permission denied for table target', 'also for $out');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
