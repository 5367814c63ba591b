# The suites of test/run.sh, which sources this file: each counts in passed and failed, and prints what failed and why.

# Runs a command for at most so many seconds, and leaves in took how long it took. It runs in the background, so that an interrupt is
# heard while we wait.
bounded() {  # bounded SECONDS COMMAND...
  local status
  timeout -k 10 "$@" </dev/null &
  job=$!
  took=$SECONDS
  wait "$job"
  status=$?
  took=$((SECONDS - took))
  job=
  return "$status"
}

result() {  # result PASSED NAME [DETAIL...]
  if [ "$1" = 0 ]; then
    passed=$((passed + 1))
    echo "ok       $2"
  else
    failed=$((failed + 1))
    echo "NOT OK   $2"
    echo "NOT OK   $2" >>"$out/failures"
    shift 2
    [ $# = 0 ] || printf '%s\n' "$@" | sed 's/^/           /'
    [ $# = 0 ] || printf '%s\n' "$@" | sed 's/^/           /' | shorten >>"$out/failures"
  fi
}

# A failure, shortened to be repeated at the end of the run, where it is seen even if only the last lines are.
shorten() {
  grep -vE '^ *(diff -U3|--- /|\+\+\+ /)' | cut -c 1-300 | head -n 30
}

# Prints the failed assertions of a TAP file, each with what the test says of it (got and expected), and errors of the server or of psql.
failed_assertions() {
  awk '/^not ok/ {on = 1; n = 0; print; next} /^ok/ {on = 0} /^#/ {if (on && /^# (  |Failed)/ && n++ < 12) print; next} /ERROR|FATAL|PANIC/' "$1"
}

# Prints the stems of the files named that FILTER lets through.
stems() {
  local file stem
  for file in "$@"; do
    [ -e "$file" ] || continue
    stem=${file##*/} stem=${stem%.*}
    # shellcheck disable=SC2053
    [[ $stem == ${FILTER:-*} ]] && echo "$stem"
  done
}

# Builds with warnings as errors, so a build that is there had none. With a warning the tests run all the same.
build_cluster() {
  built_clean=0
  COPT="-Werror ${COPT:-}" bounded 1200 "$cluster" install >"$out/build.log" 2>&1 || built_clean=1
  if [ "$built_clean" = 1 ]; then
    bounded 1200 "$cluster" install >"$out/build-again.log" 2>&1 || { echo "the build failed:"; tail -n 40 "$out/build-again.log"; return 1; }
  fi
  if ! [ "$built_clean" = 1 ]; then export COPT="-Werror ${COPT:-}"; fi
  bounded 120 "$cluster" start
}

suite_build() {
  local lines library
  [ "$built_clean" = 0 ]
  result $? "the build gives no warning" "$(grep -E 'warning|error' "$out/build.log" | head -20)"

  library=$("$cluster" run pg_config --pkglibdir)/docpatterns.so
  lines=$(nm -D --defined-only "$library" | awk '$2 ~ /^[A-Z]$/ && $3 !~ /^(dp_|__odr_asan[.]dp_|__gcov_|mangle_path$|pg_finfo_dp_|Pg_magic_func$|_PG_init$)/ {print $3}')
  [ -s "$library" ] && [ -z "$lines" ]
  result $? "every symbol that leaves the library begins with dp_" "$lines"

  lines=$(arrows=$PWD/test/env/arrows.pl && cd "$("$cluster" home)/src" && "$arrows" 2>&1)
  [ -z "$lines" ]
  result $? "rooms of src/ use only those below them, and the kit names no pattern" "$lines"

  "$cluster" psql -qc 'DROP DATABASE IF EXISTS dp_comments' -c 'CREATE DATABASE dp_comments' >/dev/null 2>&1
  lines=$(PGDATABASE=dp_comments bounded 60 "$cluster" psql -qAt -v ON_ERROR_STOP=1 \
    -c 'CREATE EXTENSION docpatterns' -f test/env/uncommented.sql 2>&1)
  [ -z "$lines" ]
  result $? "every public SQL object has a comment" "$lines"
  "$cluster" psql -qc 'DROP DATABASE dp_comments' >/dev/null 2>&1

  lines=$(grep -nE '^.{101}' sql/*.sql sql/*/*.sql)
  [ -z "$lines" ]
  result $? "lines of sql/ have at most 100 columns" "$lines"

  lines=$(grep -nE 'LANGUAGE plpgsql' sql/*.sql sql/*/*.sql)
  [ -z "$lines" ]
  result $? "functions in PL/pgSQL have the language docpatterns" "$lines"
}

# Runs pg_regress or the isolation tester (both print one line a test, spelled differently from version to version) for
# each test by itself, so that a test that hangs or kills the server costs one test.
run_regress() {  # run_regress PROGRAM SUITE TEST...
  local program=$1 suite=$2 input=test name dir
  [ "$suite" = regress ] || input=test/$suite
  shift 2
  for name; do
    dir=$out/$suite/$name
    mkdir -p "$dir"
    # a test that was cut short may have left a session behind
    "$cluster" psql -qc "DROP DATABASE IF EXISTS dp_$suite WITH (FORCE)" >/dev/null 2>&1
    if bounded "$limit" "$cluster" run "$program" --inputdir="$input" --outputdir="$dir" --bindir= \
         --dbname="dp_$suite" --load-extension=docpatterns "$name" >"$dir/log" 2>&1; then
      result 0 "$suite $name"
    elif [ -s "$dir/regression.diffs" ]; then
      result 1 "$suite $name" "$(head -n "${DIFF_LINES:-60}" "$dir/regression.diffs")"
    else
      result 1 "$suite $name" "$(tail -n 15 "$dir/log")"
    fi
    survive
  done
}

# A test that took the server down fails by itself (its connection broke). The next ones wait until it has recovered, and
# get a new one when it does not.
survive() {
  local i
  for i in {1..30}; do
    "$cluster" run pg_isready -q && return
    sleep 0.5
  done
  result 1 "the server came back" "$(tail -n 15 "$("$cluster" log)")"
  "$cluster" destroy
  bounded 120 "$cluster" start
}

tester() {
  echo "$(dirname "$("${PG_CONFIG:-pg_config}" --pgxs)")/../test/$1"
}

suite_regress() {
  # shellcheck disable=SC2046
  run_regress "$(tester regress/pg_regress)" regress $(stems test/sql/*.sql)
}

suite_isolation() {
  # shellcheck disable=SC2046
  run_regress "$(tester isolation/pg_isolation_regress)" isolation $(stems test/specs/*.spec)
}

# Reads TAP from a file: every assertion counts; a wrong plan, a bad exit status or no plan is a failure too.
read_tap() {  # read_tap NAME FILE STATUS
  local ok not_ok plan lines
  ok=$(grep -cE '^ok\b' "$2")
  not_ok=$(grep -cE '^not ok\b' "$2")
  plan=$(sed -n 's/^1\.\.\([0-9][0-9]*\).*/\1/p' "$2" | head -1)
  if [ "$not_ok" = 0 ] && [ "$3" = 0 ] && [ "${plan:-none}" = "$ok" ]; then
    passed=$((passed + ok))
    echo "ok       $1 ($ok)$([ "$took" -lt 10 ] || echo " in $took s")"
    return
  fi
  passed=$((passed + ok)) failed=$((failed + (not_ok > 0 ? not_ok : 1)))
  echo "NOT OK   $1 (planned ${plan:-nothing}, $ok passed, $not_ok failed, exit status $3)"
  lines=$(failed_assertions "$2" | head -n "${DIFF_LINES:-60}")
  [ -n "$lines" ] || lines=$(tail -n 10 "$2")
  printf '%s\n' "$lines" | sed 's/^/           /'
  echo "NOT OK   $1 (planned ${plan:-nothing}, $ok passed, $not_ok failed, exit status $3)" >>"$out/failures"
  printf '%s\n' "$lines" | sed 's/^/           /' | shorten >>"$out/failures"
}

suite_pgtap() {
  local name status
  mkdir -p "$out/pgtap"
  for name in $(stems test/pgtap/*.sql); do
    "$cluster" psql -q -c 'DROP DATABASE IF EXISTS dp_pgtap WITH (FORCE)' -c 'CREATE DATABASE dp_pgtap' >/dev/null 2>&1
    PGDATABASE=dp_pgtap "$cluster" psql -q -c 'CREATE EXTENSION docpatterns' -c 'CREATE EXTENSION pgtap' >/dev/null
    PGDATABASE=dp_pgtap bounded "$limit" "$cluster" psql -qAt -v ON_ERROR_STOP=1 -f "test/pgtap/$name.sql" \
      >"$out/pgtap/$name.tap" 2>&1
    status=$?
    read_tap "pgtap $name" "$out/pgtap/$name.tap" "$status"
    survive
  done
  "$cluster" psql -q -c 'DROP DATABASE IF EXISTS dp_pgtap WITH (FORCE)' >/dev/null 2>&1
}

# Each script runs with the cluster's environment, DP_CLUSTER (the cluster.sh that it may crash and restart), DP_TOP and a
# directory of its own, DP_WORK.
suite_citus() {
  local name sql status lack citus=$PWD/test/env/citus.sh
  lack=$("$citus" missing) && { echo "SKIP     citus: $lack"; return; }
  mkdir -p "$out/citus"
  trap 'CLUSTER=citus "$citus" stop; finish 1' EXIT
  CLUSTER=citus "$citus" destroy
  CLUSTER=citus bounded 600 "$citus" start || { result 1 "Citus starts"; return; }
  for name in $(stems test/citus/*.sql); do
    CLUSTER=citus "$citus" database dp_citus
    CLUSTER=citus PGDATABASE=dp_citus bounded "$limit" "$citus" psql -qAt -v ON_ERROR_STOP=1 \
      -f "test/citus/$name.sql" >"$out/citus/$name.tap" 2>&1
    status=$?
    read_tap "citus $name" "$out/citus/$name.tap" "$status"
  done
  for name in $(stems test/citus/*.sh); do
    mkdir -p "$out/citus/$name"
    CLUSTER=citus "$citus" database dp_citus
    CLUSTER=citus PGDATABASE=dp_citus DP_TOP=$PWD DP_WORK=$out/citus/$name \
      bounded "$limit" "$citus" run bash "test/citus/$name.sh" >"$out/citus/$name.tap" 2>&1
    status=$?
    read_tap "citus $name" "$out/citus/$name.tap" "$status"
  done
  for name in $(stems $(grep -l '^```sql citus$' docs/*.md)); do
    page_sql "docs/$name.md" 'sql citus' "$out/citus" '' && CLUSTER=citus "$citus" database dp_docs
    CLUSTER=citus page_run "docs/$name.md" "$citus" "citus docs/$name.md"
  done
  CLUSTER=citus "$citus" stop
  trap 'finish 1' EXIT
}
suite_t() {
  local name status
  for name in $(stems test/t/*.sh); do
    mkdir -p "$out/t/$name"
    DP_TOP=$PWD DP_CLUSTER=$cluster DP_WORK=$out/t/$name \
      bounded "$limit" "$cluster" run bash "test/t/$name.sh" >"$out/t/$name.tap" 2>&1 </dev/null
    status=$?
    read_tap "t $name" "$out/t/$name.tap" "$status"
    survive
  done
}

suite_fuzz() {
  local status
  [ -e test/fuzz/run.sh ] || return 0
  mkdir -p "$out/fuzz"
  DP_TOP=$PWD DP_CLUSTER=$cluster DP_WORK=$out/fuzz bounded $((limit * 3)) "$cluster" run bash test/fuzz/run.sh "${FUZZ:-smoke}" ${SEED:+"$SEED"} >"$out/fuzz/log" 2>&1 </dev/null
  status=$?
  result "$status" "fuzz ${FUZZ:-smoke}: $(tail -n 1 "$out/fuzz/log" | cut -c 1-100)" "$(tail -n 20 "$out/fuzz/log")"
  survive
}

# Writes the SQL of a page to a file, $sql: that of blocks ```FENCE and of comments "<!-- FENCE". Exit status 1 if there is none.
page_sql() {  # page_sql PAGE FENCE DIRECTORY EXTENSIONS
  local page=$1 name=${1%.md}
  name=${name//\//_}
  mkdir -p "$3/$name"
  sql=$3/$name/$(basename "$page")
  awk -v page="$page" -v fence="$2" -v extensions=" $4 " -v sql="$sql" '
    /^#/ {skip = 0}
    on && /^CREATE EXTENSION/ {
      name = substr($NF, 1, length($NF) - 1)
      skip = !index(extensions, " " name " ")
      if (skip) print "SKIP     docs " page " from line " NR ": the extension " name " is not installed"
    }
    /^```$/ && split(block, part, /\);\n*-- becomes\n/) == 2 {
      sub(/.*SELECT collection_aggregate\(/, "", part[1])
      sub(/;\n.*/, "", part[2])
      check = "CALL pg_temp.becomes($becomes$" part[2] "$becomes$, collection_aggregate_sql(" part[1] "));"
      gsub(/\n/, " ", check)
    }
    /^```$/ || /^-->$/ {on = 0}
    {print skip ? "" : on ? $0 : $0 == "```" fence ? "\\echo @@@" NR : check >sql; block = on ? block $0 "\n" : ""; check = ""}
    $0 == "```" fence || $0 == "<!-- " fence {on = 1}' "$page"
  grep -q . "$sql"
}

# Runs it in the database dp_docs, and says what failed, what is not true at the end, and what the page has but was not printed.
page_run() {  # page_run PAGE CLUSTER NAME
  local page=$1 lines states printed
  (cd "${sql%/*}" && PGDATABASE=dp_docs PGOPTIONS='-c client_min_messages=warning -c timezone=UTC -c jit=off -c max_parallel_workers_per_gather=0' bounded "$limit" "$2" psql -qAt -f "$OLDPWD/test/env/becomes.sql" -f "$sql" >log 2>&1)
  lines=$(grep -E "^psql:.*(ERROR|FATAL|error):|connection to server was lost" "${sql%/*}/log" | sed "s|^psql:.*/||" |
    while IFS=: read -r file line message; do sed -n "${line}p" "$page" | grep -q -- '-- ERROR' || echo "$file:$line:$message"; done)
  states=$(PGDATABASE=dp_docs "$2" psql -qAt -c 'SELECT * FROM pattern_check()' 2>&1)
  printed=$(test/env/doctest.pl "$page" "${sql%/*}/log" 2>&1)
  [ -z "$lines$states$printed" ]
  result $? "$3" "$lines" "$states" "$printed"
}

# Each page of the docs in a database of its own: what stands in its blocks of SQL, and in comments that begin with "<!-- sql" and
# make what the page takes for granted. No statement may fail unless its last line says "-- ERROR", and the patterns that were
# declared are true at the end. Line numbers in messages are those of the page. What stands in blocks of text is what the SQL before
# them prints, and the SQL after "-- becomes" what the pipeline runs. The rest of a section that creates an extension that is not there is skipped.
suite_docs() {
  local page sql lines extensions
  lines=$(awk -f test/env/links.awk README.md CONTRIBUTING.md docs/*.md docs/*/*.md
    grep -oE '`(src|test|sql|bench)/[a-z0-9_/]+[.][a-z]+`' README.md CONTRIBUTING.md docs/*.md docs/*/*.md | tr -d '`' |
      while IFS=: read -r page file; do [ -e "$file" ] || echo "$page: $file"; done)
  [ -z "$lines" ]
  result $? "the links and the source files that the docs name exist" "$lines"
  "$cluster" psql -q -c 'DROP DATABASE IF EXISTS dp_docs WITH (FORCE)' -c 'CREATE DATABASE dp_docs' >/dev/null 2>&1
  lines=$(export PGDATABASE=dp_docs && "$cluster" psql -q -c 'CREATE EXTENSION docpatterns' && "$cluster" run test/env/reference.pl docs/*.md docs/*/*.md 2>&1)
  [ -z "$lines" ]
  result $? "every function has an entry with its signature and an example (make reference)" "$lines"
  mkdir -p "$out/pictures" && cp docs/pictures/*.txt "$out/pictures" && docs/pictures/draw.pl "$out"/pictures/*.txt
  lines=$(cd "$out/pictures" && for page in *.svg; do cmp "$page" "$OLDPWD/docs/pictures/$page" 2>&1; done
    cd "$OLDPWD/docs/patterns" && for page in *.md; do sed -n 3p "$page" | grep -q "(../pictures/${page%.md}.svg)" || echo "$page does not begin with its picture"; done)
  [ -z "$lines" ]
  result $? "the pictures of the docs are drawn from their texts (make pictures)" "$lines"
  extensions=$("$cluster" psql -qAt -c "SELECT string_agg(name, ' ') FROM pg_available_extensions")
  for page in README.md docs/*.md docs/*/*.md; do
    # shellcheck disable=SC2053
    [[ ${page##*/} == ${FILTER:-*}.md ]] || continue
    page_sql "$page" sql "$out/docs" "$extensions" || continue
    "$cluster" psql -q -c 'DROP DATABASE IF EXISTS dp_docs WITH (FORCE)' -c 'CREATE DATABASE dp_docs' >/dev/null 2>&1
    grep -q '^CREATE EXTENSION docpatterns;' "$sql" || PGDATABASE=dp_docs "$cluster" psql -q -c 'CREATE EXTENSION docpatterns'
    page_run "$page" "$cluster" "docs $page"
    survive
  done
  "$cluster" psql -q -c 'DROP DATABASE IF EXISTS dp_docs WITH (FORCE)' >/dev/null 2>&1
}

# The pages for programs: each section is run as a program, with the driver itself. Then the programs in test/clients, which
# print TAP. A program whose driver is not there is skipped.
suite_clients() {
  local name ext dir lack status lines list
  mkdir -p "$out/clients"
  # shellcheck disable=SC2046
  list=$(test/env/clients.pl "$out/clients" $(stems docs/clients/*.md | sed 's|.*|docs/clients/&.md|') 2>"$out/clients/errors")
  [ ! -s "$out/clients/errors" ]
  result $? "the pages for clients show their files" "$(cat "$out/clients/errors")"
  for name in $(stems test/clients/*.{py,mjs}); do
    dir=$out/clients/$name list+=" $name"
    mkdir -p "$dir"
    cp test/clients/*.json test/clients/models/*.py "$dir"
    for ext in py mjs; do
      [ ! -e "test/clients/$name.$ext" ] || { cp "docs/clients/"*".$ext" "$dir" && cp "test/clients/$name.$ext" "$dir/main.$ext"; }
    done
  done
  for name in $list; do
    dir=$out/clients/$name
    lack=$(test/env/client.sh lacks "$dir" 2>&1 | sort -u | paste -sd' ')
    [ -z "$lack" ] || { echo "SKIP     clients $name: $lack not found"; continue; }
    "$cluster" psql -q -c 'DROP DATABASE IF EXISTS dp_clients WITH (FORCE)' -c 'CREATE DATABASE dp_clients' >/dev/null 2>&1
    PGDATABASE=dp_clients "$cluster" psql -q -c 'CREATE EXTENSION docpatterns'
    PGDATABASE=dp_clients bounded "$limit" "$cluster" run test/env/client.sh run "$dir" >"$dir/printed" 2>"$dir/errors"
    status=$?
    if [ -e "$dir/expected" ]; then
      lines=$(cat "$dir/errors"; diff -U1 "$dir/expected" "$dir/printed")
      [ "$status" = 0 ] && cmp -s "$dir/expected" "$dir/printed"
      result $? "clients $name in $took s" "$lines"
    else
      cat "$dir/errors" >>"$dir/printed"
      read_tap "clients $name" "$dir/printed" "$status"
    fi
    lines=$(PGDATABASE=dp_clients "$cluster" psql -qAt -c 'SELECT * FROM pattern_check()' 2>&1)
    [ -z "$lines" ] || result 1 "what clients $name declared is true" "$lines"
    survive
  done
  "$cluster" psql -q -c 'DROP DATABASE IF EXISTS dp_clients WITH (FORCE)' >/dev/null 2>&1
}
