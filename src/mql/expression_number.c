/*
 * expression_number.c
 *		Numbers in expressions: sums, decimal arithmetic, rounding.
 *
 * int32 widens to int64, int64 to double and double to decimal, by the widest operand; an integer
 * result that does not fit widens as well.  Decimals are computed as numeric, exactly, and rounded
 * once, to 34 digits.  A double combined with a decimal counts with its first 15 digits.
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#include "bson/number.h"
#include "mql/expression_node.h"

#define DECIMAL128_BIAS 6176

/* More digits than a quotient of two decimals needs to be rounded rightly */
#define QUOTIENT_DIGITS 72

/* ---------------------------------------------------------------- conversions */

double
dp_number_to_double(const DpValue *v)
{
	return dp_number_approximate(v);
}

/*
 * The decimal with the first 15 significant digits of a double.
 */
void
dp_double_to_decimal(double d, uint8 out[DP_DECIMAL128_SIZE])
{
	char text[48];

	if (isnan(d))
		strcpy(text, "NaN");
	else if (isinf(d))
		strcpy(text, d < 0 ? "-Infinity" : "Infinity");
	else if (d == 0)
		strcpy(text, signbit(d) ? "-0" : "0");
	else
		snprintf(text, sizeof(text), "%.14e", d);
	(void) dp_decimal128_from_text(text, strlen(text), out);
}

/*
 * Any number as a decimal.
 */
void
dp_number_to_decimal(const DpValue *v, uint8 out[DP_DECIMAL128_SIZE])
{
	char text[MAXINT8LEN + 1];

	switch (v->type)
	{
		case DP_TYPE_DECIMAL128:
			memcpy(out, v->data, DP_DECIMAL128_SIZE);
			break;
		case DP_TYPE_DOUBLE:
			dp_double_to_decimal(dp_get_double(v->data), out);
			break;
		default:
			pg_lltoa(v->type == DP_TYPE_INT32 ? dp_get_int32(v->data) : dp_get_int64(v->data),
					 text);
			(void) dp_decimal128_from_text(text, strlen(text), out);
			break;
	}
}

/* The combination field's upper bits of a decimal: 0x1f NaN, 0x1e infinity. */
static inline int
decimal_combination(const uint8 *d)
{
	return (d[15] >> 2) & 0x1f;
}

bool
dp_decimal_is_nan(const uint8 *d)
{
	return decimal_combination(d) == 0x1f;
}

bool
dp_decimal_is_finite(const uint8 *d)
{
	return decimal_combination(d) < 0x1e;
}

int
dp_decimal_sign(const uint8 *d)
{
	DpValue v = { d, DP_DECIMAL128_SIZE, DP_TYPE_DECIMAL128 };
	uint8 buf[DP_EXACT_MAX_DIGITS];
	DpExact e;

	if (dp_decimal_is_nan(d))
		return 0;
	dp_exact_from_value(&v, &e, buf);
	if (e.rank != 0)
		return e.rank;
	return e.ndigits == 0 ? 0 : e.negative ? -1 : 1;
}

static inline bool
decimal_is_negative(const uint8 *d)
{
	return (d[15] & 0x80) != 0;
}

/* The exponent of a finite decimal. */
int
dp_decimal_exponent(const uint8 *d)
{
	uint64 high = (uint64) dp_get_int64(d + 8);

	if (((high >> 61) & 3) == 3)
		return (int) ((high >> 47) & 0x3fff) - DECIMAL128_BIAS;
	return (int) ((high >> 49) & 0x3fff) - DECIMAL128_BIAS;
}

bool
dp_decimal_is_whole(const uint8 *d)
{
	return dp_decimal_is_nan(d) || (dp_decimal_is_finite(d) && dp_decimal_exponent(d) == 0);
}

bool
dp_value_to_int64(const DpValue *v, int64 *i)
{
	uint8 buf[DP_EXACT_MAX_DIGITS];
	DpNumber number;

	if (!dp_type_is_number(v->type))
		return false;
	if (v->type == DP_TYPE_INT32)
	{
		*i = dp_get_int32(v->data);
		return true;
	}
	dp_number_from_value(&number, v, buf);
	*i = number.i;
	return number.kind == DP_NUMBER_INTEGER;
}

/* ---------------------------------------------------------------- decimals */

/*
 * a / b with more digits than are kept, rounded once.  Both are finite, b is
 * not 0.
 */
static void
decimal_divide(const uint8 *a, const uint8 *b, int exponent, uint8 out[DP_DECIMAL128_SIZE])
{
	DpValue x = { a, DP_DECIMAL128_SIZE, DP_TYPE_DECIMAL128 };
	DpValue y = { b, DP_DECIMAL128_SIZE, DP_TYPE_DECIMAL128 };
	uint8 xbuf[DP_EXACT_MAX_DIGITS];
	uint8 ybuf[DP_EXACT_MAX_DIGITS];
	DpExact xe;
	DpExact ye;
	DpExact qe;
	char xtext[QUOTIENT_DIGITS + 64];
	char ytext[64];
	Datum n;
	Datum d;
	Datum q;
	char *digits;
	int len;
	int zeros;

	dp_exact_from_value(&x, &xe, xbuf);
	dp_exact_from_value(&y, &ye, ybuf);
	if (xe.ndigits == 0)
	{
		qe = xe;
		dp_exact_round_to_decimal128(&qe, -exponent, out);
		return;
	}

	/* whole numbers: the digits of a, and zeros, by the digits of b */
	for (int i = 0; i < xe.ndigits; i++)
		xtext[i] = '0' + xe.digits[i];
	memset(xtext + xe.ndigits, '0', QUOTIENT_DIGITS);
	xtext[xe.ndigits + QUOTIENT_DIGITS] = '\0';
	for (int i = 0; i < ye.ndigits; i++)
		ytext[i] = '0' + ye.digits[i];
	ytext[ye.ndigits] = '\0';
	n = DirectFunctionCall3(numeric_in, CStringGetDatum(xtext), ObjectIdGetDatum(InvalidOid),
							Int32GetDatum(-1));
	d = DirectFunctionCall3(numeric_in, CStringGetDatum(ytext), ObjectIdGetDatum(InvalidOid),
							Int32GetDatum(-1));
	q = DirectFunctionCall2(numeric_div_trunc, n, d);
	digits = DatumGetCString(DirectFunctionCall1(numeric_out, q));
	len = strlen(digits);
	if (!DatumGetBool(DirectFunctionCall2(numeric_eq, DirectFunctionCall2(numeric_mul, q, d), n)))
	{
		/* a digit that represents the rest */
		digits = psprintf("%s1", digits);
		zeros = QUOTIENT_DIGITS + 1;
		len++;
	}
	else
		zeros = QUOTIENT_DIGITS;

	qe.rank = 0;
	qe.negative = xe.negative != ye.negative;
	qe.point = len - zeros + (xe.point - xe.ndigits) - (ye.point - ye.ndigits);
	while (len > 0 && digits[len - 1] == '0')
		len--;
	for (int i = 0; i < len; i++)
		digits[i] -= '0';
	qe.digits = (uint8 *) digits;
	qe.ndigits = len;
	dp_exact_round_to_decimal128(&qe, -exponent, out);
}

/*
 * Combines two decimals.  The exponent is the preferred one of the standard for decimal arithmetic,
 * as far as the digits allow.
 */
void
dp_decimal_combine(DpDecimalOp op, const uint8 *a, const uint8 *b, uint8 out[DP_DECIMAL128_SIZE])
{
	bool aneg = decimal_is_negative(a);
	bool bneg = decimal_is_negative(b);
	bool negative; /* if the result is 0 */
	Datum x;
	Datum y;
	Datum result = (Datum) 0;
	DpExact e;
	int exponent = 0;

	if (dp_decimal_is_nan(a) || dp_decimal_is_nan(b))
	{
		(void) dp_decimal128_from_text("NaN", 3, out);
		if (dp_decimal_is_nan(a) ? aneg : bneg)
			out[15] |= 0x80;
		return;
	}
	negative = op == DP_DECIMAL_ADD        ? aneg && bneg
			   : op == DP_DECIMAL_SUBTRACT ? aneg && !bneg
			   : op == DP_DECIMAL_MODULO   ? aneg
										   : aneg != bneg;
	if (dp_decimal_is_finite(a) && dp_decimal_is_finite(b))
	{
		int aexp = dp_decimal_exponent(a);
		int bexp = dp_decimal_exponent(b);

		exponent = op == DP_DECIMAL_MULTIPLY ? aexp + bexp
				   : op == DP_DECIMAL_DIVIDE ? aexp - bexp
											 : Min(aexp, bexp);
		if (op == DP_DECIMAL_DIVIDE && dp_decimal_sign(b) != 0)
		{
			decimal_divide(a, b, exponent, out);
			if (negative)
				out[15] |= 0x80;
			return;
		}
	}
	if (dp_decimal_sign(b) == 0 && (op == DP_DECIMAL_DIVIDE || op == DP_DECIMAL_MODULO))
	{
		int sign = op == DP_DECIMAL_DIVIDE ? dp_decimal_sign(a) : 0;
		const char *text = sign == 0 ? "NaN" : sign < 0 ? "-Infinity" : "Infinity";

		(void) dp_decimal128_from_text(text, strlen(text), out);
		return;
	}

	x = NumericGetDatum(dp_decimal128_to_numeric(a));
	y = NumericGetDatum(dp_decimal128_to_numeric(b));
	switch (op)
	{
		case DP_DECIMAL_ADD:
			result = DirectFunctionCall2(numeric_add, x, y);
			break;
		case DP_DECIMAL_SUBTRACT:
			result = DirectFunctionCall2(numeric_sub, x, y);
			break;
		case DP_DECIMAL_MULTIPLY:
			result = DirectFunctionCall2(numeric_mul, x, y);
			break;
		case DP_DECIMAL_DIVIDE:
			result = DirectFunctionCall2(numeric_div, x, y); /* infinities */
			break;
		case DP_DECIMAL_MODULO:
			result = DirectFunctionCall2(numeric_mod, x, y);
			break;
	}
	dp_exact_from_numeric(DatumGetNumeric(result), &e);
	dp_exact_round_to_decimal128(&e, -exponent, out);
	if (e.rank == 0 && e.ndigits == 0 && negative)
		out[15] |= 0x80;
}

/* ---------------------------------------------------------------- rounding */

/*
 * Cuts an exact value off at so many digits after the point.  The digits go to
 * buf.
 */
static void
exact_round(DpExact *e, DpRounding rounding, int place, uint8 *buf)
{
	int keep = e->point + place;
	bool up = false;

	if (e->rank != 0 || keep >= e->ndigits)
		return;
	if (rounding == DP_ROUND_HALF_EVEN)
	{
		if (keep >= 0)
		{
			uint8 next = e->digits[keep];
			bool odd = keep > 0 && (e->digits[keep - 1] & 1) != 0;

			up = next > 5 || (next == 5 && (odd || e->ndigits > keep + 1));
		}
	}
	else if (rounding == DP_ROUND_FLOOR)
		up = e->negative;
	else if (rounding == DP_ROUND_CEILING)
		up = !e->negative;
	keep = Max(keep, 0);

	buf[0] = 0;
	memcpy(buf + 1, e->digits, keep);
	if (up)
	{
		int i = keep;

		while (buf[i] == 9)
			buf[i--] = 0;
		buf[i]++;
	}
	if (keep == 0)
		e->point = -place;
	e->digits = buf + 1;
	e->ndigits = keep;
	if (up && buf[0] != 0)
	{
		e->digits = buf;
		e->ndigits = keep + 1;
		e->point = keep == 0 ? 1 - place : e->point + 1;
	}
	while (e->ndigits > 0 && e->digits[e->ndigits - 1] == 0)
		e->ndigits--;
	if (e->ndigits == 0)
	{
		e->negative = false;
		e->point = 0;
	}
}

/* Rounds a number.  Returns false if an integer no longer fits. */
bool
dp_result_rounded(DpValue *result, const DpValue *v, DpRounding rounding, int place)
{
	uint8 buf[DP_EXACT_MAX_DIGITS];
	uint8 rounded[DP_EXACT_MAX_DIGITS + 1];
	uint8 decimal[DP_DECIMAL128_SIZE];
	DpExact e;
	double d;
	int64 i;

	switch (v->type)
	{
		case DP_TYPE_INT32:
		case DP_TYPE_INT64:
			if (place >= 0)
			{
				*result = *v;
				return true;
			}
			dp_exact_from_value(v, &e, buf);
			exact_round(&e, rounding, place, rounded);
			if (e.point > 19)
				return false;
			{
				uint64 u = 0;

				for (int k = 0; k < e.point; k++)
					u = u * 10 + (k < e.ndigits ? e.digits[k] : 0);
				if (u > (uint64) PG_INT64_MAX + (e.negative ? 1 : 0))
					return false;
				i = e.negative ? (int64) -u : (int64) u;
			}
			return v->type == DP_TYPE_INT32 ? dp_result_integer(result, i)
											: dp_result_int64(result, i);

		case DP_TYPE_DOUBLE:
			d = dp_get_double(v->data);
			if (isnan(d) || isinf(d))
				*result = *v;
			else if (place == 0)
				dp_result_double(result, rounding == DP_ROUND_FLOOR      ? floor(d)
										 : rounding == DP_ROUND_CEILING  ? ceil(d)
										 : rounding == DP_ROUND_TRUNCATE ? trunc(d)
																		 : rint(d));
			else
			{
				dp_exact_from_value(v, &e, buf);
				exact_round(&e, rounding, place, rounded);
				dp_result_double(result, copysign(dp_exact_to_double(&e), d));
			}
			return true;

		default:
			if (!dp_decimal_is_finite(v->data))
			{
				*result = *v;
				return true;
			}
			dp_exact_from_value(v, &e, buf);
			exact_round(&e, rounding, place, rounded);
			dp_exact_round_to_decimal128(&e, place, decimal);
			decimal[15] |= v->data[15] & 0x80;
			return dp_result_decimal(result, decimal);
	}
}

/* ---------------------------------------------------------------- sums */

void
dp_sum_init(DpSum *sum)
{
	sum->type = DP_TYPE_INT32;
	sum->i = 0;
	sum->d = 0;
	sum->rest = 0;
}

/* Adds to the double of a sum and notes what rounding lost. */
static void
sum_add_double(DpSum *sum, double x)
{
	double total = sum->d + x;

	if (fabs(sum->d) >= fabs(x))
		sum->rest += (sum->d - total) + x;
	else
		sum->rest += (x - total) + sum->d;
	sum->d = total;
}

/* The double of a sum. */
static double
sum_double(const DpSum *sum)
{
	double total = sum->d + sum->rest;

	/* what infinities leave of the rest is no number */
	return isnan(total) ? sum->d : total;
}

void
dp_sum_add(DpSum *sum, const DpValue *v)
{
	uint8 decimal[DP_DECIMAL128_SIZE];
	uint8 total[DP_DECIMAL128_SIZE];
	int64 i;

	/* widen what there is */
	if (v->type == DP_TYPE_DECIMAL128 && sum->type != DP_TYPE_DECIMAL128)
	{
		uint8 room[8];
		DpValue old = { room, 8, sum->type == DP_TYPE_DOUBLE ? DP_TYPE_DOUBLE : DP_TYPE_INT64 };

		if (sum->type == DP_TYPE_DOUBLE)
			dp_put_double(room, sum_double(sum));
		else
			dp_put_int64(room, sum->i);
		dp_number_to_decimal(&old, sum->decimal);
		sum->type = DP_TYPE_DECIMAL128;
	}
	else if (v->type == DP_TYPE_DOUBLE && sum->type != DP_TYPE_DOUBLE &&
			 sum->type != DP_TYPE_DECIMAL128)
	{
		sum->d = (double) sum->i;
		sum->type = DP_TYPE_DOUBLE;
	}
	else if (v->type == DP_TYPE_INT64 && sum->type == DP_TYPE_INT32)
		sum->type = DP_TYPE_INT64;

	switch (sum->type)
	{
		case DP_TYPE_DECIMAL128:
			dp_number_to_decimal(v, decimal);
			dp_decimal_combine(DP_DECIMAL_ADD, sum->decimal, decimal, total);
			memcpy(sum->decimal, total, DP_DECIMAL128_SIZE);
			break;
		case DP_TYPE_DOUBLE:
			sum_add_double(sum, dp_number_to_double(v));
			break;
		default:
			i = v->type == DP_TYPE_INT32 ? dp_get_int32(v->data) : dp_get_int64(v->data);
			if (pg_add_s64_overflow(sum->i, i, &i))
			{
				sum->d = (double) sum->i;
				sum->type = DP_TYPE_DOUBLE;
				sum_add_double(sum, dp_number_to_double(v));
			}
			else
				sum->i = i;
			break;
	}
}

bool
dp_result_sum(DpValue *result, const DpSum *sum)
{
	switch (sum->type)
	{
		case DP_TYPE_DECIMAL128:
			return dp_result_decimal(result, sum->decimal);
		case DP_TYPE_DOUBLE:
			return dp_result_double(result, sum_double(sum));
		case DP_TYPE_INT64:
			return dp_result_int64(result, sum->i);
		default:
			return dp_result_integer(result, sum->i);
	}
}
