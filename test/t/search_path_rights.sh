# Nothing that lies in the caller's search path, or in the temporary schema, is taken for what the extension means.
#
# In the schema evil everything of pg_catalog and of the extension is there a second time and raises EVIL1 (test/env/shadows.sql). With it
# first in the search path, patterns are declared, written to, checked, repaired, built and disabled, and every public function is called:
# by the owner of the tables, by a superuser, and by somebody who may write to the tables only.
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning' PGDATABASE=dp_shadows
cd "$DP_TOP" || exit 1
plan 15

drop() { psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_shadows WITH (FORCE)' -c 'DROP ROLE IF EXISTS dp_evil, dp_owner, dp_writer' 2>&1; }
trap drop EXIT
drop
psql -Xq -d postgres -c 'CREATE DATABASE dp_shadows' -c 'CREATE ROLE dp_evil' -c 'CREATE ROLE dp_owner LOGIN' -c 'CREATE ROLE dp_writer LOGIN'
psql -Xq -c 'CREATE EXTENSION docpatterns' -c 'GRANT TEMPORARY ON DATABASE dp_shadows TO PUBLIC'
psql -Xq -f test/env/shadows.sql >"$DP_WORK/shadows.out" 2>&1
is "$(cat "$DP_WORK/shadows.out")" '' 'everything is there a second time'

# Runs statements with evil things first. What was trapped is in trapped, what failed otherwise in failed.
shadowed() {  # shadowed ROLE NAME, statements on standard input
  { echo 'CALL evil.come_closer();'; cat; } | PGOPTIONS='-c client_min_messages=warning -c statement_timeout=20s' psql -XqAt -U "$1" -v VERBOSITY=verbose >"$DP_WORK/$2.out" 2>&1
  grep -c 'ERROR:' "$DP_WORK/$2.out" >"$DP_WORK/$2.errors"
  grep -n -A3 'EVIL1' "$DP_WORK/$2.out" | grep -v LOCATION | cut -c 1-220 >"$DP_WORK/$2.trapped"
}
trapped() { head -40 "$DP_WORK/$1.trapped"; psql -XqAt -d dp_shadows -c "SELECT last_value || ' hits' FROM evil.hits WHERE is_called" -c "SELECT setval('evil.hits', 1, false)" | grep hits; }

# The trap works ------------------------------------------------------------------------------------------------------------

shadowed dp_owner control <<'SQL'
SELECT 1 = 1;
SELECT '1'::text;
SELECT public.bson_size('{}') FROM pg_class;
SELECT format('%s', 1), lower('X');
SELECT count(*);
SELECT bson_size('{}');
SELECT '{}'::public.bson -> 'a';
SQL
is "$(grep -c 'EVIL1' "$DP_WORK/control.out")" 7 'what is not qualified is trapped'
trapped control >/dev/null

# Declarations --------------------------------------------------------------------------------------------------------------

declarations() {  # declarations SCHEMA
  cat <<'SQL' | sed "s/@@/$1./g"
SELECT public.collection_create('@@canary');
SELECT public.collection_create('@@rows');
SELECT public.collection_create('@@totals');
SELECT public.collection_create('@@sums');
SELECT public.collection_create('@@counts');
SELECT public.collection_create('@@tree');
SELECT public.collection_create('@@kinds');
SELECT public.collection_create('@@slots');
SELECT public.collection_create('@@catalog');
SELECT public.collection_create('@@left');
SELECT public.collection_create('@@right');
SELECT public.collection_create('@@people');
SELECT public.collection_create('@@walls_of');
SELECT public.collection_create('@@feed');
CREATE TABLE @@versions (id int PRIMARY KEY, doc public.bson);
CREATE TABLE @@bare (id int PRIMARY KEY, doc public.bson) PARTITION BY RANGE (id);
CREATE TABLE @@bare_1 PARTITION OF @@bare FOR VALUES FROM (0) TO (10);
SELECT public.outlier_enable('@@canary', 'tags', 2, count_field => 'n_tags');
SELECT public.outlier_enable('@@bare', 'tags', 2, mode => 'deferred');
SELECT public.tree_enable('@@tree', parent => 'in', ancestors => 'above', children => 'holds', path => 'way', depth => 'level', name => 'tree');
SELECT public.computed_enable('@@totals', '@@rows', 'in', '{n: {$count: {}}, best: {$max: "$a"}, all: {$push: "$a", cap: 3}}', name => 'totals');
SELECT public.computed_enable('@@totals', '@@rows', 'in', '{later: {$sum: "$a"}}', mode => 'deferred', name => 'later');
SELECT public.subset_enable('@@totals', 'shown', '@@rows', 'in', '{a: -1}', 2, name => 'shown');
SELECT public.subset_fields_enable('@@rows', '{cold}', name => 'cold');
SELECT public.reference_enable('@@rows', 'ref', '@@totals', live => '{title}', missing => 'allow', name => 'ref');
SELECT public.rollup_enable('@@rows', '@@days', '{n: {$count: {}}}', time_field => 'at', levels => '{day,month}', group_by => '{in}');
SELECT public.approximation_enable('@@counts', 'a', step => 10, name => 'a');
SELECT public.approximation_enable('@@counts', 'b', slots => 2, name => 'b');
SELECT public.query_table_create('@@query', '@@rows', '{in}', '{a: -1}', fields => '{cold: 1}');
SELECT public.query_table_create('@@top', '@@rows', '{in}', '{at: 1}', limit_per_partition => 2);
SELECT public.single_table_create('@@single', 1, 'ttl');
SELECT public.single_table_entity('@@single', 'x', 'X#{a}', '{b}', gsi1_pk => 'G#{g}');
SELECT public.single_table_put('@@single', 'x', '{a: 1, b: 2, g: 3}');
SELECT public.attribute_enable('@@people', 'attributes', prefix => 'x_', name => 'attributes');
SELECT public.payload_enable('@@people', 'payload', '{first: "regex:(.)"}', name => 'payload');
SELECT public.polymorphic_enable('@@kinds', by => 'a', unknown => 'accept', name => 'kinds');
SELECT public.polymorphic_variant('@@kinds', 'first', schema => '{properties: {b: {bsonType: "int"}}}', indexes => '{b}');
SELECT public.polymorphic_merge('@@merged', 'in', '{@@rows}', into_fields => '{r}', arrays => '{r}');
SELECT public.schema_versioning_enable('@@versions', current => 2, write => 'accept');
SELECT public.schema_versioning_step('@@versions', 1, 2, up_update => '{$rename: {a: "b"}}', down_update => '{$rename: {b: "a"}}');
SELECT public.versioning_enable('@@feed');
SELECT public.fanout_enable('@@rows', walls => '@@walls', author => 'in', followers => '@@walls_of', follower => 'who', followee => 'whom', name => 'walls');
SELECT public.preallocated_enable('@@slots', 'a', public.preallocated_pool(3), store => 'slots', available_field => 'n', name => 'a');
SELECT public.preallocated_enable('@@slots', 'b', public.preallocated_grid('{2,2}'), store => 'document', name => 'b');
SELECT public.change_feed_enable('@@slots', name => 'feed');
SELECT public.single_collection_enable('@@catalog', id_fields => '{a: "id"}', self_related => '{a}', views => false);
SELECT public.relationship_enable('@@left', 'in', '@@right', 'out', missing => 'allow', name => 'in');
SELECT public.relationship_enable('@@left', 'friends', '@@left', 'friends', name => 'friends');
SELECT public.bucket_create('@@measured', columns => 'id int, ts pg_catalog.timestamptz, a pg_catalog.float8', group_by => '{id}', time_field => 'ts', span => '1 hour');
SELECT public.computed_enable('@@sums', '@@measured', 'id', '{measured: {$sum: "$a"}}', name => 'measured');
SELECT public.rollup_enable('@@measured', '@@measured_days', '{n: {$count: {}}}', time_field => 'ts', levels => '{day,month}', group_by => '{id}');
SELECT public.kv_create('kv_@kv@'), public.kv_hset('kv_@kv@', 'h', 'tags', 1), public.kv_sadd('kv_@kv@', 's', 'tags'), public.kv_zadd('kv_@kv@', 'tags', 1, 'tags');
SQL
}
writes() {  # writes SCHEMA; what anybody does who may write to the tables
  cat <<'SQL' | sed "s/@@/$1./g"
INSERT INTO @@canary (doc) VALUES ('{_id: 1, n: 1, tags: [1, 2, 3, 4]}') ON CONFLICT DO NOTHING;
INSERT INTO @@canary (doc) VALUES ('{_id: 2, n: 2, tags: [1, 2, 3]}'), ('{_id: 3, tags: []}');
UPDATE @@canary SET doc = public.bson_array_append(doc, 'tags', 9);
UPDATE @@canary_whole SET doc = public.bson_set(doc, 'x', 1);
INSERT INTO @@bare VALUES (1, '{tags: [1, 2, 3, 4]}'), (2, '{}');
UPDATE @@bare SET doc = public.bson_array_append(doc, 'tags', 9);
INSERT INTO @@totals (doc) VALUES ('{_id: "a", title: "A"}'), ('{_id: 1, title: "B"}');
INSERT INTO @@rows (doc) VALUES ('{_id: 1, in: "a", a: 1, ref: "a", at: ISODate("2024-01-01"), cold: 1}'), ('{_id: 2, in: "a", a: 2, ref: 1, at: ISODate("2024-01-02")}'), ('{_id: 3, in: 1, a: 3, at: ISODate("2024-02-01")}');
UPDATE @@rows SET doc = public.bson_set(doc, 'a', 7);
UPDATE @@totals SET doc = public.bson_set(doc, 'title', 'C');
INSERT INTO @@tree (doc) VALUES ('{_id: "a"}'), ('{_id: "b", in: "a"}'), ('{_id: 1, in: "b"}');
UPDATE @@tree SET doc = public.bson_set(doc, 'x', 1);
INSERT INTO @@counts (doc) VALUES ('{_id: 1}');
SELECT public.approximation_add('@@counts', 1, 1, name => 'a');
SELECT public.approximation_add('@@counts', 1, 1, name => 'b');
INSERT INTO @@walls_of (doc) VALUES ('{_id: 2, who: "x", whom: "a"}');
INSERT INTO @@people (doc) VALUES ('{_id: 1, x_a: 1, x_b: 2, payload: "text"}');
UPDATE @@people SET doc = public.bson_set(doc, 'x_c', 3);
INSERT INTO @@kinds (doc) VALUES ('{_id: 1, a: "first", b: 1}');
INSERT INTO @@versions VALUES (1, '{a: 1}'), (2, '{schema_version: 2, b: 2}');
UPDATE @@versions_current SET doc = public.bson_set(doc, 'b', 5);
UPDATE @@versions_v1 SET doc = public.bson_set(doc, 'a', 6);
INSERT INTO @@feed (doc) VALUES ('{_id: 1, a: 1}');
UPDATE @@feed SET doc = public.bson_set(doc, 'a', 2);
INSERT INTO @@slots (doc) VALUES ('{_id: 1}');
SELECT public.preallocated_claim('@@slots', 1, '{1}', 'me', name => 'a');
INSERT INTO @@catalog (doc) VALUES ('{_id: 1, docType: "a", id: 1}'), ('{_id: 2, docType: "b", relatedTo: [1]}');
INSERT INTO @@left (doc) VALUES ('{_id: 1, in: [1], friends: [1]}');
INSERT INTO @@right (doc) VALUES ('{_id: 1}');
UPDATE @@right SET doc = public.bson_set(doc, 'x', 1);
INSERT INTO @@sums (doc) VALUES ('{_id: 1}');
INSERT INTO @@measured VALUES (1, '2024-01-01', 1), (1, '2024-01-01 00:10', 2);
UPDATE @@measured SET a = 5;
DELETE FROM @@measured WHERE ts OPERATOR(pg_catalog.=) '2024-01-01';
INSERT INTO @@single (doc) VALUES ('{entity: "x", a: 5, b: 6, g: 7}');
SELECT public.kv_hset('kv_@kv@', 'k', 'f', 1), public.kv_zadd('kv_@kv@', 'tags', 2, 'more');
DELETE FROM @@canary WHERE _id OPERATOR(public.=) 3::pg_catalog.int4;
DELETE FROM @@rows WHERE _id OPERATOR(public.=) 3::pg_catalog.int4;
DELETE FROM @@bare_1;
SQL
}
# Verbs for each declaration, and every public function with arguments that mean something: SQL that is made from the catalog and in which
# nothing is left to the search path. What a function has done is undone, so that the next finds the tables as they were.
verbs() {  # verbs SCHEMA
  psql -XqAt -v schema="$1" <<'SQL'
CREATE TEMP TABLE declared AS SELECT d.rel, d.rel::text AS table_name, d.pattern, d.name FROM pattern_list() d JOIN pg_class c ON c.oid = d.rel WHERE c.relnamespace IN (:'schema'::regnamespace, ('kv_' || :'schema')::regnamespace);
SELECT format('CALL public.pattern_build(%L, %L);', table_name, name) FROM declared;
SELECT format('SELECT public.pattern_check(%L, %L);', table_name, name) FROM declared;
SELECT format('SELECT public.pattern_repair(%L, %L);', table_name, name) FROM declared;
SELECT format('SELECT public.pattern_alter(%L, %L, %L);', table_name, name, options) FROM declared, unnest('{"{}","{threshold: 3}","{step: 5}","{take: 3}","{nosuch: 1}"}'::text[]) options;
CREATE TEMP TABLE given (type text, value text);
INSERT INTO given VALUES ('text', '''n'''), ('name', '''n'''), ('bson', '''{n: 1}'''), ('bson_value', '''1'''), ('int4', '1'), ('int8', '1'), ('int2', '1'), ('bool', '''true'''), ('float8', '1.5'), ('float4', '1.5'), ('numeric', '1.5'), ('interval', '''1 day'''),
  ('timestamptz', '''2024-01-01'''), ('timestamp', '''2024-01-01'''), ('date', '''2024-01-01'''), ('_text', '''{n}'''), ('_bson', '''{"{}"}'''), ('bytea', '''\x0500000000'''), ('jsonb', '''{"a": 1}'''), ('json', '''{"a": 1}'''), ('objectid', '''507f1f77bcf86cd799439011'''),
  ('treepath', '''["a", "b"]'''), ('_int8', '''{1}'''), ('_int4', '''{1}'''), ('_bson_value', '''{1}'''), ('uuid', '''11111111-1111-1111-1111-111111111111'''), ('regprocedure', '''public.bson_size(public.bson)''');
SELECT format(CASE f.prokind WHEN 'p' THEN 'CALL %s.%I(%s);' ELSE 'BEGIN; SELECT %s.%I(%s); ROLLBACK;' END, f.pronamespace::regnamespace, f.proname, (
    SELECT string_agg(CASE WHEN t.typname = 'regclass' THEN format('%L::pg_catalog.regclass', coalesce((SELECT min(d.table_name) FROM declared d WHERE f.proname LIKE d.pattern || '\_%'), :'schema' || CASE WHEN f.proname ~ '^bucket' THEN '.measured' ELSE '.canary' END))
        WHEN t.typname = 'text' AND a.n = 1 AND f.proname ~ '^kv_' THEN format('%L::pg_catalog.text', 'kv_' || :'schema')
        WHEN t.typname IN ('any', 'anyelement', 'anynonarray', 'anycompatible', 'anycompatiblenonarray') THEN '1::pg_catalog.int4' WHEN t.typname IN ('anyarray', 'anycompatiblearray') THEN '''{1}''::pg_catalog._int4' WHEN t.typname = 'record' THEN 'ROW(1)'
        WHEN t.typname = 'bucket' THEN format('(SELECT data FROM %s.measured_packed LIMIT 1)', :'schema')
        ELSE format('%s%s::%I.%I', CASE WHEN f.provariadic <> 0 AND a.n = f.pronargs THEN 'VARIADIC ' END, coalesce(g.value, 'NULL'), n.nspname, t.typname) END, ', ' ORDER BY a.n)
    FROM unnest(f.proargtypes::oid[]) WITH ORDINALITY a (type, n) JOIN pg_type t ON t.oid = a.type JOIN pg_namespace n ON n.oid = t.typnamespace LEFT JOIN given g ON g.type = t.typname))
FROM pg_proc f JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = f.oid AND d.deptype = 'e' JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid AND e.extname = 'docpatterns'
WHERE f.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype, 'internal'::regtype, 'fdw_handler'::regtype) AND NOT f.proargtypes::oid[] && ARRAY['internal'::regtype, 'cstring'::regtype]::oid[]
  AND f.proname !~ '_drop|_destroy|_disable$|^pattern_(build|repair|alter|check)$'
ORDER BY f.proname, f.oid;
SQL
}
ending() {  # ending SCHEMA
  psql -XqAt -v schema="$1" <<'SQL'
SELECT format('SELECT public.pattern_check(%L, %L);', d.rel, d.name) FROM pattern_list() d JOIN pg_class c ON c.oid = d.rel WHERE c.relnamespace = :'schema'::regnamespace;
SELECT format('SELECT public.pattern_disable(%L, %L);', d.rel, d.name) FROM pattern_list() d JOIN pg_class c ON c.oid = d.rel WHERE c.relnamespace = :'schema'::regnamespace;
SELECT format('ALTER TABLE %s OWNER TO %I;', c.oid::regclass, current_user) FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = :'schema'::regnamespace AND c.relname IN ('canary', 'bare');
SELECT format('DROP SCHEMA %I CASCADE;', :'schema');
SQL
}

for role in dp_owner postgres; do
  schema=s_$role
  psql -Xq -c "CREATE SCHEMA $schema AUTHORIZATION $role" -c "GRANT USAGE ON SCHEMA $schema TO dp_writer" -c "ALTER DEFAULT PRIVILEGES FOR ROLE $role GRANT ALL ON TABLES TO dp_writer" -c "GRANT CREATE ON DATABASE dp_shadows TO $role" 2>&1
  declarations "$schema" | sed "s/@kv@/$schema/g" | shadowed "$role" "$role-declare"
  is "$(trapped "$role-declare")" '' "$role declares patterns"
  count=$(psql -XqAt -c "SELECT count(DISTINCT pattern) FROM pattern_list() d JOIN pg_class c ON c.oid = d.rel WHERE c.relnamespace = '$schema'::regnamespace")
  ok "which are $count" [ "$count" -ge 17 ]
  writes "$schema" | sed "s/@kv@/$schema/g" | shadowed "$role" "$role-write"
  is "$(trapped "$role-write")" '' "$role writes to the tables"
  verbs "$schema" >"$DP_WORK/$role-verbs.sql"
  shadowed "$role" "$role-verbs" <"$DP_WORK/$role-verbs.sql"
  is "$(trapped "$role-verbs")" '' "$role checks, repairs, and calls every function"
done
writes s_dp_owner | sed 's/@kv@/s_dp_owner/g; s/_id: \([123]\)/_id: 1\1/g; s/_id: "/_id: "z/g' | shadowed dp_writer writer
is "$(trapped writer)" '' 'somebody else writes to the tables of the owner'
writes s_dp_owner | sed 's/@kv@/s_dp_owner/g; s/_id: \([123]\)/_id: 2\1/g; s/_id: "/_id: "y/g' | shadowed postgres superuser
is "$(trapped superuser)" '' 'and so does a superuser'
for role in dp_owner postgres; do
  ending "s_$role" >"$DP_WORK/$role-end.sql"
  shadowed "$role" "$role-end" <"$DP_WORK/$role-end.sql"
  is "$(trapped "$role-end")" '' "$role disables patterns and drops tables"
done
is "$(psql -XqAt -c 'SELECT * FROM pattern_check()')" '' 'and all is true'
for f in "$DP_WORK"/*.errors; do echo "# $(basename "$f" .errors): $(cat "$f") errors"; done
