# Upgrades: installing an old release and upgrading it makes what installing this version makes, object by object.
#
# For each release that is kept in test/releases, and for two made-up versions, whose step is written as a real one would be. That
# this test notices what a step forgets is tested too.
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning'
cd "$DP_TOP" || exit 1
version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" docpatterns.control)
extensions=$(pg_config --sharedir)/extension
case $extensions in "$("$DP_CLUSTER" home)"/*) ;; *) echo "Bail out! $extensions is not private"; exit 1 ;; esac
releases=$(find test/releases -name 'docpatterns--*.sql.gz' 2>/dev/null | sed 's/.*docpatterns--\(.*\)\.sql\.gz/\1/' | sort -V)
older=$(printf '%s\n' $releases | grep -vx "$version")
plan $((19 + 2 * $(printf '%s\n' $older | grep -c .)))

drop() {
  for name in dp_upgraded dp_installed; do psql -Xq -d postgres -c "DROP DATABASE IF EXISTS $name WITH (FORCE)"; done
}
clean_up() { drop; rm -f "$extensions"/docpatterns--9[89].0.0*.sql "$extensions"/docpatterns--*--99.0.0.sql; for old in $older; do rm -f "$extensions/docpatterns--$old.sql"; done; }
trap clean_up EXIT
objects() { psql -Xq -d "$1" -f test/env/extension_objects.sql; }  # objects DATABASE

installed() {  # installed VERSION; what it makes is in $DP_WORK/installed
  psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_installed WITH (FORCE)' -c 'CREATE DATABASE dp_installed'
  psql -Xq -d dp_installed -c "CREATE EXTENSION docpatterns VERSION '$1'" && objects dp_installed >"$DP_WORK/installed"
}

# Installs a version, declares a pattern, upgrades, and prints what differs from $DP_WORK/installed ("<" is missing or other there).
upgraded() {  # upgraded OLD NEW
  psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_upgraded WITH (FORCE)' -c 'CREATE DATABASE dp_upgraded'
  psql -Xq -v ON_ERROR_STOP=1 -d dp_upgraded 2>&1 >/dev/null <<SQL || return
CREATE EXTENSION docpatterns VERSION '$1';
SELECT collection_create('books');
SELECT outlier_enable('books', 'buyers', 2, count_field => 'n');
INSERT INTO books (doc) SELECT bson_build('_id', i, 'buyers', ARRAY[1, 2, i]) FROM generate_series(1, 5) i;
CREATE TABLE books_before AS SELECT _id, doc FROM books_whole;
ALTER EXTENSION docpatterns UPDATE TO '$2';
UPDATE books SET doc = bson_array_append(doc, 'buyers', 9) WHERE _id = 5;
SQL
  objects dp_upgraded >"$DP_WORK/upgraded"
  diff "$DP_WORK/upgraded" "$DP_WORK/installed" | grep '^[<>]'
}
true_documents() {
  psql -XqAt -d dp_upgraded -c "SELECT * FROM pattern_check()" -c "SELECT b.doc, w.doc FROM books_before b FULL JOIN books_whole w USING (_id) WHERE (_id <> 5 AND b.doc IS DISTINCT FROM w.doc) OR (_id = 5 AND w.doc ->> 'n' <> '4')"
}

# The releases -------------------------------------------------------------------------------------------------------------

installed "$version"
is "$(grep '^unknown' "$DP_WORK/installed")" '' 'every kind of object that the extension has is compared'
is "$(grep -c ': member: yes$' "$DP_WORK/installed")" "$(psql -XqAt -d dp_installed -c "SELECT count(*) FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid WHERE d.deptype = 'e' AND e.extname = 'docpatterns' AND NOT (d.classid = 'pg_type'::regclass AND EXISTS (SELECT FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid WHERE t.oid = d.objid AND c.relkind <> 'c'))")" 'and every object'
kept=test/releases/docpatterns--$version.sql.gz
if [ -e "$kept" ]; then
  is "$(gzip -dc "$kept" | cmp - "$extensions/docpatterns--$version.sql" 2>&1)" '' "$version is released, and still makes what it made"
else
  ok "$version is not released" true
fi
is "$(for old in $older; do [ "$(printf '%s\n%s\n' "$old" "$version" | sort -V | tail -1)" = "$version" ] && [ -e "$extensions/docpatterns--$old--$version.sql" ] || echo "$old"; done)" '' 'there is a way from each release'
is "$(find "$extensions" -name 'docpatterns--*.sql' | sed 's/.*--//' | grep -vFx "$version.sql")" '' 'and only to this version, which the library belongs to'
for old in $older; do
  gzip -dc "test/releases/docpatterns--$old.sql.gz" >"$extensions/docpatterns--$old.sql"
  is "$(upgraded "$old" "$version")" '' "an upgrade from $old makes what $version installs"
  is "$(true_documents)" '' 'and the documents are as they were, and true'
done

# A made-up version and the next --------------------------------------------------------------------------------------------

next=$DP_WORK/next
rm -rf "$next"
mkdir -p "$next"
cp -R Makefile docpatterns.control sql "$next"
make_version() {  # make_version VERSION TARGET...; the made-up part is on standard input
  sed -i "s/^default_version.*/default_version = '$1'/" "$next/docpatterns.control"
  cat >"$next/sql/made_up.sql"
  shift
  make -s -C "$next" "$@" 2>&1
}
# the parts are listed in the Makefile; one is added at the end
sed -i 's|sql/pattern_advise\.sql$|& $(wildcard sql/made_up.sql sql/made_up_more.sql)|' "$next/Makefile"

is "$(make_version 98.0.0 docpatterns--98.0.0.sql <<'SQL'
CREATE FUNCTION made_up_same(int) RETURNS int LANGUAGE sql RETURN CASE WHEN $1 > 0 THEN $1 END;
CREATE FUNCTION made_up_changed(bson) RETURNS int LANGUAGE sql AS $$ SELECT 1; $$;
COMMENT ON FUNCTION made_up_changed(bson) IS 'one';
CREATE FUNCTION made_up_dropped(int) RETURNS int LANGUAGE sql RETURN 1;
CREATE TYPE made_up_mood AS ENUM ('good');
CREATE TABLE made_up_settings (name text PRIMARY KEY, mood made_up_mood);
SELECT pg_catalog.pg_extension_config_dump('made_up_settings', '');
CREATE VIEW made_up_names AS SELECT name FROM made_up_settings;
SQL
)" '' 'a version is made up'
cp "$next/docpatterns--98.0.0.sql" "$extensions/"
cat >"$next/sql/made_up_more.sql" <<'SQL'
-- A part that is new; with a semicolon here.
CREATE FUNCTION made_up_trap() RETURNS event_trigger LANGUAGE plpgsql AS $x$ BEGIN NULL; END $x$;
CREATE EVENT TRIGGER made_up_trap ON sql_drop EXECUTE FUNCTION made_up_trap();
CREATE AGGREGATE made_up_sum(int) (SFUNC = int4pl, STYPE = int);
SQL
cat >"$next/sql/upgrades/docpatterns--98.0.0--99.0.0.sql" <<'SQL'
-- what cannot be replaced
DROP FUNCTION made_up_dropped(int);
ALTER TYPE made_up_mood ADD VALUE 'bad';
ALTER TABLE made_up_settings ADD COLUMN note text DEFAULT 'none' NOT NULL;
-- what is taken from the parts
\take FUNCTION made_up_changed
\take FUNCTION made_up_added(int)
\take FUNCTION made_up_clauses
\take COMMENT TYPE made_up_mood
\take VIEW made_up_names
\take OPERATOR ~~~ (made_up_mood, int4)
\take CAST (made_up_mood AS int4)
\take OPERATOR CLASS made_up_ops
\take part sql/made_up_more.sql
SQL
is "$(make_version 99.0.0 docpatterns--99.0.0.sql docpatterns--98.0.0--99.0.0.sql <<'SQL'
CREATE FUNCTION made_up_same(int) RETURNS int LANGUAGE sql RETURN CASE WHEN $1 > 0 THEN $1 END;
/* CREATE FUNCTION made_up_changed(bson) is what follows; it's "new" */
CREATE FUNCTION made_up_changed(bson) RETURNS int LANGUAGE sql AS $$ SELECT 2; -- '$x$
$$;
COMMENT ON FUNCTION made_up_changed(bson) IS 'it''s two; not "one"';
CREATE TYPE made_up_mood AS ENUM ('good', 'bad');
COMMENT ON TYPE made_up_mood IS 'a mood';
CREATE FUNCTION made_up_added(int) RETURNS int LANGUAGE sql IMMUTABLE BEGIN ATOMIC SELECT CASE WHEN $1 > 0 THEN CASE WHEN $1 > 1 THEN 2 ELSE 1 END END; SELECT 3; END;
COMMENT ON FUNCTION made_up_added(int) IS 'added';
REVOKE EXECUTE ON FUNCTION made_up_added(int) FROM PUBLIC;
CREATE FUNCTION made_up_clauses(made_up_mood, int4) RETURNS boolean LANGUAGE sql RETURN $1::text = $2::text;
CREATE FUNCTION made_up_clauses(made_up_mood) RETURNS int4 LANGUAGE sql RETURN 1;
CREATE TABLE made_up_settings (name text PRIMARY KEY, mood made_up_mood, note text DEFAULT 'none' NOT NULL);
SELECT pg_catalog.pg_extension_config_dump('made_up_settings', '');
CREATE VIEW made_up_names AS SELECT name, note FROM made_up_settings;
CREATE OPERATOR ~~~ (LEFTARG = made_up_mood, RIGHTARG = int4, FUNCTION = made_up_clauses);
COMMENT ON OPERATOR ~~~ (made_up_mood, int4) IS 'never';
CREATE CAST (made_up_mood AS int4) WITH FUNCTION made_up_clauses(made_up_mood) AS ASSIGNMENT;
CREATE OPERATOR CLASS made_up_ops FOR TYPE int4 USING btree AS OPERATOR 1 <, OPERATOR 3 =, FUNCTION 1 btint4cmp(int4, int4);
SQL
)" '' 'and so is the next, with a step to it'
is "$(grep -c "SELECT 2; -- '\$x\\$" "$next/docpatterns--98.0.0--99.0.0.sql"):$(grep -c "SELECT 2" "$next/sql/upgrades/docpatterns--98.0.0--99.0.0.sql")" 1:0 'a body stands in the parts only, and comes into the script from there'
cp "$next"/docpatterns--99.0.0.sql "$next"/docpatterns--98.0.0--99.0.0.sql "$extensions/"
installed 99.0.0
is "$(upgraded 98.0.0 99.0.0)" '' 'an upgrade makes what the next version installs'
is "$(true_documents)" '' 'and the documents are as they were, and true'

# What is wrong is noticed --------------------------------------------------------------------------------------------------

broken() {  # broken SED-COMMAND; prints what differs then
  sed "$1" "$next/docpatterns--98.0.0--99.0.0.sql" >"$extensions/docpatterns--98.0.0--99.0.0.sql"
  upgraded 98.0.0 99.0.0 | cut -c 1-80
}
is "$(broken '/^CREATE AGGREGATE made_up_sum\|^CREATE OR REPLACE AGGREGATE made_up_sum/d' | grep ': member')" '> aggregate public.made_up_sum(integer): member: yes' 'an object that the step forgets is noticed'
is "$(broken 's/SELECT 2; --/SELECT 4; --/' | sed 's/: CREATE.*//')" $'< function public.made_up_changed(public.bson): definition\n> function public.made_up_changed(public.bson): definition' 'and a body that is another'
is "$(broken '/^DROP FUNCTION made_up_dropped/d' | grep -c '^< function public.made_up_dropped(integer)')" 3 'and one that should have gone'

# of each kind of object one is changed in the database that was installed
is "$(psql -Xq -v ON_ERROR_STOP=1 -d dp_installed 2>&1 >"$DP_WORK/changed" <<SQL
BEGIN;
ALTER FUNCTION bson_size(bson) COST 77;
COMMENT ON FUNCTION bson_keys(bson) IS 'another';
REVOKE EXECUTE ON FUNCTION bson_typeof(bson_value) FROM PUBLIC;
ALTER FUNCTION pattern_list(regclass) RESET search_path;
ALTER OPERATOR = (bson, bson) SET (RESTRICT = NONE);
ALTER OPERATOR FAMILY bson_value_ops USING btree DROP FUNCTION 1 (bson_value, int2);
ALTER TYPE bson SET (STORAGE = external);
ALTER TABLE made_up_settings ALTER COLUMN note SET DEFAULT 'some', ADD CHECK (note <> '');
ALTER VIEW schema_versioning_progress RESET (security_barrier);
ALTER EVENT TRIGGER docpatterns_created DISABLE;
ALTER EXTENSION docpatterns DROP CAST (bson AS bytea);
ALTER AGGREGATE made_up_sum(int) OWNER TO pg_read_all_data;
UPDATE pg_extension SET extconfig = NULL, extcondition = NULL WHERE extname = 'docpatterns';
\i test/env/extension_objects.sql
ROLLBACK;
SQL
)" '' 'of each kind of object one is changed'
diff "$DP_WORK/changed" "$DP_WORK/installed" | grep '^[<>]' | cut -d: -f1,2 | sed 's/^[<>] //' | sort -u >"$DP_WORK/noticed"
is "$(cat "$DP_WORK/noticed")" "$(sort <<'TEXT'
aggregate public.made_up_sum(integer): owner
cast (public.bson AS pg_catalog.bytea): definition
cast (public.bson AS pg_catalog.bytea): member
cast (public.bson AS pg_catalog.bytea): comment
event trigger docpatterns_created: definition
extension: configuration
function public.bson_keys(public.bson): comment
function public.bson_size(public.bson): definition
function public.bson_typeof(public.bson_value): privileges
function public.pattern_list(pg_catalog.regclass): definition
operator family public.bson_value_ops USING btree: function 1 public.bson_value smallint
operator public.=(public.bson,public.bson): definition
table public.made_up_settings: column 3
table public.made_up_settings: constraint made_up_settings_note_check
type public.bson: type
view public.schema_versioning_progress: options
TEXT
)" 'and each change is noticed, and nothing else'

# Steps that cannot be read -------------------------------------------------------------------------------------------------

refused() {  # refused LINE; what the Makefile says to a step of this one line
  printf '%s\n' "$1" >"$next/sql/upgrades/docpatterns--98.0.0--99.0.0.sql"
  make -s -C "$next" docpatterns--98.0.0--99.0.0.sql 2>&1 | sed -n 's/^join.pl: [^:]*: //p; s/^join.pl: \(there.*\)/\1/p'
}
is "$(refused '\take FUNCTION made_up')" 'the parts have no FUNCTION made_up' 'what the parts do not have cannot be taken from them'
is "$(refused '\take OPERATOR ~~~ (made_up_mood, text)')" 'the parts have no OPERATOR ~~~ (made_up_mood, text)' 'with these arguments neither'
is "$(refused '\take part sql/nosuch.sql')" 'sql/nosuch.sql is not a part of the install script' 'and a part must be one'
cp "$next/sql/upgrades/docpatterns--98.0.0--99.0.0.sql" "$next/sql/upgrades/docpatterns--98.0.0--98.5.0.sql"
is "$(refused '')" 'there should be one step from 98.0.0, and there are 2' 'one step leads away from a version'
