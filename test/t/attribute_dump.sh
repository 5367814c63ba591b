#!/bin/bash
# Dump and restore of attributes and payloads: declarations, views and indexes arrive, documents are what they were, whatever
# comes first, and new ones are kept in line.
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning'
plan 25

fresh() {  # fresh DATABASE [SQL]
  psql -Xqc "DROP DATABASE IF EXISTS $1 WITH (FORCE)" -c "CREATE DATABASE $1" postgres
  [ $# = 1 ] || psql -Xqc "$2" "$1"
}
ask() { psql -XqAt -v ON_ERROR_STOP=1 -d "$1" -c "$2" 2>&1; }  # ask DATABASE SQL

fresh dp_attribute 'CREATE EXTENSION docpatterns'
psql -Xq -v ON_ERROR_STOP=1 dp_attribute >/dev/null <<'SQL'
SELECT collection_create('movies');
SELECT attribute_enable('movies', 'releases', pattern => 'release_{location}', value_field => 'date', rename => '{"US": "USA"}', is_unique => true);
SELECT attribute_enable('movies', 'specs', paths => '{color,size.height}', qualifiers => '{"size.height": "cm"}');
INSERT INTO movies (doc) SELECT bson_build('_id', i, 'release_US', i, 'release_UK', 'x' || i, 'color', 'c', 'size', bson_build('height', i)) FROM generate_series(1, 50) i;
CREATE SCHEMA "S p";
CREATE TABLE "S p"."T ""t" (id int, part int, doc bson, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE "S p"."P 1" PARTITION OF "S p"."T ""t" FOR VALUES IN (1);
CREATE TABLE "S p"."P 2" PARTITION OF "S p"."T ""t" FOR VALUES IN (2);
CREATE FUNCTION "S p"."f ""f"(text) RETURNS int IMMUTABLE LANGUAGE sql RETURN length($1);
SELECT payload_enable('"S p"."T ""t"', 'xml', '{a: "xpath:/m/@a::int", n: "function:\"S p\".\"f \"\"f\""}');
SELECT attribute_enable('"S p"."T ""t"', 'list', prefix => 'x ', view_name => 'W ''w');
INSERT INTO "S p"."T ""t" SELECT i, 1 + i % 2, bson_build('xml', format('<m a="%s">%s</m>', i, repeat('text ', 100)), 'x y', i) FROM generate_series(1, 50) i;
SQL
list="SELECT rel, pattern, name, options FROM pattern_list() ORDER BY rel::text, 2, 3"
rows="SELECT 'm', _id::text, doc::bytea FROM movies UNION ALL SELECT 't', id::text, doc::bytea FROM \"S p\".\"T \"\"t\" ORDER BY 1, 2"
objects="SELECT tgrelid::regclass, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname LIKE 'zz_docpatterns_%'
  UNION ALL SELECT indrelid::regclass, pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid >= 16384 AND indrelid::regclass::text !~ 'pg_toast'
  UNION ALL SELECT oid::regclass, pg_get_viewdef(oid) FROM pg_class WHERE relname IN ('movies_wide', 'T \"t_whole', 'W ''w') ORDER BY 1, 2"
wanted_list=$(ask dp_attribute "$list") wanted_rows=$(ask dp_attribute "$rows") wanted_objects=$(ask dp_attribute "$objects" | sort)
is "$(ask dp_attribute 'SELECT v FROM pattern_check() v')" '' 'the patterns are true'

same() {  # same DATABASE NAME
  is "$(ask "$1" "$list")" "$wanted_list" "$2: the declarations are the same"
  is "$(ask "$1" "$rows" | md5sum)" "$(md5sum <<<"$wanted_rows")" "$2: so is every document"
  [ "$(ask "$1" "$objects" | sort)" = "$wanted_objects" ] || diff <(ask "$1" "$objects" | sort) <(printf '%s\n' "$wanted_objects") | sed 's/^/# /' | head
  is "$(ask "$1" "$objects" | sort)" "$wanted_objects" "$2: and triggers, indexes and views"
  is "$(ask "$1" 'SELECT v FROM pattern_check() v')" '' "$2: the patterns are true"
  is "$(ask "$1" "BEGIN; INSERT INTO movies_wide (doc) VALUES ('{_id: 99, release_US: 5}') RETURNING doc;
                  UPDATE \"S p\".\"T \"\"t_whole\" AS w SET doc = bson_set(doc, 'xml', '<m a=\"7\"/>') WHERE id = 1;
                  SELECT doc -> 'a', doc -> 'n' FROM \"S p\".\"T \"\"t\" WHERE id = 1; ROLLBACK")" '{"_id": 99, "release_US": 5}
7|10' "$2: and alive"
}

fresh dp_attribute_copy
pg_dump dp_attribute 2>"$DP_WORK/errors" | psql -Xq dp_attribute_copy 2>>"$DP_WORK/errors" >/dev/null
is "$(cat "$DP_WORK/errors")" '' 'pg_dump | psql says nothing'
same dp_attribute_copy 'pg_dump | psql'

fresh dp_attribute_copy
pg_dump -Fc dp_attribute >"$DP_WORK/custom" 2>"$DP_WORK/errors"
pg_restore -j2 -d dp_attribute_copy "$DP_WORK/custom" 2>>"$DP_WORK/errors"
is "$(cat "$DP_WORK/errors")" '' 'pg_restore -j2 says nothing'
same dp_attribute_copy 'pg_restore -j2'

# triggers are there already when the documents come: they have nothing to do
fresh dp_attribute_copy
pg_dump --schema-only dp_attribute | psql -Xq dp_attribute_copy 2>"$DP_WORK/errors" >/dev/null
pg_dump --data-only dp_attribute | psql -Xq dp_attribute_copy 2>>"$DP_WORK/errors" >/dev/null
is "$(cat "$DP_WORK/errors")" '' 'the structure, then the data'
same dp_attribute_copy 'structure, then data'

fresh dp_attribute_copy 'CREATE EXTENSION docpatterns'
pg_dump -t movies dp_attribute 2>"$DP_WORK/errors" | psql -Xq dp_attribute_copy 2>>"$DP_WORK/errors" >/dev/null
is "$(cat "$DP_WORK/errors")" '' 'one table alone'
is "$(ask dp_attribute_copy "SELECT pattern_repair('movies', 'releases'); SELECT v FROM pattern_check() v; SELECT doc ->> 'release_US' FROM movies_wide WHERE _id = 5")" '0
5' 'which gets its view back'
is "$(ask dp_attribute_copy "SELECT pattern_disable('movies', 'releases'), pattern_disable('movies', 'specs'); SELECT doc FROM movies WHERE _id = 5")" '50|50
{"_id": 5, "release_US": 5, "release_UK": "x5", "color": "c", "size": {"height": 5}}' 'and can be put back'
is "$(ask dp_attribute_copy "DROP TABLE movies; SELECT count(*) FROM pg_class WHERE relname LIKE 'movies%'")" 0 'nothing is left'
is "$(ask dp_attribute 'DROP EXTENSION docpatterns' | head -1)" 'ERROR:  cannot drop extension docpatterns because other objects depend on it' 'the extension stays'
is "$(ask dp_attribute 'DROP TABLE movies CASCADE; SELECT count(*) FROM pattern_list()')" 2 'a table that is dropped takes its patterns along'
fresh dp_attribute
psql -Xqc 'DROP DATABASE dp_attribute' -c 'DROP DATABASE dp_attribute_copy' postgres
