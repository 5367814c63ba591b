#!/bin/bash
# Who may do what with relations of measurements: rights on the relation are what counts, those on the tables beneath are not
# needed, and nobody gets at measurements by declaring that somebody else's tables are his.
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning -c timezone=UTC' PGDATABASE=dp_bucket_rights
plan 43

as() { psql -XqAt -U "$1" -v VERBOSITY=verbose -c "$2" 2>&1 | grep -v '^LOCATION:\|^CONTEXT\|^SQL statement\|^SQL function\|^PL/pgSQL'; }  # as ROLE SQL
root() { as postgres "$1"; }
everything() {
  psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_bucket_rights WITH (FORCE)' -c 'DROP ROLE IF EXISTS dp_owner, dp_reader, dp_writer, dp_partial, dp_nobody, dp_evil' 2>&1
}
everything
psql -Xq -d postgres -c 'CREATE DATABASE dp_bucket_rights' -c 'CREATE ROLE dp_owner LOGIN' -c 'CREATE ROLE dp_reader LOGIN' -c 'CREATE ROLE dp_writer LOGIN' -c 'CREATE ROLE dp_partial LOGIN' -c 'CREATE ROLE dp_nobody LOGIN' -c 'CREATE ROLE dp_evil LOGIN'
root 'CREATE EXTENSION docpatterns; CREATE SCHEMA s AUTHORIZATION dp_owner; GRANT USAGE ON SCHEMA s TO PUBLIC; CREATE SCHEMA e AUTHORIZATION dp_evil'
as dp_owner "SET search_path = s, public;
  SELECT bucket_create('readings', columns => 'g int, ts timestamptz, v float8, note text', group_by => '{g}', time_field => 'ts', span => '1 hour', max_count => 100);
  INSERT INTO readings SELECT i % 3, timestamptz '2024-01-01' + i * interval '1 min', i, 'n' || i FROM generate_series(0, 1499) i; INSERT INTO readings VALUES (1, '2024-01-05', 1, 'w');
  GRANT SELECT ON readings TO dp_reader; GRANT INSERT ON readings TO dp_writer; GRANT SELECT (g, v), UPDATE (v), INSERT (g, ts) ON readings TO dp_partial;
  CREATE VIEW shown AS SELECT * FROM readings WHERE g = 1; CREATE VIEW theirs WITH (security_barrier) AS SELECT g, ts, v FROM readings WHERE g = 2; GRANT SELECT, INSERT, UPDATE, DELETE ON shown, theirs TO dp_nobody;
  CREATE FUNCTION definer() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS \$\$ INSERT INTO s.readings VALUES (5, '2024-06-01', 1); SELECT count(*) FROM s.readings WHERE g = 5 \$\$" >"$DP_WORK/setup"
is "$(grep ERROR "$DP_WORK/setup")" '' 'an owner makes a relation in a schema of his own'

refused() {  # refused ROLE SQL
  case $(as "$1" "$2" | head -1) in
    'ERROR:  42501:'*) is refused refused "$1: refused: $(printf '%s' "$2" | cut -c 1-70)" ;;
    *) is "$(as "$1" "$2" | head -3)" refused "$1: refused: $(printf '%s' "$2" | cut -c 1-70)" ;;
  esac
}

# Nothing
for c in 'SELECT count(*) FROM s.readings' 'SELECT 1 FROM s.readings LIMIT 1' "INSERT INTO s.readings VALUES (1, '2024-01-01')" "COPY s.readings FROM PROGRAM 'true'" 'DELETE FROM s.readings' 'TRUNCATE s.readings' "SELECT bucket_pack('s.readings')" \
  'SELECT count(*) FROM s.readings_packed' "SELECT * FROM docpatterns._bucket_documents('s.readings', 1, timestamptz '2024-01-01')" "SELECT bucket_resize('s.readings', '1 day')" "SELECT bucket_drop_before('s.readings', '2025-01-01')" \
  "SELECT bucket_stats('s.readings')" "SELECT bucket_salvage('s.readings')" "CALL bucket_to_table('s.readings', 'e.x')" "SELECT bucket_add_column('s.readings', 'a', 'int')" "SELECT docpatterns._bucket_repack('s.readings')" \
  "SELECT docpatterns._bucket_beneath('s.readings', 'DELETE FROM s.readings_packed')" "SELECT docpatterns._bucket_disable('s.readings', 'ts', '{}')" "SELECT docpatterns._bucket_redeclare('s.readings', '{}')"; do
  refused dp_nobody "$c"
done

# Rights on the relation
is "$(as dp_reader "SELECT count(*), sum(v), max(note) FROM s.readings; SELECT count(*) FROM (SELECT * FROM s.readings OFFSET 0) q; SELECT ts FROM s.readings WHERE g = 1 ORDER BY ts DESC LIMIT 1")" \
  $'1501|1124251|w\n1501\n2024-01-05 00:00:00+00' 'who may read reads headers, buckets and what waits'
is "$(as dp_reader "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; SELECT count(*) FROM (SELECT note FROM s.readings WHERE v >= 0) q")" 1501 'with workers, too'
refused dp_reader "INSERT INTO s.readings VALUES (1, '2024-01-01')"
refused dp_reader "UPDATE s.readings SET v = 1"
refused dp_reader "SELECT bucket_pack('s.readings')"
is "$(as dp_writer "INSERT INTO s.readings VALUES (7, '2024-01-01', 1), (7, '2024-01-02', 1); INSERT INTO s.readings VALUES (7, '2024-01-03', 1); INSERT INTO s.readings SELECT 8, timestamptz '2024-01-01' + i * interval '1 min', i FROM generate_series(1, 1999) i;
  SELECT bucket_pack('s.readings') > 0"; root 'SELECT count(*) FROM s.readings WHERE g IN (7, 8)')" $'t\n2002' 'who may insert inserts, many too, and packs'
refused dp_writer 'SELECT count(*) FROM s.readings'
refused dp_writer 'DELETE FROM s.readings WHERE g = 7'
refused dp_writer "INSERT INTO s.readings VALUES (7, '2024-01-01') RETURNING g"

# Columns
is "$(as dp_partial "SELECT g, sum(v) FROM s.readings WHERE g = 7 GROUP BY g; INSERT INTO s.readings (g, ts) VALUES (7, '2024-07-01'); UPDATE s.readings SET v = 5 WHERE g = 7"; root 'SELECT count(*), sum(v) FROM s.readings WHERE g = 7')" \
  $'7|3\n4|20' 'rights on columns'
refused dp_partial 'SELECT max(note) FROM s.readings'
refused dp_partial "SELECT g FROM s.readings WHERE ts > now()"
refused dp_partial "UPDATE s.readings SET note = 'x'"
refused dp_partial 'SELECT r FROM s.readings r'

# Views and functions of the owner
is "$(as dp_nobody "SELECT count(*) FROM s.shown; INSERT INTO s.shown VALUES (9, '2024-01-01', 1); UPDATE s.shown SET v = -1 WHERE ts = '2024-01-05'; DELETE FROM s.shown WHERE v = -1 RETURNING note; SELECT count(*) FROM s.shown")" \
  $'501\nw\n500' 'views of the owner are read and written'
as dp_evil "CREATE FUNCTION e.leak(float8) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS \$\$ BEGIN IF \$1 = 3 THEN RAISE WARNING 'leaked'; END IF; RETURN true; END \$\$; GRANT USAGE ON SCHEMA e TO PUBLIC" >/dev/null
is "$(as dp_nobody 'SELECT count(*) FROM s.theirs WHERE e.leak(v)')" 500 'a view with security_barrier shows its rows to nobody else'"'"'s functions'
is "$(as dp_nobody 'SELECT s.definer()')" 1 'a function of the owner'

# Somebody who declares that the tables beneath are his. The declaration is no secret.
link_id=$(root "SELECT options->>'link_id' FROM docpatterns._pattern_declarations('s.readings')")
declared=$(root "SELECT convert_from(substring(tgargs FOR length(tgargs) - 1), 'UTF8') FROM pg_trigger WHERE tgrelid = 's.readings'::regclass")
as dp_evil "CREATE FOREIGN TABLE e.mine (g int, ts timestamptz NOT NULL, v float8, note text) SERVER docpatterns_bucket;
  CREATE TRIGGER zz_docpatterns_50_bucket_ts BEFORE UPDATE ON e.mine FOR EACH STATEMENT EXECUTE FUNCTION docpatterns.bucket_trigger('$declared')" >"$DP_WORK/evil"
wanted=$(root "SELECT count(*), sum(v) FROM s.readings")
is "$(for c in 'SELECT count(*) FROM e.mine' "INSERT INTO e.mine VALUES (1, now(), 1)" 'DELETE FROM e.mine' 'TRUNCATE e.mine' "SELECT bucket_pack('e.mine')"; do as dp_evil "$c" | head -1; done | uniq)" \
  'ERROR:  55000: a table that belongs to "mine" is missing' 'a relation that claims somebody'"'"'s tables gets at nothing'
as dp_evil "CREATE TABLE e.packed (g int, seq int NOT NULL, start timestamptz NOT NULL, data public.bucket NOT NULL); CREATE TABLE e.recent (g int, ts timestamptz NOT NULL, v float8, note text);
  CREATE TRIGGER zz_docpatterns_90_bucket_ts_guard BEFORE INSERT ON e.packed FOR EACH STATEMENT EXECUTE FUNCTION docpatterns.pattern_guard_trigger('side', '$link_id', 'ts');
  CREATE TRIGGER zz_docpatterns_90_bucket_ts_guard BEFORE INSERT ON e.recent FOR EACH STATEMENT EXECUTE FUNCTION docpatterns.pattern_guard_trigger('side', '$link_id.recent', 'ts')" >>"$DP_WORK/evil"
is "$(root 'SELECT count(*), sum(v) FROM s.readings')" "$wanted" 'tables that claim to be somebody'"'"'s are not read'
as dp_evil 'DROP FOREIGN TABLE e.mine CASCADE' >/dev/null
as dp_evil 'DROP TABLE e.packed, e.recent CASCADE' >/dev/null
is "$(root 'SELECT count(*), sum(v) FROM s.readings; SELECT * FROM pattern_check()')" "$wanted" 'and take nothing along when they are dropped'
is "$(as dp_evil "CREATE FOREIGN TABLE e.other (g int) SERVER docpatterns_bucket OPTIONS (packed 's.readings_packed')" | head -1)" 'ERROR:  HV00D: relations of buckets do not have an option "packed"' 'no option names a table'
refused dp_evil "ALTER FOREIGN TABLE s.readings OWNER TO dp_evil"
is "$(root 'ALTER TABLE s.readings_packed OWNER TO dp_evil'; as dp_owner 'SELECT count(*) FROM s.readings' | head -1; root 'ALTER TABLE s.readings_packed OWNER TO dp_owner'; as dp_owner 'SELECT count(*) > 0 FROM s.readings')" \
  $'ERROR:  55000: a table that belongs to "readings" is missing\nt' 'a table that was given to somebody else is none of the relation'"'"'s'
everything
