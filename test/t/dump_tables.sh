#!/bin/bash
# Dump and restore of each table alone: what is missing is told, and made again or done without, and its patterns can be ended. (Whole
# databases: dump_restore.sh; other parts of them: dump_parts.sh.)
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/everything.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning -c jit=off' PGUSER=dp_alone_owner

cleanup() {
  for db in dp_alone dp_alone_empty dp_alone_1 dp_alone_2; do psql -Xq -U postgres -d postgres -c "DROP DATABASE IF EXISTS $db WITH (FORCE)"; done
  psql -Xq -U postgres -d postgres -c 'DROP ROLE IF EXISTS dp_alone_owner'
}
trap cleanup EXIT
fresh() {  # fresh DATABASE; with the extension, which only a superuser can make
  psql -Xq -U postgres -d postgres -c "DROP DATABASE IF EXISTS $1 WITH (FORCE)" -c "CREATE DATABASE $1 TEMPLATE dp_alone_empty OWNER dp_alone_owner"
  for schema in derived stored "\"st'O.red\"" "\"o'S.chema\"" "\"d'S.chema\""; do psql -Xq -d "$1" -c "CREATE SCHEMA $schema"; done
}
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }  # ask DATABASE SQL
cleanup 2>"$DP_WORK/cleanup"
psql -Xq -U postgres -d postgres -c 'CREATE ROLE dp_alone_owner LOGIN' -c 'CREATE DATABASE dp_alone_empty'
psql -Xq -U postgres -d dp_alone_empty -c 'CREATE EXTENSION docpatterns'
psql -Xq -U postgres -d postgres -c 'CREATE DATABASE dp_alone TEMPLATE dp_alone_empty OWNER dp_alone_owner'
everything_fill dp_alone

tables='movies messages crm merged shows halls books notes patients doctors orders app players parts by_n
  derived.movies derived.screenings derived.made derived.products derived.reviews derived.films derived.orders derived.customers derived.items derived.pages derived.cities derived.votes derived.sales derived.categories
  derived.target_parts derived.source_parts stored.books stored.users stored.lendings stored.pieces stored.forms stored.goods stored.posts stored.follows stored.phones stored.changed stored.policies
  stored.stays stored.films stored.athletes stored.cat stored.keyed stored.sold stored.items stored.sights stored.loose stored.mixed'
plan "$(wc -w <<<"$tables")"

# tables of users that other patterns need
others='has no source|has no table|does not exist|the source of .* is missing|the other side of .* is missing|query table .* is missing|key-value space .* is missing|followers of .* are missing|collection with the extras of .* is missing'

# What is wrong after a table came alone into a database; it is freed of its patterns and dropped, and nothing is left.
alone() {  # alone DATABASE TABLE
  pg_dump -t "$2" -t "$2_[0-9]" dp_alone 2>/dev/null | psql -Xq "$1" 2>&1 >/dev/null | grep ERROR | grep -v '_as_v[0-9]'
  ask "$1" "SELECT 'other: ' || v::text FROM pattern_check() v WHERE v.found !~ 'missing|does not exist|^none$' AND v.what !~ 'age of the queue' AND NOT (v.pattern = 'outlier' AND v.what IN ('flag', 'count'))"
  [ "$2" != stored.loose ] || return
  [ "$2" = by_n ] || ask "$1" "BEGIN; UPDATE $2 SET doc = bson_set(doc, 'new', 1); ROLLBACK" | grep ERROR | grep -v 'missing\|does not exist'
  # its patterns can be ended as it is, each that misses a table before those that write to it
  ask "$1" "BEGIN; DO \$\$ DECLARE d record; n bigint := 0; said text; BEGIN
    WHILE n <> (SELECT count(*) FROM pattern_list('$2')) LOOP
      n := (SELECT count(*) FROM pattern_list('$2'));
      FOR d IN SELECT pattern, name FROM pattern_list('$2') LOOP
        BEGIN PERFORM pattern_disable('$2', d.name); EXCEPTION WHEN OTHERS THEN said := concat_ws(' ', d.pattern, d.name, SQLERRM); END;
      END LOOP;
    END LOOP;
    IF n > 0 THEN RAISE WARNING 'not ended as it is: %', said; END IF; END \$\$; ROLLBACK"
  # and repaired, each that misses a table of its own first, where something is lost when that is accepted
  ask "$1" "DO \$\$ DECLARE d record; BEGIN
    FOR d IN SELECT name, a FROM pattern_list('$2'), unnest('{f,t}'::boolean[]) a ORDER BY a, pattern NOT IN ('versioning', 'change_feed', 'preallocated', 'approximation') LOOP
      BEGIN PERFORM pattern_repair('$2', d.name, d.a); EXCEPTION WHEN OTHERS THEN
        IF SQLERRM !~ (CASE WHEN d.a THEN '$others' ELSE 'missing|$others' END) THEN RAISE WARNING 'repair of %, % %', d.name, d.a, SQLERRM; END IF; END;
    END LOOP;
    FOR d IN SELECT name FROM pattern_list('$2') ORDER BY pattern = 'kv_leaderboard' DESC LOOP
      IF EXISTS (SELECT FROM pattern_list('$2') p WHERE p.name = d.name) THEN PERFORM pattern_disable('$2', d.name); END IF;
    END LOOP; END \$\$" | grep -v '^WARNING:  pattern .* extras of [0-9]* documents are missing$\|^DETAIL:  Their keys: \|^HINT:  The documents are left as they are'
  [ "$2" = by_n ] || ask "$1" "BEGIN; UPDATE $2 SET doc = bson_set(doc, 'new', 1); DELETE FROM $2; ROLLBACK"
  ask "$1" "SELECT pattern_check(); SELECT pattern_list(); DROP TABLE $2; SELECT oid::regclass FROM pg_class WHERE relowner = 'dp_alone_owner'::regrole AND relname !~ '^pg_toast'"
}
# two at a time, each half in a database of its own
half() { awk -v k="$1" '{ for (i = 1; i <= NF; i++) if (++n % 2 == k) print $i }' <<<"$tables"; }
for k in 0 1; do
  { fresh dp_alone_$((k + 1)); for table in $(half $k); do alone dp_alone_$((k + 1)) "$table" >"$DP_WORK/alone.$table" 2>&1; done; } &
done
wait
for table in $tables; do is "$(cat "$DP_WORK/alone.$table" 2>&1)" '' "$table alone is restored, told what is missing, and freed"; done
