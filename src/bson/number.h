/*
 * number.h
 *		The four kinds of numbers in BSON (int32, int64, double, decimal128): exact comparison,
 *		the canonical form for equality and hashing, and decimal128 as text and as numeric.
 *
 * Numbers are compared by their exact values: 2^53+1 as an int64 is greater than 2^53 as a double,
 * and 0.1 as a decimal128 is less than 0.1 as a double.  All zeros are equal, NaN equals NaN and is
 * less than every other number, including -Infinity.
 */
#ifndef DP_BSON_NUMBER_H
#define DP_BSON_NUMBER_H

#include "bson/reader.h"

#include <math.h>

#include "utils/numeric.h"

/* Room for the longest text of a decimal128 and its NUL */
#define DP_DECIMAL128_TEXT_SIZE 48

/* The most digits of a double (767), of a decimal128 (34) and of an int64 (19) */
#define DP_EXACT_MAX_DIGITS 800

/*
 * A number written out in decimal, exactly: sign * 0.ddd... * 10^point.  The
 * digits stand somewhere else, one to a byte, 0 to 9; neither the first nor
 * the last of them is 0.  Zero has none of them and no sign.
 */
typedef struct DpExact
{
	int rank;      /* -2 NaN, -1 -Infinity, 0 finite, 1 Infinity */
	bool negative; /* when finite and not zero */
	int ndigits;
	int point;
	const uint8 *digits;
} DpExact;

#define DP_RANK_NAN (-2)

/* The bits of the double that represents all NaNs */
#define DP_DOUBLE_NAN INT64CONST(0x7ff8000000000000)

/*
 * The canonical form of a number: the first kind of these three that can hold
 * it.  Equal numbers have the same one, whatever types they were stored in.
 */
typedef enum DpNumberKind
{
	DP_NUMBER_INTEGER, /* an integer within the range of int64 */
	DP_NUMBER_DOUBLE,  /* any other double, the infinities and NaN among them */
	DP_NUMBER_DECIMAL  /* anything else */
} DpNumberKind;

typedef struct DpNumber
{
	DpNumberKind kind;
	int64 i;       /* INTEGER: the value */
	double d;      /* DOUBLE: the value; DECIMAL: the double next to it */
	int side;      /* DECIMAL: -1 less than d, 1 greater */
	DpExact exact; /* DECIMAL: the value */
} DpNumber;

/*
 * Reads the text of a decimal128 (digits with sign, point and exponent,
 * Infinity, NaN; any case) of len bytes, which need not end in a NUL.  Returns
 * false if it is not a number, or needs more than 34 digits, or a larger
 * exponent than there is.
 */
extern bool dp_decimal128_from_text(const char *s, int len, uint8 out[DP_DECIMAL128_SIZE]);

/*
 * Writes the text of a decimal128, its exponent and trailing zeros kept, and
 * a NUL.  Returns the length of the text.
 */
extern int dp_decimal128_to_text(const uint8 *d, char buf[DP_DECIMAL128_TEXT_SIZE]);

/* The same value as a numeric (palloc'd); there is one for every decimal128. */
extern Numeric dp_decimal128_to_numeric(const uint8 *d);

/*
 * The same value as a decimal128, with the scale of the numeric if 34 digits allow it.  Raises
 * NUMERIC_VALUE_OUT_OF_RANGE if it needs more than 34 digits or too large an exponent.
 */
extern void dp_numeric_to_decimal128(Numeric n, uint8 out[DP_DECIMAL128_SIZE]);

/*
 * The nearest decimal128: rounded to 34 digits, half to even; too large becomes Infinity, too small
 * 0.
 */
extern void dp_numeric_round_to_decimal128(Numeric n, uint8 out[DP_DECIMAL128_SIZE]);

/*
 * The same for an exact value; zeros after the point are kept up to the scale, if there is room.
 * A zero has the scale.
 */
extern void
dp_exact_round_to_decimal128(const DpExact *exact, int scale, uint8 out[DP_DECIMAL128_SIZE]);

/* The exact value of a finite double, an infinity or NaN as a numeric (palloc'd). */
extern Numeric dp_double_to_numeric(double d);

/*
 * The exact value of a number.  The digits are written to buf, which holds
 * DP_EXACT_MAX_DIGITS bytes and must outlive the result.
 */
extern void dp_exact_from_double(double d, DpExact *exact, uint8 *buf);
extern void dp_exact_from_value(const DpValue *v, DpExact *exact, uint8 *buf);

/* The same for a numeric; the digits are palloc'd. */
extern void dp_exact_from_numeric(Numeric n, DpExact *exact);

/* The double nearest to the value. */
extern double dp_exact_to_double(const DpExact *exact);

/* The canonical form of an exact value, of whose digits it makes no copy, or of a double. */
extern void dp_number_from_exact(DpNumber *number, const DpExact *exact);
extern void dp_number_from_double(DpNumber *number, double d);

/*
 * The canonical form of a number in BSON; buf holds DP_EXACT_MAX_DIGITS bytes and must outlive the
 * result.
 */
extern void dp_number_from_value(DpNumber *number, const DpValue *v, uint8 *buf);

/* Compares a number in BSON with one in canonical form. */
extern int dp_value_compare_number(const DpValue *v, const DpNumber *number);

/*
 * A double that is close to the number and never on the wrong side: a <= b
 * gives approximate(a) <= approximate(b).  NaN for NaN.
 */
extern double dp_number_approximate(const DpValue *v);

/* Numbers of different types, or decimals. */
extern int dp_number_compare_mixed(const DpValue *a, const DpValue *b);

/* Compares two integers. */
static inline int
dp_int64_compare(int64 a, int64 b)
{
	return (a > b) - (a < b);
}

/* Compares two doubles; NaN equals NaN and is less than everything else. */
static inline int
dp_double_compare(double a, double b)
{
	if (likely(a == a && b == b))
		return (a > b) - (a < b);
	return (a == a) - (b == b);
}

/* Compares an integer with a double, exactly. */
extern int dp_int64_compare_double(int64 i, double d);

/*
 * Compares two values that are numbers.  Returns -1, 0 or 1.
 */
static inline int
dp_number_compare(const DpValue *a, const DpValue *b)
{
	if (likely(a->type == b->type))
	{
		if (a->type == DP_TYPE_INT32)
			return dp_int64_compare(dp_get_int32(a->data), dp_get_int32(b->data));
		if (a->type == DP_TYPE_DOUBLE)
			return dp_double_compare(dp_get_double(a->data), dp_get_double(b->data));
		if (a->type == DP_TYPE_INT64)
			return dp_int64_compare(dp_get_int64(a->data), dp_get_int64(b->data));
	}
	return dp_number_compare_mixed(a, b);
}

#endif /* DP_BSON_NUMBER_H */
