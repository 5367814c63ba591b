-- Boards of key-value spaces that are made of a table's documents. The trigger is in
-- src/patterns/kv/leaderboard.c.

CREATE FUNCTION docpatterns.kv_leaderboard_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_kv_leaderboard_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.kv_leaderboard_trigger() IS
  'trigger function of tables with a leaderboard; created by kv_leaderboard';

CREATE FUNCTION docpatterns._kv_score(value bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_kv_score_of' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._kv_score(bson_value) IS
  'the score that a field of a document gives, NULL if it is no number';

CREATE FUNCTION docpatterns._kv_leaderboard_make(rel regclass, name text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_leaderboard_remake' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._kv_leaderboard_make(regclass, text) IS
  'builds a leaderboard again from the documents, with its key locked exclusively; how many '
    'members it '
  'has; error 42501 unless the caller owns the table';

CREATE FUNCTION docpatterns._kv_leaderboard_release(rel regclass, name text, keep boolean)
  RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_leaderboard_release' LANGUAGE C VOLATILE STRICT;
COMMENT ON FUNCTION docpatterns._kv_leaderboard_release(regclass, text, boolean) IS
  'makes a leaderboard an ordinary sorted set, or removes it; how many members it has; error '
    '42501 unless the '
  'caller owns the table';

CREATE FUNCTION docpatterns._kv_leaderboard_declare(rel regclass, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW '
      'EXECUTE FUNCTION docpatterns.kv_leaderboard_trigger(%L)',
                 docpatterns._pattern_own_trigger(rel, 80, 'kv_leaderboard',
                   @extschema@.bson_get_text(options, 'name'), NULL, 29), rel, options::text);
END
$$;
COMMENT ON FUNCTION docpatterns._kv_leaderboard_declare(regclass, bson) IS
  'creates the trigger of a leaderboard, which has its options';

CREATE FUNCTION docpatterns._kv_leaderboards(keys oid, OUT owner oid, OUT follow text)
  RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT c.relowner, format('SELECT docpatterns._kv_leaderboard_declare(%L, %L)', d.rel,
      @extschema@.bson_set(d.options, 'space', (SELECT n.nspname::text FROM pg_class k
          JOIN pg_namespace n ON n.oid = k.relnamespace WHERE k.oid = $1)))
  FROM docpatterns._pattern_declarations(NULL) d JOIN pg_class c ON c.oid = d.rel
    JOIN pg_depend p ON p.classid = 'pg_trigger'::regclass AND p.objid = d.trigger_oid
      AND p.deptype = 'n' AND p.refclassid = 'pg_class'::regclass AND p.refobjid = $1
  WHERE d.pattern = 'kv_leaderboard'
$$;
COMMENT ON FUNCTION docpatterns._kv_leaderboards(oid) IS
  'the leaderboards of the space with that table "keys": the owners of their tables, and a '
  'query that declares each with the present name of the space';

CREATE FUNCTION kv_leaderboard(space text, key text, rel regclass, score_path text,
  member_path text DEFAULT NULL, name text DEFAULT NULL, doc_column text DEFAULT NULL) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  options @extschema@.bson;
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_column) p;
  PERFORM docpatterns._pattern_require_owner(rel);
  PERFORM docpatterns._shard_require_beside(rel, to_regclass(format('%I.keys', space)));
  options := docpatterns._pattern_declare(rel, 'kv_leaderboard', @extschema@.bson_build(
    'name', coalesce(name, key), 'space', space, 'key', key, 'score_path', score_path,
    'member_path', member_path, 'doc_column', t.doc));
  name := @extschema@.bson_get_text(options, 'name');
  IF @extschema@.kv_exists(space, key) > 0 THEN
    RAISE EXCEPTION 'space "%" already has a key "%"', space, key
      USING ERRCODE = 'duplicate_object';
  END IF;
  IF EXISTS (SELECT FROM docpatterns._pattern_declarations(NULL) d
      WHERE d.pattern = 'kv_leaderboard'
               AND @extschema@.bson_get_text(d.options, 'space') = space
                   AND @extschema@.bson_get_text(d.options, 'key') = key) THEN
    RAISE EXCEPTION 'key "%" of space "%" is kept by another table', key, space
      USING ERRCODE = 'duplicate_object';
  END IF;
  PERFORM docpatterns._kv_leaderboard_declare(rel, options);
  PERFORM docpatterns._pattern_statement_trigger(rel, 80, 'kv_leaderboard', name, 'begin', 22,
      'BEFORE INSERT OR UPDATE');
  PERFORM docpatterns._pattern_statement_trigger(rel, 80, 'kv_leaderboard', name, 'truncate', 32,
      'AFTER TRUNCATE');
  PERFORM docpatterns._pattern_anchor(rel, name);
  PERFORM docpatterns._kv_leaderboard_make(rel, name);
  RETURN name;
END
$$;
COMMENT ON FUNCTION kv_leaderboard(text, text, regclass, text, text, text, text) IS
  'Keeps a sorted set from a table''s documents: the score is the number at score_path, the member '
  'the row''s key or the value at member_path. Documents without a number are left out. Returns '
  'the name of the declaration (default: the key). Locks the table against writers and reads it. '
  'Errors: 22004, 22023 a bad path, 23505 members that are not unique, 42710 the key or the name '
  'is taken, 42501';

CREATE FUNCTION docpatterns._kv_leaderboard_check(rel regclass, name text)
  RETURNS TABLE (key bson_value, what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  o @extschema@.bson;
BEGIN
  SELECT d.options INTO o FROM docpatterns._pattern_declarations(rel) d
    WHERE d.pattern = 'kv_leaderboard' AND d.name = _kv_leaderboard_check.name;
  IF to_regclass(format('%I.keys', @extschema@.bson_get_text(o, 'space'))) IS NULL THEN
    RETURN QUERY SELECT NULL::@extschema@.bson_value, 'key-value space', 'present', 'missing';
    RETURN;
  END IF;
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(o, 'doc_column'))) p;
  RETURN QUERY EXECUTE format(
    'SELECT coalesce(d.member, b.member), ''score'', d.score::text, b.score::text FROM '
    '(SELECT q.member, q.score FROM (SELECT %1$s AS member, docpatterns._kv_score(s.%2$I '
      'OPERATOR(@extschema@.->) %3$L::text) AS score FROM %4$s s) q '
    'WHERE q.member IS NOT NULL AND q.score IS NOT NULL) d '
    'FULL JOIN (SELECT m.member, m.score FROM %5$s.scores m WHERE m.key = %6$L) b ON b.member '
      'OPERATOR(@extschema@.=) d.member '
    'WHERE (d.score OPERATOR(@extschema@.=) b.score) IS NOT TRUE ORDER BY 1',
    CASE WHEN @extschema@.bson_exists(o, 'member_path') THEN
      format('s.%I OPERATOR(@extschema@.->) %L::text', t.doc,
        @extschema@.bson_get_text(o, 'member_path')) ELSE t.key_value END,
    t.doc, @extschema@.bson_get_text(o, 'score_path'), rel,
    docpatterns._kv_space(@extschema@.bson_get_text(o, 'space')),
    @extschema@.bson_get_text(o, 'key'));
END
$$;
COMMENT ON FUNCTION docpatterns._kv_leaderboard_check(regclass, text) IS
  'pattern_check of a leaderboard: its members and scores are those of the '
  'documents';

CREATE FUNCTION docpatterns._kv_leaderboard_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  wrong bigint;
BEGIN
  SELECT count(*) INTO wrong FROM docpatterns._kv_leaderboard_check(rel, name);
  IF EXISTS (SELECT FROM docpatterns._kv_leaderboard_check(rel, name) c
        WHERE c.what = 'key-value space') THEN
    RAISE EXCEPTION 'the key-value space of leaderboard "%" on table "%" is missing', name,
        docpatterns._relname(rel)
      USING ERRCODE = 'invalid_schema_name',
        HINT = 'Restore it, or call pattern_disable() to end the leaderboard.';
  ELSIF wrong > 0 THEN
    PERFORM docpatterns._kv_leaderboard_make(rel, name);
  END IF;
  RETURN wrong;
END
$$;
COMMENT ON FUNCTION docpatterns._kv_leaderboard_repair(regclass, text) IS
  'pattern_repair of a leaderboard: it is built again if anything differs; '
  'returns how many members did';

CREATE FUNCTION docpatterns._kv_leaderboard_pending(rel regclass, name text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('SELECT ROW(t.*) FROM %s t WHERE false', $1)
$$;
COMMENT ON FUNCTION docpatterns._kv_leaderboard_pending(regclass, text) IS
  'pattern_build of a leaderboard: it is built when it is declared';

CREATE FUNCTION docpatterns._kv_leaderboard_disable(rel regclass, name text, how bson)
  RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  members bigint;
BEGIN
  EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', rel);
  members := docpatterns._kv_leaderboard_release(rel, name,
      @extschema@.bson_get_text(how, 'keep_data') = 'true');
  PERFORM docpatterns._pattern_drop_triggers(rel, 'kv_leaderboard', name);
  RETURN members;
END
$$;
COMMENT ON FUNCTION docpatterns._kv_leaderboard_disable(regclass, text, bson) IS
  'pattern_disable of a leaderboard: the sorted set goes, or with keep_data becomes '
  'an ordinary one; returns how many members it has';
