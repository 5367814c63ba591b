#!/bin/bash
# Every public function that takes documents or specifications, with inputs of 100,000 names, elements or stages: it ends, or is
# cancelled soon, and it needs memory in proportion to what goes in and comes out. The catalogue says which functions there are: each is
# called with what its arguments' types have in store, most of them also with specifications of their own, below.
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=error -c timezone=UTC -c max_parallel_workers_per_gather=0 -c jit=off' PGDATABASE=dp_large
rm -f "$DP_WORK"/*
early=${LARGE_EARLY:-25}	# milliseconds after which a call is cancelled
late=${LARGE_LATE:-500}	# and once more, when its memory is what counts
soon=300	# milliseconds that it may go on, on the processor; more where that is slow
times=20	# memory, as a multiple of what goes in and comes out
room=8192	# kB of it that are free
# what is refused for its size may be built up to the limit, of what is as large; what is cancelled has not come out
limits=262144
case ${SERVER_ENV:-} in *LD_PRELOAD*) times=1000000 soon=3000 ;; esac  # a sanitizer, which is slow and has another malloc()

psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_large WITH (FORCE)' -c 'CREATE DATABASE dp_large'
psql -XqAt -v ON_ERROR_STOP=1 >/dev/null <<'SQL' || echo 'not ok 0 - the tables were made'
CREATE EXTENSION docpatterns;
-- a row for each input, in the column of its type; {name} in a call is its value
CREATE TABLE large (what text PRIMARY KEY, bson bson, bson_value bson_value, "bson[]" bson[], "bson_value[]" bson_value[], "text[]" text[], text text, cstring text,
  jsonb jsonb, bytea bytea, treepath treepath, "treepath[]" treepath[], "objectid[]" objectid[], "bigint[]" bigint[], "numeric[]" numeric[], bucket bucket);
DO $$ DECLARE c text; BEGIN FOR c IN SELECT attname FROM pg_attribute WHERE attrelid = 'large'::regclass AND attnum > 1 AND attstorage <> 'p' LOOP EXECUTE format('ALTER TABLE large ALTER %I SET STORAGE EXTERNAL', c); END LOOP; END $$;
INSERT INTO large (what, bson) SELECT 'fields', bson_object_agg('n' || i, i) FROM generate_series(1, 100000) i;
INSERT INTO large (what, bson) SELECT 'reversed', bson_object_agg('n' || i, i) FROM (SELECT * FROM generate_series(100000, 1, -1) i) r;
INSERT INTO large (what, bson) SELECT 'others', bson_object_agg('m' || i, i) FROM generate_series(1, 100000) i;
INSERT INTO large (what, bson) SELECT 'numbers', bson_build('a', bson_agg(i)) FROM generate_series(1, 100000) i;
INSERT INTO large (what, bson) SELECT 'backward', bson_build('a', bson_agg(i)) FROM (SELECT * FROM generate_series(100000, 1, -1) i) r;
INSERT INTO large (what, bson) SELECT 'documents', bson_build('a', bson_agg(bson_build('k', i))) FROM generate_series(1, 100000) i;
INSERT INTO large (what, bson) SELECT 'two', bson_build('a', bson_array(a.bson, b.bson)) FROM large a, large b WHERE a.what = 'fields' AND b.what = 'reversed';
INSERT INTO large (what, bson) SELECT 'deep', bson_build('d', format('%s%s%s', repeat('{"d":', 90), bson, repeat('}', 90))::bson) FROM large WHERE what = 'fields';
INSERT INTO large (what, bson) SELECT 'string', bson_build('s', repeat('abcdefghij', 100000));
INSERT INTO large (what, bson) SELECT 'same', ('{' || string_agg('a:1', ',') || '}')::bson FROM generate_series(1, 100000);
UPDATE large SET bson_value = bson::bson_value, jsonb = bson::jsonb, bytea = bson::bytea, text = bson::text, cstring = bson::text;
UPDATE large SET bson_value = bson -> 'a' WHERE what IN ('numbers', 'backward', 'documents', 'two');
UPDATE large SET "bson_value[]" = ARRAY(SELECT i::bson_value FROM generate_series(1, 100000) i), "bson[]" = ARRAY(SELECT bson_build('n' || i, i) FROM generate_series(1, 100000) i),
  "text[]" = ARRAY(SELECT 'n' || i FROM generate_series(100000, 1, -1) i), "objectid[]" = ARRAY(SELECT lpad(to_hex(i), 24, '0')::objectid FROM generate_series(1, 100000) i),
  "bigint[]" = ARRAY(SELECT generate_series(1, 100000)), "numeric[]" = ARRAY(SELECT generate_series(1, 100000)),
  treepath = treepath(ARRAY(SELECT i FROM generate_series(1::int8, 900) i)), "treepath[]" = ARRAY(SELECT treepath(ARRAY[i]) FROM generate_series(1::int8, 100000) i),
  bucket = (SELECT bucket_agg(timestamptz '2024-01-01' + i * interval '1 second', i, i * 1.5) FROM generate_series(1, 100000) i) WHERE what = 'numbers';
SELECT collection_create('plain');
INSERT INTO plain (doc) SELECT bson_build('_id', what) || bson FROM large WHERE bson IS NOT NULL;
CREATE TABLE stored (type text, what text, size int8, n int8, PRIMARY KEY (type, what));
DO $$ DECLARE t text; BEGIN
  FOR t IN SELECT attname FROM pg_attribute WHERE attrelid = 'large'::regclass AND attnum > 1 LOOP
    EXECUTE format('INSERT INTO stored SELECT %L, what, pg_column_size(%1$I), row_number() OVER (ORDER BY array_position(''{fields,reversed,two,numbers,backward,documents,others,deep,string,same}'', what)) - 1 FROM large WHERE %1$I IS NOT NULL', t);
  END LOOP; END $$;
-- measurements that follow each other take hardly a byte: what they are unpacked counts
UPDATE stored SET size = 100000 * 3 * 8 WHERE type = 'bucket';
VACUUM ANALYZE;
SQL

# The functions of the catalogue, called by their arguments' types: "SIGNATURE; SQL"
functions() {
  psql -XqAt <<'SQL'
WITH f AS (
  SELECT p.oid, p.oid::regprocedure::text AS signature, p.proname, p.proargtypes::oid[] AS types, p.pronargs, p.prokind, p.provariadic,
    p.prorettype = 'record'::regtype AND p.proargmodes IS NULL AS any_columns
  FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid JOIN pg_proc p ON p.oid = d.objid
  WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'docpatterns'
    AND p.proname NOT LIKE '\_%' AND 'internal'::regtype <> ALL (p.proargtypes::oid[])
    AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype, 'internal'::regtype)
    AND EXISTS (SELECT FROM stored WHERE type = ANY (p.proargtypes::regtype[]::text[]) AND type <> 'text'))
SELECT format('%s %s; %s', f.signature, v, CASE WHEN f.prokind = 'p' THEN 'CALL ' || call WHEN f.any_columns THEN format('SELECT x FROM %s AS x (n1 int)', call) ELSE 'SELECT ' || call || ' AS x' END)
FROM f CROSS JOIN generate_series(0, 5) v CROSS JOIN LATERAL (
  SELECT format('%s(%s)', f.oid::regproc, string_agg(value, ', ' ORDER BY i)) AS call
  FROM (SELECT i, CASE
      WHEN EXISTS (SELECT FROM stored WHERE type = t) AND t <> 'text' THEN
        (CASE WHEN f.provariadic <> 0 AND i = f.pronargs AND t LIKE '%[]' THEN 'VARIADIC ' ELSE '' END) ||
        (SELECT format('{%s %s}', type, what) FROM stored s WHERE type = t AND n = (v + nth - 1) % (SELECT count(*) FROM stored WHERE type = t))
      WHEN t IN ('"any"', 'anycompatible') THEN format('{bson_value %s}', (ARRAY['fields','reversed','two','numbers','backward','documents'])[v + 1])
      WHEN t IN ('anyelement', 'anycompatiblenonarray') THEN '''a''::text' WHEN t = 'record' THEN 'ROW({bson fields})'
      WHEN t = 'text' THEN CASE WHEN v % 2 = 0 THEN '''n50000''' ELSE '''a''' END
      WHEN t IN ('integer', 'bigint', 'smallint', 'numeric', 'real', 'double precision') THEN '3::' || t
      WHEN t = 'boolean' THEN 'true' WHEN t = 'interval' THEN '''1 hour''::interval' WHEN t ~ '^(time|date)' THEN format('%L::%s', '2024-01-01', t)
      WHEN t = 'regclass' THEN '''plain''::regclass /* {bson others} */' ELSE 'NULL::' || t END AS value
    FROM (SELECT i, t::regtype::text AS t, row_number() OVER (PARTITION BY t ORDER BY i) AS nth FROM unnest(f.types) WITH ORDINALITY AS u (t, i)) a) b) c
WHERE v = 0 OR (v = 3 AND f.proname !~ '_(eq|ne|lt|gt|le|ge|cmp)$' AND (SELECT count(*) FROM unnest(f.types::regtype[]::text[]) t WHERE t LIKE 'bson%') > 1)
ORDER BY f.signature COLLATE "C", v;
SQL
}

# Lines "NAME; SQL; TYPE SQL..." with the specifications of the third part, {TYPE SPEC1} in the call, stored: "NAME; SQL".
specifications() {
  perl -ne '
    chomp;
    my ($name, $sql, @specs) = split /; /;
    for my $k (1 .. @specs) {
      my ($type, $spec) = $specs[$k - 1] =~ /^(\S+) (.*)$/;
      $sql =~ s/\{(\S+) SPEC$k\}/{$1 spec$.of$k}/g;
      $spec =~ s/\{([a-z_\[\]]+) (\w+)\}/(SELECT "$1" FROM large WHERE what = \x27$2\x27)/g;
      print STDERR "INSERT INTO large (what, \"$type\") SELECT \x27spec$.of$k\x27, $spec;\n",
        "INSERT INTO stored SELECT \x27$type\x27, what, pg_column_size(\"$type\"), 99 FROM large WHERE what = \x27spec$.of$k\x27;\n";
    }
    print "$name; $sql\n"' 2>"$DP_WORK/specifications"
  psql -Xq -v ON_ERROR_STOP=1 -f "$DP_WORK/specifications" >&2 || echo 'not ok 0 - the specifications were made' >&2
}

# Runs lines "NAME; SQL" and prints "NAME|SQLSTATE|MILLISECONDS ON THE PROCESSOR|KB|KB THAT WENT IN AND CAME OUT".
# The memory is address space, asked for by this session only: pages of shared buffers, of huge pages and of files that are touched or
# not do not count. A session goes on until it has asked for more than is free.
run() {  # run MILLISECONDS
  perl -e '
    my ($after, $room, $stored) = @ARGV;
    my %size;
    open my $f, "<", $stored; while (<$f>) { $size{$1} = $2 if /^(.*) (\d+)$/ }
    my ($used, $peak) = map { qq{(SELECT substring(pg_read_file(\x27/proc/self/status\x27) FROM \x27$_:\\s*(\\d+)\x27)::int8)} } qw(VmSize VmPeak);
    my $cpu = q{(SELECT split_part(pg_read_file(\x27/proc/self/schedstat\x27), \x27 \x27, 1)::int8 / 1000000)};
    s/\\x27/chr 39/ge for $used, $peak, $cpu;
    my $warm = "SELECT bson_size(\x27{a: 1}\x27) AS warm, $used AS first \\gset\n";
    print "\\set more false\n$warm";
    while (<STDIN>) {
      chomp;
      my ($name, $sql) = /^([^;]*); (.*)$/ or next;
      my %seen; my $in = 0;
      $sql =~ s/\{([a-z_\[\]]+) (\w+)(?:\*(\d+))?\}/exists $size{"$1 $2"} ? do { $in += $size{"$1 $2"} * ($3 || 1) unless $seen{"$1 $2"}++; qq[(SELECT "$1" FROM large WHERE what = \x27$2\x27)] } : "{$1 $2}"/ge;
      print "\\if :more\n\\c -\n$warm\\endif\n\\set bytes 0\nSELECT $used AS before, $cpu AS was \\gset\n";
      print $sql =~ /^CALL/ ? "SET statement_timeout = $after;\n$sql;\n\\set state :SQLSTATE\nRESET statement_timeout;\n" : "BEGIN;\nSET LOCAL statement_timeout = $after;\nSELECT coalesce(sum(pg_column_size(x)), 0) AS bytes FROM ($sql OFFSET 0) q \\gset\n\\set state :SQLSTATE\nROLLBACK;\n";
      print "ROLLBACK;\nRESET statement_timeout;\nSELECT $cpu - :was AS ms, $peak - :before AS peak, $peak - :first > $room AS more, ($in + :bytes) / 1024 AS size \\gset\n";
      print "\\echo $name|:state|:ms|:peak|:size\n";
    }' "$1" $room "$DP_WORK/stored" | psql -XqAt 2>>"$DP_WORK/errors"
}

# The same in two sessions at a time.
run_halves() {  # run_halves MILLISECONDS FILE
  sed -n '1~2p' "$2" | run "$1" >"$2.odd" &
  sed -n '2~2p' "$2" | run "$1" >"$2.even"
  wait $!
  cat "$2.odd" "$2.even"
}

# Calls with specifications of their own: "NAME; SQL; TYPE SPECIFICATION..." {TYPE WHAT*10} is an input that goes in ten times; one in a comment is in the
# table that the call reads or writes.
more_calls() {
  cat <<'SQL'
bson_validate uniqueItems; SELECT bson_validate({bson two}, '{properties:{a:{uniqueItems:true}}}') AS x
bson_validate properties; SELECT bson_validate({bson fields}, {bson SPEC1}) AS x; bson bson_build('properties', bson_object_agg('n' || i, '{bsonType: "int"}'::bson)) FROM generate_series(1, 100000) i
bson_validate long names; SELECT bson_validate({bson fields}, {bson SPEC1}) AS x; bson bson_build('properties', bson_object_agg('aaaaaaaa' || i || 'bbbbbbbb', '{}'::bson)) FROM generate_series(1, 100000) i
bson_validate required; SELECT bson_validate({bson fields}, {bson SPEC1}) AS x; bson bson_build('required', bson_agg('n' || i)) FROM generate_series(1, 100000) i
bson_validate enum; SELECT bson_validate({bson fields}, {bson SPEC1}) AS x; bson bson_build('enum', bson_array({bson reversed}, 1))
bson_validate enum of many; SELECT bson_validate({bson numbers}, {bson SPEC1}) AS x; bson bson_build('properties', bson_build('a', bson_build('items', bson_build('enum', {bson_value backward}))))
bson_validate dependencies; SELECT bson_validate({bson fields}, {bson SPEC1}) AS x; bson bson_build('dependencies', bson_object_agg('n' || i, bson_array('n' || (i + 1)))) FROM generate_series(1, 99999) i
bson_validate patternProperties; SELECT bson_validate({bson fields}, {bson SPEC1}) AS x; bson bson_build('patternProperties', bson_object_agg('^x' || i, '{}'::bson)) FROM generate_series(1, 2000) i
bson_validate allOf; SELECT bson_validate({bson numbers}, {bson SPEC1}) AS x; bson bson_build('properties', bson_build('a', bson_build('items', bson_build('allOf', bson_agg(bson_build('maximum', 100000 + i)))))) FROM generate_series(1, 100000) i
bson_schema_errors; SELECT bson_schema_errors({bson fields}, bson_build('additionalProperties', false)) AS x
bson_schema_errors required; SELECT bson_schema_errors({bson others}, {bson SPEC1}) AS x; bson bson_build('required', bson_agg('n' || i)) FROM generate_series(1, 100000) i
bson_eval object; SELECT bson_eval({bson fields}, {bson_value SPEC1}) AS x; bson_value bson_object_agg('n' || i, '$n' || i)::bson_value FROM generate_series(1, 3000) i
bson_eval literals; SELECT bson_eval({bson fields}, {bson_value SPEC1}) AS x; bson_value bson_object_agg('n' || i, bson_array(i, '$x'))::bson_value FROM generate_series(1, 100000) i
bson_eval $mergeObjects; SELECT bson_eval('{}', {bson_value SPEC1}) AS x; bson_value bson_build('$mergeObjects', bson_agg(bson_build('n' || i, i)))::bson_value FROM generate_series(1, 100000) i
bson_eval $mergeObjects of documents; SELECT bson_eval({bson fields}, {bson_value SPEC1}) AS x; bson_value bson_build('$mergeObjects', bson_agg('$$ROOT'::text))::bson_value FROM generate_series(1, 100000) i
bson_eval $concat; SELECT bson_eval({bson string}, {bson_value SPEC1}) AS x; bson_value bson_build('$concat', bson_agg('$s'::text))::bson_value FROM generate_series(1, 100000) i
bson_eval $concatArrays; SELECT bson_eval({bson numbers}, {bson_value SPEC1}) AS x; bson_value bson_build('$concatArrays', bson_agg('$a'::text))::bson_value FROM generate_series(1, 100000) i
bson_eval $setUnion; SELECT bson_eval({bson numbers}, '{$setUnion: ["$a", "$a", [-1]]}') AS x
bson_eval $setDifference; SELECT bson_eval({bson two}, '{$setDifference: ["$a", ["$a"]]}') AS x
bson_eval $setUnion of many; SELECT bson_eval({bson numbers}, {bson_value SPEC1}) AS x; bson_value bson_build('$setUnion', bson_agg('$a'::text))::bson_value FROM generate_series(1, 100000) i
bson_eval $replaceAll; SELECT bson_eval({bson string}, '{$replaceAll: {input: "$s", find: "", replacement: "$s"}}') AS x
bson_eval $map; SELECT bson_eval({bson numbers}, '{$map: {input: "$a", in: "$$ROOT"}}') AS x
bson_eval $reduce; SELECT bson_eval({bson numbers}, '{$reduce: {input: "$a", initialValue: [], in: {$concatArrays: ["$$value", "$a"]}}}') AS x
bson_eval $reduce of objects; SELECT bson_eval({bson numbers}, '{$reduce: {input: "$a", initialValue: {}, in: {$mergeObjects: ["$$value", {$arrayToObject: [[{k: {$toString: "$$this"}, v: 1}]]}]}}}') AS x
bson_eval $zip; SELECT bson_eval({bson numbers}, '{$zip: {inputs: ["$a", "$a", "$a"]}}') AS x
bson_eval $zip of many; SELECT bson_eval({bson numbers}, {bson_value SPEC1}) AS x; bson_value bson_build('$zip', bson_build('inputs', bson_agg('$a'::text)))::bson_value FROM generate_series(1, 100000) i
bson_eval $sortArray; SELECT bson_eval({bson documents}, '{$sortArray: {input: "$a", sortBy: {k: -1}}}') AS x
bson_eval $arrayToObject; SELECT bson_eval({bson fields}, '{$arrayToObject: {$objectToArray: "$$ROOT"}}') AS x
bson_eval $let; SELECT bson_eval({bson fields}, {bson_value SPEC1}) AS x; bson_value bson_build('$let', bson_build('vars', bson_object_agg('n' || i, i), 'in', '$$n5'::text))::bson_value FROM generate_series(1, 100000) i
bson_eval $let, used; SELECT bson_eval({bson fields}, {bson_value SPEC1}) AS x; bson_value bson_build('$let', bson_build('vars', bson_object_agg('n' || i, i), 'in', bson_agg('$$n1'::text)))::bson_value FROM generate_series(1, 100000) i
bson_eval $switch; SELECT bson_eval({bson numbers}, {bson_value SPEC1}) AS x; bson_value bson_build('$switch', bson_build('branches', bson_agg(bson_build('case', '$z'::text, 'then', i)), 'default', 0))::bson_value FROM generate_series(1, 100000) i
bson_eval $and; SELECT bson_eval({bson fields}, {bson_value SPEC1}) AS x; bson_value bson_build('$and', bson_agg('$n99999'::text))::bson_value FROM generate_series(1, 100000) i
bson_eval $add; SELECT bson_eval({bson fields}, {bson_value SPEC1}) AS x; bson_value bson_build('$add', bson_agg('$n' || i))::bson_value FROM generate_series(1, 100000) i
bson_eval $in; SELECT bson_eval({bson numbers}, '{$size: {$filter: {input: "$a", cond: {$in: [-1, "$a"]}}}}') AS x
bson_eval $trim; SELECT bson_eval({bson string}, '{$trim: {input: "$s", chars: {$concat: ["xyz", "$s"]}}}') AS x
bson_eval $split; SELECT bson_eval({bson string}, '{$split: ["$s", "a"]}') AS x
bson_eval $regexFindAll; SELECT bson_eval({bson string}, '{$regexFindAll: {input: "$s", regex: "[a-j]{10}"}}') AS x
bson_eval $getField; SELECT bson_eval({bson fields}, {bson_value SPEC1}) AS x; bson_value bson_agg(bson_build('$getField', 'n' || i)) FROM generate_series(1, 100000) i
bson_eval $setField; SELECT bson_eval({bson numbers}, '{$reduce: {input: "$a", initialValue: {}, in: {$setField: {field: {$toString: "$$this"}, input: "$$value", value: 1}}}}') AS x
bson_eval $range; SELECT bson_eval({bson fields}, {bson_value SPEC1}) AS x; bson_value bson_agg('{$range: [0, 9000000]}'::bson) FROM generate_series(1, 100000) i
bson_eval $function of paths; SELECT bson_eval({bson documents}, {bson_value SPEC1}) AS x; bson_value bson_agg('$a.k'::text) FROM generate_series(1, 100000) i
bson_eval $maxN; SELECT bson_eval({bson numbers}, '{$maxN: {input: "$a", n: 50000}}') AS x
bson_match $all; SELECT bson_match({bson numbers}, {bson SPEC1}) AS x; bson bson_build('a', bson_build('$all', {bson_value backward}))
bson_match $in; SELECT bson_match({bson numbers}, {bson SPEC1}) AS x; bson bson_build('a', bson_build('$in', {bson_value backward}))
bson_match $nin; SELECT bson_match({bson numbers}, {bson SPEC1}) AS x; bson bson_build('a', bson_build('$nin', bson_agg(-i))) FROM generate_series(1, 100000) i
bson_match $in of regexes; SELECT bson_match({bson string}, {bson SPEC1}) AS x; bson bson_build('s', bson_build('$in', bson_agg(('{"$regularExpression": {"pattern": "x' || i || '", "options": ""}}')::bson_value))) FROM generate_series(1, 10000) i
bson_match $or; SELECT bson_match({bson fields}, {bson SPEC1}) AS x; bson bson_build('$or', bson_agg(bson_build('n' || i, -1))) FROM generate_series(1, 100000) i
bson_match $and; SELECT bson_match({bson fields}, {bson SPEC1}) AS x; bson bson_build('$and', bson_agg(bson_build('n' || i, i))) FROM generate_series(1, 100000) i
bson_match fields; SELECT bson_match({bson fields}, {bson reversed}) AS x
bson_match $elemMatch; SELECT bson_match({bson documents}, {bson SPEC1}) AS x; bson bson_build('a', bson_build('$elemMatch', bson_build('$or', bson_agg(bson_build('k', -i))))) FROM generate_series(1, 100000) i
bson_match $elemMatch of numbers; SELECT bson_match({bson numbers}, {bson SPEC1}) AS x; bson bson_build('a', bson_build('$elemMatch', bson_build('$nin', bson_agg(i)))) FROM generate_series(1, 100000) i
bson_match $not; SELECT bson_match({bson documents}, {bson SPEC1}) AS x; bson bson_build('$nor', bson_agg(bson_build('a.k', bson_build('$not', bson_build('$gt', i))))) FROM generate_series(1, 100000) i
bson_match $expr; SELECT bson_match({bson fields}, {bson SPEC1}) AS x; bson bson_build('$expr', bson_build('$or', bson_agg(bson_build('$eq', bson_array('$n' || i, -1))))) FROM generate_series(1, 100000) i
bson_match $jsonSchema; SELECT bson_match({bson fields}, {bson SPEC1}) AS x; bson bson_build('$jsonSchema', bson_build('required', bson_agg('n' || i))) FROM generate_series(1, 100000) i
bson_match $bitsAllSet; SELECT bson_match({bson numbers}, {bson SPEC1}) AS x; bson bson_build('a', bson_build('$bitsAllSet', bson_agg(i))) FROM generate_series(1, 100000) i
bson_match $type; SELECT bson_match({bson numbers}, {bson SPEC1}) AS x; bson bson_build('a', bson_build('$type', bson_agg(1))) FROM generate_series(1, 100000) i
bson_match $eq document; SELECT bson_match({bson two}, {bson SPEC1}) AS x; bson bson_build('a', {bson reversed})
bson_update $set; SELECT bson_update({bson others}, {bson SPEC1}) AS x; bson bson_build('$set', {bson fields})
bson_update $set backward; SELECT bson_update({bson others}, {bson SPEC1}) AS x; bson bson_build('$set', {bson reversed})
bson_update $set in order; SELECT bson_update({bson fields}, {bson SPEC1}) AS x; bson bson_build('$set', {bson reversed})
bson_update $inc; SELECT bson_update({bson fields}, {bson SPEC1}) AS x; bson bson_build('$inc', {bson reversed})
bson_update $unset; SELECT bson_update({bson fields}, {bson SPEC1}) AS x; bson bson_build('$unset', {bson reversed})
bson_update $unset below; SELECT bson_update({bson SPEC2}, {bson SPEC1}) AS x; bson bson_build('$unset', bson_object_agg('d.n' || i, 1)) FROM generate_series(1, 100000) i; bson bson_build('d', {bson fields})
bson_update $rename; SELECT bson_update({bson fields}, {bson SPEC1}) AS x; bson bson_build('$rename', bson_object_agg('n' || i, 'r' || i)) FROM generate_series(1, 100000) i
bson_update $rename below; SELECT bson_update({bson SPEC2}, {bson SPEC1}) AS x; bson bson_build('$rename', bson_object_agg('d.n' || i, 'd.r' || i)) FROM generate_series(1, 100000) i; bson bson_build('d', {bson reversed})
bson_update $push; SELECT bson_update({bson numbers}, {bson SPEC1}) AS x; bson bson_build('$push', bson_build('a', bson_build('$each', {bson_value backward}, '$sort', 1, '$slice', 1000)))
bson_update $push documents; SELECT bson_update({bson documents}, {bson SPEC1}) AS x; bson bson_build('$push', bson_build('a', bson_build('$each', bson_array(), '$sort', '{k: -1}'::bson)))
bson_update $push into many; SELECT bson_update({bson two}, {bson SPEC1}) AS x; bson bson_build('$set', bson_build('a.$[].z', {bson two}))
bson_update $push large to all; SELECT bson_update({bson documents}, {bson SPEC1}) AS x; bson bson_build('$set', bson_build('a.$[].z', {bson string}))
bson_update $addToSet; SELECT bson_update({bson numbers}, {bson SPEC1}) AS x; bson bson_build('$addToSet', bson_build('a', bson_build('$each', {bson_value backward})))
bson_update $addToSet documents; SELECT bson_update({bson documents}, {bson SPEC1}) AS x; bson bson_build('$addToSet', bson_build('a', bson_build('$each', {bson_value documents})))
bson_update $addToSet fields; SELECT bson_update({bson two}, {bson SPEC1}) AS x; bson bson_build('$addToSet', bson_build('a', {bson reversed}))
bson_update $pull; SELECT bson_update({bson two}, {bson SPEC1}) AS x; bson bson_build('$pull', bson_build('a', {bson reversed}))
bson_update $pull $in; SELECT bson_update({bson numbers}, {bson SPEC1}) AS x; bson bson_build('$pull', bson_build('a', bson_build('$in', {bson_value backward})))
bson_update $pullAll; SELECT bson_update({bson numbers}, {bson SPEC1}) AS x; bson bson_build('$pullAll', bson_build('a', {bson_value backward}))
bson_update $pullAll documents; SELECT bson_update({bson documents}, {bson SPEC1}) AS x; bson bson_build('$pullAll', bson_build('a', {bson_value documents}))
bson_update $push $position; SELECT bson_update({bson numbers}, {bson SPEC1}) AS x; bson bson_build('$push', bson_build('a', bson_build('$each', {bson_value backward}, '$position', 0)))
bson_update positions; SELECT bson_update({bson numbers}, {bson SPEC1}) AS x; bson bson_build('$set', bson_object_agg('a.' || i, 'x')) FROM generate_series(1, 100000) i
bson_update array filters; SELECT bson_update({bson documents}, {bson SPEC2}, array_filters => {bson_value SPEC1}) AS x; bson_value bson_agg(bson_build('i' || i || '.k', i)) FROM generate_series(1, 1000) i; bson bson_build('$set', bson_object_agg('a.$[i' || i || '].z' || i, 1)) FROM generate_series(1, 1000) i
bson_update array filters, many; SELECT bson_update({bson numbers}, {bson SPEC2}, array_filters => {bson_value SPEC1}) AS x; bson_value bson_agg(bson_build('i' || i, -i)) FROM generate_series(1, 30000) i; bson bson_build('$set', bson_object_agg('a.$[i' || i || ']', 1)) FROM generate_series(1, 30000) i
bson_update $mul at positional; SELECT bson_update({bson numbers}, '{$mul: {"a.$": 2}}'::text, filter => '{a: 99999}') AS x
bson_update upsert; SELECT bson_update(NULL, '{$set: {z: 1}}'::text, filter => {bson SPEC1}, upsert => true) AS x; bson bson_object_agg('n' || i, 'some value ' || i) FROM generate_series(1, 100000) i
bson_update stages; SELECT bson_update({bson fields}, {bson_value SPEC1}) AS x; bson_value bson_agg(bson_build('$set', bson_build('z', i))) FROM generate_series(1, 100000) i
bson_update stages, none; SELECT bson_update({bson fields}, {bson_value SPEC1}) AS x; bson_value bson_agg(bson_build('$unset', 'z')) FROM generate_series(1, 100000) i
bson_update stages of roots; SELECT bson_update({bson two}, {bson_value SPEC1}) AS x; bson_value bson_agg('{$replaceWith: "$$ROOT"}'::bson) FROM generate_series(1, 100000) i
bson_update stages of projections; SELECT bson_update({bson fields}, {bson_value SPEC1}) AS x; bson_value bson_agg(bson_build('$project', bson_build('z', 0))) FROM generate_series(1, 100000) i
bson_update stage $set; SELECT bson_update({bson others}, {bson_value SPEC1}) AS x; bson_value bson_array(bson_build('$set', {bson fields}))
bson_update stage $unset; SELECT bson_update({bson fields}, {bson_value SPEC1}) AS x; bson_value bson_array(bson_build('$unset', bson_agg('n' || i))) FROM generate_series(1, 100000) i
bson_update stage $set large; SELECT bson_update({bson string}, {bson_value SPEC1}) AS x; bson_value bson_array(bson_build('$set', bson_object_agg('n' || i, '$s'::text))) FROM generate_series(1, 100000) i
bson_update stage below; SELECT bson_update({bson documents}, {bson_value SPEC1}) AS x; bson_value bson_array(bson_build('$set', bson_object_agg('a.n' || i, 1))) FROM generate_series(1, 1000) i
bson_update replacement; SELECT bson_update({bson fields}, {bson reversed}) AS x
bson_project paths; SELECT bson_project({bson reversed}, {bson fields}) AS x
bson_project without; SELECT bson_project({bson fields}, {bson SPEC1}) AS x; bson bson_object_agg('n' || i, 0) FROM generate_series(1, 100000) i
bson_project below; SELECT bson_project({bson documents}, {bson SPEC1}) AS x; bson bson_object_agg('a.n' || i, 1) FROM generate_series(1, 100000) i
bson_project computed; SELECT bson_project({bson string}, {bson SPEC1}) AS x; bson bson_object_agg('n' || i, '$s'::text) FROM generate_series(1, 100000) i
bson_project computed below; SELECT bson_project({bson fields}, {bson SPEC1}) AS x; bson bson_object_agg('n' || i, bson_build('z', bson_build('$literal', 1))) FROM generate_series(1, 100000) i
bson_project $elemMatch; SELECT bson_project({bson fields}, {bson SPEC1}) AS x; bson bson_object_agg('n' || i, '{$elemMatch: {k: 1}}'::bson) FROM generate_series(1, 30000) i
bson_project $slice; SELECT bson_project({bson numbers}, '{a: {$slice: [10, 90000]}}') AS x
bson_project positional; SELECT bson_project({bson numbers}, '{"a.$": 1}', {bson SPEC1}) AS x; bson bson_build('a', bson_build('$in', {bson_value backward}))
bson_sort_key; SELECT bson_sort_key({bson reversed}, {bson SPEC1}) AS x; bson bson_object_agg('n' || i, 1) FROM generate_series(1, 100000) i
bson_accumulate; SELECT bson_accumulate({bson reversed}, {bson SPEC1}) AS x; bson bson_object_agg('n' || i, bson_build('$sum', '$n' || i)) FROM generate_series(1, 100000) i
bson_accumulate of one; SELECT bson_accumulate({bson fields}, {bson SPEC1}) AS x; bson bson_object_agg('n' || i, bson_build('$avg', '$n1'::text)) FROM generate_series(1, 100000) i
bson_accumulate lists; SELECT bson_accumulate({bson fields}, {bson SPEC1}) AS x; bson bson_object_agg('n' || i, bson_build('$max', '$n1'::text)) FROM generate_series(1, 100000) i
bson_accumulate medians; SELECT bson_accumulate({bson fields}, {bson SPEC1}) AS x; bson bson_object_agg('n' || i, bson_build('$median', bson_build('input', '$n1'::text, 'method', 'approximate'))) FROM generate_series(1, 30000) i
bson_accumulate orders; SELECT bson_accumulate({bson fields}, {bson SPEC1}) AS x; bson bson_object_agg('n' || i, bson_build('$top', bson_build('output', '$n1'::text, 'sortBy', bson_build('n' || i, 1)))) FROM generate_series(1, 30000) i
bson_accumulate $push; SELECT bson_accumulate(d::bson, '{all: {$push: "$k"}, set: {$addToSet: "$k"}}') AS x FROM bson_elements({bson_value documents}) d
bson_accumulate $addToSet; SELECT bson_accumulate(d::bson, '{set: {$addToSet: "$k"}}') AS x FROM bson_elements({bson_value documents}) d
bson_accumulate_set; SELECT bson_accumulate_set({bson others}, {bson SPEC1}, ARRAY[{bson fields}]) AS x; bson bson_object_agg('n' || i, bson_build('$sum', '$n' || i)) FROM generate_series(1, 100000) i
bson_accumulate_change; SELECT bson_accumulate_change({bson others}, '{z: {$sum: "$n1"}}', {bson[] numbers}, {bson[] numbers}) AS x
bson_in text; SELECT {text fields}::bson AS x
bson_build; SELECT bson_build(VARIADIC {text[] numbers} || '{x}'::text[] || '{y}'::text[]) AS x
bson_array; SELECT bson_array(VARIADIC {bson_value[] numbers}) AS x
bson_object_agg; SELECT bson_object_agg('n' || i % 50000, i) AS x FROM generate_series(1, 100000) i
bson_object_agg growing; SELECT bson_object_agg('n', repeat('x', i)) AS x FROM generate_series(1, 100000) i
bson_merge_agg; SELECT bson_merge_agg(bson_build('n' || i, i)) AS x FROM generate_series(1, 100000) i
bson_agg; SELECT bson_agg(i) AS x FROM generate_series(1, 100000) i
bson_set deep; SELECT bson_set({bson deep}, repeat('d.', 90) || 'd.n50000', {bson_value fields}) AS x
bson_unset paths; SELECT bson_unset({bson deep}, VARIADIC {text[] SPEC1}) AS x; text[] array_agg(repeat('d.', 91) || 'n' || i) FROM generate_series(1, 20000) i
bson_unset names; SELECT bson_unset({bson fields}, VARIADIC {text[] numbers}) AS x
bson_unset duplicates; SELECT bson_unset({bson same}, 'a') AS x
bson_value - paths; SELECT {bson_value same} - 'a' AS x
bson_contains duplicates; SELECT {bson fields} @> {bson same} AS x
bson_contains same; SELECT {bson same} @> {bson same} AS x
bson_contains documents; SELECT {bson documents} @> {bson documents} AS x
bson_contains backward; SELECT {bson numbers} @> {bson backward} AS x
bson_diff; SELECT bson_diff({bson fields}, {bson reversed}) AS x
bson_diff_pack arrays; SELECT bson_diff_pack({bson numbers}, {bson backward}) AS x
bson_diff_pack documents; SELECT bson_diff_pack({bson documents}, {bson backward}) AS x
bson_populate_record; SELECT bson_populate_record(NULL::pg_class, {bson fields}) AS x
bson_to_recordset; SELECT r::text AS x FROM bson_to_recordset({bson_value documents}) AS r (k int, n int)
bson_unwind; SELECT bson_unwind({bson numbers}, 'a') AS x
bson_unwind with all; SELECT bson_size(bson_unwind(bson_build('a', {bson_value numbers}, 's', {bson string}), 'a')) AS x
bson_values; SELECT bson_values({bson documents}, 'a.k') AS x
bson_index_keys; SELECT bson_index_keys({bson fields}) AS x
bson_index_keys paths; SELECT bson_index_keys({bson fields}, array_to_string({text[] numbers}, ',')) AS x
bson_index_keys pairs; SELECT bson_index_keys({bson documents}, pairs => 'a(k,z)') AS x
bson_distinct_agg; SELECT bson_distinct_agg(i) AS x FROM generate_series(1, 100000) i
bson_distinct_add; SELECT bson_distinct_add(bson_distinct_agg(i), {bson_value fields}) AS x FROM generate_series(1, 100000) i
attribute_pack; SELECT attribute_pack({bson fields}, 'attributes', prefix => 'n') AS x
attribute_unpack; SELECT attribute_unpack({bson SPEC1}, 'attributes', prefix => 'n') AS x; bson attribute_pack({bson fields}, 'attributes', prefix => 'n')
attribute_pack paths; SELECT attribute_pack({bson fields}, 'attributes', paths => {text[] numbers}) AS x
bucket_agg documents; SELECT bucket_agg(timestamptz '2024-01-01' + i * interval '1 s', bson_build('n' || i, i)) AS x FROM generate_series(1, 100) i
bucket_agg wide; SELECT bucket_agg(timestamptz '2024-01-01' + i * interval '1 s', {bson fields}) AS x FROM generate_series(1, 2) i
bucket_page_agg wide; SELECT bucket_page_agg({bson fields}) AS x FROM generate_series(1, 2) i
bucket_page_agg arrays; SELECT bucket_page_agg({bson documents}) AS x FROM generate_series(1, 2) i
bucket_from_bson; SELECT bucket_from_bson({bson fields}, 'n1') AS x
bucket text; SELECT {bucket numbers}::text AS x
bucket text, back; SELECT {bucket numbers}::text::bucket AS x
bucket_to_bson; SELECT bucket_to_bson({bucket numbers}) AS x
bucket_unpack; SELECT bucket_unpack({bucket numbers}) AS x
bucket_merge; SELECT bucket_merge(b) AS x FROM (SELECT {bucket numbers*10} AS b FROM generate_series(1, 10)) q
treepath; SELECT treepath({bigint[] numbers}) AS x
treepath_contains_all; SELECT docpatterns.treepath_contains_all({treepath numbers}, {bigint[] numbers}) AS x
treepath_from_text; SELECT treepath_from_text(repeat('abc/', 900) || 'x', '/') AS x
treepath_prefixes; SELECT treepath_prefixes({treepath numbers}) AS x
tree_lca; SELECT tree_lca({bson_value numbers}, {bson_value numbers}) AS x
tree_lca backward; SELECT tree_lca({bson_value numbers}, {bson_value backward}) AS x
tree_distance; SELECT tree_distance({bson_value numbers}, {bson_value backward}) AS x
tree_is_below; SELECT tree_is_below({bson numbers}, 'a', 100001) AS x
reference_differs; SELECT docpatterns.reference_differs({bson fields}, {bson reversed}, {text[] numbers}) AS x
reference_array_hashes; SELECT docpatterns.reference_array_hashes({bson documents}, 'a', 'k') AS x
collection_find; SELECT collection_find('plain', {bson reversed}) AS x /* {bson others} */
collection_find of fields; SELECT collection_find('plain', '{_id: "reversed"}', fields => {bson fields}) AS x
collection_update; SELECT collection_update('plain', '{_id: "others"}', {bson SPEC1}) AS x /* {bson others*3} */; bson bson_build('$set', {bson reversed})
collection_insert; SELECT collection_insert('plain', VARIADIC {bson[] numbers}) AS x
collection_delete; SELECT collection_delete('plain', {bson reversed}, true) AS x /* {bson others} */
collection_distinct; SELECT collection_distinct('plain', 'a', {bson fields}) AS x /* {bson others} */
collection_create_index; SELECT collection_create_index('plain', {bson fields}) AS x
preallocated_cells; SELECT preallocated_cells({bson_value two}) AS x
preallocated_ranges; SELECT preallocated_ranges({bson numbers}, 'a') AS x
row_to_bson; SELECT row_to_bson(l) AS x FROM large l WHERE what = 'numbers'
to_bson array; SELECT to_bson({text[] numbers}) AS x
operators; SELECT {bson fields} || {bson reversed} AS x
operators -; SELECT {bson fields} - {text[] numbers} AS x
operators ?&; SELECT {bson fields} ?& {text[] numbers} AS x
bson_gin; SELECT 1 AS x FROM (SELECT 1) q WHERE (SELECT count(*) FROM plain WHERE doc @@ {bson reversed}) >= 0
jsonb_to_bson; SELECT {jsonb two}::bson AS x
bson_to_jsonb; SELECT {bson two}::jsonb AS x
bson_documents; SELECT bson_documents({bytea two} || {bytea fields}) AS x
SQL
}

# Reads what run() prints; prints "NAME|SQLSTATE|" and what is wrong with the call: it went on, or needed too much memory.
findings() {  # findings MILLISECONDS
  while IFS='|' read -r name state ms peak size; do
    allowed=$((room + times * size)) said=
    case $state in 54000|57014) allowed=$((allowed + limits)) ;; esac
    [ "$state" != 57014 ] || [ "$ms" -le $(($1 + soon)) ] || said=": went on for $ms ms"
    [ "$peak" -le "$allowed" ] || said="$said: needed $peak kB for $size kB"
    echo "$name|$state|$said"
  done
}

# "not ok" for a call of which that is true twice.
judge() {  # judge MILLISECONDS FILE
  findings "$1" <"$2" >"$2.findings"
  awk -F'[|;]' 'NR == FNR { if ($3) again[$1]; next } $1 in again' "$2.findings" "$DP_WORK/calls" | run "$1" >"$2.again"
  findings "$1" <"$2.again" | awk -F'|' 'FILENAME == "-" { said[$1] = $3; next } { print $1 "|" $2 "|" ($1 in said ? said[$1] : $3) }' - "$2.findings" >"$2.judged"
  while IFS='|' read -r name state said; do
    is "$name$said" "$name" "$name ($state)"
  done <"$2.judged"
}

{ functions; more_calls | specifications; } >"$DP_WORK/calls"
psql -XqAt -F ' ' -c 'SELECT type, what, size FROM stored' >"$DP_WORK/stored"
reading=$(echo 'reading; SELECT sum(bson_size((repeat(chr(32), i) || {text fields})::bson)) AS x FROM generate_series(1, 20) i' | run 0 | cut -d'|' -f3)
[ "$reading" -le $soon ] || soon=$reading
run_halves "$early" "$DP_WORK/calls" >"$DP_WORK/early"
awk -F'|' '$2 == "57014" {print $1}' "$DP_WORK/early" >"$DP_WORK/long"
awk -F'; ' 'NR == FNR { long[$0]; next } $1 in long' "$DP_WORK/long" "$DP_WORK/calls" >"$DP_WORK/late_calls"
run_halves "$late" "$DP_WORK/late_calls" >"$DP_WORK/late"
is "$(wc -l <"$DP_WORK/early")" "$(wc -l <"$DP_WORK/calls")" 'all were called'
judge "$early" "$DP_WORK/early"
judge "$late" "$DP_WORK/late"
is "$(awk -F'|' '$2 ~ /^(XX|58|08|57P)/' "$DP_WORK/early" "$DP_WORK/late")" '' 'no call failed inside'
is "$(awk -F'|' 'NR == FNR { own[$1]; next } $1 in own && $2 == "42601"' <(more_calls | sed 's/;.*//') "$DP_WORK/early")" '' 'the calls above are well written'
# What names, paths and elements are looked up in grows no faster than they do: four times as many take less than eight times as long.
grown=$(psql -XqAt <<'SQL'
CREATE FUNCTION used(call text, n int) RETURNS int8 LANGUAGE plpgsql AS $f$
DECLARE
  least int8;
  was int8;
BEGIN
  EXECUTE 'CREATE TEMP TABLE input AS SELECT bson_object_agg(''n'' || i, i) AS fields, bson_object_agg(''n'' || $1 - i, i) AS reversed, array_agg(''n'' || i) AS names,
    bson_agg(i) AS numbers, bson_agg($1 - i) AS backward, bson_agg(bson_build(''k'', i)) AS documents, bson_agg(bson_build(''n'' || i, -1)) AS conditions,
    bson_agg(''$n'' || i) AS paths, bson_object_agg(''n'' || i, bson_build(''$sum'', ''$n'' || i)) AS sums, bson_object_agg(''v'' || i, i) AS vars, bson_agg(''$$v1''::text) AS used
    FROM generate_series(0, $1 - 1) i' USING n;
  FOR i IN 1 .. 3 LOOP
    was := split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::int8 / 1000;
    EXECUTE format('SELECT %s FROM input', call);
    least := least(least, split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::int8 / 1000 - was);
  END LOOP;
  DROP TABLE input;
  RETURN least;
END $f$;
SELECT concat(count(*), ' calls', string_agg(format(E'\n%s took %s and %s us', call, few, many), '') FILTER (WHERE many > 8 * few + 30000)) FROM unnest('{
  "bson_match(fields, bson_build(''$or'', conditions))", "bson_match(fields, reversed)", "bson_match(fields, bson_build(''$expr'', bson_build(''$lt'', bson_array(bson_build(''$add'', paths), 0))))",
  "bson_match(bson_build(''a'', numbers), bson_build(''a'', bson_build(''$all'', backward)))", "bson_eval(fields, bson_build(''$add'', paths)::bson_value)",
  "bson_eval(fields, bson_build(''$let'', bson_build(''vars'', vars, ''in'', used))::bson_value)", "(SELECT bson_accumulate(reversed, sums))",
  "bson_build(''a'', documents) @> bson_build(''a'', documents)", "docpatterns.reference_differs(fields, fields, names)",
  "bson_validate(bson_build(''a'', numbers), bson_build(''properties'', bson_build(''a'', bson_build(''items'', bson_build(''enum'', backward)))))"}'::text[]) call,
  LATERAL (SELECT used(call, 4000) AS few, used(call, 16000) AS many) q;
SQL
)
is "$grown" '10 calls' 'look-ups do not grow with the square of what is looked up'
psql -Xq -d postgres -c 'DROP DATABASE dp_large WITH (FORCE)'
echo "1..$tap_count"
