#!/bin/bash
# Orders a second into a source with two query tables (by user and date, by status), one by one and a hundred at a time: beside
# a table without anything, and one with a trigger in PL/pgSQL as people write it.
#
#   query_table.sh CLUSTER SECONDS CLIENTS
#
# The private cluster must be running.
set -eu
cluster=$1 seconds=${2:-5} clients=${3:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PGOPTIONS='-c client_min_messages=warning'
"$cluster" psql -qXAt -v ON_ERROR_STOP=1 >/dev/null <<'SQL'
CREATE EXTENSION IF NOT EXISTS docpatterns;
DROP SCHEMA IF EXISTS bench_query CASCADE;
CREATE SCHEMA bench_query;
SET search_path = bench_query, public;
SELECT collection_create('ours'), collection_create('hand'), collection_create('bare');
SELECT query_table_create('ours_by_user', source => 'ours', partition => '{user_id}', clustering => '{"order_date": -1}', fields => '{"order_id": 1, "total": 1}',
                          types => '{"order_date": "timestamptz", "total": "numeric"}'),
       query_table_create('ours_by_status', source => 'ours', partition => '{status}', clustering => '{"order_date": -1}', fields => '{"order_id": 1, "user_id": 1}',
                          types => '{"order_date": "timestamptz"}');
CREATE TABLE hand_by_user (user_id bson_value, order_date timestamptz, total numeric, order_id bson_value, _id bson_value, PRIMARY KEY (user_id, order_date, _id));
CREATE TABLE hand_by_status (status bson_value, order_date timestamptz, order_id bson_value, user_id bson_value, _id bson_value, PRIMARY KEY (status, order_date, _id));
CREATE FUNCTION hand() RETURNS trigger LANGUAGE plpgsql SET search_path = bench_query, public AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    DELETE FROM hand_by_user WHERE user_id = OLD.doc -> 'user_id' AND order_date = (OLD.doc -> 'order_date')::timestamptz AND _id = OLD._id;
    DELETE FROM hand_by_status WHERE status = OLD.doc -> 'status' AND order_date = (OLD.doc -> 'order_date')::timestamptz AND _id = OLD._id;
  END IF;
  IF TG_OP <> 'DELETE' THEN
    INSERT INTO hand_by_user VALUES (NEW.doc -> 'user_id', (NEW.doc -> 'order_date')::timestamptz, (NEW.doc -> 'total')::numeric, NEW.doc -> 'order_id', NEW._id);
    INSERT INTO hand_by_status VALUES (NEW.doc -> 'status', (NEW.doc -> 'order_date')::timestamptz, NEW.doc -> 'order_id', NEW.doc -> 'user_id', NEW._id);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER hand AFTER INSERT OR UPDATE OR DELETE ON hand FOR EACH ROW EXECUTE FUNCTION hand();
INSERT INTO ours (doc) SELECT bson_build('_id', i, 'user_id', 1 + i % 1000, 'order_id', 'O' || i, 'order_date', timestamptz '2024-01-01' + i * interval '1 minute', 'status', (ARRAY['new','paid','sent','back'])[1 + i % 4], 'total', 9.5 + i,
  'items', (SELECT bson_agg(bson_build('sku', 'SKU-' || j, 'name', 'An article of the shop', 'quantity', j, 'price', 19.99::float8)) FROM generate_series(1, 4) j)) FROM generate_series(1, 20000) i;
INSERT INTO hand SELECT * FROM ours;
INSERT INTO bare SELECT * FROM ours;
CREATE SEQUENCE s START 2000000 CACHE 1000;
VACUUM ANALYZE;
SQL
order="bson_build('_id', nextval('bench_query.s'), 'user_id', :p::int, 'order_id', 'O' || :p, 'order_date', timestamptz '2024-01-01' + (:p % 100000) * interval '1 minute', 'status', (ARRAY['new','paid','sent','back'])[1 + :p % 4], 'total', 9.5 + :p,
  'items', '[{\"sku\": \"SKU-1\", \"name\": \"An article of the shop\", \"quantity\": 1, \"price\": 19.99}, {\"sku\": \"SKU-2\", \"name\": \"An article of the shop\", \"quantity\": 1, \"price\": 19.99}, {\"sku\": \"SKU-3\", \"name\": \"An article of the shop\", \"quantity\": 1, \"price\": 19.99}]'::bson_value)"
for t in bare hand ours; do
  echo "\\set p random(1, 1000)
INSERT INTO bench_query.$t (doc) VALUES ($order);" | tr '\n' ' ' | sed 's/) INSERT/)\nINSERT/' >"$work/one.$t"
  echo "\\set p random(1, 1000)
INSERT INTO bench_query.$t (doc) SELECT ${order//:p/(:p + i)} FROM generate_series(1, 100) i;" | tr '\n' ' ' | sed 's/) INSERT/)\nINSERT/' >"$work/hundred.$t"
done
for kind in one hundred; do
  declare -A best=([bare]=0 [hand]=0 [ours]=0)
  for round in 1 2 3; do
    for t in bare hand ours; do
      tps=$("$cluster" run pgbench -n -M prepared -c "$clients" -j 1 -T "$seconds" -f "$work/$kind.$t" 2>/dev/null | sed -n 's/^tps = \([0-9]*\).*/\1/p')
      [ "$tps" -le "${best[$t]}" ] || best[$t]=$tps
    done
  done
  awk -v k="$kind" -v b="${best[bare]}" -v h="${best[hand]}" -v o="${best[ours]}" 'BEGIN {
    printf "orders, %-17s bare %d/s, hand-written %d/s, two query tables %d/s: %.2f of bare (bar 0.6), %.2f x hand-written (bar 1.3)\n", k == "one" ? "one by one" : "a hundred at once", b, h, o, o / b, o / h
    printf "=\torders %s, beside no query table\t%.4g\t0.6\thigh\t\t\t%s\t%s\n=\torders %s, beside a trigger by hand\t%.4g\t1.3\thigh\t\t\t%s\t%s\n", k == "one" ? "one by one" : "a hundred at once", o / b, b, o, k == "one" ? "one by one" : "a hundred at once", o / h, h, o }'
done
"$cluster" psql -qXAt -c "SELECT format('violations found by pattern_check: %s', count(*)) FROM pattern_check('bench_query.ours')" -c 'DROP SCHEMA bench_query CASCADE'
