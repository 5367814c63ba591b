# For the scripts in test/t that let errors of one kind happen at any moment, which source it: a database with all patterns, and clients
# that write through each of them, in statements of their own, in transactions with savepoints, and in blocks that catch what happens.
#
#   . "$DP_TOP/test/env/storm.sh"     # and with it stress.sh
#   before='"SET work_mem = 64;"'     # awk: what to send before a statement
#   prelude='SET work_mem = 64;'      # once, before all
#   stress_begin dp_x 20261
#   storm_derived                     # declares all that is derived, outliers, walls and measurements; or
#   storm_shapes                      # shapes, relations and history
#   stress_run TAG SECONDS            # many clients
#   storm_true WHAT                   # three assertions: what has to hold afterwards
. "$DP_TOP/test/env/stress.sh"
. "$DP_TOP/test/env/shapes.sh"
. "$DP_TOP/test/env/derived.sh"

# What can be caught is: SQL goes on in the same transaction after statements that were cut short or failed.
storm_prepare() {
  psql -XqAt -v ON_ERROR_STOP=1 >/dev/null <<'SQL' || echo 'not ok 0 - the database was prepared'
CREATE SCHEMA storm;
CREATE SEQUENCE storm.ids START 1000 CACHE 100;
CREATE TABLE storm.bad (what text);
CREATE FUNCTION storm.try(command text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN EXECUTE command; RETURN 'done'; EXCEPTION WHEN query_canceled OR OTHERS THEN
  IF SQLSTATE ~ '^XX' THEN RAISE; END IF;
  RETURN SQLSTATE;
END $$;
SQL
}

# Transactions: how they are put together is drawn. In a block a result has nowhere to go.
# What pattern_check finds while others write must have a note (src/kit/note.h) in the same snapshot.
stormy='
    function key(n) { return r(n) }
    function new() { return "nextval($$storm.ids$$)" }
    function caught(s) { return "SELECT storm.try($_try_$" s "$_try_$);" }
    BEGIN {
      for (i = 0;; i++) {
        w = r(10)
        if (w <= 3) print before() one()
        else if (w == 4) print before() caught(one()) " SELECT storm.try($_try_$" one() "$_try_$), storm.try($_try_$" one() "$_try_$);"
        else if (w <= 6) { printf "%s", level(); for (n = r(4); n > 0; n--) printf "%s%s ", before(), caught(one()); print (r(5) == 1 ? "ROLLBACK;" : "COMMIT;") }
        else if (w <= 8) {
          printf "%s%s%s SAVEPOINT a; %s%s ROLLBACK TO a; ", level(), before(), caught(one()), before(), one()
          printf "%s%s RELEASE a; %s%s", before(), caught(one()), before(), one()
          print "COMMIT;"
        }
        else if (w == 9) print before() "DO $_do_$ BEGIN BEGIN " one() " EXCEPTION WHEN query_canceled OR OTHERS THEN NULL; END; BEGIN " one() " EXCEPTION WHEN query_canceled OR OTHERS THEN NULL; END; END $_do_$;"
        else print before() "INSERT INTO storm.bad SELECT x FROM pattern_check($$" tables[r(ntables)] "$$) x WHERE NOT EXISTS (SELECT FROM docpatterns.notes n WHERE (n.rel, n.name) = (x.rel, x.name));"
      }
    }'
work() {
  echo "${prelude:-}"
  stress_awk "$1" "$2" "function before() { return $before \" \" } $(cat "$DP_WORK/storm.awk")$stormy" |
    sed '/^[^$]*DO \$_do_\$/{s/PERFORM_OR_SELECT/PERFORM/g;b};s/PERFORM_OR_SELECT/SELECT/g'
}

storm_derived() {
  storm_prepare
  derived_fill "$PGDATABASE"
  psql -Xq -v ON_ERROR_STOP=1 >/dev/null <<'SQL' || echo 'not ok 0 - more was declared'
SELECT collection_create('walls_of'), collection_create('talk'), collection_create('hands');
SELECT outlier_enable('hands', 'tags', 5, keep => 2, chunk => 3, count_field => 'n'), fanout_enable('talk', walls => 'walls', author => 'by', followers => 'walls_of', follower => 'who', followee => 'whom', name => 'walls');
SELECT bucket_create('measured', columns => 'id int, ts timestamptz, v float8', group_by => '{id}', time_field => 'ts', max_count => 20);
SELECT computed_enable('hands', 'measured', 'id', '{measured: {$sum: "$v"}}', name => 'measured');
INSERT INTO hands (doc) SELECT bson_build('_id', i) FROM generate_series(1, 8) i;
INSERT INTO walls_of (doc) SELECT bson_build('_id', i, 'who', i % 5, 'whom', i % 3) FROM generate_series(1, 15) i;
SQL
  cat >"$DP_WORK/storm.awk" <<'AWK'
    function one(   w) {
      w = r(48)
      if (w == 1) return "INSERT INTO screenings (doc) SELECT bson_build($$_id$$, " new() ", $$movie$$, $$m$$ || j % 6, $$x$$, j / 7.0::float8, $$i$$, j, $$ts$$, timestamptz $$2023-01-01$$ + j * interval $$7 hours$$) FROM generate_series(1, " r(40) ") j;"
      if (w == 2) return "DELETE FROM screenings WHERE (doc -> $$i$$)::int % 40 = " r(40) ";"
      if (w == 3) return "UPDATE screenings SET doc = bson_set(doc, $$movie$$, $$m" r(5) "$$) WHERE (doc -> $$i$$)::int % 20 = " r(20) ";"
      if (w == 4) return "UPDATE movies SET doc = bson_set(doc, $$n$$, -1);"
      if (w == 5) return "PERFORM_OR_SELECT computed_refresh($$made$$);"
      if (w == 6) return "INSERT INTO source_parts SELECT " new() ", bson_build($$a$$, j % 9, $$x$$, -j) FROM generate_series(1, " r(20) ") j ON CONFLICT DO NOTHING;"
      if (w == 7) return "UPDATE source_parts SET id = id % 40 WHERE id % 30 = " r(29) ";"
      if (w == 8) return "DELETE FROM source_parts WHERE id % 40 = " r(40) ";"
      if (w == 9) return "UPDATE categories SET doc = bson_set(doc, $$parent$$, $$" substr("ecp", r(3), 1) "$$) WHERE _id = $$" (r(2) == 1 ? "l" : "c") "$$::text;"
      if (w == 10) return "INSERT INTO sales (doc) SELECT bson_build($$_id$$, " new() ", $$category$$, (ARRAY[$$e$$, $$c$$, $$l$$, $$p$$])[j % 4 + 1], $$amount$$, j) FROM generate_series(1, " r(20) ") j;"
      if (w == 11) return "DELETE FROM sales WHERE (doc -> $$amount$$)::int = " r(20) ";"
      if (w == 12) return "UPDATE sales SET doc = bson_set(doc, $$category$$, $$" substr("eclp", r(4), 1) "$$) WHERE (doc -> $$amount$$)::int = " r(20) ";"
      if (w == 13) return "INSERT INTO reviews (doc) SELECT bson_build($$_id$$, " new() ", $$product$$, j % 5, $$date$$, j * 7 % 11, $$text$$, $$r$$) FROM generate_series(1, " r(20) ") j;"
      if (w == 14) return "DELETE FROM reviews WHERE (doc -> $$date$$)::int = " r(11) " AND (doc -> $$product$$)::int = " r(5) ";"
      if (w == 15) return "UPDATE reviews SET doc = bson_set(doc, $$date$$, " r(11) ") WHERE (doc -> $$product$$)::int = " r(5) ";"
      if (w == 16) return "UPDATE notes SET doc = bson_set(doc, $$product$$, " r(5) ") WHERE (doc -> $$date$$)::int = " r(11) ";"
      if (w == 17) return "PERFORM_OR_SELECT subset_refresh($$products$$, $$reviews$$);"
      if (w == 18) return "UPDATE films SET doc = bson_set(doc, $$specs$$, repeat($$x$$, " r(3000) "));"
      if (w == 19) return "UPDATE films_whole SET doc = bson_set(doc, $$cast.full$$, " r(100) ") WHERE _id <= " r(5) ";"
      if (w == 20) return "DELETE FROM films WHERE _id = 6; INSERT INTO films_whole (doc) VALUES ($${_id: 6, specs: {a: 1}, cast: {full: [1]}}$$);"
      if (w == 21) return "UPDATE customers SET doc = bson_set(bson_set(doc, $$name$$, $$n" r(99) "$$), $$address$$, $$moved$$);"
      if (w == 22) return "UPDATE customers SET doc = bson_set(doc, $$name$$, $$n" r(99) "$$) WHERE _id = " r(5) ";"
      if (w == 23) return "INSERT INTO orders (doc) SELECT bson_build($$_id$$, " new() ", $$customer$$, j % 4 + 1) FROM generate_series(1, " r(9) ") j;"
      if (w == 24) return "UPDATE orders SET doc = bson_set(doc, $$customer$$, " r(4) ") WHERE _id::int % 7 = " r(6) ";"
      if (w == 25) return "INSERT INTO posts (doc) SELECT bson_build($$_id$$, " new() ", $$comments$$, bson_array(bson_build($$author$$, j % 4 + 1), bson_build($$author$$, 5, $$text$$, $$t$$))) FROM generate_series(1, " r(6) ") j;"
      if (w == 26) return "DELETE FROM customers WHERE _id = 6; INSERT INTO customers (doc) VALUES ($${_id: 6, name: \"six\"}$$); UPDATE posts SET doc = bson_set(doc, $$comments.0.author$$, 6) WHERE _id::int % 5 = " r(5) ";"
      if (w == 27) return "DELETE FROM suppliers WHERE _id = " r(6) ";"
      if (w == 28) return "INSERT INTO suppliers (doc) VALUES (bson_build($$_id$$, " r(6) ", $$name$$, $$s" r(99) "$$)) ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;"
      if (w == 29) return "PERFORM_OR_SELECT reference_refresh($$items$$);"
      if (w == 30) return "UPDATE items SET doc = bson_set(doc, $$supplier$$, " r(6) ") WHERE _id::int % 3 = " r(3) ";"
      if (w == 31) return "PERFORM_OR_SELECT approximation_add($$pages$$, 1, 100, $$views$$), approximation_add($$votes$$, " r(2) ", " r(5) ");"
      if (w == 32) return "UPDATE votes SET doc = bson_set(doc, $$x$$, " r(9) ");"
      if (w == 33) return "PERFORM_OR_SELECT approximation_sync($$votes$$);"
      if (w == 34) return "UPDATE cities SET doc = bson_set(doc, $$population$$, " r(9000) ");"
      if (w == 35) return "UPDATE hands SET doc = bson_array_append(doc, $$tags$$, " r(99) ") WHERE _id <= " r(8) ";"
      if (w == 36) return "PERFORM_OR_SELECT outlier_push($$hands$$, " r(8) ", " r(99) ", " r(99) ", " r(99) ", " r(99) ");"
      if (w == 37) return "PERFORM_OR_SELECT outlier_pull($$hands$$, " r(8) ", " r(99) ");"
      if (w == 38) return "UPDATE hands_whole SET doc = bson_set(doc, $$tags$$, (SELECT bson_agg(b) FROM generate_series(1, " r(30) ") b)) WHERE _id = " r(8) ";"
      if (w == 39) return "DELETE FROM hands WHERE _id = " r(8) "; INSERT INTO hands (doc) SELECT bson_build($$_id$$, j, $$tags$$, (SELECT bson_agg(b) FROM generate_series(1, 20) b)) FROM generate_series(1, 8) j ON CONFLICT DO NOTHING;"
      if (w == 40) return "INSERT INTO talk (doc) SELECT bson_build($$_id$$, " new() ", $$by$$, j % 3, $$at$$, j) FROM generate_series(1, " r(5) ") j;"
      if (w == 41) return "DELETE FROM talk WHERE (doc -> $$at$$)::int = " r(5) ";"
      if (w == 42) return "UPDATE walls_of SET doc = bson_set(doc, $$whom$$, " r(3) " - 1) WHERE _id = " r(15) ";"
      if (w <= 44) return "INSERT INTO measured SELECT " r(8) ", timestamptz $$2024-01-30$$ + " r(10000) " * interval $$1 minute$$ + j * interval $$1 second$$, j FROM generate_series(1, " r(60) ") j;"
      if (w == 45) return "PERFORM_OR_SELECT bucket_pack($$measured$$);"
      if (w == 46) return "UPDATE measured SET v = v + 1 WHERE id = " r(8) ";"
      if (w == 47) return "DELETE FROM measured WHERE id = " r(8) " AND v > " r(60) ";"
      return "DELETE FROM \"d'S.chema\".\"S \"\"s%s\" WHERE \"K k\" % 5 = " r(5) "; INSERT INTO \"d'S.chema\".\"S \"\"s%s\" SELECT " new() ", bson_build($$it's \"k\" %s$$, $$b$$, $$x$$, j, $$x %s'$$, j) FROM generate_series(1, " r(9) ") j;"
    }
    BEGIN { ntables = split("movies screenings target_parts by_time products reviews films orders posts items votes hands talk measured", tables, " ") }
AWK
}

storm_shapes() {
  storm_prepare
  shapes_fill "$PGDATABASE"
  cat >"$DP_WORK/storm.awk" <<'AWK'
    function set(rel, field, value, where) { return "UPDATE " rel " SET doc = bson_set(doc, $$" field "$$, " value ") WHERE " where ";" }
    function movie(id) { return "bson_build($$_id$$, " id ", $$title$$, $$new$$, $$kind$$, $$film$$, $$minutes$$, 5, $$director$$, $$x$$, $$release_D" r(3) "$$, " new() ")" }
    function one(   w) {
      w = r(52)
      if (w == 1) return "INSERT INTO movies_v1 (doc) SELECT " movie("j") " FROM generate_series(" 20 + r(10) ", 30) j;"
      if (w == 2) return "INSERT INTO movies_wide (doc) VALUES (" movie(30 + r(9)) ") ON CONFLICT DO NOTHING;"
      if (w == 3) return set("movies_v1", "director", "$$d" r(99) "$$", "_id <= " r(40))
      if (w == 4) return set("movies_current", "directors.1", "$$d" r(99) "$$", "_id = " r(40))
      if (w == 5) return set("movies", "seen", r(99), "_id::int % 3 = " r(3))
      if (w == 6) return "DELETE FROM movies WHERE _id = " 12 + r(28) ";"
      if (w == 7) return "PERFORM_OR_SELECT versioning_revert($$movies$$, " r(40) ", 1);"
      if (w == 8) return set("messages_whole", "body", "$${\"from\": \"n\", \"size\": " r(99) "}$$", "_id <= " r(8))
      if (w == 9) return "INSERT INTO messages_whole (doc) SELECT bson_build($$_id$$, " new() ", $$body$$, $${\"from\": \"x\", \"size\": 5, \"text\": \"$$ || repeat($$text $$, " r(3000) ") || $$\"}$$) FROM generate_series(1, 3) j;"
      if (w == 10) return "DELETE FROM messages WHERE _id::int % 9 = " r(9) " AND _id > 8;"
      if (w == 11) return set("billing", "c", r(30), "_id = " r(6))
      if (w == 12) return set("crm", "x", r(30), "_id <= " r(6))
      if (w == 13) return set("support", "c", r(6), "_id <= " r(10))
      if (w == 14) return "DELETE FROM crm WHERE _id = " r(6) ";"
      if (w == 15) return "INSERT INTO crm (doc) SELECT bson_build($$_id$$, j, $$c$$, j) FROM generate_series(1, 6) j ON CONFLICT DO NOTHING;"
      if (w <= 17) return "PERFORM_OR_SELECT preallocated_" (r(3) == 1 ? "release" : r(2) == 1 ? "confirm" : "claim") "($$shows$$, " r(4) ", $${A" r(4) ",B" r(4) "}$$, $$h" r(2) "$$);"
      if (w == 18) return "PERFORM_OR_SELECT preallocated_" (r(3) == 1 ? "release" : "claim") "($$halls$$, " r(3) ", $${" r(4) "}$$, $$h" r(2) "$$);"
      if (w == 19) return set("halls", "title", r(99), "true")
      if (w == 20) return "INSERT INTO books (doc) SELECT bson_build($$_id$$, " new() ", $$docType$$, $$review$$, $$relatedTo$$, bson_array(1 + j % 2, $$ada$$)) FROM generate_series(1, " r(6) ") j;"
      if (w == 21) return set("books", "bookId", 10 + r(3), "_id = $$b" r(2) "$$::text")
      if (w == 22) return "DELETE FROM books WHERE doc ->> $$docType$$ = $$review$$ AND _id::int % 4 = " r(4) ";"
      if (w == 23) return "DELETE FROM books WHERE _id = $$b" r(2) "$$::text; INSERT INTO books (doc) VALUES ($${_id: \"b1\", bookId: 1, docType: \"book\"}$$), ($${_id: \"b2\", bookId: 2, docType: \"book\"}$$) ON CONFLICT DO NOTHING;"
      if (w == 24) return set("notes", "at", "$$" substr("abcd", r(4), 1) "$$", "_id = " r(4))
      if (w == 25) return "INSERT INTO notes (doc) VALUES (bson_build($$_id$$, " r(9) ", $$at$$, $$" substr("abcd", r(4), 1) "/" r(9) "$$)) ON CONFLICT DO NOTHING;"
      if (w == 26) return "UPDATE doctors SET doc = bson_update(doc, $${\"$" (r(2) == 1 ? "addToSet" : "pull") "\": {\"patients\": " r(6) "}}$$) WHERE _id <= " r(4) ";"
      if (w == 27) return "UPDATE patients SET doc = bson_set(doc, $$friends$$, bson_array(" r(9) ", " r(9) ")) WHERE _id <= " r(7) ";"
      if (w == 28) return "DELETE FROM doctors WHERE _id = " r(6) ";"
      if (w == 29) return "INSERT INTO doctors (doc) VALUES (bson_build($$_id$$, " r(6) ", $$patients$$, bson_array(" r(6) "))) ON CONFLICT DO NOTHING;"
      if (w <= 31) return "INSERT INTO orders (doc) SELECT bson_build($$_id$$, i, $$u$$, i % 4, $$d$$, date $$2024-01-01$$ + i::int % 90, $$n$$, i, $$t$$, i * 1.5) FROM (SELECT " new() " AS i FROM generate_series(1, " r(20) ")) s;"
      if (w == 32) return set("orders", "u", r(6), "_id::int % 7 = " r(7))
      if (w == 33) return "DELETE FROM orders WHERE _id::int % 9 = " r(9) ";"
      if (w == 34) return "PERFORM_OR_SELECT single_table_put($$app$$, $$order$$, bson_build($$id$$, " r(5) ", $$n$$, " r(9) "));"
      if (w == 35) return "UPDATE app SET doc = bson_set(doc, $$n$$, " r(9000) ") WHERE sk ~ $$ORDER#000" r(9) "$$;"
      if (w == 36) return "DELETE FROM app WHERE sk > $$ORDER#" r(9) "$$;"
      if (w == 37) return "PERFORM_OR_SELECT kv_hincrby($$game$$, $$h$$, $$f$$ || j, 2) FROM generate_series(1, " r(30) ") j;"
      if (w == 38) return "PERFORM_OR_SELECT kv_zadd($$game$$, $$z$$, " r(99) ", $$m$$ || j) FROM generate_series(1, " r(60) ") j;"
      if (w == 39) return "PERFORM_OR_SELECT kv_zrem($$game$$, $$z$$, $$m" r(30) "$$, $$m" r(30) "$$), kv_sadd($$game$$, $$s$$, $$m" r(30) "$$);"
      if (w == 40) return "PERFORM_OR_SELECT kv_expire($$game$$, $$" substr("hsz", r(3), 1) "$$, " r(2) - 1 ");"
      if (w == 41) return "PERFORM_OR_SELECT kv_purge($$game$$);"
      if (w == 42) return set("players", "points", r(99), "_id::int % 5 = " r(5))
      if (w == 43) return "DELETE FROM players WHERE _id = " r(30) "; INSERT INTO players (doc) SELECT bson_build($$_id$$, j, $$points$$, j) FROM generate_series(1, 30) j ON CONFLICT DO NOTHING;"
      if (w <= 45) return "INSERT INTO parts SELECT i, bson_build($$docType$$, $$p$$, $$_id$$, i, $$u$$, i, $$kind$$, $$a$$, $$x_b$$, i, $$relatedTo$$, bson_array(i)) FROM generate_series(" r(30) ", 40) i ON CONFLICT DO NOTHING;"
      if (w == 46) return "UPDATE parts SET doc = bson_set(doc, $$x_c$$, " r(99) ") WHERE id % 4 = " r(4) ";"
      if (w == 47) return "UPDATE parts SET id = (id * 7) % 50 WHERE id = " r(50) ";"
      if (w == 48) return "DELETE FROM parts WHERE id % 10 = " r(10) ";"
      if (w == 49) return "PERFORM_OR_SELECT preallocated_claim($$parts$$, " r(40) ", $${2}$$, $$ada$$);"
      if (w == 50) return "UPDATE \"o'S.chema\".\"T \"\"t%s\" SET \"D \"\"d\" = bson_set(\"D \"\"d\", $$x$$, " r(99) ");"
      if (w == 51) return "DELETE FROM \"o'S.chema\".\"T \"\"t%s\" WHERE \"K k\" = 5; INSERT INTO \"o'S.chema\".\"T \"\"t%s\" VALUES (5, $${docType: \"ty'\\\"pe %s\", _id: 5, x: 50, \"x '\\\"%sz\": 1, \"pay '%s\": \"four\", \"ke'y %s\": \"k4\", friends: [1]}$$);"
      return "PERFORM_OR_SELECT schema_versioning_read($$movies$$, " r(12) ");"
    }
    BEGIN { ntables = split("movies messages merged shows halls books notes patients orders app players parts", tables, " ") }
AWK
}

storm_true() {  # storm_true WHAT: also the tag of the run
  is "$(grep -hE 'PANIC|FATAL|connection .*(lost|closed)|ERROR:  XX' "$DP_WORK/errors.$1".* | sort | uniq -c | cut -c 1-200)" '' "$1: no internal error, no session lost"
  is "$(ask 'SELECT * FROM storm.bad LIMIT 5')" '' "$1: all was true at any moment"
  is "$(ask 'SET statement_timeout = 0; SELECT * FROM pattern_check() LIMIT 5')" '' "$1: all is true"
}
