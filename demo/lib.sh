# How the demo talks: headings, prose, SQL with its answer, measurements. Sourced by the tour. 80 columns; colour on a
# terminal only.
if [ -t 1 ]; then
  bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' plain=$'\e[0m'
else
  bold='' dim='' green='' plain=''
fi

# Quietly runs SQL and prints its answer as bare values.
ask() {
  "$cluster" psql -qAt -v ON_ERROR_STOP=1 -c "$1"
}

# Headings are numbered as they come; "title -" is one without a number.
titles=0
title() {
  local text
  if [ "$1" = - ]; then text=$2; else titles=$((titles + 1)) text="$titles. $1"; fi
  printf '\n%s%s%s\n%s\n' "$bold" "$text" "$plain" "$(printf '%*s' "${#text}" '' | tr ' ' -)"
}

say() {
  echo
  printf '%s\n' "$*" | fold -s -w 78 | sed 's/ *$//'
}

# Prints SQL as it would be typed, then its answer, cut where the terminal ends. "show -x" shows a row as a list, "show -t"
# values as they are, broken where the terminal ends.
show() {
  local form=(-P footer=off -P null=-) fit=(sed -u -E 's/^(.{76}).*/\1/') level=warning
  case $1 in
    -x) form+=(-x); shift ;;
    -t) form=(-At); fit=(fold -s -w 76); shift ;;
    CALL*) level=notice ;;
  esac
  echo
  printf '%s\n' "$1" | sed "s/^/  $bold/; s/\$/$plain/"
  PGOPTIONS="-c client_min_messages=$level" "$cluster" psql -q -v ON_ERROR_STOP=1 "${form[@]}" -c "$1" 2>&1 |
    sed -u -e '/^$/d' -e 's/^NOTICE:  //' | "${fit[@]}" | sed -u "s/^/  $dim|$plain /"
  return "${PIPESTATUS[0]}"
}

# The median time in milliseconds of a statement that changes nothing or is rolled back.
time_of() {
  local i
  {
    echo '\timing on'
    echo 'BEGIN;'
    for i in 1 2 3 4 5 6 7; do echo "SAVEPOINT s; \\echo run" ; echo "$1;"; echo 'ROLLBACK TO s;'; done
    echo 'ROLLBACK;'
  } | "$cluster" psql -qAt -v ON_ERROR_STOP=1 -o /dev/null |
    awk '/^run$/ { next_is = 1 } /^Time:/ && next_is { print $2; next_is = 0 }' | sort -n | sed -n 4p
}
