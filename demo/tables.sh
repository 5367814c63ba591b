# Tables as other systems have them, on the same catalogue: a table for each query, and one table for everything. Sourced by
# run.sh.

title 'One table per query, and one table for all'
say "Who maintains what, the largest packages first, as a table of real columns that may be given to people who shall not see the" \
  "documents. It is added while the catalogue is in use, and filled in batches:"
show "SELECT query_table_create('packages_by_maintainer', source => 'packages',
  partition => '{maintainer.email}', clustering => '{\"installed_size\": -1}',
  fields => '{\"package\": \"\$_id\", \"section\": 1}', types => '{\"installed_size\": \"bigint\"}')"
show "CALL pattern_build('packages', 'packages_by_maintainer', 20000)"
busiest=$(ask 'SELECT "maintainer.email"::text FROM packages_by_maintainer GROUP BY "maintainer.email" ORDER BY count(*) DESC, 1 LIMIT 1')
show "SELECT package, installed_size FROM packages_by_maintainer
WHERE \"maintainer.email\" = '$busiest'::text
ORDER BY installed_size DESC LIMIT 3"
say "A package grows, and its row moves in the same transaction:"
show "UPDATE packages SET doc = bson_set(doc, 'installed_size', 99999999)
WHERE _id = (SELECT _id FROM packages
             WHERE doc ->> 'maintainer.email' = '$busiest' ORDER BY _id LIMIT 1)"
show "SELECT package, installed_size FROM packages_by_maintainer
WHERE \"maintainer.email\" = '$busiest'::text
ORDER BY installed_size DESC LIMIT 1"

say "And the other way round: users and their orders in one table, under keys that templates make."
show "SELECT single_table_create('app', indexes => 1)"
show "SELECT single_table_entity('app', 'user', pk => 'USER#{user_id}', sk => 'PROFILE'),
  single_table_entity('app', 'order', pk => 'USER#{user_id}', sk => 'ORDER#{order_id}',
                      gsi1_pk => 'STATUS#{status}', gsi1_sk => '{date}')"
show "SELECT single_table_put('app', 'user', '{user_id: 123, name: \"Peter\"}')"
show "INSERT INTO app_order (doc)
SELECT bson_build('user_id', 123, 'order_id', 455 + i, 'total', 50.25 * i,
                  'date', date '2024-01-15' - i, 'status', CASE i WHEN 1 THEN 'paid' END)
FROM generate_series(1, 3) i"
show "SELECT q ->> 'SK' AS sk, q ->> 'total' AS total FROM single_table_query('app', pk => 'USER#123') q"
show "SELECT single_table_update('app', 'USER#123', 'ORDER#457', '{\$set: {status: \"paid\"}}',
  condition => '{status: null}')"
show "SELECT q ->> 'SK' AS paid FROM single_table_query('app', pk => 'STATUS#paid', index => 1) q"
show "SELECT * FROM pattern_check('app')"
ask 'SET client_min_messages = warning; DROP TABLE app CASCADE'
ask "SELECT pattern_disable('packages', 'packages_by_maintainer')" >/dev/null
