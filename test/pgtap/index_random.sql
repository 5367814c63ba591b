-- Thousands of random filters over random documents: what an index answers is what a sequential scan answers, for every kind of
-- index, for filters that are constants and filters that are not known when the query is planned.
--
-- DP_RANDOM_ROUNDS (default 1) repeats it with other documents and filters, DP_RANDOM_SEED (default 1) begins elsewhere.
\set QUIET 1
\getenv rounds DP_RANDOM_ROUNDS
\getenv seed DP_RANDOM_SEED
\if :{?rounds}
\else
  \set rounds 1
\endif
\if :{?seed}
\else
  \set seed 1
\endif
SET client_min_messages = warning;
SET timezone = 'UTC';
SET jit = off;
SET max_parallel_workers_per_gather = 0;
BEGIN;
SELECT plan(23);
\echo # rounds :rounds, first seed :seed

-- ---------------------------------------------------------------- random documents

CREATE FUNCTION pick(VARIADIC choices text[]) RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT choices[1 + floor(random() * cardinality(choices))::int] $$;

-- A value that is no document and no array: few different ones, so that filters meet them; numbers that are equal in different types or
-- only nearly, strings with long beginnings in common.
CREATE FUNCTION scalar() RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE kind float8 := random();
BEGIN
  IF kind < 0.35 THEN RETURN floor(random() * 12)::int - 2; END IF;
  IF kind < 0.5 THEN RETURN '"' || pick('', 'a', 'b', 'ab', 'abc', 'B', 'straße', 'x y', '10', 'a\u0000', 'a\u0000b') || '"'; END IF;
  IF kind < 0.62 THEN RETURN '"' || pick('/usr/share/doc/', 'a string that ', '2024-01-') || pick('', 'is longer than a key ', 'ends ') || floor(random() * 4)::int || '"'; END IF;
  IF kind < 0.72 THEN RETURN pick('2.5', '2.0', '{"$numberLong": "3"}', '{"$numberLong": "9007199254740993"}', '9007199254740992', '{"$numberDouble": "9007199254740992.0"}', '{"$numberDecimal": "2.50"}',
    '{"$numberDecimal": "0.1"}', '0.1', '-0.0', '{"$numberDouble": "NaN"}', '{"$numberDecimal": "NaN"}', '{"$numberDouble": "Infinity"}', '{"$numberDouble": "-Infinity"}', '{"$numberDecimal": "1E+400"}', '1e300', '-1e-300', '{"$numberLong": "-9223372036854775808"}'); END IF;
  IF kind < 0.8 THEN RETURN pick('null', 'null', '{"$undefined": true}'); END IF;
  IF kind < 0.86 THEN RETURN pick('true', 'false'); END IF;
  IF kind < 0.93 THEN RETURN format('{"$date": {"$numberLong": "%s"}}', pick('0', '-1', '1704067200000', '1704067200001', '1706745600000', '-9223372036854775808')); END IF;
  RETURN pick('{"$oid": "507f191e810c19729de860ea"}', '{"$oid": "507f191e810c19729de860eb"}', '{"$timestamp": {"t": 5, "i": 1}}', '{"$timestamp": {"t": 5, "i": 2}}', '{"$binary": {"base64": "", "subType": "00"}}',
    '{"$binary": {"base64": "AQID", "subType": "00"}}', '{"$binary": {"base64": "AQIDBAUGBwgJ", "subType": "80"}}', '{"$symbol": "ab"}', '{"$code": "abc"}', '{"$code": "f", "$scope": {"x": 1}}', '{"$regularExpression": {"pattern": "^a", "options": ""}}',
    '{"$minKey": 1}', '{"$maxKey": 1}', '{"$dbPointer": {"$ref": "b", "$id": {"$oid": "507f191e810c19729de860ea"}}}');
END $$;

CREATE FUNCTION field() RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT pick('a', 'b', 'c', 'a', 'b', 'k', 'v', '0', '1', '-1', '', 'x.y', 'n') $$;

CREATE FUNCTION anything(depth int) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE kind float8 := random(); result text := '';
BEGIN
  IF depth = 0 OR kind < 0.45 THEN RETURN scalar(); END IF;
  IF kind < 0.72 THEN
    FOR i IN 1 .. floor(random() * 4)::int LOOP result := result || CASE WHEN i > 1 THEN ', ' ELSE '' END || anything(depth - 1); END LOOP;
    RETURN '[' || result || ']';
  END IF;
  FOR i IN 1 .. floor(random() * 4)::int LOOP result := result || CASE WHEN i > 1 THEN ', ' ELSE '' END || '"' || field() || '": ' || anything(depth - 1); END LOOP;
  RETURN '{' || result || '}';
END $$;

-- A document: some fields of any kind, often an array of sub-documents with k and v, and sometimes a field twice.
CREATE FUNCTION document() RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE result text := ''; element text;
BEGIN
  FOR i IN 1 .. floor(random() * 5)::int LOOP result := result || ', "' || field() || '": ' || anything(3); END LOOP;
  IF random() < 0.6 THEN
    element := '';
    FOR i IN 1 .. floor(random() * 5)::int LOOP
      element := element || CASE WHEN i > 1 THEN ', ' ELSE '' END || CASE WHEN random() < 0.1 THEN anything(2) ELSE
        '{' || concat_ws(', ', CASE WHEN random() < 0.9 THEN '"k": ' || CASE WHEN random() < 0.85 THEN pick('"red"', '"green"', '1', '2') ELSE anything(1) END END,
                                CASE WHEN random() < 0.9 THEN '"v": ' || CASE WHEN random() < 0.85 THEN floor(random() * 10)::text ELSE anything(2) END END,
                                CASE WHEN random() < 0.1 THEN '"k": ' || scalar() END) || '}' END;
    END LOOP;
    result := result || ', "r": ' || CASE WHEN random() < 0.9 THEN '[' || element || ']' ELSE anything(2) END;
  END IF;
  RETURN '{' || substr(result, 3) || '}';
END $$;

-- ---------------------------------------------------------------- random filters

CREATE FUNCTION path() RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT pick('a', 'b', 'c', 'n', 'a', 'b', 'c', 'a.b', 'b.a', 'a.a', 'b.c', 'a.b.c', 'a.0', 'a.1', 'b.0.a', 'a.0.0', 'a.-1', 'b.-1.a', '0', '0.a', 'k', 'r', 'r.k', 'r.v', 'r.0.k', 'r.k.a', 'r.v.0', 'x', '', 'a.') $$;
CREATE FUNCTION comparison() RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT pick('$gt', '$gte', '$lt', '$lte') $$;

-- Values that documents have at each path; where they have none anything will do.
CREATE TABLE seen (path text, n int, v text, PRIMARY KEY (path, n));
CREATE FUNCTION value_at(p text, depth int) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN coalesce(CASE WHEN random() < 0.6 THEN (SELECT v FROM seen WHERE path = p AND n = (SELECT floor(random() * 40)::int)) END, anything(depth));
END $$;
CREATE FUNCTION bound(op text, p text) RETURNS text LANGUAGE sql VOLATILE AS $$ SELECT format('"%s": %s', op, CASE WHEN random() < 0.4 THEN floor(random() * 10)::text ELSE value_at(p, 2) END) $$;

-- What may stand after a path, as operators.
CREATE FUNCTION operators(depth int, p text) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE kind float8 := random();
BEGIN
  RETURN CASE
    WHEN kind < 0.14 THEN bound(comparison(), p)
    WHEN kind < 0.28 THEN bound(pick('$gt', '$gte'), p) || ', ' || bound(pick('$lt', '$lte'), p)
    WHEN kind < 0.34 THEN '"$eq": ' || value_at(p, 2)
    WHEN kind < 0.37 THEN '"$ne": ' || value_at(p, 1)
    WHEN kind < 0.45 THEN '"$in": [' || (SELECT string_agg(CASE WHEN random() < 0.9 THEN value_at(p, 1) ELSE '{"$regularExpression": {"pattern": "^a", "options": ""}}' END, ', ') FROM generate_series(1, 1 + floor(random() * 3)::int)) || ']'
    WHEN kind < 0.47 THEN '"$nin": [' || scalar() || ', ' || value_at(p, 1) || ']'
    WHEN kind < 0.53 THEN '"$all": [' || (SELECT string_agg(value_at(p, 1), ', ') FROM generate_series(1, 1 + floor(random() * 3)::int)) || ']'
    WHEN kind < 0.55 THEN '"$all": [{"$elemMatch": {' || bound('$gte', p) || '}}, {"$elemMatch": ' || filter(0) || '}]'
    WHEN kind < 0.6 THEN '"$exists": ' || pick('true', 'true', 'false')
    WHEN kind < 0.65 THEN '"$type": ' || pick('"string"', '"number"', '"int"', '"array"', '"object"', '"null"', '"date"', '"bool"', '["string", "null"]', '-1', '"undefined"', '"decimal"', '"objectId"', '"regex"')
    WHEN kind < 0.69 THEN '"$size": ' || floor(random() * 4)::int
    WHEN kind < 0.71 THEN '"$mod": [' || pick('2, 0', '3, 1', '2, -1') || ']'
    WHEN kind < 0.78 THEN '"$regex": "' || pick('^a', '^', 'a', '^/usr/share/doc/', '^a string that is', '^2024-01-[0-2]', '^ab?', '^a|b', '^(a|b)', '^a*', '^[ab]', '1$', '^A', '^a\\.b', '^x y', '^str', '^r', '^a{0}', '^\\/usr', '^a+b', '^gre') || '"' || CASE WHEN random() < 0.2 THEN ', "$options": "' || pick('i', 'm', 'x', 's') || '"' ELSE '' END
    WHEN kind < 0.81 THEN format('"$bits%s%s": %s', pick('All', 'Any'), pick('Set', 'Clear'), pick('1', '6', '[0, 2]'))
    WHEN depth > 0 AND kind < 0.86 THEN '"$not": {' || operators(depth - 1, p) || '}'
    WHEN kind < 0.93 THEN '"$elemMatch": {' || operators(0, p) || '}'
    ELSE '"$elemMatch": ' || filter(depth - 1) END;
END $$;

-- $elemMatch on the sub-documents of r: what pairs are for.
CREATE FUNCTION pair() RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT format('{"%s": {"$elemMatch": {%s}}}', pick('r', 'r', 'r', 'r', 'a', 'r.0', ''), concat_ws(', ',
    CASE WHEN random() < 0.95 THEN format('"k": %s', CASE floor(random() * 5) WHEN 0 THEN '{"$in": ["red", 1, null]}' WHEN 1 THEN format('{%s}', operators(0, 'r.k')) WHEN 2 THEN value_at('r.k', 1) ELSE pick('"red"', '"green"', '1', '2.0', 'null') END) END,
    CASE WHEN random() < 0.95 THEN format('"v": %s', CASE floor(random() * 5) WHEN 0 THEN format('{%s, %s}', bound('$gte', 'r.v'), bound('$lt', 'r.v')) WHEN 1 THEN format('{%s}', operators(1, 'r.v')) WHEN 2 THEN value_at('r.v', 1) ELSE floor(random() * 10)::text END) END,
    CASE WHEN random() < 0.1 THEN format('"%s": %s', field(), scalar()) END)) $$;

CREATE FUNCTION condition(p text, depth int) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT format('"%s": %s', p, CASE WHEN random() < 0.4 THEN value_at(p, 2) ELSE '{' || operators(depth, p) || '}' END) $$;

CREATE FUNCTION filter(depth int) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
DECLARE kind float8 := random();
BEGIN
  IF depth > 0 AND kind < 0.25 THEN
    RETURN format('{"%s": [%s]}', pick('$and', '$or', '$or', '$nor'), (SELECT string_agg(filter(depth - 1), ', ') FROM generate_series(1, 1 + floor(random() * 3)::int)));
  END IF;
  IF kind < 0.4 THEN RETURN pair(); END IF;
  IF kind < 0.42 THEN RETURN format('{"$expr": {"$eq": ["$%s", %s]}}', pick('a', 'b', 'r.k'), pick('1', '2', '"a"', 'null')); END IF;
  IF kind < 0.43 THEN RETURN '{"$jsonSchema": {"required": ["a"], "properties": {"a": {"bsonType": "int"}}}}'; END IF;
  -- one or two conditions
  RETURN '{' || condition(path(), depth) || CASE WHEN random() < 0.25 THEN ', ' || condition(path(), depth) ELSE '' END || '}';
END $$;

-- One that is none, such as a comparison with undefined, is tried again.
CREATE FUNCTION good_filter() RETURNS bson LANGUAGE plpgsql VOLATILE AS $$
DECLARE result bson;
BEGIN
  LOOP
    BEGIN
      result := filter(2);
      PERFORM bson_match('{}', result);
      RETURN result;
    EXCEPTION WHEN invalid_parameter_value OR feature_not_supported OR invalid_regular_expression THEN
    END;
  END LOOP;
END $$;

-- ---------------------------------------------------------------- the run

CREATE TABLE docs (id int, doc bson);
CREATE TABLE filters (id int PRIMARY KEY, f bson, answer int[]);
CREATE TABLE wrong (form text, how text, seed float8, condition text, missing int[], extra int[]);
CREATE TABLE served (form text, n int, of int);

-- The ids that a query finds.
CREATE FUNCTION found(query text) RETURNS int[] LANGUAGE plpgsql STABLE AS $$
DECLARE result int[];
BEGIN
  EXECUTE 'SELECT coalesce(array_agg(id ORDER BY id), ''{}'') FROM (' || query || ' OFFSET 0) x' INTO result;
  RETURN result;
END $$;
-- Whether the plan of a query has an index that looks something up.
CREATE FUNCTION looks_up(query text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
DECLARE plan text;
BEGIN
  EXECUTE 'EXPLAIN (COSTS OFF, FORMAT JSON) ' || query INTO plan;
  RETURN plan LIKE '%Index Cond%';
END $$;
CREATE FUNCTION note(form text, how text, condition text, answer int[], got int[]) RETURNS void LANGUAGE sql VOLATILE AS $$
  INSERT INTO wrong SELECT form, how, current_setting('test.seed')::float8, condition, (SELECT array_agg(i) FROM unnest(answer) i WHERE i <> ALL (got)), (SELECT array_agg(i) FROM unnest(got) i WHERE i <> ALL (answer))
   WHERE got <> answer $$;

-- The documents again, now with an index: some in it from the beginning, others in its list of what is pending, some deleted.
CREATE PROCEDURE fill(command text) LANGUAGE plpgsql AS $$
DECLARE kept docs[] := (SELECT array_agg(d ORDER BY id) FROM docs d);
BEGIN
  DROP INDEX IF EXISTS docs_index;
  TRUNCATE docs;
  INSERT INTO docs SELECT (d).* FROM unnest(kept[:cardinality(kept) / 2]) d;
  INSERT INTO docs SELECT 1000000, (d).doc FROM unnest(kept[:10]) d;
  EXECUTE command;
  INSERT INTO docs SELECT (d).* FROM unnest(kept[cardinality(kept) / 2 + 1:]) d;
  DELETE FROM docs WHERE id = 1000000;
END $$;

-- All filters with one kind of index; every tenth plan is looked at.
CREATE PROCEDURE check_form(form text, command text) LANGUAGE plpgsql AS $$
DECLARE
  r record;
  n int := 0;
  looked int := 0;
  query text;
BEGIN
  CALL fill(command);
  SET LOCAL enable_seqscan = off;
  FOR r IN SELECT * FROM filters LOOP
    query := format(CASE WHEN r.id % 7 = 0 THEN 'SELECT id FROM docs WHERE bson_match(doc, %L)' WHEN r.id % 11 = 0 THEN 'SELECT id FROM docs WHERE doc @@ %1$L AND (doc @@ %1$L OR id < 0)' ELSE 'SELECT id FROM docs WHERE doc @@ %L' END, r.f);
    PERFORM note(form, 'constant', r.f::text, r.answer, found(query));
    IF r.id % 10 = 0 THEN
      looked := looked + 1;
      n := n + looks_up(query)::int;
    END IF;
  END LOOP;
  -- a filter that comes from a column, in one query for all of them
  PERFORM note(form, 'parameter', f.f::text, f.answer, x.got) FROM filters f, LATERAL (SELECT coalesce(array_agg(d.id ORDER BY d.id), '{}') AS got FROM docs d WHERE d.doc @@ f.f) x;
  SET LOCAL enable_seqscan = on;
  INSERT INTO served VALUES (form, n, looked);
END $$;

-- Containment and existence with one kind of index.
CREATE PROCEDURE check_contained(form text, command text, count int) LANGUAGE plpgsql AS $$
DECLARE
  query text;
  answer int[];
  n int := 0;
BEGIN
  CALL fill(command);
  FOR i IN 1 .. count LOOP
    query := 'SELECT id FROM docs WHERE doc ' || CASE floor(random() * 8)
      WHEN 0 THEN format('? %L', path()) WHEN 1 THEN format('?| ARRAY[%L, %L]', path(), path()) WHEN 2 THEN format('?& ARRAY[%L, %L]', path(), path())
      WHEN 3 THEN format('@> (SELECT doc FROM docs WHERE id = %s)', 1 + floor(random() * 100)::int)
      WHEN 4 THEN format('@> %L', format('{"r": [{"k": %s}]}', scalar()))
      ELSE format('@> %L', format('{"%s": %s}', field(), anything(2))) END;
    BEGIN
      answer := found(query);
    EXCEPTION WHEN invalid_parameter_value THEN CONTINUE;	-- no path
    END;
    SET LOCAL enable_seqscan = off;
    PERFORM note(form, 'contained', query, answer, found(query));
    n := n + looks_up(query)::int;
    SET LOCAL enable_seqscan = on;
  END LOOP;
  INSERT INTO served VALUES (form || ' contained', n, count);
END $$;

-- Comparisons of what the operator -> gives, with btree and hash indexes; and what the calls for collections make of filters.
CREATE PROCEDURE check_ordered(count int) LANGUAGE plpgsql AS $$
DECLARE
  query text;
  answer int[];
  n int := 0;
  r record;
  q record;
BEGIN
  CALL fill('CREATE INDEX docs_index ON docs (id)');
  CREATE INDEX docs_a ON docs ((doc -> 'a'));
  CREATE INDEX docs_b ON docs ((doc -> 'b.a') DESC, (doc -> 'a'));
  CREATE INDEX docs_c ON docs USING hash ((doc -> 'c'));
  CREATE INDEX docs_k ON docs ((doc -> 'r.k') NULLS FIRST);
  CREATE INDEX docs_v ON docs ((doc -> 'r'));
  FOR i IN 1 .. count LOOP
    query := format('SELECT id FROM docs WHERE (doc -> %L) ', pick('a', 'a', 'b.a', 'c', 'r', 'r.k')) || CASE floor(random() * 8)
      WHEN 0 THEN pick('IS NULL', 'IS NOT NULL')
      WHEN 1 THEN format('IN (%L, %L::bson_value)', scalar(), anything(2))
      WHEN 2 THEN format('= ANY (ARRAY[%L, %L, %L]::bson_value[])', scalar(), scalar(), anything(2))
      WHEN 3 THEN pick('= 2', '> 2.5::float8', '< 3::bigint', '>= 2.50', '= ''ab''::text', '<= ''b''::text', '= true', '< timestamptz ''2024-01-15''', '> date ''2000-01-01''', '<> 3', '= objectid ''507f191e810c19729de860ea''', '>= ''NaN''::float8', '> ''Infinity''::float8', '= 0.1', '= 0.1::float8')
      ELSE format('%s %L', pick('=', '=', '<', '<=', '>', '>=', '<>'), anything(2)) END;
    answer := found(query);
    SET LOCAL enable_seqscan = off;
    PERFORM note('ordered', 'comparison', query, answer, found(query));
    n := n + looks_up(query)::int;
    SET LOCAL enable_seqscan = on;
  END LOOP;
  INSERT INTO served VALUES ('ordered comparison', n, count);

  n := 0;
  SET LOCAL enable_seqscan = off;
  FOR r IN SELECT * FROM filters WHERE id <= count LOOP
    q := docpatterns._collection_query('docs', r.f);
    query := format('SELECT id FROM %s WHERE %s', q.source, replace(replace(q.conditions, '$1', quote_literal(r.f) || '::bson'), '$2', quote_literal(q.operands) || '::bson_value[]'));
    PERFORM note('ordered', 'collection', r.f::text, r.answer, found(query));
    n := n + looks_up(query)::int;
  END LOOP;
  SET LOCAL enable_seqscan = on;
  INSERT INTO served VALUES ('ordered collection', n, count);
  DROP INDEX docs_a, docs_b, docs_c, docs_k, docs_v;
END $$;

CREATE PROCEDURE run(seed int, ndocs int, nfilters int) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('test.seed', seed::text, true);
  PERFORM setseed(((seed * 7919) % 100000) / 100000.0);
  TRUNCATE docs, filters;
  INSERT INTO docs SELECT i, document()::bson FROM generate_series(1, ndocs) i;
  TRUNCATE seen;
  INSERT INTO seen SELECT p, row_number() OVER (PARTITION BY p) - 1, docpatterns.bson_value_out(v)::text FROM (
    SELECT p, v, row_number() OVER (PARTITION BY p ORDER BY d.id, o) AS o FROM (SELECT DISTINCT path() AS p FROM generate_series(1, 500)) q, docs d, LATERAL bson_values(d.doc, docpatterns._collection_index_path(p)) WITH ORDINALITY AS x (v, o)) y WHERE o <= 40;
  INSERT INTO filters SELECT i, good_filter(), NULL FROM generate_series(1, nfilters) i;
  UPDATE filters f SET answer = x.ids FROM (SELECT g.id, coalesce(array_agg(d.id ORDER BY d.id) FILTER (WHERE d.id IS NOT NULL), '{}') AS ids FROM filters g LEFT JOIN docs d ON d.doc @@ g.f GROUP BY g.id) x WHERE x.id = f.id;
  CALL check_ordered(nfilters / 3);
  CALL check_form('all paths', 'CREATE INDEX docs_index ON docs USING gin (doc bson_ops)');
  CALL check_form('named paths', $c$CREATE INDEX docs_index ON docs USING gin (doc bson_ops (paths = 'a, b.a, c, r.k, n, k'))$c$);
  CALL check_form('pairs', $c$CREATE INDEX docs_index ON docs USING gin (doc bson_ops (pairs = 'r(k,v)'))$c$);
  CALL check_form('paths and pairs', $c$CREATE INDEX docs_index ON docs USING gin (doc bson_ops (paths = 'a.b, r', pairs = 'r(k,v), a(k,v)')) WITH (fastupdate = off)$c$);
  CALL check_form('a second column', $c$CREATE INDEX docs_index ON docs USING gin ((doc || '{a: 1}') bson_ops (paths = 'c'), doc bson_ops (paths = 'a, b, r', pairs = 'r(k,v)'))$c$);
  CALL check_contained('all paths', 'CREATE INDEX docs_index ON docs USING gin (doc bson_ops)', nfilters / 3);
  CALL check_contained('named paths', $c$CREATE INDEX docs_index ON docs USING gin (doc bson_ops (paths = 'a, b, r'))$c$, nfilters / 6);
  CALL check_contained('pairs', $c$CREATE INDEX docs_index ON docs USING gin (doc bson_ops (pairs = 'r(k,v)'))$c$, nfilters / 10);
END $$;

SELECT set_config('test.first', :'seed', true), set_config('test.rounds', :'rounds', true)
  \g /dev/null
DO $$ BEGIN FOR i IN current_setting('test.first')::int .. current_setting('test.first')::int + current_setting('test.rounds')::int - 1 LOOP CALL run(i, 300, 1500); END LOOP; END $$;

-- What was wrong, the shortest first.
SELECT is((SELECT format('%s of them, such as (seed %s, %s) %s: missing %s, extra %s', count(*) OVER (), seed, how, condition, missing[:5], extra[:5]) FROM wrong w WHERE w.form = x.form ORDER BY length(condition) LIMIT 1),
  NULL, x.form || ': every answer is that of the sequential scan') FROM (VALUES ('ordered'), ('all paths'), ('named paths'), ('pairs'), ('paths and pairs'), ('a second column')) x (form);
-- An index that is never asked gives no wrong answers.
SELECT cmp_ok((SELECT sum(n) * 100 / sum(of) FROM served s WHERE s.form = x.form), '>=', x.least::bigint, format('%s: at least %s in 100 were looked up', x.form, x.least)) FROM (VALUES
  ('ordered comparison', 60), ('ordered collection', 8), ('all paths', 50), ('named paths', 25), ('pairs', 4), ('paths and pairs', 15), ('a second column', 25), ('all paths contained', 60), ('named paths contained', 20), ('pairs contained', 1)) x (form, least);
SELECT cmp_ok((SELECT count(*) FROM filters WHERE cardinality(answer) > 0) * 100 / count(*), '>=', 30::bigint, 'filters find something') FROM filters;
SELECT cmp_ok((SELECT count(*) FROM filters WHERE cardinality(answer) BETWEEN 1 AND 60) * 100 / count(*), '>=', 15::bigint, 'and not everything') FROM filters;

-- A search that finds more pages than it has memory for notes the pages only, and all that stands on them is compared again.
CREATE TABLE wide (id int, doc bson);
ALTER TABLE wide ALTER doc SET STORAGE PLAIN;
INSERT INTO wide SELECT i, bson_build('n', i % 10, 'r', bson_array(bson_build('k', i % 3, 'v', i % 7), bson_build('k', i % 4, 'v', i % 5)), 's', 'a string that is longer than a key ' || i % 3, 'pad', repeat('x', 3900)) FROM generate_series(1, 4000) i;
CREATE INDEX wide_all ON wide USING gin (doc);
CREATE INDEX wide_pairs ON wide USING gin (doc bson_ops (pairs = 'r(k,v)'));
SET work_mem = '64kB';
SET enable_seqscan = off;
CREATE FUNCTION is_lossy(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE line text; lossy boolean := false;
BEGIN
  FOR line IN EXECUTE 'EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP lossy := lossy OR line ~ 'lossy='; END LOOP;
  RETURN lossy;
END $$;
SELECT ok(is_lossy(q) AND (SELECT array_agg(id ORDER BY id) FROM wide WHERE bson_match(doc || '{}', f::bson)) = found(q), 'pages only: ' || f) FROM (SELECT f, format('SELECT id FROM wide WHERE doc @@ %L', f) AS q FROM (VALUES
  ('{"n": {"$gte": 2, "$lt": 9}}'), ('{"r": {"$elemMatch": {"k": 1, "v": {"$gte": 1, "$lt": 6}}}}'), ('{"s": "a string that is longer than a key 1"}'), ('{"$or": [{"r.k": 2}, {"n": {"$in": [1, 2, 3]}}], "n": {"$ne": 3}}')) v (f)) x;
SELECT ok(is_lossy(q) AND found(q) = (SELECT array_agg(id ORDER BY id) FROM wide WHERE doc || '{}' @> '{"s": "a string that is longer than a key 1"}'), 'pages only: @>') FROM (VALUES ($$SELECT id FROM wide WHERE doc @> '{"s": "a string that is longer than a key 1"}'$$)) x (q);
SELECT * FROM finish();
ROLLBACK;
