#!/bin/bash
# The page about performance that bench/report.sh makes of what a run has kept, and its charts.
. "$DP_TOP/test/env/tap.sh"
set -u
plan 14
cd "$DP_WORK" || exit 1
t=$'\t'
cat >results <<EOS
@date${t}2026-01-02
@scale${t}100
@rounds${t}5
@seconds${t}5
@only${t}*
@machine${t}A machine
@system${t}A system
@versions${t}PostgreSQL 15
types${t}->> a & b, <S>${t}0.5${t}0.8${t}low${t}0.4${t}0.6${t}12.34${t}0.00617
types${t}no bar${t}1.234567${t}${t}low${t}${t}
types${t}nothing measured${t}${t}0.5${t}low${t}${t}
kv${t}rate | of two${t}0.4${t}0.6${t}high${t}${t}
outlier${t}far below${t}2.5e-05${t}1.5${t}low${t}${t}
query_table${t}orders one by one${t}1.28${t}1.3${t}high${t}${t}
query_table${t}orders a hundred at once, beside no query table${t}0.3${t}0.6${t}high${t}${t}
elsewhere${t}met to the digit${t}3${t}3${t}high${t}${t}
EOS
ok 'the report is made' "$DP_TOP/bench/report.sh" results "$PWD"
is "$(grep -cF '| bars | 3 of 6 met |' performance.md)" 1 'bars that were met are counted'
is "$(grep '^- ' performance.md)" '- Key-value structures, rate | of two: 0.400, the bar is 0.6
- Query tables, orders one by one: 1.28, the bar is 1.3; within 5 %
- Query tables, orders a hundred at once, beside no query table: 0.300, the bar is 0.6; two more rows are written for each, in two more tables with an index' 'what missed its bar is said first, and why'
is "$(grep -F '| ->> a & b, <S> |' performance.md)" '| ->> a & b, <S> | 12.3 | 0.0062 | 0.500 | 0.400 to 0.600 | at most 0.8 | met |' 'a row with rounds and figures'
is "$(grep -F '| no bar |' performance.md)" '| no bar |  |  | 1.23 |  |  |  |' 'a row without a bar'
is "$(grep -cF 'nothing measured' performance.md)" 0 'no row without a ratio'
is "$(grep -F 'rate \|' performance.md)" '| rate \| of two |  |  | 0.400 |  | at least 0.6 | missed |' 'a rate that is wanted high, and a bar in a name'
is "$(grep -c '^## elsewhere$' performance.md)" 1 'an area that the report does not know is there under its own name'
is "$(grep -c 'small run' performance.md)" 0 'a whole run is no small one'
sed 's/^@scale.*/@scale'"$t"'10/' results >small && mkdir -p small.d && "$DP_TOP/bench/report.sh" small "$PWD/small.d"
is "$(grep -c 'small run.* (10 %' small.d/performance.md)" 1 'a small run is said to be one'
is "$(grep -c '| met |\|| missed |\|^Missed' small.d/performance.md)" 0 'and no bar of it is judged'
# elements are closed, nothing is written that XML does not allow, no number is beside the picture
is "$(cat performance-*.svg | tr -d '\n' | grep -oE '<[^>]*>' | grep -vE '^<(/?(svg|title|style|text)|rect|line)( [a-zA-Z0-9-]+="[^"<>&]*")*/?>$' | grep -v '^</')" '' 'elements of the charts are well formed'
is "$(grep -c -- '-&gt;&gt; a &amp; b, &lt;S&gt;' performance-documents.svg)" 1 'names are escaped in charts'
is "$(cat performance-*.svg | grep -oE ' (x|x1|x2|width)="[^"]*"' | sed 's/.*="//; s/"//' | awk '$0 !~ /^[0-9.]+$/ || $0 > 840')" '' 'bars and texts begin within the charts'
