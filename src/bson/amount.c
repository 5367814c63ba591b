/*
 * amount.c
 *		Numbers that are added up: what counters add, and their sums.
 */
#include "postgres.h"

#include "common/int.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "bson/amount.h"

static void amount_combine(DpAmount *sum, const DpValue *number, bool subtract);

void
dp_amount_set(DpAmount *amount, const DpValue *number)
{
	Assert(dp_type_is_number(number->type));
	amount->value.type = number->type;
	amount->value.len = number->len;
	memmove(amount->bytes, number->data, number->len);
	amount->value.data = amount->bytes;
}

void
dp_amount_set_int(DpAmount *amount, int64 i, bool wide)
{
	amount->value.data = amount->bytes;
	if (!wide && i >= PG_INT32_MIN && i <= PG_INT32_MAX)
	{
		amount->value.type = DP_TYPE_INT32;
		amount->value.len = 4;
		dp_put_int32(amount->bytes, (int32) i);
	}
	else
	{
		amount->value.type = DP_TYPE_INT64;
		amount->value.len = 8;
		dp_put_int64(amount->bytes, i);
	}
}

void
dp_amount_set_double(DpAmount *amount, double d)
{
	amount->value.data = amount->bytes;
	amount->value.type = DP_TYPE_DOUBLE;
	amount->value.len = 8;
	dp_put_double(amount->bytes, d);
}

void
dp_amount_set_decimal(DpAmount *amount, Numeric n)
{
	amount->value.data = amount->bytes;
	amount->value.type = DP_TYPE_DECIMAL128;
	amount->value.len = DP_DECIMAL128_SIZE;
	dp_numeric_round_to_decimal128(n, amount->bytes);
}

void
dp_amount_add(DpAmount *sum, const DpValue *number)
{
	amount_combine(sum, number, false);
}

void
dp_amount_subtract(DpAmount *sum, const DpValue *number)
{
	amount_combine(sum, number, true);
}

double
dp_amount_double(const DpValue *number)
{
	if (dp_amount_is_int(number))
		return (double) dp_amount_int(number);
	if (number->type == DP_TYPE_DOUBLE)
		return dp_get_double(number->data);
	return dp_number_approximate(number);
}

Numeric
dp_amount_numeric(const DpValue *number)
{
	if (number->type == DP_TYPE_DECIMAL128)
		return dp_decimal128_to_numeric(number->data);
	if (number->type == DP_TYPE_DOUBLE)
		return DatumGetNumeric(DirectFunctionCall1(float8_numeric,
												   Float8GetDatum(dp_get_double(number->data))));
	return int64_to_numeric(dp_amount_int(number));
}

/* The sum or the difference, by the types of both. */
static void
amount_combine(DpAmount *sum, const DpValue *number, bool subtract)
{
	const DpValue *old = &sum->value;

	if (old->type == DP_TYPE_DECIMAL128 || number->type == DP_TYPE_DECIMAL128)
	{
		Numeric a = dp_amount_numeric(old);
		Numeric b = dp_amount_numeric(number);

		dp_amount_set_decimal(sum, DatumGetNumeric(DirectFunctionCall2(subtract ? numeric_sub
																				: numeric_add,
																	   NumericGetDatum(a),
																	   NumericGetDatum(b))));
	}
	else if (old->type == DP_TYPE_DOUBLE || number->type == DP_TYPE_DOUBLE)
	{
		double a = dp_amount_double(old);
		double b = dp_amount_double(number);

		dp_amount_set_double(sum, subtract ? a - b : a + b);
	}
	else
	{
		int64 a = dp_amount_int(old);
		int64 b = dp_amount_int(number);
		int64 n;

		if (subtract ? pg_sub_s64_overflow(a, b, &n) : pg_add_s64_overflow(a, b, &n))
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("the sum is out of range"),
					 errdetail("It does not fit into an int64.")));
		dp_amount_set_int(sum, n, old->type == DP_TYPE_INT64 || number->type == DP_TYPE_INT64);
	}
}
