# Who may do what with patterns: writers need no rights on what patterns keep, and nobody gets rights by them.
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning' PGDATABASE=dp_rights
plan 50

as() { psql -XqAt -U "$1" -v VERBOSITY=verbose -c "$2" 2>&1 | grep -v '^LOCATION:\|^CONTEXT\|^SQL statement\|^SQL function\|^PL/pgSQL'; }  # as ROLE SQL
root() { as postgres "$1"; }
clean() { root "SELECT string_agg(v::text, E'\n') FROM pattern_check() v"; }
everything() {
  psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_rights WITH (FORCE)' -c 'DROP ROLE IF EXISTS dp_owner, dp_writer, dp_partial, dp_evil' 2>&1
}

everything
psql -Xq -d postgres -c 'CREATE DATABASE dp_rights' -c 'CREATE ROLE dp_owner LOGIN' -c 'CREATE ROLE dp_writer LOGIN' -c 'CREATE ROLE dp_partial LOGIN' -c 'CREATE ROLE dp_evil LOGIN'
root 'CREATE EXTENSION docpatterns; CREATE SCHEMA s AUTHORIZATION dp_owner; GRANT USAGE ON SCHEMA s TO PUBLIC; GRANT CREATE ON DATABASE dp_rights TO dp_evil'
as dp_owner "SET search_path = s, public;
  SELECT collection_create('books'), collection_create('users'), collection_create('orders');
  GRANT SELECT, INSERT, UPDATE, DELETE ON books, users, orders TO dp_writer;
  SELECT outlier_enable('books', 'x', 2, chunk => 2, count_field => 'n');
  SELECT outlier_enable('users', 'o', 1, extras => 'orders', on_field => 'u', count_field => 'n');
  INSERT INTO books (doc) VALUES ('{_id: 1, x: [1, 2, 3, 4]}')" >"$DP_WORK/setup"
is "$(grep ERROR "$DP_WORK/setup")" '' 'an owner declares patterns in a schema of his own'

# A writer with no rights but those on the tables ---------------------------------------------------------------------------

is "$(as dp_writer "INSERT INTO s.books (doc) VALUES ('{_id: 2, x: [1, 2, 3, 4, 5]}'); UPDATE s.books SET doc = bson_array_append(doc, 'x', 6) WHERE _id = 2; SELECT outlier_push('s.books', 2, 7, 8);
  SELECT outlier_pull('s.books', 2, 1)")" $'2\n1' 'a writer writes, pushes and pulls'
is "$(as dp_writer "SELECT doc FROM s.books_whole WHERE _id = 2; SELECT outlier_count('s.books', 2), outlier_contains('s.books', 2, 8); SELECT value FROM outlier_page('s.books', 2, 5, 2); SELECT count(*) FROM outlier_find('s.books', 8)")" \
  $'{"_id": 2, "x": [2, 3, 4, 5, 6, 7, 8], "n": 7}\n7|t\n7\n8\n1' 'and reads'
is "$(as dp_writer "UPDATE s.books_whole SET doc = '{_id: 3, x: [9, 8, 7]}' WHERE _id = 2; SELECT doc FROM s.books_whole WHERE _id = 3; DELETE FROM s.books_whole WHERE _id = 3; SELECT count(*) FROM s.books")" \
  $'{"_id": 3, "x": [9, 8, 7], "n": 3}\n1' 'and writes whole documents'
is "$(as dp_writer "INSERT INTO s.users (doc) VALUES ('{_id: 1, o: [{_id: 1}]}'); INSERT INTO s.orders (doc) VALUES ('{_id: 2, u: 1}'), ('{_id: 3, u: 1}'); DELETE FROM s.orders WHERE _id = 2; SELECT doc FROM s.users")" \
  '{"_id": 1, "o": [{"_id": 1}], "n": 2, "has_extras": true}' 'and writes to a collection that holds extras'
is "$(root 'SELECT * FROM s.books_x_extras' | wc -l)" 1 'what was deleted is gone'
is "$(clean)" '' 'all is true'
is "$(root "BEGIN ISOLATION LEVEL REPEATABLE READ; ALTER TABLE s.books OWNER TO dp_writer" | head -1)" \
  'ERROR:  0A000: cannot change the owner of table "books" in a transaction that is not READ COMMITTED' 'a new owner needs the latest snapshot'
is "$(as dp_writer 'SELECT count(*) FROM s.books_x_extras')" 'ERROR:  42501: permission denied for table books_x_extras' 'nobody reads the extras themselves'
is "$(as dp_writer 'DELETE FROM s.books_x_extras')" 'ERROR:  42501: permission denied for table books_x_extras' 'or writes to them'
is "$(as dp_owner 'DELETE FROM s.books_x_extras' | head -1)" 'ERROR:  55000: cannot write to table "books_x_extras" directly because a pattern maintains it' 'the owner neither'
is "$(root 'TRUNCATE s.books_x_extras' | head -1)" 'ERROR:  55000: cannot write to table "books_x_extras" directly because a pattern maintains it' 'nor a superuser'

# docpatterns.maintain ------------------------------------------------------------------------------------------------------

is "$(as dp_writer "SET docpatterns.maintain = off; INSERT INTO s.books (doc) VALUES ('{_id: 5, x: [1, 2, 3]}'); UPDATE s.books SET doc = bson_array_append(doc, 'x', 4) WHERE _id = 5; DELETE FROM s.orders; TABLE s.users")" \
  '1|{"_id": 1, "o": [{"_id": 1}], "n": 1}' 'a writer cannot switch maintenance off'
is "$(clean)" '' 'all is true'
is "$(as dp_owner "BEGIN; SET docpatterns.maintain = off; INSERT INTO s.books (doc) VALUES ('{_id: 6, x: [1, 2, 3]}'); SELECT doc FROM s.books WHERE _id = 6; DELETE FROM s.books_x_extras; ROLLBACK")" \
  '{"_id": 6, "x": [1, 2, 3]}' 'the owner can, and writes to the extras then'

# Somebody else's functions -------------------------------------------------------------------------------------------------

refused() {  # refused SQL
  case $(as dp_writer "$1" | head -1) in
    'ERROR:  42501:'*) is refused refused "refused: $(printf '%s' "$1" | cut -c 1-70)" ;;
    *) is "$(as dp_writer "$1" | head -3)" refused "refused: $(printf '%s' "$1" | cut -c 1-70)" ;;
  esac
}
refused "SELECT pattern_check('s.books')"
refused "SELECT pattern_repair('s.books')"
refused "SELECT pattern_alter('s.books', 'x', '{threshold: 1}')"
refused "SELECT pattern_disable('s.books')"
refused "CALL pattern_build('s.books')"
refused "SELECT outlier_spill('s.books')"
refused "SELECT outlier_enable('s.books', 'y', 5)"
refused "SELECT docpatterns._outlier_rejoin('s.books', 'x', ROW(1))"
refused "SELECT docpatterns._outlier_rechunk('s.books', 'x', ROW(1))"
refused "SELECT docpatterns._pattern_repair_row('s.books', 'x', ROW(1))"
refused "SELECT docpatterns._pattern_forget('s.books_x_extras', 's.books')"
refused "SELECT docpatterns._pattern_check_one('s.books', 'outlier', 'x')"
refused "SELECT docpatterns._pattern_call('disable', 's.books', 'outlier', 'x', '{}')"
refused "SELECT docpatterns._pattern_call('x(1); DROP TABLE s.books; --', 's.books', 'outlier', 'x', NULL)"
refused "SELECT * FROM docpatterns._pattern_pending_keys('s.books', 'outlier', 'x') AS k (key record)"
refused "SELECT docpatterns._outlier_create_triggers('s.books', '{name: \"x\"}')"
refused "SELECT docpatterns._outlier_disable('s.books', 'x', '{}')"
refused "SELECT docpatterns._pattern_create_whole('s.orders', 'doc')"
is "$(as dp_owner "SELECT docpatterns._pattern_call('x(1); DROP TABLE s.books; --', 's.books', 'outlier', 'x', NULL)")" 'ERROR:  22023: unknown operation "x(1); DROP TABLE s.books; --"' 'a verb is a word'

# Rights on columns and rows ------------------------------------------------------------------------------------------------

as dp_owner 'GRANT SELECT (_id), UPDATE (_id) ON s.books TO dp_partial' >/dev/null
is "$(as dp_partial "SELECT pattern_whole('{_id: 1, has_extras: true}', 's.books', 1)" | head -1)" 'ERROR:  42501: permission denied for table books' 'extras are not shown to who may not read the document'
as dp_owner 'GRANT SELECT ON s.books TO dp_partial' >/dev/null
is "$(as dp_partial "SELECT outlier_push('s.books', 1, 5)" | head -1)" 'ERROR:  42501: permission denied for table books' 'nothing is pushed by who may update another column only'
is "$(as dp_partial "SELECT outlier_pull('s.books', 1, 4)" | head -1)" 'ERROR:  42501: permission denied for table books' 'or pulled'
as dp_owner "ALTER TABLE s.books ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON s.books TO dp_writer USING (_id <> 1)" >/dev/null
is "$(as dp_writer "SELECT _id FROM s.books_whole; SELECT pattern_whole('{_id: 1, has_extras: true}', 's.books', 1); SELECT count(*) FROM outlier_find('s.books', 4);
  SELECT outlier_count('s.books', 1)" | head -4)" $'5\n{"_id": 1, "has_extras": true}\n1\nERROR:  P0002: table "books" has no document with the key 1' 'rows that a policy hides are hidden with their extras'
is "$(as dp_writer "SELECT outlier_push('s.books', 1, 5)" | head -1)" 'ERROR:  P0002: table "books" has no document with the key 1' 'and take no pushes'
as dp_owner "DROP POLICY p ON s.books; ALTER TABLE s.books DISABLE ROW LEVEL SECURITY" >/dev/null

# Pairs are no secret: a table that claims to be somebody's store gets nothing ---------------------------------------------

link_id=$(root "SELECT options->>'link_id' FROM docpatterns._pattern_declarations('s.books')")
as dp_evil "CREATE SCHEMA e; CREATE TABLE e.fake (key public.bson_value, chunk bigint, n int, sealed boolean, elements public.bson_value, tail public.bson_value, PRIMARY KEY (key, chunk)); CREATE TRIGGER zz_docpatterns_90_outlier_x_guard BEFORE INSERT ON e.fake FOR EACH STATEMENT
    EXECUTE FUNCTION docpatterns.pattern_guard_trigger('side', '$link_id', 'x');
  CREATE TABLE e.base (id int PRIMARY KEY, doc public.bson); CREATE TRIGGER zz_docpatterns_50_outlier_x AFTER UPDATE ON e.base FOR EACH ROW
    EXECUTE FUNCTION docpatterns.outlier_trigger('{\"name\": \"x\", \"field\": \"x\", \"flag\": \"f\", \"threshold\": 1, \"stay\": \"first\", \"mode\": \"immediate\", \"link_id\": \"$link_id\"}');
  CREATE TRIGGER zz_docpatterns_1 AFTER UPDATE ON e.base FOR EACH ROW EXECUTE FUNCTION docpatterns.outlier_trigger('{')" >"$DP_WORK/evil"
is "$(as dp_writer "SELECT outlier_push('s.books', 1, 5, 6, 7)"; root 'SELECT count(*) FROM e.fake'; root "SELECT rel, what, expected FROM pattern_check()")" $'3\n0\ne.base|declaration|can be checked' 'a table that claims to be somebody'"'"'s store gets nothing'
is "$(as dp_evil 'DROP TABLE e.base CASCADE'; root "SELECT to_regclass('s.books_x_extras'), count(*) FROM pattern_list('s.books')")" 's.books_x_extras|1' 'and one that claims somebody'"'"'s store does not take it along when it is dropped'

# An owner who wants to be more ---------------------------------------------------------------------------------------------

as dp_owner "SET search_path = s, public; CREATE TABLE seen (who text, what text); GRANT INSERT ON seen TO PUBLIC;
  CREATE FUNCTION grab(what text) RETURNS void LANGUAGE plpgsql AS \$\$
  DECLARE c text;
  BEGIN
    INSERT INTO s.seen VALUES (current_user, what);
    PERFORM set_config('search_path', 's, public', false), set_config('docpatterns.maintain', 'off', false);
    FOREACH c IN ARRAY ARRAY['ALTER ROLE dp_owner SUPERUSER', 'SET ROLE postgres', 'RESET ROLE', 'SET SESSION AUTHORIZATION postgres', 'RESET SESSION AUTHORIZATION',
        'GRANT pg_write_server_files TO dp_owner'] LOOP
      BEGIN
        EXECUTE c;
        IF current_user <> 'dp_owner' THEN EXECUTE 'ALTER ROLE dp_owner SUPERUSER'; END IF;
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
    END LOOP;
  END \$\$;
  CREATE FUNCTION t() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN PERFORM s.grab(TG_NAME); RETURN NEW; END \$\$;
  CREATE FUNCTION ix(public.bson) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \$\$ BEGIN PERFORM s.grab('index'); RETURN 1; END \$\$;
  CREATE FUNCTION ix(public.bson_value) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \$\$ BEGIN PERFORM s.grab('side index'); RETURN 1; END \$\$;
  CREATE FUNCTION ck(public.bson) RETURNS boolean LANGUAGE plpgsql AS \$\$ BEGIN PERFORM s.grab('check'); RETURN true; END \$\$;
  CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON books FOR EACH ROW EXECUTE FUNCTION t();
  CREATE TRIGGER t BEFORE INSERT OR UPDATE OR DELETE ON books_x_extras FOR EACH ROW EXECUTE FUNCTION t();
  CREATE TRIGGER ts AFTER INSERT OR UPDATE OR DELETE ON books_x_extras FOR EACH STATEMENT EXECUTE FUNCTION t();
  CREATE INDEX ON books (ix(doc)); CREATE INDEX ON books_x_extras (ix(elements)); ALTER TABLE books ADD CHECK (ck(doc));
  SET docpatterns.maintain = off; UPDATE books SET doc = bson_set(bson_unset(doc, 'has_extras'), 'x', '[1, 2, 3, 4, 5, 6, 7]'::bson_value); DELETE FROM seen" >"$DP_WORK/grab"
is "$(grep ERROR "$DP_WORK/grab")" '' 'an owner sets traps'
settings="DO 'BEGIN IF current_setting(''search_path'') LIKE ''s,%'' OR current_setting(''docpatterns.maintain'') = ''off'' THEN RAISE ''ERROR settings changed''; END IF; END'"
traps() { root "SELECT rolsuper FROM pg_roles WHERE rolname = 'dp_owner'; SELECT string_agg(DISTINCT who, ',') FROM s.seen; SELECT count(*) > 3 FROM s.seen; DELETE FROM s.seen"; }
root "SELECT pattern_check('s.books'); SELECT pattern_repair('s.books'); $settings" >"$DP_WORK/repair"
is "$(grep ERROR "$DP_WORK/repair"; traps)" $'f\ndp_owner\nt' 'a superuser who checks and repairs walks into none'
is "$(clean)" '' 'and all is true'
as dp_owner "SET docpatterns.maintain = off; UPDATE s.books SET doc = bson_set(bson_unset(doc, 'has_extras'), 'x', '[1, 2, 3, 4, 5, 6, 7]'::bson_value); DELETE FROM s.seen" >/dev/null
root "DO 'BEGIN CALL pattern_build(''s.books'', ''x'', NULL); END'; $settings" >"$DP_WORK/build"
is "$(grep ERROR "$DP_WORK/build"; traps)" $'f\ndp_owner\nt' 'nor one who builds'
root "SELECT pattern_alter('s.books', 'x', '{chunk: 3, mode: \"deferred\"}')" >"$DP_WORK/alter"
as dp_owner "INSERT INTO s.books (doc) VALUES ('{_id: 70, x: [1, 2, 3, 4]}')" >/dev/null
root "SELECT outlier_spill('s.books'); $settings" >>"$DP_WORK/alter"
is "$(grep ERROR "$DP_WORK/alter"; traps)" $'f\ndp_owner\nt' 'nor one who alters and spills'
as dp_owner "CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE OR DELETE ON s.books DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION s.t();
  CREATE CONSTRAINT TRIGGER late AFTER INSERT OR UPDATE OR DELETE ON s.books_x_extras DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION s.t(); DELETE FROM s.seen" >/dev/null
root "SELECT pattern_disable('s.books')" >"$DP_WORK/disable"
root "CALL pattern_build('s.books', 'x', 1)" >>"$DP_WORK/disable"
is "$(grep -c 'cannot fire deferred trigger within security-restricted operation' "$DP_WORK/disable")|$(root "SELECT rolsuper FROM pg_roles WHERE rolname = 'dp_owner'; SELECT who FROM s.seen WHERE who <> 'dp_owner'")" \
  '2|f' 'triggers are not put off until the superuser is himself again'
as dp_owner 'DROP TRIGGER late ON s.books; DROP TRIGGER late ON s.books_x_extras' >/dev/null
root "SELECT pattern_disable('s.books')" >"$DP_WORK/disable"
is "$(grep ERROR "$DP_WORK/disable"; traps)" $'f\ndp_owner\nt' 'nor does one who disables walk into a trap'

# A search_path full of traps -----------------------------------------------------------------------------------------------

as dp_evil "SET search_path = e, public; CREATE FUNCTION e.no(anyelement) RETURNS anyelement LANGUAGE plpgsql AS \$\$ BEGIN RAISE EXCEPTION 'hijacked'; END \$\$;
  DO \$\$
  DECLARE t text; o text; f text; n int := 0;
  BEGIN
    FOREACH t IN ARRAY ARRAY['text, text', 'int, int', 'bigint, bigint', 'boolean, boolean', 'oid, oid', 'name, text', 'name, name', 'numeric, numeric', 'public.bson, public.bson', 'public.bson_value, public.bson_value',
        'public.bson, text', 'public.bson_value, boolean', 'bytea, bytea', '\"char\", \"char\"', 'int, bigint', 'bigint, int', 'smallint, int', 'int[], int[]', 'bigint[], bigint[]', 'regclass, regclass', 'text[], text', 'int2, int2'] LOOP
      n := n + 1;
      EXECUTE format('CREATE FUNCTION e.op%s(%s) RETURNS boolean LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION ''''hijacked''''; END''', n, t);
      FOREACH o IN ARRAY ARRAY['=', '<>', '<', '>', '<=', '>=', '||', '->', '->>', '+', '-', '@>', '&', '~~', '%', '*'] LOOP
        EXECUTE format('CREATE OPERATOR e.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = e.op%s)', o, split_part(t, ', ', 1), split_part(t, ', ', 2), n);
      END LOOP;
    END LOOP;
    FOREACH f IN ARRAY ARRAY['to_bson(anyelement)', 'bson_get_text(public.bson, text)', 'bson_exists(public.bson, text)', 'bson_set(public.bson, text, public.bson_value)', 'bson_unset(public.bson, text)',
        'bson_typeof(public.bson, text)', 'bson_array_length(public.bson, text)', 'quote_ident(text)', 'quote_literal(text)', 'format(text, text)', 'to_regclass(text)', 'parse_ident(text)', 'current_setting(text)',
        'pg_has_role(oid, text)', 'bson_element_hashes(public.bson_value)', 'bson_array_holds(public.bson_value, public.bson_value)', 'pattern_whole(public.bson, regclass, public.bson_value)', 'count(text)', 'sum(int)',
        '_outlier_enable(regclass, text, int, text, text, int, int, text, boolean, text, text, regclass, text, boolean, text, text, boolean)', '_pattern_find(regclass, text, text)', '_pattern_declarations(regclass)',
        'array_prepend(text, text[])', 'current_schema()', 'cardinality(text[])'] LOOP
      EXECUTE format('CREATE FUNCTION e.%s RETURNS text LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION ''''hijacked''''; END''', f);
    END LOOP;
  END \$\$; GRANT USAGE ON SCHEMA e TO PUBLIC" >"$DP_WORK/paths"
is "$(grep ERROR "$DP_WORK/paths")" '' 'somebody fills a schema with names of ours'
cat >"$DP_WORK/hijack.sql" <<'SQL'
SET search_path = e, pg_catalog, public;
SELECT public.collection_create('s.shelf');
SELECT public.outlier_enable('s.shelf', 'x', 2, chunk => 2, count_field => 'n', is_set => true, index_elements => true);
SELECT public.outlier_enable('s.shelf', 'y', 1, extras => 's.things', on_field => 'shelf', flag => 'more', name => 'second', create_extras => true);
INSERT INTO s.shelf (doc) VALUES ('{_id: 1, x: [1, 2, 3, 4], y: [{_id: 1}, {_id: 2}]}'), ('{_id: 2}');
INSERT INTO s.things (doc) VALUES ('{_id: 3, shelf: 1}'), ('{_id: 4, shelf: 2}'), ('{_id: 5, shelf: 2}');
UPDATE s.shelf SET doc = public.bson_array_append(doc, 'x', 5);
UPDATE s.shelf SET doc = public.bson_set(doc, '_id'::text, 10) WHERE _id::text OPERATOR(pg_catalog.=) '1';
SELECT public.outlier_push_into('s.shelf', 'x', 10, 6, 7), public.outlier_push_into('s.shelf', 'second', 10, '{_id: 6}'::public.bson);
SELECT public.outlier_pull('s.shelf', 10, 2, 'x'), public.outlier_contains('s.shelf', 10, 7, 'x'), public.outlier_count('s.shelf', 10, 'x');
SELECT * FROM public.outlier_page('s.shelf', 10, 0, 10, 'x');
SELECT * FROM public.outlier_find('s.shelf', 7, 'x');
SELECT * FROM public.outlier_find('s.shelf', '{_id: 6}'::public.bson, 'second');
SELECT * FROM public.outlier_advise('s.shelf', 'x');
SELECT doc FROM s.shelf_whole;
UPDATE s.shelf_whole SET doc = '{_id: 11, x: [1, 2, 3]}' WHERE _id::text OPERATOR(pg_catalog.=) '10';
SELECT public.pattern_list();
SELECT public.pattern_list('s.shelf');
SELECT public.pattern_check();
SELECT public.pattern_check('s.shelf', 'x');
SELECT public.pattern_repair('s.shelf', 'x');
SELECT public.pattern_repair('s.shelf', 'second');
SELECT public.pattern_alter('s.shelf', 'x', '{threshold: 3, index_elements: false, mode: "deferred"}');
SELECT public.outlier_spill('s.shelf', 'x');
CALL public.pattern_build('s.shelf', 'x');
CALL public.pattern_build('s.shelf', 'second', NULL);
TRUNCATE s.things;
DELETE FROM s.shelf;
SELECT public.pattern_disable('s.shelf', 'x');
SELECT public.pattern_disable('s.shelf', 'second');
SQL
psql -XqAt -v VERBOSITY=verbose -f "$DP_WORK/hijack.sql" >"$DP_WORK/hijack" 2>&1
is "$(grep -A3 'ERROR' "$DP_WORK/hijack" | head -20)" '' 'a hostile search_path changes nothing'

everything
