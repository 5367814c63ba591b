-- Reading documents by path.
SET timezone = 'Asia/Tokyo';
\pset null NULL

CREATE TABLE orders (doc bson);
INSERT INTO orders VALUES ('{
  _id: 1, status: "shipped", paid: true, gift: null,
  customer: {name: "Ada", address: {city: "London", zip: "N1"}},
  items: [{sku: "A-1", price: 9.5, tags: ["new", "red"]}, {sku: "B-2", price: NumberDecimal("19.90"), tags: []}],
  placed: ISODate("2024-01-02T03:04:05.678Z"), by: ObjectId("507f1f77bcf86cd799439011"),
  "a.b": "a dot", "c,d": "a comma", "": "no name", "7": "seven"}');

-- -> gives any value, ->> its text. Dots separate the parts of a path; a number is a position when it meets an array.
SELECT doc -> 'status', doc ->> 'status', doc -> 'customer.address', doc ->> 'customer.address.city' FROM orders;
SELECT doc -> 'items.1', doc ->> 'items.0.sku', doc ->> 'items.-1.sku', doc ->> 'items.0.tags.1', doc -> 'items.7' FROM orders;
-- A number is a name when it meets a document.
SELECT doc ->> '7', doc ->> 7, doc -> 8 FROM orders;
-- Step by step, with positions as integers, negative ones from the end.
SELECT doc -> 'items' -> 0 -> 'tags' ->> -1, doc -> 'items' -> 2, doc -> 'status' -> 'x', doc -> 'status' -> 0 FROM orders;
-- Double quotes protect dots, commas and blanks; written twice they stand for themselves. A text[] is taken as it is.
SELECT doc ->> '"a.b"', doc ->> 'c,d', doc ->> '"c,d"', doc ->> '""', doc #>> '{a.b}', doc #>> '{customer,address,zip}', doc #> '{items,1,price}' FROM orders;
SELECT bson_get('{"say \"hi\"": 1}', '"say ""hi"""');

-- What ->> shows: numbers by their digits, dates in UTC, ids and UUIDs plain, null as NULL, the rest as JSON.
SELECT key, '{d: 5.0, e: 1e300, n: NaN, i: -7, l: 9007199254740993, m: NumberDecimal("1.50"), t: false, dt: ISODate("1969-12-31T23:59:59.999Z"),
  o: ObjectId("507f1f77bcf86cd799439011"), u: UUID("00112233-4455-6677-8899-aabbccddeeff"), b: BinData(0,"AQI="), s: "x", y: {"$symbol": "sym"},
  r: /a/i, ts: Timestamp(1, 2), a: [1, null], z: {}, nu: null, un: undefined, min: MinKey}'::bson ->> key AS text
FROM unnest('{d,e,n,i,l,m,t,dt,o,u,b,s,y,r,ts,a,z,nu,un,min,none}'::text[]) key;
-- A text cannot hold a null character.
SELECT '{s: "a\u0000b"}'::bson ->> 's';
SELECT '{s: "a\u0000b"}'::bson -> 's';

-- ? tests a path, ?| any, ?& all; null is a value.
SELECT doc ? 'gift', doc ? 'customer.address.zip', doc ? 'items.1', doc ? 'items.2', doc ? 'nothing' FROM orders;
SELECT doc ?| '{nothing,items.0.sku}', doc ?& '{nothing,items.0.sku}', doc ?& '{_id,gift}', doc ?| '{}', doc ?& '{}', doc ?& '{_id,NULL}' FROM orders;
SELECT bson_exists(doc, 'paid'), bson_exists_any(doc, '{paid,x}'), bson_exists_all(doc, '{paid,x}'), doc -> 'customer' ? 'name' FROM orders;

-- -> never fans out over an array; bson_values does. An array at the end gives its elements, one level.
SELECT doc -> 'items.price' FROM orders;
SELECT v FROM orders, bson_values(doc, 'items.price') v;
SELECT v FROM orders, bson_values(doc, 'items.tags') v;
SELECT v FROM orders, bson_values(doc, 'items.1.price') v;
SELECT v FROM bson_values('{a: [[1, 2], {b: 3}, [{b: 4}], 5]}', 'a') v;
SELECT v FROM bson_values('{a: [[1, 2], {b: 3}, [{b: 4}], 5]}', 'a.b') v;
SELECT count(*) FROM orders, bson_values(doc, 'nothing') v;

-- What a value is, and how large. Sizes are known without reading the document.
SELECT bson_typeof(doc -> '_id'), bson_typeof(doc, 'items'), bson_typeof(doc, 'items.1.price'), bson_typeof(doc, 'nothing') FROM orders;
SELECT bson_size('{}'), bson_size('{a: 1}'), bson_size('{a: 1}'::bson -> 'a'), bson_size(doc) = octet_length(doc::bytea) AS same FROM orders;
SELECT bson_array_length(doc -> 'items'), bson_array_length(doc, 'items.1.tags'), bson_array_length(doc, 'nothing') FROM orders;
SELECT bson_array_length(doc, 'status') FROM orders;

-- The first of two fields with one name counts.
SELECT '{a: 1, a: 2}'::bson -> 'a', '{a: {x: 1}, a: {y: 2}}'::bson -> 'a.y';

-- Paths that are not well formed.
SELECT doc -> '' FROM orders;
SELECT doc -> 'a..b' FROM orders;
SELECT doc -> '"a' FROM orders;
SELECT doc -> '"a"b' FROM orders;
SELECT doc -> 'a"b' FROM orders;

-- Subscripts are literal names and positions.
SELECT doc['customer']['address']['city'], doc['items'][1]['sku'], doc['a.b'], doc['nothing']['more'], (doc -> 'items')[0]['sku'], doc[NULL] FROM orders;
UPDATE orders SET doc['customer']['address']['city'] = 'Paris'::text, doc['items'][0]['price'] = 10, doc['x.y'] = '{"new": true}';
UPDATE orders SET doc['gift'] = NULL, doc['items'][2]['sku'] = 'C-3'::text;
SELECT doc -> 'customer', doc -> 'items', doc['x.y'], doc -> 'gift' FROM orders;
SELECT ('{a: {b: {c: {d: {e: {f: {g: {h: 1}}}}}}}}'::bson)['a']['b']['c']['d']['e']['f']['g']['h'];
SELECT doc[1:2] FROM orders;
SELECT doc[1.5] FROM orders;
UPDATE orders SET doc[NULL] = 1;
UPDATE orders SET doc['status']['x'] = 1;
CREATE TABLE made (doc bson, value bson_value);
INSERT INTO made (doc['a']['b'], value[1]) VALUES (1, 'x'::text);
SELECT * FROM made;

DROP TABLE orders, made;
