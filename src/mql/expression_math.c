/*
 * expression_math.c
 *		Roots, powers, logarithms, trigonometry and $rand.
 *
 * Integers and doubles give doubles.  Decimals give decimals: roots, powers and
 * logarithms of them are computed by numeric, of a number that was shifted to
 * where numeric is exact enough.
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"
#include "common/pg_prng.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "mql/expression_math.h"

/* Exponents beyond this give infinity or 0 in any case */
#define MAX_EXPONENT 20000

/* A scale beyond that of any decimal */
#define ALL_DIGITS 10000

/* What is too small for a decimal */
#define LEAST_ZERO "0E-6176"

enum
{
	OP_EXP,
	OP_LN,
	OP_LOG10,
	OP_SIGMOID,
	OP_SQRT
};

/* A row of trigonometry: the function and where it is defined */
typedef struct Trig
{
	double (*function)(double);
	double least;
	double most;
	bool finite; /* not of infinity */
} Trig;

/* ---------------------------------------------------------------- decimals */

/* The numeric digits * 10^shift, with DP_WORK_SCALE digits after the point. */
Datum
dp_exact_to_numeric(const DpExact *e, int shift)
{
	char text[DP_EXACT_MAX_DIGITS + 32];
	char *p = text;
	Datum n;

	if (e->negative)
		*p++ = '-';
	*p++ = '0';
	for (int i = 0; i < e->ndigits; i++)
		*p++ = '0' + e->digits[i];
	sprintf(p, "e%d", e->point - e->ndigits + shift);
	n = DirectFunctionCall3(numeric_in, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid),
							Int32GetDatum(-1));
	return DirectFunctionCall2(numeric_round, n, Int32GetDatum(DP_WORK_SCALE));
}

/* A whole number as numeric, with DP_WORK_SCALE digits after the point. */
Datum
dp_int_to_numeric(int64 i)
{
	return DirectFunctionCall2(numeric_round, NumericGetDatum(int64_to_numeric(i)),
							   Int32GetDatum(DP_WORK_SCALE));
}

/* ln(10) */
static Datum
numeric_ln10(void)
{
	return DirectFunctionCall1(numeric_ln, dp_int_to_numeric(10));
}

/* The natural logarithm of a positive finite decimal. */
Datum
dp_decimal_ln(const uint8 *d)
{
	DpValue v = { d, DP_DECIMAL128_SIZE, DP_TYPE_DECIMAL128 };
	uint8 buf[DP_EXACT_MAX_DIGITS];
	DpExact e;
	int shift;
	Datum ln;

	/* of a number from 0.1 to 1, or itself if it is close to 1 */
	dp_exact_from_value(&v, &e, buf);
	shift = e.point == 0 || e.point == 1 ? 0 : e.point;
	ln = DirectFunctionCall1(numeric_ln, dp_exact_to_numeric(&e, -shift));
	if (shift == 0)
		return ln;
	return DirectFunctionCall2(numeric_add, ln,
							   DirectFunctionCall2(numeric_mul, dp_int_to_numeric(shift),
												   numeric_ln10()));
}

/* A numeric times a power of ten, as a decimal with zeros up to the scale. */
static void
numeric_to_decimal_scaled(Datum n, int shift, int scale, uint8 out[DP_DECIMAL128_SIZE])
{
	DpExact e;

	dp_exact_from_numeric(DatumGetNumeric(n), &e);
	if (e.ndigits > 0)
		e.point += shift;
	dp_exact_round_to_decimal128(&e, scale, out);
}

void
dp_numeric_to_decimal_shifted(Datum n, int shift, uint8 out[DP_DECIMAL128_SIZE])
{
	numeric_to_decimal_scaled(n, shift, 0, out);
}

/* e to the power of a numeric, as a decimal. */
void
dp_decimal_exp(Datum x, uint8 out[DP_DECIMAL128_SIZE])
{
	double approximate = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, x));
	int shift;

	if (fabs(approximate) > MAX_EXPONENT)
	{
		const char *text = approximate > 0 ? "Infinity" : LEAST_ZERO;

		(void) dp_decimal128_from_text(text, strlen(text), out);
		return;
	}
	/* powers of ten are split off */
	shift = (int) floor(approximate / M_LN10);
	x = DirectFunctionCall2(numeric_sub, x,
							DirectFunctionCall2(numeric_mul, dp_int_to_numeric(shift),
												numeric_ln10()));
	dp_numeric_to_decimal_shifted(DirectFunctionCall1(numeric_exp, x), shift, out);
}

/* The square root of a finite decimal that is not negative; of a zero, the zero with its sign. */
static void
decimal_sqrt(const uint8 *d, uint8 out[DP_DECIMAL128_SIZE])
{
	DpValue v = { d, DP_DECIMAL128_SIZE, DP_TYPE_DECIMAL128 };
	uint8 buf[DP_EXACT_MAX_DIGITS];
	DpExact e;
	int shift;

	dp_exact_from_value(&v, &e, buf);
	shift = e.point & ~1;
	numeric_to_decimal_scaled(DirectFunctionCall1(numeric_sqrt, dp_exact_to_numeric(&e, -shift)),
							  shift / 2, -(dp_decimal_exponent(d) >> 1), out);
	out[15] |= d[15] & 0x80;
}

/* 1 / (1 + e to the power of -x) for a finite decimal */
static void
decimal_sigmoid(const uint8 *d, uint8 out[DP_DECIMAL128_SIZE])
{
	uint8 one[DP_DECIMAL128_SIZE];
	uint8 power[DP_DECIMAL128_SIZE];
	uint8 sum[DP_DECIMAL128_SIZE];

	(void) dp_decimal128_from_text("1", 1, one);
	dp_decimal_exp(
		DirectFunctionCall1(numeric_uminus,
							DirectFunctionCall2(numeric_round,
												NumericGetDatum(dp_decimal128_to_numeric(d)),
												Int32GetDatum(DP_WORK_SCALE))),
		power);
	dp_decimal_combine(DP_DECIMAL_ADD, one, power, sum);
	if (dp_decimal_is_finite(sum))
		dp_decimal_combine(DP_DECIMAL_DIVIDE, one, sum, out);
	else
		(void) dp_decimal128_from_text(LEAST_ZERO, strlen(LEAST_ZERO), out);
}

/* One decimal to the power of another; the case of 0 to a negative power is ruled out. */
static void
decimal_pow(const uint8 *base, const uint8 *exponent, uint8 out[DP_DECIMAL128_SIZE])
{
	DpValue y = { exponent, DP_DECIMAL128_SIZE, DP_TYPE_DECIMAL128 };
	uint8 positive[DP_DECIMAL128_SIZE];
	uint8 one[DP_DECIMAL128_SIZE];
	bool whole;
	int64 n;
	int sign = dp_decimal_sign(base);

	(void) dp_decimal128_from_text("1", 1, one);
	memcpy(positive, base, DP_DECIMAL128_SIZE);
	positive[15] &= 0x7f;
	whole = dp_value_to_int64(&y, &n);
	if (whole && n == 0)
		memcpy(out, one, DP_DECIMAL128_SIZE);
	else if (dp_decimal_is_nan(base) || dp_decimal_is_nan(exponent) || (sign < 0 && !whole))
		(void) dp_decimal128_from_text("NaN", 3, out);
	else if (!dp_decimal_is_finite(base) || !dp_decimal_is_finite(exponent) || sign == 0)
	{
		DpValue x = { base, DP_DECIMAL128_SIZE, DP_TYPE_DECIMAL128 };

		double power = pow(dp_number_to_double(&x), dp_number_to_double(&y));

		/* infinities are what they are for doubles */
		if (power == 0)
			(void) dp_decimal128_from_text(LEAST_ZERO, strlen(LEAST_ZERO), out);
		else
			dp_double_to_decimal(power, out);
	}
	else if (whole && n >= -2000 && n <= 2000)
	{
		DpValue x = { positive, DP_DECIMAL128_SIZE, DP_TYPE_DECIMAL128 };
		uint8 buf[DP_EXACT_MAX_DIGITS];
		uint8 power[DP_DECIMAL128_SIZE];
		DpExact e;
		int shift;

		dp_exact_from_value(&x, &e, buf);
		shift = e.point - 1;
		numeric_to_decimal_scaled(DirectFunctionCall2(numeric_power,
													  dp_exact_to_numeric(&e, -shift),
													  dp_int_to_numeric(n < 0 ? -n : n)),
								  shift * (int) (n < 0 ? -n : n), ALL_DIGITS, power);
		if (n < 0)
			dp_decimal_combine(DP_DECIMAL_DIVIDE, one, power, out);
		else
			memcpy(out, power, DP_DECIMAL128_SIZE);
		if (sign < 0 && n % 2 != 0)
			out[15] |= 0x80;
	}
	else
	{
		dp_decimal_exp(DirectFunctionCall2(numeric_mul,
										   NumericGetDatum(dp_decimal128_to_numeric(exponent)),
										   dp_decimal_ln(positive)),
					   out);
		if (sign < 0 && n % 2 != 0)
			out[15] |= 0x80;
	}
}

/* ---------------------------------------------------------------- arguments */

/*
 * A number.  Returns false if it is null or missing.
 */
static bool
number_arg(const DpNode *node, int i, DpExprState *state, DpValue *v)
{
	dp_arg(node, i, state, v);
	if (dp_is_nullish(v))
		return false;
	if (!dp_type_is_number(v->type))
		dp_node_type_error(node, "a number", v);
	return true;
}

/* -1, 0 or 1; NaN gives 2 */
static int
number_sign(const DpValue *v)
{
	double d;

	if (v->type == DP_TYPE_DECIMAL128)
		return dp_decimal_is_nan(v->data) ? 2 : dp_decimal_sign(v->data);
	d = dp_number_to_double(v);
	return isnan(d) ? 2 : (d > 0) - (d < 0);
}

/* Raises an error unless the number is positive or NaN. */
static void
need_positive(const DpNode *node, const DpValue *v)
{
	if (number_sign(v) <= 0)
		dp_node_error(node, ERRCODE_INVALID_ARGUMENT_FOR_LOG, "needs a number greater than 0");
}

/* ---------------------------------------------------------------- operators */

/*
 * $exp, $ln, $log10, $sigmoid and $sqrt
 */
static bool
function_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	int which = node->op->which;
	uint8 out[DP_DECIMAL128_SIZE];
	DpValue v;
	double d;

	if (!number_arg(node, 0, state, &v))
		return dp_result_null(result);
	if (which == OP_LN || which == OP_LOG10)
		need_positive(node, &v);
	if (which == OP_SQRT && number_sign(&v) < 0)
		dp_node_error(node, ERRCODE_INVALID_ARGUMENT_FOR_POWER_FUNCTION,
					  "needs a number that is not negative");
	if (v.type == DP_TYPE_DECIMAL128 && dp_decimal_is_finite(v.data))
	{
		DpExact e;
		uint8 buf[DP_EXACT_MAX_DIGITS];

		dp_exact_from_value(&v, &e, buf);
		if (which == OP_EXP)
			dp_decimal_exp(DirectFunctionCall2(numeric_round,
											   NumericGetDatum(dp_decimal128_to_numeric(v.data)),
											   Int32GetDatum(DP_WORK_SCALE)),
						   out);
		else if (which == OP_SIGMOID)
			decimal_sigmoid(v.data, out);
		else if (which == OP_SQRT)
			decimal_sqrt(v.data, out);
		else if (which == OP_LN)
			dp_numeric_to_decimal_shifted(dp_decimal_ln(v.data), 0, out);
		else if (e.ndigits == 1 && e.digits[0] == 1)
			dp_numeric_to_decimal_shifted(dp_int_to_numeric(e.point - 1), 0, out);
		else
			dp_numeric_to_decimal_shifted(DirectFunctionCall2(numeric_div, dp_decimal_ln(v.data),
															  numeric_ln10()),
										  0, out);
		return dp_result_decimal(result, out);
	}
	d = dp_number_to_double(&v);
	d = which == OP_EXP       ? exp(d)
		: which == OP_SQRT    ? sqrt(d)
		: which == OP_LN      ? log(d)
		: which == OP_SIGMOID ? 1 / (1 + exp(-d))
							  : log10(d);
	if (v.type == DP_TYPE_DECIMAL128 && which == OP_SIGMOID && !isnan(d))
	{
		const char *text = d == 0 ? LEAST_ZERO : "1";

		(void) dp_decimal128_from_text(text, strlen(text), out);
		return dp_result_decimal(result, out);
	}
	/* logarithms of NaN are doubles */
	if (v.type == DP_TYPE_DECIMAL128 && !(isnan(d) && (which == OP_LN || which == OP_LOG10)))
	{
		dp_double_to_decimal(d, out);
		return dp_result_decimal(result, out);
	}
	return dp_result_double(result, d);
}

/*
 * $log: [number, base]
 */
static bool
log_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	uint8 x[DP_DECIMAL128_SIZE];
	uint8 y[DP_DECIMAL128_SIZE];
	DpValue v;
	DpValue base;
	bool found = number_arg(node, 0, state, &v);

	if (!number_arg(node, 1, state, &base) || !found)
		return dp_result_null(result);
	need_positive(node, &v);
	need_positive(node, &base);
	if (dp_number_to_double(&base) == 1)
		dp_node_error(node, ERRCODE_INVALID_ARGUMENT_FOR_LOG, "needs a base other than 1");
	if (v.type == DP_TYPE_DECIMAL128 || base.type == DP_TYPE_DECIMAL128)
	{
		dp_number_to_decimal(&v, x);
		dp_number_to_decimal(&base, y);
		if (dp_decimal_is_finite(x) && dp_decimal_is_finite(y))
		{
			uint8 quotient[DP_DECIMAL128_SIZE];

			/* both logarithms are rounded, as MongoDB's are */
			dp_numeric_to_decimal_shifted(dp_decimal_ln(x), 0, x);
			dp_numeric_to_decimal_shifted(dp_decimal_ln(y), 0, y);
			dp_decimal_combine(DP_DECIMAL_DIVIDE, x, y, quotient);
			return dp_result_decimal(result, quotient);
		}
		if (!dp_decimal_is_nan(x) && !dp_decimal_is_nan(y))
		{
			dp_double_to_decimal(log(dp_number_to_double(&v)) / log(dp_number_to_double(&base)), x);
			return dp_result_decimal(result, x);
		}
	}
	return dp_result_double(result, log(dp_number_to_double(&v)) / log(dp_number_to_double(&base)));
}

/*
 * $pow: integers give an integer where it fits a long, else a double.
 */
static bool
pow_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue a;
	DpValue b;
	int64 base;
	int64 exponent;
	int64 power = 1;
	bool found = number_arg(node, 0, state, &a);

	if (!number_arg(node, 1, state, &b) || !found)
		return dp_result_null(result);
	if (number_sign(&a) == 0 && number_sign(&b) == -1)
		dp_node_error(node, ERRCODE_INVALID_ARGUMENT_FOR_POWER_FUNCTION,
					  "cannot raise 0 to a negative power");
	if (a.type == DP_TYPE_DECIMAL128 || b.type == DP_TYPE_DECIMAL128)
	{
		uint8 x[DP_DECIMAL128_SIZE];
		uint8 y[DP_DECIMAL128_SIZE];
		uint8 z[DP_DECIMAL128_SIZE];

		dp_number_to_decimal(&a, x);
		dp_number_to_decimal(&b, y);
		decimal_pow(x, y, z);
		return dp_result_decimal(result, z);
	}
	if (a.type == DP_TYPE_DOUBLE || b.type == DP_TYPE_DOUBLE)
		return dp_result_double(result, pow(dp_number_to_double(&a), dp_number_to_double(&b)));

	(void) dp_value_to_int64(&a, &base);
	(void) dp_value_to_int64(&b, &exponent);
	if (base == 0)
		power = exponent == 0 ? 1 : 0;
	else if (base == -1)
		power = exponent % 2 == 0 ? 1 : -1;
	else if (base != 1)
	{
		bool fits = exponent >= 0 && exponent <= 63;

		for (int64 i = 0; i < exponent && fits; i++)
			fits = !pg_mul_s64_overflow(power, base, &power);
		if (!fits)
			return dp_result_double(result, pow((double) base, (double) exponent));
	}
	return a.type == DP_TYPE_INT32 && b.type == DP_TYPE_INT32 ? dp_result_integer(result, power)
															  : dp_result_int64(result, power);
}

/* Radians of degrees, and back */
static double
radians_of(double degrees)
{
	return degrees * (M_PI / 180);
}

static double
degrees_of(double radians)
{
	return radians * (180 / M_PI);
}

#define ANY -INFINITY, INFINITY

static const Trig trigs[] = { { sin, ANY, true },
							  { cos, ANY, true },
							  { tan, ANY, true },
							  { asin, -1, 1, false },
							  { acos, -1, 1, false },
							  { atan, ANY, false },
							  { sinh, ANY, false },
							  { cosh, ANY, false },
							  { tanh, ANY, false },
							  { asinh, ANY, false },
							  { acosh, 1, INFINITY, false },
							  { atanh, -1, 1, false },
							  { radians_of, ANY, false },
							  { degrees_of, ANY, false } };

/*
 * Whether a function is not defined for a number.  A decimal may be beyond a
 * bound that the double next to it is not.
 */
static bool
out_of_domain(const Trig *trig, const DpValue *v, double d)
{
	uint8 room[8];
	DpValue bound = { room, 8, DP_TYPE_DOUBLE };

	if (d < trig->least || d > trig->most)
		return true;
	if (v->type != DP_TYPE_DECIMAL128 || (d != trig->least && d != trig->most))
		return false;
	dp_put_double(room, d);
	return d == trig->least ? dp_number_compare(v, &bound) < 0 : dp_number_compare(v, &bound) > 0;
}

/*
 * Trigonometry of one argument; which is the row above, a DpTrig.
 */
static bool
trig_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	const Trig *trig = &trigs[node->op->which];
	DpValue v;
	double d;

	if (!number_arg(node, 0, state, &v))
		return dp_result_null(result);
	d = dp_number_to_double(&v);
	if (trig->finite && isinf(d))
		dp_node_error(node, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE, "needs a finite number");
	if (out_of_domain(trig, &v, d))
		dp_node_error(node, ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
					  trig->most == 1 ? "needs a number from -1 to 1"
									  : "needs a number that is at least 1");
	if (v.type == DP_TYPE_DECIMAL128)
	{
		uint8 out[DP_DECIMAL128_SIZE];

		if (!dp_decimal_is_finite(v.data) ||
			!dp_decimal_trig((DpTrig) node->op->which, v.data, out))
			dp_double_to_decimal(trig->function(d), out);
		return dp_result_decimal(result, out);
	}
	return dp_result_double(result, trig->function(d));
}

/*
 * $atan2: [y, x]
 */
static bool
atan2_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	DpValue y;
	DpValue x;
	double d;
	bool found = number_arg(node, 0, state, &y);

	if (!number_arg(node, 1, state, &x) || !found)
		return dp_result_null(result);
	d = atan2(dp_number_to_double(&y), dp_number_to_double(&x));
	if (y.type == DP_TYPE_DECIMAL128 || x.type == DP_TYPE_DECIMAL128)
	{
		uint8 dy[DP_DECIMAL128_SIZE];
		uint8 dx[DP_DECIMAL128_SIZE];
		uint8 out[DP_DECIMAL128_SIZE];

		dp_number_to_decimal(&y, dy);
		dp_number_to_decimal(&x, dx);
		if (!dp_decimal_is_finite(dy) || !dp_decimal_is_finite(dx) ||
			(dp_decimal_sign(dy) == 0 && dp_decimal_sign(dx) == 0) ||
			!dp_decimal_atan2(dy, dx, out))
			dp_double_to_decimal(d, out);
		return dp_result_decimal(result, out);
	}
	return dp_result_double(result, d);
}

/*
 * $rand: {}, a double from 0 on, less than 1, by PostgreSQL's generator.
 */
static bool
rand_eval(const DpNode *node, DpExprState *state, DpValue *result)
{
	return dp_result_double(result, pg_prng_double(&pg_global_prng_state));
}

static DpNode *
rand_compile(DpCompiler *c, const DpOperator *op, const DpValue *spec)
{
	if (c->flags & DP_EXPR_IMMUTABLE)
		dp_compile_unsupported(
			c, "$rand is not allowed here, because the result must not depend on chance");
	if (!dp_type_is_container(spec->type) || dp_array_count(spec->data, spec->len) != 0)
		dp_compile_error(c, "$rand takes no arguments");
	return dp_node_make(c, op->eval, op, 0);
}

#define TRIG(n, w)                                                                                 \
	{                                                                                              \
		.name = n, .eval = trig_eval, .min = 1, .max = 1, .which = w                               \
	}

const DpOperator dp_operators_math[] = {
	TRIG("$acos", 4),
	TRIG("$acosh", 10),
	TRIG("$asin", 3),
	TRIG("$asinh", 9),
	TRIG("$atan", 5),
	{ .name = "$atan2", .eval = atan2_eval, .min = 2, .max = 2 },
	TRIG("$atanh", 11),
	TRIG("$cos", 1),
	TRIG("$cosh", 7),
	TRIG("$degreesToRadians", 12),
	{ .name = "$exp", .eval = function_eval, .min = 1, .max = 1, .which = OP_EXP },
	{ .name = "$ln", .eval = function_eval, .min = 1, .max = 1, .which = OP_LN },
	{ .name = "$log", .eval = log_eval, .min = 2, .max = 2 },
	{ .name = "$log10", .eval = function_eval, .min = 1, .max = 1, .which = OP_LOG10 },
	{ .name = "$pow", .eval = pow_eval, .min = 2, .max = 2 },
	TRIG("$radiansToDegrees", 13),
	{ .name = "$rand", .eval = rand_eval, .compile = rand_compile },
	TRIG("$sin", 0),
	TRIG("$sinh", 6),
	{ .name = "$sigmoid", .eval = function_eval, .min = 1, .max = 1, .which = OP_SIGMOID },
	{ .name = "$sqrt", .eval = function_eval, .min = 1, .max = 1, .which = OP_SQRT },
	TRIG("$tan", 2),
	TRIG("$tanh", 8),
	{ NULL }
};
