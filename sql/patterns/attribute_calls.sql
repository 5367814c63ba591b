-- Functions of the attribute pattern: packing and unpacking of single documents, and a report of
-- keys.

CREATE FUNCTION attribute_pack(
  doc bson, into_field text, pattern text DEFAULT NULL, value_field text DEFAULT 'value',
  prefix text DEFAULT NULL, paths text[] DEFAULT NULL,
  name_field text DEFAULT NULL, qualifiers bson DEFAULT NULL, qualifier_field text DEFAULT NULL,
    rename bson DEFAULT NULL, is_unique boolean DEFAULT false) RETURNS bson
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN docpatterns._attribute_pack(doc, docpatterns._attribute_options(into_field, pattern, prefix,
      paths, name_field, value_field, qualifiers, qualifier_field, rename, is_unique));
COMMENT ON FUNCTION attribute_pack(bson, text, text, text, text, text[], text, bson, text, bson,
  boolean) IS
  'The document with fields packed into an array, as attribute_enable with these arguments does; '
  'works without the pattern. One pass over the document. Errors: 22023 arguments that do not fit, '
  '23514 another value in the place of the array, 23505 a key twice with is_unique, 54000 too many '
  'levels';

CREATE FUNCTION attribute_unpack(
  doc bson, into_field text, pattern text DEFAULT NULL, value_field text DEFAULT 'value',
  prefix text DEFAULT NULL, paths text[] DEFAULT NULL,
  name_field text DEFAULT NULL, qualifiers bson DEFAULT NULL, qualifier_field text DEFAULT NULL,
    rename bson DEFAULT NULL) RETURNS bson
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN docpatterns._attribute_unpack(doc,
    docpatterns._attribute_options(into_field, pattern, prefix, paths, name_field, value_field,
      qualifiers, qualifier_field, rename, false));
COMMENT ON FUNCTION attribute_unpack(bson, text, text, text, text, text[], text, bson, text,
  bson) IS
  'The reverse of attribute_pack; members that no field can represent stay. Error: 22023 arguments '
  'that do not fit';

CREATE FUNCTION attribute_keys(rel regclass, name text DEFAULT NULL, OUT key text,
  OUT qualifier text, OUT documents bigint, OUT frequency float8,
                               OUT types text[], OUT distinct_values bigint) RETURNS SETOF record
LANGUAGE docpatterns STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found record;
  t record;
  fields text[];
  beside text[];
  options @extschema@.bson;
BEGIN
  SELECT q.* INTO found FROM docpatterns._pattern_find(rel, name, 'attribute') q;
  options := found.options;
  SELECT p.* INTO t FROM docpatterns._pattern_table(rel,
      docpatterns._pattern_doc_column(rel, @extschema@.bson_get_text(options, 'doc_column'))) p;
  -- the first field is the key, the others distinguish members with the same key
  fields := docpatterns._attribute_fields(options);
  beside := fields[2:] || CASE WHEN @extschema@.bson_exists(options, 'qualifiers') THEN
    coalesce(@extschema@.bson_get_text(options, 'qualifier_field'), 'qualifier') END;
  RETURN QUERY EXECUTE format($q$
    SELECT m.key, m.qualifier, count(DISTINCT m.id), count(DISTINCT m.id)::float8 / max(m.total),
      array_agg(DISTINCT m.type ORDER BY m.type), count(DISTINCT m.value)
    FROM (SELECT b.id, b.total, e.doc OPERATOR(@extschema@.->>) %1$L::text AS key,
        %2$s AS qualifier,
                 @extschema@.bson_typeof(e.doc, %3$L) AS type,
                 e.doc OPERATOR(@extschema@.->) %3$L::text AS value
          FROM (SELECT row_number() OVER () AS id, count(*) OVER () AS total,
              b.doc OPERATOR(@extschema@.->) %4$L::text AS list
                FROM (SELECT docpatterns._attribute_pack(%5$I, %6$L::@extschema@.bson) AS doc
                      FROM %7$s) AS b) AS b
            CROSS JOIN LATERAL (SELECT e::@extschema@.bson AS doc
                FROM @extschema@.bson_elements(b.list) AS e
                WHERE @extschema@.bson_typeof(e) = 'object') AS e
          WHERE @extschema@.bson_typeof(b.list) = 'array') AS m
    GROUP BY m.key, m.qualifier ORDER BY 3 DESC, 1, 2$q$,
    docpatterns._pattern_name_path(fields[1]),
    CASE WHEN cardinality(beside) = 0 THEN 'NULL::text'
         ELSE format('nullif(concat_ws('', '', %s), '''')',
             (SELECT string_agg(format('e.doc OPERATOR(@extschema@.->>) %L::text',
                 docpatterns._pattern_name_path(f)), ', ' ORDER BY n)
                   FROM unnest(beside)
                         WITH ORDINALITY AS u (f, n)))
                     END,
    docpatterns._pattern_name_path(@extschema@.bson_get_text(options, 'value_field')),
    @extschema@.bson_get_text(options, 'into_field'), t.doc,
    @extschema@.bson_unset(docpatterns._attribute_full_options(rel, found.name, options),
      'is_unique')::text, t.base);
END
$$;
COMMENT ON FUNCTION attribute_keys(regclass, text) IS
  'The keys of the members, the most frequent first: key, qualifier (the other placeholders), '
  'number and share of documents, types of the values, number of distinct values. Reads the whole '
  'table with the caller''s rights. Errors: 42704 no such pattern, 22023 several and none is named';
