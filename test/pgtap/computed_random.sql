-- Random writes of all kinds to a source and its targets: after each batch the totals equal those of a plain query over the
-- same rows, and nothing is violated.
\set QUIET 1
\set ON_ERROR_STOP 1
SET client_min_messages = warning;
SET timezone = 'UTC';
\set seed 0.2718

BEGIN;
SELECT plan(12);
SELECT diag('seed ' || :seed);
SELECT setseed(:seed) \g /dev/null

SELECT collection_create('t'), collection_create('s') \g /dev/null
CREATE TABLE linked (id int PRIMARY KEY, doc bson NOT NULL);
CREATE FUNCTION pg_temp.r(n int) RETURNS int LANGUAGE sql AS 'SELECT floor(random() * n)::int';
-- A number of any type, sometimes none.
CREATE FUNCTION pg_temp.number() RETURNS bson_value LANGUAGE sql AS $$
  SELECT CASE pg_temp.r(7) WHEN 0 THEN to_bson(pg_temp.r(10)) WHEN 1 THEN to_bson(pg_temp.r(1000)::bigint) WHEN 2 THEN to_bson(pg_temp.r(100) / 8.0::float8)
    WHEN 3 THEN to_bson(pg_temp.r(1000) / 100.0) WHEN 4 THEN to_bson('text'::text) WHEN 5 THEN 'null'::bson_value ELSE to_bson(-pg_temp.r(50)) END
$$;
CREATE FUNCTION pg_temp.document(id int) RETURNS bson LANGUAGE sql AS $$
  SELECT bson_build('_id', id, 'g', CASE WHEN pg_temp.r(10) = 0 THEN NULL ELSE pg_temp.r(8) END, 'h', pg_temp.r(4), 'x', pg_temp.number())
$$;
SELECT computed_enable('t', 's', 'g', '{n: {$count: {}}, sum: {$sum: "$x"}, low: {$min: "$x"}, high: {$max: "$x"}, last: {$last: "$x"}}', name => 'a'),
  computed_enable('t', 's', 'h', '{pos: {$count: {}}, mean: {$avg: "$x"}}', filter => '{x: {$gt: 0}}', name => 'b'),
  computed_enable('linked', 's', 'g', '{n: {$count: {}}, spread: {$stdDevPop: "$x"}, top: {$topN: {n: 2, sortBy: {x: -1, _id: 1}, output: "$x"}}}', target_field => 'link') \g /dev/null

CREATE FUNCTION pg_temp.step() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  i int := pg_temp.r(60);
  j int := pg_temp.r(8);
BEGIN
  CASE pg_temp.r(13)
    WHEN 0 THEN INSERT INTO s (doc) VALUES (pg_temp.document(i)) ON CONFLICT DO NOTHING;
    WHEN 1 THEN INSERT INTO s (doc) SELECT pg_temp.document(k) FROM generate_series(i, i + 10) k ON CONFLICT (_id) DO UPDATE SET doc = EXCLUDED.doc;
    WHEN 2 THEN UPDATE s SET doc = bson_set(doc, 'g', j) WHERE (doc -> '_id')::int % 7 = i % 7;
    WHEN 3 THEN UPDATE s SET doc = bson_set(doc, 'x', pg_temp.number()) WHERE (doc -> '_id')::int BETWEEN i AND i + 5;
    WHEN 4 THEN DELETE FROM s WHERE (doc -> '_id')::int BETWEEN i AND i + 3;
    WHEN 5 THEN DELETE FROM s WHERE doc @@ bson_build('g', j);
    WHEN 6 THEN MERGE INTO s USING generate_series(i, i + 8) k ON s._id = k::bson_value
      WHEN MATCHED AND k % 3 = 0 THEN DELETE
      WHEN MATCHED THEN UPDATE SET doc = pg_temp.document(k)
      WHEN NOT MATCHED THEN INSERT (doc) VALUES (pg_temp.document(k));
    WHEN 7 THEN
      BEGIN
        INSERT INTO t (doc) VALUES (bson_build('_id', j, 'n', 99)) ON CONFLICT (_id) DO UPDATE SET doc = bson_set(t.doc, 'sum', 5);
      EXCEPTION WHEN object_not_in_prerequisite_state THEN
        IF EXISTS (SELECT FROM s WHERE doc -> 'g' = j) THEN RAISE; END IF; -- a total over no rows is refused
      END;
    WHEN 8 THEN DELETE FROM t WHERE _id = j;
    WHEN 9 THEN INSERT INTO linked VALUES (i, bson_build('link', j)) ON CONFLICT (id) DO UPDATE SET doc = bson_set(linked.doc, 'link', j);
    WHEN 10 THEN DELETE FROM linked WHERE id % 5 = i % 5;
    WHEN 11 THEN UPDATE s SET doc = bson_set(doc, '_id', 1000 + i) WHERE _id = i AND NOT EXISTS (SELECT FROM s o WHERE o._id = 1000 + i);
    ELSE
      BEGIN
        DELETE FROM s WHERE (doc -> '_id')::int % 2 = 0;
        INSERT INTO t (doc) VALUES (bson_build('_id', j)) ON CONFLICT DO NOTHING;
        RAISE EXCEPTION 'undo';
      EXCEPTION WHEN raise_exception THEN NULL;
      END;
  END CASE;
END
$$;
-- Documents that are not what a plain query makes of the rows.
CREATE FUNCTION pg_temp.wrong() RETURNS text LANGUAGE sql AS $$
  SELECT concat_ws('; ',
    (SELECT string_agg(format('t %s is %s', t._id, t.doc), ', ') FROM t
     WHERE (t.doc -> 'n')::int <> (SELECT count(*) FROM s WHERE s.doc -> 'g' = t._id)
       OR (t.doc -> 'sum')::numeric <> (SELECT coalesce(sum((s.doc -> 'x')::numeric), 0) FROM s WHERE s.doc -> 'g' = t._id AND bson_typeof(s.doc -> 'x') IN ('int', 'long', 'double', 'decimal'))
       OR (t.doc -> 'pos')::int <> (SELECT count(*) FROM s WHERE s.doc -> 'h' = t._id AND s.doc @@ '{x: {$gt: 0}}')
       OR coalesce(t.doc -> 'high', 'null') <> coalesce((SELECT max(s.doc -> 'x') FROM s WHERE s.doc -> 'g' = t._id AND bson_typeof(s.doc -> 'x') <> 'null'), 'null')
       OR coalesce(t.doc -> 'low', 'null') <> coalesce((SELECT min(s.doc -> 'x') FROM s WHERE s.doc -> 'g' = t._id AND bson_typeof(s.doc -> 'x') <> 'null'), 'null')
       OR coalesce(t.doc -> 'last', 'null') <> coalesce((SELECT s.doc -> 'x' FROM s WHERE s.doc -> 'g' = t._id ORDER BY s._id DESC LIMIT 1), 'null')),
    (SELECT string_agg(format('linked %s is %s', l.id, l.doc), ', ') FROM linked l
     WHERE (l.doc -> 'n')::int <> (SELECT count(*) FROM s WHERE s.doc -> 'g' = l.doc -> 'link')),
    (SELECT string_agg(c::text, ', ') FROM pattern_check() c))
$$;

CREATE FUNCTION pg_temp.batch() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  FOR k IN 1 .. 60 LOOP
    PERFORM pg_temp.step();
  END LOOP;
  RETURN pg_temp.wrong();
END
$$;
SELECT is(pg_temp.batch(), '', 'batch 1');
SELECT is(pg_temp.batch(), '', 'batch 2');
SELECT is(pg_temp.batch(), '', 'batch 3');
SELECT is(pg_temp.batch(), '', 'batch 4');
SELECT is(pg_temp.batch(), '', 'batch 5');
SELECT is(pg_temp.batch(), '', 'batch 6');
SELECT is(pg_temp.batch(), '', 'batch 7');
SELECT is(pg_temp.batch(), '', 'batch 8');
SELECT is(pg_temp.batch(), '', 'batch 9');
SELECT is(pg_temp.batch(), '', 'batch 10');
SELECT ok((SELECT count(*) FROM s) > 0 AND (SELECT count(*) FROM t) > 0 AND (SELECT count(*) FROM linked) > 0, 'there is something to compare');
DELETE FROM s;
SELECT is(pg_temp.wrong(), '', 'emptied');

SELECT * FROM finish();
ROLLBACK;
