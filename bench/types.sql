-- bson beside jsonb, operation by operation.
\echo
\echo 'operation                                 jsonb ms   bson ms   ratio    bar         spread of the ratio'
SELECT compare('parse text, S', 0.8, 'SELECT count(t::jsonb) FROM text_s', 'SELECT count(t::bson) FROM text_s');
SELECT compare('parse text, L', 0.2, 'SELECT count(t::jsonb) FROM text_l', 'SELECT count(t::bson) FROM text_l');
SELECT compare('text out, S', 0.8, 'SELECT count(doc::text) FROM jsonb_s', 'SELECT count(doc::text) FROM bson_s');
SELECT compare('text out, L', 0.8, 'SELECT count(doc::text) FROM jsonb_l_external', 'SELECT count(doc::text) FROM bson_l_external');
SELECT compare('no field, the scan alone, S', NULL, 'SELECT count(doc) FROM jsonb_s', 'SELECT count(doc) FROM bson_s');
SELECT compare('->> first field, S', 0.5, $$SELECT count(doc ->> '_id') FROM jsonb_s$$, $$SELECT count(doc ->> '_id') FROM bson_s$$);
SELECT compare('->> last field, S', 0.8, $$SELECT count(doc ->> 'last') FROM jsonb_s$$, $$SELECT count(doc ->> 'last') FROM bson_s$$);
SELECT compare('->> nested field, S', 0.75, $$SELECT count(doc -> 'customer' -> 'address' ->> 'city') FROM jsonb_s$$,
                                             $$SELECT count(doc ->> 'customer.address.city') FROM bson_s$$);
SELECT compare('->> five fields, S', 0.9,
  $$SELECT count(doc ->> '_id'), count(doc ->> 'status'), count(doc ->> 'number'), count(doc ->> 'paid'), count(doc ->> 'last') FROM jsonb_s$$,
  $$SELECT count(doc ->> '_id'), count(doc ->> 'status'), count(doc ->> 'number'), count(doc ->> 'paid'), count(doc ->> 'last') FROM bson_s$$);
SELECT compare('->> first field, W', 0.4, $$SELECT count(doc ->> 'field0') FROM jsonb_w$$, $$SELECT count(doc ->> 'field0') FROM bson_w$$);
SELECT compare('->> last field, W', 1.2, $$SELECT count(doc ->> 'field999') FROM jsonb_w$$, $$SELECT count(doc ->> 'field999') FROM bson_w$$);
SELECT compare('->> first field, M pglz', 0.5, $$SELECT count(doc ->> '_id') FROM jsonb_m$$, $$SELECT count(doc ->> '_id') FROM bson_m$$);
SELECT compare('->> first field, L pglz', 0.02, $$SELECT count(doc ->> '_id') FROM jsonb_l_pglz$$, $$SELECT count(doc ->> '_id') FROM bson_l_pglz$$);
SELECT compare('->> first field, L lz4', 0.02, $$SELECT count(doc ->> '_id') FROM jsonb_l_lz4$$, $$SELECT count(doc ->> '_id') FROM bson_l_lz4$$);
SELECT compare('->> first field, L external', 0.02, $$SELECT count(doc ->> '_id') FROM jsonb_l_external$$, $$SELECT count(doc ->> '_id') FROM bson_l_external$$);
SELECT compare('set an int, S', 0.35, $$SELECT count(jsonb_set(doc, '{number}', '5')) FROM jsonb_s$$, $$SELECT count(bson_set(doc, 'number', 5)) FROM bson_s$$);
SELECT compare('set an int, L', 0.03, $$SELECT count(jsonb_set(doc, '{number}', '5')) FROM jsonb_l_external$$, $$SELECT count(bson_set(doc, 'number', 5)) FROM bson_l_external$$);
SELECT compare('append to an array, M', 0.35,
  $$SELECT count(jsonb_insert(doc, '{reviews,-1}', '{"review_id": 1, "stars": 5, "text": "good"}', true)) FROM jsonb_m$$,
  $$SELECT count(bson_array_append(doc, 'reviews', bson '{"review_id": 1, "stars": 5, "text": "good"}')) FROM bson_m$$);
SELECT compare('append to an array, M lz4', NULL,
  $$SELECT count(jsonb_insert(doc, '{reviews,-1}', '{"review_id": 1, "stars": 5, "text": "good"}', true)) FROM jsonb_m_lz4$$,
  $$SELECT count(bson_array_append(doc, 'reviews', bson '{"review_id": 1, "stars": 5, "text": "good"}')) FROM bson_m_lz4$$);
SELECT compare('set a longer string, L', NULL, $$SELECT count(jsonb_set(doc, '{name}', '"a name that is longer"')) FROM jsonb_l_external$$,
                                               $$SELECT count(bson_set(doc, 'name', 'a name that is longer')) FROM bson_l_external$$);
-- Beneath what no function can go: PostgreSQL fetching or decompressing the same bytes as a bytea, beside jsonb's whole statement.
SELECT compare('set an int, L: the fetch alone', NULL, $$SELECT count(jsonb_set(doc, '{number}', '5')) FROM jsonb_l_external$$,
                                                       $$SELECT count(b > '') FROM bytes_l_external$$);
SELECT compare('append, M: the decompression alone', NULL,
  $$SELECT count(jsonb_insert(doc, '{reviews,-1}', '{"review_id": 1, "stars": 5, "text": "good"}', true)) FROM jsonb_m$$,
  $$SELECT count(b > '') FROM bytes_m$$);
SELECT compare('ORDER BY a number, S', 0.45, $$SELECT count(*) FROM (SELECT doc -> 'number' FROM jsonb_s ORDER BY doc -> 'number' OFFSET 0) x$$,
                                             $$SELECT count(*) FROM (SELECT doc -> 'number' FROM bson_s ORDER BY doc -> 'number' OFFSET 0) x$$);
SELECT compare('btree build on a number, S', 0.5, $$CREATE INDEX bench_index ON jsonb_s ((doc -> 'number'))$$,
                                                  $$CREATE INDEX bench_index ON bson_s ((doc -> 'number'))$$, 'DROP INDEX bench_index');

\echo
\echo 'uncompressed size, bytes a document          jsonb      bson   ratio    bar'
SELECT line('size, S', avg(pg_column_size(t::jsonb)), avg(pg_column_size(t::bson)), 0.9) FROM text_s;
SELECT line('size, M', avg(pg_column_size(t::jsonb)), avg(pg_column_size(t::bson)), 0.9) FROM text_m;
SELECT line('size, W', avg(pg_column_size(t::jsonb)), avg(pg_column_size(t::bson)), 0.9) FROM text_w;
SELECT line('size, L', (SELECT avg(pg_column_size(doc)) FROM jsonb_l_external), (SELECT avg(pg_column_size(doc)) FROM bson_l_external), 0.9);
