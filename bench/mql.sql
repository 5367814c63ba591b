-- The query languages beside what PostgreSQL offers for jsonb.
DROP TABLE IF EXISTS jsonb_m_lz4, bson_m_lz4, jsonb_tags, bson_tags;
CREATE TABLE jsonb_m_lz4 (doc jsonb COMPRESSION lz4);
CREATE TABLE bson_m_lz4 (doc bson COMPRESSION lz4);
INSERT INTO jsonb_m_lz4 SELECT t::jsonb FROM text_m;
INSERT INTO bson_m_lz4 SELECT t::bson FROM text_m;
-- the orders with tags
CREATE TABLE jsonb_tags AS SELECT jsonb_set(t::jsonb, '{tags}', to_jsonb(string_to_array(words(i::int, 6), ' '))) AS doc
  FROM (SELECT t, row_number() OVER () AS i FROM text_s) x;
CREATE TABLE bson_tags AS SELECT bson_set(t::bson, 'tags', string_to_array(words(i::int, 6), ' ')) AS doc
  FROM (SELECT t, row_number() OVER () AS i FROM text_s) x;
VACUUM ANALYZE jsonb_m_lz4, bson_m_lz4, jsonb_tags, bson_tags;
\echo
\echo 'operation                                 jsonb ms   bson ms   ratio    bar'
SELECT compare('filter: status = x, S', 0.75, $$SELECT count(*) FROM jsonb_s WHERE doc @> '{"status": "amber"}'$$,
                                              $$SELECT count(*) FROM bson_s WHERE doc @@ '{"status": "amber"}'$$);
SELECT compare('filter: nested equality, S', 0.75, $$SELECT count(*) FROM jsonb_s WHERE doc @> '{"customer": {"address": {"city": "ember"}}}'$$,
                                                   $$SELECT count(*) FROM bson_s WHERE doc @@ '{"customer.address.city": "ember"}'$$);
SELECT compare('filter: two keys, S', 0.75, $$SELECT count(*) FROM jsonb_s WHERE doc @> '{"status": "amber", "paid": true}'$$,
                                            $$SELECT count(*) FROM bson_s WHERE doc @@ '{"status": "amber", "paid": true}'$$);
SELECT compare('filter: element of an array, S', 0.75, $$SELECT count(*) FROM jsonb_s WHERE doc @> '{"items": [{"quantity": 5}]}'$$,
                                                       $$SELECT count(*) FROM bson_s WHERE doc @@ '{"items.quantity": 5}'$$);
SELECT compare('filter: tag in array, S', 0.75, $$SELECT count(*) FROM jsonb_tags WHERE doc @> '{"tags": ["ember"]}'$$,
                                                $$SELECT count(*) FROM bson_tags WHERE doc @@ '{"tags": "ember"}'$$);
SELECT compare('filter: range on a number, S', 0.7, $$SELECT count(*) FROM jsonb_s WHERE doc @@ '$.number > 200000 && $.number < 300000'$$,
                                                    $$SELECT count(*) FROM bson_s WHERE doc @@ '{"number": {"$gt": 200000, "$lt": 300000}}'$$);
SELECT compare('filter: $elemMatch, M lz4', 0.8,
  $$SELECT count(*) FROM jsonb_m_lz4 WHERE doc @@ 'exists($.reviews[*] ? (@.stars == 5 && @.author == "amber kettle"))'$$,
  $$SELECT count(*) FROM bson_m_lz4 WHERE doc @@ '{"reviews": {"$elemMatch": {"stars": 5, "author": "amber kettle"}}}'$$);
SELECT compare('filter: any of 10,000 elements, L', 0.6, $$SELECT count(*) FROM jsonb_l_external WHERE doc @> '{"parts": [{"id": 9990}]}'$$,
                                                         $$SELECT count(*) FROM bson_l_external WHERE doc @@ '{"parts.id": 9990}'$$);
SELECT compare('filter: first field, L lz4', 0.05, $$SELECT count(*) FROM jsonb_l_lz4 WHERE doc @> '{"_id": 5}'$$,
                                                   $$SELECT count(*) FROM bson_l_lz4 WHERE doc @@ '{"_id": 5}'$$);
SELECT compare('bson_validate: 20 rules, S', 0.8, $$SELECT count(*) FROM jsonb_s WHERE
    doc ? '_id' AND doc ? 'status' AND doc ? 'customer' AND doc ? 'items' AND doc ? 'total'
    AND jsonb_typeof(doc -> '_id') = 'number' AND jsonb_typeof(doc -> 'status') = 'string' AND jsonb_typeof(doc -> 'customer') = 'object'
    AND jsonb_typeof(doc -> 'customer' -> 'name') = 'string' AND jsonb_typeof(doc -> 'customer' -> 'address') = 'object'
    AND jsonb_typeof(doc -> 'customer' -> 'address' -> 'city') = 'string' AND length(doc -> 'customer' -> 'address' ->> 'zip') = 5
    AND jsonb_typeof(doc -> 'items') = 'array' AND jsonb_array_length(doc -> 'items') BETWEEN 1 AND 100
    AND jsonb_typeof(doc -> 'number') = 'number' AND (doc -> 'number')::int8 >= 0 AND jsonb_typeof(doc -> 'paid') = 'boolean'
    AND jsonb_typeof(doc -> 'total') = 'number' AND (doc -> 'total')::numeric >= 0 AND jsonb_typeof(doc -> 'last') = 'string'$$,
  $$SELECT count(*) FROM bson_s WHERE bson_validate(doc, '{required: ["_id", "status", "customer", "items", "total"], properties: {
    _id: {bsonType: "int"}, status: {bsonType: "string"}, customer: {bsonType: "object", properties: {name: {bsonType: "string"},
      address: {bsonType: "object", properties: {city: {bsonType: "string"}, zip: {bsonType: "string", minLength: 5, maxLength: 5}}}}},
    items: {bsonType: "array", minItems: 1, maxItems: 100}, number: {bsonType: "int", minimum: 0}, paid: {bsonType: "bool"},
    total: {bsonType: "double", minimum: 0}, last: {bsonType: "string"}}}')$$);

-- Updates: the new documents are made and not stored.
CREATE OR REPLACE FUNCTION top_reviews(doc jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE RETURN
  (SELECT jsonb_agg(r ORDER BY (r ->> 'stars')::int DESC) FROM (
     SELECT r FROM jsonb_array_elements(doc -> 'reviews' || '[{"review_id": 1, "stars": 5, "text": "good"}]') r
     ORDER BY (r ->> 'stars')::int DESC LIMIT 10) x);
SELECT compare('update: $set an int, S', 0.6, $$SELECT count(jsonb_set(doc, '{number}', '5')) FROM jsonb_s$$,
                                              $$SELECT count(bson_update(doc, '{$set: {number: 5}}')) FROM bson_s$$);
SELECT compare('update: $set an int, L', 0.05, $$SELECT count(jsonb_set(doc, '{number}', '5')) FROM jsonb_l_external$$,
                                               $$SELECT count(bson_update(doc, '{$set: {number: 5}}')) FROM bson_l_external$$);
SELECT compare('update: $inc, S', 0.6, $$SELECT count(jsonb_set(doc, '{number}', to_jsonb((doc ->> 'number')::int + 1))) FROM jsonb_s$$,
                                       $$SELECT count(bson_update(doc, '{$inc: {number: 1}}')) FROM bson_s$$);
SELECT compare('update: $push, S', 0.6, $$SELECT count(jsonb_set(doc, '{items}', doc -> 'items' || '[{"sku": "C-1", "quantity": 2}]')) FROM jsonb_s$$,
                                        $$SELECT count(bson_update(doc, '{$push: {items: {sku: "C-1", quantity: 2}}}')) FROM bson_s$$);
SELECT compare('update: $push, M', 0.5,
  $$SELECT count(jsonb_set(doc, '{reviews}', doc -> 'reviews' || '[{"review_id": 1, "stars": 5, "text": "good"}]')) FROM jsonb_m$$,
  $$SELECT count(bson_update(doc, '{$push: {reviews: {review_id: 1, stars: 5, text: "good"}}}')) FROM bson_m$$);
SELECT compare('update: $push, $sort, $slice, M', 0.3, $$SELECT count(jsonb_set(doc, '{reviews}', top_reviews(doc))) FROM jsonb_m$$,
  $$SELECT count(bson_update(doc, '{$push: {reviews: {$each: [{review_id: 1, stars: 5, text: "good"}], $sort: {stars: -1}, $slice: 10}}}')) FROM bson_m$$);
SELECT compare('update: five operators, S', 0.6,
  $$SELECT count(jsonb_set(jsonb_set(jsonb_set(doc - 'last', '{number}', to_jsonb((doc ->> 'number')::int + 1)), '{status}', '"new"'), '{items}', doc -> 'items' || '[{"sku": "C"}]') || '{"seen": true}') FROM jsonb_s$$,
  $$SELECT count(bson_update(doc, '{$unset: {last: ""}, $inc: {number: 1}, $set: {status: "new", seen: true}, $push: {items: {sku: "C"}}}')) FROM bson_s$$);
SELECT compare('update: nothing changes, S', 0.6, $$SELECT count(jsonb_set(doc, '{nothing}', '5', false)) FROM jsonb_s$$,
                                                  $$SELECT count(bson_update(doc, '{$unset: {nothing: ""}}')) FROM bson_s$$);

-- Calls for collections beside the statements that a program would prepare, 2,000 documents each.
SELECT collection_create('calls') \g /dev/null
SELECT collection_create_index('calls', '{number: 1}') \g /dev/null
CREATE TABLE calls_before AS SELECT bson_build('_id', i, 'number', i, 'n', 0, 'note', repeat('x', 200)) AS doc FROM generate_series(1, 2000) AS i;
CREATE OR REPLACE FUNCTION compare_call(name text, bar float8, base text, ours text, cleanup text DEFAULT NULL) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT compare(name, bar, format(work, base), format(work, ours), cleanup)
    FROM (SELECT 'DO $d$ DECLARE inc bson := ''{"$inc": {"n": 1}}''; key bson_value; id bson; number bson; whole bson; r bson; BEGIN FOR i IN 1 .. 2000 LOOP key := i::bson_value; id := bson_build(''_id'', i); number := bson_build(''number'', i); '
                 'whole := bson_build(''number'', i, ''n'', random(), ''note'', repeat(''y'', 200)); %s; END LOOP; END $d$' AS work) AS w $$;
SELECT format('TRUNCATE calls; INSERT INTO calls (doc) SELECT doc FROM %I.calls_before', current_schema) AS refill \gset
:refill;
VACUUM ANALYZE calls;
\echo
\echo 'call                                       SQL ms   call ms   ratio    bar'
SELECT compare_call('collection_find, _id', 2, 'PERFORM doc FROM calls WHERE _id = key', $$PERFORM collection_find('calls', id)$$);
SELECT compare_call('collection_count, _id', 2, 'PERFORM count(*) FROM calls WHERE _id = key', $$PERFORM collection_count('calls', id)$$);
SELECT compare_call('collection_insert', 2, 'INSERT INTO calls (doc) VALUES (bson_set(whole, ''_id'', -i))', $$PERFORM collection_insert('calls', bson_set(whole, '_id', -i))$$, :'refill');
SELECT compare_call('collection_update, _id', 1.5, 'UPDATE calls SET doc = bson_update(doc, inc) WHERE _id = key', $$PERFORM collection_update('calls', id, inc)$$, :'refill');
SELECT compare_call('collection_replace, _id', 1.5, 'UPDATE calls SET doc = bson_update(doc, whole) WHERE _id = key', $$PERFORM collection_replace('calls', id, whole)$$, :'refill');
SELECT compare_call('collection_find_one_and_update, _id', 1.5, 'UPDATE calls SET doc = bson_update(doc, inc) WHERE _id = key RETURNING doc INTO r', $$PERFORM collection_find_one_and_update('calls', id, inc)$$, :'refill');
SELECT compare_call('collection_delete, _id', 2, 'DELETE FROM calls WHERE _id = key', $$PERFORM collection_delete('calls', id)$$, :'refill');
SELECT compare_call('collection_find_one_and_delete, _id', 2, 'DELETE FROM calls WHERE _id = key RETURNING doc INTO r', $$PERFORM collection_find_one_and_delete('calls', id)$$, :'refill');
-- equal to a value: SQL finds no elements of arrays, so there are none
ALTER TABLE calls ADD CHECK (bson_validate(doc, '{properties: {number: {bsonType: "int"}}}'));
SELECT compare_call('collection_find, index', 2, $$PERFORM doc FROM calls WHERE doc -> 'number' = key$$, $$PERFORM collection_find('calls', number)$$);
SELECT compare_call('collection_update, index', 2, $$UPDATE calls SET doc = bson_update(doc, inc) WHERE doc -> 'number' = key$$, $$PERFORM collection_update('calls', number, inc)$$, :'refill');
DROP TABLE calls, calls_before;

-- Very many names and values: 100,000 keys, elements, or values of a parameter.
CREATE TABLE wide AS SELECT b, b::jsonb AS j, k, l, k -> 'a' AS array_b, (k -> 'a')::jsonb AS array_j, l::jsonb AS list_j
  FROM (SELECT bson_object_agg('key' || i, i ORDER BY i) AS b, bson_build('a', bson_agg(i ORDER BY i)) AS k, bson_agg(i ORDER BY md5(i::text)) AS l FROM generate_series(1, 1000 * :scale) i) x;
CREATE TABLE few_numbers AS SELECT bson_build('_id', i, 'n', i * 7) AS doc FROM generate_series(1, 100 * :scale) i;
CREATE TABLE parts AS SELECT bson_build('a', bson_agg(bson_build('n', i, 'm', 1) ORDER BY i)) AS d, bson_build('a', bson_agg(bson_build('n', i) ORDER BY i DESC)) AS p FROM generate_series(1, 1000) i;
VACUUM ANALYZE few_numbers;
PREPARE in_parameter(bson) AS SELECT count(*) FROM few_numbers WHERE doc @@ $1;
\echo
\echo 'many names and values                        base ms   bson ms   ratio    bar'
SELECT compare('100,000 keys: doc @> doc', 0.8, 'SELECT j @> j FROM wide', 'SELECT b @> b FROM wide');
SELECT compare('100,000 keys: as conditions of a filter', NULL, 'SELECT j @> j FROM wide', 'SELECT b @@ b FROM wide');
SELECT compare('2,000 elements: array @> array', 0.1, $$SELECT array_j @> l FROM (SELECT array_j, jsonb_path_query_array(list_j, '$[0 to 1999]') AS l FROM wide) x$$,
                                                      $$SELECT array_b @> l FROM (SELECT array_b, (bson_project(bson_build('l', l), '{l: {$slice: 2000}}') -> 'l') AS l FROM wide) x$$);
SELECT compare('1,000 documents in an array, parts of them', 0.1, $$SELECT d::jsonb @> p::jsonb FROM parts$$, $$SELECT d @> p FROM parts$$);
SELECT compare('100,000 elements: $all, beside making the filter', 20, $$SELECT bson_build('a', bson_build('$all', l)) FROM wide$$, $$SELECT k @@ bson_build('a', bson_build('$all', l)) FROM wide$$);
SELECT compare('100,000 keys: excluded, beside making the list', 3, $$SELECT bson_object_agg('key' || i, 0) FROM generate_series(1, 100000) i$$,
                                                                    $$SELECT bson_project(b, (SELECT bson_object_agg('key' || i, 0) FROM generate_series(1, 100000) i)) FROM wide$$);
SELECT compare('$in of 100,000: a parameter beside a constant', 2,
  format('SELECT count(*) FROM few_numbers WHERE doc @@ %L::bson', bson_build('n', bson_build('$in', l))),
  format('SET LOCAL plan_cache_mode = force_generic_plan; EXECUTE in_parameter(%L)', bson_build('n', bson_build('$in', l)))) FROM wide;
DROP TABLE wide, few_numbers, parts;
