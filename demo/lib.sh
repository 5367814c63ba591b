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

title() {
  printf '\n%s%s%s\n%s\n' "$bold" "$1" "$plain" "$(printf '%*s' "${#1}" '' | tr ' ' -)"
}

say() {
  echo
  printf '%s\n' "$*" | fold -s -w 78 | sed 's/ *$//'
}

# Prints SQL as it would be typed, then its answer, cut where the terminal ends. "show -t" shows a single value as it is.
show() {
  local form=(-P footer=off -P null=-)
  if [ "$1" = -t ]; then form=(-At); shift; fi
  echo
  printf '%s\n' "$1" | sed "s/^/  $bold/; s/\$/$plain/"
  "$cluster" psql -q -v ON_ERROR_STOP=1 "${form[@]}" -c "$1" 2>&1 | sed '/^$/d' |
    awk -v bar="  $dim|$plain " '{ print bar (length($0) > 76 ? substr($0, 1, 75) "~" : $0) }'
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
