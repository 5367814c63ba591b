-- The calls for trees: what is above, below and beside a node; moving and copying; nested documents and pictures.
SELECT collection_create('categories') \g /dev/null
SELECT tree_enable('categories', parent => 'parent', ancestors => 'ancestors') \g /dev/null
INSERT INTO categories (doc) VALUES ('{_id: "Books", parent: "Office"}'), ('{_id: "Electronic", parent: "Office"}'), ('{_id: "Stickers", parent: "Office"}'),
  ('{_id: "Office", parent: "Swag"}'), ('{_id: "Gifts", parent: "Swag"}'), ('{_id: "Swag"}'), ('{_id: "Toys", note: "a second tree"}');

SELECT node, depth, path FROM tree_ancestors('categories', 'Books');
SELECT node, depth, path FROM tree_descendants('categories', 'Swag');
SELECT node FROM tree_descendants('categories', 'Swag', max_depth => 1);
SELECT node FROM tree_children('categories', 'Office');
SELECT node FROM tree_children('categories', NULL);
SELECT node FROM tree_siblings('categories', 'Books');
SELECT node, doc FROM tree_root('categories', 'Books');
SELECT node, depth FROM tree_lca('categories', 'Books', 'Gifts');
SELECT tree_subtree_count('categories', 'Office'), tree_subtree_count('categories', NULL) AS all_nodes;
SELECT tree_render('categories');
SELECT tree_render('categories', 'Swag', max_depth => 1);

-- a subtree is moved with all that is below
SELECT tree_move('categories', 'Office', 'Toys');
SELECT tree_render('categories');
SELECT doc FROM categories WHERE _id = 'Books'::text;
SELECT tree_move('categories', 'Toys', 'Books');
-- copied, with other ids
SELECT * FROM tree_copy('categories', 'Office', 'Swag', suffix => ' 2');
-- as one document, and back
SELECT bson_pretty(tree_nest('categories', 'Toys'));
INSERT INTO categories (doc) SELECT tree_unnest('categories', '{_id: "Games", children: [{_id: "Chess", players: 2}, {_id: "Cards", children: [{_id: "Bridge"}]}]}', 'Toys');
SELECT tree_delete('categories', 'Office');
SELECT tree_render('categories');
SELECT * FROM tree_stats('categories');
SELECT * FROM pattern_check('categories');
DROP TABLE categories CASCADE;
