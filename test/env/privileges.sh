#!/bin/sh
# Writes the table of docs/privileges.md, from the catalogue in test/env/privileges.sql. The cluster of test/env/cluster.sh has to run.
set -eu
cd "$(dirname "$0")/../.."
psql="test/env/cluster.sh psql -q"
export PGDATABASE=dp_privileges
PGDATABASE=postgres $psql -c "DROP DATABASE IF EXISTS $PGDATABASE" -c "CREATE DATABASE $PGDATABASE" 2>/dev/null
$psql -c 'CREATE EXTENSION docpatterns' -c 'CREATE EXTENSION pgtap'
table=$($psql -At -v ON_ERROR_STOP=1 -v write= -f test/pgtap/privileges.sql | sed -n 's/^page: //p')
PGDATABASE=postgres $psql -c "DROP DATABASE $PGDATABASE"
[ -n "$table" ]
page=$(sed '/^|/d' docs/privileges.md)
printf '%s\n\n%s\n' "$page" "$table" | sed '/^| needs /a |---|---|' >docs/privileges.md
