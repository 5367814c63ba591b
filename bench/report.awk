# The page about performance and its charts; report.sh says what is read. Plain awk.

# What is known of an area: area("stem", heading, what its ratios are, page)
function area(stem, heading, about, page) { heading_of[stem] = heading; about_of[stem] = about; page_of[stem] = page }

BEGIN {
  cpu = "CPU time of the server"
  area("types", "The type beside jsonb", cpu " and bytes: `bson` / `jsonb`. S is a document of 300 bytes, M of 4 KB, W of 1,000 fields, L of 1 MB", "reference/README.md")
  area("mql", "Filters, updates and schemas beside jsonb", cpu ": ours / the operators and functions that `jsonb` has", "filter.md")
  area("pipeline", "Pipelines", cpu ": a pipeline / the SQL that a person would write, over `bson` and over `jsonb`", "aggregation.md")
  area("index", "Indexes", cpu " and size: ours / what PostgreSQL has for `jsonb`, columns and side tables", "indexes.md")
  area("estimates", "Estimates of the planner", "the factor by which estimated and actual rows differ; 1 is exact", "statistics.md")
  area("outlier", "Outlier", cpu ": with the pattern / the same table without, and long arrays / short ones", "patterns/outlier.md")
  area("bucket", "Bucket", cpu ": a bucket relation / a table with a btree; bytes a measurement, absolute; a single insert by its time", "patterns/bucket.md")
  area("reference", "Extended reference", cpu ": ours / the statement that one would write, or the same table without copies", "patterns/reference.md")
  area("single_table", "Single table", cpu ": a query of the single table / a join of two tables", "patterns/single_table.md")
  area("attribute", "Attribute", cpu " and size: packed fields with one index / wide fields with one index each", "patterns/attribute.md")
  area("payload", "Payload", cpu ": fields that were extracted / xpath at every read; writes / writes without", "patterns/payload.md")
  area("schema_versioning", "Schema versioning", cpu ": reading through steps / reading as stored; a migration / one UPDATE of jsonb", "patterns/schema_versioning.md")
  area("polymorphic", "Polymorphic", cpu ": writes that are looked at / the same table without; reads through a view / by hand", "patterns/polymorphic.md")
  area("loads", "Many documents in a statement", cpu " and bytes of WAL: with patterns / the same statement in a collection without any, and no index but its key's", "patterns_together.md")
  area("subset", "Subset", "inserts a second: with the pattern / without anything, and / a trigger written by hand", "patterns/subset.md")
  area("computed", "Computed", cpu ", and inserts a second of two clients: with totals / without", "patterns/computed.md")
  area("query_table", "Query tables", "inserts a second: with two query tables / without any, and / a trigger written by hand", "patterns/query_table.md")
  area("approximation", "Approximation", "events a second of all clients on one row: ours / an exact +1", "patterns/approximation.md")
  area("preallocated", "Preallocated", "claims a second of all clients on one document: ours / an UPDATE of a jsonb document", "patterns/preallocated.md")
  area("change_feed", "Change feed", "updates a second of all clients: beside a table without a feed", "patterns/change_feed.md")
  area("versioning", "Document versioning", cpu " and size: with history / plain, a trigger written by hand, whole copies", "patterns/versioning.md")
  area("single_collection", "Single collection", cpu ", and what one client waits for: one query / three queries, or one join", "patterns/single_collection.md")
  area("distinct", "Distinct values", cpu ": sketches / `count(DISTINCT)`; the error is absolute", "patterns/approximation.md")
  area("tree", "Paths and ancestors", cpu ": ours / ltree and others", "reference/trees.md#paths-in-trees")
  area("tree_pattern", "Tree", cpu ": with the pattern / paths of ltree written by hand", "patterns/tree.md")
  area("graph", "Graphs", cpu ": `graph_lookup` / `WITH RECURSIVE`", "reference/trees.md#graphs")
  area("clients", "Programs", "CPU time of a program with psycopg 3 in binary and of its backend: documents as dicts / `jsonb`; a call / SQL", "clients/python.md")
  area("kv", "Key-value structures", cpu ": ours / plain tables; commands a second of two clients", "patterns/kv.md")
}

# What binds where a bar is missed, as a profile or another line shows: why("stem", name or its beginning, what)
function why(stem, name, what) { why_of[stem, ++n_why[stem]] = what; why_name[stem, n_why[stem]] = name }
function reason(i,    k) {
  if (ratio[i] < bar[i] * 1.05 && ratio[i] > bar[i] / 1.05) return "; within 5 %"
  for (k = 1; k <= n_why[of[i]]; k++) if (index(name[i], why_name[of[i], k]) == 1) return "; " why_of[of[i], k]
  return low[i] != "" && low[i] + 0 <= bar[i] + 0 && bar[i] + 0 <= high[i] + 0 ? "; the bar is within its rounds" : ""
}

BEGIN {
  why("types", "set an int, L", "the fetch of the value alone takes as long")
  why("types", "append to an array, M", "decompressing the value alone takes nearly as long")
  why("mql", "update: $set an int, L", "the fetch of the value, as above")
  why("pipeline", "$sort, $limit, index", "a fixed cost, because the order of arrays needs several index scans that are merged")
  why("loads", "load, with a reference", "insertion into its index, see the line beside the same index")
  why("loads", "load, with a change feed", "the feed is a second row with the document, see the line beside one by hand")
  why("loads", "load, with computed totals", "insertion into its index, see the line beside the same index")
  why("loads", "load, with versioning", "a row of the history and its index entry for each document")
  why("loads", "load, three patterns", "rows and index entries, see the line beside triggers by hand")
  why("loads", "update, three patterns beside triggers by hand", "the number of a document's first revision is looked up in the history, and extras are looked for")
  why("loads", "update, three patterns", "rows and index entries, see the lines beside the same index and beside triggers by hand")
  why("index", "ORDER BY LIMIT 10, from somewhere on", "PostgreSQL plans an expression longer than a column and compares every key of the first page")
  why("outlier", "push beside inserting a child row", "a third of it locks the document and reads its 1,000 elements")
  why("bucket", "last value of every sensor", "half of it is the descent of the index and the reading of its page")
  why("bucket", "one sensor, one hour, raw rows", "two buckets are unpacked, where a clustered table has the rows on one page")
  why("bucket", "batches of 100 rows", "each measurement is first a row of a table with an index, as in the plain one, and packed later")
  why("reference", "rename, 10,000 orders", "three quarters are PostgreSQL's new rows and their entries in two indexes")
  why("schema_versioning", "versions: migration of a collection", "four fifths are new rows and index entries; keys are values of any type and checked, see the line above")
  why("tree", "1,000 descendants, whole rows", "both sides read the same rows of the table, the paths are 1 % of it")
  why("tree", "1,000 descendants, depth first", "both sides read the same rows of the table, the paths are 3 % of it")
  why("tree", "ancestors of a leaf", "searches of an index that compares paths, beside one that compares ints")
  why("tree", "is x below y", "both sides read the table, see the line less reading the rows")
  why("clients", "INSERT by executemany", "pymongo 3.11 encodes a dict in twice the time of json.dumps, see the lines of rows made before")
  why("clients", "COPY in binary", "pymongo 3.11 encodes a dict in twice the time of json.dumps, see the lines of rows made before")
  why("computed", "2 clients", "each insert also updates a row, or waits for it, see the line beside a trigger by hand")
  why("tree_pattern", "load nodes, parent and ancestors", "its indexes are there before the nodes, see the line beside an indexed ltree")
  why("query_table", "orders a hundred at once, beside no", "two more rows are written for each, in two more tables with an index")
}

/^@/ { fact[substr($1, 2)] = $2; next }

NF >= 5 && $3 != "" {
  if (!($1 in rows_of)) areas[++n_areas] = $1
  rows_of[$1] = rows_of[$1] " " ++n
  of[n] = $1; name[n] = $2; ratio[n] = $3 + 0; bar[n] = $4; wanted[n] = $5; low[n] = $6; high[n] = $7; others[n] = $8; ours[n] = $9
  verdict[n] = bar[n] == "" || small() ? "" : (wanted[n] == "high" ? ratio[n] >= bar[n] + 0 : ratio[n] <= bar[n] + 0) ? "met" : "missed"
  count[verdict[n]]++
}

# A run that measures too little for its bars to be judged.
function small() { return fact["scale"] + 0 < 100 || fact["rounds"] + 0 < 3 || fact["only"] != "*" }
# Three digits that count; no exponent.
function digits(x) { return x == 0 ? "0" : x >= 100 ? sprintf("%.0f", x) : x >= 10 ? sprintf("%.1f", x) : x >= 1 ? sprintf("%.2f", x) : x >= 0.01 ? sprintf("%.3f", x) : sprintf("%.4f", x) }
function figure(x) { return x == "" ? "" : digits(x + 0) }
function cell(text) { gsub(/\|/, "\\|", text); return text }
function xml(text) { gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); gsub(/>/, "\\&gt;", text); return text }
function label(text) { return length(text) > 48 ? substr(text, 1, 45) "..." : text }
function known(stem) { return stem in heading_of ? heading_of[stem] : stem }
function log10(x) { return log(x) / log(10) }

# Where a ratio stands on the axis of a chart, with what is better on the left: a high ratio that is wanted is turned over.
function place(i, x) {
  x = x <= 0 ? least : wanted[i] == "high" ? 1 / x : x
  x = x < least ? least : x > most ? most : x
  return left + width * (log10(x) - log10(least)) / (log10(most) - log10(least))
}

# A chart of the comparisons whose areas are (inside) or are not among those of a list; only of those with a bar, which is drawn.
function chart(file, title, list, inside,    i, d, y, x, one, rows, decade, decades, n_decades, last, drawn, height) {
  drawn = 0
  for (i = 1; i <= n; i++) if (charted(i, list, inside)) {
    drawn++
    if (of[i] != last) rows++
    last = of[i]
  }
  left = 340; width = 420; least = 0.001; most = 10
  height = 84 + (drawn + rows) * 18
  one = left + width * (0 - log10(least)) / (log10(most) - log10(least))
  printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 840 %d\" width=\"840\" height=\"%d\" role=\"img\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n", height, height > file
  printf "<title>%s</title>\n", xml(title) > file
  print "<style>text { fill: #24292f } .quiet { fill: #57606a } .area { font-weight: 600 } .line { stroke: #d0d7de } .one { stroke: #57606a } .met { fill: #2f81c1 } .missed { fill: #c4501b } .small { fill: #8c959f } .bar { stroke: #24292f; stroke-width: 2 }" > file
  print "@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .quiet { fill: #9198a1 } .line { stroke: #3d444d } .one { stroke: #9198a1 } .met { fill: #58a6ff } .missed { fill: #f0883e } .bar { stroke: #e6edf3 } }</style>" > file
  printf "<text x=\"12\" y=\"20\" class=\"area\">%s</text>\n", xml(title) > file
  printf "<text x=\"12\" y=\"38\" class=\"quiet\">Ratios on a logarithmic scale; further left is better. The upright stroke is the bar that was set:</text>\n" > file
  printf "<text x=\"12\" y=\"54\" class=\"quiet\">%s Rates, where more is better (&#x21c4;), are drawn turned over.</text>\n", (small() ? "this was a small run, so none is judged." : "blue meets it, orange misses it.") > file
  n_decades = split("0.001 0.01 0.1 1 10", decades, " ")
  for (d = 1; d <= n_decades; d++) {
    decade = decades[d]
    x = left + width * (log10(decade) - log10(least)) / (log10(most) - log10(least))
    printf "<line x1=\"%.1f\" y1=\"76\" x2=\"%.1f\" y2=\"%d\" class=\"%s\"/><text x=\"%.1f\" y=\"72\" text-anchor=\"middle\" class=\"quiet\">%s</text>\n", x, x, height - 6, (decade == "1" ? "one" : "line"), x, decade > file
  }
  y = 92; last = ""
  for (i = 1; i <= n; i++) {
    if (!charted(i, list, inside)) continue
    if (of[i] != last) { printf "<text x=\"12\" y=\"%d\" class=\"area\">%s</text>\n", y, xml(known(of[i])) > file; y += 18 }
    last = of[i]
    x = place(i, ratio[i])
    printf "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s%s</text>", left - 8, y, xml(label(name[i])), (wanted[i] == "high" ? " &#x21c4;" : "") > file
    printf "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"11\" rx=\"1\" class=\"%s\"/>", (x < one ? x : one), y - 10, (x < one ? one - x + 0.5 : x - one + 0.5), (verdict[i] == "" ? "small" : verdict[i]) > file
    printf "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" class=\"bar\"/>", place(i, bar[i]), y - 12, place(i, bar[i]), y + 3 > file
    printf "<text x=\"%d\" y=\"%d\" class=\"quiet\">%s</text>\n", left + width + 14, y, digits(ratio[i]) > file
    y += 18
  }
  print "</svg>" > file
  close(file)
}
# Absolute figures are no ratios: they stay out of the charts.
function charted(i, list, inside) { return bar[i] != "" && name[i] !~ /bytes a measurement|error of a sketch|as a factor|not true/ && (index(list, " " of[i] " ") > 0) == inside }

END {
  page = directory "/performance.md"
  documents = " types mql pipeline index "
  chart(directory "/performance-documents.svg", "Documents, filters, updates and indexes", documents, 1)
  chart(directory "/performance-patterns.svg", "Patterns, buckets, trees and structures", documents, 0)

  print "# Performance\n" > page
  print "`make bench` writes this page: one run on one machine measures ours, and beside it what PostgreSQL has or" > page
  print "what one would write by hand, on the same documents, turn by turn. Ratios depend least on the machine." > page
  print "A *bar* is the ratio to stay below, or above for rates. The figures are milliseconds for CPU time, unless" > page
  print "the line or the heading names something else.\n" > page
  if (small())
    printf "**This was a small run** (%s %% of the documents, %s, %s): fixed costs and chance weigh more in it than in a full run, so no bar is judged.\n\n", fact["scale"],
      (fact["rounds"] == 1 ? "one round" : fact["rounds"] " rounds"), (fact["only"] == "*" ? "all areas" : "only " fact["only"]) > page
  print "| | |\n|---|---|" > page
  printf "| machine | %s |\n| system | %s |\n| versions | %s |\n| date | %s |\n", cell(fact["machine"]), cell(fact["system"]), cell(fact["versions"]), fact["date"] > page
  if ("load" in fact) printf "| load of the machine | %s (averages of 1, 5 and 15 minutes at the end; one is the benchmark) |\n", fact["load"] > page
  if ("again" in fact) printf "| measured again | %s |\n", cell(fact["again"]) > page
  printf "| scale | %s %% of the documents, %s, %s s for each run of several clients |\n", fact["scale"], (fact["rounds"] == 1 ? "one round" : "median of " fact["rounds"] " rounds"), fact["seconds"] > page
  printf "| bars | %s |\n\n", (small() ? "not judged" : count["met"] + 0 " of " count["met"] + count["missed"] " met") > page
  if (count["missed"]) {
    print "Missed:\n" > page
    for (i = 1; i <= n; i++) if (verdict[i] == "missed") printf "- %s, %s: %s, the bar is %s%s\n", known(of[i]), name[i], digits(ratio[i]), bar[i], reason(i) > page
    print "" > page
  }
  print "![Documents, filters, updates and indexes: ratios and bars](performance-documents.svg)\n" > page
  print "![Patterns, buckets, trees and structures: ratios and bars](performance-patterns.svg)" > page
  for (a = 1; a <= n_areas; a++) {
    stem = areas[a]
    printf "\n## %s\n\n", known(stem) > page
    if (stem in about_of) printf "%s. [About it](%s).\n\n", toupper(substr(about_of[stem], 1, 1)) substr(about_of[stem], 2), page_of[stem] > page
    print "| | others | ours | ratio | rounds | bar | |\n|---|---:|---:|---:|---|---:|---|" > page
    k = split(rows_of[stem], row, " ")
    for (j = 1; j <= k; j++) {
      i = row[j]
      printf "| %s | %s | %s | %s | %s | %s | %s |\n", cell(name[i]), figure(others[i]), figure(ours[i]), digits(ratio[i]), (digits(low[i]) == digits(high[i]) ? "" : digits(low[i]) " to " digits(high[i])), (bar[i] == "" ? "" : (wanted[i] == "high" ? "at least " : "at most ") bar[i]), verdict[i] > page
    }
  }
  close(page)
}
