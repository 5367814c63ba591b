#!/bin/bash
# Errors at any moment: clients write through every pattern, and each statement is cut short after some milliseconds, wherever it is then;
# some in savepoints and in blocks that catch it, after which the transaction goes on. Then triggers of users on every table, those that
# patterns keep too, raise an error once in a while. What failed has left nothing behind: everything that is declared is true,
# and sessions go on with what they have in memory.
. "$DP_TOP/test/env/storm.sh"
set -u
plan 14
STRESS_SECONDS=${STRESS_SECONDS:-2}
before='"SET statement_timeout = " (r(6) == 1 ? 0 : r(30)) ";"'

# An error once in a while, before or after a row is written, in every table and in those that patterns keep beside it.
booms() {
  psql -XqAt >/dev/null 2>&1 <<'SQL'
CREATE FUNCTION storm.boom() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF random() < 0.02 THEN RAISE EXCEPTION 'boom' USING ERRCODE = 'XB00M'; END IF;
  RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
SELECT format('CREATE TRIGGER %I %s INSERT OR UPDATE OR DELETE ON %s FOR EACH ROW EXECUTE FUNCTION storm.boom()', name, moment, c.oid::regclass)
  FROM pg_class c, (VALUES ('a_boom', 'BEFORE'), ('zzz_boom', 'AFTER')) v (name, moment)
  WHERE relkind IN ('r', 'p') AND relnamespace::regnamespace::text !~ '^pg_|^storm$|information_schema|docpatterns' AND NOT (relispartition AND EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = name)) ORDER BY relispartition, c.oid \gexec
SQL
}

for what in derived shapes; do
  stress_begin dp_cancel_stress 20311
  "storm_$what"
  stress_run "cut_$what" "$seconds" stress_met 10 57014 "cut_$what"
  storm_true "cut_$what"
  ok 'statements were cut short' stress_met 10 57014 "cut_$what"
  booms
  stress_run "raised_$what" "$((seconds / 2))"
  storm_true "raised_$what"
  stress_end
done
