/*
 * aggregate.c
 *		The aggregates sum, avg, min and max over bson_value.
 *
 * sum and avg do as MongoDB's $sum and $avg: what is not a number is passed
 * over; the widest type that was met decides the type of the result.  Integers
 * are added in 128 bits, doubles with compensation for what rounding loses,
 * decimals exactly, as numeric.  Nothing is rounded before the end.
 */
#include "postgres.h"

#include <math.h>

#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

#include "bson/build.h"
#include "bson/compare.h"
#include "bson/number.h"

/* The types of numbers from the narrowest to the widest */
typedef enum Width
{
	WIDTH_NONE,
	WIDTH_INT32,
	WIDTH_INT64,
	WIDTH_DOUBLE,
	WIDTH_DECIMAL
} Width;

/* A sum of doubles: the true sum is close to sum + lost (Neumaier) */
typedef struct DoubleSum
{
	double		sum;
	double		lost;
} DoubleSum;

/*
 * What sum and avg know so far.  Workers of a parallel query hand it over as
 * these bytes, followed by the decimal if there is one.
 */
typedef struct SumState
{
	int64		count;			/* numbers */
	Width		widest;
	int64		high;			/* sum of the integers, of 128 bits */
	uint64		low;
	DoubleSum	doubles;
	Numeric		decimals;		/* sum of the decimals; NULL: none */
} SumState;

static struct varlena *result_of_int64(int64 total, bool narrow);
static struct varlena *result_of_double(double total);
static Numeric total_as_numeric(const SumState *state);
static double total_as_double(const SumState *state);
static struct varlena *divide_decimal(Numeric total, int64 count);

/* Adds a double, and what is lost by it to the other part. */
static inline void
double_add(DoubleSum *total, double d)
{
	double		sum = total->sum + d;

	if (fabs(total->sum) >= fabs(d))
		total->lost += (total->sum - sum) + d;
	else
		total->lost += (d - sum) + total->sum;
	total->sum = sum;
}

/* The sum; once it is infinite or NaN, what was lost means nothing. */
static inline double
double_total(const DoubleSum *total)
{
	return isfinite(total->sum) ? total->sum + total->lost : total->sum;
}

/* Adds an integer of 128 bits. */
static inline void
integer_add(SumState *state, int64 high, uint64 low)
{
	state->low += low;
	state->high = (int64) ((uint64) state->high + (uint64) high + (state->low < low ? 1 : 0));
}

/* Adds a decimal; the new sum lives in the context. */
static void
decimal_add(SumState *state, Numeric n, MemoryContext context)
{
	Numeric		old = state->decimals;
	Datum		sum;

	if (old == NULL)
		sum = NumericGetDatum(n);
	else
		sum = DirectFunctionCall2(numeric_add, NumericGetDatum(old), NumericGetDatum(n));
	context = MemoryContextSwitchTo(context);
	state->decimals = DatumGetNumericCopy(sum);
	MemoryContextSwitchTo(context);
	if (old != NULL)
		pfree(old);
}

/* A new state in the aggregate's memory. */
static SumState *
state_make(MemoryContext context)
{
	return MemoryContextAllocZero(context, sizeof(SumState));
}

/*
 * bson_value_sum_step(internal, bson_value) -> internal: adds one value.
 */
DP_FUNCTION(dp_bson_value_sum_step);
Datum
dp_bson_value_sum_step(PG_FUNCTION_ARGS)
{
	MemoryContext context = dp_aggregate_context(fcinfo);
	SumState   *state = PG_ARGISNULL(0) ? NULL : (SumState *) PG_GETARG_POINTER(0);
	struct varlena *a;
	DpValue		v;
	Width		width = WIDTH_NONE;

	if (state == NULL)
		state = state_make(context);
	if (PG_ARGISNULL(1))
		PG_RETURN_POINTER(state);

	a = DP_GETARG_VARLENA(1);
	v = dp_value_of_varlena(a);
	switch (v.type)
	{
		case DP_TYPE_INT32:
			{
				int64		i = dp_get_int32(v.data);

				integer_add(state, i < 0 ? -1 : 0, (uint64) i);
				width = WIDTH_INT32;
				break;
			}
		case DP_TYPE_INT64:
			{
				int64		i = dp_get_int64(v.data);

				integer_add(state, i < 0 ? -1 : 0, (uint64) i);
				width = WIDTH_INT64;
				break;
			}
		case DP_TYPE_DOUBLE:
			double_add(&state->doubles, dp_get_double(v.data));
			width = WIDTH_DOUBLE;
			break;
		case DP_TYPE_DECIMAL128:
			decimal_add(state, dp_decimal128_to_numeric(v.data), context);
			width = WIDTH_DECIMAL;
			break;
		default:
			break;
	}
	if (width != WIDTH_NONE)
	{
		state->count++;
		state->widest = Max(state->widest, width);
	}
	PG_FREE_IF_COPY(a, 1);
	PG_RETURN_POINTER(state);
}

/*
 * bson_value_sum_combine(internal, internal) -> internal: adds the second
 * state to the first.
 */
DP_FUNCTION(dp_bson_value_sum_combine);
Datum
dp_bson_value_sum_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = dp_aggregate_context(fcinfo);
	SumState   *state = PG_ARGISNULL(0) ? NULL : (SumState *) PG_GETARG_POINTER(0);
	SumState   *other = PG_ARGISNULL(1) ? NULL : (SumState *) PG_GETARG_POINTER(1);

	if (state == NULL)
		state = state_make(context);
	if (other != NULL)
	{
		state->count += other->count;
		state->widest = Max(state->widest, other->widest);
		integer_add(state, other->high, other->low);
		double_add(&state->doubles, other->doubles.sum);
		if (isfinite(other->doubles.sum))
			double_add(&state->doubles, other->doubles.lost);
		if (other->decimals != NULL)
			decimal_add(state, other->decimals, context);
	}
	PG_RETURN_POINTER(state);
}

/*
 * bson_value_sum_serialize(internal) -> bytea, for another process of the same
 * server.
 */
DP_FUNCTION(dp_bson_value_sum_serialize);
Datum
dp_bson_value_sum_serialize(PG_FUNCTION_ARGS)
{
	SumState   *state = (SumState *) PG_GETARG_POINTER(0);
	Size		size = VARHDRSZ + sizeof(SumState);
	Size		more = 0;
	bytea	   *result;

	(void) dp_aggregate_context(fcinfo);
	if (state->decimals != NULL)
		more = VARSIZE(state->decimals);
	result = palloc(size + more);
	SET_VARSIZE(result, size + more);
	memcpy(VARDATA(result), state, sizeof(SumState));
	if (more > 0)
		memcpy((char *) result + size, state->decimals, more);
	PG_RETURN_BYTEA_P(result);
}

/*
 * bson_value_sum_deserialize(bytea, internal) -> internal
 */
DP_FUNCTION(dp_bson_value_sum_deserialize);
Datum
dp_bson_value_sum_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	Size		size = VARSIZE_ANY_EXHDR(bytes);
	SumState   *state;

	(void) dp_aggregate_context(fcinfo);
	if (size < sizeof(SumState))
		elog(ERROR, "state of sum has %zu bytes", size);
	state = palloc(sizeof(SumState));
	memcpy(state, VARDATA_ANY(bytes), sizeof(SumState));
	if (state->decimals != NULL)
	{
		state->decimals = palloc(size - sizeof(SumState));
		memcpy(state->decimals, VARDATA_ANY(bytes) + sizeof(SumState), size - sizeof(SumState));
	}
	PG_RETURN_POINTER(state);
}

/*
 * bson_value_sum_final(internal) -> bson_value: NULL if there was no number.
 */
DP_FUNCTION(dp_bson_value_sum_final);
Datum
dp_bson_value_sum_final(PG_FUNCTION_ARGS)
{
	SumState   *state = PG_ARGISNULL(0) ? NULL : (SumState *) PG_GETARG_POINTER(0);
	uint8		decimal[DP_DECIMAL128_SIZE];
	DpValue		v = {decimal, DP_DECIMAL128_SIZE, DP_TYPE_DECIMAL128};

	if (state == NULL || state->count == 0)
		PG_RETURN_NULL();

	switch (state->widest)
	{
		case WIDTH_INT32:
		case WIDTH_INT64:
			/* it fits 64 bits if the upper half is all sign */
			if (state->high == ((int64) state->low < 0 ? -1 : 0))
				PG_RETURN_POINTER(result_of_int64((int64) state->low, state->widest == WIDTH_INT32));
			PG_RETURN_POINTER(result_of_double(total_as_double(state)));
		case WIDTH_DOUBLE:
			PG_RETURN_POINTER(result_of_double(total_as_double(state)));
		default:
			dp_numeric_round_to_decimal128(total_as_numeric(state), decimal);
			PG_RETURN_POINTER(dp_value_to_varlena(&v));
	}
}

/*
 * bson_value_avg_final(internal) -> bson_value: a decimal128 if there was one
 * among the numbers, else a double; NULL if there was no number.
 */
DP_FUNCTION(dp_bson_value_avg_final);
Datum
dp_bson_value_avg_final(PG_FUNCTION_ARGS)
{
	SumState   *state = PG_ARGISNULL(0) ? NULL : (SumState *) PG_GETARG_POINTER(0);

	if (state == NULL || state->count == 0)
		PG_RETURN_NULL();
	if (state->widest == WIDTH_DECIMAL)
		PG_RETURN_POINTER(divide_decimal(total_as_numeric(state), state->count));
	PG_RETURN_POINTER(result_of_double(total_as_double(state) / (double) state->count));
}

/* An integer as int32 where that is allowed and possible, else as int64. */
static struct varlena *
result_of_int64(int64 total, bool narrow)
{
	uint8		bytes[8];
	DpValue		v = {bytes, 8, DP_TYPE_INT64};

	dp_put_int64(bytes, total);
	if (narrow && total >= PG_INT32_MIN && total <= PG_INT32_MAX)
	{
		dp_put_int32(bytes, (int32) total);
		v.len = 4;
		v.type = DP_TYPE_INT32;
	}
	return dp_value_to_varlena(&v);
}

/* A double; NaN always as the same bytes, whatever the processor makes of it. */
static struct varlena *
result_of_double(double total)
{
	uint8		bytes[8];
	DpValue		v = {bytes, 8, DP_TYPE_DOUBLE};

	if (isnan(total))
		dp_put_int64(bytes, DP_DOUBLE_NAN);
	else
		dp_put_double(bytes, total);
	return dp_value_to_varlena(&v);
}

/* The sum of integers and doubles. */
static double
total_as_double(const SumState *state)
{
	DoubleSum	total = state->doubles;

	/* each part is exact: the upper half counts overflows, which are few */
	if (state->high == ((int64) state->low < 0 ? -1 : 0))
	{
		double_add(&total, (double) ((int64) state->low >> 32) * 4294967296.0);
		double_add(&total, (double) (state->low & 0xffffffff));
	}
	else
	{
		double_add(&total, ldexp((double) state->high, 64));
		double_add(&total, (double) (state->low >> 32) * 4294967296.0);
		double_add(&total, (double) (state->low & 0xffffffff));
	}
	return double_total(&total);
}

/* The sum of all, exactly. */
static Numeric
total_as_numeric(const SumState *state)
{
	Datum		total = NumericGetDatum(state->decimals);
	Numeric		n;

	if (state->high != 0 || state->low != 0)
	{
		/* high * 2^64 + low */
		n = int64_to_numeric((int64) (state->low >> 32));
		n = DatumGetNumeric(DirectFunctionCall2(numeric_add,
												DirectFunctionCall2(numeric_mul, NumericGetDatum(n),
																	NumericGetDatum(int64_to_numeric(INT64CONST(1) << 32))),
												NumericGetDatum(int64_to_numeric((int64) (state->low & 0xffffffff)))));
		if (state->high != 0)
		{
			Datum		two32 = NumericGetDatum(int64_to_numeric(INT64CONST(1) << 32));
			Datum		high = NumericGetDatum(int64_to_numeric(state->high));

			high = DirectFunctionCall2(numeric_mul, DirectFunctionCall2(numeric_mul, high, two32), two32);
			n = DatumGetNumeric(DirectFunctionCall2(numeric_add, high, NumericGetDatum(n)));
		}
		total = DirectFunctionCall2(numeric_add, total, NumericGetDatum(n));
	}
	if (state->doubles.sum != 0)
	{
		total = DirectFunctionCall2(numeric_add, total, NumericGetDatum(dp_double_to_numeric(state->doubles.sum)));
		if (isfinite(state->doubles.sum) && state->doubles.lost != 0)
			total = DirectFunctionCall2(numeric_add, total, NumericGetDatum(dp_double_to_numeric(state->doubles.lost)));
	}
	return DatumGetNumeric(total);
}

/*
 * The total divided by the count as a decimal128 value: division by hand, to
 * more digits than a decimal128 has, a last one standing for all that follow.
 */
static struct varlena *
divide_decimal(Numeric total, int64 count)
{
	uint8		decimal[DP_DECIMAL128_SIZE];
	DpValue		v = {decimal, DP_DECIMAL128_SIZE, DP_TYPE_DECIMAL128};
	uint8		quotient[40];
	DpExact		e;
	int			n = 0;
	int			taken = 0;
	uint64		rest = 0;
	char	   *text;
	char	   *dot;

	dp_exact_from_numeric(total, &e);
	if (e.ndigits > 0)
	{
		/* the quotient's point stands as many digits behind the total's as are taken before its first digit */
		while (n < (int) lengthof(quotient) - 1 && (taken < e.ndigits || rest != 0))
		{
			rest = rest * 10 + (taken < e.ndigits ? e.digits[taken] : 0);
			taken++;
			if (n == 0 && rest < (uint64) count)
				e.point--;
			else
				quotient[n++] = (uint8) (rest / count);
			rest %= count;
		}
		if (rest != 0 || taken < e.ndigits)
			quotient[n++] = 1;
		while (n > 0 && quotient[n - 1] == 0)
			n--;
		e.digits = quotient;
		e.ndigits = n;
	}

	text = DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(total)));
	dot = strchr(text, '.');
	dp_exact_round_to_decimal128(&e, dot == NULL ? 0 : (int) strlen(dot + 1), decimal);
	return dp_value_to_varlena(&v);
}

/*
 * bson_value_smaller(bson_value, bson_value) -> bson_value: the lesser one,
 * the first if they are equal.
 */
DP_FUNCTION(dp_bson_value_smaller);
Datum
dp_bson_value_smaller(PG_FUNCTION_ARGS)
{
	struct varlena *a = DP_GETARG_VARLENA(0);
	struct varlena *b = DP_GETARG_VARLENA(1);
	DpValue		x = dp_value_of_varlena(a);
	DpValue		y = dp_value_of_varlena(b);

	PG_RETURN_POINTER(dp_value_compare(&x, &y) <= 0 ? a : b);
}

/*
 * bson_value_larger(bson_value, bson_value) -> bson_value: the greater one,
 * the first if they are equal.
 */
DP_FUNCTION(dp_bson_value_larger);
Datum
dp_bson_value_larger(PG_FUNCTION_ARGS)
{
	struct varlena *a = DP_GETARG_VARLENA(0);
	struct varlena *b = DP_GETARG_VARLENA(1);
	DpValue		x = dp_value_of_varlena(a);
	DpValue		y = dp_value_of_varlena(b);

	PG_RETURN_POINTER(dp_value_compare(&x, &y) >= 0 ? a : b);
}
