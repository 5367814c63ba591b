-- Statistics of documents: ANALYZE finds out what is in them, and the planner uses it.
SET datestyle = iso; SET timezone = 'UTC';
SET max_parallel_workers_per_gather = 0;
CREATE TABLE people (doc bson);
INSERT INTO people SELECT bson_build('_id', i,
    'name', bson_build('first', (ARRAY['Ada', 'Bo', 'Cleo', 'Dan'])[1 + i % 4], 'last', 'Name ' || i % 100),
    'born', 1950 + i % 60,
    'known', CASE i % 5 WHEN 0 THEN '"bob"'::bson_value WHEN 1 THEN '["bob", "eve"]' WHEN 2 THEN '["eve"]' WHEN 3 THEN 'null' ELSE '[]' END)
  || CASE WHEN i % 10 = 0 THEN '{retired: true}'::bson ELSE '{}' END FROM generate_series(1, 2000) i;
ANALYZE people;

-- A report of the collection: which fields there are, how often, of which types.
SELECT path, presence, null_frac, types, array_lengths, n_distinct FROM bson_stats('people');
SELECT path, most_common_values, most_common_freqs FROM bson_stats('people') WHERE path IN ('name.first', 'known');

-- How many rows does the planner expect?
CREATE FUNCTION rows(condition text) RETURNS TABLE (expected float8, actual float8) LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT json) SELECT * FROM people WHERE ' || condition INTO plan;
  expected := plan -> 0 -> 'Plan' ->> 'Plan Rows';
  EXECUTE 'SELECT count(*) FROM people WHERE ' || condition INTO actual;
  RETURN NEXT;
END $$;
SELECT c AS condition, r.* FROM unnest(ARRAY[
  $$doc @@ '{"name.first": "Ada"}'$$,
  $$doc @@ '{known: "eve"}'$$,
  $$doc @@ '{known: {$size: 0}}'$$,
  $$doc @@ '{retired: {$exists: true}}'$$,
  $$doc @@ '{retired: null}'$$,
  $$doc @@ '{"name.first": {$in: ["Bo", "Dan"]}}'$$,
  $$doc @> '{name: {first: "Ada"}}'$$,
  $$doc ? 'retired'$$,
  $$doc -> 'name.first' = 'Cleo'::text$$,
  $$doc -> 'born' < 1951$$]) c, rows(c) r;
DROP TABLE people;
DROP FUNCTION rows;
