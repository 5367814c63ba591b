-- Indexes for users who think in collections: created, listed and dropped by key documents.
-- src/patterns/collection/indexes.c reads the catalogs. No search_path is set where an index is
-- created, because the table's expressions and triggers run inside and the command is returned as
-- the caller would write it; everything is qualified instead.

CREATE FUNCTION docpatterns._collection_index_key(index_oid oid, OUT key bson,
  OUT partial_filter bson)
  AS 'MODULE_PATHNAME', 'dp_collection_index_key' LANGUAGE C STABLE STRICT;
COMMENT ON FUNCTION docpatterns._collection_index_key(oid) IS
  'internal: the key document that stands for an index, and the filter that its documents meet; '
  'NULL if none does';
CREATE FUNCTION docpatterns._collection_index_path(field text) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_collection_index_path' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._collection_index_path(text) IS
  'internal: a field as filters spell it, in the grammar of paths';

CREATE FUNCTION collection_list_indexes(rel regclass)
  RETURNS TABLE (name name, key bson, method name, is_unique boolean, is_primary boolean,
      partial_filter bson, is_valid boolean, size bigint, definition text)
LANGUAGE docpatterns STABLE AS $$
#variable_conflict use_column
BEGIN
  PERFORM docpatterns._collection_query(rel, '{}');
  RETURN QUERY
  SELECT c.relname, k.key, m.amname, i.indisunique, i.indisprimary, k.partial_filter, i.indisvalid,
         pg_catalog.pg_relation_size(i.indexrelid), pg_catalog.pg_get_indexdef(i.indexrelid)
    FROM pg_catalog.pg_index AS i
    JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) i.indexrelid
    JOIN pg_catalog.pg_am AS m ON m.oid OPERATOR(pg_catalog.=) c.relam
   CROSS JOIN LATERAL docpatterns._collection_index_key(i.indexrelid) AS k
   WHERE i.indrelid OPERATOR(pg_catalog.=) rel
   ORDER BY i.indisprimary DESC, c.relname;
END
$$;
COMMENT ON FUNCTION collection_list_indexes(regclass) IS
  'The indexes of the table with their key documents, methods, filters, sizes and definitions';

-- The contents of a key document: the fields, as written and as paths, their direction, and the
-- kind of index.
CREATE FUNCTION docpatterns._collection_index_fields(key_document bson, OUT field text,
  OUT path text, OUT direction int, OUT kind text)
RETURNS SETOF record LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  e record;
  n int := 0;
BEGIN
  FOR e IN SELECT k.key, k.value, @extschema@.bson_typeof(k.value) AS typ
      FROM @extschema@.bson_each(key_document) AS k LOOP
    n := n + 1;
    IF n > current_setting('max_index_keys')::int THEN
      RAISE EXCEPTION 'index must not have more than % fields', current_setting('max_index_keys')
        USING ERRCODE = 'too_many_columns';
    END IF;
    field := e.key;
    direction := 1;
    IF e.typ = 'string' THEN
      kind := (e.value)::text;
      IF kind IN ('text', '2d', '2dsphere', 'geoHaystack') THEN
        RAISE EXCEPTION 'indexes of the kind "%" are not supported', kind
          USING ERRCODE = 'feature_not_supported',
                HINT = CASE kind WHEN 'text' THEN 'Use PostgreSQL''s text search'
                  ELSE 'Use PostGIS' END || ': see docs/search.md.';
      ELSIF kind <> 'hashed' THEN
        RAISE EXCEPTION 'unknown kind of index "%"', kind
          USING ERRCODE = 'invalid_parameter_value', HINT = 'Specify 1, -1 or "hashed" for a '
            'field.';
      END IF;
    ELSIF e.typ IN ('int', 'long', 'double', 'decimal') AND (e.value)::numeric <> 0
        AND (e.value)::numeric <> 'NaN' THEN
      kind := 'ordered';
      direction := sign((e.value)::numeric);
    ELSE
      RAISE EXCEPTION 'key document must specify 1, -1 or "hashed" for %', quote_ident(e.key)
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF field = '$**' OR field LIKE '%.$**' THEN
      IF kind = 'hashed' THEN
        RAISE EXCEPTION 'an index of all fields cannot be hashed'
          USING ERRCODE = 'invalid_parameter_value';
      END IF;
      kind := 'wildcard';
      field := left(field, -4);
    END IF;
    IF (field = '' AND (kind <> 'wildcard' OR e.key <> '$**')) OR field ~ '(^|[.])([.]|$)'
        AND field <> '' OR field ~ '(^|[.])[$]' THEN
      RAISE EXCEPTION 'cannot index the field %', quote_ident(e.key)
        USING ERRCODE = 'invalid_parameter_value',
              HINT = 'Dots separate the parts of a field; none is empty or begins with a dollar '
              'sign, but for "$**" at the end.';
    END IF;
    path := CASE WHEN field <> '' THEN docpatterns._collection_index_path(field) END;
    RETURN NEXT;
  END LOOP;
  IF n = 0 THEN
    RAISE EXCEPTION 'key document must not be empty' USING ERRCODE = 'invalid_parameter_value',
      HINT = 'For example {"customer": 1, "date": -1}.';
  END IF;
END
$$;
COMMENT ON FUNCTION docpatterns._collection_index_fields(bson) IS
  'internal: the fields of a key document, checked';

-- The fields that lead to or through arrays in some of the documents of the index; in a large
-- table, in a sample of its pages, so that at most about 100 MB are read.
CREATE FUNCTION docpatterns._collection_index_arrays(rel regclass, doc text, fields text[],
  partial_filter bson) RETURNS text[]
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  pages float8;
  leads text[] := ARRAY(SELECT DISTINCT array_to_string((string_to_array(f, '.'))[1:n], '.') AS l
    FROM unnest(fields) AS f, generate_series(1, cardinality(string_to_array(f, '.'))) AS n
      ORDER BY l);
  found boolean[];
BEGIN
  SELECT sum(pg_relation_size(p.relid)) / current_setting('block_size')::float8 INTO pages
    FROM (SELECT t.relid FROM pg_partition_tree(rel) AS t UNION SELECT rel) AS p (relid);
  EXECUTE format('SELECT ARRAY[%s] FROM (SELECT %I AS d FROM %s TABLESAMPLE SYSTEM (%s) REPEATABLE '
      '(1)) AS s WHERE $1 IS NULL OR @extschema@.bson_match(d, $1)',
      (SELECT string_agg(format('coalesce(bool_or(@extschema@.bson_typeof(d, %L) = ''array''), '
            'false)', docpatterns._collection_index_path(l)), ', ' ORDER BY n)
         FROM unnest(leads) WITH ORDINALITY AS u (l, n)),
      doc, rel, least(100, 1250000 / greatest(pages, 1)))
    INTO found USING partial_filter;
  RETURN ARRAY(SELECT f FROM unnest(fields) AS f WHERE EXISTS (
    SELECT FROM unnest(leads, found) AS u (l, is_array) WHERE is_array
      AND starts_with(f || '.', l || '.')));
END
$$;
COMMENT ON FUNCTION docpatterns._collection_index_arrays(regclass, text, text[], bson) IS
  'internal: those of the fields that lead to or through arrays in some of the documents, of which '
  'a bounded number is read';

-- The command that creates an index, as the caller would write it; on a partitioned table it
-- creates the indexes of its partitions.
CREATE FUNCTION docpatterns._collection_index_definition(name name, rel regclass) RETURNS
  text LANGUAGE sql STABLE AS $$
  SELECT pg_catalog.regexp_replace(pg_catalog.pg_get_indexdef(i.indexrelid),
      '^(CREATE (?:UNIQUE )?INDEX (?:"(?:[^"]|"")*"|[^ "]+) ON) ONLY ', E'\\1 ')
    FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=)
      i.indexrelid
   WHERE i.indrelid OPERATOR(pg_catalog.=) $2 AND c.relname OPERATOR(pg_catalog.=) $1
$$;
COMMENT ON FUNCTION docpatterns._collection_index_definition(name, regclass) IS
  'internal: the CREATE INDEX command of an index of a table';

CREATE FUNCTION collection_create_index(rel regclass, key_document bson,
  is_unique boolean DEFAULT false, partial_filter bson DEFAULT NULL, name name DEFAULT NULL)
RETURNS text LANGUAGE docpatterns VOLATILE AS $$
#variable_conflict use_variable
DECLARE
  q pg_catalog.record := docpatterns._collection_query(rel, '{}');
  relkind pg_catalog."char";
  kinds pg_catalog.text[];
  wanted pg_catalog.text[];
  arrays pg_catalog.text[] := '{}';
  columns pg_catalog.text[];
  parent pg_catalog.text;
  key @extschema@.bson;
  method pg_catalog.text := 'btree';
  existing pg_catalog.record;
  base pg_catalog.text;
  made pg_catalog.text := name;
  n int := 0;
  field pg_catalog.record;
BEGIN
  IF key_document IS NULL OR is_unique IS NULL THEN
    RAISE EXCEPTION '% cannot be null', CASE WHEN key_document IS NULL THEN 'key document' ELSE
      'is_unique' END
      USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF name OPERATOR(pg_catalog.=) '' THEN
    RAISE EXCEPTION 'name of the index must not be empty' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  SELECT c.relkind INTO relkind FROM pg_catalog.pg_class AS c
    WHERE c.oid OPERATOR(pg_catalog.=) rel;
  IF relkind OPERATOR(pg_catalog.<>) ALL ('{r,p,m}'::pg_catalog."char"[]) THEN
    RAISE EXCEPTION 'cannot index "%", which is not a table',
        docpatterns._relname(rel) USING ERRCODE = 'wrong_object_type';
  END IF;
  IF partial_filter IS NOT NULL THEN
    -- raises the error of an invalid filter now, not for the first document
    PERFORM @extschema@.bson_match('{}'::@extschema@.bson, partial_filter);
  END IF;
  SELECT pg_catalog.array_agg(f.kind), pg_catalog.array_agg(f.field) INTO kinds, wanted
    FROM docpatterns._collection_index_fields(key_document) AS f;

  IF 'wildcard' OPERATOR(pg_catalog.=) ANY (kinds) THEN
    IF 'ordered' OPERATOR(pg_catalog.=) ANY (kinds)
        OR 'hashed' OPERATOR(pg_catalog.=) ANY (kinds) THEN
      RAISE EXCEPTION 'cannot combine all fields ("$**") and single fields in one index'
        USING ERRCODE = 'feature_not_supported',
          HINT = 'Make two indexes; PostgreSQL uses both for one query.';
    END IF;
    method := 'gin';
  ELSIF 'hashed' OPERATOR(pg_catalog.=) ANY (kinds) THEN
    IF pg_catalog.cardinality(kinds) OPERATOR(pg_catalog.>) 1 THEN
      RAISE EXCEPTION 'hashed index must have exactly one '
        'field' USING ERRCODE = 'feature_not_supported';
    END IF;
    method := 'hash';
  END IF;
  IF is_unique AND method OPERATOR(pg_catalog.<>) 'btree' THEN
    RAISE EXCEPTION 'an index of this kind cannot be unique'
      USING ERRCODE = 'feature_not_supported', HINT = 'Unique indexes are on fields with 1 or -1.';
  END IF;

  -- Only a GIN index finds elements of arrays.
  IF method OPERATOR(pg_catalog.<>) 'gin' THEN
    arrays := docpatterns._collection_index_arrays(rel, q.doc_column, wanted, partial_filter);
  END IF;
  IF pg_catalog.cardinality(arrays) OPERATOR(pg_catalog.>) 0 THEN
    IF is_unique OR method OPERATOR(pg_catalog.=) 'hash' THEN
      RAISE NOTICE 'documents have arrays at %', pg_catalog.array_to_string(arrays, ', ')
        USING DETAIL = 'The index contains whole arrays, not their elements.';
    ELSE
      method := 'gin';
    END IF;
  END IF;

  IF method OPERATOR(pg_catalog.=) 'gin' THEN
    -- it does not distinguish the elements of an array
    wanted := ARRAY(SELECT pg_catalog.regexp_replace(w.field, '(^|[.])-?[0-9]+(?=[.]|$)', '', 'g')
        FROM pg_catalog.unnest(wanted) WITH ORDINALITY AS w (field, n) ORDER BY w.n);
    wanted := ARRAY(SELECT pg_catalog.ltrim(w.field, '.') FROM pg_catalog.unnest(wanted)
        WITH ORDINALITY AS w (field, n) ORDER BY w.n);
    IF '' OPERATOR(pg_catalog.=) ANY (wanted) THEN
      columns := ARRAY[pg_catalog.format('%I @extschema@.bson_ops', q.doc_column)];
      key := '{"$**": 1}';
    ELSE
      -- two fields of documents in an array are a pair
      parent := pg_catalog.substring(wanted[1], '^(.*)[.][^.]+$');
      IF pg_catalog.cardinality(arrays) OPERATOR(pg_catalog.=) 2
        AND pg_catalog.cardinality(wanted) OPERATOR(pg_catalog.=) 2
         AND parent OPERATOR(pg_catalog.=) pg_catalog.substring(wanted[2], '^(.*)[.][^.]+$')
         AND pg_catalog.cardinality(docpatterns._collection_index_arrays(rel, q.doc_column,
               ARRAY[parent], partial_filter)) OPERATOR(pg_catalog.>) 0 THEN
        columns := ARRAY[pg_catalog.format('%I @extschema@.bson_ops (pairs = %L)', q.doc_column,
              pg_catalog.format('%s(%s,%s)',
          docpatterns._collection_index_path(parent),
          docpatterns._collection_index_path(pg_catalog.substr(wanted[1],
              pg_catalog.length(parent) OPERATOR(pg_catalog.+) 2)),
          docpatterns._collection_index_path(pg_catalog.substr(wanted[2],
              pg_catalog.length(parent) OPERATOR(pg_catalog.+) 2))))];
      ELSE
        columns := ARRAY[pg_catalog.format('%I @extschema@.bson_ops (paths = %L)', q.doc_column,
          (SELECT pg_catalog.string_agg(docpatterns._collection_index_path(w.field), ', '
              ORDER BY w.n) FROM pg_catalog.unnest(wanted) WITH ORDINALITY AS w (field, n)))];
        parent := NULL;
      END IF;
      key := (SELECT @extschema@.bson_object_agg(w.field OPERATOR(pg_catalog.||) CASE
            WHEN parent IS NULL THEN '.$**' ELSE '' END, 1 ORDER BY w.n)
                FROM pg_catalog.unnest(wanted) WITH ORDINALITY AS w (field, n));
    END IF;
    IF pg_catalog.cardinality(arrays) OPERATOR(pg_catalog.>) 0 THEN
      RAISE NOTICE 'documents have arrays at %, so the index is a GIN index',
        pg_catalog.array_to_string(arrays, ', ')
        USING DETAIL = 'It finds documents by elements of arrays, but does not order them.';
    END IF;
  ELSE
    -- the key of a collection is a column; missing values come first, as in MongoDB's order
    FOR field IN SELECT * FROM docpatterns._collection_index_fields(key_document) LOOP
      columns := columns OPERATOR(pg_catalog.||) pg_catalog.concat(
        CASE WHEN field.field OPERATOR(pg_catalog.=) '_id' AND q.key_column IS NOT NULL
          THEN pg_catalog.concat(pg_catalog.quote_ident(q.key_column), CASE
              WHEN field.direction OPERATOR(pg_catalog.<) 0 THEN ' DESC' END)
          ELSE
            pg_catalog.concat(pg_catalog.format('(%I OPERATOR(@extschema@.->) %L::pg_catalog.text)',
                q.doc_column, field.path),
            CASE WHEN method OPERATOR(pg_catalog.=) 'hash' THEN ''
              WHEN field.direction OPERATOR(pg_catalog.>) 0 THEN ' NULLS FIRST' ELSE
              ' DESC NULLS LAST' END)
          END);
    END LOOP;
    key := (SELECT @extschema@.bson_object_agg(f.field, CASE
          WHEN method OPERATOR(pg_catalog.=) 'hash' THEN '"hashed"'::@extschema@.bson_value
          ELSE docpatterns.bson_value_from(f.direction) END)
              FROM docpatterns._collection_index_fields(key_document) AS f);
  END IF;

  -- Creating the same index twice does nothing, as in MongoDB; the primary key serves both
  -- directions.
  FOR existing IN SELECT l.* FROM @extschema@.collection_list_indexes(rel) AS l
      WHERE l.is_valid AND (made IS NULL OR l.name OPERATOR(pg_catalog.=) made)
        AND l.method OPERATOR(pg_catalog.=) method
        AND (l.is_primary AND partial_filter IS NULL
            AND key OPERATOR(@extschema@.=) ANY
            (ARRAY['{"_id": 1}', '{"_id": -1}']::@extschema@.bson[])
          OR l.key OPERATOR(@extschema@.=) key AND l.is_unique OPERATOR(pg_catalog.=) is_unique
             AND coalesce(l.partial_filter OPERATOR(@extschema@.=) partial_filter,
                   l.partial_filter IS NULL AND partial_filter IS NULL)) LIMIT 1 LOOP
    RAISE NOTICE 'index "%" already exists, skipping', existing.name
      USING ERRCODE = 'duplicate_table';
    RETURN docpatterns._collection_index_definition(existing.name, rel);
  END LOOP;

  IF made IS NULL THEN
    SELECT c.relname INTO base FROM pg_catalog.pg_class AS c WHERE c.oid OPERATOR(pg_catalog.=) rel;
    LOOP
      made := docpatterns._pattern_object_name(base,
        coalesce(pg_catalog.substring(pg_catalog.regexp_replace(pg_catalog.array_to_string(wanted,
              '_'), '[^[:alnum:]]+', '_', 'g'), '^_*(.*[^_])_*$'), 'all'),
        pg_catalog.concat('idx', CASE WHEN n OPERATOR(pg_catalog.>) 0 THEN n END));
      EXIT WHEN NOT EXISTS (SELECT FROM pg_catalog.pg_class AS c
          WHERE c.relname OPERATOR(pg_catalog.=) made
        AND c.relnamespace OPERATOR(pg_catalog.=) (SELECT r.relnamespace
            FROM pg_catalog.pg_class AS r WHERE r.oid OPERATOR(pg_catalog.=) rel));
      n := n OPERATOR(pg_catalog.+) 1;
    END LOOP;
  END IF;
  EXECUTE pg_catalog.format('CREATE %sINDEX %I ON %s USING %s (%s)%s%s', CASE
      WHEN is_unique THEN 'UNIQUE ' END, made, rel, method,
    pg_catalog.array_to_string(columns, ', '),
    -- MongoDB treats a missing field as a value
    CASE WHEN is_unique THEN ' NULLS NOT DISTINCT' END,
    CASE WHEN partial_filter IS NOT NULL
      THEN pg_catalog.format(' WHERE %I OPERATOR(@extschema@.@@) %L::@extschema@.bson',
          q.doc_column, partial_filter) END);
  RETURN docpatterns._collection_index_definition(made, rel);
END
$$;
COMMENT ON FUNCTION collection_create_index(regclass, bson, boolean, bson, name) IS
  'Creates the index that a key document describes, and returns the CREATE INDEX command. Locks '
  'the table against writers. Needs ownership; the errors are listed below';

CREATE FUNCTION collection_drop_index(rel regclass, key_document bson DEFAULT NULL,
  name name DEFAULT NULL) RETURNS name
LANGUAGE docpatterns VOLATILE AS $$
#variable_conflict use_variable
DECLARE
  found pg_catalog.name[];
BEGIN
  IF rel IS NULL OR (key_document IS NULL AND name IS NULL) THEN
    RAISE EXCEPTION '%', CASE WHEN rel IS NULL THEN 'relation cannot be null' ELSE
      'key document and name must not both be null' END
      USING ERRCODE = 'null_value_not_allowed';
  END IF;
  -- a field with arrays has a GIN index, which is listed with its wildcard path
  found := ARRAY(SELECT l.name FROM @extschema@.collection_list_indexes(rel) AS l
    WHERE (name IS NULL OR l.name OPERATOR(pg_catalog.=) name)
      AND (key_document IS NULL OR l.key OPERATOR(@extschema@.=) key_document
        OR ARRAY(SELECT @extschema@.bson_keys(l.key))
          OPERATOR(pg_catalog.=) ARRAY(SELECT @extschema@.bson_keys(key_document)
              OPERATOR(pg_catalog.||) '.$**')));
  IF pg_catalog.cardinality(found) OPERATOR(pg_catalog.<>) 1 THEN
    RAISE EXCEPTION 'table "%" has % with this key document or name',
      docpatterns._relname(rel), CASE
      WHEN pg_catalog.cardinality(found) OPERATOR(pg_catalog.=) 0 THEN 'no index'
      ELSE 'several indexes' END
      USING ERRCODE = CASE WHEN pg_catalog.cardinality(found) OPERATOR(pg_catalog.=) 0 THEN
        'undefined_object' ELSE 'ambiguous_alias' END,
            HINT = 'collection_list_indexes() shows the indexes of the table.';
  END IF;
  EXECUTE pg_catalog.format('DROP INDEX %s.%I', (SELECT c.relnamespace::pg_catalog.regnamespace
        FROM pg_catalog.pg_class AS c WHERE c.oid OPERATOR(pg_catalog.=) rel), found[1]);
  RETURN found[1];
END
$$;
COMMENT ON FUNCTION collection_drop_index(regclass, bson, name) IS
  'Drops the index with that key document or that name, and returns its name. Locks the table as '
  'DROP INDEX does. Needs ownership. Errors: 42704 no such index, 42P09 several match, 2BP01 the '
  'primary key, 22004 neither is given';
