-- Collections: ordinary tables of documents. The trigger function is in src/bson/collection.c.

CREATE FUNCTION collection_set_id() RETURNS trigger
  AS 'MODULE_PATHNAME', 'dp_collection_set_id' LANGUAGE C;
COMMENT ON FUNCTION collection_set_id() IS
  'trigger of collections, BEFORE INSERT OR UPDATE FOR EACH ROW: keeps the column _id equal to the document''s _id and gives one to documents that have none';

-- The caller's search_path decides where an unqualified name goes, so none is set here and everything else is qualified.
CREATE FUNCTION collection_create(name text, if_not_exists boolean DEFAULT false) RETURNS regclass
LANGUAGE plpgsql VOLATILE STRICT AS $$
DECLARE
  parts text[] := pg_catalog.parse_ident(name);
  target text;
  existing regclass;
BEGIN
  IF pg_catalog.cardinality(parts) OPERATOR(pg_catalog.>) 2 THEN
    RAISE EXCEPTION 'invalid name of a collection: %', name
      USING ERRCODE = 'invalid_name', HINT = 'A collection is named by a table, or by a schema and a table.';
  END IF;
  IF pg_catalog.cardinality(parts) OPERATOR(pg_catalog.=) 1 THEN
    IF pg_catalog.current_schema() IS NULL THEN
      RAISE EXCEPTION 'no schema has been selected to create in' USING ERRCODE = 'invalid_schema_name';
    END IF;
    parts := pg_catalog.array_prepend(pg_catalog.current_schema()::text, parts);
  END IF;
  target := pg_catalog.format('%I.%I', parts[1], parts[2]);

  IF if_not_exists THEN
    existing := pg_catalog.to_regclass(target);
    IF existing IS NOT NULL THEN
      PERFORM FROM pg_catalog.pg_trigger AS t
        WHERE t.tgrelid OPERATOR(pg_catalog.=) existing AND t.tgname OPERATOR(pg_catalog.=) 'zz_docpatterns_00_collection';
      IF NOT FOUND THEN
        RAISE EXCEPTION 'relation % exists and is not a collection', existing USING ERRCODE = 'wrong_object_type';
      END IF;
      RAISE NOTICE 'collection % already exists, skipping', existing USING ERRCODE = 'duplicate_table';
      RETURN existing;
    END IF;
  END IF;

  EXECUTE pg_catalog.format(
    'CREATE TABLE %s (_id @extschema@.bson_value NOT NULL PRIMARY KEY, doc @extschema@.bson NOT NULL, '
    'CHECK (_id OPERATOR(@extschema@.=) (doc OPERATOR(@extschema@.->) ''_id''::pg_catalog.text)))', target);
  EXECUTE pg_catalog.format(
    'CREATE TRIGGER zz_docpatterns_00_collection BEFORE INSERT OR UPDATE ON %s '
    'FOR EACH ROW EXECUTE FUNCTION @extschema@.collection_set_id()', target);
  RETURN target::regclass;
END
$$;
COMMENT ON FUNCTION collection_create(text, boolean) IS
  'creates a table with the columns _id (primary key, follows the document) and doc; the name is written as in SQL, with a schema or without; returns the table; error 42P07 if it exists, unless if_not_exists';
