#!/bin/bash
# Writers of all kinds, and readers that follow the feed while they write: each committed change comes to each reader exactly once,
# in an order that makes the table of it. Every write has a token, which is written down in the same transaction. Then the server
# is killed in the midst, and the database is dumped.
. "$DP_TOP/test/env/stress.sh"
. "$DP_TOP/test/env/crash.sh"
set -u
plan 14
stress_begin dp_change_feed_stress 20279
stress_setup <<'SQL'
CREATE TABLE bad (what text);
CREATE SEQUENCE tokens;
CREATE TABLE t (id int PRIMARY KEY, doc bson);
SELECT change_feed_enable('t', notify => false);
CREATE TABLE written (token bigint);
CREATE TABLE position (reader int PRIMARY KEY, at bigint);
CREATE TABLE news (reader int, at bigint, operation text, key int, token bigint, doc bson, PRIMARY KEY (reader, at));
INSERT INTO position SELECT i, NULL FROM generate_series(1, 3) i;
CREATE FUNCTION put(k int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE n bigint := nextval('tokens');
BEGIN
  INSERT INTO t VALUES (k, bson_build('n', n)) ON CONFLICT (id) DO UPDATE SET doc = bson_set(t.doc, 'n', n);
  INSERT INTO written VALUES (n);
END $$;
-- A row that is written by a trigger, before the feed has seen what was written first.
CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE n bigint;
BEGIN
  IF NEW.id % 7 = 0 AND NOT NEW.doc ? 'again' THEN
    n := nextval('tokens');
    UPDATE t SET doc = bson_set(bson_set(doc, 'again', true), 'n', n) WHERE id = NEW.id;
    INSERT INTO written VALUES (n);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER again AFTER INSERT OR UPDATE ON t FOR EACH ROW EXECUTE FUNCTION again();
CREATE FUNCTION follow(who int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  since bigint := (SELECT at FROM position WHERE reader = who FOR UPDATE);
  last bigint;
BEGIN
  WITH n AS (INSERT INTO news SELECT who, r.position, r.operation, r.key::int, (r.document -> 'n')::bigint, r.document FROM change_feed_read('t', since, 50) r RETURNING at)
  SELECT max(at) INTO last FROM n;
  IF last IS NOT NULL THEN UPDATE position SET at = last WHERE reader = who; END IF;
END $$;
-- What a reader has made of the news: the last of each key.
CREATE FUNCTION differences(who int) RETURNS SETOF text LANGUAGE sql AS $$
  SELECT format('reader %s: %s has %s, not %s', who, coalesce(c.key, t.id), c.doc, t.doc)
  FROM (SELECT * FROM (SELECT DISTINCT ON (key) key, operation, doc FROM news WHERE reader = who ORDER BY key, at DESC) q WHERE operation <> 'delete') c
    FULL JOIN t ON t.id = c.key WHERE c.doc::bytea IS DISTINCT FROM t.doc::bytea
  UNION ALL
  SELECT format('reader %s: token %s came %s times', who, coalesce(w.token, n.token), coalesce(n.times, 0))
  FROM written w FULL JOIN (SELECT token, count(*) AS times FROM news WHERE reader = who AND operation <> 'delete' GROUP BY token) n ON n.token = w.token
  WHERE w.token IS NULL OR n.times IS DISTINCT FROM 1
$$;
SQL

work() {
  stress_awk "$1" "$2" '
    function one(   w, k) {
      w = r(12); k = r(30)
      if (w <= 6) return "SELECT put(" k ");"
      if (w == 7) return "SELECT put(i) FROM generate_series(" k ", " k + r(6) ") i;"
      if (w == 8) return "DELETE FROM t WHERE id = " k ";"
      if (w == 9) return "SELECT put(" k "), pg_sleep(0.002);"
      if (w == 10) return "SELECT count(*) FROM t;"
      # of its own: who has inserted a key that somebody else has deleted since his snapshot sees two rows of it
      if (w == 11) return "COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO bad SELECT concat_ws($$ $$, $$" tag "$$, x) FROM pattern_check($$t$$) x;"
      return "SELECT change_feed_position($$t$$);"
    }
    BEGIN {
      for (i = 0;; i++) {
        if (client <= 3) { printf "%sSELECT follow(%d); %s\n", level(), client, r(10) == 1 ? "ROLLBACK;" : "COMMIT;"; continue }
        printf "%s%s", level(), one()
        if (r(4) == 1) printf " SAVEPOINT a; %s ROLLBACK TO a;", one()
        if (r(4) == 1) printf " SAVEPOINT b; %s RELEASE b;", one()
        if (r(3) == 1) printf " %s", one()
        print r(8) == 1 ? " ROLLBACK;" : " COMMIT;"
      }
    }'
}
catch_up() { for reader in 1 2 3; do until [ "$(ask "SELECT at = change_feed_position('t') OR NOT EXISTS (SELECT FROM change_feed_read('t', at)) FROM position WHERE reader = $reader")" != f ]; do ask "SELECT follow($reader)" >/dev/null; done; done; }

followed() { [ "$(ask 'SELECT count(*) FROM news WHERE reader = 1')" -gt 100 ]; }
stress_run live "$seconds" followed
read -r all at_once <<<"$(ask "SELECT count(*) || ' ' || (SELECT count(*) FROM news WHERE reader = 1) FROM written")"
echo "# $all changes written, $at_once read while they were"
ok 'readers followed live' followed
catch_up
for reader in 1 2 3; do is "$(ask "SELECT * FROM differences($reader) LIMIT 5")" '' "reader $reader: each change came once, and together they are the table"; done
is "$(ask 'SELECT * FROM pattern_check()')" '' 'the feed is true'
is "$(ask 'SELECT * FROM bad LIMIT 5')" '' 'and was at any moment in between'
is "$(stress_others 'ERROR:  23505.*')" '' 'errors are serialization failures and deadlocks'

ask "CREATE FUNCTION work() RETURNS void LANGUAGE sql AS \$\$ SELECT put(1 + (random() * 29)::int), follow(1 + (random() * 2)::int) \$\$" >/dev/null
for how in backend all; do
  crash_during $how 'SELECT work();' 0.5
  catch_up
  is "$(ask 'SELECT * FROM pattern_check(); SELECT d FROM generate_series(1, 3) i, differences(i) d LIMIT 5')" '' "all is true after a kill ($how)"
done

# purged while it is written, positions after a dump
ask "SELECT change_feed_purge('t', (SELECT min(at) FROM position))" >/dev/null
last=$(ask "SELECT at FROM position WHERE reader = 1")
is "$(ask "SELECT count(*) FROM change_feed_read('t', $last)")" 0 'who is up to date reads on after a purge'
pg_dump -Fc -f "$DP_WORK/feed.dump" && psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_change_feed_copy WITH (FORCE)' -c 'CREATE DATABASE dp_change_feed_copy' && pg_restore -d dp_change_feed_copy "$DP_WORK/feed.dump"
PGDATABASE=dp_change_feed_copy ask 'SELECT put(1)' >/dev/null
is "$(PGDATABASE=dp_change_feed_copy ask "SELECT count(*) FROM change_feed_read('t', $last) WHERE position > $last AND key = 1; SELECT count(*) FROM pattern_check()")" $'1\n0' 'positions are good after a dump and a restore'
psql -Xq -d postgres -c 'DROP DATABASE dp_change_feed_copy WITH (FORCE)'
is "$(psql -XqAt -c 'CREATE TABLE noted (id int PRIMARY KEY, doc bson)' -c "SELECT change_feed_enable('noted', channel => 'news')" -c 'LISTEN news' \
  -c "INSERT INTO noted VALUES (1, '{}')" | sed -n 's/.*payload "\(.*\)" received.*/\1/p')" public.noted 'a notification has the qualified name of the table'
is "$(ask "SELECT pattern_disable('t')")" 0 'and it can be ended'
ok 'its table is gone' [ "$(ask "SELECT to_regclass('t_feed') IS NULL")" = t ]
stress_end
