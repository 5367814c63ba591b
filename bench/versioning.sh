#!/bin/bash
# Single updates of a plain collection, of one with a history, and of one with the trigger that a person would write; then reads of
# one document by its key, as it is and as it was, among a million revisions. As clients send them: prepared, each in a transaction
# of its own, turn by turn. What is compared is the CPU time that the server takes, which other work on the machine does not disturb.
#
# versioning.sh CLUSTER SECONDS [SCALE]
set -eu
cluster=$1 seconds=$2 scale=${3:-100}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ask() { "$cluster" psql -XqAt -v ON_ERROR_STOP=1 "$@"; }
ask <<SQL
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS versioning_bench CASCADE;
CREATE SCHEMA versioning_bench;
SET search_path = versioning_bench, public;
SELECT collection_create('plain'), collection_create('ours'), collection_create('hand'), collection_create('many'), collection_create('plain_small'), collection_create('ours_small') \g /dev/null
SELECT versioning_enable('ours'), versioning_enable('many'), versioning_enable('ours_small') \g /dev/null
CREATE TABLE hand_history (key bson_value, revision int, since timestamptz, until timestamptz, who name, doc bson, PRIMARY KEY (key, revision));
CREATE FUNCTION hand() RETURNS trigger LANGUAGE plpgsql SET search_path = versioning_bench, public AS \$\$
DECLARE
  r int := coalesce((OLD.doc ->> 'revision')::int, 1);
BEGIN
  IF NEW.doc = OLD.doc THEN
    RETURN NEW;
  ELSIF (NEW.doc ->> 'revision')::int <> r THEN
    RAISE EXCEPTION 'the document has been changed' USING ERRCODE = '40001';
  END IF;
  NEW.doc := bson_set(NEW.doc, 'revision', r + 1);
  UPDATE hand_history h SET until = clock_timestamp() WHERE h.key = OLD._id AND h.revision = r;
  INSERT INTO hand_history VALUES (OLD._id, r + 1, clock_timestamp(), NULL, current_user, NEW.doc);
  RETURN NEW;
END \$\$;
CREATE TRIGGER hand BEFORE UPDATE ON hand FOR EACH ROW EXECUTE FUNCTION hand();
CREATE TABLE source AS
  SELECT bson_build('_id', i, 'holder', 'Ada Lovelace ' || i, 'cover', 1000, 'from', timestamptz '2026-01-01',
                    'riders', (SELECT bson_agg(bson_build('name', md5(i || 'r' || j), 'premium', j * 1.5::float8, 'text', md5(j || 'x' || i))) FROM generate_series(1, 20) j),
                    'terms', (SELECT string_agg(md5(i || 't' || j), '') FROM generate_series(1, 54) j)) AS doc
  FROM generate_series(1, 2000) i;
INSERT INTO plain (doc) SELECT doc FROM source;
INSERT INTO plain_small (doc) SELECT bson_build('_id', doc -> '_id', 'holder', doc -> 'holder', 'cover', 1000, 'from', doc -> 'from', 'terms', left(doc ->> 'terms', 360)) FROM source LIMIT 1000;
INSERT INTO ours_small (doc) SELECT doc FROM plain_small;
INSERT INTO ours (doc) SELECT doc FROM source;
INSERT INTO hand (doc) SELECT doc FROM source;
INSERT INTO hand_history SELECT _id, 1, clock_timestamp(), NULL, current_user, doc FROM hand;
INSERT INTO many (doc) SELECT bson_build('_id', i, 'holder', 'Ada Lovelace ' || i, 'cover', 0, 'riders', ARRAY[md5(i || 'a'), md5(i || 'b'), md5(i || 'c')], 'terms', md5(i::text))
  FROM generate_series(1, 950 * $scale) i;
DO \$\$
BEGIN
  FOR r IN 2 .. 10 LOOP
    UPDATE many SET doc = bson_set(doc, 'cover', r);
    COMMIT;
  END LOOP;
  FOR r IN 1 .. 500 * $scale LOOP
    UPDATE many SET doc = bson_set(doc, 'cover', r) WHERE _id = 1;
    IF r % 10 = 0 THEN COMMIT; END IF;
  END LOOP;
END \$\$;
VACUUM ANALYZE;
SQL
for table in plain ours hand; do
  cat >"$dir/$table" <<SQL
\\set id random(1, 2000)
\\set cover random(1, 1000000)
UPDATE versioning_bench.$table SET doc = public.bson_set(doc, 'cover', :cover::int) WHERE _id = :id::int;
SQL
done
for table in plain_small ours_small; do
  printf '%s\n' '\set cover random(1, 1000000)' "UPDATE versioning_bench.$table SET doc = public.bson_set(doc, 'cover', :cover::int);" >"$dir/$table"
done
last=$((950 * scale))
fifth=$(ask -c "SELECT since FROM versioning_bench.many_history WHERE key = 2 AND revision = 5")
half=$(ask -c "SELECT since FROM versioning_bench.many_history WHERE key = 1 AND revision = $((250 * scale))")
printf '%s\n' "\\set id random(2, $last)" 'SELECT doc FROM versioning_bench.many WHERE _id = :id::int;' >"$dir/read"
printf '%s\n' "\\set id random(2, $last)" "SELECT doc FROM public.versioning_as_of('versioning_bench.many', '$fifth') WHERE key = :id::int;" >"$dir/fifth"
printf '%s\n' "\\set id random(2, $last)" 'SELECT public.versioning_at('"'versioning_bench.many'"', :id::int, 5);' >"$dir/at"
printf '%s\n' '\set id random(2, 3)' "SELECT doc FROM public.versioning_as_of('versioning_bench.many', '$half') WHERE key = 1;" >"$dir/one"
printf '%s\n' 'SELECT revision, since, doc FROM versioning_bench.many_history WHERE key = 2 ORDER BY revision DESC LIMIT 10;' >"$dir/newest_short"
printf '%s\n' 'SELECT revision, since, doc FROM versioning_bench.many_history WHERE key = 1 ORDER BY revision DESC LIMIT 10;' >"$dir/newest_long"
chmod -R a+rX "$dir"

# CPU time of all backends that have ended so far, in ticks
postmaster=$(ask -c "SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)")
cpu() { sed 's/.*) //' "/proc/$postmaster/stat" | awk '{ print $14 + $15 }'; }

# CPU time that the server takes for a transaction, in microseconds: run SCRIPT TRANSACTIONS
run() {
  local before
  before=$(cpu)
  "$cluster" run pgbench -n -M prepared -c 1 -t "$2" -f "$dir/$1" >"$dir/out" 2>"$dir/errors" || { cat "$dir/errors" >&2; exit 1; }
  grep -q "actually processed: $2/$2" "$dir/out"
  sleep 0.3 # until the backend has ended
  awk -v a="$before" -v b="$(cpu)" -v hz="$(getconf CLK_TCK)" -v n="$2" 'BEGIN { print (b - a) / hz / n * 1e6 }'
}
median() { sort -g | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }

# compare NAME BAR BASE OURS [TRANSACTIONS]: turn by turn
compare() {
  local n=${5:-$((10000 * seconds))}
  for ((round = 0; round < 5; round++)); do echo "$(run "$3" "$n") $(run "$4" "$n")"; done >"$dir/costs"
  awk -v name="$1" -v bar="$2" -v b="$(awk '{ print $1 }' "$dir/costs" | median)" -v o="$(awk '{ print $2 }' "$dir/costs" | median)" '
    { r = $2 / $1; if (!low || r < low) low = r; if (r > high) high = r }
    END { printf "%-42s %8.1f %8.1f %7.3f   %.3f  %s   %.3f-%.3f\n", name, b, o, o / b, bar, (o / b > bar ? "ABOVE" : "     "), low, high
          printf "=\t%s\t%.4g\t%s\tlow\t%.3f\t%.3f\t%.4g\t%.4g\n", name, o / b, bar, low, high, b, o }' "$dir/costs"
}
echo 'CPU time of a transaction                   base us  ours us   ratio   bar           spread'
compare 'update of 4 KB, beside a plain one' 1.667 plain ours
compare 'the same, beside a trigger in PL/pgSQL' 0.7 hand ours
compare 'update of 1,000 documents of 450 bytes' 3 plain_small ours_small $((40 * seconds))
echo "read among $(ask -c 'SELECT count(*) FROM versioning_bench.many_revisions') revisions, beside a read by the primary key:"
compare 'as of, five revisions ago' 3 read fifth
compare 'versioning_at, five revisions ago' 3 read at
compare "newest 10 of $((500 * scale)) revisions, beside those of 10" 1.5 newest_short newest_long $((2000 * seconds))
compare "as of, in the middle of $((500 * scale))" 3 read one
ask -c 'SET client_min_messages = warning' -c 'DROP SCHEMA versioning_bench CASCADE'
