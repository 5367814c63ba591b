-- Random writes of all kinds against a table with the outlier pattern and against plain arrays: after each batch nothing is
-- violated, and the whole documents equal the plain arrays, in order. (In a collection the order is its own: there the
-- elements are compared without it.)
SET client_min_messages = warning;
\set seed 0.4711
SELECT plan(30);
SELECT diag('seed ' || :seed);

CREATE TEMP TABLE m (id int PRIMARY KEY, a int[] NOT NULL);
CREATE TEMP SEQUENCE element_ids;

CREATE FUNCTION pg_temp.r(n int) RETURNS int LANGUAGE sql AS 'SELECT floor(random() * n)::int';
CREATE FUNCTION pg_temp.values_of(n int) RETURNS int[] LANGUAGE sql AS 'SELECT array(SELECT pg_temp.r(25) FROM generate_series(1, n))';
CREATE FUNCTION pg_temp.dedup(a int[], is_set boolean) RETURNS int[] LANGUAGE sql AS $$
  SELECT CASE WHEN is_set THEN array(SELECT v FROM unnest(a) WITH ORDINALITY AS u (v, n) GROUP BY v ORDER BY min(n)) ELSE a END
$$;
-- An element as it is written, and back.
CREATE FUNCTION pg_temp.element(v int, docs boolean) RETURNS bson_value LANGUAGE sql AS $$
  SELECT CASE WHEN docs THEN to_bson(bson_build('_id', nextval('element_ids'), 'v', v)) ELSE to_bson(v) END
$$;
CREATE FUNCTION pg_temp.elements(a int[], docs boolean) RETURNS bson_value LANGUAGE sql AS $$
  SELECT coalesce((SELECT bson_agg(pg_temp.element(v, docs) ORDER BY n) FROM unnest(a) WITH ORDINALITY AS u (v, n)), '[]'::bson_value)
$$;
CREATE FUNCTION pg_temp.plain(a bson_value) RETURNS int[] LANGUAGE sql AS $$
  SELECT array(SELECT CASE WHEN bson_typeof(e) = 'object' THEN (e -> 'v')::int ELSE e::int END FROM bson_elements(a) e)
$$;

-- What a write of the array k to a row of the table makes of the whole array w, when it was b before.
CREATE FUNCTION pg_temp.written(w int[], b int[], k int[], keep int, stay text, is_set boolean) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
  extras int[];
BEGIN
  IF cardinality(w) = cardinality(b) OR k = b THEN
    RETURN CASE WHEN k = b THEN w ELSE pg_temp.dedup(k, is_set) END;
  ELSIF stay = 'last' THEN
    extras := w[:cardinality(w) - cardinality(b)];
    IF is_set THEN k := array(SELECT v FROM unnest(k) WITH ORDINALITY AS u (v, n) WHERE v <> ALL (extras) ORDER BY n); END IF;
    RETURN extras || pg_temp.dedup(k, is_set);
  END IF;
  extras := w[cardinality(b) + 1:];
  IF cardinality(b) = keep AND k[:keep] = b THEN
    RETURN pg_temp.dedup(w || k[keep + 1:], is_set);
  END IF;
  IF is_set THEN k := array(SELECT v FROM unnest(k) WITH ORDINALITY AS u (v, n) WHERE v <> ALL (extras) ORDER BY n); END IF;
  RETURN pg_temp.dedup(k, is_set) || extras;
END $$;

CREATE FUNCTION pg_temp.run(label text, thr int, keep int, chunk int, stay text, is_set boolean, count_field text, mode text, docs boolean, partitioned boolean, seed float8)
RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  batch int; op int; x int; y int; n int; k int[]; b int[]; w int[]; vals int[]; ids int[];
  wrong text; failures text; ops int := 0;
BEGIN
  PERFORM setseed(seed);
  EXECUTE format('CREATE TABLE t (id int PRIMARY KEY, doc bson) %s', CASE WHEN partitioned THEN 'PARTITION BY HASH (id)' ELSE '' END);
  IF partitioned THEN
    FOR x IN 0..2 LOOP EXECUTE format('CREATE TABLE t%s PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER %1$s)', x); END LOOP;
  END IF;
  PERFORM outlier_enable('t', 'a', thr, keep => keep, chunk => chunk, stay => stay, is_set => is_set, count_field => count_field, mode => mode,
                         extras => CASE WHEN docs THEN 'side' END, on_field => CASE WHEN docs THEN 'owner' END, create_extras => docs);
  TRUNCATE m;
  FOR batch IN 1..8 LOOP
    FOR ops IN 1..25 LOOP
      op := pg_temp.r(17);
      SELECT id INTO x FROM m ORDER BY random() LIMIT 1;
      vals := pg_temp.values_of(1 + pg_temp.r(3));
      IF op < 2 OR x IS NULL THEN
        n := 1 + pg_temp.r(3);
        SELECT coalesce(max(id), 0) INTO y FROM m;
        INSERT INTO m SELECT y + i, pg_temp.dedup(pg_temp.values_of(pg_temp.r(4 * thr)), is_set) FROM generate_series(1, n) i;
        INSERT INTO t SELECT id, bson_build('id', id, 'a', pg_temp.elements(a, docs)) FROM m WHERE id > y;
        CONTINUE;
      END IF;
      SELECT pg_temp.plain(doc -> 'a') INTO b FROM t WHERE id = x;
      SELECT a INTO w FROM m WHERE id = x;
      CASE op
      WHEN 2 THEN  -- append to several rows
        ids := array(SELECT id FROM m ORDER BY random() LIMIT 3);
        UPDATE t SET doc = bson_set(doc, 'a', coalesce(doc -> 'a', '[]') || pg_temp.elements(vals, docs)) FROM unnest(ids) i WHERE t.id = i;
        UPDATE m SET a = pg_temp.dedup(a || vals, is_set) WHERE id = ANY (ids);
      WHEN 3 THEN  -- an element less of those that are in the document
        IF cardinality(b) > 0 THEN
          y := 1 + pg_temp.r(cardinality(b));
          k := b[:y - 1] || b[y + 1:];
          UPDATE t SET doc = bson_set(doc, 'a', (doc -> 'a') - (y - 1)) WHERE id = x;
          UPDATE m SET a = pg_temp.written(w, b, k, keep, stay, is_set) WHERE id = x;
        END IF;
      WHEN 4, 5 THEN
        PERFORM outlier_push('t', x, VARIADIC array(SELECT pg_temp.element(v, docs) FROM unnest(vals) v));
        UPDATE m SET a = pg_temp.dedup(a || vals, is_set) WHERE id = x;
      WHEN 6 THEN
        IF NOT docs THEN
          n := outlier_pull('t', x, vals[1]);
          UPDATE m SET a = array_remove(a, vals[1]) WHERE id = x;
          IF n <> cardinality(w) - cardinality(array_remove(w, vals[1])) THEN RAISE EXCEPTION 'pulled % of %', n, w; END IF;
        END IF;
      WHEN 7 THEN  -- the whole array through the view
        k := pg_temp.dedup(pg_temp.values_of(pg_temp.r(4 * thr)), is_set);
        UPDATE t_whole SET doc = bson_set(doc, 'a', pg_temp.elements(k, docs)) WHERE id = x;
        UPDATE m SET a = k WHERE id = x;
      WHEN 8 THEN  -- another field, through the view and through the table; a program that knows of no flag
        UPDATE t_whole SET doc = bson_set(doc, 'title', vals[1]) WHERE id = x;
        UPDATE t SET doc = bson_set(doc - ARRAY['has_extras', 'n'], 'title', vals[2]) WHERE id = x;
      WHEN 9 THEN
        IF random() < 0.3 THEN
          IF random() < 0.5 THEN DELETE FROM t WHERE id = x; ELSE DELETE FROM t_whole WHERE id = x; END IF;
          DELETE FROM m WHERE id = x;
        END IF;
      WHEN 10 THEN  -- all keys change, and some arrays with them
        y := CASE WHEN w IS NOT NULL AND x < 100000 THEN 100000 ELSE -100000 END;
        UPDATE t SET id = id + y, doc = CASE WHEN id % 2 = 0 THEN bson_set(doc, 'a', coalesce(doc -> 'a', '[]') || pg_temp.elements(vals, docs)) ELSE doc END;
        UPDATE m SET id = id + y, a = CASE WHEN id % 2 = 0 THEN pg_temp.dedup(a || vals, is_set) ELSE a END;
      WHEN 11 THEN  -- keys that follow each other
        IF random() < 0.3 THEN
          CREATE TEMP TABLE shifted ON COMMIT DROP AS SELECT id, id + 1 AS new_id FROM m WHERE id + 1 NOT IN (SELECT id FROM m);
          UPDATE t SET id = new_id FROM shifted s WHERE t.id = s.id;
          UPDATE m SET id = new_id FROM shifted s WHERE m.id = s.id;
          DROP TABLE shifted;
        ELSE
          UPDATE t_whole SET id = 1000 + id WHERE id = x AND 1000 + x NOT IN (SELECT id FROM m);
          UPDATE m SET id = 1000 + id WHERE id = x AND 1000 + x NOT IN (SELECT id FROM m);
        END IF;
      WHEN 12 THEN  -- upserts
        INSERT INTO t VALUES (x, bson_build('a', pg_temp.elements(vals, docs))) ON CONFLICT DO NOTHING;
        INSERT INTO t VALUES (x, bson_build('a', pg_temp.elements(pg_temp.values_of(3 * thr), docs)))
          ON CONFLICT (id) DO UPDATE SET doc = bson_set(t.doc, 'a', coalesce(t.doc -> 'a', '[]') || pg_temp.elements(vals, docs));
        UPDATE m SET a = pg_temp.dedup(a || vals, is_set) WHERE id = x;
      WHEN 13 THEN
        y := x / 100000 * 100000 + 50000;
        MERGE INTO t USING (VALUES (x), (y)) AS s (id) ON t.id = s.id
          WHEN MATCHED AND pg_temp.r(2) = 2 THEN DELETE
          WHEN MATCHED AND t.id <> y THEN UPDATE SET doc = bson_set(doc, 'a', coalesce(doc -> 'a', '[]') || pg_temp.elements(vals, docs))
          WHEN NOT MATCHED AND random() < 0.2 THEN INSERT VALUES (s.id, bson_build('a', pg_temp.elements(vals || vals, docs)));
        IF x <> y THEN UPDATE m SET a = pg_temp.dedup(a || vals, is_set) WHERE id = x; END IF;
        INSERT INTO m SELECT y, pg_temp.dedup(vals || vals, is_set) FROM t WHERE id = y ON CONFLICT DO NOTHING;
      WHEN 14 THEN  -- what is rolled back leaves nothing behind
        BEGIN
          UPDATE t SET id = id + 1000000, doc = bson_set(doc, 'a', pg_temp.elements(pg_temp.values_of(2 * thr), docs));
          DELETE FROM t WHERE id % 2 = 0;
          TRUNCATE t;
          RAISE EXCEPTION 'never mind';
        EXCEPTION WHEN raise_exception THEN NULL;
        END;
      WHEN 15 THEN  -- the array of the document is replaced
        IF NOT docs THEN
          k := pg_temp.values_of(pg_temp.r(2 * thr));
          UPDATE t SET doc = bson_set(doc, 'a', pg_temp.elements(k, docs)) WHERE id = x;
          UPDATE m SET a = pg_temp.written(w, b, CASE WHEN is_set AND cardinality(w) = cardinality(b) THEN pg_temp.dedup(k, true) ELSE k END, keep, stay, is_set) WHERE id = x;
        END IF;
      ELSE
        IF mode = 'deferred' THEN PERFORM outlier_spill('t'); END IF;
        IF random() < 0.02 THEN TRUNCATE t; TRUNCATE m; END IF;
      END CASE;
    END LOOP;
    SELECT string_agg(format('batch %s: %s', batch, v), '; ') INTO failures FROM (SELECT v FROM pattern_check('t') v LIMIT 3) v;
    SELECT format('batch %s: key %s is %s, not %s', batch, id, f.a, m.a) INTO wrong
      FROM m FULL JOIN (SELECT id, CASE WHEN docs THEN array(SELECT v FROM unnest(pg_temp.plain(doc -> 'a')) v ORDER BY v) ELSE pg_temp.plain(doc -> 'a') END AS a FROM t_whole) f USING (id)
      WHERE f.a IS DISTINCT FROM CASE WHEN docs THEN array(SELECT v FROM unnest(m.a) v ORDER BY v) ELSE m.a END LIMIT 1;
    EXIT WHEN failures IS NOT NULL OR wrong IS NOT NULL;
  END LOOP;
  RETURN NEXT is(failures, NULL, label || ': nothing is violated');
  RETURN NEXT is(wrong, NULL, label || ': whole documents equal plain arrays');
  IF docs THEN DROP TABLE side CASCADE; END IF;
  DROP TABLE t CASCADE;
END $$;

SELECT pg_temp.run('first', 4, 4, 3, 'first', false, NULL, 'immediate', false, false, :seed);
SELECT pg_temp.run('first, chunks of one', 3, 2, 1, 'first', false, 'n', 'immediate', false, false, :seed + 0.01);
SELECT pg_temp.run('first, keep none', 5, 0, 7, 'first', false, 'n', 'immediate', false, false, :seed + 0.02);
SELECT pg_temp.run('last', 4, 4, 2, 'last', false, 'n', 'immediate', false, false, :seed + 0.03);
SELECT pg_temp.run('last, keep one', 5, 1, 3, 'last', false, NULL, 'immediate', false, false, :seed + 0.04);
SELECT pg_temp.run('set', 4, 2, 2, 'first', true, 'n', 'immediate', false, false, :seed + 0.05);
SELECT pg_temp.run('set, last', 4, 4, 7, 'last', true, NULL, 'immediate', false, false, :seed + 0.06);
SELECT pg_temp.run('deferred', 4, 3, 2, 'first', false, 'n', 'deferred', false, false, :seed + 0.07);
SELECT pg_temp.run('deferred set, last', 3, 3, 2, 'last', true, 'n', 'deferred', false, false, :seed + 0.08);
SELECT pg_temp.run('partitioned', 4, 4, 2, 'first', false, 'n', 'immediate', false, true, :seed + 0.09);
SELECT pg_temp.run('partitioned, last', 3, 1, 7, 'last', true, NULL, 'immediate', false, true, :seed + 0.10);
SELECT pg_temp.run('collection', 4, 0, 2, 'first', false, 'n', 'immediate', true, false, :seed + 0.11);
SELECT pg_temp.run('collection, last', 4, 2, 2, 'last', false, 'n', 'immediate', true, true, :seed + 0.12);

-- Two patterns on one table, keys of text, and a trigger of the user's that writes to the same row once more.
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE t SET doc = bson_set(doc, 'seen', true) WHERE id = NEW.id AND NOT doc ? 'seen';
  RETURN NULL;
END $$;
CREATE TEMP TABLE m2 (id text PRIMARY KEY, a int[] NOT NULL, b int[] NOT NULL);
CREATE FUNCTION pg_temp.run_two(label text, with_trigger boolean, seed float8) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  batch int; op int; x text; y text; va int[]; vb int[]; wrong text; failures text; ops int;
BEGIN
  PERFORM setseed(seed);
  CREATE TABLE t (id text PRIMARY KEY, doc bson);
  PERFORM outlier_enable('t', 'a', 3, chunk => 2, count_field => 'na', flag => 'fa');
  PERFORM outlier_enable('t', 'x.b', 4, keep => 1, stay => 'last', is_set => true, flag => 'x.f', name => 'b');
  IF with_trigger THEN CREATE TRIGGER again AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION again(); END IF;
  TRUNCATE m2;
  FOR batch IN 1..8 LOOP
    FOR ops IN 1..25 LOOP
      op := pg_temp.r(9);
      SELECT id INTO x FROM m2 ORDER BY random() LIMIT 1;
      va := pg_temp.values_of(pg_temp.r(6)); vb := pg_temp.values_of(pg_temp.r(6));
      IF op = 0 OR x IS NULL THEN
        y := 'key ' || pg_temp.r(1000000);
        INSERT INTO t VALUES (y, bson_build('a', pg_temp.elements(va, false), 'x', bson_build('b', pg_temp.elements(vb, false))));
        INSERT INTO m2 VALUES (y, va, pg_temp.dedup(vb, true));
        CONTINUE;
      END IF;
      CASE op
      WHEN 1, 2 THEN
        UPDATE t SET doc = bson_set(doc, 'a', coalesce(doc -> 'a', '[]') || pg_temp.elements(va, false)) - 'seen' WHERE id = x;
        UPDATE m2 SET a = a || va WHERE id = x;
      WHEN 3 THEN
        UPDATE t SET doc = bson_set(bson_set(doc, 'a', coalesce(doc -> 'a', '[]') || pg_temp.elements(va, false)), 'x.b', coalesce(doc -> 'x.b', '[]') || pg_temp.elements(vb, false)) WHERE id = x;
        UPDATE m2 SET a = a || va, b = pg_temp.dedup(b || vb, true) WHERE id = x;
      WHEN 4 THEN
        y := x || '''';
        UPDATE t SET id = y, doc = bson_set(doc, 'a', coalesce(doc -> 'a', '[]') || pg_temp.elements(va, false)) WHERE id = x;
        UPDATE m2 SET id = y, a = a || va WHERE id = x;
      WHEN 5 THEN
        UPDATE t_whole SET doc = bson_set(bson_set(doc, 'a', pg_temp.elements(va, false)), 'x.b', pg_temp.elements(vb, false)) WHERE id = x;
        UPDATE m2 SET a = va, b = pg_temp.dedup(vb, true) WHERE id = x;
      WHEN 6 THEN
        UPDATE t_whole SET doc = bson_set(doc, 'x.b', pg_temp.elements(vb, false)) - 'seen', id = '"' || id WHERE id = x;
        UPDATE m2 SET b = pg_temp.dedup(vb, true), id = '"' || id WHERE id = x;
      WHEN 7 THEN
        PERFORM outlier_push_into('t', 'b', x, VARIADIC vb), outlier_push_into('t', 'a', x, VARIADIC va);
        UPDATE m2 SET a = a || va, b = pg_temp.dedup(b || vb, true) WHERE id = x;
      ELSE
        IF cardinality(va) > 0 THEN
          PERFORM outlier_pull('t', x, va[1], 'a'), outlier_pull('t', x, va[1], 'b');
          UPDATE m2 SET a = array_remove(a, va[1]), b = array_remove(b, va[1]) WHERE id = x;
        ELSE
          DELETE FROM t WHERE id = x;
          DELETE FROM m2 WHERE id = x;
        END IF;
      END CASE;
    END LOOP;
    SELECT string_agg(format('batch %s: %s', batch, v), '; ') INTO failures FROM (SELECT v FROM pattern_check('t') v LIMIT 3) v;
    SELECT format('batch %s: key %s is %s %s, not %s %s', batch, id, f.a, f.b, m2.a, m2.b) INTO wrong
      FROM m2 FULL JOIN (SELECT id, pg_temp.plain(doc -> 'a') AS a, pg_temp.plain(doc -> 'x.b') AS b FROM t_whole) f USING (id)
      WHERE f.a IS DISTINCT FROM m2.a OR f.b IS DISTINCT FROM m2.b LIMIT 1;
    EXIT WHEN failures IS NOT NULL OR wrong IS NOT NULL;
  END LOOP;
  RETURN NEXT is(failures, NULL, label || ': nothing is violated');
  RETURN NEXT is(wrong, NULL, label || ': whole documents equal plain arrays');
  DROP TABLE t CASCADE;
END $$;
SELECT pg_temp.run_two('two patterns', false, :seed + 0.2);
SELECT pg_temp.run_two('two patterns and a trigger', true, :seed + 0.21);
DROP FUNCTION again();
SELECT * FROM finish();
