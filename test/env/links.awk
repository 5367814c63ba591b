# Reads Markdown pages and prints each link to another place of the docs that leads nowhere:
#   awk -f links.awk README.md docs/*.md docs/*/*.md
# Anchors are those that GitHub makes of headings.
FNR == 1 { directory = FILENAME; if (!sub(/[^\/]*$/, "", directory)) directory = ""; pages[FILENAME] = 1; code = 0; split("", seen) }
/^```/ { code = !code }
code { next }
/^#+ / {
  slug = $0
  sub(/^#+ +/, "", slug)
  slug = tolower(slug)
  gsub(/\]\([^)]*\)/, "", slug)
  gsub(/[^a-z0-9 _-]/, "", slug)
  gsub(/ /, "-", slug)
  anchors[FILENAME "#" slug (seen[slug]++ ? "-" seen[slug] - 1 : "")] = 1
}
{
  rest = $0
  gsub(/`[^`]*`/, "", rest)
  while (match(rest, /\]\([^) ]+\)/)) {
    link = substr(rest, RSTART + 2, RLENGTH - 3)
    rest = substr(rest, RSTART + RLENGTH)
    if (link ~ /^[a-z]+:/) continue
    n++
    from[n] = FILENAME ":" FNR
    to[n] = link ~ /^#/ ? FILENAME link : directory link
  }
}
END {
  for (i = 1; i <= n; i++) {
    target = to[i]
    while (sub(/[^\/]+\/\.\.\//, "", target)) ;
    page = target
    sub(/#.*/, "", page)
    if (target ~ /#/ && page in pages ? !(target in anchors) : !(page in pages) && system("test -e '" page "'") != 0)
      print from[i] ": " to[i]
  }
}
