# Fourth part of the tour: what indexes and statistics know about documents. Sourced by run.sh.

title 'One index for all fields'
say "Nobody has to know beforehand what will be asked for. One GIN index has every field of every document, inside arrays too:"
show "CREATE INDEX packages_all ON packages USING gin (doc)"
ask 'VACUUM ANALYZE packages'
show "SELECT pg_size_pretty(pg_table_size('packages')) AS documents,
       pg_size_pretty(pg_relation_size('packages_all')) AS index"
filter='{section: "games", "depends.name": "'"$largest"'",
                      installed_size: {$gt: 100000}}'
say "The same filter without it and with it, and how the index is asked (its sizes are looked up as a range):"
search="SELECT doc ->> '_id' AS game, doc ->> 'installed_size' AS kilobytes
FROM packages
WHERE doc @@ '$filter'
ORDER BY doc -> 'installed_size' DESC LIMIT 3"
show "$search"
before=$(PGOPTIONS='-c enable_bitmapscan=off' time_of "$search")
printf '  %s\n' "$dim$before ms without the index, $(time_of "$search") ms with it$plain"
show -t "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF)
SELECT doc FROM packages WHERE doc @@ '$filter'"
say "ANALYZE has looked into the documents, for the planner. What it saw is a report of the schema that nobody ever declared:"
show "SELECT path, round(presence * 100) AS percent,
       (SELECT string_agg(key, ', ') FROM bson_each(types)) AS types,
       CASE WHEN n_distinct < 0 THEN round(-n_distinct * 100) || ' % of documents'
            ELSE n_distinct::text END AS different_values
FROM bson_stats('packages') WHERE presence < 1
ORDER BY presence DESC, path LIMIT 12"
say "Those who come from MongoDB name the keys, and what fits these documents is made:"
show -t "SELECT collection_create_index('packages', '{section: 1, installed_size: -1}')"
show "SELECT name, key, method, pg_size_pretty(size) AS size
FROM collection_list_indexes('packages')"
