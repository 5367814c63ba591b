-- A user with 20 orders: from a single table by one query, and by a join of two normalised tables; both with plans that are
-- kept, as an application has them.
\echo
\echo 'single table pattern                     base ms    ours ms   ratio    bar'

SELECT single_table_create('bench.app', indexes => 1) \g /dev/null
SELECT single_table_entity('bench.app', 'user', pk => 'USER#{user_id}', sk => 'PROFILE'),
       single_table_entity('bench.app', 'order', pk => 'USER#{user_id}', sk => 'ORDER#{order_id}', gsi1_pk => 'STATUS#{status}', gsi1_sk => '{date}') \g /dev/null
CREATE TABLE bench.st_users (user_id int PRIMARY KEY, name text, email text);
CREATE TABLE bench.st_orders (order_id int PRIMARY KEY, user_id int NOT NULL REFERENCES bench.st_users, date date, status text, total numeric);
CREATE INDEX ON bench.st_orders (user_id, order_id);
INSERT INTO bench.st_users SELECT u, 'User ' || u, 'user' || u || '@example.com' FROM generate_series(1, greatest(50, :scale * 50)) u;
INSERT INTO bench.st_orders SELECT u * 100 + o, u, date '2024-01-01' + o, CASE o % 20 WHEN 0 THEN 'open' ELSE 'paid' END, o * 9.99 FROM generate_series(1, greatest(50, :scale * 50)) u, generate_series(1, 20) o ORDER BY random();
INSERT INTO bench.app_user (doc) SELECT bson_build('user_id', user_id, 'name', name, 'email', email) FROM bench.st_users;
INSERT INTO bench.app_order (doc) SELECT bson_build('user_id', user_id, 'order_id', order_id, 'date', date, 'status', status, 'total', total) FROM bench.st_orders ORDER BY random();
VACUUM ANALYZE bench.st_users, bench.st_orders, bench.app;
CREATE FUNCTION bench.st_join(n int, users int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE r record; v int;
BEGIN
  FOR i IN 1 .. n LOOP
    v := 1 + (i * 7919) % users;
    FOR r IN SELECT u.*, o.order_id, o.date, o.status, o.total FROM bench.st_users u JOIN bench.st_orders o ON o.user_id = u.user_id WHERE u.user_id = v ORDER BY o.order_id LOOP END LOOP;
  END LOOP;
END $$;
CREATE FUNCTION bench.st_single(n int, users int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE r record; u text;
BEGIN
  FOR i IN 1 .. n LOOP
    u := 'USER#' || 1 + (i * 7919) % users;
    FOR r IN SELECT q FROM single_table_query('bench.app', pk => u) q LOOP END LOOP;
  END LOOP;
END $$;
SELECT compare('a user with 20 orders, 1,000 times', 1.2, format('SELECT bench.st_join(1000, %s)', (SELECT count(*) FROM bench.st_users)),
               format('SELECT bench.st_single(1000, %s)', (SELECT count(*) FROM bench.st_users)));
SELECT compare('the last order', 'infinity', $$SELECT * FROM bench.st_orders WHERE user_id = 17 ORDER BY order_id DESC LIMIT 1$$,
               $$SELECT * FROM single_table_query('bench.app', pk => 'USER#17', sk_begins_with => 'ORDER#', descending => true, take => 1)$$);
SELECT compare('put an item, beside an upsert', 'infinity',
               $$INSERT INTO bench.st_orders VALUES (1700001, 17, '2024-01-01', 'paid', 5) ON CONFLICT (order_id) DO UPDATE SET total = EXCLUDED.total$$,
               $$SELECT single_table_put('bench.app', 'order', '{user_id: 17, order_id: 1700001, date: "2024-01-01", status: "paid", total: 5}')$$);
DROP TABLE bench.app CASCADE;
DROP TABLE bench.st_orders, bench.st_users;
DROP FUNCTION bench.st_join, bench.st_single;
