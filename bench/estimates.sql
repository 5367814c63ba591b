-- How many rows the planner expects of a filter beside how many there are: 200 filters over the catalogue of Debian packages,
-- and jsonb with the jsonpath that means the same. The filters are made of values that documents of the catalogue have, so
-- common values are asked for more often than rare ones; they are the same for the same catalogue.
SELECT 'estimates: all' LIKE replace(:'only', '*', '%') AS wanted \gset
\if :wanted
CREATE OR REPLACE FUNCTION made(kind text, filter text, path text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$ SELECT ARRAY[kind, filter, path] $$;

-- The n-th filter: its kind, the filter and the jsonpath. d and e are two documents.
CREATE OR REPLACE FUNCTION make_filter(n int, d jsonb, e jsonb) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  r int := n / 20;
  f text := (ARRAY['section', 'priority', 'architecture', 'multi_arch', 'version'])[1 + r % 5];
  has text := (ARRAY['homepage', 'tags', 'depends', 'recommends', 'breaks', 'essential', 'source', 'provides', 'multi_arch', 'task'])[1 + r % 10];
  len int := coalesce(jsonb_array_length(d -> 'depends'), 0);
  item jsonb := coalesce(d #> ARRAY['depends', (r % greatest(len, 1))::text], '{"name": "libc6", "op": ">="}');
  item2 jsonb := coalesce(d #> ARRAY['depends', ((r + 1) % greatest(len, 1))::text], '{"name": "libc6"}');
  low int := least((d ->> 'installed_size')::int, (e ->> 'installed_size')::int);
  high int := greatest((d ->> 'installed_size')::int, (e ->> 'installed_size')::int);
  a text := least(d ->> '_id' COLLATE "C", e ->> '_id');
  b text := greatest(d ->> '_id' COLLATE "C", e ->> '_id');
BEGIN
  IF d -> f IS NULL THEN f := 'section'; END IF;
  low := coalesce(low, 100); high := coalesce(high, 1000) + 1;
  CASE n % 20
    WHEN 0, 1 THEN RETURN made('field = value', format('{"%s": %s}', f, d -> f), format('$.%s == %s', f, d -> f));
    WHEN 2 THEN RETURN made('field = value', format('{"maintainer.name": %s}', d #> '{maintainer,name}'), format('$.maintainer.name == %s', d #> '{maintainer,name}'));
    WHEN 3, 4 THEN RETURN made('array = value', format('{"depends.name": %s}', item -> 'name'), format('$.depends.name == %s', item -> 'name'));
    WHEN 5 THEN RETURN made('array = value', format('{"tags.role": %s}', coalesce(d #> '{tags,role,0}', '"program"')), format('$.tags.role == %s', coalesce(d #> '{tags,role,0}', '"program"')));
    WHEN 6 THEN RETURN made('range', format('{"installed_size": {"$gt": %s}}', high), format('$.installed_size > %s', high));
    WHEN 7 THEN RETURN made('range', format('{"installed_size": {"$gte": %s, "$lt": %s}}', low, high), format('$.installed_size >= %s && $.installed_size < %s', low, high));
    WHEN 8 THEN RETURN made('range', format('{"_id": {"$gte": %s, "$lt": %s}}', to_json(a), to_json(b)), format('$._id >= %s && $._id < %s', to_json(a), to_json(b)));
    WHEN 9 THEN RETURN made('$in', format('{"section": {"$in": [%s, %s]}}', d -> 'section', e -> 'section'), format('$.section == %s || $.section == %s', d -> 'section', e -> 'section'));
    WHEN 10 THEN RETURN made('$in', format('{"maintainer.email": {"$in": [%s, %s]}}', d #> '{maintainer,email}', e #> '{maintainer,email}'), format('$.maintainer.email == %s || $.maintainer.email == %s', d #> '{maintainer,email}', e #> '{maintainer,email}'));
    WHEN 11 THEN RETURN made('$exists', format('{"%s": {"$exists": true}}', has), format('exists($.%s)', has));
    WHEN 12 THEN RETURN made('null', format('{"%s": null}', has), format('!exists($.%s)', has));
    WHEN 13 THEN RETURN made('$regex', format('{"_id": {"$regex": "^%s"}}', left(d ->> '_id', 3 + r % 3)), format('$._id starts with "%s"', left(d ->> '_id', 3 + r % 3)));
    WHEN 14 THEN RETURN made('$regex', format('{"description": {"$regex": "%s"}}', (ARRAY['library', 'perl', 'python', 'data', 'GNOME', 'font', 'tool', 'plugin', 'test', 'server'])[1 + r % 10]),
                             format('$.description like_regex "%s"', (ARRAY['library', 'perl', 'python', 'data', 'GNOME', 'font', 'tool', 'plugin', 'test', 'server'])[1 + r % 10]));
    WHEN 15 THEN RETURN made('$elemMatch', format('{"depends": {"$elemMatch": {"name": %s, "op": ">="}}}', item -> 'name'), format('exists($.depends[*] ? (@.name == %s && @.op == ">="))', item -> 'name'));
    WHEN 16 THEN RETURN made('two fields', format('{"section": %s, "installed_size": {"$gt": %s}}', d -> 'section', low), format('$.section == %s && $.installed_size > %s', d -> 'section', low));
    WHEN 17 THEN RETURN made('two fields', format('{"section": %s, "maintainer.name": %s}', d -> 'section', d #> '{maintainer,name}'), format('$.section == %s && $.maintainer.name == %s', d -> 'section', d #> '{maintainer,name}'));
    WHEN 18 THEN RETURN made('$all', format('{"depends.name": {"$all": [%s, %s]}}', item -> 'name', item2 -> 'name'), format('$.depends.name == %s && $.depends.name == %s', item -> 'name', item2 -> 'name'));
    ELSE RETURN made('$or, $not', format('{"$or": [{"section": %s}, {"depends.name": %s}], "priority": {"$ne": "required"}}', d -> 'section', item -> 'name'),
                     format('($.section == %s || $.depends.name == %s) && !($.priority == "required")', d -> 'section', item -> 'name'));
  END CASE;
END $$;

-- Rows that the planner expects.
CREATE OR REPLACE FUNCTION expected(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
  plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
  RETURN (plan -> 0 -> 'Plan' ->> 'Plan Rows')::float8;
END $$;

CREATE OR REPLACE FUNCTION counted(query text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
  n float8;
BEGIN
  EXECUTE 'SELECT count(*) FROM (' || query || ') q' INTO n;
  RETURN n;
END $$;

-- How far off, as a factor; less than one row counts as one.
CREATE OR REPLACE FUNCTION factor(expected float8, actual float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
  SELECT greatest(greatest(expected, 1) / greatest(actual, 1), greatest(actual, 1) / greatest(expected, 1)) $$;

DROP TABLE IF EXISTS estimates;
CREATE TABLE estimates AS
WITH chosen AS MATERIALIZED (
  SELECT row_number() OVER (ORDER BY md5(doc ->> '_id')) AS n, doc FROM jsonb_packages ORDER BY md5(doc ->> '_id') LIMIT 400)
SELECT d.n::int AS n, m[1] AS kind, m[2] AS filter, m[3] AS path,
  expected(format('SELECT FROM bson_packages WHERE doc @@ %L', m[2])) AS expected,
  counted(format('SELECT FROM bson_packages WHERE doc @@ %L', m[2])) AS actual,
  expected(format('SELECT FROM jsonb_packages WHERE doc @@ %L', m[3])) AS jsonb_expected,
  counted(format('SELECT FROM jsonb_packages WHERE doc @@ %L', m[3])) AS jsonb_actual
FROM chosen d JOIN chosen e ON e.n = d.n + 200, make_filter(d.n::int, d.doc, e.doc) m;

\echo 'estimated beside actual rows, as a factor           jsonb      bson           bar'
SELECT format('%s %s %s %s %s', rpad(name, 46), lpad(round(j::numeric, 2)::text, 10), lpad(round(o::numeric, 2)::text, 9), lpad(coalesce(bar::text, '-'), 13), CASE WHEN o > bar THEN 'ABOVE' ELSE '' END)
  || result(name || ', as a factor', o, bar)
FROM (
  SELECT 0 AS place, 'estimates: median of ' || count(*) AS name, percentile_cont(0.5) WITHIN GROUP (ORDER BY factor(jsonb_expected, jsonb_actual)) AS j,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY factor(expected, actual)) AS o, 1.5 AS bar FROM estimates
  UNION ALL
  SELECT 1, 'estimates: 95th percentile', percentile_cont(0.95) WITHIN GROUP (ORDER BY factor(jsonb_expected, jsonb_actual)),
    percentile_cont(0.95) WITHIN GROUP (ORDER BY factor(expected, actual)), 10 FROM estimates
  UNION ALL
  SELECT 2, 'estimates: worst, ' || kind, max(factor(jsonb_expected, jsonb_actual)), max(factor(expected, actual)), NULL FROM estimates GROUP BY kind) t
ORDER BY place, name;
\endif
