-- The fan-out pattern: each new post is added to the walls of its author's followers. Its triggers
-- are in src/patterns/fanout/ and src/kit/derive/, functions shared by patterns of two tables in
-- derive.sql.

CREATE FUNCTION docpatterns.fanout_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_fanout_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.fanout_trigger() IS
  'trigger of the tables of a fan-out; made by fanout_enable';

CREATE FUNCTION docpatterns._fanout_recompute(rel regclass, name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_fanout_recompute' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._fanout_recompute(regclass, text) IS
  'recomputes all walls of a fan-out; returns how many were written; error 42501 unless the '
  'caller owns the table';

CREATE FUNCTION docpatterns._fanout_expected(rel regclass, name text, reader bson_value)
  RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_fanout_expected' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 1000;
COMMENT ON FUNCTION docpatterns._fanout_expected(regclass, text, bson_value) IS
  'the wall of a reader as posts and follows define it, NULL without follows; error 42501 '
  'unless the caller owns the table';

CREATE FUNCTION docpatterns._fanout_verify(rel regclass, name text) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_fanout_verify' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._fanout_verify(regclass, text) IS
  'compiles a declaration: errors for what is wrong with its paths and order';

CREATE FUNCTION fanout_timeline(rel regclass, reader anycompatible, take int DEFAULT 100,
  name text DEFAULT NULL, OUT key bson_value, OUT doc bson) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_fanout_timeline' LANGUAGE C STABLE ROWS 100 COST 1000;
COMMENT ON FUNCTION fanout_timeline(regclass, anycompatible, int, text) IS
  'The first take posts (keep at most) of the authors whom the reader follows, in the order of '
  'walls, each with its primary key and its current document. Needs SELECT on posts and walls, and '
  'on followers for a reader without a wall. Takes no locks. Errors: 42704 no fan-out, 22004 or '
  '22023 arguments that do not fit, 55000 a table is missing';

-- Declaring ---------------------------------------------------------------------------------------

CREATE FUNCTION fanout_enable(
  rel regclass, walls text, author text, followers regclass, follower text, followee text,
  keep int DEFAULT 100, celebrity_threshold bigint DEFAULT 10000,
  order_by bson DEFAULT NULL, name text DEFAULT NULL, doc_column text DEFAULT NULL,
    source_doc_column text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  posts record;
  follows_doc text;
  link_id text := replace(gen_random_uuid()::text, '-', '');
  follow_link_id text := replace(gen_random_uuid()::text, '-', '');
  options @extschema@.bson;
  parts text[];
  wall_schema text;
  wall regclass;
  filled boolean;
  made boolean := false;
BEGIN
  PERFORM docpatterns._pattern_require_owner(rel);
  IF docpatterns._pattern_paths_overlap(follower, followee) THEN
    RAISE EXCEPTION 'follower and followee must be different fields, none inside the other'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF rel = followers THEN
    RAISE EXCEPTION 'posts and followers must be different tables'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT p.* INTO posts FROM docpatterns._pattern_table(rel, doc_column) p;
  IF EXISTS (SELECT FROM pg_class c WHERE c.oid IN (rel, followers) AND c.relkind = 'f') THEN
    RAISE EXCEPTION 'posts and followers must be tables' USING ERRCODE = 'wrong_object_type';
  END IF;
  follows_doc := docpatterns._derive_source(rel, followers, source_doc_column);

  -- the walls: a collection without documents, or a new one
  parts := parse_ident(walls);
  wall_schema := CASE WHEN cardinality(parts) > 1 THEN parts[1] ELSE posts.schema_name END;
  options := docpatterns._pattern_declare(rel, 'fanout', @extschema@.bson_build(
    'name', coalesce(name, parts[cardinality(parts)]), 'author', author, 'follower', follower,
    'followee', followee, 'keep', keep, 'celebrity_threshold', celebrity_threshold,
    'doc_column', posts.doc, 'source_doc_column', follows_doc, 'link_id', link_id,
    'second_link_id', follow_link_id, 'order_by', order_by));
  name := @extschema@.bson_get_text(options, 'name');
  wall := to_regclass(format('%I.%I', wall_schema, parts[cardinality(parts)]));
  IF wall IS NULL THEN
    made := true;
    wall := @extschema@.collection_create(format('%I.%I', wall_schema, parts[cardinality(parts)]));
    EXECUTE format('COMMENT ON TABLE %s IS %L', wall,
        format('walls of readers of %s; kept by the fan-out "%s"', rel, name));
    EXECUTE format('ALTER TABLE %s OWNER TO %s', wall, posts.owner::regrole);
  ELSE
    PERFORM docpatterns._pattern_require_same_owner(rel, wall);
    IF wall IN (rel, followers) THEN
      RAISE EXCEPTION 'walls must be a different table from posts and followers'
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT EXISTS (SELECT FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
        WHERE t.tgrelid = wall AND c.relkind = 'r' AND NOT c.relispartition
                     AND t.tgfoid = 'docpatterns.collection_set_id'::regproc)
       OR NOT EXISTS (SELECT FROM pg_attribute a JOIN pg_index i ON i.indrelid = a.attrelid
           AND i.indisprimary AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
                      WHERE a.attrelid = wall AND a.attname = '_id')
       OR NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = wall AND a.attname = 'doc'
           AND NOT a.attisdropped) THEN
      RAISE EXCEPTION 'table "%" is not a collection',
          docpatterns._relname(wall) USING ERRCODE = 'wrong_object_type',
        HINT = 'collection_create() makes one; a table of walls that does not exist is made.';
    END IF;
    EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', wall);
    EXECUTE format('SELECT EXISTS (SELECT 1 FROM %s)', wall) INTO filled;
    IF filled THEN
      RAISE EXCEPTION 'table "%" is not empty', docpatterns._relname(wall)
        USING ERRCODE = 'object_not_in_prerequisite_state',
        DETAIL = 'Only the fan-out writes to the table of walls.';
    END IF;
    IF EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = wall
        AND t.tgfoid = 'docpatterns.pattern_guard_trigger'::regproc)
       OR EXISTS (SELECT FROM docpatterns._pattern_declarations(wall) d) THEN
      RAISE EXCEPTION 'table "%" already belongs to a pattern', docpatterns._relname(wall)
        USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
  END IF;

  options := @extschema@.bson_set(options, 'walls_made', made);

  -- walls are written again and again, and their documents are long for rows
  EXECUTE format('ALTER TABLE %s SET (fillfactor = 70)', wall);
  BEGIN
    EXECUTE format('ALTER TABLE %s ALTER COLUMN doc SET COMPRESSION lz4', wall);
  EXCEPTION WHEN feature_not_supported OR invalid_parameter_value THEN
    -- a server that was built without it: half of the time of a post would go into compression
    EXECUTE format('ALTER TABLE %s SET (toast_tuple_target = 8160)', wall);
  END;
  PERFORM docpatterns._pattern_guard(wall, 'fanout', name, link_id);
  -- the main trigger fires with statements that change no row one by one, and carries the
  -- declaration
  EXECUTE format('CREATE TRIGGER %I BEFORE INSERT ON %s FOR EACH STATEMENT EXECUTE FUNCTION '
      'docpatterns.fanout_trigger(%L)',
                 docpatterns._pattern_trigger_name(rel, 'zz_docpatterns_80_fanout', name, NULL),
                 rel, options::text);
  PERFORM docpatterns._derive_main_triggers(rel, 'fanout', name);
  PERFORM docpatterns._derive_source_triggers(followers, 'fanout', name, follow_link_id);
  PERFORM docpatterns._pattern_anchor(rel, name);
  PERFORM docpatterns._fanout_verify(rel, name);
  PERFORM docpatterns._derive_create_index(rel, 'fanout', name,
    ARRAY[format('(%I OPERATOR(@extschema@.->) %L::text)', posts.doc, author)]
    || CASE WHEN order_by IS NOT NULL THEN
      ARRAY[format('(@extschema@.bson_sort_key(%I, %L::@extschema@.bson))', posts.doc, order_by)]
      ELSE '{}' END
    || (SELECT array_agg(CASE WHEN order_by IS NOT NULL THEN format('%I DESC', k)
          ELSE format('%I', k) END) FROM unnest(posts.keys) k));
  PERFORM docpatterns._derive_create_index(followers, 'fanout', name,
    ARRAY(SELECT format('(%I OPERATOR(@extschema@.->) %L::text)', follows_doc, p)
      FROM unnest(ARRAY[follower, followee]) p));
  PERFORM docpatterns._derive_create_index(followers, 'fanout', name,
    ARRAY(SELECT format('(%I OPERATOR(@extschema@.->) %L::text)', follows_doc, p)
      FROM unnest(ARRAY[followee, follower]) p));
  IF docpatterns._pattern_nonempty(followers) THEN
    RAISE NOTICE 'table "%" already has rows', docpatterns._relname(followers)
      USING HINT = format('Run CALL pattern_build(%L, %L) to create walls for them.',
          rel::text, name);
  END IF;
  RETURN name;
END
$$;
COMMENT ON FUNCTION fanout_enable(regclass, text, text, regclass, text, text, int, bigint, bson,
  text, text, text) IS
  'Declares a fan-out: each reader has one document in walls with the first keep posts of the '
  'authors whom the reader follows. Returns the name of the declaration. Locks the tables against '
  'writers and builds indexes. Errors: 22023 or 22004 options that do not fit, 42710 the name '
  'exists, 42809 or 55000 tables that cannot serve, 42501 unless the caller owns the tables';

-- Verbs -------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._fanout_check(rel regclass, name text) RETURNS TABLE (key bson_value,
  what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  options @extschema@.bson;
  wall regclass;
  follows regclass;
  field text;
BEGIN
  SELECT d.options INTO options FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = 'fanout' AND d.name = _fanout_check.name;
  wall := docpatterns._pattern_side(@extschema@.bson_get_text(options, 'link_id'), rel);
  follows := docpatterns._pattern_side(@extschema@.bson_get_text(options, 'second_link_id'), rel);
  IF wall IS NULL OR follows IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, CASE WHEN wall IS NULL THEN 'walls' ELSE
      'followers' END, 'present'::text, 'missing'::text;
    RETURN;
  END IF;
  field := format('(f.%I OPERATOR(@extschema@.->) %L::text)',
      (SELECT p.doc FROM docpatterns._pattern_table(follows,
          docpatterns._pattern_doc_column(follows,
          @extschema@.bson_get_text(options, 'source_doc_column'))) p),
                  @extschema@.bson_get_text(options, 'follower'));
  -- followers of authors without posts may have no wall yet
  RETURN QUERY EXECUTE format(
    'SELECT q.key, ''wall''::text, coalesce(left(q.expected::text, 300), ''absent''), '
    'coalesce(left(q.found::text, 300), ''missing'') '
    'FROM (SELECT coalesce(w._id, r.reader) AS key, w.doc AS found, '
      'docpatterns._fanout_expected(%L::regclass, %L, coalesce(w._id, r.reader)) AS expected '
    '      FROM (SELECT DISTINCT %s AS reader FROM %s AS f WHERE %3$s IS NOT NULL) AS r FULL JOIN '
      '%5$s AS w ON w._id OPERATOR(@extschema@.=) r.reader) AS q '
    'WHERE NOT coalesce(q.expected OPERATOR(@extschema@.=) q.found, q.found IS NULL AND '
      'coalesce(@extschema@.bson_exists(q.expected, ''posts.0'') = false, true))',
    rel::text, name, field, follows, wall);
END
$$;
COMMENT ON FUNCTION docpatterns._fanout_check(regclass, text) IS
  'violated invariants of a fan-out: walls that are not what posts and follows give';

CREATE FUNCTION docpatterns._fanout_repair(rel regclass, name text) RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._fanout_recompute($1, $2)
$$;
COMMENT ON FUNCTION docpatterns._fanout_repair(regclass, text) IS 'pattern_repair of a fan-out';

-- One post of each author: repairing it creates the walls of the author's followers.
CREATE FUNCTION docpatterns._fanout_pending(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  options @extschema@.bson;
  t record;
BEGIN
  SELECT d.options INTO options FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = 'fanout' AND d.name = _fanout_pending.name;
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) p;
  RETURN format('SELECT DISTINCT ON (s.%I OPERATOR(@extschema@.->) %L::text) ROW(%s) AS key FROM '
      '%s AS s ORDER BY s.%1$I OPERATOR(@extschema@.->) %2$L::text',
    t.doc, @extschema@.bson_get_text(options, 'author'), (SELECT string_agg(format('s.%I', k), ', ')
      FROM unnest(t.keys) k), t.base);
END
$$;
COMMENT ON FUNCTION docpatterns._fanout_pending(regclass, text) IS
  'SQL text: keys of posts, one of each author';

CREATE FUNCTION docpatterns._fanout_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  options @extschema@.bson;
  wall regclass;
  keep_data boolean := @extschema@.bson_get_text(how, 'keep_data') = 'true';
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  SELECT d.options INTO options FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = 'fanout' AND d.name = _fanout_disable.name;
  wall := docpatterns._pattern_side(@extschema@.bson_get_text(options, 'link_id'), rel);
  IF wall IS NOT NULL AND (keep_data
        OR @extschema@.bson_get_text(options, 'walls_made') = 'false') THEN
    -- the walls stay behind as an ordinary collection, as they are or, if they were there before,
    -- empty
    PERFORM docpatterns._pattern_release_table(wall, rel);
    IF NOT keep_data THEN
      EXECUTE format('TRUNCATE %s', wall);
    END IF;
  END IF;
  PERFORM docpatterns._derive_drop(rel, 'fanout', name);
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._fanout_disable(regclass, text, bson) IS
  'pattern_disable of a fan-out: drops the walls (or empties them, if the collection was there '
  'before), or leaves them as an ordinary collection';
