-- Computed fields beside incrementally maintained views of pg_ivm: counts and sums of the rows of a group, kept true by every
-- statement. There the source is a plain table and the totals are a table; here both are collections.
-- psql variable scale: a percentage of 1,000,000 rows; there are 1,000 groups.
CREATE EXTENSION IF NOT EXISTS pg_ivm;
\set rows 10000*:scale
CREATE TABLE sales (id bigint PRIMARY KEY, grp int, amount int);
CREATE INDEX ON sales (grp);
INSERT INTO sales SELECT i, i * 7919::bigint % 1000, i % 1009 FROM generate_series(1, :rows) i;
SELECT collection_create('sold'), collection_create('totals') \g /dev/null
SELECT computed_enable('totals', 'sold', 'grp', '{n: {$count: {}}, total: {$sum: "$amount"}}', create_missing => true) \g /dev/null
SELECT set_config('docpatterns.maintain', 'off', false) \g /dev/null
INSERT INTO sold (doc) SELECT bson_build('_id', id, 'grp', grp, 'amount', amount) FROM sales;
SELECT set_config('docpatterns.maintain', 'on', false) \g /dev/null
CALL pattern_build('totals');
SELECT pgivm.create_immv('per_group', 'SELECT grp, count(*) AS n, sum(amount) AS total FROM bench.sales GROUP BY grp') \g /dev/null
VACUUM ANALYZE;
CREATE SEQUENCE ids START 10000000;
CREATE OR REPLACE FUNCTION rows_in(n int, kind text) RETURNS text LANGUAGE sql AS $$
  SELECT CASE kind WHEN 'ivm' THEN format('INSERT INTO sales SELECT nextval(''ids''), i * 31 %% 1000, i FROM generate_series(1, %s) i', n)
    ELSE format('INSERT INTO sold (doc) SELECT bson_build(''_id'', nextval(''ids''), ''grp'', i * 31 %% 1000, ''amount'', i) FROM generate_series(1, %s) i', n) END $$;
\echo
\echo 'totals of groups                           pg_ivm ms        ms   ratio    bar'
SELECT compare('insert of a row', 1, rows_in(1, 'ivm'), rows_in(1, 'computed'));
SELECT compare('insert of 100 rows', 1, rows_in(100, 'ivm'), rows_in(100, 'computed'));
SELECT compare('insert of 10,000 rows', 1, rows_in(10000, 'ivm'), rows_in(10000, 'computed'));
SELECT compare('update of 100 rows', 1, 'UPDATE sales SET amount = amount + 1 WHERE id BETWEEN 1000 AND 1099',
  'UPDATE sold SET doc = bson_update(doc, ''{"$inc": {amount: 1}}'') WHERE _id >= 1000 AND _id <= 1099');
SELECT format('wrong here: %s', count(*)) FROM pattern_check('totals');
DROP TABLE sold, totals CASCADE;
DROP TABLE per_group;
DROP TABLE sales;
