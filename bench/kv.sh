#!/bin/bash
# zadd of random members of a large board under two clients, beside an upsert into a plain table with an index on the score:
# commands a second, and the ratio (higher is better). Each is a transaction of its own. Then a board that is filled from
# nothing by as many clients, and what pattern_check says of all.
#
#   kv.sh CLUSTER SECONDS [MEMBERS]
#
# The private cluster must be running.
set -eu
cluster=$1 seconds=${2:-5} members=${3:-1000000}
work=$(mktemp -d)
trap 'rm -rf "$work"; sql -c "DROP SCHEMA IF EXISTS bench_kv CASCADE" -c "DROP SCHEMA IF EXISTS bench_kv_plain CASCADE"' EXIT
export PGOPTIONS='-c client_min_messages=warning'
sql() { "$cluster" psql -qXAt -v ON_ERROR_STOP=1 "$@"; }
sql >/dev/null <<SQL
CREATE EXTENSION IF NOT EXISTS docpatterns;
DROP SCHEMA IF EXISTS bench_kv CASCADE;
DROP SCHEMA IF EXISTS bench_kv_plain CASCADE;
CREATE SCHEMA bench_kv_plain;
SELECT kv_create('bench_kv');
CREATE TABLE bench_kv_plain.docs (id text PRIMARY KEY, doc bson);
INSERT INTO bench_kv_plain.docs SELECT 'player' || i, bson_build('score', hashint8(i)::bigint) FROM generate_series(1, $members) i;
SELECT kv_leaderboard('bench_kv', 'board', 'bench_kv_plain.docs', 'score');
SELECT pattern_disable('bench_kv_plain.docs', 'board', keep_data => true);
DROP TABLE bench_kv_plain.docs;
CREATE TABLE bench_kv_plain.scores (LIKE bench_kv.scores INCLUDING ALL) WITH (fillfactor = 90);
INSERT INTO bench_kv_plain.scores SELECT * FROM bench_kv.scores;
VACUUM ANALYZE bench_kv.keys, bench_kv.scores, bench_kv.counts, bench_kv_plain.scores;
SQL
cat >"$work/zadd.sql" <<SQL
\set m random(1, $members)
\set s random(-2000000000, 2000000000)
SELECT kv_zadd('bench_kv', 'board', :s::bigint, 'player' || :m);
SQL
cat >"$work/plain.sql" <<SQL
\set m random(1, $members)
\set s random(-2000000000, 2000000000)
INSERT INTO bench_kv_plain.scores (key, member, score) VALUES ('board', to_bson('player' || :m), to_bson(:s::bigint)) ON CONFLICT (key, member) DO UPDATE SET score = EXCLUDED.score;
SQL
cat >"$work/fill.sql" <<SQL
\set m random(1, 1000000000)
\set s random(-2000000000, 2000000000)
SELECT kv_zadd('bench_kv', 'new', :s::bigint, :m::bigint);
SQL
chmod 755 "$work"; chmod 644 "$work"/*.sql
rate() { "$cluster" run pgbench -n -M prepared -c 2 -j 2 -T "$seconds" -f "$work/$1.sql" 2>/dev/null | sed -n 's/^tps = \([0-9.]*\).*/\1/p'; }
echo "2 clients, a board of $members              commands/s   ratio   bar"
plain=0 zadd=0
for _ in 1 2 3; do
  for what in plain zadd; do
    printf -v "$what" '%s' "$(awk -v a="${!what}" -v b="$(rate "$what")" 'BEGIN { print (b > a ? b : a) }')"
  done
done
printf '%-44s %9d\n' 'upsert into a plain indexed table' "${plain%.*}"
# show NAME RATE BAR: a line of the table, and what run.sh collects
show() {
  local ratio
  ratio=$(awk -v a="$2" -v b="$plain" 'BEGIN { printf "%.3f", a / b }')
  printf '%-44s %9d %7.2f %5s\n' "$1" "${2%.*}" "$ratio" "${3:--}"
  printf '=\t%s\t%s\t%s\thigh\t\t\t%s\t%s\n' "$1" "$ratio" "$3" "$plain" "$2"
}
show 'zadd of random members' "$zadd" 0.6
fill=$(rate fill)
show 'zadd of new members, from nothing' "$fill" ''
sql -c "SELECT format('members %s, blocks of at most %s; pattern_check: %s rows', kv_zcard('bench_kv', 'new'), (SELECT max(n) FROM (SELECT sum(amount) AS n FROM bench_kv.counts JOIN bench_kv.keys USING (zset) WHERE key = 'new' AND level = 1 GROUP BY score, member) q), (SELECT count(*) FROM pattern_check('bench_kv.keys')))"
