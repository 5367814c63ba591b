-- Random rows come to groups and leave them; the fields must be those that a model in SQL and a group computed anew have.
BEGIN;
SELECT plan(11);
SET client_min_messages = warning;

-- Numbers of all types whose sums numeric can tell exactly, and what is no number.
CREATE TABLE pool (id int PRIMARY KEY, doc bson, exact numeric, grp int);
CREATE FUNCTION fill(seed float8, kinds text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE k text; v text; n numeric; m bigint; e int;
BEGIN
  PERFORM setseed(seed);
  DELETE FROM pool;
  FOR i IN 1..400 LOOP
    k := substr(kinds, 1 + (random() * (length(kinds) - 1))::int, 1);
    m := ((random() - 0.5) * 2e9)::bigint;
    n := NULL;
    CASE k
      WHEN 'i' THEN n := (m / 1000)::int; v := n::text;
      WHEN 's' THEN n := (random() * 6)::int; v := n::text;                               -- many that are equal
      WHEN 'l' THEN n := m * 3000000; v := format('{"$numberLong": "%s"}', n);
      WHEN 'd' THEN e := (random() * 80)::int - 40; n := m * power(2::numeric, e); v := format('{"$numberDouble": "%s"}', n::float8);
                    IF e < 0 THEN n := m / power(2::numeric, -e); v := format('{"$numberDouble": "%s"}', m * power(2::float8, e)); END IF;
      WHEN 'p' THEN n := round(m / 100000.0, (random() * 2)::int + 1); v := format('{"$numberDecimal": "%s"}', n);
      WHEN 'z' THEN v := (ARRAY['null', '"text"', '[1]', '{"a": 1}', '{"$date": 5}', 'true'])[1 + (random() * 5)::int];
      ELSE v := NULL;                                                                     -- missing
    END CASE;
    INSERT INTO pool VALUES (i, ('{"_id": ' || i || ', "g": ' || (random() * 20)::int || coalesce(', "x": ' || v, '') || '}')::bson, n, 0);
  END LOOP;
END $$;

-- Steps in which rows come and go; counts where change, set and the aggregate differ, and where the document did not tell enough.
CREATE FUNCTION run(seed float8, steps int, fields bson, order_by bson DEFAULT NULL, OUT wrong int, OUT anew int) LANGUAGE plpgsql AS $$
DECLARE target bson; changed bson; fresh bson; came int[]; went int[];
BEGIN
  wrong := 0; anew := 0;
  PERFORM setseed(seed);
  UPDATE pool SET grp = 0;
  target := bson_accumulate_set('{"title": "t"}', fields, '{}', order_by);
  FOR s IN 1..steps LOOP
    SELECT array_agg(id) INTO came FROM (SELECT id FROM pool WHERE grp = 0 ORDER BY random(), id LIMIT (random() * 4)::int) q;
    SELECT array_agg(id) INTO went FROM (SELECT id FROM pool WHERE grp = 1 ORDER BY random(), id
      LIMIT CASE WHEN s % 45 = 0 THEN 400 ELSE (random() * 3)::int END) q;
    UPDATE pool SET grp = 1 - grp WHERE id = ANY (came || went);
    changed := bson_accumulate_change(target, fields, (SELECT array_agg(doc) FROM pool WHERE id = ANY (came)), (SELECT array_agg(doc) FROM pool WHERE id = ANY (went)), order_by);
    fresh := bson_accumulate_set('{"title": "t"}', fields, (SELECT array_agg(doc ORDER BY random()) FROM pool WHERE grp = 1), order_by);
    IF changed IS NULL THEN
      anew := anew + 1;
      changed := bson_accumulate_set(target, fields, (SELECT array_agg(doc ORDER BY random()) FROM pool WHERE grp = 1), order_by);
    END IF;
    IF changed::bytea IS DISTINCT FROM fresh::bytea THEN wrong := wrong + 1; END IF;
    target := changed;
  END LOOP;
END $$;

-- The numeric model of the rows that are left.
CREATE FUNCTION total() RETURNS numeric LANGUAGE sql AS $$ SELECT coalesce(sum(exact), 0) FROM pool WHERE grp = 1 $$;

SELECT fill(0.11, 'iiz-') \g /dev/null
SELECT is(run(0.21, 200, '{"s": {"$sum": "$x"}, "c": {"$count": {}}, "a": {"$avg": "$x"}}'), ROW(0, 0)::record, 'seeds 0.11, 0.21: integers');
SELECT fill(0.12, 'iildddz-') \g /dev/null
SELECT is(run(0.22, 300, '{"s": {"$sum": "$x"}, "a": {"$avg": "$x"}, "p": {"$stdDevPop": "$x"}, "q": {"$stdDevSamp": "$x"}, "u": {"$sum": "$g"}}'), ROW(0, 0)::record, 'seeds 0.12, 0.22: doubles');
SELECT is((bson_accumulate(doc, '{"s": {"$sum": "$x"}}') -> 's')::float8, total()::float8, 'and the sum is the nearest double') FROM pool WHERE grp = 1;
SELECT fill(0.13, 'ilpppz-') \g /dev/null
SELECT is(run(0.23, 200, '{"s": {"$sum": "$x"}, "a": {"$avg": "$x"}, "p": {"$stdDevPop": "$x"}}'), ROW(0, 0)::record, 'seeds 0.13, 0.23: decimals');
SELECT is((bson_accumulate(doc, '{"s": {"$sum": "$x"}}') -> 's')::numeric, total(), 'and the sum is exact') FROM pool WHERE grp = 1;
SELECT fill(0.14, 'ssildpz-') \g /dev/null
SELECT ok(wrong = 0 AND anew < 220, format('seeds 0.14, 0.24: least and greatest (%s wrong, %s anew)', wrong, anew)) FROM run(0.24, 300, '{"a": {"$min": "$x"}, "b": {"$max": "$x"}, "c": {"$minN": {"input": "$x", "n": 3}}, "d": {"$maxN": {"input": "$x", "n": 4}}}');
SELECT ok(wrong = 0 AND anew < 220, format('seeds 0.14, 0.25: first and last (%s wrong, %s anew)', wrong, anew)) FROM run(0.25, 300, '{"a": {"$first": "$x"}, "b": {"$last": "$x"}, "c": {"$firstN": {"input": "$x", "n": 3}}, "d": {"$lastN": {"input": "$x", "n": 4}}, "e": {"$push": "$x", "cap": 12}}');
SELECT ok(wrong = 0 AND anew < 220, format('seeds 0.14, 0.26: in an order with ties (%s wrong, %s anew)', wrong, anew)) FROM run(0.26, 300, '{"a": {"$first": "$x"}, "b": {"$last": "$x"}, "c": {"$topN": {"sortBy": {"x": -1, "g": 1}, "output": "$_id", "n": 3}}, "d": {"$bottomN": {"sortBy": {"g": 1}, "output": ["$x", "$_id"], "n": 4}}, "e": {"$top": {"sortBy": {"g": -1}, "output": "$$ROOT"}}}', '{"g": 1}');
SELECT ok(wrong = 0 AND anew > 0, format('seeds 0.14, 0.27: medians (%s wrong, %s anew)', wrong, anew)) FROM run(0.27, 200, '{"m": {"$median": "$x"}, "c": {"$count": {}}}');
SELECT fill(0.15, 'sssz-') \g /dev/null
SELECT ok(wrong = 0 AND anew < 30, format('seeds 0.15, 0.28: sets (%s wrong, %s anew)', wrong, anew)) FROM run(0.28, 300, '{"a": {"$addToSet": "$x", "cap": 30}}');
SELECT ok(wrong = 0 AND anew > 0, format('seeds 0.15, 0.29: sets that are full (%s wrong, %s anew)', wrong, anew)) FROM run(0.29, 300, '{"a": {"$addToSet": "$g", "cap": 5}, "b": {"$addToSet": "$x", "cap": 3}}');
SELECT * FROM finish();
ROLLBACK;
