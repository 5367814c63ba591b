-- What a statement of many documents costs in a table with patterns (three patterns are outlier, versioning and reference), beside the same statement in a collection without any: CPU time
-- of the server, then bytes of WAL. The bare collection has no index but its key's, so those that a pattern makes are counted; further lines are beside a collection that has the same
-- index on the customer, a feed that a trigger in PL/pgSQL writes, or copies, revisions and whole former documents that triggers in PL/pgSQL write.
\echo
\echo 'many documents in a statement            bare ms    ours ms   ratio    bar'

CREATE TABLE loads_source AS
  SELECT bson_build('_id', i, 'customer', bson_build('_id', (i::bigint * 7919 % 1000)::int + 1), 'status', 'new', 'total', i % 500,
                    'items', (SELECT bson_agg(bson_build('sku', 'SKU-' || i * 3 + j, 'quantity', j, 'price', 19.99::float8)) FROM generate_series(1, 3) j),
                    'tags', ARRAY['a', 'b', 'c'], 'note', repeat('lorem ipsum ', 10)) AS doc
  FROM generate_series(1, 1000 * :scale) i;
SELECT collection_create(n) FROM unnest(ARRAY['loads_bare', 'loads_reference', 'loads_feed', 'loads_computed', 'loads_versioning', 'loads_outlier', 'loads_three',
                                              'loads_indexed', 'loads_hand', 'loads_hand_three', 'loads_customers', 'loads_totals']) n \g /dev/null
INSERT INTO loads_customers (doc) SELECT bson_build('_id', i, 'name', 'Customer ' || i, 'address', bson_build('street', 'Gade ' || i, 'city', 'Aarhus')) FROM generate_series(1, 1000) i;
INSERT INTO loads_totals (doc) SELECT bson_build('_id', i, 'title', 'Total ' || i) FROM generate_series(1, 1000) i;
VACUUM ANALYZE loads_source, loads_customers, loads_totals;
SELECT reference_enable('loads_reference', field => 'customer', source => 'loads_customers', live => '{name}', frozen => '{address}'),
       change_feed_enable('loads_feed', notify => false),
       computed_enable('loads_totals', source => 'loads_computed', on_field => 'customer._id', fields => '{orders: {$count: {}}, spent: {$sum: "$total"}, mean: {$avg: "$total"}}'),
       versioning_enable('loads_versioning'), outlier_enable('loads_outlier', field => 'items', threshold => 100),
       versioning_enable('loads_three'), outlier_enable('loads_three', field => 'items', threshold => 100),
       reference_enable('loads_three', field => 'customer', source => 'loads_customers', live => '{name}', frozen => '{address}') \g /dev/null
CREATE INDEX ON loads_indexed ((doc -> 'customer._id'));
CREATE TABLE loads_hand_feed (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), operation text NOT NULL, key bson_value NOT NULL, doc bson);
CREATE FUNCTION loads_hand_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO bench.loads_hand_feed (operation, key, doc) SELECT 'insert', _id, doc FROM changed;
  RETURN NULL;
END $$;
CREATE TRIGGER changed AFTER INSERT ON loads_hand REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION loads_hand_changed();
CREATE INDEX ON loads_hand_three ((doc -> 'customer._id'));
CREATE TABLE loads_hand_history (key bson_value, revision int, at timestamptz NOT NULL DEFAULT now(), doc bson NOT NULL, PRIMARY KEY (key, revision));
CREATE FUNCTION loads_hand_written() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' OR OLD.doc -> 'customer._id' IS DISTINCT FROM NEW.doc -> 'customer._id' THEN
    SELECT bson_set(bson_set(NEW.doc, 'customer.name', c.doc -> 'name'), 'customer.address', c.doc -> 'address') INTO STRICT NEW.doc
      FROM bench.loads_customers c WHERE c._id = NEW.doc -> 'customer._id' FOR KEY SHARE;
  END IF;
  IF TG_OP = 'UPDATE' THEN
    NEW.doc := bson_set(NEW.doc, 'revision', coalesce((OLD.doc -> 'revision')::int, 1) + 1);
  END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION loads_hand_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO bench.loads_hand_history (key, revision, doc) SELECT _id, coalesce((doc -> 'revision')::int, 1), doc FROM former;
  RETURN NULL;
END $$;
CREATE TRIGGER written BEFORE INSERT OR UPDATE ON loads_hand_three FOR EACH ROW EXECUTE FUNCTION loads_hand_written();
CREATE TRIGGER updated AFTER UPDATE ON loads_hand_three REFERENCING OLD TABLE AS former FOR EACH STATEMENT EXECUTE FUNCTION loads_hand_updated();

CREATE FUNCTION loads_clear() RETURNS void LANGUAGE plpgsql AS $$
DECLARE t text;
BEGIN
  TRUNCATE loads_computed; -- the totals follow
  SET LOCAL docpatterns.maintain = off;
  FOR t IN SELECT relname FROM pg_class WHERE relnamespace = 'bench'::regnamespace AND relkind = 'r' AND relname LIKE 'loads\_%' AND relname NOT IN ('loads_source', 'loads_customers', 'loads_totals') LOOP
    EXECUTE format('TRUNCATE %I', t);
  END LOOP;
  SET LOCAL docpatterns.maintain = on;
END $$;

-- A line for the time of a command, with the rounds' lowest and highest ratio, and one for its WAL. Each is a transaction of its own.
CREATE TEMP TABLE loads_lines (n int GENERATED ALWAYS AS IDENTITY, line text);
CREATE PROCEDURE loads_compare(name text, bar float8, base text, ours text, prepare text DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE
  started float8;
  lsn pg_lsn;
  command text;
  costs float8[];
  bytes float8[];
  b float8[];
  o float8[];
BEGIN
  IF name NOT LIKE replace(current_setting('bench.only'), '*', '%') THEN RETURN; END IF;
  FOR i IN 0 .. current_setting('bench.rounds')::int LOOP
    costs := NULL; bytes := NULL;
    PERFORM loads_clear();
    IF prepare IS NOT NULL THEN EXECUTE prepare; END IF;
    COMMIT;
    FOREACH command IN ARRAY ARRAY[base, ours] LOOP
      started := cpu();
      lsn := pg_current_wal_insert_lsn();
      EXECUTE command;
      COMMIT;
      bytes := bytes || (pg_current_wal_insert_lsn() - lsn)::float8;
      costs := costs || cpu() - started;
    END LOOP;
    -- the first round warms
    IF i > 0 THEN b := b || costs[1]; o := o || costs[2]; END IF;
  END LOOP;
  INSERT INTO loads_lines (line) SELECT line(name, (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM unnest(b) x), (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM unnest(o) x), bar,
                   (SELECT format('%s-%s', round(min(y / x)::numeric, 3), round(max(y / x)::numeric, 3)) FROM unnest(b, o) t (x, y)));
  INSERT INTO loads_lines (line) SELECT line(name || ', MB of WAL', bytes[1] / 1e6, bytes[2] / 1e6, 'infinity');
  COMMIT;
END $$;
SELECT format('CALL loads_compare(%L, %L, %L, %L)', 'load, ' || label, bar, 'INSERT INTO loads_bare (doc) SELECT doc FROM loads_source', format('INSERT INTO loads_%s (doc) SELECT doc FROM loads_source', stem))
FROM (VALUES ('with a reference', 'reference', 1.6), ('with a change feed', 'feed', 1.6), ('with computed totals', 'computed', 1.6), ('with versioning', 'versioning', 1.6),
             ('with outlier', 'outlier', 1.15), ('three patterns', 'three', 2.5)) v (label, stem, bar) \gexec
SELECT format('CALL loads_compare(%L, %L, %L, %L)', 'load, ' || label, bar, format('INSERT INTO loads_%s (doc) SELECT doc FROM loads_source', hand), format('INSERT INTO loads_%s (doc) SELECT doc FROM loads_source', stem))
FROM (VALUES ('a reference beside the same index', 'indexed', 'reference', 1.3), ('computed totals beside the same index', 'indexed', 'computed', 1.6), ('a change feed beside one by hand', 'hand', 'feed', 1), ('three patterns beside triggers by hand', 'hand_three', 'three', 1)) v (label, hand, stem, bar) \gexec
SELECT format('CALL loads_compare(%L, %L, %L, %L, %L)', 'update, ' || label, bar, $$UPDATE loads_bare SET doc = bson_set(doc, 'status', 'sent')$$, format($$UPDATE loads_%s SET doc = bson_set(doc, 'status', 'sent')$$, stem),
                     format('INSERT INTO loads_bare (doc) SELECT doc FROM loads_source; INSERT INTO loads_%s (doc) SELECT doc FROM loads_source', stem))
FROM (VALUES ('with a reference', 'reference', 'infinity'), ('with a change feed', 'feed', 'infinity'), ('with computed totals', 'computed', 'infinity'), ('with versioning', 'versioning', 'infinity'),
             ('three patterns', 'three', 2.5)) v (label, stem, bar) \gexec
SELECT format('CALL loads_compare(%L, %L, %L, %L, %L)', 'update, three patterns beside ' || label, bar, format($$UPDATE loads_%s SET doc = bson_set(doc, 'status', 'sent')$$, hand), $$UPDATE loads_three SET doc = bson_set(doc, 'status', 'sent')$$,
                     format('INSERT INTO loads_%s (doc) SELECT doc FROM loads_source; INSERT INTO loads_three (doc) SELECT doc FROM loads_source', hand))
FROM (VALUES ('the same index', 'indexed', 'infinity'), ('triggers by hand', 'hand_three', '1.1')) v (label, hand, bar) \gexec
-- Statements of one row each: what else a client waits for (the network, parsing, the flush of the log) is not measured.
SELECT format('CALL loads_compare(%L, %L, %L, %L, %L)', 'one by one, ' || label, 'infinity',
                     $$DO 'BEGIN FOR i IN 1 .. 2000 LOOP INSERT INTO bench.loads_bare (doc) VALUES (bson_build($a$_id$a$, 9000000 + i, $a$customer$a$, bson_build($a$_id$a$, i * 7 % 1000 + 1), $a$total$a$, 5)); END LOOP; END'$$,
                     format($$DO 'BEGIN FOR i IN 1 .. 2000 LOOP INSERT INTO bench.loads_%s (doc) VALUES (bson_build($a$_id$a$, 9000000 + i, $a$customer$a$, bson_build($a$_id$a$, i * 7 %% 1000 + 1), $a$total$a$, 5)); END LOOP; END'$$, stem),
                     format('INSERT INTO loads_bare (doc) SELECT doc FROM loads_source; INSERT INTO loads_%s (doc) SELECT doc FROM loads_source', stem))
FROM (VALUES ('with a reference', 'reference'), ('with a change feed', 'feed'), ('with computed totals', 'computed'), ('with versioning', 'versioning')) v (label, stem) \gexec
SELECT line FROM loads_lines ORDER BY n;
SELECT format('violations: %s', (SELECT count(*) FROM unnest(ARRAY['loads_reference', 'loads_feed', 'loads_totals', 'loads_versioning', 'loads_three']) t, pattern_check(t::regclass)));
