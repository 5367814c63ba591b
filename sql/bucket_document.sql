-- Buckets as documents, and back. The functions are in src/types/bucket/.

CREATE FUNCTION bucket_to_bson(b bucket, layout text DEFAULT 'rows', units text[] DEFAULT NULL)
  RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bucket_to_bson' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bucket_to_bson(bucket, text, text[]) IS
  'The bucket as a document in one of the layouts below. Errors: 22023 other words, or a bucket '
  'that does not fit the units, 21000 two values in one slot';
CREATE FUNCTION bucket_from_bson(doc bson, layout text DEFAULT NULL, units text[] DEFAULT NULL,
  field text DEFAULT NULL,
  time_field text DEFAULT 'timestamp', start_field text DEFAULT 'start_date') RETURNS bucket
  AS 'MODULE_PATHNAME', 'dp_bucket_from_bson' LANGUAGE C IMMUTABLE PARALLEL SAFE COST 100;
COMMENT ON FUNCTION bucket_from_bson(bson, text, text[], text, text, text) IS
  'The bucket that a document in one of these layouts (default: the one that it looks like) '
  'describes. field is where the measurements or values are, time_field a measurement''s time, '
  'start_field what slots count from. NULL without measurements. Error: 22023 another layout';
CREATE FUNCTION bucket_document(b bucket, template bson DEFAULT NULL,
  group_fields bson DEFAULT NULL, names text[] DEFAULT NULL,
  since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL, end_date text DEFAULT 'inclusive')
  RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_bucket_document_sql' LANGUAGE C STABLE PARALLEL SAFE COST 200;
COMMENT ON FUNCTION bucket_document(bucket, bson, bson, text[], timestamptz, timestamptz, text) IS
  'The bucket as a document by a template of expressions. names are for columns without names; '
  'since and until are the span (default: the times). Errors: 42703 an unknown name, those of '
  'expressions';
