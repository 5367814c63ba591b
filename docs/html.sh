#!/bin/sh
# Makes a searchable site of README.md and docs/ in build/html, with Sphinx, MyST and Furo as Debian
# has them. A link or a picture that leads nowhere is an error.
set -eu
cd "$(dirname "$0")/.."
from=build/html.from
rm -rf "$from" build/html
mkdir -p "$from"
git ls-files README.md CONTRIBUTING.md CHANGELOG.md LICENSE 'docs/*.md' 'docs/*.svg' |
  while read -r file; do mkdir -p "$from/$(dirname "$file")" && cp "$file" "$from/$file"; done
cat >"$from/conf.py" <<'CONF'
project = 'docpatterns'
extensions = ['myst_parser']
html_theme = 'furo'
html_title = 'docpatterns'
root_doc = 'index'
myst_heading_anchors = 4
highlight_language = 'none'
html_copy_source = False
html_show_copyright = False
html_static_path = ['_static']
html_css_files = ['site.css']
# headings that skip a level, and psql commands in SQL
suppress_warnings = ['myst.header', 'misc.highlighting_failure']
CONF
mkdir "$from/_static"
cat >"$from/_static/site.css" <<'CSS'
body { margin: 0 }
table { display: block; overflow-x: auto; width: max-content; max-width: 100% }
td code { overflow-wrap: break-word }
h2 { font-size: 1.6em }
h3 { font-size: 1.25em }
CSS
# The navigation: the pages in the order of the index below, each under its own title.
section() {
  printf '\n```{toctree}\n:caption: %s\n:maxdepth: 1\n\n' "$1"
  shift
  for page; do echo "${page%.md}"; done
  echo '```'
}
pages() { (cd "$from" && ls docs/$1 | LC_ALL=C sort); }
{
  cat "$from/README.md"
  section 'Start' docs/choosing.md docs/use_cases.md docs/coming_from.md docs/comparison.md \
    docs/how-it-works.md docs/glossary.md
  section 'Patterns' docs/patterns_together.md $(pages 'patterns/*.md')
  section 'Programs' $(pages 'clients/*.md')
  section 'Languages and indexes' docs/filter.md docs/update.md docs/expression.md docs/accumulate.md \
    docs/projection.md docs/schema.md docs/aggregation.md docs/search.md docs/indexes.md \
    docs/statistics.md docs/bucket.md
  section 'Reference' $(pages 'reference/*.md') docs/formats.md
  section 'Operation' docs/installing.md docs/operations.md docs/maintenance.md docs/performance.md docs/privileges.md docs/security.md
  section 'Development' CONTRIBUTING.md docs/developing.md docs/coverage.md docs/releasing.md \
    CHANGELOG.md
} >"$from/index.md"
rm "$from/README.md"
sed -i 's/](..\/README.md#/](..\/index.md#/' "$from"/docs/*.md
sphinx-build -q -W --keep-going -j auto -b html "$from" build/html
echo "build/html/index.html"
