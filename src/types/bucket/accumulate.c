/*
 * accumulate.c
 *		Sums, averages and so on of a bucket's fields.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "utils/float.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "bson/cast.h"
#include "bson/compare.h"
#include "bson/number.h"
#include "mql/expression_node.h"
#include "types/bucket/accumulate.h"

/* Integers below it are exact as doubles */
#define EXACT_MAX (INT64CONST(1) << 53)

static bool sum_of_summary(const DpPackedColumn *packed, DpValue *result);
static bool
sum_of_numerics(DpBucketReader *r, const DpBucketSource *source, Numeric *sum, int64 *n);
static bool
sum_of_values(DpBucketReader *r, const DpBucketSource *source, DpValue *result, int64 *n);
static bool average(DpBucketReader *r, const DpBucketSource *source, DpValue *result);
static bool extreme_of_summary(const DpPackedColumn *packed, bool least, DpValue *result);
static bool
extreme_of_numerics(DpBucketReader *r, const DpBucketSource *source, int sign, DpValue *result);
static bool extreme(DpBucketReader *r, const DpBucketSource *source, int sign, DpValue *result);
static bool
deviation(DpBucketReader *r, const DpBucketSource *source, bool sample, DpValue *result);

bool
dp_bucket_accumulate(DpBucketReader *r, const DpBucketSource *source, DpBucketAccumulator what,
					 DpValue *result)
{
	const DpPackedColumn *packed = source->packed;
	DpValue *values;
	Datum d;
	Numeric sum;
	int64 n;

	if (source->path == NULL && packed->summary.nvalues == 0)
		return false;
	switch (what)
	{
		case DP_BUCKET_SUM:
			if (source->path == NULL && packed->summary.has_sum && sum_of_summary(packed, result))
				return true;
			if (source->path == NULL && packed->kind == DP_PACKED_NUMERIC)
			{
				uint8 decimal[DP_DECIMAL128_SIZE];

				if (!sum_of_numerics(r, source, &sum, &n))
					return false;
				dp_numeric_round_to_decimal128(sum, decimal);
				return dp_result_decimal(result, decimal);
			}
			return sum_of_values(r, source, result, &n);
		case DP_BUCKET_AVG:
			return average(r, source, result);
		case DP_BUCKET_MIN:
		case DP_BUCKET_MAX:
			if (source->path == NULL && packed->summary.has_range &&
				(what == DP_BUCKET_MIN ? dp_bucket_min(packed, &d) : dp_bucket_max(packed, &d)))
			{
				*result =
					dp_value_of_varlena(dp_datum_to_value(d, dp_bucket_kind_type(packed->kind)));
				return true;
			}
			if (source->path == NULL && packed->summary.has_range &&
				extreme_of_summary(packed, what == DP_BUCKET_MIN, result))
				return true;
			if (source->path == NULL && packed->kind == DP_PACKED_NUMERIC)
				return extreme_of_numerics(r, source, what == DP_BUCKET_MIN ? -1 : 1, result);
			return extreme(r, source, what == DP_BUCKET_MIN ? -1 : 1, result);
		case DP_BUCKET_FIRST:
		case DP_BUCKET_LAST:
			values = dp_bucket_values_of(r, source);
			for (int i = 0; i < r->count; i++)
			{
				const DpValue *v = &values[what == DP_BUCKET_FIRST ? i : r->count - 1 - i];

				if (dp_bucket_is_value(v))
				{
					*result = *v;
					return true;
				}
			}
			return false;
		case DP_BUCKET_STDDEV_POP:
		case DP_BUCKET_STDDEV_SAMP:
			return deviation(r, source, what == DP_BUCKET_STDDEV_SAMP, result);
	}
	return false;
}

DpValue *
dp_bucket_values_of(DpBucketReader *r, const DpBucketSource *source)
{
	DpValue *values = palloc_extended(r->count * sizeof(DpValue), MCXT_ALLOC_HUGE);

	dp_bucket_source_values(r, source, values);
	return values;
}

/* The sum in the header; false if it must be computed from the values. */
static bool
sum_of_summary(const DpPackedColumn *packed, DpValue *result)
{
	const DpBucketSummary *s = &packed->summary;
	uint8 decimal[DP_DECIMAL128_SIZE];
	Datum d;

	switch (packed->kind)
	{
		case DP_PACKED_BOOL:
		case DP_PACKED_INT2:
		case DP_PACKED_INT4:
			return dp_result_integer(result, s->sum_i);
		case DP_PACKED_INT8:
			return dp_result_int64(result, s->sum_i);
		case DP_PACKED_FLOAT4:
		case DP_PACKED_FLOAT8:
			return dp_result_double(result, s->sum_d);
		case DP_PACKED_NUMERIC:
			if (!dp_bucket_sum(packed, &d))
				return false;
			dp_numeric_round_to_decimal128(DatumGetNumeric(d), decimal);
			return dp_result_decimal(result, decimal);
		case DP_PACKED_VALUE:
			if (packed->bson_type == DP_TYPE_INT32)
				return dp_result_integer(result, s->sum_i);
			if (packed->bson_type == DP_TYPE_INT64)
				return dp_result_int64(result, s->sum_i);
			if (packed->bson_type == DP_TYPE_DOUBLE)
				return dp_result_double(result, s->sum_d);
			return false;
		default:
			return false;
	}
}

/* The sum of numerics, which are not all integers of one scale, and their number. */
static bool
sum_of_numerics(DpBucketReader *r, const DpBucketSource *source, Numeric *sum, int64 *n)
{
	Datum *values = palloc_extended(r->count * sizeof(Datum), MCXT_ALLOC_HUGE);
	bool *nulls = palloc(r->count * sizeof(bool));
	Datum total = (Datum) 0;

	*n = 0;
	dp_bucket_datums(r, source->column, NUMERICOID, -1, values, nulls);
	for (int i = 0; i < r->count; i++)
	{
		if (nulls[i])
			continue;
		if ((*n)++ == 0)
			total = values[i];
		else
			total = DirectFunctionCall2(numeric_add, total, values[i]);
	}
	*sum = DatumGetNumeric(total);
	return *n > 0;
}

/*
 * The sum of the numbers among the values, as $sum computes it, and their count; false if there are
 * none.
 */
static bool
sum_of_values(DpBucketReader *r, const DpBucketSource *source, DpValue *result, int64 *n)
{
	DpValue *values = dp_bucket_values_of(r, source);
	DpSum sum;

	dp_sum_init(&sum);
	*n = 0;
	for (int i = 0; i < r->count; i++)
	{
		if (dp_type_is_number(values[i].type))
		{
			dp_sum_add(&sum, &values[i]);
			(*n)++;
		}
	}
	pfree(values);
	return *n > 0 && dp_result_sum(result, &sum);
}

/* The average: a double, or a decimal128 if there is one among the numbers. */
static bool
average(DpBucketReader *r, const DpBucketSource *source, DpValue *result)
{
	const DpPackedColumn *packed = source->packed;
	const DpBucketSummary *s = &packed->summary;
	int64 n = s->nvalues;
	Numeric sum;
	DpValue total;
	Datum d;

	if (source->path == NULL && packed->kind == DP_PACKED_NUMERIC)
	{
		uint8 decimal[DP_DECIMAL128_SIZE];

		if (s->has_sum && dp_bucket_sum(packed, &d))
			sum = DatumGetNumeric(d);
		else if (!sum_of_numerics(r, source, &sum, &n))
			return false;
		d = DirectFunctionCall2(numeric_div, NumericGetDatum(sum),
								NumericGetDatum(int64_to_numeric(n)));
		dp_numeric_round_to_decimal128(DatumGetNumeric(d), decimal);
		return dp_result_decimal(result, decimal);
	}
	/* of scaled integers the division is the only rounding */
	if (source->path == NULL && s->has_sum && s->scale > 0 && s->sum_i < EXACT_MAX &&
		s->sum_i > -EXACT_MAX)
		return dp_result_double(result, (double) s->sum_i / ((double) n * pow(10, s->scale)));
	if (source->path != NULL || !s->has_sum || !sum_of_summary(packed, &total))
	{
		if (!sum_of_values(r, source, &total, &n))
			return false;
	}
	if (total.type == DP_TYPE_DECIMAL128)
	{
		uint8 room[8];
		DpValue count = { room, 8, DP_TYPE_INT64 };
		uint8 divisor[DP_DECIMAL128_SIZE];
		uint8 quotient[DP_DECIMAL128_SIZE];

		dp_put_int64(room, n);
		dp_number_to_decimal(&count, divisor);
		dp_decimal_combine(DP_DECIMAL_DIVIDE, total.data, divisor, quotient);
		return dp_result_decimal(result, quotient);
	}
	return dp_result_double(result, dp_number_to_double(&total) / (double) n);
}

/* The least or the greatest of BSON values of one type; false if the header does not contain it. */
static bool
extreme_of_summary(const DpPackedColumn *packed, bool least, DpValue *result)
{
	const DpBucketSummary *s = &packed->summary;
	int64 i = least ? s->min_i : s->max_i;

	if (packed->kind != DP_PACKED_VALUE)
		return false;
	switch (packed->bson_type)
	{
		case DP_TYPE_INT32:
			return dp_result_int32(result, (int32) i);
		case DP_TYPE_INT64:
			return dp_result_int64(result, i);
		case DP_TYPE_DATE:
			return dp_result_date(result, i);
		case DP_TYPE_DOUBLE:
			/* the header has NaN as the greatest number, here it is the least */
			if (isnan(s->max_d))
				return false;
			return dp_result_double(result, least ? s->min_d : s->max_d);
		default:
			return false;
	}
}

/* The least (sign -1) or the greatest of numerics, in SQL's order. */
static bool
extreme_of_numerics(DpBucketReader *r, const DpBucketSource *source, int sign, DpValue *result)
{
	Datum *values = palloc_extended(r->count * sizeof(Datum), MCXT_ALLOC_HUGE);
	bool *nulls = palloc(r->count * sizeof(bool));
	int best = -1;

	dp_bucket_datums(r, source->column, NUMERICOID, -1, values, nulls);
	for (int i = 0; i < r->count; i++)
	{
		if (!nulls[i] &&
			(best < 0 ||
			 DatumGetInt32(DirectFunctionCall2(numeric_cmp, values[i], values[best])) * sign > 0))
			best = i;
	}
	if (best < 0)
		return false;
	*result = dp_value_of_varlena(dp_datum_to_value(values[best], NUMERICOID));
	return true;
}

/* The least (sign -1) or the greatest value, null not being one. */
static bool
extreme(DpBucketReader *r, const DpBucketSource *source, int sign, DpValue *result)
{
	DpValue *values = dp_bucket_values_of(r, source);
	const DpValue *best = NULL;

	for (int i = 0; i < r->count; i++)
	{
		if (dp_bucket_is_value(&values[i]) &&
			(best == NULL || dp_value_compare(&values[i], best) * sign > 0))
			best = &values[i];
	}
	if (best == NULL)
		return false;
	*result = *best;
	return true;
}

/*
 * The standard deviation, by the method of Youngs and Cramer; of a sample only if there are two
 * numbers.
 */
static bool
deviation(DpBucketReader *r, const DpBucketSource *source, bool sample, DpValue *result)
{
	double *numbers = palloc_extended(r->count * sizeof(double), MCXT_ALLOC_HUGE);
	bool *nulls = palloc(r->count * sizeof(bool));
	double n = 0;
	double sum = 0;
	double squares = 0;

	if (source->path != NULL || !dp_bucket_doubles(r, source->column, numbers, nulls))
	{
		DpValue *values = dp_bucket_values_of(r, source);

		for (int i = 0; i < r->count; i++)
		{
			nulls[i] = !dp_type_is_number(values[i].type);
			numbers[i] = nulls[i] ? 0 : dp_number_to_double(&values[i]);
		}
	}
	for (int i = 0; i < r->count; i++)
	{
		if (nulls[i])
			continue;
		n++;
		sum += numbers[i];
		if (n > 1)
		{
			double d = numbers[i] * n - sum;

			squares += d * d / (n * (n - 1));
		}
	}
	if (n == 0 || (sample && n < 2))
		return false;
	if (!isfinite(sum))
		squares = get_float8_nan();
	return dp_result_double(result, sqrt(squares / (sample ? n - 1 : n)));
}
