#!/bin/bash
# Dump and restore of a part of a database: schemas alone, relations with what lies beneath them, tables one after the other, the structure and then the data with
# maintenance. What is missing is told, and made again or done without, and patterns can be ended. (Whole
# databases: dump_restore.sh; each table alone: dump_tables.sh.)
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/everything.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning -c jit=off' PGUSER=dp_parts_owner

cleanup() {
  for db in dp_parts dp_parts_empty dp_parts_1 dp_parts_2; do psql -Xq -U postgres -d postgres -c "DROP DATABASE IF EXISTS $db WITH (FORCE)"; done
  psql -Xq -U postgres -d postgres -c 'DROP ROLE IF EXISTS dp_parts_owner'
}
trap cleanup EXIT
fresh() {  # fresh DATABASE; with the extension, which only a superuser can make
  psql -Xq -U postgres -d postgres -c "DROP DATABASE IF EXISTS $1 WITH (FORCE)" -c "CREATE DATABASE $1 TEMPLATE dp_parts_empty OWNER dp_parts_owner"
  for schema in derived stored "\"st'O.red\"" "\"o'S.chema\"" "\"d'S.chema\""; do psql -Xq -d "$1" -c "CREATE SCHEMA $schema"; done
}
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }  # ask DATABASE SQL
restore() { psql -Xq -d "$1" 2>&1 >/dev/null | grep -v 'must be owner of extension'; }  # restore DATABASE, from a text
cleanup 2>"$DP_WORK/cleanup"
psql -Xq -U postgres -d postgres -c 'CREATE ROLE dp_parts_owner LOGIN' -c 'CREATE DATABASE dp_parts_empty'
psql -Xq -U postgres -d dp_parts_empty -c 'CREATE EXTENSION docpatterns'
psql -Xq -U postgres -d postgres -c 'CREATE DATABASE dp_parts TEMPLATE dp_parts_empty OWNER dp_parts_owner'
everything_fill dp_parts
plan 33

# What a table that came alone can do, and what is said ---------------------------------------------------------------------------

fresh dp_parts_1
for table in books forms policies films sold; do pg_dump -t "stored.$table" dp_parts 2>/dev/null; done | psql -Xq dp_parts_1 >/dev/null 2>&1
ok 'the extras of a table that was restored alone are missed' grep -q 'extras table|present|missing' <(ask dp_parts_1 "SELECT * FROM pattern_check('stored.books')")
is "$(ask dp_parts_1 "INSERT INTO stored.books (doc) VALUES ('{_id: 20, b: [1]}'); UPDATE stored.books SET doc = bson_set(doc, 'title', 'x') WHERE _id = 1; SELECT count(*) FROM stored.books")" 10 'it takes typical documents'
ok 'the error for others says what to do' grep -q 'pattern_repair' <(ask dp_parts_1 "INSERT INTO stored.books (doc) VALUES ('{_id: 21, b: [1, 2, 3, 4]}')")
is "$(ask dp_parts_1 "SELECT pattern_repair('stored.books', accept_loss => true) > 0; INSERT INTO stored.books (doc) VALUES ('{_id: 21, b: [1, 2, 3, 4]}'); SELECT outlier_push('stored.books', 21, 5); SELECT outlier_count('stored.books', 21); SELECT * FROM pattern_check('stored.books')")" $'t\n1\n5' 'pattern_repair starts with no extras, and all is well'
ok 'a tree with lists of children misses what these have ceased to list' grep -q 'pattern_repair' <(ask dp_parts_1 "UPDATE stored.forms SET doc = bson_set(doc, 'up', 20) WHERE _id = 3")
is "$(ask dp_parts_1 "SELECT pattern_repair('stored.forms'); UPDATE stored.forms SET doc = bson_set(doc, 'up', 20) WHERE _id = 3; SELECT doc -> 'anc' FROM stored.forms WHERE _id = 11; SELECT v FROM pattern_check('stored.forms') v")" $'0\n[2, 6, 20, 3]' 'and follows moves when it is repaired'
is "$(ask dp_parts_1 "UPDATE stored.policies SET doc = bson_set(doc, 'x', 1)" | grep -c 'of table "policies" is missing')" 1 'a history that is missing is told'
is "$(ask dp_parts_1 "SELECT pattern_repair('stored.policies', accept_loss => true) >= 0; SELECT v FROM pattern_check('stored.policies') v; UPDATE stored.policies SET doc = bson_set(doc, 'x', 1) WHERE _id = 1; SELECT count(*) FROM stored.policies_history WHERE key = 1")" $'t\n2' 'and begins anew when it is repaired'
is "$(ask dp_parts_1 "SELECT pattern_repair('stored.films', 'releases'); SELECT v FROM pattern_check('stored.films') v; SELECT doc ->> 'release_US' FROM stored.films_wide WHERE _id = 5")" $'0\n5' 'attributes get their view back'
is "$(ask dp_parts_1 "SELECT pattern_disable('stored.films', 'releases'), pattern_disable('stored.films', 'specs'); SELECT doc FROM stored.films WHERE _id = 5")" '20|20
{"_id": 5, "release_US": 5, "release_UK": "x5", "color": "c", "size": {"height": 5}}' 'and can be put back'
is "$(ask dp_parts_1 "UPDATE stored.sold SET doc = bson_set(doc, 'u', 1); SELECT name, what, found FROM pattern_check('stored.sold'); SELECT pattern_disable('stored.sold', 'sold_by_user')")" $'sold_by_user|query table|missing\n0' 'a source is written to without its query table'

fresh dp_parts_1
pg_dump -t stored.goods dp_parts 2>/dev/null | restore dp_parts_1 >"$DP_WORK/errors"
is "$(cat "$DP_WORK/errors"; ask dp_parts_1 'SELECT found FROM pattern_check() v')" 'the tree of the attached documents in table "goods" does not exist' 'documents without their tree miss it'
is "$(ask dp_parts_1 "UPDATE stored.goods SET doc = bson_set(doc, 'n', 1) WHERE _id = 1; SELECT doc FROM stored.goods WHERE _id = 1")" '{"_id": 1, "cat": 1, "cats": [1], "depth": 1, "n": 1}' 'what does not need the tree can be written'
is "$(ask dp_parts_1 "UPDATE stored.goods SET doc = bson_set(doc, 'cat', 2) WHERE _id = 1" | head -1)" 'ERROR:  the tree of the attached documents in table "goods" does not exist' 'what needs it cannot'
pg_dump -t stored.readings dp_parts 2>/dev/null | psql -Xq dp_parts_1 >/dev/null 2>&1
is "$(ask dp_parts_1 'SELECT count(*) FROM stored.readings' | head -1)" 'ERROR:  a table that belongs to "readings" is missing' 'measurements without what lies beneath them are told apart from none'

fresh dp_parts_1
pg_dump -t 'stored.readings*' dp_parts 2>/dev/null | restore dp_parts_1 >"$DP_WORK/errors"
measured='SELECT count(*), md5(string_agg(r::text, chr(10) ORDER BY g, ts, note)) FROM stored.readings r'
is "$(cat "$DP_WORK/errors"; ask dp_parts_1 "$measured; SELECT * FROM pattern_check()")" "$(ask dp_parts "$measured")" 'one relation of measurements with what lies beneath it is the same, and true'
is "$(psql -XqAt -U postgres -d dp_parts_1 -c 'BEGIN; ALTER FOREIGN TABLE stored.readings OWNER TO postgres; SELECT DISTINCT relowner::regrole FROM pg_class WHERE relname LIKE $$readings%$$; ROLLBACK')" postgres 'which follows the owner'
is "$(ask dp_parts_1 'DROP TABLE stored.readings_packed' | grep -c 'because foreign table stored.readings requires it')" 1 'cannot be dropped by itself'
is "$(ask dp_parts_1 "DROP FOREIGN TABLE stored.readings; SELECT relname FROM pg_class WHERE relname ~ '^readings'")" '' 'and goes with the relation'

# Tables that belong together, one after the other, in both orders.
for order in 'patients doctors' 'doctors patients'; do
  fresh dp_parts_1
  for table in $order; do pg_dump -t "$table" dp_parts 2>/dev/null | psql -Xq dp_parts_1 >/dev/null 2>&1; done
  is "$(ask dp_parts_1 "SELECT * FROM pattern_check(); UPDATE doctors SET doc = bson_update(doc, '{\$addToSet: {patients: 4}}') WHERE _id = 3; SELECT doc -> 'doctors' FROM patients WHERE _id = 4; SELECT v FROM pattern_check() v")" "$(ask dp_parts "BEGIN; UPDATE doctors SET doc = bson_update(doc, '{\$addToSet: {patients: 4}}') WHERE _id = 3; SELECT doc -> 'doctors' FROM patients WHERE _id = 4; ROLLBACK")" "$order: true, and kept"
done

# Schemas alone ----------------------------------------------------------------------------------------------------------------

psql -Xq -U postgres -d postgres -c "CREATE DATABASE dp_parts_2 TEMPLATE dp_parts_empty OWNER dp_parts_owner"
pg_dump -n derived -n "\"d'S.chema\"" dp_parts | restore dp_parts_2 >"$DP_WORK/errors"
is "$(cat "$DP_WORK/errors"; ask dp_parts_2 'SELECT v FROM pattern_check() v'; PGOPTIONS="$PGOPTIONS -c search_path=derived,public" derived_alive dp_parts_2)" '' 'two schemas with what is derived are restored, true, and alive'
pg_dump -n stored -n "\"st'O.red\"" -n store dp_parts | restore dp_parts_2 >"$DP_WORK/errors"
is "$(cat "$DP_WORK/errors"; ask dp_parts_2 'SELECT v FROM pattern_check() v'; stored_writes | PGOPTIONS="$PGOPTIONS -c search_path=stored,public" psql -XqAt -v ON_ERROR_STOP=1 -d dp_parts_2 2>&1 | grep -av '^ok\(|ok\)*$')" '' 'and so are those of outliers, buckets, trees, walls and versions'
is "$(ask dp_parts_2 'DROP INDEX stored.changed_a; SELECT pattern_repair($$stored.changed$$); SELECT proname FROM pg_proc WHERE proname ~ $$changed_as$$ ORDER BY 1')" $'0\nchanged_as_v1\nchanged_as_v2' 'what an index used of a former step can go, and is gone'
is "$(ask dp_parts_2 "SELECT count(*) FROM pg_proc WHERE proname ~ '^(people|phones)_as'; DROP TABLE stored.phones, stored.people CASCADE; SELECT count(*) FROM pg_proc WHERE proname ~ '^(people|phones)_as'")" $'5\n0' 'functions of versions go with their tables'
is "$(ask dp_parts_2 "DROP TABLE store.keys, store.hashes, store.sets, store.scores, store.counts CASCADE; SELECT count(*) FROM pattern_list() WHERE rel::text LIKE 'store.%'; SELECT kv_exists('store', 'z')" | head -2)" $'0\nERROR:  schema "store" is not a key-value space' 'a space that was dropped is none'

# With maintenance -------------------------------------------------------------------------------------------------------------

# What patterns keep beside the tables is refused, everything else is kept anew, whatever the order of the tables. (Patients and doctors
# name each other, so neither can come first, and so do nodes; merged documents are there already.)
psql -Xq -U postgres -d postgres -c "DROP DATABASE dp_parts_2 WITH (FORCE)" -c "CREATE DATABASE dp_parts_2 TEMPLATE dp_parts_empty OWNER dp_parts_owner"
pg_dump --schema-only dp_parts | psql -Xq dp_parts_2 >/dev/null 2>&1
pg_dump --data-only dp_parts 2>/dev/null | psql -Xq dp_parts_2 2>"$DP_WORK/errors" >/dev/null
is "$(grep 'ERROR\|WARNING' "$DP_WORK/errors" | grep -v 'directly because a pattern maintains it\|belongs to a key-value space and cannot be written to directly\|must be owner of extension' | sed 's/"[a-z_]*_idx"/index/' | sort)" "$(sort <<'TEXT'
ERROR:  a document in collection "lendings" refers to a document that does not exist
ERROR:  a document in table "doctors" refers to a document that does not exist
ERROR:  a document in table "fans" refers to a document that does not exist
ERROR:  a document in table "mixed" refers to a document that does not exist
ERROR:  a document in table "mixed" refers to a document that does not exist
ERROR:  a document in table "patients" refers to a document that does not exist
ERROR:  duplicate key value violates unique constraint index
ERROR:  field "mixed" of table "mixed_once" shows rows of table "mixed", which has none for the document
ERROR:  field "n" of table "movies" is computed from table "screenings", which has no rows for the document
ERROR:  field "total" of table "made" is computed from table "screenings", which has no rows for the document
ERROR:  new elements of "reviews" in table "products" cannot become rows of table "reviews"
TEXT
)" 'structure, then data with maintenance: what is refused'
ask dp_parts_2 "DO \$\$ DECLARE d record; BEGIN FOR d IN SELECT rel, name FROM pattern_list() LOOP BEGIN PERFORM pattern_repair(d.rel, d.name); EXCEPTION WHEN OTHERS THEN RAISE WARNING '%: %', d.name, SQLERRM; END; END LOOP; END \$\$" >"$DP_WORK/repaired" 2>&1
is "$(cat "$DP_WORK/repaired"; ask dp_parts_2 "SELECT DISTINCT pattern, what FROM pattern_check()")" '' 'and what is left can be repaired'
# as pg_upgrade leaves it
everything_made dp_parts >"$DP_WORK/made"
psql -Xq -U postgres -d dp_parts -c "DELETE FROM pg_depend d USING pg_trigger t WHERE d.classid = 'pg_trigger'::regclass AND t.oid = d.objid AND t.tgname LIKE 'zz_docpatterns_%' AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> t.tgrelid"
is "$(everything_made dp_parts | diff - "$DP_WORK/made" | grep -c '^>')|$(ask dp_parts 'SELECT pattern_relink() > 100')|$(everything_made dp_parts | diff - "$DP_WORK/made" | head -3)" "$(ask dp_parts "SELECT count(*) FROM pg_depend d JOIN pg_trigger t ON t.oid = d.objid WHERE d.classid = 'pg_trigger'::regclass AND t.tgname LIKE 'zz_docpatterns_%' AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> t.tgrelid")|t|" 'dependencies that are lost are recorded again'
is "$(psql -XqAt -U postgres -d dp_parts -c 'SET ROLE pg_read_all_data' -c "SELECT pattern_relink('movies')" 2>&1)" 'ERROR:  must be owner of table "movies"' 'by the owner'
is "$(ask dp_parts_2 'DROP TABLE game.keys' | head -1)" 'ERROR:  cannot drop table game.keys because other objects depend on it' 'boards need their space'
is "$(psql -XqAt -U postgres -d dp_parts_2 -c 'DROP EXTENSION docpatterns' 2>&1 | head -1)" 'ERROR:  cannot drop extension docpatterns because tables contain documents' 'the extension stays where its patterns are'
is "$(psql -XqAt -U postgres -d dp_parts -c "DROP EXTENSION docpatterns CASCADE; SELECT count(*) >= 5 FROM game.keys; SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'zz_docpatterns%'" 2>&1)" $'t\n0' 'without it keys are still there, and no trigger is left'
