-- The schema versioning pattern: declaration, steps, generated functions and views, and the verbs
-- of all patterns. Triggers and chains of steps are in src/patterns/schema_versioning/, the calls
-- in schema_versioning_calls.sql.

CREATE FUNCTION docpatterns.schema_versioning_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_schema_versioning_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.schema_versioning_trigger() IS
  'trigger of tables with the schema versioning pattern; made by schema_versioning_enable';

CREATE FUNCTION docpatterns.schema_versioning_view_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_schema_versioning_view_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.schema_versioning_view_trigger() IS
  'INSTEAD OF trigger of the views of a schema version: writes documents in the shape of that '
  'version; error 40001 when the document has changed since it was read';

-- Called by generated functions. There are two, because one calls functions that may not run in
-- parallel.
CREATE FUNCTION docpatterns._schema_versioning_as(doc bson, chain bson, steps regprocedure[])
  RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_schema_versioning_as' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 20;
COMMENT ON FUNCTION docpatterns._schema_versioning_as(bson, bson, regprocedure[]) IS
  'the document in the version that the chain names; errors 23514 for a version that is not known, '
  '0A000 where there is no way down, and what steps raise';

CREATE FUNCTION docpatterns._schema_versioning_as_alone(doc bson, chain bson, steps regprocedure[])
  RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_schema_versioning_as' LANGUAGE C IMMUTABLE STRICT PARALLEL UNSAFE
    COST 20;
COMMENT ON FUNCTION docpatterns._schema_versioning_as_alone(bson, bson, regprocedure[]) IS
  'the same for steps that are not marked PARALLEL SAFE';

CREATE FUNCTION docpatterns._schema_versioning_uses(versions int[], functions regprocedure[])
  RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_schema_versioning_uses' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._schema_versioning_uses(int[], regprocedure[]) IS
  'condition of triggers, which refer to functions in this way: true when versions is null';

CREATE FUNCTION docpatterns._schema_versioning_refers(rel regclass, name text, main boolean,
  OUT version int, OUT function regprocedure) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_schema_versioning_functions' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._schema_versioning_refers(regclass, text, boolean) IS
  'the functions that the triggers of a declaration refer to: those of its steps (main), or the '
  'generated ones with their versions';

CREATE FUNCTION docpatterns._schema_versioning_valid(rel regclass, options bson,
  steps regprocedure[]) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_schema_versioning_valid' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._schema_versioning_valid(regclass, bson, regprocedure[]) IS
  'raises what is wrong with the options of a schema versioning declaration: 22023, 42P17, 42501, '
  '0A000';

-- Options -----------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._schema_versioning_steps(options bson, OUT since int, OUT until int,
  OUT step bson) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT (e OPERATOR(@extschema@.->) 'since'::text)::int,
    (e OPERATOR(@extschema@.->) 'until'::text)::int, e::@extschema@.bson
  FROM @extschema@.bson_elements(options OPERATOR(@extschema@.->) 'steps'::text) AS e
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_steps(bson) IS
  'the steps of a declaration, in order';

-- The versions that steps connect with one, in order.
CREATE FUNCTION docpatterns._schema_versioning_versions(options bson) RETURNS int[]
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  result int[] := ARRAY[@extschema@.bson_get_text(options, 'current')::int];
  s record;
BEGIN
  FOR s IN SELECT t.since, t.until FROM docpatterns._schema_versioning_steps(options) t
      ORDER BY t.since LOOP
    IF s.since = result[cardinality(result)] THEN
      result := result || s.until;
    END IF;
  END LOOP;
  FOR s IN SELECT t.since, t.until FROM docpatterns._schema_versioning_steps(options) t
      ORDER BY t.since DESC LOOP
    IF s.until = result[1] THEN
      result := s.since || result;
    END IF;
  END LOOP;
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_versions(bson) IS
  'the versions of a declaration that can be reached from the current one, in order';

-- Names and options of a declaration, as the verbs use them in generated SQL: there "b" is a row of
-- the table.
CREATE FUNCTION docpatterns._schema_versioning_parts(rel regclass, name text,
  OUT base text, OUT schema_name text, OUT table_name text,
  OUT owner oid, OUT options bson, OUT doc text,
  OUT field text,
  OUT current int, OUT versions int[], OUT key_value text,
  OUT key_list text, OUT key_row text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  SELECT q.* INTO t FROM docpatterns._pattern_parts(rel, 'schema_versioning', name) q;
  base := t.base; schema_name := t.schema_name; table_name := t.table_name; owner := t.owner;
  options := t.options; doc := t.doc_name;
  field := @extschema@.bson_get_text(options, 'field');
  current := @extschema@.bson_get_text(options, 'current')::int;
  versions := docpatterns._schema_versioning_versions(options);
  key_list := t.key_list; key_row := t.key_row; key_value := t.key_value;
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_parts(regclass, text) IS
  'names and options of a schema versioning declaration, and pieces of SQL text about them';

-- The name of the declaration that is meant, of those of this pattern.
CREATE FUNCTION docpatterns._schema_versioning_name(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (SELECT f.name FROM docpatterns._pattern_find($1, $2, 'schema_versioning') f);
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_name(regclass, text) IS
  'the name of a schema versioning declaration, or of the only one; errors 22004, 42704, 22023';

CREATE FUNCTION docpatterns._schema_versioning_known(rel regclass, name text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (SELECT FROM docpatterns._pattern_declarations($1) d
      WHERE d.pattern = 'schema_versioning' AND d.name = $2)
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_known(regclass, text) IS
  'whether a table has a schema versioning declaration of that name';

-- Declaring ---------------------------------------------------------------------------------------

-- Views and functions begin with the name of the table, unless it is so long that those of another
-- table would be called the same.
CREATE FUNCTION docpatterns._schema_versioning_stem(schema_name text, table_name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  result text := table_name;
  view_name text := docpatterns._pattern_object_name(table_name, NULL, 'current');
  n int := 0;
BEGIN
  WHILE view_name <> table_name || '_current'
      AND to_regclass(format('%I.%I', schema_name, view_name)) IS NOT NULL LOOP
    n := n + 1;
    result := left(docpatterns._pattern_object_name(table_name, NULL, 'as_v99999_9999'),
        -length('_as_v99999_9999')) || '_' || n;
    view_name := result || '_current';
  END LOOP;
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_stem(text, text) IS
  'the name of a table, or a shorter one that no views of the schema begin with';

CREATE FUNCTION docpatterns._schema_versioning_verify(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM docpatterns._pattern_declarations(rel) d
             WHERE d.pattern = 'schema_versioning'
               AND d.name <> @extschema@.bson_get_text(_schema_versioning_verify.options, 'name')
               AND @extschema@.bson_get_text(d.options, 'doc_column')
                     = @extschema@.bson_get_text(_schema_versioning_verify.options,
                           'doc_column')) THEN
    RAISE EXCEPTION 'documents in table "%" already have a version field', docpatterns._relname(rel)
      USING ERRCODE = 'duplicate_object';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_verify(regclass, bson) IS
  'error 42710 if the documents have a field with their version already';

CREATE FUNCTION schema_versioning_enable(
  rel regclass, field text DEFAULT 'schema_version', current int DEFAULT 1,
  write text DEFAULT 'upgrade', type text DEFAULT NULL,
  stem text DEFAULT NULL, name text DEFAULT NULL, doc_column text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  options @extschema@.bson;
  is_written boolean;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  PERFORM docpatterns._pattern_allow_triggers(rel);
  -- the field is written as the documents that are there have it; where none has it yet a migration
  -- looks again
  IF field IS NOT NULL THEN
    type := coalesce(type, docpatterns._schema_versioning_type(rel, t.doc, field));
  END IF;
  EXECUTE format('SELECT EXISTS (SELECT FROM (SELECT @extschema@.bson_get_text(b.%1$I, $1) AS '
      'value FROM %2$s AS b WHERE @extschema@.bson_exists(b.%1$I, $1) LIMIT 1000) v WHERE v.value '
      'IN (''1'', ''1.0''))',
                 t.doc, t.base) INTO is_written USING field;
  options := docpatterns._pattern_declare(rel, 'schema_versioning', @extschema@.bson_build(
    'name', coalesce(name, field), 'field', field, 'current', current, 'write', write,
    'first', is_written, 'stem', coalesce(stem,
      docpatterns._schema_versioning_stem(t.schema_name, t.table_name)),
    'steps', ARRAY[]::text[], 'doc_column', t.doc, 'type', type));
  name := @extschema@.bson_get_text(options, 'name');
  PERFORM docpatterns._schema_versioning_declare(rel, options, '{}', '{}');
  IF docpatterns._pattern_nonempty(rel) THEN
    RAISE NOTICE 'table "%" already has rows', docpatterns._relname(rel)
      USING HINT = format('Declare the steps to version %s with schema_versioning_step(), then run '
          'CALL schema_versioning_migrate(%L).',
          current, t.base);
  END IF;
  RETURN name;
END
$$;
COMMENT ON FUNCTION schema_versioning_enable(regclass, text, int, text, text, text, text, text) IS
  'Declares the schema versioning pattern: documents of several versions, told apart by a field '
  '(absent: 1). write says what happens to older documents that are written: upgrade or accept. '
  'Creates the views <stem>_current and <stem>_v<n> and the functions <stem>_as_v<n>(doc); stem '
  'defaults to the name of the table. Returns the name of the declaration (default: the field). '
  'Locks the table against writers. Errors: 22023 options that do not fit, 42710 a second '
  'declaration, 42P07 or 42723 a name is taken, 42501 unless the caller owns the table';

-- The type that most documents have the field in, of the first ones that have it.
CREATE FUNCTION docpatterns._schema_versioning_type(rel regclass, doc text, field text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  result text;
BEGIN
  EXECUTE format('SELECT mode() WITHIN GROUP (ORDER BY @extschema@.bson_typeof(v.value)) '
                 'FROM (SELECT b.%1$I OPERATOR(@extschema@.->) $1 AS value FROM %2$s AS b WHERE '
                   '@extschema@.bson_exists(b.%1$I, $1) LIMIT 1000) v '
                 'WHERE @extschema@.bson_typeof(v.value) = ANY '
                     '(''{int,long,double,decimal,string}'')', doc, rel) INTO result USING field;
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_type(regclass, text, text) IS
  'the type that documents have the field with their version in, NULL where none has it';

-- Creates the functions, triggers and views of a declaration. steps are the functions of the steps,
-- changed the versions whose function would return other results: these get a new one. A function
-- with the same results, or more, is kept.
CREATE FUNCTION docpatterns._schema_versioning_declare(rel regclass, options bson,
  steps regprocedure[], changed int[]) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  name text := @extschema@.bson_get_text(options, 'name');
  versions int[] := docpatterns._schema_versioning_versions(options);
  known boolean := docpatterns._schema_versioning_known(rel,
      @extschema@.bson_get_text(options, 'name'));
  old_functions regprocedure[] := '{}';
  functions regprocedure[] := '{}';
  existing regprocedure;
  kept regprocedure[] := '{}';
  kept_versions int[] := '{}';
  f record;
  v int;
BEGIN
  PERFORM docpatterns._pattern_allow_triggers(rel);
  PERFORM docpatterns._schema_versioning_valid(rel, options, steps);
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) p;
  IF known THEN
    old_functions := ARRAY(SELECT r.function
        FROM docpatterns._schema_versioning_refers(rel, name, false) r);
  END IF;
  FOREACH v IN ARRAY versions LOOP
    existing := NULL;
    IF known THEN
      SELECT r.function INTO existing FROM docpatterns._schema_versioning_refers(rel, name, false) r
        WHERE r.version = v;
    END IF;
    functions := functions || docpatterns._schema_versioning_create_function(rel, options, steps, v,
        CASE WHEN v = ANY (changed) THEN NULL ELSE existing END);
  END LOOP;

  EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE INSERT OR UPDATE ON %s FOR EACH ROW %s '
      'EXECUTE FUNCTION docpatterns.schema_versioning_trigger(%L)',
                 docpatterns._pattern_own_trigger(rel, 10, 'schema_versioning', name, NULL, 23),
                 t.base,
                 CASE WHEN cardinality(steps) = 0 THEN ''
                      ELSE
                        format('WHEN (docpatterns._schema_versioning_uses(NULL::pg_catalog.int4[], '
                          'ARRAY[%s]))',
                                  (SELECT string_agg(format('%L::pg_catalog.regprocedure',
                                      u.s::text), ', ' ORDER BY n) FROM unnest(steps)
                                    WITH ORDINALITY AS u (s, n))) END,
                 options::text);
  PERFORM docpatterns._schema_versioning_create_view(rel, options, 'current',
      functions[array_position(versions, @extschema@.bson_get_text(options, 'current')::int)]);
  FOR f IN SELECT u.version, u.function
      FROM unnest(versions, functions) AS u (version, function) LOOP
    PERFORM docpatterns._schema_versioning_create_view(rel, options, f.version::text, f.function);
  END LOOP;
  PERFORM docpatterns._schema_versioning_drop_views(rel, name, ARRAY['current']
      || versions::text[]);

  -- functions that were replaced stay while something uses them; their versions are noted as
  -- negative numbers
  FOR f IN SELECT r.version, r.function
      FROM docpatterns._schema_versioning_refers(rel, name, false) r WHERE known
      AND NOT r.function = ANY (functions) LOOP
    IF EXISTS (SELECT FROM pg_depend d WHERE d.refclassid = 'pg_proc'::regclass
        AND d.refobjid = f.function
               AND NOT (d.classid = 'pg_trigger'::regclass
                     AND EXISTS (SELECT FROM pg_trigger g WHERE g.oid = d.objid AND g.tgrelid = rel
                       AND g.tgfoid = 'docpatterns.schema_versioning_trigger'::regproc))) THEN
      kept := kept || f.function;
      kept_versions := kept_versions || -abs(f.version);
    END IF;
  END LOOP;
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER TRUNCATE ON %s FOR EACH STATEMENT WHEN '
      '(docpatterns._schema_versioning_uses(%L::pg_catalog.int4[], ARRAY[%s])) EXECUTE FUNCTION '
      'docpatterns.schema_versioning_trigger(%L, %L)',
                 docpatterns._pattern_own_trigger(rel, 10, 'schema_versioning', name, 'functions',
                   32), t.base, versions || kept_versions,
                 (SELECT string_agg(format('%L::pg_catalog.regprocedure', u.f::text), ', '
                     ORDER BY n) FROM unnest(functions || kept) WITH ORDINALITY AS u (f, n)), 'of',
                 name);
  FOR f IN SELECT u.f AS function FROM unnest(old_functions) AS u (f)
      WHERE NOT u.f = ANY (functions || kept) LOOP
    EXECUTE format('DROP FUNCTION %s', f.function);
  END LOOP;
  PERFORM docpatterns._schema_versioning_rename_functions(rel, options, versions, functions);
  IF cardinality(changed) > 0 AND cardinality(kept) > 0 THEN
    RAISE NOTICE 'functions in use are kept beside the new ones: %',
      array_to_string(kept, ', ')
      USING HINT = 'Re-create the indexes and views that use them with the functions that '
        'pattern_repair() keeps.';
  END IF;
  PERFORM docpatterns._pattern_anchor(rel, @extschema@.bson_get_text(options, 'name'));
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_declare(regclass, bson, regprocedure[], int[]) IS
  'makes functions, triggers and views of a schema versioning declaration';

-- The options of a generated function, which convert a document to a version.
CREATE FUNCTION docpatterns._schema_versioning_chain(options bson, version int) RETURNS bson
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT @extschema@.bson_build('version', $2, 'field', $1 OPERATOR(@extschema@.->) 'field'::text,
      'type', coalesce(@extschema@.bson_get_text($1, 'type'), 'int'),
                                'first', $1 OPERATOR(@extschema@.->) 'first'::text,
                                'steps', (SELECT coalesce(@extschema@.bson_agg(
                                    CASE WHEN @extschema@.bson_exists(u.step,
                                          'down_function') THEN @extschema@.bson_set(u.step,
                                          'down_function', true) ELSE u.step END
                                        ORDER BY s.since), '[]'::@extschema@.bson_value)
                                  FROM docpatterns._schema_versioning_steps($1) s
                                    CROSS JOIN LATERAL (SELECT CASE
                                        WHEN @extschema@.bson_exists(s.step,
                                          'up_function') THEN @extschema@.bson_set(s.step,
                                          'up_function', true) ELSE s.step
                                        END) AS u (step)))
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_chain(bson, int) IS
  'the constant that the generated function of a version calls _schema_versioning_as with';

CREATE FUNCTION docpatterns._schema_versioning_function_name(options bson, version int) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._pattern_object_name(@extschema@.bson_get_text($1, 'stem'), NULL,
      format('as_v%s', $2))
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_function_name(bson, int) IS
  'how the generated function of a version is called, unless there was one before it';

-- The function of a version: the one that it has, which then answers more than before, or a new
-- one.
CREATE FUNCTION docpatterns._schema_versioning_create_function(rel regclass, options bson,
  steps regprocedure[], version int, existing regprocedure) RETURNS regprocedure
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  qualified text;
  plain text;
  n int := 1;
  parallel boolean := NOT EXISTS (SELECT FROM pg_proc p WHERE p.oid = ANY (steps)
      AND p.proparallel <> 's');
  known boolean := docpatterns._schema_versioning_known(rel,
      @extschema@.bson_get_text(options, 'name'));
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) p;
  IF existing IS NOT NULL THEN
    SELECT format('%I.%I', s.nspname, p.proname) INTO qualified FROM pg_proc p
      JOIN pg_namespace s ON s.oid = p.pronamespace WHERE p.oid = existing;
  ELSE
    plain := docpatterns._schema_versioning_function_name(options, version);
    LOOP
      qualified := format('%I.%I', t.schema_name, plain);
      EXIT WHEN to_regprocedure(qualified || '(@extschema@.bson)') IS NULL;
      IF NOT known THEN
        RAISE EXCEPTION 'function %(bson) already exists', qualified
          USING ERRCODE = 'duplicate_function',
          HINT = 'Specify another name in the argument "stem".';
      END IF;
      n := n + 1;
      plain := docpatterns._pattern_object_name(@extschema@.bson_get_text(options, 'stem'), NULL,
          format('as_v%s_%s', version, n));
    END LOOP;
  END IF;
  EXECUTE format('CREATE %s FUNCTION %s(doc @extschema@.bson) RETURNS @extschema@.bson LANGUAGE '
      'sql IMMUTABLE PARALLEL %s '
                 'RETURN docpatterns.%s(doc, %L::@extschema@.bson, '
                   'ARRAY[%s]::pg_catalog.regprocedure[])',
                 CASE WHEN existing IS NULL THEN '' ELSE 'OR REPLACE' END, qualified, CASE
                   WHEN parallel THEN 'SAFE' ELSE 'UNSAFE' END,
                 CASE WHEN parallel THEN '_schema_versioning_as' ELSE '_schema_versioning_as_alone'
                   END, docpatterns._schema_versioning_chain(options, version),
                 (SELECT string_agg(format('%L::pg_catalog.regprocedure', u.s::text), ', '
                     ORDER BY u.n) FROM unnest(steps) WITH ORDINALITY AS u (s, n)));
  IF existing IS NOT NULL THEN
    PERFORM docpatterns._schema_versioning_renew(rel, existing);
  ELSE
    EXECUTE format('COMMENT ON FUNCTION %s(@extschema@.bson) IS %L', qualified,
        format('a document of %s in version %s of its schema, whatever version it is stored in',
          t.base, version));
    EXECUTE format('ALTER FUNCTION %s(@extschema@.bson) OWNER TO %s', qualified, t.owner::regrole);
  END IF;
  RETURN to_regprocedure(qualified || '(@extschema@.bson)');
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_create_function(regclass, bson, regprocedure[],
  int, regprocedure) IS
  'makes the generated function of a version, or lets it know more steps; error 42723';

CREATE FUNCTION docpatterns._schema_versioning_renew(rel regclass, function regprocedure)
  RETURNS void
  AS 'MODULE_PATHNAME', 'dp_schema_versioning_renew' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._schema_versioning_renew(regclass, regprocedure) IS
  'tells all sessions that indexes use a function whose body is another one: they keep expressions '
  'with the bodies of functions in them; error 42501 unless the caller owns the table';

-- Gives a function its name when the function that had it before has been dropped.
CREATE FUNCTION docpatterns._schema_versioning_rename_functions(rel regclass, options bson,
  versions int[], functions regprocedure[]) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  f record;
BEGIN
  FOR f IN
    SELECT u.function, docpatterns._schema_versioning_function_name(options, u.version) AS wanted,
      p.pronamespace::regnamespace AS schema_name
    FROM unnest(versions, functions) AS u (version, function) JOIN pg_proc p ON p.oid = u.function
    WHERE starts_with(p.proname, docpatterns._schema_versioning_function_name(options, u.version)
        || '_')
  LOOP
    IF to_regprocedure(format('%s.%I(@extschema@.bson)', f.schema_name, f.wanted)) IS NULL THEN
      EXECUTE format('ALTER FUNCTION %s RENAME TO %I', f.function, f.wanted);
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_rename_functions(regclass, bson, int[],
  regprocedure[]) IS
  'gives generated functions their plain names where these are free';

CREATE FUNCTION docpatterns._schema_versioning_view(rel regclass, name text, version text,
  owner oid DEFAULT NULL) RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT v.oid::regclass
  FROM pg_depend d
    JOIN pg_rewrite r ON r.oid = d.objid
    JOIN pg_class v ON v.oid = r.ev_class AND v.relkind = 'v'
    JOIN pg_trigger t ON t.tgrelid = v.oid
      AND t.tgfoid = 'docpatterns.schema_versioning_view_trigger'::regproc
  WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
    AND d.refobjid = $1
    AND t.tgargs = docpatterns._pattern_arguments($2, ltrim($3, 'v'))
    AND 'security_invoker=true' = ANY (v.reloptions)
      AND v.relowner = coalesce($4, (SELECT c.relowner FROM pg_class c WHERE c.oid = $1))
  ORDER BY v.oid LIMIT 1
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_view(regclass, text, text, oid) IS
  'the view of a version (or of the current one: "current") of a declaration, whatever it is '
  'called now; of the table''s owner, or of the one given';

CREATE FUNCTION docpatterns._schema_versioning_view_labels(options bson) RETURNS text[]
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT array_agg('v' || v) || 'current'::text
  FROM unnest(docpatterns._schema_versioning_versions($1)) v
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_view_labels(bson) IS
  'what its views are named after';

-- Writes through a view lock it before the table; so do changes of a declaration.
CREATE FUNCTION docpatterns._schema_versioning_lock(rel regclass, views regclass[]) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_schema_versioning_lock' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._schema_versioning_lock(regclass, regclass[]) IS
  'locks views exclusively and then their table against writers; error 42501 unless the caller '
  'owns them all';

CREATE FUNCTION docpatterns._schema_versioning_views(rel regclass, name text) RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT v.oid::regclass
  FROM pg_depend d
    JOIN pg_rewrite r ON r.oid = d.objid
    JOIN pg_class v ON v.oid = r.ev_class AND v.relkind = 'v'
    JOIN pg_trigger t ON t.tgrelid = v.oid
      AND t.tgfoid = 'docpatterns.schema_versioning_view_trigger'::regproc
  WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
    AND d.refobjid = $1
    AND starts_with(encode(t.tgargs, 'hex'), encode(docpatterns._pattern_arguments($2), 'hex'))
    AND v.relowner = (SELECT c.relowner FROM pg_class c WHERE c.oid = $1)
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_views(regclass, text) IS
  'the views of a declaration that the owner of the table owns';

CREATE FUNCTION docpatterns._schema_versioning_create_view(rel regclass, options bson, version text,
  function regprocedure) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  name text := @extschema@.bson_get_text(options, 'name');
  existing regclass := docpatterns._schema_versioning_view(rel,
      @extschema@.bson_get_text(options, 'name'), version);
  qualified text;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) p;
  IF existing IS NOT NULL THEN
    SELECT format('%I.%I', s.nspname, c.relname) INTO qualified FROM pg_class c
      JOIN pg_namespace s ON s.oid = c.relnamespace WHERE c.oid = existing;
  ELSE
    qualified := format('%I.%I', t.schema_name,
        docpatterns._pattern_object_name(@extschema@.bson_get_text(options, 'stem'), NULL,
          CASE version WHEN 'current' THEN version ELSE 'v' || version END));
    IF to_regclass(qualified) IS NOT NULL THEN
      RAISE EXCEPTION 'relation "%" already exists',
          docpatterns._relname(qualified::regclass) USING ERRCODE = 'duplicate_table',
        HINT = 'Specify another name in the argument "stem".';
    END IF;
  END IF;
  -- a view keeps its columns' names when those of the table are renamed
  EXECUTE format('CREATE OR REPLACE VIEW %s WITH (security_invoker = true) AS SELECT %s FROM %s AS '
      'base', qualified,
    (SELECT string_agg(format(CASE WHEN a.attname = t.doc THEN '%3$I.%4$I(base.%1$I) AS %2$I'
          ELSE 'base.%1$I AS %2$I' END, a.attname, coalesce(v.attname, a.attname), s.nspname,
          p.proname), ', ' ORDER BY a.n)
     FROM (SELECT c.attname, row_number() OVER (ORDER BY c.attnum) AS n FROM pg_attribute c
         WHERE c.attrelid = rel AND c.attnum > 0 AND NOT c.attisdropped) AS a
       LEFT JOIN pg_attribute v ON v.attrelid = existing AND v.attnum = a.n
       CROSS JOIN pg_proc p JOIN pg_namespace s ON s.oid = p.pronamespace
     WHERE p.oid = function), t.base);
  IF existing IS NULL THEN
    EXECUTE format('CREATE TRIGGER zz_docpatterns_10_schema_versioning INSTEAD OF INSERT OR UPDATE '
        'OR DELETE ON %s '
                   'FOR EACH ROW EXECUTE FUNCTION docpatterns.schema_versioning_view_trigger(%L, '
                     '%L)', qualified, name, version);
    EXECUTE format('COMMENT ON VIEW %s IS %L', qualified,
        format('documents of %s in %s of their schema, whatever version they are stored in', t.base,
          CASE version WHEN 'current' THEN
            'the current version' ELSE
            'version ' || version END));
    PERFORM docpatterns._pattern_copy_grants(rel, qualified::regclass);
    EXECUTE format('ALTER VIEW %s OWNER TO %s', qualified, t.owner::regrole);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_create_view(regclass, bson, text,
  regprocedure) IS
  'makes the view of a version, or lets it use another function; error 42P07';

-- Views of versions that are not among these.
CREATE FUNCTION docpatterns._schema_versioning_drop_views(rel regclass, name text, keep text[])
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v record;
BEGIN
  FOR v IN
    SELECT w.view_rel FROM docpatterns._schema_versioning_views(rel, name) AS w (view_rel)
      JOIN pg_trigger t ON t.tgrelid = w.view_rel
      AND t.tgfoid = 'docpatterns.schema_versioning_view_trigger'::regproc
    WHERE NOT EXISTS (SELECT FROM unnest(keep) k
        WHERE t.tgargs = docpatterns._pattern_arguments(name, k))
  LOOP
    EXECUTE format('DROP VIEW %s', v.view_rel);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_drop_views(regclass, text, text[]) IS
  'drops the views of a declaration whose versions are not named';

-- Steps -------------------------------------------------------------------------------------------

CREATE FUNCTION schema_versioning_step(
  rel regclass, since int, until int, up regprocedure DEFAULT NULL, down regprocedure DEFAULT NULL,
  up_update bson_value DEFAULT NULL, down_update bson_value DEFAULT NULL, schema bson DEFAULT NULL,
    name text DEFAULT NULL) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  s record;
  o record;
  options @extschema@.bson;
  before regprocedure[];
  steps @extschema@.bson[] := '{}';
  functions regprocedure[] := '{}';
  step @extschema@.bson;
  changed int[] := '{}';
  i int := 0;
BEGIN
  IF rel IS NULL OR since IS NULL OR until IS NULL THEN
    RAISE EXCEPTION 'rel, since and until must not be null'
      USING ERRCODE = 'null_value_not_allowed';
  END IF;
  PERFORM docpatterns._pattern_require_owner(rel);
  name := docpatterns._schema_versioning_name(rel, name);
  PERFORM docpatterns._schema_versioning_lock(rel,
      ARRAY(SELECT v FROM docpatterns._schema_versioning_views(rel, name) v ORDER BY v));
  SELECT q.* INTO p FROM docpatterns._schema_versioning_parts(rel, name) q;
  IF since < 1 OR until <= since THEN
    RAISE EXCEPTION 'a step must lead to a later version'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF num_nonnulls(up, up_update) <> 1 OR num_nonnulls(down, down_update) > 1 THEN
    RAISE EXCEPTION 'exactly one of up and up_update, and at most one of down and down_update, '
      'must be specified' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  step := @extschema@.bson_build('since', since, 'until', until);
  step := CASE WHEN up IS NOT NULL THEN @extschema@.bson_set(step, 'up_function', up::text) ELSE
    @extschema@.bson_set(step, 'up_update', up_update) END;
  step := CASE WHEN down IS NOT NULL THEN @extschema@.bson_set(step, 'down_function', down::text)
    WHEN down_update IS NOT NULL THEN @extschema@.bson_set(step, 'down_update', down_update) ELSE
    step END;

  -- functions of former steps, if an index uses them, cannot read documents of the new one
  IF NOT EXISTS (SELECT FROM docpatterns._schema_versioning_steps(p.options) t
      WHERE t.since = schema_versioning_step.since AND t.until = schema_versioning_step.until)
     AND EXISTS (SELECT FROM docpatterns._schema_versioning_refers(rel, name, false) r
         WHERE r.version < 0) THEN
    PERFORM @extschema@.pattern_repair(rel, name);
    IF EXISTS (SELECT FROM docpatterns._schema_versioning_refers(rel, name, false) r
          WHERE r.version < 0) THEN
      RAISE EXCEPTION 'functions of a replaced step are still in use: %',
        (SELECT string_agg(r.function::text, ', ')
          FROM docpatterns._schema_versioning_refers(rel, name, false) r WHERE r.version < 0)
        USING ERRCODE = 'object_not_in_prerequisite_state',
          DETAIL = 'They cannot read documents of another version.',
          HINT = 'First re-create the indexes and views that use them with the present functions.';
    END IF;
  END IF;

  -- the functions of all steps, in order
  before := ARRAY(SELECT r.function FROM docpatterns._schema_versioning_refers(rel, name, true) r);
  FOR s IN SELECT t.since, t.until, t.step AS old_step, t.since = schema_versioning_step.since
    AND t.until = schema_versioning_step.until AS is_this
           FROM docpatterns._schema_versioning_steps(p.options) t
           UNION ALL
           SELECT schema_versioning_step.since, schema_versioning_step.until, NULL, true
           WHERE NOT EXISTS (SELECT FROM docpatterns._schema_versioning_steps(p.options) t
               WHERE t.since = schema_versioning_step.since
               AND t.until = schema_versioning_step.until)
           ORDER BY 1 LOOP
    IF NOT s.is_this AND int4range(s.since, s.until) && int4range(since, until) THEN
      RAISE EXCEPTION 'a step from version % to version % already exists', s.since, s.until
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Steps must form one chain.';
    END IF;
    o := NULL;
    SELECT CASE WHEN @extschema@.bson_exists(s.old_step, 'up_function') THEN before[i + 1]
      END AS up_was,
           CASE WHEN @extschema@.bson_exists(s.old_step, 'down_function') THEN
             before[i + 1 + @extschema@.bson_exists(s.old_step, 'up_function')::int] END AS down_was
             INTO o;
    i := i + num_nonnulls(o.up_was, o.down_was);
    IF NOT s.is_this THEN
      steps := steps || s.old_step;
      functions := functions || array_remove(ARRAY[o.up_was, o.down_was], NULL);
      CONTINUE;
    END IF;
    steps := steps || step;
    functions := functions || array_remove(ARRAY[up, down], NULL);
    IF s.old_step IS NOT NULL THEN
      -- functions that would answer otherwise from now on: of this version and later ones when the
      -- way up is another, of earlier ones for the way down
      IF o.up_was IS DISTINCT FROM up
          OR @extschema@.bson_build('u', @extschema@.bson_get(s.old_step, 'up_update'))::bytea
          <> @extschema@.bson_build('u', up_update)::bytea THEN
        changed := changed || ARRAY(SELECT v FROM unnest(p.versions) v WHERE v >= until);
      END IF;
      IF o.down_was IS DISTINCT FROM down
          OR @extschema@.bson_build('u', @extschema@.bson_get(s.old_step, 'down_update'))::bytea
          <> @extschema@.bson_build('u', down_update)::bytea THEN
        -- a way down where there was none changes no answer
        IF num_nonnulls(o.down_was, @extschema@.bson_get(s.old_step, 'down_update')) > 0 THEN
          changed := changed || ARRAY(SELECT v FROM unnest(p.versions) v WHERE v <= since);
        END IF;
      END IF;
    END IF;
  END LOOP;
  options := @extschema@.bson_set(p.options, 'steps', @extschema@.to_bson(steps));
  IF schema IS NOT NULL THEN
    options := docpatterns._schema_versioning_with_schema(options, until, schema);
  END IF;
  PERFORM docpatterns._pattern_call('declare', rel, 'schema_versioning', name,
      @extschema@.bson_build('options', options, 'steps', functions::oid[]::bigint[], 'changed',
        changed));
END
$$;
COMMENT ON FUNCTION schema_versioning_step(regclass, int, int, regprocedure, regprocedure,
  bson_value, bson_value, bson, text) IS
  'Declares or replaces the step from a version to the next: an immutable function of a bson each '
  'way (up, down), or an update document or array of stages (up_update, down_update). schema is '
  'for documents of the later version. Locks the views, then the table against writers for a '
  'moment. Errors: 22023 steps that do not form a chain, 42P17 a function that is not immutable or '
  'does not map bson to bson, 42501 unless the caller owns the table and may call the functions';

CREATE FUNCTION docpatterns._schema_versioning_with_schema(options bson, version int, schema bson)
  RETURNS bson
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT @extschema@.bson_set($1, 'schemas',
    (SELECT @extschema@.bson_agg(e.item ORDER BY e.version)
     FROM (SELECT s.item, (s.item OPERATOR(@extschema@.->) 'version'::text)::int AS version
           FROM @extschema@.bson_elements(CASE
               WHEN @extschema@.bson_exists($1, 'schemas') THEN $1 OPERATOR(@extschema@.->)
               'schemas'::text ELSE '[]'::@extschema@.bson_value END) AS s (item)
           WHERE (s.item OPERATOR(@extschema@.->) 'version'::text)::int <> $2
           UNION ALL SELECT @extschema@.to_bson(@extschema@.bson_build('version', $2, 'schema',
                   $3)), $2) e))
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_with_schema(bson, int, bson) IS
  'options with the schema of a version';

-- _pattern_call() runs it as the owner of the table, so the owner owns what it creates.
CREATE FUNCTION docpatterns._schema_versioning_declare(rel regclass, name text, what bson)
  RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM docpatterns._schema_versioning_declare(rel,
      (what OPERATOR(@extschema@.->) 'options'::text)::@extschema@.bson,
    ARRAY(SELECT e::bigint::oid::regprocedure
      FROM @extschema@.bson_elements(what OPERATOR(@extschema@.->) 'steps'::text) e),
    ARRAY(SELECT e::int FROM @extschema@.bson_elements(what OPERATOR(@extschema@.->)
        'changed'::text) e));
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_declare(regclass, text, bson) IS
  'declares options, steps and changed versions, as the owner of the table';

-- Verbs -------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._schema_versioning_version(doc bson, field text) RETURNS int
  AS 'MODULE_PATHNAME', 'dp_schema_versioning_version' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._schema_versioning_version(bson, text) IS
  'the version that a field of a document tells: 1 when it is absent or null, NULL when it tells '
  'none';

-- The generated function of a version, as it is written in SQL.
CREATE FUNCTION docpatterns._schema_versioning_call(rel regclass, name text, version int)
  RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('%I.%I', s.nspname, p.proname)
  FROM docpatterns._schema_versioning_refers($1, $2, false) r JOIN pg_proc p ON p.oid = r.function
    JOIN pg_namespace s ON s.oid = p.pronamespace
  WHERE r.version = $3
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_call(regclass, text, int) IS
  'the qualified name of the generated function of a version, NULL when there is none';

CREATE FUNCTION docpatterns._schema_versioning_check(rel regclass, name text)
  RETURNS TABLE (key bson_value, what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  s record;
  r record;
  steps regprocedure[];
  call text;
  wrong bigint;
  valid boolean;
BEGIN
  SELECT q.* INTO p FROM docpatterns._schema_versioning_parts(rel, name) q;
  steps := ARRAY(SELECT f.function FROM docpatterns._schema_versioning_refers(rel, name, true) f);
  BEGIN
    PERFORM docpatterns._schema_versioning_valid(rel, p.options, steps);
  EXCEPTION WHEN invalid_parameter_value OR invalid_object_definition OR insufficient_privilege
    OR feature_not_supported THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'declaration'::text, 'valid'::text, SQLERRM;
    RETURN;
  END;
  FOR s IN SELECT v AS version FROM unnest(p.versions) v
      WHERE docpatterns._schema_versioning_call(rel, name, v) IS NULL LOOP
    RETURN QUERY SELECT NULL::@extschema@.bson_value, format('function of version %s', s.version),
      'present'::text, 'missing'::text;
  END LOOP;
  FOR s IN SELECT v AS version FROM unnest(ARRAY['current'] || p.versions::text[]) v
      WHERE docpatterns._schema_versioning_view(rel, name, v) IS NULL LOOP
    RETURN QUERY SELECT NULL::@extschema@.bson_value, format('view of version %s', s.version),
      'present'::text, 'missing'::text;
  END LOOP;
  RETURN QUERY EXECUTE format($q$
    SELECT %1$s, 'version'::text, $2::text,
      coalesce(v.version::text, @extschema@.bson_typeof(b.%2$I, $1))
    FROM %3$s AS b CROSS JOIN LATERAL (SELECT docpatterns._schema_versioning_version(b.%2$I,
          $1) AS version OFFSET 0) AS v
    WHERE b.%2$I IS NOT NULL AND (v.version IS NULL OR NOT v.version = ANY ($3))
    $q$, p.key_value, p.doc, p.base)
    USING p.field, 'one of ' || array_to_string(ARRAY(SELECT v FROM unnest(p.versions) v
          WHERE v <= p.current), ', '), ARRAY(SELECT v FROM unnest(p.versions) v
        WHERE v <= p.current);

  -- documents must satisfy the schema of their version, older ones after conversion
  FOR s IN
    SELECT (e OPERATOR(@extschema@.->) 'version'::text)::int AS version,
      (e OPERATOR(@extschema@.->) 'schema'::text)::@extschema@.bson AS schema
    FROM @extschema@.bson_elements(CASE
        WHEN @extschema@.bson_exists(p.options, 'schemas') THEN p.options OPERATOR(@extschema@.->)
        'schemas'::text ELSE '[]'::@extschema@.bson_value END) e
  LOOP
    call := docpatterns._schema_versioning_call(rel, name, s.version);
    CONTINUE WHEN call IS NULL OR s.version > p.current;
    BEGIN
      EXECUTE format('SELECT count(*) FROM %2$s AS b CROSS JOIN LATERAL (SELECT '
          'docpatterns._schema_versioning_version(b.%1$I, $1) AS version OFFSET 0) AS v '
                     'WHERE CASE WHEN v.version = $2 OR $2 = $3 AND v.version = ANY ($4) AND '
                       'v.version < $2 THEN NOT @extschema@.bson_validate(%3$s(b.%1$I), $5) ELSE '
                       'false END',
                     p.doc, p.base, call)
        INTO wrong USING p.field, s.version, p.current, p.versions, s.schema;
    EXCEPTION WHEN OTHERS THEN
      IF SQLSTATE ~ '^(40|53|57)' THEN
        RAISE;
      END IF;
      wrong := NULL;
    END;
    CONTINUE WHEN wrong = 0;
    FOR r IN EXECUTE format('SELECT %1$s AS key, b.%2$I AS doc FROM %3$s AS b CROSS JOIN LATERAL '
        '(SELECT docpatterns._schema_versioning_version(b.%2$I, $1) AS version OFFSET 0) AS v '
                            'WHERE v.version = $2 OR $2 = $3 AND v.version = ANY ($4) AND '
                              'v.version < $2', p.key_value, p.doc, p.base)
             USING p.field, s.version, p.current, p.versions LOOP
      BEGIN
        EXECUTE format('SELECT @extschema@.bson_validate(%s($1), $2)', call) INTO valid
          USING r.doc, s.schema;
        IF NOT valid THEN
          RETURN QUERY EXECUTE format('SELECT $1, format(''document in version %s, path "%%s", '
              'rule %%s'', e.path, e.rule), e.expected, e.found FROM '
              '@extschema@.bson_schema_errors(%s($2), $3) e LIMIT 1', s.version, call)
            USING r.key, r.doc, s.schema;
        END IF;
      EXCEPTION WHEN OTHERS THEN
        IF SQLSTATE ~ '^(40|53|57)' THEN
          RAISE;
        END IF;
        RETURN QUERY SELECT r.key, format('document in version %s', s.version), 'can be made'::text,
          SQLERRM;
      END;
    END LOOP;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_check(regclass, text) IS
  'violated invariants of a schema versioning pattern';

-- Keys of documents that are older than they would be if they were written now.
CREATE FUNCTION docpatterns._schema_versioning_pending(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._schema_versioning_parts(rel, name) q;
  RETURN format('SELECT %s AS key FROM %s AS b WHERE %s AND '
      'docpatterns._schema_versioning_version(b.%I, %L) = ANY (%L::pg_catalog.int4[]) ORDER BY %s',
                p.key_row, p.base, (@extschema@.bson_get_text(p.options, 'write')
                  = 'upgrade')::text, p.doc, p.field, ARRAY(SELECT v FROM unnest(p.versions) v
                  WHERE v < p.current), p.key_list);
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_pending(regclass, text) IS
  'SQL text: keys of documents of older versions, where what is written is upgraded';

CREATE FUNCTION docpatterns._schema_versioning_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  IF docpatterns._pattern_table_of(rel) <> rel THEN
    RETURN 0;
  END IF;
  PERFORM docpatterns._schema_versioning_lock(rel,
      ARRAY(SELECT v FROM docpatterns._schema_versioning_views(rel, name) v ORDER BY v));
  SELECT q.* INTO p FROM docpatterns._schema_versioning_parts(rel, name) q;
  PERFORM docpatterns._schema_versioning_declare(rel, p.options,
      ARRAY(SELECT f.function FROM docpatterns._schema_versioning_refers(rel, name, true) f), '{}');
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_repair(regclass, text) IS
  'pattern_repair of the schema versioning pattern: creates missing functions and views; a wrong '
  'version in a document cannot be corrected';

CREATE FUNCTION docpatterns._schema_versioning_alter(rel regclass, name text, options bson)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  s record;
  o @extschema@.bson := options;
  current int;
  changed int[] := '{}';
  newer bigint;
BEGIN
  PERFORM docpatterns._schema_versioning_lock(rel,
      ARRAY(SELECT v FROM docpatterns._schema_versioning_views(rel, name) v ORDER BY v));
  SELECT q.* INTO p FROM docpatterns._schema_versioning_parts(rel, name) q;
  IF @extschema@.bson_typeof(options, 'schemas') = 'object' THEN
    o := @extschema@.bson_unset(options, 'schemas');
    IF @extschema@.bson_exists(p.options, 'schemas') THEN
      o := @extschema@.bson_set(o, 'schemas', p.options OPERATOR(@extschema@.->) 'schemas'::text);
    END IF;
    FOR s IN SELECT e.key, e.value
        FROM @extschema@.bson_each((options OPERATOR(@extschema@.->)
            'schemas'::text)::@extschema@.bson) e LOOP
      IF s.key !~ '^[1-9][0-9]{0,8}$' OR NOT s.key::int = ANY (p.versions) THEN
        RAISE EXCEPTION 'version "%" does not exist', s.key
          USING ERRCODE = 'invalid_parameter_value';
      END IF;
      IF @extschema@.bson_typeof(s.value) = 'null' THEN
        o := @extschema@.bson_set(o, 'schemas',
            (SELECT coalesce(@extschema@.bson_agg(e), '[]'::@extschema@.bson_value)
               FROM @extschema@.bson_elements(CASE
                   WHEN @extschema@.bson_exists(o, 'schemas') THEN o OPERATOR(@extschema@.->)
                   'schemas'::text ELSE '[]'::@extschema@.bson_value END) e
               WHERE (e OPERATOR(@extschema@.->) 'version'::text)::int <> s.key::int));
      ELSE
        o := docpatterns._schema_versioning_with_schema(o, s.key::int, s.value::@extschema@.bson);
      END IF;
    END LOOP;
  ELSIF (options OPERATOR(@extschema@.->) 'schemas'::text)::text
        IS DISTINCT FROM (p.options OPERATOR(@extschema@.->) 'schemas'::text)::text THEN
    RAISE EXCEPTION 'schemas must be a document of versions'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF coalesce(@extschema@.bson_get_text(o, 'type'), 'int')
    <> coalesce(@extschema@.bson_get_text(p.options, 'type'), 'int')
     OR @extschema@.bson_get_text(o, 'first') <> @extschema@.bson_get_text(p.options, 'first') THEN
    changed := p.versions;
  END IF;

  current := @extschema@.bson_get_text(o, 'current')::int;
  IF NOT current = ANY (p.versions) THEN
    RAISE EXCEPTION 'version % has no steps', current USING ERRCODE = 'invalid_parameter_value',
      HINT = 'Declare them with schema_versioning_step() first.';
  END IF;
  IF current < p.current THEN
    EXECUTE format('SELECT count(*) FROM %s AS b WHERE '
        'docpatterns._schema_versioning_version(b.%I, $1) > $2', p.base, p.doc) INTO newer
      USING p.field, current;
    IF newer > 0 THEN
      RAISE EXCEPTION 'table "%" has % documents with versions newer than %',
          docpatterns._relname(rel), newer,
        current
        USING ERRCODE = 'check_violation',
          HINT = format('Run CALL schema_versioning_migrate(%L, target => %s) first.',
            p.base, current);
    END IF;
  END IF;
  PERFORM docpatterns._schema_versioning_declare(rel, o,
      ARRAY(SELECT f.function FROM docpatterns._schema_versioning_refers(rel, name, true) f),
      changed);
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_alter(regclass, text, bson) IS
  'pattern_alter of the schema versioning pattern';

CREATE FUNCTION docpatterns._schema_versioning_disable(rel regclass, name text, how bson)
  RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r record;
  functions regprocedure[];
  kept regprocedure[] := '{}';
BEGIN
  PERFORM docpatterns._schema_versioning_lock(rel,
      ARRAY(SELECT v FROM docpatterns._schema_versioning_views(rel, name) v ORDER BY v));
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  functions := ARRAY(SELECT f.function
      FROM docpatterns._schema_versioning_refers(rel, name, false) f);
  PERFORM docpatterns._schema_versioning_drop_views(rel, name, '{}');
  PERFORM docpatterns._pattern_drop_triggers(rel, 'schema_versioning', name);
  FOR r IN SELECT f AS function FROM unnest(functions) f LOOP
    IF EXISTS (SELECT FROM pg_depend d WHERE d.refclassid = 'pg_proc'::regclass
          AND d.refobjid = r.function) THEN
      kept := kept || r.function;
    ELSE
      EXECUTE format('DROP FUNCTION %s', r.function);
    END IF;
  END LOOP;
  IF cardinality(kept) > 0 THEN
    RAISE NOTICE 'functions in use are kept: %', array_to_string(kept, ', ');
  END IF;
  RETURN 0;
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_disable(regclass, text, bson) IS
  'pattern_disable of the schema versioning pattern: documents stay as they are';

-- Indexes may use the functions, so they are kept with all their properties: CREATE OR REPLACE only
-- keeps the owner and the grants.
CREATE FUNCTION docpatterns._schema_versioning_follow_owner(rel regclass, former oid) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  owner oid := (SELECT c.relowner FROM pg_class c WHERE c.oid = rel);
  d record;
  f record;
  v text;
  versions int[];
BEGIN
  FOR d IN SELECT q.name, q.options FROM docpatterns._pattern_declarations($1) q
      WHERE q.pattern = 'schema_versioning' LOOP
    versions := docpatterns._schema_versioning_versions(d.options);
    FOR f IN SELECT r.version, r.function, p.proowner
      FROM docpatterns._schema_versioning_refers($1, d.name, false) r
      JOIN pg_proc p ON p.oid = r.function
             WHERE r.version = ANY (versions) LOOP
      IF f.proowner = former THEN
        PERFORM docpatterns._schema_versioning_create_function($1, d.options,
            ARRAY(SELECT r.function FROM docpatterns._schema_versioning_refers($1, d.name, true) r),
            f.version, f.function);
        EXECUTE format('ALTER FUNCTION %s OWNER TO %s', f.function, owner::regrole);
      ELSE
        PERFORM docpatterns._pattern_require_trusted($1, f.function);
      END IF;
    END LOOP;
    FOREACH v IN ARRAY ARRAY['current'] || versions::text[] LOOP
      PERFORM docpatterns._pattern_renew_view($1,
          docpatterns._schema_versioning_view($1, d.name, v, former),
                format('SELECT docpatterns._schema_versioning_create_view(%L, %L, %L, %L)', $1,
                  d.options::text, v, r.function),
                format('SELECT docpatterns._schema_versioning_view(%L, %L, %L)', $1, d.name, v))
        FROM docpatterns._schema_versioning_refers($1, d.name, false) r
        WHERE r.version::text = CASE v WHEN 'current' THEN
          @extschema@.bson_get_text(d.options, 'current') ELSE v END;
    END LOOP;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._schema_versioning_follow_owner(regclass, oid) IS
  'makes the functions and views of schema versioning declarations again after a change of the '
  'table''s owner; error 55000 for a function of others';

-- How many documents of which version -------------------------------------------------------------

CREATE FUNCTION schema_versioning_histogram(rel regclass, name text DEFAULT NULL, OUT version int,
  OUT state text, OUT documents bigint, OUT bytes bigint) RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
BEGIN
  SELECT q.* INTO p FROM docpatterns._schema_versioning_parts(rel,
      docpatterns._schema_versioning_name(rel, name)) q;
  RETURN QUERY EXECUTE format($q$
    SELECT v.version, CASE WHEN v.version = $2 THEN 'current' WHEN v.version = ANY ($3)
      AND v.version < $2 THEN 'older' WHEN v.version = ANY ($3) THEN 'newer' ELSE 'unknown' END,
           count(*), sum(@extschema@.bson_size(b.%1$I))::bigint
    FROM %2$s AS b CROSS JOIN LATERAL (SELECT docpatterns._schema_versioning_version(b.%1$I,
          $1) AS version OFFSET 0) AS v
    WHERE b.%1$I IS NOT NULL GROUP BY v.version ORDER BY v.version
    $q$, p.doc, p.base) USING p.field, p.current, p.versions;
END
$$;
COMMENT ON FUNCTION schema_versioning_histogram(regclass, text) IS
  'The number and bytes of documents of each version; state is current, older, newer or unknown, '
  'version NULL where the field is invalid. Reads the whole table; needs SELECT';
