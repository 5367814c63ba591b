/*
 * expression_trig.c
 *		Trigonometry of decimals, by series on numeric.
 *
 * Everything is computed with DP_WORK_SCALE digits after the point.  Arguments
 * next to 0, where these are too few, are their own result, and where those
 * far away from it need another formula they have one.
 */
#include "postgres.h"

#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "bson/number.h"
#include "mql/expression_math.h"

/* Below 10^-SMALL the next term of a series is beyond the 34 digits of a decimal */
#define SMALL 30

/* Beyond 10^LARGE neither a period of pi nor a square can be computed with */
#define LARGE 40

#define PI_TEXT                                                                                    \
	"3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679821480865"

/* ---------------------------------------------------------------- numeric */

static Datum
from_text(const char *text)
{
	return DirectFunctionCall3(numeric_in, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid),
							   Int32GetDatum(-1));
}

static inline Datum
add(Datum a, Datum b)
{
	return DirectFunctionCall2(numeric_add, a, b);
}

static inline Datum
sub(Datum a, Datum b)
{
	return DirectFunctionCall2(numeric_sub, a, b);
}

/* A product, rounded so that its digits do not grow. */
static inline Datum
mul(Datum a, Datum b)
{
	return DirectFunctionCall2(numeric_round, DirectFunctionCall2(numeric_mul, a, b),
							   Int32GetDatum(DP_WORK_SCALE));
}

/* A quotient, of a dividend with DP_WORK_SCALE digits. */
static inline Datum
divide(Datum a, Datum b)
{
	return DirectFunctionCall2(numeric_round, DirectFunctionCall2(numeric_div, a, b),
							   Int32GetDatum(DP_WORK_SCALE));
}

static inline Datum
number(int64 i)
{
	return dp_int_to_numeric(i);
}

static inline Datum
root(Datum a)
{
	return DirectFunctionCall2(numeric_round, DirectFunctionCall1(numeric_sqrt, a),
							   Int32GetDatum(DP_WORK_SCALE));
}

static inline Datum
negate(Datum a)
{
	return DirectFunctionCall1(numeric_uminus, a);
}

static inline bool
less(Datum a, Datum b)
{
	return DatumGetBool(DirectFunctionCall2(numeric_lt, a, b));
}

static inline bool
is_zero(Datum a)
{
	return DatumGetBool(DirectFunctionCall2(numeric_eq, a, number(0)));
}

static inline Datum
pi(void)
{
	return from_text(PI_TEXT);
}

/* ---------------------------------------------------------------- series */

/*
 * x + s x^3/3! + x^5/5! + s x^7/7! .. (odd) or 1 + s x^2/2! + .. with s = sign,
 * of a small x.
 */
static Datum
power_series(Datum x, bool odd, int sign)
{
	Datum square = mul(x, x);
	Datum term = odd ? x : number(1);
	Datum sum = term;

	for (int n = odd ? 3 : 2; !is_zero(term); n += 2)
	{
		term = divide(mul(term, square), number((int64) n * (n - 1)));
		if (sign < 0)
			term = negate(term);
		sum = add(sum, term);
	}
	return sum;
}

/* Sine or cosine, of the remainder after whole quarter turns. */
static Datum
sine(Datum x, bool cosine)
{
	Datum quarter = DirectFunctionCall2(numeric_div, pi(), number(2));
	Datum turns = DirectFunctionCall2(numeric_round, divide(x, quarter), Int32GetDatum(0));
	Datum rest = sub(x, DirectFunctionCall2(numeric_mul, turns, quarter));
	int n = DatumGetInt32(DirectFunctionCall1(numeric_int4,
											  DirectFunctionCall2(numeric_mod, turns, number(4))));

	n = (n + (cosine ? 1 : 0) + 4) % 4;
	rest = DirectFunctionCall2(numeric_round, rest, Int32GetDatum(DP_WORK_SCALE));
	rest = power_series(rest, n % 2 == 0, -1);
	return n >= 2 ? negate(rest) : rest;
}

/*
 * The arc tangent: halved until the series is short.
 */
static Datum
arctan(Datum x)
{
	Datum square;
	Datum term;
	Datum sum;

	if (less(x, number(0)))
		return negate(arctan(negate(x)));
	if (less(number(1), x))
		return sub(DirectFunctionCall2(numeric_div, pi(), number(2)), arctan(divide(number(1), x)));
	for (int i = 0; i < 3; i++)
		x = divide(x, add(number(1), root(add(number(1), mul(x, x)))));
	square = mul(x, x);
	term = x;
	sum = x;
	for (int n = 3; !is_zero(term); n += 2)
	{
		term = negate(mul(term, square));
		sum = add(sum, divide(term, number(n)));
	}
	return mul(sum, number(8));
}

/* e to a power that is not large. */
static Datum
power_of_e(Datum x)
{
	return DirectFunctionCall2(numeric_round, DirectFunctionCall1(numeric_exp, x),
							   Int32GetDatum(DP_WORK_SCALE));
}

/* ---------------------------------------------------------------- entry points */

/*
 * The function of a finite decimal for which it is defined.  Returns false if
 * it has to be computed in doubles: a period of a number beyond 10^40.
 */
bool
dp_decimal_trig(DpTrig which, const uint8 *d, uint8 out[DP_DECIMAL128_SIZE])
{
	DpValue v = { d, DP_DECIMAL128_SIZE, DP_TYPE_DECIMAL128 };
	uint8 buf[DP_EXACT_MAX_DIGITS];
	uint8 two[DP_DECIMAL128_SIZE];
	DpExact e;
	Datum x;
	Datum y;
	bool large;

	dp_exact_from_value(&v, &e, buf);
	large = e.point > LARGE;
	if (e.ndigits == 0 || e.point < -SMALL)
	{
		switch (which)
		{
			case DP_TRIG_COS:
			case DP_TRIG_COSH:
				(void) dp_decimal128_from_text("1", 1, out);
				return true;
			case DP_TRIG_ACOS:
			case DP_TRIG_RADIANS:
			case DP_TRIG_DEGREES:
				break;
			default:
				memcpy(out, d, DP_DECIMAL128_SIZE);
				return true;
		}
	}
	if (which == DP_TRIG_RADIANS || which == DP_TRIG_DEGREES)
	{
		/* of any size: the digits by themselves, then the power of ten */
		int shift = e.point;

		x = dp_exact_to_numeric(&e, -shift);
		y = which == DP_TRIG_RADIANS ? divide(mul(x, pi()), number(180))
									 : divide(mul(x, number(180)), pi());
		dp_numeric_to_decimal_shifted(y, shift, out);
		return true;
	}
	if (large && which <= DP_TRIG_TAN)
		return false;
	if (which == DP_TRIG_SINH || which == DP_TRIG_COSH || which == DP_TRIG_TANH)
	{
		/* from 50 on */
		bool far = large || e.point > 2 || (e.point == 2 && e.digits[0] >= 5);

		if (far && which == DP_TRIG_TANH)
		{
			(void) dp_decimal128_from_text(e.negative ? "-1" : "1", e.negative ? 2 : 1, out);
			return true;
		}
		if (far)
		{
			uint8 power[DP_DECIMAL128_SIZE];

			/* the other exponential is negligible */
			e.negative = false;
			if (e.point > 6)
				(void) dp_decimal128_from_text("Infinity", 8, power);
			else
				dp_decimal_exp(dp_exact_to_numeric(&e, 0), power);
			(void) dp_decimal128_from_text("2", 1, two);
			dp_decimal_combine(DP_DECIMAL_DIVIDE, power, two, out);
			if (which == DP_TRIG_SINH && (d[15] & 0x80) != 0)
				out[15] |= 0x80;
			return true;
		}
	}
	if (large && (which == DP_TRIG_ASINH || which == DP_TRIG_ACOSH))
	{
		/* the root is the number itself */
		uint8 positive[DP_DECIMAL128_SIZE];

		memcpy(positive, d, DP_DECIMAL128_SIZE);
		positive[15] &= 0x7f;
		y = add(dp_decimal_ln(positive), DirectFunctionCall1(numeric_ln, number(2)));
		dp_numeric_to_decimal_shifted(e.negative ? negate(y) : y, 0, out);
		return true;
	}
	if (large && which == DP_TRIG_ATAN)
	{
		y = DirectFunctionCall2(numeric_div, pi(), number(2));
		dp_numeric_to_decimal_shifted(e.negative ? negate(y) : y, 0, out);
		return true;
	}

	x = dp_exact_to_numeric(&e, 0);
	switch (which)
	{
		case DP_TRIG_SIN:
			y = sine(x, false);
			break;
		case DP_TRIG_COS:
			y = sine(x, true);
			break;
		case DP_TRIG_TAN:
			y = divide(sine(x, false), sine(x, true));
			break;
		case DP_TRIG_ASIN:
			y = sub(number(1), mul(x, x));
			if (is_zero(y))
				y = DirectFunctionCall2(numeric_div, e.negative ? negate(pi()) : pi(), number(2));
			else
				y = arctan(divide(x, root(y)));
			break;
		case DP_TRIG_ACOS:
			y = add(number(1), x);
			if (is_zero(y))
				y = pi();
			else
				y = mul(number(2), arctan(root(divide(sub(number(1), x), y))));
			break;
		case DP_TRIG_ATAN:
			y = arctan(x);
			break;
		case DP_TRIG_SINH:
			y = e.point <= 0 ? power_series(x, true, 1)
							 : divide(sub(power_of_e(x), power_of_e(negate(x))), number(2));
			break;
		case DP_TRIG_COSH:
			y = divide(add(power_of_e(x), power_of_e(negate(x))), number(2));
			break;
		case DP_TRIG_TANH:
			y = e.point <= 0 ? divide(power_series(x, true, 1), power_series(x, false, 1))
							 : divide(sub(power_of_e(x), power_of_e(negate(x))),
									  add(power_of_e(x), power_of_e(negate(x))));
			break;
		case DP_TRIG_ASINH:
			if (e.negative)
				x = negate(x);
			y = DirectFunctionCall1(numeric_ln, add(x, root(add(mul(x, x), number(1)))));
			if (e.negative)
				y = negate(y);
			break;
		case DP_TRIG_ACOSH:
			y = DirectFunctionCall1(numeric_ln, add(x, root(sub(mul(x, x), number(1)))));
			break;
		default:
			/* DP_TRIG_ATANH, of which 1 and -1 have no number */
			y = sub(number(1), x);
			if (is_zero(y) || is_zero(add(number(1), x)))
			{
				(void) dp_decimal128_from_text(e.negative ? "-Infinity" : "Infinity",
											   e.negative ? 9 : 8, out);
				return true;
			}
			y = divide(DirectFunctionCall1(numeric_ln, divide(add(number(1), x), y)), number(2));
			break;
	}
	dp_numeric_to_decimal_shifted(y, 0, out);
	return true;
}

/*
 * The angle of a point with finite coordinates that are not both 0.  Returns false if their
 * magnitudes differ too much.
 */
bool
dp_decimal_atan2(const uint8 *dy, const uint8 *dx, uint8 out[DP_DECIMAL128_SIZE])
{
	uint8 quotient[DP_DECIMAL128_SIZE];
	DpValue q = { quotient, DP_DECIMAL128_SIZE, DP_TYPE_DECIMAL128 };
	uint8 buf[DP_EXACT_MAX_DIGITS];
	DpExact e;
	Datum y;
	int xsign = dp_decimal_sign(dx);
	int ysign = dp_decimal_sign(dy);

	if (xsign == 0)
		y = DirectFunctionCall2(numeric_div, ysign < 0 ? negate(pi()) : pi(), number(2));
	else
	{
		dp_decimal_combine(DP_DECIMAL_DIVIDE, dy, dx, quotient);
		if (!dp_decimal_is_finite(quotient))
			return false;
		dp_exact_from_value(&q, &e, buf);
		if (xsign > 0 && (e.ndigits == 0 || e.point < -SMALL))
		{
			memcpy(out, quotient, DP_DECIMAL128_SIZE);
			return true;
		}
		if (e.point > LARGE)
			return false;
		y = arctan(dp_exact_to_numeric(&e, 0));
		if (xsign < 0)
			y = ysign < 0 ? sub(y, pi()) : add(y, pi());
	}
	dp_numeric_to_decimal_shifted(y, 0, out);
	return true;
}
