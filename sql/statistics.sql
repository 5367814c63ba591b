-- Statistics of documents, as ANALYZE collects them (src/index/stats/statsfn.c).

CREATE FUNCTION bson_stats(rel regclass, column_name name DEFAULT NULL,
  OUT doc_column name, OUT path text, OUT presence float4, OUT null_frac float4, OUT types bson,
  OUT array_lengths bson,
  OUT n_distinct float4, OUT most_common_values bson_value[], OUT most_common_freqs float4[],
  OUT histogram_bounds bson_value[])
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bson_stats' LANGUAGE C STABLE PARALLEL SAFE ROWS 100;
COMMENT ON FUNCTION bson_stats(regclass, name) IS
  'What ANALYZE found in the documents of a table, a row for each path, the most frequent first. '
  'No rows before the first ANALYZE. Unpacks the statistics once per session; takes ACCESS SHARE. '
  'Errors: 42501 unless you may read the column and all rows, 42703 or 42809 a wrong column or '
  'relation';
