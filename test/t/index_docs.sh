#!/bin/bash
# The plans in docs/indexes.md are those that the planner makes.
. "$DP_TOP/test/env/tap.sh"
plan 1
psql -Xq -d postgres -c 'DROP DATABASE IF EXISTS dp_index_docs WITH (FORCE)' -c 'CREATE DATABASE dp_index_docs'
export PGDATABASE=dp_index_docs PGOPTIONS='-c client_min_messages=warning -c max_parallel_workers_per_gather=0 -c jit=off -c timezone=UTC'
psql -Xq -c 'CREATE EXTENSION docpatterns'
is "$(perl "$DP_TOP/test/env/doctest.pl" "$DP_TOP/docs/indexes.md" 2>&1)" '' 'docs/indexes.md shows what EXPLAIN prints'
psql -Xq -d postgres -c 'DROP DATABASE dp_index_docs WITH (FORCE)'
