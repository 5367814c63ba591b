#!/bin/bash
# What one client waits for: a book with its 50 reviews and 20 users by one query on a single collection, beside three queries on
# three collections and beside one join of the three. The tables are those of single_collection.sql, which has to run before
# and leaves the documents of a book together, on both sides.
#
#   single_collection.sh CLUSTER SECONDS ROUNDS [DATABASE]
#
# Prints milliseconds for each book, the median of the rounds, the ratio and the bar.
set -eu
cluster=$1 seconds=${2:-5} rounds=${3:-5} database=${4:-postgres}
work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
books=$("$cluster" psql -qXAt -d "$database" -c 'SELECT count(*) FROM bench.sc_books')
query() { printf '\\set b random(1, %s)\n%s\n' "$books" "$2" >"$work/$1.sql"; }
query three 'SELECT doc FROM bench.sc_books WHERE _id = :b;
SELECT doc FROM bench.sc_reviews WHERE doc -> '"'book'"' = :b;
SELECT doc FROM bench.sc_users WHERE doc -> '"'book'"' = :b;'
query join 'SELECT b.doc, r.doc, u.doc FROM bench.sc_books b JOIN bench.sc_reviews r ON r.doc -> '"'book'"' = b._id JOIN bench.sc_users u ON u._id = r.doc -> '"'user'"' WHERE b._id = :b;'
query get "SELECT * FROM single_collection_get('bench.sc_catalog', :b);"
query filter "SELECT doc FROM bench.sc_catalog WHERE doc @@ '{\"relatedTo\": :b}';"
query keyed "SELECT * FROM single_collection_get('bench.sc_keyed', (:b)::text);"
chmod 644 "$work"/*.sql
for _ in $(seq "$rounds"); do
  for q in three join get filter keyed; do
    "$cluster" run pgbench -n -T "$seconds" -f "$work/$q.sql" "$database" 2>&1 | sed -n "s/^latency average = \([0-9.]*\) ms/$q \1/p" >>"$work/times"
  done
done
median() { sed -n "s/^$1 //p" "$work/times" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
line() {  # line NAME BASE OURS BAR
  awk -v name="$1" -v base="$(median "$2")" -v ours="$(median "$3")" -v bar="$4" 'BEGIN { r = ours / base; printf "%-40s %9.3f %9.3f %7.3f %6s  %s\n", name, base, ours, r, bar, (r > bar + 0 ? "ABOVE" : "")
    printf "=\tone client, %s\t%.4g\t%s\tlow\t\t\t%s\t%s\n", name, r, bar, base, ours }'
}
echo 'single collection, one client            base ms    ours ms   ratio    bar'
line 'related, three queries : get' three get 0.6
line 'related, three queries : filter' three filter 0.6
line 'keyed, three queries : get' three keyed 0.6
line 'related, one join : get' join get 0.8
line 'keyed, one join : get' join keyed 0.8
