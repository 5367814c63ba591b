#!/bin/bash
# Tables with derived data are renamed, moved, given away, changed and dropped, and patterns end and begin again.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/derived.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning' PGDATABASE=dp_derived_tables
tables="movies screenings made target_parts source_parts categories sales products reviews notes films customers orders posts suppliers items pages cities votes"
plan $((13 + 2 * $(echo $tables | wc -w)))
ask() { psql -XqAt -v ON_ERROR_STOP=1 -c "$1" 2>&1; }

psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_derived_tables WITH (FORCE)' -c 'DROP ROLE IF EXISTS dp_new_owner' -c 'CREATE DATABASE dp_derived_tables' -c 'CREATE ROLE dp_new_owner'
ask 'CREATE EXTENSION docpatterns; CREATE SCHEMA moved; GRANT ALL ON SCHEMA public, moved TO dp_new_owner'
derived_fill dp_derived_tables

# Tables are renamed, moved to another schema, get and lose columns, before the eyes of a session that goes on with them.
changes=
for table in $tables; do
  changes="$changes ALTER TABLE $table RENAME TO \"An\"\"other 'n%s\"; ALTER TABLE \"An\"\"other 'n%s\" ADD COLUMN extra int DEFAULT 1, ADD COLUMN gone text; ALTER TABLE \"An\"\"other 'n%s\" SET SCHEMA moved;
    ALTER TABLE moved.\"An\"\"other 'n%s\" DROP COLUMN gone; ALTER TABLE moved.\"An\"\"other 'n%s\" RENAME TO $table;"
done
ask 'ALTER DATABASE dp_derived_tables SET search_path = public, moved'
is "$(derived_alive dp_derived_tables "$changes SELECT 'check ' || v::text FROM pattern_check() v")" '' 'tables are renamed, moved and changed while somebody writes to them'
back=
for table in $tables; do back="$back ALTER TABLE moved.$table SET SCHEMA public; ALTER TABLE $table DROP COLUMN extra;"; done
is "$(derived_alive dp_derived_tables "$back")" '' 'and back'
ask "ALTER TABLE made RENAME TO \"An\"\"other 'n%s\"; ALTER TABLE reviews RENAME TO \"Third 'n%s\"; ALTER TABLE customers RENAME TO \"Fourth 'n%s\"; ALTER TABLE sales RENAME TO \"Fifth 'n%s\"; ALTER TABLE source_parts RENAME TO \"Sixth 'n%s\"; ALTER TABLE votes RENAME TO \"7 'n%s\"" >"$DP_WORK/renamed" 2>&1
is "$(ask "SELECT computed_refresh('\"An\"\"other ''n%s\"'); INSERT INTO screenings (doc) VALUES ('{_id: 900, movie: \"m9\", x: 1, i: 9}'); INSERT INTO \"Third 'n%s\" (doc) VALUES ('{_id: 900, product: 1, date: 1000}');
  UPDATE \"Fourth 'n%s\" SET doc = bson_set(doc, 'name', 'Fourth'); DELETE FROM \"Fifth 'n%s\" WHERE _id = 4; DELETE FROM \"Sixth 'n%s\" WHERE id < 20; SELECT approximation_add('\"7 ''n%s\"', 1, 2);
  SELECT v FROM pattern_check() v; SELECT computed_refresh('\"An\"\"other ''n%s\"')")" $'1\nt\n1' 'under names that need quotes'
ask "ALTER TABLE \"An\"\"other 'n%s\" RENAME TO made; ALTER TABLE \"Third 'n%s\" RENAME TO reviews; ALTER TABLE \"Fourth 'n%s\" RENAME TO customers; ALTER TABLE \"Fifth 'n%s\" RENAME TO sales; ALTER TABLE \"Sixth 'n%s\" RENAME TO source_parts; ALTER TABLE \"7 'n%s\" RENAME TO votes" >"$DP_WORK/renamed" 2>&1
psql -Xq -d postgres -c 'DROP DATABASE dp_derived_tables WITH (FORCE)' -c 'CREATE DATABASE dp_derived_tables'
ask 'CREATE EXTENSION docpatterns; CREATE SCHEMA moved; GRANT ALL ON SCHEMA public, moved TO dp_new_owner'
derived_fill dp_derived_tables

ask "DO \$\$ DECLARE c record; BEGIN FOR c IN SELECT oid::regclass AS rel FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace IN ('public'::regnamespace, '\"d''S.chema\"'::regnamespace)
    AND NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = pg_class.oid AND tgname LIKE '%guard') LOOP EXECUTE format('ALTER TABLE %s OWNER TO dp_new_owner', c.rel); END LOOP; END \$\$; GRANT ALL ON SCHEMA \"d'S.chema\" TO dp_new_owner"
is "$(ask "SELECT oid::regclass FROM pg_class WHERE relkind IN ('r', 'p', 'v') AND relnamespace IN ('public'::regnamespace, '\"d''S.chema\"'::regnamespace) AND relowner <> 'dp_new_owner'::regrole AND NOT relispartition AND relname !~ '^pg_'
  AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_class'::regclass AND e.objid = pg_class.oid AND e.deptype = 'e')")" '' 'what patterns keep follows its table to a new owner'
is "$(PGOPTIONS="$PGOPTIONS -c role=dp_new_owner" derived_alive dp_derived_tables)" '' 'for the new owner too'

# A table is not dropped by accident, and what was made for it goes along.
left="SELECT format('%s of %s', t.tgname, t.tgrelid::regclass) FROM pg_trigger t, LATERAL (SELECT string_to_array(encode(tgargs, 'escape'), '\\000') AS a) x WHERE tgname LIKE 'zz\\_docpatterns%' AND tgnargs = 3 AND tgparentid = 0 AND x.a[1] <> 'anchor'
    AND NOT EXISTS (SELECT FROM pg_trigger m WHERE m.tgnargs = 1 AND position(x.a[2] IN encode(m.tgargs, 'escape')) > 0)
  UNION ALL SELECT format('%s of %s', t.tgname, t.tgrelid::regclass) FROM pg_trigger t WHERE tgname LIKE 'zz\\_docpatterns%' AND tgnargs = 2 AND tgparentid = 0
    AND NOT EXISTS (SELECT FROM pg_trigger m WHERE m.tgnargs = 1 AND m.tgrelid = t.tgrelid AND m.tgfoid = t.tgfoid)
  UNION ALL SELECT a.trigger_name FROM pg_class c CROSS JOIN LATERAL docpatterns._pattern_anchors(c.oid) a WHERE c.relhastriggers
    AND NOT EXISTS (SELECT FROM docpatterns._pattern_declarations(NULL) d WHERE d.rel = c.oid AND d.name = a.label OR a.label IN (bson_get_text(d.options, 'link_id'), bson_get_text(d.options, 'second_link_id')))
  UNION ALL SELECT 'relation ' || c.oid::regclass FROM pg_class c WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname ~ '_(queue|shards|cold)\$|^by_'
    AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname LIKE '%guard')"
is "$(ask "$left")" '' 'nothing lies about'
for table in $tables; do
  case $table in
    pages|cities) is "$(ask "BEGIN; DROP TABLE $table; $left; ROLLBACK")" '' "$table: nobody needs it" ;;
    *) is "$(ask "DROP TABLE $table" | grep -c "cannot drop table $table because other objects depend on it")" 1 "$table: is not dropped without CASCADE" ;;
  esac
  case $table in   # those that are left take writes
    movies|made|products) others="INSERT INTO screenings (doc) VALUES ('{_id: 500, movie: \"m1\", x: 1, i: 9}'); DELETE FROM reviews; TRUNCATE notes" ;;
    screenings) others="UPDATE movies SET doc = bson_set(doc, 'n', 7); INSERT INTO movies (doc) VALUES ('{_id: 77, title: \"m1\"}'); DELETE FROM made" ;;
    reviews|notes) others="UPDATE products SET doc = bson_unset(doc, 'reviews'); INSERT INTO products (doc) VALUES ('{_id: 77}'); DELETE FROM products" ;;
    customers|suppliers) others="UPDATE orders SET doc = bson_set(doc, 'customer', 3); INSERT INTO items (doc) VALUES ('{_id: 77, supplier: 12}'); DELETE FROM posts" ;;
    orders|posts|items) others="UPDATE customers SET doc = bson_set(doc, 'name', 99); DELETE FROM suppliers" ;;
    categories|sales) others="SELECT 1 WHERE false" ;;
    target_parts) others="INSERT INTO source_parts SELECT i, bson_build('a', 1, 'x', i) FROM generate_series(500, 503) i; DELETE FROM source_parts" ;;
    source_parts) others="UPDATE target_parts SET doc = '{}', id = id + 50; DELETE FROM target_parts" ;;
    *) others="SELECT 1 WHERE false" ;;
  esac
  is "$(ask "BEGIN; DROP TABLE $table CASCADE; $left; $others; SELECT v FROM pattern_check() v; ROLLBACK")" '' "$table: nothing is left when it is dropped with CASCADE, and the others take writes"
done

# Disabled and declared again: with the data and without.
declarations="SELECT format('%s|%s|%s', rel, pattern, name) FROM pattern_list() WHERE pattern <> 'tree' ORDER BY 1"
again() {  # again KEEP
  ask "SELECT format('%s %s: %s', rel, name, pattern_disable(rel, name, keep_data => $1)) FROM pattern_list()" >"$DP_WORK/disabled" 2>&1
  is "$(grep ERROR "$DP_WORK/disabled")" '' "all are disabled (keep_data => $1)"
  is "$(ask "SELECT pattern_list(); SELECT tgname FROM pg_trigger WHERE tgname LIKE 'zz\\_docpatterns%' AND tgname !~ '_collection'")" '' 'and no trigger is left'
}
again false
is "$(ask "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v') AND relnamespace::regnamespace::text IN ('public', '\"d''S.chema\"') AND relname ~ '_(queue|shards|cold|whole|view)\$|^by_'")" '' 'nor a table or view'
is "$(ask "SELECT DISTINCT bson_keys(doc) FROM (SELECT doc FROM movies UNION ALL SELECT doc FROM made UNION ALL SELECT doc FROM products UNION ALL SELECT doc FROM target_parts) d; SELECT doc FROM votes WHERE _id = 1; SELECT doc FROM films WHERE _id = 1" | sort)" $'_id\ntitle\n{"_id": 1, "likes": 8}\n{"_id": 1, "title": "f1", "cast": {"main": 1, "full": [1, 2, 1]}, "specs": {"a": 1}}' 'documents are what they were without the patterns'
psql -Xq -d postgres -c 'DROP DATABASE dp_derived_tables WITH (FORCE)' -c 'CREATE DATABASE dp_derived_tables'
ask 'CREATE EXTENSION docpatterns'
derived_fill dp_derived_tables
again true
is "$(ask "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v') AND relnamespace::regnamespace::text IN ('public', '\"d''S.chema\"') AND relname ~ '_(queue|shards|cold|whole|view)\$|^by_' ORDER BY 1" | tr '\n' ' ')" "T \"t%s_ap '\"%s_shards by_category by_time films_cold_cold votes_likes_shards " 'totals and what lay aside are kept'
psql -Xq -d postgres -c 'DROP DATABASE dp_derived_tables WITH (FORCE)' -c 'DROP ROLE dp_new_owner'
