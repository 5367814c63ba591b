#!/bin/bash
# What settings of a database change in how PostgreSQL reads and shows things, and comments, change nothing in what the extension does:
# patterns of every kind are declared, written to, checked, repaired and ended under settings that hardly anyone chooses, and in a copy
# that was dumped without comments and in which all that was made has got one. What is left is the same as in an ordinary database.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/everything.sh"
set -u
export PGOPTIONS='-c client_min_messages=error -c jit=off'
cd "$DP_TOP" || exit 1
plan 18

databases='dp_plain dp_hostile dp_bare'
cleanup() { for db in $databases; do psql -Xq -d postgres -c "DROP DATABASE IF EXISTS $db WITH (FORCE)"; done; }
trap cleanup EXIT
cleanup 2>/dev/null
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }  # ask DATABASE SQL

# What there is, without what is numbered as it comes
left() {
  ask "$1" "SELECT kind, object FROM (
    SELECT c.relkind::text, c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname !~ '^pg_|^information_schema|^docpatterns' AND c.relkind IN ('r', 'p', 'v', 'i', 'I', 'f')
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
    UNION ALL SELECT 'function', f.oid::regprocedure::text FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace WHERE n.nspname !~ '^pg_|^information_schema'
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = f.oid AND d.deptype = 'e')
    UNION ALL SELECT 'trigger', tgrelid::regclass || ' ' || tgname FROM pg_trigger WHERE tgname LIKE 'zz%docpatterns%') AS o (kind, object) " | sed 's/"//g' | LC_ALL=C sort
}
# Repairs all declarations, and then ends them; prints what went wrong
through() {
  ask "$1" "DO \$x\$ DECLARE d record; BEGIN
    FOR d IN SELECT rel, name FROM pattern_list() WHERE pattern <> 'polymorphic_variant' ORDER BY pattern, rel::text, name LOOP
      BEGIN PERFORM $2(d.rel, d.name); EXCEPTION WHEN OTHERS THEN RAISE WARNING '% of % %: % %', '$2', d.rel, d.name, SQLSTATE, SQLERRM; END;
    END LOOP; END \$x\$" | grep -v '^CONTEXT\|^PL/pgSQL\|^SQL statement' | sed 's/"//g'
}

psql -Xq -d postgres -c 'CREATE DATABASE dp_plain' -c 'CREATE DATABASE dp_hostile'
psql -Xq -d dp_plain -c 'CREATE EXTENSION docpatterns'
psql -Xq -d dp_hostile -c 'CREATE EXTENSION docpatterns' 2>&1 -f - <<'SQL'
ALTER DATABASE dp_hostile SET quote_all_identifiers = on;
ALTER DATABASE dp_hostile SET array_nulls = off;
ALTER DATABASE dp_hostile SET transform_null_equals = on;
ALTER DATABASE dp_hostile SET bytea_output = escape;
ALTER DATABASE dp_hostile SET DateStyle = 'SQL, DMY';
ALTER DATABASE dp_hostile SET IntervalStyle = sql_standard;
ALTER DATABASE dp_hostile SET extra_float_digits = -15;
ALTER DATABASE dp_hostile SET check_function_bodies = off;
ALTER DATABASE dp_hostile SET plan_cache_mode = force_generic_plan;
ALTER DATABASE dp_hostile SET join_collapse_limit = 1;
ALTER DATABASE dp_hostile SET from_collapse_limit = 1;
ALTER DATABASE dp_hostile SET constraint_exclusion = on;
ALTER DATABASE dp_hostile SET escape_string_warning = off;
SQL
everything_fill dp_plain
everything_fill dp_hostile
is "$(diff <(left dp_plain) <(left dp_hostile))" '' 'declarations make the same under hostile settings'
# (what the writes print is compared with dates and numbers as they are usually shown)
is "$(PGOPTIONS="$PGOPTIONS -c DateStyle=ISO -c extra_float_digits=1" everything_alive dp_hostile)" '' 'writes are kept in line'
everything_alive dp_plain >/dev/null
# the text of the files above could not be read with this one
psql -Xq -d dp_hostile -c 'ALTER DATABASE dp_hostile SET standard_conforming_strings = off'
is "$(ask dp_hostile 'SHOW standard_conforming_strings' ; ask dp_hostile 'SHOW quote_all_identifiers')" $'off\non' 'strings with backslashes mean something else now'

is "$(ask dp_hostile "SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
  WHERE strpos(regexp_replace(p.prosrc, 'E''([^'']|'''')*''', '', 'g'), chr(92)) > 0 AND NOT 'standard_conforming_strings=on' = ANY (coalesce(p.proconfig, '{}'))")" '' 'and no function of the extension has any'

# the same data, no comments, and then a comment on everything
psql -Xq -d postgres -c 'CREATE DATABASE dp_bare'
pg_dump -Fc --no-comments -f "$DP_WORK/bare" dp_plain
is "$(pg_restore -j2 -d dp_bare "$DP_WORK/bare" 2>&1 | head -5)" '' 'a dump without comments is restored'
ask dp_bare "DO \$x\$ DECLARE o text; BEGIN
  FOR o IN SELECT format('%s %s', CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'i' THEN 'INDEX' WHEN 'I' THEN 'INDEX' ELSE 'TABLE' END, c.oid::regclass) FROM pg_class c
           WHERE c.relkind IN ('r', 'p', 'v', 'i', 'I', 'f') AND c.oid >= 16384 AND c.relnamespace NOT IN ('docpatterns'::regnamespace, 'pg_toast'::regnamespace) LOOP
    EXECUTE format('COMMENT ON %s IS %L', o, 'mine');
  END LOOP; END \$x\$"

was=$(left dp_plain)
for db in $databases; do
  is "$(ask $db 'SELECT v FROM pattern_check() v')" '' "$db: the check finds nothing"
  is "$(through $db pattern_repair)" '' "$db: all can be repaired"
  is "$(diff <(echo "$was") <(left $db))" '' "$db: which makes nothing a second time"
done
through dp_plain pattern_disable >"$DP_WORK/ended"; left dp_plain >"$DP_WORK/left"
for db in dp_hostile dp_bare; do
  is "$(through $db pattern_disable)" "$(cat "$DP_WORK/ended")" "$db: all can be ended"
  is "$(diff <(left dp_plain) <(left $db))" '' "$db: and as much is left"
done
