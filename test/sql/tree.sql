-- The tree pattern: categories below categories, and products attached to them.
SET client_min_messages = warning;
SELECT collection_create('categories'), collection_create('products');

-- One form is written by hand, here the parent; the others follow from it.
SELECT tree_enable('categories', node_id => 'name', parent => 'parent', ancestors => 'ancestors', path => 'path', children => 'children', depth => 'depth');
SELECT tree_attach('products', tree => 'categories', parent => 'parent_category', ancestors => 'ancestor_categories', ancestors_order => 'nearest_first');

-- Nodes may come in any order, if they are all there when the statement ends.
INSERT INTO categories (doc) VALUES
  ('{_id: 5, name: "Solid State Drives", parent: "Storage"}'), ('{_id: 3, name: "Storage", parent: "Computers"}'),
  ('{_id: 1, name: "Electronics"}'), ('{_id: 2, name: "Computers", parent: "Electronics"}'), ('{_id: 4, name: "Hard Drives", parent: "Storage"}');
INSERT INTO products (doc) VALUES ('{_id: 1, name: "Samsung 860 EVO", parent_category: "Solid State Drives"}');
SELECT doc FROM categories ORDER BY _id;
SELECT doc FROM products;

-- A node that moves takes along what lies below it, products included.
UPDATE categories SET doc = bson_set(doc, 'parent', 'Hard Drives') WHERE _id = 5;
UPDATE categories SET doc = bson_set(doc, 'parent', 'Electronics') WHERE _id = 3;
SELECT doc FROM categories ORDER BY _id;
SELECT doc FROM products;

-- So does one that gets another name.
UPDATE categories SET doc = bson_set(doc, 'name', 'Drives') WHERE _id = 4;
SELECT doc FROM categories WHERE _id >= 4 ORDER BY _id;
SELECT doc FROM products;

-- Derived forms that are written by hand are put back.
UPDATE categories SET doc = bson_set(bson_set(doc, 'depth', 99), 'note', 'kept') WHERE _id = 4;
SELECT doc FROM categories WHERE _id = 4;

-- What no tree can be is refused.
INSERT INTO categories (doc) VALUES ('{name: "Lost", parent: "Nowhere"}');
INSERT INTO categories (doc) VALUES ('{name: "Self", parent: "Self"}');
INSERT INTO categories (doc) VALUES ('{name: "A", parent: "B"}'), ('{name: "B", parent: "A"}');
UPDATE categories SET doc = bson_set(doc, 'parent', 'Drives') WHERE _id = 3;
INSERT INTO categories (doc) VALUES ('{name: "a.b"}');
INSERT INTO products (doc) VALUES ('{parent_category: "Nowhere"}');
DELETE FROM categories WHERE _id = 3;
DELETE FROM categories WHERE _id = 5;

-- Other rules for deletions: children move to their grandparent.
SELECT pattern_alter('categories', 'parent', '{on_delete: "reparent"}');
DELETE FROM categories WHERE _id IN (4, 5);
SELECT doc FROM categories ORDER BY _id;
SELECT doc FROM products;
-- Or go, too.
SELECT pattern_alter('categories', 'parent', '{on_delete: "cascade"}');
DELETE FROM categories WHERE _id = 1;
SELECT count(*) FROM categories;
SELECT count(*) FROM products;

-- A table that is full already is brought in line, and everything can be checked.
SELECT pattern_disable('products'), pattern_disable('categories');
INSERT INTO categories (doc) VALUES ('{_id: 1, name: "Swag"}'), ('{_id: 2, name: "Office", parent: "Swag"}');
SELECT tree_enable('categories', node_id => 'name', parent => 'parent', ancestors => 'ancestors');
SELECT key, what, expected, found FROM pattern_check('categories') ORDER BY key, what;
CALL pattern_build('categories');
SELECT key, what, expected, found FROM pattern_check('categories');
SELECT doc FROM categories ORDER BY _id;
DROP TABLE products, categories;
