-- What the polymorphic pattern costs: writes with a schema of twenty rules beside the same table without, and what its view costs.
\echo
\echo 'polymorphic pattern                      base ms    ours ms   ratio    bar'

CREATE TABLE athletes_source AS
  SELECT bson_build('_id', i, 'sport', (ARRAY['tennis', 'bowling', 'golf'])[1 + i % 3], 'athlete_name', 'Athlete number ' || i, 'country', (ARRAY['DK', 'US', 'CZ'])[1 + i % 3],
                    'born', timestamptz '1980-01-01' + i * interval '1 hour', 'active', i % 2 = 0, 'rank', i % 100 + 1,
                    'career_earnings', bson_build('value', 1000000 + i, 'currency', 'USD'), 'career_titles', i % 200, 'career_tournaments', i % 500,
                    'club', 'A club of the city', 'coach', 'Coach ' || i % 50, 'hand', 'right', 'height', 180.5::float8, 'weight', 75.25::float8) AS doc
  FROM generate_series(1, (SELECT 200 * current_setting('bench.scale')::int)) i;
SELECT collection_create('athletes_plain'), collection_create('athletes'), collection_create('athletes_closed'), collection_create('athletes_check') \g /dev/null

CREATE SEQUENCE athlete_ranks; CREATE SEQUENCE athlete_ids START 1000000;
-- twenty rules: seven required fields, thirteen rules of properties
CREATE FUNCTION bench.rules() RETURNS bson LANGUAGE sql IMMUTABLE AS $$ SELECT '{required: ["athlete_name", "country", "career_earnings", "career_titles", "rank", "born", "active"],
  properties: {athlete_name: {bsonType: "string", maxLength: 100}, country: {enum: ["DK", "US", "CZ"]}, rank: {bsonType: "int", minimum: 1}, born: {bsonType: "date"}, active: {bsonType: "bool"},
               career_earnings: {bsonType: "object", required: ["value"]}, career_titles: {bsonType: "int"}, hand: {bsonType: "string"}, height: {bsonType: "double"}}}'::bson $$;
SELECT count(*) FROM (SELECT polymorphic_enable(t::regclass, by => 'sport') FROM unnest(ARRAY['athletes', 'athletes_closed']) t) q \g /dev/null
SELECT polymorphic_variant(t::regclass, s, schema => bench.rules(), closed => t = 'athletes_closed')
  FROM unnest(ARRAY['athletes', 'athletes_closed']) t, unnest(ARRAY['tennis', 'bowling', 'golf']) s \g /dev/null
-- what others have, so that closed has something to refuse
SELECT polymorphic_variant('athletes_closed', 'diving', schema => '{properties: {dives: {}, pool: {}, tower: {bsonType: "int"}, career_earnings: {properties: {prize: {}}}}}') \g /dev/null
ALTER TABLE athletes_check ADD CHECK (bson_validate(doc, bench.rules()));

-- a table that was truncated is new to the session: a first row beforehand, so that its declarations are read
CREATE FUNCTION bench.anew(VARIADIC rels regclass[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE r regclass;
BEGIN
  FOREACH r IN ARRAY rels LOOP EXECUTE format('TRUNCATE %s; INSERT INTO %1$s (doc) SELECT bson_set(doc, ''_id'', 0) FROM athletes_source LIMIT 1', r); END LOOP;
END $$;
SELECT compare('insert with 20 rules', 1.15, 'INSERT INTO athletes_plain (doc) SELECT doc FROM athletes_source', 'INSERT INTO athletes (doc) SELECT doc FROM athletes_source', $$SELECT anew('athletes_plain', 'athletes')$$);
SELECT compare('the same, closed', 'infinity', 'INSERT INTO athletes_plain (doc) SELECT doc FROM athletes_source', 'INSERT INTO athletes_closed (doc) SELECT doc FROM athletes_source', $$SELECT anew('athletes_plain', 'athletes_closed')$$);
SELECT compare('the same beside a CHECK', 'infinity', 'INSERT INTO athletes_check (doc) SELECT doc FROM athletes_source', 'INSERT INTO athletes (doc) SELECT doc FROM athletes_source', $$SELECT anew('athletes_check', 'athletes')$$);
SELECT compare('insert of one row, a statement each', 1.15, $$INSERT INTO athletes_plain (doc) SELECT bson_set(doc, '_id', nextval('athlete_ids')) FROM athletes_source WHERE ctid = '(0,1)'$$,
  $$INSERT INTO athletes (doc) SELECT bson_set(doc, '_id', nextval('athlete_ids')) FROM athletes_source WHERE ctid = '(0,1)'$$);
TRUNCATE athletes_plain, athletes;
INSERT INTO athletes_plain (doc) SELECT doc FROM athletes_source;
INSERT INTO athletes (doc) SELECT doc FROM athletes_source;
VACUUM ANALYZE athletes_plain, athletes;
SELECT compare('update of 1,000', 'infinity', $$UPDATE athletes_plain SET doc = bson_set(doc, 'rank', (nextval('athlete_ranks') % 99 + 1)::int) WHERE _id <= 1000$$,
  $$UPDATE athletes SET doc = bson_set(doc, 'rank', (nextval('athlete_ranks') % 99 + 1)::int) WHERE _id <= 1000$$);
VACUUM athletes_plain, athletes;
SELECT compare('sum of a typed column of a variant', 'infinity', $$SELECT sum((doc -> 'career_titles')::int) FROM athletes WHERE doc -> 'sport' = '"tennis"'$$, 'SELECT sum(career_titles) FROM athletes_tennis');
SELECT compare('check of all documents', 'infinity', 'SELECT count(*) FROM athletes WHERE NOT bson_validate(doc, bench.rules())', $$SELECT count(*) FROM pattern_check('athletes', 'sport')$$);

-- the single view beside writes to a table that nothing is derived from
CREATE SEQUENCE crm_ids; CREATE SEQUENCE alone_ids;
SELECT collection_create('crm'), collection_create('billing'), collection_create('alone') \g /dev/null
SELECT polymorphic_merge('merged', merge_on => 'c', sources => '{crm,billing}') \g /dev/null
SELECT compare('1,000 new keys of a single view', 'infinity', $$INSERT INTO alone (doc) SELECT bson_build('_id', n, 'c', n, 'name', 'Customer ' || n) FROM (SELECT nextval('alone_ids') AS n FROM generate_series(1, 1000)) i$$,
  $$INSERT INTO crm (doc) SELECT bson_build('_id', n, 'c', n, 'name', 'Customer ' || n) FROM (SELECT nextval('crm_ids') AS n FROM generate_series(1, 1000)) i$$);
CREATE SEQUENCE crm_turns MINVALUE 0; CREATE SEQUENCE alone_turns MINVALUE 0;
SELECT compare('100 customers change their names', 'infinity', $$UPDATE alone SET doc = bson_set(doc, 'name', 'Name') FROM (SELECT nextval('alone_turns') % 100 * 100 AS n) t WHERE _id > t.n AND _id <= t.n + 100$$,
  $$UPDATE crm SET doc = bson_set(doc, 'name', 'Name') FROM (SELECT nextval('crm_turns') % 100 * 100 AS n) t WHERE _id > t.n AND _id <= t.n + 100$$);
