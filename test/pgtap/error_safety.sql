-- Errors that are caught in the midst of what patterns do: the transaction goes on, and nothing in memory is left that is no longer so.
-- (test/t/cancel_stress.sh cuts statements short anywhere, test/t/out_of_memory.sh lets memory run out.)
\set ECHO none
SET client_min_messages = warning;
SELECT plan(10);
CREATE FUNCTION fails(command text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN EXECUTE command; RETURN 'done'; EXCEPTION WHEN query_canceled OR OTHERS THEN RETURN SQLSTATE; END $$;

-- What was read for a group inside of a statement is known after a block that ends well and another that does not.
SELECT collection_create('totals'), collection_create('parts'); SELECT computed_enable('totals', 'parts', 'of', '{n: {$count: {}}, sum: {$sum: "$x"}}');
CREATE FUNCTION makes_total() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  BEGIN INSERT INTO totals (doc) VALUES ('{_id: 7}') ON CONFLICT DO NOTHING; EXCEPTION WHEN unique_violation THEN NULL; END;
  BEGIN PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END;
  RETURN NULL;
END $$;
CREATE TRIGGER makes_total AFTER INSERT ON parts FOR EACH ROW EXECUTE FUNCTION makes_total();
INSERT INTO parts (doc) SELECT bson_build('_id', i, 'of', 7, 'x', i) FROM generate_series(1, 3) i;
SELECT is(doc::text, '{"_id": 7, "n": 3, "sum": 6}', 'a group that was read inside of a statement has its rows once') FROM totals;
SELECT is_empty('SELECT * FROM pattern_check()', 'and is true');

-- A statement becomes invalid while a trigger that it fires runs the same statement.
SELECT collection_create('books'); SELECT outlier_enable('books', 'buyers', threshold => 3);
INSERT INTO books (doc) VALUES ('{_id: 1, buyers: [1]}'), ('{_id: 2, buyers: []}');
SELECT outlier_push('books', 1, 'first');
CREATE FUNCTION pushes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF pg_trigger_depth() = 1 THEN
    ALTER FUNCTION docpatterns.bson_value_eq(bson_value, bson_value) COST 2;
    PERFORM outlier_push('books', 2, 'inner');
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER pushes BEFORE UPDATE ON books FOR EACH ROW EXECUTE FUNCTION pushes();
SELECT outlier_push('books', 1, 'outer');
ALTER FUNCTION docpatterns.bson_value_eq(bson_value, bson_value) COST 1;
SELECT is(string_agg(doc -> 'buyers' #>> '{}', ' ' ORDER BY _id), '[1, "first", "outer"] ["inner"]', 'both are done') FROM books;

-- A migration that is stopped inside of a block of somebody who catches that.
CREATE TABLE old (id int PRIMARY KEY, doc bson);
INSERT INTO old SELECT i, bson_build('_id', i, 'a', i) FROM generate_series(1, 10) i;
CREATE FUNCTION step(doc bson) RETURNS bson IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN IF doc -> 'a' = 5 THEN RAISE EXCEPTION 'stopped' USING ERRCODE = 'query_canceled'; END IF; RETURN bson_set(doc, 'b', 1); END $$;
SELECT schema_versioning_enable('old', current => 2, write => 'accept'), schema_versioning_step('old', 1, 2, up => 'step(bson)'::regprocedure);
CREATE TABLE seen (what text);
DO $$
BEGIN
  INSERT INTO seen VALUES ('before');
  BEGIN
    INSERT INTO seen VALUES ('inside');
    CALL schema_versioning_migrate('old', NULL);
  EXCEPTION WHEN query_canceled THEN INSERT INTO seen VALUES ('caught');
  END;
END $$;
SELECT is((SELECT string_agg(what, ' ') FROM seen), 'before caught', 'the block of the one who catches the end of a migration is undone, and nothing else');
SELECT is((SELECT count(*) FROM old WHERE doc ? 'b'), 0::bigint, 'with what the migration had done');
SELECT is(fails('SAVEPOINT a'), '0A000', 'no subtransaction is left over');

-- Truncations that were rolled back are not told, those that were not are.
SELECT collection_create('told'); SELECT change_feed_enable('told', notify => false);
INSERT INTO told (doc) VALUES ('{_id: 1}');
DO $$ BEGIN BEGIN TRUNCATE told; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END; TRUNCATE told; END $$;
SELECT is((SELECT string_agg(operation, ' ' ORDER BY number) FROM told_feed), 'insert truncate', 'a truncation after one that was rolled back is told');

-- Rows that wait for the end of the outermost statement wait although one that was inside failed.
SELECT collection_create('a'), collection_create('b');
SELECT query_table_create('by_a', source => 'a', partition => '{n}'), query_table_create('by_b', source => 'b', partition => '{n}');
CREATE FUNCTION inside() RETURNS trigger LANGUAGE plpgsql AS $inside$
BEGIN
  IF (NEW.doc -> 'deep')::bool THEN RETURN NEW; END IF;
  EXECUTE format('INSERT INTO %I (doc) SELECT bson_build($$_id$$, %s, $$n$$, 1, $$deep$$, true)', TG_RELNAME, ((NEW.doc -> '_id')::int + 100)::text);
  BEGIN
    INSERT INTO b (doc) SELECT bson_build('_id', (NEW.doc -> '_id')::int + 200, 'n', 1, 'deep', true);
    RAISE division_by_zero;
  EXCEPTION WHEN division_by_zero THEN NULL;
  END;
  RETURN NEW;
END $inside$;
CREATE TRIGGER inside BEFORE INSERT ON a FOR EACH ROW EXECUTE FUNCTION inside();
CREATE TRIGGER inside BEFORE INSERT ON b FOR EACH ROW EXECUTE FUNCTION inside();
INSERT INTO a (doc) VALUES ('{_id: 1, n: 1, deep: false}'), ('{_id: 2, n: 2, deep: false}');
INSERT INTO b (doc) VALUES ('{_id: 1, n: 1, deep: false}'), ('{_id: 2, n: 2, deep: false}');
SELECT is((SELECT count(*) FROM by_a) || ' ' || (SELECT count(*) FROM by_b), '4 4', 'query tables of statements inside of statements');
SELECT is_empty('SELECT * FROM pattern_check()', 'are true');

-- Caches of function calls that live on after an error in a block.
CREATE FUNCTION again(OUT results text) LANGUAGE plpgsql AS $$
DECLARE
  given text;
  result text;
BEGIN
  FOREACH given IN ARRAY ARRAY['{a: 1}', '{$set: 1}', '{a: {$nosuch: 1}}', '{a: 1}', '{"$and": 1}', '{b: 2}'] LOOP
    BEGIN
      result := bson_match('{a: 1, b: 2}', given::bson)::text;
    EXCEPTION WHEN OTHERS THEN result := SQLSTATE;
    END;
    results := concat_ws(' ', results, result);
  END LOOP;
  FOREACH given IN ARRAY ARRAY['{$set: {a: 1}}', '{$nosuch: 1}', '{$set: {a: 1}, $inc: {a: 1}}', '{$inc: {a: 1}}', '[{$nosuch: 1}]', '{c: 1}'] LOOP
    BEGIN
      result := bson_update('{a: 1}', given::bson)::text;
    EXCEPTION WHEN OTHERS THEN result := SQLSTATE;
    END;
    results := concat_ws(' ', results, result);
  END LOOP;
  FOREACH given IN ARRAY ARRAY['{type: "object"}', '{type: 5}', '{required: ["z"]}', '{nosuch: 1}', '{}'] LOOP
    BEGIN
      result := bson_validate('{a: 1}', given::bson)::text;
    EXCEPTION WHEN OTHERS THEN result := SQLSTATE;
    END;
    results := concat_ws(' ', results, result);
  END LOOP;
  FOREACH given IN ARRAY ARRAY['a', 'a..b', 'a', '', '"', 'b'] LOOP
    BEGIN
      result := coalesce(bson_get('{a: 1}', given)::text, '-');
    EXCEPTION WHEN OTHERS THEN result := SQLSTATE;
    END;
    results := concat_ws(' ', results, result);
  END LOOP;
END $$;
SELECT is(again(), 'true 0A000 0A000 true 22023 true {"a": 1} 0A000 22023 {"a": 2} 22P02 {"c": 1} true 22023 false 0A000 true 1 22023 1 22023 22023 -', 'functions go on with what they were given after errors');
SELECT finish();
