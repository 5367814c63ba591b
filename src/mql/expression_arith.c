/*
 * expression_arith.c
 *		Operators of arithmetic, on numbers and dates, and of bits.
 *
 * null and what is missing make the result null.
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"

#include "bson/number.h"
#include "mql/expression_node.h"

/* Which of the operators that share a function */
enum
{
	OP_CEIL,
	OP_FLOOR,
	OP_ROUND,
	OP_TRUNC,
	OP_BITAND,
	OP_BITOR,
	OP_BITXOR
};

/*
 * Two arguments that must be numbers.  Returns false, with a null result, if
 * one of them is null or missing.
 */
static bool
two_numbers(const DpNode *node, DpExprState *state, DpValue *a, DpValue *b, DpValue *result)
{
	dp_arg(node, 0, state, a);
	dp_arg(node, 1, state, b);
	if (dp_is_nullish(a) || dp_is_nullish(b))
	{
		dp_result_null(result);
		return false;
	}
	if (!dp_type_is_number(a->type))
		dp_node_type_error(node, "numbers", a);
	if (!dp_type_is_number(b->type))
		dp_node_type_error(node, "numbers", b);
	return true;
}

/* Whether either has the type. */
static inline bool
either(const DpValue *a, const DpValue *b, uint8 type)
{
	return a->type == type || b->type == type;
}

/* The integer of an int32 or an int64. */
static inline int64
integer(const DpValue *v)
{
	return v->type == DP_TYPE_INT32 ? dp_get_int32(v->data) : dp_get_int64(v->data);
}

/* Two numbers, computed as decimals. */
static bool
combine_decimals(DpDecimalOp op, const DpValue *a, const DpValue *b, DpValue *result)
{
	uint8 x[DP_DECIMAL128_SIZE];
	uint8 y[DP_DECIMAL128_SIZE];
	uint8 z[DP_DECIMAL128_SIZE];

	dp_number_to_decimal(a, x);
	dp_number_to_decimal(b, y);
	dp_decimal_combine(op, x, y, z);
	return dp_result_decimal(result, z);
}

/*
 * A number added to a date, or subtracted from one, in milliseconds.  Half a millisecond of a
 * double is rounded away from 0.
 */
static int64
milliseconds(const DpNode *node, const DpValue *v)
{
	DpValue whole;
	int64 ms;

	if (v->type == DP_TYPE_DOUBLE)
	{
		dp_result_double(&whole, round(dp_get_double(v->data)));
		v = &whole;
	}
	if (!dp_result_rounded(&whole, v, DP_ROUND_HALF_EVEN, 0) || !dp_value_to_int64(&whole, &ms))
		dp_node_error(node, ERRCODE_DATETIME_FIELD_OVERFLOW,
					  "meets a number that is too large to be added to a date");
	return ms;
}

/*
 * $add: numbers, and at most one date among them.
 */
static bool
add_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpSum sum;
	bool has_date = false;
	int64 date = 0;
	DpValue v;

	dp_sum_init(&sum);
	for (int i = 0; i < node->nargs; i++)
	{
		dp_arg(node, i, state, &v);
		if (dp_is_nullish(&v))
			return dp_result_null(result);
		if (v.type == DP_TYPE_DATE)
		{
			if (has_date)
				dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "takes only one date");
			has_date = true;
			date = dp_get_int64(v.data);
		}
		else if (dp_type_is_number(v.type))
			dp_sum_add(&sum, &v);
		else
			dp_node_type_error(node, "numbers or a date", &v);
	}
	dp_result_sum(result, &sum);
	if (has_date)
	{
		if (pg_add_s64_overflow(date, milliseconds(node, result), &date))
			dp_node_error(node, ERRCODE_DATETIME_FIELD_OVERFLOW,
						  "gives a date that is out of range");
		return dp_result_date(result, date);
	}
	return true;
}

/*
 * $subtract: numbers; dates give milliseconds; a date less a number is a date.
 */
static bool
subtract_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue a;
	DpValue b;
	int64 i;

	dp_arg(node, 0, state, &a);
	dp_arg(node, 1, state, &b);
	if (dp_is_nullish(&a) || dp_is_nullish(&b))
		return dp_result_null(result);
	if (a.type == DP_TYPE_DATE && (b.type == DP_TYPE_DATE || dp_type_is_number(b.type)))
	{
		int64 subtrahend = b.type == DP_TYPE_DATE ? dp_get_int64(b.data) : milliseconds(node, &b);

		if (pg_sub_s64_overflow(dp_get_int64(a.data), subtrahend, &i))
			dp_node_error(node, ERRCODE_DATETIME_FIELD_OVERFLOW,
						  "gives a result that is out of range");
		return b.type == DP_TYPE_DATE ? dp_result_int64(result, i) : dp_result_date(result, i);
	}
	if (!dp_type_is_number(a.type) || !dp_type_is_number(b.type))
		dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "cannot subtract %s from %s",
					  dp_operand_type(&b), dp_operand_type(&a));
	if (either(&a, &b, DP_TYPE_DECIMAL128))
		return combine_decimals(DP_DECIMAL_SUBTRACT, &a, &b, result);
	if (either(&a, &b, DP_TYPE_DOUBLE) || pg_sub_s64_overflow(integer(&a), integer(&b), &i))
		return dp_result_double(result, dp_number_to_double(&a) - dp_number_to_double(&b));
	return either(&a, &b, DP_TYPE_INT64) ? dp_result_int64(result, i)
										 : dp_result_integer(result, i);
}

/*
 * $multiply
 */
static bool
multiply_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue product;
	DpValue v;

	dp_result_int32(&product, 1);
	for (int n = 0; n < node->nargs; n++)
	{
		int64 i;

		dp_arg(node, n, state, &v);
		if (dp_is_nullish(&v))
			return dp_result_null(result);
		if (!dp_type_is_number(v.type))
			dp_node_type_error(node, "numbers", &v);
		if (n == 0)
			product = v;
		else if (either(&product, &v, DP_TYPE_DECIMAL128))
			combine_decimals(DP_DECIMAL_MULTIPLY, &product, &v, &product);
		else if (either(&product, &v, DP_TYPE_DOUBLE) ||
				 pg_mul_s64_overflow(integer(&product), integer(&v), &i))
			dp_result_double(&product, dp_number_to_double(&product) * dp_number_to_double(&v));
		else if (either(&product, &v, DP_TYPE_INT64))
			dp_result_int64(&product, i);
		else
			dp_result_integer(&product, i);
	}
	*result = product;
	return true;
}

/*
 * $divide: a double, or a decimal where one takes part.
 */
static bool
divide_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue a;
	DpValue b;

	if (!two_numbers(node, state, &a, &b, result))
		return true;
	if (b.type == DP_TYPE_DECIMAL128 ? !dp_decimal_is_nan(b.data) && dp_decimal_sign(b.data) == 0
									 : dp_number_to_double(&b) == 0)
		dp_node_error(node, ERRCODE_DIVISION_BY_ZERO, "cannot divide by zero");
	if (either(&a, &b, DP_TYPE_DECIMAL128))
		return combine_decimals(DP_DECIMAL_DIVIDE, &a, &b, result);
	return dp_result_double(result, dp_number_to_double(&a) / dp_number_to_double(&b));
}

/*
 * $mod: the remainder has the sign of the dividend.
 */
static bool
mod_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue a;
	DpValue b;
	int64 x;
	int64 y;

	if (!two_numbers(node, state, &a, &b, result))
		return true;
	if (b.type == DP_TYPE_DECIMAL128 ? !dp_decimal_is_nan(b.data) && dp_decimal_sign(b.data) == 0
									 : dp_number_to_double(&b) == 0)
		dp_node_error(node, ERRCODE_DIVISION_BY_ZERO, "cannot divide by zero");
	if (either(&a, &b, DP_TYPE_DECIMAL128))
		return combine_decimals(DP_DECIMAL_MODULO, &a, &b, result);
	if (either(&a, &b, DP_TYPE_DOUBLE))
		return dp_result_double(result, fmod(dp_number_to_double(&a), dp_number_to_double(&b)));
	x = integer(&a);
	y = integer(&b);
	x = y == -1 ? 0 : x % y;
	return either(&a, &b, DP_TYPE_INT64) ? dp_result_int64(result, x)
										 : dp_result_int32(result, (int32) x);
}

/*
 * $abs
 */
static bool
abs_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue v;
	uint8 *decimal;

	dp_arg(node, 0, state, &v);
	if (dp_is_nullish(&v))
		return dp_result_null(result);
	switch (v.type)
	{
		case DP_TYPE_INT32:
			return dp_result_integer(result, llabs((int64) dp_get_int32(v.data)));
		case DP_TYPE_INT64:
			if (dp_get_int64(v.data) == PG_INT64_MIN)
				dp_node_error(node, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
							  "gives a number that is too large for a long");
			return dp_result_int64(result, llabs(dp_get_int64(v.data)));
		case DP_TYPE_DOUBLE:
			return dp_result_double(result, fabs(dp_get_double(v.data)));
		case DP_TYPE_DECIMAL128:
			dp_result_decimal(result, v.data);
			decimal = (uint8 *) result->data;
			decimal[15] &= 0x7f;
			return true;
		default:
			dp_node_type_error(node, "a number", &v);
	}
	return false; /* not reached */
}

/*
 * $ceil and $floor.  A decimal without room for its last digit before the point gives NaN, as
 * infinity does.
 */
static bool
whole_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue v;

	dp_arg(node, 0, state, &v);
	if (dp_is_nullish(&v))
		return dp_result_null(result);
	if (!dp_type_is_number(v.type))
		dp_node_type_error(node, "a number", &v);
	dp_result_rounded(result, &v, node->op->which == OP_CEIL ? DP_ROUND_CEILING : DP_ROUND_FLOOR,
					  0);
	if (result->type == DP_TYPE_DECIMAL128 && !dp_decimal_is_whole(result->data))
	{
		uint8 nan[DP_DECIMAL128_SIZE];

		(void) dp_decimal128_from_text("NaN", 3, nan);
		return dp_result_decimal(result, nan);
	}
	return true;
}

/*
 * $round and $trunc: a number, and to how many digits after the point.
 */
static bool
round_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue v;
	DpValue digits;
	int64 place = 0;

	dp_arg(node, 0, state, &v);
	if (dp_is_nullish(&v))
		return dp_result_null(result);
	if (!dp_type_is_number(v.type))
		dp_node_type_error(node, "a number", &v);
	if (node->nargs > 1)
	{
		dp_arg(node, 1, state, &digits);
		if (dp_is_nullish(&digits))
			return dp_result_null(result);
		if (!dp_value_to_int64(&digits, &place))
			dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE,
						  "needs a whole number as its place, not %s", dp_operand_type(&digits));
		if (place < -20 || place > 100)
			dp_node_error(node, ERRCODE_INVALID_PARAMETER_VALUE, "needs a place from -20 to 100");
	}
	if (!dp_result_rounded(result, &v,
						   node->op->which == OP_ROUND ? DP_ROUND_HALF_EVEN : DP_ROUND_TRUNCATE,
						   (int) place))
		dp_node_error(node, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
					  "gives a number that is too large for a long");
	return true;
}

/*
 * $bitAnd, $bitOr and $bitXor of int and long.
 */
static bool
bits_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	int which = node->op->which;
	int64 bits = which == OP_BITAND ? -1 : 0;
	bool is_long = false;
	bool is_null = false;
	DpValue v;

	for (int i = 0; i < node->nargs; i++)
	{
		dp_arg(node, i, state, &v);
		if (dp_is_nullish(&v))
		{
			is_null = true;
			continue;
		}
		if (v.type != DP_TYPE_INT32 && v.type != DP_TYPE_INT64)
			dp_node_type_error(node, "int or long", &v);
		is_long = is_long || v.type == DP_TYPE_INT64;
		if (which == OP_BITAND)
			bits &= integer(&v);
		else if (which == OP_BITOR)
			bits |= integer(&v);
		else
			bits ^= integer(&v);
	}
	if (is_null)
		return dp_result_null(result);
	return is_long ? dp_result_int64(result, bits) : dp_result_int32(result, (int32) bits);
}

/*
 * $bitNot
 */
static bool
bitnot_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue v;

	dp_arg(node, 0, state, &v);
	if (dp_is_nullish(&v))
		return dp_result_null(result);
	if (v.type == DP_TYPE_INT32)
		return dp_result_int32(result, ~dp_get_int32(v.data));
	if (v.type != DP_TYPE_INT64)
		dp_node_type_error(node, "int or long", &v);
	return dp_result_int64(result, ~dp_get_int64(v.data));
}

const DpOperator dp_operators_arith[] = {
	{ .name = "$abs", .eval = abs_eval, .min = 1, .max = 1 },
	{ .name = "$add", .eval = add_eval, .min = 0, .max = -1 },
	{ .name = "$bitAnd", .eval = bits_eval, .min = 0, .max = -1, .which = OP_BITAND },
	{ .name = "$bitNot", .eval = bitnot_eval, .min = 1, .max = 1 },
	{ .name = "$bitOr", .eval = bits_eval, .min = 0, .max = -1, .which = OP_BITOR },
	{ .name = "$bitXor", .eval = bits_eval, .min = 0, .max = -1, .which = OP_BITXOR },
	{ .name = "$ceil", .eval = whole_eval, .min = 1, .max = 1, .which = OP_CEIL },
	{ .name = "$divide", .eval = divide_eval, .min = 2, .max = 2 },
	{ .name = "$floor", .eval = whole_eval, .min = 1, .max = 1, .which = OP_FLOOR },
	{ .name = "$mod", .eval = mod_eval, .min = 2, .max = 2 },
	{ .name = "$multiply", .eval = multiply_eval, .min = 0, .max = -1 },
	{ .name = "$round", .eval = round_eval, .min = 1, .max = 2, .which = OP_ROUND },
	{ .name = "$subtract", .eval = subtract_eval, .min = 2, .max = 2 },
	{ .name = "$trunc", .eval = round_eval, .min = 1, .max = 2, .which = OP_TRUNC },
	{ NULL }
};
