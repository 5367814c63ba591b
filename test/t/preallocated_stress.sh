#!/bin/bash
# Many clients that claim, confirm and give back slots of a few documents, while these are written, get other keys, come and go.
# Who got what is also written into a plain table in the same transaction: nobody ever has what somebody else has. First each
# transaction is one call, and nothing deadlocks; then all of it, with savepoints; then the server is killed in the midst.
. "$DP_TOP/test/env/stress.sh"
. "$DP_TOP/test/env/crash.sh"
set -u
plan 11
stress_begin dp_preallocated_stress 20278
stress_setup <<'SQL'
CREATE TABLE bad (what text);
CREATE SEQUENCE owners START 100;
CREATE TABLE t (id int PRIMARY KEY, doc bson) PARTITION BY RANGE (id);
CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (7);
CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (7) TO (1000);
SELECT preallocated_enable('t', 's', preallocated_grid('{3,3}'), store => 'slots', available_field => 'free'),
       preallocated_enable('t', 'd', preallocated_pool(4), store => 'document', available_field => 'left');
INSERT INTO t SELECT i, bson_build('owner', i) FROM generate_series(1, 5) i;
-- who got what, by the document's owner, which stays when its key changes; nothing keeps this table unique
CREATE TABLE got (owner int, name text, slot text, holder text, until timestamptz);
-- The row is held, so that its owner is known.
CREATE FUNCTION hold(k int, field text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE o int;
BEGIN
  IF field = 'd' THEN SELECT doc -> 'owner' INTO o FROM t WHERE id = k FOR NO KEY UPDATE; ELSE SELECT doc -> 'owner' INTO o FROM t WHERE id = k FOR KEY SHARE; END IF;
  RETURN o;
END $$;
CREATE FUNCTION take(k int, field text, slots text[], h text, hold interval) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE o int;
BEGIN
  o := hold(k, field);
  IF o IS NULL OR NOT preallocated_claim('t', k, slots, h, hold, name => field) THEN RETURN false; END IF;
  -- the slots are ours now: what others had of them must be over
  INSERT INTO bad SELECT format('%s got %s of %s, which %s has until %s', h, g.slot, o, g.holder, g.until) FROM got g
    WHERE g.owner = o AND g.name = field AND g.slot = ANY (slots) AND (g.until IS NULL OR g.until > clock_timestamp());
  DELETE FROM got g WHERE g.owner = o AND g.name = field AND g.slot = ANY (slots) AND g.until <= clock_timestamp();
  INSERT INTO got SELECT o, field, s.slot, h, s.until FROM preallocated_slots('t', k, field) s WHERE s.slot = ANY (slots) AND s.holder IS NOT NULL;
  RETURN true;
END $$;
CREATE FUNCTION keep(k int, field text, slots text[], h text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE o int;
BEGIN
  o := hold(k, field);
  IF o IS NULL OR NOT preallocated_confirm('t', k, slots, h, name => field) THEN RETURN false; END IF;
  UPDATE got g SET until = NULL WHERE g.owner = o AND g.name = field AND g.slot = ANY (slots) AND g.holder = h;
  RETURN true;
END $$;
CREATE FUNCTION give(k int, field text, slots text[], h text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE o int;
BEGIN
  o := hold(k, field);
  IF o IS NULL OR NOT preallocated_release('t', k, slots, h, name => field) THEN RETURN false; END IF;
  DELETE FROM got g WHERE g.owner = o AND g.name = field AND g.slot = ANY (slots) AND g.holder = h;
  RETURN true;
END $$;
CREATE FUNCTION renew(k int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE o int;
BEGIN
  SELECT doc -> 'owner' INTO o FROM t WHERE id = k FOR UPDATE;
  IF FOUND THEN DELETE FROM t WHERE id = k; DELETE FROM got WHERE owner = o; INSERT INTO t VALUES (k, bson_build('owner', o)); END IF;
END $$;
-- What is held for good in one of the two and not in the other, in one snapshot.
CREATE FUNCTION differences() RETURNS SETOF text LANGUAGE sql AS $$
  SELECT format('%s %s %s: %s has it, %s wrote it down', coalesce(c.owner, g.owner), coalesce(c.name, g.name), coalesce(c.slot, g.slot), c.holder, g.holder)
  FROM (SELECT (t.doc -> 'owner')::int AS owner, f.name, s.slot, s.holder::text FROM t CROSS JOIN (VALUES ('s'), ('d')) f (name), LATERAL preallocated_slots('t', t.id, f.name) s WHERE s.holder IS NOT NULL AND s.until IS NULL) c
    FULL JOIN (SELECT * FROM got WHERE until IS NULL) g ON g.owner = c.owner AND g.name = c.name AND g.slot = c.slot AND g.holder = c.holder
  WHERE c.owner IS NULL OR g.owner IS NULL
$$;
SQL

work() {
  stress_awk "$1" "$2" '
    function slots(f,   a, b) {
      a = f == "s" ? substr("AB", r(2), 1) r(3) : r(4); b = f == "s" ? substr("AB", r(2), 1) r(3) : r(4)
      return r(2) == 1 || a == b ? "$${" a "}$$" : "$${" a "," b "}$$"
    }
    function one(   w, k, f, h) {
      w = r(24); k = r(10); f = r(3) == 1 ? "d" : "s"; h = "$$" substr("xyz", r(3), 1) "$$"
      if (w <= 9) return "SELECT take(" k ", $$" f "$$, " slots(f) ", " h ", " (r(2) == 1 ? "NULL" : r(2) == 1 ? "$$5 ms$$" : "$$1 hour$$") ");"
      if (w <= 12) return "SELECT keep(" k ", $$" f "$$, " slots(f) ", " h ");"
      if (w <= 16) return "SELECT give(" k ", $$" f "$$, " slots(f) ", " h ");"
      if (w == 17) return "UPDATE t SET doc = bson_set(doc, $$a$$, " r(99) ") WHERE id = " k ";"
      if (w == 18) return "UPDATE t_whole SET doc = bson_set(doc, $$b$$, " r(99) ") WHERE id = " k ";"
      # two rows that want the keys of each other deadlock without any pattern
      if (w == 19 && tag == "alone" && client > 1) return "SELECT 1;"
      if (w == 19) return "UPDATE t SET id = (id + " r(5) ") % 10 + 1 WHERE id = " k ";"
      if (w == 20) return "INSERT INTO t VALUES (" k ", bson_build($$owner$$, nextval($$owners$$)::int)) ON CONFLICT (id) DO UPDATE SET doc = bson_set(EXCLUDED.doc, $$owner$$, t.doc -> $$owner$$);"
      if (w == 21) return "INSERT INTO bad SELECT concat_ws($$ $$, $$" tag "$$, x) FROM pattern_check($$t$$) x;"
      if (w == 22) return "SELECT preallocated_extend($$t$$, " k ", preallocated_grid($${3,3}$$), $$s$$);"
      if (w == 23) return "INSERT INTO bad SELECT $$" tag ": $$ || d FROM differences() d;"
      return "SELECT preallocated_find($$t$$, " k ", 2, $$" f "$$);"
    }
    BEGIN {
      for (i = 0;; i++) {
        s = one()
        printf "%s%s", s ~ /differences/ ? "BEGIN ISOLATION LEVEL REPEATABLE READ;" : level(), s
        if (tag != "alone") {
          if (r(6) == 1) printf " SAVEPOINT a; %s ROLLBACK TO a;", one()
          if (r(3) == 1) printf " %s", one()
          if (r(40) == 1) printf " COMMIT; BEGIN; SELECT renew(" r(10) ");"
        }
        print r(12) == 1 ? " ROLLBACK;" : " COMMIT;"
      }
    }'
}
stress_run alone $(((seconds + 1) / 2))
is "$(ask 'SELECT * FROM pattern_check()')" '' 'the patterns are true after calls alone'
is "$(ask 'SELECT * FROM differences() LIMIT 5')" '' 'and each slot is whose it was said to be'
is "$(stress_count 40P01 alone)" 0 'no transaction of one call waited for one that waited for it'
stress_run mixed $(((seconds + 1) / 2))
is "$(ask 'SELECT * FROM pattern_check()')" '' 'the patterns are true after longer transactions'
is "$(ask 'SELECT * FROM differences() LIMIT 5')" '' 'and each slot is whose it was said to be'
is "$(stress_others 'ERROR:  P0002.*\|ERROR:  23505: duplicate key value violates unique constraint "t[12]_pkey"')" '' 'errors are serialization failures, deadlocks of longer transactions, keys that are taken and documents that are gone'
ask "SELECT format('# %s slots taken for good, %s for some time, of %s documents', count(*) FILTER (WHERE until IS NULL), count(*) FILTER (WHERE until IS NOT NULL), (SELECT count(*) FROM t)) FROM got"

# the server, or one of its processes, is killed while clients claim
ask "CREATE FUNCTION work() RETURNS void LANGUAGE sql AS \$\$
  SELECT take(1 + (random() * 9)::int, f, s, 'c' || pg_backend_pid(), CASE WHEN random() < 0.5 THEN interval '2 ms' END), give(1 + (random() * 9)::int, f, s, 'c' || pg_backend_pid())
  FROM (SELECT CASE WHEN r < 0.3 THEN 'd' ELSE 's' END AS f, ARRAY[CASE WHEN r < 0.3 THEN (1 + (random() * 3)::int)::text ELSE chr(65 + (random())::int) || 1 + (random() * 2)::int END] AS s FROM (SELECT random() AS r) q) p \$\$" >/dev/null
for how in backend all; do
  crash_during $how 'SELECT work();' 0.5
  is "$(ask 'SELECT * FROM pattern_check(); SELECT * FROM differences() LIMIT 5')" '' "all is true after a kill ($how)"
done
is "$(ask 'SELECT * FROM bad LIMIT 5')" '' 'nobody ever had what somebody else had, in no snapshot'
ok 'much was claimed' [ "$(ask "SELECT n_tup_ins > 300 FROM pg_stat_user_tables WHERE relname = 't_s_claims'; ")" = t -o "$(ask 'SELECT count(*) > 10 FROM got')" = t ]
is "$(ask "SELECT pattern_disable('t', 's', true) + pattern_disable('t', 'd', true); SELECT count(*) FROM pg_trigger WHERE tgrelid = 't'::regclass")" $'0\n0' 'and it can be ended'
stress_end
