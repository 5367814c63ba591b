#!/bin/bash
# Who may do what with derived data: who writes to one table needs no rights on the others and sees nothing of them but what is
# copied by declaration; what patterns keep is written by patterns only; and nobody gets rights by a declaration or a name.
. "$DP_TOP/test/env/tap.sh"
set -u
export PGOPTIONS='-c client_min_messages=warning -c timezone=UTC' PGDATABASE=dp_derived_rights
plan 61

as() { psql -XqAt -U "$1" -v VERBOSITY=verbose -c "$2" 2>&1 | grep -v '^LOCATION:\|^CONTEXT\|^SQL statement\|^SQL function\|^PL/pgSQL'; }  # as ROLE SQL
root() { as postgres "$1"; }
clean() { root "SELECT v FROM pattern_check() v"; }
everything() {
  psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_derived_rights WITH (FORCE)' -c 'DROP ROLE IF EXISTS dp_owner, dp_writer, dp_other, dp_evil' 2>&1
}

everything
psql -Xq -d postgres -c 'CREATE DATABASE dp_derived_rights' -c 'CREATE ROLE dp_owner LOGIN' -c 'CREATE ROLE dp_writer LOGIN' -c 'CREATE ROLE dp_other LOGIN' -c 'CREATE ROLE dp_evil LOGIN'
root 'CREATE EXTENSION docpatterns; CREATE SCHEMA s AUTHORIZATION dp_owner; GRANT USAGE ON SCHEMA s TO PUBLIC; CREATE SCHEMA e AUTHORIZATION dp_evil; GRANT USAGE ON SCHEMA e TO PUBLIC'
cat >"$DP_WORK/declare.sql" <<'SQL'
SELECT public.collection_create('s.' || c) FROM unnest(ARRAY['movies', 'screenings', 'made', 'products', 'reviews', 'films', 'customers', 'orders', 'suppliers', 'items', 'votes', 'pages', 'categories', 'sales']) c;
SELECT public.computed_enable('s.movies', 's.screenings', 'movie', '{n: {$count: {}}, sum: {$sum: "$x"}, best: {$max: "$i"}}', name => 'shown');
SELECT public.computed_enable('s.movies', 's.screenings', 'movie', '{seen: {$addToSet: "$i", cap: 100}}', mode => 'on_read');
SELECT public.computed_enable('s.made', 's.screenings', 'movie', '{total: {$sum: "$x"}}', create_missing => true, mode => 'deferred');
SELECT public.rollup_enable('s.screenings', name => 'by_time', time_field => 'ts', levels => '{hour,day}', fields => '{viewers: {$sum: "$x"}}');
SELECT public.tree_enable('s.categories', parent => 'parent');
SELECT public.rollup_enable('s.sales', name => 'by_category', tree => 's.categories', group_by => '{category}', fields => '{total: {$sum: "$amount"}}');
SELECT public.subset_enable('s.products', 'reviews', 's.reviews', 'product', '{date: -1}', 2, fields => '{text: 1}', count_field => 'n', count_mode => 'deferred');
SELECT public.subset_fields_enable('s.films', cold => '{specs}', name => 'cold');
SELECT public.reference_enable('s.orders', 'customer', 's.customers', live => '{name}', frozen => '{address}');
SELECT public.reference_enable('s.items', 'supplier', 's.suppliers', live => '{name}', missing => 'allow', refresh => 'deferred', on_delete => 'unset');
SELECT public.approximation_enable('s.votes', field => 'likes', slots => 4);
SELECT public.approximation_enable('s.pages', field => 'views', error => 0.1);
SQL
cat >"$DP_WORK/write.sql" <<'SQL'
INSERT INTO s.movies (doc) VALUES ('{_id: "m", secret: 1}');
INSERT INTO s.screenings (doc) VALUES ('{_id: 1, movie: "m", x: 0.5, i: 7, ts: ISODate("2023-01-01T00:00:00Z"), secret: 1}'), ('{_id: 2, movie: "m", x: 1, i: 9, ts: ISODate("2023-01-01T00:00:00Z")}');
INSERT INTO s.categories (doc) VALUES ('{_id: "e"}'), ('{_id: "c", parent: "e"}');
INSERT INTO s.sales (doc) VALUES ('{_id: 1, category: "c", amount: 5}');
INSERT INTO s.products (doc) VALUES ('{_id: 1, secret: 1}'), ('{_id: 2}');
INSERT INTO s.reviews (doc) VALUES ('{_id: 1, product: 1, date: 1, text: "a", secret: 1}'), ('{_id: 2, product: 1, date: 2, text: "b"}'), ('{_id: 3, product: 1, date: 3, text: "c"}');
INSERT INTO s.films (doc) VALUES ('{_id: 1, specs: "cold"}');
INSERT INTO s.customers (doc) VALUES ('{_id: 1, name: "n", address: "a", secret: "s"}'), ('{_id: 2, name: "n2", secret: "s"}');
INSERT INTO s.orders (doc) VALUES ('{_id: 1, customer: 1}');
INSERT INTO s.suppliers (doc) VALUES ('{_id: 1, name: "n", secret: "s"}');
INSERT INTO s.items (doc) VALUES ('{_id: 1, supplier: 1}'), ('{_id: 2, supplier: 7}');
INSERT INTO s.votes (doc) VALUES ('{_id: 1, likes: 5}');
INSERT INTO s.pages (doc) VALUES ('{_id: 1}');
SELECT public.approximation_add('s.votes', 1, 3);
UPDATE s.suppliers SET doc = public.bson_set(doc, 'name'::text, 'late'::text);
SQL
psql -XqAt -U dp_owner -v ON_ERROR_STOP=1 -f "$DP_WORK/declare.sql" >"$DP_WORK/setup" 2>&1
psql -XqAt -U dp_owner -v ON_ERROR_STOP=1 -f "$DP_WORK/write.sql" >>"$DP_WORK/setup" 2>&1
is "$(grep -A3 ERROR "$DP_WORK/setup"; clean)" '' 'an owner declares patterns in a schema of his own'

# Rights on one table of two --------------------------------------------------------------------------------------------------

as dp_owner "GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON s.screenings, s.reviews, s.orders, s.items, s.films, s.votes, s.sales TO dp_writer; GRANT SELECT, INSERT, UPDATE, DELETE ON s.films_whole, s.votes_whole TO dp_writer;
  GRANT SELECT, INSERT, UPDATE, DELETE ON s.movies, s.products, s.customers, s.suppliers, s.categories TO dp_other"
is "$(as dp_writer "INSERT INTO s.screenings (doc) VALUES ('{_id: 5, movie: \"m\", x: 2, i: 1, ts: ISODate(\"2023-01-01T00:00:00Z\")}'), ('{_id: 6, movie: \"new\", x: 2, i: 1}'); UPDATE s.screenings SET doc = bson_set(doc, 'x', 4) WHERE _id = 5; DELETE FROM s.screenings WHERE _id = 2")" '' 'who writes to a source needs no rights on what is derived'
is "$(root "SELECT doc - '_computed' FROM s.movies; SELECT doc - '_computed' - '_id' FROM s.by_time ORDER BY _id LIMIT 1; SELECT computed_refresh('s.made'); SELECT _id FROM s.made ORDER BY _id")$(clean)" \
  $'{"_id": "m", "secret": 1, "n": 2, "sum": 4.5, "best": 7}\n{"level": "hour", "start": {"$date": "2023-01-01T00:00:00Z"}, "viewers": 4.5}\n2\n"m"\n"new"' 'and it is true'
is "$(as dp_writer "INSERT INTO s.reviews (doc) VALUES ('{_id: 9, product: 1, date: 9, text: \"w\"}'); DELETE FROM s.reviews WHERE _id = 3; INSERT INTO s.sales (doc) VALUES ('{_id: 2, category: \"c\", amount: 6}')"; root "SELECT doc FROM s.products WHERE _id = 1; SELECT doc ->> 'total' FROM s.by_category ORDER BY _id")$(clean)" \
  $'{"_id": 1, "secret": 1, "reviews": [{"text": "w"}, {"text": "b"}], "n": 0}\n11\n11' 'the same for the top of a group, and along a tree'
is "$(as dp_writer "INSERT INTO s.orders (doc) VALUES ('{_id: 5, customer: 1}'), ('{_id: 6, customer: {_id: 2, secret: \"mine\"}}') RETURNING doc; INSERT INTO s.items (doc) VALUES ('{_id: 5, supplier: 1}') RETURNING doc; INSERT INTO s.orders (doc) VALUES ('{_id: 7, customer: 99}')")" \
  $'{"_id": 5, "customer": {"_id": 1, "name": "n", "address": "a"}}\n{"_id": 6, "customer": {"_id": 2, "secret": "mine", "name": "n2"}}\n{"_id": 5, "supplier": {"_id": 1, "name": "late"}}\nERROR:  23503: a document in table "orders" refers to a document that does not exist\nDETAIL:  Its field "customer" contains 99, which is not a key of table "customers".' 'of a source one sees what is copied, and nothing else'
is "$(as dp_other "INSERT INTO s.movies (doc) VALUES ('{_id: \"new\"}') RETURNING doc; SELECT doc - '_computed' FROM s.movies WHERE _id = '\"new\"'; INSERT INTO s.products (doc) VALUES ('{_id: 3}'); UPDATE s.products SET doc = bson_set(doc, '_id', 4) WHERE _id = 3; UPDATE s.customers SET doc = bson_set(doc, 'name', 'new'); UPDATE s.categories SET doc = bson_set(doc, 'x', 1)"; root "SELECT DISTINCT doc -> 'customer' ->> 'name' FROM s.orders")$(clean)" \
  $'{"_id": "new", "n": 0, "sum": 0, "best": null}\n{"_id": "new", "n": 1, "sum": 2, "best": 1}\nnew' 'who writes to what is derived needs no rights on the source'
is "$(as dp_other "DELETE FROM s.customers WHERE _id = 1" | head -1 | cut -c 1-13; as dp_other "DELETE FROM s.suppliers"; root "SELECT doc FROM s.items WHERE _id = 1")" $'ERROR:  23503\n{"_id": 1}' 'sources are deleted by the rules'
is "$(as dp_writer "UPDATE s.films SET doc = bson_set(doc, 'specs', 'hot'); SELECT doc FROM s.films_whole; UPDATE s.films_whole SET doc = bson_set(doc, 'specs', 'whole'); SELECT doc FROM s.films; SELECT approximation_add('s.votes', 1, 4); SELECT doc FROM s.votes_whole")$(clean)" \
  $'{"_id": 1, "specs": "hot"}\n{"_id": 1}\nt\n{"_id": 1, "likes": 12}' 'fields that lie aside, and shards'
for c in 'SELECT doc FROM s.movies' 'SELECT doc FROM s.products' 'SELECT doc FROM s.customers' 'SELECT doc FROM s.by_time' 'SELECT doc FROM s.movies_seen_view' 'SELECT * FROM s.films_cold_cold' 'SELECT * FROM s.votes_likes_shards' 'SELECT * FROM s.made_total_queue' \
  'SELECT * FROM s.products_reviews_queue' 'SELECT * FROM s.items_supplier_queue' "SELECT computed_refresh('s.made')" "SELECT * FROM computed_staleness('s.made')" "SELECT subset_refresh('s.products')" "SELECT reference_refresh('s.items')" \
  "SELECT * FROM reference_staleness('s.items')" "SELECT * FROM reference_dangling('s.items')" "SELECT approximation_sync('s.votes')" "SELECT * FROM approximation_read('s.pages', 1)" "SELECT approximation_add('s.pages', 1, 1000)" \
  "SELECT * FROM reference_cost('s.orders', 'customer', 's.customers')" "SELECT pattern_check('s.orders')" "SELECT pattern_repair('s.screenings', 'by_time')" "SELECT pattern_alter('s.votes', 'likes', '{slots: 2}')" "SELECT pattern_disable('s.items')" \
  "CALL pattern_build('s.orders')" "SELECT computed_enable('s.orders', 's.screenings', 'movie', '{n: {\$count: {}}}')" "SELECT reference_enable('s.items', 'c', 's.orders')" "SELECT rollup_enable('s.sales', name => 'x', time_field => 'ts', levels => '{day}', fields => '{n: {\$count: {}}}')" \
  "SELECT subset_enable('s.orders', 'x', 's.items', 'o', '{a: 1}', 2)" "SELECT subset_split('s.orders', 'x', 's.items', 'o', 2)" "SELECT subset_join('s.products')" "SELECT subset_fields_enable('s.orders', cold => '{x}')" "SELECT approximation_enable('s.orders', field => 'x', slots => 2)"; do
  got=$(as dp_writer "$c" | head -1)
  case $got in 'ERROR:  42501:'*) got=refused ;; esac
  is "$got" refused "refused: $(printf '%s' "$c" | cut -c 1-70)"
done
# every function of the patterns that is not for everybody looks who calls
root "GRANT ALL ON SCHEMA s TO dp_writer"
is "$(as dp_writer "SET docpatterns.maintain = off; INSERT INTO s.screenings (doc) VALUES ('{_id: 20, movie: \"m\", x: 2, i: 100}'); INSERT INTO s.orders (doc) VALUES ('{_id: 20, customer: 1}'); DELETE FROM s.reviews WHERE _id = 9; UPDATE s.films SET doc = bson_set(doc, 'specs', 'off')")$(clean)" '' 'a writer cannot switch maintenance off'

# What patterns keep ---------------------------------------------------------------------------------------------------------

for t in made_total_queue products_reviews_queue items_supplier_queue by_time by_category films_cold_cold votes_likes_shards; do
  is "$({ as dp_owner "DELETE FROM s.$t"; root "TRUNCATE s.$t"; as dp_owner "INSERT INTO s.$t OVERRIDING USER VALUE SELECT * FROM s.$t"; root "COPY s.$t FROM stdin"; as dp_owner "DELETE FROM s.$t WHERE false"; } | grep ERROR | cut -c 1-13 | uniq -c | tr -s ' ')" ' 5 ERROR: 55000' "$t is written to by its pattern only"
done

# Pairs are no secret --------------------------------------------------------------------------------------------------------

before=$(root "SELECT doc::text FROM s.movies UNION ALL SELECT doc::text FROM s.made UNION ALL SELECT doc::text FROM s.products UNION ALL SELECT doc::text FROM s.orders ORDER BY 1")
link_id() { root "SELECT encode(tgargs, 'escape') FROM pg_trigger WHERE tgrelid = 's.$1'::regclass AND tgnargs = 1 AND tgname ~ '$2'" | grep -o "\"$3\": \"[0-9a-f]*\"" | head -1 | sed 's/.*: "//; s/"//'; }
declared() { root "SELECT convert_from(substring(tgargs FOR length(tgargs) - 1), 'UTF8') FROM pg_trigger WHERE tgrelid = 's.$1'::regclass AND tgnargs = 1 AND tgname ~ '$2'" | sed "s/'/''/g"; }
forge=
for d in movies:computed_shown:computed_trigger made:computed_total:computed_trigger products:subset_reviews:subset_trigger orders:reference_customer:reference_trigger items:reference_supplier:reference_trigger; do
  table=${d%%:*} rest=${d#*:}
  name=${rest%%:*} function=${rest#*:}
  p=$(link_id $table $name link_id) q=$(link_id $table $name second_link_id)
  # a source of his own, a queue of his own, and a table that claims to be what is derived
  forge="$forge CREATE TABLE e.source_$table (_id public.bson_value PRIMARY KEY, doc public.bson);
    CREATE TRIGGER zz_docpatterns_80_${name}_insert AFTER INSERT ON e.source_$table REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION docpatterns.${function/reference_trigger/reference_source_trigger}('side', '$p', '${name#*_}');
    CREATE TRIGGER zz_docpatterns_80_${name}_before BEFORE INSERT ON e.source_$table FOR EACH STATEMENT EXECUTE FUNCTION docpatterns.${function/reference_trigger/reference_source_trigger}('side', '$p', '${name#*_}');
    CREATE TABLE e.queue_$table (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key public.bson_value, delta public.bson, queued_at timestamptz DEFAULT now());
    CREATE TRIGGER zz_docpatterns_90_${name}_guard BEFORE INSERT ON e.queue_$table FOR EACH STATEMENT EXECUTE FUNCTION docpatterns.pattern_guard_trigger('side', '${q:-none}', '${name#*_}');
    CREATE TABLE e.target_$table (_id public.bson_value PRIMARY KEY, doc public.bson);
    INSERT INTO e.target_$table VALUES ('\"m\"', '{_id: \"m\"}'), (1, '{_id: 1}');
    CREATE TRIGGER zz_docpatterns_80_${name} BEFORE INSERT OR UPDATE ON e.target_$table FOR EACH ROW EXECUTE FUNCTION docpatterns.$function('$(declared $table $name)');"
done
as dp_evil "$forge" >"$DP_WORK/evil"
is "$(grep -A2 ERROR "$DP_WORK/evil")" '' 'another user forges triggers that name the link IDs'
for table in movies made products orders items; do
  as dp_evil "INSERT INTO e.source_$table VALUES ('77', '{_id: 77, movie: \"m\", product: 1, i: 1000, x: 1000, date: 1000, text: \"evil\"}')" >>"$DP_WORK/evil"
  as dp_evil "INSERT INTO e.target_$table VALUES ('2', '{_id: 2, customer: 2, supplier: 1}') RETURNING doc; UPDATE e.target_$table SET doc = public.bson_set(doc, 'x', 1) RETURNING doc" >>"$DP_WORK/evil"
done
queued=$(root 'SELECT count(*) FROM e.queue_made UNION ALL SELECT count(*) FROM e.queue_products UNION ALL SELECT count(*) FROM e.queue_items')
as dp_writer "INSERT INTO s.screenings (doc) VALUES ('{_id: 40, movie: \"m\", x: 0, i: 0}'); DELETE FROM s.screenings WHERE _id = 40; INSERT INTO s.reviews (doc) VALUES ('{_id: 40, product: 1, date: 100, text: \"w\"}'); DELETE FROM s.reviews WHERE _id = 40" >"$DP_WORK/writes"
as dp_other "UPDATE s.customers SET doc = bson_set(doc, 'x', 2)" >>"$DP_WORK/writes"
is "$(cat "$DP_WORK/writes")" '' 'whose tables do not disturb others'
is "$(root "SELECT doc::text FROM s.movies UNION ALL SELECT doc::text FROM s.made UNION ALL SELECT doc::text FROM s.products UNION ALL SELECT doc::text FROM s.orders ORDER BY 1")" "$before" 'nor change what is derived'
is "$(root 'SELECT count(*) FROM e.queue_made UNION ALL SELECT count(*) FROM e.queue_products UNION ALL SELECT count(*) FROM e.queue_items')" "$queued" 'no key goes to his queues'
is "$(grep -c 'n2\|"new"\|secret\|evil' "$DP_WORK/evil")" 0 'and nothing is shown to him'
is "$(root "SELECT v FROM pattern_check('s.movies') v UNION ALL SELECT v FROM pattern_check('s.made') v UNION ALL SELECT v FROM pattern_check('s.products') v UNION ALL SELECT v FROM pattern_check('s.orders') v UNION ALL SELECT v FROM pattern_check('s.items') v")" '' 'all is true'
as dp_evil "DROP TABLE e.source_movies, e.source_made, e.source_products, e.source_orders, e.source_items, e.target_movies, e.target_made, e.target_products, e.target_orders, e.target_items, e.queue_movies, e.queue_made, e.queue_products, e.queue_orders, e.queue_items CASCADE" >"$DP_WORK/evil"
is "$(cat "$DP_WORK/evil"; root "SELECT count(*) FROM pattern_list()"; clean)" 12 'when he drops them he takes nothing along'
as dp_evil "CREATE VIEW e.fake WITH (security_barrier) AS SELECT 1 AS _id, 2 AS doc FROM s.films; CREATE TRIGGER t INSTEAD OF INSERT ON e.fake FOR EACH ROW EXECUTE FUNCTION docpatterns.pattern_whole_trigger();
  CREATE VIEW e.fake2 AS SELECT _id FROM s.movies; COMMENT ON VIEW e.fake2 IS ' with the computed fields \"seen\"'" >"$DP_WORK/evil"
root 'ALTER TABLE s.films OWNER TO postgres; ALTER TABLE s.movies OWNER TO postgres; ALTER TABLE s.screenings OWNER TO postgres'
is "$(cat "$DP_WORK/evil"; root "SELECT relname, relowner::regrole FROM pg_class WHERE relname IN ('fake', 'fake2', 'films_whole', 'movies_seen_view', 'films_cold_cold') ORDER BY relname COLLATE \"C\"")" $'fake|dp_evil\nfake2|dp_evil\nfilms_cold_cold|postgres\nfilms_whole|postgres\nmovies_seen_view|postgres' 'views of others are given to nobody'
root 'DROP VIEW e.fake, e.fake2; ALTER TABLE s.films OWNER TO dp_owner; ALTER TABLE s.movies OWNER TO dp_owner; ALTER TABLE s.screenings OWNER TO dp_owner'

# An owner who wants to be more ------------------------------------------------------------------------------------------------

as dp_owner "CREATE TABLE s.seen (who text, what text); GRANT INSERT ON s.seen TO PUBLIC;
  CREATE FUNCTION s.grab() RETURNS void LANGUAGE plpgsql AS \$\$ BEGIN INSERT INTO s.seen VALUES (current_user, 'index'); END \$\$;
  CREATE FUNCTION s.t() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN INSERT INTO s.seen VALUES (current_user, TG_TABLE_NAME); RETURN NEW; END \$\$;
  CREATE FUNCTION s.ix(public.bson) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \$\$ BEGIN PERFORM s.grab(); RETURN 1; END \$\$;
  CREATE TRIGGER aaa BEFORE UPDATE ON s.movies FOR EACH ROW EXECUTE FUNCTION s.t(); CREATE TRIGGER aaa BEFORE UPDATE ON s.products FOR EACH ROW EXECUTE FUNCTION s.t(); CREATE TRIGGER aaa AFTER UPDATE ON s.orders FOR EACH ROW EXECUTE FUNCTION s.t();
  CREATE TRIGGER aaa BEFORE INSERT ON s.made FOR EACH ROW EXECUTE FUNCTION s.t(); CREATE INDEX ON s.movies (s.ix(doc)); CREATE INDEX ON s.orders (s.ix(doc)); TRUNCATE s.seen" >"$DP_WORK/setup"
root "INSERT INTO s.screenings (doc) VALUES ('{_id: 60, movie: \"m\", x: 1, i: 1}'), ('{_id: 61, movie: \"made\", x: 1, i: 1}'); INSERT INTO s.reviews (doc) VALUES ('{_id: 60, product: 1, date: 60, text: \"w\"}'); UPDATE s.customers SET doc = bson_set(doc, 'name', 'root'); SELECT computed_refresh('s.made')" >>"$DP_WORK/setup"
is "$(grep ERROR "$DP_WORK/setup"; root "SELECT DISTINCT who, what FROM s.seen ORDER BY 2")" $'dp_owner|index\ndp_owner|made\ndp_owner|movies\ndp_owner|orders\ndp_owner|products' 'what patterns write runs functions of an owner with his rights, whoever has caused it'
as dp_owner 'DROP FUNCTION s.t CASCADE; DROP FUNCTION s.ix CASCADE' >/dev/null
is "$(clean)" '' 'all is true'

# A search_path full of traps --------------------------------------------------------------------------------------------------

as dp_evil "DO \$\$
  DECLARE t text; o text; f text; n int := 0;
  BEGIN
    FOREACH t IN ARRAY ARRAY['text, text', 'int, int', 'bigint, bigint', 'boolean, boolean', 'oid, oid', 'name, text', 'name, name', 'numeric, numeric', 'public.bson, public.bson', 'public.bson_value, public.bson_value',
        'public.bson, text', 'public.bson_value, boolean', 'public.bson_value, text', 'bytea, bytea', '\"char\", \"char\"', 'int, bigint', 'bigint, int', 'smallint, int', 'int[], int[]', 'bigint[], bigint[]', 'regclass, regclass', 'text[], text', 'int2, int2', 'timestamptz, timestamptz', 'timestamptz, interval'] LOOP
      n := n + 1;
      EXECUTE format('CREATE FUNCTION e.op%s(%s) RETURNS boolean LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION ''''hijacked''''; END''', n, t);
      FOREACH o IN ARRAY ARRAY['=', '<>', '<', '>', '<=', '>=', '||', '->', '->>', '+', '-', '@>', '@@', '&', '~~', '%', '*'] LOOP
        EXECUTE format('CREATE OPERATOR e.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = e.op%s)', o, split_part(t, ', ', 1), split_part(t, ', ', 2), n);
      END LOOP;
    END LOOP;
    FOREACH f IN ARRAY ARRAY['to_bson(anyelement)', 'bson_get_text(public.bson, text)', 'bson_exists(public.bson, text)', 'bson_set(public.bson, text, public.bson_value)', 'bson_unset(public.bson, text)', 'bson_sort_key(public.bson, public.bson)',
        'bson_accumulate(public.bson, public.bson)', 'reference_array_hashes(public.bson, text, text)', 'reference_differs(public.bson, public.bson, text[])', 'quote_ident(text)', 'quote_literal(text)', 'format(text, text)', 'to_regclass(text)',
        'current_setting(text)', 'pg_has_role(oid, text)', 'count(text)', 'sum(int)', 'now()', 'clock_timestamp()', 'random()', '_pattern_declarations(regclass)', '_pattern_side(text, regclass)', 'bson_agg(public.bson_value)', 'coalesce_(text)'] LOOP
      EXECUTE format('CREATE FUNCTION e.%s RETURNS text LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION ''''hijacked''''; END''', f);
    END LOOP;
  END \$\$" >"$DP_WORK/paths"
is "$(grep ERROR "$DP_WORK/paths")" '' 'somebody fills a schema with names of ours'
root 'DROP SCHEMA s CASCADE; CREATE SCHEMA s AUTHORIZATION dp_owner'
sed "s/'s.' || c/pg_catalog.concat('s.', c)/" "$DP_WORK/declare.sql" >"$DP_WORK/hijack.sql"
cat "$DP_WORK/write.sql" - >>"$DP_WORK/hijack.sql" <<'SQL'
SELECT public.bucket_create('s.meter', 'sensor text, ts timestamptz, x int', group_by => '{sensor}', time_field => 'ts', span => '1 hour');
SELECT public.computed_enable('s.movies', 's.meter', 'sensor', '{most: {$max: "$x"}}', name => 'meter');
SELECT public.rollup_enable('s.meter', name => 'by_hour', time_field => 'ts', levels => '{hour}', group_by => '{sensor}', fields => '{most: {$max: "$x"}}');
SELECT public.rollup_enable('s.meter', name => 'by_place', tree => 's.categories', group_by => '{sensor}', fields => '{most: {$max: "$x"}}');
INSERT INTO s.meter VALUES ('m', '2023-01-01', 1), ('m', '2023-01-01', 3), ('c', '2023-01-01', 4), ('c', '2023-01-01', 6);
DELETE FROM s.meter WHERE x OPERATOR(pg_catalog.>) 4;
DELETE FROM s.meter WHERE x OPERATOR(pg_catalog.=) 3;
UPDATE s.screenings SET doc = public.bson_set(doc, 'i'::text, 3);
UPDATE s.customers SET doc = public.bson_set(doc, 'name'::text, 'x'::text);
SELECT public.computed_refresh('s.made'), public.reference_refresh('s.items'), public.subset_refresh('s.products'), public.approximation_sync('s.votes');
SELECT * FROM public.computed_staleness('s.made');
SELECT * FROM public.reference_staleness('s.items');
SELECT * FROM public.reference_dangling('s.items');
SELECT * FROM public.reference_cost('s.orders', 'customer', 's.customers');
SELECT * FROM public.approximation_read('s.pages', 1);
SELECT public.approximation_add('s.pages', 1, 1000);
SELECT doc FROM s.films_whole;
SELECT doc FROM s.movies_seen_view;
UPDATE s.films_whole SET doc = public.bson_set(doc, 'specs'::text, 'x'::text);
UPDATE s.categories SET doc = public.bson_set(doc, 'parent'::text, 'none'::text) WHERE false;
SELECT 'violation', v FROM public.pattern_check() v;
SELECT public.pattern_repair('s.movies', 'shown'), public.pattern_repair('s.made'), public.pattern_repair('s.products'), public.pattern_repair('s.films'), public.pattern_repair('s.orders'), public.pattern_repair('s.items'), public.pattern_repair('s.votes'), public.pattern_repair('s.screenings'), public.pattern_repair('s.sales'), public.pattern_repair('s.movies', 'meter'), public.pattern_repair('s.meter', 'by_hour'), public.pattern_repair('s.meter', 'by_place');
CALL public.pattern_build('s.movies', 'shown');
CALL public.pattern_build('s.made');
CALL public.pattern_build('s.products');
CALL public.pattern_build('s.films');
CALL public.pattern_build('s.orders');
CALL public.pattern_build('s.votes');
CALL public.pattern_build('s.screenings');
CALL public.pattern_build('s.sales');
SELECT public.pattern_alter('s.movies', 'shown', '{mode: "deferred"}'), public.pattern_alter('s.products', 'reviews', '{keep: 1}'), public.pattern_alter('s.films', 'cold', '{cold: ["other"]}'), public.pattern_alter('s.orders', 'customer', '{on_delete: "cascade"}'), public.pattern_alter('s.votes', 'likes', '{slots: 2}');
DELETE FROM s.customers;
DELETE FROM s.suppliers;
DELETE FROM s.sales;
TRUNCATE s.screenings, s.reviews;
DELETE FROM s.votes;
SELECT 'violation', v FROM public.pattern_check() v;
SELECT public.pattern_disable('s.movies', 'shown'), public.pattern_disable('s.movies', 'seen'), public.pattern_disable('s.made'), public.pattern_disable('s.products'), public.pattern_disable('s.films'), public.pattern_disable('s.orders'), public.pattern_disable('s.items'), public.pattern_disable('s.votes'), public.pattern_disable('s.pages'), public.pattern_disable('s.screenings'), public.pattern_disable('s.sales');
SQL
PGOPTIONS="$PGOPTIONS -c search_path=e,pg_catalog,public" psql -XqAt -U dp_owner -v VERBOSITY=verbose -f "$DP_WORK/hijack.sql" >"$DP_WORK/hijack" 2>&1
is "$(grep -A3 'ERROR\|violation' "$DP_WORK/hijack" | head -20)" '' 'a hostile search_path changes nothing'
everything
