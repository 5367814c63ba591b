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

# Prints SQL as it would be typed, then its answer. "show -x" shows a row as a list, "show -t" values as they are. Lines are cut
# where the terminal ends; values and errors are broken there instead. On a terminal a clock runs beside a long statement.
show() {
  local form=(-P footer=off -P null=-) fold='' level=warning clock=''
  case $1 in
    -x) form+=(-x); shift ;;
    -t) form=(-At) fold=1; shift ;;
    CALL*) level=notice ;;
  esac
  echo
  printf '%s\n' "$1" | fold -s -w 78 | sed "s/^/  $bold/; s/ *\$/$plain/"
  if [ -t 1 ]; then
    (s=0; while sleep 2; do s=$((s + 2)); printf '\r  %s%s seconds ...%s ' "$dim" $s "$plain"; done) &
    clock=$!
  fi
  PGOPTIONS="-c client_min_messages=$level" "$cluster" psql -q -v ON_ERROR_STOP=1 "${form[@]}" -c "$1" 2>&1 |
    fold=$fold erase=${clock:+$'\r\e[K'} bar="  $dim|$plain " perl -CSDA -ne 'BEGIN { $| = 1 }
      next if /^$/; chomp; s/^NOTICE:  //;
      print "$ENV{erase}$ENV{bar}$_\n"
        for $ENV{fold} || /^(ERROR|DETAIL|HINT|CONTEXT):/ ? /(.{1,75}(?:\s|$)|.{76})/g : substr $_, 0, 76'
  set -- "${PIPESTATUS[0]}"
  [ -z "$clock" ] || { kill "$clock"; wait "$clock" || printf '\r\e[K'; } 2>/dev/null
  return "$1"
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

# Fails loudly unless what is declared on a table is true.
all_true() {  # all_true TABLE WHAT
  show "SELECT * FROM pattern_check('$1')"
  [ "$(ask "SELECT count(*) FROM pattern_check('$1')")" = 0 ] || { echo "pattern_check found violations"; exit 1; }
  printf '  %s\n' "${green}$(ask "SELECT count(*) FROM $1") $2 checked, 0 violations${plain}"
}
