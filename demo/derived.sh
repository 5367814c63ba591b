# Seventh part of the tour: data that is derived from other data and stays true. Maintainers and their packages, totals of
# sections, and a page counter under load. Sourced by run.sh.

title 'Copies that follow their source'
read -r busy packages_of < <(ask "SELECT doc ->> 'maintainer.email' || ' ' || count(*) FROM packages WHERE doc ? 'maintainer.email' GROUP BY doc ->> 'maintainer.email' ORDER BY count(*) DESC, 1 LIMIT 1")
busy_name=$(ask "SELECT doc ->> 'maintainer.name' FROM packages WHERE doc ->> 'maintainer.email' = '$busy' LIMIT 1")
say "Every package carries the name of its maintainer, because every page shows it. So $busy_name stands in $packages_of documents. A" \
  "maintainer becomes a document of its own, and the sub-document in the package a reference to it, with the name kept as a copy:"
show "SELECT collection_create('maintainers')"
show "INSERT INTO maintainers (doc)
SELECT DISTINCT ON (doc -> 'maintainer.email') bson_build(
         '_id', doc -> 'maintainer.email', 'name', doc -> 'maintainer.name')
FROM packages WHERE doc ? 'maintainer.email'
ORDER BY doc -> 'maintainer.email', _id"
ask 'ANALYZE maintainers'
rename_before=$(time_of "UPDATE packages SET doc = bson_set(doc, 'maintainer.name', 'tour') WHERE doc ->> 'maintainer.email' = '$busy'")
totals_before=$(time_of "SELECT count(*), sum(doc -> 'installed_size') FROM packages WHERE doc ->> 'maintainer.email' = '$busy'")
top_before=$(time_of "SELECT doc -> 'installed_size', _id FROM packages WHERE doc ->> 'maintainer.email' = '$busy' ORDER BY doc -> 'installed_size' DESC NULLS LAST, _id LIMIT 10")
show "SELECT reference_enable('packages', field => 'maintainer',
  source => 'maintainers', id_field => 'email', live => '{name}', missing => 'allow')"
say "Which copies differ from their source already? Debian's catalogue knows one address under several names. A build stops rather than lose one, unless it is told to:"
show "CALL pattern_build('packages', 'maintainer', 10000, discard => true)"
say "How many packages does a change of one of them reach?"
show "SELECT * FROM reference_cost('packages', 'maintainer', 'maintainers',
  id_field => 'email')"
say "Now the team changes its name, in the one document that is its own. Every package follows, in the same transaction:"
show "UPDATE maintainers SET doc = bson_set(doc, 'name', 'The tour''s team')
WHERE _id = '$busy'::text"
show "SELECT doc ->> 'maintainer.name' AS name, count(*) AS packages
FROM packages
WHERE doc ->> 'maintainer.email' = '$busy' GROUP BY 1"
rename_after=$(time_of "UPDATE maintainers SET doc = bson_set(doc, 'name', 'tour') WHERE _id = '$busy'::text")
say "A program that writes the copy by hand is put right, and who is named must not go:"
one=$(ask "SELECT doc ->> '_id' FROM packages WHERE doc ->> 'maintainer.email' = '$busy' ORDER BY _id LIMIT 1")
show "UPDATE packages SET doc = bson_set(doc, 'maintainer.name', 'nobody')
WHERE _id = '$one'::text
RETURNING doc ->> 'maintainer.name' AS name"
show -t "DELETE FROM maintainers WHERE _id = '$busy'::text" || :

title 'Totals, and the ten largest'
say "How many packages has a maintainer, how large are they, which are the largest? A page asks that all the time. Declared once:"
show "SELECT computed_enable('maintainers', source => 'packages',
  on_field => 'maintainer.email', name => 'totals',
  fields => '{packages: {\$count: {}}, kilobytes: {\$sum: \"\$installed_size\"}}')"
show "SELECT subset_enable('maintainers', field => 'largest', source => 'packages',
  on_field => 'maintainer.email', order_by => '{installed_size: -1}', keep => 10,
  fields => '{_id: 1, installed_size: 1}')"
show "CALL pattern_build('maintainers', 'totals', 10000)"
show "CALL pattern_build('maintainers', 'largest', 10000)"
show -t "SELECT doc FROM maintainers WHERE _id = '$busy'::text"
small=$(ask "SELECT doc ->> '_id' FROM packages WHERE doc ->> 'maintainer.email' = '$busy' ORDER BY doc -> 'installed_size', _id LIMIT 1")
say "The smallest of them, $small, grows to a gigabyte. Nobody tells the maintainer's document:"
show "UPDATE packages SET doc = bson_set(doc, 'installed_size', 1048576)
WHERE _id = '$small'::text"
show "SELECT doc ->> 'kilobytes' AS kilobytes, doc ->> 'largest.0._id' AS first,
       bson_array_length(doc, 'largest') AS shown
FROM maintainers WHERE _id = '$busy'::text"
say "And shrinks again. The one that it pushed out comes back:"
show "UPDATE packages SET doc = bson_set(doc, 'installed_size', 10)
WHERE _id = '$small'::text"
show "SELECT doc ->> 'kilobytes' AS kilobytes, doc ->> 'largest.0._id' AS first,
       bson_array_length(doc, 'largest') AS shown
FROM maintainers WHERE _id = '$busy'::text"
totals_after=$(time_of "SELECT doc -> 'packages', doc -> 'kilobytes' FROM maintainers WHERE _id = '$busy'::text")
top_after=$(time_of "SELECT doc -> 'largest' FROM maintainers WHERE _id = '$busy'::text")
echo
printf '  %-34s %10s %10s\n' "$packages_of packages, milliseconds" before after
printf '  %-34s %10s %10s\n' 'rename the maintainer' "$rename_before" "$rename_after" 'read its totals' "$totals_before" "$totals_after" \
  'read its ten largest' "$top_before" "$top_after"
say "Before: one statement each, over the packages; what renames them has to know every place where the name stands."
all_true maintainers maintainers
all_true packages packages

title 'Totals along a tree'
say "Sections belong together: perl and python are languages, x11 and gnome the desktop. The groups are a tree, and the roll-up" \
  "keeps a document with the totals of each section, and of all that is below it:"
show "SELECT collection_create('sections')"
ask "INSERT INTO sections (doc)
  SELECT bson_build('_id', s, 'in', g) FROM (VALUES
    ('development', '{devel,debug,vcs,embedded}'::text[]), ('libraries', '{libs,libdevel,oldlibs}'),
    ('languages', '{perl,python,haskell,rust,golang,javascript,java,ruby,ocaml,lisp,gnu-r,php,interpreters,cli-mono}'),
    ('desktop', '{x11,gnome,kde,xfce,gnustep,fonts,introspection}'), ('media', '{sound,graphics,video}'),
    ('network', '{net,mail,web,httpd,news,comm}'), ('research', '{science,math,electronics,hamradio,education}'),
    ('system', '{admin,kernel,utils,shells,otherosfs,database}'), ('writing', '{doc,text,tex,editors,localization}')) AS v (g, sections), unnest(sections) AS s
  UNION ALL SELECT bson_build('_id', g, 'in', 'everything') FROM unnest('{development,libraries,languages,desktop,media,network,research,system,writing}'::text[]) AS g
  UNION ALL SELECT bson_build('_id', 'everything')"
ask "INSERT INTO sections (doc) SELECT DISTINCT ON (s) bson_build('_id', s, 'in', 'everything') FROM packages, to_bson(doc ->> 'section') AS s WHERE doc ? 'section' ON CONFLICT DO NOTHING"
show "SELECT tree_enable('sections', parent => 'in')"
ask "CALL pattern_build('sections')" 2>/dev/null
show "SELECT rollup_enable('packages', name => 'packages_by_section',
  tree => 'sections', group_by => '{section}',
  fields => '{packages: {\$count: {}}, kilobytes: {\$sum: \"\$installed_size\"}}')"
show "CALL pattern_build('packages', 'packages_by_section', 10000)"
show "SELECT s.node, t.doc ->> 'packages' AS packages,
       (t.doc -> 'kilobytes')::bigint / 1024 AS megabytes
FROM tree_descendants('sections', 'everything', max_depth => 1) s
JOIN packages_by_section t ON t._id = s.node
ORDER BY t.doc -> 'packages' DESC LIMIT 6"
branch=$(ask "SELECT doc ->> '_id' FROM packages_by_section WHERE _id IN ('perl'::text, 'python'::text, 'net'::text, 'libs'::text, 'admin'::text) ORDER BY doc -> 'packages' DESC LIMIT 1")
new_home=network
[ "$branch" != net ] || new_home=system
say "Somebody decides that $branch belongs to $new_home. One UPDATE of one field moves the section, and all totals above it follow:"
show "UPDATE sections SET doc = bson_set(doc, 'in', '$new_home')
WHERE _id = '$branch'::text"
show "SELECT _id, doc ->> 'packages' AS packages FROM packages_by_section
WHERE _id IN ('everything'::text, '$new_home'::text, '$branch'::text) ORDER BY 2 DESC"
group_time=$(time_of "SELECT doc ->> 'section', count(*), sum(doc -> 'installed_size') FROM packages GROUP BY 1")
total_time=$(time_of "SELECT doc FROM packages_by_section")
echo
printf '  %-34s %10s %10s\n' 'milliseconds' before after 'read the totals of all sections' "$group_time" "$total_time"
say "Before: GROUP BY over all packages, which knows nothing of the tree."
all_true packages packages

title 'A page counter under load'
seconds=${DEMO_SECONDS:-2}
say "Eight clients look at one page as fast as they can, $seconds seconds long. First every view is written, as everybody does it:"
show "SELECT collection_create('pages')"
show "SELECT approximation_enable('pages', field => 'views', error => 0.02)"
show "INSERT INTO pages (doc) VALUES ('{_id: \"home\", exact: 0, views: 0}')"
views=build/demo.views.sql

# How often the clients run "statement" in that time (counted), and how many versions of the row that makes (versions).
count_views() {
  local before after
  before=$(ask "SELECT coalesce(pg_stat_get_tuples_updated('pages'::regclass), 0)")
  printf '%s;\n' "$statement" >"$views"
  counted=$("$cluster" run pgbench -n -M prepared -c 8 -j 2 -T "$seconds" -f - <"$views" 2>/dev/null | sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p')
  after=$(ask "SELECT pg_stat_get_tuples_updated('pages'::regclass)")
  versions=$((after - before))
}
statement="UPDATE pages SET doc = bson_update(doc, '{\$inc: {exact: 1}}') WHERE _id = 'home'::text"
printf '\n  %s\n' "$bold$statement$plain"
count_views
exact_views=$counted exact_versions=$versions
statement="SELECT approximation_add('pages', 'home', 1)"
say "Then with the pattern. Most views write nothing; those that do add more than one, so that the count is right on average:"
printf '\n  %s\n' "$bold$statement$plain"
count_views
echo
printf '  %-34s %10s %10s\n' '' before after 'views counted' "$exact_views" "$counted" 'versions of the row written' "$exact_versions" "$versions"
say "The second time there were $counted views. What does the counter say, and how sure is it?"
show "SELECT * FROM approximation_read('pages', 'home')"
all_true pages page
rm -f "$views"
