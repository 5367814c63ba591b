-- Totals of groups: bson_accumulate is MongoDB's $group in plain SQL.
SELECT collection_create('screenings') \g /dev/null
INSERT INTO screenings (doc) VALUES
  ('{_id: 1, theater: "Alger", movie: "Avatar", viewers: 344, revenue: 3440.10}'),
  ('{_id: 2, theater: "City", movie: "Avatar", viewers: 1498, revenue: 22440.20}'),
  ('{_id: 3, theater: "Alger", movie: "Emma", viewers: 120, revenue: 1200.30}'),
  ('{_id: 4, theater: "City", movie: "Emma", viewers: 80, revenue: 800.50}'),
  ('{_id: 5, theater: "Park", movie: "Avatar", viewers: null}');

-- A document of totals for each movie
SELECT doc ->> 'movie' AS movie, bson_pretty(bson_accumulate(doc, '{
  viewers: {$sum: "$viewers"},
  screenings: {$count: {}},
  average: {$avg: "$viewers"},
  best: {$max: "$revenue"},
  revenue: {$sum: "$revenue"},
  theaters: {$addToSet: "$theater"},
  last: {$last: "$theater"},
  top: {$topN: {n: 2, sortBy: {viewers: -1}, output: ["$theater", "$viewers"]}}
}')) AS totals FROM screenings GROUP BY 1 ORDER BY 1;

-- The order that $first, $last and $push go by is a sort specification; without one it is _id.
SELECT bson_accumulate(doc, '{first: {$first: "$theater"}, all: {$push: "$_id"}}', '{viewers: -1}') FROM screenings;

-- Sums are exact, in whatever order the documents come and whoever adds them.
SELECT bson_accumulate(bson_build('x', x), '{sum: {$sum: "$x"}}') FROM unnest(ARRAY[1e100, 0.1, 0.2, -1e100]::float8[]) x;

-- A document can carry the totals itself and follow when others come and go: what the fields do not tell is in _computed.
SELECT bson_accumulate_set('{title: "Avatar"}', '{viewers: {$sum: "$viewers"}, best: {$max: "$viewers"}}', array_agg(doc)) AS doc FROM screenings WHERE doc @@ '{movie: "Avatar"}' \gset
SELECT :'doc'::bson;
SELECT bson_accumulate_change(:'doc', '{viewers: {$sum: "$viewers"}, best: {$max: "$viewers"}}', ARRAY['{viewers: 2000}'::bson]) AS added,
       bson_accumulate_change(:'doc', '{viewers: {$sum: "$viewers"}, best: {$max: "$viewers"}}', NULL, ARRAY['{viewers: 344}'::bson]) AS removed,
       bson_accumulate_change(:'doc', '{viewers: {$sum: "$viewers"}, best: {$max: "$viewers"}}', NULL, ARRAY['{viewers: 1498}'::bson]) AS greatest_removed;

-- How many distinct values there are, in little room: sketches can be stored, added to and merged.
SELECT doc ->> 'movie' AS movie, bson_distinct_count(bson_distinct_agg(doc -> 'theater')) FROM screenings GROUP BY 1 ORDER BY 1;
SELECT bson_distinct_count(bson_distinct_merge(bson_distinct_add(NULL, 'ada'), bson_distinct_add(bson_distinct_add(NULL, 'bob'), 'ada')));
SELECT abs(bson_distinct_count(bson_distinct_agg(i)) - 100000) < 10000 AS about FROM generate_series(1, 100000) i;

DROP TABLE screenings;
