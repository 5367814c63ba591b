#!/bin/bash
# Dump and restore of single collections and relations: all at once, in parallel, the tables one after the other, and one alone.
. "$DP_TOP/test/env/tap.sh"
set -u
plan 14
export PGOPTIONS='-c client_min_messages=warning'
fresh() { psql -Xq -d postgres -c "DROP DATABASE IF EXISTS $1 WITH (FORCE)" -c "CREATE DATABASE $1"; }
ask() { psql -XqAt -d "$1" -c "$2" 2>&1; }
fresh dp_rel_from
psql -XqAt -v ON_ERROR_STOP=1 -d dp_rel_from >/dev/null <<'SQL' || echo 'not ok 0 - the tables were made'
CREATE EXTENSION docpatterns;
SELECT collection_create(c) FROM unnest('{cat,keyed,p,d,u}'::text[]) c;
SELECT single_collection_enable('cat', id_fields => '{"it''s \"b\" %s": "n"}', self_related => ARRAY['it''s "b" %s'], types => ARRAY['it''s "b" %s', 'note'], on_delete => 'cascade');
SELECT single_collection_enable('keyed', key_field => 'k', separator => '::');
SELECT relation_enable('p', 'ds', 'd', 'ps', missing => 'allow'), relation_enable('u', 'friends', 'u', 'friends');
INSERT INTO cat (doc) SELECT bson_build('_id', i, 'docType', 'it''s "b" %s', 'n', i) FROM generate_series(1, 5) i;
INSERT INTO cat (doc) SELECT bson_build('_id', 100 + i, 'docType', 'note', 'relatedTo', bson_array(1 + i % 5)) FROM generate_series(1, 9) i;
INSERT INTO keyed (doc) VALUES ('{_id: 1, k: "a"}'), ('{_id: 2, k: "a::b"}'), ('{_id: 3, k: "a::b::c"}');
INSERT INTO d (doc) SELECT bson_build('_id', i) FROM generate_series(1, 5) i;
INSERT INTO p (doc) SELECT bson_build('_id', i, 'ds', bson_array(1 + i % 6, 1 + (i + 1) % 5)) FROM generate_series(1, 9) i;
INSERT INTO u (doc) VALUES ('{_id: 1}'), ('{_id: 2, friends: [1]}');
SQL
rows="SELECT 'cat', doc::text FROM cat UNION ALL SELECT 'keyed', doc::text FROM keyed UNION ALL SELECT 'p', doc::text FROM p UNION ALL SELECT 'd', doc::text FROM d UNION ALL SELECT 'u', doc::text FROM u ORDER BY 1, 2"
declared='SELECT rel, pattern, name, options FROM pattern_list() ORDER BY 1, 2, 3'
pg_dump -Fc -f "$DP_WORK/rel.dump" dp_rel_from

# What a database must do that was restored.
alive() {  # alive DATABASE
  ask "$1" "DELETE FROM cat WHERE _id = 1; SELECT count(*) FROM cat; UPDATE d SET doc = bson_set(doc, 'ps', '[9]'::bson_value) WHERE _id = 2; SELECT doc -> 'ds' FROM p WHERE _id = 9;
    INSERT INTO d (doc) VALUES ('{_id: 6}'); SELECT doc FROM d WHERE _id = 6; SELECT count(*) FROM cat_note; SELECT count(*) FROM single_collection_get('keyed', 'a::b'); SELECT * FROM pattern_check()"
}
fresh dp_rel_to
pg_restore -d dp_rel_to "$DP_WORK/rel.dump"
is "$(ask dp_rel_to "$rows")" "$(ask dp_rel_from "$rows")" 'the documents come back'
is "$(ask dp_rel_to "$declared")" "$(ask dp_rel_from "$declared")" 'so do the declarations'
is "$(ask dp_rel_to 'SELECT * FROM pattern_check()')" '' 'and are true'
expected=$'12\n[4, 1, 2]\n{"_id": 6, "ps": [5]}\n8\n2'
is "$(alive dp_rel_to)" "$expected" 'and kept'
is "$(ask dp_rel_to 'DROP TABLE cat')" "$(printf '%s\n' 'ERROR:  cannot drop table cat because other objects depend on it' 'DETAIL:  view "cat_it'"'"'s ""b"" %s" depends on table cat' 'view cat_note depends on table cat' 'HINT:  Use DROP ... CASCADE to drop the dependent objects too.' | sed 's/view "cat_it.*" depends/view "cat_it'"'"'s ""b"" %s" depends/')" 'DROP TABLE needs CASCADE'
fresh dp_rel_to
pg_restore -j 3 -d dp_rel_to "$DP_WORK/rel.dump"
is "$(ask dp_rel_to 'SELECT * FROM pattern_check()')" '' 'a restore in parallel is true'
is "$(alive dp_rel_to)" "$expected" 'and kept'

# the tables of a relation one after the other, the second first
for order in 'p d' 'd p'; do
  fresh dp_rel_to
  ask dp_rel_to 'CREATE EXTENSION docpatterns'
  for t in $order; do pg_dump -t "$t" dp_rel_from | psql -XqAt -d dp_rel_to >/dev/null 2>"$DP_WORK/errors"; done
  is "$(ask dp_rel_to 'SELECT * FROM pattern_check()')" '' "restored as $order: true"
  is "$(ask dp_rel_to "UPDATE d SET doc = bson_set(doc, 'ps', '[9]'::bson_value) WHERE _id = 2; SELECT doc -> 'ds' FROM p WHERE _id = 9")" '[4, 1, 2]' 'and kept'
done
# one of them alone
fresh dp_rel_to
ask dp_rel_to 'CREATE EXTENSION docpatterns'
pg_dump -t p dp_rel_from | psql -XqAt -d dp_rel_to >/dev/null 2>"$DP_WORK/errors"
is "$(ask dp_rel_to "UPDATE p SET doc = bson_set(doc, 'ds', '[3]'::bson_value) WHERE _id = 1; SELECT doc -> 'ds' FROM p WHERE _id = 1")" '[3]' 'one side alone can be written to'
is "$(ask dp_rel_to 'SELECT what, expected, found FROM pattern_check()')" 'other side|present|missing' 'and says what is missing'
is "$(ask dp_rel_to "SELECT pattern_disable('p'); SELECT count(*) FROM pattern_list()")" $'0\n0' 'and is disabled'
for db in dp_rel_from dp_rel_to; do psql -Xq -d postgres -c "DROP DATABASE $db WITH (FORCE)"; done
