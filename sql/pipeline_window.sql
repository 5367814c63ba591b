-- Functions in the SQL of pipelines for buckets and windows (src/mql/pipeline/windowfn.c).

CREATE FUNCTION docpatterns._bucket(value bson_value, boundaries bson_value, other bson_value)
  RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_bucket' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._bucket(bson_value, bson_value, bson_value) IS
  'internal: the lower boundary of the value''s bucket, or other';
CREATE FUNCTION docpatterns._bucket(value bson_value, boundaries bson_value, other bson_value,
  collation bson) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_bucket' LANGUAGE C STABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._bucket(bson_value, bson_value, bson_value, bson) IS
  'internal: the same by a collation';

CREATE FUNCTION docpatterns._bucket_auto(value bson_value, buckets int) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pipeline_bucket_auto' LANGUAGE C IMMUTABLE PARALLEL SAFE WINDOW;
COMMENT ON FUNCTION docpatterns._bucket_auto(bson_value, int) IS
  'internal: the boundaries of a row''s bucket in a window in the order of the value';
CREATE FUNCTION docpatterns._bucket_auto(value bson_value, buckets int, granularity text)
  RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pipeline_bucket_auto' LANGUAGE C IMMUTABLE PARALLEL SAFE WINDOW;
COMMENT ON FUNCTION docpatterns._bucket_auto(bson_value, int, text) IS
  'internal: the same, rounded to a series of preferred numbers';
CREATE FUNCTION docpatterns._bucket_auto(value bson_value, buckets int, key bytea) RETURNS bson
  AS 'MODULE_PATHNAME', 'dp_pipeline_bucket_auto_by' LANGUAGE C IMMUTABLE PARALLEL SAFE WINDOW;
COMMENT ON FUNCTION docpatterns._bucket_auto(bson_value, int, bytea) IS
  'internal: the same by keys, which equal values share';

CREATE FUNCTION docpatterns._partition(value bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_partition' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._partition(bson_value) IS
  'internal: null for a missing value, an error for an array';

CREATE FUNCTION docpatterns._window_key(value bson_value, kind text) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_window_key' LANGUAGE C IMMUTABLE PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._window_key(bson_value, text) IS
  'internal: the value, an error if it is not "a number", "a date" or "a number or a date"';

-- RANGE BETWEEN '5' PRECEDING AND '{unit: "month", amount: 1}' FOLLOWING
CREATE FUNCTION docpatterns.bson_value_in_range(bson_value, bson_value, bson_value, boolean,
  boolean)
  RETURNS boolean
  AS 'MODULE_PATHNAME', 'dp_bson_value_in_range' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
ALTER OPERATOR FAMILY bson_value_ops USING btree ADD FUNCTION 3 (bson_value, bson_value)
  docpatterns.bson_value_in_range(bson_value, bson_value, bson_value, boolean, boolean);

CREATE FUNCTION docpatterns._derivative(x1 bson_value, y1 bson_value, x2 bson_value, y2 bson_value,
    unit bigint) RETURNS bson_value LANGUAGE sql STABLE PARALLEL SAFE
  RETURN bson_eval(bson_build('x1'::text, x1, 'y1'::text, y1, 'x2'::text, x2, 'y2'::text, y2,
    'unit'::text, unit), '{$let: {vars: {run: {$subtract: ["$x2", "$x1"]}}, in: {$cond: [
      {$in: ["$$run", [0, null]]}, null,
      {$divide: [{$subtract: ["$y2", "$y1"]}, {$divide: ["$$run", "$unit"]}]}]}}}'::bson_value);
COMMENT ON FUNCTION docpatterns._derivative(bson_value, bson_value, bson_value, bson_value, bigint)
  IS 'internal: the slope between two points; unit is in milliseconds, or 1';

CREATE FUNCTION docpatterns._integral_step(internal, bson_value, bson_value, bigint)
  RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_pipeline_integral_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns._integral_remove(internal, bson_value, bson_value, bigint)
  RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_pipeline_integral_remove' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns._integral_final(internal) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_integral_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE docpatterns._integral(x bson_value, y bson_value, unit bigint) (
  SFUNC = docpatterns._integral_step, STYPE = internal, FINALFUNC = docpatterns._integral_final,
  MSFUNC = docpatterns._integral_step, MINVFUNC = docpatterns._integral_remove, MSTYPE = internal,
  MFINALFUNC = docpatterns._integral_final
);
COMMENT ON AGGREGATE docpatterns._integral(bson_value, bson_value, bigint) IS
  'internal: the area under points in the order of x, by the trapezoidal rule';

CREATE FUNCTION docpatterns._exp_moving_avg_step(internal, bson_value, bson_value) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_pipeline_average_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns._exp_moving_avg_final(internal) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_average_final' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE docpatterns._exp_moving_avg(value bson_value, weight bson_value) (
  SFUNC = docpatterns._exp_moving_avg_step, STYPE = internal,
  FINALFUNC = docpatterns._exp_moving_avg_final
);
COMMENT ON AGGREGATE docpatterns._exp_moving_avg(bson_value, bson_value) IS
  'internal: the average in which each number has this weight, a decimal, beside all before it';

CREATE FUNCTION docpatterns._covariance_step(internal, bson_value) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_pipeline_covariance_step' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns._covariance_remove(internal, bson_value) RETURNS internal
  AS 'MODULE_PATHNAME', 'dp_pipeline_covariance_remove' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns._covariance_pop_final(internal) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_covariance_pop' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE FUNCTION docpatterns._covariance_samp_final(internal) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_covariance_samp' LANGUAGE C IMMUTABLE PARALLEL SAFE;
CREATE AGGREGATE docpatterns._covariance_pop(pair bson_value) (
  SFUNC = docpatterns._covariance_step, STYPE = internal,
  FINALFUNC = docpatterns._covariance_pop_final,
  MSFUNC = docpatterns._covariance_step, MINVFUNC = docpatterns._covariance_remove,
  MSTYPE = internal, MFINALFUNC = docpatterns._covariance_pop_final
);
COMMENT ON AGGREGATE docpatterns._covariance_pop(bson_value) IS
  'internal: the covariance of pairs of numbers';
CREATE AGGREGATE docpatterns._covariance_samp(pair bson_value) (
  SFUNC = docpatterns._covariance_step, STYPE = internal,
  FINALFUNC = docpatterns._covariance_samp_final,
  MSFUNC = docpatterns._covariance_step, MINVFUNC = docpatterns._covariance_remove,
  MSTYPE = internal, MFINALFUNC = docpatterns._covariance_samp_final
);
COMMENT ON AGGREGATE docpatterns._covariance_samp(bson_value) IS
  'internal: the covariance of a sample of pairs of numbers';

CREATE FUNCTION docpatterns._linear_fill(x bson_value, y bson_value) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_linear_fill' LANGUAGE C IMMUTABLE PARALLEL SAFE WINDOW;
COMMENT ON FUNCTION docpatterns._linear_fill(bson_value, bson_value) IS
  'internal: y or, if it is NULL, the linear interpolation between its neighbours';

CREATE FUNCTION docpatterns._densify_value(value bson_value, is_date boolean) RETURNS bson_value
  AS 'MODULE_PATHNAME', 'dp_pipeline_densify_value' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION docpatterns._densify_value(bson_value, boolean) IS
  'internal: the number or date, NULL for null, an error for anything else';

CREATE FUNCTION docpatterns._densify(doc bson, spec bson, n bigint, value bson_value,
    before bson_value, is_last boolean, low bson_value, high bson_value) RETURNS SETOF bson
  AS 'MODULE_PATHNAME', 'dp_pipeline_densify' LANGUAGE C IMMUTABLE PARALLEL SAFE ROWS 10;
COMMENT ON FUNCTION docpatterns._densify(bson, bson, bigint, bson_value, bson_value, boolean,
  bson_value, bson_value) IS
  'internal: the documents of $densify between the values before and of a row, and the row''s';
