-- Regular expressions: what PCRE2 has beyond PostgreSQL's, limits, and a comparison with PostgreSQL's on random patterns.
\set QUIET 1
\pset fieldsep '\n'
SET client_min_messages = warning;
BEGIN;
SELECT plan(80);

-- a string alone is searched by the interpreter, 1,000 of it by machine code
CREATE FUNCTION found(s text, re text, o text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
  EXECUTE format('SELECT count(*) FROM generate_series(1, 1000) i WHERE bson_build(''a'', %L || repeat('''', i)) @@ %L', s, bson_build('a', bson_build('$regex', re, '$options', o))) INTO n;
  RETURN n;
END $$;
SELECT is(bson_build('a', s) @@ bson_build('a', bson_build('$regex', re, '$options', o)), want, format('%s %s %s %s', to_json(s), CASE WHEN want THEN '~' ELSE '!~' END, to_json(re), o)),
  is(found(s, re, o), CASE WHEN want THEN 1000::bigint ELSE 0 END, format('the same 1,000 times: %s', to_json(re))) FROM (VALUES
('^(?<year>\d{4})-(?:\d\d)-\k<year>$', '2024-05-2024', '', true), ('(?P<q>[''"]).*?(?P=q)', 'a "b" c', '', true), ('(?|(a)|(b))\1', 'bb', '', true),
('^(?>a+)a', 'aaa', '', false), ('^a++$', 'aaa', '', true), ('^a*+a', 'aaa', '', false), ('"[^"]*+"', '"open', '', false),
('^(\()?a(?(1)\)|b)$', '(a)', '', true), ('^(\()?a(?(1)\)|b)$', '(ab', '', false), ('^(\((?:[^()]|(?1))*\))$', '(a(b)(c(d)))', '', true), ('^(\((?:[^()]|(?1))*\))$', '(a(b)', '', false),
('a(?i)b(?-i)c', 'aBc', '', true), ('a(?i)b(?-i)c', 'aBC', '', false), ('(?i:a)b', 'AB', '', false), ('a(?s:.)b.', E'a\nb\n', '', false), ('(?x) a b # c', 'ab', '', true),
('^\p{Lu}\p{Ll}+$', 'Élan', '', true), ('^\P{L}+$', '12é', '', false), ('\p{Greek}', 'abγ', '', true), ('^\X$', E'e\u0301', '', true), ('foo\Kbar', 'foobar', '', true),
('straße', 'STRAẞE', 'i', true), ('^ß$', 'SS', 'i', false), ('a{300}', repeat('a', 300), '', true), ('(?<=ab|c)d', 'cd', '', true), ('a(*FAIL)|b', 'ab', '', true), ('a(*COMMIT)b|.', 'ac', '', false),
('(*UCP)^\w+$', 'né', '', true), ('(*ANYCRLF)^b', E'a\rb', 'm', true), ('x(?#comment)y', 'xy', '', true), ('a\Rb', E'a\u2028b', '', true)) AS t (re, s, o, want);

-- errors have PCRE2's message and the offset in characters
SELECT throws_ok($$SELECT '{a: "x"}' @@ '{a: {$regex: "éé("}}'::bson$$, '2201B', 'invalid regular expression: missing closing parenthesis at offset 3');
SELECT throws_ok($$SELECT '{a: "x"}' @@ '{a: {$regex: "\\C"}}'::bson$$, '2201B', NULL, 'no parts of characters');
-- a long pattern has no room for interrupts
SELECT is(bson_build('a', repeat('x', 30000)) @@ bson_build('a', bson_build('$regex', '[x]' || repeat('x', 16000))), true, 'a pattern of 16,000 letters');

-- strings that are searched in slices
SELECT is(bson_eval(bson_build('a', repeat('é', 70000) || 'bc'), '{$regexFind: {input: "$a", regex: "(?<=éb)[c]$"}}'), '{"match": "c", "idx": 70001, "captures": []}'::bson_value, 'a match in the last slice');
SELECT is(bson_eval(bson_build('a', repeat('xyz', 50000)), '{$size: {$regexFindAll: {input: "$a", regex: "[yz]x"}}}'), 49999::bson_value, '49,999 matches');
SELECT is(bson_eval(bson_build('a', repeat(E'x\n', 3000)), '{$size: {$regexFindAll: {input: "$a", regex: "^x", options: "m"}}}'), 3000::bson_value, 'matches at 3,000 lines');
SELECT is(bson_eval(bson_build('a', repeat('x', 3000) || 'y'), '{$size: {$regexFindAll: {input: "$a", regex: "\\Gx|\\Gz|y(?!.)"}}}'), 3001::bson_value, 'matches beside each other');
SELECT is(bson_build('a', repeat('(a(b)', 300) || repeat('c)', 300)) @@ '{a: {$regex: "^(\\((?:[^()]|(?1))*\\))$"}}', true, 'parentheses 300 deep');
SELECT is(bson_build('a', repeat('ab', 20000)) @@ '{a: {$regex: "^(a|b)*[cd]"}}', false, 'more groups than the stack of machine code holds');

-- limits, interrupts and bad bytes
SELECT throws_ok($$SELECT bson_build('a', repeat('a', 2000) || '!') @@ '{a: {$regex: "(*LIMIT_MATCH=5000)^(a+)+$"}}'$$, '54000', 'regular expression failed: match limit exceeded');
SELECT throws_ok($$SELECT bson_build('a', repeat('ab', 1000000)) @@ '{a: {$regex: "^(a|b)*[cd]"}}'$$, '54000', 'regular expression failed: heap limit exceeded');
CREATE FUNCTION cancelled(d bson, f bson) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM d @@ f;
  RETURN false;
EXCEPTION WHEN query_canceled THEN
  RETURN true;
END $$;
SET LOCAL statement_timeout = '50ms';
SELECT ok(cancelled(bson_build('a', repeat('a', 1000000)), '{a: {$regex: "(a*)\\1[xyz]"}}'), 'a back reference is cancelled');
SET LOCAL statement_timeout = '50ms';
SELECT ok(cancelled(bson_build('a', repeat('a', 100000)), '{a: {$regex: ".*?[^yz]*[yz]"}}'), 'and so are scans inside of scans');
SET LOCAL statement_timeout = 0;
CREATE FUNCTION unchecked(bytea) RETURNS bson LANGUAGE internal IMMUTABLE STRICT AS 'byteasend';
SELECT throws_ok($$SELECT unchecked('\x0f0000000261000300000061ff0000') @@ '{a: /[a-z]b/}'$$, 'XX001', NULL, 'a string that is not UTF-8');
SELECT is('{a: "a\u0000b"}'::bson @@ '{a: /a.b$/}', true, 'a null character is a character');

-- machine code is freed with its query
CREATE FUNCTION code_size() RETURNS numeric LANGUAGE sql AS $$
  SELECT coalesce(sum(('x' || lpad(m[2], 16, '0'))::bit(64)::bigint - ('x' || lpad(m[1], 16, '0'))::bit(64)::bigint), 0) FROM regexp_matches(pg_read_file('/proc/self/maps'), '([0-9a-f]+)-([0-9a-f]+) rwxp', 'g') m $$;
SELECT code_size() AS before \gset
SELECT found('x' || i, 'y[zx]' || repeat('(a|bc)', 20) || i, '') FROM generate_series(1, 300) i \g /dev/null
SELECT cmp_ok(code_size(), '<=', :before + 500000.0, 'machine code is freed');

-- random patterns, as PostgreSQL's engine finds them
CREATE FUNCTION below(n int) RETURNS int LANGUAGE sql VOLATILE AS $$ SELECT floor(random() * n)::int $$;
CREATE FUNCTION any_atom(depth int) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF depth > 0 AND random() < 0.4 THEN
    RETURN (ARRAY['(', '(?:'])[1 + below(2)] || (SELECT string_agg(any_branch(depth - 1), '|') FROM generate_series(1, 1 + below(3))) || ')';
  END IF;
  RETURN (ARRAY['a', 'b', 'c', 'é', '.', '[ab]', '[^a]', '[^é]', 'ab', '\w'])[1 + below(10)];
END $$;
CREATE FUNCTION any_branch(depth int) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  RETURN CASE below(12) WHEN 0 THEN '^' WHEN 1 THEN '(?=' || any_atom(0) || ')' WHEN 2 THEN '(?!' || any_atom(0) || ')' ELSE '' END ||
    (SELECT string_agg('(?:' || any_atom(depth) || ')' || (ARRAY['', '', '*', '+', '?', '{1,2}', '{2}', '+?', '*?'])[1 + below(9)], '') FROM generate_series(1, 1 + below(3))) || CASE below(8) WHEN 0 THEN '$' ELSE '' END;
END $$;
\if :{?seed}
\else
  \set seed 0.17
\endif
SELECT setseed(:seed) \g /dev/null
CREATE TABLE strings AS SELECT s, bson_build('a', s) AS d FROM (SELECT (SELECT coalesce(string_agg((ARRAY['a', 'b', 'c', 'é'])[1 + below(4)], ''), '') FROM generate_series(1, below(12) + 0 * i)) AS s FROM generate_series(1, 200) i) q
  UNION ALL SELECT repeat('é', 600) || s, bson_build('a', repeat('é', 600) || s) FROM unnest('{a,bc,cab}'::text[]) s;
CREATE FUNCTION differences(depth int, longest int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE p text; n bigint; bad text;
BEGIN
  FOR i IN 1 .. 150 LOOP
    p := any_branch(depth) || CASE WHEN random() < 0.3 THEN '|' || any_branch(depth) ELSE '' END;
    EXECUTE format('SELECT count(*) FROM strings WHERE length(s) <= %s AND (d @@ %L) IS DISTINCT FROM (s ~ %L)', longest, bson_build('a', bson_build('$regex', '(*UCP)' || p)), p) INTO n;
    IF n > 0 THEN
      bad := concat_ws(E'\n', bad, p || ' differs for ' || n);
    END IF;
  END LOOP;
  RETURN bad;
END $$;
SELECT is(differences(1, 12), NULL, 'nested patterns, seed ' || :seed);
SELECT is(differences(0, 1000), NULL, 'flat patterns over long strings, too');
SELECT finish();
ROLLBACK;
