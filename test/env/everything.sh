# For the scripts that prove dumps and upgrades, which source it: one database with every pattern, every type and every kind of index.
# It is what shapes.sh, derived.sh and stored.sh make, each in a schema of its own.
#
#   everything_fill DATABASE    makes it all (the database has the extension)
#   everything_rows DATABASE    prints how many rows each table has, and a sum over the bytes of all their values
#   everything_made DATABASE    prints declarations, triggers, options of relations and dependencies
#   everything_alive DATABASE   writes through every pattern, commits, and prints what is wrong: nothing; with a second argument
#                               ("undone") nothing is committed
#   everything_text DATABASE [OPTION...]   its dump as text, without what differs from dump to dump
. "$DP_TOP/test/env/shapes.sh"
. "$DP_TOP/test/env/derived.sh"
. "$DP_TOP/test/env/stored.sh"

everything_fill() {
  psql -Xq -d "$1" -c 'CREATE SCHEMA derived' -c 'CREATE SCHEMA stored'
  shapes_fill "$1"
  PGOPTIONS="${PGOPTIONS:-} -c search_path=derived,public" derived_fill "$1"
  PGOPTIONS="${PGOPTIONS:-} -c search_path=stored,public" stored_fill "$1"
}

everything_rows() {
  psql -XqAt -d "$1" 2>&1 <<'SQL'
SET timezone = 'UTC';
SET search_path = pg_catalog;
-- arrays and composite values carry the OIDs of types in their bytes, and regclass is one
SELECT format('SELECT %L, count(*), md5(coalesce(string_agg(r, E''\n'' ORDER BY r COLLATE "C"), '''')) FROM (SELECT concat_ws(''|'', %s) FROM %s) t (r)', c.oid::regclass,
    string_agg(CASE WHEN t.typcategory IN ('A', 'C') OR t.typname LIKE 'reg%' THEN format('coalesce(%I::text, ''-'')', a.attname) ELSE format('coalesce(%s(%I), ''-'')', t.typsend, a.attname) END, ', ' ORDER BY a.attnum), c.oid::regclass)
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped JOIN pg_type t ON t.oid = a.atttypid
  WHERE c.relkind IN ('r', 'f') AND c.oid >= 16384 AND c.relnamespace NOT IN ('docpatterns'::regnamespace) GROUP BY c.oid ORDER BY c.oid::regclass::text COLLATE "C" \gexec
SQL
}

everything_made() {
  psql -XqAt -d "$1" 2>&1 <<'SQL'
SELECT rel, pattern, name, options FROM pattern_list() ORDER BY rel::text COLLATE "C", pattern COLLATE "C", name COLLATE "C";
SELECT tgrelid::regclass, pg_get_triggerdef(oid), tgenabled, tgparentid <> 0 FROM pg_trigger WHERE tgname LIKE 'zz_docpatterns_%' ORDER BY tgrelid::regclass::text COLLATE "C", tgname COLLATE "C";
SELECT oid::regclass, relkind, reloptions, obj_description(oid, 'pg_class'), relowner::regrole, relreplident, relrowsecurity FROM pg_class WHERE relkind NOT IN ('t', 'c') AND relnamespace <> 'pg_toast'::regnamespace AND oid >= 16384 ORDER BY oid::regclass::text COLLATE "C";
SELECT t, r, deptype FROM (SELECT pg_describe_object(classid, objid, objsubid), pg_describe_object(refclassid, refobjid, refobjsubid), deptype FROM pg_depend
  WHERE classid IN ('pg_trigger'::regclass, 'pg_class'::regclass, 'pg_proc'::regclass) AND refclassid = 'pg_class'::regclass AND refobjid >= 16384) d (t, r, deptype) WHERE t !~ 'toast' ORDER BY t COLLATE "C", r COLLATE "C", deptype;
SQL
}

everything_alive() {
  {
    echo 'BEGIN;'
    { shapes_writes; echo 'SET search_path = derived, public;'; derived_writes; echo 'SET search_path = stored, public;'; stored_writes | grep -v '^CREATE FUNCTION pg_temp'; } | grep -v '^BEGIN;$\|^ROLLBACK;$\|^SELECT v FROM pattern_check() v;$'
    if [ "${2:-}" = undone ]; then echo 'SELECT v FROM pattern_check() v; ROLLBACK;'; else echo 'COMMIT; SELECT v FROM pattern_check() v;'; fi
  } | psql -XqAt -v ON_ERROR_STOP=1 -d "$1" 2>&1 | grep -av '^ok\(|ok\)*$'
}

everything_text() {
  local database=${1//\\/\\\\}
  shift
  pg_dump "$@" -d "dbname='${database//\'/\\\'}'" 2>/dev/null | grep -av '^.\(un\)\?restrict\|^--'
}
