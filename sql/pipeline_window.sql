-- Functions in the SQL of pipelines for buckets and windows (src/mql/pipeline/windowfn.c).

CREATE FUNCTION docpatterns._no_bucket(value bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_no_bucket' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._no_bucket(bson_value) IS
  'internal: the error of a value outside of all buckets';

CREATE FUNCTION docpatterns._bucket_auto(value bson_value, buckets int) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pipeline_bucket_auto' LANGUAGE C IMMUTABLE PARALLEL SAFE WINDOW;
COMMENT ON FUNCTION docpatterns._bucket_auto(bson_value, int) IS
  'internal: the boundaries of a row''s bucket in a window in the order of the value';
CREATE FUNCTION docpatterns._bucket_auto(value bson_value, buckets int, granularity text)
  RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pipeline_bucket_auto' LANGUAGE C IMMUTABLE PARALLEL SAFE WINDOW;
COMMENT ON FUNCTION docpatterns._bucket_auto(bson_value, int, text) IS
  'internal: the same, rounded to a series of preferred numbers';
