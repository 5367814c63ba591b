-- Buckets as documents, and back. The functions are in src/types/bucket/.

CREATE FUNCTION bucket_to_bson(b bucket, layout text DEFAULT 'rows', units text[] DEFAULT NULL) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bucket_to_bson' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bucket_to_bson(bucket, text, text[]) IS 'the bucket as a document: rows (an array of sub-documents), columns (an array per field), dense (an array by slot, null where nothing came) or keyed ({"0": .., "37": ..}); units of slots are day, hour, minute and second, and follow from the times if they are not given; 22023 for other words and for a bucket that spans more than the units divide, 21000 for two values in one slot';
CREATE FUNCTION bucket_from_bson(doc bson, layout text DEFAULT NULL, units text[] DEFAULT NULL, field text DEFAULT NULL,
  time_field text DEFAULT 'timestamp', start_field text DEFAULT 'start_date') RETURNS bucket
  AS 'MODULE_PATHNAME', 'dp_bucket_from_bson' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bucket_from_bson(bson, text, text[], text, text, text) IS 'the bucket that a document in one of the layouts of bucket_to_bson() describes (default: the one that it looks like); field is where the measurements or values are, time_field a measurement''s time, start_field what slots are counted from; NULL if there are no measurements; 22023 for a document that has not the layout';
CREATE FUNCTION bucket_document(b bucket, template bson DEFAULT NULL, group_fields bson DEFAULT NULL, names text[] DEFAULT NULL,
  since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL, end_date text DEFAULT 'inclusive') RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bucket_document_sql' LANGUAGE C STABLE PARALLEL SAFE COST 200;
COMMENT ON FUNCTION bucket_document(bucket, bson, bson, text[], timestamptz, timestamptz, text) IS 'the bucket as a document by a template of expressions, in which "$start", "$end", "$count", the fields of group_fields and the bucket''s fields are values, {"$avg": "temperature"} is an accumulator, and an array of one element that names measured fields has one for each measurement; without a template the group, start_date, end_date, measurements, transaction_count and sums; names are those of columns that have none, since and until the span (default: the times); 42703 for a name that means nothing, and the errors of expressions';
