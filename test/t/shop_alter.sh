#!/bin/bash
# The shop's tables are renamed, moved, get and lose columns, and their keys another type, before the eyes of a session that goes on
# with them: patterns stay true, or PostgreSQL or they refuse, before anything is lost.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/shop.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning -c jit=off' PGDATABASE=dp_shop_alter
plan 19
ask() { psql -XqAt -v VERBOSITY=verbose -c "$1" 2>&1 | grep -v '^LOCATION\|^CONTEXT\|^SQL\|^PL'; }

psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_shop_alter WITH (FORCE)' -c 'CREATE DATABASE dp_shop_alter'
ask 'CREATE EXTENSION docpatterns; CREATE SCHEMA moved; ALTER DATABASE dp_shop_alter SET search_path = public, moved'
shop_fill dp_shop_alter plain

# Names
renamed= unrenamed=
quoted="\\set id '\"k ''e\"\"y\"'
\\set doc '\"do''\"\"c %s\"'"
for table in $shop_tables categories coupons; do
  new="\"An\"\"other '$table %s\""
  renamed="$renamed ALTER TABLE $table RENAME TO $new;" unrenamed="$unrenamed ALTER TABLE $new RENAME TO $table;"
  quoted="$quoted
\\set $table '\"An\"\"other ''$table %s\"'"
done
for table in $shop_tables; do
  new="\"An\"\"other '$table %s\""
  renamed="$renamed ALTER TABLE $new RENAME doc TO \"do'\"\"c %s\"; ALTER TABLE $new RENAME _id TO \"k 'e\"\"y\";"
  unrenamed="ALTER TABLE $new RENAME \"do'\"\"c %s\" TO doc; ALTER TABLE $new RENAME \"k 'e\"\"y\" TO _id; $unrenamed"
done
is "$(SHOP_NAMES=$quoted shop_alive dp_shop_alter "$renamed")" '' 'tables and columns get names that need quotes, and take writes'
is "$(SHOP_WERE=$quoted shop_alive dp_shop_alter "$unrenamed")" '' 'and their old names again'

# Schemas
there= back=
for table in $shop_tables categories coupons; do there="$there ALTER TABLE $table SET SCHEMA moved;" back="$back ALTER TABLE moved.$table SET SCHEMA public;"; done
is "$(shop_alive dp_shop_alter "$there")" '' 'tables move to another schema'
is "$(shop_alive dp_shop_alter "$back")" '' 'and back'
is "$(ask 'ALTER SCHEMA sessions RENAME TO "ses ""sions"' ; ask 'SELECT v FROM pattern_check() v'; ask 'ALTER SCHEMA "ses ""sions" RENAME TO sessions')" '' 'a space gets another name'

# Columns beside the key and the document
add= drop=
for table in $shop_tables; do add="$add ALTER TABLE $table ADD COLUMN extra int DEFAULT 1, ADD COLUMN more text;" drop="$drop ALTER TABLE $table DROP COLUMN more;"; done
is "$(shop_alive dp_shop_alter "$add")" '' 'columns are added'
is "$(shop_alive dp_shop_alter "$drop")" '' 'and dropped'
is "$(shop_alive dp_shop_alter "$(for t in makers reviews billing follows pages; do echo "ALTER TABLE $t DROP COLUMN gone, ALTER COLUMN beside TYPE numeric, DROP COLUMN note;"; done)")" '' 'also those that stood before the others, and others change their type'
is "$(ask 'ALTER TABLE products DROP COLUMN gone' | cut -c 1-62 | sed -n '1p;$p')" $'ERROR:  2BP01: cannot drop column gone of table products becau\nHINT:  Use DROP ... CASCADE to drop the dependent objects too.' 'a column that views show does not go without them'

# Types of keys
is "$(shop_alive dp_shop_alter "$(for t in reviews billing follows pages; do echo "ALTER TABLE $t ALTER COLUMN _id TYPE bigint;"; done)
  INSERT INTO reviews (_id, doc) VALUES (5000000000, '{product: 1, at: 1000, by: 2}'); INSERT INTO follows (_id, doc) VALUES (5000000000, '{reader: 1, writer: 2}'); INSERT INTO billing (_id, doc) VALUES (5000000000, '{email: \"big\", balance: 1}');")" '' 'keys become bigint'
is "$(shop_alive dp_shop_alter "$(for t in billing follows pages; do echo "ALTER TABLE $t ALTER COLUMN _id TYPE bson_value USING _id::bson_value;"; done)")" '' 'or bson_value'
for table in makers customers products orders screenings catalog prices; do refused="${refused:-}$(ask "ALTER TABLE $table ALTER COLUMN _id TYPE bigint" | head -1 | cut -c 1-50)
"; done
is "$(sort <<<"$refused" | uniq -c | sed '/^ *1 *$/d;s/^ *//')" '7 ERROR:  0A000: cannot alter type of a column used ' 'keys that views show and triggers compare keep their type'
ask "CREATE TABLE notes (id int PRIMARY KEY, doc bson); SELECT query_table_create('notes_by_a', source => 'notes', partition => '{a}'); INSERT INTO notes VALUES (1, '{a: 1}'); ALTER TABLE notes ALTER COLUMN id TYPE bigint" >/dev/null
is "$(ask "INSERT INTO notes VALUES (2, '{a: 1}')"; ask "SELECT pattern_disable('notes', 'notes_by_a'); SELECT query_table_create('notes_by_a', source => 'notes', partition => '{a}'); SELECT pattern_repair('notes', 'notes_by_a'); INSERT INTO notes VALUES (5000000000, '{a: 1}'); SELECT * FROM notes_by_a")" \
  $'ERROR:  55000: column "source_key" of query table "notes_by_a" differs from its declaration\nHINT:  Drop the query table with pattern_disable() and create it again.\n0\nnotes_by_a\n1\n1|1\n1|5000000000' 'a query table says what to do'
ask "CREATE TABLE letters (id int PRIMARY KEY, doc bson); SELECT outlier_enable('letters', 'b', 2), subset_fields_enable('letters', cold => '{a}'), kv_leaderboard('sessions', 'letters', 'letters', score_path => 'p');
  INSERT INTO letters SELECT i, bson_build('b', bson_array(1, 2, 3), 'a', i, 'p', i) FROM generate_series(1, 3) i; DROP VIEW letters_whole; ALTER TABLE letters ALTER COLUMN id TYPE bigint" >"$DP_WORK/letters"
is "$(ask "UPDATE letters SET doc = bson_set(doc, 'b', bson_array(5, 6, 7, 8)) WHERE id = 1" | cut -c 1-110; ask "INSERT INTO letters VALUES (5000000000, '{a: 1, p: 2}')" | cut -c 1-110)" \
  $'ERROR:  55000: side table "letters_b_extras" of pattern "b" must have a column "key" of type bigint\nHINT:  Restore the column with ALTER TABLE.\nERROR:  55000: side table "letters_a_cold" of pattern "a" must have a column "key" of type bigint\nHINT:  Restore the column with ALTER TABLE.' 'nor does a table beside take keys of another type'
is "$(ask "ALTER TABLE letters_b_extras ALTER COLUMN key TYPE bigint; ALTER TABLE letters_a_cold ALTER COLUMN key TYPE bigint; SELECT pattern_repair('letters', 'b'); INSERT INTO letters VALUES (5000000000, '{b: [7, 8, 9], a: 4, p: 4}');
  UPDATE letters SET doc = bson_set(doc, 'b', bson_array(5, 6, 7, 8)) WHERE id = 1; SELECT id, doc ->> 'b', doc ->> 'a' FROM letters_whole ORDER BY id; SELECT v FROM pattern_check() v")" $'0\n1|[5, 6, 7, 8, 3]|1\n2|[1, 2, 3]|2\n3|[1, 2, 3]|3\n5000000000|[7, 8, 9]|4' 'until it gets it, too'
ask 'DROP VIEW letters_whole; ALTER TABLE letters ALTER COLUMN id TYPE text; ALTER TABLE letters_b_extras ALTER COLUMN key TYPE text; ALTER TABLE letters_a_cold ALTER COLUMN key TYPE text' >"$DP_WORK/letters"
is "$(ask "SELECT DISTINCT name FROM pattern_check(); SELECT pattern_repair('letters', 'letters') > 0, pattern_repair('letters', 'b'); SELECT v FROM pattern_check() v; SELECT member FROM kv_zrange('sessions', 'letters', 0, 0)")" $'letters\nt|0\n"1"' 'members of a board that are of another kind are found and mended'
ask 'ALTER TABLE products DROP CONSTRAINT products_pkey' >/dev/null
is "$(ask "UPDATE products SET doc = bson_set(doc, 'price', 1)" | head -1)" 'ERROR:  55000: table "products" has no primary key' 'without a primary key nothing is written'
is "$(ask 'ALTER TABLE products ADD PRIMARY KEY (_id)'; shop_alive dp_shop_alter)" '' 'it can be made again'
is "$(ask 'ALTER TABLE products DROP COLUMN doc' | head -1 | cut -c 1-13; ask 'ALTER TABLE products ALTER COLUMN doc TYPE bytea USING doc::bytea' | head -1 | cut -c 1-13)" $'ERROR:  2BP01\nERROR:  0A000' 'documents stay documents'
psql -Xq -d postgres -c 'DROP DATABASE dp_shop_alter WITH (FORCE)'
