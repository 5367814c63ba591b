-- What patterns may cost: row versions and reads of what lies out of line.
BEGIN;
SET client_min_messages = warning;
SELECT plan(20);

CREATE FUNCTION writes(rel regclass, OUT inserted bigint, OUT updated bigint, OUT deleted bigint) LANGUAGE sql AS
  'SELECT pg_stat_get_xact_tuples_inserted(rel), pg_stat_get_xact_tuples_updated(rel), pg_stat_get_xact_tuples_deleted(rel)';
CREATE TEMP TABLE before (rel regclass, i bigint, u bigint, d bigint);
-- What was written to a table since the last call.
CREATE FUNCTION written(r regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE w record; b record;
BEGIN
  SELECT * INTO w FROM writes(r);
  SELECT coalesce(max(i), 0) AS i, coalesce(max(u), 0) AS u, coalesce(max(d), 0) AS d INTO b FROM before WHERE rel = r;
  DELETE FROM before WHERE rel = r;
  INSERT INTO before VALUES (r, w.inserted, w.updated, w.deleted);
  RETURN format('%s inserted, %s updated, %s deleted', w.inserted - b.i, w.updated - b.u, w.deleted - b.d);
END $$;
-- How often a table's toast table has been read.
CREATE FUNCTION toast_reads(r regclass) RETURNS bigint LANGUAGE sql AS
  'SELECT pg_stat_get_xact_numscans(i.indexrelid) FROM pg_class c JOIN pg_index i ON i.indrelid = c.reltoastrelid WHERE c.oid = r';

CREATE TABLE t (id int PRIMARY KEY, title text, doc bson);
ALTER TABLE t ALTER doc SET STORAGE EXTERNAL;
SELECT outlier_enable('t', 'x', 100, chunk => 50, keep => 10);
CREATE TABLE c (id int PRIMARY KEY, doc bson);
SELECT outlier_enable('c', 'x', 10, chunk => 5, count_field => 'n');

INSERT INTO t SELECT i, 'a', bson_build('x', bson_array(1, 2, 3), 'pad', repeat('p', 5000)) FROM generate_series(1, 1000) i;
SELECT is(written('t'), '1000 inserted, 0 updated, 0 deleted', 'typical documents are written once');
INSERT INTO c SELECT i, '{x: [1, 2, 3]}' FROM generate_series(1, 1000) i;
SELECT is(written('c'), '1000 inserted, 0 updated, 0 deleted', 'also with a count');
SELECT is((SELECT count(*) FROM c WHERE doc ->> 'n' = '3'), 1000::bigint, 'which they have');
-- PostgreSQL looks for a free number for each value that it writes
SELECT toast_reads('t') AS reads \gset
SELECT is(:reads, 1000, 'what was just written was not read');

UPDATE t SET title = 'b';
SELECT is(written('t'), '0 inserted, 1000 updated, 0 deleted', 'an update of another column writes rows once');
SELECT is(toast_reads('t'), :reads::bigint, 'and reads no document that lies out of line');
UPDATE t SET doc = doc;
SELECT is(toast_reads('t'), :reads::bigint, 'nor does one that writes the same document');
SELECT is(written('t'), '0 inserted, 1000 updated, 0 deleted', 'or writes it twice');

UPDATE t SET doc = bson_array_append(doc, 'x', 4) WHERE id <= 10;
SELECT is(written('t'), '0 inserted, 10 updated, 0 deleted', 'an array that stays typical costs one version');
UPDATE c SET doc = bson_array_append(doc, 'x', 4) WHERE id <= 10;
SELECT is(written('c'), '0 inserted, 10 updated, 0 deleted', 'also with a count');

INSERT INTO t SELECT 2000, 'a', bson_build('x', (SELECT bson_agg(i) FROM generate_series(1, 1000) i), 'pad', repeat('p', 5000));
SELECT is(written('t'), '1 inserted, 1 updated, 0 deleted', 'an outlier costs a second version');
SELECT is(written('t_x_extras'), '20 inserted, 0 updated, 0 deleted', 'and its chunks');

CREATE TEMP TABLE place AS SELECT ctid AS c, xmin AS x FROM t WHERE id = 2000;
SELECT outlier_push('t', 2000, i) FROM generate_series(1, 100) i;
SELECT is(written('t'), '0 inserted, 0 updated, 0 deleted', 'a push to it does not touch its row');
SELECT ok((SELECT t.ctid = p.c AND t.xmin = p.x FROM t, place p WHERE t.id = 2000), 'which is where it was');
SELECT matches(written('t_x_extras'), '^[23] inserted, \d+ updated, 0 deleted$', 'only the chunk at the end is written');
SELECT is((SELECT sum(n) FROM t_x_extras), 1090::bigint, 'to which all have gone');

INSERT INTO c VALUES (2000, (SELECT bson_build('x', bson_agg(i)) FROM generate_series(1, 100) i));
SELECT is(written('c'), '1 inserted, 1 updated, 0 deleted', 'with a count an outlier costs a second version too');
SELECT outlier_push('c', 2000, 1, 2, 3);
SELECT is(written('c'), '0 inserted, 1 updated, 0 deleted', 'and a push one');

-- a title of an outlier
SELECT written('t'), written('t_x_extras');
UPDATE t SET title = 'c' WHERE id = 2000;
SELECT is(written('t') || '; ' || written('t_x_extras'), '0 inserted, 1 updated, 0 deleted; 0 inserted, 0 updated, 0 deleted', 'an update of another column of an outlier costs its version');
UPDATE t SET doc = bson_set(doc, 'y', 1) WHERE id = 2000;
SELECT is(written('t') || '; ' || written('t_x_extras'), '0 inserted, 1 updated, 0 deleted; 0 inserted, 0 updated, 0 deleted', 'and so does one of another field');

SELECT * FROM finish();
ROLLBACK;
