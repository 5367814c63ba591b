-- Handles objects of patterns when their table gets another owner. The former owner could have
-- changed any of them, or put code beside them, so none is reassigned unchanged: tables must be
-- free of other roles' code, views are dropped and created again from the declaration, functions
-- get their body again. Called by the event trigger, as the user who alters the table.

-- What runs when the database writes to tables with the rights of their owner, and others could put
-- anything into: functions of triggers, columns, constraints, indexes, statistics and policies,
-- domains. Names of types that hold no code are left out, and triggers of patterns that fire after
-- TRUNCATE: patterns truncate no table of users.
CREATE FUNCTION docpatterns._pattern_foreign_code(rels oid[], owner oid) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH parts (class, oid) AS (
    SELECT 'pg_class'::regclass, r FROM unnest($1) r
    UNION ALL SELECT 'pg_class'::regclass, i.indexrelid FROM pg_index i WHERE i.indrelid = ANY ($1)
    UNION ALL SELECT 'pg_constraint'::regclass, c.oid FROM pg_constraint c
      WHERE c.conrelid = ANY ($1)
    UNION ALL SELECT 'pg_attrdef'::regclass, a.oid FROM pg_attrdef a WHERE a.adrelid = ANY ($1)
    -- ANALYZE computes them as the table's owner
    UNION ALL SELECT 'pg_statistic_ext'::regclass, s.oid FROM pg_statistic_ext s
      WHERE s.stxrelid = ANY ($1)
    UNION ALL SELECT 'pg_policy'::regclass, y.oid FROM pg_policy y WHERE y.polrelid = ANY ($1)
    UNION ALL SELECT 'pg_trigger'::regclass, t.oid FROM pg_trigger t
      WHERE t.tgrelid = ANY ($1) AND NOT (t.tgtype = 32
        AND EXISTS (SELECT FROM pg_proc f WHERE f.oid = t.tgfoid
          AND f.pronamespace = 'docpatterns'::regnamespace))),
  trusted (oid) AS (SELECT r.oid FROM pg_roles r WHERE r.rolsuper OR r.oid = $2)
  SELECT string_agg(DISTINCT pg_describe_object(d.refclassid, d.refobjid, 0), ', ')
  FROM parts p JOIN pg_depend d ON d.classid = p.class AND d.objid = p.oid
    LEFT JOIN pg_proc f ON d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
    LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
    LEFT JOIN pg_opclass c ON d.refclassid = 'pg_opclass'::regclass AND c.oid = d.refobjid
    LEFT JOIN pg_type t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid
      AND t.typtype <> 'e'
      AND NOT EXISTS (SELECT FROM pg_type e WHERE e.oid = t.typelem AND e.typtype = 'e')
  WHERE coalesce(f.proowner, o.oprowner, c.opcowner, t.typowner) NOT IN (SELECT s.oid
      FROM trusted s)
$$;
COMMENT ON FUNCTION docpatterns._pattern_foreign_code(oid[], oid) IS
  'functions, operators, operator classes and domains that tables use and that belong neither to a '
  'role nor to a superuser, as text; NULL if there are none';

-- For functions that a declaration names, which have no catalog dependency.
CREATE FUNCTION docpatterns._pattern_require_trusted(rel regclass, function regprocedure)
  RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner
                   JOIN pg_class c ON c.oid = $1 WHERE p.oid = $2
                       AND (r.rolsuper OR r.oid = c.relowner)) THEN
    RAISE EXCEPTION 'function % of table "%" belongs to another role', $2, docpatterns._relname($1)
      USING ERRCODE = 'object_not_in_prerequisite_state',
            HINT = 'Change its owner if you trust it, and repeat the command.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_require_trusted(regclass, regprocedure) IS
  'error 55000 unless a function belongs to the owner of a table or to a superuser';

CREATE FUNCTION docpatterns._pattern_hand_over(side regclass, owner oid) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  code text := (SELECT concat_ws(', ', docpatterns._pattern_foreign_code(ARRAY[side::oid], owner),
                                 (SELECT string_agg(format('rule "%s"', r.rulename), ', ')
                                   FROM pg_rewrite r WHERE r.ev_class = side)));
  grantee text;
BEGIN
  IF code <> '' THEN
    RAISE EXCEPTION 'cannot change the owner of table "%" to "%"', docpatterns._relname(side),
        owner::regrole
      USING ERRCODE = 'object_not_in_prerequisite_state',
        DETAIL = format('Other roles can change its code: %s. A pattern writes to it with the '
          'privileges of its owner.', code),
            HINT = 'Drop the code, or change its owner if you trust it, and repeat the command.';
  END IF;
  FOR grantee IN SELECT DISTINCT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text
    END
                 FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a WHERE c.oid = side
                   AND a.grantee <> c.relowner LOOP
    EXECUTE format('REVOKE ALL ON %s FROM %s CASCADE', side, grantee);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_hand_over(regclass, oid) IS
  'raises 55000 if other roles can change code of a side table that will belong to a role, and '
  'revokes grants on it';

-- A pattern may have a function _<pattern>_view_labels(bson) where its options decide.
CREATE FUNCTION docpatterns._pattern_view_labels(pattern text, options bson) RETURNS text[]
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  labels text[] := CASE WHEN @extschema@.bson_exists(options, 'view') THEN
      ARRAY[@extschema@.bson_get_text(options, 'view')]
    ELSE string_to_array((docpatterns._pattern_facts(pattern)).views, ' ') END;
BEGIN
  IF docpatterns._pattern_hook(pattern, 'view_labels', '@extschema@.bson') IS NOT NULL THEN
    EXECUTE format('SELECT docpatterns.%I($1)', concat('_', pattern, '_view_labels'))
      INTO labels USING options;
  END IF;
  RETURN labels;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_view_labels(text, bson) IS
  'the last words of the names of the views that a declaration has, or the name where the option '
  'view has it; NULL if it has none';

-- A pattern whose views do not say what they are made for has a function
-- _<pattern>_view(regclass, text, text, oid) that finds them.
CREATE FUNCTION docpatterns._pattern_made_view(rel regclass, pattern text, name text,
  label text DEFAULT '', owner oid DEFAULT NULL) RETURNS regclass
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  result regclass;
BEGIN
  IF label = 'whole' THEN
    RETURN docpatterns._pattern_whole_view(rel, owner);
  ELSIF docpatterns._pattern_hook(pattern, 'view', 'regclass, text, text, oid') IS NULL THEN
    RETURN (SELECT v.view FROM docpatterns._pattern_views(rel, pattern, name, owner) v
      WHERE v.part IN ('', label) ORDER BY v.view LIMIT 1);
  END IF;
  EXECUTE format('SELECT docpatterns.%I($1, $2, $3, $4)', concat('_', pattern, '_view'))
    INTO result USING rel, name, label,
      coalesce(owner, (SELECT c.relowner FROM pg_class c WHERE c.oid = rel));
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_made_view(regclass, text, text, text, oid) IS
  'a view of a declaration, whatever it is called now, that belongs to the table''s owner or to '
  'the one given; NULL if there is none';

CREATE FUNCTION docpatterns._pattern_taken(rel regclass, pattern text, name text, OUT object text,
  OUT owner regrole, OUT intact boolean) RETURNS SETOF record
LANGUAGE docpatterns STABLE ROWS 1 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o @extschema@.bson := (SELECT d.options FROM docpatterns._pattern_declarations(rel) d
      WHERE d.pattern = $2 AND d.name = $3);
  t record;
  r record;
BEGIN
  SELECT c.relname::text, c.relnamespace, c.relowner INTO t FROM pg_class c WHERE c.oid = rel;
  FOR r IN
    SELECT c.oid, c.relowner, u.label
    FROM unnest(docpatterns._pattern_view_labels(pattern, o)) AS u (label)
      JOIN pg_class c ON c.relnamespace = t.relnamespace AND c.relname = CASE
        WHEN @extschema@.bson_exists(o, 'view') THEN u.label ELSE
        docpatterns._pattern_object_name(coalesce(@extschema@.bson_get_text(o, 'stem'), t.relname),
          NULL, u.label) END
    WHERE c.relowner <> t.relowner
  LOOP
    IF docpatterns._pattern_made_view(rel, pattern, name, r.label, t.relowner) IS NULL THEN
      object := r.oid::regclass::text;
      owner := r.relowner;
      intact := docpatterns._pattern_made_view(rel, pattern, name, r.label, r.relowner)
        IS NOT DISTINCT FROM r.oid::regclass;
      RETURN NEXT;
    END IF;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_taken(regclass, text, text) IS
  'relations of other roles that have the names of views that a declaration lacks, and whether '
  'they are such views: when the table got another owner they did not';

CREATE FUNCTION docpatterns._pattern_require_views(rel regclass, pattern text, name text)
  RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT q.* FROM docpatterns._pattern_taken($1, $2, $3) q LOOP
    RAISE EXCEPTION 'view "%" of pattern "%" has another owner than table "%"',
      docpatterns._relname(r.object::regclass), name, docpatterns._relname(rel)
      USING ERRCODE = 'object_not_in_prerequisite_state',
        DETAIL = format('It belongs to "%s".', r.owner),
            HINT = CASE WHEN r.intact THEN
            'Read its definition, then change its owner or drop it.' ELSE
            'The pattern did not create its current definition: drop or rename it.' END;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_require_views(regclass, text, text) IS
  'error 55000 where views that a pattern has to make would have the names of relations of other '
  'roles';

CREATE FUNCTION docpatterns._pattern_follow_owner(rel regclass, former oid) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  owner oid := (SELECT c.relowner FROM pg_class c WHERE c.oid = $1);
  rels oid[] := ARRAY(SELECT t.relid FROM pg_partition_tree($1) t UNION SELECT $1);
  p text;
  code text;
  taken record;
BEGIN
  IF owner <> former THEN
    FOR p IN SELECT DISTINCT d.pattern FROM docpatterns._pattern_declarations($1) d
             WHERE docpatterns._pattern_hook(d.pattern, 'follow_owner', 'regclass, oid') IS NOT NULL
               ORDER BY 1 LOOP
      EXECUTE format('SELECT docpatterns.%I($1, $2)', concat('_', p, '_follow_owner'))
        USING $1, former;
    END LOOP;
    PERFORM docpatterns._pattern_renew_view($1, docpatterns._pattern_whole_view($1, former),
              format('SELECT docpatterns._pattern_create_whole(%L, %L)', $1,
                (SELECT docpatterns._pattern_doc_column($1,
                    @extschema@.bson_get_text(d.options, 'doc_column'))
                  FROM docpatterns._pattern_declarations($1) d
                 WHERE 'whole' = ANY (docpatterns._pattern_view_labels(d.pattern, d.options))
                   ORDER BY d.trigger_oid LIMIT 1)),
              format('SELECT docpatterns._pattern_whole_view(%L)', $1));
    FOR taken IN SELECT DISTINCT q.object, q.owner FROM docpatterns._pattern_declarations($1) d
      CROSS JOIN LATERAL docpatterns._pattern_taken($1, d.pattern, d.name) q
             WHERE NOT q.intact ORDER BY 1 LOOP
      RAISE WARNING 'view "%" was changed by a user, so its owner remains "%"',
        docpatterns._relname(taken.object::regclass), taken.owner
        USING HINT = format('Drop or rename it, and call pattern_repair(%L).', $1);
    END LOOP;
  END IF;
  -- a partition is checked with its ancestor, to which statements write
  IF (SELECT c.relispartition FROM pg_class c WHERE c.oid = $1) THEN
    RETURN;
  END IF;
  -- a rule has no owner, and the relations it uses may have code, too
  code := concat_ws(', ', docpatterns._pattern_foreign_code(rels, owner),
    (SELECT string_agg(format('rule "%s" of "%s"', r.rulename,
            docpatterns._relname(r.ev_class)), ', '
        ORDER BY r.ev_class, r.rulename) FROM pg_rewrite r WHERE r.ev_class = ANY (rels)),
    -- a role that may create a trigger could do so afterwards
    (SELECT string_agg(DISTINCT format('the right TRIGGER of %s on "%s"', CASE a.grantee
            WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END, docpatterns._relname(c.oid)),
                ', ')
     FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a
       LEFT JOIN pg_roles g ON g.oid = a.grantee
     WHERE c.oid = ANY (rels) AND a.privilege_type = 'TRIGGER' AND a.grantee <> owner
       AND g.rolsuper IS NOT TRUE),
    (SELECT string_agg(format('partition "%s"', docpatterns._relname(c.oid)), ', ') FROM pg_class c
      JOIN pg_roles r ON r.oid = c.relowner WHERE c.oid = ANY (rels) AND c.relowner <> owner
      AND NOT r.rolsuper));
  IF code <> '' THEN
    RAISE EXCEPTION 'table "%" has code that would run with the privileges of "%"',
        docpatterns._relname($1), owner::regrole
      USING ERRCODE = 'object_not_in_prerequisite_state',
        DETAIL = format('Patterns write to it with the privileges of its owner, and other roles '
          'can change: %s.', code),
            HINT = 'Change the owner of these objects first if you trust them, or drop them, and '
              'repeat the command.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_follow_owner(regclass, oid) IS
  'creates the views and functions of a table''s patterns again, which belonged to its former '
  'owner; error 55000 if patterns would run code of other roles with the privileges of the new '
  'owner';

CREATE FUNCTION docpatterns._pattern_discard(VARIADIC objects text[]) RETURNS boolean
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  object text;
  others text;
BEGIN
  FOREACH object IN ARRAY objects LOOP
    EXECUTE 'DROP ' || object;
  END LOOP;
  RETURN true;
EXCEPTION WHEN dependent_objects_still_exist THEN
  GET STACKED DIAGNOSTICS others = PG_EXCEPTION_DETAIL;
  RAISE WARNING 'cannot create % again, so its owner remains unchanged', object
    USING DETAIL = others, HINT = format('Read its definition and change its owner with ALTER %s '
      'OWNER TO, or drop it and call pattern_repair().', object);
  RETURN false;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_discard(text[]) IS
  'drops views and functions (VIEW v, FUNCTION f(x)) that others do not depend on, all or none: '
  'then with a warning, and false';

-- The call that creates a view may not know the old one's name and grants.
CREATE FUNCTION docpatterns._pattern_renew_view(rel regclass, view regclass, make text, find text)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  old record;
  made regclass;
BEGIN
  IF view IS NULL THEN
    RETURN;
  END IF;
  SELECT n.nspname, c.relname, c.relacl, c.relowner INTO old FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = view;
  IF docpatterns._pattern_discard(format('VIEW %s', view)) THEN
    EXECUTE make;
    EXECUTE find INTO made;
    PERFORM docpatterns._pattern_move('VIEW', made::text, old.nspname, old.relname);
    PERFORM docpatterns._pattern_grant(old.relacl, old.relowner, made);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_renew_view(regclass, regclass, text, text) IS
  'drops a view of a table and creates it again, by a call, with its old name and grants; find is '
  'a query for it. Does nothing if view is NULL';

CREATE FUNCTION docpatterns._pattern_location(kind text, object text, OUT schema_name name,
  OUT name name)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE $1 = 'VIEW' AND c.oid = to_regclass($2)
  UNION ALL SELECT n.nspname, f.proname FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace
    WHERE $1 = 'FUNCTION' AND f.oid = to_regprocedure($2)
$$;
COMMENT ON FUNCTION docpatterns._pattern_location(text, text) IS
  'the schema and the name of a view or a function';

CREATE FUNCTION docpatterns._pattern_move(kind text, object text, schema_name name, name name)
  RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  now record;
BEGIN
  SELECT i.* INTO now FROM docpatterns._pattern_location(kind, object) i;
  IF now.name <> name THEN
    EXECUTE format('ALTER %s %s RENAME TO %I', kind, object, name);
    object := format('%I.%I%s', now.schema_name, name, substring(object FROM '[(][^()]*[)]$'));
  END IF;
  IF now.schema_name <> schema_name THEN
    EXECUTE format('ALTER %s %s SET SCHEMA %I', kind, object, schema_name);
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_move(text, text, name, name) IS
  'changes the name and schema of a view or a function';
