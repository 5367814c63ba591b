-- Indexes for people who think in collections: a key document says what is indexed, and the call makes the index that serves it.
\set SHOW_CONTEXT never
\pset null NULL
SET client_min_messages = notice;

SELECT collection_create('orders');
SELECT count(*) FROM collection_insert('orders', VARIADIC ARRAY(
  SELECT bson_build('_id', i, 'customer', 'c' || i % 40, 'date', timestamptz '2024-01-01 00:00+00' + i * interval '1 day',
                    'total', i % 250 + 0.5, 'status', (ARRAY['open', 'paid', 'shipped'])[1 + i % 3], 'address', bson_build('city', 'Town ' || i % 60),
                    'tags', ARRAY['t' || i % 7, 't' || i % 5], 'lines', bson_array(bson_build('sku', 'A' || i % 90, 'quantity', i % 9), bson_build('sku', 'B' || i % 80, 'quantity', i % 8)))
  FROM generate_series(1, 3000) AS i));

-- An ordered index. What is missing comes first, as in MongoDB's order. The call returns the command that it ran.
SELECT collection_create_index('orders', '{customer: 1, date: -1}');
SELECT collection_create_index('orders', '{"address.city": 1}', name => 'by_city');

-- The same index twice is one index, and the primary key serves _id already.
SELECT collection_create_index('orders', '{customer: 1, date: -1}');
SELECT collection_create_index('orders', '{_id: 1}');

-- A partial index has the documents that match a filter. A unique one takes what is missing for a value, as MongoDB does.
SELECT collection_create_index('orders', '{date: 1}', partial_filter => '{status: "open"}');
SELECT collection_create_index('orders', '{number: 1}', true, '{number: {$exists: true}}');
SELECT collection_insert('orders', '{_id: 5001, number: 7}', '{_id: 5002}', '{_id: 5003}');
\set VERBOSITY terse
SELECT collection_insert('orders', '{_id: 5004, number: 7.0}');
SELECT collection_create_index('orders', '{number: 1}', true);
\set VERBOSITY default
SELECT collection_delete('orders', '{_id: {$gt: 5000}}', multi => true);

-- Where documents have arrays the index is a GIN index, because only that finds their elements; two fields of the documents of one
-- array are indexed as pairs. A wildcard is an index of all fields, or of those below one.
SELECT collection_create_index('orders', '{tags: 1, status: 1}');
SELECT collection_create_index('orders', '{"lines.sku": 1, "lines.quantity": 1}');
SELECT collection_create_index('orders', '{"$**": 1}');

-- A hash index serves equality alone.
SELECT collection_create_index('orders', '{status: "hashed"}');

-- What there is. The key document is NULL for an index that none can describe.
CREATE INDEX orders_upper ON orders (upper(doc ->> 'customer'));
SELECT name, key, method, is_unique, partial_filter FROM collection_list_indexes('orders');

-- Indexes are dropped by their key documents or names.
SELECT collection_drop_index('orders', '{"$**": 1}');

-- The calls search these indexes, also where nothing says that a field is never an array.
ANALYZE orders;
CREATE FUNCTION plan_of(filter bson, sort bson DEFAULT NULL) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  q record := docpatterns._collection_query('orders', filter, sort);
BEGIN
  RETURN QUERY EXECUTE concat('EXPLAIN (COSTS OFF) SELECT ', q.doc, ' FROM ', q.source, ' WHERE ', q.conditions, ' ORDER BY ' || q.ordering || ' LIMIT 10')
    USING filter, q.operands, sort;
END $$;
SELECT plan_of('{customer: "c7", date: {$gte: ISODate("2030-01-01")}}');
SELECT plan_of('{"address.city": "Town 7"}');

SELECT plan_of('{lines: {$elemMatch: {sku: "A7", quantity: {$gt: 5}}}}');
SELECT plan_of('{tags: {$all: ["t3", "t4"]}, total: {$lt: 9}}');

-- With a proof that it never is, one search is enough, and the index gives the order as well.
ALTER TABLE orders ADD CHECK (bson_validate(doc, '{properties: {customer: {bsonType: "string"}, date: {bsonType: "date"}}}'));
SELECT plan_of('{customer: "c7"}');
SELECT line FROM plan_of('{}', '{customer: 1, date: -1}') line WHERE line !~ 'doc IS NOT NULL';  -- which newer servers see by themselves
SELECT collection_find('orders', '{customer: "c7"}', '{_id: 1, date: 1}', '{customer: 1, date: -1}', take => 2);

SELECT collection_drop_index('orders', '{customer: 1, date: -1}');
SELECT collection_drop_index('orders', name => 'by_city');
SELECT collection_drop_index('orders', '{tags: 1, status: 1}');
SELECT collection_drop_index('orders', '{customer: 1, date: -1}');

-- What MongoDB has and PostgreSQL has in another form is refused with a hint.
SELECT collection_create_index('orders', '{customer: "text"}');
SELECT collection_create_index('orders', '{place: "2dsphere"}');

DROP FUNCTION plan_of;
DROP TABLE orders;
