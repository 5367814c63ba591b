-- A field of a document is kept by one pattern: a second one that would keep it, too, is refused, in whichever order they are declared.
\set QUIET 1
SET client_min_messages = warning;
\o /dev/null
CREATE SCHEMA apart;
SET search_path = apart, public;
CREATE TABLE keepers (pattern text, enable text);
INSERT INTO keepers VALUES
  ('attribute', $$attribute_enable('t', 'f', prefix => 's_', name => %L)$$), ('payload', $$payload_enable('t', 'f', '{x: "regex:(a)"}', name => %L)$$), ('extract', $$payload_enable('t', 'letter', '{f: "regex:(a)"}', name => %L)$$),
  ('reference', $$reference_enable('t', 'f', 'makers', live => '{name}', name => %L)$$), ('relationship', $$relationship_enable('t', 'f', 'others', 'friends', name => %L)$$),
  ('tree_attach', $$tree_attach('t', tree => 'categories', parent => 'category', ancestors => 'f', name => %L)$$), ('tree', $$tree_enable('t', parent => 'up', depth => 'f', name => %L)$$),
  ('outlier', $$outlier_enable('t', 'f', 2, name => %L)$$), ('count', $$outlier_enable('t', 'list', 2, count_field => 'f', name => %L)$$), ('subset_fields', $$subset_fields_enable('t', cold => '{f}', name => %L)$$),
  ('subset', $$subset_enable('t', field => 'f', source => 'events', on_field => 'of', order_by => '{x: -1}', keep => 1, name => %L)$$), ('computed', $$computed_enable('t', 'events', 'of', '{f: {$sum: "$x"}}', name => %L)$$),
  ('slots', $$approximation_enable('t', 'f', slots => 2, name => %L)$$), ('threshold', $$approximation_enable('t', 'f', threshold => '10', name => %L)$$), ('versioning', $$versioning_enable('t', revision_field => 'f', name => %L)$$),
  ('schema_versioning', $$schema_versioning_enable('t', current => 2, field => 'f', name => %L)$$), ('preallocated', $$preallocated_enable('t', 'f', preallocated_pool(2), name => %L)$$),
  ('single_collection', $$single_collection_enable('t', type_field => 'k', related_field => 'f', self_related => '{b}', name => %L)$$);
SELECT collection_create(c) FROM unnest('{t,others,makers,categories,events}'::text[]) c;
SELECT tree_enable('categories', parent => 'up');
CREATE FUNCTION kept_twice() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  a keepers;
  b keepers;
  taken text[] := '{}';
BEGIN
  FOR a IN SELECT * FROM keepers LOOP
    BEGIN
      EXECUTE 'SELECT ' || format(a.enable, 'first');
      FOR b IN SELECT * FROM keepers WHERE pattern <> a.pattern LOOP
        BEGIN
          EXECUTE 'SELECT ' || format(b.enable, 'second');
          taken := taken || format('%s beside %s', b.pattern, a.pattern);
          RAISE EXCEPTION 'back' USING ERRCODE = 'P9999';
        EXCEPTION
          WHEN invalid_parameter_value OR feature_not_supported OR SQLSTATE 'P9999' THEN NULL;
          WHEN OTHERS THEN taken := taken || format('%s beside %s: %s', b.pattern, a.pattern, SQLERRM);
        END;
      END LOOP;
      RAISE EXCEPTION 'back' USING ERRCODE = 'P9999';
    EXCEPTION WHEN SQLSTATE 'P9999' THEN NULL;
    END;
  END LOOP;
  RETURN QUERY SELECT unnest(taken);
END $$;
\o
SELECT plan(1);
SELECT is((SELECT string_agg(k, E'\n') FROM kept_twice() k), NULL, 'no field is kept by two patterns');
\o /dev/null
DROP SCHEMA apart CASCADE;
\o
SELECT * FROM finish();
