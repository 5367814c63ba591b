#!/bin/bash
# Loads this machine's package catalogue into bench.jsonb_packages and bench.bson_packages, as the tour does (demo/load.sh).
#
#   packages.sh CLUSTER.SH PERCENTAGE
set -eu
cd "$(dirname "$0")/.."
paragraphs=build/bench.paragraphs
mkdir -p build
apt-cache dumpavail >"$paragraphs" 2>/dev/null || : >"$paragraphs"
[ "$(grep -c '^Package:' "$paragraphs")" -ge 1000 ] || cp /var/lib/dpkg/status "$paragraphs"
total=$(($(grep -c '^Package:' "$paragraphs") * $2 / 100))
"$1" psql -qAt -v ON_ERROR_STOP=1 -c 'CREATE TABLE bench.text_packages (t text)'
demo/packages.pl <"$paragraphs" 2>/dev/null | awk -v n="$total" 'NR <= n' |
  "$1" psql -qAt -v ON_ERROR_STOP=1 -c "COPY bench.text_packages FROM STDIN (FORMAT csv, QUOTE e'\x01', DELIMITER e'\x02')"
rm -f "$paragraphs"
"$1" psql -qAt -v ON_ERROR_STOP=1 -c 'CREATE TABLE bench.jsonb_packages AS SELECT t::jsonb AS doc FROM bench.text_packages' \
  -c 'CREATE TABLE bench.bson_packages AS SELECT t::public.bson AS doc FROM bench.text_packages' -c 'DROP TABLE bench.text_packages' \
  -c 'VACUUM ANALYZE bench.jsonb_packages, bench.bson_packages' \
  -c "SELECT format('packages  %s documents of %s bytes', count(*), round(avg(pg_column_size(doc)))) FROM bench.bson_packages"
