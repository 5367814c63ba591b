-- Schema versioning: reading through a step beside reading as stored, and a migration beside one UPDATE of jsonb with the same
-- change, on the same documents. All costs are CPU time of the backend, milliseconds for all documents.
SELECT 100000 * :scale / 100 AS n, 1000000 * :scale / 100 AS m \gset
DROP TABLE IF EXISTS bench.sv_stored, bench.sv_json, bench.sv_bson, bench.sv_collection CASCADE;
CREATE FUNCTION bench.sv_person(n int) RETURNS bson LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
  bson_build('_id', n, 'name', 'Person number ' || n, 'phone', '503-555-' || lpad((n % 10000)::text, 4, '0'), 'home', '503-556-' || lpad((n % 10000)::text, 4, '0'), 'email', 'person' || n || '@example.org',
             'address', bson_build('street', n % 300 || ' Main Street', 'city', 'Portland', 'zip', '97' || lpad((n % 1000)::text, 3, '0'), 'state', 'Oregon'),
             'tags', ARRAY['one', 'two', 'three'], 'created', '2025-01-01 00:00:00+00'::timestamptz + n * interval '1 minute', 'score', n * 0.5, 'active', n % 3 = 0);
CREATE TABLE bench.sv_stored (id int PRIMARY KEY, doc bson NOT NULL);
INSERT INTO bench.sv_stored SELECT n, bench.sv_person(n) FROM generate_series(1, :n) n;
SELECT schema_versioning_enable('bench.sv_stored', current => 2, write => 'accept'),
       schema_versioning_step('bench.sv_stored', 1, 2, up_update => '{$rename: {phone: "mobile"}}', down_update => '{$rename: {mobile: "phone"}}'),
       schema_versioning_step('bench.sv_stored', 2, 3, up_update => '[{$set: {contact: {mobile: "$mobile", home: "$home"}}}, {$unset: ["mobile", "home"]}]', down_update => '[{$set: {mobile: "$contact.mobile", home: "$contact.home"}}, {$unset: "contact"}]') \g /dev/null
VACUUM ANALYZE bench.sv_stored;

\echo
\echo 'schema versioning, reading: CPU time, ms                 stored      ours   ratio    bar'
SELECT compare('versions: documents as text', 1.5, $$COPY (SELECT doc FROM sv_stored) TO '/dev/null'$$, $$COPY (SELECT doc FROM sv_stored_v2) TO '/dev/null'$$);
SELECT compare('versions: documents in binary', 'infinity', $$COPY (SELECT doc FROM sv_stored) TO '/dev/null' BINARY$$, $$COPY (SELECT doc FROM sv_stored_v2) TO '/dev/null' BINARY$$);
SELECT compare('versions: documents that need no step', 1.2, $$COPY (SELECT doc FROM sv_stored) TO '/dev/null'$$, $$COPY (SELECT doc FROM sv_stored_v1) TO '/dev/null'$$);
SELECT compare('versions: two steps, stages among them', 'infinity', $$COPY (SELECT doc FROM sv_stored) TO '/dev/null'$$, $$COPY (SELECT doc FROM sv_stored_v3) TO '/dev/null'$$);
SELECT compare('versions: one field', 'infinity', $$SELECT count(doc ->> 'email') FROM sv_stored$$, $$SELECT count(doc ->> 'email') FROM sv_stored_v2$$);

-- A migration can be run once, so each round has tables of its own.
CREATE TEMP TABLE sv_lines (line text);
CREATE OR REPLACE PROCEDURE bench.sv_migrate(m int) LANGUAGE plpgsql AS $$
DECLARE
  base float8[];
  ours float8[];
  collection float8[];
  started float8;
  spread text;
BEGIN
  IF 'versions: migration' NOT LIKE replace(current_setting('bench.only'), '*', '%') THEN RETURN; END IF;
  FOR i IN 1 .. least(3, current_setting('bench.rounds')::int) LOOP
    DROP TABLE IF EXISTS bench.sv_json, bench.sv_bson, bench.sv_collection CASCADE;
    CREATE TABLE bench.sv_json (id int PRIMARY KEY, doc jsonb NOT NULL);
    CREATE TABLE bench.sv_bson (id int PRIMARY KEY, doc bson NOT NULL);
    PERFORM public.collection_create('bench.sv_collection');
    INSERT INTO bench.sv_bson SELECT n, bench.sv_person(n) FROM generate_series(1, m) n;
    INSERT INTO bench.sv_json SELECT id, doc::jsonb FROM bench.sv_bson;
    INSERT INTO bench.sv_collection (doc) SELECT doc FROM bench.sv_bson;
    PERFORM public.schema_versioning_enable('bench.sv_bson', current => 2), public.schema_versioning_step('bench.sv_bson', 1, 2, up_update => '{$rename: {phone: "mobile"}}', down_update => '{$rename: {mobile: "phone"}}');
    PERFORM public.schema_versioning_enable('bench.sv_collection', current => 2), public.schema_versioning_step('bench.sv_collection', 1, 2, up_update => '{$rename: {phone: "mobile"}}', down_update => '{$rename: {mobile: "phone"}}');
    COMMIT;
    ANALYZE bench.sv_json;
    ANALYZE bench.sv_bson;
    ANALYZE bench.sv_collection;
    COMMIT;
    started := bench.cpu();
    UPDATE bench.sv_json SET doc = (doc - 'phone') || jsonb_build_object('mobile', doc -> 'phone', 'schema_version', 2);
    COMMIT;
    base := base || bench.cpu() - started;
    started := bench.cpu();
    CALL public.schema_versioning_migrate('bench.sv_bson');
    ours := ours || bench.cpu() - started;
    started := bench.cpu();
    CALL public.schema_versioning_migrate('bench.sv_collection');
    collection := collection || bench.cpu() - started;
    IF (SELECT count(*) FROM bench.sv_bson WHERE doc OPERATOR(public.->>) 'schema_version' = '2' AND public.bson_exists(doc, 'mobile')) <> m THEN
      RAISE EXCEPTION 'the migration is not complete';
    END IF;
  END LOOP;
  SELECT format('%s-%s', round(min(o / b)::numeric, 3), round(max(o / b)::numeric, 3)) INTO spread FROM unnest(base, ours) t (b, o);
  INSERT INTO sv_lines SELECT bench.line('versions: migration in batches of 1000', (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY b) FROM unnest(base) b), (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY b) FROM unnest(ours) b), 0.7, spread);
  SELECT format('%s-%s', round(min(o / b)::numeric, 3), round(max(o / b)::numeric, 3)) INTO spread FROM unnest(base, collection) t (b, o);
  INSERT INTO sv_lines SELECT bench.line('versions: migration of a collection', (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY b) FROM unnest(base) b), (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY b) FROM unnest(collection) b), 0.7, spread);
END $$;
\echo
\echo 'schema versioning, migration: CPU time, ms                jsonb      ours   ratio    bar'
CALL bench.sv_migrate(:m);
SELECT line FROM sv_lines;
DROP TABLE IF EXISTS bench.sv_stored, bench.sv_json, bench.sv_bson, bench.sv_collection CASCADE;
DROP PROCEDURE bench.sv_migrate(int);
DROP FUNCTION bench.sv_person(int);
