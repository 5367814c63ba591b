-- Everything that the extension owns, one fact a line, so that two databases can be compared by diff: functions with bodies,
-- aggregates, operators, their classes and families, casts, types, tables, views, event triggers, foreign servers, comments,
-- privileges, and which tables are dumped as configuration. What is not known here is named in a line that begins with "unknown".
\pset format unaligned
\pset tuples_only on
SET search_path = pg_catalog;
WITH extension AS (
  SELECT * FROM pg_extension WHERE extname = 'docpatterns'
), member AS (
  SELECT d.classid, d.objid, o.type || ' ' || o.identity AS id
  FROM extension e JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
    CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) o
  -- PostgreSQL 17 makes the types of the rows of tables and views members, too
  WHERE NOT (d.classid = 'pg_type'::regclass AND EXISTS (SELECT FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid WHERE t.oid = d.objid AND c.relkind <> 'c'))
), fact (id, what, value) AS (
  SELECT 'extension', v.what, v.value
  FROM extension e CROSS JOIN LATERAL (VALUES
    ('schema', e.extnamespace::regnamespace::text), ('relocatable', e.extrelocatable::text),
    ('configuration', (SELECT string_agg(c.rel::regclass || ' ' || e.extcondition[c.n], ', ' ORDER BY c.rel::regclass::text) FROM unnest(e.extconfig) WITH ORDINALITY c (rel, n)))) v (what, value)
  UNION ALL
  SELECT id, 'member', CASE WHEN classid IN ('pg_proc'::regclass, 'pg_type'::regclass, 'pg_class'::regclass, 'pg_operator'::regclass, 'pg_opclass'::regclass, 'pg_opfamily'::regclass, 'pg_cast'::regclass,
                                             'pg_namespace'::regclass, 'pg_event_trigger'::regclass, 'pg_foreign_server'::regclass, 'pg_foreign_data_wrapper'::regclass, 'pg_language'::regclass) THEN 'yes' END
  FROM member
  UNION ALL
  SELECT 'unknown kind of object ' || id, classid::regclass::text, 'not compared' FROM member
  WHERE classid NOT IN ('pg_proc'::regclass, 'pg_type'::regclass, 'pg_class'::regclass, 'pg_operator'::regclass, 'pg_opclass'::regclass, 'pg_opfamily'::regclass, 'pg_cast'::regclass,
                        'pg_namespace'::regclass, 'pg_event_trigger'::regclass, 'pg_foreign_server'::regclass, 'pg_foreign_data_wrapper'::regclass, 'pg_language'::regclass)
  UNION ALL
  -- the comments of objects and of their columns
  SELECT m.id, concat('comment', ' of column ' || nullif(c.objsubid, 0)), c.description
  FROM member m JOIN pg_description c ON c.classoid = m.classid AND c.objoid = m.objid
  UNION ALL
  SELECT m.id, 'security label', l.provider || ' ' || l.label FROM member m JOIN pg_seclabel l ON l.classoid = m.classid AND l.objoid = m.objid
  UNION ALL
  -- privileges, and those that pg_dump takes for granted
  SELECT m.id, v.what, v.value
  FROM member m JOIN (
      SELECT 'pg_proc'::regclass::oid AS classid, oid, proowner AS owner, proacl AS acl FROM pg_proc UNION ALL SELECT 'pg_type'::regclass, oid, typowner, typacl FROM pg_type
      UNION ALL SELECT 'pg_class'::regclass, oid, relowner, relacl FROM pg_class UNION ALL SELECT 'pg_namespace'::regclass, oid, nspowner, nspacl FROM pg_namespace
      UNION ALL SELECT 'pg_language'::regclass, oid, lanowner, lanacl FROM pg_language UNION ALL SELECT 'pg_foreign_server'::regclass, oid, srvowner, srvacl FROM pg_foreign_server UNION ALL SELECT 'pg_foreign_data_wrapper'::regclass, oid, fdwowner, fdwacl FROM pg_foreign_data_wrapper
      UNION ALL SELECT 'pg_operator'::regclass, oid, oprowner, NULL FROM pg_operator UNION ALL SELECT 'pg_opclass'::regclass, oid, opcowner, NULL FROM pg_opclass
      UNION ALL SELECT 'pg_opfamily'::regclass, oid, opfowner, NULL FROM pg_opfamily UNION ALL SELECT 'pg_event_trigger'::regclass, oid, evtowner, NULL FROM pg_event_trigger) o ON o.classid = m.classid AND o.oid = m.objid
    LEFT JOIN pg_init_privs i ON i.classoid = m.classid AND i.objoid = m.objid AND i.objsubid = 0
    CROSS JOIN LATERAL (VALUES ('owner', o.owner::regrole::text), ('privileges', (SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM unnest(o.acl) a)),
      ('initial privileges', (SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM unnest(i.initprivs) a))) v (what, value)
  UNION ALL
  SELECT m.id, 'definition', concat_ws(' ', l.lanplcallfoid::regproc, l.lanvalidator::regproc, l.lanpltrusted) FROM member m JOIN pg_language l ON m.classid = 'pg_language'::regclass AND l.oid = m.objid
  UNION ALL
  SELECT m.id, 'definition', pg_get_functiondef(p.oid) FROM member m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid AND p.prokind <> 'a'
  UNION ALL
  SELECT m.id, v.what, v.value
  FROM member m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid JOIN pg_aggregate a ON a.aggfnoid = p.oid
    CROSS JOIN LATERAL (VALUES ('arguments', pg_get_function_arguments(p.oid)), ('result', pg_get_function_result(p.oid)), ('support', nullif(p.prosupport, 0)::regprocedure::text),
      ('aggregate', concat_ws(' ', a.aggkind, a.aggnumdirectargs, a.aggfinalextra, a.aggmfinalextra, a.aggfinalmodify, a.aggmfinalmodify, p.provolatile, p.proparallel, p.proisstrict, p.procost)),
      ('functions', concat_ws(', ', a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn)),
      ('state', concat_ws(', ', a.aggtranstype::regtype, a.aggtransspace, a.agginitval, a.aggmtranstype::regtype, a.aggmtransspace, a.aggminitval, nullif(a.aggsortop, 0)::regoperator))) v (what, value)
  UNION ALL
  SELECT m.id, v.what, v.value
  FROM member m JOIN pg_type t ON m.classid = 'pg_type'::regclass AND t.oid = m.objid
    CROSS JOIN LATERAL (VALUES ('type', concat_ws(' ', t.typlen, t.typbyval, t.typtype, t.typcategory, t.typispreferred, t.typisdefined, t.typdelim, t.typalign, t.typstorage, t.typnotnull, t.typtypmod, t.typndims, t.typdefault)),
      ('functions', concat_ws(', ', t.typinput, t.typoutput, t.typreceive, t.typsend, t.typmodin, t.typmodout, t.typanalyze, t.typsubscript)),
      ('refers to', concat_ws(' ', nullif(t.typbasetype, 0)::regtype, nullif(t.typelem, 0)::regtype, nullif(t.typarray, 0)::regtype, nullif(t.typcollation, 0)::regcollation)),
      ('labels', (SELECT string_agg(quote_literal(l.enumlabel), ', ' ORDER BY l.enumsortorder) FROM pg_enum l WHERE l.enumtypid = t.oid)),
      ('constraints', (SELECT string_agg(c.conname || ' ' || pg_get_constraintdef(c.oid), ', ' ORDER BY c.conname) FROM pg_constraint c WHERE c.contypid = t.oid))) v (what, value)
  UNION ALL
  -- tables and views, and the types that are like rows
  SELECT m.id, v.what, v.value
  FROM (SELECT m.id, m.objid FROM member m WHERE m.classid = 'pg_class'::regclass
        UNION ALL SELECT m.id, t.typrelid FROM member m JOIN pg_type t ON m.classid = 'pg_type'::regclass AND t.oid = m.objid WHERE t.typrelid <> 0) m
    JOIN pg_class c ON c.oid = m.objid
    CROSS JOIN LATERAL (
      VALUES ('relation', concat_ws(' ', c.relkind, c.relpersistence, c.relreplident, c.relrowsecurity, c.relforcerowsecurity, c.relispartition, nullif(c.reltablespace, 0), (SELECT a.amname FROM pg_am a WHERE a.oid = c.relam))),
        ('options', (SELECT string_agg(o, ', ' ORDER BY o) FROM unnest(c.reloptions) o)), ('view', CASE WHEN c.relkind IN ('v', 'm') THEN pg_get_viewdef(c.oid) END)
      UNION ALL
      -- servers since 15.20 stamp each column with the place in the WAL where it was made
      SELECT 'column ' || row_number() OVER (ORDER BY a.attnum), concat_ws(' ', quote_ident(a.attname), format_type(a.atttypid, a.atttypmod), nullif(a.attcollation, 0)::regcollation, a.attnotnull, a.attstorage, a.attidentity, a.attgenerated,
               pg_get_expr(d.adbin, d.adrelid), (SELECT string_agg(o, ', ' ORDER BY o) FROM unnest(a.attoptions) o WHERE o NOT LIKE 'pg\_attver=%'), a.attacl, quote_literal(col_description(c.oid, a.attnum)))
      FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      UNION ALL SELECT 'constraint ' || o.conname, pg_get_constraintdef(o.oid) FROM pg_constraint o WHERE o.conrelid = c.oid
      UNION ALL SELECT 'index ' || i.indexrelid::regclass, pg_get_indexdef(i.indexrelid) FROM pg_index i WHERE i.indrelid = c.oid
      UNION ALL SELECT 'trigger ' || g.tgname, concat_ws(' ', pg_get_triggerdef(g.oid), g.tgenabled) FROM pg_trigger g WHERE g.tgrelid = c.oid AND NOT g.tgisinternal
      UNION ALL SELECT 'rule ' || r.rulename, concat_ws(' ', pg_get_ruledef(r.oid), r.ev_enabled) FROM pg_rewrite r WHERE r.ev_class = c.oid AND r.rulename <> '_RETURN'
      UNION ALL SELECT 'policy ' || y.polname, concat_ws(' ', y.polcmd, y.polpermissive, y.polroles, pg_get_expr(y.polqual, c.oid), pg_get_expr(y.polwithcheck, c.oid)) FROM pg_policy y WHERE y.polrelid = c.oid) v (what, value)
  UNION ALL
  SELECT m.id, 'definition', concat_ws(', ', o.oprkind, o.oprresult::regtype, o.oprcode::regprocedure, nullif(o.oprcom, 0)::regoperator, 'not ' || nullif(o.oprnegate, 0)::regoperator, nullif(o.oprrest, 0)::regprocedure,
           nullif(o.oprjoin, 0)::regprocedure, CASE WHEN o.oprcanmerge THEN 'merges' END, CASE WHEN o.oprcanhash THEN 'hashes' END)
  FROM member m JOIN pg_operator o ON m.classid = 'pg_operator'::regclass AND o.oid = m.objid
  UNION ALL
  SELECT m.id, 'definition', concat_ws(', ', f.opfname, c.opcintype::regtype, nullif(c.opckeytype, 0)::regtype, CASE WHEN c.opcdefault THEN 'default' END)
  FROM member m JOIN pg_opclass c ON m.classid = 'pg_opclass'::regclass AND c.oid = m.objid JOIN pg_opfamily f ON f.oid = c.opcfamily
  UNION ALL
  SELECT m.id, concat_ws(' ', 'operator', a.amopstrategy, a.amoplefttype::regtype, a.amoprighttype::regtype), concat_ws(' ', a.amopopr::regoperator, a.amoppurpose, (SELECT f.opfname FROM pg_opfamily f WHERE f.oid = a.amopsortfamily))
  FROM member m JOIN pg_amop a ON m.classid = 'pg_opfamily'::regclass AND a.amopfamily = m.objid
  UNION ALL
  SELECT m.id, concat_ws(' ', 'function', a.amprocnum, a.amproclefttype::regtype, a.amprocrighttype::regtype), a.amproc::regprocedure::text
  FROM member m JOIN pg_amproc a ON m.classid = 'pg_opfamily'::regclass AND a.amprocfamily = m.objid
  UNION ALL
  SELECT m.id, 'definition', concat_ws(' ', c.castcontext, c.castmethod, nullif(c.castfunc, 0)::regprocedure) FROM member m JOIN pg_cast c ON m.classid = 'pg_cast'::regclass AND c.oid = m.objid
  UNION ALL
  SELECT m.id, 'definition', concat_ws(' ', t.evtevent, t.evtfoid::regprocedure, t.evtenabled, t.evttags) FROM member m JOIN pg_event_trigger t ON m.classid = 'pg_event_trigger'::regclass AND t.oid = m.objid
  UNION ALL
  SELECT m.id, 'definition', concat_ws(' ', w.fdwname, s.srvtype, s.srvversion, s.srvoptions) FROM member m JOIN pg_foreign_server s ON m.classid = 'pg_foreign_server'::regclass AND s.oid = m.objid JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw
  UNION ALL
  SELECT m.id, 'definition', concat_ws(' ', nullif(w.fdwhandler, 0)::regprocedure, nullif(w.fdwvalidator, 0)::regprocedure, w.fdwoptions) FROM member m JOIN pg_foreign_data_wrapper w ON m.classid = 'pg_foreign_data_wrapper'::regclass AND w.oid = m.objid
)
SELECT id || ': ' || what || ': ' || replace(value, E'\n', '\n') FROM fact WHERE value IS NOT NULL AND value <> '' ORDER BY (id || ': ' || what || ': ' || value) COLLATE "C";
