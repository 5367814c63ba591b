-- Rows whose keys change, and change again by users' triggers before the statement has ended: what patterns keep of a row aside goes
-- where the row goes, however often it moves, and to no other row.
SET client_min_messages = warning;
CREATE SCHEMA moving;
SET search_path = moving, public;
SELECT plan(87);

-- A table with all that lies aside, and four rows; row n has n in every part of it.
CREATE FUNCTION make(partitioned boolean, events text, body text) RETURNS void LANGUAGE plpgsql AS $f$
BEGIN
  DROP TABLE IF EXISTS t CASCADE;
  EXECUTE 'CREATE TABLE t (id int PRIMARY KEY, doc bson)' || CASE WHEN partitioned THEN ' PARTITION BY LIST (id)' ELSE '' END;
  IF partitioned THEN
    FOR i IN 1..9 LOOP
      EXECUTE format('CREATE TABLE t_%s PARTITION OF t FOR VALUES IN (%1$s)', i);
    END LOOP;
  END IF;
  PERFORM outlier_enable('t', 'list', 2, chunk => 2), subset_fields_enable('t', cold => '{cold}', name => 'cold'), approximation_enable('t', 'views', slots => 2),
    preallocated_enable('t', 'seats', preallocated_pool(2), store => 'slots');
  INSERT INTO t SELECT i, bson_build('n', i, 'list', bson_array(i, 2, 3, 4, 5), 'cold', i) FROM generate_series(1, 4) i;
  PERFORM approximation_add('t', i, i, name => 'views'), preallocated_claim('t', i, '{2}', holder => 'row ' || i, name => 'seats') FROM generate_series(1, 4) i;
  EXECUTE 'CREATE OR REPLACE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ' || body || ' RETURN NEW; END $$';
  IF events <> '' THEN
    EXECUTE format('CREATE TRIGGER %s ON t FOR EACH ROW EXECUTE FUNCTION again()', events);
  END IF;
END $f$;

-- What the rows are afterwards, as id=n, in the order of ids; what is wrong follows.
CREATE FUNCTION state() RETURNS text LANGUAGE plpgsql AS $f$
BEGIN
  RETURN (SELECT string_agg(CASE WHEN bson_unset(w.doc, 'also') = bson_build('n', w.doc -> 'n', 'list', bson_array(w.doc -> 'n', 2, 3, 4, 5), 'seats', bson_array(0, 'row ' || (w.doc ->> 'n')),
                                                   'cold', w.doc -> 'n', 'views', w.doc -> 'n') THEN format('%s=%s', w.id, w.doc ->> 'n') ELSE w.id || ': ' || w.doc END, ' ' ORDER BY w.id) FROM t_whole w)
      || coalesce((SELECT string_agg(c::text, ' ') FROM pattern_check() c), '');
END $f$;

CREATE FUNCTION moved(partitioned boolean, events text, body text, statement text) RETURNS text LANGUAGE plpgsql AS $f$
BEGIN
  PERFORM make(partitioned, events, body);
  EXECUTE statement;
  RETURN state();
END $f$;

SELECT is(moved(p, event || ' AFTER INSERT OR UPDATE', body, statement), expected, format('%s%s, trigger %s', what, CASE WHEN p THEN ', between partitions' ELSE '' END, event))
FROM (VALUES
  ('on to another key', 'IF NEW.id = 5 THEN UPDATE moving.t SET id = 6 WHERE id = 5; END IF;', 'UPDATE t SET id = 5 WHERE id = 1', '2=2 3=3 4=4 6=1'),
  ('back', 'IF NEW.id = 5 THEN UPDATE moving.t SET id = 1 WHERE id = 5; END IF;', 'UPDATE t SET id = 5 WHERE id = 1', '1=1 2=2 3=3 4=4'),
  ('two change places', 'IF NEW.id = 5 THEN UPDATE moving.t SET id = 1 WHERE id = 2; UPDATE moving.t SET id = 2 WHERE id = 5; END IF;', 'UPDATE t SET id = 5 WHERE id = 1', '1=2 2=1 3=3 4=4'),
  ('in a row of moves', 'IF NEW.id = 1 THEN UPDATE moving.t SET id = 9 WHERE id = 1; END IF;', 'UPDATE t SET id = CASE id WHEN 1 THEN 7 ELSE id - 1 END', '2=3 3=4 7=1 9=2'),
  ('gone in a row of moves', 'IF NEW.id = 1 THEN DELETE FROM moving.t WHERE id = 1; END IF;', 'UPDATE t SET id = CASE id WHEN 1 THEN 7 ELSE id - 1 END', '2=3 3=4 7=1'),
  ('one inside the other', 'IF NEW.id BETWEEN 5 AND 7 THEN UPDATE moving.t SET id = NEW.id + 1 WHERE id = NEW.id; END IF;', 'UPDATE t SET id = 5 WHERE id = 1', '2=2 3=3 4=4 8=1'),
  ('in subtransactions', 'IF NEW.id = 5 THEN BEGIN UPDATE moving.t SET id = 6 WHERE id = 5; RAISE unique_violation; EXCEPTION WHEN unique_violation THEN NULL; END;
     BEGIN UPDATE moving.t SET id = 7 WHERE id = 5; EXCEPTION WHEN unique_violation THEN NULL; END;
     BEGIN UPDATE moving.t SET id = 8 WHERE id = 7; RAISE unique_violation; EXCEPTION WHEN unique_violation THEN NULL; END; END IF;', 'UPDATE t SET id = 5 WHERE id = 1', '2=2 3=3 4=4 7=1'),
  ('with another document', 'IF NEW.id = 5 THEN UPDATE moving.t SET id = 6, doc = bson_set(doc, ''also'', true) WHERE id = 5; END IF;', 'UPDATE t SET id = 5 WHERE id = 1', '2=2 3=3 4=4 6=1')
) AS c (what, body, statement, expected) CROSS JOIN unnest('{aa,zzzz}'::text[]) AS event CROSS JOIN unnest('{f,t}'::boolean[]) AS p;

SELECT is(moved(p, 'aa BEFORE UPDATE', 'IF NEW.id = 1 THEN UPDATE moving.t SET id = 9 WHERE id = 7; END IF;', 'UPDATE t SET id = CASE id WHEN 1 THEN 7 ELSE id - 1 END'), '1=2 2=3 3=4 9=1', 'before the next row is updated')
  FROM unnest('{f,t}'::boolean[]) AS p;
SELECT is(moved(p, 'aa BEFORE UPDATE', 'NEW.id := NEW.id + 4;', 'UPDATE t SET id = 2 WHERE id = 1'), '2=2 3=3 4=4 6=1', 'to a key that a trigger chooses') FROM unnest('{f,t}'::boolean[]) AS p;
SELECT is(moved(p, 'aa AFTER INSERT OR UPDATE', 'IF NEW.id = 1 THEN UPDATE moving.t SET id = 9 WHERE id = 1; END IF;',
                'MERGE INTO t USING (VALUES (1, 5), (2, 1), (3, NULL), (4, 3)) v (a, b) ON v.a = t.id WHEN MATCHED AND b IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET id = v.b'),
          '3=4 5=1 9=2', 'by MERGE, which deletes, too') FROM unnest('{f,t}'::boolean[]) AS p;
SELECT is(moved(false, 'aa AFTER UPDATE', 'IF NEW.id = 5 THEN UPDATE moving.t SET id = 6 WHERE id = 5; END IF;', $$INSERT INTO t VALUES (1, '{}') ON CONFLICT (id) DO UPDATE SET id = 5$$),
          '2=2 3=3 4=4 6=1', 'by INSERT .. ON CONFLICT DO UPDATE');

-- a row that gets a key from which another one has gone has its own
SELECT is(moved(p, event || ' AFTER INSERT OR UPDATE', 'IF NEW.id = 5 THEN INSERT INTO moving.t VALUES (1, bson_build(''n'', 6, ''list'', bson_array(6, 2, 3, 4, 5), ''cold'', 6)); END IF;', 'UPDATE t SET id = 5 WHERE id = 1'),
          '1: {"n": 6, "list": [6, 2, 3, 4, 5], "seats": [0, 0], "cold": 6} 2=2 3=3 4=4 5=1', 'a trigger inserts a row with the old key') FROM unnest('{f,t}'::boolean[]) AS p, unnest('{aa,zzzz}'::text[]) AS event;
SELECT is(moved(p, event || ' AFTER INSERT OR UPDATE', 'IF NEW.id = 5 AND NOT bson_exists(NEW.doc, ''also'') THEN UPDATE moving.t SET doc = bson_update(doc, ''{$push: {list: 6}, $set: {also: true, cold: 6}}'') WHERE id = 5; END IF;', 'UPDATE t SET id = 5 WHERE id = 1'),
          '2=2 3=3 4=4 5: {"n": 1, "list": [1, 2, 3, 4, 5, 6], "seats": [0, "row 1"], "also": true, "cold": 6, "views": 1}', 'a trigger writes what lies aside') FROM unnest('{f,t}'::boolean[]) AS p, unnest('{aa,zzzz}'::text[]) AS event;

-- functions that a trigger calls while keys are changing find what belongs to the row
SELECT is(moved(p, 'aa AFTER INSERT OR UPDATE OF id', 'PERFORM outlier_push(''moving.t'', NEW.id, 6), approximation_add(''moving.t'', NEW.id, 10, name => ''views''), preallocated_claim(''moving.t'', NEW.id, ''{1}'', ''with '' || (NEW.doc ->> ''n''), name => ''seats'');',
                'UPDATE t SET id = CASE id WHEN 1 THEN 7 ELSE id - 1 END'),
          string_agg(format('%s: {"n": %s, "list": [%2$s, 2, 3, 4, 5, 6], "seats": ["with %2$s", "row %2$s"], "cold": %2$s, "views": %s}', CASE n WHEN 1 THEN 7 ELSE n - 1 END, n, n + 10), ' ' ORDER BY n = 1, n),
          'a trigger calls functions') FROM unnest('{f,t}'::boolean[]) AS p, generate_series(1, 4) n GROUP BY p;
SELECT is(moved(p, event || ' AFTER INSERT OR UPDATE', 'IF NEW.id = 5 THEN INSERT INTO moving.t VALUES (1, bson_build(''n'', 6, ''seats'', bson_array(''new'', 0))); END IF;', 'UPDATE t SET id = 5 WHERE id = 1'),
          '1: {"n": 6, "seats": ["new", 0]} 2=2 3=3 4=4 5=1', 'a trigger inserts a row with taken seats and the old key') FROM unnest('{f,t}'::boolean[]) AS p, unnest('{aa,zzzz}'::text[]) AS event;

-- a trigger inserts the row again that is being deleted: it keeps what it has, and what lies aside if that may be its own
SELECT is(moved(p, event || ' AFTER DELETE', 'INSERT INTO moving.t VALUES (OLD.id, ' || given || '); PERFORM approximation_add(''moving.t'', OLD.id, 5, name => ''views'');', 'DELETE FROM t WHERE id = 1'),
          expected || ' 2=2 3=3 4=4', format('a deleted row is inserted again, %s, trigger %s', what, event))
FROM (VALUES
  ('another document', 'aa', 'bson_build(''n'', 9, ''list'', bson_array(9, 8, 7, 6), ''seats'', bson_array(''new'', 0))', '1: {"n": 9, "list": [9, 8, 7, 6], "seats": ["new", "row 1"], "cold": 1, "views": 6}'),
  ('another document', 'zzzz', 'bson_build(''n'', 9, ''list'', bson_array(9, 8, 7, 6), ''seats'', bson_array(''new'', 0))', '1: {"n": 9, "list": [9, 8, 7, 6], "seats": ["new", 0], "views": 5}'),
  ('without the array', 'aa', '''{"n": 9}''', '1: {"n": 9, "seats": [0, "row 1"], "cold": 1, "views": 6}'),
  ('as it was', 'aa', 'OLD.doc', '1: {"n": 1, "list": [1, 2, 3, 4, 5], "seats": [0, "row 1"], "cold": 1, "views": 6}')
) AS c (what, event, given, expected) CROSS JOIN unnest('{f,t}'::boolean[]) AS p;
SELECT is(moved(p, '', '', 'WITH d AS (DELETE FROM t WHERE id = 1 RETURNING id) INSERT INTO t SELECT id, ''{"n": 9, "list": [9, 8, 7]}'' FROM d'),
          '1: {"n": 9, "list": [9, 8, 7], "seats": [0, 0]} 2=2 3=3 4=4', 'the same statement inserts another document') FROM unnest('{f,t}'::boolean[]) AS p;

-- triggers read whole documents
SELECT is(moved(p, event || ' AFTER INSERT OR UPDATE', 'IF EXISTS (SELECT FROM moving.t_whole WHERE NOT doc @> bson_build(''cold'', doc -> ''n'', ''list'', bson_array(doc -> ''n'', 2, 3, 4, 5)) AND doc ? ''seats'') THEN RAISE ''not whole''; END IF;',
                'UPDATE t SET id = CASE id WHEN 1 THEN 7 ELSE id - 1 END'), '1=2 2=3 3=4 7=1', 'a trigger reads whole documents, ' || event) FROM unnest('{aa,zzzz}'::text[]) AS event, unnest('{f,t}'::boolean[]) AS p;

-- what seems to belong to no row during a statement is not lost by a repair
SELECT throws_ok(format('SELECT moving.moved(%L, %L, %L, %L)', p, 'aa AFTER INSERT OR UPDATE', format('IF NEW.id = 5 THEN PERFORM public.pattern_repair(''moving.t'', %L); END IF;', name), 'UPDATE t SET id = 5 WHERE id = 1'),
                 '55006', NULL, name || ' is repaired') FROM unnest('{list,cold,views,seats}'::text[]) AS name, unnest('{f,t}'::boolean[]) AS p;

-- extras in a collection
CREATE TABLE books (id int PRIMARY KEY, doc bson);
SELECT is(collection_create('reviews')::text, 'reviews', 'a collection for extras');
SELECT is(outlier_enable('books', 'list', 1, extras => 'reviews', on_field => 'book'), 'list', 'extras in a collection');
INSERT INTO books SELECT i, bson_build('list', bson_array(bson_build('_id', i * 10), bson_build('_id', i * 10 + 1), bson_build('_id', i * 10 + 2))) FROM generate_series(1, 3) i;
CREATE OR REPLACE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.id = 5 THEN UPDATE moving.books SET id = 1 WHERE id = 2; UPDATE moving.books SET id = 2 WHERE id = 5; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER aa AFTER UPDATE ON books FOR EACH ROW EXECUTE FUNCTION again();
UPDATE books SET id = 5 WHERE id = 1;
SELECT results_eq('SELECT id, (doc -> ''list'')::text FROM books_whole ORDER BY id', $$VALUES (1, '[{"_id": 20}, {"_id": 21}, {"_id": 22}]'), (2, '[{"_id": 10}, {"_id": 11}, {"_id": 12}]'), (3, '[{"_id": 30}, {"_id": 31}, {"_id": 32}]')$$,
                  'two change places, with extras in a collection');
SELECT is_empty('SELECT * FROM pattern_check()', 'and all is true');

-- a foreign key moves the rows, and a trigger writes in between
\o /dev/null
CREATE TABLE heads (id int PRIMARY KEY);
INSERT INTO heads VALUES (1), (2), (3), (4), (9);
\o
SELECT is(moved(p, event || ' AFTER INSERT OR UPDATE', body, 'ALTER TABLE t ADD FOREIGN KEY (id) REFERENCES moving.heads ON UPDATE CASCADE; UPDATE moving.heads SET id = id + 4 WHERE id < 4; UPDATE moving.heads SET id = id - 4 WHERE id BETWEEN 5 AND 7;'),
          expected, format('a foreign key, and %s, trigger %s', what, event))
FROM (VALUES
  ('another write', 'IF NEW.id = 5 AND NOT bson_exists(NEW.doc, ''also'') THEN UPDATE moving.t SET doc = bson_set(doc, ''also'', true) WHERE id IN (5, 6); END IF;', '1=1 2=2 3=3 4=4'),
  ('another move', 'IF NEW.id = 5 THEN UPDATE moving.t SET id = 9 WHERE id = 5; END IF;', '2=2 3=3 4=4 9=1')
) AS c (what, body, expected) CROSS JOIN unnest('{aa,zzzz}'::text[]) AS event CROSS JOIN unnest('{f,t}'::boolean[]) AS p;

DROP SCHEMA moving CASCADE;
SELECT * FROM finish();
