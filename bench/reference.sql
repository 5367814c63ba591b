-- What extended references cost: a rename beside the statement that a person would write, writes beside the same table without copies.
\echo
\echo 'extended reference pattern               base ms    ours ms   ratio    bar'

CREATE TABLE orders_source AS
  SELECT bson_build('_id', i, 'date', timestamptz '2024-01-01' + i * interval '1 min', 'status', 'shipped',
                    'customer', bson_build('_id', CASE WHEN i <= 100000 THEN i % 10 ELSE i / 50 END),
                    'items', (SELECT bson_agg(bson_build('sku', 'SKU-' || i * 3 + j, 'name', 'An article of the shop', 'quantity', j, 'price', 19.99::float8)) FROM generate_series(1, 3) j),
                    'total', 119.94::float8) AS doc
  FROM generate_series(1, 120000) i;
SELECT collection_create('customers'), collection_create('orders'), collection_create('orders_plain') \g /dev/null
INSERT INTO customers (doc)
  SELECT bson_build('_id', i, 'name', 'Customer number ' || i, 'address', bson_build('street', 'Gade ' || i, 'city', 'Aarhus'), 'bio', repeat('lorem ipsum ', 10))
  FROM generate_series(0, 3000) i;
SELECT reference_enable('orders', field => 'customer', source => 'customers', live => '{name}', frozen => '{address}') \g /dev/null
INSERT INTO orders (doc) SELECT doc FROM orders_source;

-- the same data as people have it: jsonb, its key, and an index on the customer's id
CREATE TABLE orders_jsonb (_id bigint PRIMARY KEY, doc jsonb NOT NULL);
INSERT INTO orders_jsonb SELECT _id::bigint, doc::jsonb FROM orders;
CREATE INDEX ON orders_jsonb ((doc -> 'customer' -> '_id'));
VACUUM ANALYZE orders, orders_jsonb, customers, orders_source;

CREATE SEQUENCE base_names;
CREATE SEQUENCE our_names;
-- ten customers have 10,000 orders each and take turns, so that no row is read through the versions that it had before
SELECT compare('rename, 10,000 orders', 0.6,
  $$UPDATE orders_jsonb SET doc = jsonb_set(doc, '{customer,name}', to_jsonb('Customer ' || currval('base_names'))) WHERE doc -> 'customer' -> '_id' = (SELECT to_jsonb(nextval('base_names') % 10))$$,
  $$UPDATE customers SET doc = bson_set(doc, 'name', 'Customer ' || currval('our_names')) WHERE _id = (SELECT nextval('our_names') % 10)$$);
VACUUM orders, orders_jsonb;
SELECT compare('rename, 10 orders', 'infinity',
  $$UPDATE orders_jsonb SET doc = jsonb_set(doc, '{customer,name}', to_jsonb('Customer ' || nextval('base_names'))) WHERE doc -> 'customer' -> '_id' = '2000'$$,
  $$UPDATE customers SET doc = bson_set(doc, 'name', 'Customer ' || nextval('our_names')) WHERE _id = 2000$$);
SELECT compare('update of a customer, nothing copied', 'infinity', $$UPDATE customers SET doc = bson_set(doc, 'name', 'Customer 7') WHERE _id = 7$$,
  $$UPDATE customers SET doc = bson_set(doc, 'bio', nextval('our_names')::text) WHERE _id = 1$$);
SELECT compare('insert 1,000 orders, beside no pattern', 'infinity', $$INSERT INTO orders_plain (doc) SELECT doc FROM orders_source LIMIT 1000$$,
  $$INSERT INTO orders (doc) SELECT bson_set(doc, '_id', (doc -> '_id')::int + 1000000) FROM orders_source LIMIT 1000$$, 'DELETE FROM orders_plain; DELETE FROM orders WHERE _id > 1000000');
INSERT INTO orders_plain (doc) SELECT doc FROM orders_source LIMIT 1000;
VACUUM ANALYZE orders_plain;
SELECT compare('update another field of orders', 'infinity', $$UPDATE orders_plain SET doc = bson_set(doc, 'status', 'returned') WHERE _id <= 1000$$,
  $$UPDATE orders SET doc = bson_set(doc, 'status', 'returned') WHERE _id <= 1000$$);
