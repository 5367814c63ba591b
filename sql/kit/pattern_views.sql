-- Triggers that patterns share, and the view <table>_whole of split documents.

CREATE FUNCTION docpatterns.pattern_guard_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_pattern_guard_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.pattern_guard_trigger() IS
  'trigger of side tables: rejects direct writes (55000)';

CREATE FUNCTION pattern_whole(doc bson, rel regclass, key anycompatible) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pattern_whole' LANGUAGE C STABLE COST 100;
COMMENT ON FUNCTION pattern_whole(bson, regclass, anycompatible) IS
  'The document of a row with everything that patterns have moved elsewhere, as the views '
  '<table>_whole show it. For a document without moved parts it costs a look at the flags. Error: '
  '54000 above 1 GB';

CREATE FUNCTION docpatterns.pattern_whole_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_pattern_whole_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.pattern_whole_trigger() IS
  'INSTEAD OF trigger of the views <table>_whole: writes whole documents; error 40001 when the '
  'document has changed since it was read';

CREATE FUNCTION docpatterns._pattern_shown(view regclass, key "any") RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pattern_shown' LANGUAGE C STABLE COST 1000;
COMMENT ON FUNCTION docpatterns._pattern_shown(regclass, "any") IS
  'internal: the whole document of a row, as a view <table>_wide or of a version would show it; '
  'NULL if the caller sees no such row; 55000 for other relations';

CREATE FUNCTION docpatterns._pattern_change(rel regclass, key "any", near bson, far bson,
  filter bson, update bson_value, array_filters bson_value, shows boolean) RETURNS bson[]
  AS 'MODULE_PATHNAME', 'dp_pattern_change' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION docpatterns._pattern_change(regclass, "any", bson, bson, bson, bson_value,
  bson_value, boolean) IS
  'internal: locks a row and, if its stored document still matches near and its whole one far, '
  'updates the whole document, or deletes the row if update is NULL; NULL if it does not match, '
  'else the documents before and, if it was changed, after (NULLs unless shows); where rel is a '
  'view in another shape, of what that shows';

-- Creates the view <table>_whole unless the table has one.
CREATE FUNCTION docpatterns._pattern_create_whole(rel regclass, doc_column text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  view_name text;
  qualified text;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  IF docpatterns._pattern_whole_view(rel) IS NOT NULL
      OR docpatterns._pattern_table_of(rel) <> rel THEN
    RETURN;
  END IF;
  view_name := docpatterns._pattern_relation_name(t.schema_name, t.table_name, NULL, 'whole');
  qualified := format('%I.%I', t.schema_name, view_name);
  EXECUTE format('CREATE VIEW %s WITH (security_invoker = true) AS SELECT %s FROM %s AS base',
      qualified,
    (SELECT string_agg(CASE WHEN a.attname = t.doc
                         THEN format('@extschema@.pattern_whole(base.%1$I, '
                             'base.tableoid::regclass, %2$s) AS %1$I', a.attname,
                                CASE WHEN cardinality(t.keys) = 1 THEN format('base.%I', t.keys[1])
                                  ELSE (SELECT format('ROW(%s)',
                                        string_agg(format('base.%I', k), ', '))
                                      FROM unnest(t.keys) k) END)
                         ELSE format('base.%I', a.attname) END, ', ' ORDER BY a.attnum)
     FROM pg_attribute a WHERE a.attrelid = rel AND a.attnum > 0 AND NOT a.attisdropped), t.base);
  EXECUTE format('CREATE TRIGGER zz_docpatterns_whole INSTEAD OF INSERT OR UPDATE OR DELETE ON %s '
                 'FOR EACH ROW EXECUTE FUNCTION docpatterns.pattern_whole_trigger()', qualified);
  EXECUTE format('COMMENT ON VIEW %s IS %L', qualified, 'documents of ' || t.base
      || ' with everything that patterns have split off');
  -- privileges on the table also apply to the view
  PERFORM docpatterns._pattern_copy_grants(rel, qualified::regclass);
  EXECUTE format('ALTER VIEW %s OWNER TO %s', qualified, t.owner::regrole);
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_create_whole(regclass, text) IS
  'creates the view <table>_whole';

CREATE FUNCTION docpatterns._pattern_grant(acl aclitem[], owner oid, target regclass) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g record;
BEGIN
  FOR g IN
    SELECT a.privilege_type, CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text
      END AS grantee, a.is_grantable
    FROM aclexplode(acl) a WHERE a.grantee <> owner
      AND a.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
  LOOP
    EXECUTE format('GRANT %s ON %s TO %s%s', g.privilege_type, target, g.grantee, CASE
        WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_grant(aclitem[], oid, regclass) IS
  'gives a view the grants of a list, but those of the owner';

CREATE FUNCTION docpatterns._pattern_copy_grants(source regclass, target regclass) RETURNS void
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
  SELECT docpatterns._pattern_grant(c.relacl, c.relowner, $2) FROM pg_class c WHERE c.oid = $1
$$;
COMMENT ON FUNCTION docpatterns._pattern_copy_grants(regclass, regclass) IS
  'gives a view the grants of its table';

CREATE FUNCTION docpatterns._pattern_whole_view(rel regclass, owner oid DEFAULT NULL)
  RETURNS regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT v.oid::regclass
  FROM pg_depend d
    JOIN pg_rewrite r ON r.oid = d.objid
    JOIN pg_class v ON v.oid = r.ev_class AND v.relkind = 'v'
    JOIN pg_trigger t ON t.tgrelid = v.oid
      AND t.tgfoid = 'docpatterns.pattern_whole_trigger'::regproc
  WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
    AND d.refobjid = docpatterns._pattern_table_of($1)
    AND 'security_invoker=true' = ANY (v.reloptions)
      AND v.relowner = coalesce($2, (SELECT c.relowner FROM pg_class c WHERE c.oid = $1))
  ORDER BY v.oid LIMIT 1
$$;
COMMENT ON FUNCTION docpatterns._pattern_whole_view(regclass, oid) IS
  'the view <table>_whole of a table, whatever it is called now; of the table''s owner, or of the '
  'one given';

CREATE FUNCTION docpatterns._pattern_drop_whole(rel regclass) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  view_rel regclass;
BEGIN
  IF NOT EXISTS (SELECT FROM docpatterns._pattern_declarations($1) d
                 WHERE 'whole' = ANY (docpatterns._pattern_view_labels(d.pattern, d.options))) THEN
    view_rel := docpatterns._pattern_whole_view($1);
    IF view_rel IS NOT NULL THEN
      EXECUTE format('DROP VIEW %s', view_rel);
    END IF;
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_drop_whole(regclass) IS
  'drops the view <table>_whole of a table without split documents';
