-- Key-value structures: spaces, keys, and functions for all structures. The functions are in
-- src/patterns/kv/.

CREATE FUNCTION docpatterns.kv_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_kv_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.kv_trigger() IS
  'trigger of the tables of a key-value space: refuses direct writes (55000); made by kv_create';

CREATE FUNCTION kv_create(space text) RETURNS text
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  events record;
  t text;
BEGIN
  IF space IS NULL THEN
    RAISE EXCEPTION 'space must not be null' USING ERRCODE = 'null_value_not_allowed';
  ELSIF length(space) = 0 OR octet_length(space) > 63 THEN
    RAISE EXCEPTION 'the name of a space must have 1 to 63 bytes' USING ERRCODE = 'invalid_name';
  ELSIF to_regclass(format('%I.keys', space)) IS NOT NULL THEN
    RAISE EXCEPTION 'key-value space "%" already exists', space USING ERRCODE = 'duplicate_table';
  END IF;
  PERFORM docpatterns._tenant_refuse(space, 'a key-value space');
  IF NOT EXISTS (SELECT FROM pg_namespace n WHERE n.nspname = space) THEN
    EXECUTE format('CREATE SCHEMA %I', space);
  END IF;
  EXECUTE format('CREATE TABLE %I.keys (key text COLLATE "C" PRIMARY KEY, type text COLLATE "C" '
      'NOT NULL, expires_at timestamptz, kept_by regclass, zset bigint)', space);
  EXECUTE format('CREATE INDEX keys_expires_at ON %I.keys (expires_at) WHERE expires_at IS NOT '
      'NULL', space);
  EXECUTE format('CREATE UNIQUE INDEX keys_zset ON %I.keys (zset) WHERE zset IS NOT NULL',
      space);
  EXECUTE format('CREATE TABLE %I.hashes (key text COLLATE "C", field text COLLATE "C", value '
      '@extschema@.bson_value NOT NULL, PRIMARY KEY (key, field)) WITH (fillfactor = 90)', space);
  EXECUTE format('CREATE TABLE %I.sets (key text COLLATE "C", member @extschema@.bson_value, '
      'PRIMARY KEY (key, member))', space);
  EXECUTE format('CREATE TABLE %I.scores (key text COLLATE "C", member @extschema@.bson_value, '
      'score @extschema@.bson_value NOT NULL, PRIMARY KEY (key, member)) WITH (fillfactor = 90)',
      space);
  EXECUTE format('CREATE INDEX scores_order ON %I.scores (key, score, member)', space);
  -- a transaction may change a count a thousand times, and each version outside of its page has
  -- an entry in the index that the next one is compared with
  EXECUTE format('CREATE TABLE %I.counts (zset bigint, level smallint, score '
      '@extschema@.bson_value, member @extschema@.bson_value, shard bigint, '
                 'amount bigint NOT NULL, PRIMARY KEY (zset, level, score, member, shard)) WITH '
                   '(fillfactor = 10)', space);
  FOREACH t IN ARRAY ARRAY['keys', 'hashes', 'sets', 'scores', 'counts'] LOOP
    FOR events IN SELECT * FROM docpatterns._pattern_split_events(
          'BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE', 62) LOOP
      EXECUTE format('CREATE TRIGGER %I %s ON %I.%I FOR EACH STATEMENT EXECUTE FUNCTION '
          'docpatterns.kv_trigger(%L)',
                     concat_ws('_', 'zz_docpatterns_90_kv', t, events.label), events.event, space,
                     t, CASE WHEN t = 'keys' AND events.label IS NULL THEN '{"name": "space"}'
                     ELSE 'guard' END);
    END LOOP;
    EXECUTE format('COMMENT ON TABLE %I.%I IS %L', space, t,
                   CASE t WHEN 'keys' THEN 'keys of a key-value space with their types'
                     WHEN 'hashes' THEN 'fields of hashes' WHEN 'sets' THEN 'members of sets'
                          WHEN 'scores' THEN 'members of sorted sets with their scores' ELSE
                            'members of sorted sets, counted by blocks' END);
  END LOOP;
  RETURN space;
END
$$;
COMMENT ON FUNCTION kv_create(text) IS
  'Creates a key-value space: a schema of that name, unless it exists, with the tables keys, '
  'hashes, sets, scores and counts. Returns the name. Errors: 22004 or 42602 a bad name, 42501 or '
  '42939 the schema cannot be created, 42P07 it has such tables';

-- Keys --------------------------------------------------------------------------------------------

CREATE FUNCTION kv_del(space text, VARIADIC keys text[]) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_del' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_del(text, text[]) IS
  'Removes keys and returns how many there were. Locks them exclusively, in order';

CREATE FUNCTION kv_exists(space text, VARIADIC keys text[]) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_exists' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_exists(text, text[]) IS
  'How many of the keys exist; a key given twice counts twice';

CREATE FUNCTION kv_type_of(space text, key text) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_kv_type_of' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_type_of(text, text) IS 'The type of a key: hash, set, zset or none';

CREATE FUNCTION kv_rename(space text, key text, new_key text) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_kv_rename' LANGUAGE C VOLATILE COST 1000;
COMMENT ON FUNCTION kv_rename(text, text, text) IS
  'Renames a key, with its time to live, and removes the key that had the new name. Writes all '
  'members again. Locks both keys exclusively, in order. Error: P0002 no such key';

CREATE FUNCTION kv_expire(space text, key text, seconds double precision) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_kv_expire' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_expire(text, text, double precision) IS
  'Sets the time to live of a key, in seconds from now; whether the key exists. An expired key is '
  'invisible at once, also within transactions. Error: 22008 out of range';

CREATE FUNCTION kv_persist(space text, key text) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_kv_persist' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION kv_persist(text, text) IS
  'Removes the time to live of a key; whether it had one';

CREATE FUNCTION kv_ttl(space text, key text) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_kv_ttl' LANGUAGE C STABLE STRICT PARALLEL SAFE COST 10;
COMMENT ON FUNCTION kv_ttl(text, text) IS
  'The seconds that a key has to live, -1 without a limit, -2 without the key';

CREATE FUNCTION docpatterns._kv_matches(key text, pattern text) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_kv_matches' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._kv_matches(text, text) IS
  'whether a key matches a pattern of kv_keys';

-- The space's schema, if its tables are there.
CREATE FUNCTION docpatterns._kv_space(space text) RETURNS text
LANGUAGE docpatterns STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- looks at the tables and at the caller's rights
  PERFORM @extschema@.kv_exists(space, VARIADIC '{}'::text[]);
  RETURN quote_ident(space);
END
$$;
COMMENT ON FUNCTION docpatterns._kv_space(text) IS
  'the quoted name of the schema of a key-value space; errors 3F000, 42809, 42501';

CREATE FUNCTION kv_keys(space text, pattern text DEFAULT '*') RETURNS SETOF text
LANGUAGE docpatterns STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY EXECUTE format(
    'SELECT k.key FROM %1$s.keys k WHERE docpatterns._kv_matches(k.key, $1) AND '
    '@extschema@.kv_exists($2, k.key) = 1 ORDER BY k.key',
    docpatterns._kv_space(space)) USING pattern, space;
END
$$;
COMMENT ON FUNCTION kv_keys(text, text) IS
  'Keys that match a pattern, in order: * any characters, ? one, [abc] and [^a-z] one of these or '
  'none of them, a backslash before a literal character. Reads all keys';

CREATE FUNCTION kv_scan(space text, cursor text DEFAULT '0', pattern text DEFAULT '*',
  take bigint DEFAULT 10, OUT next_cursor text, OUT keys text[])
LANGUAGE docpatterns STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF take < 1 THEN
    RAISE EXCEPTION 'take must be at least 1' USING ERRCODE = 'invalid_parameter_value';
  ELSIF cursor <> '0' AND NOT starts_with(cursor, '>') THEN
    RAISE EXCEPTION 'invalid cursor: "%"', cursor USING ERRCODE = 'invalid_parameter_value',
      HINT = 'Begin with 0, continue with next_cursor of the previous call.';
  END IF;
  EXECUTE format(
    'SELECT CASE WHEN count(*) < $2 THEN ''0'' ELSE ''>'' || max(k.key) END, coalesce(array_agg('
    'k.key ORDER BY k.key) FILTER (WHERE docpatterns._kv_matches(k.key, $3) AND '
    '@extschema@.kv_exists($4, k.key) = 1), ''{}'') FROM (SELECT s.key FROM %s.keys s '
    'WHERE $1 = ''0'' OR s.key > substr($1, 2) ORDER BY s.key LIMIT $2) k',
    docpatterns._kv_space(space)) INTO next_cursor, keys USING cursor, take, pattern, space;
END
$$;
COMMENT ON FUNCTION kv_scan(text, text, text, bigint) IS
  'The next take keys after a cursor, without those that do not match the pattern (see kv_keys). '
  'Begin with 0, continue with next_cursor, end when it is 0: each key that was there all the time '
  'has been returned once then. Reads take rows. Error: 22023 a bad cursor, or take below 1';

CREATE FUNCTION docpatterns._kv_purge_key(space text, key text) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_kv_purge_key' LANGUAGE C VOLATILE COST 100;
COMMENT ON FUNCTION docpatterns._kv_purge_key(text, text) IS
  'removes a key that has expired or is empty, unless another transaction is writing to it; '
  'returns whether it did';

CREATE FUNCTION kv_purge(space text, take bigint DEFAULT NULL) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  place text;
  k text;
  purged bigint := 0;
BEGIN
  IF space IS NULL THEN
    RAISE EXCEPTION 'space must not be null' USING ERRCODE = 'null_value_not_allowed';
  ELSIF take < 0 THEN
    RAISE EXCEPTION 'take must be zero or more' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  place := docpatterns._kv_space(space);
  FOR k IN EXECUTE format('SELECT k.key FROM %s.keys k WHERE k.expires_at <= clock_timestamp() '
        'ORDER BY k.key LIMIT $1', place) USING take LOOP
    purged := purged + docpatterns._kv_purge_key(space, k)::int;
  END LOOP;
  -- rows left by concurrent transactions that removed the last members
  FOR k IN EXECUTE format('SELECT k.key FROM %1$s.keys k WHERE k.kept_by IS NULL AND NOT EXISTS '
      '(SELECT 1 FROM %1$s.hashes h WHERE h.key = k.key) '
                          'AND NOT EXISTS (SELECT 1 FROM %1$s.sets s WHERE s.key = k.key) AND NOT '
                            'EXISTS (SELECT 1 FROM %1$s.scores s WHERE s.key = k.key) '
                          'ORDER BY k.key LIMIT $1', place) USING take - purged LOOP
    purged := purged + docpatterns._kv_purge_key(space, k)::int;
  END LOOP;
  RETURN purged;
END
$$;
COMMENT ON FUNCTION kv_purge(text, bigint) IS
  'Removes the rows of expired keys, at most take of them, and returns how many keys; skips locked '
  'keys. Error: 22023 below 0';

CREATE FUNCTION docpatterns._kv_due(rel regclass, name text, OUT what text, OUT since timestamptz,
  OUT amount bigint) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT * FROM docpatterns._pattern_expired($1, 'expires_at', 'expired keys')
$$;
COMMENT ON FUNCTION docpatterns._kv_due(regclass, text) IS 'pattern_due of a key-value space';

CREATE FUNCTION docpatterns._kv_maintain(rel regclass, name text, most int) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  k text;
  purged bigint := 0;
BEGIN
  FOR k IN EXECUTE format('SELECT k.key FROM %s k WHERE k.expires_at <= $1 '
      'ORDER BY k.expires_at LIMIT $2', rel) USING clock_timestamp(), most LOOP
    purged := purged + docpatterns._kv_purge_key(docpatterns._kv_space_of(rel), k)::int;
  END LOOP;
  RETURN purged;
END
$$;
COMMENT ON FUNCTION docpatterns._kv_maintain(regclass, text, int) IS
  'pattern_maintain of a key-value space';

-- Verbs -------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._kv_repair_key(space text, key text) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_kv_repair_key' LANGUAGE C VOLATILE COST 1000;
COMMENT ON FUNCTION docpatterns._kv_repair_key(text, text) IS
  'corrects the row in keys and the counts of a key by its members; errors 23000 for '
  'members of two types, 42501 unless the caller owns the space';

CREATE FUNCTION docpatterns._kv_space_of(rel regclass) RETURNS text
LANGUAGE sql STABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
  SELECT n.nspname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = $1
$$;
COMMENT ON FUNCTION docpatterns._kv_space_of(regclass) IS 'the space that a table belongs to';

CREATE FUNCTION docpatterns._kv_check(rel regclass, name text) RETURNS TABLE (key bson_value,
  what text, expected text, found text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s text := quote_ident(docpatterns._kv_space_of(rel));
  t record;
BEGIN
  FOR t IN SELECT * FROM (VALUES ('hashes', 'hash'), ('sets', 'set'), ('scores', 'zset')) AS v
      (side, type) LOOP
    RETURN QUERY EXECUTE format(
      'SELECT @extschema@.to_bson(m.key), ''key'', %2$L, coalesce((SELECT k.type FROM %1$s.keys k '
      'WHERE k.key = m.key), ''none'') '
      'FROM (SELECT DISTINCT t.key FROM %1$s.%3$I t) m WHERE NOT EXISTS (SELECT 1 FROM %1$s.keys k '
        'WHERE k.key = m.key AND k.type = %2$L) ORDER BY m.key',
      s, t.type, t.side);
  END LOOP;
  RETURN QUERY EXECUTE format(
    'SELECT @extschema@.to_bson(m.key), ''score'', ''an int64 or a double'', m.score::text FROM '
    '%1$s.scores m '
    'WHERE @extschema@.bson_typeof(m.score) NOT IN (''double'', ''long'') OR m.score::text = '
      '''NaN'' ORDER BY m.key, m.member', s);
  RETURN QUERY EXECUTE format(
    'SELECT @extschema@.to_bson(k.key), ''blocks'', ''a first block'', ''none'' FROM %1$s.keys k '
    'WHERE k.type = ''zset'' '
    'AND NOT EXISTS (SELECT 1 FROM %1$s.counts c WHERE c.zset = k.zset AND c.level = 1 AND '
      '@extschema@.bson_typeof(c.score) = ''minKey'') ORDER BY k.key', s);
  RETURN QUERY EXECUTE format(
    'SELECT NULL::@extschema@.bson_value, ''blocks'', ''those of a key'', format(''those of zset '
    '%%s'', c.zset) FROM (SELECT DISTINCT c.zset FROM %1$s.counts c) c '
    'WHERE NOT EXISTS (SELECT 1 FROM %1$s.keys k WHERE k.zset = c.zset) ORDER BY c.zset', s);
  RETURN QUERY EXECUTE format(
    'WITH nodes AS (SELECT c.zset, c.level, c.score, c.member, sum(c.amount) AS amount FROM '
    '%1$s.counts c GROUP BY c.zset, c.level, c.score, c.member), '
    'bounds AS (SELECT n.*, lead(n.score, 1, ''{"$maxKey": 1}'') OVER w AS next_score, '
      'lead(n.member, 1, ''{"$maxKey": 1}'') OVER w AS next_member '
    'FROM nodes n WINDOW w AS (PARTITION BY n.zset, n.level ORDER BY n.score, n.member)) '
    'SELECT @extschema@.to_bson(k.key), format(''members of a block of level %%s'', b.level), '
      'm.n::text, b.amount::text FROM bounds b JOIN %1$s.keys k ON k.zset = b.zset '
    'CROSS JOIN LATERAL (SELECT count(*) AS n FROM %1$s.scores m WHERE m.key = k.key '
    'AND ROW(m.score, m.member) OPERATOR(@extschema@.>=) ROW(b.score, b.member) AND ROW(m.score, '
      'm.member) OPERATOR(@extschema@.<) ROW(b.next_score, b.next_member)) m '
    'WHERE m.n <> b.amount ORDER BY k.key, b.level, b.score, b.member', s);
  RETURN QUERY EXECUTE format(
    'SELECT @extschema@.to_bson(k.key), format(''bound of level %%s'', u.level), ''one of the '
    'level below'', ''none'' FROM '
    '(SELECT DISTINCT c.zset, c.level, c.score, c.member FROM %1$s.counts c WHERE c.level > 1) u '
      'JOIN %1$s.keys k ON k.zset = u.zset '
    'WHERE NOT EXISTS (SELECT 1 FROM %1$s.counts d WHERE d.zset = u.zset AND d.level = u.level - 1 '
      'AND d.score OPERATOR(@extschema@.=) u.score AND d.member OPERATOR(@extschema@.=) u.member) '
    'ORDER BY k.key, u.level', s);
END
$$;
COMMENT ON FUNCTION docpatterns._kv_check(regclass, text) IS
  'pattern_check of a key-value space: types of keys, scores, and the counts of blocks';

CREATE FUNCTION docpatterns._kv_repair(rel regclass, name text) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp
  SET docpatterns.maintain = off AS $$
DECLARE
  space text := docpatterns._kv_space_of(rel);
  k text;
  done bigint := 0;
BEGIN
  FOR k IN SELECT DISTINCT c.key::text FROM docpatterns._kv_check(rel, name) c
      WHERE c.what <> 'score' AND c.key IS NOT NULL LOOP
    done := done + docpatterns._kv_repair_key(space, k)::int;
  END LOOP;
  EXECUTE format('DELETE FROM %1$I.counts c WHERE NOT EXISTS (SELECT 1 FROM %1$I.keys k WHERE '
      'k.zset = c.zset)', space);
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._kv_repair(regclass, text) IS
  'pattern_repair of a key-value space: keys and counts follow the members; returns how many keys '
  'were repaired';

CREATE FUNCTION docpatterns._kv_pending(rel regclass, name text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT format('SELECT ROW(k.key) FROM %s k WHERE false', $1)
$$;
COMMENT ON FUNCTION docpatterns._kv_pending(regclass, text) IS
  'pattern_build of a key-value space: commands never leave anything to do';

CREATE FUNCTION docpatterns._kv_disable(rel regclass, name text, how bson) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s text := quote_ident(docpatterns._kv_space_of(rel));
  t text;
  done bigint;
BEGIN
  IF EXISTS (SELECT FROM docpatterns._pattern_declarations(NULL) d
             WHERE d.pattern = 'kv_leaderboard'
                 AND @extschema@.bson_get_text(d.options, 'space')
                 = docpatterns._kv_space_of(_kv_disable.rel)) THEN
    RAISE EXCEPTION 'the space contains leaderboards of tables'
      USING ERRCODE = 'dependent_objects_still_exist',
      HINT = 'Disable them first; pattern_list() shows them.';
  END IF;
  EXECUTE format('LOCK TABLE %s.keys IN ACCESS EXCLUSIVE MODE', s);
  EXECUTE format('SELECT count(*) FROM %s.keys', s) INTO done;
  FOREACH t IN ARRAY ARRAY['keys', 'hashes', 'sets', 'scores', 'counts'] LOOP
    EXECUTE format('DROP TRIGGER zz_docpatterns_90_kv_%2$s ON %1$s.%2$s; '
        'DROP TRIGGER zz_docpatterns_90_kv_%2$s_truncate ON %1$s.%2$s', s, t);
  END LOOP;
  IF @extschema@.bson_get_text(how, 'keep_data') IS DISTINCT FROM 'true' THEN
    EXECUTE format('DROP TABLE %s.counts', s);
  END IF;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._kv_disable(regclass, text, bson) IS
  'pattern_disable of a key-value space: plain tables are left, without the counts of blocks; '
  'error 2BP01 while it contains leaderboards of tables';
