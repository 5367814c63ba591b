-- Order, equality and hashing of bson, bson_value and objectid, and comparison of bson_value with
-- SQL values. The functions are in src/bson/compare.c, objectid.c, hash.c, operators.c and
-- operators_cross.c.
--
-- There is no equalimage support function, so a btree does not deduplicate: 1 and 1.0 are equal but
-- not the same bytes.

-- bson_value beside SQL values. Each type has the six operators in both directions and joins both
-- operator families, so that an index on (doc -> 'price') serves doc -> 'price' > 5. No cast from a
-- SQL type to bson_value is implicit.
--
-- The families are not complete: text and int4, for example, are both members but have no operators
-- with each other. The planner allows for that as long as the operators are not marked MERGES. Each
-- type has besides its own order (btree, for = ANY) and its own equality and hash (hash, for
-- joins). That equality is called =#=, so that no query uses it by accident.
--
-- At plan time, a constant of such a type becomes a bson_value, if one equals it exactly
-- (operators_plan.c).

-- types whose values PostgreSQL compares differently
CREATE FUNCTION docpatterns.float4_bson_cmp(float4, float4) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_float4_bson_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.float8_bson_cmp(float8, float8) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_float8_bson_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.numeric_bson_cmp(numeric, numeric) RETURNS int4
  AS 'MODULE_PATHNAME', 'dp_numeric_bson_cmp' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
CREATE FUNCTION docpatterns.text_bson_eq(text, text) RETURNS bool
  AS 'MODULE_PATHNAME', 'dp_text_bson_eq' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

DO $$
DECLARE
  p record;
  o record;
  f pg_catalog.text;
  define constant pg_catalog.text := $q$CREATE FUNCTION %1$s.%2$s(%3$s) RETURNS %4$s
    AS 'MODULE_PATHNAME', 'dp_%2$s' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE %5$s$q$;
BEGIN
  -- l, r: the types of both sides; f: names of functions; own: a type's own order, with opclasses;
  -- home: the schema of the comparison and hash functions. Statistics of fields (stats) apply to
  -- everything a bson_value is compared with.
  FOR p IN
    SELECT * FROM (VALUES
      ('bson_value', 'bson_value', 'bson_value_%s', true, '@extschema@', 'docpatterns.bson_value_',
          'docpatterns.bson_value_'),
      ('bson', 'bson', 'bson_%s', true, '@extschema@', 'scalar', ''),
      ('objectid', 'objectid', 'objectid_%s', true, 'docpatterns', 'scalar', ''))
      AS v (l, r, f, own, home, stats, eq_stats)
    UNION ALL
    SELECT v.*, false, 'docpatterns', 'docpatterns.bson_value_', 'docpatterns.bson_value_'
    FROM pg_catalog.unnest('{int2,int4,int8,float4,float8,numeric,text,boolean,date,timestamp,
                             timestamptz,uuid,objectid}'::pg_catalog.text[]) t
      CROSS JOIN LATERAL (VALUES ('bson_value', t, pg_catalog.concat('bson_value_%s_', t)),
                                 (t, 'bson_value', pg_catalog.concat(t, '_%s_bson_value'))) AS v
  LOOP
    FOR o IN
      SELECT * FROM (VALUES
        ('<', 'lt', '>', '>=', 'lt', NULL), ('<=', 'le', '>=', '>', 'le', NULL),
        ('=', 'eq', '=', '<>', 'eq', p.eq_stats), ('<>', 'ne', '<>', '=', 'neq', p.eq_stats),
        ('>=', 'ge', '<=', '<', 'ge', NULL), ('>', 'gt', '<', '<=', 'gt', NULL))
        AS v (sign, name, commutator, negator, sel, stats)
    LOOP
      f := pg_catalog.format(p.f, o.name);
      IF p.own AND p.l OPERATOR(pg_catalog.=) 'bson_value' THEN
        EXECUTE pg_catalog.format(define, 'docpatterns', pg_catalog.concat(f, '_support'),
            'internal',
          'internal', '');
      END IF;
      EXECUTE pg_catalog.format(define, 'docpatterns', f, pg_catalog.concat(p.l, ', ', p.r), 'bool',
        CASE WHEN NOT p.own THEN pg_catalog.format('SUPPORT docpatterns.bson_value_%s_support',
            o.name) END);
      EXECUTE pg_catalog.format('CREATE OPERATOR %1$s (LEFTARG = %2$s, RIGHTARG = %3$s,
          FUNCTION = docpatterns.%4$s, COMMUTATOR = %5$s, NEGATOR = %6$s,
          RESTRICT = %7$s%8$ssel, JOIN = %9$s%8$sjoinsel %10$s)',
        o.sign, p.l, p.r, f, o.commutator, o.negator, coalesce(o.stats, p.stats), o.sel,
        coalesce(o.stats, 'scalar'),
        CASE WHEN o.name OPERATOR(pg_catalog.<>) 'eq' THEN '' WHEN p.own THEN ', HASHES, MERGES'
             ELSE ', HASHES' END);
    END LOOP;
    EXECUTE pg_catalog.format(define, p.home, pg_catalog.format(p.f, 'cmp'),
      pg_catalog.concat(p.l, ', ', p.r), 'int4', '');
    CONTINUE WHEN NOT p.own;
    EXECUTE pg_catalog.format(define, p.home, pg_catalog.format(p.f, 'hash'), p.l, 'int4', '');
    EXECUTE pg_catalog.format(define, p.home, pg_catalog.format(p.f, 'hash_extended'),
      pg_catalog.concat(p.l, ', int8'), 'int8', '');
    EXECUTE pg_catalog.format(define, 'docpatterns', pg_catalog.format(p.f, 'sortsupport'),
        'internal',
      'void', '');
    EXECUTE pg_catalog.format('CREATE OPERATOR CLASS %1$s_ops DEFAULT FOR TYPE %1$s USING btree AS
      OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
      FUNCTION 1 %2$s.%1$s_cmp(%1$s, %1$s), FUNCTION 2 docpatterns.%1$s_sortsupport(internal)',
      p.l, p.home);
    EXECUTE pg_catalog.format('CREATE OPERATOR CLASS %1$s_ops DEFAULT FOR TYPE %1$s USING hash AS
      OPERATOR 1 =, FUNCTION 1 %2$s.%1$s_hash(%1$s),
      FUNCTION 2 %2$s.%1$s_hash_extended(%1$s, int8)',
      p.l, p.home);
  END LOOP;
  FOR p IN
    SELECT * FROM (VALUES
      ('int2', 'int2eq', 'btint2cmp'), ('int4', 'int4eq', 'btint4cmp'),
      ('int8', 'int8eq', 'btint8cmp'), ('float4', 'float4eq', 'docpatterns.float4_bson_cmp'),
      ('float8', 'float8eq', 'docpatterns.float8_bson_cmp'),
      ('numeric', 'numeric_eq', 'docpatterns.numeric_bson_cmp'),
      ('text', 'docpatterns.text_bson_eq', 'bttext_pattern_cmp'),
      ('boolean', 'booleq', 'btboolcmp'),
      ('date', 'date_eq', 'date_cmp'), ('timestamp', 'timestamp_eq', 'timestamp_cmp'),
      ('timestamptz', 'timestamptz_eq', 'timestamptz_cmp'),
      ('uuid', 'uuid_eq', 'uuid_cmp'),
      ('objectid', 'docpatterns.objectid_eq', 'docpatterns.objectid_cmp')) AS v (t, eq, cmp)
  LOOP
    EXECUTE pg_catalog.format(define, 'docpatterns', pg_catalog.concat(p.t, '_bson_hash'), p.t,
        'int4', '');
    EXECUTE pg_catalog.format(define, 'docpatterns', pg_catalog.concat(p.t, '_bson_hash_extended'),
      pg_catalog.concat(p.t, ', int8'), 'int8', '');
    EXECUTE pg_catalog.format('CREATE OPERATOR =#= (LEFTARG = %1$s, RIGHTARG = %1$s,
      FUNCTION = %2$s, COMMUTATOR = =#=, RESTRICT = eqsel, JOIN = eqjoinsel)', p.t, p.eq);
    EXECUTE pg_catalog.format('ALTER OPERATOR FAMILY bson_value_ops USING btree ADD
      OPERATOR 1 < (bson_value, %1$s), OPERATOR 2 <= (bson_value, %1$s),
      OPERATOR 3 = (bson_value, %1$s), OPERATOR 4 >= (bson_value, %1$s),
      OPERATOR 5 > (bson_value, %1$s),
      OPERATOR 1 < (%1$s, bson_value), OPERATOR 2 <= (%1$s, bson_value),
      OPERATOR 3 = (%1$s, bson_value), OPERATOR 4 >= (%1$s, bson_value),
      OPERATOR 5 > (%1$s, bson_value),
      FUNCTION 1 (bson_value, %1$s) docpatterns.bson_value_cmp_%1$s(bson_value, %1$s),
      FUNCTION 1 (%1$s, bson_value) docpatterns.%1$s_cmp_bson_value(%1$s, bson_value),
      FUNCTION 1 (%1$s, %1$s) %2$s(%1$s, %1$s)', p.t, p.cmp);
    EXECUTE pg_catalog.format('ALTER OPERATOR FAMILY bson_value_ops USING hash ADD
      OPERATOR 1 = (bson_value, %1$s), OPERATOR 1 = (%1$s, bson_value), OPERATOR 1 =#= (%1$s, %1$s),
      FUNCTION 1 (%1$s, %1$s) docpatterns.%1$s_bson_hash(%1$s),
      FUNCTION 2 (%1$s, %1$s) docpatterns.%1$s_bson_hash_extended(%1$s, int8)', p.t);
  END LOOP;
END
$$;

COMMENT ON FUNCTION bson_value_cmp(bson_value, bson_value) IS
  'Compares two values: a negative number, 0 or a positive number';
COMMENT ON FUNCTION bson_value_hash(bson_value) IS 'A hash of 32 bits';
COMMENT ON FUNCTION bson_value_hash_extended(bson_value, int8) IS 'A hash of 64 bits';
COMMENT ON OPERATOR CLASS bson_value_ops USING btree IS 'MongoDB''s order';
COMMENT ON OPERATOR CLASS bson_value_ops USING hash IS 'equality in MongoDB''s order';
COMMENT ON FUNCTION bson_cmp(bson, bson) IS
  'Compares two documents: a negative number, 0 or a positive number';
COMMENT ON FUNCTION bson_hash(bson) IS 'A hash of 32 bits';
COMMENT ON FUNCTION bson_hash_extended(bson, int8) IS 'A hash of 64 bits';
COMMENT ON OPERATOR CLASS bson_ops USING btree IS 'MongoDB''s order';
COMMENT ON OPERATOR CLASS bson_ops USING hash IS 'equality in MongoDB''s order';

-- The comments that psql shows for the operators and their functions.
DO $$
DECLARE
  o record;
  meaning constant pg_catalog.jsonb := '{"<": "less than", "<=": "less than or equal to",
    "=": "equal to", "<>": "not equal to", ">=": "greater than or equal to", ">": "greater than",
    "=#=": "the same value in BSON"}';
BEGIN
  FOR o IN
    SELECT p.oprname, pg_catalog.format_type(p.oprleft, NULL) AS l,
      pg_catalog.format_type(p.oprright, NULL) AS r,
           p.oprcode::pg_catalog.oid::pg_catalog.regprocedure AS function, f.pronamespace
    FROM pg_catalog.pg_operator p JOIN pg_catalog.pg_proc f ON f.oid OPERATOR(pg_catalog.=)
      p.oprcode
    WHERE p.oprnamespace OPERATOR(pg_catalog.=) '@extschema@'::pg_catalog.regnamespace
      AND ('@extschema@.bson_value'::pg_catalog.regtype::pg_catalog.oid IN (p.oprleft, p.oprright)
           OR p.oprleft IN ('@extschema@.bson'::pg_catalog.regtype::pg_catalog.oid,
               '@extschema@.objectid'::pg_catalog.regtype::pg_catalog.oid)
           OR p.oprname OPERATOR(pg_catalog.=) '=#=')
      AND meaning OPERATOR(pg_catalog.?) p.oprname::pg_catalog.text
  LOOP
    EXECUTE pg_catalog.format('COMMENT ON OPERATOR @extschema@.%s (%s, %s) IS %L', o.oprname, o.l,
        o.r,
      meaning OPERATOR(pg_catalog.->>) o.oprname::pg_catalog.text);
    IF o.pronamespace OPERATOR(pg_catalog.<>) 'pg_catalog'::pg_catalog.regnamespace THEN
      EXECUTE pg_catalog.format('COMMENT ON FUNCTION %s IS %L', o.function,
        pg_catalog.format('implementation of the %s operator', o.oprname));
    END IF;
  END LOOP;
END
$$;
