# Third part of the tour: queries as they are typed in mongosh, on the same catalogue. Sourced by run.sh.

# Shows a query with the calls for collections, its answer, and how long it takes: query SQL
query() {
  show -t "$1"
  printf '  %s\n' "$dim$(time_of "$1") ms$plain"
}

title 'Bring your queries'
say "MongoDB's query and update languages are part of the type: doc @@ filter and bson_update(doc, update) in SQL, and calls for" \
  "those who think in collections. Who needs libc6 in version 2.3x?"
query "SELECT collection_count('packages', '{depends: {\$elemMatch:
         {name: \"libc6\", version: {\$gte: \"2.3\", \$lt: \"2.4\"}}}}')"
say "The largest downloads in three sections, three fields of each:"
query "SELECT collection_find('packages',
  '{section: {\$in: [\"games\", \"science\", \"fonts\"]}, size: {\$gt: 10000000}}',
  '{_id: 1, section: 1, size: 1}', sort => '{size: -1}', take => 3)"
say "Small libraries with a version in their names, and what each needs first:"
query "SELECT collection_find('packages',
  '{_id: {\$regex: \"^lib[a-z]+[0-9]\$\"}, installed_size: {\$gt: 0, \$lte: 40}}',
  '{installed_size: 1, needs: {\$first: \"\$depends.name\"}}',
  sort => '{_id: 1}', take => 3)"
say "In which sections is something essential?"
query "SELECT collection_distinct('packages', 'section', '{essential: true}')"
say "An update counts and remembers, and one by _id goes straight to its row:"
query "SELECT matched, modified FROM collection_update('packages',
  '{_id: \"$typical\"}',
  '{\$inc: {views: 1}, \$push: {seen: {\$each: [\"tour\"], \$slice: -3}}}')"
say "Pipelines run, too. What do most packages need?"
query "SELECT collection_aggregate('packages', '[
  {\$unwind: \"\$depends\"}, {\$sortByCount: \"\$depends.name\"}, {\$limit: 3}]')"
say "How many kilobytes does $typical bring along?"
query "SELECT collection_aggregate('packages', '[{\$match: {_id: \"$typical\"}},
  {\$lookup: {from: \"packages\", localField: \"depends.name\",
             foreignField: \"_id\", as: \"needs\"}},
  {\$project: {own: \"\$installed_size\", needs: \"\$needs._id\",
              more: {\$sum: \"\$needs.installed_size\"}}}]')"
say "Which maintainers look after most packages?"
busiest="'[
  {\$group: {_id: \"\$maintainer.name\", packages: {\$sum: 1}}},
  {\$sort: {packages: -1}}, {\$limit: 3}]'"
query "SELECT collection_aggregate('packages', $busiest)"
say "A pipeline is one SQL query, which PostgreSQL plans. This is the last one:"
show -t "SELECT collection_aggregate_sql('packages', $busiest)"
