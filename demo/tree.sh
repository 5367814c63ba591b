# Sixth part of the tour: trees and graphs that are on every machine. Sourced by run.sh.

title 'A directory tree that stays true'
top=${DEMO_TREE:-/usr/share}
say "Every directory below $top becomes a document that names the directory it is in, by number, and nothing else. The pattern keeps" \
  "the chain to the top and the children beside it. They come in no order, in one COPY:"
show "SELECT collection_create('directories')"
show "SELECT tree_enable('directories', parent => 'in', ancestors => 'above',
                   children => 'holds', order_by => 'name')"
ids=build/demo.directories
find "$top" -xdev -type d -printf '%i\t%P\n' 2>/dev/null | LC_ALL=C sort -t$'\t' -k2 | head -n "${DEMO_DIRECTORIES:-5000}" >"$ids"
# the number of the directory around: that of the longest path before the last slash
awk -F'\t' -v top="$top" '
  function quoted(s) { gsub(/[\\"]/, "\\\\&", s); gsub(/[\001-\037]/, "?", s); return "\"" s "\"" }
  { number[$2] = NR
    slash = match($2, /\/[^\/]*$/)
    up = slash ? substr($2, 1, slash - 1) : ""
    name = $2 == "" ? top : slash ? substr($2, slash + 1) : $2
    if ($2 == "") print "{\"_id\": " NR ", \"name\": " quoted(name) "}"
    else if (up in number) print "{\"_id\": " NR ", \"name\": " quoted(name) ", \"in\": " number[up] "}" }' "$ids" |
  iconv -f UTF-8 -t UTF-8 -c | sort -R |
  "$cluster" psql -q -v ON_ERROR_STOP=1 -c "COPY directories (doc) FROM STDIN (FORMAT csv, QUOTE e'\x01', DELIMITER e'\x02')"
rm -f "$ids"
ask 'VACUUM ANALYZE directories'
root=$(ask "SELECT doc ->> '_id' FROM directories WHERE NOT doc ? 'in'")
show "SELECT depth, nodes, leaves, children_avg, children_max
FROM tree_stats('directories')"
deep=$(ask "SELECT doc ->> '_id' FROM directories ORDER BY tree_depth(doc -> 'above') DESC, _id LIMIT 1")
say "The deepest of them, its document and the way to it:"
show -t "SELECT doc FROM directories WHERE _id = $deep"
show "SELECT depth, doc ->> 'name' AS directory FROM tree_ancestors('directories', $deep)"
branch=$(ask "SELECT node::int FROM tree_children('directories', $root)
              WHERE tree_subtree_count('directories', node) BETWEEN 5 AND 14 ORDER BY tree_subtree_count('directories', node) DESC, node LIMIT 1")
branch=${branch:-$root}
say "A branch, drawn:"
show -t "SELECT * FROM tree_render('directories', $branch, max_depth => 3, label => 'name')"
other=$(ask "SELECT node::int FROM tree_siblings('directories', $branch) LIMIT 1")
if [ -n "$other" ]; then
  say "It moves below another one. One UPDATE of one field, and the documents of all that is in it follow:"
  show "UPDATE directories SET doc = bson_set(doc, 'in', $other) WHERE _id = $branch"
  show "SELECT count(*) AS now_below FROM directories
WHERE tree_is_below(doc, 'above', $other)"
  say "Nobody can hang a directory below itself:"
  show "SELECT tree_move('directories', $other, $branch)" || :
fi
show "SELECT * FROM pattern_check('directories')"
[ "$(ask "SELECT count(*) FROM pattern_check('directories')")" = 0 ] || { echo "pattern_check found violations"; exit 1; }
printf '  %s\n' "${green}$(ask 'SELECT count(*) FROM directories') directories checked, 0 violations${plain}"

title 'Graphs: what a package brings along'
say "What a package needs needs other packages. That is no tree: many need the same, and some need each other. graph_lookup walks" \
  "through the documents of the first section as \$graphLookup does, each once, also in circles:"
start=$(ask "SELECT doc ->> '_id' FROM packages WHERE doc ? 'depends.2' ORDER BY doc ->> '_id' NOT IN ('postgresql', 'gnome-core', 'curl'), doc ->> '_id' LIMIT 1")
show "SELECT depth AS steps, count(*) AS packages,
       min(doc ->> '_id') AS one_of_them
FROM graph_lookup('packages', '$start', connect_from => 'depends.name', connect_to => '_id')
GROUP BY depth ORDER BY depth"
far=$(ask "SELECT doc ->> '_id' FROM graph_lookup('packages', '$start', 'depends.name', '_id') ORDER BY depth DESC, 1 LIMIT 1")
say "Why is $far among them?"
show "SELECT step, node FROM graph_shortest_path('packages', '$start', '$far',
  connect_from => 'depends.name', connect_to => '_id')"
