/*
 * functions.c
 *		Functions of one bucket: the number of measurements, their first and last time, and the
 *		sum, average, least, greatest, first, last value and standard deviation of a field; and
 *		a slice of it.
 *
 * If the bucket's header has the answer, nothing else is read, of a large bucket not even fetched.
 * Results are BSON values, as for the aggregates over bson_value.  Sums ignore values that are not
 * numbers.
 */
#include "postgres.h"

#include <math.h>

#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"

#include "bson/cast.h"
#include "bson/compare.h"
#include "bson/number.h"
#include "types/bucket/accumulate.h"
#include "types/bucket/fields.h"

/* Fetches the bucket and finds the field, which may be NULL: the only one. */
static bool
field_argument(FunctionCallInfo fcinfo, DpBucketReader **r, DpBucketSource *source)
{
	*r = dp_bucket_argument(fcinfo, 0);
	return dp_bucket_source(*r, PG_ARGISNULL(1) ? NULL : PG_GETARG_TEXT_PP(1), source);
}

/*
 * bucket_count(bucket) -> int
 */
DP_FUNCTION(dp_bucket_count);
Datum
dp_bucket_count(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(dp_bucket_argument(fcinfo, 0)->count);
}

/*
 * bucket_count(bucket, field text) -> int: the measurements that have a value
 * there, null not being one.
 */
DP_FUNCTION(dp_bucket_count_field);
Datum
dp_bucket_count_field(PG_FUNCTION_ARGS)
{
	DpBucketReader *r;
	DpBucketSource source;
	DpValue *values;
	int n = 0;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (!field_argument(fcinfo, &r, &source))
		PG_RETURN_INT32(0);
	/* among BSON values of several types may be nulls */
	if (source.path == NULL && (source.packed->kind != DP_PACKED_VALUE ||
								source.packed->parent >= 0 || source.packed->bson_type != 0))
		PG_RETURN_INT32(source.packed->summary.nvalues);

	values = dp_bucket_values_of(r, &source);
	for (int i = 0; i < r->count; i++)
		n += dp_bucket_is_value(&values[i]) ? 1 : 0;
	PG_RETURN_INT32(n);
}

/* bucket_first(bucket) -> timestamptz: the least time; NULL without times. */
DP_FUNCTION(dp_bucket_first_time);
Datum
dp_bucket_first_time(PG_FUNCTION_ARGS)
{
	DpBucketReader *r = dp_bucket_argument(fcinfo, 0);

	if (r->flags & DP_BUCKET_TIMELESS)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(r->first);
}

/* bucket_last(bucket) -> timestamptz: the greatest time; NULL without times. */
DP_FUNCTION(dp_bucket_last_time);
Datum
dp_bucket_last_time(PG_FUNCTION_ARGS)
{
	DpBucketReader *r = dp_bucket_argument(fcinfo, 0);

	if (r->flags & DP_BUCKET_TIMELESS)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(r->last);
}

/*
 * bucket_span(bucket) -> interval: from the first time to the last.
 */
DP_FUNCTION(dp_bucket_span);
Datum
dp_bucket_span(PG_FUNCTION_ARGS)
{
	DpBucketReader *r = dp_bucket_argument(fcinfo, 0);

	if (r->flags & DP_BUCKET_TIMELESS)
		PG_RETURN_NULL();
	return DirectFunctionCall2(timestamp_mi, TimestampTzGetDatum(r->last),
							   TimestampTzGetDatum(r->first));
}

/* The answer of an accumulator for the field; NULL where it is null. */
static Datum
accumulate(FunctionCallInfo fcinfo, DpBucketAccumulator what)
{
	DpBucketReader *r;
	DpBucketSource source;
	DpValue result;

	if (PG_ARGISNULL(0) || !field_argument(fcinfo, &r, &source) ||
		!dp_bucket_accumulate(r, &source, what, &result))
		PG_RETURN_NULL();
	PG_RETURN_POINTER(dp_value_to_varlena(&result));
}

/*
 * bucket_first(bucket, field) and so on -> bson_value: NULL if there is no
 * value.
 */
DP_FUNCTION(dp_bucket_first);
Datum
dp_bucket_first(PG_FUNCTION_ARGS)
{
	return accumulate(fcinfo, DP_BUCKET_FIRST);
}

DP_FUNCTION(dp_bucket_last);
Datum
dp_bucket_last(PG_FUNCTION_ARGS)
{
	return accumulate(fcinfo, DP_BUCKET_LAST);
}

DP_FUNCTION(dp_bucket_sum_field);
Datum
dp_bucket_sum_field(PG_FUNCTION_ARGS)
{
	return accumulate(fcinfo, DP_BUCKET_SUM);
}

DP_FUNCTION(dp_bucket_avg_field);
Datum
dp_bucket_avg_field(PG_FUNCTION_ARGS)
{
	return accumulate(fcinfo, DP_BUCKET_AVG);
}

DP_FUNCTION(dp_bucket_min_field);
Datum
dp_bucket_min_field(PG_FUNCTION_ARGS)
{
	return accumulate(fcinfo, DP_BUCKET_MIN);
}

DP_FUNCTION(dp_bucket_max_field);
Datum
dp_bucket_max_field(PG_FUNCTION_ARGS)
{
	return accumulate(fcinfo, DP_BUCKET_MAX);
}

/*
 * bucket_stddev(bucket, field, population bool) -> bson_value
 */
DP_FUNCTION(dp_bucket_stddev);
Datum
dp_bucket_stddev(PG_FUNCTION_ARGS)
{
	if (PG_ARGISNULL(2))
		PG_RETURN_NULL();
	return accumulate(fcinfo, PG_GETARG_BOOL(2) ? DP_BUCKET_STDDEV_POP : DP_BUCKET_STDDEV_SAMP);
}

/*
 * bucket_slice(bucket, since timestamptz, until timestamptz) -> bucket: the measurements from since
 * on and before until; NULL without rows.  A NULL bound does not limit.  Raises
 * INVALID_PARAMETER_VALUE for a bucket without times.
 */
DP_FUNCTION(dp_bucket_slice_times);
Datum
dp_bucket_slice_times(PG_FUNCTION_ARGS)
{
	DpBucketReader *r;
	int64 since = PG_INT64_MIN;
	int64 until = PG_INT64_MAX;
	struct varlena *slice;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (!PG_ARGISNULL(1))
		since = PG_GETARG_TIMESTAMPTZ(1);
	if (!PG_ARGISNULL(2))
		until = PG_GETARG_TIMESTAMPTZ(2);

	r = dp_bucket_argument(fcinfo, 0);
	if (r->flags & DP_BUCKET_TIMELESS)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("bucket has no times")));
	if (since <= r->first && until > r->last)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	if (since > r->last || until <= r->first || since >= until)
		PG_RETURN_NULL();
	slice = dp_bucket_slice(PG_GETARG_DATUM(0), &since, &until);
	if (slice == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(slice);
}
