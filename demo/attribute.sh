# Part of the tour: the facets of Debian's tags as attributes, and documents that are kept as the text that they came as. Sourced
# by run.sh.

title 'Facets'
tagged=$(ask "SELECT count(*) FROM packages WHERE doc ? 'tags.interface'")
say "Debian's tags have facets: role, interface, works-with and dozens more. We take the $tagged packages that say which interface they have. As fields of their own each facet would want an" \
  "index. Declared as attributes, one index answers for all of them:"
show "SELECT collection_create('tagged')"
show "SELECT attribute_enable('tagged', into_field => 'tags', prefix => 'tag_',
  name_field => 'facet', value_field => 'values', is_unique => true)"
say "The program that writes knows nothing of that. It writes one field for each facet:"
show "INSERT INTO tagged (doc)
SELECT bson_build('_id', _id, 'section', doc -> 'section') ||
       (SELECT bson_object_agg('tag_' || t.key, t.value)
        FROM bson_each((doc -> 'tags')::bson) t)
FROM packages WHERE doc ? 'tags.interface'"
ask 'VACUUM ANALYZE tagged'
one=$(ask "SELECT doc ->> '_id' FROM tagged ORDER BY doc ->> '_id' <> 'curl', _id LIMIT 1")
show -t "SELECT doc FROM tagged WHERE _id = '$one'::text"
say "Which facets are there?"
show "SELECT key, documents, round(frequency::numeric, 2) AS share, distinct_values
FROM attribute_keys('tagged') LIMIT 6"
say "What works with images and runs in a window? The index looks up what is rarer:"
question='{"tags": {"$all": [{"$elemMatch": {"facet": "works-with", "values": "image"}},
                    {"$elemMatch": {"facet": "interface", "values": "x11"}}]}}'
show "EXPLAIN (COSTS OFF) SELECT _id FROM tagged WHERE doc @@ '$question'"
show "SELECT count(*) FROM tagged
WHERE doc @@ '$question'"
say "And programs that know the fields still read and write them:"
show "UPDATE tagged_wide SET doc = bson_array_append(doc, 'tag_role', 'toured')
WHERE _id = '$one'::text RETURNING doc ->> 'tag_role' AS role"
show "SELECT * FROM pattern_check('tagged')"
[ "$(ask "SELECT count(*) FROM pattern_check('tagged')")" = 0 ] || { echo "pattern_check found violations"; exit 1; }

title 'As it came'
say "Some documents have to be kept as the text that they came as. Here that is the JSON of packages; three fields are taken from it on every write, the" \
  "text itself lies compressed beside them:"
show "SELECT collection_create('received')"
show "SELECT payload_enable('received', field => 'json', extracts => '{
  package: \"jsonpath:\$._id\", kilobytes: \"jsonpath:\$.installed_size::bigint\",
  depends_on: \"jsonpath:\$.depends[*].name::text[]\"}')"
show "INSERT INTO received (doc)
SELECT bson_build('json', bson_to_json(doc, 'relaxed'))
FROM packages WHERE doc ? 'depends.0' ORDER BY _id LIMIT 500"
show "SELECT doc ->> 'package' AS package, doc ->> 'kilobytes' AS kilobytes,
       doc ->> 'depends_on' AS depends_on
FROM received ORDER BY doc -> 'kilobytes' DESC NULLS LAST LIMIT 3"
show "SELECT sum(bson_size(r.doc)) / 1024 AS stored_kb, sum(bson_size(w.doc)) / 1024 AS whole_kb
FROM received r JOIN received_whole w USING (_id)"
say "Text that cannot be read is refused, and the error names the document:"
show -t "INSERT INTO received (doc) VALUES ('{_id: 7, json: \"{oops\"}')" || :
show "SELECT * FROM pattern_check('received')"
