#!/bin/bash
# Dump and restore of a database with every pattern, in every form: everything arrives byte for byte, a dump of it is the same text,
# and all of it goes on being kept. (Tables and schemas that are dumped alone: dump_tables.sh, dump_parts.sh.)
#
# The database belongs to somebody who is no superuser. Two forms are tried at a time; what is wrong with one stands in files, one for
# each question that is asked about it.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/everything.sh"
set -u
# (what the checks ask looks expensive to the planner while there are no statistics)
export PGOPTIONS='-c client_min_messages=warning -c jit=off'
forms=${FORMS:-text directory order parts untriggered inserts root clean other}
plan $((4 + 6 * $(wc -w <<<"$forms")))

databases='dp_all dp_all_empty dp_all_b dp_all_c dp_all_d dp_all_e dp_all_f dp_all_g dp_all_i dp_all_j'
copy="dp all, 'it''s' \"copy\"" copy_ident='"dp all, '"'it''s'"' ""copy"""'
quoted() { local name=${1//\\/\\\\}; echo "dbname='${name//\'/\\\'}'"; }
cleanup() {
  for db in $databases; do psql -Xq -d postgres -c "DROP DATABASE IF EXISTS $db WITH (FORCE)"; done
  psql -Xq -d postgres -c "DROP DATABASE IF EXISTS $copy_ident WITH (FORCE)" -c 'DROP ROLE IF EXISTS dp_all_owner, dp_all_other'
}
fresh() {  # fresh DATABASE OWNER; with the extension, which only a superuser can make
  psql -Xq -d postgres -c "CREATE DATABASE $1 TEMPLATE dp_all_empty OWNER $2"
}
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$(quoted "$1")" -c "$2" 2>&1; }  # ask DATABASE SQL

cleanup 2>"$DP_WORK/cleanup"
trap cleanup EXIT
psql -Xq -d postgres -c 'CREATE ROLE dp_all_owner LOGIN' -c 'CREATE ROLE dp_all_other LOGIN' -c 'CREATE DATABASE dp_all_empty' -c 'CREATE DATABASE dp_all OWNER dp_all_owner'
psql -Xq -d dp_all_empty -c 'CREATE EXTENSION docpatterns'
psql -Xq -d dp_all -c 'CREATE EXTENSION docpatterns'
PGUSER=dp_all_owner everything_fill dp_all
# (this uses up numbers of sequences, so it comes first)
is "$(PGUSER=dp_all_owner everything_alive dp_all undone)" '' 'all of it is true and alive'
everything_rows dp_all >"$DP_WORK/rows"
everything_made dp_all >"$DP_WORK/made"
everything_text dp_all >"$DP_WORK/text"
everything_text dp_all --no-owner >"$DP_WORK/ownerless_text"
is "$(ask dp_all "SELECT pattern FROM unnest('{approximation,attribute,bucket,change_feed,computed,fanout,kv,kv_leaderboard,outlier,payload,polymorphic,polymorphic_merge,polymorphic_variant,preallocated,query_table,reference,relationship,rollup,schema_versioning,single_collection,single_table,subset,subset_fields,tree,tree_attach,ttl,versioning}'::text[]) pattern
  EXCEPT SELECT pattern FROM pattern_list()")" '' 'every pattern is declared'
is "$(ask dp_all "SELECT DISTINCT pattern FROM pattern_list() EXCEPT SELECT unnest('{approximation,attribute,bucket,change_feed,computed,fanout,kv,kv_leaderboard,outlier,payload,polymorphic,polymorphic_merge,polymorphic_variant,preallocated,query_table,reference,relationship,rollup,schema_versioning,single_collection,single_table,subset,subset_fields,tree,tree_attach,ttl,versioning}'::text[])")" '' 'and there is no other'
is "$(grep -v '|[0-9]*|[0-9a-f]\{32\}$' "$DP_WORK/rows" | head -5)" '' 'every table can be compared'
{ pg_dump -Fc -f "$DP_WORK/custom" dp_all && pg_dump --schema-only dp_all >"$DP_WORK/schema.sql" && pg_dump --data-only dp_all >"$DP_WORK/data.sql" 2>/dev/null; } 2>&1

# What a restored database must be like; prints into files that are named after the questions.
look() {  # look FORM DATABASE USER [OPTION OF PG_DUMP]
  everything_text "$2" ${4:-} | diff - "$DP_WORK/${4:+ownerless_}text" | head -5 >"$DP_WORK/$1.text"
  everything_rows "$2" | diff - "$DP_WORK/rows" | head -5 >"$DP_WORK/$1.rows"
  everything_made "$2" | sed "s/dp_all_other/dp_all_owner/" | diff - "$DP_WORK/made" | head -5 >"$DP_WORK/$1.made"
  ask "$2" 'SELECT v FROM pattern_check() v' | head -20 >"$DP_WORK/$1.true" 2>&1
  PGUSER=$3 everything_alive "$2" >"$DP_WORK/$1.alive" 2>&1
}

# The forms ------------------------------------------------------------------------------------------------------------------

# All at once, as one transaction, into a database of another name.
form_text() {
  psql -Xq -d postgres -c "CREATE DATABASE $copy_ident"
  pg_dump dp_all | psql -Xq1 -v ON_ERROR_STOP=1 -d "$(quoted "$copy")" >/dev/null
  look text "$copy" dp_all_owner
}
form_directory() {
  psql -Xq -d postgres -c 'CREATE DATABASE dp_all_b'
  rm -rf "$DP_WORK/directory"
  pg_dump -Fd -j2 -f "$DP_WORK/directory" dp_all
  pg_restore -j2 -d dp_all_b "$DP_WORK/directory"
  look directory dp_all_b dp_all_owner
}
# As a restore in parallel may do it when it is unlucky: tables in the other order, the triggers of each as soon as its data is there
# (those of partitioned tables have nothing to wait for), keys, indexes and everything else at the end.
form_order() {
  psql -Xq -d postgres -c 'CREATE DATABASE dp_all_c'
  pg_restore -l "$DP_WORK/custom" | awk '
    /^;/ || !NF { next }
    # number; oid oid KIND schema table name owner: names may have blanks in them, the name of a trigger begins with zz_docpatterns
    / TABLE DATA / { rel = $0; sub(/^.* TABLE DATA /, "", rel); sub(/ [^ ]+$/, "", rel); data[++n] = $0; of[n] = rel; next }
    / TRIGGER / && !/EVENT TRIGGER/ { rel = $0; sub(/^.* TRIGGER /, "", rel); sub(/ zz_docpatterns_.*/, "", rel); triggers[rel] = triggers[rel] $0 "\n"; order[++m] = rel; next }
    n { last = last $0 "\n"; next }
    { print }
    END {
      for (i = 1; i <= n; i++) has[of[i]] = 1
      for (i = 1; i <= m; i++) if (!has[order[i]] && !done[order[i]]++) printf "%s", triggers[order[i]]
      for (i = n; i > 0; i--) printf "%s\n%s", data[i], triggers[of[i]]
      printf "%s", last
    }' >"$DP_WORK/order"
  pg_restore -L "$DP_WORK/order" -d dp_all_c "$DP_WORK/custom"
  look order dp_all_c dp_all_owner
}
# The structure, then the data, by the owner; what is kept comes with it.
form_parts() {
  fresh dp_all_d dp_all_owner
  export PGUSER=dp_all_owner
  psql -Xq dp_all_d <"$DP_WORK/schema.sql" >/dev/null
  { echo 'SET docpatterns.maintain = off;'; cat "$DP_WORK/data.sql"; } | psql -Xq dp_all_d >/dev/null
  look parts dp_all_d dp_all_owner
}
# The same with triggers switched off, which takes a superuser.
form_untriggered() {
  psql -Xq -d postgres -c 'CREATE DATABASE dp_all_e'
  psql -Xq dp_all_e <"$DP_WORK/schema.sql" >/dev/null
  pg_dump --data-only --disable-triggers dp_all 2>/dev/null | psql -Xq dp_all_e >/dev/null
  look untriggered dp_all_e dp_all_owner
}
# (pg_dump writes the float8 -0 without quotes, which PostgreSQL reads as the integer 0)
form_inserts() {
  psql -Xq -d postgres -c 'CREATE DATABASE dp_all_f'
  pg_dump --column-inserts --rows-per-insert=20 --on-conflict-do-nothing dp_all | sed "s/, -0, /, '-0', /" | psql -Xq dp_all_f >/dev/null
  look inserts dp_all_f dp_all_owner
}
# Rows of partitions through the table above them: with the triggers of that table at the end, when all have been loaded.
form_root() {
  psql -Xq -d postgres -c 'CREATE DATABASE dp_all_j'
  rm -rf "$DP_WORK/root"
  pg_dump -Fd -j2 --load-via-partition-root -f "$DP_WORK/root" dp_all
  for section in pre-data data post-data; do pg_restore -j2 --section=$section -d dp_all_j "$DP_WORK/root"; done
  look root dp_all_j dp_all_owner
}
# Over what is there and was written to. (pg_dump drops the keys of partitions one by one, which PostgreSQL refuses whatever has made
# them, and what lies beneath relations of measurements before them, which is refused too: it goes with them.)
form_clean() {
  psql -Xq -d postgres -c 'CREATE DATABASE dp_all_g'
  pg_restore -d dp_all_g "$DP_WORK/custom"
  psql -XqAt -d dp_all_g -c 'DELETE FROM movies' -c 'TRUNCATE stored.readings, derived.sales' -c 'DROP TABLE halls CASCADE' -c 'DROP SCHEMA store CASCADE'
  pg_restore --clean --if-exists -d dp_all_g "$DP_WORK/custom"
  look clean dp_all_g dp_all_owner
}
# By somebody else, who is no superuser, where the extension is there already.
form_other() {
  fresh dp_all_i dp_all_other
  export PGUSER=dp_all_other
  pg_restore --no-owner -d dp_all_i "$DP_WORK/custom"
  look other dp_all_i dp_all_other --no-owner
}

running=0
for form in $forms; do
  rm -f "$DP_WORK/$form".{said,text,rows,made,true,alive}
  [ "$running" -lt 2 ] || wait -n
  "form_$form" >"$DP_WORK/$form.said" 2>&1 &
  running=$((running + 1))
done
wait

# What is said of the extension, which is there already and belongs to somebody else, is PostgreSQL's; so is that older releases
# drop the indexes of partitions one by one.
said() {
  grep -v 'must be owner of extension docpatterns\|Command was: COMMENT ON EXTENSION docpatterns\|TOC entry .* COMMENT EXTENSION docpatterns\|errors ignored on restore\|^pg_restore: while \|^pg_restore: from TOC entry\|cannot drop inherited constraint\|_\(packed\|recent\)"\? because foreign table .* requires it\|You can drop foreign table\|cannot drop index .* because index .* requires it\|You can drop index\|Command was: DROP INDEX\|Command was: DROP TABLE IF EXISTS .*_\(packed\|recent\)"\?;\|Command was: ALTER TABLE .* DROP CONSTRAINT\|^$' "$DP_WORK/$1.said" | head -5
}
name() {
  case $1 in
    text) echo 'pg_dump | psql, in one transaction' ;; directory) echo 'a directory, with two jobs' ;; order) echo 'in an unfriendly order' ;; parts) echo 'structure, then data without maintenance' ;;
    untriggered) echo 'structure, then data without triggers' ;; inserts) echo 'with INSERTs' ;; root) echo 'through the roots of partitions' ;; clean) echo 'over what is there' ;; other) echo 'by another role, which is no superuser' ;;
  esac
}
for form in $forms; do
  is "$(said "$form")" '' "$(name "$form"): nothing is said"
  is "$(cat "$DP_WORK/$form.text" 2>&1)" '' "$(name "$form"): a dump of it is the same text"
  is "$(cat "$DP_WORK/$form.rows" 2>&1)" '' "$(name "$form"): every byte is the same"
  is "$(cat "$DP_WORK/$form.made" 2>&1)" '' "$(name "$form"): declarations, triggers and dependencies are the same"
  is "$(cat "$DP_WORK/$form.true" 2>&1)" '' "$(name "$form"): it is true"
  is "$(cat "$DP_WORK/$form.alive" 2>&1)" '' "$(name "$form"): it goes on, and is true"
done
