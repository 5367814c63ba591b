-- Functions that read history (src/patterns/versioning/).

CREATE FUNCTION versioning_at(rel regclass, key anycompatible, revision bigint,
  name text DEFAULT NULL)
  RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_versioning_at' LANGUAGE C STABLE COST 100;
COMMENT ON FUNCTION versioning_at(regclass, anycompatible, bigint, text) IS
  'The document of a key at a revision; NULL for a deletion, and where no difference leads to it. '
  'Needs SELECT. Costs a look at the row and at most 32 revisions. Error: 22023 no such revision';

CREATE FUNCTION docpatterns._versioning_revisions_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_versioning_revisions_support' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._versioning_revisions_support(internal) IS
  'planner support function of versioning_revisions';

CREATE FUNCTION versioning_revisions(rel regclass, key anycompatible, name text DEFAULT NULL,
  OUT revision bigint, OUT since timestamptz,
    OUT until timestamptz, OUT operation text, OUT who text,
    OUT transaction xid8) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_versioning_revisions' LANGUAGE C STABLE COST 100 ROWS 10 SUPPORT
    docpatterns._versioning_revisions_support;
COMMENT ON FUNCTION versioning_revisions(regclass, anycompatible, text) IS
  'The revisions of a document, each valid from since up to until (NULL: still valid); those of '
  'this transaction have no since yet. Needs SELECT';

CREATE FUNCTION docpatterns._versioning_newest(rel regclass, key "any", name text, newest bigint,
  OUT revision bigint, OUT since timestamptz,
    OUT until timestamptz, OUT operation text, OUT who text,
    OUT transaction xid8) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_versioning_revisions' LANGUAGE C STABLE COST 100 ROWS 10;
COMMENT ON FUNCTION docpatterns._versioning_newest(regclass, "any", text, bigint) IS
  'what versioning_revisions returns, if the newest are few without the others';

CREATE FUNCTION docpatterns._versioning_as_of(rel regclass, key "any", live bson, at timestamptz,
  name text,
                                  OUT revision bigint, OUT since timestamptz, OUT until timestamptz,
                                    OUT doc bson) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_versioning_as_of_one' LANGUAGE C STABLE COST 100 ROWS 1;
COMMENT ON FUNCTION docpatterns._versioning_as_of(regclass, "any", bson, timestamptz, text) IS
  'one document as it was at a time; live is what it is now, NULL if it was deleted; no row if it '
  'was '
  'absent; error 42501 without the SELECT privilege';

CREATE FUNCTION docpatterns._versioning_sees_all(rel regclass, name text) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_versioning_sees_all' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._versioning_sees_all(regclass, text) IS
  'whether deleted documents are shown to the user: row-level security does not apply; error '
  '42501 without the SELECT privilege';

CREATE FUNCTION docpatterns._versioning_as_of_support(internal) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_versioning_as_of_support' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._versioning_as_of_support(internal) IS
  'planner support function of versioning_as_of';

CREATE FUNCTION versioning_as_of(rel regclass, at timestamptz, name text DEFAULT NULL,
                                 OUT key bson_value, OUT revision bigint, OUT since timestamptz,
                                   OUT until timestamptz, OUT doc bson) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_versioning_as_of' LANGUAGE C STABLE COST 1000 ROWS 1000 SUPPORT
    docpatterns._versioning_as_of_support;
COMMENT ON FUNCTION versioning_as_of(regclass, timestamptz, text) IS
  'The documents of a table at a time, with revision and interval, including those deleted since. '
  'Needs SELECT and follows row-level security. Takes no locks';

CREATE FUNCTION versioning_diff(rel regclass, key anycompatible, a bigint, b bigint,
  name text DEFAULT NULL,
  OUT path text, OUT old bson_value, OUT new bson_value) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_versioning_diff' LANGUAGE C STABLE COST 100 ROWS 10;
COMMENT ON FUNCTION versioning_diff(regclass, anycompatible, bigint, bigint, text) IS
  'The paths at which two revisions of a document differ, as bson_diff lists them, without the '
  'revision''s number. A deletion is an empty document. Needs SELECT. Errors as versioning_at, and '
  '22023 an unknown document';

CREATE FUNCTION versioning_field_history(rel regclass, key anycompatible, path text,
  name text DEFAULT NULL,
  OUT revision bigint, OUT since timestamptz, OUT who text,
    OUT value bson_value) RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_versioning_field_history' LANGUAGE C STABLE COST 1000 ROWS 10;
COMMENT ON FUNCTION versioning_field_history(regclass, anycompatible, text, text) IS
  'A row for each revision that changed the value at a path (NULL: no value); skips unknown '
  'documents. Needs SELECT; reads the whole history of the document. Error: 22023 a bad path';

CREATE FUNCTION versioning_revert(rel regclass, key anycompatible, revision bigint,
  name text DEFAULT NULL)
  RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_versioning_revert' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION versioning_revert(regclass, anycompatible, bigint, text) IS
  'Writes the document of an old revision as a new one and returns its number, or the last one''s '
  'if a trigger leaves the update out. Inserts a deleted document. Needs SELECT and UPDATE, and '
  'INSERT for a deleted document; locks the row. Error: 22023 no such revision, or no document in '
  'it';

CREATE FUNCTION versioning_purge(rel regclass, before timestamptz, name text DEFAULT NULL)
  RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF before IS NULL THEN
    RAISE EXCEPTION 'before must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  PERFORM docpatterns._pattern_require_owner(rel);
  RETURN (SELECT docpatterns._pattern_call('purge', versioning_purge.rel, 'versioning',
        docpatterns._versioning_name(versioning_purge.rel, versioning_purge.name),
          @extschema@.bson_build('before',
            versioning_purge.before::text))::bigint);
END
$$;
COMMENT ON FUNCTION versioning_purge(regclass, timestamptz, text) IS
  'Deletes revisions that ended before a time and returns their number. Waits for other rewrites '
  'of this history, not for writers; reads all revisions. Errors: 22004, 42501 unless the caller '
  'owns the table';

CREATE FUNCTION docpatterns._versioning_name(rel regclass, name text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (SELECT f.name FROM docpatterns._pattern_find($1, $2, 'versioning') f);
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_name(regclass, text) IS
  'name of the versioning declaration of a table, the only one with NULL; errors 42704, 22023';

CREATE FUNCTION docpatterns._versioning_purge(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  moment timestamptz := @extschema@.bson_get_text(how, 'before')::timestamptz;
BEGIN
  SELECT q.* INTO p FROM docpatterns._versioning_parts(rel, name) q;
  RETURN docpatterns._versioning_purge_run(rel, name, (SELECT format($q$
      WITH valid AS (
        SELECT %1$s, max(r.revision) AS revision FROM %2$s AS r
          JOIN %3$s AS c ON c.change = r.change WHERE c.since <= %4$L::timestamptz GROUP BY %1$s)
      DELETE FROM %2$s AS r USING valid AS v WHERE %5$s
        AND (r.revision < v.revision OR r.revision = v.revision AND r.operation = 'd')$q$,
      string_agg(format('r.%I', s), ', ' ORDER BY n), p.revisions, p.changes, moment,
      string_agg(format('r.%1$I %2$s v.%1$I', s, o), ' AND ' ORDER BY n))
    FROM unnest(p.side_keys, p.key_ops) WITH ORDINALITY AS u (s, o, n)),
    (SELECT format($q$
      UPDATE %2$s AS r SET delta = '', previous = NULL WHERE r.operation <> 'i'
        AND (r.previous IS NOT NULL OR length(r.delta) > 0 OR r.delta IS NULL)
        AND NOT EXISTS (SELECT 1 FROM %2$s AS b WHERE %1$s AND b.revision = r.revision - 1)$q$,
      string_agg(format('b.%1$I %2$s r.%1$I', s, o), ' AND ' ORDER BY n), p.revisions)
    FROM unnest(p.side_keys, p.key_ops) WITH ORDINALITY AS u (s, o, n)),
    format('DELETE FROM %s AS c WHERE c.since <= %L::timestamptz AND NOT EXISTS (SELECT 1 FROM %s '
      'AS r WHERE r.change = c.change)', p.changes, moment, p.revisions));
END
$$;
COMMENT ON FUNCTION docpatterns._versioning_purge(regclass, text, bson) IS
  'versioning_purge, run as the owner of the table';

CREATE FUNCTION docpatterns._versioning_purge_run(rel regclass, name text, purge text, cut text,
  changes text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_versioning_purge_run' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._versioning_purge_run(regclass, text, text, text, text) IS
  'runs the statements of versioning_purge, which write to guarded tables; error 42501 unless the '
  'caller owns the table';

CREATE FUNCTION versioning_redact(rel regclass, key anycompatible, path text,
  name text DEFAULT NULL)
  RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_versioning_redact' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION versioning_redact(regclass, anycompatible, text, text) IS
  'Removes the value at a path from a document and all its revisions, and returns the number of '
  'revisions that had it; an array element becomes null. Waits for other rewrites of this history '
  'and for writers of the row, and locks both. Errors: 22023 the revision field, 42501 unless the '
  'caller owns the table';
