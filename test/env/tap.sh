# For the scripts in test/t, which source it: bash functions that print TAP.
#
#   . "$DP_TOP/test/env/tap.sh"
#   plan 3
#   is "$(psql -XAtc 'SELECT 1')" 1 'one is one'
#   ok 'files are equal' cmp -s a b          # passes when the command does
tap_count=0

plan() { echo "1..$1"; }

ok() {  # ok NAME COMMAND...
  local name=$1
  shift
  tap_count=$((tap_count + 1))
  if "$@"; then echo "ok $tap_count - $name"; else echo "not ok $tap_count - $name"; fi
}

is() {  # is GOT EXPECTED NAME
  ok "$3" [ "$1" = "$2" ]
  [ "$1" = "$2" ] || { printf '%s\n' "got:" "$1" "expected:" "$2" | cut -c 1-2000 | head -n 40 | sed 's/^/#   /'; }
}
