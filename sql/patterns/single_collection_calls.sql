-- Functions of the single collection pattern for users.

CREATE FUNCTION single_collection_get(rel regclass, id anycompatible, type text DEFAULT NULL,
  name text DEFAULT NULL) RETURNS SETOF bson
  AS 'MODULE_PATHNAME', 'dp_single_collection_get' LANGUAGE C STABLE COST 1000 ROWS 100;
COMMENT ON FUNCTION single_collection_get(regclass, anycompatible, text, text) IS
  'The documents related to an ID (with the document itself, if it is self-related), or the '
  'document of a key and all below, in key order; with type only those of the type. One index scan '
  'with the rights of the caller. Errors: 42704, 22023 a type where documents have none, 42809 a '
  'key that is not a string';

CREATE FUNCTION single_collection_query(rel regclass, with_type boolean DEFAULT false,
  name text DEFAULT NULL) RETURNS text
  AS 'MODULE_PATHNAME', 'dp_single_collection_query' LANGUAGE C STABLE;
COMMENT ON FUNCTION single_collection_query(regclass, boolean, text) IS
  'The statement that single_collection_get runs, for EXPLAIN and PREPARE: $1 is a filter, or for '
  'keys $1 and $2 are the bounds (and $3 a filter on the type). Errors: 42704, 22004';

-- From separate collections and back --------------------------------------------------------------

-- links contains the type to which a field of a type refers: {"review": {"book": "book", "user":
-- "user"}, "user": {"books": ["book"]}}: the field "book" of a review has the id of a book, the
-- field "books" of a user is an array of such ids.
CREATE FUNCTION single_collection_from(
  rel text, tables regclass[], types text[] DEFAULT NULL, links bson DEFAULT '{}',
  type_field text DEFAULT 'docType', related_field text DEFAULT NULL,
  id_fields bson DEFAULT NULL, self_related text[] DEFAULT '{}', key_field text DEFAULT NULL,
  separator text DEFAULT '/',
  missing text DEFAULT 'error', on_delete text DEFAULT 'restrict',
    keep_tables boolean DEFAULT false, name text DEFAULT NULL) RETURNS bigint
LANGUAGE docpatterns VOLATILE AS $$
BEGIN
  IF rel IS NULL OR tables IS NULL OR links IS NULL OR type_field IS NULL OR self_related IS NULL
      OR keep_tables IS NULL THEN
    RAISE EXCEPTION 'rel, tables, links, type_field, self_related and keep_tables must not be null'
      USING ERRCODE = 'null_value_not_allowed';
  END IF;
  IF pg_catalog.to_regclass(rel) IS NULL THEN
    PERFORM @extschema@.collection_create(rel);
    PERFORM @extschema@.single_collection_enable(rel::pg_catalog.regclass, type_field, CASE
        WHEN key_field IS NULL THEN coalesce(related_field, 'relatedTo') END,
              docpatterns._single_collection_named(id_fields, links), self_related,
              NULL, key_field, separator, NULL, missing, on_delete, false, name);
  END IF;
  RETURN docpatterns._single_collection_from(rel::pg_catalog.regclass, tables, types, links, name,
      keep_tables);
END
$$;
COMMENT ON FUNCTION single_collection_from(text, regclass[], text[], bson, text, text, bson, text[],
  text, text, text, text, boolean, text) IS
  'Moves the documents of several tables into one single collection, created and declared unless '
  'it exists: each gets its type (default: the name of its table), and the fields in links become '
  'relations, or parts of the key. Returns the number of documents. The tables are left empty '
  '(with keep_tables as they were). Locks them against writers; needs SELECT and DELETE. Errors: '
  '23505 with duplicate IDs, 23503 links to nothing, 22023';

CREATE FUNCTION docpatterns._single_collection_from(rel regclass, tables regclass[], types text[],
  links bson, name text, keep_tables boolean) RETURNS bigint
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  t record;
  d record;
  l record;
  type_field text;
  related text;
  keyed text;
  separator text;
  id_field text;
  doc text;
  parts text[] := '{}';
  twice text;
  done bigint;
  parent text;
BEGIN
  SELECT q.name, q.options INTO d FROM docpatterns._pattern_declarations(rel) q
    WHERE q.pattern = 'single_collection'
    AND (_single_collection_from.name IS NULL OR q.name = _single_collection_from.name);
  IF NOT FOUND THEN
    RAISE EXCEPTION 'table "%" is not a single collection',
        docpatterns._relname(rel) USING ERRCODE = 'undefined_object',
      HINT = 'Declare it with single_collection_enable(), or specify a table that does not exist.';
  END IF;
  SELECT q.* INTO p FROM docpatterns._single_collection_parts(rel, d.name) q;
  type_field := @extschema@.bson_get_text(d.options, 'type_field');
  related := @extschema@.bson_get_text(d.options, 'related_field');
  keyed := @extschema@.bson_get_text(d.options, 'key_field');
  separator := @extschema@.bson_get_text(d.options, 'separator');
  types := coalesce(types, (SELECT array_agg(c.relname::text ORDER BY u.n) FROM unnest(tables)
        WITH ORDINALITY AS u (t, n) JOIN pg_class c ON c.oid = u.t));
  IF type_field IS NULL OR cardinality(tables) IS DISTINCT FROM cardinality(types)
    OR cardinality(tables) = 0 OR array_position(types, NULL) IS NOT NULL
     OR (SELECT count(DISTINCT u) FROM unnest(types) u) <> cardinality(types)
       OR rel = ANY (tables) THEN
    RAISE EXCEPTION 'tables must have different types'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  PERFORM docpatterns._single_collection_check_links(links, types, keyed IS NOT NULL);
  EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE',
      (SELECT string_agg(u::text, ', ' ORDER BY u::oid) FROM unnest(tables || rel) u));

  CREATE TEMP TABLE docpatterns_from (type text, id @extschema@.bson_value,
      link @extschema@.bson_value, parent text, key text, doc @extschema@.bson) ON COMMIT DROP;
  FOR i IN 1 .. cardinality(tables) LOOP
    SELECT q.* INTO t FROM docpatterns._pattern_table(tables[i], NULL) q;
    doc := format('CASE WHEN @extschema@.bson_exists(s.%1$I, ''_id'') THEN s.%1$I ELSE '
        '@extschema@.bson_build(''_id'', %2$s) OPERATOR(@extschema@.||) s.%1$I END', t.doc,
                  (SELECT format(CASE WHEN cardinality(t.keys) = 1 THEN '@extschema@.to_bson(%s)'
                      ELSE '@extschema@.bson_array(%s)'
                      END, string_agg(format('s.%I', k), ', ' ORDER BY n)) FROM unnest(t.keys)
                    WITH ORDINALITY u (k, n)));
    EXECUTE format('INSERT INTO pg_temp.docpatterns_from (type, id, doc) SELECT %L, q.doc '
        'OPERATOR(@extschema@.->) ''_id''::text, q.doc FROM (SELECT %s AS doc FROM %s AS s) AS q',
        types[i], doc, t.base);
    id_field := @extschema@.bson_get_text((d.options OPERATOR(@extschema@.->)
          'id_fields'::text)::@extschema@.bson, ARRAY[types[i]]);
    IF id_field IS NOT NULL THEN
      -- the id is stored in the type's id field, and the collection sets another _id
      UPDATE pg_temp.docpatterns_from AS f
        SET doc = @extschema@.bson_set(@extschema@.bson_unset(f.doc, '_id'), id_field, f.id)
        WHERE f.type = types[i] AND NOT @extschema@.bson_exists(f.doc, id_field);
    ELSIF keyed IS NOT NULL THEN
      UPDATE pg_temp.docpatterns_from AS f SET doc = @extschema@.bson_unset(f.doc, '_id')
        WHERE f.type = types[i];
    END IF;
    FOR l IN SELECT e.key AS field, e.value
        FROM @extschema@.bson_each((links OPERATOR(@extschema@.#>)
            ARRAY[types[i]])::@extschema@.bson) e LOOP
      IF keyed IS NULL THEN
        UPDATE pg_temp.docpatterns_from AS f
          SET doc = @extschema@.bson_set(@extschema@.bson_unset(f.doc, l.field), related,
            coalesce(CASE @extschema@.bson_typeof(f.doc, related)
              WHEN 'array' THEN f.doc OPERATOR(@extschema@.->) related ELSE '[]' END, '[]')
            OPERATOR(@extschema@.||) (SELECT coalesce(@extschema@.bson_agg(v), '[]')
                FROM @extschema@.bson_values(f.doc, l.field) v
                WHERE @extschema@.bson_typeof(v) <> 'null'))
          WHERE f.type = types[i] AND @extschema@.bson_exists(f.doc, l.field);
      ELSE
        UPDATE pg_temp.docpatterns_from AS f SET doc = @extschema@.bson_unset(f.doc, l.field),
          link = f.doc OPERATOR(@extschema@.->) l.field,
          parent = @extschema@.bson_get_text(@extschema@.bson_build('v', l.value), 'v')
          WHERE f.type = types[i];
      END IF;
    END LOOP;
  END LOOP;
  -- ids of tables may be equal, and only _id must be unique
  IF keyed IS NULL THEN
    SELECT string_agg(left(q.id::text, 100), ', ') INTO twice
      FROM (SELECT f.id FROM pg_temp.docpatterns_from f WHERE @extschema@.bson_exists(f.doc, '_id')
        GROUP BY f.id HAVING count(*) > 1 LIMIT 20) AS q;
    IF twice IS NOT NULL THEN
      RAISE EXCEPTION 'documents of several tables have the same _id'
        USING ERRCODE = 'unique_violation', DETAIL = 'Such are ' || twice || '.',
        HINT = 'Name a field for the IDs of a type in id_fields.';
    END IF;
  ELSE
    -- keys, from those that belong to nothing on
    UPDATE pg_temp.docpatterns_from AS f
      SET key = @extschema@.bson_get_text(@extschema@.bson_build('v', f.id), 'v')
      WHERE f.link IS NULL;
    LOOP
      UPDATE pg_temp.docpatterns_from AS f
        SET key = o.key || separator || @extschema@.bson_get_text(@extschema@.bson_build('v', f.id),
          'v')
        FROM pg_temp.docpatterns_from AS o WHERE f.key IS NULL AND o.key IS NOT NULL
          AND o.type = f.parent AND o.id OPERATOR(@extschema@.=) f.link;
      EXIT WHEN NOT FOUND;
    END LOOP;
    SELECT string_agg(left(q.id::text, 100), ', ') INTO twice
      FROM (SELECT f.id FROM pg_temp.docpatterns_from f WHERE f.key IS NULL LIMIT 20) AS q;
    IF twice IS NOT NULL THEN
      RAISE EXCEPTION 'documents belong to documents that do not exist'
        USING ERRCODE = 'foreign_key_violation', DETAIL = 'Their ids are ' || twice || '.';
    END IF;
    SELECT string_agg(left(f.id::text, 100), ', ') INTO twice FROM pg_temp.docpatterns_from AS f
      WHERE strpos(@extschema@.bson_get_text(@extschema@.bson_build('v', f.id), 'v'), separator) > 0
        OR @extschema@.bson_get_text(@extschema@.bson_build('v', f.id), 'v') = '';
    IF twice IS NOT NULL THEN
      RAISE EXCEPTION 'IDs cannot be parts of a key' USING ERRCODE = 'check_violation',
        DETAIL = 'They are empty or contain the separator: ' || left(twice, 500) || '.',
        HINT = 'Choose another separator.';
    END IF;
    UPDATE pg_temp.docpatterns_from AS f
      SET doc = @extschema@.bson_build(keyed, f.key) OPERATOR(@extschema@.||) f.doc;
  END IF;
  EXECUTE format('INSERT INTO %s (%I) SELECT @extschema@.bson_set(f.doc, %L, f.type) FROM '
      'pg_temp.docpatterns_from AS f ORDER BY array_position(%L::text[], f.type), f.id', p.base,
      p.doc, type_field, types);
  GET DIAGNOSTICS done = ROW_COUNT;
  DROP TABLE pg_temp.docpatterns_from;
  IF NOT keep_tables THEN
    FOR i IN REVERSE cardinality(tables) .. 1 LOOP
      EXECUTE format('DELETE FROM %s', tables[i]);
    END LOOP;
  END IF;
  -- so that they can be taken apart again
  PERFORM docpatterns._single_collection_create_triggers(_single_collection_from.rel,
      @extschema@.bson_set(d.options, 'links',
            coalesce((d.options OPERATOR(@extschema@.->) 'links'::text)::@extschema@.bson,
              '{}') OPERATOR(@extschema@.||) links));
  RETURN done;
END
$$;
COMMENT ON FUNCTION docpatterns._single_collection_from(regclass, regclass[], text[], bson, text,
  boolean) IS
  'single_collection_from for a collection that exists';

-- Types that links name have ids, too.
CREATE FUNCTION docpatterns._single_collection_named(id_fields bson, links bson) RETURNS bson
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce((SELECT @extschema@.bson_object_agg(n.type, '_id'::text)::@extschema@.bson
                   FROM (SELECT DISTINCT coalesce(@extschema@.bson_get_text(f.value, 0),
                         @extschema@.bson_get_text(@extschema@.bson_build('v', f.value),
                           'v')) AS type
                         FROM @extschema@.bson_each($2) t
                             CROSS JOIN LATERAL @extschema@.bson_each(t.value::@extschema@.bson) f
                             WHERE @extschema@.bson_typeof(t.value) = 'object') AS n),
                  '{}'::@extschema@.bson) OPERATOR(@extschema@.||) $1
$$;
COMMENT ON FUNCTION docpatterns._single_collection_named(bson, bson) IS
  'id_fields with _id for those types that links name and it does not; NULL for NULL';

CREATE FUNCTION docpatterns._single_collection_check_links(links bson, types text[], keyed boolean)
  RETURNS void
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  t record;
  l record;
  n int;
BEGIN
  FOR t IN SELECT e.key, e.value FROM @extschema@.bson_each(links) e LOOP
    IF NOT t.key = ANY (types) OR @extschema@.bson_typeof(t.value) <> 'object' THEN
      RAISE EXCEPTION 'links must be a document of types with their fields and the types that '
        'these refer to'
        USING ERRCODE = 'invalid_parameter_value', DETAIL = format('Its field "%s" is not.', t.key),
        HINT = 'Write for example {"review": {"book": "book"}, "user": {"books": ["book"]}}.';
    END IF;
    n := 0;
    FOR l IN SELECT e.key, e.value FROM @extschema@.bson_each(t.value::@extschema@.bson) e LOOP
      n := n + 1;
      IF docpatterns._pattern_paths_overlap(l.key, '_id')
          OR NOT (@extschema@.bson_typeof(l.value) = 'string'
            OR @extschema@.bson_typeof(l.value) = 'array'
            AND @extschema@.bson_array_length(l.value) = 1
            AND @extschema@.bson_typeof(l.value OPERATOR(@extschema@.->) 0) = 'string') THEN
        RAISE EXCEPTION 'links must contain for each field the type that its IDs refer to'
          USING ERRCODE = 'invalid_parameter_value',
          DETAIL = format('The field "%s" of type "%s" is said to be %s.', l.key, t.key,
            left(l.value::text, 100));
      END IF;
      IF keyed AND (n > 1 OR @extschema@.bson_typeof(l.value) = 'array') THEN
        RAISE EXCEPTION 'a document with a key cannot belong to several documents'
          USING ERRCODE = 'invalid_parameter_value',
          DETAIL = format('Type "%s" has several links, or one that is an array.', t.key);
      END IF;
    END LOOP;
  END LOOP;
END
$$;
COMMENT ON FUNCTION docpatterns._single_collection_check_links(bson, text[], boolean) IS
  'error 22023 unless links is a document of types, fields, and the types that they name';

CREATE FUNCTION single_collection_split(rel regclass, tables bson DEFAULT '{}',
  links bson DEFAULT NULL, keep_documents boolean DEFAULT false, name text DEFAULT NULL,
    OUT type text, OUT "table" regclass, OUT documents bigint)
    RETURNS SETOF record
LANGUAGE docpatterns VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  p record;
  d record;
  l record;
  t record;
  types text[];
  names text[];
  type_field text;
  related text;
  keyed text;
  separator text;
  id_field text;
  id text;
  doc text;
  target text;
  owner_id text;
BEGIN
  IF rel IS NULL OR tables IS NULL OR keep_documents IS NULL THEN
    RAISE EXCEPTION 'rel, tables and keep_documents must not be null'
      USING ERRCODE = 'null_value_not_allowed';
  END IF;
  PERFORM docpatterns._pattern_require_owner(rel);
  SELECT q.name, q.options INTO d FROM docpatterns._pattern_declarations(rel) q
    WHERE q.pattern = 'single_collection'
    AND (single_collection_split.name IS NULL OR q.name = single_collection_split.name);
  IF NOT FOUND THEN
    RAISE EXCEPTION 'table "%" is not a single collection',
        docpatterns._relname(rel) USING ERRCODE = 'undefined_object';
  END IF;
  SELECT q.* INTO p FROM docpatterns._single_collection_parts(rel, d.name) q;
  SELECT q.* INTO t FROM docpatterns._pattern_table(rel, p.doc) q;
  type_field := @extschema@.bson_get_text(d.options, 'type_field');
  related := @extschema@.bson_get_text(d.options, 'related_field');
  keyed := @extschema@.bson_get_text(d.options, 'key_field');
  separator := @extschema@.bson_get_text(d.options, 'separator');
  IF type_field IS NULL THEN
    RAISE EXCEPTION 'documents in table "%" have no type', docpatterns._relname(rel)
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  EXECUTE format('LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE', p.base);
  links := coalesce(links, (d.options OPERATOR(@extschema@.->) 'links'::text)::@extschema@.bson,
      '{}');
  EXECUTE format('SELECT array_agg(q.v ORDER BY q.v) FROM (SELECT DISTINCT %I '
      'OPERATOR(@extschema@.->>) %L::text FROM %s WHERE @extschema@.bson_typeof(%1$I, %2$L) = '
      '''string'') AS q (v)', p.doc, type_field, p.base) INTO types;
  IF types IS NULL THEN
    RETURN;
  END IF;
  PERFORM docpatterns._single_collection_check_links(links,
      types || ARRAY(SELECT @extschema@.bson_keys(links)), keyed IS NOT NULL);

  -- the id that a document had: its id field, else the last part of its key, else _id
  id := format('coalesce(b.%1$I OPERATOR(@extschema@.->) '
      'coalesce(@extschema@.bson_get_text(%2$L::@extschema@.bson, ARRAY[b.%1$I '
      'OPERATOR(@extschema@.->>) %3$L::text]), %4$L), %5$s)', p.doc,
               coalesce((d.options OPERATOR(@extschema@.->) 'id_fields'::text)::text, '{}'),
               type_field, '_id', 'NULL');
  IF keyed IS NOT NULL THEN
    id := format('docpatterns.bson_value_from((regexp_match(b.%I OPERATOR(@extschema@.->>) '
        '%L::text, %L))[1])', p.doc, keyed,
        '^(?:.*' || regexp_replace(separator, '([^[:alnum:]])', E'\\\\\\1', 'g') || ')?(.*)$');
  END IF;
  FOREACH type IN ARRAY types LOOP
    names := parse_ident(quote_ident(coalesce(@extschema@.bson_get_text(tables, ARRAY[type]),
            type)));
    target := format('%I.%I', t.schema_name, names[1]);
    "table" := coalesce(to_regclass(target), @extschema@.collection_create(target));
    id_field := @extschema@.bson_get_text((d.options OPERATOR(@extschema@.->)
          'id_fields'::text)::@extschema@.bson, ARRAY[type]);
    doc := format('@extschema@.bson_unset(b.%I, %s)', p.doc,
        array_to_string(ARRAY(SELECT quote_literal(u)
            FROM unnest(array_remove(ARRAY[type_field, id_field, keyed, '_id'], NULL)) u), ', '));
    doc := format('@extschema@.bson_build(''_id'', %s) OPERATOR(@extschema@.||) %s', id, doc);
    IF related IS NOT NULL AND links OPERATOR(@extschema@.#>) ARRAY[type] IS NOT NULL THEN
      doc := format('@extschema@.bson_unset(%s, %L)', doc, related);
    ELSIF related IS NOT NULL THEN
      -- documents without a target table stay, without the relation to themselves
      doc := format('CASE WHEN r.parents = ''{}'' THEN @extschema@.bson_unset(%1$s, %2$L) ELSE '
          '@extschema@.bson_set(%1$s, %2$L, r.parents) END', doc, related);
    END IF;
    FOR l IN SELECT e.key, @extschema@.bson_typeof(e.value) = 'array' AS many, CASE
      WHEN @extschema@.bson_typeof(e.value) = 'array' THEN @extschema@.bson_get_text(e.value, 0)
      ELSE @extschema@.bson_get_text(@extschema@.bson_build('v', e.value), 'v') END AS of_type
             FROM @extschema@.bson_each((links OPERATOR(@extschema@.#>)
                   ARRAY[type])::@extschema@.bson) e LOOP
      IF keyed IS NULL THEN
        owner_id := format('(SELECT @extschema@.bson_agg(u.id ORDER BY u.n) FROM unnest(r.parents) '
            'WITH ORDINALITY AS u (id, n) WHERE EXISTS (SELECT 1 FROM %s AS o WHERE %s '
            'OPERATOR(@extschema@.=) u.id AND o.%I OPERATOR(@extschema@.->>) %L::text = %L))',
                           p.base, replace(p.identity, format('(%I, ', p.doc),
                             format('(o.%I, ', p.doc)), p.doc, type_field, l.of_type);
        doc := format('(SELECT CASE WHEN @extschema@.bson_typeof(a) IS DISTINCT FROM ''array'' '
            'THEN %2$s ELSE @extschema@.bson_set(x, %1$L, CASE WHEN %3$L::boolean OR '
            '@extschema@.bson_array_length(a) > 1 THEN a ELSE a OPERATOR(@extschema@.->) 0 END) '
            'END FROM (SELECT %4$s AS x, %5$s AS a) AS q)',
                      l.key, CASE WHEN l.many THEN format('@extschema@.bson_set(x, %L, '
                        '''[]''::@extschema@.bson_value)', l.key) ELSE 'x'
                      END, l.many, doc, owner_id);
      ELSE
        owner_id := format('(SELECT %s FROM %s AS b2 WHERE %s OPERATOR(@extschema@.=) '
            'r.parents[1])', replace(id, format('b.%I', p.doc), format('b2.%I', p.doc)), p.base,
                           replace(p.identity, format('(%I, ', p.doc), format('(b2.%I, ', p.doc)));
        doc := format('@extschema@.bson_set(%s, %L, %s)', doc, l.key, owner_id);
      END IF;
    END LOOP;
    SELECT q.* INTO t FROM docpatterns._pattern_table("table", NULL) q;
    EXECUTE format('INSERT INTO %s (%I) SELECT %s FROM %s AS b CROSS JOIN LATERAL %s AS r WHERE '
        'b.%I OPERATOR(@extschema@.->>) %L::text = %L ORDER BY %s',
                   t.base, t.doc, doc, p.base, p.read, p.doc, type_field, type, p.key_list);
    GET DIAGNOSTICS documents = ROW_COUNT;
    RETURN NEXT;
  END LOOP;
  IF NOT keep_documents THEN
    EXECUTE format('DELETE FROM %s AS b WHERE @extschema@.bson_typeof(b.%I, %L) = ''string''',
        p.base, p.doc, type_field);
  END IF;
END
$$;
COMMENT ON FUNCTION single_collection_split(regclass, bson, bson, boolean, text) IS
  'Moves the documents to one collection for each type, named in tables or as the type, created '
  'unless it exists; links (default: those of single_collection_from) become fields again. The '
  'collection is left empty (with keep_documents as it was). Locks it against writers. Errors: '
  '22023 documents without a type, 42501 unless the caller owns the table';
