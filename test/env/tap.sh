# For the scripts in test/t, which source it: bash functions that print TAP.
#
#   . "$DP_TOP/test/env/tap.sh"
#   plan 3
#   is "$(psql -XAtc 'SELECT 1')" 1 'one is one'
#   ok 'files are equal' cmp -s a b          # passes when the command does
tap_count=0

plan() { echo "1..$1"; }

# A failed test says what it got and expected, or which command failed.
tap() {  # tap STATUS NAME LINE...
  local status=$1 name=$2
  shift 2
  tap_count=$((tap_count + 1))
  if [ "$status" = 0 ]; then
    echo "ok $tap_count - $name"
  else
    echo "not ok $tap_count - $name"
    printf '%s\n' "$@" | cut -c 1-2000 | head -n 40 | sed 's/^/#   /'
  fi
}

ok() {  # ok NAME COMMAND...
  local name=$1
  shift
  "$@"
  tap $? "$name" "failed: $*"
}

is() {  # is GOT EXPECTED NAME
  [ "$1" = "$2" ]
  tap $? "$3" "got:" "$1" "expected:" "$2"
}
