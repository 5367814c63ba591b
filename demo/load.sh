# First part of the tour: the catalogue becomes documents. Sourced by run.sh.

title 'Real documents'
paragraphs=build/demo.paragraphs
mkdir -p build
apt-cache dumpavail >"$paragraphs" 2>/dev/null || : >"$paragraphs"
from='"apt-cache dumpavail"'
if [ -n "${PACKAGES:-}" ] || [ "$(grep -c '^Package:' "$paragraphs")" -lt 1000 ]; then
  from=${PACKAGES:-/var/lib/dpkg/status}
  cp "$from" "$paragraphs"
fi
if [ -n "${FAST:-}" ]; then
  awk -v RS= -v ORS='\n\n' 'NR % 5 == 1 || /^Package: (libc6|curl|postgresql)\n/' "$paragraphs" >"$paragraphs.some"
  mv "$paragraphs.some" "$paragraphs"
fi
total=$(grep -c '^Package:' "$paragraphs")
say "Every Debian machine carries a catalogue of packages: $total paragraphs of text here, from $from. Each becomes a" \
  "document with all of its fields. \"Depends\" becomes an array of sub-documents, tags are sorted by facet, sizes are numbers."
show "SELECT collection_create('packages')"
echo
demo/packages.pl "$total" <"$paragraphs" |
  "$cluster" psql -q -v ON_ERROR_STOP=1 -c "COPY packages (doc) FROM STDIN (FORMAT csv, QUOTE e'\x01', DELIMITER e'\x02')"
rm -f "$paragraphs"
ask 'VACUUM ANALYZE packages'

one=$(ask "SELECT doc ->> '_id' FROM packages WHERE doc ? 'depends.1' AND doc ? 'tags'
           ORDER BY doc ->> '_id' <> 'curl', bson_size(doc) LIMIT 1")
say "One of them, without its checksums:"
show -t "SELECT bson_pretty(
         doc - '{tags,filename,md5sum,sha256,description_md5}'::text[])
FROM packages WHERE _id = '$one'::text"
say "Documents are values like any other. What takes most room when installed?"
show "SELECT doc ->> 'section' AS section, count(*) AS packages,
       sum(doc -> 'installed_size')::bigint / 1024 AS megabytes
FROM packages GROUP BY 1 ORDER BY 3 DESC NULLS LAST LIMIT 5"
