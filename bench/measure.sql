-- What the files of the benchmark share: functions that measure and print. Included by one psql session before each of them.
SET client_min_messages = warning;
SET search_path = bench, public;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET synchronous_commit = off;
SET work_mem = '256MB';
SELECT set_config('bench.rounds', :'rounds', false), set_config('bench.only', :'only', false), set_config('bench.scale', :'scale', false)
  \g /dev/null

-- CPU time of this backend so far, in milliseconds.
CREATE OR REPLACE FUNCTION cpu() RETURNS float8 LANGUAGE sql VOLATILE AS $$
  SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::float8 / 1e6 $$;

-- CPU time of one run of a command, averaged over so many; the cleanup after each is work such as DROP INDEX and not counted.
CREATE OR REPLACE FUNCTION cost(command text, runs int, cleanup text DEFAULT NULL) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE
  used float8 := 0;
  started float8;
BEGIN
  FOR i IN 1 .. runs LOOP
    started := cpu();
    EXECUTE command;
    used := used + cpu() - started;
    IF cleanup IS NOT NULL THEN EXECUTE cleanup; END IF;
  END LOOP;
  RETURN used / runs;
END $$;

-- A comparison as run.sh collects it for the report: name, ratio, bar, whether a low or a high ratio is wanted, the lowest and
-- highest ratio of a round, and the figures of others and of ours, with tabs between them. A bar of infinity is none.
CREATE OR REPLACE FUNCTION result(name text, ratio float8, bar float8, spread text DEFAULT '', wanted text DEFAULT 'low', base float8 DEFAULT NULL, ours float8 DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
  SELECT E'\n' || concat_ws(E'\t', '=', name, coalesce(ratio::numeric::text, ''), coalesce(nullif(bar, 'infinity')::numeric::text, ''), wanted, split_part(spread, '-', 1), split_part(spread, '-', 2), coalesce(base::numeric::text, ''), coalesce(ours::numeric::text, '')) $$;

-- A line of the table, and beneath it what run.sh collects.
CREATE OR REPLACE FUNCTION line(name text, base float8, ours float8, bar float8, spread text DEFAULT '') RETURNS text LANGUAGE sql AS $$
  SELECT format('%s %s %s %s %s  %s  %s', rpad(name, 40), lpad(round(base::numeric, 1)::text, 9), lpad(round(ours::numeric, 1)::text, 9),
                lpad(coalesce(round((ours / nullif(base, 0))::numeric, 3)::text, '-'), 7), lpad(CASE WHEN bar = 'infinity' THEN '-' ELSE bar::text END, 6), CASE WHEN ours / nullif(base, 0) > bar THEN 'ABOVE' ELSE '     ' END, spread)
         || result(name, ours / nullif(base, 0), bar, spread, base => base, ours => ours) $$;

-- Measures two commands turn by turn and returns a line of the table; nothing when the name is not asked for;
-- at its end the lowest and the highest ratio that one turn of both gave.
CREATE OR REPLACE FUNCTION compare(name text, bar float8, base text, ours text, cleanup text DEFAULT NULL)
RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  base_costs float8[];
  our_costs float8[];
  base_runs int;
  our_runs int;
  spread text;
BEGIN
  IF name NOT LIKE replace(current_setting('bench.only'), '*', '%') THEN RETURN; END IF;
  -- warm; then as many runs a turn as make the clock's tick of some milliseconds small beside what is measured
  base_runs := least(1000, ceil(250 / greatest(cost(base, 3, cleanup), 0.25)));
  our_runs := least(1000, ceil(250 / greatest(cost(ours, 3, cleanup), 0.25)));
  FOR i IN 1 .. current_setting('bench.rounds')::int LOOP
    base_costs := base_costs || cost(base, base_runs, cleanup);
    our_costs := our_costs || cost(ours, our_runs, cleanup);
  END LOOP;
  SELECT format('%s-%s', round(min(o / nullif(b, 0))::numeric, 3), round(max(o / nullif(b, 0))::numeric, 3)) INTO spread FROM unnest(base_costs, our_costs) t(b, o);
  base_costs := ARRAY(SELECT c FROM unnest(base_costs) c ORDER BY c);
  our_costs := ARRAY(SELECT c FROM unnest(our_costs) c ORDER BY c);
  RETURN NEXT line(name, base_costs[(cardinality(base_costs) + 1) / 2], our_costs[(cardinality(our_costs) + 1) / 2], bar, spread);
END $$;
