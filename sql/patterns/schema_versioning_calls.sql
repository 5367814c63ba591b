-- The schema versioning pattern: migration and its progress, upgrade when accessed, the test of
-- steps.

-- Migration ---------------------------------------------------------------------------------------

-- Progress of migrations, one row for each declaration. Only informative: a migration continues
-- according to the documents.
CREATE TABLE docpatterns.schema_versioning_runs (
  rel regclass, name text, target int NOT NULL, state text NOT NULL, documents bigint NOT NULL,
  passed_over bigint NOT NULL, part float8 NOT NULL,
  started timestamptz NOT NULL, updated timestamptz NOT NULL, key @extschema@.bson_value,
    message text, PRIMARY KEY (rel, name)) WITH (fillfactor = 50);
COMMENT ON TABLE docpatterns.schema_versioning_runs IS
  'migrations between versions of schemas, shown by schema_versioning_progress';

CREATE VIEW schema_versioning_progress WITH (security_barrier = true) AS
  SELECT r.rel, r.name, r.target, r.state, r.documents, r.passed_over, r.part, r.started, r.updated,
    r.key, r.message
  FROM docpatterns.schema_versioning_runs AS r
    JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) r.rel
  WHERE pg_catalog.pg_has_role(c.relowner, 'USAGE');
COMMENT ON VIEW schema_versioning_progress IS
  'the last migration of each declaration of a table that the user owns: state is running, done or '
  'stopped (at the document of key, for the reason in message), documents how many were brought to '
  'the target, passed_over how many were being written by others and had to wait for a later turn, '
  'part (0 to 1) how much of the table was processed. A migration that was interrupted stays '
  'running with the time of its last batch in updated';
GRANT SELECT ON schema_versioning_progress TO PUBLIC;

CREATE FUNCTION docpatterns._schema_versioning_note(rel regclass, name text, target int, state text,
  documents bigint, passed_over bigint, part float8, key bson_value, message text) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_schema_versioning_note' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION docpatterns._schema_versioning_note(regclass, text, int, text, bigint, bigint,
  float8, bson_value, text) IS
  'what schema_versioning_progress shows of a migration; error 42501 unless the caller owns the '
  'table';

CREATE FUNCTION docpatterns._schema_versioning_batch(
  rel regclass, leaf regclass, name text, target int, filter bson, since bigint, until bigint,
  take bigint, wait boolean,
  OUT place bigint, OUT done bigint, OUT passed_over bigint, OUT ended boolean, OUT key bson_value,
    OUT code text, OUT message text, OUT detail text, OUT hint text) RETURNS record
  AS 'MODULE_PATHNAME', 'dp_schema_versioning_batch' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION docpatterns._schema_versioning_batch(regclass, regclass, text, int, bson,
  bigint, bigint, bigint, boolean) IS
  'brings some documents of a table or partition to a version, beginning at a place; code, '
  'message, detail and hint are those of the document of key that could not be; error 42501 unless '
  'the caller owns the table';

-- The tables of a migration, and their sizes.
CREATE FUNCTION docpatterns._schema_versioning_leaves(rel regclass, OUT leaf regclass,
  OUT blocks bigint) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT p.relid, pg_relation_size(p.relid) / current_setting('block_size')::bigint
  FROM (SELECT t.relid FROM pg_partition_tree($1) t WHERE t.isleaf UNION SELECT $1) AS p (relid)
    JOIN pg_class c ON c.oid = p.relid
  WHERE c.relkind = 'r' ORDER BY p.relid
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_leaves(regclass) IS
  'the table, or its partitions, and their sizes in blocks';

CREATE PROCEDURE schema_versioning_migrate(rel regclass, batch int DEFAULT 1000,
  pause interval DEFAULT '0', filter bson DEFAULT NULL, target int DEFAULT NULL,
  name text DEFAULT NULL)
LANGUAGE docpatterns AS $$
DECLARE
  p pg_catalog.record;
  l pg_catalog.record;
  b pg_catalog.record;
  wanted int;
  field_type pg_catalog.text;
  documents bigint := 0;
  passed_over bigint := 0;
  blocks bigint;
  behind bigint;
  again bigint;
  written bigint;
  since bigint;
  is_wait boolean := batch IS NULL;
  pass int := 0;
  failures int := 0;
BEGIN
  PERFORM docpatterns._pattern_require_owner(rel);
  SELECT q.* INTO p FROM docpatterns._schema_versioning_parts(rel,
      docpatterns._schema_versioning_name(rel, name)) q;
  name := @extschema@.bson_get_text(p.options, 'name');
  wanted := coalesce(target, p.current);
  IF NOT wanted OPERATOR(pg_catalog.=) ANY (p.versions)
      OR wanted OPERATOR(pg_catalog.>) p.current THEN
    RAISE EXCEPTION 'cannot migrate documents in table "%" to version %',
        docpatterns._relname(rel), wanted
      USING ERRCODE = 'invalid_parameter_value',
        DETAIL = pg_catalog.format('Known versions are %s; the current one is %s.',
          pg_catalog.array_to_string(p.versions, ', '), p.current);
  END IF;
  IF batch OPERATOR(pg_catalog.<) 1 THEN
    RAISE EXCEPTION 'batch must be positive' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF pause IS NULL OR pause OPERATOR(pg_catalog.<) '0'::pg_catalog.interval THEN
    RAISE EXCEPTION 'pause must not be null or negative' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM docpatterns._pattern_allow_triggers(rel);
  IF NOT @extschema@.bson_exists(p.options, 'type') THEN
    field_type := docpatterns._schema_versioning_type(rel, p.doc, p.field);
    IF field_type IS NOT NULL THEN
      PERFORM @extschema@.pattern_alter(rel, name, @extschema@.bson_build('type', field_type));
    END IF;
  END IF;
  IF docpatterns._pattern_is_distributed(rel) THEN
    FOR l IN SELECT s.* FROM docpatterns._pattern_shards(rel) AS s LOOP
      PERFORM docpatterns._shard_lock_all(rel);
      EXECUTE docpatterns._shard_query(rel, l.condition, pg_catalog.format(
          'docpatterns._schema_versioning_migrate_all(s.rel, %L, %L, %L)', filter, wanted, name));
      IF batch IS NOT NULL THEN
        COMMIT;
      END IF;
    END LOOP;
    RETURN;
  END IF;
  PERFORM docpatterns._schema_versioning_note(rel, name, wanted, 'running', 0, 0, 0, NULL, NULL);
  IF batch IS NOT NULL THEN
    COMMIT;
  END IF;

  -- rows that others were writing are left for the next pass, which also finds rows written behind
  -- this one; the last pass waits
  LOOP
    pass := pass OPERATOR(pg_catalog.+) 1;
    again := 0;
    written := 0;
    behind := 0;
    SELECT pg_catalog.sum(v.blocks) INTO blocks FROM docpatterns._schema_versioning_leaves(rel) v;
    FOR l IN SELECT v.leaf, v.blocks FROM docpatterns._schema_versioning_leaves(rel) v LOOP
      since := 1;
      LOOP
        EXIT WHEN l.blocks OPERATOR(pg_catalog.=) 0;
        SELECT q.* INTO b FROM docpatterns._schema_versioning_batch(rel, l.leaf, name, wanted,
            filter, since, l.blocks OPERATOR(pg_catalog.*) 65536 OPERATOR(pg_catalog.-) 1,
              CASE
                  WHEN batch IS NULL THEN NULL
                  WHEN is_wait THEN 1
                  ELSE batch END, is_wait) q;
        documents := documents OPERATOR(pg_catalog.+) b.done;
        written := written OPERATOR(pg_catalog.+) b.done;
        again := again OPERATOR(pg_catalog.+) b.passed_over;
        passed_over := passed_over OPERATOR(pg_catalog.+) b.passed_over;
        since := b.place;
        IF b.code IS NULL THEN
          failures := 0;
        ELSIF batch IS NULL OR NOT b.code OPERATOR(pg_catalog.=) ANY ('{40001,40P01,55P03}')
            OR failures OPERATOR(pg_catalog.>=) 10 THEN
          IF batch IS NOT NULL THEN
            PERFORM docpatterns._schema_versioning_note(rel, name, wanted, 'stopped', documents,
                passed_over,
                      (behind OPERATOR(pg_catalog.+)
                        (since OPERATOR(pg_catalog./) 65536))::pg_catalog.float8
                      OPERATOR(pg_catalog./) blocks::pg_catalog.float8, b.key, b.message);
            COMMIT;
          END IF;
          IF b.key IS NULL THEN
            RAISE EXCEPTION '%', b.message USING ERRCODE = b.code,
              DETAIL = coalesce(b.detail, 'The error is not caused by a document.'),
              HINT = coalesce(b.hint, 'Committed batches are kept.');
          END IF;
          RAISE EXCEPTION 'cannot migrate document % in table "%" to version %: %',
            pg_catalog.left(b.key::pg_catalog.text, 100), docpatterns._relname(rel), wanted,
                b.message
            USING ERRCODE = b.code, DETAIL = coalesce(b.detail, 'The document is unchanged.'),
                  HINT = CASE WHEN batch IS NULL THEN 'Nothing was changed.'
                              ELSE pg_catalog.format('%s documents before it were changed. Call '
                                  'the migration again to continue, with a filter to skip the '
                                  'document.', documents) END;
        ELSE
          failures := failures OPERATOR(pg_catalog.+) 1;
        END IF;
        IF batch IS NOT NULL THEN
          PERFORM docpatterns._schema_versioning_note(rel, name, wanted, 'running', documents,
              passed_over,
                    CASE WHEN b.ended THEN behind OPERATOR(pg_catalog.+) l.blocks ELSE
                      behind OPERATOR(pg_catalog.+) (since OPERATOR(pg_catalog./) 65536)
                      END::pg_catalog.float8 OPERATOR(pg_catalog./) blocks::pg_catalog.float8, NULL,
                      NULL);
          COMMIT;
        END IF;
        EXIT WHEN b.ended;
        IF pause OPERATOR(pg_catalog.>) '0'::pg_catalog.interval AND batch IS NOT NULL THEN
          PERFORM pg_catalog.pg_sleep_for(pause);
        END IF;
      END LOOP;
      behind := behind OPERATOR(pg_catalog.+) l.blocks;
    END LOOP;
    EXIT WHEN batch IS NULL OR (again OPERATOR(pg_catalog.=) 0
        AND (written OPERATOR(pg_catalog.=) 0 OR
                (@extschema@.bson_get_text(p.options, 'write') OPERATOR(pg_catalog.=) 'upgrade'
                    AND wanted OPERATOR(pg_catalog.=) p.current)));
    is_wait := again OPERATOR(pg_catalog.>) 0
      AND (written OPERATOR(pg_catalog.=) 0 OR pass OPERATOR(pg_catalog.>) 2);
    -- does not wait forever for transactions that keep writing documents of another version
    EXIT WHEN pass OPERATOR(pg_catalog.>=) 10;
  END LOOP;
  PERFORM docpatterns._schema_versioning_note(rel, name, wanted, 'done', documents, passed_over, 1,
      NULL, NULL);
  IF batch IS NOT NULL THEN
    COMMIT;
  END IF;
  RAISE NOTICE 'table "%": % documents migrated to version %', docpatterns._relname(rel),
      documents, wanted;
END
$$;
COMMENT ON PROCEDURE schema_versioning_migrate(regclass, int, interval, bson, int, text) IS
  'Brings documents (those that match the filter) to a version, by default the current one, up or '
  'down, with a commit and a pause after each batch (NULL: in the caller''s transaction). Locks '
  'the rows of a batch. Runs as the owner. A document that fails stops it with the error of the '
  'step and the document''s key, after those before it were committed. Errors: 22023 a version '
  'that is unknown or newer than the current one, 42501 unless the caller owns the table';

CREATE FUNCTION docpatterns._schema_versioning_migrate_all(rel regclass, filter bson, target int,
  name text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  CALL @extschema@.schema_versioning_migrate(rel, NULL, '0', filter, target, name);
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_migrate_all(regclass, bson, int, text) IS
  'schema_versioning_migrate in one transaction, for a shard';

-- Upgrade when accessed ---------------------------------------------------------------------------

CREATE FUNCTION schema_versioning_read(rel regclass, key anycompatible, name text DEFAULT NULL)
  RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_schema_versioning_read' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION schema_versioning_read(regclass, anycompatible, text) IS
  'The document of a key in the current version, which is also stored, unless the transaction is '
  'read-only; NULL if there is none. Needs SELECT and UPDATE; locks the row only to write it. '
  'Errors: 42809 a key of another type, 23514 an unknown version, and those of steps';

-- The test of steps -------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._schema_versioning_same(a bson, b bson, field text) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_schema_versioning_same' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._schema_versioning_same(bson, bson, text) IS
  'whether two documents have the same members with the same values, in whatever order, apart from '
  'the field with the version';

CREATE FUNCTION schema_versioning_test(rel regclass, sample int DEFAULT 1000,
  name text DEFAULT NULL,
    OUT since int, OUT until int, OUT documents bigint,
      OUT same bigint, OUT key bson_value, OUT problem text)
    RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM docpatterns._pattern_require_owner(rel);
  IF sample IS NULL OR sample < 1 THEN
    RAISE EXCEPTION 'sample must be positive' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  name := docpatterns._schema_versioning_name(rel, name);
  RETURN QUERY
    SELECT (e OPERATOR(@extschema@.->) 'since'::text)::int,
      (e OPERATOR(@extschema@.->) 'until'::text)::int,
      (e OPERATOR(@extschema@.->) 'documents'::text)::bigint,
           (e OPERATOR(@extschema@.->) 'same'::text)::bigint,
           e OPERATOR(@extschema@.->) 'key'::text, @extschema@.bson_get_text(e, 'problem')
    FROM @extschema@.bson_elements(docpatterns._pattern_call('test', rel, 'schema_versioning',
          schema_versioning_test.name, @extschema@.bson_build('sample', sample))::@extschema@.bson
                                   OPERATOR(@extschema@.->) 'steps'::text) e;
END
$$;
COMMENT ON FUNCTION schema_versioning_test(regclass, int, text) IS
  'For each step, how many documents of a sample return unchanged (apart from the order of fields) '
  'from the way up and down, and the key of the first that does not, with the path or the error. '
  'Reads as the table''s owner and writes nothing. Error: 42501 unless the caller owns the table';

-- The test, as _pattern_call() runs it: a document as text.
CREATE FUNCTION docpatterns._schema_versioning_test(rel regclass, name text, how bson) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  s record;
  r record;
  steps regprocedure[];
  result @extschema@.bson[] := '{}';
  one @extschema@.bson;
  tried bigint;
  same bigint;
  key @extschema@.bson_value;
  problem text;
  low @extschema@.bson;
  back @extschema@.bson;
  chains @extschema@.bson[];
BEGIN
  SELECT q.* INTO p FROM docpatterns._schema_versioning_parts(rel, name) q;
  steps := ARRAY(SELECT f.function FROM docpatterns._schema_versioning_refers(rel, name, true) f);
  FOR s IN SELECT t.* FROM docpatterns._schema_versioning_steps(p.options) t
      WHERE t.since = ANY (p.versions) LOOP
    tried := 0; same := 0; key := NULL; problem := NULL;
    chains := ARRAY[docpatterns._schema_versioning_chain(p.options, s.since),
        docpatterns._schema_versioning_chain(p.options, s.until)];
    IF NOT (@extschema@.bson_exists(s.step, 'down_function')
          OR @extschema@.bson_exists(s.step, 'down_update')) THEN
      problem := 'there is no way down';
    ELSE
      FOR r IN EXECUTE format('SELECT %1$s AS key, b.%2$I AS doc FROM %3$s CROSS JOIN LATERAL '
          '(SELECT docpatterns._schema_versioning_version(b.%2$I, $1) AS version OFFSET 0) v '
                              'WHERE v.version <= $2 AND v.version = ANY ($3) LIMIT $4',
                                p.key_value, p.doc,
                              -- of a large table a part is read here and there
                              CASE WHEN (SELECT c.reltuples FROM pg_class c
                                  WHERE c.oid = rel) > 20 * @extschema@.bson_get_text(how,
                                  'sample')::float8
                                   THEN format('%s AS b TABLESAMPLE SYSTEM (%s) REPEATABLE (1)',
                                     p.base,
                                             least(100, 1000 * @extschema@.bson_get_text(how,
                                                   'sample')::float8 / (SELECT c.reltuples
                                                   FROM pg_class c WHERE c.oid = rel))) ELSE
                                             p.base || ' AS b' END)
               USING p.field, s.since, p.versions,
                 @extschema@.bson_get_text(how, 'sample')::bigint LOOP
        tried := tried + 1;
        BEGIN
          low := docpatterns._schema_versioning_as_alone(r.doc, chains[1], steps);
          back
            := docpatterns._schema_versioning_as_alone(docpatterns._schema_versioning_as_alone(low,
                chains[2], steps), chains[1], steps);
          IF docpatterns._schema_versioning_same(low, back, p.field) THEN
            same := same + 1;
          ELSIF key IS NULL THEN
            key := r.key;
            problem := (SELECT format('path "%s" was %s and came back as %s', d.path,
                  coalesce(left(d.old::text, 60), 'absent'),
                  coalesce(left(d.new::text, 60), 'absent'))
                        FROM @extschema@.bson_diff(low, back) d WHERE d.path <> p.field
                          AND d.path <> '' LIMIT 1);
          END IF;
        EXCEPTION WHEN OTHERS THEN
          IF SQLSTATE ~ '^(40|53|57)' THEN
            RAISE;
          END IF;
          IF key IS NULL THEN
            key := r.key;
            problem := SQLERRM;
          END IF;
        END;
      END LOOP;
    END IF;
    one := @extschema@.bson_build('since', s.since, 'until', s.until, 'documents', tried, 'same',
        same);
    IF key IS NOT NULL THEN
      one := @extschema@.bson_set(one, 'key', key);
    END IF;
    IF problem IS NOT NULL THEN
      one := @extschema@.bson_set(one, 'problem', problem);
    END IF;
    result := result || one;
  END LOOP;
  RETURN @extschema@.bson_build('steps', result)::text;
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_test(regclass, text, bson) IS
  'schema_versioning_test as the owner of the table';
