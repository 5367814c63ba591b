-- Shapes of data, sixty that ask for a pattern and thirty-two that do not: what pattern_advise() says of each, whether each
-- statement runs, whether pattern_check() is silent after it, and whether every value is still there, before and after
-- pattern_disable(). Each shape is a schema. SEED=7 draws other data, SHAPE_ROWS=20000 draws more.
\set ECHO none
SET client_min_messages = error;
SET timezone = 'UTC';
\set seed 42
\getenv seed SEED
\set rows 1000
\getenv rows SHAPE_ROWS
SELECT plan(154);
SELECT diag('seed ' || :seed || ', ' || :rows || ' documents');
SELECT setseed(:seed / 1000000.0);

-- r(n): a whole number from 0 to n - 1; g(n): one with an exponential distribution around n
CREATE SCHEMA made;
CREATE FUNCTION made.r(n int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT floor(random() * n)::int';
CREATE FUNCTION made.g(n numeric) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT round(-ln(1 - random()) * n)::int';
CREATE FUNCTION made.words(n int) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT string_agg((ARRAY['lorem','ipsum','dolor','sit','amet','tempor','magna','aliqua'])[1 + made.r(8)] || made.r(1000), ' ')
  FROM generate_series(1, n)
$$;
CREATE FUNCTION made.day(days int) RETURNS timestamptz LANGUAGE sql VOLATILE AS
  $$SELECT date_trunc('second', timestamptz '2025-01-01' + random() * days * interval '1 day')$$;

-- advice: the patterns and paths of which one is right, as a regular expression; NULL: none is
CREATE TABLE made.shapes (n serial PRIMARY KEY, name text, rel text, advice text, make text);
INSERT INTO made.shapes (name, rel, advice, make) VALUES
('an array enormous in a few documents', 'books', '^outlier buyers$', $$
  SELECT collection_create('books');
  INSERT INTO books (doc) SELECT bson_build('_id', i, 'title', 'b' || i, 'buyers', (SELECT coalesce(bson_agg('u' || made.r(100000)), '[]')
    FROM generate_series(1, CASE WHEN i IN (7, 300) THEN 4000 ELSE made.g(8) END))) FROM generate_series(1, $ROWS) i $$),
('reviews inside of products, more every month', 'products', '^subset reviews$', $$
  SELECT collection_create('products');
  INSERT INTO products (doc) SELECT bson_build('_id', i, 'name', 'p' || i, 'created', timestamptz '2024-01-01' + i * interval '1 day' / 3,
    'reviews', (SELECT coalesce(bson_agg(bson_build('author', 'u' || made.r(900), 'text', made.words(6), 'stars', 1 + made.r(5), 'at', made.day(300))), '[]')
      FROM generate_series(1, 10 + ($ROWS - i) * 150 / $ROWS))) FROM generate_series(1, $ROWS / 4) i $$),
('large fields beside a status that changes', 'cases', '^subset_fields (transcript, scan|scan, transcript)$', $$
  SELECT collection_create('cases');
  INSERT INTO cases (doc) SELECT bson_build('_id', i, 'title', made.words(3), 'status', 'new', 'assignee', 'a' || made.r(9), 'transcript', made.words(400), 'scan', made.words(300))
    FROM generate_series(1, $ROWS / 4) i;
  UPDATE cases SET doc = bson_set(doc, 'status', 'open'::text); UPDATE cases SET doc = bson_set(doc, 'status', 'done'::text) $$),
('orders that name their customers', 'orders', '^reference customer_id$', $$
  SELECT collection_create('customers'), collection_create('orders');
  INSERT INTO customers (doc) SELECT bson_build('_id', i, 'name', 'c' || i, 'city', made.words(1)) FROM generate_series(1, $ROWS / 10) i;
  INSERT INTO orders (doc) SELECT bson_build('_id', i, 'customer_id', 1 + made.r($ROWS / 10), 'total', made.r(9000) / 100.0, 'at', made.day(300)) FROM generate_series(1, $ROWS) i $$),
('copies of customers, some of them old', 'orders', '^reference customer$', $$
  SELECT collection_create('customers'), collection_create('orders');
  INSERT INTO customers (doc) SELECT bson_build('_id', i, 'name', 'c' || i, 'city', made.words(1), 'bio', made.words(20)) FROM generate_series(1, $ROWS / 10) i;
  INSERT INTO orders (doc) SELECT bson_build('_id', i, 'customer', bson_build('_id', c.k, 'name', c.doc -> 'name', 'city', c.doc -> 'city'), 'total', made.r(9000) / 100.0)
    FROM generate_series(1, $ROWS) i JOIN (SELECT _id::int AS k, doc FROM customers) c ON c.k = 1 + i % ($ROWS / 10);
  UPDATE customers SET doc = bson_set(doc, 'name', 'renamed' || _id::text) WHERE _id::int % 20 = 0 $$),
('categories that name the one above', 'categories', '^tree parent$', $$
  SELECT collection_create('categories');
  INSERT INTO categories (doc) SELECT bson_build('_id', 'c' || i, 'label', made.words(2), 'parent', CASE WHEN i > 3 THEN 'c' || (1 + made.r(i - 1)) END) FROM generate_series(1, $ROWS / 4) i $$),
('ancestors by name', 'topics', '^tree ancestors$', $$
  SELECT collection_create('topics');
  WITH RECURSIVE t AS (SELECT i, 't' || i AS name, '{}'::text[] AS up FROM generate_series(1, 3) i
    UNION ALL SELECT t.i * 4 + k, 't' || (t.i * 4 + k), t.up || t.name FROM t, generate_series(0, 3) k WHERE cardinality(t.up) < 4 AND t.i * 4 + k < $ROWS)
  INSERT INTO topics (doc) SELECT DISTINCT ON (name) bson_build('name', name, 'ancestors', up, 'text', made.words(3)) FROM t ORDER BY name, i $$),
('paths', 'files', '^tree path$', $$
  SELECT collection_create('files');
  WITH RECURSIVE t AS (SELECT 1 AS i, 'root' AS id, 'root' AS path, 0 AS level
    UNION ALL SELECT t.i * 5 + k, 'f' || (t.i * 5 + k), t.path || '/f' || (t.i * 5 + k), t.level + 1 FROM t, generate_series(0, 4) k WHERE t.level < 4 AND t.i * 5 + k < $ROWS)
  INSERT INTO files (doc) SELECT bson_build('_id', id, 'path', path, 'size', made.r(9999)) FROM t $$),
('media of several kinds', 'media', '^polymorphic kind$', $$
  SELECT collection_create('media');
  INSERT INTO media (doc) SELECT CASE made.r(3) WHEN 0 THEN bson_build('_id', i, 'kind', 'video', 'name', 'm' || i, 'codec', 'x' || made.r(3), 'seconds', made.r(999))
    WHEN 1 THEN bson_build('_id', i, 'kind', 'image', 'name', 'm' || i, 'width', made.r(999), 'height', made.r(999))
    ELSE bson_build('_id', i, 'kind', 'text', 'name', 'm' || i, 'words', made.r(999), 'language', 'en') END FROM generate_series(1, $ROWS) i $$),
('schema_version 1, 2 and 3', 'people', '^schema_versioning schema_version$', $$
  SELECT collection_create('people');
  INSERT INTO people (doc) SELECT CASE made.r(3) WHEN 0 THEN bson_build('_id', i, 'schema_version', 1, 'name', 'n' || i, 'tel', 't' || i)
    WHEN 1 THEN bson_build('_id', i, 'schema_version', 2, 'name', 'n' || i, 'phone', 't' || i)
    ELSE bson_build('_id', i, 'schema_version', 3, 'name', 'n' || i, 'phones', bson_array('t' || i)) END FROM generate_series(1, $ROWS) i $$),
('phone in old documents, phones in new ones', 'contacts', '^schema_versioning phone, phones$', $$
  SELECT collection_create('contacts');
  INSERT INTO contacts (doc) SELECT bson_build('_id', i, 'name', 'n' || i) || CASE WHEN i < $ROWS / 3 THEN bson_build('phone', 't' || i)
    ELSE bson_build('phones', (SELECT bson_agg('t' || j) FROM generate_series(1, 1 + made.r(3) + 0 * i) j)) END FROM generate_series(1, $ROWS) i $$),
('a number here, a string there', 'parcels', '^schema_versioning zip$', $$
  SELECT collection_create('parcels');
  INSERT INTO parcels (doc) SELECT bson_build('_id', i, 'to', 'n' || i, 'zip', CASE WHEN random() < 0.3 THEN to_bson(10000 + made.r(900)) ELSE to_bson('z' || made.r(9000)) END) FROM generate_series(1, $ROWS) i $$),
('a release date for each country', 'movies', '^attribute release_\*$', $$
  SELECT collection_create('movies');
  INSERT INTO movies (doc) SELECT bson_build('_id', i, 'title', 'm' || i) || (SELECT bson_merge_agg(bson_build('release_' || c, made.day(900)))
    FROM unnest('{US,DK,SE,NO,FI,DE,FR,JP}'::text[]) c WHERE c = 'US' OR random() + 0 * i < 0.6) FROM generate_series(1, $ROWS) i $$),
('dozens of rare properties', 'things', '^attribute$', $$
  SELECT collection_create('things');
  INSERT INTO things (doc) SELECT bson_build('_id', i, 'name', 't' || i) || (SELECT bson_merge_agg(bson_build('p' || chr(97 + p % 26) || chr(97 + p / 26), made.r(50)))
    FROM (SELECT DISTINCT made.r(60) AS p FROM generate_series(1, 5 + i * 0)) q) FROM generate_series(1, $ROWS) i $$),
('readings of sensors, each at its own times', 'readings', '^bucket at$', $$
  SELECT collection_create('readings');
  INSERT INTO readings (doc) SELECT bson_build('sensor', 's' || s, 'at', timestamptz '2025-01-01' + s * interval '7 s' + m * interval '1 min', 'temp', round((20 + 5 * random())::numeric, 1)::float8, 'humidity', made.r(100))
    FROM generate_series(1, 20) s, generate_series(1, greatest($ROWS, 12000) / 20) m $$),
('sensors that tick together', 'metrics', '^bucket ts$', $$
  SELECT collection_create('metrics');
  INSERT INTO metrics (doc) SELECT bson_build('meta', bson_build('device_id', d, 'site', 'x' || d % 4), 'ts', timestamptz '2025-01-01' + m * interval '10 s', 'watts', made.r(3000), 'volts', 220.0::float8 + made.r(100) / 10.0::float8)
    FROM generate_series(1, greatest($ROWS, 12000) / 50) m, generate_series(1, 50) d $$),
('measurements in arrays of devices', 'devices', '^bucket samples$', $$
  SELECT collection_create('devices');
  INSERT INTO devices (doc) SELECT bson_build('_id', i, 'model', 'm' || i % 3, 'samples', (SELECT bson_agg(bson_build('at', timestamptz '2025-01-01' + j * interval '1 min', 'temp', made.r(400) / 10.0::float8))
    FROM generate_series(1, 300 + made.r(100) + 0 * i) j)) FROM generate_series(1, $ROWS / 40) i $$),
('counters of pages', 'pages', '^approximation views$', $$
  SELECT collection_create('pages');
  INSERT INTO pages (doc) SELECT bson_build('_id', 'page' || i, 'title', made.words(2), 'views', 0) FROM generate_series(1, 30) i;
  DO 'BEGIN FOR i IN 1 .. 400 LOOP UPDATE pages SET doc = bson_set(doc, ''views'', (doc -> ''views'')::int + made.r(3)); END LOOP; END' $$),
('one counter for all', 'counters', '^approximation n$', $$
  SELECT collection_create('counters');
  INSERT INTO counters (doc) VALUES ('{_id: "visits", n: 0}'), ('{_id: "errors", n: 5}');
  DO 'BEGIN FOR i IN 1 .. 12000 LOOP UPDATE counters SET doc = bson_set(doc, ''n'', i) WHERE _id = ''visits''::text; END LOOP; END' $$),
('a document for each revision', 'policies', '^versioning revision$', $$
  SELECT collection_create('policies');
  INSERT INTO policies (doc) SELECT bson_build('policy_id', p, 'revision', v, 'holder', 'h' || p, 'cover', 1000 * v) FROM generate_series(1, $ROWS / 5) p, generate_series(1, 2 + p % 7) v $$),
('revisions inside of the document', 'contracts', '^versioning history$', $$
  SELECT collection_create('contracts');
  INSERT INTO contracts (doc) SELECT bson_build('_id', i, 'holder', 'h' || i, 'price', 100 + made.r(50), 'terms', made.words(9), 'history', (SELECT coalesce(bson_agg(bson_build('at', made.day(300), 'holder', 'h' || made.r(99), 'price', made.r(100), 'terms', made.words(9))), '[]')
    FROM generate_series(1, made.r(8) + 0 * i))) FROM generate_series(1, $ROWS) i $$),
('totals that a program adds up', 'films', '^computed total_viewers$', $$
  SELECT collection_create('films'), collection_create('screenings');
  INSERT INTO screenings (doc) SELECT bson_build('_id', i, 'film_id', 1 + made.r($ROWS / 20), 'viewers', 10 + made.r(200), 'theater', 't' || made.r(30)) FROM generate_series(1, $ROWS) i;
  INSERT INTO films (doc) SELECT bson_build('_id', i, 'title', 'f' || i, 'total_viewers', coalesce((SELECT sum((s.doc -> 'viewers')::int) FROM screenings s WHERE (s.doc -> 'film_id')::int = i), 0)::int + CASE WHEN i % 30 = 0 THEN 5 ELSE 0 END)
    FROM generate_series(1, $ROWS / 20) i $$),
('numbers of comments kept by hand', 'posts', '^computed comments$', $$
  SELECT collection_create('posts'), collection_create('replies');
  INSERT INTO replies (doc) SELECT bson_build('post_id', 'p' || (1 + made.r($ROWS / 10)), 'text', made.words(9)) FROM generate_series(1, $ROWS) i;
  INSERT INTO posts (doc) SELECT bson_build('_id', 'p' || i, 'text', made.words(9), 'comments', (SELECT count(*)::int FROM replies s WHERE s.doc ->> 'post_id' = 'p' || i)) FROM generate_series(1, $ROWS / 10) i $$),
('students and courses that name each other', 'students', '^relationship courses$', $$
  SELECT collection_create('students'), collection_create('courses');
  CREATE TABLE pairs AS SELECT DISTINCT s, 1 + made.r(40) AS c FROM generate_series(1, $ROWS / 4) s, generate_series(1, 4);
  INSERT INTO students (doc) SELECT bson_build('_id', s, 'name', 's' || s, 'courses', bson_agg('c' || c)) FROM pairs GROUP BY s;
  INSERT INTO courses (doc) SELECT bson_build('_id', 'c' || c, 'title', made.words(2), 'students', bson_agg(s)) FROM pairs WHERE s % 50 > 0 GROUP BY c;
  DROP TABLE pairs $$),
('items under PK and SK', 'app', '^single_table PK$', $$
  SELECT collection_create('app');
  INSERT INTO app (doc) SELECT bson_build('PK', 'USER#' || u, 'SK', 'PROFILE', 'name', 'n' || u) FROM generate_series(1, $ROWS / 8) u;
  INSERT INTO app (doc) SELECT bson_build('PK', 'USER#' || u, 'SK', 'ORDER#' || u || lpad(o::text, 3, '0'), 'total', made.r(900)) FROM generate_series(1, $ROWS / 8) u, generate_series(1, 1 + u % 5) o $$),
('messages in XML', 'messages', '^payload xml$', $$
  SELECT collection_create('messages');
  INSERT INTO messages (doc) SELECT bson_build('_id', i, 'received', made.day(300), 'xml', format('<?xml version="1.0"?><msg id="%s" kind="k%s"><from>u%s</from><to>u%s</to><body>%s</body></msg>', i, made.r(4), made.r(99), made.r(99), made.words(40)))
    FROM generate_series(1, $ROWS) i $$),
('maps of seats', 'screenings', '^preallocated seats$', $$
  SELECT collection_create('screenings');
  INSERT INTO screenings (doc) SELECT bson_build('_id', i, 'film', 'f' || made.r(50), 'seats', (SELECT bson_agg(s.cells) FROM (SELECT bson_agg(CASE WHEN random() < 0.3 THEN to_bson('u' || made.r(500)) ELSE to_bson(0) END) AS cells
    FROM generate_series(1, 6 + 0 * i) row_no, generate_series(1, 10) GROUP BY row_no) s)) FROM generate_series(1, $ROWS / 4) i $$),
('a table for each query', 'orders', '^query_table orders_by_user$', $$
  SELECT collection_create('orders'), collection_create('orders_by_user');
  INSERT INTO orders (doc) SELECT bson_build('_id', i, 'user', 'u' || made.r(200), 'at', made.day(300), 'total', made.r(900), 'note', made.words(5)) FROM generate_series(1, $ROWS) i;
  INSERT INTO orders_by_user (doc) SELECT bson_build('order_id', doc -> '_id', 'user', doc -> 'user', 'at', doc -> 'at', 'total', doc -> 'total') FROM orders $$),
('books with what belongs to them', 'catalog', '^single_collection relatedTo$', $$
  SELECT collection_create('catalog');
  INSERT INTO catalog (doc) SELECT bson_build('_id', 'b' || i, 'docType', 'book', 'title', made.words(3), 'relatedTo', bson_array('b' || i)) FROM generate_series(1, $ROWS / 10) i;
  INSERT INTO catalog (doc) SELECT bson_build('_id', 'r' || i, 'docType', 'review', 'stars', 1 + made.r(5), 'relatedTo', bson_array('b' || (1 + made.r($ROWS / 10)))) FROM generate_series(1, $ROWS) i $$),
('walls that a program fills', 'posts', '^fanout author$', $$
  SELECT collection_create('posts'), collection_create('followers'), collection_create('walls');
  INSERT INTO posts (doc) SELECT bson_build('_id', i, 'author', 'u' || made.r(100), 'text', made.words(5)) FROM generate_series(1, $ROWS) i;
  INSERT INTO followers (doc) SELECT DISTINCT bson_build('_id', 'f' || a || '-' || b, 'user', 'u' || a, 'follows', 'u' || b) FROM (SELECT DISTINCT made.r(100) AS a, made.r(100) AS b FROM generate_series(1, 800)) q;
  INSERT INTO walls (doc) SELECT bson_build('_id', f.doc -> 'user', 'posts', bson_agg(p.doc -> '_id')) FROM followers f JOIN posts p ON p.doc -> 'author' = f.doc -> 'follows' WHERE p._id::int > $ROWS - 300 GROUP BY f.doc -> 'user' $$),

('users', 'users', NULL, $$
  SELECT collection_create('users');
  INSERT INTO users (doc) SELECT bson_build('name', 'n' || i, 'email', 'n' || i || '@example.org', 'created', made.day(700), 'settings', bson_build('theme', 'dark', 'mail', random() < 0.5)) FROM generate_series(1, $ROWS) i $$),
('products', 'products', NULL, $$
  SELECT collection_create('products');
  INSERT INTO products (doc) SELECT bson_build('_id', i, 'name', made.words(3), 'category', 'c' || made.r(10), 'price', made.r(9000) / 100.0, 'stock', made.r(50), 'tags', (SELECT bson_agg('t' || made.r(30)) FROM generate_series(1, 1 + made.r(5) + 0 * i))) FROM generate_series(1, $ROWS) i $$),
('orders of customers of another system', 'orders', NULL, $$
  SELECT collection_create('orders');
  INSERT INTO orders (doc) SELECT bson_build('_id', i, 'customer_id', made.r(500), 'total', made.r(90000) / 100.0, 'at', made.day(300)) FROM generate_series(1, greatest($ROWS, 11000)) i $$),
('articles', 'articles', NULL, $$
  SELECT collection_create('articles');
  INSERT INTO articles (doc) SELECT bson_build('_id', i, 'title', made.words(4), 'author', 'a' || made.r(20), 'body', made.words(500), 'tags', bson_array('x', 'y')) FROM generate_series(1, $ROWS / 4) i $$),
('orders with their lines', 'orders', NULL, $$
  SELECT collection_create('orders');
  INSERT INTO orders (doc) SELECT bson_build('_id', i, 'at', made.day(300), 'lines', (SELECT bson_agg(bson_build('sku', 'k' || made.r(900), 'quantity', 1 + made.r(4), 'price', made.r(900) / 10.0)) FROM generate_series(1, 1 + made.r(10) + 0 * i))) FROM generate_series(1, $ROWS) i $$),
('vectors', 'images', NULL, $$
  SELECT collection_create('images');
  INSERT INTO images (doc) SELECT bson_build('_id', i, 'url', 'u' || i, 'embedding', (SELECT bson_agg(random()) FROM generate_series(1, 1024 + i * 0))) FROM generate_series(1, $ROWS / 20) i $$),
('areas', 'areas', NULL, $$
  SELECT collection_create('areas');
  INSERT INTO areas (doc) SELECT bson_build('_id', i, 'name', 'a' || i, 'geometry', bson_build('type', 'Polygon', 'coordinates', bson_array((SELECT bson_agg(bson_array(random(), random())) FROM generate_series(1, 5 + made.g(30) + 0 * i)))))
    FROM generate_series(1, $ROWS / 4) i $$),
('a status with its dates', 'orders', NULL, $$
  SELECT collection_create('orders');
  INSERT INTO orders (doc) SELECT bson_build('_id', i, 'total', made.r(900)) || (ARRAY[bson_build('status', 'new'), bson_build('status', 'paid', 'paid_at', made.day(300)),
    bson_build('status', 'shipped', 'paid_at', made.day(300), 'shipped_at', made.day(300)), bson_build('status', 'cancelled', 'cancelled_at', made.day(300))])[1 + made.r(4)] FROM generate_series(1, $ROWS) i $$),
('numbers of several types, and nulls', 'accounts', NULL, $$
  SELECT collection_create('accounts');
  INSERT INTO accounts (doc) SELECT bson_build('_id', i, 'owner', 'o' || i, 'balance', (ARRAY[to_bson(made.r(99)), to_bson(made.r(99)::bigint), to_bson(random() * 99)])[1 + made.r(3)], 'closed', CASE WHEN random() < 0.2 THEN made.day(300) END) FROM generate_series(1, $ROWS) i $$),
('optional fields', 'profiles', NULL, $$
  SELECT collection_create('profiles');
  INSERT INTO profiles (doc) SELECT bson_build('_id', i, 'name', 'n' || i) || coalesce((SELECT bson_merge_agg(bson_build(f, made.words(1))) FROM unnest('{phone,city,company,website,bio,nickname,language,title,birthplace}'::text[]) f WHERE random() + 0 * i < 0.5), '{}') FROM generate_series(1, $ROWS) i $$),
('an address in plain fields', 'places', NULL, $$
  SELECT collection_create('places');
  INSERT INTO places (doc) SELECT bson_build('_id', i, 'name', 'n' || i, 'address_street', made.words(2), 'address_number', 'x' || made.r(99), 'address_city', made.words(1), 'address_zip', 'z' || made.r(9999), 'address_state', 's' || made.r(50), 'address_country', 'DK') FROM generate_series(1, $ROWS) i $$),
('a log', 'log', NULL, $$
  SELECT collection_create('log');
  INSERT INTO log (doc) SELECT bson_build('at', timestamptz '2025-01-01' + i * interval '3 s' + random() * interval '3 s', 'level', (ARRAY['info', 'warning', 'error'])[1 + made.r(3)], 'host', 'h' || made.r(9), 'message', made.words(8)) FROM generate_series(1, greatest($ROWS, 11000)) i $$),
('sessions', 'sessions', NULL, $$
  SELECT collection_create('sessions');
  INSERT INTO sessions (doc) SELECT bson_build('_id', md5(i::text), 'user', made.r(400), 'expires', made.day(30), 'data', bson_build('cart', bson_array(made.r(9), made.r(9)), 'step', made.r(4))) FROM generate_series(1, $ROWS) i $$),
('a version that only counts', 'wikis', NULL, $$
  SELECT collection_create('wikis');
  INSERT INTO wikis (doc) SELECT bson_build('_id', i, 'version', 1 + made.g(2), 'title', made.words(3), 'text', made.words(30)) FROM generate_series(1, $ROWS) i $$),
('reviews of products of another system', 'reviews', NULL, $$
  SELECT collection_create('reviews');
  INSERT INTO reviews (doc) SELECT bson_build('_id', i, 'product_id', 1 + made.r(300), 'rating', 1 + made.r(5), 'text', made.words(9), 'author', 'u' || made.r(2000), 'at', made.day(300)) FROM generate_series(1, greatest($ROWS, 11000)) i $$),
('settings, deeply nested', 'tenants', NULL, $$
  SELECT collection_create('tenants');
  INSERT INTO tenants (doc) SELECT bson_build('_id', 't' || i, 'limits', bson_build('api', bson_build('minute', made.r(100), 'day', made.r(9000)), 'disk', bson_build('soft', made.r(50), 'hard', made.r(90))), 'features', bson_build('beta', random() < 0.1)) FROM generate_series(1, $ROWS) i $$),
('texts in languages', 'labels', NULL, $$
  SELECT collection_create('labels');
  INSERT INTO labels (doc) SELECT bson_build('_id', 'l' || i, 'text', bson_build('en', made.words(2), 'da', made.words(2), 'de', made.words(2), 'fr', made.words(2), 'ja', made.words(2), 'es', made.words(2))) FROM generate_series(1, $ROWS) i $$),
('tasks with a few comments', 'tasks', NULL, $$
  SELECT collection_create('tasks');
  INSERT INTO tasks (doc) SELECT bson_build('_id', i, 'title', made.words(3), 'done', random() < 0.5, 'comments', (SELECT coalesce(bson_agg(bson_build('by', 'u' || made.r(20), 'text', made.words(6), 'at', made.day(300))), '[]') FROM generate_series(1, made.g(4) + 0 * i))) FROM generate_series(1, $ROWS) i $$),
('invoices at regular times', 'invoices', NULL, $$
  SELECT collection_create('invoices');
  INSERT INTO invoices (doc) SELECT bson_build('_id', i, 'customer_id', i % 100, 'total', i / 4.0, 'at', timestamptz '2025-01-01' + i * interval '1 min') FROM generate_series(1, greatest($ROWS, 11000)) i $$),
('friends', 'members', NULL, $$
  SELECT collection_create('members');
  INSERT INTO members (doc) SELECT bson_build('_id', i, 'name', 'n' || i, 'skills', (SELECT coalesce(bson_agg('s' || made.r(40)), '[]') FROM generate_series(1, made.r(12) + 0 * i)), 'friends', (SELECT coalesce(bson_agg('x' || made.r(9999)), '[]') FROM generate_series(1, made.r(70) + 0 * i))) FROM generate_series(1, $ROWS) i $$);
-- a second set, of other names and forms
INSERT INTO made.shapes (name, rel, advice, make) VALUES
('followers of a few stars', 'accounts', '^outlier profile.followers$', $$
  SELECT collection_create('accounts');
  INSERT INTO accounts (doc) SELECT bson_build('_id', objectid(), 'handle', 'h' || i, 'profile', bson_build('bio', made.words(4), 'followers', (SELECT coalesce(bson_agg(objectid(made.day(300))), '[]') FROM generate_series(1, CASE WHEN i % 700 = 3 THEN 9000 ELSE made.g(12) END)))) FROM generate_series(1, $ROWS) i $$),
('chat messages in a room', 'rooms', '^(subset|outlier) messages$', $$
  SELECT collection_create('rooms');
  INSERT INTO rooms (doc) SELECT bson_build('_id', objectid(timestamptz '2024-01-01' + i * interval '1 day'), 'topic', made.words(2), 'messages', (SELECT coalesce(bson_agg(bson_build('from', 'u' || made.r(99), 'body', made.words(8), 'sent', made.day(300))), '[]') FROM generate_series(1, 5 + (300 - i) * 2))) FROM generate_series(1, 300) i $$),
('invoices with their PDF', 'invoices', '^subset_fields pdf$', $$
  SELECT collection_create('invoices');
  INSERT INTO invoices (doc) SELECT bson_build('_id', i, 'number', 'R' || i, 'sum', made.r(999), 'paid', random() < 0.5, 'pdf', decode(repeat(md5(i::text), 300), 'hex')) FROM generate_series(1, $ROWS / 4) i $$),
('comments with their author', 'comments', '^reference author$', $$
  SELECT collection_create('users'), collection_create('comments');
  INSERT INTO users (doc) SELECT bson_build('_id', objectid(), 'name', 'n' || i, 'avatar', 'a' || i, 'email', made.words(1)) FROM generate_series(1, 300) i;
  INSERT INTO comments (doc) SELECT bson_build('text', made.words(9), 'author', bson_build('_id', u._id, 'name', u.doc -> 'name', 'avatar', u.doc -> 'avatar')) FROM generate_series(1, $ROWS) i JOIN (SELECT *, row_number() OVER () AS n FROM users) u ON u.n = 1 + i % 300;
  UPDATE users SET doc = bson_set(doc, 'avatar', 'new' || made.r(99)) WHERE random() < 0.1 $$),
('lines with copies of products', 'orders', '^reference items.product$', $$
  SELECT collection_create('products'), collection_create('orders');
  INSERT INTO products (doc) SELECT bson_build('_id', i, 'name', 'p' || i, 'price', made.r(900)) FROM generate_series(1, 200) i;
  INSERT INTO orders (doc) SELECT bson_build('_id', i, 'items', (SELECT bson_agg(bson_build('product', bson_build('_id', p._id, 'name', p.doc -> 'name'), 'n', made.r(9))) FROM products p WHERE p._id::int % 50 = i % 50)) FROM generate_series(1, $ROWS) i;
  UPDATE products SET doc = bson_set(doc, 'name', 'renamed' || made.r(99)) WHERE _id::int % 10 = 0 $$),
('employees and their managers', 'employees', '^tree manager_id$', $$
  SELECT collection_create('employees');
  INSERT INTO employees (doc) SELECT bson_build('_id', 1000 + i, 'name', 'e' || i, 'manager_id', CASE WHEN i > 1 THEN 1000 + 1 + made.r(i - 1) END) FROM generate_series(1, $ROWS / 2) i $$),
('who reports to whom, nearest first', 'staff', '^tree reports_to$', $$
  SELECT collection_create('staff');
  WITH RECURSIVE t AS (SELECT 1 AS i, 'n1' AS name, '{}'::text[] AS up UNION ALL SELECT t.i * 3 + k, 'n' || (t.i * 3 + k), t.name || t.up FROM t, generate_series(0, 2) k WHERE cardinality(t.up) < 6 AND t.i * 3 + k < $ROWS)
  INSERT INTO staff (doc) SELECT bson_build('employee_id', i, 'name', name, 'reports_to', up) FROM t $$),
('sub-categories by list', 'groups', '^tree children$', $$
  SELECT collection_create('groups');
  INSERT INTO groups (doc) SELECT bson_build('_id', i, 'name', 'g' || i, 'children', (SELECT coalesce(bson_agg(c), '[]') FROM generate_series(3 * i - 1, 3 * i + 1) c WHERE c <= $ROWS / 4)) FROM generate_series(1, $ROWS / 4) i $$),
('athletes', 'athletes', '^polymorphic sport$', $$
  SELECT collection_create('athletes');
  INSERT INTO athletes (doc) SELECT bson_build('name', 'a' || i, 'born', made.day(300)) || (ARRAY[bson_build('sport', 'tennis', 'sets', made.r(9), 'hand', 'l'), bson_build('sport', 'football', 'goals', made.r(99), 'club', 'c' || made.r(9)), bson_build('sport', 'swim', 'strokes', bson_array('x'), 'best', made.r(99))])[1 + made.r(3)] FROM generate_series(1, $ROWS) i $$),
('events of many types', 'events', '^polymorphic event_type$', $$
  SELECT collection_create('events');
  INSERT INTO events (doc) SELECT bson_build('_id', i, 'event_type', t, 'at', made.day(99)) || (SELECT bson_merge_agg(bson_build(t || '_' || x, made.words(1))) FROM unnest('{a,b,c}'::text[]) x) FROM (SELECT i, 'type' || made.r(8) AS t FROM generate_series(1, $ROWS) i) q $$),
('docVersion as a string', 'forms', '^schema_versioning docVersion$', $$
  SELECT collection_create('forms');
  INSERT INTO forms (doc) SELECT bson_build('_id', i) || CASE WHEN random() < 0.4 THEN bson_build('docVersion', '1', 'fullName', 'n' || i) ELSE bson_build('docVersion', '2', 'name', 'n' || i) END FROM generate_series(1, $ROWS) i $$),
('tag, tags', 'notes', '^schema_versioning tag, tags$', $$
  SELECT collection_create('notes');
  INSERT INTO notes (doc) SELECT bson_build('_id', i, 'text', made.words(4)) || CASE WHEN random() < 0.5 THEN bson_build('tag', 't' || made.r(9)) ELSE bson_build('tags', bson_array('t' || made.r(9), 'x')) END FROM generate_series(1, $ROWS) i $$),
('email or a list of emails', 'leads', '^schema_versioning email$', $$
  SELECT collection_create('leads');
  INSERT INTO leads (doc) SELECT bson_build('_id', i, 'email', CASE WHEN random() < 0.5 THEN to_bson('e' || i) ELSE to_bson(ARRAY['e' || i, 'f' || i]) END) FROM generate_series(1, $ROWS) i $$),
('prices in currencies', 'goods', '^attribute price_\*$', $$
  SELECT collection_create('goods');
  INSERT INTO goods (doc) SELECT bson_build('_id', i, 'name', 'g' || i) || (SELECT bson_merge_agg(bson_build('price_' || c, made.r(9000) / 100.0::float8)) FROM unnest('{eur,usd,dkk,sek,nok,gbp,jpy}'::text[]) c WHERE random() + 0 * i < 0.9 OR c = 'eur') FROM generate_series(1, $ROWS) i $$),
('weather of stations', 'weather', '^bucket time$', $$
  SELECT collection_create('weather');
  INSERT INTO weather (doc) SELECT bson_build('_id', objectid(), 'stationId', 'DK' || s, 'time', timestamptz '2025-01-01' + m * interval '10 min', 'wind', random() * 20, 'pressure', 1000 + made.r(40)) FROM generate_series(1, 600) m, generate_series(1, 20) s $$),
('prices of shares', 'quotes', '^bucket t$', $$
  SELECT collection_create('quotes');
  INSERT INTO quotes (doc) SELECT bson_build('symbol', 'S' || s, 't', timestamptz '2025-01-01' + m * interval '1 s', 'bid', 100 + random(), 'ask', 101 + random()) FROM generate_series(1, 1200) m, generate_series(1, 10) s $$),
('CPU of hosts in hourly arrays', 'hosts', '^bucket cpu$', $$
  SELECT collection_create('hosts');
  INSERT INTO hosts (doc) SELECT bson_build('_id', 'h' || i, 'cpu', (SELECT bson_agg(bson_build('ts', timestamptz '2025-01-01' + j * interval '5 min', 'load', random(), 'core', j % 4)) FROM generate_series(1, 400 + i) j)) FROM generate_series(1, 60) i $$),
('likes', 'videos', '^approximation likes$', $$
  SELECT collection_create('videos');
  INSERT INTO videos (doc) SELECT bson_build('_id', i, 'title', made.words(2), 'length', made.r(100), 'likes', 0) FROM generate_series(1, 40) i;
  DO 'BEGIN FOR i IN 1 .. 300 LOOP UPDATE videos SET doc = bson_set(doc, ''likes'', (doc -> ''likes'')::int + made.r(3)); END LOOP; END' $$),
('versions of pages in a table', 'page_versions', '^versioning version$', $$
  SELECT collection_create('page_versions');
  INSERT INTO page_versions (doc) SELECT bson_build('_id', objectid(), 'slug', 's' || p, 'version', v, 'body', made.words(20)) FROM generate_series(1, 200) p, generate_series(1, 1 + p % 9) v $$),
('balance of accounts', 'accounts', '^computed balance$', $$
  SELECT collection_create('accounts'), collection_create('bookings');
  INSERT INTO bookings (doc) SELECT bson_build('account', objectid_of, 'amount', made.r(900) - 400) FROM (SELECT ('6500000000000000000000' || lpad((10 + made.r(80))::text, 2, '0'))::objectid AS objectid_of FROM generate_series(1, $ROWS)) q;
  INSERT INTO accounts (doc) SELECT bson_build('_id', k, 'owner', 'o' || k, 'balance', s) FROM (SELECT (doc -> 'account')::objectid AS k, sum((doc -> 'amount')::int)::int AS s FROM bookings GROUP BY 1) q $$),
('viewers of films by title', 'movies', '^computed viewers$', $$
  SELECT collection_create('movies'), collection_create('screenings');
  INSERT INTO screenings (doc) SELECT bson_build('movie_title', 'm' || made.r(50), 'num_viewers', made.r(200)) FROM generate_series(1, $ROWS);
  INSERT INTO movies (doc) SELECT bson_build('title', t, 'viewers', s) FROM (SELECT doc ->> 'movie_title' AS t, sum((doc -> 'num_viewers')::int)::int AS s FROM screenings GROUP BY 1) q $$),
('patients and doctors', 'patients', '^relationship doctors$', $$
  SELECT collection_create('patients'), collection_create('doctors');
  CREATE TABLE pairs AS SELECT DISTINCT 'p' || s AS s, 1 + made.r(30) AS c FROM generate_series(1, 300) s, generate_series(1, 3);
  INSERT INTO patients (doc) SELECT bson_build('_id', s, 'doctors', bson_agg(c)) FROM pairs GROUP BY s;
  INSERT INTO doctors (doc) SELECT bson_build('_id', c, 'patients', bson_agg(s)) FROM pairs GROUP BY c;
  DROP TABLE pairs $$),
('ten newest reviews', 'products', '^subset reviews$', $$
  SELECT collection_create('products'), collection_create('reviews');
  INSERT INTO reviews (doc) SELECT bson_build('_id', i, 'product_id', 1 + made.r(100), 'text', made.words(5), 'at', made.day(300)) FROM generate_series(1, $ROWS) i;
  INSERT INTO products (doc) SELECT bson_build('_id', p, 'name', 'p' || p, 'reviews', (SELECT bson_agg(bson_build('_id', r._id, 'text', r.doc -> 'text', 'at', r.doc -> 'at') ORDER BY r.doc -> 'at' DESC) FROM (SELECT * FROM reviews WHERE doc -> 'product_id' = p ORDER BY doc -> 'at' DESC LIMIT 10) r)) FROM generate_series(1, 100) p $$),
('webhooks as JSON text', 'hooks', '^payload body$', $$
  SELECT collection_create('hooks');
  INSERT INTO hooks (doc) SELECT bson_build('_id', i, 'at', made.day(30), 'body', json_build_object('id', i, 'kind', 'k' || made.r(5), 'data', made.words(40))::text) FROM generate_series(1, $ROWS / 2) i $$),
('places of courses', 'courses', '^preallocated places$', $$
  SELECT collection_create('courses');
  INSERT INTO courses (doc) SELECT bson_build('_id', i, 'title', made.words(2), 'places', (SELECT bson_agg(CASE WHEN random() < 0.4 THEN to_bson('s' || made.r(900)) ELSE to_bson(0) END) FROM generate_series(1, 20 + 0 * i))) FROM generate_series(1, $ROWS / 4) i $$),
('users by e-mail', 'users', '^query_table users_by_email$', $$
  SELECT collection_create('users'), collection_create('users_by_email');
  INSERT INTO users (doc) SELECT bson_build('_id', i, 'email', 'e' || i || '@x', 'name', made.words(2), 'city', made.words(1), 'age', made.r(90)) FROM generate_series(1, $ROWS) i;
  INSERT INTO users_by_email (doc) SELECT bson_build('_id', doc -> 'email', 'email', doc -> 'email', 'user_id', doc -> '_id', 'name', doc -> 'name') FROM users $$),
('vehicles at times of their own', 'positions', '^bucket at$', $$
  SELECT collection_create('positions');
  INSERT INTO positions (doc) SELECT bson_build('vehicle', 'v' || made.r(40), 'at', made.day(30), 'lat', 55 + random(), 'lon', 12 + random(), 'speed', made.r(130)) FROM generate_series(1, 12000) i $$),
('items with lower-case keys', 'shop', '^single_table PK$', $$
  SELECT collection_create('shop');
  INSERT INTO shop (doc) SELECT bson_build('PK', 'CUSTOMER#c' || u, 'SK', 'META', 'name', 'n' || u) FROM generate_series(1, 200) u;
  INSERT INTO shop (doc) SELECT bson_build('PK', 'CUSTOMER#c' || u, 'SK', 'ADDRESS#' || o, 'city', made.words(1)) FROM generate_series(1, 200) u, generate_series(1, 2) o;
  INSERT INTO shop (doc) SELECT bson_build('PK', 'PRODUCT#p' || u, 'SK', 'META', 'price', made.r(99)) FROM generate_series(1, 200) u $$),
('readings with one sensor a table', 'boiler', '^bucket ts$', $$
  SELECT collection_create('boiler');
  INSERT INTO boiler (doc) SELECT bson_build('sensor', 'boiler', 'ts', timestamptz '2025-01-01' + i * interval '5 s', 'temperature', 60 + random()) FROM generate_series(1, 12000) i $$),
('three systems', 'crm', '^polymorphic customer_id$', $$
  SELECT collection_create('crm'), collection_create('billing'), collection_create('support');
  INSERT INTO crm (doc) SELECT bson_build('customer_id', 'c' || i, 'name', made.words(2)) FROM generate_series(1, 500) i;
  INSERT INTO billing (doc) SELECT bson_build('customer_id', 'c' || i, 'iban', made.words(1)) FROM generate_series(1, 500) i WHERE random() < 0.8;
  INSERT INTO support (doc) SELECT bson_build('customer_id', 'c' || i, 'tickets', made.r(9)) FROM generate_series(1, 500) i WHERE random() < 0.5 $$),

('recipes', 'recipes', NULL, $$
  SELECT collection_create('recipes');
  INSERT INTO recipes (doc) SELECT bson_build('_id', objectid(), 'title', made.words(3), 'minutes', made.r(90), 'ingredients', (SELECT bson_agg(bson_build('name', made.words(1), 'amount', made.r(500), 'unit', 'g')) FROM generate_series(1, 3 + made.r(12) + 0 * i)), 'steps', (SELECT bson_agg(made.words(20)) FROM generate_series(1, 3 + made.r(6) + 0 * i))) FROM generate_series(1, $ROWS) i $$),
('payments', 'payments', NULL, $$
  SELECT collection_create('payments');
  INSERT INTO payments (doc) SELECT bson_build('_id', objectid(), 'order_id', made.r(4000), 'amount', made.r(99999) / 100.0, 'currency', 'EUR', 'at', made.day(300), 'method', 'm' || made.r(4)) FROM generate_series(1, 12000) i $$),
('clicks of users', 'clicks', NULL, $$
  SELECT collection_create('clicks');
  INSERT INTO clicks (doc) SELECT bson_build('user_id', made.r(900), 'url', '/p' || made.r(50), 'at', made.day(30), 'ms', made.r(3000)) FROM generate_series(1, 12000) i $$),
('books with authors by id', 'books', NULL, $$
  SELECT collection_create('books');
  INSERT INTO books (doc) SELECT bson_build('_id', i, 'title', made.words(3), 'isbn', 'i' || i, 'authors', bson_array(made.r(99), made.r(99)), 'year', 1950 + made.r(70)) FROM generate_series(1, $ROWS) i $$),
('feature flags', 'flags', NULL, $$
  SELECT collection_create('flags');
  INSERT INTO flags (doc) SELECT bson_build('_id', 'flag_' || i, 'on', random() < 0.5, 'percent', made.r(100), 'updated', made.day(100)) FROM generate_series(1, 200) i;
  UPDATE flags SET doc = bson_set(doc, 'percent', 5) $$),
('posts with a nested author', 'posts', NULL, $$
  SELECT collection_create('posts');
  INSERT INTO posts (doc) SELECT bson_build('_id', i, 'title', made.words(5), 'author', bson_build('id', made.r(50), 'name', 'n' || made.r(50)), 'text', made.words(80), 'likes', made.r(50), 'at', made.day(200)) FROM generate_series(1, $ROWS) i $$),
('mail', 'mail', NULL, $$
  SELECT collection_create('mail');
  INSERT INTO mail (doc) SELECT bson_build('_id', objectid(), 'from', 'u' || made.r(500), 'to', (SELECT bson_agg('u' || made.r(500)) FROM generate_series(1, 1 + made.g(2) + 0 * i)), 'subject', made.words(5), 'sent', made.day(300), 'read', random() < 0.9, 'parts', bson_array(bson_build('mime', 'text/plain', 'size', made.r(9000)))) FROM generate_series(1, $ROWS) i $$),
('places with opening hours', 'shops', NULL, $$
  SELECT collection_create('shops');
  INSERT INTO shops (doc) SELECT bson_build('_id', i, 'name', 'n' || i, 'location', bson_build('type', 'Point', 'coordinates', bson_array(random(), random())), 'hours', bson_build('mon', bson_array(9, 17), 'tue', bson_array(9, 17), 'wed', bson_array(9, 17), 'thu', bson_array(9, 18), 'fri', bson_array(9, 18))) FROM generate_series(1, $ROWS) i $$),
('tokens that expire', 'tokens', NULL, $$
  SELECT collection_create('tokens');
  INSERT INTO tokens (doc) SELECT bson_build('_id', md5(i::text), 'kind', CASE WHEN random() < 0.5 THEN 'access' ELSE 'refresh' END, 'user', made.r(300), 'expires', made.day(3), 'scopes', bson_array('read')) || CASE WHEN random() < 0.3 THEN bson_build('revoked', made.day(3)) ELSE '{}' END FROM generate_series(1, $ROWS) i $$),
('surveys', 'answers', NULL, $$
  SELECT collection_create('answers');
  INSERT INTO answers (doc) SELECT bson_build('_id', i, 'survey', made.r(5), 'q1', 1 + made.r(5), 'q2', 1 + made.r(5), 'q3', 1 + made.r(5), 'q4', made.words(4), 'done', made.day(100)) FROM generate_series(1, 11000) i $$),
('stock of warehouses', 'stock', NULL, $$
  SELECT collection_create('stock');
  INSERT INTO stock (doc) SELECT bson_build('_id', bson_build('sku', 's' || i % 1000, 'warehouse', i / 1000), 'quantity', made.r(500), 'reserved', made.r(20), 'updated', made.day(90)) FROM generate_series(0, 11999) i $$),
('documents with a hash', 'blobs', NULL, $$
  SELECT collection_create('blobs');
  INSERT INTO blobs (doc) SELECT bson_build('_id', i, 'sha', md5(i::text), 'size', made.r(99999), 'mime', 'image/png', 'stored_at', made.day(300)) FROM generate_series(1, $ROWS) i $$);

CREATE PROCEDURE made.make(rows int) LANGUAGE plpgsql AS $$
DECLARE
  s record;
BEGIN
  FOR s IN SELECT * FROM made.shapes ORDER BY n LOOP
    EXECUTE format('CREATE SCHEMA shape_%s', s.n);
    PERFORM set_config('search_path', format('shape_%s, public, made', s.n), false);
    EXECUTE replace(s.make, '$ROWS', rows::text);
    COMMIT;
  END LOOP;
  PERFORM set_config('search_path', 'public, made', false);
END $$;
CALL made.make(:rows);
SELECT pg_stat_force_next_flush();
ANALYZE;
SELECT pg_stat_clear_snapshot();

-- What a document holds: each scalar with the text of its path, positions left out.
CREATE FUNCTION made.scalars(rel regclass, OUT id text, OUT value text) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY EXECUTE format('SELECT (doc -> ''_id'')::text, v::text FROM %s, jsonb_path_query(doc::jsonb, ''strict $.** ? (@.type() != "object" && @.type() != "array")'') v', rel);
END $$;

-- Runs the statements of an advice, builds and checks what they declare, ends it again; what was wrong.
CREATE FUNCTION made.try(rel regclass, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  d record;
  found text := '';
  n bigint;
BEGIN
  BEGIN
    PERFORM set_config('client_min_messages', 'error', true);
    CREATE TEMP TABLE before AS SELECT * FROM made.scalars(rel);
    EXECUTE statement;
    FOR d IN SELECT * FROM pattern_list() LOOP
      IF EXISTS (SELECT FROM pattern_list(d.rel) l WHERE l.name = d.name AND l.pattern NOT IN ('bucket', 'change_feed')) THEN
        CALL pattern_build(d.rel, d.name, NULL);
      END IF;
    END LOOP;
    SELECT string_agg(DISTINCT c.what, '; ') INTO found FROM pattern_check() c;
    found := coalesce('pattern_check: ' || found, '');
    IF EXISTS (SELECT FROM pattern_advise(rel) a WHERE a.statement = try.statement) THEN
      found := found || ' is advised again;';
    END IF;
    FOR d IN SELECT * FROM pattern_list() l WHERE l.pattern NOT IN ('bucket', 'single_table') ORDER BY l.pattern LOOP
      IF d.pattern = 'subset' AND statement ~ 'subset_split' THEN
        PERFORM subset_join(d.rel, d.name);
      ELSIF d.pattern = 'polymorphic_merge' THEN
        PERFORM pattern_disable_all(d.rel) WHERE EXISTS (SELECT FROM pattern_list(d.rel));
      ELSE
        PERFORM pattern_disable(d.rel, d.name, keep_data => d.pattern IN ('computed', 'subset'));
      END IF;
    END LOOP;
    -- what was replaced is in a table with this ending
    EXECUTE coalesce((SELECT string_agg(format('DELETE FROM before b WHERE EXISTS (SELECT FROM %s k WHERE k.key::text = b.id)', c.oid::regclass), '; ')
      FROM pg_class c WHERE c.relkind = 'r' AND c.relname LIKE '%\_before' AND c.relnamespace = (SELECT p.relnamespace FROM pg_class p WHERE p.oid = rel)), 'SELECT');
    SELECT count(*) INTO n FROM (SELECT id, value FROM before EXCEPT ALL SELECT s.id, s.value FROM made.scalars(rel) s) q;
    IF n > 0 THEN
      found := found || format(' %s values are lost', n);
    END IF;
    RAISE SQLSTATE 'UNDO1';
  EXCEPTION
    WHEN SQLSTATE 'UNDO1' THEN NULL;
    WHEN OTHERS THEN found := found || SQLERRM;
  END;
  RETURN found;
END $$;

-- the first advice counts; of healthy shapes all tables must be silent
CREATE TABLE made.results AS
SELECT s.n, s.name, s.advice AS wanted, coalesce(string_agg(concat_ws(' ', a.pattern, a.path), ', ' ORDER BY a.place), 'none') AS got,
  CASE WHEN s.advice IS NULL THEN count(a) = 0 ELSE coalesce((array_agg(concat_ws(' ', a.pattern, a.path) ORDER BY a.place))[1] ~ s.advice, false) END AS is_right
FROM made.shapes s LEFT JOIN LATERAL (SELECT p.*, row_number() OVER () AS place FROM pattern_advise(format('shape_%s.%I', s.n, s.rel)::regclass) p) a ON true
GROUP BY s.n, s.name, s.advice;
SELECT ok(is_right, format('%s: %s', name, got)) FROM made.results ORDER BY n;
SELECT is((SELECT string_agg(format('%s of %s: %s', a.pattern, a.rel, made.try(a.rel, a.statement)), E'\n') FROM made.shapes s,
    LATERAL pattern_advise(format('shape_%s.%I', s.n, s.rel)::regclass) a WHERE s.n = r.n AND made.try(a.rel, a.statement) <> ''), NULL,
  format('%s: the statement runs, nothing is lost', name)) FROM made.results r WHERE wanted IS NOT NULL ORDER BY n;
CREATE TABLE made.advice AS SELECT * FROM pattern_advise();
SELECT is((SELECT count(*)::int FROM made.advice WHERE (why = '' OR changes = '' OR cost = '') IS NOT FALSE), 0, 'each advice says why, what changes and what it costs');
SELECT is((SELECT array_agg(DISTINCT substring(rel::text from '^shape_([0-9]+)')::int ORDER BY substring(rel::text from '^shape_([0-9]+)')::int) FROM made.advice),
  ARRAY(SELECT n FROM made.shapes WHERE advice IS NOT NULL ORDER BY n), 'advice on the whole database is on these schemas');
DO $$ BEGIN FOR i IN 1 .. 92 LOOP EXECUTE format('DROP SCHEMA shape_%s CASCADE', i); END LOOP; END $$;
DROP SCHEMA made CASCADE;
SELECT * FROM finish();
