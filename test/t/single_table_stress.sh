#!/bin/bash
# Many clients of one single table: puts, conditional updates, transactions, purges, plain SQL through views, and templates that
# change meanwhile. Each successful increment of a version is counted beside it.
. "$DP_TOP/test/env/stress.sh"
set -u
plan 7
stress_begin dp_single_table_stress 20303
stress_setup <<'SQL'
CREATE TABLE bad (what text);
CREATE TABLE counted (id int, client int);
SELECT single_table_create('app', 2, 'ttl');
SELECT single_table_entity('app', 'user', 'USER#{id}', 'PROFILE', gsi1_pk => 'G#{g}'), single_table_entity('app', 'order', 'USER#{id}', 'ORDER#{n:04}', gsi1_pk => 'STATUS#{status}', gsi1_sk => '{at}');
SELECT single_table_put('app', 'user', bson_build('id', i, 'version', 0)) FROM generate_series(1, 5) i;
CREATE FUNCTION optimistic(u int, me int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE v int := (single_table_get('app', 'USER#' || u, 'PROFILE') -> 'version')::int;
BEGIN
  PERFORM single_table_update('app', 'USER#' || u, 'PROFILE', '{$inc: {version: 1}}', condition => bson_build('version', v));
  INSERT INTO counted VALUES (u, me);
EXCEPTION WHEN check_violation THEN NULL;
END $$;
SQL

work() {
  stress_awk "$1" "$2" '
    function user() { return r(5) }
    function order() { return "bson_build($$id$$, " user() ", $$n$$, " r(40) ", $$status$$, (ARRAY[NULL, $$paid$$, $$open$$])[" r(3) "], $$at$$, " r(9) (r(5) == 1 ? ", $$ttl$$, clock_timestamp() + interval $$" r(20) " ms$$" : "") ")" }
    function key() { return "$$PK$$, $$USER#" user() "$$, $$SK$$, $$ORDER#" sprintf("%04d", r(40)) "$$" }
    function one(   w) {
      w = r(20)
      if (w <= 4) return "SELECT optimistic(" user() ", " client ");"
      if (w <= 8) return "SELECT single_table_put($$app$$, $$order$$, " order() (r(3) == 1 ? ", condition => bson_build($$PK$$, bson_build($$$exists$$, false))" : "") ");"
      if (w == 9) return "INSERT INTO app_order (doc) VALUES (" order() ") ON CONFLICT (pk, sk) DO UPDATE SET doc = EXCLUDED.doc;"
      if (w == 10) return "SELECT single_table_delete($$app$$, k ->> $$PK$$, k ->> $$SK$$) FROM bson_build(" key() ") k;"
      if (w <= 12) return "SELECT single_table_update($$app$$, k ->> $$PK$$, k ->> $$SK$$, bson_build($$$set$$, bson_build($$status$$, $$paid$$)), upsert => " (r(2) > 1 ? "true" : "false") ") FROM bson_build(" key() ") k;"
      if (w <= 15) return "SELECT single_table_transact($$app$$, bson_array(bson_build($$put$$, bson_build($$entity$$, $$order$$, $$doc$$, bson_build($$id$$, " r(2) ", $$n$$, " r(40) "))), bson_build($$put$$, bson_build($$entity$$, $$order$$, $$doc$$, bson_build($$id$$, " 2 + r(3) ", $$n$$, " r(40) ")))));"
      if (w == 16) return "SELECT single_table_purge($$app$$);"
      if (w == 17 && tag != "alone") return "UPDATE app SET doc = bson_set(doc, $$n$$, " r(40) ") WHERE (pk, sk) = (SELECT pk, sk FROM app WHERE entity = $$order$$ ORDER BY pk, sk OFFSET " r(30) " LIMIT 1);"
      if (w == 18) return "SELECT count(*) FROM single_table_query($$app$$, $$STATUS#paid$$, index => 1, take => 5);"
      if (w == 19 && client == 1) return "SELECT single_table_entity($$app$$, $$user$$, $$USER#{id}$$, $$PROFILE$$, gsi1_pk => $$" (r(2) > 1 ? "G#{g}" : "H#{version}") "$$);"
      # templates are read as they are now, rows as they were when the statement began: who changes them looks
      if (client > 1) return "SELECT 1;"
      return "INSERT INTO bad SELECT concat_ws($$ $$, $$" tag "$$, x) FROM pattern_check($$app$$) x;"
    }
    BEGIN {
      for (;;) {
        if (tag == "alone") print one()
        else {
          printf "%s%s", level(), one()
          if (r(6) == 1) printf " SAVEPOINT a; %s ROLLBACK TO a;", one()
          if (r(3) == 1) printf " %s", one()
          print r(12) == 1 ? " ROLLBACK;" : " COMMIT;"
        }
      }
    }'
}
stress_run alone $(((seconds + 1) / 2))
stress_run mixed $(((seconds + 1) / 2))
ask "SELECT format('# %s items, %s increments', (SELECT count(*) FROM app), (SELECT count(*) FROM counted))"
is "$(stress_count 40P01 alone)" 0 'no statement waited for one that waited for it'
is "$(stress_others 'ERROR:  23514: the condition.*\|ERROR:  23505.*app_pkey.*\|ERROR:  55000: conflicting row is not visible.*\|ERROR:  44000: new row violates check.*')" '' 'errors are conditions, keys that are taken and serialization failures'
is "$(ask 'SELECT * FROM bad LIMIT 3')" '' 'the items were true at any moment'
is "$(ask "SELECT single_table_purge('app') >= 0 AND (SELECT count(*) = 0 FROM pattern_check())")" t 'and are true afterwards'
is "$(ask "SELECT string_agg(id || ':' || n, ' ' ORDER BY id) FROM (SELECT (doc -> 'id')::int AS id, (doc -> 'version')::int AS n FROM app_user) v")" \
  "$(ask "SELECT string_agg(i || ':' || (SELECT count(*) FROM counted WHERE id = i), ' ' ORDER BY i) FROM generate_series(1, 5) i")" 'no increment was lost'
is "$(ask "SELECT count(*) FROM app WHERE (gsi1_pk IS NOT NULL) <> (doc @@ '{status: {\$ne: null}, at: {\$ne: null}}') AND entity = 'order'")" 0 'the index has the items with a status and a time'
ok 'much was written' [ "$(ask "SELECT count(*) > 50 FROM counted")" = t ]
stress_end
