# Five sessions write the tables of a distributed schema, which have ten patterns, beside ordinary tables without patterns in the same transactions, while the schema moves from server to server. At the end
# all is consistent, and what patterns keep is what queries of the ordinary tables say.
# SEED and STRESS_SECONDS win over the defaults. The environment is that of test/env/citus.sh run.
. "$DP_TOP/test/env/tap.sh"
seed=${SEED:-20262} seconds=${STRESS_SECONDS:-20} clients=5
export PGOPTIONS='-c client_min_messages=error'
plan 13
echo "# seed $seed, $seconds seconds, $clients clients"
ask() { psql -XqAt -c "$1" 2>&1; }

psql -XqAt -v ON_ERROR_STOP=1 <<'SQL' >/dev/null || echo 'not ok 0 - the tables were made'
CREATE SCHEMA s;
CREATE SCHEMA m;
SELECT citus_schema_distribute('s');
SELECT collection_create('s.' || t), collection_create('m.' || t) FROM unnest('{books,movies,screenings,products,reviews,customers,orders,cats,goods,sold}'::text[]) t;
SELECT outlier_enable('s.books', 'buyers', 3, count_field => 'n', chunk => 2), versioning_enable('s.books', optimistic => false), change_feed_enable('s.books', name => 'fed');
SELECT subset_fields_enable('s.screenings', cold => '{specs}'), attribute_enable('s.screenings', 'attributes', prefix => 'spec_');
SELECT computed_enable('s.movies', 's.screenings', 'movie', '{n: {$count: {}}, sum: {$sum: "$x"}, best: {$max: "$x"}}');
SELECT subset_enable('s.products', 'reviews', 's.reviews', 'product', '{date: -1, _id: 1}', 2, count_field => 'n', count_mode => 'immediate');
SELECT reference_enable('s.orders', 'customer', 's.customers', live => '{name}');
SELECT tree_enable('s.cats', parent => 'up', ancestors => 'anc', depth => 'depth'), tree_attach('s.goods', tree => 's.cats', parent => 'cat', ancestors => 'cats');
SELECT query_table_create('s.by_user', 's.sold', '{u}', '{d: -1}', '{t: 1}'), query_table_create('s.newest', 's.sold', '{u}', '{d: -1}', limit_per_partition => 2);
INSERT INTO s.movies (doc) SELECT bson_build('_id', i) FROM generate_series(1, 5) i;
INSERT INTO s.products (doc) SELECT bson_build('_id', i) FROM generate_series(1, 5) i;
INSERT INTO s.customers (doc) SELECT bson_build('_id', i, 'name', 0) FROM generate_series(1, 5) i;
INSERT INTO s.cats (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 1 THEN i / 2 END) FROM generate_series(1, 15) i;
INSERT INTO m.movies (doc) SELECT bson_build('_id', i) FROM generate_series(1, 5) i;
INSERT INTO m.products (doc) SELECT bson_build('_id', i) FROM generate_series(1, 5) i;
INSERT INTO m.customers (doc) SELECT bson_build('_id', i, 'name', 0) FROM generate_series(1, 5) i;
INSERT INTO m.cats (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 1 THEN i / 2 END) FROM generate_series(1, 15) i;
SQL

work() {
  awk -v seed=$((seed + $1)) '
    function r(n) { return int(rand() * n) + 1 }
    function both(sql,   a, b) { a = b = sql; gsub(/@/, "s.", a); gsub(/@/, "m.", b); return a "; " b ";" }
    function put(t, k, doc) { return both("DELETE FROM @" t " WHERE _id = " k "::bson_value") both("INSERT INTO @" t " (doc) VALUES ($${_id: " k ", " doc "}$$)") }
    function change(t, k, update) { return both("UPDATE @" t " SET doc = bson_update_immutable(doc, $${" update "}$$) WHERE _id = " k "::bson_value") }
    function gone(t, k) { return both("DELETE FROM @" t " WHERE _id = " k "::bson_value") }
    function list(n,   s) { for (s = ""; n > 0; n--) s = s (s == "" ? "" : ", ") r(9); return "[" s "]" }
    BEGIN { srand(seed); for (;;) {
      # writers of a document wait for each other; those of one parent meet only in the patterns
      k = r(30); w = r(14)
      print "BEGIN; SELECT pg_advisory_xact_lock(" k "); SELECT pg_advisory_xact_lock(" k + 1 ");"
      if (w == 1) print put("books", k, "x: " r(99) ", buyers: " list(r(8) - 1))
      if (w == 2) print change("books", k, "$push: {buyers: " r(9) "}")
      if (w == 3) print r(2) == 1 ? gone("books", k) : change("books", k, "$set: {x: " r(99) "}")
      if (w == 4) print put("screenings", k, "movie: " r(5) ", x: " r(99) ", specs: {a: " r(9) "}, spec_b: " r(9))
      if (w == 5) print change("screenings", k, "$set: {movie: " r(5) ", x: " r(99) "}") (r(3) == 1 ? gone("screenings", k + 1) : "")
      if (w == 6) print put("reviews", k, "product: " r(5) ", date: " r(9))
      if (w == 7) print r(2) == 1 ? gone("reviews", k) : change("reviews", k, "$set: {product: " r(5) "}")
      if (w == 8) print put("orders", k, "customer: {_id: " r(5) "}")
      if (w == 9) print change("customers", r(5), "$inc: {name: 1}")
      if (w == 10) print put("cats", 15 + k, "up: " r(45)) put("goods", k, "cat: " r(45))
      if (w == 11) print change("cats", r(2) == 1 ? 1 + r(14) : 15 + k, "$set: {up: " r(45) "}")
      if (w == 12) print r(2) == 1 ? gone("cats", 15 + k) : gone("goods", k)
      if (w == 13) print put("sold", k, "u: " r(4) ", d: " r(99) ", t: " r(9))
      if (w == 14) print both("UPDATE @sold SET doc = bson_update_immutable(doc, $${$set: {u: " r(4) "}, $inc: {t: 1}}$$) WHERE _id IN (" k "::bson_value, " (k + 1) "::bson_value)")
      print r(8) == 1 ? "ROLLBACK;" : "COMMIT;"
    } }' 2>/dev/null
}

end=$((SECONDS + seconds)) jobs=
for i in $(seq $clients); do
  while [ $SECONDS -lt $end ]; do work "$((i + RANDOM))" | timeout $((end - SECONDS + 1)) psql -XqAt -v VERBOSITY=verbose; done >/dev/null 2>"$DP_WORK/errors.$i" &
  jobs="$jobs $!"
done
block_writes=0 force_logical=0 refused=0
while [ $SECONDS -lt $((end - 2)) ]; do
  sleep 0.5
  for mode in block_writes force_logical; do
    answer=$(ask "SELECT citus_schema_move('s', n.nodename, n.nodeport, '$mode') FROM pg_dist_node n WHERE groupid <> 0 AND nodeport <> ALL (SELECT nodeport FROM citus_shards s JOIN pg_class c ON c.oid = s.table_name WHERE c.relnamespace = 's'::regnamespace)")
    if [ "$answer" = '' ]; then eval "$mode=\$(($mode + 1))"; else refused=$((refused + 1)); echo "# $mode: $answer" | head -n 1 | cut -c 1-200; fi
  done
done
# shellcheck disable=SC2086
wait $jobs
ask 'SELECT recover_prepared_transactions()' >/dev/null
cat "$DP_WORK"/errors.* | grep -o 'ERROR:  .*' | sed 's/[0-9][0-9]*/N/g' | cut -c 1-120 | sort | uniq -c | sort -rn | head -12 | sed 's/^/# /'
echo "# $block_writes and $force_logical moves, $refused refused; $(ask 'SELECT max(number), count(*) FROM s.books_fed') changes of books, $(ask 'SELECT count(*) FROM s.books_history') revisions"

same() { is "$(ask "WITH kept AS MATERIALIZED ($1), wanted AS MATERIALIZED ($2) SELECT * FROM ((SELECT 'kept' AS what, * FROM kept EXCEPT ALL SELECT 'kept', * FROM wanted) UNION ALL (SELECT 'wanted', * FROM wanted EXCEPT ALL SELECT 'wanted', * FROM kept)) q LIMIT 4")" '' "$3"; }
is "$(cat "$DP_WORK"/errors.* | grep -E 'PANIC|ERROR:  XX[0-9]{3}: ' | sort | uniq -c | head -5)" '' 'no internal error'
ok 'the schema moved, also while it took writes' test $block_writes -gt 0 -a $force_logical -gt 0
is "$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' 'all is consistent'
same "SELECT _id::text, bson_project(doc, '{x: 1, buyers: 1, _id: 0}')::text FROM s.books_whole" "SELECT _id::text, bson_project(doc, '{x: 1, buyers: 1, _id: 0}')::text FROM m.books" 'documents, with their extras'
same "SELECT key::text, doc ->> 'x' FROM versioning_as_of('s.books', now())" "SELECT _id::text, doc ->> 'x' FROM m.books" 'the last version of each document'
same "SELECT key::text FROM (SELECT DISTINCT ON (key) key, operation FROM s.books_fed ORDER BY key, number DESC) f WHERE operation <> 'delete'" 'SELECT _id::text FROM m.books' 'the last change of each document'
same "SELECT w._id::text, w.doc -> 'x', w.doc -> 'movie', w.doc -> 'specs.a', w.doc -> 'attributes.0.value' FROM (SELECT _id, pattern_whole(doc, tableoid::regclass, _id) AS doc FROM s.screenings) w" "SELECT _id::text, doc -> 'x', doc -> 'movie', doc -> 'specs.a', doc -> 'spec_b' FROM m.screenings" 'documents, with fields beside them and attributes'
same "SELECT _id::text, (doc -> 'n')::int, (doc -> 'sum')::int, (doc -> 'best')::int FROM s.movies WHERE doc @@ '{n: {\$gt: 0}}'" "SELECT (doc -> 'movie')::text, count(*)::int, sum((doc -> 'x')::int)::int, max((doc -> 'x')::int) FROM m.screenings WHERE doc -> 'movie' IS NOT NULL GROUP BY 1" 'computed fields'
same "SELECT _id::text, (doc -> 'n')::int, bson_array_length(doc, 'reviews') FROM s.products WHERE doc @@ '{n: {\$gt: 0}}'" "SELECT (doc -> 'product')::text, count(*)::int, least(count(*), 2)::int FROM m.reviews GROUP BY 1" 'subsets'
same "SELECT _id::text, doc -> 'customer._id', doc -> 'customer.name' FROM s.orders" "SELECT o._id::text, c._id, c.doc -> 'name' FROM m.orders o JOIN m.customers c ON c._id = o.doc -> 'customer._id'" 'copies of references'
same "SELECT _id::text, (doc -> 'depth')::int FROM s.cats" "SELECT * FROM (WITH RECURSIVE t AS (SELECT _id, 0 AS depth FROM m.cats WHERE _id = 1::bson_value UNION ALL SELECT c._id, t.depth + 1 FROM m.cats c JOIN t ON c.doc -> 'up' = t._id) SELECT _id::text, depth FROM t) q" 'depths in a tree'
same "SELECT _id::text, doc -> 'cat', bson_array_length(doc, 'cats') FROM s.goods" "SELECT g._id::text, g.doc -> 'cat', (c.doc -> 'depth')::int + 1 FROM m.goods g LEFT JOIN s.cats c ON c._id = g.doc -> 'cat'" 'and of what is attached to it'
same "SELECT u::text, d::text, t::text FROM s.by_user" "SELECT (doc -> 'u')::text, (doc -> 'd')::text, (doc -> 't')::text FROM m.sold" 'query tables'
