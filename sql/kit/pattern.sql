-- Shared by all patterns: listing, checking, repairing, altering and disabling declarations, and
-- common triggers and views. The functions are in src/kit/. Names that begin with an underscore are
-- internal: they are in the schema docpatterns and change nothing that their caller could not
-- change otherwise.

CREATE TYPE pattern_declaration AS (rel regclass, pattern text, name text, options bson,
    sources regclass[]);
COMMENT ON TYPE pattern_declaration IS 'a row of pattern_list()';

CREATE TYPE pattern_violation AS (rel regclass, pattern text, name text, key bson_value, what text,
    expected text, found text);
COMMENT ON TYPE pattern_violation IS
  'a row of pattern_check(): a violation in the document of a key';

CREATE TYPE pattern_statistics AS (rel regclass, pattern text, name text, waiting bigint,
    notes bigint, failed bigint, unbuilt text[], side_writes bigint, side_bytes bigint,
    error text);
COMMENT ON TYPE pattern_statistics IS 'a row of pattern_stats()';

-- Bookkeeping -------------------------------------------------------------------------------------

-- Not dumped: a role that dumps its own tables has no privileges on it.
CREATE TABLE docpatterns.notes (rel regclass NOT NULL, pattern text NOT NULL, name text NOT NULL,
    value @extschema@.bson_value NOT NULL, held regclass NOT NULL,
  failed boolean NOT NULL);
-- Notes are short-lived: index scans skip dead ones until the table is vacuumed.
CREATE INDEX notes_held ON docpatterns.notes (held) WITH (deduplicate_items = off);
-- Not what was noted, which may be a key.
GRANT SELECT (rel, name, failed) ON docpatterns.notes TO PUBLIC;
COMMENT ON TABLE docpatterns.notes IS
  'work that a transaction left to another one to avoid a deadlock: the group, source or row of a '
  'declaration that the next transaction that writes to the table "held" recomputes before it '
  'commits; failed: that raised an error, and pattern_repair() will do it';

-- Declarations ------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._pattern_declarations(target regclass, OUT rel regclass,
  OUT pattern text, OUT name text, OUT options bson, OUT trigger_oid oid)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_pattern_declarations' LANGUAGE C STABLE;
COMMENT ON FUNCTION docpatterns._pattern_declarations(regclass) IS
  'declarations read back from pg_trigger, of one table or, with NULL, of all';

CREATE FUNCTION docpatterns._pattern_facts(pattern text, OUT creates_table boolean, OUT views text,
  OUT adopts text, OUT adopt_hint text, OUT waiting text, OUT whole_table boolean)
  AS 'MODULE_PATHNAME', 'dp_pattern_facts' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._pattern_facts(text) IS
  'what src/kit/registry.h has of a pattern; NULLs where it says nothing';

CREATE FUNCTION pattern_list(rel regclass DEFAULT NULL) RETURNS SETOF pattern_declaration
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
  SET docpatterns.max_document_size = '1073740799' AS $$
  SELECT d.rel, d.pattern, d.name,
    @extschema@.bson_unset(d.options, 'link_id', 'second_link_id', 'removed_link_id', 'group_at',
        'time_at', 'doc_at', 'name'),
    ARRAY(SELECT DISTINCT s.rel FROM unnest(docpatterns._pattern_link_ids(d.options)) AS l (id)
      CROSS JOIN LATERAL docpatterns._pattern_side(l.id, d.rel) AS s (rel)
      WHERE EXISTS (SELECT FROM docpatterns._pattern_anchors(s.rel) AS a WHERE a.label = l.id)
      ORDER BY s.rel)
  FROM docpatterns._pattern_declarations(pattern_list.rel) AS d
  WHERE pattern_list.rel IS NOT NULL
    OR (docpatterns._pattern_distribution(d.rel)).method IS DISTINCT FROM 'shard'
  ORDER BY d.rel::text, d.pattern, d.name
$$;
COMMENT ON FUNCTION pattern_list(regclass) IS
  'The patterns declared on a table, or on all tables, with their options and their sources: other '
  'tables whose documents they read. Reads the catalogs and takes no locks';

CREATE FUNCTION docpatterns._pattern_require_owner(rel regclass) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_pattern_require_owner' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._pattern_require_owner(regclass) IS
  'error 42501 unless the current user owns the table';

CREATE FUNCTION docpatterns._relname(rel regclass) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_relname' LANGUAGE C STABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._relname(regclass) IS
  'the name of a relation, for messages, which put it in double quotes';

CREATE FUNCTION docpatterns._pattern_require_same_owner(rel regclass, other regclass) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM docpatterns._pattern_require_owner(other);
  IF (SELECT r.relowner <> o.relowner FROM pg_class r, pg_class o
      WHERE r.oid = rel AND o.oid = other) THEN
    RAISE EXCEPTION 'tables "%" and "%" have different owners', docpatterns._relname(rel),
      docpatterns._relname(other)
      USING ERRCODE = 'insufficient_privilege';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_require_same_owner(regclass, regclass) IS
  'error 42501 unless the current user owns the other table, and one role owns both';

CREATE FUNCTION docpatterns._pattern_refuse_partition(VARIADIC rels regclass[]) RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  part regclass := (SELECT c.oid FROM pg_class c
                    WHERE c.oid = ANY (rels) AND c.relispartition LIMIT 1);
BEGIN
  IF part IS NOT NULL THEN
    RAISE EXCEPTION '"%" is a partition',
        docpatterns._relname(part) USING ERRCODE = 'wrong_object_type',
      DETAIL = 'Statement-level triggers on a partition do not fire for statements on its parent.',
      HINT = 'Declare the pattern on the partitioned table.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_refuse_partition(regclass[]) IS
  'error 42809 for partitions';

CREATE FUNCTION docpatterns._pattern_object_name(first text, second text, label text) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_pattern_object_name' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._pattern_object_name(text, text, text) IS
  'name of a generated object: the parts joined and shortened as PostgreSQL does';

-- The joined parts: the name of a table, view or function to create. If they had to be shortened,
-- as PostgreSQL does, and the schema already has that name, a number is added.
CREATE FUNCTION docpatterns._pattern_relation_name(schema_name text, first text, second text,
  label text) RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  result text := docpatterns._pattern_object_name(first, second, label);
  n int := 0;
BEGIN
  WHILE result <> concat_ws('_', first, second, label)
        AND (to_regclass(format('%I.%I', schema_name, result)) IS NOT NULL
            OR to_regtype(format('%I.%I', schema_name, result)) IS NOT NULL
             OR EXISTS (SELECT FROM pg_proc p JOIN pg_namespace s ON s.oid = p.pronamespace
                   WHERE s.nspname = schema_name AND p.proname = result)) LOOP
    n := n + 1;
    result := docpatterns._pattern_object_name(first, second, concat(label, n));
  END LOOP;
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_relation_name(text, text, text, text) IS
  'name of a generated table or view: the parts joined, and if they are too long a name that the '
  'schema does not use yet';

CREATE FUNCTION docpatterns._pattern_link_ids(options bson) RETURNS text[]
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT array_remove(ARRAY(SELECT @extschema@.bson_get_text($1, o)
        FROM unnest('{link_id,second_link_id,removed_link_id}'::text[]) o), NULL)
$$;
COMMENT ON FUNCTION docpatterns._pattern_link_ids(bson) IS
  'the link IDs in the options of a declaration, by which it finds its other tables';

CREATE FUNCTION docpatterns._pattern_side(link_id text, rel regclass) RETURNS regclass
  AS 'MODULE_PATHNAME', 'dp_pattern_side' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._pattern_side(text, regclass) IS
  'the second table of a pattern, or NULL; link_id is in the declaration''s options, rel is its '
  'table';

CREATE FUNCTION docpatterns.pattern_anchor_trigger() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_pattern_anchor_trigger' LANGUAGE C;
COMMENT ON FUNCTION docpatterns.pattern_anchor_trigger() IS
  'trigger that does nothing: with it a declaration follows its columns through renames, and '
  'misses a trigger that was dropped';

CREATE FUNCTION docpatterns._pattern_anchors(rel regclass, OUT trigger_name text, OUT label text,
  OUT doc_column text, OUT keys text[], OUT triggers text[])
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_pattern_anchors' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._pattern_anchors(regclass) IS
  'anchors of the declarations that a table takes part in: label is the name of the declaration, '
  'or the link ID on its other table';

CREATE FUNCTION docpatterns._pattern_emptied_on_commit(rel regclass) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_pattern_emptied_on_commit' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._pattern_emptied_on_commit(regclass) IS
  'whether a temporary table of this session was created with ON COMMIT DELETE ROWS after the '
  'extension was loaded';

CREATE FUNCTION docpatterns._pattern_require_key(rel regclass) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_pattern_require_key' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._pattern_require_key(regclass) IS
  'error 55000 if the primary key of a table is on other columns than its patterns were declared '
  'with';

-- Checks the requirements of patterns for the declared table.
CREATE FUNCTION docpatterns._pattern_table(rel regclass, doc_column text,
                               OUT base text, OUT schema_name text, OUT table_name text,
                               OUT owner oid, OUT doc text,
                               OUT keys text[], OUT key_types text[], OUT key_ops text[],
                               OUT key_list text, OUT key_value text)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  kind "char";
  docs text[];
BEGIN
  IF rel IS NULL THEN
    RAISE EXCEPTION 'the table must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  SELECT format('%I.%I', n.nspname, c.relname), n.nspname, c.relname, c.relowner, c.relkind
    INTO base, schema_name, table_name, owner, kind
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = rel;
  IF base IS NULL AND pg_table_is_visible(rel) IS NOT NULL THEN
    RAISE EXCEPTION 'could not serialize access due to concurrent update'
      USING ERRCODE = 'serialization_failure', HINT = 'Retry the transaction.',
            DETAIL = format('Table "%s" was created after this transaction took its snapshot.',
                docpatterns._relname(rel));
  ELSIF base IS NULL THEN
    RAISE EXCEPTION 'relation "%" does not exist',
        docpatterns._relname(rel) USING ERRCODE = 'undefined_table';
  END IF;
  IF kind NOT IN ('r', 'p') THEN
    RAISE EXCEPTION '"%" is not a table',
        docpatterns._relname(rel) USING ERRCODE = 'wrong_object_type',
      HINT = 'Declare the pattern on a table.';
  END IF;
  IF kind = 'r' AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = rel) THEN
    RAISE EXCEPTION 'table "%" has inheritance children', docpatterns._relname(rel)
      USING ERRCODE = 'feature_not_supported',
      DETAIL = 'Patterns support partitions but no other inheritance.';
  END IF;

  IF docpatterns._pattern_emptied_on_commit(rel) THEN
    RAISE EXCEPTION 'table "%" has ON COMMIT DELETE ROWS', docpatterns._relname(rel)
      USING ERRCODE = 'feature_not_supported',
      DETAIL = 'It fires no triggers, so side tables of patterns would keep their rows.';
  END IF;

  SELECT array_agg(a.attname::text ORDER BY a.attnum) INTO docs
    FROM pg_attribute a
    WHERE a.attrelid = rel AND a.attnum > 0 AND NOT a.attisdropped
      AND a.atttypid = '@extschema@.bson'::regtype
      AND (doc_column IS NULL OR a.attname = doc_column);
  IF docs IS NULL THEN
    RAISE EXCEPTION 'table "%" has no column% of type bson', docpatterns._relname(rel),
        CASE WHEN doc_column IS NULL THEN
      '' ELSE format(' "%s"', doc_column) END
      USING ERRCODE = 'undefined_column', HINT = coalesce((
        SELECT format('It has %s.', string_agg(format('"%s"', a.attname), ', ' ORDER BY a.attnum))
          FROM pg_attribute a WHERE a.attrelid = rel AND a.attnum > 0 AND NOT a.attisdropped
            AND a.atttypid = '@extschema@.bson'::regtype HAVING count(*) > 0),
        'Add a column of type bson, or convert one with bson_column_convert().');
  ELSIF cardinality(docs) > 1 THEN
    RAISE EXCEPTION 'table "%" has more than one column of type bson', docpatterns._relname(rel)
      USING ERRCODE = 'ambiguous_column', HINT = 'Specify the argument "doc_column".';
  END IF;
  doc := docs[1];

  SELECT array_agg(a.attname::text ORDER BY k.n), array_agg(format_type(a.atttypid, a.atttypmod) ||
           CASE WHEN a.attcollation <> 0 AND a.attcollation <> t.typcollation THEN
             ' COLLATE ' || a.attcollation::regcollation ELSE '' END ORDER BY k.n),
         array_agg((SELECT format('OPERATOR(%I.%s)', n.nspname, o.oprname)
                    FROM pg_opclass oc JOIN pg_amop ao ON ao.amopfamily = oc.opcfamily
                      AND ao.amoplefttype = oc.opcintype
                           AND ao.amoprighttype = oc.opcintype AND ao.amopstrategy = 3
                      JOIN pg_operator o ON o.oid = ao.amopopr
                        JOIN pg_namespace n ON n.oid = o.oprnamespace
                    WHERE oc.oid = (i.indclass::oid[])[k.n - 1]) ORDER BY k.n),
         string_agg(quote_ident(a.attname), ', ' ORDER BY k.n)
    INTO keys, key_types, key_ops, key_list
    FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, n)
      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
      JOIN pg_type t ON t.oid = a.atttypid
    WHERE i.indrelid = rel AND i.indisprimary AND i.indimmediate AND k.n <= i.indnkeyatts;
  IF keys IS NULL THEN
    RAISE EXCEPTION 'table "%" has no primary key', docpatterns._relname(rel)
      USING ERRCODE = 'object_not_in_prerequisite_state',
        DETAIL = 'Patterns find rows by primary key, which must not be deferrable.';
  END IF;
  PERFORM docpatterns._pattern_require_key(rel);
  key_value := format(CASE WHEN cardinality(keys) = 1 THEN '@extschema@.to_bson(%s)'
      ELSE '@extschema@.bson_array(%s)' END, key_list);
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_table(regclass, text) IS
  'names, owner, document column and primary key of a table; errors 42P01, 42809, 42703, 42702, '
  '55000 when it cannot carry a pattern';

-- A declaration contains the name of its document column, which may have been renamed since.
CREATE FUNCTION docpatterns._pattern_doc_column(rel regclass, declared text) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = $1 AND a.attname = $2
    AND a.attnum > 0 AND NOT a.attisdropped
$$;
COMMENT ON FUNCTION docpatterns._pattern_doc_column(regclass, text) IS
  'the column if the table still has it, else NULL: then the only one of type bson is meant';

-- Whether two paths lead to the same field, or one into the field of the other.
CREATE FUNCTION docpatterns._pattern_paths_overlap(a text, b text) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT @extschema@.bson_exists(@extschema@.bson_set('{}'::@extschema@.bson, $1, 1), $2)
      OR @extschema@.bson_exists(@extschema@.bson_set('{}'::@extschema@.bson, $2, 1), $1)
$$;
COMMENT ON FUNCTION docpatterns._pattern_paths_overlap(text, text) IS
  'whether two paths lead to the same field, or one into the field of the other; NULL if one is '
  'null; error 22023 for a bad path';

-- A name that may contain dots and the like, as a path.
CREATE FUNCTION docpatterns._pattern_name_path(name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN $1 ~ '^[A-Za-z_][A-Za-z0-9_]*$' THEN $1 ELSE
    format('"%s"', replace($1, '"', '""')) END
$$;
COMMENT ON FUNCTION docpatterns._pattern_name_path(text) IS
  'a name as a path, with quotes where it needs them';

-- A name for a trigger that the table does not use yet: shortened names may collide.
CREATE FUNCTION docpatterns._pattern_trigger_name(rel regclass, stem text, name text, label text)
  RETURNS text
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  result text := docpatterns._pattern_object_name(stem, name, label);
  n int := 0;
BEGIN
  WHILE EXISTS (SELECT FROM pg_trigger t WHERE t.tgname = result
        AND t.tgrelid IN (SELECT p.relid FROM pg_partition_tree(rel) p UNION SELECT rel)) LOOP
    n := n + 1;
    result := docpatterns._pattern_object_name(stem, name, concat(label, n));
  END LOOP;
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_trigger_name(regclass, text, text, text) IS
  'name of a generated trigger that neither the table nor a partition of it uses';

-- The existing or a new name of a trigger of a declaration, identified by the events on which it
-- fires.
CREATE FUNCTION docpatterns._pattern_own_trigger(rel regclass, place int, pattern text, name text,
  label text, type int) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(
    (SELECT t.tgname::text FROM pg_trigger t
     WHERE t.tgrelid = $1 AND t.tgtype = $6
       AND t.tgfoid = format('docpatterns.%I()', $3 || '_trigger')::regprocedure
       AND (t.tgargs = docpatterns._pattern_arguments('of', $4)
            OR t.oid = (SELECT d.trigger_oid FROM docpatterns._pattern_declarations($1) d
                WHERE d.pattern = $3 AND d.name = $4))),
    docpatterns._pattern_trigger_name($1, format('zz_docpatterns_%s_%s', $2, $3), $4, $5))
$$;
COMMENT ON FUNCTION docpatterns._pattern_own_trigger(regclass, int, text, text, text, int) IS
  'name of a trigger of a declaration; place is the position of the pattern in the firing order, '
  'type as in pg_trigger';

-- Citus does not give its shards triggers for TRUNCATE, so these must not be for other events, too.
CREATE FUNCTION docpatterns._pattern_split_events(event text, type int, OUT event text,
  OUT type int, OUT label text) RETURNS SETOF record
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT replace($1, ' OR TRUNCATE', ''), $2 & ~32, NULL::text WHERE $1 LIKE '% OR TRUNCATE'
  UNION ALL
  SELECT split_part($1, ' ', 1) || ' TRUNCATE', $2 & 34, 'truncate' WHERE $1 LIKE '% OR TRUNCATE'
  UNION ALL
  SELECT $1, $2, NULL WHERE $1 NOT LIKE '% OR TRUNCATE'
$$;
COMMENT ON FUNCTION docpatterns._pattern_split_events(text, int) IS
  'the events of a trigger for each statement (and its type in pg_trigger), by triggers: one for '
  'TRUNCATE, which has a label, and one for the others';

-- Statement triggers are not inherited by partitions.
CREATE FUNCTION docpatterns._pattern_statement_trigger(rel regclass, place int, pattern text,
  name text, label text, type int, event text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g record;
  trigger_name text;
  part regclass;
BEGIN
  FOR g IN SELECT * FROM docpatterns._pattern_split_events(event, type) LOOP
    trigger_name := docpatterns._pattern_own_trigger(rel, place, pattern, name,
        concat_ws('_', label, g.label), g.type);
    FOR part IN SELECT p.relid FROM pg_partition_tree(rel) p UNION SELECT rel LOOP
      EXECUTE format('CREATE OR REPLACE TRIGGER %I %s ON %s FOR EACH STATEMENT EXECUTE FUNCTION '
          'docpatterns.%I(%L, %L)',
                     trigger_name, g.event, part, pattern || '_trigger', 'of', name);
    END LOOP;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_statement_trigger(regclass, int, text, text, text, int,
  text) IS
  'creates a statement-level trigger of a declaration on a table and all of its partitions';

CREATE FUNCTION docpatterns._pattern_hint(rel regclass) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_pattern_hint' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._pattern_hint(regclass) IS
  'the hint of an error for a pattern that a table does not have: those that it has';

CREATE FUNCTION docpatterns._pattern_read_by(source regclass, OUT rel regclass, OUT pattern text,
  OUT name text) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT d.rel, d.pattern, d.name FROM docpatterns._pattern_anchors($1) AS a
    JOIN docpatterns._pattern_declarations(NULL) AS d
      ON a.label = ANY (docpatterns._pattern_link_ids(d.options))
   ORDER BY d.rel::text, d.name
$$;
COMMENT ON FUNCTION docpatterns._pattern_read_by(regclass) IS
  'the declarations of other tables of which a table is a source';

-- The declaration with that name, or the only one; optionally of one pattern.
CREATE FUNCTION docpatterns._pattern_find(target regclass, target_name text,
  wanted text DEFAULT NULL, OUT pattern text, OUT name text, OUT options bson)
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  n int;
  table_name text := (SELECT c.relname FROM pg_class c WHERE c.oid = target);
  what text := concat(replace(wanted, '_', ' ') || ' ', 'pattern', ' "' || target_name || '"');
  source record;
BEGIN
  IF target IS NULL THEN
    RAISE EXCEPTION 'the table must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  SELECT count(*), min(d.pattern), min(d.name) INTO n, pattern, name
    FROM docpatterns._pattern_declarations(target) d
    WHERE (target_name IS NULL OR d.name = target_name) AND (wanted IS NULL OR d.pattern = wanted);
  IF n > 1 THEN
    RAISE EXCEPTION 'table "%" has more than one %', table_name, what
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Specify the argument "name".';
  ELSIF n = 1 THEN
    SELECT d.options INTO options FROM docpatterns._pattern_declarations(target) d
      WHERE d.pattern = _pattern_find.pattern AND d.name = _pattern_find.name;
    RETURN;
  END IF;
  SELECT c.relname, d.name INTO source
    FROM docpatterns._pattern_read_by(target) d JOIN pg_class c ON c.oid = d.rel
    WHERE (target_name IS NULL OR d.name = target_name) AND (wanted IS NULL OR d.pattern = wanted)
    LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'table "%" is the source of pattern "%" of table "%"',
      table_name, source.name, source.relname
      USING ERRCODE = 'undefined_object', HINT = format('Specify table "%s".', source.relname);
  END IF;
  RAISE EXCEPTION 'table "%" has no %', table_name, what
    USING ERRCODE = 'undefined_object', HINT = docpatterns._pattern_hint(target);
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_find(regclass, text, text) IS
  'the declaration of that name on a table, or the only one; errors 22004, 42704, 22023';

-- Verbs -------------------------------------------------------------------------------------------

CREATE FUNCTION docpatterns._pattern_check_one(rel regclass, pattern text, name text)
  RETURNS SETOF pattern_violation
  AS 'MODULE_PATHNAME', 'dp_pattern_check_one' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._pattern_check_one(regclass, text, text) IS
  'pattern_check for one declaration, run as the owner of the table; error 42501 unless the caller '
  'owns it';

CREATE FUNCTION docpatterns._pattern_disabled_triggers(rel regclass, label text, name text)
  RETURNS TABLE (trigger_name name, on_table regclass, state text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT g.tgname, g.tgrelid, CASE g.tgenabled WHEN 'D' THEN 'disabled' ELSE
    'enabled on replicas only' END
  FROM (SELECT p.relid::oid AS relid FROM pg_partition_tree($1) p UNION SELECT $1) AS r
    JOIN pg_trigger g ON g.tgrelid = r.relid
  WHERE g.tgenabled IN ('D', 'R')
    AND (g.tgname IN (SELECT e.expected FROM docpatterns._pattern_anchors($1) a
          CROSS JOIN docpatterns._pattern_expected_triggers($1, a.triggers) AS e (expected)
          WHERE a.label = $2) OR g.tgargs = docpatterns._pattern_arguments('side', $2, $3))
$$;
COMMENT ON FUNCTION docpatterns._pattern_disabled_triggers(regclass, text, text) IS
  'triggers of a declaration that do not fire, on one of its tables and the partitions of that';

-- Checks the tables of a declaration, which its own check takes for granted.
CREATE FUNCTION docpatterns._pattern_check_declaration(rel regclass, pattern text, name text)
  RETURNS SETOF pattern_violation
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  WITH declared AS (
    SELECT d.options, docpatterns._pattern_link_ids(d.options) AS link_ids
    FROM docpatterns._pattern_declarations($1) d WHERE d.pattern = $2 AND d.name = $3
  ), tables AS (
    SELECT $1 AS tab, $3 AS label UNION ALL SELECT s.tab, p FROM declared d
      CROSS JOIN unnest(d.link_ids) p CROSS JOIN docpatterns._pattern_side(p, $1) s (tab)
      WHERE s.tab IS NOT NULL
  ), anchors AS (
    SELECT t.tab, a.* FROM tables t CROSS JOIN LATERAL docpatterns._pattern_anchors(t.tab) a
      WHERE a.label = t.label
  ), primary_keys AS (
    SELECT i.indrelid AS tab, array_agg(a.attname::text ORDER BY k.n) AS keys
    FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, n)
      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
    WHERE i.indisprimary AND k.n <= i.indnkeyatts AND i.indrelid IN (SELECT t.tab FROM tables t)
      GROUP BY i.indrelid
  )
  SELECT $1, $2, $3, NULL::@extschema@.bson_value, v.what, v.expected, v.found
  FROM (
    SELECT 'primary key' AS what, a.keys::text AS expected,
      format('%s of %s', k.keys, a.tab) AS found
      FROM anchors a JOIN primary_keys k ON k.tab = a.tab WHERE k.keys <> a.keys AND a.keys <> '{}'
    UNION ALL
    SELECT 'trigger', format('%s on %s', e.expected, a.tab), 'missing'
      FROM anchors a CROSS JOIN docpatterns._pattern_expected_triggers(a.tab, a.triggers)
        AS e (expected)
      WHERE NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = a.tab AND g.tgname = e.expected)
    UNION ALL
    SELECT 'trigger', format('%s on %s', g.trigger_name, g.on_table), g.state FROM tables t
      CROSS JOIN LATERAL docpatterns._pattern_disabled_triggers(t.tab, t.label, $3) g
    UNION ALL
    SELECT 'trigger', format('the anchor on %s', $1), 'missing'
      WHERE NOT (docpatterns._pattern_facts($2)).creates_table
        AND NOT EXISTS (SELECT FROM anchors a WHERE a.label = $3)
    UNION ALL
    SELECT 'persistence', format('%s is logged, as %s is', t.tab, $1),
      'it is not, and a crash would empty it'
      FROM tables t JOIN pg_class c ON c.oid = t.tab JOIN pg_class m ON m.oid = $1
        WHERE c.relpersistence = 'u' AND m.relpersistence = 'p' AND m.relkind <> 'f'
    UNION ALL
    SELECT 'owner of ' || q.object, (SELECT c.relowner::regrole::text FROM pg_class c
        WHERE c.oid = $1), q.owner::text FROM docpatterns._pattern_taken($1, $2, $3) q
    UNION ALL
    SELECT 'view ' || l.label, 'present', 'missing'
      FROM declared d
        CROSS JOIN unnest(docpatterns._pattern_view_labels($2, d.options)) AS l (label)
      WHERE docpatterns._pattern_is_distributed($1)
        AND docpatterns._pattern_made_view($1, $2, $3, l.label,
          (SELECT c.relowner FROM pg_class c WHERE c.oid = $1)) IS NULL
    UNION ALL
    SELECT 'shards', format('with those of %s', $1), format('%s has its own', t.tab) FROM tables t
      WHERE docpatterns._pattern_is_distributed($1)
        AND (docpatterns._pattern_distribution(t.tab)).colocation IS DISTINCT FROM
          (docpatterns._pattern_distribution($1)).colocation
        AND (docpatterns._pattern_distribution(t.tab)).method IS DISTINCT FROM 'copied'
    UNION ALL
    SELECT 'inheritance', format('no table inherits from %s', t.tab), i.inhrelid::regclass::text
      FROM tables t JOIN pg_class c ON c.oid = t.tab JOIN pg_inherits i ON i.inhparent = t.tab
        WHERE c.relkind = 'r'
  ) AS v
$$;
COMMENT ON FUNCTION docpatterns._pattern_check_declaration(regclass, text, text) IS
  'violations in the catalogs by the tables of a declaration: another primary key, missing or '
  'disabled triggers, tables that a crash would empty, views of other owners, tables that inherit, '
  'and on Citus shards in other places and missing views';

CREATE FUNCTION docpatterns._pattern_check_shards(rel regclass, pattern text, name text)
  RETURNS SETOF pattern_violation
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  s record;
  c record;
  declared boolean;
BEGIN
  FOR s IN SELECT q.* FROM docpatterns._pattern_shard_places(rel) q LOOP
    EXECUTE docpatterns._shard_query(rel, s.condition, 'EXISTS (SELECT FROM '
      'docpatterns._pattern_declarations(s.rel) d WHERE d.pattern = $1 AND d.name = $2)', false)
      INTO declared USING pattern, name;
    IF NOT declared THEN
      RETURN NEXT (rel, pattern, name, NULL, 'trigger', 'those of ' || rel::text,
        format('missing (%s)', s.place))::@extschema@.pattern_violation;
      CONTINUE;
    END IF;
    -- OIDs are those of another server; views and functions are looked for beside the table
    FOR c IN EXECUTE format('SELECT v.key, v.what, v.expected, v.found FROM (%s) AS q CROSS JOIN '
        'LATERAL @extschema@.pattern_check(q.rel, $1) AS v',
        docpatterns._shard_query(rel, s.condition, 's.rel', false)) USING name LOOP
      CONTINUE WHEN c.key IS NULL AND c.what ~ '^(view|function) ?';
      RETURN NEXT (rel, pattern, name, c.key, c.what, c.expected,
        format('%s (%s)', c.found, s.place))::@extschema@.pattern_violation;
    END LOOP;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_check_shards(regclass, text, text) IS
  'pattern_check for one declaration of a distributed table: each row says in which shard';

-- The planner assumes that a never analyzed table is large, and would compile the check's query for
-- longer than the check takes; and that a check has many results, which parallel workers would have
-- to pass on.
CREATE FUNCTION pattern_check(rel regclass DEFAULT NULL, name text DEFAULT NULL)
  RETURNS SETOF pattern_violation
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp SET jit = off
  SET parallel_tuple_cost = 0 AS $$
DECLARE
  d record;
  damage @extschema@.pattern_violation[];
BEGIN
  IF pattern_check.rel IS NOT NULL THEN
    PERFORM docpatterns._pattern_require_owner(pattern_check.rel);
    IF pattern_check.name IS NOT NULL THEN
      PERFORM docpatterns._pattern_find(pattern_check.rel, pattern_check.name);
    END IF;
  END IF;
  FOR d IN
    SELECT q.rel, q.pattern, q.name
    FROM docpatterns._pattern_declarations(pattern_check.rel) q
      JOIN pg_class c ON c.oid = q.rel
    WHERE (pattern_check.name IS NULL OR q.name = pattern_check.name)
      AND pg_has_role(c.relowner, 'USAGE') AND NOT pg_is_other_temp_schema(c.relnamespace)
      -- unlogged tables cannot be read on a standby
      AND NOT (c.relpersistence = 'u' AND pattern_check.rel IS NULL AND pg_is_in_recovery())
      AND docpatterns._pattern_hook(q.pattern, 'check', 'regclass, text') IS NOT NULL
      AND (pattern_check.rel IS NOT NULL
        OR (docpatterns._pattern_distribution(q.rel)).method IS DISTINCT FROM 'shard')
    ORDER BY q.rel::text, q.pattern, q.name
  LOOP
    BEGIN
      damage := ARRAY(SELECT c FROM docpatterns._pattern_check_declaration(d.rel, d.pattern, d.name)
          c);
      IF docpatterns._pattern_is_distributed(d.rel) THEN
        RETURN QUERY SELECT c.* FROM docpatterns._pattern_check_shards(d.rel, d.pattern, d.name) c;
      -- another key would compare the rows of other documents
      ELSIF NOT EXISTS (SELECT FROM unnest(damage) c
            WHERE c.what IN ('primary key', 'inheritance')) THEN
        RETURN QUERY SELECT c.* FROM docpatterns._pattern_check_one(d.rel, d.pattern, d.name) c;
      END IF;
      RETURN QUERY SELECT c.* FROM unnest(damage) c;
    EXCEPTION WHEN OTHERS THEN
      -- an error for one table must not hide violations in others
      IF pattern_check.rel IS NOT NULL OR SQLSTATE ~ '^(40|53|57)' THEN
        RAISE;
      END IF;
      RETURN QUERY SELECT d.rel, d.pattern, d.name, NULL::@extschema@.bson_value,
        'declaration'::text, 'can be checked'::text, SQLERRM;
    END;
  END LOOP;
END
$$;
COMMENT ON FUNCTION pattern_check(regclass, text) IS
  'One row for each violated invariant of a declaration, a table, or all tables that the caller '
  'owns; no rows mean that all is consistent. On a standby, unlogged tables are left out unless '
  'named. Reads everything that the patterns keep, in one snapshot, and shows the declaration at '
  'hand in pg_stat_activity. Error: 42501 a table of another owner';

CREATE FUNCTION pattern_stats(rel regclass DEFAULT NULL) RETURNS SETOF pattern_statistics
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
  s @extschema@.pattern_statistics;
  part record;
  one record;
  queue regclass;
BEGIN
  IF rel IS NOT NULL THEN
    PERFORM docpatterns._pattern_require_owner(rel);
  END IF;
  FOR d IN
    SELECT q.rel, q.pattern, q.name, q.options
    FROM docpatterns._pattern_declarations(pattern_stats.rel) q JOIN pg_class c ON c.oid = q.rel
    WHERE pg_has_role(c.relowner, 'USAGE') AND NOT pg_is_other_temp_schema(c.relnamespace)
      AND NOT (c.relpersistence = 'u' AND pg_is_in_recovery())
      AND (pattern_stats.rel IS NOT NULL
        OR (docpatterns._pattern_distribution(q.rel)).method IS DISTINCT FROM 'shard')
    ORDER BY q.rel::text, q.pattern, q.name
  LOOP
    s := (d.rel, d.pattern, d.name, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    IF @extschema@.bson_exists(d.options, 'held') THEN
      s.unbuilt := ARRAY(SELECT e::text
          FROM @extschema@.bson_elements(d.options OPERATOR(@extschema@.->) 'held'::text) e);
    END IF;
    IF docpatterns._pattern_is_distributed(d.rel) THEN
      FOR part IN SELECT q.condition FROM docpatterns._pattern_shards(d.rel) q LOOP
        EXECUTE format('SELECT c.waiting, c.notes, c.failed, c.side_writes, c.side_bytes FROM (%s) '
            'AS q CROSS JOIN LATERAL @extschema@.pattern_stats(q.rel) AS c WHERE c.name = $1',
            docpatterns._shard_query(d.rel, part.condition, 's.rel', false)) INTO one USING d.name;
        s.waiting := coalesce(s.waiting + one.waiting, s.waiting, one.waiting);
        s.notes := coalesce(s.notes, 0) + one.notes;
        s.failed := coalesce(s.failed, 0) + one.failed;
        s.side_writes := coalesce(s.side_writes + one.side_writes, s.side_writes, one.side_writes);
        s.side_bytes := coalesce(s.side_bytes + one.side_bytes, s.side_bytes, one.side_bytes);
      END LOOP;
      RETURN NEXT s;
      CONTINUE;
    END IF;
    queue := docpatterns._pattern_side(@extschema@.bson_get_text(d.options,
        (docpatterns._pattern_facts(d.pattern)).waiting), d.rel);
    IF queue IS NOT NULL THEN
      EXECUTE format('SELECT count(*) FROM %s', queue) INTO s.waiting;
    END IF;
    SELECT count(*) FILTER (WHERE NOT n.failed), count(*) FILTER (WHERE n.failed)
      INTO s.notes, s.failed FROM docpatterns.notes n WHERE n.rel = d.rel AND n.name = d.name;
    SELECT sum(t.n_tup_ins + t.n_tup_upd + t.n_tup_del), sum(pg_total_relation_size(t.relid))
      INTO s.side_writes, s.side_bytes
      FROM unnest(docpatterns._pattern_link_ids(d.options)) l
        JOIN pg_stat_all_tables t ON t.relid = docpatterns._pattern_side(l, d.rel)
      WHERE EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = t.relid
          AND g.tgfoid = 'docpatterns.pattern_guard_trigger'::regproc);
    SELECT m.error INTO s.error FROM docpatterns.maintenance m
      WHERE m.rel = d.rel AND m.pattern = d.pattern AND m.name = d.name;
    RETURN NEXT s;
  END LOOP;
END
$$;
COMMENT ON FUNCTION pattern_stats(regclass) IS
  'What the declarations of a table, or of all tables that the caller owns, still have to do, '
  'which error ended their maintenance, and the size of their side tables. Reads the catalogs, '
  'PostgreSQL''s statistics and all rows of queues. Error: 42501 a table of another owner';

CREATE FUNCTION docpatterns._pattern_call(verb text, rel regclass, pattern text, name text,
  options bson) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_pattern_call' LANGUAGE C;
COMMENT ON FUNCTION docpatterns._pattern_call(text, regclass, text, text, bson) IS
  'calls _<pattern>_<verb> as the owner of the table; error 42501 unless the caller owns it';

CREATE FUNCTION docpatterns._pattern_mend_triggers(rel regclass, pattern text, name text,
  options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  g record;
BEGIN
  FOR g IN
    SELECT q.trigger_name, q.on_table
    FROM (SELECT rel AS tab, name AS label UNION ALL SELECT docpatterns._pattern_side(p, rel), p
          FROM unnest(docpatterns._pattern_link_ids(options)) p) t
      CROSS JOIN LATERAL docpatterns._pattern_disabled_triggers(t.tab, t.label, name) q
        WHERE t.tab IS NOT NULL
          AND (docpatterns._pattern_distribution(rel)).method IS DISTINCT FROM 'shard'
  LOOP
    EXECUTE format('ALTER TABLE %s ENABLE TRIGGER %I', g.on_table, g.trigger_name);
  END LOOP;
  IF docpatterns._pattern_is_distributed(rel) AND EXISTS (
      SELECT FROM docpatterns._pattern_check_shards(rel, pattern, name) c
      WHERE c.what = 'trigger' AND c.found ~ '^(disabled|enabled)') THEN
    PERFORM docpatterns._pattern_allow_triggers(rel);
    FOR g IN SELECT unnest(a.triggers) AS trigger_name FROM docpatterns._pattern_anchors(rel) a
        WHERE a.label = name LOOP
      EXECUTE format('ALTER TABLE %s ENABLE TRIGGER %I', rel, g.trigger_name);
    END LOOP;
  END IF;
  -- those of a shard are made for all of them
  IF docpatterns._pattern_hook(pattern, 'create_triggers', 'regclass, @extschema@.bson') IS NOT NULL
     AND (EXISTS (SELECT FROM docpatterns._pattern_anchors(rel) a CROSS JOIN unnest(a.triggers) e
                  WHERE a.label = name AND NOT EXISTS (SELECT FROM pg_trigger t
                        WHERE t.tgrelid = rel AND t.tgname = e)
                    AND (docpatterns._pattern_distribution(rel)).method IS DISTINCT FROM 'shard')
       OR docpatterns._pattern_is_distributed(rel)
         AND EXISTS (SELECT FROM docpatterns._pattern_check_shards(rel, pattern, name) c
                     WHERE c.what = 'trigger')) THEN
    PERFORM docpatterns._pattern_allow_triggers(rel);
    EXECUTE format('SELECT docpatterns.%I($1, $2)', '_' || pattern || '_create_triggers')
      USING rel, options;
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_mend_triggers(regclass, text, text, bson) IS
  'enables disabled triggers of a declaration, and creates missing ones of its own table if the '
  'pattern has a function for it';

CREATE FUNCTION pattern_repair(rel regclass, name text DEFAULT NULL,
  accept_loss boolean DEFAULT false) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
  d record;
  r record;
  done bigint := 0;
BEGIN
  SELECT f.* INTO d FROM docpatterns._pattern_find(pattern_repair.rel, pattern_repair.name) f;
  PERFORM docpatterns._pattern_require_owner(pattern_repair.rel);
  PERFORM docpatterns._pattern_require_views(pattern_repair.rel, d.pattern, d.name);
  PERFORM docpatterns._pattern_mend_triggers(pattern_repair.rel, d.pattern, d.name, d.options);
  IF docpatterns._pattern_is_distributed(pattern_repair.rel) THEN
    done := docpatterns._pattern_sum_shards(pattern_repair.rel,
        format('@extschema@.pattern_repair(s.rel, %L, %L)', d.name, accept_loss));
    IF EXISTS (SELECT FROM docpatterns._pattern_check_declaration(pattern_repair.rel, d.pattern,
          d.name) c WHERE starts_with(c.what, 'view')) THEN
      done := done + docpatterns._pattern_call('repair', pattern_repair.rel, d.pattern, d.name,
          NULL)::bigint;
    END IF;
    PERFORM docpatterns._pattern_note_built(pattern_repair.rel, d.name, accept_loss IS TRUE);
    RETURN done;
  END IF;
  IF @extschema@.bson_exists(d.options, 'held') THEN
    IF accept_loss IS NOT TRUE THEN
      PERFORM docpatterns._pattern_require_kept(pattern_repair.rel, d.pattern, d.name);
    END IF;
    FOR r IN SELECT k.key FROM docpatterns._pattern_pending_keys(pattern_repair.rel, d.pattern,
          d.name) AS k (key record) LOOP
      done := done + docpatterns._pattern_repair_row(pattern_repair.rel, d.name, r.key,
          accept_loss IS NOT TRUE)::int;
    END LOOP;
    IF docpatterns._pattern_hook(d.pattern, 'build_end', 'regclass, text') IS NOT NULL THEN
      done := done + docpatterns._pattern_call('build_end', pattern_repair.rel, d.pattern, d.name,
          NULL)::bigint;
    END IF;
    PERFORM docpatterns._pattern_note_built(pattern_repair.rel, d.name, accept_loss IS TRUE);
    -- violations may be such values, too
    IF accept_loss IS NOT TRUE THEN
      RETURN done;
    END IF;
  END IF;
  IF accept_loss AND docpatterns._pattern_hook(d.pattern, 'accept_loss',
        'regclass, text') IS NOT NULL THEN
    done := docpatterns._pattern_call('accept_loss', pattern_repair.rel, d.pattern, d.name,
        NULL)::bigint;
  END IF;
  RETURN done + docpatterns._pattern_call('repair', pattern_repair.rel, d.pattern, d.name, CASE
      WHEN accept_loss THEN '{accept_loss: true}'::@extschema@.bson END)::bigint;
END
$$;
COMMENT ON FUNCTION pattern_repair(regclass, text, boolean) IS
  'Makes the data of a pattern consistent, enables disabled triggers, and returns the number of '
  'documents written. Lost data are reported by a warning with keys, or by error 55000 for a '
  'missing table; accept_loss continues without them. Where fields hold values from before the '
  'declaration it does what pattern_build does. Locks the rows that it writes. Errors: 42501 '
  'unless the caller owns the table, 55000 also for a view name that a relation of another role '
  'has, 55006 in a trigger during a statement that changes keys, 40001 as pattern_alter';

CREATE FUNCTION pattern_alter(rel regclass, name text, options bson) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
BEGIN
  IF options IS NULL THEN
    RAISE EXCEPTION 'options must not be null' USING ERRCODE = 'null_value_not_allowed';
  END IF;
  PERFORM docpatterns._pattern_require_owner(pattern_alter.rel);
  SELECT f.* INTO d FROM docpatterns._pattern_find(pattern_alter.rel, pattern_alter.name) f;
  IF @extschema@.bson_exists(d.options, 'held') THEN
    RAISE EXCEPTION 'pattern_build() has not finished for the existing rows of table "%"',
      docpatterns._relname(pattern_alter.rel)
      USING ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Call pattern_build() first.';
  END IF;
  PERFORM docpatterns._pattern_call('alter', pattern_alter.rel, d.pattern, d.name,
    pattern_alter.options);
END
$$;
COMMENT ON FUNCTION pattern_alter(regclass, text, bson) IS
  'Changes options of a declaration. Locks the table against writers; needs ownership. Errors: '
  '22023 an option that does not exist or cannot be changed, 55000 where documents already have '
  'values in fields that the pattern does not keep yet, 40001 where the transaction''s snapshot is '
  'older than one of the table''s declarations';

CREATE FUNCTION pattern_disable(rel regclass, name text DEFAULT NULL,
  keep_data boolean DEFAULT false) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (
    SELECT docpatterns._pattern_call('disable', $1, d.pattern, d.name,
        @extschema@.bson_build('keep_data', $3))::bigint
    FROM docpatterns._pattern_find($1, $2) d);
END
$$;
COMMENT ON FUNCTION pattern_disable(regclass, text, boolean) IS
  'Ends a declaration, puts its data back into plain documents (with keep_data: leaves them where '
  'they are) and returns the number of documents. Locks the table; needs ownership. Errors: 54000 '
  'with the keys of documents that would be too large, 40001 as pattern_alter';

-- Patterns that read what others write have later places (NN in the names of triggers), so the last
-- one ends first; of one place, polymorphic ends before polymorphic_variant. Declarations that
-- others need, also of other tables, are tried again.
CREATE FUNCTION pattern_disable_all(rel regclass DEFAULT NULL) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  d record;
  needed record;
  ended boolean;
  done bigint := 0;
BEGIN
  IF rel IS NOT NULL THEN
    PERFORM docpatterns._pattern_require_owner(rel);
  END IF;
  LOOP
    ended := false;
    needed := NULL;
    FOR d IN
      SELECT q.rel, q.name FROM docpatterns._pattern_declarations(pattern_disable_all.rel) q
        JOIN pg_class c ON c.oid = q.rel JOIN pg_trigger g ON g.oid = q.trigger_oid
      WHERE pg_has_role(c.relowner, 'USAGE') AND NOT pg_is_other_temp_schema(c.relnamespace)
        AND (pattern_disable_all.rel IS NOT NULL
          OR (docpatterns._pattern_distribution(q.rel)).method IS DISTINCT FROM 'shard')
      ORDER BY left(g.tgname, 17) DESC, q.pattern, q.rel
    LOOP
      -- another one may have ended it
      CONTINUE WHEN NOT EXISTS (SELECT FROM docpatterns._pattern_declarations(d.rel) q
          WHERE q.name = d.name);
      BEGIN
        done := done + @extschema@.pattern_disable(d.rel, d.name);
        ended := true;
      EXCEPTION WHEN dependent_objects_still_exist THEN
        needed := d;
      END;
    END LOOP;
    EXIT WHEN NOT ended;
  END LOOP;
  IF needed IS NOT NULL THEN
    PERFORM @extschema@.pattern_disable(needed.rel, needed.name);
  END IF;
  RETURN done;
END
$$;
COMMENT ON FUNCTION pattern_disable_all(regclass) IS
  'Ends all declarations of a table, or of all tables that the caller owns, as pattern_disable '
  'does and in an order in which each finds what it needs. Returns the number of documents. Locks '
  'the tables. Errors: those of pattern_disable, 2BP01 where a pattern of another table needs one, '
  '42501 unless the caller owns the table';

CREATE FUNCTION docpatterns._pattern_repair_row(rel regclass, name text, key record,
  adopt boolean DEFAULT false) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_pattern_repair_row' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._pattern_repair_row(regclass, text, record, boolean) IS
  'makes one row consistent with a declaration, as the owner of the table; adopt: first moves '
  'earlier values of its fields to the source or side table; error 42501 unless the caller owns it';

CREATE FUNCTION docpatterns._pattern_pending_keys(rel regclass, pattern text, name text)
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_pattern_pending_keys' LANGUAGE C STABLE STRICT
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION docpatterns._pattern_pending_keys(regclass, text, text) IS
  'keys (key record) of rows that may be inconsistent with a declaration, read as the owner of the '
  'table; error 42501 unless the caller owns it';

CREATE FUNCTION docpatterns._pattern_build_all(rel regclass, pattern text, name text,
  discard boolean) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  r record;
  done bigint := 0;
BEGIN
  IF docpatterns._pattern_hook(pattern, 'pending', 'regclass, text') IS NOT NULL THEN
    FOR r IN SELECT k.key FROM docpatterns._pattern_pending_keys(rel, pattern, name) AS k
        (key record) LOOP
      PERFORM docpatterns._pattern_repair_row(rel, name, r.key, discard IS NOT TRUE);
      done := done + 1;
    END LOOP;
  END IF;
  IF docpatterns._pattern_hook(pattern, 'build_end', 'regclass, text') IS NOT NULL THEN
    done := done + docpatterns._pattern_call('build_end', rel, pattern, name, NULL)::bigint;
  END IF;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_build_all(regclass, text, text, boolean) IS
  'pattern_build of all rows at once; error 42501 unless the caller owns the table';

CREATE PROCEDURE pattern_build(rel regclass, name text DEFAULT NULL, batch int DEFAULT 1000,
  discard boolean DEFAULT false)
LANGUAGE docpatterns AS $$
DECLARE
  d pg_catalog.record;
  r pg_catalog.record;
  n bigint;
  done bigint := 0;
  total bigint;
  held boolean;
BEGIN
  PERFORM docpatterns._pattern_require_owner(rel);
  SELECT f.* INTO d FROM docpatterns._pattern_find(rel, name) f;
  IF batch OPERATOR(pg_catalog.<) 1 THEN
    RAISE EXCEPTION 'batch must be positive' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  held := @extschema@.bson_exists(d.options, 'held');
  IF held AND discard IS NOT TRUE THEN
    -- nothing is written before it is certain that nothing is lost
    PERFORM docpatterns._pattern_require_kept(rel, d.pattern, d.name);
  END IF;
  IF docpatterns._pattern_is_distributed(rel) THEN
    FOR r IN SELECT s.* FROM docpatterns._pattern_shard_places(rel) AS s LOOP
      PERFORM docpatterns._shard_lock_all(rel);
      EXECUTE docpatterns._shard_query(rel, r.condition, pg_catalog.format(
          'docpatterns._pattern_build_all(s.rel, %L, %L, %L)', d.pattern, d.name, discard)) INTO n;
      done := done OPERATOR(pg_catalog.+) n;
      IF batch IS NOT NULL THEN
        COMMIT;
        RAISE NOTICE 'pattern "%" of table "%": % documents in %', d.name,
            docpatterns._relname(rel), n, r.place;
      END IF;
    END LOOP;
  ELSIF docpatterns._pattern_hook(d.pattern, 'pending', 'regclass, text') IS NULL THEN
    -- a change feed starts with the next change
    NULL;
  ELSIF batch IS NULL THEN
    done := docpatterns._pattern_build_all(rel, d.pattern, d.name, discard);
  ELSE
    SELECT pg_catalog.count(*) INTO total
      FROM docpatterns._pattern_pending_keys(rel, d.pattern, d.name) AS k (key pg_catalog.record);
    -- the first COMMIT materializes the loop's cursor, so each key is visited once
    FOR r IN SELECT k.key FROM docpatterns._pattern_pending_keys(rel, d.pattern, d.name) AS k
        (key pg_catalog.record) LOOP
      PERFORM docpatterns._pattern_repair_row(rel, d.name, r.key, discard IS NOT TRUE);
      done := done OPERATOR(pg_catalog.+) 1;
      IF done OPERATOR(pg_catalog.%) batch OPERATOR(pg_catalog.=) 0 THEN
        COMMIT;
        IF done OPERATOR(pg_catalog.<) total THEN
          RAISE NOTICE 'pattern "%" of table "%": % of % documents', d.name,
              docpatterns._relname(rel), done, total;
        END IF;
      END IF;
    END LOOP;
    COMMIT;
  END IF;
  -- data without a row of the table
  IF batch IS NOT NULL AND NOT docpatterns._pattern_is_distributed(rel)
      AND docpatterns._pattern_hook(d.pattern, 'build_end', 'regclass, text') IS NOT NULL THEN
    done := done OPERATOR(pg_catalog.+) docpatterns._pattern_call('build_end', rel, d.pattern,
        d.name, NULL)::bigint;
    COMMIT;
  END IF;
  IF held THEN
    PERFORM docpatterns._pattern_note_built(rel, d.name, discard IS TRUE);
    IF batch IS NOT NULL THEN
      COMMIT;
    END IF;
  END IF;
  RAISE NOTICE 'pattern "%" of table "%": % documents updated', d.name, docpatterns._relname(rel),
      done;
END
$$;
COMMENT ON PROCEDURE pattern_build(regclass, text, int, boolean) IS
  'Makes existing rows consistent with the declaration, with a commit after each batch (NULL: in '
  'the caller''s transaction). You can stop it and call it again. Locks the rows of a batch. '
  'Errors: 55000 with the number of documents and some keys, before anything is written, if a '
  'value of a field exists nowhere else; 42501 unless the caller owns the table';

-- Rewrites documents, some pages of the table at a time, and reports progress. The scan may reach a
-- rewritten document again, so the condition must not hold for it then; if that is impossible,
-- everything is rewritten at once.
CREATE FUNCTION docpatterns._pattern_convert(rel regclass, name text, doc_name text,
  expression text, condition text, at_once boolean DEFAULT false) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  leaf regclass;
  pages bigint;
  page bigint;
  n bigint;
  done bigint := 0;
  step bigint := 4096;
BEGIN
  IF docpatterns._pattern_is_distributed(rel) THEN
    RETURN docpatterns._pattern_sum_shards(rel, format(
        'docpatterns._pattern_convert(s.rel, %L, %L, %L, %L, %L)', name, doc_name, expression,
        condition, at_once));
  END IF;
  FOR leaf IN SELECT l.oid::regclass
    FROM (SELECT pt.relid FROM pg_partition_tree(rel) pt WHERE pt.isleaf UNION SELECT rel) AS r
    JOIN pg_class l ON l.oid = r.relid
              WHERE l.relkind = 'r' ORDER BY l.oid LOOP
    pages := pg_relation_size(leaf) / current_setting('block_size')::bigint;
    page := 0;
    IF at_once THEN
      step := greatest(pages, 1);
    END IF;
    WHILE page < pages LOOP
      BEGIN
        EXECUTE format('UPDATE %s AS b SET %I = %s WHERE b.ctid >= %L::tid AND b.ctid < %L::tid '
            'AND (%s)', leaf, doc_name, expression,
                       format('(%s,0)', page), format('(%s,0)', page + step), condition);
        GET DIAGNOSTICS n = ROW_COUNT;
      EXCEPTION WHEN program_limit_exceeded THEN
        PERFORM docpatterns._pattern_refuse_large(rel, name, doc_name, expression, condition);
        RAISE;
      END;
      done := done + n;
      page := page + step;
      IF pages > step THEN
        RAISE NOTICE 'pattern "%" of table "%": % of % pages, % documents written', name,
            docpatterns._relname(leaf),
          least(page, pages), pages, done;
      END IF;
    END LOOP;
  END LOOP;
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_convert(regclass, text, text, text, text, boolean) IS
  'rewrites the documents of a table (rows b) that satisfy a condition; returns how many';

-- Reports which documents prevent _pattern_convert().
CREATE FUNCTION docpatterns._pattern_refuse_large(rel regclass, name text, doc_name text,
  expression text, condition text) RETURNS void
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  r record;
  too_large text[] := '{}';
BEGIN
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel, doc_name) p;
  FOR r IN EXECUTE format('SELECT %s AS key, b.%I AS doc FROM %s AS b ORDER BY %s', t.key_value,
        doc_name, t.base, t.key_list) LOOP
    BEGIN
      EXECUTE format('SELECT %s FROM (SELECT $1 AS %I) AS b WHERE (%s)', expression, doc_name,
          condition) USING r.doc;
    EXCEPTION WHEN program_limit_exceeded THEN
      too_large := too_large || left(r.key::text, 100);
    END;
  END LOOP;
  IF cardinality(too_large) > 0 THEN
    RAISE EXCEPTION 'pattern "%" of table "%": % documents would be too large', name,
        docpatterns._relname(rel),
      cardinality(too_large)
      USING ERRCODE = 'program_limit_exceeded',
            DETAIL = 'Their keys: ' || array_to_string(too_large[1:20], ', ') || CASE
            WHEN cardinality(too_large) > 20 THEN ', ...' ELSE '' END || '.',
            HINT = 'Raise docpatterns.max_document_size; pattern_disable() leaves the data where '
            'they are with keep_data => true.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_refuse_large(regclass, text, text, text, text) IS
  'error 54000 with the keys of the documents (of rows b that fulfil a condition) for which an '
  'expression raises it; nothing if there are none';

-- Shared triggers and views -----------------------------------------------------------------------

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

-- Event trigger -----------------------------------------------------------------------------------

-- The statement-level triggers of a partition's ancestors, which PostgreSQL does not clone. Those
-- of a source ('side') only fire on its partitions ('part').
CREATE FUNCTION docpatterns._pattern_join_partition(part regclass) RETURNS void
LANGUAGE docpatterns VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  FOR t IN
    SELECT DISTINCT p.relid::regclass AS rel, g.tgname, g.tgtype::int AS kind,
      g.tgfoid::regproc AS function, g.tgoldtable, g.tgnewtable,
           CASE WHEN g.tgnargs = 3 THEN overlay(g.tgargs PLACING 'part'::bytea FROM 1 FOR 4) ELSE
             g.tgargs END AS arguments
    FROM pg_partition_ancestors(part) a JOIN pg_trigger g ON g.tgrelid = a.relid
      JOIN pg_proc f ON f.oid = g.tgfoid
      CROSS JOIN pg_partition_tree(part) p
    WHERE a.relid <> part AND starts_with(g.tgname, 'zz_docpatterns_') AND g.tgtype::int & 1 = 0
      AND (g.tgnargs = 2 OR g.tgnargs = 3
          AND substring(g.tgargs FROM 1 FOR 5) = docpatterns._pattern_arguments('side'))
      AND f.pronamespace = 'docpatterns'::regnamespace
  LOOP
    EXECUTE format('CREATE OR REPLACE TRIGGER %I %s %s ON %s %s FOR EACH STATEMENT EXECUTE '
        'FUNCTION %s(%s)', t.tgname,
                   CASE WHEN t.kind & 2 <> 0 THEN 'BEFORE' ELSE 'AFTER' END,
                   concat_ws(' OR ', CASE WHEN t.kind & 4 <> 0 THEN 'INSERT' END, CASE
                     WHEN t.kind & 8 <> 0 THEN 'DELETE' END,
                       CASE WHEN t.kind & 16 <> 0 THEN 'UPDATE' END, CASE
                         WHEN t.kind & 32 <> 0 THEN 'TRUNCATE' END),
                   t.rel,
                   CASE WHEN coalesce(t.tgoldtable, t.tgnewtable) IS NOT NULL
                        THEN concat_ws(' ', 'REFERENCING',
                            'OLD TABLE AS ' || quote_ident(t.tgoldtable),
                            'NEW TABLE AS ' || quote_ident(t.tgnewtable)) ELSE '' END,
                   t.function, docpatterns._pattern_trigger_arguments(t.arguments));
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_join_partition(regclass) IS
  'gives a new partition the triggers for statements that patterns have on the tables above it';

CREATE FUNCTION docpatterns._pattern_trigger_arguments(arguments bytea) RETURNS text
LANGUAGE docpatterns IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  rest bytea := arguments;
  result text;
  z int;
BEGIN
  WHILE length(rest) > 0 LOOP
    z := position(decode('00', 'hex') IN rest);
    result := concat_ws(', ', result,
        quote_literal(convert_from(substring(rest FROM 1 FOR z - 1), 'UTF8')));
    rest := substring(rest FROM z + 1);
  END LOOP;
  RETURN result;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_trigger_arguments(bytea) IS
  'the arguments of a trigger as pg_trigger has them, written for CREATE TRIGGER';

-- A former partition keeps the triggers that were created for it; this removes them.
CREATE FUNCTION docpatterns._pattern_leave_partition(part regclass) RETURNS void
LANGUAGE docpatterns VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
BEGIN
  FOR t IN
    SELECT p.relid::regclass AS rel, g.tgname
    FROM (SELECT q.relid FROM pg_partition_tree(part) q UNION SELECT part) p
      JOIN pg_trigger g ON g.tgrelid = p.relid JOIN pg_proc f ON f.oid = g.tgfoid
    WHERE starts_with(g.tgname, 'zz_docpatterns_') AND g.tgtype::int & 1 = 0 AND g.tgparentid = 0
      AND f.pronamespace = 'docpatterns'::regnamespace
      AND (g.tgnargs = 3 AND substring(g.tgargs
            FROM 1 FOR 5) = docpatterns._pattern_arguments('part')
           OR g.tgnargs = 2 AND NOT EXISTS (SELECT FROM docpatterns._pattern_declarations(p.relid) d
             WHERE g.tgargs = docpatterns._pattern_arguments('of',
                 d.name)))
  LOOP
    EXECUTE format('DROP TRIGGER %I ON %s', t.tgname, t.rel);
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._pattern_leave_partition(regclass) IS
  'takes the triggers for statements away that a table had as a partition';

CREATE FUNCTION docpatterns._pattern_linked(rel regclass) RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_pattern_linked' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._pattern_linked(regclass) IS
  'whether other tables of patterns, or triggers on them, depend on a table';

CREATE FUNCTION docpatterns._pattern_unlink(rel regclass) RETURNS void
  AS 'MODULE_PATHNAME', 'dp_pattern_unlink' LANGUAGE C STRICT;
COMMENT ON FUNCTION docpatterns._pattern_unlink(regclass) IS
  'removes these dependencies, which pattern_relink() records again; error 42501';

CREATE FUNCTION pattern_relink(rel regclass DEFAULT NULL) RETURNS bigint
  AS 'MODULE_PATHNAME', 'dp_pattern_relink' LANGUAGE C VOLATILE;
COMMENT ON FUNCTION pattern_relink(regclass) IS
  'Records the dependencies between tables of patterns again, which pg_upgrade does not keep, for '
  'one table or all that the caller owns. Returns the number of tables. Locks each against changes '
  'of its structure. Error: 42501 a table of another owner';

CREATE FUNCTION docpatterns._pattern_created() RETURNS event_trigger
  AS 'MODULE_PATHNAME', 'dp_pattern_created' LANGUAGE C;
COMMENT ON FUNCTION docpatterns._pattern_created() IS
  'records the dependencies between the tables of a pattern when its triggers are created, '
  'completes the triggers of new partitions, and changes the owner of objects of a pattern with '
  'that of its table';

CREATE EVENT TRIGGER docpatterns_created ON ddl_command_end
  WHEN TAG IN ('CREATE TRIGGER', 'DROP TRIGGER', 'CREATE TABLE', 'CREATE TABLE AS',
    'CREATE FOREIGN TABLE',
    'ALTER TABLE', 'ALTER FOREIGN TABLE', 'ALTER SCHEMA')
  EXECUTE FUNCTION docpatterns._pattern_created();
COMMENT ON EVENT TRIGGER docpatterns_created IS
  'records dependencies between the tables of a pattern, also after a restore, and changes their '
  'owners together';

CREATE FUNCTION docpatterns._pattern_dropping() RETURNS event_trigger
  AS 'MODULE_PATHNAME', 'dp_pattern_dropping' LANGUAGE C;
COMMENT ON FUNCTION docpatterns._pattern_dropping() IS
  'refuses that Citus replaces tables of which patterns have a pair';

CREATE EVENT TRIGGER docpatterns_table_dropping ON ddl_command_start WHEN TAG IN ('DROP TABLE')
  EXECUTE FUNCTION docpatterns._pattern_dropping();
COMMENT ON EVENT TRIGGER docpatterns_table_dropping IS
  'keeps pairs of tables together when Citus replaces one of them';

CREATE FUNCTION docpatterns._extension_require_unused() RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  tables text[] := ARRAY(
    SELECT DISTINCT c.oid::regclass::text COLLATE "C"
    FROM pg_extension e JOIN pg_depend t ON t.refclassid = 'pg_extension'::regclass
        AND t.refobjid = e.oid AND t.deptype = 'e' AND t.classid = 'pg_type'::regclass
      JOIN pg_attribute a ON a.atttypid = t.objid
      JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p', 'f', 'm')
    WHERE e.extname = 'docpatterns' AND pg_has_role(e.extowner, 'USAGE')
      AND c.relnamespace <> 'docpatterns'::regnamespace
    ORDER BY 1);
BEGIN
  IF cardinality(tables) > 0 THEN
    RAISE EXCEPTION 'cannot drop extension docpatterns because tables contain documents'
      USING ERRCODE = 'dependent_objects_still_exist',
        DETAIL = format('These tables have columns of its types: %s%s.',
          array_to_string(tables[1:20], ', '),
          CASE WHEN cardinality(tables) > 20 THEN ', ...' ELSE '' END),
        HINT = 'To keep the data, run pattern_disable_all(), then bson_column_convert() for each '
          'of these tables. CASCADE drops the columns.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._extension_require_unused() IS
  'error 2BP01, which says how to leave, while tables have columns of the extension''s types';

CREATE FUNCTION docpatterns._extension_dropping() RETURNS event_trigger
  AS 'MODULE_PATHNAME', 'dp_extension_dropping' LANGUAGE C;
COMMENT ON FUNCTION docpatterns._extension_dropping() IS
  'refuses DROP EXTENSION docpatterns without CASCADE while tables have columns of its types';

CREATE EVENT TRIGGER docpatterns_dropping ON ddl_command_start WHEN TAG IN ('DROP EXTENSION')
  EXECUTE FUNCTION docpatterns._extension_dropping();
COMMENT ON EVENT TRIGGER docpatterns_dropping IS
  'says how to leave when DROP EXTENSION docpatterns would fail';
