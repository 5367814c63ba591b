-- The contract of the calls for trees; seeded random trees against recursive queries, for every kind of declaration.
\set QUIET 1
BEGIN;
SELECT plan(84);
SET client_min_messages = warning;

SELECT is((SELECT string_agg(proname || ':' || provolatile::text || proparallel::text, ' ' ORDER BY proname COLLATE "C") FROM pg_proc
           WHERE proname IN ('tree_ancestors', 'tree_descendants', 'tree_children', 'tree_siblings', 'tree_root', 'tree_subtree_count', 'tree_move', 'tree_copy', 'tree_delete', 'tree_nest', 'tree_unnest', 'tree_render', 'tree_stats')),
  'tree_ancestors:sr tree_children:sr tree_copy:vu tree_copy:vu tree_delete:vu tree_descendants:sr tree_move:vu tree_move:vu tree_nest:sr tree_render:sr tree_root:sr tree_siblings:sr tree_stats:sr tree_subtree_count:sr tree_unnest:sr', 'volatility');
SELECT is((SELECT proargnames::text FROM pg_proc WHERE proname = 'tree_descendants'), '{rel,key,max_depth,name,node,depth,path,key,doc}', 'names of arguments and columns');

-- hostile names, a key of its own, ids that are numbers
CREATE SCHEMA "S""1";
CREATE TABLE "S""1"."t 'x" ("k""1" int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "d'o" bson NOT NULL);
SELECT tree_enable('"S""1"."t ''x"', node_id => 'id''s', parent => 'up s', name => 'n''"') \g /dev/null
INSERT INTO "S""1"."t 'x" ("d'o") SELECT bson_set(bson_set('{}', 'id''s', i), 'up s', CASE WHEN i > 1 THEN to_bson(i / 2) END) FROM generate_series(1, 15) i;
SELECT results_eq($$SELECT node::int FROM tree_descendants('"S""1"."t ''x"', 2)$$, ARRAY[4, 8, 9, 5, 10, 11], 'depth first');
SELECT results_eq($$SELECT node::int, depth, path::text, key::int FROM tree_descendants('"S""1"."t ''x"', 2, 1)$$, $$VALUES (4, 2, '[1, 2, 4]', 4), (5, 2, '[1, 2, 5]', 5)$$, 'one level, with depth, path and key');
SELECT is_empty($$SELECT tree_descendants('"S""1"."t ''x"', 2, 0)$$, 'no levels');
SELECT is_empty($$SELECT tree_descendants('"S""1"."t ''x"', 15)$$, 'a leaf');
SELECT results_eq($$SELECT node::int FROM tree_ancestors('"S""1"."t ''x"', 11.0::float8)$$, ARRAY[1, 2, 5], 'equal numbers are one node');
SELECT results_eq($$SELECT node::int FROM tree_siblings('"S""1"."t ''x"', 4::bigint)$$, ARRAY[5], 'siblings');
SELECT is_empty($$SELECT tree_siblings('"S""1"."t ''x"', 1)$$, 'of the only root');
SELECT results_eq($$SELECT node::int FROM tree_root('"S""1"."t ''x"', 1)$$, ARRAY[1], 'the root of a root');
SELECT results_eq($$SELECT node::int FROM tree_lca('"S""1"."t ''x"', 8, 11, name => 'n''"')$$, ARRAY[2], 'the lowest common ancestor');
SELECT results_eq($$SELECT node::int FROM tree_lca('"S""1"."t ''x"', 2, 11)$$, ARRAY[2], 'one of the two');
SELECT results_eq($$SELECT node::int FROM tree_lca('"S""1"."t ''x"', 2, 2)$$, ARRAY[2], 'both');
SELECT is(tree_subtree_count('"S""1"."t ''x"', 2), 7::bigint, 'the size of a subtree');
SELECT results_eq($$SELECT tree_render('"S""1"."t ''x"', 3, 1)$$, ARRAY['3', U&'\251C\2500\2500 6', U&'\2514\2500\2500 7'], 'a picture');
SELECT is((SELECT count(*) FROM tree_render('"S""1"."t ''x"')), 15::bigint, 'of all');
SELECT is((SELECT count(*) FROM tree_render('"S""1"."t ''x"', max_depth => 1)), 3::bigint, 'so many levels');
SELECT results_eq($$SELECT depth, nodes, leaves, children_min, children_avg, children_median, children_max FROM tree_stats('"S""1"."t ''x"')$$,
  $$VALUES (0, 1::bigint, 0::bigint, 2::bigint, 2.00, 2::float8, 2::bigint), (1, 2, 0, 2, 2, 2, 2), (2, 4, 0, 2, 2, 2, 2), (3, 8, 8, NULL, NULL, NULL, NULL)$$, 'its shape');

-- errors
SELECT throws_ok($$SELECT tree_ancestors('"S""1"."t ''x"', 99)$$, 'P0002', 'table "t ''x" has no node 99');
SELECT throws_ok($$SELECT tree_ancestors('"S""1"."t ''x"', '1')$$, 'P0002', 'table "t ''x" has no node "1"', 'a literal is a string');
SELECT throws_ok(format('SELECT %s', c), 'P0002') FROM unnest(ARRAY[$$tree_descendants('"S""1"."t ''x"', 99)$$, $$tree_ancestors('"S""1"."t ''x"', NULL)$$, $$tree_move('"S""1"."t ''x"', 99, 1)$$, $$tree_move('"S""1"."t ''x"', 2, 99)$$,
  $$tree_copy('"S""1"."t ''x"', 2, 99)$$, $$tree_delete('"S""1"."t ''x"', 99)$$, $$tree_nest('"S""1"."t ''x"', 99)$$, $$tree_lca('"S""1"."t ''x"', 1, 99)$$]) c;
SELECT throws_ok($$SELECT tree_descendants('"S""1"."t ''x"', 1, -1)$$, '22023');
SELECT throws_ok($$SELECT tree_descendants(NULL, 1)$$, '22004');
SELECT throws_ok($$SELECT tree_descendants('pg_class', 1)$$, '42704');
SELECT throws_ok($$SELECT * FROM tree_stats('pg_class')$$, '42704');
-- names that the generated statement uses itself
CREATE TABLE n (_id bson_value PRIMARY KEY, doc bson); SELECT tree_enable('n', node_id => '_id', parent => 'parent') \gset
INSERT INTO n VALUES ('1', '{_id: 1}'), ('2', '{_id: 2, parent: 1}');
SELECT is((SELECT string_agg(nodes::text, ',' ORDER BY depth) FROM tree_stats('n')), '1,1', 'a table called n');
SELECT throws_ok($$SELECT tree_descendants('"S""1"."t ''x"', 1, name => 'other')$$, '42704');
SELECT throws_ok($$SELECT tree_move('"S""1"."t ''x"', 2, 11)$$, '23514', NULL, 'below itself');
SELECT throws_ok($$SELECT tree_move('"S""1"."t ''x"', 2, 2)$$, '23514', NULL, 'or at itself');
SELECT throws_ok($$SELECT tree_copy('"S""1"."t ''x"', 2, 3, suffix => 'x')$$, '22023', NULL, 'a suffix is for strings');
SELECT throws_ok($$SELECT tree_unnest('"S""1"."t ''x"', '{a: 1}')$$, '23502');
SELECT throws_ok($$SELECT tree_unnest('"S""1"."t ''x"', '{"id''s": 1, children: 5}')$$, '22023');
SELECT throws_ok($$SELECT tree_unnest('"S""1"."t ''x"', '{"id''s": 1, children: [5]}')$$, '22023');

-- changes
SELECT lives_ok($$SELECT tree_move('"S""1"."t ''x"', 5, 3)$$);
SELECT results_eq($$SELECT node::int FROM tree_descendants('"S""1"."t ''x"', 1)$$, ARRAY[2, 4, 8, 9, 3, 5, 10, 11, 6, 12, 13, 7, 14, 15], 'moved');
SELECT is(tree_nest('"S""1"."t ''x"', 5, field => 'below'), '{"id''s": 5, "below": [{"id''s": 10}, {"id''s": 11}]}'::bson, 'nested');
SELECT is(tree_nest('"S""1"."t ''x"', 1, 1), '{"id''s": 1, "children": [{"id''s": 2}, {"id''s": 3}]}'::bson, 'so many levels');
SELECT results_eq($$SELECT d::text FROM tree_unnest('"S""1"."t ''x"', tree_nest('"S""1"."t ''x"', 5), 3) d$$, $$VALUES ('{"id''s": 5, "up s": 3}'), ('{"id''s": 10, "up s": 5}'), ('{"id''s": 11, "up s": 5}')$$, 'and back');
SELECT is(tree_delete('"S""1"."t ''x"', 3), 10::bigint, 'a subtree deleted, although deleting is restricted');
SELECT results_eq($$SELECT tree_render('"S""1"."t ''x"')$$, ARRAY['1', U&'\2514\2500\2500 2', U&'    \2514\2500\2500 4', U&'        \251C\2500\2500 8', U&'        \2514\2500\2500 9'], 'what is left');
SELECT is((SELECT count(*) FROM tree_copy('"S""1"."t ''x"', 2, 9)), 4::bigint, 'copied below one of its own');
SELECT is(tree_subtree_count('"S""1"."t ''x"', NULL), 9::bigint, 'no more than it was');
SELECT is((SELECT bson_typeof(node) FROM tree_children('"S""1"."t ''x"', 9)), 'objectId', 'with new ids');
SELECT lives_ok($$SELECT tree_move('"S""1"."t ''x"', 4, NULL::int)$$);
SELECT results_eq($$SELECT node::int FROM tree_children('"S""1"."t ''x"', NULL)$$, ARRAY[1, 4], 'a root');
SELECT is_empty($$SELECT * FROM pattern_check('"S""1"."t ''x"')$$, 'all is true');

-- a chain that is deeper than documents can be nested
SELECT collection_create('chain') \g /dev/null
SELECT tree_enable('chain', parent => 'parent') \g /dev/null
INSERT INTO chain (doc) SELECT docpatterns.bson_concat(bson_build('_id', i), CASE WHEN i > 1 THEN bson_build('parent', i - 1) ELSE '{}' END) FROM generate_series(1, 300) i;
SELECT throws_ok($$SELECT tree_nest('chain', 1)$$, '54000', 'the subtree is too deep for one document');
SELECT ok(length(tree_nest('chain', 1, 48)::text) > 100, 'a part fits');
SELECT is((SELECT max(depth) FROM tree_descendants('chain', 1)), 299, 'depth first to the bottom');
SELECT is((SELECT count(*) FROM tree_ancestors('chain', 300)), 299::bigint, 'and up again');

-- every kind of declaration says the same of the same random forest, before and after random moves
CREATE FUNCTION enabled(rel text, form text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM collection_create(rel);
  PERFORM CASE form WHEN 'parent' THEN tree_enable(rel::regclass, parent => 'p')
    WHEN 'ordered' THEN tree_enable(rel::regclass, parent => 'p', ancestors => 'a', order_by => 'o')
    WHEN 'root_first' THEN tree_enable(rel::regclass, parent => 'p', ancestors => 'a')
    WHEN 'nearest_first' THEN tree_enable(rel::regclass, parent => 'p', ancestors => 'a', ancestors_order => 'nearest_first', children => 'c', depth => 'd')
    WHEN 'ancestors' THEN tree_enable(rel::regclass, ancestors => 'a', truth => 'ancestors')
    WHEN 'path' THEN tree_enable(rel::regclass, parent => 'p', path => 'm', separator => '/', path_self => true, truth => 'path')
    WHEN 'children' THEN tree_enable(rel::regclass, parent => 'p', children => 'c', truth => 'children') END;
END $$;
SELECT setseed(0.35) \g /dev/null
CREATE TABLE model AS SELECT i, 'n' || lpad(i::text, 3, '0') AS id, CASE WHEN i > 4 THEN 'n' || lpad((1 + floor(random() * (i - 1)))::int::text, 3, '0') END AS up, floor(random() * 3)::int AS o FROM generate_series(1, 120) i;
CREATE FUNCTION model_tree(OUT id text, OUT line text[], OUT rank text[]) RETURNS SETOF record LANGUAGE sql AS $$
  WITH RECURSIVE r AS (SELECT m.id, ARRAY[m.id] AS line, ARRAY[m.o || m.id] AS rank FROM model m WHERE up IS NULL UNION ALL SELECT m.id, r.line || m.id, r.rank || (m.o || m.id) FROM model m JOIN r ON m.up = r.id) SELECT * FROM r $$;
-- what differs from the model
CREATE FUNCTION wrong(rel regclass, ordered boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  n record; got text[]; want text[];
BEGIN
  FOR n IN SELECT m.id, m.line FROM model_tree() m LOOP
    got := ARRAY(SELECT array_to_string(t.path::text[], '/') FROM tree_descendants(rel, n.id) WITH ORDINALITY AS t (node, depth, path, key, doc, o) ORDER BY o);
    want := ARRAY(SELECT array_to_string(m.line, '/') FROM model_tree() m WHERE m.line @> ARRAY[n.id] AND m.id <> n.id ORDER BY CASE WHEN ordered THEN m.rank ELSE m.line END COLLATE "C");
    IF got <> want THEN RETURN format('below %s: %s, not %s', n.id, got, want); END IF;
    IF tree_subtree_count(rel, n.id) <> cardinality(want) + 1 THEN RETURN 'size of ' || n.id; END IF;
    IF ARRAY(SELECT t.node::text FROM tree_ancestors(rel, n.id) WITH ORDINALITY AS t (node, depth, path, key, doc, o) ORDER BY o) <> trim_array(n.line, 1) THEN RETURN 'above ' || n.id; END IF;
    IF (SELECT t.node::text FROM tree_root(rel, n.id) t) <> n.line[1] THEN RETURN 'root of ' || n.id; END IF;
  END LOOP;
  RETURN NULL;
END $$;
CREATE FUNCTION fill(rel text, form text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('INSERT INTO %I (doc) SELECT docpatterns.bson_concat(bson_build(''_id'', id, ''o'', o), CASE %L WHEN ''ancestors'' THEN bson_build(''a'', CASE WHEN up IS NULL THEN ARRAY[]::text[] ELSE ARRAY[up] END) '
                 'WHEN ''children'' THEN bson_build(''c'', ARRAY(SELECT m.id FROM model m WHERE m.up = model.id ORDER BY m.id)) WHEN ''path'' THEN bson_build(''m'', coalesce(''/'' || up, '''') || ''/'' || id) ELSE CASE WHEN up IS NULL THEN ''{}'' ELSE bson_build(''p'', up) END END) FROM model ORDER BY random()', rel, form);
END $$;
SELECT enabled('t_' || f, f), fill('t_' || f, f) FROM unnest('{parent,ordered,root_first,nearest_first,ancestors,path,children}'::text[]) f \g /dev/null
SELECT is(wrong(('t_' || f)::regclass, f = 'ordered'), NULL, 'made: ' || f) FROM unnest('{parent,ordered,root_first,nearest_first,ancestors,path,children}'::text[]) f;
-- moves that make no cycle, by tree_move; some to the top
DO $$
DECLARE m record; f text;
BEGIN
  FOR m IN SELECT a.id, CASE WHEN a.i % 7 > 0 THEN b.id END AS up FROM model a JOIN model b ON b.i = 1 + (a.i * 37) % 120 WHERE a.i % 9 = 0 ORDER BY a.i LOOP
    CONTINUE WHEN EXISTS (SELECT FROM model_tree() t WHERE t.id = m.up AND t.line @> ARRAY[m.id]);
    UPDATE model SET up = m.up WHERE id = m.id;
    FOREACH f IN ARRAY '{parent,ordered,root_first,nearest_first,ancestors,path,children}'::text[] LOOP PERFORM tree_move(('t_' || f)::regclass, m.id, m.up); END LOOP;
  END LOOP;
END $$;
SELECT is(wrong(('t_' || f)::regclass, f = 'ordered'), NULL, 'moved: ' || f) FROM unnest('{parent,ordered,root_first,nearest_first,ancestors,path,children}'::text[]) f;
SELECT throws_ok($$SELECT tree_unnest('t_children', '{_id: "x"}', 'n001')$$, '0A000');
SELECT is((SELECT count(*) FROM tree_copy('t_children', 'n010', 'n001', '+')), tree_subtree_count('t_children', 'n010'), 'copied where children are the truth');
SELECT is((SELECT count(*) FROM tree_siblings('t_children', 'n010+') WHERE node = ANY (SELECT node FROM tree_children('t_children', 'n001'))), (SELECT count(*) - 1 FROM tree_children('t_children', 'n001')), 'below its parent');
SELECT is_empty('SELECT * FROM pattern_check()', 'all is true');

-- documents that were there before: the index does not know them, the calls do
SELECT collection_create('before') \g /dev/null
INSERT INTO before (doc) SELECT docpatterns.bson_concat(bson_build('_id', id), CASE WHEN up IS NULL THEN '{}' ELSE bson_build('p', up) END) FROM model;
SELECT tree_enable('before', parent => 'p', ancestors => 'a') \g /dev/null
SELECT is(wrong('before', false), NULL, 'not built yet');

-- rights and policies of the caller
CREATE ROLE tree_reader;
GRANT SELECT ON t_root_first TO tree_reader;
SET LOCAL ROLE tree_reader;
SELECT is(tree_subtree_count('t_root_first', NULL), 120::bigint, 'who may read may ask');
SELECT throws_ok($$SELECT tree_subtree_count('t_parent', NULL)$$, '42501');
SELECT throws_ok($$SELECT tree_move('t_root_first', 'n010', NULL::text)$$, '42501');
SELECT throws_ok($$SELECT tree_delete('t_root_first', 'n010')$$, '42501');
RESET ROLE;
CREATE POLICY low ON t_root_first USING (doc ->> '_id' < 'n060');
ALTER TABLE t_root_first ENABLE ROW LEVEL SECURITY;
SET LOCAL ROLE tree_reader;
SELECT is((SELECT count(*) FROM tree_descendants('t_root_first', NULL)), 59::bigint, 'rows that a policy hides are not shown');
RESET ROLE;
-- calls that the extension makes itself can be made by anybody, about any declaration
CREATE TABLE no_tree (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('no_tree', 'x', 2);
SELECT throws_ok(c, '22023', 'pattern "outlier" has no tree', 'a pattern that is no tree: ' || c) FROM unnest(ARRAY[$$SELECT * FROM docpatterns._tree_indexes('no_tree', 'outlier', 'x')$$, $$SELECT docpatterns._tree_node('no_tree', 'outlier', 'x', '{}')$$, $$SELECT docpatterns._tree_expressions('no_tree', 'outlier', 'x', 'b')$$]) c;
SELECT * FROM finish();
ROLLBACK;
