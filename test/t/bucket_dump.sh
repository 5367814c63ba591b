#!/bin/bash
# Dump and restore of relations of measurements, whole or in part: they arrive with what lies beneath them, and live.
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning -c timezone=UTC'
plan 38

ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }  # ask DATABASE SQL
fresh() {
  psql -Xqc "DROP DATABASE IF EXISTS $1 WITH (FORCE)" -c "CREATE DATABASE $1 $([ $# = 1 ] || echo "OWNER $2")" postgres 2>&1
}
for db in dp_bucket_source dp_bucket_copy; do fresh $db; done
psql -Xq -c 'DROP ROLE IF EXISTS dp_plain' -c 'CREATE ROLE dp_plain LOGIN' postgres
psql -Xq -v ON_ERROR_STOP=1 dp_bucket_source >/dev/null <<'SQL' || echo 'not ok 0 - the source was filled'
CREATE EXTENSION docpatterns;
CREATE SCHEMA "o'S";
SELECT bucket_create('readings', columns => 'g int, ts timestamptz, v float8, note text, doc bson', group_by => '{g}', time_field => 'ts', span => '1 hour', max_count => 50, time_zone => 'Europe/Berlin');
SELECT bucket_create('"o''S"."Page ""s"', columns => '"Who" text, n numeric(10,2)', group_by => '{Who}', span => NULL, max_count => 10);
SELECT bucket_create('slots', columns => 'g int, ts timestamp, v int', group_by => '{g}', time_field => 'ts', span => '1 day', granularity => '1 minute', same_slot => 'add');
INSERT INTO readings SELECT i % 3, timestamptz '2024-03-30' + i * interval '1 min', CASE WHEN i % 7 > 0 THEN i / 10.0 END, 'n' || i % 4, bson_build('i', i) FROM generate_series(0, 2999) i;
INSERT INTO readings VALUES (1, '2024-03-30', 'NaN', 'late', NULL), (NULL, '2025-01-01', '-0', 'no group', NULL);
ALTER FOREIGN TABLE readings RENAME COLUMN v TO value;
SELECT bucket_add_column('readings', 'more', 'int');
UPDATE readings SET more = 1 WHERE g = 2;
INSERT INTO "o'S"."Page ""s" SELECT 'x', i FROM generate_series(1, 25) i;
SELECT bucket_pack('"o''S"."Page ""s"');
INSERT INTO "o'S"."Page ""s" SELECT 'x', i FROM generate_series(26, 28) i;
INSERT INTO slots VALUES (1, '2024-01-01 00:00:10', 1), (1, '2024-01-01 00:00:20', 2);
SQL
wanted() {  # what has to be the same
  ask "$1" "SELECT r::text FROM readings r ORDER BY g, ts, note" | md5sum
  ask "$1" "SELECT r::text FROM \"o'S\".\"Page \"\"s\" r ORDER BY n" | md5sum
  ask "$1" 'SELECT r::text FROM slots r' | md5sum
  ask "$1" "SELECT md5(string_agg(doc::text, ',' ORDER BY g, start)) FROM readings_buckets"
  ask "$1" 'SELECT rel, name, options FROM pattern_list() ORDER BY rel::text'
  ask "$1" 'SELECT (SELECT count(*) FROM readings_packed) > 10, (SELECT count(*) FROM readings_recent)'
}
wanted=$(wanted dp_bucket_source)

# same DATABASE NAME; 7 tests
same() {
  is "$(wanted "$1")" "$wanted" "$2: measurements, documents and declarations are the same"
  is "$(ask "$1" 'SELECT * FROM pattern_check()')" '' "$2: and true"
  is "$(ask "$1" "BEGIN; INSERT INTO readings SELECT 7, timestamptz '2024-05-01' + i * interval '1 min', i FROM generate_series(1, 1200) i; UPDATE readings SET more = 2 WHERE g = 2;
      DELETE FROM readings WHERE g = 1; INSERT INTO slots VALUES (1, '2024-01-01 00:00:30', 4); INSERT INTO \"o'S\".\"Page \"\"s\" VALUES ('x', 100); SELECT bucket_pack('\"o''S\".\"Page \"\"s\"');
      SELECT bucket_resize('readings', span => '1 day'); SELECT * FROM pattern_check();
      SELECT (SELECT count(*) FROM readings), (SELECT sum(more) FROM readings), (SELECT v FROM slots), (SELECT count(*) FROM \"o'S\".\"Page \"\"s_packed\"); ROLLBACK" | sed 2d)" \
    $'4\n3201|2000|7|3' "$2: the relations live"
  is "$(ask "$1" 'DELETE FROM readings_packed' | grep -c 'kept by a pattern')" 1 "$2: what lies beneath is guarded"
  is "$(ask "$1" 'DROP TABLE readings_packed' | grep -c 'cannot drop table readings_packed because foreign table readings requires it')" 1 "$2: and cannot be dropped by itself"
  is "$(ask "$1" "BEGIN; DROP FOREIGN TABLE readings, slots, \"o'S\".\"Page \"\"s\"; SELECT relname FROM pg_class WHERE relname ~ '^(readings|slots|Page)'; ROLLBACK")" '' "$2: all of it goes with the relation"
  is "$(ask "$1" "BEGIN; ALTER FOREIGN TABLE readings OWNER TO dp_plain; SELECT DISTINCT relowner::regrole FROM pg_class WHERE relname LIKE 'readings%'; ROLLBACK")" dp_plain "$2: the tables beneath follow the owner"
}

pg_dump dp_bucket_source 2>"$DP_WORK/errors" >"$DP_WORK/first.sql"
psql -Xq dp_bucket_copy <"$DP_WORK/first.sql" 2>>"$DP_WORK/errors" >/dev/null
is "$(head -5 "$DP_WORK/errors")" '' 'pg_dump | psql says nothing'
same dp_bucket_copy 'pg_dump | psql'
pg_dump dp_bucket_copy >"$DP_WORK/second.sql"
# (what was tried in it has used up a number of a sequence)
is "$(diff <(grep -v '^.\(un\)\?restrict\|setval' "$DP_WORK/first.sql") <(grep -v '^.\(un\)\?restrict\|setval' "$DP_WORK/second.sql") | head -5)" '' 'a dump of the copy is the same dump'

fresh dp_bucket_copy
pg_dump -Fc dp_bucket_source >"$DP_WORK/custom" 2>"$DP_WORK/errors"
pg_restore -j2 -d dp_bucket_copy "$DP_WORK/custom" 2>>"$DP_WORK/errors"
is "$(head -5 "$DP_WORK/errors")" '' 'pg_restore -j2 says nothing'
same dp_bucket_copy 'pg_restore -j2'

fresh dp_bucket_copy
pg_dump --schema-only dp_bucket_source 2>"$DP_WORK/errors" | psql -Xq dp_bucket_copy 2>>"$DP_WORK/errors" >/dev/null
is "$(ask dp_bucket_copy 'SELECT count(*) FROM readings; SELECT * FROM pattern_check(); SELECT count(*) FROM pattern_list()')" $'0\n3' 'the schema alone'
pg_dump --data-only dp_bucket_source 2>>"$DP_WORK/errors" >"$DP_WORK/data.sql"
{ echo 'SET docpatterns.maintain = off;'; cat "$DP_WORK/data.sql"; } | psql -Xq dp_bucket_copy 2>>"$DP_WORK/errors" >/dev/null
is "$(head -5 "$DP_WORK/errors")" '' 'and then the data'
is "$(psql -Xq dp_bucket_copy <"$DP_WORK/data.sql" 2>&1 | grep -c 'kept by a pattern')" 6 'which nobody writes beneath a relation without saying so'
same dp_bucket_copy '--schema-only, then --data-only'

# one relation: its tables beneath are named with it
fresh dp_bucket_copy
ask dp_bucket_copy 'CREATE EXTENSION docpatterns'
pg_dump -t 'readings*' dp_bucket_source 2>"$DP_WORK/errors" | psql -Xq dp_bucket_copy 2>>"$DP_WORK/errors" >/dev/null
is "$(head -5 "$DP_WORK/errors")" '' 'pg_dump of one relation and what lies beneath it'
is "$(ask dp_bucket_copy "SELECT r::text FROM readings r ORDER BY g, ts, note" | md5sum; ask dp_bucket_copy 'SELECT * FROM pattern_check()')" "$(printf '%s\n' "$wanted" | head -1)" 'one relation: the same measurements, and true'
fresh dp_bucket_copy
ask dp_bucket_copy 'CREATE EXTENSION docpatterns'
pg_dump -t readings dp_bucket_source 2>/dev/null | psql -Xq dp_bucket_copy >/dev/null 2>&1
is "$(ask dp_bucket_copy 'SELECT count(*) FROM readings' | head -1)" 'ERROR:  a table that belongs to public.readings is missing' 'the relation without what lies beneath it is told apart from an empty one'

# somebody who is no superuser, where the extension is
fresh dp_bucket_copy dp_plain
ask dp_bucket_copy 'CREATE EXTENSION docpatterns; GRANT ALL ON SCHEMA public TO dp_plain'
pg_dump --no-owner --no-acl -Fc dp_bucket_source >"$DP_WORK/custom"
pg_restore --no-owner -U dp_plain -d dp_bucket_copy -L <(pg_restore -l "$DP_WORK/custom" | grep -v 'EXTENSION') "$DP_WORK/custom" 2>"$DP_WORK/errors"
is "$(head -5 "$DP_WORK/errors")" '' 'restored by somebody who is no superuser'
same dp_bucket_copy 'restored by somebody who is no superuser'

for db in dp_bucket_source dp_bucket_copy; do psql -Xqc "DROP DATABASE IF EXISTS $db WITH (FORCE)" postgres; done
psql -Xqc 'DROP ROLE dp_plain' postgres
