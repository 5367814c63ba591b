-- The rest of the patterns' triggers with arguments that nobody should give them (hostile_triggers has the others), and trigger
-- functions that are made to run where they have no business.
--
-- Each declaration is altered in one option after the other: the option goes, or becomes a value of another type; then the tables are
-- written to and read. All of that may fail, but with an error of its own: never with an internal error or the end of the server.
-- The values repeat; to try others: PGOPTIONS='-c hostile.seed=0.5 -c hostile.rounds=14'.
BEGIN;
SET client_min_messages = warning;
SET timezone = 'UTC';
SET statement_timeout = '240s';
SELECT plan(8);
SELECT diag('seed ' || coalesce(current_setting('hostile.seed', true), '0.1') || ', values for each option ' || coalesce(current_setting('hostile.rounds', true), '1'));
SELECT setseed(coalesce(current_setting('hostile.seed', true), '0.1')::float8) \g /dev/null

-- Declarations ------------------------------------------------------------------------------------------------------------

CREATE SCHEMA forged;
SET search_path = forged, public;
CREATE TABLE source (id int PRIMARY KEY, doc bson);
CREATE INDEX ON source (doc);
CREATE INDEX ON source ((doc -> 'k')); CREATE INDEX ON source ((doc -> 'r'));
CREATE TABLE target (id int PRIMARY KEY, doc bson);
CREATE UNIQUE INDEX ON target ((doc -> '_id'));
CREATE TABLE nodes (id int PRIMARY KEY, doc bson);
CREATE TABLE hung (id int PRIMARY KEY, doc bson);
CREATE TABLE large (id int PRIMARY KEY, doc bson);
CREATE TABLE kinds (id int PRIMARY KEY, doc bson);
CREATE TABLE posts (id int PRIMARY KEY, doc bson);
CREATE TABLE follows (id int PRIMARY KEY, doc bson);
CREATE INDEX ON nodes ((doc -> '_id'));
SELECT outlier_enable('large', 'a', 2), subset_fields_enable('large', '{cold,deep.cold}'), attribute_enable('large', 'all', pattern => 'a_{k}', value_field => 'v', qualifiers => '{a_x: {u: 1}}');
SELECT versioning_enable('large', revision_field => 'rev', keep => 3), approximation_enable('large', 'n', slots => 2), approximation_enable('large', 'p', step => 10), payload_enable('large', 'x', extracts => '{q: "regex:(.)", j: "jsonpath:$.a"}');
SELECT schema_versioning_enable('kinds', current => 2), schema_versioning_step('kinds', 1, 2, up_update => '{$set: {a: 1}}', down_update => '{$unset: {a: 1}}');
SELECT polymorphic_enable('kinds', 'k', unknown => 'accept', common => '{required: ["k"]}'), polymorphic_variant('kinds', 'v', schema => '{properties: {x: {bsonType: "int"}}}', indexes => '{x}');
SELECT computed_enable('target', 'source', 'k', '{t: {$sum: "$n"}}', mode => 'deferred', name => 'later'), computed_enable('target', 'source', 'k', '{c: {$count: {}}, b: {$max: "$n"}}', filter => '{n: {$gt: 0}}', create_missing => true, name => 'now');
SELECT subset_enable('target', 'top', 'source', 'k', '{n: -1}', 2, fields => '{n: 1}', count_field => 'amount', count_mode => 'deferred');
SELECT reference_enable('source', 'r', 'target', live => '{name}', frozen => '{f}', missing => 'allow', refresh => 'deferred');
SELECT rollup_enable('source', name => 'by_time', time_field => 'ts', levels => '{hour,day}', group_by => '{k}', fields => '{s: {$sum: "$n"}}');
SELECT tree_enable('nodes', parent => 'parent', ancestors => 'above', path => 'way', children => 'below'), tree_attach('hung', 'nodes', 'node');
SELECT fanout_enable('posts', 'walls', 'by', 'follows', 'reader', 'writer', keep => 3, celebrity_threshold => 2, name => 'wall');

CREATE TABLE declared AS
  SELECT d.rel, d.pattern, d.name, d.options, t.tgname, regexp_replace(pg_get_triggerdef(t.oid), '(^CREATE TRIGGER)(.*)\(''.*$', 'CREATE OR REPLACE TRIGGER\2') AS definition
  FROM docpatterns._pattern_declarations(NULL) d JOIN pg_trigger t ON t.oid = d.trigger_oid
  WHERE d.rel::text IN ('source', 'target', 'nodes', 'hung', 'large', 'kinds', 'posts', 'follows');
SELECT set_eq('SELECT DISTINCT pattern FROM declared', '{approximation,attribute,computed,fanout,outlier,payload,polymorphic,polymorphic_variant,reference,rollup,schema_versioning,subset,subset_fields,tree,tree_attach,versioning}'::text[],
              'these patterns are declared');

-- What is tried -----------------------------------------------------------------------------------------------------------

CREATE TABLE statements (n serial, rel text, pattern text, sql text);
INSERT INTO statements (rel, pattern, sql) VALUES
  ('large', NULL, $$INSERT INTO large VALUES (1, '{a: [1, 2, 3], n: 1, p: 5, cold: {x: 1}, deep: {cold: 2}, a_x: 1, a_y: 2, x: "{\"a\": 1}"}'), (2, '{a: 1, n: "x", all: 1}'), (3, NULL) ON CONFLICT DO NOTHING$$),
  ('large', NULL, $$UPDATE large SET doc = bson_update(doc, '{$push: {a: 4}, $set: {cold: 5, a_z: 3}}') WHERE id = 1$$),
  ('large', 'outlier', $$SELECT outlier_push('large', 1, 5), outlier_page('large', 1, 0, 5)$$),
  ('large', 'approximation', $$SELECT approximation_add('large', 1, 3, 'n')$$), ('large', 'approximation', $$SELECT approximation_read('large', 1, 'n')$$),
  ('large', 'versioning', $$SELECT versioning_revisions('large', 1)$$), ('large', 'versioning', $$SELECT versioning_at('large', 1, 1)$$),
  ('kinds', NULL, $$INSERT INTO kinds VALUES (1, '{k: "v", x: 1}'), (2, '{k: 5, schema_version: 1}'), (3, '{}') ON CONFLICT DO NOTHING$$),
  ('kinds', NULL, $$UPDATE kinds SET doc = bson_set(doc, 'x', 2)$$),
  ('source', NULL, $$INSERT INTO target VALUES (1, '{_id: "a", name: "A", f: 1}'), (2, '{_id: "b"}') ON CONFLICT DO NOTHING$$),
  ('source', NULL, $$INSERT INTO source VALUES (1, '{k: "a", n: 1, r: "a", ts: ISODate("2026-01-01T10:00:00Z")}'), (2, '{k: "b", n: 2, r: [1], ts: 5}'), (3, '{k: 1, n: 3, r: "none"}') ON CONFLICT DO NOTHING$$),
  ('target', NULL, $$INSERT INTO target VALUES (1, '{_id: "a", name: "A", f: 1}'), (2, '{_id: "b"}') ON CONFLICT DO NOTHING$$),
  ('target', NULL, $$INSERT INTO source VALUES (1, '{k: "a", n: 1, r: "a", ts: ISODate("2026-01-01T10:00:00Z")}'), (2, '{k: "b", n: 2, r: [1], ts: 5}') ON CONFLICT DO NOTHING$$),
  ('source', NULL, $$UPDATE source SET doc = bson_set(doc, 'n', 9)$$), ('target', NULL, $$UPDATE source SET doc = bson_set(doc, 'n', 9)$$),
  ('source', 'reference', $$UPDATE target SET doc = bson_set(doc, 'name', 'N'::text) WHERE id = 1$$), ('source', 'reference', $$DELETE FROM target$$),
  ('source', 'rollup', $$SELECT pattern_check('source', 'by_time')$$),
  ('target', NULL, $$DELETE FROM source WHERE id = 1$$),
  ('nodes', NULL, $$INSERT INTO nodes VALUES (1, '{_id: "r"}'), (2, '{_id: "c", parent: "r"}'), (3, '{_id: 5, parent: "c"}') ON CONFLICT DO NOTHING$$),
  ('nodes', NULL, $$UPDATE nodes SET doc = bson_set(doc, 'parent', 'r'::text) WHERE id = 3$$), ('nodes', NULL, $$SELECT tree_descendants('nodes', 'r'::text), tree_ancestors('nodes', 'c'::text)$$),
  ('nodes', NULL, $$DELETE FROM nodes WHERE id = 3$$),
  ('hung', NULL, $$INSERT INTO nodes VALUES (1, '{_id: "r"}'), (2, '{_id: "c", parent: "r"}') ON CONFLICT DO NOTHING$$),
  ('hung', NULL, $$INSERT INTO hung VALUES (1, '{node: "c"}'), (2, '{node: "none"}'), (3, '{}') ON CONFLICT DO NOTHING$$), ('hung', NULL, $$INSERT INTO hung VALUES (4, '{node: "c"}') ON CONFLICT DO NOTHING$$),
  ('hung', NULL, $$UPDATE nodes SET doc = bson_unset(doc, 'parent') WHERE id = 2$$),
  ('posts', NULL, $$INSERT INTO follows VALUES (1, '{reader: 1, writer: "w"}'), (2, '{reader: [1], writer: "w"}'), (3, '{reader: 3, writer: "v"}') ON CONFLICT DO NOTHING$$),
  ('posts', NULL, $$INSERT INTO posts VALUES (1, '{_id: 1, by: "w"}'), (2, '{_id: 2, by: 5}'), (3, '{_id: 3}') ON CONFLICT DO NOTHING$$), ('posts', NULL, $$SELECT fanout_timeline('posts', 1)$$),
  ('follows', NULL, $$INSERT INTO posts VALUES (1, '{_id: 1, by: "w"}') ON CONFLICT DO NOTHING$$), ('follows', NULL, $$INSERT INTO follows VALUES (1, '{reader: 1, writer: "w"}') ON CONFLICT DO NOTHING$$),
  ('posts', NULL, $$DELETE FROM posts WHERE id = 1$$), ('posts', NULL, $$DELETE FROM follows WHERE id = 1$$);
-- the verbs that all patterns have, and what empties a table
INSERT INTO statements (rel, sql)
  SELECT rel, format(s, rel) FROM unnest('{large,kinds,source,target,nodes,hung,posts,follows}'::text[]) rel,
    unnest(ARRAY['SELECT pattern_check(%L)', 'SELECT docpatterns._pattern_repair_row(rel, name, ROW(1)) FROM docpatterns._pattern_declarations(%L)', 'SELECT pattern_repair(rel, name) FROM docpatterns._pattern_declarations(%L)', 'TRUNCATE %s']) WITH ORDINALITY s (s, o) ORDER BY o, rel;

-- a value for each option, drawn at random
CREATE TABLE trials (rel text, pattern text, options bson, definition text);
INSERT INTO trials
  SELECT d.rel, d.pattern, CASE WHEN v IS NULL THEN bson_unset(d.options, p.path) ELSE bson_set(d.options, p.path, v::bson_value) END, d.definition
  FROM declared d
    CROSS JOIN LATERAL (SELECT format('"%s"', e.key) FROM bson_each(d.options) e WHERE e.key <> 'name') AS p (path)
    CROSS JOIN LATERAL (SELECT v FROM unnest(ARRAY[NULL, '1', '-1', '2147483647', '""', '"a.0"', '"a\u0000b"', '[]', '[1]', '["a", "a", 1, "b"]', '{}', '{"a": 1}', '{"a": "b", "b": {}}', 'true', 'null']) AS v
                        WHERE p.path IS NOT NULL ORDER BY random() LIMIT coalesce(current_setting('hostile.rounds', true), '1')::int) AS v;

CREATE TABLE surprises (definition text, options text, sql text, code text, message text);
CREATE TABLE kept (LIKE surprises);
CREATE FUNCTION try_all(OUT tried bigint, OUT refused bigint) LANGUAGE plpgsql AS $$
DECLARE
  t record;
  s record;
BEGIN
  tried := 0; refused := 0;
  FOR t IN SELECT * FROM trials LOOP
    BEGIN
      EXECUTE t.definition || format('(%L)', t.options::text);
      FOR s IN SELECT * FROM statements WHERE rel = t.rel AND coalesce(pattern, t.pattern) = t.pattern ORDER BY n LOOP
        BEGIN
          tried := tried + 1;
          EXECUTE s.sql;
        EXCEPTION WHEN OTHERS THEN
          refused := refused + 1;
          IF SQLSTATE IN ('XX000', 'XX001', 'XX002', '42601', '42883') THEN
            INSERT INTO surprises VALUES (t.definition, t.options, s.sql, SQLSTATE, SQLERRM);
          END IF;
        END;
      END LOOP;
      -- what was found out is told, all the rest is undone
      RAISE EXCEPTION 'done' USING ERRCODE = 'ZZ001', DETAIL = (SELECT coalesce(jsonb_agg(u), '[]') FROM surprises u);
    EXCEPTION WHEN SQLSTATE 'ZZ001' THEN
      DECLARE
        found text;
      BEGIN
        GET STACKED DIAGNOSTICS found = PG_EXCEPTION_DETAIL;
        INSERT INTO kept SELECT u.* FROM jsonb_populate_recordset(NULL::kept, found::jsonb) u;
      END;
    WHEN OTHERS THEN
      -- the trigger could not be made
      IF SQLSTATE IN ('XX000', 'XX001', 'XX002') THEN
        INSERT INTO kept VALUES (t.definition, t.options, 'CREATE TRIGGER', SQLSTATE, SQLERRM);
      END IF;
    END;
  END LOOP;
END
$$;
CREATE TABLE outcome AS SELECT * FROM try_all();
SELECT is_empty($$SELECT code, sql, left(message, 100), min(options), count(*) FROM kept GROUP BY 1, 2, 3$$, 'nothing ends with an internal error');
SELECT ok(tried > 400, format('%s statements were tried', tried)) FROM outcome;
SELECT ok(refused > 100 AND refused < tried, format('%s of them were refused, and others were not', refused)) FROM outcome;

-- Triggers where they have no business ---------------------------------------------------------------------------------------

CREATE TABLE innocent (id int PRIMARY KEY, doc bson);
CREATE VIEW shown AS SELECT * FROM innocent;
CREATE FUNCTION misplaced() RETURNS TABLE (name name, form text, code text, message text) LANGUAGE plpgsql AS $$
DECLARE
  f regproc;
  arguments text;
BEGIN
  FOR f, name IN SELECT p.oid, p.proname FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
                 WHERE p.prorettype = 'trigger'::regtype AND l.lanname = 'c' AND EXISTS (SELECT FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid WHERE d.objid = p.oid AND e.extname = 'docpatterns') LOOP
    BEGIN
      EXECUTE format('SELECT %s()', f);
      RAISE EXCEPTION 'no error' USING ERRCODE = 'ZZ002';
    EXCEPTION WHEN OTHERS THEN
      form := 'call'; code := SQLSTATE; message := SQLERRM; RETURN NEXT;
    END;
    FOR form, arguments IN SELECT e, a FROM unnest('{BEFORE INSERT ON innocent FOR EACH STATEMENT,AFTER INSERT ON innocent FOR EACH STATEMENT,BEFORE INSERT ON innocent FOR EACH ROW,AFTER INSERT ON innocent FOR EACH ROW,INSTEAD OF INSERT ON shown FOR EACH ROW}'::text[]) e,
                                                   unnest('{"","0, 1, 2"}'::text[]) a LOOP
      BEGIN
        EXECUTE format('CREATE TRIGGER misplaced %s EXECUTE FUNCTION %s(%s)', form, f, arguments);
        INSERT INTO shown VALUES (1, '{}');
        RAISE EXCEPTION 'no error' USING ERRCODE = 'ZZ002';
      EXCEPTION WHEN OTHERS THEN
        form := form || ' ' || arguments; code := SQLSTATE; message := SQLERRM; RETURN NEXT;
      END;
    END LOOP;
  END LOOP;
END
$$;
CREATE TABLE outcomes AS SELECT * FROM misplaced();
SELECT is_empty($$SELECT * FROM outcomes WHERE code LIKE 'XX%'$$, 'a trigger of another kind ends with no internal error');
SELECT is_empty($$SELECT name, form FROM outcomes WHERE code <> '39P01' AND (form = 'call' OR form NOT LIKE '%2' AND name NOT IN ('collection_set_id', 'attribute_wide_trigger', 'pattern_whole_trigger'))$$,
                'each trigger function refuses to be called, and a trigger without arguments if it needs some');
SELECT is_empty($$SELECT name FROM outcomes GROUP BY 1 HAVING count(*) FILTER (WHERE code = '39P01' AND form ~ '^(AFTER|INSTEAD).*ROW .*2') = 0$$, 'and a trigger at another event');
SELECT is_empty($$SELECT name, message FROM outcomes o WHERE code = '39P01' AND NOT EXISTS (SELECT FROM (SELECT proname FROM pg_proc UNION SELECT '<pattern>_enable') p (creator)
                    WHERE o.message = format('trigger function "%s" must be created by %s()', o.name, p.creator))$$, 'the error names the function, and the one that creates such triggers');
SELECT finish();
ROLLBACK;
