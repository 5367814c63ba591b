-- Aggregation pipelines as SQL (src/mql/pipeline/).

CREATE FUNCTION docpatterns._int(n bigint) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_int' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._int(bigint) IS 'internal: an int32 if it fits, else an int64';

CREATE FUNCTION docpatterns._sum(n bigint) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_sum' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._sum(bigint) IS 'internal: as _int, 0 for NULL';
CREATE FUNCTION docpatterns._sum(n numeric) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_sum_long' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._sum(numeric) IS
  'internal: a sum of integers as an int64 or, if it does not fit, a double; 0 for NULL';

CREATE FUNCTION collection_aggregate(rel regclass, pipeline bson_value, let bson DEFAULT NULL,
  collation bson DEFAULT NULL) RETURNS SETOF bson
  AS 'MODULE_PATHNAME', 'dp_collection_aggregate' LANGUAGE C VOLATILE COST 1000;
COMMENT ON FUNCTION collection_aggregate(regclass, bson_value, bson, bson) IS
  'The result of an aggregation pipeline, an array of stages, on the documents or rows of a '
  'relation (NULL: on none), computed by the SQL that collection_aggregate_sql() returns. let has '
  'variables. With a collation, strings compare so. Needs SELECT, and the rights of what $merge or '
  '$out write, which return no rows. Errors: 22023 a bad specification, 0A000 an unknown stage or '
  'operator, or one that does not support a collation';

CREATE FUNCTION docpatterns._pipeline_statements(rel regclass, pipeline bson_value, let bson,
  collation bson) RETURNS text[]
  AS 'MODULE_PATHNAME', 'dp_pipeline_statements' LANGUAGE C STABLE;
COMMENT ON FUNCTION docpatterns._pipeline_statements(regclass, bson_value, bson, bson) IS
  'internal: a pipeline in SQL; the last statement has the query';

CREATE FUNCTION collection_aggregate_sql(rel regclass, pipeline bson_value, let bson DEFAULT NULL,
  collation bson DEFAULT NULL) RETURNS text
LANGUAGE docpatterns STABLE AS $$
BEGIN
  RETURN pg_catalog.array_to_string(
    docpatterns._pipeline_statements(rel, pipeline, let, "collation"), E';\n');
END
$$;
COMMENT ON FUNCTION collection_aggregate_sql(regclass, bson_value, bson, bson) IS
  'The query of an aggregation pipeline, or the statements of one that writes, without the last '
  'semicolon. Errors as collection_aggregate';

CREATE FUNCTION collection_explain(rel regclass, query bson_value, execute boolean DEFAULT false,
  collation bson DEFAULT NULL) RETURNS SETOF text
LANGUAGE docpatterns VOLATILE AS $$
DECLARE
  statements pg_catalog.text[];
BEGIN
  IF query IS NULL OR execute IS NULL THEN
    RAISE EXCEPTION 'query and execute cannot be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF @extschema@.bson_typeof(query) OPERATOR(pg_catalog.<>) 'array' THEN
    query := @extschema@.bson_array(@extschema@.bson_build('$match', query));
  END IF;
  statements := docpatterns._pipeline_statements(rel, query, NULL, "collation");
  RETURN QUERY EXECUTE pg_catalog.concat('EXPLAIN (ANALYZE ', execute::pg_catalog.text, ') ',
    statements[pg_catalog.cardinality(statements)]);
END
$$;
COMMENT ON FUNCTION collection_explain(regclass, bson_value, boolean, bson) IS
  'The plan of a filter or of an aggregation pipeline, as EXPLAIN shows it. With execute the query '
  'runs, so $merge and $out write. Errors as collection_aggregate';

CREATE FUNCTION collection_view_create(name text, rel regclass, pipeline bson_value,
  collation bson DEFAULT NULL) RETURNS regclass
LANGUAGE docpatterns VOLATILE AS $$
DECLARE
  target pg_catalog.text := (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(p), '.')
    FROM pg_catalog.unnest(pg_catalog.parse_ident(name)) AS p);
BEGIN
  IF name IS NULL OR rel IS NULL OR pipeline IS NULL THEN
    RETURN NULL;
  END IF;
  EXECUTE pg_catalog.concat('CREATE VIEW ', target, ' WITH (security_invoker = true) AS ',
    @extschema@.collection_aggregate_sql(rel, pipeline, NULL, "collation"));
  RETURN target::pg_catalog.regclass;
END
$$;
COMMENT ON FUNCTION collection_view_create(text, regclass, bson_value, bson) IS
  'Creates a view of the documents of a pipeline, with the column doc, and returns it; it keeps '
  'the collation. Its readers need SELECT on what the pipeline reads. Errors: 42P07 the relation '
  'exists, 42601 a pipeline that writes, those of collection_aggregate';

-- The server, as in MongoDB's statistics.
CREATE FUNCTION docpatterns._stats_host() RETURNS text
LANGUAGE sql STABLE PARALLEL RESTRICTED SET search_path = pg_catalog, pg_temp AS $$
  SELECT concat(coalesce(host(inet_server_addr()), 'localhost'), ':', current_setting('port'))
$$;
COMMENT ON FUNCTION docpatterns._stats_host() IS 'internal: the address and the port of the server';

-- What ANALYZE and the statistics of PostgreSQL know, of a partitioned table the sums of its
-- partitions.
CREATE FUNCTION docpatterns._coll_stats(rel regclass, options bson) RETURNS SETOF bson
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH stored AS (
    SELECT c.oid, greatest(c.reltuples, 0)::int8 AS docs, pg_table_size(c.oid) AS size,
           coalesce((SELECT max(s.avg_width) FROM pg_stats AS s
             WHERE s.schemaname = n.nspname AND s.tablename = c.relname
               AND s.attname = (SELECT a.attname FROM pg_attribute AS a WHERE a.attrelid = c.oid
                 AND a.atttypid = '@extschema@.bson'::regtype ORDER BY a.attnum LIMIT 1)), 0)
             AS width, pg_stat_get_numscans(c.oid) AS scans
      FROM (SELECT rel AS relid UNION SELECT p.relid FROM pg_partition_tree(rel) AS p) AS r
      JOIN pg_class AS c ON c.oid = r.relid JOIN pg_namespace AS n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('r', 'm')
  ), indexes AS (
    SELECT i.indexrelid, pg_relation_size(i.indexrelid) AS size
      FROM pg_index AS i JOIN stored AS s ON s.oid = i.indrelid
  ), facts AS (
    SELECT coalesce((options OPERATOR(@extschema@.->) 'storageStats')::int8, 1) AS scale,
           sum(docs)::int8 AS docs, sum(docs * width)::int8 AS bytes,
           sum(size)::int8 AS size, sum(scans)::int8 AS scans,
           (SELECT coalesce(sum(i.size), 0)::int8 FROM indexes AS i) AS index_size
      FROM stored
  )
  SELECT @extschema@.bson_build('ns', (SELECT concat(n.nspname, '.', c.relname)
      FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = rel),
      'host', docpatterns._stats_host(), 'localTime', now())
    OPERATOR(@extschema@.||) CASE WHEN options OPERATOR(@extschema@.?) 'storageStats'
      THEN @extschema@.bson_build('storageStats', @extschema@.bson_build(
        'size', docpatterns._int(bytes / scale), 'count', docpatterns._int(docs),
        'avgObjSize', docpatterns._int(coalesce(bytes / nullif(docs, 0), 0)),
        'storageSize', docpatterns._int(size / scale), 'capped', false,
        'nindexes', (SELECT count(*)::int FROM pg_index AS i WHERE i.indrelid = rel),
        'indexSizes', (SELECT coalesce(@extschema@.bson_object_agg(c.relname::text,
            docpatterns._int(i.size / scale) ORDER BY c.relname), '{}')
          FROM indexes AS i JOIN pg_class AS c ON c.oid = i.indexrelid),
        'totalIndexSize', docpatterns._int(index_size / scale),
        'totalSize', docpatterns._int((size + index_size) / scale),
        'scaleFactor', docpatterns._int(scale), 'indexBuilds', (
          SELECT coalesce(@extschema@.bson_agg(c.relname::text ORDER BY c.relname), '[]')
            FROM indexes AS i JOIN pg_index AS x ON x.indexrelid = i.indexrelid
            JOIN pg_class AS c ON c.oid = i.indexrelid WHERE NOT x.indisvalid))) ELSE '{}' END
    OPERATOR(@extschema@.||) CASE WHEN options OPERATOR(@extschema@.?) 'count'
      THEN @extschema@.bson_build('count', docpatterns._int(docs)) ELSE '{}' END
    OPERATOR(@extschema@.||) CASE WHEN options OPERATOR(@extschema@.?) 'queryExecStats'
      THEN @extschema@.bson_build('queryExecStats', @extschema@.bson_build('collectionScans',
        @extschema@.bson_build('total', scans, 'nonTailable', scans))) ELSE '{}' END
    FROM facts
$$;
COMMENT ON FUNCTION docpatterns._coll_stats(regclass, bson) IS 'internal: $collStats';

CREATE FUNCTION docpatterns._index_stats(rel regclass, options bson) RETURNS SETOF bson
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT @extschema@.bson_build('name', i.name::text, 'key', i.key, 'host',
      docpatterns._stats_host(), 'accesses', @extschema@.bson_build('ops',
        pg_stat_get_numscans(c.oid), 'since', pg_stat_get_db_stat_reset_time((
          SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()))),
      'spec', @extschema@.bson_build('v', 2, 'key', i.key, 'name', i.name::text)
        OPERATOR(@extschema@.||) CASE WHEN i.is_unique AND NOT i.is_primary
          THEN '{"unique": true}'::@extschema@.bson ELSE '{}' END
        OPERATOR(@extschema@.||) CASE WHEN i.partial_filter IS NOT NULL
          THEN @extschema@.bson_build('partialFilterExpression', i.partial_filter) ELSE '{}' END)
    FROM @extschema@.collection_list_indexes(rel) AS i
    JOIN pg_index AS x ON x.indrelid = rel
    JOIN pg_class AS c ON c.oid = x.indexrelid AND c.relname = i.name
$$;
COMMENT ON FUNCTION docpatterns._index_stats(regclass, bson) IS 'internal: $indexStats';

-- Functions of $merge; at is where the stage is.
CREATE FUNCTION docpatterns._merge_field(doc bson, field text, at text) RETURNS bson
LANGUAGE docpatterns IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  value @extschema@.bson_value := doc OPERATOR(@extschema@.->) field;
BEGIN
  IF value IS NULL THEN
    RETURN @extschema@.bson_set(doc, field, 'null'::@extschema@.bson_value);
  ELSIF @extschema@.bson_typeof(value) = 'array' THEN
    RAISE EXCEPTION 'field "%" must not be an array', field USING
      ERRCODE = 'invalid_parameter_value', DETAIL = concat('At path "', at, '".'),
      HINT = '$merge identifies documents by it.';
  END IF;
  RETURN doc;
END
$$;
COMMENT ON FUNCTION docpatterns._merge_field(bson, text, text) IS
  'internal: the document with null in a field that is missing; error 22023 if it is an array';

CREATE FUNCTION docpatterns._merge_fail(doc bson, at text) RETURNS bson
LANGUAGE docpatterns IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'no document matches that with _id %', doc OPERATOR(@extschema@.->) '_id'
    USING ERRCODE = 'no_data_found', DETAIL = concat('At path "', at, '".');
END
$$;
COMMENT ON FUNCTION docpatterns._merge_fail(bson, text) IS
  'internal: the error of a document that $merge does not find';

CREATE FUNCTION docpatterns._merge_id(old bson, new bson, at text) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pipeline_merge_id' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._merge_id(bson, bson, text) IS
  'internal: the new version of a document, which has its _id; error 22023 if it has another one';

CREATE FUNCTION docpatterns._merge_each(old bson, docs bson[], stages bson_value, variables bson,
  let bson, at text) RETURNS bson
LANGUAGE docpatterns STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  doc @extschema@.bson;
BEGIN
  FOREACH doc IN ARRAY docs LOOP
    old := CASE WHEN old IS NULL THEN doc ELSE docpatterns._merge_id(old, docpatterns._update(old,
      stages, docpatterns._let(doc, variables, let OPERATOR(@extschema@.||)
        @extschema@.bson_build('new', doc))), at) END;
  END LOOP;
  RETURN old;
END
$$;
COMMENT ON FUNCTION docpatterns._merge_each(bson, bson[], bson_value, bson, bson, text) IS
  'internal: applies stages of whenMatched with each document; without an old one the first is it';

-- The languages with a document of variables, which may differ from row to row: compiled once per
-- query. NULL without a document; let may be NULL. A "$$name" that the specification does not
-- define is looked up in let when it is evaluated: error 22023 if it is not there (so the compiler
-- of pipelines need not know the names, and may check them). $$NOW is the transaction's time.
-- $$USER_ROLES, $$CLUSTER_TIME and $$SEARCH_META are error 0A000. If the first field of let is
-- "$collation", strings compare by that.

-- The variables of a stage for the next level: _let(doc, '{x: "$a"}', outer let). Inner ones hide
-- outer ones; a missing value stays missing (bson_build would make it null).
CREATE FUNCTION docpatterns._let(doc bson, variables bson, let bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pipeline_let' LANGUAGE C STABLE PARALLEL SAFE COST 10;

CREATE FUNCTION docpatterns._eval(doc bson, expression bson_value, let bson) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_eval' LANGUAGE C STABLE PARALLEL SAFE COST 10;

-- Filters with $expr that has variables or $$NOW. No index serves it: conditions that have none
-- belong into @@.
CREATE FUNCTION docpatterns._match(doc bson, filter bson, let bson) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_pipeline_match' LANGUAGE C STABLE PARALLEL SAFE COST 2;

-- $project, and the stages $set $addFields $unset $project $replaceRoot $replaceWith in an array.
-- Other than bson_project and bson_update: no $slice: n, $elemMatch and positional operator of
-- queries, and _id may change or go. Use them without variables, too (let NULL).
CREATE FUNCTION docpatterns._project(doc bson, spec bson, let bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pipeline_project' LANGUAGE C STABLE PARALLEL SAFE COST 10;
CREATE FUNCTION docpatterns._update(doc bson, stages bson_value, let bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pipeline_update' LANGUAGE C STABLE PARALLEL SAFE COST 2;

-- NULL if the document is pruned: the stage is a subquery with WHERE .. IS NOT NULL.
CREATE FUNCTION docpatterns._redact(doc bson, expression bson_value, let bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pipeline_redact' LANGUAGE C STABLE PARALLEL SAFE COST 10;

-- The accumulators of $group, all of MongoDB 8: fields is {total: {$sum: "$x"}, ..}, the result a
-- document of their values (without the _id), NULL without rows. Documents that are NULL do not
-- count. $first, $last, $firstN, $lastN, $push, $mergeObjects and $concatArrays depend on the order
-- in which rows come: write ORDER BY inside the aggregate, or sort in a subquery. fields must be
-- the same for all rows; let may differ. key is the group's key, for an n that is an expression of
-- it ({n: {$cond: [{$eq: ["$a", 1]}, 2, 3]}}, where key is {a: 1}). $addToSet and $setUnion are
-- sorted.
--
-- Both are also for OVER (...). With a frame whose start moves, rows are removed again; only
-- $minN, $maxN, $top.., $bottom.., $addToSet, $setUnion, $median and $percentile take time that
-- grows with the frame. An empty frame gives NULL: write coalesce(..,
-- docpatterns._accumulate_none(fields, let)). One call computes all fields that have the same
-- frame.
--
-- _accumulate_any has no order and works in parallel: it is for fields without those seven
-- accumulators, in which n and p are constants.
CREATE FUNCTION docpatterns._accumulate_step(bytea, bson, bson, bson) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_accumulate_step' LANGUAGE C STABLE PARALLEL SAFE COST 2;
CREATE FUNCTION docpatterns._accumulate_step(bytea, bson, bson, bson, bson_value)
  RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_accumulate_step' LANGUAGE C STABLE PARALLEL SAFE COST 2;
CREATE FUNCTION docpatterns._accumulate_in(bytea, bson, bson, bson) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_accumulate_in' LANGUAGE C STABLE PARALLEL SAFE COST 2;
CREATE FUNCTION docpatterns._accumulate_out(bytea, bson, bson, bson) RETURNS bytea
  AS 'MODULE_PATHNAME', 'dp_accumulate_out' LANGUAGE C STABLE PARALLEL SAFE COST 2;
CREATE FUNCTION docpatterns._accumulate_none(fields bson, let bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_accumulate_none' LANGUAGE C STABLE PARALLEL SAFE;

CREATE AGGREGATE docpatterns._accumulate(doc bson, fields bson, let bson) (
  SFUNC = docpatterns._accumulate_step, STYPE = bytea, SSPACE = 512,
  FINALFUNC = docpatterns.bson_accumulate_final,
  MSFUNC = docpatterns._accumulate_in, MINVFUNC = docpatterns._accumulate_out, MSTYPE = bytea,
  MFINALFUNC = docpatterns.bson_accumulate_final, PARALLEL = SAFE
);
CREATE AGGREGATE docpatterns._accumulate(doc bson, fields bson, let bson, key bson_value) (
  SFUNC = docpatterns._accumulate_step, STYPE = bytea, SSPACE = 512,
  FINALFUNC = docpatterns.bson_accumulate_final, PARALLEL = SAFE
);
CREATE AGGREGATE docpatterns._accumulate_any(doc bson, fields bson, let bson) (
  SFUNC = docpatterns._accumulate_step, STYPE = bytea, SSPACE = 512,
  FINALFUNC = docpatterns.bson_accumulate_final,
  COMBINEFUNC = docpatterns.bson_accumulate_combine,
  MSFUNC = docpatterns._accumulate_in, MINVFUNC = docpatterns._accumulate_out, MSTYPE = bytea,
  MFINALFUNC = docpatterns.bson_accumulate_final, PARALLEL = SAFE
);
