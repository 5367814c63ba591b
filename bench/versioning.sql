-- What history costs: updates of many documents beside plain ones and beside the trigger that a person would write, and the size
-- of a history beside whole copies. versioning.sh measures single updates, and reads of the past.
\echo
\echo 'document versioning                      base ms    ours ms   ratio    bar'

SELECT collection_create('v_plain'), collection_create('v_ours'), collection_create('v_hand') \g /dev/null
SELECT versioning_enable('v_ours') \g /dev/null
CREATE TABLE v_hand_history (key bson_value, revision int, since timestamptz, until timestamptz, who name, doc bson, PRIMARY KEY (key, revision));
CREATE FUNCTION v_hand() RETURNS trigger LANGUAGE plpgsql SET search_path = bench, public AS $$
DECLARE
  r int := coalesce((OLD.doc ->> 'revision')::int, 1);
BEGIN
  IF NEW.doc = OLD.doc THEN
    RETURN NEW;
  ELSIF (NEW.doc ->> 'revision')::int <> r THEN
    RAISE EXCEPTION 'the document has been changed' USING ERRCODE = '40001';
  END IF;
  NEW.doc := bson_set(NEW.doc, 'revision', r + 1);
  UPDATE v_hand_history h SET until = clock_timestamp() WHERE h.key = OLD._id AND h.revision = r;
  INSERT INTO v_hand_history VALUES (OLD._id, r + 1, clock_timestamp(), NULL, current_user, NEW.doc);
  RETURN NEW;
END $$;
CREATE TRIGGER v_hand BEFORE UPDATE ON v_hand FOR EACH ROW EXECUTE FUNCTION v_hand();
-- policies of 4 KB
CREATE TABLE v_source AS
  SELECT bson_build('_id', i, 'holder', 'Ada Lovelace ' || i, 'cover', 1000, 'from', timestamptz '2026-01-01',
                    'riders', (SELECT bson_agg(bson_build('name', md5(i || 'r' || j), 'premium', j * 1.5::float8, 'text', md5(j || 'x' || i))) FROM generate_series(1, 20) j),
                    'terms', (SELECT string_agg(md5(i || 't' || j), '') FROM generate_series(1, 54) j)) AS doc
  FROM generate_series(1, 20 * current_setting('bench.scale')::int) i;
INSERT INTO v_plain (doc) SELECT doc FROM v_source;
INSERT INTO v_ours (doc) SELECT doc FROM v_source;
INSERT INTO v_hand (doc) SELECT doc FROM v_source;
INSERT INTO v_hand_history SELECT _id, 1, clock_timestamp(), NULL, current_user, doc FROM v_hand;
VACUUM ANALYZE v_plain, v_ours, v_hand, v_hand_history, v_ours_revisions, v_ours_changes;
CREATE SEQUENCE v_numbers;
SELECT compare('update of 1,000 documents of 4 KB', 1.667, $$UPDATE v_plain SET doc = bson_set(doc, 'cover', nextval('v_numbers')) WHERE _id <= 1000$$,
  $$UPDATE v_ours SET doc = bson_set(doc, 'cover', nextval('v_numbers')) WHERE _id <= 1000$$);
VACUUM v_plain, v_ours, v_hand, v_hand_history;
SELECT compare('the same, beside a trigger in PL/pgSQL', 0.7, $$UPDATE v_hand SET doc = bson_set(doc, 'cover', nextval('v_numbers')) WHERE _id <= 1000$$,
  $$UPDATE v_ours SET doc = bson_set(doc, 'cover', nextval('v_numbers')) WHERE _id <= 1000$$);
DROP TABLE v_plain, v_hand, v_hand_history;
DROP TABLE v_ours CASCADE;

-- the size of a hundred revisions, each in a transaction of its own
SELECT collection_create('v_delta'), collection_create('v_full') \g /dev/null
SELECT versioning_enable('v_delta'), versioning_enable('v_full', storage => 'full') \g /dev/null
INSERT INTO v_delta (doc) SELECT doc FROM v_source LIMIT 100;
INSERT INTO v_full (doc) SELECT doc FROM v_source LIMIT 100;
DO $$
BEGIN
  FOR i IN 2 .. 100 LOOP
    FOR k IN 1 .. 100 LOOP
      UPDATE v_delta SET doc = bson_set(doc, 'cover', i * k) WHERE _id = k;
      COMMIT;
      UPDATE v_full SET doc = bson_set(doc, 'cover', i * k) WHERE _id = k;
      COMMIT;
    END LOOP;
  END LOOP;
END $$;
SELECT line('KB of 100 revisions, beside whole copies', f / 1024.0 / 100, d / 1024.0 / 100, 0.1)
FROM (SELECT pg_total_relation_size('v_full_revisions') + pg_total_relation_size('v_full_changes') AS f,
             pg_total_relation_size('v_delta_revisions') + pg_total_relation_size('v_delta_changes') AS d) s
WHERE 'size' LIKE replace(current_setting('bench.only'), '*', '%') OR current_setting('bench.only') = '*';
DROP TABLE v_delta, v_full CASCADE;

DROP TABLE v_source;
