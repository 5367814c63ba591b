-- How far counts are off: 200 counters, each with draws of its own, at several sizes. Bias and error are relative to the true
-- count; the error is the root of the mean square. "held": how often the bounds of approximation_read hold the true count.
-- The seed is 1; the scale of a full run is 100.

\echo 'approximation, 200 counters            events      bias     error     bound      held'
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS bench_error CASCADE;
CREATE SCHEMA bench_error;
SET search_path = bench_error, public;
CREATE TABLE c (id int PRIMARY KEY, doc bson NOT NULL) WITH (fillfactor = 50);
CREATE TABLE result (what text, n int, bias float8, error float8, bound float8, held float8);
CREATE PROCEDURE measure(what text, options text, sizes int[], bound text) LANGUAGE plpgsql AS $$
DECLARE
  before int := 0;
  size int;
  name text;
BEGIN
  TRUNCATE c; INSERT INTO c SELECT i, '{n: 0}' FROM generate_series(1, 200) i;
  EXECUTE format('SELECT approximation_enable(''c'', ''n'', %s)', options) INTO name;
  COMMIT;
  FOREACH size IN ARRAY sizes LOOP
    -- a commit now and then, so that old versions of rows can go
    FOR part IN 1..greatest(1, (size - before) / 500) LOOP
      PERFORM count(approximation_add('c', id, 1)) FROM generate_series(1, (size - before) / greatest(1, (size - before) / 500)), c;
      COMMIT;
    END LOOP;
    before := size;
    EXECUTE format('INSERT INTO result SELECT $1, $2, avg(v) / $2 - 1, sqrt(avg((v - $2) ^ 2)) / $2, %s, avg((low <= $2 AND $2 <= high)::int)
                    FROM (SELECT (doc ->> ''n'')::float8 AS v, low, high FROM c, approximation_read(''c'', id)) q', replace(bound, 'N', '$2::float8')) USING what, size;
    COMMIT;
  END LOOP;
  PERFORM pattern_disable('c');
  COMMIT;
END $$;
SET docpatterns.approximation_seed = 1;
SELECT greatest(1000, 100000 * :scale / 100) AS top \gset
CALL measure('step => 10', 'step => 10', ARRAY[100, 1000, :top], 'sqrt(9 / N)');
CALL measure('step => 100', 'step => 100', ARRAY[100, 1000, :top], 'sqrt(99 / N)');
CALL measure('step => 1000', 'step => 1000', ARRAY[1000, :top], 'sqrt(999 / N)');
CALL measure('error => 0.1', 'error => 0.1', ARRAY[100, 1000, :top], '0.1');
CALL measure('error => 0.05', 'error => 0.05', ARRAY[100, 1000, :top], '0.05');
CALL measure('error => 0.02', 'error => 0.02', ARRAY[1000, :top], '0.02');
SELECT format('%-36s %8s %7s %% %7s %% %7s %% %7s %%', what, n, round((100 * bias)::numeric, 2), round((100 * error)::numeric, 2), round((100 * bound)::numeric, 2), round((100 * held)::numeric, 1))
FROM result ORDER BY what DESC, n;
DROP SCHEMA bench_error CASCADE;
