#!/bin/bash
# Who may do what with documents' shapes, with what belongs together and with what happened: who writes to a table needs no rights
# on what patterns keep beside it, and sees and changes nothing of that but by writing; rows that row-level security hides are hidden everywhere.
. "$DP_TOP/test/env/tap.sh"
. "$DP_TOP/test/env/shapes.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning -c timezone=UTC' PGDATABASE=dp_shapes_rights
plan 16

as() { psql -XqAt -U "$1" -v VERBOSITY=verbose -c "$2" 2>&1 | grep -v '^LOCATION:\|^CONTEXT\|^SQL statement\|^SQL function\|^PL/pgSQL'; }  # as ROLE SQL
each() { tr ';' '\n' | sed 's/^ *//;/^$/d;s/$/;/' | psql -XqAt -U "$1" -v VERBOSITY=verbose 2>&1 | grep -v '^LOCATION\|^CONTEXT\|^DETAIL\|^HINT\|^SQL\|^PL' | cut -c 1-13; }  # each ROLE; statements from stdin, each by itself
root() { as postgres "$1"; }
everything() {
  psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_shapes_rights WITH (FORCE)' -c 'DROP ROLE IF EXISTS dp_shapes_owner, dp_shapes_writer, dp_shapes_reader, dp_shapes_other' 2>&1
}

everything
psql -Xq -d postgres -c 'CREATE ROLE dp_shapes_owner LOGIN' -c 'CREATE ROLE dp_shapes_writer LOGIN' -c 'CREATE ROLE dp_shapes_reader LOGIN' -c 'CREATE ROLE dp_shapes_other LOGIN' -c 'CREATE DATABASE dp_shapes_rights OWNER dp_shapes_owner'
root 'CREATE EXTENSION docpatterns'
PGUSER=dp_shapes_owner shapes_fill dp_shapes_rights
# Rights on tables and views that are for everybody, and none on what patterns keep: it has a guard. Of the space on what commands need.
as dp_shapes_owner "DO \$\$
  DECLARE r record;
  BEGIN
    FOR r IN SELECT c.oid::regclass AS rel, c.relkind FROM pg_class c WHERE c.relkind IN ('r', 'p', 'v') AND c.relnamespace::regnamespace::text IN ('public', '\"o''S.chema\"') AND c.relowner = 'dp_shapes_owner'::regrole
               AND NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid AND g.tgfoid IN (SELECT oid FROM pg_proc WHERE proname IN ('pattern_guard_trigger', 'query_table_guard_trigger'))) LOOP
      EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO dp_shapes_writer', r.rel);
      EXECUTE format('GRANT SELECT ON %s TO dp_shapes_reader', r.rel);
      IF r.relkind <> 'v' THEN EXECUTE format('GRANT TRUNCATE ON %s TO dp_shapes_writer', r.rel); END IF;
    END LOOP;
  END \$\$;
  GRANT USAGE ON SCHEMA \"o'S.chema\", game, \"o'S.pace \"\"k%s\" TO PUBLIC;
  GRANT SELECT, INSERT, UPDATE, DELETE ON game.hashes, game.sets, game.scores, \"o'S.pace \"\"k%s\".hashes, \"o'S.pace \"\"k%s\".scores TO dp_shapes_writer; GRANT SELECT ON game.keys TO dp_shapes_writer"
side=$(root "SELECT c.oid::regclass FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace::regnamespace::text IN ('public', '\"o''S.chema\"') AND NOT has_table_privilege('dp_shapes_writer', c.oid, 'SELECT') ORDER BY 1::text COLLATE \"C\"")

# A writer with no rights but those -------------------------------------------------------------------------------------------

# each statement is the writer's, but for looks at what patterns keep
shapes_writes | sed '/movies_feed\|orders_by_user\|FROM newest\|DELETE FROM newest\|orders_feed\|FROM parts_by_u\|parts_feed\|"Q ""q%s"\|SELECT v FROM pattern_check/{s/^/SET LOCAL ROLE dp_shapes_owner; /;s/$/ SET LOCAL ROLE dp_shapes_writer;/};s/^BEGIN;/&SET LOCAL ROLE dp_shapes_writer;/' >"$DP_WORK/writes.sql"
is "$(psql -XqAt -v ON_ERROR_STOP=1 -f "$DP_WORK/writes.sql" 2>&1 | grep -v '^ok\(|ok\)*$')" '' 'who may write to tables and views writes through every pattern'

# What patterns keep ------------------------------------------------------------------------------------------------------------

is "$(wc -l <<<"$side")" 23 'tables are kept beside others'
each_side() {  # each_side ROLE; the first of what it is told for reading and each way of writing, counted
  while read -r t; do printf 'SELECT * FROM %s;\nINSERT INTO %s SELECT * FROM %s;\nDELETE FROM %s;\nTRUNCATE %s;\n' "$t" "$t" "$t" "$t" "$t"; done <<<"$side" | psql -XqAt -U "$1" -v VERBOSITY=verbose 2>&1 |
    grep '^psql\|ERROR' | sed 's/.*\(ERROR:  .....\).*/\1/' | sort | uniq -c | tr -s ' '
}
is "$(each_side dp_shapes_writer)" ' 92 ERROR: 42501' 'a writer neither reads them nor writes to them'
is "$(each_side dp_shapes_owner)$(each_side postgres)" ' 69 ERROR: 55000 69 ERROR: 55000' 'their owner, and a superuser, do not write to them either'

# Functions ---------------------------------------------------------------------------------------------------------------------

# Calls every function of the extension whose name is like that and that is about a table or a space, for every declaration that it
# may be about. Tells what shows something classified, and errors that nobody should see. What it changes stays.
psql -XqAt >/dev/null <<'SQL'
CREATE SCHEMA probe;
GRANT USAGE ON SCHEMA probe TO PUBLIC;
CREATE TABLE probe.declared AS SELECT rel, pattern, name FROM pattern_list() UNION SELECT rel, 'any', name FROM (SELECT DISTINCT ON (rel) rel, name FROM pattern_list() ORDER BY 1, 2) d;
GRANT SELECT ON probe.declared TO PUBLIC;
CREATE VIEW probe.functions AS
  SELECT p.*, coalesce((SELECT max(d.pattern) FROM probe.declared d WHERE ltrim(p.proname, '_') LIKE replace(d.pattern, '_', '\_') || '\_%'), 'any') AS pattern,
         p.prorettype = 'record'::regtype AND p.proallargtypes IS NULL AS is_record
  FROM pg_proc p JOIN pg_depend e ON e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e'
  WHERE p.prokind IN ('f', 'p') AND p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype) AND ('regclass'::regtype = ANY (p.proargtypes) OR 'space' = ANY (p.proargnames[1:p.pronargs]));
GRANT SELECT ON probe.functions TO PUBLIC;
CREATE FUNCTION probe.argument(name text, type regtype, first boolean, rel regclass, pattern text, declared text) RETURNS text LANGUAGE sql AS $$
  SELECT CASE WHEN type = 'regclass'::regtype THEN format('%L::regclass', CASE WHEN first THEN rel ELSE 'doctors' END)
    WHEN name = 'query' THEN '''SELECT ROW(1) AS key''' WHEN name = 'event' AND type = 'text'::regtype THEN '''AFTER INSERT'''
    WHEN name = 'name' THEN quote_literal(declared) WHEN name = 'pattern' THEN quote_literal(pattern) WHEN name = 'space' THEN '''game''' WHEN name IN ('key', 'keys') AND type = 'text'::regtype THEN '''best'''
    WHEN type IN ('anycompatible'::regtype, '"any"'::regtype) THEN '1'
    ELSE format('%L::%s', CASE WHEN type IN ('text'::regtype, 'name'::regtype) THEN 'mark' WHEN type = 'text[]'::regtype THEN '{mark}' WHEN type = 'bson'::regtype THEN '{}' WHEN type = 'boolean'::regtype THEN 'true'
      WHEN type IN ('int'::regtype, 'bigint'::regtype, 'float8'::regtype, 'bson_value'::regtype) THEN '1' WHEN type = 'interval'::regtype THEN '1 s'
      WHEN type IN ('timestamptz'::regtype, 'timestamp'::regtype) THEN 'tomorrow' WHEN type = 'int[]'::regtype THEN '{1}' END, CASE WHEN type = 'record'::regtype THEN 'text' ELSE type::text END) END
$$;
CREATE FUNCTION probe.all(which text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE f record; command text; shown text;
BEGIN
  FOR f IN SELECT p.*, d.rel, d.name AS declared FROM probe.functions p JOIN probe.declared d ON d.pattern = p.pattern WHERE p.proname ~ which AND (p.pattern <> 'any' OR p.proname ~ '^_?(pattern|bson_lookup)') ORDER BY p.proname, d.rel, d.name LOOP
    SELECT format('%s %s.%I(%s)%s', CASE WHEN f.prokind = 'p' THEN 'CALL' ELSE 'SELECT string_agg(x::text, '' '') FROM' END, f.pronamespace::regnamespace, f.proname,
      string_agg(CASE WHEN i > f.pronargs - f.pronargdefaults THEN quote_ident(f.proargnames[i]) || ' => ' ELSE '' END
                 || CASE WHEN f.proargtypes[i - 1] = 'record'::regtype THEN 'ROW(1)' ELSE probe.argument(f.proargnames[i], f.proargtypes[i - 1], i = array_position(f.proargtypes::oid[], 'regclass'::regtype) + 1, f.rel, f.pattern, f.declared) END, ', ' ORDER BY i),
      CASE WHEN f.prokind = 'p' THEN '' WHEN f.is_record THEN ' AS x (key record)' ELSE ' x' END) INTO command
    FROM generate_series(1, f.pronargs) i WHERE i <= f.pronargs - f.pronargdefaults OR f.proargnames[i] IN ('name', 'key', 'id');
    BEGIN
      shown := NULL;
      IF f.prokind = 'p' THEN EXECUTE command; ELSE EXECUTE command INTO shown; END IF;
      IF shown ~ 'classified' THEN RETURN NEXT command || ': ' || left(shown, 200); END IF;
    EXCEPTION WHEN OTHERS THEN
      IF SQLERRM ~ 'classified' OR SQLSTATE ~ '^XX|^42601' THEN RETURN NEXT format('%s: %s %s', command, SQLSTATE, SQLERRM); END IF;
    END;
  END LOOP;
END $$;
SQL
# something that not everybody may see, in a document of each table
root "DO \$\$ DECLARE r record; BEGIN
  FOR r IN SELECT DISTINCT d.rel, a.attname FROM pattern_list() d JOIN pg_attribute a ON a.attrelid = d.rel AND a.atttypid = 'bson'::regtype WHERE d.rel <> 'merged'::regclass LOOP
    EXECUTE format('UPDATE %1\$s SET %2\$I = bson_set(%2\$I, ''mark'', ''classified''::text) WHERE ctid = (SELECT min(ctid) FROM %1\$s)', r.rel, r.attname);
  END LOOP;
  FOR r IN SELECT unnest('{crm,billing,support,doctors}'::text[]) AS rel LOOP EXECUTE format('UPDATE %s SET doc = bson_set(doc, ''mark'', ''classified''::text) WHERE _id = 1', r.rel); END LOOP; END \$\$"
before=$(shapes_rows dp_shapes_rights; shapes_made dp_shapes_rights)
is "$(as dp_shapes_other "SELECT probe.all('.')")" '' 'who has no rights is shown nothing by any function'
is "$(diff <(shapes_rows dp_shapes_rights; shapes_made dp_shapes_rights) - <<<"$before" | head -5)" '' 'and changes nothing'
verbs='^pattern_(repair|alter|disable|build)$|_(enable|variant|merge|step|migrate|redact|from|split|entity|leaderboard)$|^versioning_purge$|^change_feed_purge$|^(kv|single_table|query_table)_create$'
as dp_shapes_writer "SELECT probe.all('^_'); SELECT probe.all('$verbs')" >"$DP_WORK/writer"
is "$(diff <(shapes_rows dp_shapes_rights; shapes_made dp_shapes_rights) - <<<"$before" | head -5)" '' 'who may write changes nothing by calling what is not for users, or for owners'

# Rows that are hidden ------------------------------------------------------------------------------------------------------------

seen() {  # seen ROLE; views in which something classified is shown
  psql -XqAt -U "$1" 2>&1 <<'SQL'
SELECT format('SELECT %L WHERE EXISTS (SELECT FROM %s v WHERE v::text ~ ''classified'')', c.oid::regclass, c.oid::regclass) FROM pg_class c
WHERE relkind IN ('r', 'p', 'v') AND relnamespace::regnamespace::text IN ('public', '"o''S.chema"', 'game') AND has_table_privilege(c.oid, 'SELECT') AND relname <> 'schema_versioning_progress' ORDER BY c.oid::regclass::text COLLATE "C" \gexec
SQL
}
is "$(seen dp_shapes_reader | wc -l)" 48 'who may read sees all in tables and views'
is "$(as dp_shapes_reader "SELECT count(*) > 8 FROM probe.all('^[a-z]')" | grep -v WARNING)" t 'and by functions'
as dp_shapes_owner "DO \$\$ DECLARE r record; BEGIN
  FOR r IN SELECT c.oid::regclass AS rel, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.atttypid = 'bson'::regtype WHERE c.relkind IN ('r', 'p') AND has_table_privilege('dp_shapes_reader', c.oid, 'SELECT') LOOP
    EXECUTE format('ALTER TABLE %1\$s ENABLE ROW LEVEL SECURITY; CREATE POLICY hidden ON %1\$s USING (bson_get_text(%2\$I, ''mark'') IS NULL AND NOT bson_exists(%2\$I, ''crm.mark''))', r.rel, r.attname);
  END LOOP; END \$\$" 
is "$(seen dp_shapes_reader)" '' 'no view shows them'
is "$(as dp_shapes_reader "SELECT probe.all('.')" | grep -v WARNING)" '' 'nor does any function'
is "$(as dp_shapes_reader "SELECT count(*), (SELECT sum(documents) FROM schema_versioning_histogram('movies')), (SELECT sum(documents) FROM polymorphic_variants('movies')), (SELECT max(documents) FROM attribute_keys('movies')), (SELECT parents FROM relationship_advise('patients', 'doctors', on_field => 'x')) - (SELECT count(*) FROM patients) FROM movies")" '10|10|10|10|0' 'nor are they counted'
key=$(root "SELECT _id FROM movies WHERE bson_exists(doc, 'mark')")
is "$(as dp_shapes_reader "SELECT count(*) FROM versioning_revisions('movies', $key); SELECT count(*) FROM movies_history WHERE key = $key; SELECT count(*) FROM movies_deleted; SELECT count(*) FROM movies_as_of('infinity') WHERE key = $key; SELECT count(*) FROM versioning_field_history('movies', $key, 'title')")" $'0\n0\n0\n0\n0' 'nor does history show that they are there'
is "$(each dp_shapes_reader <<<"SELECT change_feed_read('movies', NULL, 1); SELECT change_feed_position('shows'); SELECT preallocated_slots('shows', 1); SELECT preallocated_find('shows', 1, 1); SELECT count(*) FROM single_collection_get('books', 1, 'book'); SELECT bson_lookup('doctors', '_id', 1)")" \
  $'ERROR:  42501\nERROR:  42501\nERROR:  P0002\nERROR:  P0002\n0\n[]' 'a feed is for those who may see all; slots are not shown'
is "$(each dp_shapes_writer <<<"SELECT preallocated_claim('shows', 1, '{A4}', 'x'); UPDATE shows_whole SET doc = bson_set(doc, 'x', 1) WHERE _id = 1; UPDATE movies_v1 SET doc = bson_set(doc, 'x', 1) WHERE _id = $key; DELETE FROM movies_wide WHERE _id = $key; SELECT versioning_revert('movies', $key, 1)")" $'ERROR:  P0002\nERROR:  22023' 'nor written to'
is "$(root 'SELECT v FROM pattern_check() v')" '' 'all is true'
everything
