# For the scripts in test/t that prove derived patterns, which source it: a database with a declaration of every kind, and
# what has to hold in it.
#
#   derived_fill DATABASE     makes the tables, declares and fills (the database has the extension)
#   $derived_tables           the tables, one word each; psql's names
#   derived_rows DATABASE     prints what all tables hold, in one order
#   derived_alive DATABASE    writes to all of it in a transaction that is rolled back and prints what is wrong: nothing

derived_fill() {
  psql -XqAt -v ON_ERROR_STOP=1 -d "$1" >/dev/null <<'SQL' || echo 'not ok 0 - the tables were made'
SET timezone = 'UTC';
SELECT collection_create(c) FROM unnest('{movies,screenings,made,products,reviews,notes,films,customers,orders,posts,suppliers,items,pages,cities,votes,categories,sales}'::text[]) c;
CREATE TABLE target_parts (id int, doc bson, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE target_parts_1 PARTITION OF target_parts FOR VALUES FROM (0) TO (5);
CREATE TABLE target_parts_2 PARTITION OF target_parts FOR VALUES FROM (5) TO (100);
CREATE TABLE source_parts (id int, doc bson, PRIMARY KEY (id)) PARTITION BY RANGE (id);
CREATE TABLE source_parts_1 PARTITION OF source_parts FOR VALUES FROM (0) TO (20);
CREATE TABLE source_parts_2 PARTITION OF source_parts FOR VALUES FROM (20) TO (1000);
CREATE SCHEMA "d'S.chema";
CREATE TABLE "d'S.chema"."T ""t%s" ("K k" text PRIMARY KEY, "D ""d" bson);
CREATE TABLE "d'S.chema"."S ""s%s" ("K k" int PRIMARY KEY, "D ""d" bson);

SELECT computed_enable('movies', 'screenings', 'movie', '{n: {$count: {}}, sum: {$sum: "$x"}, best: {$max: "$i"}, mean: {$avg: "$x"}, mid: {$median: {input: "$i", method: "approximate"}}, last: {$last: "$i"}}', target_field => 'title', filter => '{i: {$gt: 2}}', name => 'shown');
SELECT computed_enable('movies', 'screenings', 'movie', '{seen: {$addToSet: "$i", cap: 100}}', target_field => 'title', mode => 'on_read');
SELECT computed_enable('made', 'screenings', 'movie', '{total: {$sum: "$x"}}', create_missing => true, mode => 'deferred');
SELECT computed_enable('target_parts', 'source_parts', 'a', '{n: {$count: {}}, low: {$min: "$x"}}');
SELECT rollup_enable('screenings', name => 'by_time', time_field => 'ts', levels => '{hour,day,month}', group_by => '{movie}', fields => '{viewers: {$sum: "$x"}, best: {$max: "$i"}}');
SELECT tree_enable('categories', parent => 'parent');
SELECT rollup_enable('sales', name => 'by_category', tree => 'categories', group_by => '{category}', fields => '{total: {$sum: "$amount"}, most: {$max: "$amount"}}');
SELECT subset_enable('products', 'reviews', 'reviews', 'product', '{date: -1}', 3, fields => '{_id: 1, text: 1}', filter => '{hidden: {$exists: false}}', count_field => 'n', count_mode => 'deferred');
SELECT subset_enable('products', 'notes', 'notes', 'product', '{date: 1}', 2, count_field => 'notes_n', count_mode => 'immediate');
SELECT subset_enable('target_parts', 'top', 'source_parts', 'a', '{x: -1}', 2);
SELECT subset_fields_enable('films', cold => '{specs,cast.full}', name => 'cold');
SELECT reference_enable('orders', 'customer', 'customers', live => '{name}', frozen => '{address}');
SELECT reference_enable('posts', 'comments.author', 'customers', live => '{name}', on_delete => 'cascade');
SELECT reference_enable('items', 'supplier', 'suppliers', live => '{name}', on_delete => 'unset', missing => 'allow', refresh => 'deferred');
SELECT approximation_enable('pages', field => 'views', step => 10);
SELECT approximation_enable('pages', field => 'hits', error => 0.1);
SELECT approximation_enable('cities', field => 'population', threshold => '100');
SELECT approximation_enable('votes', field => 'likes', slots => 4);
SELECT computed_enable('"d''S.chema"."T ""t%s"', '"d''S.chema"."S ""s%s"', '"it''s ""k"" %s"', '{"to''t \"al %s": {$sum: "$x"}}', name => 'it''s "n" %s');
SELECT subset_enable('"d''S.chema"."T ""t%s"', 'a."b c"" %s''"', '"d''S.chema"."S ""s%s"', '"it''s ""k"" %s"', '{"x %s''": -1}', 2, count_field => '"c''%s"""', count_mode => 'deferred', name => 'sub ''"%s');
SELECT reference_enable('"d''S.chema"."S ""s%s"', '"ref ''""%s"', '"d''S.chema"."T ""t%s"', live => ARRAY['"na''m"" %s"'], missing => 'allow', refresh => 'deferred', name => 'ref ''"%s');
SELECT approximation_enable('"d''S.chema"."T ""t%s"', '"ap ''""%s"', slots => 3, name => 'ap ''"%s');

INSERT INTO movies (doc) SELECT bson_build('_id', i, 'title', 'm' || i) FROM generate_series(1, 4) i;
INSERT INTO screenings (doc) SELECT bson_build('_id', i, 'movie', 'm' || i % 6, 'x', i / 7.0::float8, 'i', i, 'ts', timestamptz '2023-01-01' + i * interval '7 hours') FROM generate_series(1, 30) i;
SELECT computed_refresh('made');
INSERT INTO target_parts SELECT i, '{}' FROM generate_series(1, 8) i;
INSERT INTO source_parts SELECT i, bson_build('a', i % 9, 'x', i) FROM generate_series(1, 40) i;
INSERT INTO categories (doc) VALUES ('{_id: "e"}'), ('{_id: "c", parent: "e"}'), ('{_id: "l", parent: "c"}'), ('{_id: "p", parent: "e"}');
INSERT INTO sales (doc) SELECT bson_build('_id', i, 'category', (ARRAY['e', 'c', 'l', 'p'])[i % 4 + 1], 'amount', i) FROM generate_series(1, 20) i;
INSERT INTO products (doc) SELECT bson_build('_id', i) FROM generate_series(1, 4) i;
INSERT INTO reviews (doc) SELECT bson_build('_id', i, 'product', i % 5, 'date', i * 7 % 11, 'text', 'r' || i) FROM generate_series(1, 40) i;
INSERT INTO notes (doc) SELECT bson_build('_id', i, 'product', i % 5, 'date', i * 7 % 11) FROM generate_series(1, 20) i;
SELECT subset_refresh('products', 'reviews');
INSERT INTO films (doc) SELECT bson_build('_id', i, 'title', 'f' || i, 'specs', bson_build('a', i), 'cast', bson_build('main', 1, 'full', bson_array(1, 2, i))) FROM generate_series(1, 5) i;
INSERT INTO customers (doc) SELECT bson_build('_id', i, 'name', 'c' || i, 'address', 'a' || i, 'secret', 's') FROM generate_series(1, 5) i;
INSERT INTO orders (doc) SELECT bson_build('_id', i, 'customer', i % 4 + 1) FROM generate_series(1, 12) i;
INSERT INTO posts (doc) SELECT bson_build('_id', i, 'comments', bson_array(bson_build('author', i % 4 + 1), bson_build('author', 5, 'text', 't'))) FROM generate_series(1, 6) i;
INSERT INTO suppliers (doc) SELECT bson_build('_id', i, 'name', 's' || i) FROM generate_series(1, 4) i;
INSERT INTO items (doc) SELECT bson_build('_id', i, 'supplier', i % 6 + 1) FROM generate_series(1, 12) i;
INSERT INTO pages (doc) VALUES ('{_id: 1, views: 7}'), ('{_id: 2}');
INSERT INTO cities (doc) VALUES ('{_id: 1, population: 5000}');
INSERT INTO votes (doc) VALUES ('{_id: 1, likes: 5}'), ('{_id: 2}');
SELECT approximation_add('votes', 1, 3), approximation_add('votes', 2, 4);
INSERT INTO "d'S.chema"."T ""t%s" VALUES ('a''"%s', '{"na''m\" %s": "x", "ap ''\"%s": 1}'), ('b', '{}');
INSERT INTO "d'S.chema"."S ""s%s" SELECT i, bson_build('it''s "k" %s', (ARRAY['a''"%s', 'b'])[i % 2 + 1], 'x', i, 'x %s''', i, 'ref ''"%s', 'a''"%s') FROM generate_series(1, 7) i;
SELECT approximation_add('"d''S.chema"."T ""t%s"', 'b', 2);
SELECT subset_refresh('"d''S.chema"."T ""t%s"');

-- some of it waits in queues
UPDATE suppliers SET doc = bson_set(doc, 'name', 'late') WHERE _id = 2;
INSERT INTO screenings (doc) VALUES ('{_id: 99, movie: "m2", x: 0.1, i: 50, ts: ISODate("2023-01-02T00:00:00Z")}');
INSERT INTO reviews (doc) VALUES ('{_id: 99, product: 3, date: -1, text: "last"}');
SQL
}

derived_rows() {
  psql -XqAt -d "$1" 2>&1 <<'SQL'
SET timezone = 'UTC';
SELECT format('SELECT %L, r::text FROM %s r ORDER BY r::text COLLATE "C"', c.oid::regclass, c.oid::regclass) FROM pg_class c
  WHERE relkind = 'r' AND relnamespace IN (current_schema::regnamespace, '"d''S.chema"'::regnamespace) ORDER BY c.oid::regclass::text COLLATE "C" \gexec
SQL
}

# Writes to every pattern, what follows from it, and what pattern_check says of it. With a second argument all of it is done
# twice in one session, and that SQL in between.
derived_alive() {
  { derived_writes; [ -z "${2:-}" ] || { printf '%s;\n' "$2"; derived_writes; }; } | psql -XqAt -v ON_ERROR_STOP=1 -d "$1" 2>&1 | grep -v '^ok$'
}

derived_writes() {
  cat <<'SQL'
SET timezone = 'UTC';
BEGIN;
INSERT INTO screenings (doc) VALUES ('{_id: 200, movie: "m1", x: 1.5, i: 70, ts: ISODate("2023-01-02T00:00:00Z")}'), ('{_id: 201, movie: "new", x: 1.5, i: 70}');
DELETE FROM screenings WHERE _id IN (99, 26);
UPDATE screenings SET doc = bson_set(doc, 'movie', 'm3') WHERE _id = 25;
SELECT CASE WHEN count(*) = 0 THEN 'ok' ELSE 'computed: ' || string_agg(m.doc::text, ', ') END FROM movies m
  LEFT JOIN (SELECT doc ->> 'movie' AS movie, count(*) AS n, max((doc -> 'i')::int) AS best FROM screenings WHERE (doc -> 'i')::int > 2 GROUP BY 1) s ON s.movie = m.doc ->> 'title'
  WHERE ((m.doc -> 'n')::int, (m.doc -> 'best')::int) IS DISTINCT FROM (s.n::int, s.best);
UPDATE movies SET doc = bson_set(doc, 'n', -1) WHERE _id = 1;
SELECT CASE WHEN (doc -> 'n')::int > 0 THEN 'ok' ELSE 'computed: a total was overwritten' END FROM movies WHERE _id = 1;
SELECT CASE WHEN bson_array_length(doc, 'seen') > 4 THEN 'ok' ELSE 'on_read: ' || doc::text END FROM movies_seen_view WHERE _id = 1;
SELECT CASE WHEN computed_refresh('made') > 0 THEN 'ok' ELSE 'computed: nothing was queued' END;
SELECT CASE WHEN count(*) = 7 AND count(*) = count(DISTINCT _id) THEN 'ok' ELSE 'made: ' || string_agg(doc::text, ', ') END FROM made;
INSERT INTO source_parts SELECT i, bson_build('a', i % 9, 'x', -i) FROM generate_series(300, 310) i;
UPDATE source_parts SET id = id + 100 WHERE id IN (3, 12, 30);
DELETE FROM source_parts_1 WHERE id IN (5, 6);
SELECT CASE WHEN count(*) = 0 THEN 'ok' ELSE 'partitions: ' || string_agg(t.doc::text, ', ') END FROM target_parts t
  JOIN (SELECT (doc -> 'a')::int AS a, count(*) AS n, min((doc -> 'x')::int) AS low, (array_agg((doc -> 'x')::int ORDER BY (doc -> 'x')::int DESC))[1:2] AS top FROM source_parts GROUP BY 1) s ON s.a = t.id
  WHERE ((t.doc -> 'n')::int, (t.doc -> 'low')::int, (t.doc -> 'top' -> 0 -> 'x')::int, (t.doc -> 'top' -> 1 -> 'x')::int) IS DISTINCT FROM (s.n::int, s.low, s.top[1], s.top[2]);
UPDATE categories SET doc = bson_set(doc, 'parent', 'p') WHERE _id = '"c"';
INSERT INTO sales (doc) VALUES ('{_id: 100, category: "l", amount: 1000}');
SELECT CASE WHEN string_agg((doc -> 'total')::int::text, ',' ORDER BY doc ->> 'category') = '1095,1210,1050,1150' THEN 'ok' ELSE 'roll-up: ' || string_agg((doc -> 'total')::int::text, ',' ORDER BY doc ->> 'category') END FROM by_category;
DELETE FROM reviews WHERE _id IN (SELECT (doc -> 'reviews' -> 0 -> '_id') FROM products);
INSERT INTO reviews (doc) VALUES ('{_id: 200, product: 1, date: 100, text: "first"}');
DELETE FROM notes WHERE (doc -> 'date')::int < 3;
SELECT CASE WHEN subset_refresh('products', 'reviews') > 0 THEN 'ok' ELSE 'subset: no counts were queued' END;
SELECT CASE WHEN doc @@ '{"reviews.0.text": "first", n: 8, notes_n: {$gt: 0}}' THEN 'ok' ELSE 'subset: ' || doc::text END FROM products WHERE _id = 1;
UPDATE films SET doc = bson_set(doc, 'specs', 'new') WHERE _id = 1;
UPDATE films_whole SET doc = bson_set(doc, 'cast.full', 'all') WHERE _id = 2;
SELECT CASE WHEN string_agg((doc -> 'specs')::text || bson_get_text(doc, 'cast.full'), ',' ORDER BY _id) = 'new[1, 2, 1],{"a": 2}all' THEN 'ok' ELSE 'cold: ' || string_agg(doc::text, ',') END FROM films_whole WHERE _id IN (1, 2);
UPDATE customers SET doc = bson_set(bson_set(doc, 'name', 'Renamed'), 'address', 'moved') WHERE _id IN (2, 5);
INSERT INTO orders (doc) VALUES ('{_id: 100, customer: 2}');
SELECT CASE WHEN count(*) = 4 AND count(*) FILTER (WHERE doc @@ '{"customer.address": "a2"}') = 3 THEN 'ok' ELSE 'reference: ' || count(*) END FROM orders WHERE doc @@ '{"customer.name": "Renamed"}';
SELECT CASE WHEN count(*) = 6 THEN 'ok' ELSE 'reference in an array: ' || count(*) END FROM posts WHERE doc @@ '{"comments.1.author.name": "Renamed"}';
DELETE FROM customers WHERE _id = 5;
SELECT CASE WHEN count(*) = 6 THEN 'ok' ELSE 'cascade: ' || count(*) END FROM posts WHERE bson_array_length(doc, 'comments') = 1;
SELECT CASE WHEN reference_refresh('items') = 2 THEN 'ok' ELSE 'reference: nothing was queued' END;
DELETE FROM suppliers WHERE _id = 1;
INSERT INTO suppliers (doc) VALUES ('{_id: 6, name: "s6"}');
SELECT CASE WHEN count(*) FILTER (WHERE doc @@ '{"supplier.name": "late"}') = 2 AND count(*) FILTER (WHERE doc @@ '{"supplier.name": "s6"}') = 2 AND count(*) FILTER (WHERE NOT bson_exists(doc, 'supplier')) = 2 THEN 'ok' ELSE 'deferred reference: ' || string_agg(doc::text, ',') END FROM items;
SELECT CASE WHEN sum(approximation_add('pages', 1, 100, 'views')::int) = 1 THEN 'ok' ELSE 'step' END;
SELECT CASE WHEN (doc -> 'views')::int = 107 THEN 'ok' ELSE 'step: ' || doc::text END FROM pages WHERE _id = 1;
UPDATE cities SET doc = bson_set(doc, 'population', 5050);
SELECT CASE WHEN (doc -> 'population')::int = 5000 THEN 'ok' ELSE 'threshold: ' || doc::text END FROM cities;
SELECT CASE WHEN approximation_add('votes', 2, 5) THEN 'ok' ELSE 'slots' END;
SELECT CASE WHEN string_agg(doc ->> 'likes', ',' ORDER BY _id) = '8,9' THEN 'ok' ELSE 'slots: ' || string_agg(doc::text, ',') END FROM votes_whole;
DELETE FROM "d'S.chema"."S ""s%s" WHERE "K k" IN (6, 7);
INSERT INTO "d'S.chema"."S ""s%s" VALUES (100, bson_build('it''s "k" %s', 'b', 'x', 100, 'x %s''', 100));
SELECT CASE WHEN subset_refresh('"d''S.chema"."T ""t%s"') = 1 THEN 'ok' ELSE 'nothing was queued' END;
SELECT CASE WHEN string_agg(bson_get_text("D ""d", '"to''t ""al %s"') || bson_get_text("D ""d", '"c''%s"""') || (("D ""d" -> 'a."b c"" %s''"')::text), '; ' ORDER BY "K k") = '6' || '2' || '[' || (SELECT string_agg("D ""d"::text, ', ' ORDER BY "K k" DESC) FROM "d'S.chema"."S ""s%s" WHERE "K k" IN (2, 4)) || ']; ' || '1094[' || (SELECT string_agg("D ""d"::text, ', ' ORDER BY "K k" DESC) FROM "d'S.chema"."S ""s%s" WHERE "K k" IN (100, 5)) || ']'
  THEN 'ok' ELSE 'hostile names: ' || string_agg("D ""d"::text, '; ') END FROM "d'S.chema"."T ""t%s";
UPDATE "d'S.chema"."T ""t%s" SET "D ""d" = bson_set("D ""d", '"na''m"" %s"', 'y') WHERE "K k" = 'a''"%s';
SELECT CASE WHEN reference_refresh('"d''S.chema"."S ""s%s"') = 5 THEN 'ok' ELSE 'hostile names: no references' END;
SELECT CASE WHEN approximation_add('"d''S.chema"."T ""t%s"', 'b', 5) AND approximation_sync('"d''S.chema"."T ""t%s"') = 1 THEN 'ok' ELSE 'hostile names: slots' END;
SELECT v FROM pattern_check() v;
ROLLBACK;
SQL
}
