#!/bin/bash
# Everything that can take long can be stopped: each of these calls, which would run for seconds, is given some milliseconds and has to
# end with 57014 soon after, by the processor time of its server, which other programs do not change. The session goes on, and
# what was being changed is true. (cancel_stress does it to many clients at random.)
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=error -c timezone=UTC' PGDATABASE=dp_cancel
rm -f "$DP_WORK"/*
limit=${CANCEL_LIMIT:-3000}	# milliseconds of processor time

psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_cancel WITH (FORCE)' -c 'CREATE DATABASE dp_cancel'
psql -XqAt -v ON_ERROR_STOP=1 >/dev/null <<'SQL' || echo 'not ok 0 - the tables were made'
CREATE EXTENSION docpatterns;
ALTER DATABASE dp_cancel SET docpatterns.max_document_size = '1000MB';
ALTER DATABASE dp_cancel SET max_parallel_workers_per_gather = 0;
ALTER DATABASE dp_cancel SET jit = off;
SET docpatterns.max_document_size = '1000MB';
-- documents that are large in one way
CREATE TABLE one (what text PRIMARY KEY, doc bson);
INSERT INTO one SELECT 'numbers', bson_build('a', bson_agg(i)) FROM generate_series(1, 1000000) i;
INSERT INTO one SELECT 'others', bson_build('a', bson_agg(-i)) FROM generate_series(1, 50000) i;
INSERT INTO one SELECT 'documents', bson_build('a', bson_agg(bson_build('k', i % 1000, 'n', (i::int8 * 7919) % 300007, 's', 'some text ' || i))) FROM generate_series(1, 100000) i;
INSERT INTO one SELECT 'fields', bson_object_agg('x_' || i, i) FROM generate_series(1, 100000) i;
INSERT INTO one SELECT 'string', bson_build('s', repeat('abcdefghij', 1000000));
INSERT INTO one SELECT 'strings', bson_build('a', bson_agg(repeat('a', 50) || i)) FROM generate_series(1, 100000) i;
CREATE FUNCTION one(w text) RETURNS bson STABLE LANGUAGE sql RETURN (SELECT doc FROM one WHERE what = w);
CREATE TABLE texts AS SELECT what, doc::text AS t, CASE WHEN what <> 'string' THEN doc::jsonb END AS j, doc::bytea AS b FROM one WHERE what IN ('numbers', 'documents');
-- collections
SELECT collection_create(c) FROM unnest('{rows,totals,chain,plain,nodes,edges}'::text[]) c;
INSERT INTO rows (doc) SELECT bson_build('_id', i, 'of', i % 5000, 'n', i, 'x_' || i % 5, i, 'kind', (ARRAY['a', 'b'])[i % 2 + 1], 'at', timestamptz '2024-01-01' + i * interval '1 minute', 'tags', bson_array(i, i + 1, i + 2, 'tag ' || i)) FROM generate_series(1, 40000) i;
INSERT INTO totals (doc) SELECT bson_build('_id', i, 'list', '[]'::bson_value) FROM generate_series(0, 4999) i;
INSERT INTO nodes (doc) SELECT bson_build('_id', i, 'up', CASE WHEN i > 1 THEN i / 2 END, 'next', bson_array((i * 7) % 20000, (i * 11) % 20000, i + 1)) FROM generate_series(1, 20000) i;
CREATE INDEX ON nodes ((doc -> 'next'));
INSERT INTO edges (doc) SELECT bson_build('_id', i, 'nodes', bson_array((i * 7) % 20000, (i * 11) % 20000)) FROM generate_series(1, 20000) i;
ANALYZE;
SQL

# NAME; SQL
calls() {
  cat <<'SQL'
reading text; SELECT bson_size(t::bson) FROM texts, generate_series(1, 20)
writing text; SELECT length(doc::text) FROM one, generate_series(1, 20) WHERE what = 'numbers'
writing it in lines; SELECT length(bson_pretty(doc)) FROM one, generate_series(1, 20) WHERE what = 'numbers'
from jsonb; SELECT bson_size(j::bson) FROM texts, generate_series(1, 20)
to jsonb; SELECT length((doc::jsonb)::text) FROM one, generate_series(1, 20) WHERE what = 'documents'
bytes that are checked; SELECT bson_size(b::bson) FROM texts, generate_series(1, 200)
comparing; SELECT bson_cmp(doc, one('numbers')) FROM one, generate_series(1, 200) WHERE what = 'numbers'
hashing; SELECT bson_hash(doc) FROM one, generate_series(1, 100) WHERE what = 'numbers'
containment; SELECT doc @> one('others') FROM one, generate_series(1, 50) WHERE what = 'numbers'
containment of documents; SELECT doc @> '{a: [{k: 1, n: -1}, {k: 2, n: -2}]}' FROM one, generate_series(1, 200) WHERE what = 'documents'
differences; SELECT count(*) FROM generate_series(1, 50), bson_diff(one('documents'), bson_set(one('documents'), 'a.99999.n', 5))
a packed difference; SELECT length(bson_diff_pack(one('numbers'), bson_set(one('numbers'), 'a.0', 5))) FROM generate_series(1, 50)
elements; SELECT count(*) FROM generate_series(1, 50), bson_elements(one('documents') -> 'a')
values; SELECT count(*) FROM generate_series(1, 50), bson_values(one('documents'), 'a.n')
unwinding; SELECT count(*) FROM generate_series(1, 20), bson_unwind(one('documents'), 'a')
keys; SELECT count(*) FROM generate_series(1, 100), bson_keys(one('fields'))
a record; SELECT count(*) FROM generate_series(1, 20), bson_to_recordset(one('documents') -> 'a') AS r (k int, n int, s text)
setting fields; SELECT bson_size(bson_set(one('fields'), 'x_' || i, 1)) FROM generate_series(1, 1000) i
hashes of elements; SELECT cardinality(docpatterns.bson_element_hashes(doc -> 'a')) FROM one, generate_series(1, 200) WHERE what = 'numbers'
a filter; SELECT doc @@ '{a: {$elemMatch: {k: 5, n: -1}}}' FROM one, generate_series(1, 200) WHERE what = 'documents'
a filter with many values; SELECT bson_match(doc, bson_build('a', bson_build('$all', one('others') -> 'a'))) FROM one WHERE what = 'numbers'
a regular expression; SELECT bson_match(doc, '{s: {$regex: "(.*)(.*)(.*)(.*)(.*)[^a-j]x"}}') FROM one WHERE what = 'string'
a regular expression with references back; SELECT bson_match(bson_build('s', repeat('ab', 3000) || 'x'), '{s: {$regex: "^(.*)(.*)(.*)(.*)x\\\\1\\\\2\\\\3c$"}}') FROM generate_series(1, 1000)
a regular expression over blanks; SELECT bson_match(bson_build('s', repeat(' ', 10000000) || 'x'), '{s: {$regex: "\\\\s+$"}}') FROM generate_series(1, 1000)
regular expressions over elements; SELECT bson_match(doc, '{a: {$regex: "^(a*)*b"}}') FROM one, generate_series(1, 100) WHERE what = 'strings'
an update; SELECT bson_size(bson_update(doc, '{$set: {"a.$[].n": 1}}'::text)) FROM one, generate_series(1, 50) WHERE what = 'documents'
an update of chosen elements; SELECT bson_size(bson_update(doc, '{$inc: {"a.$[e].n": 1}}'::text, array_filters => '[{"e.k": {$gt: 5}}]')) FROM one, generate_series(1, 50) WHERE what = 'documents'
pulling many; SELECT bson_size(bson_update(doc, bson_build('$pullAll', bson_build('a', one('others') -> 'a')))) FROM one WHERE what = 'numbers'
pulling; SELECT bson_size(bson_update(doc, '{$pull: {a: {n: {$gte: 5}}}}'::text)) FROM one, generate_series(1, 50) WHERE what = 'documents'
adding to a set; SELECT bson_size(bson_update(doc, bson_build('$addToSet', bson_build('a', bson_build('$each', one('others') -> 'a'))))) FROM one WHERE what = 'numbers'
pushing in order; SELECT bson_size(bson_update(doc, '{$push: {a: {$each: [], $sort: {n: 1, k: -1}}}}'::text)) FROM one, generate_series(1, 20) WHERE what = 'documents'
a projection; SELECT bson_size(bson_project(doc, '{"a.n": 1}')) FROM one, generate_series(1, 100) WHERE what = 'documents'
a sort key; SELECT bson_sort_key(doc, '{"a.n": 1, "b": 1}') FROM one, generate_series(1, 100) WHERE what = 'documents'
a schema; SELECT bson_validate(doc, '{properties: {a: {items: {properties: {s: {pattern: "^some"}, n: {minimum: 0}}}}}}') FROM one, generate_series(1, 50) WHERE what = 'documents'
a schema of unique elements; SELECT bson_validate(doc, '{properties: {a: {uniqueItems: true}}}') FROM one, generate_series(1, 50) WHERE what = 'documents'
$map; SELECT bson_eval(doc, '{$size: {$map: {input: "$a", in: {$add: ["$$this", 1]}}}}') FROM one, generate_series(1, 50) WHERE what = 'numbers'
$map in $map; SELECT bson_eval('{}', '{$size: {$map: {input: {$range: [0, 100000]}, in: {$size: {$map: {input: {$range: [0, 100000]}, in: 1}}}}}}')
$filter; SELECT bson_eval(doc, '{$size: {$filter: {input: "$a", cond: {$gt: ["$$this.n", 5]}}}}') FROM one, generate_series(1, 50) WHERE what = 'documents'
$reduce; SELECT bson_eval('{}', '{$reduce: {input: {$range: [0, 5000000]}, initialValue: 0, in: {$add: ["$$value", "$$this"]}}}')
$reduce of arrays; SELECT bson_eval('{}', '{$size: {$reduce: {input: {$range: [0, 100000]}, initialValue: [], in: {$concatArrays: ["$$value", ["$$this"]]}}}}')
$sortArray; SELECT bson_eval(doc, '{$size: {$sortArray: {input: "$a", sortBy: {n: -1, s: 1}}}}') FROM one, generate_series(1, 50) WHERE what = 'documents'
$setUnion; SELECT bson_eval(doc, '{$size: {$setUnion: ["$a", "$a.n"]}}') FROM one, generate_series(1, 50) WHERE what = 'documents'
$setIntersection; SELECT bson_eval(doc, '{$size: {$setIntersection: ["$a", "$a"]}}') FROM one, generate_series(1, 50) WHERE what = 'numbers'
$range; SELECT bson_eval('{}', '{$size: {$range: [0, 9000000]}}') FROM generate_series(1, 50)
$concat; SELECT bson_eval('{}', '{$strLenBytes: {$reduce: {input: {$range: [0, 100000]}, initialValue: "", in: {$concat: ["$$value", "some more text"]}}}}')
$split; SELECT bson_eval(doc, '{$size: {$split: ["$s", "j"]}}') FROM one, generate_series(1, 50) WHERE what = 'string'
$replaceAll; SELECT bson_eval(doc, '{$strLenBytes: {$replaceAll: {input: "$s", find: "j", replacement: "kk"}}}') FROM one, generate_series(1, 50) WHERE what = 'string'
$indexOfCP; SELECT bson_eval(doc, '{$indexOfCP: ["$s", "jjj"]}') FROM one, generate_series(1, 100) WHERE what = 'string'
$regexFindAll; SELECT bson_eval(doc, '{$size: {$regexFindAll: {input: "$s", regex: "[aeiou]"}}}') FROM one, generate_series(1, 50) WHERE what = 'string'
$objectToArray; SELECT bson_eval(doc, '{$size: {$objectToArray: "$$ROOT"}}') FROM one, generate_series(1, 100) WHERE what = 'fields'
$mergeObjects; SELECT bson_size(bson_eval(doc, '{$mergeObjects: ["$$ROOT", "$$ROOT", {z: 1}]}')) FROM one, generate_series(1, 50) WHERE what = 'fields'
aggregates: an array; SELECT bson_size(bson_agg(doc)) FROM rows, generate_series(1, 50)
aggregates: an object; SELECT bson_size(bson_object_agg('f' || i, i)) FROM generate_series(1, 5000000) i
aggregates: merged; SELECT bson_size(bson_merge_agg(bson_build('f' || i, i))) FROM generate_series(1, 5000000) i
aggregates: accumulators; SELECT bson_size(bson_accumulate(doc, '{s: {$sum: "$n"}, all: {$addToSet: "$n"}, mid: {$median: {input: "$n", method: "approximate"}}}')) FROM rows, generate_series(1, 50)
aggregates: first in order; SELECT bson_size(bson_accumulate(doc, '{p: {$push: "$n"}, t: {$topN: {n: 5, sortBy: {n: 1}, output: "$n"}}}', '{n: -1}')) FROM rows, generate_series(1, 50)
aggregates: distinct; SELECT bson_distinct_count(bson_distinct_agg(i)) FROM generate_series(1, 50000000) i
aggregates: measurements; SELECT bucket_count(bucket_agg(timestamptz '2024-01-01' + i * interval '1 second', i, i * 1.5)) FROM generate_series(1, 20000000) i
finding; SELECT count(*) FROM generate_series(1, 50), collection_find('rows', '{tags: {$regex: "x$"}}', sort => '{n: -1}')
counting; SELECT sum(collection_count('rows', '{n: {$gt: 5}, of: {$lt: 9000}}')) FROM generate_series(1, 100)
different values; SELECT count(*) FROM generate_series(1, 50), collection_distinct('rows', 'tags')
updating; SELECT collection_update('rows', '{}', '{$inc: {z: 1}}'::text, multi => true)
an index on everything; CREATE INDEX ON rows USING gin (doc bson_ops)
an index on a large document; CREATE INDEX ON one USING gin (doc bson_ops)
an index on a field; SELECT collection_create_index('rows', '{of: 1, n: -1, tags: 1}') FROM generate_series(1, 30) i
keys of an index; SELECT count(*) FROM generate_series(1, 20), bson_index_keys(one('documents'))
statistics; ANALYZE one, rows, totals, nodes, edges, one, rows
advice; SELECT count(*) FROM pattern_advise('rows', sample => 100000)
inferring variants; SELECT length(polymorphic_infer('rows', 'kind')::text) FROM generate_series(1, 20)
inferring from large documents; SELECT length(polymorphic_infer('one', 'kind')::text) FROM generate_series(1, 20)
a graph; SELECT count(*) FROM generate_series(1, 20), graph_lookup('nodes', 1, 'next', '_id')
a shortest path; SELECT count(*) FROM generate_series(1, 20), graph_shortest_path('nodes', 1, 'nowhere'::text, 'next', '_id')
attributes of one document; SELECT bson_size(attribute_pack(doc, 'attributes', prefix => 'x_')) FROM one, generate_series(1, 50) WHERE what = 'fields'
attributes, back; SELECT bson_size(attribute_unpack(p, 'attributes', prefix => 'x_')) FROM (SELECT attribute_pack(doc, 'attributes', prefix => 'x_') AS p FROM one WHERE what = 'fields' OFFSET 0) q, generate_series(1, 50)
embedding; SELECT relationship_embed('totals', 'rows', 'of', 'rows') FROM generate_series(1, 20)
advice on a relationship; SELECT relationship_advise('totals', 'rows', 'of') FROM generate_series(1, 20)
cost of a reference; SELECT reference_cost('rows', 'of', 'totals') FROM generate_series(1, 20)
merging collections; SELECT polymorphic_merge('merged', merge_on => 'n', sources => '{rows,totals}')
one collection of several; SELECT single_collection_from('together', '{rows,totals,nodes}')
SQL
}

# Prints "NAME|SQLSTATE|MILLISECONDS" for each line; the milliseconds are those that the server computed. A call is one message with the error
# that ends it, DPEND, so nothing of it is left and no other statement is cut short in its place. A call that a fast machine has done
# in time is given less. CALL may commit, so it is a message by itself.
cut_short() {
  local name sql after more
  { cat <<'SQL'
\o /dev/null
CREATE FUNCTION pg_temp.cpu() RETURNS int LANGUAGE sql AS $$
  SELECT (s[12]::int + s[13]::int) * 10 FROM (SELECT string_to_array(regexp_replace(pg_read_file('/proc/self/stat'), '^.*\) ', ''), ' ')) q (s) $$;
SQL
    sed "s/^\([^;]*\); \(.*\)$/\1\t\2/" | while IFS=$'\t' read -r name sql; do
      more=
      for after in ${CANCEL_AFTER:-30 8 2}; do
        [ -z "$more" ] || echo '\if :again'
        echo 'SELECT pg_temp.cpu() AS before \gset'
        case $sql in
          CALL*) printf '%s\n' "SET statement_timeout = $after;" "$sql;" '\set state :SQLSTATE' 'RESET statement_timeout;' 'RESET statement_timeout;' ;;
          *) printf '%s\n' "SET LOCAL statement_timeout = $after\\; $sql\\; DO \$\$ BEGIN RAISE 'done' USING ERRCODE = 'DPEND'; END \$\$;" '\set state :SQLSTATE' ;;
        esac
        printf '%s\n' 'SELECT pg_temp.cpu() - :before AS ms, '":'state' IN ('00000', 'DPEND') AS again \\gset"
        [ -z "$more" ] || echo '\endif'
        more=1
      done
      echo "\\echo $name|:state|:ms"
    done; } | psql -XqAt 2>>"$DP_WORK/cancel.err"
}
# What was done before it could be cut short has to have been quick.
judge() {
  local name state ms got
  while IFS='|' read -r name state ms; do
    case $state in
      57014) got="cut short $([ "$ms" -le "$limit" ] && echo soon || echo "after $ms ms")"; echo "$name" >>"$DP_WORK/cut" ;;
      00000|DPEND) got=$([ "$ms" -le $((limit / 10)) ] && echo "cut short soon" || echo "ran for $ms ms, not cut short") ;;
      *) got="error $state" ;;
    esac
    echo "# $name: $state after $ms ms"
    is "$got" 'cut short soon' "$name"
  done
}
calls | cut_short >"$DP_WORK/calls"

# Tables with patterns. What is built before that is little; what is declared on tables that are full is built in the calls.
psql -XqAt -v ON_ERROR_STOP=1 >/dev/null <<'SQL' || echo 'not ok 0 - patterns were declared'
SET docpatterns.maintain = on;
CREATE FUNCTION grow(doc bson) RETURNS bson IMMUTABLE LANGUAGE sql RETURN bson_set(doc, 'a.b', 1);
SELECT collection_create(c) FROM unnest('{out,pre,vers,schem,poly,walled,follow,chains,kinds,refs,leaders,left_one,right_one,page,pay,cold,tagged}'::text[]) c;
INSERT INTO out (doc) SELECT bson_build('_id', i, 'list', (SELECT bson_agg(j) FROM generate_series(1, 40) j)) FROM generate_series(1, 4000) i;
INSERT INTO follow (doc) SELECT bson_build('_id', i, 'who', i % 5000, 'whom', i % 20) FROM generate_series(1, 20000) i;
INSERT INTO walled (doc) SELECT bson_build('_id', i, 'by', i % 20, 'at', i) FROM generate_series(1, 5000) i;
INSERT INTO pay (doc) SELECT bson_build('_id', i, 'body', '{"a": 1, "t": "' || repeat('x', 200) || '"}') FROM generate_series(1, 10000) i;
INSERT INTO cold (doc) SELECT bson_build('_id', i, 'much', repeat('x', 100), 'a', 1) FROM generate_series(1, 20000) i;
INSERT INTO refs (doc) SELECT bson_build('_id', i, 'to', i % 5000) FROM generate_series(1, 20000) i;
INSERT INTO vers (doc) SELECT bson_build('_id', i, 'n', i) FROM generate_series(1, 20000) i;
INSERT INTO schem (doc) SELECT bson_build('_id', i, 'n', i) FROM generate_series(1, 20000) i;
INSERT INTO left_one (doc) SELECT bson_build('_id', i, 'rights', bson_array(i % 3000 + 1)) FROM generate_series(1, 10000) i;
INSERT INTO right_one (doc) SELECT bson_build('_id', i) FROM generate_series(1, 3000) i;
INSERT INTO page (doc) SELECT bson_build('_id', i, 'docType', 'p', 'relatedTo', bson_array(i)) FROM generate_series(1, 15000) i;
INSERT INTO leaders (doc) SELECT bson_build('_id', i, 'points', i) FROM generate_series(1, 20000) i;
SELECT outlier_enable('out', 'list', 10, chunk => 5, name => 'list'), tree_enable('nodes', parent => 'up', ancestors => 'above', children => 'below', path => 'way', depth => 'level', name => 'tree', on_delete => 'cascade'),
  computed_enable('totals', 'rows', 'of', '{n: {$count: {}}, best: {$max: "$n"}}', name => 'n'), subset_enable('totals', 'first', 'rows', 'of', '{n: -1}', 3, count_field => 'rows_n', name => 'first'),
  rollup_enable('rows', name => 'by_day', time_field => 'at', levels => '{day,month}', group_by => '{kind}', fields => '{n: {$count: {}}}'), query_table_create('by_of', 'rows', '{of}', '{n: -1}'), query_table_create('top', 'rows', '{kind}', '{n: -1}', limit_per_partition => 50),
  reference_enable('refs', 'to', 'totals', live => '{list}', missing => 'allow', name => 'to'), versioning_enable('vers', name => 'vers'), schema_versioning_enable('schem', current => 2, write => 'accept', name => 'schem'),
  subset_fields_enable('cold', cold => '{much}', name => 'much'), payload_enable('pay', 'body', '{a: "jsonpath:$.a"}', name => 'body'), polymorphic_enable('rows', by => 'kind', unknown => 'accept', name => 'kinds'),
  preallocated_enable('pre', 'cells', preallocated_pool(3), store => 'slots', name => 'cells'), relationship_enable('left_one', 'rights', 'right_one', 'lefts', name => 'pair', missing => 'allow'), single_collection_enable('page', views => false, name => 'page');
SELECT schema_versioning_step('schem', 1, 2, up => 'grow(bson)'::regprocedure, down_update => '{$unset: {a: 1}}');
SELECT fanout_enable('walled', walls => 'walls', author => 'by', followers => 'follow', follower => 'who', followee => 'whom', name => 'walls');
SELECT kv_create('kv');
SELECT kv_leaderboard('kv', 'points', 'leaders', 'points', name => 'points');
SELECT count(kv_zadd('kv', 'a', i, i)), count(kv_zadd('kv', 'b', -i, i)), count(kv_sadd('kv', 's', i)), count(kv_hset('kv', 'h' || i, 'f', i)) FROM generate_series(1, 10000) i;
SELECT bucket_create('measured', columns => 'id int, ts timestamptz, v float8', group_by => '{id}', time_field => 'ts', max_count => 50);
INSERT INTO measured SELECT i % 10, timestamptz '2024-01-01' + i * interval '1 second', i FROM generate_series(1, 30000) i;
CREATE TABLE raw AS SELECT i % 10 AS id, timestamptz '2024-01-01' + i * interval '1 second' AS ts, i::float8 AS v FROM generate_series(1, 30000) i;
SELECT single_table_create('app');
SELECT single_table_entity('app', 'x', 'X', '{n}');
INSERT INTO app (doc) SELECT bson_build('entity', 'x', 'n', 'n' || i) FROM generate_series(1, 5000) i;
ANALYZE;
SQL
more_calls() {
  psql -XqAt -c "SELECT format('%1\$s on %2\$s, checked; SELECT count(*) FROM generate_series(1, 1000), pattern_check(%2\$L, %3\$L)', pattern, rel, name) FROM pattern_list() WHERE name <> 'page' AND rel::text NOT IN ('pre', 'measured', 'schem') ORDER BY rel::text, pattern, name"
  psql -XqAt -c "SELECT format('%1\$s on %2\$s, built; CALL pattern_build(%2\$L, %3\$L)', pattern, rel, name) FROM pattern_list() WHERE pattern IN ('tree', 'computed', 'subset', 'rollup', 'query_table', 'reference', 'payload', 'subset_fields', 'relationship', 'fanout', 'outlier') ORDER BY rel::text, pattern, name"
  psql -XqAt -c "SELECT format('%1\$s on %2\$s, repaired; SELECT pattern_repair(%2\$L, %3\$L)', pattern, rel, name) FROM pattern_list() WHERE pattern IN ('tree', 'computed', 'subset', 'rollup', 'reference', 'subset_fields', 'relationship', 'fanout', 'outlier', 'versioning') ORDER BY rel::text, pattern, name"
  cat <<'SQL'
a migration; CALL schema_versioning_migrate('schem', 1000000)
a test of steps; SELECT count(*) FROM generate_series(1, 50), schema_versioning_test('schem', 20000)
all revisions; SELECT count(*) FROM generate_series(1, 50), versioning_as_of('vers', now())
a write that is recorded; UPDATE vers SET doc = bson_set(doc, 'm', 1)
a write that splits; UPDATE out SET doc = bson_set(doc, 'list', bson_array(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15))
a write that is copied; UPDATE totals SET doc = bson_set(doc, 'list', 1)
a write that is counted; UPDATE rows SET doc = bson_set(doc, 'of', 7)
a deletion that is counted; DELETE FROM rows
rows that come; INSERT INTO rows (doc) SELECT bson_build('_id', i, 'of', 1, 'n', i, 'at', now()) FROM generate_series(100000, 300000) i
posts; INSERT INTO walled (doc) SELECT bson_build('_id', i, 'by', i % 20, 'at', i) FROM generate_series(10000, 20000) i
another size; SELECT bucket_resize('measured', max_count => 100 + i) FROM generate_series(1, 100) i
advice on spans; SELECT count(*) FROM generate_series(1, 20), bucket_advise('measured')
reading measurements; SELECT sum(v) FROM measured, generate_series(1, 50)
measurements by group; SELECT id, avg(v), count(*) FROM measured, generate_series(1, 50) GROUP BY id
changing measurements; UPDATE measured SET v = v + 1
deleting measurements; DELETE FROM measured WHERE v > 5 AND pg_sleep(0.001) IS NOT NULL
from a table; CALL bucket_from_table('measured', 'raw', keep_source => true)
to a table; CALL bucket_to_table('measured', 'unpacked')
sizes of measurements; SELECT count(*) FROM generate_series(1, 100000), bucket_stats('measured')
dropping what is old; SELECT bucket_drop_before('measured', '2024-01-01 15:00') FROM generate_series(1, 10000)
a series; SELECT count(*) FROM generate_series(1, 50), bucket_series((SELECT bucket_agg(ts, v) FROM raw), '1 second')
holes; SELECT count(*) FROM (SELECT bucket_interpolate(ts, v) OVER (ORDER BY ts) FROM raw, generate_series(1, 50)) q
moving in a tree; SELECT tree_move('nodes', i, 3) FROM generate_series(8, 20000) i
copying in a tree; SELECT tree_copy('nodes', 2, NULL, name => 'tree') FROM generate_series(1, 1)
descendants; SELECT count(*) FROM generate_series(1, 50), tree_descendants('nodes', 1)
a tree in one document; SELECT bson_size(tree_nest('nodes', 1)) FROM generate_series(1, 50)
a tree as text; SELECT count(*) FROM generate_series(1, 50), tree_render('nodes')
a tree from one document; SELECT tree_unnest('nodes', bson_build('_id', 'r', 'children', (SELECT bson_agg(bson_build('_id', -i)) FROM generate_series(1, 100000) i)))
statistics of a tree; SELECT count(*) FROM generate_series(1, 50), tree_stats('nodes')
deleting a tree; SELECT tree_delete('nodes', 2)
a union of sets; SELECT kv_zunionstore('kv', 'c', '{a,b}'), kv_zunionstore('kv', 'd', '{a,b}'), kv_zinterstore('kv', 'e', '{a,b}') FROM generate_series(1, 50)
keys of a space; SELECT count((SELECT count(*) FROM kv_keys('kv', '*' || i))) FROM generate_series(1, 1000) i
members; SELECT count(*) FROM generate_series(1, 200), kv_smembers('kv', 's')
ranks; SELECT count(*) FROM generate_series(1, 200), kv_zrange('kv', 'a', 0, -1)
many increments; SELECT count(kv_zincrby('kv', 'a', 1, i % 10000)) FROM generate_series(1, 1000000) i
deleting keys; SELECT kv_del('kv', VARIADIC ARRAY(SELECT 'h' || i FROM generate_series(1, 10000) i))
dangling references; SELECT count(*) FROM generate_series(1, 50), reference_dangling('refs')
a query of one table; SELECT count(*) FROM generate_series(1, 500), single_table_query('app', 'X')
advice on arrays; SELECT count((SELECT i FROM outlier_advise('out', left('list', 4 + i * 0)))) FROM generate_series(1, 1000) i
finding what is split; SELECT count((SELECT count(*) FROM outlier_find('out', -i))) FROM generate_series(1, 100000) i
whole documents; SELECT count(doc) FROM out_whole, generate_series(1, 50)
taking documents apart; SELECT single_collection_split('page')
SQL
}
more_calls >"$DP_WORK/more"
cut_short <"$DP_WORK/more" >"$DP_WORK/more_calls"

plan $(($(calls | wc -l) + $(wc -l <"$DP_WORK/more") + 3))
cat "$DP_WORK/calls" "$DP_WORK/more_calls" | judge
ok 'nine of ten calls were cut short' [ $(($(wc -l <"$DP_WORK/cut") * 10)) -ge $(($(cat "$DP_WORK/calls" "$DP_WORK/more_calls" | wc -l) * 9)) ]
# the tables emptied, everything has to be in order
is "$(psql -XqAt <<'SQL' 2>&1
SELECT format('TRUNCATE %s', string_agg(DISTINCT rel::text, ', ')) FROM pattern_list() d JOIN pg_class c ON c.oid = rel AND c.relkind = 'r' WHERE pattern <> 'kv' \gexec
DELETE FROM measured;
SELECT * FROM pattern_check();
SQL
)" '' 'what was cut short has left nothing behind'
# PostgreSQL forgets why it cancels if the time is over between two statements of a message
is "$(grep -v 'canceling statement due to \(statement timeout\|user request\)\|ERROR:  done$' "$DP_WORK/cancel.err" | grep 'ERROR\|FATAL\|PANIC\|was lost' | head -5)" '' 'no other error was met'
psql -Xq -d postgres -c 'DROP DATABASE dp_cancel WITH (FORCE)'
