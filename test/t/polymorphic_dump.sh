#!/bin/bash
# Dump and restore of tables with variants and of a single view: views, indexes and declarations arrive as they were, also with
# one job for each table, and what is written afterwards is looked at and merged.
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning'
plan 13

fresh() { psql -Xqc "DROP DATABASE IF EXISTS $1 WITH (FORCE)" -c "CREATE DATABASE $1" postgres; }  # fresh DATABASE
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }  # ask DATABASE SQL

fresh dp_poly
psql -XqAt -v ON_ERROR_STOP=1 dp_poly >/dev/null <<'SQL' || echo 'not ok 0 - the tables were made'
CREATE EXTENSION docpatterns;
SELECT collection_create(c) FROM unnest('{athletes,crm,billing,support}'::text[]) c;
SELECT polymorphic_enable('athletes', by => 'sport', common => '{required: ["name"]}');
SELECT polymorphic_variant('athletes', 'tennis', schema => '{required: ["event"], properties: {event: {properties: {titles: {bsonType: "int"}}}}}', indexes => '{event.titles}', unique_keys => '{name}', closed => true);
SELECT polymorphic_variant('athletes', 'golf', schema => '{properties: {handicap: {bsonType: "double", minimum: -10}, odd: {enum: ["$numberInt", {"$numberInt": "5"}, ISODate("2020-01-01")]}}}', view => 'golfers');
SELECT polymorphic_enable('athletes', by => 'parts.kind', unknown => 'accept'), polymorphic_variant('athletes', 'seven', value => '7', of => 'parts.kind', schema => '{required: ["x"]}');
CREATE SCHEMA "o'S.chema";
CREATE TABLE "o'S.chema"."T ""t%s" ("K k" int PRIMARY KEY, "D ""d" bson) PARTITION BY RANGE ("K k");
CREATE TABLE "o'S.chema".part PARTITION OF "o'S.chema"."T ""t%s" FOR VALUES FROM (0) TO (10);
SELECT polymorphic_enable('"o''S.chema"."T ""t%s"', by => '"a.b"'), polymorphic_variant('"o''S.chema"."T ""t%s"', 'it''s %s', schema => '{required: ["x"]}');
SELECT polymorphic_merge('merged', merge_on => 'c', sources => '{crm,billing,support}', arrays => '{support}', fields => '{billing: {total: 1}}');
INSERT INTO athletes (doc) SELECT bson_build('_id', i, 'sport', 'tennis', 'name', 'n' || i, 'event', bson_build('titles', i), 'parts', bson_array(bson_build('kind', 7, 'x', 1), bson_build('kind', 8))) FROM generate_series(1, 20) i;
INSERT INTO athletes (doc) SELECT bson_build('_id', i, 'sport', 'golf', 'name', 'n1', 'handicap', i::float8) FROM generate_series(21, 30) i;
INSERT INTO "o'S.chema"."T ""t%s" VALUES (1, '{"a.b": "it''s %s", x: 1}'), (2, NULL);
INSERT INTO crm (doc) SELECT bson_build('_id', i, 'c', i) FROM generate_series(1, 20) i;
INSERT INTO billing (doc) SELECT bson_build('_id', i, 'c', i * 2, 'total', i, 'secret', i) FROM generate_series(1, 20) i;
INSERT INTO support (doc) SELECT bson_build('_id', i, 'c', i % 7) FROM generate_series(1, 20) i;
UPDATE merged SET doc = bson_set(doc, 'note', 'mine') WHERE doc -> 'c' = 3;
SQL

list="SELECT rel, pattern, name, options FROM pattern_list() ORDER BY rel::text, 2, 3"
rows="SELECT 'a', doc::bytea FROM athletes UNION ALL SELECT 'm', doc::bytea FROM merged UNION ALL SELECT 't', \"D \"\"d\"::bytea FROM \"o'S.chema\".\"T \"\"t%s\" ORDER BY 1, 2"
made="SELECT tgrelid::regclass::text, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname LIKE 'zz_docpatterns_%'
  UNION ALL SELECT indexrelid::regclass::text || coalesce(obj_description(indexrelid), ''), pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid >= 16384 AND indrelid::regclass::text !~ '^pg_toast'
  UNION ALL SELECT oid::regclass::text || obj_description(oid), pg_get_viewdef(oid) || reloptions::text FROM pg_class WHERE relkind = 'v' AND oid >= 16384 AND obj_description(oid) LIKE 'made for%' ORDER BY 1, 2"
wanted_list=$(ask dp_poly "$list") wanted_rows=$(ask dp_poly "$rows") wanted_made=$(ask dp_poly "$made")

# what is refused and what follows, in a transaction that is rolled back
alive() {  # alive DATABASE
  ask "$1" "BEGIN;
    CREATE FUNCTION pg_temp.refused(command text) RETURNS text LANGUAGE plpgsql AS \$f\$ BEGIN EXECUTE command; RETURN 'taken'; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END \$f\$;
    SELECT pg_temp.refused('INSERT INTO athletes (doc) VALUES (bson_build(''sport'', ''tennis'', ''name'', ''x''))');
    SELECT pg_temp.refused('INSERT INTO athletes (doc) VALUES (bson_build(''sport'', ''chess'', ''name'', ''x''))');
    SELECT pg_temp.refused('INSERT INTO athletes (doc) SELECT bson_set(doc, ''_id'', 99) FROM athletes WHERE _id = 1');
    SELECT pg_temp.refused('UPDATE athletes SET doc = bson_unset(doc, ''parts.0.x'') WHERE _id = 1');
    SELECT pg_temp.refused('UPDATE \"o''S.chema\".part SET \"D \"\"d\" = bson_unset(\"D \"\"d\", ''x'')');
    SELECT pg_temp.refused('DELETE FROM merged');
    UPDATE billing SET doc = bson_set(doc, 'c', 100) WHERE _id = 1; DELETE FROM crm WHERE _id > 10; TRUNCATE support;
    SELECT count(*), count(doc -> 'crm'), sum((doc -> 'billing.total')::int) FROM merged;
    SELECT count(*), sum(\"event.titles\") FROM athletes_tennis; SELECT count(*) FROM golfers;
    SELECT 'wrong', v FROM pattern_check() v;
    ROLLBACK"
}
wanted_alive=$'23514\n23514\n23505\n23514\n23514\n55000\n26|10|210\n20|210\n10'
is "$(alive dp_poly)" "$wanted_alive" 'before'

pg_dump -Fc dp_poly >"$DP_WORK/poly.dump" || echo 'not ok 0 - pg_dump'
pg_dump -Fd -j 2 -f "$DP_WORK/poly.dir" dp_poly || echo 'not ok 0 - pg_dump of a directory'
for how in custom directory; do
  fresh "dp_poly_$how"
  if [ "$how" = custom ]; then pg_restore -d dp_poly_custom "$DP_WORK/poly.dump"; else pg_restore -j 4 -d dp_poly_directory "$DP_WORK/poly.dir"; fi >"$DP_WORK/restore" 2>&1
  is "$(cat "$DP_WORK/restore")" '' "$how: no complaints"
  is "$(ask "dp_poly_$how" "$list")" "$wanted_list" "$how: the declarations"
  is "$(ask "dp_poly_$how" "$rows")" "$wanted_rows" "$how: the documents"
  is "$(ask "dp_poly_$how" "$made")" "$wanted_made" "$how: triggers, indexes and views"
  is "$(alive "dp_poly_$how")" "$wanted_alive" "$how: all goes on"
done

# a schema that is loaded with its data after the triggers, as pg_dump --schema-only and --data-only do
fresh dp_poly_parts
pg_dump -s dp_poly | psql -Xqd dp_poly_parts -v ON_ERROR_STOP=1 >/dev/null 2>"$DP_WORK/schema"
is "$(cat "$DP_WORK/schema")" '' 'the schema alone'
pg_dump -a -t athletes -t crm -t billing -t support -t '"o'"'"'S.chema".*' dp_poly | psql -Xqd dp_poly_parts -v ON_ERROR_STOP=1 >/dev/null 2>"$DP_WORK/data"
is "$(cat "$DP_WORK/data"; ask dp_poly_parts "SELECT count(*) FROM merged; SELECT v FROM pattern_check() v")" '31' 'then the data: merged documents are made'
for db in dp_poly dp_poly_custom dp_poly_directory dp_poly_parts; do psql -Xqc "DROP DATABASE $db WITH (FORCE)" postgres; done
