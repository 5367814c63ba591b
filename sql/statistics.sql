-- Statistics of documents, as ANALYZE collects them (src/index/stats/statsfn.c).

CREATE FUNCTION bson_stats(rel regclass, column_name name DEFAULT NULL,
  OUT doc_column name, OUT path text, OUT presence float4, OUT null_frac float4, OUT types bson, OUT array_lengths bson,
  OUT n_distinct float4, OUT most_common_values bson_value[], OUT most_common_freqs float4[], OUT histogram_bounds bson_value[])
  RETURNS SETOF record
  AS 'MODULE_PATHNAME', 'dp_bson_stats' LANGUAGE C STABLE PARALLEL SAFE ROWS 100;
COMMENT ON FUNCTION bson_stats(regclass, name) IS
  'what ANALYZE found out about the documents of a table, a row for each path (positions in arrays left out), most frequent first: the share of documents that have it and in which it is null, the share with each type, lengths of arrays, how many different values (negative: a multiple of the documents), the most common ones and the share of documents with each, a histogram of the others; of one column or of all of type bson; nothing before the first ANALYZE; 42501 unless the current user may read the column and all rows; takes ACCESS SHARE';
