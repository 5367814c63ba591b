#!/bin/bash
# What a change feed costs writers: updates of single documents by several clients, of a table without a feed, with one, and with
# a trigger as one writes it by hand, which puts the document into a table of events. Updates a second, and the ratio. Then
# inserts of many rows in one statement.
#
#   change_feed.sh CLUSTER SECONDS CLIENTS
#
# Every update is a transaction of its own and the server flushes its log to disk. The
# private cluster must be running; fsync is switched on in it for the time of the run.
set -eu
cluster=$1 seconds=${2:-10} clients=${3:-8}
work=$(mktemp -d)
trap 'rm -rf "$work"; "$cluster" psql -qXc "ALTER SYSTEM RESET fsync" -c "SELECT pg_reload_conf()" >/dev/null' EXIT
export PGOPTIONS='-c client_min_messages=warning'
sql() { "$cluster" psql -qXAt -v ON_ERROR_STOP=1 "$@"; }
sql -c 'ALTER SYSTEM SET fsync = on' -c 'SELECT pg_reload_conf()' >/dev/null
sql >/dev/null <<'SQL'
CREATE EXTENSION IF NOT EXISTS docpatterns;
DROP SCHEMA IF EXISTS bench_feed CASCADE;
CREATE SCHEMA bench_feed;
SET search_path = bench_feed, public;
CREATE FUNCTION document(i int) RETURNS bson LANGUAGE sql AS $$ SELECT bson_build('_id', i, 'title', 'document ' || i, 'n', 0, 'tags', ARRAY['a', 'b', 'c'], 'text', repeat('lorem ipsum ', 40)) $$;
CREATE TABLE plain (id int PRIMARY KEY, doc bson); CREATE TABLE fed (LIKE plain INCLUDING ALL); CREATE TABLE told (LIKE plain INCLUDING ALL); CREATE TABLE byhand (LIKE plain INCLUDING ALL);
INSERT INTO plain SELECT i, document(i) FROM generate_series(1, 10000) i;
INSERT INTO fed TABLE plain; INSERT INTO told TABLE plain; INSERT INTO byhand TABLE plain;
SELECT change_feed_enable('fed', notify => false), change_feed_enable('told');
CREATE TABLE byhand_events (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at timestamptz DEFAULT now(), operation text, key int, document bson);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO bench_feed.byhand_events (operation, key, document) VALUES (lower(TG_OP), coalesce(NEW.id, OLD.id), coalesce(NEW.doc, OLD.doc));
  RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE ON byhand FOR EACH ROW EXECUTE FUNCTION note();
SQL
for t in plain fed told byhand; do
  cat >"$work/$t.sql" <<EOS
\set id random(1, 10000)
UPDATE bench_feed.$t SET doc = bson_update(doc, '{\$inc: {n: 1}}') WHERE id = :id;
EOS
done
chmod 755 "$work"; chmod 644 "$work"/*.sql
events() {  # events FILE: of the best of two runs
  local best=0 tps
  for _ in 1 2; do
    tps=$("$cluster" run pgbench -n -M prepared -c "$clients" -j 2 -T "$seconds" -f "$work/$1.sql" 2>/dev/null | sed -n 's/^tps = \([0-9.]*\).*/\1/p')
    best=$(awk -v a="$best" -v b="$tps" 'BEGIN { printf "%d", (a > b ? a : b) }')
  done
  echo "$best"
}
# show NAME RATE BASE: a line of the table; where it compares, also what run.sh collects
show() {
  local ratio
  ratio=$(awk -v n="$2" -v b="$3" 'BEGIN { printf "%.3f", n / b }')
  printf '%-46s %9d %7.2f\n' "$1" "$2" "$ratio"
  [ "$2" = "$3" ] || printf '=\tupdates: %s\t%s\t\thigh\t\t\t%s\t%s\n' "$1" "$ratio" "$3" "$2"
}
echo "updates of single documents, $clients clients       updates/s   ratio"
base=$(events plain)
show 'without a feed' "$base" "$base"
show 'with a feed, notify => false' "$(events fed)" "$base"
show 'with a feed that notifies' "$(events told)" "$base"
show 'a PL/pgSQL trigger and a table of events' "$(events byhand)" "$base"
echo "inserts of 20,000 rows in a statement, ms"
for t in plain fed byhand; do
  printf '%-46s %9d\n' "$t" "$({ echo '\timing on'; for _ in 1 2 3; do echo "INSERT INTO bench_feed.$t SELECT nextval('bench_feed.ids'), bench_feed.document(1) FROM generate_series(1, 20000);"; done; } |
    { sql -c 'CREATE SEQUENCE IF NOT EXISTS bench_feed.ids START 100000'; sql; } | sed -n 's/^Time: \([0-9]*\).*/\1/p' | sort -n | sed -n 2p)"
done
echo "reading a feed, changes/ms"
sql <<'SQL'
SELECT format('%-46s %9s', '1000 at a time', (n / ms)::int) FROM (
  SELECT count(*) AS n, extract(epoch FROM clock_timestamp() - min(t)) * 1000 AS ms FROM (SELECT clock_timestamp() AS t OFFSET 0) s,
    LATERAL (SELECT c.position FROM generate_series(0, 19) i, LATERAL change_feed_read('bench_feed.fed', (SELECT min(position) FROM change_feed_read('bench_feed.fed', NULL, 1)) + i * 1000, 1000) c) r) q;
SQL
[ "$(sql -c "SELECT count(*) FROM pattern_check('bench_feed.fed')")" = 0 ] || { echo 'pattern_check found violations' >&2; exit 1; }
sql -c 'DROP SCHEMA bench_feed CASCADE'
