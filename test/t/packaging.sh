# What others make packages of: META.json says what is true and what PGXN asks for, versions agree, and `make dist` has what it takes.
. "$DP_TOP/test/env/tap.sh"
set -u
cd "$DP_TOP" || exit 1
plan 13
version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" docpatterns.control)
extensions=$(pg_config --sharedir)/extension

meta() { psql -XqAt -d postgres -v meta="$(cat META.json)" 2>&1; }
is "$(meta <<'SQL'
SELECT 'META.json has no ' || k FROM unnest('{name,version,abstract,description,maintainer,license,provides,prereqs,meta-spec}'::text[]) k WHERE NOT :'meta'::jsonb ? k
UNION ALL SELECT format('%s: no semantic version: %s', path, v) FROM (SELECT 'version', :'meta'::jsonb ->> 'version' UNION ALL SELECT key, value ->> 'version' FROM jsonb_each(:'meta'::jsonb -> 'provides')) q (path, v)
  WHERE coalesce(v, '') !~ '^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$'
UNION ALL SELECT 'no word: ' || key FROM jsonb_object_keys(:'meta'::jsonb) key WHERE key !~ '^x_' AND key <> ALL ('{abstract,description,generated_by,license,maintainer,meta-spec,name,no_index,prereqs,provides,release_status,resources,tags,version,date}')
UNION ALL SELECT 'license' WHERE :'meta'::jsonb ->> 'license' <> ALL ('{agpl_3,apache_1_1,apache_2_0,artistic_1,artistic_2,bsd,freebsd,gfdl_1_2,gfdl_1_3,gpl_1,gpl_2,gpl_3,lgpl_2_1,lgpl_3_0,mit,mozilla_1_0,mozilla_1_1,openssl,perl_5,postgresql,qpl_1_0,ssleay,sun,zlib,open_source,restricted,unrestricted,unknown}')
UNION ALL SELECT 'release_status' WHERE :'meta'::jsonb ->> 'release_status' <> ALL ('{stable,testing,unstable}')
UNION ALL SELECT 'name' WHERE :'meta'::jsonb ->> 'name' !~ '^[^\s/\\\x01-\x1f]{2,}$'
UNION ALL SELECT 'meta-spec' WHERE :'meta'::jsonb #>> '{meta-spec,version}' <> '1.0.0'
UNION ALL SELECT 'tag ' || t FROM jsonb_array_elements_text(:'meta'::jsonb -> 'tags') t WHERE t !~ '^[^/\\\x01-\x1f]+$' OR length(t) > 255
UNION ALL SELECT 'phase ' || phase FROM jsonb_object_keys(:'meta'::jsonb -> 'prereqs') phase WHERE phase <> ALL ('{configure,runtime,build,test,develop}')
UNION ALL SELECT 'relation ' || relation FROM jsonb_each(:'meta'::jsonb -> 'prereqs') p, jsonb_object_keys(p.value) relation WHERE relation <> ALL ('{requires,recommends,suggests,conflicts}')
UNION ALL SELECT key || ' lacks a file or a version' FROM jsonb_each(:'meta'::jsonb -> 'provides') WHERE NOT value ?& '{file,version}';
SQL
)" '' 'META.json is as the specification of PGXN asks'
is "$(echo "SELECT :'meta'::jsonb ->> 'name', :'meta'::jsonb ->> 'version', :'meta'::jsonb #>> '{provides,docpatterns,version}', (SELECT count(*) FROM jsonb_object_keys(:'meta'::jsonb -> 'provides'))" | meta)" "docpatterns|$version|$version|1" 'and names the version of the control file'
is "$(echo "SELECT f.value FROM jsonb_each(:'meta'::jsonb -> 'provides') p, jsonb_each_text(p.value) f WHERE f.key IN ('file', 'docfile')" | meta | while read -r file; do [ -f "$file" ] || echo "$file"; done)" '' 'the files that it names exist'
is "$(echo "SELECT :'meta'::jsonb #>> '{prereqs,runtime,requires,PostgreSQL}'" | meta | cut -d. -f1)" "$(sed 's/+//' debian/pgversions)" 'it asks for the PostgreSQL that the package is built for'
is "$(sed -n 's/^## \([0-9][^ ]*\).*/\1/p' CHANGELOG.md | head -1)" "$version" 'the changelog begins with this version'
is "$(sed -n '1s/^docpatterns (\(.*\)-[^-]*).*/\1/p' debian/changelog)" "$version" 'and so does that of the package'
is "$(sed -n 's/^Package: postgresql-\([0-9]*\)-docpatterns$/\1/p' debian/control | while read -r pg; do sed "s/PGVERSION/$pg/" debian/control.in | diff - debian/control; done)" '' 'the package is described by its template'
ok 'its rules can be run' test -x debian/rules
is "$(find "$extensions" -name 'docpatterns*' | sed 's|.*/||' | sort)" "$( { echo docpatterns.control; echo "docpatterns--$version.sql"; find sql/upgrades -name 'docpatterns--*.sql' | sed "s|.*/docpatterns--\(.*\)--.*|docpatterns--\1--$version.sql|"; } | sort)" 'what is installed: the control file, the script of this version, the ways to it'

# the distribution ---------------------------------------------------------------------------------------------------------

skip() { for name; do tap_count=$((tap_count + 1)); echo "ok $tap_count - $name # SKIP not a clone"; done; }
if ! git rev-parse -q --verify HEAD >/dev/null 2>&1 || [ ! -e .git ]; then
  skip 'make dist' 'a directory of its own' 'it has what META.json names' 'it builds'
  exit
fi
rm -rf "$DP_WORK"/docpatterns-*
is "$(make -s dist 2>&1)" "$(printf 'build/docpatterns-%s.tar.gz\nbuild/docpatterns-%s.zip' "$version" "$version")" 'make dist makes a tarball and a zip'
is "$(tar -tzf "build/docpatterns-$version.tar.gz" | cut -d/ -f1 | sort -u)" "docpatterns-$version" 'in which everything is in one directory'
tar -xzf "build/docpatterns-$version.tar.gz" -C "$DP_WORK"
dist=$DP_WORK/docpatterns-$version
is "$(for file in META.json Makefile docpatterns.control README.md LICENSE CHANGELOG.md docs/reference/README.md debian/control test/run.sh; do [ -f "$dist/$file" ] || echo "$file"; done; find "$dist" -name '*.o' -o -name '*.so' -o -name 'docpatterns--*.sql' -path "$dist/docpatterns*")" '' 'it has what it should have, and nothing that was built'
is "$(make -s -C "$dist" "docpatterns--$version.sql" 2>&1; [ -s "$dist/docpatterns--$version.sql" ] || echo 'no script')" '' 'and the install script can be made of it'
rm -rf "$dist"
