#!/bin/bash
# The guided tour: Debian's package catalogue as documents in a private cluster, the outlier pattern and indexes on it,
# measurements of this machine's processes, taken while you watch, in buckets, directories as a tree, packages as a graph, and
# what is derived from packages: copies, totals, tops, roll-ups, a counter; then the documents people know, in the other patterns.
# What it shows is what the database answers; nothing is written down beforehand. The cluster keeps running afterwards.
#
#   FAST=1            five scenes with a fifth of the catalogue
#   DEMO_SECONDS=10   how long processes are measured
#   PACKAGES=FILE     another catalogue, in the form of /var/lib/dpkg/status
set -eu
cd "$(dirname "$0")/.."
export CLUSTER=demo LC_ALL=C.UTF-8 PGTZ=UTC
cluster=test/env/cluster.sh
. demo/lib.sh

started=
failed() {
  status=$?
  [ $status = 0 ] || echo "the demo stopped before its end" >&2
  [ $status = 0 ] || [ -z "$started" ] || "$cluster" stop
}
trap failed EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

printf '%s\n' "${bold}docpatterns: Debian's package catalogue, and this machine's processes${plain}"
echo
echo "Building, and starting a private PostgreSQL in"
echo "$("$cluster" home) ..."
started=1
"$cluster" start
echo "$("$cluster" run postgres --version), which nobody else uses."
"$cluster" psql -q -v ON_ERROR_STOP=1 -c 'SET client_min_messages = warning' -c 'DROP EXTENSION IF EXISTS docpatterns CASCADE' \
  -c 'DROP TABLE IF EXISTS packages, plain_processes, directories, maintainers, sections, packages_by_section, pages, screenings, app, tagged, received, people, athletes, crm, billing, support, customers_360, policies, catalog, books, readers, reviews, patients, doctors CASCADE' -c 'CREATE EXTENSION docpatterns'

scenes='load outlier queries indexes bucket tree derived preallocated tables attribute schema_versioning kv polymorphic versioning relationships'
if [ -n "${FAST:-}" ]; then scenes='load outlier bucket tree kv' DEMO_SECONDS=${DEMO_SECONDS:-3}; fi
for scene in $scenes; do . "demo/$scene.sh"; done

title - 'See for yourself'
say "The cluster keeps running. To open psql there:"
echo
echo "  ${bold}CLUSTER=demo test/env/cluster.sh psql${plain}"
say "and to stop it: make demo-stop. README.md and the pages in docs/patterns say more."
