#!/bin/bash
# Dump and restore of derived data: every declaration arrives, what it keeps is what it was, and goes on being kept.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/derived.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning'
plan 43

fresh() {  # fresh DATABASE [SQL]
  psql -Xqc "DROP DATABASE IF EXISTS $1 WITH (FORCE)" -c "CREATE DATABASE $1" postgres
  [ $# = 1 ] || psql -Xqc "$2" "$1"
}
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }  # ask DATABASE SQL

fresh dp_derived 'CREATE EXTENSION docpatterns'
derived_fill dp_derived
list="SELECT rel, pattern, name, options FROM pattern_list() ORDER BY rel::text, 2, 3"
triggers="SELECT tgrelid::regclass, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname LIKE 'zz_docpatterns_%' ORDER BY tgrelid::regclass::text, tgname"
depends="SELECT pg_describe_object(classid, objid, objsubid), pg_describe_object(refclassid, refobjid, refobjsubid), deptype FROM pg_depend
  WHERE classid IN ('pg_trigger'::regclass, 'pg_class'::regclass) AND refclassid IN ('pg_class'::regclass) AND refobjid >= 16384 AND pg_describe_object(classid, objid, objsubid) !~ 'toast' ORDER BY 1 COLLATE \"C\", 2 COLLATE \"C\", 3"
wanted_list=$(ask dp_derived "$list") wanted_rows=$(derived_rows dp_derived) wanted_triggers=$(ask dp_derived "$triggers") wanted_depends=$(ask dp_derived "$depends")
is "$(ask dp_derived 'SELECT count(*) FROM pattern_list()')" 22 'many patterns are declared'
is "$(ask dp_derived 'SELECT v FROM pattern_check() v')" '' 'and true'
is "$(derived_alive dp_derived)" '' 'and alive'

same() {  # same DATABASE NAME
  is "$(ask "$1" "$list")" "$wanted_list" "$2: the declarations are the same"
  is "$(derived_rows "$1")" "$wanted_rows" "$2: so is every row"
  is "$(ask "$1" "$triggers")" "$wanted_triggers" "$2: and every trigger"
  [ "$(ask "$1" "$depends")" = "$wanted_depends" ] || diff <(ask "$1" "$depends") <(printf '%s\n' "$wanted_depends") | sed 's/^/# /' | head
  is "$(ask "$1" "$depends")" "$wanted_depends" "$2: and every dependency"
  is "$(ask "$1" 'SELECT v FROM pattern_check() v')" '' "$2: the patterns are true"
  is "$(derived_alive "$1")" '' "$2: and alive"
}

fresh dp_derived_copy
pg_dump dp_derived 2>"$DP_WORK/errors" >"$DP_WORK/first.sql"
psql -Xq dp_derived_copy <"$DP_WORK/first.sql" 2>>"$DP_WORK/errors" >/dev/null
is "$(cat "$DP_WORK/errors")" '' 'pg_dump | psql says nothing'
same dp_derived_copy 'pg_dump | psql'
pg_dump dp_derived_copy >"$DP_WORK/second.sql"
# (what was tried in it has used up numbers of sequences)
is "$(diff <(grep -v '^.\(un\)\?restrict\|setval' "$DP_WORK/first.sql") <(grep -v '^.\(un\)\?restrict\|setval' "$DP_WORK/second.sql") | head -5)" '' 'a dump of the copy is the same text'

# the copy is the source from here on: what is restored was restored before
fresh dp_derived_third
pg_dump -Fc dp_derived_copy >"$DP_WORK/custom" 2>"$DP_WORK/errors"
pg_restore -j2 -d dp_derived_third "$DP_WORK/custom" 2>>"$DP_WORK/errors"
is "$(cat "$DP_WORK/errors")" '' 'pg_restore -j2 says nothing'
same dp_derived_third 'pg_restore -j2'

pg_dump --schema-only dp_derived >"$DP_WORK/schema.sql"
pg_dump --data-only dp_derived 2>/dev/null >"$DP_WORK/data.sql"
fresh dp_derived_third
psql -Xq dp_derived_third <"$DP_WORK/schema.sql" 2>"$DP_WORK/errors" >/dev/null
{ echo 'SET docpatterns.maintain = off;'; cat "$DP_WORK/data.sql"; } | psql -Xq dp_derived_third 2>>"$DP_WORK/errors" >/dev/null
is "$(cat "$DP_WORK/errors")" '' 'the structure, then the data without maintenance'
same dp_derived_third 'structure, then data without maintenance'

# With maintenance: what patterns keep beside the tables is refused, everything else is derived anew, whatever the order of the tables.
fresh dp_derived_third
psql -Xq dp_derived_third <"$DP_WORK/schema.sql" 2>"$DP_WORK/errors" >/dev/null
psql -Xq dp_derived_third <"$DP_WORK/data.sql" 2>>"$DP_WORK/errors" >/dev/null
is "$(grep 'ERROR\|WARNING' "$DP_WORK/errors" | grep -v 'is kept by a pattern and cannot be written to directly' | head -5)" '' 'the structure, then the data with maintenance: nothing is refused but what patterns keep'
is "$(ask dp_derived_third 'SELECT v FROM pattern_check() v')" '' 'structure, then data with maintenance: true'

# One table alone: what is missing is told, writes of what does not need it go through, and the pattern can be ended.
for table in movies screenings made products reviews films orders customers items pages cities votes sales categories target_parts source_parts; do
  fresh dp_derived_third 'CREATE EXTENSION docpatterns'
  pg_dump -t "$table" -t "${table}_[0-9]" dp_derived 2>/dev/null | psql -Xq dp_derived_third >/dev/null 2>"$DP_WORK/errors"
  {
    ask dp_derived_third "SELECT 'other: ' || v::text FROM pattern_check('$table') v WHERE (v.found IS DISTINCT FROM 'missing' OR v.expected <> 'present') AND v.what NOT LIKE '%age of the queue%'"
    ask dp_derived_third "BEGIN; UPDATE $table SET doc = bson_set(doc, 'new', 1); DELETE FROM $table; ROLLBACK" | grep -v 'the slots of the approximation\|the cold fields of\|^HINT'
    ask dp_derived_third "SELECT pattern_disable('$table', name) FROM pattern_list('$table')" | grep -v '^[0-9]*$'
    ask dp_derived_third "SELECT pattern_check(); SELECT pattern_list(); DROP TABLE $table"
  } >>"$DP_WORK/errors" 2>&1
  is "$(cat "$DP_WORK/errors")" '' "$table alone is restored"
done
psql -Xqc 'DROP DATABASE dp_derived' -c 'DROP DATABASE dp_derived_copy' -c 'DROP DATABASE dp_derived_third' postgres
