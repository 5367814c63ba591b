-- Objects made for a declaration are marked in their definition, which renames and comments do not
-- change and dumps include: the condition of a view, or of an index, calls _pattern_made(). The
-- planner folds the call to true, so an index with no other condition serves like one without a
-- condition.

-- An index's condition is parsed and evaluated whenever a statement opens the index, so it is a
-- short text and a C function.
CREATE FUNCTION docpatterns._pattern_made(mark text) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_pattern_made' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._pattern_made(text) IS
  'true; its argument names the pattern, declaration, and part of it for which a view or an index '
  'was created';

CREATE FUNCTION docpatterns._pattern_mark(pattern text, name text, part text DEFAULT '')
  RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('docpatterns._pattern_made(%L)', format('%s %s %s%s', $1, length($2), $2, $3))
$$;
COMMENT ON FUNCTION docpatterns._pattern_mark(text, text, text) IS
  'SQL text: the condition that marks an object, with pattern, length of the name, name and part; '
  'part is empty if an index has no other condition';

CREATE FUNCTION docpatterns._pattern_read_mark(definition text, OUT pattern text, OUT name text,
  OUT part text)
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT m[1], left(q.words, m[2]::int), substr(q.words, m[2]::int + 1)
  FROM regexp_match($1, '_pattern_made[(]''([a-z_]+) ([0-9]{1,6}) ((?:[^'']|'''')*)''::text[)]') AS
    m
    CROSS JOIN LATERAL (SELECT replace(m[3], '''''', '''') AS words) AS q
$$;
COMMENT ON FUNCTION docpatterns._pattern_read_mark(text) IS
  'the mark in a definition, as the catalog shows it; NULLs if it has none';

-- A view that the snapshot shows may have been dropped since; pg_table_is_visible() then returns
-- null.
CREATE FUNCTION docpatterns._pattern_views(rel regclass, pattern text, name text,
  owner oid DEFAULT NULL, OUT view regclass, OUT part text) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
  SET quote_all_identifiers = off AS $$
  SELECT DISTINCT v.oid::regclass, m.part
  FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class v ON v.oid = r.ev_class
    AND v.relkind = 'v'
    CROSS JOIN LATERAL docpatterns._pattern_read_mark(CASE
        WHEN pg_table_is_visible(v.oid) IS NOT NULL THEN pg_get_viewdef(v.oid) END) AS m
  WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass
    AND d.refobjid = docpatterns._pattern_table_of($1)
    AND EXISTS (SELECT FROM pg_depend f WHERE f.classid = 'pg_rewrite'::regclass AND f.objid = r.oid
        AND f.refclassid = 'pg_proc'::regclass
                  AND f.refobjid = 'docpatterns._pattern_made(text)'::regprocedure)
    AND v.relowner = coalesce($4, (SELECT c.relowner FROM pg_class c WHERE c.oid = $1))
      AND m.pattern = $2 AND m.name = $3
  ORDER BY 1
$$;
COMMENT ON FUNCTION docpatterns._pattern_views(regclass, text, text, oid) IS
  'the marked views of a declaration, whatever their current names, with the part that each shows; '
  'of the table''s owner, or of the given one';

CREATE FUNCTION docpatterns._pattern_indexes(rel regclass, OUT index regclass, OUT pattern text,
  OUT name text, OUT part text) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET standard_conforming_strings = on
  SET quote_all_identifiers = off AS $$
  SELECT i.indexrelid::regclass, m.pattern, m.name, m.part
  FROM pg_index i CROSS JOIN LATERAL docpatterns._pattern_read_mark(pg_get_expr(i.indpred,
        i.indrelid)) AS m
  WHERE i.indrelid = $1 AND m.pattern IS NOT NULL
$$;
COMMENT ON FUNCTION docpatterns._pattern_indexes(regclass) IS
  'the marked indexes of a table, whatever their current names';

CREATE FUNCTION docpatterns._pattern_index_full(index regclass) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT i.indpred IS NULL OR EXISTS (SELECT FROM docpatterns._pattern_indexes(i.indrelid) m
      WHERE m.index = $1 AND m.part = '') FROM pg_index i WHERE i.indexrelid = $1
$$;
COMMENT ON FUNCTION docpatterns._pattern_index_full(regclass) IS
  'whether an index has all rows: it has no condition other than its mark';

CREATE FUNCTION docpatterns._pattern_hook(pattern text, verb text, arguments text)
  RETURNS regprocedure
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT to_regprocedure(format('docpatterns.%I(%s)', concat('_', $1, '_', $2), $3))
$$;
COMMENT ON FUNCTION docpatterns._pattern_hook(text, text, text) IS
  'the function _<pattern>_<verb> of the extension with arguments of these types, or NULL';
