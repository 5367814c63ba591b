#!/bin/bash
# Reviews a second on 1,000 products that show ten each: into a table without anything, with a trigger in PL/pgSQL as people
# write it, and with the subset pattern; reviews that do not enter the ten, and reviews that do.
#
#   subset.sh CLUSTER SECONDS CLIENTS
#
# The private cluster must be running.
set -eu
cluster=$1 seconds=${2:-5} clients=${3:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PGOPTIONS='-c client_min_messages=warning'
"$cluster" psql -qXAt -v ON_ERROR_STOP=1 >/dev/null <<'SQL'
CREATE EXTENSION IF NOT EXISTS docpatterns;
DROP SCHEMA IF EXISTS bench_subset CASCADE;
CREATE SCHEMA bench_subset;
SET search_path = bench_subset, public;
SELECT collection_create('products'), collection_create('hand_products'), collection_create('ours'), collection_create('hand'), collection_create('bare');
INSERT INTO products (doc) SELECT bson_build('_id', i, 'name', 'Product ' || i, 'price', 5) FROM generate_series(1, 1000) i;
INSERT INTO ours (doc) SELECT bson_build('_id', i, 'product_id', 1 + i % 1000, 'rank', i / 1000 + 1000000, 'author', 'Author ' || i, 'text', repeat('x', 100)) FROM generate_series(1, 50000) i;
INSERT INTO hand SELECT * FROM ours;
INSERT INTO bare SELECT * FROM ours;
CREATE INDEX ON bare ((doc -> 'product_id'), bson_sort_key(doc, '{rank: -1}'), _id);
CREATE INDEX ON hand ((doc -> 'product_id'), bson_sort_key(doc, '{rank: -1}'), _id);
SELECT subset_enable('products', field => 'reviews', source => 'ours', on_field => 'product_id', order_by => '{rank: -1}', keep => 10, fields => '{rank: 1, author: 1, text: 1}');
SELECT pattern_repair('products');
INSERT INTO hand_products SELECT * FROM products;
CREATE FUNCTION hand() RETURNS trigger LANGUAGE plpgsql SET search_path = bench_subset, public AS $$
DECLARE d bson; members bson_value;
BEGIN
  SELECT doc INTO d FROM hand_products WHERE _id = NEW.doc -> 'product_id' FOR NO KEY UPDATE;
  IF d IS NULL OR (bson_array_length(d, 'reviews') >= 10 AND (NEW.doc -> 'rank') <= (d -> 'reviews.9.rank')) THEN RETURN NULL; END IF;
  SELECT bson_agg(m ORDER BY r DESC) INTO members FROM (
    SELECT bson_project(doc, '{_id: 0, rank: 1, author: 1, text: 1}') AS m, doc -> 'rank' AS r FROM hand
    WHERE doc -> 'product_id' = NEW.doc -> 'product_id' ORDER BY bson_sort_key(doc, '{rank: -1}') LIMIT 10) q;
  UPDATE hand_products SET doc = bson_set(doc, 'reviews', members) WHERE _id = NEW.doc -> 'product_id';
  RETURN NULL;
END $$;
CREATE TRIGGER hand AFTER INSERT ON hand FOR EACH ROW EXECUTE FUNCTION hand();
CREATE SEQUENCE s START 2000000 CACHE 1000;
VACUUM ANALYZE;
SQL
for t in bare hand ours; do
  for kind in below enter; do
    rank=5; [ $kind = below ] || rank="currval('bench_subset.s')"
    echo "\\set p random(1, 1000)
INSERT INTO bench_subset.$t (doc) VALUES (bson_build('_id', nextval('bench_subset.s'), 'product_id', :p::int, 'rank', $rank, 'author', 'A', 'text', repeat('x', 100)));" >"$work/$kind.$t"
  done
done
for kind in below enter; do
  declare -A best=([bare]=0 [hand]=0 [ours]=0)
  for round in 1 2 3; do
    for t in bare hand ours; do
      tps=$("$cluster" run pgbench -n -M prepared -c "$clients" -j 1 -T "$seconds" -f "$work/$kind.$t" 2>/dev/null | sed -n 's/^tps = \([0-9]*\).*/\1/p')
      [ "$tps" -le "${best[$t]}" ] || best[$t]=$tps
    done
  done
  awk -v k="$kind" -v b="${best[bare]}" -v h="${best[hand]}" -v o="${best[ours]}" 'BEGIN {
    printf "reviews that %-16s bare %d/s, hand-written %d/s, subset %d/s: %.2f of bare, %.2f x hand-written\n", k == "enter" ? "enter" : "do not enter", b, h, o, o / b, o / h
    printf "=\treviews that %s, beside no subset\t%.4g\t\thigh\t\t\t%s\t%s\n=\treviews that %s, beside a trigger by hand\t%.4g\t\thigh\t\t\t%s\t%s\n", k == "enter" ? "enter" : "do not enter", o / b, b, o, k == "enter" ? "enter" : "do not enter", o / h, h, o }'
done
"$cluster" psql -qXAt -c "SELECT format('violations found by pattern_check: %s', count(*)) FROM pattern_check('bench_subset.products')" -c 'DROP SCHEMA bench_subset CASCADE'
