/*
 * number.c
 *		Exact comparison and the canonical form of the numbers in BSON.
 *
 * Integers and doubles are compared by what the processor has.  Where a
 * decimal takes part, both sides are written out as decimal digits: every
 * double has an exact decimal form, of 767 digits at most.
 */
#include "postgres.h"

#include <math.h>

#include "bson/number.h"

/* 2^63, the first double beyond int64 */
#define TWO_63 9223372036854775808.0

/* Integers up to here are all doubles */
#define TWO_53 INT64CONST(9007199254740992)

/* Words of the largest integer in dp_exact_from_double: 2^53 * 5^1074 */
#define MAX_WORDS 84

/* The greatest coefficient, 10^34 - 1, in two halves; larger ones represent 0 */
#define MAX_COEFFICIENT_HIGH UINT64CONST(0x1ed09bead87c0)
#define MAX_COEFFICIENT_LOW UINT64CONST(0x378d8e63ffffffff)

#define DECIMAL128_BIAS 6176

/* A decoded decimal128: coefficient * 10^exponent. */
typedef struct Decimal
{
	int rank; /* as in DpExact */
	bool negative;
	int exponent;
	uint64 high;
	uint64 low;
} Decimal;

static void decimal_load(const uint8 *d, Decimal *decimal);
static bool decimal_is_short(const Decimal *decimal, double *d, int *side);
static int decimal_compare(const uint8 *a, const uint8 *b);
static void exact_from_decimal(const uint8 *d, DpExact *exact, uint8 *buf);
static void exact_from_int64(int64 i, DpExact *exact, uint8 *buf);
static void
exact_set(DpExact *exact, bool negative, const uint8 *digits, int ndigits, int exponent);
static void exact_set_special(DpExact *exact, int rank);
static bool exact_to_int64(const DpExact *exact, int64 *result);
static int words_to_digits(uint32 *words, int nwords, uint8 *buf);
static int exact_compare(const DpExact *a, const DpExact *b);

/*
 * Compares an integer with a double by value.
 */
int
dp_int64_compare_double(int64 i, double d)
{
	double whole;

	if (d >= TWO_63)
		return -1;
	if (!(d >= -TWO_63))
		return 1; /* less than any int64, or NaN */
	whole = trunc(d);
	if (i != (int64) whole)
		return i < (int64) whole ? -1 : 1;
	return dp_double_compare(whole, d);
}

/*
 * Compares two numbers of different types, or two decimals.
 */
int
dp_number_compare_mixed(const DpValue *a, const DpValue *b)
{
	uint8 buf[DP_EXACT_MAX_DIGITS];
	DpNumber number;
	int64 i;

	if (b->type == DP_TYPE_DECIMAL128)
	{
		if (a->type == DP_TYPE_DECIMAL128)
			return decimal_compare(a->data, b->data);
		dp_number_from_value(&number, b, buf);
		return dp_value_compare_number(a, &number);
	}
	if (a->type == DP_TYPE_DECIMAL128 || a->type == DP_TYPE_DOUBLE)
		return -dp_number_compare_mixed(b, a);

	i = a->type == DP_TYPE_INT32 ? dp_get_int32(a->data) : dp_get_int64(a->data);
	switch (b->type)
	{
		case DP_TYPE_INT32:
			return dp_int64_compare(i, dp_get_int32(b->data));
		case DP_TYPE_INT64:
			return dp_int64_compare(i, dp_get_int64(b->data));
		default:
			return dp_int64_compare_double(i, dp_get_double(b->data));
	}
}

/*
 * Compares two decimals.  Those of the same exponent, as prices usually are,
 * and those whose nearest doubles differ need not be written out.
 */
static int
decimal_compare(const uint8 *a, const uint8 *b)
{
	Decimal x;
	Decimal y;
	double xnear;
	double ynear;
	int side;
	uint8 abuf[DP_EXACT_MAX_DIGITS];
	uint8 bbuf[DP_EXACT_MAX_DIGITS];
	DpExact aexact;
	DpExact bexact;

	decimal_load(a, &x);
	decimal_load(b, &y);
	if (x.rank == 0 && y.rank == 0 && x.exponent == y.exponent && x.negative == y.negative)
	{
		int result;

		if (x.high != y.high)
			result = x.high < y.high ? -1 : 1;
		else
			result = (x.low > y.low) - (x.low < y.low);
		return x.negative ? -result : result;
	}
	if (decimal_is_short(&x, &xnear, &side) && decimal_is_short(&y, &ynear, &side) &&
		xnear != ynear)
		return xnear < ynear ? -1 : 1;
	exact_from_decimal(a, &aexact, abuf);
	exact_from_decimal(b, &bexact, bbuf);
	return exact_compare(&aexact, &bexact);
}

/*
 * Decodes the sixteen bytes of a decimal128.  A coefficient that is too large represents 0,
 * according to IEEE 754.
 */
static void
decimal_load(const uint8 *d, Decimal *decimal)
{
	uint64 low = (uint64) dp_get_int64(d);
	uint64 high = (uint64) dp_get_int64(d + 8);

	decimal->rank = 0;
	decimal->negative = (high >> 63) != 0;
	decimal->exponent = (int) ((high >> 49) & 0x3fff) - DECIMAL128_BIAS;
	decimal->high = high & UINT64CONST(0x1ffffffffffff);
	decimal->low = low;

	if (((high >> 61) & 3) == 3)
	{
		if (((high >> 58) & 0x1f) == 0x1f)
			decimal->rank = DP_RANK_NAN;
		else if (((high >> 58) & 0x1f) == 0x1e)
			decimal->rank = decimal->negative ? -1 : 1;
		decimal->high = decimal->low = 0;
	}
	else if (decimal->high > MAX_COEFFICIENT_HIGH ||
			 (decimal->high == MAX_COEFFICIENT_HIGH && decimal->low > MAX_COEFFICIENT_LOW))
		decimal->high = decimal->low = 0;
}

/*
 * True if a decimal is a whole number up to 2^53 divided by a power of ten that is a double, as
 * most decimals in practice are.  Then sets *d to the nearest double, by one division, and *side to
 * the sign of the decimal compared with *d (-1, 0, 1): the sign of a fused multiplication and
 * subtraction, which is rounded only once, cannot be wrong.
 */
static bool
decimal_is_short(const Decimal *decimal, double *d, int *side)
{
	static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
									 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
									 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
	double dividend;
	double rest;

	if (decimal->rank != 0 || decimal->high != 0 || decimal->low > (uint64) TWO_53 ||
		decimal->exponent > 0 || -decimal->exponent >= (int) lengthof(powers))
		return false;
	dividend = decimal->negative ? -(double) decimal->low : (double) decimal->low;
	*d = dividend / powers[-decimal->exponent];
	rest = fma(*d, powers[-decimal->exponent], -dividend);
	*side = (rest < 0) - (rest > 0);
	return true;
}

/*
 * Writes the digits of the integer in words (least significant first, which
 * is destroyed) to buf.  Returns their number; there are no leading zeros.
 */
static int
words_to_digits(uint32 *words, int nwords, uint8 *buf)
{
	uint8 reversed[DP_EXACT_MAX_DIGITS + 9];
	int n = 0;

	while (nwords > 0)
	{
		uint64 rest = 0;

		for (int i = nwords - 1; i >= 0; i--)
		{
			rest = rest << 32 | words[i];
			words[i] = (uint32) (rest / 1000000000);
			rest %= 1000000000;
		}
		while (nwords > 0 && words[nwords - 1] == 0)
			nwords--;
		for (int i = 0; i < 9; i++)
		{
			reversed[n++] = rest % 10;
			rest /= 10;
		}
	}
	while (n > 0 && reversed[n - 1] == 0)
		n--;
	for (int i = 0; i < n; i++)
		buf[i] = reversed[n - 1 - i];
	return n;
}

/*
 * Makes a finite value of an integer's digits (without leading zeros) and a
 * power of ten.
 */
static void
exact_set(DpExact *exact, bool negative, const uint8 *digits, int ndigits, int exponent)
{
	exact->rank = 0;
	exact->point = ndigits + exponent;
	while (ndigits > 0 && digits[ndigits - 1] == 0)
		ndigits--;
	exact->ndigits = ndigits;
	exact->digits = digits;
	exact->negative = negative && ndigits > 0;
	if (ndigits == 0)
		exact->point = 0;
}

/* Makes NaN or an infinity. */
static void
exact_set_special(DpExact *exact, int rank)
{
	exact->rank = rank;
	exact->negative = false;
	exact->ndigits = 0;
	exact->point = 0;
	exact->digits = NULL;
}

/* The digits of an integer. */
static void
exact_from_int64(int64 i, DpExact *exact, uint8 *buf)
{
	uint64 u = i < 0 ? -(uint64) i : (uint64) i;
	uint32 words[2] = { (uint32) u, (uint32) (u >> 32) };

	exact_set(exact, i < 0, buf, words_to_digits(words, u == 0 ? 0 : 2, buf), 0);
}

/* The digits of a decimal128. */
static void
exact_from_decimal(const uint8 *d, DpExact *exact, uint8 *buf)
{
	Decimal decimal;
	uint32 words[4];
	int nwords = 4;

	decimal_load(d, &decimal);
	if (decimal.rank != 0)
	{
		exact_set_special(exact, decimal.rank);
		return;
	}
	words[0] = (uint32) decimal.low;
	words[1] = (uint32) (decimal.low >> 32);
	words[2] = (uint32) decimal.high;
	words[3] = (uint32) (decimal.high >> 32);
	while (nwords > 0 && words[nwords - 1] == 0)
		nwords--;
	exact_set(exact, decimal.negative, buf, words_to_digits(words, nwords, buf), decimal.exponent);
}

/*
 * The digits of a double.  It is m * 2^e; where e is negative that is
 * m * 5^-e * 10^e, so that multiplying by 5 is all it takes.
 */
void
dp_exact_from_double(double d, DpExact *exact, uint8 *buf)
{
	uint32 words[MAX_WORDS];
	int nwords;
	uint64 bits;
	uint64 m;
	int e;
	int fives;

	if (isnan(d) || isinf(d))
	{
		exact_set_special(exact, isnan(d) ? DP_RANK_NAN : d < 0 ? -1 : 1);
		return;
	}

	memcpy(&bits, &d, sizeof(bits));
	m = bits & UINT64CONST(0xfffffffffffff);
	e = (int) ((bits >> 52) & 0x7ff);
	if (e == 0)
		e = 1; /* no hidden bit */
	else
		m |= UINT64CONST(0x10000000000000);
	e -= 1075;
	if (m == 0)
	{
		exact_set(exact, false, buf, 0, 0);
		return;
	}
	while ((m & 1) == 0 && e < 0)
	{
		m >>= 1;
		e++;
	}

	memset(words, 0, sizeof(words));
	if (e > 0)
	{
		int word = e / 32;
		int bit = e % 32;

		words[word] = (uint32) (m << bit);
		words[word + 1] = (uint32) (m >> (32 - bit));
		words[word + 2] = bit == 0 ? 0 : (uint32) (m >> (64 - bit));
		nwords = word + 3;
	}
	else
	{
		words[0] = (uint32) m;
		words[1] = (uint32) (m >> 32);
		nwords = 2;
	}

	for (fives = e < 0 ? -e : 0; fives > 0;)
	{
		uint32 factor = 5;
		uint64 carry = 0;
		int n = 1;

		for (; n < 13 && n < fives; n++)
			factor *= 5; /* 5^13 is less than 2^32 */
		for (int i = 0; i < nwords; i++)
		{
			carry += (uint64) words[i] * factor;
			words[i] = (uint32) carry;
			carry >>= 32;
		}
		if (carry != 0)
			words[nwords++] = (uint32) carry;
		fives -= n;
	}
	while (nwords > 0 && words[nwords - 1] == 0)
		nwords--;
	exact_set(exact, d < 0, buf, words_to_digits(words, nwords, buf), e < 0 ? e : 0);
}

/*
 * The digits of a number in BSON.
 */
void
dp_exact_from_value(const DpValue *v, DpExact *exact, uint8 *buf)
{
	switch (v->type)
	{
		case DP_TYPE_INT32:
			exact_from_int64(dp_get_int32(v->data), exact, buf);
			break;
		case DP_TYPE_INT64:
			exact_from_int64(dp_get_int64(v->data), exact, buf);
			break;
		case DP_TYPE_DOUBLE:
			dp_exact_from_double(dp_get_double(v->data), exact, buf);
			break;
		case DP_TYPE_DECIMAL128:
			exact_from_decimal(v->data, exact, buf);
			break;
		default:
			elog(ERROR, "BSON type %d is not a number", v->type);
	}
}

/*
 * The digits of a numeric.
 */
void
dp_exact_from_numeric(Numeric n, DpExact *exact)
{
	char *text;
	uint8 *digits;
	int ndigits = 0;
	int exponent = 0;
	bool negative;
	bool fraction = false;

	if (numeric_is_nan(n))
	{
		exact_set_special(exact, DP_RANK_NAN);
		return;
	}
	text = numeric_normalize(n);
	negative = text[0] == '-';
	if (numeric_is_inf(n))
	{
		exact_set_special(exact, negative ? -1 : 1);
		return;
	}

	/* The text has no exponent; its digits become ours in place. */
	digits = (uint8 *) text;
	for (const char *p = text + (negative ? 1 : 0); *p != '\0'; p++)
	{
		if (*p == '.')
		{
			fraction = true;
			continue;
		}
		if (fraction)
			exponent--;
		if (ndigits > 0 || *p != '0')
			digits[ndigits++] = (uint8) (*p - '0');
	}
	exact_set(exact, negative, digits, ndigits, exponent);
}

/*
 * Compares two exact values.
 */
static int
exact_compare(const DpExact *a, const DpExact *b)
{
	int result;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->rank != 0)
		return 0;
	if (a->negative != b->negative)
		return a->negative ? -1 : 1;
	if (a->ndigits == 0 || b->ndigits == 0)
		result = (a->ndigits > 0) - (b->ndigits > 0);
	else if (a->point != b->point)
		result = a->point < b->point ? -1 : 1;
	else
	{
		result = memcmp(a->digits, b->digits, Min(a->ndigits, b->ndigits));
		if (result == 0)
			result = a->ndigits - b->ndigits;
		result = (result > 0) - (result < 0);
	}
	return a->negative ? -result : result;
}

/*
 * The nearest double, by strtod.  Of digits beyond the longest double only matters whether there
 * are any: a 1 represents them.
 */
double
dp_exact_to_double(const DpExact *exact)
{
	char text[DP_EXACT_MAX_DIGITS + 32];
	int n = Min(exact->ndigits, DP_EXACT_MAX_DIGITS);
	char *p = text;

	if (exact->rank == DP_RANK_NAN)
		return NAN;
	if (exact->rank != 0)
		return exact->rank < 0 ? -INFINITY : INFINITY;
	if (n == 0)
		return 0.0;
	if (exact->negative)
		*p++ = '-';
	for (int i = 0; i < n; i++)
		*p++ = '0' + exact->digits[i];
	if (n < exact->ndigits)
	{
		*p++ = '1';
		n++;
	}
	sprintf(p, "e%d", exact->point - n);
	return strtod(text, NULL);
}

/*
 * The value as an int64.  Returns false if it is not an integer or too large.
 */
static bool
exact_to_int64(const DpExact *exact, int64 *result)
{
	uint64 u = 0;

	if (exact->rank != 0 || exact->ndigits > exact->point || exact->point > 19)
		return false;
	for (int i = 0; i < exact->point; i++)
		u = u * 10 + (i < exact->ndigits ? exact->digits[i] : 0);
	if (u > (uint64) PG_INT64_MAX + (exact->negative ? 1 : 0))
		return false;
	*result = exact->negative ? (int64) -u : (int64) u;
	return true;
}

/*
 * The canonical form of an exact value.
 */
void
dp_number_from_exact(DpNumber *number, const DpExact *exact)
{
	uint8 buf[DP_EXACT_MAX_DIGITS];
	DpExact nearest;

	if (exact_to_int64(exact, &number->i))
	{
		number->kind = DP_NUMBER_INTEGER;
		return;
	}
	number->d = dp_exact_to_double(exact);
	if (exact->rank == 0)
	{
		dp_exact_from_double(number->d, &nearest, buf);
		number->side = exact_compare(exact, &nearest);
		if (number->side != 0)
		{
			number->kind = DP_NUMBER_DECIMAL;
			number->exact = *exact;
			return;
		}
	}
	number->kind = DP_NUMBER_DOUBLE;
}

/*
 * The canonical form of a double.
 */
void
dp_number_from_double(DpNumber *number, double d)
{
	if (d >= -TWO_63 && d < TWO_63 && trunc(d) == d)
	{
		number->kind = DP_NUMBER_INTEGER;
		number->i = (int64) d;
	}
	else
	{
		number->kind = DP_NUMBER_DOUBLE;
		number->d = isnan(d) ? NAN : d;
	}
}

/*
 * The canonical form of a number in BSON.
 */
void
dp_number_from_value(DpNumber *number, const DpValue *v, uint8 *buf)
{
	DpExact exact;
	Decimal decimal;

	switch (v->type)
	{
		case DP_TYPE_INT32:
			number->kind = DP_NUMBER_INTEGER;
			number->i = dp_get_int32(v->data);
			break;
		case DP_TYPE_INT64:
			number->kind = DP_NUMBER_INTEGER;
			number->i = dp_get_int64(v->data);
			break;
		case DP_TYPE_DOUBLE:
			dp_number_from_double(number, dp_get_double(v->data));
			break;
		case DP_TYPE_DECIMAL128:
			decimal_load(v->data, &decimal);
			if (decimal_is_short(&decimal, &number->d, &number->side))
			{
				if (number->side == 0)
					dp_number_from_double(number, number->d);
				else
				{
					number->kind = DP_NUMBER_DECIMAL;
					exact_from_decimal(v->data, &number->exact, buf);
				}
				break;
			}
			/* FALLTHROUGH */
		default:
			dp_exact_from_value(v, &exact, buf);
			dp_number_from_exact(number, &exact);
			break;
	}
}

/*
 * Compares a number in BSON with a canonical one.  Written out are only
 * decimals and what falls next to one.
 */
int
dp_value_compare_number(const DpValue *v, const DpNumber *number)
{
	uint8 vbuf[DP_EXACT_MAX_DIGITS];
	uint8 nbuf[DP_EXACT_MAX_DIGITS];
	DpExact vexact;
	DpExact nexact;

	if (v->type == DP_TYPE_INT32 || v->type == DP_TYPE_INT64)
	{
		int64 i = v->type == DP_TYPE_INT32 ? dp_get_int32(v->data) : dp_get_int64(v->data);

		if (number->kind == DP_NUMBER_INTEGER)
			return dp_int64_compare(i, number->i);
		if (number->kind == DP_NUMBER_DOUBLE)
			return dp_int64_compare_double(i, number->d);
		if (i >= -TWO_53 && i <= TWO_53)
		{
			int result = dp_double_compare((double) i, number->d);

			return result != 0 ? result : -number->side;
		}
	}
	else if (v->type == DP_TYPE_DOUBLE)
	{
		double d = dp_get_double(v->data);
		int result;

		if (number->kind == DP_NUMBER_INTEGER)
			return -dp_int64_compare_double(number->i, d);
		result = dp_double_compare(d, number->d);
		if (number->kind == DP_NUMBER_DOUBLE || result != 0)
			return result;
		return -number->side;
	}
	else if (number->kind == DP_NUMBER_DOUBLE)
	{
		DpNumber decimal;
		DpValue other = { nbuf, 8, DP_TYPE_DOUBLE };

		dp_put_double(nbuf, number->d);
		dp_number_from_value(&decimal, v, vbuf);
		return -dp_value_compare_number(&other, &decimal);
	}

	dp_exact_from_value(v, &vexact, vbuf);
	if (number->kind == DP_NUMBER_DECIMAL)
		return exact_compare(&vexact, &number->exact);
	exact_from_int64(number->i, &nexact, nbuf);
	return exact_compare(&vexact, &nexact);
}

/*
 * The double nearest to the number.
 */
double
dp_number_approximate(const DpValue *v)
{
	uint8 buf[DP_EXACT_MAX_DIGITS];
	DpExact exact;
	Decimal decimal;
	double d;
	int side;

	switch (v->type)
	{
		case DP_TYPE_INT32:
			return (double) dp_get_int32(v->data);
		case DP_TYPE_INT64:
			return (double) dp_get_int64(v->data);
		case DP_TYPE_DOUBLE:
			return dp_get_double(v->data);
		default:
			break;
	}

	decimal_load(v->data, &decimal);
	if (decimal_is_short(&decimal, &d, &side))
		return d;
	exact_from_decimal(v->data, &exact, buf);
	return dp_exact_to_double(&exact);
}
