/*
 * amount.h
 *		Numbers that are added up: what counters add, and their sums.
 *
 * A sum is of the wider type of the two, decimals winning over doubles and
 * these over integers; an int32 that overflows becomes an int64.  Integers are
 * exact, decimals to their 34 digits, doubles to rounding.
 */
#ifndef DP_BSON_AMOUNT_H
#define DP_BSON_AMOUNT_H

#include "utils/numeric.h"

#include "bson/number.h"

/* A number with room for its bytes: value.data points to them.  Copy it with dp_amount_set(). */
typedef struct DpAmount
{
	DpValue value;
	uint8 bytes[DP_DECIMAL128_SIZE];
} DpAmount;

/*
 * Makes an amount of a number, of an integer (an int32 if it fits and wide is false), of a double,
 * of a numeric.
 */
extern void dp_amount_set(DpAmount *amount, const DpValue *number);
extern void dp_amount_set_int(DpAmount *amount, int64 i, bool wide);
extern void dp_amount_set_double(DpAmount *amount, double d);
extern void dp_amount_set_decimal(DpAmount *amount, Numeric n);

/*
 * Adds a number.  Raises NUMERIC_VALUE_OUT_OF_RANGE if the sum of integers does not fit into an
 * int64.
 */
extern void dp_amount_add(DpAmount *sum, const DpValue *number);

/* Takes a number away; errors as dp_amount_add(). */
extern void dp_amount_subtract(DpAmount *sum, const DpValue *number);

/* Whether a number is an integer; and which. */
static inline bool
dp_amount_is_int(const DpValue *number)
{
	return number->type == DP_TYPE_INT32 || number->type == DP_TYPE_INT64;
}

static inline int64
dp_amount_int(const DpValue *number)
{
	return number->type == DP_TYPE_INT32 ? dp_get_int32(number->data) : dp_get_int64(number->data);
}

/* The double next to a number. */
extern double dp_amount_double(const DpValue *number);

/* A number as a numeric; a double counts with fifteen digits, those that are certain. */
extern Numeric dp_amount_numeric(const DpValue *number);

#endif /* DP_BSON_AMOUNT_H */
