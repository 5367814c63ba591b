#!/bin/bash
# Dump and restore of documents' shapes, of what belongs together and of what happened, by their owner, who is no superuser: every
# declaration arrives, what it keeps is what it was, and goes on being kept.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/shapes.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning' PGUSER=dp_shapes_owner
plan 37

cleanup() {
  for db in dp_shapes_empty dp_shapes 'dp shapes, "copy"' dp_shapes_third; do psql -Xq -U postgres -d postgres -c "DROP DATABASE IF EXISTS \"${db//\"/\"\"}\" WITH (FORCE)"; done
  psql -Xq -U postgres -d postgres -c 'DROP ROLE IF EXISTS dp_shapes_owner'
}
fresh() {  # fresh DATABASE; with the extension, which only a superuser can make
  psql -Xq -U postgres -d postgres -c "DROP DATABASE IF EXISTS \"${1//\"/\"\"}\" WITH (FORCE)" -c "CREATE DATABASE \"${1//\"/\"\"}\" TEMPLATE dp_shapes_empty OWNER dp_shapes_owner"
}
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }  # ask DATABASE SQL
# what is said of the extension, which is there already and belongs to somebody else
errors() { grep -v 'must be owner of extension docpatterns\|errors ignored on restore: 1\|Command was: COMMENT ON EXTENSION docpatterns\|TOC entry .* COMMENT EXTENSION docpatterns\|^pg_restore: while PROCESSING TOC\|^pg_restore: from TOC entry\|^$' "$DP_WORK/errors" | head -5; }
unsaid() { grep -v '^.\(un\)\?restrict\|setval' "$1"; }

cleanup
psql -Xq -U postgres -d postgres -c 'CREATE ROLE dp_shapes_owner LOGIN' -c 'CREATE DATABASE dp_shapes_empty'
psql -Xq -U postgres -d dp_shapes_empty -c 'CREATE EXTENSION docpatterns'
fresh dp_shapes
shapes_fill dp_shapes
wanted_rows=$(shapes_rows dp_shapes) wanted_made=$(shapes_made dp_shapes)
is "$(ask dp_shapes 'SELECT count(DISTINCT pattern) FROM pattern_list()')" 15 'many patterns are declared'
is "$(ask dp_shapes 'SELECT v FROM pattern_check() v')" '' 'and true'
is "$(shapes_alive dp_shapes)" '' 'and alive'
is "$(shapes_rows dp_shapes | md5sum)" "$(md5sum <<<"$wanted_rows")" 'without a trace'

same() {  # same DATABASE NAME
  is "$(diff <(shapes_rows "$1") - <<<"$wanted_rows" | head -5)" '' "$2: every row is the same"
  is "$(diff <(shapes_made "$1") - <<<"$wanted_made" | head -5)" '' "$2: so is all that was made"
  is "$(ask "$1" 'SELECT v FROM pattern_check() v')" '' "$2: the patterns are true"
  is "$(shapes_alive "$1")" '' "$2: and alive"
}

# into a database of another name
copy='dp shapes, "copy"'
fresh "$copy"
pg_dump dp_shapes 2>"$DP_WORK/errors" >"$DP_WORK/first.sql"
psql -Xq "$copy" <"$DP_WORK/first.sql" 2>>"$DP_WORK/errors" >/dev/null
is "$(errors)" '' 'pg_dump | psql says nothing'
# (what is tried in it uses up numbers of sequences)
pg_dump -d "dbname='$copy'" >"$DP_WORK/second.sql"
is "$(diff <(grep -v '^.\(un\)\?restrict' "$DP_WORK/first.sql") <(grep -v '^.\(un\)\?restrict' "$DP_WORK/second.sql") | head -5)" '' 'a dump of the copy is the same text'
same "$copy" 'pg_dump | psql'

# the copy is the source from here on: what is restored was restored before
fresh dp_shapes_third
rm -rf "$DP_WORK/directory"
pg_dump -Fd -j2 -f "$DP_WORK/directory" -d "dbname='$copy'" 2>"$DP_WORK/errors"
pg_restore -j2 -d dp_shapes_third "$DP_WORK/directory" 2>>"$DP_WORK/errors"
is "$(errors)" '' 'a directory, with two jobs, says nothing'
same dp_shapes_third 'a directory with two jobs'

pg_dump --schema-only dp_shapes >"$DP_WORK/schema.sql"
pg_dump --data-only dp_shapes 2>/dev/null >"$DP_WORK/data.sql"
fresh dp_shapes_third
psql -Xq dp_shapes_third <"$DP_WORK/schema.sql" 2>"$DP_WORK/errors" >/dev/null
{ echo 'SET docpatterns.maintain = off;'; cat "$DP_WORK/data.sql"; } | psql -Xq dp_shapes_third 2>>"$DP_WORK/errors" >/dev/null
is "$(errors)" '' 'the structure, then the data without maintenance'
same dp_shapes_third 'structure, then data without maintenance'

# With maintenance: what patterns keep beside the tables is refused, everything else is kept anew. (Patients and doctors name
# each other, so neither can come first; merged documents are there already.)
fresh dp_shapes_third
psql -Xq dp_shapes_third <"$DP_WORK/schema.sql" 2>"$DP_WORK/errors" >/dev/null
psql -Xq dp_shapes_third <"$DP_WORK/data.sql" 2>>"$DP_WORK/errors" >/dev/null
is "$(grep 'ERROR\|WARNING' "$DP_WORK/errors" | grep -v 'is kept by a pattern and cannot be written to directly\|belongs to a key-value space and cannot be written to directly\|must be owner of extension')" \
  'ERROR:  a document of table public.doctors names a document that does not exist
ERROR:  duplicate key value violates unique constraint "merged_crm_idx"
ERROR:  a document of table public.patients names a document that does not exist' 'structure, then data with maintenance: what is refused'
is "$(ask dp_shapes_third "SELECT DISTINCT pattern, what FROM pattern_check(); SELECT pattern_repair('parts', 'feed'); SELECT v FROM pattern_check() v")" $'change_feed|next number\n0' 'what is left is true, but for the number that the dump has set'

# One table alone: what is missing is told, and made again or done without, and the patterns can be ended.
fresh dp_shapes_third
for table in movies messages crm merged shows halls books notes patients doctors orders app players parts by_n; do
  pg_dump -t "$table" -t "${table}_[0-9]" dp_shapes 2>"$DP_WORK/errors" | psql -Xq dp_shapes_third >/dev/null 2>>"$DP_WORK/errors"
  {
    # (functions of versions are not dumped with a table)
    grep 'ERROR' "$DP_WORK/errors" | grep -v 'movies_as_v1'
    ask dp_shapes_third "SELECT 'other: ' || v::text FROM pattern_check() v WHERE v.found !~ 'missing'"
    [ $table = by_n ] || ask dp_shapes_third "BEGIN; UPDATE $table SET doc = bson_set(doc, 'new', 1); ROLLBACK" | grep ERROR | grep -v 'missing'
    ask dp_shapes_third "DO \$\$ DECLARE d record; BEGIN
      FOR d IN SELECT name FROM pattern_list('$table') LOOP
        BEGIN PERFORM pattern_repair('$table', d.name); EXCEPTION WHEN OTHERS THEN IF SQLERRM !~ 'missing|has no source' THEN RAISE WARNING 'repair of %: %', d.name, SQLERRM; END IF; END;
      END LOOP;
      FOR d IN SELECT name FROM pattern_list('$table') ORDER BY pattern = 'kv_leaderboard' DESC LOOP
        IF EXISTS (SELECT FROM pattern_list('$table') p WHERE p.name = d.name) THEN PERFORM pattern_disable('$table', d.name); END IF;
      END LOOP; END \$\$"
    [ $table = by_n ] || ask dp_shapes_third "BEGIN; UPDATE $table SET doc = bson_set(doc, 'new', 1); DELETE FROM $table; ROLLBACK"
    ask dp_shapes_third "SELECT pattern_check(); SELECT pattern_list(); DROP TABLE $table; SELECT oid::regclass FROM pg_class WHERE relowner = 'dp_shapes_owner'::regrole AND relname !~ '^pg_toast'"
  } >"$DP_WORK/alone" 2>&1
  is "$(cat "$DP_WORK/alone")" '' "$table alone is restored"
done
cleanup
