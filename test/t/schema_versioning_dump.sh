#!/bin/bash
# Versions of schemas are dumped and restored: functions, views, triggers and the indexes on all of them arrive, under any
# search_path; a table that is dumped alone gets back what can be made again. A migration that a crash ends goes on.
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning'
plan 28

fresh() {  # fresh DATABASE
  psql -Xqc "DROP DATABASE IF EXISTS $1 WITH (FORCE)" -c "CREATE DATABASE $1" postgres
}
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "SET search_path = app, public" -c "$2" 2>&1; }  # ask DATABASE SQL

fresh dp_versions
psql -Xq -v ON_ERROR_STOP=1 -d dp_versions >/dev/null <<'SQL' || echo 'not ok 0 - the tables were made'
CREATE EXTENSION docpatterns;
CREATE SCHEMA app;
SET search_path = app, public;
SELECT collection_create('people');
-- nothing in these is qualified: whoever restores has another search_path
CREATE FUNCTION people_up(d bson) RETURNS bson LANGUAGE sql IMMUTABLE AS $f$ SELECT bson_set(d - 'home', 'contact_method', bson_array(bson_build('home', d -> 'home'))) $f$;
CREATE FUNCTION people_down(d bson) RETURNS bson LANGUAGE plpgsql IMMUTABLE AS $f$ BEGIN RETURN bson_set(d - 'contact_method', 'home', d -> 'contact_method.0.home'); END $f$;
SELECT schema_versioning_enable('people', current => 3, write => 'accept');
SELECT schema_versioning_step('people', 1, 2, up => 'people_up(bson)', down => 'people_down(bson)'),
       schema_versioning_step('people', 2, 3, up_update => '{$rename: {name: "called"}}', down_update => '{$rename: {called: "name"}}', schema => '{required: ["called"]}');
CREATE INDEX people_home ON people ((people_as_v1(doc) ->> 'home'));
INSERT INTO people (doc) SELECT bson_build('_id', i, 'name', 'p' || i, 'home', i::text) FROM generate_series(1, 500) i;
UPDATE people_v2 SET doc = bson_set(doc, 'x', 1) WHERE _id <= 100;
CREATE TABLE made (id int PRIMARY KEY, doc bson);
SELECT schema_versioning_enable('made', current => 2), schema_versioning_step('made', 1, 2, up_update => '{$rename: {phone: "mobile"}}', down_update => '{$rename: {mobile: "phone"}}');
ALTER TABLE made ADD COLUMN mobile text GENERATED ALWAYS AS (made_as_v2(doc) ->> 'mobile') STORED;
ALTER TABLE made ADD CHECK (made_as_v1(doc) ->> 'phone' <> 'none');
INSERT INTO made (id, doc) VALUES (1, '{phone: "111"}');
CREATE TABLE parts (id int PRIMARY KEY, doc bson) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
SELECT schema_versioning_enable('parts', current => 2, write => 'accept'), schema_versioning_step('parts', 1, 2, up_update => '{$rename: {phone: "mobile"}}', down_update => '{$rename: {mobile: "phone"}}');
INSERT INTO parts VALUES (1, '{phone: "1"}'), (2, '{schema_version: 2, mobile: "2"}');
-- a step that was replaced while an index used it
CREATE TABLE changed (id int PRIMARY KEY, doc bson);
SELECT schema_versioning_enable('changed', current => 2, write => 'accept'), schema_versioning_step('changed', 1, 2, up_update => '{$set: {a: 1}}', down_update => '{$unset: {a: 1}}');
CREATE INDEX changed_a ON changed ((changed_as_v2(doc) -> 'a'));
SELECT schema_versioning_step('changed', 1, 2, up_update => '{$set: {a: 2}}', down_update => '{$unset: {a: 1}}');
INSERT INTO changed VALUES (1, '{}');
SQL
rows="SELECT 'people', * FROM people UNION ALL SELECT 'made', to_bson(id), doc FROM made UNION ALL SELECT 'parts', to_bson(id), doc FROM parts UNION ALL SELECT 'changed', to_bson(id), doc FROM changed ORDER BY 1, 2"
shown="SELECT doc FROM people_v1 ORDER BY _id"
list="SELECT rel, name, options FROM pattern_list() ORDER BY rel::text"
triggers="SELECT tgrelid::regclass, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname LIKE 'zz_docpatterns_%' ORDER BY tgrelid::regclass::text, tgname"
depends="SELECT pg_describe_object(classid, objid, objsubid), pg_describe_object(refclassid, refobjid, refobjsubid) FROM pg_depend WHERE classid = 'pg_proc'::regclass AND refclassid = 'pg_class'::regclass AND deptype = 'a' ORDER BY 1, 2"
for what in rows shown list triggers depends; do declare "wanted_$what=$(ask dp_versions "${!what}")"; done
is "$(ask dp_versions 'SELECT v FROM pattern_check() v')" '' 'the patterns are true'
is "$(ask dp_versions "SELECT count(*) FROM pg_depend WHERE classid = 'pg_proc'::regclass AND refclassid = 'pg_class'::regclass AND deptype = 'a' AND refobjid = 'made'::regclass")" 1 'a function that a generated column uses does not depend on its table'

same() {  # same DATABASE NAME
  local what wanted
  for what in rows shown list triggers depends; do
    wanted=wanted_$what
    is "$(ask "$1" "${!what}")" "${!wanted}" "$2: $what are the same"
  done
  is "$(ask "$1" 'SELECT v FROM pattern_check() v')" '' "$2: the patterns are true"
  is "$(ask "$1" "BEGIN; SET enable_seqscan = off; UPDATE people_v1 SET doc = bson_set(doc, 'home', 'moved') WHERE _id = 50; SELECT doc FROM people WHERE people_as_v1(doc) ->> 'home' = 'moved'; ROLLBACK")" \
    '{"_id": 50, "schema_version": 2, "name": "p50", "contact_method": [{"home": "moved"}], "x": 1}' "$2: and alive, with the index"
}
fresh dp_versions_copy
pg_dump dp_versions 2>"$DP_WORK/errors" >"$DP_WORK/first.sql"
psql -Xq dp_versions_copy <"$DP_WORK/first.sql" 2>>"$DP_WORK/errors" >/dev/null
is "$(cat "$DP_WORK/errors")" '' 'pg_dump | psql says nothing'
same dp_versions_copy 'pg_dump | psql'
pg_dump dp_versions_copy >"$DP_WORK/second.sql"
is "$(diff <(grep -v '^.\(un\)\?restrict' "$DP_WORK/first.sql") <(grep -v '^.\(un\)\?restrict' "$DP_WORK/second.sql") | head -5)" '' 'a dump of the copy is the same text'
fresh dp_versions_third
pg_dump -Fc dp_versions_copy >"$DP_WORK/custom" 2>"$DP_WORK/errors"
pg_restore -j2 -d dp_versions_third "$DP_WORK/custom" 2>>"$DP_WORK/errors"
is "$(cat "$DP_WORK/errors")" '' 'pg_restore -j2 says nothing'
same dp_versions_third 'pg_restore -j2'
is "$(ask dp_versions_third 'DROP INDEX changed_a; SELECT pattern_repair($$changed$$)')" 0 'what an index used of a former step can go'
is "$(ask dp_versions_third "SELECT proname FROM pg_proc WHERE proname ~ 'changed_as' ORDER BY 1")" $'changed_as_v1\nchanged_as_v2' 'and is gone'

# one table alone: with it come its documents and its declaration, what was generated is made again
ask dp_versions_third 'DROP TABLE parts CASCADE' >/dev/null
pg_dump -t 'app.parts*' dp_versions | grep -v 'VIEW' | psql -Xq dp_versions_third >/dev/null 2>&1
is "$(ask dp_versions_third "SELECT what, found FROM pattern_check('parts')")" $'function of version 1|missing\nfunction of version 2|missing\nview of version current|missing\nview of version 1|missing\nview of version 2|missing' \
  'a table that was dumped alone misses its functions and views'
is "$(ask dp_versions_third "SELECT pattern_repair('parts'); SELECT v FROM pattern_check('parts') v; SELECT id, doc ->> 'mobile' FROM parts_current ORDER BY id")" $'0\n1|1\n2|2' 'which pattern_repair() makes'
is "$(ask dp_versions_third "SELECT count(*) FROM pg_proc WHERE proname ~ '^(people|parts)_as'; DROP TABLE parts, people CASCADE; SELECT count(*) FROM pg_proc WHERE proname ~ '^(people|parts)_as'")" $'5\n0' 'nothing is left of tables that are dropped'

# a crash in the midst of a migration: what was committed is done, the rest is as it was, and it goes on
export PGDATABASE=dp_versions_copy
ask dp_versions_copy "INSERT INTO people (doc) SELECT bson_build('_id', i, 'name', 'p' || i, 'home', i::text) FROM generate_series(501, 20000) i" >/dev/null
psql -Xq -c "CALL schema_versioning_migrate('app.people', batch => 50, pause => '2 ms')" >/dev/null 2>&1 &
for _ in {1..100}; do [ "$(ask dp_versions_copy "SELECT count(*) > 500 FROM people WHERE doc ->> 'schema_version' = '3'")" = t ] && break; sleep 0.05; done
"$DP_CLUSTER" crash
wait
is "$(ask dp_versions_copy "SELECT count(*) > 500 AND count(*) < 20000 AND count(*) % 50 = 0 FROM people WHERE doc ->> 'schema_version' = '3'")" t 'a crash leaves whole batches'
is "$(ask dp_versions_copy "SELECT state FROM schema_versioning_progress")" running 'and a migration that nobody ended'
is "$(ask dp_versions_copy "SELECT count(*), count(DISTINCT doc ->> 'home') FROM people_v1; SELECT v FROM pattern_check() v")" '20000|20000' 'nothing is lost'
psql -Xq -c "CALL schema_versioning_migrate('app.people', batch => 5000)" >/dev/null 2>&1
is "$(ask dp_versions_copy "SELECT version, documents FROM schema_versioning_histogram('people'); SELECT state FROM schema_versioning_progress")" $'3|20000\ndone' 'called again it ends'
unset PGDATABASE
for database in dp_versions dp_versions_copy dp_versions_third; do psql -Xqc "DROP DATABASE $database WITH (FORCE)" postgres; done
