-- Primary keys of a row type: a table whose only key column holds rows, a domain over such a type, a row with one column. The key of
-- such a table is one value, and a call takes it as it is, or in a row of one.
\set ECHO none
SET client_min_messages = error;
SET timezone = 'UTC';
SELECT plan(17);
CREATE TYPE place AS (shelf int, label text);
CREATE DOMAIN known_place AS place CHECK ((VALUE).shelf > 0);
CREATE TYPE single AS (n int);

CREATE TABLE shelves (id place PRIMARY KEY, doc bson);
SELECT is(versioning_enable('shelves'), 'revision', 'a history for a table whose key is a row');
INSERT INTO shelves SELECT ROW(i, 'x')::place, bson_build('n', i, 's', 'secret') FROM generate_series(1, 3) i;
UPDATE shelves SET doc = bson_set(doc, 'n', 10) WHERE (id).shelf < 3;
DELETE FROM shelves WHERE (id).shelf = 2;
SELECT is((SELECT string_agg(concat(key, revision, operation), ' ' ORDER BY key, revision) FROM shelves_history),
          '(1,x)1insert (1,x)2update (2,x)1insert (2,x)2update (2,x)3delete (3,x)1insert', 'its view');
SELECT is((SELECT string_agg(concat(key, revision, doc -> 'n'), ' ' ORDER BY key) FROM versioning_as_of('shelves', 'infinity')),
          '{"shelf": 1, "label": "x"}210 {"shelf": 3, "label": "x"}13', 'as of');
SELECT is(versioning_at('shelves', ROW(1, 'x')::place, 1) -> 'n', '1', 'one revision, by the value');
SELECT is(versioning_at('shelves', ROW(ROW(1, 'x')::place), 1) -> 'n', '1', 'by a row of one');
SELECT is(versioning_at('shelves', '(1,x)', 1) -> 'n', '1', 'by a literal');
SELECT throws_ok($$SELECT versioning_at('shelves', ROW(1, 'x'), 1)$$, '42809', 'key has 2 values, but the primary key of table "shelves" has 1 columns', 'a row of no type is a row of columns');
SELECT is(versioning_revert('shelves', ROW(2, 'x')::place, 1), 4::bigint, 'one that is gone comes back');
SELECT is(versioning_redact('shelves', ROW(1, 'x')::place, 's'), 2::bigint, 'a value is taken out of all revisions');
SELECT is_empty($$SELECT * FROM pattern_check('shelves')$$, 'and all is true');
SET docpatterns.maintain = off;
UPDATE shelves SET doc = '{unseen: 1}' WHERE (id).shelf = 3;
RESET docpatterns.maintain;
SELECT pattern_repair('shelves') \gset
SELECT is_empty($$SELECT * FROM pattern_check('shelves')$$, 'after a repair, too');

CREATE TABLE known (id known_place PRIMARY KEY, doc bson);
CREATE TABLE singles (id single PRIMARY KEY, doc bson);
SELECT versioning_enable('known'), versioning_enable('singles') \gset
INSERT INTO known VALUES (ROW(1, 'x'), '{a: 1}');
INSERT INTO singles VALUES (ROW(1), '{a: 1}');
SELECT is(versioning_at('known', ROW(1, 'x')::place, 1) ->> 'a' || (versioning_at('known', ROW(1, 'x')::known_place, 1) ->> 'a') || (SELECT doc ->> 'a' FROM known_history), '111', 'a domain over rows');
SELECT is(versioning_at('singles', ROW(1)::single, 1) ->> 'a' || (versioning_at('singles', ROW(ROW(1)::single), 1) ->> 'a') || (SELECT doc ->> 'a' FROM singles_history), '111', 'a row with one column');
SELECT throws_ok($$SELECT versioning_at('singles', ROW(1), 1)$$, '42809', 'key has type integer, but column "id" of table "singles" has type single', 'where the column is what the key is');

-- the other patterns find their rows in the same way
CREATE TABLE boxes (id place PRIMARY KEY, doc bson);
SELECT outlier_enable('boxes', 'list', 3), preallocated_enable('boxes', 'slots', preallocated_pool(2), store => 'slots') \gset
INSERT INTO boxes VALUES (ROW(1, 'x'), '{list: [1, 2]}');
SELECT is(outlier_push('boxes', ROW(1, 'x')::place, 3, 4, 5), 3::bigint, 'elements are added to a list');
SELECT is(concat(outlier_count('boxes', ROW(1, 'x')::place), preallocated_claim('boxes', ROW(1, 'x')::place, '{1}', 'me'), (SELECT pattern_whole(doc, 'boxes', id) -> 'list' FROM boxes)),
          '5t[1, 2, 3, 4, 5]', 'a slot is claimed, and the whole document is found');
SELECT is_empty($$SELECT * FROM pattern_check()$$, 'all of it is true');
SELECT * FROM finish();
DROP TABLE shelves, known, singles, boxes CASCADE;
DROP DOMAIN known_place;
DROP TYPE place, single;
