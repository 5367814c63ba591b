#!/bin/bash
# Makes the page about performance, and its two charts, of what a run of the benchmark has kept.
#
#   report.sh RESULTS DIRECTORY     writes performance.md, performance-documents.svg and performance-patterns.svg
#
# RESULTS has a line for each fact of the run, "@name" and its value ("@again" names areas that were measured after it), and one
# for each comparison: area, name, ratio, bar, "low" or "high" for which side of the bar is wanted, lowest and highest ratio of a
# round, the figures of the others and of ours, with tabs between them; all after the ratio but the side may be empty. The areas
# are the stems of the files that measure. What is known of an area (its heading, what stands beside, a link, what binds where a
# bar is missed) is in report.awk; an area that is not known there is shown under its own name.
set -eu
results=$1 directory=$2
cd "$(dirname "$0")"
case $results in /*) ;; *) results=$OLDPWD/$results ;; esac
case $directory in /*) ;; *) directory=$OLDPWD/$directory ;; esac
export LC_ALL=C.UTF-8
awk -v FS='\t' -v directory="$directory" -f report.awk "$results"
