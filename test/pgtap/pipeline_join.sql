-- Stages of pipelines that read several relations or have pipelines of their own.
\set QUIET 1
BEGIN;
SELECT plan(209);
SET client_min_messages = warning;
SET jit = off;

-- documents, sorted
CREATE FUNCTION p(pipeline text) RETURNS bson_value LANGUAGE sql AS $$ SELECT ('{"p": ' || pipeline || '}')::bson -> 'p' $$;
CREATE FUNCTION run(rel regclass, pipeline text, let bson DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
  SELECT string_agg(d::text, E'\n' ORDER BY d) FROM collection_aggregate(rel, p(pipeline), let) AS d $$;
CREATE FUNCTION plan(rel regclass, pipeline text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; result text := '';
BEGIN
  FOR line IN SELECT collection_explain(rel, p(pipeline)) LOOP result := result || line || E'\n'; END LOOP;
  RETURN result;
END $$;

SELECT collection_create('customers'), collection_create('orders');
INSERT INTO customers (doc) VALUES ('{_id: 1, name: "Ada", by: 3}'), ('{_id: 2, name: "Bob", by: 1}'), ('{_id: 3, name: "Eve"}');
INSERT INTO orders (doc) VALUES ('{_id: 10, c: 1, n: 5}'), ('{_id: 11, c: 2, n: 6}'), ('{_id: 12, c: 1.0, n: 7}'),
  ('{_id: 13, c: [1, 2, 2], n: 8}'), ('{_id: 14, c: 9}'), ('{_id: 15}'), ('{_id: 16, c: null}'), ('{_id: 17, c: []}');

-- $lookup by the key
SELECT is(run('orders', '[{$lookup: {from: "customers", localField: "c", foreignField: "_id", as: "r"}}, {$project: {n: {$sortArray: {input: "$r.name", sortBy: 1}}}}]'),
  E'{"_id": 10, "n": ["Ada"]}\n{"_id": 11, "n": ["Bob"]}\n{"_id": 12, "n": ["Ada"]}\n{"_id": 13, "n": ["Ada", "Bob"]}\n{"_id": 14, "n": []}\n{"_id": 15, "n": []}\n{"_id": 16, "n": []}\n{"_id": 17, "n": []}',
  'by the key: equal numbers, several values, none');
SELECT is(run('orders', '[{$lookup: {from: "customers", localField: "c", foreignField: "_id", as: "r"}}, {$unwind: "$r"}, {$project: {n: "$r.name"}}]'),
  E'{"_id": 10, "n": "Ada"}\n{"_id": 11, "n": "Bob"}\n{"_id": 12, "n": "Ada"}\n{"_id": 13, "n": "Ada"}\n{"_id": 13, "n": "Bob"}', 'a join with $unwind');
SELECT is(run('orders', '[{$match: {_id: {$gt: 12}}}, {$lookup: {from: "customers", localField: "c", foreignField: "_id", as: "r"}}, {$unwind: {path: "$r", preserveNullAndEmptyArrays: true, includeArrayIndex: "i"}}, {$project: {i: 1, n: {$type: "$r"}}}]'),
  E'{"_id": 13, "i": {"$numberLong": "0"}, "n": "object"}\n{"_id": 13, "i": {"$numberLong": "1"}, "n": "object"}\n{"_id": 14, "i": null, "n": "missing"}\n{"_id": 15, "i": null, "n": "missing"}\n{"_id": 16, "i": null, "n": "missing"}\n{"_id": 17, "i": null, "n": "missing"}', 'the options of $unwind');
SELECT is((SELECT string_agg(d ->> '_id', ',') FROM collection_aggregate('orders', '[{$sort: {n: -1, _id: 1}}, {$lookup: {from: "customers", localField: "c", foreignField: "_id", as: "r"}}]') d),
  '13,12,11,10,14,15,16,17', 'the order stays');
SELECT is((SELECT string_agg(concat(d ->> '_id', d ->> 'r.name'), ',') FROM collection_aggregate('orders', '[{$sort: {n: -1, _id: 1}}, {$limit: 3}, {$lookup: {from: "customers", localField: "c", foreignField: "_id", as: "r"}}, {$unwind: "$r"}, {$skip: 1}]') d),
  '13Bob,12Ada,11Bob', 'also with $limit before and $unwind after');
SELECT is(run('orders', '[{$group: {_id: {$type: "$c"}}}, {$match: {_id: "int"}}, {$lookup: {from: "orders", localField: "none", foreignField: "c", as: "r"}}, {$project: {r: {$sortArray: {input: "$r._id", sortBy: 1}}}}]'),
  '{"_id": "int", "r": [15, 16]}', 'after $group: missing is null, on both sides');

SELECT is(run(NULL, '[{$documents: [{_id: 1, a: 5}, {_id: 2, a: {c: 1, b: {d: [0]}}}, {_id: 3, a: [{b: {d: 1}}]}, {_id: 4}]}, {$lookup: {from: "customers", localField: "x", foreignField: "_id", as: "a.b.d"}}]'),
  E'{"_id": 1, "a": {"b": {"d": []}}}\n{"_id": 2, "a": {"c": 1, "b": {"d": []}}}\n{"_id": 3, "a": {"b": {"d": []}}}\n{"_id": 4, "a": {"b": {"d": []}}}', 'the field of the result replaces what is no document');
SELECT ok(length(collection_aggregate_sql('customers', p('[{$graphLookup: {from: "customers", startWith: 1, connectFromField: "a", connectToField: "b", as: "a' || repeat('.a', 60) || '"}}]'))) < 100000, 'also if it is deep');

-- ways to find foreign documents: none, an index that may have arrays, one that has not, GIN, the key, a view, partitions
CREATE TABLE "no""ne" (k int, d bson);
CREATE TABLE loose (d bson);
CREATE INDEX ON loose ((d -> 'a'));
CREATE INDEX ON loose ((d -> 'b.c'));
CREATE TABLE strict (d bson CHECK (bson_typeof(d, 'a') <> 'array'));
CREATE INDEX ON strict ((d -> 'a'));
CREATE TABLE gin (d bson);
CREATE INDEX ON gin USING gin (d bson_ops(paths = 'a, b'));
CREATE TABLE parts (k int, d bson) PARTITION BY LIST (k);
CREATE TABLE parts1 PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE parts2 PARTITION OF parts DEFAULT;
CREATE VIEW view AS SELECT d AS doc FROM parts WHERE k < 100;
CREATE TABLE local (d bson);
CREATE FUNCTION random_value(deep int) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT (ARRAY['1', '2', '3', '1.0', '{$numberDecimal: "2"}', 'null', '"x"', '/x/', '{c: 1}', '[]', '[1, 2]', '[2, [1], null]', '{c: 2}', '[{c: 1}, {d: 1}]', '[{c: [1, 2]}, 3]', '{c: [2, 3]}'])[1 + floor(random() * 16)] $$;
SELECT setseed(coalesce(nullif(current_setting('test.seed', true), ''), '0.3')::float8);
INSERT INTO "no""ne" SELECT i, ('{_id: ' || i || CASE WHEN random() < 0.9 THEN ', a: ' || random_value(0) ELSE '' END || CASE WHEN random() < 0.9 THEN ', b: ' || random_value(0) ELSE '' END || '}')::bson FROM generate_series(1, 80) i;
INSERT INTO local SELECT d FROM "no""ne" ORDER BY random() LIMIT 40;
INSERT INTO loose SELECT d FROM "no""ne";
INSERT INTO gin SELECT d FROM "no""ne";
INSERT INTO parts SELECT k % 3, d FROM "no""ne";
INSERT INTO strict SELECT d FROM "no""ne" WHERE bson_typeof(d, 'a') IS DISTINCT FROM 'array';
ANALYZE loose, strict, gin;
SET enable_seqscan = off;
-- what MongoDB does: a filter of the local values, of which regular expressions are values
CREATE FUNCTION expected(foreign_rel text, lpath text, fpath text) RETURNS TABLE (l int, f int) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE format($q$SELECT DISTINCT (l.d -> '_id')::int, (f.d -> '_id')::int
    FROM local l, LATERAL (SELECT v FROM bson_values(l.d, %L) v UNION ALL SELECT 'null' WHERE NOT EXISTS (SELECT FROM bson_values(l.d, %L))) AS v,
      %I f WHERE f.d @@ bson_build(%L, bson_build('$eq', v.v))$q$, lpath, lpath, foreign_rel, fpath);
END $$;
CREATE FUNCTION found(foreign_rel text, lpath text, fpath text, rest text, field text) RETURNS TABLE (l int, f int) LANGUAGE sql AS $$
  SELECT (d -> '_id')::int, v::int FROM collection_aggregate('local', p(format('[{$lookup: {from: %s, localField: "%s", foreignField: "%s", as: "r.s"%s}}%s]',
    to_json(quote_ident(foreign_rel)), lpath, fpath, rest, field))) AS d, bson_values(d, 'r.s._id') v $$;
SELECT results_eq(format('SELECT * FROM found(%L, %L, %L, %L, %L) ORDER BY 1, 2', rel, lpath, fpath, rest, stage), format('SELECT * FROM expected(%L, %L, %L) ORDER BY 1, 2', CASE rel WHEN 'view' THEN 'parts' ELSE rel END, lpath, fpath),
    concat_ws(' ', rel, lpath, fpath, rest, stage))
  FROM unnest(ARRAY['no"ne', 'loose', 'strict', 'gin', 'parts', 'view']) rel, (VALUES ('a', 'a'), ('a', 'b.c'), ('b.c', 'a'), ('b.c', 'b.c'), ('a.0', 'a'), ('a', 'a.1')) AS p (lpath, fpath),
    (VALUES ('', ''), ('', ', {$unwind: "$r.s"}'), (', pipeline: [{$project: {_id: 1}}]', ''), (', pipeline: [{$match: {}}]', ', {$unwind: {path: "$r.s"}}')) AS f (rest, stage)
  WHERE (rel IN ('no"ne', 'loose', 'gin') OR rest || stage = '') AND (rel <> 'view' OR lpath = 'a');

-- plans
SELECT matches(plan('orders', '[{$match: {_id: 10}}, {$lookup: {from: "customers", localField: "c", foreignField: "_id", as: "r"}}]'), 'Index Scan using customers_pkey', 'a key is found by its index');
SELECT cmp_ok(length(plan('orders', (SELECT format('[%s]', string_agg(format('{$lookup: {from: "customers", localField: "c", foreignField: "_id", as: "r%s"}}', i), ',')) FROM generate_series(1, 12) AS i))), '<', 100000, 'a plan does not double with each stage');
SELECT cmp_ok(lengths[2], '<', 4 * lengths[1], 'nor grow with its square') FROM (SELECT array_agg(length(plan('orders', (SELECT format('[%s]', string_agg(format('{$lookup: {from: "customers", localField: "c", foreignField: "_id", as: "r%s"}}', i), ',')) FROM generate_series(1, n) AS i))) ORDER BY n) FROM unnest('{80, 240}'::int[]) n) l (lengths);
SELECT is(run('orders', (SELECT format('[{$lookup: {from: "customers", let: {v: "$c"}, pipeline: [%s, {$set: {f: {$add: ["$f", "$$v"]}}}, {$unset: "name"}], as: "r"}}, {$match: {r: {$ne: []}}}]', string_agg(format('{$set: {f: %s}}, {$sort: {f: 1, _id: 1}}, {$limit: 3}, {$match: {$expr: {$eq: ["$_id", "$$v"]}}}', i), ',')) FROM generate_series(1, 60) AS i)),
  E'{"_id": 10, "c": 1, "n": 5, "r": [{"_id": 1, "by": 3, "f": 61}]}\n{"_id": 11, "c": 2, "n": 6, "r": [{"_id": 2, "by": 1, "f": 62}]}\n{"_id": 12, "c": 1.0, "n": 7, "r": [{"_id": 1, "by": 3, "f": 61.0}]}', 'many stages inside of $lookup, with a variable');
SELECT is((SELECT count(*) FROM collection_aggregate('orders', p((SELECT format('[{$sort: {_id: -1}}, %s, {$unionWith: {coll: "customers", pipeline: [%1$s]}}, {$out: "%s"}]', string_agg('{$redact: "$$KEEP"}, {$skip: 0}, {$limit: 7}', ','), 'written') FROM generate_series(1, 60))))), 0::bigint, 'so many of two queries, which are written');
SELECT is((SELECT array_agg((doc ->> '_id')::int ORDER BY doc) FROM written), '{1,2,3,11,12,13,14,15,16,17}', 'are the same documents');
SELECT matches(plan('local', '[{$lookup: {from: "gin", localField: "a", foreignField: "a", as: "r"}}]'), 'Bitmap Index Scan on gin_d_idx', 'a GIN index');
SELECT matches(plan('local', '[{$lookup: {from: "gin", let: {v: "$a"}, pipeline: [{$match: {$and: [{x: 1}, {$expr: {$and: [{$eq: ["$$v", "$a"]}]}}]}}], as: "r"}}]'), 'Bitmap Index Scan on gin_d_idx', 'also by $expr');
SELECT matches(plan('local', '[{$lookup: {from: "strict", localField: "b", foreignField: "a", as: "r"}}]'), 'Index Cond: \(\(d -> ''a''::text\) = ANY', 'a btree');
SELECT matches(plan('local', '[{$lookup: {from: "strict", let: {v: "$a"}, pipeline: [{$match: {$expr: {$eq: ["$a", "$$v"]}}}], as: "r"}}]'), 'Index Cond: \(\(d -> ''a''::text\) = ', 'and by $expr');
RESET enable_seqscan;
SET enable_mergejoin = off;
SELECT matches(plan('local', '[{$lookup: {from: "no\"ne", localField: "a", foreignField: "b.c", as: "r"}}]'), 'Hash (Left|Right) Join', 'without an index values are hashed');
SELECT matches(plan('orders', '[{$lookup: {from: "customers", localField: "c", foreignField: "_id", as: "r"}}, {$unwind: "$r"}]'), 'Hash Join', 'and keys, too');
RESET enable_mergejoin;

-- indexes and whole collections
SELECT collection_create('many'), collection_create('more');
INSERT INTO many (doc) SELECT bson_build('_id', i) FROM generate_series(1, 1000) i;
INSERT INTO more (doc) SELECT bson_build('_id', i, 'm', i % 1000) FROM generate_series(1, 2000) i;
SELECT collection_create_index('more', '{m: 1}');
ANALYZE many, more;
SELECT unalike(plan('many', '[{$lookup: {from: "more", localField: "_id", foreignField: "m", as: "r"}}]'), '%SubPlan%', 'all of a collection: both are read');
SELECT alike(plan('many', '[{$match: {_id: {$gt: 5}}}, {$lookup: {from: "more", localField: "_id", foreignField: "m", as: "r"}}]'), '%more_m_idx%', 'a part: the index');
SELECT alike(plan('many', '[{$lookup: {from: "more", localField: "_id", foreignField: "m", as: "r"}}, {$limit: 5}]'), '%more_m_idx%', 'also if the part is limited later');
SELECT results_eq($$SELECT d FROM collection_aggregate('many', '[{$sort: {_id: -1}}, {$lookup: {from: "more", localField: "_id", foreignField: "m", as: "r"}}, {$unset: "r.m"}]') d LIMIT 2$$, $$VALUES (bson '{_id: 1000, r: []}'), ('{_id: 999, r: [{_id: 999}, {_id: 1999}]}')$$, 'and the order stays');

-- variables
SELECT is(run('customers', '[{$lookup: {from: "orders", let: {x: "$_id", none: "$none"}, pipeline: [{$match: {$expr: {$or: [{$eq: ["$c", "$$x"]}, {$eq: ["$$none", 1]}]}}}, {$project: {twice: {$add: ["$n", "$n", "$$x"]}}}, {$sort: {_id: -1}}], as: "o"}}, {$project: {o: 1}}]'),
  E'{"_id": 1, "o": [{"_id": 12, "twice": 15}, {"_id": 10, "twice": 11}]}\n{"_id": 2, "o": [{"_id": 11, "twice": 14}]}\n{"_id": 3, "o": []}', 'let and a pipeline in its order');
SELECT is(run('customers', '[{$lookup: {from: "orders", localField: "_id", foreignField: "c", let: {x: "$name"}, pipeline: [{$match: {n: {$gt: 5}}}, {$replaceWith: {n: "$n", x: "$$x", v: "$$top"}}, {$sort: {n: 1}}], as: "o"}}, {$project: {o: 1}}]', '{top: "T"}'),
  E'{"_id": 1, "o": [{"n": 7, "x": "Ada", "v": "T"}, {"n": 8, "x": "Ada", "v": "T"}]}\n{"_id": 2, "o": [{"n": 6, "x": "Bob", "v": "T"}, {"n": 8, "x": "Bob", "v": "T"}]}\n{"_id": 3, "o": []}', 'both forms together, and variables of the call');
SELECT is(run('customers', '[{$match: {_id: 1}}, {$lookup: {from: "orders", let: {a: "$_id", b: 1}, pipeline: [{$match: {$expr: {$eq: ["$c", "$$a"]}}}, {$lookup: {from: "customers", let: {b: "$_id"}, pipeline: [{$match: {$expr: {$eq: ["$_id", "$$a"]}}}, {$project: {s: {$add: ["$$a", "$$b"]}}}], as: "i"}}, {$unwind: "$i"}, {$project: {i: 1}}, {$sort: {_id: 1}}], as: "o"}}, {$project: {o: 1}}]'),
  '{"_id": 1, "o": [{"_id": 10, "i": {"_id": 1, "s": 11}}, {"_id": 12, "i": {"_id": 1, "s": 13}}]}', 'nested: outer variables are visible, inner ones hide them');
SELECT is(run('customers', '[{$lookup: {from: "orders", pipeline: [{$count: "n"}], as: "o"}}, {$unwind: "$o"}, {$project: {o: 1}}]'), E'{"_id": 1, "o": {"n": 8}}\n{"_id": 2, "o": {"n": 8}}\n{"_id": 3, "o": {"n": 8}}', 'not correlated');
CREATE TABLE few (doc bson);
CREATE TABLE found (doc bson);
INSERT INTO few VALUES ('{_id: 1}'), ('{_id: 2}'), ('{_id: 3}');
INSERT INTO found SELECT bson_build('_id', i) FROM generate_series(1, 8) i;
ANALYZE few, found;
SELECT is((SELECT string_agg(d ->> '_id', '') FROM collection_aggregate('few', p('[{$sort: {_id: -1}}, {$lookup: {from: "found", ' || l || 'as: "r"}}, {$unwind: "$r"}]')) d),
  '333333332222222211111111', 'rows keep their order: ' || l)
  FROM (VALUES ('pipeline: [], '), ('let: {a: "$_id"}, pipeline: [{$match: {$expr: {$gt: ["$_id", {$subtract: ["$$a", 9]}]}}}], ')) AS f (l);
SELECT is(run('few', '[{$sort: {_id: 1}}, {$skip: 2}, {$lookup: {from: "found", let: {a: {$divide: [1, {$subtract: ["$_id", 1]}]}}, pipeline: [{$match: {$expr: {$lt: ["$_id", "$$a"]}}}], as: "r"}}]'),
  '{"_id": 3, "r": []}', 'variables are not computed for skipped documents');
SELECT is(run('customers', '[{$match: {_id: 1}}, {$lookup: {let: {x: "$name"}, pipeline: [{$documents: [{a: 1}, {a: "$$x"}]}], as: "o"}}, {$project: {o: 1}}]'), '{"_id": 1, "o": [{"a": 1}, {"a": "Ada"}]}', '$documents in $lookup');
SELECT is((SELECT count(*) FROM collection_aggregate('local', '[{$lookup: {from: "strict", let: {v: "$a"}, pipeline: [{$match: {$expr: {$eq: ["$a", "$$v"]}}}], as: "r"}}, {$unwind: "$r"}]')),
  (SELECT count(*) FROM local l, strict f WHERE (l.d -> 'a') IS NOT DISTINCT FROM (f.d -> 'a')), 'missing equals missing in $expr');

-- keys of a type, split documents
SELECT collection_create('typed', key_type => 'int');
INSERT INTO typed (doc) SELECT bson_build('_id', i) FROM generate_series(1, 3) i;
SELECT is(run('orders', '[{$lookup: {from: "typed", localField: "c", foreignField: "_id", as: "r"}}, {$match: {r: {$ne: []}}}, {$project: {r: 1}}]'),
  E'{"_id": 10, "r": [{"_id": 1}]}\n{"_id": 11, "r": [{"_id": 2}]}\n{"_id": 12, "r": [{"_id": 1}]}\n{"_id": 13, "r": [{"_id": 1}, {"_id": 2}]}', 'keys of a type: what cannot be a key finds nothing');
SELECT is(run('customers', '[{$lookup: {from: "typed", localField: "name", foreignField: "_id", as: "r"}}, {$unwind: "$r"}]'), NULL, 'texts are no such keys');
SELECT collection_create('books');
SELECT outlier_enable('books', field => 'buyers', threshold => 3);
INSERT INTO books (doc) VALUES ('{_id: 1, buyers: [1, 2, 3, 4, 5], t: "x"}'), ('{_id: 2, buyers: [7], t: "x"}');
SELECT is(run('customers', '[{$match: {_id: 1}}, {$lookup: {from: "books", localField: "_id", foreignField: "_id", as: "b"}}, {$project: {b: 1}}]'), '{"_id": 1, "b": [{"_id": 1, "buyers": [1, 2, 3, 4, 5], "t": "x"}]}', 'split documents are whole');
SELECT is(run(NULL, '[{$documents: [{u: 5}, {u: 7}, {u: 8}]}, {$lookup: {from: "books", localField: "u", foreignField: "buyers", as: "b"}}, {$project: {n: "$b._id"}}]'), E'{"n": []}\n{"n": [1]}\n{"n": [2]}', 'and are found by what was split off');
SELECT is(run('customers', '[{$match: {_id: 1}}, {$lookup: {from: "books_whole", localField: "_id", foreignField: "_id", as: "b"}}, {$project: {b: 1}}]'), '{"_id": 1, "b": [{"_id": 1, "buyers": [1, 2, 3, 4, 5], "t": "x"}]}', 'as in the view');
-- $merge and $out write whole documents
CREATE FUNCTION written(stage text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM collection_aggregate(NULL, p('[{$documents: [{_id: 1, buyers: [9, 8, 7, 6], u: 1}, {_id: 3, buyers: [1, 2, 3, 4]}, {_id: 3, v: 1}, {_id: 2, u: 2}]}, ' || stage || ']'));
  RETURN (SELECT string_agg(bson_to_json(w.doc) || CASE WHEN t.doc ? 'has_extras' THEN ' split' ELSE '' END, ' ' ORDER BY w._id) FROM books_whole AS w JOIN books AS t USING (_id));
END $$;
SAVEPOINT books;
SELECT is(written('{$merge: "books"}'), '{"_id": 1, "buyers": [9, 8, 7, 6], "t": "x", "u": 1} split {"_id": 2, "buyers": [7], "t": "x", "u": 2} {"_id": 3, "buyers": [1, 2, 3, 4], "v": 1} split', 'whole documents are merged, and split again');
SELECT is((SELECT count(*) FROM pattern_check('books')), 0::bigint, 'so that the pattern holds');
ROLLBACK TO books;
SELECT is(written('{$merge: {into: "books", whenMatched: "replace", whenNotMatched: "discard"}}'), '{"_id": 1, "buyers": [9, 8, 7, 6], "u": 1} split {"_id": 2, "u": 2}', 'or replaced');
SELECT is((SELECT count(*) FROM pattern_check('books')), 0::bigint, 'the pattern holds');
ROLLBACK TO books;
SELECT is(written('{$merge: {into: "books", whenMatched: "keepExisting"}}'), '{"_id": 1, "buyers": [1, 2, 3, 4, 5], "t": "x"} split {"_id": 2, "buyers": [7], "t": "x"} {"_id": 3, "buyers": [1, 2, 3, 4]} split', 'or kept');
ROLLBACK TO books;
SELECT throws_ok($$SELECT written('{$merge: {into: "books", whenNotMatched: "fail"}}')$$, 'P0002', NULL, 'all are found, or none is written');
SELECT throws_ok($$SELECT written('{$merge: {into: "books", whenMatched: [{$set: {a: 1}}]}}')$$, '0A000', NULL, 'stages do not change them');
SELECT is(written('{$match: {_id: {$ne: 3}}}, {$out: "books"}'), '{"_id": 1, "buyers": [9, 8, 7, 6], "u": 1} split {"_id": 2, "u": 2}', '$out splits documents, too');
SELECT is((SELECT count(*) FROM pattern_check('books')), 0::bigint, 'and the pattern holds');
ROLLBACK TO books;
-- null options, deep paths, dotted names
SELECT is(run('customers', '[{$match: {_id: 1}}, {$lookup: {from: "books", localField: null, foreignField: "", let: null, pipeline: [{$match: {_id: 2}}, {$project: {_id: 1}}], as: "b"}}, {$project: {b: 1}}]'), '{"_id": 1, "b": [{"_id": 2}]}', 'fields and variables that are null are not given');
SELECT throws_ok(format($$SELECT run('customers', '[{$lookup: {from: "books", localField: "a%s", foreignField: "b", as: "b"}}]')$$, repeat('.a', 200)), '22023', NULL, 'a path has up to 200 parts');
SELECT is(run('customers', '[{$match: {_id: 1}}, {$set: {f: {$literal: {$ref: "books", $id: 2}}}}, {$lookup: {from: "books", localField: "f.$id", foreignField: "_id", as: "b"}}, {$project: {n: "$b._id"}}]'), '{"_id": 1, "n": [2]}', 'the fields of a DBRef');
SELECT throws_ok($$SELECT run('customers', '[{$lookup: {from: "books", localField: "f.$ids", foreignField: "_id", as: "b"}}]')$$, '22023', NULL, 'not others with a dollar');
SELECT throws_ok($$SELECT run('customers', '[{$set: {a: {"b.c": 1}}}]')$$, '22023', NULL, 'names inside documents have no dots');
SELECT throws_ok($$SELECT run('customers', '[{$unset: "a\u0000b"}]')$$, '22023', NULL, 'a path has no zero byte');
SELECT throws_like($$SELECT collection_aggregate('customers', '[{$graphLookup: {from: "books", startWith: 1, connectFromField: "a", connectToField: "b", as: "c"}}]')$$, '%split documents%');

-- $graphLookup
SELECT is(run('customers', '[{$graphLookup: {from: "customers", startWith: "$by", connectFromField: "by", connectToField: "_id", as: "up", depthField: "at.d"}}, {$project: {up: {$sortArray: {input: {$map: {input: "$up", in: {n: "$$this.name", d: "$$this.at.d"}}}, sortBy: {d: 1}}}}}]'),
  E'{"_id": 1, "up": [{"n": "Eve", "d": {"$numberLong": "0"}}]}\n{"_id": 2, "up": [{"n": "Ada", "d": {"$numberLong": "0"}}, {"n": "Eve", "d": {"$numberLong": "1"}}]}\n{"_id": 3, "up": []}', '$graphLookup');
SELECT is(run('customers', '[{$match: {_id: 2}}, {$graphLookup: {from: "customers", startWith: ["$by", 2], connectFromField: "by", connectToField: "_id", as: "up", maxDepth: 0, restrictSearchWithMatch: {name: {$ne: "Bob"}}}}, {$unwind: "$up"}, {$project: {n: "$up.name"}}]'),
  '{"_id": 2, "n": "Ada"}', 'with all options and several starts');
SELECT is(run('customers', '[{$graphLookup: {from: "customers", startWith: "$by", connectFromField: "by", connectToField: "_id", as: "up", restrictSearchWithMatch: {name: {$ne: "Eve"}}}}, {$project: {up: "$up.name"}}]'),
  E'{"_id": 1, "up": []}\n{"_id": 2, "up": ["Ada"]}\n{"_id": 3, "up": []}', 'by the key');
SELECT collection_create('round');
INSERT INTO round (doc) VALUES ('{_id: 1, to: [{id: 2}, {id: [3, 1]}]}'), ('{_id: 2, to: {id: {$numberLong: "1"}}}'), ('{_id: 3, to: [{id: 2}]}');
SELECT is(run(NULL, '[{$documents: [{s: [2.0, [1], null]}, {s: 7}, {}]}, {$graphLookup: {from: "round", startWith: {$ifNull: ["$s", 3]}, connectFromField: "to.id", connectToField: "_id", as: "r"}}, {$project: {n: {$sortArray: {input: "$r._id", sortBy: 1}}}}]'),
  E'{"n": []}\n{"n": [1, 2, 3]}\n{"n": [1, 2, 3]}', 'in a circle, by several links and numbers that are equal');
SELECT alike(plan('customers', '[{$graphLookup: {from: "customers", startWith: "$by", connectFromField: "by", connectToField: "_id", as: "up"}}]'), '%Recursive Union%', 'is a recursive query');

-- $unionWith, $documents, $facet
SELECT is((SELECT string_agg(d ->> '_id', ',') FROM collection_aggregate('customers', '[{$sort: {_id: -1}}, {$limit: 2}, {$unionWith: {coll: "orders", pipeline: [{$match: {n: {$gte: 7}}}, {$sort: {n: 1}}]}}, {$unionWith: {pipeline: [{$documents: [{_id: 0}]}]}}]') d), '3,2,12,13,0', '$unionWith');
SELECT is((SELECT count(*) FROM collection_aggregate('customers', p((SELECT '[' || string_agg('{$unionWith: "orders"}', ',') || ']' FROM generate_series(1, 200))))), 1603::bigint, 'many times');
SELECT is((SELECT string_agg(d ->> '_id', ',') FROM collection_aggregate('customers', '[{$unionWith: "customers"}, {$match: {_id: 2}}, {$unionWith: "customers"}, {$set: {_id: {$add: ["$_id", 1]}}}, {$unionWith: "customers"}]') d), '3,3,2,3,4,1,2,3', 'with stages between');
SELECT is(run('customers', '[{$unionWith: "customers"}, {$group: {_id: "$name", n: {$sum: 1}}}]'), E'{"_id": "Ada", "n": 2}\n{"_id": "Bob", "n": 2}\n{"_id": "Eve", "n": 2}', 'itself');
SELECT is(run('customers', '[{$lookup: {from: "orders", let: {x: "$_id"}, pipeline: [{$match: {$expr: {$eq: ["$c", "$$x"]}}}, {$unionWith: {coll: "customers", pipeline: [{$match: {$expr: {$eq: ["$by", "$$x"]}}}]}}, {$count: "n"}], as: "o"}}, {$project: {n: {$first: "$o.n"}}}]'), E'{"_id": 1, "n": 3}\n{"_id": 2, "n": 1}\n{"_id": 3, "n": 1}', 'with variables');
SELECT is(run(NULL, '[{$documents: []}]'), NULL, 'no $documents');
SELECT is(run(NULL, '[{$documents: {$map: {input: {$range: [0, 3]}, in: {x: "$$this", y: "a''b"}}}}, {$match: {x: {$gt: 1}}}]'), '{"x": 2, "y": "a''b"}', 'computed ones');
SELECT is(run('orders', '[{$sort: {_id: 1}}, {$facet: {all: [{$count: "n"}], "top ''x''": [{$sort: {n: -1}}, {$limit: 2}, {$project: {n: 1}}], first: [{$limit: 1}, {$lookup: {from: "customers", localField: "c", foreignField: "_id", as: "r"}}, {$unwind: "$r"}, {$replaceWith: "$r"}], none: [{$match: {_id: 0}}], ids: [{$project: {_id: 1}}]}}]'),
  '{"all": [{"n": 8}], "top ''x''": [{"_id": 13, "n": 8}, {"_id": 12, "n": 7}], "first": [{"_id": 1, "name": "Ada", "by": 3}], "none": [], "ids": [{"_id": 10}, {"_id": 11}, {"_id": 12}, {"_id": 13}, {"_id": 14}, {"_id": 15}, {"_id": 16}, {"_id": 17}]}', '$facet');
SELECT is(run('orders', '[{$match: {_id: 0}}, {$facet: {a: [{$count: "n"}]}}, {$set: {b: {$size: "$a"}}}]'), '{"a": [], "b": 0}', 'of nothing');
SELECT is((SELECT dp_count FROM (SELECT bson_array_length(collection_aggregate('orders', p((SELECT '[{$facet: {' || string_agg(format('f%s: [{$count: "n"}]', i), ', ') || '}}, {$replaceWith: {k: {$objectToArray: "$$ROOT"}}}]' FROM generate_series(1, 100) i))) -> 'k') AS dp_count) x), 100, 'a hundred of them');
SELECT is((SELECT count(*) FROM regexp_matches(plan('orders', '[{$facet: {a: [{$count: "n"}], b: [{$count: "n"}]}}]'), 'Seq Scan on orders', 'g')), 1::bigint, 'read its input once');

-- bad input
SELECT throws_ok(format('SELECT collection_aggregate_sql(%L, %L)', 'customers', '[{$limit: 9}, ' || stage || ']'), state, NULL, stage || coalesce(' ' || state, '')) FROM (VALUES
  ('{$lookup: 5}', '22023'), ('{$lookup: {}}', '22023'), ('{$lookup: {from: "orders", as: "x"}}', '22023'), ('{$lookup: {from: "orders", localField: "a", as: "x"}}', '22023'),
  ('{$lookup: {from: "orders", localField: "a", foreignField: "b"}}', '22023'), ('{$lookup: {from: "orders", localField: "$a", foreignField: "b", as: "x"}}', '22023'),
  ('{$lookup: {from: "orders", localField: "a", foreignField: "b..c", as: "x"}}', '22023'), ('{$lookup: {from: "orders", localField: "a", foreignField: "b", as: ""}}', '22023'),
  ('{$lookup: {from: "orders", localField: "a", foreignField: "b", as: "x", frm: 1}}', '22023'), ('{$lookup: {from: "no such", localField: "a", foreignField: "b", as: "x"}}', '42602'),
  ('{$lookup: {from: "nosuch", localField: "a", foreignField: "b", as: "x"}}', '42P01'), ('{$graphLookup: {from: "pg_class", startWith: 1, connectFromField: "a", connectToField: "b", as: "x"}}', '42703'),
  ('{$lookup: {from: "orders", let: {X: 1}, pipeline: [], as: "x"}}', '22023'), ('{$lookup: {from: "orders", let: {x: "$$y"}, pipeline: [], as: "x"}}', '22023'),
  ('{$lookup: {from: "orders", let: {x: 1}, as: "x"}}', '22023'), ('{$lookup: {pipeline: [], as: "x"}}', '22023'), ('{$lookup: {from: "orders", pipeline: {}, as: "x"}}', '22023'),
  ('{$lookup: {from: "orders", pipeline: [{$documents: [{}]}], as: "x"}}', '22023'), ('{$lookup: {from: "orders", pipeline: [{$out: "y"}], as: "x"}}', '22023'),
  ('{$lookup: {from: "orders", pipeline: [{$merge: "customers"}], as: "x"}}', '22023'), ('{$lookup: {from: "orders", pipeline: [{$nope: 1}], as: "x"}}', '0A000'),
  ('{$graphLookup: {from: "orders", startWith: 1, connectFromField: "a", connectToField: "b"}}', '22023'), ('{$graphLookup: {from: "orders", startWith: 1, connectFromField: "a", connectToField: "b", as: "c", maxDepth: -1}}', '22023'),
  ('{$graphLookup: {from: "orders", startWith: {$nope: 1}, connectFromField: "a", connectToField: "b", as: "c"}}', '0A000'), ('{$graphLookup: {from: "orders", startWith: 1, connectFromField: "a", connectToField: "b", as: "c", restrictSearchWithMatch: {$nope: 1}}}', '0A000'),
  ('{$unionWith: 1}', '22023'), ('{$unionWith: {}}', '22023'), ('{$unionWith: {coll: "nosuch"}}', '42P01'), ('{$unionWith: {pipeline: [{$match: {}}]}}', '22023'), ('{$unionWith: {coll: "orders", pipeline: [{$out: "x"}]}}', '22023'),
  ('{$facet: {}}', '22023'), ('{$facet: {a: 1}}', '22023'), ('{$facet: {"a.b": []}}', '22023'), ('{$facet: {$a: []}}', '22023'), ('{$facet: {a: [{$facet: {b: []}}]}}', '22023'), ('{$facet: {a: [{$documents: []}]}}', '22023'),
  ('{$facet: {a: [{$out: "x"}]}}', '22023'), ('{$facet: {a: [{$collStats: {}}]}}', '22023'), ('{$facet: {a: [{$lookup: {from: "orders", pipeline: [{$facet: {b: []}}], as: "x"}}]}}', '22023'),
  ('{$facet: {a: [{$unionWith: {coll: "orders", pipeline: [{$indexStats: {}}]}}]}}', '22023'), ('{$documents: [{}]}', '22023')) AS v (stage, state);
SELECT throws_ok($$SELECT collection_aggregate('orders', '[{$documents: [{}]}]')$$, '22023', '$documents must be in a pipeline without a relation');
SELECT throws_ok($$SELECT collection_aggregate(NULL, '[{$documents: [5]}]')$$, '22023');
SELECT throws_ok($$SELECT collection_aggregate(NULL, '[{$documents: {$add: [1, 1]}}]')$$, '22023');
CREATE FUNCTION detail(pipeline text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE d text;
BEGIN
  PERFORM collection_aggregate_sql('customers', p(pipeline));
EXCEPTION WHEN OTHERS THEN GET STACKED DIAGNOSTICS d = PG_EXCEPTION_DETAIL; RETURN d;
END $$;
SELECT is(detail('[{$lookup: {from: "orders", as: "x", pipeline: [{$skip: 1}, {$facet: {a: [{$limit: 0}]}}]}}]'), 'At path "0.$lookup.pipeline.1.$facet.a.0.$limit".', 'errors name the stage');

-- names
CREATE SCHEMA "a""b";
CREATE TABLE "a""b"."c'd" ("e""f'" bson);
INSERT INTO "a""b"."c'd" VALUES ('{"x''y\"z": 1, n: 5}');
SELECT is(run('customers', '[{$lookup: {from: "\"a\"\"b\".\"c''d\"", localField: "_id", foreignField: "x''y\"z", as: "q''\"r"}}, {$unwind: "$q''\"r"}, {$project: {name: 1}}]'), '{"_id": 1, "name": "Ada"}', 'names with quotes');
SELECT is(run('customers', '[{$lookup: {from: "\"a\"\"b\".\"c''d\"", let: {x: "''); DROP TABLE customers; --"}, pipeline: [{$set: {x: "$$x"}}], as: "r"}}, {$unwind: "$r"}, {$limit: 1}, {$project: {_id: 0, x: "$r.x"}}]'), '{"x": "''); DROP TABLE customers; --"}', 'and values');
SELECT throws_ok($$SELECT collection_aggregate_sql('customers', '[{$lookup: {from: "orders; DROP TABLE orders", localField: "a", foreignField: "b", as: "x"}}]')$$, '42602');

-- rights and row-level security
CREATE ROLE regress_join;
GRANT SELECT ON customers TO regress_join;
CREATE TABLE secret (owner text, d bson);
INSERT INTO secret VALUES ('regress_join', '{k: 1, n: 1}'), ('other', '{k: 1, n: 2}');
ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON secret USING (owner = current_user);
GRANT SELECT ON secret TO regress_join;
SET ROLE regress_join;
SELECT throws_ok($$SELECT collection_aggregate('customers', '[{$lookup: {from: "orders", localField: "_id", foreignField: "c", as: "x"}}]')$$, '42501', 'permission denied for table orders', 'a foreign table needs SELECT');
SELECT throws_ok($$SELECT collection_aggregate('customers', '[{$unionWith: "orders"}]')$$, '42501');
SELECT throws_ok($$SELECT collection_aggregate('customers', '[{$graphLookup: {from: "orders", startWith: 1, connectFromField: "c", connectToField: "_id", as: "x"}}]')$$, '42501');
SELECT results_eq($$SELECT (d -> 's.n')::text FROM collection_aggregate('customers', '[{$lookup: {from: "secret", localField: "_id", foreignField: "k", as: "s"}}, {$unwind: "$s"}]') d$$, $$VALUES ('1')$$, 'policies hold');
RESET ROLE;
SELECT * FROM finish();
ROLLBACK;
