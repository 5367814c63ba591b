-- Lists the public objects of the extension that have no comment; nothing when all have one.
-- Not public: functions in the schema docpatterns, array types and row types.
WITH member AS (
  SELECT d.classid, d.objid
  FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid
  WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND e.extname = 'docpatterns'
)
SELECT pg_describe_object(m.classid, m.objid, 0)
FROM member m
LEFT JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
LEFT JOIN pg_type t ON m.classid = 'pg_type'::regclass AND t.oid = m.objid
WHERE m.classid IN ('pg_proc'::regclass, 'pg_type'::regclass, 'pg_operator'::regclass, 'pg_class'::regclass,
                    'pg_opclass'::regclass, 'pg_event_trigger'::regclass)
  AND NOT (m.classid = 'pg_proc'::regclass AND p.pronamespace = 'docpatterns'::regnamespace)
  AND NOT (m.classid = 'pg_type'::regclass AND (t.typcategory = 'A' OR t.typrelid <> 0))
  AND obj_description(m.objid, m.classid::regclass::text) IS NULL
ORDER BY 1;
