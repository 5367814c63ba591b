-- What server.c selects, and the kinds of the parameters (see there). A false in the first column is a fault.
-- share: of the iterations; what is expensive gets less.
CREATE TABLE fuzz_targets (name text PRIMARY KEY, statement text NOT NULL, kinds text[] NOT NULL, share float8 NOT NULL);

CREATE TYPE fuzz_row AS (_id int, a bson_value[], n int, i int8, name varchar(5), t timestamptz, d jsonb, price numeric(6,2), releases bson[]);

INSERT INTO fuzz_targets VALUES
-- The languages. What a filter says of a document is what its negation's negation says, and $and of it; what an update makes is a document.
('filter', $$bson_match(d, f) = bson_match(d, bson_build('$and', ARRAY[f, '{}'])) AND bson_match(d, f) = NOT bson_match(d, bson_build('$nor', ARRAY[f])) FROM (VALUES ($1, $2)) AS v (d, f)$$,
  '{document:bson,filter:bson}', 1),
('filter_random', 'bson_match($1, $2) IS NOT NULL', '{random:bson,filter:bson}', 1),
-- By a collation strings are equal if their keys are, and in an order if their keys are.
('filter_collated', $$docpatterns._match(d, f, l) = NOT docpatterns._match(d, bson_build('$nor', ARRAY[f]), l) FROM (VALUES ($1, $2, '{"$collation": {"locale": "de", "strength": 1}}'::bson)) AS v (d, f, l)$$,
  '{document:bson,filter:bson}', 0.5),
('expression_collated', $$fuzz_valid(bson_build('x', docpatterns._eval($1, $2, '{"$collation": {"locale": "sv", "strength": 2, "numericOrdering": true}}')))$$, '{document:bson,expression:bson_value}', 0.5),
('key_collated', $$sign((k[1] > k[2])::int - (k[1] < k[2])::int) = docpatterns._eval(d, '{"$cmp": ["$x", "$y"]}', '{"$collation": {"locale": "de", "strength": 2}}')::int
    FROM (SELECT ARRAY[docpatterns._collated_key($1, c), docpatterns._collated_key($2, c)], bson_build('x', $1, 'y', $2) FROM (VALUES ('{"locale": "de", "strength": 2}'::bson)) AS c (c)) AS v (k, d)$$,
  '{value:bson_value,value:bson_value}', 1),
-- The keys of an index and the query's: the planner asks all of them, GIN compares.
('filter_index', $$count(*) = (SELECT count(*) FROM fuzz_documents WHERE (doc || '{}') @@ $1) FROM fuzz_documents WHERE doc @@ $1$$, '{filter:bson}', 0.05),
('contains_index', $$count(*) = (SELECT count(*) FROM fuzz_documents WHERE (doc || '{}') @> $1) FROM fuzz_documents WHERE doc @> $1$$, '{document:bson}', 0.05),
('update', $$fuzz_valid(bson_update($1, $2, $3, $4)); fuzz_valid(bson_update($1, $2, $3)); fuzz_valid(bson_update($1, $2)); fuzz_valid(bson_update($1, $2, array_filters => $4)); fuzz_valid(bson_update($1, $2, $3, upsert => true))$$, '{document:bson,update:bson_value,filter:bson,array_filters:bson_value}', 1),
('update_random', $$fuzz_valid(bson_update($1, $2, upsert => $3))$$, '{random:bson,update:bson_value,bool:bool}', 0.5),
('expression', $$fuzz_valid(bson_build('x', bson_eval($1, $2)))$$, '{document:bson,expression:bson_value}', 2),
('expression_random', $$fuzz_valid(bson_build('x', bson_eval($1, $2)))$$, '{random:bson,expression:bson_value}', 1),
('date_format', $$fuzz_valid(bson_build('x', bson_eval('{}', bson_build('$dateToString', bson_build('date', $1, 'format', $2, 'timezone', $3))::bson_value)));
    fuzz_valid(bson_build('x', bson_eval('{}', bson_build('$dateToString', bson_build('date', $1, 'format', $2))::bson_value)));
    fuzz_valid(bson_build('x', bson_eval('{}', bson_build('$dateFromString', bson_build('dateString', $4, 'format', $2, 'onError', 1))::bson_value)));
    fuzz_valid(bson_build('x', bson_eval('{}', bson_build('$dateFromString', bson_build('dateString', $4, 'timezone', $3))::bson_value)));
    fuzz_valid(bson_build('x', bson_eval('{}', bson_build('$dateToParts', bson_build('date', $1, 'timezone', $3))::bson_value)))$$,
  '{timestamptz:timestamptz,date_format:text,zone:text,date:text}', 1),
('projection', $$fuzz_valid(bson_project($1, $2, $3))$$, '{document:bson,projection:bson,filter:bson}', 1),
('sort_key', $$bson_sort_key($1, $2) IS NOT NULL; bson_sort_key($3, $2)$$, '{document:bson,sort:bson,random:bson}', 1),
('schema', $$bson_validate($1, $2) = NOT EXISTS (SELECT FROM bson_schema_errors($1, $2))$$, '{document:bson,schema:bson}', 1),
('accumulate', $$fuzz_valid(bson_accumulate_set('{}', $1, ARRAY[$2, $3])); fuzz_valid(bson_accumulate_change(bson_accumulate_set('{}', $1, ARRAY[$2, $3]), $1, ARRAY[$3], ARRAY[$2], $4))$$,
  '{fields:bson,document:bson,document:bson,sort:bson}', 1),
('distinct', $$bson_distinct_count(bson_distinct_add($1, $2)) >= 0; bson_distinct_merge($1, $3)$$, '{sketch!bson_value,value:bson_value,sketch!bson_value}', 0.5),

-- Texts. What is read and printed is read again, and is the same.
('document_text', $$bson_to_json($1, 'relaxed')::bson::bytea = $1::bytea AND bson_to_json($1, 'canonical')::bson::bytea = $1::bytea AND bson_to_json($1, 'shell')::bson::bytea = $1::bytea$$, '{document:bson}', 1),
('path', $$($1 -> $2) IS NOT DISTINCT FROM (bson_get($1, $2)); ($1 ? $2)::text; $1 ->> $2; (SELECT array_agg(x) FROM bson_values($1, $2) x); bson_array_length($1, $2)$$, '{document:bson,path:text}', 1),
('path_edit', $$fuzz_valid(bson_set($1, $2, $3)) AND fuzz_valid(bson_unset($1, $2)) AND fuzz_valid(docpatterns.bson_remove($1, $2)) AND bson_set($1, $2, $3) -> $2 IS NOT DISTINCT FROM $3$$,
  '{document:bson,path:text,value:bson_value}', 1),
('path_list', $$count(*) >= 0 FROM bson_index_keys($1, $2)$$, '{document:bson,paths:text}', 1),
('path_pairs', $$count(*) >= 0 FROM bson_index_keys($1, NULL, $2)$$, '{document:bson,paths:text}', 1),
('path_options', $$docpatterns._pattern_paths_overlap($1, $2) = docpatterns._pattern_paths_overlap($2, $1); docpatterns._pattern_name_path($3); docpatterns._polymorphic_path_list($2)$$, '{path:text,path:text,text:text}', 1),
('unwind', $$fuzz_valid(d) FROM bson_unwind($1, $2, $3, $4) d$$, '{document:bson,path:text,bool:bool,path:text}', 1),
('regex', $$bson_typeof($1 -> 'title') IS DISTINCT FROM 'string' OR bson_match($1, f) = bson_match(bson_build('title', array_fill($1 -> 'title', '{300}'::int[])), f) FROM bson_build('title', bson_build('$regex', $2, '$options', $3)) f$$, '{document:bson,regex:text,regex_options:text}', 1),
('objectid', $$$1::text::objectid = $1; objectid_timestamp($1)$$, '{objectid:objectid}', 0.2),
('treepath', $$$1::text::treepath = $1; treepath_parent($1) || treepath_subpath($1, -1) = $1; docpatterns.treepath_append(treepath_parent($1), treepath_id($1)) = $1; treepath_ancestors($1); treepath_depth($1)$$, '{treepath:treepath}', 1),
('treepath_text', $$treepath_to_text(treepath_from_text($1, $2), $2); treepath_lca(treepath_from_text($1, $2), $3)$$, '{path:text,text:text,treepath:treepath}', 1),
('jsonb', $$fuzz_valid($1::bson); $1::bson::jsonb$$, '{json:jsonb}', 1),
('jsonb_back', $$fuzz_valid($1::jsonb::bson)$$, '{random:bson}', 1),
('template', $$docpatterns._single_table_template($1)$$, '{template:text}', 0.5),
('glob', $$docpatterns._kv_matches($1, $2) IS NOT NULL$$, '{glob:text,glob:text}', 0.5),
('bucket_columns', $$c FROM docpatterns._bucket_columns($1) c$$, '{columns:text}', 0.2),
('bucket_text', $$$1::text::bucket::text = $1::text; bucket_to_bson($1)$$, '{bucket:bucket}', 0.2),
('bucket_start', $$bucket_start($1, $2, $3, $4) <= $2; bucket_start($1, $2::date)$$, '{interval:interval,timestamptz:timestamptz,timestamptz:timestamptz,text:text}', 0.5),
('casts', $$bson_typeof($1); $1::bson; $1::jsonb; $1::numeric; $1::int4; $1::int8; $1::float8; $1::timestamptz; $1::date; $1::uuid; $1::objectid; $1::bytea; $1::treepath; $1::bool::text; $1::treepath::bson_value$$, '{value:bson_value}', 1),
('numbers', $$$1::numeric; $1::int8; $1::float8; $1::bool::text; $2::bson_value::numeric$$ , '{number:bson_value,number:numeric}', 1),
('order', $$(($1 < $2)::int + ($1 = $2)::int + ($1 > $2)::int) = 1 AND ($1 < $2) = ($2 > $1) AND ($1 <> $2 OR bson_value_hash($1) = bson_value_hash($2))$$, '{value:bson_value,value:bson_value}', 1),
('diff', $$bson_diff_apply(bson_diff_pack($1, $2), $1)::bytea = $2::bytea; bson_diff_carry($1, $2, $3)$$, '{document:bson,document:bson,random:bson}', 1),

-- Options of patterns: what is no declaration of the kind is refused with an error of its own.
('attribute_options', $$fuzz_valid(docpatterns._attribute_pack($1, $2)) AND fuzz_valid(docpatterns._attribute_unpack($1, $2)); docpatterns._attribute_faults($1, $2)$$, '{document:bson,options:bson}', 1),
('preallocated_options', $$docpatterns._preallocated_shape($1); preallocated_find($2, $3, $4)$$, '{options:bson,document:bson,int:int4,path:text}', 0.5),
('preallocated_ranges', $$preallocated_ranges($1, $2); preallocated_cells($3)$$, '{document:bson,path:text,range:bson_value}', 0.5),
('schema_versioning_options', $$fuzz_valid(docpatterns._schema_versioning_as($1, $2, '{}'))$$, '{document:bson,options:bson}', 0.5),
('computed_options', $$docpatterns._computed_fields($1, 'doc')$$, '{options:bson}', 0.3),
('pattern_options', $$docpatterns._pattern_options('outlier', $1); docpatterns._pattern_options('subset', $1, $2); docpatterns._pattern_options('tree', $1, $2); docpatterns._pattern_option_paths('attribute', $1)$$, '{options:bson,options:bson}', 1),
('single_collection_options', $$docpatterns._pattern_options('single_collection', $1); docpatterns._single_collection_verify(NULL, $1)$$, '{options:bson}', 0.3),
('single_collection_id', $$single_collection_id($1, $2, $3); single_collection_key($1, $2, $4)$$, '{document:bson,path:text,text:text,text:text}', 0.5),
('single_table_options', $$docpatterns._single_table_key_of($1, $2); docpatterns._single_table_op_fields($2, $1, length($2) % 2 = 0)$$, '{document:bson,text:text}', 0.3),
('polymorphic_options', $$docpatterns._polymorphic_verify(NULL, $1); docpatterns._polymorphic_columns(ARRAY[$1])$$, '{schema:bson}', 0.3),
('polymorphic_fields', $$docpatterns._polymorphic_field($1, $2, $3); docpatterns._polymorphic_reach($1, $2); docpatterns._polymorphic_elements($1, $2)$$, '{document:bson,path:text,text:text}', 0.3),
('payload_options', $$docpatterns._payload_functions($1); docpatterns._payload_paths($1)$$, '{options:bson}', 0.2),
('query_table_options', $$docpatterns._query_table_types($1)$$, '{options:bson}', 0.2),
('subset_options', $$docpatterns._pattern_option_paths('subset_fields', $1); docpatterns._subset_member($2, $3)$$, '{options:bson,document:bson,projection:bson}', 0.3),
('bucket_documents', $$bucket_to_bson(bucket_from_bson($1, $2))$$, '{document:bson,text:text}', 0.5),
('declarations', $$docpatterns._pattern_trigger_arguments($1)$$, '{bytes!bytea}', 0.2),

-- Stored values that a bad disk damaged: an answer, or XX001.
('stored_document', $$bson_typeof($1, $2); $1 ->> $2; bson_size($1); ($1 ? $2)::text; bson_to_json($1); ($1 @> $3)::text; bson_hash($1)$$, '{document!bson,path:text,document:bson}', 1),
('stored_filter', $$bson_match($1, $2) IS NOT NULL$$, '{document!bson,filter:bson}', 1),
('stored_update', $$bson_update($1, $2)$$, '{document!bson,update:bson_value}', 1),
('stored_expression', $$bson_eval($1, $2)$$, '{document!bson,expression:bson_value}', 1),
('stored_projection', $$bson_project($1, $2); bson_sort_key($1, $3); bson_schema_errors($1, $4)$$, '{document!bson,projection:bson,sort:bson,schema:bson}', 1),
('stored_edit', $$bson_set($1, $2, $3); bson_unset($1, $2); bson_array_append($1, $2, $3); $1 || $4; bson_diff_pack($1, $4); bson_diff_carry($4, $1, $4)$$, '{document!bson,path:text,value:bson_value,document:bson}', 1),
('stored_rows', $$bson_each($1); bson_keys($1); bson_index_keys($1); bson_unwind($1, $2); $1::jsonb; bson_values($1, $2)$$, '{document!bson,path:text}', 1),
('stored_value', $$($1 < $2)::text; bson_value_hash($1); $1::text; bson_array_length($1); bson_elements($1); bson_typeof($1)$$, '{value!bson_value,value!bson_value}', 1),
('stored_casts', $$$1::jsonb; $1::numeric; $1::int4; $1::int8; $1::float8; $1::timestamptz; $1::date; $1::uuid; $1::objectid; $1::bytea; $1::bson; $1::treepath; $1::bool::text$$, '{value!bson_value}', 1),
('stored_accumulate', $$bson_accumulate_change(bson_set($1, '_computed', $5), $2, ARRAY[$3], ARRAY[$4])$$, '{state!bson,fields:bson,document:bson,document:bson,sketch:bson_value}', 1),
('stored_fields', $$bson_accumulate_change($1, $2, ARRAY[$3], ARRAY[$4])$$, '{state!bson,fields:bson,document!bson,document:bson}', 1),
('stored_attribute', $$docpatterns._attribute_pack($1, $2); docpatterns._attribute_unpack($1, $2); docpatterns._attribute_left($1, $2); docpatterns._attribute_faults($1, $2); docpatterns._attribute_is_wide($1, $2)::text$$, '{document!bson,options:bson}', 1),
('stored_fields_of_patterns', $$preallocated_find($1, $2, $3); preallocated_ranges($1, $3); docpatterns._polymorphic_field($1, $3, 'int'); docpatterns._polymorphic_elements($1, $3); docpatterns._reference_sites($1, $3, 'id'); docpatterns._relationship_ids($1, $3); single_collection_id($1, $3, NULL); docpatterns.outlier_irregular($1, $3, 3, 'x')::text; docpatterns._subset_member($1, $4); docpatterns._schema_versioning_version($1, $3); docpatterns.tree_treepath($1, $3, false, '_id')$$,
  '{document!bson,int:int4,path:text,projection:bson}', 1),
('stored_ancestors', $$tree_depth($1); tree_common($1, $2); tree_lca($1, $2); tree_distance($1, $2); tree_is_below($1, $3)::text; tree_is_below($4, $5, $3)::text$$, '{value!bson_value,value!bson_value,text:text,document!bson,path:text}', 0.5),
('stored_record', $$bson_populate_record(NULL::fuzz_row, $1); r FROM bson_to_record($1) AS r (a int[], n numeric, name text, t timestamptz, d jsonb, r bson_value)$$, '{document!bson}', 0.5),
('record', $$bson_populate_record(NULL::fuzz_row, $1); r FROM bson_to_record($1) AS r (a int[], n numeric, name text, t timestamptz, d jsonb, r bson_value); row_to_bson(bson_populate_record(NULL::fuzz_row, $1))$$, '{document:bson}', 1),
('ancestors', $$tree_depth($1); tree_common($1, $2); tree_lca($1, $2); tree_distance($1, $2) = tree_distance($2, $1); tree_is_below($1, $3)::text; tree_is_below($4, $5, $3)::text; docpatterns.tree_treepath($4, $5, false, '_id')$$, '{value:bson_value,value:bson_value,text:text,document:bson,path:text}', 0.5),
('path_array', $$bson_get($1, $2); bson_exists_all($1, $2)::text; docpatterns.bson_remove($1, $2); fuzz_valid(docpatterns.bson_remove($1, $2)); docpatterns.reference_differs($1, $3, $2)::text$$, '{document:bson,array:text[],document:bson}', 0.5),
('advise', $$docpatterns._advise_facts(ARRAY[$1, $2])$$, '{random:bson,document:bson}', 0.3),
('stored_payload', $$payload_unpack($1); docpatterns._payload_is_packed($1)::text$$, '{payload!bson_value}', 1),
('stored_treepath', $$$1::text; treepath_depth($1); treepath_parent($1); treepath_last($1); treepath_id($1); treepath_ancestors($1); treepath_prefixes($1); treepath_lca($1, $2); treepath_distance($1, $2); treepath_subpath($1, $3, 1); $1 || $2; docpatterns.treepath_contains($1, 'a'::text)::text; docpatterns.treepath_to_value($1)$$,
  '{treepath!treepath,treepath!treepath,int:int4}', 1),
('stored_treepath_arrays', $$docpatterns.treepath_to_value_array($1); treepath_to_text($1, '/'); docpatterns.treepath_is_below($1, $2)::text; ($1 = $2)::text; treepath_root($1); docpatterns.treepath_send($1)$$, '{treepath!treepath,treepath!treepath}', 1),
('stored_bucket', $$bucket_count($1); bucket_first($1); bucket_last($1); bucket_span($1); bucket_sum($1, $2); bucket_avg($1, $2); bucket_min($1, $2); bucket_max($1, $2); bucket_stddev($1, $2); docpatterns.bucket_hash($1)$$, '{bucket!bucket,text:text}', 1),
('stored_bucket_rows', $$bucket_unpack($1); bucket_slice($1, $2, $3)$$, '{bucket!bucket,timestamptz:timestamptz,timestamptz:timestamptz}', 1),
('stored_bucket_merge', $$bucket_merge(b) FROM (VALUES ($1), ($2)) AS v (b)$$, '{bucket!bucket,bucket:bucket}', 1),
('stored_bucket_forms', $$bucket_to_bson($1, $2); bucket_document($1, $3); $1::text$$, '{bucket!bucket,text:text,document:bson}', 1),
('stored_bucket_series', $$s FROM bucket_series($1, $2, $3) s LIMIT 100$$, '{bucket!bucket,interval:interval,text:text}', 0.3),
('stored_difference', $$bson_diff_apply($1, $2)$$, '{difference!bytea,document:bson}', 1),
('stored_keys', $$docpatterns.bson_gin_compare($1, $2) = -docpatterns.bson_gin_compare($2, $1)$$, '{keys!bytea,keys!bytea}', 0.5),
('outside_documents', $$d FROM bson_documents($1) d$$, '{bytes!bytea}', 1),
('outside_bytes', $$bson_from_bytea($1)$$, '{bytes!bytea}', 1),
('outside_values', $$bson_value_from_bytea($1)$$, '{value_bytes!bytea}', 1),
('outside_bucket', $$bucket_fault($1)$$, '{bucket_bytes!bytea}', 1),
('states_distinct', $$bson_distinct_count($1); $1$$, '{sketch!bson_value}', 0.5);

-- The documents of the corpus that are some, also for what an index answers.
CREATE TABLE fuzz_documents (doc bson);
DO $$
DECLARE line text;
BEGIN
  FOR line IN SELECT content FROM fuzz_corpus WHERE room = 'document' LOOP
    BEGIN
      INSERT INTO fuzz_documents VALUES (line::bson);
    EXCEPTION WHEN data_exception THEN
      NULL;
    END;
  END LOOP;
END $$;
CREATE INDEX ON fuzz_documents USING gin (doc bson_ops);
ANALYZE fuzz_documents;

-- Rooms that are made of others.
INSERT INTO fuzz_corpus
SELECT 'bool', b FROM unnest('{true,false}'::text[]) b
UNION ALL SELECT 'regex_options', o FROM unnest('{"",i,m,s,x,u,imsx,z}'::text[]) o
UNION ALL SELECT 'bytes', doc::bytea::text FROM fuzz_documents
UNION ALL SELECT 'payload', payload_pack(doc::bson_value)::text FROM fuzz_documents
UNION ALL SELECT 'payload', payload_pack(to_bson(repeat('abc ', n)))::text FROM generate_series(1, 400, 133) n
UNION ALL SELECT 'sketch', (SELECT bson_distinct_agg(i * 7919) FROM generate_series(1, n) i)::text FROM unnest('{1,20,290,300,301,2000}'::int[]) n
UNION ALL SELECT 'state', bson_accumulate_set('{}', f.content::bson, ARRAY(SELECT doc FROM fuzz_documents WHERE bson_size(doc) < n * 60))::text
  FROM fuzz_corpus f, generate_series(1, 3) n WHERE f.room = 'fields' AND f.content !~ 'percentile|mergeObjects|firstN'
UNION ALL SELECT 'difference', bson_diff_pack(a.doc, b.doc)::text FROM fuzz_documents a, fuzz_documents b WHERE a.doc::bytea <> b.doc::bytea AND bson_size(a.doc) + bson_size(b.doc) < 300
UNION ALL SELECT 'keys', k.key::text FROM fuzz_documents d, bson_index_keys(d.doc) k
UNION ALL SELECT 'bucket', b::text FROM (
  SELECT bucket_agg(timestamptz '2024-05-01 10:00+00' + m * interval '1 min', 20 + m / 10.0::float8, m % 7) FROM generate_series(1, 60) m
  UNION ALL SELECT bucket_agg(timestamptz '2024-05-01 10:00+00' + m * m * interval '1 s', bson_build('t', m * 1.5, 's', CASE WHEN m % 3 = 0 THEN 'ok' ELSE 'bad' || m END, 'n', NULL)) FROM generate_series(1, 9) m
  UNION ALL SELECT bucket_agg(timestamptz '2024-05-01 10:00+00', m::numeric / 4, m % 2 = 0, 'text ' || m, timestamptz '2024-01-01' + m * interval '1 day') FROM generate_series(1, 5) m
  UNION ALL SELECT bucket_agg(timestamptz '2024-05-01 10:00+00' + m * interval '1 s', m * 1e15::float8, CASE WHEN m % 50 = 0 THEN m END) FROM generate_series(1, 300) m) AS made (b);
INSERT INTO fuzz_corpus SELECT 'value_bytes', bson_value_send(content::bson_value)::text FROM fuzz_corpus WHERE room = 'value';
INSERT INTO fuzz_corpus SELECT 'bucket_bytes', bucket_send(content::bucket)::text FROM fuzz_corpus WHERE room = 'bucket';
