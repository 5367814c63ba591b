#!/bin/bash
# The extension in a schema of its own, whose name needs quotes and which no search_path names.
. "$DP_TOP/test/env/tap.sh"
set -u
plan 15
export PGDATABASE=dp_schema PGOPTIONS='-c client_min_messages=warning'
psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_schema WITH (FORCE)' -c 'CREATE DATABASE dp_schema' -c 'DROP DATABASE IF EXISTS dp_schema_copy WITH (FORCE)' -c 'CREATE DATABASE dp_schema_copy'
psql -XqAt -c 'CREATE SCHEMA "50%s"' -c 'CREATE EXTENSION docpatterns SCHEMA "50%s"' >"$DP_WORK/out" 2>&1
ok 'a schema with a percent sign is refused in so many words' grep -q 'whose name contains a percent sign' "$DP_WORK/out"
psql -XqAt -c 'CREATE SCHEMA docpatterns' -c 'CREATE EXTENSION docpatterns' -c 'CREATE EXTENSION docpatterns SCHEMA docpatterns' -c 'DROP SCHEMA docpatterns' >"$DP_WORK/out" 2>&1
is "$(cat "$DP_WORK/out")" $'ERROR:  schema "docpatterns" already exists\nERROR:  schema "docpatterns" already exists' 'and a database that has a schema of the name docpatterns'
for schema in 'my ext' '50, (Ext);'; do
  psql -XqAt -v ON_ERROR_STOP=1 >"$DP_WORK/out" 2>&1 <<SQL
DROP SCHEMA IF EXISTS "app" CASCADE;
DROP EXTENSION IF EXISTS docpatterns CASCADE;
CREATE SCHEMA "$schema";
-- operators of a user who may create in the schema are closer to their operands than those of pg_catalog
SELECT format('CREATE FUNCTION %1\$I.trap(%2\$s, %3\$s) RETURNS boolean LANGUAGE plpgsql AS ''BEGIN RAISE division_by_zero; END''; ', s, l, r) || string_agg(format(
    'CREATE OPERATOR %1\$I.%4\$s (FUNCTION = %1\$I.trap, LEFTARG = %2\$s, RIGHTARG = %3\$s)', s, l, r, o), '; ')
  FROM unnest('{oid,int4,regclass,regtype,regproc,regprocedure,regnamespace}'::regtype[]) l, unnest('{oid,int4,regclass,regtype,regproc,regprocedure,regnamespace}'::regtype[]) r, unnest('{=,<>}'::text[]) o, (VALUES ('$schema')) v (s)
  WHERE l <> r GROUP BY l, r, s \gexec
CREATE EXTENSION docpatterns SCHEMA "$schema";
CREATE SCHEMA app;
SELECT "$schema".collection_create('app.books');
SELECT "$schema".outlier_enable('app.books', 'x', 2, chunk => 2, count_field => 'n', is_set => true, index_elements => true);
SELECT "$schema".outlier_enable('app.books', 'o', 1, extras => 'app.orders', on_field => 'b', flag => 'more', create_extras => true);
INSERT INTO app.books (doc) VALUES ('{_id: 1, x: [1, 2, 3, 4, 4], o: [{_id: 1}, {_id: 2}]}');
INSERT INTO app.orders (doc) VALUES ('{_id: 3, b: 1}');
UPDATE app.books SET doc = "$schema".bson_array_append(doc, 'x', 5);
UPDATE app.books SET doc = "$schema".bson_set(doc, '_id', 7);
SELECT "$schema".outlier_push_into('app.books', 'x', 7, 6, 7), "$schema".outlier_pull('app.books', 7, 2, 'x'), "$schema".outlier_contains('app.books', 7, 7, 'x');
UPDATE app.books_whole SET doc = "$schema".bson_set(doc, 'title', 'new');
SELECT doc FROM app.books_whole;
SELECT "$schema".pattern_repair('app.books', 'x'), "$schema".pattern_repair('app.books', 'o');
SELECT "$schema".pattern_alter('app.books', 'x', '{chunk: 3, index_elements: false}');
CALL "$schema".pattern_build('app.books', 'x');
SELECT * FROM "$schema".pattern_check();
SQL
  is "$(grep -c ERROR "$DP_WORK/out")" 0 "$schema: everything works"
  grep ERROR -A5 "$DP_WORK/out" | sed 's/^/# /'
  is "$(grep title "$DP_WORK/out")" '{"_id": 7, "x": [1, 3, 4, 5, 6, 7], "o": [{"_id": 1}, {"_id": 2}, {"_id": 3}], "n": 6, "title": "new"}' "$schema: the document is whole"
  psql -Xq -d postgres -c 'DROP DATABASE dp_schema_copy WITH (FORCE)' -c 'CREATE DATABASE dp_schema_copy'
  pg_dump dp_schema | psql -Xq dp_schema_copy 2>&1 >/dev/null | grep -v '^$' >"$DP_WORK/restore"
  is "$(cat "$DP_WORK/restore")" '' "$schema: it is dumped and restored"
  is "$(psql -XqAt -d dp_schema_copy -c "SELECT * FROM \"$schema\".pattern_check()" -c "SELECT doc FROM app.books_whole" -c "SELECT \"$schema\".pattern_disable('app.books', 'x'), \"$schema\".pattern_disable('app.books', 'o')" -c 'SELECT doc FROM app.books')" \
    $'{"_id": 7, "x": [1, 3, 4, 5, 6, 7], "o": [{"_id": 1}, {"_id": 2}, {"_id": 3}], "n": 6, "title": "new"}\n1|1\n{"_id": 7, "x": [1, 3, 4, 5, 6, 7], "o": [{"_id": 1}, {"_id": 2}, {"_id": 3}], "n": 6, "title": "new"}' "$schema: and lives there"
  ok "$schema: it cannot be renamed" grep -q 'cannot rename the schema of extension "docpatterns"' <(psql -XqAt -c "ALTER SCHEMA \"$schema\" RENAME TO other" 2>&1)
done
is "$(psql -XqAt -c "SELECT p.oid::regprocedure FROM pg_proc p WHERE pronamespace = '\"50, (Ext);\"'::regnamespace AND (proname ~ '^_' OR prorettype IN ('trigger'::regtype, 'event_trigger'::regtype))")" '' \
  'it has no function that users do not call'
is "$(psql -XqAt -c "SELECT has_schema_privilege('public', 'docpatterns', 'USAGE'), has_schema_privilege('public', 'docpatterns', 'CREATE')")" 't|f' 'all roles may use the schema docpatterns, and none may create there'
ok 'it cannot be renamed' grep -q 'cannot rename the schema of extension "docpatterns"' <(psql -XqAt -c 'ALTER SCHEMA docpatterns RENAME TO other' 2>&1)
psql -Xq -d postgres -c 'DROP DATABASE dp_schema WITH (FORCE)' -c 'DROP DATABASE dp_schema_copy WITH (FORCE)'
