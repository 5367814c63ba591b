-- Single tables: items of many entities in one table, under keys that are computed from templates.
-- The trigger and the calls are in src/patterns/single_table/.

CREATE FUNCTION docpatterns.single_table_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_single_table_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.single_table_trigger() IS
  'trigger of single tables: computes the keys of items; made by single_table_create';

CREATE FUNCTION docpatterns._single_table_image(rel regclass, entity text, doc bson) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_single_table_image' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._single_table_image(regclass, text, bson) IS
  'what the row of an item has to be, or {error: ..} for a document that is none';

CREATE FUNCTION docpatterns._single_table_template(template text) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_single_table_template' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._single_table_template(text) IS
  'error 22023 for what is no template of a key';

-- Declaring ---------------------------------------------------------------------------------------

-- An unqualified name is created according to the caller's search_path.
CREATE FUNCTION single_table_create(
  rel text, indexes int DEFAULT 0, ttl_field text DEFAULT NULL) RETURNS regclass
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  RETURN docpatterns._single_table_create(pg_catalog.parse_ident(rel), pg_catalog.current_schema(),
      indexes, ttl_field);
END
$$;
COMMENT ON FUNCTION single_table_create(text, int, text) IS
  'Creates a single table: documents with the keys pk and sk as columns (the primary key), up to 5 '
  'sparse secondary indexes, and an expiry from ttl_field. Returns the table. Errors: 22023 or '
  '22004 options that do not fit, 42P07 it exists';

CREATE FUNCTION docpatterns._single_table_create(parts text[], schema_name text, indexes int,
  ttl_field text) RETURNS regclass
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  made text;
  result regclass;
  options @extschema@.bson;
BEGIN
  IF parts IS NULL THEN
    RAISE EXCEPTION 'rel must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF cardinality(parts) > 2 THEN
    RAISE EXCEPTION 'invalid name of a table: %', array_to_string(parts, '.')
      USING ERRCODE = 'invalid_name';
  END IF;
  options := docpatterns._pattern_options('single_table', @extschema@.bson_build('name', 'PK'::text,
    'indexes', indexes, 'entities', '{}'::@extschema@.bson, 'doc_column', 'doc'::text,
    'ttl_field', ttl_field));
  IF cardinality(parts) = 1 AND schema_name IS NULL THEN
    RAISE EXCEPTION 'no schema has been selected to create in'
      USING ERRCODE = 'invalid_schema_name';
  END IF;
  IF cardinality(parts) = 1 THEN
    parts := ARRAY[schema_name, parts[1]];
  END IF;
  made := format('%I.%I', parts[1], parts[2]);
  EXECUTE format('CREATE TABLE %s (pk text COLLATE "C" NOT NULL, sk text COLLATE "C" NOT NULL, '
      'entity text, doc @extschema@.bson NOT NULL, PRIMARY KEY (pk, sk))', made);
  result := made::regclass;
  PERFORM docpatterns._tenant_table(result);
  EXECUTE format('COMMENT ON TABLE %s IS %L', result,
      'items of a single table; what is in its columns follows from the documents');
  PERFORM docpatterns._single_table_columns(result, indexes, ttl_field);
  PERFORM docpatterns._single_table_declare(result, options);
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._single_table_create(text[], text, int, text) IS
  'single_table_create with the name resolved';

-- Columns of secondary indexes and of the time that items expire, those that the table does not
-- have yet.
CREATE FUNCTION docpatterns._single_table_columns(rel regclass, indexes int, ttl_field text)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  FOR i IN 1 .. least(indexes, 5) LOOP
    IF NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = rel
          AND a.attname = format('gsi%s_pk', i) AND NOT a.attisdropped) THEN
      EXECUTE format('ALTER TABLE %1$s ADD COLUMN gsi%2$s_pk text COLLATE "C", ADD COLUMN '
          'gsi%2$s_sk text COLLATE "C"', rel, i);
      EXECUTE format('CREATE INDEX ON %1$s (gsi%2$s_pk, gsi%2$s_sk, pk, sk) WHERE gsi%2$s_pk IS '
          'NOT NULL', rel, i);
    END IF;
  END LOOP;
  IF ttl_field IS NOT NULL AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = rel
        AND a.attname = 'expires_at' AND NOT a.attisdropped) THEN
    EXECUTE format('ALTER TABLE %s ADD COLUMN expires_at timestamptz', rel);
    EXECUTE format('CREATE INDEX ON %s (expires_at) WHERE expires_at IS NOT NULL', rel);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._single_table_columns(regclass, int, text) IS
  'columns of the indexes and of the expiry of a single table; locks it';

CREATE FUNCTION docpatterns._single_table_declare(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  main text;
BEGIN
  PERFORM docpatterns._pattern_allow_triggers(rel);
  SELECT g.tgname INTO main FROM docpatterns._pattern_declarations(rel) d
    JOIN pg_trigger g ON g.oid = d.trigger_oid WHERE d.pattern = 'single_table';
  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE '
      'FUNCTION docpatterns.single_table_trigger(%L)',
                 coalesce(main, docpatterns._pattern_trigger_name(rel,
                     'zz_docpatterns_22_single_table', @extschema@.bson_get_text(options, 'name'),
                     NULL)), rel, options::text);
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._single_table_declare(regclass, bson) IS
  'creates the trigger of a single table, or replaces it when options change; locks the table '
  'against writers';

CREATE FUNCTION docpatterns._single_table_options(rel regclass) RETURNS bson
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  options @extschema@.bson;
BEGIN
  SELECT d.options INTO options FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = 'single_table';
  IF options IS NULL THEN
    RAISE EXCEPTION '"%" is not a single table',
        docpatterns._relname(rel) USING ERRCODE = 'wrong_object_type',
      HINT = 'Create it with single_table_create().';
  END IF;
  RETURN options;
END
$$;
COMMENT ON FUNCTION docpatterns._single_table_options(regclass) IS
  'options of a single table; error 42809 if it is none';

CREATE FUNCTION single_table_entity(
  rel regclass, entity text, pk text, sk text, gsi1_pk text DEFAULT NULL, gsi1_sk text DEFAULT NULL,
  gsi2_pk text DEFAULT NULL, gsi2_sk text DEFAULT NULL,
  gsi3_pk text DEFAULT NULL, gsi3_sk text DEFAULT NULL, gsi4_pk text DEFAULT NULL,
  gsi4_sk text DEFAULT NULL, gsi5_pk text DEFAULT NULL, gsi5_sk text DEFAULT NULL,
  view_name text DEFAULT NULL) RETURNS regclass
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  options @extschema@.bson;
  spec @extschema@.bson;
  gsi text[] := ARRAY[gsi1_pk, gsi1_sk, gsi2_pk, gsi2_sk, gsi3_pk, gsi3_sk, gsi4_pk, gsi4_sk,
      gsi5_pk, gsi5_sk];
  label text;
  was bytea;
  path text := format('entities."%s"', replace(entity, '"', '""'));
BEGIN
  IF rel IS NULL OR entity IS NULL OR pk IS NULL OR sk IS NULL THEN
    RAISE EXCEPTION 'rel, entity, pk and sk must not be null'
      USING ERRCODE = 'null_value_not_allowed';
  END IF;
  PERFORM docpatterns._pattern_require_owner(rel);
  -- a transaction that has locked an item will write it
  EXECUTE format('LOCK TABLE %s IN EXCLUSIVE MODE', rel);
  options := docpatterns._single_table_options(rel);
  IF entity = '' OR octet_length(entity) > 63 THEN
    RAISE EXCEPTION 'the name of an entity must have 1 to 63 bytes'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM docpatterns._single_table_template(t) FROM unnest(ARRAY[pk, sk] || gsi) t;
  spec := @extschema@.bson_build('pk', pk, 'sk', sk);
  FOR i IN 1 .. 10 LOOP
    label := format('gsi%s_%s', (i + 1) / 2, CASE WHEN i % 2 = 1 THEN 'pk' ELSE 'sk' END);
    IF gsi[i] IS NULL THEN
      CONTINUE;
    END IF;
    IF (i + 1) / 2 > (options OPERATOR(@extschema@.->) 'indexes'::text)::int THEN
      RAISE EXCEPTION 'the single table "%" has no index %', docpatterns._relname(rel), (i + 1) / 2
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Add indexes with pattern_alter().';
    END IF;
    IF i % 2 = 0 AND gsi[i - 1] IS NULL THEN
      RAISE EXCEPTION '% requires %', label, format('gsi%s_pk', i / 2)
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
    spec := @extschema@.bson_set(spec, label, gsi[i]);
  END LOOP;
  was := (options OPERATOR(@extschema@.->) path)::@extschema@.bson::bytea;
  IF was IS DISTINCT FROM spec::bytea THEN
    PERFORM docpatterns._single_table_declare(rel, @extschema@.bson_set(options, path, spec));
    -- items that are there get the keys of the new templates
    EXECUTE format('UPDATE %1$s AS t SET %2$I = %3$s WHERE t.entity = $1 OR t.entity IS NULL', rel,
        (SELECT p.doc FROM docpatterns._pattern_table(rel, NULL) p),
      -- keys of templates that are no more are not their own
      coalesce((SELECT format('CASE WHEN t.entity = $1 THEN @extschema@.bson_unset(t.%I, %s) ELSE '
              't.%1$I END', (SELECT p.doc FROM docpatterns._pattern_table(rel, NULL) p),
              string_agg(format('''GSI%1$sPK'', ''GSI%1$sSK''', i), ', '))
                FROM generate_series(1, 5) i
                WHERE @extschema@.bson_exists((options OPERATOR(@extschema@.->)
                      path)::@extschema@.bson, format('gsi%s_pk', i))
                  AND NOT @extschema@.bson_exists(spec, format('gsi%s_pk', i))
                HAVING count(*) > 0),
               format('t.%I', (SELECT p.doc FROM docpatterns._pattern_table(rel, NULL) p))))
               USING entity;
  END IF;
  RETURN docpatterns._single_table_view(rel, entity, view_name);
END
$$;
COMMENT ON FUNCTION single_table_entity(regclass, text, text, text, text, text, text, text, text,
  text, text, text, text, text, text) IS
  'Declares an entity and the view <table>_<entity> of its items, or changes its templates and '
  'moves its items to the new keys. Returns the view. Locks the table against writers. Errors: '
  '22023 templates that do not fit, 23502, 23514 or 23505 items that cannot have the new keys, '
  '42501 unless the caller owns the table';

-- The view of an entity's items: can be written to, and sets the entity.
CREATE FUNCTION docpatterns._single_table_view(rel regclass, entity text, view_name text)
  RETURNS regclass
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  made text;
  result regclass;
  said text := format('items of the entity "%s" of ', entity);
  expires boolean := EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = rel
      AND a.attname = 'expires_at' AND NOT a.attisdropped)
                     AND @extschema@.bson_exists(docpatterns._single_table_options(rel),
                         'ttl_field');
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, NULL) p;
  SELECT v.view INTO result FROM docpatterns._single_table_views(rel) v
    WHERE v.entity = _single_table_view.entity;
  IF result IS NOT NULL THEN
    made := result::text;
  ELSE
    made := format('%I.%I', t.schema_name,
        coalesce(view_name, docpatterns._pattern_relation_name(t.schema_name, t.table_name, entity,
            NULL)));
  END IF;
  EXECUTE format('CREATE %sVIEW %s WITH (security_invoker = true) AS SELECT t.pk, t.sk, t.entity, '
      't.%I AS doc FROM %s AS t WHERE t.entity = %L%s WITH LOCAL CHECK OPTION',
    CASE WHEN result IS NOT NULL THEN 'OR REPLACE ' ELSE '' END, made, t.doc, t.base, entity,
    CASE WHEN expires THEN ' AND (t.expires_at IS NULL OR t.expires_at > clock_timestamp())' ELSE ''
      END);
  IF result IS NULL THEN
    result := made::regclass;
    -- Citus has no defaults of views on distributed tables, which take no writes
    IF docpatterns._pattern_is_distributed(rel) THEN
      PERFORM set_config('citus.enable_ddl_propagation', 'off', true);
    END IF;
    EXECUTE format('ALTER VIEW %s ALTER COLUMN entity SET DEFAULT %L', result, entity);
    IF docpatterns._pattern_is_distributed(rel) THEN
      PERFORM set_config('citus.enable_ddl_propagation', 'on', true);
    END IF;
    EXECUTE format('COMMENT ON VIEW %s IS %L', result, said || t.base);
    PERFORM docpatterns._pattern_copy_grants(rel, result);
    EXECUTE format('ALTER VIEW %s OWNER TO %s', result, t.owner::regrole);
  END IF;
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._single_table_view(regclass, text, text) IS
  'creates the view of an entity, or replaces it; error 42P07 if its name is taken';

-- A view of ours shows one entity of the table, and its column says by default which.
CREATE FUNCTION docpatterns._single_table_views(rel regclass, owner oid DEFAULT NULL,
  OUT view regclass, OUT entity text) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on AS $$
  SELECT DISTINCT ON (e.key) v.oid::regclass, e.key
  FROM @extschema@.bson_each((docpatterns._single_table_options($1) OPERATOR(@extschema@.->)
        'entities'::text)::@extschema@.bson) AS e
    CROSS JOIN pg_depend d JOIN pg_rewrite r ON r.oid = d.objid
      JOIN pg_class v ON v.oid = r.ev_class AND v.relkind = 'v'
    JOIN pg_attribute a ON a.attrelid = v.oid AND a.attname = 'entity'
      JOIN pg_attrdef f ON f.adrelid = v.oid AND f.adnum = a.attnum
  WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
    AND d.refobjid = $1
    AND 'security_invoker=true' = ANY (v.reloptions) AND 'check_option=local' = ANY (v.reloptions)
    AND v.relowner = coalesce($2, (SELECT c.relowner FROM pg_class c WHERE c.oid = $1))
    AND pg_get_expr(f.adbin, f.adrelid) = format('''%s''::text', replace(e.key, '''', ''''''))
  ORDER BY e.key, v.oid
$$;
COMMENT ON FUNCTION docpatterns._single_table_views(regclass, oid) IS
  'the views of a single table''s entities, whatever they are called now; of the table''s owner, '
  'or of the one given';

CREATE FUNCTION docpatterns._single_table_follow_owner(rel regclass, former oid) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._pattern_renew_view($1, w.view,
      format('SELECT docpatterns._single_table_view(%L, %L, NULL)', $1, w.entity),
        format('SELECT v.view FROM '
          'docpatterns._single_table_views(%L) v WHERE v.entity = '
          '%L', $1, w.entity))
  FROM docpatterns._single_table_views($1, $2) w
$$;
COMMENT ON FUNCTION docpatterns._single_table_follow_owner(regclass, oid) IS
  'makes the views of entities again after a change of the table''s owner';

-- Verbs -------------------------------------------------------------------------------------------

-- Differences between the row of an item and _single_table_image().
CREATE FUNCTION docpatterns._single_table_row(rel regclass) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  options @extschema@.bson := docpatterns._single_table_options(rel);
  cells text[] := '{pk,sk,entity}';
BEGIN
  FOR i IN 1 .. (options OPERATOR(@extschema@.->) 'indexes'::text)::int LOOP
    cells := cells || ARRAY[format('gsi%s_pk', i), format('gsi%s_sk', i)];
  END LOOP;
  IF @extschema@.bson_exists(options, 'ttl_field') THEN
    cells := cells || 'expires_at'::text;
  END IF;
  RETURN format('(SELECT @extschema@.bson_object_agg(c.name, c.value) FROM (VALUES %s, (%L, '
      '@extschema@.to_bson(t.%I))) AS c (name, value) WHERE c.value IS NOT NULL)',
    (SELECT string_agg(format('(%L, @extschema@.to_bson(t.%I))', c, c), ', ' ORDER BY n)
      FROM unnest(cells) WITH ORDINALITY AS u (c, n)), 'doc',
    (SELECT p.doc FROM docpatterns._pattern_table(rel, NULL) p));
END
$$;
COMMENT ON FUNCTION docpatterns._single_table_row(regclass) IS
  'SQL text: the columns of a row t of a single table as one document';

CREATE FUNCTION docpatterns._single_table_check(rel regclass, name text)
  RETURNS TABLE (key bson_value, what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  options @extschema@.bson := docpatterns._single_table_options(rel);
BEGIN
  FOR i IN 1 .. (options OPERATOR(@extschema@.->) 'indexes'::text)::int LOOP
    IF NOT EXISTS (SELECT FROM pg_index x WHERE x.indrelid = rel AND x.indisvalid
          AND pg_get_indexdef(x.indexrelid, 1, true) = format('gsi%s_pk', i)) THEN
      RETURN QUERY SELECT NULL::@extschema@.bson_value, format('index %s', i), 'present'::text,
        'missing'::text;
    END IF;
  END LOOP;
  RETURN QUERY EXECUTE format($q$
    SELECT @extschema@.bson_array(q.pk, q.sk), 'item'::text,
      left(coalesce(q.image OPERATOR(@extschema@.->>) 'error'::text,
          @extschema@.bson_unset(q.image, 'doc')::text), 200),
      left(@extschema@.bson_unset(q.found, 'doc')::text, 200)
    FROM (SELECT t.pk, t.sk, docpatterns._single_table_image(%1$L::regclass, t.entity,
          t.%2$I) AS image, %3$s AS found FROM %1$s AS t) AS q
    WHERE q.image::bytea <> q.found::bytea
    $q$, rel, (SELECT p.doc FROM docpatterns._pattern_table(rel, NULL) p),
      docpatterns._single_table_row(rel));
END
$$;
COMMENT ON FUNCTION docpatterns._single_table_check(regclass, text) IS
  'violated invariants of a single table: items whose keys or columns do not follow from their '
  'documents';

CREATE FUNCTION docpatterns._single_table_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  options @extschema@.bson := docpatterns._single_table_options(rel);
  done bigint;
BEGIN
  FOR i IN 1 .. (options OPERATOR(@extschema@.->) 'indexes'::text)::int LOOP
    IF NOT EXISTS (SELECT FROM pg_index x WHERE x.indrelid = rel AND x.indisvalid
          AND pg_get_indexdef(x.indexrelid, 1, true) = format('gsi%s_pk', i)) THEN
      EXECUTE format('CREATE INDEX ON %1$s (gsi%2$s_pk, gsi%2$s_sk, pk, sk) WHERE gsi%2$s_pk IS '
          'NOT NULL', rel, i);
    END IF;
  END LOOP;
  EXECUTE format('UPDATE %1$s AS t SET %2$I = t.%2$I WHERE '
      'docpatterns._single_table_image(%1$L::regclass, t.entity, t.%2$I)::bytea <> %3$s::bytea',
    rel, (SELECT p.doc FROM docpatterns._pattern_table(rel, NULL) p),
    docpatterns._single_table_row(rel));
  GET DIAGNOSTICS done = ROW_COUNT;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._single_table_repair(regclass, text) IS
  'pattern_repair of a single table';

CREATE FUNCTION docpatterns._single_table_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  indexes int := @extschema@.bson_get_text(options, 'indexes')::int;
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  IF indexes < @extschema@.bson_get_text(docpatterns._single_table_options(rel),
        'indexes')::int THEN
    RAISE EXCEPTION 'indexes can only be added' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM docpatterns._single_table_columns(rel, indexes,
      @extschema@.bson_get_text(options, 'ttl_field'));
  PERFORM docpatterns._single_table_declare(rel, options);
  PERFORM docpatterns._single_table_view(rel, v.entity, NULL)
    FROM docpatterns._single_table_views(rel) v;
  PERFORM docpatterns._single_table_repair(rel, name);
END
$$;
COMMENT ON FUNCTION docpatterns._single_table_alter(regclass, text, bson) IS
  'pattern_alter of a single table';

CREATE FUNCTION docpatterns._single_table_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v record;
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  FOR v IN SELECT w.view FROM docpatterns._single_table_views(rel) w LOOP
    EXECUTE format('DROP VIEW %s', v.view);
  END LOOP;
  PERFORM docpatterns._pattern_drop_anchor(rel, name);
  EXECUTE format('DROP TRIGGER %I ON %s',
      (SELECT g.tgname FROM docpatterns._pattern_declarations(rel) d
        JOIN pg_trigger g ON g.oid = d.trigger_oid WHERE d.pattern = 'single_table'), rel);
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._single_table_disable(regclass, text, bson) IS
  'pattern_disable of a single table: the views of entities go, items and columns stay as they are '
  'in an ordinary table';
