-- Shared by all patterns: types, bookkeeping, and declarations with their tables, names and
-- triggers. The functions are in src/kit/. Names that begin with an underscore are internal: they
-- are in the schema docpatterns and change nothing that their caller could not change otherwise.

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
  AS 'MODULE_PATHNAME', 'dp_pattern_declarations' LANGUAGE C STABLE ROWS 10;
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
  AS 'MODULE_PATHNAME', 'dp_pattern_anchors' LANGUAGE C STABLE STRICT ROWS 5;
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
