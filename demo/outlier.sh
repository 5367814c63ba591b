# Second part of the tour: who needs whom, and the outlier pattern. Sourced by run.sh.

# Measures what programs do with a typical document and with the largest one; fills measured["WHAT,WHICH,WHEN"].
declare -A measured
measure() {  # measure WHEN
  local which key
  for which in typical largest; do
    if [ $which = typical ]; then key=$typical; else key=$largest; fi
    measured["bytes in the row,$which,$1"]=$(ask "SELECT bson_size(doc) FROM packages WHERE _id = '$key'::text")
    measured["read one field (ms),$which,$1"]=$(time_of "SELECT doc ->> 'description' FROM packages WHERE _id = '$key'::text")
    measured["change one field (ms),$which,$1"]=$(time_of "UPDATE packages SET doc = bson_set(doc, 'seen', true) WHERE _id = '$key'::text")
    if [ "$1" = before ]; then
      measured["add one name (ms),$which,$1"]=$(time_of "UPDATE packages SET doc = bson_array_append(doc, 'rdepends', 'tour') WHERE _id = '$key'::text")
      measured["read everything (ms),$which,$1"]=$(time_of "SELECT doc FROM packages WHERE _id = '$key'::text")
    else
      measured["add one name (ms),$which,$1"]=$(time_of "SELECT outlier_push('packages', '$key', 'tour')")
      measured["read everything (ms),$which,$1"]=$(time_of "SELECT doc FROM packages_whole WHERE _id = '$key'::text")
    fi
  done
}

title 'Who needs whom'
say "A document says what its package needs. A page about a package also wants the other direction, without a search: who" \
  "needs it? One statement gives every document an array \"rdepends\":"
show "UPDATE packages p SET doc = bson_set(p.doc, 'rdepends', r.names)
FROM (SELECT needed, bson_agg(DISTINCT _id) AS names
      FROM packages,
           unnest('{depends,depends.or,pre_depends}'::text[]) AS field,
           bson_values(doc, field || '.name') AS needed
      GROUP BY needed) r
WHERE p._id = r.needed"
ask 'VACUUM (FULL, ANALYZE) packages'

say "How long are these arrays?"
show "SELECT CASE WHEN n = 0 THEN 'nobody'
            ELSE 10 ^ d || ' to ' || 10 ^ (d + 1) - 1 END AS needed_by,
       count(*) AS packages,
       repeat('#', ceil(45 * count(*) / sum(count(*)) OVER ())::int) AS share
FROM (SELECT n, CASE WHEN n > 0 THEN length(n::text) - 1 ELSE -1 END AS d
      FROM (SELECT coalesce(bson_array_length(doc, 'rdepends'), 0) AS n
            FROM packages) x) y
GROUP BY d, 1 ORDER BY d"
read -r largest longest < <(ask "SELECT doc ->> '_id' || ' ' || bson_array_length(doc, 'rdepends') FROM packages
                                 WHERE doc ? 'rdepends' ORDER BY bson_array_length(doc, 'rdepends') DESC LIMIT 1")
typical=$(ask "SELECT doc ->> '_id' FROM packages WHERE bson_array_length(doc, 'rdepends') BETWEEN 2 AND 9
               ORDER BY doc ->> '_id' <> 'vim-runtime', doc ->> '_id' LIMIT 1")
read -r kilobytes median < <(ask "SELECT (SELECT bson_size(doc) / 1024 FROM packages WHERE _id = '$largest'::text) || ' ' ||
                                         percentile_disc(0.5) WITHIN GROUP (ORDER BY bson_size(doc)) FROM packages")
say "That is the outlier problem. The array belongs into the document: nearly always it is a handful of names. But $largest is" \
  "needed by $longest packages, its document has $kilobytes kB where the median has $median bytes, and whoever adds a name or touches" \
  "any of its fields writes all of that again. Redesigning for $largest would hurt every other package."
measure before

title 'Declared once'
say "Where to draw the line? The real distribution knows:"
show -x "SELECT arrays, length_p50, length_p90, length_p99, length_max,
       threshold, outliers
FROM outlier_advise('packages', 'rdepends')"
threshold=$(ask "SELECT threshold FROM outlier_advise('packages', 'rdepends')")
if [ "$threshold" -ge "$longest" ]; then
  threshold=$((longest / 2))
  say "In so small a catalogue nothing passes that line. With $threshold instead, the same can be seen."
fi
show "SELECT outlier_enable('packages', field => 'rdepends', threshold => $threshold,
                      flag => 'has_more', count_field => 'needed_by')"
say "From now on every write keeps it true. The documents that were there before are brought in line by"
show "CALL pattern_build('packages', 'rdepends', 10000)"
say "A typical document is what it was (and has no flag):"
show -t "SELECT bson_build('_id', doc -> '_id', 'rdepends', doc -> 'rdepends',
                  'has_more', doc -> 'has_more',
                  'needed_by', doc -> 'needed_by')
FROM packages WHERE _id = '$typical'::text"
say "The outliers are flagged. The first $threshold names stay; the rest is beside the table, in chunks:"
show "SELECT doc ->> '_id' AS package, bson_array_length(doc, 'rdepends') AS here,
       doc ->> 'needed_by' AS needed_by, doc ->> 'has_more' AS has_more,
       bson_size(doc) AS bytes
FROM packages WHERE doc ? 'has_more'
ORDER BY doc -> 'needed_by' DESC LIMIT 5"
show "SELECT count(*) AS chunks, pg_size_pretty(pg_total_relation_size(
         'packages_rdepends_extras')) AS size
FROM packages_rdepends_extras"

measure after

title 'Used like any table'
say "A new package that needs $largest. The push touches one chunk, however long the array is:"
show "SELECT outlier_push('packages', '$largest', 'my-package')"
show "SELECT outlier_count('packages', '$largest'),
       outlier_contains('packages', '$largest', 'my-package')"
say "The logical document is in the view packages_whole, for those who want it all; a page reads what it shows:"
show "SELECT bson_size(doc) AS bytes, bson_array_length(doc, 'rdepends') AS names
FROM packages_whole WHERE _id = '$largest'::text"
show "SELECT * FROM outlier_page('packages', '$largest', skip => $((longest / 2)), take => 3)"
say "No special call is needed: plain SQL keeps it true. A program that reads the document, changes it and saves it sends the" \
  "part that it saw; nothing is lost. A wrong flag is put right. A typical document that grows becomes an outlier by itself."
show "UPDATE packages SET doc = bson_set(doc, 'has_more', false)
WHERE _id = '$largest'::text
RETURNING doc ->> 'has_more' AS has_more, doc ->> 'needed_by' AS needed_by"
show "UPDATE packages SET doc = bson_set(doc, 'rdepends',
  (SELECT bson_agg('user-' || i ORDER BY i) FROM generate_series(1, $((threshold * 3))) i))
WHERE _id = '$typical'::text"
show "SELECT bson_array_length(doc, 'rdepends') AS here,
       doc ->> 'needed_by' AS needed_by, doc ->> 'has_more' AS has_more
FROM packages WHERE _id = '$typical'::text"

title 'Before and after'
echo
printf '  %-24s %12s %12s %12s %12s\n' '' "$typical" '' "$largest" '' '' before after before after | sed 's/ *$//'
for what in 'bytes in the row' 'read one field (ms)' 'change one field (ms)' 'add one name (ms)' 'read everything (ms)'; do
  printf '  %-24s %12s %12s %12s %12s\n' "$what" "${measured["$what,typical,before"]}" "${measured["$what,typical,after"]}" \
    "${measured["$what,largest,before"]}" "${measured["$what,largest,after"]}"
done
say "Times are medians of seven, as psql sees them, each rolled back. To read an outlier in one piece its chunks are put together" \
  "each time; a page reads only the chunks that it shows."

title 'And is all of that true?'
say "pattern_check recomputes every promise from the data alone. No rows: nothing is wrong."
show "SELECT rel, pattern, name FROM pattern_list()"
show "SELECT * FROM pattern_check()"
[ "$(ask 'SELECT count(*) FROM pattern_check()')" = 0 ] || { echo "pattern_check found violations"; exit 1; }
printf '  %s\n' "${green}$(ask 'SELECT count(*) FROM packages') documents checked, 0 violations${plain}"
