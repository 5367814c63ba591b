# Six sessions write a distributed table with seven patterns, beside a plain one in the same transactions, while shards move and split and a worker crashes. At the end all is consistent and both have the same data.
# SEED and STRESS_SECONDS win over the defaults. The environment is that of test/env/citus.sh run; CLUSTER names its servers.
. "$DP_TOP/test/env/tap.sh"
seed=${SEED:-20261} seconds=${STRESS_SECONDS:-20} clients=6
cluster=$DP_TOP/test/env/cluster.sh
export PGOPTIONS='-c client_min_messages=error'
plan 11
echo "# seed $seed, $seconds seconds, $clients clients"
ask() { psql -XqAt -c "$1" 2>&1; }
worker() { PGPORT=$(ask "SELECT nodeport FROM pg_dist_node WHERE groupid = $1") psql -XqAt -c "$2" 2>&1; }

psql -XqAt -v ON_ERROR_STOP=1 <<'SQL' >/dev/null || echo 'not ok 0 - the tables were made'
SET citus.shard_count = 6;
CREATE FUNCTION doc_of(i bigint, x bigint) RETURNS bson LANGUAGE sql IMMUTABLE AS $$
  SELECT bson_build('_id', i, 'x', x, 'a', (SELECT coalesce(bson_agg(j), '[]') FROM generate_series(1, x % 9) j), 'c', bson_build('full', x), 'spec_w', i, 'views', 0,
    'body', format('{"total": %s, "text": "%s"}', x, repeat('t', 100))) $$;
CREATE TABLE storm (_id bson_value PRIMARY KEY, doc bson);
CREATE TABLE model (_id bson_value PRIMARY KEY, doc bson);
SELECT create_distributed_table('storm', '_id'), create_distributed_table('model', '_id', colocate_with => 'storm');
SELECT outlier_enable('storm', 'a', threshold => 3, count_field => 'n', chunk => 2);
SELECT subset_fields_enable('storm', '{c.full}');
SELECT attribute_enable('storm', 'specs', prefix => 'spec_');
SELECT payload_enable('storm', 'body', extracts => '{"total": "jsonpath:$.total::numeric"}');
SELECT approximation_enable('storm', 'views', slots => 4);
SELECT preallocated_enable('storm', 'seats', shape => preallocated_pool(4), available_field => 'free');
SELECT versioning_enable('storm', optimistic => false, name => 'versions');
CREATE TABLE past (at timestamptz, _id bson_value, x bson_value);
INSERT INTO storm SELECT i, doc_of(i, i) FROM generate_series(1, 40) i;
INSERT INTO model SELECT i, doc_of(i, i) FROM generate_series(1, 40) i;
CREATE VIEW whole AS SELECT b._id, pattern_whole(b.doc, b.tableoid::regclass, b._id) AS doc FROM storm AS b;
SQL

# The same change of both tables in one transaction, with a lock of the keys.
work() {
  awk -v seed=$((seed + $1)) '
    function r(n) { return int(rand() * n) + 1 }
    function both(sql,   a, b) { a = b = sql; gsub(/TABLE/, "storm", a); gsub(/TABLE/, "model", b); return a "; " b ";" }
    function change(k, update) { return both("UPDATE TABLE SET doc = bson_update_immutable(doc, $${" update "}$$) WHERE _id = " k "::bson_value") }
    BEGIN { srand(seed); for (;;) {
      k = r(50); l = k + r(5); w = r(9)
      print "BEGIN; SELECT pg_advisory_xact_lock(k) FROM generate_series(" k ", " l ") k;"
      if (w <= 2) { x = r(99); print both("DELETE FROM TABLE WHERE _id = " k "::bson_value") both("INSERT INTO TABLE VALUES (" k ", doc_of(" k ", " x "))") }
      if (w == 3) print change(k, "$set: {x: " r(99) ", spec_" r(3) ": " r(9) "}")
      if (w == 4) print both("DELETE FROM TABLE WHERE _id = " k "::bson_value")
      if (w == 5) { v = r(20); print "SELECT outlier_push($$storm$$, " k ", " v ");" ; print "UPDATE model SET doc = bson_update_immutable(doc, $${$push: {a: " v "}}$$) WHERE _id = " k "::bson_value;" }
      if (w == 6) { v = r(9); print "SELECT outlier_pull($$storm$$, " k ", " v ");" ; print "UPDATE model SET doc = bson_update_immutable(doc, $${$pull: {a: " v "}}$$) WHERE _id = " k "::bson_value;" }
      if (w == 7) { v = r(9); print "SELECT approximation_add($$storm$$, " k ", " v ");" ; print "UPDATE model SET doc = bson_update_immutable(doc, $${$inc: {views: " v "}}$$) WHERE _id = " k "::bson_value;" }
      if (w == 8) print both("UPDATE TABLE SET doc = bson_update_immutable(doc, $${$set: {x: " r(99) "}}$$) WHERE _id IN (" k "::bson_value, " l "::bson_value)")
      if (w == 9) print both("DELETE FROM TABLE WHERE _id IN (" k "::bson_value, " l "::bson_value)") both("INSERT INTO TABLE SELECT i, doc_of(i, " r(99) ") FROM generate_series(" k ", " l ", 2) i ON CONFLICT DO NOTHING")
      print r(8) == 1 ? "ROLLBACK;" : "COMMIT;"
    } }' 2>/dev/null
}

end=$((SECONDS + seconds)) jobs=
for i in $(seq $clients); do
  while [ $SECONDS -lt $end ]; do work "$((i + RANDOM))" | timeout $((end - SECONDS + 1)) psql -XqAt -v VERBOSITY=verbose; done >/dev/null 2>"$DP_WORK/errors.$i" &
  jobs="$jobs $!"
done

move="SELECT citus_move_shard_placement(s.shardid, s.nodename, s.nodeport, n.nodename, n.nodeport, 'MODE') FROM citus_shards s JOIN pg_dist_node n ON n.nodeport <> s.nodeport AND n.shouldhaveshards WHERE s.table_name = 'storm'::regclass ORDER BY random() LIMIT 1"
moved=0 refused=0 crashed=0 split= past=
while [ $SECONDS -lt $((end - 2)) ]; do
  sleep 1
  for mode in block_writes force_logical; do
    answer=$(ask "${move/MODE/$mode}")
    [ "$answer" = '' ] && moved=$((moved + 1)) || { refused=$((refused + 1)); echo "# $mode: $answer" | head -n 1 | cut -c 1-200; }
  done
  # what the plain table has while no session writes
  if [ -z "$past" ] && [ $moved -gt 0 ]; then
    past=$(ask "BEGIN; DO \$\$ BEGIN PERFORM pg_advisory_xact_lock(k) FROM generate_series(1, 60) k; END \$\$; INSERT INTO past SELECT clock_timestamp(), _id, doc -> 'x' FROM model; UPDATE past SET at = clock_timestamp(); COMMIT")
    [ -n "$past" ] || past=done
  fi
  if [ -z "$split" ] && [ $SECONDS -gt $((end - seconds * 2 / 3)) ]; then
    split=$(ask "SELECT citus_split_shard_by_split_points(s.shardid, ARRAY[((s.shardminvalue::bigint + s.shardmaxvalue::bigint) / 2)::text], ARRAY[n.a, n.b]::int[], 'block_writes') FROM pg_dist_shard s, (SELECT min(nodeid) AS a, max(nodeid) AS b FROM pg_dist_node WHERE shouldhaveshards) n WHERE s.logicalrelid = 'storm'::regclass ORDER BY s.shardid LIMIT 1")
    [ -n "$split" ] || split=done
  fi
  if [ $crashed = 0 ] && [ $SECONDS -gt $((end - seconds / 2)) ]; then
    NODE=1 PGOPTIONS='' "$cluster" crash && crashed=1
  fi
done
# shellcheck disable=SC2086
wait $jobs
ask 'SELECT recover_prepared_transactions()' >/dev/null
cat "$DP_WORK"/errors.* | grep -o 'ERROR:  .*' | sed 's/[0-9][0-9]*$//; s/[0-9a-f]\{6,\}/N/g' | cut -c 1-120 | sort | uniq -c | sort -rn | head -8 | sed 's/^/# /'
echo "# $moved moves, $refused refused, $(worker 1 "SELECT sum(xact_commit) FROM pg_stat_database WHERE datname = current_database()") transactions of a worker since its crash; $(ask 'SELECT count(*) FROM storm') documents"
is "$(cat "$DP_WORK"/errors.* | grep -E 'PANIC|ERROR:  XX[0-9]{3}: ' | grep -v 'connection\|valid entry for shard' | sort | uniq -c | head -5)" '' 'no internal error'
ok 'shards moved' test $moved -gt 0
is "$split" 'done' 'a shard was split'
is "$crashed" 1 'a worker crashed'
is "$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' 'all is consistent'
is "$(ask "SELECT coalesce(w._id, m._id), bson_project(w.doc, '{x: 1, a: 1, c: 1, body: 1, views: 1, _id: 0}'), bson_project(m.doc, '{x: 1, a: 1, c: 1, body: 1, views: 1, _id: 0}') FROM (SELECT * FROM whole) w FULL JOIN (SELECT * FROM model) m ON w._id = m._id
  WHERE bson_project(w.doc, '{x: 1, c: 1, body: 1, views: 1, a: 1, _id: 0}') IS DISTINCT FROM bson_project(m.doc, '{x: 1, c: 1, body: 1, views: 1, a: 1, _id: 0}') LIMIT 3")" '' 'the documents are those of the plain table'
is "$past $(ask "SELECT count(*) > 0 FROM past") $(ask "SELECT coalesce(p._id, v.key), p.x, v.doc -> 'x', v.revision, v.since FROM past p FULL JOIN versioning_as_of('storm', (SELECT min(at) FROM past), 'versions') v ON v.key = p._id WHERE v.doc -> 'x' IS DISTINCT FROM p.x LIMIT 3")" 'done t ' 'the versions of a time are what the plain table had'
is "$(ask "SELECT coalesce(s._id, v.key), s.doc -> 'revision', v.revision FROM (SELECT * FROM storm) s FULL JOIN versioning_as_of('storm', now(), 'versions') v ON v.key = s._id WHERE (v.doc -> 'x', v.revision::bson_value) IS DISTINCT FROM (s.doc -> 'x', coalesce(s.doc -> 'revision', 1::bson_value)) LIMIT 3")" '' 'and those of now the documents'

# A worker that is down: a declaration fails on all servers.
NODE=2 "$cluster" stop
ask "SELECT polymorphic_enable('storm', by => 'x', unknown => 'accept', name => 'late')" >"$DP_WORK/down"
ok 'a declaration with a worker down fails' grep -q ERROR "$DP_WORK/down"
# citus.sh made the server, which only has to start again
NODE=2 "$cluster" crash
is "$(for n in 0 1 2; do worker $n "SELECT count(*) FROM pg_trigger WHERE tgname ~ 'late'"; done | sort -u)" 0 'and leaves nothing on any server'
is "$(ask 'SELECT * FROM pattern_check() LIMIT 5')" '' 'the other patterns are consistent'
