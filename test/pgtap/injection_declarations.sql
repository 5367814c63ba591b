-- Declarations made by hand: whoever may make triggers on a table may give them any argument. Each option of each pattern
-- becomes a text that means harm; what checks, repairs, builds, writes and disables then must not take it for SQL.
\set ECHO none
SET client_min_messages = error;
SET statement_timeout = '300s';
SELECT plan(3);
CREATE SCHEMA forged;
SET search_path = forged, public;
CREATE TABLE canary (id int PRIMARY KEY);
DO $$ DECLARE t text; BEGIN
  FOREACH t IN ARRAY '{outlier,subset,fields,schema,history,reference,kinds,attribute,counter,tree,totals,payload,slots,feed,source,relation,other,catalog}'::text[] LOOP
    EXECUTE format('CREATE TABLE %I (id int PRIMARY KEY, doc bson)', t);
  END LOOP;
END $$;
SELECT outlier_enable('outlier', 'a', 2), subset_enable('subset', 'top', 'outlier', 'k', '{n: 1}', 2, count_field => 'c', count_mode => 'deferred'), subset_fields_enable('fields', '{cold}'),
       bucket_create('measured', columns => 'g int, ts timestamptz, v float8', group_by => '{g}', time_field => 'ts', span => '1 hour'),
       schema_versioning_enable('schema'), schema_versioning_step('schema', 1, 2, up_update => '{$set: {a: 1}}', down_update => '{$unset: {a: 1}}'),
       versioning_enable('history'), reference_enable('reference', 'r', 'outlier', live => '{a}', refresh => 'deferred'),
       polymorphic_enable('kinds', 'k'), polymorphic_variant('kinds', 'v', schema => '{properties: {x: {bsonType: "int"}}}'),
       attribute_enable('attribute', 'all', pattern => 'a_{k}'), approximation_enable('counter', 'n', slots => 2),
       tree_enable('tree', node_id => 'n', parent => 'up', ancestors => 'above', path => 'way'), computed_enable('totals', 'outlier', 'k', '{t: {$sum: "$n"}}', mode => 'deferred'),
       payload_enable('payload', 'x', extracts => '{q: "regex:(.)"}'), preallocated_enable('slots', 'seats', preallocated_grid('{2,2}'), store => 'slots'), change_feed_enable('feed'),
       query_table_create('shown', 'source', '{u}', limit_per_partition => 2), relationship_enable('relation', 'r', 'other', 's', missing => 'allow'), single_collection_enable('catalog', key_field => 'k', missing => 'allow'),
       single_table_create('items', indexes => 1), kv_create('forged_space');
SELECT single_table_entity('items', 'x', pk => 'A#{n}', sk => 'B');

CREATE TABLE declared AS
  SELECT d.rel, d.pattern, d.options, regexp_replace(pg_get_triggerdef(t.oid), '(^CREATE TRIGGER)(.*)\(''.*$', 'CREATE OR REPLACE TRIGGER\2') AS definition
  FROM docpatterns._pattern_declarations(NULL) d JOIN pg_trigger t ON t.oid = d.trigger_oid;
CREATE TABLE found (pattern text, option text, value text, statement text, state text, message text);
CREATE TABLE tried (pattern text, state text);
SELECT cmp_ok((SELECT count(DISTINCT pattern) FROM declared), '>=', 21::bigint, 'all patterns are declared');

DO $x$
DECLARE
  d record;
  k text;
  v text;
  s text;
BEGIN
  FOR d IN SELECT * FROM declared LOOP
    FOR k IN SELECT q.k FROM bson_keys(d.options) q (k) WHERE q.k NOT IN ('link_id', 'second_link_id', 'removed_link_id') LOOP
      FOREACH v IN ARRAY ARRAY['x''; DROP TABLE forged.canary; --', 'x; DROP TABLE forged.canary; --', '1) q; DROP TABLE forged.canary; --', 'x"; DROP TABLE forged.canary; --', '$$', '1 OR (SELECT true)'] LOOP
        FOREACH s IN ARRAY ARRAY[format('SELECT pattern_check(%L)', d.rel), format('SELECT pattern_repair(%L)', d.rel), format('SELECT count(*) FROM docpatterns._pattern_pending_keys(%L, %L, %L) AS q (key record)', d.rel, d.pattern, bson_get_text(d.options, 'name')),
            CASE WHEN d.pattern = 'bucket' THEN 'INSERT INTO measured (g, v) VALUES (7, 1)' WHEN d.pattern = 'single_table' THEN 'INSERT INTO items (doc) VALUES (''{PK: "a", SK: "b"}'')'
                 WHEN d.pattern LIKE 'kv%' THEN 'SELECT kv_sadd(''forged_space'', ''s'', 1)' ELSE format('INSERT INTO %s (id, doc) VALUES (7, ''{a: [1, 2, 3], k: "1", x: "z", n: 1}'')', d.rel) END,
            format('SELECT pattern_disable(%L)', d.rel)] LOOP
          BEGIN
            EXECUTE d.definition || '(' || quote_literal(bson_set(d.options, k, to_bson(v))::text) || ')';
            EXECUTE s;
            IF to_regclass('forged.canary') IS NULL THEN
              RAISE SQLSTATE 'HARM1';
            END IF;
            RAISE SQLSTATE 'UNDO1';
          EXCEPTION WHEN OTHERS THEN
            INSERT INTO tried VALUES (d.pattern, SQLSTATE);
            IF SQLSTATE IN ('42601', 'HARM1') OR SQLSTATE LIKE 'XX%' THEN
              INSERT INTO found VALUES (d.pattern, k, v, s, SQLSTATE, SQLERRM);
            END IF;
          END;
        END LOOP;
      END LOOP;
    END LOOP;
  END LOOP;
END $x$;
SELECT diag(format('%s statements, %s of them with an error of their own', count(*), count(*) FILTER (WHERE state <> 'UNDO1'))) FROM tried;
SELECT is_empty('SELECT pattern, option, left(value, 20), left(statement, 60), state, left(message, 100) FROM found ORDER BY 1, 2 LIMIT 20', 'no option becomes SQL');
SELECT cmp_ok((SELECT count(*) FROM tried), '>', 3000::bigint, 'all of them were tried');
DROP SCHEMA forged, forged_space CASCADE;
SELECT * FROM finish();
