-- Keys whose columns have a collation of their own: what patterns generate repeats the type of a column where only a name fits.
\set QUIET 1
SET client_min_messages = warning;
SELECT plan(6);
CREATE SCHEMA kc;
SET search_path = kc, public;
CREATE TABLE one (k text COLLATE "C" PRIMARY KEY, doc bson);
CREATE TABLE two (k text COLLATE "C", v varchar(9) COLLATE "POSIX", doc bson, PRIMARY KEY (k, v));
CREATE TABLE more (k text COLLATE "C" PRIMARY KEY, doc bson);
CREATE FUNCTION declare_all(rel text, named boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM versioning_enable(rel), change_feed_enable(rel, notify => false), outlier_enable(rel, 'list', 2, keep => 1),
    subset_fields_enable(rel, cold => '{cold}', name => 'cold'), preallocated_enable(rel, 'seats', preallocated_pool(2), store => 'slots'),
    attribute_enable(rel, into_field => 'specs', prefix => 'spec_'), approximation_enable(rel, 'views', slots => 2),
    rollup_enable(rel, name => rel || '_by_day', fields => '{n: {$count: {}}}', time_field => 'at', levels => '{day}'),
    schema_versioning_enable(rel, current => 1), polymorphic_enable(rel, by => 'kind', unknown => 'accept'),
    query_table_create(rel || '_by_g', source => rel, partition => '{g}', fields => '{h: 1}'), payload_enable(rel, 'letter', '{sender: "regex:from (\\w+)"}');
  IF named THEN
    PERFORM computed_enable(rel, 'more', 'of', '{total: {$sum: "$x"}}'), reference_enable(rel, 'maker', 'more', live => '{name}'),
      subset_enable(rel, field => 'last', source => 'more', on_field => 'of', order_by => '{x: -1}', keep => 1, fields => '{x: 1}');
  END IF;
END $$;
SELECT lives_ok($$SELECT declare_all('one', true)$$, 'patterns of a table with such a key');
SELECT lives_ok($$SELECT declare_all('two', false)$$, 'or with two');
INSERT INTO more VALUES ('m', '{name: "ann", of: "a", x: 5}');
INSERT INTO one VALUES ('a', '{list: [1, 2, 3], cold: 1, maker: "m", g: 1, at: ISODate("2024-01-01T10:00:00Z")}');
INSERT INTO two VALUES ('a', 'b', '{list: [1, 2, 3], cold: 1, g: 1, at: ISODate("2024-01-01T10:00:00Z")}');
UPDATE one SET doc = bson_set(doc, 'n', 1);
UPDATE two SET doc = bson_set(doc, 'n', 1);
SELECT is(doc ->> 'total' || (doc ->> 'maker.name') || (doc ->> 'last.0.x') || bson_array_length(pattern_whole(doc, 'one', k), 'list'), '5ann53', 'it is kept') FROM one;
SELECT ok(bool_and(d.doc ? 'list'), 'and has a history') FROM (SELECT doc FROM versioning_as_of('one', 'infinity') UNION ALL SELECT doc FROM versioning_as_of('two', 'infinity')) d;
-- a relation of buckets with such a column, and one column more
SELECT bucket_create('measured', columns => 'sensor text COLLATE "C", at timestamptz, v float8', time_field => 'at', group_by => '{sensor}') \g /dev/null
SELECT lives_ok($$SELECT bucket_add_column('measured', 'note', 'text')$$, 'measurements');
SELECT is_empty('SELECT * FROM pattern_check()', 'all of it is true');
\o /dev/null
DROP SCHEMA kc CASCADE;
\o
SELECT * FROM finish();
