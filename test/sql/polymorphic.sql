-- The polymorphic pattern: athletes of different sports in one collection, similar but not identical; and the single view of a
-- customer whom several systems know.
SET timezone = 'UTC';
\set SHOW_CONTEXT never
SELECT collection_create('athletes');

-- The field sport tells what kind of athlete a document is of. All of them have a name; what is of no declared kind is refused.
SELECT polymorphic_enable('athletes', by => 'sport', unknown => 'error',
                          common => '{required: ["athlete_name"], properties: {athlete_name: {bsonType: "string"}}}');
-- Each kind has its schema. A closed one refuses fields that belong to other kinds.
SELECT polymorphic_variant('athletes', 'ten_pin_bowling', closed => true,
                           schema => '{required: ["career_earnings"], properties: {career_earnings: {bsonType: "object"}, "300_games": {bsonType: "int"}, career_titles: {bsonType: "int"}}}');
SELECT polymorphic_variant('athletes', 'tennis', indexes => '{event.career_titles}',
                           schema => '{required: ["event"], properties: {event: {bsonType: "object", required: ["type"], properties: {type: {enum: ["singles", "doubles"]}, career_titles: {bsonType: "int"}}}}}');

INSERT INTO athletes (doc) VALUES
  ('{_id: 1, sport: "ten_pin_bowling", athlete_name: "Earl Anthony", career_earnings: {value: NumberDecimal("1441061"), currency: "USD"}, "300_games": 25, career_titles: 43}'),
  ('{_id: 2, sport: "tennis", athlete_name: "Martina Navratilova", career_earnings: {value: NumberDecimal("216226089"), currency: "USD"}, event: {type: "singles", career_tournaments: 390, career_titles: 167}}');

-- What is wrong is refused, and the error says which variant, which field and which rule.
INSERT INTO athletes (doc) VALUES ('{sport: "ten_pin_bowling", athlete_name: "X", career_earnings: {}, event: {}}');
INSERT INTO athletes (doc) VALUES ('{sport: "tennis", event: {type: "triples", career_titles: "many"}}');
INSERT INTO athletes (doc) VALUES ('{sport: "chess", athlete_name: "X"}');
UPDATE athletes SET doc = bson_unset(doc, 'athlete_name') WHERE _id = 1;
-- It can be asked before.
SELECT part, path, rule, expected, found FROM polymorphic_errors('athletes', '{sport: "tennis", event: {type: "triples"}}');

-- One query over all athletes; a view with typed columns for each kind; one with what they have in common.
SELECT doc ->> 'athlete_name' AS name FROM athletes ORDER BY doc -> 'career_earnings.value' DESC;
SELECT athlete_name, "300_games" + 1 AS one_more, career_titles FROM athletes_ten_pin_bowling;
SELECT athlete_name, "event.type", "event.career_titles" FROM athletes_tennis;
SELECT _id, sport, athlete_name FROM athletes_common ORDER BY _id;
SELECT attname, format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = 'athletes_tennis'::regclass AND attnum > 0 ORDER BY attnum;
-- The index that was asked for serves the view.
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT athlete_name FROM athletes_tennis WHERE "event.career_titles" > 100;
RESET enable_seqscan;

-- An athlete changes sports, and the document becomes what the other kind asks for.
SELECT polymorphic_retype('athletes', 1, 'tennis');
SELECT polymorphic_retype('athletes', 1, 'tennis', change_update => '{$set: {event: {type: "singles"}}, $unset: {"300_games": 1}}');
SELECT variant, documents, closed, view FROM polymorphic_variants('athletes');
-- A kind that has documents is not forgotten by accident; its schema can change, and what is there already is told.
SELECT pattern_disable('athletes', 'tennis');
SELECT pattern_alter('athletes', 'tennis', '{closed: true}');
SELECT key, what, expected, found FROM pattern_check('athletes');
SELECT pattern_alter('athletes', 'tennis', '{closed: false}');
CALL pattern_build('athletes', 'tennis');
SELECT pattern, name FROM pattern_list('athletes');
SELECT * FROM pattern_check('athletes');

-- Sub-documents of several kinds in one array: by leads into it, and schemas and views are about the elements.
SELECT collection_create('players');
SELECT polymorphic_enable('players', by => 'event.type');
SELECT polymorphic_variant('players', 'singles', schema => '{required: ["career_titles"], properties: {career_titles: {bsonType: "int"}}}'),
       polymorphic_variant('players', 'doubles', schema => '{required: ["career_titles", "partner"], properties: {career_titles: {bsonType: "int"}, partner: {bsonType: "array"}}}');
INSERT INTO players (doc) VALUES ('{_id: 1, name: "Martina Navratilova", event: [{type: "singles", career_titles: 167}, {type: "doubles", career_titles: 177, partner: ["Tomanova", "Evert"]}]}');
INSERT INTO players (doc) VALUES ('{name: "X", event: [{type: "singles", career_titles: 1}, {type: "doubles", career_titles: 1}]}');
SELECT _id, item_path, career_titles, partner FROM players_doubles;
SELECT polymorphic_retype('players', 1, 'singles', change_update => '{$unset: {partner: 1}}', item_path => 'event.1');
SELECT _id, item_path, type FROM players_common;

-- A collection that is there already: schemas are proposed from its documents, with the commands that declare them.
SELECT collection_create('media');
INSERT INTO media (doc) SELECT bson_build('_id', i, 'type', 'image', 'url', i || '.jpg', 'width', 100 + i, 'format', (ARRAY['jpg', 'png'])[i % 2 + 1]) FROM generate_series(1, 20) i;
INSERT INTO media (doc) VALUES ('{_id: 21, type: "video", url: "v.mp4", duration: 120, codec: "h264"}'), ('{_id: 22, type: "video", url: "w.mp4", duration: 12.5}');
SELECT variant, documents, schema FROM polymorphic_infer('media', 'type');
SELECT command FROM polymorphic_infer('media', 'type');
SELECT command FROM polymorphic_infer('media', 'type') \gexec
INSERT INTO media (doc) VALUES ('{_id: 23, type: "video", url: "x.mp4"}');
SELECT * FROM pattern_check('media');

-- The single view: what several systems know of one customer, in one document.
SELECT collection_create('crm'), collection_create('billing'), collection_create('support');
SELECT polymorphic_merge('customers_360', merge_on => 'customer_id', sources => '{crm,billing,support}', arrays => '{support}',
                         fields => '{billing: {balance: 1}, support: {subject: 1}}');
INSERT INTO crm (doc) VALUES ('{_id: 1, customer_id: 7, name: "Ada"}'), ('{_id: 2, customer_id: 8, name: "Bob"}');
INSERT INTO billing (doc) VALUES ('{customer_id: 7, balance: 10}');
INSERT INTO support (doc) VALUES ('{_id: 1, customer_id: 7, subject: "printer"}'), ('{_id: 2, customer_id: 9, subject: "paper"}'), ('{_id: 3, customer_id: 7, subject: "ink"}');
SELECT bson_unset(doc, '_id') AS doc FROM customers_360 ORDER BY doc -> 'customer_id';
UPDATE billing SET doc = bson_set(doc, 'balance', 12);
DELETE FROM support WHERE _id >= 2;
-- Other fields of the merged document are the user's own; those of sources are put right.
UPDATE customers_360 SET doc = bson_set(bson_set(doc, 'note', 'call back'), 'crm.name', 'Eve') WHERE doc -> 'customer_id' = 7;
SELECT bson_unset(doc, '_id') AS doc FROM customers_360 ORDER BY doc -> 'customer_id';
INSERT INTO crm (doc) VALUES ('{customer_id: 8, name: "Bob again"}');
DELETE FROM customers_360;
SELECT * FROM pattern_check('customers_360');
SELECT pattern_disable('customers_360', 'support');

SET client_min_messages = warning;
DROP TABLE athletes, players, media, crm, billing, support, customers_360 CASCADE;
