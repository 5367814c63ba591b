#!/bin/bash
# Dump and restore of trees in every form, and of documents that hang on them: all arrives as it was and goes on being kept.
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning'
plan 30

fresh() {  # fresh DATABASE [SQL]
  psql -Xqc "DROP DATABASE IF EXISTS $1 WITH (FORCE)" -c "CREATE DATABASE $1" postgres
  [ $# = 1 ] || psql -Xqc "$2" "$1"
}
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }  # ask DATABASE SQL

fresh dp_trees
psql -XqAt -v ON_ERROR_STOP=1 dp_trees >/dev/null <<'SQL' || echo 'not ok 0 - the trees were made'
CREATE EXTENSION docpatterns;
SELECT collection_create(c) FROM unnest('{forms,goods,by_path,by_above,by_list}'::text[]) c;
SELECT tree_enable('forms', parent => 'up', ancestors => 'anc', path => 'path', children => 'kids', depth => 'depth', on_delete => 'reparent', order_by => 'rank');
SELECT tree_attach('goods', tree => 'forms', parent => 'cat', ancestors => 'cats', depth => 'depth');
SELECT tree_enable('by_path', parent => 'up', path => 'path', separator => '/', depth => 'depth', truth => 'path');
SELECT tree_enable('by_above', parent => 'up', ancestors => 'above', ancestors_order => 'nearest_first', truth => 'ancestors', on_delete => 'cascade');
SELECT tree_enable('by_list', parent => 'up', children => 'kids', depth => 'depth', truth => 'children');
CREATE SCHEMA "o'S.chema";
CREATE TABLE "o'S.chema"."T ""t%s" ("K k" int PRIMARY KEY, "D ""d" bson);
SELECT tree_enable('"o''S.chema"."T ""t%s"', node_id => 'na me', parent => '"a.b"', ancestors => 'x.y', name => 'it''s %s');
INSERT INTO forms (doc) SELECT bson_build('_id', i, 'up', nullif(i / 3, 0), 'rank', -i) FROM generate_series(40, 1, -1) i;
INSERT INTO goods (doc) SELECT bson_build('_id', i, 'cat', nullif(i % 41, 0)) FROM generate_series(1, 60) i;
INSERT INTO by_path (doc) VALUES ('{_id: "a"}'), ('{_id: "b", path: "/a"}'), ('{_id: "c", path: "/a/b"}'), ('{_id: "d"}');
INSERT INTO by_above (doc) VALUES ('{_id: 1}'), ('{_id: 2, above: [1]}'), ('{_id: 3, above: [2, 1]}'), ('{_id: 4}');
INSERT INTO by_list (doc) VALUES ('{_id: 3}'), ('{_id: 2, kids: [3]}'), ('{_id: 1, kids: [2]}'), ('{_id: 4, kids: []}');
INSERT INTO "o'S.chema"."T ""t%s" VALUES (1, '{"na me": "b", "a.b": "a"}'), (2, '{"na me": "a"}'), (3, NULL);
SQL

list="SELECT rel, pattern, name, options FROM pattern_list() ORDER BY rel::text, 2, 3"
rows="SELECT 'forms', doc::bytea FROM forms UNION ALL SELECT 'goods', doc::bytea FROM goods UNION ALL SELECT 'path', doc::bytea FROM by_path UNION ALL SELECT 'above', doc::bytea FROM by_above
  UNION ALL SELECT 'list', doc::bytea FROM by_list UNION ALL SELECT 't', \"D \"\"d\"::bytea FROM \"o'S.chema\".\"T \"\"t%s\" ORDER BY 1, 2"
made="SELECT tgrelid::regclass::text, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname LIKE 'zz_docpatterns_%'
  UNION ALL SELECT indrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid >= 16384 AND indrelid::regclass::text !~ '^pg_toast' ORDER BY 1, 2"
wanted_list=$(ask dp_trees "$list") wanted_rows=$(ask dp_trees "$rows") wanted_made=$(ask dp_trees "$made")

# moves, and what is kept afterwards, in a transaction that is rolled back
alive() {  # alive DATABASE
  ask "$1" "BEGIN;
    UPDATE forms SET doc = bson_set(doc, 'up', 20) WHERE _id = 3;
    DELETE FROM forms WHERE _id = 4;
    UPDATE by_path SET doc = bson_set(doc, 'path', '/d'::text) WHERE _id = 'b'::text;
    UPDATE by_above SET doc = bson_set(doc, 'above', '[4]'::bson_value) WHERE _id = 2;
    UPDATE by_list SET doc = bson_set(doc, 'kids', CASE WHEN _id = 1 THEN '[]'::bson_value ELSE '[2]'::bson_value END) WHERE _id IN (1, 4);
    UPDATE \"o'S.chema\".\"T \"\"t%s\" SET \"D \"\"d\" = bson_set(\"D \"\"d\", '\"a.b\"', null) WHERE \"K k\" = 1;
    SELECT 'wrong', v FROM pattern_check() v;
    SELECT doc -> 'anc', doc ->> 'path', doc -> 'depth' FROM forms WHERE _id = 11;
    SELECT doc -> 'kids' FROM forms WHERE _id = 20;
    SELECT doc -> 'kids' FROM forms WHERE _id = 1;
    SELECT doc -> 'cats' FROM goods WHERE _id = 11;
    SELECT doc ->> 'path' FROM by_path WHERE _id = 'c'::text;
    SELECT doc -> 'above' FROM by_above WHERE _id = 3;
    SELECT doc -> 'up', doc -> 'depth' FROM by_list WHERE _id = 2;
    SELECT \"D \"\"d\" -> 'x.y' FROM \"o'S.chema\".\"T \"\"t%s\" WHERE \"K k\" = 1;
    ROLLBACK"
}
moved='[2, 6, 20, 3]|.2.6.20.3|4
[3]
[14, 13, 12, 5]
[2, 6, 20, 3, 11]
/d/b
[2, 4]
4|1
[]'

same() {  # same DATABASE NAME
  is "$(ask "$1" "$list")" "$wanted_list" "$2: the declarations are the same"
  is "$(ask "$1" "$rows")" "$wanted_rows" "$2: so is every document"
  is "$(ask "$1" "$made")" "$wanted_made" "$2: and every trigger and index"
  is "$(ask "$1" 'SELECT v FROM pattern_check() v')" '' "$2: the trees are true"
  is "$(alive "$1")" "$moved" "$2: and moves are followed"
}

is "$(ask dp_trees 'SELECT count(*) FROM pattern_list()')" 6 'trees in all forms are declared'
is "$(ask dp_trees 'SELECT v FROM pattern_check() v')" '' 'and true'
is "$(alive dp_trees)" "$moved" 'and follow moves'

fresh dp_trees_copy
pg_dump dp_trees 2>"$DP_WORK/errors" >"$DP_WORK/first.sql"
psql -Xq dp_trees_copy <"$DP_WORK/first.sql" 2>>"$DP_WORK/errors" >/dev/null
is "$(cat "$DP_WORK/errors")" '' 'pg_dump | psql says nothing'
same dp_trees_copy 'pg_dump | psql'

fresh dp_trees_third
{ pg_dump -Fc -f "$DP_WORK/custom" dp_trees_copy && pg_restore -j2 -d dp_trees_third "$DP_WORK/custom"; } >"$DP_WORK/errors" 2>&1
is "$(cat "$DP_WORK/errors")" '' 'pg_restore -j2 of the copy says nothing'
same dp_trees_third 'pg_restore -j2'

pg_dump --schema-only dp_trees >"$DP_WORK/schema.sql"
pg_dump --data-only dp_trees 2>/dev/null >"$DP_WORK/data.sql"
fresh dp_trees_third
psql -Xq dp_trees_third <"$DP_WORK/schema.sql" 2>"$DP_WORK/errors" >/dev/null
PGOPTIONS="$PGOPTIONS -c docpatterns.maintain=off" psql -Xq dp_trees_third <"$DP_WORK/data.sql" 2>>"$DP_WORK/errors" >/dev/null
is "$(cat "$DP_WORK/errors")" '' 'the structure, then the data without maintenance'
same dp_trees_third 'structure, then data without maintenance'

# One table alone. An attached table without its tree says what is missing, and can be freed of the pattern.
fresh dp_trees_third 'CREATE EXTENSION docpatterns'
pg_dump -t forms dp_trees 2>/dev/null | psql -Xq dp_trees_third >/dev/null 2>"$DP_WORK/errors"
is "$(cat "$DP_WORK/errors")" '' 'a tree alone is restored without a word'
is "$(ask dp_trees_third "SELECT v FROM pattern_check() v")" '' 'and is true'
is "$(ask dp_trees_third "UPDATE forms SET doc = bson_set(doc, 'up', 20) WHERE _id = 3; SELECT doc -> 'anc' FROM forms WHERE _id = 11; SELECT v FROM pattern_check() v")" \
  '[2, 6, 20, 3]' 'and follows moves'
is "$(ask dp_trees_third "SELECT pattern_disable('forms', 'up'); DROP TABLE forms" | grep -v '^[0-9]*$')" '' 'and can be freed of the pattern'

fresh dp_trees_third 'CREATE EXTENSION docpatterns'
pg_dump -t goods dp_trees 2>/dev/null | psql -Xq dp_trees_third >/dev/null 2>"$DP_WORK/errors"
is "$(cat "$DP_WORK/errors")" '' 'documents are restored without their tree'
is "$(ask dp_trees_third 'SELECT found FROM pattern_check() v')" 'the tree that documents of table public.goods hang on does not exist' 'and the tree is missed'
is "$(ask dp_trees_third "UPDATE goods SET doc = bson_set(doc, 'n', 1) WHERE _id = 1; SELECT doc FROM goods WHERE _id = 1")" \
  '{"_id": 1, "cat": 1, "cats": [1], "depth": 1, "n": 1}' 'what does not need the tree can be written'
is "$(ask dp_trees_third "UPDATE goods SET doc = bson_set(doc, 'cat', 2) WHERE _id = 1" | head -1)" \
  'ERROR:  the tree that documents of table public.goods hang on does not exist' 'what needs it cannot'
is "$(ask dp_trees_third "SELECT pattern_disable('goods', 'cat'); UPDATE goods SET doc = bson_set(doc, 'cat', 2) WHERE _id = 1; DROP TABLE goods" | grep -v '^[0-9]*$')" '' \
  'until the table is freed of the pattern'
psql -Xqc 'DROP DATABASE dp_trees' -c 'DROP DATABASE dp_trees_copy' -c 'DROP DATABASE dp_trees_third' postgres
