# Dump and restore of databases with patterns: everything arrives, stays together and goes on working.
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning'
plan 66

fresh() {  # fresh DATABASE [CREATE EXTENSION...]
  psql -Xqc "DROP DATABASE IF EXISTS $1 WITH (FORCE)" -c "CREATE DATABASE $1" postgres
  [ $# = 1 ] || psql -Xqc "$2" "$1"
}
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }  # ask DATABASE SQL
errors() { grep -c 'ERROR' "$1"; }

for db in dp_source dp_copy dp_third; do fresh $db; done
psql -Xqc 'DROP ROLE IF EXISTS dp_plain' -c 'CREATE ROLE dp_plain LOGIN' postgres
psql -Xq -v ON_ERROR_STOP=1 dp_source >/dev/null <<'SQL' || echo 'not ok 0 - the source database was filled'
CREATE EXTENSION docpatterns;
SELECT collection_create('books');
SELECT outlier_enable('books', 'b', 3, chunk => 2, count_field => 'n');
INSERT INTO books (doc) SELECT bson_build('_id', i, 'b', (SELECT bson_agg(j) FROM generate_series(1, i) j)) FROM generate_series(1, 9) i;

SELECT collection_create('users');
SELECT collection_create('orders');
SELECT outlier_enable('users', 'o', 1, extras => 'orders', on_field => 'u', count_field => 'n');
INSERT INTO users (doc) VALUES ('{_id: "u1", o: [{_id: 1, a: 1}, {_id: 2}, {_id: 3}]}'), ('{_id: "u2", o: []}');

CREATE TABLE parts (id int, k text, doc bson, PRIMARY KEY (id, k)) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (100) TO (200);
SELECT outlier_enable('parts', 'p', 2, keep => 0, stay => 'last');
INSERT INTO parts SELECT 60 * i, 'k', '{p: [1, 2, 3, 4]}' FROM generate_series(1, 2) i;

CREATE SCHEMA "o'S.chema";
CREATE TABLE "o'S.chema"."T ""t" ("K k" text PRIMARY KEY, "D ""d" bson);
SELECT outlier_enable('"o''S.chema"."T ""t"', 'a."b c"', 1, name => 'it''s "n" %s', index_elements => true, is_set => true);
INSERT INTO "o'S.chema"."T ""t" VALUES ('x''y', '{a: {"b c": [1, 2, 3]}}');

SELECT collection_create('kinds');
INSERT INTO kinds (doc) VALUES ($${_id: 1, a: {$numberInt: "5"}, b: {$numberLong: "5"}, c: {$numberDouble: "-0.0"}, d: {$numberDouble: "NaN"}, e: {$numberDecimal: "1.2300"},
  f: {$date: {$numberLong: "-62135596800001"}}, g: {$oid: "0123456789abcdef01234567"}, h: {$binary: {base64: "AAEC", subType: "80"}}, i: {$regularExpression: {pattern: "a/b\\n", options: "ix"}},
  j: {$timestamp: {t: 4294967295, i: 1}}, k: {$minKey: 1}, l: {$maxKey: 1}, m: {$undefined: true}, n: null, o: {$symbol: "s\u0000"}, p: {$code: "x"}, q: {$code: "x", $scope: {y: 1}},
  r: {$dbPointer: {$ref: "n", $id: {$oid: "0123456789abcdef01234567"}}}, s: "a\u0000\ue000\\\"\n\t", t: [], u: {}, v: [{}, [1]], w: true, "": "", "a.b": 1, a: "twice", x: {$numberDouble: "1e300"},
  y: {$uuid: "00112233-4455-6677-8899-aabbccddeeff"}, z: 1.0}$$);
-- documents whose fields look like type wrappers are data too
INSERT INTO kinds (doc) SELECT bson_build('_id', 2, 'w', bson_build('$numberInt', '5'), 'o', bson_build('$oid', 'x', 'y', 1), 'd', bson_build('$date', bson_build('$numberLong', '1')));
SQL
state="SELECT rel, pattern, name, options FROM pattern_list() ORDER BY rel::text, 2, 3"
data="SELECT 'books', doc::bytea FROM books UNION ALL SELECT 'whole', doc::bytea FROM books_whole UNION ALL SELECT 'users', doc::bytea FROM users_whole UNION ALL SELECT 'orders', doc::bytea FROM orders
  UNION ALL SELECT 'kinds', doc::bytea FROM kinds UNION ALL SELECT 'parts', doc::bytea FROM parts_whole UNION ALL SELECT 't', \"D \"\"d\"::bytea FROM \"o'S.chema\".\"T \"\"t_whole\"
  UNION ALL SELECT 'x', (SELECT string_agg(x::text, ',' ORDER BY x::text)::bytea FROM books_b_extras x) ORDER BY 1, 2"
wanted_state=$(ask dp_source "$state")
wanted_data=$(ask dp_source "$data")
is "$(ask dp_source 'SELECT count(*) FROM pattern_list()')" 4 'four patterns are declared'
is "$(ask dp_source 'SELECT * FROM pattern_check()')" '' 'and true'

# what a restored database has to be like; 8 tests
same() {  # same DATABASE NAME
  is "$(ask "$1" "$state")" "$wanted_state" "$2: the declarations are the same"
  is "$(ask "$1" "$data")" "$wanted_data" "$2: so is every byte of every document"
  is "$(ask "$1" 'SELECT * FROM pattern_check()')" '' "$2: the patterns are true"
  ask "$1" 'DROP TABLE books_b_extras' >"$DP_WORK/drop" ; ask "$1" 'DROP TABLE orders' >>"$DP_WORK/drop"; ask "$1" 'DROP TABLE books' >>"$DP_WORK/drop"
  is "$(grep -c 'because other objects depend on it' "$DP_WORK/drop")" 3 "$2: the tables depend on each other"
  is "$(ask "$1" "BEGIN; DROP TABLE books, users, parts CASCADE; DROP SCHEMA \"o'S.chema\" CASCADE;
      SELECT relname FROM pg_class WHERE relname ~ 'extras|whole|books' UNION ALL SELECT tgname FROM pg_trigger WHERE tgname LIKE 'zz_docpatterns_[5-9]%'; ROLLBACK")" '' "$2: DROP .. CASCADE leaves nothing"
  is "$(ask "$1" "BEGIN; SELECT outlier_push('books', 9, 'new'), outlier_push('users', 'u1', '{\"_id\": 4}'::bson), outlier_push('parts', ROW(60, 'k'), 5), outlier_push('\"o''S.chema\".\"T \"\"t\"', 'x''y', 4);
      INSERT INTO books (doc) VALUES ('{_id: 10, b: [1, 2, 3, 4, 5, 6]}'); INSERT INTO orders (doc) VALUES ('{_id: 5, u: \"u2\"}'), ('{_id: 6, u: \"u2\"}');
      UPDATE parts SET id = id + 50; UPDATE parts_2 SET k = 'other' WHERE id = 170; SELECT key, what, found FROM pattern_check();
      SELECT outlier_count('books', 9), outlier_count('users', 'u1'), outlier_count('users', 'u2'), outlier_count('parts', ROW(170, 'other')),
             (SELECT count(*) FROM books_b_extras WHERE key = to_bson(10)); ROLLBACK")" \
    $'1|1|1|1\n10|4|2|4|2' "$2: the patterns are alive"
  is "$(ask "$1" 'INSERT INTO books_b_extras SELECT * FROM books_b_extras' | grep -c 'kept by a pattern')" 1 "$2: the extras are guarded"
  is "$(ask "$1" "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'zz_docpatterns_%'")" "$(ask dp_source "SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'zz_docpatterns_%'")" "$2: no trigger is missing"
}

# the whole database as text
pg_dump dp_source >"$DP_WORK/first.sql" 2>"$DP_WORK/errors"
psql -Xq dp_copy <"$DP_WORK/first.sql" 2>>"$DP_WORK/errors" >/dev/null
is "$(head -5 "$DP_WORK/errors")" '' 'pg_dump | psql says nothing'
same dp_copy 'pg_dump | psql'
pg_dump dp_copy >"$DP_WORK/second.sql"
ok 'a dump of the copy is the same text' cmp -s <(grep -v '^\\\(un\)\?restrict' "$DP_WORK/first.sql") <(grep -v '^\\\(un\)\?restrict' "$DP_WORK/second.sql")

# in parallel
rm -rf "$DP_WORK/dir"
fresh dp_copy
{ pg_dump -Fd -j2 -f "$DP_WORK/dir" dp_source && pg_restore -j2 -d dp_copy "$DP_WORK/dir"; } >"$DP_WORK/errors" 2>&1
is "$(head -5 "$DP_WORK/errors")" '' 'pg_dump -Fd -j2 and pg_restore -j2 say nothing'
same dp_copy 'in parallel'

# as a restore in parallel may: triggers of a partitioned table before its partitions are filled and have their keys
fresh dp_copy
pg_dump -Fc -f "$DP_WORK/custom" dp_source
pg_restore -l "$DP_WORK/custom" | awk '!/^;/ { if (/ TRIGGER public parts /) early = early $0 "\n"; else { line[++n] = $0 } }
  END { for (i = 1; i <= n; i++) { if (line[i] ~ / TABLE DATA / && !done++) printf "%s", early; print line[i] } }' >"$DP_WORK/order"
pg_restore -L "$DP_WORK/order" -d dp_copy "$DP_WORK/custom" >"$DP_WORK/errors" 2>&1
is "$(head -5 "$DP_WORK/errors")" '' 'a restore that creates triggers before their data says nothing'
same dp_copy 'triggers first'

# structure first, split data later
fresh dp_copy
pg_dump --schema-only dp_source | psql -Xq dp_copy >/dev/null 2>"$DP_WORK/errors"
pg_dump --data-only dp_source >"$DP_WORK/data.sql" 2>/dev/null
psql -Xq dp_copy <"$DP_WORK/data.sql" >"$DP_WORK/refused" 2>&1
ok 'data that is split already is not copied into the extras by accident' grep -q 'kept by a pattern and cannot be written to directly' "$DP_WORK/refused"
ask dp_copy "TRUNCATE books, users, orders, parts, kinds, \"o'S.chema\".\"T \"\"t\"" >>"$DP_WORK/errors"
PGOPTIONS="$PGOPTIONS -c docpatterns.maintain=off" psql -Xq dp_copy <"$DP_WORK/data.sql" >>"$DP_WORK/errors" 2>&1
is "$(grep ERROR "$DP_WORK/errors" | head -5)" '' 'with docpatterns.maintain off it is restored'
same dp_copy 'structure first'

# the same with triggers switched off by the dump
ask dp_copy "TRUNCATE books, users, orders, parts, kinds, \"o'S.chema\".\"T \"\"t\"" >"$DP_WORK/errors"
pg_dump --data-only --disable-triggers dp_source 2>/dev/null | psql -Xq dp_copy 2>>"$DP_WORK/errors" >/dev/null
is "$(head -5 "$DP_WORK/errors")" '' 'a dump that switches triggers off is restored'
is "$(ask dp_copy "$data")" "$wanted_data" 'triggers off: every byte is the same'
is "$(ask dp_copy 'SELECT * FROM pattern_check()')" '' 'triggers off: the patterns are true'

# over what is there (pg_dump drops the keys of partitions one by one, which PostgreSQL refuses whatever has made them)
pg_dump --clean dp_source | psql -Xq dp_copy 2>"$DP_WORK/errors" >/dev/null
is "$(grep -v 'cannot drop inherited constraint' "$DP_WORK/errors" | head -5)" '' 'a dump that drops first is restored over what is there'
same dp_copy 'over what is there'

# one table alone
fresh dp_third 'CREATE EXTENSION docpatterns'
pg_dump -t books dp_source | psql -Xq dp_third >"$DP_WORK/errors" 2>&1
ok 'pattern_check misses the extras of a table that was restored alone' grep -q 'extras table|present|missing' <(ask dp_third "SELECT * FROM pattern_check('books')")
is "$(ask dp_third "INSERT INTO books (doc) VALUES ('{_id: 20, b: [1]}'); UPDATE books SET doc = bson_set(doc, 'title', 'x') WHERE _id = 1; SELECT count(*) FROM books")" 10 'one table alone takes typical documents'
ok 'the error for others says what to do' grep -q 'pattern_repair' <(ask dp_third "INSERT INTO books (doc) VALUES ('{_id: 21, b: [1, 2, 3, 4]}')")
is "$(ask dp_third "SELECT pattern_repair('books') > 0")" t 'pattern_repair starts with no extras'
is "$(ask dp_third "INSERT INTO books (doc) VALUES ('{_id: 21, b: [1, 2, 3, 4]}'); SELECT outlier_push('books', 21, 5); SELECT outlier_count('books', 21); SELECT * FROM pattern_check()")" $'1\n5' 'and all is well'

# by somebody who is no superuser, into a database that has the extension
fresh dp_third "CREATE EXTENSION docpatterns; GRANT CREATE ON DATABASE dp_third TO dp_plain; GRANT CREATE ON SCHEMA public TO dp_plain"
pg_dump --no-owner dp_source | sed '/^CREATE EXTENSION/d;/^COMMENT ON EXTENSION/d' | psql -Xq -U dp_plain dp_third 2>"$DP_WORK/errors" >/dev/null
is "$(head -5 "$DP_WORK/errors")" '' 'a plain user restores what is his'
same dp_third 'a plain user'

psql -Xqc 'DROP DATABASE dp_source' -c 'DROP DATABASE dp_copy' -c 'DROP DATABASE dp_third' -c 'DROP ROLE dp_plain' postgres
