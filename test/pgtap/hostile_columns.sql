-- Tables of the user's own whose columns are called what our statements call things.
--
-- Each pattern is declared on such tables, written to, read, checked, repaired, built, converted and disabled. The statements that
-- it makes must mean what they meant to mean: no column is ambiguous or in the place of another.
SET client_min_messages = warning;
SELECT plan(5);

CREATE SCHEMA hostile_columns;
SET search_path = hostile_columns, public;
CREATE FUNCTION columns(key text) RETURNS text LANGUAGE sql AS $$
  SELECT format('%I serial PRIMARY KEY, document bson NOT NULL, ', key) || string_agg(format('%I int', c), ', ')
  FROM unnest('{a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,id,key,link,owner,element,elements,complete,value,path,name,hash,slot,holder,until,position,operation,doc,paths,at,
                transaction,command,number,rel,what,expected,found,present,ids,first,bytes,whole,own,type,kind,options,score,member,zset,level,amount,parent,parents,child,identity,problem,
                lacks_self,base,source_key,wrong,claims,key1,side,missing,edge,many,gone,written,made,links,row_number,count,max}'::text[]) c
  WHERE c <> key
$$;
CREATE TABLE failed (key text, sql text, error text);
CREATE FUNCTION run(key text, sql text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE sql;
EXCEPTION WHEN OTHERS THEN
  INSERT INTO failed VALUES (key, sql, SQLSTATE || ' ' || SQLERRM);
END
$$;
CREATE FUNCTION all_of(key text) RETURNS void LANGUAGE sql AS $$
  SELECT run(key, replace(replace(sql, 'COLUMNS', columns(key)), 'THEKEY', quote_ident(key))) FROM unnest(ARRAY[
    'CREATE TABLE one (COLUMNS)', 'CREATE TABLE two (COLUMNS)', 'CREATE TABLE three (COLUMNS)', 'CREATE TABLE four (COLUMNS)',
    $s$SELECT query_table_create('shown', 'one', '{v}', '{t: -1}', fields => '{s: 1, key: 1, id: "$w"}')$s$, $s$SELECT query_table_create('top', 'one', '{v,key}', '{t: 1, s: -1}', limit_per_partition => 2)$s$,
    $s$SELECT change_feed_enable('one')$s$, $s$SELECT preallocated_enable('one', 'slots', preallocated_pool(3), store => 'slots')$s$,
    $s$SELECT preallocated_enable('one', 'grid', preallocated_grid('{2,2}'), store => 'document', available_field => 'free')$s$,
    $s$SELECT relationship_enable('one', 'r', 'two', 's', missing => 'allow')$s$, $s$SELECT relationship_enable('one', 'friends', 'one', 'friends')$s$,
    $s$SELECT kv_create('hostile_space')$s$, $s$SELECT kv_leaderboard('hostile_space', 'board', 'one', 'score')$s$,
    $s$SELECT single_collection_enable('three', id_fields => '{x: "x"}', self_related => '{x}', types => '{x,y}')$s$, $s$SELECT single_collection_enable('two', key_field => 'k', missing => 'allow')$s$,
    $s$INSERT INTO one (THEKEY, document) VALUES (1, '{v: 1, key: 2, t: 3, s: 4, w: 5, score: 6, r: [1], friends: [1]}'), (2, '{v: 1, key: 2, t: 4, s: 4, w: 5, score: 7, r: [1]}'), (3, '{v: 1, key: 2, t: 5, s: 4, w: 5, score: 8}')$s$,
    $s$INSERT INTO two (THEKEY, document) VALUES (1, '{k: "a"}'), (2, '{k: "a/b", s: [2]}')$s$, $s$INSERT INTO three (THEKEY, document) VALUES (1, '{docType: "x", x: 1}'), (2, '{docType: "y", relatedTo: [1]}')$s$,
    $s$SELECT preallocated_claim('one', 1, '{1}', 'x'::text, name => 'slots'), preallocated_claim('one', 1, '{A1}', 'x'::text, '1 h', name => 'grid')$s$,
    $s$SELECT preallocated_slots('one', 1, 'slots'), preallocated_find('one', 1, 2, 'slots'), preallocated_confirm('one', 1, '{A1}', 'x'::text, name => 'grid')$s$,
    'UPDATE one SET THEKEY = 30 WHERE THEKEY = 3', $s$UPDATE one SET document = bson_set(document, 'v', 2)$s$, 'DELETE FROM one WHERE THEKEY = 2',
    $s$SELECT query_table_read('shown', 2), query_table_read('top', 2, 2)$s$, $s$SELECT change_feed_read('one')$s$, $s$SELECT change_feed_purge('one', until => 1)$s$, $s$SELECT single_collection_get('three', 1)$s$,
    'SELECT * FROM three_x', $s$UPDATE one_whole SET document = bson_set(document, 'n', 1)$s$,
    $s$INSERT INTO failed SELECT 'check', c::text FROM pattern_check() c$s$, $s$SELECT pattern_repair(d.rel, d.name) FROM pattern_list() d WHERE d.rel IN ('one'::regclass, 'two', 'three')$s$,
    $s$SELECT pattern_disable('one', d.name) FROM pattern_list() d WHERE d.rel = 'one'::regclass$s$,
    $s$UPDATE two SET document = bson_set(document, 'up', 1)$s$, $s$SELECT relationship_advise('one', 'two', 'up'), relationship_advise('two', 'one', ids_field => 'nothing')$s$,
    $s$SELECT relationship_embed('one', 'two', 'up', 'twos', true)$s$, $s$SELECT relationship_link('one', 'twos', 'hostile_columns.four', 'up')$s$, $s$SELECT relationship_embed('one', 'four', 'up', 'twos')$s$,
    $s$SELECT relationship_link('one', 'twos', 'hostile_columns.linked', ids_in => 'parent')$s$, $s$SELECT relationship_embed('one', 'linked', into_field => 'twos')$s$,
    $s$SELECT single_collection_split('three')$s$, $s$SELECT bson_lookup('one', 'v', 2)$s$]) WITH ORDINALITY AS u (sql, n) ORDER BY n
$$;
-- and built over rows that are there
CREATE FUNCTION all_again() RETURNS void LANGUAGE sql AS $$
  SELECT run('again', sql) FROM unnest(ARRAY[$s$SELECT query_table_create('shown', 'one', '{v}', '{t: -1}', fields => '{s: 1}')$s$, $s$SELECT query_table_create('top', 'one', '{v}', '{t: -1}', limit_per_partition => 1)$s$,
    $s$SELECT preallocated_enable('one', 'seats', preallocated_pool(3), store => 'slots')$s$, $s$SELECT relationship_enable('one', 'r', 'two', 's', missing => 'allow')$s$]) sql
$$;
CREATE PROCEDURE build() LANGUAGE plpgsql AS $$
BEGIN
  CALL pattern_build('one', 'shown');
  CALL pattern_build('one', 'top');
  CALL pattern_build('one', 'seats');
  CALL pattern_build('one', 'r');
END
$$;

SELECT all_of('id'), all_again() \g /dev/null
CALL build();
SELECT is_empty('SELECT * FROM failed', 'with a key called id nothing fails');
SELECT is((SELECT bson_array_length(document -> 'twos') FROM one WHERE id = 1), 2, 'what was linked and embedded is there');
SELECT is_empty('SELECT * FROM pattern_check()', 'pattern_check has nothing to report');
DROP TABLE one, two, three, four, x, y, linked CASCADE;
DROP SCHEMA hostile_space CASCADE;
SELECT all_of('v'), all_again() \g /dev/null
CALL build();
SELECT is_empty('SELECT * FROM failed', 'with a key called v nothing fails');
SELECT is_empty('SELECT * FROM pattern_check()', 'pattern_check has nothing to report');

DROP TABLE one, two, three, four, x, y, linked CASCADE;
DROP SCHEMA hostile_columns, hostile_space CASCADE;
SELECT * FROM finish();
